//! How a tool answers: the same fields for every tool, and those that are its own.

use serde::Serialize;
use serde_json::{Map, Value, json};

use args::{Reading, Repair};

/// A tool's answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// As data.
    pub structured: Map<String, Value>,
    /// As short text.
    pub text: String,
    /// Whether the caller did not get what was asked.
    pub is_error: bool,
    /// PNG pictures.
    pub pictures: Vec<Vec<u8>>,
    /// Pictures of another server, as media type and bytes.
    pub images: Vec<(String, Vec<u8>)>,
}

impl Reply {
    /// It was done.
    pub(super) fn done(message: impl Into<String>) -> Self {
        Self::new(true, message.into())
    }

    /// It was not, and why.
    pub(super) fn failed(message: impl Into<String>) -> Self {
        Self::new(false, message.into())
    }

    fn new(success: bool, message: String) -> Self {
        let mut reply = Self {
            is_error: !success,
            text: message.clone(),
            ..Self::default()
        };
        reply.set("success", success);
        reply.set("message", message);
        reply
    }

    /// With one more field.
    pub(super) fn with(mut self, field: &str, value: impl Serialize) -> Self {
        self.set(field, value);
        self
    }

    /// The same for what is a value already, which is not copied.
    pub(super) fn with_value(mut self, field: &str, value: Value) -> Self {
        self.structured.insert(field.to_owned(), value);
        self
    }

    pub(super) fn set(&mut self, field: &str, value: impl Serialize) {
        let value = serde_json::to_value(value).unwrap_or(Value::Null);
        self.structured.insert(field.to_owned(), value);
    }

    /// With one more clause in its message.
    pub(super) fn with_more_words(mut self, words: &str) -> Self {
        self.text = format!("{}; {words}", self.text);
        self.set("message", self.text.clone());
        self
    }

    /// With a hint on what to call next.
    pub(super) fn hint(mut self, hint: &str) -> Self {
        let hints = self
            .structured
            .entry("usage_hints")
            .or_insert_with(|| json!([]));
        if let Value::Array(hints) = hints
            && !hints.iter().any(|one| one == hint)
        {
            hints.push(hint.into());
        }
        self
    }

    /// Says these words where the answer said that nothing moved, which was not the whole truth.
    pub(super) fn instead_of_nothing_moved(mut self, words: &str) -> Self {
        self.text = reworded(&self.text, words);
        let said = ["message", "usage_hints"];
        for (_, value) in self
            .structured
            .iter_mut()
            .filter(|(key, _)| said.contains(&key.as_str()))
        {
            match value {
                Value::String(text) => *text = reworded(text, words),
                Value::Array(texts) => texts.iter_mut().for_each(|value| {
                    if let Value::String(text) = value {
                        *text = reworded(text, words);
                    }
                }),
                _ => {}
            }
        }
        self
    }

    /// On the heap, as the error of a step.
    pub(super) fn boxed(self) -> Box<Self> {
        Box::new(self)
    }

    /// With what was understood and repaired; what a tool has said of it itself stays, and comes first.
    pub(super) fn understood(mut self, reading: &Reading) -> Self {
        self.structured
            .entry("understood")
            .or_insert_with(|| Value::Object(reading.understood.clone()));
        let mut repairs = match self.structured.remove("repairs") {
            Some(Value::Array(repairs)) => repairs,
            _ => Vec::new(),
        };
        let own = serde_json::to_value(&reading.repairs).unwrap_or_default();
        repairs.extend(own.as_array().into_iter().flatten().cloned());
        self.set("repairs", repairs);
        let lines: Vec<String> = reading.repairs.iter().map(repair_line).collect();
        if !lines.is_empty() {
            self.text = format!("{}\n{}", self.text, lines.join("\n"));
        }
        self
    }
}

/// Of the whole node, as refusals say it.
const NOTHING_MOVED: &str = "nothing moved";
/// Of one call, while others go on.
pub(super) const NOTHING_FOR_THIS_CALL: &str = "nothing moved for this call";
/// Of a sequence in which an earlier step may have moved.
pub(super) const NOTHING_IN_THIS_STEP: &str = "nothing moved in this step";
/// Of a job with several motions, one of which was carried out.
pub(super) const MOVED_BEFORE: &str = "the arm had moved before that and stands now";

fn reworded(text: &str, words: &str) -> String {
    // What is narrower already is not narrowed twice.
    text.replace(NOTHING_FOR_THIS_CALL, NOTHING_MOVED)
        .replace(NOTHING_MOVED, words)
}

fn repair_line(repair: &Repair) -> String {
    let Repair {
        field,
        got,
        used,
        why,
        ..
    } = repair;
    match (got.is_empty(), used.is_empty()) {
        (true, true) => format!("note: {field}: {why}"),
        (false, true) => format!("note: {field}: {got}: {why}"),
        _ => format!("note: {field}: {got} was read as {used} ({why})"),
    }
}
