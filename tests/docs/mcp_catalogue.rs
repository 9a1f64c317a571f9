//! Tests what clients are told about the tools: one snapshot per tool, and how many tokens it costs a model to be told.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a failing test may panic, and says its figures"
)]

use crate::snapshots;
use serde_json::{Value, json};
use steadyhand::catalogue::{
    self, CatalogueFormat, KnownNames, ListedNames, ListedTool, ToolEffect,
};
use steadyhand::config::NodeFile;
use steadyhand::tools::DeclaredTools;

/// Tokens of the six tools' names, descriptions and input schemas together.
const SIX_TOKENS_MAX: usize = 900;

/// The same text under both names.
const ALL_TOKENS_MAX: usize = 1_800;

/// Tokens that the parameters of a canvas add.
const CANVAS_TOKENS_MAX: usize = 150;

/// Tokens of the instructions.
const INSTRUCTIONS_TOKENS_MAX: usize = 120;

fn here() -> KnownNames {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    KnownNames {
        scenes: names(&[
            "default",
            "a5_sheet",
            "calibration",
            "letters",
            "two_pens",
            "widowx",
        ]),
        overlays: names(&["crosses", "leaf"]),
        arms: names(&["so101"]),
        nodes: names(&["here"]),
        everywhere: names(&["here", "all"]),
        ..KnownNames::default()
    }
}

fn snapshot(tool: &ListedTool) -> String {
    let hints = tool.hints;
    let card = json!({
        "name": tool.name,
        "title": tool.title,
        "description": tool.description.lines().collect::<Vec<_>>(),
        "inputSchema": tool.input_schema,
        "outputSchema": tool.output_schema,
        "hints": [hints.read_only, hints.destructive, hints.idempotent, hints.open_world],
    });
    format!("{card:#}\n")
}

#[test]
fn every_tool_and_alias_is_as_it_was() {
    let tools = catalogue::list(&here());
    for tool in &tools {
        snapshots::check(&format!("tool_{}.json", tool.name), &snapshot(tool));
    }
    let files = std::fs::read_dir(snapshots::folder()).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let kept = names.filter(|name| name.starts_with("tool_")).count();
    assert_eq!(
        kept,
        tools.len(),
        "a snapshot stands for a tool that is gone"
    );
}

#[test]
fn the_catalogue_as_markdown_is_as_it_was() {
    snapshots::check("catalogue.md", &CatalogueFormat::Markdown.render(&here()));
}

fn tokens(tools: &[ListedTool]) -> usize {
    let model = tiktoken_rs::o200k_base().unwrap();
    let one = |tool: &ListedTool| {
        let schema = Value::Object(tool.input_schema.clone()).to_string();
        [&tool.name, &tool.description, &schema]
            .iter()
            .map(|text| model.encode_ordinary(text).len())
            .sum::<usize>()
    };
    tools.iter().map(one).sum()
}

#[test]
fn the_tools_cost_a_model_few_tokens() {
    let mut here = here();
    let all = tokens(&catalogue::list(&here));
    here.listed_names = ListedNames::Plain;
    let six = tokens(&catalogue::list(&here));
    here.listed_names = ListedNames::Robot;
    let robot = tokens(&catalogue::list(&here));
    eprintln!("six tools {six} tokens, by their aliases {robot}, both {all}");
    assert!(robot <= SIX_TOKENS_MAX, "{robot}");
    assert!(six <= SIX_TOKENS_MAX, "{six}");
    assert!(all <= ALL_TOKENS_MAX, "{all}");
}

#[test]
fn a_canvas_costs_few_tokens_more() {
    let mut here = here();
    here.canvases = vec!["canvas".to_owned()];
    let all = tokens(&catalogue::list(&here));
    here.listed_names = ListedNames::Plain;
    let six = tokens(&catalogue::list(&here));
    eprintln!("with a canvas: six tools {six} tokens, under both names {all}");
    assert!(six <= SIX_TOKENS_MAX + CANVAS_TOKENS_MAX, "{six}");
    assert!(all <= ALL_TOKENS_MAX + CANVAS_TOKENS_MAX, "{all}");
}

