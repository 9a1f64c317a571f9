//! Tests what a guarded node with a real port says to every call that was seen or may be feared, by every way in.
//!
//! Nothing is enabled on it, so that what is understood is answered with `needs_enabling` and nothing ever moves.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use crate::snapshots;
use crate::support;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};
use support::{
    Bench, PATIENCE, Running, SHORT_LINES, Served, StdioClient, on_port, scene, unless_starved,
};

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}"#;
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// The members of a call's `params`, with what they are.
const ROWS: [(&str, &str); 24] = [
    // Before any refusal: what was just refused is not simply left out.
    (
        "a decorated name",
        r#""name":"robotStroke()","arguments":{}"#,
    ),
    (
        "a lost object",
        r#""name":"stroke","arguments":"[object Object]""#,
    ),
    (
        "an object in a string",
        r#""name":"stroke","arguments":"{\"dry_run\":false,\"scene\":\"short\"}""#,
    ),
    (
        "an object in a string, twice",
        r#""name":"stroke","arguments":"\"{\\\"scene\\\":\\\"short\\\"}\"""#,
    ),
    ("an empty list", r#""name":"stroke","arguments":[]"#),
    (
        "a list of one",
        r#""name":"stroke","arguments":[{"scene":"short"}]"#,
    ),
    ("a number", r#""name":"stroke","arguments":42"#),
    ("an empty string", r#""name":"stroke","arguments":"""#),
    ("null", r#""name":"stroke","arguments":null"#),
    ("absent", r#""name":"stroke""#),
    (
        "an envelope",
        r#""name":"stroke","arguments":{"input_data":"{\"scene\":\"short\"}"}"#,
    ),
    (
        "an envelope with an object",
        r#""name":"stroke","arguments":{"input_data":{"scene":"short"}}"#,
    ),
    (
        "a truth in a string",
        r#""name":"stroke","arguments":{"scene":"Short","again":"yes"}"#,
    ),
    (
        "a key that nobody knows",
        r#""name":"stroke","arguments":{"scene":"short","style":"bold"}"#,
    ),
    (
        "a key with physical meaning",
        r#""name":"stroke","arguments":{"scene":"short","depth":3}"#,
    ),
    (
        "a key twice",
        r#""name":"stroke","arguments":{"again":true,"again":false}"#,
    ),
    (
        "a template",
        r#""name":"stroke","arguments":{"scene":"<scene-name>"}"#,
    ),
    (
        "the schema",
        r#""name":"stroke","arguments":{"scene":{"type":"string"}}"#,
    ),
    (
        "a value cut off",
        r#""name":"stroke","arguments":"{\"scene\": \"sho""#,
    ),
    (
        "prose",
        r#""name":"stroke","arguments":"please draw something nice""#,
    ),
    (
        "neither true nor false",
        r#""name":"stroke","arguments":{"again":"perhaps"}"#,
    ),
    ("a name of nothing", r#""name":"","arguments":{}"#),
    ("no name", r#""arguments":{}"#),
    (
        "a stop with rubbish",
        r#""name":"E-Stop","arguments":"]]{{ now!!""#,
    ),
];

/// A node with its own simulated arm on a pseudo-terminal: hardware, as far as it can know.
struct Hardware {
    bench: Bench,
    _sim: Running,
    port: String,
}

impl Hardware {
    fn new() -> Self {
        let bench = Bench::at_test_rate();
        bench.scene("default", &scene("default", SHORT_LINES));
        let (sim, port) = bench.sim(&[]);
        Self {
            bench,
            _sim: sim,
            port,
        }
    }

    fn serve(&self) -> Served {
        self.bench.serve(&on_port(&self.port, &self.bench.state()))
    }

    fn line(&self) -> StdioClient {
        let state = self.bench.state();
        let line = StdioClient::start(&self.bench, &on_port(&self.port, &state));
        line.greet("t");
        line
    }
}

/// One request on a connection of its own: its head, and the last message of its answer.
pub(crate) fn post(served: &Served, headers: &[&str], body: &str) -> (String, String) {
    let host = served
        .url
        .trim_start_matches("http://")
        .split('/')
        .next()
        .unwrap()
        .to_owned();
    let mut stream = TcpStream::connect(&host).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = headers
        .iter()
        .fold(String::new(), |head, one| head + one + "\r\n");
    let length = body.len();
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-type: application/json\r\n{head}content-length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let message = |line: &str| {
        let line = line.trim_start_matches("data:").trim();
        line.starts_with('{').then(|| line.to_owned())
    };
    (
        head.to_owned(),
        body.lines()
            .filter_map(message)
            .next_back()
            .unwrap_or_default(),
    )
}

pub(crate) const STREAMS: &str = "accept: application/json, text/event-stream";

pub(crate) fn session(served: &Served) -> String {
    let (head, _) = post(served, &[STREAMS], INITIALIZE);
    let id = head
        .lines()
        .find_map(|line| line.strip_prefix("mcp-session-id: "))
        .unwrap();
    let header = format!("mcp-session-id: {}", id.trim());
    post(served, &[STREAMS, &header], INITIALIZED);
    header
}

/// Returns what a caller needs to know of an answer, without what differs from run to run.
fn comparable_reply(answer: &str) -> String {
    let answer: Value = serde_json::from_str(answer).unwrap_or_else(|_| panic!("{answer:?}"));
    if !answer["error"].is_null() {
        return answer["error"].to_string();
    }
    let result = &answer["result"];
    let reply = &result["structuredContent"];
    let repairs: Vec<Value> = reply["repairs"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| {
            json!([
                one["field"],
                one["got"],
                one["used"],
                one["class"],
                one["code"]
            ])
        })
        .collect();
    let message = reply["message"].as_str().unwrap_or_default();
    let message = without(&without(message, "valid: ", ";"), "(revision ", ")");
    json!({
        "isError": result["isError"], "code": reply["code"], "message": message,
        "understood": reply["understood"], "repairs": repairs,
        "corrected_call": reply["corrected_call"],
    })
    .to_string()
}

/// A message without what changes as scenes are added and designs are edited.
fn without(message: &str, from: &str, to: &str) -> String {
    let Some((before, rest)) = message.split_once(from) else {
        return message.to_owned();
    };
    let after = rest.find(to).map_or("", |at| &rest[at..]);
    format!("{before}{from}…{after}")
}

#[test]
fn whatever_is_sent_to_a_guarded_node_is_answered_as_agreed_by_every_way() {
    unless_starved(|| {
        let (one, other) = (Hardware::new(), Hardware::new());
        let served = one.serve();
        let line = other.line();
        let session = session(&served);
        let mut out = String::new();
        for (name, params) in ROWS {
            let legacy = format!(
                r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{{params}}}}}"#
            );
            let modern = format!(
                r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{{params},{META}}}}}"#
            );
            let tool = params
                .split('"')
                .nth(3)
                .filter(|_| params.starts_with(r#""name""#));
            let tool = format!("mcp-name: {}", tool.unwrap_or_default());
            let eras = [
                STREAMS,
                "mcp-protocol-version: 2026-07-28",
                "mcp-method: tools/call",
                &tool,
            ];
            line.send(&legacy);
            let answers = [
                (
                    "stdio",
                    line.line_where(|line| !line.contains(r#""method""#)),
                ),
                ("session", post(&served, &[STREAMS, &session], &legacy).1),
                ("stateless", post(&served, &["accept: */*"], &legacy).1),
                ("2026-07-28", post(&served, &eras, &modern).1),
            ];
            let _ = writeln!(out, "# {name}\n> {params}\n{}", grouped(&answers));
        }
        snapshots::check("torture.txt", &out);
    });
}

/// Ways that answer alike share a line.
fn grouped(answers: &[(&str, String)]) -> String {
    let mut lines: Vec<(String, String)> = Vec::new();
    for (way, answer) in answers {
        let answer = comparable_reply(answer);
        match lines.iter_mut().find(|(_, known)| *known == answer) {
            Some((ways, _)) => *ways = format!("{ways}, {way}"),
            None => lines.push(((*way).to_owned(), answer)),
        }
    }
    lines.iter().fold(String::new(), |out, (ways, answer)| {
        out + &format!("< {ways}: {answer}\n")
    })
}
