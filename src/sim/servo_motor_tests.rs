//! Tests of measured servos: alone on a pendulum, and in an arm.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use std::f64::consts::{FRAC_PI_2, TAU};

use super::arm_dynamics::ServoDrive;
use super::servo_motor::{
    AxleForces, FirmwareState, GoalProfile, OverloadProtection, ServoMotor, ServoRegulator,
};
use super::tests::REGULATOR;
use super::*;

const RADIAN_TICKS: f64 = 4096.0 / TAU;

/// The STS3215 of the 12 V kit: model m4 of kscalelabs/sysid, `data/feetech/STS_3215_12V_20250317` at 6b78737
/// (kt 3.644392, R 8.788725). It was fitted with the `vin` of its logs, 15 V, although their supply reads 12 V: so what a
/// full duty gives is kt/R · 15 V, and with kt/R · 12 V the rests below would be 2.3° off on average, not 0.8°.
const TWELVE_VOLTS: &str = "stall_n_m = 6.22\nerror_gain = 0.16489\narmature_kg_m2 = 0.02656\nback_emf_n_m_s = 1.5112\n\
    viscous_n_m_s = 0.0616\nfriction_n_m = 0.02343\nfriction_per_load = 0.0476\n\
    stribeck = { friction_n_m = 0.1199, friction_per_load = 0.2975, speed_rad_s = 0.0553, exponent = 0.8709 }";

/// The STS3215 of the 7.4 V kit: model m1 of Rhoban's BAM (PyPI better-actuator-models 1.0.2; kt 1.2116, R 2.676).
const SEVEN_VOLTS: &str = "stall_n_m = 3.35\nerror_gain = 0.166\narmature_kg_m2 = 0.0284\nback_emf_n_m_s = 0.5486\n\
    viscous_n_m_s = 0.0591\nfriction_n_m = 0.0524";

fn figures(text: &str) -> arm::SimulatedServo {
    toml::from_str(text).unwrap()
}

/// Steps from hanging to horizontal, of the logs `processed/*brutal*` there: means of both runs of a setup, 10 to 90 % of the
/// way in milliseconds, the swing beyond the rest and the rest beside the goal in degrees.
struct MeasuredStep {
    gain_p: f64,
    /// Of the pendulum, from the configurations beside the logs: inertia, and the torque of gravity when horizontal.
    inertia_kg_m2: f64,
    gravity_n_m: f64,
    measured: [f64; 3],
    /// What their model m4 says for it, by their own steps of 5 ms.
    m4: [f64; 3],
}

const fn step(
    gain_p: f64,
    (inertia_kg_m2, gravity_n_m): (f64, f64),
    measured: [f64; 3],
    m4: [f64; 3],
) -> MeasuredStep {
    MeasuredStep {
        gain_p,
        inertia_kg_m2,
        gravity_n_m,
        measured,
        m4,
    }
}

/// 535 g at 100 mm, 969 g at 150 mm and 1168 g at 150 mm.
const LIGHT: (f64, f64) = (0.006_745, 0.5422);
const MIDDLE: (f64, f64) = (0.024_55, 1.4619);
const HEAVY: (f64, f64) = (0.029_47, 1.7549);

const MEASURED: [MeasuredStep; 12] = [
    step(4.0, LIGHT, [560.0, 0.0, -10.55], [660.0, 0.0, -11.37]),
    step(8.0, LIGHT, [347.0, 0.0, -5.10], [410.0, 0.0, -5.57]),
    step(16.0, LIGHT, [267.0, 0.0, -2.33], [340.0, 0.0, -2.60]),
    step(32.0, LIGHT, [262.0, 1.75, -0.79], [335.0, 0.0, -0.83]),
    step(4.0, MIDDLE, [428.0, 0.0, -24.52], [530.0, 0.0, -24.06]),
    step(8.0, MIDDLE, [305.0, 0.0, -12.61], [380.0, 0.0, -12.45]),
    step(16.0, MIDDLE, [295.0, 0.09, -4.31], [360.0, 0.0, -5.73]),
    step(32.0, MIDDLE, [295.0, 2.42, -2.29], [375.0, 0.0, -1.70]),
    step(4.0, HEAVY, [390.0, 0.0, -30.01], [495.0, 0.0, -27.43]),
    step(8.0, HEAVY, [300.0, 0.04, -15.38], [370.0, 0.0, -14.48]),
    step(16.0, HEAVY, [310.0, 0.18, -5.49], [365.0, 0.0, -6.65]),
    step(32.0, HEAVY, [320.0, 2.02, -2.64], [390.0, 0.0, -2.08]),
];

