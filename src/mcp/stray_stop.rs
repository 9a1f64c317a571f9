//! Stops in messages that are no calls: a notification, a missing or empty id, a method or a line that is only the tool's name.
//!
//! A message that means a stop is a call of it where it can be answered; otherwise the stop is done there and then, and the
//! refusal of the message says so. All other messages are judged as [`message_intake`] judges them.

use call::{VerifiedIdentity, called_names, called_names_in_unreadable};
use serde_json::{Map, Value, json};

use super::cancellation::{self, CANCELLED, is_cancellation};
use super::lossy_json;
use super::message_intake::{self, MessageIntake, MessageRepair, RepairedMessage};
use super::service_trait::McpService;

/// Appended to the refusal of a message in which a stop was heard.
const HEARD: &str = "; it names a stop, so every arm of this node was told to stop";

/// Judges one message as [`message_intake::admit`] does, and does not lose a stop for the form of its message.
/// `sender` is whose stop it then is.
pub(super) fn admit(
    raw: &[u8],
    repair: MessageRepair,
    desk: &dyn McpService,
    sender: Option<&VerifiedIdentity>,
) -> MessageIntake {
    let mut admitted = message_intake::admit(raw, repair);
    if let MessageIntake::Pass(passed) = &mut admitted
        && passed.method.as_deref().is_some_and(is_cancellation)
    {
        // What it cancels cannot be told: it may be what moves.
        if !cancellation::mend(&mut passed.message, raw) {
            desk.abort_motion();
        }
        passed.method = Some(CANCELLED.to_owned());
        return admitted;
    }
    let reread;
    let (message, id) = match &admitted {
        MessageIntake::Pass(passed) if passed.tool().is_some_and(|tool| !tool.is_empty()) => {
            return admitted;
        }
        MessageIntake::Pass(passed) if passed.method.is_some() => {
            (Some(&passed.message), passed.id.as_ref())
        }
        MessageIntake::Reply(reply) => {
            reread = read(raw, repair);
            (reread.as_ref(), usable_id(reply))
        }
        MessageIntake::Pass(_) | MessageIntake::Nothing => return admitted,
    };
    let names = message.map_or_else(|| called_names_in_unreadable(raw), called_names);
    let Some(name) = names.into_iter().find(|name| desk.is_stop(name)) else {
        let is_refused = matches!(admitted, MessageIntake::Reply(_));
        let is_heard = is_refused && message.is_some_and(|message| preempt(message, desk, sender));
        return if is_heard {
            with_stop_notice(admitted)
        } else {
            admitted
        };
    };
    match id {
        Some(id) => match message_intake::admit(&call(id, &name, message), repair) {
            // Its arguments are too many.
            MessageIntake::Reply(_) => message_intake::admit(&call(id, &name, None), repair),
            passed => passed,
        },
        None if desk.stray_stop(&name, sender) => with_stop_notice(admitted),
        None => admitted,
    }
}

/// Does the stop that a call says by its name or its arguments, and returns whether there was one: the message is refused.
pub(super) fn preempt(
    message: &Value,
    desk: &dyn McpService,
    sender: Option<&VerifiedIdentity>,
) -> bool {
    let method = message.get("method").and_then(Value::as_str);
    let params = message.get("params");
    let field = |key: &str| params.and_then(|params| params.get(key));
    match (method, field("name").and_then(Value::as_str)) {
        (Some(method), Some(tool)) if method.eq_ignore_ascii_case("tools/call") => {
            desk.preempt_stop(tool, &field("arguments").cloned().into(), sender)
        }
        _ => false,
    }
}

/// Does the stop that is named in a message that cannot be read, and returns whether there was one.
pub(super) fn is_heard_in(
    raw: &[u8],
    desk: &dyn McpService,
    sender: Option<&VerifiedIdentity>,
) -> bool {
    let mut names = called_names_in_unreadable(raw).into_iter();
    let name = names.find(|name| desk.is_stop(name));
    name.is_some_and(|name| desk.stray_stop(&name, sender))
}

/// Returns the refusal of a message in which a stop was heard, saying so.
pub(super) fn add_stop_notice(mut refusal: Value) -> Value {
    if let Some(message) = refusal.pointer_mut("/error/message") {
        let why = message.as_str().unwrap_or_default();
        *message = format!("{why}{HEARD}").into();
    }
    refusal
}

/// Returns the tool names that a message to an operator's door may mean.
#[must_use]
pub fn tool_names(raw: &[u8]) -> Vec<String> {
    match lossy_json::parse(raw, usize::MAX) {
        Ok(message) => called_names(&message.value),
        Err(_) => called_names_in_unreadable(raw),
    }
}

