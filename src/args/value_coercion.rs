//! Coerces one value to one kind: returns it in the declared type and notes the repairs, or returns the issue with it.

use super::{
    form_repair::FormRepair,
    heuristics,
    judge::{ReaderPolicy, ReaderRule, ValueRendering},
    name, nested,
    outcome::{ArgumentIssue, ArgumentRepair, RepairLog},
    parsed_value::{self, ParsedValue},
    shape::{NumberRange, ParameterShape, ValueKind},
};
use base::nearest::{LISTED_MAX, nearest};
use serde_json::{Number, Value};
use std::{borrow::Cow, ops::RangeInclusive};

/// Coerces values and collects the repairs.
pub(super) struct ValueCoercer<'a> {
    pub(super) policy: &'a ReaderPolicy,
    pub(super) repairs: RepairLog,
}

/// A value, its place, and the kind that the place requires.
#[derive(Clone, Copy)]
pub(super) struct ValueSite<'a> {
    pub(super) kind: &'a ValueKind,
    pub(super) node: &'a ParsedValue,
    pub(super) path: &'a str,
    /// True inside a list or an object, where a list of one may really be a list.
    pub(super) is_inner: bool,
}

impl<'a> ValueSite<'a> {
    /// Returns the site of a value that was sent for a parameter.
    pub(super) fn of_parameter(param: &'a ParameterShape, node: &'a ParsedValue) -> Self {
        Self {
            kind: &param.kind,
            node,
            path: &param.name,
            is_inner: false,
        }
    }

    /// Returns the name of the parameter or field: the last part of the path.
    fn name(&self) -> &'a str {
        self.path.rsplit('.').next().unwrap_or(self.path)
    }

    fn issue(&self, rule: ReaderRule, code: &'static str, reason: &str) -> ArgumentIssue {
        ArgumentIssue::new(rule, code, self.path, reason)
            .received(parsed_value::shown_node(self.node))
            .expected(self.kind.describe())
    }

    /// Returns the issue with a value that does not fit here.
    pub(super) fn refuse(&self, code: &'static str, reason: &str) -> ArgumentIssue {
        let issue = self.issue(ReaderRule::Invalid, code, reason);
        issue.valid(valid(self.kind))
    }

    /// Refuses templates, pieces of a schema and objects that contradict themselves, which are values of no kind.
    fn refuse_stand_ins(&self) -> Result<(), ArgumentIssue> {
        let is_stand_in = |text: &str| {
            (heuristics::is_template(text) || heuristics::is_dressed_name(text, self.name()))
                && !is_declared(self.kind, text)
        };
        let rule = ReaderRule::Contradiction;
        match self.node {
            ParsedValue::Text(text) | ParsedValue::Word(text) if is_stand_in(text) => {
                let reason = "this is a placeholder, not a value";
                Err(self.issue(rule, "template", reason).valid(valid(self.kind)))
            }
            ParsedValue::Text(text)
                if parsed_value::is_lost_payload(text) && !is_declared(self.kind, text) =>
            {
                let reason = "the client lost this value on the way";
                Err(self.issue(ReaderRule::PayloadLost, "payload_lost", reason))
            }
            ParsedValue::Map(pairs) if heuristics::is_schema_of_value(pairs, self.kind) => {
                let reason = "this is the schema of a value, not a value";
                let issue = self.issue(rule, "schema_echo", reason);
                Err(issue.valid(valid(self.kind)))
            }
            ParsedValue::Map(_) | ParsedValue::List(_)
                if !self.is_inner && self.node.contradicts_itself() =>
            {
                let reason = "one key is given twice with different values";
                Err(self.issue(rule, "duplicate_keys", reason))
            }
            _ => Ok(()),
        }
    }

    /// Returns the list or object that a text for a name or a boolean holds, as clients write it that make text of both.
    fn inner_value(&self) -> Option<ParsedValue> {
        let (ValueKind::Name { .. } | ValueKind::Bool, ParsedValue::Text(text)) =
            (self.kind, self.node)
        else {
            return None;
        };
        let may_hold = text.trim_start().starts_with(['{', '[']) && !is_declared(self.kind, text);
        may_hold.then(|| nested::parse_whole_text(text)).flatten()
    }

    /// Returns the name in an object that holds nothing else: `{"name": "koi"}`.
    fn named_object(&self) -> Option<&'a ParsedValue> {
        let (ValueKind::Name { .. }, ParsedValue::Map(pairs)) = (self.kind, self.node) else {
            return None;
        };
        let [(key, inner @ ParsedValue::Text(_))] = pairs.as_slice() else {
            return None;
        };
        let own = format!("{}_name", self.name());
        let keys = ["name", "value", self.name(), &own];
        let is_name = keys.iter().any(|word| heuristics::same_key(word, key));
        let is_plain = !heuristics::is_marked(key) && !heuristics::is_type_word(inner);
        (is_name && is_plain).then_some(inner)
    }
}

