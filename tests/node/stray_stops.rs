//! Tests stops in unusual form: under a name that no tool has, and in a message that is not a call.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

use crate::support;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use serde_json::{Value, json};
use support::{BEGUN, Bench, Caller, PATIENCE, StdioClient};

const FILE: &str = "answer_within_s = 1\nlease_idle_s = 1\n";

/// A call that is answered before its drawing ends can no longer be cancelled.
const PATIENT: &str = "answer_within_s = 600\nlease_idle_s = 1\n";

/// A node with this file, and a drawing that takes most of a minute.
fn bench(file: &str) -> Bench {
    let bench = Bench::at_test_rate().with_file(file);
    let row = |row: u32| format!("[[0.0, {y}.0], [80.0, {y}.0]]", y = 2 * row);
    let rows: Vec<String> = (0..20).map(row).collect();
    bench.scene(
        "long",
        &support::scene("long", &format!("[{}]", rows.join(", "))),
    );
    bench
}

#[test]
fn a_stop_under_another_name_stops_a_moving_arm_and_is_refused_at_rest() {
    let bench = bench(FILE);
    let web = bench.serve(&[]);
    for name in [
        "stop_now",
        "cancel",
        "стоп",
        "stop_robot",
        "pause",
        "停止",
        "Anhalten",
        "robot_estop",
    ] {
        let at_rest = web.call(name, &json!({}));
        let message = at_rest["message"].as_str().unwrap();
        assert_eq!(at_rest["code"], "unknown_tool", "{name}: {at_rest:#}");
        assert!(message.ends_with("nothing moved"), "{message}");
        web.draw("long");
        let stopped = web.call(name, &json!({"why": "it must"}));
        assert_eq!(stopped["success"], true, "{name}: {stopped:#}");
        assert_eq!(stopped["state"], "stopped", "{name}: {stopped:#}");
        assert_eq!(stopped["arms"][0]["report"]["verified"], true, "{name}");
        let hints = stopped["usage_hints"].to_string();
        assert!(hints.contains("read as `stop`"), "{name}: {hints}");
        assert_eq!(web.state(), "stopped", "{name}");
        web.reset();
    }
    // `stop` by its own name, also at rest, for whatever arm it names.
    let at_rest = web.call("left_arm.stop", &json!({}));
    assert_eq!(at_rest["success"], true, "{at_rest:#}");
    let hints = at_rest["usage_hints"].to_string();
    assert!(!hints.contains("read as"), "{hints}");
}

