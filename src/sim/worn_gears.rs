//! Worn gears: joints on one side of their play, servos that sag and stick, and zeros that drift.

use std::f64::consts::TAU;

use arm::{ArmModel, GearWear};

use super::fault_injection::FaultRng;

/// Temperature at which the zeros do not deviate.
const ZEROED_AT_C: f64 = 25.0;

/// Angle by which a joint falls through its play in a step of a millisecond.
const FALL_RAD: f64 = 0.0005;

/// Periods of the play's variation in one revolution of a joint.
const PLAY_PERIODS: f64 = 3.0;

/// Wear of a whole arm.
#[derive(Clone, Debug)]
pub(crate) struct WornGears {
    joints: Vec<JointWear>,
    bearing_friction_n_m: f64,
    servo_friction_n_m: f64,
    servo_friction_per_load: f64,
    sag_rad_per_n_m: f64,
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
            bearing_friction_n_m: wear.bearing_friction_n_m.get(),
            servo_friction_n_m: wear.servo_friction_n_m.get(),
            servo_friction_per_load: wear.servo_friction_per_load.get(),
            sag_rad_per_n_m: wear.sag_deg_per_n_m.get().to_radians(),
        }
    }

    /// Returns the angle by which a servo deviates from its goal under a load, as its encoder measures it.
    pub(crate) fn sag_rad(&self, load_n_m: f64) -> f64 {
        load_n_m * self.sag_rad_per_n_m
    }

    /// Returns the error that friction within a joint's servo leaves uncorrected under a load.
    pub(crate) fn stick_rad(&self, joint: usize, load_n_m: f64) -> f64 {
        if joint >= self.joints.len() {
            return 0.0;
        }
        let per_load = self.servo_friction_per_load * load_n_m.abs();
        (self.servo_friction_n_m + per_load) * self.sag_rad_per_n_m
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
        (previous_rad, angle_rad): (f64, f64),
        load_n_m: f64,
        temperature_c: f64,
    ) -> f64 {
        let Some(wear) = self.joints.get(joint) else {
            return angle_rad;
        };
        let centre_rad = angle_rad + wear.drift_rad_per_k * (temperature_c - ZEROED_AT_C);
        let half_rad = wear.play_at_rad(angle_rad) / 2.0;
        let is_falling = load_n_m.abs() > self.bearing_friction_n_m;
        let fallen_rad = if is_falling {
            previous_rad + load_n_m.signum() * FALL_RAD
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
