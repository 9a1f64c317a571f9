//! Converts the catalogue's entry of a tool to the shape that the argument reader needs.

use super::design_arguments::{DESIGN_KEYS, IMAGE_KEY, PLACE_KEYS, STYLE_KEY};
use super::stroke::{PLAN_DIGITS_MAX, PLAN_DIGITS_MIN};
use args::{ArgumentShape, DeclaredUnit, ItemCount, NumberRange, ParameterShape, ValueKind};
use catalogue::{
    KnownNames, NameSource, PREVIEW_NAMES, ParameterKind, ToolDefinition, ToolParameter,
};

/// Returns the shape of a tool's arguments for these names.
#[must_use]
pub fn shape(tool: &ToolDefinition, here: &KnownNames) -> ArgumentShape {
    let parameters = || tool.listed_parameters(here).chain(&tool.unlisted);
    let elsewhere = tool
        .canvas_parameters
        .iter()
        .filter(|_| here.canvases.is_empty());
    let others = || here.tools().filter(|other| other.name != tool.name);
    let own: Vec<&str> = parameters().flat_map(names).collect();
    let foreign = others()
        .flat_map(|other| other.listed_parameters(here))
        .flat_map(names);
    let shape = ArgumentShape {
        elsewhere: elsewhere.flat_map(names).map(str::to_owned).collect(),
        ignore_keys: here.ignore_keys.clone(),
        needs_choice: parameters().any(|one| is_scene(one) && one.default.is_some()),
        ..ArgumentShape::new(
            parameters()
                .map(|parameter| param(parameter, here))
                .collect(),
        )
    };
    shape
        .with_foreign(foreign.filter(|name| !own.contains(name)))
        .with_other_tools(others().flat_map(ToolDefinition::names))
        .with_known_names(here.scenes.iter().chain(&here.overlays))
        .with_tool_names(tool.names())
}

fn is_scene(parameter: &ToolParameter) -> bool {
    parameter.kind == ParameterKind::Name(NameSource::Scenes)
}

/// Parameters that say what is drawn, besides the scene.
const CHOICES: [&str; 5] = ["text", "svg", "image", "plan", "resume"];

/// Returns a parameter's name and aliases.
fn names(parameter: &ToolParameter) -> impl Iterator<Item = &str> {
    std::iter::once(&parameter.name)
        .chain(&parameter.aliases)
        .map(String::as_str)
}

fn param(parameter: &ToolParameter, here: &KnownNames) -> ParameterShape {
    let is_scene = is_scene(parameter);
    let is_place = PLACE_KEYS.contains(&parameter.name.as_str());
    let beside = match parameter.name.as_str() {
        STYLE_KEY => &[IMAGE_KEY][..],
        _ if is_place => &DESIGN_KEYS,
        _ => &[],
    };
    ParameterShape {
        aliases: parameter.aliases.clone(),
        required: parameter.required,
        default: here.default_of(parameter),
        cautious: PREVIEW_NAMES
            .contains(&parameter.name.as_str())
            .then_some(true.into()),
        selects_motion: is_scene || CHOICES.contains(&parameter.name.as_str()),
        guards: !is_scene,
        beside: beside.iter().map(|key| (*key).to_owned()).collect(),
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
    ArgumentShape::new(params.collect()).with_tool_names(tool.names())
}

fn kind(kind: &ParameterKind, here: &KnownNames) -> ValueKind {
    let range = NumberRange::default();
    let known = |unit: &Option<String>| unit.as_deref().and_then(DeclaredUnit::named);
    match kind {
        ParameterKind::Bool => ValueKind::Bool,
        ParameterKind::Text => ValueKind::Text,
        ParameterKind::Plan => ValueKind::Hex {
            digits_min: PLAN_DIGITS_MIN,
            digits_max: PLAN_DIGITS_MAX,
        },
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
        ParameterKind::Name(NameSource::Scenes) => {
            ValueKind::name(here.scenes.iter().chain(&here.parts).cloned())
        }
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
        ParameterKind::Object => any_object(),
        ParameterKind::Objects(_) => ValueKind::list(any_object()),
    }
}

fn any_object() -> ValueKind {
    ValueKind::Object {
        fields: Vec::new(),
        open: true,
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
