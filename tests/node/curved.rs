//! Whole drawings by the simulated arm: on a bottle and filled with lines, each as long as planned.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use crate::support;
use serde_json::Value;
use support::Bench;

fn drawn(scene: &str) -> Value {
    let (code, result) =
        Bench::at_test_rate().call(&["stroke", &format!("{{\"scene\": \"{scene}\"}}")]);
    assert_eq!(code, 0, "{result:#}");
    result
}

/// The estimate is within 3 % and 0.2 s of what the arm takes, and the ink within a millimetre.
fn check(scene: &str) -> Value {
    let result = drawn(scene);
    let figure = |name: &str| result[name].as_f64().unwrap();
    let (planned_s, took_s) = (figure("planned_s"), figure("arm_time_s"));
    assert!(
        (took_s - planned_s).abs() <= 0.2 + 0.03 * planned_s,
        "{scene}: {planned_s} s planned, {took_s} s taken"
    );
    let most_mm = figure("deviation_mm_max");
    assert!(most_mm <= 1.0, "{scene}: {most_mm} mm from the design");
    result
}

#[test]
fn the_practice_drawing_takes_as_long_as_planned() {
    check("default");
}

#[test]
fn a_bottle_is_drawn_on() {
    check("bottle");
}

#[test]
fn a_bumpy_mesh_is_drawn_on() {
    let result = check("bumpy");
    let most_mm = result["deviation_mm_p95"].as_f64().unwrap();
    assert!(most_mm <= 0.5, "{most_mm} mm from the design");
}

#[test]
fn a_filled_design_is_drawn() {
    check("hatched");
}
