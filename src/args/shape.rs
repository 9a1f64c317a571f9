//! Shape of a tool's arguments: its parameters, what each may hold, and the parameters of other tools.

use super::unit::DeclaredUnit;
use base::units;
use serde_json::{Map, Number, Value};
use std::cmp::Ordering;

/// The arguments of one tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ArgumentShape {
    /// Its parameters, in the order in which they are shown.
    pub params: Vec<ParameterShape>,
    /// Names by which callers know this tool; empty if any name inside the arguments is ignored.
    pub tool_names: Vec<String>,
    /// Names of parameters that belong to other tools, for those who ask what a key that is left over was meant for.
    pub foreign: Vec<String>,
    /// Names of other tools: a call of one among the arguments is another call.
    pub other_tools: Vec<String>,
    /// Known names of scenes and overlays: one that is left over puts the call's choice in doubt.
    pub known_names: Vec<String>,
    /// Parameters that the tool has on other nodes only.
    pub elsewhere: Vec<String>,
    /// Keys that an operator lists because a client adds them to every call.
    pub ignore_keys: Vec<String>,
    /// True if unknown keys are kept unchanged, as an open JSON Schema allows.
    pub open: bool,
    /// True if a call has to say what to draw before anything of it may be left over.
    pub needs_choice: bool,
}

/// One parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct ParameterShape {
    /// Its name as shown.
    pub name: String,
    /// Other names, matched as the name is: case, blanks, hyphens and underscores do not matter.
    pub aliases: Vec<String>,
    /// Kind of value that it accepts.
    pub kind: ValueKind,
    /// True if a call without it is refused.
    pub required: bool,
    /// Value used when it is not sent.
    pub default: Option<Value>,
    /// True if an empty value means the same as the default, so it counts as absent.
    pub empty_is_default: bool,
    /// The value with which nothing moves.
    pub cautious: Option<Value>,
    /// True if null is one of its values.
    pub nullable: bool,
    /// True if it says what is moved or drawn, as a scene does.
    pub selects_motion: bool,
    /// True if it limits what is done, or says where: without its value more would happen than was requested, so a lost
    /// value is refused in every profile.
    pub guards: bool,
    /// Parameters of which one must be sent beside it; none if it can stand without.
    pub beside: Vec<String>,
}

/// Kind of value that a parameter accepts.
#[derive(Debug, Clone, PartialEq)]
pub enum ValueKind {
    /// Any text, kept as it is, JSON-like or not.
    Text,
    /// A text that is data: taken verbatim from plain JSON, or refused. No profile forgives anything about it.
    Verbatim {
        /// Most bytes of it.
        bytes_max: usize,
    },
    /// Hexadecimal digits in quotes, in any case.
    Hex {
        /// Fewest of them.
        digits_min: usize,
        /// Most of them.
        digits_max: usize,
    },
    /// The name of something that exists: apart from its form, it must be one of these.
    Name {
        /// The names that exist now.
        known: Vec<String>,
    },
    /// One of a few values.
    Choice {
        /// The values.
        values: Vec<Value>,
        /// Declared synonyms.
        synonyms: Vec<(String, Value)>,
    },
    /// True or false, by word.
    Bool,
    /// A whole number within 64 bits.
    Integer {
        /// Inclusive bounds.
        range: NumberRange,
        /// Its unit, if it has one.
        unit: Option<DeclaredUnit>,
    },
    /// A finite number.
    Number {
        /// Inclusive bounds.
        range: NumberRange,
        /// Its unit, if it has one.
        unit: Option<DeclaredUnit>,
    },
    /// A list of one kind; a single value is a list of one.
    List {
        /// Kind of each item.
        item: Box<ValueKind>,
        /// Number of items allowed.
        count: ItemCount,
    },
    /// A nested object.
    Object {
        /// Its fields.
        fields: Vec<ParameterShape>,
        /// True if other fields are kept unchanged.
        open: bool,
    },
    /// The first of these that the value fits.
    AnyOf(Vec<ValueKind>),
    /// Only null.
    Nothing,
    /// Anything.
    Any,
}

/// The number of items that a list may have, both bounds included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemCount {
    /// The fewest.
    pub min: usize,
    /// The most.
    pub max: usize,
}

impl ItemCount {
    /// Any number of items.
    pub const ANY: Self = Self {
        min: 0,
        max: usize::MAX,
    };

