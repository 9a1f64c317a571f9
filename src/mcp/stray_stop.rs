//! Stops in messages that are not calls: a notification, a missing or empty id, a method or a line that is only the tool's name.
//!
//! A message that means a stop becomes a call of it if it can be answered; otherwise the stop is carried out at once, and the
//! refusal of the message says so. All other messages are judged as in [`message_intake`].

use call::{EntryPoint, ToolCaller, VerifiedIdentity, called_in_unreadable, called_name};
use serde_json::{Map, Value, json};

use super::cancellation::{self, CANCELLED, is_cancellation};
use super::lossy_json;
use super::message_intake::{self, MessageIntake, MessageRepair, RepairedMessage};
use super::service_trait::McpService;

/// Appended to the refusal of a message that contained a stop.
const STOP_NOTICE: &str = ". It asks for a stop, so all arms of this node were stopped";

/// Appended to the refusal of a message that contained a cancellation.
const CANCELLATION_NOTICE: &str =
    ". The cancelled request is unknown, so all arms of this node were stopped";

/// Judges one message as [`message_intake::admit`] does, but never loses a stop because of the message's form. `sender` owns
/// the stop.
pub(super) fn admit(
    raw: &[u8],
    repair: MessageRepair,
    service: &dyn McpService,
    sender: Option<&VerifiedIdentity>,
) -> MessageIntake {
    let mut admitted = message_intake::admit(raw, repair);
    if let MessageIntake::Pass(accepted) = &mut admitted
        && accepted.method.as_deref().is_some_and(is_cancellation)
    {
        // The cancelled request is unknown: it may be the one that moves.
        if !cancellation::repair(&mut accepted.message, raw) {
            service.abort_motion(sender);
        }
        accepted.method = Some(CANCELLED.to_owned());
        accepted.id = None;
        return admitted;
    }
    let reparsed;
    let mut is_cancellation_lost = false;
    let (message, id) = match &admitted {
        MessageIntake::Pass(accepted) if accepted.tool().is_some_and(|tool| !tool.is_empty()) => {
            return admitted;
        }
        MessageIntake::Pass(accepted) if accepted.method.is_some() => {
            (Some(&accepted.message), accepted.id.as_ref())
        }
        MessageIntake::Reply(reply) => {
            reparsed = parse(raw, repair);
            is_cancellation_lost = has_lost_cancellation(reparsed.as_ref(), raw);
            if is_cancellation_lost {
                service.abort_motion(sender);
            }
            (reparsed.as_ref(), usable_id(reply))
        }
        MessageIntake::Pass(_) | MessageIntake::Nothing => return admitted,
    };
    let Some(name) = stop_name(message, raw, service) else {
        let is_refused = matches!(admitted, MessageIntake::Reply(_));
        let stops = is_refused && message.is_some_and(|message| preempt(message, service, sender));
        return match (stops, is_cancellation_lost) {
            (true, _) => with_notice(admitted, STOP_NOTICE),
            (false, true) => with_notice(admitted, CANCELLATION_NOTICE),
            (false, false) => admitted,
        };
    };
    match id {
        Some(id) => match message_intake::admit(&call(id, &name, message), repair) {
            // It has too many arguments.
            MessageIntake::Reply(_) => message_intake::admit(&call(id, &name, None), repair),
            accepted => accepted,
        },
        None if service.stray_stop(&name, sender) => with_notice(admitted, STOP_NOTICE),
        None => admitted,
    }
}

/// Returns whether a refused message contains a cancellation. The cancelled request is unknown: it may be the one that moves.
fn has_lost_cancellation(message: Option<&Value>, raw: &[u8]) -> bool {
    match message {
        Some(message) => cancellation::holds_cancellation(message),
        None => cancellation::names_cancellation(raw),
    }
}

/// Carries out the stop in the name or the arguments of a refused call; returns whether there was one.
pub(super) fn preempt(
    message: &Value,
    service: &dyn McpService,
    sender: Option<&VerifiedIdentity>,
) -> bool {
    let method = message.get("method").and_then(Value::as_str);
    let params = message.get("params");
    let field = |key: &str| params.and_then(|params| params.get(key));
    match (method, field("name").and_then(Value::as_str)) {
        (Some(method), Some(tool)) if method.eq_ignore_ascii_case("tools/call") => {
            let caller = ToolCaller::sender(EntryPoint::InProcess, sender, None);
            service.preempt_stop(tool, &field("arguments").cloned().into(), &caller)
        }
        _ => false,
    }
}

