//! The wire, by all its ways in: whatever is sent gets a proper answer, and a caller that gives up is noticed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a failing test may panic, and tests wait for real"
)]

use crate::mcp_desk;
use crate::snapshots;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use steadyhand::mcp::client::{self, ClientError};
use steadyhand::mcp::http::{HttpConfig, HttpError, listen};
use steadyhand::mcp::{
    CallWatch, EntryPoint, ListChange, MessageRepair, ProgressSender, ReceivedArguments,
    RepairedMessage, ServiceCapabilities, stdio,
};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio_util::sync::CancellationToken;

use mcp_desk::{EchoService, STEPS};

/// Repairs broken envelopes if they have only one meaning, as the node does.
fn repair(raw: &[u8]) -> RepairedMessage {
    match steadyhand::args::envelope::read(raw) {
        Ok(envelope) => RepairedMessage::Message(envelope.message),
        Err(error) => RepairedMessage::Hopeless(error.to_string()),
    }
}

const WAIT_MAX: Duration = Duration::from_secs(60);

/// An HTTP server of a service, and the way to end it.
pub(super) struct Server {
    pub(super) service: Arc<EchoService>,
    pub(super) at: std::net::SocketAddr,
    stop: CancellationToken,
    serving: tokio::task::JoinHandle<Result<(), HttpError>>,
}

impl Server {
    pub(super) async fn start() -> Self {
        Self::over(EchoService::new()).await
    }

    async fn over(service: Arc<EchoService>) -> Self {
        Self::configured(service, HttpConfig::default()).await
    }

    pub(super) async fn configured(service: Arc<EchoService>, config: HttpConfig) -> Self {
        Self::mending(service, config, repair).await
    }

    pub(super) async fn mending(
        service: Arc<EchoService>,
        config: HttpConfig,
        repair: MessageRepair,
    ) -> Self {
        let listening = listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let at = listening.address();
        let stop = CancellationToken::new();
        let serving = tokio::spawn(listening.serve(service.clone(), config, repair, stop.clone()));
        Self {
            service,
            at,
            stop,
            serving,
        }
    }

    fn url(&self) -> String {
        format!("http://{}/mcp", self.at)
    }

    pub(super) async fn send(
        &self,
        method: Method,
        headers: &[(&str, &str)],
        body: &str,
    ) -> http::Response<Incoming> {
        let stream = tokio::net::TcpStream::connect(self.at).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .unwrap();
        tokio::spawn(connection);
        let mut request = Request::builder()
            .method(method)
            .uri("/mcp")
            .header("host", self.at.to_string());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = Full::new(Bytes::from(body.to_owned()));
        sender
            .send_request(request.body(body).unwrap())
            .await
            .unwrap()
    }

    /// Status and body; of a stream, its last event, which is the answer.
    pub(super) async fn post(&self, headers: &[(&str, &str)], body: &str) -> (u16, String) {
        let response = self.send(Method::POST, headers, body).await;
        let status = response.status().as_u16();
        let body = tokio::time::timeout(WAIT_MAX, response.into_body().collect())
            .await
            .unwrap();
        let body = String::from_utf8(body.unwrap().to_bytes().to_vec()).unwrap();
        let event = body
            .lines()
            .filter_map(|line| line.strip_prefix("data:"))
            .map(str::trim)
            .rfind(|data| !data.is_empty());
        (status, event.map_or(body.clone(), str::to_owned))
    }
}

/// The other end of a server on a pair of streams.
pub(super) struct Pipe {
    pub(super) service: Arc<EchoService>,
    lines: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
    write: WriteHalf<DuplexStream>,
    ended: Arc<std::sync::Mutex<Option<Instant>>>,
}

impl Pipe {
    fn start() -> Self {
        let service = EchoService::new();
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let ended = Arc::new(std::sync::Mutex::new(None));
        let note = ended.clone();
        let ends = tokio::io::split(theirs);
        let record_time = move || *note.lock().unwrap() = Some(Instant::now());
        tokio::spawn(stdio::serve_on(
            service.clone(),
            EntryPoint::Stdio,
            repair,
            ends,
            record_time,
            CancellationToken::new(),
        ));
        let (read, write) = tokio::io::split(ours);
        let lines = BufReader::new(read).lines();
        Self {
            service,
            lines,
            write,
            ended,
        }
    }