#[test]
fn the_tools_cost_few_tokens_on_the_fullest_node() {
    let twelve = |prefix: &str| (0..12).map(|i| format!("{prefix}_{i}")).collect::<Vec<_>>();
    let mut here = KnownNames {
        scenes: twelve("scene"),
        overlays: twelve("meta"),
        arms: vec!["left".to_owned(), "right".to_owned()],
        nodes: twelve("node"),
        listed_names: ListedNames::Plain,
        ..KnownNames::default()
    };
    let full = tokens(&catalogue::list(&here));
    here.scenes.extend((12..40).map(|i| format!("scene_{i}")));
    let fuller = tokens(&catalogue::list(&here));
    eprintln!("twelve of everything {full} tokens, forty scenes {fuller}");
    assert!(fuller < 2 * SIX_TOKENS_MAX + 600, "{full} {fuller}");
}

#[test]
fn the_workflow_costs_few_tokens() {
    let model = tiktoken_rs::o200k_base().unwrap();
    let count = model
        .encode_ordinary(&catalogue::instructions(&here()))
        .len();
    assert!(count < INSTRUCTIONS_TOKENS_MAX, "{count}");
}

/// A declared tool of each kind, with an argument of each type.
const DECLARED: &str = r#"
[[tools]]
name = "sign"
description = "Draw the letters. \nUse when a sign is wanted."
calls = "robot_stroke"
fixed = { scene = "letters" }
arguments = [{ name = "meta", type = "string", description = "overlay" }]

[[tools]]
name = "session"
description = "Align, draw and park"
sequence = [{ calls = "align" }, { calls = "stroke", fixed = { again = true } }, { calls = "reset" }]

[[tools]]
name = "look_twice"
description = "Look twice"
sequence = [{ calls = "sense" }, { calls = "list_nodes" }]

[[tools]]
name = "out"
description = "Stop for now"
calls = "stop"

[[tools]]
name = "searchWeb"
description = "Search another server"
server = { url = "http://127.0.0.1:9/mcp" }
tool = "search"
arguments = [
  { name = "query", type = "string", description = "words", required = true },
  { name = "kind", type = "string", description = "what", enum = ["a", "b"], default = "a" },
  { name = "count", type = "integer", description = "how many", default = 3 },
  { name = "reach", type = "number", description = "how far.", unit = "mm" },
  { name = "deep", type = "boolean", description = "whether" },
  { name = "tags", type = "array", description = "which" },
]

[[tools]]
name = "lookWeb"
description = "Look at another server"
server = { command = "peer" }
tool = "look"
effect = "reads"
"#;

fn declaring() -> KnownNames {
    let file = NodeFile::read("node.toml", DECLARED).unwrap();
    let declared = DeclaredTools::from_file(&file, &here()).unwrap();
    KnownNames {
        declared: declared.shared(),
        ..here()
    }
}

#[test]
fn declared_tools_are_listed_with_the_strictest_effect_they_call() {
    let here = declaring();
    let effect = |name: &str| here.find(name).unwrap().effect;
    assert_eq!(effect("sign"), ToolEffect::Moves);
    assert_eq!(effect("session"), ToolEffect::Moves);
    assert_eq!(effect("look_twice"), ToolEffect::Reads);
    assert_eq!(effect("out"), ToolEffect::Stops);
    assert_eq!(
        effect("searchWeb"),
        ToolEffect::Moves,
        "nobody said that it only reads"
    );
    assert_eq!(effect("lookWeb"), ToolEffect::Reads);
    let listed = catalogue::list(&here);
    let one = |name: &str| listed.iter().find(|tool| tool.name == name).unwrap();
    let search = one("searchWeb");
    assert_eq!(search.input_schema["required"], json!(["query"]));
    assert_eq!(
        search.description.lines().nth(1).unwrap(),
        r#"Call schema: {query: string, kind?: string = "a", count?: integer = 3, reach?: number, deep?: boolean, tags?: array}"#
    );
    let reach = &search.input_schema["properties"]["reach"];
    assert_eq!(
        *reach,
        json!({"type": "number", "description": "how far, in mm"})
    );
    let meta = &one("sign").input_schema["properties"]["meta"];
    assert_eq!(
        meta["enum"],
        json!(["crosses", "leaf"]),
        "it follows what the node knows now"
    );
    assert!(
        one("sign")
            .description
            .contains("Use when a sign is wanted.")
    );
    assert!(
        one("session")
            .description
            .contains("Calls in order: align, stroke {\"again\":true}, reset.")
    );
    for (name, format) in CatalogueFormat::ALL {
        assert!(format.render(&here).contains("searchWeb"), "{name}");
    }
}

