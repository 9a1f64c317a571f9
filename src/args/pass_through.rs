//! Passes on arguments that this node does not read: one JSON object, as received.

use super::{
    arguments::whole_text,
    judge::{ReaderRule, RepairClass},
    outcome::{self, ArgumentReading, ArgumentRefusal},
    parsed_value::{self, ParsedValue},
    read::ReceivedArguments,
    strict,
};
use serde_json::{Map, Value};

/// Returns the object that was sent, unread, or an empty one if nothing was sent.
///
/// # Errors
/// Anything else was sent: arguments that are not read cannot be mended.
pub fn pass_on(received: &ReceivedArguments) -> Result<ArgumentReading, Box<ArgumentRefusal>> {
    let sent = match received {
        ReceivedArguments::Absent | ReceivedArguments::Value(Value::Null) => Some(Map::new()),
        ReceivedArguments::Value(Value::Object(object)) => Some(object.clone()),
        ReceivedArguments::Text(text) | ReceivedArguments::Value(Value::String(text)) => {
            object_of(text)
        }
        ReceivedArguments::Value(_) => None,
    };
    let understood = sent.ok_or_else(|| Box::new(refusal(received)))?;
    Ok(ArgumentReading {
        given: understood.clone(),
        understood,
        repairs: Vec::new(),
        loss: RepairClass::L0,
        is_cautious: false,
        leftover: Vec::new(),
        names_other: false,
        leaves_words: false,
    })
}

/// Returns the object that a text is in strict JSON.
fn object_of(text: &str) -> Option<Map<String, Value>> {
    if text.trim().is_empty() {
        return Some(Map::new());
    }
    let node = strict::parse(text).filter(|node| !node.contradicts_itself())?;
    match node.to_value() {
        Value::Object(object) => Some(object),
        _ => None,
    }
}

fn refusal(received: &ReceivedArguments) -> ArgumentRefusal {
    let shown = match received {
        ReceivedArguments::Absent => String::new(),
        ReceivedArguments::Text(text) => parsed_value::shown(text),
        ReceivedArguments::Value(value) => {
            parsed_value::shown_node(&ParsedValue::from(value.clone()))
        }
    };
    let reason = "this tool passes its arguments on unread, so they must be one JSON object";
    let issue = whole_text(ReaderRule::Invalid, "not_an_object", reason).received(shown);
    ArgumentRefusal {
        complaints: outcome::complaints(&[issue]),
        good: Map::new(),
        repairs: Vec::new(),
        kind: ReaderRule::Invalid,
    }
}
