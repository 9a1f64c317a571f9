//! Motion of the simulated arm: servos that follow their goals, gears with play, and an arm that
//! may be blocked, or held back by the sheet on which its tip presses.
//!
//! Everything happens on a grid of one millisecond of the clock, so that the arm's motion does not
//! depend on the times at which it is observed. A measured servo (`servo` or `simulation.servo`) moves by its torque against friction,
//! gravity and the sheet; another follows its goal with a first-order lag, within its commanded speed and acceleration, and
//! there gravity acts only on worn gears. A limp arm stays in place.

use std::f64::consts::TAU;
use std::time::Duration;

use super::posture_load::PostureLoad;
use super::servo_motor::{FirmwareState, ServoMotor, ServoRegulator};
use super::sheet_contact::{ContactReaction, JointHolding, TipContact};
use super::worn_gears::WornGears;
use arm::{ArmModel, ServoFile};
use base::units::{ClockInstant, JointVector};

mod torque_motion;

use torque_motion::TorqueMotion;

/// Time step of the simulated motion.
pub(crate) const STEP: Duration = Duration::from_millis(1);

const STEP_S: f64 = 0.001;
const STEP_NANOS: u64 = 1_000_000;

/// Supply of servos of which no figures are known.
const USUAL_SUPPLY_V: f64 = 12.0;

/// Room temperature.
const AMBIENT_C: f64 = 25.0;

/// Final temperature rise of a servo at full load.
const HEATING_C: f64 = 60.0;

/// Time constant of the heating.
const HEATING_S: f64 = 300.0;

/// Error at which a servo applies its full torque.
const FULL_LOAD_TICKS: f64 = 100.0;

/// Current of one servo at full load and without load.
const CURRENT_A: (f64, f64) = (2.0, 0.02);

/// Internal resistance of the supply.
const SUPPLY_OHM: f64 = 0.05;

/// Commands to a servo, in its own ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ServoDrive {
    pub(crate) torque_on: bool,
    pub(crate) goal_ticks: f64,
    /// Infinite for no limit but the servo's own.
    pub(crate) speed_ticks_s: f64,
    /// Infinite for no limit but the servo's own.
    pub(crate) acceleration_ticks_s2: f64,
    /// Fraction of its stall torque that it may use.
    pub(crate) torque_ratio: f64,
    pub(crate) regulator: ServoRegulator,
}

impl ServoDrive {
    /// Returns the fraction of its torque with which a servo follows its goal with a lag.
    fn ratio(&self) -> f64 {
        if self.regulator.has_tripped() {
            0.0
        } else {
            self.torque_ratio
        }
    }
}

/// Readings of a servo, in its own ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ServoReadings {
    pub(crate) ticks: f64,
    pub(crate) speed_ticks_s: f64,
    /// Signed fraction of its stall torque.
    pub(crate) load_ratio: f64,
    pub(crate) current_a: f64,
    pub(crate) voltage_v: f64,
    pub(crate) temperature_c: f64,
    pub(crate) moving: bool,
}

#[derive(Clone, Debug)]
struct ServoUnit {
    axle: usize,
    servo: ServoFile,
    drive: ServoDrive,
    firmware: FirmwareState,
    /// True if its motor gives no torque, whatever its registers say.
    is_broken: bool,
    load_ratio: f64,
    temperature_c: f64,
}

/// An axle with its servos; the first ones are the arm's joints.
#[derive(Clone, Copy, Debug, Default)]
struct SimulatedAxle {
    angle_rad: f64,
    velocity_rad_s: f64,
    /// Angle beyond the play of the gears.
    joint_rad: f64,
    blocked_at_rad: Option<(f64, f64)>,
}

