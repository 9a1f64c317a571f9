//! The host's estimate of the device's clock: a straight line through the quickest of many answers.
//!
//! The longer an answer takes, the less certain is the moment at which the device's clock was read, so only
//! the third with the shortest round trips counts.

use crate::message::TimeResp;

/// Number of answers kept.
const SAMPLES_MAX: usize = 32;

/// Number of answers needed before the estimate is used.
const SAMPLES_MIN: usize = 3;

/// Largest plausible drift between two crystals: 500 parts per million.
const DRIFT_MAX: f64 = 500e-6;

/// One time request and its answer.
#[derive(Debug, Clone, Copy, Default)]
struct Sample {
    host_us: u64,
    device_us: u64,
    round_us: u64,
}

/// Estimate of device time by host time.
#[derive(Debug, Clone)]
pub struct DeviceClock {
    samples: [Sample; SAMPLES_MAX],
    next: usize,
    len: usize,
    origin: Sample,
    rate: f64,
    offset_us: f64,
}

impl DeviceClock {
    /// Creates an estimate without answers.
    pub(super) fn new() -> Self {
        Self {
            samples: [Sample::default(); SAMPLES_MAX],
            next: 0,
            len: 0,
            origin: Sample::default(),
            rate: 1.0,
            offset_us: 0.0,
        }
    }

    /// Returns whether enough answers have arrived.
    pub const fn is_known(&self) -> bool {
        self.len >= SAMPLES_MIN
    }

    /// Returns the rate of the device's clock: device microseconds for each host microsecond.
    pub const fn rate(&self) -> f64 {
        self.rate
    }

    /// Returns the shortest round trip among the answers kept, in microseconds; `None` before the first.
    pub fn round_trip_us(&self) -> Option<u64> {
        self.samples().iter().map(|sample| sample.round_us).min()
    }

    /// Returns the device's clock, extended to 64 bits, at a host instant; `None` until it is known.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "differences of hours in µs fit both"
    )]
    pub fn device_us(&self, host_us: u64) -> Option<u64> {
        let since_us = host_us.wrapping_sub(self.origin.host_us).cast_signed() as f64;
        let device_elapsed_us = since_us * self.rate + self.offset_us;
        let rounded = if device_elapsed_us < 0.0 {
            device_elapsed_us - 0.5
        } else {
            device_elapsed_us + 0.5
        } as i64;
        self.is_known()
            .then(|| self.origin.device_us.wrapping_add_signed(rounded))
    }

    /// Takes an answer that arrived at `now_us`. One whose token is not from the last minute, or
    /// whose clock runs backwards, is dropped.
    pub(super) fn learn(&mut self, answer: &TimeResp, now_us: u64) {
        let round_us = u64::from(super::low_word(now_us).wrapping_sub(answer.token));
        if round_us > 60_000_000 || round_us > now_us {
            return;
        }
        let device_us = self.extend(answer.received_us);
        let sample = Sample {
            host_us: now_us - round_us / 2,
            device_us,
            round_us,
        };
        if let Some(slot) = self.samples.get_mut(self.next) {
            *slot = sample;
        }
        self.next = (self.next + 1) % SAMPLES_MAX;
        self.len = (self.len + 1).min(SAMPLES_MAX);
        self.fit();
    }

    /// Extends a 32-bit clock to the 64-bit value nearest to the newest answer.
    fn extend(&self, low: u32) -> u64 {
        let newest = self
            .samples
            .get((self.next + SAMPLES_MAX - 1) % SAMPLES_MAX);
        let Some(newest) = newest.filter(|_| self.len > 0) else {
            return u64::from(low) + (1 << 32);
        };
        let since = low
            .wrapping_sub(super::low_word(newest.device_us))
            .cast_signed();
        newest.device_us.wrapping_add_signed(i64::from(since))
    }

    fn samples(&self) -> &[Sample] {
        self.samples.get(..self.len).unwrap_or_default()
    }

    /// Returns the round trip that a third of the answers did not exceed.
    fn quick_round_us(&self) -> u64 {
        let mut rounds = [u64::MAX; SAMPLES_MAX];
        for (slot, sample) in rounds.iter_mut().zip(self.samples()) {
            *slot = sample.round_us;
        }
        rounds.sort_unstable();
        let third = (self.len / 3).max(SAMPLES_MIN.min(self.len));
        rounds
            .get(third.saturating_sub(1))
            .copied()
            .unwrap_or(u64::MAX)
    }

    /// Fits the line to the quick answers by least squares.
    fn fit(&mut self) {
        let quick_us = self.quick_round_us();
        let Some(&origin) = self
            .samples()
            .iter()
            .find(|sample| sample.round_us <= quick_us)
        else {
            return;
        };
        let (mut n, mut x, mut y, mut xx, mut xy) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for sample in self
            .samples()
            .iter()
            .filter(|sample| sample.round_us <= quick_us)
        {
            let host = sample.host_us.wrapping_sub(origin.host_us).cast_signed() as f64;
            let ahead = sample
                .device_us
                .wrapping_sub(origin.device_us)
                .cast_signed() as f64
                - host;
            n += 1.0;
            x += host;
            y += ahead;
            xx += host * host;
            xy += host * ahead;
        }
        let spread = n * xx - x * x;
        let drift = if spread > 0.0 {
            (n * xy - x * y) / spread
        } else {
            0.0
        };
        let drift = drift.clamp(-DRIFT_MAX, DRIFT_MAX);
        self.origin = origin;
        self.rate = 1.0 + drift;
        self.offset_us = (y - drift * x) / n;
    }
}
