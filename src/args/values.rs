//! One value and one kind: the value in the declared type, with its repairs, or the trouble with it.

use super::{
    candidates,
    form::Form,
    meaning, name,
    nearest::nearest,
    node::{self, Node},
    numeral::{self, Numeral},
    outcome::{Repair, Repairs, Trouble},
    rules::{Class, Policy, Render, Rule},
    shape::{Kind, Param, Range},
    unit::{self, Unit},
};
use serde_json::{Map, Number, Value};

/// Largest double that counts whole numbers one by one.
const WHOLE_DOUBLE_MAX: f64 = 9_007_199_254_740_992.0;

/// Coerces values and collects what that took.
pub(super) struct Coercer<'a> {
    pub(super) policy: &'a Policy,
    pub(super) repairs: Repairs,
}

/// Where a value stands.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    pub(super) path: &'a str,
    /// Inside a list or an object, where a list of one may be meant as one.
    pub(super) is_inner: bool,
}

type Coerced = Result<Value, Trouble>;

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
            Kind::List(item) => self.list(item, node, at),
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
                if meaning::is_template(text) && !is_declared(kind, text) =>
            {
                Err(
                    trouble("template", "this is a stand-in for a value, not a value")
                        .valid(valid(kind, ""))
                        .fix(example(kind)),
                )
            }
            Node::Map(pairs) if meaning::is_schema_of_value(pairs, kind) => Err(trouble(
                "schema_echo",
                "this is the schema of a value, not a value",
            )
            .valid(valid(kind, ""))
            .fix(example(kind))),
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
            Kind::Integer { range, unit } | Kind::Number { range, unit } => {
                self.number(kind, range, *unit, node, at)
            }
            _ => Err(unplaceable(
                "wrong_type",
                kind,
                node,
                at,
                "this does not fit",
            )),
        }
    }

    fn list_of_one(&mut self, kind: &Kind, list: &Node, only: &Node, at: At<'_>) -> Coerced {
        let value = self.value(
            kind,
            only,
            At {
                is_inner: true,
                ..at
            },
        )?;
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
                Err(
                    unplaceable("unknown_name", kind, node, at, "there is no such name")
                        .fix(nearest.first().cloned().map(Value::String))
                        .valid(nearest),
                )
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
        let fix = near
            .first()
            .and_then(|first| values.iter().find(|value| plain_text(value) == *first))
            .cloned();
        Err(
            unplaceable("not_a_choice", kind, node, at, "this is none of the values")
                .valid(near)
                .fix(fix),
        )
    }

    fn boolean(&mut self, kind: &Kind, node: &Node, at: At<'_>) -> Coerced {
        let word = match node {
            Node::Bool(value) => return Ok(Value::Bool(*value)),
            Node::Text(text) | Node::Word(text) => text
                .trim()
                .trim_matches(['"', '\'', '.'])
                .to_ascii_lowercase(),
            Node::Number(number) => number.to_string(),
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

    fn number(
        &mut self,
        kind: &Kind,
        range: &Range,
        unit: Option<Unit>,
        node: &Node,
        at: At<'_>,
    ) -> Coerced {
        let (number, unit_given) = match node {
            Node::Number(number) => (number.clone(), false),
            Node::Text(text) | Node::Word(text) => read_number(kind, unit, text, node, at)?,
            _ => {
                return Err(
                    unplaceable("not_a_number", kind, node, at, "this is not a number")
                        .fix(bound(range)),
                );
            }
        };
        let number = if matches!(kind, Kind::Integer { .. }) {
            whole(kind, range, &number, node, at)?
        } else {
            number
        };
        if !range.contains(&number) {
            return Err(out_of_range(
                kind,
                range,
                unit.filter(|_| !unit_given),
                &number,
                node,
                at,
            ));
        }
        let value = Value::Number(number);
        if unit_given {
            let shown = format!("{value} {}", unit.map_or("", Unit::symbol));
            self.repairs.push(repair(
                at.path,
                node::shown_node(node),
                shown,
                "unit",
                1,
                "converted to the parameter's unit",
            ));
        } else if node.to_value() != value || matches!(node, Node::Text(_)) {
            self.note(
                at,
                node,
                &value,
                "number_form",
                1,
                "a number in another spelling",
            );
        }
        Ok(value)
    }

    fn list(&mut self, item: &Kind, node: &Node, at: At<'_>) -> Coerced {
        let inner = At {
            is_inner: true,
            ..at
        };
        match node {
            Node::List(items) => {
                let mut values = Vec::with_capacity(items.len());
                for (index, node) in items.iter().enumerate() {
                    let path = format!("{}[{index}]", at.path);
                    values.push(self.value(
                        item,
                        node,
                        At {
                            path: &path,
                            ..inner
                        },
                    )?);
                }
                Ok(Value::Array(values))
            }
            Node::Text(text) if text.trim_start().starts_with(['[', '(']) => match opened(text) {
                Some(list @ Node::List(_)) => {
                    let value = self.list(item, &list, at)?;
                    self.note(
                        at,
                        node,
                        &value,
                        "text_in_text",
                        Form::TextInText.cost(),
                        Form::TextInText.why(),
                    );
                    Ok(value)
                }
                _ => Err(unplaceable(
                    "not_a_list",
                    &Kind::List(Box::new(item.clone())),
                    node,
                    at,
                    "this text is not a whole list",
                )),
            },
            _ => {
                let value = Value::Array(vec![self.value(item, node, inner)?]);
                self.note(
                    at,
                    node,
                    &value,
                    "single_for_list",
                    2,
                    "a single value read as a list of one",
                );
                Ok(value)
            }
        }
    }

    fn object(
        &mut self,
        kind: &Kind,
        fields: &[Param],
        open: bool,
        node: &Node,
        at: At<'_>,
    ) -> Coerced {
        match node {
            Node::Map(pairs) => self.fields(fields, open, pairs, at),
            Node::Text(text) => match opened(text) {
                Some(Node::Map(pairs)) => {
                    let value = self.fields(fields, open, &pairs, at)?;
                    self.note(
                        at,
                        node,
                        &value,
                        "text_in_text",
                        Form::TextInText.cost(),
                        Form::TextInText.why(),
                    );
                    Ok(value)
                }
                _ => Err(unplaceable(
                    "not_an_object",
                    kind,
                    node,
                    at,
                    "this text is not a whole object",
                )),
            },
            Node::List(items) if items.len() == 1 && !at.is_inner => {
                let only = items.first().unwrap_or(node);
                self.list_of_one(kind, node, only, at)
            }
            _ => Err(unplaceable(
                "not_an_object",
                kind,
                node,
                at,
                "this is not an object",
            )),
        }
    }

    fn fields(
        &mut self,
        fields: &[Param],
        open: bool,
        pairs: &[(String, Node)],
        at: At<'_>,
    ) -> Coerced {
        let mut map = Map::new();
        for (key, node) in pairs {
            let field = fields
                .iter()
                .find(|field| field.name == *key)
                .or_else(|| only_by_form(fields, key));
            let name = field.map_or(key, |field| &field.name);
            let path = format!("{}.{name}", at.path);
            let at = At {
                path: &path,
                is_inner: true,
            };
            let value = match field {
                Some(_) if *node == Node::Null => Value::Null,
                Some(field) if node.is_empty() && !field.required => node.to_value(),
                Some(field) => self.value(&field.kind, node, at)?,
                None if open => node.to_value(),
                None => {
                    self.repairs.push(dropped(
                        &path,
                        node,
                        "unknown_key",
                        Rule::Meaningless,
                        "no such field; ignored",
                    ));
                    continue;
                }
            };
            let before = map.insert(name.clone(), value.clone());
            if before.is_some_and(|before| before != value) {
                return Err(Trouble::new(
                    Rule::Contradiction,
                    "duplicate_keys",
                    &path,
                    "given twice with different values",
                ));
            }
        }
        if let Some(field) = fields
            .iter()
            .find(|field| field.required && !map.contains_key(&field.name))
        {
            return Err(missing(field, &format!("{}.{}", at.path, field.name)));
        }
        Ok(Value::Object(map))
    }

    /// The alternative that takes the least repair; the first of equals.
    fn any_of(&mut self, kind: &Kind, kinds: &[Kind], node: &Node, at: At<'_>) -> Coerced {
        let mut best: Option<(u32, Value, Repairs)> = None;
        let mut trouble = None;
        for alternative in kinds {
            let mut trial = Coercer {
                policy: self.policy,
                repairs: Repairs::default(),
            };
            match trial.value(alternative, node, at) {
                Ok(value)
                    if best
                        .as_ref()
                        .is_none_or(|(cost, ..)| trial.repairs.cost < *cost) =>
                {
                    best = Some((trial.repairs.cost, value, trial.repairs));
                }
                Ok(_) => {}
                Err(found) => trouble = trouble.or(Some(found)),
            }
        }
        let Some((_, value, repairs)) = best else {
            return Err(trouble
                .unwrap_or_else(|| {
                    unplaceable(
                        "no_alternative",
                        kind,
                        node,
                        at,
                        "this fits none of the alternatives",
                    )
                })
                .expected(kind.words()));
        };
        repairs
            .list
            .into_iter()
            .for_each(|repair| self.repairs.push(repair));
        Ok(value)
    }

    fn note(
        &mut self,
        at: At<'_>,
        node: &Node,
        value: &Value,
        code: &'static str,
        cost: u32,
        why: &str,
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

fn repair(
    path: &str,
    got: String,
    used: String,
    code: &'static str,
    cost: u32,
    why: &str,
) -> Repair {
    Repair {
        field: path.to_owned(),
        got,
        used,
        class: Class::L0,
        cost,
        code,
        why: why.to_owned(),
    }
}

/// A value that is left out, under the rule that lets it be.
pub(super) fn dropped(
    path: &str,
    node: &Node,
    code: &'static str,
    rule: Rule,
    why: &str,
) -> Repair {
    Repair {
        class: rule.class(),
        cost: rule.cost(),
        ..repair(path, node::shown_node(node), String::new(), code, 0, why)
    }
}

fn unplaceable(code: &'static str, kind: &Kind, node: &Node, at: At<'_>, why: &str) -> Trouble {
    Trouble::new(Rule::Unplaceable, code, at.path, why)
        .received(node::shown_node(node))
        .expected(kind.words())
        .valid(valid(kind, ""))
        .fix(example(kind))
}

/// A required parameter that is not there.
pub(super) fn missing(param: &Param, path: &str) -> Trouble {
    Trouble::new(Rule::Unplaceable, "missing", path, "required but not sent")
        .expected(param.kind.words())
        .valid(valid(&param.kind, ""))
        .fix(param.default.clone().or_else(|| example(&param.kind)))
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

/// A valid value for a corrected call, where one can be named without inventing it.
pub(super) fn example(kind: &Kind) -> Option<Value> {
    match kind {
        Kind::Name { known } => known.first().cloned().map(Value::String),
        Kind::Choice { values, .. } => values.first().cloned(),
        Kind::Bool => Some(Value::Bool(false)),
        Kind::Integer { range, .. } | Kind::Number { range, .. } => bound(range),
        Kind::AnyOf(kinds) => kinds.iter().find_map(example),
        _ => None,
    }
}

fn bound(range: &Range) -> Option<Value> {
    let bounds = [range.min.as_ref(), range.max.as_ref()];
    bounds
        .into_iter()
        .flatten()
        .find(|number| range.contains(number))
        .cloned()
        .map(Value::Number)
}

fn plain_text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
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

/// Whether `text` is to the letter one of the kind's own values, and so is no word for something else.
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
        Kind::List(item) => is_declared(item, text),
        Kind::AnyOf(kinds) => kinds.iter().any(|kind| is_declared(kind, text)),
        _ => false,
    }
}

fn only_by_form<'a>(fields: &'a [Param], key: &str) -> Option<&'a Param> {
    let folded = meaning::fold_key(key);
    let mut same = fields
        .iter()
        .filter(|field| meaning::fold_key(&field.name) == folded);
    same.next().filter(|_| same.next().is_none())
}

