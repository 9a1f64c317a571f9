//! Whoever sends much, or reads nothing: bounded, and no stop waits for it.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use super::support::{Bench, PATIENCE, Served, bearer, connect, post, post_to, tool_call, until};
use super::{Guarded, get, resident_mib, result, untouched};

/// Above what the node had before: a flood costs no more.
const GROWTH_MIB_MAX: f64 = 24.0;

/// Longest time in which a stop is answered meanwhile, on a machine that is busy with the flood itself.
const STOP_MAX: Duration = Duration::from_secs(60);

#[test]
fn wrong_secrets_cost_little_memory_and_keep_no_stop_waiting() {
    const AT_ONCE: usize = 120;
    // Four proofs of each of three tokens, until the next has to wait: the allocator may keep the 7 MiB of each.
    const PROOFS_MIB_MAX: f64 = 3.0 * 4.0 * 7.0 + GROWTH_MIB_MAX;
    let node = Guarded::new();
    let [viewer, planner, operator] = node.tokens.clone();
    for token in [&planner, &operator] {
        assert_eq!(node.call(Some(token), "sense").0, 200);
    }
    let before_mib = resident_mib(&node.served, "VmHWM");
    let host = node.served.host();
    let wrong: Vec<_> = (0..AT_ONCE)
        .map(|index| {
            // Of all three, so that who is believed and who is not are tried alike.
            let token = [&viewer, &planner, &operator][index % 3];
            let (host, headers) = (host.clone(), bearer(&format!("{token}x")));
            std::thread::spawn(move || post_to(&host, &headers, &tool_call("sense", &json!({}))))
        })
        .collect();
    let began = Instant::now();
    let (status, stopped) = node.call(Some(&planner), "stop");
    let took = began.elapsed();
    assert_eq!((status, &result(&stopped)["success"]), (200, &json!(true)));
    assert!(took < STOP_MAX, "{took:?}");
    for wrong in wrong {
        let (status, refused) = wrong.join().unwrap();
        assert_eq!(status, 401, "{refused}");
    }
    let most_mib = resident_mib(&node.served, "VmHWM");
    assert!(
        most_mib < before_mib + PROOFS_MIB_MAX,
        "{before_mib:.1} MiB before, at most {most_mib:.1} with them"
    );
    // Nobody has proven the viewer's token yet: it is looked at when its pause is over.
    let began = Instant::now();
    while node.call(Some(&viewer), "sense").0 != 200 {
        assert!(began.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(node.call(Some(&operator), "reset").0, 200);
}

pub(super) const STREAMS: &str = "Accept: application/json, text/event-stream\r\n";

fn hello() -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "many", "version": "1"}}})
    .to_string()
}

/// Opens a session: its status and its name.
pub(super) fn session(served: &Served, headers: &str) -> (u16, Option<String>) {
    let (mut stream, host) = connect(served);
    let body = hello();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\n{STREAMS}{headers}Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let status = text.split(' ').nth(1).unwrap().parse().unwrap();
    let named = text.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("mcp-session-id")
            .then(|| value.trim().to_owned())
    });
    (status, named)
}

fn in_session(served: &Served, session: &str, body: &str) -> u16 {
    let headers = format!("{STREAMS}Mcp-Session-Id: {session}\r\n");
    post(served, &headers, body).0
}

