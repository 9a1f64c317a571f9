//! Segments in flight: kept until acknowledged, and sent again after a timeout.

use super::RETRIES_MAX;
use crate::QUEUE_DEPTH;
use crate::message::{Segment, SegmentAck};
use crate::ring::Ring;

/// Shortest time after which a segment is sent again, in microseconds.
const TIMEOUT_MIN_US: u64 = 25_000;

/// Initial estimate of a round trip, in microseconds.
const ROUND_TRIP_START_US: u64 = 10_000;

/// Go-back-n over at most as many segments as a device can queue.
#[derive(Debug, Clone)]
pub(super) struct Window {
    /// Each segment with the time at which it was first sent.
    segments: Ring<Option<(Segment, u64)>, QUEUE_DEPTH>,
    oldest: u16,
    free: usize,
    attempts: u32,
    due_us: u64,
    round_trip_us: u64,
}

impl Window {
    pub(super) const fn new() -> Self {
        Self {
            segments: Ring::new(None),
            oldest: 0,
            free: QUEUE_DEPTH,
            attempts: 0,
            due_us: 0,
            round_trip_us: ROUND_TRIP_START_US,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.segments.len()
    }

    /// Returns the index of the next segment; every epoch begins at 0.
    pub(super) fn next_index(&self) -> u16 {
        self.oldest
            .wrapping_add(u16::try_from(self.len()).unwrap_or(0))
    }

    /// Drops all segments; the next index is 0, as at the beginning of an epoch.
    pub(super) fn clear(&mut self) {
        self.restart(0);
    }

    /// Drops all segments; the next index is the one that the device expects.
    pub(super) fn restart(&mut self, next_index: u16) {
        self.segments.clear();
        self.oldest = next_index;
        self.attempts = 0;
    }

    pub(super) fn set_free(&mut self, free: u8) {
        self.free = usize::from(free);
    }

    /// Keeps a segment; returns `false` if the device may have no room for it.
    pub(super) fn push(&mut self, segment: &Segment, now_us: u64) -> bool {
        if self.len() >= self.free.min(QUEUE_DEPTH) {
            return false;
        }
        if self.len() == 0 {
            self.due_us = now_us + self.timeout_us();
        }
        self.segments.push_over(Some((*segment, now_us)));
        true
    }

    pub(super) fn get(&self, position: usize) -> Option<Segment> {
        let (segment, _) = self.segments.get(position)??;
        Some(segment)
    }

    /// Drops acknowledged segments and updates the round trip, unless a segment was sent twice.
    pub(super) fn acknowledge(&mut self, ack: &SegmentAck, now_us: u64) {
        let count = usize::from(ack.next_index.wrapping_sub(self.oldest));
        self.free = usize::from(ack.free);
        if count == 0 || count > self.len() {
            return;
        }
        if let Some(Some((_, sent_us))) = self.segments.get(count - 1)
            && self.attempts == 0
        {
            let round_us = now_us.saturating_sub(sent_us);
            self.round_trip_us = (self.round_trip_us * 7 + round_us) / 8;
        }
        self.segments.drop_oldest(count);
        self.oldest = ack.next_index;
        self.attempts = 0;
        self.due_us = now_us + self.timeout_us();
    }

    /// Returns the time after which an unacknowledged segment counts as lost, in microseconds.
    pub(super) fn timeout_us(&self) -> u64 {
        (4 * self.round_trip_us).max(TIMEOUT_MIN_US)
    }

    pub(super) const fn is_due(&self, now_us: u64) -> bool {
        self.len() > 0 && now_us >= self.due_us
    }

    /// Makes the segments due at once, because the device misses one; only for the first such answer.
    pub(super) fn send_again_now(&mut self, now_us: u64) {
        if self.attempts == 0 {
            self.due_us = now_us;
        }
    }

    /// Counts an attempt; returns `false` once there were too many.
    pub(super) fn begin_attempt(&mut self, now_us: u64) -> bool {
        self.attempts += 1;
        self.due_us = now_us + self.timeout_us();
        self.attempts <= RETRIES_MAX
    }
}
