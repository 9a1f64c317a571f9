//! Several nodes as real processes: who is listed, how calls are passed on, and what is said when some of them are
//! killed, asleep, wrong about the time or not there at all.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a failing test may panic, and tests wait for real"
)]

use crate::support;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use steadyhand::mcp::client::{self, McpClient};
use steadyhand::mcp::http_client;
use steadyhand::mcp::{CallWatch, ProgressSender, ReceivedArguments, ToolAnswer};
use support::closed_port::ClosedPort;
use support::{Bench, PATIENCE, Served, scene, tool_call, unless_starved};
use tokio_util::sync::CancellationToken;

/// Whatever is down, a list is there so soon, on a busy machine too: those who wait for a node that is silent wait until it
/// answers. What the machine kept a bare thread waiting meanwhile is not counted.
const LIST_MAX: Duration = Duration::from_secs(10);

/// A bare thread sleeps so long at a time; woken later than twice that, it was kept waiting.
const NAP: Duration = Duration::from_millis(1);

/// A stop of all is answered within `stop_within_s` of the slowest, which the hub's file sets to two seconds; the rest is the
/// machine's.
const STOP_MAX: Duration = Duration::from_secs(20);

/// Half a minute of lines, so that it is surely still being drawn when something happens.
fn long_scene() -> String {
    let lines: Vec<String> = (0..30)
        .map(|row| format!("[[0.0, {row}.0], [60.0, {row}.0]]"))
        .collect();
    scene("long", &format!("[{}]", lines.join(", ")))
}

/// One node of a fleet.
struct Member {
    bench: Bench,
    served: Served,
}

impl Member {
    fn start(file: &str, args: &[&str], environment: &[(&str, &str)]) -> Self {
        let bench = Bench::at_test_rate();
        bench.scene("long", &long_scene());
        let options = bench.file(file);
        let options = options.each_ref().map(String::as_str);
        let served = bench.serve_in(&[&options[..], args].concat(), environment);
        Self { bench, served }
    }

    fn address(&self) -> &str {
        let at = self.served.url.strip_prefix("http://").unwrap();
        at.split('/').next().unwrap()
    }

    async fn client(&self) -> McpClient {
        client::connect(&self.served.url).await.unwrap()
    }

    fn signal(&self, signal: Signal) {
        self.served.child.signal(signal);
    }
}

fn peer(name: &str, address: &str) -> String {
    format!("[[peers]]\nname = \"{name}\"\naddress = \"{address}\"\ntags = [\"row 2\"]\n")
}

/// A hub that knows `peers`, in the form of its node file.
fn hub(peers: &str) -> Member {
    let file = format!("name = \"hub\"\n{peers}\n[fleet]\nstop_within_s = 2\nquiet_s = 2\n");
    Member::start(&file, &[], &[])
}

fn quiet() -> CallWatch {
    CallWatch {
        cancelled: CancellationToken::new(),
        progress: None,
    }
}

async fn call(client: &McpClient, tool: &str, arguments: Value) -> ToolAnswer {
    let answer = client.call(tool, ReceivedArguments::Value(arguments), quiet());
    let answer = tokio::time::timeout(PATIENCE, answer).await;
    answer.unwrap().unwrap()
}

fn data(answer: &ToolAnswer) -> Value {
    Value::Object(answer.structured.clone())
}

async fn list(client: &McpClient) -> (Vec<Value>, Duration) {
    let over = Arc::new(AtomicBool::new(false));
    let baseline = thread::spawn({
        let over = Arc::clone(&over);
        move || kept_waiting(&over)
    });
    let began = Instant::now();
    let answer = call(client, "list_nodes", json!({})).await;
    let took = began.elapsed();
    over.store(true, Ordering::Relaxed);
    let kept = baseline.join().unwrap();
    println!("a list took {took:?}; a bare thread was kept waiting for {kept:?} of it");
    assert!(!answer.is_error, "{}", answer.text);
    let nodes = answer.structured["nodes"].as_array().unwrap().clone();
    (nodes, took.saturating_sub(kept))
}

