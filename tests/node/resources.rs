//! Tests a node's resources, completion of names, and notifications about changed lists.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use crate::support;

use serde_json::{Value, json};
use support::{Bench, SHORT_LINES, StdioClient, scene};

fn open(bench: &Bench) -> StdioClient {
    let (line, opened) = open_as(bench, &json!({}));
    for list in ["tools", "resources", "prompts"] {
        let list_changed = &opened["capabilities"][list]["listChanged"];
        assert_eq!(list_changed, true, "{opened}");
    }
    line
}

/// A client with these capabilities, and the node's answer to its introduction.
fn open_as(bench: &Bench, capabilities: &Value) -> (StdioClient, Value) {
    let line = StdioClient::start(bench, &["--state", &bench.state()]);
    let opened = line.greet_as("t", capabilities);
    (line, opened)
}

fn read(line: &StdioClient, uri: &str) -> Value {
    line.ask("resources/read", &json!({"uri": uri}))
}

fn complete(line: &StdioClient, reference: &Value, argument: &str, typed: &str) -> Vec<String> {
    let request = json!({"ref": reference, "argument": {"name": argument, "value": typed}});
    let answer = line.ask("completion/complete", &request);
    let values = answer["result"]["completion"]["values"].as_array().unwrap();
    let values = values.iter().map(|one| one.as_str().unwrap().to_owned());
    values.collect()
}

fn bench() -> Bench {
    let bench = Bench::new();
    bench.scene("default", &scene("default", SHORT_LINES));
    bench
}

#[test]
fn a_node_its_scenes_jobs_and_previews_can_be_read() {
    let bench = bench();
    let line = open(&bench);
    let reset = line.ask("tools/call", &json!({"name": "reset", "arguments": {}}));
    assert_eq!(reset["result"]["isError"], false, "{reset}");
    let listed = line.ask("resources/list", &json!({}));
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
    let text = |uri: &str| {
        let read = read(&line, uri);
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
        let read = read(&line, uri);
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
    let (line, reply) = open_as(&first, &json!({}));
    let announced = json!({"extensions": {EXTENSION: {"mimeTypes": [MIME]}}});
    let (shows, told_more) = open_as(&second, &announced);
    let declared = format!(r#""extensions":{{"{EXTENSION}":{{}}}},"#);
    let told_more = told_more.to_string();
    assert!(told_more.contains(&declared), "{told_more}");
    assert_eq!(told_more.replace(&declared, ""), reply.to_string());

    let tools = line.ask("tools/list", &json!({})).to_string();
    let marked = shows.ask("tools/list", &json!({})).to_string();
    let mark = format!(r#","_meta":{{"ui":{{"resourceUri":"{VIEW}"}},"ui/resourceUri":"{VIEW}"}}"#);
    // Three tools, each by two names.
    assert_eq!(marked.matches(&mark).count(), 6, "{marked}");
    assert_eq!(marked.replace(&mark, ""), tools);

    let resources = line.ask("resources/list", &json!({}));
    let mut more = shows.ask("resources/list", &json!({}));
    let cards = more["result"]["resources"].as_array_mut().unwrap();
    let view = cards.pop().unwrap();
    assert_eq!(
        (&view["uri"], &view["mimeType"]),
        (&json!(VIEW), &json!(MIME))
    );
    assert_eq!(more.to_string(), resources.to_string());

    let refused = read(&line, VIEW);
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .starts_with(&format!("there is no resource {VIEW}")),
        "{refused}"
    );
    let read = read(&shows, VIEW);
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
        let line = open(&bench);
        let reset = line.ask("tools/call", &json!({"name": "reset", "arguments": {}}));
        reset["result"]["structuredContent"]["job"]["id"]
            .as_str()
            .unwrap_or_else(|| panic!("{reset}"))
            .to_owned()
    };
    let line = open(&bench);
    let uri = format!("job://{job}");
    let listed = line.ask("resources/list", &json!({}));
    assert!(listed.to_string().contains(&uri), "{listed}");
    let read = read(&line, &uri);
    let text = read["result"]["contents"][0]["text"].as_str();
    let reply: Value = serde_json::from_str(text.unwrap_or_else(|| panic!("{read}"))).unwrap();
    assert_eq!(reply["job"]["state"], "reached", "{reply}");
    assert_eq!(reply["record"]["tool"], "reset", "{reply}");
    let reference = json!({"type": "ref/resource", "uri": "job://{id}"});
    assert_eq!(complete(&line, &reference, "id", &job), [job]);
}

#[test]
fn an_address_that_is_not_there_names_the_nearest() {
    let bench = bench();
    let line = open(&bench);
    for (uri, expected) in [
        ("preview://shrt", "preview://short"),
        ("scene://shrt", "scene://short"),
        ("usage://strok", "usage://stroke"),
        ("job://none", "Nearest: "),
        ("preview://short?meta=nothing", "there is no overlay"),
        ("nonsense", "Nearest: "),
    ] {
        let read = read(&line, uri);
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
        let read = read(&line, &format!("{scheme}://broken"));
        let message = read["error"]["message"].as_str().unwrap();
        assert!(message.contains("unknown key `sheet.sise_mm`"), "{message}");
    }
}

#[test]
fn names_are_completed_for_prompts_and_templates() {
    let bench = bench();
    let line = open(&bench);
    let templates = line.ask("resources/templates/list", &json!({}));
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
    assert_eq!(complete(&line, &draw, "scene", "SHO"), ["short"]);
    assert_eq!(complete(&line, &draw, "meta", "cro"), ["crosses"]);
    assert_eq!(complete(&line, &draw, "node", ""), ["local"]);
    assert_eq!(
        complete(&line, &draw, "scene", "hor"),
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
        let got = complete(&line, &reference, expected.0, expected.1);
        let begins: Vec<&String> = got
            .iter()
            .filter(|one| one.starts_with(expected.1))
            .collect();
        assert_eq!(begins, expected.2, "{template}");
    }
    let listed = line.ask("prompts/list", &json!({}));
    let draw = &listed["result"]["prompts"][1];
    assert_eq!(draw["arguments"].as_array().unwrap().len(), 4, "{draw}");
    let filled = line.ask(
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
    let line = open(&bench);
    let scenes = || {
        let listed = line.ask("tools/list", &json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap();
        let stroke = tools.iter().find(|tool| tool["name"] == "stroke").unwrap();
        stroke["inputSchema"]["properties"]["scene"].to_string()
    };
    assert!(!scenes().contains("fresh"));
    bench.scene("fresh", &scene("fresh", SHORT_LINES));
    line.notice("notifications/tools/list_changed");
    line.notice("notifications/resources/list_changed");
    assert!(scenes().contains("fresh"));
    std::fs::remove_file(bench.path("scenes/fresh.toml")).unwrap();
    line.notice("notifications/tools/list_changed");
    line.notice("notifications/resources/list_changed");
    assert!(!scenes().contains("fresh"));
}
