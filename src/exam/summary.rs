//! Summarises all runs: precision, recall, accuracy and completeness by tool, class, model or day.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::run::CaseOutcome;
use super::tally::{MeanShare, NO_TOOL};
use super::word::Word;
use super::{AnswerClassification, ExamError, ExamRecord, ExamTally, HitRate, RunRow};

/// Key by which answers are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum SummaryKey {
    /// The right tool; its precision counts its calls.
    #[value(help = None)]
    Tool,
    /// The class of the case.
    #[value(help = None)]
    Class,
    /// The model that was examined.
    #[value(help = None)]
    Model,
    /// The day on which the run began, in UTC.
    #[value(help = "By day (UTC) on which the runs began")]
    Time,
}

/// One row: each number with its n.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct SummaryRow {
    /// The tool, class, model or day.
    pub(crate) key: String,
    /// Number of runs.
    pub(crate) runs: usize,
    /// Number of answers.
    pub(crate) answers: usize,
    /// Answers with the right tool, or rightly none.
    pub(crate) accuracy: HitRate,
    /// Right calls of those that were made.
    pub(crate) precision: HitRate,
    /// Right calls of those that were due.
    pub(crate) recall: HitRate,
    /// Fraction of the expected parameters that were sent, of right tools.
    pub(crate) completeness: MeanShare,
    /// Fraction of the expected parameters that were right, of right tools.
    pub(crate) correctness: MeanShare,
    /// Answers that asked for motion, or for a barred tool, where that was wrong.
    pub(crate) unsafe_actions: HitRate,
    /// Previews carried out although the request said otherwise, of those in words alone.
    pub(crate) blind_confirms_words: HitRate,
    /// The same of previews with the call that draws their plan.
    pub(crate) blind_confirms_next_call: HitRate,
}

/// Answers under one key, and the runs they are from.
#[derive(Default)]
struct SummaryGroup {
    runs: BTreeSet<i64>,
    outcomes: Vec<CaseOutcome>,
}

impl SummaryRow {
    /// Returns the rows over the selected runs that have a verdict, in the order of their keys.
    ///
    /// # Errors
    /// Fails if the record cannot be read.
    pub(crate) fn all(
        record: &ExamRecord,
        by: SummaryKey,
        is_selected: impl Fn(&RunRow) -> bool,
    ) -> Result<Vec<Self>, ExamError> {
        let mut groups: BTreeMap<String, SummaryGroup> = BTreeMap::new();
        let mut calls: BTreeMap<String, HitRate> = BTreeMap::new();
        let runs = record.runs()?.into_iter();
        for run in runs.filter(|run| run.is_completed() && is_selected(run)) {
            let answers = record.outcomes(run.id)?.into_iter();
            for outcome in answers.filter(CaseOutcome::is_answered) {
                if let (SummaryKey::Tool, Some(tool)) = (by, &outcome.judged.selected_tool) {
                    let is_right =
                        outcome.judged.classification == AnswerClassification::TruePositive;
                    calls.entry(tool.clone()).or_default().count(is_right);
                }
                let group = groups.entry(key(by, &run, &outcome)).or_default();
                group.runs.insert(run.id);
                group.outcomes.push(outcome);
            }
        }
        let rows = groups.into_iter().map(|(key, group)| {
            let own = calls.remove(&key).unwrap_or_default();
            let row = Self::of(key, &group);
            match by {
                SummaryKey::Tool => Self {
                    precision: own,
                    ..row
                },
                SummaryKey::Class | SummaryKey::Model | SummaryKey::Time => row,
            }
        });
        Ok(rows.collect())
    }

    fn of(key: String, group: &SummaryGroup) -> Self {
        let tally = ExamTally::of(&group.outcomes);
        Self {
            key,
            runs: group.runs.len(),
            answers: tally.answers,
            accuracy: tally.all.right,
            precision: tally.precision,
            recall: tally.recall,
            completeness: tally.completeness,
            correctness: tally.correctness,
            unsafe_actions: tally.all.unsafe_actions,
            blind_confirms_words: tally.blind_confirms_words,
            blind_confirms_next_call: tally.blind_confirms_next_call,
        }
    }
}

fn key(by: SummaryKey, run: &RunRow, outcome: &CaseOutcome) -> String {
    match by {
        SummaryKey::Tool => outcome
            .case
            .expected_tool
            .clone()
            .unwrap_or_else(|| NO_TOOL.to_owned()),
        SummaryKey::Class => outcome.case.class.word(),
        SummaryKey::Model => run.settings.model.clone(),
        // The day of `2026-11-21 14:05`.
        SummaryKey::Time => base::calendar::minute(run.began_ms)
            .chars()
            .take(10)
            .collect(),
    }
}
