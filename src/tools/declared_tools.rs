//! Tools that the node file declares: checked once, when the node is opened, and turned into catalogue entries.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::dispatch::tools_of;
use super::tool_shape::shape;
use args::{
    self, ArgumentShape, DeclaredUnit, ForgivenessProfile, ReaderPolicy, ReceivedArguments,
    RepairClass,
};
use call::{Refusal, refusal};
use catalogue::{
    self, DESCRIPTION_CHARS_MAX, EXAM_TOOLS, KnownNames, PREVIEW_NAMES, ParameterKind,
    RECORDING_TOOLS, ResultField, ResultFieldKind, TOOLS, ToolDefinition, ToolEffect,
    ToolParameter, field,
};
use config::toml::FileError;
use config::{
    ArgumentEntry, ArgumentType, ConfigProblem, EffectEntry, NodeFile, OptionalToolset,
    ServerEntry, StepEntry, ToolEntry,
};

/// The declared tools of a node.
#[derive(Clone, Debug, Default)]
pub struct DeclaredTools {
    tools: Arc<[ToolDefinition]>,
    /// Their actions, in the same order.
    actions: Arc<[DeclaredAction]>,
    /// The built-in tools with the node file's descriptions; empty if it has none.
    reworded: Arc<[ToolDefinition]>,
}

/// Action of a declared tool.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum DeclaredAction {
    /// Calls a built-in tool.
    Calls(DeclaredStep),
    /// Calls several built-in tools, one after another.
    Sequence(Vec<DeclaredStep>),
    /// Helps to examine planners.
    Helps,
    /// Answers from the node's recordings.
    Recordings,
    /// Calls a tool of another server.
    Remote {
        /// The server.
        server: ServerEntry,
        /// The name of its tool.
        tool: String,
        /// True if its arguments are declared and therefore read; otherwise they are passed on as received.
        reads: bool,
    },
}

/// A call of a built-in tool with some arguments fixed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DeclaredStep {
    /// The built-in tool.
    pub(super) tool: &'static ToolDefinition,
    /// Arguments with fixed values.
    pub(super) fixed: Map<String, Value>,
}

/// Most lines of a declaration's description after the first.
const WHEN_LINES_MAX: usize = 4;

/// Longest name that every client accepts.
const PREFIXED_CHARS_MAX: usize = 40;

impl DeclaredTools {
    /// Checks a node file's declarations against the existing tools and names.
    ///
    /// # Errors
    /// Every problem in them, with its line.
    pub fn from_file(file: &NodeFile, names: &KnownNames) -> Result<Self, FileError> {
        let (tools, mut actions) = toolsets(file);
        let mut checker = DeclarationChecker {
            names,
            problems: Vec::new(),
            tools,
        };
        for (index, entry) in file.tools.iter().enumerate() {
            actions.extend(checker.tool(entry, &format!("tools[{index}]")));
        }
        let filter_problems = super::tool_filter::unknown_names(file, &checker.tools);
        checker.problems.extend(filter_problems);
        let meaningful = super::tool_filter::meaningful_keys(file, &checker.tools);
        checker.problems.extend(meaningful);
        let (reworded, problems) = super::reword::reworded(file, names);
        checker.problems.extend(problems);
        if !checker.problems.is_empty() {
            return Err(file.file_error(&checker.problems));
        }
        Ok(Self {
            tools: checker.tools.into(),
            actions: actions.into(),
            reworded: reworded.into(),
        })
    }

    /// Returns their catalogue entries.
    #[must_use]
    pub fn tools(&self) -> &[ToolDefinition] {
        &self.tools
    }

    /// Lists the names that are too long for clients that prefix the server's name and allow 60 letters in all.
    #[must_use]
    pub fn long_names(&self) -> Option<String> {
        let names = self.tools.iter().map(|tool| tool.name.as_str());
        let names: Vec<&str> = names
            .filter(|name| name.len() > PREFIXED_CHARS_MAX)
            .collect();
        (!names.is_empty()).then(|| {
            format!(
                "with a server's name in front, these are longer than {PREFIXED_CHARS_MAX} characters, so some clients refuse them: {}",
                names.join(", ")
            )
        })
    }

    /// Returns a shared list of the tools' entries.
    #[must_use]
    pub fn shared(&self) -> Arc<[ToolDefinition]> {
        Arc::clone(&self.tools)
    }

    /// Returns the built-in tools with the node file's descriptions; empty if it has none.
    #[must_use]
    pub fn reworded(&self) -> Arc<[ToolDefinition]> {
        Arc::clone(&self.reworded)
    }

