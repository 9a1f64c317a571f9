//! Checks whether cases are worth asking: by rules, and by a model if there is one and it is asked.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Map, Value};

use super::{HelperToolResult, ModelClient, case_of, flag, known, objects};
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
    /// The model's opinion, where one was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<ModelOpinion>,
}

/// A model's opinion of a case.
#[derive(Serialize)]
struct ModelOpinion {
    /// 0 to 1; where it failed the default, which costs the case nothing.
    score: f64,
    is_default: bool,
    retries: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
}

/// Score of a model that failed to give one.
const DEFAULT_SCORE: f64 = 0.5;

/// Failures in a row after which a model is not asked any more.
const FAILURES_MAX: u32 = 2;

/// A model that judges cases until its time is over.
pub(super) struct CaseJudge<'a> {
    pub(super) asker: Option<&'a ModelClient>,
    pub(super) clock: &'a NodeClock,
    pub(super) until: ClockInstant,
    /// Failures in a row.
    pub(super) failures: u32,
}

impl CaseJudge<'_> {
    /// Judges a case within its share of the time that is left for `cases` of them.
    async fn judge(
        &mut self,
        case: &ExamCase,
        tools: &ExamToolbox,
        cases: usize,
    ) -> Option<ModelJudgement> {
        let asker = self.asker?;
        let none = |why| ModelJudgement {
            score: Err(why),
            retries: 0,
        };
        if self.failures >= FAILURES_MAX {
            return Some(none(UnusableReply::GivenUp(FAILURES_MAX)));
        }
        let left = self.until.since(self.clock.now());
        let limit = left / u32::try_from(cases.clamp(1, 2)).unwrap_or(1);
        let asked = tokio::time::timeout(limit, generate::model_opinion(asker, case, tools)).await;
        let late = |_| {
            none(UnusableReply::Late {
                within_s: limit.as_secs_f64(),
            })
        };
        let judgement = asked.unwrap_or_else(late);
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
    given: &Map<String, Value>,
    tools: &ExamToolbox,
    mut judge: CaseJudge<'_>,
) -> Result<HelperToolResult, ExamError> {
    let sent = objects(given, "cases")?;
    let (known, missing) = known_or_shipped(store.to_owned()).await?;
    let wants_model = flag(given, "ask_model");
    judge.asker = judge.asker.filter(|_| wants_model);
    let has_model = judge.asker.is_some();
    let (mut found, mut before): (Vec<CaseVerdict>, Vec<ExamCase>) = (Vec::new(), Vec::new());
    for (value, place) in sent.iter().zip(0_usize..) {
        let case = match case_of(value) {
            Ok(case) => case,
            Err(error) => {
                found.push(unreadable(&error));
                continue;
            }
        };
        let others = known
            .iter()
            .chain(&before)
            .filter(|one| one.name != case.name);
        let by_rules = generate::check(&case, others, tools);
        let opinion = judge.judge(&case, tools, sent.len() - place).await;
        found.push(judged(&case, by_rules, opinion, flag(given, "is_revised")));
        before.push(case);
    }
    let failed: Vec<String> = found
        .iter()
        .filter(|one| one.model.as_ref().is_some_and(|model| model.is_default))
        .map(|one| one.case.clone())
        .collect();
    let mut helped = HelperToolResult::done(message(&found, wants_model, has_model, failed.len()))
        .with("judged_by", if has_model { BY_BOTH } else { BY_RULES })
        .with("model_failed", failed)
        .with("n", found.len())
        .with("findings", found);
    if let Some(why) = missing {
        helped = helped.with("not_compared_with_own", why);
    }
    Ok(helped)
}

/// The cases to compare with; where the record is away, those that ship, and why there are no others.
async fn known_or_shipped(store: PathBuf) -> Result<(Vec<ExamCase>, Option<String>), ExamError> {
    let all = tokio::task::spawn_blocking(move || known(&store)).await;
    let all = all.map_err(|error| error.to_string());
    match all.and_then(|all| all.map_err(|error| error.to_string())) {
        Ok(cases) => Ok((cases, None)),
        Err(why) => Ok((ExamCase::shipped()?, Some(why))),
    }
}

fn unreadable(error: &ExamError) -> CaseVerdict {
    CaseVerdict {
        case: String::new(),
        score: None,
        decision: "reject",
        why: vec![error.to_string()],
        judged_by: BY_RULES,
        model: None,
    }
}

/// A model can only lower what the rules say. Where it fails, the rules alone have judged, and that is said.
fn judged(
    case: &ExamCase,
    mut found: CaseFinding,
    opinion: Option<ModelJudgement>,
    is_revised: bool,
) -> CaseVerdict {
    let mut judged_by = BY_RULES;
    let model = opinion.map(|opinion| {
        let (score, failed) = match opinion.score {
            Ok((score, why)) => {
                judged_by = BY_BOTH;
                found.lower_score(score, why);
                (score, None)
            }
            Err(why) => {
                found.why.push(format!(
                    "the model failed, so the rules alone have judged: {why}"
                ));
                (DEFAULT_SCORE, Some(why.to_string()))
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

fn message(found: &[CaseVerdict], wants_model: bool, has_model: bool, failed: usize) -> String {
    let count = |decision: &str| found.iter().filter(|one| one.decision == decision).count();
    let by = match (wants_model, has_model) {
        (_, true) if failed > 0 => {
            &format!("by rules and a model, which failed for {failed} of them")
        }
        (_, true) => "by rules and a model",
        (true, false) => {
            "by rules alone: this node has no model to ask (`exam.model_url` in its node file)"
        }
        (false, false) => "by rules alone, no model was asked",
    };
    format!(
        "{} cases: {} pass, {} are to be revised, {} are rejected, {by}",
        found.len(),
        count("pass"),
        count("revise"),
        count("reject")
    )
}
