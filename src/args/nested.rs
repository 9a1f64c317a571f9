//! Lists, objects and alternatives: values made of values.

use super::{
    candidates,
    form_repair::FormRepair,
    heuristics,
    outcome::{ArgumentIssue, ArgumentRepair, RepairLog},
    parsed_value::{self, ParsedValue},
    rules::{ReaderRule, ValueRendering},
    shape::{ItemCount, ParameterShape, ValueKind},
    value_coercion::{
        CoercionResult, ValueCoercer, ValuePosition, dropped, is_default, missing, repair,
        unplaceable,
    },
};
use serde_json::{Map, Value};

impl ValueCoercer<'_> {
    pub(super) fn list(
        &mut self,
        item: &ValueKind,
        count: ItemCount,
        node: &ParsedValue,
        at: ValuePosition<'_>,
    ) -> CoercionResult {
        let value = self.any_list(item, node, at)?;
        let items = value.as_array().map_or(0, Vec::len);
        if count.contains(items) {
            return Ok(value);
        }
        let kind = ValueKind::List {
            item: Box::new(item.clone()),
            count,
        };
        let (code, why) = match items < count.min {
            true => ("too_few_items", "this list has too few items"),
            false => ("too_many_items", "this list has too many items"),
        };
        Err(unplaceable(code, &kind, node, at, why))
    }

    /// A list of any length.
    fn any_list(
        &mut self,
        item: &ValueKind,
        node: &ParsedValue,
        at: ValuePosition<'_>,
    ) -> CoercionResult {
        let refuse = |code, why| unplaceable(code, &ValueKind::list(item.clone()), node, at, why);
        match node {
            ParsedValue::List(items) => self.items(item, items, at),
            ParsedValue::Text(text) if text.trim_start().starts_with(['[', '(']) => {
                let Some(ParsedValue::List(items)) = opened(text) else {
                    return Err(refuse("not_a_list", "this text is not a whole list"));
                };
                let value = self.items(item, &items, at)?;
                self.note_text_in_text(at, node, &value);
                Ok(value)
            }
            ParsedValue::Text(text) | ParsedValue::Word(text)
                if text.contains([',', ';', '\n']) =>
            {
                Err(refuse(
                    "one_or_many",
                    "this may be one value or several; write a list",
                ))
            }
            _ => {
                let value = Value::Array(vec![self.value(
                    item,
                    node,
                    ValuePosition {
                        is_inner: true,
                        ..at
                    },
                )?]);
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

    fn items(
        &mut self,
        item: &ValueKind,
        items: &[ParsedValue],
        at: ValuePosition<'_>,
    ) -> CoercionResult {
        let mut values = Vec::with_capacity(items.len());
        for (index, node) in items.iter().enumerate() {
            let path = format!("{}[{index}]", at.path);
            values.push(self.value(
                item,
                node,
                ValuePosition {
                    path: &path,
                    is_inner: true,
                },
            )?);
        }
        Ok(Value::Array(values))
    }

    fn note_text_in_text(&mut self, at: ValuePosition<'_>, node: &ParsedValue, value: &Value) {
        self.note(
            at,
            node,
            value,
            "text_in_text",
            FormRepair::TextInText.cost(),
            FormRepair::TextInText.why(),
        );
    }

    pub(super) fn object(
        &mut self,
        kind: &ValueKind,
        fields: &[ParameterShape],
        open: bool,
        node: &ParsedValue,
        at: ValuePosition<'_>,
    ) -> CoercionResult {
        match node {
            ParsedValue::Map(pairs) => self.fields(fields, open, pairs, at),
            ParsedValue::Text(text) => match opened(text) {
                Some(ParsedValue::Map(pairs)) => {
                    let value = self.fields(fields, open, &pairs, at)?;
                    self.note_text_in_text(at, node, &value);
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
            ParsedValue::List(items) if items.len() == 1 && !at.is_inner => {
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
        fields: &[ParameterShape],
        open: bool,
        pairs: &[(String, ParsedValue)],
        at: ValuePosition<'_>,
    ) -> CoercionResult {
        let mut map = Map::new();
        for (key, node) in pairs {
            let field = fields
                .iter()
                .find(|field| field.name == *key)
                .or_else(|| only_by_form(fields, key));
            let name = field.map_or(key, |field| &field.name);
            let path = format!("{}.{name}", at.path);
            let at = ValuePosition {
                path: &path,
                is_inner: true,
            };
            let value = match field {
                Some(field) if is_default(field, node) => node.to_value(),
                Some(field) if *node == ParsedValue::Null && field.may_be_null() => Value::Null,
                Some(field) if *node == ParsedValue::Null => return Err(missing(field, at.path)),
                Some(field) if node.is_empty() && !field.required => node.to_value(),
                Some(field) => self.value(&field.kind, node, at)?,
                None if open => node.to_value(),
                None => {
                    self.no_such_field(fields, node, at)?;
                    continue;
                }
            };
            let before = map.insert(name.clone(), value.clone());
            if before.is_some_and(|before| before != value) {
                return Err(ArgumentIssue::new(
                    ReaderRule::Contradiction,
                    "duplicate_keys",
                    &path,
                    "given twice with different values",
                ));
            }
        }
        for field in fields.iter().filter(|field| !map.contains_key(&field.name)) {
            let path = format!("{}.{}", at.path, field.name);
            match &field.default {
                Some(default) => self.note_default(&path, default),
                None if field.required => return Err(missing(field, &path)),
                None => {}
            }
        }
        Ok(Value::Object(map))
    }

    /// Notes a default beside fields that were sent.
    fn note_default(&mut self, path: &str, default: &Value) {
        if self.policy.render == ValueRendering::AsSent {
            return;
        }
        let (used, why) = (default.to_string(), "not sent, so its default is used");
        let noted = repair(path, String::new(), used, "default", 0, why);
        self.repairs.push(ArgumentRepair {
            class: ReaderRule::Empty.class(),
            ..noted
        });
    }

    /// Leaves out a field that there is not; where something moves it may have been the one that matters.
    fn no_such_field(
        &mut self,
        fields: &[ParameterShape],
        node: &ParsedValue,
        at: ValuePosition<'_>,
    ) -> Result<(), ArgumentIssue> {
        if self.policy.guards_motion() {
            let names = fields.iter().map(|field| field.name.clone()).collect();
            let why = "there is no such field";
            let trouble =
                ArgumentIssue::new(ReaderRule::Unplaceable, "unknown_field", at.path, why);
            return Err(trouble
                .received(parsed_value::shown_node(node))
                .valid(names));
        }
        let why = "no such field; ignored";
        let repair = dropped(at.path, node, "unknown_key", ReaderRule::Meaningless, why);
        self.repairs.push(repair);
        Ok(())
    }

    /// The alternative that takes the least repair; the first of equals.
    pub(super) fn any_of(
        &mut self,
        kind: &ValueKind,
        kinds: &[ValueKind],
        node: &ParsedValue,
        at: ValuePosition<'_>,
    ) -> CoercionResult {
        let mut best: Option<(u32, Value, RepairLog)> = None;
        let mut trouble = None;
        for alternative in kinds {
            let mut trial = ValueCoercer {
                policy: self.policy,
                repairs: RepairLog::default(),
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
                .expected(kind.describe()));
        };
        repairs
            .list
            .into_iter()
            .for_each(|repair| self.repairs.push(repair));
        Ok(value)
    }
}

fn only_by_form<'a>(fields: &'a [ParameterShape], key: &str) -> Option<&'a ParameterShape> {
    let folded = heuristics::fold_key(key);
    let mut same = fields
        .iter()
        .filter(|field| heuristics::fold_key(&field.name) == folded);
    same.next().filter(|_| same.next().is_none())
}

/// A text that is a whole list or object, opened.
fn opened(text: &str) -> Option<ParsedValue> {
    candidates::of_inner_text(text)
        .into_iter()
        .next()
        .map(|candidate| candidate.node)
        .filter(|node| !node.contradicts_itself())
}

#[cfg(test)]
mod tests;
