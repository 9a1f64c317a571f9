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
    /// Other names, listed unless the node file turns them off.
    pub aliases: Vec<String>,
    /// Further names that are understood but never listed.
    pub also: Vec<String>,
    /// Effect of the tool on the world.
    pub effect: ToolEffect,
    /// True if it stores what it is given, though it moves nothing.
    pub writes: bool,
    /// Action of the tool, as a phrase that begins with a verb and has no full stop.
    pub does: String,
    /// Action of a call without arguments, as in `draws the default scene`; empty if unknown.
    pub default_action: String,
    /// Parameters, in the order in which they are shown.
    pub parameters: Vec<ToolParameter>,
    /// Further parameters that are never listed, such as those that a declared tool passes on.
    pub unlisted: Vec<ToolParameter>,
    /// Further parameters that it has only on a node with a canvas.
    pub canvas_parameters: Vec<ToolParameter>,
    /// Examples on such a node, in place of the others.
    pub canvas_examples: Vec<String>,
    /// Calls besides the minimal one, each as the text of a JSON object; `$scene` stands for a scene of this node.
    pub examples: Vec<String>,
    /// Advice on when to use it, what must come before and what to call next: at most four lines.
    pub when: Vec<String>,
    /// Fields of its result besides those of every result.
    pub fields: Vec<ResultField>,
    /// True if it may spoil something: ink cannot be removed.
    pub destructive: bool,
    /// True if a second call changes nothing more.
    pub idempotent: bool,
    /// True if it reaches beyond the node's own world.
    pub open_world: bool,
}

impl ToolDefinition {
    /// Returns every name by which it is understood, its own first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let others = self.aliases.iter().chain(&self.also);
        let names = std::iter::once(&self.name).chain(others);
        names.map(String::as_str)
    }

    /// Returns a tool that spoils nothing, with its name and parameters.
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
            canvas_examples: Vec::new(),
            examples: Vec::new(),
            when: Vec::new(),
            fields: Vec::new(),
            destructive: false,
            idempotent: true,
            open_world: false,
        }
    }

    /// Returns a tool that only reads.
    pub(super) fn reading(
        name: &str,
        title: &str,
        does: &str,
        parameters: Vec<ToolParameter>,
    ) -> Self {
        Self::new(ToolEffect::Reads, name, title, does, parameters)
    }

    /// Returns the names of the parameters that a call must have.
    pub fn required(&self) -> impl Iterator<Item = &str> {
        let required = self.parameters.iter().filter(|one| one.required);
        required.map(|one| one.name.as_str())
    }

    /// Returns the parameters that mean something on this node, such as `arm` if there is more than one.
    pub fn shown_parameters(&self, known: &KnownNames) -> impl Iterator<Item = &ToolParameter> {
        self.listed_parameters(known)
            .filter(|parameter| !parameter.is_unlisted)
            .filter(|parameter| parameter.required || known.shows(&parameter.kind))
    }

    /// Returns the parameters that it has on this node, whether there is a choice or not.
    pub fn listed_parameters(&self, known: &KnownNames) -> impl Iterator<Item = &ToolParameter> {
        let has_canvas = !known.canvases.is_empty();
        let of_canvas = self.canvas_parameters.iter().filter(move |_| has_canvas);
        self.parameters.iter().chain(of_canvas)
    }

    /// Returns the minimal valid call: `{}`, or an example of the required parameters.
    #[must_use]
    pub fn minimal(&self, known: &KnownNames) -> String {
        let required = self.parameters.iter().filter(|one| one.required);
        let call = required.map(|one| (one.name.clone(), one.sample(known)));
        Value::Object(call.collect()).to_string()
    }

    /// Returns the annotations, which follow from the entry.
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

/// One parameter. All parameters of the six tools are optional: a call without any is valid.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolParameter {
    /// Name under which it is shown.
    pub name: String,
    /// Other names for it.
    pub aliases: Vec<String>,
    /// Kind of value that it accepts.
    pub kind: ParameterKind,
    /// True if a call without it is refused.
    pub required: bool,
    /// Value used when it is not sent; if there is none, `words` say what happens then.
    pub default: Option<Value>,
    /// A valid value, where the kind alone says too little.
    pub example: Option<Value>,
    /// Purpose of the parameter, with its default in words.
    pub words: String,
    /// True if it is accepted but not in the schema, where each word costs a model tokens.
    pub is_unlisted: bool,
}

