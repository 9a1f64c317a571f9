//! Detects an arm that does not follow: the maximum following error (leash), stalls, readings that
//! stand still, and missing readings.

use std::time::Duration;

use super::TorqueLimit;
use super::check::exceeds;
use super::execute::ExecutionError;
use super::limp_joint::LimpJoint;
use super::unmoved_joint::{UNMOVED_RAD, UnmovedJoint};
use arm::{ArmModel, LEASH, READING_AGE};
use base::units::{ArmMeasurement, ClockInstant, JointVector};
use plan::PERIOD;

/// Largest plausible distance of a joint from its goal, as a multiple of its leash.
const PLAUSIBLE_LEASHES: f64 = 1.25;

/// A goal that waits for a joint goes on once the joint is within this fraction of its leash.
const RESUME_AT: f64 = 0.8;

/// A joint that does not follow for this long is stalled.
pub(super) const STALL_TIME: Duration = Duration::from_millis(300);

/// A servo that pushes harder than this and lags more than [`STALL_RAD`] is stalled. One with a
/// low torque limit never pushes as hard as one without.
const STALL_LOAD: f64 = 0.6;
const STALL_LOAD_TOUCH: f64 = 0.4;

/// Lag from which a servo that pushes hard counts as stalled: three degrees.
const STALL_RAD: f64 = 3.0 * std::f64::consts::PI / 180.0;

/// Age of a reading, in periods, beyond which the motion waits.
const WAIT_PERIODS: u32 = 3;

// Plans are made for goals that wait at this age.
const _: () = assert!(PERIOD.as_millis() * WAIT_PERIODS as u128 == READING_AGE.as_millis());

/// Age of a reading beyond which the motion ends.
pub(super) const AGE_MAX: Duration = Duration::from_millis(100);

/// State of the following-error and stall detection.
#[derive(Debug, Default)]
pub(super) struct FollowingErrorMonitor {
    joints: Vec<MonitoredJoint>,
    stall_load: f64,
    waits: bool,
    waited_ticks: u32,
    error: Option<ExecutionError>,
    is_reported: bool,
    /// The goal of the previous tick, once an error was reported.
    previous_rad: Option<JointVector>,
    is_lost: bool,
}

#[derive(Debug)]
struct MonitoredJoint {
    name: String,
    /// The goal is never further ahead of the joint than this, so that an arm that loses its host
    /// moves no further.
    leash_rad: f64,
    /// Places of the servos that turn it among the arm's.
    servos: Vec<usize>,
    pushed_ticks: u32,
    unmoved: UnmovedJoint,
    limp: Option<LimpJoint>,
}

impl FollowingErrorMonitor {
    pub(super) fn new(arm: &ArmModel, torque: TorqueLimit) -> Self {
        let joints = arm.limits.velocity_rad_s.iter().enumerate();
        let joints = joints.map(|(joint, fastest)| MonitoredJoint {
            name: arm.joint_name(joint),
            leash_rad: fastest * LEASH.as_secs_f64(),
            servos: arm.servo_places(joint),
            pushed_ticks: 0,
            unmoved: UnmovedJoint::new(arm, joint),
            limp: match torque {
                TorqueLimit::Work => LimpJoint::new(arm, joint),
                // A servo of little torque may report none although it holds.
                TorqueLimit::Touch => None,
            },
        });
        Self {
            joints: joints.collect(),
            stall_load: match torque {
                TorqueLimit::Work => STALL_LOAD,
                TorqueLimit::Touch => STALL_LOAD_TOUCH,
            },
            ..Self::default()
        }
    }

    /// Evaluates a reading and returns whether the goal must wait. `ahead_rad` is where the goal would
    /// stop if it braked now.
    pub(super) fn update(
        &mut self,
        goal_rad: &JointVector,
        ahead_rad: &JointVector,
        measured: &ArmMeasurement,
        now: ClockInstant,
        period: Duration,
    ) -> bool {
        let age = now.since(measured.at);
        if self.is_reported {
            self.is_lost |= exceeds(age, AGE_MAX) || self.departs(goal_rad, &measured.position_rad);
            return exceeds(age, period * WAIT_PERIODS);
        }
        if exceeds(age, AGE_MAX) {
            self.record_error(ExecutionError::Blind(age.as_millis()));
        }
        if let Some(joint) = self.pushing_joint(goal_rad, measured, period) {
            let lag_rad = distance_rad(goal_rad, &measured.position_rad, joint);
            self.record_stall(joint, lag_rad);
        }
        let lagging = self.find_lag(ahead_rad, &measured.position_rad);
        self.waits = lagging.is_some();
        self.waited_ticks = if self.waits { self.waited_ticks + 1 } else { 0 };
        if let Some((joint, lag_rad)) = lagging
            && exceeds(period * self.waited_ticks, STALL_TIME)
        {
            self.record_stall(joint, lag_rad);
        }
        self.waits || exceeds(age, period * WAIT_PERIODS)
    }

