//! Copies of an arm's ticks for a recording: a bounded queue that the arm's thread fills without
//! ever waiting.
//!
//! There are two slots, so that one is free while the reader empties the other. A tick without room is
//! dropped and counted. Only simulated time waits until there is room again.

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

/// Interval in ticks at which the bus counters are copied.
const COUNTS_EVERY: u64 = 100;

/// The goals sent and the joints read in one tick of a motion.
#[derive(Clone, Debug)]
pub struct MotionTick {
    /// Its number since the start of the arm's thread; dropped ticks are counted too.
    pub serial: u64,
    /// Time of the tick.
    pub at: ClockInstant,
    /// The state of the arm's thread.
    pub state: MotionState,
    /// The setpoint that was sent last.
    pub setpoint_rad: JointVector,
    /// By how much the goals that were sent lead it against gravity.
    pub lead_rad: JointVector,
    /// The last valid reading.
    pub measured: Option<Arc<ArmMeasurement>>,
    /// Progress of the motion.
    pub progress: ExecutionProgress,
    /// How much deeper than planned the goal is, because a person trimmed it.
    pub depth_trim_mm: f64,
    /// Bus counters, once a second.
    pub counts: Option<Box<BusCounts>>,
}

/// The queue of one arm; clones share it. It is closed until [`TickQueue::open`].
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
    /// Starts keeping ticks for [`TickQueue::take`]; earlier ones are dropped.
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

    /// Stops keeping ticks and ends any wait for room.
    pub fn shut(&self) {
        self.0.is_open.store(false, Ordering::SeqCst);
        self.0.room.notify_one();
    }

    /// Takes all ticks, in order.
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

    /// Keeps a tick, if the queue is open and has room; never waits. `tick` makes it from its serial
    /// number and whether the counters are due.
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

    /// Returns when ticks are taken, at once if that happened since the last call.
    pub(super) async fn wait_for_room(&self) {
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
            lead_rad: JointVector::zeros(2),
            measured: None,
            progress: ExecutionProgress {
                sample: 0,
                of: 1,
                doing: SpanKind::Draw,
                item: None,
            },
            depth_trim_mm: 0.0,
            counts: None,
        }
    }

    #[test]
    fn ticks_come_out_in_order_and_those_without_room_are_counted() {
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
        assert!(taken.is_sorted_by(|a, b| a.serial < b.serial));
        assert!(!queue.is_full());
        queue.put(tick);
        assert_eq!(queue.take().len(), 1);
    }

    #[test]
    fn a_suspended_reader_does_not_block_the_arms_thread() {
        let queue = TickQueue::default();
        queue.open();
        let readers = [queue.0.slots[0].locked(), queue.0.slots[1].locked()];
        (0..10).for_each(|_| queue.put(tick));
        drop(readers);
        assert_eq!((queue.dropped(), queue.take().len()), (10, 0));
    }
}
