//! The names of what arguments call, as in `{"name": "stop"}` or `stop()`.

use super::{ReceivedArguments, candidates, parsed_value::ParsedValue};

/// Longest text that is searched for names. The search runs before the call's turn, so it must be short.
const TEXT_BYTES_MAX: usize = 4096;

/// Most names of one call.
const NAMES_MAX: usize = 16;

/// Returns the names of what arguments call, at most sixteen; for a text, the text itself too. A text over 4 KiB has none.
#[must_use]
pub fn called_names(arguments: &ReceivedArguments) -> Vec<String> {
    let found = match arguments {
        ReceivedArguments::Absent => Vec::new(),
        ReceivedArguments::Value(value) => call::names_in_arguments(value),
        ReceivedArguments::Text(text) => names_in_text(text),
    };
    // A text may hold an object, as a value or encoded twice.
    let is_bracketed = |text: &str| text.trim_start().starts_with(['{', '[', '"']);
    let names_inside = |name: String| match is_bracketed(&name) {
        true => names_in_text(&name),
        false => vec![name],
    };
    let found = found.into_iter().take(NAMES_MAX);
    found.flat_map(names_inside).take(NAMES_MAX).collect()
}

fn names_in_text(text: &str) -> Vec<String> {
    if text.len() > TEXT_BYTES_MAX {
        return Vec::new();
    }
    match candidates::of_inner_text(text).map(|inner| inner.node) {
        Some(node @ (ParsedValue::Map(_) | ParsedValue::List(_))) => {
            call::names_in_arguments(&node.to_value())
        }
        Some(ParsedValue::Text(inner)) if inner != text => vec![inner],
        _ => {
            let mut names = call::announced_names(text);
            names.push(text.to_owned());
            names
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_are_found_in_values_and_in_texts_of_any_form() {
        let value = ReceivedArguments::Value;
        let text = |text: &str| ReceivedArguments::Text(text.to_owned());
        for arguments in [
            value(json!({"name": "stop"})),
            value(json!({"stop": true})),
            value(json!({"stop": "yes"})),
            value(json!({"name": "robot", "arguments": {"action": "stop"}})),
            value(json!({"name": "steadyhand", "stop": 1})),
            value(json!({"arguments": "{\"name\":\"stop\"}"})),
            value(json!({"action": {"type": "stop"}})),
            value(json!({"Tool_Input": {"function_name": "stop"}})),
            text("{'action': 'stop'}"),
            text("[\"stop\"]"),
            text("\"stop\""),
            text("\"{\\\"name\\\":\\\"stop\\\"}\""),
            text("<tool_call>{\"name\":\"stop\"}</tool_call>"),
            text("<function=stop>"),
            text("Action: stop\nAction Input: {}"),
            text("--action stop"),
            text("{\"name\":\"stop\""),
            text("stop"),
        ] {
            let names = called_names(&arguments);
            assert!(
                names.contains(&"stop".to_owned()),
                "{arguments:?}: {names:?}"
            );
        }
        for arguments in [
            ReceivedArguments::Absent,
            value(json!({"text": "stop", "stop": false})),
            value(json!({"stop": null, "stop_sequences": ["stop"]})),
            text(&(" ".repeat(5000) + "stop")),
        ] {
            let names = called_names(&arguments);
            assert!(
                !names.contains(&"stop".to_owned()),
                "{arguments:?}: {names:?}"
            );
        }
    }
}
