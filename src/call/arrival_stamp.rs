//! The stops that a node had received when a message arrived: a later stop ends what the message asks for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The stops of one arm so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StopCounts {
    /// Stops of every kind.
    pub stops: u64,
    /// Emergency stops among them that were latched.
    pub emergencies: u64,
    /// Orders that an operator has given.
    pub orders: u64,
}

/// The stops that a node had received when a message arrived, counted before anything else is done with the message. However
/// long the message then waits for its turn, a stop that is not among these came later, and the later one wins. Only `Node`
/// makes a stamp that counts stops; the default counts none and so is older than every stop.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ArrivalStamp {
    arms: Arc<[StopCounts]>,
    stops_heard: u64,
    is_stop: bool,
    sender: SenderPresence,
}

/// Presence of the sender of one message until its answer, shared by all copies of the message's stamp.
#[derive(Debug, Clone, Default)]
struct SenderPresence {
    has_gone: Arc<AtomicBool>,
}

impl PartialEq for SenderPresence {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.has_gone, &other.has_gone)
    }
}

impl Eq for SenderPresence {}

impl ArrivalStamp {
    /// Records the stops of each arm, in the node's order, and the number of stops received for any node.
    #[must_use]
    pub fn new(arms: Arc<[StopCounts]>, stops_heard: u64) -> Self {
        Self {
            arms,
            stops_heard,
            is_stop: false,
            sender: SenderPresence::default(),
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

    /// Marks the message as given up: its sender has gone, so no motion that it asks for may begin any more.
    pub fn give_up(&self) {
        self.sender.has_gone.store(true, Ordering::SeqCst);
    }

    /// Returns whether the message was given up.
    #[must_use]
    pub fn is_given_up(&self) -> bool {
        self.sender.has_gone.load(Ordering::SeqCst)
    }

    /// Returns whether both are stamps of one message.
    #[must_use]
    pub fn is_of_same_message(&self, other: &Self) -> bool {
        self.sender == other.sender
    }
}
