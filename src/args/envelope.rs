//! Repairs a JSON-RPC line or body that is not quite JSON if it has one meaning; otherwise reports the id to answer under.

use super::{
    candidates::{self, CandidateReading},
    form_repair::FormRepairs,
    limits::TEXT_BYTES_MAX,
    outcome::ArgumentRepair,
    parsed_value::{self, ParsedValue},
    strict,
    tolerant::{self, TolerantParser},
};
use serde_json::{Map, Value, json};
use std::ops::Range;
use thiserror::Error;

/// A message ready for the protocol. Arguments that were not strict JSON are kept as the text that was sent, for the reader.
#[derive(Debug, Clone, PartialEq)]
pub struct RepairedEnvelope {
    /// The message, or a list of messages.
    pub message: Value,
    /// Repairs that were needed; empty for a good message.
    pub repairs: Vec<ArgumentRepair>,
}

/// Reason why a message cannot be used, with the id to answer under if it is known.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum EnvelopeError {
    /// It cannot be read, not even tolerantly. JSON-RPC's −32700.
    #[error(
        "this is not JSON and cannot be repaired: {reason}. Next: send one JSON-RPC object per line"
    )]
    Unreadable {
        /// The id, if one was found.
        id: Option<Value>,
        /// Reason, in words.
        reason: &'static str,
    },
    /// JSON, but no JSON-RPC message. JSON-RPC's −32600.
    #[error("this is not a JSON-RPC message: {reason}")]
    NotAMessage {
        /// The id, if there is one.
        id: Option<Value>,
        /// Reason, in words.
        reason: &'static str,
    },
}

impl EnvelopeError {
    fn unreadable<T>(id: Option<Value>, reason: &'static str) -> Result<T, Self> {
        Err(Self::Unreadable { id, reason })
    }

    fn not_a_message<T>(id: Option<Value>, reason: &'static str) -> Result<T, Self> {
        Err(Self::NotAMessage { id, reason })
    }

    /// Returns the id to answer under; `None` means null.
    #[must_use]
    pub fn id(&self) -> Option<&Value> {
        let (Self::Unreadable { id, .. } | Self::NotAMessage { id, .. }) = self;
        id.as_ref()
    }

    /// Returns the JSON-RPC error code.
    #[must_use]
    pub fn code(&self) -> i32 {
        match self {
            Self::Unreadable { .. } => -32_700,
            Self::NotAMessage { .. } => -32_600,
        }
    }
}

/// Reads one line or body. A good message costs one parse.
///
/// # Errors
/// The bytes are not text, cannot be repaired to one meaning, or are not a message.
pub fn read(bytes: &[u8]) -> Result<RepairedEnvelope, EnvelopeError> {
    let unreadable = |reason| {
        let begin = bytes.get(..TEXT_BYTES_MAX).unwrap_or(bytes);
        EnvelopeError::unreadable(scanned_id(&String::from_utf8_lossy(begin)), reason)
    };
    if bytes.len() > TEXT_BYTES_MAX {
        return unreadable("longer than 1 MiB");
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return unreadable("it is not UTF-8");
    };
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}' || c == '\0');
    match strict::parse(text) {
        Some(node) if !node.contradicts_itself() => complete(&node, Vec::new()),
        Some(_) => read_tolerantly(text, CONTRADICTION),
        None => read_tolerantly(text, "it is not an object"),
    }
}

const CONTRADICTION: &str = "one key has two different values";

fn read_tolerantly(text: &str, reason: &'static str) -> Result<RepairedEnvelope, EnvelopeError> {
    let Some(start) = text.find('{').filter(|_| !text.starts_with('[')) else {
        return read_whole_text(text, reason);
    };
    let Some((mut node, parser)) = parse_at(text, start) else {
        let reason = "its brackets and quotes do not match";
        return EnvelopeError::unreadable(scanned_id(text), reason);
    };
    let before = text.get(..start).unwrap_or_default();
    let rest = text.get(parser.position()..).unwrap_or_default();
    if rest.contains('{') || before.contains(['"', '}', ']']) {
        return EnvelopeError::unreadable(id_of(&node), "there is more than one object");
    }
    let mut repairs = form_repairs(&parser.forms);
    if !rest.trim().is_empty() || !before.trim().is_empty() {
        repairs.push(repair("message", "skipped the text around the message"));
    }
    if parser.cut {
        keep_cut_arguments(text, &mut node, parser.arguments.clone())?;
    } else {
        keep_arguments_as_written(text, &mut node, parser.arguments.clone());
    }
    // Only the arguments' own text may contradict itself.
    if node.contradicts_itself() {
        return EnvelopeError::unreadable(id_of(&node), CONTRADICTION);
    }
    let arguments = parser.arguments.clone().unwrap_or_default();
    let outside = parser
        .comments
        .iter()
        .filter(|span| !arguments.contains(&span.start));
    let comments: Vec<&str> = outside.filter_map(|span| text.get(span.clone())).collect();
    let comments = comments.join("\n");
    forward_surrounding_words(&mut node, [before, rest], &comments);
    complete(&node, repairs)
}

