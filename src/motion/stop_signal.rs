//! Carries stop requests to the arm's thread: atomics and a wake-up, never a lock or a queue.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use super::mailbox::WakeSignal;
use base::units::ClockInstant;
use permit::ActorRank;

/// Stop requests from any thread, at any time.
#[derive(Debug)]
pub(super) struct StopSignal {
    requests: AtomicU64,
    /// Number of deliberate requests: not by the node, and not by a caller that only disconnected.
    deliberate: AtomicU64,
    /// Time of the first request not yet taken; [`NO_REQUEST`] for none.
    at_nanos: AtomicU64,
    by: AtomicU8,
    emergency: AtomicBool,
    /// `true` if one of them is more than the cancellation of an unknown call.
    is_stop: AtomicBool,
    wake_signal: WakeSignal,
}

const NO_REQUEST: u64 = u64::MAX;

impl Default for StopSignal {
    fn default() -> Self {
        Self {
            requests: AtomicU64::new(0),
            deliberate: AtomicU64::new(0),
            at_nanos: AtomicU64::new(NO_REQUEST),
            by: AtomicU8::new(0),
            emergency: AtomicBool::new(false),
            is_stop: AtomicBool::new(false),
            wake_signal: WakeSignal::default(),
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
    /// `true` if nothing was asked for but that what moves ends.
    pub(super) only_cancels: bool,
}

impl StopSignal {
    /// Requests a stop; the ticket counts requests from 1.
    pub(super) fn request(&self, by: ActorRank, emergency: bool, now: ClockInstant) -> u64 {
        self.is_stop.store(true, Ordering::SeqCst);
        self.cancel(by, emergency, now)
    }

    /// Requests that what moves, or arrived before this, ends. An arm that stands needs no reset afterwards.
    pub(super) fn cancel(&self, by: ActorRank, emergency: bool, now: ClockInstant) -> u64 {
        self.at_nanos.fetch_min(now.as_nanos(), Ordering::SeqCst);
        self.by.fetch_max(rank(by), Ordering::SeqCst);
        self.emergency.fetch_or(emergency, Ordering::SeqCst);
        let ticket = self.requests.fetch_add(1, Ordering::SeqCst) + 1;
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
        // First, so that a counted request is always counted as deliberate too.
        self.deliberate.fetch_add(1, Ordering::SeqCst);
        self.request(by, emergency, now)
    }

    /// Takes the requests beyond the first `handled`, merged into one: the time of the first, and the
    /// requester of highest rank. A request that is only half written may lend its rank to the one
    /// before it, never the other way round.
    pub(super) fn take_request(&self, handled: u64, now: ClockInstant) -> Option<StopRequest> {
        let serial = self.requests.load(Ordering::SeqCst);
        if serial <= handled {
            return None;
        }
        let by = actor(self.by.swap(0, Ordering::SeqCst));
        let emergency = self.emergency.swap(false, Ordering::SeqCst);
        let is_stop = self.is_stop.swap(false, Ordering::SeqCst);
        Some(StopRequest {
            serial,
            at: ClockInstant::from_nanos(self.at_nanos.swap(NO_REQUEST, Ordering::SeqCst)).min(now),
            by,
            emergency,
            // A stop whose mark was lent to the request before it still has its rank.
            only_cancels: !is_stop && !emergency && by == ActorRank::Planner,
        })
    }

    /// Returns the total number of stop requests.
    pub(super) fn count(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }

    /// Returns the number of deliberate stop requests.
    pub(super) fn deliberate_count(&self) -> u64 {
        self.deliberate.load(Ordering::SeqCst)
    }

    /// Returns whether a stop was requested beyond the first `handled` requests.
    pub(super) fn is_requested(&self, handled: u64) -> bool {
        self.requests.load(Ordering::SeqCst) > handled
    }

    /// Wakes the thread, for a stop or for a command.
    pub(super) fn wake(&self) {
        self.wake_signal.notify();
    }

    /// Returns at the next wake-up, at once if one came since the last.
    pub(super) async fn woken(&self) {
        self.wake_signal.wait().await;
    }
}

const fn rank(actor: ActorRank) -> u8 {
    match actor {
        ActorRank::Node => 0,
        ActorRank::Planner => 1,
        ActorRank::Operator => 2,
    }
}

const fn actor(rank: u8) -> ActorRank {
    match rank {
        0 => ActorRank::Node,
        1 => ActorRank::Planner,
        _ => ActorRank::Operator,
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    #[test]
    fn an_operator_among_planners_counts() {
        let signal = StopSignal::default();
        signal.request(ActorRank::Planner, false, ClockInstant::from_nanos(3));
        signal.request(ActorRank::Operator, true, ClockInstant::from_nanos(5));
        let ticket = signal.request(ActorRank::Planner, false, ClockInstant::from_nanos(7));
        let request = signal.take_request(0, ClockInstant::from_nanos(9));
        let at = ClockInstant::from_nanos(3);
        assert_eq!(
            request,
            Some(StopRequest {
                serial: ticket,
                at,
                by: ActorRank::Operator,
                emergency: true,
                only_cancels: false
            })
        );
        let later = signal.take_request(ticket, ClockInstant::from_nanos(9));
        assert_eq!(later, None);
    }

    #[test]
    fn a_stop_among_cancellations_counts() {
        let (signal, now) = (StopSignal::default(), ClockInstant::ZERO);
        let mut handled = 0;
        let mut only_cancels = |signal: &StopSignal| {
            let request = signal.take_request(handled, now).unwrap();
            handled = request.serial;
            request.only_cancels
        };
        signal.cancel(ActorRank::Planner, false, now);
        assert!(only_cancels(&signal));
        signal.cancel(ActorRank::Planner, false, now);
        signal.request(ActorRank::Node, false, now);
        assert!(!only_cancels(&signal));
        signal.cancel(ActorRank::Planner, false, now);
        assert!(only_cancels(&signal));
    }
}
