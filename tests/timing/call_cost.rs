//! Measures what a call that only looks costs, beside what any message costs, in one run.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a failing test may panic; what was measured is shown"
)]

use crate::support;
use std::io::Write;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::Receiver;

use serde_json::{Value, json};
use support::{Bench, PATIENCE, Running};

/// Messages of one kind in a round, and rounds.
const MESSAGES: u32 = 300;
const ROUNDS: u32 = 8;

/// Calls that are made, and the most that each may cost, in the cost of a `ping`.
const KINDS: [(&str, f64); 4] = [
    ("", 1.0),
    ("list_nodes", 2.0),
    ("system_list_nodes", 2.0),
    ("sense", 3.0),
];

/// A node on a pipe, with the scenes in the binary alone: where there is a folder of scenes, each list looks at it.
struct Pipe {
    child: Running,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Pipe {
    fn open(bench: &Bench) -> Self {
        let mut child = Command::new(support::binary())
            .env("XDG_RUNTIME_DIR", bench.path(""))
            .env("XDG_STATE_HOME", bench.path("state-home"))
            .arg("serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = support::lines(child.stdout.take().unwrap());
        let input = child.stdin.take().unwrap();
        let child = Running(child);
        let mut pipe = Self {
            child,
            input,
            lines,
        };
        let client = json!({"name": "t", "version": "1"});
        let hello =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        pipe.request(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}));
        pipe.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        pipe
    }

    fn send(&mut self, message: &Value) {
        self.input
            .write_all(format!("{message}\n").as_bytes())
            .unwrap();
    }

    fn request(&mut self, message: &Value) {
        self.send(message);
        let line = self.lines.recv_timeout(PATIENCE).unwrap();
        assert!(!line.contains("\"isError\":true"), "{line}");
    }

    /// The nanoseconds of processor time that the node's threads have had, those of its arms aside.
    fn used_ns(&self) -> u64 {
        let tasks = format!("/proc/{}/task", self.child.0.id());
        let threads = std::fs::read_dir(tasks).unwrap();
        let used = threads.map(|thread| {
            let read = |file| std::fs::read_to_string(thread.as_ref().unwrap().path().join(file));
            let name = read("comm").unwrap_or_default();
            let times = read("schedstat").unwrap_or_default();
            let on_processor = times.split(' ').next().and_then(|ns| ns.parse().ok());
            on_processor
                .filter(|_| !name.starts_with("arm"))
                .unwrap_or(0)
        });
        used.sum()
    }
}

fn message(tool: &str) -> Value {
    match tool {
        "" => json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}),
        tool => {
            let params = json!({"name": tool, "arguments": {}});
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        }
    }
}

#[test]
fn looking_costs_little_more_than_any_message() {
    let bench = Bench::new();
    let mut pipe = Pipe::open(&bench);
    let mut used_ns = KINDS.map(|_| 0);
    for round in 0..=ROUNDS {
        for ((tool, _), used_ns) in KINDS.iter().zip(&mut used_ns) {
            let (before, message) = (pipe.used_ns(), message(tool));
            for _ in 0..MESSAGES {
                pipe.request(&message);
            }
            // The first round warms up.
            if round > 0 {
                *used_ns += pipe.used_ns() - before;
            }
        }
    }
    let [ping, ..] = used_ns.map(|ns| f64::from(u32::try_from(ns / 1_000).unwrap()));
    for ((tool, most), ns) in KINDS.iter().zip(used_ns) {
        let us = f64::from(u32::try_from(ns / 1_000).unwrap());
        let (times, each) = (us / ping, us / f64::from(MESSAGES * ROUNDS));
        eprintln!("{tool:>20}: {each:.1} µs, {times:.2} times a ping");
        assert!(
            times <= *most || tool.is_empty(),
            "{tool}: {times:.2} times a ping"
        );
    }
}
