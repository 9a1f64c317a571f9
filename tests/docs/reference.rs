//! Tables of reference that are made from the program: its commands, the keys of scenes and of node files; and that the page of
//! codes has every code of an answer.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use clap::{Arg, Command, CommandFactory};
use serde_json::Value;
use steadyhand::cli::Cli;
use steadyhand::config::NodeFile;

/// Checks that a page has a table as it is made, or writes it there if that is asked for.
fn check_table(page: &str, name: &str, made: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("docs")
        .join(page);
    let text = std::fs::read_to_string(&path).unwrap();
    let begins =
        format!("<!-- {name}: REWRITE_SNAPSHOTS=1 cargo test --test docs reference:: -->\n");
    let ends = "<!-- end -->\n";
    let missing = || panic!("{page} has no place for {name}: {begins}{ends}");
    let (before, rest) = text.split_once(&begins).unwrap_or_else(missing);
    let (kept, after) = rest.split_once(ends).unwrap_or_else(missing);
    if std::env::var_os("REWRITE_SNAPSHOTS").is_some_and(|set| set == "1") {
        std::fs::write(path, format!("{before}{begins}{made}{ends}{after}")).unwrap();
    } else {
        assert_eq!(kept, made, "{page} is out of date: {begins}");
    }
}

#[test]
fn the_sheet_of_fonts_is_as_it_is_made() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/fonts.svg");
    let made = steadyhand::design::letters::specimen();
    if std::env::var_os("REWRITE_SNAPSHOTS").is_some_and(|set| set == "1") {
        std::fs::write(path, made).unwrap();
    } else {
        let is_same = std::fs::read_to_string(path).is_ok_and(|kept| kept == made);
        assert!(is_same, "docs/fonts.svg is out of date");
    }
}

/// Writes text for a cell: one line, without bars.
fn cell(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.replace('|', "/")
}

/// Options that every command to a running node takes; the page says so once.
const TO_A_NODE: [&str; 3] = ["socket", "node", "token-file"];

fn is_listed(argument: &&Arg) -> bool {
    let named = argument.get_long().unwrap_or_default();
    !argument.is_hide_set() && !TO_A_NODE.contains(&named)
}

fn argument_word(argument: &Arg) -> String {
    match argument.get_long() {
        Some(long) => format!("`--{long}`"),
        None => format!("`{}`", argument.get_id().as_str().to_uppercase()),
    }
}

/// Least number of arguments that are not listed again where another command of the group takes the same.
const SAME_ARGUMENTS: usize = 5;

fn command_rows(path: &str, command: &Command, into: &mut String) {
    let mut listed: Vec<(String, String)> = Vec::new();
    for inner in command
        .get_subcommands()
        .filter(|inner| !inner.is_hide_set())
    {
        let name = format!("{path}{}", inner.get_name());
        let words: Vec<String> = inner
            .get_arguments()
            .filter(is_listed)
            .map(argument_word)
            .collect();
        let about = cell(
            &inner
                .get_about()
                .map(ToString::to_string)
                .unwrap_or_default(),
        );
        // A group that takes nothing itself is named by its commands.
        let is_group = words.is_empty() && inner.has_subcommands();
        if !is_group {
            let takes = words.join(" ");
            let same = listed.iter().find(|(_, of)| *of == takes);
            let shown = match same.filter(|_| words.len() >= SAME_ARGUMENTS) {
                Some((other, _)) => format!("as `{other}`"),
                None => takes.clone(),
            };
            let _ = writeln!(into, "| `{name}` | {about} | {shown} |");
            listed.push((name.clone(), takes));
        }
        command_rows(&format!("{name} "), inner, into);
    }
}

#[test]
fn the_tables_of_commands_are_those_of_the_program() {
    let program = Cli::command();
    let mut commands = "| command | what it does | takes |\n|---|---|---|\n".to_owned();
    command_rows("", &program, &mut commands);
    check_table("commands.md", "commands", &commands);
    let mut options = "| option | meaning |\n|---|---|\n".to_owned();
    for option in program
        .get_arguments()
        .filter(|option| !option.is_hide_set())
    {
        let help = option
            .get_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        let _ = writeln!(options, "| {} | {} |", argument_word(option), cell(&help));
    }
    check_table("commands.md", "options of every command", &options);
}

/// A schema whose parts become tables.
struct Keys<'a> {
    root: &'a Value,
    /// Headings and rows of the tables that follow.
    tables: String,
}

