//! An exam from cases to a verdict, recorded as it goes.

use serde_json::Value;

use super::confidence::{self, ConfidenceClass};
use super::record::{ExamRecord, now_ms};
use super::reworded_descriptions;
use super::word::Word;
use super::{
    AnswerReplay, CaseHazard, ExamCase, ExamError, ExamToolbox, ExamVerdict, HitRate, JudgedAnswer,
    Level, PlannerAnswer, PlannerSettings, judge, router,
};

/// One answer to one case, judged.
#[derive(Clone, Debug)]
pub(super) struct CaseOutcome {
    pub(super) case: ExamCase,
    /// Number of the sample, from 0.
    pub(super) sample: u32,
    /// The answer as it was received.
    pub(super) raw: String,
    pub(super) judged: JudgedAnswer,
    pub(super) hazard: CaseHazard,
    pub(super) milliseconds: Option<u64>,
    /// Number of further tries.
    pub(super) retries: u32,
    /// Reason for a missing answer.
    pub(super) error: Option<String>,
    /// Mean probability of its tokens, if known.
    pub(super) probability: Option<f64>,
    pub(super) confidence: Option<ConfidenceClass>,
    /// Time at which it arrived or was given up, in milliseconds since 1970.
    pub(super) answered_ms: Option<i64>,
}

impl CaseOutcome {
    /// Returns whether an answer arrived at all.
    pub(super) fn is_answered(&self) -> bool {
        self.error.is_none()
    }

    /// Returns the called tool and its arguments, for comparison with other samples.
    pub(super) fn call_text(&self) -> String {
        let tool = self.judged.selected_tool.as_deref().unwrap_or_default();
        format!("{tool} {}", Value::Object(self.judged.parameters.clone()))
    }

    /// Judges an answer that arrived.
    pub(super) fn of(case: &ExamCase, sample: u32, output: &Value, tools: &ExamToolbox) -> Self {
        let answer = PlannerAnswer::of(output, tools);
        Self {
            probability: answer.probability,
            raw: raw(output),
            ..Self::judged(case, sample, judge(case, &answer, tools), tools)
        }
    }

    /// Returns the outcome of an answer that never arrived.
    pub(super) fn failed(case: &ExamCase, sample: u32, reason: &str, tools: &ExamToolbox) -> Self {
        let judged = JudgedAnswer::failed(case, tools, reason);
        Self {
            error: Some(reason.to_owned()),
            ..Self::judged(case, sample, judged, tools)
        }
    }

    fn judged(case: &ExamCase, sample: u32, judged: JudgedAnswer, tools: &ExamToolbox) -> Self {
        Self {
            judged,
            hazard: case.hazard(tools),
            case: case.clone(),
            sample,
            raw: String::new(),
            milliseconds: None,
            retries: 0,
            error: None,
            probability: None,
            confidence: None,
            answered_ms: Some(now_ms()),
        }
    }
}

