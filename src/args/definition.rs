//! Tool definitions that a model repeats in the place of a call.

use super::heuristics::is_schema_of_arguments;
use super::parsed_value::ParsedValue;
use super::quote::QuoteMatching;
use super::tolerant::TolerantParser;

/// Deepest wrapper around a definition that is looked into.
const WRAPPERS_MAX: usize = 3;

/// Keys whose value holds a definition.
const WRAPPERS: [&str; 3] = ["function", "tool", "tools"];

/// Keys of a definition whose value is a schema.
const SCHEMAS: [&str; 4] = ["parameters", "inputSchema", "input_schema", "schema"];

/// Returns whether the first object of a text defines a tool, whole or cut off, and so calls none.
#[must_use]
pub fn is_tool_definition(text: &str) -> bool {
    let Some(start) = text.find('{') else {
        return false;
    };
    [QuoteMatching::Exact, QuoteMatching::Loose]
        .into_iter()
        .any(|quotes| {
            let mut parser = TolerantParser::new(text, start, quotes);
            let parsed = parser.value(0);
            matches!(parsed, Ok(Some(node)) if defines(&node, parser.cut, 0))
        })
}

fn defines(node: &ParsedValue, is_cut: bool, depth: usize) -> bool {
    match node {
        ParsedValue::List(items) => items
            .first()
            .is_some_and(|item| defines(item, is_cut, depth)),
        ParsedValue::Map(pairs) if depth < WRAPPERS_MAX => {
            let holds_schema = |(key, value): &(String, ParsedValue)| {
                SCHEMAS.contains(&key.as_str())
                    && matches!(value, ParsedValue::Map(inner) if is_schema_of_arguments(inner, &|_| false))
            };
            let wraps = |(key, value): &(String, ParsedValue)| {
                WRAPPERS.contains(&key.as_str()) && defines(value, is_cut, depth + 1)
            };
            let echoes = |(key, value): &(String, ParsedValue)| {
                key == "arguments"
                    && matches!(value, ParsedValue::Map(inner) if describes(inner, is_cut))
            };
            is_schema_of_arguments(pairs, &|_| false)
                || pairs.iter().any(echoes)
                || pairs.iter().any(holds_schema)
                || pairs.iter().any(wraps)
        }
        _ => false,
    }
}

/// Returns whether arguments are what a schema says of one, not one: a type with its description, which may be cut off.
fn describes(arguments: &[(String, ParsedValue)], is_cut: bool) -> bool {
    let has = |key: &str| arguments.iter().any(|(own, _)| own == key);
    has("type")
        && (is_cut || has("description") || has("properties"))
        && is_schema_of_arguments(arguments, &|_| false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_told_from_a_call_even_where_it_breaks_off() {
        let whole = r#"{"type":"function","function":{"name":"stroke","description":"Draws.","parameters":{"type":"object","properties":{"scene":{"type":"string"}}}}}"#;
        // Before that it is a name alone, and calls nothing either.
        let described = whole.find(",\"parameters").unwrap_or_default();
        for end in described..=whole.len() {
            let text = whole.get(..end).unwrap_or_default();
            assert!(is_tool_definition(text), "{text}");
        }
        for text in [
            whole.replace("\"description\":\"Draws.\",", ""),
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
