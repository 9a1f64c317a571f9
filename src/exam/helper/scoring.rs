//! Answers scored, each on its own: one that cannot be scored has no score and does not spoil the others.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::{HelperToolResult, case_of, flag, known, objects, text};
use crate::record::now_ms;
use crate::{ExamCase, ExamError, ExamToolbox, PlannerAnswer, explain, judge, score as worth};

/// The way in which answers are scored here.
const METHOD: &str = "rules";

/// A score from here on is right in everything.
const WHOLE: f64 = 1.0;

pub(super) fn score(
    store: &Path,
    given: &Map<String, Value>,
    tools: &ExamToolbox,
) -> Result<HelperToolResult, ExamError> {
    let known = known(store)?;
    let wants_why = flag(given, "explain");
    let sent = objects(given, "answers")?;
    let results: Vec<Value> = sent
        .iter()
        .map(|one| one_of(one, &known, tools, wants_why).unwrap_or_else(|why| failure(one, &why)))
        .collect();
    let scores: Vec<f64> = results
        .iter()
        .filter_map(|one| one.get("score")?.as_f64())
        .collect();
    let failed = results.len() - scores.len();
    let whole = scores.iter().filter(|score| **score >= WHOLE).count();
    let partly = scores.iter().filter(|score| **score > 0.0).count() - whole;
    let message = format!(
        "{} answers: {whole} right in everything, {partly} in part, {} wrong, {failed} failed to be scored",
        results.len(),
        scores.len() - whole - partly
    );
    Ok(HelperToolResult::done_if(!scores.is_empty(), message)
        .with("scored", scores.len())
        .with("failed", failed)
        .with("results", results))
}

fn failure(sent: &Value, why: &ExamError) -> Value {
    json!({"case": sent.get("case"), "query": sent.get("query"), "failed": true, "why": why.to_string()})
}

fn one_of(
    sent: &Value,
    known: &[ExamCase],
    tools: &ExamToolbox,
    wants_why: bool,
) -> Result<Value, ExamError> {
    let case = case(sent, known)?.resolved_for(tools);
    let tools = tools.for_case(&case)?;
    let output = sent.get("output").filter(|output| !output.is_null());
    let none = "it has no \"output\", so there is nothing to score";
    let output = output.ok_or_else(|| ExamError::Request(none.to_owned()))?;
    let answer = PlannerAnswer::of(output, &tools);
    let judged = judge(&case, &answer, &tools);
    let worth = worth(&case, &judged, &tools);
    let mut told = json!({
        "case": case.name, "score": worth, "is_exact": judged.exact,
        "classification": judged.classification, "unsafe_action": judged.unsafe_action, "lost_stop": judged.lost_stop,
        "method": METHOD, "generated_at": now_ms(), "reasons": judged.reasons, "recommendations": judged.recommendations,
    });
    if wants_why && let Some(told) = told.as_object_mut() {
        let why = explain(&case, &answer, &judged, &tools);
        told.insert("explanation".to_owned(), why.text.into());
        told.insert("references".to_owned(), json!(why.references));
    }
    Ok(told)
}

/// The case that is sent along, or the known one of this name or question.
fn case(sent: &Value, known: &[ExamCase]) -> Result<ExamCase, ExamError> {
    let object = sent
        .as_object()
        .ok_or_else(|| ExamError::Request("an answer is an object".to_owned()))?;
    if object.contains_key("expected_tool") {
        return case_of(sent);
    }
    let (name, query) = (text(object, "case"), text(object, "query"));
    let is_it = |case: &&ExamCase| match (name, query) {
        (Some(name), _) => case.name == name,
        (None, query) => Some(case.query.as_str()) == query,
    };
    known.iter().find(is_it).cloned().ok_or_else(|| {
        ExamError::Request(format!(
            "no case is known by {:?}; send the case itself along: query, expected_tool and expected_params",
            name.or(query).unwrap_or_default()
        ))
    })
}
