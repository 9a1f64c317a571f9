//! Tools that a node file declares: what they are called, what they take and what they do.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Most tools of one node file.
const TOOLS_MAX: usize = 32;

/// Most arguments of one tool.
const ARGUMENTS_MAX: usize = 16;

/// Most steps of one sequence.
const STEPS_MAX: usize = 16;

/// Longest name of a tool or an argument.
const NAME_CHARS_MAX: usize = 64;

/// Most values of one argument: a model reads all of them.
const ENUM_MAX: usize = 12;

/// The longest that a tool of another server may take.
const TIMEOUT_S_MAX: u32 = 600;

/// A tool beside the six. It does exactly one of three things: `calls` a built-in tool, carries out
/// a `sequence` of them, or asks the `tool` of another MCP `server`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolEntry {
    /// Name of the tool for callers: 1 to 64 letters, digits, `_` or `-`, a letter first.
    pub name: String,
    /// Its name for people.
    pub title: Option<String>,
    /// Description for models: a phrase that begins with a verb; up to four more lines say when to use it.
    pub description: String,
    /// A built-in tool to call.
    pub calls: Option<String>,
    /// Arguments of `calls` that are always these.
    #[serde(default)]
    pub fixed: BTreeMap<String, Value>,
    /// Built-in tools to call one after another; it ends at the first that fails.
    pub sequence: Option<Vec<StepEntry>>,
    /// Another MCP server.
    pub server: Option<ServerEntry>,
    /// The tool of `server` to call.
    pub tool: Option<String>,
    /// Effect of the `server`'s tool on the world: `reads`, or `moves`, which is read most strictly
    /// and is the default.
    pub effect: Option<EffectEntry>,
    /// Arguments; `[]` for no arguments. If left out, everything that a caller sends is passed on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Vec<ArgumentEntry>>,
}

/// One argument of a declared tool.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArgumentEntry {
    /// Its name: 1 to 64 letters, digits, `_` or `-`, a letter first.
    pub name: String,
    /// Type of the value.
    #[serde(rename = "type")]
    pub kind: ArgumentType,
    /// Purpose of the argument.
    pub description: String,
    /// True if a call without it is refused.
    #[serde(default)]
    pub required: bool,
    /// The texts that are valid; for `string` alone.
    #[serde(rename = "enum")]
    pub values: Option<Vec<String>>,
    /// The unit of a number, such as `mm`; others of the same dimension are converted.
    pub unit: Option<String>,
    /// Value used when it is not sent.
    pub default: Option<Value>,
}

/// Type of an argument's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArgumentType {
    /// Text.
    String,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// True or false.
    Boolean,
    /// A list of texts.
    Array,
}

/// One step of a sequence.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StepEntry {
    /// The built-in tool.
    pub calls: String,
    /// Its arguments that are always these.
    #[serde(default)]
    pub fixed: BTreeMap<String, Value>,
}

/// Another MCP server: at a `url`, or a `command` that speaks on standard input and output.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerEntry {
    /// Address for streamable HTTP, such as `http://127.0.0.1:9000/mcp`; with `https://` its certificate is checked.
    pub url: Option<String>,
    /// The program.
    pub command: Option<String>,
    /// Its arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// The longest that it may take to answer.
    #[serde(default = "timeout_s")]
    pub timeout_s: u32,
}

/// Effect of a foreign tool on the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EffectEntry {
    /// Looks and reports: what a caller lost may become a default.
    Reads,
    /// Acts: nothing is guessed where the node is guarded.
    Moves,
}

/// As shipped.
pub const TIMEOUT_S: u32 = 30;

fn timeout_s() -> u32 {
    TIMEOUT_S
}

/// Something that is wrong, and where: a path such as `tools[0].name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    /// Place in the file.
    pub path: String,
    /// Description of the problem, with the value and the fix.
    pub what: String,
}

impl ConfigProblem {
    /// A problem at a path.
    #[must_use]
    pub fn at(path: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            what: what.into(),
        }
    }
}

