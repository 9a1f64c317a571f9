//! Keys matched to parameters: to the letter, or uniquely when only letters and digits count.

use super::{
    arguments::{CallReader, whole_text},
    heuristics,
    limits::KEY_BYTES_MAX,
    outcome::{ArgumentIssue, ArgumentRepair},
    parsed_value::{self, ParsedValue},
    rules::{ReaderRule, RepairClass},
    shape::{ParameterShape, ValueKind},
    value_coercion::dropped,
};
use serde_json::Map;
use std::collections::HashMap;
use unicode_normalization::UnicodeNormalization as _;

impl CallReader<'_> {
    /// Reads pairs; `flaw` is what is wrong where none of them is known, if they were read without brackets.
    pub(super) fn pairs(&mut self, pairs: &[(String, ParsedValue)], flaw: Option<ArgumentIssue>) {
        let owners: Vec<_> = pairs
            .iter()
            .map(|(key, node)| match node {
                ParsedValue::Map(_) if key == heuristics::PROTOCOL_KEY => None,
                _ => find(&self.shape.params, key),
            })
            .collect();
        if owners.iter().all(Option::is_none) && self.has_lost_arguments(pairs, flaw) {
            return;
        }
        if contradicts(pairs, &owners) {
            let why = "a key is given twice with different values";
            return self.add_text_issue(
                whole_text(ReaderRule::Contradiction, "duplicate_keys", why),
                "",
            );
        }
        self.sent = owners.iter().flatten().copied().collect();
        self.given = Map::with_capacity(self.sent.len());
        for ((key, node), owner) in pairs.iter().zip(&owners) {
            if let Some(index) = owner {
                self.note_spelling(*index, key, node);
            }
        }
        for (index, param) in self.shape.params.iter().enumerate() {
            let is_sent = move |(_, owner): &(_, &Option<usize>)| **owner == Some(index);
            let sent = pairs.iter().zip(&owners).filter(is_sent);
            let sent = sent.map(|((_, node), _)| node);
            sent.clone()
                .for_each(|node| self.search_fields(&param.kind, node));
            self.param(param, sent);
        }
        // What other keys mean depends on what is used.
        let unknown = pairs
            .iter()
            .zip(&owners)
            .filter(|(_, owner)| owner.is_none());
        self.unknown_keys(unknown.map(|(pair, _)| pair));
    }

    /// Returns whether pairs without a parameter are not arguments, or hold arguments where none are expected. Their
    /// requests still count then.
    fn has_lost_arguments(
        &mut self,
        pairs: &[(String, ParsedValue)],
        flaw: Option<ArgumentIssue>,
    ) -> bool {
        let is_no_argument = |(key, node): &(String, ParsedValue)| {
            heuristics::is_template_pair(key, node) || heuristics::holds_schema(node)
        };
        if pairs.iter().any(is_no_argument) {
            return false;
        }
        let lost = self.lost_arguments(pairs);
        let (trouble, node) = match (flaw, lost) {
            (Some(flaw), _) if !pairs.is_empty() => (flaw, ParsedValue::Map(pairs.to_vec())),
            (_, Some((key, node))) => (self.nested(&parsed_value::shown(key), node), node.clone()),
            _ => return false,
        };
        self.search_unread("", &ParsedValue::Map(pairs.to_vec()));
        self.trouble(trouble, &node);
        true
    }

    pub(super) fn note_spelling(&mut self, index: usize, key: &str, node: &ParsedValue) {
        let name = self.shape.params.get(index).map_or("", |param| &param.name);
        if name != key {
            let repair = ArgumentRepair {
                used: name.to_owned(),
                class: RepairClass::L0,
                ..dropped(
                    name,
                    node,
                    "key_form",
                    ReaderRule::Form,
                    "the parameter's name in another spelling",
                )
            };
            self.coercer.repairs.push(ArgumentRepair {
                got: parsed_value::shown(key),
                ..repair
            });
        }
    }
}

/// Returns whether keys without a parameter contradict each other. Keys of parameters are compared as values.
fn contradicts(pairs: &[(String, ParsedValue)], owners: &[Option<usize>]) -> bool {
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
pub(super) fn find(params: &[ParameterShape], key: &str) -> Option<usize> {
    if key.len() > KEY_BYTES_MAX || heuristics::is_marked(key) {
        return None;
    }
    if !key.is_ascii() {
        let plain: String = key.nfkc().collect();
        if plain != key {
            return find(params, &plain);
        }
    }
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
fn answers_to(param: &ParameterShape, key: &str) -> bool {
    let stem = key
        .len()
        .checked_sub("name".len())
        .filter(|_| matches!(param.kind, ValueKind::Name { .. }))
        .filter(|at| {
            key.get(*at..)
                .is_some_and(|end| end.eq_ignore_ascii_case("name"))
        })
        .and_then(|at| key.get(..at));
    let key = heuristics::without_remark(key);
    let has_letters = key.chars().any(char::is_alphanumeric);
    let mut names = std::iter::once(&param.name).chain(&param.aliases);
    has_letters
        && names.any(|name| {
            heuristics::same_key(name, key)
                || stem.is_some_and(|stem| heuristics::same_key(name, stem))
        })
}