    /// Returns whether a list of `items` items fits.
    #[must_use]
    pub const fn contains(self, items: usize) -> bool {
        self.min <= items && items <= self.max
    }

    /// Returns the bounds in words, such as `of at least 1`.
    fn text(self) -> String {
        match (self.min, self.max) {
            (0, usize::MAX) => String::new(),
            (min, usize::MAX) => format!(" of at least {min}"),
            (0, max) => format!(" of at most {max}"),
            (min, max) if min == max => format!(" of {min}"),
            (min, max) => format!(" of {min} to {max}"),
        }
    }
}

/// Inclusive bounds; an absent bound does not bind.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NumberRange {
    /// The least.
    pub min: Option<Number>,
    /// The greatest.
    pub max: Option<Number>,
    /// True if the least itself is excluded.
    pub above_min: bool,
    /// True if the greatest itself is excluded.
    pub below_max: bool,
}

impl ArgumentShape {
    /// Returns the shape of a tool with these parameters.
    #[must_use]
    pub fn new(params: Vec<ParameterShape>) -> Self {
        Self {
            params,
            ..Self::default()
        }
    }

    /// Sets the parameters of other tools.
    #[must_use]
    pub fn with_foreign<S: Into<String>>(mut self, foreign: impl IntoIterator<Item = S>) -> Self {
        self.foreign = foreign.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the names of other tools.
    #[must_use]
    pub fn with_other_tools<S: Into<String>>(mut self, tools: impl IntoIterator<Item = S>) -> Self {
        self.other_tools = tools.into_iter().map(Into::into).collect();
        self
    }

    /// Requires a call to say what to draw, where anything is left over.
    #[must_use]
    pub fn needing_choice(mut self) -> Self {
        self.needs_choice = true;
        self
    }

    /// Sets the known names of scenes and overlays.
    #[must_use]
    pub fn with_known_names<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.known_names = names.into_iter().map(Into::into).collect();
        self
    }

    /// Returns whether nothing moves with these arguments and the defaults of the others.
    pub(super) fn is_cautious(&self, given: &Map<String, Value>) -> bool {
        let mut cautious = self.params.iter().filter(|param| param.cautious.is_some());
        cautious.any(|param| {
            let value = given.get(&param.name).or(param.default.as_ref());
            value == param.cautious.as_ref()
        })
    }

    /// Sets the tool's own names.
    #[must_use]
    pub fn with_tool_names<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.tool_names = names.into_iter().map(Into::into).collect();
        self
    }
}

impl ParameterShape {
    /// Returns an optional parameter without a default.
    #[must_use]
    pub fn new(name: impl Into<String>, kind: ValueKind) -> Self {
        Self {
            name: name.into(),
            aliases: Vec::new(),
            kind,
            required: false,
            default: None,
            empty_is_default: false,
            cautious: None,
            nullable: false,
            selects_motion: false,
            guards: false,
            beside: Vec::new(),
        }
    }

    /// Makes the parameter required.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// Sets the default.
    #[must_use]
    pub fn default(mut self, value: impl Into<Value>) -> Self {
        self.default = Some(value.into());
        self
    }

    /// Sets the value with which nothing moves.
    #[must_use]
    pub fn cautious(mut self, value: impl Into<Value>) -> Self {
        self.cautious = Some(value.into());
        self
    }

    /// Marks the parameter as selecting what is moved or drawn.
    #[must_use]
    pub fn selects_motion(mut self) -> Self {
        self.selects_motion = true;
        self
    }

    /// Marks the parameter as limiting what is done or where.
    #[must_use]
    pub fn guards(mut self) -> Self {
        self.guards = true;
        self
    }

    /// Returns whether null is accepted: as a value, or as another way of not sending it.
    pub(super) fn may_be_null(&self) -> bool {
        self.nullable || !self.required
    }

    /// Adds another name.
    #[must_use]
    pub fn alias(mut self, alias: impl Into<String>) -> Self {
        self.aliases.push(alias.into());
        self
    }
}

impl ValueKind {
    /// Returns a choice of these texts.
    #[must_use]
    pub fn choice<S: Into<String>>(values: impl IntoIterator<Item = S>) -> Self {
        let values = values.into_iter().map(|value| Value::String(value.into()));
        Self::Choice {
            values: values.collect(),
            synonyms: Vec::new(),
        }
    }

    /// Returns the kind of these names.
    #[must_use]
    pub fn name<S: Into<String>>(known: impl IntoIterator<Item = S>) -> Self {
        Self::Name {
            known: known.into_iter().map(Into::into).collect(),
        }
    }

