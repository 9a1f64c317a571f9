//! Profile of a planner: its results in exams so far.

use std::path::Path;

use clap::ValueEnum as _;
use serde_json::{Map, Value, json};

use super::{HelperToolResult, text};
use crate::{CaseClass, ExamError, ExamRecord, Level, RunRow, generate};

/// Runs that are told, the newest first.
const RUNS_MAX: usize = 10;

pub(super) fn profile(
    store: &Path,
    given: &Map<String, Value>,
) -> Result<HelperToolResult, ExamError> {
    if !store.is_file() {
        return Ok(beginner("nobody was examined here"));
    }
    let record = ExamRecord::open(store)?;
    let mut runs = record.runs()?;
    runs.retain(RunRow::is_completed);
    let last = runs.last().map(|run| run.settings.model.clone());
    let Some(model) = text(given, "model").map(str::to_owned).or(last) else {
        return Ok(beginner("nobody was examined here"));
    };
    runs.retain(|run| run.settings.model == model);
    let Some(last) = runs.last() else {
        return Ok(beginner(&format!("{model} was never examined here")));
    };
    let weak = generate::weakest(&record, Some(last.id))?;
    let level = last.verdict().and_then(|verdict| verdict.reached);
    let scores: Vec<Value> = runs.iter().rev().take(RUNS_MAX).map(run_json).collect();
    let message = format!(
        "{model} reached {} in its last of {} runs",
        level.map_or("no level", Level::word),
        runs.len()
    );
    let mut helped = HelperToolResult::done(message)
        .with("model", model)
        .with("is_beginner", false)
        .with("scores", scores)
        .with("weak_classes", words(&weak));
    if let Some(level) = level {
        helped = helped.with("level", level);
    }
    Ok(helped)
}

/// The profile of a planner of whom nothing is known, and why.
pub(super) fn beginner(why: &str) -> HelperToolResult {
    HelperToolResult::done(format!("a beginner's profile, because {why}"))
        .with("is_beginner", true)
        .with("scores", json!([]))
        .with("weak_classes", words(CaseClass::value_variants()))
}

fn words(classes: &[CaseClass]) -> Vec<&CaseClass> {
    let said = classes.iter();
    said.filter(|class| **class != CaseClass::Other).collect()
}

fn run_json(run: &RunRow) -> Value {
    let verdict = run.verdict().unwrap_or_default();
    let tally = &verdict.tally;
    json!({
        "run": run.id, "level": verdict.reached, "began_ms": run.began_ms,
        "right": tally.all.right, "f1": tally.f1, "n": tally.answers,
        "unsafe": tally.hazards, "lost_stops": tally.lost_stops,
    })
}
