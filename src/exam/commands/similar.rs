//! `exam similar`: selects the tools to compare and prints the result.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use serde_json::Value;

use super::endpoint::HttpModelEndpoint;
use super::{ExitStatus, NodeOptions, foreign_servers, number_in, print_json, read, show, toolbox};
use crate::{
    AddressKind, ExamRecord, ExamToolCard, SimilarityOptions, SimilarityReport, THRESHOLD, ToolPair,
};

/// Time limit for the embedding model.
const EMBED_MAX: Duration = Duration::from_secs(60);

#[derive(Debug, Args)]
pub(super) struct SimilarArgs {
    #[command(flatten)]
    which: ToolSelectionArgs,
    /// Compare the parameters too
    #[arg(long)]
    parameters: bool,
    /// Similarity at which a pair is too similar
    #[arg(long, default_value_t = THRESHOLD, value_parser = threshold)]
    threshold: f64,
    /// Compare meaning by the embedding model of this OpenAI-compatible endpoint; its key comes from STEADYHAND_API_KEY
    #[arg(long, value_name = "URL")]
    embeddings: Option<String>,
    /// That model's name
    #[arg(
        long,
        value_name = "NAME",
        requires = "embeddings",
        default_value = "default"
    )]
    embedding_model: String,
    /// As JSON, with each recommendation's patch
    #[arg(long)]
    json: bool,
}

/// Parses a threshold from 0 to 1.
fn threshold(text: &str) -> anyhow::Result<f64> {
    number_in(text, 0.0..=1.0)
        .ok_or_else(|| anyhow!("{text:?} is not a threshold. Next: give a number from 0 to 1"))
}

/// The tools to compare: exactly one of these options.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct ToolSelectionArgs {
    /// The node's own tools: all, or only these
    #[arg(long, value_name = "TOOL", num_args = 0..)]
    tools: Option<Vec<String>>,
    /// Tools of a JSON file: a list of definitions, or the result of tools/list
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// The tools of servers from `exam servers`
    #[arg(long, value_name = "SERVER", num_args = 1..)]
    servers: Option<Vec<String>>,
    /// The tools of the MCP servers at these addresses
    #[arg(long, value_name = "URL", num_args = 1..)]
    urls: Option<Vec<String>>,
}

pub(super) async fn run(
    node: &NodeOptions,
    args: &SimilarArgs,
    record: &ExamRecord,
) -> anyhow::Result<ExitStatus> {
    let cards = cards(node, &args.which, record).await?;
    let vectors = match &args.embeddings {
        Some(url) => Some(vectors(url, &args.embedding_model, &cards).await?),
        None => None,
    };
    let options = SimilarityOptions {
        with_parameters: args.parameters,
        threshold: args.threshold,
        vectors,
    };
    let report = SimilarityReport::of(&cards, &options, record)?;
    if args.json {
        print_json(&report)?;
        return Ok(ExitStatus::Done);
    }
    print_matrices(&report);
    for pair in &report.pairs {
        print_pair(pair, report.confusion.as_ref().map(|matrix| matrix.run));
    }
    Ok(ExitStatus::Done)
}

/// Prints the similarity of the tools, and the confusion matrix of the last run.
fn print_matrices(similar: &SimilarityReport) {
    show::line("similarity, from 0 to 1:");
    let rows = similar.tools.iter().zip(&similar.matrix);
    let rows = rows.map(|(name, row)| {
        let cells = row.iter().map(|cell| format!("{cell:.2}"));
        (name.as_str(), cells.collect())
    });
    print_table(similar.tools.iter().map(String::as_str), rows);
    let Some(confusion) = &similar.confusion else {
        show::line("confusion: no finished run has two of these tools yet");
        return;
    };
    show::line(&format!(
        "confusion in run {} ({} answers): rows are the right tool, columns the called tool:",
        confusion.run, confusion.n
    ));
    let columns = confusion.columns.iter().map(String::as_str).chain(["n"]);
    let rows = confusion.rows.iter().map(|row| {
        let cells = row.called.iter().chain([&row.n]);
        (row.right.as_str(), cells.map(usize::to_string).collect())
    });
    print_table(columns, rows);
}

