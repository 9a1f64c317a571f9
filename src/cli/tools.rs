//! `tools`: shows the catalogue as a model sees it, and edits the tools that the node file declares.

use std::collections::BTreeMap;

use anyhow::{Context as _, anyhow};
use clap::{Args, Subcommand};
use serde_json::Value;

use super::choice::{Choice, choice};
use super::node_file_text::NodeFileEdit;
use super::{ExitStatus, NodeOptions, terminal_output};
use catalogue::{KnownNames, ToolEffect};
use config::{
    ArgumentEntry, EffectEntry, NodeFile, ServerEntry, StepEntry, TIMEOUT_S, ToolEntry,
    edit_node_file,
};

#[derive(Debug, Subcommand)]
pub(super) enum ToolsCommand {
    /// Declare a tool in the node file
    Add(ToolArgs),
    /// Change a declared tool; the rest of it stays
    Set(ToolArgs),
    /// Remove a declared tool from the node file
    Remove {
        /// Its name
        name: String,
    },
    /// List the declared tools, and what they do
    List,
}

#[derive(Debug, Args)]
pub(super) struct ToolArgs {
    /// The tool's name
    name: String,
    /// Its name for people
    #[arg(long)]
    title: Option<String>,
    /// Description for models: a phrase that begins with a verb
    #[arg(long)]
    description: Option<String>,
    /// The built-in tool that it calls
    #[arg(long, value_name = "TOOL", conflicts_with_all = ["step", "url", "command"])]
    calls: Option<String>,
    /// An argument of --calls that is always the same; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    fixed: Vec<(String, Value)>,
    /// One step of a sequence, such as "stroke scene=letters"; may be repeated, in order
    #[arg(long, value_name = "TOOL NAME=VALUE…", value_parser = step, conflicts_with_all = ["url", "command"])]
    step: Vec<StepEntry>,
    /// Another MCP server's address, such as http://127.0.0.1:9000/mcp
    #[arg(long, conflicts_with = "command")]
    url: Option<String>,
    /// A program that is an MCP server on its standard input and output
    #[arg(long)]
    command: Option<String>,
    /// An argument of --command; may be repeated, in order
    #[arg(long, value_name = "ARGUMENT", allow_hyphen_values = true)]
    arg: Vec<String>,
    /// Time limit for the other server
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u32>,
    /// The other server's tool
    #[arg(long)]
    tool: Option<String>,
    /// Effect of the other server's tool on the world; without it, the tool is read as strictly as motion
    #[arg(long, value_parser = choice(&EFFECTS))]
    effect: Option<EffectEntry>,
    /// One argument, such as '{name="copies", type="integer", description="how many", default=1}'; may be repeated
    #[arg(long, value_name = "TABLE", value_parser = argument)]
    argument: Vec<ArgumentEntry>,
    /// The tool takes no arguments, and passes none on
    #[arg(long, conflicts_with = "argument")]
    no_arguments: bool,
}

const EFFECTS: [Choice<EffectEntry>; 2] = [
    ("reads", "", EffectEntry::Reads),
    ("moves", "", EffectEntry::Moves),
];

/// Parses a TOML value; anything else is a text.
fn toml_value(text: &str) -> Value {
    let parsed: Result<toml::Table, _> = toml::from_str(&format!("value = {text}"));
    let value = parsed.ok().and_then(|mut table| table.remove("value"));
    let value = value.and_then(|value| serde_json::to_value(value).ok());
    value.unwrap_or_else(|| text.into())
}

fn pair(text: &str) -> anyhow::Result<(String, Value)> {
    let parts = text.split_once('=');
    let (name, value) =
        parts.with_context(|| format!("{text:?} does not have the form NAME=VALUE"))?;
    Ok((name.trim().to_owned(), toml_value(value.trim())))
}

fn step(text: &str) -> anyhow::Result<StepEntry> {
    let mut words = text.split_whitespace();
    let calls = words.next().context("a step must name a tool")?.to_owned();
    let fixed = words.map(pair).collect::<Result<_, _>>()?;
    Ok(StepEntry { calls, fixed })
}

fn argument(text: &str) -> anyhow::Result<ArgumentEntry> {
    let parsed = toml::from_str::<toml::Table>(&format!("value = {}", text.trim()));
    let parsed =
        parsed.and_then(|mut table| table.remove("value").map(toml::Value::try_into).transpose());
    match parsed {
        Ok(Some(argument)) => Ok(argument),
        Ok(None) => Err(anyhow!(
            "write a TOML table with name, type and description"
        )),
        Err(error) => Err(anyhow!(
            "{}. Next: write a TOML table with name, type and description",
            error.message()
        )),
    }
}

