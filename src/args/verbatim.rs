//! Parameters whose text is data: taken verbatim from plain JSON, or refused. In every profile, nothing is trimmed,
//! unescaped, searched or made up for them, and no other oddity of the call is forgiven.

use super::{
    arguments::CallReader,
    heuristics,
    judge::{ReaderRule, RepairClass},
    limits::REPAIRS_MAX,
    outcome::{self, ArgumentIssue, ArgumentRepair},
    parsed_value::{self, ParsedValue},
    shape::{ParameterShape, ValueKind},
    strict,
};
use call::CALL_TAGS;
use serde_json::Value;

/// Repairs of the text as a whole that leave every value in it as it was.
const LOSSLESS_FORMS: [&str; 2] = ["envelope", "list_of_one"];

/// Repairs that leave out what is judged as a leftover, or means nothing.
const HARMLESS_LEFT_OUT: [&str; 4] = ["ignored_key", "not_understood", "tool_name", "dry_run"];

/// Ends of a text that a client or a log has cut.
const CUT_MARKS: [&str; 3] = ["[truncated]", "(truncated)", "<truncated>"];

impl CallReader<'_> {
    /// Takes the text that was sent for a parameter, verbatim.
    pub(super) fn read_verbatim<'n>(
        &mut self,
        param: &ParameterShape,
        bytes_max: usize,
        sent: impl Iterator<Item = &'n ParsedValue> + Clone,
    ) {
        if let Some(node) = sent.clone().next()
            && sent.clone().all(ParsedValue::is_empty)
            && self.another_chooses(param)
        {
            return self.note_empty(param, node);
        }
        let mut sent = sent;
        let Some(node) = sent.next() else {
            return;
        };
        if sent.next().is_some() {
            let reason = "given twice";
            return self.add_issue(issue(param, "duplicate_keys", reason, node), node);
        }
        match node {
            // Judged with the other arguments.
            ParsedValue::Null => {}
            ParsedValue::Text(text) => match flaw(text, &param.name, bytes_max) {
                None => {
                    let value = Value::from(text.as_str());
                    self.given.insert(param.name.clone(), value);
                }
                Some((code, reason)) => self.add_issue(issue(param, code, &reason, node), node),
            },
            _ => {
                let reason = "this is not a quoted string";
                self.add_issue(issue(param, "not_text", reason, node), node);
            }
        }
    }

    /// Refuses a call that would drop its data for a null, or that needed a repair beside its data.
    pub(super) fn check_verbatim(&mut self) {
        let is_verbatim =
            |param: &&ParameterShape| matches!(param.kind, ValueKind::Verbatim { .. });
        let shape = self.shape;
        let params: Vec<&ParameterShape> = shape.params.iter().filter(is_verbatim).collect();
        let is_given = |param: &ParameterShape| self.given.contains_key(&param.name);
        if params.iter().any(|param| is_given(param)) {
            if let Some(issue) = self.repair_beside_data(&params) {
                self.add_issue(issue, &ParsedValue::Null);
            }
            return;
        }
        let mut choosing = shape.params.iter().filter(|param| param.selects_motion);
        if choosing.any(is_given) {
            return;
        }
        for (index, param) in shape.params.iter().enumerate() {
            let is_refused = self.refused.iter().any(|one| one.subject() == param.name);
            if is_verbatim(&param) && self.sent.contains(&index) && !is_refused {
                let reason = "null draws nothing";
                let issue = issue(param, "empty", reason, &ParsedValue::Null);
                self.add_issue(issue, &ParsedValue::Null);
            }
        }
    }

    /// Returns the issue with a repair that is not allowed in a call with data.
    fn repair_beside_data(&self, verbatim: &[&ParameterShape]) -> Option<ArgumentIssue> {
        let log = &self.coercer.repairs.list;
        // An item or field of a parameter, such as `at_mm[0]`, belongs to the parameter.
        let is_known = |field: &str| {
            let name = outcome::root(field);
            self.shape.params.iter().any(|param| param.name == name)
        };
        let is_harmless = |repair: &&ArgumentRepair| match repair.field.as_str() {
            "arguments" => LOSSLESS_FORMS.contains(&repair.code),
            field if verbatim.iter().any(|param| param.name == field) => {
                ["key_form", "empty"].contains(&repair.code)
            }
            field if is_known(field) => {
                repair.class != RepairClass::L2
                    || ["not_understood", "dry_run"].contains(&repair.code)
            }
            _ => HARMLESS_LEFT_OUT.contains(&repair.code),
        };
        let first = log.iter().find(|repair| !is_harmless(repair));
        let first = first.or_else(|| log.last().filter(|_| log.len() >= REPAIRS_MAX))?;
        let names: Vec<&str> = verbatim.iter().map(|param| param.name.as_str()).collect();
        let path = match first.field.as_str() {
            "arguments" => "",
            field => field,
        };
        let reason = format!(
            "{}; a call with {} must be exact, so it is not repaired",
            first.why,
            names.join(" or ")
        );
        let issue = ArgumentIssue::new(ReaderRule::Verbatim, "beside_data", path, reason)
            .received(first.got.clone())
            .expected("plain JSON with only the tool's own parameters");
        Some(issue)
    }
}