    pub(super) fn has_error(&self) -> bool {
        self.error.is_some()
    }

    /// Takes the pending error and marks it as reported.
    pub(super) fn take_error(&mut self) -> Option<ExecutionError> {
        let error = self.error.take();
        self.is_reported |= error.is_some();
        error
    }

    pub(super) fn has_reported(&self) -> bool {
        self.is_reported
    }

    /// Returns whether the move to a safe end has failed too: the arm that was sent back or up is not
    /// read, or does not follow.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Returns whether the goal moves away from a joint that is near the end of its leash. A goal that
    /// comes back to its joint from beyond does not.
    fn departs(&mut self, goal_rad: &JointVector, arm_rad: &JointVector) -> bool {
        let previous_rad = self.previous_rad.replace(*goal_rad).unwrap_or(*goal_rad);
        self.joints.iter().enumerate().any(|(index, joint)| {
            let ahead = distance_rad(goal_rad, arm_rad, index);
            exceeds(ahead, joint.leash_rad * RESUME_AT)
                && exceeds(ahead, distance_rad(&previous_rad, arm_rad, index))
        })
    }

    fn record_error(&mut self, error: ExecutionError) {
        self.error.get_or_insert(error);
    }

    fn record_stall(&mut self, joint: usize, behind_rad: f64) {
        self.record_error(ExecutionError::Stalled {
            joint: self.name(joint),
            behind_deg: rounded_degrees(behind_rad),
        });
    }

    fn name(&self, joint: usize) -> String {
        let name = self.joints.get(joint).map(|joint| joint.name.clone());
        name.unwrap_or_else(|| "a joint without a name".to_owned())
    }

    /// Records an error for the first joint whose reading stands still while its goal moves: not for
    /// a motion that a stop ends anyway.
    pub(super) fn check_moved(
        &mut self,
        goal_rad: &JointVector,
        measured: &ArmMeasurement,
        period: Duration,
    ) {
        if self.is_reported {
            return;
        }
        let mut unmoved = None;
        let readings = goal_rad
            .iter()
            .zip(measured.position_rad.iter())
            .enumerate();
        for (joint, (index, (goal, reading))) in self.joints.iter_mut().zip(readings) {
            let (range_rad, ticks) = joint.unmoved.update(*goal, *reading);
            if exceeds(period * ticks, STALL_TIME) {
                unmoved = unmoved.or(Some((index, range_rad, (goal - reading).abs())));
            }
        }
        match unmoved {
            Some((joint, _, lag_rad)) if exceeds(lag_rad, UNMOVED_RAD) => {
                self.record_stall(joint, lag_rad);
            }
            Some((joint, goal_range_rad, _)) => self.record_error(ExecutionError::Unmoved {
                joint: self.name(joint),
                goal_deg: rounded_degrees(goal_range_rad),
            }),
            None => {}
        }
    }

    /// Records an error for the first joint that does not push although it stands away from the goal that was sent: not
    /// for a motion that ends anyway.
    pub(super) fn check_limp(&mut self, sent_rad: &JointVector, measured: &ArmMeasurement) {
        if self.is_reported {
            return;
        }
        let mut joints = self.joints.iter_mut();
        let limp = joints.position(|joint| {
            let limp = joint.limp.as_mut();
            limp.is_some_and(|limp| limp.update(sent_rad, measured))
        });
        if let Some(joint) = limp {
            self.record_error(ExecutionError::Limp {
                joint: self.name(joint),
                behind_deg: distance_rad(sent_rad, &measured.position_rad, joint).to_degrees(),
            });
        }
    }

    /// Records an error, unless the motion is ending for one already.
    pub(super) fn record(&mut self, error: ExecutionError) {
        if !self.is_reported {
            self.record_error(error);
        }
    }