impl ToolArgs {
    fn entry(&self) -> anyhow::Result<ToolEntry> {
        let description = self.description.clone();
        let description =
            description.context("the tool has no description. Next: add --description")?;
        let mut entry = ToolEntry {
            name: self.name.clone(),
            title: None,
            description,
            calls: None,
            fixed: BTreeMap::new(),
            sequence: None,
            server: None,
            tool: None,
            effect: None,
            arguments: None,
        };
        self.apply_to(&mut entry);
        Ok(entry)
    }

    /// Applies the given settings over those of the entry.
    fn apply_to(&self, entry: &mut ToolEntry) {
        replace_if_given(&mut entry.title, self.title.as_ref());
        if let Some(description) = &self.description {
            entry.description.clone_from(description);
        }
        self.apply_action_to(entry);
        replace_if_given(&mut entry.tool, self.tool.as_ref());
        replace_if_given(&mut entry.effect, self.effect.as_ref());
        if !self.fixed.is_empty() {
            entry.fixed = self.fixed.iter().cloned().collect();
        }
        if !self.argument.is_empty() || self.no_arguments {
            entry.arguments = Some(self.argument.clone());
        }
    }

    /// Applies the tool's action: a tool has only one, so a new one replaces the old.
    fn apply_action_to(&self, entry: &mut ToolEntry) {
        let is_remote = self.url.is_some() || self.command.is_some();
        if self.calls.is_some() || !self.step.is_empty() || is_remote {
            (entry.calls, entry.sequence, entry.server) = (None, None, None);
            entry.fixed.clear();
            if !is_remote {
                (entry.tool, entry.effect) = (None, None);
            }
        }
        replace_if_given(&mut entry.calls, self.calls.as_ref());
        if !self.step.is_empty() {
            entry.sequence = Some(self.step.clone());
        }
        if is_remote {
            entry.server = Some(ServerEntry {
                url: self.url.clone(),
                command: self.command.clone(),
                args: self.arg.clone(),
                timeout_s: TIMEOUT_S,
            });
        }
        if let (Some(timeout_s), Some(server)) = (self.timeout, &mut entry.server) {
            server.timeout_s = timeout_s;
        }
    }
}

/// Replaces a value if another one was given.
fn replace_if_given<T: Clone>(value: &mut Option<T>, given: Option<&T>) {
    if given.is_some() {
        *value = given.cloned();
    }
}

pub(super) fn run(
    node: &NodeOptions,
    format: &str,
    what: Option<ToolsCommand>,
) -> anyhow::Result<ExitStatus> {
    match what {
        None => terminal_output::tools(node, format),
        Some(ToolsCommand::List) => list(node),
        Some(ToolsCommand::Add(args)) => add(node, &args),
        Some(ToolsCommand::Set(args)) => set(node, &args),
        Some(ToolsCommand::Remove { name }) => {
            let edit = NodeFileEdit::begin(node)?;
            edit.put(&edit_node_file::remove(&edit.text, &name)?)?;
            terminal_output::done(&format!(
                "removed `{name}`. A running node keeps the tool until it is restarted"
            ))
        }
    }
}

fn list(node: &NodeOptions) -> anyhow::Result<ExitStatus> {
    let here = terminal_output::known_names(node)?;
    if here.declared.is_empty() {
        terminal_output::line("no tools are declared");
    }
    for tool in here.declared.iter() {
        let effect = match tool.effect {
            ToolEffect::Moves => "moves",
            ToolEffect::Reads => "reads",
            ToolEffect::Stops => "stops",
        };
        terminal_output::line(&format!("{:<20} {effect:<6} {}", tool.name, tool.does));
    }
    Ok(ExitStatus::Done)
}

fn add(node: &NodeOptions, args: &ToolArgs) -> anyhow::Result<ExitStatus> {
    let edit = NodeFileEdit::begin(node)?;
    let is_new = !edit.path.exists();
    edit.put(&edit_node_file::add(&edit.text, &args.entry()?)?)?;
    if is_new {
        let path = edit.path.display();
        terminal_output::line(&format!("{path} is a new node file without an arm"));
    }
    report_written(&args.name)
}

fn set(node: &NodeOptions, args: &ToolArgs) -> anyhow::Result<ExitStatus> {
    let edit = NodeFileEdit::begin(node)?;
    let path = edit.path;
    let file = NodeFile::read(&path.display().to_string(), &edit.text)?;
    let old = file.tools.into_iter().find(|tool| tool.name == args.name);
    let old = old.with_context(|| {
        let (path, name) = (path.display(), &args.name);
        format!("{path} declares no tool `{name}`. Next: `steadyhand tools add`")
    })?;
    let mut new = old.clone();
    args.apply_to(&mut new);
    edit.put(&edit_node_file::set(&edit.text, &old, &new)?)?;
    report_written(&args.name)
}

fn report_written(name: &str) -> anyhow::Result<ExitStatus> {
    terminal_output::done(&format!(
        "wrote `{name}`. A running node has the tool after a restart"
    ))
}

/// Returns the list of tools for the end of a command's help.
pub(super) fn help() -> String {
    catalogue::help(&KnownNames::default())
}