/// A text that is a whole list or object, opened.
fn opened(text: &str) -> Option<Node> {
    candidates::of_inner_text(text)
        .into_iter()
        .next()
        .map(|candidate| candidate.node)
        .filter(|node| !node.contradicts_itself())
}

/// A number in text, with whether a unit was converted.
fn read_number(
    kind: &Kind,
    unit: Option<Unit>,
    text: &str,
    node: &Node,
    at: At<'_>,
) -> Result<(Number, bool), Trouble> {
    let Some(quantity) = unit::quantity(text) else {
        return Err(unplaceable(
            "not_a_number",
            kind,
            node,
            at,
            "this is not a number",
        ));
    };
    match quantity.numeral {
        Numeral::NotFinite => {
            return Err(unplaceable(
                "not_finite",
                kind,
                node,
                at,
                "this is not a finite number",
            ));
        }
        Numeral::Ambiguous => {
            return Err(unplaceable(
                "ambiguous_number",
                kind,
                node,
                at,
                "a leading zero makes this octal to some and decimal to others",
            ));
        }
        Numeral::Whole(_) | Numeral::Decimal(_) => {}
    }
    if quantity.suffix.is_empty() {
        let number = numeral::number(&quantity.numeral).ok_or_else(|| {
            unplaceable(
                "too_large",
                kind,
                node,
                at,
                "this number does not fit 64 bits",
            )
        })?;
        return Ok((number, false));
    }
    let Some(unit) = unit else {
        return Err(unplaceable(
            "unexpected_unit",
            kind,
            node,
            at,
            "a bare number is expected, without unit or other words",
        ));
    };
    let converted =
        Unit::named(quantity.suffix).and_then(|from| unit.convert(&quantity.numeral, from));
    let why = || {
        format!(
            "'{}' is no unit that converts to {}",
            node::shown(quantity.suffix),
            unit.symbol()
        )
    };
    converted
        .map(|number| (number, true))
        .ok_or_else(|| unplaceable("wrong_unit", kind, node, at, &why()))
}