#[test]
fn sessions_without_end_are_bounded_and_one_at_work_stays() {
    const MANY: usize = 400;
    let bench = Bench::new();
    let lines: Vec<String> = (0..60)
        .map(|row| format!("[[0.0, {row}.0], [70.0, {row}.0]]"))
        .collect();
    bench.scene(
        "long",
        &super::scene("long", &format!("[{}]", lines.join(", "))),
    );
    let served = bench.serve(&[]);
    let first = session(&served, "").1.unwrap();
    let worker = session(&served, "").1.unwrap();
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
    for one in [&first, &worker] {
        assert_eq!(in_session(&served, one, &ready), 202);
    }
    let (host, drawing) = (served.host(), worker.clone());
    let drawing = std::thread::spawn(move || {
        let headers = format!("{STREAMS}Mcp-Session-Id: {drawing}\r\n");
        post_to(
            &host,
            &headers,
            &tool_call("stroke", &json!({"scene": "long"})),
        )
    });
    let state = || {
        let (_, preview) = post(&served, "", &tool_call("list_nodes", &json!({})));
        result(&preview)["nodes"][0]["arms"][0]["state"].clone()
    };
    until("moving", state, |state| state == "moving");
    let before_mib = resident_mib(&served, "VmRSS");
    for _ in 0..MANY {
        assert_eq!(session(&served, "").0, 200);
    }
    let after_mib = resident_mib(&served, "VmRSS");
    assert!(
        after_mib < before_mib + GROWTH_MIB_MAX,
        "{before_mib:.1} MiB before, {after_mib:.1} after"
    );
    let list = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {}});
    assert_eq!(in_session(&served, &first, &list.to_string()), 404);
    assert_eq!(in_session(&served, &worker, &list.to_string()), 200);
    assert_eq!(
        state(),
        "moving",
        "a session at work is not ended for others"
    );
    let (_, stopped) = post(&served, "", &tool_call("stop", &json!({})));
    assert_eq!(result(&stopped)["success"], true, "{stopped}");
    drawing.join().unwrap();
}

#[test]
fn a_session_is_a_call_of_its_token() {
    let node = Guarded::new();
    let token = node.bench.token("slow", &["--calls-per-minute", "6"]);
    let headers = bearer(&token);
    assert_eq!(session(&node.served, &headers).0, 200);
    assert_eq!(session(&node.served, &headers).0, 429);
    let (_, stopped) = node.call(Some(&token), "stop");
    assert_eq!(result(&stopped)["success"], true, "{stopped}");
}

pub(super) fn descriptors(served: &Served) -> usize {
    let open = std::fs::read_dir(format!("/proc/{}/fd", served.child.0.id()));
    open.unwrap().count()
}

/// Asks for more than all buffers on the way hold, and reads none of it.
fn ask_and_sleep(served: &Served) -> TcpStream {
    const ANSWERS: usize = 400;
    let (mut stream, host) = connect(served);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}).to_string();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream
        .write_all(request.repeat(ANSWERS).as_bytes())
        .unwrap();
    stream
}

/// Whether the node has hung up: what is sent to it then is refused.
fn is_dropped(mut stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let sent = stream.write(b"\n");
    sent.is_err_and(|error| error.kind() != ErrorKind::WouldBlock)
}

#[test]
fn who_does_not_read_the_answers_is_dropped() {
    const SLEEPERS: usize = 4;
    let bench = Bench::new();
    let served = bench.serve(&[]);
    let asleep: Vec<TcpStream> = (0..SLEEPERS).map(|_| ask_and_sleep(&served)).collect();
    let began = Instant::now();
    // As long as their answers wait, and a busy machine's time on top.
    while !asleep.iter().all(is_dropped) {
        assert!(began.elapsed() < 3 * PATIENCE, "they are still there");
        std::thread::sleep(Duration::from_millis(200));
    }
    untouched(&served, "");
}

#[test]
fn every_address_of_a_node_knows_whom_it_answers() {
    let node = Guarded::new();
    let host = node.served.host();
    let status = |path: &str, headers: &str| -> u16 {
        let mut stream = TcpStream::connect(&host).unwrap();
        let head = format!("GET {path} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        super::answer(&mut stream).0
    };
    let ours = format!("Host: {host}\r\n");
    let page = format!("{ours}Origin: https://evil.example\r\n");
    for path in [
        "/healthz",
        "/readyz",
        "/metrics",
        "/mcp",
        "/operator",
        "/nowhere",
    ] {
        assert_eq!(status(path, "Host: evil.example\r\n"), 403, "{path}");
        assert_eq!(status(path, &page), 403, "{path}");
        assert_eq!(status(path, ""), 400, "{path}");
    }
    // Everyone may ask whether it is alive; what it does is only for callers who may look.
    assert_eq!(
        (status("/healthz", &ours), status("/readyz", &ours)),
        (200, 200)
    );
    assert_eq!(status("/metrics", &ours), 401);
    let viewer = format!("{ours}{}", bearer(&node.tokens[0]));
    assert_eq!(status("/metrics", &viewer), 200);
    let open = Bench::new();
    let served = open.serve(&[]);
    let numbers = get(&served, "/metrics");
    assert!(
        numbers.contains("200 OK") && numbers.contains("text/plain"),
        "{numbers}"
    );
}