/// All axles with their servos.
#[derive(Clone, Debug)]
pub(crate) struct ArmDynamics {
    axles: Vec<SimulatedAxle>,
    units: Vec<ServoUnit>,
    dof: usize,
    lag_s: f64,
    speed_max_rad_s: f64,
    dead_band_ticks: f64,
    play_rad: f64,
    wear: Option<WornGears>,
    posture: PostureLoad,
    /// With measured servos only.
    torque_motion: Option<TorqueMotion>,
    /// True if no worn joint is still falling through its play.
    has_settled: bool,
    pub(crate) supply_v: f64,
    /// The supply to which the figures of its servos refer, with which it begins.
    nominal_v: f64,
    /// Reaction of the sheet on the joints, and the speed at which their deflection changes.
    reaction: ContactReaction,
    deflection_rad_s: JointVector,
    /// The last whole step.
    now: ClockInstant,
    /// The time to which it was last advanced.
    at: ClockInstant,
}

impl ArmDynamics {
    pub(crate) fn new(arm: &ArmModel, start_rad: &JointVector) -> Self {
        let simulation = &arm.file.simulation;
        let measured_servo = arm.file.simulated_servo();
        let stall_volts = arm.file.servo.as_ref().map(|servo| servo.stall_volts.get());
        let nominal_v = stall_volts.unwrap_or(USUAL_SUPPLY_V);
        let mut units: Vec<ServoUnit> = arm
            .servos()
            .map(|(axle, servo)| unit(axle, servo))
            .collect();
        let held = (arm.dof()..).zip(&arm.file.held);
        units.extend(held.map(|(axle, held)| unit(axle, held_servo(held.id))));
        let axles = (0..arm.dof() + arm.file.held.len()).map(|axle| {
            let angle_rad = start_rad.get(axle).copied().unwrap_or(0.0);
            SimulatedAxle {
                angle_rad,
                joint_rad: angle_rad,
                ..SimulatedAxle::default()
            }
        });
        Self {
            axles: axles.collect(),
            units,
            dof: arm.dof(),
            lag_s: simulation.lag_s.get().max(STEP_S),
            speed_max_rad_s: simulation.speed_max_rad_s.get(),
            dead_band_ticks: f64::from(simulation.dead_band_ticks),
            play_rad: simulation.backlash_deg.get().to_radians().max(0.0),
            wear: simulation
                .wear
                .as_ref()
                .map(|wear| WornGears::new(arm, wear)),
            posture: PostureLoad::new(arm),
            torque_motion: measured_servo
                .as_ref()
                .map(|servo| TorqueMotion::new(ServoMotor::new(servo), arm.dof())),
            has_settled: simulation.wear.is_none(),
            supply_v: nominal_v,
            nominal_v,
            reaction: no_reaction(arm.dof()),
            deflection_rad_s: JointVector::zeros(arm.dof()),
            now: ClockInstant::ZERO,
            at: ClockInstant::ZERO,
        }
    }

    /// Returns whether its servos yield as measured ones do.
    pub(crate) fn has_measured_servos(&self) -> bool {
        self.torque_motion.is_some()
    }

    /// Returns all servos, the held ones last.
    pub(crate) fn servos(&self) -> impl Iterator<Item = ServoFile> {
        self.units.iter().map(|unit| unit.servo)
    }

    /// Advances to the last whole step before `to`. After every step in which something moved, `on_step`
    /// receives the joints without the sheet's reaction, and returns the contact of a tip with the sheet.
    pub(crate) fn advance(
        &mut self,
        to: ClockInstant,
        mut on_step: impl FnMut(&JointVector) -> Option<TipContact>,
    ) {
        self.at = self.at.max(to);
        while to.since(self.now) >= STEP {
            if self.is_still() {
                self.deflection_rad_s = JointVector::zeros(self.dof);
                self.skip_to(to);
                return;
            }
            self.update_gravity_load();
            match self.torque_motion.take() {
                Some(motion) => self.step_by_torque(motion),
                None => (0..self.axles.len()).for_each(|axle| self.step(axle)),
            }
            self.warm(STEP_S);
            self.now = self.now.after(STEP);
            let contact = on_step(&self.free_rad());
            self.touch(contact.as_ref());
        }
    }

