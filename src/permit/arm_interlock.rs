//! Arms of one node that can touch each other: at most one of them is enabled at a time.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use super::PermitError;
use base::lock::MutexExt;
use scene::Scene;

/// Checks another arm; returns the reason for a refusal if that arm is in the way of motion in a scene.
pub type ObstructionCheck = Box<dyn Fn(&Scene) -> Option<String> + Send + Sync>;

/// The restrictions that the other arms of a node put on one arm.
pub struct ArmInterlock {
    enable_lock: Arc<Mutex<()>>,
    obstruction_checks: Vec<ObstructionCheck>,
    reach_max_m: Option<f64>,
}

impl fmt::Debug for ArmInterlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArmInterlock")
            .field("within_reach", &self.obstruction_checks.len())
            .field("reach_max_m", &self.reach_max_m)
            .finish_non_exhaustive()
    }
}

impl ArmInterlock {
    /// Returns the interlock of an arm. All arms of a node share `enable_lock`, so that two are never enabled at the same
    /// moment. `obstruction_checks` has one entry for each arm that this one can touch. `reach_max_m` is the largest reach
    /// with which it stays out of the other arms' reach; `None` if no other arm is kept apart by distance.
    #[must_use]
    pub fn new(
        enable_lock: Arc<Mutex<()>>,
        obstruction_checks: Vec<ObstructionCheck>,
        reach_max_m: Option<f64>,
    ) -> Self {
        Self {
            enable_lock,
            obstruction_checks,
            reach_max_m,
        }
    }

    /// Returns whether the arm can touch any other.
    pub(super) fn has_neighbours(&self) -> bool {
        !self.obstruction_checks.is_empty()
    }

    /// Refuses a scene while another arm is in the way. No other arm is enabled while the returned guard is held.
    pub(super) fn lock_for(&self, scene: &Scene) -> Result<MutexGuard<'_, ()>, PermitError> {
        self.check_reach(scene)?;
        // The lock guards no data, so a thread that panicked has left nothing half done.
        let guard = self.enable_lock.locked();
        let mut checks = self.obstruction_checks.iter();
        match checks.find_map(|check| check(scene)) {
            Some(reason) => Err(PermitError::OtherArm(reason)),
            None => Ok(guard),
        }
    }

    /// Refuses a scene whose pens reach farther than the reach with which this arm stays out of the others' reach.
    pub(super) fn check_reach(&self, scene: &Scene) -> Result<(), PermitError> {
        let reach_m = scene.reach_m();
        match self.reach_max_m.filter(|max_m| reach_m > *max_m) {
            Some(max_m) => Err(PermitError::OtherArm(format!(
                "in scene `{}` the arm reaches {reach_m:.3} m from its base (at most {max_m:.3} m, so that it cannot touch the other arms). Next: start the node again, which computes the reach anew",
                scene.title()
            ))),
            None => Ok(()),
        }
    }
}