    /// Returns whether the tool of this exact name passes its arguments on as received.
    pub(super) fn is_unread(&self, name: &str) -> bool {
        matches!(
            self.action(name),
            Some(DeclaredAction::Remote { reads: false, .. })
        )
    }

    /// Returns the action of the tool with this exact name.
    pub(super) fn action(&self, name: &str) -> Option<&DeclaredAction> {
        let index = self.tools.iter().position(|tool| tool.name == name)?;
        self.actions.get(index)
    }
}

/// Returns the optional toolsets: the word for each in a node file, its tools and their action.
fn all_toolsets() -> [(
    OptionalToolset,
    &'static str,
    &'static [ToolDefinition],
    DeclaredAction,
); 2] {
    [
        (
            OptionalToolset::Exam,
            "exam",
            &EXAM_TOOLS,
            DeclaredAction::Helps,
        ),
        (
            OptionalToolset::Recording,
            "recording",
            &RECORDING_TOOLS,
            DeclaredAction::Recordings,
        ),
    ]
}

/// Returns the optional toolset that has a tool of this name and that a node file does not ask for.
pub(super) fn unlisted_toolset(file: &NodeFile, tool: &str) -> Option<&'static str> {
    let has_tool = |tools: &[ToolDefinition]| {
        let mut names = tools.iter().flat_map(ToolDefinition::names);
        names.any(|name| name == tool)
    };
    let mut sets = all_toolsets().into_iter();
    let found = sets.find(|(set, _, tools, _)| !file.toolsets.contains(set) && has_tool(tools));
    found.map(|(_, word, ..)| word)
}

/// Returns the tools of the requested optional toolsets, with their actions.
fn toolsets(file: &NodeFile) -> (Vec<ToolDefinition>, Vec<DeclaredAction>) {
    let sets = all_toolsets();
    let requested = sets.iter().filter(|(set, ..)| file.toolsets.contains(set));
    requested
        .flat_map(|(_, _, tools, action)| tools.iter().map(|tool| (tool.clone(), action.clone())))
        .unzip()
}

impl DeclaredStep {
    /// Returns the step's arguments: the fixed ones, and those of `given` that it takes.
    pub(super) fn arguments(&self, given: &Map<String, Value>) -> Map<String, Value> {
        let taken = given.iter().filter(|(name, _)| self.takes(name));
        let taken = taken.map(|(name, value)| (name.clone(), value.clone()));
        self.fixed.clone().into_iter().chain(taken).collect()
    }

    fn takes(&self, name: &str) -> bool {
        parameter(self.tool, name).is_some_and(|found| !self.fixed.contains_key(&found.name))
    }

    /// Returns whether this step moves nothing when `given` asks for a dry run.
    pub(super) fn stands_still(&self, given: &Map<String, Value>) -> bool {
        let arguments = self.arguments(given);
        let is_asked = |name: &&str| arguments.get(*name) == Some(&Value::Bool(true));
        self.tool.effect != ToolEffect::Moves || PREVIEW_NAMES.iter().any(is_asked)
    }

    /// Describes the step for people, such as `stroke {"scene":"letters"}`.
    pub(super) fn describe(&self) -> String {
        if self.fixed.is_empty() {
            return self.tool.name.clone();
        }
        format!("{} {}", self.tool.name, Value::Object(self.fixed.clone()))
    }
}

/// Checks declarations and collects their problems.
struct DeclarationChecker<'a> {
    names: &'a KnownNames,
    problems: Vec<ConfigProblem>,
    tools: Vec<ToolDefinition>,
}

