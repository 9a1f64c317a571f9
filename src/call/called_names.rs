//! The names by which a message calls something, wherever a caller may have put them.

use serde_json::{Map, Value};

/// Names that are looked at in one message.
const NAMES_MAX: usize = 64;

/// Longest line that can be a tool's name and nothing more.
const LINE_BYTES_MAX: usize = 200;

/// Bytes of an unreadable message that are searched for names.
const SEARCHED_BYTES_MAX: usize = 1 << 20;

/// Keys under which clients put the name of what they call, and what they call it with; capitals and marks are form.
const NAME_KEYS: [&str; 19] = [
    "method",
    "name",
    "tool",
    "toolname",
    "toolcall",
    "toolcalls",
    "function",
    "functioncall",
    "command",
    "action",
    "verb",
    "cmd",
    "call",
    "params",
    "operation",
    "op",
    "mode",
    "intent",
    "do",
];

/// Keys that hold the arguments of a call, which may be the call itself where it has no name.
const WRAPPERS: [&str; 5] = ["arguments", "args", "input", "request", "payload"];

/// Returns the names that a message or the arguments of a call call something by.
#[must_use]
pub fn called_names(message: &Value) -> Vec<String> {
    let mut found = Vec::new();
    gather(message, &mut found, 0);
    found
}

fn gather(value: &Value, found: &mut Vec<String>, depth: usize) {
    /// `[{"params": {"function": {"name": …}}}]` and no deeper.
    const DEPTH_MAX: usize = 5;
    if depth > DEPTH_MAX || found.len() >= NAMES_MAX {
        return;
    }
    match value {
        Value::String(name) => found.push(name.clone()),
        Value::Array(all) => all
            .iter()
            .take(NAMES_MAX)
            .for_each(|one| gather(one, found, depth + 1)),
        Value::Object(object) => gather_object(object, found, depth),
        _ => {}
    }
}

fn gather_object(object: &Map<String, Value>, found: &mut Vec<String>, depth: usize) {
    let method = object.get("method").and_then(Value::as_str);
    if let Some(other) = method.filter(|method| is_another_method(method)) {
        return found.push(other.to_owned());
    }
    let named = object.iter().filter(|(key, _)| is_name_key(key));
    let named: Vec<&Value> = named.map(|(_, inner)| inner).collect();
    for inner in &named {
        gather(inner, found, depth + 1);
    }
    if !named.is_empty() {
        return;
    }
    for (key, inner) in object.iter().take(NAMES_MAX) {
        match inner {
            // `{"stop": true}`, `{"verb": {"stop": {}}}`.
            Value::Bool(true) => found.push(key.clone()),
            Value::Object(empty) if empty.is_empty() => found.push(key.clone()),
            inner if WRAPPERS.contains(&key.as_str()) => gather(inner, found, depth + 1),
            _ => {}
        }
    }
}

fn is_name_key(key: &str) -> bool {
    let letters = key.chars().filter(char::is_ascii_alphanumeric);
    let folded: String = letters.map(|c| c.to_ascii_lowercase()).collect();
    NAME_KEYS.contains(&folded.as_str())
}

/// A method of the protocol's form that calls no tool: a name in its parameters is that of a prompt, or of a client.
fn is_another_method(method: &str) -> bool {
    method.contains('/') && !method.eq_ignore_ascii_case("tools/call")
}

/// Returns the same of a message that cannot be read: a short one may be a name or hold one in quotes, a longer one holds names
/// after their keys. Bytes that are no text, or text of two bytes a letter, hide none.
#[must_use]
pub fn called_names_in_unreadable(raw: &[u8]) -> Vec<String> {
    let head = raw.get(..SEARCHED_BYTES_MAX).unwrap_or(raw);
    let text: String = String::from_utf8_lossy(head)
        .chars()
        .filter(|c| *c != '\0')
        .collect();
    let line = text.trim_matches(|c: char| c.is_whitespace() || c == char::REPLACEMENT_CHARACTER);
    let pieces: Vec<&str> = line.split(['"', '\'', '`']).collect();
    if line.len() <= LINE_BYTES_MAX {
        let quoted = pieces.into_iter().skip(1).step_by(2);
        return std::iter::once(line)
            .chain(quoted)
            .map(str::to_owned)
            .collect();
    }
    let after_keys = pieces.windows(3).filter_map(|three| match three {
        [key, between, name] if is_name_key(key) && matches!(between.trim(), ":" | "=") => {
            Some(*name)
        }
        _ => None,
    });
    after_keys.take(NAMES_MAX).map(str::to_owned).collect()
}
