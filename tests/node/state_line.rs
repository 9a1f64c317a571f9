//! Every answer of a tool ends with the state of the arm in a line, as data and in words.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use crate::support;
use serde_json::{Value, json};
use support::{Bench, Caller, SHORT_LINES, scene};

fn state_after(text: &str, answer: &Value) -> String {
    let now = answer["now"].as_str();
    let now = now.unwrap_or_else(|| panic!("{text}\n{answer:#}"));
    assert_eq!(text.lines().last(), Some(&*format!("now: {now}")), "{text}");
    assert_eq!(text.matches("now: ").count(), 1, "{text}");
    now.to_owned()
}

#[test]
fn every_answer_ends_with_the_state_of_the_arm() {
    let bench = Bench::at_test_rate();
    bench.scene("short", &scene("short", SHORT_LINES));
    let served = bench.serve(&[]);
    let state = |tool: &str, arguments: Value| {
        let (text, answer) = served.told(tool, &arguments);
        state_after(&text, &answer)
    };
    let before = state("sense", json!({}));
    assert!(
        before.contains("no sheet yet; enabled: everything"),
        "{before}"
    );
    for (tool, arguments) in [
        ("list_nodes", json!({})),
        ("robot_sense", json!({"debug": true})),
        ("stroke", json!({"scene": "short", "dry_run": true})),
        ("stroke", json!({"scene": "nowhere"})),
        ("stroke", json!({"plan": "0000000a"})),
        ("paint", json!({})),
    ] {
        let now = state(tool, arguments);
        assert_eq!(now, before, "{tool} changed nothing");
    }
    let drawn = state("stroke", json!({"scene": "short"}));
    assert!(
        drawn.contains("pen up") && drawn.contains("sheet short "),
        "{drawn}"
    );
    assert!(drawn.contains("1 drawing on it"), "{drawn}");
    let stopped = state("stop", json!({}));
    assert!(stopped.starts_with("arm stopped"), "{stopped}");
    let rested = state("reset", json!({}));
    assert!(rested.starts_with("arm at rest"), "{rested}");
}
