//! Clients that wait: what progress they hear, and what is said of those that stop waiting.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

use crate::support;
use std::io::Write;
use std::process::{ChildStdin, Stdio};
use std::sync::mpsc::Receiver;

use serde_json::{Value, json};
use support::{Bench, PATIENCE, Running, lines};

/// A client on a node's standard input and output.
struct StdioClient {
    node: Running,
    input: ChildStdin,
    output: Receiver<String>,
}

impl StdioClient {
    /// A client of this name, which has opened the protocol.
    fn new(bench: &Bench, name: &str, args: &[&str]) -> Self {
        let mut child = bench
            .command(&[&["serve"], args].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = lines(child.stdout.take().unwrap());
        let mut client = Self {
            node: Running(child),
            input,
            output,
        };
        client.says(
            &json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": name, "version": "1.2"}}}),
        );
        client.says(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client.answer(1);
        client
    }

    fn says(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
    }

    fn calls(&mut self, id: u64, tool: &str, arguments: &Value) {
        self.says(
            &json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
            "name": tool, "arguments": arguments, "_meta": {"progressToken": id}}}),
        );
    }

    fn hears(&self) -> Value {
        serde_json::from_str(&self.output.recv_timeout(PATIENCE).unwrap()).unwrap()
    }

    /// The result of a request, whatever is heard before.
    fn answer(&self, id: u64) -> Value {
        loop {
            let heard = self.hears();
            if heard["id"] == id {
                return heard["result"].clone();
            }
        }
    }

    /// The result of a request, and the progress that is heard before it.
    fn answer_with_progress(&self, id: u64) -> (Value, Vec<Value>) {
        let mut progress = Vec::new();
        loop {
            let heard = self.hears();
            if heard["method"] == "notifications/progress" {
                progress.push(heard["params"].clone());
            } else if heard["id"] == id {
                return (heard["result"].clone(), progress);
            }
        }
    }
}

#[test]
fn progress_is_seconds_of_arm_time_from_zero_to_the_total() {
    let bench = Bench::new();
    let mut client = StdioClient::new(&bench, "patient", &[]);
    client.calls(2, "stroke", &json!({"scene": "short"}));
    let (result, progress) = client.answer_with_progress(2);
    let result = &result["structuredContent"];
    assert_eq!(result["success"], true, "{result:#}");
    let first = &progress[0];
    assert_eq!(first["progress"], 0.0, "{first}");
    assert!(
        !first["message"].as_str().unwrap().contains("done"),
        "{first}"
    );
    let done: Vec<f64> = progress
        .iter()
        .map(|one| one["progress"].as_f64().unwrap())
        .collect();
    assert!(done.is_sorted_by(|a, b| a < b), "{done:?}");
    for one in &progress {
        let written = one["progress"].to_string();
        let decimals = written
            .split_once('.')
            .map_or(0, |(_, decimals)| decimals.len());
        assert!(decimals <= 3, "{written}");
    }
    let last = progress.last().unwrap();
    let planned_s = result["planned_s"].as_f64().unwrap();
    for figure in ["progress", "total"] {
        let off_s = (last[figure].as_f64().unwrap() - planned_s).abs();
        assert!(off_s < 0.01, "{figure}: {last} of {planned_s} s");
    }
    drop(client.node);
}

#[test]
fn waiting_for_a_person_is_told_with_the_command_that_approves() {
    let bench = Bench::new();
    std::fs::write(bench.path("node.toml"), "require_approval = true\n").unwrap();
    let config = bench.path("node.toml").display().to_string();
    let state = bench.state();
    let mut client = StdioClient::new(&bench, "asks", &["--config", &config, "--state", &state]);
    client.calls(2, "stroke", &json!({"scene": "short"}));
    loop {
        let heard = client.hears();
        assert!(heard.get("result").is_none(), "{heard:#}");
        let message = heard["params"]["message"].as_str().unwrap_or_default();
        if message.contains("`steadyhand approve job-1`") {
            break;
        }
    }
    let approved = bench.run(&["approve", "job-1", "--yes"]);
    assert_eq!(approved.status.code(), Some(0));
    assert_eq!(client.answer(2)["structuredContent"]["success"], true);
}

/// Ten lines of 60 mm: half a minute of arm time.
fn long_lines() -> String {
    let line = |row: usize| format!("[[0.0, {0}.0], [60.0, {0}.0]]", row * 6);
    let lines: Vec<String> = (0..10).map(line).collect();
    format!("[{}]", lines.join(", "))
}

#[test]
fn who_stopped_waiting_is_named_to_everybody_who_comes_after() {
    let bench = Bench::new();
    bench.scene("long", &support::scene("long", &long_lines()));
    let state = bench.state();
    let mut client = StdioClient::new(&bench, "hasty", &["--state", &state]);
    client.calls(2, "stroke", &json!({"scene": "long"}));
    loop {
        let heard = client.hears();
        let message = heard["params"]["message"].as_str().unwrap_or_default();
        if message.contains("s left") {
            break;
        }
    }
    client.says(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}),
    );
    let named = "it was stopped because the client hasty 1.2 stopped waiting for job-1 after ";
    for id in 3.. {
        client.calls(id, "sense", &json!({}));
        let sensed = client.answer(id);
        let text = sensed["content"][0]["text"].as_str().unwrap();
        if text.contains("latched: stopped") {
            assert!(text.contains(named), "{text}");
            let left = &sensed["structuredContent"]["client_left"];
            assert_eq!(left["client"], "hasty 1.2", "{left}");
            break;
        }
    }
    // While the job still ends, the same call joins it.
    for id in 1000.. {
        client.calls(id, "stroke", &json!({"scene": "long"}));
        let refused = client.answer(id);
        let text = refused["content"][0]["text"].as_str().unwrap();
        if text.contains("call `reset` first") {
            assert!(text.contains(named), "{text}");
            break;
        }
    }
    let job = bench.run(&["jobs", "job-1", "--json", "--state", &state]);
    let job = String::from_utf8_lossy(&job.stdout).into_owned();
    assert!(
        job.contains("your client (hasty 1.2) stopped waiting after "),
        "{job}"
    );
}

#[test]
fn a_client_that_keeps_a_dead_session_is_told_once_and_then_answered() {
    let bench = Bench::new();
    let served = bench.serve(&[]);
    let sense = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "sense", "arguments": {}}});
    let stale =
        "Mcp-Session-Id: of-the-process-before\r\nAccept: application/json, text/event-stream\r\n";
    let (status, _) = support::post(&served, stale, &sense.to_string());
    assert_eq!(status, 404, "it is told to open another");
    let (status, answer) = support::post(&served, stale, &sense.to_string());
    assert_eq!(status, 200, "{answer:#}");
    assert_eq!(
        answer["result"]["structuredContent"]["success"], true,
        "{answer:#}"
    );
    let open = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let stale = stale.replace("before", "first");
    let (status, opened) = support::post(&served, &stale, &open.to_string());
    assert_eq!(status, 200, "{opened:#}");
}
