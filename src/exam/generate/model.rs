//! Optional work of a model on cases: it paraphrases them, and judges whether they are worth asking.

use serde_json::Value;

use super::check::check;
use crate::helper::ModelClient;
use crate::{ExamCase, ExamToolbox, UnusableReply};
use base::wording::cut;

/// Cases that a model paraphrased.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ParaphrasedCases {
    /// All cases, both the paraphrased ones and those that kept their wording.
    pub(crate) cases: Vec<ExamCase>,
    /// Number of paraphrased cases.
    pub(crate) changed: usize,
    /// Reason why the first of the others was not paraphrased.
    pub(crate) first_failure: Option<String>,
}

/// Words without which a request means the opposite.
const NEGATIONS: [&str; 11] = [
    "not", "no", "never", "don't", "dont", "without", "nothing", "cannot", "can't", "only",
    "before",
];

/// Paraphrases cases. A case keeps its wording if the model lost a name, a number or a negation, came too close to another
/// case, or did not answer.
pub(crate) async fn paraphrase(
    client: &ModelClient,
    cases: Vec<ExamCase>,
    known: &[ExamCase],
    tools: &ExamToolbox,
) -> ParaphrasedCases {
    let mut result = ParaphrasedCases::default();
    for case in cases {
        let paraphrased = reword(client, &case).await;
        let paraphrased = paraphrased.and_then(|query| {
            let others = known.iter().chain(&result.cases);
            accept(&case, query, others, tools)
        });
        match paraphrased {
            Ok(paraphrased) => {
                result.changed += 1;
                result.cases.push(paraphrased);
            }
            Err(error) => {
                result.first_failure.get_or_insert(error.to_string());
                result.cases.push(case);
            }
        }
    }
    result
}

async fn reword(client: &ModelClient, case: &ExamCase) -> Result<String, UnusableReply> {
    let prompt = format!(
        "Say the following request to a robot arm's assistant in other words. Keep every name, number and negation as it \
         is. Answer with the request alone, in one line.\n\n{}",
        case.query
    );
    let reply = client.say(&prompt).await.text?;
    let line = reply.trim().lines().next().unwrap_or_default();
    Ok(line.trim_matches(['"', '\'', '`', ' ']).to_owned())
}

/// Returns the paraphrased case, if it is still the same case.
fn accept<'a>(
    case: &ExamCase,
    query: String,
    others: impl Iterator<Item = &'a ExamCase>,
    tools: &ExamToolbox,
) -> Result<ExamCase, UnusableReply> {
    if let Some(word) = lost_word(case, &query) {
        let query = case.query.clone();
        return Err(UnusableReply::Lost { word, query });
    }
    let paraphrased = ExamCase {
        query,
        ..case.clone()
    };
    let finding = check(&paraphrased, others, tools);
    if finding.passes() {
        Ok(paraphrased)
    } else {
        Err(UnusableReply::Fails(finding.why))
    }
}

/// Returns the first essential word that is missing: an expected value, a number or a negation.
fn lost_word(case: &ExamCase, query: &str) -> Option<String> {
    let (original, paraphrase) = (case.query.to_lowercase(), query.to_lowercase());
    let values = case.expected_params.values().filter_map(Value::as_str);
    let values = values
        .map(str::to_lowercase)
        .filter(|value| original.contains(value));
    let essential = |word: &&str| {
        NEGATIONS.contains(word) || word.contains(|c: char| c.is_ascii_digit() || c == '_')
    };
    let words = original.split(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '\''));
    let kept: Vec<&str> = paraphrase
        .split(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '\''))
        .collect();
    let mut lost = words.filter(essential).filter(|word| !kept.contains(word));
    let mut values = values.filter(|value| !value.is_empty() && !paraphrase.contains(value));
    lost.next().map(str::to_owned).or_else(|| values.next())
}

/// A model's opinion of a case, and the number of further tries that it took.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ModelJudgement {
    /// 0 to 1 with the reason, or the reason that there is no score.
    pub(crate) score: Result<(f64, String), UnusableReply>,
    /// Tries after the first.
    pub(crate) retries: u32,
}

/// Asks a model to judge a case.
pub(crate) async fn model_opinion(
    client: &ModelClient,
    case: &ExamCase,
    tools: &ExamToolbox,
) -> ModelJudgement {
    let lines: Vec<String> = tools
        .cards()
        .iter()
        .map(|card| format!("{}: {}", card.name, card.purpose()))
        .collect();
    let right = case.expected_tool.as_deref().unwrap_or("no tool");
    let prompt = format!(
        "These tools exist:\n{}\n\nA test asks: {:?}. The answer key says that {right} is right, with the arguments {}. Is \
         the test clear, answerable, and its key right? Answer with JSON alone: {{\"score\": 0 to 1, \"why\": \"…\"}}",
        lines.join("\n"),
        case.query,
        Value::Object(case.expected_params.clone())
    );
    let reply = client.say(&prompt).await;
    ModelJudgement {
        score: match reply.text {
            Ok(text) => judgement(&text),
            Err(error) => Err(error.into()),
        },
        retries: reply.retries,
    }
}

fn judgement(reply: &str) -> Result<(f64, String), UnusableReply> {
    let object = reply.find('{').zip(reply.rfind('}'));
    let object = object
        .and_then(|(from, to)| reply.get(from..=to))
        .unwrap_or_default();
    let value: Value = serde_json::from_str(object).unwrap_or_default();
    let score = value.get("score").and_then(Value::as_f64);
    let score = score.filter(|score| (0.0..=1.0).contains(score));
    let score = score.ok_or_else(|| UnusableReply::NoScore(cut(reply, 80)))?;
    let reason = value
        .get("why")
        .and_then(Value::as_str)
        .unwrap_or("without a reason");
    Ok((score, format!("the model says {score}: {reason}")))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    #[test]
    fn a_paraphrase_must_keep_every_essential_word() {
        let line = r#"{"query":"Do not draw the two_pens scene at 12 mm.","expected_tool":null,"expected_params":{}}"#;
        let case = ExamCase::read_lines(line).unwrap().pop().unwrap();
        for (query, expected) in [
            ("Please do not put two_pens on paper, at 12 mm.", None),
            ("Please put two_pens on paper, at 12 mm.", Some("not")),
            ("Do not put it on paper, at 12 mm.", Some("two_pens")),
            ("Do not put two_pens on paper.", Some("12")),
        ] {
            assert_eq!(lost_word(&case, query).as_deref(), expected, "{query}");
        }
        let line = r#"{"query":"Draw the letters","expected_tool":"stroke","expected_params":{"scene":"letters"}}"#;
        let case = ExamCase::read_lines(line).unwrap().pop().unwrap();
        assert_eq!(
            lost_word(&case, "Sketch something").as_deref(),
            Some("letters")
        );
    }
}
