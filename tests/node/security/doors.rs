//! Bytes at the door: requests that go nowhere, whose a session is, and what a token means where none is wanted.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::flood::{STREAMS, session};
use super::support::{Bench, Served, answer, bearer, connect, post, tool_call, wait_for};
use super::{Guarded, result, untouched};

/// Sooner than a wait for a body ends.
const AT_ONCE: Duration = Duration::from_secs(10);

/// Sends bytes, and nothing behind them: the status, and the body as JSON where it is.
fn bytes(served: &Served, bytes: &str) -> (u16, Value) {
    let (mut stream, _) = connect(served);
    stream.write_all(bytes.as_bytes()).unwrap();
    answer(&mut stream)
}

/// Sends a stroke to `target` with these headers.
fn stroke(served: &Served, target: &str, headers: &str) -> (u16, Value) {
    let body = tool_call("stroke", &json!({"scene": "short", "dry_run": true}));
    let head = format!(
        "POST {target} HTTP/1.1\r\n{headers}Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    bytes(served, &(head + &body))
}

#[test]
fn refuses_two_hosts_and_a_uri_that_names_another() {
    let bench = Bench::new();
    let served = bench.serve(&[]);
    let host = served.host();
    let ours = format!("Host: {host}\r\n");
    let evil = "Host: evil.example\r\n";
    for (target, headers, expected) in [
        ("/mcp".to_owned(), ours.clone(), 200),
        (format!("http://{host}/mcp"), ours.clone(), 200),
        ("/mcp".to_owned(), format!("{ours}{ours}"), 400),
        ("/mcp".to_owned(), format!("{ours}{evil}"), 400),
        ("/mcp".to_owned(), format!("{evil}{ours}"), 400),
        ("http://evil.example/mcp".to_owned(), ours, 403),
        (format!("http://{host}/mcp"), evil.to_owned(), 403),
    ] {
        let (status, reply) = stroke(&served, &target, &headers);
        assert_eq!(status, expected, "{target} {headers}: {reply}");
        if expected != 200 {
            assert!(reply["error"]["message"].is_string(), "{reply}");
        }
    }
    untouched(&served, "");
}

/// One more read of the buffer let heads of 40 kB in.
#[test]
fn refuses_a_head_beyond_its_limit() {
    let bench = Bench::new();
    let served = bench.serve(&[]);
    let host = format!("Host: {}\r\n", served.host());
    for (kib, expected) in [(31, 200), (33, 431), (40, 431), (64, 431)] {
        let long = format!("{host}X-Long: {}\r\n", "x".repeat(kib * 1024));
        assert_eq!(stroke(&served, "/mcp", &long).0, expected, "{kib} KiB");
    }
    untouched(&served, "");
}

#[test]
fn refuses_what_another_site_made_unless_its_page_may_call() {
    let bench = Bench::new();
    let served = bench.serve(&[]);
    let own = format!("Origin: http://{}\r\n", served.host());
    for (site, alone) in [
        ("same-origin", 200),
        ("none", 200),
        ("same-site", 403),
        ("cross-site", 403),
    ] {
        let site = format!("Sec-Fetch-Site: {site}\r\n");
        let body = tool_call("stroke", &json!({"dry_run": true, "scene": "short"}));
        let (status, reply) = post(&served, &site, &body);
        assert_eq!(status, alone, "{site}{reply}");
        let (status, _) = post(&served, &format!("{site}{own}"), &body);
        assert_eq!(status, alone, "{site}");
        let (mut stream, host) = connect(&served);
        let head =
            format!("GET /readyz HTTP/1.1\r\nHost: {host}\r\n{site}Connection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        assert_eq!(answer(&mut stream).0, alone, "{site}");
    }
    untouched(&served, "");
}

/// Another program may have the same port under another name of this machine.
#[test]
fn a_page_of_another_name_of_this_machine_is_another_servers() {
    let bench = Bench::new();
    let served = bench.serve(&[]);
    let host = served.host();
    let port = host.rsplit(':').next().unwrap();
    let body = tool_call("stroke", &json!({"dry_run": true, "scene": "short"}));
    for (page, expected) in [
        (format!("http://{host}"), 200),
        (format!("http://localhost:{port}"), 403),
        (format!("http://[::1]:{port}"), 403),
    ] {
        let (status, reply) = post(&served, &format!("Origin: {page}\r\n"), &body);
        assert_eq!(status, expected, "{page} {reply}");
    }
    untouched(&served, "");
}

#[test]
fn a_page_of_another_server_can_stop_the_arm_and_do_nothing_else() {
    let bench = Bench::new();
    let served = bench.serve(&[]);
    let latched = || {
        let (_, reply) = post(&served, "", &tool_call("sense", &json!({})));
        result(&reply)["latched"].clone()
    };
    let page = "Origin: https://evil.example\r\nSec-Fetch-Site: cross-site\r\n";
    let (status, _) = post(
        &served,
        page,
        &tool_call("stroke", &json!({"scene": "short"})),
    );
    assert_eq!((status, latched()), (403, Value::Null));
    let (status, reply) = post(&served, page, &tool_call("stop", &json!({})));
    assert_eq!(status, 403, "{reply}");
    let message = reply["error"]["message"].as_str().unwrap();
    assert!(message.contains("were stopped"), "{message}");
    assert_ne!(latched(), Value::Null);
    let (status, _) = post(&served, page, &tool_call("reset", &json!({})));
    assert_eq!(status, 403);
    assert_ne!(latched(), Value::Null);
}

/// Sends a call with these headers beside the host and the length.
fn sent_as(served: &Served, headers: &str, body: &str) -> (u16, Value) {
    let (mut stream, host) = connect(served);
    let length = body.len();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    answer(&mut stream)
}

/// A web page of another server can send every form but JSON without being asked first.
#[test]
fn what_moves_the_arm_is_sent_as_json_and_a_stop_in_any_form() {
    let bench = Bench::new();
    let served = bench.serve(&[]);
    let reset = tool_call("reset", &json!({}));
    for headers in [
        "",
        "Content-Type: text/plain\r\n",
        "Content-Type: application/x-www-form-urlencoded\r\n",
        "Content-Type: text/plain; a=application/json\r\n",
    ] {
        for moving in [
            tool_call("stroke", &json!({"scene": "short"})),
            reset.clone(),
        ] {
            let (status, reply) = sent_as(&served, headers, &moving);
            assert_eq!(status, 415, "{headers}{reply}");
        }
        let sense = tool_call("sense", &json!({}));
        assert_eq!(sent_as(&served, headers, &sense).0, 200, "{headers}");
    }
    untouched(&served, "");
    let stop = tool_call("stop", &json!({}));
    let (status, stopped) = sent_as(&served, "Content-Type: text/plain\r\n", &stop);
    assert_eq!(status, 200, "{stopped}");
    let json = "Content-Type: Application/JSON; charset=utf-8\r\n";
    let (status, done) = sent_as(&served, json, &reset);
    assert_eq!(status, 200, "{done}");
    let result = &done["result"]["structuredContent"];
    assert_eq!(result["success"], true, "{done}");
}

#[test]
fn refuses_a_body_announced_as_too_long_before_it_is_read() {
    let node = Guarded::new();
    let [_, planner, operator] = node.tokens.each_ref().map(|token| bearer(token));
    let host = node.served.host();
    for (caller, path, length) in [
        (&operator, "/mcp", 4 * 1024 * 1024 + 1),
        (&operator, "/mcp", usize::MAX / 2),
        (&operator, "/operator", 18 * 1024 * 1024 + 1),
        (&planner, "/operator", 64 * 1024 + 1),
    ] {
        for more in ["", "Expect: 100-continue\r\n"] {
            let began = Instant::now();
            let head = format!(
                "POST {path} HTTP/1.1\r\nHost: {host}\r\n{caller}{more}Content-Length: {length}\r\nConnection: close\r\n\r\n"
            );
            // Nothing of the body is ever sent.
            let (status, reply) = bytes(&node.served, &head);
            assert_eq!(status, 413, "{path} {length} {more}: {reply}");
            assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
            let message = reply["error"]["message"].as_str().unwrap();
            assert!(message.contains("longer than"), "{message}");
        }
    }
    untouched(&node.served, &operator);
}

fn in_session(served: &Served, method: &str, id: &str, headers: &str) -> u16 {
    let (mut stream, host) = connect(served);
    let body = match method {
        "POST" => {
            json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {}}).to_string()
        }
        _ => String::new(),
    };
    let request = format!(
        "{method} /mcp HTTP/1.1\r\nHost: {host}\r\n{STREAMS}{headers}Mcp-Session-Id: {id}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    answer(&mut stream).0
}

fn open(served: &Served, headers: &str) -> String {
    let (status, id) = session(served, headers);
    assert_eq!(status, 200);
    let id = id.unwrap();
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
    let own = format!("{STREAMS}{headers}Mcp-Session-Id: {id}\r\n");
    assert_eq!(post(served, &own, &ready).0, 202);
    id
}

#[test]
fn refuses_a_session_to_another_token_and_keeps_it_for_its_own() {
    let node = Guarded::new();
    let [viewer, planner, operator] = node.tokens.each_ref().map(|token| bearer(token));
    let id = open(&node.served, &planner);
    let listed = |headers: &str| in_session(&node.served, "POST", &id, headers);
    assert_eq!(listed(&planner), 200);
    for other in [&viewer, &operator] {
        for method in ["POST", "GET", "DELETE"] {
            assert_eq!(
                in_session(&node.served, method, &id, other),
                404,
                "{method}"
            );
        }
        // The reply is the same as for a session that never existed.
        assert_eq!(
            in_session(&node.served, "POST", "no-such-session", other),
            404
        );
    }
    assert_eq!(listed(""), 401);
    assert_eq!(listed(&planner), 200, "it lives on for its own");
    // The same name with a new secret is a different token.
    node.bench.done(&["token", "revoke", "planner"]);
    let again = bearer(&node.bench.token("planner", &["--role", "planner"]));
    assert_eq!(listed(&planner), 401);
    assert_eq!(listed(&again), 404);
}

#[test]
fn a_token_that_is_sent_counts_where_none_is_wanted() {
    let bench = Bench::new();
    let state = bench.state();
    let token = |role: &str| {
        let made = bench.run(&["token", "add", role, "--role", role, "--state", &state]);
        assert!(made.status.success(), "{made:?}");
        bearer(String::from_utf8(made.stdout).unwrap().trim())
    };
    let [viewer, planner] = ["viewer", "planner"].map(token);
    let served = bench.serve(&["--state", &state]);
    let reset = tool_call("reset", &json!({}));
    let (_, refused) = post(&served, &viewer, &reset);
    assert_eq!(result(&refused)["code"], "role", "{refused}");
    for unknown in [bearer("sth_nobody_has_this"), bearer("")] {
        assert_eq!(post(&served, &unknown, &reset).0, 401);
    }
    untouched(&served, "");
    let (_, done) = post(&served, &planner, &reset);
    assert_eq!(result(&done)["success"], true, "{done}");
    // The arm is that token's now, and another caller's no more than any token's.
    let (_, refused) = post(&served, "", &reset);
    assert_eq!(result(&refused)["code"], "leased", "{refused}");
    assert_eq!(result(&refused)["holder"], "token planner", "{refused}");
    // A session is its token's here as well, and one without a token is of those without.
    let (with, without) = (open(&served, &planner), open(&served, ""));
    for (id, headers, expected) in [
        (&with, planner.as_str(), 200),
        (&with, "", 404),
        (&with, &viewer, 404),
        (&without, "", 200),
        (&without, &planner, 404),
    ] {
        assert_eq!(
            in_session(&served, "POST", id, headers),
            expected,
            "{headers}"
        );
    }
    // Operators' verbs stay where tokens are wanted.
    let host = served.host();
    let verb = format!(
        "POST /operator HTTP/1.1\r\nHost: {host}\r\n{planner}Content-Length: 2\r\nConnection: close\r\n\r\n{{}}"
    );
    assert_eq!(bytes(&served, &verb).0, 404);
}

#[test]
fn refuses_a_temporary_folder_that_is_a_link_or_anothers() {
    let bench = Bench::new();
    let user = rustix::process::geteuid().as_raw();
    let (shared, aimed) = (bench.path("shared"), bench.path("aimed"));
    std::fs::create_dir(&shared).unwrap();
    std::fs::create_dir(&aimed).unwrap();
    let folder = shared.join(format!("steadyhand-{user}"));
    let run = |args: &[&str]| {
        let mut command = bench.command(args);
        command.env("TMPDIR", &shared).env_remove("XDG_RUNTIME_DIR");
        let output = command.output().unwrap();
        (
            output.status.success(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let refused = |reason: &str| {
        // A node's state, the socket that it opens, and the one that operators' commands look for.
        let state = bench.state();
        let serve = ["--state", &state, "serve", "--http", "127.0.0.1:0"];
        for args in [&["call", "sense"][..], &serve, &["status"]] {
            let (done, reply) = run(args);
            assert!(!done && reply.contains(reason), "{args:?}: {reply}");
        }
    };
    std::os::unix::fs::symlink(&aimed, &folder).unwrap();
    refused("is a link");
    assert_eq!(std::fs::read_dir(&aimed).unwrap().count(), 0);
    std::fs::remove_file(&folder).unwrap();
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o777)).unwrap();
    refused("other users");
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o700)).unwrap();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&folder, Some(65_534), None).unwrap();
        refused("belongs to");
        std::os::unix::fs::chown(&folder, Some(0), None).unwrap();
    }
    let (done, reply) = run(&["call", "sense"]);
    assert!(done, "{reply}");
}

