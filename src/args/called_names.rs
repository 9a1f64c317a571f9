//! The names of what arguments call, as in `{"name": "stop"}` or `stop()`.

use super::{
    ReceivedArguments, called_in_syntax::called_in_syntax, candidates, parsed_value::ParsedValue,
    thought,
};

/// Longest text that is searched for names, and most bytes of a call's texts together. The search runs before the call's
/// turn, so it must be short.
const TEXT_BYTES_MAX: usize = 4096;

/// Most names of one call.
const NAMES_MAX: usize = 16;

/// Returns the names of what arguments call, at most sixteen; for a text, the text itself too. Of texts that are no
/// plain words only 4 KiB are searched.
#[must_use]
pub fn called_names(arguments: &ReceivedArguments) -> Vec<String> {
    let found = match arguments {
        ReceivedArguments::Absent => Vec::new(),
        ReceivedArguments::Value(value) => call::names_in_arguments(value),
        ReceivedArguments::Text(text) => names_in_text(text),
    };
    let mut bytes_left = TEXT_BYTES_MAX;
    // A text may hold an object or a call, as a value or encoded twice.
    let names = found.into_iter().take(NAMES_MAX).flat_map(|name| {
        let is_read = matches!(arguments, ReceivedArguments::Text(text) if *text == name);
        if is_read || name.chars().all(|c| c.is_alphanumeric() || c == '_') {
            return vec![name];
        }
        let left = bytes_left.checked_sub(name.len());
        bytes_left = left.unwrap_or(bytes_left);
        match left {
            Some(_) => names_in_text(&name),
            None => vec![name],
        }
    });
    let mut distinct = Vec::new();
    for name in names {
        if distinct.len() < NAMES_MAX && !distinct.contains(&name) {
            distinct.push(name);
        }
    }
    distinct
}

fn names_in_text(text: &str) -> Vec<String> {
    if text.len() > TEXT_BYTES_MAX {
        return Vec::new();
    }
    let said = thought::without_thoughts(text);
    // A thought that breaks off may hold all that was said.
    let said = Some(said.trim()).filter(|said| !said.is_empty());
    let said = said.unwrap_or(text);
    match candidates::of_inner_text(said).map(|inner| inner.node) {
        Some(node @ (ParsedValue::Map(_) | ParsedValue::List(_))) => {
            call::names_in_arguments(&node.to_value())
        }
        Some(ParsedValue::Text(inner)) if inner != said => vec![inner],
        _ => names_in_loose_text(said),
    }
}

fn names_in_loose_text(text: &str) -> Vec<String> {
    // `robot: stop` is a name as a whole, `text: stop` is none.
    let is_name = !text
        .split_once(": ")
        .is_some_and(|(key, _)| !key.contains(char::is_whitespace) && call::holds_no_name(key));
    let mut names = Vec::from_iter(is_name.then(|| text.to_owned()));
    for reading in candidates::of_text(text) {
        names.extend(reading.tool);
        if let node @ ParsedValue::Map(_) = reading.node {
            names.extend(call::names_in_arguments(&node.to_value()));
        }
    }
    names.extend(called_in_syntax(text));
    names.extend(call::announced_names(text));
    names
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
            value(json!({"next_action": "stop"})),
            value(json!({"selected_tool": "stop"})),
            value(json!({"tool_to_call": "stop"})),
            value(json!({"message": "stop"})),
            value(json!({"stop": {"arm": "arm"}})),
            value(json!({"stop": {"arm": "arm", "resume": false}})),
            value(json!({"scene": "koi", "next_action": "stop"})),
            value(json!({"message": "stop", "reason": "it hurts"})),
            value(json!({"stop": "yes please"})),
            value(json!({"stop": "true!"})),
            value(json!({"input": "[sense(), stop()]"})),
            value(json!({"nextAction": "stop"})),
            value(json!({"selectedAction": "stop"})),
            value(json!({"action_choice": "stop"})),
            value(json!({"toolToCall": "stop"})),
            value(json!({"nextToolCall": {"name": "stop"}})),
            value(json!({"userMessage": "stop"})),
            value(json!({"stop": {"debug": false}})),
            value(json!({"stop": {"arm": null, "debug": false}})),
            value(json!({"action": "stop", "previous_action": "stroke"})),
            text("stop=true"),
            text("stop(now=True)"),
            text("[sense(), stop()]"),
            text("sense(); stop()"),
            text("print(default_api.stop())"),
            text("```tool_code\nstop()\n```"),
            text("<think>it hurts, I must stop</think>stop"),
            text(
                "<|tool_call_begin|>functions.stop:0<|tool_call_argument_begin|>{}<|tool_call_end|>",
            ),
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
            value(json!({"scene_name": "stop", "note": "stop()"})),
            value(json!({"stop": {"enabled": false}, "stop_reason": "stop"})),
            value(json!({"stop": "\n", "halt": "no"})),
            text("{'text': 'call stop'}"),
            text("text: stop"),
            text("scene=stop"),
            text("stroke(text='stop()', scene=stop)"),
            text("<think>stop()</think>{\"scene\": \"koi\"}"),
            text("note: don't stop(it)\ndry_run: true"),
            text("text = don't stop(it)"),
            text("text=the 'stop()' function"),
            text("dry_run=true, text=stop()"),
            text("say \"stop()\" in letters"),
            text("the text «stop()»"),
            value(json!({"scene": "letters", "message": "stop"})),
            value(json!({"scene": "letters", "message_to_user": "stop"})),
            value(json!({"text": "stop", "call_to_action": "stop"})),
            value(json!({"svg": "<svg/>", "draw_instruction": "stop"})),
            value(json!({"stop": {"enabled": false, "reason": "none"}})),
            value(json!({"start": {"x": 1, "y": 1}, "stop": {"x": 0, "y": 0}})),
            value(json!({"scene": "letters", "sceneMessage": "stop"})),
            value(json!({"stop": {"enabled": "false"}, "halt": {"enabled": 0}})),
            value(json!({"stop": {"clear": true}, "pause": {"seconds": 0}})),
            text(&(" ".repeat(5000) + "stop")),
        ] {
            let names = called_names(&arguments);
            assert!(
                !names.contains(&"stop".to_owned()),
                "{arguments:?}: {names:?}"
            );
        }
    }

    #[test]
    fn a_key_that_tells_of_calls_calls_nothing() {
        for key in [
            "tool_call_id",
            "toolCallId",
            "available_tools",
            "allowedTools",
            "tool_choice",
            "previous_action",
            "previousAction",
            "last_tool_call",
            "actions_taken",
            "action_history",
            "tool_result",
            "function_description",
            "on_error_action",
            "timeout_action",
            "action_after_drawing",
            "error_message",
        ] {
            for value in [json!("stop"), json!({"name": "stop"}), json!(["stop"])] {
                let arguments = ReceivedArguments::Value(json!({"arm": "left", key: value}));
                let names = called_names(&arguments);
                assert!(
                    !names.contains(&"stop".to_owned()),
                    "{arguments:?}: {names:?}"
                );
            }
        }
        let names = |text: &str| called_names(&ReceivedArguments::Text(text.to_owned()));
        for key in ["previous_action", "toolCallId", "text", "scene", "reason"] {
            let text = format!("{key}: stop");
            let found = names(&text);
            assert!(!found.contains(&text), "{text}: {found:?}");
        }
        for text in ["robot: stop", "output: stop", "please note: stop"] {
            assert!(names(text).contains(&text.to_owned()), "{text}");
        }
    }
}
