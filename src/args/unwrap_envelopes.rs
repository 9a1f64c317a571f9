//! Removes what wraps the arguments: envelopes, lists of one, texts in texts, the tool's own name.

use super::{
    arguments::{CallReader, flaw_issue, whole_text},
    candidates::{self, TextFlaw},
    form_repair::FormRepair,
    heuristics,
    judge::ReaderRule,
    leftover::is_id,
    limits::PAIRS_MAX,
    name::{self, NameResolution},
    outcome::ArgumentIssue,
    parsed_value::{self, Pair, ParsedValue},
    unbracketed,
};

impl CallReader<'_> {
    /// Returns the pairs inside any envelopes and lists of one that surround them.
    pub(super) fn unwrapped_pairs(
        &mut self,
        node: ParsedValue,
        left: usize,
    ) -> Result<Vec<Pair>, ArgumentIssue> {
        match node {
            _ if node.is_empty() => Ok(Vec::new()),
            ParsedValue::Map(pairs) => self.without_envelope(pairs, left),
            ParsedValue::List(items) if self.are_pairs(&items) => {
                self.note_form(FormRepair::Tuple);
                self.without_envelope(as_pairs(items), left)
            }
            ParsedValue::List(mut items) if items.len() == 1 => {
                self.note_form(FormRepair::ListOfOne);
                self.unwrapped_pairs(items.pop().unwrap_or(ParsedValue::Null), left)
            }
            ParsedValue::List(mut items) if are_repeats(&items) => {
                self.note_form(FormRepair::Repeated);
                self.unwrapped_pairs(items.pop().unwrap_or(ParsedValue::Null), left)
            }
            ParsedValue::List(items) if are_objects(&items) => {
                Err(flaw_issue(TextFlaw::TwoObjects))
            }
            ParsedValue::List(items) if self.judges_unknown_keys() && holds_one_object(&items) => {
                let (objects, others): (Vec<_>, Vec<_>) = items
                    .into_iter()
                    .partition(|item| matches!(item, ParsedValue::Map(_)));
                others.iter().for_each(|item| self.leave_all(item));
                self.unwrapped_pairs(ParsedValue::List(objects), left)
            }
            ParsedValue::List(items) if items.iter().any(holds_object) => {
                Err(flaw_issue(TextFlaw::Garbled))
            }
            ParsedValue::Text(text) | ParsedValue::Word(text) => self.read_inner_text(&text, left),
            node if self.judges_unknown_keys() => {
                self.leave_all(&node);
                Ok(Vec::new())
            }
            _ => Err(flaw_issue(TextFlaw::NoArguments)),
        }
    }

    /// Returns whether items are pairs, as Python prints those of a dictionary: `[("scene", "koi"), ("fps", 5)]`.
    fn are_pairs(&self, items: &[ParsedValue]) -> bool {
        items.iter().all(|item| match item {
            ParsedValue::List(pair) => {
                matches!(pair.as_slice(), [ParsedValue::Text(key), _] if self.is_param(key))
            }
            _ => false,
        })
    }

    fn read_inner_text(&mut self, text: &str, left: usize) -> Result<Vec<Pair>, ArgumentIssue> {
        let left = spend_level(left)?;
        let candidate = candidates::of_text(text).swap_remove(0);
        self.note_form(FormRepair::TextInText);
        self.note_forms(&candidate.forms);
        let is_text = candidate.node.as_text().is_some();
        let flaw = match candidate.flaw {
            Some(flaw) => Some(flaw),
            None if is_text || !self.account_for(&candidate) => Some(TextFlaw::NoArguments),
            None => None,
        };
        match flaw {
            Some(flaw) => {
                self.add_flaw(flaw, text);
                Ok(Vec::new())
            }
            None => self.unwrapped_pairs(candidate.node, left),
        }
    }

    pub(super) fn knows_a_key(&self, node: &ParsedValue) -> bool {
        // `args = {"scene": "koi"}` is an envelope, and `stroke: {"scene": "koi"}` is one of a call.
        let is_key = |(key, inner): &Pair| {
            self.is_param(key)
                || heuristics::is_envelope(key, inner)
                || is_named_call(&self.shape.tool_names, key, inner)
        };
        let is_known = |pairs: &[Pair]| pairs.iter().any(is_key);
        node.as_pairs()
            .is_none_or(|pairs| pairs.is_empty() || is_known(pairs))
    }

    fn without_envelope(
        &mut self,
        pairs: Vec<Pair>,
        left: usize,
    ) -> Result<Vec<Pair>, ArgumentIssue> {
        if pairs.len() > PAIRS_MAX {
            let reason = "there are more keys than any tool has arguments";
            // Their meaning is unknown, so no default can stand in for them.
            let rule = ReaderRule::Contradiction;
            return Err(whole_text(rule, "too_many_keys", reason));
        }
        let is_param = |key: &str| self.is_param(key);
        if pairs.iter().all(|(key, _)| is_param(key)) && !heuristics::is_signature(pairs.iter()) {
            return Ok(pairs);
        }
        if heuristics::is_schema_of_arguments(&pairs, &is_param) {
            let reason = "this is a schema, not arguments";
            return Err(whole_text(ReaderRule::Contradiction, "schema_echo", reason));
        }
        if parsed_value::contradict(pairs.iter().filter(|(key, _)| !is_param(key))) {
            let reason = "a key is given twice with different values";
            let rule = ReaderRule::Contradiction;
            return Err(whole_text(rule, "duplicate_keys", reason));
        }
        let names = &self.shape.tool_names;
        let wraps = |(key, value): &Pair| {
            !is_param(key)
                && (heuristics::is_envelope(key, value)
                    || heuristics::is_call(key, value)
                    || is_named_call(names, key, value)
                    || self.holds_all_arguments(&pairs, value))
        };
        let holds_several = |(key, value): &Pair| {
            let are_several = matches!(value, ParsedValue::List(items)
                if items.len() > 1 && are_objects(items) && !are_repeats(items));
            are_several && !is_param(key) && heuristics::is_wrapper(key)
        };
        if pairs.iter().any(holds_several) {
            return Err(flaw_issue(TextFlaw::TwoObjects));
        }
        let mut wrappers = pairs.iter().enumerate().filter(|(_, pair)| wraps(pair));
        match (wrappers.next(), wrappers.next()) {
            (None, _) => self.scalar_envelope(pairs, left),
            (Some(_), Some(_)) => Err(flaw_issue(TextFlaw::TwoObjects)),
            (Some((at, _)), None) => {
                self.note_form(FormRepair::Envelope);
                self.unwrapped(pairs, at, left)
            }
        }
    }

    /// Returns whether the only key holds nothing but parameters, as in `{"stroke": {"scene": "koi"}}`, for a tool whose
    /// name is not known.
    fn holds_all_arguments(&self, pairs: &[Pair], value: &ParsedValue) -> bool {
        let is_alone = self.shape.tool_names.is_empty() && pairs.len() == 1 && !self.shape.open;
        let are_params =
            |pairs: &[Pair]| !pairs.is_empty() && pairs.iter().all(|(key, _)| self.is_param(key));
        is_alone && value.as_pairs().is_some_and(are_params)
    }

    /// Opens a sole envelope that holds no object, as in `{"arguments": ""}` and `{"input": "koi"}`.
    fn scalar_envelope(
        &mut self,
        pairs: Vec<Pair>,
        left: usize,
    ) -> Result<Vec<Pair>, ArgumentIssue> {
        let is_envelope = |key: &str| !self.is_param(key) && heuristics::is_wrapper(key);
        let is_call = |(key, _): &Pair| {
            !self.is_param(key)
                && (heuristics::is_wrapper(key)
                    || heuristics::is_tool_name(key)
                    || heuristics::stands_beside_a_call(key))
        };
        // Beside parameters, only a text under `arguments` itself certainly holds more of them.
        let is_more = |(key, value): &Pair| {
            let is_text = value.as_text().is_some_and(|text| !text.trim().is_empty());
            is_text && heuristics::same_key(key, "arguments")
        };
        let opens = |at: &usize| pairs.iter().all(is_call) || pairs.get(*at).is_some_and(is_more);
        let at = pairs.iter().position(|(key, _)| is_envelope(key));
        match at.filter(opens) {
            Some(at) => {
                self.note_form(FormRepair::Envelope);
                self.unwrapped(pairs, at, left)
            }
            None => Ok(pairs),
        }
    }

    fn unwrapped(
        &mut self,
        mut pairs: Vec<Pair>,
        at: usize,
        left: usize,
    ) -> Result<Vec<Pair>, ArgumentIssue> {
        let left = spend_level(left)?;
        let (_, inner) = pairs.remove(at);
        let (mut out, mut beside) = (Vec::new(), Vec::new());
        for pair in pairs {
            match self.is_param(&pair.0) {
                true => out.push(pair),
                false if is_call_mark(&pair.0, &pair.1) => {
                    let reason = "stands beside the arguments; ignored";
                    self.note_ignored(&pair.0, &pair.1, "envelope", reason);
                }
                false => beside.push(pair),
            }
        }
        let is_given = out.iter().any(|(key, _)| self.is_param(key));
        let inside = self.unwrapped_pairs(inner, left).map_err(|issue| {
            // Defaults would replace the arguments beside the envelope.
            let rule = match issue.rule {
                ReaderRule::NoArguments if is_given => ReaderRule::Contradiction,
                rule => rule,
            };
            ArgumentIssue { rule, ..issue }
        });
        out.extend(inside?);
        // What stands beside an envelope is judged as keys at the top level are.
        match self.judges_unknown_keys() {
            true => out.extend(beside),
            false => beside
                .iter()
                .for_each(|(key, node)| self.pass_beside(key, node)),
        }
        Ok(out)
    }

    /// Passes over what stands beside an envelope in arguments for a foreign schema.
    fn pass_beside(&mut self, key: &str, node: &ParsedValue) {
        match node.as_text().filter(|tool| !tool.trim().is_empty()) {
            Some(tool) if heuristics::is_tool_name(key) => self.check_called_name(key, tool),
            _ => self.take_unknown_key(key, node),
        }
    }

    /// Checks the name of a call at a key beside the arguments, or before them: the tool's own name is form, another tool's
    /// makes another call, and any other name is left over.
    pub(super) fn check_called_name(&mut self, key: &str, tool: &str) {
        let node = ParsedValue::Text(tool.to_owned());
        let ours = &self.shape.tool_names;
        let is_ours = matches!(name::resolve(tool, ours), NameResolution::Resolved { .. });
        let is_form =
            ours.is_empty() || tool == "tools/call" || unbracketed::CONSTRUCTORS.contains(&tool);
        if is_ours || is_form {
            let reason = "the tool's name among the arguments; ignored";
            self.note_ignored(key, &node, "tool_name", reason);
            if let Some(namespace) = name::foreign_namespace(tool, ours).filter(|_| !is_form) {
                self.leave_words(vec![namespace.to_owned()]);
            }
            return;
        }
        let others = &self.shape.other_tools;
        if matches!(name::resolve(tool, others), NameResolution::Unknown { .. }) {
            return self.leave_key(key, &node);
        }
        self.refuse_other_tool(key, tool);
    }
}

