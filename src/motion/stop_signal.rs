//! Carries stop requests to the arm's thread: atomics and a wake-up, never a lock or a queue.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use super::mailbox::WakeSignal;
use base::units::ClockInstant;
use permit::ActorRank;

/// A line that anybody may pull, at any time, as often as they like.
#[derive(Debug)]
pub(super) struct StopSignal {
    asked: AtomicU64,
    /// Number of deliberate requests: not by the node, and not by a caller that only disconnected.
    said: AtomicU64,
    /// Time of the first request not yet taken; [`NOT_ASKED`] for none.
    at_nanos: AtomicU64,
    by: AtomicU8,
    emergency: AtomicBool,
    bell: WakeSignal,
}

const NOT_ASKED: u64 = u64::MAX;

impl Default for StopSignal {
    fn default() -> Self {
        Self {
            asked: AtomicU64::new(0),
            said: AtomicU64::new(0),
            at_nanos: AtomicU64::new(NOT_ASKED),
            by: AtomicU8::new(0),
            emergency: AtomicBool::new(false),
            bell: WakeSignal::default(),
        }
    }
}

/// The stop requests since the thread last took them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StopRequest {
    pub(super) serial: u64,
    pub(super) at: ClockInstant,
    pub(super) by: ActorRank,
    pub(super) emergency: bool,
}

impl StopSignal {
    /// Asks for a stop; the ticket counts requests from 1.
    pub(super) fn request(&self, by: ActorRank, emergency: bool, now: ClockInstant) -> u64 {
        self.at_nanos.fetch_min(now.as_nanos(), Ordering::SeqCst);
        self.by.fetch_max(rank(by), Ordering::SeqCst);
        self.emergency.fetch_or(emergency, Ordering::SeqCst);
        let ticket = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        self.wake();
        ticket
    }

    /// As [`StopSignal::request`], and counts the request as deliberate.
    pub(super) fn request_deliberately(
        &self,
        by: ActorRank,
        emergency: bool,
        now: ClockInstant,
    ) -> u64 {
        // First: whoever counts a request also counts that it was said.
        self.said.fetch_add(1, Ordering::SeqCst);
        self.request(by, emergency, now)
    }

    /// Takes the requests beyond the first `seen`, merged into one: the time of the first, and the
    /// requester of highest rank. A request that is only half written may lend its rank to the one
    /// before it, never the other way round.
    pub(super) fn take_request(&self, seen: u64, now: ClockInstant) -> Option<StopRequest> {
        let serial = self.asked.load(Ordering::SeqCst);
        (serial > seen).then(|| StopRequest {
            serial,
            at: ClockInstant::from_nanos(self.at_nanos.swap(NOT_ASKED, Ordering::SeqCst)).min(now),
            by: who(self.by.swap(0, Ordering::SeqCst)),
            emergency: self.emergency.swap(false, Ordering::SeqCst),
        })
    }

    /// Returns the total number of stop requests.
    pub(super) fn count(&self) -> u64 {
        self.asked.load(Ordering::SeqCst)
    }

    /// Returns the number of deliberate stop requests.
    pub(super) fn deliberate_count(&self) -> u64 {
        self.said.load(Ordering::SeqCst)
    }

    /// Returns whether a stop was requested beyond the first `seen` requests.
    pub(super) fn is_requested(&self, seen: u64) -> bool {
        self.asked.load(Ordering::SeqCst) > seen
    }

    /// Wakes the thread, for a stop or for an order.
    pub(super) fn wake(&self) {
        self.bell.ring();
    }

    /// Returns at the next wake-up, at once if one came since the last.
    pub(super) async fn woken(&self) {
        self.bell.wait().await;
    }
}

const fn rank(who: ActorRank) -> u8 {
    match who {
        ActorRank::Node => 0,
        ActorRank::Planner => 1,
        ActorRank::Operator => 2,
    }
}

const fn who(rank: u8) -> ActorRank {
    match rank {
        0 => ActorRank::Node,
        1 => ActorRank::Planner,
        _ => ActorRank::Operator,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_among_planners_counts() {
        let line = StopSignal::default();
        line.request(ActorRank::Planner, false, ClockInstant::from_nanos(3));
        line.request(ActorRank::Operator, true, ClockInstant::from_nanos(5));
        let ticket = line.request(ActorRank::Planner, false, ClockInstant::from_nanos(7));
        let asked = line.take_request(0, ClockInstant::from_nanos(9));
        let at = ClockInstant::from_nanos(3);
        assert_eq!(
            asked,
            Some(StopRequest {
                serial: ticket,
                at,
                by: ActorRank::Operator,
                emergency: true
            })
        );
        assert_eq!(line.take_request(ticket, ClockInstant::from_nanos(9)), None);
    }
}
