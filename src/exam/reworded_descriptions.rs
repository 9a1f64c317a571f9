//! New descriptions for the built-in tools that were called wrongly, as a fragment of the node file. Rules make them from the
//! counts of a run; a person adopts them, and the next run shows whether they helped.

use std::collections::{BTreeMap, BTreeSet};

use catalogue::{DESCRIPTION_CHARS_MAX, TOOLS};

use super::run::CaseOutcome;
use super::{AnswerClassification, ExamToolCard, ExamToolbox};

/// Added to a tool that was called where nothing was due.
const NOT_FOR_TALK: &str = "Not for questions, for talk, or for requests not to do this.";

/// Wrong calls of one tool.
#[derive(Default)]
struct WrongCalls {
    /// True if the tool was called where none was due.
    is_unasked: bool,
    /// Tools that were due instead.
    due: BTreeSet<String>,
}

/// Returns a `[descriptions.TOOL]` table for each built-in tool that was called wrongly, if the text fits.
pub(super) fn fragment(outcomes: &[CaseOutcome], tools: &ExamToolbox) -> Option<String> {
    let mut wrong: BTreeMap<&str, WrongCalls> = BTreeMap::new();
    for outcome in outcomes.iter().filter(|outcome| outcome.is_answered()) {
        let Some(called) = outcome.judged.selected_tool.as_deref() else {
            continue;
        };
        match outcome.judged.classification {
            AnswerClassification::FalsePositive => {
                wrong.entry(called).or_default().is_unasked = true;
            }
            AnswerClassification::WrongTool => {
                let due = outcome.case.expected_tool.clone();
                wrong.entry(called).or_default().due.extend(due);
            }
            _ => {}
        }
    }
    let tables = wrong.iter().filter_map(|(name, calls)| {
        let card = tools.find(name)?;
        table(card, &reword(card, calls, tools)?)
    });
    let tables: Vec<String> = tables.collect();
    (!tables.is_empty()).then(|| tables.join("\n"))
}

/// Returns a `[descriptions.TOOL]` table that gives a built-in tool this text; `None` for other tools, and where the text does
/// not fit into a description.
pub(super) fn table(card: &ExamToolCard, text: &str) -> Option<String> {
    let is_built_in = TOOLS.iter().any(|tool| tool.name == card.own_name);
    let length = card.chars_with(text);
    if !card.server.is_empty() || !is_built_in || length > DESCRIPTION_CHARS_MAX {
        return None;
    }
    // A JSON string is also a TOML string.
    let text = serde_json::Value::from(text);
    Some(format!("[descriptions.{}]\ntext = {text}\n", card.own_name))
}

fn reword(card: &ExamToolCard, calls: &WrongCalls, tools: &ExamToolbox) -> Option<String> {
    let mut added: Vec<String> = Vec::new();
    if calls.is_unasked {
        added.push(NOT_FOR_TALK.to_owned());
    }
    let due = calls.due.iter().filter_map(|name| tools.find(name));
    let others = due.filter(|due| due.name != card.name);
    let distinction = |due: &ExamToolCard| {
        let first = due.purpose().split(';').next().unwrap_or_default();
        format!("\"{first}\" is {}.", due.name)
    };
    added.extend(others.map(distinction));
    added.retain(|line| !card.description.contains(line));
    if added.is_empty() {
        return None;
    }
    // The distinctions come first, then as many of today's lines as still fit.
    let mut lines = vec![card.purpose().to_owned()];
    let present_lines = card.own_lines().into_iter().map(str::to_owned);
    for line in added.into_iter().chain(present_lines) {
        let extended = format!("{}\n{line}", lines.join("\n"));
        if card.chars_with(&extended) <= DESCRIPTION_CHARS_MAX {
            lines.push(line);
        }
    }
    Some(lines.join("\n"))
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_words_of_built_in_tools_are_a_table_that_toml_reads() {
        let of = |name: &str, purpose: &str| {
            let definition = json!({"name": name, "description": purpose});
            ExamToolCard::defined(&definition).unwrap()
        };
        let text = "Draw \"it\" now.\nNot\tlater \\ never.";
        let made = table(&of("stroke", "Draw."), text).unwrap();
        let file = config::NodeFile::read("node.toml", &made).unwrap();
        assert_eq!(file.descriptions["stroke"].text.as_deref(), Some(text));
        assert_eq!(table(&of("lamp", "Switch a lamp."), text), None);
        let long = "x".repeat(DESCRIPTION_CHARS_MAX + 1);
        assert_eq!(table(&of("stroke", "Draw."), &long), None);
        let mut foreign = of("stroke", "Draw.");
        foreign.server = "other".to_owned();
        assert_eq!(table(&foreign, text), None);
    }
}