/// Carries out the stop, or the cancellation, in a message that is not whole or too long; returns whether there was a stop.
pub(super) fn stop_in_unreadable(
    raw: &[u8],
    service: &dyn McpService,
    sender: Option<&VerifiedIdentity>,
) -> bool {
    if cancellation::names_cancellation(raw) {
        service.abort_motion(sender);
    }
    let message = parse_json(raw);
    stop_name(message.as_ref(), raw, service).is_some_and(|name| service.stray_stop(&name, sender))
        || message.is_some_and(|message| preempt(&message, service, sender))
}

/// Adds to the refusal of a message that its stop was carried out, if it was.
pub(super) fn with_stop_notice(refusal: Value, is_stopped: bool) -> Value {
    match is_stopped {
        true => add_notice(refusal, STOP_NOTICE),
        false => refusal,
    }
}

fn add_notice(mut refusal: Value, notice: &str) -> Value {
    if let Some(message) = refusal.pointer_mut("/error/message") {
        let reason = message.as_str().unwrap_or_default();
        *message = format!("{reason}{notice}").into();
    }
    refusal
}

/// Returns the name by which a message to the operator endpoint calls something that passes a test.
#[must_use]
pub fn named_tool(raw: &[u8], is_name: &dyn Fn(&str) -> bool) -> Option<String> {
    name_in(parse_json(raw).as_ref(), raw, is_name)
}

/// Returns the name by which a message, received as `raw`, calls something that passes a test.
fn name_in(message: Option<&Value>, raw: &[u8], is_name: &dyn Fn(&str) -> bool) -> Option<String> {
    let Some(message) = message else {
        return called_in_unreadable(raw, is_name);
    };
    let method = message.get("method").and_then(Value::as_str);
    let is_call = method.is_some_and(|method| method.eq_ignore_ascii_case("tools/call"));
    let called = message.pointer("/params/name").and_then(Value::as_str);
    match called.filter(|name| is_call && !name.is_empty()) {
        // The arguments of a call are its tool's.
        Some(name) => is_name(name).then(|| name.to_owned()),
        None => called_name(message, is_name),
    }
}

/// Returns the name by which a message calls a tool that would stop an arm.
fn stop_name(message: Option<&Value>, raw: &[u8], service: &dyn McpService) -> Option<String> {
    name_in(message, raw, &|name| service.is_stop(name))
}

fn with_notice(admitted: MessageIntake, notice: &str) -> MessageIntake {
    match admitted {
        MessageIntake::Reply(reply) => MessageIntake::Reply(add_notice(reply, notice)),
        accepted => accepted,
    }
}

fn parse(raw: &[u8], repair: MessageRepair) -> Option<Value> {
    parse_json(raw).or_else(|| match repair(raw) {
        RepairedMessage::Message(message) => Some(message),
        RepairedMessage::Hopeless(_) => None,
    })
}

fn parse_json(raw: &[u8]) -> Option<Value> {
    let parsed = lossy_json::parse(raw, usize::MAX).ok()?;
    Some(parsed.value)
}

/// Returns the id under which a refused message is answered.
fn usable_id(reply: &Value) -> Option<&Value> {
    reply.get("id").filter(|id| !id.is_null())
}