/// Checks that a schema is one that every provider of models takes: Gemini wants an `enum` of texts and `items` in lists,
/// OpenAI names of plain letters, Ollama one plain `type`; none of them unions, references, or keys beyond these.
fn check_plain(schema: &Value, path: &str) {
    let schema = schema.as_object().unwrap();
    for (key, value) in schema {
        match key.as_str() {
            "type" => {
                let types = ["object", "string", "integer", "number", "boolean", "array"];
                assert!(types.contains(&value.as_str().unwrap()), "{path}: {value}");
            }
            "description" => assert!(!value.as_str().unwrap().is_empty(), "{path}"),
            "enum" => {
                assert_eq!(schema["type"], "string", "{path}");
                let values = value.as_array().unwrap();
                assert!((1..=12).contains(&values.len()), "{path}");
                assert!(
                    values
                        .iter()
                        .all(|one| one.as_str().is_some_and(|one| !one.is_empty())),
                    "{path}"
                );
            }
            "required" => {
                let names = value.as_array().unwrap();
                assert!(!names.is_empty(), "{path}");
                let known = schema["properties"].as_object().unwrap();
                assert!(
                    names
                        .iter()
                        .all(|name| known.contains_key(name.as_str().unwrap())),
                    "{path}"
                );
            }
            "items" => check_plain(value, path),
            "properties" => {
                for (name, schema) in value.as_object().unwrap() {
                    assert!(is_plain_name(name), "{path}.{name}");
                    assert!(schema["type"] != "object", "{path}.{name}: nested");
                    check_plain(schema, name);
                }
            }
            _ => panic!("{path}: some provider refuses {key}"),
        }
    }
    assert_eq!(
        schema["type"] == "array",
        schema.contains_key("items"),
        "{path}"
    );
    assert_eq!(
        schema["type"] == "object",
        schema.contains_key("properties"),
        "{path}"
    );
}

fn is_plain_name(name: &str) -> bool {
    let plain = name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    (1..=64).contains(&name.len()) && plain && name.starts_with(|c: char| c.is_ascii_alphabetic())
}

#[test]
fn no_provider_of_models_refuses_a_schema() {
    for tool in catalogue::list(&declaring()) {
        assert!(is_plain_name(&tool.name), "{}", tool.name);
        check_plain(&Value::Object(tool.input_schema), &tool.name);
        assert!(
            (20..=500).contains(&tool.description.chars().count()),
            "{}",
            tool.name
        );
    }
}

#[test]
fn the_workflow_stays_short_however_many_tools_are_declared() {
    let model = tiktoken_rs::o200k_base().unwrap();
    let many: String = (0..32)
        .map(|i| format!("[[tools]]\nname = \"a_rather_long_name_{i}\"\ndescription = \"Look\"\ncalls = \"sense\"\n"))
        .collect();
    let file = NodeFile::read("node.toml", &many).unwrap();
    let declared = DeclaredTools::from_file(&file, &here()).unwrap().shared();
    for here in [declaring(), KnownNames { declared, ..here() }] {
        let text = catalogue::instructions(&here);
        let count = model.encode_ordinary(&text).len();
        assert!(count < INSTRUCTIONS_TOKENS_MAX, "{count}: {text}");
        assert!(text.contains(&here.declared[0].name), "{text}");
    }
}

const TABLE_BEGINS: &str = "<!-- made from the catalogue: REWRITE_SNAPSHOTS=1 cargo test --test docs mcp_catalogue:: -->\n";
const TABLE_ENDS: &str = "<!-- end -->\n";

#[test]
fn the_readmes_table_is_made_from_the_catalogue() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(TABLE_BEGINS).unwrap();
    let (table, after) = rest.split_once(TABLE_ENDS).unwrap();
    let made = catalogue::table(&here());
    if std::env::var_os("REWRITE_SNAPSHOTS").is_some_and(|set| set == "1") {
        let page = format!("{before}{TABLE_BEGINS}{made}{TABLE_ENDS}{after}");
        std::fs::write(&path, page).unwrap();
        return;
    }
    assert_eq!(table, made, "README.md is not what the catalogue says");
}

#[test]
fn the_page_of_the_tools_is_made_from_the_catalogue() {
    snapshots::check(
        "../../docs/tools.md",
        &CatalogueFormat::Page.render(&here()),
    );
}

#[test]
fn the_help_of_commands_that_call_tools_names_them_all() {
    for command in ["call", "tools"] {
        let help = std::process::Command::new(env!("CARGO_BIN_EXE_steadyhand"))
            .args([command, "--help"])
            .output()
            .unwrap();
        let help = String::from_utf8(help.stdout).unwrap();
        for line in catalogue::help(&KnownNames::default()).lines() {
            assert!(
                help.contains(line.trim_end()),
                "{command} --help does not say {line:?}\n{help}"
            );
        }
    }
}