    /// Returns the first joint at the end of its leash, and its lag.
    fn find_lag(&self, ahead_rad: &JointVector, arm_rad: &JointVector) -> Option<(usize, f64)> {
        if arm_rad.len() != ahead_rad.len() {
            // A joint that was not read does not follow.
            return Some((arm_rad.len(), f64::INFINITY));
        }
        let scale = if self.waits { RESUME_AT } else { 1.0 };
        self.joints.iter().enumerate().find_map(|(index, joint)| {
            let behind = distance_rad(ahead_rad, arm_rad, index);
            (behind.is_nan() || exceeds(behind, joint.leash_rad * scale)).then_some((index, behind))
        })
    }

    /// Returns whether a joint reads farther from its goal than its leash makes possible.
    pub(super) fn is_implausible(&self, goal_rad: &JointVector, arm_rad: &JointVector) -> bool {
        let mut joints = self.joints.iter().enumerate();
        arm_rad.len() != goal_rad.len()
            || joints.any(|(index, joint)| {
                let distance = distance_rad(goal_rad, arm_rad, index);
                distance.is_nan() || exceeds(distance, joint.leash_rad * PLAUSIBLE_LEASHES)
            })
    }

    /// Returns the first joint whose servo has pushed hard and lagged far for too long.
    fn pushing_joint(
        &mut self,
        goal_rad: &JointVector,
        measured: &ArmMeasurement,
        period: Duration,
    ) -> Option<usize> {
        let mut found = None;
        for (index, joint) in self.joints.iter_mut().enumerate() {
            let servos = joint.servos.iter();
            let hardest = servos
                .filter_map(|place| measured.servos.get(*place)?.load_ratio)
                .fold(0.0, |most: f64, load| most.max(load.abs()));
            let lag_rad = distance_rad(goal_rad, &measured.position_rad, index);
            let is_far = exceeds(lag_rad, STALL_RAD) && !is_arriving(goal_rad, measured, index);
            joint.pushed_ticks = if is_far && exceeds(hardest, self.stall_load) {
                joint.pushed_ticks + 1
            } else {
                0
            };
            if exceeds(period * joint.pushed_ticks, STALL_TIME) {
                found = found.or(Some(index));
            }
        }
        found
    }
}

/// Returns whether a joint moves towards its goal fast enough to be there before it counts as stalled: a servo pushes hard
/// for its speed as well.
fn is_arriving(goal_rad: &JointVector, measured: &ArmMeasurement, joint: usize) -> bool {
    let (arm_rad, speed_rad_s) = (&measured.position_rad, &measured.velocity_rad_s);
    match (
        goal_rad.get(joint),
        arm_rad.get(joint),
        speed_rad_s.get(joint),
    ) {
        (Some(goal), Some(arm), Some(speed)) => {
            let comes_by = speed * (goal - arm).signum() * STALL_TIME.as_secs_f64();
            comes_by >= (goal - arm).abs()
        }
        _ => false,
    }
}

