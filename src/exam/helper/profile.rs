//! Profile of a planner: its results in exams so far.

use std::path::Path;

use clap::ValueEnum as _;
use serde_json::{Map, Value, json};

use super::{HelperReply, text};
use crate::{CaseClass, ExamError, ExamRecord, RunRow, generate};

/// Runs that are told, the newest first.
const RUNS_MAX: usize = 10;

pub(super) fn profile(store: &Path, given: &Map<String, Value>) -> Result<HelperReply, ExamError> {
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
    let level = run_json(last).get("level").cloned().unwrap_or_default();
    let scores: Vec<Value> = runs.iter().rev().take(RUNS_MAX).map(run_json).collect();
    let message = format!(
        "{model} reached {} in its last of {} runs",
        level.as_str().unwrap_or("no level"),
        runs.len()
    );
    let mut helped = HelperReply::done(message)
        .with("model", model)
        .with("is_beginner", false)
        .with("scores", scores)
        .with("weak_classes", words(&weak));
    if !level.is_null() {
        helped = helped.with("level", level);
    }
    Ok(helped)
}

/// The profile of a planner of whom nothing is known, and why.
pub(super) fn beginner(why: &str) -> HelperReply {
    HelperReply::done(format!("a beginner's profile, because {why}"))
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
    let tally = verdict.get("tally");
    let of = |key: &str| tally.and_then(|tally| tally.get(key));
    json!({
        "run": run.id, "level": verdict.get("reached"), "began_ms": run.began_ms,
        "right": of("all").and_then(|all| all.get("right")), "f1": of("f1"), "n": of("answers"),
        "unsafe": of("hazards"), "lost_stops": of("lost_stops"),
    })
}
