//! `explain`: shows how a call would be understood, without making it.

use std::io::BufRead;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use clap::Args;
use serde_json::{Value, json};

use super::{ExitStatus, NodeOptions, files, terminal_output};
use args::{self, ArgumentShape};

#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    /// The tool
    #[arg(required_unless_present = "schema")]
    tool: Option<String>,
    /// Its arguments, as a model might send them
    arguments: Option<String>,
    /// A JSON Schema for lines of {"s": …} from standard input, instead of a tool
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    schema: Option<PathBuf>,
    /// Text, or JSON with all that the reader knows
    #[arg(long, value_enum, default_value_t = ExplainFormat::Text, conflicts_with = "schema")]
    format: ExplainFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ExplainFormat {
    Text,
    Json,
}

pub(super) fn run(node: &NodeOptions, args: &ExplainArgs) -> anyhow::Result<ExitStatus> {
    match (&args.schema, &args.tool) {
        (Some(schema), _) => explain_lines(schema),
        (None, Some(tool)) => {
            let text = args.arguments.as_deref().unwrap_or_default();
            describe(node, tool, text, args.format)
        }
        (None, None) => bail!("name a tool, or a schema with --schema FILE"),
    }
}

fn describe(
    node: &NodeOptions,
    name: &str,
    text: &str,
    format: ExplainFormat,
) -> anyhow::Result<ExitStatus> {
    let here = terminal_output::known_names(node)?;
    let Some(tool) = here.find(name) else {
        let names = here.tools().map(|tool| tool.name.as_str());
        let names = args::nearest(name, names);
        bail!("there is no tool {name:?}. Valid: {}", names.join(", "));
    };
    let explanation = tools::explain(tool, &here, text);
    match format {
        ExplainFormat::Text => terminal_output::line(&explanation.to_string()),
        ExplainFormat::Json => terminal_output::json(&explanation)?,
    }
    Ok(ExitStatus::Done)
}

/// Prints one JSON line for each line of standard input, in order.
fn explain_lines(schema: &Path) -> anyhow::Result<ExitStatus> {
    let common = if schema.as_os_str() == "-" {
        None
    } else {
        Some(ArgumentShape::from_json_schema(&read(schema)?)?)
    };
    for line in std::io::stdin().lock().lines() {
        let line = line.context("cannot read standard input")?;
        if line.trim().is_empty() {
            continue;
        }
        let explained = explain_line(&line, common.as_ref());
        let explained = explained.unwrap_or_else(|error| json!({ "error": error.to_string() }));
        terminal_output::line(&explained.to_string());
    }
    Ok(ExitStatus::Done)
}

fn read(path: &Path) -> anyhow::Result<Value> {
    let text = files::read(path)?;
    serde_json::from_str(&text).with_context(|| format!("{} is not JSON", path.display()))
}

fn explain_line(line: &str, common: Option<&ArgumentShape>) -> anyhow::Result<Value> {
    let case: Value =
        serde_json::from_str(line).map_err(|error| anyhow!("the line is not JSON: {error}"))?;
    let text = match case.get("s") {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => bail!("the line has no key \"s\""),
    };
    let own = case.get("schema").map(ArgumentShape::from_json_schema);
    let own = own.transpose()?;
    let shape = own.as_ref().or(common);
    let shape = shape.context("the line has no key \"schema\", and no --schema FILE was given")?;
    Ok(serde_json::to_value(args::explain_line(shape, &text))?)
}
