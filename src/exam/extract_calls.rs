//! Calls as small models write them into plain text, found as a client would find them.
//!
//! Only the call's name and the text of its arguments are looked for; what that text means is the reader's business.

use serde_json::Value;

use super::answer::{PlannerCall, args_of};
use args::ReceivedArguments;

/// Most calls of one answer.
pub(super) const CALLS_MAX: usize = 32;

/// Longest text that is looked through.
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

/// The calls in a text, in order. `is_tool` says whether a name is one, for forms that prose could have as well.
pub(super) fn calls(text: &str, is_tool: impl Fn(&str) -> bool) -> Vec<PlannerCall> {
    // The node's reader says what is a thought, and what defines a tool and calls none.
    let text = args::without_thoughts(bounded(text));
    let text = text.as_ref();
    let found = [
        objects as fn(&str) -> Vec<PlannerCall>,
        reasoned,
        tagged,
        whole_expression,
    ]
    .into_iter()
    .map(|find| find(text))
    .find(|found| !found.is_empty());
    found.unwrap_or_else(|| expressions_in_lines(text, is_tool))
}

fn bounded(text: &str) -> &str {
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// Objects with a name and arguments, wherever they stand: fenced, tagged, in a list, in prose.
fn objects(text: &str) -> Vec<PlannerCall> {
    let mut calls = Vec::new();
    let mut at = 0;
    while let Some(start) = text
        .get(at..)
        .and_then(|rest| rest.find('{'))
        .map(|i| at + i)
    {
        let end = balanced(text, start).unwrap_or(text.len());
        let object = text.get(start..end).unwrap_or_default();
        let found = object_call(object);
        // An object that is no call may hold one.
        at = if found.is_some() { end } else { start + 1 };
        calls.extend(found);
        if calls.len() >= CALLS_MAX {
            break;
        }
    }
    calls
}

fn object_call(text: &str) -> Option<PlannerCall> {
    match serde_json::from_str::<Value>(text) {
        Ok(value) => value_call(&value),
        Err(_) if args::is_tool_definition(text) => None,
        Err(_) => broken_call(text),
    }
}

/// A call in an object: `{"name": …, "arguments": …}` or `{"function": {…}}`.
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

/// A call whose JSON is broken: the name and the text after the key of the arguments.
fn broken_call(text: &str) -> Option<PlannerCall> {
    let name = NAME_KEYS.iter().find_map(|key| {
        let rest = after_key(text, key)?;
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        rest.get(1..)?.split(quote).next().map(str::to_owned)
    })?;
    let arguments = ARGUMENT_KEYS.iter().find_map(|key| after_key(text, key));
    // What breaks off after the name may be a call or a definition, and is neither yet.
    let is_whole = balanced(text, 0).is_some();
    if arguments.is_none() && !is_whole {
        return None;
    }
    let arguments = arguments.map_or(ReceivedArguments::Absent, |rest| {
        let end = if rest.starts_with('{') {
            balanced(rest, 0).unwrap_or(rest.len())
        } else {
            rest.len()
        };
        ReceivedArguments::Text(rest.get(..end).unwrap_or_default().to_owned())
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

/// Returns the position after the bracket that closes the one at `start`. Brackets in strings do not count.
fn balanced(text: &str, start: usize) -> Option<usize> {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for (offset, byte) in text.as_bytes().get(start..)?.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'(' | b'[' if !in_string => depth += 1,
            b'}' | b')' | b']' if !in_string => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(start + offset + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// `Action: stroke` and `Action Input: {…}` on lines of their own.
fn reasoned(text: &str) -> Vec<PlannerCall> {
    let mut calls: Vec<PlannerCall> = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        let Some(name) = value_of(line, "action") else {
            continue;
        };
        let rest = lines.get(index + 1..).unwrap_or_default();
        let own = rest
            .iter()
            .take_while(|line| value_of(line, "action").is_none());
        let input = own
            .clone()
            .position(|line| value_of(line, "action input").is_some());
        let arguments = input.map_or(ReceivedArguments::Absent, |at| {
            input_from(rest.get(at..).unwrap_or_default())
        });
        let is_none = ["none", "n/a", "final answer", ""].contains(&name.to_lowercase().as_str());
        if !is_none && calls.len() < CALLS_MAX {
            let name = name.to_owned();
            calls.push(PlannerCall { name, arguments });
        }
    }
    calls
}

/// The arguments that begin after `Action Input:`, over lines where they are an object.
fn input_from(lines: &[&str]) -> ReceivedArguments {
    let text = lines.join("\n");
    let rest = text
        .split_once(':')
        .map_or("", |(_, rest)| rest)
        .trim_start();
    let end = if rest.starts_with('{') {
        balanced(rest, 0).unwrap_or(rest.len())
    } else {
        rest.find('\n').unwrap_or(rest.len())
    };
    ReceivedArguments::Text(rest.get(..end).unwrap_or_default().trim().to_owned())
}

/// Returns the text after `key:` at the beginning of a line.
fn value_of<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let (head, value) = line.split_once(':')?;
    let head = head.trim_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '-' | '#' | '>'));
    (head.to_lowercase() == key).then(|| value.trim().trim_matches('*').trim())
}

/// `<function=stroke>{…}</function>`.
fn tagged(text: &str) -> Vec<PlannerCall> {
    let mut calls = Vec::new();
    for part in text.split("<function=").skip(1).take(CALLS_MAX) {
        let Some((name, rest)) = part.split_once('>') else {
            continue;
        };
        let body = rest.split("</function>").next().unwrap_or_default().trim();
        let arguments = if body.is_empty() {
            ReceivedArguments::Absent
        } else {
            ReceivedArguments::Text(body.to_owned())
        };
        let name = name.trim_matches(['"', '\'', ' ']).to_owned();
        calls.push(PlannerCall { name, arguments });
    }
    calls
}

/// A text that is one call or a list of calls and nothing else: `[area(base=10, height=5)]`.
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

/// A call of a known tool at the beginning of a line.
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

/// A call `name(arguments)` at the beginning of a text, and what follows it.
fn expression(text: &str) -> Option<(PlannerCall, &str)> {
    let open = text.find('(')?;
    let name = text.get(..open)?;
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
    if name.is_empty() || !name.chars().all(is_name) {
        return None;
    }
    let end = balanced(text, open)?;
    let arguments = text.get(open + 1..end - 1)?.trim();
    let arguments = if arguments.is_empty() {
        ReceivedArguments::Absent
    } else {
        ReceivedArguments::Text(arguments.to_owned())
    };
    let name = name.to_owned();
    Some((PlannerCall { name, arguments }, text.get(end..)?))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(text: &str) -> Vec<(String, String)> {
        let told = |call: &PlannerCall| match &call.arguments {
            ReceivedArguments::Absent => String::new(),
            ReceivedArguments::Value(value) => value.to_string(),
            ReceivedArguments::Text(text) => text.clone(),
        };
        calls(text, |name| name == "stroke")
            .iter()
            .map(|call| (call.name.clone(), told(call)))
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
    fn talk_is_no_call() {
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
