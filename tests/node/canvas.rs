//! Tests drawings from a call: text and SVG on a canvas, and refusal of anything that is not a design.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

use crate::support;

use serde_json::json;
use support::{Bench, Caller, Served, told_at};

/// A second canvas, whose plans may take hardly any time.
const QUICK: &str = include_str!("../../scenes/canvas.toml");

const SQUARE: &str = r#"<svg xmlns="http://www.w3.org/2000/svg" width="20mm" height="20mm" viewBox="0 0 20 20" fill="none" stroke="black"><path d="M1 1h18v18h-18z"/></svg>"#;

fn with_second_canvas(bench: &Bench) {
    let text = QUICK
        .replace("name = \"canvas\"", "name = \"quick\"")
        .replace(
            "from_caller = [\"text\", \"svg\", \"image\"]",
            "from_caller = [\"text\"]\ntime_s_max = 1.0",
        );
    bench.scene("quick", &text);
}

/// The canvas was not recognised as one, and the default scene was reported as understood.
#[test]
fn an_overlay_with_a_design_of_its_own_is_named() {
    let bench = Bench::at_test_rate();
    let (code, refused) = bench.call(&["stroke", r#"{"text":"hi","meta":"leaf"}"#]);
    assert_eq!(code, 1, "{refused:#}");
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("overlay `leaf`"), "{message}");
    assert_eq!(refused["understood"]["scene"], "canvas", "{refused:#}");
}

/// The canvas was refused by its name, before its overlay was looked at.
#[test]
fn an_overlay_is_drawn_on_a_canvas_as_its_design() {
    let bench = Bench::at_test_rate();
    let call = r#"{"scene":"canvas","meta":"leaf","dry_run":true}"#;
    let (code, shown) = bench.call(&["stroke", call]);
    assert_eq!(code, 0, "{shown:#}");
    let (_, refused) = bench.call(&["stroke", r#"{"scene":"canvas"}"#]);
    assert_eq!(refused["code"], "no_design", "{refused:#}");
}

#[test]
fn words_are_written_on_the_only_canvas_and_kept_with_the_job() {
    let bench = Bench::at_test_rate();
    let served = bench.serve_with_file("");
    let (text, drawn) = served.told("stroke", &json!({"text": "hi!"}));
    assert_eq!(drawn["success"], true, "{text}");
    assert_eq!(drawn["understood"]["scene"], "canvas");
    assert_eq!(drawn["understood"]["text"], "hi!");
    let off_mm = drawn["deviation_mm_max"].as_f64().unwrap();
    assert!(off_mm < 1.0, "{off_mm} mm");
    let job = drawn["job"]["id"].as_str().unwrap();
    let design = bench.path("state/jobs").join(job).join("design.toml");
    let design = std::fs::read_to_string(design).unwrap();
    assert!(design.contains("text = \"hi!\""), "{design}");
    let audit = std::fs::read_to_string(bench.path("state/audit.log")).unwrap();
    let motion = audit.lines().find(|line| line.contains("motion")).unwrap();
    let length = format!("\"bytes\":{}", design.len());
    assert!(
        motion.contains("hi!") && motion.contains(&length),
        "{motion}"
    );
}

#[test]
fn an_svg_is_drawn_where_and_as_large_as_the_call_says() {
    let bench = Bench::at_test_rate();
    let served = bench.serve_with_file("");
    let call = json!({"svg": SQUARE, "size_mm": 40, "at_mm": [10, 20], "dry_run": true});
    let (text, shown) = served.told("stroke", &call);
    // The box around the square, whatever its page.
    assert_eq!(
        shown["box_mm"],
        json!({"x": [10.0, 50.0], "y": [20.0, 60.0]}),
        "{text}"
    );
    assert!(
        !shown["understood"]["svg"]
            .as_str()
            .unwrap()
            .contains("<path")
    );
    let (text, drawn) = served.told("stroke", &shown["draw_call"]["arguments"]);
    assert_eq!(drawn["plan_hash"], shown["plan_hash"], "{text}");
    let elsewhere =
        json!({"svg": SQUARE, "size_mm": 40, "at_mm": [11, 20], "plan": shown["plan_hash"]});
    let (text, refused) = served.told("stroke", &elsewhere);
    assert_eq!(refused["code"], "plan_changed", "{text}");
}

#[test]
fn what_is_no_design_draws_nothing_in_either_profile() {
    for profile in ["lenient", "guarded"] {
        let bench = Bench::at_test_rate();
        let served = bench.serve_with_file(&format!("forgiveness = \"{profile}\"\n"));
        for call in [
            json!({"scene": "canvas"}),
            json!({"text": null}),
            json!({"text": ""}),
            json!({"text": "  "}),
            json!({"text": "null"}),
            json!({"text": "undefined"}),
            json!({"text": "[object Object]"}),
            json!({"text": {"a": 1}}),
            json!({"text": "{\"scene\":\"short\"}"}),
            json!({"svg": "<svg"}),
            json!({"svg": "[object Object]"}),
            json!({"svg": SQUARE.get(..100).unwrap()}),
            json!({"text": "漢"}),
            json!({"text": "hi", "svg": SQUARE}),
            json!({"scene": "short", "text": "hi"}),
            json!({"scene": "short", "size_mm": 30}),
            json!({"text": "hi", "size_mm": 500}),
            json!({"resume": true, "text": "hi"}),
        ] {
            let (text, refused) = served.told("stroke", &call);
            assert_eq!(refused["success"], false, "{call}: {text}");
            assert!(text.contains("nothing moved"), "{call}: {text}");
            for offer in ["corrected_call", "next_call"] {
                let offered = &refused[offer]["arguments"];
                let is_still = offered.is_null() || offered["dry_run"] == true;
                assert!(is_still, "{call}: {offered}");
            }
        }
        let (_, sensed) = served.told("sense", &json!({}));
        assert_eq!(sensed.get("job"), None, "{profile}: {sensed:#}");
    }
}

#[test]
fn what_is_off_the_sheet_is_offered_as_the_preview_that_is_on_it() {
    let bench = Bench::at_test_rate();
    let served = bench.serve_with_file("");
    let large = SQUARE.replace("20mm", "300mm");
    for (call, key) in [
        (json!({"svg": large}), "size_mm"),
        (json!({"text": "hi", "size_mm": 500}), "size_mm"),
        (json!({"svg": SQUARE, "at_mm": [95, 20]}), "at_mm"),
        (
            json!({"svg": SQUARE, "at_mm": [95, 95], "size_mm": 300}),
            "size_mm",
        ),
        (
            json!({"svg": SQUARE.replace("20mm", "20"), "at_mm": [300, 300]}),
            "size_mm",
        ),
    ] {
        let (text, refused) = served.told("stroke", &call);
        assert_eq!(refused["code"], "design_refused", "{text}");
        let next = &refused["next_call"]["arguments"];
        assert!(next[key] != call[key] && next["dry_run"] == true, "{next}");
        assert!(text.contains("Next: stroke {"), "{text}");
        if key == "size_mm" {
            // The place of what has to be made smaller is given up.
            assert!(next["size_mm"].as_f64() > Some(50.0) && next.get("at_mm").is_none());
        }
        let (text, shown) = served.told("stroke", next);
        assert_eq!(shown["success"], true, "{text}");
    }
}

#[test]
fn an_svg_in_a_code_fence_is_drawn_and_one_among_words_is_not() {
    let bench = Bench::at_test_rate();
    let served = bench.serve_with_file("");
    for (svg, is_drawn) in [
        (format!("```svg\n{SQUARE}\n```"), true),
        (
            format!("```\n<?xml version=\"1.0\"?>\n{SQUARE}\n```\n"),
            true,
        ),
        (format!("Do not draw this yet:\n{SQUARE}"), false),
        (format!("```svg\n{SQUARE}\n```\nDo not draw it."), false),
        (format!("```svg\nonly when I say so\n{SQUARE}\n```"), false),
        (format!("<html><p>not yet</p>{SQUARE}</html>"), false),
        (format!("{SQUARE}\n<parameter name=\"dry_run\">true"), false),
    ] {
        let (text, result) = served.told("stroke", &json!({"svg": svg}));
        assert_eq!(result["success"], is_drawn, "{svg}: {text}");
    }
}

/// Command-line options were named to callers, who have none.
#[test]
fn a_caller_is_offered_no_option_of_the_command_line() {
    let bench = Bench::at_test_rate();
    let served = bench.serve_with_file("");
    let svg = |inner: &str| {
        format!(r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 20">{inner}</svg>"#)
    };
    let pixel = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    for (call, is_drawn) in [
        (
            json!({"svg": svg("<circle cx='9' cy='9' r='5' fill='red'/>")}),
            true,
        ),
        (
            json!({"svg": svg(&format!("<path d='M0 0h9' stroke='black'/><image width='9' height='9' href='{pixel}'/>"))}),
            false,
        ),
        (
            json!({"svg": svg("<path d='M0 0h9' stroke='black'/>"), "at_mm": [300, 300]}),
            false,
        ),
        (
            json!({"svg": svg(&format!("<g {}='layer' {}='pen9'><path d='M0 0h9' stroke='black'/></g>", "inkscape:groupmode", "inkscape:label"))}),
            false,
        ),
    ] {
        let mut call = call;
        call["dry_run"] = true.into();
        let (text, result) = served.told("stroke", &call);
        assert_eq!(result["success"], is_drawn, "{text}");
        let all = format!("{text} {result}");
        assert!(!all.contains(" --") && !all.contains("`--"), "{all}");
    }
}

#[test]
fn of_several_canvases_one_is_named_and_its_bounds_hold() {
    let bench = Bench::at_test_rate();
    with_second_canvas(&bench);
    let served = bench.serve_with_file("");
    let (text, refused) = served.told("stroke", &json!({"text": "hi"}));
    assert!(text.contains("canvas, quick"), "{text}");
    assert_eq!(refused["code"], "no_canvas");
    for dry_run in [true, false] {
        let call = json!({"scene": "quick", "text": "hello", "dry_run": dry_run});
        let (text, refused) = served.told("stroke", &call);
        assert!(text.contains("at most 1 s"), "{text}");
        assert_eq!(refused["success"], false);
    }
    let (text, _) = served.told("stroke", &json!({"scene": "quick", "svg": SQUARE}));
    assert!(text.contains("takes text, not svg"), "{text}");
}

#[test]
fn a_node_without_a_canvas_has_no_such_parameters() {
    let bench = Bench::at_test_rate();
    let without = bench.serve_with_file(
        "[[arms]]\nname = \"default\"\nport = \"simulator\"\nmodel = \"widowx250s\"\n",
    );
    let listed = |served: &Served| {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
        let (_, answer) = support::post(served, "Accept: application/json\r\n", &body.to_string());
        let tools = answer["result"]["tools"].as_array().unwrap().clone();
        let stroke = tools.iter().find(|tool| tool["name"] == "stroke").unwrap();
        stroke.to_string()
    };
    assert!(!listed(&without).contains("\"svg\""));
    let (text, refused) = without.told(
        "stroke",
        &json!({"scene": "widowx", "text": "hi", "dry_run": true}),
    );
    assert!(refused["understood"].get("text").is_none(), "{text}");
    let with = Bench::at_test_rate();
    let with = with.serve_with_file("");
    for key in ["\"text\"", "\"svg\"", "\"size_mm\"", "\"at_mm\""] {
        assert!(listed(&with).contains(key), "{key}");
    }
}

#[test]
fn a_stopped_drawing_on_a_canvas_is_gone_on_with() {
    let bench = Bench::new();
    let served = bench.serve_with_file("");
    let host = served.host();
    std::thread::scope(|scope| {
        let stopped = scope.spawn(|| told_at(&host, "stroke", &json!({"text": "hello"})));
        served.until("drawing", |sensed| {
            sensed["job"]["done"].as_u64() >= Some(1) && sensed["job"]["state"] == "moving"
        });
        served.told("stop", &json!({}));
        let (text, stopped) = stopped.join().unwrap();
        assert_eq!(stopped["job"]["state"], "stopped", "{text}");
    });
    served.told("reset", &json!({}));
    let (text, aligned) = served.told("align", &json!({"scene": "canvas"}));
    assert_eq!(aligned["success"], true, "{text}");
    let (text, rest) = served.told("stroke", &json!({"resume": true}));
    assert_eq!(rest["success"], true, "{text}");
    // The cross that was drawn in between is not ink of the drawing.
    let off_mm = rest["deviation_mm_max"].as_f64().unwrap();
    assert!(off_mm < 0.7 && rest["missing_mm"] == 0.0, "{rest:#}");
    assert_eq!(rest["understood"]["scene"], "canvas");
    assert!(text.contains("6 of 6 strokes"), "{text}");
}
