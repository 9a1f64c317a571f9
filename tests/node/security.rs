//! Tests who is denied access and what is bounded, and that none of it reaches the arm.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

mod doors;
mod flood;
mod hangups;
mod roles;

use crate::support;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use support::{
    Bench, PATIENCE, Served, answer, bearer, connect, post, scene, send, tool_call, unless_starved,
    until,
};

/// A node that wants tokens, and one token of each role.
struct Guarded {
    bench: Bench,
    served: Served,
    tokens: [String; 3],
}

const ROLES: [&str; 3] = ["viewer", "planner", "operator"];

impl Guarded {
    fn new() -> Self {
        let bench = Bench::new().with_file("require_tokens = true\n");
        let tokens = ROLES.map(|role| bench.token(role, &["--role", role]));
        let served = bench.serve(&[]);
        Self {
            bench,
            served,
            tokens,
        }
    }

    fn call(&self, token: Option<&str>, tool: &str) -> (u16, Value) {
        let bearer = token.map(bearer).unwrap_or_default();
        post(&self.served, &bearer, &tool_call(tool, &json!({})))
    }
}

fn result(answer: &Value) -> &Value {
    &answer["result"]["structuredContent"]
}

/// Checks that the arm has done nothing: it is at rest without a job.
fn untouched(served: &Served, headers: &str) {
    let (status, answer) = post(served, headers, &tool_call("list_nodes", &json!({})));
    assert_eq!(status, 200, "{answer}");
    let arm = &result(&answer)["nodes"][0]["arms"][0];
    assert_eq!(arm["job"], Value::Null, "{arm}");
    assert_eq!(arm["lease"], Value::Null, "{arm}");
}

#[test]
fn only_a_token_of_the_right_role_comes_in() {
    let node = Guarded::new();
    let [viewer, planner, operator] = &node.tokens;
    let wrong = format!("{viewer}x");
    for token in [None, Some("hello"), Some(wrong.as_str())] {
        let (status, refused) = node.call(token, "stroke");
        assert_eq!(status, 401, "{token:?}: {refused}");
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains("token"), "{message}");
    }
    let (status, refused) = node.call(Some(viewer), "stroke");
    assert_eq!(status, 200);
    assert_eq!(result(&refused)["code"], "role", "{refused}");
    untouched(&node.served, &bearer(viewer));
    // Whoever may come in may stop.
    for token in [viewer, planner, operator] {
        let (_, stopped) = node.call(Some(token), "stop");
        assert_eq!(result(&stopped)["success"], true, "{stopped}");
    }
    // What an operator has stopped, a planner does not reset.
    let (_, reset) = node.call(Some(planner), "reset");
    assert_eq!(result(&reset)["success"], false, "{reset}");
    let (_, reset) = node.call(Some(operator), "reset");
    assert_eq!(result(&reset)["success"], true, "{reset}");
}

