//! Heuristics for keys and values: envelopes, templates, echoes of a schema.

use super::{
    name,
    parsed_value::{Pair, ParsedValue, ends_with_word, starts_with_word, value_of},
    shape::ValueKind,
};
use unicode_normalization::UnicodeNormalization as _;

/// Key of the protocol's own object. A client may have put it among the arguments.
pub(super) const PROTOCOL_KEY: &str = "_meta";
/// Keys that wrap all arguments.
const WRAPPERS: [&str; 16] = [
    "input",
    "inputdata",
    "args",
    "arguments",
    "params",
    "parameters",
    "kwargs",
    "data",
    "actioninput",
    "toolinput",
    "toolargs",
    "toolarguments",
    "argument",
    "functionarguments",
    "inputs",
    "payload",
];
/// Keys that hold a whole call. The last two are those of this server's own answers.
const CALLS: [&str; 12] = [
    "calls",
    "toolcall",
    "functioncall",
    "function",
    "call",
    "toolcalls",
    "tooluse",
    "tooluses",
    "functioncalls",
    "toolcallrequest",
    "drawcall",
    "correctedcall",
];
/// Keys that name a tool.
const TOOL_NAMES: [&str; 9] = [
    "recipientname",
    "name",
    "tool",
    "toolname",
    "function",
    "functionname",
    "action",
    "method",
    "api",
];
/// Other keys of a call, beside its name and arguments.
const CALL_METADATA: [&str; 9] = [
    "servername",
    "type",
    "id",
    "jsonrpc",
    "thought",
    "callid",
    "toolcallid",
    "server",
    "index",
];
/// Words for types, as schemas have them.
const TYPES: [&str; 17] = [
    "string",
    "integer",
    "number",
    "boolean",
    "array",
    "object",
    "null",
    "function",
    "str",
    "int",
    "bool",
    "float",
    "percentage",
    "json",
    "dict",
    "json_object",
    "list",
];
/// Keys of schemas.
const SCHEMA_KEYS: [&str; 14] = [
    "type",
    "description",
    "default",
    "enum",
    "items",
    "properties",
    "required",
    "title",
    "minimum",
    "maximum",
    "format",
    "examples",
    "optional",
    "name",
];

fn letters(key: &str) -> impl Iterator<Item = char> {
    let letters = key.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase)
}

/// Returns the letters and digits of an ASCII key in lower case; several times as fast as [`letters`].
fn ascii_letters(key: &str) -> impl Iterator<Item = u8> {
    let letters = key.bytes().filter(u8::is_ascii_alphanumeric);
    letters.map(|byte| byte.to_ascii_lowercase())
}

/// Returns a key's letters and digits in lower case.
pub(super) fn fold_key(key: &str) -> String {
    letters(key).collect()
}

/// Returns whether two keys are equal if only letters and digits count. Allocates nothing. Long ones are compared to the letter.
pub(super) fn same_key(a: &str, b: &str) -> bool {
    // Most keys differ at once, and most are ASCII.
    if let (Some(first), Some(other)) = (a.bytes().next(), b.bytes().next())
        && first.is_ascii_alphanumeric()
        && other.is_ascii_alphanumeric()
        && !first.eq_ignore_ascii_case(&other)
    {
        return false;
    }
    if a.len().max(b.len()) > KEY_BYTES_MAX {
        return a == b;
    }
    if a.is_ascii() && b.is_ascii() {
        return ascii_letters(a).eq(ascii_letters(b));
    }
    letters(a).eq(letters(b))
}

/// Returns whether a key has signs that a spelling of a name does not have: `!scene`, `//scene`, `~~scene~~`, `scene≠`, a key that
/// is struck through.
pub(super) fn is_marked(key: &str) -> bool {
    let is_plain = |c: char| {
        c.is_alphanumeric()
            || c.is_whitespace()
            || name::is_invisible(c)
            || "_-.:,/*()[]'\"`“”".contains(c)
    };
    let is_dashed = key.starts_with('-') && !key.starts_with("--");
    // Sigils of languages and marks of signatures: `$scene`, `scene?`, `scene*`.
    let inner = key.trim_start_matches(['$', '@']);
    let inner = inner.trim_end_matches(['?', '*', '!']);
    let is_plain = match inner.is_ascii() {
        true => inner.chars().all(is_plain),
        false => inner.nfkc().all(is_plain),
    };
    is_dashed || key.starts_with('/') || !is_plain
}

