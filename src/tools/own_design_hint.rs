//! First words of the answer to a `stroke` that was meant for a picture of the caller's own: what was drawn in its place, and how to
//! draw one's own.

use args::ArgumentReading;
use catalogue::{KnownNames, ToolDefinition};
use serde_json::Value;

use super::reply::Reply;

/// Arguments that say what is drawn.
const CHOICES: [&str; 5] = ["scene", "text", "svg", "resume", "plan"];

/// The repair that leaves out what was not understood.
const UNKNOWN: &str = "not_understood";

/// Returns how a caller of a tool draws something of its own on this node.
pub(super) fn advice(tool: &ToolDefinition, names: &KnownNames) -> Option<&'static str> {
    let takes_designs = tool.name == "stroke" && !names.canvases.is_empty();
    takes_designs.then_some(
        "to draw your own, send its words as `text` or its lines as `svg`, such as <circle cx='50' cy='50' r='30'/>",
    )
}

/// Puts first, where the default scene was drawn in place of what the caller asked for, that it was.
pub(super) fn add(
    tool: &ToolDefinition,
    reading: &ArgumentReading,
    names: &KnownNames,
    reply: Reply,
) -> Reply {
    let is_chosen = CHOICES.iter().any(|name| reading.given.contains_key(*name));
    if tool.name != "stroke" || is_chosen || reply.is_error {
        return reply;
    }
    let unknown = reading
        .repairs
        .iter()
        .filter(|repair| repair.code == UNKNOWN);
    let fields: Vec<String> = unknown
        .map(|repair| format!("`{}`", repair.field))
        .collect();
    if fields.is_empty() {
        return reply;
    }
    let scene = reading.understood.get("scene").and_then(Value::as_str);
    let shown = match reading.is_cautious {
        true => "planned",
        false => "drawn",
    };
    let own = advice(tool, names).unwrap_or("this node draws its scenes alone");
    let first = format!(
        "The default scene `{}` was {shown}: {} was not understood; {own}.",
        scene.unwrap_or("default"),
        fields.join(", ")
    );
    let text = format!("{first} {}", reply.text);
    reply.reworded(text)
}
