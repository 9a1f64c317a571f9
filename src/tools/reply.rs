//! Refusals of calls for which nothing moved, and additions to an answer: what was understood of the call, and a narrower
//! statement than "nothing moved" if something else moves.

use std::fmt::Display;

use serde_json::Value;

use super::design_arguments::IMAGE_KEY;
use args::{ArgumentReading, ArgumentRepair};
use base::wording::{count, with_statement};

pub use call::ToolAnswer as Reply;

/// Returns the refusal of a call for which nothing moved, with the reason.
pub(super) fn refused(code: &str, reason: impl Display) -> Box<Reply> {
    let refused = Reply::failed(with_statement(reason, NOTHING_MOVED));
    refused.with("code", code).boxed()
}

/// Replaces the statement that nothing moved by these words, where it is not the whole truth.
pub(super) fn instead_of_nothing_moved(mut reply: Reply, words: &str) -> Reply {
    reply.text = reworded(&reply.text, words);
    for key in ["message", "usage_hints"] {
        match reply.structured.get_mut(key) {
            Some(Value::String(text)) => *text = reworded(text, words),
            Some(Value::Array(texts)) => texts.iter_mut().for_each(|value| {
                if let Value::String(text) = value {
                    *text = reworded(text, words);
                }
            }),
            _ => {}
        }
    }
    reply
}

/// Adds what was understood and repaired; entries that the tool has set itself stay, and come first.
pub(super) fn with_understood(mut reply: Reply, reading: &ArgumentReading) -> Reply {
    reply
        .structured
        .entry("understood")
        .or_insert_with(|| Value::Object(reading.understood.clone()));
    let mut repairs = match reply.structured.remove("repairs") {
        Some(Value::Array(repairs)) => repairs,
        _ => Vec::new(),
    };
    let own = reading.repairs.iter().map(serde_json::to_value);
    repairs.extend(own.filter_map(Result::ok));
    for repair in &reading.repairs {
        reply.text = format!("{}\n{}", reply.text, repair_line(repair));
    }
    reply.with_value("repairs", Value::Array(repairs))
}

/// Calls that an answer offers.
const OFFERED_CALLS: [&str; 3] = ["draw_call", "next_call", "corrected_call"];

/// Takes the caller's picture out of an answer, which would be as long as the call.
pub(super) fn without_picture(mut reply: Reply) -> Reply {
    let understood = reply.structured.get_mut("understood");
    if let Some(Value::String(picture)) = understood.and_then(|all| all.get_mut(IMAGE_KEY)) {
        *picture = format!("<a picture of {}>", count(picture.len(), "byte"));
    }
    for key in OFFERED_CALLS {
        let call = reply.structured.get(key);
        let arguments = call.and_then(|call| call.get("arguments"));
        if arguments.is_some_and(|arguments| arguments.get(IMAGE_KEY).is_some()) {
            reply.structured.shift_remove(key);
        }
    }
    reply
}

/// Statement about the whole node, as refusals have it.
pub(super) const NOTHING_MOVED: &str = "nothing moved";
/// Statement about one call, while others go on.
pub(super) const NOTHING_FOR_THIS_CALL: &str = "nothing moved for this call";
/// Statement about a step of a sequence in which an earlier step may have moved.
pub(super) const NOTHING_IN_THIS_STEP: &str = "nothing moved in this step";
/// Statement about a job with several motions, one of which was carried out.
pub(super) const MOVED_BEFORE: &str = "the arm had moved before that, and now stands still";

fn reworded(text: &str, words: &str) -> String {
    // An already narrowed statement is not narrowed twice.
    text.replace(NOTHING_FOR_THIS_CALL, NOTHING_MOVED)
        .replace(NOTHING_MOVED, words)
}

fn repair_line(repair: &ArgumentRepair) -> String {
    let ArgumentRepair {
        field,
        got,
        used,
        why: reason,
        ..
    } = repair;
    match (got.is_empty(), used.is_empty()) {
        (true, true) => format!("note: {field}: {reason}"),
        (false, true) => format!("note: {field}: {got}: {reason}"),
        _ => format!("note: {field}: {got} was read as {used} ({reason})"),
    }
}