#[test]
fn a_stop_in_the_arguments_of_another_call_stops_an_arm_that_moves() {
    let belt =
        "[[tools]]\nname = \"stop_belt\"\ndescription = \"Stop the belt.\"\ncalls = \"sense\"\n";
    let bench = bench(&format!("{FILE}{belt}"));
    let web = bench.serve(&[]);
    // Words that can be split in many ways do not delay the reply.
    let hostile = format!("{}x", "haltestop".repeat(22));
    for (tool, arguments) in [
        ("call_tool", json!({"name": "stop"})),
        ("use_tool", json!({"input": {"tool": "robot_stop"}})),
        ("stroke", json!("stop()")),
        ("stroke", json!({"action": "stop"})),
        ("stroke", json!("{'action': 'halt'}")),
        ("sense", json!("STOP")),
        ("sense", json!({"stop": true})),
        ("execute", json!(["please stop the arm"])),
        ("stopnow", json!({})),
        ("stpo", json!({})),
        ("robot", json!({"name": "arm", "stop": "yes"})),
        ("sense", json!("<function=stop>")),
        (
            "sense",
            json!(
                "<|tool_call_begin|>functions.stop:0<|tool_call_argument_begin|>{}<|tool_call_end|>"
            ),
        ),
        (
            "sense",
            json!("<|channel|>commentary to=functions.stop <|constrain|>json<|message|>{}<|call|>"),
        ),
        (
            "sense",
            json!(
                "<｜tool▁call▁begin｜>function<｜tool▁sep｜>stop\n```json\n{}\n```<｜tool▁call▁end｜>"
            ),
        ),
        (
            "sense",
            json!("‹｜tool▁call▁begin｜>stop‹｜tool▁sep｜>{}‹｜tool▁call▁end｜>"),
        ),
        ("sense", json!("print(default_api.stop())")),
        ("sense", json!("<|python_tag|>stop.call()")),
        ("sense", json!("sense(); stop()")),
        ("sense", json!("<think>it hurts, I must stop</think>stop")),
        ("sense", json!({"stop": {"arm": null, "debug": false}})),
        ("sense", json!({"stop": {"arm": "arm"}})),
        ("sense", json!({"stop": {"now": true, "reset": true}})),
        ("stroke", json!({"stop": "yes please"})),
        (
            &hostile,
            json!({"name": ["haltestop".repeat(22) + "x", "stop".to_owned()]}),
        ),
    ] {
        web.draw("long");
        let stopped = web.call(tool, &arguments);
        assert_eq!(stopped["success"], true, "{tool} {arguments}: {stopped:#}");
        assert_eq!(stopped["state"], "stopped", "{tool} {arguments}");
        let hints = stopped["usage_hints"].to_string();
        assert!(hints.contains("read as `stop`"), "{tool}: {hints}");
        assert_eq!(web.state(), "stopped", "{tool} {arguments}");
        web.reset();
    }
    for (tool, arguments) in [
        ("sense", json!({"note": "stop"})),
        ("stroke", json!({"scene": "stop"})),
        ("sense", json!({"action": "do not stop"})),
        ("stroke", json!({"text": "stop", "dry_run": true})),
        ("stroke", json!("stroke(text='stop()', scene=stop)")),
        ("stroke", json!("text: |\n  stop")),
        ("sense", json!("<|recipient|>sense\n<|content|>{}<|stop|>")),
        // What a declared tool stops is its own.
        ("stop_belt", json!({})),
        ("StopBelt", json!({"action": "stop"})),
        (hostile.as_str(), json!({})),
        ("sense", json!({"mode": "still"})),
        // What tells of a stop is none.
        (
            "stroke",
            json!({"scene": "letters", "tool_call_id": "stop-1"}),
        ),
        (
            "sense",
            json!({"scene": "letters", "previous_action": "stop"}),
        ),
        ("sense", json!({"available_tools": ["stroke", "stop"]})),
        ("sense", json!({"stop": false})),
        ("sense_everything", json!({})),
        ("sense", json!("previous_action: stop")),
        ("stroke", json!("scene: stop")),
    ] {
        if web.state() != "moving" {
            web.draw("long");
        }
        web.call(tool, &arguments);
        // On a busy machine the drawing may have come to its end meanwhile.
        assert_ne!(web.state(), "stopped", "{tool} {arguments}");
    }
}

#[test]
fn that_nothing_moved_is_not_said_of_an_arm_that_moves() {
    let bench = bench(FILE);
    let web = bench.serve(&[]);
    web.draw("long");
    for (tool, arguments) in [
        ("stroke_status", json!({})),
        ("stroke", json!({"scene": "nowhere"})),
        ("stroke", json!({"scene": "short"})),
        ("sense", json!({"arm": "third"})),
    ] {
        let refused = web.call(tool, &arguments);
        let message = refused["message"].as_str().unwrap().to_lowercase();
        assert_eq!(refused["success"], false, "{refused:#}");
        let parts: Vec<&str> = message.split("nothing moved").skip(1).collect();
        assert!(
            !parts.is_empty() && parts.iter().all(|after| after.starts_with(" for this")),
            "{message}"
        );
    }
    assert_eq!(web.state(), "moving");
    assert_eq!(web.call("stop", &json!({}))["success"], true);
}

#[test]
fn a_stop_in_a_body_that_is_no_call_is_done_and_told() {
    let bench = bench(FILE);
    let web = bench.serve(&[]);
    let stale = "Mcp-Session-Id: 0123\r\n";
    let unknown_version = "MCP-Protocol-Version: 1999-01-01\r\n";
    let other_name =
        "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: stroke\r\n";
    let call = r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"stop"}}"#;
    for (headers, body, status) in [
        (
            "",
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"stop"}}"#,
            400,
        ),
        ("", r#"{"tool":"stop"}"#, 400),
        ("", "stop", 400),
        ("", r#"{"jsonrpc":"2.0","id":5,"method":"stop"}"#, 200),
        (stale, call, 404),
        (unknown_version, call, 400),
        (other_name, call, 400),
    ] {
        web.draw("long");
        let (got, answer) = support::post(&web, headers, body);
        assert_eq!(got, status, "{body}: {answer:#}");
        match status {
            200 => assert_eq!(
                answer["result"]["structuredContent"]["state"], "stopped",
                "{answer:#}"
            ),
            _ => assert!(answer.to_string().contains("were stopped"), "{answer:#}"),
        }
        web.until_state("stopped");
        web.reset();
    }
    let audit = std::fs::read_to_string(bench.path("state/audit.log")).unwrap();
    let refused = audit.matches("in a message").count();
    assert!(refused >= 6, "{audit}");
}

