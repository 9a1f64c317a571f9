//! Checks whether cases are worth asking: by rules, and by a model if there is one and it is asked.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Map, Value};

use super::{HelperToolResult, ModelClient, case_of, flag, known_cases, objects};
use crate::generate::{self, CaseFinding, ModelJudgement};
use crate::{ExamCase, ExamError, ExamToolbox, UnusableReply};
use base::clock::NodeClock;
use base::units::ClockInstant;

/// Result for one case.
#[derive(Serialize)]
struct CaseVerdict {
    case: String,
    /// Absent where the case could not be read at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
    /// pass, revise or reject.
    decision: &'static str,
    why: Vec<String>,
    judged_by: &'static str,
    /// The model's opinion, if it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<ModelOpinion>,
}

/// A model's opinion of a case.
#[derive(Serialize)]
struct ModelOpinion {
    /// 0 to 1, or a default that costs the case nothing if the model failed.
    score: f64,
    is_default: bool,
    retries: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
}

/// Score of a model that failed to give one.
const DEFAULT_SCORE: f64 = 0.5;

/// Failures in a row after which the model is no longer asked.
const FAILURES_MAX: u32 = 2;

/// A model that judges cases until its time is over.
pub(super) struct CaseJudge<'a> {
    pub(super) client: Option<&'a ModelClient>,
    pub(super) clock: &'a NodeClock,
    pub(super) until: ClockInstant,
    /// Failures in a row.
    pub(super) failures: u32,
}

impl CaseJudge<'_> {
    /// Judges a case within its part of the time that is left for `cases` cases.
    async fn judge(
        &mut self,
        case: &ExamCase,
        tools: &ExamToolbox,
        cases: usize,
    ) -> Option<ModelJudgement> {
        let client = self.client?;
        let unusable = |error| ModelJudgement {
            score: Err(error),
            retries: 0,
        };
        if self.failures >= FAILURES_MAX {
            return Some(unusable(UnusableReply::GivenUp(FAILURES_MAX)));
        }
        let time_left = self.until.since(self.clock.now());
        let limit = time_left / u32::try_from(cases.clamp(1, 2)).unwrap_or(1);
        let result =
            tokio::time::timeout(limit, generate::model_opinion(client, case, tools)).await;
        let timeout = |_| {
            unusable(UnusableReply::Late {
                within_s: limit.as_secs_f64(),
            })
        };
        let judgement = result.unwrap_or_else(timeout);
        self.failures = match judgement.score {
            Ok(_) => 0,
            Err(_) => self.failures + 1,
        };
        Some(judgement)
    }
}

const BY_RULES: &str = "rules";
const BY_BOTH: &str = "rules and a model";

pub(super) async fn validate(
    store: &Path,
    arguments: &Map<String, Value>,
    tools: &ExamToolbox,
    mut judge: CaseJudge<'_>,
) -> Result<HelperToolResult, ExamError> {
    let entries = objects(arguments, "cases")?;
    let (known, missing) = cases_to_compare(store.to_owned()).await?;
    let wants_model = flag(arguments, "ask_model");
    judge.client = judge.client.filter(|_| wants_model);
    let has_model = judge.client.is_some();
    let (mut verdicts, mut earlier): (Vec<CaseVerdict>, Vec<ExamCase>) = (Vec::new(), Vec::new());
    for (value, index) in entries.iter().zip(0_usize..) {
        let case = match case_of(value) {
            Ok(case) => case,
            Err(error) => {
                verdicts.push(reject_unreadable(&error));
                continue;
            }
        };
        let others = known
            .iter()
            .chain(&earlier)
            .filter(|one| one.name != case.name);
        let by_rules = generate::check(&case, others, tools);
        let opinion = judge.judge(&case, tools, entries.len() - index).await;
        verdicts.push(combine(
            &case,
            by_rules,
            opinion,
            flag(arguments, "is_revised"),
        ));
        earlier.push(case);
    }
    let failed: Vec<String> = verdicts
        .iter()
        .filter(|one| one.model.as_ref().is_some_and(|model| model.is_default))
        .map(|one| one.case.clone())
        .collect();
    let mut result =
        HelperToolResult::done(summary(&verdicts, wants_model, has_model, failed.len()))
            .with("judged_by", if has_model { BY_BOTH } else { BY_RULES })
            .with("model_failed", failed)
            .with("n", verdicts.len())
            .with("findings", verdicts);
    if let Some(reason) = missing {
        result = result.with("not_compared_with_own", reason);
    }
    Ok(result)
}

/// Returns the cases to compare with. If the record cannot be read, these are the shipped ones, with the reason.
async fn cases_to_compare(store: PathBuf) -> Result<(Vec<ExamCase>, Option<String>), ExamError> {
    let result = tokio::task::spawn_blocking(move || known_cases(&store)).await;
    let result = result.map_err(|error| error.to_string());
    match result.and_then(|result| result.map_err(|error| error.to_string())) {
        Ok(cases) => Ok((cases, None)),
        Err(reason) => Ok((ExamCase::shipped()?, Some(reason))),
    }
}

fn reject_unreadable(error: &ExamError) -> CaseVerdict {
    CaseVerdict {
        case: String::new(),
        score: None,
        decision: "reject",
        why: vec![error.to_string()],
        judged_by: BY_RULES,
        model: None,
    }
}

/// Combines both judgements: the model can only lower the rules' score. If it fails, the rules alone judge, and the verdict says so.
fn combine(
    case: &ExamCase,
    mut found: CaseFinding,
    opinion: Option<ModelJudgement>,
    is_revised: bool,
) -> CaseVerdict {
    let mut judged_by = BY_RULES;
    let model = opinion.map(|opinion| {
        let (score, failed) = match opinion.score {
            Ok((score, reason)) => {
                judged_by = BY_BOTH;
                found.lower_score(score, reason);
                (score, None)
            }
            Err(reason) => {
                found.why.push(format!(
                    "judged by rules only, because the model failed: {reason}"
                ));
                (DEFAULT_SCORE, Some(reason.to_string()))
            }
        };
        ModelOpinion {
            score,
            is_default: failed.is_some(),
            retries: opinion.retries,
            failed,
        }
    });
    let decision = match (found.passes(), found.is_to_be_revised() && !is_revised) {
        (true, _) => "pass",
        (false, true) => "revise",
        (false, false) => "reject",
    };
    CaseVerdict {
        case: case.name.clone(),
        score: Some(found.score),
        decision,
        why: found.why,
        judged_by,
        model,
    }
}

fn summary(verdicts: &[CaseVerdict], wants_model: bool, has_model: bool, failed: usize) -> String {
    let count = |decision: &str| {
        verdicts
            .iter()
            .filter(|one| one.decision == decision)
            .count()
    };
    let by = match (wants_model, has_model) {
        (_, true) if failed > 0 => {
            &format!("judged by rules and a model (the model failed for {failed} of them)")
        }
        (_, true) => "judged by rules and a model",
        (true, false) => {
            "judged by rules only: this node has no model (`exam.model_url` in its node file)"
        }
        (false, false) => "judged by rules only; no model was asked",
    };
    format!(
        "{} cases: {} pass, {} need a revision, {} are rejected ({by})",
        verdicts.len(),
        count("pass"),
        count("revise"),
        count("reject")
    )
}
