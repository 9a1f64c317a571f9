//! Properties of the reader: it never panics, never invents a value, and reads any object back from any sloppy rendering.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use super::{
    ArgumentShape, ForgivenessProfile, LineReading, ParameterShape, ReaderPolicy,
    ReceivedArguments, ToolEffect, ValueKind, Verdict, envelope, explain_line, judged, read,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn shape() -> ArgumentShape {
    ArgumentShape::new(vec![
        ParameterShape::new("scene", ValueKind::name(["default", "koi", "star"]))
            .default("default")
            .selects_motion(),
        ParameterShape::new("debug", ValueKind::Bool).default(false),
        ParameterShape::new("fps", ValueKind::integer(1, 120)).default(10),
        ParameterShape::new(
            "speed_m_s",
            ValueKind::number(0.0, 1.0, super::DeclaredUnit::named("m/s")),
        ),
        ParameterShape::new("note", ValueKind::Text),
        ParameterShape::new("tags", ValueKind::list(ValueKind::Text)),
    ])
    .with_tool_names(["stroke"])
}

const POLICIES: [ReaderPolicy; 4] = [
    ReaderPolicy::new(ToolEffect::Stops, ForgivenessProfile::Guarded),
    ReaderPolicy::new(ToolEffect::Reads, ForgivenessProfile::Lenient),
    ReaderPolicy::new(ToolEffect::Moves, ForgivenessProfile::Lenient),
    ReaderPolicy::new(ToolEffect::Moves, ForgivenessProfile::Guarded),
];

/// Returns the letters and digits in lower case: the content of a text, regardless of its form.
fn letters_in(text: &str) -> String {
    text.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

/// Returns whether the text contains this value: every word of it, or its number.
fn is_stated(text: &str, value: &Value) -> bool {
    match value {
        Value::String(word) => letters_in(text).contains(&letters_in(word)),
        Value::Array(items) => items.iter().all(|item| is_stated(text, item)),
        Value::Bool(true) if text.contains("--") => true,
        Value::Bool(_) => ["true", "false", "yes", "no", "on", "off", "0", "1"]
            .iter()
            .any(|word| letters_in(text).contains(word)),
        other => text.chars().any(|c| c.is_ascii_digit()) || other.is_null(),
    }
}

/// Pieces that calls and damaged calls are made of.
fn fragments() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        "\"",
        "'",
        "“",
        "”",
        ":",
        ",",
        "=",
        "=>",
        " ",
        "\n",
        "scene",
        "debug",
        "fps",
        "note",
        "koi",
        "star",
        "tigger",
        "true",
        "None",
        "5",
        "0x10",
        "05",
        "1e3",
        "NaN",
        "<scene>",
        "</scene>",
        "<tool_call>",
        "```json\n",
        "```",
        "stroke(",
        "--",
        "&",
        "%7B",
        "\\",
        "\\\"",
        "//",
        "/*",
        "*/",
        "#",
        "u'",
        "{}",
        "[object Object]",
        "arguments",
        "type",
        "properties",
        "depth",
        "5mm",
        "null",
        "\"scene\":\"koi\"",
        "{\"fps\":5}",
        "'debug': True",
        "é",
        "\u{0}",
    ]);
    prop::collection::vec(pieces, 0..24).prop_map(|pieces| pieces.concat())
}

fn plain_text() -> impl Strategy<Value = String> {
    "[a-zA-Z][a-zA-Z0-9 .,;:!?_'\\-/(){}\\[\\]éß漢]{0,24}[a-zA-Z0-9]".prop_filter(
        "words for nothing and stand-ins are refused on purpose",
        |text| !super::parsed_value::is_nothing(text) && !super::heuristics::is_template(text),
    )
}

fn object() -> impl Strategy<Value = Map<String, Value>> {
    let fields = (
        prop::option::of(prop::sample::select(vec!["default", "koi", "star"])),
        prop::option::of(any::<bool>()),
        prop::option::of(1_i64..=120),
        prop::option::of((0_u32..=1000).prop_map(|n| f64::from(n) / 1000.0)),
        prop::option::of(plain_text()),
        prop::option::of(prop::collection::vec(plain_text(), 1..4)),
    );
    fields.prop_map(|(scene, debug, fps, speed, note, tags)| {
        let fields = [
            ("scene", json!(scene)),
            ("debug", json!(debug)),
            ("fps", json!(fps)),
            ("speed_m_s", json!(speed)),
            ("note", json!(note)),
            ("tags", json!(tags)),
        ];
        fields
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key.to_owned(), value))
            .collect()
    })
}

