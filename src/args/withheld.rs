//! Requests for a dry run or for no motion: in keys at any depth, in values that are not data, in words around the arguments.
//!
//! A call with such a request never moves: it becomes a dry run or is refused.

use super::{
    arguments::CallReader,
    candidates::{self, CandidateReading},
    heuristics,
    limits::{KEY_BYTES_MAX, SEARCHED_MAX, UNWRAP_MAX},
    outcome::ArgumentIssue,
    parsed_value::{self, Pair, ParsedValue},
    rules::{ForgivenessProfile, ReaderPolicy, ReaderRule, ToolEffect, UnknownKeyPolicy},
    shape::{ParameterShape, ValueKind},
    skipped::{SkippedMeaning, SkippedPlace, SkippedText},
    unbracketed::percent_decoded,
    value_coercion::{ValueCoercer, ValueSite, truth_word},
    vocabulary::vocabulary,
    word_table::{FoldedText, SEARCHED_BYTES_MAX},
};
use serde_json::Value;

/// A request not to move, answered once all arguments are read.
#[derive(Debug)]
pub(super) struct WithheldRequest {
    issue: ArgumentIssue,
    /// The rule that applies if nothing moves anyway.
    still_rule: ReaderRule,
}

impl CallReader<'_> {
    /// Returns whether keys and words that belong to no parameter are judged.
    pub(super) fn judges_unknown_keys(&self) -> bool {
        self.policy.unknown_keys == UnknownKeyPolicy::Judged
    }

    /// Keeps a key or value as a request not to move, if it is one; returns whether it is.
    pub(super) fn withholds(&mut self, key: &str, node: &ParsedValue) -> bool {
        let asks = self.judges_unknown_keys() && asks_not_to_move(key, node);
        if asks {
            let received = parsed_value::shown_node(node);
            self.withhold(&parsed_value::shown(key), received, ReaderRule::Meaningless);
        }
        asks
    }

    /// Finds a request for a dry run whose words a reading without brackets split: `scene: koi dry run: yes`.
    pub(super) fn withhold_split_request(&mut self, pairs: &[Pair]) {
        let dry_run = &vocabulary().dry_run;
        let is_in = |text: &str| dry_run.is_in(&FoldedText::new(text));
        let parts: Vec<&str> = pairs.iter().flat_map(key_and_word).collect();
        for pair in parts.windows(2) {
            let words = pair.join(" ");
            if is_in(&words) && !pair.iter().any(|part| is_in(part)) {
                let received = parsed_value::shown(&words);
                self.withhold("", received, ReaderRule::Meaningless);
            }
        }
    }

    /// Keeps a request not to move.
    pub(super) fn withhold(&mut self, path: &str, received: String, still_rule: ReaderRule) {
        let reason = "this asks for a dry run or for no motion, but is not a parameter";
        let mut params = self.shape.params.iter();
        let expected = match params.find(|param| param.cautious.is_some()) {
            Some(ParameterShape { name, .. }) => {
                format!("{name}: true at the top level for a dry run, or no such request")
            }
            None => "a call without it: this tool has no dry run".to_owned(),
        };
        let issue = ArgumentIssue::new(ReaderRule::Withheld, "withheld", path, reason);
        self.withheld.push(WithheldRequest {
            issue: issue.received(received).expected(expected).in_doubt(true),
            still_rule,
        });
    }

    /// Judges what was skipped around and between the arguments.
    pub(super) fn judge_skipped(&mut self, skipped: &[SkippedText]) {
        if !self.judges_unknown_keys() {
            return;
        }
        self.judge_adjacent(skipped);
        for piece in skipped {
            let received = parsed_value::shown(piece.text.trim());
            if piece.place == SkippedPlace::Remark && self.holds_pair(&piece.text) {
                self.add_commented_out(received);
                continue;
            }
            match piece.meaning(&self.shape.tool_names) {
                SkippedMeaning::Packaging => {}
                SkippedMeaning::Words => match piece.called_name() {
                    Some(tool) => {
                        self.check_tool_name("name", tool, &ParsedValue::Text(tool.to_owned()));
                    }
                    None => {
                        self.left_out.push(piece.text.clone());
                        self.add_other_text(ReaderRule::OtherText, received);
                    }
                },
                SkippedMeaning::Arguments => self.add_commented_out(received),
                SkippedMeaning::Refusal if piece.place == SkippedPlace::Around => {
                    self.withhold("", received, ReaderRule::OtherText);
                }
                SkippedMeaning::Refusal => self.withhold("", received, ReaderRule::Meaningless),
            }
        }
    }

    /// Finds a request for a dry run that is split over adjacent comments: `# dry`, `# run`.
    fn judge_adjacent(&mut self, skipped: &[SkippedText]) {
        let dry_run = &vocabulary().dry_run;
        let comments = skipped.iter();
        let comments = comments.filter(|piece| piece.place == SkippedPlace::Remark);
        let comments: Vec<&str> = comments.map(|piece| piece.text.trim()).collect();
        for adjacent in comments.windows(2).chain(comments.windows(3)) {
            let words = adjacent.join(" ");
            if words.len() <= SEARCHED_BYTES_MAX && dry_run.is_in(&FoldedText::new(&words)) {
                self.withhold("", parsed_value::shown(&words), ReaderRule::Meaningless);
                return;
            }
        }
    }

    /// Returns whether a comment holds a parameter with a value: `// debug: true`.
    fn holds_pair(&self, comment: &str) -> bool {
        let lines = comment.lines();
        let mut pairs = lines.filter_map(|line| line.split_once([':', '=']));
        pairs.any(|(key, _)| {
            let key = key.split_whitespace().next_back().unwrap_or_default();
            let key = key.trim_matches(|c: char| !c.is_alphanumeric());
            key.len() > KEY_BYTES_MAX || self.is_param(key)
        })
    }

    fn add_commented_out(&mut self, received: String) {
        let reason = "a comment holds arguments, and it is not clear which are meant";
        let issue = ArgumentIssue::new(ReaderRule::Contradiction, "commented_out", "", reason);
        self.add_surrounding_issue(issue, received);
    }

    /// Adds the issue with words around the arguments.
    pub(super) fn add_other_text(&mut self, rule: ReaderRule, received: String) {
        let reason = "there is other text around the arguments";
        let issue = ArgumentIssue::new(rule, "other_text", "", reason);
        self.add_surrounding_issue(issue.in_doubt(true), received);
    }

    /// Adds an issue with text beside the arguments.
    fn add_surrounding_issue(&mut self, issue: ArgumentIssue, received: String) {
        let node = ParsedValue::Text(received.clone());
        let issue = issue.expected("the arguments alone, as one JSON object");
        self.add_issue(issue.received(received), &node);
    }

    /// Returns whether a text or value without arguments may lead to defaults, so that its words matter.
    pub(super) fn searches_unread_text(&self) -> bool {
        self.judges_unknown_keys()
            && self.policy.refuses(ReaderRule::Withheld)
            && !self.policy.refuses(ReaderRule::NoArguments)
    }

    /// Searches a text or value in which no arguments could be read.
    pub(super) fn search_unread(&mut self, text: &str, node: &ParsedValue) {
        if !self.searches_unread_text() {
            return;
        }
        if unread_text_asks(text) || RequestSearch::of_unread().value_asks(node, true, UNWRAP_MAX) {
            let received = parsed_value::shown_received(text, node);
            self.withhold("", received, ReaderRule::NoArguments);
        }
    }

    /// Searches the unknown fields of a parameter's own object.
    pub(super) fn search_fields(&mut self, kind: &ValueKind, node: &ParsedValue) {
        match (kind, node) {
            (ValueKind::Object { open: true, .. }, _) => {}
            (ValueKind::Object { fields, .. }, ParsedValue::Map(pairs)) => {
                for (key, inner) in pairs {
                    match fields.iter().find(|field| field.name == *key) {
                        Some(field) => self.search_fields(&field.kind, inner),
                        None => _ = self.withholds(key, inner),
                    }
                }
            }
            (ValueKind::Object { .. }, ParsedValue::Text(text)) => {
                if let Some(inner) = candidates::of_inner_text(text) {
                    self.search_fields(kind, &inner.node);
                }
            }
            (ValueKind::List { item: kind, .. }, ParsedValue::List(items)) => {
                items.iter().for_each(|item| self.search_fields(kind, item));
            }
            _ => {}
        }
    }

    /// Refuses the requests not to move; if nothing moves anyway, only notes them.
    pub(super) fn answer_withheld(&mut self) {
        let is_cautious = self.shape.is_cautious(&self.given);
        for WithheldRequest { issue, still_rule } in std::mem::take(&mut self.withheld) {
            let received = ParsedValue::Text(issue.complaint.received.clone());
            if !is_cautious {
                self.add_issue(issue, &received);
            } else if still_rule == ReaderRule::Meaningless {
                let reason = "nothing moves with these arguments";
                self.note_ignored(&issue.complaint.path, &received, "withheld", reason);
            } else {
                let rule = still_rule;
                self.add_issue(ArgumentIssue { rule, ..issue }, &received);
            }
        }
    }
}

