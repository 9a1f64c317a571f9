//! A JSON-RPC line or body that is not quite JSON: repaired where it has one meaning, otherwise answered under its own id.

use super::{
    candidates,
    limits::TEXT_BYTES_MAX,
    outcome::ArgumentRepair,
    parsed_value::{self, ParsedValue},
    quote::QuoteMatching,
    rules::RepairClass,
    skipped::{SkippedMeaning, SkippedPlace, SkippedText},
    strict,
    tolerant::TolerantParser,
    withheld,
};
use serde_json::{Map, Value, json};
use std::ops::Range;
use thiserror::Error;

/// A message ready for the protocol. Arguments that were not strict JSON are in it as the text that was written, for the reader to read.
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
    /// Not to be read, not even tolerantly. JSON-RPC's −32700.
    #[error("this is not JSON and cannot be repaired: {why}; send one JSON-RPC object per line")]
    Unreadable {
        /// The id, if it could be made out.
        id: Option<Value>,
        /// Reason, in words.
        why: &'static str,
    },
    /// JSON, but no JSON-RPC message. JSON-RPC's −32600.
    #[error("this is not a JSON-RPC message: {why}")]
    NotAMessage {
        /// The id, if there is one.
        id: Option<Value>,
        /// Reason, in words.
        why: &'static str,
    },
}

impl EnvelopeError {
    /// The id to answer under; `None` means null.
    #[must_use]
    pub fn id(&self) -> Option<&Value> {
        let (Self::Unreadable { id, .. } | Self::NotAMessage { id, .. }) = self;
        id.as_ref()
    }

