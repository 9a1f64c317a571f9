//! Whether cases are worth asking: by rules, and by a model where one is there and is asked.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Map, Value};

use super::{Asker, Helped, case_of, flag, known, objects};
use crate::generate::{self, Finding};
use crate::{Case, ExamError, Toolbox};

/// What was found of one case.
#[derive(Serialize)]
struct Told {
    case: String,
    /// Absent where the case could not be read at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
    /// pass, revise or reject.
    decision: &'static str,
    why: Vec<String>,
    judged_by: &'static str,
}

const BY_RULES: &str = "rules";
const BY_BOTH: &str = "rules and a model";

pub(super) async fn validate(
    store: &Path,
    given: &Map<String, Value>,
    tools: &Toolbox,
    asker: Option<&Asker>,
) -> Result<Helped, ExamError> {
    let sent = objects(given, "cases")?;
    let (known, missing) = known_or_shipped(store.to_owned()).await?;
    let wants_model = flag(given, "ask_model");
    let asker = asker.filter(|_| wants_model);
    let (mut found, mut before): (Vec<Told>, Vec<Case>) = (Vec::new(), Vec::new());
    for value in sent {
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
        found.push(judged(&case, by_rules, tools, asker, flag(given, "is_revised")).await);
        before.push(case);
    }
    let mut helped = Helped::done(message(&found, wants_model, asker.is_some()))
        .with(
            "judged_by",
            if asker.is_some() { BY_BOTH } else { BY_RULES },
        )
        .with("n", found.len())
        .with("findings", found);
    if let Some(why) = missing {
        helped = helped.with("not_compared_with_own", why);
    }
    Ok(helped)
}

/// The cases to compare with; where the record is away, those that ship, and why there are no others.
async fn known_or_shipped(store: PathBuf) -> Result<(Vec<Case>, Option<String>), ExamError> {
    let all = tokio::task::spawn_blocking(move || known(&store)).await;
    match all {
        Ok(Ok(cases)) => Ok((cases, None)),
        Ok(Err(error)) => Ok((Case::shipped()?, Some(error.to_string()))),
        Err(error) => Ok((Case::shipped()?, Some(error.to_string()))),
    }
}

fn unreadable(error: &ExamError) -> Told {
    Told {
        case: String::new(),
        score: None,
        decision: "reject",
        why: vec![error.to_string()],
        judged_by: BY_RULES,
    }
}

/// A model can only lower what the rules say. Where it fails, the rules alone have judged, and that is said.
async fn judged(
    case: &Case,
    mut found: Finding,
    tools: &Toolbox,
    asker: Option<&Asker>,
    is_revised: bool,
) -> Told {
    let mut judged_by = BY_RULES;
    if let Some(asker) = asker {
        match generate::asked(asker, case, tools).await {
            Ok((score, why)) => {
                judged_by = BY_BOTH;
                found.lower(score, why);
            }
            Err(why) => found.why.push(format!(
                "the model failed, so the rules alone have judged: {why}"
            )),
        }
    }
    let decision = match (found.passes(), found.is_to_be_revised() && !is_revised) {
        (true, _) => "pass",
        (false, true) => "revise",
        (false, false) => "reject",
    };
    Told {
        case: case.name.clone(),
        score: Some(found.score),
        decision,
        why: found.why,
        judged_by,
    }
}

fn message(found: &[Told], wants_model: bool, has_model: bool) -> String {
    let count = |decision: &str| found.iter().filter(|one| one.decision == decision).count();
    let by = match (wants_model, has_model) {
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
