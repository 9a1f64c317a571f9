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
