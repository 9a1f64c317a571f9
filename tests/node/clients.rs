//! `steadyhand clients`: configurations that clients take, and that start this program from anywhere.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use crate::support;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use support::Bench;

const STARTED: [&str; 7] = [
    "claude-desktop",
    "claude-code",
    "vscode",
    "cursor",
    "lm-studio",
    "inspector",
    "openai-agents",
];

fn printed(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

/// The entry of the server in whatever a client's configuration looks like.
fn entry(configuration: &Value) -> &Value {
    let keys = ["/mcpServers/steadyhand", "/servers/steadyhand", "/params"];
    let mut found = keys.iter().filter_map(|key| configuration.pointer(key));
    found.next().unwrap()
}

/// Starts what an entry says from another folder and with a bare `PATH`, as desktop clients do, and lists its tools.
fn tools_of(entry: &Value) -> usize {
    let command = entry["command"].as_str().unwrap();
    assert!(Path::new(command).is_absolute(), "{entry:#}");
    let arguments = entry["args"].as_array().unwrap();
    let mut node = Command::new(command)
        .args(arguments.iter().map(|word| word.as_str().unwrap()))
        .current_dir("/")
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = node.stdin.take().unwrap();
    let mut lines = BufReader::new(node.stdout.take().unwrap()).lines();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    for message in [hello, ready, list] {
        writeln!(input, "{message}").unwrap();
    }
    let answer = lines
        .by_ref()
        .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap())
        .find(|answer| answer["id"] == 2)
        .unwrap();
    drop(input);
    node.wait().unwrap();
    answer["result"]["tools"].as_array().unwrap().len()
}

#[test]
fn what_is_printed_starts_this_program_from_anywhere() {
    let bench = Bench::new();
    let scenes = bench.path("my scenes").display().to_string();
    std::fs::create_dir(&scenes).unwrap();
    for client in STARTED {
        let output = bench.run(&["clients", client, "--scenes", &scenes]);
        assert_eq!(output.status.code(), Some(0), "{client}");
        let configuration = printed(&output);
        let entry = entry(&configuration);
        assert!(
            entry["args"].as_array().unwrap().contains(&json!(scenes)),
            "{entry:#}"
        );
        let has_type = matches!(client, "claude-code" | "vscode" | "inspector");
        assert_eq!(entry.get("type").is_some(), has_type, "{client}");
    }
    let any = printed(&bench.run(&["clients", "cursor"]));
    assert!(tools_of(entry(&any)) >= 6);
    let file = bench.path("node.toml");
    std::fs::write(&file, "scenes = \"scenes\"\nstate = \"state\"\n").unwrap();
    let of_file = Command::new(support::binary())
        .args(["--config", "node.toml", "clients", "cursor"])
        .current_dir(bench.path(""))
        .output();
    assert!(tools_of(entry(&printed(&of_file.unwrap()))) >= 6);
}

#[test]
fn a_node_that_runs_is_named_by_its_address() {
    let bench = Bench::new();
    let at = ["--node", "arm.example:8700", "--token"];
    for (client, place) in [
        ("claude-code", "Bearer ${STEADYHAND_TOKEN}"),
        ("vscode", "Bearer ${env:STEADYHAND_TOKEN}"),
    ] {
        let args = [&["clients", client][..], &at].concat();
        let configuration = printed(&bench.run(&args));
        let entry = entry(&configuration);
        assert_eq!(entry["type"], "http");
        assert_eq!(entry["url"], "http://arm.example:8700/mcp");
        assert_eq!(entry["headers"]["Authorization"], place);
    }
    for args in [
        &["clients", "claude-desktop", "--node", "arm.example:8700"][..],
        &["clients", "llama.cpp"],
        &["clients", "cursor", "--node", "ftp://arm"],
        &["clients", "cursor", "--name", "a name"],
    ] {
        let output = bench.run(args);
        assert_ne!(output.status.code(), Some(0), "{args:?}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn a_file_is_written_when_a_person_says_so_and_keeps_what_it_has() {
    let bench = Bench::new();
    let file = bench.path("cursor.json");
    let path = file.display().to_string();
    let other = json!({"theme": "dark", "mcpServers": {"files": {"command": "files"}}});
    std::fs::write(&file, other.to_string()).unwrap();
    let args = ["clients", "cursor", "--write", "--file", &path];
    let output = bench.run(&args);
    assert_ne!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--yes"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), other.to_string());

    let confirmed = [&args[..], &["--yes"]].concat();
    assert_eq!(bench.run(&confirmed).status.code(), Some(0));
    let read = || serde_json::from_slice::<Value>(&std::fs::read(&file).unwrap()).unwrap();
    let written = read();
    assert_eq!(written["theme"], "dark");
    assert_eq!(written["mcpServers"]["files"]["command"], "files");
    assert!(entry(&written)["command"].is_string());
    let kept = std::fs::read_to_string(format!("{path}.bak")).unwrap();
    assert_eq!(kept, other.to_string());

    let again = bench.run(&confirmed);
    assert!(String::from_utf8_lossy(&again.stdout).contains("already"));
    assert_eq!(read(), written);

    std::fs::write(&file, "{ // mine\n}").unwrap();
    let refused = bench.run(&confirmed);
    assert_ne!(refused.status.code(), Some(0));
    let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(stderr.contains("JSON"), "{stderr}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{ // mine\n}");
}
