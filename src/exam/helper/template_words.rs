//! Patterns of cases, and words for them.

use serde_json::{Map, Value};

use super::{HelperToolResult, text};
use crate::settings::within;
use crate::{CaseClass, ExamError, ExamToolbox, generate};

/// Default difficulty.
const DEFAULT_DIFFICULTY: f64 = 5.0;

pub(super) fn templates(arguments: &Map<String, Value>) -> Result<HelperToolResult, ExamError> {
    let class = text(arguments, "class").map(CaseClass::named).transpose()?;
    let difficulty = difficulty(arguments)?;
    let templates = generate::templates(class, text(arguments, "tool"), difficulty)?;
    let message = format!("{} templates", templates.len());
    Ok(HelperToolResult::done(message)
        .with("n", templates.len())
        .with("templates", templates))
}

/// Returns the difficulty that a call asks for.
fn difficulty(arguments: &Map<String, Value>) -> Result<Option<f64>, ExamError> {
    let difficulty = arguments.get("difficulty").and_then(Value::as_f64);
    if let Some(difficulty) = difficulty {
        within("the difficulty", difficulty, 1.0..=10.0, "")?;
    }
    Ok(difficulty)
}

pub(super) fn keywords(
    arguments: &Map<String, Value>,
    tools: &ExamToolbox,
) -> Result<HelperToolResult, ExamError> {
    let difficulty = difficulty(arguments)?;
    let keywords = generate::words(tools, difficulty.unwrap_or(DEFAULT_DIFFICULTY));
    let message = format!(
        "{} scenes, {} names that no scene has, {} distractors",
        keywords.scenes.len(),
        keywords.unknown_scenes.len(),
        keywords.distractors.len()
    );
    Ok(HelperToolResult::done(message)
        .with("scenes", keywords.scenes)
        .with("unknown_scenes", keywords.unknown_scenes)
        .with("synonyms", keywords.synonyms)
        .with("distractors", keywords.distractors)
        .with("slots", keywords.slots)
        .with("cached", false))
}
