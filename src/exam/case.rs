//! One case: the question, the earlier conversation, and the calls that are right. A file has one JSON object per line.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::word::Word;
use super::{ExamError, ExamToolbox};
use args::ToolEffect;
use clap::ValueEnum;

/// Most lines of one file; more is not a file of cases.
pub(super) const LINES_MAX: usize = 100_000;

/// Longest name.
const NAME_CHARS_MAX: usize = 200;

/// Longest question.
const QUERY_CHARS_MAX: usize = 20_000;

/// One case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExamCase {
    /// Its name, unique in a set; made from its line number if it has none.
    #[serde(default, alias = "id", skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Text that the person says.
    pub query: String,
    /// Earlier conversation, the oldest turn first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<CaseTurn>,
    /// Turns after the question, from which the planner goes on: its doubtful call and the preview of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<CaseTurn>,
    /// The tool that is right; `null` or an empty text where none is.
    #[serde(deserialize_with = "tool_or_none")]
    pub expected_tool: Option<String>,
    /// The server of that tool, if several are examined together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_server: Option<String>,
    /// Names of the servers that it is for; empty for all examined servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<String>,
    /// For each parameter the right value, or a list of right values; with `""` among them it may be left out.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub expected_params: Map<String, Value>,
    /// Other tools that are equally right.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acceptable_tools: Vec<String>,
    /// Tools that may be called in addition to the right one, as in a request of several steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub may_follow: Vec<String>,
    /// Tools that must not be called in any case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub must_not: Vec<String>,
    /// Ability that it tests.
    #[serde(default)]
    pub class: CaseClass,
    /// Hazard of the case. If absent, it is derived from the expected tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hazard: Option<CaseHazard>,
    /// Tools that are offered for this case in place of the catalogue, as chat completions define them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<Value>,
}

/// One turn of the earlier conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CaseTurn {
    /// `system`, `user`, `assistant` or `tool`.
    pub role: String,
    /// Text of the turn; for a tool, its result.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub content: String,
    /// The tool that the assistant called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Arguments of that call.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub arguments: Map<String, Value>,
}

/// Ability that a case tests.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    ValueEnum,
    Serialize,
    Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum CaseClass {
    /// A request in the tool's own words.
    Direct,
    /// A request in other words.
    Paraphrase,
    /// A request with parameters.
    Parameters,
    /// A request that names a scene or an overlay.
    Scenes,
    /// A request with quantities.
    Units,
    /// More than one step.
    Steps,
    /// Talk that needs no tool.
    Chat,
    /// A request that no tool can fulfil.
    Impossible,
    /// A request not to do something.
    Negation,
    /// A question about what would happen.
    Hypothetical,
    /// A stop, in various words.
    Stop,
    /// Instructions hidden in text that is read.
    Injection,
    /// A request after an error.
    Recovery,
    /// Knowledge that is no longer true.
    Stale,
    /// A scene that does not exist: it must be asked for, not guessed.
    UnknownScene,
    /// A preview of a call that was not understood to the last word: it is carried out only where that is what was asked for.
    Doubt,
    /// Anything else, as in imported cases.
    #[default]
    Other,
}

impl CaseClass {
    /// Returns whether there are templates from which cases of this class are made.
    pub(super) const fn is_made(self) -> bool {
        !matches!(self, Self::Doubt | Self::Other)
    }

    /// Returns the class of this word.
    ///
    /// # Errors
    /// Fails if no class has it.
    pub(crate) fn named(word: &str) -> Result<Self, ExamError> {
        let all = Self::value_variants();
        let found = all.iter().find(|class| class.word() == word).copied();
        found.ok_or_else(|| {
            let words: Vec<String> = all.iter().map(Word::word).collect();
            let words = args::nearest(word, words.iter().map(String::as_str)).join(", ");
            ExamError::Request(format!(
                "{word:?} is not a class. Valid (nearest first): {words}"
            ))
        })
    }
}

/// Form of the answer to a doubtful call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PreviewForm {
    /// It says in words how the plan is drawn.
    Words,
    /// It has the call that draws it.
    NextCall,
}

/// Hazard of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaseHazard {
    /// Moving is right.
    None,
    /// Nothing may move.
    Motion,
    /// The arm must be stopped, and so nothing else may move.
    Stop,
}

impl CaseHazard {
    /// Returns whether motion is wrong.
    pub(crate) fn forbids_motion(self) -> bool {
        self != Self::None
    }
}

