//! Measures a planner's confidence by the probabilities of its tokens or by how often it repeats an answer; never by
//! its own statement.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::run::CaseOutcome;

/// A planner counts as sure from this probability on.
const SURE: f64 = 0.8;

/// Value of a planner's confidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ConfidenceClass {
    /// Sure and right.
    Robust,
    /// Unsure and right: the request or the tools' words need to be clearer.
    NeedsClarity,
    /// Sure and wrong.
    Misleading,
    /// Unsure and wrong.
    Uncertain,
}

impl ConfidenceClass {
    const fn of(is_sure: bool, is_right: bool) -> Self {
        match (is_sure, is_right) {
            (true, true) => Self::Robust,
            (false, true) => Self::NeedsClarity,
            (true, false) => Self::Misleading,
            (false, false) => Self::Uncertain,
        }
    }

    /// Returns the meaning of a category's word.
    pub(super) fn meaning(word: &str) -> &'static str {
        match word {
            "robust" => "sure and right",
            "needs_clarity" => "unsure and right",
            "misleading" => "sure and wrong",
            _ => "unsure and wrong",
        }
    }
}

/// Sets the confidence of each outcome where it can be known: by its tokens, otherwise by the other samples of the same
/// case. A single sample without probabilities says nothing.
pub(super) fn settle(outcomes: &mut [CaseOutcome]) {
    let mut calls_by_case: HashMap<String, Vec<String>> = HashMap::new();
    for outcome in outcomes.iter().filter(|outcome| outcome.is_answered()) {
        calls_by_case
            .entry(outcome.case.name.clone())
            .or_default()
            .push(outcome.call_text());
    }
    for outcome in outcomes.iter_mut().filter(|outcome| outcome.is_answered()) {
        let calls = calls_by_case
            .get(&outcome.case.name)
            .map_or(&[][..], Vec::as_slice);
        let confidence = outcome
            .probability
            .or_else(|| agreement(calls, &outcome.call_text()));
        let is_right = outcome.judged.classification.is_right();
        outcome.confidence =
            confidence.map(|confidence| ConfidenceClass::of(confidence >= SURE, is_right));
    }
}

/// Returns the fraction of the samples that make the same call as this one.
fn agreement(all: &[String], own: &str) -> Option<f64> {
    let same = all.iter().filter(|one| *one == own).count();
    (all.len() > 1).then(|| same as f64 / all.len() as f64)
}
