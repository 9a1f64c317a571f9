//! Tools that a node file declares: their names, arguments and actions.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::config_problem::ProblemList;
use super::peers::is_port_possible;

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
    /// For models: a phrase that begins with a verb; up to four more lines say when to use it.
    pub description: String,
    /// A built-in tool to call.
    pub calls: Option<String>,
    /// Fixed arguments of `calls`.
    #[serde(default)]
    pub fixed: BTreeMap<String, Value>,
    /// Built-in tools to call one after another; it ends at the first that fails.
    pub sequence: Option<Vec<StepEntry>>,
    /// Another MCP server.
    pub server: Option<ServerEntry>,
    /// The tool of `server` to call.
    pub tool: Option<String>,
    /// Effect of the `server`'s tool; absent: `moves`.
    pub effect: Option<EffectEntry>,
    /// Arguments; `[]` for none. If left out, all that a caller sends is passed on.
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
    /// The unit of a number, such as `mm`.
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
    /// Its fixed arguments.
    #[serde(default)]
    pub fixed: BTreeMap<String, Value>,
}

/// Another MCP server: at a `url`, or a `command` that speaks on standard input and output.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerEntry {
    /// Address for streamable HTTP, such as `http://127.0.0.1:9000/mcp`.
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
    /// Looks and reports.
    Reads,
    /// Acts.
    Moves,
}

/// Default time limit of another server.
pub const TIMEOUT_S: u32 = 30;

fn timeout_s() -> u32 {
    TIMEOUT_S
}

/// Finds all problems with the form of declarations, regardless of the existing tools.
pub(super) fn check(tools: &[ToolEntry], problems: &mut ProblemList) {
    problems.check(tools.len() <= TOOLS_MAX, "tools", || {
        let count = tools.len();
        format!("{count} tools are declared; at most {TOOLS_MAX} are possible")
    });
    for (index, tool) in tools.iter().enumerate() {
        let is_twin = tools.iter().take(index).any(|one| one.name == tool.name);
        problems.within(&format!("tools[{index}]"), |problems| {
            problems.check(!is_twin, "name", || {
                format!(
                    "two tools have the name `{}`; each needs its own",
                    tool.name
                )
            });
            tool.check(problems);
        });
    }
}

/// Returns why a tool or an argument cannot have a name, if not every client and model provider would accept it.
fn bad_name(name: &str) -> Option<String> {
    let starts_with_letter = name.starts_with(|c: char| c.is_ascii_alphabetic());
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let is_valid =
        starts_with_letter && name.chars().all(is_allowed) && name.len() <= NAME_CHARS_MAX;
    (!is_valid).then(|| {
        format!(
            "`{name}` cannot be a name; use 1 to {NAME_CHARS_MAX} letters, digits, `_` or `-`, a letter first"
        )
    })
}

impl ToolEntry {
    fn check(&self, problems: &mut ProblemList) {
        let name = &self.name;
        if let Some(problem) = bad_name(name) {
            problems.add("name", problem);
        }
        problems.check(!self.description.trim().is_empty(), "description", || {
            format!("tool `{name}` has no description; write one")
        });
        self.check_action(problems);
        let arguments = self.arguments.as_deref().unwrap_or_default();
        problems.check(arguments.len() <= ARGUMENTS_MAX, "arguments", || {
            let count = arguments.len();
            format!("tool `{name}` has {count} arguments; at most {ARGUMENTS_MAX} are possible")
        });
        for (index, argument) in arguments.iter().enumerate() {
            let mut before = arguments.iter().take(index);
            let is_twin = before.any(|one| one.name == argument.name);
            problems.within(&format!("arguments[{index}]"), |problems| {
                problems.check(!is_twin, "name", || {
                    format!("tool `{name}` has two arguments called `{}`", argument.name)
                });
                argument.check(problems);
            });
        }
    }

