//! Timing of bytes on the simulated wire: ten bits for each byte, one sender at a time.

use std::collections::VecDeque;
use std::time::Duration;

use base::units::ClockInstant;

/// Number of bytes that may wait to be read; beyond that the oldest are lost, as in an adapter.
const WAITING_MAX: usize = 64 * 1024;

/// Shortest silence between bursts: servos that answer one request leave less between their replies.
const PAUSE: Duration = Duration::from_millis(1);

/// The wire as the device sees it.
#[derive(Debug)]
pub(crate) struct UartTiming {
    byte_time: Duration,
    paced: bool,
    free_from: ClockInstant,
    out: VecDeque<(ClockInstant, Vec<u8>)>,
    waiting: usize,
}

impl UartTiming {
    pub(crate) fn new(baud: u32) -> Self {
        Self {
            byte_time: Duration::from_nanos(10_000_000_000 / u64::from(baud.max(1))),
            paced: true,
            free_from: ClockInstant::ZERO,
            out: VecDeque::new(),
            waiting: 0,
        }
    }

    /// Sets whether bytes and return delays take time.
    pub(crate) fn set_paced(&mut self, paced: bool) {
        self.paced = paced;
    }

    /// Returns the arrival time, at the device, of the next byte of a burst sent at `at`.
    pub(crate) fn arrival(&mut self, at: ClockInstant) -> ClockInstant {
        self.free_from = self.free_from.max(at);
        if self.paced {
            self.free_from = self.free_from.after(self.byte_time);
        }
        self.free_from
    }

    /// Puts a reply on the wire, `delay` after it was last in use, and returns the time at which it has been received.
    pub(crate) fn reply(
        &mut self,
        at: ClockInstant,
        delay: Duration,
        bytes: Vec<u8>,
    ) -> ClockInstant {
        let count = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let begin = self.free_from.max(at);
        let end = if self.paced {
            begin.after(delay + self.byte_time * count)
        } else {
            begin
        };
        self.free_from = end;
        self.queue(end, bytes);
        end
    }

    /// Queues bytes to be received at `at`, regardless of other bytes on the wire.
    pub(crate) fn queue(&mut self, at: ClockInstant, bytes: Vec<u8>) {
        self.waiting += bytes.len();
        let place = self.out.partition_point(|(due, _)| *due <= at);
        self.out.insert(place, (at, bytes));
        while self.waiting > WAITING_MAX {
            let lost = self.out.pop_front().map_or(0, |(_, bytes)| bytes.len());
            self.waiting -= lost;
        }
    }

    pub(crate) fn next_due(&self) -> Option<ClockInstant> {
        self.out.front().map(|(due, _)| *due)
    }

    /// Returns the time at which the last byte of the first burst is received.
    pub(crate) fn burst_end(&self) -> Option<ClockInstant> {
        let mut dues = self.out.iter().map(|(due, _)| *due);
        let mut last = dues.next()?;
        for due in dues {
            if due.since(last) >= PAUSE {
                break;
            }
            last = due;
        }
        Some(last)
    }

    pub(crate) fn take(&mut self, now: ClockInstant, into: &mut Vec<u8>) {
        while self.next_due().is_some_and(|due| due <= now) {
            if let Some((_, bytes)) = self.out.pop_front() {
                self.waiting -= bytes.len();
                into.extend(bytes);
            }
        }
    }

    pub(crate) fn clear(&mut self) {
        self.out.clear();
        self.waiting = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_replies_are_received_as_one_burst() {
        let mut uart = UartTiming::new(1_000_000);
        for servo in [1, 2, 3] {
            uart.reply(ClockInstant::ZERO, Duration::ZERO, vec![servo; 8]);
        }
        let late = ClockInstant::from_nanos(5_000_000);
        uart.queue(late, vec![4; 8]);
        assert_eq!(uart.next_due(), Some(ClockInstant::from_nanos(80_000)));
        assert_eq!(uart.burst_end(), Some(ClockInstant::from_nanos(240_000)));
        let mut received = Vec::new();
        uart.take(ClockInstant::from_nanos(240_000), &mut received);
        assert_eq!(received.len(), 24);
        assert_eq!(uart.burst_end(), Some(late));
        uart.take(late, &mut received);
        assert_eq!(uart.burst_end(), None);
    }
}
