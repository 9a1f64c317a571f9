//! Reads what was sent for one parameter: a value, equal values, an empty value, or none.

use super::{
    arguments::CallReader,
    judge::ReaderRule,
    outcome::{ArgumentIssue, ArgumentRepair},
    parsed_value::{self, ParsedValue},
    shape::{ParameterShape, ValueKind},
    value_coercion::{self, ValueSite, dropped},
};
use serde_json::Value;

impl CallReader<'_> {
    /// Takes what was sent for a parameter, once or several times.
    pub(super) fn read_param<'n>(
        &mut self,
        param: &ParameterShape,
        mut sent: impl Iterator<Item = &'n ParsedValue> + Clone,
    ) {
        if let ValueKind::Verbatim { bytes_max } = param.kind {
            return self.read_verbatim(param, bytes_max, sent);
        }
        let is_filled_in = self.another_chooses(param);
        let is_stated = |node: &&ParsedValue| {
            let is_unsent =
                is_unspecified(param, node) || (is_filled_in && is_empty_place(param, node));
            !is_unsent || is_own_word(&param.kind, node)
        };
        let mut stated = sent.clone().filter(is_stated);
        let Some(first) = stated.next() else {
            return self.read_absent(param, sent.next());
        };
        let Some(value) = self.coerce(param, first) else {
            return;
        };
        let (mut is_repeated, mut differs) = (false, false);
        for node in stated {
            let Some(other) = self.coerce(param, node) else {
                return;
            };
            is_repeated = true;
            differs |= !value_coercion::same(&other, &value);
        }
        if differs {
            let values: Vec<_> = sent.filter(is_stated).collect();
            return self.add_issue(given_twice(param, &values), first);
        }
        if is_repeated {
            let reason = "given twice with the same value";
            let repair = dropped(&param.name, first, "same_twice", ReaderRule::Form, reason);
            self.coercer.repairs.push(repair);
        }
        self.given.insert(param.name.clone(), value);
    }

    /// Coerces the value to the parameter's kind; adds the issue if that fails.
    fn coerce(&mut self, param: &ParameterShape, node: &ParsedValue) -> Option<Value> {
        if value_coercion::is_default(param, node) {
            return param.default.clone();
        }
        match self.coercer.value(ValueSite::of_parameter(param, node)) {
            Ok(value) => Some(value),
            Err(mut issue) => {
                if let Some(cautious) = &param.cautious {
                    let reason = "neither true nor false, so this is a dry run";
                    let rule = ReaderRule::Leftover;
                    let repair = dropped(&param.name, node, "dry_run", rule, reason);
                    self.coercer.repairs.push(repair);
                    return Some(cautious.clone());
                }
                if param.guards
                    && issue.rule == ReaderRule::PayloadLost
                    && self.policy.guards_motion()
                {
                    issue.rule = ReaderRule::Invalid;
                }
                self.add_issue(issue, node);
                None
            }
        }
    }

    /// Handles a parameter that was not sent, or was sent empty.
    fn read_absent(&mut self, param: &ParameterShape, empty: Option<&ParsedValue>) {
        // For an empty value of the parameter's own type: whether it satisfies a required parameter.
        let satisfies_required = |node: &ParsedValue| match (&param.kind, node) {
            (ValueKind::List { count, .. }, ParsedValue::List(_)) => Some(count.contains(0)),
            (ValueKind::Object { .. }, ParsedValue::Map(_)) => Some(true),
            (ValueKind::Text, ParsedValue::Text(text)) => text.is_empty().then_some(true),
            _ => None,
        };
        let is_own = |node: &ParsedValue| {
            satisfies_required(node)
                .is_some_and(|satisfies| param.empty_is_default || (param.required && satisfies))
        };
        match empty {
            Some(node) if is_own(node) => {
                self.given.insert(param.name.clone(), node.to_value());
            }
            Some(ParsedValue::Null) if param.required && param.nullable => {
                self.given.insert(param.name.clone(), Value::Null);
            }
            _ if param.required && param.default.is_none() => {
                let issue = value_coercion::missing(param, &param.name);
                self.add_issue(issue, empty.unwrap_or(&ParsedValue::Null));
            }
            Some(node) if self.is_lost_choice(param, node) => {
                let issue = ValueSite::of_parameter(param, node).refuse(
                    "empty",
                    "this is empty, and the call has nothing else to draw",
                );
                self.add_issue(issue, node);
            }
            Some(node) => self.note_empty(param, node),
            None => {}
        }
    }

    /// Notes an empty value, which counts as not sent.
    pub(super) fn note_empty(&mut self, param: &ParameterShape, node: &ParsedValue) {
        let shown = |value: &Value| parsed_value::shown(&value.to_string());
        let reason = match node.as_text().is_some_and(|text| !text.trim().is_empty()) {
            true => "this word means no value, so it counts as not sent",
            false => "it is empty, so it counts as not sent",
        };
        self.coercer.repairs.push(ArgumentRepair {
            used: param.default.as_ref().map(shown).unwrap_or_default(),
            ..dropped(&param.name, node, "empty", ReaderRule::Empty, reason)
        });
    }

    /// Returns whether an empty value, other than null, stands where it would have said what to draw, and nothing else does. A
    /// name has its default.
    fn is_lost_choice(&self, param: &ParameterShape, node: &ParsedValue) -> bool {
        let has_default = matches!(param.kind, ValueKind::Name { .. });
        let is_lost = param.selects_motion && !has_default && *node != ParsedValue::Null;
        is_lost && self.policy.guards_motion() && !self.another_chooses(param)
    }

    /// Returns whether another parameter than this one says what to draw.
    pub(super) fn another_chooses(&self, param: &ParameterShape) -> bool {
        let chosen = self
            .choosing
            .iter()
            .filter_map(|at| self.shape.params.get(*at));
        chosen.into_iter().any(|other| other.name != param.name)
    }
}

