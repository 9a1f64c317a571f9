//! A measured servo: its firmware makes a duty of the error, its motor a torque of the duty, and its gears take friction of it.
//!
//! The equations and figures are those that others published for servos on a pendulum: duty in proportion to P and the error
//! in whole counts, a DC motor with back-EMF, Coulomb friction that grows with what the gears carry and near standstill
//! (Stribeck), viscous damping, and the inertia of the rotor. The integral and derivative terms are not simulated.

use arm::SimulatedServo;

/// Largest duty that the firmware gives, measured with an oscilloscope.
const DUTY_MAX: f64 = 0.97;

/// Commands of a servo's registers to its regulator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ServoRegulator {
    /// The gain P.
    pub(crate) gain_p: f64,
    /// Errors up to this many ticks are not corrected.
    pub(crate) dead_zone_ticks: f64,
    pub(crate) protection: Option<OverloadProtection>,
}

impl ServoRegulator {
    /// Of a servo without such registers: measured servos of its family are not simulated.
    pub(crate) const UNKNOWN: Self = Self {
        gain_p: 0.0,
        dead_zone_ticks: 0.0,
        protection: None,
    };

    /// Returns whether the servo's status says that its protection has tripped.
    pub(crate) fn has_tripped(&self) -> bool {
        self.protection
            .is_some_and(|protection| protection.has_tripped)
    }
}

/// Protection of a servo that gives much torque for long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct OverloadProtection {
    /// Duty from which time counts.
    pub(crate) above_ratio: f64,
    /// Time after which it trips.
    pub(crate) after_s: f64,
    /// Largest duty once it has tripped.
    pub(crate) limited_ratio: f64,
    /// True if the servo's status says that it has tripped.
    pub(crate) has_tripped: bool,
}

/// A goal with the servo's own limits on the way to it, in ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct GoalProfile {
    pub(crate) goal_ticks: f64,
    pub(crate) speed_ticks_s: f64,
    pub(crate) acceleration_ticks_s2: f64,
}

/// State of one servo's firmware.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct FirmwareState {
    /// Set point on the way to the goal, and its speed; `None` while the torque is off.
    set_point: Option<(f64, f64)>,
    /// Signed duty of the motor.
    pub(crate) duty: f64,
    overload_s: f64,
    pub(crate) has_tripped: bool,
}

impl FirmwareState {
    /// Switches the motor off, which resets the protection.
    pub(crate) fn switch_off(&mut self) {
        *self = Self::default();
    }

    /// Returns whether another step from the same position would change nothing.
    pub(crate) fn is_steady(&self, goal_ticks: f64) -> bool {
        self.overload_s <= 0.0
            && self
                .set_point
                .is_none_or(|(at, speed)| (at - goal_ticks).abs() < 1e-9 && speed.abs() < 1e-9)
    }

    /// Moves the set point for a step, and computes the duty for a measured position.
    pub(crate) fn step(
        &mut self,
        profile: &GoalProfile,
        regulator: &ServoRegulator,
        (duty_per_tick, duty_max): (f64, f64),
        ticks: f64,
        step_s: f64,
    ) {
        let (at, speed) = self.set_point.unwrap_or((ticks.round(), 0.0));
        let (at, speed) = profile.advance(at, speed, step_s);
        self.set_point = Some((at, speed));
        // The servo measures in whole ticks, and ignores errors within its dead zone.
        let error = at.round() - ticks.round();
        let error = if error.abs() <= regulator.dead_zone_ticks {
            0.0
        } else {
            error
        };
        let limited = regulator
            .protection
            .filter(|protection| self.has_tripped || protection.has_tripped);
        let most = duty_max
            .min(DUTY_MAX)
            .min(limited.map_or(1.0, |protection| protection.limited_ratio));
        self.duty = (regulator.gain_p * duty_per_tick * error).clamp(-most, most);
        self.watch_overload(regulator, step_s);
    }