impl Guarded {
    /// Sends an operator's verb over HTTP.
    fn operate(&self, token: Option<&str>, headers: &str, verb: &Value) -> (u16, Value) {
        let (mut stream, host) = connect(&self.served);
        let bearer = token.map(bearer).unwrap_or_default();
        let body = verb.to_string();
        let request = format!(
            "POST /operator HTTP/1.1\r\nHost: {host}\r\n{bearer}{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        answer(&mut stream)
    }

    /// The command line as an operator elsewhere types it.
    fn typed_elsewhere(&self, token: &str, verb: &[&str]) -> std::process::Output {
        let file = self.bench.path("token");
        std::fs::write(&file, format!("{token}\n")).unwrap();
        let (node, file) = (&self.served.url, file.to_str().unwrap());
        let there = ["--node", node, "--token-file", file];
        self.bench.run(&[verb, &there].concat())
    }
}

#[test]
fn operators_verbs_are_for_operators_tokens_alone() {
    let node = Guarded::new();
    let [viewer, planner, operator] = &node.tokens;
    let disable = json!({"verb": "disable"});
    let enabled = || {
        let (_, preview) = node.call(Some(viewer), "list_nodes");
        result(&preview)["nodes"][0]["arms"][0]["motion_enabled"].clone()
    };
    for token in [None, Some("hello")] {
        let (status, refused) = node.operate(token, "", &disable);
        assert_eq!(status, 401, "{refused}");
    }
    for token in [viewer, planner] {
        let (status, refused) = node.operate(Some(token), "", &disable);
        assert_eq!(status, 403, "{refused}");
        let done = node.typed_elsewhere(token, &["disable"]);
        let stderr = String::from_utf8(done.stderr).unwrap();
        assert!(
            !done.status.success() && stderr.contains("operator's token"),
            "{stderr}"
        );
    }
    let page = format!("Origin: {}\r\n", node.served.url.replace("/mcp", ""));
    assert_eq!(node.operate(Some(operator), &page, &disable).0, 403);
    let long = json!({"verb": "x".repeat(100_000)});
    assert_eq!(node.operate(Some(planner), "", &long).0, 413);
    assert_eq!(enabled(), true, "nothing of this was done");
    assert_eq!(node.operate(Some(operator), "", &disable).0, 200);
    // An unknown key may be a limit, and an impossible limit is none.
    for (key, value, named) in [
        ("for", json!("30m"), "`for_s`"),
        ("overlay", json!("leaf"), "`meta`"),
        ("for_s", json!(u64::MAX), "7 days"),
    ] {
        let verb = json!({"verb": "enable", "scene": "short", key: value});
        let (status, reply) = node.operate(Some(operator), "", &verb);
        assert_eq!((status, &reply["done"]), (200, &json!(false)), "{reply}");
        let text = reply["text"].as_str().unwrap();
        assert!(text.contains(key) && text.contains(named), "{text}");
        assert_eq!(enabled(), false, "{verb}");
    }
    for (verb, still) in [
        (&["disable"][..], false),
        (&["enable", "--scene", "short"], true),
    ] {
        let done = node.typed_elsewhere(operator, verb);
        assert!(done.status.success(), "{done:?}");
        assert_eq!(enabled(), still, "{verb:?}");
    }
    // A latch of an operator's own, and only `clear` ends it.
    assert!(node.typed_elsewhere(operator, &["estop"]).status.success());
    assert_eq!(
        node.operate(Some(planner), "", &json!({"verb": "clear"})).0,
        403
    );
    assert!(node.typed_elsewhere(operator, &["clear"]).status.success());
    let (status, reply) = node.operate(Some(operator), "", &json!({"verb": "dance"}));
    assert_eq!((status, &reply["done"]), (200, &json!(false)), "{reply}");
    // No tool is an operator's verb, so no list shows one.
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
    let (_, tools) = post(&node.served, &bearer(operator), &list.to_string());
    assert!(!tools.to_string().contains("\"enable\""), "{tools}");
    drop(node.served);
    let log = std::fs::read_to_string(node.bench.path("state/audit.log")).unwrap();
    assert!(log.contains("token operator: estop"), "{log}");
}

#[test]
fn there_are_no_operators_over_http_where_callers_need_no_token() {
    let bench = Bench::new();
    let served = bench.serve(&[]);
    let (mut stream, host) = connect(&served);
    let body = r#"{"verb":"disable"}"#;
    let request = format!(
        "POST /operator HTTP/1.1\r\nHost: {host}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    assert_eq!(answer(&mut stream).0, 404);
    untouched(&served, "");
}

#[test]
fn a_revoked_token_is_nothing_at_once() {
    let node = Guarded::new();
    let planner = &node.tokens[1];
    assert_eq!(node.call(Some(planner), "sense").0, 200);
    node.bench.done(&["token", "revoke", "planner"]);
    assert_eq!(node.call(Some(planner), "sense").0, 401);
    assert_eq!(node.call(Some(&node.tokens[0]), "sense").0, 200);
}

/// A day later by the calendar of a process of its own.
#[test]
fn a_token_that_was_made_for_a_day_ends_with_it() {
    let bench = Bench::new().with_file("require_tokens = true\n");
    let token = bench.token("guest", &["--expires", "1"]);
    let list = bench.done(&["token", "list"]);
    assert!(list.contains("expires within 1 day"), "{list}");
    assert!(!list.contains("1 days"), "{list}");
    for (ahead_ms, expected) in [("0", 200), ("86400001", 401)] {
        let served = bench.serve_in(&[], &[("STEADYHAND_CALENDAR_OFFSET_MS", ahead_ms)]);
        let (status, reply) = post(&served, &bearer(&token), &tool_call("sense", &json!({})));
        assert_eq!(status, expected, "{reply}");
    }
}

#[test]
fn an_address_that_others_reach_wants_tokens_before_it_is_served() {
    let bench = Bench::new();
    let output = bench.run(&["serve", "--http", "0.0.0.0:0"]);
    assert!(!output.status.success());
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("steadyhand token add"), "{stderr}");
}

#[test]
fn calls_beyond_the_rate_wait_and_stops_do_not() {
    let node = Guarded::new();
    node.bench.done(&["token", "revoke", "viewer"]);
    let token = node.bench.token("slow", &["--calls-per-minute", "6"]);
    assert_eq!(result(&node.call(Some(&token), "sense").1)["success"], true);
    let (_, limited) = node.call(Some(&token), "sense");
    assert_eq!(result(&limited)["code"], "rate", "{limited}");
    assert!(result(&limited)["retry_in_s"].as_f64().unwrap() > 0.0);
    assert_eq!(result(&node.call(Some(&token), "stop").1)["success"], true);
}

#[test]
fn a_page_typed_elsewhere_and_a_name_that_is_not_ours_are_kept_out() {
    let bench = Bench::new();
    let served = bench.serve(&[]);
    let body = tool_call("stroke", &json!({}));
    let (status, _) = send(&served, "Host: evil.example\r\n", &body);
    assert_eq!(status, 403);
    let (status, _) = post(&served, "Origin: https://evil.example\r\n", &body);
    assert_eq!(status, 403);
    untouched(&served, "");
}

#[test]
fn a_body_that_is_too_long_or_too_slow_is_refused() {
    let bench = Bench::new();
    let served = bench.serve(&[]);
    let long = "x".repeat(64 * 1024 * 1024);
    let (status, refused) = post(&served, "", &long);
    assert_eq!(status, 413, "{refused}");
    let most_mib = resident_mib(&served, "VmHWM");
    assert!(
        most_mib < 64.0,
        "{most_mib:.1} MiB for a body that is not read"
    );
    let (mut slow, host) = connect(&served);
    let head = format!("POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Length: 100\r\n\r\n{{");
    slow.write_all(head.as_bytes()).unwrap();
    let (status, refused) = answer(&mut slow);
    assert_eq!(status, 408, "{refused}");
    untouched(&served, "");
}

/// Resident memory of a process in MiB, now (`VmRSS`) or at its most (`VmHWM`).
fn resident_mib(served: &Served, what: &str) -> f64 {
    let status = format!("/proc/{}/status", served.child.0.id());
    let text = std::fs::read_to_string(status).unwrap();
    let line = text.lines().find(|line| line.starts_with(what)).unwrap();
    let kib: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib / 1024.0
}

/// Opens so many connections, says how many stand, and holds them until its input ends. Each is another process, so that no
/// process needs more descriptors than every system gives.
const HOLD: &str = "import socket,sys\nh,p=sys.argv[1].rsplit(':',1)\nall=[socket.create_connection((h,int(p)),30) for _ in range(int(sys.argv[2]))]\nprint(len(all),flush=True)\nsys.stdin.read()";

#[test]
fn ten_thousand_idle_connections_keep_nobody_out() {
    const HOLDERS: usize = 20;
    const EACH: usize = 500;
    let bench = Bench::new();
    let served = bench.serve(&[]);
    let before_mib = resident_mib(&served, "VmRSS");
    let holders: Vec<_> = (0..HOLDERS)
        .map(|_| {
            let mut python = std::process::Command::new("python3");
            python.args(["-c", HOLD, &served.host(), &EACH.to_string()]);
            let mut child = python
                .stdin(std::process::Stdio::piped())
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            let lines = support::lines(child.stdout.take().unwrap());
            (support::Running(child), lines)
        })
        .collect();
    for (_, lines) in &holders {
        // All at the same time, on a busy machine.
        let stand = lines.recv_timeout(4 * PATIENCE).unwrap();
        assert_eq!(stand, EACH.to_string());
    }
    untouched(&served, "");
    let (status, stopped) = post(&served, "", &tool_call("stop", &json!({})));
    assert_eq!((status, &result(&stopped)["success"]), (200, &json!(true)));
    let most_mib = resident_mib(&served, "VmHWM");
    assert!(
        most_mib < before_mib + 24.0,
        "{before_mib:.1} MiB before, at most {most_mib:.1} with them"
    );
    let open = std::fs::read_dir(format!("/proc/{}/fd", served.child.0.id())).unwrap();
    let open = open.count();
    assert!(open < 400, "{open} descriptors");
}

#[test]
fn names_that_are_paths_lead_nowhere() {
    let bench = Bench::new();
    std::fs::write(
        bench.path("secret.toml"),
        scene("linked", support::SHORT_LINES),
    )
    .unwrap();
    let outside = bench.path("secret.toml");
    std::os::unix::fs::symlink(&outside, bench.path("scenes/linked.toml")).unwrap();
    for name in [
        "../secret",
        "/etc/passwd",
        "scenes/../../secret",
        "linked",
        "..\\secret",
        "a\0b",
    ] {
        let (code, refused) = bench.call(&["stroke", &json!({"scene": name}).to_string()]);
        assert_eq!(code, 1, "{name:?}: {refused}");
        assert_eq!(refused["success"], false, "{name:?}: {refused}");
    }
}

#[test]
fn a_design_outside_the_scenes_is_not_read() {
    let bench = Bench::new();
    std::fs::write(
        bench.path("secret.svg"),
        "<svg xmlns=\"http://www.w3.org/2000/svg\"/>",
    )
    .unwrap();
    // A link among the designs leads there too, and so does one in the place of their folder.
    std::fs::create_dir_all(bench.path("scenes/designs")).unwrap();
    let link = |from: &str, to: &str| {
        std::os::unix::fs::symlink(bench.path(from), bench.path(to)).unwrap();
    };
    link("secret.svg", "scenes/designs/linked.svg");
    std::fs::create_dir_all(bench.path("elsewhere")).unwrap();
    std::fs::copy(bench.path("secret.svg"), bench.path("elsewhere/far.svg")).unwrap();
    link("elsewhere", "scenes/designs/more");
    for file in [
        "../secret.svg",
        "/etc/passwd",
        "designs/../../secret.svg",
        "linked.svg",
        "more/far.svg",
    ] {
        let polylines = format!("polylines = {}", support::SHORT_LINES);
        let text = scene("thief", support::SHORT_LINES);
        bench.scene(
            "thief",
            &text.replace(&polylines, &format!("file = {file:?}")),
        );
        let (code, refused) = bench.call(&["stroke", r#"{"scene":"thief"}"#]);
        assert_eq!(code, 1, "{refused}");
        let message = refused["message"].as_str().unwrap();
        assert!(
            message.contains(file) && !message.contains("root:"),
            "{message}"
        );
    }
}

/// Clears a screen, changes a window's title, and would run in a page.
const EVIL: &str = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}1m<script>alert(1)</script>";

/// Nothing of this makes a terminal do anything.
fn harmless(what: &str, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let obeyed = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    assert!(!text.contains(obeyed), "{what}: {text:?}");
}

#[test]
fn what_a_caller_writes_is_shown_and_not_obeyed() {
    let bench = Bench::new();
    for arguments in [
        json!({"scene": EVIL}),
        json!({EVIL: 1}),
        json!({"node": EVIL}),
    ] {
        let output = bench.run(&["call", "stroke", &arguments.to_string()]);
        harmless("stroke", &[output.stdout, output.stderr].concat());
    }
    let output = bench.run(&["call", EVIL]);
    harmless("the tool's name", &[output.stdout, output.stderr].concat());
}

/// A client's own name appears in the node's log, status, jobs and audit log.
#[test]
fn what_a_client_calls_itself_is_shown_and_not_obeyed() {
    let bench = Bench::new();
    let state = bench.state();
    let mut served = bench.serve_in(&["--state", &state], &[("STEADYHAND_LOG", "debug")]);
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": EVIL, "version": EVIL},
        "io.modelcontextprotocol/clientCapabilities": {}});
    let report_of = |tool: &str, arguments: Value| {
        let headers = format!(
            "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"
        );
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments, "_meta": meta}});
        post(&served, &headers, &body.to_string())
    };
    let (status, drawn) = report_of("stroke", json!({"scene": "short"}));
    assert_eq!(
        (status, &result(&drawn)["success"]),
        (200, &json!(true)),
        "{drawn}"
    );
    let (_, refused) = report_of("stroke", json!({"scene": EVIL}));
    assert_eq!(result(&refused)["success"], false, "{refused}");
    let (_, listed) = report_of("list_nodes", json!({}));
    let holder = &result(&listed)["nodes"][0]["arms"][0]["lease"];
    assert!(holder.as_str().unwrap().contains("script"), "{holder}");
    let jobs = ["jobs", "--state", &state];
    for verb in [&["status"][..], &["jobs"], &["jobs", "job-1"], &jobs] {
        let output = bench.run(verb);
        harmless(
            &format!("{verb:?}"),
            &[output.stdout, output.stderr].concat(),
        );
    }
    served.child.terminate();
    let log: Vec<String> = served.lines.iter().collect();
    assert!(log.iter().any(|line| line.contains("script")), "{log:?}");
    harmless("the log", log.join("\n").as_bytes());
    let audit = std::fs::read(bench.path("state/audit.log")).unwrap();
    assert!(String::from_utf8_lossy(&audit).contains("script"));
    harmless("the audit log", &audit);
}