/// Prints a table with its headings; each column is as wide as its heading.
fn print_table<'a>(
    columns: impl Iterator<Item = &'a str>,
    rows: impl Iterator<Item = (&'a str, Vec<String>)>,
) {
    let chars = |text: &str| text.chars().count();
    let headings: Vec<String> = columns.map(str::to_owned).collect();
    let widths: Vec<usize> = headings.iter().map(|name| chars(name).max(4)).collect();
    let rows: Vec<(&str, Vec<String>)> = std::iter::once(("", headings)).chain(rows).collect();
    let name_width = rows.iter().map(|(name, _)| chars(name)).max().unwrap_or(0);
    for (name, cells) in &rows {
        let cells = cells.iter().zip(&widths);
        let cells = cells.map(|(cell, width)| format!("{cell:>width$}"));
        let cells = cells.collect::<Vec<_>>().join("  ");
        show::line(&format!("  {name:<name_width$}  {cells}"));
    }
}

/// Returns the vectors of the purpose lines from the operator's model. There is no fallback: comparing words would not be
/// the requested comparison.
async fn vectors(url: &str, model: &str, cards: &[ExamToolCard]) -> anyhow::Result<Vec<Vec<f64>>> {
    AddressKind::Endpoint.check(url)?;
    let lines: Vec<&str> = cards.iter().map(ExamToolCard::purpose).collect();
    let result =
        tokio::time::timeout(EMBED_MAX, HttpModelEndpoint::at(url).vectors(model, &lines)).await;
    let timeout = |_| Err(anyhow!("no answer came within {} s", EMBED_MAX.as_secs()));
    let vectors = result.unwrap_or_else(timeout);
    vectors.map_err(|error| anyhow!("the embedding model at {url} did not answer: {error}"))
}

fn print_pair(pair: &ToolPair, run: Option<i64>) {
    let verdict = if pair.is_too_alike { ", too alike" } else { "" };
    let parameters = pair.parameters;
    let parameters = parameters.map_or_else(String::new, |one| format!(", parameters {one:.2}"));
    show::line(&format!(
        "{}. {} and {}: {:.2}{verdict} (meaning {:.2}{parameters}, wording {:.2})",
        pair.rank, pair.a, pair.b, pair.likeness, pair.meaning, pair.wording
    ));
    if let (Some((times, n)), Some(run)) = (pair.confused, run) {
        show::line(&format!(
            "   run {run} mixed them up in {times} of {n} answers"
        ));
    }
    for one in &pair.recommendations {
        show::line(&format!(
            "   {} ({}), {}: {}; {}",
            one.kind, one.priority, one.tool, one.text, one.rationale
        ));
        if let Some(table) = &one.node_file {
            show::line("     lines for the node file:");
            table.lines().for_each(show::line);
        } else if let Some(revised) = &one.revised_description {
            show::line(&format!(
                "     better first line: {}",
                revised.lines().next().unwrap_or_default()
            ));
        }
    }
}

async fn cards(
    node: &NodeOptions,
    args: &ToolSelectionArgs,
    record: &ExamRecord,
) -> anyhow::Result<Vec<ExamToolCard>> {
    if let Some(file) = &args.file {
        return cards_of_file(file);
    }
    if let Some(names) = args.servers.as_ref().or(args.urls.as_ref()) {
        return foreign_servers::tools(&foreign_servers::resolve_servers(names, record)?).await;
    }
    let (tools, _) = toolbox(node)?;
    let names = args.tools.as_deref().unwrap_or_default();
    if let Some(unknown) = names.iter().find(|name| tools.find(name).is_none()) {
        bail!("this node has no tool {unknown:?}");
    }
    let is_selected = |card: &&ExamToolCard| names.is_empty() || names.contains(&card.name);
    Ok(tools.cards().iter().filter(is_selected).cloned().collect())
}

fn cards_of_file(file: &Path) -> anyhow::Result<Vec<ExamToolCard>> {
    let text = read(file)?;
    let list: Value =
        serde_json::from_str(&text).with_context(|| format!("{} is not JSON", file.display()))?;
    let list = list
        .get("tools")
        .or_else(|| list.get("result")?.get("tools"))
        .unwrap_or(&list);
    let Some(list) = list.as_array() else {
        bail!("{} has no list of tools", file.display());
    };
    list.iter()
        .map(|one| ExamToolCard::defined(one).map_err(anyhow::Error::msg))
        .collect()
}