/// Returns all problems with the form of declarations, regardless of the existing tools.
pub(super) fn problems(tools: &[ToolEntry]) -> Vec<ConfigProblem> {
    let mut found = Vec::new();
    if tools.len() > TOOLS_MAX {
        let what = format!(
            "{} tools are declared; at most {TOOLS_MAX} are possible",
            tools.len()
        );
        found.push(ConfigProblem::at("tools", what));
    }
    for (index, tool) in tools.iter().enumerate() {
        let path = format!("tools[{index}]");
        let twin = tools.iter().take(index).any(|one| one.name == tool.name);
        if twin {
            let what = format!(
                "two tools are called `{}`; each needs its own name",
                tool.name
            );
            found.push(ConfigProblem::at(format!("{path}.name"), what));
        }
        found.extend(one(tool, &path));
    }
    found
}

fn one(tool: &ToolEntry, path: &str) -> Vec<ConfigProblem> {
    let mut found: Vec<ConfigProblem> = Vec::new();
    found.extend(name(&tool.name, &format!("{path}.name")));
    if tool.description.trim().is_empty() {
        let what = format!("tool `{}` has no description; say what it does", tool.name);
        found.push(ConfigProblem::at(format!("{path}.description"), what));
    }
    found.extend(action_problems(tool, path));
    let arguments = tool.arguments.as_deref().unwrap_or_default();
    if arguments.len() > ARGUMENTS_MAX {
        let what = format!(
            "tool `{}` has {} arguments; at most {ARGUMENTS_MAX} are possible",
            tool.name,
            arguments.len()
        );
        found.push(ConfigProblem::at(format!("{path}.arguments"), what));
    }
    for (index, argument) in arguments.iter().enumerate() {
        let path = format!("{path}.arguments[{index}]");
        let twin = |one: &ArgumentEntry| one.name == argument.name;
        if arguments.iter().take(index).any(twin) {
            let what = format!(
                "tool `{}` has two arguments called `{}`",
                tool.name, argument.name
            );
            found.push(ConfigProblem::at(format!("{path}.name"), what));
        }
        found.extend(self::argument(argument, &path));
    }
    found
}

/// Names that every client and provider of models takes.
fn name(name: &str, path: &str) -> Option<ConfigProblem> {
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic());
    let plain = name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if begins && plain && name.len() <= NAME_CHARS_MAX {
        return None;
    }
    let what = format!(
        "`{name}` cannot be a name; use 1 to {NAME_CHARS_MAX} letters, digits, `_` or `-`, a letter first"
    );
    Some(ConfigProblem::at(path, what))
}

/// Checks the tool's single action.
fn action_problems(tool: &ToolEntry, path: &str) -> Vec<ConfigProblem> {
    let name = &tool.name;
    let at = |key: &str, what: String| vec![ConfigProblem::at(format!("{path}.{key}"), what)];
    let deeds = [
        tool.calls.is_some(),
        tool.sequence.is_some(),
        tool.server.is_some(),
    ];
    if deeds.iter().filter(|said| **said).count() != 1 {
        let what = format!(
            "tool `{name}` must say exactly one of `calls`, `sequence` and `server` with `tool`"
        );
        return vec![ConfigProblem::at(path, what)];
    }
    if tool.calls.is_none() && !tool.fixed.is_empty() {
        let what = format!("tool `{name}`: `fixed` belongs to `calls`, or to a step of `sequence`");
        return at("fixed", what);
    }
    if let Some(steps) = &tool.sequence
        && !(1..=STEPS_MAX).contains(&steps.len())
    {
        let what = format!(
            "tool `{name}` has {} steps; 1 to {STEPS_MAX} are possible",
            steps.len()
        );
        return at("sequence", what);
    }
    match (&tool.server, &tool.tool) {
        (Some(server), Some(_)) => self::server(server, name, &format!("{path}.server")),
        (Some(_), None) => at(
            "server",
            format!("tool `{name}` must name the `tool` of its `server`"),
        ),
        (None, Some(_)) => at(
            "tool",
            format!(
                "tool `{name}` has a `tool` but no `server`; a built-in one is named by `calls`"
            ),
        ),
        (None, None) if tool.effect.is_some() => at(
            "effect",
            format!(
                "tool `{name}`: `effect` is for the tool of a `server`; what built-in tools do is known"
            ),
        ),
        (None, None) => Vec::new(),
    }
}