/// Returns a key without the remark of a signature or a path before it: `scene (string)`, `args.scene`. A unit is no remark.
pub(super) fn without_remark(key: &str) -> &str {
    let is_remark =
        |word: &str| matches!(word, "" | "optional" | "required") || TYPES.contains(&word);
    let remarked = key.strip_suffix(')').and_then(|key| key.split_once(" ("));
    let name = match remarked {
        Some((name, remark)) if remark.split([',', ' ']).all(is_remark) => name,
        _ => key,
    };
    match name.rsplit_once('.') {
        Some((prefix, name)) if is_wrapper(prefix) && !name.is_empty() => name,
        _ => name,
    }
}

/// Longest key that is compared with words; a longer one matches none.
const KEY_BYTES_MAX: usize = 256;

/// Returns whether the key is one of these words, if only letters and digits count. Allocates nothing.
pub(super) fn is_one_of(key: &str, words: &[&str]) -> bool {
    key.len() <= KEY_BYTES_MAX && words.iter().any(|word| same_key(word, key))
}

pub(super) fn is_wrapper(key: &str) -> bool {
    is_one_of(key, &WRAPPERS)
}

/// Returns whether a key is an envelope whose value can be opened.
pub(super) fn is_envelope(key: &str, value: &ParsedValue) -> bool {
    let is_pair = |item: &ParsedValue| match item {
        ParsedValue::List(pair) => matches!(pair.as_slice(), [ParsedValue::Text(_), _]),
        _ => false,
    };
    let holds_object = match value {
        ParsedValue::Map(pairs) => !pairs.is_empty(),
        ParsedValue::List(items) => match items.as_slice() {
            [ParsedValue::Map(_)] => true,
            items => !items.is_empty() && items.iter().all(is_pair),
        },
        ParsedValue::Text(text) => text.trim_start().starts_with(['{', '[']),
        _ => false,
    };
    holds_object && is_wrapper(key)
}

/// Returns whether a key holds a call, which says more than `{}`.
pub(super) fn is_call(key: &str, value: &ParsedValue) -> bool {
    let is_object = |value: &ParsedValue| value.as_pairs().is_some_and(|pairs| !pairs.is_empty());
    let holds_object = match value {
        ParsedValue::Map(_) => is_object(value),
        ParsedValue::List(items) => items.iter().any(|item| match item {
            ParsedValue::Text(text) => text.trim_start().starts_with('{'),
            item => is_object(item),
        }),
        _ => false,
    };
    holds_object && names_calls(key)
}

/// Returns whether a key holds whole calls.
pub(super) fn names_calls(key: &str) -> bool {
    is_one_of(key, &CALLS)
}

pub(super) fn is_tool_name(key: &str) -> bool {
    is_one_of(key, &TOOL_NAMES)
}

pub(super) fn stands_beside_a_call(key: &str) -> bool {
    is_one_of(key, &CALL_METADATA)
}

