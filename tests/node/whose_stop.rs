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
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Bench, PATIENCE, Served, begun, scene, tool_call};

struct Guarded {
    served: Served,
    planner: String,
    viewer: String,
    operator: String,
    _bench: Bench,
}

impl Guarded {
    /// A node that wants tokens, with a drawing that takes most of a minute.
    fn new() -> Self {
        let bench = Bench::at_test_rate();
        let rows: Vec<String> = (0..20)
            .map(|row| format!("[[0.0, {y}.0], [80.0, {y}.0]]", y = 2 * row))
            .collect();
        bench.scene("long", &scene("long", &format!("[{}]", rows.join(", "))));
        let config = bench.path("node.toml").display().to_string();
        let file = "answer_within_s = 1\nlease_idle_s = 1\nrequire_tokens = true\n";
        std::fs::write(&config, file).unwrap();
        let state = bench.state();
        let here = ["--config", &config, "--state", &state];
        let token = |name: &str, role: &str| {
            let args = [
                &[
                    "token",
                    "add",
                    name,
                    "--role",
                    role,
                    "--calls-per-minute",
                    "60000",
                ][..],
                &here,
            ]
            .concat();
            let made = bench.run(&args);
            String::from_utf8(made.stdout).unwrap().trim().to_owned()
        };
        let [planner, viewer, operator] =
            ["planner", "viewer", "operator"].map(|role| token(role, role));
        Self {
            served: bench.serve(&here),
            planner,
            viewer,
            operator,
            _bench: bench,
        }
    }

    fn post(&self, token: &str, more: &str, body: &str) -> (u16, Value) {
        let headers = format!(
            "Authorization: Bearer {token}\r\nAccept: application/json, text/event-stream\r\n{more}"
        );
        support::post(&self.served, &headers, body)
    }

    /// Calls a tool with the planner's token.
    fn call(&self, tool: &str, arguments: &Value) -> Value {
        let call = tool_call(tool, arguments);
        let (_, answer) = self.post(&self.planner, "", &call);
        answer["result"]["structuredContent"].clone()
    }

    fn until(&self, what: &str, is_so: impl Fn(&Value) -> bool) {
        let began = Instant::now();
        loop {
            let sensed = self.call("sense", &json!({}));
            if is_so(&sensed) {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "never {what}: {sensed:#}");
            sleep(Duration::from_millis(30));
        }
    }

    fn draw(&self) {
        let begun = begun(|| self.call("stroke", &json!({"scene": "long", "again": true})));
        assert_eq!(begun["success"], true, "{begun:#}");
        self.until("moving", |sensed| sensed["state"] == "moving");
    }

    fn until_stopped(&self) {
        self.until("stopped", |sensed| {
            sensed["state"] == "stopped" && sensed["job"]["state"] == "stopped"
        });
    }

    /// Ends a stop with a token, and waits for rest.
    fn reset(&self, token: &str) {
        let call = tool_call("reset", &json!({}));
        let (_, answer) = self.post(token, "", &call);
        let reset = &answer["result"]["structuredContent"];
        assert_eq!(reset["success"], true, "{answer:#}");
        self.until("at rest", |sensed| sensed["job"]["state"] == "reached");
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
        node.post(&node.operator, more, body);
        node.until_stopped();
        let refused = node.call("reset", &json!({}));
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
        node.post(&node.viewer, more, body);
        node.until_stopped();
        node.reset(&node.planner);
    }
    // A verb is for operators, but it names a stop.
    node.draw();
    let headers = format!("Authorization: Bearer {}\r\n", node.viewer);
    let sent = format!(
        "POST /operator HTTP/1.1\r\nHost: {}\r\n{headers}Content-Type: application/json\r\nContent-Length: 15\r\nConnection: close\r\n\r\n{{\"verb\":\"stop\"}}",
        node.served.host()
    );
    let mut stream = std::net::TcpStream::connect(node.served.host()).unwrap();
    stream.write_all(sent.as_bytes()).unwrap();
    let (status, answer) = support::answer(&mut stream);
    assert_eq!(status, 403, "{answer:#}");
    assert!(answer.to_string().contains("told to stop"), "{answer:#}");
    node.until_stopped();
    node.reset(&node.planner);
}

/// Opens a session with the planner's token; its id.
fn opened(node: &Guarded, hello: &str) -> String {
    use std::io::Read as _;
    let sent = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{hello}",
        node.served.host(),
        node.planner,
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