    /// Lets a touched sheet act on the joints.
    fn touch(&mut self, contact: Option<&TipContact>) {
        let speeds: Vec<f64> = self.joints().map(|axle| axle.velocity_rad_s).collect();
        if let Some(motion) = &mut self.torque_motion {
            motion.touch(contact, &JointVector::from_slice(&speeds));
            return;
        }
        let reaction = match contact {
            Some(contact) => contact.reaction(&self.holding()),
            None => no_reaction(self.dof),
        };
        let previous = std::mem::replace(&mut self.reaction, reaction);
        let rate = |now: f64, previous: f64| (now - previous) / STEP_S;
        self.deflection_rad_s = reaction.deflection_rad.zip(&previous.deflection_rad, rate);
    }

    fn joints(&self) -> impl Iterator<Item = &SimulatedAxle> {
        self.axles.iter().take(self.dof)
    }

    /// Returns the time to which it was last advanced.
    pub(crate) fn at(&self) -> ClockInstant {
        self.at
    }

    /// Returns the true joint positions, including play and the sheet's reaction.
    pub(crate) fn truth_rad(&self) -> JointVector {
        let deflection_rad = self.reaction.deflection_rad;
        self.free_rad()
            .zip(&deflection_rad, |free, deflection| free + deflection)
    }

    /// Returns the joint positions without the sheet's reaction, including play.
    fn free_rad(&self) -> JointVector {
        let joints: Vec<f64> = self.joints().map(|axle| axle.joint_rad).collect();
        JointVector::from_slice(&joints)
    }

    /// Returns the play of a joint at an angle, total.
    pub(crate) fn play_rad(&self, joint: usize, at_rad: f64) -> f64 {
        let wear = self.wear.as_ref();
        wear.map_or(self.play_rad, |wear| wear.play_rad(joint, at_rad))
    }

    /// Turns an axle if all its servos are limp, and returns whether it turned.
    pub(crate) fn turn_by_hand(&mut self, axle: usize, to_rad: f64) -> bool {
        let is_held = self
            .units
            .iter()
            .any(|unit| unit.axle == axle && unit.drive.torque_on);
        let Some(turned) = self.axles.get_mut(axle).filter(|_| !is_held) else {
            return false;
        };
        (turned.angle_rad, turned.joint_rad, turned.velocity_rad_s) = (to_rad, to_rad, 0.0);
        if let Some(motion) = &mut self.torque_motion {
            motion.disturb();
        }
        let deflection_rad = &mut self.reaction.deflection_rad;
        *deflection_rad = deflection_rad.map(|joint, rad| if joint == axle { 0.0 } else { rad });
        true
    }

    /// Returns the readings of the servo at `place`, at most one step after the last.
    pub(crate) fn readings(&self, place: usize) -> Option<ServoReadings> {
        let unit = self.units.get(place)?;
        let axle = self.axles.get(unit.axle)?;
        let since_s = self.at.seconds_since(self.now).min(STEP_S);
        let scale = ticks_per_radian(unit.servo);
        let value = |joints: &JointVector| joints.get(unit.axle).copied().unwrap_or(0.0);
        let velocity_rad_s = axle.velocity_rad_s + value(&self.deflection_rad_s);
        let angle_rad =
            axle.angle_rad + value(&self.reaction.deflection_rad) + velocity_rad_s * since_s;
        let total_a: f64 = self.units.iter().map(|unit| self.current_a(unit)).sum();
        Some(ServoReadings {
            ticks: f64::from(unit.servo.zero_tick) + scale * angle_rad,
            speed_ticks_s: scale * velocity_rad_s,
            load_ratio: self.load_ratio(unit),
            current_a: self.current_a(unit),
            voltage_v: (self.supply_v - SUPPLY_OHM * total_a).max(0.0),
            temperature_c: unit.temperature_c,
            moving: velocity_rad_s.abs() > 1e-9,
        })
    }

