//! One parameter and what was sent for it: a value, two that agree, something empty, or nothing.

use super::{
    arguments::Call,
    node::{self, Node},
    outcome::{Repair, Trouble},
    rules::Rule,
    shape::{Kind, Param},
    values::{self, At, dropped},
};
use serde_json::Value;

impl Call<'_> {
    /// Takes what was sent for a parameter, once or several times.
    pub(super) fn param<'n>(
        &mut self,
        param: &Param,
        mut sent: impl Iterator<Item = &'n Node> + Clone,
    ) {
        let says_something =
            |node: &&Node| !is_unsaid(param, node) || is_own_word(&param.kind, node);
        let mut said = sent.clone().filter(says_something);
        let Some(first) = said.next() else {
            return self.absent(param, sent.next());
        };
        let Some(value) = self.coerced(param, first) else {
            return;
        };
        let (mut is_again, mut differs) = (false, false);
        for node in said {
            let Some(other) = self.coerced(param, node) else {
                return;
            };
            is_again = true;
            differs |= other != value;
        }
        if differs {
            let said: Vec<_> = sent.filter(says_something).collect();
            return self.trouble(given_twice(param, &said), first);
        }
        if is_again {
            let why = "given twice with the same value";
            self.coercer
                .repairs
                .push(dropped(&param.name, first, "same_twice", Rule::Form, why));
        }
        self.given.insert(param.name.clone(), value);
    }

    /// The value as the parameter has it; trouble is noted.
    fn coerced(&mut self, param: &Param, node: &Node) -> Option<Value> {
        if values::is_default(param, node) {
            return param.default.clone();
        }
        let at = At {
            path: &param.name,
            is_inner: false,
        };
        match self.coercer.value(&param.kind, node, at) {
            Ok(value) => Some(value),
            Err(trouble) => {
                self.trouble(trouble, node);
                None
            }
        }
    }

    /// Not sent, or sent empty.
    fn absent(&mut self, param: &Param, empty: Option<&Node>) {
        let holds_empty = |node: &Node| match &param.kind {
            Kind::List { .. } => matches!(node, Node::List(_)),
            Kind::Object { .. } => matches!(node, Node::Map(_)),
            Kind::Text => matches!(node, Node::Text(text) if text.is_empty()),
            _ => false,
        };
        let may_be_empty = match &param.kind {
            Kind::List { count, .. } => count.contains(0),
            Kind::Object { .. } | Kind::Text => true,
            _ => false,
        };
        match empty {
            Some(node)
                if holds_empty(node)
                    && (param.empty_is_default || (param.required && may_be_empty)) =>
            {
                self.given.insert(param.name.clone(), node.to_value());
            }
            Some(Node::Null) if param.required && param.nullable => {
                self.given.insert(param.name.clone(), Value::Null);
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
}

/// One parameter, several values.
fn given_twice(param: &Param, said: &[&Node]) -> Trouble {
    let why = "given twice with different values";
    let shown: Vec<_> = said.iter().map(|node| node::shown_node(node)).collect();
    let trouble = Trouble::new(Rule::Contradiction, "duplicate_keys", &param.name, why);
    trouble
        .received(node::shown(&shown.join(" and ")))
        .expected("one value")
}

/// Returns whether a value is empty. For a parameter whose cautious value keeps the arm still, only a clear null
/// counts.
fn is_unsaid(param: &Param, node: &Node) -> bool {
    let is_clear = match node {
        Node::Null => true,
        Node::Text(text) | Node::Word(text) => !text.trim().is_empty() && node::is_nothing(text),
        _ => false,
    };
    is_empty(&param.kind, node) && (param.cautious.is_none() || is_clear)
}

/// Empty as it stands, as a list of one, or as a list or object that a client made a text of. Blanks are a text, if any
/// text is a value; an object is empty if its fields all have defaults and none is said.
fn is_empty(kind: &Kind, node: &Node) -> bool {
    let is_scalar = !matches!(
        kind,
        Kind::Text | Kind::Any | Kind::List { .. } | Kind::Object { .. } | Kind::AnyOf(_)
    );
    if let (Kind::Object { fields, .. }, Node::Map(pairs)) = (kind, node)
        && !fields.is_empty()
    {
        let has_defaults = fields.iter().all(|field| field.default.is_some());
        return has_defaults && pairs.iter().all(|(_, inner)| inner.is_empty());
    }
    let is_blank = |text: &str| !text.is_empty() && text.trim().is_empty();
    if kind.takes_text() && matches!(node, Node::Text(text) if is_blank(text)) {
        return false;
    }
    node.is_empty()
        || is_scalar
            && match node {
                Node::Text(text) | Node::Word(text) => matches!(text.trim(), "[]" | "{}"),
                Node::List(items) => matches!(items.as_slice(), [only] if only.is_empty()),
                _ => false,
            }
}

/// Returns whether an empty-looking word is one of the parameter's own values.
fn is_own_word(kind: &Kind, node: &Node) -> bool {
    matches!(node, Node::Text(text) | Node::Word(text) if values::is_declared(kind, text))
}