/// Returns whether a key could ask for a dry run or for no motion, regardless of its value.
pub(super) fn may_ask_not_to_move(key: &str) -> bool {
    may_forbid(key) || vocabulary().withholds_if_false(&FoldedText::new(key))
}

/// Returns whether a key could ask for a dry run or for no motion by a value that is not clearly false.
pub(super) fn may_forbid(key: &str) -> bool {
    if key.len() > KEY_BYTES_MAX {
        return true;
    }
    let (key, vocab) = (FoldedText::new(key), vocabulary());
    vocab.dry_run.is_in_key(&key) || vocab.withholds_unless_false(&key)
}

/// Returns whether a key, its value or anything inside asks for a dry run or for no motion. Texts under harmless keys
/// are not read.
pub(super) fn asks_not_to_move(key: &str, node: &ParsedValue) -> bool {
    let mut search = RequestSearch {
        left: SEARCHED_MAX,
        is_unread: false,
    };
    search.pair_asks(key, node, true, UNWRAP_MAX)
}

/// Returns whether a text in which no arguments could be read asks for a dry run or for no motion, misspelt or encoded
/// too, or declines the call.
fn unread_text_asks(text: &str) -> bool {
    let vocab = vocabulary();
    let asks = |text: &str| {
        let folded = FoldedText::new(text);
        vocab.asks_for_dry_run(&folded)
            || vocab.dry_run.is_near(&folded)
            || vocab.withholds_unless_false(&folded)
            || vocab.declines(&folded)
    };
    let decoded = || percent_decoded(text).filter(|decoded| decoded != text);
    asks(text) || decoded().is_some_and(|decoded| asks(&decoded))
}

