//! The official conformance suite against our transport and hooks, with the suite's fixtures behind them.
//!
//! `cargo test --test node mcp_conformance:: -- --ignored` runs it; it needs `npx` and the npm registry.
//! With `CONFORMANCE_PORT` set it serves the fixtures there instead, for running one scenario by hand.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    deprecated,
    reason = "a failing test may panic, and the suite asks for what is deprecated too"
)]

use std::path::Path;

use steadyhand::mcp::http::{HttpConfig, listen};
use steadyhand::mcp::never_repair;
use tokio_util::sync::CancellationToken;

mod asks;
mod fixtures;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npx and the npm registry"]
async fn every_required_scenario_of_both_eras_passes() {
    let port = std::env::var("CONFORMANCE_PORT").unwrap_or_else(|_| "0".to_owned());
    let listening = listen(format!("127.0.0.1:{port}").parse().unwrap())
        .await
        .unwrap();
    let url = format!("http://{}/mcp", listening.address());
    let stop = CancellationToken::new();
    let serving = listening.serve_with(
        fixtures::Fixtures::default(),
        HttpConfig::default(),
        never_repair,
        stop.clone(),
    );
    if port != "0" {
        eprintln!("serving the fixtures at {url}");
        return serving.await.unwrap();
    }
    let serving = tokio::spawn(serving);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/run");
    let suite = tokio::process::Command::new(script)
        .arg(url)
        .status()
        .await
        .unwrap();
    stop.cancel();
    serving.await.unwrap().unwrap();
    assert!(suite.success(), "{suite}");
}
