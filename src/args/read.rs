//! Reads one call: judges every candidate and takes the cheapest unique one.

use super::{
    arguments::{self, JudgedCandidate},
    candidates::{self, CandidateReading},
    corrected_call::RefusedCall,
    outcome::{ArgumentReading, ArgumentRefusal, ArgumentRepair},
    parsed_value::ParsedValue,
    rules::{ReaderPolicy, ReaderRule, ToolEffect},
    shape::ArgumentShape,
};
pub use call::ReceivedArguments;
use serde_json::{Map, Value};

/// Reads arguments.
///
/// # Errors
/// The policy refuses to run the tool. The refusal has every complaint at once, and arguments that would be accepted.
/// A tool that stops is never refused.
pub fn read(
    shape: &ArgumentShape,
    policy: &ReaderPolicy,
    received: ReceivedArguments,
) -> Result<ArgumentReading, Box<ArgumentRefusal>> {
    choose(judged(shape, policy, received), shape, policy)
}

/// Judges every reading of what was received.
pub(super) fn judged<'a>(
    shape: &'a ArgumentShape,
    policy: &'a ReaderPolicy,
    received: ReceivedArguments,
) -> impl Iterator<Item = JudgedCandidate> {
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
        .map(move |candidate| arguments::judge(shape, policy, candidate, &text))
}

/// Returns the cheapest reading, if no different one is as cheap; otherwise the cheapest refusal.
fn choose(
    judged: impl Iterator<Item = JudgedCandidate>,
    shape: &ArgumentShape,
    policy: &ReaderPolicy,
) -> Result<ArgumentReading, Box<ArgumentRefusal>> {
    let mut refusal: Option<(u32, Box<ArgumentRefusal>)> = None;
    let mut best: Option<(u32, ArgumentReading)> = None;
    let (mut is_tie, mut may_move) = (false, false);
    let (mut withheld, mut verbatim) = (None, None);
    for candidate in judged {
        let cost = candidate.cost;
        match candidate.outcome {
            Err(found) if found.kind == ReaderRule::Verbatim => verbatim = verbatim.or(Some(found)),
            Err(found) if found.kind == ReaderRule::Withheld => withheld = withheld.or(Some(found)),
            Ok(reading) => match &best {
                Some((least, chosen)) if cost >= *least => {
                    is_tie |= cost == *least && reading.given != chosen.given;
                }
                _ => {
                    is_tie = false;
                    may_move = !candidate.is_cautious;
                    best = Some((cost, reading));
                }
            },
            Err(found) if refusal.as_ref().is_none_or(|(least, _)| cost < *least) => {
                refusal = Some((cost, found));
            }
            Err(_) => {}
        }
    }
    // Data that one reading finds and refuses must not be passed over by another.
    if let Some(refused) = verbatim {
        return Err(refused);
    }
    // A request not to move that one reading finds must not be ignored by another.
    if let Some(refused) = withheld
        && (best.is_none() || may_move)
    {
        return Err(refused);
    }
    match (best, refusal) {
        (Some((_, reading)), _) if is_tie && policy.refuses(ReaderRule::Contradiction) => {
            Err(ambiguous(shape, policy, reading.repairs))
        }
        // Arguments that were read and refused are not saved by reading the text as empty.
        (Some((_, reading)), Some((_, refusal)))
            if policy.effect == ToolEffect::Moves && has_no_arguments(&reading) =>
        {
            Err(refusal)
        }
        (Some((_, reading)), _) => Ok(reading),
        (None, Some((_, refusal))) => Err(refusal),
        (None, None) => Err(ambiguous(shape, policy, Vec::new())),
    }
}

/// Returns whether defaults replace a text in which no arguments were found.
fn has_no_arguments(reading: &ArgumentReading) -> bool {
    let mut repairs = reading.repairs.iter();
    repairs.any(|repair| repair.code == "no_arguments")
}

/// Refuses a text with two meanings; no part of it counts as readable.
fn ambiguous(
    shape: &ArgumentShape,
    policy: &ReaderPolicy,
    repairs: Vec<ArgumentRepair>,
) -> Box<ArgumentRefusal> {
    let (rule, reason) = (ReaderRule::Contradiction, "this can be read in two ways");
    let call = RefusedCall {
        shape,
        policy,
        given: Map::new(),
        issues: &[arguments::whole_text(rule, "ambiguous", reason)],
        repairs,
    };
    call.refusal(rule)
}
