//! Parts of a catalogue entry.

pub use call::{ToolEffect, ToolHints};
use serde_json::{Map, Value, json};

use super::KnownNames;

/// One tool: one of the six, or one that a node file declares.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    /// The name it is listed by.
    pub name: String,
    /// The name for people.
    pub title: String,
    /// Other names, listed unless the node file says otherwise.
    pub aliases: Vec<String>,
    /// More names that it answers to and that are never listed.
    pub also: Vec<String>,
    /// Effect of the tool on the world.
    pub effect: ToolEffect,
    /// Keeps what it is given, though it moves nothing.
    pub writes: bool,
    /// Action of the tool, as a phrase that begins with a verb and has no full stop.
    pub does: String,
    /// Action of a call without arguments, as in `draws the default scene`; empty if unknown.
    pub default_action: String,
    /// Parameters, in the order in which they are shown.
    pub parameters: Vec<ToolParameter>,
    /// Further parameters that are not listed, such as those that a declared tool passes on.
    pub unlisted: Vec<ToolParameter>,
    /// Further parameters that it has only on a node with a canvas.
    pub canvas_parameters: Vec<ToolParameter>,
    /// Calls beside the minimal one, each the text of a JSON object; `$scene` stands for a scene of this node.
    pub examples: Vec<String>,
    /// Advice on when to use it, what must come before and what to call next: at most four lines.
    pub when: Vec<String>,
    /// Fields of its result beside those of every result.
    pub fields: Vec<ResultField>,
    /// May spoil something: what is drawn stays drawn.
    pub destructive: bool,
    /// A second call changes nothing more.
    pub idempotent: bool,
    /// Reaches beyond the node's own world.
    pub open_world: bool,
}

impl ToolDefinition {
    /// Every name it answers to, its own first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let others = self.aliases.iter().chain(&self.also);
        let names = std::iter::once(&self.name).chain(others);
        names.map(String::as_str)
    }

    /// A tool that spoils nothing, with its names and the parameters that it takes.
    pub(super) fn new(
        effect: ToolEffect,
        name: &str,
        title: &str,
        does: &str,
        parameters: Vec<ToolParameter>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            title: title.to_owned(),
            aliases: Vec::new(),
            also: Vec::new(),
            effect,
            writes: false,
            does: does.to_owned(),
            default_action: String::new(),
            parameters,
            unlisted: Vec::new(),
            canvas_parameters: Vec::new(),
            examples: Vec::new(),
            when: Vec::new(),
            fields: Vec::new(),
            destructive: false,
            idempotent: true,
            open_world: false,
        }
    }

    /// A tool that only reads.
    pub(super) fn reading(
        name: &str,
        title: &str,
        does: &str,
        parameters: Vec<ToolParameter>,
    ) -> Self {
        Self::new(ToolEffect::Reads, name, title, does, parameters)
    }

    /// The names of the parameters that a call must have.
    pub fn required(&self) -> impl Iterator<Item = &str> {
        let required = self.parameters.iter().filter(|one| one.required);
        required.map(|one| one.name.as_str())
    }

    /// The parameters that mean something on this node, such as `arm` where there is more than one.
    pub fn shown_parameters(&self, here: &KnownNames) -> impl Iterator<Item = &ToolParameter> {
        self.listed_parameters(here)
            .filter(|parameter| parameter.required || here.shows(&parameter.kind))
    }

    /// The parameters that are listed for it on this node, whether there is a choice or not.
    pub fn listed_parameters(&self, here: &KnownNames) -> impl Iterator<Item = &ToolParameter> {
        let has_canvas = !here.canvases.is_empty();
        let of_canvas = self.canvas_parameters.iter().filter(move |_| has_canvas);
        self.parameters.iter().chain(of_canvas)
    }

    /// The least that is a whole call: `{}`, or an example of what is required.
    #[must_use]
    pub fn minimal(&self, here: &KnownNames) -> String {
        let required = self.parameters.iter().filter(|one| one.required);
        let call = required.map(|one| (one.name.clone(), one.sample(here)));
        Value::Object(call.collect()).to_string()
    }

    /// The annotations, which follow from the entry.
    #[must_use]
    pub fn hints(&self) -> ToolHints {
        ToolHints {
            read_only: self.effect == ToolEffect::Reads && !self.writes,
            destructive: self.destructive,
            idempotent: self.idempotent || self.effect == ToolEffect::Reads,
            open_world: self.open_world,
        }
    }
}

/// One parameter. Those of the six are all optional: a call without any is a whole call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolParameter {
    /// The name it is shown by.
    pub name: String,
    /// Other names for it.
    pub aliases: Vec<String>,
    /// Kind of value that it accepts.
    pub kind: ParameterKind,
    /// True if a call without it is refused.
    pub required: bool,
    /// Value used when it is not sent; without one, the words say what happens then.
    pub default: Option<Value>,
    /// Purpose of the parameter, with its default in words.
    pub words: String,
}