/// A bounded search of a value's keys and texts.
struct RequestSearch {
    /// Keys and texts that may still be searched.
    left: usize,
    /// True if no arguments could be read in the value, so that a text in it may decline the call.
    is_unread: bool,
}

impl RequestSearch {
    fn of_unread() -> Self {
        Self {
            left: SEARCHED_MAX,
            is_unread: true,
        }
    }

    /// Counts a key or text; returns `true` once there are too many, so the value may ask for anything.
    fn is_spent(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.left == 0
    }

    fn pair_asks(
        &mut self,
        key: &str,
        node: &ParsedValue,
        reads_texts: bool,
        unwraps: usize,
    ) -> bool {
        if key.len() > KEY_BYTES_MAX || self.is_spent() {
            return true;
        }
        let is_open = matches!(node, ParsedValue::Map(_))
            && vocabulary().is_presentation(&FoldedText::new(key));
        let reads_texts = reads_texts && (is_open || !heuristics::is_harmless(key));
        (!reads_texts && harmless_asks(key, node))
            || key_asks(&FoldedText::new(key), node, reads_texts)
            || self.value_asks(node, reads_texts, unwraps)
    }

    fn value_asks(&mut self, node: &ParsedValue, reads_texts: bool, unwraps: usize) -> bool {
        match node {
            ParsedValue::Map(pairs) => pairs
                .iter()
                .any(|(key, inner)| self.pair_asks(key, inner, reads_texts, unwraps)),
            ParsedValue::List(items) => items
                .iter()
                .any(|item| self.value_asks(item, reads_texts, unwraps)),
            ParsedValue::Text(text) | ParsedValue::Word(text) => {
                self.text_asks(text, reads_texts, unwraps)
            }
            _ => false,
        }
    }

