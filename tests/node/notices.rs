//! Notices of a node: to a program and to an address of the node file, of what is done and of what needs a person.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Bench, Caller, PATIENCE};

/// Takes what is posted to it, and answers 204.
fn address() -> (String, Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hooks/secret", listener.local_addr().unwrap());
    let (send, received) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap() > 0 {}
            let head = head.to_ascii_lowercase();
            let length = head.split("content-length: ").nth(1).unwrap();
            let length = length.split("\r\n").next().unwrap().parse().unwrap();
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let answer = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
            reader.get_mut().write_all(answer).unwrap();
            if send.send(serde_json::from_slice(&body).unwrap()).is_err() {
                return;
            }
        }
    });
    (url, received)
}

#[test]
fn a_program_and_an_address_are_told_of_ends_and_of_needed_persons() {
    let bench = Bench::at_test_rate();
    let (url, received) = address();
    let notices_path = bench.path("told.jsonl");
    let file = format!(
        "name = \"bench\"\n[notices]\nwebhook = \"{url}\"\ncommand = [\"tee\", \"-a\", \"{}\"]\n",
        notices_path.display()
    );
    std::fs::write(bench.path("node.toml"), file).unwrap();
    let config = bench.path("node.toml");
    let served = bench.serve(&[
        "--config",
        config.to_str().unwrap(),
        "--state",
        &bench.state(),
    ]);
    let drawn = served.call("stroke", &json!({"scene": "short"}));
    assert_eq!(drawn["success"], true, "{drawn}");
    let done = received.recv_timeout(PATIENCE).unwrap();
    assert_eq!(
        (&done["kind"], &done["node"]),
        (&json!("done"), &json!("bench")),
        "{done}"
    );
    assert!(done["text"].as_str().unwrap().contains("drew"), "{done}");
    assert!(
        done["job"].is_string() && done["time_ms"].is_u64(),
        "{done}"
    );
    served.call("stop", &json!({}));
    let needs = received.recv_timeout(PATIENCE).unwrap();
    assert_eq!(needs["kind"], "needs_you", "{needs}");
    let until = Instant::now() + PATIENCE;
    let both = loop {
        let text = std::fs::read_to_string(&notices_path).unwrap_or_default();
        if text.matches("\"kind\"").count() == 2 {
            break text;
        }
        assert!(Instant::now() < until, "the program was told {text}");
        sleep(Duration::from_millis(50));
    };
    assert!(
        both.contains("\"done\"") && both.contains("\"needs_you\""),
        "{both}"
    );
    // The address may be a secret, so it is never shown.
    let audit = std::fs::read_to_string(bench.path("state").join("audit.log")).unwrap();
    assert!(!audit.contains("hooks/secret"), "{audit}");
}
