//! The tools that are shown to a planner, and how the node would read a call of one.

use serde_json::{Map, Value, json};

use super::accepted_values::options;
use super::answer::PlannerCall;
use super::{ExamCase, ExamError};
use args::name::{NameResolution, normalise, resolve};
use args::{
    self, ArgumentReading, ArgumentRefusal, ArgumentShape, ReaderPolicy, ReceivedArguments,
    ToolEffect, Verdict,
};

/// One tool.
#[derive(Clone, Debug)]
pub(crate) struct ExamToolCard {
    /// The name under which it is shown.
    pub(crate) name: String,
    /// Server that has it; empty for the node's own.
    pub(crate) server: String,
    /// Its name at its server, which differs from `name` if two servers have tools with that name.
    pub(crate) own_name: String,
    /// Every name that it answers to, its own first.
    pub(crate) names: Vec<String>,
    /// Names that are listed in addition to its own.
    pub(crate) aliases: Vec<String>,
    /// Description for models.
    pub(crate) description: String,
    /// JSON Schema of its arguments.
    pub(crate) input_schema: Value,
    /// JSON Schema of its result, if it has one.
    pub(crate) output_schema: Option<Value>,
    /// Effect of the tool on the world.
    pub(crate) does: ToolEffect,
    /// Shape of its arguments, for the reader.
    pub(crate) shape: ArgumentShape,
    /// Strictness with which its arguments are read.
    pub(crate) policy: ReaderPolicy,
    /// True if only its name is known, from a case; its arguments are then accepted as received.
    pub(crate) is_only_named: bool,
}

/// Reason that a function's definition cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FunctionError {
    /// It has no name.
    #[error("a function has no \"name\"")]
    NoName,
    /// Its parameters cannot be read.
    #[error("{name}: {error}")]
    Schema {
        /// The function.
        name: String,
        /// Cause.
        error: args::SchemaError,
    },
}

impl ExamToolCard {
    /// Builds a tool from a definition in the form of chat completions and BFCL. Such a definition states no effect, so
    /// the tool counts as read-only.
    ///
    /// # Errors
    /// Fails if the definition cannot be used.
    pub(crate) fn defined(function: &Value) -> Result<Self, FunctionError> {
        let function = function.get("function").unwrap_or(function);
        let text = |key: &str| function.get(key).and_then(Value::as_str);
        let name = text("name").ok_or(FunctionError::NoName)?;
        let schema = ["parameters", "inputSchema", "input_schema"]
            .iter()
            .find_map(|key| function.get(*key))
            .cloned()
            .unwrap_or_else(|| json!({"type": "object", "properties": {}}));
        let shape = ArgumentShape::from_json_schema(&schema);
        let shape = shape.map_err(|error| FunctionError::Schema {
            name: name.to_owned(),
            error,
        })?;
        Ok(Self {
            description: text("description").unwrap_or_default().to_owned(),
            input_schema: schema,
            shape,
            is_only_named: false,
            ..Self::named(name)
        })
    }

