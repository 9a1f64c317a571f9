//! Tests of worn gears on the arm's motion.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use super::arm_dynamics::ServoDrive;
use super::tests::REGULATOR;
use super::*;

const LIFT: usize = 1;
const PAN: usize = 0;
const RADIAN_TICKS: f64 = 4096.0 / std::f64::consts::TAU;

/// Returns an SO-101 whose wear is zero except for the figures in `wear`, and whose servos follow with a lag: what is left
/// is the gears' alone.
fn worn(wear: &str) -> ArmModel {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenes/arms/so101.toml");
    let mut figures: toml::Table = toml::from_str(
        "seed = 7\nplay_deg = 0.0\nplay_spread = 0.0\nbearing_friction_n_m = 0.0\nservo_friction_n_m = 0.0\n\
         servo_friction_per_load = 0.0\nsag_deg_per_n_m = 0.0\nzero_drift_deg_per_k = 0.0\npayload_g = 200.0",
    )
    .unwrap();
    figures.extend(toml::from_str::<toml::Table>(wear).unwrap());
    let mut file: arm::ArmFile = toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    file.simulation.wear = Some(figures.try_into().unwrap());
    file.servo = None;
    ArmModel::new(file).unwrap()
}

/// Moves a joint to a goal; returns its true angle and the encoder's, as offsets from the goal.
fn move_and_read(body: &mut ArmDynamics, joint: usize, goal_rad: f64, until_s: u64) -> (f64, f64) {
    let goal_ticks = (2048.0 + goal_rad * RADIAN_TICKS).round();
    body.drive(
        joint,
        ServoDrive {
            torque_on: true,
            goal_ticks,
            speed_ticks_s: 1000.0,
            acceleration_ticks_s2: 20_000.0,
            torque_ratio: 1.0,
            regulator: REGULATOR,
        },
    );
    let at = ClockInstant::ZERO.after(Duration::from_secs(until_s));
    body.advance(at, |_| None);
    let goal_rad = (goal_ticks - 2048.0) / RADIAN_TICKS;
    let read_ticks = body.readings(joint).unwrap().ticks;
    let read_rad = (read_ticks - 2048.0) / RADIAN_TICKS;
    (body.truth_rad()[joint] - goal_rad, read_rad - goal_rad)
}

fn approach_from_both_sides(arm: &ArmModel, joint: usize, goal_rad: f64) -> [(f64, f64); 2] {
    let mut body = ArmDynamics::new(arm, &JointVector::zeros(5));
    move_and_read(&mut body, joint, goal_rad - 0.3, 3);
    let from_below = move_and_read(&mut body, joint, goal_rad, 6);
    move_and_read(&mut body, joint, goal_rad + 0.3, 9);
    [from_below, move_and_read(&mut body, joint, goal_rad, 12)]
}

#[test]
fn an_unloaded_joint_lags_by_half_its_play_unseen_by_its_encoder() {
    let half_rad = 0.5_f64.to_radians();
    let [below, above] = approach_from_both_sides(
        &worn("play_deg = 1.0\nbearing_friction_n_m = 0.02"),
        PAN,
        0.2,
    );
    assert!((below.0 + half_rad).abs() < 2.0 / RADIAN_TICKS, "{below:?}");
    assert!((above.0 - half_rad).abs() < 2.0 / RADIAN_TICKS, "{above:?}");
    assert!(below.1.abs() < 2.0 / RADIAN_TICKS && above.1.abs() < 2.0 / RADIAN_TICKS);
}

#[test]
fn a_loaded_joint_hangs_on_one_side_of_its_play_unless_friction_holds_it() {
    let [below, above] = approach_from_both_sides(&worn("play_deg = 1.0"), LIFT, 0.0);
    assert!((below.0 - above.0).abs() < 3.0 / RADIAN_TICKS);
    assert!(below.0.abs() > 0.5_f64.to_radians() - 2.0 / RADIAN_TICKS);
    let held = worn("play_deg = 1.0\nbearing_friction_n_m = 5.0");
    let [below, above] = approach_from_both_sides(&held, LIFT, 0.0);
    assert!(above.0 - below.0 > 0.9_f64.to_radians());
}

