//! A stop that stops: from another connection, by every name, with any arguments, and on the wire.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

mod support;

use std::io::Write;
use std::process::Stdio;
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Bench, PATIENCE, lines};

/// A line long enough to be stopped in its middle.
const LONG_LINE: &str =
    "[[[0.0, 0.0], [80.0, 0.0], [80.0, 20.0], [0.0, 20.0], [0.0, 40.0], [80.0, 40.0]]]";

fn long_bench() -> Bench {
    let bench = Bench::new();
    bench.scene("long", &support::scene("long", LONG_LINE));
    bench
}

fn call(bench: &Bench, node: &str, args: &[&str]) -> (i32, Value) {
    let mut all = args.to_vec();
    all.extend(["--node", node]);
    bench.call(&all)
}

/// Waits until the pen is on the paper.
fn wait_until_drawing(bench: &Bench, node: &str) {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        let (_, sensed) = call(bench, node, &["sense"]);
        let height = sensed["tip"]["height_mm"].as_f64().unwrap_or(f64::MAX);
        if sensed["state"] == "moving" && height < 0.5 {
            return;
        }
        sleep(Duration::from_millis(50));
    }
    panic!("it never drew");
}

#[test]
fn a_stop_from_another_connection_ends_the_stroke_and_both_are_told() {
    let bench = long_bench();
    let served = bench.serve(&[]);
    let node = served.url.as_str();
    std::thread::scope(|scope| {
        let stroke = scope.spawn(|| call(&bench, node, &["stroke", r#"{"scene":"long"}"#]));
        wait_until_drawing(&bench, node);
        let (code, stopped) = call(&bench, node, &["stop", "\"now!!\""]);
        assert_eq!(code, 0, "{stopped:#}");
        assert!(
            stopped["stopped_after_ms"].as_f64().unwrap() < 1500.0,
            "{stopped:#}"
        );
        assert_eq!(stopped["arms"][0]["report"]["verified"], true);
        assert_eq!(stopped["arms"][0]["report"]["lifted"], true);
        let (code, stroke) = stroke.join().unwrap();
        assert_eq!(
            (code, &stroke["code"]),
            (1, &Value::from("stopped")),
            "{stroke:#}"
        );
        assert_eq!(stroke["job"]["state"], "stopped");
    });
    let (_, sensed) = call(&bench, node, &["sense"]);
    let height = sensed["tip"]["height_mm"].as_f64().unwrap();
    assert!(height > 6.0, "the pen is {height} mm up");
    let (_, refused) = call(&bench, node, &["stroke", r#"{"scene":"short"}"#]);
    assert_eq!(refused["code"], "needs_reset", "{refused:#}");
    assert_eq!(call(&bench, node, &["reset"]).0, 0);
    assert_eq!(call(&bench, node, &["stroke", r#"{"scene":"short"}"#]).0, 0);
}

#[test]
fn any_arguments_and_every_name_stop() {
    let bench = Bench::new();
    let served = bench.serve(&[]);
    let node = served.url.as_str();
    let long = format!("\"{}\"", "stop ".repeat(2000));
    for arguments in [
        "{}",
        "null",
        "\"\"",
        "[]",
        "stop!!",
        "42",
        "{\"node\":\"nowhere\"}",
        "{'a",
        &long,
    ] {
        let (code, result) = call(&bench, node, &["stop", arguments]);
        assert_eq!(
            (code, &result["success"]),
            (0, &Value::from(true)),
            "{arguments:.20}: {result:#}"
        );
    }
    for name in [
        "robot_stop",
        "emergency_stop",
        "estop",
        "e_stop",
        "E-Stop",
        "halt",
        "abort()",
        "freeze",
    ] {
        assert_eq!(call(&bench, node, &[name]).0, 0, "{name}");
    }
}

#[test]
fn an_operators_stop_is_an_operators_to_reset_and_an_emergency_stop_is_latched() {
    let bench = Bench::new();
    let served = bench.serve(&[]);
    let node = served.url.as_str();
    let verb = |word: &str| bench.run(&[word]).status.code();
    assert_eq!(verb("stop"), Some(0));
    let (_, refused) = call(&bench, node, &["reset"]);
    assert_eq!(refused["code"], "needs_reset", "{refused:#}");
    assert_eq!(verb("reset"), Some(0));
    assert_eq!(verb("estop"), Some(0));
    assert_eq!(verb("reset"), Some(1));
    let (_, refused) = call(&bench, node, &["stroke", r#"{"scene":"short"}"#]);
    assert_eq!(refused["code"], "emergency_stop", "{refused:#}");
    assert_eq!((verb("clear"), verb("reset")), (Some(0), Some(0)));
    assert_eq!(call(&bench, node, &["stroke", r#"{"scene":"short"}"#]).0, 0);
}

#[test]
fn a_caller_that_hangs_up_stops_the_arm() {
    let bench = long_bench();
    let served = bench.serve(&[]);
    let node = served.url.as_str();
    let mut caller = bench
        .command(&["call", "stroke", r#"{"scene":"long"}"#, "--node", node])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until_drawing(&bench, node);
    caller.kill().unwrap();
    caller.wait().unwrap();
    let began = Instant::now();
    loop {
        let (_, sensed) = call(&bench, node, &["sense"]);
        if sensed["state"] == "stopped" {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{sensed:#}");
        sleep(Duration::from_millis(100));
    }
}

#[test]
fn the_end_of_standard_input_stops_the_arm_and_ends_the_node() {
    let bench = long_bench();
    let mut child = bench
        .command(&["serve"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let output = lines(child.stdout.take().unwrap());
    for line in [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"stroke","arguments":{"scene":"long"},"_meta":{"progressToken":7}}}"#,
    ] {
        writeln!(input, "{line}").unwrap();
    }
    let moving = spawn(move || {
        while let Ok(line) = output.recv_timeout(PATIENCE) {
            if line.contains("long: ") && line.contains("s left") {
                return output;
            }
        }
        panic!("it never moved");
    });
    let _output = moving.join().unwrap();
    drop(input);
    let mut child = support::Running(child);
    assert_eq!(child.exit_code(), Some(0));
}
