//! An MCP client draws twice, by `{}` and by `"[object Object]"`, over standard input and output and
//! over HTTP, and hears the same: the transcript is kept, with numbers and paths taken out.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a failing test may panic"
)]

use crate::support;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use steadyhand::mcp::client::{self, McpClient};
use steadyhand::mcp::{CallWatch, ProgressSender, ReceivedArguments, ToolAnswer};
use support::{Bench, SHORT_LINES, scene};
use tokio_util::sync::CancellationToken;

/// The scene that `{}` means is a short one here: the arm moves in real time.
fn bench() -> Bench {
    let bench = Bench::at_test_rate();
    bench.scene("default", &scene("default", SHORT_LINES));
    bench
}

async fn converse(client: &McpClient) -> String {
    let mut printed = String::new();
    for tool in client.list().await.unwrap() {
        let _ = writeln!(
            printed,
            "tool {}: {}",
            tool.name,
            tool.description.lines().next().unwrap()
        );
    }
    for (text, arguments) in [
        ("{}", ReceivedArguments::Value(json!({}))),
        (
            "\"[object Object]\"",
            ReceivedArguments::Text("[object Object]".to_owned()),
        ),
    ] {
        let (answer, received) = stroke(client, arguments).await;
        assert!(received, "no progress for {text}");
        let _ = writeln!(printed, "\nstroke {text}\n{}", written(&answer));
        let reset = client
            .call("reset", ReceivedArguments::Absent, nobody())
            .await
            .unwrap();
        assert!(!reset.is_error, "{}", reset.text);
    }
    printed
}

fn nobody() -> CallWatch {
    CallWatch {
        cancelled: CancellationToken::new(),
        progress: None,
    }
}

async fn stroke(client: &McpClient, arguments: ReceivedArguments) -> (ToolAnswer, bool) {
    let (sender, news) = ProgressSender::pair();
    let watch = CallWatch {
        progress: Some(sender),
        ..nobody()
    };
    let answer = client.call("stroke", arguments, watch).await.unwrap();
    let refused = news.has_changed().unwrap_or(true) || !news.borrow().message.is_empty();
    (answer, refused)
}

fn written(answer: &ToolAnswer) -> String {
    let pictures: Vec<&str> = answer
        .images
        .iter()
        .map(|(mime, _)| mime.as_str())
        .collect();
    let data =
        serde_json::to_string_pretty(&plain(&Value::Object(answer.structured.clone()))).unwrap();
    let lines = answer
        .text
        .lines()
        .map(|line| match line.strip_prefix("File: ") {
            Some(path) => format!("File: {}", file_name(path)),
            None => numberless(line),
        });
    let text = lines.collect::<Vec<_>>().join("\n");
    let whole = format!(
        "error {}\npictures {pictures:?}\n{text}\n{data}",
        answer.is_error
    );
    // A joint is named where it was further off than its encoder rounds.
    match answer.structured.get("joint_deviation_joint") {
        Some(joint) => whole.replace(&format!("({}; ", joint.as_str().unwrap()), "("),
        None => whole,
    }
}

fn file_name(path: &str) -> String {
    let name = Path::new(path).file_name().unwrap();
    name.to_string_lossy().into_owned()
}

/// Numbers, digits and paths differ from run to run and from machine to machine.
fn plain(value: &Value) -> Value {
    match value {
        Value::Number(_) => json!("#"),
        Value::String(text) if text.starts_with('/') => {
            json!(file_name(text))
        }
        Value::String(text) => json!(numberless(text)),
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(fields) => fields
            .iter()
            .filter(|(key, _)| *key != "joint_deviation_joint")
            .map(|(key, value)| {
                let value = if key == "plan_hash" {
                    json!("…")
                } else {
                    plain(value)
                };
                (key.clone(), value)
            })
            .collect(),
        other => other.clone(),
    }
}

fn numberless(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        let digit = c.is_ascii_digit() || (c == '.' && out.ends_with('#'));
        match (digit, out.ends_with('#')) {
            (true, true) => {}
            (true, false) => out.push('#'),
            (false, _) => out.push(c),
        }
    }
    out
}

fn compare(printed: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots/first_light.txt");
    if std::env::var_os("REWRITE_SNAPSHOTS").is_some() {
        std::fs::write(&path, printed).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    assert!(
        kept == printed,
        "{} says otherwise:\n{printed}",
        path.display()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_on_standard_input_and_output_draws() {
    let bench = bench();
    let mut child = tokio::process::Command::from(bench.command(&["serve"]))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let (output, input) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    let opening = client::connect_streams_within(output, input, "the node", client::CONNECT_MAX);
    let client = opening.await.unwrap();
    compare(&converse(&client).await);
    client.close().await;
    assert!(child.wait().await.unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_on_http_draws() {
    let bench = bench();
    let served = bench.serve(&[]);
    let client = client::connect(&served.url).await.unwrap();
    compare(&converse(&client).await);
    client.close().await;
}
