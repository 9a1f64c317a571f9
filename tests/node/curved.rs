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

/// A bench with the scene `scanned`: a cross on a scan of a wavy board, which has points where `is_seen`.
fn scanned(is_seen: impl Fn(f64, f64) -> bool) -> Bench {
    let at = |step: u32| 0.8 * f64::from(step) - 10.0;
    let point = |index: u32| {
        let (x, y) = (at(index % 150), at(index / 150));
        let noise = 0.3 * ((f64::from(index) * 12.9898).sin() * 43_758.545_3).fract();
        let height = 2.0 * (x / 20.0).sin() * (y / 25.0).cos() + noise;
        is_seen(x, y).then(|| format!("{x:.3} {y:.3} {height:.4}"))
    };
    let points: Vec<String> = (0..150 * 150).filter_map(point).collect();
    let header = format!(
        "ply\nformat ascii 1.0\nelement vertex {}\nproperty float x\nproperty float y\nproperty float z\nend_header\n",
        points.len()
    );
    let bench = Bench::at_test_rate();
    let cross = "[[[0.0, 25.0], [50.0, 25.0]], [[25.0, 0.0], [25.0, 50.0]]]";
    let scene = support::scene("scanned", cross);
    let surface = "\n[surface]\nmesh = \"scan.ply\"\nunit = \"mm\"\n\n[limits]\nstretch = 0.1\n";
    bench.scene("scanned", &(scene + surface));
    std::fs::create_dir_all(bench.path("scenes/meshes")).unwrap();
    let file = header + &points.join("\n") + "\n";
    std::fs::write(bench.path("scenes/meshes/scan.ply"), file).unwrap();
    bench
}

#[test]
fn a_scan_of_points_alone_is_drawn_on() {
    let (code, result) = scanned(|_, _| true).call(&["stroke", r#"{"scene": "scanned"}"#]);
    assert_eq!(code, 0, "{result:#}");
    let most_mm = result["deviation_mm_p95"].as_f64().unwrap();
    assert!(most_mm <= 0.5, "{result:#}");
}

#[test]
fn a_line_over_a_place_that_a_scan_does_not_show_is_refused() {
    let is_seen = |x: f64, y: f64| (x - 68.0).hypot(y - 50.0) > 5.0;
    let (code, result) = scanned(is_seen).call(&["stroke", r#"{"scene": "scanned"}"#]);
    assert_eq!(code, 1, "{result:#}");
    assert_eq!(result["code"], "off_surface", "{result:#}");
}