    /// Checks that the tool has a single, complete action.
    fn check_action(&self, problems: &mut ProblemList) {
        let actions = [
            self.calls.is_some(),
            self.sequence.is_some(),
            self.server.is_some(),
        ];
        let steps = self.sequence.as_ref().map_or(1, Vec::len);
        let (key, problem) = match (&self.server, &self.tool) {
            _ if actions.iter().filter(|is_set| **is_set).count() != 1 => (
                "",
                " needs exactly one of `calls`, `sequence`, or `server` with `tool`".to_owned(),
            ),
            _ if self.calls.is_none() && !self.fixed.is_empty() => (
                "fixed",
                ": `fixed` is only for `calls` or for a step of `sequence`".to_owned(),
            ),
            _ if !(1..=STEPS_MAX).contains(&steps) => (
                "sequence",
                format!(" has {steps} steps; 1 to {STEPS_MAX} are possible"),
            ),
            (Some(server), Some(_)) => {
                return problems.within("server", |problems| server.check(&self.name, problems));
            }
            (Some(_), None) => ("server", " must name the `tool` of its `server`".to_owned()),
            (None, Some(_)) => (
                "tool",
                " has a `tool` but no `server`; for a built-in tool write `calls`".to_owned(),
            ),
            (None, None) if self.effect.is_some() => (
                "effect",
                ": `effect` is for the tool of a `server`; built-in tools have their own"
                    .to_owned(),
            ),
            (None, None) => return,
        };
        problems.add(key, format!("tool `{}`{problem}", self.name));
    }
}

fn is_address(url: &str) -> bool {
    let rest = url.strip_prefix("http://");
    let rest = rest.or_else(|| url.strip_prefix("https://"));
    rest.is_some_and(is_port_possible)
}

impl ServerEntry {
    fn check(&self, name: &str, problems: &mut ProblemList) {
        let tool = format!("tool `{name}`");
        match (&self.url, &self.command) {
            (Some(url), None) if !is_address(url) => {
                problems.add("url", format!(
                    "{tool}: `{url}` is not of the form http://HOST:PORT/mcp or https://HOST:PORT/mcp (PORT up to 65535)"
                ));
            }
            (Some(_), None) => problems.check(self.args.is_empty(), "args", || {
                format!("{tool}: `args` needs a `command`")
            }),
            (None, Some(command)) if !command.trim().is_empty() => {}
            _ => problems.add(
                "",
                format!("{tool}: `server` needs either `url` or `command`"),
            ),
        }
        let shown = format!("{tool}: timeout_s");
        problems.range("timeout_s", &shown, self.timeout_s, [1, TIMEOUT_S_MAX]);
    }
}

impl ArgumentEntry {
    fn check(&self, problems: &mut ProblemList) {
        let name = &self.name;
        if let Some(problem) = bad_name(name) {
            problems.add("name", format!("argument `{name}`: {problem}"));
        }
        problems.check(!self.description.trim().is_empty(), "description", || {
            format!("argument `{name}`: it has no description")
        });
        let is_number = matches!(self.kind, ArgumentType::Integer | ArgumentType::Number);
        problems.check(self.unit.is_none() || is_number, "unit", || {
            format!("argument `{name}`: only an integer or a number can have a unit")
        });
        let values = self.values.as_deref();
        if let Some(problem) = values.and_then(|values| self.bad_values(values)) {
            problems.add("enum", format!("argument `{name}`: {problem}"));
        }
        if let Some(default) = &self.default {
            problems.check(!self.required, "default", || {
                format!("argument `{name}` is required, so it cannot have a default")
            });
            problems.check(self.takes(default), "default", || {
                format!("argument `{name}`: {default} is not one of its values")
            });
        }
    }

    /// Returns why these cannot be all of its values.
    fn bad_values(&self, values: &[String]) -> Option<String> {
        let distinct: BTreeSet<&String> = values.iter().collect();
        if self.kind != ArgumentType::String {
            Some("only a string can have an `enum`".to_owned())
        } else if !(1..=ENUM_MAX).contains(&values.len()) {
            let count = values.len();
            Some(format!("{count} values; 1 to {ENUM_MAX} are possible"))
        } else if distinct.len() != values.len() || distinct.iter().any(|one| one.trim().is_empty())
        {
            Some("its values must differ and not be empty".to_owned())
        } else {
            None
        }
    }
}

impl ArgumentEntry {
    /// Returns whether `value` is of the declared type and among the declared values.
    #[must_use]
    pub fn takes(&self, value: &Value) -> bool {
        let has_type = match self.kind {
            ArgumentType::String => value.is_string(),
            ArgumentType::Integer => value.is_i64() || value.is_u64(),
            ArgumentType::Number => value.as_f64().is_some_and(f64::is_finite),
            ArgumentType::Boolean => value.is_boolean(),
            ArgumentType::Array => value
                .as_array()
                .is_some_and(|items| items.iter().all(Value::is_string)),
        };
        let is_listed = |values: &Vec<String>| values.iter().any(|one| value == one.as_str());
        has_type && self.values.as_ref().is_none_or(is_listed)
    }
}