/// Turns lists of two into pairs.
fn as_pairs(items: Vec<ParsedValue>) -> Vec<Pair> {
    let pair = |item| {
        let ParsedValue::List(pair) = item else {
            return None;
        };
        match <[ParsedValue; 2]>::try_from(pair) {
            Ok([ParsedValue::Text(key), value]) => Some((key, value)),
            _ => None,
        }
    };
    items.into_iter().filter_map(pair).collect()
}

/// Returns whether an item of a list is an object, also as text.
fn holds_object(item: &ParsedValue) -> bool {
    match item {
        ParsedValue::Map(_) => true,
        ParsedValue::List(items) => items.iter().any(holds_object),
        item => item.as_text().is_some_and(|text| text.contains('{')),
    }
}

/// Returns whether a list holds one object among values that hold none.
fn holds_one_object(items: &[ParsedValue]) -> bool {
    let objects = items.iter().filter(|item| holds_object(item));
    objects.clone().count() == 1
        && objects
            .clone()
            .all(|item| matches!(item, ParsedValue::Map(_)))
}

/// Returns whether a list is the same object several times.
fn are_repeats(items: &[ParsedValue]) -> bool {
    let are_equal = items.windows(2).all(|pair| pair.first() == pair.last());
    are_objects(items) && are_equal && items.first().is_some_and(|item| !item.is_empty())
}

