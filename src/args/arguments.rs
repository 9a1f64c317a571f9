//! All the arguments of one call: envelopes opened, keys matched to parameters, every trouble collected.

use super::{
    candidates::{self, Candidate, Flaw},
    form::{Form, Forms},
    limits::{COST_MAX, PAIRS_MAX, UNWRAP_MAX},
    loose, meaning, name,
    node::{self, Node},
    outcome::{self, Reading, Refusal, Repair, Repairs, Trouble},
    rules::{Class, Policy, Rule, UnknownKeys},
    shape::{Kind, Param, Shape},
    values::{self, At, Coercer, dropped},
};
use serde_json::{Map, Value};

/// One candidate, judged.
pub(super) struct Judged {
    pub(super) outcome: Result<Reading, Box<Refusal>>,
    pub(super) cost: u32,
}

/// Judges one reading of `text` by the shape and the policy; `text` is empty where a value arrived.
pub(super) fn judge(shape: &Shape, policy: &Policy, candidate: Candidate, text: &str) -> Judged {
    let mut call = Call {
        shape,
        policy,
        coercer: Coercer {
            policy,
            repairs: Repairs::default(),
        },
        refused: Vec::new(),
        given: Map::new(),
        sent: Vec::new(),
    };
    call.read(candidate, text);
    let cost = call.coercer.repairs.cost;
    Judged {
        cost,
        outcome: call.finish(),
    }
}

struct Call<'a> {
    shape: &'a Shape,
    policy: &'a Policy,
    coercer: Coercer<'a>,
    refused: Vec<Trouble>,
    given: Map<String, Value>,
    /// Positions of the parameters that were sent.
    sent: Vec<usize>,
}

/// Longest key in which a slip of the pen is looked for.
const SLIP_BYTES_MAX: usize = 64;

type Pairs = Vec<(String, Node)>;

