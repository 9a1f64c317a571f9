//! Converts the catalogue's entry of a tool to the shape that the argument reader needs.

use super::design_arguments::{DESIGN_KEYS, PLACE_KEYS};
use args::{ArgumentShape, DeclaredUnit, ItemCount, NumberRange, ParameterShape, ValueKind};
use catalogue::{
    KnownNames, NameSource, PREVIEW_NAMES, ParameterKind, ToolDefinition, ToolParameter,
};

/// Returns the shape of a tool's arguments for these names.
#[must_use]
pub fn shape(tool: &ToolDefinition, here: &KnownNames) -> ArgumentShape {
    let parameters = || tool.listed_parameters(here).chain(&tool.unlisted);
    let own: Vec<&str> = parameters().flat_map(names).collect();
    let others = || here.tools().flat_map(|other| other.listed_parameters(here));
    let flags = others().filter(|other| other.kind == ParameterKind::Bool);
    let is_foreign = |name: &&str| !own.contains(name);
    let params = parameters().map(|parameter| param(parameter, here));
    ArgumentShape::new(params.collect())
        .with_foreign(others().flat_map(names).filter(is_foreign))
        .with_foreign_flags(flags.flat_map(names).filter(is_foreign))
        .with_known_names(known_names(here))
        .with_tool_names(tool.names())
        .with_default_action(&tool.default_action)
}

/// Returns the names that any value can mean. Excludes the names of a single arm and of this node, which no call needs to give.
fn known_names(here: &KnownNames) -> impl Iterator<Item = &String> {
    let arms = here.arms.iter().filter(|_| here.arms.len() > 1);
    let places = arms.chain(other_nodes(here));
    here.scenes.iter().chain(&here.overlays).chain(places)
}

fn other_nodes(here: &KnownNames) -> impl Iterator<Item = &String> {
    here.nodes.iter().skip(1)
}

/// Returns a parameter's name and aliases.
fn names(parameter: &ToolParameter) -> impl Iterator<Item = &str> {
    std::iter::once(&parameter.name)
        .chain(&parameter.aliases)
        .map(String::as_str)
}

fn param(parameter: &ToolParameter, here: &KnownNames) -> ParameterShape {
    let is_scene = parameter.kind == ParameterKind::Name(NameSource::Scenes);
    let is_place = PLACE_KEYS.contains(&parameter.name.as_str());
    let beside = DESIGN_KEYS.iter().filter(|_| is_place);
    ParameterShape {
        aliases: parameter.aliases.clone(),
        required: parameter.required,
        default: here.default_of(parameter),
        cautious: PREVIEW_NAMES
            .contains(&parameter.name.as_str())
            .then_some(true.into()),
        selects_motion: is_scene,
        guards: !is_scene,
        beside: beside.map(|key| (*key).to_owned()).collect(),
        ..ParameterShape::new(&parameter.name, kind(&parameter.kind, here))
    }
}

/// Returns the shape of a tool's arguments if only the names of nodes are known: other names may be another node's.
pub(super) fn open_shape(tool: &ToolDefinition, here: &KnownNames) -> ArgumentShape {
    // A design for another node is data here too.
    let taken = tool.parameters.iter().chain(&tool.canvas_parameters);
    let params = taken.map(|parameter| {
        let mut param = param(parameter, here);
        if matches!(
            parameter.kind,
            ParameterKind::Name(NameSource::Scenes | NameSource::Overlays | NameSource::Arms)
        ) {
            param.kind = ValueKind::Text;
        }
        param
    });
    ArgumentShape::new(params.collect())
        .with_known_names(other_nodes(here))
        .with_tool_names(tool.names())
        .with_default_action(&tool.default_action)
}

fn kind(kind: &ParameterKind, here: &KnownNames) -> ValueKind {
    let range = NumberRange::default();
    let known = |unit: &Option<String>| unit.as_deref().and_then(DeclaredUnit::named);
    match kind {
        ParameterKind::Bool => ValueKind::Bool,
        ParameterKind::Text => ValueKind::Text,
        ParameterKind::Verbatim { bytes_max } => ValueKind::Verbatim {
            bytes_max: *bytes_max,
        },
        ParameterKind::Point { unit } => ValueKind::List {
            item: Box::new(ValueKind::Number {
                range,
                unit: DeclaredUnit::named(unit),
            }),
            count: ItemCount { min: 2, max: 2 },
        },
        ParameterKind::Name(names) => ValueKind::name(here.names(*names).iter().cloned()),
        ParameterKind::Choice(values) => ValueKind::choice(values.iter().cloned()),
        ParameterKind::Whole { unit } => ValueKind::Integer {
            range,
            unit: known(unit),
        },
        ParameterKind::Number { unit } => ValueKind::Number {
            range,
            unit: known(unit),
        },
        ParameterKind::Texts => ValueKind::list(ValueKind::Text),
        ParameterKind::Numbers { names, unit } => ValueKind::Object {
            fields: names.iter().map(|name| number(name, unit)).collect(),
            open: false,
        },
        ParameterKind::Objects => ValueKind::list(ValueKind::Object {
            fields: Vec::new(),
            open: true,
        }),
    }
}

/// Returns a field of an object of numbers.
fn number(name: &str, unit: &str) -> ParameterShape {
    let kind = ValueKind::Number {
        range: NumberRange::default(),
        unit: DeclaredUnit::named(unit),
    };
    ParameterShape::new(name, kind).default(0.0)
}
