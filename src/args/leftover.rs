//! Keys and words that nothing accounts for. Their meaning is not read, but for two things that need no dictionary: the name
//! of the parameter for a dry run, and the name of a scene or an overlay of this node.

use super::{
    arguments::{CallReader, whole_text},
    heuristics,
    judge::{ReaderRule, UnknownKeyPolicy},
    limits::{DEPTH_MAX, LEFTOVER_MAX, SEARCHED_MAX},
    name::{self, NameResolution},
    outcome::ArgumentIssue,
    parsed_value::{self, Pair, ParsedValue},
    value_coercion::{dropped, truth_word},
};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;

/// A key or words that nothing accounts for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Leftover {
    /// A key that no parameter has.
    Key {
        /// The key, cut and escaped.
        key: String,
        /// Its value, cut and escaped.
        got: String,
    },
    /// Words or signs around the arguments.
    Text {
        /// The words, cut and escaped.
        text: String,
    },
}

impl Leftover {
    /// Returns words that nothing accounts for.
    #[must_use]
    pub fn text(words: &str) -> Self {
        Self::Text {
            text: parsed_value::shown(words.trim()),
        }
    }

    /// Returns the words, or the value under the key.
    pub(super) fn words(&self) -> &str {
        match self {
            Self::Key { got, .. } => got,
            Self::Text { text } => text,
        }
    }
}

/// The name of the parameter for a dry run, for tools that have none.
const DRY_RUN: &str = "dry_run";

