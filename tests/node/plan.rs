//! `plan`, `reach` and `arm import` as a person types them.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

use crate::support;

use serde_json::Value;
use support::{Bench, json_of, streams_of};

/// A square of 24 by 24 with a line on one of its sides.
const SQUARE: &str = r#"<svg xmlns="http://www.w3.org/2000/svg" width="24" height="24" viewBox="0 0 24 24"
 fill="none" stroke="black"><path d="M2 2h20v20h-20z"/><path d="M2 2h20"/></svg>"#;

#[test]
fn a_drawing_of_ones_own_is_planned_at_a_size() {
    let bench = Bench::at_test_rate();
    let design = bench.path("square.svg");
    std::fs::write(&design, SQUARE).unwrap();
    let design = design.to_str().unwrap();
    let out = bench.path("pictures");
    let output = bench.run(&[
        "plan",
        "--design",
        design,
        "--size",
        "6 cm",
        "--json",
        "--out",
        out.to_str().unwrap(),
    ]);
    assert_eq!(output.status.code(), Some(0), "{:?}", streams_of(&output));
    let plan = json_of(&output);
    assert_eq!(plan["success"], true);
    assert_eq!(plan["refusals"], Value::Array(Vec::new()));
    assert!(
        (plan["pen_down_mm"].as_f64().unwrap() - 240.0).abs() < 0.1,
        "{plan:#}"
    );
    assert!(
        (plan["design_mm"].as_f64().unwrap() - 300.0).abs() < 0.1,
        "{plan:#}"
    );
    assert_eq!(plan["plan_hash"].as_str().unwrap().len(), 32);
    let picture = std::fs::read(out.join("plan.png")).unwrap();
    assert!(picture.starts_with(b"\x89PNG") && picture.len() < 150_000);
    let again = json_of(&bench.run(&["plan", "--design", design, "--size", "60", "--json"]));
    assert_eq!(again["plan_hash"], plan["plan_hash"]);
}

/// What is drawn on it comes with a call.
#[test]
fn a_canvas_is_good_though_it_has_no_design() {
    let bench = Bench::at_test_rate();
    for args in [&["scene", "check", "canvas"][..], &["plan", "canvas"]] {
        let output = bench.run(args);
        let (printed, error) = streams_of(&output);
        assert!(output.status.success(), "{printed}{error}");
        assert!(printed.starts_with("canvas: good\n"), "{printed}");
    }
    let written = bench.run(&["plan", "canvas", "--text", "hi", "--json"]);
    assert!(json_of(&written)["plan_hash"].is_string());
}

