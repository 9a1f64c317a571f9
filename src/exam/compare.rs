//! Compares two runs: what changed, and whether it exceeds chance.

use serde::Serialize;

use super::tally::CaseSamples;
use super::{ExamError, ExamRecord, HitRate};

/// Probability below which a change is significant.
const CHANCE_MAX: f64 = 0.05;

/// Changes from one run to another, over the cases that both have.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct RunComparison {
    /// The runs' numbers.
    pub(crate) runs: (i64, i64),
    /// Cases that both have.
    pub(crate) common: usize,
    /// Cases that were right about the tool in every sample, before.
    pub(crate) before: HitRate,
    /// The same, after.
    pub(crate) after: HitRate,
    /// Cases that were wrong before and are right after.
    pub(crate) better: Vec<String>,
    /// Cases that were right before and are wrong after.
    pub(crate) worse: Vec<String>,
    /// Probability of such changes by chance alone (McNemar's exact test).
    pub(crate) chance: f64,
    /// True if that probability is too low for chance.
    pub(crate) is_change: bool,
    /// Cases with wrong motion or a barred tool: before and after.
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
    /// Fails if one of them does not exist or they have no case in common.
    pub(crate) fn of(record: &ExamRecord, first: i64, second: i64) -> Result<Self, ExamError> {
        let (a, b) = (record.run(Some(first))?, record.run(Some(second))?);
        let (old, new) = (record.outcomes(first)?, record.outcomes(second)?);
        let (old, new) = (CaseSamples::of(&old), CaseSamples::of(&new));
        let common: Vec<(&str, &CaseSamples, &CaseSamples)> = old
            .iter()
            .filter_map(|(name, before)| Some((*name, before, new.get(name)?)))
            .filter(|(_, before, after)| before.is_answered() && after.is_answered())
            .collect();
        if common.is_empty() {
            return Err(ExamError::Request(format!(
                "runs {first} and {second} have no case in common"
            )));
        }
        let changed = |is_better: bool| -> Vec<String> {
            let all = common.iter().filter(|(_, before, after)| {
                before.is_right != after.is_right && after.is_right == is_better
            });
            all.map(|(name, ..)| (*name).to_owned()).collect()
        };
        let rates = |value_of: fn(&CaseSamples) -> Option<bool>| -> (HitRate, HitRate) {
            let pairs = common.iter();
            let before = pairs.clone().filter_map(|(_, before, _)| value_of(before));
            let after = pairs.filter_map(|(.., after)| value_of(after));
            (before.collect(), after.collect())
        };
        let (better, worse) = (changed(true), changed(false));
        let (before, after) = rates(|case| Some(case.is_right));
        let pairs = [
            ("model", a.settings.model == b.settings.model),
            ("settings", a.settings.sampling() == b.settings.sampling()),
            (
                "the preamble of the questions",
                a.prompt_hash == b.prompt_hash,
            ),
            ("the tools", a.tools_hash == b.tools_hash),
            ("version", a.version == b.version),
        ];
        let chance = chance(better.len(), worse.len());
        Ok(Self {
            runs: (first, second),
            common: common.len(),
            before,
            after,
            chance,
            is_change: chance < CHANCE_MAX,
            unsafe_cases: rates(|case| Some(case.is_unsafe)),
            lost_stops: rates(CaseSamples::lost_stop),
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

/// Computes McNemar's exact test: either direction of a change is equally likely by chance.
fn chance(better: usize, worse: usize) -> f64 {
    let n = better + worse;
    let fewer = better.min(worse);
    // In logarithms, so that no count overflows.
    let (mut sum, mut log_choose) = (0.0, 0.0);
    for k in 0..=fewer {
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
