//! Adds, changes and removes declared tools in a node file's text. Everything else stays as it was written.

use std::path::Path;

use serde_json::Value as Json;
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, Value};

use super::ToolEntry;
use super::tools::TIMEOUT_S;

/// Reason why a node file's text cannot be changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NodeFileEditError {
    /// It is not TOML.
    #[error("the file is not TOML: {0}")]
    Toml(String),
    /// It has no such tool.
    #[error("the file declares no tool `{name}`. Valid: {}", known.join(", "))]
    Unknown {
        /// The requested name.
        name: String,
        /// The existing names.
        known: Vec<String>,
    },
    /// It has the tool already.
    #[error("the file already declares a tool `{0}`. Next: change it with `steadyhand tools set`")]
    Known(String),
    /// It is written in a form that cannot be edited without rewriting it.
    #[error(
        "`{0}` is not written as `[[{0}]]` tables, so no command can edit it. Next: rewrite it as such tables"
    )]
    Form(&'static str),
    /// It names the node already.
    #[error("the file already has a peer `{0}` in `[[peers]]`. Next: change or remove it by hand")]
    KnownPeer(String),
}

/// Returns the text with one more tool at its end.
///
/// # Errors
/// The text is not TOML, declares such a tool already, or has another form.
pub fn add(text: &str, tool: &ToolEntry) -> Result<String, NodeFileEditError> {
    let mut table = Table::new();
    write(&mut table, &Json::Null, &non_default_json(tool));
    append(text, "tools", &tool.name, table, NodeFileEditError::Known)
}

/// Returns the text with one more peer at its end.
///
/// # Errors
/// The text is not TOML, has such a node already, or has another form.
pub fn add_peer(
    text: &str,
    name: &str,
    address: &str,
    token_file: &Path,
) -> Result<String, NodeFileEditError> {
    let mut table = Table::new();
    let token_file = token_file.to_string_lossy();
    for (key, value) in [
        ("name", name),
        ("address", address),
        ("token_file", &token_file),
    ] {
        table.insert(key, Item::Value(value.into()));
    }
    append(text, "peers", name, table, NodeFileEditError::KnownPeer)
}

/// Returns the text with one more table of an array of tables at its end.
fn append(
    text: &str,
    key: &'static str,
    name: &str,
    mut table: Table,
    duplicate: fn(String) -> NodeFileEditError,
) -> Result<String, NodeFileEditError> {
    let mut document = parse(text)?;
    let is_first = document.iter().next().is_none();
    let tables = tables(&mut document, key)?;
    if names(tables).iter().any(|known| known == name) {
        return Err(duplicate(name.to_owned()));
    }
    if !is_first {
        table.decor_mut().set_prefix("\n");
    }
    tables.push(table);
    Ok(document.to_string())
}

/// Returns the text with a tool changed from `old` to `new`. Only what differs is rewritten.
///
/// # Errors
/// The text is not TOML, does not declare `old`, or has another form.
pub fn set(text: &str, old: &ToolEntry, new: &ToolEntry) -> Result<String, NodeFileEditError> {
    let mut document = parse(text)?;
    let tables = tables(&mut document, "tools")?;
    let index = find(tables, &old.name)?;
    if let Some(table) = tables.get_mut(index) {
        write(table, &non_default_json(old), &non_default_json(new));
    }
    Ok(document.to_string())
}

/// Returns the text without a tool and without the comment directly above it.
///
/// # Errors
/// The text is not TOML, does not declare the tool, or has another form.
pub fn remove(text: &str, name: &str) -> Result<String, NodeFileEditError> {
    let mut document = parse(text)?;
    let tables = tables(&mut document, "tools")?;
    let index = find(tables, name)?;
    let prefix = tables.get(index).map(prefix_of).unwrap_or_default();
    let kept = separate_paragraphs(&prefix).to_owned();
    tables.remove(index);
    let is_empty = tables.is_empty();
    if let Some(next) = tables.get_mut(index) {
        let prefix = format!("{kept}{}", prefix_of(next));
        next.decor_mut().set_prefix(prefix);
    } else {
        let trailing = document.trailing().as_str().unwrap_or_default().to_owned();
        document.set_trailing(format!("{kept}{trailing}"));
    }
    if is_empty {
        document.remove("tools");
    }
    Ok(document.to_string())
}