/// Names that a scene's file gives come to the same places.
#[test]
fn what_a_scene_is_called_is_shown_and_not_obeyed() {
    let bench = Bench::new();
    let evil = r"\u001b[2J\u001b]0;owned\u0007<script>";
    let text = scene("painted", support::SHORT_LINES)
        .replace("fineliner", evil)
        .replace("For a test", evil);
    bench.scene("painted", &text);
    std::fs::write(
        bench.path("scenes").join("x\u{1b}[2J.toml"),
        scene("x", support::SHORT_LINES),
    )
    .unwrap();
    let file = bench.path("scenes/painted.toml").display().to_string();
    for verb in [
        &["scene", "list"][..],
        &["scene", "check", &file],
        &["plan", "painted"],
        &["call", "stroke", r#"{"scene":"painted","dry_run":true}"#],
        &["call", "list_nodes"],
    ] {
        let output = bench.run(verb);
        harmless(
            &format!("{verb:?}"),
            &[output.stdout, output.stderr].concat(),
        );
    }
}

/// Ten of ten of ten, forty times over.
fn growing_svg() -> Vec<u8> {
    let mut svg = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:x=\"http://www.w3.org/1999/xlink\"><path id=\"a0\" d=\"M0 0L9 9\"/>",
    );
    for level in 1..40 {
        let use_ = format!("<use x:href=\"#a{}\"/>", level - 1);
        svg += &format!("<g id=\"a{level}\">{}</g>", use_.repeat(10));
    }
    (svg + "</svg>").into_bytes()
}

