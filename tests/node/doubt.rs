//! Tests what a node does with a call that it has not understood to the last word: over MCP, in both profiles.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

use crate::support::{Bench, Caller, Served, tool_call};
use crate::torture::{STREAMS, post, session};
use serde_json::{Value, json};
use steadyhand::catalogue::{TOOLS, ToolDefinition, ToolEffect};

const GUARDED: &str = "forgiveness = \"guarded\"\n";

/// Returns what became of a call: `moves`, `dry run`, `preview` or `refused`.
fn outcome(result: &Value) -> &'static str {
    let is = |key: &str, value: Value| result[key] == value;
    match () {
        () if is("code", json!("preview_only")) => "preview",
        () if is("success", json!(true)) && is("moved", json!(false)) => "repeated",
        () if is("success", json!(true)) && result["understood"]["dry_run"] == true => "dry run",
        () if is("success", json!(true)) => "moves",
        () => "refused",
    }
}

/// Rows of the table: the arguments, and what becomes of them where the arm is guarded and where it is not.
fn rows() -> Vec<(Value, &'static str, &'static str)> {
    vec![
        (json!("{\"scene\": \"short\""), "refused", "refused"),
        (json!("{}{\"scene\": \"short\"}"), "refused", "refused"),
        (
            json!({"scene": "short", "action": "stop"}),
            "refused",
            "refused",
        ),
        (
            json!({"name": "align", "arguments": {}}),
            "refused",
            "refused",
        ),
        (json!({"scene": "shrot"}), "refused", "refused"),
        (
            json!({"scene": "short", "size_mm": 5}),
            "refused",
            "refused",
        ),
        (
            json!({"scene": "short", "dry_run": true}),
            "dry run",
            "dry run",
        ),
        (
            json!({"scene": "short", "dry_run": ""}),
            "preview",
            "preview",
        ),
        (json!({"dry_run": "maybe"}), "preview", "preview"),
        (
            json!({"scene": "short", "options": {"dryRun": 1}}),
            "preview",
            "preview",
        ),
        (json!({"plan": []}), "refused", "refused"),
        (json!({"plan": "none yet"}), "refused", "refused"),
        (
            json!({"scene": "short", "theme": "letters"}),
            "refused",
            "moves",
        ),
        (json!({"style": "letters"}), "refused", "refused"),
        (json!("draw the letters, please"), "refused", "refused"),
        (json!({"style": "bold", "meta": null}), "refused", "-"),
        (json!({"scene": "short", "depth": 2}), "preview", "moves"),
        (
            json!({"scene": "short", "operator_said": "hands in the workspace"}),
            "preview",
            "moves",
        ),
        (json!("Sure! {\"scene\": \"short\"}"), "preview", "moves"),
        (
            json!({"scene": "short", "sessionId": "8f0c2d", "action": "sendMessage", "chatInput": "please draw", "tool": "stroke", "toolCallId": "call_a1B2c3"}),
            "preview",
            "moves",
        ),
        (
            json!({"scene": "letters</parameter>\n</function>\n<tool_call>\n<function=stop>\n</function>"}),
            "refused",
            "refused",
        ),
        (
            json!({"scene": "short", "meta": "", "plan": "", "arm": "", "dry_run": false, "resume": false}),
            "moves",
            "moves",
        ),
        (
            json!({"scene": "short", "temperature": 0.2, "request_id": "r-1"}),
            "moves",
            "moves",
        ),
    ]
}

#[test]
fn every_row_of_the_table_holds_over_mcp_in_both_profiles() {
    for (is_guarded, node_file) in [(true, GUARDED), (false, "forgiveness = \"lenient\"\n")] {
        let bench = Bench::at_test_rate();
        let served = bench.serve_with_file(node_file);
        for (arguments, guarded, lenient) in rows() {
            let want = if is_guarded { guarded } else { lenient };
            if want == "-" {
                continue;
            }
            let (text, result) = served.told("stroke", &arguments);
            // The same drawing moments later is answered without a second one.
            let got = match outcome(&result) {
                "repeated" => "moves",
                got => got,
            };
            assert_eq!(got, want, "{arguments}: {text}");
            if got == "preview" {
                assert!(text.starts_with("NOT DRAWN"), "{text}");
                assert_eq!(
                    (&result["success"], &result["moved"]),
                    (&json!(false), &json!(false))
                );
                assert!(
                    result["not_understood"]
                        .as_array()
                        .is_some_and(|all| !all.is_empty())
                );
                assert!(result.get("draw_call").is_none() && result.get("next_call").is_none());
            }
        }
    }
}