pub(super) type CoercionResult = Result<Value, ArgumentIssue>;

impl<'p> ValueCoercer<'p> {
    pub(super) fn new(policy: &'p ReaderPolicy) -> Self {
        let repairs = RepairLog::default();
        Self { policy, repairs }
    }

    /// Coerces the value to the kind that its site requires.
    pub(super) fn value(&mut self, site: ValueSite<'_>) -> CoercionResult {
        if let Some(node) = site.named_object() {
            let value = self.value(ValueSite { node, ..site })?;
            let reason = "an object with a name read as the name";
            self.note(site, &value, "name_in_object", 2, reason);
            return Ok(value);
        }
        site.refuse_stand_ins()?;
        if let Some(node) = &site.inner_value() {
            let value = self.value(ValueSite { node, ..site })?;
            self.note_form(site, &value, FormRepair::TextInText);
            return Ok(value);
        }
        match site.kind {
            ValueKind::Any => Ok(site.node.to_value()),
            ValueKind::Nothing if *site.node == ParsedValue::Null => Ok(Value::Null),
            ValueKind::Nothing => Err(site.refuse("not_null", "only null is valid here")),
            ValueKind::List { item, count } => self.list(item, *count, site),
            ValueKind::Object { fields, open } => self.object(fields, *open, site),
            ValueKind::AnyOf(kinds) => self.any_of(kinds, site),
            _ => self.scalar(site),
        }
    }

    fn scalar(&mut self, site: ValueSite<'_>) -> CoercionResult {
        if let ParsedValue::List(items) = site.node
            && let [only] = items.as_slice()
        {
            return self.list_of_one(only, site);
        }
        match site.kind {
            ValueKind::Text => self.text(site),
            ValueKind::Hex {
                digits_min,
                digits_max,
            } => hex(*digits_min..=*digits_max, site),
            ValueKind::Name { known } => self.name(known, site),
            ValueKind::Choice { values, synonyms } => self.choice(values, synonyms, site),
            ValueKind::Bool => self.boolean(site),
            ValueKind::Integer { range, unit } | ValueKind::Number { range, unit } => {
                self.number(range, *unit, site)
            }
            _ => Err(site.refuse("wrong_type", "this has the wrong type")),
        }
    }

    pub(super) fn list_of_one(
        &mut self,
        only: &ParsedValue,
        site: ValueSite<'_>,
    ) -> CoercionResult {
        if matches!(only, ParsedValue::Word(word) if heuristics::same_key(word, site.name())) {
            let node = &ParsedValue::Text(format!("[{}]", site.name()));
            ValueSite { node, ..site }.refuse_stand_ins()?;
        }
        let value = self.value(ValueSite { node: only, ..site })?;
        if site.is_inner && self.policy.render == ValueRendering::AsSent {
            return Ok(site.node.to_value());
        }
        self.note_form(site, &value, FormRepair::ListOfOne);
        Ok(value)
    }

