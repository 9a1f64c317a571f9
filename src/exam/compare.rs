//! Two runs beside each other: what changed, and whether by more than chance would.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::run::CaseOutcome;
use super::{CaseHazard, ExamError, ExamRecord, HitRate};

/// Below this probability a change is taken for one.
const CHANCE_MAX: f64 = 0.05;

/// Changes from one run to another, over the cases that both have.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct RunComparison {
    /// The runs' numbers.
    pub(crate) runs: (i64, i64),
    /// Cases that both have.
    pub(crate) common: usize,
    /// Right about the tool in every sample, before.
    pub(crate) before: HitRate,
    /// And after.
    pub(crate) after: HitRate,
    /// Cases that were wrong and are right.
    pub(crate) better: Vec<String>,
    /// Cases that were right and are wrong.
    pub(crate) worse: Vec<String>,
    /// Probability that chance alone changes as many (McNemar's exact test).
    pub(crate) chance: f64,
    /// True if that probability is too low for chance.
    pub(crate) is_change: bool,
    /// Cases with motion, or a barred tool, where that was wrong: before and after.
    pub(crate) unsafe_cases: (HitRate, HitRate),
    /// Cases in which a stop was due and a sample lost it: before and after.
    pub(crate) lost_stops: (HitRate, HitRate),
    /// Differences in prompt, tools, version or settings.
    pub(crate) differs: Vec<String>,
}

impl RunComparison {
    /// Compares two runs.
    ///
    /// # Errors
    /// One of them does not exist, or they have no case in common.
    pub(crate) fn of(record: &ExamRecord, first: i64, second: i64) -> Result<Self, ExamError> {
        let (a, b) = (record.run(Some(first))?, record.run(Some(second))?);
        let (before, after) = (
            cases(&record.outcomes(first)?),
            cases(&record.outcomes(second)?),
        );
        let common: BTreeSet<&String> = before
            .keys()
            .filter(|name| after.contains_key(*name))
            .collect();
        if common.is_empty() {
            return Err(ExamError::Request(format!(
                "runs {first} and {second} have no case in common"
            )));
        }
        let right = |of: &BTreeMap<String, ComparedCase>, name: &str| {
            of.get(name).is_some_and(|case| case.is_right)
        };
        let changed = |from: &BTreeMap<String, ComparedCase>,
                       to: &BTreeMap<String, ComparedCase>| {
            let names = common
                .iter()
                .filter(|name| !right(from, name) && right(to, name));
            names.map(|name| (*name).clone()).collect::<Vec<_>>()
        };
        let (better, worse) = (changed(&before, &after), changed(&after, &before));
        let rate = |of: &BTreeMap<String, ComparedCase>| HitRate {
            hits: common.iter().filter(|name| right(of, name)).count(),
            n: common.len(),
        };
        let both = |counted: fn(&ComparedCase) -> Option<bool>| {
            let rate = |of: &BTreeMap<String, ComparedCase>| {
                let mut rate = HitRate::default();
                let cases = common.iter().filter_map(|name| of.get(*name));
                cases
                    .filter_map(counted)
                    .for_each(|is_hit| rate.count(is_hit));
                rate
            };
            (rate(&before), rate(&after))
        };
        let pairs = [
            ("model", a.settings.model == b.settings.model),
            ("settings", a.settings.sampling() == b.settings.sampling()),
            (
                "the words before the questions",
                a.prompt_hash == b.prompt_hash,
            ),
            ("the tools", a.tools_hash == b.tools_hash),
            ("version", a.version == b.version),
        ];
        let chance = chance(better.len(), worse.len());
        Ok(Self {
            runs: (first, second),
            common: common.len(),
            before: rate(&before),
            after: rate(&after),
            chance,
            is_change: chance < CHANCE_MAX,
            unsafe_cases: both(|case| Some(case.is_unsafe)),
            lost_stops: both(|case| case.is_lost),
            differs: pairs
                .iter()
                .filter(|(_, same)| !same)
                .map(|(name, _)| (*name).to_owned())
                .collect(),
            better,
            worse,
        })
    }
}

/// A case over all its samples.
struct ComparedCase {
    is_right: bool,
    is_unsafe: bool,
    /// True if a stop was lost; `None` if no stop was due.
    is_lost: Option<bool>,
}

fn cases(outcomes: &[CaseOutcome]) -> BTreeMap<String, ComparedCase> {
    let mut cases: BTreeMap<String, ComparedCase> = BTreeMap::new();
    for outcome in outcomes.iter().filter(|one| one.came()) {
        let case = cases
            .entry(outcome.case.name.clone())
            .or_insert(ComparedCase {
                is_right: true,
                is_unsafe: false,
                is_lost: (outcome.hazard == CaseHazard::Stop).then_some(false),
            });
        case.is_right &= outcome.judged.classification.is_right();
        case.is_unsafe |= outcome.judged.unsafe_action;
        case.is_lost = case.is_lost.map(|lost| lost || outcome.judged.lost_stop);
    }
    cases
}

/// McNemar's exact test: of the cases that changed, each way is as likely as a coin's.
fn chance(better: usize, worse: usize) -> f64 {
    let n = better + worse;
    let least = better.min(worse);
    // In logarithms, so that no count overflows.
    let (mut sum, mut log_choose) = (0.0, 0.0);
    for k in 0..=least {
        if k > 0 {
            log_choose += ((n - k + 1) as f64).ln() - (k as f64).ln();
        }
        sum += (log_choose - n as f64 * std::f64::consts::LN_2).exp();
    }
    (2.0 * sum).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_changes_are_chance_and_many_one_way_are_not() {
        assert!((chance(0, 0) - 1.0).abs() < 1e-12);
        assert!((chance(5, 0) - 0.0625).abs() < 1e-12);
        assert!((chance(1, 9) - 0.021_484_375).abs() < 1e-12);
        assert!(chance(3000, 2000) < 1e-6);
    }
}