/// Swings a pendulum for 2.5 s to a horizontal goal; returns its angles, one a millisecond.
fn swing(motor: &ServoMotor, setup: &MeasuredStep) -> Vec<f64> {
    let regulator = ServoRegulator {
        gain_p: setup.gain_p,
        ..REGULATOR
    };
    let profile = GoalProfile {
        goal_ticks: (FRAC_PI_2 * RADIAN_TICKS).round(),
        speed_ticks_s: f64::INFINITY,
        acceleration_ticks_s2: f64::INFINITY,
    };
    let (mut angle, mut velocity) = (0.0_f64, 0.0);
    let mut firmware = FirmwareState::default();
    let step = |_| {
        let duty = (motor.duty_per_tick(RADIAN_TICKS), 1.0);
        firmware.step(&profile, &regulator, duty, angle * RADIAN_TICKS, 0.001);
        let forces = AxleForces {
            drive_n_m: firmware.duty * motor.stall_n_m(),
            energised: 1.0,
            servos: 1.0,
            // Their pendulum hung 0.0153 rad beside the zero of its servo.
            load_n_m: -setup.gravity_n_m * (angle - 0.0153).sin(),
            inertia_kg_m2: setup.inertia_kg_m2,
        };
        velocity = motor.next_velocity(velocity, &forces, 0.001);
        angle += velocity * 0.001;
        angle
    };
    (0..2500).map(step).collect()
}

fn figures_of(angles: &[f64]) -> [f64; 3] {
    let rest = *angles.last().unwrap();
    let first = |share: f64| angles.iter().position(|angle| *angle >= share * rest);
    let most = angles.iter().copied().fold(0.0, f64::max);
    let rise_ms = first(0.9).unwrap() - first(0.1).unwrap();
    [
        f64::from(u32::try_from(rise_ms).unwrap()),
        (most - rest).to_degrees(),
        (rest - FRAC_PI_2).to_degrees(),
    ]
}

#[test]
fn the_12_v_servo_steps_nearly_as_well_as_its_measurers_models() {
    let motor = ServoMotor::new(&figures(TWELVE_VOLTS));
    let (mut ours, mut theirs) = ([0.0; 3], [0.0; 3]);
    for setup in &MEASURED {
        let simulated = figures_of(&swing(&motor, setup));
        for figure in 0..3 {
            ours[figure] += (simulated[figure] - setup.measured[figure]).abs() / 12.0;
            theirs[figure] += (setup.m4[figure] - setup.measured[figure]).abs() / 12.0;
        }
    }
    let is_near = (0..3).all(|figure| ours[figure] <= 1.5 * theirs[figure]);
    assert!(is_near, "mean errors: ours {ours:.3?}, m4 {theirs:.3?}");
}

/// Returns an SO-101 with such servos, and their figures.
fn arm_with(servo: &str) -> ArmModel {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenes/arms/so101.toml");
    let mut file: arm::ArmFile = toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    file.simulation.servo = Some(figures(servo));
    ArmModel::new(file).unwrap()
}

fn hold(body: &mut ArmDynamics, place: usize, goal_ticks: f64, regulator: ServoRegulator) {
    body.drive(
        place,
        ServoDrive {
            torque_on: true,
            goal_ticks,
            speed_ticks_s: 1000.0,
            acceleration_ticks_s2: 20_000.0,
            torque_ratio: 1.0,
            regulator,
        },
    );
}

fn hold_all(body: &mut ArmDynamics, regulator: ServoRegulator) {
    for place in 0..6 {
        let ticks = body.readings(place).unwrap().ticks.round();
        hold(body, place, ticks, regulator);
    }
}

fn seconds(s: f64) -> ClockInstant {
    ClockInstant::ZERO.after(Duration::from_secs_f64(s))
}

