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
    /// It wakes at this moment if others bring the clock there.
    SleepsUntil(ClockInstant),
    Gone,
}

/// The place of a thread among those that share a clock. When it is dropped, time passes without it.
#[derive(Debug)]
pub(crate) struct ClockSeat {
    time: Arc<SharedTime>,
    index: usize,
    released: Arc<Notify>,
}

impl SeatActivity {
    fn moment(self) -> Option<ClockInstant> {
        match self {
            Self::WaitsUntil(moment) | Self::SleepsUntil(moment) => Some(moment),
            Self::Works | Self::Gone => None,
        }
    }
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
        let mut activities = seats.iter().map(|(activity, _)| *activity);
        let passes = activities
            .clone()
            .any(|activity| matches!(activity, SeatActivity::WaitsUntil(_)))
            && !activities.any(|activity| activity == SeatActivity::Works);
        let moments = seats.iter().filter_map(|(activity, _)| activity.moment());
        if let Some(next) = moments.min().filter(|_| passes) {
            self.nanos.fetch_max(next.as_nanos(), Ordering::SeqCst);
        }
        let now = self.now();
        for (activity, released) in seats {
            if activity.moment().is_some_and(|moment| moment <= now) {
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

    /// Returns whether others share the clock.
    fn is_shared(&self) -> bool {
        self.time.seats.locked().len() > 1
    }

    /// Brings the clock to a moment, once no other thread works. May be dropped while it waits.
    pub(crate) async fn wait_until(self: &Arc<Self>, moment: ClockInstant) {
        if self.is_shared() {
            // The others may run on this thread, and time may pass without them: they would never hear what wakes them.
            tokio::task::yield_now().await;
        }
        self.rest(SeatActivity::WaitsUntil(moment)).await;
    }

    /// Waits until the others have brought the clock to a moment. May be dropped while it waits.
    pub(crate) async fn sleep_until(self: &Arc<Self>, moment: ClockInstant) {
        self.rest(SeatActivity::SleepsUntil(moment)).await;
    }

    async fn rest(self: &Arc<Self>, activity: SeatActivity) {
        let _rest = SeatRest::new(self, activity);
        while !self.works() {
            self.released.notified().await;
        }
    }
}

impl Drop for ClockSeat {
    fn drop(&mut self) {
        self.set(SeatActivity::Gone);
    }
}

/// A time in which a thread does not work.
struct SeatRest(Arc<ClockSeat>);

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
