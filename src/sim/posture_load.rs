//! Load of a posture on an arm's joints: the gravity of what they carry, and its inertia.

use arm::{ArmModel, CarriedMass, GearWear, GravityLoad};
use base::units::JointVector;
use kin::KinematicChain;

/// What the joints carry in the present posture.
#[derive(Clone, Debug)]
pub(crate) struct PostureLoad {
    chain: KinematicChain,
    masses: GravityLoad,
    torque_n_m: JointVector,
    inertia_kg_m2: JointVector,
}

impl PostureLoad {
    pub(crate) fn new(arm: &ArmModel) -> Self {
        let of_wear = arm.file.simulation.wear.as_ref();
        let of_wear = of_wear.and_then(|wear| masses_of_wear(arm, wear));
        Self {
            chain: arm.chain.clone(),
            masses: of_wear.unwrap_or_else(|| arm.load.clone()),
            torque_n_m: JointVector::zeros(arm.dof()),
            inertia_kg_m2: JointVector::zeros(arm.dof()),
        }
    }

    /// Computes the torque of gravity for a posture.
    pub(crate) fn set_posture(&mut self, joints_rad: &JointVector) {
        self.torque_n_m = self.masses.torque_n_m(&self.chain, joints_rad);
    }

    /// Computes the inertia for a posture.
    pub(crate) fn set_inertia(&mut self, joints_rad: &JointVector) {
        self.inertia_kg_m2 = self.masses.inertia_kg_m2(&self.chain, joints_rad);
    }

    /// Returns the torque of gravity on a joint.
    pub(crate) fn torque_n_m(&self, joint: usize) -> f64 {
        self.torque_n_m.get(joint).copied().unwrap_or(0.0)
    }

    /// Returns the inertia around a joint's axis.
    pub(crate) fn inertia_kg_m2(&self, joint: usize) -> f64 {
        self.inertia_kg_m2.get(joint).copied().unwrap_or(0.0)
    }
}

/// Returns the masses that a worn arm names itself: of its capsules, and the payload.
fn masses_of_wear(arm: &ArmModel, wear: &GearWear) -> Option<GravityLoad> {
    if wear.masses_g.is_empty() && wear.payload_g.get() <= 0.0 {
        return None;
    }
    let parts = arm.capsules.iter().filter_map(|capsule| {
        Some(CarriedMass {
            joints_before: capsule.joints_before,
            centre_m: Some(nalgebra::center(&capsule.from_m, &capsule.to_m)),
            mass_kg: wear.masses_g.get(&capsule.name)?.get() / 1000.0,
        })
    });
    let payload = CarriedMass {
        joints_before: arm.dof(),
        centre_m: None,
        mass_kg: wear.payload_g.get() / 1000.0,
    };
    Some(GravityLoad::new(parts.chain([payload]).collect()))
}
