//! Whose a stop is, where callers have tokens: an operator's stays an operator's in whatever message it comes, and nobody's
//! is lost for the session that it names.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

use crate::support;
use std::io::Write as _;

use serde_json::json;
use support::{Bench, Caller, Served, TokenCaller, scene};

struct Guarded {
    served: Served,
    planner: TokenCaller,
    viewer: TokenCaller,
    operator: TokenCaller,
    _bench: Bench,
}

impl Guarded {
    /// A node that wants tokens, with a drawing that takes most of a minute.
    fn new() -> Self {
        let file = "answer_within_s = 1\nlease_idle_s = 1\nrequire_tokens = true\n";
        let bench = Bench::at_test_rate().with_file(file);
        let rows: Vec<String> = (0..20)
            .map(|row| format!("[[0.0, {y}.0], [80.0, {y}.0]]", y = 2 * row))
            .collect();
        bench.scene("long", &scene("long", &format!("[{}]", rows.join(", "))));
        let tokens = ["planner", "viewer", "operator"]
            .map(|role| bench.token(role, &["--role", role, "--calls-per-minute", "60000"]));
        let served = bench.serve(&[]);
        let [planner, viewer, operator] = tokens.map(|token| served.caller(&token));
        Self {
            served,
            planner,
            viewer,
            operator,
            _bench: bench,
        }
    }

    fn draw(&self) {
        self.planner.draw("long");
    }

    fn until_stopped(&self) {
        self.planner.until_state("stopped");
        self.planner.until_job("stopped");
    }

    /// Ends a stop as this caller, and waits for rest.
    fn reset(&self, caller: &TokenCaller) {
        caller.done("reset", &json!({}));
        self.planner.until_job("reached");
    }
}

const STOP: &str = r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"stop"}}"#;

#[test]
fn an_operators_stop_is_an_operators_in_any_message() {
    let node = Guarded::new();
    for (more, body) in [
        ("", r#"{"tool":"stop"}"#),
        (
            "",
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"stop"}}"#,
        ),
        ("Mcp-Session-Id: gone\r\n", STOP),
        ("MCP-Protocol-Version: 1999\r\n", STOP),
    ] {
        node.draw();
        node.operator.post(more, body);
        node.until_stopped();
        let refused = node.planner.call("reset", &json!({}));
        assert_eq!(refused["success"], false, "{more}{body}: {refused:#}");
        let message = refused["message"].as_str().unwrap();
        assert!(message.contains("an operator"), "{more}{body}: {message}");
        node.reset(&node.operator);
    }
}

#[test]
fn a_stop_with_a_token_is_heard_whatever_else_it_names() {
    let node = Guarded::new();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}}});
    let session = opened(&node, &hello.to_string());
    let of_planner = format!("Mcp-Session-Id: {session}\r\n");
    for (more, body) in [
        (of_planner.as_str(), STOP),
        (
            "",
            r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"tool":"stop"}}"#,
        ),
        ("", r#"{"id":9,"Tool":"stop"}"#),
    ] {
        node.draw();
        node.viewer.post(more, body);
        node.until_stopped();
        node.reset(&node.planner);
    }
    // A verb is for operators, but it names a stop.
    node.draw();
    let headers = node.viewer.header();
    let sent = format!(
        "POST /operator HTTP/1.1\r\nHost: {}\r\n{headers}Content-Type: application/json\r\nContent-Length: 15\r\nConnection: close\r\n\r\n{{\"verb\":\"stop\"}}",
        node.served.host()
    );
    let mut stream = std::net::TcpStream::connect(node.served.host()).unwrap();
    stream.write_all(sent.as_bytes()).unwrap();
    let (status, answer) = support::answer(&mut stream);
    assert_eq!(status, 403, "{answer:#}");
    assert!(answer.to_string().contains("were stopped"), "{answer:#}");
    node.until_stopped();
    node.reset(&node.planner);
}

/// Opens a session with the planner's token; its id.
fn opened(node: &Guarded, hello: &str) -> String {
    use std::io::Read as _;
    let sent = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\n{}Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{hello}",
        node.served.host(),
        node.planner.header(),
        hello.len()
    );
    let mut stream = std::net::TcpStream::connect(node.served.host()).unwrap();
    stream.write_all(sent.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let line = text.lines().find_map(|line| {
        line.to_ascii_lowercase()
            .strip_prefix("mcp-session-id:")
            .map(str::to_owned)
    });
    line.unwrap().trim().to_owned()
}

#[test]
fn a_token_under_another_scheme_does_not_come_in_as_nobody() {
    let bench = Bench::at_test_rate();
    let served = bench.serve(&[]);
    for value in ["Token sth_something", "Basic abc", "Bearer", "\u{e9}"] {
        let headers = format!("Authorization: {value}\r\n");
        let (status, _) = support::post(&served, &headers, STOP);
        assert_eq!(status, 401, "{value}");
    }
}
