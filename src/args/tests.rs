//! Tests which calls are accepted, noted and refused: the table of rules row by row, and the forms that callers really use.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::result_large_err,
    reason = "a failing test may panic"
)]

use super::{
    ArgumentReading, ArgumentRefusal, ArgumentShape, DeclaredUnit, ForgivenessProfile, LineReading,
    ParameterShape, ReaderPolicy, ReceivedArguments, RepairClass, ToolEffect, ValueKind, Verdict,
    explain_line, judged, read,
};
use serde_json::{Value, json};

const COLUMNS: [(ToolEffect, ForgivenessProfile); 4] = [
    (ToolEffect::Stops, ForgivenessProfile::Guarded),
    (ToolEffect::Reads, ForgivenessProfile::Guarded),
    (ToolEffect::Moves, ForgivenessProfile::Lenient),
    (ToolEffect::Moves, ForgivenessProfile::Guarded),
];

/// Returns a drawing tool like the node's.
pub(super) fn stroke() -> ArgumentShape {
    ArgumentShape::new(vec![
        ParameterShape::new(
            "scene",
            ValueKind::name(["default", "koi", "star", "tiger", "practice_skin"]),
        )
        .default("default")
        .selects_motion(),
        ParameterShape::new("overlay", ValueKind::name(["crosses", "leaf"])).alias("meta"),
        ParameterShape::new("debug", ValueKind::Bool).default(false),
        ParameterShape::new("fps", ValueKind::integer(1, 120)).default(10),
        ParameterShape::new(
            "lift",
            ValueKind::number(0.001, 0.6, DeclaredUnit::named("m")),
        )
        .default(0.01),
        ParameterShape::new("note", ValueKind::Text),
    ])
    .with_foreign(["num_plys", "calibrate_extrinsics"])
    .with_tool_names(["stroke", "draw"])
    .with_other_tools(["align", "reset", "sense", "stop"])
    .with_known_names([
        "default",
        "koi",
        "star",
        "tiger",
        "practice_skin",
        "crosses",
        "leaf",
    ])
    .needing_choice()
}

fn run(
    effect: ToolEffect,
    profile: ForgivenessProfile,
    text: &str,
) -> Result<ArgumentReading, Box<ArgumentRefusal>> {
    read(
        &stroke(),
        &ReaderPolicy::new(effect, profile),
        ReceivedArguments::Text(text.into()),
    )
}

pub(super) fn guarded(text: &str) -> Result<ArgumentReading, Box<ArgumentRefusal>> {
    run(ToolEffect::Moves, ForgivenessProfile::Guarded, text)
}

/// Returns one letter per column of the table: `.` runs, `!` runs after a loss, `p` is previewed, `r` is refused.
fn columns(text: &str) -> String {
    let letter = |(effect, profile): &(ToolEffect, ForgivenessProfile)| {
        let policy = ReaderPolicy::new(*effect, *profile);
        match judged(&stroke(), &policy, ReceivedArguments::Text(text.into())) {
            Verdict::Understood(understood) if understood.reading().loss == RepairClass::L2 => '!',
            Verdict::Understood(_) => '.',
            Verdict::Preview(_) => 'p',
            Verdict::Refused(_) => 'r',
        }
    };
    COLUMNS.iter().map(letter).collect()
}

pub(super) fn check(rows: &[(&str, &str)]) {
    for (text, want) in rows {
        assert_eq!(
            columns(text),
            *want,
            "{text}: {:?}",
            guarded(text).map_err(|refusal| refusal.to_string())
        );
    }
}

#[test]
fn no_arguments_mean_defaults() {
    for text in [
        "",
        "  ",
        "null",
        "None",
        "undefined",
        "{}",
        "[]",
        "\"null\"",
        "\"None\"",
        "\"undefined\"",
        "''",
        "\"\"",
        "\"{}\"",
        "'{}'",
        "nil",
        "None.",
        "[object]",
    ] {
        check(&[(text, "....")]);
        assert_eq!(
            guarded(text).unwrap().understood["scene"],
            "default",
            "{text}"
        );
        assert!(guarded(text).unwrap().given.is_empty(), "{text}");
    }
    assert!(
        read(
            &stroke(),
            &ReaderPolicy::new(ToolEffect::Moves, ForgivenessProfile::Guarded),
            ReceivedArguments::Absent
        )
        .is_ok()
    );
}

