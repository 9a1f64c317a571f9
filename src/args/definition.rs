//! Recognises tool definitions that a model repeats instead of making a call.

use super::heuristics::is_schema_of_arguments;
use super::parsed_value::{Pair, ParsedValue, value_of};
use super::tolerant;

/// Most wrappers around a definition that are opened.
const WRAPPERS_MAX: usize = 3;

/// Keys whose value holds a definition.
const WRAPPERS: [&str; 3] = ["function", "tool", "tools"];

/// Keys of a definition whose value is a schema.
const SCHEMAS: [&str; 4] = ["parameters", "inputSchema", "input_schema", "schema"];

/// Returns whether the first object of a text, complete or cut off, defines a tool instead of calling one.
#[must_use]
pub fn is_tool_definition(text: &str) -> bool {
    let found = text.find('{').into_iter();
    found
        .flat_map(|start| tolerant::values(text, start))
        .any(|(node, parser)| node.is_some_and(|node| defines(&node, parser.cut, 0)))
}

fn defines(node: &ParsedValue, is_cut: bool, depth: usize) -> bool {
    match node {
        ParsedValue::List(items) => items
            .first()
            .is_some_and(|item| defines(item, is_cut, depth)),
        ParsedValue::Map(pairs) if depth < WRAPPERS_MAX => {
            let holds_definition = |(key, value): &Pair| match (key.as_str(), value) {
                ("arguments", ParsedValue::Map(inner)) => is_argument_schema(inner, is_cut),
                (key, ParsedValue::Map(inner)) if SCHEMAS.contains(&key) => is_schema(inner),
                (key, value) => WRAPPERS.contains(&key) && defines(value, is_cut, depth + 1),
            };
            is_schema(pairs) || pairs.iter().any(holds_definition)
        }
        _ => false,
    }
}

fn is_schema(pairs: &[Pair]) -> bool {
    is_schema_of_arguments(pairs, &|_| false)
}

/// Returns whether arguments are the schema of an argument: a type with its description, which may be cut off.
fn is_argument_schema(arguments: &[Pair], is_cut: bool) -> bool {
    let has = |key: &str| value_of(arguments, key).is_some();
    has("type") && (is_cut || has("description") || has("properties")) && is_schema(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_recognised_even_if_it_breaks_off() {
        let definition = r#"{"type":"function","function":{"name":"stroke","description":"Draws.","parameters":{"type":"object","properties":{"scene":{"type":"string"}}}}}"#;
        // Before that it is a name alone, and calls nothing either.
        let described = definition.find(",\"parameters").unwrap_or_default();
        for end in described..=definition.len() {
            let text = definition.get(..end).unwrap_or_default();
            assert!(is_tool_definition(text), "{text}");
        }
        for text in [
            definition.replace("\"description\":\"Draws.\",", ""),
            r#"{"name":"align","arguments":{"type":"string","description":"run the calibr"#
                .to_owned(),
            r#"{"name":"align","arguments":{"type":"object","properties":{}}}"#.to_owned(),
            r#"{"name":"stroke","inputSchema":{"type":"object","properties":{"sc"#.to_owned(),
        ] {
            assert!(is_tool_definition(&text), "{text}");
        }
        for call in [
            r#"{"name":"stroke","arguments":{"scene":"koi"}}"#,
            r#"{"name":"stroke","parameters":{"scene":"koi""#,
            r#"{"id":"1","type":"function","function":{"name":"stroke","arguments":"{}"}}"#,
            r#"{"tool":"stroke","args":{"scene":"koi","dry_run":true}}"#,
            r#"{"name":"convert","arguments":{"type":"float","value":3}}"#,
            "no object",
        ] {
            assert!(!is_tool_definition(call), "{call}");
        }
    }
}
