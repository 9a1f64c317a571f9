//! Calls that another node passed on before a stop, and that arrive behind it.

use std::collections::VecDeque;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Mutex;

use base::lock::MutexExt;
use call::StopOrder;

/// Most runs of other nodes whose stops are remembered. The oldest is forgotten first.
const RUNS_MAX: usize = 64;

/// The latest stop that each run of another node has passed on.
#[derive(Debug, Default)]
pub(super) struct PassedOnStops {
    latest: Mutex<VecDeque<StopOrder>>,
}

impl PassedOnStops {
    /// Remembers a stop.
    pub(super) fn remember(&self, stop: StopOrder) {
        let mut latest = self.latest.locked();
        match latest.iter_mut().find(|known| known.run == stop.run) {
            Some(known) => known.stops = known.stops.max(stop.stops),
            None => {
                latest.truncate(RUNS_MAX - 1);
                latest.push_front(stop);
            }
        }
    }

    /// Returns whether a stop was sent after this call, and has arrived.
    pub(super) fn overtake(&self, call: StopOrder) -> bool {
        let latest = self.latest.locked();
        let mut latest = latest.iter();
        latest.any(|stop| stop.run == call.run && stop.stops > call.stops)
    }
}

/// Returns a random number for a run of this node.
pub(super) fn random_run() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_was_sent_before_a_stop_of_the_same_run_is_overtaken() {
        let stops = PassedOnStops::default();
        let order = |run, stops| StopOrder { run, stops };
        assert!(!stops.overtake(order(7, 0)));
        stops.remember(order(7, 3));
        stops.remember(order(7, 2));
        assert!(stops.overtake(order(7, 2)));
        assert!(!stops.overtake(order(7, 3)));
        assert!(!stops.overtake(order(8, 0)));
        for run in 100..100 + RUNS_MAX as u64 {
            stops.remember(order(run, 1));
        }
        assert!(!stops.overtake(order(7, 2)), "the oldest is forgotten");
        assert!(stops.overtake(order(100, 0)));
    }
}
