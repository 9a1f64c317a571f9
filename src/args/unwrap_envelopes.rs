//! Opens the text around the arguments: envelopes, lists of one, texts in texts, the tool's own name.

use super::{
    arguments::{ArgumentPairs, CallReader, flaw_trouble, whole_text},
    candidates::{self, TextFlaw},
    form_repair::FormRepair,
    heuristics,
    limits::PAIRS_MAX,
    name,
    outcome::ArgumentIssue,
    parameter_keys::find,
    parsed_value::{self, ParsedValue},
    rules::ReaderRule,
    unbracketed,
    unknown_keys::is_doubt,
    value_coercion::dropped,
    withheld::may_forbid,
};

impl CallReader<'_> {
    /// Returns the pairs inside any envelopes and lists of one that surround them.
    pub(super) fn unwrapped_pairs(
        &mut self,
        node: ParsedValue,
        left: usize,
    ) -> Result<ArgumentPairs, ArgumentIssue> {
        let no_arguments = || {
            whole_text(
                ReaderRule::NoArguments,
                "no_arguments",
                "there are no arguments in this",
            )
        };
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
            ParsedValue::List(items)
                if items.iter().all(|item| matches!(item, ParsedValue::Map(_))) =>
            {
                Err(flaw_trouble(TextFlaw::TwoObjects))
            }
            ParsedValue::Text(text) | ParsedValue::Word(text) => self.opened_text(&text, left),
            _ => Err(no_arguments()),
        }
    }

    /// `[("scene", "koi"), ("fps", 5)]`, as Python prints a dictionary's items.
    fn are_pairs(&self, items: &[ParsedValue]) -> bool {
        items.iter().all(|item| match item {
            ParsedValue::List(pair) => {
                matches!(pair.as_slice(), [ParsedValue::Text(key), _] if find(&self.shape.params, key).is_some())
            }
            _ => false,
        })
    }

    fn opened_text(&mut self, text: &str, left: usize) -> Result<ArgumentPairs, ArgumentIssue> {
        let left = one_less(left)?;
        let mut found = candidates::of_text(text);
        let candidate = found.swap_remove(0);
        self.note_form(FormRepair::TextInText);
        self.note_forms(&candidate.forms);
        if let Some(tool) = &candidate.tool {
            self.check_tool_name(tool, &ParsedValue::Text(tool.clone()));
        }
        if candidate.is_loose && !self.knows_a_key(&candidate.node) {
            return Err(flaw_trouble(TextFlaw::NoArguments));
        }
        match candidate.flaw {
            Some(flaw) => Err(flaw_trouble(flaw)),
            None if matches!(candidate.node, ParsedValue::Text(_) | ParsedValue::Word(_)) => {
                Err(flaw_trouble(TextFlaw::NoArguments))
            }
            None => self.unwrapped_pairs(candidate.node, left),
        }
    }

    fn knows_a_key(&self, node: &ParsedValue) -> bool {
        let ParsedValue::Map(pairs) = node else {
            return true;
        };
        pairs.is_empty()
            || pairs
                .iter()
                .any(|(key, _)| find(&self.shape.params, key).is_some())
    }

    fn without_envelope(
        &mut self,
        pairs: ArgumentPairs,
        left: usize,
    ) -> Result<ArgumentPairs, ArgumentIssue> {
        if pairs.len() > PAIRS_MAX {
            let why = "there are more keys than any tool has arguments";
            // What they say is not known, so there is no default for it.
            return Err(whole_text(ReaderRule::Contradiction, "too_many_keys", why));
        }
        let is_param = |key: &str| find(&self.shape.params, key).is_some();
        if pairs.iter().all(|(key, _)| is_param(key)) && !heuristics::is_signature(pairs.iter()) {
            return Ok(pairs);
        }
        if heuristics::is_schema_of_arguments(&pairs, &is_param) {
            return Err(whole_text(
                ReaderRule::Contradiction,
                "schema_echo",
                "this is a schema, not arguments",
            ));
        }
        let names = &self.shape.tool_names;
        let wraps = |(key, value): &(String, ParsedValue)| {
            !is_param(key)
                && (heuristics::is_envelope(key, value)
                    || heuristics::is_call(key, value)
                    || is_named_call(names, key, value)
                    || self.holds_all_arguments(&pairs, value))
        };
        let holds_several = |(key, value): &(String, ParsedValue)| {
            let are_several = matches!(value, ParsedValue::List(items) if items.len() > 1
                && items.iter().all(|item| matches!(item, ParsedValue::Map(_))));
            are_several && !is_param(key) && heuristics::is_wrapper(key)
        };
        if pairs.iter().any(holds_several) {
            return Err(flaw_trouble(TextFlaw::TwoObjects));
        }
        let mut wrappers = pairs.iter().enumerate().filter(|(_, pair)| wraps(pair));
        match (wrappers.next(), wrappers.next()) {
            (None, _) => self.scalar_envelope(pairs, left),
            (Some(_), Some(_)) => Err(flaw_trouble(TextFlaw::TwoObjects)),
            (Some((at, _)), None) => {
                self.note_form(FormRepair::Envelope);
                self.unwrapped(pairs, at, left)
            }
        }
    }

    /// Returns whether the only key holds nothing but parameters, as in `{"stroke": {"scene": "koi"}}`, for a tool whose
    /// name is not known.
    fn holds_all_arguments(&self, pairs: &[(String, ParsedValue)], value: &ParsedValue) -> bool {
        let is_alone = self.shape.tool_names.is_empty() && pairs.len() == 1 && !self.shape.open;
        let is_param = |(key, _): &(String, ParsedValue)| find(&self.shape.params, key).is_some();
        let asks = |(key, _): &(String, ParsedValue)| may_forbid(key);
        let is_alone = is_alone && !(self.judges_unknown_keys() && pairs.iter().any(asks));
        matches!(value, ParsedValue::Map(inner) if is_alone && !inner.is_empty() && inner.iter().all(is_param))
    }

    /// `{"arguments": ""}` and `{"input": "koi"}`: a sole envelope that holds no object.
    fn scalar_envelope(
        &mut self,
        pairs: ArgumentPairs,
        left: usize,
    ) -> Result<ArgumentPairs, ArgumentIssue> {
        let is_envelope =
            |key: &str| find(&self.shape.params, key).is_none() && heuristics::is_wrapper(key);
        let is_call = |(key, _): &(String, ParsedValue)| {
            is_envelope(key)
                || (find(&self.shape.params, key).is_none()
                    && (heuristics::is_tool_name(key) || heuristics::stands_beside_a_call(key)))
        };
        match pairs.iter().position(|(key, _)| is_envelope(key)) {
            Some(at) if pairs.iter().all(is_call) => {
                self.note_form(FormRepair::Envelope);
                self.unwrapped(pairs, at, left)
            }
            _ => Ok(pairs),
        }
    }

    fn unwrapped(
        &mut self,
        mut pairs: ArgumentPairs,
        at: usize,
        left: usize,
    ) -> Result<ArgumentPairs, ArgumentIssue> {
        let left = one_less(left)?;
        let (_, inner) = pairs.remove(at);
        let mut out = Vec::new();
        for (key, value) in pairs {
            let is_param = find(&self.shape.params, &key).is_some();
            match &value {
                ParsedValue::Text(tool) | ParsedValue::Word(tool)
                    if !is_param && heuristics::is_tool_name(&key) =>
                {
                    self.check_tool_name(tool, &value);
                }
                _ if !is_param
                    && heuristics::stands_beside_a_call(&key)
                    && is_plain_mark(&key, &value) =>
                {
                    if self.is_withheld(&key, &value) {
                        continue;
                    }
                    self.ignored(
                        &key,
                        &value,
                        "envelope",
                        "stands beside the arguments; ignored",
                    );
                }
                _ => out.push((key, value)),
            }
        }
        let is_given = out
            .iter()
            .any(|(key, _)| find(&self.shape.params, key).is_some());
        let inside = self.unwrapped_pairs(inner, left).map_err(|issue| {
            // Defaults would take the place of the arguments beside the envelope.
            let rule = match issue.rule {
                ReaderRule::NoArguments if is_given => ReaderRule::Contradiction,
                rule => rule,
            };
            ArgumentIssue { rule, ..issue }
        });
        out.extend(inside?);
        Ok(out)
    }

    /// Returns whether a tool's name asks for a dry run, or belongs to a tool for stopping, testing or the like.
    fn is_withheld_by_name(&mut self, tool: &str, resolution: &name::NameResolution) -> bool {
        let is_other = matches!(resolution, name::NameResolution::Unknown { .. });
        if is_other {
            // The name is judged as a request and as a mode; its own words are no answer to it: `stop` is no "no" to `stop`.
            let word = ParsedValue::Text(tool.to_owned());
            return self.is_withheld(tool, &ParsedValue::Flag) || self.is_withheld("name", &word);
        }
        // The name itself is the tool's own, whatever words it has.
        let end = tool.rfind(['.', '/', ':']).unwrap_or(0);
        let namespace = tool.get(..end).unwrap_or_default();
        self.is_withheld("name", &ParsedValue::Text(namespace.to_owned()))
    }

    /// Checks a tool named beside or instead of the arguments: the tool's own name is form, a different name is a different
    /// call.
    pub(super) fn check_tool_name(&mut self, tool: &str, node: &ParsedValue) {
        let ours = &self.shape.tool_names;
        let resolution = name::resolve(tool, ours);
        let is_exact = matches!(
            resolution,
            name::NameResolution::Resolved { exact: true, .. }
        );
        // What stands before the tool's own name, as in `dry_run.stroke`, is heard too.
        if !is_exact && self.is_withheld_by_name(tool, &resolution) {
            return;
        }
        let ours = &self.shape.tool_names;
        let is_ours = !matches!(resolution, name::NameResolution::Unknown { .. });
        if ours.is_empty()
            || is_ours
            || tool == "tools/call"
            || unbracketed::CONSTRUCTORS.contains(&tool)
        {
            self.coercer.repairs.push(dropped(
                "name",
                node,
                "tool_name",
                ReaderRule::Meaningless,
                "the tool's name among the arguments; ignored",
            ));
        } else {
            let trouble = ArgumentIssue::new(
                ReaderRule::ForeignKey,
                "other_tool",
                "name",
                "another tool is named among the arguments",
            )
            .received(parsed_value::shown(tool));
            self.trouble(trouble.expected("no tool's name"), node);
        }
    }
}