impl Call<'_> {
    fn read(&mut self, candidate: Candidate, text: &str) {
        self.note_forms(&candidate.forms);
        if let Some(first) = self.coercer.repairs.list.first_mut() {
            first.got = node::shown(text);
        }
        if candidate.forms.cost() > COST_MAX {
            let why = "so many repairs are no reading";
            return self.whole(whole_text(Rule::NoArguments, "too_many_repairs", why), text);
        }
        if let Some(flaw) = candidate.flaw {
            self.keep_what_is_good(&candidate.node);
            return self.whole(flaw_trouble(flaw), text);
        }
        if let Some(tool) = candidate.tool {
            self.tool_name(&tool, &Node::Text(tool.clone()));
        }
        self.note_nothing(&candidate.node, text);
        match self.opened(candidate.node, UNWRAP_MAX) {
            Ok(pairs) => self.pairs(&pairs, candidate.is_loose),
            Err(trouble) => self.whole(trouble, text),
        }
    }

    /// A word for nothing is noted; nothing at all and `{}` are calls as they should be.
    fn note_nothing(&mut self, node: &Node, text: &str) {
        let is_plain = matches!(node, Node::Map(_)) || (text.is_empty() && *node == Node::Null);
        if node.is_empty() && !is_plain {
            let why = "nothing is said, so defaults are used";
            let got = if text.is_empty() {
                node::shown_node(node)
            } else {
                node::shown(text)
            };
            let repair = dropped("arguments", node, "nothing_said", Rule::Form, why);
            self.coercer.repairs.push(Repair {
                got,
                used: "{}".into(),
                cost: 0,
                ..repair
            });
        }
    }

    /// Trouble with the text as a whole.
    fn whole(&mut self, trouble: Trouble, text: &str) {
        let received: String = text
            .chars()
            .take(2 * super::limits::SHOWN_CHARS_MAX)
            .collect();
        self.trouble(
            trouble.received(node::shown(&received)),
            &Node::Text(received),
        );
    }

    /// What a cut-off text did say completely goes into the corrected call; it is not used otherwise.
    fn keep_what_is_good(&mut self, node: &Node) {
        let Node::Map(pairs) = node else { return };
        if self.policy.refuses(Rule::Contradiction) {
            let mut trial = Call {
                coercer: Coercer {
                    policy: self.policy,
                    repairs: Repairs::default(),
                },
                refused: Vec::new(),
                given: Map::new(),
                sent: Vec::new(),
                ..*self
            };
            trial.pairs(pairs, false);
            self.given = trial.given;
        }
    }

    fn note_forms(&mut self, forms: &Forms) {
        for form in forms.iter() {
            let repair = Repair {
                field: "arguments".into(),
                got: String::new(),
                used: String::new(),
                class: Class::L0,
                cost: form.cost(),
                code: form.code(),
                why: form.why().into(),
            };
            self.coercer.repairs.push(repair);
        }
    }

    /// Refuses, or goes on without what is troublesome and says so.
    fn trouble(&mut self, trouble: Trouble, node: &Node) {
        if self.policy.refuses(trouble.rule) {
            self.refused.push(trouble);
            return;
        }
        let complaint = &*trouble.complaint;
        let path = if complaint.path.is_empty() {
            "arguments"
        } else {
            &complaint.path
        };
        let why = format!(
            "{}; {}",
            complaint.why,
            if complaint.path.is_empty() {
                "defaults are used"
            } else {
                "left out"
            }
        );
        self.coercer
            .repairs
            .push(dropped(path, node, complaint.code, trouble.rule, &why));
    }

    /// The pairs inside whatever envelopes and lists of one surround them.
    fn opened(&mut self, node: Node, left: usize) -> Result<Pairs, Trouble> {
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

    fn note_form(&mut self, form: Form) {
        let mut forms = Forms::default();
        forms.add(form);
        self.note_forms(&forms);
    }

    fn without_envelope(&mut self, pairs: Pairs, left: usize) -> Result<Pairs, Trouble> {
        if pairs.len() > PAIRS_MAX {
            let why = "there are more keys than any tool has arguments";
            return Err(whole_text(Rule::NoArguments, "too_many_keys", why));
        }
        let is_param = |key: &str| find(&self.shape.params, key).is_some();
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

    /// `{"stroke": {"scene": "koi"}}` where nobody said what the tool is called: the only key holds nothing but parameters.
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

    /// A tool named beside or instead of the arguments: ours is form, another one is another call.
    fn tool_name(&mut self, tool: &str, node: &Node) {
        let ours = &self.shape.tool_names;
        let is_ours = matches!(
            name::resolve(tool, ours),
            name::Resolution::Resolved { .. } | name::Resolution::Ambiguous { .. }
        );
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

    fn pairs(&mut self, pairs: &[(String, Node)], is_loose: bool) {
        let owners: Vec<_> = pairs
            .iter()
            .map(|(key, _)| find(&self.shape.params, key))
            .collect();
        if is_loose && !pairs.is_empty() && owners.iter().all(Option::is_none) {
            return self.trouble(flaw_trouble(Flaw::NoArguments), &Node::Map(pairs.to_vec()));
        }
        if owners.iter().all(Option::is_none)
            && let Some((key, node)) = self.lost_arguments(pairs)
        {
            let why = "this holds arguments where none are looked for; send them at the top";
            return self.stray(
                Rule::ForeignKey,
                "nested_arguments",
                &node::shown(key),
                why,
                node,
            );
        }
        if contradicts(pairs, &owners) {
            let why = "a key is given twice with different values";
            return self.whole(whole_text(Rule::Contradiction, "duplicate_keys", why), "");
        }
        self.sent = owners.iter().flatten().copied().collect();
        for ((key, node), owner) in pairs.iter().zip(&owners) {
            match owner {
                None => self.unknown(key, node),
                Some(index) => self.note_spelling(*index, key, node),
            }
        }
        for (index, param) in self.shape.params.iter().enumerate() {
            let sent = pairs
                .iter()
                .zip(&owners)
                .filter(|(_, owner)| **owner == Some(index))
                .map(|((_, node), _)| node);
            self.param(param, &sent.collect::<Vec<_>>());
        }
    }

    /// Arguments under a key that is none: to ignore it would be to lose the whole call.
    fn lost_arguments<'n>(&self, pairs: &'n [(String, Node)]) -> Option<(&'n str, &'n Node)> {
        let lost = pairs
            .iter()
            .filter(|(key, _)| !meaning::is_framework(key))
            .find(|(_, node)| self.holds_arguments(node, UNWRAP_MAX));
        lost.map(|(key, node)| (key.as_str(), node))
    }

    /// Whether a parameter is given somewhere inside, be it in text.
    fn holds_arguments(&self, node: &Node, left: usize) -> bool {
        let Some(left) = left.checked_sub(1) else {
            return false;
        };
        match node {
            Node::Map(pairs) => pairs.iter().any(|(key, inner)| {
                (!inner.is_empty() && find(&self.shape.params, key).is_some())
                    || self.holds_arguments(inner, left)
            }),
            Node::List(items) if items.len() <= PAIRS_MAX => {
                items.iter().any(|item| self.holds_arguments(item, left))
            }
            Node::Text(text) if text.trim_start().starts_with('{') => {
                let inner = candidates::of_inner_text(text).pop();
                inner.is_some_and(|inner| self.holds_arguments(&inner.node, left))
            }
            _ => false,
        }
    }

    fn note_spelling(&mut self, index: usize, key: &str, node: &Node) {
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

    fn unknown(&mut self, key: &str, node: &Node) {
        let shown = node::shown(key);
        if meaning::holds_schema(node) {
            let why = "this is a piece of a schema, not arguments";
            self.trouble(whole_text(Rule::Contradiction, "schema_echo", why), node);
        } else if meaning::is_template_pair(key, node) {
            let why = "this is a stand-in for an argument, not an argument";
            self.trouble(whole_text(Rule::Contradiction, "template", why), node);
        } else if self.shape.open && !node.is_empty() {
            self.given.insert(key.to_owned(), node.to_value());
        } else if node.is_empty() || meaning::is_framework(key) {
            let why = "supplied by the server or empty; ignored";
            self.ignored(&shown, node, "ignored_key", why);
        } else if self.policy.unknown_keys == UnknownKeys::Ignored {
            self.ignored(&shown, node, "unknown_key", "no such parameter; ignored");
        } else {
            self.judged_unknown(key, &shown, node);
        }
    }

    /// Whether leaving out an unknown key would change the act.
    fn judged_unknown(&mut self, key: &str, shown: &str, node: &Node) {
        let is_foreign = self
            .shape
            .foreign
            .iter()
            .any(|name| meaning::same_key(name, key));
        match node {
            Node::Text(tool) | Node::Word(tool) if meaning::is_tool_name(key) => {
                self.tool_name(tool, node);
            }
            _ if is_foreign => {
                let why = "this is a parameter of another tool";
                self.stray(Rule::ForeignKey, "foreign_key", shown, why, node);
            }
            _ if meaning::is_physical(key) || meaning::holds_physical(node) => {
                let why =
                    "this tool has no such parameter, and leaving it out would change the act";
                self.stray(Rule::PhysicalKey, "physical_key", shown, why, node);
            }
            _ if !key.contains(char::is_alphanumeric) => {
                let why = "a value without a name";
                self.stray(Rule::ForeignKey, "nameless", shown, why, node);
            }
            _ if self.is_slip(key) => {
                let why =
                    "this is nearly a parameter's name, and leaving it out would change the call";
                self.stray(Rule::ForeignKey, "near_key", shown, why, node);
            }
            Node::Map(_) | Node::List(_) if self.holds_arguments(node, UNWRAP_MAX) => {
                let why = "this holds arguments where none are looked for; send them at the top";
                self.stray(Rule::ForeignKey, "nested_arguments", shown, why, node);
            }
            _ => self.ignored(shown, node, "unknown_key", "no such parameter; ignored"),
        }
    }

    /// A slip of the pen in the name of a parameter that was not sent (`scen`, `scenes`), or the name in a longer one (`the_scene`).
    fn is_slip(&self, key: &str) -> bool {
        let folded = name::fold(key);
        let slips_max = |name: &str| match name.chars().count() {
            0..=3 => 0,
            4..=6 => 1,
            _ => 2,
        };
        let is_near = |name: &str| {
            let known = name::fold(name);
            meaning::has_words_of(key, name)
                || strsim::osa_distance(&known, &folded) <= slips_max(&known)
        };
        let mut unsent = self
            .shape
            .params
            .iter()
            .enumerate()
            .filter(|(index, _)| !self.sent.contains(index));
        folded.len() <= SLIP_BYTES_MAX && unsent.any(|(_, param)| is_near(&param.name))
    }

    fn ignored(&mut self, key: &str, node: &Node, code: &'static str, why: &str) {
        self.coercer
            .repairs
            .push(dropped(key, node, code, Rule::Meaningless, why));
    }

    fn stray(&mut self, rule: Rule, code: &'static str, key: &str, why: &str, node: &Node) {
        let names = super::nearest::nearest(
            key,
            self.shape.params.iter().map(|param| param.name.as_str()),
        );
        let trouble = Trouble::new(rule, code, key, why)
            .received(node::shown_node(node))
            .expected("the tool's own parameters")
            .valid(names);
        self.trouble(trouble, node);
    }

    fn param(&mut self, param: &Param, sent: &[&Node]) {
        let says_something = |node: &&&Node| !node.is_empty() || is_own_word(&param.kind, node);
        let said: Vec<&Node> = sent.iter().filter(says_something).copied().collect();
        let Some(first) = said.first() else {
            return self.absent(param, sent.first().copied());
        };
        let at = At {
            path: &param.name,
            is_inner: false,
        };
        let mut values: Vec<Value> = Vec::new();
        for node in &said {
            match self.coercer.value(&param.kind, node, at) {
                Ok(value) if values.contains(&value) => {}
                Ok(value) => values.push(value),
                Err(trouble) => return self.trouble(with_default(trouble, param), node),
            }
        }
        if values.len() > 1 {
            return self.trouble(given_twice(param, &said), first);
        }
        if said.len() > 1 {
            let why = "given twice with the same value";
            self.coercer
                .repairs
                .push(dropped(&param.name, first, "same_twice", Rule::Form, why));
        }
        self.given
            .extend(values.pop().map(|value| (param.name.clone(), value)));
    }

    /// Not sent, or sent empty.
    fn absent(&mut self, param: &Param, empty: Option<&Node>) {
        let holds_empty = |node: &Node| match &param.kind {
            Kind::List(_) => matches!(node, Node::List(_)),
            Kind::Object { .. } => matches!(node, Node::Map(_)),
            Kind::Text => matches!(node, Node::Text(text) if text.is_empty()),
            _ => false,
        };
        let may_be_empty = matches!(param.kind, Kind::List(_) | Kind::Object { .. } | Kind::Text);
        match empty {
            Some(node)
                if holds_empty(node)
                    && (param.empty_is_default || (param.required && may_be_empty)) =>
            {
                self.given.insert(param.name.clone(), node.to_value());
            }
            _ if param.required && param.default.is_none() => {
                let trouble = values::missing(param, &param.name);
                self.trouble(trouble, empty.unwrap_or(&Node::Null));
            }
            Some(node) => {
                let used = param
                    .default
                    .as_ref()
                    .map_or_else(String::new, |value| node::shown(&value.to_string()));
                let repair = dropped(
                    &param.name,
                    node,
                    "empty",
                    Rule::Empty,
                    "empty, so read as not sent",
                );
                self.coercer.repairs.push(Repair { used, ..repair });
            }
            None => {}
        }
    }

    fn finish(self) -> Result<Reading, Box<Refusal>> {
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

/// Whether keys that are no parameter contradict each other; those that are one are compared as values.
fn contradicts(pairs: &[(String, Node)], owners: &[Option<usize>]) -> bool {
    let mut seen = std::collections::HashMap::new();
    let unknown = pairs
        .iter()
        .zip(owners)
        .filter(|(_, owner)| owner.is_none());
    unknown.map(|(pair, _)| pair).any(|(key, node)| {
        seen.insert(key, node).is_some_and(|before| before != node) || node.contradicts_itself()
    })
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

/// One parameter, several values.
fn given_twice(param: &Param, said: &[&Node]) -> Trouble {
    let why = "given twice with different values";
    let shown: Vec<_> = said.iter().map(|node| node::shown_node(node)).collect();
    let trouble = Trouble::new(Rule::Contradiction, "duplicate_keys", &param.name, why);
    with_default(
        trouble
            .received(node::shown(&shown.join(" and ")))
            .expected("one value"),
        param,
    )
}

/// Whether an empty-looking word is one of the parameter's own values.
fn is_own_word(kind: &Kind, node: &Node) -> bool {
    matches!(node, Node::Text(text) | Node::Word(text) if values::is_declared(kind, text))
}

/// For a refused value the default is the safest correction, unless a nearest name was found.
fn with_default(mut trouble: Trouble, param: &Param) -> Trouble {
    let is_nearest = matches!(trouble.complaint.code, "unknown_name" | "not_a_choice");
    if !is_nearest || trouble.fix.is_none() {
        trouble.fix = param
            .default
            .clone()
            .or(trouble.fix)
            .or_else(|| values::example(&param.kind));
    }
    trouble
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

fn with_defaults(shape: &Shape, given: &Map<String, Value>) -> Map<String, Value> {
    let value = |param: &Param| given.get(&param.name).or(param.default.as_ref()).cloned();
    let mut understood: Map<String, Value> = shape
        .params
        .iter()
        .filter_map(|param| value(param).map(|value| (param.name.clone(), value)))
        .collect();
    understood.extend(
        given
            .iter()
            .filter(|(key, _)| find(&shape.params, key).is_none())
            .map(|(key, value)| (key.clone(), value.clone())),
    );
    understood
}

/// The caller's good arguments, and a valid value for each refused one.
fn corrected(shape: &Shape, given: &Map<String, Value>, refused: &[Trouble]) -> Map<String, Value> {
    let fix = |param: &Param| {
        refused
            .iter()
            .find(|trouble| trouble.complaint.path == param.name)
            .and_then(|trouble| trouble.fix.clone())
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
            .or_else(|| fix(param))
            .or_else(|| needed(param))
    };
    shape
        .params
        .iter()
        .filter_map(|param| value(param).map(|value| (param.name.clone(), value)))
        .collect()
}

/// The parameter that a key means: to the letter, or uniquely when only letters and digits count.
fn find(params: &[Param], key: &str) -> Option<usize> {
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

/// `{"stroke": {"scene": "koi"}}`: the tool's own name as an envelope.
fn is_named_call(names: &[String], key: &str, value: &Node) -> bool {
    matches!(value, Node::Map(_)) && names.iter().any(|name| meaning::same_key(name, key))
}

/// One envelope or text less may be opened.
fn one_less(left: usize) -> Result<usize, Trouble> {
    left.checked_sub(1).ok_or_else(|| {
        whole_text(
            Rule::NoArguments,
            "too_deep",
            "the arguments are wrapped too many times",
        )
    })
}

fn whole_text(rule: Rule, code: &'static str, why: &str) -> Trouble {
    Trouble::new(rule, code, "", why).expected("one JSON object, {} for defaults")
}

fn flaw_trouble(flaw: Flaw) -> Trouble {
    match flaw {
        Flaw::Cut => whole_text(Rule::Contradiction, "cut_off", "the arguments are cut off"),
        Flaw::TwoObjects => whole_text(
            Rule::Contradiction,
            "two_objects",
            "there are several objects and no telling which is meant",
        ),
        Flaw::Garbled => whole_text(
            Rule::Contradiction,
            "garbled",
            "there are brackets in this that cannot be read",
        ),
        Flaw::Template => whole_text(
            Rule::Contradiction,
            "template",
            "this is a stand-in for arguments, not arguments",
        ),
        Flaw::PayloadLost => whole_text(
            Rule::PayloadLost,
            "payload_lost",
            "the client lost the arguments on the way; send {} for defaults",
        ),
        Flaw::TooLong => whole_text(Rule::NoArguments, "too_long", "longer than 1 MiB"),
        Flaw::NoArguments => whole_text(
            Rule::NoArguments,
            "no_arguments",
            "there are no arguments in this",
        ),
    }
}