    fn text(&mut self, site: ValueSite<'_>) -> CoercionResult {
        match site.node {
            ParsedValue::Text(text) | ParsedValue::Word(text) => Ok(Value::String(text.clone())),
            ParsedValue::Bool(_) | ParsedValue::Number(_)
                if self.policy.render == ValueRendering::AsSent =>
            {
                Ok(site.node.to_value())
            }
            ParsedValue::Number(number) if is_inexact(number) => {
                let reason = "a number this long does not keep its digits; send it in quotes";
                Err(site.refuse("inexact_text", reason))
            }
            ParsedValue::Bool(_) | ParsedValue::Number(_) => {
                let value = Value::String(site.node.to_value().to_string());
                let reason = "a number or boolean read as text";
                self.note(site, &value, "text_from_scalar", 1, reason);
                Ok(value)
            }
            _ => Err(site.refuse("not_text", "this is not a string")),
        }
    }

    fn name(&mut self, known: &[String], site: ValueSite<'_>) -> CoercionResult {
        let received = match site.node {
            ParsedValue::Text(text) | ParsedValue::Word(text) => Cow::Borrowed(text.as_str()),
            ParsedValue::Number(number) => Cow::Owned(number.to_string()),
            _ => return Err(site.refuse("not_a_name", "this is not a name")),
        };
        match name::resolve_value(&received, known) {
            name::NameResolution::Resolved { index, exact } => {
                let value = Value::String(known.get(index).cloned().unwrap_or_default());
                if !exact {
                    let reason = "case, blanks, hyphens and underscores do not matter";
                    self.note(site, &value, "name_form", 1, reason);
                }
                Ok(value)
            }
            name::NameResolution::Ambiguous { among } => {
                let reason = "several names differ from this in form only";
                Err(site.refuse("ambiguous_name", reason).valid(among))
            }
            name::NameResolution::Unknown { nearest } => {
                let reason = "there is no such name";
                Err(site.refuse("unknown_name", reason).valid(nearest))
            }
        }
    }

    fn choice(
        &mut self,
        values: &[Value],
        synonyms: &[(String, Value)],
        site: ValueSite<'_>,
    ) -> CoercionResult {
        let sent = site.node.to_value();
        if let Some(value) = values.iter().find(|value| same(value, &sent)) {
            return Ok(value.clone());
        }
        let received = plain_text(&sent);
        let folded = name::fold(&received);
        let is_same_form =
            |value: &&Value| !folded.is_empty() && name::fold(&plain_text(value)) == folded;
        let mut by_form = values.iter().filter(is_same_form);
        if let (Some(value), None) = (by_form.next(), by_form.next()) {
            let is_other_scalar =
                matches!(site.node, ParsedValue::Bool(_) | ParsedValue::Number(_))
                    && value.is_string();
            if is_other_scalar && self.policy.render == ValueRendering::AsSent {
                return Ok(sent);
            }
            let reason = "case, blanks, hyphens, underscores and quotes do not matter";
            self.note(site, value, "choice_form", 1, reason);
            return Ok(value.clone());
        }
        let is_synonym =
            |(word, _): &&(String, Value)| !received.is_empty() && name::fold(word) == folded;
        if let Some((_, value)) = synonyms.iter().find(is_synonym) {
            self.note(site, value, "synonym", 2, "a declared synonym");
            return Ok(value.clone());
        }
        let words: Vec<String> = values.iter().map(plain_text).collect();
        let near = nearest(&received, words.iter().map(String::as_str));
        let reason = "this is not one of the values";
        Err(site.refuse("not_a_choice", reason).valid(near))
    }

    fn boolean(&mut self, site: ValueSite<'_>) -> CoercionResult {
        let word = match site.node {
            ParsedValue::Bool(value) => return Ok(Value::Bool(*value)),
            ParsedValue::Flag => return Ok(Value::Bool(true)),
            ParsedValue::Text(text) | ParsedValue::Word(text) => text
                .trim()
                .trim_matches(['"', '\'', '.'])
                .to_ascii_lowercase(),
            ParsedValue::Number(number) => number.to_string().trim_end_matches(".0").to_owned(),
            _ => String::new(),
        };
        let value = match word.as_str() {
            "y" | "1.0" => Some(true),
            "n" | "0.0" => Some(false),
            word => truth_word(word),
        };
        let Some(value) = value else {
            return Err(site.refuse("not_boolean", "this is neither true nor false"));
        };
        let value = Value::Bool(value);
        let reason = "a word for true or false";
        self.note(site, &value, "boolean_word", 1, reason);
        Ok(value)
    }