/// An accept without a descriptor ended the node.
#[cfg(target_os = "linux")]
#[test]
fn a_node_without_descriptors_hears_operators() {
    const SILENT: usize = 40;
    let bench = Bench::new();
    let served = bench.serve(&[]);
    let node = rustix::process::Pid::from_child(&served.child.0);
    let few = rustix::process::Rlimit {
        current: u64::try_from(super::flood::descriptors(&served) + 8).ok(),
        maximum: Some(4096),
    };
    rustix::process::prlimit(Some(node), rustix::process::Resource::Nofile, few).unwrap();
    let socket = bench.path("steadyhand/local.sock");
    let silent: Vec<_> = (0..SILENT)
        .map(|_| UnixStream::connect(&socket).unwrap())
        .collect();
    wait_for(&served.lines, "accept a connection");
    // They keep their places until somebody asks for one.
    let stopped = bench.run(&["stop"]);
    assert_eq!(stopped.status.code(), Some(0), "{stopped:?}");
    drop(silent);
    assert_eq!(bench.run(&["reset"]).status.code(), Some(0));
    untouched(&served, "");
}

#[test]
fn silent_connections_to_the_control_socket_give_way() {
    // As many as may be silent, and one more.
    const SILENT: usize = 65;
    let bench = Bench::new();
    let served = bench.serve(&[]);
    let socket = bench.path("steadyhand/local.sock");
    let mut silent: Vec<_> = (0..SILENT)
        .map(|_| UnixStream::connect(&socket).unwrap())
        .collect();
    let mut nothing = Vec::new();
    // Closed long before its time for a request is over, or this is a test of that time.
    silent[0].read_to_end(&mut nothing).unwrap();
    wait_for(&served.lines, "its place");
    silent[SILENT - 1]
        .write_all(b"{\"verb\":\"describe\"}\n")
        .unwrap();
    silent[SILENT - 1].read_to_end(&mut nothing).unwrap();
    let reply: Value = serde_json::from_slice(&nothing).unwrap();
    assert_eq!(reply["done"], true, "{reply}");
}
