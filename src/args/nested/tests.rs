//! Requirements of a schema hold at every depth, regardless of what else was lost.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use super::super::{
    ArgumentShape, ForgivenessProfile, LineReading, ParameterShape, ReaderPolicy,
    ReceivedArguments, ToolEffect, ValueKind, read,
    tests::{guarded, line},
};
use serde_json::{Value, json};

#[test]
fn required_arguments_are_required_after_a_lost_payload_too() {
    let shape = ArgumentShape::new(vec![
        ParameterShape::new("a", ValueKind::integer(0, 9)).required(),
        ParameterShape::new("b", ValueKind::integer(0, 9)).default(3),
    ]);
    for (effect, profile) in [
        (ToolEffect::Reads, ForgivenessProfile::Guarded),
        (ToolEffect::Moves, ForgivenessProfile::Lenient),
    ] {
        let policy = ReaderPolicy::new(effect, profile);
        for text in [
            "[object Object]",
            "please",
            "{}",
            "{\"a\": \"[object Object]\"}",
        ] {
            let refusal = read(&shape, &policy, ReceivedArguments::Text(text.into())).unwrap_err();
            let codes: Vec<_> = refusal.complaints.iter().map(|one| one.code).collect();
            assert_eq!(codes, ["missing"], "{text}");
        }
    }
    let stops = ReaderPolicy::new(ToolEffect::Stops, ForgivenessProfile::Guarded);
    assert!(
        read(
            &shape,
            &stops,
            ReceivedArguments::Text("[object Object]".into())
        )
        .is_ok()
    );
}

#[test]
fn a_declared_default_is_an_exact_value_and_fills_in_everywhere() {
    let shape = ArgumentShape::from_json_schema(&json!({"properties": {
        "level": {"type": "integer", "default": "auto"}, "text": {"type": "string", "default": "<none>"},
        "few": {"type": "array", "items": {"type": "string"}, "minItems": 1, "default": []},
        "inner": {"type": "object", "properties": {"mode": {"enum": ["a", "b"], "default": "auto"}, "n": {"type": "integer", "minimum": 1, "default": 0}}}}}))
    .unwrap();
    let policy = ReaderPolicy::new(ToolEffect::Moves, ForgivenessProfile::Guarded);
    let read = |text: &str| read(&shape, &policy, ReceivedArguments::Text(text.into())).unwrap();
    let sent =
        r#"{"level": "auto", "text": "<none>", "few": [], "inner": {"mode": "auto", "n": 0}}"#;
    let reading = read(sent);
    assert_eq!(
        Value::Object(reading.given),
        serde_json::from_str::<Value>(sent).unwrap()
    );
    assert_eq!(
        read(r#"{"inner": {"mode": "A"}}"#).understood["inner"],
        json!({"mode": "a", "n": 0})
    );
}

#[test]
fn a_blank_text_is_a_text() {
    for text in [r#"{"note": " "}"#, r#"{"note": "\n\t"}"#] {
        assert_eq!(guarded(text).unwrap().given.len(), 1, "{text}");
    }
    for text in [
        r#"{"note": ""}"#,
        r#"{"scene": " "}"#,
        r#"{"note": "null"}"#,
    ] {
        assert!(guarded(text).unwrap().given.is_empty(), "{text}");
    }
    let shape = ArgumentShape::from_json_schema(
        &json!({"required": ["separator"], "properties": {"separator": {"type": "string"}}}),
    )
    .unwrap();
    assert_eq!(
        line(&shape, r#"{"separator": " "}"#).unwrap(),
        json!({"separator": " "})
    );
}

#[test]
fn a_list_has_as_many_items_as_its_schema_says() {
    let shape = ArgumentShape::from_json_schema(&json!({"required": ["at"], "properties": {
        "at": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 3},
        "more": {"type": "array", "items": {"type": "array", "minItems": 1}}}}))
    .unwrap();
    for text in ["{at: [1, 2]}", "{at: [1, 2, 3], more: [[1]]}"] {
        assert!(line(&shape, text).is_ok(), "{text}");
    }
    for (text, code) in [
        ("{at: [1]}", "too_few_items"),
        ("{at: 1}", "too_few_items"),
        ("{at: []}", "missing"),
        ("{at: [1, 2, 3, 4]}", "too_many_items"),
        ("{at: [1, 2], more: [[]]}", "too_few_items"),
    ] {
        let Err(LineReading::Refused { complaints, .. }) = line(&shape, text) else {
            panic!("{text}")
        };
        assert_eq!(complaints[0].code, code, "{text}");
    }
}

#[test]
fn required_fields_are_required_at_any_depth() {
    let shape = ArgumentShape::from_json_schema(&json!({"properties": {"filter": {"type": "object", "required": ["age", "note"], "properties": {
        "age": {"type": "integer"}, "note": {"type": ["string", "null"]}}}}}))
    .unwrap();
    assert!(line(&shape, r#"{"filter": {"age": 1, "note": null}}"#).is_ok());
    for text in [
        r#"{"filter": {"age": null, "note": "x"}}"#,
        r#"{"filter": {"age": "", "note": "x"}}"#,
        r#"{"filter": {"age": 1}}"#,
    ] {
        assert!(line(&shape, text).is_err(), "{text}");
    }
}

#[test]
fn a_value_of_a_list_of_choices_may_be_in_another_case() {
    let shape = ArgumentShape::from_json_schema(&json!({"properties": {
        "kind": {"type": "string", "enum": ["String", "Number", "NONE"]}, "all": {"type": "array", "items": {"enum": ["A b", "c"]}},
        "maybe": {"anyOf": [{"enum": ["Été", "hiver"]}, {"type": "null"}]}}}))
    .unwrap();
    for (text, want) in [
        (r#"{"kind": "string"}"#, json!({"kind": "String"})),
        (r#"{"kind": "NUMBER"}"#, json!({"kind": "Number"})),
        (r#"{"kind": "none"}"#, json!({"kind": "NONE"})),
        (r#"{"all": ["a B", "C"]}"#, json!({"all": ["A b", "c"]})),
        (r#"{"maybe": "ÉTÉ"}"#, json!({"maybe": "Été"})),
    ] {
        assert_eq!(line(&shape, text).unwrap(), want, "{text}");
    }
}
