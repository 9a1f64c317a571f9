//! An exam from cases to a verdict, recorded as it goes.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::confidence::{self, Confidence};
use super::record::{NewRun, Record, now_ms};
use super::{
    Answer, Case, ExamError, Hazard, Judged, Level, Rate, Replay, Toolbox, Verdict, judge, router,
};

/// One answer to one case, judged.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub(super) case: Case,
    /// Which of its samples, from 0.
    pub(super) sample: u32,
    /// As it came.
    pub(super) raw: String,
    pub(super) judged: Judged,
    pub(super) hazard: Hazard,
    pub(super) milliseconds: Option<u64>,
    /// Why there is no answer, where there is none.
    pub(super) error: Option<String>,
    /// The mean probability of its tokens, where it is known.
    pub(super) probability: Option<f64>,
    pub(super) confidence: Option<Confidence>,
    /// When it came, or was given up: milliseconds since 1970.
    pub(super) answered_ms: Option<i64>,
}

impl Outcome {
    /// What was called with what, to be compared with other samples.
    pub(super) fn said(&self) -> String {
        let tool = self.judged.selected_tool.as_deref().unwrap_or_default();
        format!("{tool} {}", Value::Object(self.judged.parameters.clone()))
    }

    /// Judges an answer that came.
    pub(super) fn of(case: &Case, sample: u32, output: &Value, tools: &Toolbox) -> Self {
        let answer = Answer::of(output, tools);
        Self {
            judged: judge(case, &answer, tools),
            probability: answer.probability,
            raw: raw(output),
            ..Self::empty(case, sample, tools)
        }
    }

    /// An answer that did not come.
    pub(super) fn failed(case: &Case, sample: u32, why: &str, tools: &Toolbox) -> Self {
        Self {
            error: Some(why.to_owned()),
            ..Self::empty(case, sample, tools)
        }
    }

