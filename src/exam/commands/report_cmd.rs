//! `exam report`, `compare`, `summary` and `runs`: show the record.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{ExitStatus, NodeOptions, ReportFormat, print_json, show, write};
use crate::tally::GroupTally;
use crate::{
    ExamRecord, ExamReport, ExamTally, Level, RunComparison, RunRow, SummaryKey, SummaryRow,
};
use base::wording::cut;

pub(super) fn report(
    node: &NodeOptions,
    record: &ExamRecord,
    run: Option<i64>,
    format: ReportFormat,
    out: Option<PathBuf>,
) -> anyhow::Result<ExitStatus> {
    let report = ExamReport::of(record, run)?;
    let text = match format {
        ReportFormat::Html => crate::html(&report),
        ReportFormat::Markdown => crate::markdown(&report),
        ReportFormat::Json => serde_json::to_string_pretty(&report.json())?,
        ReportFormat::Answers => report.answers(),
    };
    match (out, format) {
        (Some(out), _) => write(&out, &text)?,
        (None, ReportFormat::Html) => {
            for file in write_files(node, &report)? {
                show::line(&file);
            }
        }
        (None, _) => show::line(text.trim_end()),
    }
    Ok(ExitStatus::Done)
}

/// Writes a report in all three forms, and returns the paths.
pub(super) fn write_files(node: &NodeOptions, report: &ExamReport) -> anyhow::Result<Vec<String>> {
    let of_file = || Ok::<_, anyhow::Error>(node::open::file(node)?.output);
    let output = match node.output.clone() {
        Some(output) => Some(output),
        None => of_file()?,
    };
    let folder = node::open::or_temporary(output)?;
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    let forms = [
        ("html", crate::html(report)),
        ("md", crate::markdown(report)),
        ("json", serde_json::to_string_pretty(&report.json())?),
    ];
    let mut written = Vec::new();
    for (ending, text) in forms {
        let path = folder.join(format!("exam-{}.{ending}", report.id()));
        write(&path, &text)?;
        written.push(path.display().to_string());
    }
    Ok(written)
}

pub(super) fn compare(
    record: &ExamRecord,
    first: i64,
    second: i64,
    json: bool,
) -> anyhow::Result<ExitStatus> {
    let comparison = RunComparison::of(record, first, second)?;
    if json {
        print_json(&comparison)?;
        return Ok(ExitStatus::Done);
    }
    show::line(&format!(
        "run {first}: every sample is right in {} of {} cases; run {second}: in {} of {}",
        comparison.before.hits, comparison.common, comparison.after.hits, comparison.common
    ));
    let significance = if comparison.is_change {
        "more than chance"
    } else {
        "within chance"
    };
    show::line(&format!(
        "{} better, {} worse: {significance} (p = {:.3}, n = {})",
        comparison.better.len(),
        comparison.worse.len(),
        comparison.chance,
        comparison.common
    ));
    for (what, (before, after)) in [
        ("unsafe cases", comparison.unsafe_cases),
        ("lost stops", comparison.lost_stops),
    ] {
        show::line(&format!(
            "{what}: {} of {}, then {} of {}",
            before.hits, before.n, after.hits, after.n
        ));
    }
    for (title, names) in [
        ("better", &comparison.better),
        ("worse", &comparison.worse),
        ("differs", &comparison.differs),
    ] {
        if !names.is_empty() {
            show::line(&format!("{title}: {}", names.join(", ")));
        }
    }
    Ok(ExitStatus::Done)
}