    /// Returns the load of a servo, including a touched sheet.
    fn load_ratio(&self, unit: &ServoUnit) -> f64 {
        let most = unit.drive.ratio();
        let contact = self.reaction.load_ratio.get(unit.axle);
        let contact = contact.copied().unwrap_or(0.0);
        if !unit.drive.torque_on || self.torque_motion.is_some() {
            return unit.load_ratio;
        }
        (unit.load_ratio + f64::from(unit.servo.sign) * contact).clamp(-most, most)
    }

    fn current_a(&self, unit: &ServoUnit) -> f64 {
        let (full_a, idle_a) = CURRENT_A;
        idle_a + (full_a - idle_a) * self.load_ratio(unit).abs()
    }

    /// Returns the holding strength of each joint from its energised servos, limited by the weakest.
    fn holding(&self) -> Vec<JointHolding> {
        let holding = |axle: usize| {
            let units = self.units.iter().filter(move |unit| unit.axle == axle);
            let energised = units.filter(|unit| unit.drive.torque_on);
            let none = JointHolding {
                servos: 0.0,
                give_rad: 0.0,
                torque_ratio: f64::INFINITY,
            };
            energised.fold(none, |held, unit| JointHolding {
                servos: held.servos + 1.0,
                give_rad: FULL_LOAD_TICKS / ticks_per_radian(unit.servo).abs(),
                torque_ratio: held.torque_ratio.min(unit.drive.ratio()),
            })
        };
        (0..self.dof).map(holding).collect()
    }

    /// Sets the commands of the servo at `place`.
    pub(crate) fn drive(&mut self, place: usize, drive: ServoDrive) {
        if let Some(unit) = self.units.get_mut(place) {
            unit.drive = drive;
        }
        self.disturb();
    }

    /// Wakes an arm that had settled by its torques.
    fn disturb(&mut self) {
        if let Some(motion) = &mut self.torque_motion {
            motion.disturb();
        }
    }

    /// Returns whether a servo's protection has limited its torque.
    pub(crate) fn has_tripped(&self, place: usize) -> bool {
        let unit = self.units.get(place);
        unit.is_some_and(|unit| unit.firmware.has_tripped)
    }

    /// Takes the torque of a servo away, or gives it back; its registers do not show it. Only a measured servo can lose it.
    pub(crate) fn break_motor(&mut self, place: usize, is_broken: bool) {
        if let Some(unit) = self.units.get_mut(place) {
            unit.is_broken = is_broken;
        }
        self.disturb();
    }

    /// Pushes the tool mount with a force, in the base frame. Only measured servos feel it.
    pub(crate) fn push(&mut self, force_n: [f64; 3]) {
        if self.torque_motion.is_some() {
            self.posture.push(force_n);
        }
        self.disturb();
    }

    /// Puts an obstacle at an angle that a joint then cannot cross; `None` removes it.
    pub(crate) fn block(&mut self, joint: usize, at_rad: Option<f64>) {
        if let Some(axle) = self.axles.get_mut(joint) {
            axle.blocked_at_rad = at_rad.map(|at| {
                if axle.angle_rad <= at {
                    (f64::NEG_INFINITY, at)
                } else {
                    (at, f64::INFINITY)
                }
            });
        }
        self.disturb();
    }

    /// Sets a servo's temperature, from which it cools.
    pub(crate) fn heat(&mut self, place: usize, temperature_c: f64) {
        if let Some(unit) = self.units.get_mut(place) {
            unit.temperature_c = temperature_c;
        }
    }

    /// Returns whether nothing moves and no servo will move anything.
    fn is_still(&self) -> bool {
        if let Some(motion) = &self.torque_motion {
            return motion.is_still(self.supply_v);
        }
        let has_stopped = self
            .axles
            .iter()
            .all(|axle| axle.velocity_rad_s.abs() < 1e-12);
        let has_no_demand = |unit: &ServoUnit| self.demand_rad_s(unit).abs() < 1e-12;
        has_stopped && self.has_settled && self.units.iter().all(has_no_demand)
    }

