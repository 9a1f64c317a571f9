//! Requests for something else in the place of arguments: calls of nothing (`{"name": null}`, `[TOOL_CALLS][]`) and of
//! other tools (`{"align": {}}`), requests for help, and instructions that no parameter takes.

use super::{
    arguments::CallReader,
    candidates::CandidateReading,
    heuristics,
    parsed_value::ParsedValue,
    shape::{ParameterShape, ValueKind},
    vocabulary::vocabulary,
    withheld::is_plain_yes,
    word_table::FoldedText,
};
use serde_json::Value;

impl CallReader<'_> {
    /// Returns whether data was sent, beside which nothing is left out.
    pub(super) fn holds_data(&self) -> bool {
        let is_data = |param: &ParameterShape| {
            matches!(param.kind, ValueKind::Verbatim { .. }) && self.given.contains_key(&param.name)
        };
        self.shape.params.iter().any(is_data)
    }

    /// Withholds the act if a text is the mark of a call and nothing else: `[TOOL_CALLS][]`, `<tool_call>null</tool_call>`.
    pub(super) fn judge_empty_call(&mut self, candidate: &CandidateReading, text: &str) {
        let is_nothing = candidate.node.is_empty() && candidate.tool.is_none();
        if is_nothing && self.judges_unknown_keys() && is_call_mark(text) {
            self.add_no_call("", &ParsedValue::Text(text.to_owned()));
        }
    }

    /// Returns whether a text in a value is an instruction, which no explanation of the call is: `slowly`, `on the left`.
    pub(super) fn instructs(&self, key: &str, node: &ParsedValue) -> bool {
        match node {
            ParsedValue::List(items) => items.iter().any(|item| self.instructs(key, item)),
            ParsedValue::Text(text) | ParsedValue::Word(text) => {
                let is_named = |word: &str| {
                    let names = self.given.values().filter_map(Value::as_str);
                    let mut names = names.filter(|name| self.knows(name));
                    names.any(|name| FoldedText::new(name).words().any(|part| part == word))
                };
                !vocabulary().is_remark(&FoldedText::new(key))
                    && vocabulary().instructs(text, is_named)
            }
            node => node.any_inside(|key, inner| self.instructs(key, inner)),
        }
    }

    fn knows(&self, name: &str) -> bool {
        self.shape.known_names.iter().any(|known| known == name)
    }
}

/// Returns whether a text says that calls follow, and holds none. `{}` may be the arguments of one.
fn is_call_mark(text: &str) -> bool {
    const WORDS: [&str; 8] = [
        "tool",
        "tools",
        "function",
        "functions",
        "call",
        "calls",
        "null",
        "none",
    ];
    let folded = FoldedText::new(text);
    !text.contains('{')
        && folded.words().any(|word| matches!(word, "call" | "calls"))
        && folded.words().all(|word| WORDS.contains(&word))
}

/// Returns whether nothing is called: the value is empty, or a list of empty ones.
pub(super) fn holds_nothing(node: &ParsedValue) -> bool {
    match node {
        ParsedValue::List(items) => items.iter().all(holds_nothing),
        node => node.is_empty(),
    }
}

/// Returns whether a value in the place of a tool's name is none: null, or a blank or empty text.
pub(super) fn is_empty_name(node: &ParsedValue) -> bool {
    node.is_empty() && !matches!(node, ParsedValue::Map(_) | ParsedValue::List(_))
}

/// Returns whether a key is the name of another tool of this program, with arguments of its own: `{"align": {}}`. Null and an
/// empty text were not sent, nor was an empty list under a name for stopping: `"stop": []` is a usual default of language
/// models.
pub(super) fn is_other_call(key: &str, node: &ParsedValue) -> bool {
    let has_arguments = match node {
        ParsedValue::Map(_) => true,
        ParsedValue::List(items) => {
            let names_stop = || vocabulary().names_dissent(&FoldedText::new(key));
            holds_nothing(node) && !(items.is_empty() && names_stop())
        }
        _ => false,
    };
    has_arguments && !heuristics::is_harmless(key) && vocabulary().is_other_tool(key)
}

/// Returns whether a flag asks for something other than the act: `"help": true`, `"align": true`, `"already_done": true`.
pub(super) fn asks_otherwise(key: &str, node: &ParsedValue) -> bool {
    is_plain_yes(node) && vocabulary().asks_otherwise(&FoldedText::new(key))
}
