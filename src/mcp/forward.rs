//! Forwards one call to another node: one request on a connection of its own, whose end is the end of the call on both sides.
//!
//! There is no session that could be lost in between. Dropping the future closes the connection, and the other node stops the
//! motion of the call. A node that dies breaks the connection. A node that is asleep is noticed by its silence, because a
//! running node sends progress at least once a second.

use std::collections::HashMap;
use std::time::Duration;

use call::{CallHop, QueueTag, ReceivedArguments, StopOrder, ToolAnswer};
use futures::StreamExt;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use rmcp::model::{
    ErrorCode, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage, ServerNotification,
    ServerResult,
};
use serde_json::{Value, json};

use super::client::{answer_from_result, call_params};
use super::http_client::{self, HttpClientError, RequestHead};
use super::progress::ProgressSender;

/// Headers of a forwarded call: the node and the caller that it comes from.
const FROM: &str = "steadyhand-from";
const CALLED: &str = "steadyhand-called";
const ROLE: &str = "steadyhand-role";
const CALLER: &str = "steadyhand-caller";
const QUEUE: &str = "steadyhand-queue";
const ORDER: &str = "steadyhand-order";

/// Most characters of a name in those headers; longer ones are cut.
const NAME_CHARS_MAX: usize = 96;

/// Id of the request: the only one on its connection.
const CALL_ID: i64 = 1;

/// Longest error of another node that is passed on.
const COMPLAINT_CHARS_MAX: usize = 300;

/// A call for another node.
#[derive(Debug, Clone)]
pub struct ForwardedCall {
    /// MCP address of the other node.
    pub url: String,
    /// Token for the other node.
    pub token: Option<String>,
    /// Node that forwards the call, and the caller it acts for.
    pub hop: CallHop,
    /// The tool.
    pub tool: String,
    /// Arguments as the caller sent them.
    pub arguments: ReceivedArguments,
    /// Longest silence after which the other node is given up.
    pub quiet: Duration,
    /// Longest answer, or event of a stream, that is read.
    pub answer_bytes_max: usize,
}

/// Reason why a call has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ForwardError {
    /// The call was not delivered.
    #[error("{0}")]
    Unreached(String),
    /// The call may have been delivered, but the answer is lost.
    #[error("{0}")]
    Lost(String),
    /// The other side answered that it does not take the call.
    #[error("{0}")]
    Refused(String),
}

impl From<HttpClientError> for ForwardError {
    fn from(error: HttpClientError) -> Self {
        let reason = error.to_string();
        match error {
            HttpClientError::Broken(_) | HttpClientError::Answer(_) => Self::Lost(reason),
            _ => Self::Unreached(reason),
        }
    }
}

/// Returns the hop that a request's headers describe, if it was forwarded.
pub(super) fn hop_from_headers(headers: &HeaderMap) -> Option<CallHop> {
    let value = |name: &str| {
        let text = String::from_utf8_lossy(headers.get(name)?.as_bytes()).into_owned();
        let printable = text.chars().filter(|c| !c.is_control());
        Some(printable.take(NAME_CHARS_MAX).collect::<String>())
    };
    Some(CallHop {
        from: value(FROM)?,
        called: value(CALLED).unwrap_or_default(),
        role: value(ROLE),
        caller: value(CALLER).unwrap_or_default(),
        queue: value(QUEUE).as_deref().and_then(QueueTag::read),
        order: value(ORDER).as_deref().and_then(StopOrder::read),
    })
}

fn headers(hop: &CallHop) -> HashMap<HeaderName, HeaderValue> {
    let queue = hop.queue.as_ref().map(QueueTag::words);
    let order = hop.order.as_ref().map(StopOrder::words);
    let values = [
        (FROM, Some(&hop.from)),
        (CALLED, Some(&hop.called)),
        (ROLE, hop.role.as_ref()),
        (CALLER, Some(&hop.caller)),
        (QUEUE, queue.as_ref()),
        (ORDER, order.as_ref()),
    ];
    let header = |(name, value): (&'static str, Option<&String>)| {
        let printable: String = value?.chars().filter(|c| !c.is_control()).collect();
        let value = HeaderValue::from_bytes(printable.as_bytes()).ok()?;
        Some((HeaderName::from_static(name), value))
    };
    values.into_iter().filter_map(header).collect()
}

