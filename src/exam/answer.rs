//! An answer of a planner: a chat completion message, or plain text.

use serde_json::Value;

use super::ExamToolbox;
use super::extract_calls::{self, value_call};
use args::ReceivedArguments;

/// One call, as the planner made it.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannerCall {
    /// The tool's name, possibly decorated.
    pub name: String,
    /// Its arguments, as they were received.
    pub arguments: ReceivedArguments,
}

/// Text and calls of a planner's answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlannerAnswer {
    /// Calls, in the order in which they were made.
    pub calls: Vec<PlannerCall>,
    /// Its text.
    pub text: String,
    /// Mean probability of its tokens, if the endpoint reports it.
    pub probability: Option<f64>,
}

impl PlannerAnswer {
    /// Reads an answer: a response, a message, a list of calls, or text that may contain calls.
    #[must_use]
    pub fn of(output: &Value, tools: &ExamToolbox) -> Self {
        match output {
            Value::String(text) => Self::of_text(text, tools),
            Value::Array(calls) => Self {
                calls: each_call(calls).collect(),
                ..Self::default()
            },
            Value::Object(_) => Self::of_object(output, tools),
            _ => Self::default(),
        }
    }

    fn of_object(output: &Value, tools: &ExamToolbox) -> Self {
        let choice = output.get("choices").and_then(|all| all.get(0));
        let message = choice
            .and_then(|choice| choice.get("message"))
            .or_else(|| output.get("message"))
            .unwrap_or(output);
        let probability = choice.and_then(probability).or_else(|| probability(output));
        let text = content(message.get("content"));
        let tool_calls = message.get("tool_calls").and_then(Value::as_array);
        let tool_calls = tool_calls.map(Vec::as_slice).unwrap_or_default();
        let legacy = message.get("function_call").and_then(value_call);
        let mut calls: Vec<PlannerCall> = each_call(tool_calls).chain(legacy).collect();
        let is_message = message.get("role").is_some() || message.get("content").is_some();
        if calls.is_empty() && !is_message {
            calls.extend(value_call(message));
        }
        if calls.is_empty() {
            // Servers that do not know a model's own call format pass its text through.
            calls = Self::of_text(&text, tools).calls;
        }
        Self {
            calls,
            text,
            probability,
        }
    }

    fn of_text(text: &str, tools: &ExamToolbox) -> Self {
        // A message that was recorded as text.
        if let Ok(message @ Value::Object(_)) = serde_json::from_str(text)
            && ["tool_calls", "choices", "role"]
                .iter()
                .any(|key| message.get(key).is_some())
        {
            return Self::of_object(&message, tools);
        }
        Self {
            calls: extract_calls::calls(text, |name| tools.find(name).is_some()),
            text: text.to_owned(),
            probability: None,
        }
    }
}

fn each_call(calls: &[Value]) -> impl Iterator<Item = PlannerCall> {
    let calls = calls.iter().take(extract_calls::CALLS_MAX);
    calls.filter_map(value_call)
}

/// Returns the text of a message, whose content may be in parts.
fn content(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// Returns the geometric mean probability of the answer's tokens.
fn probability(choice: &Value) -> Option<f64> {
    let tokens = choice.get("logprobs")?.get("content")?.as_array()?;
    let log_probabilities: Vec<f64> = tokens
        .iter()
        .filter_map(|token| token.get("logprob")?.as_f64())
        .collect();
    let mean = log_probabilities.iter().sum::<f64>() / log_probabilities.len() as f64;
    mean.is_finite().then(|| mean.exp().clamp(0.0, 1.0))
}

/// Reads the arguments of a message: usually JSON in a text.
pub(super) fn args_of(arguments: Option<&Value>) -> ReceivedArguments {
    match arguments {
        None => ReceivedArguments::Absent,
        Some(Value::String(text)) => ReceivedArguments::Text(text.clone()),
        Some(value) => ReceivedArguments::Value(value.clone()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn messages_are_read_in_every_shape() {
        let call = json!({"id": "1", "type": "function", "function": {"name": "stroke", "arguments": "{}"}});
        let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
        for output in [
            message.clone(),
            json!({"choices": [{"message": message}]}),
            json!(message.to_string()),
            json!([call]),
            json!({"role": "assistant", "content": "", "function_call": {"name": "stroke", "arguments": "{}"}}),
            json!({"name": "stroke", "arguments": "{}"}),
            json!({"role": "assistant", "content": "<tool_call>{\"name\":\"stroke\",\"arguments\":\"{}\"}</tool_call>"}),
        ] {
            let answer = PlannerAnswer::of(&output, &ExamToolbox::default());
            let expected = PlannerCall {
                name: "stroke".into(),
                arguments: ReceivedArguments::Text("{}".into()),
            };
            assert_eq!(answer.calls, [expected], "{output}");
        }
    }

    #[test]
    fn the_probability_comes_from_the_tokens() {
        let choice = json!({"message": {"content": "no"}, "logprobs": {"content": [{"logprob": -0.1}, {"logprob": -0.3}]}});
        let answer = PlannerAnswer::of(&json!({"choices": [choice]}), &ExamToolbox::default());
        assert!((answer.probability.unwrap() - (-0.2_f64).exp()).abs() < 1e-12);
    }
}