    fn text_asks(&mut self, text: &str, reads_texts: bool, unwraps: usize) -> bool {
        match value_in_text(text, unwraps) {
            Some(inner) => self.inner_asks(&inner, reads_texts, unwraps.saturating_sub(1)),
            None if !reads_texts => false,
            None if self.is_spent() || may_be_object(text) => true,
            None if self.is_unread => unread_text_asks(text),
            None => vocabulary().asks_for_dry_run(&FoldedText::new(text)),
        }
    }

    /// Returns whether an object or list inside a text makes a request, or a comment in it does.
    fn inner_asks(&mut self, inner: &CandidateReading, reads_texts: bool, unwraps: usize) -> bool {
        let vocab = vocabulary();
        let comment_asks = |comment: &SkippedText| vocab.says_no(&FoldedText::new(&comment.text));
        self.value_asks(&inner.node, reads_texts, unwraps)
            || (reads_texts && inner.forms.skipped().iter().any(comment_asks))
    }
}

/// Most words of a text under a harmless key that is a request though it has other words.
const REQUEST_WORDS_MAX: usize = 3;

/// Returns whether the text under a harmless key, or in an object there, is nothing but a request for a dry run:
/// `"output": "preview"`, `"metadata": "dry_run=true"`, `"context": {"mode": "dry run"}`.
fn harmless_asks(key: &str, node: &ParsedValue) -> bool {
    let vocab = vocabulary();
    let is_pair = |text: &str| {
        text.split_once(['=', ':']).is_some_and(|(key, value)| {
            let value = ParsedValue::Word(value.trim().to_owned());
            vocab.dry_run.is_in(&FoldedText::new(key)) && !is_clear_no(&value)
        })
    };
    let key = FoldedText::new(key);
    let is_searched = || {
        vocab.is_presentation(&key)
            || ["metadata", "meta", "context", "ctx"].contains(&key.letters().as_str())
    };
    match node.as_text() {
        Some(text) => is_pair(text) || (is_searched() && is_short_request(text)),
        None => is_searched() && holds_request(node),
    }
}

/// Returns whether a text is a short one that asks for a dry run, or says nothing else.
fn is_short_request(text: &str) -> bool {
    let (folded, vocab) = (FoldedText::new(text), vocabulary());
    let is_short = folded.words().count() <= REQUEST_WORDS_MAX;
    !text.contains(['=', ':'])
        && vocab.asks_for_dry_run(&folded)
        && (is_short || vocab.is_dry_run_alone(&folded))
}

