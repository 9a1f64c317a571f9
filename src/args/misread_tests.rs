//! Calls that say something else than "draw this": nothing, another tool, a denied parameter, an instruction, a question.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use super::{
    ArgumentShape, ForgivenessProfile, ParameterShape, ReaderPolicy, ReceivedArguments, ToolEffect,
    ValueKind, read,
    request_tests::{all_draw, never_draws, none_draws},
};
use serde_json::json;

#[test]
fn a_call_of_nothing_with_an_empty_value_draws_nothing() {
    never_draws(&[
        r#"{"name":null,"arguments":{}}"#,
        r#"{"name":"","arguments":{}}"#,
        r#"{"tool":null,"args":null}"#,
        r#"{"action":null,"action_input":null}"#,
        r#"{"action":"","action_input":""}"#,
        r#"{"function_call":null}"#,
        r#"{"tool_calls":null}"#,
        r#"{"tool_calls":""}"#,
        r#"{"tool_calls":{}}"#,
        r#"{"tool_calls":[null]}"#,
        r#"{"tool_calls":[{}]}"#,
        r#"{"role":"assistant","content":"","tool_calls":null}"#,
        r#"{"calls":[]}"#,
        r#"{"arguments":"[TOOL_CALLS][]"}"#,
        r#"<tool_call>{"name":null,"arguments":{}}</tool_call>"#,
        "<tool_call>null</tool_call>",
        "<tool_call></tool_call>",
        "[TOOL_CALLS][]",
        "[TOOL_CALLS] null",
    ]);
    all_draw(&[
        "null",
        "[]",
        r#"{"arguments":null}"#,
        r#"{"name":"stroke","arguments":null}"#,
        r#"{"name":null,"arguments":{"scene":"letters"}}"#,
        "<tool_call>{}</tool_call>",
        "stroke()",
    ]);
}

#[test]
fn a_tool_that_is_called_by_a_key_is_another_call() {
    never_draws(&[
        r#"{"stop":{}}"#,
        r#"{"align":{}}"#,
        r#"{"sense":{}}"#,
        r#"{"reset":{}}"#,
        r#"{"robot_align":{}}"#,
        r#"{"cancel":{}}"#,
        r#"{"emergency_stop":{}}"#,
        r#"{"tool_calls":[{"stop":{}}]}"#,
        r#"{"arguments":{"stop":{}}}"#,
        r#"{"stroke":{"stop":{}}}"#,
        r#"{"align":{},"stroke":{"scene":"letters"}}"#,
        r#"{"scene":"letters","stop":{}}"#,
        r#"{"scene":"letters","stop":[]}"#,
        r#"{"scene":"letters","stop":""}"#,
        r#"{"scene":"letters","align":{}}"#,
        r#"{"scene":"letters","align":[{}]}"#,
        r#"{"scene":"letters","align":{"debug":true}}"#,
    ]);
    none_draws(&[
        r#"{"get_weather":{}}"#,
        r#"{"final_answer":{}}"#,
        r#"{"thoughts":"x","command":{}}"#,
    ]);
    all_draw(&[
        r#"{"stroke":{}}"#,
        r#"{"stroke":{"scene":"letters"}}"#,
        r#"{"ctx":{}}"#,
        r#"{"scene":"letters","stop":null}"#,
    ]);
}

/// Beside data, no key is left out.
#[test]
fn a_call_of_nothing_is_heard_beside_data() {
    let shape = ArgumentShape::new(vec![
        ParameterShape::new("text", ValueKind::Verbatim { bytes_max: 100 }),
        ParameterShape::new("dry_run", ValueKind::Bool).cautious(true),
    ])
    .with_tool_names(["stroke"]);
    for profile in ForgivenessProfile::ALL {
        let policy = ReaderPolicy::new(ToolEffect::Moves, profile);
        let runs = |call| read(&shape, &policy, ReceivedArguments::Value(call)).is_ok();
        assert!(runs(json!({"text": "Hi"})));
        assert!(!runs(json!({"text": "Hi", "name": null})));
        assert!(!runs(json!({"text": "Hi", "stop": {}})));
    }
}
