//! The wear of simulated servos: play behind the encoder, friction, sag and drift of the zeros.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ArmFault, ArmFile};
use base::units::{Finite, OutOfRange};

/// Physics of worn servos in a simulated arm.
///
/// The encoder sits on the servo's output: it sees sag and friction, and neither play nor the drift of the zeros,
/// which lie between it and the joint.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GearWear {
    /// Seed of the differences between joints and around a servo's revolution.
    pub seed: u32,
    /// Mean play between encoder and joint, total.
    pub play_deg: Finite,
    /// Largest fraction by which play differs between joints, and again around a servo's revolution.
    pub play_spread: Finite,
    /// Gravity torque above which a joint hangs on one side of its play instead of being held by friction.
    pub bearing_friction_n_m: Finite,
    /// Friction within the servo, where `simulation.servo` does not say it: it does not correct an error that calls for less torque.
    #[serde(default)]
    pub servo_friction_n_m: Finite,
    /// Additional friction within the servo for each newton metre of load.
    #[serde(default)]
    pub servo_friction_per_load: Finite,
    /// Yielding of the servo under load at 12 V, where `simulation.servo` does not say it; a lower supply yields more.
    #[serde(default)]
    pub sag_deg_per_n_m: Finite,
    /// Largest drift of a joint's zero for each kelvin above 25 °C.
    pub zero_drift_deg_per_k: Finite,
    /// Masses of capsules by name, each at the midpoint of its axis. With no mass here the arm's own masses load the joints.
    #[serde(default)]
    pub masses_g: BTreeMap<String, Finite>,
    /// Mass at the tool mount.
    #[serde(default)]
    pub payload_g: Finite,
}

/// Checks that every figure is plausible for a hobby arm.
pub(super) fn check(file: &ArmFile) -> Result<(), ArmFault> {
    let Some(wear) = &file.simulation.wear else {
        return Ok(());
    };
    if file.simulation.backlash_deg.get() > 0.0 {
        return Err(ArmFault::PlayTwice);
    }
    let friction_n_m = 0.0..=10.0;
    for (key, value, range) in [
        ("play_deg", wear.play_deg, &(0.0..=5.0)),
        ("play_spread", wear.play_spread, &(0.0..=0.5)),
        (
            "bearing_friction_n_m",
            wear.bearing_friction_n_m,
            &friction_n_m,
        ),
        ("servo_friction_n_m", wear.servo_friction_n_m, &friction_n_m),
        (
            "servo_friction_per_load",
            wear.servo_friction_per_load,
            &(0.0..=1.0),
        ),
        ("sag_deg_per_n_m", wear.sag_deg_per_n_m, &(0.0..=5.0)),
        (
            "zero_drift_deg_per_k",
            wear.zero_drift_deg_per_k,
            &(0.0..=0.1),
        ),
        ("payload_g", wear.payload_g, &MASS_RANGE_G),
    ] {
        check_figure(key, value, range)?;
    }
    wear.masses_g.iter().try_for_each(|(name, mass_g)| {
        if !file.capsules.iter().any(|capsule| capsule.name == *name) {
            return Err(ArmFault::MassOfNone(name.clone()));
        }
        check_figure(name, *mass_g, &MASS_RANGE_G)
    })
}

/// Masses of parts of arms on a table.
const MASS_RANGE_G: RangeInclusive<f64> = 0.0..=5_000.0;

fn check_figure(key: &str, value: Finite, range: &RangeInclusive<f64>) -> Result<(), ArmFault> {
    OutOfRange::check(|| format!("simulation.wear: {key}"), value, range)?;
    Ok(())
}
