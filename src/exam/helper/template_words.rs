//! Patterns of cases, and words for them.

use serde_json::{Map, Value};

use super::{HelperToolResult, text};
use crate::settings::within;
use crate::{CaseClass, ExamError, ExamToolbox, generate};

/// Difficulty where none is said.
const MIDDLE: f64 = 5.0;

pub(super) fn templates(given: &Map<String, Value>) -> Result<HelperToolResult, ExamError> {
    let class = text(given, "class").map(CaseClass::named).transpose()?;
    let difficulty = given.get("difficulty").and_then(Value::as_f64);
    if let Some(difficulty) = difficulty {
        within("the difficulty", difficulty, 1.0..=10.0, "")?;
    }
    let found = generate::templates(class, text(given, "tool"), difficulty)?;
    let message = format!("{} templates", found.len());
    Ok(HelperToolResult::done(message)
        .with("n", found.len())
        .with("templates", found))
}

pub(super) fn keywords(given: &Map<String, Value>, tools: &ExamToolbox) -> HelperToolResult {
    let difficulty = given.get("difficulty").and_then(Value::as_f64);
    let found = generate::words(tools, difficulty.unwrap_or(MIDDLE));
    let message = format!(
        "{} scenes, {} names that no scene has, {} distractors",
        found.scenes.len(),
        found.unknown_scenes.len(),
        found.distractors.len()
    );
    HelperToolResult::done(message)
        .with("scenes", found.scenes)
        .with("unknown_scenes", found.unknown_scenes)
        .with("synonyms", found.synonyms)
        .with("distractors", found.distractors)
        .with("slots", found.slots)
        .with("cached", false)
}
