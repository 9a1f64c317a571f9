//! Calls that move something elsewhere, on other nodes or servers, while this node waits for the answers.

use std::sync::Mutex;

use base::lock::MutexExt;
use tokio_util::sync::CancellationToken;

use super::Node;

/// Gives up all such calls at once.
#[derive(Debug, Default)]
pub(super) struct PassedOnMotion(Mutex<CancellationToken>);

impl PassedOnMotion {
    /// Returns the token of the calls that are passed on now.
    pub(super) fn token(&self) -> CancellationToken {
        self.0.locked().clone()
    }

    /// Gives up every call under way: the node or server that carries it out is told to stop.
    pub(super) fn give_up(&self) {
        let under_way = std::mem::take(&mut *self.0.locked());
        under_way.cancel();
    }
}

impl Node {
    /// Stops all that calls of this node move, here and on other nodes: one of them was given up, and it is not known which.
    pub fn abandon_motion(&self) {
        for arm in &self.arms {
            arm.motion.abandon();
        }
        self.end_sequences();
        self.passed_on_motion.give_up();
    }
}
