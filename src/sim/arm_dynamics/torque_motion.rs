//! Motion of axles whose servos are measured ones: by their torques, against friction, gravity and the sheet.

use base::units::JointVector;

use super::{ArmDynamics, STEP_S, ServoUnit, ticks_per_radian};
use crate::servo_motor::{AxleForces, GoalProfile, ServoMotor};
use crate::sheet_contact::TipContact;

/// Steps after which the inertia of the posture is computed anew.
const INERTIA_STEPS: u32 = 10;

/// What moves an arm with measured servos.
#[derive(Clone, Debug)]
pub(super) struct TorqueMotion {
    motor: ServoMotor,
    /// Torque of a touched sheet on each joint.
    contact_n_m: JointVector,
    /// True if the last step moved nothing and changed no torque.
    has_settled: bool,
    /// The supply of that step.
    supply_v: f64,
    steps: u32,
}

impl TorqueMotion {
    pub(super) fn new(motor: ServoMotor, dof: usize) -> Self {
        Self {
            motor,
            contact_n_m: JointVector::zeros(dof),
            has_settled: false,
            supply_v: 0.0,
            steps: 0,
        }
    }

    /// Wakes an arm that had settled.
    pub(super) fn disturb(&mut self) {
        self.has_settled = false;
    }

    pub(super) fn is_still(&self, supply_v: f64) -> bool {
        self.has_settled && (self.supply_v - supply_v).abs() < 1e-9
    }

    /// Takes over the torque with which a sheet acts on the joints.
    pub(super) fn touch(&mut self, contact: Option<&TipContact>, speed_rad_s: &JointVector) {
        let torque_n_m = match contact {
            Some(contact) => contact.torque_n_m(speed_rad_s),
            None => self.contact_n_m.map(|_, _| 0.0),
        };
        self.has_settled &= self.contact_n_m == torque_n_m;
        self.contact_n_m = torque_n_m;
    }
}

impl ArmDynamics {
    /// Moves all axles by a step of their servos' torques.
    pub(super) fn step_by_torque(&mut self, mut motion: TorqueMotion) {
        let joints_rad = self.free_rad();
        if motion.steps.is_multiple_of(INERTIA_STEPS) {
            self.posture.set_inertia(&joints_rad);
        }
        motion.steps = motion.steps.wrapping_add(1);
        motion.supply_v = self.supply_v;
        motion.has_settled = true;
        for index in 0..self.axles.len() {
            motion.has_settled &= self.step_axle(index, &motion);
        }
        motion.has_settled &= self.has_settled;
        self.torque_motion = Some(motion);
    }

    /// Moves an axle by a step, and returns whether it stands and would stand after another.
    fn step_axle(&mut self, index: usize, motion: &TorqueMotion) -> bool {
        let Some(axle) = self.axles.get(index).copied() else {
            return true;
        };
        let (forces, is_steady) = self.forces(index, axle.angle_rad, motion);
        // A limp arm stays in place: somebody holds it, or it lies.
        let is_limp = forces.energised <= 0.0 && !self.is_falling(index);
        let velocity_rad_s = if is_limp {
            0.0
        } else {
            motion
                .motor
                .next_velocity(axle.velocity_rad_s, &forces, STEP_S)
        };
        let angle_rad = axle.angle_rad + velocity_rad_s * STEP_S;
        self.place_axle(index, angle_rad);
        // At a turn it stands for one step.
        is_steady && axle.velocity_rad_s == 0.0 && velocity_rad_s == 0.0
    }

    /// Returns whether an axle's servos have lost their torque while the arm stands by itself.
    fn is_falling(&self, axle: usize) -> bool {
        self.units
            .iter()
            .any(|unit| unit.axle == axle && unit.is_broken && unit.drive.torque_on)
    }

    /// Lets an axle's servos compute their duties; returns what acts on it, and whether the servos are steady.
    fn forces(
        &mut self,
        index: usize,
        angle_rad: f64,
        motion: &TorqueMotion,
    ) -> (AxleForces, bool) {
        let contact_n_m = motion.contact_n_m.get(index).copied().unwrap_or(0.0);
        let mut forces = AxleForces {
            drive_n_m: 0.0,
            energised: 0.0,
            servos: 0.0,
            load_n_m: self.posture.torque_n_m(index) + contact_n_m,
            inertia_kg_m2: self.posture.inertia_kg_m2(index),
        };
        let stall_n_m = motion.motor.stall_n_m() * self.supply_v / self.nominal_v;
        let speed_max_rad_s = self.speed_max_rad_s;
        let mut is_steady = true;
        for unit in self.units.iter_mut().filter(|unit| unit.axle == index) {
            forces.servos += 1.0;
            if unit.is_driving() {
                unit.regulate(angle_rad, &motion.motor, speed_max_rad_s);
                forces.energised += 1.0;
                forces.drive_n_m += unit.firmware.duty * f64::from(unit.servo.sign) * stall_n_m;
            } else {
                unit.firmware.switch_off();
            }
            unit.load_ratio = unit.firmware.duty;
            is_steady &= unit.firmware.is_steady(unit.drive.goal_ticks);
        }
        (forces, is_steady)
    }
}

impl ServoUnit {
    fn is_driving(&self) -> bool {
        self.drive.torque_on && !self.is_broken
    }

    fn regulate(&mut self, angle_rad: f64, motor: &ServoMotor, speed_max_rad_s: f64) {
        let scale = ticks_per_radian(self.servo);
        let drive = self.drive;
        let profile = GoalProfile {
            goal_ticks: drive.goal_ticks,
            speed_ticks_s: drive.speed_ticks_s.min(speed_max_rad_s * scale.abs()),
            acceleration_ticks_s2: drive.acceleration_ticks_s2,
        };
        self.firmware.step(
            &profile,
            &drive.regulator,
            (motor.duty_per_tick(scale), drive.torque_ratio),
            f64::from(self.servo.zero_tick) + scale * angle_rad,
            STEP_S,
        );
    }
}
