//! Checks one message before the protocol library sees it, and repairs or answers what is wrong with it.
//!
//! The library answers some of these with silence, a 404 or a 415, and clients then conclude that the server has no
//! tools. Here a message is passed on (as received, or with its form repaired) or answered with a proper JSON-RPC
//! error. Nothing here interprets a tool's arguments: they travel on exactly as received.

use call::ReceivedArguments;
use serde_json::{Map, Value, json};

use super::lossy_json::{self, KeyPath, VALUES_MAX};
use super::wide_ids;

/// JSON-RPC: the text is not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// JSON-RPC: it is JSON but not a request.
pub const INVALID_REQUEST: i64 = -32600;
/// JSON-RPC: the method is known and its parameters do not fit.
pub const INVALID_PARAMS: i64 = -32602;

/// JSON-RPC: the server failed.
const INTERNAL_ERROR: i64 = -32603;
/// The server has too much to do.
pub(super) const BUSY: i64 = -32000;

/// Reader of a message that is not JSON; returns the reason if it cannot read it.
///
/// Arguments that could not be read without loss stay in `params.arguments` as a string, so that the caller's own
/// text is judged.
pub type MessageRepair = fn(&[u8]) -> RepairedMessage;

/// Result of repairing a message that is not JSON.
#[derive(Debug, Clone, PartialEq)]
pub enum RepairedMessage {
    /// The message that was intended.
    Message(Value),
    /// It cannot be read; a phrase tells where and why.
    Hopeless(String),
}

/// Accepts only JSON, and otherwise reports where it ended; a repair that repairs nothing.
#[must_use]
pub fn never_repair(raw: &[u8]) -> RepairedMessage {
    match serde_json::from_slice::<Value>(raw) {
        Ok(message) => RepairedMessage::Message(message),
        Err(error) => RepairedMessage::Hopeless(format!("the message is not JSON: {error}")),
    }
}

/// Decision about one message.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum MessageIntake {
    /// It goes on to the protocol library.
    Pass(AcceptedMessage),
    /// It is answered here.
    Reply(Value),
    /// It was empty.
    Nothing,
}

/// A message that goes on.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AcceptedMessage {
    /// The message, with its form repaired.
    pub(super) message: Value,
    /// Its length as received, in bytes.
    pub(super) length: usize,
    /// Its method; a response has none.
    pub(super) method: Option<String>,
    /// Its id; a notification has none.
    pub(super) id: Option<Value>,
    /// True if it names its own protocol revision, and so needs no `initialize` before it.
    pub(super) stands_alone: bool,
}

/// A call that was taken out of its message.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TakenCall {
    /// The tool's name as received; empty when there was none.
    pub(super) tool: String,
    /// True if the name came as text.
    pub(super) is_named: bool,
    /// The arguments as received.
    pub(super) arguments: ReceivedArguments,
}

impl AcceptedMessage {
    /// Returns the tool that a `tools/call` names.
    pub(super) fn tool(&self) -> Option<&str> {
        let is_call = self.method.as_deref() == Some("tools/call");
        let name = self.message.pointer("/params/name");
        name.filter(|_| is_call).and_then(Value::as_str)
    }

    /// Takes the call out of a `tools/call`. The rest of the message fits the protocol library's type, whatever the arguments
    /// and the name are.
    pub(super) fn take_call(&mut self) -> Option<TakenCall> {
        if self.method.as_deref() != Some("tools/call") {
            return None;
        }
        let params = self.message.get_mut("params")?.as_object_mut()?;
        let arguments = params.remove("arguments").filter(|value| !value.is_null());
        let is_named = params.get("name").is_some_and(Value::is_string);
        let tool = name_as_text(params.get("name"));
        params.insert("name".to_owned(), tool.clone().into());
        if !params.get("inputResponses").is_none_or(Value::is_object) {
            params.remove("inputResponses");
        }
        if !params.get("requestState").is_none_or(Value::is_string) {
            params.remove("requestState");
        }
        Some(TakenCall {
            tool,
            is_named,
            arguments: arguments.into(),
        })
    }
}

