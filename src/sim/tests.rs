//! Tests of the simulated arm's motion and drawing, independent of servo protocols.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use super::arm_dynamics::{STEP, ServoDrive, ServoReadings};
use super::servo_motor::ServoRegulator;
use super::*;

fn arm(change: impl Fn(&mut arm::ArmFile)) -> ArmModel {
    let path = format!(
        "{}/scenes/arms/so101.toml",
        concat!(env!("CARGO_MANIFEST_DIR"), "/../..")
    );
    let mut file = toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    change(&mut file);
    ArmModel::new(file).unwrap()
}

/// Of a servo as it is delivered.
pub(super) const REGULATOR: ServoRegulator = ServoRegulator {
    gain_p: 32.0,
    dead_zone_ticks: 1.0,
    protection: None,
};

fn number(value: f64) -> base::units::Finite {
    base::units::Finite::new(value).unwrap()
}

fn go(body: &mut ArmDynamics, place: usize, goal_ticks: f64) {
    body.drive(
        place,
        ServoDrive {
            torque_on: true,
            goal_ticks,
            speed_ticks_s: 1000.0,
            acceleration_ticks_s2: 20_000.0,
            torque_ratio: 1.0,
            regulator: REGULATOR,
        },
    );
}

fn after(millis: u64) -> ClockInstant {
    ClockInstant::ZERO.after(Duration::from_millis(millis))
}

#[test]
fn motion_does_not_depend_on_how_often_it_is_advanced() {
    let arm = arm(|_| {});
    let mut once = ArmDynamics::new(&arm, &JointVector::zeros(5));
    go(&mut once, 0, 2500.0);
    let mut often = once.clone();
    once.advance(after(300), |_| None);
    for micros in (0..=300_000).step_by(137) {
        often.advance(
            ClockInstant::ZERO.after(Duration::from_micros(micros)),
            |_| None,
        );
    }
    often.advance(after(300), |_| None);
    assert_eq!(once.truth_rad(), often.truth_rad());
    assert!(once.truth_rad()[0] > 0.3);
}

#[test]
fn speed_and_acceleration_of_a_servo_that_lags_stay_within_its_limits() {
    let arm = arm(|file| file.servo = None);
    let mut body = ArmDynamics::new(&arm, &JointVector::zeros(5));
    go(&mut body, 0, 3500.0);
    let tick_rad = std::f64::consts::TAU / 4096.0;
    let (mut last, mut last_speed) = (0.0, 0.0);
    body.advance(after(3000), |joints| {
        let rad_s = (joints[0] - last) / STEP.as_secs_f64();
        assert!(rad_s <= 1000.0 * tick_rad * 1.001, "{rad_s}");
        assert!(
            (rad_s - last_speed).abs() <= 20_000.0 * tick_rad * STEP.as_secs_f64() * 1.01 + 0.03
        );
        (last, last_speed) = (joints[0], rad_s);
        None
    });
    assert!((last - f64::from(3500 - 2048) * tick_rad).abs() < 2.0 * tick_rad);
}

#[test]
fn gears_with_play_lag_in_both_directions() {
    // A measured servo swings, and leaves its play on the other side.
    let arm = arm(|file| {
        file.servo = None;
        file.simulation.backlash_deg = number(1.0);
    });
    let mut body = ArmDynamics::new(&arm, &JointVector::zeros(5));
    let tick_rad = std::f64::consts::TAU / 4096.0;
    let half_rad = 0.5_f64.to_radians();
    for (goal, lag_rad) in [(2300.0, -half_rad), (2148.0, half_rad)] {
        go(&mut body, 0, goal);
        body.advance(later(&body), |_| None);
        let servo_rad = (goal - 2048.0) * tick_rad;
        assert!((body.truth_rad()[0] - servo_rad - lag_rad).abs() < 2.0 * tick_rad);
    }
}

/// Returns the time two seconds later.
fn later(body: &ArmDynamics) -> ClockInstant {
    body.at().after(Duration::from_secs(2))
}

#[test]
fn an_obstacle_stops_the_joint_loads_the_servo_and_heats_it() {
    let mut body = ArmDynamics::new(&arm(|_| {}), &JointVector::zeros(5));
    body.block(0, Some(0.1));
    go(&mut body, 0, 2500.0);
    body.advance(after(1000), |_| None);
    assert!((body.truth_rad()[0] - 0.1).abs() < 1e-9);
    let readings = body.readings(0).unwrap();
    assert!(readings.load_ratio > 0.9, "{}", readings.load_ratio);
    body.advance(after(60_000), |_| None);
    assert!(body.readings(0).unwrap().temperature_c > 30.0);
    body.block(0, None);
    body.advance(after(62_000), |_| None);
    assert!(body.truth_rad()[0] > 0.6);
}

/// A sheet that spans the base's x and y at a height.
struct Level(f64);

impl PaperSurface for Level {
    fn touch(&self, [x_m, y_m, z_m]: [f64; 3]) -> Option<([f64; 2], f64)> {
        Some(([x_m * 1000.0, y_m * 1000.0], (z_m - self.0) * 1000.0))
    }
}

