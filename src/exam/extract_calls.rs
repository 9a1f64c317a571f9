//! Splits the plain text of a small model into calls, as a client would: the reader reads the arguments of one call of a known
//! tool, and refuses several.
//!
//! It extracts only each call's name and the text of its arguments; the reader interprets that text.

use serde_json::Value;

use super::answer::{PlannerCall, args_of};
use args::ReceivedArguments;

/// Most calls of one answer.
pub(super) const CALLS_MAX: usize = 32;

/// Longest text that is searched.
const TEXT_BYTES_MAX: usize = 256 * 1024;

/// Keys that hold a tool's name, and those that hold its arguments.
const NAME_KEYS: [&str; 6] = [
    "name",
    "tool",
    "tool_name",
    "function",
    "function_name",
    "action",
];
const ARGUMENT_KEYS: [&str; 8] = [
    "arguments",
    "parameters",
    "args",
    "params",
    "input",
    "action_input",
    "tool_input",
    "kwargs",
];

/// Returns the calls in a text, in order. `is_tool` checks names in forms that prose could have as well.
pub(super) fn calls(text: &str, is_tool: impl Fn(&str) -> bool) -> Vec<PlannerCall> {
    let end = text.floor_char_boundary(TEXT_BYTES_MAX);
    let bounded = text.get(..end).unwrap_or_default();
    // The node's reader decides what is a thought, and what defines a tool without calling one.
    let text = args::without_thoughts(bounded);
    let text = text.as_ref();
    let found = [
        object_calls as fn(&str) -> Vec<PlannerCall>,
        action_calls,
        tagged_calls,
        whole_expression,
    ]
    .into_iter()
    .map(|find| find(text))
    .find(|found| !found.is_empty());
    found.unwrap_or_else(|| expressions_in_lines(text, is_tool))
}

/// Finds objects with a name and arguments anywhere: fenced, tagged, in a list, in prose.
fn object_calls(text: &str) -> Vec<PlannerCall> {
    let mut calls = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('{').filter(|_| calls.len() < CALLS_MAX) {
        rest = rest.get(start..).unwrap_or_default();
        let (object, after) = split_balanced(rest);
        let found = object_call(object);
        // An object that is not a call may contain one.
        rest = match found {
            Some(_) => after,
            None => rest.get(1..).unwrap_or_default(),
        };
        calls.extend(found);
    }
    calls
}

/// Splits a text after the bracket that closes the one at its beginning, or at its end if none does.
fn split_balanced(text: &str) -> (&str, &str) {
    let end = closing_end(text).unwrap_or(text.len());
    text.split_at(end)
}

/// Returns arguments as text; an empty text has none.
fn arguments(text: &str) -> ReceivedArguments {
    match text.trim() {
        "" => ReceivedArguments::Absent,
        text => ReceivedArguments::Text(text.to_owned()),
    }
}

fn object_call(text: &str) -> Option<PlannerCall> {
    match serde_json::from_str::<Value>(text) {
        Ok(value) => value_call(&value),
        Err(_) if args::is_tool_definition(text) => None,
        Err(_) => broken_call(text),
    }
}

/// Reads a call from an object: `{"name": …, "arguments": …}` or `{"function": {…}}`.
pub(super) fn value_call(value: &Value) -> Option<PlannerCall> {
    let object = value.as_object()?;
    for wrapper in ["function", "tool_call", "function_call"] {
        if let Some(inner) = object.get(wrapper).filter(|inner| inner.is_object()) {
            return value_call(inner);
        }
    }
    let name = NAME_KEYS
        .iter()
        .find_map(|key| object.get(*key)?.as_str())?
        .to_owned();
    let arguments = ARGUMENT_KEYS.iter().find_map(|key| object.get(*key));
    if (arguments.is_none() && object.len() > 1) || args::is_tool_definition(&value.to_string()) {
        return None;
    }
    Some(PlannerCall {
        name,
        arguments: args_of(arguments),
    })
}

/// Reads a call from broken JSON: the name, and the text after the key of the arguments.
fn broken_call(text: &str) -> Option<PlannerCall> {
    let name = NAME_KEYS.iter().find_map(|key| {
        let rest = after_key(text, key)?;
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        rest.get(1..)?.split(quote).next().map(str::to_owned)
    })?;
    let arguments = ARGUMENT_KEYS.iter().find_map(|key| after_key(text, key));
    // A text that breaks off after the name could be a call or a definition, so it counts as neither.
    if arguments.is_none() && closing_end(text).is_none() {
        return None;
    }
    let arguments = arguments.map_or(ReceivedArguments::Absent, |rest| {
        let arguments_text = match rest.starts_with('{') {
            true => split_balanced(rest).0,
            false => rest,
        };
        ReceivedArguments::Text(arguments_text.to_owned())
    });
    Some(PlannerCall { name, arguments })
}

