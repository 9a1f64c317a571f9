//! The name by which a message, or the arguments of a call, call something else. The caller of these functions says which
//! names it looks for: those that stop.

use serde_json::{Map, Value};

/// Keys under which a name is called as the whole value, compared without case.
const NAME_KEYS: [&str; 8] = [
    "tool", "name", "function", "action", "command", "method", "verb", "params",
];

/// Keys of texts that are data. What a broken call has left in them stands behind a tag of its syntax.
const DATA_KEYS: [&str; 3] = ["text", "svg", "image"];

/// Tags that close a parameter or begin the next one in the syntaxes of models: behind one, a text holds the rest of the call that
/// carries it.
pub const CALL_TAGS: [&str; 6] = [
    "</text>",
    "</parameter>",
    "<parameter name=",
    "</invoke>",
    "<function=",
    "</tool_call>",
];

/// Deepest value that is searched.
const DEPTH_MAX: usize = 16;

/// Bytes of one text that are searched. The search runs before the call's turn, so it must be short.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// Bytes of an unreadable message that are searched.
const UNREADABLE_BYTES_MAX: usize = 1 << 20;

/// A test for the names that are looked for.
type IsName<'a> = &'a dyn Fn(&str) -> bool;

/// Returns the name that a value calls: as the whole value of `tool`, `name`, `function`, `action`, `command` or `method`, as a
/// key whose value is not null, `[]`, `""` or false, or as the callee of a call's syntax in a text.
#[must_use]
pub fn called_name(value: &Value, is_name: IsName<'_>) -> Option<String> {
    match value {
        Value::String(text) => called_in_text(text, is_name),
        value => search(value, is_name, 0),
    }
}

/// Returns the name that a text is, or calls: `stop`, `<function=stop>`, `stop()`, `"action": "stop"`.
#[must_use]
pub fn called_in_text(text: &str, is_name: IsName<'_>) -> Option<String> {
    let text = text.get(..text.floor_char_boundary(TEXT_BYTES_MAX))?;
    let is_edge = |c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-');
    let whole = text.trim_matches(is_edge);
    if !whole.contains(": ") && is_name(whole) {
        return Some(whole.to_owned());
    }
    callee(text, is_name)
}

/// As [`called_name`], for a message that is not valid JSON. Bytes that are not text, and UTF-16, hide no name.
#[must_use]
pub fn called_in_unreadable(raw: &[u8], is_name: IsName<'_>) -> Option<String> {
    let head = raw.get(..UNREADABLE_BYTES_MAX).unwrap_or(raw);
    let text = String::from_utf8_lossy(head).replace(['\0', char::REPLACEMENT_CHARACTER], "");
    called_in_text(&text, is_name).or_else(|| callee(&text, is_name))
}

fn search(value: &Value, is_name: IsName<'_>, depth: usize) -> Option<String> {
    match value {
        _ if depth > DEPTH_MAX => None,
        Value::Array(items) => items
            .iter()
            .find_map(|item| search(item, is_name, depth + 1)),
        Value::Object(object) if is_another_method(object) => {
            let method = object.get("method").and_then(Value::as_str);
            method.filter(|method| is_name(method)).map(str::to_owned)
        }
        Value::Object(object) => {
            let mut pairs = object.iter();
            pairs.find_map(|(key, inner)| search_pair(key, inner, is_name, depth))
        }
        _ => None,
    }
}

fn search_pair(key: &str, inner: &Value, is_name: IsName<'_>, depth: usize) -> Option<String> {
    let is_one_of = |keys: &[&str]| keys.iter().any(|one| key.eq_ignore_ascii_case(one));
    match inner {
        Value::String(text) if is_one_of(&DATA_KEYS) => callee(rest_of_call(text)?, is_name),
        Value::String(text) if is_one_of(&NAME_KEYS) => called_in_text(text, is_name),
        Value::Array(items) if is_one_of(&NAME_KEYS) => items.iter().find_map(|item| {
            let is_named = |text: &str| called_in_text(text, is_name);
            item.as_str()
                .map_or_else(|| search(item, is_name, depth + 1), is_named)
        }),
        Value::Null | Value::Bool(false) => None,
        inner if is_name(key) && *inner != "" && *inner != Value::Array(Vec::new()) => {
            Some(key.to_owned())
        }
        Value::String(text) => callee(
            text.get(..text.floor_char_boundary(TEXT_BYTES_MAX))?,
            is_name,
        ),
        inner => search(inner, is_name, depth + 1),
    }
}

