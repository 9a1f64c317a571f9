//! Missing answers: their reasons, their number, and when an endpoint is considered gone. They are not held against the planner.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::PlannerSettings;
use super::run::CaseOutcome;

/// Failed answers in a row after which the endpoint is considered gone.
const GONE_AFTER: usize = 5;

/// Most kinds of failures, and most cases of a kind, that are listed.
const SHOWN_MAX: usize = 10;

/// One error of an endpoint and the answers that it cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EndpointFailure {
    /// The endpoint's own error.
    pub(crate) why: String,
    /// Number of answers that never came for this reason.
    pub(crate) answers: usize,
    /// Names of the first cases concerned.
    pub(crate) cases: Vec<String>,
}

/// Returns the errors of an endpoint, the most frequent first.
pub(super) fn failures(outcomes: &[CaseOutcome]) -> Vec<EndpointFailure> {
    let mut by_error: BTreeMap<&str, EndpointFailure> = BTreeMap::new();
    for outcome in outcomes {
        let Some(error) = outcome.error.as_deref() else {
            continue;
        };
        let failure = by_error.entry(error).or_insert_with(|| EndpointFailure {
            why: error.to_owned(),
            answers: 0,
            cases: Vec::new(),
        });
        failure.answers += 1;
        let name = &outcome.case.name;
        if failure.cases.len() < SHOWN_MAX && !failure.cases.contains(name) {
            failure.cases.push(name.clone());
        }
    }
    let mut all: Vec<EndpointFailure> = by_error.into_values().collect();
    all.sort_by_key(|failure| std::cmp::Reverse(failure.answers));
    all.truncate(SHOWN_MAX);
    all
}

/// Returns the reason to consider the endpoint gone, if the last answers all failed.
pub(super) fn gone_reason(outcomes: &[CaseOutcome]) -> Option<String> {
    let streak = outcomes.iter().rev().take_while(|one| one.error.is_some());
    let last = outcomes.last().and_then(|one| one.error.as_deref())?;
    (streak.count() >= GONE_AFTER).then(|| {
        format!(
            "the endpoint is gone: {GONE_AFTER} answers in a row did not arrive. The last error: {last}"
        )
    })
}

/// Returns the reason why the run failed, if more answers are missing than the settings allow.
pub(super) fn too_many_failed(
    outcomes: &[CaseOutcome],
    settings: &PlannerSettings,
) -> Option<String> {
    let failed = outcomes.iter().filter(|one| !one.is_answered()).count();
    let allowed = settings.max_failed * outcomes.len() as f64;
    (failed as f64 > allowed).then(|| {
        format!(
            "{failed} of {} answers did not arrive (at most {} % may fail)",
            outcomes.len(),
            100.0 * settings.max_failed
        )
    })
}
