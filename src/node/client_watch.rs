//! Watches the client of a verb that moves: if it disconnects, the motion is stopped, or does not begin.

use std::sync::Arc;

use super::operator_verb::OperatorVerb;
use call::ArrivalStamp;
use tools::Node;

/// Gives up a verb whose client disconnects before its answer, because then no client watches the arm.
pub(super) struct ClientWatch(Option<WatchedVerb>);

struct WatchedVerb {
    node: Arc<Node>,
    tool: &'static str,
    arrived: ArrivalStamp,
}

impl ClientWatch {
    /// Watches the client of a verb that is answered at the end of a motion, and of no other.
    pub(super) fn of(
        node: &Arc<Node>,
        verb: Option<&OperatorVerb>,
        arrived: &ArrivalStamp,
    ) -> Self {
        let tool = verb.and_then(OperatorVerb::moves_until_answered);
        Self(tool.map(|tool| WatchedVerb {
            node: Arc::clone(node),
            tool,
            arrived: arrived.clone(),
        }))
    }

    /// Ends the watch when the answer is ready.
    pub(super) fn ends(mut self) {
        self.0 = None;
    }
}

impl Drop for ClientWatch {
    fn drop(&mut self) {
        if let Some(WatchedVerb {
            node,
            tool,
            arrived,
        }) = &self.0
        {
            tracing::warn!("the client of {tool} disconnected: its motion stops or does not start");
            node.give_up(arrived);
        }
    }
}
