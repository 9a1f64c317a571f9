//! The names by which a message calls something, wherever a caller may have put them.

use serde_json::{Map, Value};

/// Maximum number of names read from one message.
const NAMES_MAX: usize = 64;

/// Longest text that can be a tool's name and nothing more.
const LINE_BYTES_MAX: usize = 200;

/// Bytes of an unreadable message that are searched for names.
const SEARCHED_BYTES_MAX: usize = 1 << 20;

/// Keys under which clients put the name of what they call, and its arguments, compared without case and punctuation.
const NAME_KEYS: [&str; 14] = [
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
];

/// Further keys that may hold a name, but do not hide other names.
const OTHER_NAME_KEYS: [&str; 16] = [
    "steps",
    "tools",
    "tooluses",
    "functionname",
    "apiname",
    "recipientname",
    "commands",
    "actions",
    "actionname",
    "calls",
    "operation",
    "op",
    "mode",
    "intent",
    "do",
    "type",
];

/// Words of a key under which a name may stand, as in `next_action`, `tool_to_call`.
const NAME_WORDS: [&str; 12] = [
    "action",
    "actions",
    "tool",
    "tools",
    "function",
    "command",
    "call",
    "verb",
    "operation",
    "method",
    "intent",
    "decision",
];

/// Words of a key under which a name may stand, or words for the drawing if one of `DRAWN_WORDS` stands beside it.
const SPOKEN_WORDS: [&str; 2] = ["instruction", "message"];
const DRAWN_WORDS: [&str; 3] = ["text", "scene", "svg"];

/// Words of a key that holds data, whatever its other words are.
const DATA_WORDS: [&str; 5] = ["text", "note", "scene", "svg", "reason"];

/// Words of a key that tells what was called, may be called, or would be called if something happened.
const NOT_CALLING_WORDS: [&str; 28] = [
    "previous",
    "prev",
    "past",
    "prior",
    "earlier",
    "history",
    "log",
    "taken",
    "executed",
    "completed",
    "result",
    "results",
    "description",
    "schema",
    "available",
    "allowed",
    "permitted",
    "possible",
    "supported",
    "disallowed",
    "forbidden",
    "excluded",
    "disabled",
    "choices",
    "error",
    "failure",
    "timeout",
    "after",
];

/// Words of a key for a message or a call of which one has its id: `tool_call_id`. `tool_id` and `action_id` name a tool.
const IDENTIFIED_WORDS: [&str; 2] = ["call", "message"];
const ID_WORDS: [&str; 2] = ["id", "ids"];

/// Words of a key that tells of an earlier call, as in `last_action`. The last message of a user says what is wanted now.
const LATEST_WORDS: [&str; 2] = ["last", "recent"];

/// Keys that hold the arguments of a call, which may be the call itself.
const WRAPPERS: [&str; 10] = [
    "arguments",
    "args",
    "input",
    "toolinput",
    "request",
    "payload",
    "parameters",
    "kwargs",
    "data",
    "body",
];

/// Returns the names by which a message calls something.
#[must_use]
pub fn called_names(message: &Value) -> Vec<String> {
    CalledNames::of(message, false)
}

/// Returns the names by which a call's arguments call something. In arguments, no name hides another.
#[must_use]
pub fn names_in_arguments(arguments: &Value) -> Vec<String> {
    CalledNames::of(arguments, true)
}

struct CalledNames {
    found: Vec<String>,
    is_arguments: bool,
}

impl CalledNames {
    fn of(value: &Value, is_arguments: bool) -> Vec<String> {
        let mut names = Self {
            found: Vec::new(),
            is_arguments,
        };
        names.gather(value, 0);
        names.found
    }

    fn gather(&mut self, value: &Value, depth: usize) {
        /// `[{"params": {"function": {"name": …}}}]` and no deeper.
        const DEPTH_MAX: usize = 5;
        if depth > DEPTH_MAX || self.found.len() >= NAMES_MAX {
            return;
        }
        match value {
            Value::String(name) => self.found.push(name.clone()),
            Value::Array(values) => {
                for value in values.iter().take(NAMES_MAX) {
                    self.gather(value, depth + 1);
                }
            }
            Value::Object(object) => self.gather_object(object, depth),
            _ => {}
        }
    }