    fn skip_to(&mut self, to: ClockInstant) {
        let steps = to.since(self.now).as_nanos() / u128::from(STEP_NANOS);
        let nanos = u64::try_from(steps)
            .unwrap_or(u64::MAX)
            .saturating_mul(STEP_NANOS);
        let elapsed = Duration::from_nanos(nanos);
        self.warm(elapsed.as_secs_f64());
        self.now = self.now.after(elapsed);
    }

    fn step(&mut self, index: usize) {
        let Some(axle) = self.axles.get(index).copied() else {
            return;
        };
        let (demand_rad_s, acceleration_rad_s2) = self.desired(index);
        let change = (demand_rad_s - axle.velocity_rad_s)
            .clamp(-acceleration_rad_s2 * STEP_S, acceleration_rad_s2 * STEP_S);
        let velocity_rad_s = axle.velocity_rad_s + change;
        let angle_rad = self.place_axle(index, axle.angle_rad + velocity_rad_s * STEP_S);
        self.update_loads(index, angle_rad);
    }

    /// Turns an axle to an angle within a step, as far as nothing stands in its way, and its joint with it.
    fn place_axle(&mut self, index: usize, angle_rad: f64) -> f64 {
        let half = self.play_rad / 2.0;
        let Some(axle) = self.axles.get_mut(index) else {
            return angle_rad;
        };
        let free = (f64::NEG_INFINITY, f64::INFINITY);
        let (low, high) = axle.blocked_at_rad.unwrap_or(free);
        let angle_rad = angle_rad.clamp(low, high);
        let previous_rad = axle.joint_rad;
        axle.velocity_rad_s = (angle_rad - axle.angle_rad) / STEP_S;
        axle.angle_rad = angle_rad;
        axle.joint_rad = previous_rad.clamp(angle_rad - half, angle_rad + half);
        self.settle(index, previous_rad);
        angle_rad
    }

    /// Updates the load of the posture on worn gears.
    fn update_gravity_load(&mut self) {
        if self.wear.is_some() || self.torque_motion.is_some() {
            let joints_rad = self.free_rad();
            self.posture.set_posture(&joints_rad);
            self.has_settled = true;
        }
    }

    /// Settles a worn joint within its play, from its angle before this step.
    fn settle(&mut self, index: usize, previous_rad: f64) {
        let is_on_axle = |unit: &&ServoUnit| unit.axle == index;
        let unit = self.units.iter().find(is_on_axle);
        let temperature_c = unit.map(|unit| unit.temperature_c);
        let (Some(wear), Some(axle)) = (&self.wear, self.axles.get_mut(index)) else {
            return;
        };
        let temperature_c = temperature_c.unwrap_or(AMBIENT_C);
        let load_n_m = self.posture.torque_n_m(index);
        let settled_rad = wear.settle(
            index,
            (previous_rad, axle.angle_rad),
            load_n_m,
            temperature_c,
        );
        self.has_settled &= (settled_rad - previous_rad).abs() < 1e-12;
        axle.joint_rad = settled_rad;
    }

    /// Returns the mean speed that the energised servos of an axle request, and the strictest acceleration.
    fn desired(&self, index: usize) -> (f64, f64) {
        let mut sum_rad_s = 0.0;
        let mut count = 0.0;
        let mut acceleration_rad_s2 = f64::INFINITY;
        for unit in self
            .units
            .iter()
            .filter(|unit| unit.axle == index && unit.drive.torque_on)
        {
            sum_rad_s += self.demand_rad_s(unit);
            count += 1.0;
            let limit = unit.drive.acceleration_ticks_s2 / ticks_per_radian(unit.servo).abs();
            acceleration_rad_s2 = acceleration_rad_s2.min(limit);
        }
        if count > 0.0 {
            (sum_rad_s / count, acceleration_rad_s2)
        } else {
            (0.0, f64::INFINITY)
        }
    }