impl DeclarationChecker<'_> {
    fn add_problem(&mut self, path: String, problem: String) {
        self.problems.push(ConfigProblem::at(path, problem));
    }

    fn tool(&mut self, entry: &ToolEntry, path: &str) -> Option<DeclaredAction> {
        let before = self.problems.len();
        self.name(entry, path);
        let action = self.action_of(entry, path);
        let declared = entry.arguments.iter().flatten();
        let parameters: Vec<ToolParameter> = declared
            .enumerate()
            .filter_map(|(index, argument)| {
                let path = format!("{path}.arguments[{index}]");
                self.parameter(entry, argument, action.as_ref()?, &path)
            })
            .collect();
        let tool = definition(entry, parameters, action.as_ref()?);
        let length = catalogue::description(&tool, self.names).chars().count();
        if length > DESCRIPTION_CHARS_MAX {
            let problem = format!(
                "the whole description of tool `{}` has {length} characters (at most {DESCRIPTION_CHARS_MAX}): shorten it",
                entry.name
            );
            self.add_problem(format!("{path}.description"), problem);
        }
        self.tools.push(tool);
        action.filter(|_| self.problems.len() == before)
    }

    /// Checks that no other tool has the name, ignoring its form.
    fn name(&mut self, entry: &ToolEntry, path: &str) {
        let existing = tools_of(&entry.name, TOOLS.iter().chain(&self.tools));
        if let Some(existing) = existing.first() {
            let problem = format!(
                "`{}` is already a name of the tool `{}`: choose a different name",
                entry.name, existing.name
            );
            self.add_problem(format!("{path}.name"), problem);
        }
    }

    fn action_of(&mut self, entry: &ToolEntry, path: &str) -> Option<DeclaredAction> {
        if let (Some(server), Some(tool)) = (&entry.server, &entry.tool) {
            return Some(DeclaredAction::Remote {
                server: server.clone(),
                tool: tool.clone(),
                reads: entry.arguments.is_some(),
            });
        }
        if let Some(calls) = &entry.calls {
            let step = StepEntry {
                calls: calls.clone(),
                fixed: entry.fixed.clone(),
            };
            return self.step(&step, path).map(DeclaredAction::Calls);
        }
        let steps = entry.sequence.as_ref()?.iter().enumerate();
        let steps: Vec<Option<DeclaredStep>> = steps
            .map(|(index, step)| self.step(step, &format!("{path}.sequence[{index}]")))
            .collect();
        let steps = steps.into_iter().collect::<Option<Vec<_>>>()?;
        self.check_stop_is_last(&steps, entry, path);
        Some(DeclaredAction::Sequence(steps))
    }

    /// Checks that a stop is the last step: motion after a stop needs a new decision.
    fn check_stop_is_last(&mut self, steps: &[DeclaredStep], entry: &ToolEntry, path: &str) {
        let before_last = steps.iter().enumerate().take(steps.len().saturating_sub(1));
        for (index, step) in before_last.filter(|(_, step)| step.tool.effect == ToolEffect::Stops) {
            let problem = format!(
                "tool `{}`: `{}` can only be the last step, because motion after a stop needs a new call",
                entry.name, step.tool.name
            );
            self.add_problem(format!("{path}.sequence[{index}].calls"), problem);
        }
    }

    fn step(&mut self, entry: &StepEntry, path: &str) -> Option<DeclaredStep> {
        let is_called = |tool: &&ToolDefinition| tool.names().any(|name| name == entry.calls);
        let Some(tool) = TOOLS.iter().find(is_called) else {
            let names = TOOLS.iter().map(|tool| tool.name.as_str());
            let problem = format!(
                "there is no built-in tool `{}`. Valid (nearest first): {}",
                entry.calls,
                args::nearest(&entry.calls, names).join(", ")
            );
            self.add_problem(format!("{path}.calls"), problem);
            return None;
        };
        let mut fixed = Map::new();
        for (name, value) in &entry.fixed {
            let path = format!("{path}.fixed.{name}");
            if let Some((name, value)) = self.fixed(tool, name, value, &path) {
                fixed.insert(name, value);
            }
        }
        Some(DeclaredStep { tool, fixed })
    }

    /// Returns a fixed argument as the tool will understand it.
    fn fixed(
        &mut self,
        tool: &ToolDefinition,
        name: &str,
        value: &Value,
        path: &str,
    ) -> Option<(String, Value)> {
        let Some(parameter) = parameter(tool, name) else {
            let names = tool.parameters.iter().map(|known| known.name.as_str());
            let problem = format!(
                "`{}` has no argument `{name}`. Valid (nearest first): {}",
                tool.name,
                args::nearest(name, names).join(", ")
            );
            self.add_problem(path.to_owned(), problem);
            return None;
        };
        let mut shape = shape(tool, self.names);
        shape.params.retain(|param| param.name == parameter.name);
        match understood(&shape, &parameter.name, value) {
            Ok(value) => Some((parameter.name.clone(), value)),
            Err(error) => {
                self.add_problem(path.to_owned(), format!("fixed argument {error}"));
                None
            }
        }
    }

    fn parameter(
        &mut self,
        entry: &ToolEntry,
        argument: &ArgumentEntry,
        action: &DeclaredAction,
        path: &str,
    ) -> Option<ToolParameter> {
        let mut kind = self.kind(argument, path);
        let steps = action.steps();
        if !steps.is_empty() {
            let inner_parameter = self.inner_parameter(entry, argument, steps, path)?;
            if inner_parameter.kind.json_type() != kind.json_type() {
                let problem = format!(
                    "argument `{}` is a {}, but the built-in tool takes a {}",
                    argument.name,
                    kind.json_type(),
                    inner_parameter.kind.json_type()
                );
                self.add_problem(format!("{path}.type"), problem);
            }
            // Names may change while the node runs, so their kind comes from the built-in tool.
            if kind == ParameterKind::Text {
                kind = inner_parameter.kind;
            }
        }
        Some(ToolParameter {
            name: argument.name.clone(),
            aliases: Vec::new(),
            kind,
            required: argument.required,
            default: argument.default.clone(),
            example: None,
            words: description(argument),
            is_unlisted: false,
        })
    }

    /// Returns the parameter of a built-in tool to which an argument is passed.
    fn inner_parameter(
        &mut self,
        entry: &ToolEntry,
        argument: &ArgumentEntry,
        steps: &[DeclaredStep],
        path: &str,
    ) -> Option<ToolParameter> {
        let name = &argument.name;
        let taking_step = steps.iter().find(|step| step.takes(name));
        if let Some(found) = taking_step.and_then(|step| parameter(step.tool, name)) {
            return Some(found.clone());
        }
        let (mut all, tool) = (steps.iter(), &entry.name);
        let problem = if all.any(|step| parameter(step.tool, name).is_some()) {
            format!("argument `{name}` of tool `{tool}` is already fixed")
        } else {
            let known = steps.iter().flat_map(|step| &step.tool.parameters);
            let known: BTreeSet<&str> = known.map(|parameter| parameter.name.as_str()).collect();
            let nearest = args::nearest(name, known).join(", ");
            format!(
                "no built-in tool of `{tool}` takes an argument `{name}`. Valid (nearest first): {nearest}"
            )
        };
        self.add_problem(format!("{path}.name"), problem);
        None
    }

    fn kind(&mut self, argument: &ArgumentEntry, path: &str) -> ParameterKind {
        let unit = argument.unit.clone();
        let is_unknown = |name: &&String| DeclaredUnit::named(name).is_none();
        if let Some(name) = unit.as_ref().filter(is_unknown) {
            let problem = format!(
                "argument `{}`: the unit `{name}` is unknown; write a unit such as mm, cm, m, deg, rad, s, ms, mm/s or hz",
                argument.name
            );
            self.add_problem(format!("{path}.unit"), problem);
        }
        match (argument.kind, &argument.values) {
            (ArgumentType::String, Some(values)) => ParameterKind::Choice(values.clone()),
            (ArgumentType::String, None) => ParameterKind::Text,
            (ArgumentType::Integer, _) => ParameterKind::Whole { unit },
            (ArgumentType::Number, _) => ParameterKind::Number { unit },
            (ArgumentType::Boolean, _) => ParameterKind::Bool,
            (ArgumentType::Array, _) => ParameterKind::Texts,
        }
    }
}