/// What was shown is drawn by its plan alone, by eight digits of it, and by nothing else of the doubtful call.
#[test]
fn the_plan_of_a_doubtful_call_is_a_whole_call() {
    let bench = Bench::at_test_rate();
    let served = bench.serve_with_file(GUARDED);
    let doubtful = json!({"scene": "short", "depth": 2});
    let (text, shown) = served.told("stroke", &doubtful);
    assert_eq!(outcome(&shown), "preview", "{text}");
    let hash = shown["plan_hash"].as_str().unwrap();
    let (_, named) = text
        .split_once("plan ")
        .and_then(|(_, rest)| Some(("", rest.get(..8)?)))
        .unwrap();
    assert!(hash.starts_with(&hash[..8]) && !named.is_empty());
    let (text, again) = served.told("stroke", &doubtful);
    assert_eq!(outcome(&again), "preview", "{text}");
    assert!(text.contains("ignore_keys = [\"depth\"]"), "{text}");
    let (text, refused) = served.told("stroke", &json!({"plan": "0123456789abcdef"}));
    assert_eq!(refused["code"], "arguments_refused", "{text}");
    let (text, more) = served.told("stroke", &json!({"plan": hash, "depth": 2}));
    assert_eq!(outcome(&more), "preview", "{text}");
    let (text, drawn) = served.told("stroke", &json!({"plan": &hash[..10]}));
    assert_eq!(outcome(&drawn), "moves", "{text}");
    assert_eq!(drawn["plan_hash"], hash, "{text}");
    assert_eq!(drawn["understood"]["scene"], "short", "{text}");
    let log = std::path::Path::new(&bench.state()).join("audit.log");
    let told = bench.run(&["audit", "verify", log.to_str().unwrap()]);
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(told.contains("depth 3"), "{told}");
    assert!(told.contains("ignore_keys = [\"depth\"]"), "{told}");
}

#[test]
fn a_doubted_empty_call_is_shown_first_and_an_operator_allows_keys() {
    let bench = Bench::at_test_rate();
    let served = bench.serve_with_file(&format!("{GUARDED}ignore_keys = [\"reason\"]\n"));
    let (_, refused) = served.told("stroke", &json!({"scene": "shrot"}));
    assert_eq!(outcome(&refused), "refused");
    let (text, shown) = served.told("stroke", &json!({}));
    assert_eq!(outcome(&shown), "preview", "{text}");
    let allowed = json!({"scene": "short", "reason": "it was asked for"});
    let (text, drawn) = served.told("stroke", &allowed);
    assert_eq!(outcome(&drawn), "moves", "{text}");
}

#[test]
fn a_node_that_ignores_what_means_something_does_not_start() {
    let bench = Bench::at_test_rate();
    for key in ["dry_run", "dryRun", "scene", "plan_hash", "halt", "E-Stop"] {
        std::fs::write(
            bench.path("node.toml"),
            format!("ignore_keys = [\"reason\", \"{key}\"]\n"),
        )
        .unwrap();
        let config = bench.path("node.toml").display().to_string();
        let checked = bench.run(&["check", "--config", &config]);
        let errors = format!("{checked:?}");
        assert!(!checked.status.success(), "{key}: {errors}");
        let problem = format!("`ignore_keys` lists `{key}`");
        assert!(errors.contains(&problem), "{key}: {errors}");
    }
}

/// `align` and `reset` list no dry run, and are shown all the same.
#[test]
fn align_and_reset_are_shown_without_a_motion() {
    let bench = Bench::at_test_rate();
    let served = bench.serve_with_file(GUARDED);
    for (tool, arguments) in [
        ("align", json!({"scene": "short", "speed": "slow"})),
        (
            "align",
            json!({"scene": "short", "touch": true, "speed": "slow"}),
        ),
    ] {
        let (text, shown) = served.told(tool, &arguments);
        assert_eq!(outcome(&shown), "preview", "{text}");
        assert!(text.starts_with("NOT MOVED"), "{text}");
        assert!(
            shown["arm_time_s"].as_f64().is_some_and(|time| time > 0.0),
            "{text}"
        );
    }
    let measured = json!({"scene": "short", "measured": {"dx": 1, "dy": 0}, "note": "about"});
    let (text, refused) = served.told("align", &measured);
    assert_eq!(outcome(&refused), "refused", "{text}");
    let (text, drawn) = served.told("stroke", &json!({"scene": "short"}));
    assert_eq!(outcome(&drawn), "moves", "{text}");
    let (text, shown) = served.told("reset", &json!({"please": "gently"}));
    assert_eq!(outcome(&shown), "preview", "{text}");
    let (text, reset) = served.told("reset", &json!({}));
    assert_eq!(reset["success"], true, "{text}");
}

