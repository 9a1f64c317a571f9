//! Computes the torque on a joint that neither gravity nor inertia explains, from the load that its servos report.

use arm::{ArmModel, ServoFigures};
use base::units::ArmMeasurement;

/// Time constant with which readings are smoothed: some ten of them.
const FILTER_S: f64 = 0.1;

/// The most that is learned of a torque in the air: a payload, cables, friction.
const LEARNED_MAX_N_M: f64 = 0.5;

/// A joint whose servos' figures are known.
#[derive(Debug)]
pub(super) struct JointTorque {
    /// Each servo's place among the arm's, and its sense of rotation.
    servos: Vec<(usize, f64)>,
    stall_volts: f64,
    armature_kg_m2: f64,
    carried_n_m: LowPass,
    position_rad: LowPass,
    goal_rad: LowPass,
    goal_rad_s: LowPass,
    learned_n_m: f64,
}

/// A reading of one joint, and what is expected of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct JointReading<'a> {
    pub(super) measured: &'a ArmMeasurement,
    pub(super) position_rad: f64,
    pub(super) goal_rad: f64,
    pub(super) gravity_n_m: f64,
    /// Torque of one servo with full load.
    pub(super) strength_n_m: f64,
    pub(super) period_s: f64,
}

/// A joint's motion, and the torque of its motors beyond gravity, inertia and what was learned.
#[derive(Clone, Copy, Debug)]
pub(super) struct MovedTorque {
    pub(super) torque_n_m: f64,
    pub(super) speed_rad_s: f64,
    /// Supply over that of the servos' figures.
    pub(super) supply_ratio: f64,
}

/// A value behind a first-order low pass.
#[derive(Debug, Default)]
struct LowPass(Option<f64>);

impl LowPass {
    fn update(&mut self, value: f64, period_s: f64) -> f64 {
        let before = self.0.unwrap_or(value);
        let now = before + period_s / (FILTER_S + period_s) * (value - before);
        self.0 = Some(now);
        now
    }

    /// Returns the derivative of the value, as smooth as the value behind the low pass.
    fn rate(&mut self, value: f64, period_s: f64) -> f64 {
        (value - self.update(value, period_s)) / FILTER_S
    }
}

impl JointTorque {
    pub(super) fn new(arm: &ArmModel, figures: &ServoFigures, joint: usize) -> Self {
        let stall_volts = figures.stall_volts.get();
        let servos = arm.servos().enumerate();
        let servos = servos.filter(|(_, (index, _))| *index == joint);
        let servos: Vec<(usize, f64)> = servos
            .map(|(place, (_, servo))| (place, f64::from(servo.sign)))
            .collect();
        Self {
            armature_kg_m2: figures.armature_kg_m2.get() * servos.len() as f64,
            servos,
            stall_volts,
            carried_n_m: LowPass::default(),
            position_rad: LowPass::default(),
            goal_rad: LowPass::default(),
            goal_rad_s: LowPass::default(),
            learned_n_m: 0.0,
        }
    }

    /// Returns the number of servos that turn it.
    pub(super) fn servos(&self) -> f64 {
        self.servos.len() as f64
    }

    /// Evaluates a reading; `None` where a load is missing.
    pub(super) fn update(&mut self, reading: &JointReading<'_>) -> Option<MovedTorque> {
        let (motor_n_m, volts) = self.motor_n_m(reading.measured, reading.strength_n_m)?;
        let period_s = reading.period_s;
        let carried_n_m = (self.carried_n_m).update(motor_n_m + reading.gravity_n_m, period_s);
        let speed_rad_s = self.position_rad.rate(reading.position_rad, period_s);
        let goal_rad_s = self.goal_rad.rate(reading.goal_rad, period_s);
        let inertia_n_m = self.armature_kg_m2 * self.goal_rad_s.rate(goal_rad_s, period_s);
        Some(MovedTorque {
            torque_n_m: carried_n_m - inertia_n_m - self.learned_n_m,
            speed_rad_s,
            supply_ratio: volts / self.stall_volts,
        })
    }

    /// Learns a torque that is left in the air.
    pub(super) fn learn(&mut self, torque_n_m: f64, fraction: f64) {
        let learned_n_m = self.learned_n_m + fraction * torque_n_m;
        self.learned_n_m = learned_n_m.clamp(-LEARNED_MAX_N_M, LEARNED_MAX_N_M);
    }

    /// Returns the torque of motors and gravity as it was read.
    pub(super) fn carried_n_m(
        &self,
        measured: &ArmMeasurement,
        gravity_n_m: f64,
        strength_n_m: f64,
    ) -> Option<f64> {
        Some(self.motor_n_m(measured, strength_n_m)?.0 + gravity_n_m)
    }

    /// Returns the torque that the servos report to give, and the highest supply.
    fn motor_n_m(&self, measured: &ArmMeasurement, strength_n_m: f64) -> Option<(f64, f64)> {
        let mut sum = (0.0, 0.0);
        for (place, sign) in &self.servos {
            let state = measured.servos.get(*place)?;
            let volts = state.voltage_v.unwrap_or(self.stall_volts);
            let load = state.load_ratio.filter(|load| load.is_finite())?;
            sum = (sum.0 + load * sign * strength_n_m, volts.max(sum.1));
        }
        Some(sum)
    }
}
