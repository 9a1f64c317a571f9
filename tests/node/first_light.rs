//! Tests how near the ink comes to the design, through the whole node.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a failing test may panic"
)]

use crate::support;
use serde_json::Value;
use support::{Bench, sloppy_arm};

fn deviation_mm(bench: &Bench) -> (f64, f64) {
    let (code, result) = bench.call(&["stroke"]);
    assert_eq!(code, 0, "{result:#}");
    let figure = |name: &str| result[name].as_f64().unwrap();
    (figure("deviation_mm_p95"), figure("deviation_mm_max"))
}

#[test]
fn the_ink_is_nowhere_a_millimetre_from_the_design() {
    let (_, max) = deviation_mm(&Bench::at_test_rate());
    assert!(max <= 1.0, "{max} mm");
}

#[test]
fn the_ink_is_half_a_millimetre_from_the_design_at_most_places() {
    let (p95, _) = deviation_mm(&Bench::at_test_rate());
    assert!(p95 <= 0.5, "{p95} mm");
}

#[test]
fn play_in_the_gears_shows_in_the_ink() {
    let (without, _) = deviation_mm(&Bench::at_test_rate());
    let sloppy = Bench::at_test_rate();
    std::fs::write(sloppy.path("scenes/arms/so101.toml"), sloppy_arm(1.0)).unwrap();
    let (code, result) = sloppy.call(&["stroke"]);
    let with = result["deviation_mm_p95"].as_f64().unwrap();
    println!("half a degree of play either way: 95 in 100 within {with} mm");
    assert!(with > without, "{with} mm with play, {without} mm without");
    // The ink lies elsewhere than planned.
    assert_eq!(code, 1, "{result:#}");
    assert_eq!(result["code"], "ink_missing", "{result:#}");
    assert!(
        result["deviation_mm_max"].as_f64() > Some(1.0),
        "{result:#}"
    );
}

/// Draws the scene `short`, without success, on a simulated arm that is truly as the folder `truth` says. Returns the node's options
/// and the result.
fn drawn_in_truth(bench: &Bench) -> ([String; 4], Value) {
    let node =
        "[[arms]]\nname = \"arm\"\nmodel = \"so101\"\nport = \"simulator\"\ntruth = \"truth\"\n";
    std::fs::write(bench.path("node.toml"), node).unwrap();
    let (config, state) = (bench.path("node.toml"), bench.path("state"));
    let options = [
        "--config".to_owned(),
        config.display().to_string(),
        "--state".to_owned(),
        state.display().to_string(),
    ];
    let call = ["call", "--json", "stroke", r#"{"scene": "short"}"#];
    let output = bench.run(&[&options.each_ref().map(String::as_str)[..], &call].concat());
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{result:#}");
    (options, result)
}

/// Draws the scene `short` on a simulated arm whose sheet truly lies elsewhere. Returns the result and the history's line.
fn drawn_on_a_sheet_at(origin_m: &str) -> (Value, String) {
    let bench = Bench::at_test_rate();
    std::fs::create_dir_all(bench.path("truth")).unwrap();
    let scene = std::fs::read_to_string(bench.path("scenes/short.toml")).unwrap();
    let moved = scene.replace("[0.05, -0.125, 0.005]", origin_m);
    assert_ne!(scene, moved);
    std::fs::write(bench.path("truth/short.toml"), moved).unwrap();
    let (options, result) = drawn_in_truth(&bench);
    let options = options.each_ref().map(String::as_str);
    let jobs = bench.run(&[&options[..], &["jobs"]].concat());
    (result, String::from_utf8(jobs.stdout).unwrap())
}

#[test]
fn a_drawing_without_ink_is_no_success() {
    let (result, jobs) = drawn_on_a_sheet_at("[0.05, -0.125, 0.001]");
    assert_eq!(result["success"], false, "{result:#}");
    assert_eq!(result["code"], "ink_missing", "{result:#}");
    assert_eq!(result["job"]["state"], "deviated", "{result:#}");
    assert_eq!(result["missing_mm"], result["pen_down_mm"], "{result:#}");
    assert!(result.get("deviation_mm_max").is_none(), "{result:#}");
    assert!(!jobs.contains("drawn whole"), "{jobs}");
}

#[test]
fn a_drawing_whose_ink_lies_elsewhere_is_no_success() {
    let (result, _) = drawn_on_a_sheet_at("[0.05, -0.122, 0.005]");
    assert_eq!(result["code"], "ink_missing", "{result:#}");
    assert_eq!(result["job"]["state"], "deviated", "{result:#}");
    let missing_mm = result["missing_mm"].as_f64().unwrap();
    assert!(missing_mm > 1.0, "{result:#}");
    let off_mm = result["deviation_mm_max"].as_f64().unwrap();
    // Three millimetres, and up to one of the arm.
    assert!((2.5..4.0).contains(&off_mm), "{result:#}");
}

/// An arm whose shoulder stands four degrees lower than its file says presses the pen into the table. Nothing is known of its
/// servos, or their load would end the drawing.
#[test]
fn a_drawing_that_a_joint_did_not_follow_is_no_success() {
    let bench = Bench::at_test_rate();
    std::fs::create_dir_all(bench.path("truth/arms")).unwrap();
    let arm = include_str!("../../scenes/arms/so101.toml");
    let (arm, _) = arm.split_once("\n[servo]\n").unwrap();
    let wrong = arm.replace(
        "id = 2, sign = 1, zero_tick = 2048",
        "id = 2, sign = 1, zero_tick = 2002",
    );
    assert_ne!(arm, wrong);
    std::fs::write(bench.path("truth/arms/so101.toml"), wrong).unwrap();
    std::fs::create_dir_all(bench.path("scenes/arms")).unwrap();
    std::fs::write(bench.path("scenes/arms/so101.toml"), arm).unwrap();
    let truth = std::fs::read(bench.path("scenes/short.toml")).unwrap();
    std::fs::write(bench.path("truth/short.toml"), truth).unwrap();
    let (options, result) = drawn_in_truth(&bench);
    let options = options.each_ref().map(String::as_str);
    assert_eq!(result["success"], false, "{result:#}");
    assert_eq!(result["code"], "did_not_follow", "{result:#}");
    assert_eq!(result["job"]["state"], "deviated", "{result:#}");
    let message = result["message"].as_str().unwrap();
    assert!(message.contains("shoulder_lift"), "{message}");
    let jobs = bench.run(&[&options[..], &["jobs", "job-1"]].concat());
    let jobs = String::from_utf8(jobs.stdout).unwrap();
    assert!(
        jobs.contains("deviated") && !jobs.contains("drawn whole"),
        "{jobs}"
    );
}