/// Returns a tool's name as text: a number as its digits, any other type as no name.
fn name_as_text(name: Option<&Value>) -> String {
    match name {
        Some(Value::String(name)) => name.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}

const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// Revision assumed for an `initialize` that names none.
const UNNAMED_VERSION: &str = "2025-11-25";

/// Judges one message: a line of standard input or the body of a POST.
pub(super) fn admit(raw: &[u8], repair: MessageRepair) -> MessageIntake {
    let raw = raw.strip_prefix(b"\xef\xbb\xbf").unwrap_or(raw);
    let raw = raw.trim_ascii();
    if raw.is_empty() {
        return MessageIntake::Nothing;
    }
    let (message, duplicates) = match lossy_json::parse(raw, 2) {
        Ok(parsed) if parsed.is_cut => return MessageIntake::Reply(too_many_values(&parsed.value)),
        Ok(parsed) => (parsed.value, parsed.lossy),
        Err(_) => match repair(raw) {
            RepairedMessage::Message(message) => {
                warn_of_repair(raw, &message);
                (message, Vec::new())
            }
            RepairedMessage::Hopeless(reason) => {
                let received = excerpt(raw);
                tracing::warn!(received, why = reason, "a message could not be read");
                return MessageIntake::Reply(refusal(PARSE_ERROR, id_in_broken(raw), &reason));
            }
        },
    };
    if !message.is_object() {
        warn_of_repair(raw, &message);
    }
    match unwrap_message(message).and_then(|message| repair_message(message, &duplicates, raw)) {
        Ok(message) => MessageIntake::Pass(accept(message, raw.len())),
        Err(reply) => MessageIntake::Reply(reply),
    }
}

/// Refuses a message of which only `kept` was read.
fn too_many_values(kept: &Value) -> Value {
    let reason = format!(
        "the message has too many JSON values (at most {VALUES_MAX}). Send long data as one text, such as `svg`, or in several calls"
    );
    let id = kept.get("id").filter(|id| id.is_string() || id.is_number());
    refusal(INVALID_REQUEST, id.cloned(), &reason)
}

/// Most characters of a message that are logged.
const LOGGED_CHARS_MAX: usize = 200;

fn warn_of_repair(raw: &[u8], used: &Value) {
    let used = excerpt(used.to_string().as_bytes());
    tracing::warn!(received = excerpt(raw), used, "a message was repaired");
}

/// Returns the beginning of a message, as text.
fn excerpt(message: &[u8]) -> String {
    let bytes = message.get(..4 * LOGGED_CHARS_MAX).unwrap_or(message);
    let text = String::from_utf8_lossy(bytes);
    text.chars().take(LOGGED_CHARS_MAX).collect()
}

/// Returns a JSON-RPC error.
pub(super) fn refusal(code: i64, id: Option<Value>, reason: &str) -> Value {
    let id = id.unwrap_or(Value::Null);
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": reason}})
}

/// Returns the answer to a message on which this server failed.
pub(super) fn internal_error() -> Value {
    let reason = "the node failed while it read this; its log has the reason";
    refusal(INTERNAL_ERROR, None, reason)
}

type MessageObject = Map<String, Value>;

fn accept(mut message: MessageObject, length: usize) -> AcceptedMessage {
    leave_out_task(&mut message);
    let method = message.get("method").and_then(Value::as_str);
    let meta = message.get("params").and_then(|params| params.get("_meta"));
    AcceptedMessage {
        length,
        method: method.map(str::to_owned),
        id: message.get("id").cloned(),
        stands_alone: meta.is_some_and(|meta| meta.get(META_VERSION).is_some()),
        message: Value::Object(message),
    }
}

/// Leaves out the parameters of a method of tasks but its metadata: one that fits a type of the protocol library is answered with the
/// bare name of the method, and one that fits none reaches the handler.
fn leave_out_task(message: &mut MessageObject) {
    let method = message.get("method").and_then(Value::as_str);
    if method.is_some_and(|method| method.starts_with("tasks/"))
        && let Some(Value::Object(params)) = message.get_mut("params")
    {
        params.retain(|key, _| key == "_meta");
    }
}

/// Returns the object, also from inside a string or a list of one.
fn unwrap_message(message: Value) -> Result<MessageObject, Value> {
    let reason = match message {
        Value::Object(object) => return Ok(object),
        Value::String(text) => match lossy_json::read(&text) {
            Some(Value::Object(object)) => return Ok(object),
            _ => "a message must be a JSON object, but this is text",
        },
        Value::Array(mut list) => match (list.pop(), list.is_empty()) {
            (Some(Value::Object(object)), true) => return Ok(object),
            _ => "a message must be one JSON object; send the messages of a batch one by one",
        },
        _ => "a message must be a JSON object",
    };
    Err(refusal(INVALID_REQUEST, None, reason))
}

/// Repairs the message's form, or returns the reply to a form that means nothing.
fn repair_message(
    mut message: MessageObject,
    duplicates: &[KeyPath],
    raw: &[u8],
) -> Result<MessageObject, Value> {
    let outermost = duplicates.iter().find_map(|path| match path.as_slice() {
        [key] => Some(key),
        _ => None,
    });
    if let Some(key) = outermost {
        let reason = format!("the message says `{key}` twice");
        return Err(refusal(INVALID_REQUEST, None, &reason));
    }
    let mut id = checked_id(&message)?;
    if let Some(id) = &mut id {
        wide_ids::stand_in(id, || text_at(raw, &["id"]));
        message.insert("id".to_owned(), id.clone());
    }
    message.insert("jsonrpc".to_owned(), Value::from("2.0"));
    let Some(method) = message.get("method") else {
        return reply_or_refusal(message, id);
    };
    let Some(method) = method.as_str().map(str::to_owned) else {
        return Err(refusal(INVALID_REQUEST, id, "`method` must be a string"));
    };
    if let Some(key) = ["result", "error"]
        .into_iter()
        .find(|key| message.contains_key(*key))
    {
        let reason = format!(
            "this message has both `method` (of a request) and `{key}` (of an answer); only one is possible"
        );
        return Err(refusal(INVALID_REQUEST, id, &reason));
    }
    if id.is_none() && !method.starts_with("notifications/") {
        let reason = format!("{method} is a request and needs an `id`");
        return Err(refusal(INVALID_REQUEST, None, &reason));
    }
    repair_params(&mut message, &method)
        .map_err(|reason| refusal(INVALID_PARAMS, id.clone(), &reason.to_string()))?;
    if method == "initialize" {
        complete_initialize(&mut message);
    }
    if method == "tools/call" {
        gather_arguments(&mut message, duplicates, raw)
            .map_err(|reason| refusal(INVALID_PARAMS, id, &reason.to_string()))?;
    }
    Ok(message)
}

fn checked_id(message: &MessageObject) -> Result<Option<Value>, Value> {
    match message.get("id") {
        None => Ok(None),
        Some(id @ Value::String(_)) => Ok(Some(id.clone())),
        Some(Value::Number(number)) if is_whole(number) => Ok(Some(Value::Number(number.clone()))),
        // An error that answers no particular request has a null id and is not itself a request.
        Some(Value::Null) if message.contains_key("error") => Ok(None),
        Some(_) => {
            let reason = "`id` must be a string or a whole number";
            Err(refusal(INVALID_REQUEST, None, reason))
        }
    }
}

/// Returns the text of the value at a path of keys in a message.
pub(super) fn text_at<'t>(raw: &'t [u8], path: &[&str]) -> Option<&'t str> {
    text_in(std::str::from_utf8(raw).ok()?, path)
}

