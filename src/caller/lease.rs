//! One planner moves an arm at a time: the first motion takes the arm, rest gives it back.

use std::sync::Mutex;
use std::time::Duration;

use base::lock::MutexExt;
use base::units::ClockInstant;

/// The lease of one arm.
#[derive(Debug, Default)]
pub struct ArmLease(Mutex<Option<LeaseState>>);

#[derive(Clone, Debug)]
struct LeaseState {
    by: String,
    used: ClockInstant,
}

/// A different caller has the arm.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "{by} has the arm; it is free {free_in_s:.0} s after the last motion, or an operator takes it over"
)]
pub struct LeaseHeldError {
    /// Its holder.
    pub by: String,
    /// Seconds of rest after which it is free.
    pub free_in_s: f64,
}

impl ArmLease {
    /// Takes the arm, or keeps it, for a caller that is about to move it.
    ///
    /// # Errors
    /// Another caller moved it less than `idle` ago.
    pub fn take(
        &self,
        caller: &str,
        now: ClockInstant,
        idle: Duration,
    ) -> Result<(), LeaseHeldError> {
        let mut held = self.0.locked();
        if let Some(other) = held.as_ref().filter(|held| held.by != caller)
            && now.since(other.used) < idle
        {
            return Err(LeaseHeldError {
                by: other.by.clone(),
                free_in_s: (idle - now.since(other.used)).as_secs_f64(),
            });
        }
        *held = Some(LeaseState {
            by: caller.to_owned(),
            used: now,
        });
        Ok(())
    }

    /// Renews the lease, for its holder: the arm moves.
    pub fn renew(&self, now: ClockInstant) {
        if let Some(held) = self.0.locked().as_mut() {
            held.used = held.used.max(now);
        }
    }

    /// Releases the arm from any holder: at the end of a session, or by an operator. Returns the holder.
    pub fn release(&self) -> Option<String> {
        self.0.locked().take().map(|held| held.by)
    }

    /// Returns the current holder of the arm.
    #[must_use]
    pub fn holder(&self, now: ClockInstant, idle: Duration) -> Option<String> {
        let held = self.0.locked();
        let held = held.as_ref().filter(|held| now.since(held.used) < idle);
        held.map(|held| held.by.clone())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    const IDLE: Duration = Duration::from_secs(120);

    fn at(seconds: u64) -> ClockInstant {
        ClockInstant::ZERO.after(Duration::from_secs(seconds))
    }

    #[test]
    fn the_first_has_it_until_it_rests() {
        let lease = ArmLease::default();
        lease.take("a", at(0), IDLE).unwrap();
        let taken = lease.take("b", at(60), IDLE).unwrap_err();
        assert_eq!(taken.by, "a");
        assert!((taken.free_in_s - 60.0).abs() < 1e-9);
        lease.take("a", at(100), IDLE).unwrap();
        assert!(lease.take("b", at(200), IDLE).is_err());
        assert_eq!(lease.holder(at(219), IDLE).as_deref(), Some("a"));
        assert_eq!(lease.holder(at(220), IDLE), None);
        lease.take("b", at(220), IDLE).unwrap();
    }

    #[test]
    fn a_job_that_goes_on_keeps_it_and_an_operator_takes_it() {
        let lease = ArmLease::default();
        lease.take("a", at(0), IDLE).unwrap();
        lease.renew(at(500));
        assert!(lease.take("b", at(510), IDLE).is_err());
        assert_eq!(lease.release().as_deref(), Some("a"));
        lease.take("b", at(510), IDLE).unwrap();
    }
}
