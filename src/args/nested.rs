//! Coerces lists, objects and alternatives.

use super::{
    candidates,
    form_repair::FormRepair,
    judge::{ReaderRule, ValueRendering},
    outcome::{ArgumentIssue, ArgumentRepair, RepairLog},
    parameter_keys,
    params::GIVEN_TWICE,
    parsed_value::{self, Pair, ParsedValue},
    shape::{ItemCount, ParameterShape, ValueKind},
    value_coercion::{CoercionResult, ValueCoercer, ValueSite, dropped, is_default, missing},
};
use serde_json::{Map, Value};

/// Returns whether a value is neither a list nor a text that may hold several values.
fn is_one_value(node: &ParsedValue) -> bool {
    match node {
        ParsedValue::List(_) => false,
        ParsedValue::Text(text) | ParsedValue::Word(text) => {
            !text.trim_start().starts_with(['[', '(']) && !text.contains([',', ';', '\n'])
        }
        _ => true,
    }
}

impl ValueCoercer<'_> {
    pub(super) fn list(
        &mut self,
        item: &ValueKind,
        count: ItemCount,
        site: ValueSite<'_>,
    ) -> CoercionResult {
        if count.min > 1 && is_one_value(site.node) {
            return Err(site.refuse("too_few_items", "this is a single value"));
        }
        let value = self.any_list(item, site)?;
        let items = value.as_array().map_or(0, Vec::len);
        if items < count.min {
            Err(site.refuse("too_few_items", "this list has too few items"))
        } else if items > count.max {
            Err(site.refuse("too_many_items", "this list has too many items"))
        } else {
            Ok(value)
        }
    }

    /// Coerces to a list of any length.
    fn any_list(&mut self, item: &ValueKind, site: ValueSite<'_>) -> CoercionResult {
        let refuse = |code, reason| {
            let kind = &ValueKind::list(item.clone());
            Err(ValueSite { kind, ..site }.refuse(code, reason))
        };
        match site.node {
            ParsedValue::List(items) => self.items(item, items, site),
            ParsedValue::Text(text) if text.trim_start().starts_with(['[', '(']) => {
                let Some(ParsedValue::List(items)) = parse_whole_text(text) else {
                    return refuse("not_a_list", "this text is not a complete list");
                };
                let value = self.items(item, &items, site)?;
                self.note_form(site, &value, FormRepair::TextInText);
                Ok(value)
            }
            ParsedValue::Text(text) | ParsedValue::Word(text)
                if text.contains([',', ';', '\n']) =>
            {
                let reason = "this may be one value or several; write a list";
                refuse("one_or_many", reason)
            }
            _ => {
                let only = ValueSite {
                    kind: item,
                    is_inner: true,
                    ..site
                };
                let value = Value::Array(vec![self.value(only)?]);
                let reason = "a single value read as a list of one";
                self.note(site, &value, "single_for_list", 2, reason);
                Ok(value)
            }
        }
    }

    fn items(
        &mut self,
        kind: &ValueKind,
        items: &[ParsedValue],
        site: ValueSite<'_>,
    ) -> CoercionResult {
        let item = |(index, node)| {
            self.value(ValueSite {
                kind,
                node,
                path: &format!("{}[{index}]", site.path),
                is_inner: true,
            })
        };
        let values = items.iter().enumerate().map(item);
        values.collect::<Result<_, _>>().map(Value::Array)
    }

    pub(super) fn object(
        &mut self,
        fields: &[ParameterShape],
        open: bool,
        site: ValueSite<'_>,
    ) -> CoercionResult {
        match site.node {
            ParsedValue::Map(pairs) => self.fields(fields, open, pairs, site),
            ParsedValue::Text(text) => match parse_whole_text(text) {
                Some(ParsedValue::Map(pairs)) => {
                    let value = self.fields(fields, open, &pairs, site)?;
                    self.note_form(site, &value, FormRepair::TextInText);
                    Ok(value)
                }
                _ => Err(site.refuse("not_an_object", "this text is not a complete object")),
            },
            ParsedValue::List(items) if !site.is_inner && items.len() == 1 => {
                let only = items.first().unwrap_or(site.node);
                self.list_of_one(only, site)
            }
            _ => Err(site.refuse("not_an_object", "this is not an object")),
        }
    }

    fn fields(
        &mut self,
        fields: &[ParameterShape],
        open: bool,
        pairs: &[Pair],
        site: ValueSite<'_>,
    ) -> CoercionResult {
        let mut map = Map::new();
        for (key, node) in pairs {
            let field = parameter_keys::find(fields, key).and_then(|at| fields.get(at));
            let name = field.map_or(key, |field| &field.name);
            let path = format!("{}.{name}", site.path);
            let value = match field {
                Some(field) => self.field(field, node, &path)?,
                None if open => node.to_value(),
                None => {
                    self.leave_out_field(fields, node, &path)?;
                    continue;
                }
            };
            let before = map.insert(name.clone(), value.clone());
            if before.is_some_and(|before| before != value) {
                let (rule, reason) = (ReaderRule::Contradiction, GIVEN_TWICE);
                return Err(ArgumentIssue::new(rule, "duplicate_keys", &path, reason));
            }
        }
        for field in fields.iter().filter(|field| !map.contains_key(&field.name)) {
            let path = format!("{}.{}", site.path, field.name);
            match &field.default {
                Some(default) => self.note_default(&path, default),
                None if field.required => return Err(missing(field, &path)),
                None => {}
            }
        }
        Ok(Value::Object(map))
    }

    fn field(&mut self, field: &ParameterShape, node: &ParsedValue, path: &str) -> CoercionResult {
        match node {
            _ if is_default(field, node) => Ok(node.to_value()),
            ParsedValue::Null if field.may_be_null() => Ok(Value::Null),
            ParsedValue::Null => Err(missing(field, path)),
            _ if node.is_empty() && !field.required => Ok(node.to_value()),
            _ => self.value(ValueSite {
                kind: &field.kind,
                node,
                path,
                is_inner: true,
            }),
        }
    }

    /// Notes the default of a field that was not sent.
    fn note_default(&mut self, path: &str, default: &Value) {
        if self.policy.render == ValueRendering::AsSent {
            return;
        }
        let reason = "not sent, so its default is used";
        self.repairs.push(ArgumentRepair {
            used: default.to_string(),
            class: ReaderRule::Empty.class(),
            ..ArgumentRepair::new(path, "default", 0, reason)
        });
    }

    /// Leaves out an unknown field; refuses it if something moves, because the field may matter.
    fn leave_out_field(
        &mut self,
        fields: &[ParameterShape],
        node: &ParsedValue,
        path: &str,
    ) -> Result<(), ArgumentIssue> {
        if self.policy.guards_motion() {
            let names = fields.iter().map(|field| field.name.clone()).collect();
            let (rule, reason) = (ReaderRule::Invalid, "the object has no such field");
            let issue = ArgumentIssue::new(rule, "unknown_field", path, reason);
            let issue = issue.received(parsed_value::shown_node(node));
            return Err(issue.valid(names));
        }
        let reason = "no such field; ignored";
        let repair = dropped(path, node, "unknown_key", ReaderRule::Ignored, reason);
        self.repairs.push(repair);
        Ok(())
    }

    /// Coerces to the alternative that needs the least repair; the first of equals.
    pub(super) fn any_of(&mut self, kinds: &[ValueKind], site: ValueSite<'_>) -> CoercionResult {
        let mut best: Option<(Value, RepairLog)> = None;
        let mut issue = None;
        for kind in kinds {
            let mut trial = ValueCoercer::new(self.policy);
            match trial.value(ValueSite { kind, ..site }) {
                Ok(value) => {
                    let cost = trial.repairs.cost;
                    if best.as_ref().is_none_or(|(_, repairs)| cost < repairs.cost) {
                        best = Some((value, trial.repairs));
                    }
                }
                Err(found) => issue = issue.or(Some(found)),
            }
        }
        let Some((value, repairs)) = best else {
            let reason = "this fits none of the alternatives";
            let issue = issue.unwrap_or_else(|| site.refuse("no_alternative", reason));
            return Err(issue.expected(site.kind.describe()));
        };
        for repair in repairs.list {
            self.repairs.push(repair);
        }
        Ok(value)
    }
}

/// Parses a text that is a complete list or object.
pub(super) fn parse_whole_text(text: &str) -> Option<ParsedValue> {
    let inner = candidates::of_inner_text(text)?.node;
    (!inner.contradicts_itself()).then_some(inner)
}

#[cfg(test)]
mod tests;