/// As [`text_at`], for a message that is known to be UTF-8.
fn text_in<'t>(message: &'t str, path: &[&str]) -> Option<&'t str> {
    path.iter().try_fold(message, |text, key| {
        text.get(lossy_json::value_of(text, key)?)
    })
}

fn is_whole(number: &serde_json::Number) -> bool {
    let is_whole = |n: f64| n.fract().abs() < f64::MIN_POSITIVE;
    number.is_i64() || number.is_u64() || number.as_f64().is_some_and(is_whole)
}

fn reply_or_refusal(message: MessageObject, id: Option<Value>) -> Result<MessageObject, Value> {
    if message.contains_key("result") || message.contains_key("error") {
        return Ok(message);
    }
    Err(refusal(INVALID_REQUEST, id, "the message has no `method`"))
}

fn repair_params(message: &mut MessageObject, method: &str) -> Result<(), ParamsError> {
    let params = match message.remove("params") {
        None | Some(Value::Null) => MessageObject::new(),
        Some(Value::Object(params)) => params,
        Some(Value::Array(mut list)) => match (list.pop(), list.is_empty()) {
            (None, _) => MessageObject::new(),
            (Some(Value::Object(params)), true) => params,
            _ => return Err(ParamsError::not_an_object(method)),
        },
        Some(Value::String(text)) => match lossy_json::read(&text) {
            Some(Value::Object(params)) => params,
            _ => return Err(ParamsError::not_an_object(method)),
        },
        Some(_) => return Err(ParamsError::not_an_object(method)),
    };
    keep_params(message, method, params);
    Ok(())
}

