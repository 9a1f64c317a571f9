//! Properties that hold of every text that reaches the reader, whoever made it.

use serde_json::{Map, Value};
use std::sync::LazyLock;
use steadyhand::args::{
    ArgumentReading, ArgumentShape, DeclaredUnit, ForgivenessProfile, ParameterShape, ReaderPolicy,
    ReceivedArguments, ToolEffect, ValueKind, read,
};

/// A drawing tool with a parameter of every kind.
pub fn shape() -> &'static ArgumentShape {
    static SHAPE: LazyLock<ArgumentShape> = LazyLock::new(drawing);
    &SHAPE
}

fn drawing() -> ArgumentShape {
    ArgumentShape::new(vec![
        ParameterShape::new("scene", ValueKind::name(["default", "koi", "star"]))
            .default("default"),
        ParameterShape::new("overlay", ValueKind::name(["crosses", "leaf"])).alias("meta"),
        ParameterShape::new("debug", ValueKind::Bool).default(false),
        ParameterShape::new("fps", ValueKind::integer(1, 120)).default(10),
        ParameterShape::new(
            "lift",
            ValueKind::number(0.001, 0.6, DeclaredUnit::named("m")),
        )
        .default(0.01),
        ParameterShape::new("mode", ValueKind::choice(["fast", "fine"])),
        ParameterShape::new("note", ValueKind::Text),
        ParameterShape::new("tags", ValueKind::list(ValueKind::Text)),
    ])
    .with_foreign(["num_plys"])
    .with_tool_names(["stroke", "draw"])
}

/// Reads what was received in every effect and profile and checks what must hold of the answers. `text` is all that was said.
pub fn judge(received: &ReceivedArguments, text: &str) {
    let shape = shape();
    let as_a = |effect, profile| read(shape, &ReaderPolicy::new(effect, profile), received.clone());
    assert!(
        as_a(ToolEffect::Stops, ForgivenessProfile::Guarded).is_ok(),
        "a stop was refused"
    );
    let _ = as_a(ToolEffect::Reads, ForgivenessProfile::Lenient);
    let guarded = as_a(ToolEffect::Moves, ForgivenessProfile::Guarded);
    let lenient = as_a(ToolEffect::Moves, ForgivenessProfile::Lenient);
    match guarded {
        Ok(reading) => {
            let looser = lenient.expect("what is accepted guarded is accepted lenient");
            assert_eq!(reading.understood, looser.understood);
            moves_as_understood(shape, &reading, text);
        }
        Err(_) => {
            if let Ok(reading) = lenient {
                moves_as_understood(shape, &reading, text);
            }
        }
    }
}

/// Nothing moves except what `understood` says, and `understood` says only defaults and what was said.
fn moves_as_understood(shape: &ArgumentShape, reading: &ArgumentReading, text: &str) {
    for (name, value) in &reading.understood {
        let param = shape.params.iter().find(|param| param.name == *name);
        let default = param.and_then(|param| param.default.as_ref());
        let given = reading.given.get(name);
        assert!(
            given == Some(value) || (given.is_none() && default == Some(value)),
            "{name}={value} out of nothing"
        );
        assert!(
            given.is_none() || is_said(text, value),
            "{name}={value} is not in {text:?}"
        );
    }
    assert!(
        reading
            .given
            .keys()
            .all(|key| reading.understood.contains_key(key))
    );
    let policy = ReaderPolicy::new(ToolEffect::Moves, ForgivenessProfile::Guarded);
    let arguments = Value::Object(reading.given.clone());
    let again = read(shape, &policy, ReceivedArguments::Value(arguments))
        .expect("what was understood can be said again");
    assert_eq!(
        again.understood, reading.understood,
        "said again it means something else"
    );
}

/// Letters and digits in lower case: what a text says, whatever its form. `<escape>` is one model's quote.
fn said(text: &str) -> String {
    text.replace("<escape>", "")
        .chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

/// Returns whether the text says this value. Encoded texts say it in a way that only a reader can tell.
fn is_said(text: &str, value: &Value) -> bool {
    let is_encoded = ["\\", "%", "&"].iter().any(|mark| text.contains(mark));
    match value {
        _ if is_encoded => true,
        Value::String(word) => said(text).contains(&said(word)) || is_number_in(text, word),
        Value::Array(items) => items.iter().all(|item| is_said(text, item)),
        Value::Number(_) => text.chars().any(char::is_numeric),
        Value::Bool(value) => {
            let words: &[&str] = if *value {
                &["true", "yes", "on", "1", "--"]
            } else {
                &["false", "no", "off", "0"]
            };
            let lower = text.to_lowercase();
            words.iter().any(|word| lower.contains(word))
        }
        _ => true,
    }
}

/// Returns whether a text has this number in another spelling, as `4e00` is 4.0; the JSON library may read the last digit
/// otherwise.
fn is_number_in(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+');
    let numerals = text.split(|c| !is_part(c)).map(str::parse::<f64>);
    let is_same = |a: f64, b: f64| (a - b).abs() <= a.abs() * 1e-15;
    let mut numerals = numerals.filter_map(Result::ok);
    word.parse::<f64>()
        .is_ok_and(|word| numerals.any(|numeral| is_same(numeral, word)))
}

/// The arguments of each call in a message or a list of messages.
pub fn calls(message: &Value) -> Vec<Option<&Value>> {
    let messages = message
        .as_array()
        .map_or(std::slice::from_ref(message), Vec::as_slice);
    let is_call = |message: &&Value| {
        message
            .get("method")
            .is_some_and(|method| method == "tools/call")
    };
    messages.iter().filter(is_call).map(arguments_of).collect()
}

fn arguments_of(message: &Value) -> Option<&Value> {
    message
        .get("params")
        .and_then(Value::as_object)
        .and_then(|params: &Map<String, Value>| params.get("arguments"))
}
