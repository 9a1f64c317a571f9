//! Keys that match no parameter: ignored if that changes nothing, otherwise an issue.

use std::borrow::Cow;

use super::{
    arguments::{CallReader, whole_text},
    candidates, heuristics,
    limits::{PAIRS_MAX, UNWRAP_MAX},
    name,
    nearest::nearest,
    other_requests,
    outcome::ArgumentIssue,
    parsed_value::{self, Pair, ParsedValue},
    rules::ReaderRule,
    shape::{ParameterShape, ValueKind},
    value_coercion::{ValueCoercer, ValueSite, dropped, truth_word},
    vocabulary::vocabulary,
    withheld::{
        is_clear_no, is_dry_run_key, is_negation, is_none, is_plain_yes, is_unclear_assent,
    },
    word_table::FoldedText,
};
use serde_json::Value;
use unicode_normalization::UnicodeNormalization as _;

/// Longest key that is checked for a misspelling.
const SLIP_BYTES_MAX: usize = 64;

impl CallReader<'_> {
    /// Judges keys that match no parameter, once the parameters have been read.
    pub(super) fn judge_unknown_keys(&mut self, pairs: &[&Pair]) {
        if self.judges_unknown_keys() && heuristics::holds_signature(pairs) {
            self.refuse_whole_text(
                "schema_echo",
                "these are types, not arguments",
                &ParsedValue::Null,
            );
        }
        if self.judges_unknown_keys() && (self.given.is_empty() || self.holds_data()) {
            self.judge_no_call(pairs);
        }
        if self.judges_unknown_keys() && !self.holds_choice() {
            self.withhold_for_empty_stop(pairs);
        }
        let mut ignored = None;
        for (key, node) in pairs {
            let is_ignored = self.handle_unknown_key(key, node);
            ignored = ignored.or(is_ignored.then_some((key, node)));
        }
        let has_meaning = |key: &String| !vocabulary().is_harmless(&FoldedText::new(key));
        if let Some((key, node)) = ignored
            && self.refused.is_empty()
            && !self.given.keys().any(has_meaning)
        {
            let (rule, shown) = (ReaderRule::DoubtfulKey, parsed_value::shown(key));
            let reason = "this is the only argument, and this tool has no such parameter";
            let issue = self.issue(rule, "only_unknown", &shown, reason, node);
            self.add_issue(issue.in_doubt(true), node);
        }
    }

    /// Returns whether more than flags was sent, such as a scene, a text, an arm or a node.
    fn holds_choice(&self) -> bool {
        let is_flag = |key: &str| {
            let param = self.param_named(key);
            param.is_some_and(|param| param.kind == ValueKind::Bool)
        };
        let mut given = self.given.keys();
        given.any(|key| !is_flag(key) && !heuristics::is_harmless(key))
    }

    /// Withholds the act if a name for stopping has an empty value, which may be a call of it: `{"stop": ""}`.
    fn withhold_for_empty_stop(&mut self, pairs: &[&Pair]) {
        let is_stop = |(key, node): &&&Pair| {
            node.is_empty()
                && *node != ParsedValue::Null
                && !heuristics::is_harmless(key)
                && vocabulary().names_dissent(&FoldedText::new(key))
        };
        if let Some((key, node)) = pairs.iter().find(is_stop) {
            let received = parsed_value::shown_node(node);
            self.withhold(&parsed_value::shown(key), received, ReaderRule::Meaningless);
        }
    }

    /// Withholds the act if the only request is that nothing be called: `{"tool_calls": []}`, `{"name": null}`.
    fn judge_no_call(&mut self, pairs: &[&Pair]) {
        // Beside data, a null of a chat's own form was not sent: `"tool_calls": null`.
        let is_unsent = |key: &str, node: &ParsedValue| {
            !self.given.is_empty() && heuristics::names_calls(key) && *node == ParsedValue::Null
        };
        let is_no_call = |(key, node): &&&Pair| {
            let names_calls = heuristics::names_calls(key);
            let is_none = (names_calls && other_requests::holds_nothing(node))
                || ((names_calls || heuristics::is_tool_name(key))
                    && (is_none(node) || other_requests::is_empty_name(node)));
            is_none && !is_unsent(key, node)
        };
        if let Some((key, node)) = pairs.iter().find(is_no_call) {
            self.add_no_call(&parsed_value::shown(key), node);
        }
    }

    /// Adds the issue with a key that says that nothing is called.
    pub(super) fn add_no_call(&mut self, key: &str, node: &ParsedValue) {
        if self
            .refused
            .iter()
            .any(|issue| issue.complaint.code == "no_call")
        {
            return;
        }
        let reason = "this says that nothing is called";
        let issue = self.issue(ReaderRule::Withheld, "no_call", key, reason, node);
        self.add_issue(issue.in_doubt(true), node);
    }

    /// Adds an issue with a text that stands in the place of arguments.
    fn refuse_whole_text(&mut self, code: &'static str, reason: &str, node: &ParsedValue) {
        let issue = whole_text(ReaderRule::Contradiction, code, reason);
        self.add_issue(issue, node);
    }

    /// Judges pairs without brackets, whose keys and values may be the words of one sentence.
    pub(super) fn judge_loose_pairs(&mut self, pairs: &[Pair]) {
        if !self.judges_unknown_keys() {
            return;
        }
        self.withhold_split_request(pairs);
        if self.given.is_empty() || self.policy.refuses(ReaderRule::ForeignKey) {
            return;
        }
        for (key, node) in pairs {
            if !self.is_param(key) && self.holds_arguments(node, UNWRAP_MAX) {
                let (rule, shown) = (ReaderRule::Contradiction, parsed_value::shown(key));
                self.add_issue(self.nested_issue(rule, &shown, node), node);
            }
        }
    }

    /// Handles an unknown key; returns whether it was ignored although it has a value, or may be a call.
    fn handle_unknown_key(&mut self, key: &str, node: &ParsedValue) -> bool {
        let shown = parsed_value::shown(key);
        if heuristics::holds_schema(node) {
            let reason = "this is a piece of a schema, not arguments";
            self.refuse_whole_text("schema_echo", reason, node);
        } else if heuristics::is_template_pair(key, node) {
            let reason = "this is a stand-in for an argument, not an argument";
            self.refuse_whole_text("template", reason, node);
        } else if self.shape.open && !node.is_empty() {
            self.given.insert(key.to_owned(), node.to_value());
        } else if self.withholds(key, node) {
            return false;
        } else if self.judges_unknown_keys() && other_requests::is_other_call(key, node) {
            self.check_tool_name(&shown, key, node);
        } else if heuristics::is_harmless(key) && !waits_for(key, node) {
            let reason = format!("the server supplies it; do not send {shown}");
            self.note_ignored(&shown, node, "ignored_key", reason);
        } else if node.is_empty() && !(self.judges_unknown_keys() && self.has_meaning(key, node)) {
            self.note_ignored(&shown, node, "ignored_key", "empty; ignored");
            // `{"get_weather": {}}` may be a call.
            let may_be_call = matches!(node, ParsedValue::Map(_))
                && !heuristics::is_packaging(key, &self.shape.tool_names);
            return may_be_call && self.judges_unknown_keys();
        } else if !self.judges_unknown_keys() {
            self.note_ignored(&shown, node, "unknown_key", "no such parameter; ignored");
        } else {
            return self.judge_unknown_key(key, &shown, node);
        }
        false
    }

    /// Returns whether a key has a meaning even with an empty value: a sentence, a pair, a negation, a known name, or an
    /// assent that is not given.
    fn has_meaning(&self, key: &str, node: &ParsedValue) -> bool {
        let (folded, vocab) = (FoldedText::new(key), vocabulary());
        let is_phrase = key.trim().contains(char::is_whitespace);
        is_unclear_assent(key, node)
            || is_sentence(key)
            || vocab.forbids_act(&folded)
            || (is_phrase && (vocab.negations.is_in(&folded) || vocab.is_conditional(&folded)))
            || parts_of_name(key).any(|part| self.is_other_name(part))
    }

    /// Judges whether leaving out an unknown key would change the act; returns whether it is ignored.
    fn judge_unknown_key(&mut self, key: &str, shown: &str, node: &ParsedValue) -> bool {
        if let Some(tool) = node.as_text()
            && heuristics::is_tool_name(key)
        {
            self.check_tool_name(shown, tool, node);
            return false;
        }
        let is_false = is_clear_no(node) && !node.is_empty();
        let is_idle_flag = || {
            self.is_foreign_flag(key)
                || is_dry_run_key(key)
                || vocabulary().is_consent_flag(&FoldedText::new(key))
        };
        if is_false && !heuristics::is_marked(key) && is_idle_flag() {
            let reason = "no such parameter, and false as it would be without it; ignored";
            self.note_ignored(shown, node, "ignored_key", reason);
            return false;
        }
        let Some(issue) = self.stray_key_issue(key, shown, node) else {
            self.note_ignored(shown, node, "unknown_key", "no such parameter; ignored");
            return true;
        };
        self.add_issue(issue, node);
        false
    }

    /// Returns the issue with an unknown key, if ignoring it would lose its meaning.
    fn stray_key_issue(&self, key: &str, shown: &str, node: &ParsedValue) -> Option<ArgumentIssue> {
        let mut foreign = self.shape.foreign.iter();
        let is_foreign = foreign.any(|name| heuristics::same_key(name, key));
        let (rule, code, reason) = if is_foreign {
            let reason = "this is a parameter of another tool";
            (ReaderRule::ForeignKey, "foreign_key", reason)
        } else if (heuristics::is_size(key) && !is_count(key, node) && !names_choice(key, node))
            || heuristics::holds_size(key, node)
        {
            let reason = "this tool has no such parameter, and it may change what is done";
            (ReaderRule::PhysicalKey, "physical_key", reason)
        } else if !key.contains(char::is_alphanumeric) {
            let (rule, reason) = (ReaderRule::ForeignKey, "a value without a name");
            let issue = self.issue(rule, "nameless", shown, reason, node);
            return Some(issue.in_doubt(true));
        } else if let Some(param) = self.misspelt_parameter(key) {
            return Some(self.slip_issue(param, key, node));
        } else if self.names_other(key, node) {
            let reason = "this is a known name, but not one that would be used";
            (ReaderRule::DoubtfulKey, "other_name", reason)
        } else if is_sentence(key) || names_other_act(key, node) {
            let reason = "this is more than a parameter's name, and it may change what is done";
            (ReaderRule::DoubtfulKey, "sentence", reason)
        } else if other_requests::asks_otherwise(key, node) {
            let reason = "this asks for help or for another act, or says that all is done";
            (ReaderRule::DoubtfulKey, "other_request", reason)
        } else if is_doubt(key, node) {
            let reason = "this is false, a negation, a condition or a time, and this tool has no such parameter";
            (ReaderRule::DoubtfulKey, "negation", reason)
        } else if self.instructs(key, node) {
            let reason = "this says how or what to draw, and this tool has no such parameter";
            (ReaderRule::PhysicalKey, "physical_key", reason)
        } else if matches!(node, ParsedValue::Map(_) | ParsedValue::List(_))
            && self.holds_arguments(node, UNWRAP_MAX)
        {
            return Some(self.nested_issue(ReaderRule::ForeignKey, shown, node));
        } else {
            return None;
        };
        let issue = self.issue(rule, code, shown, reason, node);
        Some(issue.in_doubt(rule == ReaderRule::DoubtfulKey))
    }

    /// Returns whether a key is a flag of another tool, which does nothing when false.
    fn is_foreign_flag(&self, key: &str) -> bool {
        let mut flags = self.shape.foreign_flags.iter();
        // `ink` and `touch` say for any tool whether the pen should touch.
        !heuristics::is_size(key) && flags.any(|name| heuristics::same_key(name, key))
    }

    /// Returns whether a key or its value is a known name that the arguments do not use.
    pub(super) fn names_other(&self, key: &str, node: &ParsedValue) -> bool {
        let is_name = |text: &str| self.is_other_name(text);
        parts_of_name(key).any(is_name)
            || node
                .as_text()
                .is_some_and(|text| parts_of_name(text).any(is_name))
            || node.any_inside(|key, inner| self.names_other(key, inner))
    }

    /// Returns whether a text is a known name that the arguments do not use.
    pub(super) fn is_other_name(&self, text: &str) -> bool {
        let normalised: String = text.nfkc().collect();
        let folded = name::fold(normalised.trim_matches(['"', '\'', '`']));
        let is_same = |name: &str| name::fold(name) == folded;
        let names_it = |value: Option<&Value>| value.and_then(Value::as_str).is_some_and(is_same);
        // If a parameter was sent, the name of its default means nothing: `"style": "default"`.
        let is_used = |param: &ParameterShape| {
            names_it(self.given.get(&param.name)) || names_it(param.default.as_ref())
        };
        !folded.is_empty()
            && self.shape.known_names.iter().any(|name| is_same(name))
            && !self.shape.params.iter().any(is_used)
    }

    /// Returns the issue with arguments in a place where none are expected.
    pub(super) fn nested_issue(
        &self,
        rule: ReaderRule,
        shown: &str,
        node: &ParsedValue,
    ) -> ArgumentIssue {
        let reason = "this holds arguments where none are expected; send them at the top";
        let issue = self.issue(rule, "nested_arguments", shown, reason, node);
        issue.in_doubt(true)
    }

    /// Returns arguments under an unknown key: ignoring it would lose the whole call.
    pub(super) fn lost_arguments<'n>(&self, pairs: &'n [Pair]) -> Option<&'n Pair> {
        pairs.iter().find(|(key, node)| {
            !heuristics::is_harmless(key) && self.holds_arguments(node, UNWRAP_MAX)
        })
    }

    /// Returns whether a parameter is given at any depth, including inside text.
    fn holds_arguments(&self, node: &ParsedValue, left: usize) -> bool {
        let Some(left) = left.checked_sub(1) else {
            return false;
        };
        match node {
            ParsedValue::Map(pairs) => pairs.iter().any(|(key, inner)| {
                (!inner.is_empty() && self.is_param(key))
                    || heuristics::is_call(key, inner)
                    || self.holds_arguments(inner, left)
            }),
            ParsedValue::List(items) if items.len() <= PAIRS_MAX => {
                items.iter().any(|item| self.holds_arguments(item, left))
            }
            ParsedValue::Text(text) if text.trim_start().starts_with('{') => {
                let inner = candidates::of_inner_text_with_comments(text);
                inner.is_some_and(|inner| self.holds_arguments(&inner.node, left))
            }
            _ => false,
        }
    }

    /// Returns the unsent parameter that a key means: misspelt (`scen`, `scenes`), inside a longer name (`the_scene`), or in
    /// another language (`escena`).
    fn misspelt_parameter(&self, key: &str) -> Option<&ParameterShape> {
        let folded = name::fold(key);
        let is_ordinary = vocabulary().is_ordinary(&folded);
        let slips_max = |name: &str| match name.chars().count() {
            _ if is_ordinary => 0,
            0..=3 => 0,
            4..=6 => 1,
            _ => 2,
        };
        let is_near = |name: &str| {
            let known = name::fold(name);
            heuristics::has_words_of(key, name)
                || strsim::osa_distance(&known, &folded) <= slips_max(&known)
        };
        let unsent = self.shape.params.iter().enumerate();
        let mut unsent = unsent.filter(|(index, _)| !self.sent.contains(index));
        let words = FoldedText::new(key);
        let is_intended = |param: &ParameterShape| {
            let mut names = std::iter::once(&param.name).chain(&param.aliases);
            (folded.len() <= SLIP_BYTES_MAX && is_near(&param.name))
                || names.any(|name| vocabulary().means(&words, name))
        };
        let intended = unsent.find(|(_, param)| is_intended(param));
        intended.map(|(_, param)| param)
    }

    /// Returns the issue with a misspelt parameter name, and the value under it if the parameter accepts it. It is in doubt
    /// what a longer or translated name means: `exclude_scene` denies the value.
    fn slip_issue(&self, param: &ParameterShape, key: &str, node: &ParsedValue) -> ArgumentIssue {
        let rule = match (&param.kind, node) {
            // Data under a misspelt key counts as refused data.
            (ValueKind::Verbatim { .. }, ParsedValue::Text(_)) => ReaderRule::Verbatim,
            _ => ReaderRule::ForeignKey,
        };
        let reason = "this is nearly a parameter's name, or that name in other words";
        let mut coercer = ValueCoercer::new(self.policy);
        let fix = coercer.value(ValueSite::of_parameter(param, node)).ok();
        ArgumentIssue {
            is_in_doubt: fix.is_none() || !is_letter_slip(key, &param.name),
            mends: Some(param.name.clone()),
            fix,
            ..self.issue(rule, "near_key", &parsed_value::shown(key), reason, node)
        }
    }

    pub(super) fn note_ignored(
        &mut self,
        key: &str,
        node: &ParsedValue,
        code: &'static str,
        reason: impl Into<Cow<'static, str>>,
    ) {
        let repair = dropped(key, node, code, ReaderRule::Meaningless, reason);
        self.coercer.repairs.push(repair);
    }

    fn issue(
        &self,
        rule: ReaderRule,
        code: &'static str,
        key: &str,
        reason: &str,
        node: &ParsedValue,
    ) -> ArgumentIssue {
        let names = self.shape.params.iter().map(|param| param.name.as_str());
        ArgumentIssue::new(rule, code, key, reason)
            .received(parsed_value::shown_node(node))
            .expected("the tool's own parameters")
            .valid(nearest(key, names))
    }
}

