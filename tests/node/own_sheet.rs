//! Calibrations of one arm's part of a scene that two arms share: accepted for that arm alone, or refused before anything moves.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use crate::support;
use serde_json::Value;
use support::{Bench, unless_starved};

const SHIPPED: &str = include_str!("../../scenes/two_arms.toml");

/// Two simulated arms whose sheet lies 2 mm higher than their scene says.
fn pair_under_a_high_sheet() -> Bench {
    pair_on(Bench::new())
}

fn pair_on(bench: Bench) -> Bench {
    let bench = bench.with_file("");
    std::fs::create_dir_all(bench.path("truth")).unwrap();
    let truth = SHIPPED.replace("-0.1485, 0.005]", "-0.1485, 0.007]");
    assert_ne!(truth, SHIPPED);
    std::fs::write(bench.path("truth/two_arms.toml"), truth).unwrap();
    bench.scene("two_arms", SHIPPED);
    let arm = |name: &str| {
        let truth = bench.path("truth");
        format!(
            "[[arms]]\nname = \"{name}\"\nmodel = \"so101\"\nport = \"simulator\"\ntruth = {truth:?}\n"
        )
    };
    bench.file(&format!("name = \"pair\"\n{}{}", arm("left"), arm("right")));
    bench
}

fn file(bench: &Bench) -> toml::Table {
    let text = std::fs::read_to_string(bench.path("scenes/two_arms.toml")).unwrap();
    text.parse().unwrap()
}

fn call(bench: &Bench, tool: &str, arguments: &str) -> Value {
    bench.call(&[tool, arguments]).1
}

fn felt_mm(bench: &Bench, arm: &str) -> f64 {
    let arguments = format!(r#"{{"scene": "two_arms", "arm": "{arm}", "touch": true}}"#);
    let felt = call(bench, "align", &arguments);
    assert_eq!(felt["success"], true, "{felt:#}");
    felt["change"]["mm"]
        .as_f64()
        .unwrap_or_else(|| panic!("{felt:#}"))
}

#[test]
fn a_sheet_that_one_arm_has_felt_is_accepted_for_that_arm() {
    let bench = pair_under_a_high_sheet();
    let felt = felt_mm(&bench, "left");
    assert!((felt - 2.0).abs() < 0.5, "{felt}");
    let before = file(&bench);
    let (code, output) = bench.said(&["calibrate", "accept"]);
    assert_eq!(code, 0, "{output}");
    let after = file(&bench);
    assert_eq!(after["sheet"], before["sheet"]);
    assert_eq!(after["arms"][1], before["arms"][1]);
    let z_m = after["arms"][0]["sheet"]["origin_m"][2].as_float().unwrap();
    assert!((z_m - 0.007).abs() < 0.5e-3, "{z_m}");
    // The next touch of this arm goes by it; the other one still feels what the scene says.
    let again = felt_mm(&bench, "left");
    assert!(again < 0.5, "{again}");
    bench.said(&["calibrate", "discard"]);
    let other = felt_mm(&bench, "right");
    assert!((other - 2.0).abs() < 0.5, "{other}");
    bench.said(&["calibrate", "discard"]);
    // Both draw, each where it has the sheet.
    let drawn = call(
        &bench,
        "stroke",
        r#"{"scene": "two_arms", "dry_run": true}"#,
    );
    assert_eq!(drawn["success"], true, "{drawn:#}");
    // A sheet 20 mm aside belongs to a base that stands elsewhere.
    let path = bench.path("scenes/two_arms.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let line = text
        .lines()
        .filter(|line| line.starts_with("origin_m"))
        .nth(1)
        .unwrap();
    std::fs::write(
        &path,
        text.replace(line, &format!("origin_m = [-0.128, -0.082, {z_m}]")),
    )
    .unwrap();
    let refused = call(&bench, "stroke", r#"{"scene": "two_arms"}"#);
    assert_eq!(refused["code"], "bases_differ", "{refused:#}");
}

/// One file describes both arms: what is measured of one must not change the other.
#[test]
fn zeros_and_play_of_one_arm_are_refused_where_its_file_describes_both() {
    let bench = pair_under_a_high_sheet();
    let pattern = call(
        &bench,
        "align",
        r#"{"scene": "two_arms", "arm": "left", "ink": true}"#,
    );
    let message = pattern["message"].as_str().unwrap();
    assert!(message.contains("`right`"), "{pattern:#}");
    assert!(
        pattern["now"].as_str().unwrap().contains("limp"),
        "{pattern:#}"
    );
    let joints = ["--joints", "1.85,-1.5,1.2,0.8,0.0487"];
    let touch = ["calibrate", "touch", "zeros", "--scene", "two_arms:left"];
    let (code, output) = bench.said(&[&touch[..], &joints].concat());
    assert!(code != 0 && output.contains("`right`"), "{output}");
    let (_, shown) = bench.said(&["calibrate", "show"]);
    assert!(shown.contains("no touches yet"), "{shown}");
}

/// A line in the middle of the sheet.
const DOT: &str = r#"<svg xmlns="http://www.w3.org/2000/svg" width="210mm" height="297mm" viewBox="0 0 210 297"><path fill="none" stroke="black" d="M100 150H110"/></svg>"#;

/// The other arm stands where this one is to touch.
#[test]
fn an_arm_in_the_way_of_too_many_touches_is_named_before_anything_moves() {
    unless_starved(|| {
        let bench = pair_on(Bench::at_test_rate());
        // What one arm draws alone it ends over.
        std::fs::write(bench.path("scenes/dot.svg"), DOT).unwrap();
        bench.scene("two_arms", &SHIPPED.replace("rings.svg", "dot.svg"));
        let served = bench.serve(&["--enable", "two_arms"]);
        let align = |arguments: &str| bench.call_at(&served.url, &["align", arguments]).1;
        let line = r#"{"scene": "two_arms", "arm": "right"}"#;
        let drawn = bench.call_at(&served.url, &["stroke", line]).1;
        assert_eq!(drawn["job"]["state"], "reached", "{drawn:#}");
        let refused = align(r#"{"scene": "two_arms", "arm": "left", "touch": true}"#);
        assert_eq!(refused["code"], "refused", "{refused:#}");
        let message = refused["message"].as_str().unwrap();
        for part in ["`right`", r#"{"arm": "right"}"#, "nothing moved"] {
            assert!(message.contains(part), "{refused:#}");
        }
        assert!(
            refused["now"].as_str().unwrap().contains("limp"),
            "{refused:#}"
        );
    });
}
