//! The answer to a call: data, short text and pictures.

use serde::Serialize;
use serde_json::{Map, Value, json};

use base::wording::{NEXT, with_statement};

/// Media type of the pictures that a node draws.
const PNG: &str = "image/png";

/// Field with the state of the arm in a line, which ends the answer in words too.
pub const NOW: &str = "now";

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolAnswer {
    /// The result as data, shaped by the tool's output schema.
    pub structured: Map<String, Value>,
    /// The result as short text.
    pub text: String,
    /// Set if the caller did not get what it asked for.
    pub is_error: bool,
    /// Pictures as media type and bytes, such as `("image/png", …)`.
    pub images: Vec<(String, Vec<u8>)>,
}

impl ToolAnswer {
    /// Returns the answer to a call that was carried out.
    pub fn done(message: impl Into<String>) -> Self {
        Self::new(true, message.into())
    }

    /// Returns the answer to a call that was not carried out; the message gives the reason.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(false, message.into())
    }

    fn new(success: bool, message: String) -> Self {
        let answer = Self {
            is_error: !success,
            text: message.clone(),
            ..Self::default()
        };
        let answer = answer.with_value("success", success.into());
        answer.with_value("message", message.into())
    }

    /// Adds a field.
    #[must_use]
    pub fn with(mut self, field: &str, value: impl Serialize) -> Self {
        self.set(field, value);
        self
    }

    /// Adds a field that is a JSON value already, without copying it.
    #[must_use]
    pub fn with_value(mut self, field: &str, value: Value) -> Self {
        self.structured.insert(field.to_owned(), value);
        self
    }

    /// Sets a field.
    pub fn set(&mut self, field: &str, value: impl Serialize) {
        let value = serde_json::to_value(value).unwrap_or(Value::Null);
        self.structured.insert(field.to_owned(), value);
    }

    /// Sets a field, unless its value is null or an empty list.
    pub fn set_some(&mut self, field: &str, value: impl Serialize) {
        let value = serde_json::to_value(value).unwrap_or(Value::Null);
        if !value.is_null() && value != json!([]) {
            self.structured.insert(field.to_owned(), value);
        }
    }

    /// Replaces the message.
    #[must_use]
    pub fn reworded(mut self, message: String) -> Self {
        self.text.clone_from(&message);
        self.with_value("message", message.into())
    }

    /// Adds a clause to the message, before its next step. A clause may bring one, for a message without.
    #[must_use]
    pub fn with_more_words(self, clause: &str) -> Self {
        let message = with_statement(&self.text, clause);
        self.reworded(message)
    }

    /// Adds a hint on what to call next, once.
    #[must_use]
    pub fn hint(mut self, hint: &str) -> Self {
        let hints = self.structured.entry("usage_hints");
        let hints = hints.or_insert_with(|| json!([]));
        if let Value::Array(hints) = hints
            && !hints.iter().any(|existing| existing == hint)
        {
            hints.push(hint.into());
        }
        self
    }

    /// Adds PNG pictures.
    pub fn show(&mut self, pictures: impl IntoIterator<Item = Vec<u8>>) {
        let pictures = pictures.into_iter().map(|png| (PNG.to_owned(), png));
        self.images.extend(pictures);
    }

    /// Returns the PNG pictures.
    pub fn pngs(&self) -> impl Iterator<Item = &[u8]> {
        let pngs = self.images.iter().filter(|(mime, _)| mime == PNG);
        pngs.map(|(_, png)| png.as_slice())
    }

    /// Returns the text of the field `code`, which identifies the refusal.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        self.structured.get("code").and_then(Value::as_str)
    }

    /// Returns the whole result in words, for clients that show no data: the message, then, a line each, the next step, the
    /// files and the state of the arm, unless the message has them.
    #[must_use]
    pub fn whole_text(&self) -> String {
        let fields = [
            ("usage_hints", NEXT),
            ("files", "File: "),
            ("captured_files", "File: "),
        ];
        let mut whole = self.text.clone();
        for (field, label) in fields {
            let texts = self.structured.get(field).and_then(Value::as_array);
            for text in texts.into_iter().flatten().filter_map(Value::as_str) {
                if !whole.contains(text) {
                    whole = format!("{whole}\n{label}{text}");
                }
            }
        }
        let now = self.structured.get(NOW).and_then(Value::as_str);
        match now.filter(|now| !whole.contains(*now)) {
            Some(now) => format!("{whole}\n{NOW}: {now}"),
            None => whole,
        }
    }

    /// Moves the answer to the heap, as the error of a step.
    #[must_use]
    pub fn boxed(self) -> Box<Self> {
        Box::new(self)
    }
}
