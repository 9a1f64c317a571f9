//! The audit log of a node that is killed: what it loses, what it says of that, and what cannot be changed in it unseen.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

use crate::support;
use std::time::{Duration, Instant};

use serde_json::json;
use support::{Bench, PATIENCE, Served, call_at, until};

/// Two lines of 60 mm: several seconds of arm time.
const LINES: &str = "[[[0.0, 0.0], [60.0, 0.0]], [[60.0, 12.0], [0.0, 12.0]]]";

struct Log<'a>(&'a Bench);

impl Log<'_> {
    fn text(&self) -> String {
        std::fs::read_to_string(self.0.path("state/audit.log")).unwrap()
    }

    fn of_kind(&self, kind: &str) -> Vec<String> {
        let kind = format!("\t{kind}\t");
        let text = self.text();
        let lines = text.lines().filter(|line| line.contains(&kind));
        lines.map(str::to_owned).collect()
    }

    /// Waits for so many records, because a running node may still be writing.
    fn awaits(&self, kind: &str, count: usize) -> Vec<String> {
        until(kind, || self.of_kind(kind), |found| found.len() >= count)
    }

    /// Returns exit code and output of `audit verify`.
    fn verify(&self) -> (Option<i32>, String) {
        let log = self.0.path("state/audit.log").display().to_string();
        let output = self.0.run(&["audit", "verify", &log]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), text)
    }
}

/// Calls `sense`, by each of its names in turn, until the arm moves.
fn look_until_it_moves(served: &Served) {
    let (host, began) = (served.host(), Instant::now());
    for tool in ["sense", "robot_sense"].into_iter().cycle() {
        let sensed = call_at(&host, tool, &json!({}));
        if sensed.get("state") == Some(&json!("moving")) {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{sensed:#}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_killed_node_loses_looks_at_most_and_its_next_start_says_so() {
    let bench = Bench::new();
    bench.scene("short", &support::scene("short", LINES));
    let (state, log) = (bench.state(), Log(&bench));
    let mut served = bench.serve(&["--state", &state]);
    let host = served.host();
    let drawing = std::thread::spawn(move || call_at(&host, "stroke", &json!({"scene": "short"})));
    look_until_it_moves(&served);
    // What moves was signed and on the disk before, with all that was noted before it.
    let motions = log.of_kind("motion");
    let [motion] = motions.as_slice() else {
        unreachable!("{motions:?}")
    };
    assert!(motion.contains("job-1"), "{motion}");
    // By itself, or with what was noted together with it.
    let text = log.text();
    let from_it = text.lines().skip_while(|line| line != motion);
    assert!(from_it.clone().any(|line| !line.ends_with("\t-")), "{text}");
    for _ in 0..30 {
        call_at(&served.host(), "sense", &json!({}));
    }
    served.child.0.kill().unwrap();
    served.child.0.wait().unwrap();
    drawing.join().unwrap();
    let before = log.text();
    let outcome = log.verify();
    assert_eq!(outcome.0, Some(0), "{outcome:?}");
    assert_eq!(log.of_kind("motion"), motions);

    let mut again = bench.serve(&["--state", &state]);
    let starts = log.awaits("start", 2);
    let is_told = |start: &String| start.contains("\"gap\"");
    let is_told: Vec<bool> = starts.iter().map(is_told).collect();
    assert_eq!(is_told, [false, true], "{starts:?}");
    assert!(log.text().starts_with(&before));
    assert_eq!(again.child.terminate(), Some(0));
    // A log that was closed lacks nothing.
    let mut third = bench.serve(&["--state", &state]);
    let starts = log.awaits("start", 3);
    assert!(!starts.last().unwrap().contains("\"gap\""), "{starts:?}");
    for _ in 0..20 {
        call_at(&third.host(), "list_nodes", &json!({}));
    }
    assert_eq!(third.child.terminate(), Some(0));
    let outcome = log.verify();
    assert_eq!(outcome.0, Some(0), "{outcome:?}");
    tampering_within_a_batch_is_found(&bench, &log);
}

fn tampering_within_a_batch_is_found(bench: &Bench, log: &Log<'_>) {
    let text = log.text();
    let mut inside = text.lines().filter(|line| line.ends_with("\t-"));
    let one = inside.find(|line| line.contains("list_nodes")).unwrap();
    let number = one.split('\t').next().unwrap();
    for changed in [
        one.replace("list_nodes", "list_modes") + "\n",
        String::new(),
    ] {
        let forged = text.replace(&format!("{one}\n"), &changed);
        std::fs::write(bench.path("state/audit.log"), forged).unwrap();
        let (code, phrase) = log.verify();
        assert_eq!(code, Some(1), "{phrase}");
        assert!(phrase.contains(&format!("record {number} ")), "{phrase}");
    }
}

/// A log that takes nothing more, as on a full disk, while the much smaller journals still find room.
#[test]
fn nothing_moves_without_its_record_and_a_stop_needs_none() {
    const FILE_BYTES_MAX: usize = 64 << 10;
    let bench = Bench::new();
    bench.scene("short", &support::scene("short", LINES));
    let (state, log) = (bench.state(), Log(&bench));
    let serve = ["serve", "--http", "127.0.0.1:0", "--state", state.as_str()];
    let node = bench.command(&serve);
    // Each file of this node ends at 64 KiB (`ulimit` counts halves of one).
    let limited = r#"trap "" XFSZ; ulimit -f 128; exec "$0" "$@""#;
    let mut command = std::process::Command::new("sh");
    command.args(["-c", limited]).arg(node.get_program());
    command.args(node.get_args());
    let environment = node.get_envs();
    command.envs(environment.filter_map(|(key, value)| Some((key, value?))));
    let mut served = support::served(command);
    let host = served.host();
    let lost = "x".repeat(400);
    let began = Instant::now();
    while log.text().len() < FILE_BYTES_MAX - 4096 {
        call_at(&host, "no_such_tool", &json!({"why": lost}));
        assert!(began.elapsed() < PATIENCE, "{} bytes", log.text().len());
    }
    // Records of calls take the last bytes, until none fits any more.
    while call_at(&host, "reset", &json!({}))["code"] != json!("journal") {
        call_at(&host, "no_such_tool", &json!({"why": lost}));
        assert!(began.elapsed() < PATIENCE, "{} bytes", log.text().len());
    }
    let refused = call_at(&host, "stroke", &json!({"scene": "short"}));
    assert_eq!(refused["code"], json!("journal"), "{refused:#}");
    let message = refused["message"].to_string();
    let expected = "the audit log cannot be written";
    assert!(message.contains(expected), "{refused:#}");
    let motions = log.of_kind("motion").len();
    let sensed = call_at(&host, "sense", &json!({}));
    assert_ne!(sensed["state"], json!("moving"), "{sensed:#}");
    let stopped = call_at(&host, "stop", &json!({}));
    assert_eq!(stopped["success"], json!(true), "{stopped:#}");
    let reset = call_at(&host, "reset", &json!({}));
    assert_eq!(reset["code"], json!("journal"), "{reset:#}");
    assert_eq!(log.of_kind("motion").len(), motions);
    assert_eq!(served.child.terminate(), Some(0));
    // Room again: what was lost is counted in the record, and motion is possible.
    let again = bench.serve(&["--state", &state]);
    let reply = call_at(&again.host(), "reset", &json!({}));
    assert_eq!(reply["success"], json!(true), "{reply:#}");
    assert_eq!(log.verify().0, Some(0), "{:?}", log.verify());
}