fn with_stop_notice(admitted: MessageIntake) -> MessageIntake {
    match admitted {
        MessageIntake::Reply(reply) => MessageIntake::Reply(add_stop_notice(reply)),
        passed => passed,
    }
}

fn read(raw: &[u8], repair: MessageRepair) -> Option<Value> {
    if let Ok(parsed) = lossy_json::parse(raw, usize::MAX) {
        return Some(parsed.value);
    }
    match repair(raw) {
        RepairedMessage::Message(message) => Some(message),
        RepairedMessage::Hopeless(_) => None,
    }
}

/// The id under which a refused message is answered.
fn usable_id(reply: &Value) -> Option<&Value> {
    reply.get("id").filter(|id| !id.is_null())
}

/// A call of the tool, with the arguments that the message has for it.
fn call(id: &Value, name: &str, message: Option<&Value>) -> Vec<u8> {
    let field = |key: &str| message.and_then(|message| message.get(key));
    let params = field("params");
    let inner = params.and_then(|params| params.get("arguments"));
    let is_call = field("method").is_some_and(|method| method == "tools/call");
    let arguments = inner.or(field("arguments")).or(params.filter(|_| !is_call));
    let mut params = Map::from_iter([("name".to_owned(), name.into())]);
    params.extend(arguments.map(|arguments| ("arguments".to_owned(), arguments.clone())));
    let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    call.to_string().into_bytes()
}

