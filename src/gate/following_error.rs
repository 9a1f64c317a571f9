//! Detects an arm that does not follow: the maximum following error (leash), stalls, and missing
//! readings.

use std::time::Duration;

use super::TorqueLimit;
use super::check::exceeds;
use super::execute::ExecutionError;
use arm::ArmModel;
use base::units::{ArmMeasurement, ClockInstant, JointVector};

/// The goal is never further ahead of the measured joint than this much time at full speed, so
/// that an arm that loses its host moves no further.
const LEASH: Duration = Duration::from_millis(150);

/// Largest plausible distance of a joint from its goal, as a multiple of its leash.
const BELIEVED_LEASHES: f64 = 1.25;

/// A goal that waited for a joint goes on when the joint has come this share of the leash near.
const NEAR_AGAIN: f64 = 0.8;

/// A joint that does not follow for so long is stalled.
pub(super) const STALL: Duration = Duration::from_millis(300);

/// A servo that pushes harder than this and is further behind than [`STALL_RAD`] is stalled. One
/// with a low torque limit never pushes as hard as one without.
const STALL_LOAD: f64 = 0.6;
const STALL_LOAD_TOUCH: f64 = 0.4;

/// Three degrees.
const STALL_RAD: f64 = 3.0 * std::f64::consts::PI / 180.0;

/// Number of periods after which an old reading holds the motion.
const BLIND_PERIODS: u32 = 3;

/// And older than this end it.
pub(super) const BLIND: Duration = Duration::from_millis(100);

/// State of the following-error and stall detection.
#[derive(Debug, Default)]
pub(super) struct FollowingErrorMonitor {
    joints: Vec<MonitoredJoint>,
    stall_load: f64,
    waits: bool,
    waited_ticks: u32,
    broken: Option<ExecutionError>,
    told: bool,
    /// The goal of the tick before, since something was told.
    before_rad: Option<JointVector>,
    lost: bool,
}

#[derive(Debug)]
struct MonitoredJoint {
    name: String,
    leash_rad: f64,
    /// The servos that turn it.
    servos: Vec<u8>,
    pushed_ticks: u32,
}