/// Moves what is left over around a call's message into its arguments, where it is judged. Headers of other framings are none
/// of it.
fn forward_surrounding_words(node: &mut ParsedValue, [before, rest]: [&str; 2], comments: &str) {
    const HEADERS: [&str; 5] = ["content-length:", "content-type:", "data:", "event:", "id:"];
    let is_header = |line: &&str| {
        let line = line.trim_start().to_ascii_lowercase();
        HEADERS.iter().any(|header| line.starts_with(header))
    };
    let words = |text: &str| {
        let lines: Vec<&str> = text.lines().filter(|line| !is_header(line)).collect();
        let text = lines.join("\n");
        let text = text.trim_matches(|c: char| c.is_whitespace() || "}]);".contains(c));
        // The words of an argument are not hidden in a tag or a fence.
        text.to_owned()
    };
    let [before, after] = [before, &format!("{rest}\n{comments}")].map(words);
    if before.is_empty() && after.is_empty() {
        return;
    }
    let arguments = node
        .get("params")
        .and_then(|params| params.get("arguments"));
    let written = match arguments {
        Some(ParsedValue::Text(text)) => text.clone(),
        Some(ParsedValue::Null) | None => "{}".to_owned(),
        Some(other) => other.to_value().to_string(),
    };
    set_arguments(node, &format!("{before} {written} {after}"));
}

/// Parses the value that begins at `start`, by the strictest quoting that finds one.
fn parse_at(text: &str, start: usize) -> Option<(ParsedValue, TolerantParser<'_>)> {
    tolerant::values(text, start).find_map(|(node, parser)| Some((node?, parser)))
}

/// Reads a message inside quotes, or a list.
fn read_whole_text(text: &str, reason: &'static str) -> Result<RepairedEnvelope, EnvelopeError> {
    match first_clean_reading(text) {
        Some(candidate) => complete(&candidate.node, form_repairs(&candidate.forms)),
        None => EnvelopeError::unreadable(scanned_id(text), reason),
    }
}

/// Returns the first reading of a text, if it has no flaw.
fn first_clean_reading(text: &str) -> Option<CandidateReading> {
    let first = candidates::of_text(text).into_iter().next()?;
    let is_clean = first.flaw.is_none() && !first.is_loose && !first.node.contradicts_itself();
    is_clean.then_some(first)
}

/// Replaces the arguments by their own text, unless that is strict JSON.
fn keep_arguments_as_written(text: &str, node: &mut ParsedValue, span: Option<Range<usize>>) {
    let is_sloppy =
        |written: &&str| strict::parse(written).is_none_or(|node| node.contradicts_itself());
    if let Some(written) = span.and_then(|span| text.get(span)).filter(is_sloppy) {
        set_arguments(node, written);
    }
}

/// Passes on a cut-off call as cut off, wherever the cut is: a tool that only reads or stops may still run, and nothing
/// moves. Any other cut-off message is unreadable.
fn keep_cut_arguments(
    text: &str,
    node: &mut ParsedValue,
    span: Option<Range<usize>>,
) -> Result<(), EnvelopeError> {
    let rest = span.and_then(|span| text.get(span.start..));
    // If the arguments are complete, or missing altogether, the cut is in the message around them.
    let is_cut = |rest: &&str| parse_at(rest, 0).is_some_and(|(_, parser)| parser.cut);
    if set_arguments(node, rest.filter(is_cut).unwrap_or(text)) {
        Ok(())
    } else {
        EnvelopeError::unreadable(id_of(node), "it is incomplete: the end is missing")
    }
}

/// Sets the arguments of the call. Returns whether there is a call.
fn set_arguments(node: &mut ParsedValue, written: &str) -> bool {
    let ParsedValue::Map(pairs) = node else {
        return false;
    };
    let Some((_, ParsedValue::Map(params))) = pairs.iter_mut().find(|(key, _)| key == "params")
    else {
        return false;
    };
    let is_call = params.iter().any(|(key, _)| key == "name");
    params.retain(|(key, _)| key != "arguments");
    params.push(("arguments".into(), ParsedValue::Text(written.to_owned())));
    is_call
}

fn id_of(node: &ParsedValue) -> Option<Value> {
    node.get("id").map(ParsedValue::to_value).filter(is_id)
}

fn is_id(value: &Value) -> bool {
    value.is_string() || value.is_number()
}

fn repair(field: &str, reason: &'static str) -> ArgumentRepair {
    ArgumentRepair::new(field, "envelope", 1, reason)
}

