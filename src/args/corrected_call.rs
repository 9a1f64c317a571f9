//! Corrected calls: what a refused caller can send instead, made of its own readable arguments and of declared defaults.
//!
//! Callers send a corrected call unchanged. So it names nothing that they did not name, invents no value, and moves
//! nothing that they did not ask to move. If a tool moves and part of the call was lost, it is a preview or not offered.

use super::{
    heuristics,
    outcome::{self, ArgumentIssue, ArgumentRefusal, ArgumentRepair},
    parsed_value::ParsedValue,
    rules::{ForgivenessProfile, ReaderPolicy, ReaderRule},
    shape::{ArgumentShape, ParameterShape, ValueKind},
    withheld,
};
use serde_json::{Map, Value};

/// Repairs that lose nothing of what was sent. Skipped words, comments, tags and lines are not among them: they may have
/// asked for no motion.
const LOSSLESS: [&str; 30] = [
    "arrow",
    "backslashes",
    "boolean_word",
    "choice_form",
    "curly_quotes",
    "entities",
    "envelope",
    "extra_closer",
    "extra_comma",
    "inner_quotes",
    "key_form",
    "list_of_one",
    "missing_colon",
    "missing_comma",
    "mixed_quotes",
    "name_form",
    "number_form",
    "odd_escape",
    "other_punctuation",
    "python_literal",
    "raw_control",
    "same_twice",
    "single_quotes",
    "text_in_text",
    "tool_name",
    "trailing_comma",
    "tuple",
    "unit",
    "unquoted_key",
    "unquoted_text",
];

/// The call that is offered instead of a refused one.
#[derive(Debug, Default, PartialEq)]
struct CorrectedCall {
    /// Its arguments; `None` if no call can be offered.
    call: Option<Map<String, Value>>,
    /// Advice to read before sending it, or the reason why there is none.
    guidance: String,
}

impl CorrectedCall {
    fn none(guidance: String) -> Self {
        Self {
            call: None,
            guidance,
        }
    }
}

/// A refused call.
pub(super) struct RefusedCall<'a> {
    pub(super) shape: &'a ArgumentShape,
    pub(super) policy: &'a ReaderPolicy,
    /// The arguments that are readable.
    pub(super) given: Map<String, Value>,
    pub(super) issues: &'a [ArgumentIssue],
    pub(super) repairs: Vec<ArgumentRepair>,
}