/// Returns the text after `"key":`, with quotes of either kind.
fn after_key<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    ["\"", "'"].iter().find_map(|quote| {
        let quoted = format!("{quote}{key}{quote}");
        let (_, rest) = text.split_once(&quoted)?;
        rest.trim_start().strip_prefix(':').map(str::trim_start)
    })
}

/// Returns the position after the bracket that closes the first one. Brackets in strings do not count.
fn closing_end(text: &str) -> Option<usize> {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for (offset, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'(' | b'[' if !in_string => depth += 1,
            b'}' | b')' | b']' if !in_string => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(offset + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// Finds `Action: stroke` and `Action Input: {…}` on lines of their own.
fn action_calls(text: &str) -> Vec<PlannerCall> {
    let lines: Vec<&str> = text.lines().collect();
    let actions = lines.iter().enumerate().filter_map(|(index, line)| {
        let name = value_of(line, "action")?;
        let is_no_call =
            ["none", "n/a", "final answer", ""].contains(&name.to_lowercase().as_str());
        let rest = lines.get(index + 1..).unwrap_or_default();
        let mut until_next_action = rest
            .iter()
            .take_while(|line| value_of(line, "action").is_none());
        let input = until_next_action.position(|line| value_of(line, "action input").is_some());
        let arguments = input.map_or(ReceivedArguments::Absent, |index| {
            input_from(rest.get(index..).unwrap_or_default())
        });
        let name = name.to_owned();
        (!is_no_call).then_some(PlannerCall { name, arguments })
    });
    actions.take(CALLS_MAX).collect()
}

/// Returns the arguments after `Action Input:`, which may span lines if they are an object.
fn input_from(lines: &[&str]) -> ReceivedArguments {
    let text = lines.join("\n");
    let rest = text.split_once(':').map_or("", |(_, rest)| rest);
    let rest = rest.trim_start();
    let input = match rest.starts_with('{') {
        true => split_balanced(rest).0,
        false => rest.lines().next().unwrap_or_default(),
    };
    ReceivedArguments::Text(input.trim().to_owned())
}

/// Returns the text after `key:` at the beginning of a line.
fn value_of<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let (head, value) = line.split_once(':')?;
    let head = head.trim_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '-' | '#' | '>'));
    (head.to_lowercase() == key).then(|| value.trim().trim_matches('*').trim())
}

/// Finds `<function=stroke>{…}</function>`.
fn tagged_calls(text: &str) -> Vec<PlannerCall> {
    let parts = text.split("<function=").skip(1).take(CALLS_MAX);
    let calls = parts.filter_map(|part| {
        let (name, rest) = part.split_once('>')?;
        Some(PlannerCall {
            name: name.trim_matches(['"', '\'', ' ']).to_owned(),
            arguments: arguments(rest.split("</function>").next().unwrap_or_default()),
        })
    });
    calls.collect()
}

/// Reads a text that is a call or a list of calls and nothing else: `[area(base=10, height=5)]`.
fn whole_expression(text: &str) -> Vec<PlannerCall> {
    let text = text.trim();
    let inner = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let mut rest = inner.unwrap_or(text).trim();
    let mut calls = Vec::new();
    while !rest.is_empty() && calls.len() < CALLS_MAX {
        let Some((call, after)) = expression(rest) else {
            return Vec::new();
        };
        calls.push(call);
        rest = after
            .trim_start()
            .trim_start_matches([',', ';'])
            .trim_start();
    }
    calls
}

/// Finds calls of known tools at the beginning of lines.
fn expressions_in_lines(text: &str, is_tool: impl Fn(&str) -> bool) -> Vec<PlannerCall> {
    let lines = text
        .lines()
        .map(|line| line.trim_start_matches([' ', '\t', '`', '>', '-', '*']));
    let calls = lines.filter_map(|line| expression(line).map(|(call, _)| call));
    calls
        .filter(|call| is_tool(&call.name))
        .take(CALLS_MAX)
        .collect()
}