    fn empty(case: &Case, sample: u32, tools: &Toolbox) -> Self {
        Self {
            judged: Judged::failed(case, tools, "it did not come"),
            hazard: case.hazard(tools),
            case: case.clone(),
            sample,
            raw: String::new(),
            milliseconds: None,
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

/// How a planner is asked. It never changes within a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The endpoint's address, or `replay`.
    pub provider: String,
    /// The model's name, as the endpoint knows it.
    pub model: String,
    /// Longest wait for an answer, 1 to 300 s.
    pub time_limit_s: u32,
    /// 0 to 2.
    pub temperature: f64,
    /// Further tries after an error, 0 to 10.
    pub retries: u32,
    /// The seed that is sent with each question.
    pub seed: u64,
    /// How often each case is asked, 1 to 10.
    pub samples: u32,
    /// The BLAKE3 hash of the model's file, where whoever ran the exam had it.
    #[serde(default)]
    pub model_file: Option<String>,
    /// Up to so many answers are asked for while the verdict is not certain, 1 to 100,000; without it each case is asked and
    /// no more are made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<u32>,
}

impl Settings {
    /// As shipped.
    #[must_use]
    pub fn new(provider: &str, model: &str) -> Self {
        Self {
            provider: provider.to_owned(),
            model: model.to_owned(),
            time_limit_s: 30,
            temperature: 0.4,
            retries: 3,
            seed: 1,
            samples: 1,
            model_file: None,
            budget: None,
        }
    }

    /// Checks every range.
    ///
    /// # Errors
    /// The first setting that is out of its range.
    pub fn check(&self) -> Result<(), ExamError> {
        let wrong = |name, value: String, range| Err(ExamError::Setting { name, value, range });
        if !(1..=300).contains(&self.time_limit_s) {
            return wrong(
                "the time limit",
                self.time_limit_s.to_string(),
                "1 to 300 s",
            );
        }
        if !(0.0..=2.0).contains(&self.temperature) {
            return wrong("the temperature", self.temperature.to_string(), "0 to 2");
        }
        if self.retries > 10 {
            return wrong("the number of retries", self.retries.to_string(), "0 to 10");
        }
        if !(1..=10).contains(&self.samples) {
            return wrong("the number of samples", self.samples.to_string(), "1 to 10");
        }
        if let Some(budget) = self.budget.filter(|one| !(1..=100_000).contains(one)) {
            return wrong("the budget", budget.to_string(), "1 to 100000 answers");
        }
        Ok(())
    }
}

/// What is examined.
#[derive(Clone, Debug)]
pub struct Exam {
    /// The cases that fit these tools.
    pub cases: Vec<Case>,
    /// The tools as the planner is shown them.
    pub tools: Toolbox,
    /// The words that stand before every question.
    pub preamble: String,
    /// The level that is asked for.
    pub asked: Option<Level>,
    /// What else is to be known of the verdict.
    pub notes: Vec<String>,
}

impl Exam {
    /// The tools of one case.
    pub(super) fn tools_for(&self, case: &Case) -> Result<Toolbox, ExamError> {
        self.tools.for_case(case)
    }

    /// The words and tools that a planner was examined with, as one number.
    #[must_use]
    pub fn prompt_hash(&self) -> String {
        prompt_hash(&self.preamble)
    }

    /// The tool list as it is shown, as one number.
    #[must_use]
    pub fn tools_hash(&self) -> String {
        tools_hash(&self.tools)
    }

    /// The cases, in their order, as one number.
    #[must_use]
    pub fn cases_hash(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for case in &self.cases {
            hasher.update(case.line().as_bytes());
            hasher.update(b"\n");
        }
        hasher.finalize().to_hex().to_string()
    }

    /// Whether every case that ships and fits these tools is among its cases: only then is a level worth a certificate.
    ///
    /// # Errors
    /// The cases that ship cannot be read.
    pub fn is_whole(&self) -> Result<bool, ExamError> {
        let (shipped, _) = super::fitting(Case::shipped()?, &self.tools);
        let own: std::collections::HashSet<String> = self.cases.iter().map(Case::line).collect();
        Ok(shipped.iter().all(|case| own.contains(&case.line())))
    }

    /// How often the built-in router is right about the same cases.
    fn router(&self, names: impl Fn(&str) -> bool) -> Result<Rate, ExamError> {
        let mut rate = Rate::default();
        for case in self.cases.iter().filter(|case| names(&case.name)) {
            rate.count(router::is_right(case, &self.tools_for(case)?));
        }
        Ok(rate)
    }

    fn notes(&self) -> Result<Vec<String>, ExamError> {
        let mut named = std::collections::BTreeSet::new();
        for case in &self.cases {
            let tools = self.tools_for(case)?;
            let only = tools.cards().iter().filter(|card| card.is_only_named);
            named.extend(only.map(|card| card.name.clone()));
        }
        let mut notes = self.notes.clone();
        if !named.is_empty() {
            let shown: Vec<String> = named.iter().take(8).cloned().collect();
            notes.push(format!(
                "{} expected tools are in no list, so their arguments are taken as they come: {}",
                named.len(),
                shown.join(", ")
            ));
        }
        Ok(notes)
    }

    /// Judges all outcomes together.
    pub(super) fn verdict(&self, outcomes: &mut [Outcome]) -> Result<Verdict, ExamError> {
        confidence::settle(outcomes);
        let answered = super::Tally::names(outcomes);
        let unanswered = self.cases.len() - answered.len();
        let router = self.router(|name| answered.contains(name))?;
        Ok(Verdict::of(
            outcomes,
            self.asked,
            router,
            unanswered,
            self.notes()?,
        ))
    }

    /// Notes that an exam could not begin, as where a server's tools cannot be listed: a run that failed.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn refuse(
        &self,
        settings: &Settings,
        why: &str,
        record: &mut Record,
    ) -> Result<i64, ExamError> {
        let exam = self;
        record.refuse(&NewRun { exam, settings }, why)
    }

    /// Scores recorded answers.
    ///
    /// # Errors
    /// A case that cannot be used, or a record that cannot be written.
    pub fn replay(
        &self,
        replay: &Replay,
        model: &str,
        record: &mut Record,
    ) -> Result<(i64, Verdict), ExamError> {
        let mut settings = Settings::new("replay", model);
        let most = self.cases.iter().map(|case| replay.of(case).len()).max();
        settings.samples = u32::try_from(most.unwrap_or(1).clamp(1, 10)).unwrap_or(1);
        let mut outcomes = Vec::new();
        for case in &self.cases {
            let tools = self.tools_for(case)?;
            for (said, sample) in replay.of(case).iter().zip(0_u32..) {
                let mut outcome = Outcome::of(case, sample, &said.output, &tools);
                outcome.milliseconds = said.milliseconds;
                outcomes.push(outcome);
            }
        }
        let run = record.begin(&NewRun {
            exam: self,
            settings: &settings,
        })?;
        let mut verdict = self.verdict(&mut outcomes)?;
        let strays = replay.strays(&self.cases);
        if strays > 0 {
            verdict.notes.push(format!(
                "{strays} recorded answers belong to no case and were not scored"
            ));
        }
        record.keep(run, &outcomes)?;
        record.complete(run, &verdict)?;
        Ok((run, verdict))
    }
}

/// The words before every question as one number.
#[must_use]
pub fn prompt_hash(preamble: &str) -> String {
    blake3::hash(preamble.as_bytes()).to_hex().to_string()
}

/// A list of tools as one number, whatever node shows it.
#[must_use]
pub fn tools_hash(tools: &Toolbox) -> String {
    let mut hasher = blake3::Hasher::new();
    for card in tools.cards() {
        hasher.update(card.function().to_string().as_bytes());
        hasher.update(card.does.word().as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}