fn are_objects(items: &[ParsedValue]) -> bool {
    items.iter().all(|item| matches!(item, ParsedValue::Map(_)))
}

/// Returns whether a key is the tool's own name as an envelope: `{"stroke": {"scene": "koi"}}`.
fn is_named_call(names: &[String], key: &str, value: &ParsedValue) -> bool {
    matches!(value, ParsedValue::Map(_)) && names.iter().any(|name| heuristics::same_key(name, key))
}

/// Returns whether a pair beside an envelope only identifies the call: an id, a kind, a number.
fn is_call_mark(key: &str, node: &ParsedValue) -> bool {
    let is_one_of = |keys: &[&str]| heuristics::is_one_of(key, keys);
    let says = |words: &[&str]| node.as_text().is_some_and(|text| words.contains(&text));
    (is_one_of(&["id", "index"]) && is_id(node))
        || (is_one_of(&["type"]) && says(&["function", "function_call", "tool_call", "tool_use"]))
        || (is_one_of(&["jsonrpc"]) && says(&["2.0"]))
}

/// Returns how many envelopes or texts may still be opened after this one.
fn spend_level(left: usize) -> Result<usize, ArgumentIssue> {
    let reason = "the arguments are wrapped too many times";
    left.checked_sub(1)
        .ok_or_else(|| whole_text(ReaderRule::Contradiction, "too_deep", reason))
}