/// Pairs out of lists of two.
fn as_pairs(items: Vec<ParsedValue>) -> ArgumentPairs {
    let pair = |item| match item {
        ParsedValue::List(mut pair) if pair.len() == 2 => {
            let value = pair.pop()?;
            match pair.pop()? {
                ParsedValue::Text(key) => Some((key, value)),
                _ => None,
            }
        }
        _ => None,
    };
    items.into_iter().filter_map(pair).collect()
}

/// `{"stroke": {"scene": "koi"}}`: the tool's own name as an envelope.
fn is_named_call(names: &[String], key: &str, value: &ParsedValue) -> bool {
    matches!(value, ParsedValue::Map(_)) && names.iter().any(|name| heuristics::same_key(name, key))
}

/// Returns whether a value beside a call says no more than which call it is: an id, a kind, a number.
fn is_plain_mark(key: &str, value: &ParsedValue) -> bool {
    let is_plain = match value {
        ParsedValue::Map(_) | ParsedValue::List(_) => value.is_empty(),
        value => !matches!(value, ParsedValue::Bool(_)),
    };
    is_plain && !is_doubt(key, value)
}

/// One envelope or text less may be opened.
fn one_less(left: usize) -> Result<usize, ArgumentIssue> {
    left.checked_sub(1).ok_or_else(|| {
        whole_text(
            ReaderRule::Contradiction,
            "too_deep",
            "the arguments are wrapped too many times",
        )
    })
}
