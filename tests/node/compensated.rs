//! Tests drawings with leading goals by a person's commands: the preview, a stop in the middle, and the rest afterwards.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

use crate::stop::{long_bench, wait_until_drawing};
use crate::support::{Bench, until};

use serde_json::Value;

const SO101: &str = include_str!("../../scenes/arms/so101.toml");

const KNOWN: &str = "\n[compensation]\nplay_deg = [1.5, 0.0, 0.0, 0.0, 0.0]\nsag_deg_per_n_m = [0.0, 0.0, 0.0, 0.0, 0.0]\n";

/// Waits until the tip is on its way along the first line.
fn wait_until_inked(bench: &Bench, node: &str) {
    let sense = || bench.call_at(node, &["sense"]).1;
    until("on its way", sense, |sensed| {
        sensed["tip"]["sheet_mm"][0].as_f64() > Some(30.0)
    });
}

#[test]
fn a_drawing_whose_goals_lead_is_stopped_and_goes_on() {
    let bench = long_bench();
    std::fs::write(
        bench.path("scenes/arms/so101.toml"),
        format!("{SO101}{KNOWN}"),
    )
    .unwrap();
    let served = bench.serve(&[]);
    let node = served.url.as_str();
    let (_, reply) = bench.call_at(node, &["stroke", r#"{"scene":"long","dry_run":true}"#]);
    let expected_mm = reply["expected_deviation_mm"].as_f64().unwrap();
    assert!(expected_mm < 1.0, "{reply:#}");
    std::thread::scope(|scope| {
        let stroke = scope.spawn(|| bench.call_at(node, &["stroke", r#"{"scene":"long"}"#]));
        wait_until_drawing(&bench, node);
        wait_until_inked(&bench, node);
        let (code, stopped) = bench.call_at(node, &["stop"]);
        assert_eq!(code, 0, "{stopped:#}");
        let report = &stopped["arms"][0]["report"];
        assert_eq!(
            (&report["verified"], &report["lifted"]),
            (&true.into(), &true.into())
        );
        let (_, stroke) = stroke.join().unwrap();
        assert_eq!(stroke["code"], "stopped", "{stroke:#}");
    });
    let (_, sensed) = bench.call_at(node, &["sense"]);
    let height_mm = sensed["tip"]["height_mm"].as_f64().unwrap();
    assert!(height_mm > 6.0, "{sensed:#}");
    assert_eq!(bench.call_at(node, &["reset"]).0, 0);
    let (_, drawn) = bench.call_at(node, &["stroke", r#"{"resume":true}"#]);
    // The simulated arm has no play, so its ink is off by what the goals lead.
    assert_eq!(drawn["code"], "ink_missing", "{drawn:#}");
    assert_eq!(drawn["job"]["state"], "deviated", "{drawn:#}");
    assert!(drawn["resumed"].is_object(), "{drawn:#}");
}

#[test]
fn a_recording_with_leading_goals_says_where_the_tip_is_and_replays() {
    let bench = Bench::at_test_rate();
    std::fs::write(
        bench.path("scenes/arms/so101.toml"),
        format!("{SO101}{KNOWN}"),
    )
    .unwrap();
    let state = bench.state();
    let stroke = r#"{"scene":"short"}"#;
    let (code, drawn) = bench.call(&["stroke", stroke, "--state", &state, "--record"]);
    assert_eq!(code, 1, "{drawn:#}");
    // The simulated arm has no play: its ink is off by what the goals lead, the recording's is not.
    assert!(
        drawn["deviation_mm_max"].as_f64().unwrap() > 1.2,
        "{drawn:#}"
    );
    let run = |args: &[&str]| {
        let ran = bench.run(&[args, &["--state", &state]].concat());
        let text = String::from_utf8_lossy(&ran.stdout).into_owned();
        assert!(ran.status.success(), "{args:?}: {ran:?}");
        text
    };
    let shown: Value =
        serde_json::from_str(&run(&["recording", "show", "job-1", "--json"])).unwrap();
    assert!(shown["ink_max_mm"].as_f64().unwrap() < 1.0, "{shown:#}");
    assert_eq!(shown["topics"]["/joint_leads"], shown["topics"]["/job"]);
    let replayed = run(&["recording", "replay", "job-1"]);
    assert!(replayed.contains("recorded ink"), "{replayed}");
    let again = run(&["replay", "job-1"]);
    assert!(again.contains("same plan"), "{again}");
}
