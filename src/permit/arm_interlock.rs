//! Arms of one node that can touch each other: at most one of them is enabled at a time.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use super::PermitError;
use base::lock::MutexExt;
use scene::Scene;

/// Looks at another arm; returns the refusal, in words, where that arm is in the way.
pub type ObstructionCheck = Box<dyn Fn() -> Option<String> + Send + Sync>;

/// The restrictions that the other arms of a node put on one arm.
pub struct ArmInterlock {
    turn: Arc<Mutex<()>>,
    within_reach: Vec<ObstructionCheck>,
    reach_max_m: Option<f64>,
}

impl fmt::Debug for ArmInterlock {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("ArmInterlock")
            .field("within_reach", &self.within_reach.len())
            .field("reach_max_m", &self.reach_max_m)
            .finish_non_exhaustive()
    }
}

impl ArmInterlock {
    /// Returns the interlock of an arm. All arms of a node share `turn`, so that two are never enabled at the same moment.
    /// `within_reach` has one entry for each arm that this one can touch. `reach_max_m` is the reach by which others were
    /// found to be apart; absent where none was found so.
    #[must_use]
    pub fn new(
        turn: Arc<Mutex<()>>,
        within_reach: Vec<ObstructionCheck>,
        reach_max_m: Option<f64>,
    ) -> Self {
        Self {
            turn,
            within_reach,
            reach_max_m,
        }
    }

    /// Returns whether the arm can touch any other.
    pub(super) fn is_beside_others(&self) -> bool {
        !self.within_reach.is_empty()
    }

    /// Refuses a scene while another arm is in the way. As long as what it returns is kept, no other arm is enabled.
    pub(super) fn clear_for(&self, scene: &Scene) -> Result<MutexGuard<'_, ()>, PermitError> {
        self.check_reach(scene)?;
        // It guards no data: a thread that panicked has left nothing half done.
        let turn = self.turn.locked();
        let mut others = self.within_reach.iter();
        match others.find_map(|obstruction| obstruction()) {
            Some(why) => Err(PermitError::OtherArm(why)),
            None => Ok(turn),
        }
    }

    /// Refuses a scene whose pens reach farther than the reach by which the arms were found to be apart.
    pub(super) fn check_reach(&self, scene: &Scene) -> Result<(), PermitError> {
        let reach_m = scene.reach_m();
        match self.reach_max_m.filter(|max_m| reach_m > *max_m) {
            Some(max_m) => Err(PermitError::OtherArm(format!(
                "in scene `{}` the arm reaches {reach_m:.3} m from its base, and it stands apart from the node's other arms with at most {max_m:.3} m: start the node again, which works out anew how far its arms reach",
                scene.title()
            ))),
            None => Ok(()),
        }
    }
}