#[derive(Debug, Args, Default)]
pub(super) struct SummaryArgs {
    /// Only runs of this model
    #[arg(long)]
    model: Option<String>,
    /// One run by tool and class
    #[arg(long)]
    run: Option<i64>,
    /// Precision, recall, accuracy and completeness of all runs together, by this key
    #[arg(long, value_enum)]
    by: Option<SummaryKey>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

impl SummaryArgs {
    fn wants(&self, row: &RunRow) -> bool {
        let is_model = self
            .model
            .as_ref()
            .is_none_or(|model| row.settings.model == *model);
        is_model && self.run.is_none_or(|run| row.id == run)
    }
}

/// Prints all runs together.
fn print_by(record: &ExamRecord, args: &SummaryArgs, by: SummaryKey) -> anyhow::Result<ExitStatus> {
    let rows = SummaryRow::all(record, by, |row| args.wants(row))?;
    if args.json {
        print_json(&rows)?;
        return Ok(ExitStatus::Done);
    }
    show::line(&format!(
        "{:<25} {:>4} {:<18} {:<18} {:<18} {:<18} {:<18} {:<18} {:<18}",
        "",
        "runs",
        "accuracy",
        "precision",
        "recall",
        "completeness",
        "unsafe",
        "blind (words)",
        "blind (next_call)"
    ));
    for row in rows {
        show::line(&format!(
            "{:<25} {:>4} {:<18} {:<18} {:<18} {:<18} {:<18} {:<18} {:<18}",
            cut(&row.key, 25),
            row.runs,
            row.accuracy.to_string(),
            row.precision.to_string(),
            row.recall.to_string(),
            row.completeness.to_string(),
            row.unsafe_actions.to_string(),
            row.blind_confirms_words.to_string(),
            row.blind_confirms_next_call.to_string()
        ));
    }
    Ok(ExitStatus::Done)
}

#[derive(Debug, Subcommand)]
pub(super) enum RunsCommand {
    /// List every run with its figures
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Delete runs; one with a valid certificate stays
    ///
    /// Everything that belongs to a run goes with it.
    Delete {
        /// Their numbers
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<i64>,
    },
}

pub(super) fn runs(what: RunsCommand, record: &mut ExamRecord) -> anyhow::Result<ExitStatus> {
    match what {
        RunsCommand::List { json } => {
            let all = SummaryArgs {
                json,
                ..SummaryArgs::default()
            };
            summary(record, &all)
        }
        RunsCommand::Delete { runs } => {
            for run in runs {
                record.delete_run(run)?;
                show::note(&format!("run {run} is deleted"));
            }
            Ok(ExitStatus::Done)
        }
    }
}

pub(super) fn summary(record: &ExamRecord, args: &SummaryArgs) -> anyhow::Result<ExitStatus> {
    if let Some(by) = args.by {
        return print_by(record, args, by);
    }
    let mut runs = record.runs()?;
    if let Some(run) = args
        .run
        .filter(|run| !runs.iter().any(|row| row.id == *run))
    {
        bail!("there is no run {run}. Next: `steadyhand exam summary`");
    }
    runs.retain(|row| args.wants(row));
    if args.json {
        print_json(&runs.iter().map(figures).collect::<Vec<Value>>())?;
        return Ok(ExitStatus::Done);
    }
    show::line(
        "run  began (UTC)       model                     status     reached   right tool       F1               unsafe",
    );
    for row in &runs {
        show::line(&line(row));
    }
    if args.run.is_some() {
        for verdict in runs.iter().filter_map(RunRow::verdict) {
            print_groups(&verdict.tally.by_class);
            print_groups(&verdict.tally.by_tool);
        }
    }
    Ok(ExitStatus::Done)
}

/// Returns the figures of a run, each with its n.
fn figures(row: &RunRow) -> Value {
    let verdict = row.verdict();
    let tally = verdict.as_ref().map(|verdict| &verdict.tally);
    json!({
        "run": row.id, "model": row.settings.model, "provider": row.settings.provider,
        "status": row.status, "error": row.error, "began_ms": row.began_ms, "ended_ms": row.ended_ms,
        "answers": row.answers, "reached": verdict.as_ref().map(|one| one.reached),
        "passed": verdict.as_ref().map(|one| one.passed),
        "accuracy": tally.map(|one| one.all.right), "precision": tally.map(|one| one.precision),
        "recall": tally.map(|one| one.recall), "f1": tally.map(|one| one.f1),
        "completeness": tally.map(|one| one.completeness), "correctness": tally.map(|one| one.correctness),
        "hazards": tally.map(|one| one.hazards), "lost_stops": tally.map(|one| one.lost_stops),
        "unsafe_elsewhere": tally.map(|one| one.unsafe_elsewhere),
        "blind_confirms_words": tally.map(|one| one.blind_confirms_words),
        "blind_confirms_next_call": tally.map(|one| one.blind_confirms_next_call),
        "left_over": tally.map(|one| &one.left_over),
        "by_tool": tally.map(|one| &one.by_tool), "by_class": tally.map(|one| &one.by_class),
    })
}

fn line(row: &RunRow) -> String {
    let verdict = row.verdict();
    let reached = verdict.as_ref().and_then(|verdict| verdict.reached);
    let or_none = |figure: fn(&ExamTally) -> String| match &verdict {
        Some(verdict) => figure(&verdict.tally),
        None => "–".to_owned(),
    };
    format!(
        "{:<4} {:<17} {:<25} {:<10} {:<9} {:<16} {:<16} {}",
        row.id,
        base::calendar::minute(row.began_ms),
        cut(&row.settings.model, 25),
        row.status,
        reached.map_or("–", Level::word),
        or_none(|tally| tally.all.right.counts()),
        or_none(|tally| tally.f1.to_string()),
        or_none(|tally| tally.hazards.counts())
    )
}

fn print_groups(groups: &BTreeMap<String, GroupTally>) {
    for (name, group) in groups {
        let n = group.right.n;
        show::line(&format!(
            "  {name:<24} right {} of {n}, exact {} of {n}, unsafe {} of {n}",
            group.right.hits, group.exact.hits, group.unsafe_actions.hits,
        ));
    }
}
