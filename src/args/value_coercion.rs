//! One value and one kind: the value in the declared type, with its repairs, or the trouble with it.

use super::{
    form_repair::FormRepair,
    heuristics, name,
    nearest::nearest,
    outcome::{ArgumentIssue, ArgumentRepair, RepairLog},
    parsed_value::{self, ParsedValue},
    rules::{ReaderPolicy, ReaderRule, RepairClass, ValueRendering},
    shape::{NumberRange, ParameterShape, ValueKind},
};
use serde_json::{Number, Value};
use std::borrow::Cow;

/// Coerces values and collects what that took.
pub(super) struct ValueCoercer<'a> {
    pub(super) policy: &'a ReaderPolicy,
    pub(super) repairs: RepairLog,
}

/// Position of a value.
#[derive(Clone, Copy)]
pub(super) struct ValuePosition<'a> {
    pub(super) path: &'a str,
    /// Inside a list or an object, where a list of one may be meant as one.
    pub(super) is_inner: bool,
}

impl ValuePosition<'_> {
    /// The name of the parameter or field: the last part of the path.
    fn name(&self) -> &str {
        self.path.rsplit('.').next().unwrap_or(self.path)
    }
}

pub(super) type CoercionResult = Result<Value, ArgumentIssue>;

impl ValueCoercer<'_> {
    /// The value of `node` as `kind` has it.
    pub(super) fn value(
        &mut self,
        kind: &ValueKind,
        node: &ParsedValue,
        at: ValuePosition<'_>,
    ) -> CoercionResult {
        if let Some(inner) = named_object(kind, node, at) {
            let value = self.value(kind, inner, at)?;
            let why = "an object with a name read as the name";
            self.note(at, node, &value, "name_in_object", 2, why);
            return Ok(value);
        }
        self.refuse_stand_ins(kind, node, at)?;
        match kind {
            ValueKind::Any => Ok(node.to_value()),
            ValueKind::Nothing if *node == ParsedValue::Null => Ok(Value::Null),
            ValueKind::Nothing => Err(unplaceable(
                "not_null",
                kind,
                node,
                at,
                "only null fits here",
            )),
            ValueKind::List { item, count } => self.list(item, *count, node, at),
            ValueKind::Object { fields, open } => self.object(kind, fields, *open, node, at),
            ValueKind::AnyOf(kinds) => self.any_of(kind, kinds, node, at),
            _ => self.scalar(kind, node, at),
        }
    }

    /// Templates, pieces of schema and self-contradicting objects are no values of any kind.
    fn refuse_stand_ins(
        &self,
        kind: &ValueKind,
        node: &ParsedValue,
        at: ValuePosition<'_>,
    ) -> Result<(), ArgumentIssue> {
        let trouble = |code, why: &str| {
            ArgumentIssue::new(ReaderRule::Contradiction, code, at.path, why)
                .received(parsed_value::shown_node(node))
                .expected(kind.describe())
        };
        match node {
            ParsedValue::Text(text) | ParsedValue::Word(text)
                if (heuristics::is_template(text)
                    || heuristics::is_dressed_name(text, at.name()))
                    && !is_declared(kind, text) =>
            {
                let why = "this is a stand-in for a value, not a value";
                Err(trouble("template", why).valid(valid(kind, "")))
            }
            ParsedValue::Text(text)
                if parsed_value::is_lost_payload(text) && !is_declared(kind, text) =>
            {
                Err(ArgumentIssue::new(
                    ReaderRule::PayloadLost,
                    "payload_lost",
                    at.path,
                    "the client lost this value on the way",
                )
                .received(parsed_value::shown_node(node))
                .expected(kind.describe()))
            }
            ParsedValue::Map(pairs) if heuristics::is_schema_of_value(pairs, kind) => Err(trouble(
                "schema_echo",
                "this is the schema of a value, not a value",
            )
            .valid(valid(kind, ""))),
            ParsedValue::Map(_) | ParsedValue::List(_)
                if !at.is_inner && node.contradicts_itself() =>
            {
                Err(trouble(
                    "duplicate_keys",
                    "one key is given twice with different values",
                ))
            }
            _ => Ok(()),
        }
    }

    fn scalar(
        &mut self,
        kind: &ValueKind,
        node: &ParsedValue,
        at: ValuePosition<'_>,
    ) -> CoercionResult {
        if let ParsedValue::List(items) = node
            && let [only] = items.as_slice()
        {
            return self.list_of_one(kind, node, only, at);
        }
        match kind {
            ValueKind::Text => self.text(kind, node, at),
            ValueKind::Name { known } => self.name(kind, known, node, at),
            ValueKind::Choice { values, synonyms } => self.choice(kind, values, synonyms, node, at),
            ValueKind::Bool => self.boolean(kind, node, at),
            ValueKind::Integer { .. } | ValueKind::Number { .. } => self.number(kind, node, at),
            _ => Err(unplaceable(
                "wrong_type",
                kind,
                node,
                at,
                "this does not fit",
            )),
        }
    }

    pub(super) fn list_of_one(
        &mut self,
        kind: &ValueKind,
        list: &ParsedValue,
        only: &ParsedValue,
        at: ValuePosition<'_>,
    ) -> CoercionResult {
        if matches!(only, ParsedValue::Word(word) if heuristics::same_key(word, at.name())) {
            let stand_in = ParsedValue::Text(format!("[{}]", at.name()));
            self.refuse_stand_ins(kind, &stand_in, at)?;
        }
        let value = self.value(kind, only, at)?;
        if at.is_inner && self.policy.render == ValueRendering::AsSent {
            return Ok(list.to_value());
        }
        self.note(
            at,
            list,
            &value,
            "list_of_one",
            FormRepair::ListOfOne.cost(),
            FormRepair::ListOfOne.why(),
        );
        Ok(value)
    }

    fn text(
        &mut self,
        kind: &ValueKind,
        node: &ParsedValue,
        at: ValuePosition<'_>,
    ) -> CoercionResult {
        match node {
            ParsedValue::Text(text) | ParsedValue::Word(text) => Ok(Value::String(text.clone())),
            ParsedValue::Bool(_) | ParsedValue::Number(_)
                if self.policy.render == ValueRendering::AsSent =>
            {
                Ok(node.to_value())
            }
            ParsedValue::Number(number) if is_inexact(number) => Err(unplaceable(
                "inexact_text",
                kind,
                node,
                at,
                "a number this long does not keep its digits; send it in quotes",
            )),
            ParsedValue::Bool(_) | ParsedValue::Number(_) => {
                let value = Value::String(node.to_value().to_string());
                self.note(
                    at,
                    node,
                    &value,
                    "text_from_scalar",
                    1,
                    "a number or boolean read as text",
                );
                Ok(value)
            }
            _ => Err(unplaceable(
                "not_text",
                kind,
                node,
                at,
                "this is not a text",
            )),
        }
    }

    fn name(
        &mut self,
        kind: &ValueKind,
        known: &[String],
        node: &ParsedValue,
        at: ValuePosition<'_>,
    ) -> CoercionResult {
        let received = match node {
            ParsedValue::Text(text) | ParsedValue::Word(text) => text.clone(),
            ParsedValue::Number(number) => number.to_string(),
            _ => {
                return Err(unplaceable(
                    "not_a_name",
                    kind,
                    node,
                    at,
                    "this is not a name",
                ));
            }
        };
        match name::resolve_value(&received, known) {
            name::NameResolution::Resolved { index, exact } => {
                let value = Value::String(known.get(index).cloned().unwrap_or_default());
                if !exact {
                    self.note(
                        at,
                        node,
                        &value,
                        "name_form",
                        1,
                        "case, blanks, hyphens and underscores do not matter",
                    );
                }
                Ok(value)
            }
            name::NameResolution::Ambiguous { among } => Err(unplaceable(
                "ambiguous_name",
                kind,
                node,
                at,
                "several names differ from this in form only",
            )
            .valid(among)),
            name::NameResolution::Unknown { nearest } => {
                let why = "there is no such name";
                Err(unplaceable("unknown_name", kind, node, at, why).valid(nearest))
            }
        }
    }

    fn choice(
        &mut self,
        kind: &ValueKind,
        values: &[Value],
        synonyms: &[(String, Value)],
        node: &ParsedValue,
        at: ValuePosition<'_>,
    ) -> CoercionResult {
        let sent = node.to_value();
        if let Some(value) = values.iter().find(|value| same(value, &sent)) {
            return Ok(value.clone());
        }
        let received = plain_text(&sent);
        let folded = |text: &str| name::fold(text);
        let by_form: Vec<_> = values
            .iter()
            .filter(|value| {
                !folded(&received).is_empty() && folded(&plain_text(value)) == folded(&received)
            })
            .collect();
        if let [value] = by_form.as_slice() {
            let is_other_scalar =
                matches!(node, ParsedValue::Bool(_) | ParsedValue::Number(_)) && value.is_string();
            if is_other_scalar && self.policy.render == ValueRendering::AsSent {
                return Ok(sent);
            }
            self.note(
                at,
                node,
                value,
                "choice_form",
                1,
                "case, blanks, hyphens, underscores and quotes do not matter",
            );
            return Ok((*value).clone());
        }
        if let Some((_, value)) = synonyms
            .iter()
            .find(|(word, _)| folded(word) == folded(&received) && !received.is_empty())
        {
            self.note(at, node, value, "synonym", 2, "a declared synonym");
            return Ok(value.clone());
        }
        let words: Vec<String> = values.iter().map(plain_text).collect();
        let near = nearest(&received, words.iter().map(String::as_str));
        let why = "this is none of the values";
        Err(unplaceable("not_a_choice", kind, node, at, why).valid(near))
    }

    fn boolean(
        &mut self,
        kind: &ValueKind,
        node: &ParsedValue,
        at: ValuePosition<'_>,
    ) -> CoercionResult {
        let word = match node {
            ParsedValue::Bool(value) => return Ok(Value::Bool(*value)),
            ParsedValue::Flag => return Ok(Value::Bool(true)),
            ParsedValue::Text(text) | ParsedValue::Word(text) => text
                .trim()
                .trim_matches(['"', '\'', '.'])
                .to_ascii_lowercase(),
            ParsedValue::Number(number) => number.to_string().trim_end_matches(".0").to_owned(),
            _ => String::new(),
        };
        let Some(value) = truth_word(&word) else {
            let why = "this is neither true nor false";
            return Err(unplaceable("not_boolean", kind, node, at, why)
                .valid(vec!["true".into(), "false".into()]));
        };
        let value = Value::Bool(value);
        self.note(
            at,
            node,
            &value,
            "boolean_word",
            1,
            "a word for true or false",
        );
        Ok(value)
    }

    pub(super) fn note(
        &mut self,
        at: ValuePosition<'_>,
        node: &ParsedValue,
        value: &Value,
        code: &'static str,
        cost: u32,
        why: &'static str,
    ) {
        self.repairs.push(repair(
            at.path,
            parsed_value::shown_node(node),
            parsed_value::shown(&value.to_string()),
            code,
            cost,
            why,
        ));
    }
}

