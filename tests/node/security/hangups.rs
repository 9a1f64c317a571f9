//! Senders that close as soon as they have sent: their stops are carried out, and what they would move does not go on.

use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::json;

use super::support::{Bench, Served, bearer, connect, post, scene, tool_call, until};
use super::{Guarded, flood, result};

/// Requests of each kind: of those that are dropped with their connection, this many are not all heard.
const TRIES: usize = 24;

/// Sends a whole request and closes at once.
fn send_and_close(served: &Served, path: &str, headers: &str, body: &str) {
    let (mut stream, host) = connect(served);
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
}

/// Waits until the audit log holds so many records with these words.
fn until_recorded(bench: &Bench, words: &str, count: usize) {
    let recorded = || {
        let log = std::fs::read_to_string(bench.path("state/audit.log")).unwrap();
        log.lines().filter(|line| line.contains(words)).count()
    };
    until(words, recorded, |recorded| *recorded >= count);
}

#[test]
fn a_stop_is_carried_out_though_its_sender_closes_at_once() {
    let node = Guarded::new();
    let [_, planner, operator] = node.tokens.clone();
    let origin = node.served.url.replace("/mcp", "");
    let from_page = format!("Origin: {origin}\r\nSec-Fetch-Site: same-origin\r\n");
    let stop = tool_call("stop", &json!({}));
    let streams = format!("{}{}", bearer(&planner), flood::STREAMS);
    for (path, headers, body, recorded) in [
        ("/mcp", bearer(&planner), stop.as_str(), "\"tool\":\"stop\""),
        ("/mcp", streams, &stop, "\"tool\":\"stop\""),
        (
            "/operator",
            bearer(&operator),
            r#"{"verb":"estop"}"#,
            "token operator: estop",
        ),
        ("/page/stop", from_page, "", "(page): stop"),
    ] {
        let log = std::fs::read_to_string(node.bench.path("state/audit.log")).unwrap();
        let before = log.lines().filter(|line| line.contains(recorded)).count();
        for _ in 0..TRIES {
            send_and_close(&node.served, path, &headers, body);
        }
        until_recorded(&node.bench, recorded, before + TRIES);
    }
}

#[test]
fn what_a_sender_that_closes_at_once_would_move_does_not_go_on() {
    let bench = Bench::new();
    let row = |row: u32| format!("[[0.0, {row}.0], [60.0, {row}.0]]");
    let rows: Vec<String> = (0..30).map(row).collect();
    bench.scene("long", &scene("long", &format!("[{}]", rows.join(", "))));
    let state = bench.state();
    let served = bench.serve(&["--state", &state]);
    // All of it takes half a minute.
    let drawn_within = Duration::from_secs(20);
    for headers in ["", flood::STREAMS] {
        let stroke = tool_call("stroke", &json!({"scene": "long", "again": true}));
        let began = Instant::now();
        send_and_close(&served, "/mcp", headers, &stroke);
        std::thread::sleep(Duration::from_secs(1));
        // It was not begun, or it was stopped.
        loop {
            let (_, sensed) = post(&served, "", &tool_call("sense", &json!({})));
            let state = result(&sensed)["state"].clone();
            if matches!(state.as_str(), Some("stopped" | "holding" | "limp")) {
                break;
            }
            assert!(began.elapsed() < drawn_within, "{sensed:#}");
        }
        let (_, reset) = post(&served, "", &tool_call("reset", &json!({})));
        assert_eq!(result(&reset)["success"], true, "{reset:#}");
    }
}
