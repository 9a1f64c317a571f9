//! The rule: what is understood to the last key and word moves, what leaves something over is shown first or ignored, and
//! nothing that is inserted around the arguments is overlooked.

use super::{
    ArgumentShape, ForgivenessProfile, ParameterShape, ReaderPolicy, ReceivedArguments, ToolEffect,
    ValueKind, Verdict, judged,
};
use proptest::{
    prelude::*,
    sample::{Index, select},
};
use serde_json::{Map, Value, json};

fn stroke() -> ArgumentShape {
    let flag = |name: &str| ParameterShape::new(name, ValueKind::Bool).default(false);
    let chooses = ParameterShape::selects_motion;
    let shape = ArgumentShape::new(vec![
        chooses(ParameterShape::new(
            "scene",
            ValueKind::name(["default", "koi", "letters", "canvas"]),
        ))
        .alias("scene_name")
        .default("default"),
        ParameterShape::new("meta", ValueKind::name(["leaf"])),
        flag("dry_run").alias("preview").cautious(true),
        chooses(ParameterShape::new(
            "plan",
            ValueKind::Hex {
                digits_min: 8,
                digits_max: 64,
            },
        )),
        chooses(flag("resume")),
        flag("debug"),
        chooses(ParameterShape::new(
            "text",
            ValueKind::Verbatim { bytes_max: 4096 },
        )),
        chooses(ParameterShape::new(
            "svg",
            ValueKind::Verbatim { bytes_max: 4096 },
        )),
        ParameterShape {
            beside: vec!["text".to_owned(), "svg".to_owned()],
            ..ParameterShape::new("size_mm", ValueKind::number(0.0, 500.0, None))
        },
    ]);
    let shape = shape
        .with_known_names(["default", "koi", "letters", "canvas", "leaf"])
        .with_tool_names(["stroke", "robot_stroke"])
        .with_other_tools(["align", "reset", "sense", "stop", "halt"]);
    ArgumentShape {
        ignore_keys: vec!["reason".to_owned()],
        ..shape.needing_choice()
    }
}

/// Returns the outcome of a text in both profiles, guarded first.
fn outcomes(text: &str) -> [&'static str; 2] {
    [ForgivenessProfile::Guarded, ForgivenessProfile::Lenient]
        .map(|profile| outcome(profile, text, false))
}

fn outcome(profile: ForgivenessProfile, text: &str, after_doubt: bool) -> &'static str {
    let policy = ReaderPolicy {
        after_doubt,
        ..ReaderPolicy::new(ToolEffect::Moves, profile)
    };
    match judged(&stroke(), &policy, ReceivedArguments::Text(text.to_owned())) {
        Verdict::Understood(understood) if understood.reading().is_cautious => "dry run",
        Verdict::Understood(_) => "moves",
        Verdict::Preview(_) => "preview",
        Verdict::Refused(_) => "refused",
    }
}

/// Returns the arguments with which a call moves an arm on a port, if it does.
fn moves_with(text: &str) -> Option<Map<String, Value>> {
    let policy = ReaderPolicy::new(ToolEffect::Moves, ForgivenessProfile::Guarded);
    match judged(&stroke(), &policy, ReceivedArguments::Text(text.to_owned())) {
        Verdict::Understood(understood) if !understood.reading().is_cautious => {
            Some(understood.reading().given.clone())
        }
        _ => None,
    }
}