pub(super) fn repair(
    path: &str,
    got: String,
    used: String,
    code: &'static str,
    cost: u32,
    why: impl Into<Cow<'static, str>>,
) -> ArgumentRepair {
    ArgumentRepair {
        field: path.to_owned(),
        got,
        used,
        class: RepairClass::L0,
        cost,
        code,
        why: why.into(),
    }
}

/// A value that is left out, under the rule that lets it be.
pub(super) fn dropped(
    path: &str,
    node: &ParsedValue,
    code: &'static str,
    rule: ReaderRule,
    why: impl Into<Cow<'static, str>>,
) -> ArgumentRepair {
    ArgumentRepair {
        class: rule.class(),
        cost: rule.cost(),
        ..repair(
            path,
            parsed_value::shown_node(node),
            String::new(),
            code,
            0,
            why,
        )
    }
}

pub(super) fn unplaceable(
    code: &'static str,
    kind: &ValueKind,
    node: &ParsedValue,
    at: ValuePosition<'_>,
    why: &str,
) -> ArgumentIssue {
    ArgumentIssue::new(ReaderRule::Unplaceable, code, at.path, why)
        .received(parsed_value::shown_node(node))
        .expected(kind.describe())
        .valid(valid(kind, ""))
}

/// A required parameter that is not there.
pub(super) fn missing(param: &ParameterShape, path: &str) -> ArgumentIssue {
    ArgumentIssue::new(
        ReaderRule::Unplaceable,
        "missing",
        path,
        "required but not sent",
    )
    .expected(param.kind.describe())
    .valid(valid(&param.kind, ""))
}

