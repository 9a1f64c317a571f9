//! Logs a warning for each call whose arguments were repaired or refused: what arrived and what was used.

use serde_json::Value;

use super::journal_entries;
use args::{ArgumentReading, ArgumentRefusal, ReceivedArguments};
use catalogue::ToolDefinition;

/// Most characters that are logged of what arrived, and of what was used.
const LOGGED_CHARS_MAX: usize = 200;

/// Logs arguments that were repaired.
pub(super) fn repaired(
    tool: &ToolDefinition,
    received: &ReceivedArguments,
    reading: &ArgumentReading,
) {
    if reading.repairs.is_empty() {
        return;
    }
    let repairs = reading.repairs.iter();
    let reasons = repairs.map(|repair| format!("{}: {}", repair.field, repair.why));
    let reasons: Vec<String> = reasons.collect();
    let used = Value::Object(reading.understood.clone()).to_string();
    tracing::warn!(
        tool = tool.name,
        received = truncated(&journal_entries::arguments_text(received)),
        used = truncated(&used),
        why = truncated(&reasons.join("; ")),
        "arguments were repaired"
    );
}

/// Logs arguments that were refused, so that none of them was used.
pub(super) fn refused(
    tool: &ToolDefinition,
    received: &ReceivedArguments,
    refusal: &ArgumentRefusal,
) {
    tracing::warn!(
        tool = tool.name,
        received = truncated(&journal_entries::arguments_text(received)),
        why = truncated(&refusal.to_string()),
        "arguments were refused"
    );
}

fn truncated(text: &str) -> String {
    match text.char_indices().nth(LOGGED_CHARS_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or(text)),
        None => text.to_owned(),
    }
}