/// The same attack by entities that the text declares.
fn laughing_svg() -> Vec<u8> {
    let mut entities = "<!ENTITY a0 \"M0 0L9 9\">".to_owned();
    for level in 1..40 {
        let below = format!("&a{};", level - 1);
        entities += &format!("<!ENTITY a{level} \"{}\">", below.repeat(10));
    }
    format!(
        "<!DOCTYPE svg [{entities}]><svg xmlns=\"http://www.w3.org/2000/svg\"><path d=\"&a39;\"/></svg>"
    )
    .into_bytes()
}

/// As an archive that would become a gigabyte: its first bytes are enough to know it.
fn packed_svg() -> Vec<u8> {
    let mut bytes = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    bytes.resize(1 << 20, 0);
    bytes
}

#[test]
fn an_svg_that_grows_without_end_is_refused() {
    /// Above what the node needs at rest: its own limits, and no more.
    const GROWTH_MIB_MAX: f64 = 48.0;
    let bench = Bench::new();
    std::fs::create_dir_all(bench.path("scenes/designs")).unwrap();
    for (name, svg) in [
        ("growing", growing_svg()),
        ("laughing", laughing_svg()),
        ("packed", packed_svg()),
        ("long", b"<svg>".repeat(4 << 20)),
    ] {
        std::fs::write(bench.path(&format!("scenes/designs/{name}.svg")), svg).unwrap();
        let polylines = format!("polylines = {}", support::SHORT_LINES);
        let file = format!("file = \"{name}.svg\"");
        bench.scene(
            name,
            &scene(name, support::SHORT_LINES).replace(&polylines, &file),
        );
    }
    let served = bench.serve(&[]);
    untouched(&served, "");
    let before_mib = resident_mib(&served, "VmHWM");
    for name in ["growing", "laughing", "packed", "long"] {
        let began = std::time::Instant::now();
        let (_, refused) = post(&served, "", &tool_call("stroke", &json!({"scene": name})));
        let refused = result(&refused);
        assert_eq!(refused["success"], false, "{refused}");
        let message = refused["message"].as_str().unwrap();
        assert!(
            message.contains(name) && message.contains("nothing moved"),
            "{message}"
        );
        assert!(began.elapsed() < PATIENCE, "{name}");
    }
    let most_mib = resident_mib(&served, "VmHWM");
    assert!(
        most_mib < before_mib + GROWTH_MIB_MAX,
        "{before_mib:.1} MiB before, at most {most_mib:.1} with them"
    );
    untouched(&served, "");
}

