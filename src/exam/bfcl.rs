//! Reads question files of the Berkeley Function-Calling Leaderboard, with their answer files, as cases.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::case::each_line;
use super::{CaseClass, CaseTurn, ExamCase, ExamError};

impl ExamCase {
    /// Returns whether a text looks like a question file of that leaderboard.
    #[must_use]
    pub fn is_bfcl(text: &str) -> bool {
        let first = text.lines().find(|line| !line.trim().is_empty());
        let first: Option<Value> = first.and_then(|line| serde_json::from_str(line).ok());
        first.is_some_and(|one| one.get("question").is_some() && one.get("function").is_some())
    }

    /// Reads a question file. `answers` is the file of possible answers; a question without one, as in the irrelevance
    /// files, is right with no call at all.
    ///
    /// # Errors
    /// Fails at the first line that is not a question or an answer. Questions of several turns or calls are refused.
    pub fn read_bfcl(questions: &str, answers: Option<&str>) -> Result<Vec<Self>, ExamError> {
        let gold = answers.map(read_answers).transpose()?.unwrap_or_default();
        let mut cases = Vec::new();
        each_line(questions, |_, question: Value| {
            let name = text_of(&question, "id").ok_or("a question has no \"id\"")?;
            let call = gold.get(&name).cloned();
            cases.push(case(name, &question, call)?);
            Ok(())
        })?;
        Ok(cases)
    }
}

fn text_of(value: &Value, key: &str) -> Option<String> {
    value.get(key)?.as_str().map(str::to_owned)
}

/// The right call of each question: the tool, and the right values of each parameter.
type BfclAnswers = HashMap<String, (String, Map<String, Value>)>;

fn read_answers(text: &str) -> Result<BfclAnswers, ExamError> {
    let mut answers = BfclAnswers::new();
    let result = each_line(text, |_, answer: Value| {
        let id = text_of(&answer, "id").ok_or("no \"id\"")?;
        let calls = answer.get("ground_truth").and_then(Value::as_array);
        let [Value::Object(call)] = calls.map_or(&[][..], Vec::as_slice) else {
            return Err("one call is expected; files of parallel calls cannot be used".to_owned());
        };
        let Some((tool, Value::Object(params))) = call.iter().next() else {
            return Err("a call must be {\"tool\": {\"parameter\": [values]}}".to_owned());
        };
        answers.insert(id, (tool.clone(), params.clone()));
        Ok(())
    });
    result.map_err(|error| match error {
        ExamError::Line { line, reason } => {
            let reason = format!("of the answers: {reason}");
            ExamError::Line { line, reason }
        }
        other => other,
    })?;
    Ok(answers)
}

fn case(
    name: String,
    question: &Value,
    right_call: Option<(String, Map<String, Value>)>,
) -> Result<ExamCase, &'static str> {
    let turns = question.get("question").and_then(Value::as_array);
    let [Value::Array(messages)] = turns.map_or(&[][..], Vec::as_slice) else {
        return Err("one turn is expected; files of several turns cannot be used");
    };
    let mut context: Vec<CaseTurn> = messages.iter().filter_map(turn).collect();
    let query = context.pop().ok_or("the question is empty")?.content;
    let functions = match question.get("function") {
        Some(Value::Array(functions)) => functions.clone(),
        Some(one @ Value::Object(_)) => vec![one.clone()],
        _ => return Err("a question has no \"function\""),
    };
    let (expected_tool, expected_params) = match right_call {
        Some((tool, params)) => (Some(tool), params),
        None => (None, Map::new()),
    };
    Ok(ExamCase {
        name,
        query,
        context,
        expected_tool,
        expected_params,
        class: CaseClass::Other,
        functions,
        ..ExamCase::default()
    })
}

fn turn(message: &Value) -> Option<CaseTurn> {
    Some(CaseTurn {
        role: text_of(message, "role")?,
        content: text_of(message, "content")?,
        ..CaseTurn::default()
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(questions in "\\PC{0,120}", answers in "\\PC{0,120}") {
            let _ = ExamCase::read_bfcl(&questions, Some(&answers));
        }

        #[test]
        fn any_object_is_read_or_refused(id in "[a-z]{0,4}", shape in 0_usize..4) {
            let question = ["[]", "[[]]", "[[{\"role\":\"user\",\"content\":\"q\"}]]", "3"];
            let line = format!("{{\"id\":\"{id}\",\"question\":{},\"function\":[]}}", question.get(shape).copied().unwrap_or("0"));
            let read = ExamCase::read_bfcl(&line, None);
            prop_assert_eq!(read.is_ok(), shape == 2, "{}", line);
        }
    }
}