impl FollowingErrorMonitor {
    pub(super) fn new(arm: &ArmModel, torque: TorqueLimit) -> Self {
        let joints = arm.limits.velocity_rad_s.iter().enumerate();
        let joints = joints.map(|(joint, fastest)| MonitoredJoint {
            name: arm.joint_name(joint),
            leash_rad: fastest * LEASH.as_secs_f64(),
            servos: arm
                .servos()
                .filter(|(of, _)| *of == joint)
                .map(|(_, servo)| servo.id)
                .collect(),
            pushed_ticks: 0,
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
    /// stand if it braked now.
    pub(super) fn update(
        &mut self,
        goal_rad: &JointVector,
        ahead_rad: &JointVector,
        seen: &ArmMeasurement,
        now: ClockInstant,
        period: Duration,
    ) -> bool {
        let age = now.since(seen.at);
        if self.told {
            self.lost |= exceeds(age, BLIND) || self.moves_away(goal_rad, &seen.position_rad);
            return exceeds(age, period * BLIND_PERIODS);
        }
        if exceeds(age, BLIND) {
            self.record_error(ExecutionError::Blind(age.as_millis()));
        }
        if let Some(joint) = self.joint_pushing(goal_rad, seen, period) {
            let by_rad = distance_rad(goal_rad, &seen.position_rad, joint);
            self.record_stall(joint, by_rad);
        }
        let behind = self.lagging_joint(ahead_rad, &seen.position_rad);
        self.waits = behind.is_some();
        self.waited_ticks = if self.waits { self.waited_ticks + 1 } else { 0 };
        if let Some((joint, by_rad)) = behind
            && exceeds(period * self.waited_ticks, STALL)
        {
            self.record_stall(joint, by_rad);
        }
        self.waits || exceeds(age, period * BLIND_PERIODS)
    }

    pub(super) fn has_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// Returns the error, the first time it is called after one.
    pub(super) fn take_error(&mut self) -> Option<ExecutionError> {
        let broken = self.broken.take();
        self.told |= broken.is_some();
        broken
    }

    pub(super) fn has_reported(&self) -> bool {
        self.told
    }

    /// Returns whether the way to a safe end has failed too: the arm that was sent back or up is not
    /// read, or does not follow.
    pub(super) fn is_lost(&self) -> bool {
        self.lost
    }

    /// Returns whether the goal moves away from a joint that is near the end of its leash. A goal that
    /// comes back to its joint from beyond does not.
    fn moves_away(&mut self, goal_rad: &JointVector, is_rad: &JointVector) -> bool {
        let before_rad = self.before_rad.replace(*goal_rad).unwrap_or(*goal_rad);
        self.joints.iter().enumerate().any(|(index, joint)| {
            let ahead = distance_rad(goal_rad, is_rad, index);
            exceeds(ahead, joint.leash_rad * NEAR_AGAIN)
                && exceeds(ahead, distance_rad(&before_rad, is_rad, index))
        })
    }

    fn record_error(&mut self, broken: ExecutionError) {
        self.broken.get_or_insert(broken);
    }

    fn record_stall(&mut self, joint: usize, behind_rad: f64) {
        let name = self.joints.get(joint).map(|joint| joint.name.clone());
        self.record_error(ExecutionError::Stalled {
            joint: name.unwrap_or_else(|| "a joint that was not read".to_owned()),
            behind_deg: whole_degrees(behind_rad),
        });
    }

    /// The joint that is at the end of its leash.
    fn lagging_joint(&self, ahead_rad: &JointVector, is_rad: &JointVector) -> Option<(usize, f64)> {
        if is_rad.len() != ahead_rad.len() {
            // A joint that was not read does not follow.
            return Some((is_rad.len(), f64::INFINITY));
        }
        let share = if self.waits { NEAR_AGAIN } else { 1.0 };
        self.joints.iter().enumerate().find_map(|(index, joint)| {
            let behind = distance_rad(ahead_rad, is_rad, index);
            (behind.is_nan() || exceeds(behind, joint.leash_rad * share)).then_some((index, behind))
        })
    }

    /// Returns whether a joint reads farther from its goal than its leash makes possible.
    pub(super) fn is_beyond_belief(&self, goal_rad: &JointVector, is_rad: &JointVector) -> bool {
        let mut joints = self.joints.iter().enumerate();
        is_rad.len() != goal_rad.len()
            || joints.any(|(index, joint)| {
                let apart = distance_rad(goal_rad, is_rad, index);
                apart.is_nan() || exceeds(apart, joint.leash_rad * BELIEVED_LEASHES)
            })
    }

    /// The joint whose servo has pushed hard for long, and is far behind all the while.
    fn joint_pushing(
        &mut self,
        goal_rad: &JointVector,
        seen: &ArmMeasurement,
        period: Duration,
    ) -> Option<usize> {
        let mut found = None;
        for (index, joint) in self.joints.iter_mut().enumerate() {
            let hardest = seen
                .servos
                .iter()
                .filter(|servo| joint.servos.contains(&servo.id))
                .filter_map(|servo| servo.load_ratio)
                .fold(0.0, |most: f64, load| most.max(load.abs()));
            let far = exceeds(distance_rad(goal_rad, &seen.position_rad, index), STALL_RAD);
            joint.pushed_ticks = if far && exceeds(hardest, self.stall_load) {
                joint.pushed_ticks + 1
            } else {
                0
            };
            if exceeds(period * joint.pushed_ticks, STALL) {
                found = found.or(Some(index));
            }
        }
        found
    }
}

/// Returns the distance between a joint and its goal; infinite for a joint that was not read.
fn distance_rad(goal_rad: &JointVector, is_rad: &JointVector, joint: usize) -> f64 {
    match (goal_rad.get(joint), is_rad.get(joint)) {
        (Some(goal), Some(is)) => (goal - is).abs(),
        _ => f64::INFINITY,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates; for words only"
)]
fn whole_degrees(rad: f64) -> u32 {
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

    /// Ticks after which a joint is given up: the first beyond 300 ms.
    const STALL_TICKS: usize = 31;

    fn arm() -> &'static ArmModel {
        static DEFAULT: LazyLock<Arc<Scene>> =
            LazyLock::new(|| SceneLibrary::new(None).scene("default", None).unwrap());
        &DEFAULT.arm
    }

    /// An arm whose second joint is so far behind its goal, and its servo pushes so hard.
    fn seen(behind_rad: f64, load: (u8, f64), at: ClockInstant) -> ArmMeasurement {
        let zeros = JointVector::zeros(arm().dof());
        ArmMeasurement {
            at,
            position_rad: zeros.map(|joint, _| if joint == 1 { -behind_rad } else { 0.0 }),
            velocity_rad_s: zeros,
            servos: vec![ServoState {
                id: load.0,
                load_ratio: Some(load.1),
                ..<_>::default()
            }],
        }
    }

    /// Looks at a fresh reading, the goal standing.
    fn look(watch: &mut FollowingErrorMonitor, behind_rad: f64, load: (u8, f64)) -> bool {
        let goal = JointVector::zeros(arm().dof());
        let now = ClockInstant::ZERO;
        watch.update(&goal, &goal, &seen(behind_rad, load, now), now, PERIOD)
    }

    fn ticks_to_a_stall(
        watch: &mut FollowingErrorMonitor,
        behind_rad: f64,
        load: (u8, f64),
    ) -> Option<usize> {
        (1..100).find(|_| {
            look(watch, behind_rad, load);
            watch.has_broken()
        })
    }

    #[test]
    fn a_reading_may_be_three_periods_old_and_ends_the_motion_after_ten() {
        let goal = JointVector::zeros(arm().dof());
        let mut watch = FollowingErrorMonitor::new(arm(), TorqueLimit::Work);
        let mut look = |ms: u64| {
            let now = ClockInstant::ZERO.after(Duration::from_millis(ms));
            let waits = watch.update(
                &goal,
                &goal,
                &seen(0.0, (2, 0.0), ClockInstant::ZERO),
                now,
                PERIOD,
            );
            (waits, watch.has_broken())
        };
        assert_eq!([look(0), look(30)], [(false, false); 2]);
        assert_eq!([look(31), look(100)], [(true, false); 2]);
        assert_eq!(look(101), (true, true));
        assert!(!watch.has_reported());
        assert_eq!(watch.take_error(), Some(ExecutionError::Blind(101)));
        assert!(watch.has_reported() && !watch.has_broken());
        assert_eq!(watch.take_error(), None);
        // What was told is not told again.
        let late = ClockInstant::ZERO.after(Duration::from_secs(1));
        let far = seen(9.0, (2, 1.0), ClockInstant::ZERO);
        assert!(watch.update(&goal, &goal, &far, late, PERIOD));
        assert!(watch.has_reported() && !watch.has_broken());
    }

    /// After it was told, a goal may come back to a joint from beyond its leash and not go further
    /// from it; unseen it waits, and after a while there is no way any more.
    #[test]
    fn a_way_to_a_safe_end_keeps_to_the_leash_and_is_seen() {
        let told = || {
            let mut watch = FollowingErrorMonitor::new(arm(), TorqueLimit::Work);
            let leash = arm().limits.velocity_rad_s.get(1).unwrap() * 0.150;
            ticks_to_a_stall(&mut watch, leash * 1.1, (2, 0.0)).unwrap();
            watch.take_error().unwrap();
            (watch, leash)
        };
        let now = ClockInstant::ZERO;
        let goal = |ahead: f64| {
            JointVector::zeros(arm().dof()).map(|of, zero| if of == 1 { ahead } else { zero })
        };
        let is = seen(0.0, (2, 0.0), now);
        let (mut watch, leash) = told();
        for share in [1.1, 1.1, 1.05, 0.9, 0.2, 0.7, 0.79] {
            let goal = goal(leash * share);
            assert!(!watch.update(&goal, &goal, &is, now, PERIOD));
            assert!(!watch.is_lost(), "{share}");
        }
        let further = goal(leash * 0.81);
        watch.update(&further, &further, &is, now, PERIOD);
        assert!(watch.is_lost());
        let (mut watch, _) = told();
        let goal = goal(0.0);
        let mut look = |ms: u64| {
            let now = now.after(Duration::from_millis(ms));
            (
                watch.update(&goal, &goal, &is, now, PERIOD),
                watch.is_lost(),
            )
        };
        assert_eq!([look(30), look(31)], [(false, false), (true, false)]);
        assert_eq!([look(100), look(101)], [(true, false), (true, true)]);
    }

    #[test]
    fn a_goal_waits_at_the_end_of_the_leash_until_the_joint_is_near_again() {
        let leash = arm().limits.velocity_rad_s.get(1).unwrap() * 0.150;
        let mut watch = FollowingErrorMonitor::new(arm(), TorqueLimit::Work);
        let mut waits = |share: f64| look(&mut watch, leash * share, (2, 0.0));
        assert!(!waits(0.99) && waits(1.01));
        assert!(waits(0.9) && waits(0.81) && !waits(0.79));
        assert!(!waits(0.9) && waits(1.01));
    }

    #[test]
    fn a_joint_that_does_not_come_is_given_up_after_300_ms() {
        let leash = arm().limits.velocity_rad_s.get(1).unwrap() * 0.150;
        let mut watch = FollowingErrorMonitor::new(arm(), TorqueLimit::Work);
        for _ in 0..STALL_TICKS - 1 {
            look(&mut watch, leash * 1.1, (2, 0.0));
        }
        assert!(!watch.has_broken());
        look(&mut watch, 0.0, (2, 0.0));
        let ticks = ticks_to_a_stall(&mut watch, leash * 1.1, (2, 0.0));
        assert_eq!(ticks, Some(STALL_TICKS));
        let behind_deg = (leash * 1.1).to_degrees().round();
        let told = watch.take_error();
        let is_told = matches!(
            &told,
            Some(ExecutionError::Stalled { joint, behind_deg: said })
                if joint == "shoulder_lift" && (f64::from(*said) - behind_deg).abs() < 0.5
        );
        assert!(is_told && watch.has_reported(), "{told:?}");
    }

    #[test]
    fn a_servo_that_pushes_hard_in_vain_is_given_up_long_before_the_leash() {
        let degrees = f64::to_radians;
        let ticks = |behind_deg: f64, load: (u8, f64)| {
            ticks_to_a_stall(
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
        // With a low torque limit no servo pushes as hard: less of it says as much.
        let ticks = |load: f64| {
            let mut watch = FollowingErrorMonitor::new(arm(), TorqueLimit::Touch);
            ticks_to_a_stall(&mut watch, degrees(3.1), (2, load))
        };
        assert_eq!((ticks(0.41), ticks(0.39)), (Some(STALL_TICKS), None));
        // Only what lasts without a break.
        let mut watch = FollowingErrorMonitor::new(arm(), TorqueLimit::Work);
        for _ in 0..4 {
            for _ in 0..STALL_TICKS - 1 {
                look(&mut watch, degrees(3.1), (2, 1.0));
            }
            look(&mut watch, degrees(3.1), (2, 0.1));
        }
        assert!(!watch.has_broken());
        ticks_to_a_stall(&mut watch, degrees(3.1), (2, 1.0)).unwrap();
        let told = watch.take_error().unwrap().to_string();
        assert!(
            told.contains("shoulder_lift") && told.contains("3 degrees"),
            "{told}"
        );
    }

    #[test]
    fn a_joint_that_was_not_read_does_not_follow() {
        let goal = JointVector::zeros(arm().dof());
        let mut watch = FollowingErrorMonitor::new(arm(), TorqueLimit::Work);
        let none = ArmMeasurement {
            position_rad: JointVector::zeros(0),
            ..seen(0.0, (2, 0.0), ClockInstant::ZERO)
        };
        let ticks = (1..100).find(|_| {
            assert!(watch.update(&goal, &goal, &none, ClockInstant::ZERO, PERIOD));
            watch.has_broken()
        });
        assert_eq!(ticks, Some(STALL_TICKS));
        let told = watch.take_error().unwrap().to_string();
        assert!(told.contains("shoulder_pan"), "{told}");
    }
}