/// Returns whether a key is a parameter's name but for one letter, and says nothing else: `scen`, `scenes`, but not `!scene`.
fn is_letter_slip(key: &str, name: &str) -> bool {
    let (folded, vocab) = (FoldedText::new(key), vocabulary());
    let is_plain = |c: char| c.is_alphabetic() || matches!(c, '_' | '-' | ' ');
    key.chars().all(is_plain)
        && !heuristics::is_marked(key)
        && !vocab.negations.is_in(&folded)
        && !vocab.is_conditional(&folded)
        && strsim::osa_distance(&name::fold(name), &name::fold(key)) == 1
}

/// Most words of a value in which a name is looked for.
pub(super) const NAME_PARTS_MAX: usize = 200;

/// Returns a value as one name, then its words: `the letters`, `letters.svg`, `please draw the letters for me`.
fn parts_of_name(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split(|c: char| c.is_whitespace() || ".,;:!?/\\()[]{}<>|+=\"'`".contains(c));
    let parts = parts.filter(|part| !part.is_empty()).take(NAME_PARTS_MAX);
    std::iter::once(text).chain(parts)
}

/// Returns whether a key is more than a name: three words or more, a question, a quantity, an option, or a pair such as `scene=koi`.
fn is_sentence(key: &str) -> bool {
    let key = key.trim();
    let is_quantity =
        key.starts_with(|c: char| c.is_ascii_digit()) && key.contains(char::is_alphabetic);
    key.contains(['=', ':', '{', '('])
        || key.ends_with(['?', '？', '؟'])
        || key.starts_with('-')
        || is_quantity
        || key.split_whitespace().nth(2).is_some()
}