#[test]
fn a_stranger_does_not_get_through_the_control_socket() {
    let bench = Bench::new();
    let served = bench.serve(&[]);
    let socket = bench.path("steadyhand/local.sock");
    let mode = std::fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    if rustix::process::geteuid().is_root() {
        // The file's mode does not stop a stranger who was given it; the kernel says who it is.
        std::fs::set_permissions(bench.path(""), PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::set_permissions(bench.path("steadyhand"), PermissionsExt::from_mode(0o755))
            .unwrap();
        std::fs::set_permissions(&socket, PermissionsExt::from_mode(0o666)).unwrap();
        // Output of a program that strangers can run; its own text precedes what it received.
        let script = r#"use Socket; $SIG{PIPE} = "IGNORE";
            socket(S, AF_UNIX, SOCK_STREAM, 0) or die; connect(S, sockaddr_un($ARGV[0])) or die "not connected";
            syswrite S, "{\"verb\":\"stop\"}\n"; sysread S, $heard, 4096; print "connected:$heard";"#;
        let output = std::process::Command::new("setpriv")
            .args(["--reuid", "65534", "--clear-groups", "perl", "-e", script])
            .arg(&socket)
            .output()
            .unwrap();
        // The door is shut before anything was read.
        assert!(output.status.success(), "{output:?}");
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "connected:",
            "{output:?}"
        );
        let line = support::wait_for(&served.lines, "refused");
        assert!(line.contains("65534"), "{line}");
    }
    // Nobody has stopped anything: what is drawn now is drawn to its end.
    let (_, drawn) = post(
        &served,
        "",
        &tool_call("stroke", &json!({"scene": "short"})),
    );
    assert_eq!(result(&drawn)["success"], true, "{drawn}");
}

