//! Tests motions of an arm that something pushes, or whose joint has no torque.

use nalgebra::Vector3;

use super::*;
use base::units::ServoState;
use kin::ToolTip;

/// A servo as the observed arm has it, which may differ from the figures in its file.
#[derive(Clone, Copy)]
struct TrueServo {
    stall_n_m: f64,
    volts: f64,
    damping_n_m_s: f64,
    friction_n_m: f64,
}

/// The servo of the shipped figures, and the variant for 12 V.
const AS_FILED: TrueServo = TrueServo {
    stall_n_m: 3.35,
    volts: 7.4,
    damping_n_m_s: 0.6,
    friction_n_m: 0.052,
};
const FOR_12_V: TrueServo = TrueServo {
    stall_n_m: 4.98,
    volts: 12.0,
    damping_n_m_s: 1.57,
    friction_n_m: 0.12,
};

fn sag(scene: &Scene) -> SagLead {
    SagLead::new(&scene.arm, |_| Some(32), Some(7.4))
}

struct PushedArm {
    scene: &'static Scene,
    servo: TrueServo,
    before_rad: JointVector,
}

impl PushedArm {
    /// Returns the arm of the drawing, where a motion begins.
    fn new(servo: TrueServo, execution: &Execution) -> Self {
        Self {
            scene: &drawing().0,
            servo,
            before_rad: *execution.goal_rad(),
        }
    }

    /// Returns the reading of an arm whose path is here, pushed at its tip: it stands from its goals as its loads ask for.
    fn reading(
        &mut self,
        execution: &Execution,
        at: ClockInstant,
        push_n: Vector3<f64>,
    ) -> ArmMeasurement {
        let q = *execution.goal_rad();
        let lead_rad = execution.sag().lead_rad(&q);
        let arm = &self.scene.arm;
        let pen = self.scene.pen(0).unwrap();
        let tip = ToolTip {
            point_m: pen.tip_m,
            axis: pen.axis,
        };
        let jacobian = arm.chain.jacobian(&q, &tip);
        let gravity_n_m = arm.load.torque_n_m(&arm.chain, &q);
        let servos = arm.servos().map(|(joint, servo)| {
            let [x, y, z, ..] = *jacobian.get(joint).unwrap();
            let speed_rad_s = (q.get(joint).unwrap() - self.before_rad.get(joint).unwrap()) / 0.01;
            let moves = speed_rad_s / (speed_rad_s.abs() + 0.001);
            let torque_n_m = self.servo.damping_n_m_s * speed_rad_s
                + self.servo.friction_n_m * moves
                - gravity_n_m.get(joint).unwrap()
                - push_n.dot(&Vector3::new(x, y, z));
            ServoState {
                id: servo.id,
                voltage_v: Some(self.servo.volts),
                load_ratio: Some(f64::from(servo.sign) * torque_n_m / self.servo.stall_n_m),
                ..<_>::default()
            }
        });
        let servos: Vec<ServoState> = servos.collect();
        self.before_rad = q;
        let off_rad = lead_rad.map(|joint, lead| {
            // A gain P of 32, and 0.165 of duty for each radian and unit of it.
            lead - servos.get(joint).unwrap().load_ratio.unwrap() / (32.0 * 0.165)
        });
        ArmMeasurement {
            servos,
            ..reading(q.zip(&off_rad, |path, off| path + off), at)
        }
    }
}

/// Draws, pushed from the middle of the first stroke on. Returns the error, and the seconds of the push before it.
fn draw_pushed(servo: TrueServo, push_n: Vector3<f64>) -> Option<(ExecutionError, f64)> {
    let (scene, trajectory) = drawing();
    let mut execution = begin_led(scene, trajectory, sag(scene));
    let mut arm = PushedArm::new(servo, &execution);
    let (mut now, mut pushed_s) = (ClockInstant::ZERO, 0.0);
    loop {
        now = next_tick(now, trajectory);
        let is_pushed = execution.progress().sample >= sample_in_stroke();
        let push_n = if is_pushed { push_n } else { Vector3::zeros() };
        pushed_s += if is_pushed { 0.01 } else { 0.0 };
        let measured = arm.reading(&execution, now, push_n);
        match execution.next(&measured, now) {
            Ok(ExecutionStep::Finished) => return None,
            Ok(_) => {}
            Err(error) => return Some((error, pushed_s)),
        }
    }
}