    /// Creates a tool of which only the name is known.
    pub(crate) fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            server: String::new(),
            own_name: name.to_owned(),
            names: vec![name.to_owned()],
            aliases: Vec::new(),
            description: String::new(),
            input_schema: json!({"type": "object", "properties": {}}),
            output_schema: None,
            does: ToolEffect::Reads,
            shape: ArgumentShape {
                open: true,
                ..ArgumentShape::default()
            },
            policy: ReaderPolicy::of_foreign_schema(),
            is_only_named: true,
        }
    }

    /// Returns its purpose: the first line of its description, ignoring the lines that the catalogue adds to every tool.
    pub(crate) fn purpose(&self) -> &str {
        let line = self.first_line();
        let line = line.split(" Minimal call:").next().unwrap_or(line);
        catalogue::purpose_in(line, &self.own_name)
    }

    fn first_line(&self) -> &str {
        self.authored_lines().next().unwrap_or_default()
    }

    /// Returns the lines of its description that its author wrote.
    fn authored_lines(&self) -> impl Iterator<Item = &str> {
        let is_added = |line: &&str| ADDED_LINES.iter().any(|start| line.starts_with(start));
        self.description.lines().filter(move |line| !is_added(line))
    }

    /// Returns the lines that its author wrote, after the first.
    pub(crate) fn own_lines(&self) -> Vec<&str> {
        let mut lines: Vec<&str> = self.authored_lines().skip(1).collect();
        // The last line of a declared tool names what it calls, which follows from its declaration.
        lines.pop_if(|line| line.starts_with("Calls "));
        lines
    }

    /// Returns the length in characters that its description would have with this text as the author's.
    pub(crate) fn chars_with(&self, text: &str) -> usize {
        let all = self.description.lines();
        // That of a canvas yields to an author's.
        let yielding = all.filter(|line| line.starts_with(catalogue::CANVAS_LINE));
        let own = self.authored_lines().chain(yielding);
        let own = own.map(|line| line.chars().count() + 1);
        let rest = self.description.chars().count().saturating_sub(own.sum());
        let around_purpose = self.first_line().chars().count() - self.purpose().chars().count();
        rest + around_purpose + text.chars().count() + 1
    }

    /// Returns the tool as chat completions define it.
    pub(crate) fn function(&self) -> Value {
        self.function_as(&self.name)
    }

    fn function_as(&self, name: &str) -> Value {
        json!({"type": "function", "function": {
            "name": name, "description": self.description, "parameters": self.input_schema,
        }})
    }

    /// Reads arguments as the node would.
    ///
    /// # Errors
    /// Fails with the refusal that a caller would get.
    pub(crate) fn read(
        &self,
        arguments: &ReceivedArguments,
    ) -> Result<ArgumentReading, Box<ArgumentRefusal>> {
        match args::judged(&self.shape, &self.policy, arguments.clone()) {
            Verdict::Understood(understood) => Ok(understood.into_reading()),
            // Its keys that no parameter has are counted.
            Verdict::Preview(reading) => Ok(reading),
            Verdict::Refused(refusal) => Err(refusal),
        }
    }

    /// Returns the parameter that a name means, regardless of its form.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        let (names, owners): (Vec<&str>, Vec<&str>) = self
            .shape
            .params
            .iter()
            .flat_map(|param| {
                let all = std::iter::once(&param.name).chain(&param.aliases);
                all.map(|one| (one.as_str(), param.name.as_str()))
            })
            .unzip();
        match resolve(name, &names) {
            NameResolution::Resolved { index, .. } => owners.get(index).copied(),
            _ => None,
        }
    }

    /// Returns whether the tool belongs to another server or a question file, whose values are compared as text.
    pub(crate) fn is_foreign(&self) -> bool {
        self.policy == ReaderPolicy::of_foreign_schema()
    }
}

/// Prefixes of the lines that the catalogue adds.
const ADDED_LINES: [&str; 5] = [
    "Call schema: ",
    "Minimal valid call: ",
    "Examples: ",
    "Notes: ",
    catalogue::CANVAS_LINE,
];

/// The parameter that only shows a motion.
const REHEARSAL: &str = "dry_run";

/// Maximum length of the server's name in front of a tool's name, in characters.
const SERVER_CHARS_MAX: usize = 24;

/// The tools of one case, or of an exam.
#[derive(Clone, Debug, Default)]
pub struct ExamToolbox {
    cards: Vec<ExamToolCard>,
    listing: ToolListing,
}

/// The names under which tools are shown to a planner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ToolListing {
    /// One name each.
    #[default]
    #[value(help = "One name for each tool")]
    Plain,
    /// Every name: a tool's own and each alias.
    #[value(help = "Every name, each as a tool of its own")]
    Both,
    /// The aliases, or the own name of a tool without any.
    #[value(help = "Only the other names (aliases)")]
    Robot,
}

impl ExamToolbox {
    /// Creates a toolbox that lists each tool under one name.
    pub(crate) fn new(cards: Vec<ExamToolCard>) -> Self {
        let listing = ToolListing::Plain;
        Self { cards, listing }
    }

    /// Returns the same tools, listed by these names.
    pub(crate) fn listed(self, listing: ToolListing) -> Self {
        Self { listing, ..self }
    }