/// Reads a call `name(arguments)` at the beginning of a text; returns it with the rest of the text.
fn expression(text: &str) -> Option<(PlannerCall, &str)> {
    let open = text.find('(')?;
    let name = text.get(..open)?;
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
    if name.is_empty() || !name.chars().all(is_name) {
        return None;
    }
    let end = open + closing_end(text.get(open..)?)?;
    let call = PlannerCall {
        name: name.to_owned(),
        arguments: arguments(text.get(open + 1..end - 1)?),
    };
    Some((call, text.get(end..)?))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(text: &str) -> Vec<(String, String)> {
        let arguments_text = |call: &PlannerCall| match &call.arguments {
            ReceivedArguments::Absent => String::new(),
            ReceivedArguments::Value(value) => value.to_string(),
            ReceivedArguments::Text(text) => text.clone(),
        };
        calls(text, |name| name == "stroke")
            .iter()
            .map(|call| (call.name.clone(), arguments_text(call)))
            .collect()
    }

    #[test]
    fn calls_are_found_however_they_are_written() {
        for (text, name, arguments) in [
            (
                r#"<tool_call>{"name": "stroke", "arguments": {"scene": "koi"}}</tool_call>"#,
                "stroke",
                r#"{"scene":"koi"}"#,
            ),
            (
                r#"Sure! ```json {"tool": "sense", "args": {}} ```"#,
                "sense",
                "{}",
            ),
            (
                r#"{"name": "stroke", "arguments": {"scene": "koi""#,
                "stroke",
                r#"{"scene": "koi""#,
            ),
            (
                r#"{'name': 'stroke', 'arguments': {'scene': 'koi'}}"#,
                "stroke",
                "{'scene': 'koi'}",
            ),
            (
                "Thought: draw\nAction: stroke\nAction Input: {\"scene\": \"koi\"}\nObservation:",
                "stroke",
                r#"{"scene": "koi"}"#,
            ),
            (
                "<function=stroke>{\"scene\":\"koi\"}</function>",
                "stroke",
                r#"{"scene":"koi"}"#,
            ),
            (
                r#"[area.of(base=10, height="5)")]"#,
                "area.of",
                r#"base=10, height="5)""#,
            ),
            ("I will.\n- `stroke(scene='koi')`", "stroke", "scene='koi'"),
            (
                r#"{"function": {"name": "stroke", "arguments": "{\"scene\":\"koi\"}"}}"#,
                "stroke",
                r#"{"scene":"koi"}"#,
            ),
        ] {
            assert_eq!(
                found(text),
                [(name.to_owned(), arguments.to_owned())],
                "{text}"
            );
        }
    }

    #[test]
    fn prose_is_not_a_call() {
        for text in [
            "I cannot do that (sorry).",
            "{\"scene\": \"koi\"}",
            "You could call draw(scene) yourself",
            r#"{"type":"function","function":{"name":"stroke","description":"draws","parameters":{}}}"#,
            "Action: none",
            "<think>I could send {\"name\":\"stroke\",\"arguments\":{}}.</think>Hello",
            "<think>{\"name\":\"stroke\",\"arguments\":{}}",
            r#"[{"type":"function","function":{"name":"stroke","description":"draws","parameters":{"type":"obj"#,
            r#"[{"type":"function","function":{"name":"stroke""#,
            r#"{"name":"stroke","parameters":{"type":"object","properties":{"scene":{"#,
            "",
        ] {
            assert_eq!(found(text), [], "{text}");
        }
    }

    #[test]
    fn every_call_of_an_answer_is_found() {
        let two = r#"[{"name":"align","arguments":{}},{"name":"stroke","arguments":{}}]"#;
        assert_eq!(found(two).len(), 2);
        assert_eq!(found("[a(x=1), b(y=2)]").len(), 2);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_harm(text in "\\PC{0,200}") {
            prop_assert!(calls(&text, |_| true).len() <= CALLS_MAX);
        }

        #[test]
        fn likely_text_is_read_without_harm(
            parts in proptest::collection::vec(prop_oneof![
                Just("{"), Just("}"), Just("\"name\":"), Just("\"stroke\""), Just("\"arguments\":"), Just("("), Just(")"),
                Just("Action:"), Just("Action Input:"), Just("\n"), Just("<function="), Just(">"), Just("\\"), Just("é"), Just("["),
            ], 0..40)
        ) {
            prop_assert!(calls(&parts.concat(), |_| true).len() <= CALLS_MAX);
        }
    }
}
