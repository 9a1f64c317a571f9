//! A node that is told to end: what is asked of it while its arm goes to rest.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::stop::{begin_to_draw, drawing_on_a_port, is_at_rest, joints_deg, long_bench};
use crate::support::{Bench, unless_starved};

/// Asks an operator's verb of the node; `None` once no node answers.
fn ask(bench: &Bench, verb: &str) -> Option<Value> {
    let mut stream = UnixStream::connect(bench.path("steadyhand/local.sock")).ok()?;
    writeln!(stream, r#"{{"verb":"{verb}"}}"#).ok()?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).ok()?;
    serde_json::from_str(&line).ok()
}

#[test]
fn what_would_move_the_arm_of_a_node_that_ends_is_refused() {
    unless_starved(|| {
        let bench = long_bench();
        let (_sim, path, mut served) = drawing_on_a_port(&bench);
        let _caller = begin_to_draw(&bench, &served.url);
        served.child.signal(Signal::TERM);
        let mut refused = 0;
        while let Some(reply) = ask(&bench, "reset") {
            assert_eq!(reply["done"], false, "{reply}");
            refused += u32::from(reply["text"].to_string().contains("shutting down"));
            sleep(Duration::from_millis(5));
        }
        assert!(refused > 0, "no refusal says why");
        assert_eq!(served.child.exit_code(), Some(0));
        let joints = joints_deg(&bench, &path);
        assert!(is_at_rest(&joints), "{joints:?}");
    });
}

#[test]
fn a_node_that_is_told_to_end_twice_still_parks_its_arm() {
    unless_starved(|| {
        let bench = long_bench();
        let (_sim, path, mut served) = drawing_on_a_port(&bench);
        let _caller = begin_to_draw(&bench, &served.url);
        served.child.signal(Signal::TERM);
        for again in [Signal::TERM, Signal::HUP, Signal::TERM] {
            sleep(Duration::from_millis(300));
            served.child.signal(again);
        }
        assert_eq!(served.child.exit_code(), Some(0));
        let joints = joints_deg(&bench, &path);
        assert!(is_at_rest(&joints), "{joints:?}");
    });
}
