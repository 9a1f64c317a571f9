//! The servo of a simulated arm: how it makes torque of an error, and what its gears take of it.

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ArmFault, ArmFile, ServoFamily, ServoFigures};
use base::units::{Finite, OutOfRange};

/// A servo that regulates its position by the duty of its motor, as it was measured.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SimulatedServo {
    /// Torque at full duty and standstill, at the simulated supply of 12 V; 0.01 to 50.
    pub stall_n_m: Finite,
    /// Duty for each radian of error and each unit of the gain P, 0.0001 to 10.
    pub error_gain: Finite,
    /// Inertia of rotor and gears at the output, 0.001 to 1.
    pub armature_kg_m2: Finite,
    /// Damping by the motor's back-EMF, for each radian a second; 0 to 20.
    pub back_emf_n_m_s: Finite,
    /// Damping by the gears, for each radian a second; 0 to 20.
    pub viscous_n_m_s: Finite,
    /// Friction of the gears, 0 to 10.
    pub friction_n_m: Finite,
    /// Additional friction for each newton metre that the gears carry, 0 to 1.
    #[serde(default)]
    pub friction_per_load: Finite,
    /// Additional friction near standstill; absent where it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stribeck: Option<StribeckFriction>,
}

/// Friction that fades with speed.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StribeckFriction {
    /// At standstill, 0 to 10.
    pub friction_n_m: Finite,
    /// At standstill, for each newton metre that the gears carry; 0 to 1.
    pub friction_per_load: Finite,
    /// Speed at which 1/e of it is left, 0.001 to 10.
    pub speed_rad_s: Finite,
    /// Exponent of the speed, 0.1 to 4.
    pub exponent: Finite,
}

/// Least inertia with which a servo is simulated.
const ARMATURE_KG_M2_MIN: f64 = 1e-3;

impl ArmFile {
    /// Returns its simulated servo: the stated one, otherwise what the figures of its servos say. `None` for an arm of whose
    /// servos nothing is known, and for wear that says how its servos yield.
    #[must_use]
    pub fn simulated_servo(&self) -> Option<SimulatedServo> {
        let stated = self.simulation.servo.clone();
        let has_duty = self.family == ServoFamily::FeetechSts && !self.has_wear_of_servo();
        let figures = self.servo.as_ref().filter(|_| has_duty);
        stated.or_else(|| figures.map(SimulatedServo::of_figures))
    }

    fn has_wear_of_servo(&self) -> bool {
        self.simulation.wear.as_ref().is_some_and(|wear| {
            let figures = [
                wear.sag_deg_per_n_m,
                wear.servo_friction_n_m,
                wear.servo_friction_per_load,
            ];
            figures.iter().any(|figure| figure.get() != 0.0)
        })
    }
}

impl SimulatedServo {
    fn of_figures(figures: &ServoFigures) -> Self {
        let armature_kg_m2 = figures.armature_kg_m2.get().max(ARMATURE_KG_M2_MIN);
        Self {
            stall_n_m: figures.stall_n_m,
            error_gain: figures.error_gain,
            armature_kg_m2: Finite::new(armature_kg_m2).unwrap_or(figures.armature_kg_m2),
            back_emf_n_m_s: figures.damping_n_m_s,
            viscous_n_m_s: Finite::default(),
            friction_n_m: figures.friction_n_m,
            friction_per_load: Finite::default(),
            stribeck: None,
        }
    }
}

pub(super) fn check(file: &ArmFile) -> Result<(), ArmFault> {
    let Some(servo) = &file.simulation.servo else {
        return Ok(());
    };
    if file.has_wear_of_servo() {
        return Err(ArmFault::ServoTwice);
    }
    let torque: RangeInclusive<f64> = 0.0..=10.0;
    let damping = 0.0..=20.0;
    for (key, value, range) in [
        ("stall_n_m", servo.stall_n_m, &(0.01..=50.0)),
        ("error_gain", servo.error_gain, &(1e-4..=10.0)),
        ("armature_kg_m2", servo.armature_kg_m2, &(1e-3..=1.0)),
        ("back_emf_n_m_s", servo.back_emf_n_m_s, &damping),
        ("viscous_n_m_s", servo.viscous_n_m_s, &damping),
        ("friction_n_m", servo.friction_n_m, &torque),
        ("friction_per_load", servo.friction_per_load, &(0.0..=1.0)),
    ] {
        check_figure(key, value, range)?;
    }
    let Some(stribeck) = &servo.stribeck else {
        return Ok(());
    };
    for (key, value, range) in [
        ("stribeck.friction_n_m", stribeck.friction_n_m, &torque),
        (
            "stribeck.friction_per_load",
            stribeck.friction_per_load,
            &(0.0..=1.0),
        ),
        ("stribeck.speed_rad_s", stribeck.speed_rad_s, &(1e-3..=10.0)),
        ("stribeck.exponent", stribeck.exponent, &(0.1..=4.0)),
    ] {
        check_figure(key, value, range)?;
    }
    Ok(())
}

fn check_figure(key: &str, value: Finite, range: &RangeInclusive<f64>) -> Result<(), ArmFault> {
    OutOfRange::check(|| format!("simulation.servo: {key}"), value, range)?;
    Ok(())
}
