//! The cases that ship, and those of them that fit a node.

use serde_json::{Map, Value};

use super::accepted_values::{may_be_absent, options};
use super::{ExamCase, ExamError, ExamToolCard, ExamToolbox, PlannerAnswer, PlannerCall, judge};
use args::ReceivedArguments;

const SHIPPED: &str = include_str!("shipped.jsonl");

impl ExamCase {
    /// The cases that ship.
    ///
    /// # Errors
    /// Never in a program that passed its tests.
    pub fn shipped() -> Result<Vec<Self>, ExamError> {
        Self::read_lines(SHIPPED)
    }

    /// Returns whether the tools that a case names exist and its own right call would be carried out. A case that names a
    /// scene which this node does not have tests nothing.
    pub(crate) fn fits(&self, tools: &ExamToolbox) -> bool {
        let Some(expected) = &self.expected_tool else {
            return true;
        };
        let is_known = |card: &ExamToolCard| {
            let mut names = self.expected_params.keys();
            card.shape.open || names.all(|name| card.parameter(name).is_some())
        };
        tools.find(expected).is_some_and(|card| {
            // A key that the tool has not would be passed over, and what then moves is not what was meant.
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

    /// The first of the right values of each parameter that must be sent.
    #[must_use]
    pub fn right_arguments(&self) -> Value {
        Value::Object(settled(&self.expected_params))
    }
}

/// Of each key that must be there the first value that is right; inside objects too, where each key has its own list.
fn settled(expected: &Map<String, Value>) -> Map<String, Value> {
    let due = expected.iter().filter(|(_, one)| !may_be_absent(one));
    let values = due.filter_map(|(name, one)| Some((name.clone(), first(options(one).first()?))));
    values.collect()
}

fn first(option: &Value) -> Value {
    match option {
        Value::Object(keys) => Value::Object(settled(keys)),
        Value::Array(items) => items.iter().map(first).collect(),
        one => one.clone(),
    }
}

/// Those that fit, and how many do not.
pub(crate) fn fitting(cases: Vec<ExamCase>, tools: &ExamToolbox) -> (Vec<ExamCase>, usize) {
    let all = cases.len();
    let fit: Vec<ExamCase> = cases.into_iter().filter(|case| case.fits(tools)).collect();
    let left_out = all - fit.len();
    (fit, left_out)
}