/// Returns a value as Python prints it, in the given quotes.
fn python(value: &Value, quote: char) -> String {
    match value {
        Value::String(text) => format!(
            "{quote}{}{quote}",
            text.replace('\\', "\\\\")
                .replace(quote, &format!("\\{quote}"))
        ),
        Value::Bool(value) => if *value { "True" } else { "False" }.into(),
        Value::Array(items) => format!(
            "[{}]",
            items
                .iter()
                .map(|item| python(item, quote))
                .collect::<Vec<_>>()
                .join(", ")
        ),
        other => other.to_string(),
    }
}

fn pairs(
    object: &Map<String, Value>,
    between: &str,
    separator: &str,
    key_quote: &str,
    value: impl Fn(&Value) -> String,
) -> String {
    object
        .iter()
        .map(|(key, v)| format!("{key_quote}{key}{key_quote}{separator}{}", value(v)))
        .collect::<Vec<_>>()
        .join(between)
}

/// Returns the object in every rendering.
pub(super) fn renderings(object: &Map<String, Value>) -> Vec<String> {
    let strict = Value::Object(object.clone()).to_string();
    let json = |value: &Value| value.to_string();
    let mut all = vec![
        strict.clone(),
        json!(strict).to_string(),
        json!(json!(strict).to_string()).to_string(),
        serde_json::to_string_pretty(object).unwrap(),
        format!("Here you are: {strict}\nLet me know."),
        format!("```json\n{strict}\n```"),
        format!("<tool_call>{strict}</tool_call>"),
        format!("{{\"name\": \"stroke\", \"arguments\": {strict}}}"),
        format!("{{\"kwargs\": {}}}", json!(strict)),
        format!("[{strict}]"),
        format!(
            "{{{}}}",
            pairs(object, ", ", ": ", "'", |v| python(v, '\''))
        ),
        format!("{{{},}}", pairs(object, ", ", ": ", "\"", json)),
        format!("{{{}}}", pairs(object, ", ", ": ", "", json)),
        format!("{{{}}}", pairs(object, " ", ": ", "\"", json)),
        format!("{{{}}}", pairs(object, ", ", " => ", "\"", json)),
        format!(
            "{{ // note\n{} /* end */ }}",
            pairs(object, ",\n", ": ", "\"", json)
        ),
        format!("{strict}}}"),
    ];
    all.extend(wrapped(&strict));
    if !object.is_empty() {
        all.extend(bracketless(object));
        all.push(format!(
            "stroke({})",
            pairs(object, ", ", "=", "", |v| python(v, '\''))
        ));
    }
    all
}

/// Returns the object in the wrappers that models, templates, programs and pages put around it.
fn wrapped(strict: &str) -> Vec<String> {
    let quoted = json!(strict).to_string();
    let entities = strict
        .replace('&', "&amp;")
        .replace('"', "&quot;")
        .replace('<', "&lt;");
    let mut all = vec![
        entities,
        format!("<think>what about \"{{this}}\"?</think>\n<tool_call>\n{strict}\n</tool_call>"),
        format!("<|python_tag|>{strict}<|eom_id|>"),
        format!("[TOOL_CALLS][{{\"name\":\"stroke\",\"arguments\":{strict}}}]"),
        format!("[TOOL_REQUEST]{strict}[END_TOOL_REQUEST]"),
        format!("functools[{strict}]"),
        format!(
            "Thought: I need {{this}}.\nAction: stroke\nAction Input: {strict}\nObservation: done"
        ),
        format!("const args = {strict};"),
        format!("print(api.stroke(**{strict}))"),
        format!("[stroke({strict})]"),
        format!("JSON.parse({quoted})"),
        format!("<function=stroke>{strict}</function>"),
        format!(
            "{{\"tool_calls\":[{{\"function\":{{\"name\":\"stroke\",\"arguments\":{quoted}}}}}]}}"
        ),
        format!("\u{feff}```json\n{quoted}\n```\n"),
    ];
    all.extend(
        quoted
            .get(1..quoted.len() - 1)
            .filter(|_| strict != "{}")
            .map(str::to_owned),
    );
    all
}