    fn watch_overload(&mut self, regulator: &ServoRegulator, step_s: f64) {
        let Some(protection) = regulator.protection.filter(|_| !self.has_tripped) else {
            self.overload_s = 0.0;
            return;
        };
        self.overload_s = if self.duty.abs() >= protection.above_ratio {
            self.overload_s + step_s
        } else {
            (self.overload_s - step_s).max(0.0)
        };
        self.has_tripped = self.overload_s > protection.after_s;
    }
}

impl GoalProfile {
    /// Moves a set point towards the goal, never faster than it can stop there.
    fn advance(&self, at: f64, speed: f64, step_s: f64) -> (f64, f64) {
        let remaining = self.goal_ticks - at;
        let wanted = self
            .speed_ticks_s
            .min((2.0 * self.acceleration_ticks_s2 * remaining.abs()).sqrt())
            .min(remaining.abs() / step_s);
        let change = self.acceleration_ticks_s2 * step_s;
        let speed = speed + (wanted * remaining.signum() - speed).clamp(-change, change);
        let is_there = (remaining - speed * step_s).abs() < 1e-9;
        if is_there {
            (self.goal_ticks, 0.0)
        } else {
            (at + speed * step_s, speed)
        }
    }
}

/// What acts on an axle during a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AxleForces {
    /// Torque of the motors, at standstill.
    pub(crate) drive_n_m: f64,
    /// Number of servos that are energised: only their motors brake by back-EMF.
    pub(crate) energised: f64,
    /// Number of servos whose gears turn with the axle.
    pub(crate) servos: f64,
    /// Torque from outside: gravity, a touched sheet.
    pub(crate) load_n_m: f64,
    /// Inertia of what the joint carries.
    pub(crate) inertia_kg_m2: f64,
}

/// Figures of a servo's motor and gears.
#[derive(Clone, Debug)]
pub(crate) struct ServoMotor(SimulatedServo);

impl ServoMotor {
    pub(crate) fn new(figures: &SimulatedServo) -> Self {
        Self(figures.clone())
    }

    /// Returns the torque at full duty and standstill, at the nominal supply.
    pub(crate) fn stall_n_m(&self) -> f64 {
        self.0.stall_n_m.get()
    }

    /// Returns the duty for each tick of error and each unit of P.
    pub(crate) fn duty_per_tick(&self, ticks_per_radian: f64) -> f64 {
        self.0.error_gain.get() / ticks_per_radian.abs()
    }

    /// Returns an axle's speed after a step. Damping is implicit and friction holds exactly, so that no step is unstable.
    pub(crate) fn next_velocity(&self, velocity: f64, forces: &AxleForces, step_s: f64) -> f64 {
        let figures = &self.0;
        let back_emf = figures.back_emf_n_m_s.get() * forces.energised;
        let damping = back_emf + figures.viscous_n_m_s.get() * forces.servos;
        let carried_n_m = forces.load_n_m - forces.drive_n_m + back_emf * velocity;
        let friction_n_m = self.friction_n_m(velocity, carried_n_m.abs()) * forces.servos;
        let inertia = figures.armature_kg_m2.get() * forces.servos + forces.inertia_kg_m2;
        let inverse = 1.0 / (inertia + damping * step_s);
        let free = (inertia * velocity + (forces.drive_n_m + forces.load_n_m) * step_s) * inverse;
        let braked = friction_n_m * step_s * inverse;
        if free.abs() <= braked {
            0.0
        } else {
            free - braked * free.signum()
        }
    }

    /// Returns the friction of one servo's gears at a speed, between what drives them and what loads them.
    fn friction_n_m(&self, velocity: f64, carried_n_m: f64) -> f64 {
        let figures = &self.0;
        let sliding = figures.friction_n_m.get() + figures.friction_per_load.get() * carried_n_m;
        let Some(stribeck) = &figures.stribeck else {
            return sliding;
        };
        let relative = velocity.abs() / stribeck.speed_rad_s.get();
        let left = (-relative.powf(stribeck.exponent.get())).exp();
        let sticking = stribeck.friction_n_m.get() + stribeck.friction_per_load.get() * carried_n_m;
        sliding + left * sticking
    }
}
