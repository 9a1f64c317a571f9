//! Hostile texts for a parameter that is data: either exactly that text is taken, or the call is refused.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use super::super::{
    ArgumentShape, ForgivenessProfile, ParameterShape, ReaderPolicy, ReceivedArguments, ToolEffect,
    ValueKind, read,
};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use serde_json::{Map, Value, json};

const BYTES_MAX: usize = 200;

fn shape() -> ArgumentShape {
    ArgumentShape::new(vec![
        ParameterShape::new("scene", ValueKind::name(["default", "koi", "canvas"]))
            .default("default")
            .selects_motion(),
        ParameterShape::new("dry_run", ValueKind::Bool)
            .default(false)
            .cautious(true),
        ParameterShape::new(
            "text",
            ValueKind::Verbatim {
                bytes_max: BYTES_MAX,
            },
        ),
        ParameterShape::new(
            "svg",
            ValueKind::Verbatim {
                bytes_max: BYTES_MAX,
            },
        ),
        ParameterShape::new(
            "size_mm",
            ValueKind::number(1.0, 500.0, super::super::DeclaredUnit::named("mm")),
        ),
        ParameterShape::new(
            "at_mm",
            ValueKind::list(ValueKind::number(
                0.0,
                500.0,
                super::super::DeclaredUnit::named("mm"),
            )),
        ),
    ])
    .with_known_names(["default", "koi", "canvas"])
    .with_tool_names(["stroke"])
}

#[test]
fn data_in_tags_is_not_replaced_by_the_default() {
    for text in [
        r#"<function=stroke><parameter=svg><svg width="9"><path d="M0 0"/></svg></parameter></function>"#,
        r#"<function=stroke><parameter=svg><svg/></parameter></function>"#,
        r#"<invoke name="stroke"><parameter name="svg"><svg viewBox="0 0 9 9"><path d="M0 0"/></svg></parameter></invoke>"#,
        r#"<stroke><svg viewBox="0 0 9 9"><path d="M0 0"/></svg></stroke>"#,
    ] {
        let received = ReceivedArguments::Text(text.to_owned());
        assert_eq!(taken(&received), [None, None], "{text}");
    }
}

#[test]
fn an_item_of_a_list_beside_data_is_mended_as_a_value_is() {
    for at_mm in [json!([10, 20]), json!(["10", "20"])] {
        let sent = json!({"text": "HI", "size_mm": "5", "at_mm": at_mm});
        for given in taken(&ReceivedArguments::Value(sent.clone())) {
            let given = given.unwrap_or_default();
            assert_eq!(given.get("at_mm"), Some(&json!([10, 20])), "{sent}");
        }
    }
}

/// Returns the understood arguments in each profile; `None` for a refusal.
fn taken(received: &ReceivedArguments) -> [Option<Map<String, Value>>; 2] {
    ForgivenessProfile::ALL.map(|profile| {
        let policy = ReaderPolicy::new(ToolEffect::Moves, profile);
        read(&shape(), &policy, received.clone())
            .ok()
            .map(|reading| reading.given)
    })
}

fn value(value: Value) -> [Option<Map<String, Value>>; 2] {
    taken(&ReceivedArguments::Value(value))
}

fn text(text: &str) -> [Option<Map<String, Value>>; 2] {
    taken(&ReceivedArguments::Text(text.to_owned()))
}

#[test]
fn texts_are_taken_verbatim() {
    for words in [
        "hello",
        " hello ",
        "a\nb",
        "true",
        "12",
        "koi",
        "--dry_run",
        "scene=koi",
        "dry run",
        "\"hello\"",
        "it's \\n fine",
        "&amp;",
        "%20",
        "stroke(scene='koi')",
        "```x```",
        "ＡＢＣ",
        "[1] note",
    ] {
        let want = Some(json!({"text": words}).as_object().unwrap().clone());
        let call = json!({"text": words});
        assert_eq!(value(call.clone()), [want.clone(), want.clone()], "{words}");
        assert_eq!(
            text(&call.to_string()),
            [want.clone(), want.clone()],
            "{words}"
        );
        assert_eq!(
            value(json!({"arguments": call})),
            [want.clone(), want],
            "{words}"
        );
    }
}

/// Returns true if a JSON value holds this text under this key, at any depth.
fn holds(within: &Value, key: &str, text: &Value) -> bool {
    match within {
        Value::Object(map) => map
            .iter()
            .any(|(own, inner)| (own == key && inner == text) || holds(inner, key, text)),
        Value::Array(items) => items.iter().any(|inner| holds(inner, key, text)),
        _ => false,
    }
}

fn hostile() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        "\"",
        "'",
        ":",
        ",",
        "=",
        " ",
        "\n",
        "\\",
        "text",
        "svg",
        "scene",
        "koi",
        "dry_run",
        "true",
        "null",
        "[object Object]",
        "hello",
        "```",
        "<svg>",
        "</svg>",
        "--",
        "&",
        "%20",
        "arguments",
        "stroke(",
        ")",
        "\\u0041",
        "é",
        "\u{202e}",
        "…",
    ]);
    prop_oneof![
        prop::collection::vec(pieces, 0..14).prop_map(|pieces| pieces.concat()),
        any::<String>(),
    ]
}

/// Runs a property on hostile texts from a fixed seed.
fn for_hostile_texts(property: impl Fn(String) -> Result<(), TestCaseError>) {
    let config = ProptestConfig {
        cases: 500,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[21; 32]);
    let mut runner = TestRunner::new_with_rng(config, rng);
    runner.run(&hostile(), property).unwrap();
}

#[test]
fn exactly_the_text_is_taken_or_nothing() {
    for_hostile_texts(|words| {
        for key in ["text", "svg"] {
            let call = json!({key: words});
            let only = call.as_object().unwrap().clone();
            let read = value(call.clone())
                .into_iter()
                .chain(text(&call.to_string()));
            for given in read.flatten() {
                prop_assert_eq!(&given, &only);
            }
        }
        Ok(())
    });
}

#[test]
fn a_text_that_is_taken_was_there_as_json() {
    for_hostile_texts(|raw| {
        for given in text(&raw).into_iter().flatten() {
            for key in ["text", "svg"] {
                if let Some(words) = given.get(key) {
                    let strict: Value = serde_json::from_str(&raw).unwrap();
                    prop_assert!(holds(&strict, key, words), "{} of {}", words, raw);
                }
            }
        }
        Ok(())
    });
}