impl ToolParameter {
    /// The same under another name too.
    pub(super) fn or_named(self, alias: &str) -> Self {
        Self {
            aliases: texts(&[alias]),
            ..self
        }
    }

    /// A value that it may hold.
    fn sample(&self, here: &KnownNames) -> Value {
        if let Some(default) = &self.default {
            return default.clone();
        }
        match &self.kind {
            ParameterKind::Name(names) => here.names(*names).first().cloned().into(),
            ParameterKind::Choice(values) => values.first().cloned().into(),
            ParameterKind::Bool => true.into(),
            ParameterKind::Text | ParameterKind::Verbatim { .. } => "example".into(),
            ParameterKind::Point { .. } => json!([1.5, 1.5]),
            ParameterKind::Whole { .. } => 1.into(),
            ParameterKind::Number { .. } => 1.5.into(),
            ParameterKind::Texts => json!(["example"]),
            ParameterKind::Numbers { names, .. } => {
                let sample = names.iter().map(|name| (name.clone(), 1.5.into()));
                Value::Object(sample.collect()).to_string().into()
            }
            ParameterKind::Objects => json!([{}]),
        }
    }
}

/// A parameter that may be left out.
pub(super) fn optional(name: &str, kind: ParameterKind, words: &str) -> ToolParameter {
    ToolParameter {
        name: name.to_owned(),
        aliases: Vec::new(),
        kind,
        required: false,
        default: None,
        words: words.to_owned(),
    }
}

/// A parameter that must be sent.
pub(super) fn required(name: &str, kind: ParameterKind, words: &str) -> ToolParameter {
    ToolParameter {
        required: true,
        ..optional(name, kind, words)
    }
}

/// A parameter that is false unless it is sent.
pub(super) fn flag(name: &str, words: &str) -> ToolParameter {
    ToolParameter {
        default: Some(Value::from(false)),
        ..optional(name, ParameterKind::Bool, words)
    }
}

/// A list of texts.
pub(super) fn texts(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Kind of value that a parameter accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParameterKind {
    /// The name of something that exists on this node now.
    Name(NameSource),
    /// One of these texts.
    Choice(Vec<String>),
    /// True or false.
    Bool,
    /// Any text.
    Text,
    /// A text that is data: taken to the letter, or refused.
    Verbatim {
        /// Most bytes of it.
        bytes_max: usize,
    },
    /// A point as a list of two numbers.
    Point {
        /// The symbol of their unit, such as `mm`.
        unit: String,
    },
    /// A whole number.
    Whole {
        /// The symbol of its unit, such as `mm`.
        unit: Option<String>,
    },
    /// Any number.
    Number {
        /// The symbol of its unit, such as `mm`.
        unit: Option<String>,
    },
    /// A list of texts.
    Texts,
    /// An object of numbers; one that is not sent is 0.
    Numbers {
        /// Their names.
        names: Vec<String>,
        /// The symbol of their unit, such as `mm`.
        unit: String,
    },
    /// A list of objects of any keys.
    Objects,
}

impl ParameterKind {
    /// Its JSON type.
    #[must_use]
    pub fn json_type(&self) -> &'static str {
        match self {
            // Some providers refuse objects within objects: it is said to be the text of one, and read as either.
            Self::Name(_)
            | Self::Choice(_)
            | Self::Text
            | Self::Verbatim { .. }
            | Self::Numbers { .. } => "string",
            Self::Bool => "boolean",
            Self::Whole { .. } => "integer",
            Self::Number { .. } => "number",
            Self::Texts | Self::Objects | Self::Point { .. } => "array",
        }
    }

    /// Its unit, where it has one.
    #[must_use]
    pub fn unit(&self) -> Option<&str> {
        match self {
            Self::Whole { unit } | Self::Number { unit } => unit.as_deref(),
            Self::Numbers { unit, .. } | Self::Point { unit } => Some(unit),
            _ => None,
        }
    }
}

/// Names that change while the node runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameSource {
    /// Scenes.
    Scenes,
    /// Overlays, which change a scene.
    Overlays,
    /// Arms of this node.
    Arms,
    /// Nodes of the node file.
    Nodes,
    /// One of them, or all.
    Everywhere,
}

/// One field of a tool's own in its result. It may be absent, and is never null.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultField {
    /// Its name, with a unit where it has one.
    pub name: &'static str,
    /// Its JSON type, told only where it never changes.
    pub kind: ResultFieldKind,
    /// Meaning of the field.
    pub words: &'static str,
}

/// One field of a result.
#[must_use]
pub const fn field(name: &'static str, kind: ResultFieldKind, words: &'static str) -> ResultField {
    ResultField { name, kind, words }
}

/// The JSON type of a result's field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultFieldKind {
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

/// A tool as this node lists it now.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedTool {
    /// Its name.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// For people: what it does.
    pub summary: String,
    /// For models.
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: Map<String, Value>,
    /// JSON Schema of its result.
    pub output_schema: Map<String, Value>,
    /// Effect of the tool on the world.
    pub hints: ToolHints,
    /// The tool whose alias this is.
    pub alias_of: Option<String>,
}
