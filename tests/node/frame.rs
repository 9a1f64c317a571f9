//! The frame of a drawing: the pen goes round its box, up, and nothing is drawn; and what `status` says to do next.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use crate::support;
use serde_json::{Value, json};
use support::{Bench, Caller};

#[test]
fn the_frame_is_shown_with_the_pen_up_and_the_arm_rests() {
    let bench = Bench::new();
    let served = bench.serve(&["--state", &bench.state()]);
    let framed = served.call("stroke", &json!({"scene": "short", "frame": true}));
    assert_eq!(framed["success"], true, "{framed:#}");
    assert_eq!(framed["state"], "rest", "{framed:#}");
    assert!(framed["height_mm"].as_f64().unwrap() > 1.0, "{framed:#}");
    assert!(framed["box_mm"][0][0].is_number(), "{framed:#}");
    let sensed = served.call("sense", &json!({}));
    assert_eq!(sensed["job"]["tool"], "frame", "{sensed:#}");
    assert_eq!(sensed["condition"]["kind"], "at_rest", "{sensed:#}");
    assert!(sensed.get("unfinished").is_none(), "{sensed:#}");
    // It stands in the way of no drawing.
    let drawn = served.call("stroke", &json!({"scene": "short"}));
    assert_eq!(drawn["success"], true, "{drawn:#}");
}

#[test]
fn a_hull_is_narrower_than_the_box_and_never_asked_for_alone() {
    let bench = Bench::at_test_rate();
    let served = bench.serve(&["--state", &bench.state()]);
    let asked = json!({"scene": "short", "frame": true, "hull": true});
    let framed = served.call("stroke", &asked);
    assert_eq!(framed["success"], true, "{framed:#}");
    let outline = framed["outline_mm"].as_array().unwrap();
    assert!(outline.len() >= 2, "{framed:#}");
    let inside = |corner: &Value, axis: usize| {
        let [low, high] = [0, 1].map(|end| framed["box_mm"][end][axis].as_f64().unwrap());
        (low..=high).contains(&corner[axis].as_f64().unwrap())
    };
    assert!(
        outline
            .iter()
            .all(|corner| inside(corner, 0) && inside(corner, 1))
    );
    // Alone it would draw.
    let refused = served.call("stroke", &json!({"scene": "short", "hull": true}));
    assert_eq!(refused["code"], "arguments_refused", "{refused:#}");
    let sensed = served.call("sense", &json!({}));
    assert_eq!(sensed["job"]["tool"], "frame", "{sensed:#}");
}

#[test]
fn a_drawing_that_is_gone_on_with_has_no_frame() {
    let bench = Bench::new();
    let served = bench.serve(&[]);
    let asked = json!({"resume": true, "frame": true});
    let refused = served.call("stroke", &asked);
    assert_eq!(refused["code"], "arguments_refused", "{refused:#}");
}

#[test]
fn status_begins_with_the_condition_and_ends_in_the_next_step() {
    let bench = Bench::new();
    let served = bench.serve(&["--state", &bench.state()]);
    let status = || {
        let output = bench.run(&["status"]);
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        (lines[0].clone(), lines.last().unwrap().clone())
    };
    let (first, last) = status();
    assert!(first.contains(": Limp"), "{first}");
    assert!(last.starts_with("next: `steadyhand draw "), "{last}");
    assert!(bench.run(&["stop"]).status.success());
    let (first, last) = status();
    assert!(first.contains(": Stopped"), "{first}");
    assert!(last.starts_with("next: `steadyhand reset`"), "{last}");
    drop(served);
}
