//! All the arguments of one call: envelopes opened, keys matched to parameters, every trouble collected.

use super::{
    candidates::{self, Candidate, Flaw},
    form::{Form, Forms},
    limits::{COST_MAX, UNWRAP_MAX},
    meaning, name,
    node::{self, Node},
    outcome::{self, Reading, Refusal, Repair, Repairs, Trouble},
    rules::{Class, Policy, Rule},
    shape::{Kind, Param, Shape},
    values::{self, At, Coercer, dropped},
};
use serde_json::{Map, Value};

/// One candidate, judged.
pub(super) struct Judged {
    pub(super) outcome: Result<Reading, Box<Refusal>>,
    pub(super) cost: u32,
}

/// Judges one reading of a text by the shape and the policy.
pub(super) fn judge(shape: &Shape, policy: &Policy, candidate: &Candidate) -> Judged {
    let mut call = Call {
        shape,
        policy,
        coercer: Coercer {
            policy,
            repairs: Repairs::default(),
        },
        refused: Vec::new(),
        given: Map::new(),
    };
    call.read(candidate);
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
}

type Pairs = Vec<(String, Node)>;

impl Call<'_> {
    fn read(&mut self, candidate: &Candidate) {
        self.note_forms(&candidate.forms);
        if candidate.forms.cost() > COST_MAX {
            return self.trouble(
                whole_text(
                    Rule::NoArguments,
                    "too_many_repairs",
                    "so many repairs are no reading",
                ),
                &candidate.node,
            );
        }
        if let Some(flaw) = candidate.flaw {
            self.keep_what_is_good(&candidate.node);
            return self.trouble(flaw_trouble(flaw), &candidate.node);
        }
        if let Some(tool) = &candidate.tool {
            self.tool_name(tool, &Node::Text(tool.clone()));
        }
        match self.opened(candidate.node.clone(), UNWRAP_MAX) {
            Ok(pairs) => self.pairs(&pairs, candidate.is_loose),
            Err(trouble) => self.trouble(trouble, &candidate.node),
        }
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
                code: "form",
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
        let Some(left) = left.checked_sub(1) else {
            return Err(no_arguments());
        };
        match node {
            _ if node.is_empty() => Ok(Vec::new()),
            Node::Map(pairs) => self.without_envelope(pairs, left),
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

    fn opened_text(&mut self, text: &str, left: usize) -> Result<Pairs, Trouble> {
        let mut found = candidates::of_text(text);
        let candidate = found.swap_remove(0);
        self.note_form(Form::TextInText);
        self.note_forms(&candidate.forms);
        match candidate.flaw {
            Some(flaw) => Err(flaw_trouble(flaw)),
            None if matches!(candidate.node, Node::Text(_) | Node::Word(_)) => {
                Err(flaw_trouble(Flaw::NoArguments))
            }
            None => self.opened(candidate.node, left),
        }
    }

    fn note_form(&mut self, form: Form) {
        let mut forms = Forms::default();
        forms.add(form);
        self.note_forms(&forms);
    }

    fn without_envelope(&mut self, pairs: Pairs, left: usize) -> Result<Pairs, Trouble> {
        let is_param = |key: &str| find(&self.shape.params, key).is_some();
        if meaning::is_schema_of_arguments(&pairs, &is_param) {
            return Err(whole_text(
                Rule::Contradiction,
                "schema_echo",
                "this is a schema, not arguments",
            ));
        }
        let wraps = |(key, value): &(String, Node)| {
            !is_param(key) && (meaning::is_wrapper(key) || meaning::is_call(key, value))
        };
        let mut wrappers = pairs.iter().enumerate().filter(|(_, pair)| wraps(pair));
        let Some((at, _)) = wrappers.next().filter(|_| wrappers.next().is_none()) else {
            return Ok(pairs);
        };
        let is_beside = |key: &str| {
            meaning::is_tool_name(key)
                || meaning::stands_beside_a_call(key)
                || meaning::is_framework(key)
        };
        let others_are_call = pairs
            .iter()
            .enumerate()
            .all(|(index, (key, _))| index == at || (!is_param(key) && is_beside(key)));
        let others_are_params = pairs.iter().any(|(key, _)| is_param(key))
            && pairs
                .get(at)
                .is_some_and(|(_, value)| matches!(value, Node::Map(_)) || value.is_empty());
        if !others_are_call && !others_are_params {
            return Ok(pairs);
        }
        self.note_form(Form::Envelope);
        self.unwrapped(pairs, at, left)
    }

    fn unwrapped(&mut self, mut pairs: Pairs, at: usize, left: usize) -> Result<Pairs, Trouble> {
        let (_, inner) = pairs.remove(at);
        let mut out = Vec::new();
        for (key, value) in pairs {
            match &value {
                _ if find(&self.shape.params, &key).is_some() => out.push((key, value)),
                Node::Text(tool) | Node::Word(tool) if meaning::is_tool_name(&key) => {
                    self.tool_name(tool, &value);
                }
                _ => self.coercer.repairs.push(dropped(
                    &key,
                    &value,
                    "envelope",
                    Rule::Form,
                    "stands beside the arguments",
                )),
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
        if ours.is_empty() || is_ours || tool == "tools/call" {
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
        let ignored = self.policy.unknown_keys == super::rules::UnknownKeys::Ignored;
        let folded = meaning::fold_key(key);
        if meaning::holds_schema(node) {
            self.trouble(
                whole_text(
                    Rule::Contradiction,
                    "schema_echo",
                    "this is a piece of a schema, not arguments",
                ),
                node,
            );
        } else if self.shape.open && !node.is_empty() {
            self.given.insert(key.to_owned(), node.to_value());
        } else if node.is_empty() || meaning::is_framework(key) {
            self.coercer.repairs.push(dropped(
                &shown,
                node,
                "ignored_key",
                Rule::Meaningless,
                "supplied by the server or empty; ignored",
            ));
        } else if let (Node::Text(tool), true) = (node, meaning::is_tool_name(key) && !ignored) {
            self.tool_name(tool, node);
        } else if !ignored
            && self
                .shape
                .foreign
                .iter()
                .any(|name| meaning::fold_key(name) == folded)
        {
            self.stray(
                Rule::ForeignKey,
                "foreign_key",
                &shown,
                "this is a parameter of another tool",
                node,
            );
        } else if !ignored && meaning::is_physical(key) {
            self.stray(
                Rule::PhysicalKey,
                "physical_key",
                &shown,
                "this tool has no such parameter, and leaving it out would change the act",
                node,
            );
        } else {
            self.coercer.repairs.push(dropped(
                &shown,
                node,
                "unknown_key",
                Rule::Meaningless,
                "no such parameter; ignored",
            ));
        }
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
            let trouble = Trouble::new(
                Rule::Contradiction,
                "duplicate_keys",
                &param.name,
                "given twice with different values",
            );
            let shown = said
                .iter()
                .map(|node| node::shown_node(node))
                .collect::<Vec<_>>()
                .join(" and ");
            return self.trouble(
                with_default(
                    trouble.received(node::shown(&shown)).expected("one value"),
                    param,
                ),
                first,
            );
        }
        if said.len() > 1 {
            self.coercer.repairs.push(Repair {
                class: Class::L0,
                ..dropped(
                    &param.name,
                    first,
                    "same_twice",
                    Rule::Form,
                    "given twice with the same value",
                )
            });
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
        let list_or_object = matches!(param.kind, Kind::List(_) | Kind::Object { .. });
        match empty {
            Some(node)
                if holds_empty(node)
                    && (param.empty_is_default || (param.required && list_or_object)) =>
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
            param
                .default
                .clone()
                .or_else(|| values::example(&param.kind))
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
    let folded = meaning::fold_key(key);
    let mut same = params
        .iter()
        .enumerate()
        .filter(|(_, param)| answers_to(param, &folded));
    let (index, _) = same.next()?;
    same.next().is_none().then_some(index)
}

/// `scene_name` names a scene as well as `scene` does.
fn answers_to(param: &Param, folded: &str) -> bool {
    let names = || {
        std::iter::once(&param.name)
            .chain(&param.aliases)
            .map(|name| meaning::fold_key(name))
    };
    let named = matches!(param.kind, Kind::Name { .. })
        && folded
            .strip_suffix("name")
            .is_some_and(|stem| names().any(|name| name == stem));
    !folded.is_empty() && (named || names().any(|name| name == folded))
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
