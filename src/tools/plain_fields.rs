//! Data as words: what a call or an order said, without braces.

use serde_json::Value;

/// Longest text of a field; a design is longer.
const TEXT_CHARS_MAX: usize = 60;

/// Returns the fields of an object as `name value, name value`. What is absent, false or empty is left out.
#[must_use]
pub fn plain_fields(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(_, value)| is_said(value));
            let fields = fields.map(|(name, value)| field(name, value));
            fields.collect::<Vec<_>>().join(", ")
        }
        other => plain_value(other),
    }
}

fn field(name: &str, value: &Value) -> String {
    let name = name.replace('_', " ");
    match value {
        Value::Bool(true) => name,
        Value::Object(_) => format!("{name} ({})", plain_fields(value)),
        other => format!("{name} {}", plain_value(other)),
    }
}

fn is_said(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(values) => !values.is_empty(),
        Value::Object(_) => !plain_fields(value).is_empty(),
        Value::Bool(true) | Value::Number(_) => true,
    }
}

fn plain_value(value: &Value) -> String {
    match value {
        Value::Array(values) => {
            let values = values.iter().map(plain_value);
            values.collect::<Vec<_>>().join(" ")
        }
        Value::Object(_) => format!("({})", plain_fields(value)),
        Value::String(text) => shortened(text),
        Value::Null => "none".to_owned(),
        other => other.to_string(),
    }
}

fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(TEXT_CHARS_MAX) {
        Some((end, _)) => format!("“{}…”", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::plain_fields;
    use serde_json::json;

    #[test]
    fn data_is_said_without_braces_and_long_texts_are_cut() {
        let order = json!({
            "scene": "default", "arm": null, "again": true, "frame": false,
            "design": {"source": {"files": [{"name": "a.svg", "text": "<path/>".repeat(40)}]}, "at_mm": [10.0, 20.0]},
        });
        let words = plain_fields(&order);
        for said in ["scene default", "again", "at mm 10.0 20.0", "name a.svg"] {
            assert!(words.contains(said), "{words}");
        }
        for unsaid in ["{", "\"", "null", "arm", "frame"] {
            assert!(!words.contains(unsaid), "{unsaid}: {words}");
        }
        assert!(words.len() < 200, "{words}");
    }
}
