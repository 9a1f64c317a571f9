//! Round after round of new cases, of the classes that least is known of, until the verdict is certain or the budget is spent.

use std::ops::ControlFlow;

use super::generate::{GenerationRequest, generate, widest};
use super::run::{CaseOutcome, PlannerExam};
use super::verdict::settled_reason;
use super::{CaseClass, ExamCase, ExamError, ExamTally, PlannerSettings};

/// New cases of one round.
const CASES_PER_ROUND: usize = 15;

impl PlannerExam {
    /// Returns the cases to ask next, after these answers to all cases so far; or breaks, and says why where rounds were asked
    /// for at all.
    pub(super) fn next_round(
        &self,
        settings: &PlannerSettings,
        outcomes: &[CaseOutcome],
    ) -> Result<ControlFlow<Option<String>, Vec<ExamCase>>, ExamError> {
        let Some(budget) = settings.budget else {
            return Ok(ControlFlow::Break(None));
        };
        let done = |why: String| Ok(ControlFlow::Break(Some(why)));
        let tally = ExamTally::of(outcomes);
        if let Some(why) = settled_reason(&tally, self.asked) {
            return done(format!(
                "the verdict is certain after {} answers: {why}",
                tally.answers
            ));
        }
        let whole = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        let left = whole(budget).saturating_sub(outcomes.len()) / whole(settings.samples).max(1);
        if left == 0 {
            return done(format!(
                "the budget of {budget} answers is spent and the verdict is not certain; a larger one may settle it"
            ));
        }
        let more = self.more(settings, &tally, left.min(CASES_PER_ROUND))?;
        if more.is_empty() {
            return done(
                "no further new case could be made, and the verdict is not certain".to_owned(),
            );
        }
        Ok(ControlFlow::Continue(more))
    }

    /// New cases, the same ones from the same seed and the same cases before.
    fn more(
        &self,
        settings: &PlannerSettings,
        tally: &ExamTally,
        count: usize,
    ) -> Result<Vec<ExamCase>, ExamError> {
        let rates = tally.class_rates();
        let so_far = u64::try_from(self.cases.len()).unwrap_or(u64::MAX);
        let wanted = GenerationRequest {
            classes: widest(rates.filter(|(class, _)| *class != CaseClass::Other)),
            count,
            seed: settings.seed.wrapping_add(so_far),
            ..GenerationRequest::default()
        };
        match generate(&wanted, &self.cases, &self.tools) {
            Ok(made) => Ok(made.cases),
            // Of these classes there is no template.
            Err(ExamError::Request(_)) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}
