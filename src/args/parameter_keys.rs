//! Keys matched to parameters: to the letter, or uniquely when only letters and digits count.

use super::{
    arguments::{CallReader, whole_text},
    heuristics,
    limits::KEY_BYTES_MAX,
    outcome::{ArgumentIssue, ArgumentRepair},
    parsed_value::{self, Pair, ParsedValue},
    rules::ReaderRule,
    shape::{ParameterShape, ValueKind},
};
use serde_json::Map;
use unicode_normalization::UnicodeNormalization as _;

impl CallReader<'_> {
    /// Reads pairs; `flaw` is what is wrong where none of them is known, if they were read without brackets.
    pub(super) fn pairs(&mut self, pairs: &[Pair], flaw: Option<ArgumentIssue>) {
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
        let of_owner = |wanted: Option<usize>| {
            let owned = pairs.iter().zip(&owners);
            owned.filter_map(move |(pair, owner)| (*owner == wanted).then_some(pair))
        };
        // Keys of parameters are compared as values.
        if parsed_value::contradict(of_owner(None)) {
            let reason = "a key is given twice with different values";
            let issue = whole_text(ReaderRule::Contradiction, "duplicate_keys", reason);
            return self.add_text_issue(issue, "");
        }
        self.sent = owners.iter().flatten().copied().collect();
        self.given = Map::with_capacity(self.sent.len());
        for ((key, _), owner) in pairs.iter().zip(&owners) {
            if let Some(param) = owner.and_then(|index| self.shape.params.get(index)) {
                self.note_spelling(&param.name, key);
            }
        }
        for (index, param) in self.shape.params.iter().enumerate() {
            let sent = of_owner(Some(index)).map(|(_, node)| node);
            for node in sent.clone() {
                self.search_fields(&param.kind, node);
            }
            self.param(param, sent);
        }
        // What other keys mean depends on what is used.
        self.unknown_keys(&of_owner(None).collect::<Vec<_>>());
    }

    /// Returns whether a key means a parameter.
    pub(super) fn is_param(&self, key: &str) -> bool {
        find(&self.shape.params, key).is_some()
    }

    /// Returns whether pairs without a parameter are not arguments, or hold arguments where none are expected. Their
    /// requests still count then.
    fn has_lost_arguments(&mut self, pairs: &[Pair], flaw: Option<ArgumentIssue>) -> bool {
        let is_no_argument = |(key, node): &Pair| {
            heuristics::is_template_pair(key, node) || heuristics::holds_schema(node)
        };
        if pairs.iter().any(is_no_argument) {
            return false;
        }
        let lost = self.lost_arguments(pairs);
        let (issue, node) = match (flaw, lost) {
            (Some(flaw), _) if !pairs.is_empty() => (flaw, ParsedValue::Map(pairs.to_vec())),
            (_, Some((key, node))) => (self.nested(&parsed_value::shown(key), node), node.clone()),
            _ => return false,
        };
        self.search_unread("", &ParsedValue::Map(pairs.to_vec()));
        self.add_issue(issue, &node);
        true
    }

    fn note_spelling(&mut self, name: &str, key: &str) {
        if name != key {
            let reason = "the parameter's name in another spelling";
            self.coercer.repairs.push(ArgumentRepair {
                got: parsed_value::shown(key),
                used: name.to_owned(),
                ..ArgumentRepair::new(name, "key_form", ReaderRule::Form.cost(), reason)
            });
        }
    }
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
    let is_alias = |param: &ParameterShape| param.aliases.iter().any(|alias| alias == key);
    let to_the_letter = params.iter().position(|param| param.name == key);
    to_the_letter
        .or_else(|| params.iter().position(is_alias))
        .or_else(|| {
            let mut same = params
                .iter()
                .enumerate()
                .filter(|(_, param)| answers_to(param, key));
            let (index, _) = same.next()?;
            same.next().is_none().then_some(index)
        })
}

/// `scene_name` names a scene as well as `scene` does.
fn answers_to(param: &ParameterShape, key: &str) -> bool {
    let is_named =
        matches!(param.kind, ValueKind::Name { .. }) && parsed_value::ends_with_word(key, "name");
    let stem = key
        .get(..key.len().saturating_sub("name".len()))
        .filter(|_| is_named);
    let key = heuristics::without_remark(key);
    let has_letters = key.chars().any(char::is_alphanumeric);
    let mut names = std::iter::once(&param.name).chain(&param.aliases);
    has_letters
        && names.any(|name| {
            heuristics::same_key(name, key)
                || stem.is_some_and(|stem| heuristics::same_key(name, stem))
        })
}
