//! The stops that a node had heard when a message arrived: a later one ends what the message asks for.

use std::sync::Arc;

/// The stops of one arm so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StopCounts {
    /// Stops of every kind.
    pub stops: u64,
    /// Emergency stops among them that were latched.
    pub emergencies: u64,
}

/// The stops that a node had heard when a message arrived, taken before anything else is done with the message. However long
/// the message then waits for its turn, a stop that is not among these is a later one, and the later one wins. `Node` alone makes
/// one that counts something: one that counts nothing is older than every stop.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ArrivalStamp {
    arms: Arc<[StopCounts]>,
    stops_heard: u64,
    is_stop: bool,
}

impl ArrivalStamp {
    /// Records the stops of each arm, in the node's order, and how many of any node were heard.
    #[must_use]
    pub fn new(arms: Arc<[StopCounts]>, stops_heard: u64) -> Self {
        Self {
            arms,
            stops_heard,
            is_stop: false,
        }
    }

    /// Marks the stamp of a message that is a stop itself: it was done on its arrival, and is the last that is counted.
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

    /// Returns the number of stops, of any node, that this one had heard.
    #[must_use]
    pub const fn stops_heard(&self) -> u64 {
        self.stops_heard
    }

    /// Returns whether the message is a stop that was done on its arrival.
    #[must_use]
    pub const fn is_stop(&self) -> bool {
        self.is_stop
    }
}
