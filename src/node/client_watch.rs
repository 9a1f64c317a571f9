//! Watches the client of a verb that moves: if it disconnects, the arm is stopped.

use std::sync::Arc;

use super::operator_verb::OperatorVerb;
use tools::{AttachedArm, Node};

/// Stops the arms of a verb whose client disconnects before its answer, because then no client watches them.
pub(super) struct ClientWatch(Option<(Arc<Node>, &'static str)>);

impl ClientWatch {
    /// Watches the client of a verb that is answered at the end of a motion, and of no other.
    pub(super) fn of(node: &Arc<Node>, verb: Option<&OperatorVerb>) -> Self {
        let tool = verb.and_then(OperatorVerb::moves_until_answered);
        Self(tool.map(|tool| (Arc::clone(node), tool)))
    }

    /// Ends the watch when the answer is ready.
    pub(super) fn ends(mut self) {
        self.0 = None;
    }
}

impl Drop for ClientWatch {
    fn drop(&mut self) {
        let Some((node, tool)) = &self.0 else {
            return;
        };
        tracing::warn!("the client of {tool} has gone: the arm was told to stop");
        abort(node, tool);
    }
}

/// Stops the motion that a departed client may have requested, even before it has begun. Leaves other clients' motion alone.
fn abort(node: &Node, tool: &str) {
    let is_affected =
        |seat: &&Arc<AttachedArm>| seat.under_way().is_none_or(|job_tool| job_tool == tool);
    node.arms.iter().filter(is_affected).for_each(|seat| {
        seat.motion.abandon();
    });
}