impl CallReader<'_> {
    /// Returns whether keys and words that belong to no parameter are left over.
    pub(super) fn judges_unknown_keys(&self) -> bool {
        self.policy.unknown_keys == UnknownKeyPolicy::Judged
    }

    /// Takes keys that match no parameter.
    pub(super) fn take_unknown_keys(&mut self, pairs: &[&Pair]) {
        if self.judges_unknown_keys() && heuristics::holds_signature(pairs) {
            self.refuse_stand_in(
                "schema_echo",
                "these are types, not values",
                &ParsedValue::Null,
            );
        }
        for (key, node) in pairs {
            self.take_unknown_key(key, node);
        }
    }

    /// Takes a key that matches no parameter, at the top level or beside an envelope.
    pub(super) fn take_unknown_key(&mut self, key: &str, node: &ParsedValue) {
        let shown = parsed_value::shown(key);
        if heuristics::holds_schema(node) {
            let reason = "this is a piece of a schema, not arguments";
            self.refuse_stand_in("schema_echo", reason, node);
        } else if heuristics::is_template_pair(key, node) {
            let reason = "this is a placeholder, not an argument";
            self.refuse_stand_in("template", reason, node);
        } else if self.shape.open && !node.is_empty() {
            self.given.insert(key.to_owned(), node.to_value());
        } else if !self.judges_unknown_keys() {
            self.note_ignored(&shown, node, "unknown_key", "no such parameter; ignored");
        } else if self.is_elsewhere(key) && !node.is_empty() {
            let reason = "this node has no canvas to draw it on";
            let issue = ArgumentIssue::new(ReaderRule::Invalid, "no_canvas", &shown, reason);
            let issue = issue.received(parsed_value::shown_node(node));
            self.add_issue(issue.expected("a scene"), node);
        } else if let Some(tool) = node.as_text().filter(|tool| !tool.trim().is_empty())
            && heuristics::is_tool_name(key)
        {
            self.check_called_name(key, tool);
        } else if self.is_other_tool(key) && !is_off(node) {
            self.refuse_other_tool(&shown, key);
        } else {
            self.leave_key(key, node);
        }
    }

    fn is_other_tool(&self, name: &str) -> bool {
        let others = &self.shape.other_tools;
        matches!(name::resolve(name, others), NameResolution::Resolved { .. })
    }

    /// Refuses a call that calls another tool as well: it is another call.
    pub(super) fn refuse_other_tool(&mut self, path: &str, tool: &str) {
        let reason = "another tool is called among the arguments";
        let issue = ArgumentIssue::new(ReaderRule::Contradiction, "other_tool", path, reason)
            .received(parsed_value::shown(tool));
        let node = ParsedValue::Text(tool.to_owned());
        self.add_issue(issue.expected("no tool's name"), &node);
    }

    /// Ignores a key of the closed list, and leaves any other over.
    pub(super) fn leave_key(&mut self, key: &str, node: &ParsedValue) {
        let shown = parsed_value::shown(key);
        self.search(key, node);
        let is_empty_envelope = heuristics::is_wrapper(key) && node.is_empty();
        if is_empty_envelope
            || is_ignored_key(key, node)
            || self.shape.ignore_keys.iter().any(|own| own == key)
        {
            return self.note_ignored(&shown, node, "ignored_key", "has no meaning here; ignored");
        }
        self.leave(
            Leftover::Key {
                key: shown,
                got: parsed_value::shown_node(node),
            },
            node,
        );
    }

    /// Leaves words over that stand around the arguments.
    pub(super) fn leave_words(&mut self, words: Vec<String>) {
        for words in words {
            self.search_words(&words, false);
            if let Some(tool) = call::called_in_text(&words, &|name| self.is_other_tool(name)) {
                self.refuse_other_tool("", &tool);
                continue;
            }
            self.leave(Leftover::text(&words), &ParsedValue::Null);
        }
    }

    /// Leaves a text or a value over in which there are no arguments, and that is all that was sent.
    pub(super) fn leave_all(&mut self, node: &ParsedValue) {
        match node {
            ParsedValue::Text(text) | ParsedValue::Word(text) => self.search_words(text, true),
            node => self.search("", node),
        }
        let shown = parsed_value::shown_node(node);
        self.leave(Leftover::text(&shown), node);
    }

    fn leave(&mut self, leftover: Leftover, node: &ParsedValue) {
        let field = match &leftover {
            Leftover::Key { key, .. } => key.as_str(),
            Leftover::Text { .. } => "arguments",
        };
        let mut repair = dropped(
            field,
            node,
            "not_understood",
            ReaderRule::Leftover,
            "not understood; left out",
        );
        leftover.words().clone_into(&mut repair.got);
        self.coercer.repairs.push(repair);
        self.leaves_words |= matches!(leftover, Leftover::Text { .. });
        match self.leftover.len() {
            0..LEFTOVER_MAX => self.leftover.push(leftover),
            LEFTOVER_MAX => self.leftover.push(Leftover::text("and more")),
            _ => {}
        }
    }

    fn refuse_stand_in(&mut self, code: &'static str, reason: &str, node: &ParsedValue) {
        let issue = whole_text(ReaderRule::Contradiction, code, reason);
        self.add_issue(issue, node);
    }

    /// Returns whether a key is a parameter that the tool has on other nodes.
    fn is_elsewhere(&self, key: &str) -> bool {
        self.shape
            .elsewhere
            .iter()
            .any(|name| heuristics::same_key(name, key))
    }

    pub(super) fn note_ignored(
        &mut self,
        key: &str,
        node: &ParsedValue,
        code: &'static str,
        reason: impl Into<Cow<'static, str>>,
    ) {
        let repair = dropped(key, node, code, ReaderRule::Ignored, reason);
        self.coercer.repairs.push(repair);
    }

    /// Looks for the two things that a leftover can say, in its keys and whole texts at any depth.
    fn search(&mut self, key: &str, node: &ParsedValue) {
        let mut left = SEARCHED_MAX;
        self.search_pair(key, node, 0, &mut left);
    }

    fn search_pair(&mut self, key: &str, node: &ParsedValue, depth: usize, left: &mut usize) {
        *left = left.saturating_sub(1);
        // What is too large to be searched may say either.
        let is_unsearched = *left == 0 || depth > DEPTH_MAX;
        self.asks_for_dry_run |= is_unsearched || (self.is_dry_run(key) && !is_clear_no(node));
        self.left_names.push(key.to_owned());
        match node {
            _ if is_unsearched => {}
            ParsedValue::Text(text) | ParsedValue::Word(text) => {
                self.asks_for_dry_run |= self.is_dry_run(text);
                self.left_names.push(text.clone());
            }
            ParsedValue::List(items) => {
                items
                    .iter()
                    .for_each(|item| self.search_pair("", item, depth + 1, left));
            }
            ParsedValue::Map(pairs) => {
                pairs
                    .iter()
                    .for_each(|(key, inner)| self.search_pair(key, inner, depth + 1, left));
            }
            _ => {}
        }
    }

    /// Looks for the name of the dry run in words, and for names if they are all that was sent.
    fn search_words(&mut self, text: &str, is_all: bool) {
        let is_outside = |c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-');
        let words = text.split(is_outside).map(|word| word.trim_matches('-'));
        let words: Vec<&str> = words
            .filter(|word| !word.is_empty())
            .take(SEARCHED_MAX)
            .collect();
        let names = |at: usize, count: usize| {
            let name = words.get(at..at + count).map(|words| words.concat());
            name.is_some_and(|name| self.is_dry_run(&name))
        };
        let is_denied = |at: usize| {
            words
                .get(at)
                .is_some_and(|word| truth_word(&word.to_lowercase()) == Some(false))
        };
        let asks = (0..words.len())
            .any(|at| (1..=2).any(|count| names(at, count) && !is_denied(at + count)));
        self.asks_for_dry_run |= asks || words.len() == SEARCHED_MAX;
        self.left_names.push(text.trim().to_owned());
        if is_all {
            let pairs = words.windows(2).map(|pair| pair.join(" "));
            let all: Vec<String> = words
                .iter()
                .map(|word| (*word).to_owned())
                .chain(pairs)
                .collect();
            self.left_names.extend(all);
        }
    }

    fn is_dry_run(&self, text: &str) -> bool {
        let mut params = self
            .shape
            .params
            .iter()
            .filter(|param| param.cautious.is_some());
        let name = params.next().map_or(DRY_RUN, |param| param.name.as_str());
        text.len() <= 2 * DRY_RUN.len() + name.len()
            && name::fold(text.trim_start_matches('-')) == name::fold(name)
    }

    /// Returns whether a left-over key or text is the name of a scene or an overlay that the call does not use.
    pub(super) fn names_other(&self) -> bool {
        if self.left_names.is_empty() {
            return false;
        }
        let folded = |name: &String| name::fold(name.trim_matches(['"', '\'', '`']));
        let used: Vec<String> = self
            .given
            .values()
            .filter_map(Value::as_str)
            .map(name::fold)
            .collect();
        let known: Vec<String> = self.shape.known_names.iter().map(folded).collect();
        let is_other = |name: String| {
            !name.is_empty() && name != "default" && known.contains(&name) && !used.contains(&name)
        };
        self.left_names
            .iter()
            .filter(|name| name.len() <= 128)
            .map(folded)
            .any(is_other)
    }
}

