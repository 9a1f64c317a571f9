//! Tests a node's resources, completion of names, and notifications about changed lists.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use crate::support;
use std::collections::VecDeque;
use std::io::Write;
use std::process::{ChildStdin, Stdio};
use std::sync::mpsc::Receiver;

use serde_json::{Value, json};
use support::{Bench, PATIENCE, Running, SHORT_LINES, lines, scene};

/// A node on standard input and output, with one message per line.
struct Line {
    _child: Running,
    input: ChildStdin,
    output: Receiver<String>,
    notices: VecDeque<String>,
    last_id: u64,
}

impl Line {
    fn open(bench: &Bench) -> Self {
        let (line, opened) = Self::open_as(bench, &json!({}));
        for list in ["tools", "resources", "prompts"] {
            let list_changed = &opened["capabilities"][list]["listChanged"];
            assert_eq!(list_changed, true, "{opened}");
        }
        line
    }

    /// A client with these capabilities, and the node's answer to its introduction.
    fn open_as(bench: &Bench, capabilities: &Value) -> (Self, Value) {
        let state = bench.state();
        let mut command = bench.command(&["--state", &state, "serve"]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let output = lines(child.stdout.take().unwrap());
        let mut line = Self {
            _child: Running(child),
            input,
            output,
            notices: VecDeque::new(),
            last_id: 0,
        };
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": {"name": "t", "version": "1"}});
        let mut opened = line.request("initialize", &hello);
        line.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        (line, opened["result"].take())
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
    }

    /// The next message; notices are kept.
    fn receive(&mut self) -> Value {
        let line = self.output.recv_timeout(PATIENCE).unwrap();
        let message: Value = serde_json::from_str(&line).unwrap();
        if let Some(method) = message["method"].as_str() {
            self.notices.push_back(method.to_owned());
        }
        message
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let message = self.receive();
            if message["id"] == id {
                return message;
            }
        }
    }

    fn read(&mut self, uri: &str) -> Value {
        self.request("resources/read", &json!({"uri": uri}))
    }

    fn notice(&mut self, method: &str) {
        while !self.notices.iter().any(|one| one == method) {
            self.receive();
        }
        self.notices.retain(|one| one != method);
    }

    fn complete(&mut self, reference: &Value, argument: &str, typed: &str) -> Vec<String> {
        let request = json!({"ref": reference, "argument": {"name": argument, "value": typed}});
        let answer = self.request("completion/complete", &request);
        let values = answer["result"]["completion"]["values"].as_array().unwrap();
        values
            .iter()
            .map(|one| one.as_str().unwrap().to_owned())
            .collect()
    }
}

fn bench() -> Bench {
    let bench = Bench::new();
    bench.scene("default", &scene("default", SHORT_LINES));
    bench
}

