//! Builds the result: the given arguments with defaults added, or every complaint.

use super::{
    arguments::CallReader,
    judge::{ReaderRule, RepairClass, ToolEffect},
    outcome::{self, ArgumentIssue, ArgumentReading, ArgumentRefusal, ArgumentRepair},
    shape::{ArgumentShape, ValueKind},
    value_coercion,
};
use serde_json::{Map, Value};

impl CallReader<'_> {
    pub(super) fn finish(mut self) -> Result<ArgumentReading, Box<ArgumentRefusal>> {
        self.require();
        self.become_dry_run();
        let names_other = self.names_other();
        let Self {
            shape,
            coercer,
            refused,
            given,
            leftover,
            leaves_words,
            ..
        } = self;
        let given = in_order(shape, given);
        let repairs = coercer.repairs;
        let rules = refused.iter().map(|issue| issue.rule);
        let Some(worst) = rules.max_by_key(|rule| rule.cost()) else {
            return Ok(ArgumentReading {
                is_cautious: shape.is_cautious(&given),
                understood: with_defaults(shape, &given),
                given,
                repairs: repairs.list,
                loss: repairs.loss.unwrap_or(RepairClass::L0),
                leftover,
                names_other,
                leaves_words,
            });
        };
        Err(Box::new(ArgumentRefusal {
            complaints: outcome::complaints(&refused),
            good: given,
            repairs: repairs.list,
            kind: worst,
        }))
    }

    /// Makes a call whose rest names the dry run one. A tool that moves and has none is refused.
    fn become_dry_run(&mut self) {
        if !self.asks_for_dry_run || self.policy.effect != ToolEffect::Moves {
            return;
        }
        let params = self.shape.params.iter();
        let mut cautious = params.filter_map(|param| Some((param, param.cautious.clone()?)));
        let reason = "it is named beside the arguments, so this is a dry run";
        match cautious.next() {
            Some((param, value)) if self.given.get(&param.name) != Some(&value) => {
                self.coercer.repairs.push(ArgumentRepair {
                    used: value.to_string(),
                    ..ArgumentRepair::new(&param.name, "dry_run", 0, reason)
                });
                self.given.insert(param.name.clone(), value);
            }
            Some(_) => {}
            None => {
                let reason = "this tool moves and has no dry run";
                let issue = ArgumentIssue::new(ReaderRule::Contradiction, "no_dry_run", "", reason);
                self.refused
                    .push(issue.expected("a call without `no_dry_run`"));
            }
        }
    }

    /// Refuses a call without a required argument, however it was lost. A stop is never refused.
    fn require(&mut self) {
        if !self.refused.is_empty() || !self.policy.refuses(ReaderRule::Invalid) {
            return;
        }
        for param in &self.shape.params {
            let has_value = self.given.contains_key(&param.name) || param.default.is_some();
            if param.required && !has_value {
                let issue = value_coercion::missing(param, &param.name);
                self.refused.push(issue);
            }
        }
    }
}

fn in_order(shape: &ArgumentShape, mut given: Map<String, Value>) -> Map<String, Value> {
    // Parameters are judged in their order; a dry run that was added, and an open shape's other keys, are out of it.
    let mut params = shape.params.iter();
    if given
        .keys()
        .all(|key| params.any(|param| param.name == *key))
    {
        return given;
    }
    let params = shape.params.iter();
    let sent = params.filter_map(|param| given.remove_entry(&param.name));
    let mut ordered: Map<String, Value> = sent.collect();
    ordered.extend(given);
    ordered
}

/// Returns parameters in their order, with defaults, then the other keys of an open shape.
fn with_defaults(shape: &ArgumentShape, given: &Map<String, Value>) -> Map<String, Value> {
    let mut understood = Map::with_capacity(shape.params.len());
    let mut sent = given.iter().peekable();
    for param in &shape.params {
        let own = sent.next_if(|(key, _)| **key == param.name);
        let value = own.map(|(_, value)| completed(&param.kind, value.clone()));
        if let Some(value) = value.or_else(|| param.default.clone()) {
            understood.insert(param.name.clone(), value);
        }
    }
    understood.extend(sent.map(|(key, value)| (key.clone(), value.clone())));
    understood
}

/// Returns a value with the declared defaults of the fields that were not sent.
fn completed(kind: &ValueKind, value: Value) -> Value {
    match (kind, value) {
        (ValueKind::Object { fields, .. }, Value::Object(mut sent)) => {
            for field in fields {
                match (sent.get_mut(&field.name), &field.default) {
                    (Some(value), _) if !value.is_null() => {
                        *value = completed(&field.kind, value.take());
                    }
                    (_, Some(default)) => {
                        sent.insert(field.name.clone(), default.clone());
                    }
                    (_, None) => {}
                }
            }
            Value::Object(sent)
        }
        (ValueKind::List { item, .. }, Value::Array(items)) => {
            let items = items.into_iter().map(|value| completed(item, value));
            Value::Array(items.collect())
        }
        (_, value) => value,
    }
}
