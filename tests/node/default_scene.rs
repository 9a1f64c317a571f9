//! A call without a scene, on each shipped arm.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use serde_json::Value;

use crate::support::Bench;

/// Writes a node file with one simulated arm, and returns its path.
fn node_of(bench: &Bench, arm: &str) -> String {
    let file = bench.path(&format!("{arm}.toml"));
    let text = format!("[[arms]]\nname = \"arm\"\nmodel = \"{arm}\"\nport = \"simulator\"\n");
    std::fs::write(&file, text).unwrap();
    file.display().to_string()
}

fn json(bench: &Bench, args: &[&str]) -> Value {
    let output = bench.plain_command(args).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{args:?}: {output:?}"))
}

#[test]
fn a_call_without_a_scene_draws_one_of_the_nodes_arm() {
    let bench = Bench::at_test_rate();
    for (arm, scene) in [
        ("so101", "default"),
        ("so101-12v", "default"),
        ("so101-hx30", "default"),
        ("so101-sts3250", "default"),
        ("so100", "so100"),
        ("koch", "koch"),
        ("openmanipulator-x", "openmanipulator_x"),
        ("omx", "omx"),
        ("roarm-m2", "roarm_m2"),
        ("roarm-m3", "roarm_m3"),
        ("widowx250s", "widowx"),
        ("vx300", "vx300"),
    ] {
        let config = node_of(&bench, arm);
        for arguments in ["{}", "[object Object]"] {
            let call = ["--config", &config, "call", "--json", "stroke", arguments];
            let result = json(&bench, &call);
            assert_eq!(result["success"], true, "{arm}: {result:#}");
            assert_eq!(result["understood"]["scene"], scene, "{arm}");
        }
        let explain = [
            "--config", &config, "explain", "stroke", "--format", "json", "{}",
        ];
        let explained = json(&bench, &explain);
        let profiles = explained["profiles"].as_array().unwrap();
        for profile in profiles {
            assert_eq!(profile["understood"]["scene"], scene, "{arm}: {profile:#}");
        }
    }
}

#[test]
fn align_without_arguments_succeeds_on_every_arm_off_the_design() {
    let bench = Bench::at_test_rate();
    for arm in [
        "so101",
        "so101-12v",
        "so101-hx30",
        "so101-sts3250",
        "so100",
        "koch",
        "openmanipulator-x",
        "omx",
        "roarm-m2",
        "roarm-m3",
        "widowx250s",
        "vx300",
    ] {
        let config = node_of(&bench, arm);
        let result = json(
            &bench,
            &["--config", &config, "call", "--json", "align", "{}"],
        );
        assert_eq!(result["success"], true, "{arm}: {result:#}");
        let is_drawn = result["cross_inked"] == true;
        let has_no_place = result["stroke_count"] == 0;
        assert!(is_drawn || has_no_place, "{arm}: {result:#}");
    }
}

/// The default scene stands for what was asked for.
#[test]
fn a_picture_that_was_not_understood_is_named_first() {
    let bench = Bench::at_test_rate();
    for arguments in [
        r#"{"prompt":"draw a cat"}"#,
        r#"{"points":[[1,2],[3,4]]}"#,
        r#"{"path":"M0 0L9 9"}"#,
        r#"{"drawing":"cat"}"#,
    ] {
        let result = json(&bench, &["call", "--json", "stroke", arguments]);
        let message = result["message"].as_str().unwrap();
        assert!(
            message.contains("`text`") && message.contains("`svg`"),
            "{arguments}: {message}"
        );
        if result["success"] == true {
            let first = "WARNING: the default scene `default`";
            assert!(message.starts_with(first), "{arguments}: {message}");
        }
    }
    let result = json(
        &bench,
        &[
            "call",
            "--json",
            "stroke",
            r#"{"svg":"<circle cx=5 cy=5 r=3 />"}"#,
        ],
    );
    assert_eq!(result["success"], true, "{result:#}");
    let text = result.to_string();
    assert!(
        text.contains("<svg>") && text.contains("unquoted"),
        "{result:#}"
    );
}

#[test]
fn a_limp_arm_is_limp_in_data_and_a_disabled_toolset_is_named() {
    let bench = Bench::at_test_rate();
    let sensed = json(&bench, &["call", "--json", "sense"]);
    assert_eq!(sensed["state"], "limp", "{sensed:#}");
    let listed = json(&bench, &["call", "--json", "list_nodes"]);
    assert_eq!(listed["nodes"][0]["arms"][0]["state"], "limp", "{listed:#}");
    let refused = json(&bench, &["call", "--json", "validate_case", "{}"]);
    assert_eq!(refused["code"], "not_offered", "{refused:#}");
    assert!(
        refused["message"]
            .as_str()
            .unwrap()
            .contains("toolset `exam`"),
        "{refused:#}"
    );
}