    pub(super) async fn opened() -> Self {
        let mut pipe = Self::start();
        pipe.send(INITIALIZE).await;
        pipe.receive().await;
        pipe.send(INITIALIZED).await;
        pipe
    }

    pub(super) async fn send(&mut self, line: &str) {
        self.write
            .write_all(line.replace('\n', " ").as_bytes())
            .await
            .unwrap();
        self.write.write_all(b"\n").await.unwrap();
    }

    pub(super) async fn receive(&mut self) -> String {
        let line = tokio::time::timeout(WAIT_MAX, self.lines.next_line()).await;
        line.expect("silence").unwrap().expect("the end")
    }
}

pub(super) const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}"#;
pub(super) const STREAMS: (&str, &str) = ("accept", "application/json, text/event-stream");
pub(super) const JSON: (&str, &str) = ("content-type", "application/json");

/// The text that is sent: the members of a call's `params`, or a whole message as it is.
enum Row {
    Params(&'static str),
    Whole(&'static str),
}

use Row::{Params, Whole};

/// Everything that was seen or may be feared, with what it is.
const TORTURE: [(&str, Row); 43] = [
    ("an object", Params(r#""name":"echo","arguments":{"a":1}"#)),
    (
        "a lost object",
        Params(r#""name":"echo","arguments":"[object Object]""#),
    ),
    (
        "an object in a string",
        Params(r#""name":"echo","arguments":"{\"a\":1,\"b\":2}""#),
    ),
    ("an empty list", Params(r#""name":"echo","arguments":[]"#)),
    (
        "a list of one",
        Params(r#""name":"echo","arguments":[{"a":1}]"#),
    ),
    ("a number", Params(r#""name":"echo","arguments":42"#)),
    ("an empty string", Params(r#""name":"echo","arguments":"""#)),
    ("null", Params(r#""name":"echo","arguments":null"#)),
    ("absent", Params(r#""name":"echo""#)),
    (
        "an envelope",
        Params(r#""name":"echo","arguments":{"input_data":"{\"a\":1}"}"#),
    ),
    (
        "an envelope beside",
        Params(r#""name":"echo","args":{"a":1}"#),
    ),
    ("arguments beside", Params(r#""name":"echo","a":1"#)),
    (
        "a key twice",
        Params(r#""name":"echo","arguments":{"a":1,"a":2}"#),
    ),
    (
        "an unknown tool",
        Params(r#""name":"dance","arguments":{}"#),
    ),
    ("no name", Params(r#""arguments":{}"#)),
    ("a number for a name", Params(r#""name":7,"arguments":{}"#)),
    (
        "a tool that breaks",
        Params(r#""name":"break","arguments":{}"#),
    ),
    (
        "params null",
        Whole(r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":null}"#),
    ),
    (
        "params a list",
        Whole(r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":["echo",{}]}"#),
    ),
    (
        "params a string",
        Whole(r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":"echo"}"#),
    ),
    (
        "meta a string",
        Whole(
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","_meta":"x"}}"#,
        ),
    ),
    (
        "id null",
        Whole(r#"{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"echo"}}"#),
    ),
    (
        "id a float",
        Whole(r#"{"jsonrpc":"2.0","id":7.0,"method":"tools/call","params":{"name":"echo"}}"#),
    ),
    (
        "id an object",
        Whole(r#"{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{"name":"echo"}}"#),
    ),
    (
        "no id",
        Whole(r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo"}}"#),
    ),
    (
        "no jsonrpc",
        Whole(r#"{"id":7,"method":"tools/call","params":{"name":"echo"}}"#),
    ),
    (
        "a batch",
        Whole(
            r#"[{"jsonrpc":"2.0","id":7,"method":"ping"},{"jsonrpc":"2.0","id":8,"method":"ping"}]"#,
        ),
    ),
    (
        "a batch of one",
        Whole(r#"[{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo"}}]"#),
    ),
    (
        "a trailing comma",
        Whole(r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo",}}"#),
    ),
    (
        "single quotes",
        Whole(r"{'jsonrpc':'2.0','id':7,'method':'tools/call','params':{'name':'echo'}}"),
    ),
    (
        "not a number",
        Whole(
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"a":NaN}}}"#,
        ),
    ),
    (
        "cut off",
        Whole(r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"ec"#),
    ),
    (
        "known method, wrong params",
        Whole(r#"{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{}}"#),
    ),
    (
        "unknown method",
        Whole(r#"{"jsonrpc":"2.0","id":7,"method":"dance","params":{}}"#),
    ),
    (
        "an envelope with an object",
        Params(r#""name":"echo","arguments":{"input_data":{"a":1}}"#),
    ),
    (
        "a number in a string",
        Params(r#""name":"echo","arguments":{"a":"1","b":2}"#),
    ),
    (
        "a key that nobody knows",
        Params(r#""name":"echo","arguments":{"a":1,"zzz":true}"#),
    ),
    ("a name of null", Params(r#""name":null,"arguments":{}"#)),
    (
        "another version",
        Whole(r#"{"jsonrpc":"1.0","id":7,"method":"tools/call","params":{"name":"echo"}}"#),
    ),
    (
        "no method",
        Whole(r#"{"jsonrpc":"2.0","id":7,"params":{"name":"echo"}}"#),
    ),
    (
        "arguments twice",
        Whole(
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"a":1},"arguments":{"a":2}}}"#,
        ),
    ),
    (
        "truth as Python writes it",
        Whole(
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"a":True}}}"#,
        ),
    ),
    (
        "a fence around it",
        Whole(
            "```json\n{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\"}}\n```",
        ),
    ),
];

impl Row {
    fn legacy(&self) -> String {
        match self {
            Params(members) => format!(
                r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{{members}}}}}"#
            ),
            Whole(text) => (*text).to_owned(),
        }
    }

    fn modern(&self) -> String {
        match self {
            Params(members) => {
                format!(
                    r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{{members},{META}}}}}"#
                )
            }
            // One with metadata of its own keeps it.
            Whole(text) if text.contains("_meta") => (*text).to_owned(),
            Whole(text) => text
                .replace(r#""params":{}"#, &format!(r#""params":{{{META}}}"#))
                .replace(
                    r#""params":{"name":"#,
                    &format!(r#""params":{{{META},"name":"#),
                ),
        }
    }

    fn method(&self) -> &'static str {
        match self {
            Whole(text) if text.contains("resources/read") => "resources/read",
            Whole(text) if text.contains(r#""dance""#) => "dance",
            _ => "tools/call",
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Params(text) if text.contains("dance") => "dance",
            Params(text) if text.contains("break") => "break",
            _ => "echo",
        }
    }
}

/// One answer for the transcript: pictures cut, whatever is not JSON as it is.
fn shown(answer: &str) -> String {
    match serde_json::from_str::<Value>(answer) {
        Ok(value) => value.to_string(),
        Err(_) => format!("not JSON: {answer}"),
    }
}

/// Every row by every way; ways that answer alike share a line.
async fn transcript() -> String {
    let server = Server::start().await;
    let session = server
        .send(Method::POST, &[STREAMS, JSON], INITIALIZE)
        .await;
    let session = session.headers()["mcp-session-id"]
        .to_str()
        .unwrap()
        .to_owned();
    let session = ("mcp-session-id", session.as_str());
    server.post(&[STREAMS, JSON, session], INITIALIZED).await;
    let mut pipe = Pipe::opened().await;
    let mut out = String::new();
    for (name, row) in &TORTURE {
        let legacy = row.legacy();
        pipe.send(&legacy).await;
        let modern = [
            STREAMS,
            JSON,
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", row.method()),
            ("mcp-name", row.name()),
        ];
        let answers = [
            ("stdio", (0, pipe.receive().await)),
            (
                "session",
                server.post(&[STREAMS, JSON, session], &legacy).await,
            ),
            (
                "stateless",
                server.post(&[("accept", "*/*"), JSON], &legacy).await,
            ),
            ("2026-07-28", server.post(&modern, &row.modern()).await),
        ];
        out.push_str(&format!("# {name}\n> {legacy}\n{}\n", grouped(&answers)));
    }
    out
}

fn grouped(answers: &[(&str, (u16, String))]) -> String {
    let mut lines: Vec<(String, String)> = Vec::new();
    for (way, (status, answer)) in answers {
        let way = if *status == 0 {
            (*way).to_owned()
        } else {
            format!("{way} {status}")
        };
        let answer = shown(answer);
        match lines.iter_mut().find(|(_, known)| *known == answer) {
            Some((ways, _)) => *ways = format!("{ways}, {way}"),
            None => lines.push((way, answer)),
        }
    }
    lines
        .iter()
        .map(|(ways, answer)| format!("< {ways}: {answer}\n"))
        .collect()
}

#[tokio::test]
async fn whatever_is_sent_gets_the_same_proper_answer_by_every_way() {
    snapshots::check("wire.txt", &transcript().await);
}

#[tokio::test]
async fn a_sloppy_client_over_http_gets_its_answer() {
    let server = Server::start().await;
    let call = Params(r#""name":"echo","arguments":{}"#).legacy();
    for headers in [
        vec![],
        vec![("accept", "*/*")],
        vec![
            ("accept", "application/json"),
            ("content-type", "text/plain"),
        ],
        vec![
            ("accept", "text/event-stream"),
            ("content-type", "application/x-www-form-urlencoded"),
        ],
    ] {
        let (status, answer) = server.post(&headers, &call).await;
        assert_eq!(status, 200, "{headers:?} {answer}");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(
            answer["result"]["structuredContent"]["received"], "value",
            "{headers:?}"
        );
    }
    let (status, answer) = server.post(&[], "").await;
    assert_eq!(
        (
            status,
            serde_json::from_str::<Value>(&answer).unwrap()["error"]["code"].clone()
        ),
        (400, json!(-32700))
    );
}

#[tokio::test]
async fn strangers_are_refused() {
    let server = Server::start().await;
    let call = Params(r#""name":"echo""#).legacy();
    let own = format!("http://{}", server.at);
    let other_name = format!("http://localhost:{}", server.at.port());
    assert_eq!(
        server
            .post(&[STREAMS, JSON, ("origin", &own)], &call)
            .await
            .0,
        200
    );
    server.service.counts.calls.lock().unwrap().clear();
    for stranger in [
        ("origin", "https://evil.example"),
        ("origin", "http://localhost:1"),
        ("origin", &other_name),
        ("origin", "null"),
    ] {
        assert_eq!(
            server.post(&[STREAMS, JSON, stranger], &call).await.0,
            403,
            "{stranger:?}"
        );
    }
    let stream = tokio::net::TcpStream::connect(server.at).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    let request = Request::post("/mcp")
        .header("host", "evil.example:80")
        .body(Full::new(Bytes::from(call)))
        .unwrap();
    assert_eq!(sender.send_request(request).await.unwrap().status(), 403);
    assert!(server.service.counts.calls.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_body_or_line_that_is_too_long_is_refused_and_the_next_is_served() {
    let server = Server::start().await;
    let long = "x".repeat(steadyhand::mcp::http::BODY_BYTES_MAX + 1);
    let (status, answer) = server.post(&[], &long).await;
    assert_eq!(status, 413, "{answer}");
    assert!(answer.contains("longer than 4194304 bytes"), "{answer}");
    let mut pipe = Pipe::opened().await;
    let long = "x".repeat(stdio::LINE_BYTES_MAX + 1);
    let call = Params(r#""name":"echo""#).legacy();
    let (say, hear) = tokio::join!(
        async {
            pipe.write
                .write_all(format!("{long}\n{call}\n").as_bytes())
                .await
                .unwrap();
        },
        async {
            let first = pipe.lines.next_line().await.unwrap().unwrap();
            (first, pipe.lines.next_line().await.unwrap().unwrap())
        }
    );
    let () = say;
    assert!(hear.0.contains("longer than"), "{}", hear.0);
    assert!(hear.1.contains("structuredContent"), "{}", hear.1);
}

#[tokio::test]
async fn what_comes_before_initialize_does_not_end_the_server() {
    let mut pipe = Pipe::start();
    pipe.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
        .await;
    pipe.send(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).await;
    pipe.send("").await;
    pipe.send("nonsense").await;
    assert!(pipe.receive().await.contains("-32700"));
    pipe.send(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#)
        .await;
    assert!(pipe.receive().await.contains("send `initialize` first"));
    pipe.send(r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#)
        .await;
    assert!(pipe.receive().await.contains(r#""id":3"#));
    pipe.send(r#"{"id":4,"method":"initialize"}"#).await;
    let opened: Value = serde_json::from_str(&pipe.receive().await).unwrap();
    assert_eq!(opened["result"]["serverInfo"]["name"], "steadyhand");
    assert_eq!(opened["result"]["instructions"], "Echo.");
    assert_eq!(opened["result"]["capabilities"], json!({"tools": {}}));
}

#[tokio::test]
async fn the_end_of_input_is_known_at_once_and_stops_what_runs() {
    let mut pipe = Pipe::opened().await;
    pipe.send(&Params(r#""name":"slow""#).legacy()).await;
    let service = pipe.service.clone();
    until(|| !service.counts.calls.lock().unwrap().is_empty()).await;
    let closed = Instant::now();
    pipe.write.shutdown().await.unwrap();
    until(|| service.counts.cancelled.load(Ordering::SeqCst) == 1).await;
    let took = closed.elapsed();
    let known = pipe.ended.lock().unwrap().unwrap() - closed;
    assert!(known < Duration::from_millis(50), "{known:?}");
    assert!(took < Duration::from_millis(500), "{took:?}");
    assert!(pipe.receive().await.contains("stopped"));
}

pub(super) async fn until(mut true_now: impl FnMut() -> bool) {
    let give_up = Instant::now() + WAIT_MAX;
    while !true_now() {
        assert!(Instant::now() < give_up, "waited for nothing");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_client_that_hangs_up_is_noticed_by_every_way() {
    let server = Server::start().await;
    let session = server
        .send(Method::POST, &[STREAMS, JSON], INITIALIZE)
        .await;
    let session = session.headers()["mcp-session-id"]
        .to_str()
        .unwrap()
        .to_owned();
    let modern = Params(r#""name":"slow""#).modern();
    let legacy = Params(r#""name":"slow""#).legacy();
    let version = ("mcp-protocol-version", "2026-07-28");
    let modern_headers = [
        STREAMS,
        JSON,
        version,
        ("mcp-method", "tools/call"),
        ("mcp-name", "slow"),
    ];
    let ways: [(&[(&str, &str)], &str); 4] = [
        (&[STREAMS, JSON, ("mcp-session-id", &session)], &legacy),
        (&[STREAMS, JSON], &legacy),
        (&[JSON], &legacy),
        (&modern_headers, &modern),
    ];
    for (count, (headers, body)) in ways.iter().enumerate() {
        let sending = server.send(Method::POST, headers, body);
        let hung_up = tokio::time::timeout(Duration::from_millis(250), async {
            let response = sending.await;
            let _ = response.into_body().collect().await;
        });
        assert!(hung_up.await.is_err(), "way {count} answered too early");
        until(|| server.service.counts.cancelled.load(Ordering::SeqCst) == count + 1).await;
    }
    assert_eq!(server.service.counts.finished.load(Ordering::SeqCst), 0);
}

fn watch() -> CallWatch {
    CallWatch {
        cancelled: CancellationToken::new(),
        progress: None,
    }
}

#[tokio::test]
async fn our_own_client_gets_progress_and_the_answer_both_ways() {
    let server = Server::start().await;
    let ways = [
        client::connect(&server.url()).await.unwrap(),
        client::in_process(EchoService::new()).await.unwrap(),
    ];
    for client in ways {
        let (progress, mut news) = ProgressSender::pair();
        let hearing = tokio::spawn(async move {
            let mut received = Vec::new();
            while news.changed().await.is_ok() {
                received.push(news.borrow_and_update().clone());
            }
            received
        });
        let watch = CallWatch {
            progress: Some(progress),
            ..watch()
        };
        let answer = client
            .call("slow", ReceivedArguments::Absent, watch)
            .await
            .unwrap();
        assert_eq!((answer.text.as_str(), answer.is_error), ("finished", false));
        client.close().await;
        let received = hearing.await.unwrap();
        assert!(received.len() >= 3, "{received:?}");
        assert!(
            received.windows(2).all(|pair| pair[1].done > pair[0].done),
            "{received:?}"
        );
        let last = received.last().unwrap();
        assert_eq!(
            (last.total, last.message.as_str()),
            (Some(f64::from(STEPS)), "step 29")
        );
    }
}

#[tokio::test]
async fn our_own_client_sends_arguments_as_they_were_typed() {
    let server = Server::start().await;
    let ways = [
        client::connect(&server.url()).await.unwrap(),
        client::in_process(EchoService::new()).await.unwrap(),
    ];
    for client in ways {
        for (typed, kind, value) in [
            (r#"{"a":1}"#, "value", json!({"a": 1})),
            ("[object Object]", "text", json!("[object Object]")),
            ("[]", "value", json!([])),
            ("42", "value", json!(42)),
            ("\"\"", "text", json!("")),
            ("null", "absent", Value::Null),
            ("scene=two", "text", json!("scene=two")),
            (r#"{"a":1,"a":2}"#, "text", json!(r#"{"a":1,"a":2}"#)),
        ] {
            let answer = client
                .call("echo", client::arguments_from_text(typed), watch())
                .await
                .unwrap();
            assert_eq!(
                (&answer.structured["received"], &answer.structured["value"]),
                (&json!(kind), &value),
                "{typed}"
            );
            assert_eq!(answer.images, [("image/png".to_owned(), vec![1, 2, 3])]);
        }
        let unknown = client
            .call("dance", ReceivedArguments::Absent, watch())
            .await
            .unwrap();
        assert!(
            unknown.is_error && unknown.text.contains("there are echo and slow"),
            "{unknown:?}"
        );
        let names: Vec<String> = client
            .list()
            .await
            .unwrap()
            .into_iter()
            .map(|tool| tool.name)
            .collect();
        assert_eq!(names, ["echo", "slow"]);
    }
}

#[tokio::test]
async fn our_own_client_cancels_both_ways() {
    let server = Server::start().await;
    let here = EchoService::new();
    let ways = [
        (
            client::connect(&server.url()).await.unwrap(),
            server.service.clone(),
        ),
        (client::in_process(here.clone()).await.unwrap(), here),
    ];
    for (client, service) in ways {
        let watch = watch();
        let cancel = watch.cancelled.clone();
        let (answer, ()) = tokio::join!(
            client.call("slow", ReceivedArguments::Absent, watch),
            async {
                until(|| !service.counts.calls.lock().unwrap().is_empty()).await;
                cancel.cancel();
            }
        );
        assert!(matches!(answer, Err(ClientError::Cancelled)), "{answer:?}");
        until(|| service.counts.cancelled.load(Ordering::SeqCst) == 1).await;
        let after = client.call(
            "echo",
            ReceivedArguments::Absent,
            CallWatch {
                cancelled: CancellationToken::new(),
                progress: None,
            },
        );
        assert!(!after.await.unwrap().is_error);
    }
}

#[tokio::test]
async fn a_token_that_the_answer_ends_is_not_a_caller_that_gives_up() {
    let service = EchoService::new();
    let client = client::in_process(service.clone()).await.unwrap();
    client
        .call("slow", ReceivedArguments::Absent, watch())
        .await
        .unwrap();
    client.close().await;
    assert_eq!(service.counts.finished.load(Ordering::SeqCst), 1);
    assert_eq!(service.counts.cancelled.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn errors_of_reaching_a_node_say_what_happened() {
    let nobody = listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let at = nobody.address();
    let taken = listen(at).await.unwrap_err().to_string();
    assert!(taken.contains(&at.to_string()), "{taken}");
    drop(nobody);
    let error = client::connect(&format!("http://{at}/mcp"))
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("refused") && error.contains(&at.to_string()),
        "{error}"
    );
    let error = client::connect("https://127.0.0.1:1/mcp")
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("127.0.0.1:1: "), "{error}");
    assert!(!error.contains("rmcp"), "{error}");
}

#[tokio::test]
async fn a_server_that_is_told_to_stop_answers_what_runs_and_ends() {
    let server = Server::start().await;
    let url = server.url();
    let (answer, ()) = tokio::join!(
        async {
            let client = client::connect(&url).await.unwrap();
            client
                .call("echo", ReceivedArguments::Absent, watch())
                .await
        },
        async {
            until(|| !server.service.counts.calls.lock().unwrap().is_empty()).await;
            server.stop.cancel();
        }
    );
    assert!(!answer.unwrap().is_error);
    tokio::time::timeout(WAIT_MAX, server.serving)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn what_is_not_offered_does_not_exist_and_what_is_works() {
    let bare = Server::start().await;
    let everything = ServiceCapabilities {
        resources: true,
        prompts: true,
        completion: true,
        changes: true,
    };
    let full = Server::over(EchoService::offering(everything)).await;
    for (method, params, found) in [
        ("resources/list", json!({}), "test://one"),
        ("resources/templates/list", json!({}), "resourceTemplates"),
        (
            "resources/read",
            json!({"uri": "test://one"}),
            r#""text":"one""#,
        ),
        ("prompts/list", json!({}), "draw"),
        (
            "prompts/get",
            json!({"name": "draw", "arguments": {"scene": 1}}),
            r#"draw {\"scene\": \"1\"}"#,
        ),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "draw"}, "argument": {"name": "b", "value": "a"}}),
            r#"["ab"]"#,
        ),
    ] {
        let body =
            json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let refused = bare.post(&[], &body).await.1;
        assert!(refused.contains("-32601"), "{refused}");
        let answer = full.post(&[], &body).await.1;
        assert!(answer.contains(found), "{answer}");
    }
}

#[tokio::test]
async fn a_changed_list_is_told_to_whoever_listens() {
    let everything = ServiceCapabilities {
        changes: true,
        ..ServiceCapabilities::default()
    };
    let service = EchoService::offering(everything);
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let ends = tokio::io::split(theirs);
    tokio::spawn(stdio::serve_on(
        service.clone(),
        EntryPoint::Stdio,
        repair,
        ends,
        || (),
        CancellationToken::new(),
    ));
    let (read, mut write) = tokio::io::split(ours);
    let mut lines = BufReader::new(read).lines();
    write
        .write_all(format!("{INITIALIZE}\n{INITIALIZED}\n").as_bytes())
        .await
        .unwrap();
    lines.next_line().await.unwrap();
    until(|| service.changes.receiver_count() > 0).await;
    service.changes.send(ListChange::Tools).unwrap();
    let line = tokio::time::timeout(WAIT_MAX, lines.next_line())
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert!(line.contains("notifications/tools/list_changed"), "{line}");
}

/// Reads a stream of events until one holds `what`.
async fn until_heard(response: http::Response<Incoming>, what: &str) {
    let mut body = response.into_body();
    let mut printed = String::new();
    while !printed.contains(what) {
        let frame = tokio::time::timeout(WAIT_MAX, body.frame()).await;
        let frame = frame.unwrap_or_else(|_| panic!("only {printed}"));
        let bytes = frame.expect("the end").unwrap().into_data().unwrap();
        printed.push_str(std::str::from_utf8(&bytes).unwrap());
    }
}

#[tokio::test]
async fn a_changed_list_is_told_over_http_in_both_eras() {
    let everything = ServiceCapabilities {
        changes: true,
        resources: true,
        ..ServiceCapabilities::default()
    };
    let server = Server::over(EchoService::offering(everything)).await;
    let opened = server
        .send(Method::POST, &[STREAMS, JSON], INITIALIZE)
        .await;
    let id = opened.headers()["mcp-session-id"].to_str().unwrap();
    let session = ("mcp-session-id", id);
    // Told more than once, each change is still told once.
    server.post(&[STREAMS, JSON, session], INITIALIZED).await;
    server.post(&[STREAMS, JSON, session], INITIALIZED).await;
    let standing = server
        .send(Method::GET, &[("accept", "text/event-stream"), session], "")
        .await;
    assert_eq!(standing.status(), 200);
    let request = format!(
        r#"{{"jsonrpc":"2.0","id":9,"method":"subscriptions/listen","params":{{"notifications":{{"toolsListChanged":true,"resourcesListChanged":true}},{META}}}}}"#
    );
    let modern = [
        STREAMS,
        JSON,
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "subscriptions/listen"),
    ];
    let subscribed = server.send(Method::POST, &modern, &request).await;
    assert_eq!(subscribed.status(), 200);
    until(|| server.service.changes.receiver_count() == 2).await;
    server.service.changes.send(ListChange::Tools).unwrap();
    server.service.changes.send(ListChange::Resources).unwrap();
    let last = "notifications/resources/list_changed";
    tokio::join!(until_heard(standing, last), until_heard(subscribed, last));
}

#[tokio::test]
async fn a_session_that_its_client_ends_is_told() {
    let notices = Arc::new(std::sync::Mutex::new(Vec::new()));
    let note = notices.clone();
    let config = HttpConfig {
        on_session_end: Some(Arc::new(move |session: &str| {
            note.lock().unwrap().push(session.to_owned());
        })),
        ..HttpConfig::default()
    };
    let server = Server::configured(EchoService::new(), config).await;
    let opened = server
        .send(Method::POST, &[STREAMS, JSON], INITIALIZE)
        .await;
    let id = opened.headers()["mcp-session-id"]
        .to_str()
        .unwrap()
        .to_owned();
    server
        .send(Method::DELETE, &[("mcp-session-id", "no-such-session")], "")
        .await;
    let ended = server
        .send(Method::DELETE, &[("mcp-session-id", &id)], "")
        .await;
    assert_eq!(ended.status().as_u16(), 204);
    assert_eq!(notices.lock().unwrap().last(), Some(&id));
}
