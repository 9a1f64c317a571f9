//! Chooses how a motion comes to a safe end after an error.

use super::{BACK_SAMPLES_MAX, Execution, ExecutionError, ExecutionPhase, MotionGoal};
use base::units::{ArmMeasurement, JointVector};

impl Execution {
    /// Chooses how to come to a safe end after an error.
    pub(super) fn choose_safe_end(&mut self, error: &ExecutionError, measured: &ArmMeasurement) {
        // Without a reading of every joint it is unknown where to go back to, and whether a lift
        // would be followed. After a stall on a lift, or at its end, there is nowhere better to go: the
        // arm stands there, and is let go of.
        let arm_rad = &measured.position_rad;
        let is_read = arm_rad.len() == self.goal_rad.len() && arm_rad.is_finite();
        let is_off_path = matches!(
            (error, &self.phase),
            (
                ExecutionError::Stalled { .. } | ExecutionError::Pushed(_),
                ExecutionPhase::Lift(_) | ExecutionPhase::Stand
            )
        );
        if is_off_path && is_read && self.request != MotionGoal::Halt {
            (self.request, self.phase) = (MotionGoal::Stop, ExecutionPhase::Stand);
            return;
        }
        let can_go_back = matches!(
            (error, &self.phase),
            (
                ExecutionError::Stalled { .. }
                    | ExecutionError::Unmoved { .. }
                    | ExecutionError::Pushed(_)
                    | ExecutionError::Limp { .. },
                ExecutionPhase::Path
            )
        ) && self.request != MotionGoal::Halt
            && is_read;
        self.request = if can_go_back {
            MotionGoal::Back(self.return_position(arm_rad))
        } else {
            MotionGoal::Halt
        };
    }

    /// Returns the position on the travelled path where the goal was nearest to the arm.
    #[expect(
        clippy::expect_used,
        reason = "a position to go back to may not be made up"
    )]
    pub(super) fn return_position(&self, arm_rad: &JointVector) -> f64 {
        let here = self.sample();
        let samples = self.checked.trajectory.samples.iter().enumerate();
        // No farther than where it was measured to be: another arm may be beside what lies behind.
        let back = here.saturating_sub(BACK_SAMPLES_MAX);
        let nearest = samples
            .take(here + 1)
            .skip(back.max(self.checked.concert.followed()))
            .min_by(|(_, a), (_, b)| a.distance_max(arm_rad).total_cmp(&b.distance_max(arm_rad)));
        let (sample, _) = nearest.expect("the current sample is among these samples");
        (sample as f64).min(self.position)
    }
}