#[test]
fn what_cannot_be_drawn_is_refused_by_stroke_and_point() {
    let bench = Bench::at_test_rate();
    let far = support::scene(
        "far",
        "[[[0.0, 0.0], [30.0, 0.0]], [[30.0, 12.0], [0.0, 12.0]]]",
    )
    .replace("[0.05, -0.125, 0.005]", "[0.05, -0.475, 0.005]");
    bench.scene("far", &far);
    let out = bench.path("pictures");
    let output = bench.run(&["plan", "far", "--json", "--out", out.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{:?}", streams_of(&output));
    let plan = json_of(&output);
    assert_eq!(plan["success"], false);
    let refusals = plan["refusals"].as_array().unwrap();
    assert_eq!(refusals.len(), 2, "{plan:#}");
    for refusal in refusals {
        assert_eq!(refusal["rule"], "out_of_reach");
        assert!(refusal["stroke"].as_u64().is_some() && refusal["at_mm"].is_array());
        assert!(refusal["value"].as_f64() > refusal["limit"].as_f64());
    }
    assert!(out.join("plan.png").is_file());
    let (run_output, _) = streams_of(&bench.run(&["plan", "far"]));
    assert!(run_output.starts_with("far: refused"), "{run_output}");
}

#[test]
fn the_gates_refusals_are_there_beside_the_planners() {
    let bench = Bench::at_test_rate();
    let low = support::scene("low", support::SHORT_LINES)
        + "\n[limits.workspace]\nmin_m = [-1.0, -1.0, -0.1]\nmax_m = [1.0, 1.0, 0.12]\n";
    bench.scene("low", &low);
    let plan = json_of(&bench.run(&["plan", "low", "--json"]));
    let rules: Vec<&str> = plan["refusals"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["rule"].as_str().unwrap())
        .collect();
    assert!(rules.contains(&"workspace"), "{plan:#}");
    let (code, dry) = bench.call(&["stroke", r#"{"scene":"low","dry_run":true}"#]);
    assert_eq!(code, 1);
    assert!(
        dry["refusals"]
            .as_array()
            .unwrap()
            .iter()
            .any(|r| r["rule"] == "workspace" && r["value"].is_number()),
        "{dry:#}"
    );
}

#[test]
fn a_folder_of_designs_is_one_line_each() {
    let bench = Bench::at_test_rate();
    std::fs::create_dir_all(bench.path("designs")).unwrap();
    std::fs::write(bench.path("designs/b.svg"), SQUARE).unwrap();
    std::fs::write(bench.path("designs/a.svg"), "<svg").unwrap();
    let folder = bench.path("designs");
    let output = bench.run(&[
        "plan",
        "--design",
        folder.to_str().unwrap(),
        "--size",
        "50",
        "--json",
    ]);
    assert_eq!(output.status.code(), Some(1));
    let (printed, _) = streams_of(&output);
    let lines: Vec<Value> = printed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(
        (&lines[0]["success"], &lines[1]["success"]),
        (&false.into(), &true.into())
    );
    assert_eq!(lines[0]["refusals"][0]["rule"], "unreadable");
}

#[test]
fn mistakes_on_the_command_line_say_what_would_be_right() {
    let bench = Bench::at_test_rate();
    for (args, expected) in [
        (
            vec!["plan", "--design", "nothing.svg"],
            "cannot read nothing.svg",
        ),
        (vec!["plan", "--size", "60mm"], "--text WORDS"),
        (vec!["plan", "defualt"], "Valid: default"),
        (
            vec!["plan", "--design", "x.svg", "--size", "60px"],
            "a unit of",
        ),
        (vec!["reach", "--pen", "quill"], "Valid: fineliner"),
    ] {
        let output = bench.run(&args);
        assert_ne!(output.status.code(), Some(0), "{args:?}");
        let (out, err) = streams_of(&output);
        assert!(
            format!("{out}{err}").contains(expected),
            "{args:?}: {out}{err}"
        );
    }
}

#[test]
fn reach_suggests_a_place_for_a_sheet_that_lies_badly() {
    let bench = Bench::at_test_rate();
    let far = support::scene("far", support::SHORT_LINES)
        .replace("[0.05, -0.125, 0.005]", "[0.05, -0.345, 0.005]");
    bench.scene("far", &far);
    let out = bench.path("pictures");
    let output = bench.run(&["reach", "far", "--json", "--out", out.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{:?}", streams_of(&output));
    let map = json_of(&output);
    let fraction = map["shares"].as_array().unwrap().last().unwrap()["share"]
        .as_f64()
        .unwrap();
    assert!(fraction < 0.9, "{fraction}");
    assert!(
        map["suggestion"]["share"].as_f64().unwrap() > 0.99,
        "{}",
        map["suggestion"]
    );
    let rows = map["map"]["tilt_deg"].as_array().unwrap();
    assert_eq!(rows.len() as u64, map["map"]["size"][1].as_u64().unwrap());
    let picture = std::fs::read(out.join("reach.png")).unwrap();
    assert!(picture.starts_with(b"\x89PNG") && picture.len() < 150_000);
}

const URDF: &str = r#"<robot name="two"><link name="base"/><link name="upper"/><link name="lower"/>
<joint name="turn" type="revolute"><parent link="base"/><child link="upper"/><origin xyz="0 0 0.1"/><axis xyz="0 0 1"/>
<limit lower="-2" upper="2" velocity="3" effort="1"/></joint>
<joint name="lift" type="revolute"><parent link="upper"/><child link="lower"/><origin xyz="0.1 0 0"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="1" velocity="3" effort="1"/></joint></robot>"#;

/// Both called such an arm good, and the first call told of homing offsets.
#[test]
fn an_arm_with_limits_in_degrees_is_refused_before_a_call() {
    let bench = Bench::at_test_rate();
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/scenes/arms/so101.toml");
    let shipped = std::fs::read_to_string(shipped).unwrap();
    let in_degrees = shipped
        .replacen("lower_rad = -1.91986", "lower_rad = -110", 1)
        .replacen("upper_rad = 1.91986", "upper_rad = 110", 1);
    std::fs::write(bench.path("scenes/arms/so101.toml"), in_degrees).unwrap();
    for command in [&["scene", "check", "short"][..], &["check"]] {
        let output = bench.run(command);
        let (stdout, _) = streams_of(&output);
        assert_ne!(output.status.code(), Some(0), "{command:?}: {stdout}");
        let expected = "radians";
        assert!(stdout.contains(expected), "{command:?}: {stdout}");
    }
}

#[test]
fn an_imported_arm_is_one_that_a_scene_can_name() {
    let bench = Bench::at_test_rate();
    let urdf = bench.path("two.urdf");
    std::fs::write(&urdf, URDF).unwrap();
    let (urdf, file) = (
        urdf.to_str().unwrap().to_owned(),
        bench.path("scenes/arms/mine.toml"),
    );
    let import = [
        "arm",
        "import",
        &urdf,
        "--base",
        "base",
        "--tip",
        "lower",
        "--name",
        "mine",
        "--out",
        file.to_str().unwrap(),
    ];
    let output = bench.run(&import);
    assert_eq!(output.status.code(), Some(0), "{:?}", streams_of(&output));
    let (_, notes) = streams_of(&output);
    assert!(notes.contains("servo"), "{notes}");
    let written = std::fs::read_to_string(&file).unwrap();
    assert!(written.starts_with("# ") && written.contains("name = \"mine\""));
    // Never over a file in which somebody may have completed the servo map.
    let again = bench.run(&import);
    assert_ne!(again.status.code(), Some(0));
    assert!(streams_of(&again).1.contains("Next: "));
    let wrong = bench.run(&["arm", "import", &urdf, "--base", "base", "--tip", "lowr"]);
    assert!(
        streams_of(&wrong).1.contains("lower"),
        "{:?}",
        streams_of(&wrong)
    );
}