#[test]
fn a_node_its_scenes_jobs_and_previews_can_be_read() {
    let bench = bench();
    let mut line = Line::open(&bench);
    let reset = line.request("tools/call", &json!({"name": "reset", "arguments": {}}));
    assert_eq!(reset["result"]["isError"], false, "{reset}");
    let listed = line.request("resources/list", &json!({}));
    let uris: Vec<&str> = listed["result"]["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["uri"].as_str().unwrap())
        .collect();
    let job = uris
        .iter()
        .find(|uri| uri.starts_with("job://"))
        .unwrap()
        .to_string();
    for uri in [
        "nodes://all",
        "usage://stroke",
        "scene://short",
        "preview://short",
    ] {
        assert!(uris.contains(&uri), "{uri} in {uris:?}");
    }
    let mut text = |uri: &str| {
        let read = line.read(uri);
        let contents = &read["result"]["contents"][0];
        contents["text"]
            .as_str()
            .unwrap_or_else(|| panic!("{read}"))
            .to_owned()
    };
    let nodes: Value = serde_json::from_str(&text("nodes://all")).unwrap();
    assert_eq!(nodes[0]["name"], "local");
    assert!(text("usage://stroke").starts_with("# stroke\n"));
    assert!(text("scene://short").contains(r#""strokes":2"#));
    let reply: Value = serde_json::from_str(&text(&job)).unwrap();
    assert_eq!(
        (&reply["job"]["state"], &reply["result"]["success"]),
        (&json!("reached"), &json!(true)),
        "{reply}"
    );
    for uri in [
        "preview://short",
        "preview://short?meta=crosses",
        "preview://short",
    ] {
        let read = line.read(uri);
        let contents = &read["result"]["contents"][0];
        assert_eq!(contents["mimeType"], "image/png", "{read}");
        assert!(
            contents["blob"]
                .as_str()
                .unwrap()
                .starts_with("iVBORw0KGgo"),
            "{uri}"
        );
    }
}

#[test]
fn the_view_is_told_only_to_clients_that_show_views() {
    const VIEW: &str = "ui://steadyhand/drawing";
    const EXTENSION: &str = "io.modelcontextprotocol/ui";
    const MIME: &str = "text/html;profile=mcp-app";
    let (first, second) = (bench(), bench());
    let (mut line, reply) = Line::open_as(&first, &json!({}));
    let announced = json!({"extensions": {EXTENSION: {"mimeTypes": [MIME]}}});
    let (mut shows, told_more) = Line::open_as(&second, &announced);
    let declared = format!(r#""extensions":{{"{EXTENSION}":{{}}}},"#);
    let told_more = told_more.to_string();
    assert!(told_more.contains(&declared), "{told_more}");
    assert_eq!(told_more.replace(&declared, ""), reply.to_string());

    let tools = line.request("tools/list", &json!({})).to_string();
    let marked = shows.request("tools/list", &json!({})).to_string();
    let mark = format!(r#","_meta":{{"ui":{{"resourceUri":"{VIEW}"}},"ui/resourceUri":"{VIEW}"}}"#);
    // Three tools, each by two names.
    assert_eq!(marked.matches(&mark).count(), 6, "{marked}");
    assert_eq!(marked.replace(&mark, ""), tools);

    let resources = line.request("resources/list", &json!({}));
    let mut more = shows.request("resources/list", &json!({}));
    let cards = more["result"]["resources"].as_array_mut().unwrap();
    let view = cards.pop().unwrap();
    assert_eq!(
        (&view["uri"], &view["mimeType"]),
        (&json!(VIEW), &json!(MIME))
    );
    assert_eq!(more.to_string(), resources.to_string());

    let refused = line.read(VIEW);
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .starts_with(&format!("there is no resource {VIEW}")),
        "{refused}"
    );
    let read = shows.read(VIEW);
    let contents = &read["result"]["contents"][0];
    assert_eq!(contents["mimeType"], MIME);
    let nowhere = json!({"connectDomains": [], "resourceDomains": [], "frameDomains": [], "baseUriDomains": []});
    assert_eq!(contents["_meta"]["ui"]["csp"], nowhere);
    assert!(
        contents["text"]
            .as_str()
            .unwrap()
            .starts_with("<!doctype html>")
    );
}

#[test]
fn a_job_of_an_earlier_process_can_be_read() {
    let bench = bench();
    let job = {
        let mut line = Line::open(&bench);
        let reset = line.request("tools/call", &json!({"name": "reset", "arguments": {}}));
        reset["result"]["structuredContent"]["job"]["id"]
            .as_str()
            .unwrap_or_else(|| panic!("{reset}"))
            .to_owned()
    };
    let mut line = Line::open(&bench);
    let uri = format!("job://{job}");
    let listed = line.request("resources/list", &json!({}));
    assert!(listed.to_string().contains(&uri), "{listed}");
    let read = line.read(&uri);
    let text = read["result"]["contents"][0]["text"].as_str();
    let reply: Value = serde_json::from_str(text.unwrap_or_else(|| panic!("{read}"))).unwrap();
    assert_eq!(reply["job"]["state"], "reached", "{reply}");
    assert_eq!(reply["record"]["tool"], "reset", "{reply}");
    let reference = json!({"type": "ref/resource", "uri": "job://{id}"});
    assert_eq!(line.complete(&reference, "id", &job), [job]);
}

#[test]
fn an_address_that_is_not_there_names_the_nearest() {
    let bench = bench();
    let mut line = Line::open(&bench);
    for (uri, expected) in [
        ("preview://shrt", "preview://short"),
        ("scene://shrt", "scene://short"),
        ("usage://strok", "usage://stroke"),
        ("job://none", "Nearest: "),
        ("preview://short?meta=nothing", "there is no overlay"),
        ("nonsense", "Nearest: "),
    ] {
        let read = line.read(uri);
        let message = read["error"]["message"]
            .as_str()
            .unwrap_or_else(|| panic!("{read}"));
        assert!(
            message.contains(expected)
                && message.contains(uri.split('?').next().unwrap().split("://").last().unwrap()),
            "{message}"
        );
    }
    bench.scene(
        "broken",
        &scene("broken", SHORT_LINES).replace("[sheet]", "[sheet]\nsise_mm = 3"),
    );
    for scheme in ["preview", "scene"] {
        let read = line.read(&format!("{scheme}://broken"));
        let message = read["error"]["message"].as_str().unwrap();
        assert!(message.contains("unknown key `sheet.sise_mm`"), "{message}");
    }
}

#[test]
fn names_are_completed_for_prompts_and_templates() {
    let bench = bench();
    let mut line = Line::open(&bench);
    let templates = line.request("resources/templates/list", &json!({}));
    let templates: Vec<String> = templates["result"]["resourceTemplates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["uriTemplate"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        templates,
        [
            "usage://{name}",
            "scene://{name}{?meta}",
            "preview://{name}{?meta}",
            "job://{id}"
        ]
    );
    let draw = json!({"type": "ref/prompt", "name": "draw"});
    assert_eq!(line.complete(&draw, "scene", "SHO"), ["short"]);
    assert_eq!(line.complete(&draw, "meta", "cro"), ["crosses"]);
    assert_eq!(line.complete(&draw, "node", ""), ["local"]);
    assert_eq!(
        line.complete(&draw, "scene", "hor"),
        ["short"],
        "what only holds the letters comes too"
    );
    for template in &templates {
        let reference = json!({"type": "ref/resource", "uri": template});
        let expected = match template.as_str() {
            "usage://{name}" => ("name", "st", vec!["stroke", "stop"]),
            "job://{id}" => ("id", "", vec![]),
            _ => ("name", "sho", vec!["short"]),
        };
        let got = line.complete(&reference, expected.0, expected.1);
        let begins: Vec<&String> = got
            .iter()
            .filter(|one| one.starts_with(expected.1))
            .collect();
        assert_eq!(begins, expected.2, "{template}");
    }
    let listed = line.request("prompts/list", &json!({}));
    let draw = &listed["result"]["prompts"][1];
    assert_eq!(draw["arguments"].as_array().unwrap().len(), 4, "{draw}");
    let filled = line.request(
        "prompts/get",
        &json!({"name": "draw", "arguments": {"scene": "short", "meta": "crosses"}}),
    );
    let text = filled["result"]["messages"][0]["content"]["text"]
        .as_str()
        .unwrap();
    assert!(
        text.contains(r#"{"scene":"short","meta":"crosses","dry_run":true}"#),
        "{text}"
    );
}

#[test]
fn scenes_that_come_and_go_on_disk_are_told_and_listed() {
    let bench = bench();
    let mut line = Line::open(&bench);
    let scenes = |line: &mut Line| {
        let listed = line.request("tools/list", &json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap();
        let stroke = tools.iter().find(|tool| tool["name"] == "stroke").unwrap();
        stroke["inputSchema"]["properties"]["scene"].to_string()
    };
    assert!(!scenes(&mut line).contains("fresh"));
    bench.scene("fresh", &scene("fresh", SHORT_LINES));
    line.notice("notifications/tools/list_changed");
    line.notice("notifications/resources/list_changed");
    assert!(scenes(&mut line).contains("fresh"));
    std::fs::remove_file(bench.path("scenes/fresh.toml")).unwrap();
    line.notice("notifications/tools/list_changed");
    line.notice("notifications/resources/list_changed");
    assert!(!scenes(&mut line).contains("fresh"));
}