    pub(super) fn note(
        &mut self,
        site: ValueSite<'_>,
        value: &Value,
        code: &'static str,
        cost: u32,
        reason: &'static str,
    ) {
        self.repairs.push(ArgumentRepair {
            got: parsed_value::shown_node(site.node),
            used: parsed_value::shown(&value.to_string()),
            ..ArgumentRepair::new(site.path, code, cost, reason)
        });
    }

    /// Notes a repair that also exists for the text as a whole.
    pub(super) fn note_form(&mut self, site: ValueSite<'_>, value: &Value, form: FormRepair) {
        self.note(site, value, form.code(), form.cost(), form.label());
    }
}

/// Takes hexadecimal digits as they were written. A number has lost what it was written as.
fn hex(digits: RangeInclusive<usize>, site: ValueSite<'_>) -> CoercionResult {
    let text = site.node.as_text().map(|text| {
        text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`'))
    });
    match text {
        Some(text)
            if digits.contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit()) =>
        {
            Ok(Value::from(text))
        }
        _ => {
            let least = digits.start();
            let reason = format!("this is not at least {least} hexadecimal digits in quotes");
            Err(site.refuse("not_hexadecimal", &reason))
        }
    }
}

/// Returns the repair that leaves out a value under a rule.
pub(super) fn dropped(
    path: &str,
    node: &ParsedValue,
    code: &'static str,
    rule: ReaderRule,
    reason: impl Into<Cow<'static, str>>,
) -> ArgumentRepair {
    ArgumentRepair {
        got: parsed_value::shown_node(node),
        class: rule.class(),
        ..ArgumentRepair::new(path, code, rule.cost(), reason)
    }
}

/// Returns the issue with a required parameter that was not sent.
pub(super) fn missing(param: &ParameterShape, path: &str) -> ArgumentIssue {
    let reason = "required but not sent";
    ArgumentIssue::new(ReaderRule::Invalid, "missing", path, reason)
        .expected(param.kind.describe())
        .valid(valid(&param.kind))
}

/// Returns the valid values of a kind that has few.
fn valid(kind: &ValueKind) -> Vec<String> {
    match kind {
        ValueKind::Name { known } => nearest("", known.iter().map(String::as_str)),
        ValueKind::Choice { values, .. } => {
            values.iter().take(LISTED_MAX).map(plain_text).collect()
        }
        ValueKind::Bool => vec!["true".into(), "false".into()],
        _ => Vec::new(),
    }
}

/// Returns a value as a text without quotes.
pub(super) fn plain_text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns whether a number was written with more digits than it kept.
fn is_inexact(number: &Number) -> bool {
    let is_long = |value: f64| value.abs() >= super::numbers::WHOLE_DOUBLE_MAX;
    number.is_f64() && number.as_f64().is_some_and(is_long)
}

/// Returns whether two values are equal; `5` equals `5.0`.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            NumberRange::new(Some(a.clone()), Some(a.clone())).contains(b)
        }
        _ => a == b,
    }
}

/// Returns whether a value is exactly the declared default, which is always accepted.
pub(super) fn is_default(param: &ParameterShape, node: &ParsedValue) -> bool {
    let default = param.default.as_ref();
    default.is_some_and(|default| node.to_value() == *default) && !node.contradicts_itself()
}

/// Returns whether `text` is exactly one of the kind's own values, and so has no other meaning.
pub(super) fn is_declared(kind: &ValueKind, text: &str) -> bool {
    match kind {
        ValueKind::Name { known } => known.iter().any(|name| name == text),
        ValueKind::Choice { values, synonyms } => {
            let mut values = values.iter().filter_map(Value::as_str);
            values.any(|value| value.eq_ignore_ascii_case(text))
                || synonyms.iter().any(|(word, _)| word == text)
        }
        ValueKind::List { item, .. } => is_declared(item, text),
        ValueKind::AnyOf(kinds) => kinds.iter().any(|kind| is_declared(kind, text)),
        _ => false,
    }
}

/// Returns the meaning of a lower-case word for true or false.
pub(crate) fn truth_word(word: &str) -> Option<bool> {
    match word {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}
