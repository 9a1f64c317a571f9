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

/// A client that only sends what it was offered drew at full speed, or the default scene in place of the one that was cut off.
#[test]
fn a_refused_key_or_text_is_not_left_out_of_what_a_preview_offers() {
    let bench = Bench::at_test_rate();
    let served = serve(&bench);
    for (refused, named) in [
        (json!({"scene": "short", "speed": "slow"}), "`speed`"),
        (json!("{\"scene\": \"sho"), "`arguments`"),
    ] {
        let (text, shown) = preview_after(&served, &refused);
        assert_eq!(shown.get("draw_call"), None, "{text}");
        assert!(text.contains(named), "{text}");
    }
    let call = json!({"scene": "short"});
    let (text, drawn) = call_tool(&served, "stroke", &call);
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
        let hash = shown["plan_hash"].as_str().unwrap().to_uppercase();
        call["plan"] = format!("`{hash}`").into();
        let (text, drawn) = call_tool(&served, "stroke", &call);
        assert_eq!(drawn["success"], true, "{text}");
        assert_eq!(drawn["plan_hash"], shown["plan_hash"]);
        call_tool(&served, "reset", &json!({}));
    }
}

/// The offered words led to a call that was refused for as long as the client chose nothing else.
#[test]
fn the_words_of_a_preview_that_leaves_out_several_lead_to_a_drawing() {
    let bench = Bench::at_test_rate();
    let served = serve(&bench);
    for name in ["debug", "resume"] {
        let mut refused = json!({"scene": "short", "depth": 2});
        refused[name] = "maybe".into();
        let (text, shown) = preview_after(&served, &refused);
        assert!(text.contains("`depth`, which"), "{text}");
        assert!(!text.contains("`debug`, which"), "{text}");
        assert!(text.contains("name this plan_hash as `plan`"), "{text}");
        // As the corrected call was, but for the dry run.
        let mut call = json!({"scene": "short", "plan": shown["plan_hash"]});
        call[name] = false.into();
        let (text, drawn) = call_tool(&served, "stroke", &call);
        assert_eq!(drawn["success"], true, "{text}");
        call_tool(&served, "reset", &json!({}));
    }
}

/// The preview said to write the default scene out, on which no text is drawn.
#[test]
fn after_a_refused_scene_the_canvas_of_a_text_is_named() {
    let bench = Bench::at_test_rate();
    let served = serve(&bench);
    call_tool(&served, "stroke", &json!({"text": "i", "scene": "koy"}));
    let (text, _) = call_tool(&served, "stroke", &json!({"text": "i", "dry_run": true}));
    let named = "write `\"scene\":\"canvas\"` out";
    assert!(text.contains(named), "{text}");
    let call = json!({"text": "i", "scene": "canvas"});
    let (text, drawn) = call_tool(&served, "stroke", &call);
    assert_eq!(drawn["success"], true, "{text}");
    call_tool(&served, "reset", &json!({}));
    call_tool(&served, "stroke", &json!({"text": "i", "size_mm": "tall"}));
    let (text, refused) = call_tool(&served, "stroke", &json!({"text": "i"}));
    assert_eq!(refused["code"], "arguments_refused", "{text}");
    assert!(!text.contains("send {\"scene\":\"default\""), "{text}");
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

/// Calls a tool in a session; the result.
fn in_session(served: &Served, header: &str, tool: &str, arguments: &Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": tool, "arguments": arguments}});
    let (_, answer) = post(served, &[STREAMS, header], &body.to_string());
    let answer: Value = serde_json::from_str(&answer).unwrap();
    answer["result"]["structuredContent"].clone()
}

/// One refused `reset` kept every client without a token from a reset.
#[test]
fn what_one_client_was_refused_keeps_no_other_from_a_reset() {
    let bench = Bench::at_test_rate();
    let served = serve(&bench);
    let [first, second] = [session(&served), session(&served)];
    for refused in [json!({"dry_run": true}), json!({"arm": "lefft"})] {
        let refused = in_session(&served, &first, "reset", &refused);
        assert_eq!(refused["code"], "arguments_refused", "{refused:#}");
        let reset = in_session(&served, &second, "reset", &json!({}));
        assert_eq!(reset["success"], true, "{reset:#}");
    }
    in_session(&served, &first, "reset", &json!({"dry_run": true}));
    let again = in_session(&served, &first, "reset", &json!({}));
    assert_eq!(again["code"], "arguments_refused", "{again:#}");
    let message = again["message"].as_str().unwrap();
    assert!(message.contains("write `scene` out"), "{message}");
    let named = in_session(&served, &first, "reset", &json!({"scene": "short"}));
    // The other session still has the arm.
    assert_eq!(named["code"], "leased", "{named:#}");
}

/// A client that opens a session for each call drew the default scene.
#[test]
fn a_refusal_outlives_the_session_of_a_client_without_a_token() {
    let bench = Bench::at_test_rate();
    let served = serve(&bench);
    let call = |arguments: Value| in_session(&served, &session(&served), "stroke", &arguments);
    call(json!({"scene": "koy"}));
    let refused = call(json!({}));
    assert_eq!(refused["code"], "arguments_refused", "{refused:#}");
    let shown = call(json!({"dry_run": true}));
    assert_eq!(shown.get("draw_call"), None, "{shown:#}");
    let drawn = call(json!({"scene": "short"}));
    assert_eq!(drawn["success"], true, "{drawn:#}");
}
