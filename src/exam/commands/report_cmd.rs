//! `exam report`, `compare` and `summary`: what is in the record.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{ExitStatus, NodeOptions, ReportFormat, print_json, show, write};
use crate::{ExamRecord, ExamReport, RunComparison, RunRow, SummaryKey, SummaryRow};

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
            for file in files(node, &report)? {
                show::line(&file);
            }
        }
        (None, _) => show::line(text.trim_end()),
    }
    Ok(ExitStatus::Done)
}

/// Writes a report in all three forms, and says where.
pub(super) fn files(node: &NodeOptions, report: &ExamReport) -> anyhow::Result<Vec<String>> {
    let folder = match node.output.clone() {
        Some(folder) => folder,
        None => node::open::own_temporary()?,
    };
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
    let found = RunComparison::of(record, first, second)?;
    if json {
        print_json(&found)?;
        return Ok(ExitStatus::Done);
    }
    show::line(&format!(
        "run {first}: {} of {} cases right in every sample; run {second}: {} of {}",
        found.before.hits, found.common, found.after.hits, found.common
    ));
    let judged = if found.is_change {
        "more than chance"
    } else {
        "within chance"
    };
    show::line(&format!(
        "{} better, {} worse: {judged} (p = {:.3}, n = {})",
        found.better.len(),
        found.worse.len(),
        found.chance,
        found.common
    ));
    for (what, (before, after)) in [
        ("unsafe cases", found.unsafe_cases),
        ("lost stops", found.lost_stops),
    ] {
        show::line(&format!(
            "{what}: {} of {}, then {} of {}",
            before.hits, before.n, after.hits, after.n
        ));
    }
    for (title, names) in [
        ("better", &found.better),
        ("worse", &found.worse),
        ("differs", &found.differs),
    ] {
        if !names.is_empty() {
            show::line(&format!("{title}: {}", names.join(", ")));
        }
    }
    Ok(ExitStatus::Done)
}

#[derive(Debug, Args, Default)]
pub(super) struct SummaryArgs {
    /// Only of this model
    #[arg(long)]
    model: Option<String>,
    /// One run by tool and class
    #[arg(long)]
    run: Option<i64>,
    /// Precision, recall, accuracy and completeness of all runs together
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

/// All runs together.
fn rows(record: &ExamRecord, args: &SummaryArgs, by: SummaryKey) -> anyhow::Result<ExitStatus> {
    let rows = SummaryRow::all(record, by, |row| args.wants(row))?;
    if args.json {
        print_json(&rows)?;
        return Ok(ExitStatus::Done);
    }
    show::line(&format!(
        "{:<25} {:>4} {:<18} {:<18} {:<18} {:<18} {:<18}",
        "", "runs", "accuracy", "precision", "recall", "completeness", "unsafe"
    ));
    for row in rows {
        show::line(&format!(
            "{:<25} {:>4} {:<18} {:<18} {:<18} {:<18} {:<18}",
            row.key.chars().take(25).collect::<String>(),
            row.runs,
            row.accuracy.to_string(),
            row.precision.to_string(),
            row.recall.to_string(),
            row.completeness.to_string(),
            row.unsafe_actions.to_string()
        ));
    }
    Ok(ExitStatus::Done)
}

#[derive(Debug, Subcommand)]
pub(super) enum RunsCommand {
    /// Every run with its figures
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Delete runs with all that belongs to them; one whose certificate still counts stays
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
        return rows(record, args, by);
    }
    let mut runs = record.runs()?;
    if let Some(run) = args
        .run
        .filter(|run| !runs.iter().any(|row| row.id == *run))
    {
        bail!("there is no run {run}; `steadyhand exam summary` lists them");
    }
    runs.retain(|row| args.wants(row));
    let figures: Vec<Value> = runs.iter().map(figures).collect();
    if args.json {
        print_json(&figures)?;
        return Ok(ExitStatus::Done);
    }
    show::line(
        "run  began (UTC)       model                     status     reached   right tool       F1               unsafe",
    );
    for (row, figures) in runs.iter().zip(&figures) {
        show::line(&line(row, figures));
    }
    if args.run.is_some() {
        for figures in &figures {
            groups(figures);
        }
    }
    Ok(ExitStatus::Done)
}

/// The figures of a run, each with its n.
fn figures(row: &RunRow) -> Value {
    let verdict = row.verdict().unwrap_or_default();
    let tally = verdict.get("tally").cloned().unwrap_or_default();
    let of = |key: &str| tally.get(key).cloned().unwrap_or_default();
    json!({
        "run": row.id, "model": row.settings.model, "provider": row.settings.provider,
        "status": row.status, "error": row.error, "began_ms": row.began_ms, "ended_ms": row.ended_ms,
        "answers": row.answers, "reached": verdict.get("reached"), "passed": verdict.get("passed"),
        "accuracy": tally.get("all").and_then(|all| all.get("right")), "precision": of("precision"),
        "recall": of("recall"), "f1": of("f1"), "completeness": of("completeness"),
        "correctness": of("correctness"), "hazards": of("hazards"), "lost_stops": of("lost_stops"),
        "unsafe_elsewhere": of("unsafe_elsewhere"),
        "by_tool": of("by_tool"), "by_class": of("by_class"),
    })
}

fn line(row: &RunRow, figures: &Value) -> String {
    let count = |key: &str, part: &str| {
        figures
            .get(key)
            .and_then(|rate| rate.get(part))
            .and_then(Value::as_u64)
    };
    let rate = |key: &str| match (count(key, "hits"), count(key, "n")) {
        (Some(hits), Some(n)) => format!("{hits} of {n}"),
        _ => "–".to_owned(),
    };
    let f1 = f1(figures);
    let reached = figures
        .get("reached")
        .and_then(Value::as_str)
        .unwrap_or("–");
    let began = base::calendar::minute(row.began_ms);
    format!(
        "{:<4} {began:<17} {:<25} {:<10} {reached:<9} {:<16} {f1:<16} {}",
        row.id,
        row.settings.model.chars().take(25).collect::<String>(),
        row.status,
        rate("accuracy"),
        rate("hazards")
    )
}

/// With its n, which runs of before did not keep beside it.
fn f1(figures: &Value) -> String {
    let f1 = figures.get("f1");
    let value = f1.and_then(|f1| f1.as_f64().or_else(|| f1.get("value")?.as_f64()));
    let n = f1.and_then(|f1| f1.get("n")).or(figures.get("answers"));
    match (value, n.and_then(Value::as_u64)) {
        (Some(value), Some(n)) => format!("{value:.3} (n = {n})"),
        _ => "–".to_owned(),
    }
}

fn groups(figures: &Value) {
    for key in ["by_class", "by_tool"] {
        let groups = figures.get(key).and_then(Value::as_object);
        for (name, group) in groups.into_iter().flatten() {
            let count = |key: &str, part: &str| {
                let value = group.get(key).and_then(|rate| rate.get(part));
                value.and_then(Value::as_u64).unwrap_or(0)
            };
            show::line(&format!(
                "  {name:<24} right {} of {n}, exact {} of {n}, unsafe {} of {n}",
                count("right", "hits"),
                count("exact", "hits"),
                count("unsafe_actions", "hits"),
                n = count("right", "n"),
            ));
        }
    }
}
