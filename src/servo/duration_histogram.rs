//! Durations in a histogram of fixed size, from 50 µs up.

use std::time::Duration;

/// Each bucket ends an eighth of a doubling, about 9 %, above the one before.
const BUCKETS: usize = 96;
const DOUBLING_STEPS: f64 = 8.0;
const FIRST_S: f64 = 50e-6;

/// Noted durations; quantiles are right within 9 %, the longest is exact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DurationHistogram {
    counts: [u32; BUCKETS],
    longest: Duration,
}

impl Default for DurationHistogram {
    fn default() -> Self {
        Self {
            counts: [0; BUCKETS],
            longest: Duration::ZERO,
        }
    }
}

impl DurationHistogram {
    pub fn note(&mut self, time: Duration) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "`as` saturates, and the last bucket takes everything above"
        )]
        let bucket = ((time.as_secs_f64() / FIRST_S).log2() * DOUBLING_STEPS).ceil() as usize;
        if let Some(count) = self.counts.get_mut(bucket.min(BUCKETS - 1)) {
            *count = count.saturating_add(1);
        }
        self.longest = self.longest.max(time);
    }

    /// Returns the number of durations noted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().map(|count| u64::from(*count)).sum()
    }

    /// Returns the duration that this fraction of those noted did not exceed; zero if none was noted.
    #[must_use]
    pub fn quantile(&self, fraction: f64) -> Duration {
        let all: f64 = self.counts.iter().map(|count| f64::from(*count)).sum();
        let mut counted = 0.0;
        for (bucket, count) in (0_u32..).zip(&self.counts) {
            counted += f64::from(*count);
            if *count > 0 && counted >= fraction * all {
                if usize::try_from(bucket) == Ok(BUCKETS - 1) {
                    break;
                }
                let end_s = FIRST_S * (f64::from(bucket) / DOUBLING_STEPS).exp2();
                return Duration::from_secs_f64(end_s).min(self.longest);
            }
        }
        self.longest
    }

    /// Returns the number of durations longer than this, as exactly as the buckets allow.
    #[must_use]
    pub fn longer_than(&self, limit: Duration) -> u64 {
        let begins_s =
            |bucket: u32| FIRST_S * (f64::from(bucket.saturating_sub(1)) / DOUBLING_STEPS).exp2();
        let buckets = (0_u32..).zip(&self.counts);
        let longer = buckets.filter(|(bucket, _)| begins_s(*bucket) >= limit.as_secs_f64());
        longer.map(|(_, count)| u64::from(*count)).sum()
    }

    /// Returns the longest duration noted.
    #[must_use]
    pub fn longest(&self) -> Duration {
        self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_near_and_the_longest_is_exact() {
        let mut durations = DurationHistogram::default();
        assert_eq!(durations.quantile(0.5), Duration::ZERO);
        for micros in 1..=1000 {
            durations.note(Duration::from_micros(10 * micros));
        }
        for fraction in [0.1, 0.5, 0.99] {
            let ratio = durations.quantile(fraction).as_secs_f64() / (fraction * 0.01);
            assert!((0.99..1.1).contains(&ratio), "{fraction}: {ratio}");
        }
        assert_eq!(durations.longest(), Duration::from_millis(10));
        let longer = durations.longer_than(Duration::from_millis(5));
        assert!((450..=500).contains(&longer), "{longer}");
        assert_eq!(durations.longer_than(Duration::from_millis(10)), 0);
        durations.note(Duration::from_secs(3600));
        assert_eq!(durations.quantile(1.0), Duration::from_secs(3600));
    }
}
