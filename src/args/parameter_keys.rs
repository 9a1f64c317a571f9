//! Matches keys to parameters: exactly, or uniquely when only letters and digits count.

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
    /// Reads pairs; `flaw` is the issue with pairs read without brackets if none of their keys is known.
    pub(super) fn read_pairs(&mut self, pairs: &[Pair], flaw: Option<ArgumentIssue>) {
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
        let of_owner = |index: Option<usize>| {
            let owned = pairs.iter().zip(&owners);
            owned.filter_map(move |(pair, owner)| (*owner == index).then_some(pair))
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
            self.read_param(param, sent);
        }
        // The meaning of unknown keys depends on the arguments in use.
        self.judge_unknown_keys(&of_owner(None).collect::<Vec<_>>());
    }

    /// Returns whether a key means a parameter.
    pub(super) fn is_param(&self, key: &str) -> bool {
        find(&self.shape.params, key).is_some()
    }

    /// Returns the parameter that a key means.
    pub(super) fn param_named(&self, key: &str) -> Option<&ParameterShape> {
        find(&self.shape.params, key).and_then(|at| self.shape.params.get(at))
    }

    /// Returns whether pairs without a known key are not arguments, or hold arguments where none are expected. Their
    /// requests still count then.
    fn has_lost_arguments(&mut self, pairs: &[Pair], flaw: Option<ArgumentIssue>) -> bool {
        let is_stand_in = |(key, node): &Pair| {
            heuristics::is_template_pair(key, node) || heuristics::holds_schema(node)
        };
        if pairs.iter().any(is_stand_in) {
            return false;
        }
        let lost = self.lost_arguments(pairs);
        let (issue, node) = match (flaw, lost) {
            (Some(flaw), _) if !pairs.is_empty() => (flaw, ParsedValue::Map(pairs.to_vec())),
            // Nothing else was sent, so defaults would replace the whole call.
            (_, Some((key, node))) => {
                let (rule, shown) = (ReaderRule::Contradiction, parsed_value::shown(key));
                (self.nested_issue(rule, &shown, node), node.clone())
            }
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

/// Returns the parameter that a key means: exactly, or uniquely when only letters and digits count.
pub(super) fn find(params: &[ParameterShape], key: &str) -> Option<usize> {
    if key.len() > KEY_BYTES_MAX || heuristics::is_marked(key) {
        return None;
    }
    if !key.is_ascii() {
        let normalised: String = key.nfkc().collect();
        if normalised != key {
            return find(params, &normalised);
        }
    }
    let is_alias = |param: &ParameterShape| param.aliases.iter().any(|alias| alias == key);
    let exact = params.iter().position(|param| param.name == key);
    exact
        .or_else(|| params.iter().position(is_alias))
        .or_else(|| {
            // The protocol's own key is no spelling of another.
            if key == heuristics::PROTOCOL_KEY {
                return None;
            }
            let mut same = params
                .iter()
                .enumerate()
                .filter(|(_, param)| matches_key(param, key));
            let (index, _) = same.next()?;
            same.next().is_none().then_some(index)
        })
}

/// Returns whether a key is a spelling of the parameter; `scene_name` names a scene just as `scene` does.
fn matches_key(param: &ParameterShape, key: &str) -> bool {
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