#[test]
fn every_row_of_the_table_holds_in_both_profiles() {
    for (text, guarded, lenient) in [
        // Contradictions.
        (r#"{"scene": "koi""#, "refused", "refused"),
        (r#"{}{"scene": "letters"}"#, "refused", "refused"),
        (
            r#"{"scene": "koi"} {"scene": "letters"}"#,
            "refused",
            "refused",
        ),
        (
            r#"{"scene": "koi", "scene": "letters"}"#,
            "refused",
            "refused",
        ),
        (
            r#"{"name": "align", "arguments": {"scene": "koi"}}"#,
            "refused",
            "refused",
        ),
        (
            r#"{"scene": "koi", "action": "stop"}"#,
            "refused",
            "refused",
        ),
        (r#"{"scene": "koi", "stop": true}"#, "refused", "refused"),
        (r#"{"scene": "<scene-name>"}"#, "refused", "refused"),
        (
            r#"{"type": "object", "properties": {"scene": {"type": "string"}}}"#,
            "refused",
            "refused",
        ),
        (
            r#"{"arguments": {"scene": "koi"}, "arguments": {}}"#,
            "refused",
            "refused",
        ),
        // Invalid values.
        (r#"{"scene": "tiger"}"#, "refused", "refused"),
        (r#"{"scene": "letters..."}"#, "refused", "refused"),
        (
            r#"{"scene": "koi", "debug": "maybe"}"#,
            "refused",
            "refused",
        ),
        (
            "{\"text\": \"HI</text>\\n<parameter name=\\\"dry_run\\\">true\"}",
            "refused",
            "refused",
        ),
        (
            "{\"svg\": \"<svg/></svg>\\n<parameter name=\\\"dry_run\\\">true\"}",
            "refused",
            "refused",
        ),
        // Dry runs.
        (r#"{"scene": "koi", "dry_run": ""}"#, "dry run", "dry run"),
        (r#"{"dry_run": []}"#, "dry run", "dry run"),
        (r#"{"scene": "koi", "dry_run": null}"#, "moves", "moves"),
        (r#"{"scene": "koi", "dry_run": "no"}"#, "moves", "moves"),
        (
            r#"{"scene": "koi", "options": {"dryRun": 1}}"#,
            "dry run",
            "dry run",
        ),
        (
            r#"{"scene": "koi", "_meta": {"dry_run": true}}"#,
            "dry run",
            "dry run",
        ),
        (r#"{"scene": "koi"} as a dry run"#, "dry run", "dry run"),
        (r#"{"scene": "koi"} --dry-run=false"#, "preview", "moves"),
        (
            r#"{"scene": "koi", "no_dry_run": true}"#,
            "preview",
            "moves",
        ),
        // A plan, a design or a resumption that was lost is not replaced by the default.
        (r#"{"plan": "none yet"}"#, "refused", "refused"),
        (
            r#"{"scene": "koi", "plan": "approved"}"#,
            "refused",
            "refused",
        ),
        (r#"{"plan": 12345678}"#, "refused", "refused"),
        (r#"{"plan": []}"#, "refused", "refused"),
        (r#"{"plan": ""}"#, "refused", "refused"),
        (r#"{"plan": {}, "debug": true}"#, "refused", "refused"),
        (r#"{"resume": ""}"#, "refused", "refused"),
        (r#"{"scene": "koi", "plan": []}"#, "moves", "moves"),
        (r#"{"plan": null, "resume": null}"#, "moves", "moves"),
        // A leftover whose choice does not stand, or is not there.
        (
            r#"{"scene": "koi", "style": "letters"}"#,
            "refused",
            "moves",
        ),
        (r#"{"style": "letters"}"#, "refused", "refused"),
        (r#"{"style": "bold"}"#, "refused", "moves"),
        ("draw the letters, please", "refused", "refused"),
        // A person's words may be a "no".
        ("please draw", "refused", "preview"),
        ("no", "refused", "preview"),
        ("不要", "refused", "preview"),
        ("false", "refused", "preview"),
        ("{} no", "refused", "preview"),
        (r#"{"debug": true} no"#, "refused", "preview"),
        (r#"{"answer": "no"}"#, "refused", "moves"),
        (r#"["letters"]"#, "refused", "refused"),
        // A leftover whose choice stands.
        (r#"{"scene": "koi", "depth": 2}"#, "preview", "moves"),
        (r#"{"scene": "koi", "pen": "default"}"#, "preview", "moves"),
        (
            r#"{"scene": "koi", "note": "not the letters"}"#,
            "preview",
            "moves",
        ),
        (r#"{"scene": "koi" /* a fish */}"#, "preview", "moves"),
        (r#"Sure! Here it is: {"scene": "koi"}"#, "preview", "moves"),
        (r#"await stroke(scene="koi")"#, "preview", "moves"),
        ("Final Answer: {\"scene\": \"koi\"}", "preview", "moves"),
        (r#"[{"scene": "koi"}, "slowly"]"#, "preview", "moves"),
        (r#"later.stroke(scene="koi")"#, "preview", "moves"),
        (
            r#"{"text": "HELLO", "scene": "canvas", "chatInput": "write hello"}"#,
            "preview",
            "moves",
        ),
        // A payload that was lost, and nothing said.
        ("[object Object]", "refused", "moves"),
        ("{}", "moves", "moves"),
        ("null", "moves", "moves"),
        ("", "moves", "moves"),
        // Understood.
        (r#"{"scene": "koi"}"#, "moves", "moves"),
        (
            r#"{"scene": "Koi", "reason": "it was asked for"}"#,
            "moves",
            "moves",
        ),
        (
            r#"{"scene": "koi", "sessionId": "8f0c2d", "tool": "stroke", "toolCallId": "call_a1B2"}"#,
            "moves",
            "moves",
        ),
        (
            r#"{"scene": "koi", "temperature": 0.7, "stream": false}"#,
            "moves",
            "moves",
        ),
        (
            r#"{"scene": "koi", "temperature": "hot"}"#,
            "preview",
            "moves",
        ),
        (
            r#"{"scene": "koi", "session_id": "tomorrow"}"#,
            "preview",
            "moves",
        ),
        (
            r#"{"scene": "koi", "_meta": {"progressToken": 1, "stream": true, "a": {"b": null}}}"#,
            "moves",
            "moves",
        ),
        (
            r#"{"scene": "koi", "_meta": {"approved": false}}"#,
            "preview",
            "moves",
        ),
        (
            r#"{"scene": "koi", "ctx": {"wait for the operator": null}}"#,
            "preview",
            "moves",
        ),
        (
            r#"{"scene": "koi", "context": {"a": {"b": {"c": {}}}}}"#,
            "preview",
            "moves",
        ),
        (
            r#"<think>draw the fish?</think>{"scene": "koi"}"#,
            "moves",
            "moves",
        ),
        (
            "Action: stroke\nAction Input: {\"scene\": \"koi\"}",
            "moves",
            "moves",
        ),
        (
            r#"{"id": "call_1", "type": "function", "function": {"name": "stroke", "arguments": "{\"scene\": \"koi\"}"}}"#,
            "moves",
            "moves",
        ),
        (
            r#"{"scene": "letters", "meta": "", "plan": "", "text": "", "svg": "", "size_mm": 0, "dry_run": false, "resume": false}"#,
            "moves",
            "moves",
        ),
        (
            r#"{"scene": "canvas", "text": "HELLO", "svg": "", "size_mm": 0, "plan": null, "dry_run": false}"#,
            "moves",
            "moves",
        ),
        (r#"{"text": null, "svg": "<svg/>"}"#, "moves", "moves"),
        (r#"{"plan": "3f9a0c11"}"#, "moves", "moves"),
        (r#"{"text": "stop"}"#, "moves", "moves"),
    ] {
        assert_eq!(outcomes(text), [guarded, lenient], "{text}");
    }
}

#[test]
fn a_call_that_says_nothing_is_shown_first_after_a_doubt() {
    let guarded = |text| outcome(ForgivenessProfile::Guarded, text, true);
    assert_eq!(guarded("{}"), "preview");
    assert_eq!(guarded(r#"{"debug": true}"#), "preview");
    assert_eq!(guarded(r#"{"scene": "koi"}"#), "moves");
    assert_eq!(outcome(ForgivenessProfile::Lenient, "{}", true), "moves");
}

#[test]
fn a_tool_that_looks_or_stops_ignores_what_is_left_over() {
    for effect in [ToolEffect::Reads, ToolEffect::Stops] {
        let policy = ReaderPolicy::new(effect, ForgivenessProfile::Guarded);
        for text in [
            r#"{"reason_for": "x", "scene": "koi"}"#,
            "please do",
            r#"{"stop": true}"#,
            "[object Object]",
        ] {
            let verdict = judged(&stroke(), &policy, ReceivedArguments::Text(text.to_owned()));
            assert!(
                matches!(verdict, Verdict::Understood(_)),
                "{effect:?} {text}"
            );
        }
    }
}

/// Calls of one scene in the forms that are read, each of which moves.
pub(super) const FORMS: [&str; 19] = [
    r#"{"scene": "koi", "debug": true}"#,
    r#"{'scene': 'koi', 'debug': True}"#,
    r#"{scene: "koi", debug: true,}"#,
    r#"scene="koi", debug=True"#,
    "scene: koi\ndebug: true",
    r#"stroke(scene="koi", debug=True)"#,
    r#"functions.stroke({"scene": "koi", "debug": true})"#,
    "```json\n{\"scene\": \"koi\", \"debug\": true}\n```",
    r#"<tool_call>{"name": "stroke", "arguments": {"scene": "koi", "debug": true}}</tool_call>"#,
    "<function=stroke><parameter=scene>koi</parameter><parameter=debug>true</parameter></function>",
    r#"<invoke name="stroke"><parameter name="scene">koi</parameter><parameter name="debug">true</parameter></invoke>"#,
    r#""{\"scene\": \"koi\", \"debug\": true}""#,
    r#"{\"scene\": \"koi\", \"debug\": true}"#,
    r#"{"arguments": "{\"scene\": \"koi\", \"debug\": true}"}"#,
    r#"[{"name": "stroke", "parameters": {"scene": "koi", "debug": true}}]"#,
    "Action: stroke\nAction Input: {\"scene\": \"koi\", \"debug\": true}",
    "stroke --scene koi --debug",
    "scene=koi&debug=true",
    "{'debug': True, 'scene': 'koi', 'meta': []}",
];

#[test]
fn every_form_moves_with_what_it_says() {
    for text in FORMS {
        let given = moves_with(text).map(Value::Object);
        assert_eq!(
            given,
            Some(json!({"scene": "koi", "debug": true})),
            "{text}"
        );
    }
}

/// Tokens that mean nothing wherever they stand.
pub(super) const TOKENS: [&str; 8] = [
    "```",
    "</tool_call>",
    "<|im_end|>",
    "[TOOL_CALLS]",
    "\n",
    " ",
    "{}",
    "<think>hm</think>",
];

/// What may stand around an inserted word: blanks, nothing, a comment, quotes.
const AROUND: [[&str; 2]; 4] = [[" ", " "], ["", ""], ["// ", "\n"], [" \"", "\" "]];

/// As many cases as `STEADYHAND_INSERTIONS` says, from one seed.
pub(super) fn insertions() -> ProptestConfig {
    let cases = std::env::var("STEADYHAND_INSERTIONS").ok();
    ProptestConfig {
        cases: cases.and_then(|n| n.parse().ok()).unwrap_or(4000),
        rng_seed: proptest::test_runner::RngSeed::Fixed(7),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(insertions())]

    /// With a word that is inserted anywhere, nothing moves.
    #[test]
    fn no_inserted_word_is_overlooked(text in select(FORMS.to_vec()), at in any::<Index>(), word in "[a-z]{2,9}", around in select(AROUND.to_vec())) {
        let (before, after) = text.split_at(text.floor_char_boundary(at.index(text.len() + 1)));
        let [open, close] = around;
        let inserted = format!("{before}{open}{word}{close}{after}");
        let known = ["scene", "meta", "plan", "text", "svg", "debug", "resume", "stroke", "json", "true", "false", "null", "none", "koi"];
        prop_assume!(!known.contains(&word.as_str()));
        if let Some(given) = moves_with(&inserted) {
            prop_assert!(false, "{inserted:?} moves with {}", Value::Object(given));
        }
    }

    /// A token of form leaves the same arguments, or nothing moves.
    #[test]
    fn a_token_of_form_changes_no_argument(text in select(FORMS.to_vec()), at in any::<Index>(), token in select(TOKENS.to_vec())) {
        let (before, after) = text.split_at(text.floor_char_boundary(at.index(text.len() + 1)));
        let inserted = format!("{before}{token}{after}");
        if let Some(given) = moves_with(&inserted) {
            prop_assert_eq!(Value::Object(given), json!({"scene": "koi", "debug": true}), "{:?}", inserted);
        }
    }
}

/// A thought is never read: neither for words that deny, nor for a call.
#[test]
fn a_call_that_stands_only_in_a_thought_does_not_move() {
    for text in [
        r#"<think>{"scene": "letters"}</think>"#,
        r#"<think>{"scene": "letters"}</think>{"scene": "koi"}"#,
        r#"<reasoning>{"name": "stroke", "arguments": {"scene": "letters"}}</reasoning>"#,
        r#"<|channel|>analysis<|message|>{"scene": "letters"}<|end|>"#,
        r#"<scratchpad>{"scene": "letters", "dry_run": false}</scratchpad>"#,
        r#"[THINK]{"scene": "letters"}[/THINK]"#,
    ] {
        let moved = moves_with(text).and_then(|given| given.get("scene").cloned());
        assert!(
            moved.as_ref().is_none_or(|scene| scene == "koi"),
            "{text}: {moved:?}"
        );
    }
    for text in [
        "{}<think>do not draw</think>",
        r#"{"scene": "koi"}<think>do not draw</think>"#,
        r#""{\"scene\": \"koi\"}"<think>do not draw</think>"#,
        r#"[<think>do not draw</think>{"scene": "koi"}]"#,
        "stroke(<think>do not draw</think>)",
        "scene: koi\n<reasoning>do not draw</reasoning>",
    ] {
        assert_eq!(moves_with(text), None, "{text}");
    }
    let thought = r#"<think>koi or letters?</think>{"scene": "letters"}"#;
    assert_eq!(outcomes(thought), ["moves"; 2]);
}

/// Before the arguments no call ends, and behind them none begins.
#[test]
fn an_empty_call_beside_another_is_left_over() {
    let call = r#"{"scene": "letters"}"#;
    for empty in [
        "<tool_call></tool_call>",
        "<tool_call>\n</tool_call>\n",
        "<tool_call/>",
        "<function=stroke></function>",
        "<invoke name=\"stroke\"></invoke>",
        "<stroke/>",
        "<|tool_call_begin|><|tool_call_end|>",
        "[TOOL_CALLS][/TOOL_CALLS]",
        "stroke()",
        "stroke;",
        "{}",
        "[]",
    ] {
        for text in [format!("{empty} {call}"), format!("{call} {empty}")] {
            assert_eq!(moves_with(&text), None, "{text}");
        }
    }
    for text in [
        "<stroke/><scene>letters</scene>",
        "<function=stroke></function><function=stroke><parameter=scene>letters</parameter></function>",
        "<tool_call>{\"scene\": \"letters\"}</tool_call><tool_call></tool_call>",
        "Action: stroke\nAction Input:\nAction: stroke\nAction Input: {\"scene\": \"letters\"}",
        "{\"scene\": \"letters\"}\nAction: stroke",
        "{\"scene\": \"letters\"} stroke",
        "{\"scene\": \"letters\"} ---",
    ] {
        assert_eq!(outcomes(text), ["preview", "moves"], "{text}");
    }
}

#[test]
fn a_call_behind_a_mark_of_comment_does_not_move() {
    let call = r#"{"scene": "letters"}"#;
    for text in [
        format!("> {call}"),
        format!("Look:\n>> {call}"),
        format!("<|im_start|>tool\n{call}<|im_end|>"),
        format!("// {call}"),
        format!("/*{call}*/"),
        format!("-- {call}"),
        format!("-{call}"),
        format!("; {call}"),
        format!("# {call}"),
        format!("{call}?"),
        format!("-stroke({call})"),
        "//stroke(scene=\"letters\")".to_owned(),
        "; stroke(scene=\"letters\")".to_owned(),
        format!("- [ ] {call}"),
        format!("* {call}"),
        format!("\\ {call}"),
        format!("{call}..."),
        format!("{call} :-("),
        format!("{call} :/"),
        format!("{call} [-]"),
        format!("{call} []"),
        format!("<|tool|>{call}"),
        format!("<|channel|>final<|message|>{call}"),
        format!("<output>{call}</output>"),
        "> {}".to_owned(),
        "- [ ] {}".to_owned(),
        "{}...".to_owned(),
        r#"{"name": "mcp__do_not__stroke", "arguments": {"scene": "letters"}}"#.to_owned(),
        r#"{"^scene": "letters"}"#.to_owned(),
        "{\"s\u{336}c\u{336}ene\": \"letters\"}".to_owned(),
    ] {
        assert_eq!(moves_with(&text), None, "{text}");
    }
    for text in [
        "- scene: letters",
        "---\nscene: letters\n---",
        "scene=letters;",
        "--scene letters",
        "**scene**: letters",
        r#"<stroke scene="letters"/>"#,
        r#"<stroke><scene>letters</scene></stroke>"#,
        "stroke(scene=\"letters\").",
        "<|im_start|>assistant\n{\"scene\": \"letters\"}<|im_end|>",
        "<tool_call>{\"name\": \"stroke\", \"arguments\": {}}</tool_call>",
        "[stroke]\nscene = \"letters\"",
        "[arguments]\nscene = \"letters\"",
        "<|tool_call_begin|>functions.stroke:0<|tool_call_argument_begin|>{\"scene\": \"letters\"}<|tool_call_end|>",
        "<tool_call>stroke\n<arg_key>scene</arg_key>\n<arg_value>letters</arg_value>\n</tool_call>",
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>stroke\n```json\n{\"scene\": \"letters\"}\n```<｜tool▁call▁end｜>",
    ] {
        assert!(moves_with(text).is_some(), "{text}");
    }
}