/// Returns whether an object holds a request under a key for the act or for a wish, or a text that says nothing else.
/// Harmless keys, remarks and lists in it do not count.
fn holds_request(node: &ParsedValue) -> bool {
    let ParsedValue::Map(pairs) = node else {
        return false;
    };
    let vocab = vocabulary();
    pairs.iter().any(|(name, inner)| {
        let key = FoldedText::new(name);
        if heuristics::is_harmless(name) || vocab.is_remark(&key) {
            return false;
        }
        let says_alone = |text: &FoldedText| {
            // One word may be a name: `"last_tool": "preview"`.
            text.words().nth(1).is_some() && vocab.is_dry_run_alone(text)
        };
        match sole_value(inner).as_text() {
            Some(text) if vocab.asks_in_words(&key) => is_short_request(text),
            Some(text) => says_alone(&FoldedText::new(text)),
            None => holds_request(inner),
        }
    })
}

/// Returns whether a key and its short text are one request: `"pen": "up"`, `"do_not": "draw"`.
fn asks_with_key(key: &FoldedText, node: &ParsedValue) -> bool {
    const WORDS_MAX: usize = 4;
    node.as_text().is_some_and(|text| {
        let words = format!("{} {text}", key.phrase());
        let words = FoldedText::new(&words);
        words.words().count() <= WORDS_MAX && vocabulary().asks_for_dry_run(&words)
    })
}

fn key_asks(key: &FoldedText, node: &ParsedValue, is_judged: bool) -> bool {
    let vocab = vocabulary();
    if vocab.dry_run.is_in_key(key) {
        let is_sent = *node != ParsedValue::Null;
        return !is_clear_no(node) || (is_sent && vocab.reverses_dry_run(key));
    }
    if !is_judged {
        return false;
    }
    if is_none(node) {
        return vocab.withholds_if_false(key) || vocab.says_act(key);
    }
    if node.is_empty() {
        // An empty object under a name for stopping is a call of it: `{"cancel": {}}`.
        return matches!(node, ParsedValue::Map(_)) && vocab.names_dissent(key);
    }
    let value = sole_value(node);
    if (vocab.asks_if_true(key) && is_clear_yes(node))
        || is_still_mode(key, value)
        || asks_with_key(key, value)
    {
        return true;
    }
    let is_number = vocab.ends_with_number(key) && matches!(node, ParsedValue::Number(_));
    if is_number && !vocab.names_dissent(key) {
        return false;
    }
    let is_no = is_clear_no(node);
    let denies = is_clear_no(value) || is_negation(value);
    // A number under `start` is a place to begin at.
    let is_denied = || !matches!(node, ParsedValue::Number(_)) && vocab.is_assent_alone(key);
    let withholds_if_false =
        denies && (vocab.withholds_if_false(key) || vocab.waives_consent(key) || is_denied());
    withholds_if_false || (!is_no && vocab.withholds_unless_false(key))
}

/// Returns whether a key asks for a dry run if true and for nothing if false: `simulate`, `plan`.
pub(super) fn is_dry_run_key(key: &str) -> bool {
    let (key, vocab) = (FoldedText::new(key), vocabulary());
    (vocab.asks_if_true(&key) && !vocab.begins_with_doing(&key)) || vocab.is_dry_run_flag(&key)
}

/// Returns a pair's key, and its value if that has no quotes.
fn key_and_word((key, node): &Pair) -> impl Iterator<Item = &str> {
    let word = match node {
        ParsedValue::Word(word) => Some(word.as_str()),
        _ => None,
    };
    std::iter::once(key.as_str()).chain(word)
}

/// Returns the object or list that a text holds.
fn value_in_text(text: &str, left: usize) -> Option<CandidateReading> {
    let may_hold = left > 0 && text.trim_start().starts_with(['{', '[']);
    let found = may_hold.then(|| candidates::of_inner_text_with_comments(text));
    let found = found.flatten()?;
    matches!(found.node, ParsedValue::Map(_) | ParsedValue::List(_)).then_some(found)
}

/// Returns whether a text that cannot be read as a value may still have keys, and so may ask for anything.
fn may_be_object(text: &str) -> bool {
    let is_bracketed = text.trim_start().starts_with(['{', '[']);
    is_bracketed && text.contains('{') && text.contains([':', '='])
}