    fn gather_object(&mut self, object: &Map<String, Value>, depth: usize) {
        let method = object.get("method").and_then(Value::as_str);
        if let Some(other) = method.filter(|method| is_another_method(method)) {
            return self.found.push(other.to_owned());
        }
        let is_name = |key: &str| is_one_of(key, &NAME_KEYS);
        let has_name = object.keys().any(|key| is_name(key));
        let is_drawing = object.keys().any(|key| has_any(key, &DRAWN_WORDS));
        for (key, inner) in object.iter().take(NAMES_MAX) {
            if is_name(key) {
                self.gather(inner, depth + 1);
            } else if has_name && !self.is_arguments {
                // Next to a name, the rest of a message holds the tool's arguments.
            } else if is_one_of(key, &OTHER_NAME_KEYS)
                || is_one_of(key, &WRAPPERS)
                || has_name_word(key)
                || (!is_drawing && speaks(key))
            {
                self.gather(inner, depth + 1);
            } else if is_affirmative(key, inner) {
                self.found.push(key.clone());
            }
        }
    }
}

/// Returns whether a value makes a name of its key: `{"stop": true}`, `{"verb": {"stop": {}}}`, `{"stop": "yes, now!"}`,
/// `{"stop": {"arm": "left"}}`.
fn is_affirmative(key: &str, value: &Value) -> bool {
    const WORDS: [&str; 10] = [
        "true",
        "yes",
        "y",
        "on",
        "1",
        "now",
        "stop",
        "please",
        "ok",
        "immediately",
    ];
    let is_yes = |word: &str| WORDS.iter().any(|yes| word.eq_ignore_ascii_case(yes));
    match value {
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() == Some(1.0),
        Value::String(text) => {
            let words = text.split(|c: char| !c.is_alphanumeric());
            let mut words = words.filter(|word| !word.is_empty()).peekable();
            words.peek().is_some() && words.all(is_yes)
        }
        Value::Object(object) => !says_no(key, object),
        Value::Null | Value::Array(_) => false,
    }
}

/// Returns whether an object under a key is switched off, only ends what the key names, or is a place: `{"enabled": false,
/// "reason": "none"}`, `{"clear": true}`, `{"x": 0, "y": 0}`. Other parameters that are off switch nothing off:
/// `{"stop": {"debug": false}}`; a stop with a reset behind it is a stop: `{"stop": {"reset": true}}`.
fn says_no(key: &str, object: &Map<String, Value>) -> bool {
    const SWITCHES: [&str; 7] = [
        "enabled",
        "enable",
        "active",
        "value",
        "required",
        "requested",
        "stop",
    ];
    const ENDS: [&str; 2] = ["clear", "cleared"];
    const DURATIONS: [&str; 2] = ["seconds", "duration"];
    let is_pause = is_one_of(key, &["pause"]);
    let is_no = |(key, value): (&String, &Value)| {
        (is_off(value) && is_one_of(key, &SWITCHES))
            || (is_pause && is_off(value) && is_one_of(key, &DURATIONS))
    };
    let is_place = ["x", "y"].iter().all(|axis| object.contains_key(*axis));
    let (ends, others): (Vec<_>, Vec<_>) = object
        .iter()
        .partition(|(key, value)| **value == Value::Bool(true) && is_one_of(key, &ENDS));
    let is_ended = || {
        let mut others = others.into_iter();
        !ends.is_empty() && !others.any(|(key, value)| is_affirmative(key, value))
    };
    is_place || object.iter().any(is_no) || is_ended()
}