/// The names of the tools that a node lists.
fn listed(served: &Served) -> Vec<String> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
    let (status, answer) = post(served, "", &body.to_string());
    assert_eq!(status, 200, "{answer}");
    let tools = answer["result"]["tools"].as_array().unwrap();
    let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
    tools.iter().map(name).collect()
}

/// A node of this file.
fn node(bench: &Bench, file: &str) -> Served {
    std::fs::write(bench.path("node.toml"), file).unwrap();
    let (state, config) = (bench.path("state"), bench.path("node.toml"));
    let (state, config) = (state.to_str().unwrap(), config.to_str().unwrap());
    bench.serve(&["--state", state, "--config", config])
}

#[test]
fn nothing_moves_a_node_that_is_read_only_and_its_stop_is_done() {
    let bench = Bench::new();
    let file = "name = \"bench\"\nread_only = true\nnames = \"plain\"\n\n[[tools]]\nname = \"draw\"\ndescription = \"Draw\"\ncalls = \"stroke\"\n";
    let served = node(&bench, file);
    assert_eq!(listed(&served), ["sense", "list_nodes", "stop"]);
    for tool in ["stroke", "robot_stroke", "align", "reset", "draw"] {
        let (_, refused) = post(&served, "", &tool_call(tool, &json!({})));
        assert_eq!(result(&refused)["code"], "not_offered", "{tool}: {refused}");
    }
    for verb in [
        &["reset"][..],
        &["enable", "--scene", "short"],
        &["selftest"],
    ] {
        let refused = bench.run(verb);
        assert_eq!(refused.status.code(), Some(1), "{verb:?}: {refused:?}");
    }
    untouched(&served, "");
    let (_, stopped) = post(&served, "", &tool_call("e_stop", &json!({})));
    assert_eq!(result(&stopped)["success"], true, "{stopped}");
}

