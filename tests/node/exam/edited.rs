//! Tests what an operator notes and changes: servers and cases, each value within its range.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::{Value, json};

use super::{exam, json_of};

fn refusal_of(folder: &std::path::Path, arguments: &[&str]) -> String {
    let output = exam(folder, arguments);
    assert!(!output.status.success(), "{arguments:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn run_ok(folder: &std::path::Path, arguments: &[&str]) {
    let output = exam(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
}

fn servers(folder: &std::path::Path) -> Value {
    json_of(&exam(folder, &["servers", "list", "--json"]))
}

#[test]
fn a_server_says_itself_how_it_is_reached_and_can_be_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    run_ok(path, &["servers", "add", "a", "python3 server.py --fast"]);
    run_ok(path, &["servers", "add", "b", "http://h:1/mcp"]);
    let all = servers(path);
    assert_eq!(
        (&all[0]["transport"], &all[1]["transport"]),
        (&json!("stdio"), &json!("streamable-http"))
    );
    assert!(all[0]["created_at"].is_i64() && all[0]["last_connected"].is_null());
    run_ok(
        path,
        &[
            "servers",
            "edit",
            "a",
            "--url",
            "http://h:2/mcp",
            "--rename",
            "c",
        ],
    );
    let all = servers(path);
    assert_eq!(
        (&all[1]["name"], &all[1]["url"], &all[1]["transport"]),
        (
            &json!("c"),
            &json!("http://h:2/mcp"),
            &json!("streamable-http")
        ),
        "{all}"
    );
    assert!(all[1]["updated_at"].as_i64() >= all[1]["created_at"].as_i64());
    for (arguments, reason) in [
        (
            &["servers", "edit", "c", "--url", "http://h:1/mcp"][..],
            "already",
        ),
        (
            &["servers", "edit", "nobody", "--url", "http://h:9/mcp"],
            "there is no server",
        ),
        (
            &["servers", "add", "d", "127.0.0.1:9/mcp"],
            "is not an address",
        ),
        (&["servers", "add", "d", "ftp://h/mcp"], "is not an address"),
        (
            &["servers", "add", &"d".repeat(101), "http://h/mcp"],
            "1 to 100 characters",
        ),
        (&["run", "--planner", "127.0.0.1:9/v1"], "is not an address"),
        (&["similar", "--tools", "--threshold", "1.5"], "from 0 to 1"),
        (
            &["cases", "generate", "2", "--difficulty", "11"],
            "from 1 to 10",
        ),
    ] {
        let reply = refusal_of(path, arguments);
        assert!(reply.contains(reason), "{arguments:?}: {reply}");
    }
}

#[test]
fn a_case_of_ones_own_can_be_changed_and_a_poor_question_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let mine = r#"{"name":"mine","query":"Put the letters down","expected_tool":"stroke"}"#;
    run_ok(path, &["cases", "add", mine]);
    let change =
        r#"{"query":"Put the letters down on paper","expected_params":{"scene":"letters"}}"#;
    run_ok(path, &["cases", "edit", "mine", change]);
    let own = json_of(&exam(path, &["cases", "list", "--own", "--json"]));
    assert_eq!(
        (&own[0]["query"], &own[0]["expected_params"]["scene"]),
        (&json!("Put the letters down on paper"), &json!("letters"))
    );
    assert!(own[0]["updated_at"].as_i64() >= own[0]["created_at"].as_i64());
    let class = own[0]["class"].as_str().unwrap();
    for (class, many) in [(class, 1), ("recovery", 0)] {
        let listed = ["cases", "list", "--own", "--json", "--class", class];
        let listed = json_of(&exam(path, &listed));
        assert_eq!(listed.as_array().unwrap().len(), many, "{class}");
    }
    let copy =
        r#"{"name":"copy","query":"Put the letters down on paper","expected_tool":"stroke"}"#;
    for (arguments, reason) in [
        (
            &["cases", "edit", "nobody", "{}"][..],
            "no case of your own",
        ),
        (
            &["cases", "edit", "mine", "{\"name\":\"b\"}"],
            "name of a case cannot change",
        ),
        (
            &["cases", "edit", "mine", "{\"expected_tool\":\"strok\"}"],
            "nearest",
        ),
        (&["cases", "add", copy], "it is the same as mine"),
        (
            &["cases", "add", "{\"query\":\"  \",\"expected_tool\":null}"],
            "query is empty",
        ),
    ] {
        let reply = refusal_of(path, arguments);
        assert!(reply.contains(reason), "{arguments:?}: {reply}");
    }
}

/// Answers each request on a connection of its own with `reply`, and keeps the connection open.
fn listening(reply: fn(&str) -> &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for mut stream in listener.incoming().flatten() {
            let mut head = [0; 4096];
            let length = stream.read(&mut head).unwrap_or(0);
            let head = String::from_utf8_lossy(&head[..length]).into_owned();
            let _ = stream.write_all(reply(&head).as_bytes());
            open.push(stream);
        }
    });
    format!("http://{address}")
}

#[test]
fn a_server_that_speaks_sse_alone_gets_one_plain_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let url = listening(|head| {
        if head.starts_with("GET") {
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nevent: endpoint\ndata: /messages\n\n"
        } else {
            "HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n"
        }
    });
    run_ok(folder.path(), &["servers", "add", "old", &url]);
    assert!(!exam(folder.path(), &["servers", "check"]).status.success());
    let all = servers(folder.path());
    assert_eq!(
        all[0]["told"],
        "`sse` is not supported. Next: use `streamable-http`"
    );
}

#[test]
fn the_time_limit_holds_for_the_list_of_models_too() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("{}/v1", listening(|_| ""));
    let reply = refusal_of(
        folder.path(),
        &["run", "--planner", &url, "--time-limit", "1"],
    );
    assert!(
        reply.contains("did not list its models within 1 s"),
        "{reply}"
    );
}
