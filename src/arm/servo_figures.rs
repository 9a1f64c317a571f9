//! Figures of an arm's servos, as somebody measured them: how strong they are and how stiffly they hold.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ArmFault, ArmFile};
use base::units::{Finite, OutOfRange};

/// A servo without an integral term: the error that it bears under a load is what the load divided by its stiffness gives.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServoFigures {
    /// What the figures were measured on, such as `STS3215 7.4 V`.
    pub name: String,
    /// Torque at a standstill with full duty, at `stall_volts`; 0.01 to 50.
    pub stall_n_m: Finite,
    /// Supply at which the stall torque holds; a lower one weakens the servo in proportion. 3 to 60.
    pub stall_volts: Finite,
    /// Duty for each radian of error and each unit of the gain P; 0.0001 to 10.
    pub error_gain: Finite,
    /// Gain P as the servo is delivered, which is assumed where it was not read; 1 to 254.
    pub gain_p: u8,
    /// Friction of its gears, 0 to 10.
    pub friction_n_m: Finite,
    /// Damping by its motor and gears, for each radian a second; 0 to 20.
    pub damping_n_m_s: Finite,
    /// Inertia of its rotor and gears at the output, 0 to 1.
    pub armature_kg_m2: Finite,
}

impl ServoFigures {
    /// Returns the stiffness with which one servo holds at a gain P, in newton metres for each radian. A supply above the
    /// one of the figures is that of another variant, and stiffens nothing.
    #[must_use]
    pub fn stiffness_n_m_rad(&self, gain_p: u8, supply_v: Option<f64>) -> f64 {
        f64::from(gain_p) * self.error_gain.get() * self.strength_n_m(supply_v)
    }

    /// Returns the torque of one servo with full duty.
    #[must_use]
    pub fn strength_n_m(&self, supply_v: Option<f64>) -> f64 {
        let ratio = supply_v.map_or(1.0, |volts| volts / self.stall_volts.get());
        self.stall_n_m.get() * ratio.min(1.0)
    }
}

pub(super) fn check(file: &ArmFile) -> Result<(), ArmFault> {
    let Some(servo) = &file.servo else {
        return Ok(());
    };
    for (key, value, range) in [
        ("stall_n_m", servo.stall_n_m, 0.01..=50.0),
        ("stall_volts", servo.stall_volts, 3.0..=60.0),
        ("error_gain", servo.error_gain, 1e-4..=10.0),
        ("friction_n_m", servo.friction_n_m, 0.0..=10.0),
        ("damping_n_m_s", servo.damping_n_m_s, 0.0..=20.0),
        ("armature_kg_m2", servo.armature_kg_m2, 0.0..=1.0),
        (
            "gain_p",
            Finite::literal(f64::from(servo.gain_p)),
            1.0..=254.0,
        ),
    ] {
        OutOfRange::check(|| format!("servo: {key}"), value, &range)?;
    }
    Ok(())
}
