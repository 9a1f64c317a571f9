//! One parameter and what was sent for it: a value, two that agree, something empty, or nothing.

use super::{
    arguments::CallReader,
    outcome::{ArgumentIssue, ArgumentRepair},
    parsed_value::{self, ParsedValue},
    rules::ReaderRule,
    shape::{ParameterShape, ValueKind},
    value_coercion::{self, ValueSite, dropped},
};
use serde_json::Value;

impl CallReader<'_> {
    /// Takes what was sent for a parameter, once or several times.
    pub(super) fn param<'n>(
        &mut self,
        param: &ParameterShape,
        mut sent: impl Iterator<Item = &'n ParsedValue> + Clone,
    ) {
        if let ValueKind::Verbatim { bytes_max } = param.kind {
            return self.verbatim(param, bytes_max, sent);
        }
        let says_something =
            |node: &&ParsedValue| !is_unspecified(param, node) || is_own_word(&param.kind, node);
        let mut said = sent.clone().filter(says_something);
        let Some(first) = said.next() else {
            return self.absent(param, sent.next());
        };
        let Some(value) = self.coerced(param, first) else {
            return;
        };
        let (mut is_again, mut differs) = (false, false);
        for node in said {
            let Some(other) = self.coerced(param, node) else {
                return;
            };
            is_again = true;
            differs |= !value_coercion::same(&other, &value);
        }
        if differs {
            let said: Vec<_> = sent.filter(says_something).collect();
            return self.add_issue(given_twice(param, &said), first);
        }
        if is_again {
            let reason = "given twice with the same value";
            let repair = dropped(&param.name, first, "same_twice", ReaderRule::Form, reason);
            self.coercer.repairs.push(repair);
        }
        self.given.insert(param.name.clone(), value);
    }

    /// The value as the parameter has it; trouble is noted.
    fn coerced(&mut self, param: &ParameterShape, node: &ParsedValue) -> Option<Value> {
        if value_coercion::is_default(param, node) {
            return param.default.clone();
        }
        match self.coercer.value(ValueSite::of_parameter(param, node)) {
            Ok(value) => Some(value),
            Err(issue) => {
                self.add_issue(issue, node);
                None
            }
        }
    }

    /// Not sent, or sent empty.
    fn absent(&mut self, param: &ParameterShape, empty: Option<&ParsedValue>) {
        // Of an empty value of the parameter's own type: whether it may be one that is required.
        let stands_for_required = |node: &ParsedValue| match (&param.kind, node) {
            (ValueKind::List { count, .. }, ParsedValue::List(_)) => Some(count.contains(0)),
            (ValueKind::Object { .. }, ParsedValue::Map(_)) => Some(true),
            (ValueKind::Text, ParsedValue::Text(text)) => text.is_empty().then_some(true),
            _ => None,
        };
        let is_own = |node: &ParsedValue| {
            stands_for_required(node)
                .is_some_and(|stands| param.empty_is_default || (param.required && stands))
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
            Some(node) => {
                let shown = |value: &Value| parsed_value::shown(&value.to_string());
                let reason = "empty, so read as not sent";
                self.coercer.repairs.push(ArgumentRepair {
                    used: param.default.as_ref().map(shown).unwrap_or_default(),
                    ..dropped(&param.name, node, "empty", ReaderRule::Empty, reason)
                });
            }
            None => {}
        }
    }
}

/// Trouble with a key that stands there with several values.
pub(super) const GIVEN_TWICE: &str = "given twice with different values";

/// One parameter, several values.
fn given_twice(param: &ParameterShape, said: &[&ParsedValue]) -> ArgumentIssue {
    let (rule, reason) = (ReaderRule::Contradiction, GIVEN_TWICE);
    let shown: Vec<_> = said.iter().copied().map(parsed_value::shown_node).collect();
    ArgumentIssue::new(rule, "duplicate_keys", &param.name, reason)
        .received(parsed_value::shown(&shown.join(" and ")))
        .expected("one value")
}

/// Returns whether a value is empty. For a parameter whose cautious value keeps the arm still, only a clear null
/// counts.
fn is_unspecified(param: &ParameterShape, node: &ParsedValue) -> bool {
    let is_word = |text: &str| !text.trim().is_empty() && parsed_value::is_nothing(text);
    let is_clear = *node == ParsedValue::Null || node.as_text().is_some_and(is_word);
    is_empty(&param.kind, node) && (param.cautious.is_none() || is_clear)
}

/// Empty as it stands, as a list of one, or as a list or object that a client made a text of. Blanks are a text, if any
/// text is a value; an object is empty if its fields all have defaults and none is said.
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
