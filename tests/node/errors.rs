//! Tests the messages for people and models when something is wrong, and that nothing moves then.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use crate::support;
use serde_json::Value;
use std::process::Stdio;
use steadyhand::wording::names_step;
use support::{Bench, PATIENCE, Running, SHORT_LINES, scene, unless_starved};

/// Checks that a call is refused with one line that contains all of `words`, and that nothing moves.
fn refused(bench: &Bench, arguments: &str, args: &[&str]) -> Value {
    let (code, result) = bench.call(&["stroke", arguments]);
    assert_eq!(code, 1, "{result:#}");
    assert_eq!(result["success"], false);
    let message = result["message"].as_str().unwrap();
    assert!(!message.trim().contains('\n'), "{message}");
    for word in args {
        assert!(message.contains(word), "{word:?} is not in: {message}");
    }
    assert!(result.get("arm_time_s").is_none(), "{result:#}");
    let has_hint = result["usage_hints"]
        .as_array()
        .is_some_and(|hints| !hints.is_empty());
    assert!(has_hint || names_step(message), "no next step: {message}");
    result
}

#[test]
fn a_design_beyond_reach_is_refused_with_its_stroke_value_and_fix() {
    let bench = Bench::at_test_rate();
    let far = scene("far", SHORT_LINES).replace("-0.125, 0.005]", "-0.425, 0.005]");
    bench.scene("far", &far);
    let result = refused(&bench, r#"{"scene":"far"}"#, &["reach", "nothing moved"]);
    let message = result["message"].as_str().unwrap();
    assert!(message.contains("mm"), "no value: {message}");
}

#[test]
fn a_sheet_under_the_table_is_refused() {
    let bench = Bench::at_test_rate();
    let low = scene("low", SHORT_LINES).replace("-0.125, 0.005]", "-0.125, -0.080]");
    bench.scene("low", &low);
    refused(&bench, r#"{"scene":"low"}"#, &["nothing moved", "m"]);
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest_known_one() {
    let bench = Bench::at_test_rate();
    bench.scene(
        "odd",
        &scene("odd", SHORT_LINES).replace("width_mm", "widht_mm"),
    );
    refused(&bench, r#"{"scene":"odd"}"#, &["widht_mm", "`width_mm`"]);
    let check = bench.run(&["scene", "check", "odd"]);
    assert!(!check.status.success());
    let output_text = String::from_utf8([check.stdout, check.stderr].concat()).unwrap();
    assert!(
        output_text.contains("widht_mm") && output_text.contains("`width_mm`"),
        "{output_text}"
    );
}

#[test]
fn refuses_a_keep_out_that_contains_the_base_or_the_rest_pose() {
    let bench = Bench::at_test_rate();
    let wide =
        "[[keep_outs]]\nname = \"table\"\nmin_m = [-2.0, -2.0, -2.0]\nmax_m = [2.0, 2.0, 2.0]\n";
    bench.scene("wide", &format!("{}\n{wide}", scene("wide", SHORT_LINES)));
    let text = [
        "keep-out `table`",
        "fixed `base",
        "rest_rad",
        "nothing moved",
    ];
    refused(&bench, r#"{"scene":"wide"}"#, &text);
    let check = bench.run(&["scene", "check", "wide"]);
    assert!(!check.status.success());
    let output_text = String::from_utf8([check.stdout, check.stderr].concat()).unwrap();
    for word in &text[..3] {
        assert!(output_text.contains(word), "{word}: {output_text}");
    }
}

/// It was found only when the arm went to rest after its first drawing.
#[test]
fn a_rest_pose_that_the_gate_refuses_is_told_before_anything_moves() {
    let bench = Bench::at_test_rate();
    let folded = scene("folded", SHORT_LINES).replace("1.2, 0.8,", "1.2, 1.26,");
    bench.scene("folded", &folded);
    let key = "`poses.rest_rad`";
    let (code, printed, _) = bench.streams(&["plan", "folded", "--json"]);
    let plan: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((code, &plan["success"]), (1, &Value::Bool(false)));
    let refused = &plan["refusals"][0];
    assert_eq!(refused["rule"], "poses", "{plan:#}");
    assert!(refused["value"].as_f64().unwrap() < refused["limit"].as_f64().unwrap());
    for command in [&["scene", "check", "folded"][..], &["check"]] {
        let (code, printed, _) = bench.streams(command);
        assert!(code == 1 && printed.contains(key), "{command:?}: {printed}");
    }
    let out = bench.path("other.toml").display().to_string();
    let init = [
        "init",
        "--name",
        "desk",
        "--out",
        &out,
        "--port",
        "simulator",
    ];
    let (code, _, stderr) = bench.streams(&init);
    assert!(code == 0 && stderr.contains(key), "{stderr}");
    let mut serve = bench.serving(&[]);
    let mut serve = Running(serve.stderr(Stdio::piped()).spawn().unwrap());
    let lines = support::lines(serve.0.stderr.take().unwrap());
    let (mut is_told, mut serves) = (false, false);
    while !(is_told && serves) {
        let line = lines.recv_timeout(PATIENCE).unwrap();
        is_told |= line.contains("folded") && line.contains(key);
        serves |= line.contains("MCP at ");
    }
}

#[test]
fn a_missing_design_is_named() {
    let bench = Bench::at_test_rate();
    let gone = scene("gone", SHORT_LINES).replace(
        &format!("polylines = {SHORT_LINES}"),
        "file = \"nowhere.svg\"\nsize_mm = 60.0",
    );
    bench.scene("gone", &gone);
    refused(&bench, r#"{"scene":"gone"}"#, &["nowhere.svg"]);
}

#[test]
fn an_unknown_scene_shows_the_nearest_first() {
    let bench = Bench::at_test_rate();
    let (code, result) = bench.call(&["stroke", r#"{"scene":"leters"}"#]);
    assert_eq!(code, 1);
    let message = result["message"].as_str().unwrap();
    let (letters_at, default_at) = (message.find("letters"), message.find("default"));
    assert!(
        letters_at.is_some() && (default_at.is_none() || letters_at < default_at),
        "{message}"
    );
}

#[test]
fn an_unknown_tool_is_an_answer_with_the_nearest_name() {
    let bench = Bench::at_test_rate();
    let (code, result) = bench.call(&["strok"]);
    assert_eq!(code, 1);
    assert!(
        result["message"].as_str().unwrap().contains("stroke"),
        "{result:#}"
    );
}

#[test]
fn a_missing_port_is_an_error_and_never_the_simulator() {
    let bench = Bench::at_test_rate();
    for command in [
        &[
            "--port",
            "/dev/does-not-exist",
            "--allow-root",
            "call",
            "stroke",
            "--json",
        ][..],
        &[
            "--port",
            "/dev/does-not-exist",
            "--allow-root",
            "serve",
            "--http",
            "127.0.0.1:0",
        ],
    ] {
        let output = bench.run(command);
        assert!(!output.status.success());
        assert!(
            output.stdout.is_empty(),
            "{:?}",
            String::from_utf8_lossy(&output.stdout)
        );
        let stderr = String::from_utf8(output.stderr).unwrap();
        for word in ["/dev/does-not-exist", "port", "simulator", "nothing moved"] {
            assert!(stderr.contains(word), "{word:?} is not in: {stderr}");
        }
    }
    assert!(!bench.path("out").exists(), "something was drawn");
}

#[test]
fn a_busy_port_is_an_error_that_names_the_port() {
    unless_starved(|| {
        let bench = Bench::at_test_rate();
        let (_sim, port) = bench.sim(&[]);
        let _first = bench.serve(&["--port", &port]);
        let state = bench.path("another");
        let state = state.to_str().unwrap();
        let second = bench.run(&["--port", &port, "--state", state, "call", "sense", "--json"]);
        assert!(!second.status.success());
        assert!(second.stdout.is_empty());
        let stderr = String::from_utf8(second.stderr).unwrap();
        for word in [port.as_str(), "by process", "nothing moved"] {
            assert!(stderr.contains(word), "{word:?} is not in: {stderr}");
        }
    });
}

#[test]
fn an_arm_on_a_port_moves_for_nobody_until_a_person_enables_it() {
    unless_starved(|| {
        let bench = Bench::at_test_rate();
        let (_sim, port) = bench.sim(&[]);
        let here = ["--port", &port, "--calibrated", "elsewhere"];
        let stroke = ["stroke", r#"{"scene":"short"}"#];
        let (code, result) = bench.call(&[&here[..], &stroke].concat());
        assert_eq!(code, 1);
        assert_eq!(result["code"], "needs_enabling", "{result:#}");
        let message = result["message"].as_str().unwrap();
        assert!(
            message.contains("steadyhand enable --scene short"),
            "{message}"
        );
        assert!(message.contains("nothing moved"), "{message}");
    });
}

#[test]
fn an_option_is_not_taken_for_the_value_of_the_one_before() {
    let bench = Bench::new();
    for (args, expected) in [
        (
            &["enable", "--for", "--scene", "default"][..],
            "a value is required for '--for",
        ),
        (&["draw", "x.svg", "--merge", "--fit"], "`--fit`"),
        (&["draw", "x.svg", "--at", "--fit"], "`--fit`"),
        (
            &["jog", "--step", "--scene", "default"],
            "a value is required for '--step",
        ),
    ] {
        let output = bench.run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains(expected), "{args:?}: {text}");
    }
}