impl RefusedCall<'_> {
    /// Returns the refusal; `kind` is the rule of its gravest issue.
    pub(super) fn refusal(self, kind: ReaderRule) -> Box<ArgumentRefusal> {
        let CorrectedCall { call, guidance } = self.correction();
        Box::new(ArgumentRefusal {
            complaints: outcome::complaints(self.issues),
            corrected: call,
            guidance,
            kind,
            must_mend: self.must_mend(),
            choosing: self.choosing(),
            cautious: self.cautious_argument(),
            good: self.given,
            repairs: self.repairs,
        })
    }

    /// Returns the names of the parameters that choose what is done.
    fn choosing(&self) -> Vec<String> {
        let chooses = |param: &&ParameterShape| {
            param.selects_motion || matches!(param.kind, ValueKind::Verbatim { .. })
        };
        let params = self.shape.params.iter().filter(chooses);
        params.map(|param| param.name.clone()).collect()
    }

    /// Returns the corrected call, if there is one that is accepted and does no more than was asked for.
    fn correction(&self) -> CorrectedCall {
        let readable = self.readable_arguments();
        let mut missing = self.missing_parameters(&readable);
        missing.extend(self.lost_data());
        missing.extend(self.missing_beside(&readable));
        if !missing.is_empty() {
            let guidance = format!(
                "no corrected call can be offered, since {} must come from the caller",
                missing.join(", ")
            );
            return CorrectedCall::none(guidance);
        }
        if !self.policy.guards_motion() || self.may_move(&readable) {
            return CorrectedCall {
                call: Some(readable),
                guidance: String::new(),
            };
        }
        self.preview(readable)
    }

    /// Returns the argument with which nothing moves, if the tool has one.
    fn cautious_argument(&self) -> Option<(String, Value)> {
        let mut params = self.shape.params.iter();
        params.find_map(|param| Some((param.name.clone(), param.cautious.clone()?)))
    }

    /// Returns the names that the next call must not simply leave out: refused parameters, keys that asked for no motion or
    /// for another one, and a text in which what is drawn may be lost.
    fn must_mend(&self) -> Vec<String> {
        let is_param = |name: &str| self.shape.params.iter().any(|param| param.name == name);
        // Without a dry run, no call could say that the key is not wanted.
        let has_preview = self.cautious_argument().is_some();
        let changes_act = |issue: &ArgumentIssue| {
            has_preview && matches!(issue.complaint.code, "physical_key" | "foreign_key")
        };
        let loses_choice = |issue: &ArgumentIssue| {
            issue.rule == ReaderRule::Contradiction && !self.selects(&self.given)
        };
        let must_be_mended = |issue: &&ArgumentIssue| match issue.subject() {
            "" => loses_choice(issue),
            name => {
                // What only changes the answer may be left out: `debug`.
                (is_param(name) && !heuristics::is_harmless(name))
                    || issue.is_in_doubt
                    || withheld::may_ask_not_to_move(name)
                    || changes_act(issue)
            }
        };
        let to_mend = self.issues.iter().filter(must_be_mended);
        let names = to_mend.map(|issue| match issue.subject() {
            "" => outcome::WHOLE_CALL,
            name => name,
        });
        names.map(str::to_owned).collect()
    }

    /// Returns the caller's readable arguments, with declared defaults for refused ones that name nothing.
    fn readable_arguments(&self) -> Map<String, Value> {
        let value = |param: &ParameterShape| {
            let own = self.given.get(&param.name);
            let value = own.cloned().or_else(|| self.mended_value(param))?;
            Some((param.name.clone(), value))
        };
        let readable: Map<String, Value> = self.shape.params.iter().filter_map(value).collect();
        // Type names alone would be taken for an echo of the schema.
        match ParsedValue::from(Value::Object(readable.clone())).as_pairs() {
            Some(pairs) if heuristics::is_signature(pairs.iter()) => Map::new(),
            _ => readable,
        }
    }

    /// Returns the value for a refused parameter: the caller's own under a misspelt key, else its default.
    fn mended_value(&self, param: &ParameterShape) -> Option<Value> {
        let is_its_own = |issue: &&ArgumentIssue| issue.subject() == param.name;
        let mut issues = self.issues.iter().filter(is_its_own).peekable();
        issues.peek()?;
        let names_something = matches!(param.kind, ValueKind::Name { .. }) || param.selects_motion;
        let default = param.default.clone().filter(|_| !names_something);
        issues.find_map(|issue| issue.fix.clone()).or(default)
    }

    /// Returns the required parameters that only the caller can supply.
    fn missing_parameters(&self, readable: &Map<String, Value>) -> Vec<&str> {
        let is_missing = |param: &&ParameterShape| {
            param.required && param.default.is_none() && !readable.contains_key(&param.name)
        };
        let missing = self.shape.params.iter().filter(is_missing);
        missing.map(|param| param.name.as_str()).collect()
    }

    /// Returns the parameters of which one must stand beside a readable one, where none does: a text for its place.
    fn missing_beside(&self, readable: &Map<String, Value>) -> Vec<&str> {
        let is_lone = |param: &&ParameterShape| {
            let mut beside = param.beside.iter();
            readable.contains_key(&param.name) && !beside.any(|name| readable.contains_key(name))
        };
        let lone = self.shape.params.iter().filter(is_lone);
        let missing = lone.map(|param| param.beside.first());
        missing.flatten().map(String::as_str).take(1).collect()
    }

    /// Returns the parameters whose data was refused, or came in a text that was not read verbatim.
    fn lost_data(&self) -> Vec<&str> {
        let is_text_refused = self.issues.iter().any(|one| one.subject().is_empty());
        let is_lost = |param: &&ParameterShape| {
            let is_its_own = |one: &ArgumentIssue| one.subject() == param.name;
            matches!(param.kind, ValueKind::Verbatim { .. })
                && (self.issues.iter().any(is_its_own)
                    || (is_text_refused && self.given.contains_key(&param.name)))
        };
        let lost = self.shape.params.iter().filter(is_lost);
        lost.map(|param| param.name.as_str()).collect()
    }

    /// Returns whether the corrected call may move: a caller sends it back without another look.
    fn may_move(&self, readable: &Map<String, Value>) -> bool {
        let is_certain =
            self.issues.iter().all(Self::is_slip) && self.repairs.iter().all(is_lossless);
        is_certain && (self.policy.profile == ForgivenessProfile::Lenient || self.selects(readable))
    }

    /// Returns whether the caller's own choice of what is moved or drawn is kept.
    fn selects(&self, readable: &Map<String, Value>) -> bool {
        let mut params = self.shape.params.iter();
        params.any(|param| param.selects_motion && readable.contains_key(&param.name))
    }

    /// Returns whether an issue is a mere slip, which loses nothing: the value moves to the parameter that its key nearly names.
    /// A lost number is never one, because the default may move farther, faster or longer.
    fn is_slip(issue: &ArgumentIssue) -> bool {
        !issue.is_in_doubt && issue.complaint.code == "near_key"
    }

    /// Describes the call without arguments as the rest of a sentence; empty if that call is refused, or not what a sentence
    /// asked for.
    fn default_call_text(&self) -> String {
        let mut params = self.shape.params.iter();
        let asks_in_words =
            |issue: &ArgumentIssue| issue.is_in_doubt && issue.complaint.code == "no_arguments";
        if params.any(|param| param.required && param.default.is_none())
            || self.issues.iter().any(asks_in_words)
        {
            return String::new();
        }
        match self.shape.default_action.as_str() {
            "" => "; `{}` runs the tool with its defaults".to_owned(),
            action => format!("; `{{}}` {action}"),
        }
    }

    /// Returns the call as a preview, or no call if the tool has no preview.
    fn preview(&self, readable: Map<String, Value>) -> CorrectedCall {
        let default_call = self.default_call_text();
        let Some(cautious) = self.shape.params.iter().find(|one| one.cautious.is_some()) else {
            let guidance = format!(
                "no corrected call is offered, since this tool moves and has no preview: send the intended arguments as one JSON object{default_call}"
            );
            return CorrectedCall::none(guidance);
        };
        let guidance = match self.selects(&readable) {
            true => format!("with `{}` nothing moves", cautious.name),
            false => format!("with `{}` nothing moves{default_call}", cautious.name),
        };
        CorrectedCall {
            call: Some(with_preview(self.shape, readable)),
            guidance,
        }
    }
}

/// Returns a call that moves nothing, with its arguments in the order of the parameters.
fn with_preview(shape: &ArgumentShape, mut readable: Map<String, Value>) -> Map<String, Value> {
    let value = |param: &ParameterShape| {
        let sent = readable.remove(&param.name);
        let value = param.cautious.clone().or(sent)?;
        Some((param.name.clone(), value))
    };
    shape.params.iter().filter_map(value).collect()
}

/// Returns whether nothing of what was sent was lost by a repair.
fn is_lossless(repair: &ArgumentRepair) -> bool {
    LOSSLESS.contains(&repair.code)
}

#[cfg(test)]
mod tests;