fn server(server: &ServerEntry, name: &str, path: &str) -> Vec<ConfigProblem> {
    let mut found = Vec::new();
    match (&server.url, &server.command) {
        (Some(url), None) if !url.starts_with("http://") && !url.starts_with("https://") => {
            let what = format!(
                "tool `{name}`: `{url}` is not an address of the form http://HOST:PORT/mcp or https://HOST:PORT/mcp"
            );
            found.push(ConfigProblem::at(format!("{path}.url"), what));
        }
        (Some(_), None) if !server.args.is_empty() => {
            let what = format!("tool `{name}`: `args` belong to a `command`");
            found.push(ConfigProblem::at(format!("{path}.args"), what));
        }
        (Some(_), None) => {}
        (None, Some(command)) if !command.trim().is_empty() => {}
        _ => {
            let what = format!("tool `{name}`: `server` needs either `url` or `command`");
            found.push(ConfigProblem::at(path, what));
        }
    }
    if !(1..=TIMEOUT_S_MAX).contains(&server.timeout_s) {
        let what = format!(
            "tool `{name}`: timeout_s is {}; 1 to {TIMEOUT_S_MAX} are possible",
            server.timeout_s
        );
        found.push(ConfigProblem::at(format!("{path}.timeout_s"), what));
    }
    found
}

fn argument(argument: &ArgumentEntry, path: &str) -> Vec<ConfigProblem> {
    let mut found: Vec<ConfigProblem> = Vec::new();
    let shown = &argument.name;
    let mut say = |key: &str, what: String| {
        found.push(ConfigProblem::at(
            format!("{path}.{key}"),
            format!("argument `{shown}`: {what}"),
        ));
    };
    if let Some(problem) = name(shown, path) {
        say("name", problem.what);
    }
    if argument.description.trim().is_empty() {
        say("description", "it has no description".to_owned());
    }
    let is_number = matches!(argument.kind, ArgumentType::Integer | ArgumentType::Number);
    if argument.unit.is_some() && !is_number {
        say("unit", "only an integer or a number has a unit".to_owned());
    }
    if let Some(values) = &argument.values {
        let distinct: std::collections::BTreeSet<&String> = values.iter().collect();
        if argument.kind != ArgumentType::String {
            say("enum", "only a string has an `enum`".to_owned());
        } else if !(1..=ENUM_MAX).contains(&values.len()) {
            let what = format!("{} values; 1 to {ENUM_MAX} are possible", values.len());
            say("enum", what);
        } else if distinct.len() != values.len() || distinct.iter().any(|one| one.trim().is_empty())
        {
            say("enum", "its values must differ and not be empty".to_owned());
        }
    }
    if let Some(default) = &argument.default {
        if argument.required {
            say("default", "a required argument has no default".to_owned());
        }
        if !argument.takes(default) {
            say("default", format!("{default} is not one of its values"));
        }
    }
    found
}

impl ArgumentEntry {
    /// Returns whether `value` is of the declared type and among the declared values.
    #[must_use]
    pub fn takes(&self, value: &Value) -> bool {
        let of_type = match self.kind {
            ArgumentType::String => value.is_string(),
            ArgumentType::Integer => value.is_i64() || value.is_u64(),
            ArgumentType::Number => value.as_f64().is_some_and(f64::is_finite),
            ArgumentType::Boolean => value.is_boolean(),
            ArgumentType::Array => value
                .as_array()
                .is_some_and(|items| items.iter().all(Value::is_string)),
        };
        let listed = |values: &Vec<String>| values.iter().any(|one| value == one.as_str());
        of_type && self.values.as_ref().is_none_or(listed)
    }
}
