//! A client that shows only a result's text: what it reads of a dry run is enough to draw exactly that.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use crate::support;
use serde_json::{Value, json};
use support::{Bench, Caller};

#[test]
fn the_text_of_a_dry_run_holds_the_call_that_draws_exactly_it() {
    let bench = Bench::at_test_rate();
    let served = bench.serve(&[]);
    let (text, shown) = served.told("stroke", &json!({"scene": "short", "dry_run": true}));
    for expected in [
        "2 strokes, 60 mm of line",
        "of arm time",
        "on the sheet x 35 to 65 mm, y 44 to 56 mm",
        "pen 1 (fineliner)",
        " to its limit: ",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert_eq!(
        shown["box_mm"],
        json!({"x": [35.0, 65.0], "y": [44.0, 56.0]})
    );
    let (_, call) = text.split_once(": stroke ").unwrap();
    let call: Value = serde_json::from_str(call.lines().next().unwrap()).unwrap();
    assert_eq!(call, json!({"scene": "short", "plan": shown["plan_hash"]}));
    assert_eq!(
        shown["draw_call"],
        json!({"tool": "stroke", "arguments": call})
    );
    let (text, drawn) = served.told("stroke", &call);
    assert_eq!(drawn["success"], true, "{text}");
    assert_eq!(drawn["plan_hash"], shown["plan_hash"]);
}

#[test]
fn a_cause_is_told_once_with_its_strokes_and_its_remedy() {
    let bench = Bench::at_test_rate();
    let lines: Vec<String> = (0..7)
        .map(|row| format!("[[0.0, {0}.0], [30.0, {0}.0]]", row * 4))
        .collect();
    let far = support::scene("far", &format!("[{}]", lines.join(", ")))
        .replace("[0.05, -0.125, 0.005]", "[0.05, -0.475, 0.005]");
    bench.scene("far", &far);
    let served = bench.serve(&[]);
    let (text, shown) = served.told("stroke", &json!({"scene": "far", "dry_run": true}));
    assert_eq!(shown["refusals"].as_array().unwrap().len(), 7, "{shown:#}");
    assert!(
        text.contains("refused: 7 strokes (1, 2, 3, 4, 5 and 2 more); the worst: "),
        "{text}"
    );
    assert_eq!(text.matches("beyond reach").count(), 1, "{text}");
    assert!(text.contains("smaller"), "{text}");
    assert!(!text.contains(": stroke "), "{text}");
    assert_eq!(shown.get("draw_call"), None);
}

#[test]
fn two_pens_are_counted_from_one() {
    let bench = Bench::at_test_rate();
    let served = bench.serve(&[]);
    let (text, _) = served.told("stroke", &json!({"scene": "two_pens", "dry_run": true}));
    assert!(
        text.contains("pens 1 (") && text.contains("), 2 ("),
        "{text}"
    );
}

/// Returns the arguments of the call that a dry run's text tells its reader to send, and the hash that it names.
fn call_of_text(text: &str) -> (Value, String) {
    let (_, hash) = text.split_once("`plan_hash` ").unwrap();
    let hash = hash.split(';').next().unwrap().to_owned();
    let (_, call) = text.split_once(": stroke ").unwrap();
    let call = serde_json::from_str(call.lines().next().unwrap()).unwrap();
    (call, hash)
}

/// Without the structured result, the pictures and anything that the client kept: words and an SVG on a canvas.
#[test]
fn a_client_that_shows_text_alone_draws_on_a_canvas_what_it_was_shown() {
    let bench = Bench::at_test_rate();
    let served = bench.serve(&[]);
    let svg = r#"<svg xmlns="http://www.w3.org/2000/svg" width="20mm" height="20mm"><path d="M1 1h18v18" fill="none" stroke="black"/></svg>"#;
    for design in [
        json!({"text": "hi \"you\"", "size_mm": 30}),
        json!({"svg": svg, "at_mm": [20, 20]}),
    ] {
        let mut dry = design.clone();
        dry["dry_run"] = true.into();
        let (text, _) = served.told("stroke", &dry);
        let (call, hash) = call_of_text(&text);
        assert_eq!(call["plan"], hash, "{text}");
        for (name, value) in design.as_object().unwrap() {
            assert_eq!(&call[name], value, "{text}");
        }
        let (text, drawn) = served.told("stroke", &call);
        assert_eq!(drawn["success"], true, "{text}");
        assert_eq!(drawn["plan_hash"], hash, "{text}");
        let (text, _) = served.told("reset", &json!({}));
        assert!(text.contains("parked") || text.contains("rest"), "{text}");
    }
}

/// A design too long to be repeated is its sender's: the text says what to change in the call that it sent.
#[test]
fn of_a_long_design_the_text_says_what_to_change_in_the_call() {
    let bench = Bench::at_test_rate();
    let served = bench.serve(&[]);
    let path: String = (0..300).map(|x| format!(" l0.1 {}", x % 2)).collect();
    let svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="40mm" height="20mm"><path d="M2 5{path}" fill="none" stroke="black"/></svg>"#
    );
    let mut call = json!({"svg": svg, "dry_run": true});
    let (text, _) = served.told("stroke", &call);
    assert!(text.contains("without `dry_run`"), "{text}");
    let (_, hash) = text.split_once("\"plan\":\"").unwrap();
    let hash = hash.split('"').next().unwrap().to_owned();
    call.as_object_mut().unwrap().remove("dry_run");
    call["plan"] = hash.clone().into();
    let (text, drawn) = served.told("stroke", &call);
    assert_eq!(drawn["plan_hash"], hash, "{text}");
}
