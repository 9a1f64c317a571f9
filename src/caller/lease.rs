//! Leases an arm to one planner at a time: the first motion takes the lease, and it ends after a time at rest.

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
    last_used: ClockInstant,
}

/// Another caller has the arm.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "{by} is using the arm. Its lease ends after {free_in_s:.0} s at rest, or when an operator takes the arm"
)]
pub struct LeaseHeldError {
    /// The holder of the lease.
    pub by: String,
    /// Seconds until the arm is free, if it rests.
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
        let mut lease = self.0.locked();
        if let Some(other) = lease.as_ref().filter(|lease| lease.by != caller)
            && now.since(other.last_used) < idle
        {
            return Err(LeaseHeldError {
                by: other.by.clone(),
                free_in_s: (idle - now.since(other.last_used)).as_secs_f64(),
            });
        }
        *lease = Some(LeaseState {
            by: caller.to_owned(),
            last_used: now,
        });
        Ok(())
    }

    /// Renews the lease for its holder, because the arm is moving.
    pub fn renew(&self, now: ClockInstant) {
        if let Some(lease) = self.0.locked().as_mut() {
            lease.last_used = lease.last_used.max(now);
        }
    }

    /// Releases the arm from any holder, at the end of a session or for an operator. Returns the former holder.
    pub fn release(&self) -> Option<String> {
        self.0.locked().take().map(|lease| lease.by)
    }

    /// Returns the current holder of the arm.
    #[must_use]
    pub fn holder(&self, now: ClockInstant, idle: Duration) -> Option<String> {
        let lease = self.0.locked();
        let current = lease.as_ref()?;
        (now.since(current.last_used) < idle).then(|| current.by.clone())
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
    fn the_first_caller_keeps_the_arm_until_it_rests() {
        let lease = ArmLease::default();
        lease.take("a", at(0), IDLE).unwrap();
        let refused = lease.take("b", at(60), IDLE).unwrap_err();
        assert_eq!(refused.by, "a");
        assert!((refused.free_in_s - 60.0).abs() < 1e-9);
        lease.take("a", at(100), IDLE).unwrap();
        assert!(lease.take("b", at(200), IDLE).is_err());
        assert_eq!(lease.holder(at(219), IDLE).as_deref(), Some("a"));
        assert_eq!(lease.holder(at(220), IDLE), None);
        lease.take("b", at(220), IDLE).unwrap();
    }

    #[test]
    fn a_running_job_keeps_the_lease_and_an_operator_takes_it() {
        let lease = ArmLease::default();
        lease.take("a", at(0), IDLE).unwrap();
        lease.renew(at(500));
        assert!(lease.take("b", at(510), IDLE).is_err());
        assert_eq!(lease.release().as_deref(), Some("a"));
        lease.take("b", at(510), IDLE).unwrap();
    }
}