#[test]
fn empty_optional_values_are_defaults() {
    for value in ["\"\"", "[]", "{}", "\"null\"", "\"None\"", "null", "None"] {
        for name in ["scene", "overlay", "debug", "fps", "lift", "note"] {
            let reading = guarded(&format!("{{\"{name}\": {value}}}")).unwrap();
            assert!(reading.given.is_empty(), "{name} {value}");
            assert_eq!(
                reading
                    .repairs
                    .iter()
                    .filter(|repair| repair.code == "empty")
                    .map(|repair| repair.class)
                    .collect::<Vec<_>>(),
                [RepairClass::L1],
                "{name} {value}"
            );
        }
    }
}

#[test]
fn one_value_for_a_list_is_one_unless_it_may_be_several() {
    let shape = ArgumentShape::new(vec![ParameterShape::new(
        "tags",
        ValueKind::list(ValueKind::Text),
    )]);
    let read = |text: &str| line(&shape, text).ok();
    assert_eq!(read("{tags: 'a'}"), Some(json!({"tags": ["a"]})));
    assert_eq!(
        read("{tags: '[\"a\", \"b\"]'}"),
        Some(json!({"tags": ["a", "b"]}))
    );
    assert_eq!(read("{tags: 'a, b'}"), None);
}

#[test]
fn wrappers_around_a_call_are_removed_and_its_tool_is_checked() {
    let json = r#"{"scene":"koi"}"#;
    for text in [
        format!("<think>draw {{it}}</think>{json}"),
        format!("Thought: {{x}}\nAction: Stroke\nAction Input: {json}\nObservation: ok"),
        format!("<function name=\"stroke\">{json}</function>"),
        format!(
            "<use_mcp_tool><server_name>arm</server_name><tool_name>stroke</tool_name><arguments>{json}</arguments></use_mcp_tool>"
        ),
        "[stroke(scene=\"koi\")]".into(),
        "print(default_api.stroke(scene='koi'))".into(),
        "<|tool_call_start|>[draw(scene=\"koi\")]<|tool_call_end|>".into(),
        "<start_function_call>call:stroke{scene:<escape>koi<escape>}<end_function_call>".into(),
        "stroke --scene koi".into(),
        "stroke scene=koi".into(),
        "name: stroke\narguments:\n  scene: koi".into(),
        "dict([('scene', 'koi')])".into(),
        "<stroke scene=\"koi\"></stroke>".into(),
        "{\"scene (string)\": \"\\\"koi\\\"\"}".into(),
    ] {
        assert_eq!(
            Value::Object(guarded(&text).unwrap().given),
            json!({"scene": "koi"}),
            "{text}"
        );
        let other = text
            .replace("stroke", "align")
            .replace("Stroke", "align")
            .replace("draw(", "align(");
        if other != text {
            check(&[(&other, "!!rr")]);
        }
    }
}