impl ExamCase {
    /// Reads cases, one JSON object a line; empty lines do not count.
    ///
    /// # Errors
    /// Fails at the first line that is not a case.
    pub fn read_lines(text: &str) -> Result<Vec<Self>, ExamError> {
        let mut cases = Vec::new();
        each_line(text, |line, value: Value| {
            let mut case = Self::checked(&value)?;
            for (what, text, max_chars) in [
                ("query", &case.query, QUERY_CHARS_MAX),
                ("name", &case.name, NAME_CHARS_MAX),
            ] {
                if text.chars().count() > max_chars {
                    return Err(format!(
                        "the {what} is too long (at most {max_chars} characters)"
                    ));
                }
            }
            if case.name.is_empty() {
                case.name = format!("case_{line}");
            }
            cases.push(case);
            Ok(())
        })?;
        check_unique_names(&cases)?;
        Ok(cases)
    }

    /// Reads a case; a key or class that no case has is refused with the nearest.
    fn checked(value: &Value) -> Result<Self, String> {
        check_keys(value, &CASE_KEYS)?;
        let turns = ["context", "after"].into_iter();
        let turns = turns.filter_map(|key| value.get(key)?.as_array());
        for turn in turns.flatten() {
            check_keys(turn, &TURN_KEYS)?;
        }
        if let Some(class) = value.get("class").and_then(Value::as_str) {
            CaseClass::named(class).map_err(|error| error.to_string())?;
        }
        Self::deserialize(value).map_err(|error| error.to_string())
    }

    /// Returns the form of the preview that the planner goes on from, in a case of the class doubt in which nothing may move.
    pub(super) fn denied_preview(&self) -> Option<PreviewForm> {
        if self.class != CaseClass::Doubt || self.hazard == Some(CaseHazard::None) {
            return None;
        }
        let is_denied = self.expected_tool.is_none();
        let shown = self.after.last().filter(|_| is_denied)?;
        Some(match shown.content.contains("next_call") {
            true => PreviewForm::NextCall,
            false => PreviewForm::Words,
        })
    }

    /// Returns the case as a line.
    #[must_use]
    pub fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns every server that it names.
    pub(crate) fn named_servers(&self) -> impl Iterator<Item = &str> {
        let all = self.expected_server.iter().chain(&self.servers);
        all.map(String::as_str)
    }

    /// Returns the other tools that it names: those that may follow, and those that must not be called.
    pub(super) fn others(&self) -> impl Iterator<Item = &str> {
        let all = self.may_follow.iter().chain(&self.must_not);
        all.map(String::as_str)
    }

    /// Returns the case with its right tool under the name that these tools show, regardless of the form in which the case
    /// gives it. A server's tool may have to be shown under a different name than its own.
    pub(crate) fn resolved_for(mut self, tools: &ExamToolbox) -> Self {
        let card = match (&self.expected_server, &self.expected_tool) {
            (Some(server), Some(name)) => tools.of_server(server, name),
            (None, Some(name)) if self.functions.is_empty() => tools.find(name),
            _ => None,
        };
        if let Some(card) = card {
            self.expected_tool = Some(card.name.clone());
        }
        self
    }

    /// Returns whether the servers that the case names are among the examined ones. A case that names none is for all.
    pub(crate) fn is_for(&self, servers: &[String]) -> bool {
        let is_examined = |name: &String| servers.contains(name);
        self.expected_server.as_ref().is_none_or(is_examined)
            && (self.servers.is_empty() || self.servers.iter().any(is_examined))
    }

    /// Returns every right tool, the expected one first.
    pub(crate) fn right_tools(&self) -> impl Iterator<Item = &str> {
        let others = self.acceptable_tools.iter();
        self.expected_tool.iter().chain(others).map(String::as_str)
    }

    /// Returns the right call in words, or that none is right.
    pub(crate) fn expected(&self) -> String {
        let tools: Vec<&str> = self.right_tools().collect();
        let (tools, params) = (tools.join(" or "), &self.expected_params);
        match (tools.is_empty(), params.is_empty()) {
            (true, _) => "no tool".to_owned(),
            (false, true) => tools,
            (false, false) => format!("{tools} {}", Value::Object(params.clone())),
        }
    }

    /// Returns the hazard, derived from the tools if the case does not state it.
    pub(crate) fn hazard(&self, tools: &ExamToolbox) -> CaseHazard {
        self.hazard.unwrap_or_else(|| self.implied_hazard(tools))
    }

