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
const CALLS: [&str; 9] = [
    "toolcall",
    "functioncall",
    "function",
    "call",
    "toolcalls",
    "tooluse",
    "tooluses",
    "functioncalls",
    "toolcallrequest",
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
/// Keys that stand beside a call's name and arguments.
const BESIDE: [&str; 9] = [
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

/// A key without what a signature or a path puts around it: `scene (string)`, `args.scene`, `stroke.scene`.
pub(super) fn without_remark(key: &str) -> &str {
    let bare = key.split_once(" (").map_or(key, |(name, _)| name);
    let prefix = bare.rsplit_once('.');
    prefix
        .filter(|(prefix, name)| is_wrapper(prefix) && !name.is_empty())
        .map_or(bare, |(_, name)| name)
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
        Node::List(items) => {
            let is_pair = |item: &Node| matches!(item, Node::List(pair) if matches!(pair.as_slice(), [Node::Text(_), _]));
            matches!(items.as_slice(), [Node::Map(_)])
                || (!items.is_empty() && items.iter().all(is_pair))
        }
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

/// `<scene-name>`, `{scene}`, `{{scene}}`, `${scene}`, `<%= scene %>`, `%s` and dots: what a prompt has where a value goes.
pub(super) fn is_template(text: &str) -> bool {
    let text = text.trim();
    if text.len() > STAND_IN_BYTES_MAX {
        return false;
    }
    let between = |open: &str, close: &str| {
        let inner = text
            .strip_prefix(open)
            .and_then(|rest| rest.strip_suffix(close));
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
    PAIRS.iter().any(|(open, close)| between(open, close)) || WHOLE.contains(&text)
}

/// Longest stand-in: what is longer is text in brackets.
const STAND_IN_BYTES_MAX: usize = 80;

/// Words such as a stand-in is made of; between angle brackets a remark may follow the name.
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

/// A parameter's own name dressed up as a value: `$scene`, `[scene name]`, `__SCENE__`.
/// Words such as `YOUR_SCENE` are left alone: a text parameter may well be meant to hold them.
pub(super) fn is_dressed_name(text: &str, name: &str) -> bool {
    let text = text.trim();
    let first = text.chars().next().unwrap_or_default();
    if text.len() > STAND_IN_BYTES_MAX || first.is_alphanumeric() {
        return false;
    }
    let marks = |c: char| {
        matches!(
            c,
            '$' | '@' | '#' | '[' | ']' | '*' | '«' | '»' | ':' | '%' | '!'
        )
    };
    let bare = text.trim_matches(marks);
    let bare = bare
        .strip_prefix("__")
        .and_then(|rest| rest.strip_suffix("__"))
        .unwrap_or(bare);
    let (folded, name) = (fold_key(bare), fold_key(name));
    let stem = ["name", "value", "id"]
        .iter()
        .find_map(|word| folded.strip_suffix(word));
    bare.len() < text.len() && !name.is_empty() && (folded == name || stem == Some(name.as_str()))
}

/// `{"<key>": "<value>"}`, `{"arg1": "<value>"}`, `{"key": "value"}`: a pair that a prompt has where arguments go.
pub(super) fn is_template_pair(key: &str, value: &Node) -> bool {
    const KEYS: [&str; 7] = [
        "key",
        "parametername",
        "paramname",
        "argname",
        "argumentname",
        "parameter",
        "arg",
    ];
    let is_text = |node: &Node, test: &dyn Fn(&str) -> bool| matches!(node, Node::Text(text) | Node::Word(text) if test(text));
    is_template(key)
        || is_text(value, &is_template)
        || (KEYS.contains(&fold_key(key).as_str())
            && is_text(value, &|text| fold_key(text).ends_with("value")))
}

pub(super) fn is_type_word(node: &Node) -> bool {
    let (Node::Text(text) | Node::Word(text)) = node else {
        return false;
    };
    TYPES.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// A type with a remark, as signatures have it: `string (optional)`, `integer?`, `str, required`.
fn is_type_with_remark(node: &Node) -> bool {
    let (Node::Text(text) | Node::Word(text)) = node else {
        return false;
    };
    let end = text.find(['(', ',', '?', '|', '=']).unwrap_or(text.len());
    let word = text.get(..end).unwrap_or_default().trim();
    TYPES.iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// Every value is the word for a type, and no key says that types are what is asked for: `{"scene": "string", "fps": "int"}`.
pub(super) fn is_signature(pairs: &[(String, Node)]) -> bool {
    const ABOUT_TYPES: [&str; 9] = [
        "type", "kind", "format", "class", "datatype", "dtype", "schema", "language", "value",
    ];
    let said: Vec<_> = pairs.iter().filter(|(_, node)| !node.is_empty()).collect();
    !said.is_empty()
        && said.iter().all(|(key, node)| {
            is_type_with_remark(node)
                && !words(key)
                    .iter()
                    .any(|word| ABOUT_TYPES.contains(&word.as_str()))
                && !fold_key(key).ends_with("type")
        })
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
        || matches!(get("required"), Some(Node::List(_)))
        || ["$schema", "$ref", "$defs", "$id", "additionalProperties"]
            .iter()
            .any(|key| get(key).is_some())
        || is_signature(pairs)
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