#[test]
fn an_undisturbed_drawing_raises_no_alarm_on_either_servo() {
    for servo in [AS_FILED, FOR_12_V] {
        // A pen presses with a newton.
        let found = draw_pushed(servo, Vector3::new(0.0, 0.0, 1.0));
        assert!(found.is_none(), "{found:?}");
    }
}

#[test]
fn a_push_of_six_newtons_at_the_tip_ends_a_drawing_within_half_a_second() {
    for push_n in [[6.0, 0.0, 0.0], [-6.0, 0.0, 0.0], [0.0, 0.0, 6.0]] {
        let (error, after_s) = draw_pushed(AS_FILED, push_n.into()).unwrap();
        let ExecutionError::Pushed(found) = &error else {
            panic!("{error:?}");
        };
        assert!(after_s < 0.5, "{push_n:?}: {after_s} s");
        assert!((3..=9).contains(&found.force_n), "{push_n:?}: {found}");
        assert!(error.to_string().len() < 240, "{error}");
    }
}

#[test]
fn a_push_along_the_normal_shows_in_the_torque_of_each_joint_by_its_lever() {
    let (scene, trajectory) = drawing();
    let mut execution = begin_led(scene, trajectory, sag(scene));
    let mut arm = PushedArm::new(AS_FILED, &execution);
    let mut now = ClockInstant::ZERO;
    while execution.progress().sample < sample_in_stroke() {
        now = next_tick(now, trajectory);
        let measured = arm.reading(&execution, now, Vector3::zeros());
        execution.next(&measured, now).unwrap();
    }
    assert_eq!(execution.trimmed_by_rad(), JointVector::zeros(5));
    // Standing in one place, so that only the push differs.
    arm.before_rad = *execution.goal_rad();
    let there = arm.reading(&execution, now, Vector3::zeros());
    let [free, pushed] = [0.0, 2.0].map(|push_n| {
        let measured = arm.reading(&execution, now, Vector3::new(0.0, 0.0, push_n));
        let position_rad = there.position_rad;
        let measured = ArmMeasurement {
            position_rad,
            ..measured
        };
        execution.normal_loads(&measured).unwrap()
    });
    let more_n_m = pushed
        .torque_n_m
        .zip(&free.torque_n_m, |pushed, free| pushed - free);
    // As far as it knows how strong the servos are.
    let borne = more_n_m.iter().zip(free.levers_m.iter());
    let mut shares = borne
        .filter(|(_, lever)| lever.abs() > 0.02)
        .map(|(more, lever)| -more / (2.0 * lever));
    assert_eq!(shares.clone().count(), 3);
    assert!(
        shares.all(|share| (0.7..1.4).contains(&share)),
        "{more_n_m:?} {free:?}"
    );
    let mut short = there;
    short.position_rad = JointVector::zeros(4);
    assert!(execution.normal_loads(&short).is_none());
}

#[test]
fn a_joint_without_torque_ends_a_motion_within_300_ms() {
    let (scene, trajectory) = drawing();
    let mut execution = begin_led(scene, trajectory, sag(scene));
    let mut arm = PushedArm::new(AS_FILED, &execution);
    let (mut now, mut limp_s, mut stands_rad) = (ClockInstant::ZERO, 0.0, None);
    let error = loop {
        now = next_tick(now, trajectory);
        let mut measured = arm.reading(&execution, now, Vector3::zeros());
        if execution.progress().sample >= sample_in_stroke() {
            limp_s += 0.01;
            // It sinks at its own pace, whatever its goal is.
            let stands = *stands_rad.get_or_insert(*measured.position_rad.get(1).unwrap());
            *measured.position_rad.get_mut(1).unwrap() = stands - 0.3 * limp_s;
            measured.servos.get_mut(1).unwrap().load_ratio = Some(0.0);
        }
        match execution.next(&measured, now) {
            Ok(step) => assert!(!matches!(step, ExecutionStep::Finished)),
            Err(error) => break error,
        }
    };
    assert!(
        matches!(&error, ExecutionError::Limp { joint, .. } if joint == "shoulder_lift"),
        "{error:?}"
    );
    assert!(limp_s < 0.3, "{limp_s} s");
}
