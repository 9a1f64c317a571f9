//! Clients of one node: one on its standard input and output, others over HTTP, each HTTP call on a
//! connection and a thread of its own.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{ChildStdin, Stdio};
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::Instant;

use serde_json::{Value, json};

use super::support::{Bench, PATIENCE, Running, lines};

/// A process that serves both ways at once.
pub(super) struct Node {
    pub(super) child: Running,
    input: Option<ChildStdin>,
    output: Receiver<String>,
    address: String,
    next: u64,
    waiting: Vec<u64>,
    callers: Vec<Caller>,
    /// Answers that somebody has waited for, and that are still to be judged.
    answers: Vec<Value>,
    /// Its log, read by a thread as long as this is here.
    _stderr: Receiver<String>,
}

/// An HTTP call under way.
struct Caller {
    stream: TcpStream,
    thread: JoinHandle<Option<Value>>,
    broken_off: bool,
}

const OPENING: [&str; 2] = [
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"chaos","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
];

fn request(id: u64, tool: &str, arguments: &str) -> String {
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_else(|_| arguments.into());
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {"name": tool, "arguments": arguments}})
    .to_string()
}

impl Node {
    pub(super) fn start(
        bench: &Bench,
        args: &[&str],
        environment: &[(&str, &str)],
    ) -> Result<Self, String> {
        let all = [&["serve", "--http", "127.0.0.1:0", "--stdio"], args].concat();
        let mut child = bench
            .command(&all)
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = lines(child.stderr.take().unwrap());
        let mut input = child.stdin.take().unwrap();
        let output = lines(child.stdout.take().unwrap());
        let mut child = Running(child);
        let began = Instant::now();
        let mut received = Vec::new();
        let address = loop {
            let Ok(line) = stderr.recv_timeout(PATIENCE.saturating_sub(began.elapsed())) else {
                let ended = child.0.try_wait();
                let threads = threads(child.0.id());
                return Err(format!(
                    "the node does not serve: {ended:?}, {received:#?}, {threads:#?}"
                ));
            };
            if let Some(at) = line.find("http://") {
                break line[at + 7..].trim().trim_end_matches("/mcp").to_owned();
            }
            received.push(line);
        };
        for line in OPENING {
            writeln!(input, "{line}").unwrap();
        }
        let hello = output.recv_timeout(PATIENCE).unwrap();
        assert!(hello.contains("serverInfo"), "{hello}");
        Ok(Self {
            child,
            input: Some(input),
            output,
            address,
            next: 0,
            waiting: Vec::new(),
            callers: Vec::new(),
            answers: Vec::new(),
            _stderr: stderr,
        })
    }

    pub(super) fn call_by_pipe(&mut self, tool: &str, arguments: &str) {
        self.next += 1;
        let line = request(self.next, tool, arguments);
        if let Some(input) = &mut self.input
            && writeln!(input, "{line}").is_ok()
        {
            self.waiting.push(self.next);
        }
    }

    /// Calls over HTTP and waits for the answer; it is also among those that are judged later.
    pub(super) fn call(&mut self, tool: &str, arguments: &str) -> Option<Value> {
        let before = self.callers.len();
        self.call_by_http(tool, arguments);
        let caller = self.callers.drain(before..).next()?;
        let answer = caller.thread.join().unwrap();
        self.answers.extend(answer.clone());
        answer
    }

    pub(super) fn call_by_http(&mut self, tool: &str, arguments: &str) {
        let Ok(stream) = TcpStream::connect(&self.address) else {
            return;
        };
        let body = request(1, tool, arguments);
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            self.address,
            body.len()
        );
        let mut own = stream.try_clone().unwrap();
        let thread = std::thread::spawn(move || {
            own.set_read_timeout(Some(PATIENCE)).unwrap();
            own.write_all(head.as_bytes()).ok()?;
            own.write_all(body.as_bytes()).ok()?;
            let mut bytes = Vec::new();
            own.read_to_end(&mut bytes).ok()?;
            answer(&String::from_utf8_lossy(&bytes))
        });
        self.callers.push(Caller {
            stream,
            thread,
            broken_off: false,
        });
    }

    /// A client on HTTP hangs up.
    pub(super) fn hang_up(&mut self) {
        if let Some(caller) = self.callers.iter_mut().find(|one| !one.broken_off) {
            caller.broken_off = true;
            // It may have been answered and closed.
            let _ = caller.stream.shutdown(Shutdown::Both);
        }
    }

    /// The client at standard input takes its last request back.
    pub(super) fn cancel(&mut self) {
        let Some(id) = self.waiting.pop() else { return };
        let line = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": id}});
        if let Some(input) = &mut self.input {
            // The node may be gone.
            let _ = writeln!(input, "{line}");
        }
    }

    /// The client at standard input goes; the node ends in its own time.
    pub(super) fn end_input(&mut self) {
        self.excuse();
        self.input = None;
        self.child.exit_code();
    }

    /// Nobody can be answered any more.
    pub(super) fn excuse(&mut self) {
        for caller in &mut self.callers {
            caller.broken_off = true;
        }
        self.waiting.clear();
    }

    /// Answers that have come. A call that nobody broke off, and that ended without one, is told.
    pub(super) fn answers(&mut self) -> Result<Vec<Value>, String> {
        let mut found = std::mem::take(&mut self.answers);
        for caller in std::mem::take(&mut self.callers) {
            if !caller.thread.is_finished() {
                self.callers.push(caller);
                continue;
            }
            match caller.thread.join().unwrap() {
                Some(answer) => found.push(answer),
                None if caller.broken_off => {}
                None => return Err("a call over HTTP has no answer".to_owned()),
            }
        }
        while let Ok(line) = self.output.try_recv() {
            let Ok(answer) = serde_json::from_str::<Value>(&line) else {
                return Err(format!("no JSON on standard output: {line}"));
            };
            self.waiting.retain(|id| answer["id"] != *id);
            found.push(answer);
        }
        Ok(found)
    }

    pub(super) fn is_waited_for(&self) -> bool {
        !self.waiting.is_empty() || !self.callers.is_empty()
    }
}

/// Returns what each of a process's threads waits for.
fn threads(id: u32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{id}/task"))
        .into_iter()
        .flatten();
    let read = |path: std::path::PathBuf| std::fs::read_to_string(path).unwrap_or_default();
    tasks
        .flatten()
        .map(|task| {
            let [name, waits, call] =
                ["comm", "wchan", "syscall"].map(|what| read(task.path().join(what)));
            format!("{} {waits} {}", name.trim(), call.trim())
        })
        .collect()
}

/// The last JSON object of a body, plain or an event stream's.
fn answer(text: &str) -> Option<Value> {
    let (_, body) = text.split_once("\r\n\r\n")?;
    let lines = body.lines().rev();
    let mut read = lines.filter_map(|line| {
        let line = line.strip_prefix("data:").unwrap_or(line).trim();
        serde_json::from_str::<Value>(line).ok()
    });
    read.find(Value::is_object)
}
