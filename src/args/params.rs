//! One parameter and what was sent for it: a value, two that agree, something empty, or nothing.

use super::{
    arguments::CallReader,
    outcome::{ArgumentIssue, ArgumentRepair},
    parsed_value::{self, ParsedValue},
    rules::ReaderRule,
    shape::{ParameterShape, ValueKind},
    value_coercion::{self, ValuePosition, dropped},
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
            return self.trouble(given_twice(param, &said), first);
        }
        if is_again {
            let why = "given twice with the same value";
            self.coercer.repairs.push(dropped(
                &param.name,
                first,
                "same_twice",
                ReaderRule::Form,
                why,
            ));
        }
        self.given.insert(param.name.clone(), value);
    }

    /// The value as the parameter has it; trouble is noted.
    fn coerced(&mut self, param: &ParameterShape, node: &ParsedValue) -> Option<Value> {
        if value_coercion::is_default(param, node) {
            return param.default.clone();
        }
        let at = ValuePosition {
            path: &param.name,
            is_inner: false,
        };
        match self.coercer.value(&param.kind, node, at) {
            Ok(value) => Some(value),
            Err(trouble) => {
                self.trouble(trouble, node);
                None
            }
        }
    }

    /// Not sent, or sent empty.
    fn absent(&mut self, param: &ParameterShape, empty: Option<&ParsedValue>) {
        let holds_empty = |node: &ParsedValue| match &param.kind {
            ValueKind::List { .. } => matches!(node, ParsedValue::List(_)),
            ValueKind::Object { .. } => matches!(node, ParsedValue::Map(_)),
            ValueKind::Text => matches!(node, ParsedValue::Text(text) if text.is_empty()),
            _ => false,
        };
        let may_be_empty = match &param.kind {
            ValueKind::List { count, .. } => count.contains(0),
            ValueKind::Object { .. } | ValueKind::Text => true,
            _ => false,
        };
        match empty {
            Some(node)
                if holds_empty(node)
                    && (param.empty_is_default || (param.required && may_be_empty)) =>
            {
                self.given.insert(param.name.clone(), node.to_value());
            }
            Some(ParsedValue::Null) if param.required && param.nullable => {
                self.given.insert(param.name.clone(), Value::Null);
            }
            _ if param.required && param.default.is_none() => {
                let trouble = value_coercion::missing(param, &param.name);
                self.trouble(trouble, empty.unwrap_or(&ParsedValue::Null));
            }
            Some(node) => {
                let used = param
                    .default
                    .as_ref()
                    .map_or_else(String::new, |value| parsed_value::shown(&value.to_string()));
                let repair = dropped(
                    &param.name,
                    node,
                    "empty",
                    ReaderRule::Empty,
                    "empty, so read as not sent",
                );
                self.coercer.repairs.push(ArgumentRepair { used, ..repair });
            }
            None => {}
        }
    }
}

/// One parameter, several values.
fn given_twice(param: &ParameterShape, said: &[&ParsedValue]) -> ArgumentIssue {
    let why = "given twice with different values";
    let shown: Vec<_> = said
        .iter()
        .map(|node| parsed_value::shown_node(node))
        .collect();
    let trouble = ArgumentIssue::new(
        ReaderRule::Contradiction,
        "duplicate_keys",
        &param.name,
        why,
    );
    trouble
        .received(parsed_value::shown(&shown.join(" and ")))
        .expected("one value")
}

/// Returns whether a value is empty. For a parameter whose cautious value keeps the arm still, only a clear null
/// counts.
fn is_unspecified(param: &ParameterShape, node: &ParsedValue) -> bool {
    let is_clear = match node {
        ParsedValue::Null => true,
        ParsedValue::Text(text) | ParsedValue::Word(text) => {
            !text.trim().is_empty() && parsed_value::is_nothing(text)
        }
        _ => false,
    };
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
    node.is_empty()
        || is_scalar
            && match node {
                ParsedValue::Text(text) | ParsedValue::Word(text) => {
                    matches!(text.trim(), "[]" | "{}")
                }
                ParsedValue::List(items) => matches!(items.as_slice(), [only] if only.is_empty()),
                _ => false,
            }
}

/// Returns whether an empty-looking word is one of the parameter's own values.
fn is_own_word(kind: &ValueKind, node: &ParsedValue) -> bool {
    matches!(node, ParsedValue::Text(text) | ParsedValue::Word(text) if value_coercion::is_declared(kind, text))
}