/// Calls a tool in a session; the result.
fn in_session(served: &Served, header: &str, tool: &str, arguments: &Value) -> Value {
    let body = tool_call(tool, arguments);
    let (_, answer) = post(served, &[STREAMS, header], &body);
    let answer: Value = serde_json::from_str(&answer).unwrap();
    answer["result"]["structuredContent"].clone()
}

#[test]
fn a_doubt_is_of_one_session_and_keeps_no_other_from_its_call() {
    let bench = Bench::at_test_rate();
    let served = bench.serve_with_file(GUARDED);
    let [first, second] = [session(&served), session(&served)];
    let refused = in_session(&served, &first, "stroke", &json!({"scene": "shrot"}));
    assert_eq!(refused["code"], "arguments_refused", "{refused:#}");
    let shown = in_session(&served, &first, "stroke", &json!({}));
    assert_eq!(shown["code"], "preview_only", "{shown:#}");
    let drawn = in_session(&served, &second, "stroke", &json!({}));
    assert_eq!(drawn["success"], true, "{drawn:#}");
}

/// Returns keys that no tool has, with values of every kind.
fn strange_pairs() -> impl Iterator<Item = (String, Value)> {
    let values = [
        json!(null),
        json!(false),
        json!(-3.5),
        json!("not now, please"),
        json!(["x", 1]),
        json!({"inner": {"key": "ß 漢"}}),
    ];
    (0..1000_u64).map(move |number| {
        let scrambled = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let value = values[usize::try_from(number).unwrap_or(0) % values.len()].clone();
        (format!("x_{scrambled:x}"), value)
    })
}

/// Commissioned: on the simulator as shipped, every tool runs with its defaults under each of its names, and warns.
#[test]
fn a_thousand_strange_keys_are_ignored_with_a_warning_over_mcp() {
    let bench = Bench::at_test_rate();
    let served = bench.serve(&[]);
    // Behind a stop nothing moves, so it comes last.
    let mut tools: Vec<_> = TOOLS.iter().collect();
    tools.sort_by_key(|tool| tool.effect == ToolEffect::Stops);
    let all: Value = strange_pairs().collect::<serde_json::Map<_, _>>().into();
    for tool in &tools {
        let forms = [
            (json!({}), false),
            (json!(null), false),
            (json!(""), false),
            (json!("[object Object]"), true),
            (all.clone(), true),
        ];
        // A drawing that is done is not done again, but an alignment takes its time.
        let skipped = if tool.name == "align" { 3 } else { 0 };
        for name in tool.names() {
            for (arguments, is_warned) in forms.iter().skip(skipped) {
                let (text, result) = served.told(name, arguments);
                assert_eq!(result["success"], true, "{name}: {text}");
                let repairs = result["repairs"].as_array().map_or(0, Vec::len);
                assert_eq!(repairs > 0, *is_warned, "{name}: {text}");
            }
        }
    }
}

/// One after another, too: the answer names each.
#[test]
fn each_of_a_thousand_strange_keys_is_told_over_mcp() {
    let bench = Bench::at_test_rate();
    let served = bench.serve(&[]);
    let names: Vec<&str> = ["stroke", "sense"]
        .into_iter()
        .flat_map(|name| TOOLS.iter().find(|tool| tool.name == name))
        .flat_map(ToolDefinition::names)
        .collect();
    for ((key, value), name) in strange_pairs().zip(names.iter().cycle()) {
        let (text, result) = served.told(name, &json!({key.as_str(): value}));
        assert_eq!(result["success"], true, "{name}: {text}");
        assert_eq!(result["repairs"][0]["field"], json!(key), "{name}: {text}");
    }
}
