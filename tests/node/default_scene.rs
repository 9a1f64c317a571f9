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
        ("so100", "so100"),
        ("koch", "koch"),
        ("openmanipulator-x", "openmanipulator_x"),
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
