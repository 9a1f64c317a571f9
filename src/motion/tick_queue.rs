//! Copies of an arm's ticks for a recording: a bounded queue that the arm's thread fills without ever waiting.
//!
//! There are two slots, so that one is free while the reader empties the other. What finds no room is dropped and
//! counted. Only simulated time waits until there is room again.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use super::MotionState;
use base::lock::MutexExt;
use base::units::{ArmMeasurement, ClockInstant, JointVector};
use driver::BusCounts;
use gate::ExecutionProgress;

/// Ticks that each slot holds: ten seconds of an arm that moves.
const SLOT_TICKS: usize = 1_000;

/// Ticks from which on simulated time waits for the reader.
const FULL_TICKS: usize = 800;

/// The bus counters are copied once in so many ticks.
const COUNTS_EVERY: u64 = 100;

/// The goals sent and the joints read in one tick of a motion.
#[derive(Clone, Debug)]
pub struct MotionTick {
    /// Its place among the ticks, counted from the start of the arm's thread; dropped ones are counted as well.
    pub serial: u64,
    /// Time of the tick.
    pub at: ClockInstant,
    /// The state of the arm's thread.
    pub state: MotionState,
    /// The setpoint that was sent last.
    pub setpoint_rad: JointVector,
    /// The last valid reading.
    pub measured: Option<Arc<ArmMeasurement>>,
    /// Progress of the motion.
    pub progress: ExecutionProgress,
    /// Bus counters, once a second.
    pub counts: Option<Box<BusCounts>>,
}

/// The queue of one arm; clones are the same queue. It is shut until somebody opens it.
#[derive(Clone, Debug, Default)]
pub struct TickQueue(Arc<TickSlots>);

#[derive(Debug, Default)]
struct TickSlots {
    is_open: AtomicBool,
    slots: [Mutex<Vec<MotionTick>>; 2],
    waiting: AtomicUsize,
    serial: AtomicU64,
    dropped: AtomicU64,
    room: Notify,
}

impl TickQueue {
    /// From now on ticks are kept for [`TickQueue::take`]; what was left from before is gone.
    pub fn open(&self) {
        for slot in &self.0.slots {
            let mut slot = slot.locked();
            slot.clear();
            slot.reserve(SLOT_TICKS);
        }
        self.0.waiting.store(0, Ordering::SeqCst);
        self.0.dropped.store(0, Ordering::SeqCst);
        self.0.is_open.store(true, Ordering::SeqCst);
    }

    /// No more ticks are kept, and nothing waits for room.
    pub fn shut(&self) {
        self.0.is_open.store(false, Ordering::SeqCst);
        self.0.room.notify_one();
    }

    /// Moves out what is there, in order.
    #[must_use]
    pub fn take(&self) -> Vec<MotionTick> {
        let mut taken = Vec::new();
        for slot in &self.0.slots {
            taken.append(&mut slot.locked());
        }
        self.0.waiting.fetch_sub(taken.len(), Ordering::SeqCst);
        self.0.room.notify_one();
        taken.sort_by_key(|tick| tick.serial);
        taken
    }

    /// Returns the number of ticks that found no room since the queue was opened.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.0.dropped.load(Ordering::SeqCst)
    }

    /// Keeps a tick, if the queue is open and has room; never waits. `tick` makes it from its serial number, and is told
    /// whether the counters are due.
    pub(super) fn put(&self, tick: impl FnOnce(u64, bool) -> MotionTick) {
        if !self.0.is_open.load(Ordering::SeqCst) {
            return;
        }
        let serial = self.0.serial.fetch_add(1, Ordering::SeqCst);
        let mut free = self.0.slots.iter().filter_map(MutexExt::try_locked);
        match free.find(|slot| slot.len() < SLOT_TICKS) {
            Some(mut slot) => {
                self.0.waiting.fetch_add(1, Ordering::SeqCst);
                slot.push(tick(serial, serial.is_multiple_of(COUNTS_EVERY)));
            }
            None => {
                self.0.dropped.fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    /// Returns whether simulated time should wait for the reader.
    pub(super) fn is_full(&self) -> bool {
        self.0.is_open.load(Ordering::SeqCst) && self.0.waiting.load(Ordering::SeqCst) >= FULL_TICKS
    }

    /// Returns when something was taken out, at once if that was since the last time.
    pub(super) async fn emptied(&self) {
        self.0.room.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::SpanKind;

    fn tick(serial: u64, _counts: bool) -> MotionTick {
        MotionTick {
            serial,
            at: ClockInstant::ZERO,
            state: MotionState::Moving,
            setpoint_rad: JointVector::zeros(2),
            measured: None,
            progress: ExecutionProgress {
                sample: 0,
                of: 1,
                doing: SpanKind::Draw,
                item: None,
            },
            counts: None,
        }
    }

    #[test]
    fn what_is_put_comes_out_in_order_and_what_finds_no_room_is_counted() {
        let queue = TickQueue::default();
        queue.put(tick);
        assert!(queue.take().is_empty(), "shut");
        queue.open();
        let reader = queue.0.slots[0].locked();
        (0..5).for_each(|_| queue.put(tick));
        drop(reader);
        (0..2 * SLOT_TICKS).for_each(|_| queue.put(tick));
        assert!(queue.is_full());
        assert_eq!(queue.dropped(), 5);
        let taken = queue.take();
        assert_eq!(taken.len(), 2 * SLOT_TICKS);
        assert!(taken.is_sorted_by(|one, next| one.serial < next.serial));
        assert!(!queue.is_full());
        queue.put(tick);
        assert_eq!(queue.take().len(), 1);
    }

    #[test]
    fn a_reader_that_stands_still_holds_up_nobody_who_puts() {
        let queue = TickQueue::default();
        queue.open();
        let readers = [queue.0.slots[0].locked(), queue.0.slots[1].locked()];
        (0..10).for_each(|_| queue.put(tick));
        drop(readers);
        assert_eq!((queue.dropped(), queue.take().len()), (10, 0));
    }
}
