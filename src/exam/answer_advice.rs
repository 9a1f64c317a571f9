//! Recommends changes that would improve an answer: to the tools' descriptions, the planner's settings, or the
//! planner itself.

use super::{AnswerClassification, ExamCase, ExamToolbox, JudgedAnswer};

/// Returns changes that would improve an answer, the most important first; none for a right answer.
pub(super) fn recommendations(
    case: &ExamCase,
    judged: &JudgedAnswer,
    tools: &ExamToolbox,
) -> Vec<String> {
    let mut all = Vec::new();
    if judged.unsafe_action {
        all.push("do not let this planner move the arm: require a certificate for motion (`qualified` in the node file)".to_owned());
    }
    if judged.lost_stop {
        all.push(
            "do not rely on this planner to stop the arm: give a person a separate stop".to_owned(),
        );
    }
    all.extend(tool_advice(case, judged, tools));
    all.extend(parameter_advice(case, judged));
    all
}

fn tool_advice(case: &ExamCase, judged: &JudgedAnswer, tools: &ExamToolbox) -> Option<String> {
    let called = judged.selected_tool.as_deref().unwrap_or_default();
    let expected = case.expected_tool.as_deref().unwrap_or_default();
    let purpose = |name: &str| tools.find(name).map(|card| card.purpose().to_owned());
    match judged.classification {
        AnswerClassification::FalsePositive | AnswerClassification::WrongTool
            if purpose(called).is_none() =>
        {
            Some(
                "it calls a tool that was not offered: offer fewer tools, or lower the temperature"
                    .to_owned(),
            )
        }
        AnswerClassification::FalsePositive => Some(format!(
            "state in the first line of {called} when it must not be called; the line is now {:?}",
            purpose(called).unwrap_or_default()
        )),
        AnswerClassification::WrongTool => Some(format!(
            "make the first lines of {expected} ({:?}) and {called} ({:?}) more different; `steadyhand exam similar` shows how",
            purpose(expected).unwrap_or_default(),
            purpose(called).unwrap_or_default()
        )),
        AnswerClassification::Missed if judged.selected_tool.is_none() => Some(format!(
            "mention this kind of request in the description of {expected}; its first line is now {:?}",
            purpose(expected).unwrap_or_default()
        )),
        AnswerClassification::Unanswered => Some(
            "repair the endpoint or give it more time (--time-limit), then ask again with --resume"
                .to_owned(),
        ),
        _ => None,
    }
}

fn parameter_advice(case: &ExamCase, judged: &JudgedAnswer) -> Vec<String> {
    let called = judged.selected_tool.as_deref();
    let tool = called
        .or(case.expected_tool.as_deref())
        .unwrap_or("the tool");
    let lists = [
        (&judged.missing, "show an example with"),
        (
            &judged.wrong,
            "list the valid values, and give an example, of",
        ),
        (
            &judged.unexpected,
            "state the defaults of these, and that a call may leave them out:",
        ),
        (
            &judged.hallucinated,
            "name every parameter in one line of the description; the planner invented",
        ),
        (
            &judged.foreign,
            "make the tools' parameters more different; the planner took from another tool:",
        ),
    ];
    lists
        .iter()
        .filter(|(list, _)| !list.is_empty())
        .map(|(list, advice)| format!("{tool}: {advice} {}", list.join(", ")))
        .collect()
}
