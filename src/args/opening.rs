//! Opens the text around the arguments: envelopes, lists of one, texts in texts, the tool's own name.

use super::{
    arguments::{Call, Pairs, flaw_trouble, whole_text},
    candidates::{self, Flaw},
    form::Form,
    keys::find,
    limits::PAIRS_MAX,
    loose, meaning, name,
    node::{self, Node},
    outcome::Trouble,
    rules::Rule,
    values::dropped,
};

impl Call<'_> {
    /// Returns the pairs inside any envelopes and lists of one that surround them.
    pub(super) fn opened(&mut self, node: Node, left: usize) -> Result<Pairs, Trouble> {
        let no_arguments = || {
            whole_text(
                Rule::NoArguments,
                "no_arguments",
                "there are no arguments in this",
            )
        };
        match node {
            _ if node.is_empty() => Ok(Vec::new()),
            Node::Map(pairs) => self.without_envelope(pairs, left),
            Node::List(items) if self.are_pairs(&items) => {
                self.note_form(Form::Tuple);
                self.without_envelope(as_pairs(items), left)
            }
            Node::List(mut items) if items.len() == 1 => {
                self.note_form(Form::ListOfOne);
                self.opened(items.pop().unwrap_or(Node::Null), left)
            }
            Node::List(items) if items.iter().all(|item| matches!(item, Node::Map(_))) => {
                Err(flaw_trouble(Flaw::TwoObjects))
            }
            Node::Text(text) | Node::Word(text) => self.opened_text(&text, left),
            _ => Err(no_arguments()),
        }
    }

    /// `[("scene", "koi"), ("fps", 5)]`, as Python prints a dictionary's items.
    fn are_pairs(&self, items: &[Node]) -> bool {
        items.iter().all(|item| match item {
            Node::List(pair) => {
                matches!(pair.as_slice(), [Node::Text(key), _] if find(&self.shape.params, key).is_some())
            }
            _ => false,
        })
    }

    fn opened_text(&mut self, text: &str, left: usize) -> Result<Pairs, Trouble> {
        let left = one_less(left)?;
        let mut found = candidates::of_text(text);
        let candidate = found.swap_remove(0);
        self.note_form(Form::TextInText);
        self.note_forms(&candidate.forms);
        if let Some(tool) = &candidate.tool {
            self.tool_name(tool, &Node::Text(tool.clone()));
        }
        if candidate.is_loose && !self.knows_a_key(&candidate.node) {
            return Err(flaw_trouble(Flaw::NoArguments));
        }
        match candidate.flaw {
            Some(flaw) => Err(flaw_trouble(flaw)),
            None if matches!(candidate.node, Node::Text(_) | Node::Word(_)) => {
                Err(flaw_trouble(Flaw::NoArguments))
            }
            None => self.opened(candidate.node, left),
        }
    }

    fn knows_a_key(&self, node: &Node) -> bool {
        let Node::Map(pairs) = node else { return true };
        pairs.is_empty()
            || pairs
                .iter()
                .any(|(key, _)| find(&self.shape.params, key).is_some())
    }

    fn without_envelope(&mut self, pairs: Pairs, left: usize) -> Result<Pairs, Trouble> {
        if pairs.len() > PAIRS_MAX {
            let why = "there are more keys than any tool has arguments";
            // What they say is not known, so there is no default for it.
            return Err(whole_text(Rule::Contradiction, "too_many_keys", why));
        }
        let is_param = |key: &str| find(&self.shape.params, key).is_some();
        if pairs.iter().all(|(key, _)| is_param(key)) && !meaning::is_signature(pairs.iter()) {
            return Ok(pairs);
        }
        if meaning::is_schema_of_arguments(&pairs, &is_param) {
            return Err(whole_text(
                Rule::Contradiction,
                "schema_echo",
                "this is a schema, not arguments",
            ));
        }
        let names = &self.shape.tool_names;
        let wraps = |(key, value): &(String, Node)| {
            !is_param(key)
                && (meaning::is_envelope(key, value)
                    || meaning::is_call(key, value)
                    || is_named_call(names, key, value)
                    || self.holds_all_arguments(&pairs, value))
        };
        let mut wrappers = pairs.iter().enumerate().filter(|(_, pair)| wraps(pair));
        match (wrappers.next(), wrappers.next()) {
            (None, _) => self.scalar_envelope(pairs, left),
            (Some(_), Some(_)) => Err(flaw_trouble(Flaw::TwoObjects)),
            (Some((at, _)), None) => {
                self.note_form(Form::Envelope);
                self.unwrapped(pairs, at, left)
            }
        }
    }

    /// Returns whether the only key holds nothing but parameters, as in `{"stroke": {"scene": "koi"}}`, for a tool whose
    /// name is not known.
    fn holds_all_arguments(&self, pairs: &[(String, Node)], value: &Node) -> bool {
        let is_alone = self.shape.tool_names.is_empty() && pairs.len() == 1 && !self.shape.open;
        let is_param = |(key, _): &(String, Node)| find(&self.shape.params, key).is_some();
        matches!(value, Node::Map(inner) if is_alone && !inner.is_empty() && inner.iter().all(is_param))
    }

    /// `{"arguments": ""}` and `{"input": "koi"}`: a sole envelope that holds no object.
    fn scalar_envelope(&mut self, pairs: Pairs, left: usize) -> Result<Pairs, Trouble> {
        let is_envelope =
            |key: &str| find(&self.shape.params, key).is_none() && meaning::is_wrapper(key);
        let is_call = |(key, _): &(String, Node)| {
            is_envelope(key)
                || (find(&self.shape.params, key).is_none()
                    && (meaning::is_tool_name(key) || meaning::stands_beside_a_call(key)))
        };
        match pairs.iter().position(|(key, _)| is_envelope(key)) {
            Some(at) if pairs.iter().all(is_call) => {
                self.note_form(Form::Envelope);
                self.unwrapped(pairs, at, left)
            }
            _ => Ok(pairs),
        }
    }

    fn unwrapped(&mut self, mut pairs: Pairs, at: usize, left: usize) -> Result<Pairs, Trouble> {
        let left = one_less(left)?;
        let (_, inner) = pairs.remove(at);
        let mut out = Vec::new();
        for (key, value) in pairs {
            let is_param = find(&self.shape.params, &key).is_some();
            match &value {
                Node::Text(tool) | Node::Word(tool) if !is_param && meaning::is_tool_name(&key) => {
                    self.tool_name(tool, &value);
                }
                _ if !is_param && meaning::stands_beside_a_call(&key) => {
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
        out.extend(self.opened(inner, left)?);
        Ok(out)
    }

    /// Returns whether a tool's name asks for a dry run, or belongs to a tool for stopping, testing or the like.
    fn is_withheld_by_name(&mut self, tool: &str, resolution: &name::Resolution) -> bool {
        let is_other = matches!(resolution, name::Resolution::Unknown { .. });
        if is_other {
            return self.is_withheld(tool, &Node::Text(tool.to_owned()));
        }
        // The name itself is the tool's own, whatever words it has.
        let end = tool.rfind(['.', '/', ':']).unwrap_or(0);
        let namespace = tool.get(..end).unwrap_or_default();
        self.is_withheld("name", &Node::Text(namespace.to_owned()))
    }

    /// Checks a tool named beside or instead of the arguments: the tool's own name is form, a different name is a different
    /// call.
    pub(super) fn tool_name(&mut self, tool: &str, node: &Node) {
        let ours = &self.shape.tool_names;
        let resolution = name::resolve(tool, ours);
        let is_exact = matches!(resolution, name::Resolution::Resolved { exact: true, .. });
        // What stands before the tool's own name, as in `dry_run.stroke`, is heard too.
        if !is_exact && self.is_withheld_by_name(tool, &resolution) {
            return;
        }
        let ours = &self.shape.tool_names;
        let is_ours = !matches!(resolution, name::Resolution::Unknown { .. });
        if ours.is_empty() || is_ours || tool == "tools/call" || loose::CONSTRUCTORS.contains(&tool)
        {
            self.coercer.repairs.push(dropped(
                "name",
                node,
                "tool_name",
                Rule::Meaningless,
                "the tool's name among the arguments; ignored",
            ));
        } else {
            let trouble = Trouble::new(
                Rule::ForeignKey,
                "other_tool",
                "name",
                "another tool is named among the arguments",
            )
            .received(node::shown(tool));
            self.trouble(trouble.expected("no tool's name"), node);
        }
    }
}

/// Pairs out of lists of two.
fn as_pairs(items: Vec<Node>) -> Pairs {
    let pair = |item| match item {
        Node::List(mut pair) if pair.len() == 2 => {
            let value = pair.pop()?;
            match pair.pop()? {
                Node::Text(key) => Some((key, value)),
                _ => None,
            }
        }
        _ => None,
    };
    items.into_iter().filter_map(pair).collect()
}

/// `{"stroke": {"scene": "koi"}}`: the tool's own name as an envelope.
fn is_named_call(names: &[String], key: &str, value: &Node) -> bool {
    matches!(value, Node::Map(_)) && names.iter().any(|name| meaning::same_key(name, key))
}

/// One envelope or text less may be opened.
fn one_less(left: usize) -> Result<usize, Trouble> {
    left.checked_sub(1).ok_or_else(|| {
        whole_text(
            Rule::Contradiction,
            "too_deep",
            "the arguments are wrapped too many times",
        )
    })
}
