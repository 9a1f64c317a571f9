//! Stops while a disk does not answer: a pipe without a writer stands for a file on it.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Bench, connect};

/// Longest wait for a stop's answer on a busy machine.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// Puts a pipe in the place of a file: a thread that opens it waits.
fn stall(file: &Path) {
    std::fs::remove_file(file).unwrap();
    let pipe = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, file, pipe, 0o600.into(), 0).unwrap();
}

fn ask(bench: &Bench, verb: &Value) -> UnixStream {
    let stream = UnixStream::connect(bench.path("steadyhand/local.sock")).unwrap();
    stream.set_read_timeout(Some(ANSWER_MAX)).unwrap();
    writeln!(&stream, "{verb}").unwrap();
    stream
}

/// Checks that the node answers a stop.
fn is_stopped(bench: &Bench, meanwhile: &str) {
    let mut line = String::new();
    let answered = BufReader::new(ask(bench, &json!({"verb": "stop"}))).read_line(&mut line);
    assert!(answered.is_ok(), "{meanwhile}: the stop is not answered");
    let reply: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(reply["done"], true, "{meanwhile}: {reply}");
}

#[test]
fn a_stop_does_not_wait_for_the_journal_of_an_old_job() {
    for verb in ["progress", "pen"] {
        let bench = Bench::at_test_rate();
        let state = bench.state();
        let served = bench.serve(&["--state", &state, "--enable", "short"]);
        let drawn = bench.call(&["stroke", r#"{"scene":"short"}"#, "--node", &served.url]);
        assert_eq!(drawn.0, 0, "{:#}", drawn.1);
        // Another job takes its place as the last one.
        let reset = bench.call(&["reset", "--node", &served.url]);
        assert_eq!(reset.0, 0, "{:#}", reset.1);
        stall(&bench.path("state/jobs/job-1/journal"));
        let _asked = ask(&bench, &json!({"verb": verb, "job": "job-1"}));
        std::thread::sleep(Duration::from_millis(200));
        is_stopped(&bench, verb);
    }
}

#[test]
fn a_stop_does_not_wait_for_the_file_of_tokens() {
    let bench = Bench::new();
    let state = bench.state();
    let made = bench.run(&[
        "--state", &state, "token", "add", "hand", "--role", "operator",
    ]);
    assert!(made.status.success(), "{made:?}");
    let token = String::from_utf8(made.stdout).unwrap();
    let token = token.trim();
    let served = bench.serve(&["--state", &state]);
    stall(&bench.path("state/tokens.toml"));
    let (mut stream, host) = connect(&served);
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}"
    )
    .unwrap();
    std::thread::sleep(Duration::from_millis(200));
    is_stopped(&bench, "a token");
}

/// Files of this process end at 16 KiB: the journal fits, the pictures do not.
#[test]
fn a_drawing_whose_pictures_find_no_place_is_no_success_and_says_so() {
    let bench = Bench::at_test_rate();
    let limited = r#"trap "" XFSZ; ulimit -f 16; exec "$0" "$@""#;
    for (arguments, is_drawn) in [
        (r#"{"scene":"short"}"#, true),
        (r#"{"scene":"short","dry_run":true}"#, false),
    ] {
        let call = bench.plain_command(&["call", "--json", "stroke", arguments]);
        let mut command = std::process::Command::new("bash");
        command
            .args(["-c", limited])
            .arg(call.get_program())
            .args(call.get_args());
        command.envs(
            call.get_envs()
                .filter_map(|(key, value)| Some((key, value?))),
        );
        let output = command.output().unwrap();
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{result:#}");
        assert_eq!(result["code"], "files_not_written", "{result:#}");
        let message = result["message"].as_str().unwrap();
        assert!(message.contains("plan.png"), "{message}");
        assert!(message.contains("Next: "), "{message}");
        if is_drawn {
            assert_eq!(result["job"]["state"], "reached", "{result:#}");
        }
    }
}

#[test]
fn all_pictures_of_a_drawing_lie_where_out_says() {
    let bench = Bench::at_test_rate();
    let out = bench.path("mine");
    let drawn = bench.run(&[
        "draw",
        "--text",
        "Hi",
        "--out",
        out.to_str().unwrap(),
        "--json",
    ]);
    let result: Value = serde_json::from_slice(&drawn.stdout).unwrap();
    let files = result["files"].as_array().unwrap();
    assert!(!files.is_empty());
    for file in files {
        let file = Path::new(file.as_str().unwrap());
        assert!(file.starts_with(&out) && file.is_file(), "{result:#}");
    }
    assert!(!bench.path("out").exists(), "{result:#}");
}