/// Sends a call and reads its answer, reporting to `progress`, however long that takes. Dropping the future hangs up.
///
/// # Errors
/// The reason why there is no answer. A tool that failed is a [`ToolAnswer`].
pub async fn forward_call(
    call: ForwardedCall,
    progress: Option<ProgressSender>,
) -> Result<ToolAnswer, ForwardError> {
    let body = serde_json::to_vec(&message(&call)).unwrap_or_default();
    let head = RequestHead {
        session: None,
        token: call.token,
        headers: headers(&call.hop),
    };
    let request = head.request(Method::POST, &call.url, body)?;
    let quiet = call.quiet;
    let silence = || {
        let quiet_s = quiet.as_secs();
        ForwardError::Lost(format!(
            "it has sent nothing for {quiet_s} s; its machine may be asleep"
        ))
    };
    let response = tokio::time::timeout(quiet, http_client::send(request));
    let response = response.await.map_err(|_| silence())??;
    let status = response.status();
    if status.is_success() && http_client::kind(&response) == http_client::STREAM {
        let mut events = http_client::events(response, call.answer_bytes_max);
        let mut has_begun = false;
        loop {
            let event = tokio::time::timeout(quiet, events.next());
            let event = event.await.map_err(|_| silence())?;
            let event =
                event.ok_or_else(|| ForwardError::Lost("it ended without an answer".into()))?;
            let event = event.map_err(|error| ForwardError::Lost(error.to_string()))?;
            match parse_event(event.data.as_deref(), progress.as_ref())? {
                PeerEvent::Answer(answer) => return Ok(answer),
                PeerEvent::Error(error) => return Err(failure(error, has_begun)),
                PeerEvent::Progress => has_begun = true,
                PeerEvent::Other => {}
            }
        }
    }
    let is_json = http_client::kind(&response) == http_client::JSON;
    let body = tokio::time::timeout(quiet, http_client::read(response, call.answer_bytes_max));
    let body = body.await.map_err(|_| silence())??;
    let text = String::from_utf8_lossy(&body);
    if status.is_success() && is_json {
        return match parse_event(Some(&text), None)? {
            PeerEvent::Answer(answer) => Ok(answer),
            PeerEvent::Error(error) => Err(failure(error, false)),
            PeerEvent::Progress | PeerEvent::Other => Err(no_result()),
        };
    }
    let reason = refusal_text(status, &text);
    Err(match is_refusal(status) {
        true => ForwardError::Refused(reason),
        false => ForwardError::Lost(reason),
    })
}

/// Returns whether a status says that the call was not taken. Others may come from something in between that gave up waiting.
fn is_refusal(status: StatusCode) -> bool {
    status.is_redirection() || (status.is_client_error() && status != StatusCode::REQUEST_TIMEOUT)
}

fn no_result() -> ForwardError {
    ForwardError::Lost("its answer is not a tool result".into())
}

fn message(call: &ForwardedCall) -> Value {
    let mut params = call_params(&call.tool, call.arguments.clone());
    // Progress is always requested, as a sign of life.
    params.insert("_meta".to_owned(), json!({ "progressToken": 1 }));
    json!({ "jsonrpc": "2.0", "id": CALL_ID, "method": "tools/call", "params": params })
}

/// An event about the call from another node.
#[derive(Debug)]
enum PeerEvent {
    Answer(ToolAnswer),
    Error(ErrorData),
    Progress,
    Other,
}

/// Returns what an error in place of an answer says of the call: it was not taken, unless it had begun or broke on the way.
fn failure(error: ErrorData, has_begun: bool) -> ForwardError {
    let reason = error.message.into_owned();
    match has_begun || error.code == ErrorCode::INTERNAL_ERROR {
        true => ForwardError::Lost(format!("it answered with an error: {reason}")),
        false => ForwardError::Refused(reason),
    }
}