#[test]
fn stand_ins_of_every_kind_are_recognised() {
    for value in [
        "$scene",
        "[scene name]",
        "__SCENE__",
        "YOUR_SCENE",
        "insert scene here",
        "%s",
        "%(scene)s",
        "<<scene>>",
        "{{{scene}}}",
        "#{scene}",
        "<%= scene %>",
        "<scene: the name>",
        "<|scene|>",
        "$(scene)",
        "@{scene}",
    ] {
        check(&[(&json!({"scene": value}).to_string(), "!!rr")]);
    }
    check(&[
        (r#"{"key": "value"}"#, "!!rr"),
        (r#"{"<key>": "koi"}"#, "!!rr"),
        (r#"{"style": "<style>"}"#, "!!rr"),
        (r#"{"scene": "string"}"#, "!!rr"),
        (r#"{"note": "string (optional)"}"#, "!!rr"),
        (r#"{"required": ["scene"]}"#, "!!rr"),
        (r#"{"note": "function"}"#, "...."),
        ("[TOOL_CALLS]", "!!rr"),
        ("```", "!!rr"),
    ]);
    let shape = ArgumentShape::new(vec![ParameterShape::new("api_key", ValueKind::Text)]);
    assert!(line(&shape, r#"{"api_key": "YOUR_API_KEY"}"#).is_ok());
}

#[test]
fn a_decimal_comma_is_called_one() {
    let refusal = guarded(r#"{"lift": "0,5"}"#).unwrap_err();
    assert!(refusal.to_string().contains("decimal comma"), "{refusal}");
}

#[test]
fn contradictions_never_move() {
    for text in [
        r#"{"scene": "ko"#,
        r#"{"scene": "koi", "fps": 1"#,
        r#"{"scene":"koi"#,
        r#"{"scene": "koi", "debug": tr"#,
        "{",
        "[{\"scene\":\"koi\"}",
        "scene=\"koi\",",
        "stroke(scene=\"koi\", ",
        "<scene>koi",
        "```json\n{\"scene\": \"koi\",\n",
        r#"{"scene":"koi"} {"scene":"star"}"#,
        r#"{"scene":"koi"}{"scene":"koi" }"#,
        r#"[{"scene":"koi"},{"scene":"star"}]"#,
        r#"{"scene":"koi","scene":"star"}"#,
        r#"{"scene":"koi","scene_name":"star"}"#,
        r#"{"scene": <scene-name>}"#,
        r#"{"scene": "<scene-name>"}"#,
        r#"{"scene": "{{scene}}"}"#,
        r#"{"note": "${NOTE}"}"#,
        r#"{"scene": ...}"#,
        "<function-name>",
        "{scene}",
        "...",
        r#"{"scene": {"type": "string"}}"#,
        r#"{"type": "object", "properties": {"scene": "koi"}}"#,
        r#"{"type":"function","description":"Draws","parameters":{"scene":"koi"}}"#,
        r#"{"debug": {"description": "whether"}}"#,
        r#"{"properties": {"scene": {"type": "string", "default": "koi"}}}"#,
        r#"{"scene": , "debug": true}"#,
        r#"{"scene": "koi" star}"#,
        r#"2, "parameters": {"fps": 6}}"#,
        r#"{"scene":"koi"}, "fps": 5"#,
    ] {
        check(&[(text, "!!rr")]);
        let reading = run(ToolEffect::Reads, ForgivenessProfile::Guarded, text).unwrap();
        assert_eq!(reading.understood["scene"], "default", "{text}");
    }
}

#[test]
fn values_that_cannot_be_placed_are_refused() {
    for text in [
        r#"{"scene": "tigger"}"#,
        r#"{"scene": "koi.toml"}"#,
        r#"{"scene": 5}"#,
        r#"{"scene": ["koi", "star"]}"#,
        r#"{"scene": true}"#,
        r#"{"overlay": "lea"}"#,
        r#"{"debug": "maybe"}"#,
        r#"{"debug": "not true"}"#,
        r#"{"debug": 2}"#,
        r#"{"debug": 1.5}"#,
        r#"{"debug": "truthy"}"#,
        r#"{"fps": 0}"#,
        r#"{"fps": 121}"#,
        r#"{"fps": 2.5}"#,
        r#"{"fps": "High"}"#,
        r#"{"fps": true}"#,
        r#"{"fps": NaN}"#,
        r#"{"fps": Infinity}"#,
        r#"{"fps": 1e999}"#,
        r#"{"fps": "1/5"}"#,
        r#"{"fps": "5, 6"}"#,
        r#"{"fps": 010}"#,
        r#"{"fps": "5mm"}"#,
        r#"{"fps": 123456789012345678901234567890}"#,
        r#"{"fps": {"a": 1}}"#,
        r#"{"lift": 80}"#,
        r#"{"lift": "5 kg"}"#,
        r#"{"lift": "5 s"}"#,
        r#"{"lift": "80m"}"#,
        r#"{"lift": -1}"#,
        r#"{"lift": "5,5 mm"}"#,
        r#"{"fps": "1.000"}"#,
        r#"{"lift": "1.000 mm"}"#,
        r#"{"lift": "25.000mm"}"#,
        r#"{"lift": "１.０００ mm"}"#,
        r#"{"lift": "1.000"}"#,
        "lift=25.000mm",
        r#"{"fps": 4.9999999999999999999}"#,
        r#"{"fps": "4.9999999999999999999"}"#,
        "{fps: 4.9999999999999999999}",
        r#"{"note": {"a": 1}}"#,
    ] {
        check(&[(text, ".rrr".replace('.', "!").as_str())]);
    }
}

#[test]
fn units_are_converted_and_echoed() {
    for (text, want) in [
        ("5mm", 0.005),
        ("0.5\"", 0.0127),
        ("3 cm", 0.03),
        ("0.02", 0.02),
        ("20 millimetres", 0.02),
        ("1in", 0.0254),
    ] {
        let reading = guarded(&json!({"lift": text}).to_string()).unwrap();
        assert_eq!(reading.given["lift"], json!(want), "{text}");
        assert_eq!(reading.loss, RepairClass::L0);
    }
    let reading = guarded(r#"{"lift": "5mm"}"#).unwrap();
    assert_eq!(
        (
            reading.repairs[0].got.as_str(),
            reading.repairs[0].used.as_str()
        ),
        ("5mm", "0.005 m")
    );
}

#[test]
fn a_number_that_fits_another_unit_is_refused_with_that_suggestion() {
    let refusal = guarded(r#"{"lift": 80}"#).unwrap_err();
    assert_eq!(refusal.complaints[0].code, "other_unit");
    assert!(
        refusal.complaints[0].valid.contains(&"80mm".to_owned()),
        "{refusal}"
    );
    assert!(refusal.to_string().contains("0.08 m"), "{refusal}");
    assert!(
        guarded(&format!(
            "{{\"lift\": \"{}\"}}",
            refusal.complaints[0].valid[0]
        ))
        .is_ok()
    );
}

#[test]
fn refusals_print_short_numbers() {
    for (text, expected) in [
        (r#"{"lift": 0.7000000000000001}"#, "0.7 m is out of range"),
        (r#"{"lift": -0.0}"#, "0 m is out of range"),
        (
            r#"{"lift": 0.6000000000000001}"#,
            "0.6000000000000001 m is out of range",
        ),
    ] {
        let words = guarded(text).unwrap_err().to_string();
        assert!(words.contains(expected), "{text}: {words}");
    }
}

#[test]
fn a_stop_is_never_refused() {
    let shape = ArgumentShape::new(vec![
        ParameterShape::new("node", ValueKind::name(["left", "right"])).required(),
    ]);
    for profile in ForgivenessProfile::ALL {
        for text in [
            "",
            "stop!!!",
            "{\"node\": \"midle\"}",
            "{\"node\": \"left\", \"node\": \"right\"}",
            "{",
            "[object Object]",
            "{\"a\": {\"type\": \"string\"}}",
            "\u{0}\u{1}",
            "[[[[",
        ] {
            assert!(
                read(
                    &shape,
                    &ReaderPolicy::new(ToolEffect::Stops, profile),
                    ReceivedArguments::Text(text.into())
                )
                .is_ok(),
                "{text}"
            );
        }
    }
    let reading = read(
        &shape,
        &ReaderPolicy::new(ToolEffect::Stops, ForgivenessProfile::Guarded),
        ReceivedArguments::Text("{node: 'LEFT'}".into()),
    )
    .unwrap();
    assert_eq!(reading.understood["node"], "left");
}

#[test]
fn text_parameters_are_not_looked_into() {
    for note in [
        "5",
        "{\"a\": 1}",
        "true",
        "[1]",
        "1_000",
        "a, b: c",
        "it's \"so\"",
        "// no",
        "```x```",
    ] {
        let reading = guarded(&json!({"note": note}).to_string()).unwrap();
        assert_eq!(reading.given["note"], note);
        assert!(reading.repairs.is_empty(), "{note}");
    }
}

/// Returns a schema of a kind that models misuse.
fn alerts() -> ArgumentShape {
    ArgumentShape::from_json_schema(
        &json!({"type": "object", "required": ["title"], "properties": {
            "title": {"type": "string"},
            "id": {"type": "string"}, "owner_id": {"type": ["string", "null"]},
            "priority": {"type": "integer", "minimum": 1, "maximum": 5},
            "threshold_operator": {"type": "string", "enum": [">", ">=", "<", "<=", "=="]},
            "score_type": {"type": "string", "enum": ["numeric", "categorical", "boolean"]},
            "categories": {"type": "array", "items": {"type": "string"}},
        }}),
    )
    .unwrap()
}

pub(super) fn line(shape: &ArgumentShape, text: &str) -> Result<Value, LineReading> {
    match explain_line(shape, text) {
        LineReading::Understood { understood, .. } => Ok(Value::Object(understood)),
        refused @ LineReading::Refused { .. } => Err(refused),
    }
}

#[test]
fn empty_values_of_a_foreign_schema_read_as_absent() {
    for extra in [
        "\"priority\": \"\"",
        "\"categories\": []",
        "\"id\": \"\"",
        "\"owner_id\": null",
        "\"id\": null",
        "\"owner_id\": \"\"",
        "\"unknown\": {\"a\": 1}",
        "\"depth\": 4",
        "\"threshold_operator\": \"\"",
    ] {
        assert_eq!(
            line(&alerts(), &format!("{{\"title\": \"t\", {extra}}}")).unwrap(),
            json!({"title": "t"}),
            "{extra}"
        );
    }
}

#[test]
fn one_value_for_a_point_is_answered_with_what_a_point_is() {
    let point = json!({"type": "array", "items": {"type": "number"}, "unit": "mm", "minItems": 2, "maxItems": 2});
    let shape = ArgumentShape::from_json_schema(&json!({"properties": {"at": point}})).unwrap();
    for sent in [
        json!("here"),
        json!(5),
        json!("5 mm"),
        json!([5]),
        json!(true),
    ] {
        let refused = line(&shape, &json!({"at": sent}).to_string()).unwrap_err();
        let LineReading::Refused { complaints, .. } = refused else {
            panic!("{sent}")
        };
        let expected = &complaints[0].expected;
        assert!(
            expected.contains("list") && expected.contains('2'),
            "{sent}: {expected}"
        );
    }
}

#[test]
fn declared_synonyms_resolve() {
    let shape = ArgumentShape::from_json_schema(&json!({"properties": {"threshold_operator": {"type": "string", "enum": [">", ">=", "<", "<="],
        "x-synonyms": {"gte": ">=", "lte": "<=", "gt": ">", "lt": "<"}}}})).unwrap();
    for (word, want) in [("gte", ">="), ("GTE", ">="), ("lt", "<"), (">=", ">=")] {
        assert_eq!(
            line(&shape, &json!({"threshold_operator": word}).to_string()).unwrap(),
            json!({"threshold_operator": want})
        );
    }
    assert!(line(&shape, "{\"threshold_operator\": \"ge\"}").is_err());
}

#[test]
fn nested_schemas_are_judged_through() {
    let shape = ArgumentShape::from_json_schema(&json!({"properties": {"filter": {"type": "object", "required": ["age"], "properties": {"age": {"type": "integer"}, "on": {"type": "boolean"}}},
        "points": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}}}})).unwrap();
    let read = |text: &str| line(&shape, text).ok();
    assert_eq!(
        read("{filter: {age: '5', on: 'yes'}}"),
        Some(json!({"filter": {"age": 5, "on": true}}))
    );
    assert_eq!(
        read(r#"{"filter": "{\"age\": 5}"}"#),
        Some(json!({"filter": {"age": 5}}))
    );
    assert_eq!(
        read("{points: [(1, 2), [3, 4.5]]}"),
        Some(json!({"points": [[1, 2], [3, 4.5]]}))
    );
    assert_eq!(
        read(r#"{"points": "[[1,2]]"}"#),
        Some(json!({"points": [[1, 2]]}))
    );
    for text in [
        "{filter: {age: 'old'}}",
        "{filter: {on: true}}",
        "{points: [[1, 'x']]}",
        r#"{"filter": {"age": 1, "age": 2}}"#,
        r#"{"points": "[[1,2"}"#,
    ] {
        assert_eq!(read(text), None, "{text}");
    }
}

#[test]
fn an_empty_value_is_empty_in_a_list_and_in_a_text() {
    for text in [
        "{\"overlay\": \"[]\"}",
        "{\"fps\": \"{}\", \"scene\": \" [] \"}",
        "{\"debug\": [\"\"], \"fps\": [null]}",
    ] {
        assert!(guarded(text).unwrap().given.is_empty(), "{text}");
    }
    assert_eq!(guarded("{\"note\": \"[]\"}").unwrap().given["note"], "[]");
}

#[test]
fn an_option_without_a_value_is_true_and_nothing_else() {
    check(&[
        ("--scene koi --debug", "...."),
        ("stroke --debug --scene koi", "...."),
        ("--note --scene koi", "!rrr"),
        ("--scene", "!rrr"),
        ("--fps --scene koi", "!rrr"),
    ]);
}

#[test]
fn a_number_that_lost_digits_is_not_a_text() {
    check(&[
        ("{\"note\": 12}", "...."),
        ("{\"note\": 200000000000325307037}", "!rrr"),
        ("{\"note\": \"200000000000325307037\"}", "...."),
    ]);
}

#[test]
fn shown_values_are_cut_and_escaped() {
    let refusal =
        guarded(&json!({"scene": "x\u{1b}[2J\u{202e}".to_owned() + &"y".repeat(500)}).to_string())
            .unwrap_err();
    let shown = &refusal.complaints[0].received;
    assert!(
        shown.chars().count() < 120 && !shown.contains(['\u{1b}', '\u{202e}']),
        "{shown}"
    );
}
