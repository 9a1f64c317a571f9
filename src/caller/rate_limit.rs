//! Limits the rate of each token's calls: a bucket that fills at the allowed rate.

use std::collections::HashMap;
use std::sync::Mutex;

use super::Principal;
use base::lock::MutexExt;
use base::units::ClockInstant;

/// Burst size, in seconds of calls at the allowed rate.
const BURST_S: f64 = 10.0;

/// Maximum number of names remembered. Tokens are made by hand, so there are never that many.
const NAMES_MAX: usize = 1_024;

/// The buckets of all tokens.
#[derive(Debug, Default)]
pub struct RateLimiter(Mutex<HashMap<String, TokenBucket>>);

#[derive(Clone, Copy, Debug)]
struct TokenBucket {
    calls: f64,
    filled: ClockInstant,
}

impl RateLimiter {
    /// Takes one call.
    ///
    /// # Errors
    /// The seconds until the next one is allowed.
    pub fn take(&self, principal: &Principal, now: ClockInstant) -> Result<(), f64> {
        let per_s = f64::from(principal.calls_per_minute.max(1)) / 60.0;
        let capacity = (per_s * BURST_S).max(1.0);
        let mut buckets = self.0.locked();
        if buckets.len() >= NAMES_MAX && !buckets.contains_key(&principal.name) {
            buckets.clear();
        }
        let bucket = buckets
            .entry(principal.name.clone())
            .or_insert(TokenBucket {
                calls: capacity,
                filled: now,
            });
        bucket.calls = (bucket.calls + now.seconds_since(bucket.filled) * per_s).min(capacity);
        bucket.filled = now;
        if bucket.calls < 1.0 {
            return Err((1.0 - bucket.calls) / per_s);
        }
        bucket.calls -= 1.0;
        Ok(())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::time::Duration;

    use super::super::CallerRole;
    use super::*;

    fn planner(calls_per_minute: u32) -> Principal {
        Principal {
            name: "a".to_owned(),
            role: CallerRole::Planner,
            calls_per_minute,
        }
    }

    #[test]
    fn allows_a_burst_then_the_rate_for_each_name() {
        let (limiter, caller) = (RateLimiter::default(), planner(60));
        let now = ClockInstant::ZERO;
        for _ in 0..10 {
            limiter.take(&caller, now).unwrap();
        }
        let wait_s = limiter.take(&caller, now).unwrap_err();
        assert!((0.9..=1.0).contains(&wait_s), "{wait_s}");
        let other = Principal {
            name: "b".to_owned(),
            ..planner(60)
        };
        limiter.take(&other, now).unwrap();
        limiter
            .take(&caller, now.after(Duration::from_millis(1_001)))
            .unwrap();
    }

    #[test]
    fn a_rate_of_zero_still_allows_one_call() {
        let limiter = RateLimiter::default();
        limiter.take(&planner(0), ClockInstant::ZERO).unwrap();
        assert!(limiter.take(&planner(0), ClockInstant::ZERO).is_err());
    }
}