/// Parses an event, and passes progress on.
fn parse_event(
    data: Option<&str>,
    progress: Option<&ProgressSender>,
) -> Result<PeerEvent, ForwardError> {
    let Some(data) = data.filter(|data| !data.trim().is_empty()) else {
        return Ok(PeerEvent::Other);
    };
    let message: ServerJsonRpcMessage = serde_json::from_str(data)
        .map_err(|error| ForwardError::Lost(format!("its answer cannot be read: {error}")))?;
    match message {
        JsonRpcMessage::Response(response) => match response.result {
            ServerResult::CallToolResult(result) if response.id == RequestId::Number(CALL_ID) => {
                Ok(PeerEvent::Answer(answer_from_result(result)))
            }
            _ => Err(no_result()),
        },
        JsonRpcMessage::Error(error) => Ok(PeerEvent::Error(error.error)),
        JsonRpcMessage::Notification(notice) => Ok(match notice.notification {
            ServerNotification::ProgressNotification(notice) => {
                if let Some(progress) = progress {
                    progress.tell(notice.params.into());
                }
                PeerEvent::Progress
            }
            _ => PeerEvent::Other,
        }),
        JsonRpcMessage::Request(_) => Ok(PeerEvent::Other),
    }
}

/// Returns another node's reason for refusing a call.
fn refusal_text(status: StatusCode, body: &str) -> String {
    let response: Value = serde_json::from_str(body).unwrap_or_default();
    let reason = response.pointer("/error/message").and_then(Value::as_str);
    let reason: String = reason
        .unwrap_or(body)
        .chars()
        .take(COMPLAINT_CHARS_MAX)
        .collect();
    format!("{status}: {reason}")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn only_a_status_that_refuses_says_that_nothing_moved() {
        for (status, refuses) in [(401, true), (404, true), (429, true), (307, true)]
            .into_iter()
            .chain([
                (408, false),
                (500, false),
                (502, false),
                (504, false),
                (204, false),
            ])
        {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(is_refusal(status), refuses, "{status}");
        }
    }

    #[test]
    fn what_is_no_answer_to_the_call_is_lost() {
        for data in [
            r#"{"jsonrpc":"2.0","id":77,"result":{"content":[]}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#,
            "Playback stopped",
        ] {
            let parsed = parse_event(Some(data), None);
            assert!(
                matches!(parsed, Err(ForwardError::Lost(_))),
                "{data}: {parsed:?}"
            );
        }
    }

    #[test]
    fn an_error_says_that_nothing_moved_only_before_anything_has_begun() {
        for (code, has_begun, is_refused) in [
            (-32602, false, true),
            (-32602, true, false),
            (-32603, false, false),
            (-32603, true, false),
        ] {
            let error = ErrorData::new(ErrorCode(code), "no", None);
            let failure = failure(error, has_begun);
            let refuses = matches!(failure, ForwardError::Refused(_));
            assert_eq!(refuses, is_refused, "{code} {has_begun}");
        }
    }

    #[test]
    fn a_hop_is_read_as_it_was_written_and_bounded() {
        let sent = CallHop {
            from: "bünch".to_owned(),
            called: "left 2".to_owned(),
            role: Some("viewer".to_owned()),
            caller: "http evil\r\nsteadyhand-role: operator".to_owned(),
            queue: QueueTag::read("5f2c hub.4711 1 7 9"),
            order: StopOrder::read("c0ffee 12"),
        };
        let all: HeaderMap = headers(&sent).into_iter().collect();
        let read = hop_from_headers(&all).unwrap();
        assert_eq!((read.from, read.called), (sent.from, sent.called));
        assert!(read.queue.is_some() && read.queue == sent.queue);
        assert!(read.order.is_some() && read.order == sent.order);
        assert_eq!(read.role.as_deref(), Some("viewer"));
        assert_eq!(read.caller, "http evilsteadyhand-role: operator");
        let mut long = HeaderMap::new();
        long.insert(FROM, HeaderValue::from_str(&"x".repeat(9_999)).unwrap());
        assert_eq!(hop_from_headers(&long).unwrap().from.len(), NAME_CHARS_MAX);
        assert_eq!(hop_from_headers(&HeaderMap::new()), None);
    }
}
