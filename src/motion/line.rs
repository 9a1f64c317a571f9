//! Carries stop requests to the arm's thread: atomics and a wake-up, never a lock or a queue.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use super::mailbox::Bell;
use base::units::Instant;
use permit::Who;

/// A line that anybody may pull, at any time, as often as they like.
#[derive(Debug)]
pub(super) struct StopLine {
    asked: AtomicU64,
    /// Number of deliberate requests: not by the node, and not by a caller that only disconnected.
    said: AtomicU64,
    /// Time of the first request not yet taken; [`NOT_ASKED`] for none.
    at_nanos: AtomicU64,
    by: AtomicU8,
    emergency: AtomicBool,
    bell: Bell,
}

const NOT_ASKED: u64 = u64::MAX;

impl Default for StopLine {
    fn default() -> Self {
        Self {
            asked: AtomicU64::new(0),
            said: AtomicU64::new(0),
            at_nanos: AtomicU64::new(NOT_ASKED),
            by: AtomicU8::new(0),
            emergency: AtomicBool::new(false),
            bell: Bell::default(),
        }
    }
}

/// The stop requests since the thread last took them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) serial: u64,
    pub(super) at: Instant,
    pub(super) by: Who,
    pub(super) emergency: bool,
}

impl StopLine {
    /// Asks for a stop; the ticket counts requests from 1.
    pub(super) fn ask(&self, by: Who, emergency: bool, now: Instant) -> u64 {
        self.at_nanos.fetch_min(now.as_nanos(), Ordering::SeqCst);
        self.by.fetch_max(rank(by), Ordering::SeqCst);
        self.emergency.fetch_or(emergency, Ordering::SeqCst);
        let ticket = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        self.wake();
        ticket
    }

    /// As [`StopSignal::request`], and counts the request as deliberate.
    pub(super) fn say(&self, by: Who, emergency: bool, now: Instant) -> u64 {
        // First: whoever counts a request also counts that it was said.
        self.said.fetch_add(1, Ordering::SeqCst);
        self.ask(by, emergency, now)
    }

    /// Takes the requests beyond the first `seen`, merged into one: the time of the first, and the
    /// requester of highest rank. A request that is only half written may lend its rank to the one
    /// before it, never the other way round.
    pub(super) fn look(&self, seen: u64, now: Instant) -> Option<Asked> {
        let serial = self.asked.load(Ordering::SeqCst);
        (serial > seen).then(|| Asked {
            serial,
            at: Instant::from_nanos(self.at_nanos.swap(NOT_ASKED, Ordering::SeqCst)).min(now),
            by: who(self.by.swap(0, Ordering::SeqCst)),
            emergency: self.emergency.swap(false, Ordering::SeqCst),
        })
    }

    /// Returns the total number of stop requests.
    pub(super) fn count(&self) -> u64 {
        self.asked.load(Ordering::SeqCst)
    }

    /// Returns the number of deliberate stop requests.
    pub(super) fn said(&self) -> u64 {
        self.said.load(Ordering::SeqCst)
    }

    /// Returns whether a stop was requested beyond the first `seen` requests.
    pub(super) fn is_pulled(&self, seen: u64) -> bool {
        self.asked.load(Ordering::SeqCst) > seen
    }

    /// Wakes the thread, for a stop or for an order.
    pub(super) fn wake(&self) {
        self.bell.ring();
    }

    /// Returns at the next wake-up, at once if one came since the last.
    pub(super) async fn woken(&self) {
        self.bell.rung().await;
    }
}

const fn rank(who: Who) -> u8 {
    match who {
        Who::Node => 0,
        Who::Planner => 1,
        Who::Operator => 2,
    }
}

const fn who(rank: u8) -> Who {
    match rank {
        0 => Who::Node,
        1 => Who::Planner,
        _ => Who::Operator,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_among_planners_counts() {
        let line = StopLine::default();
        line.ask(Who::Planner, false, Instant::from_nanos(3));
        line.ask(Who::Operator, true, Instant::from_nanos(5));
        let ticket = line.ask(Who::Planner, false, Instant::from_nanos(7));
        let asked = line.look(0, Instant::from_nanos(9));
        let at = Instant::from_nanos(3);
        assert_eq!(
            asked,
            Some(Asked {
                serial: ticket,
                at,
                by: Who::Operator,
                emergency: true
            })
        );
        assert_eq!(line.look(ticket, Instant::from_nanos(9)), None);
    }
}