fn parse(text: &str) -> Result<DocumentMut, NodeFileEditError> {
    text.parse()
        .map_err(|error: toml_edit::TomlError| NodeFileEditError::Toml(error.to_string()))
}

fn tables<'a>(
    document: &'a mut DocumentMut,
    key: &'static str,
) -> Result<&'a mut ArrayOfTables, NodeFileEditError> {
    document
        .entry(key)
        .or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()))
        .as_array_of_tables_mut()
        .ok_or(NodeFileEditError::Form(key))
}

fn names(tables: &ArrayOfTables) -> Vec<String> {
    let name = |table: &Table| table.get("name")?.as_str().map(str::to_owned);
    tables.iter().filter_map(name).collect()
}

fn find(tables: &ArrayOfTables, name: &str) -> Result<usize, NodeFileEditError> {
    let has_name = |table: &Table| table.get("name").and_then(Item::as_str) == Some(name);
    let index = tables.iter().position(has_name);
    index.ok_or_else(|| NodeFileEditError::Unknown {
        name: name.to_owned(),
        known: names(tables),
    })
}

/// Returns the blank lines and comments before a table.
fn prefix_of(table: &Table) -> String {
    let prefix = table.decor().prefix().and_then(|prefix| prefix.as_str());
    prefix.unwrap_or_default().to_owned()
}

/// Returns the part of a table's prefix that a blank line separates from it, and so does not belong to it.
fn separate_paragraphs(prefix: &str) -> &str {
    let end = prefix.rfind("\n\n").map_or(0, |index| index + 1);
    let kept = prefix.get(..end).unwrap_or_default();
    if kept.contains('#') { kept } else { "" }
}

/// Writes the differences between two values of the same tool into a table.
fn write(table: &mut Table, old: &Json, new: &Json) {
    let (empty, old) = (serde_json::Map::new(), old.as_object());
    let old = old.unwrap_or(&empty);
    let Some(new) = new.as_object() else {
        return;
    };
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        table.remove(key);
    }
    for (key, json) in new.iter().filter(|(key, json)| old.get(*key) != Some(json)) {
        let Some(new_value) = value(json, key == "arguments" || key == "sequence") else {
            continue;
        };
        match table.get_mut(key).and_then(Item::as_value_mut) {
            // A comment after the old value stays after the new one.
            Some(existing) => {
                let decor = existing.decor().clone();
                *existing = new_value;
                *existing.decor_mut() = decor;
            }
            None => {
                table.insert(key, Item::Value(new_value));
            }
        }
    }
}

/// Returns a tool as JSON, without default values.
fn non_default_json(tool: &ToolEntry) -> Json {
    strip_defaults(serde_json::to_value(tool).unwrap_or_default())
}

fn strip_defaults(json: Json) -> Json {
    match json {
        Json::Object(map) => {
            let entries = map.into_iter();
            let kept = entries.filter(|(key, value)| !is_default(key, value));
            kept.map(|(key, value)| (key, strip_defaults(value)))
                .collect()
        }
        Json::Array(items) => items.into_iter().map(strip_defaults).collect(),
        other => other,
    }
}

fn is_default(key: &str, value: &Json) -> bool {
    match (key, value) {
        (_, Json::Null) | ("required", Json::Bool(false)) => true,
        ("args", Json::Array(items)) => items.is_empty(),
        ("fixed", Json::Object(map)) => map.is_empty(),
        ("timeout_s", value) => value.as_u64() == Some(TIMEOUT_S.into()),
        _ => false,
    }
}