/// Renderings without an end mark, so that a cut cannot be noticed.
fn bracketless(object: &Map<String, Value>) -> Vec<String> {
    let json = |value: &Value| value.to_string();
    let tags = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    let is_plain = object
        .values()
        .all(|value| !value.is_string() && !value.is_array());
    let mut all = vec![
        pairs(object, ", ", "=", "", |v| python(v, '"')),
        pairs(object, "\n", ": ", "", json),
        format!("arguments:\n  {}", pairs(object, "\n  ", ": ", "", json)),
        format!("1. {}", pairs(object, "\n2. ", ": ", "", json)),
    ];
    if is_plain {
        let tag = |(key, value): (&String, &Value)| format!("<{key}>{}</{key}>", tags(value));
        all.push(object.iter().map(tag).collect());
        all.push(format!("stroke --{}", pairs(object, " --", "=", "", json)));
        all.push(pairs(object, "&", "=", "", json));
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn never_panics_and_never_invents(text in prop_oneof![fragments(), ".{0,60}", "[\\[\\]{}\"':,=a0 ]{0,40}"]) {
        let shape = shape();
        for policy in &POLICIES {
            let outcome = read(&shape, policy, ReceivedArguments::Text(text.clone()));
            prop_assert!(policy.effect != ToolEffect::Stops || outcome.is_ok());
            let Ok(reading) = outcome else { continue };
            for (name, value) in &reading.understood {
                let default = shape.params.iter().find(|param| param.name == *name).and_then(|param| param.default.as_ref());
                prop_assert!(default == Some(value) || is_stated(&text, value), "{name}={value} from {text:?}");
            }
        }
        let _ = explain_line(&shape, &text);
        let _ = envelope::read(text.as_bytes());
    }

    #[test]
    fn a_correction_is_always_accepted(text in fragments()) {
        if let LineReading::Refused { corrected: Some(corrected), .. } = explain_line(&shape(), &text) {
            let again = explain_line(&shape(), &Value::Object(corrected.clone()).to_string());
            let is_accepted = matches!(again, LineReading::Understood { .. });
            prop_assert!(is_accepted, "{text:?}: {corrected:?}");
        }
    }

    #[test]
    fn any_object_comes_back_from_any_rendering(object in object()) {
        let policy = ReaderPolicy::new(ToolEffect::Moves, ForgivenessProfile::Guarded);
        for text in renderings(&object) {
            match read(&shape(), &policy, ReceivedArguments::Text(text.clone())) {
                Ok(reading) => prop_assert_eq!(Value::Object(reading.given), Value::Object(object.clone()), "{}", text),
                Err(refusal) => prop_assert!(false, "{text}: {refusal}"),
            }
        }
    }

    #[test]
    fn a_text_cut_anywhere_never_moves(object in object(), at in any::<prop::sample::Index>()) {
        let policy = ReaderPolicy::new(ToolEffect::Moves, ForgivenessProfile::Guarded);
        for text in [Value::Object(object.clone()).to_string(), format!("{{{}}}", pairs(&object, ", ", ": ", "'", |v| python(v, '\'')))] {
            let cut: String = text.chars().take(1 + at.index(text.chars().count() - 1)).collect();
            if cut.len() < text.len() {
                prop_assert!(read(&shape(), &policy, ReceivedArguments::Text(cut.clone())).is_err(), "{cut}");
            }
        }
    }

    #[test]
    fn a_text_cut_anywhere_is_read_completely_or_not_at_all(object in object(), at in any::<prop::sample::Index>()) {
        let policy = ReaderPolicy::new(ToolEffect::Moves, ForgivenessProfile::Guarded);
        let marked = renderings(&object).into_iter().filter(|text| {
            object.is_empty() || !bracketless(&object).contains(text)
        });
        for text in marked.filter(|text| text.trim().len() > 1) {
            let cut: String = text.chars().take(1 + at.index(text.chars().count() - 1)).collect();
            if cut.trim_matches('\u{feff}').is_empty() {
                continue;
            }
            if let Verdict::Understood(understood) = judged(&shape(), &policy, ReceivedArguments::Text(cut.clone())) {
                prop_assert_eq!(Value::Object(understood.reading().given.clone()), Value::Object(object.clone()), "{} of {}", cut, text);
            }
        }
    }

    #[test]
    fn envelopes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = envelope::read(&bytes);
    }
}
