//! The stops that a node had received when a message arrived: a later stop ends what the message asks for.

use std::sync::Arc;

/// The stops of one arm so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StopCounts {
    /// Stops of every kind.
    pub stops: u64,
    /// Emergency stops among them that were latched.
    pub emergencies: u64,
}

/// The stops that a node had received when a message arrived, counted before anything else is done with the message. However
/// long the message then waits for its turn, a stop that is not among these came later, and the later one wins. Only `Node`
/// makes a stamp that counts stops; the default counts none and so is older than every stop.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ArrivalStamp {
    arms: Arc<[StopCounts]>,
    stops_heard: u64,
    is_stop: bool,
}

impl ArrivalStamp {
    /// Records the stops of each arm, in the node's order, and the number of stops received for any node.
    #[must_use]
    pub fn new(arms: Arc<[StopCounts]>, stops_heard: u64) -> Self {
        Self {
            arms,
            stops_heard,
            is_stop: false,
        }
    }

    /// Marks the stamp of a message that is itself a stop: it was carried out on arrival and is the last one counted.
    #[must_use]
    pub fn of_stop(self) -> Self {
        Self {
            is_stop: true,
            ..self
        }
    }

    /// Returns the stops of an arm.
    #[must_use]
    pub fn arm(&self, index: usize) -> StopCounts {
        self.arms.get(index).copied().unwrap_or_default()
    }

    /// Returns the number of stops, for any node, that this node had received.
    #[must_use]
    pub const fn stops_heard(&self) -> u64 {
        self.stops_heard
    }

    /// Returns whether the message is a stop that was carried out on arrival.
    #[must_use]
    pub const fn is_stop(&self) -> bool {
        self.is_stop
    }
}
