//! Calls that only show what is in memory are answered here and now: to hand one to the protocol library and back costs
//! several times what it does. Whatever is not plain goes the long way, and gets the same answer there.

use std::sync::Arc;

use http::HeaderMap;
use http::header::{ACCEPT, HOST, HeaderName, ORIGIN};
use http::request::Parts;
use rmcp::model::CallToolResult;
use serde::Serialize;
use serde_json::Value;

use super::desk::{Call, Caller, Desk, Identity, Received, Via};
use super::offers;

/// What a plain call may hold: a revision, a progress token or a task make it more than that.
const PLAIN: [&str; 2] = ["name", "arguments"];

/// A reply as the revisions before 2026-07-28 have it.
#[derive(Serialize)]
struct Reply<'a> {
    jsonrpc: &'static str,
    id: &'a Value,
    result: CallToolResult,
}

/// The reply to a message, in one line without its end, where the desk answers it at once.
pub(super) fn reply(desk: &dyn Desk, message: &Value, caller: Caller) -> Option<Vec<u8>> {
    let id = message.get("id")?;
    let call = plain(message, caller)?;
    let mut result = offers::result(desk.at_once(&call)?);
    result.result_type = None;
    let reply = Reply {
        jsonrpc: "2.0",
        id,
        result,
    };
    serde_json::to_vec(&reply).ok()
}

/// The call that a message is, where it is nothing more.
fn plain(message: &Value, caller: Caller) -> Option<Call> {
    let (tool, arguments) = called(message)?;
    let params = message.get("params")?.as_object()?;
    let is_plain = params.keys().all(|key| PLAIN.contains(&key.as_str()));
    is_plain.then(|| Call {
        tool,
        arguments,
        caller,
    })
}

/// The tool that a `tools/call` names, and its arguments.
pub(super) fn called(message: &Value) -> Option<(String, Received)> {
    if message.get("method")? != "tools/call" {
        return None;
    }
    let params = message.get("params")?;
    let name = params.get("name")?.as_str()?.to_owned();
    let arguments = match params.get("arguments") {
        None => Received::Absent,
        Some(Value::String(text)) => Received::Text(text.clone()),
        Some(value) => Received::Value(value.clone()),
    };
    Some((name, arguments))
}

/// The same for requests over HTTP that stand alone.
pub(super) struct AtOnce {
    desk: Arc<dyn Desk>,
    /// Hosts as a request names them, with the port: exactly these, so that a page whose name was made to lead here goes the
    /// long way, where it is judged.
    hosts: Vec<String>,
}

impl AtOnce {
    pub(super) fn new(desk: Arc<dyn Desk>, hosts: Vec<String>, port: u16) -> Self {
        let with_port = |host: String| match host.matches(':').count() {
            0 => format!("{host}:{port}"),
            1 => host,
            _ => format!("[{host}]:{port}"),
        };
        Self {
            desk,
            hosts: hosts.into_iter().map(with_port).collect(),
        }
    }

    /// Whom it asks.
    pub(super) fn desk(&self) -> &dyn Desk {
        self.desk.as_ref()
    }

    /// The reply's body, as JSON.
    pub(super) fn reply(&self, parts: &Parts, message: &Value) -> Option<Vec<u8>> {
        let host = parts.headers.get(HOST)?;
        let is_ours = self.hosts.iter().any(|own| own.as_bytes() == host);
        if !is_ours || !takes_json(&parts.headers) || parts.headers.keys().any(says_more) {
            return None;
        }
        let caller = Caller {
            identity: parts.extensions.get::<Identity>().cloned(),
            ..Caller::unnamed(Via::Http)
        };
        reply(self.desk.as_ref(), message, caller)
    }
}

fn takes_json(headers: &HeaderMap) -> bool {
    let Some(accept) = headers.get(ACCEPT) else {
        return true;
    };
    let accept = accept.to_str().unwrap_or_default();
    accept.contains("application/json") || accept.contains("*/*")
}

/// Of a page, a session, a revision or another node, which are for the protocol library to judge.
fn says_more(header: &HeaderName) -> bool {
    let name = header.as_str();
    *header == ORIGIN || name.starts_with("mcp-") || name.starts_with("steadyhand-")
}