#[test]
fn a_stop_by_another_method_is_done_and_told() {
    let bench = bench(FILE);
    let web = bench.serve(&[]);
    let call = r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"stop"}}"#;
    web.draw("long");
    let (mut stream, host) = support::connect(&web);
    let length = call.len();
    write!(
        stream,
        "PUT /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{call}"
    )
    .unwrap();
    let (status, answer) = support::answer(&mut stream);
    assert_eq!(status, 405);
    assert!(answer.to_string().contains("were stopped"), "{answer:#}");
    web.until_state("stopped");
}

/// Its drawing was still ending, and the arm was reported as busy.
#[test]
fn a_reset_right_after_a_stop_waits_for_the_stand_and_goes() {
    let bench = bench(FILE);
    let web = bench.serve(&[]);
    for arguments in [
        json!({}),
        json!({"previous_action": "stop"}),
        json!({"action": "reset", "previous_tool": "stop"}),
    ] {
        web.draw("long");
        assert_eq!(web.call("stop", &json!({}))["success"], true);
        let reset = web.call("reset", &arguments);
        assert_eq!(reset["success"], true, "{reset:#}");
        assert_ne!(reset["code"], "busy", "{reset:#}");
        web.until_job("reached");
        assert_ne!(web.state(), "stopped");
    }
}

/// A client that has greeted a node.
fn pipe(bench: &Bench) -> StdioClient {
    let pipe = StdioClient::start(bench, &[]);
    pipe.greet("t");
    pipe
}

#[test]
fn a_stop_in_a_line_that_is_no_call_is_done_and_told() {
    let bench = bench(FILE);
    let pipe = StdioClient::start(&bench, &[]);
    pipe.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"stop"}}"#);
    let early = pipe.receive_answer();
    assert_eq!(early["error"]["code"], -32602, "{early}");
    assert!(early.to_string().contains("were stopped"), "{early}");
    pipe.greet("t");
    pipe.until_state("stopped");
    pipe.done("reset", &json!({}));
    pipe.until_job("reached");
    for (line, is_answered) in [
        (
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"stop"}}"#,
            false,
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"robot_stop"}}"#,
            false,
        ),
        (r#"{"tool":"stop"}"#, false),
        (r#"{"jsonrpc":"2.0","id":8,"method":"stop"}"#, true),
        (r#"{"jsonrpc":"2.0","id":8,"tool":"halt"}"#, true),
        ("stop", false),
        ("STOP!", false),
        (
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"stop"}}]"#,
            false,
        ),
    ] {
        pipe.draw("long");
        pipe.send(line);
        let message = pipe.receive_answer();
        if is_answered {
            assert_eq!(message["id"], 8, "{line}: {message}");
            assert_eq!(
                message["result"]["structuredContent"]["state"], "stopped",
                "{line}: {message}"
            );
        } else {
            assert!(
                message["error"]["message"]
                    .as_str()
                    .unwrap()
                    .contains("were stopped"),
                "{line}: {message}"
            );
        }
        pipe.reset();
    }
    pipe.draw("long");
    pipe.send(r#"{"jsonrpc":"2.0","method":"notifications/stop"}"#);
    pipe.until_state("stopped");
}

/// Ids beyond 64 signed bits, which the protocol library does not know.
const WIDE_IDS: [&str; 3] = [
    "18446744073709551615",
    "-99999999999999999999",
    "123456789012345678901234567890",
];

#[test]
fn a_stop_is_answered_under_its_own_id_however_many_digits_that_has() {
    let bench = bench(FILE);
    let pipe = pipe(&bench);
    for id in WIDE_IDS {
        pipe.draw("long");
        pipe.send(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"stop"}}}}"#
        ));
        let message = pipe.line_with(&format!("\"id\":{id},"));
        let answer: Value = serde_json::from_str(&message).unwrap();
        let state = &answer["result"]["structuredContent"]["state"];
        assert_eq!(state, "stopped", "{message}");
        pipe.reset();
    }
}

/// Also on a connection that has had a number like that.
#[test]
fn a_text_that_looks_like_a_number_stand_in_comes_back_unchanged() {
    const TEXT: &str = r#""steadyhand:number:12""#;
    let bench = bench(FILE);
    let pipe = pipe(&bench);
    let list = |id| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#);
    for id in [WIDE_IDS[0], TEXT] {
        pipe.send(&list(id));
        pipe.line_with(&format!("\"id\":{id},"));
    }
    drop(pipe);
    let served = bench.serve(&[]);
    let message = support::post_text(&served, "Accept: application/json\r\n", &list(TEXT));
    assert!(message.contains(&format!("\"id\":{TEXT},")), "{message}");
}