/// Valid values of a kind that has few.
fn valid(kind: &ValueKind, received: &str) -> Vec<String> {
    match kind {
        ValueKind::Name { known } => nearest(received, known.iter().map(String::as_str)),
        ValueKind::Choice { values, .. } => values
            .iter()
            .take(super::limits::VALID_MAX)
            .map(plain_text)
            .collect(),
        ValueKind::Bool => vec!["true".into(), "false".into()],
        _ => Vec::new(),
    }
}

fn plain_text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns whether a number was written with more digits than it kept.
fn is_inexact(number: &Number) -> bool {
    let is_long = |value: f64| value.abs() >= super::numbers::WHOLE_DOUBLE_MAX;
    number.is_f64() && number.as_f64().is_some_and(is_long)
}

/// Equal as values, whole numbers and their decimals alike.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            NumberRange::new(Some(a.clone()), Some(a.clone())).contains(b)
        }
        _ => a == b,
    }
}

/// Returns the name that is all that an object holds: `{"name": "koi"}`.
fn named_object<'n>(
    kind: &ValueKind,
    node: &'n ParsedValue,
    at: ValuePosition<'_>,
) -> Option<&'n ParsedValue> {
    let (ValueKind::Name { .. }, ParsedValue::Map(pairs)) = (kind, node) else {
        return None;
    };
    let [(key, inner @ ParsedValue::Text(_))] = pairs.as_slice() else {
        return None;
    };
    let own = format!("{}_name", at.name());
    let keys = ["name", "value", at.name(), &own];
    let is_name = keys.iter().any(|word| heuristics::same_key(word, key));
    let is_said = !heuristics::is_marked(key) && !heuristics::is_type_word(inner);
    (is_name && is_said).then_some(inner)
}

/// Returns whether a value is exactly the declared default, which counts as a value.
pub(super) fn is_default(param: &ParameterShape, node: &ParsedValue) -> bool {
    let default = param.default.as_ref();
    default.is_some_and(|default| node.to_value() == *default) && !node.contradicts_itself()
}

/// Returns whether `text` is exactly one of the kind's own values, and so has no other meaning.
pub(super) fn is_declared(kind: &ValueKind, text: &str) -> bool {
    match kind {
        ValueKind::Name { known } => known.iter().any(|name| name == text),
        ValueKind::Choice { values, synonyms } => {
            values.iter().any(|value| {
                value
                    .as_str()
                    .is_some_and(|value| value == text || value.eq_ignore_ascii_case(text))
            }) || synonyms.iter().any(|(word, _)| word == text)
        }
        ValueKind::List { item, .. } => is_declared(item, text),
        ValueKind::AnyOf(kinds) => kinds.iter().any(|kind| is_declared(kind, text)),
        _ => false,
    }
}
/// Returns what a lower-case word for true or false says.
pub(crate) fn truth_word(word: &str) -> Option<bool> {
    match word {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}
