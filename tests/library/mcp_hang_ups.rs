//! A caller that is gone from an unanswered call, however it went and whatever it sent before: the call is given up.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use http::Method;
use http_body_util::BodyExt as _;
use steadyhand::mcp::ServiceCapabilities;
use steadyhand::mcp::http::HttpConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::mcp_desk::{CallCounts, EchoService};
use crate::mcp_wire::{INITIALIZE, JSON, Pipe, STREAMS, Server, until};

const SLOW: &str = r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"slow"}}"#;

fn cancelled(server: &Server) -> usize {
    server.service.counts.cancelled.load(Ordering::SeqCst)
}

fn finished(observed: &CallCounts) -> usize {
    observed.finished.load(Ordering::SeqCst)
}

/// Begins a slow call with `headers`, with `behind` sent after it, and returns its connection once it is worked on.
async fn begin(server: &Server, headers: &str, behind: &str) -> TcpStream {
    let begun = || server.service.counts.calls.lock().unwrap().len();
    let before = begun();
    let mut stream = TcpStream::connect(server.at).await.unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\n{headers}Content-Length: {}\r\n\r\n{SLOW}",
        server.at,
        SLOW.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    until(|| begun() > before).await;
    stream.write_all(behind.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn nothing_sent_behind_a_call_hides_that_its_caller_has_gone() {
    let server = Server::start().await;
    let get = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", server.at);
    let all = [
        String::new(),
        "\r\n".to_owned(),
        get.clone(),
        get.repeat(700),
    ];
    for (count, behind) in all.iter().enumerate() {
        for (more, headers) in ["", "Accept: text/event-stream\r\n"].iter().enumerate() {
            drop(begin(&server, headers, behind).await);
            let expected = 2 * count + more + 1;
            until(|| cancelled(&server) + finished(&server.service.counts) == expected).await;
        }
    }
    assert_eq!(finished(&server.service.counts), 0);
}

#[tokio::test]
async fn who_sends_so_much_behind_a_call_that_no_end_is_seen_counts_as_gone() {
    let server = Server::start().await;
    let mut stream = begin(&server, "", "").await;
    let (mut answer, mut sent) = stream.split();
    let filling = async {
        // Until the server has closed.
        while sent.write_all(&[b'\n'; 4096]).await.is_ok() {}
    };
    let mut nothing = Vec::new();
    let closed = async {
        let _ = answer.read_to_end(&mut nothing).await;
    };
    tokio::join!(filling, closed);
    until(|| cancelled(&server) == 1).await;
    assert_eq!(finished(&server.service.counts), 0);
}

#[tokio::test]
async fn quick_requests_that_were_sent_together_are_all_answered() {
    const REQUESTS: usize = 100;
    let server = Server::start().await;
    let get = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", server.at);
    let mut stream = TcpStream::connect(server.at).await.unwrap();
    stream
        .write_all(get.repeat(REQUESTS).as_bytes())
        .await
        .unwrap();
    stream.shutdown().await.unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).await.unwrap();
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), REQUESTS);
}

async fn session(server: &Server) -> String {
    let opened = server
        .send(Method::POST, &[STREAMS, JSON], INITIALIZE)
        .await;
    let id = opened.headers()["mcp-session-id"].to_str();
    id.unwrap().to_owned()
}

/// The stream was empty, and the client never learned whether its arm stood.
#[tokio::test]
async fn a_client_whose_stream_was_cut_comes_back_and_reads_the_answer() {
    let server = Server::start().await;
    let id = session(&server).await;
    for (call, is_waited_for) in [("slow", true), ("lingering", false)] {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{{"name":"{call}","_meta":{{"progressToken":1}}}}}}"#
        );
        let mut stream = TcpStream::connect(server.at).await.unwrap();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nMcp-Session-Id: {id}\r\nContent-Length: {}\r\n\r\n{body}",
            server.at,
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let (mut read, mut part) = (String::new(), [0; 1024]);
        while read.lines().filter(|line| line.starts_with("id:")).count() < 2 {
            let count = stream.read(&mut part).await.unwrap();
            read.push_str(&String::from_utf8_lossy(&part[..count]));
        }
        let event = read.lines().find_map(|line| line.strip_prefix("id:"));
        let before = cancelled(&server);
        drop(stream);
        until(|| cancelled(&server) == before + 1).await;
        if is_waited_for {
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
        let back = [
            ("accept", "text/event-stream"),
            ("mcp-session-id", &id),
            ("last-event-id", event.unwrap().trim()),
        ];
        let mut body = server.send(Method::GET, &back, "").await.into_body();
        let mut events = String::new();
        while let Some(Ok(frame)) = body.frame().await {
            events += &String::from_utf8_lossy(frame.data_ref().unwrap());
        }
        let answers: Vec<&str> = events
            .lines()
            .filter(|line| line.contains("\"result\""))
            .collect();
        assert_eq!(answers.len(), 1, "{call}: {events}");
        assert!(
            answers[0].contains("\"id\":5") && answers[0].contains("stopped"),
            "{events}"
        );
    }
}