impl<'a> Keys<'a> {
    fn follow(&self, schema: &'a Value) -> &'a Value {
        let found = schema["$ref"]
            .as_str()
            .map(|path| path.trim_start_matches('#'));
        match found.and_then(|path| self.root.pointer(path)) {
            Some(found) => self.follow(found),
            None => match schema["anyOf"].as_array() {
                // An option is its type or null; of several types the last says most.
                Some(kinds) => {
                    let kind = kinds.iter().rev().find(|kind| kind["type"] != "null");
                    self.follow(kind.unwrap_or(schema))
                }
                None => schema,
            },
        }
    }

    fn kind(&self, schema: &'a Value) -> String {
        if let Some(kinds) = schema["anyOf"].as_array() {
            let kinds = kinds.iter().filter(|kind| kind["type"] != "null");
            let kinds: Vec<String> = kinds.map(|kind| self.kind(kind)).collect();
            return kinds.join(" or ");
        }
        if schema["$ref"].is_string() {
            let inner = self.target(schema);
            return self.kind(inner);
        }
        if let Some(choices) = self.choices(schema) {
            return choices;
        }
        let names = schema["type"].as_array().into_iter().flatten();
        let mut names = names.chain([&schema["type"]]).filter_map(Value::as_str);
        let items = &schema["items"];
        let kind = match names.find(|name| *name != "null") {
            Some("string") => "text",
            Some("object") => "table",
            Some("array") if items["items"].is_object() => "lists",
            Some("array") if self.choices(self.target(items)).is_some() => {
                return self.kind(items);
            }
            Some("array") => match self.kind(items).as_str() {
                "text" => "texts",
                "table" => "tables",
                "number" | "integer" => "numbers",
                _ => "list",
            },
            Some(name) => name,
            None => "any",
        };
        kind.to_owned()
    }

    /// What a reference leads to, and anything else itself.
    fn target(&self, schema: &'a Value) -> &'a Value {
        let path = schema["$ref"]
            .as_str()
            .map(|path| path.trim_start_matches('#'));
        path.and_then(|path| self.root.pointer(path))
            .unwrap_or(schema)
    }

    fn choices(&self, schema: &Value) -> Option<String> {
        let words = |list: &Value| -> Option<Vec<String>> {
            let list = list.as_array()?.iter();
            list.map(|one| one["const"].as_str().or(one.as_str()).map(str::to_owned))
                .collect()
        };
        let words = words(&schema["oneOf"]).or_else(|| words(&schema["enum"]))?;
        let quoted: Vec<String> = words.iter().map(|word| format!("`\"{word}\"`")).collect();
        Some(quoted.join(", "))
    }

    /// Writes the table of one part, then those of its parts.
    fn table(&mut self, heading: &str, path: &str, part: &'a Value) {
        let _ = writeln!(self.tables, "{heading}");
        self.tables
            .push_str("| key | value | default | meaning |\n|---|---|---|---|\n");
        let required: BTreeSet<&str> = part["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let properties = part["properties"].as_object().unwrap();
        for (key, schema) in properties {
            let mut meaning = schema["description"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            let choices = self.follow(schema)["oneOf"]
                .as_array()
                .into_iter()
                .flatten();
            for choice in choices {
                if let (Some(word), Some(text)) =
                    (choice["const"].as_str(), choice["description"].as_str())
                {
                    let _ = write!(meaning, " `{word}`: {text}");
                }
            }
            let default = match (&schema["default"], required.contains(key.as_str())) {
                (_, true) => "required".to_owned(),
                (Value::Null | Value::Object(_), _) => String::new(),
                (Value::Array(items), _) if items.is_empty() => String::new(),
                (value, _) => format!("`{value}`"),
            };
            let kind = self.kind(schema);
            let _ = writeln!(
                self.tables,
                "| `{key}` | {kind} | {default} | {} |",
                cell(&meaning)
            );
        }
        let mut parts: Vec<(Vec<String>, String, &'a Value)> = Vec::new();
        for (key, schema) in properties {
            let inner = self.follow(schema);
            let listed = self.follow(&inner["items"]);
            let named = self.follow(&inner["additionalProperties"]);
            let path = format!("{path}{key}");
            let (heading, part) = if inner["properties"].is_object() {
                (format!("`[{path}]`"), inner)
            } else if listed["properties"].is_object() {
                (format!("`[[{path}]]`"), listed)
            } else if named["properties"].is_object() {
                (format!("`[{path}.NAME]`"), named)
            } else {
                continue;
            };
            match parts
                .iter_mut()
                .find(|(_, _, same)| std::ptr::eq(*same, part))
            {
                Some((headings, ..)) => headings.push(heading),
                None => parts.push((vec![heading], path, part)),
            }
        }
        for (headings, path, part) in parts {
            let heading = format!("\n## {}\n", headings.join(", "));
            self.table(&heading, &format!("{path}."), part);
        }
    }

    fn tables(root: &'a Value) -> String {
        let mut keys = Keys {
            root,
            tables: String::new(),
        };
        keys.table("", "", root);
        keys.tables
    }
}

#[test]
fn the_keys_of_scenes_are_those_of_their_schema() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes/scene.schema.json");
    let schema = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    check_table("scene-keys.md", "keys of scenes", &Keys::tables(&schema));
}

#[test]
fn the_keys_of_node_files_are_those_that_are_read() {
    let schema = schemars::schema_for!(NodeFile).to_value();
    check_table("node-keys.md", "keys of node files", &Keys::tables(&schema));
}

#[test]
fn the_tables_of_codes_are_those_of_the_program() {
    let mut tables = String::new();
    for subject in &steadyhand::tools::REFUSAL_SUBJECTS {
        let _ = writeln!(
            tables,
            "## {}\n\n| code | what happened | next |\n|---|---|---|",
            subject.title
        );
        for code in subject.codes {
            let codes: Vec<_> = code.codes.iter().map(|code| format!("`{code}`")).collect();
            let (codes, happened, next) = (codes.join(", "), code.happened, code.next);
            let _ = writeln!(tables, "| {codes} | {happened} | {next} |");
        }
        tables.push('\n');
    }
    check_table("errors.md", "codes of answers", &tables);
}

/// The file of all codes, which sends none.
const CODES: &str = "refusal_codes.rs";

/// What stands before a code in the source of an answer.
const BEFORE_CODE: [&str; 7] = [
    ".with(\"code\", \"",
    "refused(\"",
    "refused(\n\"",
    "not_drawn(\"",
    "refuse(\"",
    "ReaderRule::Invalid, \"",
    "ReaderRule::Contradiction, \"",
];

#[test]
fn the_page_of_codes_has_every_code_and_none_that_is_gone() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/errors.md")).unwrap();
    let (page, plans) = page.split_once("\n## Why a plan is refused\n").unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let first = rows.filter_map(|row| row.split('|').nth(1));
    let listed: BTreeSet<&str> = first
        .flat_map(|codes| codes.split('`').skip(1).step_by(2))
        .collect();
    let mut source = String::new();
    for room in ["args", "tools"] {
        add_source(&root.join("src").join(room), &mut source);
    }
    let close: String = source
        .lines()
        .map(|line| format!("{}\n", line.trim_start()))
        .collect();
    let sent = BEFORE_CODE
        .iter()
        .flat_map(|before| close.split(before).skip(1));
    let sent: BTreeSet<&str> = sent
        .filter_map(|rest| rest.split('"').next())
        .filter(|code| code.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
        .collect();
    let unlisted: Vec<_> = sent.difference(&listed).collect();
    assert!(sent.len() > 60, "{sent:?}");
    assert!(unlisted.is_empty(), "not in docs/errors.md: {unlisted:?}");
    let gone: Vec<_> = listed
        .iter()
        .filter(|code| !source.contains(&format!("\"{code}\"")))
        .collect();
    assert!(gone.is_empty(), "of docs/errors.md, in no source: {gone:?}");
    for (file, kind) in [
        ("src/plan/error.rs", "enum RefusalCause"),
        ("src/gate/mod.rs", "enum GateRule"),
    ] {
        let names = variants(&std::fs::read_to_string(root.join(file)).unwrap(), kind);
        let unlisted: Vec<_> = names
            .iter()
            .filter(|name| !plans.contains(&format!("`{name}`")))
            .collect();
        assert!(
            names.len() > 8 && unlisted.is_empty(),
            "{kind}: {unlisted:?}"
        );
    }
}

/// The variants of an enum, as answers name them.
fn variants(source: &str, kind: &str) -> Vec<String> {
    let body = source
        .split(kind)
        .nth(1)
        .unwrap()
        .split("\n}")
        .next()
        .unwrap();
    let lines = body.lines().filter_map(|line| line.strip_prefix("    "));
    let named = lines.filter(|line| line.starts_with(char::is_uppercase));
    named
        .map(|line| {
            let name = line.trim_end_matches(['{', ' ', ',']);
            let mut snake = String::new();
            for c in name.chars() {
                if c.is_uppercase() && !snake.is_empty() {
                    snake.push('_');
                }
                snake.extend(c.to_lowercase());
            }
            snake
        })
        .collect()
}

fn add_source(folder: &Path, into: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.display().to_string();
        if path.is_dir() {
            add_source(&path, into);
        } else if name.ends_with(".rs") && !name.contains("test") && !name.ends_with(CODES) {
            let text = std::fs::read_to_string(&path).unwrap();
            into.push_str(text.split("#[cfg(test)]\nmod tests {").next().unwrap());
        }
    }
}
