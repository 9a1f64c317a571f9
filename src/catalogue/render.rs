//! The catalogue in formats for prompts, people and documents.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::help_page::page;
use super::{KnownNames, ListedTool, list};

/// Output format of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CatalogueFormat {
    /// For a terminal.
    Text,
    /// For a document.
    Markdown,
    /// As the protocol lists it.
    Json,
    /// As the chat completions API takes it.
    Openai,
    /// As the Hermes prompt format has it: one function per line between tags.
    Hermes,
    /// As a page: a table, then everything about each tool.
    Page,
}

impl CatalogueFormat {
    /// Every format, by name.
    pub const ALL: [(&'static str, Self); 6] = [
        ("text", Self::Text),
        ("markdown", Self::Markdown),
        ("json", Self::Json),
        ("openai", Self::Openai),
        ("hermes", Self::Hermes),
        ("page", Self::Page),
    ];

    /// Writes the list of this node's tools.
    #[must_use]
    pub fn render(self, known: &KnownNames) -> String {
        let tools = list(known);
        let texts = |of: fn(&ListedTool) -> String| tools.iter().map(of).collect::<Vec<_>>();
        let values = |of: fn(&ListedTool) -> Value| tools.iter().map(of).collect::<Value>();
        match self {
            Self::Text => texts(text).join("\n"),
            Self::Markdown => texts(markdown).join("\n"),
            Self::Json => pretty(&json!({"tools": values(listed)})),
            Self::Openai => pretty(&values(function)),
            Self::Hermes => hermes(&tools),
            Self::Page => page(known),
        }
    }
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

/// Returns a tool as the protocol lists it.
fn listed(tool: &ListedTool) -> Value {
    json!({
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "annotations": {
            "readOnlyHint": tool.hints.read_only,
            "destructiveHint": tool.hints.destructive,
            "idempotentHint": tool.hints.idempotent,
            "openWorldHint": tool.hints.open_world,
        },
        "outputSchema": tool.output_schema,
    })
}

fn function(tool: &ListedTool) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.input_schema,
        },
    })
}

fn hermes(tools: &[ListedTool]) -> String {
    let mut out = String::from("<tools>\n");
    for tool in tools {
        let _ = writeln!(out, "{}", function(tool));
    }
    out.push_str("</tools>\n");
    out
}

/// A parameter of a listed tool, read back from its schema, so that the printed text matches what is sent.
struct ListedParameter<'a> {
    name: &'a str,
    kind: &'a str,
    is_required: bool,
    words: &'a str,
    values: Vec<&'a str>,
}

fn listed_parameters(schema: &Map<String, Value>) -> Vec<ListedParameter<'_>> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let required = schema.get("required").and_then(Value::as_array);
    let all = properties.into_iter().flatten().map(|(name, property)| {
        let text = |key: &str| property.get(key).and_then(Value::as_str);
        let values = property.get("enum").and_then(Value::as_array);
        let values = values.into_iter().flatten().filter_map(Value::as_str);
        ListedParameter {
            name,
            kind: text("type").unwrap_or_default(),
            is_required: required.is_some_and(|names| names.iter().any(|one| one == name)),
            words: text("description").unwrap_or_default(),
            values: values.collect(),
        }
    });
    all.collect()
}

fn text(tool: &ListedTool) -> String {
    let size = tool.description.len() + Value::Object(tool.input_schema.clone()).to_string().len();
    let mut out = format!("{}  ({size} bytes)\n  {}\n", tool.name, tool.summary);
    for parameter in listed_parameters(&tool.input_schema) {
        let ListedParameter {
            name, kind, words, ..
        } = parameter;
        let required = if parameter.is_required {
            "required"
        } else {
            "optional"
        };
        let _ = writeln!(out, "  {name} ({kind}, {required}): {words}");
        if !parameter.values.is_empty() {
            let _ = writeln!(out, "    one of {}", parameter.values.join(", "));
        }
    }
    out
}

fn markdown(tool: &ListedTool) -> String {
    let mut out = format!("### `{}`\n\n{}\n", tool.name, tool.summary);
    let parameters = listed_parameters(&tool.input_schema);
    if parameters.is_empty() {
        return out;
    }
    out.push_str("\n| parameter | type | required | meaning | values |\n|---|---|---|---|---|\n");
    for parameter in parameters {
        let ListedParameter {
            name, kind, words, ..
        } = parameter;
        let required = if parameter.is_required { "yes" } else { "no" };
        let values = parameter.values.iter().map(|value| format!("`{value}`"));
        let values = values.collect::<Vec<_>>().join(" ");
        let _ = writeln!(
            out,
            "| `{name}` | {kind} | {required} | {words} | {values} |"
        );
    }
    out
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use super::super::{TOOLS, test_names};
    use super::{CatalogueFormat, Value};

    #[test]
    fn every_format_names_every_tool_and_its_values() {
        for (name, format) in CatalogueFormat::ALL {
            let out = format.render(&test_names());
            for tool in TOOLS.iter() {
                assert!(out.contains(&tool.name), "{name}");
            }
            assert!(out.contains("robot_stroke"), "{name}");
            // A page shows what is always true, not the scenes that exist now.
            assert!(
                format == CatalogueFormat::Page || out.contains("two_pens"),
                "{name}"
            );
        }
    }

    #[test]
    fn what_machines_read_is_json() {
        let openai: Value =
            serde_json::from_str(&CatalogueFormat::Openai.render(&test_names())).unwrap();
        assert_eq!(openai[3]["function"]["name"], "stroke");
        let hermes = CatalogueFormat::Hermes.render(&test_names());
        let lines: Vec<&str> = hermes.lines().collect();
        assert_eq!(lines.len(), 14);
        for line in &lines[1..13] {
            serde_json::from_str::<Value>(line).unwrap();
        }
    }
}