impl ToolParameter {
    /// Leaves it out of the schema.
    pub(super) fn unlisted(self) -> Self {
        Self {
            is_unlisted: true,
            ..self
        }
    }

    /// Adds another name.
    pub(super) fn or_named(self, alias: &str) -> Self {
        Self {
            aliases: texts(&[alias]),
            ..self
        }
    }

    /// Returns a valid value.
    fn sample(&self, known: &KnownNames) -> Value {
        if let Some(value) = known.default_of(self).or_else(|| self.example.clone()) {
            return value;
        }
        match &self.kind {
            ParameterKind::Name(names) => known.names(*names).first().cloned().into(),
            ParameterKind::Choice(values) => values.first().cloned().into(),
            ParameterKind::Bool => true.into(),
            ParameterKind::Text | ParameterKind::Verbatim { .. } => "example".into(),
            ParameterKind::Plan => "3f9a0c11".into(),
            ParameterKind::Point { .. } => json!([1.5, 1.5]),
            ParameterKind::Whole { .. } => 1.into(),
            ParameterKind::Number { .. } => 1.5.into(),
            ParameterKind::Texts => json!(["example"]),
            ParameterKind::Numbers { names, .. } => {
                let sample = names.iter().map(|name| (name.clone(), 1.5.into()));
                Value::Object(sample.collect()).to_string().into()
            }
            ParameterKind::Object => json!({}),
            ParameterKind::Objects(_) => json!([{}]),
        }
    }
}

/// Returns a parameter that may be left out.
pub(super) fn optional(name: &str, kind: ParameterKind, words: &str) -> ToolParameter {
    ToolParameter {
        name: name.to_owned(),
        aliases: Vec::new(),
        kind,
        required: false,
        default: None,
        example: None,
        words: words.to_owned(),
        is_unlisted: false,
    }
}

/// Returns a parameter that must be sent.
pub(super) fn required(name: &str, kind: ParameterKind, words: &str) -> ToolParameter {
    ToolParameter {
        required: true,
        ..optional(name, kind, words)
    }
}

/// Returns a parameter that is false unless it is sent.
pub(super) fn flag(name: &str, words: &str) -> ToolParameter {
    ToolParameter {
        default: Some(Value::from(false)),
        ..optional(name, ParameterKind::Bool, words)
    }
}

/// Converts string slices to strings.
pub(super) fn texts(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Kind of value that a parameter accepts.
#[derive(Debug, Clone, PartialEq)]
pub enum ParameterKind {
    /// The name of something that exists on this node now.
    Name(NameSource),
    /// One of these texts.
    Choice(Vec<String>),
    /// True or false.
    Bool,
    /// Any text.
    Text,
    /// The beginning of a plan's hash.
    Plan,
    /// A text that is data: taken verbatim, or refused.
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
    /// An object of numbers; a missing one is 0.
    Numbers {
        /// Their names.
        names: Vec<String>,
        /// The symbol of their unit, such as `mm`.
        unit: String,
    },
    /// An object of any keys.
    Object,
    /// A list of objects with these keys. Its tool refuses others itself.
    Objects(Vec<ToolParameter>),
}

impl ParameterKind {
    /// Returns its JSON type.
    #[must_use]
    pub fn json_type(&self) -> &'static str {
        match self {
            // Some providers refuse objects within objects, so it is declared as text and read as either.
            Self::Name(_)
            | Self::Choice(_)
            | Self::Text
            | Self::Plan
            | Self::Verbatim { .. }
            | Self::Numbers { .. } => "string",
            Self::Bool => "boolean",
            Self::Whole { .. } => "integer",
            Self::Number { .. } => "number",
            Self::Object => "object",
            Self::Texts | Self::Objects(_) | Self::Point { .. } => "array",
        }
    }

    /// Returns its unit, if it has one.
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
    /// One of the nodes, or all of them.
    Everywhere,
}

/// A field of a tool's result that only this tool has. It may be absent, and is never null.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultField {
    /// Its name, with its unit if it has one.
    pub name: &'static str,
    /// Its JSON type.
    pub kind: ResultFieldKind,
    /// Meaning of the field.
    pub words: &'static str,
}

/// Returns a field of a result.
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