/// Returns the distance between a joint and its goal; infinite for a joint that was not read.
fn distance_rad(goal_rad: &JointVector, arm_rad: &JointVector, joint: usize) -> f64 {
    match (goal_rad.get(joint), arm_rad.get(joint)) {
        (Some(goal), Some(arm)) => (goal - arm).abs(),
        _ => f64::INFINITY,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates; for messages only"
)]
fn rounded_degrees(rad: f64) -> u32 {
    rad.to_degrees().round() as u32
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use std::sync::{Arc, LazyLock};

    use super::*;
    use base::units::ServoState;
    use scene::{Scene, SceneLibrary};

    const PERIOD: Duration = Duration::from_millis(10);

    /// Ticks after which a joint counts as stalled: the first beyond 300 ms.
    const STALL_TICKS: usize = 31;

    fn arm() -> &'static ArmModel {
        static DEFAULT: LazyLock<Arc<Scene>> =
            LazyLock::new(|| SceneLibrary::new(None).scene("default", None).unwrap());
        &DEFAULT.arm
    }

    /// A reading with the second joint behind a goal of zero, and one servo's load. The servos have other ids on their bus
    /// than in the arm's file: an arm that shares it.
    fn reading(behind_rad: f64, load: (u8, f64), at: ClockInstant) -> ArmMeasurement {
        let zeros = JointVector::zeros(arm().dof());
        let servos = arm().servos().map(|(_, servo)| ServoState {
            id: servo.id + 6,
            load_ratio: (servo.id == load.0).then_some(load.1),
            ..<_>::default()
        });
        ArmMeasurement {
            at,
            position_rad: zeros.map(|joint, _| if joint == 1 { -behind_rad } else { 0.0 }),
            velocity_rad_s: zeros,
            servos: servos.collect(),
        }
    }

    /// Updates with a fresh reading and a goal at rest.
    fn update(monitor: &mut FollowingErrorMonitor, behind_rad: f64, load: (u8, f64)) -> bool {
        let goal = JointVector::zeros(arm().dof());
        let now = ClockInstant::ZERO;
        monitor.update(&goal, &goal, &reading(behind_rad, load, now), now, PERIOD)
    }

    fn ticks_to_stall(
        monitor: &mut FollowingErrorMonitor,
        behind_rad: f64,
        load: (u8, f64),
    ) -> Option<usize> {
        (1..100).find(|_| {
            update(monitor, behind_rad, load);
            monitor.has_error()
        })
    }

    #[test]
    fn a_reading_may_be_three_periods_old_and_ends_the_motion_after_ten() {
        let goal = JointVector::zeros(arm().dof());
        let mut monitor = FollowingErrorMonitor::new(arm(), TorqueLimit::Work);
        let mut update = |ms: u64| {
            let now = ClockInstant::ZERO.after(Duration::from_millis(ms));
            let waits = monitor.update(
                &goal,
                &goal,
                &reading(0.0, (2, 0.0), ClockInstant::ZERO),
                now,
                PERIOD,
            );
            (waits, monitor.has_error())
        };
        assert_eq!([update(0), update(30)], [(false, false); 2]);
        assert_eq!([update(31), update(100)], [(true, false); 2]);
        assert_eq!(update(101), (true, true));
        assert!(!monitor.has_reported());
        assert_eq!(monitor.take_error(), Some(ExecutionError::Blind(101)));
        assert!(monitor.has_reported() && !monitor.has_error());
        assert_eq!(monitor.take_error(), None);
        // An error is not reported twice.
        let later = ClockInstant::ZERO.after(Duration::from_secs(1));
        let far_behind = reading(9.0, (2, 1.0), ClockInstant::ZERO);
        assert!(monitor.update(&goal, &goal, &far_behind, later, PERIOD));
        assert!(monitor.has_reported() && !monitor.has_error());
    }

    /// After a report a goal may come back to a joint from beyond its leash but not move away from it.
    /// Without readings it waits, and later counts as lost.
    #[test]
    fn a_move_to_a_safe_end_needs_the_leash_and_readings() {
        let after_stall = || {
            let mut monitor = FollowingErrorMonitor::new(arm(), TorqueLimit::Work);
            let leash = arm().limits.velocity_rad_s.get(1).unwrap() * 0.150;
            ticks_to_stall(&mut monitor, leash * 1.1, (2, 0.0)).unwrap();
            monitor.take_error().unwrap();
            (monitor, leash)
        };
        let now = ClockInstant::ZERO;
        let goal = |ahead: f64| {
            JointVector::zeros(arm().dof()).map(|index, zero| if index == 1 { ahead } else { zero })
        };
        let reading = reading(0.0, (2, 0.0), now);
        let (mut monitor, leash) = after_stall();
        for fraction in [1.1, 1.1, 1.05, 0.9, 0.2, 0.7, 0.79] {
            let goal = goal(leash * fraction);
            assert!(!monitor.update(&goal, &goal, &reading, now, PERIOD));
            assert!(!monitor.is_lost(), "{fraction}");
        }
        let farther = goal(leash * 0.81);
        monitor.update(&farther, &farther, &reading, now, PERIOD);
        assert!(monitor.is_lost());
        let (mut monitor, _) = after_stall();
        let goal = goal(0.0);
        let mut update = |ms: u64| {
            let now = now.after(Duration::from_millis(ms));
            (
                monitor.update(&goal, &goal, &reading, now, PERIOD),
                monitor.is_lost(),
            )
        };
        assert_eq!([update(30), update(31)], [(false, false), (true, false)]);
        assert_eq!([update(100), update(101)], [(true, false), (true, true)]);
    }

    #[test]
    fn a_goal_waits_at_the_end_of_the_leash_until_the_joint_is_near_again() {
        let leash = arm().limits.velocity_rad_s.get(1).unwrap() * 0.150;
        let mut monitor = FollowingErrorMonitor::new(arm(), TorqueLimit::Work);
        let mut waits = |fraction: f64| update(&mut monitor, leash * fraction, (2, 0.0));
        assert!(!waits(0.99) && waits(1.01));
        assert!(waits(0.9) && waits(0.81) && !waits(0.79));
        assert!(!waits(0.9) && waits(1.01));
    }

    #[test]
    fn a_joint_that_does_not_follow_stalls_after_300_ms() {
        let leash = arm().limits.velocity_rad_s.get(1).unwrap() * 0.150;
        let mut monitor = FollowingErrorMonitor::new(arm(), TorqueLimit::Work);
        for _ in 0..STALL_TICKS - 1 {
            update(&mut monitor, leash * 1.1, (2, 0.0));
        }
        assert!(!monitor.has_error());
        update(&mut monitor, 0.0, (2, 0.0));
        let ticks = ticks_to_stall(&mut monitor, leash * 1.1, (2, 0.0));
        assert_eq!(ticks, Some(STALL_TICKS));
        let behind_deg = (leash * 1.1).to_degrees().round();
        let error = monitor.take_error();
        let is_stalled = matches!(
            &error,
            Some(ExecutionError::Stalled { joint, behind_deg: stated_deg })
                if joint == "shoulder_lift" && (f64::from(*stated_deg) - behind_deg).abs() < 0.5
        );
        assert!(is_stalled && monitor.has_reported(), "{error:?}");
    }

    #[test]
    fn a_servo_that_pushes_hard_in_vain_stalls_long_before_the_leash() {
        let degrees = f64::to_radians;
        let ticks = |behind_deg: f64, load: (u8, f64)| {
            ticks_to_stall(
                &mut FollowingErrorMonitor::new(arm(), TorqueLimit::Work),
                degrees(behind_deg),
                load,
            )
        };
        for pushed in [(2, 0.61), (2, -0.61), (2, 1.0)] {
            assert_eq!(ticks(3.1, pushed), Some(STALL_TICKS), "{pushed:?}");
            assert_eq!(ticks(-3.1, pushed), Some(STALL_TICKS), "{pushed:?}");
            assert_eq!(ticks(2.9, pushed), None, "{pushed:?}");
        }
        assert_eq!((ticks(3.1, (2, 0.59)), ticks(3.1, (3, 1.0))), (None, None));
        // With a low torque limit no servo pushes as hard: a lower load counts as a stall.
        let ticks = |load: f64| {
            let mut monitor = FollowingErrorMonitor::new(arm(), TorqueLimit::Touch);
            ticks_to_stall(&mut monitor, degrees(3.1), (2, load))
        };
        assert_eq!((ticks(0.41), ticks(0.39)), (Some(STALL_TICKS), None));
        // Only an uninterrupted push counts.
        let mut monitor = FollowingErrorMonitor::new(arm(), TorqueLimit::Work);
        for _ in 0..4 {
            for _ in 0..STALL_TICKS - 1 {
                update(&mut monitor, degrees(3.1), (2, 1.0));
            }
            update(&mut monitor, degrees(3.1), (2, 0.1));
        }
        assert!(!monitor.has_error());
        ticks_to_stall(&mut monitor, degrees(3.1), (2, 1.0)).unwrap();
        let error = monitor.take_error().unwrap().to_string();
        assert!(
            error.contains("shoulder_lift") && error.contains("3 degrees"),
            "{error}"
        );
    }

    /// A servo near its fastest pushes with all it has: it will be at its goal before it counts as stalled.
    #[test]
    fn a_servo_that_pushes_hard_and_arrives_is_not_stalled() {
        let lag_rad = 10.0_f64.to_radians();
        let is_stalled = |speed_rad_s: f64| {
            let mut monitor = FollowingErrorMonitor::new(arm(), TorqueLimit::Work);
            let goal = JointVector::zeros(arm().dof());
            let now = ClockInstant::ZERO;
            (1..100).any(|_| {
                let mut measured = reading(lag_rad, (2, 0.97), now);
                measured.velocity_rad_s = goal.map(|_, _| speed_rad_s);
                monitor.update(&goal, &goal, &measured, now, PERIOD);
                monitor.has_error()
            })
        };
        let enough_rad_s = lag_rad / STALL_TIME.as_secs_f64();
        assert!(!is_stalled(1.01 * enough_rad_s));
        assert!(is_stalled(0.99 * enough_rad_s) && is_stalled(-1.01 * enough_rad_s));
    }

    /// Returns the first tick with an error, and the error, for a second joint with these goals and
    /// readings in degrees, one a tick.
    fn first_error(
        arm: &ArmModel,
        ticks: impl Iterator<Item = (f64, f64)>,
    ) -> Option<(usize, ExecutionError)> {
        let mut monitor = FollowingErrorMonitor::new(arm, TorqueLimit::Work);
        let now = ClockInstant::ZERO;
        ticks
            .enumerate()
            .find_map(|(tick, (goal_deg, reading_deg))| {
                let zeros = JointVector::zeros(arm.dof());
                let goal = zeros.map(|joint, _| {
                    if joint == 1 {
                        goal_deg.to_radians()
                    } else {
                        0.0
                    }
                });
                let measured = reading(-reading_deg.to_radians(), (2, 0.0), now);
                monitor.check_moved(&goal, &measured, PERIOD);
                Some((tick + 1, monitor.take_error()?))
            })
    }

    #[test]
    fn a_joint_whose_reading_stands_still_while_its_goal_moves_is_an_error() {
        // The first goal begins the range; then two goals take turns.
        let steps = |[even, odd]: [f64; 2], reading_deg: fn(usize) -> f64| {
            let goal_deg = move |tick: usize| match tick {
                0 => 0.0,
                _ if tick.is_multiple_of(2) => even,
                _ => odd,
            };
            let ticks = (0..99).map(move |tick| (goal_deg(tick), reading_deg(tick)));
            first_error(arm(), ticks)
        };
        let stalled = |behind_deg| ExecutionError::Stalled {
            joint: "shoulder_lift".to_owned(),
            behind_deg,
        };
        let still = |_| 0.0;
        assert_eq!(
            steps([2.1, 2.1], still),
            Some((1 + STALL_TICKS, stalled(2)))
        );
        assert_eq!(
            steps([-2.1, -2.1], still),
            Some((1 + STALL_TICKS, stalled(2)))
        );
        assert_eq!(steps([1.9, 1.9], still), None);
        // Around its reading a goal is never far ahead.
        let unmoved = ExecutionError::Unmoved {
            joint: "shoulder_lift".to_owned(),
            goal_deg: 2,
        };
        assert_eq!(steps([1.1, -1.1], still), Some((2 + STALL_TICKS, unmoved)));
        assert_eq!(steps([0.9, -0.9], still), None);
        // It is not reported twice.
        let mut monitor = FollowingErrorMonitor::new(arm(), TorqueLimit::Work);
        ticks_to_stall(&mut monitor, 1.0, (2, 0.0)).unwrap();
        monitor.take_error().unwrap();
        let far = JointVector::zeros(arm().dof()).map(|_, _| 0.1);
        for goal in [JointVector::zeros(arm().dof()), far]
            .iter()
            .cycle()
            .take(99)
        {
            monitor.check_moved(goal, &reading(0.0, (2, 0.0), ClockInstant::ZERO), PERIOD);
        }
        assert!(!monitor.has_error());
        // Noise of up to three counts is no movement; more is.
        let noise = |tick: usize| if tick.is_multiple_of(2) { 0.0 } else { 0.25 };
        assert!(steps([2.1, 2.1], noise).is_some());
        let moves = |tick: usize| if tick.is_multiple_of(20) { 0.0 } else { 0.28 };
        assert_eq!(steps([2.1, 2.1], moves), None);
    }

    #[test]
    fn three_counts_of_a_coarse_encoder_are_no_movement() {
        let mut file = arm().file.clone();
        for joint in &mut file.joints {
            for servo in &mut joint.servos {
                servo.ticks_per_turn = 1024;
            }
        }
        let coarse = ArmModel::new(file).unwrap();
        let ticks = |noise_deg: f64| {
            let goals = (0..99).map(|tick| if tick == 0 { 0.0 } else { 2.1 });
            let reading_deg = move |tick: usize| {
                if tick.is_multiple_of(2) {
                    0.0
                } else {
                    noise_deg
                }
            };
            goals
                .enumerate()
                .map(move |(tick, goal)| (goal, reading_deg(tick)))
        };
        assert!(first_error(&coarse, ticks(1.0)).is_some());
        assert_eq!(first_error(&coarse, ticks(1.1)), None);
    }

    #[test]
    fn a_joint_that_was_not_read_does_not_follow() {
        let goal = JointVector::zeros(arm().dof());
        let mut monitor = FollowingErrorMonitor::new(arm(), TorqueLimit::Work);
        let unread = ArmMeasurement {
            position_rad: JointVector::zeros(0),
            ..reading(0.0, (2, 0.0), ClockInstant::ZERO)
        };
        let ticks = (1..100).find(|_| {
            assert!(monitor.update(&goal, &goal, &unread, ClockInstant::ZERO, PERIOD));
            monitor.has_error()
        });
        assert_eq!(ticks, Some(STALL_TICKS));
        let error = monitor.take_error().unwrap().to_string();
        assert!(error.contains("shoulder_pan"), "{error}");
    }
}