#[test]
fn only_the_tools_that_a_node_offers_are_listed_and_called() {
    let bench = Bench::new();
    let file = "name = \"bench\"\nonly_tools = [\"draw\", \"sense\"]\nnames = \"plain\"\n\n[[tools]]\nname = \"draw\"\ndescription = \"Draw\"\ncalls = \"stroke\"\nfixed = { scene = \"short\", dry_run = true }\n";
    let served = node(&bench, file);
    assert_eq!(listed(&served), ["sense", "stop", "draw"]);
    let (_, refused) = post(&served, "", &tool_call("stroke", &json!({})));
    assert_eq!(result(&refused)["code"], "not_offered", "{refused}");
    let (_, planned) = post(&served, "", &tool_call("draw", &json!({})));
    assert_eq!(result(&planned)["success"], true, "{planned}");
    let (_, stopped) = post(&served, "", &tool_call("stop", &json!({})));
    assert_eq!(result(&stopped)["success"], true, "{stopped}");
    let wrong = Bench::new();
    std::fs::write(wrong.path("node.toml"), "only_tools = [\"stork\"]\n").unwrap();
    let config = wrong.path("node.toml").display().to_string();
    let checked = wrong.run(&["--config", &config, "check"]);
    let stdout = String::from_utf8(checked.stdout).unwrap();
    assert!(
        stdout.contains("line 1: ") && stdout.contains("`stork`") && stdout.contains(": stroke"),
        "{stdout}"
    );
}

/// At the log's most talkative, as JSON: every call has its span, and neither tokens nor pictures are there.
#[test]
fn secrets_and_pictures_are_never_logged() {
    let node = Guarded::new();
    let [_, planner, _] = node.tokens.clone();
    let Guarded { bench, served, .. } = node;
    drop(served);
    let served = bench.serve_in(&["--log", "json"], &[("STEADYHAND_LOG", "trace")]);
    let wrong = format!("{planner}x");
    assert_eq!(
        post(&served, &bearer(&wrong), &tool_call("sense", &json!({}))).0,
        401
    );
    let arguments = json!({"scene": "short", "dry_run": true});
    let (_, planned) = post(&served, &bearer(&planner), &tool_call("stroke", &arguments));
    assert!(
        planned.to_string().contains("image/png"),
        "a picture was made"
    );
    let (_, refused) = post(
        &served,
        &bearer(&planner),
        &tool_call("stroke", &json!({"scene": "x"})),
    );
    assert_eq!(result(&refused)["success"], false);
    let (_, stopped) = post(&served, &bearer(&planner), &tool_call("stop", &json!({})));
    assert_eq!(result(&stopped)["success"], true);
    let mut served = served;
    served.child.terminate();
    let lines: Vec<String> = served.lines.iter().collect();
    assert!(lines.len() > 3, "{lines:?}");
    for line in &lines {
        let secret = planner.split('.').next_back().unwrap();
        assert!(!line.contains(secret), "a token in {line}");
        // How every PNG begins, in base64 and as bytes.
        assert!(
            !line.contains("iVBORw0KGgo") && !line.contains("PNG\\r"),
            "a picture in {line}"
        );
        let line: Value = serde_json::from_str(line).unwrap();
        assert!(
            line["level"].is_string() && line["time_ms"].is_u64(),
            "{line}"
        );
    }
    let refused = lines.iter().find(|line| line.contains("not done")).unwrap();
    let refused: Value = serde_json::from_str(refused).unwrap();
    assert_eq!(
        (&refused["node"], &refused["tool"]),
        (&json!("local"), &json!("stroke"))
    );
    assert_eq!(refused["client"], "token planner", "{refused}");
}

fn get(served: &Served, path: &str) -> String {
    let (mut stream, host) = connect(served);
    let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut stream, &mut text).unwrap();
    text
}

/// Asks until the answer has this.
fn wait_for_response(served: &Served, path: &str, expected: &str) -> String {
    let what = format!("{path}: {expected:?}");
    until(
        &what,
        || get(served, path),
        |printed| printed.contains(expected),
    )
}

#[test]
fn a_node_says_whether_it_is_ready() {
    let bench = Bench::new();
    let served = bench.serve(&[]);
    assert!(get(&served, "/healthz").contains("200 OK"));
    let printed = wait_for_response(&served, "/readyz", "200 OK");
    assert!(printed.contains("ready: arm answers"), "{printed}");
}

#[test]
fn a_node_whose_arm_is_gone_lives_and_is_not_ready() {
    unless_starved(|| {
        let bench = Bench::new();
        let (arm, port) = bench.sim(&["--unpaced"]);
        let served = bench.serve(&["--port", &port]);
        wait_for_response(&served, "/readyz", "200 OK");
        drop(arm);
        let printed = wait_for_response(&served, "/readyz", "503 Service Unavailable");
        assert!(printed.contains("not ready: arm "), "{printed}");
        assert!(get(&served, "/healthz").contains("200 OK"));
    });
}
