//! Optional work of a model on cases: to paraphrase them, and to judge whether they are worth asking.

use serde_json::Value;

use super::check::check;
use crate::helper::ModelClient;
use crate::{ExamCase, ExamToolbox, UnusableReply};
use base::wording::cut;

/// Cases that a model paraphrased.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ParaphrasedCases {
    /// All of them, those that are said in other words and those that kept theirs.
    pub(crate) cases: Vec<ExamCase>,
    /// Number of paraphrased cases.
    pub(crate) changed: usize,
    /// Reason why the first of the others was not paraphrased.
    pub(crate) why_not: Option<String>,
}

/// Words without which a request means the opposite.
const NEGATIONS: [&str; 11] = [
    "not", "no", "never", "don't", "dont", "without", "nothing", "cannot", "can't", "only",
    "before",
];

/// Says cases in other words. One of which the model lost a name, a number or a negation, which came out near to another, or
/// which the model did not answer, keeps its own.
pub(crate) async fn paraphrase(
    asker: &ModelClient,
    cases: Vec<ExamCase>,
    known: &[ExamCase],
    tools: &ExamToolbox,
) -> ParaphrasedCases {
    let mut made = ParaphrasedCases::default();
    for case in cases {
        let said = other_words(asker, &case).await;
        let said = said.and_then(|query| {
            let others = known.iter().chain(&made.cases);
            kept(&case, query, others, tools)
        });
        match said {
            Ok(other) => {
                made.changed += 1;
                made.cases.push(other);
            }
            Err(why) => {
                made.why_not.get_or_insert(why.to_string());
                made.cases.push(case);
            }
        }
    }
    made
}

async fn other_words(asker: &ModelClient, case: &ExamCase) -> Result<String, UnusableReply> {
    let ask = format!(
        "Say the following request to a robot arm's assistant in other words. Keep every name, number and negation as it \
         is. Answer with the request alone, in one line.\n\n{}",
        case.query
    );
    let said = asker.say(&ask).await.words?;
    let line = said.trim().lines().next().unwrap_or_default();
    Ok(line.trim_matches(['"', '\'', '`', ' ']).to_owned())
}

/// The case in other words, if it still is the same case.
fn kept<'a>(
    case: &ExamCase,
    query: String,
    others: impl Iterator<Item = &'a ExamCase>,
    tools: &ExamToolbox,
) -> Result<ExamCase, UnusableReply> {
    if let Some(word) = lost(case, &query) {
        let query = case.query.clone();
        return Err(UnusableReply::Lost { word, query });
    }
    let other = ExamCase {
        query,
        ..case.clone()
    };
    let found = check(&other, others, tools);
    if found.passes() {
        Ok(other)
    } else {
        Err(UnusableReply::Fails(found.why))
    }
}

/// The first word that must be said and is not: a value that is expected, a number, a negation.
fn lost(case: &ExamCase, query: &str) -> Option<String> {
    let (before, now) = (case.query.to_lowercase(), query.to_lowercase());
    let values = case.expected_params.values().filter_map(Value::as_str);
    let values = values
        .map(str::to_lowercase)
        .filter(|value| before.contains(value));
    let weighty = |word: &&str| {
        NEGATIONS.contains(word) || word.contains(|c: char| c.is_ascii_digit() || c == '_')
    };
    let words = before.split(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '\''));
    let said: Vec<&str> = now
        .split(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '\''))
        .collect();
    let mut lost = words.filter(weighty).filter(|word| !said.contains(word));
    let mut values = values.filter(|value| !value.is_empty() && !now.contains(value));
    lost.next().map(str::to_owned).or_else(|| values.next())
}

/// A model's opinion of a case, and how often it was asked again for that.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ModelJudgement {
    /// 0 to 1, and why; or why there is no score.
    pub(crate) score: Result<(f64, String), UnusableReply>,
    /// Tries after the first.
    pub(crate) retries: u32,
}

/// Asks a model to judge a case.
pub(crate) async fn model_opinion(
    asker: &ModelClient,
    case: &ExamCase,
    tools: &ExamToolbox,
) -> ModelJudgement {
    let lines: Vec<String> = tools
        .cards()
        .iter()
        .map(|card| format!("{}: {}", card.name, card.purpose()))
        .collect();
    let right = case.expected_tool.as_deref().unwrap_or("no tool");
    let ask = format!(
        "These tools exist:\n{}\n\nA test asks: {:?}. The answer key says that {right} is right, with the arguments {}. Is \
         the test clear, answerable, and its key right? Answer with JSON alone: {{\"score\": 0 to 1, \"why\": \"…\"}}",
        lines.join("\n"),
        case.query,
        Value::Object(case.expected_params.clone())
    );
    let reply = asker.say(&ask).await;
    ModelJudgement {
        score: match reply.words {
            Ok(said) => judgement(&said),
            Err(error) => Err(error.into()),
        },
        retries: reply.retries,
    }
}

fn judgement(said: &str) -> Result<(f64, String), UnusableReply> {
    let object = said.find('{').zip(said.rfind('}'));
    let object = object
        .and_then(|(from, to)| said.get(from..=to))
        .unwrap_or_default();
    let value: Value = serde_json::from_str(object).unwrap_or_default();
    let score = value.get("score").and_then(Value::as_f64);
    let score = score.filter(|score| (0.0..=1.0).contains(score));
    let score = score.ok_or_else(|| UnusableReply::NoScore(cut(said, 80)))?;
    let why = value
        .get("why")
        .and_then(Value::as_str)
        .unwrap_or("without a reason");
    Ok((score, format!("the model says {score}: {why}")))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    #[test]
    fn what_a_request_stands_on_must_be_said_again() {
        let line = r#"{"query":"Do not draw the two_pens scene at 12 mm.","expected_tool":null,"expected_params":{}}"#;
        let case = ExamCase::read_lines(line).unwrap().pop().unwrap();
        for (query, want) in [
            ("Please do not put two_pens on paper, at 12 mm.", None),
            ("Please put two_pens on paper, at 12 mm.", Some("not")),
            ("Do not put it on paper, at 12 mm.", Some("two_pens")),
            ("Do not put two_pens on paper.", Some("12")),
        ] {
            assert_eq!(lost(&case, query).as_deref(), want, "{query}");
        }
        let line = r#"{"query":"Draw the letters","expected_tool":"stroke","expected_params":{"scene":"letters"}}"#;
        let case = ExamCase::read_lines(line).unwrap().pop().unwrap();
        assert_eq!(lost(&case, "Sketch something").as_deref(), Some("letters"));
    }
}