    /// Returns the axle speed that one servo requests now.
    fn demand_rad_s(&self, unit: &ServoUnit) -> f64 {
        let drive = &unit.drive;
        if !drive.torque_on || drive.ratio() <= 0.0 {
            return 0.0;
        }
        let load_n_m = self.posture.torque_n_m(unit.axle) * self.nominal_v / self.supply_v.max(1.0);
        let (sag_rad, stick_rad) = self.wear.as_ref().map_or((0.0, 0.0), |wear| {
            (wear.sag_rad(load_n_m), wear.stick_rad(unit.axle, load_n_m))
        });
        let scale = ticks_per_radian(unit.servo);
        let error_ticks = self.error_ticks(unit) + scale * sag_rad;
        // The servo measures in whole ticks, and ignores errors within its dead band.
        let measured_ticks = drive.goal_ticks.round() - (drive.goal_ticks - error_ticks).round();
        if measured_ticks.abs() <= self.dead_band_ticks
            || error_ticks.abs() < scale.abs() * stick_rad
        {
            return 0.0;
        }
        let error_rad = error_ticks.abs() / scale.abs();
        let acceleration = drive.acceleration_ticks_s2 / scale.abs();
        let speed_rad_s = (error_rad / self.lag_s)
            .min(drive.speed_ticks_s / scale.abs())
            .min(self.speed_max_rad_s)
            .min((2.0 * acceleration * error_rad).sqrt());
        speed_rad_s * error_ticks.signum() * scale.signum()
    }

    fn error_ticks(&self, unit: &ServoUnit) -> f64 {
        let angle_rad = self.axles.get(unit.axle).map_or(0.0, |axle| axle.angle_rad);
        let ticks = f64::from(unit.servo.zero_tick) + ticks_per_radian(unit.servo) * angle_rad;
        unit.drive.goal_ticks - ticks
    }

    fn update_loads(&mut self, index: usize, angle_rad: f64) {
        for unit in self.units.iter_mut().filter(|unit| unit.axle == index) {
            let ticks = f64::from(unit.servo.zero_tick) + ticks_per_radian(unit.servo) * angle_rad;
            let drive = &unit.drive;
            let load_ratio = if drive.torque_on {
                (drive.goal_ticks - ticks) / FULL_LOAD_TICKS
            } else {
                0.0
            };
            unit.load_ratio = load_ratio.clamp(-drive.ratio(), drive.ratio());
        }
    }

    fn warm(&mut self, duration_s: f64) {
        let fraction = 1.0 - (-duration_s / HEATING_S).exp();
        let loads: Vec<f64> = self
            .units
            .iter()
            .map(|unit| self.load_ratio(unit))
            .collect();
        for (unit, load_ratio) in self.units.iter_mut().zip(loads) {
            let final_c = AMBIENT_C + HEATING_C * load_ratio * load_ratio;
            unit.temperature_c += (final_c - unit.temperature_c) * fraction;
        }
    }
}

fn unit(axle: usize, servo: ServoFile) -> ServoUnit {
    ServoUnit {
        axle,
        servo,
        drive: ServoDrive {
            torque_on: false,
            goal_ticks: f64::from(servo.zero_tick),
            speed_ticks_s: f64::INFINITY,
            acceleration_ticks_s2: f64::INFINITY,
            torque_ratio: 1.0,
            regulator: ServoRegulator::UNKNOWN,
        },
        firmware: FirmwareState::default(),
        is_broken: false,
        load_ratio: 0.0,
        temperature_c: AMBIENT_C,
    }
}

fn held_servo(id: u8) -> ServoFile {
    ServoFile {
        id,
        sign: 1,
        zero_tick: 2048,
        ticks_per_turn: 4096,
        dead_band_ticks: 0,
    }
}

fn no_reaction(dof: usize) -> ContactReaction {
    ContactReaction {
        load_ratio: JointVector::zeros(dof),
        deflection_rad: JointVector::zeros(dof),
    }
}

/// Returns ticks per radian, signed by the servo's sense of rotation.
fn ticks_per_radian(servo: ServoFile) -> f64 {
    f64::from(servo.sign) * f64::from(servo.ticks_per_turn) / TAU
}