/// Returns a call of the tool with the arguments in the message.
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

    /// A service with one tool.
    #[derive(Default)]
    struct StopOnlyService(AtomicUsize, AtomicUsize);

    impl McpService for StopOnlyService {
        fn list(&self) -> BoxFuture<'static, Vec<ToolCard>> {
            Box::pin(std::future::ready(Vec::new()))
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

        fn preempt_stop(&self, tool: &str, arguments: &ReceivedArguments, _: &ToolCaller) -> bool {
            let says_stop =
                matches!(arguments, ReceivedArguments::Value(value) if value["say"] == "stop");
            let stops = self.is_stop(tool) || says_stop;
            self.0.fetch_add(usize::from(stops), Ordering::SeqCst);
            stops
        }

        fn abort_motion(&self, _: Option<&VerifiedIdentity>) {
            self.1.fetch_add(1, Ordering::SeqCst);
        }

        fn stray_stop(&self, tool: &str, _: Option<&VerifiedIdentity>) -> bool {
            self.0.fetch_add(1, Ordering::SeqCst);
            self.is_stop(tool)
        }
    }

    #[test]
    fn a_cancellation_is_heard_in_whatever_form_it_comes() {
        for (raw, is_refused) in [
            (r#"{"method":"notifications/cancelled"}"#, false),
            (r#"{"method":"notifications/cancelled","params":5}"#, true),
            (
                r#"{"method":"notifications/cancelled","params":[5,"x"]}"#,
                true,
            ),
            (
                r#"[{"method":"notifications/cancelled","params":{"requestId":5}},{"id":1,"method":"ping"}]"#,
                true,
            ),
            (
                r#"{"id":1,"method":"ping"}{"method":"notifications/cancelled","params":{"requestId":5}}"#,
                true,
            ),
        ] {
            let service = StopOnlyService::default();
            let admitted = admit(raw.as_bytes(), never_repair, &service, None);
            assert_eq!(service.1.load(Ordering::SeqCst), 1, "{raw}");
            assert_eq!(
                matches!(admitted, MessageIntake::Reply(_)),
                is_refused,
                "{raw}: {admitted:?}"
            );
        }
        let raw = br#"{"id":9,"method":"notifications/cancelled","params":{"requestId":5}}"#;
        let service = StopOnlyService::default();
        let MessageIntake::Pass(accepted) = admit(raw, never_repair, &service, None) else {
            panic!()
        };
        assert_eq!(
            (accepted.id, accepted.method.as_deref()),
            (None, Some(CANCELLED))
        );
        assert_eq!(accepted.message.get("id"), None);
        assert_eq!(accepted.message["params"]["requestId"], 5);
    }

    fn judged(raw: &str) -> (usize, MessageIntake) {
        let service = StopOnlyService::default();
        let admitted = admit(raw.as_bytes(), never_repair, &service, None);
        (service.0.load(Ordering::SeqCst), admitted)
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
            let MessageIntake::Pass(accepted) = admitted else {
                panic!("{raw}: {admitted:?}")
            };
            assert_eq!((strays, &accepted.message["id"]), (0, &json!(7)), "{raw}");
            assert_eq!(accepted.message["method"], "tools/call", "{raw}");
            assert_eq!(accepted.message["params"]["name"], "stop", "{raw}");
        }
        let (_, admitted) = judged(r#"{"id":7,"method":"stop","params":{"node":"b"}}"#);
        let MessageIntake::Pass(call) = admitted else {
            panic!()
        };
        assert_eq!(call.message["params"]["arguments"], json!({"node": "b"}));
    }

    #[test]
    fn a_stop_that_cannot_be_answered_is_done_and_reported() {
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
            let reason = reply["error"]["message"].as_str().unwrap();
            assert!(reason.ends_with(STOP_NOTICE), "{raw}: {reason}");
        }
    }

    #[test]
    fn a_stop_is_found_in_bytes_that_are_not_text_and_at_any_depth() {
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
            let service = StopOnlyService::default();
            let admitted = admit(&raw, never_repair, &service, None);
            let is_call = matches!(&admitted, MessageIntake::Pass(accepted) if accepted.tool() == Some("stop"));
            let was_stopped = service.0.load(Ordering::SeqCst) == 1;
            let shown = String::from_utf8_lossy(&raw).into_owned();
            assert!(is_call || was_stopped, "{shown}: {admitted:?}");
        }
    }

    #[test]
    fn a_stop_is_found_after_more_values_than_are_read() {
        let many = "{\"a\":{}},".repeat(lossy_json::VALUES_MAX);
        let params = format!(r#""params":{{"arguments":{{"a":[{many}0]}},"name":"stop"}}"#);
        let (_, admitted) = judged(&format!(r#"{{"method":"tools/call",{params},"id":7}}"#));
        let MessageIntake::Pass(accepted) = admitted else {
            panic!("{admitted:?}")
        };
        assert_eq!(accepted.tool(), Some("stop"));
        let (strays, admitted) = judged(&format!(r#"{{{params},"method":"tools/call"}}"#));
        assert!(matches!(admitted, MessageIntake::Reply(_)));
        assert_eq!(strays, 1);
    }

    #[test]
    fn a_stop_in_the_arguments_of_a_tool_does_not_count() {
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