/// Returns the parameter with this exact name or alias.
fn parameter<'a>(tool: &'a ToolDefinition, name: &str) -> Option<&'a ToolParameter> {
    tool.parameters.iter().find(|parameter| {
        parameter.name == name || parameter.aliases.iter().any(|alias| alias == name)
    })
}

/// Returns a value as the reader understands it, if it needs no repair other than of its form.
fn understood(shape: &ArgumentShape, name: &str, value: &Value) -> Result<Value, Refusal> {
    let policy = ReaderPolicy::new(args::ToolEffect::Moves, ForgivenessProfile::Guarded);
    let received = Map::from_iter([(name.to_owned(), value.clone())]);
    let received = ReceivedArguments::Value(Value::Object(received));
    let reading =
        args::read(shape, &policy, received).map_err(|complaints| refusal!("{complaints}"))?;
    match reading.given.get(name) {
        Some(value) if reading.loss == RepairClass::L0 => Ok(value.clone()),
        _ => Err(refusal!(
            "{name}: {value} has no effect. Next: leave it out"
        )),
    }
}

/// Returns the description of an argument, with its default.
fn description(argument: &ArgumentEntry) -> String {
    let description = argument.description.trim().trim_end_matches('.');
    match &argument.default {
        Some(default) => format!("{description}, default {default}"),
        None => description.to_owned(),
    }
}