/// Returns what stands behind the first tag of a call's syntax in a text that is data.
fn rest_of_call(text: &str) -> Option<&str> {
    let ends = CALL_TAGS.iter().filter_map(|tag| text.find(tag));
    text.get(ends.min()?..)
}

/// Returns whether an object is a message of a protocol method that calls no tool: a name in it is a prompt's or a client's.
fn is_another_method(object: &Map<String, Value>) -> bool {
    let method = object.get("method").and_then(Value::as_str);
    method.is_some_and(|method| {
        let is_protocols = method.contains('/') || ["initialize", "ping"].contains(&method);
        is_protocols && !method.eq_ignore_ascii_case("tools/call")
    })
}

/// Returns the name that stands where a syntax has its callee.
fn callee(text: &str, is_name: IsName<'_>) -> Option<String> {
    let is_inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let mut end = 0;
    while let Some(found) = text.get(end..)?.find(is_inside) {
        let start = end + found;
        let run = text.get(start..)?;
        end = start + run.find(|c| !is_inside(c)).unwrap_or(run.len());
        let run = text.get(start..end)?.trim_end_matches('.');
        let name = run.rsplit('.').next().unwrap_or(run);
        if is_called(text.get(..start)?, text.get(end..)?) && is_name(name) {
            return Some(name.to_owned());
        }
    }
    None
}

/// Returns whether what stands between these parts of a text is called.
fn is_called(before: &str, after: &str) -> bool {
    let is_quote = |c: char| matches!(c, '"' | '\'' | '`' | '\\');
    let before = before.trim_end();
    let unquoted = before.trim_end_matches(is_quote).trim_end();
    if let Some(keyed) = unquoted.strip_suffix([':', '=']) {
        let keyed = keyed.trim_end().trim_end_matches(is_quote);
        let is_outside = |c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-');
        let key = keyed.rsplit(is_outside).next().unwrap_or_default();
        return NAME_KEYS.iter().any(|name| key.eq_ignore_ascii_case(name));
    }
    let is_bare = unquoted.len() == before.len();
    let begins = |mark: &str| before.ends_with(mark) && !before.ends_with("</");
    let is_token = ["<", "|>", "｜>", ">>>"].into_iter().any(begins);
    let begins_statement =
        before.is_empty() || before.ends_with([';', '\n', ',', '(', '[', '{', '>']);
    is_bare && (is_token || (begins_statement && after.trim_start().starts_with('(')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn is_stop(name: &str) -> bool {
        name.eq_ignore_ascii_case("stop")
    }

    #[test]
    fn a_stop_is_found_where_a_name_is_called() {
        for value in [
            json!({"name": "stop"}),
            json!({"tool": "stop", "scene": "koi"}),
            json!({"params": {"function": {"name": "STOP"}}}),
            json!({"stop": true}),
            json!({"stop": {}}),
            json!({"arguments": {"action": "stop"}}),
            json!({"scene": "letters</parameter>\n</function>\n<tool_call>\n<function=stop>\n</function>"}),
            json!({"text": "HI</text>\n<invoke name=\"stop\">"}),
            json!("stop"),
            json!("[sense(), stop()]"),
            json!("Action: stop\nAction Input: {}"),
            json!("<|tool_call_begin|>functions.stop:0"),
            json!("print(default_api.stop())"),
            json!("{\"name\": \"stop\"}"),
        ] {
            assert!(called_name(&value, &is_stop).is_some(), "{value}");
        }
    }

    #[test]
    fn a_word_that_is_not_called_stops_nothing() {
        for value in [
            json!({"text": "stop"}),
            json!({"text": "stop() now", "svg": "<stop offset='0'/>"}),
            json!({"scene": "stop", "note": "do not stop(it)"}),
            json!({"stop": null, "halt": false}),
            json!({"stop": []}),
            json!({"stop": ""}),
            json!({"stop_reason": "stop"}),
            json!({"method": "prompts/get", "params": {"name": "stop"}}),
            json!({"method": "initialize", "params": {"clientInfo": {"name": "stop"}}}),
            json!("text='stop()', scene=stop"),
            json!("please do not stop"),
        ] {
            assert_eq!(called_name(&value, &is_stop), None, "{value}");
        }
    }
}