    fn implied_hazard(&self, tools: &ExamToolbox) -> CaseHazard {
        let does = |name: &str| tools.find(name).map(|card| card.does);
        if self.expected_tool.as_deref().and_then(does) == Some(ToolEffect::Stops) {
            return CaseHazard::Stop;
        }
        let mut right = self.right_tools();
        let moves = right.any(|name| does(name) == Some(ToolEffect::Moves));
        if moves && !tools.is_rehearsal(&self.expected_params) {
            CaseHazard::None
        } else {
            CaseHazard::Motion
        }
    }
}

/// Reads a tool's name. A schema has one type for each key, and so a model that fills it in writes no `null`.
fn tool_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let name = Option::<String>::deserialize(deserializer)?;
    Ok(name.filter(|name| !name.trim().is_empty()))
}

/// Keys of a case.
const CASE_KEYS: [&str; 14] = [
    "name",
    "id",
    "query",
    "context",
    "after",
    "expected_tool",
    "expected_server",
    "servers",
    "expected_params",
    "acceptable_tools",
    "may_follow",
    "must_not",
    "class",
    "hazard",
];

/// Key of a case that brings its own tools.
const FUNCTIONS: &str = "functions";

/// Keys of a turn of the earlier conversation.
const TURN_KEYS: [&str; 4] = ["role", "content", "tool", "arguments"];

/// Refuses an object with a key that is none of these: what it says would be lost.
fn check_keys(value: &Value, known: &[&str]) -> Result<(), String> {
    let keys = value.as_object().into_iter().flatten().map(|(key, _)| key);
    let is_known = |key: &&String| known.contains(&key.as_str()) || *key == FUNCTIONS;
    let Some(unknown) = keys.into_iter().find(|key| !is_known(key)) else {
        return Ok(());
    };
    let nearest = args::nearest(unknown, known.iter().copied());
    Err(format!(
        "there is no key {unknown:?}. Valid (nearest first): {}",
        nearest.join(", ")
    ))
}

/// Parses each line that is not blank and passes it on with its number; an error names that number.
pub(super) fn each_line<T: DeserializeOwned>(
    text: &str,
    mut handle: impl FnMut(usize, T) -> Result<(), String>,
) -> Result<(), ExamError> {
    for (line, text) in numbered_lines(text)? {
        let parsed = serde_json::from_str(text).map_err(|error| parse_error(&error));
        let handled = parsed.and_then(|value| handle(line, value));
        handled.map_err(|reason| ExamError::Line { line, reason })?;
    }
    Ok(())
}

/// Returns the lines that are not blank, with their numbers.
fn numbered_lines(text: &str) -> Result<Vec<(usize, &str)>, ExamError> {
    let lines = text.trim_start_matches('\u{feff}').lines().enumerate();
    let numbered: Vec<(usize, &str)> = lines
        .map(|(index, line)| (index + 1, line.trim()))
        .filter(|(_, line)| !line.is_empty())
        .collect();
    match numbered.get(LINES_MAX) {
        Some((line, _)) => Err(ExamError::Line {
            line: *line,
            reason: format!("the file is too long (at most {LINES_MAX} lines): split it"),
        }),
        None => Ok(numbered),
    }
}

/// Describes a parse error without its line number, which is always 1.
fn parse_error(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or(&message);
    format!("{message} (column {})", error.column())
}

fn check_unique_names(cases: &[ExamCase]) -> Result<(), ExamError> {
    let mut seen = std::collections::HashSet::new();
    match cases.iter().position(|case| !seen.insert(&case.name)) {
        Some(index) => Err(ExamError::Line {
            line: index + 1,
            reason: format!(
                "two cases have the name {:?}",
                cases
                    .get(index)
                    .map(|case| case.name.as_str())
                    .unwrap_or_default()
            ),
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    #[test]
    fn a_key_or_class_that_no_case_has_is_refused_with_the_nearest() {
        for (key, value, nearest) in [
            ("expected_parms", "{}", "expected_params"),
            ("must_nt", "[]", "must_not"),
            ("querry", "1", "query"),
            ("class", "\"directt\"", "direct"),
            (
                "context",
                "[{\"role\":\"user\",\"contnt\":\"a\"}]",
                "content",
            ),
        ] {
            let line = format!(r#"{{"query":"Draw","expected_tool":null,"{key}":{value}}}"#);
            let refused = ExamCase::read_lines(&line).unwrap_err().to_string();
            let first = format!("nearest first): {nearest}");
            assert!(refused.contains(&first), "{key}: {refused}");
        }
        let line =
            r#"{"id":"a","query":"Draw","expected_tool":"stroke","class":"other","functions":[]}"#;
        assert_eq!(ExamCase::read_lines(line).unwrap().len(), 1);
    }
}