    /// Returns whether each tool is listed by one name.
    pub(crate) fn is_plain(&self) -> bool {
        self.listing == ToolListing::Plain
    }

    /// Returns the tools as chat completions define them, under every listed name: first the own names, then the aliases, as
    /// in `tools/list`.
    pub(crate) fn functions(&self) -> Vec<Value> {
        let is_robot = self.listing == ToolListing::Robot;
        let cards = self.cards.iter();
        let own = cards
            .clone()
            .filter(|card| !is_robot || card.aliases.is_empty());
        let aliased = cards.filter(|_| !self.is_plain());
        let aliases =
            aliased.flat_map(|card| card.aliases.iter().map(|name| card.function_as(name)));
        own.map(ExamToolCard::function).chain(aliases).collect()
    }

    /// Adds the tools of other servers. A tool whose name is taken is prefixed with its server's name.
    pub(crate) fn with_others(mut self, others: Vec<ExamToolCard>) -> Self {
        for mut card in others {
            if self.is_taken(&card.name) {
                card.name = self.free_name(&card);
                card.names = vec![card.name.clone()];
            }
            self.cards.push(card);
        }
        self
    }

    /// Returns an unused name, made of characters that every provider allows.
    fn free_name(&self, card: &ExamToolCard) -> String {
        let host = card.server.split("//").last().unwrap_or_default();
        let allowed = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let server: String = host.chars().map(allowed).take(SERVER_CHARS_MAX).collect();
        let prefixed = format!("{}__{}", server.trim_matches('_'), card.own_name);
        let numbered = (2..=self.cards.len() + 2).map(|number| format!("{prefixed}_{number}"));
        let mut names = std::iter::once(prefixed.clone()).chain(numbered);
        names.find(|name| !self.is_taken(name)).unwrap_or(prefixed)
    }

    /// Returns whether a tool has this name, regardless of its form. The part before `__` counts: it distinguishes servers.
    fn is_taken(&self, name: &str) -> bool {
        let normalised = normalise(name);
        let mut names = self.cards.iter().flat_map(|card| &card.names);
        names.any(|taken| normalise(taken) == normalised)
    }

    /// Returns a server's tool by its name there.
    pub(crate) fn of_server(&self, server: &str, own_name: &str) -> Option<&ExamToolCard> {
        let matches = |card: &&ExamToolCard| card.server == server && card.own_name == own_name;
        self.cards.iter().find(matches)
    }

    /// Returns all tools.
    pub(crate) fn cards(&self) -> &[ExamToolCard] {
        &self.cards
    }

    /// Returns the tools of a case: its own functions if it has some, otherwise these, and any others that it names.
    ///
    /// # Errors
    /// Fails if a function of the case cannot be used.
    pub fn for_case(&self, case: &ExamCase) -> Result<Self, ExamError> {
        let own = Self::of_case(case)?;
        let mut cards = own.unwrap_or_else(|| self.cards.clone());
        for name in case.right_tools() {
            if Self::find_in(&cards, name).is_none() {
                cards.push(ExamToolCard::named(name));
            }
        }
        Ok(Self::new(cards).listed(self.listing))
    }

    /// Refuses a case whose right tool is neither here nor among its own functions. A case for servers without tools here is
    /// not judged.
    ///
    /// # Errors
    /// Fails with its name and the most similar tool.
    pub(crate) fn knows(&self, case: &ExamCase) -> Result<(), ExamError> {
        self.check_known(case, case.expected_tool.iter().map(String::as_str))
    }

    /// Like [`ExamToolbox::knows`], for every tool that the case names.
    ///
    /// # Errors
    /// Fails with the first such name and the most similar tool.
    pub(crate) fn knows_all(&self, case: &ExamCase) -> Result<(), ExamError> {
        self.check_known(case, case.right_tools().chain(case.others()))
    }

