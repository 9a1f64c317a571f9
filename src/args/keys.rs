//! Keys matched to parameters: to the letter, or uniquely when only letters and digits count.

use super::{
    arguments::{Call, flaw_trouble, whole_text},
    candidates::Flaw,
    meaning,
    node::{self, Node},
    outcome::Repair,
    rules::{Class, Rule},
    shape::{Kind, Param},
    values::dropped,
};
use serde_json::Map;
use std::collections::HashMap;

impl Call<'_> {
    pub(super) fn pairs(&mut self, pairs: &[(String, Node)], is_loose: bool) {
        let owners: Vec<_> = pairs
            .iter()
            .map(|(key, node)| match node {
                Node::Map(_) if key == meaning::PROTOCOL_KEY => None,
                _ => find(&self.shape.params, key),
            })
            .collect();
        if is_loose && !pairs.is_empty() && owners.iter().all(Option::is_none) {
            return self.trouble(flaw_trouble(Flaw::NoArguments), &Node::Map(pairs.to_vec()));
        }
        if owners.iter().all(Option::is_none)
            && let Some((key, node)) = self.lost_arguments(pairs)
        {
            return self.trouble(self.nested(&node::shown(key), node), node);
        }
        if contradicts(pairs, &owners) {
            let why = "a key is given twice with different values";
            return self.whole(whole_text(Rule::Contradiction, "duplicate_keys", why), "");
        }
        self.sent = owners.iter().flatten().copied().collect();
        self.given = Map::with_capacity(self.sent.len());
        for ((key, node), owner) in pairs.iter().zip(&owners) {
            match owner {
                None => self.unknown(key, node),
                Some(index) => self.note_spelling(*index, key, node),
            }
        }
        for (index, param) in self.shape.params.iter().enumerate() {
            let is_sent = move |(_, owner): &(_, &Option<usize>)| **owner == Some(index);
            let sent = pairs.iter().zip(&owners).filter(is_sent);
            self.param(param, sent.map(|((_, node), _)| node));
        }
    }

    pub(super) fn note_spelling(&mut self, index: usize, key: &str, node: &Node) {
        let name = self.shape.params.get(index).map_or("", |param| &param.name);
        if name != key {
            let repair = Repair {
                used: name.to_owned(),
                class: Class::L0,
                ..dropped(
                    name,
                    node,
                    "key_form",
                    Rule::Form,
                    "the parameter's name in another spelling",
                )
            };
            self.coercer.repairs.push(Repair {
                got: node::shown(key),
                ..repair
            });
        }
    }
}

/// Whether keys that are no parameter contradict each other; those that are one are compared as values.
fn contradicts(pairs: &[(String, Node)], owners: &[Option<usize>]) -> bool {
    if owners.iter().all(Option::is_some) {
        return false;
    }
    let mut seen = HashMap::new();
    let unknown = pairs
        .iter()
        .zip(owners)
        .filter(|(_, owner)| owner.is_none());
    unknown.map(|(pair, _)| pair).any(|(key, node)| {
        seen.insert(key, node).is_some_and(|before| before != node) || node.contradicts_itself()
    })
}

/// The parameter that a key means: to the letter, or uniquely when only letters and digits count.
pub(super) fn find(params: &[Param], key: &str) -> Option<usize> {
    if let Some(index) = params.iter().position(|param| param.name == key) {
        return Some(index);
    }
    if let Some(index) = params
        .iter()
        .position(|param| param.aliases.iter().any(|alias| alias == key))
    {
        return Some(index);
    }
    let mut same = params
        .iter()
        .enumerate()
        .filter(|(_, param)| answers_to(param, key));
    let (index, _) = same.next()?;
    same.next().is_none().then_some(index)
}

/// `scene_name` names a scene as well as `scene` does.
fn answers_to(param: &Param, key: &str) -> bool {
    let stem = key
        .len()
        .checked_sub("name".len())
        .filter(|_| matches!(param.kind, Kind::Name { .. }))
        .filter(|at| {
            key.get(*at..)
                .is_some_and(|end| end.eq_ignore_ascii_case("name"))
        })
        .and_then(|at| key.get(..at));
    let key = meaning::without_remark(key);
    let has_letters = key.chars().any(char::is_alphanumeric);
    let mut names = std::iter::once(&param.name).chain(&param.aliases);
    has_letters
        && names.any(|name| {
            meaning::same_key(name, key) || stem.is_some_and(|stem| meaning::same_key(name, stem))
        })
}