/// A whole number, exactly.
fn whole(
    kind: &Kind,
    range: &Range,
    number: &Number,
    node: &Node,
    at: At<'_>,
) -> Result<Number, Trouble> {
    if number.is_i64() || number.is_u64() {
        return Ok(number.clone());
    }
    let value = number.as_f64().unwrap_or(f64::NAN);
    if value.abs() >= WHOLE_DOUBLE_MAX {
        return Err(unplaceable(
            "too_large",
            kind,
            node,
            at,
            "too large to be exact",
        ));
    }
    if value.fract() != 0.0 {
        return Err(
            unplaceable("fraction", kind, node, at, "a whole number is needed")
                .valid(neighbours(range, value)),
        );
    }
    #[expect(clippy::cast_possible_truncation, reason = "whole and below 2^53")]
    let whole = value as i64;
    Ok(whole.into())
}

fn neighbours(range: &Range, value: f64) -> Vec<String> {
    let mut both = [value.floor(), value.ceil()];
    both.sort_by(|a, b| (a - value).abs().total_cmp(&(b - value).abs()));
    let within =
        |number: &f64| Number::from_f64(*number).is_some_and(|number| range.contains(&number));
    both.into_iter()
        .filter(within)
        .map(|number| format!("{number:.0}"))
        .collect()
}

