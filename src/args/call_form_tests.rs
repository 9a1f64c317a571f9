//! Tests calls in the syntax of models, of which all is read or nothing runs.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use super::tests::{check, guarded};
use serde_json::{Value, json};

#[test]
fn a_call_in_a_models_own_syntax_is_read() {
    for text in [
        r#"{"type": "function", "name": "stroke", "parameters": {"scene": "koi"}}"#,
        r#"{"type": "function", "function": "stroke", "parameters": {"scene": "koi"}}"#,
        "<|recipient|>stroke\n<|content|>{\"scene\": \"koi\"}<|stop|>",
        "<|from|>assistant\n<|recipient|>stroke\n<|content|>{\"scene\": \"koi\"}<|stop|>",
        ">>>stroke\n{\"scene\": \"koi\"}",
        "<|python_tag|>stroke.call(scene=\"koi\")",
        "<minimax:tool_call><invoke name=\"stroke\"><parameter name=\"scene\">koi</parameter></invoke></minimax:tool_call>",
        "<seed:tool_call><function=stroke><parameter=scene>koi</parameter></function></seed:tool_call>",
        "<|START_THINKING|>the {star}?<|END_THINKING|><|START_ACTION|>[{\"tool_call_id\": \"0\", \"tool_name\": \"stroke\", \"parameters\": {\"scene\": \"koi\"}}]<|END_ACTION|>",
        "[stroke]\nscene = \"koi\"",
        "scene: |\n  koi",
        "scene: >-\n  koi\n",
        "stroke:\n  scene: koi",
        "scene: koi;",
    ] {
        let read = guarded(text).map_err(|refusal| refusal.to_string());
        assert_eq!(
            Value::Object(read.unwrap().given),
            json!({"scene": "koi"}),
            "{text}"
        );
    }
    check(&[
        (
            r#"{"type": "function", "name": "stroke", "parameters": {"type": "object", "properties": {"scene": {}}}}"#,
            "!!rr",
        ),
        (
            r#"{"type": "function", "name": "stroke", "parameters": {"scene": {"type": "string"}}}"#,
            "!!rr",
        ),
        (
            r#"{"type": "function", "name": "align", "parameters": {"scene": "koi"}}"#,
            "!!rr",
        ),
        ("<|recipient|>reset\n<|content|>{}<|stop|>", "!!rr"),
        (">>>reset\n{}", "!!rr"),
        ("[reset]\nscene = \"koi\"", "!!rr"),
        ("reset.call(scene=\"koi\")", "!!rr"),
        (
            "<dry_run:tool_call><scene>koi</scene></dry_run:tool_call>",
            "!!rr",
        ),
        ("{note: ½}", "...."),
        ("note: |\n  a\n  b", "!!rr"),
        ("scene: |", "!rrr"),
        ("scene: koi; fps: 5;", "!!rr"),
    ]);
}

#[test]
fn a_call_in_one_more_tag_is_read() {
    for call in [
        "<function=stroke>{\"scene\": \"koi\"}</function>",
        "<function name=\"stroke\">{\"scene\": \"koi\"}</function>",
        "<invoke name=\"stroke\">\n{\"scene\": \"koi\"}\n</invoke>",
        "<invoke name=\"stroke\">[{\"scene\": \"koi\"}]</invoke>",
        "<stroke>{\"scene\": \"koi\"}</stroke>",
    ] {
        for tag in ["tool_call", "function_call", "function_calls", "tool"] {
            is_koi(&format!("<{tag}>\n{call}\n</{tag}>"));
        }
    }
}

#[track_caller]
fn is_koi(text: &str) {
    let read = guarded(text).map_err(|refusal| refusal.to_string());
    assert_eq!(
        Value::Object(read.unwrap().given),
        json!({"scene": "koi"}),
        "{text}"
    );
}

#[test]
fn a_quoted_list_or_object_is_read_as_one_without_quotes() {
    for value in [
        json!(["koi"]),
        json!({"name": "koi"}),
        json!([{"name": "koi"}]),
    ] {
        is_koi(&json!({"scene": value}).to_string());
        is_koi(&json!({"scene": value.to_string()}).to_string());
    }
    for (value, want) in [
        ("[false]", false),
        ("0.0", false),
        ("1.0", true),
        ("[\"yes\"]", true),
    ] {
        let read = guarded(&json!({"debug": value}).to_string());
        assert_eq!(read.unwrap().given["debug"], want, "{value}");
    }
    check(&[
        (r#"{"scene": "[\"koi\", \"star\"]"}"#, "!rrr"),
        (r#"{"scene": "{\"type\": \"string\"}"}"#, "!!rr"),
        (r#"{"scene": "[scene]"}"#, "!!rr"),
        (r#"{"scene": "[\"carp\"]"}"#, "!rrr"),
        (r#"{"debug": "[true, false]"}"#, "!rrr"),
    ]);
}

#[test]
fn the_header_of_a_call_without_arguments_is_cut_off() {
    for text in [
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>stroke\n```json\n",
        "‹｜tool▁call▁begin｜>function‹｜tool▁sep｜>stroke\n```json\n",
        "```json\n",
        "[TOOL_CALLS]stroke[ARGS]",
        "<tool_call>stroke",
        "const args =",
        "--scene=",
    ] {
        let complaint = guarded(text).unwrap_err().complaints[0].code;
        assert_eq!(complaint, "cut_off", "{text}");
        check(&[(text, "!!rr")]);
    }
    check(&[
        ("[TOOL_CALLS]stroke[ARGS]{}", "...."),
        ("```json\n{}\n```", "...."),
        ("draw it<|im_end|>", "!!pr"),
    ]);
}

#[test]
fn a_mark_that_denies_is_no_form() {
    check(&[
        (r#"{"scene": "-koi"}"#, "!rrr"),
        (r#"{"scene": "- koi"}"#, "...."),
    ]);
    let read = guarded(r#"{"scene": "koi", "_meta": "leaf"}"#).unwrap();
    assert_eq!(Value::Object(read.given), json!({"scene": "koi"}));
}

#[test]
fn full_width_numbers_and_fractions_are_read() {
    for (written, want) in [("５０ｍｍ", 0.05), ("½ inch", 0.0127), ("1½ cm", 0.015)] {
        let read = guarded(&format!(r#"{{"lift": "{written}"}}"#)).unwrap();
        assert_eq!(read.understood["lift"], want, "{written}");
    }
    check(&[(r#"{"fps": "½"}"#, "!rrr")]);
    let refused = guarded(r#"{"lift": "٥٠ mm"}"#).unwrap_err().to_string();
    assert!(refused.contains("0 to 9"), "{refused}");
}
