//! What a key or a value is about, where no parameter says so: templates, echoes of a schema, physical words, frameworks' keys.

use super::{name, node::Node, shape::Kind};

/// Keys that frameworks add; the server supplies their like itself.
const FRAMEWORK: [&str; 8] = [
    "ctx",
    "context",
    "mcpcontext",
    "toolcontext",
    "runcontext",
    "mcpctx",
    "callcontext",
    "requestcontext",
];
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
/// Keys that hold a whole call.
const CALLS: [&str; 5] = ["toolcall", "functioncall", "function", "call", "toolcalls"];
/// Keys that name a tool.
const TOOL_NAMES: [&str; 8] = [
    "name",
    "tool",
    "toolname",
    "function",
    "functionname",
    "action",
    "method",
    "api",
];
/// Keys that stand beside a call's name and arguments.
const BESIDE: [&str; 8] = [
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
/// Words which say that something physical is meant.
const PHYSICAL: [&str; 61] = [
    "depth",
    "speed",
    "velocity",
    "force",
    "pressure",
    "angle",
    "x",
    "y",
    "z",
    "xyz",
    "size",
    "scale",
    "scaling",
    "repeat",
    "repeats",
    "repetitions",
    "times",
    "count",
    "unit",
    "units",
    "mm",
    "cm",
    "m",
    "deg",
    "rad",
    "degrees",
    "radians",
    "inch",
    "inches",
    "meters",
    "metres",
    "radius",
    "diameter",
    "width",
    "height",
    "length",
    "distance",
    "offset",
    "position",
    "pose",
    "rotate",
    "rotation",
    "orientation",
    "arm",
    "joint",
    "torque",
    "acceleration",
    "accel",
    "power",
    "voltage",
    "current",
    "temperature",
    "duration",
    "delay",
    "frequency",
    "rate",
    "feed",
    "needle",
    "thickness",
    "target",
    "steps",
];

/// A key's letters and digits in lower case.
pub(super) fn fold_key(key: &str) -> String {
    key.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

/// Whether two keys are alike when only letters and digits count; nothing is allocated.
pub(super) fn same_key(a: &str, b: &str) -> bool {
    fn letters(key: &str) -> impl Iterator<Item = char> {
        key.chars()
            .filter(|c| c.is_alphanumeric())
            .flat_map(char::to_lowercase)
    }
    letters(a).eq(letters(b))
}

pub(super) fn is_framework(key: &str) -> bool {
    FRAMEWORK.contains(&fold_key(key).as_str())
}

pub(super) fn is_wrapper(key: &str) -> bool {
    WRAPPERS.contains(&fold_key(key).as_str())
}

/// An envelope with something in it that can be opened.
pub(super) fn is_envelope(key: &str, value: &Node) -> bool {
    let holds_object = match value {
        Node::Map(pairs) => !pairs.is_empty(),
        Node::List(items) => matches!(items.as_slice(), [Node::Map(_)]),
        Node::Text(text) => text.trim_start().starts_with(['{', '[']),
        _ => false,
    };
    holds_object && is_wrapper(key)
}

pub(super) fn is_call(key: &str, value: &Node) -> bool {
    CALLS.contains(&fold_key(key).as_str()) && matches!(value, Node::Map(_) | Node::List(_))
}

pub(super) fn is_tool_name(key: &str) -> bool {
    TOOL_NAMES.contains(&fold_key(key).as_str())
}

pub(super) fn stands_beside_a_call(key: &str) -> bool {
    BESIDE.contains(&fold_key(key).as_str())
}

/// Whether one of the words in a key, split at case and punctuation, is physical.
pub(super) fn is_physical(key: &str) -> bool {
    words(key)
        .iter()
        .any(|word| PHYSICAL.contains(&word.as_str()))
        || PHYSICAL.contains(&name::fold(key).as_str())
}

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
    words
}

/// `<scene-name>`, `{scene}`, `{{scene}}`, `${scene}`, `[scene name]`-like stand-ins and dots.
pub(super) fn is_template(text: &str) -> bool {
    let text = text.trim();
    let between = |open: &str, close: &str| {
        text.strip_prefix(open)
            .and_then(|rest| rest.strip_suffix(close))
            .is_some_and(is_stand_in)
    };
    between("<", ">")
        || between("{{", "}}")
        || between("${", "}")
        || between("{", "}")
        || between("%", "%")
        || matches!(text, "..." | "…" | "<>" | "{}")
}

fn is_stand_in(inner: &str) -> bool {
    let inner = inner.trim();
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-' | '.' | '|' | '?');
    inner.starts_with(char::is_alphabetic) && inner.len() <= 80 && inner.chars().all(allowed)
        || inner == "..."
        || inner == "…"
}

pub(super) fn is_type_word(node: &Node) -> bool {
    let (Node::Text(text) | Node::Word(text)) = node else {
        return false;
    };
    TYPES.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// A piece of a schema where a value should be: `{"type": "string"}`.
pub(super) fn is_schema_of_value(pairs: &[(String, Node)], kind: &Kind) -> bool {
    let get = |key: &str| pairs.iter().find(|(k, _)| k == key).map(|(_, node)| node);
    let names_type = get("type").is_some_and(is_type_word);
    if kind.takes_object() {
        let declared = matches!(kind, Kind::Object { fields, .. } if fields.iter().any(|field| field.name == "type"));
        return names_type
            && !declared
            && pairs
                .iter()
                .all(|(key, _)| SCHEMA_KEYS.contains(&key.as_str()));
    }
    names_type
        || get("description").is_some()
        || (!pairs.is_empty()
            && pairs
                .iter()
                .all(|(key, _)| SCHEMA_KEYS.contains(&key.as_str())))
}

/// Whether some object inside says its type as schemas do.
pub(super) fn holds_schema(node: &Node) -> bool {
    match node {
        Node::Map(pairs) => pairs
            .iter()
            .any(|(key, value)| (key == "type" && is_type_word(value)) || holds_schema(value)),
        Node::List(items) => items.iter().any(holds_schema),
        _ => false,
    }
}

/// A schema or a tool's definition where arguments should be. `is_param` says which keys are really parameters.
pub(super) fn is_schema_of_arguments(
    pairs: &[(String, Node)],
    is_param: &dyn Fn(&str) -> bool,
) -> bool {
    let get = |key: &str| {
        pairs
            .iter()
            .find(|(k, _)| k == key && !is_param(k))
            .map(|(_, node)| node)
    };
    let carries_call = ["arguments", "args", "function"]
        .iter()
        .any(|key| matches!(get(key), Some(Node::Map(_) | Node::Text(_))));
    let names_type = get("type").is_some_and(is_type_word);
    let describes = get("description").is_some()
        && (get("parameters").is_some() || get("name").is_some() || get("type").is_some());
    let is_definition = names_type
        && !(carries_call && get("description").is_none() && get("parameters").is_none());
    is_definition
        || describes
        || matches!(get("properties"), Some(Node::Map(_) | Node::List(_)))
        || get("$schema").is_some()
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
    fn physical_words_are_found_in_keys() {
        for key in [
            "depth",
            "needle_depth",
            "penSpeed",
            "X",
            "force_n",
            "scale_in_radius",
            "repeat",
            "size-mm",
            "Angle",
        ] {
            assert!(is_physical(key), "{key}");
        }
        for key in [
            "style", "note", "comment", "exact", "maximal", "reason", "tag",
        ] {
            assert!(!is_physical(key), "{key}");
        }
    }

    #[test]
    fn templates_are_seen() {
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