fn form_repairs(forms: &FormRepairs) -> Vec<ArgumentRepair> {
    let repairs = forms.iter().map(|form| repair("message", form.label()));
    repairs.collect()
}

/// Supplies required members of a message that can have only one value.
fn complete(
    node: &ParsedValue,
    mut repairs: Vec<ArgumentRepair>,
) -> Result<RepairedEnvelope, EnvelopeError> {
    let mut message = node.to_value();
    match &mut message {
        Value::Object(map) => complete_message(map, &mut repairs)?,
        Value::Array(items) => {
            for item in items {
                match item {
                    Value::Object(map) => complete_message(map, &mut repairs)?,
                    _ => return EnvelopeError::not_a_message(None, "a batch holds objects only"),
                }
            }
        }
        _ => return EnvelopeError::not_a_message(None, "it is neither an object nor a list"),
    }
    Ok(RepairedEnvelope { message, repairs })
}

fn complete_message(
    map: &mut Map<String, Value>,
    repairs: &mut Vec<ArgumentRepair>,
) -> Result<(), EnvelopeError> {
    let mut own = ["method", "result", "error"].iter();
    if !own.any(|key| map.contains_key(*key)) {
        let id = map.get("id").filter(|id| is_id(id)).cloned();
        return EnvelopeError::not_a_message(id, "it has no `method`");
    }
    supply_version(map, repairs);
    let is_call = map.get("method").is_some_and(|name| name == "tools/call");
    if is_call {
        gather_params(map, repairs);
    }
    repair_params(map, repairs);
    Ok(())
}

fn supply_version(map: &mut Map<String, Value>, repairs: &mut Vec<ArgumentRepair>) {
    if map.get("jsonrpc").is_some_and(|version| version == "2.0") {
        return;
    }
    let got = map.insert("jsonrpc".into(), json!("2.0"));
    let got = got.map_or_else(String::new, |got| parsed_value::shown(&got.to_string()));
    repairs.push(ArgumentRepair {
        got,
        used: "2.0".into(),
        ..repair("jsonrpc", "added the protocol's version")
    });
}

/// Moves `name` and `arguments` that stand beside `method` into `params`.
fn gather_params(map: &mut Map<String, Value>, repairs: &mut Vec<ArgumentRepair>) {
    if map.contains_key("params") || !map.contains_key("name") {
        return;
    }
    let own = ["name", "arguments"].iter();
    let params = own.filter_map(|key| map.remove_entry(*key)).collect();
    map.insert("params".into(), params);
    let reason = "the call's name and arguments put where they belong";
    repairs.push(repair("params", reason));
}

/// Reads `params` given as text or as a list of one as the object inside; an empty value counts as absent.
fn repair_params(map: &mut Map<String, Value>, repairs: &mut Vec<ArgumentRepair>) {
    let Some(sent) = map.get("params").filter(|params| !params.is_object()) else {
        return;
    };
    let got = parsed_value::shown(&sent.to_string());
    let read = match sent {
        Value::String(text) => first_clean_reading(text).map(|reading| reading.node.to_value()),
        Value::Array(items) if items.len() == 1 => items.first().cloned(),
        _ => None,
    };
    let reason = if let Some(params) = read.filter(Value::is_object) {
        map.insert("params".into(), params);
        "read an object in a different envelope"
    } else if ParsedValue::from(sent.clone()).is_empty() {
        map.remove("params");
        "it is empty, so it counts as not sent"
    } else {
        return;
    };
    let repair = repair("params", reason);
    repairs.push(ArgumentRepair { got, ..repair });
}

