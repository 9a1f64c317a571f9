//! The answer: what was given with the defaults added, or every complaint with arguments that would be accepted.

use super::{
    arguments::{Call, Pairs},
    meaning,
    node::Node,
    outcome::{self, Reading, Refusal, Trouble},
    rules::{Class, Rule},
    shape::{Param, Shape},
    values,
};
use serde_json::{Map, Value};

impl Call<'_> {
    pub(super) fn finish(self) -> Result<Reading, Box<Refusal>> {
        let Self {
            shape,
            coercer,
            refused,
            given,
            ..
        } = self;
        let given = in_order(shape, given);
        let repairs = coercer.repairs;
        let Some(worst) = refused
            .iter()
            .map(|trouble| trouble.rule)
            .max_by_key(|rule| rule.cost())
        else {
            let understood = with_defaults(shape, &given);
            return Ok(Reading {
                understood,
                given,
                repairs: repairs.list,
                loss: repairs.loss.unwrap_or(Class::L0),
            });
        };
        let complaints = outcome::complaints(&refused);
        Err(Box::new(Refusal {
            complaints,
            corrected: corrected(shape, &given, &refused),
            good: given,
            repairs: repairs.list,
            kind: worst,
        }))
    }
}

fn in_order(shape: &Shape, mut given: Map<String, Value>) -> Map<String, Value> {
    // Parameters are judged in their order; only an open shape's other keys come before them.
    if !shape.open {
        return given;
    }
    let mut ordered: Map<String, Value> = shape
        .params
        .iter()
        .filter_map(|param| {
            given
                .remove(&param.name)
                .map(|value| (param.name.clone(), value))
        })
        .collect();
    ordered.extend(given);
    ordered
}

/// Parameters in their order, then what an open shape took beside them.
fn with_defaults(shape: &Shape, given: &Map<String, Value>) -> Map<String, Value> {
    let mut understood = Map::with_capacity(shape.params.len());
    let mut sent = given.iter().peekable();
    for param in &shape.params {
        let own = sent.next_if(|(key, _)| **key == param.name);
        let value = own.map(|(_, value)| value).or(param.default.as_ref());
        if let Some(value) = value {
            understood.insert(param.name.clone(), value.clone());
        }
    }
    understood.extend(sent.map(|(key, value)| (key.clone(), value.clone())));
    understood
}

/// The caller's good arguments, and a valid value for each refused one.
fn corrected(shape: &Shape, given: &Map<String, Value>, refused: &[Trouble]) -> Map<String, Value> {
    let cautious = |param: &Param| {
        let is_in_doubt = |trouble: &Trouble| leaves_doubt(trouble, param);
        let value = param.cautious.as_ref();
        value.filter(|_| refused.iter().any(is_in_doubt)).cloned()
    };
    let fix = |param: &Param| {
        let trouble = refused
            .iter()
            .find(|trouble| trouble.is_about(&param.name))?;
        // What {} would mean is at least nobody's invention.
        let default = param.default.as_ref().filter(|_| trouble.is_in_doubt);
        default.or(trouble.fix.as_ref()).cloned()
    };
    let needed = |param: &Param| {
        if param.required {
            let example = || values::example(&param.kind).or_else(|| values::least(&param.kind));
            param.default.clone().or_else(example)
        } else {
            None
        }
    };
    let value = |param: &Param| {
        given
            .get(&param.name)
            .cloned()
            .or_else(|| cautious(param))
            .or_else(|| fix(param))
            .or_else(|| needed(param))
    };
    let corrected: Map<String, Value> = shape
        .params
        .iter()
        .filter_map(|param| value(param).map(|value| (param.name.clone(), value)))
        .collect();
    let pairs: Pairs = corrected
        .iter()
        .map(|(key, value)| (key.clone(), Node::from(value.clone())))
        .collect();
    // Words for types alone would be taken for an echo of the schema.
    if meaning::is_signature(pairs.iter()) {
        return Map::new();
    }
    corrected
}

/// The call of which nothing is known but that the caller meant one.
pub(super) fn cautious(shape: &Shape) -> Map<String, Value> {
    let value = |param: &Param| Some((param.name.clone(), param.cautious.clone()?));
    shape.params.iter().filter_map(value).collect()
}

/// Whether, after this trouble, it is not certain that the caller wants what a corrected call would do;
/// `cautious` is the parameter that says whether anything moves.
fn leaves_doubt(trouble: &Trouble, cautious: &Param) -> bool {
    let is_of_the_whole = trouble.complaint.path.is_empty();
    let is_unread = matches!(trouble.rule, Rule::NoArguments | Rule::Contradiction);
    trouble.is_in_doubt || (is_of_the_whole && is_unread) || trouble.complaint.path == cautious.name
}
