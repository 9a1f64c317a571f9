//! Matches keys to parameters: exactly, or uniquely when only letters and digits count.

use super::{
    arguments::{CallReader, whole_text},
    candidates, heuristics,
    judge::ReaderRule,
    leftover::is_ignored_key,
    limits::{KEY_BYTES_MAX, PAIRS_MAX, UNWRAP_MAX},
    outcome::{ArgumentIssue, ArgumentRepair},
    parsed_value::{self, Pair, ParsedValue},
    shape::{ParameterShape, ValueKind},
};
use serde_json::Map;
use unicode_normalization::UnicodeNormalization as _;

impl CallReader<'_> {
    /// Reads pairs; `flaw` is the issue with pairs read without brackets if none of their keys is known.
    pub(super) fn read_pairs(&mut self, pairs: &[Pair]) {
        let owners: Vec<_> = pairs
            .iter()
            .map(|(key, node)| match node {
                ParsedValue::Map(_) if key == heuristics::PROTOCOL_KEY => None,
                _ => find(&self.shape.params, key),
            })
            .collect();
        if owners.iter().all(Option::is_none) && self.has_lost_arguments(pairs) {
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
        let chooses = |(owner, (_, node)): (&Option<usize>, &Pair)| {
            let at = owner.filter(|_| !node.is_empty() && *node != ParsedValue::Bool(false))?;
            self.shape
                .params
                .get(at)
                .filter(|param| param.selects_motion)
                .map(|_| at)
        };
        self.choosing = owners.iter().zip(pairs).filter_map(chooses).collect();
        self.given = Map::with_capacity(self.sent.len());
        for ((key, _), owner) in pairs.iter().zip(&owners) {
            if let Some(param) = owner.and_then(|index| self.shape.params.get(index)) {
                self.note_spelling(&param.name, key);
            }
        }
        for (index, param) in self.shape.params.iter().enumerate() {
            let sent = of_owner(Some(index)).map(|(_, node)| node);
            self.read_param(param, sent);
        }
        self.take_unknown_keys(&of_owner(None).collect::<Vec<_>>());
    }

    /// Returns whether a key means a parameter.
    pub(super) fn is_param(&self, key: &str) -> bool {
        find(&self.shape.params, key).is_some()
    }

    /// Refuses a call by a foreign schema whose only arguments stand under a key that none has: defaults would replace the
    /// whole call. For the tools of this program they are left over.
    fn has_lost_arguments(&mut self, pairs: &[Pair]) -> bool {
        let is_stand_in = |(key, node): &Pair| {
            heuristics::is_template_pair(key, node) || heuristics::holds_schema(node)
        };
        let lost = pairs.iter().find(|(key, node)| {
            !is_ignored_key(key, node) && self.holds_arguments(node, UNWRAP_MAX)
        });
        let is_refused = !self.judges_unknown_keys() && !pairs.iter().any(is_stand_in);
        let Some((key, node)) = lost.filter(|_| is_refused) else {
            return false;
        };
        let reason = "this holds arguments where none are expected; send them at the top";
        let shown = parsed_value::shown(key);
        let issue = ArgumentIssue::new(
            ReaderRule::Contradiction,
            "nested_arguments",
            &shown,
            reason,
        );
        let issue = issue.received(parsed_value::shown_node(node));
        self.add_issue(issue.expected("the tool's own parameters"), node);
        true
    }

    /// Returns whether a parameter is given at any depth, including inside text.
    fn holds_arguments(&self, node: &ParsedValue, left: usize) -> bool {
        let Some(left) = left.checked_sub(1) else {
            return false;
        };
        match node {
            ParsedValue::Map(pairs) => pairs.iter().any(|(key, inner)| {
                (!inner.is_empty() && self.is_param(key))
                    || heuristics::is_call(key, inner)
                    || self.holds_arguments(inner, left)
            }),
            ParsedValue::List(items) if items.len() <= PAIRS_MAX => {
                items.iter().any(|item| self.holds_arguments(item, left))
            }
            ParsedValue::Text(text) if text.trim_start().starts_with('{') => {
                let inner = candidates::of_inner_text(text);
                inner.is_some_and(|inner| self.holds_arguments(&inner.node, left))
            }
            _ => false,
        }
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
    let is_alias = |param: &ParameterShape| param.aliases.iter().any(|alias| alias == key);
    let exact = params.iter().position(|param| param.name == key);
    if let Some(exact) = exact.or_else(|| params.iter().position(is_alias)) {
        return Some(exact);
    }
    // The protocol's own key is no spelling of another.
    let is_own = key == heuristics::PROTOCOL_KEY;
    if is_own || key.len() > KEY_BYTES_MAX || heuristics::is_marked(key) {
        return None;
    }
    if !key.is_ascii() {
        let normalised: String = key.nfkc().collect();
        if normalised != key {
            return find(params, &normalised);
        }
    }
    let is_named = parsed_value::ends_with_word(key, "name");
    let stem = key
        .len()
        .checked_sub("name".len())
        .and_then(|end| key.get(..end));
    let stem = stem.filter(|_| is_named);
    let bare = heuristics::without_remark(key);
    if !bare.contains(char::is_alphanumeric) {
        return None;
    }
    let mut same = params
        .iter()
        .enumerate()
        .filter(|(_, param)| is_spelling(param, bare, stem));
    let (index, _) = same.next()?;
    same.next().is_none().then_some(index)
}

/// Returns whether a key without its remark is a spelling of the parameter; `scene_name` names a scene just as `scene` does.
fn is_spelling(param: &ParameterShape, bare: &str, stem: Option<&str>) -> bool {
    let stem = stem.filter(|_| matches!(param.kind, ValueKind::Name { .. }));
    let mut names = std::iter::once(&param.name).chain(&param.aliases);
    names.any(|name| {
        heuristics::same_key(name, bare)
            || stem.is_some_and(|stem| heuristics::same_key(name, stem))
    })
}