/// Returns whether a key counts the caller's own things, though one of its words is physical: `step_number`.
fn is_count(key: &str, node: &ParsedValue) -> bool {
    let key = FoldedText::new(key);
    matches!(node, ParsedValue::Number(_)) && vocabulary().counts(&key)
}

/// Returns whether a key says what was chosen: `selected_scene`, `"selected": true`, but not `"selection": "A"`.
fn names_choice(key: &str, node: &ParsedValue) -> bool {
    let (key, vocab) = (FoldedText::new(key), vocabulary());
    vocab.names_choice(&key) || (is_plain_yes(node) && vocab.is_choice(&key))
}

/// Returns whether a key for the act names another act: `"command": "reset"`.
fn names_other_act(key: &str, node: &ParsedValue) -> bool {
    node.as_text().is_some_and(|text| {
        vocabulary().is_other_act(&FoldedText::new(key), &FoldedText::new(text))
    })
}

/// Returns whether a key or its value denies, limits or postpones something.
pub(super) fn is_doubt(key: &str, node: &ParsedValue) -> bool {
    let vocab = vocabulary();
    let folded = FoldedText::new(key);
    if vocab.negations.is_in(&folded) || vocab.is_conditional(&folded) {
        return true;
    }
    match node {
        _ if is_unclear_assent(key, node) => true,
        ParsedValue::Bool(value) => !value,
        ParsedValue::Number(number) => number.as_f64() == Some(0.0),
        ParsedValue::Text(text) | ParsedValue::Word(text) => {
            is_negation(node)
                || vocab.conditions.is_in(&FoldedText::new(text))
                || is_time(text)
                || is_question(text)
        }
        _ => node.any_inside(is_doubt),
    }
}