fn raw(output: &Value) -> String {
    match output {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Cases, tools and prompt of an exam.
#[derive(Clone, Debug)]
pub(crate) struct PlannerExam {
    /// The cases that fit these tools.
    pub(crate) cases: Vec<ExamCase>,
    /// The tools as they are shown to the planner.
    pub(crate) tools: ExamToolbox,
    /// The text before every question.
    pub(crate) preamble: String,
    /// The requested level.
    pub(crate) requested: Option<Level>,
    /// Further notes on the verdict.
    pub(crate) notes: Vec<String>,
}

impl PlannerExam {
    /// Returns whether the exam contains all of these cases: only then does a level earn a certificate.
    pub(crate) fn covers(&self, cases: &[ExamCase]) -> bool {
        let own_lines: std::collections::HashSet<String> =
            self.cases.iter().map(ExamCase::line).collect();
        cases.iter().all(|case| own_lines.contains(&case.line()))
    }

    /// Returns the rate at which the built-in router is right about the same cases.
    fn router(&self, is_answered: impl Fn(&str) -> bool) -> Result<HitRate, ExamError> {
        let cases = self.cases.iter().filter(|case| is_answered(&case.name));
        cases
            .map(|case| Ok(router::is_right(case, &self.tools.for_case(case)?)))
            .collect()
    }

    /// Returns the reasons that rule out every level, regardless of the answers. Recorded answers may belong to cases whose
    /// tools are not available: those are scored by name, and no level is given for unseen tools.
    fn level_bars(&self, answered: usize) -> Vec<String> {
        let all = self.cases.len();
        let mut bars = Vec::new();
        if answered < all {
            let unanswered = all - answered;
            bars.push(format!(
                "{unanswered} of {all} cases have no answer; a level needs all answers"
            ));
        }
        let unknown = self
            .cases
            .iter()
            .filter_map(|case| self.tools.knows(case).err());
        let unknown: Vec<ExamError> = unknown.collect();
        if let Some(first) = unknown.first() {
            bars.push(format!(
                "{} of {all} cases name tools that were not shown, so their arguments were not checked (first: {first})",
                unknown.len()
            ));
        }
        bars
    }

    /// Judges all outcomes together.
    pub(super) fn verdict(&self, outcomes: &mut [CaseOutcome]) -> Result<ExamVerdict, ExamError> {
        confidence::settle(outcomes);
        let answered = super::ExamTally::names(outcomes);
        let router = self.router(|name| answered.contains(name))?;
        let bars = self.level_bars(answered.len());
        let verdict = ExamVerdict::of(outcomes, self.requested, router, bars, self.notes.clone());
        Ok(ExamVerdict {
            descriptions: reworded_descriptions::fragment(outcomes, &self.tools),
            ..verdict
        })
    }

    /// Scores recorded answers.
    ///
    /// # Errors
    /// Fails if a case cannot be used or the record cannot be written.
    pub(crate) fn replay(
        &self,
        replay: &AnswerReplay,
        model: &str,
        record: &mut ExamRecord,
    ) -> Result<(i64, ExamVerdict), ExamError> {
        let mut settings = PlannerSettings::of_replay(model);
        let most_samples = self.cases.iter().map(|case| replay.of(case).len()).max();
        settings.samples = u32::try_from(most_samples.unwrap_or(1).clamp(1, 10)).unwrap_or(1);
        let mut outcomes = Vec::new();
        for case in &self.cases {
            let tools = self.tools.for_case(case)?;
            for (answer, sample) in replay.of(case).iter().zip(0_u32..) {
                outcomes.push(CaseOutcome {
                    milliseconds: answer.milliseconds,
                    ..CaseOutcome::of(case, sample, &answer.output, &tools)
                });
            }
        }
        let run = record.begin(self, &settings)?;
        let mut verdict = self.verdict(&mut outcomes)?;
        let (strays, lines) = (replay.strays(&self.cases), replay.lines());
        if strays > 0 {
            verdict.notes.push(format!(
                "{strays} of {lines} recorded answers belong to no case and were not scored"
            ));
        }
        record.keep(run, &outcomes)?;
        record.complete(run, &verdict)?;
        Ok((run, verdict))
    }
}

/// Returns a hash of the text before every question.
pub(crate) fn prompt_hash(preamble: &str) -> String {
    blake3::hash(preamble.as_bytes()).to_hex().to_string()
}

/// Returns a hash of the cases in their order.
pub(crate) fn cases_hash(cases: &[ExamCase]) -> String {
    let mut hasher = blake3::Hasher::new();
    for case in cases {
        hasher.update(case.line().as_bytes());
        hasher.update(b"\n");
    }
    hasher.finalize().to_hex().to_string()
}

/// Returns a hash of a list of tools, which is the same for every node that shows it.
pub(crate) fn tools_hash(tools: &ExamToolbox) -> String {
    let mut hasher = blake3::Hasher::new();
    for card in tools.cards() {
        hasher.update(card.function().to_string().as_bytes());
        hasher.update(card.does.word().as_bytes());
    }
    // Functions that are listed under more than their one name.
    for function in tools.functions().iter().filter(|_| !tools.is_plain()) {
        hasher.update(function.to_string().as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}
