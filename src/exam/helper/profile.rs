//! Profile of a planner: its results in exams so far.

use std::path::Path;

use clap::ValueEnum as _;
use serde_json::{Map, Value, json};

use super::{HelperToolResult, text};
use crate::{CaseClass, ExamError, ExamRecord, Level, RunRow, generate};

/// Most runs in a profile, the newest first.
const RUNS_MAX: usize = 10;

pub(super) fn profile(
    store: &Path,
    arguments: &Map<String, Value>,
) -> Result<HelperToolResult, ExamError> {
    if !store.is_file() {
        return Ok(beginner("no planner has been examined on this node"));
    }
    let record = ExamRecord::open(store)?;
    let mut runs = record.runs()?;
    runs.retain(RunRow::is_completed);
    let last = runs.last().map(|run| run.settings.model.clone());
    let Some(model) = text(arguments, "model").map(str::to_owned).or(last) else {
        return Ok(beginner("no planner has been examined on this node"));
    };
    runs.retain(|run| run.settings.model == model);
    let Some(last) = runs.last() else {
        return Ok(beginner(&format!(
            "{model} was never examined on this node"
        )));
    };
    let weakest = generate::weakest(&record, Some(last.id))?;
    let level = last.verdict().and_then(|verdict| verdict.reached);
    let scores: Vec<Value> = runs.iter().rev().take(RUNS_MAX).map(run_json).collect();
    let message = format!(
        "{model} reached {} in the last of its {} runs",
        level.map_or("no level", Level::word),
        runs.len()
    );
    let mut result = HelperToolResult::done(message)
        .with("model", model)
        .with("is_beginner", false)
        .with("scores", scores)
        .with("weak_classes", without_other(&weakest));
    if let Some(level) = level {
        result = result.with("level", level);
    }
    Ok(result)
}

/// Returns the profile of an unknown planner, with the reason.
pub(super) fn beginner(reason: &str) -> HelperToolResult {
    HelperToolResult::done(format!("this is the profile of a beginner: {reason}"))
        .with("is_beginner", true)
        .with("scores", json!([]))
        .with("weak_classes", without_other(CaseClass::value_variants()))
}

fn without_other(classes: &[CaseClass]) -> Vec<&CaseClass> {
    classes
        .iter()
        .filter(|class| **class != CaseClass::Other)
        .collect()
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