/// Issue with a key that is given several values.
pub(super) const GIVEN_TWICE: &str = "given twice with different values";

/// Returns the issue with a parameter that has several values.
fn given_twice(param: &ParameterShape, sent: &[&ParsedValue]) -> ArgumentIssue {
    let (rule, reason) = (ReaderRule::Contradiction, GIVEN_TWICE);
    let shown: Vec<_> = sent.iter().copied().map(parsed_value::shown_node).collect();
    ArgumentIssue::new(rule, "duplicate_keys", &param.name, reason)
        .received(parsed_value::shown(&shown.join(" and ")))
        .expected("one value")
}

/// Returns whether a value fills in the place of a design that is not there: a size of 0, or a list of nothing.
fn is_empty_place(param: &ParameterShape, node: &ParsedValue) -> bool {
    let is_zero = |node: &ParsedValue| matches!(node, ParsedValue::Number(number) if number.as_f64() == Some(0.0));
    match node {
        _ if param.beside.is_empty() => false,
        ParsedValue::List(items) => items.iter().all(ParsedValue::is_empty),
        node => is_zero(node),
    }
}

/// Returns whether a value is empty. For a parameter whose cautious value keeps the arm still, only a clear null
/// counts.
fn is_unspecified(param: &ParameterShape, node: &ParsedValue) -> bool {
    let is_word = |text: &str| !text.trim().is_empty() && parsed_value::is_nothing(text);
    let is_clear = *node == ParsedValue::Null || node.as_text().is_some_and(is_word);
    is_empty(&param.kind, node) && (param.cautious.is_none() || is_clear)
}

/// Returns whether a value is empty: by itself, as a list of one, or as a list or object that a client turned into text.
/// Blanks are a text, if any text is a value; an object is empty if all its fields have defaults and none is given.
fn is_empty(kind: &ValueKind, node: &ParsedValue) -> bool {
    let is_scalar = !matches!(
        kind,
        ValueKind::Text
            | ValueKind::Any
            | ValueKind::List { .. }
            | ValueKind::Object { .. }
            | ValueKind::AnyOf(_)
    );
    if let (ValueKind::Object { fields, .. }, ParsedValue::Map(pairs)) = (kind, node)
        && !fields.is_empty()
    {
        let has_defaults = fields.iter().all(|field| field.default.is_some());
        return has_defaults && pairs.iter().all(|(_, inner)| inner.is_empty());
    }
    let is_blank = |text: &str| !text.is_empty() && text.trim().is_empty();
    if kind.takes_text() && matches!(node, ParsedValue::Text(text) if is_blank(text)) {
        return false;
    }
    let holds_nothing = || match node {
        ParsedValue::Text(text) | ParsedValue::Word(text) => matches!(text.trim(), "[]" | "{}"),
        ParsedValue::List(items) => matches!(items.as_slice(), [only] if only.is_empty()),
        _ => false,
    };
    node.is_empty() || (is_scalar && holds_nothing())
}

/// Returns whether an empty-looking word is one of the parameter's own values.
fn is_own_word(kind: &ValueKind, node: &ParsedValue) -> bool {
    node.as_text()
        .is_some_and(|text| value_coercion::is_declared(kind, text))
}