fn issue(
    param: &ParameterShape,
    code: &'static str,
    reason: &str,
    node: &ParsedValue,
) -> ArgumentIssue {
    ArgumentIssue::new(ReaderRule::Verbatim, code, &param.name, reason)
        .received(parsed_value::shown_node(node))
        .expected(param.kind.describe())
}

/// Returns the reason why a text certainly cannot be the intended data.
fn flaw(text: &str, name: &str, bytes_max: usize) -> Option<(&'static str, String)> {
    let (trimmed, bytes) = (text.trim(), text.len());
    if bytes > bytes_max {
        let reason = format!("this has {bytes} bytes (at most {bytes_max})");
        return Some(("too_long", reason));
    }
    let (code, reason) = if trimmed.is_empty() {
        ("empty", "empty text draws nothing")
    } else if parsed_value::is_nothing(text) || parsed_value::is_lost_payload(text) {
        (
            "payload_lost",
            "the client sent a placeholder instead of this value",
        )
    } else if heuristics::is_template(text) || heuristics::is_dressed_name(text, name) {
        ("template", "this is a placeholder, not a value")
    } else if is_cut(trimmed) {
        ("cut_off", "this text is incomplete: its end is missing")
    } else if holds_rest_of_call(trimmed) {
        let reason = "this holds the rest of a broken call: send the call again as plain JSON";
        ("broken_call", reason)
    } else if name == SVG && !ends_as_svg(trimmed) {
        (
            "broken_call",
            "there is text after the end of the SVG: send the call again as plain JSON",
        )
    } else if holds_call(trimmed) {
        let reason = "this is JSON, as arguments are: send arguments at the top";
        ("nested_arguments", reason)
    } else {
        return None;
    };
    Some((code, reason.to_owned()))
}

/// The parameter for an SVG.
const SVG: &str = "svg";

/// Returns whether a text holds a piece of the syntax of the call that carries it.
fn holds_rest_of_call(text: &str) -> bool {
    // `</text>` is an element of an SVG too.
    let is_svg = text.contains("<svg");
    CALL_TAGS
        .iter()
        .any(|tag| text.contains(tag) && !(is_svg && *tag == "</text>"))
}

/// Returns whether a text that holds an SVG ends with its own end, or with that of the code fence around all of it.
fn ends_as_svg(trimmed: &str) -> bool {
    let trimmed = without_fence(trimmed);
    !trimmed.contains("<svg") || trimmed.ends_with("</svg>") || trimmed.ends_with("/>")
}

/// Returns the code within a fence around all of a text, or else the text.
fn without_fence(trimmed: &str) -> &str {
    let inner = trimmed.strip_prefix("```");
    let inner = inner.and_then(|inner| inner.strip_suffix("```"));
    match inner.filter(|inner| !inner.contains("```")) {
        Some(inner) => inner.trim(),
        None => trimmed,
    }
}

fn is_cut(trimmed: &str) -> bool {
    let mut marks = CUT_MARKS.iter();
    marks.any(|mark| parsed_value::ends_with_word(trimmed, mark))
}

/// Returns whether a text begins as a JSON object, which may be cut off, or is a list.
fn holds_call(trimmed: &str) -> bool {
    let is_list = || matches!(strict::parse(trimmed), Some(ParsedValue::List(_)));
    trimmed.starts_with('{') || (trimmed.starts_with('[') && is_list())
}

#[cfg(test)]
mod tests;