    fn check_known<'a>(
        &self,
        case: &ExamCase,
        mut named: impl Iterator<Item = &'a str>,
    ) -> Result<(), ExamError> {
        let is_here = |server: &str| self.cards.iter().any(|card| card.server == server);
        let mut servers = case.named_servers().peekable();
        if case.functions.is_empty() && servers.peek().is_some() && !servers.any(is_here) {
            return Ok(());
        }
        let own = Self::of_case(case)?;
        let own = own.as_deref().unwrap_or(&self.cards);
        let Some(tool) = named.find(|name| Self::find_in(own, name).is_none()) else {
            return Ok(());
        };
        let names = own.iter().map(|card| card.name.as_str());
        Err(ExamError::NoTool {
            case: case.name.clone(),
            tool: tool.to_owned(),
            nearest: args::nearest(tool, names).into_iter().next(),
            hint: "correct its name, or show its server with `steadyhand exam run --servers`",
        })
    }

    /// Returns the functions that a case defines, if any.
    fn of_case(case: &ExamCase) -> Result<Option<Vec<ExamToolCard>>, ExamError> {
        if case.functions.is_empty() {
            return Ok(None);
        }
        let own = case.functions.iter().map(ExamToolCard::defined);
        own.collect::<Result<_, _>>()
            .map(Some)
            .map_err(|error| ExamError::Request(format!("case {}: {error}", case.name)))
    }

    /// Finds the tool that a name means, as the node would, regardless of its form.
    pub(crate) fn find(&self, name: &str) -> Option<&ExamToolCard> {
        Self::find_in(&self.cards, name)
    }

    fn find_in<'a>(cards: &'a [ExamToolCard], name: &str) -> Option<&'a ExamToolCard> {
        let (names, owners): (Vec<&str>, Vec<&ExamToolCard>) = cards
            .iter()
            .flat_map(|card| card.names.iter().map(move |one| (one.as_str(), card)))
            .unzip();
        // Providers that allow no dots in names send underscores.
        let mut cards = cards.iter();
        let mut find_without_dots = || cards.find(|card| card.name.replace('.', "_") == name);
        match resolve(name, &names) {
            NameResolution::Resolved { index, exact: true } => owners.get(index).copied(),
            NameResolution::Resolved { index, .. } => {
                find_without_dots().or_else(|| owners.get(index).copied())
            }
            NameResolution::Ambiguous { among } => {
                let all = names.iter().zip(owners);
                let mut matching = all.filter(|(one, _)| among.iter().any(|a| a == *one));
                let (_, first) = matching.next()?;
                matching
                    .all(|(_, other)| std::ptr::eq(other, first))
                    .then_some(first)
            }
            NameResolution::Unknown { .. } => find_without_dots(),
        }
    }

    /// Returns whether a name means one of these tools.
    pub(crate) fn is_any_of<'a>(
        &self,
        name: &str,
        mut tools: impl Iterator<Item = &'a str>,
    ) -> bool {
        let is_same =
            |card: &ExamToolCard, one| self.find(one).is_some_and(|one| one.name == card.name);
        let card = self.find(name);
        card.is_some_and(|card| tools.any(|one| is_same(card, one)))
    }

    /// Returns whether the expected call only shows the motion.
    pub(crate) fn is_rehearsal(&self, expected: &Map<String, Value>) -> bool {
        let values = expected.get(REHEARSAL).map(options).unwrap_or_default();
        !values.is_empty() && values.iter().all(|one| *one == true)
    }

    /// Returns whether a call would move an arm on a port: it is understood to the last word and is no rehearsal.
    pub(crate) fn would_move(&self, call: &PlannerCall) -> bool {
        let card = self.find(&call.name);
        card.filter(|card| card.does == ToolEffect::Moves)
            .is_some_and(|card| {
                let judged = args::judged(&card.shape, &card.policy, call.arguments.clone());
                matches!(judged, Verdict::Understood(one) if !one.reading().is_cautious)
            })
    }

    /// Returns whether a call asks for motion, even if its wording would be refused.
    pub(crate) fn asks_for_motion(&self, call: &PlannerCall) -> bool {
        let card = self.find(&call.name);
        card.filter(|card| card.does == ToolEffect::Moves)
            .is_some_and(|card| {
                let understood = match card.read(&call.arguments) {
                    Ok(reading) => reading.understood,
                    Err(refusal) => refusal.good,
                };
                understood.get(REHEARSAL) != Some(&Value::Bool(true))
            })
    }
}
