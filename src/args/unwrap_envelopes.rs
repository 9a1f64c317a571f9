//! Removes what wraps the arguments: envelopes, lists of one, texts in texts, the tool's own name.

use super::{
    arguments::{CallReader, flaw_issue, whole_text},
    candidates::{self, TextFlaw},
    form_repair::FormRepair,
    heuristics,
    limits::PAIRS_MAX,
    name::{self, NameResolution},
    outcome::ArgumentIssue,
    parsed_value::{self, Pair, ParsedValue},
    rules::ReaderRule,
    unbracketed,
    unknown_keys::is_doubt,
    vocabulary::vocabulary,
    withheld::{asks_not_to_move, is_none, may_forbid},
    word_table::FoldedText,
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
            ParsedValue::List(items) if items.iter().any(holds_object) => {
                Err(flaw_issue(TextFlaw::Garbled))
            }
            ParsedValue::Text(text) | ParsedValue::Word(text) => self.read_inner_text(&text, left),
            node => Err(self.flaw_of_value(&node)),
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
        if let Some(tool) = &candidate.tool {
            self.check_called_name(tool);
        }
        self.judge_empty_call(&candidate, text);
        let is_prose = candidate.is_loose && !self.knows_a_key(&candidate.node);
        match candidate.flaw {
            _ if is_prose => Err(self.flaw_without_default(TextFlaw::NoArguments, text)),
            Some(flaw) => Err(self.flaw_without_default(flaw, text)),
            None if candidate.node.as_text().is_some() => {
                Err(self.flaw_without_default(TextFlaw::NoArguments, text))
            }
            None => self.unwrapped_pairs(candidate.node, left),
        }
    }

    fn knows_a_key(&self, node: &ParsedValue) -> bool {
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
        let asks = |(key, _): &Pair| may_forbid(key);
        let is_alone = is_alone && !(self.judges_unknown_keys() && pairs.iter().any(asks));
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
        let mut out = Vec::new();
        for (key, value) in pairs {
            if self.is_param(&key) {
                out.push((key, value));
            } else if let Some(tool) = value.as_text().filter(|tool| !tool.trim().is_empty())
                && heuristics::is_tool_name(&key)
            {
                self.check_called_name(tool);
            } else if !heuristics::stands_beside_a_call(&key)
                || !is_plain_mark(&key, &value)
                || self.names_other(&key, &value)
            {
                out.push((key, value));
            } else if !self.withholds(&key, &value) {
                let reason = "stands beside the arguments; ignored";
                self.note_ignored(&key, &value, "envelope", reason);
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
        Ok(out)
    }

    /// Withholds the call if the tool's name asks for a dry run, or names a tool for stopping, testing or the like.
    fn withhold_by_name(&mut self, path: &str, tool: &str, resolution: &NameResolution) -> bool {
        let is_other = matches!(resolution, NameResolution::Unknown { .. });
        if is_other {
            // The name is judged as a request and as a mode, but not as an answer to itself: `stop` does not say "no" to `stop`.
            let word = ParsedValue::Text(tool.to_owned());
            let asks = self.judges_unknown_keys()
                && (asks_not_to_move(tool, &ParsedValue::Flag) || asks_not_to_move("name", &word));
            if asks {
                self.withhold(path, parsed_value::shown(tool), ReaderRule::Meaningless);
            }
            return asks;
        }
        // The name itself is the tool's own, whatever its words mean.
        let end = tool.rfind(['.', '/', ':']).unwrap_or(0);
        let namespace = tool.get(..end).unwrap_or_default();
        self.withholds("name", &ParsedValue::Text(namespace.to_owned()))
    }

    /// Checks the name of a call. One that denies or postpones is no tool's: `[not]`, `later(scene="koi")`,
    /// `{"name": "never", "arguments": {}}`.
    pub(super) fn check_called_name(&mut self, tool: &str) {
        let (vocab, folded) = (vocabulary(), FoldedText::new(tool));
        let is_denial = vocab.negations.is_in(&folded) || vocab.conditions.is_in(&folded);
        let ours = &self.shape.tool_names;
        let is_unknown = matches!(name::resolve(tool, ours), NameResolution::Unknown { .. });
        let is_other = is_unknown && !ours.is_empty();
        if is_denial && is_other && self.judges_unknown_keys() {
            self.withhold("name", parsed_value::shown(tool), ReaderRule::ForeignKey);
        } else {
            self.check_tool_name("name", tool, &ParsedValue::Text(tool.to_owned()));
        }
    }

    /// Checks a tool name at a path beside or instead of the arguments: the tool's own name is form, another name is another call.
    pub(super) fn check_tool_name(&mut self, path: &str, tool: &str, node: &ParsedValue) {
        let ours = &self.shape.tool_names;
        if self.judges_unknown_keys() && is_none(node) {
            return self.add_no_call(path, node);
        }
        let resolution = name::resolve(tool, ours);
        let is_exact = matches!(resolution, NameResolution::Resolved { exact: true, .. });
        // The namespace before the tool's own name counts too, as in `dry_run.stroke`.
        if !is_exact && self.withhold_by_name(path, tool, &resolution) {
            return;
        }
        let is_ours = !matches!(resolution, NameResolution::Unknown { .. });
        if ours.is_empty()
            || is_ours
            || tool == "tools/call"
            || unbracketed::CONSTRUCTORS.contains(&tool)
        {
            let reason = "the tool's name among the arguments; ignored";
            return self.note_ignored(path, node, "tool_name", reason);
        }
        let reason = "another tool is named among the arguments";
        // A known tool is another call in every profile; a parameter's name shows that a value was meant for it.
        let is_certain = vocabulary().is_other_tool(tool) || self.is_param(tool);
        let rule = match is_certain {
            true => ReaderRule::Contradiction,
            false => ReaderRule::ForeignKey,
        };
        let issue = ArgumentIssue::new(rule, "other_tool", path, reason)
            .received(parsed_value::shown(tool));
        self.add_issue(issue.expected("no tool's name"), node);
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

/// Returns whether a value beside a call only identifies the call: an id, a kind, a number.
fn is_plain_mark(key: &str, value: &ParsedValue) -> bool {
    let is_plain = match value {
        ParsedValue::Map(_) | ParsedValue::List(_) => value.is_empty(),
        value => !matches!(value, ParsedValue::Bool(_)),
    };
    is_plain && !is_doubt(key, value)
}

/// Returns how many envelopes or texts may still be opened after this one.
fn spend_level(left: usize) -> Result<usize, ArgumentIssue> {
    let reason = "the arguments are wrapped too many times";
    left.checked_sub(1)
        .ok_or_else(|| whole_text(ReaderRule::Contradiction, "too_deep", reason))
}
