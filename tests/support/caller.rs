//! Callers of a node's tools: over HTTP, with a token or without, and on its standard input and output.

use std::cell::{Cell, RefCell};
use std::io::Write;
use std::process::{ChildStdin, Stdio};
use std::sync::mpsc::Receiver;

use serde_json::{Value, json};

use super::{Bench, PATIENCE, Running, Served, begun, lines, post_to, until};

/// Header of a client that takes one answer or a stream of events.
pub(crate) const STREAMS: &str = "Accept: application/json, text/event-stream\r\n";

/// Returns the message that calls a tool.
pub(crate) fn tool_call(tool: &str, arguments: &Value) -> String {
    let params = json!({ "name": tool, "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string()
}

/// Calls a tool of the node at `host`. Returns the structured result.
pub(crate) fn call_at(host: &str, tool: &str, arguments: &Value) -> Value {
    told_at(host, tool, arguments).1
}

/// Calls a tool of the node at `host`. Returns the text of the result, and the structured result.
pub(crate) fn told_at(host: &str, tool: &str, arguments: &Value) -> (String, Value) {
    let (_, answer) = post_to(
        host,
        "Accept: application/json\r\n",
        &tool_call(tool, arguments),
    );
    result_of(&answer)
}

/// Returns the text of an answer's result, and the structured result.
fn result_of(answer: &Value) -> (String, Value) {
    let result = &answer["result"];
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    (text.to_owned(), result["structuredContent"].clone())
}

/// Returns the header of a caller with this token.
pub(crate) fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

/// A caller of a node's tools.
pub(crate) trait Caller {
    /// Calls a tool. Returns the text of the result, and the structured result.
    fn told(&self, tool: &str, arguments: &Value) -> (String, Value);

    /// Calls a tool. Returns the structured result.
    fn call(&self, tool: &str, arguments: &Value) -> Value {
        self.told(tool, arguments).1
    }

    fn sense(&self) -> Value {
        self.call("sense", &json!({}))
    }

    fn state(&self) -> Value {
        self.sense()["state"].clone()
    }

    /// Waits until `sense` answers as expected. Returns the answer.
    fn until(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        until(what, || self.sense(), is_so)
    }

    fn until_state(&self, state: &str) {
        self.until(state, |sensed| sensed["state"] == state);
    }

    fn until_job(&self, state: &str) {
        self.until(state, |sensed| sensed["job"]["state"] == state);
    }

    /// Calls a tool that must do what it is asked for. Returns the structured result.
    fn done(&self, tool: &str, arguments: &Value) -> Value {
        let result = begun(|| self.call(tool, arguments));
        assert_eq!(result["success"], true, "{tool} {arguments}: {result:#}");
        result
    }

    /// Calls a tool that must refuse with this code. Returns its message.
    fn refused(&self, tool: &str, arguments: &Value, code: &str) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["success"], false, "{tool} {arguments}: {result:#}");
        assert_eq!(result["code"], code, "{tool} {arguments}: {result:#}");
        result["message"].as_str().unwrap().to_owned()
    }

    /// Begins a drawing whose call is answered before its end, and waits until the arm moves.
    fn draw(&self, scene: &str) {
        self.done("stroke", &json!({ "scene": scene, "again": true }));
        self.until_state("moving");
    }

    /// Brings the arm to rest once the drawing that was stopped is over.
    fn reset(&self) {
        self.until_job("stopped");
        self.done("reset", &json!({}));
        self.until_job("reached");
    }
}

/// A caller without a token, with a new connection for each call.
impl Caller for Served {
    fn told(&self, tool: &str, arguments: &Value) -> (String, Value) {
        told_at(&self.host(), tool, arguments)
    }
}

/// A caller with a token.
pub(crate) struct TokenCaller {
    host: String,
    header: String,
}

impl Served {
    /// Returns a caller with this token.
    pub(crate) fn caller(&self, token: &str) -> TokenCaller {
        let (host, header) = (self.host(), bearer(token));
        TokenCaller { host, header }
    }
}

impl TokenCaller {
    /// Posts a message with more headers. Returns the status and the answer.
    pub(crate) fn post(&self, headers: &str, body: &str) -> (u16, Value) {
        let headers = format!("{}{STREAMS}{headers}", self.header);
        post_to(&self.host, &headers, body)
    }

    /// Returns the header with its token.
    pub(crate) fn header(&self) -> &str {
        &self.header
    }
}