/// Returns whether a text asks about the act, as in `how long would it take?`; `can you draw it?` is a request.
fn is_question(text: &str) -> bool {
    const ASKING: [&str; 11] = [
        "how", "what", "why", "which", "who", "where", "is", "are", "does", "do", "should",
    ];
    if !text.trim_end().ends_with(['?', '？', '؟']) {
        return false;
    }
    let text = FoldedText::new(text);
    let first = text.words().next();
    first.is_some_and(|word| ASKING.contains(&word))
}

/// Returns whether a key states a condition, as `"wait": "until I say so"` does; `"wait": true` is about the answer.
fn waits_for(key: &str, node: &ParsedValue) -> bool {
    let is_more = |text: &str| truth_word(&text.trim().to_lowercase()).is_none();
    heuristics::same_key(key, "wait") && node.as_text().is_some_and(is_more)
}

/// Returns whether a text holds a time or a date, such as `18:30` or `2031-05-01`.
fn is_time(text: &str) -> bool {
    let is_part = |mark: char, digits: usize| {
        let mut parts = text.split(mark).map(|part| {
            let start = part.bytes().take_while(u8::is_ascii_digit).count();
            let end = part.bytes().rev().take_while(u8::is_ascii_digit).count();
            (start, end)
        });
        let mut before = parts.next();
        parts.any(|(start, end)| {
            let is_match = start == 2 && before.is_some_and(|(_, end)| (1..=digits).contains(&end));
            before = Some((start, end));
            is_match
        })
    };
    text.len() <= SLIP_BYTES_MAX && (is_part(':', 2) || is_part('-', 4))
}
