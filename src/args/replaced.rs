//! Finds what a default would replace: a parameter's value, or a known name, in a part of the call that has no place.

use super::{
    arguments::{CallReader, assigns, flaw_issue, whole_text},
    candidates::TextFlaw,
    heuristics, name,
    outcome::ArgumentIssue,
    parsed_value::{self, ParsedValue},
    rules::ReaderRule,
    sentence::Sentence,
    shape::{ParameterShape, ValueKind},
};

/// Most values and words of a list without arguments that are searched; one that holds more may say anything.
const WORDS_MAX: usize = 512;

impl CallReader<'_> {
    /// Refuses the call where words that were left out around the arguments say what a default would replace.
    pub(super) fn refuse_replaced(&mut self) {
        let left_out = std::mem::take(&mut self.left_out);
        // Where any words are refused, these have been.
        if !self.policy.guards_motion() || self.policy.refuses(ReaderRule::OtherText) {
            return;
        }
        for text in left_out {
            if self.says_more(&text) {
                let received = parsed_value::shown(text.trim());
                self.add_other_text(ReaderRule::Contradiction, received);
            }
        }
    }

    /// Returns the issue with a list or another value that has no place: `["letters", true]`.
    pub(super) fn flaw_of_value(&self, node: &ParsedValue) -> ArgumentIssue {
        let issue = flaw_issue(TextFlaw::NoArguments);
        let may_run = self.policy.guards_motion() && !self.policy.refuses(issue.rule);
        let mut left = WORDS_MAX;
        if may_run && self.value_says_more(node, &mut left) {
            let reason = "there are values in this without the names of their arguments";
            return whole_text(ReaderRule::Contradiction, "no_arguments", reason).in_doubt(true);
        }
        issue
    }

    /// Returns whether a value holds a text that says what a default would replace, or more words than may still be searched.
    fn value_says_more(&self, node: &ParsedValue, left: &mut usize) -> bool {
        let text = node.as_text().unwrap_or_default();
        let words = text.split_whitespace().take(WORDS_MAX).count();
        *left = left.saturating_sub(1 + words);
        // `scene` before a value in a list, or `:scene` at the end of a text.
        let is_key = |text: &str| {
            let last = text.split_whitespace().next_back().unwrap_or_default();
            self.is_unsent(last.trim_start_matches([':', '-']))
        };
        let says_more = |text: &str| is_key(text) || self.says_more(text);
        *left == 0
            || says_more(text)
            || node.any_inside(|_, inner| self.value_says_more(inner, left))
    }

    /// Returns whether a text that was left out holds an object, gives a parameter that was not sent a value, or names
    /// what a default would replace.
    fn says_more(&self, text: &str) -> bool {
        // A mark with nothing behind it gives no value: `Scene:` before an object.
        let given = text.trim_end_matches(|c: char| !c.is_alphanumeric());
        text.contains(['{', '｛'])
            || assigns(given, |key| self.is_unsent(key))
            || Sentence::of(text)
                .is_none_or(|sentence| sentence.holds_name(|name| self.is_replaced_name(name)))
    }

    /// Returns whether a text is a known name for a parameter that was not sent, in whose place the default would be used.
    pub(super) fn is_replaced_name(&self, text: &str) -> bool {
        let folded = name::fold(text);
        let may_hold = |param: &ParameterShape| match &param.kind {
            ValueKind::Name { known } => known.iter().any(|name| name::fold(name) == folded),
            _ => false,
        };
        let mut params = self.shape.params.iter();
        self.is_other_name(text)
            && params.any(|param| self.has_default_only(param) && may_hold(param))
    }

    /// Returns whether a key means a parameter in whose place the default would be used.
    fn is_unsent(&self, key: &str) -> bool {
        let param = self.param_named(key);
        param.is_some_and(|param| self.has_default_only(param))
    }

    /// Returns whether the default of a parameter would be used, as it was not sent, and matters.
    fn has_default_only(&self, param: &ParameterShape) -> bool {
        param.default.is_some()
            && !self.given.contains_key(&param.name)
            && !heuristics::is_harmless(&param.name)
    }
}