#[cfg(test)]
#[allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::BoxFuture;

    use super::*;
    use crate::{CallWatch, ReceivedArguments, ToolAnswer, ToolCall, ToolCard, never_repair};

    /// A desk that knows one tool.
    #[derive(Default)]
    struct StopOnlyService(AtomicUsize);

    impl McpService for StopOnlyService {
        fn list(&self) -> Vec<ToolCard> {
            Vec::new()
        }

        fn instructions(&self) -> String {
            String::new()
        }

        fn call(&self, _: ToolCall, _: CallWatch) -> BoxFuture<'static, ToolAnswer> {
            unreachable!("messages are only judged here")
        }

        fn is_stop(&self, tool: &str) -> bool {
            tool == "stop"
        }

        fn preempt_stop(
            &self,
            tool: &str,
            arguments: &ReceivedArguments,
            _: Option<&VerifiedIdentity>,
        ) -> bool {
            let says_stop =
                matches!(arguments, ReceivedArguments::Value(said) if said["say"] == "stop");
            let stops = self.is_stop(tool) || says_stop;
            self.0.fetch_add(usize::from(stops), Ordering::SeqCst);
            stops
        }

        fn stray_stop(&self, tool: &str, _: Option<&VerifiedIdentity>) -> bool {
            self.0.fetch_add(1, Ordering::SeqCst);
            self.is_stop(tool)
        }
    }

    fn judged(raw: &str) -> (usize, MessageIntake) {
        let desk = StopOnlyService::default();
        let admitted = admit(raw.as_bytes(), never_repair, &desk, None);
        (desk.0.load(Ordering::SeqCst), admitted)
    }

    #[test]
    fn a_stop_that_can_be_answered_is_a_call() {
        for raw in [
            r#"{"jsonrpc":"2.0","id":7,"method":"stop"}"#,
            r#"{"id":7,"tool":"stop"}"#,
            r#"{"id":7,"method":"call_tool","params":{"name":"stop"}}"#,
            r#"{"id":7,"function":{"name":"stop","arguments":"{}"}}"#,
            r#"{"id":7,"method":"tools/call","params":"stop"}"#,
            r#"{"id":7,"method":"tools/call","params":{"name":["stop"]}}"#,
            r#"{"id":7,"method":"tools/call","params":{"name":{"name":"stop"}}}"#,
            r#"{"id":7,"method":"tools/call","params":{"tool":"stop"}}"#,
            r#"{"id":7,"method":"tools/call","params":{"Name":"stop"}}"#,
            r#"{"id":7,"method":"tools/call","params":{"function":{"name":"stop","arguments":"{}"}}}"#,
            r#"{"id":7,"method":"tools/call","params":{"arguments":{"name":"stop"}}}"#,
            r#"{"id":7,"method":"tools/call","tool":"stop"}"#,
            r#"{"id":7,"method":"TOOLS/CALL","params":{"name":"stop"}}"#,
            r#"{"id":7,"tool_calls":[{"function":{"name":"stop"}}]}"#,
            r#"{"id":7,"function_call":{"name":"stop"}}"#,
            r#"{"id":7,"Tool":"stop"}"#,
            r#"{"id":7,"method":"tools/call","params":{"mode":"sync","arguments":{"name":"stop"}}}"#,
            r#"{"id":7,"mode":"auto","stop":true}"#,
        ] {
            let (strays, admitted) = judged(raw);
            let MessageIntake::Pass(passed) = admitted else {
                panic!("{raw}: {admitted:?}")
            };
            assert_eq!((strays, &passed.message["id"]), (0, &json!(7)), "{raw}");
            assert_eq!(passed.message["method"], "tools/call", "{raw}");
            assert_eq!(passed.message["params"]["name"], "stop", "{raw}");
        }
        let (_, admitted) = judged(r#"{"id":7,"method":"stop","params":{"node":"b"}}"#);
        let MessageIntake::Pass(passed) = admitted else {
            panic!()
        };
        assert_eq!(passed.message["params"]["arguments"], json!({"node": "b"}));
    }

    #[test]
    fn a_stop_that_cannot_be_answered_is_done_and_told() {
        for raw in [
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"stop"}}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"stop","arguments":{}}}"#,
            r#"{"tool":"stop"}"#,
            r#"{"stop":true}"#,
            r#"{"verb":{"stop":{}}}"#,
            r#"{"method":"stop"}"#,
            r#"[{"id":1,"method":"ping"},{"id":2,"method":"tools/call","params":{"name":"stop"}}]"#,
            "stop",
            "  stop\r",
            r#""stop""#,
            "{'tool': 'stop'}",
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"stroke","arguments":{"say":"stop"}}}"#,
        ] {
            let (strays, admitted) = judged(raw);
            let MessageIntake::Reply(reply) = admitted else {
                panic!("{raw}: {admitted:?}")
            };
            assert_eq!(strays, 1, "{raw}");
            let why = reply["error"]["message"].as_str().unwrap();
            assert!(why.ends_with(HEARD), "{raw}: {why}");
        }
    }

    #[test]
    fn a_stop_is_heard_through_bytes_that_are_no_text_and_any_depth() {
        let call = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"stop","arguments":{"reason":"d?faut"}}}"#;
        let latin = call
            .bytes()
            .map(|byte| if byte == b'?' { 0xe9 } else { byte });
        let wide = call.encode_utf16().flat_map(u16::to_le_bytes);
        let deep = call.replace(
            r#""d?faut""#,
            &format!("{}{}", "[".repeat(300), "]".repeat(300)),
        );
        let all = [
            latin.collect(),
            wide.collect(),
            deep.into_bytes(),
            b"\xffstop\n".to_vec(),
        ];
        for raw in all {
            let desk = StopOnlyService::default();
            let admitted = admit(&raw, never_repair, &desk, None);
            let is_call =
                matches!(&admitted, MessageIntake::Pass(passed) if passed.tool() == Some("stop"));
            let is_heard = desk.0.load(Ordering::SeqCst) == 1;
            let shown = String::from_utf8_lossy(&raw).into_owned();
            assert!(is_call || is_heard, "{shown}: {admitted:?}");
        }
    }

    #[test]
    fn a_stop_is_heard_behind_more_values_than_are_read() {
        let many = "{\"a\":{}},".repeat(lossy_json::VALUES_MAX);
        let params = format!(r#""params":{{"arguments":{{"a":[{many}0]}},"name":"stop"}}"#);
        let (_, admitted) = judged(&format!(r#"{{"method":"tools/call",{params},"id":7}}"#));
        let MessageIntake::Pass(passed) = admitted else {
            panic!("{admitted:?}")
        };
        assert_eq!(passed.tool(), Some("stop"));
        let (strays, admitted) = judged(&format!(r#"{{{params},"method":"tools/call"}}"#));
        assert!(matches!(admitted, MessageIntake::Reply(_)));
        assert_eq!(strays, 1);
    }

    #[test]
    fn what_is_said_to_a_tool_is_no_stop() {
        for raw in [
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"stroke","arguments":{"name":"stop"}}}"#,
            r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"stroke","arguments":{"action":"stop"}}}"#,
            r#"{"jsonrpc":"2.0","id":3,"result":{"action":"stop"}}"#,
            r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":3,"method":"prompts/get","params":{"name":"stop"}}"#,
            r#"{"jsonrpc":"2.0","method":"prompts/get","params":{"name":"stop"}}"#,
            r#"{"jsonrpc":"2.0","id":3,"method":"initialize","params":{"clientInfo":{"name":"stop"}}}"#,
            "do not stop",
            "",
        ] {
            let (strays, admitted) = judged(raw);
            assert_eq!(strays, 0, "{raw}");
            assert_eq!(
                admitted,
                message_intake::admit(raw.as_bytes(), never_repair),
                "{raw}"
            );
        }
    }
}
