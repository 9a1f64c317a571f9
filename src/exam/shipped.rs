//! The cases that ship, and those of them that fit a node.

use serde_json::{Map, Value};

use super::accepted_values::{may_be_absent, options};
use super::{ExamCase, ExamError, ExamToolCard, ExamToolbox, PlannerAnswer, PlannerCall, judge};
use args::ReceivedArguments;

const SHIPPED: &str = include_str!("shipped.jsonl");

impl ExamCase {
    /// Returns the cases that ship.
    ///
    /// # Errors
    /// Never, if the tests of the program passed.
    pub fn shipped() -> Result<Vec<Self>, ExamError> {
        Self::read_lines(SHIPPED)
    }

    /// Returns whether the tools that a case names exist and its right call would be carried out. A case with a scene that
    /// this node lacks tests nothing.
    pub(crate) fn fits(&self, tools: &ExamToolbox) -> bool {
        let Some(expected) = &self.expected_tool else {
            return true;
        };
        let is_known = |card: &ExamToolCard| {
            let mut names = self.expected_params.keys();
            card.shape.open || names.all(|name| card.parameter(name).is_some())
        };
        tools.find(expected).is_some_and(|card| {
            // An unknown key would be ignored, and the motion would not be the intended one.
            is_known(card)
                && (card
                    .read(&ReceivedArguments::Value(self.right_arguments()))
                    .is_ok()
                    || card.is_foreign() && self.is_right_by_itself(tools))
        })
    }

    /// Returns whether its own right call passes the judge in every respect. Question files call answers right that leave
    /// out what their schema requires.
    fn is_right_by_itself(&self, tools: &ExamToolbox) -> bool {
        let name = self.expected_tool.clone().unwrap_or_default();
        let arguments = ReceivedArguments::Value(self.right_arguments());
        let answer = PlannerAnswer {
            calls: vec![PlannerCall { name, arguments }],
            ..PlannerAnswer::default()
        };
        judge(self, &answer, tools).exact
    }

    /// Returns the first right value of each parameter that must be sent.
    #[must_use]
    pub fn right_arguments(&self) -> Value {
        Value::Object(first_values(&self.expected_params))
    }
}

/// Returns the first right value of each required key, also inside objects, where each key has its own list.
fn first_values(expected: &Map<String, Value>) -> Map<String, Value> {
    let required = expected.iter().filter(|(_, one)| !may_be_absent(one));
    let values =
        required.filter_map(|(name, one)| Some((name.clone(), first_value(options(one).first()?))));
    values.collect()
}

fn first_value(option: &Value) -> Value {
    match option {
        Value::Object(keys) => Value::Object(first_values(keys)),
        Value::Array(items) => items.iter().map(first_value).collect(),
        one => one.clone(),
    }
}

/// Returns the cases that fit, and the number of the others.
pub(crate) fn fitting(cases: Vec<ExamCase>, tools: &ExamToolbox) -> (Vec<ExamCase>, usize) {
    let all = cases.len();
    let fit: Vec<ExamCase> = cases.into_iter().filter(|case| case.fits(tools)).collect();
    let left_out = all - fit.len();
    (fit, left_out)
}
