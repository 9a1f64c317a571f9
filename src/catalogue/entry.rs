//! What one entry of the catalogue is made of.

use serde_json::{Map, Value};

use super::Here;

/// What a tool does to the world, and so how strictly it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Ends motion. It takes anything at all.
    Stops,
    /// Looks and reports.
    Reads,
    /// Moves an arm.
    Moves,
}

/// One tool.
#[derive(Debug, PartialEq)]
pub struct Tool {
    /// The name it is listed by.
    pub name: &'static str,
    /// The name for people.
    pub title: &'static str,
    /// Other names, listed unless the node file says otherwise.
    pub aliases: &'static [&'static str],
    /// More names that it answers to and that are never listed.
    pub also: &'static [&'static str],
    /// What it does to the world.
    pub effect: Effect,
    /// What it does, in a phrase that begins with a verb and has no full stop.
    pub does: &'static str,
    /// What it takes, in the order in which it is shown.
    pub parameters: &'static [Parameter],
    /// Calls beside `{}`, each the text of a JSON object; `$scene` stands for a scene of this node.
    pub examples: &'static [&'static str],
    /// When to use it, what must come before, what to call next: at most four lines.
    pub when: &'static [&'static str],
    /// What its result holds beside what every result holds.
    pub fields: &'static [Field],
    /// May spoil something: what is drawn stays drawn.
    pub destructive: bool,
    /// A second call changes nothing more.
    pub idempotent: bool,
}

impl Tool {
    /// Every name it answers to, its own first.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        let others = self.aliases.iter().chain(self.also).copied();
        std::iter::once(self.name).chain(others)
    }

    /// The parameters that mean something on this node, such as `arm` where there is more than one.
    pub fn shown(&self, here: &Here) -> impl Iterator<Item = &'static Parameter> {
        self.parameters
            .iter()
            .filter(|parameter| here.shows(parameter.kind))
    }

    /// The annotations, which follow from the entry.
    #[must_use]
    pub fn hints(&self) -> Hints {
        Hints {
            read_only: self.effect == Effect::Reads,
            destructive: self.destructive,
            idempotent: self.idempotent || self.effect == Effect::Reads,
            open_world: false,
        }
    }
}

/// One parameter. All are optional: a call without any is a whole call.
#[derive(Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The name it is shown by.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// What it may hold.
    pub kind: Kind,
    /// What it is when it is not sent.
    pub default: Given,
    /// What it is for, with its default in words.
    pub words: &'static str,
}

/// What a parameter may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The name of something that exists on this node now.
    Name(Vocabulary),
    /// True or false.
    Bool,
    /// Any text.
    Text,
}

/// Names that change while the node runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vocabulary {
    /// Scenes.
    Scenes,
    /// Overlays, which change a scene.
    Overlays,
    /// Arms of this node.
    Arms,
    /// Nodes of the node file.
    Nodes,
}

/// The value of a parameter that was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Given {
    /// None; the words say what happens then.
    Nothing,
    /// This name.
    Name(&'static str),
    /// This truth.
    Bool(bool),
}

impl Given {
    /// As JSON, where there is a value.
    #[must_use]
    pub fn value(self) -> Option<Value> {
        match self {
            Self::Nothing => None,
            Self::Name(name) => Some(Value::from(name)),
            Self::Bool(truth) => Some(Value::from(truth)),
        }
    }
}

/// One field of a tool's own in its result. It may be absent, and is never null.
#[derive(Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name, with a unit where it has one.
    pub name: &'static str,
    /// Its JSON type, told only where it never changes.
    pub kind: FieldKind,
    /// What it says.
    pub words: &'static str,
}

/// The JSON type of a result's field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// Text.
    Text,
    /// True or false.
    Bool,
    /// A whole number.
    Whole,
    /// Any number.
    Number,
    /// An object.
    Object,
    /// A list of texts.
    Texts,
    /// A list of objects.
    Objects,
}

/// The protocol's annotations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hints {
    /// Changes nothing.
    pub read_only: bool,
    /// May spoil something.
    pub destructive: bool,
    /// A second call changes nothing more.
    pub idempotent: bool,
    /// Reaches beyond the node's own world.
    pub open_world: bool,
}

/// A tool as this node lists it now.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// For models.
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: Map<String, Value>,
    /// JSON Schema of its result.
    pub output_schema: Option<Map<String, Value>>,
    /// What it does to the world.
    pub hints: Hints,
    /// The tool whose alias this is.
    pub alias_of: Option<&'static str>,
}
