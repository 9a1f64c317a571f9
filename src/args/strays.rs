//! Keys that no parameter answers to: ignored where that changes nothing, otherwise trouble.

use super::{
    arguments::{Call, whole_text},
    candidates,
    keys::find,
    limits::{PAIRS_MAX, UNWRAP_MAX},
    meaning, name,
    node::{self, Node},
    outcome::{Repairs, Trouble},
    rules::{Rule, UnknownKeys},
    shape::Param,
    values::{At, Coercer, dropped},
};

/// Longest key in which a slip of the pen is looked for.
const SLIP_BYTES_MAX: usize = 64;

impl Call<'_> {
    pub(super) fn unknown(&mut self, key: &str, node: &Node) {
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
        let trouble = match node {
            Node::Text(tool) | Node::Word(tool) if meaning::is_tool_name(key) => {
                return self.tool_name(tool, node);
            }
            _ if is_foreign => {
                let why = "this is a parameter of another tool";
                self.stray(Rule::ForeignKey, "foreign_key", shown, why, node)
            }
            _ if meaning::withholds(key, node) => {
                let why =
                    "this says that nothing is to move, and leaving it out would change the act";
                self.stray(Rule::PhysicalKey, "withheld", shown, why, node)
                    .in_doubt(true)
            }
            _ if meaning::is_physical(key) || meaning::holds_physical(node) => {
                let why =
                    "this tool has no such parameter, and leaving it out would change the act";
                self.stray(Rule::PhysicalKey, "physical_key", shown, why, node)
                    .in_doubt(meaning::is_about_moving(key))
            }
            _ if !key.contains(char::is_alphanumeric) => {
                let why = "a value without a name";
                self.stray(Rule::ForeignKey, "nameless", shown, why, node)
                    .in_doubt(true)
            }
            _ if self.slip(key).is_some() => {
                let why =
                    "this is nearly a parameter's name, and leaving it out would change the call";
                let trouble = self.stray(Rule::ForeignKey, "near_key", shown, why, node);
                self.mended(trouble, key, node)
            }
            Node::Map(_) | Node::List(_) if self.holds_arguments(node, UNWRAP_MAX) => {
                self.nested(shown, node)
            }
            _ => return self.ignored(shown, node, "unknown_key", "no such parameter; ignored"),
        };
        self.trouble(trouble, node);
    }

    /// Arguments in a place where none are looked for.
    pub(super) fn nested(&self, shown: &str, node: &Node) -> Trouble {
        let why = "this holds arguments where none are looked for; send them at the top";
        self.stray(Rule::ForeignKey, "nested_arguments", shown, why, node)
            .in_doubt(true)
    }

    /// Arguments under a key that is none: to ignore it would be to lose the whole call.
    pub(super) fn lost_arguments<'n>(
        &self,
        pairs: &'n [(String, Node)],
    ) -> Option<(&'n str, &'n Node)> {
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

    /// A slip of the pen in the name of a parameter that was not sent (`scen`, `scenes`), or the name in a longer one (`the_scene`).
    fn slip(&self, key: &str) -> Option<&Param> {
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
        let slip = unsent.find(|(_, param)| is_near(&param.name));
        slip.filter(|_| folded.len() <= SLIP_BYTES_MAX)
            .map(|(_, param)| param)
    }

    /// The value under a slip, if it is one of the parameter that is meant.
    fn mended(&self, trouble: Trouble, key: &str, node: &Node) -> Trouble {
        let Some(param) = self.slip(key) else {
            return trouble;
        };
        let mut coercer = Coercer {
            policy: self.policy,
            repairs: Repairs::default(),
        };
        let at = At {
            path: &param.name,
            is_inner: false,
        };
        let value = coercer.value(&param.kind, node, at).ok();
        Trouble {
            is_in_doubt: value.is_none(),
            mends: Some(param.name.clone()),
            ..trouble.fix(value)
        }
    }

    pub(super) fn ignored(
        &mut self,
        key: &str,
        node: &Node,
        code: &'static str,
        why: &'static str,
    ) {
        self.coercer
            .repairs
            .push(dropped(key, node, code, Rule::Meaningless, why));
    }

    fn stray(&self, rule: Rule, code: &'static str, key: &str, why: &str, node: &Node) -> Trouble {
        let names = super::nearest::nearest(
            key,
            self.shape.params.iter().map(|param| param.name.as_str()),
        );
        Trouble::new(rule, code, key, why)
            .received(node::shown_node(node))
            .expected("the tool's own parameters")
            .valid(names)
    }
}
