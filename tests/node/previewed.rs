//! A client that shows only a result's text: what it reads of a dry run is enough to draw exactly that.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use crate::support;
use serde_json::{Value, json};
use support::{Bench, Served, post_to};

/// A call's text and its structured result.
pub(crate) fn told(served: &Served, tool: &str, arguments: &Value) -> (String, Value) {
    told_at(&served.host(), tool, arguments)
}

/// The same where only the node's host is known.
pub(crate) fn told_at(host: &str, tool: &str, arguments: &Value) -> (String, Value) {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": tool, "arguments": arguments}});
    let (_, answer) = post_to(host, "Accept: application/json\r\n", &body.to_string());
    let result = &answer["result"];
    let text = result["content"][0]["text"].as_str();
    (
        text.unwrap_or_else(|| panic!("{answer:#}")).to_owned(),
        result["structuredContent"].clone(),
    )
}

#[test]
fn the_text_of_a_dry_run_holds_the_call_that_draws_exactly_it() {
    let bench = Bench::new();
    let served = bench.serve(&[]);
    let (text, shown) = told(
        &served,
        "stroke",
        &json!({"scene": "short", "dry_run": true}),
    );
    for said in [
        "2 strokes, 60 mm of line",
        "of arm time",
        "on the sheet x 35 to 65 mm, y 44 to 56 mm",
        "pen 1 (fineliner)",
        "nearest to a joint limit: ",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert_eq!(
        shown["box_mm"],
        json!({"x": [35.0, 65.0], "y": [44.0, 56.0]})
    );
    let (_, call) = text.split_once("to draw exactly this: stroke ").unwrap();
    let call: Value = serde_json::from_str(call.lines().next().unwrap()).unwrap();
    assert_eq!(call, json!({"scene": "short", "plan": shown["plan_hash"]}));
    assert_eq!(
        shown["draw_call"],
        json!({"tool": "stroke", "arguments": call})
    );
    let (text, drawn) = told(&served, "stroke", &call);
    assert_eq!(drawn["success"], true, "{text}");
    assert_eq!(drawn["plan_hash"], shown["plan_hash"]);
}

#[test]
fn a_cause_is_told_once_with_its_strokes_and_its_remedy() {
    let bench = Bench::new();
    let lines: Vec<String> = (0..7)
        .map(|row| format!("[[0.0, {0}.0], [30.0, {0}.0]]", row * 4))
        .collect();
    let far = support::scene("far", &format!("[{}]", lines.join(", ")))
        .replace("[0.0708, -0.1731, 0.005]", "[0.0708, -0.5231, 0.005]");
    bench.scene("far", &far);
    let served = bench.serve(&[]);
    let (text, shown) = told(&served, "stroke", &json!({"scene": "far", "dry_run": true}));
    assert_eq!(shown["refusals"].as_array().unwrap().len(), 7, "{shown:#}");
    assert!(
        text.contains("refused: 7 strokes (1, 2, 3, 4, 5 and 2 more), the worst: "),
        "{text}"
    );
    assert_eq!(text.matches("beyond reach").count(), 1, "{text}");
    assert!(
        text.contains("move the sheet or make the design smaller"),
        "{text}"
    );
    assert!(!text.contains("to draw exactly this"), "{text}");
    assert_eq!(shown.get("draw_call"), None);
}

#[test]
fn two_pens_are_counted_from_one() {
    let bench = Bench::new();
    let served = bench.serve(&[]);
    let (text, _) = told(
        &served,
        "stroke",
        &json!({"scene": "two_pens", "dry_run": true}),
    );
    assert!(
        text.contains("pens 1 (") && text.contains("), 2 ("),
        "{text}"
    );
}