#[tokio::test]
async fn a_stream_that_another_connection_takes_over_leaves_no_call_unwatched() {
    let server = Server::start().await;
    let id = session(&server).await;
    let headers = format!("Mcp-Session-Id: {id}\r\n");
    let caller = begin(&server, &headers, "").await;
    let taken = [
        ("accept", "text/event-stream"),
        ("mcp-session-id", &id),
        ("last-event-id", "0/0"),
    ];
    let taken = server.send(Method::GET, &taken, "").await;
    drop(caller);
    until(|| cancelled(&server) + finished(&server.service.counts) == 1).await;
    assert_eq!(finished(&server.service.counts), 0);
    drop(taken);
}

#[tokio::test]
async fn the_end_of_a_session_gives_up_its_calls_and_is_told_after_them() {
    let service = EchoService::new();
    let notices = Arc::new(Mutex::new(Vec::new()));
    let (note, observed) = (Arc::clone(&notices), Arc::clone(&service.counts));
    let config = HttpConfig {
        on_session_end: Some(Arc::new(move |_: &str| {
            let cancelled = observed.cancelled.load(Ordering::SeqCst);
            note.lock().unwrap().push(cancelled);
        })),
        ..HttpConfig::default()
    };
    let server = Server::configured(service, config).await;
    let id = session(&server).await;
    let headers = format!("Mcp-Session-Id: {id}\r\n");
    let caller = begin(&server, &headers, "").await;
    let ended = [("mcp-session-id", id.as_str())];
    server.send(Method::DELETE, &ended, "").await;
    until(|| !notices.lock().unwrap().is_empty()).await;
    assert_eq!(
        (finished(&server.service.counts), notices.lock().unwrap()[0]),
        (0, 1)
    );
    drop(caller);
}

#[tokio::test]
async fn a_session_that_has_ended_is_told_of_no_changes_any_more() {
    let changes = ServiceCapabilities {
        changes: true,
        ..ServiceCapabilities::default()
    };
    let service = EchoService::offering(changes);
    let server = Server::configured(service, HttpConfig::default()).await;
    let told = || server.service.changes.receiver_count();
    let id = session(&server).await;
    let headers = [STREAMS, JSON, ("mcp-session-id", id.as_str())];
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    server.post(&headers, ready).await;
    until(|| told() == 1).await;
    server.send(Method::DELETE, &headers[2..], "").await;
    until(|| told() == 0).await;
}

/// Progress went on until the arm stood: after the request's end, for its client.
#[tokio::test]
async fn a_cancelled_call_sends_no_progress_while_it_comes_to_its_end() {
    let mut pipe = Pipe::opened().await;
    let call = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"lingering","_meta":{"progressToken":9}}}"#;
    pipe.send(call).await;
    while !pipe.receive().await.contains("notifications/progress") {}
    pipe.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}"#)
        .await;
    let service = pipe.service.clone();
    until(|| service.counts.cancelled.load(Ordering::SeqCst) == 1).await;
    let mut until_pong = async |id: u32| {
        pipe.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#))
            .await;
        let mut lines = Vec::new();
        loop {
            let line = pipe.receive().await;
            if line.contains(&format!(r#""id":{id}"#)) {
                return lines;
            }
            lines.push(line);
        }
    };
    // Some may have been under way.
    until_pong(10).await;
    until(|| service.counts.finished.load(Ordering::SeqCst) == 1).await;
    let late = until_pong(11).await;
    assert!(late.is_empty(), "{late:?}");
}

#[tokio::test]
async fn methods_of_tasks_are_refused_with_what_to_do_instead() {
    let mut pipe = Pipe::opened().await;
    for method in ["tasks/get", "tasks/list", "tasks/result", "tasks/cancel"] {
        pipe.send(&format!(
            r#"{{"jsonrpc":"2.0","id":3,"method":"{method}","params":{{"taskId":"x"}}}}"#
        ))
        .await;
        let refused = pipe.receive().await;
        assert!(
            refused.contains("-32601") && refused.contains("sense"),
            "{method}: {refused}"
        );
    }
}
