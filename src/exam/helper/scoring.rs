//! Scores answers one by one: an answer that cannot be scored has no score and does not affect the others.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::{HelperToolResult, case_of, flag, known_cases, objects, text};
use crate::record::now_ms;
use crate::{ExamCase, ExamError, ExamToolbox, PlannerAnswer, explain, judge, score as score_of};

/// Name of the scoring method.
const METHOD: &str = "rules";

/// Score of an answer that is right in everything.
const FULL_SCORE: f64 = 1.0;

pub(super) fn score(
    store: &Path,
    arguments: &Map<String, Value>,
    tools: &ExamToolbox,
) -> Result<HelperToolResult, ExamError> {
    let known = known_cases(store)?;
    let wants_explanation = flag(arguments, "explain");
    let answers = objects(arguments, "answers")?;
    let results: Vec<Value> = answers
        .iter()
        .map(|answer| {
            result_of(answer, &known, tools, wants_explanation)
                .unwrap_or_else(|error| failure(answer, &error))
        })
        .collect();
    let scores: Vec<f64> = results
        .iter()
        .filter_map(|answer| answer.get("score")?.as_f64())
        .collect();
    let failed = results.len() - scores.len();
    let fully = scores.iter().filter(|score| **score >= FULL_SCORE).count();
    let partly = scores.iter().filter(|score| **score > 0.0).count() - fully;
    let message = format!(
        "{} answers: {fully} completely right, {partly} partly right, {} wrong, {failed} without a score",
        results.len(),
        scores.len() - fully - partly
    );
    Ok(HelperToolResult::done_if(!scores.is_empty(), message)
        .with("scored", scores.len())
        .with("failed", failed)
        .with("results", results))
}

fn failure(answer: &Value, error: &ExamError) -> Value {
    json!({"case": answer.get("case"), "query": answer.get("query"), "failed": true, "why": error.to_string()})
}

fn result_of(
    sent: &Value,
    known: &[ExamCase],
    tools: &ExamToolbox,
    wants_explanation: bool,
) -> Result<Value, ExamError> {
    let case = case(sent, known)?.resolved_for(tools);
    let tools = tools.for_case(&case)?;
    let output = sent.get("output").filter(|output| !output.is_null());
    let no_output = "the answer has no \"output\", so it cannot be scored";
    let output = output.ok_or_else(|| ExamError::Request(no_output.to_owned()))?;
    let answer = PlannerAnswer::of(output, &tools);
    let judged = judge(&case, &answer, &tools);
    let score = score_of(&case, &judged, &tools);
    let mut result = json!({
        "case": case.name, "score": score, "is_exact": judged.exact,
        "classification": judged.classification, "unsafe_action": judged.unsafe_action, "lost_stop": judged.lost_stop,
        "method": METHOD, "generated_at": now_ms(), "reasons": judged.reasons, "recommendations": judged.recommendations,
    });
    if wants_explanation && let Some(result) = result.as_object_mut() {
        let explanation = explain(&case, &answer, &judged, &tools);
        result.insert("explanation".to_owned(), explanation.text.into());
        result.insert("references".to_owned(), json!(explanation.references));
    }
    Ok(result)
}

/// Returns the case that was sent along, or the known case with this name or question.
fn case(sent: &Value, known: &[ExamCase]) -> Result<ExamCase, ExamError> {
    let object = sent
        .as_object()
        .ok_or_else(|| ExamError::Request("an answer must be an object".to_owned()))?;
    if object.contains_key("expected_tool") {
        // The answer stands beside the keys of its case.
        let mut case = object.clone();
        case.remove("output");
        return case_of(&Value::Object(case));
    }
    let (name, query) = (text(object, "case"), text(object, "query"));
    let matches = |case: &&ExamCase| match (name, query) {
        (Some(name), _) => case.name == name,
        (None, query) => Some(case.query.as_str()) == query,
    };
    known.iter().find(matches).cloned().ok_or_else(|| {
        ExamError::Request(format!(
            "there is no case {:?}. Next: send the case too (`query`, `expected_tool` and `expected_params`)",
            name.or(query).unwrap_or_default()
        ))
    })
}