/// Reason that a message's `params` cannot be read.
#[derive(Debug, thiserror::Error)]
enum ParamsError {
    #[error("`params` must be an object of the form {{\"name\": TOOL, \"arguments\": {{}}}}")]
    CallIsNoObject,
    #[error("`params` of {method} must be an object")]
    NoObject { method: String },
    #[error("`params` says `name` twice")]
    NameTwice,
    #[error("the message is not UTF-8")]
    NotUtf8,
}

impl ParamsError {
    fn not_an_object(method: &str) -> Self {
        match method {
            "tools/call" => Self::CallIsNoObject,
            _ => Self::NoObject {
                method: method.to_owned(),
            },
        }
    }
}

/// Puts the parameters back, without a `_meta` that is not an object and so has no meaning.
fn keep_params(message: &mut MessageObject, method: &str, mut params: MessageObject) {
    if params.get("_meta").is_some_and(|meta| !meta.is_object()) {
        params.remove("_meta");
    }
    if !params.is_empty() || method == "tools/call" || method == "initialize" {
        message.insert("params".to_owned(), Value::Object(params));
    }
}

/// Fills in what an `initialize` left out, so that a hand-written client works.
fn complete_initialize(message: &mut MessageObject) {
    let Some(Value::Object(params)) = message.get_mut("params") else {
        return;
    };
    let meta = params.get("_meta");
    if meta.is_some_and(|meta| meta.get(META_VERSION).is_some()) {
        // This revision has no `initialize`: the method does not exist there, and the answer says so.
        return;
    }
    if !params.get("protocolVersion").is_some_and(Value::is_string) {
        params.insert("protocolVersion".to_owned(), Value::from(UNNAMED_VERSION));
    }
    if !params.get("capabilities").is_some_and(Value::is_object) {
        params.insert("capabilities".to_owned(), json!({}));
    }
    let client_info = |key: &str| params.get("clientInfo")?.get(key)?.as_str();
    if client_info("name").is_none() || client_info("version").is_none() {
        let info = json!({"name": client_info("name").unwrap_or("unnamed"), "version": "0"});
        params.insert("clientInfo".to_owned(), info);
    }
}

