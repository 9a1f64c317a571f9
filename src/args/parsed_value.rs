//! A value as it was written: objects keep every pair, and words without quotes stay words.

use super::limits::SHOWN_CHARS_MAX;
use serde_json::{Number, Value};
use std::collections::HashMap;

/// A key and its value.
pub(super) type Pair = (String, ParsedValue);

/// A parsed value, not matched to a parameter yet.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ParsedValue {
    Null,
    Bool(bool),
    /// An option without a value, such as `--debug`: true where a boolean is expected, no value anywhere else.
    Flag,
    Number(Number),
    /// Text in quotes of some sort.
    Text(String),
    /// Text without quotes: the parameter decides its type.
    Word(String),
    List(Vec<ParsedValue>),
    /// Pairs in order, duplicates included.
    Map(Vec<Pair>),
}

impl ParsedValue {
    /// Returns whether the value is null, a word for it, or an empty text, list or object.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Text(text) | Self::Word(text) => is_nothing(text),
            Self::List(items) => items.is_empty(),
            Self::Map(pairs) => pairs.is_empty(),
            Self::Bool(_) | Self::Flag | Self::Number(_) => false,
        }
    }

    /// Returns the text of a text or a word.
    pub(super) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::Word(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the pairs of an object.
    pub(super) fn as_pairs(&self) -> Option<&[Pair]> {
        match self {
            Self::Map(pairs) => Some(pairs),
            _ => None,
        }
    }

    /// Returns an object's value under a key, the first of several.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        self.as_pairs().and_then(|pairs| value_of(pairs, key))
    }

    /// Returns whether a test holds for a pair of an object, or for an item of a list, which has no key.
    pub(super) fn any_inside(&self, mut test: impl FnMut(&str, &Self) -> bool) -> bool {
        match self {
            Self::Map(pairs) => pairs.iter().any(|(key, inner)| test(key, inner)),
            Self::List(items) => items.iter().any(|item| test("", item)),
            _ => false,
        }
    }

    /// Returns the JSON value. It keeps only the last of duplicate keys, so check for those first.
    pub(super) fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Flag => Value::Bool(true),
            Self::Number(number) => Value::Number(number.clone()),
            Self::Text(text) => Value::String(text.clone()),
            Self::Word(word) => {
                super::numeral::json_number(word).unwrap_or_else(|| Value::String(word.clone()))
            }
            Self::List(items) => items.iter().map(Self::to_value).collect(),
            Self::Map(pairs) => {
                let pairs = pairs.iter();
                pairs
                    .map(|(key, node)| (key.clone(), node.to_value()))
                    .collect()
            }
        }
    }

    /// Returns whether an object at any depth holds one key twice with different values.
    pub(super) fn contradicts_itself(&self) -> bool {
        match self {
            Self::List(items) => items.iter().any(Self::contradicts_itself),
            Self::Map(pairs) => contradict(pairs),
            _ => false,
        }
    }
}

/// Returns whether pairs at any depth hold one key twice with different values.
pub(super) fn contradict<'a>(pairs: impl IntoIterator<Item = &'a Pair>) -> bool {
    let mut seen = HashMap::new();
    pairs.into_iter().any(|(key, node)| {
        seen.insert(key, node).is_some_and(|before| before != node) || node.contradicts_itself()
    })
}

/// Returns the value under a key, the first of several.
pub(super) fn value_of<'a>(pairs: &'a [Pair], key: &str) -> Option<&'a ParsedValue> {
    let found = pairs.iter().find(|(own, _)| own == key);
    found.map(|(_, value)| value)
}

impl From<Value> for ParsedValue {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(value),
            Value::Number(number) => Self::Number(number),
            Value::String(text) => Self::Text(text),
            Value::Array(items) => Self::List(items.into_iter().map(Self::from).collect()),
            Value::Object(map) => {
                let pairs = map.into_iter();
                Self::Map(pairs.map(|(key, value)| (key, value.into())).collect())
            }
        }
    }
}

/// Returns whether a text begins with an ASCII word, ignoring case.
pub(super) fn starts_with_word(text: &str, word: &str) -> bool {
    let head = text.get(..word.len());
    head.is_some_and(|head| head.eq_ignore_ascii_case(word))
}

/// Returns whether a text ends with an ASCII word, ignoring case.
pub(super) fn ends_with_word(text: &str, word: &str) -> bool {
    let at = text.len().checked_sub(word.len());
    let end = at.and_then(|at| text.get(at..));
    end.is_some_and(|end| end.eq_ignore_ascii_case(word))
}

/// Returns whether a text is a word that callers write for "nothing".
pub(super) fn is_nothing(text: &str) -> bool {
    let text = text.trim();
    let word = text.strip_suffix('.').unwrap_or(text);
    let words = ["null", "none", "nil", "undefined"];
    text.is_empty() || words.iter().any(|one| word.eq_ignore_ascii_case(one))
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
    let nested = text.strip_prefix('[').filter(|rest| rest.starts_with('['));
    let inner = nested.unwrap_or(text).chars();
    let inner: String = inner.filter(|c| !c.is_whitespace()).collect();
    let is_word = |c: char| c.is_ascii_alphanumeric() || "[],….\"".contains(c);
    starts_with_word(&inner, MARK) && inner.len() > MARK.len() + 1 && inner.chars().all(is_word)
}

/// Returns at most [`SHOWN_CHARS_MAX`] characters, with control characters escaped.
pub(super) fn shown(text: &str) -> String {
    let is_plain = |b: u8| (0x20..0x7f).contains(&b);
    if text.len() <= SHOWN_CHARS_MAX && text.bytes().all(is_plain) {
        return text.to_owned();
    }
    let mut out = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == SHOWN_CHARS_MAX {
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

/// Returns the start of a value as compact JSON, without building all of it.
pub(super) fn shown_node(node: &ParsedValue) -> String {
    match node {
        ParsedValue::Text(text) | ParsedValue::Word(text) => shown(text),
        ParsedValue::List(items) if items.len() > 32 => format!("a list of {} values", items.len()),
        ParsedValue::Map(pairs) if pairs.len() > 32 => {
            format!("an object with {} keys", pairs.len())
        }
        ParsedValue::List(items) => format!("[{}]", joined(items.iter().map(shown_node))),
        ParsedValue::Map(pairs) => {
            let pair = |(key, value): &Pair| format!("{}: {}", shown(key), shown_node(value));
            format!("{{{}}}", joined(pairs.iter().map(pair)))
        }
        other => shown(&other.to_value().to_string()),
    }
}

/// Returns what was received as text: the text itself, or the value if no text arrived.
pub(super) fn shown_received(text: &str, node: &ParsedValue) -> String {
    match text {
        "" => shown_node(node),
        text => shown(text),
    }
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    let mut out = String::new();
    for part in parts {
        if !out.is_empty() {
            out.push_str(", ");
        }
        out.push_str(&part);
        if out.len() > 4 * SHOWN_CHARS_MAX {
            break;
        }
    }
    shown(&out)
}
