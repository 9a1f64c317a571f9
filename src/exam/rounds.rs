//! Asks rounds of new cases from the least known classes until the verdict is certain or the budget is spent.

use std::ops::ControlFlow;

use super::generate::{GenerationRequest, generate, widest};
use super::run::{CaseOutcome, PlannerExam};
use super::verdict::settled_reason;
use super::{ExamCase, ExamError, ExamTally, PlannerSettings};

/// New cases of one round.
const CASES_PER_ROUND: usize = 15;

impl PlannerExam {
    /// Returns the cases to ask next, after these answers to all cases so far; or breaks, with the reason if rounds were
    /// requested at all.
    pub(super) fn next_round(
        &self,
        settings: &PlannerSettings,
        outcomes: &[CaseOutcome],
    ) -> Result<ControlFlow<Option<String>, Vec<ExamCase>>, ExamError> {
        let Some(budget) = settings.budget else {
            return Ok(ControlFlow::Break(None));
        };
        let finish = |reason: String| Ok(ControlFlow::Break(Some(reason)));
        let tally = ExamTally::of(outcomes);
        if let Some(reason) = settled_reason(&tally, self.requested) {
            return finish(format!(
                "{} answers are enough to be sure of the verdict: {reason}",
                tally.answers
            ));
        }
        let to_usize = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        let cases_left =
            to_usize(budget).saturating_sub(outcomes.len()) / to_usize(settings.samples).max(1);
        if cases_left == 0 {
            return finish(format!(
                "the verdict is not certain after the whole budget of {budget} answers. A larger budget may decide it"
            ));
        }
        let new_cases = self.new_cases(settings, &tally, cases_left.min(CASES_PER_ROUND))?;
        if new_cases.is_empty() {
            return finish(
                "the verdict is not certain, and no more new cases could be made".to_owned(),
            );
        }
        Ok(ControlFlow::Continue(new_cases))
    }

    /// Generates new cases; the same seed and earlier cases give the same ones.
    fn new_cases(
        &self,
        settings: &PlannerSettings,
        tally: &ExamTally,
        count: usize,
    ) -> Result<Vec<ExamCase>, ExamError> {
        let rates = tally.class_rates();
        let so_far = u64::try_from(self.cases.len()).unwrap_or(u64::MAX);
        let request = GenerationRequest {
            classes: widest(rates.filter(|(class, _)| class.is_made())),
            count,
            seed: settings.seed.wrapping_add(so_far),
            ..GenerationRequest::default()
        };
        match generate(&request, &self.cases, &self.tools) {
            Ok(generated) => Ok(generated.cases),
            // There is no template of these classes.
            Err(ExamError::Request(_)) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}