    /// The JSON-RPC error code.
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
/// Where the bytes are not text, cannot be repaired to one meaning, or are no message.
pub fn read(bytes: &[u8]) -> Result<RepairedEnvelope, EnvelopeError> {
    let unreadable = |why| EnvelopeError::Unreadable {
        id: scanned_id(&String::from_utf8_lossy(
            bytes.get(..TEXT_BYTES_MAX).unwrap_or(bytes),
        )),
        why,
    };
    if bytes.len() > TEXT_BYTES_MAX {
        return Err(unreadable("longer than 1 MiB"));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8"))?;
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}' || c == '\0');
    match strict::parse(text) {
        Some(node) if !node.contradicts_itself() => message(&node, Vec::new()),
        Some(_) => tolerantly(text, "a key is given twice with different values"),
        None => tolerantly(text, "it is not an object"),
    }
}

fn tolerantly(text: &str, why: &'static str) -> Result<RepairedEnvelope, EnvelopeError> {
    let unreadable = |id, why| Err(EnvelopeError::Unreadable { id, why });
    let Some(start) = text.find('{').filter(|_| !text.starts_with('[')) else {
        return whole_text(text, why);
    };
    let Some((node, parser)) = parsed(text, start) else {
        return unreadable(scanned_id(text), "its brackets and quotes do not match");
    };
    let (rest, before) = (
        text.get(parser.position()..).unwrap_or_default(),
        text.get(..start).unwrap_or_default(),
    );
    if rest.contains('{') || before.contains(['"', '}', ']']) {
        return unreadable(field(&node, "id"), "there is more than one object");
    }
    let mut repairs: Vec<ArgumentRepair> = parser
        .forms
        .iter()
        .map(|form| repair("message", form.why()))
        .collect();
    if !rest.trim().is_empty() || !before.trim().is_empty() {
        repairs.push(repair("message", "text around the message skipped"));
    }
    let comments = parser.forms.skipped().to_vec();
    let mut node = match parser.cut {
        true => with_what_is_left(text, node, parser.arguments)?,
        false => with_arguments_as_written(text, node, parser.arguments)?,
    };
    forward_words(&mut node, [before, rest], &comments);
    message(&node, repairs)
}

/// Moves the words around a call's message to its arguments, where the reader judges them. Headers of other framings
/// do not count as words.
fn forward_words(node: &mut ParsedValue, around: [&str; 2], comments: &[SkippedText]) {
    const HEADERS: [&str; 5] = ["content-length:", "content-type:", "data:", "event:", "id:"];
    let is_header = |line: &&str| {
        let line = line.trim_start().to_ascii_lowercase();
        HEADERS.iter().any(|header| line.starts_with(header))
    };
    let words = |text: &str| {
        let lines: Vec<&str> = text.lines().filter(|line| !is_header(line)).collect();
        let text = lines.join("\n");
        let text = text.trim_start_matches(['}', ']', ')', ' ']).to_owned();
        let place = SkippedPlace::Around;
        let skipped = SkippedText { text, place };
        let tools = [String::new()];
        (skipped.meaning(&tools) != SkippedMeaning::Packaging).then_some(skipped.text)
    };
    let asked = comments
        .iter()
        .filter(|one| one.meaning(&[]) == SkippedMeaning::Refusal);
    let mut after = asked.fold(String::new(), |after, one| format!("{after}\n{}", one.text));
    let [before, rest] = around.map(words);
    after.extend(rest);
    let before = before.unwrap_or_default();
    if before.is_empty() && after.is_empty() {
        return;
    }
    let arguments =
        params_of(node).and_then(|params| params.iter().find(|(key, _)| key == "arguments"));
    let written = match arguments {
        Some((_, ParsedValue::Text(text))) => text.clone(),
        Some((_, ParsedValue::Null)) | None => "{}".to_owned(),
        Some((_, other)) => other.to_value().to_string(),
    };
    set_arguments(node, &format!("{before} {written} {after}"));
}

fn params_of(node: &ParsedValue) -> Option<&Vec<(String, ParsedValue)>> {
    let ParsedValue::Map(pairs) = node else {
        return None;
    };
    let params = pairs.iter().find(|(key, _)| key == "params");
    match params {
        Some((_, ParsedValue::Map(params))) => Some(params),
        _ => None,
    }
}

/// The value that begins there, by the strictest quoting that finds one.
fn parsed(text: &str, start: usize) -> Option<(ParsedValue, TolerantParser<'_>)> {
    let in_quotes = |quotes| {
        let mut parser = TolerantParser::new(text, start, quotes);
        let node = parser.value(0).ok()??;
        Some((node, parser))
    };
    [QuoteMatching::Exact, QuoteMatching::Loose]
        .into_iter()
        .find_map(in_quotes)
}

/// A whole message inside quotes, or a list.
fn whole_text(text: &str, why: &'static str) -> Result<RepairedEnvelope, EnvelopeError> {
    let mut found = candidates::of_text(text);
    let candidate = found.swap_remove(0);
    if candidate.flaw.is_some() || candidate.is_loose || candidate.node.contradicts_itself() {
        return Err(EnvelopeError::Unreadable {
            id: scanned_id(text),
            why,
        });
    }
    message(
        &candidate.node,
        candidate
            .forms
            .iter()
            .map(|form| repair("message", form.why()))
            .collect(),
    )
}

/// Puts the arguments' own text in their place unless it is strict; a message may contradict itself nowhere else.
fn with_arguments_as_written(
    text: &str,
    mut node: ParsedValue,
    span: Option<Range<usize>>,
) -> Result<ParsedValue, EnvelopeError> {
    let is_sloppy =
        |written: &&str| strict::parse(written).is_none_or(|node| node.contradicts_itself());
    if let Some(written) = span.and_then(|span| text.get(span)).filter(is_sloppy) {
        set_arguments(&mut node, written);
    }
    without_contradiction(node)
}

/// A call that is cut off is handed on as cut off, wherever the cut is: what only looks or stops may still be
/// carried out, and nothing moves. Of other messages nothing is left.
fn with_what_is_left(
    text: &str,
    mut node: ParsedValue,
    span: Option<Range<usize>>,
) -> Result<ParsedValue, EnvelopeError> {
    let rest = span.and_then(|span| text.get(span.start..));
    // Arguments that are whole, or of which nothing is there, say nothing of a cut: the message does.
    let is_cut = |rest: &&str| parsed(rest, 0).is_some_and(|(_, parser)| parser.cut);
    if set_arguments(&mut node, rest.filter(is_cut).unwrap_or(text)) {
        return without_contradiction(node);
    }
    Err(EnvelopeError::Unreadable {
        id: field(&node, "id"),
        why: "it is cut off",
    })
}

fn without_contradiction(node: ParsedValue) -> Result<ParsedValue, EnvelopeError> {
    if node.contradicts_itself() {
        return Err(EnvelopeError::Unreadable {
            id: field(&node, "id"),
            why: "a key is given twice with different values",
        });
    }
    Ok(node)
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

fn field(node: &ParsedValue, key: &str) -> Option<Value> {
    let ParsedValue::Map(pairs) = node else {
        return None;
    };
    let value = pairs
        .iter()
        .find(|(k, _)| k == key)
        .map(|(_, value)| value.to_value())?;
    (value.is_string() || value.is_number()).then_some(value)
}

fn repair(field: &str, why: &'static str) -> ArgumentRepair {
    ArgumentRepair {
        field: field.to_owned(),
        got: String::new(),
        used: String::new(),
        class: RepairClass::L0,
        cost: 1,
        code: "envelope",
        why: why.into(),
    }
}

/// Supplies what a message must have, where there is only one thing it can be.
fn message(
    node: &ParsedValue,
    mut repairs: Vec<ArgumentRepair>,
) -> Result<RepairedEnvelope, EnvelopeError> {
    match node.to_value() {
        Value::Object(mut map) => {
            normalise(&mut map, &mut repairs)?;
            Ok(RepairedEnvelope {
                message: Value::Object(map),
                repairs,
            })
        }
        Value::Array(mut items) => {
            for item in &mut items {
                let Value::Object(map) = item else {
                    return Err(EnvelopeError::NotAMessage {
                        id: None,
                        why: "a batch holds objects only",
                    });
                };
                normalise(map, &mut repairs)?;
            }
            Ok(RepairedEnvelope {
                message: Value::Array(items),
                repairs,
            })
        }
        _ => Err(EnvelopeError::NotAMessage {
            id: None,
            why: "it is neither an object nor a list",
        }),
    }
}

fn normalise(
    map: &mut Map<String, Value>,
    repairs: &mut Vec<ArgumentRepair>,
) -> Result<(), EnvelopeError> {
    let is_message = ["method", "result", "error"]
        .iter()
        .any(|key| map.contains_key(*key));
    if !is_message {
        let id = map
            .get("id")
            .filter(|id| id.is_string() || id.is_number())
            .cloned();
        return Err(EnvelopeError::NotAMessage {
            id,
            why: "it has no 'method'",
        });
    }
    version(map, repairs);
    if map
        .get("method")
        .is_some_and(|method| method == "tools/call")
    {
        gather_params(map, repairs);
        params(map, repairs);
        forward_requests(map, repairs);
    } else {
        params(map, repairs);
    }
    Ok(())
}

fn version(map: &mut Map<String, Value>, repairs: &mut Vec<ArgumentRepair>) {
    if map.get("jsonrpc").is_some_and(|version| version == "2.0") {
        return;
    }
    let got = map.insert("jsonrpc".into(), json!("2.0"));
    let got = got.map_or_else(String::new, |got| parsed_value::shown(&got.to_string()));
    repairs.push(ArgumentRepair {
        got,
        used: "2.0".into(),
        ..repair("jsonrpc", "the protocol's version supplied")
    });
}

/// `name` and `arguments` beside `method` belong into `params`.
fn gather_params(map: &mut Map<String, Value>, repairs: &mut Vec<ArgumentRepair>) {
    if map.contains_key("params") || !map.contains_key("name") {
        return;
    }
    let params: Map<String, Value> = ["name", "arguments"]
        .iter()
        .filter_map(|key| map.remove(*key).map(|value| ((*key).to_owned(), value)))
        .collect();
    map.insert("params".into(), Value::Object(params));
    repairs.push(repair(
        "params",
        "the call's name and arguments put where they belong",
    ));
}

/// A request for a dry run beside a call's arguments is put to them, where the reader judges it.
fn forward_requests(map: &mut Map<String, Value>, repairs: &mut Vec<ArgumentRepair>) {
    const OWN: [&str; 6] = ["jsonrpc", "id", "method", "params", "name", "arguments"];
    let asks = |(key, value): &(&String, &Value)| {
        !OWN.contains(&key.as_str())
            && withheld::asks_not_to_move(key, &ParsedValue::from((*value).clone()))
    };
    let asked = |map: &Map<String, Value>| -> Map<String, Value> {
        let pairs = map.iter().filter(asks);
        pairs
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    };
    let mut beside = asked(map);
    let Some(Value::Object(params)) = map.get_mut("params") else {
        return;
    };
    beside.extend(asked(params));
    if beside.is_empty() {
        return;
    }
    let arguments = params.remove("arguments").unwrap_or_else(|| json!({}));
    beside.insert("arguments".into(), arguments);
    params.insert("arguments".into(), Value::Object(beside));
    repairs.push(repair(
        "params",
        "what stands beside the arguments put to them",
    ));
}

/// `params` as text or as a list of one is read as its object; nothing is the same as none.
fn params(map: &mut Map<String, Value>, repairs: &mut Vec<ArgumentRepair>) {
    let Some(sent) = map.get("params").filter(|params| !params.is_object()) else {
        return;
    };
    let got = parsed_value::shown(&sent.to_string());
    let read = match sent {
        Value::String(text) => single_object(text),
        Value::Array(items) if items.len() == 1 => {
            items.first().filter(|only| only.is_object()).cloned()
        }
        _ => None,
    };
    if let Some(params) = read {
        map.insert("params".into(), params);
        repairs.push(ArgumentRepair {
            got,
            ..repair("params", "an object in another wrapping")
        });
    } else if ParsedValue::from(sent.clone()).is_empty() {
        map.remove("params");
        repairs.push(ArgumentRepair {
            got,
            ..repair("params", "empty, so read as not sent")
        });
    }
}

fn single_object(text: &str) -> Option<Value> {
    let found = candidates::of_text(text);
    let clean = found.first().filter(|candidate| {
        candidate.flaw.is_none() && !candidate.is_loose && !candidate.node.contradicts_itself()
    })?;
    Some(clean.node.to_value()).filter(Value::is_object)
}

/// The id of a message that cannot be parsed: what follows the only `"id":` in it.
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
    serde_json::from_str(&value)
        .ok()
        .filter(|value: &Value| value.is_string() || value.is_number())
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

    /// The arguments of a call as the reader gets them.
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
    fn a_dry_run_beside_the_arguments_reaches_the_reader() {
        for line in [
            r#"{"method":"tools/call","id":1,"params":{"name":"stroke","dry_run":true,"arguments":{"scene":"koi"}}}"#,
            r#"{"method":"tools/call","id":1,"dry_run":true,"params":{"name":"stroke","arguments":{"scene":"koi"}}}"#,
            r#"{"method":"tools/call","id":1,"name":"stroke","dry_run":true,"arguments":{"scene":"koi"}}"#,
        ] {
            let want = json!({"dry_run": true, "arguments": {"scene": "koi"}});
            assert_eq!(arguments(line), want, "{line}");
        }
        let meta =
            r#"{"method":"tools/call","id":1,"params":{"name":"stroke","_meta":{"dry_run":true}}}"#;
        assert_eq!(
            arguments(meta),
            json!({"_meta": {"dry_run": true}, "arguments": {}})
        );
    }

    #[test]
    fn a_good_message_is_left_alone() {
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
    fn arguments_that_are_not_strict_are_handed_on_as_written() {
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
    fn a_call_that_is_cut_off_says_so_wherever_the_cut_is() {
        let whole = good().to_string();
        // Quotes inside a text are read by guessing where it ends.
        let quoted = whole.replace("koi", r#"the "koi" here"#);
        let cuts = |call: &str| {
            let from = call.find(r#""name":"stroke""#).unwrap() + r#""name":"stroke""#.len();
            (from..call.len())
                .map(|end| call[..end].to_owned())
                .collect::<Vec<_>>()
        };
        for text in cuts(&whole).into_iter().chain(cuts(&quoted)) {
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
    fn what_cannot_be_read_is_answered_under_its_id() {
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