/// Returns whether a value under the name of a tool does not call it: null, false, an empty text or list.
fn is_off(node: &ParsedValue) -> bool {
    match node {
        ParsedValue::Null | ParsedValue::Bool(false) => true,
        ParsedValue::Text(text) | ParsedValue::Word(text) => text.is_empty(),
        ParsedValue::List(items) => items.is_empty(),
        _ => false,
    }
}

/// Returns whether a value is a clear "no", or null.
fn is_clear_no(node: &ParsedValue) -> bool {
    match node {
        ParsedValue::Null => true,
        ParsedValue::Bool(value) => !value,
        ParsedValue::Number(number) => number.as_f64() == Some(0.0),
        ParsedValue::Text(text) | ParsedValue::Word(text) => {
            truth_word(&text.trim().to_lowercase()) == Some(false)
        }
        _ => false,
    }
}

/// Objects in which clients send their own state: up to three deep, without texts, and without keys or Booleans that state
/// something, such as `"approved": false`.
const CONTAINERS: [&str; 5] = ["_meta", "ctx", "context", "mcp_context", "tool_context"];

/// Ids. An entry is added with the client that sends it: chat frameworks (`call_id`, `tool_call_id`, `run_id`, `thread_id`),
/// tracing (`trace_id`, `span_id`), n8n (`sessionId`, `toolCallId`), MCP clients (`progressToken`).
const IDS: [&str; 13] = [
    "request_id",
    "session_id",
    "tool_call_id",
    "call_id",
    "trace_id",
    "span_id",
    "run_id",
    "thread_id",
    "message_id",
    "conversation_id",
    "user_id",
    "progressToken",
    "model",
];

/// Sampling parameters of chat completions, and the time of a message.
const NUMBERS: [&str; 7] = [
    "top_k",
    "max_tokens",
    "max_completion_tokens",
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "timestamp",
];

/// Flags of chat completions.
const FLAGS: [&str; 3] = ["stream", "verbose", "parallel_tool_calls"];

/// Longest id.
const ID_BYTES_MAX: usize = 64;

/// Returns whether a key is on the closed list, with a value that can hold no sentence.
pub(super) fn is_ignored_key(key: &str, node: &ParsedValue) -> bool {
    let is_one_of = |keys: &[&str]| heuristics::is_one_of(key, keys);
    let is_within = |max: f64| matches!(node, ParsedValue::Number(number) if number.as_f64().is_some_and(|value| (0.0..=max).contains(&value)));
    if key == heuristics::PROTOCOL_KEY || is_one_of(&CONTAINERS) {
        return match node {
            ParsedValue::Map(pairs) => are_state(pairs, 3),
            node => *node == ParsedValue::Null,
        };
    }
    (is_one_of(&IDS) && is_id(node))
        || (is_one_of(&["temperature"]) && is_within(2.0))
        || (is_one_of(&["top_p"]) && is_within(1.0))
        || (is_one_of(&NUMBERS) && matches!(node, ParsedValue::Number(_)))
        || (is_one_of(&FLAGS) && matches!(node, ParsedValue::Bool(_)))
}

/// Returns whether pairs are a client's state: their keys are words of an id's letters, and their values, at most this deep,
/// null, numbers, ids, or Booleans of the closed list.
fn are_state(pairs: &[Pair], depth: usize) -> bool {
    pairs.iter().all(|(key, node)| {
        key.len() <= ID_BYTES_MAX
            && key.bytes().all(is_in_id)
            && match node {
                ParsedValue::Map(pairs) => depth > 1 && are_state(pairs, depth - 1),
                ParsedValue::Bool(_) => is_ignored_key(key, node),
                ParsedValue::Number(_) => true,
                node => is_id(node),
            }
    })
}

const fn is_in_id(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b':' | b'/' | b'-')
}

/// Returns whether a value is null, a whole number, or a short word of an id's letters with a digit.
pub(super) fn is_id(node: &ParsedValue) -> bool {
    match node {
        ParsedValue::Null => true,
        ParsedValue::Number(number) => !number.is_f64(),
        ParsedValue::Text(text) => {
            text.len() <= ID_BYTES_MAX
                && text.bytes().all(is_in_id)
                && text.bytes().any(|b| b.is_ascii_digit())
        }
        _ => false,
    }
}
