//! Calls that move something elsewhere, on other nodes or servers, while this node waits for the answers.

use std::sync::Mutex;

use base::lock::MutexExt;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::Node;
use super::stop_cause::StopCause;

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
    /// Stops all that calls of this node move, here and on other nodes: one of them was given up, and it is not known which. An
    /// arm that stands needs no reset afterwards.
    pub fn abandon_motion(&self, caller: Option<&str>) {
        let cause = StopCause::by("a cancellation of an unknown call", caller);
        let moving = self.arms.iter().filter(|arm| arm.is_moving());
        let moving: Vec<&str> = moving.map(|arm| arm.name.as_str()).collect();
        for arm in &self.arms {
            arm.motion.cancel();
            if moving.contains(&arm.name.as_str()) {
                arm.note_cause(cause.clone());
            }
        }
        self.end_sequences();
        self.passed_on_motion.give_up();
        tracing::warn!(?moving, "{cause}: all arms of this node were stopped");
        let entry = json!({"cause": cause.cause, "caller": caller, "moving": moving});
        self.audit.note("cancellation", entry.to_string());
    }
}
