//! Lets a line begin only where its pen is: the goal of a tip that came down stands until the readings say that the tip is
//! there.

use super::Execution;
use crate::clearance::tip_m;
use base::plane::distance;
use base::units::{ArmMeasurement, JointVector};
use plan::SpanKind;

/// Most ticks in which a tip is waited for.
const LANDING_TICKS: u32 = 150;

/// Distance along the sheet from which a tip is beside its goal.
const ASIDE_MM: f64 = 0.7;

impl Execution {
    /// Notes that the goal has come down to a line, if the servos' figures let readings correct where the tip is.
    pub(super) fn begin_landing(&mut self) {
        if self.sag.is_led() {
            self.landing_ticks = LANDING_TICKS;
        }
    }

    /// Returns whether the line waits in this tick for its tip, which the readings show over the sheet or beside the line.
    pub(super) fn lands(&mut self, measured: &ArmMeasurement) -> bool {
        if self.landing_ticks == 0 {
            return false;
        }
        let draws = self.is_on_path() && !self.is_stopped && self.span().kind == SpanKind::Draw;
        let has_press = self.tip_push(&self.goal_rad).is_some();
        if !(draws && has_press && self.is_off(&measured.position_rad)) {
            self.landing_ticks = 0;
            return false;
        }
        self.landing_ticks -= 1;
        true
    }

    /// Returns whether the tip is over the sheet, or over a goal that a trim keeps above it, or beside its goal.
    fn is_off(&self, arm_rad: &JointVector) -> bool {
        let (scene, pen) = (self.scene(), self.span().pen);
        let places = [arm_rad, &self.goal_rad].map(|joints_rad| {
            let tip_m = tip_m(scene, pen, joints_rad)?;
            Some(scene.surface.project(&tip_m))
        });
        let [Some(tip), Some(goal)] = places else {
            return false;
        };
        tip.height_mm > goal.height_mm.max(0.0) || distance(tip.at_mm, goal.at_mm) > ASIDE_MM
    }

    /// Returns whether a tip is waited for: it is not drawing.
    #[must_use]
    pub fn awaits_tip(&self) -> bool {
        self.landing_ticks > 0
    }

    /// Returns whether the goal stands until its tip has landed.
    pub(super) fn stands_to_land(&self) -> bool {
        self.landing_ticks > 0 && self.rate.abs() <= 0.0
    }
}
