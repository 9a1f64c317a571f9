//! Reads one call: reads every candidate and takes the cheapest unique one.

use super::{
    arguments::{self, ReadCandidate},
    candidates::{self, CandidateReading},
    judge::{ReaderPolicy, ReaderRule, ToolEffect, Verdict, judge},
    outcome::{self, ArgumentReading, ArgumentRefusal, ArgumentRepair},
    parsed_value::ParsedValue,
    shape::ArgumentShape,
};
pub use call::ReceivedArguments;
use serde_json::{Map, Value};

/// Reads arguments and judges the call.
#[must_use]
pub fn judged(
    shape: &ArgumentShape,
    policy: &ReaderPolicy,
    received: ReceivedArguments,
) -> Verdict {
    judge(shape, policy, read(shape, policy, received))
}

/// Reads arguments. What is left over is in the reading, for [`judge`].
///
/// # Errors
/// The call contradicts itself, or a value is invalid. The refusal has every complaint at once. A tool that stops is never
/// refused.
pub fn read(
    shape: &ArgumentShape,
    policy: &ReaderPolicy,
    received: ReceivedArguments,
) -> Result<ArgumentReading, Box<ArgumentRefusal>> {
    choose(candidates(shape, policy, received), policy)
}

/// Reads every candidate of what was received.
pub(super) fn candidates<'a>(
    shape: &'a ArgumentShape,
    policy: &'a ReaderPolicy,
    received: ReceivedArguments,
) -> impl Iterator<Item = ReadCandidate> {
    let of_node = |node| (vec![CandidateReading::of_node(node)], String::new());
    let (candidates, text) = match received {
        ReceivedArguments::Absent => of_node(ParsedValue::Null),
        ReceivedArguments::Text(text) | ReceivedArguments::Value(Value::String(text)) => {
            (candidates::of_text(&text), text)
        }
        ReceivedArguments::Value(value) => of_node(value.into()),
    };
    candidates
        .into_iter()
        .map(move |candidate| arguments::read_candidate(shape, policy, candidate, &text))
}

/// Returns the cheapest reading, if no different one is as cheap; otherwise the cheapest refusal.
fn choose(
    all: impl Iterator<Item = ReadCandidate>,
    policy: &ReaderPolicy,
) -> Result<ArgumentReading, Box<ArgumentRefusal>> {
    let mut refusal: Option<(u32, Box<ArgumentRefusal>)> = None;
    let mut best: Option<(u32, ArgumentReading)> = None;
    let (mut is_tie, mut asks_for_dry_run) = (false, false);
    for ReadCandidate { outcome, cost } in all {
        match outcome {
            // Data that one reading finds and refuses must not be passed over by another.
            Err(found) if found.kind == ReaderRule::Verbatim => return Err(found),
            Ok(reading) => {
                asks_for_dry_run |= reading.is_cautious;
                match &best {
                    Some((least, chosen)) if cost >= *least => {
                        is_tie |= cost == *least && reading.given != chosen.given;
                    }
                    _ => {
                        is_tie = false;
                        best = Some((cost, reading));
                    }
                }
            }
            Err(found) if refusal.as_ref().is_none_or(|(least, _)| cost < *least) => {
                refusal = Some((cost, found));
            }
            Err(_) => {}
        }
    }
    let is_ambiguous = |reading: &ArgumentReading| {
        // A dry run that one reading finds must not be passed over by another.
        (is_tie || asks_for_dry_run != reading.is_cautious)
            && policy.refuses(ReaderRule::Contradiction)
    };
    match (best, refusal) {
        (Some((_, reading)), _) if is_ambiguous(&reading) => Err(ambiguous(reading.repairs)),
        // Arguments that were read and refused are not saved by leaving the whole text over.
        (Some((_, reading)), Some((_, refusal)))
            if policy.effect == ToolEffect::Moves
                && reading.given.is_empty()
                && !reading.leftover.is_empty() =>
        {
            Err(refusal)
        }
        (Some((_, reading)), _) => Ok(reading),
        (None, Some((_, refusal))) => Err(refusal),
        (None, None) => Err(ambiguous(Vec::new())),
    }
}

/// Refuses a text with two meanings; no part of it counts as readable.
fn ambiguous(repairs: Vec<ArgumentRepair>) -> Box<ArgumentRefusal> {
    let (rule, reason) = (ReaderRule::Contradiction, "this has two possible meanings");
    let issue = arguments::whole_text(rule, "ambiguous", reason);
    Box::new(ArgumentRefusal {
        complaints: outcome::complaints(&[issue]),
        good: Map::new(),
        repairs,
        kind: rule,
    })
}