fn is_off(value: &Value) -> bool {
    match value {
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => is_one_of(text, &["no", "false", "off", "0"]),
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

/// Returns whether a word of a key says that a name stands under it, and none that it does not.
fn has_name_word(key: &str) -> bool {
    has_any(key, &NAME_WORDS) && !holds_no_name(key)
}

/// Returns whether a key holds data, or tells of calls: what stands under it calls nothing.
#[must_use]
pub fn holds_no_name(key: &str) -> bool {
    let is_told = has_any(key, &NOT_CALLING_WORDS) || has_any(key, &LATEST_WORDS);
    (is_told && has_any(key, &NAME_WORDS))
        || identifies(key)
        || has_any(key, &DATA_WORDS)
        || is_one_of(key, &["calltoaction", "toolchoice"])
}

/// Returns whether a key holds the id of a call or a message.
fn identifies(key: &str) -> bool {
    has_any(key, &IDENTIFIED_WORDS) && has_any(key, &ID_WORDS)
}

/// Returns whether a word of a key says that a person speaks under it, now.
fn speaks(key: &str) -> bool {
    has_any(key, &SPOKEN_WORDS) && !has_any(key, &NOT_CALLING_WORDS) && !identifies(key)
}

/// Returns whether a key has one of these words: `next_action`, `nextAction` and `next-action` have `action`.
fn has_any(key: &str, words: &[&str]) -> bool {
    let mut spaced = String::with_capacity(key.len());
    let mut was_lower = false;
    for c in key.chars() {
        if was_lower && c.is_uppercase() {
            spaced.push(' ');
        }
        was_lower = c.is_lowercase();
        spaced.push(c);
    }
    let mut own = spaced.split(|c: char| !c.is_alphanumeric());
    own.any(|own| words.iter().any(|word| own.eq_ignore_ascii_case(word)))
}

fn is_name_key(key: &str) -> bool {
    is_one_of(key, &NAME_KEYS) || is_one_of(key, &OTHER_NAME_KEYS)
}

fn is_one_of(key: &str, keys: &[&str]) -> bool {
    let chars = key.chars().filter(char::is_ascii_alphanumeric);
    let folded: String = chars.map(|c| c.to_ascii_lowercase()).collect();
    keys.contains(&folded.as_str())
}

/// Returns whether a protocol method calls no tool: a name in its parameters is then that of a prompt or a client.
fn is_another_method(method: &str) -> bool {
    method.contains('/') && !method.eq_ignore_ascii_case("tools/call")
}

/// Returns the names by which a message that is not valid JSON calls something: a short message may be a name or hold one in
/// quotes, a longer one holds names after their keys. Bytes that are not text, and UTF-16, hide no names.
#[must_use]
pub fn called_names_in_unreadable(raw: &[u8]) -> Vec<String> {
    let head = raw.get(..SEARCHED_BYTES_MAX).unwrap_or(raw);
    let text = String::from_utf8_lossy(head).replace('\0', "");
    let line = text.trim_matches(|c: char| c.is_whitespace() || c == char::REPLACEMENT_CHARACTER);
    let pieces: Vec<&str> = line.split(['"', '\'', '`']).collect();
    if line.len() <= LINE_BYTES_MAX {
        let quoted = pieces.into_iter().skip(1).step_by(2);
        let names = std::iter::once(line).chain(quoted);
        return names.map(str::to_owned).collect();
    }
    let is_separator = |text: &str| matches!(text.trim(), ":" | "=");
    let after_keys = pieces.windows(3).filter_map(|window| match window {
        [key, separator, name] if is_name_key(key) && is_separator(separator) => {
            Some((*name).to_owned())
        }
        _ => None,
    });
    after_keys.take(NAMES_MAX).collect()
}

/// Returns the words that follow a key for names in a text of any form: `<function=stop>`, `Action: stop`, `--action stop`,
/// `{"name":"stop"`.
#[must_use]
pub fn announced_names(text: &str) -> Vec<String> {
    let is_word_char = |c: char| c.is_alphanumeric() || c == '_';
    let words = text.split(|c| !is_word_char(c));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let pairs = words.windows(2).filter_map(|pair| match pair {
        [key, name] if is_name_key(key) => Some((*name).to_owned()),
        _ => None,
    });
    pairs.take(NAMES_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn is_stop(arguments: &Value) -> bool {
        names_in_arguments(arguments)
            .iter()
            .any(|name| name.ends_with("stop"))
    }

    #[test]
    fn what_names_a_tool_or_was_said_last_is_heard() {
        for key in [
            "tool_id",
            "action_id",
            "function_id",
            "command_id",
            "operation_id",
            "output_action",
            "fallback_action",
            "last_user_message",
            "recent_user_message",
        ] {
            assert!(is_stop(&json!({ key: "stop" })), "{key}");
        }
        for key in [
            "tool_call_id",
            "message_id",
            "toolCallIds",
            "last_action",
            "recent_actions",
        ] {
            assert!(!is_stop(&json!({ key: "stop" })), "{key}");
        }
    }

    /// The arm drew on.
    #[test]
    fn a_stop_among_steps_is_heard() {
        assert!(is_stop(
            &json!({"steps": [{"tool": "sense"}, {"tool": "stop"}]})
        ));
        assert!(is_stop(&json!({"steps": ["stop"]})));
        assert!(!is_stop(
            &json!({"steps": [{"tool": "sense", "note": "stop"}]})
        ));
        assert!(!is_stop(&json!({"completed_steps": ["stop"]})));
        assert!(!is_stop(&json!({"steps": 2})));
    }

    #[test]
    fn a_stop_with_its_reset_or_release_behind_it_is_a_stop() {
        for arguments in [
            json!({"stop": {"reset": true}}),
            json!({"stop": {"release": true}}),
            json!({"stop": {"now": true, "reset": true}}),
            json!({"stop": {"clear": true, "now": "yes"}}),
            json!({"emergency_stop": {"reset": true}}),
        ] {
            assert!(is_stop(&arguments), "{arguments}");
        }
        for arguments in [
            json!({"stop": {"clear": true}}),
            json!({"emergency_stop": {"cleared": true, "arm": "left", "dry_run": false}}),
        ] {
            assert!(!is_stop(&arguments), "{arguments}");
        }
    }
}
