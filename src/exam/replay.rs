//! Recorded answers to score without a model: one `{"query": …, "output": …}` per line.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use super::case::each_line;
use super::{ExamCase, ExamError};

/// A recorded answer and its case.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct RecordedAnswer {
    #[serde(default, alias = "name", alias = "id")]
    case: Option<String>,
    #[serde(default)]
    query: Option<String>,
    pub(super) output: Value,
    #[serde(default)]
    pub(super) milliseconds: Option<u64>,
}

/// A file of recorded answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct AnswerReplay {
    by_case: HashMap<String, Vec<RecordedAnswer>>,
    by_query: HashMap<String, Vec<RecordedAnswer>>,
    lines: usize,
}

impl AnswerReplay {
    /// Reads a file of recorded answers. Several lines for one case are its samples, in order.
    ///
    /// # Errors
    /// Fails at the first line that is not an answer.
    pub(crate) fn read_lines(text: &str) -> Result<Self, ExamError> {
        let mut replay = Self::default();
        each_line(text, |_, answer: RecordedAnswer| {
            let answers = match (&answer.case, &answer.query) {
                (Some(case), _) => replay.by_case.entry(case.clone()),
                (None, Some(query)) => replay.by_query.entry(key(query)),
                (None, None) => {
                    return Err("an answer needs its \"query\" or its \"case\"".to_owned());
                }
            };
            answers.or_default().push(answer);
            replay.lines += 1;
            Ok(())
        })?;
        Ok(replay)
    }

    /// Returns the recorded answers to a case.
    pub(super) fn of(&self, case: &ExamCase) -> &[RecordedAnswer] {
        let own = self.by_case.get(&case.name);
        let own = own.or_else(|| self.by_query.get(&key(&case.query)));
        own.map_or(&[], Vec::as_slice)
    }

    /// Returns the number of recorded answers.
    pub(super) fn lines(&self) -> usize {
        self.lines
    }

    /// Returns the number of answers that belong to none of these cases.
    pub(super) fn strays(&self, cases: &[ExamCase]) -> usize {
        let used: usize = cases.iter().map(|case| self.of(case).len()).sum();
        self.lines.saturating_sub(used)
    }
}

/// Normalises the blanks of a question.
fn key(query: &str) -> String {
    query.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_without_its_question_is_refused_by_number() {
        let text = "{\"query\":\"a\",\"output\":\"b\"}\n\n{\"output\":\"b\"}\n";
        assert!(matches!(
            AnswerReplay::read_lines(text),
            Err(ExamError::Line { line: 3, .. })
        ));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,120}") {
            let _ = AnswerReplay::read_lines(&text);
            let _ = ExamCase::read_lines(&text);
        }

        #[test]
        fn a_case_comes_back_from_its_line(query in "\\PC{0,60}", name in "[a-z]{1,12}", value in -1000_i64..1000) {
            let mut case = ExamCase { name, query, expected_tool: Some("stroke".into()), ..ExamCase::default() };
            case.expected_params.insert("fps".into(), value.into());
            let line = case.line();
            prop_assert_eq!(ExamCase::read_lines(&line).ok(), Some(vec![case]));
        }
    }
}
