//! What clients are told about the tools: one snapshot per tool, and how many tokens it costs a model to be told.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a failing test may panic, and says its figures"
)]

use serde_json::{Value, json};
use steadyhand::catalogue::{self, Format, Here, Listed, TOOLS};

#[path = "snapshots/mod.rs"]
mod snapshots;

/// Tokens of the six tools' names, descriptions and input schemas together.
const SIX_TOKENS_MAX: usize = 1_300;

/// The same with the aliases.
const ALL_TOKENS_MAX: usize = 1_700;

/// Tokens of the instructions.
const INSTRUCTIONS_TOKENS_MAX: usize = 120;

fn here() -> Here {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Here {
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
        aliases_listed: true,
        ..Here::default()
    }
}

fn snapshot(tool: &Listed) -> String {
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
    snapshots::check("catalogue.md", &Format::Markdown.render(&here()));
}

fn tokens(tools: &[Listed]) -> usize {
    let model = tiktoken_rs::o200k_base().unwrap();
    let one = |tool: &Listed| {
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
    here.aliases_listed = false;
    let six = tokens(&catalogue::list(&here));
    eprintln!("six tools {six} tokens, with aliases {all}");
    assert!(six <= SIX_TOKENS_MAX, "{six}");
    assert!(all <= ALL_TOKENS_MAX, "{all}");
}

#[test]
fn the_tools_cost_few_tokens_on_the_fullest_node() {
    let twelve = |prefix: &str| (0..12).map(|i| format!("{prefix}_{i}")).collect::<Vec<_>>();
    let mut here = Here {
        scenes: twelve("scene"),
        overlays: twelve("meta"),
        arms: vec!["left".to_owned(), "right".to_owned()],
        nodes: twelve("node"),
        aliases_listed: false,
        ..Here::default()
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

#[test]
fn aliases_take_one_line_and_a_bare_schema() {
    for tool in catalogue::list(&here())
        .iter()
        .filter(|tool| tool.alias_of.is_some())
    {
        assert_eq!(tool.description.lines().count(), 1, "{}", tool.name);
        assert_eq!(tool.input_schema["type"], "object");
        assert_eq!(tool.input_schema["properties"], json!({}));
    }
    assert_eq!(TOOLS.len(), 6);
}
