//! Tests clients that wait: the progress they receive, and what is reported when they stop waiting.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

use crate::support;
use std::io::Write;

use serde_json::{Value, json};
use support::{Bench, STREAMS, Served, StdioClient, bearer, tool_call, until};

/// Starts a node, and a client of this name.
fn client(bench: &Bench, name: &str) -> StdioClient {
    let client = StdioClient::start(bench, &[]);
    client.greet(name);
    client
}

#[test]
fn progress_is_seconds_of_arm_time_from_zero_to_the_total() {
    let bench = Bench::at_test_rate();
    let client = client(&bench, "patient");
    client.begin(2, "stroke", &json!({"scene": "short"}));
    let (result, progress) = client.answer_with_progress(2);
    let result = &result["structuredContent"];
    assert_eq!(result["success"], true, "{result:#}");
    let first = &progress[0];
    assert_eq!(first["progress"], 0.0, "{first}");
    assert!(
        !first["message"].as_str().unwrap().contains("done"),
        "{first}"
    );
    let done: Vec<f64> = progress
        .iter()
        .map(|one| one["progress"].as_f64().unwrap())
        .collect();
    assert!(done.is_sorted_by(|a, b| a < b), "{done:?}");
    for one in &progress {
        let written = one["progress"].to_string();
        let decimals = written
            .split_once('.')
            .map_or(0, |(_, decimals)| decimals.len());
        assert!(decimals <= 3, "{written}");
    }
    let last = progress.last().unwrap();
    let planned_s = result["planned_s"].as_f64().unwrap();
    // Each that came while the arm settled is a thousandth more than the one before.
    let most_s = 0.01 + 1e-3 * progress.len() as f64;
    for figure in ["progress", "total"] {
        let off_s = (last[figure].as_f64().unwrap() - planned_s).abs();
        assert!(off_s < most_s, "{figure}: {last} of {planned_s} s");
    }
    let is_more_than_all = |one: &&Value| {
        one["total"]
            .as_f64()
            .is_some_and(|all| one["progress"].as_f64() > Some(all))
    };
    assert_eq!(progress.iter().find(is_more_than_all), None);
}

#[test]
fn waiting_for_a_person_is_told_with_the_command_that_approves() {
    let bench = Bench::at_test_rate().with_file("before_drawing = \"person\"\n");
    let client = client(&bench, "asks");
    client.begin(2, "stroke", &json!({"scene": "short"}));
    loop {
        let received = client.receive();
        assert!(received.get("result").is_none(), "{received:#}");
        let message = received["params"]["message"].as_str().unwrap_or_default();
        if message.contains("`steadyhand approve job-1`") {
            break;
        }
    }
    let approved = bench.run(&["approve", "job-1", "--yes"]);
    assert_eq!(approved.status.code(), Some(0));
    assert_eq!(client.answer(2)["structuredContent"]["success"], true);
}

/// Ten lines of 60 mm: half a minute of arm time.
fn long_lines() -> String {
    let line = |row: usize| format!("[[0.0, {0}.0], [60.0, {0}.0]]", row * 6);
    let lines: Vec<String> = (0..10).map(line).collect();
    format!("[{}]", lines.join(", "))
}

#[test]
fn who_stopped_waiting_is_named_to_everybody_who_comes_after() {
    let bench = Bench::at_test_rate().with_file("");
    bench.scene("long", &support::scene("long", &long_lines()));
    let client = client(&bench, "hasty");
    client.begin(2, "stroke", &json!({"scene": "long"}));
    loop {
        let received = client.receive();
        let message = received["params"]["message"].as_str().unwrap_or_default();
        if message.contains("s left") {
            break;
        }
    }
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#);
    let named = "client hasty 1.2";
    for id in 3.. {
        client.begin(id, "sense", &json!({}));
        let sensed = client.answer(id);
        let text = sensed["content"][0]["text"].as_str().unwrap();
        // The latch comes first, the line once the arm has come to rest.
        let left = &sensed["structuredContent"]["client_left"];
        if !left.is_null() {
            assert!(text.contains(named), "{text}");
            assert_eq!(left["client"], "hasty 1.2", "{left}");
            break;
        }
    }
    // While the job still ends, the same call joins it.
    for id in 1000.. {
        client.begin(id, "stroke", &json!({"scene": "long"}));
        let refused = client.answer(id);
        let text = refused["content"][0]["text"].as_str().unwrap();
        if text.contains("Next: call `reset`") {
            assert!(text.contains(named), "{text}");
            break;
        }
    }
    let job = bench.done(&["jobs", "job-1", "--json"]);
    assert!(job.contains("client (hasty 1.2)"), "{job}");
}

#[test]
fn a_client_that_keeps_a_dead_session_is_told_once_and_then_answered() {
    let bench = Bench::at_test_rate();
    let served = bench.serve(&[]);
    let sense = tool_call("sense", &json!({}));
    let stale =
        "Mcp-Session-Id: of-the-process-before\r\nAccept: application/json, text/event-stream\r\n";
    let (status, _) = support::post(&served, stale, &sense);
    assert_eq!(status, 404, "it is told to open another");
    let (status, answer) = support::post(&served, stale, &sense);
    assert_eq!(status, 200, "{answer:#}");
    assert_eq!(
        answer["result"]["structuredContent"]["success"], true,
        "{answer:#}"
    );
    let open = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let stale = stale.replace("before", "first");
    let (status, opened) = support::post(&served, &stale, &open.to_string());
    assert_eq!(status, 200, "{opened:#}");
}

