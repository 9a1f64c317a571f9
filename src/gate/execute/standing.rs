//! Stands where a motion begins, ends or is held, until the leads of its goals are those of an arm at rest, and looks ahead
//! to where a goal stands.

use super::{Execution, ExecutionPhase, ExecutionStep, ramp_rate};
use crate::sag_lead::PREVIEW_TICKS;
use base::units::{ArmMeasurement, JointVector};

/// Distance of every joint from its end within which the arm has come to it: five counts of 4096.
const ARRIVED_RAD: f64 = 5.0 * std::f64::consts::TAU / 4096.0;

impl Execution {
    /// Sends goals that stand until they lead an arm at rest: what braking asks of them is no hold.
    pub(super) fn rest(&mut self, step: ExecutionStep) -> ExecutionStep {
        if self.resting_ticks == 0 || !self.sag.is_changing() {
            self.resting_ticks = 0;
            return self.keep(step);
        }
        self.resting_ticks -= 1;
        self.send(self.goal_rad)
    }

    fn keep(&mut self, step: ExecutionStep) -> ExecutionStep {
        self.sag.keep();
        step
    }

    /// Returns whether the arm stands for a tick at its beginning or its end, for the lead of its goals to be corrected there.
    pub(super) fn settles(&mut self, measured: &ArmMeasurement) -> bool {
        if !self.is_on_path() || self.is_stopped {
            return false;
        }
        if self.position <= 0.0 && self.sinking_ticks > 0 {
            self.sinking_ticks -= 1;
            return true;
        }
        let is_at_end = self.position >= self.last_position() && self.probe_from().is_none();
        let off_rad = self.goal_rad.distance_max(&measured.position_rad);
        if !is_at_end || self.arriving_ticks == 0 || off_rad <= ARRIVED_RAD {
            return false;
        }
        self.arriving_ticks -= 1;
        true
    }

    /// Returns where the arm shall be [`PREVIEW_TICKS`] later, as far as is known.
    pub(super) fn upcoming_rad(&self) -> JointVector {
        match self.phase {
            ExecutionPhase::Path => {
                self.goal_at(self.position + self.upcoming_ticks(self.brake_ticks()))
            }
            ExecutionPhase::Lift(motion) => {
                let ticks = self.upcoming_ticks(self.lift_brake_ticks(&motion));
                motion.at((motion.tick + ticks).clamp(0.0, motion.ticks))
            }
            ExecutionPhase::LetGo(_) | ExecutionPhase::Stand => self.goal_rad,
        }
    }

    /// Returns how far the goal goes in [`PREVIEW_TICKS`] if its rate goes on to change as it did last.
    fn upcoming_ticks(&self, brake_ticks: f64) -> f64 {
        let mut rate = self.rate;
        (0..PREVIEW_TICKS)
            .map(|_| {
                rate = ramp_rate(rate, self.target_rate, brake_ticks);
                rate
            })
            .sum()
    }
}
