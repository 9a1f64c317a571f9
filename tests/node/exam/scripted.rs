//! A planner behind HTTP that answers by a script: as much of chat completions as the exam asks for.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

/// A request to the planner.
pub(super) struct PlannerRequest {
    pub(super) query: String,
    pub(super) tools: Vec<String>,
    pub(super) key: Option<String>,
    /// The whole request.
    pub(super) body: Value,
}

/// An answer of the planner.
pub(super) enum PlannerReply {
    Message(Value),
    Raw(u16, String),
    /// The connection is kept open, and nothing comes.
    Nothing,
    /// The connection is closed, and nothing has come.
    Closed,
    /// More is announced than comes.
    Short(String),
}

pub(super) struct Planner {
    address: SocketAddr,
    questions: Arc<AtomicUsize>,
}

impl Planner {
    /// Listens on a port of its own; it ends with the test's process.
    pub(super) fn start(
        script: impl Fn(&PlannerRequest) -> PlannerReply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (questions, script) = (Arc::new(AtomicUsize::new(0)), Arc::new(script));
        let counted = Arc::clone(&questions);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (script, counted) = (Arc::clone(&script), Arc::clone(&counted));
                std::thread::spawn(move || serve(stream, &*script, &counted));
            }
        });
        Self { address, questions }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Returns how often a completion was asked for.
    pub(super) fn questions(&self) -> usize {
        self.questions.load(Ordering::SeqCst)
    }
}

fn serve(
    stream: TcpStream,
    script: &dyn Fn(&PlannerRequest) -> PlannerReply,
    counted: &AtomicUsize,
) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut first, mut key, mut length) = (String::new(), None, 0);
    reader.read_line(&mut first).unwrap();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 || line.trim().is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap();
        match name.to_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap(),
            "authorization" => key = Some(value.trim().to_owned()),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    if first.contains("/models") {
        return respond(
            stream,
            200,
            &json!({"data": [{"id": "scripted"}]}).to_string(),
        );
    }
    if first.contains("/embeddings") {
        return respond(stream, 200, &vectors(&body).to_string());
    }
    counted.fetch_add(1, Ordering::SeqCst);
    let body: Value = serde_json::from_slice(&body).unwrap();
    let messages = body["messages"].as_array().unwrap().iter();
    let asked = messages.rev().find(|one| one["role"] == "user").unwrap();
    let query = asked["content"].as_str().unwrap();
    let tools = body["tools"].as_array().into_iter().flatten();
    let tools = tools.map(|tool| tool["function"]["name"].as_str().unwrap().to_owned());
    let request = PlannerRequest {
        query: query.to_owned(),
        tools: tools.collect(),
        key,
        body: body.clone(),
    };
    match script(&request) {
        PlannerReply::Message(message) => {
            let answer =
                json!({"object": "chat.completion", "choices": [{"index": 0, "message": message}]});
            respond(stream, 200, &answer.to_string());
        }
        PlannerReply::Raw(status, text) => respond(stream, status, &text),
        PlannerReply::Closed => {}
        PlannerReply::Short(text) => send(stream, 200, &text, 2 * text.len()),
        PlannerReply::Nothing => {
            // Until the other side has had enough.
            let _ = reader.read(&mut [0]);
        }
    }
}

/// Vectors of nearly one direction, the last text's first.
fn vectors(body: &[u8]) -> Value {
    let body: Value = serde_json::from_slice(body).unwrap();
    let texts = body["input"].as_array().unwrap().iter().enumerate().rev();
    let all: Vec<Value> = texts
        .map(|(index, text)| {
            let length = text.as_str().unwrap().len();
            json!({"index": index, "embedding": [1000, length % 7]})
        })
        .collect();
    json!({"data": all})
}

fn respond(stream: TcpStream, status: u16, text: &str) {
    send(stream, status, text, text.len());
}

/// Sends a text, of which `length` bytes are announced.
fn send(mut stream: TcpStream, status: u16, text: &str, length: usize) {
    let head = format!(
        "HTTP/1.1 {status} said\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(text.as_bytes());
}
