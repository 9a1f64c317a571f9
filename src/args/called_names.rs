//! The names by which arguments call something, as in `{"name": "stop"}` or `stop()`.

use super::{ReceivedArguments, candidates, parsed_value::ParsedValue};

/// Longest text in which names are looked for: this is asked before a call comes to its turn.
const TEXT_BYTES_MAX: usize = 4096;

/// Returns the names by which arguments call something; of a text that holds none, the text. None of a longer text than 4 KiB.
#[must_use]
pub fn called_names(arguments: &ReceivedArguments) -> Vec<String> {
    match arguments {
        ReceivedArguments::Value(value) => call::called_names(value),
        ReceivedArguments::Text(text) if text.len() <= TEXT_BYTES_MAX => named_in(text),
        ReceivedArguments::Text(_) | ReceivedArguments::Absent => Vec::new(),
    }
}

fn named_in(text: &str) -> Vec<String> {
    match candidates::of_inner_text(text).pop() {
        Some(inner) if matches!(inner.node, ParsedValue::Map(_) | ParsedValue::List(_)) => {
            call::called_names(&inner.node.to_value())
        }
        _ => vec![text.to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_are_found_in_values_and_in_texts_of_any_form() {
        for (arguments, names) in [
            (ReceivedArguments::Absent, &[][..]),
            (ReceivedArguments::Value(json!({"name": "stop"})), &["stop"]),
            (ReceivedArguments::Value(json!({"text": "stop"})), &[]),
            (ReceivedArguments::Value(json!({"stop": true})), &["stop"]),
            (
                ReceivedArguments::Text("{'action': 'halt'}".into()),
                &["halt"],
            ),
            (ReceivedArguments::Text("[\"stop\"]".into()), &["stop"]),
            (ReceivedArguments::Text("stop()".into()), &["stop()"]),
            (ReceivedArguments::Text(" ".repeat(5000) + "stop"), &[]),
        ] {
            assert_eq!(called_names(&arguments), names, "{arguments:?}");
        }
    }
}
