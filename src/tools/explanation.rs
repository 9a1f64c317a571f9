//! Explains how a text would be understood as the arguments of a tool, without calling it.

use serde_json::{Map, Value};

use super::design_arguments::DesignArguments;
use super::dispatch::no_default_scene;
use super::reply::Reply;
use super::tool_shape::shape;
use args::{CallOutcome, ReadingExplanation};
use catalogue::{KnownNames, ToolDefinition};

/// Explains how `text` would be read as the arguments of a tool, and whether the tool would take them.
#[must_use]
pub fn explain(tool: &ToolDefinition, here: &KnownNames, text: &str) -> ReadingExplanation {
    let mut explanation = args::explain(&shape(tool, here), tool.effect, text);
    if tool.name != "stroke" {
        return explanation;
    }
    for candidate in &mut explanation.candidates {
        // The profiles say why it is refused.
        let _ = settle(&mut candidate.understood, &candidate.given, here);
    }
    for profile in &mut explanation.profiles {
        if let Err(refused) = settle(&mut profile.understood, &profile.given, here) {
            profile.outcome = CallOutcome::Refused;
            profile.loss = None;
            profile.refused = Some(refused.text);
        }
    }
    explanation
}

/// Names the canvas that is drawn on in what was understood of a drawing. Nothing is understood of one that is refused.
fn settle(
    understood: &mut Option<Map<String, Value>>,
    given: &Map<String, Value>,
    here: &KnownNames,
) -> Result<(), Box<Reply>> {
    let Some(fields) = understood else {
        return Ok(());
    };
    let canvases = &here.canvases;
    match (DesignArguments { given, canvases }).canvas() {
        Ok(Some(canvas)) => {
            fields.insert("scene".to_owned(), canvas.into());
            Ok(())
        }
        Ok(None) if fields.contains_key("scene") || given.contains_key("resume") => Ok(()),
        Ok(None) => {
            *understood = None;
            Err(no_default_scene())
        }
        Err(refused) => {
            *understood = None;
            Err(refused)
        }
    }
}