/// Keys that `params` of a call may hold, its arguments included.
const CALL_KEYS: [&str; 6] = [
    "_meta",
    "arguments",
    "inputResponses",
    "name",
    "requestState",
    "task",
];

/// Keys of a message itself.
const MESSAGE_KEYS: [&str; 4] = ["id", "jsonrpc", "method", "params"];

/// Keeps everything that a caller sent as arguments: stray values beside `arguments` or beside `params`, and the exact text
/// if a key is duplicated or a number has more digits than a double keeps, which JSON alone would drop silently.
fn gather_arguments(
    message: &mut MessageObject,
    duplicates: &[KeyPath],
    raw: &[u8],
) -> Result<(), ParamsError> {
    let has_duplicates = |keys: &[&str]| {
        duplicates
            .iter()
            .any(|path| path.iter().take(keys.len()).eq(keys))
    };
    let is_duplicate = |key: &str| duplicates.iter().any(|path| *path == ["params", key]);
    if is_duplicate("name") {
        return Err(ParamsError::NameTwice);
    }
    let outer = take_strays(message, &MESSAGE_KEYS);
    let Some(Value::Object(params)) = message.get_mut("params") else {
        return Ok(());
    };
    let stray = take_strays(params, &CALL_KEYS);
    let is_doubtful = stray.keys().any(|key| has_duplicates(&["params", key]))
        || outer.keys().any(|key| has_duplicates(&[key]))
        || has_duplicates(&["params", "arguments"]);
    // With two `arguments`, or duplicated strays, all that holds them is passed on, so that the reader sees both.
    let path: &[&str] = match (outer.is_empty(), stray.is_empty()) {
        (false, _) => &[],
        (true, true) if !is_duplicate("arguments") => &["params", "arguments"],
        (true, _) => &["params"],
    };
    merge_strays(params, stray, outer);
    if !is_doubtful {
        return Ok(());
    }
    let text = std::str::from_utf8(raw).map_err(|_| ParamsError::NotUtf8)?;
    let written = text_in(text, path).unwrap_or(text);
    params.insert("arguments".to_owned(), Value::from(written));
    Ok(())
}

/// Takes out the values whose keys do not belong in an object.
fn take_strays(object: &mut MessageObject, own: &[&str]) -> MessageObject {
    let is_stray = |key: &&String| !own.contains(&key.as_str());
    let stray: Vec<String> = object.keys().filter(is_stray).cloned().collect();
    let taken = stray.iter().filter_map(|key| object.remove_entry(key));
    taken.collect()
}

/// Merges stray values of a call into its arguments, as in `{"name": "x", "args": {…}}` and
/// `{"name": "x", "dry_run": true, "arguments": {…}}`; `outer` stood beside `params`.
fn merge_strays(params: &mut MessageObject, mut beside: MessageObject, mut outer: MessageObject) {
    if !params.contains_key("name")
        && let Some(name) = outer.remove("name")
    {
        params.insert("name".to_owned(), name);
    }
    beside.extend(callers_meta(params));
    let has_content = |sent: &Value| !sent.is_null() && *sent != json!({});
    let inner = params.remove("arguments");
    let other = outer.remove("arguments").filter(has_content);
    for (key, sent) in outer {
        // Two that differ travel as both, and are refused.
        let sent = match beside.remove(&key) {
            Some(inner) if inner != sent => Value::Array(vec![inner, sent]),
            _ => sent,
        };
        beside.insert(key, sent);
    }
    let arguments = match (inner, other) {
        (inner, None) => inner,
        (Some(inner), Some(other)) if has_content(&inner) && inner != other => {
            Some(Value::Array(vec![inner, other]))
        }
        (_, other) => other,
    };
    let keyed = |arguments: Value| ("arguments".to_owned(), arguments);
    if beside.is_empty() {
        params.extend(arguments.map(keyed));
    } else {
        beside.extend(arguments.filter(has_content).map(keyed));
        params.extend([keyed(Value::Object(beside))]);
    }
}

