//! Reading one call: every candidate is judged and the cheapest unique one is the reading.

use super::{
    arguments::{self, Judged},
    candidates::{self, Candidate},
    correct::Refused,
    node::Node,
    outcome::{self, Reading, Refusal, Repair},
    rules::{Effect, Policy, Rule},
    shape::Shape,
};
pub use call::Received;
use serde_json::{Map, Value};

/// Reads arguments.
///
/// # Errors
/// Every complaint at once, with arguments that would be accepted, where the policy refuses to run on what was received.
/// A tool that stops is never refused.
pub fn read(shape: &Shape, policy: &Policy, received: Received) -> Result<Reading, Box<Refusal>> {
    choose(judged(shape, policy, received), shape, policy)
}

/// Every way of reading what was received, judged.
pub(super) fn judged<'a>(
    shape: &'a Shape,
    policy: &'a Policy,
    received: Received,
) -> impl Iterator<Item = Judged> {
    let (candidates, text) = match received {
        Received::Absent => (vec![Candidate::of_node(Node::Null)], String::new()),
        Received::Text(text) | Received::Value(Value::String(text)) => {
            (candidates::of_text(&text), text)
        }
        Received::Value(value) => (vec![Candidate::of_node(Node::from(value))], String::new()),
    };
    candidates
        .into_iter()
        .map(move |candidate| arguments::judge(shape, policy, candidate, &text))
}

/// The cheapest reading, if no other is as cheap and different; otherwise the cheapest refusal.
fn choose(
    judged: impl Iterator<Item = Judged>,
    shape: &Shape,
    policy: &Policy,
) -> Result<Reading, Box<Refusal>> {
    let mut refusal: Option<(u32, Box<Refusal>)> = None;
    let mut best: Option<(u32, Reading)> = None;
    let mut tie = false;
    let mut moves = false;
    let mut withheld: Option<Box<Refusal>> = None;
    for Judged {
        outcome,
        cost,
        is_cautious,
    } in judged
    {
        match outcome {
            Err(found) if found.kind == Rule::Withheld => withheld = withheld.or(Some(found)),
            Ok(reading) => match &best {
                Some((least, chosen)) if cost >= *least => {
                    tie |= cost == *least && reading.given != chosen.given;
                }
                _ => {
                    tie = false;
                    moves = !is_cautious;
                    best = Some((cost, reading));
                }
            },
            Err(found) if refusal.as_ref().is_none_or(|(least, _)| cost < *least) => {
                refusal = Some((cost, found));
            }
            Err(_) => {}
        }
    }
    // What one way of reading hears as a request not to move is not overheard by another.
    if let Some(refused) = withheld
        && (best.is_none() || moves)
    {
        return Err(refused);
    }
    match (best, refusal) {
        (Some((_, reading)), _) if tie && policy.refuses(Rule::Contradiction) => {
            Err(Box::new(ambiguous(shape, policy, reading.repairs)))
        }
        // Arguments that were read and refused are not made good by reading the text as none.
        (Some((_, reading)), Some((_, refusal)))
            if policy.effect == Effect::Moves && has_no_arguments(&reading) =>
        {
            Err(refusal)
        }
        (Some((_, reading)), _) => Ok(reading),
        (None, Some((_, refusal))) => Err(refusal),
        (None, None) => Err(Box::new(ambiguous(shape, policy, Vec::new()))),
    }
}

/// Returns whether defaults replace a text in which no arguments were found.
fn has_no_arguments(reading: &Reading) -> bool {
    let mut repairs = reading.repairs.iter();
    repairs.any(|repair| repair.code == "no_arguments")
}

/// Refuses a text of two meanings; nothing of it is readable.
fn ambiguous(shape: &Shape, policy: &Policy, repairs: Vec<Repair>) -> Refusal {
    let why = "this can be read in two ways";
    let troubles = [arguments::whole_text(Rule::Contradiction, "ambiguous", why)];
    let good = Map::new();
    let call = Refused {
        shape,
        policy,
        given: &good,
        troubles: &troubles,
        repairs: &repairs,
    };
    let correction = call.correction();
    Refusal {
        complaints: outcome::complaints(&troubles),
        corrected: correction.call,
        guidance: correction.guidance,
        good,
        repairs,
        kind: Rule::Contradiction,
        must_mend: Vec::new(),
    }
}
