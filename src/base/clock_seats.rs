//! Threads that share a simulated clock: its time jumps only while none of them works, and then to
//! the first moment that one of them waits for.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use crate::lock::MutexExt;
use crate::units::ClockInstant;

/// The time of a simulated clock, and the threads that share it.
#[derive(Debug, Default)]
pub(crate) struct SharedTime {
    nanos: AtomicU64,
    seats: Mutex<Vec<(SeatActivity, Arc<Notify>)>>,
}

/// The present activity of a thread.
#[derive(Clone, Copy, Debug, PartialEq)]
enum SeatActivity {
    /// It computes, or waits for something that no clock tells.
    Works,
    WaitsUntil(ClockInstant),
    /// Time passes without it.
    Sleeps,
}

/// The place of a thread among those that share a clock. When it is dropped, time passes without it.
#[derive(Debug)]
pub(crate) struct ClockSeat {
    time: Arc<SharedTime>,
    index: usize,
    released: Arc<Notify>,
}

impl SharedTime {
    pub(crate) fn now(&self) -> ClockInstant {
        ClockInstant::from_nanos(self.nanos.load(Ordering::SeqCst))
    }

    /// Advances to a moment, never back, whatever the threads do.
    pub(crate) fn jump_to(&self, moment: ClockInstant) {
        self.nanos.fetch_max(moment.as_nanos(), Ordering::SeqCst);
        self.release(&mut self.seats.locked());
    }

    /// Releases the threads whose moment has come; while none works, that of the next one comes.
    fn release(&self, seats: &mut [(SeatActivity, Arc<Notify>)]) {
        let moments = seats.iter().filter_map(|(activity, _)| match activity {
            SeatActivity::WaitsUntil(moment) => Some(*moment),
            SeatActivity::Works | SeatActivity::Sleeps => None,
        });
        let mut activities = seats.iter().map(|(activity, _)| *activity);
        let works = activities.any(|activity| activity == SeatActivity::Works);
        if let Some(next) = moments.min().filter(|_| !works) {
            self.nanos.fetch_max(next.as_nanos(), Ordering::SeqCst);
        }
        let now = self.now();
        for (activity, released) in seats {
            if matches!(activity, SeatActivity::WaitsUntil(moment) if *moment <= now) {
                *activity = SeatActivity::Works;
                released.notify_one();
            }
        }
    }
}

impl ClockSeat {
    pub(crate) fn new(time: &Arc<SharedTime>) -> Self {
        let released = Arc::new(Notify::new());
        let mut seats = time.seats.locked();
        seats.push((SeatActivity::Works, Arc::clone(&released)));
        Self {
            time: Arc::clone(time),
            index: seats.len() - 1,
            released,
        }
    }

    fn set(&self, activity: SeatActivity) {
        let mut seats = self.time.seats.locked();
        if let Some((own, _)) = seats.get_mut(self.index) {
            *own = activity;
        }
        self.time.release(&mut seats);
    }

    fn works(&self) -> bool {
        let seats = self.time.seats.locked();
        let own = seats.get(self.index);
        own.is_none_or(|(activity, _)| *activity == SeatActivity::Works)
    }

    /// Waits until the clock shows a moment. May be dropped while it waits.
    pub(crate) async fn wait_until(self: &Arc<Self>, moment: ClockInstant) {
        let _rest = SeatRest::new(self, SeatActivity::WaitsUntil(moment));
        while !self.works() {
            self.released.notified().await;
        }
    }

    /// Lets time pass without the thread until the result is dropped.
    pub(crate) fn sleep(self: &Arc<Self>) -> SeatRest {
        SeatRest::new(self, SeatActivity::Sleeps)
    }
}

impl Drop for ClockSeat {
    fn drop(&mut self) {
        self.set(SeatActivity::Sleeps);
    }
}

/// A time in which a thread does not work.
#[derive(Debug)]
pub(crate) struct SeatRest(Arc<ClockSeat>);

impl SeatRest {
    fn new(seat: &Arc<ClockSeat>, activity: SeatActivity) -> Self {
        seat.set(activity);
        Self(Arc::clone(seat))
    }
}

impl Drop for SeatRest {
    fn drop(&mut self) {
        self.0.set(SeatActivity::Works);
    }
}
