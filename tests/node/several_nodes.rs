//! Several nodes of one user: each is found and stopped, however it was started.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use serde_json::json;

use crate::support::{self, Bench, Caller, Served};

/// A stop that names no node stops each, and says so of each.
fn assert_one_stop_stops(bench: &Bench, nodes: &[&Served]) {
    let stop = bench.run(&["stop"]);
    let text = String::from_utf8(stop.stdout).unwrap();
    assert_eq!(stop.status.code(), Some(0), "{text}");
    assert_eq!(text.lines().count(), nodes.len(), "{text}");
    for node in nodes {
        let state = node.call("sense", &json!({}));
        assert_eq!(state["state"], "stopped", "{state:#}");
    }
}

#[test]
fn two_nodes_of_one_name_are_both_stopped() {
    let bench = Bench::at_test_rate();
    let [first, second] = ["one", "two"].map(|state| bench.path(state).display().to_string());
    let first = bench.serve(&["--state", &first]);
    let second = bench.serve(&["--state", &second]);
    assert_one_stop_stops(&bench, &[&first, &second]);
}

#[test]
fn a_node_with_a_socket_of_its_own_is_stopped_with_the_others() {
    let bench = Bench::at_test_rate();
    let path = |name: &str| bench.path(name).display().to_string();
    std::fs::create_dir(path("elsewhere")).unwrap();
    let first = bench.serve(&[
        "--state",
        &path("one"),
        "--socket",
        &path("elsewhere/own.sock"),
    ]);
    let second = bench.serve(&["--state", &path("two")]);
    assert_one_stop_stops(&bench, &[&first, &second]);
    first.child.signal(rustix::process::Signal::TERM);
}

/// Clients start a node without `XDG_RUNTIME_DIR`; a terminal has it.
#[test]
fn a_node_that_a_client_started_is_found_from_a_terminal() {
    let bench = Bench::at_test_rate();
    let (temporary, state) = (
        bench.path("client_tmp"),
        bench.path("one").display().to_string(),
    );
    std::fs::create_dir(&temporary).unwrap();
    let mut node = bench.serving(&["--state", &state]);
    node.env("TMPDIR", &temporary).env_remove("XDG_RUNTIME_DIR");
    let _served = support::served(node);
    let mut status = bench.command(&["status", "--state", &state]);
    let user = rustix::process::geteuid().as_raw();
    status
        .env("TMPDIR", &temporary)
        .env("XDG_RUNTIME_DIR", format!("/run/user/{user}"));
    let status = status.output().unwrap();
    assert!(status.status.success(), "{status:?}");
}