/// Opens a session over HTTP. Returns the header that names it.
fn http_session(served: &Served, more: &str, client: &str) -> String {
    let open = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": client, "version": "3"}}});
    let head = support::post_text(served, &format!("{STREAMS}{more}"), &open.to_string());
    let named = head.lines().find_map(|line| {
        let (name, id) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("mcp-session-id")
            .then(|| id.trim().to_owned())
    });
    let headers = format!("{STREAMS}{more}Mcp-Session-Id: {}\r\n", named.unwrap());
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(support::post(served, &headers, &ready.to_string()).0, 202);
    headers
}

fn call_body(id: u64, tool: &str, arguments: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {"name": tool, "arguments": arguments}})
    .to_string()
}

/// Calls a tool, in a session or without one. Returns the reply's text.
fn text_of(served: &Served, headers: &str, tool: &str, arguments: &Value) -> String {
    let (_, answer) = support::post(served, headers, &call_body(7, tool, arguments));
    answer["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// Asks until the answer holds these words.
fn until_told(request: impl Fn() -> String, expected: &str) -> String {
    until(expected, request, |text| text.contains(expected))
}

/// The protocol library's own name was taken for that of a client which gave none, and a tool call was blamed as well.
#[test]
fn a_client_that_gave_no_name_is_given_none() {
    let bench = Bench::at_test_rate();
    bench.scene("long", &support::scene("long", &long_lines()));
    let served = bench.serve(&["--state", &bench.state()]);
    let call = |tool: &str, arguments: &Value| text_of(&served, STREAMS, tool, arguments);
    let host = served.host();
    let sent = call_body(2, "stroke", &json!({"scene": "long"}));
    let mut stream = std::net::TcpStream::connect(&host).unwrap();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\n{STREAMS}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{sent}",
        sent.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    until(
        "a line drawn",
        || call("sense", &json!({})),
        |text| text.contains("stroke, moving") && !text.contains("moving, 0 of"),
    );
    drop(stream);
    let named = "client without";
    until_told(|| call("sense", &json!({})), named);
    let refused = until_told(
        || call("stroke", &json!({"scene": "short"})),
        "Next: call `reset`",
    );
    assert!(
        refused.contains(named) && !refused.contains("by a tool call"),
        "{refused}"
    );
}

/// One that cancels, and one whose connection ends while it waits.
#[test]
fn over_http_as_well_it_is_said_which_client_left_and_how_to_go_on() {
    for (index, client) in ["canceller", "vanisher"].into_iter().enumerate() {
        let bench = Bench::at_test_rate();
        bench.scene("long", &support::scene("long", &long_lines()));
        let served = bench.serve(&["--state", &bench.state()]);
        let session = http_session(&served, "", client);
        let other = |tool: &str, arguments: &Value| text_of(&served, STREAMS, tool, arguments);
        let (host, headers) = (served.host(), session.clone());
        let sent = call_body(2, "stroke", &json!({"scene": "long", "again": true}));
        let mut stream = std::net::TcpStream::connect(&host).unwrap();
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: {host}\r\n{headers}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{sent}",
            sent.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        until(
            "a line drawn",
            || other("sense", &json!({})),
            |text| text.contains("stroke, moving") && !text.contains("moving, 0 of"),
        );
        if index == 0 {
            let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}});
            support::post(&served, &session, &cancel.to_string());
        } else {
            drop(stream);
        }
        let named = format!("client {client} 3");
        until_told(|| other("sense", &json!({})), &named);
        let own = |tool: &str, arguments: &Value| text_of(&served, &session, tool, arguments);
        let refused = until_told(
            || own("stroke", &json!({"scene": "long"})),
            "Next: call `reset`",
        );
        assert!(refused.contains(&named), "{refused}");
        let past = || {
            let output = bench.run(&["jobs", "--json", "--state", &bench.state()]);
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        until_told(past, &format!("client ({client} 3)"));
        own("reset", &json!({}));
        until_told(|| other("sense", &json!({})), "reset, reached");
        // The rest is resumed, and is no longer reported as unfinished.
        let preview = own("stroke", &json!({"resume": true, "dry_run": true}));
        assert!(
            preview.contains("of line") && !preview.contains("stopped waiting"),
            "{preview}"
        );
    }
}

/// The process that knew the session is gone: a caller who names it has the rights of its token and no others.
#[test]
fn of_a_session_of_the_process_before_nothing_is_inherited() {
    let bench = Bench::at_test_rate().with_file("require_tokens = true\n");
    let token = |role: &str| bearer(&bench.token(role, &["--role", role]));
    let (planner, viewer) = (token("planner"), token("viewer"));
    let before = bench.serve(&[]);
    let session = http_session(&before, &planner, "old");
    assert_eq!(
        support::post(&before, &session, &call_body(3, "sense", &json!({}))).0,
        200
    );
    drop(before);
    let served = bench.serve(&[]);
    let named = session
        .lines()
        .find(|line| line.starts_with("Mcp-Session-Id"))
        .unwrap();
    let with = |token: &str| format!("{STREAMS}{token}{named}\r\n");
    let report_of = |token: &str, tool: &str| {
        support::post(
            &served,
            &with(token),
            &call_body(3, tool, &json!({"scene": "short"})),
        )
    };
    assert_eq!(report_of("", "sense").0, 401);
    assert_eq!(
        report_of(&planner, "sense").0,
        404,
        "its client is told to open another"
    );
    assert_eq!(report_of(&viewer, "stroke").0, 404);
    let (status, refused) = report_of(&viewer, "stroke");
    let result = &refused["result"]["structuredContent"];
    assert_eq!(
        (status, &result["success"]),
        (200, &json!(false)),
        "{refused:#}"
    );
    let (status, drawn) = report_of(&planner, "stroke");
    let result = &drawn["result"]["structuredContent"];
    assert_eq!(
        (status, &result["success"]),
        (200, &json!(true)),
        "{drawn:#}"
    );
    assert_eq!(report_of("", "sense").0, 401);
}
