//! From the catalogue's entry of a tool to what the reader of arguments wants to know.

use args::{self, Param, Range, Shape, Unit};
use catalogue::{Here, Kind, PREVIEW_NAMES, Parameter, Tool, Vocabulary};

/// The shape of a tool's arguments on this node now.
#[must_use]
pub fn shape(tool: &Tool, here: &Here) -> Shape {
    let taken = || tool.parameters.iter().chain(&tool.unlisted);
    let own: Vec<&str> = taken().flat_map(names).collect();
    let foreign = here
        .tools()
        .flat_map(|other| &other.parameters)
        .flat_map(names)
        .filter(|name| !own.contains(name));
    let params = taken().map(|parameter| param(parameter, here));
    Shape::new(params.collect())
        .with_foreign(foreign)
        .with_known_names(known_names(here))
        .with_tool_names(tool.names())
        .with_default_action(&tool.default_action)
}

/// Returns the names that a value can mean anywhere. Excludes the name of a single arm, which needs none.
fn known_names(here: &Here) -> impl Iterator<Item = &String> {
    let arms = here.arms.iter().filter(|_| here.arms.len() > 1);
    here.scenes.iter().chain(&here.overlays).chain(arms)
}

/// Every name that a parameter answers to.
fn names(parameter: &Parameter) -> impl Iterator<Item = &str> {
    std::iter::once(&parameter.name)
        .chain(&parameter.aliases)
        .map(String::as_str)
}

fn param(parameter: &Parameter, here: &Here) -> Param {
    Param {
        aliases: parameter.aliases.clone(),
        required: parameter.required,
        default: parameter.default.clone(),
        cautious: PREVIEW_NAMES
            .contains(&parameter.name.as_str())
            .then_some(true.into()),
        selects_motion: parameter.kind == Kind::Name(Vocabulary::Scenes),
        ..Param::new(&parameter.name, kind(&parameter.kind, here))
    }
}

/// The shape of a tool's arguments where only the names of nodes are known: other names may be another node's.
pub(super) fn open_shape(tool: &Tool, here: &Here) -> Shape {
    let params = tool.parameters.iter().map(|parameter| {
        let mut param = param(parameter, here);
        if matches!(
            parameter.kind,
            Kind::Name(Vocabulary::Scenes | Vocabulary::Overlays | Vocabulary::Arms)
        ) {
            param.kind = args::Kind::Text;
        }
        param
    });
    Shape::new(params.collect())
        .with_tool_names(tool.names())
        .with_default_action(&tool.default_action)
}

fn kind(kind: &Kind, here: &Here) -> args::Kind {
    let range = Range::default();
    let known = |unit: &Option<String>| unit.as_deref().and_then(Unit::named);
    match kind {
        Kind::Bool => args::Kind::Bool,
        Kind::Text => args::Kind::Text,
        Kind::Name(names) => args::Kind::name(here.names(*names).iter().cloned()),
        Kind::Choice(values) => args::Kind::choice(values.iter().cloned()),
        Kind::Whole { unit } => args::Kind::Integer {
            range,
            unit: known(unit),
        },
        Kind::Number { unit } => args::Kind::Number {
            range,
            unit: known(unit),
        },
        Kind::Texts => args::Kind::list(args::Kind::Text),
        Kind::Numbers { names, unit } => args::Kind::Object {
            fields: names.iter().map(|name| number(name, unit)).collect(),
            open: false,
        },
        Kind::Objects => args::Kind::list(args::Kind::Object {
            fields: Vec::new(),
            open: true,
        }),
    }
}

/// A field of an object of numbers.
fn number(name: &str, unit: &str) -> Param {
    let kind = args::Kind::Number {
        range: Range::default(),
        unit: Unit::named(unit),
    };
    Param::new(name, kind).default(0.0)
}