#[test]
fn a_cancellation_means_its_call_however_many_digits_its_id_has() {
    let bench = bench(PATIENT);
    let pipe = pipe(&bench);
    let id = WIDE_IDS[2];
    pipe.send(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"stroke","arguments":{{"scene":"long","again":true}}}}}}"#
    ));
    pipe.until_state("moving");
    pipe.send(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
    ));
    pipe.until_state("stopped");
}

#[test]
fn a_stop_over_http_is_answered_under_its_own_id_of_any_length() {
    let bench = bench(FILE);
    let served = bench.serve(&[]);
    for accept in ["application/json", "application/json, text/event-stream"] {
        for id in WIDE_IDS {
            let message = support::post_text(
                &served,
                &format!("Accept: {accept}\r\n"),
                &format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"stop"}}}}"#
                ),
            );
            assert!(
                message.contains(&format!("\"id\":{id},")),
                "{accept}: {message}"
            );
            assert!(message.contains("stands still"), "{accept}: {message}");
        }
    }
}

#[test]
fn a_stop_in_a_line_that_is_too_long_is_done_and_told() {
    let bench = bench(FILE);
    let pipe = pipe(&bench);
    let filler = "x".repeat(5 << 20);
    for line in [
        format!(
            r#"{{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{{"name":"stop","arguments":{{"why":"{filler}"}}}}}}"#
        ),
        format!(
            r#"{{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{{"arguments":{{"why":"{filler}"}},"name":"halt"}}}}"#
        ),
    ] {
        pipe.draw("long");
        pipe.send(&line);
        let message = pipe.receive_answer();
        assert_eq!(message["id"], 8, "{message}");
        let message_text = message["error"]["message"].as_str().unwrap();
        assert!(message_text.contains("longer than"), "{message_text}");
        assert!(message_text.contains("were stopped"), "{message_text}");
        pipe.reset();
    }
    pipe.send(&format!(
        r#"{{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{{"name":"sense","arguments":{{"why":"{filler}"}}}}}}"#
    ));
    let message = pipe.receive_answer();
    assert!(!message.to_string().contains("were stopped"), "{message}");
}

#[test]
fn a_stop_that_a_header_names_is_done_though_its_body_is_too_long() {
    let bench = bench(FILE);
    let web = bench.serve(&[]);
    web.draw("long");
    let (mut stream, host) = support::connect(&web);
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\nMcp-Name: stop\r\nContent-Length: 9999999\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    assert_eq!(support::answer(&mut stream).0, 413);
    web.until_state("stopped");
}

/// The drawing that a call began ends with its cancellation, however that names it.
#[test]
fn a_cancellation_that_names_its_call_otherwise_stops_the_arm() {
    let bench = bench(PATIENT);
    let pipe = pipe(&bench);
    for cancelled in [
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"117"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/canceled","params":{"requestId":117}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"id":117}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
    ] {
        pipe.begin(BEGUN, "stroke", &json!({"scene": "long", "again": true}));
        pipe.until_state("moving");
        pipe.send(cancelled);
        pipe.reset();
    }
}

