//! Arms of one node that can touch each other: at most one of them is enabled at a time.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use super::PermitError;
use base::lock::MutexExt;
use scene::{AxisAlignedBox, Scene};

/// Checks another arm; returns the reason for a refusal if that arm is in the way of motion in a scene.
pub type ObstructionCheck = Box<dyn Fn(&Scene) -> Option<String> + Send + Sync>;

/// The restrictions that the other arms of a node put on one arm.
pub struct ArmInterlock {
    enable_lock: Arc<Mutex<()>>,
    obstruction_checks: Vec<ObstructionCheck>,
    scene_checks: Vec<ObstructionCheck>,
    zone: Option<AxisAlignedBox>,
}

impl fmt::Debug for ArmInterlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArmInterlock")
            .field("within_reach", &self.obstruction_checks.len())
            .field("zone", &self.zone)
            .finish_non_exhaustive()
    }
}

impl ArmInterlock {
    /// Returns the interlock of an arm. All arms of a node share `enable_lock`, so that two are never enabled at the same
    /// moment. `obstruction_checks` has one entry for each arm that this one can touch. `scene_checks` say what of a scene brings it
    /// too near to another arm, however that one stands; no motion leaves `zone`, in the arm's base frame.
    #[must_use]
    pub fn new(
        enable_lock: Arc<Mutex<()>>,
        obstruction_checks: Vec<ObstructionCheck>,
        scene_checks: Vec<ObstructionCheck>,
        zone: Option<AxisAlignedBox>,
    ) -> Self {
        Self {
            enable_lock,
            obstruction_checks,
            scene_checks,
            zone,
        }
    }

    /// Returns whether the arm can touch any other.
    pub(super) fn has_neighbours(&self) -> bool {
        !self.obstruction_checks.is_empty()
    }

    /// Refuses a scene while another arm is in the way. No other arm is enabled while the returned guard is held.
    pub(super) fn lock_for(&self, scene: &Scene) -> Result<MutexGuard<'_, ()>, PermitError> {
        self.check_scene(scene)?;
        // The lock guards no data, so a thread that panicked has left nothing half done.
        let guard = self.enable_lock.locked();
        let mut checks = self.obstruction_checks.iter();
        match checks.find_map(|check| check(scene)) {
            Some(reason) => Err(PermitError::OtherArm(reason)),
            None => Ok(guard),
        }
    }

    /// Refuses a scene that brings the arm too near to another one, however that one stands.
    pub(super) fn check_scene(&self, scene: &Scene) -> Result<(), PermitError> {
        let mut checks = self.scene_checks.iter();
        let reason = checks.find_map(|check| check(scene));
        reason.map_or(Ok(()), |reason| Err(PermitError::OtherArm(reason)))
    }

    /// Returns the box that no motion leaves.
    pub(super) fn zone(&self) -> Option<AxisAlignedBox> {
        self.zone
    }
}
