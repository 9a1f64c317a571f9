//! Lets go of joints that press against something when a motion has ended.

use super::{
    Execution, ExecutionPhase, ExecutionStep, GoalUpdate, JointSpaceMove, MotionGoal, Setpoint,
};
use base::units::{ArmMeasurement, JointVector};

/// A joint that rests further than this from where its goal holds it presses against something: more than a
/// servo sags under the arm's weight, and less than what counts as a stall.
pub(super) const PRESSING_RAD: f64 = 2.0 * std::f64::consts::PI / 180.0;

/// A move of the goals as they were sent, lead and all.
#[derive(Clone, Copy, Debug)]
pub(super) struct LettingGo {
    sent: JointSpaceMove,
    /// Part of those goals that holds the joints against gravity.
    lead_rad: JointVector,
}

impl Execution {
    /// Moves the goals of joints that press against something to where the joints are, so that
    /// nothing springs forward when the obstacle goes. Works once per motion, for an arm that was
    /// measured at rest at its end. Returns `false` where there is nothing to let go of.
    ///
    /// Goals only ever move from where they were sent towards what was measured, and no farther than where gravity is held.
    /// They never move where the readings cannot be trusted: after [`Execution::halt`], or where a joint reads
    /// farther from its goal than its leash allows.
    pub fn let_go(&mut self, measured: &ArmMeasurement) -> bool {
        let is_halted = matches!(self.request, MotionGoal::Halt);
        if self.has_let_go || is_halted || !matches!(self.phase, ExecutionPhase::Stand) {
            return false;
        }
        let arm_rad = &measured.position_rad;
        if self.monitor.is_implausible(&self.goal_rad, arm_rad) {
            return false;
        }
        // A motion that was cut short has goals that lead by more than gravity: they were sent, so they are what moves.
        let sent_rad = self.sag.sent_rad(&self.goal_rad);
        let lead_rad = self.sag.hold_rad(&self.checked.scene.arm, arm_rad);
        let held_rad = sent_rad.zip(&lead_rad, |sent, lead| sent - lead);
        let is_pressing = arm_rad.zip(&held_rad, |arm, held| {
            f64::from((arm - held).abs() > PRESSING_RAD)
        });
        let by_rad = arm_rad
            .zip(&lead_rad, |arm, lead| arm + lead)
            .zip(&sent_rad.zip(arm_rad, f64::min), f64::max)
            .zip(&sent_rad.zip(arm_rad, f64::max), f64::min)
            .zip(&sent_rad, |target, sent| target - sent)
            .zip(&is_pressing, |by, pressing| by * pressing);
        if by_rad.iter().all(|by| by.abs() <= 0.0) {
            return false;
        }
        // The tip is no longer where the lift sent it.
        self.has_lifted = false;
        self.has_let_go = true;
        let sent = JointSpaceMove {
            from_rad: sent_rad,
            by_rad,
            tick: 0.0,
            ticks: self.lift_ticks(&by_rad),
        };
        self.phase = ExecutionPhase::LetGo(LettingGo { sent, lead_rad });
        true
    }

    /// Returns the next goals on the move to where the arm is.
    pub(super) fn advance_let_go(&mut self, LettingGo { sent, lead_rad }: LettingGo) -> GoalUpdate {
        if sent.tick >= sent.ticks {
            self.phase = ExecutionPhase::Stand;
            return GoalUpdate::Finished;
        }
        let tick = (sent.tick + 1.0).min(sent.ticks);
        let sent = JointSpaceMove { tick, ..sent };
        self.phase = ExecutionPhase::LetGo(LettingGo { sent, lead_rad });
        let sent_rad = sent.at(tick);
        GoalUpdate::Release {
            goal_rad: sent_rad.zip(&lead_rad, |sent, lead| sent - lead),
            sent_rad,
        }
    }

    /// Returns the frame with goals that are led already.
    pub(super) fn release(
        &mut self,
        goal_rad: JointVector,
        sent_rad: JointVector,
    ) -> ExecutionStep {
        self.goal_rad = goal_rad;
        self.sag.set_sent(sent_rad);
        let limits = self.checked.scene.arm.limits;
        ExecutionStep::Go(Setpoint {
            goal_rad: sent_rad,
            velocity_cap_rad_s: limits.velocity_rad_s,
            acceleration_cap_rad_s2: limits.acceleration_rad_s2,
        })
    }
}