/// Returns whether a value is false, a word for it, or null: clear enough to rule out a dry run.
pub(super) fn is_clear_no(node: &ParsedValue) -> bool {
    match node {
        ParsedValue::Null => true,
        ParsedValue::Bool(value) => !value,
        ParsedValue::Number(number) => number.as_f64() == Some(0.0),
        ParsedValue::Text(text) | ParsedValue::Word(text) => {
            let word = text.trim().to_ascii_lowercase();
            truth_word(&word) == Some(false)
                || matches!(word.as_str(), "never" | "n")
                || (!word.is_empty() && parsed_value::is_nothing(&word))
        }
        _ => false,
    }
}

/// Returns whether a value is true, or a word for it in any known language.
pub(super) fn is_plain_yes(node: &ParsedValue) -> bool {
    match node {
        ParsedValue::Bool(value) => *value,
        ParsedValue::Flag => true,
        ParsedValue::Number(number) => number.as_f64() == Some(1.0),
        ParsedValue::Text(text) | ParsedValue::Word(text) => {
            truth_word(&text.trim().to_ascii_lowercase()) == Some(true)
                || vocabulary().is_yes(&FoldedText::new(text))
        }
        _ => false,
    }
}

/// Returns whether a value may be true: it is plainly, a parameter's boolean would be read so, or a word says that it is on.
fn is_clear_yes(node: &ParsedValue) -> bool {
    const ON: [&str; 4] = ["enabled", "enable", "active", "activated"];
    const POLICY: ReaderPolicy = ReaderPolicy::new(ToolEffect::Moves, ForgivenessProfile::Guarded);
    let node = sole_value(node);
    let site = ValueSite {
        kind: &ValueKind::Bool,
        node,
        path: "",
        is_inner: false,
    };
    let is_on = |text: &str| {
        text.trim().parse() == Ok(1.0) || ON.contains(&FoldedText::new(text).phrase().as_str())
    };
    is_plain_yes(node)
        || ValueCoercer::new(&POLICY).value(site) == Ok(Value::Bool(true))
        || node.as_text().is_some_and(is_on)
}

/// Returns the value inside lists of one and objects that hold nothing but a value: `["yes"]`, `{"value": true}`.
fn sole_value(node: &ParsedValue) -> &ParsedValue {
    const KEYS: [&str; 4] = ["value", "enabled", "enable", "active"];
    match node {
        ParsedValue::List(items) => match items.as_slice() {
            [only] => sole_value(only),
            _ => node,
        },
        ParsedValue::Map(pairs) => match pairs.as_slice() {
            [(key, only)] if KEYS.contains(&FoldedText::new(key).letters().as_str()) => {
                sole_value(only)
            }
            _ => node,
        },
        _ => node,
    }
}

/// Returns whether a value is "none" or "nothing": under a key such as `motion` these mean more than an absent value.
pub(super) fn is_none(node: &ParsedValue) -> bool {
    let text = node.as_text().unwrap_or_default().trim();
    text.eq_ignore_ascii_case("none") || text.eq_ignore_ascii_case("nothing")
}

fn is_still_mode(key: &FoldedText, node: &ParsedValue) -> bool {
    node.as_text()
        .is_some_and(|text| vocabulary().is_still_mode(key, &FoldedText::new(text)))
}

/// Returns whether a key withholds the act unless it is true, and its value is empty.
pub(super) fn is_unclear_assent(key: &str, node: &ParsedValue) -> bool {
    node.is_empty() && vocabulary().withholds_if_false(&FoldedText::new(key))
}

/// Returns whether a text is a negation in any known language.
pub(super) fn is_negation(node: &ParsedValue) -> bool {
    node.as_text()
        .is_some_and(|text| vocabulary().negations.is_in(&FoldedText::new(text)))
}