#[test]
fn the_pen_draws_where_it_touches_and_lifts_between_lines() {
    let arm = arm(|_| {});
    let pen = SimPen {
        tip_m: [0.0; 3],
        colour: "black".to_owned(),
        width_mm: 0.5,
    };
    let height = arm.chain.forward(&JointVector::zeros(5)).translation.z;
    let mut pens = PenWorkspace::default();
    pens.place_sheet(Box::new(Level(height + 1e-6)), vec![pen]);
    let pan = |rad: f64| JointVector::from_slice(&[rad, 0.0, 0.0, 0.0, 0.0]);
    let lifted = JointVector::from_slice(&[0.5, -0.3, 0.0, 0.0, 0.0]);
    for step in 0..100 {
        pens.trace(&arm.chain, &pan(0.001 * f64::from(step)));
    }
    pens.trace(&arm.chain, &lifted);
    let lifted_z = arm.chain.forward(&lifted).translation.z;
    for step in 0..100 {
        pens.trace(&arm.chain, &pan(0.5 + 0.001 * f64::from(step)));
    }
    let lines = pens.ink();
    assert_eq!(lines.len(), if lifted_z > height { 2 } else { 1 });
    assert!(
        lifted_z > height,
        "the lifted pose must be above the sheet: {lifted_z} over {height}"
    );
    let length: f64 = lines[0]
        .points_mm
        .windows(2)
        .map(|pair| (pair[0][0] - pair[1][0]).hypot(pair[0][1] - pair[1][1]))
        .sum();
    let reach_mm = arm.chain.forward(&pan(0.0)).translation.vector.xy().norm() * 1000.0;
    assert!(
        length > 0.05 * reach_mm && length < 0.15 * reach_mm,
        "{length} of {reach_mm}"
    );
}

/// Presses the tool on a solid sheet with two joints whose goals lie `ticks` beyond it; returns the readings
/// of the first, and the tool's height over the sheet.
fn press(ticks: f64, torque_ratio: f64) -> (ServoReadings, f64) {
    let arm = arm(|_| {});
    let stretched = JointVector::from_slice(&[0.0, 0.2, -0.2, 0.0, 0.0]);
    let height_m = |q: &JointVector| arm.chain.forward(q).translation.z;
    let mut body = ArmDynamics::new(&arm, &stretched);
    let goal = |place: usize| body.readings(place).unwrap().ticks;
    let (lift, elbow) = (goal(1), goal(2));
    let sheet_m = height_m(&stretched);
    let mut pens = PenWorkspace::default();
    let pen = SimPen {
        tip_m: [0.0; 3],
        colour: "black".to_owned(),
        width_mm: 0.5,
    };
    pens.place_sheet(Box::new(Level(sheet_m)), vec![pen]);
    let down = |joint: usize| {
        let moved = stretched.map(|other, q| if other == joint { q + 0.01 } else { q });
        let sign = arm.servos().find(|(of, _)| *of == joint).unwrap().1.sign;
        f64::from(sign) * (sheet_m - height_m(&moved)).signum()
    };
    for (place, from) in [(1, lift), (2, elbow)] {
        let drive = ServoDrive {
            torque_on: true,
            goal_ticks: from + ticks * down(place),
            speed_ticks_s: 500.0,
            acceleration_ticks_s2: 20_000.0,
            torque_ratio,
            regulator: REGULATOR,
        };
        body.drive(place, drive);
    }
    body.advance(after(3000), |joints| pens.trace(&arm.chain, joints));
    let truth_mm = (height_m(&body.truth_rad()) - sheet_m) * 1e3;
    (body.readings(1).unwrap(), truth_mm)
}

#[test]
fn a_tip_pressed_beyond_its_spring_holds_back_and_loads_joints() {
    let (gentle, _) = press(4.0, 1.0);
    let (hard, hard_mm) = press(40.0, 1.0);
    // The pen slides 2 mm into its holder, and the sheet hardly yields.
    assert!((-3.0..=-2.0).contains(&hard_mm), "{hard_mm}");
    assert!(hard.load_ratio.abs() > 0.15, "{hard:?}");
    assert!(
        hard.current_a > 2.0 * gentle.current_a,
        "{hard:?} {gentle:?}"
    );
    // A servo acts like a spring: its load is proportional to its error.
    let (harder, harder_mm) = press(80.0, 1.0);
    assert!(harder.load_ratio.abs() > hard.load_ratio.abs() + 0.2);
    assert!(harder_mm > -3.0, "{harder_mm}");
}

#[test]
fn a_servo_at_its_torque_limit_yields_to_a_solid_sheet() {
    let (strong, _) = press(80.0, 1.0);
    let (weak, weak_mm) = press(80.0, 0.2);
    assert!((weak.load_ratio.abs() - 0.2).abs() < 1e-9, "{weak:?}");
    assert!(strong.load_ratio.abs() > 0.3, "{strong:?}");
    assert!((-3.0..=-2.0).contains(&weak_mm), "{weak_mm}");
}