/// Returns the catalogue entry of a declared tool.
fn definition(
    entry: &ToolEntry,
    parameters: Vec<ToolParameter>,
    action: &DeclaredAction,
) -> ToolDefinition {
    let mut lines = entry.description.trim().lines().map(str::trim);
    let does = lines.next().unwrap_or_default().trim_end_matches('.');
    let mut when: Vec<String> = lines.map(str::to_owned).collect();
    when.extend(action.description());
    when.truncate(WHEN_LINES_MAX);
    let steps = action.steps();
    let effect = action.effect(entry.effect);
    let unlisted = unlisted(entry, &parameters, steps);
    ToolDefinition {
        name: entry.name.clone(),
        title: entry.title.clone().unwrap_or_else(|| title(&entry.name)),
        aliases: Vec::new(),
        also: Vec::new(),
        effect,
        writes: false,
        does: does.to_owned(),
        default_action: format!("runs `{}` with its defaults", entry.name),
        parameters,
        unlisted,
        canvas_parameters: Vec::new(),
        canvas_examples: Vec::new(),
        examples: Vec::new(),
        when,
        fields: action.fields(),
        destructive: match action {
            DeclaredAction::Remote { .. } => effect == ToolEffect::Moves,
            _ => steps.iter().any(|step| step.tool.destructive),
        },
        idempotent: !steps.is_empty() && steps.iter().all(|step| step.tool.idempotent),
        open_world: matches!(action, DeclaredAction::Remote { .. }),
    }
}

/// Returns the parameters besides the declared ones. If none are declared, those that the steps take; also each fixed
/// parameter with its single value, so that a caller who passes a different value gets an error.
fn unlisted(
    entry: &ToolEntry,
    listed: &[ToolParameter],
    steps: &[DeclaredStep],
) -> Vec<ToolParameter> {
    let all = steps.iter();
    let all = all.flat_map(|step| step.tool.parameters.iter().map(move |own| (step, own)));
    let passed = all.clone().filter(|(step, own)| step.takes(&own.name));
    let passed = passed.filter(|_| entry.arguments.is_none());
    let passed = passed.map(|(_, parameter)| (parameter, parameter.kind.clone()));
    let fixed = all.filter_map(|(step, parameter)| {
        let text = match step.fixed.get(&parameter.name)? {
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        Some((parameter, ParameterKind::Choice(vec![text])))
    });
    let mut found: Vec<ToolParameter> = Vec::new();
    for (parameter, kind) in passed.chain(fixed) {
        let mut known = listed.iter().chain(&found);
        if known.all(|known| known.name != parameter.name) {
            found.push(ToolParameter {
                kind,
                required: false,
                default: None,
                ..parameter.clone()
            });
        }
    }
    found
}

/// Returns a name as a title for people: "Draw sign" for `draw_sign`.
fn title(name: &str) -> String {
    let words = name.replace(['_', '-'], " ");
    let mut chars = words.chars();
    let first = chars.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(chars).collect()
}

impl DeclaredAction {
    fn steps(&self) -> &[DeclaredStep] {
        match self {
            Self::Calls(step) => std::slice::from_ref(step),
            Self::Sequence(steps) => steps,
            Self::Remote { .. } | Self::Helps | Self::Recordings => &[],
        }
    }

    /// Returns the strictest effect of all called tools: a single step that moves makes it motion. The effect of another
    /// server's tool is unknown, so it counts as motion unless the declaration says that it only reads.
    fn effect(&self, declared: Option<EffectEntry>) -> ToolEffect {
        let has = |effect| self.steps().iter().any(|step| step.tool.effect == effect);
        match self {
            Self::Remote { .. } if declared == Some(EffectEntry::Reads) => ToolEffect::Reads,
            Self::Remote { .. } => ToolEffect::Moves,
            _ if has(ToolEffect::Moves) => ToolEffect::Moves,
            _ if has(ToolEffect::Stops) => ToolEffect::Stops,
            _ => ToolEffect::Reads,
        }
    }

    fn fields(&self) -> Vec<ResultField> {
        match self {
            Self::Calls(step) => step.tool.fields.clone(),
            Self::Sequence(_) => vec![field(
                "steps",
                ResultFieldKind::Objects,
                "for each step: tool, understood arguments and result",
            )],
            Self::Remote { .. } => {
                let answer = "the answer as data";
                let server = field("server", ResultFieldKind::Text, "the server that answered");
                vec![server, field("result", ResultFieldKind::Object, answer)]
            }
            Self::Helps | Self::Recordings => Vec::new(),
        }
    }

    /// Returns a description of the action in terms of built-in tools.
    fn description(&self) -> Option<String> {
        match self {
            Self::Calls(step) => Some(format!("Calls {}.", step.describe())),
            Self::Sequence(steps) => {
                let steps: Vec<String> = steps.iter().map(DeclaredStep::describe).collect();
                Some(format!("Calls in order: {}.", steps.join(", ")))
            }
            Self::Remote { .. } | Self::Helps | Self::Recordings => None,
        }
    }
}