/// Converts a JSON value to TOML; a list spans several lines if `is_multiline`. TOML has no null.
fn value(json: &Json, is_multiline: bool) -> Option<Value> {
    Some(match json {
        Json::Null => return None,
        Json::Bool(value) => (*value).into(),
        Json::Number(number) => match number.as_i64() {
            Some(integer) => integer.into(),
            None => number.as_f64()?.into(),
        },
        Json::String(text) => text.as_str().into(),
        Json::Array(items) => {
            let items = items.iter().filter_map(|item| value(item, false));
            let mut array: Array = items.collect();
            if is_multiline {
                for item in array.iter_mut() {
                    item.decor_mut().set_prefix("\n  ");
                }
                array.set_trailing("\n");
                array.set_trailing_comma(true);
            }
            array.into()
        }
        Json::Object(map) => {
            let pair = |(key, json): (&String, &Json)| Some((key.clone(), value(json, false)?));
            map.iter().filter_map(pair).collect::<InlineTable>().into()
        }
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use crate::NodeFile;

    const TEXT: &str = r#"# My node.
name = "bench" # the one by the window

# Tools of our own.

# Draws the sign.
[[tools]]
name = "sign"
description = "Draw the sign" # short
calls = "stroke"
fixed = { scene = "letters" }

# Looks twice.
[[tools]]
name = "look"
description = "Look twice"
sequence = [{ calls = "sense" }, { calls = "sense" }]
# the end
"#;

    fn tool(name: &str) -> ToolEntry {
        let node = NodeFile::read("node.toml", TEXT).unwrap();
        node.tools.into_iter().find(|one| one.name == name).unwrap()
    }

    #[test]
    fn a_tool_is_added_at_the_end_and_read_back() {
        let new = ToolEntry {
            name: "again".to_owned(),
            ..tool("sign")
        };
        let text = add(TEXT, &new).unwrap();
        assert!(
            text.starts_with(TEXT.trim_end_matches("# the end\n")),
            "{text}"
        );
        assert!(text.contains("# the end"), "{text}");
        let read = NodeFile::read("node.toml", &text).unwrap();
        assert_eq!(read.tools.last(), Some(&new));
        assert_eq!(
            add(&text, &new),
            Err(NodeFileEditError::Known("again".to_owned()))
        );
        let alone = add("", &new).unwrap();
        assert!(
            alone.starts_with("[[tools]]\nname = \"again\"\n"),
            "{alone}"
        );
    }

    #[test]
    fn only_what_changes_is_written() {
        let old = tool("sign");
        let new = ToolEntry {
            description: "Draw it".to_owned(),
            title: Some("Sign".to_owned()),
            ..old.clone()
        };
        let text = set(TEXT, &old, &new).unwrap();
        let expected = TEXT.replace("\"Draw the sign\"", "\"Draw it\"").replace(
            "scene = \"letters\" }\n",
            "scene = \"letters\" }\ntitle = \"Sign\"\n",
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn a_removed_tool_takes_its_own_comment_and_no_other() {
        let text = remove(TEXT, "sign").unwrap();
        assert!(!text.contains("Draws the sign"), "{text}");
        for kept in [
            "# My node.",
            "by the window",
            "# Tools of our own.",
            "# Looks twice.",
            "# the end",
        ] {
            assert!(text.contains(kept), "{kept} in {text}");
        }
        let none = remove(&text, "look").unwrap();
        assert!(
            none.contains("# Tools of our own.") && none.contains("# the end"),
            "{none}"
        );
        assert_eq!(NodeFile::read("node.toml", &none).unwrap().tools, []);
        let error = remove(TEXT, "lok").unwrap_err().to_string();
        assert!(error.contains("sign, look"), "{error}");
    }

    #[test]
    fn another_form_is_not_rewritten() {
        let text = "tools = []\n";
        assert_eq!(
            add(text, &tool("sign")),
            Err(NodeFileEditError::Form("tools"))
        );
    }
}