/// Measures how long the machine kept a thread waiting that only sleeps, until that is over.
fn kept_waiting(over: &AtomicBool) -> Duration {
    let mut kept = Duration::ZERO;
    while !over.load(Ordering::Relaxed) {
        let began = Instant::now();
        thread::sleep(NAP);
        let delay = began.elapsed().saturating_sub(NAP);
        kept += if delay > NAP { delay } else { Duration::ZERO };
    }
    kept
}

fn find<'a>(nodes: &'a [Value], name: &str) -> &'a Value {
    let found = nodes.iter().find(|node| node["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {nodes:#?}"))
}

/// Until a node says something, which it must in time.
async fn until(client: &McpClient, name: &str, is: impl Fn(&Value) -> bool) -> Value {
    let began = Instant::now();
    loop {
        let (nodes, _) = list(client).await;
        let node = find(&nodes, name);
        if is(node) {
            return node.clone();
        }
        assert!(began.elapsed() < PATIENCE, "{node:#}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn is_moving(node: &Value) -> bool {
    node["reachable"] == true && node["arms"][0]["state"] == "moving"
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_node_is_listed_with_all_that_it_says_of_itself() {
    let left = Member::start("name = \"bench-left\"\n", &[], &[]);
    let right = Member::start(
        "name = \"right\"\n",
        &[],
        &[("STEADYHAND_CALENDAR_OFFSET_MS", "3600000")],
    );
    let hub = hub(&(peer("left", left.address()) + &peer("right", right.address())));
    let client = hub.client().await;
    let (nodes, took) = list(&client).await;
    assert!(took < LIST_MAX, "{took:?}");
    assert_eq!(nodes.len(), 3);
    for name in ["hub", "left", "right"] {
        let node = find(&nodes, name);
        assert_eq!(node["reachable"], true, "{node:#}");
        assert_eq!(node["version"], env!("CARGO_PKG_VERSION"));
        assert!(node["scenes"].as_array().unwrap().contains(&json!("long")));
        assert!(node["tools"].as_array().unwrap().contains(&json!("stop")));
        let arm = &node["arms"][0];
        assert_eq!(arm["arm"], "simulated so101");
        assert_eq!(
            (&arm["simulated"], &arm["motion_enabled"]),
            (&json!(true), &json!(true))
        );
        for key in ["job", "lease", "last_calibration"] {
            assert_eq!(arm.get(key), Some(&Value::Null), "{key}: {node:#}");
        }
    }
    let left = find(&nodes, "left");
    assert_eq!(
        (&left["calls_itself"], &left["tags"]),
        (&json!("bench-left"), &json!(["row 2"]))
    );
    assert!(left["age_s"].as_f64().unwrap() < 5.0);
    // Its clock is an hour ahead, and the list says how sure it is of that.
    let right = find(&nodes, "right");
    let off = right["clock_offset_ms"].as_f64().unwrap() - 3_600_000.0;
    let within = right["clock_offset_within_ms"].as_f64().unwrap();
    assert!(off.abs() <= within + 1.0, "{off} ms off, said {within}");
    assert!(left["clock_offset_ms"].as_f64().unwrap().abs() < 60_000.0);
    let (again, _) = list(&client).await;
    assert_eq!(find(&again, "left")["reachable"], true);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_passed_on_whole_with_progress_and_pictures() {
    let left = Member::start("name = \"bench-left\"\n", &[], &[]);
    // A scene that only this node lacks is not refused.
    left.bench
        .scene("there", &scene("there", support::SHORT_LINES));
    let hub = hub(&peer("left", left.address()));
    let client = hub.client().await;
    let sloppy = "{'Scene': 'there', node: 'LEFT', dryRun: 'yes',}".to_owned();
    let planned = client.call("stroke", ReceivedArguments::Text(sloppy), quiet());
    let planned = planned.await.unwrap();
    assert!(!planned.is_error, "{}", planned.text);
    assert_eq!(planned.structured["node"], "left");
    assert_eq!(planned.structured["understood"]["scene"], "there");
    assert!(
        !planned.images.is_empty(),
        "the preview's picture came along"
    );
    // Each node keeps its own journal: this one has moved nothing.
    let (sender, news) = ProgressSender::pair();
    let watch = CallWatch {
        cancelled: CancellationToken::new(),
        progress: Some(sender),
    };
    let arguments = ReceivedArguments::Value(json!({"node": "left", "scene": "short"}));
    let drawn = client.call("stroke", arguments, watch).await.unwrap();
    assert!(!drawn.is_error, "{}", drawn.text);
    assert!(
        drawn.text.starts_with("left: drew 2 strokes"),
        "{}",
        drawn.text
    );
    assert!(news.borrow().done > 0.0, "progress came along");
    let here = call(&client, "sense", json!({})).await;
    assert_eq!(here.structured.get("job"), None, "{:#}", data(&here));
    let there = call(&client, "sense", json!({"node": "left"})).await;
    assert_eq!(
        there.structured["job"]["state"],
        "reached",
        "{:#}",
        data(&there)
    );
    assert!(
        !there.images.is_empty(),
        "what was drawn there is seen here"
    );
    // Calibration is dated by the node that did it.
    let aligned = call(&client, "align", json!({"node": "left"})).await;
    assert!(!aligned.is_error, "{}", aligned.text);
    let left = until(&client, "left", |node| {
        node["arms"][0]["last_calibration"]["ended_ms"].is_u64()
    });
    left.await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_gives_up_stops_the_arm_of_the_other_node() {
    let left = Member::start("name = \"left\"\n", &[], &[]);
    let hub = hub(&peer("left", left.address()));
    let client = hub.client().await;
    let watch = quiet();
    let cancelled = watch.cancelled.clone();
    let arguments = ReceivedArguments::Value(json!({"node": "left", "scene": "long"}));
    let drawing = client.call("stroke", arguments, watch);
    let looking = hub.client().await;
    let given_up = async {
        until(&looking, "left", is_moving).await;
        cancelled.cancel();
    };
    let (drawn, ()) = tokio::join!(drawing, given_up);
    assert!(drawn.is_err());
    let stands = until(&looking, "left", |node| {
        node["arms"][0]["state"] == "stopped" && node["arms"][0]["job"].is_null()
    });
    stands.await;
}

/// Draws with the other node, until something happens to the hub. Returns the call's answer.
async fn drawn_by_left(hub: &Member, left: &Member, happens: impl FnOnce()) -> ToolAnswer {
    let client = hub.client().await;
    let looking = left.client().await;
    let drawing = call(&client, "stroke", json!({"node": "left", "scene": "long"}));
    let happening = async {
        until(&looking, "left", is_moving).await;
        happens();
        until(&looking, "left", |node| {
            node["arms"][0]["state"] == "stopped" && node["arms"][0]["job"].is_null()
        })
        .await;
    };
    let (drawn, ()) = tokio::join!(drawing, happening);
    drawn
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancellation_that_cannot_be_told_stops_the_arm_of_the_other_node() {
    let left = Member::start("name = \"left\"\n", &[], &[]);
    let hub = hub(&peer("left", left.address()));
    let drawn = drawn_by_left(&hub, &left, || {
        let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": "nobody's"}});
        support::post_text(&hub.served, "", &cancelled.to_string());
    });
    let drawn = drawn.await;
    assert_eq!(drawn.structured["code"], "stopped", "{:#}", data(&drawn));
    assert!(!drawn.text.contains("nothing moved"), "{}", drawn.text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ending_node_gives_up_what_it_moves_elsewhere_and_says_so() {
    let left = Member::start("name = \"left\"\n", &[], &[]);
    let hub = hub(&peer("left", left.address()));
    let drawn = drawn_by_left(&hub, &left, || hub.signal(Signal::TERM)).await;
    assert_eq!(drawn.structured["code"], "stopped", "{:#}", data(&drawn));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_nobody_has_is_answered_with_the_nearest() {
    let left = Member::start("name = \"left\"\n", &[], &[]);
    let hub = hub(&peer("left", left.address()));
    let client = hub.client().await;
    let wrong = call(&client, "stroke", json!({"node": "lefft", "scene": "long"})).await;
    let refused = data(&wrong);
    assert!(wrong.is_error);
    assert_eq!(refused["complaints"][0]["valid"][0], "left", "{refused:#}");
    assert_eq!(refused.get("corrected_call"), None, "{refused:#}");
    // A stop with such a name stops every node that can be reached, and reports it.
    let looking = hub.client().await;
    let drawing = async {
        let drawn = call(&looking, "stroke", json!({"node": "left", "scene": "long"})).await;
        assert!(drawn.is_error, "{}", drawn.text);
    };
    let stopping = async {
        until(&client, "left", is_moving).await;
        call(&client, "stop", json!({"node": "lefft"})).await
    };
    let ((), stopped) = tokio::join!(drawing, stopping);
    let reply = data(&stopped);
    assert!(!stopped.is_error, "{reply:#}");
    assert_eq!(reply["nodes"].as_array().unwrap().len(), 2);
    assert!(
        reply["usage_hints"].to_string().contains("lefft"),
        "{reply:#}"
    );
    // So does one whose arguments have to be mended.
    for arguments in [
        json!({"peer": "left"}),
        json!(["left"]),
        json!({"node": "left", "all": true}),
    ] {
        let stopped = call(&client, "stop", arguments.clone()).await;
        let reply = data(&stopped);
        assert_eq!(reply["nodes"].as_array().unwrap().len(), 2, "{arguments}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_of_another_node_leaves_this_one_alone() {
    let left = Member::start("name = \"left\"\n", &[], &[]);
    let hub = hub(&peer("left", left.address()));
    let client = hub.client().await;
    let looking = hub.client().await;
    let drawing = call(&looking, "stroke", json!({"scene": "short"}));
    let stopping = async {
        until(&client, "hub", is_moving).await;
        call(&client, "stop", json!({"node": "left"})).await
    };
    let (drawn, stopped) = tokio::join!(drawing, stopping);
    assert!(!drawn.is_error, "{}", drawn.text);
    assert_eq!(stopped.structured["node"], "left");
    assert!(!stopped.is_error, "{}", stopped.text);
}

#[test]
fn an_emergency_stop_of_all_waits_for_no_arm() {
    unless_starved(|| {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(the_other_node_is_stopped_while_the_own_arm_hangs());
    });
}

/// The hub's own arm does not answer, so that its emergency stop takes seconds; the other node is told before that is over.
async fn the_other_node_is_stopped_while_the_own_arm_hangs() {
    const LEAD_MIN: Duration = Duration::from_millis(700);
    let beside = Bench::at_test_rate();
    let (arm, port) = beside.sim(&[]);
    let left = Member::start("name = \"left\"\n", &[], &[]);
    let file = format!(
        "name = \"hub\"\n[[arms]]\nname = \"arm\"\nmodel = \"so101\"\nport = {port:?}\ncalibrated = \"elsewhere\"\n{}",
        peer("left", left.address())
    );
    let hub = Member::start(&file, &["--enable", "long"], &[]);
    let (here, there) = (hub.client().await, hub.client().await);
    let looking = left.client().await;
    let drawing = async {
        let arguments = json!({"node": "left", "scene": "long"});
        tokio::join!(
            call(&here, "stroke", json!({"scene": "long"})),
            call(&there, "stroke", arguments)
        )
    };
    let stopping = async {
        until(&looking, "left", is_moving).await;
        let own = hub.client().await;
        until(&own, "hub", is_moving).await;
        arm.signal(Signal::STOP);
        let stop = hub.bench.command(&["fleet", "stop", "--emergency"]);
        let ended = tokio::task::spawn_blocking(move || {
            let mut stop = stop;
            stop.output().unwrap();
            Instant::now()
        });
        until(&looking, "left", |node| !is_moving(node)).await;
        let stood = Instant::now();
        let ended = ended.await.unwrap();
        arm.signal(Signal::CONT);
        ended.saturating_duration_since(stood)
    };
    let (_, lead) = tokio::join!(drawing, stopping);
    assert!(lead > LEAD_MIN, "{lead:?}");
}

/// Accepts the next connection and reads from it until its bytes hold these words.
fn accepted(listener: &TcpListener, words: &str) -> TcpStream {
    let began = Instant::now();
    listener.set_nonblocking(true).unwrap();
    let mut stream = loop {
        match listener.accept() {
            Ok((stream, _)) => break stream,
            Err(_) => assert!(began.elapsed() < PATIENCE, "nobody connects"),
        }
        thread::sleep(Duration::from_millis(20));
    };
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let (mut all, mut chunk) = (Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&all).contains(words) {
        let count = stream.read(&mut chunk).unwrap();
        assert!(count > 0, "it ended before {words:?}");
        all.extend_from_slice(&chunk[..count]);
    }
    stream
}

/// A long report of another node was repeated to every caller, on the thread that hears stops.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_of_another_node_that_is_too_long_is_not_kept() {
    let left = TcpListener::bind("127.0.0.1:0").unwrap();
    let hub = hub(&peer("left", &left.local_addr().unwrap().to_string()));
    let scenes = vec!["a scene"; 20_000];
    let own = json!({"this": true, "name": "left", "arms": [], "scenes": scenes});
    let result = json!({"content": [], "structuredContent": {"success": true, "nodes": [own]}});
    let body = json!({"jsonrpc": "2.0", "id": 1, "result": result}).to_string();
    let answering = thread::spawn(move || {
        let mut stream = accepted(&left, "list_nodes");
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close";
        let length = body.len();
        // It is hung up on in the middle.
        let _ = write!(stream, "{head}\r\nContent-Length: {length}\r\n\r\n{body}");
    });
    let client = hub.client().await;
    let (nodes, _) = list(&client).await;
    let left = find(&nodes, "left");
    assert_eq!(left["reachable"], false, "{left:#}");
    assert!(
        left.to_string().contains("longer than 131072 bytes"),
        "{left:#}"
    );
    assert_eq!(left.get("last_seen"), None);
    answering.join().unwrap();
}

/// The other node's first connection breaks without an answer once the caller has gone; the stop is sent again.
#[test]
fn a_stop_of_another_node_is_carried_on_though_its_caller_goes() {
    const STOP: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"stop","arguments":{"node":"left"}}}"#;
    const OPENING: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let left = TcpListener::bind("127.0.0.1:0").unwrap();
    let peers = peer("left", &left.local_addr().unwrap().to_string());
    let file = format!("name = \"hub\"\n{peers}\n[fleet]\nstop_within_s = 30\nquiet_s = 30\n");
    let is_sent_again = || {
        let first = accepted(&left, "\"stop\"");
        thread::sleep(Duration::from_millis(300));
        drop(first);
        let mut second = accepted(&left, "\"stop\"");
        let result = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{"success":true}}}"#;
        let length = result.len();
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close";
        write!(second, "{head}\r\nContent-Length: {length}\r\n\r\n{result}").unwrap();
    };
    let hub = Member::start(&file, &[], &[]);
    for accept in ["application/json", "application/json, text/event-stream"] {
        let (mut stream, host) = support::connect(&hub.served);
        let length = STOP.len();
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: {host}\r\nAccept: {accept}\r\nContent-Length: {length}\r\n\r\n{STOP}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        drop(stream);
        is_sent_again();
    }
    drop(hub);
    let bench = Bench::at_test_rate().with_file(&file);
    let mut node = bench
        .command(&["serve"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map(support::Running)
        .unwrap();
    let mut input = node.0.stdin.take().unwrap();
    write!(input, "{OPENING}\n{STOP}\n").unwrap();
    drop(input);
    is_sent_again();
    node.exit_code();
}

/// One is killed during its stroke, one is asleep, one is wrong about the time, one address is dead and one is silent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_down_keeps_nobody_waiting_and_is_not_said_to_be_well() {
    let mut left = Member::start("name = \"left\"\n", &[], &[]);
    let right = Member::start(
        "name = \"right\"\n",
        &[],
        &[("STEADYHAND_CALENDAR_OFFSET_MS", "-86400000")],
    );
    // Connections are taken by the system and never answered.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent_at = silent.local_addr().unwrap().to_string();
    let dead = ClosedPort::new();
    let peers = peer("left", left.address())
        + &peer("right", right.address())
        + &peer("silent", &silent_at)
        + &peer("dead", &dead.address().to_string());
    let hub = hub(&peers);
    let client = hub.client().await;
    let looking = hub.client().await;
    let (nodes, first) = list(&client).await;
    assert!(first < LIST_MAX, "{first:?}");
    assert_eq!(find(&nodes, "dead")["reachable"], false);
    assert_eq!(find(&nodes, "silent")["reachable"], false);
    assert_eq!(find(&nodes, "silent").get("arms"), None);
    // Whoever slept the last time is not waited for again.
    let mut soonest = first;
    for _ in 0..5 {
        soonest = soonest.min(list(&client).await.1);
    }
    assert!(soonest < Duration::from_millis(800), "{soonest:?}");

    // Killed during its stroke: the call ends, and does not say that anything was reached.
    let drawing = call(&client, "stroke", json!({"node": "left", "scene": "long"}));
    let killing = async {
        until(&looking, "left", is_moving).await;
        left.served.child.0.kill().unwrap();
        left.served.child.0.wait().unwrap();
        Instant::now()
    };
    let (drawn, killed) = tokio::join!(drawing, killing);
    assert!(killed.elapsed() < STOP_MAX, "{:?}", killed.elapsed());
    assert!(drawn.is_error);
    assert_eq!(drawn.structured["code"], "lost", "{:#}", data(&drawn));
    let gone = until(&looking, "left", |node| node["reachable"] == false).await;
    assert_eq!(gone.get("arms"), None, "{gone:#}");
    assert_eq!(gone["last_seen"]["arms"][0]["state"], "moving", "{gone:#}");
    assert!(gone["last_seen"]["age_s"].as_f64().unwrap() > 0.0);

    // Asleep in the middle of its stroke.
    let drawing = call(&client, "stroke", json!({"node": "right", "scene": "long"}));
    let sleeping = async {
        until(&looking, "right", is_moving).await;
        right.signal(Signal::STOP);
        let (nodes, took) = list(&looking).await;
        // What was seen a moment ago may still be shown, with its age.
        assert!(took < LIST_MAX, "{took:?}");
        let node = find(&nodes, "right");
        assert!(node["reachable"] == false || node["age_s"].as_f64().unwrap() < 1.0);
        let began = Instant::now();
        let stopped = call(&looking, "stop", json!({"node": "all"})).await;
        let took = began.elapsed();
        assert!(took < STOP_MAX, "{took:?}");
        let reply = data(&stopped);
        assert!(stopped.is_error, "{reply:#}");
        let lines = reply["nodes"].as_array().unwrap();
        let of = |name: &str| lines.iter().find(|line| line["node"] == name).unwrap();
        assert_eq!(of("hub")["success"], true, "{reply:#}");
        for name in ["left", "right", "silent", "dead"] {
            assert_eq!(of(name)["success"], false, "{reply:#}");
            let message = of(name)["message"].as_str().unwrap();
            assert!(message.contains("may still"), "{message}");
        }
        let (_, took) = list(&looking).await;
        assert!(took < LIST_MAX, "{took:?}");
        Instant::now()
    };
    let (drawn, stopped) = tokio::join!(drawing, sleeping);
    assert!(drawn.is_error, "{}", drawn.text);
    assert!(stopped.elapsed() < STOP_MAX, "{:?}", stopped.elapsed());
    // Awake again, it finds its caller gone and the stop that waited for it: nothing goes on.
    right.signal(Signal::CONT);
    let back = until(&looking, "right", |node| {
        let state = &node["arms"][0]["state"];
        node["reachable"] == true && state != "moving" && state != "stopping"
    })
    .await;
    let offset = back["clock_offset_ms"].as_f64().unwrap();
    assert!((offset + 86_400_000.0).abs() < 60_000.0, "{offset}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_goes_one_hop_and_no_further() {
    let left = Member::start("name = \"left\"\n", &[], &[]);
    let middle = Member::start(
        &format!("name = \"middle\"\n{}", peer("left", left.address())),
        &[],
        &[],
    );
    let hub = hub(&peer("next", middle.address()));
    let client = hub.client().await;
    // The middle one is asked for itself alone.
    let there = call(&client, "list_nodes", json!({"node": "next"})).await;
    let nodes = there.structured["nodes"].as_array().unwrap();
    assert_eq!((nodes.len(), &nodes[0]["name"]), (1, &json!("middle")));
    // A node that passes on a call meant for a third one gets an error.
    let body = tool_call("sense", &json!({"node": "left"}));
    let headers = "Steadyhand-From: hub\r\nSteadyhand-Called: next\r\n";
    let (status, answer) = support::post(&middle.served, headers, &body);
    assert_eq!(status, 200);
    let reply = &answer["result"]["structuredContent"];
    assert_eq!(reply["code"], "one_hop", "{answer:#}");
}

#[test]
fn a_call_that_was_sent_before_a_stop_does_nothing_behind_it() {
    let left = Member::start("name = \"left\"\n", &[], &[]);
    let passed_on = |tool: &str, order: &str| {
        let body = tool_call(tool, &json!({}));
        let headers = format!(
            "Steadyhand-From: hub\r\nSteadyhand-Called: left\r\nSteadyhand-Order: {order}\r\n"
        );
        let (status, answer) = support::post(&left.served, &headers, &body);
        assert_eq!(status, 200);
        answer["result"]["structuredContent"].clone()
    };
    let outcome = |tool: &str, order: &str| {
        let result = passed_on(tool, order);
        let code = result["code"].as_str().unwrap_or_default().to_owned();
        (result["success"] == true, code)
    };
    let done = (true, String::new());
    let stopped = (false, "stopped".to_owned());
    assert_eq!(outcome("stop", "c0ffee 5"), done);
    // Sent before the stop, by a connection that was slower.
    assert_eq!(outcome("reset", "c0ffee 4"), stopped);
    assert_eq!(outcome("sense", "c0ffee 4"), done);
    // Sent after it, or by another run.
    assert_eq!(outcome("reset", "c0ffee 5"), done);
    assert_eq!(outcome("reset", "bee 0"), done);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_opens_no_more_there_than_here_and_is_never_shown() {
    let bench = Bench::at_test_rate().with_file("name = \"left\"\nrequire_tokens = true\n");
    let viewer = bench.token("looks", &["--role", "viewer"]);
    let operator = bench.token("hub", &["--role", "operator"]);
    let left = bench.serve(&[]);
    let address = left.url.strip_prefix("http://").unwrap();
    let address = address.split('/').next().unwrap();
    let file = bench.path("token");
    std::fs::write(&file, format!("{operator}\n")).unwrap();
    let peers = format!(
        "{}token = \"{viewer}\"\n{}token_file = {:?}\n{}",
        peer("looks", address),
        peer("moves", address),
        file.display().to_string(),
        peer("without", address),
    );
    let hub = hub(&peers);
    let client = hub.client().await;
    // A token is proven once, slowly, and one after the other: on a busy machine the first list may not wait for that.
    until(&client, "looks", |node| node["reachable"] == true).await;
    let (nodes, _) = list(&client).await;
    let without = find(&nodes, "without");
    assert!(
        without["why"].as_str().unwrap().contains("token"),
        "{without:#}"
    );
    let refused = call(&client, "stroke", json!({"node": "looks"})).await;
    assert_eq!(refused.structured["code"], "role", "{:#}", data(&refused));
    // Stopped by an operator there; a planner of the hub does not reset it by the hub's operator's token.
    let socket = bench.path("steadyhand/left.sock").display().to_string();
    bench.done(&["stop", "--socket", &socket]);
    let reset = call(&client, "reset", json!({"node": "moves"})).await;
    assert!(reset.is_error, "{:#}", data(&reset));
    let shown = format!("{nodes:?} {:?}", data(&reset));
    let log: Vec<String> = hub.served.lines.try_iter().collect();
    for secret in [&viewer, &operator] {
        assert!(!shown.contains(secret.as_str()));
        assert!(!log.concat().contains(secret.as_str()));
    }
}

/// A drawing of a queue, in the folder of a hub; the node file that calls one node, and the command that draws there.
fn queued_drawing(hub: &Bench, left: &Member) -> Vec<String> {
    let svg = "<svg xmlns='http://www.w3.org/2000/svg' width='40mm' height='40mm' viewBox='0 0 40 40'>\
        <path d='M5 5 L30 20' fill='none' stroke='black'/></svg>";
    std::fs::write(hub.path("one.svg"), svg).unwrap();
    std::fs::write(hub.path("hub.toml"), peer("left", left.address())).unwrap();
    let path = |name: &str| hub.path(name).display().to_string();
    let config = path("hub.toml");
    ["--config", &config, "fleet", "draw", &path("one.svg")]
        .map(str::to_owned)
        .into()
}

#[test]
fn a_queue_approves_nothing_and_its_death_changes_nothing() {
    let left = Member::start("name = \"left\"\nbefore_drawing = \"person\"\n", &[], &[]);
    let hub = Bench::new();
    let draw = queued_drawing(&hub, &left);
    let draw: Vec<&str> = draw.iter().map(String::as_str).collect();
    let mut queue = hub.command(&draw);
    queue.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut queue = support::Running(queue.spawn().unwrap());
    let stdout = support::lines(queue.0.stdout.take().unwrap());
    support::wait_for(&stdout, "left: job-1");
    queue.0.kill().unwrap();
    queue.0.wait().unwrap();
    // The next one waits until this one has been silent for as long as its lease lasts.
    let mut patience = draw.clone();
    patience.push("--no-wait");
    let waits = hub.run(&patience);
    assert!(
        !waits.status.success(),
        "all that is left waits for a person: {waits:?}"
    );
    let approved = left.bench.run(&["approve", "job-1", "--yes"]);
    assert!(approved.status.success(), "{approved:?}");
    let drawn = hub.run(&draw);
    let stdout = String::from_utf8(drawn.stdout).unwrap();
    assert!(drawn.status.success(), "{stdout}");
    assert!(stdout.contains("drawn left: job-1 drew it"), "{stdout}");
    let (_, sensed) = left
        .bench
        .call(&["sense", "{}", "--node", &left.served.url]);
    assert_eq!(sensed["job"]["id"], "job-1", "{sensed:#}");
}

#[test]
fn a_queue_clears_no_stop_and_says_for_whom_it_waits() {
    let left = Member::start("name = \"left\"\n", &[], &[]);
    let hub = Bench::new();
    let draw = queued_drawing(&hub, &left);
    let mut draw: Vec<&str> = draw.iter().map(String::as_str).collect();
    draw.push("--no-wait");
    let stopped = left.bench.run(&["stop"]);
    assert!(stopped.status.success(), "{stopped:?}");
    let waits = hub.run(&draw);
    let stdout = String::from_utf8(waits.stdout).unwrap();
    assert!(!waits.status.success(), "{stdout}");
    assert!(stdout.contains("waits left: "), "{stdout}");
    let (_, sensed) = left
        .bench
        .call(&["sense", "{}", "--node", &left.served.url]);
    assert!(
        !sensed["latched"].is_null() && sensed["job"].is_null(),
        "{sensed:#}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_taken_in_by_its_key_alone() {
    let left = Member::start("name = \"left\"\n", &[], &[]);
    let hub = Bench::new();
    let alone = hub.run(&["nodes", "--for", "1s"]);
    assert!(alone.status.success(), "{alone:?}");
    let address = format!("http://{}", left.address());
    let fetched = http_client::fetch(&format!("{address}/identity/{}", "5".repeat(64))).await;
    let key = fetched.unwrap().1["key"].as_str().unwrap().to_owned();
    std::fs::write(hub.path("hub.toml"), "name = \"hub\"\n").unwrap();
    std::fs::write(hub.path("token"), "sth_of-left\n").unwrap();
    let path = |name: &str| hub.path(name).display().to_string();
    let (config, token) = (path("hub.toml"), path("token"));
    let accept = |name: &str, key: &str| {
        let call = ["--config", &config, "nodes", "accept", name, "--key", key];
        hub.run(&[&call[..], &["--token-file", &token, "--address", &address]].concat())
    };
    let another = format!("{}{}", &key[1..], &key[..1]);
    for (name, key) in [
        ("left", another.as_str()),
        ("right", &key),
        ("left", "5f2c"),
    ] {
        let refused = accept(name, key);
        let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(
            !refused.status.success() && stderr.contains("Nothing was"),
            "{stderr}"
        );
    }
    assert!(accept("left", &key).status.success());
    let file = std::fs::read_to_string(hub.path("hub.toml")).unwrap();
    assert!(
        file.contains("[[peers]]") && file.contains(&address),
        "{file}"
    );
}