/// Returns the id of a message that cannot be parsed: the value after the only `"id":` in it.
fn scanned_id(text: &str) -> Option<Value> {
    let (at, key) = text
        .match_indices("\"id\"")
        .chain(text.match_indices("'id'"))
        .next()?;
    let after = text.get(at + key.len()..)?;
    if after.contains("\"id\"") || after.contains("'id'") {
        return None;
    }
    let value = after.trim_start().strip_prefix(':')?.trim_start();
    let end = value.find([',', '}', '\n']).unwrap_or(value.len());
    let value = value.get(..end)?.trim().replace('\'', "\"");
    serde_json::from_str(&value).ok().filter(is_id)
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use super::*;

    fn good() -> Value {
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "stroke", "arguments": {"scene": "koi"}}})
    }

    /// Returns the arguments of a call as the reader gets them.
    fn arguments(line: &str) -> Value {
        let message = read(line.as_bytes()).unwrap().message;
        message["params"]["arguments"].clone()
    }

    #[test]
    fn words_around_a_call_reach_the_reader() {
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"stroke","arguments":{"scene":"koi"}}}"#;
        for around in ["{} dry_run: true", "Do not run: {}", "{} tomorrow"] {
            let words = around.replace("{}", "").trim().to_owned();
            let arguments = arguments(&around.replace("{}", call));
            let text = arguments.as_str().unwrap();
            assert!(text.contains(&words) && text.contains("koi"), "{text}");
        }
        let comment = call.replace("\"id\":1,", "\"id\":1, /* dry run */");
        assert!(arguments(&comment).as_str().unwrap().contains("dry run"));
        for around in ["{}", "data: {}", "Content-Length: 9\n\n{}", "{};", "{}}"] {
            let arguments = arguments(&around.replace("{}", call));
            assert_eq!(arguments, json!({"scene": "koi"}), "{around}");
        }
    }

    #[test]
    fn a_good_message_stays_unchanged() {
        let read = read(good().to_string().as_bytes()).unwrap();
        assert_eq!((read.message, read.repairs), (good(), Vec::new()));
    }

    #[test]
    fn sloppy_messages_are_repaired() {
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"stroke","arguments":{"scene":"koi"}},}"#,
            r"{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'stroke','arguments':{'scene':'koi'}}}",
            r#"{"id":1,"method":"tools/call","params":{"name":"stroke","arguments":{"scene":"koi"}}}"#,
            r#"{"jsonrpc":2.0,"id":1,"method":"tools/call","params":{"name":"stroke","arguments":{"scene":"koi"}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","name":"stroke","arguments":{"scene":"koi"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[{"name":"stroke","arguments":{"scene":"koi"}}]}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":"{\"name\":\"stroke\",\"arguments\":{\"scene\":\"koi\"}}"}"#,
            r#"{jsonrpc:"2.0",id:1,method:"tools/call",params:{name:"stroke","arguments":{"scene":"koi"}}}"#,
        ] {
            let mut envelope = read(text.as_bytes()).unwrap();
            assert!(!envelope.repairs.is_empty(), "{text}");
            if let Some(Value::String(written)) = envelope.message.pointer("/params/arguments") {
                assert!(written.contains("koi"), "{text}");
                envelope.message["params"]["arguments"] = json!({"scene": "koi"});
            }
            assert_eq!(envelope.message, good(), "{text}");
        }
    }

    #[test]
    fn arguments_that_are_not_strict_are_passed_on_as_written() {
        for written in [
            r#"{"scene":"koi","scene":"star"}"#,
            r#"{"scene":"koi",}"#,
            r#"{"fps":NaN}"#,
            r#"{"fps":1"#,
            r#"{"scene":"ko"#,
        ] {
            let text = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"stroke","arguments":{written}"#
            );
            let text = if written.ends_with('}') {
                text + "}}"
            } else {
                text
            };
            assert_eq!(
                read(text.as_bytes()).unwrap().message["params"]["arguments"],
                json!(written),
                "{text}"
            );
        }
    }

    #[test]
    fn a_cut_off_call_is_recognised_wherever_the_cut_is() {
        let complete_call = good().to_string();
        // Quotes inside a text are read by guessing where it ends.
        let quoted = complete_call.replace("koi", r#"the "koi" here"#);
        let cuts = |call: &str| {
            let from = call.find(r#""name":"stroke""#).unwrap() + r#""name":"stroke""#.len();
            (from..call.len())
                .map(|end| call[..end].to_owned())
                .collect::<Vec<_>>()
        };
        for text in cuts(&complete_call).into_iter().chain(cuts(&quoted)) {
            let message = read(text.as_bytes()).unwrap().message;
            let Value::String(written) = &message["params"]["arguments"] else {
                panic!("{text}: {message}");
            };
            let found = candidates::of_text(written);
            assert!(
                found
                    .iter()
                    .all(|one| one.flaw == Some(candidates::TextFlaw::Cut)),
                "{text}: {written}"
            );
        }
    }

    #[test]
    fn an_unreadable_message_is_answered_under_its_id() {
        for (text, id, code) in [
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"tools/ca"#,
                Some(json!(7)),
                -32_700,
            ),
            (
                r#"{"jsonrpc":"2.0","id":"a","method":}"#,
                Some(json!("a")),
                -32_700,
            ),
            (r#"{"id":7} {"id":8}"#, Some(json!(7)), -32_700),
            (
                r#"{"id":1,"id":2,"method":"ping"}"#,
                Some(json!(1)),
                -32_700,
            ),
            (r#"{"jsonrpc":"2.0","id":3}"#, Some(json!(3)), -32_600),
            ("hello", None, -32_700),
            ("", None, -32_600),
            ("5", None, -32_600),
        ] {
            let error = read(text.as_bytes()).unwrap_err();
            assert_eq!((error.id(), error.code()), (id.as_ref(), code), "{text}");
        }
        assert_eq!(
            read(b"{\"id\":4,\"method\":\"\xff\"}").unwrap_err().id(),
            Some(&json!(4))
        );
    }
}