/// Returns what the caller itself put into the protocol's object, without the keys of the protocol and of its extensions.
fn callers_meta(params: &MessageObject) -> Option<(String, Value)> {
    const PROTOCOL: [&str; 4] = ["baggage", "progressToken", "traceparent", "tracestate"];
    let is_own =
        |key: &str| !PROTOCOL.contains(&key) && !key.contains(['/', '.']) && !key.starts_with("x-");
    let meta = params.get("_meta")?.as_object()?;
    // A client's description of itself is an object.
    let own = meta
        .iter()
        .filter(|(key, sent)| is_own(key) && !sent.is_object() && !sent.is_array());
    let own: MessageObject = own.map(|(key, sent)| (key.clone(), sent.clone())).collect();
    (!own.is_empty()).then(|| ("_meta".to_owned(), Value::Object(own)))
}

/// Returns the id of a message that is not JSON, if one can be found: the outermost `"id"` with a number or a string.
pub(super) fn id_in_broken(raw: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(raw).ok()?;
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        if in_string {
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            '"' => {
                if depth == 1
                    && let Some(id) = text.get(at..).and_then(id_at)
                {
                    return Some(id);
                }
                in_string = true;
            }
            _ => {}
        }
    }
    None
}

fn id_at(text: &str) -> Option<Value> {
    let value = text
        .strip_prefix("\"id\"")?
        .trim_start()
        .strip_prefix(':')?;
    let mut values = serde_json::Deserializer::from_str(value).into_iter::<Value>();
    let id = values.next()?.ok()?;
    matches!(id, Value::String(_) | Value::Number(_)).then_some(id)
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use serde_json::{Value, json};

    use super::{MessageIntake, admit, never_repair};

    fn pass(raw: &str) -> Value {
        match admit(raw.as_bytes(), never_repair) {
            MessageIntake::Pass(accepted) => accepted.message,
            other => panic!("{raw}: {other:?}"),
        }
    }

    fn refused(raw: &str) -> (i64, Value, String) {
        match admit(raw.as_bytes(), never_repair) {
            MessageIntake::Reply(reply) => (
                reply["error"]["code"].as_i64().unwrap(),
                reply["id"].clone(),
                reply["error"]["message"].as_str().unwrap().to_owned(),
            ),
            other => panic!("{raw}: {other:?}"),
        }
    }

    #[test]
    fn a_well_formed_message_passes_as_it_is() {
        let raw = r#"{"id":7.0, "jsonrpc":"2.0","method":"tools/call","params":{"name":"x","arguments":"[object Object]"}}"#;
        let MessageIntake::Pass(call) = admit(raw.as_bytes(), never_repair) else {
            panic!()
        };
        assert_eq!(call.message, serde_json::from_str::<Value>(raw).unwrap());
        assert_eq!(call.length, raw.len());
        assert_eq!(call.method.as_deref(), Some("tools/call"));
    }

    #[test]
    fn a_request_that_is_an_answer_as_well_is_refused() {
        for part in [
            r#""result":{}"#,
            r#""error":{"code":1,"message":"x"}"#,
            r#""result":null"#,
        ] {
            for id in [r#""id":7,"#, ""] {
                let raw = format!(
                    r#"{{"jsonrpc":"2.0",{id}"method":"tools/call","params":{{"name":"stroke"}},{part}}}"#
                );
                let (code, _, reason) = refused(&raw);
                assert_eq!(code, super::INVALID_REQUEST, "{raw}");
                assert!(reason.contains("both"), "{raw}: {reason}");
            }
        }
    }

    #[test]
    fn form_is_repaired() {
        let intended = json!({"id": 1, "method": "tools/list", "jsonrpc": "2.0"});
        for raw in [
            r#"{"id":1,"method":"tools/list"}"#,
            r#"{"id":1,"method":"tools/list","jsonrpc":2.0,"params":null}"#,
            r#"[{"id":1,"method":"tools/list","params":[]}]"#,
            r#""{\"id\":1,\"method\":\"tools/list\"}""#,
            "\u{feff}{\"id\":1,\n\"method\":\"tools/list\",\"params\":{\"_meta\":\"x\"}}",
        ] {
            assert_eq!(pass(raw), intended, "{raw}");
        }
    }

    #[test]
    fn an_incomplete_initialize_is_completed() {
        let message = pass(r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#);
        assert_eq!(message["params"]["clientInfo"]["name"], "unnamed");
        assert_eq!(message["params"]["capabilities"], json!({}));
    }

    #[test]
    fn a_meaningless_message_gets_an_error_under_its_id() {
        for (raw, code, id) in [
            (
                r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"a":1,}}"#,
                -32700,
                json!(4),
            ),
            (r"{'id': 4, 'method': 'ping'}", -32700, Value::Null),
            (
                r#"{"params":{"id":9,"x":NaN},"id":"a"}"#,
                -32700,
                json!("a"),
            ),
            ("[]", -32600, Value::Null),
            ("[1,2]", -32600, Value::Null),
            ("42", -32600, Value::Null),
            (
                r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
                -32600,
                Value::Null,
            ),
            (
                r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
                -32600,
                Value::Null,
            ),
            (r#"{"jsonrpc":"2.0","id":3}"#, -32600, json!(3)),
            (r#"{"jsonrpc":"2.0","id":3,"method":7}"#, -32600, json!(3)),
            (
                r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"x"}}"#,
                -32600,
                Value::Null,
            ),
            (
                r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":"x"}"#,
                -32602,
                json!(3),
            ),
            (
                r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":[1,2]}"#,
                -32602,
                json!(3),
            ),
            (
                r#"{"id":3,"method":"tools/call","params":{"name":"a","name":"b"}}"#,
                -32602,
                json!(3),
            ),
            (r#"{"id":3,"id":4,"method":"ping"}"#, -32600, Value::Null),
        ] {
            let (got_code, got_id, reason) = refused(raw);
            assert_eq!((got_code, got_id), (code, id), "{raw}: {reason}");
        }
    }

    #[test]
    fn stray_values_become_arguments_if_those_are_missing() {
        let call = |params: &str| {
            pass(&format!(
                r#"{{"id":3,"method":"tools/call","params":{params}}}"#
            ))
        };
        let arguments = |params: &str| call(params)["params"]["arguments"].clone();
        assert_eq!(
            arguments(r#"{"name":"x","args":{"a":1}}"#),
            json!({"args": {"a": 1}})
        );
        assert_eq!(
            arguments(r#"{"name":"x","a":1,"arguments":null}"#),
            json!({"a": 1})
        );
        assert_eq!(
            arguments(r#"{"name":"x","a":1,"arguments":{}}"#),
            json!({"a": 1})
        );
        assert_eq!(
            arguments(r#"{"name":"x","a":1,"a":2}"#),
            json!(r#"{"name":"x","a":1,"a":2}"#)
        );
        assert_eq!(arguments(r#"{"name":"x","_meta":{}}"#), Value::Null);
    }

    #[test]
    fn what_stands_beside_the_arguments_travels_with_them() {
        let arguments = |rest: &str| {
            let raw = format!(r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call",{rest}}}"#);
            pass(&raw)["params"]["arguments"].clone()
        };
        let scene = json!({"scene": "koi"});
        for (rest, want) in [
            (
                r#""params":{"name":"x","arguments":{"scene":"koi"},"dry_run":true}"#,
                json!({"dry_run": true, "arguments": scene}),
            ),
            (
                r#""params":{"name":"x","arguments":"{scene: koi}","node":"left"}"#,
                json!({"node": "left", "arguments": "{scene: koi}"}),
            ),
            (
                r#""params":{"name":"x","arguments":{"scene":"koi"}},"dry_run":true"#,
                json!({"dry_run": true, "arguments": scene}),
            ),
            (
                r#""params":{"name":"x","arguments":{"scene":"koi"},"_meta":{"progressToken":1,"dry_run":true}}"#,
                json!({"_meta": {"dry_run": true}, "arguments": scene}),
            ),
            (
                r#""params":{"name":"x"},"arguments":{"scene":"koi"}"#,
                scene.clone(),
            ),
            (
                r#""params":{"name":"x","arguments":{}},"scene":"koi""#,
                scene.clone(),
            ),
            (r#""name":"x","arguments":{"scene":"koi"}"#, scene.clone()),
            (
                r#""params":{"name":"x","dry_run":true,"arguments":{}},"dry_run":false"#,
                json!({"dry_run": [true, false]}),
            ),
            (
                r#""params":{"name":"x","arguments":{"scene":"koi"},"_meta":{"x-turn":{"sandbox":"seatbelt"},"turn":{"sandbox":"on"}}}"#,
                scene.clone(),
            ),
            (
                r#""params":{"name":"x","arguments":{"scene":"koi"}},"arguments":{"scene":"koi"}"#,
                scene.clone(),
            ),
            (
                r#""params":{"name":"x","arguments":{"scene":"koi"}},"arguments":{"dry_run":true}"#,
                json!([scene, {"dry_run": true}]),
            ),
        ] {
            assert_eq!(arguments(rest), want, "{rest}");
        }
        let twice = r#""params":{"name":"x","arguments":{"scene":"koi"},"a":1,"a":2}"#;
        assert!(
            arguments(twice)
                .as_str()
                .unwrap()
                .contains(r#""a":1,"a":2"#)
        );
        let outside = r#""params":{"name":"x"},"arguments":{"a":1,"a":2}"#;
        assert!(arguments(outside).as_str().unwrap().contains("tools/call"));
        let named = pass(r#"{"id":3,"method":"tools/call","name":"x","arguments":{"a":1}}"#);
        assert_eq!(named["params"], json!({"name": "x", "arguments": {"a": 1}}));
    }

    #[test]
    fn what_the_protocol_defines_for_a_call_stays_where_it_is() {
        let params = json!({
            "name": "x",
            "arguments": {"a": 1},
            "_meta": {"progressToken": 1, "io.modelcontextprotocol/x": 1, "traceparent": "00"},
            "task": {"ttl": 60000},
            "inputResponses": {},
            "requestState": "s"
        });
        let message = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params});
        assert_eq!(pass(&message.to_string()), message);
    }

    #[test]
    fn a_number_that_a_double_would_make_whole_travels_as_its_own_text() {
        let raw = r#"{"id":3,"jsonrpc":"2.0","method":"tools/call","params":{"name":"x","arguments":{"a": 4.9999999999999999999}}}"#;
        assert_eq!(
            pass(raw)["params"]["arguments"],
            json!(r#"{"a": 4.9999999999999999999}"#)
        );
        let raw = r#"{"id":3,"jsonrpc":"2.0","method":"tools/call","params":{"name":"x","arguments":{"a": 5.0}}}"#;
        assert_eq!(pass(raw)["params"]["arguments"], json!({"a": 5.0}));
    }

    #[test]
    fn arguments_with_a_duplicate_key_travel_as_their_own_text() {
        let raw = r#"{"id":3,"jsonrpc":"2.0","method":"tools/call","params":{"name":"x","arguments":{"a": 1,"a":2}}}"#;
        assert_eq!(pass(raw)["params"]["arguments"], json!(r#"{"a": 1,"a":2}"#));
        let raw = r#"{"id":3,"jsonrpc":"2.0","method":"tools/call","params":{"name":"x","arguments":1,"arguments":2}}"#;
        assert_eq!(
            pass(raw)["params"]["arguments"],
            json!(r#"{"name":"x","arguments":1,"arguments":2}"#)
        );
    }
}
