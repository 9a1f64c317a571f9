//! Calls of tools as messages of the protocol, and over HTTP.

use serde_json::{Value, json};

use super::{Served, post_to};

/// Returns the message that calls a tool.
pub(crate) fn tool_call(tool: &str, arguments: &Value) -> String {
    let params = json!({ "name": tool, "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string()
}

/// Calls a tool of the node at `host`. Returns the structured result.
pub(crate) fn call_at(host: &str, tool: &str, arguments: &Value) -> Value {
    const ONE_ANSWER: &str = "Accept: application/json, text/event-stream\r\n";
    let (_, answer) = post_to(host, ONE_ANSWER, &tool_call(tool, arguments));
    answer["result"]["structuredContent"].clone()
}

impl Served {
    /// Calls a tool. Returns the structured result.
    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> Value {
        call_at(&self.host(), tool, arguments)
    }
}