#[test]
fn a_servo_sags_more_at_a_lower_supply_and_its_encoder_sees_it() {
    let arm = worn("sag_deg_per_n_m = 2.0");
    let sag_at = |supply: f64| {
        let mut body = ArmDynamics::new(&arm, &JointVector::zeros(5));
        body.supply_v *= supply;
        let (truth_rad, read_rad) = move_and_read(&mut body, LIFT, 0.3, 3);
        assert!((truth_rad - read_rad).abs() < 1e-9);
        let mount_m = |lift_rad: f64| {
            let q_rad = JointVector::from_slice(&[0.0, lift_rad, 0.0, 0.0, 0.0]);
            arm.chain.forward(&q_rad).translation.z
        };
        assert!(mount_m(0.3 + truth_rad) < mount_m(0.3));
        truth_rad.abs()
    };
    assert!(sag_at(1.0) > 0.3_f64.to_radians(), "{}", sag_at(1.0));
    assert!(sag_at(0.67) > 1.2 * sag_at(1.0));
}

#[test]
fn friction_in_the_servo_leaves_errors_that_need_less_torque() {
    let step_rad = 0.4_f64.to_radians();
    for (friction_n_m, should_stay) in [(0.6, true), (0.3, false)] {
        let wear = format!("sag_deg_per_n_m = 1.0\nservo_friction_n_m = {friction_n_m:?}");
        let mut body = ArmDynamics::new(&worn(&wear), &JointVector::zeros(5));
        let (_, read_rad) = move_and_read(&mut body, PAN, step_rad, 2);
        let stayed = (read_rad + step_rad).abs() < 1.0 / RADIAN_TICKS;
        assert_eq!(stayed, should_stay, "{friction_n_m} N m: {read_rad} rad");
    }
}

#[test]
fn a_hot_servo_shifts_its_joint_and_its_encoder_does_not_see_it() {
    let arm = worn("zero_drift_deg_per_k = 0.05");
    let mut body = ArmDynamics::new(&arm, &JointVector::zeros(5));
    body.heat(PAN, 65.0);
    let (truth_rad, read_rad) = move_and_read(&mut body, PAN, 0.2, 2);
    assert!((truth_rad - read_rad).abs() > 1e-4);
}

#[test]
fn wear_is_the_same_for_a_seed_and_differs_for_another() {
    let lag = |seed: u32| {
        let arm = worn(&format!("seed = {seed}\nplay_deg = 1.0\nplay_spread = 0.3"));
        approach_from_both_sides(&arm, PAN, 0.2)[0].0.to_bits()
    };
    assert_eq!(lag(1), lag(1));
    assert_ne!(lag(1), lag(2));
}

#[test]
fn zero_wear_moves_like_no_wear() {
    let mut model = worn("");
    let zero = ArmDynamics::new(&model, &JointVector::zeros(5));
    model.file.simulation.wear = None;
    let without = ArmDynamics::new(&model, &JointVector::zeros(5));
    let [zero, without] = [zero, without].map(|mut body| move_and_read(&mut body, LIFT, 0.5, 3));
    assert!((zero.0 - without.0).abs() < 1e-12 && (zero.1 - without.1).abs() < 1e-12);
}

#[test]
fn implausible_figures_are_refused() {
    for (key, value) in [
        ("play_deg", 5.1),
        ("play_spread", 0.51),
        ("payload_g", -1.0),
        ("zero_drift_deg_per_k", 0.11),
    ] {
        let arm = worn("");
        let mut wear = toml::Table::try_from(arm.file.simulation.wear.clone().unwrap()).unwrap();
        wear.insert(key.to_owned(), value.into());
        let mut file = arm.file.clone();
        file.simulation.wear = Some(wear.try_into().unwrap());
        let refusal = ArmModel::new(file).unwrap_err().to_string();
        assert!(refusal.contains(key), "{refusal}");
    }
}

#[test]
fn the_documented_example_is_accepted() {
    let read = |path: &str| {
        std::fs::read_to_string(format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
    };
    let page = read("docs/accuracy.md");
    let example = page.split("```toml\n[simulation.wear]\n").nth(1).unwrap();
    let example = example.split("```").next().unwrap();
    let text = read("scenes/arms/so101.toml") + "\n[simulation.wear]\n" + example;
    let model = ArmModel::new(toml::from_str(&text).unwrap()).unwrap();
    let [below, above] = approach_from_both_sides(&model, PAN, 0.2);
    assert!(above.0 - below.0 > 0.3_f64.to_radians());
}
