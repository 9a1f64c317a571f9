//! Masses of an arm's links, for the torque of gravity on its joints.

use nalgebra::{Point3, center};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

use super::gravity_load::{CarriedMass, GravityLoad};
use super::{ArmFault, ArmFile, Capsule, vector};
use base::units::{Finite, OutOfRange};

/// A mass that moves with a joint; a link may have several.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkMass {
    /// The joint that moves it.
    pub joint: String,
    /// Its mass, 0 to 20000.
    pub mass_g: Finite,
    /// Its centre, in the frame that the joint moves.
    pub centre_m: [Finite; 3],
}

/// Density of water, with which the capsules of an arm without masses are filled.
const DENSITY_KG_M3: f64 = 1_000.0;

/// Returns the load of the arm's masses; of a file without masses that of capsules filled with water, to which the sag in
/// such a file refers.
pub(super) fn load(file: &ArmFile, capsules: &[Capsule]) -> GravityLoad {
    if file.masses.is_empty() {
        return GravityLoad::new(capsules.iter().map(filled_with_water).collect());
    }
    let masses = file.masses.iter().filter_map(|mass| {
        let index = file
            .joints
            .iter()
            .position(|joint| joint.name == mass.joint)?;
        Some(CarriedMass {
            joints_before: index + 1,
            centre_m: Some(vector(mass.centre_m).into()),
            mass_kg: mass.mass_g.get() / 1e3,
        })
    });
    GravityLoad::new(masses.collect())
}

fn filled_with_water(capsule: &Capsule) -> CarriedMass {
    let length_m = (capsule.to_m - capsule.from_m).norm();
    let volume_m3 = PI * capsule.radius_m.powi(2) * (length_m + 4.0 / 3.0 * capsule.radius_m);
    let centre_m: Point3<f64> = center(&capsule.from_m, &capsule.to_m);
    CarriedMass {
        joints_before: capsule.joints_before,
        centre_m: Some(centre_m),
        mass_kg: DENSITY_KG_M3 * volume_m3,
    }
}

pub(super) fn check(file: &ArmFile) -> Result<(), ArmFault> {
    file.masses.iter().try_for_each(|mass| {
        if !file.joints.iter().any(|joint| joint.name == mass.joint) {
            return Err(ArmFault::MassJoint(mass.joint.clone()));
        }
        OutOfRange::check(
            || format!("masses: mass_g of {}", mass.joint),
            mass.mass_g,
            &(0.0..=20_000.0),
        )?;
        Ok(())
    })
}
