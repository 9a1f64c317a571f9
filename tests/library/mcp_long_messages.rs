//! Tests long messages: only other long messages wait for them, and no number of them takes all memory.

#![allow(clippy::unwrap_used, reason = "a failing test may panic")]

use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use steadyhand::mcp::RepairedMessage;
use steadyhand::mcp::http::HttpConfig;

use crate::mcp_desk::EchoService;
use crate::mcp_wire::{Pipe, Server, until};

/// Times that a message was mended, and whether that may come to its end.
static MENDING: Mutex<(usize, bool)> = Mutex::new((0, false));
static MAY_END: Condvar = Condvar::new();

/// Takes as long as the test wants, or a minute.
fn mend_slowly(_: &[u8]) -> RepairedMessage {
    let mut mending = MENDING.lock().unwrap();
    mending.0 += 1;
    let minute = Duration::from_secs(60);
    let ended = MAY_END.wait_timeout_while(mending, minute, |(_, may_end)| !*may_end);
    let in_time = !ended.unwrap().1.timed_out();
    RepairedMessage::Hopeless(format!("it was mended in time: {in_time}"))
}

fn call(tool: &str, arguments: &Value) -> String {
    let params = json!({"name": tool, "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).to_string()
}

/// So many values in a few levels.
fn values(count: usize) -> Value {
    json!({ "a": vec![0; count] })
}

#[tokio::test]
async fn a_short_message_waits_for_no_long_one() {
    let server = Server::mending(EchoService::new(), HttpConfig::default(), mend_slowly).await;
    let broken = format!("{{{}", "\"".repeat(8 * 1024));
    let long = || server.post(&[], &broken);
    let short = async {
        until(|| MENDING.lock().unwrap().0 > 0).await;
        let (status, answer) = server.post(&[], &call("echo", &json!({}))).await;
        // One at a time.
        assert_eq!(MENDING.lock().unwrap().0, 1);
        MENDING.lock().unwrap().1 = true;
        MAY_END.notify_all();
        (status, answer)
    };
    let (one, other, (status, answer)) = tokio::join!(long(), long(), short);
    assert_eq!(status, 200, "{answer}");
    for (status, refused) in [one, other] {
        assert_eq!(status, 400, "{refused}");
        assert!(refused.contains("in time: true"), "{refused}");
    }
}

#[tokio::test]
async fn messages_of_one_pipe_keep_their_order() {
    let mut pipe = Pipe::opened().await;
    let long = json!({"text": "x".repeat(100_000)});
    let all = [&json!({}), &long, &json!({}), &long];
    for (id, arguments) in all.into_iter().enumerate() {
        let message = call("echo", arguments).replace("\"id\":7", &format!("\"id\":{id}"));
        pipe.send(&message).await;
    }
    for _ in 0..4 {
        pipe.receive().await;
    }
    let calls = pipe.service.counts.calls.lock().unwrap();
    let lengths: Vec<bool> = calls
        .iter()
        .map(|call| format!("{:?}", call.arguments).len() > 100_000)
        .collect();
    assert_eq!(lengths, [false, true, false, true]);
}

#[tokio::test]
async fn a_message_of_too_many_values_is_refused() {
    let server = Server::start().await;
    for (count, expected) in [(45_000, 200), (50_001, 400), (1_000_000, 400)] {
        let (status, answer) = server.post(&[], &call("echo", &values(count))).await;
        assert_eq!(status, expected, "{count}: {answer:.300}");
        if expected == 400 {
            assert!(answer.contains("at most 50000"), "{answer}");
            assert!(answer.contains("\"id\":7"), "{answer}");
        }
    }
    // One text is one value.
    let text = json!({"svg": "x".repeat(4_000_000)});
    assert_eq!(server.post(&[], &call("echo", &text)).await.0, 200);
}

#[tokio::test]
async fn the_values_of_all_messages_are_bounded_and_given_back() {
    let server = Server::start().await;
    let many = values(45_000);
    let (slow, echo) = (call("slow", &many), call("echo", &many));
    let third = async {
        until(|| server.service.counts.calls.lock().unwrap().len() == 2).await;
        server.post(&[], &echo).await
    };
    let (one, other, (status, refused)) =
        tokio::join!(server.post(&[], &slow), server.post(&[], &slow), third);
    assert_eq!((one.0, other.0), (200, 200));
    assert_eq!(status, 400);
    assert!(refused.contains("long messages"), "{refused}");
    assert_eq!(server.service.counts.finished.load(Ordering::SeqCst), 2);
    assert_eq!(server.post(&[], &echo).await.0, 200);
}

#[tokio::test]
async fn what_stands_beside_the_arguments_is_bounded() {
    let server = Server::start().await;
    let long = "x".repeat(70_000);
    for (method, params) in [
        ("ping", json!({ "x": long })),
        ("tools/call", json!({"name": "echo", "_meta": {"x": long}})),
    ] {
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let (status, refused) = server.post(&[], &message.to_string()).await;
        assert_eq!(status, 400, "{refused}");
        assert!(
            refused.contains("-32600") && refused.contains("65536 bytes"),
            "{refused}"
        );
    }
}
