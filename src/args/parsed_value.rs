//! A value as it was written: objects keep every pair, words without quotes stay words.

use serde_json::{Map, Number, Value};

/// Parsed value, before any parameter gave it meaning.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ParsedValue {
    Null,
    Bool(bool),
    /// An option without a value, as `--debug`: true where a boolean belongs, nothing that was said anywhere else.
    Flag,
    Number(Number),
    /// Text in quotes of some sort.
    Text(String),
    /// Text without quotes: its type is for the parameter to say.
    Word(String),
    List(Vec<ParsedValue>),
    /// Pairs in order, duplicates included.
    Map(Vec<(String, ParsedValue)>),
}

impl ParsedValue {
    /// Nothing is said: null, a word for it, or an empty text, list or object.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Text(text) | Self::Word(text) => is_nothing(text),
            Self::List(items) => items.is_empty(),
            Self::Map(pairs) => pairs.is_empty(),
            Self::Bool(_) | Self::Flag | Self::Number(_) => false,
        }
    }

    /// The plain JSON value; of duplicate keys the last is kept, so ask about those first.
    pub(super) fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Flag => Value::Bool(true),
            Self::Number(number) => Value::Number(number.clone()),
            Self::Text(text) => Value::String(text.clone()),
            Self::Word(word) => {
                super::numeral::plain(word).unwrap_or_else(|| Value::String(word.clone()))
            }
            Self::List(items) => Value::Array(items.iter().map(Self::to_value).collect()),
            Self::Map(pairs) => {
                let mut map = Map::new();
                for (key, node) in pairs {
                    map.insert(key.clone(), node.to_value());
                }
                Value::Object(map)
            }
        }
    }

    /// Returns whether an object at any depth holds one key twice with different values.
    pub(super) fn contradicts_itself(&self) -> bool {
        match self {
            Self::List(items) => items.iter().any(Self::contradicts_itself),
            Self::Map(pairs) => {
                let mut seen = std::collections::HashMap::new();
                pairs.iter().any(|(key, node)| {
                    seen.insert(key, node).is_some_and(|before| before != node)
                        || node.contradicts_itself()
                })
            }
            _ => false,
        }
    }
}

impl From<Value> for ParsedValue {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(value),
            Value::Number(number) => Self::Number(number),
            Value::String(text) => Self::Text(text),
            Value::Array(items) => Self::List(items.into_iter().map(Self::from).collect()),
            Value::Object(map) => Self::Map(
                map.into_iter()
                    .map(|(key, value)| (key, Self::from(value)))
                    .collect(),
            ),
        }
    }
}

/// Words that callers write for "nothing".
pub(super) fn is_nothing(text: &str) -> bool {
    const WORDS: [&str; 9] = [
        "",
        "null",
        "none",
        "nil",
        "undefined",
        "none.",
        "null.",
        "nil.",
        "undefined.",
    ];
    let text = text.trim();
    text.len() <= 10 && WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Returns whether the text is the remains of one or more objects that a client turned into text by mistake, even if it
/// was cut or quoted again.
pub(super) fn is_lost_payload(text: &str) -> bool {
    const MARK: &str = "[object";
    let text =
        text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '\\' | '`'));
    if text == "[Object]" {
        return true;
    }
    if !text.starts_with('[') || text.len() > 200 {
        return false;
    }
    let inner = text
        .strip_prefix('[')
        .filter(|rest| rest.starts_with('['))
        .unwrap_or(text);
    let inner: String = inner
        .chars()
        .take(200)
        .filter(|c| !c.is_whitespace())
        .collect();
    let is_word =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '[' | ']' | ',' | '…' | '.' | '"');
    let starts = inner
        .get(..MARK.len())
        .is_some_and(|head| head.eq_ignore_ascii_case(MARK));
    starts && inner.len() > MARK.len() + 1 && inner.chars().all(is_word)
}

/// At most [`super::limits::SHOWN_CHARS_MAX`] characters, with control characters and quotes escaped.
pub(super) fn shown(text: &str) -> String {
    let is_plain = |b: u8| (0x20..0x7f).contains(&b);
    if text.len() <= super::limits::SHOWN_CHARS_MAX && text.bytes().all(is_plain) {
        return text.to_owned();
    }
    let mut out = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == super::limits::SHOWN_CHARS_MAX {
            out.push('…');
            break;
        }
        if c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
        {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// The start of a value as compact JSON, bounded without building the whole.
pub(super) fn shown_node(node: &ParsedValue) -> String {
    match node {
        ParsedValue::Text(text) | ParsedValue::Word(text) => shown(text),
        ParsedValue::List(items) if items.len() > 32 => format!("a list of {} values", items.len()),
        ParsedValue::Map(pairs) if pairs.len() > 32 => format!("an object of {} keys", pairs.len()),
        ParsedValue::List(items) => format!("[{}]", joined(items.iter().map(shown_node))),
        ParsedValue::Map(pairs) => format!(
            "{{{}}}",
            joined(
                pairs
                    .iter()
                    .map(|(k, v)| format!("{}: {}", shown(k), shown_node(v)))
            )
        ),
        other => shown(&other.to_value().to_string()),
    }
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    let mut out = String::new();
    for part in parts {
        if !out.is_empty() {
            out.push_str(", ");
        }
        out.push_str(&part);
        if out.len() > 4 * super::limits::SHOWN_CHARS_MAX {
            break;
        }
    }
    shown(&out)
}
