//! Tests what a guarded node draws for a client that was refused and sends on what it is offered, or drops what was refused.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

use crate::previewed::call_tool;
use crate::support::{Bench, Served};
use crate::torture::{STREAMS, post, session};
use serde_json::{Value, json};

fn serve(bench: &Bench) -> Served {
    std::fs::write(bench.path("node.toml"), "forgiveness = \"guarded\"\n").unwrap();
    let config = bench.path("node.toml").display().to_string();
    bench.serve(&["--config", &config, "--state", &bench.state()])
}

/// Sends a call that is refused, and then its corrected call; the text and the result of the preview.
fn preview_after(served: &Served, refused: &Value) -> (String, Value) {
    let (text, refused) = call_tool(served, "stroke", refused);
    assert_eq!(refused["code"], "arguments_refused", "{text}");
    let corrected = &refused["corrected_call"]["arguments"];
    assert_eq!(corrected["dry_run"], true, "{text}");
    let (text, shown) = call_tool(served, "stroke", corrected);
    assert_eq!(shown["success"], true, "{text}");
    (text, shown)
}

/// A client that only sends what it was offered drew the default scene.
#[test]
fn after_a_refused_scene_a_preview_offers_no_drawing_of_the_default() {
    let bench = Bench::at_test_rate();
    let served = serve(&bench);
    let (text, shown) = preview_after(&served, &json!({"scene": "koy"}));
    assert_eq!(shown.get("draw_call"), None, "{text}");
    assert!(!text.contains("to draw exactly this"), "{text}");
    assert!(
        text.contains("not in this plan: `scene`, which was refused a moment ago (received koy)"),
        "{text}"
    );
    let hash = &shown["plan_hash"];
    for call in [json!({}), json!({"plan": hash})] {
        let (text, refused) = call_tool(&served, "stroke", &call);
        assert_eq!(refused["code"], "arguments_refused", "{call}: {text}");
    }
    // The default is not drawn in the place of words either.
    call_tool(&served, "stroke", &json!({"text": "<text>"}));
    let (_, shown) = call_tool(&served, "stroke", &json!({"dry_run": true}));
    assert_eq!(shown.get("draw_call"), None, "{shown:#}");
    let (text, refused) = call_tool(&served, "stroke", &json!({"plan": shown["plan_hash"]}));
    assert_eq!(refused["code"], "arguments_refused", "{text}");
    // Another scene is a choice, and is offered.
    let other = json!({"scene": "short", "dry_run": true});
    let (_, shown) = call_tool(&served, "stroke", &other);
    let (text, drawn) = call_tool(&served, "stroke", &shown["draw_call"]["arguments"]);
    assert_eq!(drawn["success"], true, "{text}");
}

/// The offered call was refused for as long as the client chose nothing else.
#[test]
fn what_a_preview_leaves_out_is_drawn_by_its_hash_alone() {
    let bench = Bench::at_test_rate();
    let served = serve(&bench);
    for (refused, named, received) in [
        (json!({"scene": "short", "meta": "leef"}), "meta", "leef"),
        (
            json!({"scene": "canvas", "text": "i", "size_mm": "tall"}),
            "size_mm",
            "tall",
        ),
    ] {
        let (text, shown) = preview_after(&served, &refused);
        assert_eq!(shown.get("draw_call"), None, "{text}");
        let left_out = format!("`{named}`, which was refused a moment ago (received {received})");
        assert!(text.contains(&left_out), "{text}");
        let mut call = refused.clone();
        call.as_object_mut().unwrap().remove(named);
        let (text, again) = call_tool(&served, "stroke", &call);
        assert_eq!(again["code"], "arguments_refused", "{text}");
        call["plan"] = shown["plan_hash"].clone();
        let (text, drawn) = call_tool(&served, "stroke", &call);
        assert_eq!(drawn["success"], true, "{text}");
        assert_eq!(drawn["plan_hash"], shown["plan_hash"]);
        call_tool(&served, "reset", &json!({}));
    }
}

/// The corrected call was a dry run without the size, which offered a drawing without it.
#[test]
fn a_size_for_a_scene_with_a_design_of_its_own_has_no_corrected_call() {
    let bench = Bench::at_test_rate();
    let served = serve(&bench);
    let call = json!({"scene": "short", "size_mm": 30});
    let (text, refused) = call_tool(&served, "stroke", &call);
    assert_eq!(refused["code"], "no_design", "{text}");
    assert_eq!(refused.get("corrected_call"), None, "{text}");
    assert!(text.contains("in its own size and place"), "{text}");
}

/// A client that opens a session for each call drew the default scene.
#[test]
fn a_refusal_outlives_the_session_of_a_client_without_a_token() {
    let bench = Bench::at_test_rate();
    let served = serve(&bench);
    let call = |arguments: Value| {
        let header = session(&served);
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "stroke", "arguments": arguments}});
        let (_, answer) = post(&served, &[STREAMS, &header], &body.to_string());
        let answer: Value = serde_json::from_str(&answer).unwrap();
        answer["result"]["structuredContent"].clone()
    };
    call(json!({"scene": "koy"}));
    let refused = call(json!({}));
    assert_eq!(refused["code"], "arguments_refused", "{refused:#}");
    let shown = call(json!({"dry_run": true}));
    assert_eq!(shown.get("draw_call"), None, "{shown:#}");
    let drawn = call(json!({"scene": "short"}));
    assert_eq!(drawn["success"], true, "{drawn:#}");
}
