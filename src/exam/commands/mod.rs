//! `exam`: examines planners and shows the results. Wiring only.

mod ask_args;
mod case_selection;
mod cases;
mod certificate;
mod endpoint;
mod foreign_servers;
mod helpers;
mod model_file;
mod report_cmd;
mod run;
mod servers;
mod similar;

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::Value;

use crate::{ExamRecord, ExamToolCard, ExamToolbox, ToolListing};
use args::{ForgivenessProfile, ReaderPolicy};
use base::plain_file;
use base::terminal as show;
use catalogue::{self, KnownNames, ListedNames, ToolDefinition};
use config::NodeFile;
use node::{CertificateCheck, ExamServices, ExitStatus, NodeOptions, open, state_folder};
use tools::ExamHelperService;

/// The exam services of a running node.
pub struct NodeExams;

impl ExamServices for NodeExams {
    fn certificates(&self, state: &Path) -> Arc<dyn CertificateCheck> {
        Arc::new(certificate::RecordedCertificates::at(state))
    }

    fn helpers(&self, state: &Path, file: &NodeFile) -> anyhow::Result<Arc<dyn ExamHelperService>> {
        Ok(Arc::new(helpers::NodeHelpers::at(state, file)?))
    }
}

#[derive(Debug, Args)]
pub struct ExamArgs {
    #[command(subcommand)]
    what: ExamCommand,
    /// The record of exams [default: exam.db in the node's state folder, or in the user's]
    #[arg(long, global = true, value_name = "FILE")]
    store: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum ExamCommand {
    /// Examine a planner, or score recorded answers
    Run(run::RunArgs),
    /// The cases: those that ship and your own
    #[command(subcommand)]
    Cases(cases::CasesCommand),
    /// Write a run's report
    Report {
        /// The run [default: the newest]
        run: Option<i64>,
        /// html, markdown, json, or answers: lines that `exam run --replay` takes
        #[arg(long, value_enum, default_value = "html")]
        format: ReportFormat,
        /// File to write [default: standard output, and for HTML a file in --output's folder]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Compare two runs
    Compare {
        /// The earlier run
        first: i64,
        /// The later run
        second: i64,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Show every run with its figures, or all by tool, class, model or day
    Summary(report_cmd::SummaryArgs),
    /// List and delete runs
    #[command(subcommand)]
    Runs(report_cmd::RunsCommand),
    /// Other MCP servers, and whether they answer
    #[command(subcommand)]
    Servers(servers::ServersCommand),
    /// Certificates that planners have earned, and the tokens that have them
    #[command(subcommand)]
    Certificate(certificate::CertificateCommand),
    /// Find tools that a model may confuse
    Similar(similar::SimilarArgs),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ReportFormat {
    Html,
    Markdown,
    Json,
    /// Lines for `exam run --replay`
    Answers,
}

pub async fn run(node: &NodeOptions, args: ExamArgs) -> anyhow::Result<ExitStatus> {
    let store = store(node, args.store)?;
    let mut record = ExamRecord::open(&store)?;
    match args.what {
        ExamCommand::Run(args) => run::run(node, args, &mut record).await,
        ExamCommand::Cases(what) => cases::run(node, what, &mut record, &store).await,
        ExamCommand::Report { run, format, out } => {
            report_cmd::report(node, &record, run, format, out)
        }
        ExamCommand::Compare {
            first,
            second,
            json,
        } => report_cmd::compare(&record, first, second, json),
        ExamCommand::Summary(args) => report_cmd::summary(&record, &args),
        ExamCommand::Runs(what) => report_cmd::runs(what, &mut record),
        ExamCommand::Servers(what) => servers::run(what, &mut record).await,
        ExamCommand::Certificate(what) => certificate::run(node, what, &mut record),
        ExamCommand::Similar(args) => similar::run(node, &args, &record).await,
    }
}

/// Returns the path of the record of exams. A node without a state folder keeps its exams in the user's own folder.
fn store(node: &NodeOptions, path: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    if let Some(path) = path {
        return Ok(path);
    }
    let folder = match lasting_folder(node)? {
        Some(folder) => folder,
        None => state_folder::usual("exam")?,
    };
    Ok(folder.join(certificate::STORE))
}

/// Returns the node's state folder, or `None` if it keeps none.
fn lasting_folder(node: &NodeOptions) -> anyhow::Result<Option<PathBuf>> {
    let file = open::file(node)?;
    let is_practice = state_folder::is_practice(node, &file);
    (!is_practice)
        .then(|| state_folder::folder(node, &file))
        .transpose()
}

/// Returns the node's file, and the names that such a node knows.
fn here(node: &NodeOptions) -> anyhow::Result<(NodeFile, KnownNames)> {
    let file = open::file(node)?;
    let library = open::library(node, &file)?;
    let declared = open::declared(&file, &library)?;
    let here = tools::known_names(&file, &library, &declared);
    Ok((file, here))
}

/// Returns the node's tools as they are shown to a planner, and the text before them.
fn toolbox(node: &NodeOptions) -> anyhow::Result<(ExamToolbox, String)> {
    let (file, here) = here(node)?;
    let tools = cards(&here, tools::forgiveness(&file));
    Ok((tools, catalogue::instructions(&here)))
}

fn cards(here: &KnownNames, profile: ForgivenessProfile) -> ExamToolbox {
    let cards = here.tools().map(|tool| card(tool, here, profile));
    ExamToolbox::new(cards.collect()).listed(match here.listed_names {
        ListedNames::Both => ToolListing::Both,
        ListedNames::Plain => ToolListing::Plain,
        ListedNames::Robot => ToolListing::Robot,
    })
}

fn card(tool: &ToolDefinition, here: &KnownNames, profile: ForgivenessProfile) -> ExamToolCard {
    ExamToolCard {
        name: tool.name.clone(),
        server: String::new(),
        own_name: tool.name.clone(),
        names: tool.names().map(str::to_owned).collect(),
        aliases: tool.aliases.clone(),
        description: catalogue::description(tool, here),
        input_schema: Value::Object(catalogue::input(tool, here)),
        output_schema: Some(Value::Object(catalogue::output(tool))),
        does: tool.effect,
        shape: tools::shape(tool, here),
        policy: ReaderPolicy::new(tool.effect, profile),
        is_only_named: false,
    }
}

fn read(path: &Path) -> anyhow::Result<String> {
    if path.as_os_str() == "-" {
        let read = plain_file::read_bounded(std::io::stdin(), plain_file::BYTES_MAX);
        let text = read.and_then(plain_file::into_text);
        return text.context("cannot read standard input");
    }
    plain_file::read_text(path).with_context(|| format!("cannot read {}", path.display()))
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    show::line(&serde_json::to_string_pretty(value)?);
    Ok(())
}

/// Parses a number that must be in this range.
fn number_in(text: &str, range: RangeInclusive<f64>) -> Option<f64> {
    let number = text.parse().ok();
    number.filter(|number| range.contains(number))
}

#[cfg(test)]
mod tests {
    use clap::Args as _;

    use super::*;

    #[test]
    fn a_server_is_renamed_by_an_option_next_to_its_name() {
        let command = || ExamArgs::augment_args(clap::Command::new("exam"));
        command().debug_assert();
        let line = "exam servers edit old --rename new --url http://h/mcp --key-env KEY";
        let read = command().try_get_matches_from(line.split(' '));
        let read = read.map(|read| {
            format!(
                "{:?}",
                <ExamArgs as clap::FromArgMatches>::from_arg_matches(&read)
            )
        });
        let read = read.unwrap_or_default();
        assert!(
            read.contains("name: \"old\", change: ServerChange { name: Some(\"new\")"),
            "{read}"
        );
    }
}
