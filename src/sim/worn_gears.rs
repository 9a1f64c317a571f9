//! Worn gears: joints on one side of their play, servos that sag and stick, and zeros that drift.

use std::f64::consts::TAU;

use arm::{ArmModel, CarriedMass, GearWear, GravityLoad};
use base::units::JointVector;
use kin::KinematicChain;

use super::fault_injection::FaultRng;

/// Supply voltage to which the sag refers.
const NOMINAL_V: f64 = 12.0;

/// Temperature at which the zeros do not deviate.
const ZEROED_AT_C: f64 = 25.0;

/// Speed at which a joint falls through its play.
const FALL_RAD_S: f64 = 0.5;

/// Periods of the play's variation in one revolution of a joint.
const PLAY_PERIODS: f64 = 3.0;

/// Wear of a whole arm, and the load that its posture puts on its joints.
#[derive(Clone, Debug)]
pub(crate) struct WornGears {
    chain: KinematicChain,
    masses: GravityLoad,
    joints: Vec<JointWear>,
    bearing_friction_n_m: f64,
    servo_friction_n_m: f64,
    servo_friction_per_load: f64,
    sag_rad_per_n_m: f64,
    supply_ratio: f64,
    torque_n_m: JointVector,
}

#[derive(Clone, Copy, Debug)]
struct JointWear {
    play_rad: f64,
    variation: f64,
    phase_rad: f64,
    drift_rad_per_k: f64,
}

impl WornGears {
    pub(crate) fn new(arm: &ArmModel, wear: &GearWear) -> Self {
        let mut rng = FaultRng::new(u64::from(wear.seed));
        let joints = (0..arm.dof()).map(|_| JointWear::draw(wear, &mut rng));
        Self {
            joints: joints.collect(),
            chain: arm.chain.clone(),
            masses: masses(arm, wear),
            bearing_friction_n_m: wear.bearing_friction_n_m.get(),
            servo_friction_n_m: wear.servo_friction_n_m.get(),
            servo_friction_per_load: wear.servo_friction_per_load.get(),
            sag_rad_per_n_m: wear.sag_deg_per_n_m.get().to_radians(),
            supply_ratio: 1.0,
            torque_n_m: JointVector::zeros(arm.dof()),
        }
    }

    /// Updates the torque of gravity on each joint for a posture.
    pub(crate) fn set_posture(&mut self, joints_rad: &JointVector, supply_v: f64) {
        self.supply_ratio = NOMINAL_V / supply_v.max(1.0);
        self.torque_n_m = self.masses.torque_n_m(&self.chain, joints_rad);
    }

    fn load_n_m(&self, joint: usize) -> f64 {
        self.torque_n_m.get(joint).copied().unwrap_or(0.0)
    }

    /// Returns the angle by which a servo deviates from its goal under the load of its joint, as its encoder measures it.
    pub(crate) fn sag_rad(&self, joint: usize) -> f64 {
        self.load_n_m(joint) * self.sag_rad_per_n_m * self.supply_ratio
    }

    /// Returns the error that friction within the servo leaves uncorrected.
    pub(crate) fn stick_rad(&self, joint: usize) -> f64 {
        if joint >= self.joints.len() {
            return 0.0;
        }
        let per_load = self.servo_friction_per_load * self.load_n_m(joint).abs();
        (self.servo_friction_n_m + per_load) * self.sag_rad_per_n_m * self.supply_ratio
    }

    /// Returns the play of a joint at an angle, total.
    pub(crate) fn play_rad(&self, joint: usize, at_rad: f64) -> f64 {
        let wear = self.joints.get(joint);
        wear.map_or(0.0, |wear| wear.play_at_rad(at_rad))
    }

    /// Returns a joint's angle after a step in which its servo has turned to `angle_rad`, given its previous angle.
    pub(crate) fn settle(
        &self,
        joint: usize,
        previous_rad: f64,
        angle_rad: f64,
        temperature_c: f64,
        step_s: f64,
    ) -> f64 {
        let Some(wear) = self.joints.get(joint) else {
            return angle_rad;
        };
        let centre_rad = angle_rad + wear.drift_rad_per_k * (temperature_c - ZEROED_AT_C);
        let half_rad = wear.play_at_rad(angle_rad) / 2.0;
        let load_n_m = self.load_n_m(joint);
        let is_falling = load_n_m.abs() > self.bearing_friction_n_m;
        let fallen_rad = if is_falling {
            previous_rad + load_n_m.signum() * FALL_RAD_S * step_s
        } else {
            previous_rad
        };
        fallen_rad.clamp(centre_rad - half_rad, centre_rad + half_rad)
    }
}

impl JointWear {
    fn draw(wear: &GearWear, rng: &mut FaultRng) -> Self {
        let spread = wear.play_spread.get();
        Self {
            play_rad: wear.play_deg.get().to_radians() * (1.0 + spread * rng.signed()),
            variation: spread * rng.signed(),
            phase_rad: TAU * rng.signed(),
            drift_rad_per_k: wear.zero_drift_deg_per_k.get().to_radians() * rng.signed(),
        }
    }

    /// Returns the play at an angle, total.
    fn play_at_rad(&self, angle_rad: f64) -> f64 {
        let wave = (PLAY_PERIODS * angle_rad + self.phase_rad).sin();
        self.play_rad * (1.0 + self.variation * wave)
    }
}

/// Returns the masses of the capsules that have one, and the payload.
fn masses(arm: &ArmModel, wear: &GearWear) -> GravityLoad {
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
    GravityLoad::new(parts.chain([payload]).collect())
}
