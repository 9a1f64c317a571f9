//! Detects a joint without torque: its servo reports next to no load although it stands away from its goal, where a servo
//! that holds pushes. A servo near its goal has no reason to push, and what it says of its torque switch is no evidence.

use arm::ArmModel;
use base::units::{ArmMeasurement, ClockInstant, JointVector};
use std::time::Duration;

/// A servo that reports less, as a fraction of its torque, does not push.
const LIMP_LOAD: f64 = 0.004;

/// Distance from its goal, in counts beyond its dead band, at which every servo pushes: the least gain gives it twice as much.
const LIMP_COUNTS: f64 = 4.0;

/// A joint that will be at its goal within this time by its own motion is on its way.
const COMING_S: f64 = 0.05;

/// Time for which a joint stands off its goals while its servos do not push: longer than a load takes to change its sign.
pub(super) const LIMP_TIME: Duration = Duration::from_millis(80);

/// Servos that turn a joint, and for how long it has stood off its goals since they last pushed.
#[derive(Debug)]
pub(super) struct LimpJoint {
    joint: usize,
    /// Their places among the arm's.
    servos: Vec<usize>,
    far_rad: f64,
    off_time: Duration,
    read_at: Option<ClockInstant>,
}

impl LimpJoint {
    /// Creates the detection of a joint; `None` for servos without figures, whose load may mean something else.
    pub(super) fn new(arm: &ArmModel, joint: usize) -> Option<Self> {
        arm.file.servo.as_ref()?;
        let servos = || arm.servos().filter(|(index, _)| *index == joint);
        let far_rad = servos()
            .map(|(_, servo)| {
                let count_rad = std::f64::consts::TAU / f64::from(servo.ticks_per_turn.max(1));
                (LIMP_COUNTS + f64::from(servo.dead_band_ticks)) * count_rad
            })
            .fold(0.0, f64::max);
        Some(Self {
            joint,
            servos: arm.servo_places(joint),
            far_rad,
            off_time: Duration::ZERO,
            read_at: None,
        })
    }

    /// Evaluates a reading against the goal that was sent. Returns whether the joint has been limp for too long.
    pub(super) fn update(&mut self, sent_rad: &JointVector, measured: &ArmMeasurement) -> bool {
        let joint = self.joint;
        let angles = sent_rad.get(joint).zip(measured.position_rad.get(joint));
        let speed_rad_s = measured.velocity_rad_s.get(joint).copied().unwrap_or(0.0);
        let is_far = angles.is_some_and(|(sent, read)| {
            let off_rad = sent - read;
            // Weight alone may bring it there, as fast as its servo lets it.
            let comes_by_rad = (speed_rad_s * off_rad.signum()).max(0.0) * COMING_S;
            off_rad.abs() > self.far_rad + comes_by_rad
        });
        let is_idle = |place: &usize| {
            let state = measured.servos.get(*place);
            let load = state.and_then(|state| state.load_ratio);
            load.is_some_and(|load| load.abs() < LIMP_LOAD)
        };
        let before = self.read_at.replace(measured.at).unwrap_or(measured.at);
        if self.servos.is_empty() || !self.servos.iter().all(is_idle) {
            self.off_time = Duration::ZERO;
        } else if is_far {
            self.off_time += measured.at.since(before);
        }
        self.off_time >= LIMP_TIME
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use base::units::ServoState;
    use scene::SceneLibrary;

    /// Returns after how many readings the shoulder is limp, of a servo that is so many counts behind with a load.
    fn limp_after(of: impl Fn(u32) -> (f64, f64)) -> Option<u32> {
        let scene = SceneLibrary::new(None).scene("default", None).unwrap();
        let sent_rad = JointVector::zeros(scene.arm.dof());
        let (place, (_, servo)) = scene.arm.servos().enumerate().nth(1).unwrap();
        let count_rad = std::f64::consts::TAU / f64::from(servo.ticks_per_turn);
        let silent = vec![ServoState::default(); place];
        let mut limp = LimpJoint::new(&scene.arm, 1).unwrap();
        (0..100).find(|reading| {
            let at = ClockInstant::ZERO.after(Duration::from_millis(10) * *reading);
            let (counts, load) = of(*reading);
            limp.update(
                &sent_rad,
                &ArmMeasurement {
                    at,
                    position_rad: sent_rad
                        .map(|joint, _| if joint == 1 { -counts * count_rad } else { 0.0 }),
                    velocity_rad_s: sent_rad,
                    servos: [
                        silent.clone(),
                        vec![ServoState {
                            load_ratio: Some(load),
                            ..<_>::default()
                        }],
                    ]
                    .concat(),
                },
            )
        })
    }

    #[test]
    fn a_joint_that_stands_off_its_goal_and_does_not_push_is_limp() {
        assert_eq!(limp_after(|_| (5.1, 0.0)), Some(8));
        assert_eq!(limp_after(|_| (-5.1, 0.003)), Some(8));
        assert_eq!(limp_after(|_| (4.9, 0.0)), None);
        assert_eq!(limp_after(|_| (30.0, 0.01)), None);
    }

    #[test]
    fn a_goal_that_passes_by_a_limp_joint_is_no_proof_of_torque() {
        let passes = |load: f64| {
            move |reading: u32| match reading % 8 {
                0..4 => (9.0, 0.0),
                _ => (0.0, load),
            }
        };
        assert_eq!(limp_after(passes(0.0)), Some(16));
        assert_eq!(limp_after(passes(0.01)), None);
    }
}
