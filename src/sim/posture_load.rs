//! Load of a posture on an arm's joints: the gravity of what they carry, and its inertia.

use arm::{ArmModel, CarriedMass, GearWear, GravityLoad};
use base::units::JointVector;
use kin::KinematicChain;
use nalgebra::Vector3;

/// What the joints carry in the present posture.
#[derive(Clone, Debug)]
pub(crate) struct PostureLoad {
    chain: KinematicChain,
    masses: GravityLoad,
    /// Force of somebody who pushes the tool mount.
    push_n: Vector3<f64>,
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
            push_n: Vector3::zeros(),
            torque_n_m: JointVector::zeros(arm.dof()),
            inertia_kg_m2: JointVector::zeros(arm.dof()),
        }
    }

    /// Lets a force act on the tool mount.
    pub(crate) fn push(&mut self, force_n: [f64; 3]) {
        self.push_n = force_n.into();
    }

    /// Computes the torques of gravity and of a push for a posture.
    pub(crate) fn set_posture(&mut self, joints_rad: &JointVector) {
        self.torque_n_m = self.masses.torque_n_m(&self.chain, joints_rad);
        if self.push_n.norm_squared() > 0.0 {
            let pushed = self.pushed_n_m(joints_rad);
            self.torque_n_m = self.torque_n_m.zip(&pushed, |weight, push| weight + push);
        }
    }

    fn pushed_n_m(&self, joints_rad: &JointVector) -> JointVector {
        let frames = self.chain.frames(joints_rad);
        let at = frames.tool.translation.vector;
        let joints = self.chain.joints().iter().zip(frames.iter().skip(1));
        let torques = joints.map(|(joint, frame)| {
            let lever_m = at - frame.translation.vector;
            (frame.rotation * joint.axis).dot(&lever_m.cross(&self.push_n))
        });
        JointVector::from_slice(&torques.collect::<Vec<f64>>())
    }

    /// Computes the inertia for a posture.
    pub(crate) fn set_inertia(&mut self, joints_rad: &JointVector) {
        self.inertia_kg_m2 = self.masses.inertia_kg_m2(&self.chain, joints_rad);
    }

    /// Returns the torque of gravity and of a push on a joint.
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
