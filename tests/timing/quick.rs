//! What is answered at once is what the protocol library would have answered, and is kept from nobody whom it would keep out.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

use crate::support;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use support::{Bench, PATIENCE, Running, Served};

/// The binary with the scenes in it alone: where there is a folder of scenes, each list reads it.
fn serve(bench: &Bench, args: &[&str]) -> Command {
    let mut command = Command::new(support::binary());
    command
        .env("XDG_RUNTIME_DIR", bench.path(""))
        .env("XDG_STATE_HOME", bench.path("state-home"))
        .arg("serve")
        .args(args);
    command
}

fn call(params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": params}).to_string()
}

fn plain() -> String {
    call(&json!({"name": "list_nodes", "arguments": {}}))
}

/// A reply without what passes from one call to the next.
fn timeless(reply: &str) -> Value {
    let mut reply: Value = serde_json::from_str(reply).unwrap();
    let now = reply.pointer_mut("/result/structuredContent/nodes/0/time_ms");
    *now.unwrap() = Value::Null;
    reply
}

#[test]
fn a_pipe_hears_the_same_either_way() {
    let bench = Bench::new();
    let mut command = serve(&bench, &[]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    let lines = support::lines(child.stdout.take().unwrap());
    let mut input = child.stdin.take().unwrap();
    let _child = Running(child);
    let mut ask = |line: &str| {
        input.write_all(line.as_bytes()).unwrap();
        input.write_all(b"\n").unwrap();
    };
    ask(
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
    );
    lines.recv_timeout(PATIENCE).unwrap();
    // Not introduced yet, so by the long way.
    ask(&plain());
    let long = lines.recv_timeout(PATIENCE).unwrap();
    ask(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    ask(&plain());
    let quick = lines.recv_timeout(PATIENCE).unwrap();
    assert_eq!(timeless(&quick), timeless(&long));
    ask(&call(
        &json!({"name": "list_nodes", "arguments": {}, "_meta": {}}),
    ));
    let with_meta = lines.recv_timeout(PATIENCE).unwrap();
    assert_eq!(timeless(&quick), timeless(&with_meta));
    // So many at once that some go each way, and fewer than may wait: every one is answered.
    const MANY: usize = 600;
    let many: String = (0..MANY)
        .map(|id| plain().replace("\"a\"", &id.to_string()) + "\n")
        .collect();
    let sending = std::thread::spawn(move || {
        input.write_all(many.as_bytes()).unwrap();
        input
    });
    for _ in 0..MANY {
        let answer = lines.recv_timeout(PATIENCE).unwrap();
        assert!(answer.contains("\"isError\":false"), "{answer}");
    }
    drop(sending.join().unwrap());
}

/// Head and body of what comes for this.
fn post(served: &Served, host: &str, headers: &str) -> (String, String) {
    let (mut stream, _) = support::connect(served);
    let body = plain();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let start = body.find('{').unwrap_or(body.len());
    let end = body.rfind('}').map_or(body.len(), |end| end + 1);
    (head.to_owned(), body[start..end].to_owned())
}

#[test]
fn the_web_hears_the_same_either_way_and_strangers_nothing() {
    let bench = Bench::new();
    let mut command = serve(&bench, &["--http", "127.0.0.1:0"]);
    let mut child = command
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = support::lines(child.stderr.take().unwrap());
    let child = Running(child);
    let line = support::wait_for(&lines, "MCP at ");
    let url = line.rsplit("MCP at ").next().unwrap().trim().to_owned();
    let served = Served { child, url, lines };
    let host = served.host();
    let (head, quick) = post(&served, &host, "");
    assert!(
        head.contains("200 OK") && head.contains("application/json"),
        "{head}"
    );
    // A host without its port is as good, and goes the long way.
    let (head, long) = post(&served, "localhost", "");
    assert!(head.contains("text/event-stream"), "{head}");
    assert_eq!(timeless(&quick), timeless(&long));
    let port = host.rsplit(':').next().unwrap();
    for (host, headers) in [
        ("evil.example".to_owned(), ""),
        (format!("evil.example:{port}"), ""),
        (host.clone(), "Origin: https://evil.example\r\n"),
        (host.clone(), "Origin: null\r\n"),
        (host.clone(), "Mcp-Session-Id: gone\r\n"),
        (host.clone(), "MCP-Protocol-Version: 1999-01-01\r\n"),
    ] {
        let (head, body) = post(&served, &host, headers);
        assert!(!head.contains("200 OK"), "{host} {headers}: {head}");
        assert!(!body.contains("structuredContent"), "{body}");
    }
}