/// Returns the words of a key in lower case, split at case changes and non-letters.
fn words(key: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before_lower = false;
    for c in key.chars() {
        if !c.is_alphabetic() || (c.is_uppercase() && before_lower) {
            words.push(String::new());
        }
        before_lower = c.is_lowercase();
        if let Some(word) = words.last_mut().filter(|_| c.is_alphabetic()) {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns whether a text is a stand-in from a prompt: `<scene-name>`, `{scene}`, `{{scene}}`, `${scene}`, `<%= scene %>`, `%s`,
/// or dots.
pub(super) fn is_template(text: &str) -> bool {
    let text = text.trim();
    let starts = text.starts_with(['<', '{', '$', '#', '@', '%', '.', '…', '[']);
    if !starts || text.len() > STAND_IN_BYTES_MAX {
        return false;
    }
    let is_between = |(open, close): &(&str, &str)| {
        let rest = text.strip_prefix(open);
        let inner = rest.and_then(|rest| rest.strip_suffix(close));
        inner.is_some_and(|inner| is_stand_in(inner, open.starts_with('<')))
    };
    const PAIRS: [(&str, &str); 12] = [
        ("<", ">"),
        ("<<", ">>"),
        ("<|", "|>"),
        ("{{{", "}}}"),
        ("{{", "}}"),
        ("${", "}"),
        ("#{", "}"),
        ("@{", "}"),
        ("{", "}"),
        ("$(", ")"),
        ("%(", ")s"),
        ("%", "%"),
    ];
    const WHOLE: [&str; 10] = [
        "...", "…", "<>", "{}", "%s", "%d", "%f", "{0}", "<...>", "[...]",
    ];
    PAIRS.iter().any(is_between) || WHOLE.contains(&text)
}

/// Longest stand-in: anything longer is text in brackets.
const STAND_IN_BYTES_MAX: usize = 80;

/// Returns whether words may be those of a stand-in; between angle brackets a remark may follow the name.
fn is_stand_in(inner: &str, with_remark: bool) -> bool {
    let marked = inner
        .trim()
        .trim_start_matches(['%', '=', '#', '-', '!'])
        .trim_end_matches(['%', '-'])
        .trim();
    let is_first = |c: char| c.is_alphabetic() || c == '_';
    let is_inside = |c: char| {
        c.is_alphanumeric()
            || matches!(c, ' ' | '_' | '-' | '.' | '|' | '?')
            || (with_remark && matches!(c, ':' | ',' | '\'' | '(' | ')' | '[' | ']'))
    };
    (marked.starts_with(is_first) && marked.chars().all(is_inside))
        || matches!(inner.trim(), "..." | "…")
}

/// Returns whether a value is only its parameter's name, decorated: `$scene`, `[scene name]`, `__SCENE__`, `YOUR_SCENE_HERE`.
pub(super) fn is_dressed_name(text: &str, name: &str) -> bool {
    let text = text.trim();
    if text.len() > STAND_IN_BYTES_MAX || !may_be_dressed(text) {
        return false;
    }
    let stem = text.trim_matches(|c: char| "$@#[]*«»:%!".contains(c));
    let underlined = stem.strip_prefix("__");
    let underlined = underlined.and_then(|rest| rest.strip_suffix("__"));
    let stem = underlined.unwrap_or(stem);
    let is_marked = stem.len() < text.len() && !text.starts_with(char::is_alphanumeric);
    is_marked && is_name_of(&fold_key(stem), name) || is_placeholder(stem, name)
}

/// Returns whether a text begins with a mark or a request, or ends with "here": a cheap test before the full one.
fn may_be_dressed(text: &str) -> bool {
    !text.starts_with(char::is_alphanumeric)
        || ASKS.iter().any(|word| starts_with_word(text, word))
        || ends_with_word(text, "here")
}

/// Words by which a placeholder asks for a value.
const ASKS: [&str; 5] = ["your", "insert", "enter", "put", "choose"];

/// Returns whether a folded text is the parameter's name, also as `scene name` or `scene value`.
fn is_name_of(folded: &str, name: &str) -> bool {
    let name = fold_key(name);
    let mut ends = ["name", "value", "id"].iter();
    let stem = ends.find_map(|word| folded.strip_suffix(word));
    !name.is_empty() && (folded == name || stem == Some(name.as_str()))
}

/// Returns whether the text is a placeholder such as `YOUR_SCENE_HERE` or `insert scene`. Credentials are excepted: models
/// do not know them, and the program that runs the call fills them in.
fn is_placeholder(text: &str, name: &str) -> bool {
    const CREDENTIALS: [&str; 6] = [
        "key",
        "token",
        "secret",
        "password",
        "credential",
        "credentials",
    ];
    let mut parts = words(text);
    let has_here = parts.last().is_some_and(|word| word == "here");
    let asks = |word: &String| ASKS.contains(&word.as_str());
    let has_verb = parts.first().is_some_and(asks);
    parts.retain(|word| !asks(word) && !matches!(word.as_str(), "the" | "a" | "here"));
    let is_secret = |word: &String| CREDENTIALS.contains(&word.as_str());
    let is_credential = words(name).iter().any(is_secret);
    (has_verb || has_here) && !is_credential && is_name_of(&parts.concat(), name)
}

/// Returns whether a pair is a stand-in from a prompt: `{"<key>": "<value>"}`, `{"arg1": "<value>"}`, `{"key": "value"}`.
pub(super) fn is_template_pair(key: &str, value: &ParsedValue) -> bool {
    const KEYS: [&str; 7] = [
        "key",
        "parametername",
        "paramname",
        "argname",
        "argumentname",
        "parameter",
        "arg",
    ];
    let is_value = |text: &str| fold_key(text).ends_with("value");
    let text = value.as_text();
    is_template(key)
        || text.is_some_and(is_template)
        || (is_one_of(key, &KEYS) && text.is_some_and(is_value))
}

pub(super) fn is_type_word(node: &ParsedValue) -> bool {
    node.as_text().is_some_and(is_type)
}

fn is_type(text: &str) -> bool {
    TYPES.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Returns whether a value is a type with a remark, as in signatures: `string (optional)`, `integer?`, `str, required`.
fn is_type_with_remark(node: &ParsedValue) -> bool {
    let text = node.as_text().unwrap_or_default();
    let end = text.find(['(', ',', '?', '|', '=']).unwrap_or(text.len());
    let (word, remark) = text.split_at_checked(end).unwrap_or_default();
    !remark.starts_with("??") && is_type(word.trim())
}

/// Returns whether every value is the word for a type, and no key asks for a type: `{"scene": "string", "fps": "int"}`.
pub(super) fn is_signature<'a>(pairs: impl Iterator<Item = &'a Pair> + Clone) -> bool {
    const ABOUT_TYPES: [&str; 9] = [
        "type", "kind", "format", "class", "datatype", "dtype", "schema", "language", "value",
    ];
    let mut stated = pairs.filter(|(_, node)| !node.is_empty());
    let Some((_, first)) = stated.clone().next() else {
        return false;
    };
    // A single word must be the type of a text: "list" and "function" may well be ordinary values.
    let is_text = |word: &str| word.starts_with("str") || word.starts_with("Str");
    let names_text = |node: &ParsedValue| node.as_text().is_some_and(is_text);
    let asks_for_type = |key: &str| {
        let is_about = |word: &String| ABOUT_TYPES.contains(&word.as_str());
        words(key).iter().any(is_about) || fold_key(key).ends_with("type")
    };
    (stated.clone().nth(1).is_some() || names_text(first))
        && stated.all(|(key, node)| is_type_with_remark(node) && !asks_for_type(key))
}

/// Returns whether some of these pairs form a signature, regardless of the others.
pub(super) fn holds_signature(pairs: &[&Pair]) -> bool {
    let pairs = pairs.iter().copied();
    is_signature(pairs.filter(|(_, node)| !node.is_empty() && is_type_with_remark(node)))
}

/// Returns whether pairs are a piece of a schema in the place of a value: `{"type": "string"}`.
pub(super) fn is_schema_of_value(pairs: &[Pair], kind: &ValueKind) -> bool {
    let names_type = value_of(pairs, "type").is_some_and(is_type_word);
    let is_schema = || {
        let mut keys = pairs.iter().map(|(key, _)| key.as_str());
        keys.all(|key| SCHEMA_KEYS.contains(&key))
    };
    if kind.takes_object() {
        let declared = matches!(kind, ValueKind::Object { fields, .. } if fields.iter().any(|field| field.name == "type"));
        return names_type && !declared && is_schema();
    }
    names_type || value_of(pairs, "description").is_some() || (!pairs.is_empty() && is_schema())
}

/// Returns whether an object at any depth states its type as schemas do.
pub(super) fn holds_schema(node: &ParsedValue) -> bool {
    node.any_inside(|key, inner| (key == "type" && is_type_word(inner)) || holds_schema(inner))
}

/// Returns whether the parameters of a call have values, as some models write them; those of a definition are a schema.
fn are_values(parameters: &ParsedValue) -> bool {
    let ParsedValue::Map(pairs) = parameters else {
        return false;
    };
    let declares = value_of(pairs, "properties").is_some() || holds_schema(parameters);
    !pairs.is_empty() && !declares && !is_signature(pairs.iter())
}

/// Returns whether pairs are a schema or a tool's definition in the place of arguments. `is_param` tells which keys are real
/// parameters.
pub(super) fn is_schema_of_arguments(pairs: &[Pair], is_param: &dyn Fn(&str) -> bool) -> bool {
    let get = |key: &str| value_of(pairs, key).filter(|_| !is_param(key));
    let has_any = |keys: &[&str]| keys.iter().any(|key| get(key).is_some());
    let carries_call = ["arguments", "args", "function"]
        .iter()
        .any(|key| matches!(get(key), Some(ParsedValue::Map(_) | ParsedValue::Text(_))));
    let holds_values = get("parameters").is_some_and(are_values);
    let carries_call = carries_call || holds_values;
    let names_type = get("type").is_some_and(is_type_word);
    let describes = has_any(&["description"]) && has_any(&["parameters", "name", "type"]);
    let declares = has_any(&["description"]) || (has_any(&["parameters"]) && !holds_values);
    let is_definition = names_type && (!carries_call || declares);
    is_definition
        || describes
        || matches!(get("properties"), Some(ParsedValue::Map(_) | ParsedValue::List(_)))
        || matches!(get("required"), Some(ParsedValue::List(_)))
        || has_any(&["$schema", "$ref", "$defs", "$id", "additionalProperties"])
        || is_signature(pairs.iter())
        // Other keys are ignored later, and must not hide that the parameters are a signature.
        || is_signature(pairs.iter().filter(|(key, _)| is_param(key)))
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_recognised() {
        for text in [
            "<scene-name>",
            "{scene}",
            "{{ scene }}",
            "${SCENE}",
            "...",
            "<your scene here>",
            "<function-name>",
            "%scene%",
        ] {
            assert!(is_template(text), "{text}");
        }
        for text in [
            "koi",
            "<",
            ">",
            "<=",
            "a < b > c",
            "<b>bold</b>",
            "{\"a\":1}",
            "100%",
            "5 > 3",
            "<3",
        ] {
            assert!(!is_template(text), "{text}");
        }
    }
}