#[test]
fn an_operator_who_writes_a_stop_otherwise_is_heard() {
    let bench = bench(FILE);
    let web = bench.serve(&[]);
    let folder = bench.path("steadyhand");
    let socket = std::fs::read_dir(folder)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    for line in ["halt", r#""stop""#, r#"{"verb":"Stop"}"#] {
        web.draw("long");
        let mut stream = UnixStream::connect(&socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        writeln!(stream, "{line}").unwrap();
        let mut printed = String::new();
        BufReader::new(stream).read_line(&mut printed).unwrap();
        let reply: Value = serde_json::from_str(&printed).unwrap();
        assert_eq!(reply["done"], true, "{line}: {reply}");
        web.until_state("stopped");
        web.until_job("stopped");
        assert_eq!(bench.run(&["reset"]).status.code(), Some(0));
        web.until_job("reached");
    }
    let mut stream = UnixStream::connect(&socket).unwrap();
    writeln!(stream, r#"{{"verb":"E-Stop"}}"#).unwrap();
    let mut printed = String::new();
    BufReader::new(stream).read_line(&mut printed).unwrap();
    assert!(printed.contains("latched until"), "{printed}");
}

/// Both lines arrive in one write: the stop is handled before a worker begins the reset.
#[test]
fn a_stop_behind_a_reset_is_the_last_word() {
    let declared = "[[tools]]\nname = \"again\"\ndescription = \"Resets, then draws.\"\n\
        sequence = [{ calls = \"reset\" }, { calls = \"stroke\", fixed = { scene = \"long\" } }]\n";
    let bench = bench(&format!("{FILE}{declared}"));
    let pipe = pipe(&bench);
    for tool in ["reset", "again"] {
        pipe.draw("long");
        assert_eq!(pipe.call("stop", &json!({}))["success"], true);
        let line = |id: u32, tool: &str| {
            let params = json!({"name": tool, "arguments": {}});
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
        };
        pipe.send(&format!("{}\n{}", line(1, tool), line(2, "stop")));
        let [one, other] = [pipe.receive_answer(), pipe.receive_answer()];
        let (moves, stop) = if one["id"] == 1 {
            (one, other)
        } else {
            (other, one)
        };
        let report_of = |answer: &Value| answer["result"]["structuredContent"].clone();
        assert_eq!(report_of(&stop)["success"], true, "{stop:#}");
        assert_eq!(report_of(&moves)["success"], false, "{tool}: {moves:#}");
        pipe.until_state("stopped");
        // The other way about the reset is the last word.
        pipe.send(&format!("{}\n{}", line(1, "stop"), line(2, "reset")));
        let [one, other] = [pipe.receive_answer(), pipe.receive_answer()];
        for answer in [one, other] {
            assert_eq!(report_of(&answer)["success"], true, "{answer:#}");
        }
        pipe.until_job("reached");
    }
}

/// The arm that a call moves stands, though the client's own words for that call are others, or another's.
#[test]
fn a_cancellation_whose_call_cannot_be_told_stops_the_arm() {
    let bench = bench(PATIENT);
    let pipe = pipe(&bench);
    for cancelled in [
        r#"{"jsonrpc":"2.0","id":9,"method":"notifications/cancelled","params":{"requestId":117}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":5}"#,
        r#"[{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":117}},{"id":1,"method":"ping"}]"#,
        r#"{"id":1,"method":"ping"}{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":117}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":118}}"#,
    ] {
        pipe.begin(BEGUN, "stroke", &json!({"scene": "long", "again": true}));
        pipe.until_state("moving");
        pipe.send(cancelled);
        if cancelled.starts_with('[') || cancelled.contains("}{") || cancelled.ends_with("5}") {
            let refused = pipe.receive_answer();
            let message = refused["error"]["message"].as_str().unwrap();
            assert!(
                message.ends_with("were stopped"),
                "{cancelled}: {refused:#}"
            );
        }
        pipe.reset();
    }
}

#[test]
fn an_open_id_is_not_reused_and_its_cancellation_stops_the_arm() {
    let bench = bench(PATIENT);
    let pipe = pipe(&bench);
    pipe.begin(BEGUN, "stroke", &json!({"scene": "long", "again": true}));
    pipe.until_state("moving");
    pipe.begin(BEGUN, "list_nodes", &json!({}));
    let refused = pipe.line_with("still open");
    assert!(refused.contains("-32600"), "{refused}");
    pipe.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":117}}"#);
    pipe.until_job("stopped");
}

/// Its head announces more than comes, and then the connection ends.
#[test]
fn a_stop_in_a_body_that_does_not_become_whole_is_done() {
    let bench = bench(FILE);
    let web = bench.serve(&[]);
    let stop = r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"stop"}}"#;
    web.draw("long");
    let (mut stream, host) = support::connect(&web);
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: 9000\r\n\r\n{stop}"
    )
    .unwrap();
    drop(stream);
    web.until_state("stopped");
    web.reset();
}

/// It has no line's end, and its place is another's before one comes.
#[test]
fn a_stop_on_the_control_socket_without_its_lines_end_is_done() {
    let bench = bench(FILE);
    let web = bench.serve(&[]);
    let mut sockets = std::fs::read_dir(bench.path("steadyhand")).unwrap();
    let socket = sockets.next().unwrap().unwrap().path();
    web.draw("long");
    let mut stopping = UnixStream::connect(&socket).unwrap();
    write!(stopping, r#"{{"verb":"stop"}}"#).unwrap();
    let silent: Vec<UnixStream> = (0..80)
        .map(|_| UnixStream::connect(&socket).unwrap())
        .collect();
    web.until_state("stopped");
    drop((stopping, silent));
}