/// Nothing is clamped; where another unit would make sense of the number, that thought is offered.
fn out_of_range(
    kind: &Kind,
    range: &Range,
    unit: Option<Unit>,
    number: &Number,
    node: &Node,
    at: At<'_>,
) -> Trouble {
    let bounds = nearest_bounds(range, number);
    let trouble = unplaceable(
        "out_of_range",
        kind,
        node,
        at,
        &format!("{number} is out of range"),
    );
    let Some(unit) = unit else {
        return trouble
            .fix(bounds.first().cloned().map(Value::Number))
            .valid(bounds.iter().map(Number::to_string).collect());
    };
    let thoughts = other_units(range, unit, number);
    let Some((symbol, converted)) = thoughts.first() else {
        return trouble
            .fix(bounds.first().cloned().map(Value::Number))
            .valid(
                bounds
                    .iter()
                    .map(|bound| format!("{bound} {}", unit.symbol()))
                    .collect(),
            );
    };
    let why = format!(
        "{number} {} is out of range; if {number} {symbol} is meant, which is {converted} {}, write \"{number}{symbol}\"",
        unit.symbol(),
        unit.symbol()
    );
    let mut trouble = trouble
        .valid(
            thoughts
                .iter()
                .map(|(symbol, _)| format!("{number}{symbol}"))
                .collect(),
        )
        .fix(bounds.first().cloned().map(Value::Number));
    trouble.complaint.code = "other_unit";
    trouble.complaint.why = why;
    trouble
}

fn nearest_bounds(range: &Range, number: &Number) -> Vec<Number> {
    let distance =
        |bound: &Number| (bound.as_f64().unwrap_or(0.0) - number.as_f64().unwrap_or(0.0)).abs();
    let mut bounds: Vec<_> = [&range.min, &range.max]
        .into_iter()
        .flatten()
        .filter(|bound| range.contains(bound))
        .cloned()
        .collect();
    bounds.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
    bounds
}

/// Units in which the bare number would be in range, the commonest first.
fn other_units(range: &Range, unit: Unit, number: &Number) -> Vec<(&'static str, Number)> {
    const COMMON: [&str; 8] = ["mm", "cm", "deg", "ms", "mm/s", "mm/min", "m", "rad"];
    let Some(numeral) = numeral::parse(&number.to_string()) else {
        return Vec::new();
    };
    let mut found: Vec<_> = unit
        .kin()
        .filter_map(|kin| {
            Some((
                kin.symbol(),
                unit.convert(&numeral, kin)
                    .filter(|number| range.contains(number))?,
            ))
        })
        .collect();
    found.sort_by_key(|(symbol, _)| {
        COMMON
            .iter()
            .position(|common| common == symbol)
            .unwrap_or(COMMON.len())
    });
    found.truncate(3);
    found
}