    /// Returns a list of any number of items.
    #[must_use]
    pub fn list(item: Self) -> Self {
        Self::List {
            item: Box::new(item),
            count: ItemCount::ANY,
        }
    }

    /// Returns a whole number from `min` to `max`.
    #[must_use]
    pub fn integer(min: i64, max: i64) -> Self {
        Self::Integer {
            range: NumberRange::new(Some(min.into()), Some(max.into())),
            unit: None,
        }
    }

    /// Returns a number from `min` to `max` in `unit`; a bound that is not finite does not bind.
    #[must_use]
    pub fn number(min: f64, max: f64, unit: Option<DeclaredUnit>) -> Self {
        Self::Number {
            range: NumberRange::new(Number::from_f64(min), Number::from_f64(max)),
            unit,
        }
    }

    /// Returns whether any text, even a blank one, is a value of this kind.
    pub(super) fn takes_text(&self) -> bool {
        match self {
            Self::Text | Self::Any => true,
            Self::AnyOf(kinds) => kinds.iter().any(Self::takes_text),
            _ => false,
        }
    }

    /// Returns whether an object is a value of this kind.
    pub(super) fn takes_object(&self) -> bool {
        match self {
            Self::Object { .. } | Self::Any => true,
            Self::AnyOf(kinds) => kinds.iter().any(Self::takes_object),
            Self::List { item, .. } => item.takes_object(),
            _ => false,
        }
    }

    /// Returns the expected value, in words.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Text => "a string".into(),
            Self::Verbatim { .. } => "a string, used exactly as sent".into(),
            Self::Hex { digits_min, .. } => {
                format!("at least {digits_min} hexadecimal digits in quotes")
            }
            Self::Name { .. } => "a known name".into(),
            Self::Choice { .. } => "one of the listed values".into(),
            Self::Bool => "true or false".into(),
            Self::Integer { range, unit } => {
                format!("a whole number{}{}", range.text(), in_unit(*unit))
            }
            Self::Number { range, unit } => format!("a number{}{}", range.text(), in_unit(*unit)),
            Self::List { item, count } => {
                format!("a list{}, each {}", count.text(), item.describe())
            }
            Self::Object { .. } => "an object".into(),
            Self::AnyOf(kinds) => {
                let kinds: Vec<String> = kinds.iter().map(Self::describe).collect();
                kinds.join(" or ")
            }
            Self::Nothing => "nothing".into(),
            Self::Any => "any value".into(),
        }
    }
}

fn in_unit(unit: Option<DeclaredUnit>) -> String {
    unit.map_or_else(String::new, |unit| format!(" in {}", unit.symbol()))
}

impl NumberRange {
    /// Returns the range from `min` to `max`, both included.
    #[must_use]
    pub fn new(min: Option<Number>, max: Option<Number>) -> Self {
        Self {
            min,
            max,
            ..Self::default()
        }
    }

    /// Returns whether `number` lies within the bounds. Whole numbers are compared as whole numbers.
    #[must_use]
    pub fn contains(&self, number: &Number) -> bool {
        let is_within = |bound: &Option<Number>, is_excluded: bool, side: Ordering| {
            let order = bound.as_ref().map(|bound| compare(number, bound));
            order.is_none_or(|order| {
                order == Some(side) || (order == Some(Ordering::Equal) && !is_excluded)
            })
        };
        is_within(&self.min, self.above_min, Ordering::Greater)
            && is_within(&self.max, self.below_max, Ordering::Less)
    }

    fn text(&self) -> String {
        let short = |bound: &Option<Number>| bound.as_ref().map(short);
        let low = if self.above_min { "above" } else { "at least" };
        let high = if self.below_max { "below" } else { "at most" };
        match (short(&self.min), short(&self.max)) {
            (Some(min), Some(max)) if !self.above_min && !self.below_max => {
                format!(" from {min} to {max}")
            }
            (Some(min), Some(max)) => format!(" {low} {min} and {high} {max}"),
            (Some(min), None) => format!(" {low} {min}"),
            (None, Some(max)) => format!(" {high} {max}"),
            (None, None) => String::new(),
        }
    }
}

/// Formats a number for people.
pub(super) fn short(number: &Number) -> String {
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(value) => units::short(value),
        None => number.to_string(),
    }
}

fn compare(a: &Number, b: &Number) -> Option<Ordering> {
    match (a.as_i128(), b.as_i128()) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}
