//! Holds a motion with the tip up, and resumes it.

use super::{Execution, ExecutionError, ExecutionPhase, HoldAt, MotionGoal};
use crate::check::check_at_start;
use base::units::{ArmMeasurement, ClockInstant};
use permit::MotionPermit;

impl Execution {
    /// Stands with the tip up until [`Execution::resume`]; arms that are carried out together with this one stand as
    /// long as it does. Returns `false` and changes nothing where the motion is ending already.
    pub fn hold(&mut self, at: HoldAt) -> bool {
        let can_hold = self.goes_on();
        if can_hold {
            self.is_held_with_other = false;
            self.request = match self.request {
                MotionGoal::Hold(HoldAt::Once) => MotionGoal::Hold(HoldAt::Once),
                _ => MotionGoal::Hold(at),
            };
        }
        can_hold
    }

    /// Goes on with the same proof: back down the lift, and along the path, once no other arm that is carried out together
    /// with this one is held.
    ///
    /// # Errors
    /// When it was not held, the arm is not where it was held, or the permit does not cover it.
    pub fn resume(
        &mut self,
        measured: &ArmMeasurement,
        permit: MotionPermit,
        now: ClockInstant,
    ) -> Result<(), ExecutionError> {
        if !matches!(self.request, MotionGoal::Hold(_)) {
            return Err(ExecutionError::NotHeld);
        }
        if !permit.covers(&self.checked.scene, now) {
            return Err(ExecutionError::Expired);
        }
        if self.stands_held() {
            check_at_start(&self.checked.scene, &self.goal_rad, measured, now)
                .map_err(ExecutionError::Moved)?;
        }
        self.checked.permit = permit;
        self.is_held_with_other = self.checked.concert.is_another_held();
        if !self.is_held_with_other {
            self.request = MotionGoal::Go;
        }
        self.tell_neighbours();
        Ok(())
    }

    /// Returns whether the arm stands with the tip up and waits for [`Execution::resume`], of its own motion or of the arm
    /// with which it is held.
    #[must_use]
    pub fn is_held(&self) -> bool {
        let is_called = !self.is_held_with_other || self.checked.concert.is_another_held();
        is_called && self.stands_held()
    }

    /// Returns whether it is held only because another arm is.
    #[must_use]
    pub fn is_held_with_other(&self) -> bool {
        self.is_held_with_other && self.is_held()
    }

    /// Returns whether the arm stands with the tip up where it is held.
    pub(super) fn stands_held(&self) -> bool {
        let MotionGoal::Hold(at) = self.request else {
            return false;
        };
        match &self.phase {
            ExecutionPhase::Path => {
                self.rate.abs() <= 0.0
                    && (self.is_up_already() || self.lift().is_none())
                    && !self.finishes_stroke(at)
            }
            ExecutionPhase::Lift(motion) => motion.tick >= motion.ticks,
            ExecutionPhase::LetGo(_) | ExecutionPhase::Stand => false,
        }
    }
}
