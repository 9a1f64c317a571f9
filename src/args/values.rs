//! One value and one kind: the value in the declared type, with its repairs, or the trouble with it.

use super::{
    form::Form,
    meaning, name,
    nearest::nearest,
    node::{self, Node},
    outcome::{Repair, Repairs, Trouble},
    rules::{Class, Policy, Render, Rule},
    shape::{Kind, Param, Range},
};
use serde_json::{Number, Value};
use std::borrow::Cow;

/// Coerces values and collects what that took.
pub(super) struct Coercer<'a> {
    pub(super) policy: &'a Policy,
    pub(super) repairs: Repairs,
}

/// Position of a value.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    pub(super) path: &'a str,
    /// Inside a list or an object, where a list of one may be meant as one.
    pub(super) is_inner: bool,
}

impl At<'_> {
    /// The name of the parameter or field: the last part of the path.
    fn name(&self) -> &str {
        self.path.rsplit('.').next().unwrap_or(self.path)
    }
}

pub(super) type Coerced = Result<Value, Trouble>;

impl Coercer<'_> {
    /// The value of `node` as `kind` has it.
    pub(super) fn value(&mut self, kind: &Kind, node: &Node, at: At<'_>) -> Coerced {
        self.refuse_stand_ins(kind, node, at)?;
        match kind {
            Kind::Any => Ok(node.to_value()),
            Kind::Nothing if *node == Node::Null => Ok(Value::Null),
            Kind::Nothing => Err(unplaceable(
                "not_null",
                kind,
                node,
                at,
                "only null fits here",
            )),
            Kind::List { item, count } => self.list(item, *count, node, at),
            Kind::Object { fields, open } => self.object(kind, fields, *open, node, at),
            Kind::AnyOf(kinds) => self.any_of(kind, kinds, node, at),
            _ => self.scalar(kind, node, at),
        }
    }

    /// Templates, pieces of schema and self-contradicting objects are no values of any kind.
    fn refuse_stand_ins(&self, kind: &Kind, node: &Node, at: At<'_>) -> Result<(), Trouble> {
        let trouble = |code, why: &str| {
            Trouble::new(Rule::Contradiction, code, at.path, why)
                .received(node::shown_node(node))
                .expected(kind.words())
        };
        match node {
            Node::Text(text) | Node::Word(text)
                if (meaning::is_template(text) || meaning::is_dressed_name(text, at.name()))
                    && !is_declared(kind, text) =>
            {
                let why = "this is a stand-in for a value, not a value";
                Err(trouble("template", why).valid(valid(kind, "")))
            }
            Node::Text(text) if node::is_lost_payload(text) && !is_declared(kind, text) => {
                Err(Trouble::new(
                    Rule::PayloadLost,
                    "payload_lost",
                    at.path,
                    "the client lost this value on the way",
                )
                .received(node::shown_node(node))
                .expected(kind.words()))
            }
            Node::Map(pairs) if meaning::is_schema_of_value(pairs, kind) => Err(trouble(
                "schema_echo",
                "this is the schema of a value, not a value",
            )
            .valid(valid(kind, ""))),
            Node::Map(_) | Node::List(_) if !at.is_inner && node.contradicts_itself() => {
                Err(trouble(
                    "duplicate_keys",
                    "one key is given twice with different values",
                ))
            }
            _ => Ok(()),
        }
    }

    fn scalar(&mut self, kind: &Kind, node: &Node, at: At<'_>) -> Coerced {
        if let Node::List(items) = node
            && let [only] = items.as_slice()
        {
            return self.list_of_one(kind, node, only, at);
        }
        match kind {
            Kind::Text => self.text(kind, node, at),
            Kind::Name { known } => self.name(kind, known, node, at),
            Kind::Choice { values, synonyms } => self.choice(kind, values, synonyms, node, at),
            Kind::Bool => self.boolean(kind, node, at),
            Kind::Integer { .. } | Kind::Number { .. } => self.number(kind, node, at),
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
        kind: &Kind,
        list: &Node,
        only: &Node,
        at: At<'_>,
    ) -> Coerced {
        if matches!(only, Node::Word(word) if meaning::same_key(word, at.name())) {
            let stand_in = Node::Text(format!("[{}]", at.name()));
            self.refuse_stand_ins(kind, &stand_in, at)?;
        }
        let value = self.value(kind, only, at)?;
        if at.is_inner && self.policy.render == Render::AsSent {
            return Ok(list.to_value());
        }
        self.note(
            at,
            list,
            &value,
            "list_of_one",
            Form::ListOfOne.cost(),
            Form::ListOfOne.why(),
        );
        Ok(value)
    }

    fn text(&mut self, kind: &Kind, node: &Node, at: At<'_>) -> Coerced {
        match node {
            Node::Text(text) | Node::Word(text) => Ok(Value::String(text.clone())),
            Node::Bool(_) | Node::Number(_) if self.policy.render == Render::AsSent => {
                Ok(node.to_value())
            }
            Node::Number(number) if is_inexact(number) => Err(unplaceable(
                "inexact_text",
                kind,
                node,
                at,
                "a number this long does not keep its digits; send it in quotes",
            )),
            Node::Bool(_) | Node::Number(_) => {
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

    fn name(&mut self, kind: &Kind, known: &[String], node: &Node, at: At<'_>) -> Coerced {
        let received = match node {
            Node::Text(text) | Node::Word(text) => text.clone(),
            Node::Number(number) => number.to_string(),
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
            name::Resolution::Resolved { index, exact } => {
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
            name::Resolution::Ambiguous { among } => Err(unplaceable(
                "ambiguous_name",
                kind,
                node,
                at,
                "several names differ from this in form only",
            )
            .valid(among)),
            name::Resolution::Unknown { nearest } => {
                let why = "there is no such name";
                Err(unplaceable("unknown_name", kind, node, at, why).valid(nearest))
            }
        }
    }

    fn choice(
        &mut self,
        kind: &Kind,
        values: &[Value],
        synonyms: &[(String, Value)],
        node: &Node,
        at: At<'_>,
    ) -> Coerced {
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
                matches!(node, Node::Bool(_) | Node::Number(_)) && value.is_string();
            if is_other_scalar && self.policy.render == Render::AsSent {
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

    fn boolean(&mut self, kind: &Kind, node: &Node, at: At<'_>) -> Coerced {
        let word = match node {
            Node::Bool(value) => return Ok(Value::Bool(*value)),
            Node::Flag => return Ok(Value::Bool(true)),
            Node::Text(text) | Node::Word(text) => text
                .trim()
                .trim_matches(['"', '\'', '.'])
                .to_ascii_lowercase(),
            Node::Number(number) => number.to_string().trim_end_matches(".0").to_owned(),
            _ => String::new(),
        };
        let value = match word.as_str() {
            "true" | "yes" | "on" | "1" => true,
            "false" | "no" | "off" | "0" => false,
            _ => {
                return Err(unplaceable(
                    "not_boolean",
                    kind,
                    node,
                    at,
                    "this is neither true nor false",
                )
                .valid(vec!["true".into(), "false".into()]));
            }
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
        at: At<'_>,
        node: &Node,
        value: &Value,
        code: &'static str,
        cost: u32,
        why: &'static str,
    ) {
        self.repairs.push(repair(
            at.path,
            node::shown_node(node),
            node::shown(&value.to_string()),
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
) -> Repair {
    Repair {
        field: path.to_owned(),
        got,
        used,
        class: Class::L0,
        cost,
        code,
        why: why.into(),
    }
}

/// A value that is left out, under the rule that lets it be.
pub(super) fn dropped(
    path: &str,
    node: &Node,
    code: &'static str,
    rule: Rule,
    why: impl Into<Cow<'static, str>>,
) -> Repair {
    Repair {
        class: rule.class(),
        cost: rule.cost(),
        ..repair(path, node::shown_node(node), String::new(), code, 0, why)
    }
}

pub(super) fn unplaceable(
    code: &'static str,
    kind: &Kind,
    node: &Node,
    at: At<'_>,
    why: &str,
) -> Trouble {
    Trouble::new(Rule::Unplaceable, code, at.path, why)
        .received(node::shown_node(node))
        .expected(kind.words())
        .valid(valid(kind, ""))
}

/// A required parameter that is not there.
pub(super) fn missing(param: &Param, path: &str) -> Trouble {
    Trouble::new(Rule::Unplaceable, "missing", path, "required but not sent")
        .expected(param.kind.words())
        .valid(valid(&param.kind, ""))
}

/// Valid values of a kind that has few.
fn valid(kind: &Kind, received: &str) -> Vec<String> {
    match kind {
        Kind::Name { known } => nearest(received, known.iter().map(String::as_str)),
        Kind::Choice { values, .. } => values
            .iter()
            .take(super::limits::VALID_MAX)
            .map(plain_text)
            .collect(),
        Kind::Bool => vec!["true".into(), "false".into()],
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
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            Range::new(Some(a.clone()), Some(a.clone())).contains(b)
        }
        _ => a == b,
    }
}

/// Returns whether a value is exactly the declared default, which counts as a value.
pub(super) fn is_default(param: &Param, node: &Node) -> bool {
    let default = param.default.as_ref();
    default.is_some_and(|default| node.to_value() == *default) && !node.contradicts_itself()
}

/// Returns whether `text` is exactly one of the kind's own values, and so has no other meaning.
pub(super) fn is_declared(kind: &Kind, text: &str) -> bool {
    match kind {
        Kind::Name { known } => known.iter().any(|name| name == text),
        Kind::Choice { values, synonyms } => {
            values.iter().any(|value| {
                value
                    .as_str()
                    .is_some_and(|value| value == text || value.eq_ignore_ascii_case(text))
            }) || synonyms.iter().any(|(word, _)| word == text)
        }
        Kind::List { item, .. } => is_declared(item, text),
        Kind::AnyOf(kinds) => kinds.iter().any(|kind| is_declared(kind, text)),
        _ => false,
    }
}
