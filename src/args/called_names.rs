//! The names by which arguments call something, as in `{"name": "stop"}` or `stop()`.

use super::{ReceivedArguments, candidates, parsed_value::ParsedValue};

/// Returns the names by which arguments call something; of a text that holds none, the text.
#[must_use]
pub fn called_names(arguments: &ReceivedArguments) -> Vec<String> {
    match arguments {
        ReceivedArguments::Absent => Vec::new(),
        ReceivedArguments::Value(value) => call::called_names(value),
        ReceivedArguments::Text(text) => match candidates::of_inner_text(text).pop() {
            Some(inner) if matches!(inner.node, ParsedValue::Map(_) | ParsedValue::List(_)) => {
                call::called_names(&inner.node.to_value())
            }
            _ => vec![text.clone()],
        },
    }
}