impl Caller for TokenCaller {
    fn told(&self, tool: &str, arguments: &Value) -> (String, Value) {
        let (_, answer) = self.post("", &tool_call(tool, arguments));
        result_of(&answer)
    }
}

/// The id of a call for whose answer a test does not wait.
pub(crate) const BEGUN: u64 = 117;

/// A node with a client on its standard input and output.
pub(crate) struct StdioClient {
    _node: Running,
    input: ChildStdin,
    output: Receiver<String>,
    /// Methods of the notifications that have come.
    notices: RefCell<Vec<String>>,
    last_id: Cell<u64>,
}

impl StdioClient {
    /// Starts the node; the session is not open yet.
    pub(crate) fn start(bench: &Bench, args: &[&str]) -> Self {
        let mut child = bench
            .command(&[&["serve"], args].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            input: child.stdin.take().unwrap(),
            output: lines(child.stdout.take().unwrap()),
            _node: Running(child),
            notices: RefCell::default(),
            last_id: Cell::new(1000),
        }
    }

    /// Opens the session of a client with this name.
    pub(crate) fn greet(&self, name: &str) {
        self.greet_as(name, &json!({}));
    }

    /// Opens the session of a client with this name and these capabilities. Returns what the node says of itself.
    pub(crate) fn greet_as(&self, name: &str, capabilities: &Value) -> Value {
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities,
            "clientInfo": { "name": name, "version": "1.2" } });
        let mut opened = self.ask("initialize", &hello);
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        opened["result"].take()
    }

    pub(crate) fn send(&self, line: &str) {
        writeln!(&self.input, "{line}").unwrap();
    }

    pub(crate) fn request(&self, id: u64, method: &str, params: &Value) {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send(&request.to_string());
    }

    /// Sends a request under an id of its own. Returns the answer and ignores earlier messages.
    pub(crate) fn ask(&self, method: &str, params: &Value) -> Value {
        let id = self.last_id.get() + 1;
        self.last_id.set(id);
        self.request(id, method, params);
        loop {
            let message = self.receive();
            if message["id"] == id {
                return message;
            }
        }
    }

    /// Begins a call, whose progress is sent under its id.
    pub(crate) fn begin(&self, id: u64, tool: &str, arguments: &Value) {
        let params = json!({ "name": tool, "arguments": arguments,
            "_meta": { "progressToken": id } });
        self.request(id, "tools/call", &params);
    }

    pub(crate) fn receive(&self) -> Value {
        let line = self.output.recv_timeout(PATIENCE).unwrap();
        let message: Value = serde_json::from_str(&line).unwrap();
        let method = message["method"].as_str().map(str::to_owned);
        self.notices.borrow_mut().extend(method);
        message
    }

    /// Waits for a notification, unless one has come since the last wait for it.
    pub(crate) fn notice(&self, method: &str) {
        while !self.notices.borrow().iter().any(|one| one == method) {
            self.receive();
        }
        self.notices.borrow_mut().retain(|one| one != method);
    }

    /// Returns the next answer, but for one of a call that was only begun; notices come in between.
    pub(crate) fn receive_answer(&self) -> Value {
        loop {
            let message = self.receive();
            if message.get("method").is_none() && message["id"] != BEGUN {
                return message;
            }
        }
    }

    /// Returns the next such line, as it was written.
    pub(crate) fn line_where(&self, is_so: impl Fn(&str) -> bool) -> String {
        loop {
            let line = self.output.recv_timeout(PATIENCE).unwrap();
            if is_so(&line) {
                return line;
            }
        }
    }

    /// Returns the next line that holds a text, as it was written.
    pub(crate) fn line_with(&self, text: &str) -> String {
        self.line_where(|line| line.contains(text))
    }

    /// Returns the result of a request and ignores earlier messages.
    pub(crate) fn answer(&self, id: u64) -> Value {
        self.answer_with_progress(id).0
    }

    /// Returns the result of a request and the progress before it.
    pub(crate) fn answer_with_progress(&self, id: u64) -> (Value, Vec<Value>) {
        let mut progress = Vec::new();
        loop {
            let received = self.receive();
            if received["method"] == "notifications/progress" {
                progress.push(received["params"].clone());
            } else if received["id"] == id {
                return (received["result"].clone(), progress);
            }
        }
    }
}

impl Caller for StdioClient {
    fn told(&self, tool: &str, arguments: &Value) -> (String, Value) {
        self.request(
            77,
            "tools/call",
            &json!({ "name": tool, "arguments": arguments }),
        );
        result_of(&self.receive_answer())
    }
}