#[test]
fn a_joint_sags_by_load_over_stiffness_and_its_duty_is_the_load() {
    let arm = arm_with(SEVEN_VOLTS);
    let posture = JointVector::zeros(5);
    let load_n_m = arm.load.torque_n_m(&arm.chain, &posture)[2];
    for (gain_p, stiffness) in [(32.0, 17.8), (16.0, 8.9)] {
        let mut body = ArmDynamics::new(&arm, &posture);
        hold_all(
            &mut body,
            ServoRegulator {
                gain_p,
                ..REGULATOR
            },
        );
        body.advance(seconds(3.0), |_| None);
        // Friction, on either side of the load, is what is left.
        let sag_rad = body.truth_rad()[2];
        let off_n_m = sag_rad * stiffness - load_n_m;
        assert!(
            off_n_m.abs() < 0.09,
            "P {gain_p}: {sag_rad} under {load_n_m}"
        );
        let duty_n_m = body.readings(2).unwrap().load_ratio * 3.35;
        assert!((duty_n_m + load_n_m).abs() < 0.09, "{duty_n_m}");
        assert!(!body.readings(2).unwrap().moving);
    }
}

#[test]
fn the_documented_servo_is_that_of_the_seven_volt_kit() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/accuracy.md");
    let page = std::fs::read_to_string(page).unwrap();
    let example = page.split("```toml\n[simulation.servo]").nth(1).unwrap();
    let (_, example) = example.split_once('\n').unwrap();
    let example = example.split("```").next().unwrap();
    assert_eq!(figures(example), figures(SEVEN_VOLTS));
}

#[test]
fn the_same_torques_move_the_arm_the_same_however_often_it_is_advanced() {
    let arm = arm_with(TWELVE_VOLTS);
    let mut once = ArmDynamics::new(&arm, &JointVector::zeros(5));
    hold_all(&mut once, REGULATOR);
    hold(&mut once, 1, 2400.0, REGULATOR);
    let mut often = once.clone();
    once.advance(seconds(2.0), |_| None);
    for step in 1..=2_000 {
        often.advance(seconds(0.001 * f64::from(step)), |_| None);
    }
    assert_eq!(once.truth_rad(), often.truth_rad());
    assert!(once.truth_rad()[1] > 0.4);
}

#[test]
fn a_blocked_joint_trips_and_then_gives_a_fifth_of_its_torque() {
    let regulator = ServoRegulator {
        protection: Some(OverloadProtection {
            above_ratio: 0.8,
            after_s: 2.0,
            limited_ratio: 0.2,
            has_tripped: false,
        }),
        ..REGULATOR
    };
    let mut body = ArmDynamics::new(&arm_with(SEVEN_VOLTS), &JointVector::zeros(5));
    hold_all(&mut body, regulator);
    body.block(0, Some(0.1));
    hold(&mut body, 0, 2600.0, regulator);
    body.advance(seconds(1.9), |_| None);
    assert!(body.readings(0).unwrap().load_ratio > 0.95);
    body.advance(seconds(3.0), |_| None);
    assert!(body.has_tripped(0));
    assert!((body.readings(0).unwrap().load_ratio - 0.2).abs() < 1e-9);
}

#[test]
fn a_joint_without_torque_falls_while_its_registers_say_on() {
    let mut body = ArmDynamics::new(&arm_with(SEVEN_VOLTS), &JointVector::zeros(5));
    hold_all(&mut body, REGULATOR);
    body.advance(seconds(1.0), |_| None);
    let before = body.truth_rad()[2];
    body.break_motor(2, true);
    body.advance(seconds(1.5), |_| None);
    assert!(body.truth_rad()[2] > before + 0.3);
    assert!(body.readings(2).unwrap().load_ratio.abs() < 1e-9);
}

#[test]
fn a_push_deflects_a_joint_by_torque_over_stiffness_until_it_ends() {
    let arm = arm_with(SEVEN_VOLTS);
    let posture = JointVector::zeros(5);
    let mut body = ArmDynamics::new(&arm, &posture);
    hold_all(&mut body, REGULATOR);
    body.advance(seconds(1.0), |_| None);
    let reach_m = arm.chain.forward(&posture).translation.vector.xy().norm();
    // Across the arm, which reaches along -y: a torque on the base's joint alone.
    body.push([5.0, 0.0, 0.0]);
    body.advance(seconds(3.0), |_| None);
    let pushed_rad = body.truth_rad()[0].abs();
    assert!(
        (pushed_rad * 17.8 - 5.0 * reach_m).abs() < 0.25,
        "{pushed_rad} at {reach_m}"
    );
    body.push([0.0; 3]);
    body.advance(seconds(5.0), |_| None);
    let left_rad = body.truth_rad()[0];
    assert!(left_rad.abs() < 0.01, "{left_rad} of {pushed_rad}");
}
