//! Required accuracy of a calibration, for arms with fine and with coarse resolution.

use std::f64::consts::{PI, TAU};

use arm::{ArmModel, ServoFile};

/// Resolution class of an arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResolutionClass {
    /// Every joint's count is under a hundredth of a degree.
    Fine,
    /// Hobby servos: 4096 counts a turn and play in their gears.
    Hobby,
}

/// Limits that a fit must keep to be accepted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AcceptanceLimits {
    /// Distance between touches of the same point in the same pose.
    pub spread_mm: f64,
    /// Root mean square of a tool's residuals.
    pub tip_rms_mm: f64,
    /// The predicted standard deviation of the tip.
    pub tip_sigma_mm: f64,
    /// Root mean square of a sheet's residuals.
    pub plane_rms_mm: f64,
    /// Residual of a touch that was not fitted.
    pub verify_mm: f64,
    /// Ratio of the largest to the smallest singular value.
    pub condition: f64,
    /// Ratio of the largest residual to the root mean square.
    pub max_over_rms: f64,
    /// Angle between a sheet and the one accepted last.
    pub tilt_deg: f64,
}

/// Largest count of a fine resolution.
const FINE_RAD: f64 = 0.01 * PI / 180.0;

impl ResolutionClass {
    /// Returns the class of an arm, by its coarsest joint.
    #[must_use]
    pub fn of_arm(arm: &ArmModel) -> Self {
        let count_rad = |servo: ServoFile| TAU / f64::from(servo.ticks_per_turn.max(1));
        let is_fine = arm.servos().all(|(_, servo)| count_rad(servo) < FINE_RAD);
        if is_fine { Self::Fine } else { Self::Hobby }
    }

    /// Returns its limits.
    #[must_use]
    pub fn limits(self) -> AcceptanceLimits {
        let (spread_mm, tip_rms_mm, tip_sigma_mm, plane_rms_mm, verify_mm) = match self {
            Self::Fine => (0.3, 0.5, 0.3, 0.2, 0.5),
            Self::Hobby => (1.0, 1.5, 1.0, 0.8, 1.5),
        };
        AcceptanceLimits {
            spread_mm,
            tip_rms_mm,
            tip_sigma_mm,
            plane_rms_mm,
            verify_mm,
            condition: 12.0,
            max_over_rms: 2.5,
            tilt_deg: 3.0,
        }
    }
}
