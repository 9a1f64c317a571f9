//! Tests what a guarded node draws for a client that was refused and drops what was refused.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

use crate::support::{Bench, Served};
use crate::torture::{STREAMS, post, session};
use serde_json::{Value, json};

fn serve(bench: &Bench) -> Served {
    std::fs::write(bench.path("node.toml"), "forgiveness = \"guarded\"\n").unwrap();
    let config = bench.path("node.toml").display().to_string();
    bench.serve(&["--config", &config, "--state", &bench.state()])
}

/// A client that opens a session for each call drew the default scene.
#[test]
fn a_refusal_outlives_the_session_of_a_client_without_a_token() {
    let bench = Bench::at_test_rate();
    let served = serve(&bench);
    let call = |arguments: Value| {
        let header = session(&served);
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "stroke", "arguments": arguments}});
        let (_, answer) = post(&served, &[STREAMS, &header], &body.to_string());
        let answer: Value = serde_json::from_str(&answer).unwrap();
        answer["result"]["structuredContent"].clone()
    };
    call(json!({"scene": "koy"}));
    let refused = call(json!({}));
    assert_eq!(refused["code"], "arguments_refused", "{refused:#}");
    let drawn = call(json!({"scene": "short"}));
    assert_eq!(drawn["success"], true, "{drawn:#}");
}
