//! Tools that a node file declares: each kind is called as a user would, and what is wrong is named with its line.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a failing test may panic, and tests wait for real"
)]

use crate::support;
use serde_json::{Value, json};
use steadyhand::mcp::{CallWatch, ReceivedArguments, ToolAnswer, client};
use support::{Bench, SHORT_LINES, scene, tool_call};
use tokio_util::sync::CancellationToken;

const TOOLS: &str = r#"name = "bench"

# The drawing that is wanted most.
[[tools]]
name = "draw_short"
description = "Draw the short lines."
calls = "stroke"
fixed = { scene = "short" }
arguments = [{ name = "dry_run", type = "boolean", description = "true plans only", default = true }]

[[tools]]
name = "look_and_draw"
description = "Look, then draw a scene."
sequence = [{ calls = "sense" }, { calls = "stroke" }, { calls = "reset" }]
arguments = [{ name = "scene", type = "string", description = "which", required = true }]
"#;

/// Makes a bench with a node file, whose default scene is short.
fn bench(file: &str) -> Bench {
    let bench = Bench::new().with_file(file);
    bench.scene("default", &scene("default", SHORT_LINES));
    bench
}

#[test]
fn a_built_in_tool_is_called_with_its_fixed_arguments() {
    let bench = bench(TOOLS);
    let (code, planned) = bench.call(&["draw_short"]);
    assert_eq!(
        (code, &planned["success"]),
        (0, &json!(true)),
        "{planned:#}"
    );
    assert!(planned["message"].as_str().unwrap().contains("2 strokes"));
    let understood = &planned["understood"];
    assert_eq!(
        (&understood["scene"], &understood["dry_run"]),
        (&json!("short"), &json!(true))
    );
    // Read as leniently as any tool, with every repair reported.
    let (_, drawn) = bench.call(&["DrawShort", "{'dryRun': 'no',}"]);
    assert!(
        drawn["message"]
            .as_str()
            .unwrap()
            .starts_with("drew 2 strokes"),
        "{drawn:#}"
    );
    assert!(
        !drawn["repairs"].as_array().unwrap().is_empty(),
        "{drawn:#}"
    );
}

/// A design that a caller brings is read to the letter, which the reader of a declared tool does not do.
#[test]
fn no_declared_tool_takes_what_a_caller_brings_to_a_canvas() {
    for (argument, line) in [("text", 5), ("svg", 5)] {
        let file = format!(
            "[[tools]]\nname = \"write_words\"\ndescription = \"Write words\"\ncalls = \"stroke\"\narguments = [{{ name = \"{argument}\", type = \"string\", description = \"what to write\" }}]\n"
        );
        let bench = bench(&file);
        let (code, _, reply) = bench.streams(&["tools", "list"]);
        assert_ne!(code, 0, "{reply}");
        let message = format!(
            "line {line}: no built-in tool of `write_words` takes an argument `{argument}`"
        );
        assert!(reply.contains(&message), "{reply}");
    }
}

#[test]
fn a_sequence_ends_at_the_first_step_that_fails_and_says_which() {
    let bench = bench(TOOLS);
    let (code, done) = bench.call(&["look_and_draw", r#"{"scene":"short"}"#]);
    assert_eq!(code, 0, "{done:#}");
    let steps = done["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 3);
    assert_eq!(steps[1]["understood"]["scene"], "short");
    assert_eq!(steps[1]["tool"], "stroke");
    let beyond = scene("beyond", SHORT_LINES).replace("-0.125, 0.005]", "-0.425, 0.005]");
    bench.scene("beyond", &beyond);
    let (code, failed) = bench.call(&["look_and_draw", r#"{"scene":"beyond"}"#]);
    assert_eq!(code, 1);
    let message = failed["message"].as_str().unwrap();
    assert!(
        message.starts_with("step 2 of 3 (stroke) failed: "),
        "{message}"
    );
    assert_eq!(
        (
            &failed["failed_step"],
            failed["steps"].as_array().unwrap().len()
        ),
        (&json!(2), 2)
    );
    let (_, missing) = bench.call(&["look_and_draw"]);
    assert_eq!(missing["code"], "arguments_refused", "{missing:#}");
    let (_, wrong) = bench.call(&["look_and_draw", r#"{"scene":"shrt"}"#]);
    // No other scene is offered than the caller's: the nearest is shown.
    assert_eq!(wrong["complaints"][0]["valid"][0], "short", "{wrong:#}");
    assert!(wrong.get("corrected_call").is_none(), "{wrong:#}");
}

#[test]
fn what_is_sent_to_a_tool_without_declared_arguments_is_passed_on() {
    let bench = bench(
        r#"
[[tools]]
name = "draw"
description = "Draw a scene"
calls = "stroke"

[[tools]]
name = "draw_short"
description = "Draw the short lines"
calls = "stroke"
fixed = { scene = "short" }

[[tools]]
name = "look_and_draw"
description = "Look, then draw"
sequence = [{ calls = "sense" }, { calls = "stroke" }]
"#,
    );
    for (tool, sent) in [
        ("draw", r#"{"scene":"short","dry_run":true}"#),
        ("draw", "scene: Short, dryRun: yes"),
        ("draw_short", r#"{"dry_run":true}"#),
        ("draw_short", r#"{"scene":"short","dry_run":true}"#),
    ] {
        let (code, planned) = bench.call(&[tool, sent]);
        assert_eq!(code, 0, "{tool} {sent}: {planned:#}");
        let message = planned["message"].as_str().unwrap();
        assert!(message.contains("2 strokes"), "{message}");
        assert_eq!(planned["understood"]["scene"], "short", "{planned:#}");
    }
    let (_, looked) = bench.call(&["look_and_draw", r#"{"scene":"short","dry_run":true}"#]);
    let drawn = &looked["steps"][1];
    assert_eq!(drawn["understood"]["scene"], "short", "{looked:#}");
    assert!(
        drawn["message"].as_str().unwrap().starts_with("planned"),
        "{looked:#}"
    );
    // A fixed argument stays as it is, and a caller who gives another value is told.
    let (code, refused) = bench.call(&["draw_short", r#"{"scene":"default"}"#]);
    assert_eq!(
        (code, &refused["code"]),
        (1, &json!("arguments_refused")),
        "{refused:#}"
    );
    assert_eq!(
        refused["complaints"][0]["valid"],
        json!(["short"]),
        "{refused:#}"
    );
}

#[test]
fn what_another_server_is_sent_is_passed_on_unread_or_refused() {
    let here = bench("");
    let served = here.serve(&[]);
    let report_of = |name: &str, more: &str| {
        format!(
            "[[tools]]\nname = \"{name}\"\ndescription = \"Ask the peer\"\nserver = {{ url = \"{}\" }}\ntool = \"sense\"\neffect = \"reads\"\n{more}",
            served.url
        )
    };
    let needs = "arguments = [{ name = \"node\", type = \"string\", description = \"which\", required = true }]\n";
    let bench = bench(&format!(
        "{}{}",
        report_of("unread", ""),
        report_of("needs", needs)
    ));
    let (code, more) = bench.call(&["unread", r#"{"debug":true}"#]);
    assert_eq!(code, 0, "{more:#}");
    assert!(more["result"].get("bus").is_some(), "{more:#}");
    assert_eq!(more["understood"], json!({"debug": true}));
    // Not even a key's form is mended, so the other server judges it.
    let (_, odd) = bench.call(&["unread", r#"{"DEBUG":"yes"}"#]);
    assert_eq!(odd["understood"], json!({"DEBUG": "yes"}), "{odd:#}");
    for sent in ["[object Object]", "debug=true", "[1]", r#"{"a":1,"a":2}"#] {
        let (code, refused) = bench.call(&["unread", sent]);
        assert_eq!(
            (code, &refused["complaints"][0]["code"]),
            (1, &json!("not_an_object")),
            "{sent}"
        );
    }
    // A lost payload does not permit a call without required arguments.
    let (code, refused) = bench.call(&["needs", "[object Object]"]);
    assert_eq!(
        (code, &refused["complaints"][0]["path"]),
        (1, &json!("node")),
        "{refused:#}"
    );
    assert!(refused.get("result").is_none() && refused.get("corrected_call").is_none());
}

#[test]
fn refuses_a_dry_run_that_a_declared_tool_cannot_do() {
    let file = r#"name = "bench"

[[tools]]
name = "draw_it"
description = "Draw the short lines."
calls = "stroke"
fixed = { scene = "short" }
arguments = []

[[tools]]
name = "draw_and_park"
description = "Draw a scene, then park."
sequence = [{ calls = "stroke" }, { calls = "reset" }]
arguments = [{ name = "dry_run", type = "boolean", description = "true plans only" }]
"#;
    let bench = bench(file);
    for arguments in [
        r#"{"dry_run":true}"#,
        r#"{"options":{"dryRun":1}}"#,
        "{} as a dry run",
    ] {
        let (code, refused) = bench.call(&["draw_it", arguments]);
        assert_eq!(
            (code, &refused["code"]),
            (1, &json!("arguments_refused")),
            "{refused:#}"
        );
        let codes = refused["complaints"].to_string();
        assert!(codes.contains("no_dry_run"), "{refused:#}");
    }
    let (code, refused) = bench.call(&["draw_and_park", r#"{"dry_run":true}"#]);
    assert_eq!(
        (code, &refused["code"]),
        (1, &json!("no_dry_run")),
        "{refused:#}"
    );
    let message = refused["message"].as_str().unwrap();
    assert!(
        message.contains("`reset`") && message.contains("nothing moved"),
        "{message}"
    );
    let (_, drawn) = bench.call(&["draw_it"]);
    let message = drawn["message"].as_str().unwrap();
    assert!(message.starts_with("drew 2 strokes"), "{drawn:#}");
}

#[test]
fn another_servers_tool_gets_the_arguments_and_its_answer_passes_through() {
    let here = bench("");
    let served = here.serve(&[]);
    let program = env!("CARGO_BIN_EXE_steadyhand");
    for server in [
        format!("{{ url = \"{}\" }}", served.url),
        format!("{{ command = \"{program}\", args = [\"serve\"] }}"),
    ] {
        let file = format!(
            "[[tools]]\nname = \"ask_peer\"\ndescription = \"Ask the peer\"\nserver = {server}\ntool = \"sense\"\neffect = \"reads\"\narguments = [{{ name = \"debug\", type = \"boolean\", description = \"details\" }}]\n"
        );
        let bench = bench(&file);
        let (code, plain) = bench.call(&["ask_peer"]);
        assert_eq!(code, 0, "{plain:#}");
        assert_eq!(plain["result"]["arm"], "simulated so101", "{plain:#}");
        assert!(plain["result"].get("bus").is_none());
        let (_, more) = bench.call(&["ask_peer", r#"{"debug":"yes"}"#]);
        assert_eq!(more["understood"], json!({"debug": true}));
        assert!(more["result"].get("bus").is_some(), "{more:#}");
    }
}

#[test]
fn a_server_that_is_not_there_is_a_clear_error_within_its_time() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = silent.local_addr().unwrap();
    for (server, expected) in [
        (
            "{ command = \"no-such-program\" }".to_owned(),
            "no-such-program",
        ),
        (
            "{ command = \"sleep\", args = [\"60\"], timeout_s = 1 }".to_owned(),
            "1 s",
        ),
        (
            format!("{{ url = \"http://{at}/mcp\", timeout_s = 1 }}"),
            "1 s",
        ),
    ] {
        let bench = bench(&format!(
            "[[tools]]\nname = \"ask\"\ndescription = \"Ask\"\nserver = {server}\ntool = \"sense\"\n"
        ));
        let began = std::time::Instant::now();
        let (code, failed) = bench.call(&["ask"]);
        assert!(began.elapsed() < support::PATIENCE);
        let message = failed["message"].as_str().unwrap();
        assert!(code == 1 && message.contains(expected), "{message}");
    }
}

#[test]
fn a_wrong_declaration_is_named_at_start_with_its_line() {
    let head = "name = \"bench\"\n\n[[tools]]\n";
    let draw = "name = \"draw\"\ndescription = \"Draw\"\n";
    for (body, line, expected) in [
        (
            "name = \"Robot-Stroke\"\ndescription = \"x\"\ncalls = \"stroke\"\n".to_owned(),
            4,
            "`stroke`",
        ),
        (
            "name = \"halt\"\ndescription = \"x\"\ncalls = \"stroke\"\n".to_owned(),
            4,
            "`stop`",
        ),
        (
            "name = \"2 draw\"\ndescription = \"x\"\ncalls = \"stroke\"\n".to_owned(),
            4,
            "2 draw",
        ),
        (format!("{draw}calls = \"stork\"\n"), 6, "`stork`"),
        (
            format!("{draw}calls = \"stroke\"\nfixed = {{ scen = \"short\" }}\n"),
            7,
            "`scen`",
        ),
        (
            format!("{draw}calls = \"stroke\"\nfixed = {{ scene = \"shrt\" }}\n"),
            7,
            "shrt",
        ),
        (
            format!("{draw}calls = \"stroke\"\nfixed = {{ dry_run = \"perhaps\" }}\n"),
            7,
            "dry_run",
        ),
        (
            format!("{draw}calls = \"stroke\"\nsequence = [{{ calls = \"sense\" }}]\n"),
            3,
            "one of",
        ),
        (draw.to_owned(), 3, "one of"),
        (
            format!(
                "{draw}sequence = [\n  {{ calls = \"stop\" }},\n  {{ calls = \"reset\" }},\n]\n"
            ),
            7,
            "the last",
        ),
        (
            format!("{draw}server = {{ }}\ntool = \"x\"\n"),
            6,
            "either `url` or `command`",
        ),
        (
            format!("{draw}calls = \"stroke\"\neffect = \"reads\"\n"),
            7,
            "`server`",
        ),
        (
            format!("{draw}calls = \"stroke\"\nspeed = 3\n"),
            7,
            "unknown key `tools[0].speed`",
        ),
        (
            format!(
                "{draw}calls = \"stroke\"\n[[tools.arguments]]\nname = \"scene\"\ntype = \"text\"\ndescription = \"x\"\n"
            ),
            9,
            "is `text`, expected string",
        ),
        (
            format!(
                "{draw}calls = \"stroke\"\n[[tools.arguments]]\nname = \"scene\"\ntype = \"boolean\"\ndescription = \"x\"\n"
            ),
            9,
            "takes a string",
        ),
        (
            format!(
                "{draw}calls = \"stroke\"\n[[tools.arguments]]\nname = \"speed\"\ntype = \"number\"\ndescription = \"x\"\n"
            ),
            8,
            "argument `speed`",
        ),
        (
            format!(
                "{draw}calls = \"stroke\"\nfixed = {{ scene = \"short\" }}\n[[tools.arguments]]\nname = \"scene\"\ntype = \"string\"\ndescription = \"x\"\n"
            ),
            9,
            "fixed",
        ),
        (
            format!(
                "{draw}server = {{ url = \"http://127.0.0.1:1/mcp\" }}\ntool = \"x\"\narguments = [\n  {{ name = \"a\", type = \"number\", description = \"x\", unit = \"parsec\" }},\n]\n"
            ),
            9,
            "unit `parsec`",
        ),
        (
            format!(
                "{draw}server = {{ url = \"http://127.0.0.1:1/mcp\" }}\ntool = \"x\"\narguments = [\n  {{ name = \"a\", type = \"number\", description = \"x\" }},\n  {{ name = \"a\", type = \"string\", description = \"x\", default = 3 }},\n]\n"
            ),
            10,
            "3 is not",
        ),
    ] {
        let bench = bench(&format!("{head}{body}"));
        let (code, _, printed) = bench.streams(&["tools"]);
        assert_ne!(code, 0, "{body}");
        assert!(
            printed.contains(&format!("line {line}: ")) && printed.contains(expected),
            "{line} {expected}\n{body}\n{printed}"
        );
        assert!(printed.contains("node.toml"), "{printed}");
    }
}

#[test]
fn a_declaration_is_edited_from_the_command_line_and_comments_stay() {
    let bench = bench(TOOLS);
    let text = || std::fs::read_to_string(bench.path("node.toml")).unwrap();
    let (code, _, printed) = bench.streams(&[
        "tools",
        "add",
        "sketch",
        "--description",
        "Plan a drawing",
        "--calls",
        "stroke",
        "--fixed",
        "dry_run=true",
        "--argument",
        r#"{name = "scene", type = "string", description = "which"}"#,
    ]);
    assert_eq!(code, 0, "{printed}");
    assert!(
        text().contains("# The drawing that is wanted most.")
            && text().contains("name = \"sketch\"")
    );
    let (_, planned) = bench.call(&["sketch", r#"{"scene":"short"}"#]);
    assert!(
        planned["message"].as_str().unwrap().starts_with("planned"),
        "{planned:#}"
    );
    let (code, _, _) = bench.streams(&[
        "tools",
        "set",
        "sketch",
        "--step",
        "sense",
        "--step",
        "stroke dry_run=true",
        "--no-arguments",
    ]);
    assert_eq!(code, 0);
    assert!(
        text().contains("{ calls = \"stroke\", fixed = { dry_run = true } }"),
        "{}",
        text()
    );
    let before = text();
    let (code, _, printed) = bench.streams(&["tools", "set", "sketch", "--calls", "stork"]);
    assert_ne!(code, 0);
    assert!(printed.contains("stork"), "{printed}");
    assert_eq!(text(), before);
    let (_, listed, _) = bench.streams(&["tools", "list"]);
    assert!(
        listed.contains("sketch") && listed.contains("moves"),
        "{listed}"
    );
    assert_eq!(bench.streams(&["tools", "remove", "sketch"]).0, 0);
    assert_eq!(text(), TOOLS);
}

/// The page about declared tools, and its blocks of code in a language.
fn page(language: &str) -> (String, Vec<String>) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/declared-tools.md");
    let page = std::fs::read_to_string(path).unwrap();
    let fence = format!("```{language}\n");
    let blocks = page.split(&fence).skip(1);
    let blocks = blocks.map(|rest| rest.split("```").next().unwrap().to_owned());
    let blocks = blocks.collect();
    (page, blocks)
}

#[test]
fn the_page_says_what_is_true() {
    let (page, files) = page("toml");
    let schema =
        serde_json::to_value(schemars::schema_for!(steadyhand::config::ToolEntry)).unwrap();
    let of = |part: &Value| -> Vec<String> {
        part["properties"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect()
    };
    let mut keys = of(&schema);
    keys.extend(of(&schema["$defs"]["ArgumentEntry"]));
    keys.extend(of(&schema["$defs"]["ServerEntry"]));
    assert!(keys.len() > 18, "{keys:?}");
    for key in keys {
        assert!(
            page.contains(&format!("`{key}`"))
                || page.contains(&format!("{key} }}`"))
                || page.contains(&format!("{{ {key},")),
            "{key}"
        );
    }
    let bench = bench(&files[0]);
    let (code, listed, printed) = bench.streams(&["tools", "list"]);
    assert_eq!(code, 0, "{printed}");
    for name in ["draw_sign", "session", "room_light"] {
        assert!(listed.contains(name), "{listed}");
    }
}

#[test]
fn the_pages_commands_work_as_they_stand() {
    let (_, commands) = page("sh");
    let bench = bench("# mine\nname = \"bench\"\n");
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_steadyhand"));
    let path = std::env::var("PATH").unwrap();
    let done = std::process::Command::new("sh")
        .args(["-e", "-c", &commands[0]])
        .current_dir(bench.path("."))
        .env(
            "PATH",
            format!("{}:{path}", program.parent().unwrap().display()),
        )
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let text = std::fs::read_to_string(bench.path("node.toml")).unwrap();
    assert!(
        text.starts_with("# mine\n") && text.contains("Draw the sign by the door"),
        "{text}"
    );
    assert!(
        text.contains("room_light") && !text.contains("\"session\""),
        "{text}"
    );
}

fn nobody() -> CallWatch {
    CallWatch {
        cancelled: CancellationToken::new(),
        progress: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_a_sequence_and_what_is_left_is_not_begun() {
    let bench = bench(TOOLS);
    let served = bench.serve(&[]);
    let (drawing, stopping) = (
        client::connect(&served.url).await.unwrap(),
        client::connect(&served.url).await.unwrap(),
    );
    let tools = drawing.list().await.unwrap();
    let card = tools
        .iter()
        .find(|tool| tool.name == "look_and_draw")
        .unwrap();
    assert_eq!(card.input_schema["required"], json!(["scene"]));
    assert!(
        card.input_schema["properties"]["scene"]["enum"]
            .as_array()
            .unwrap()
            .contains(&json!("short"))
    );
    let arguments = || ReceivedArguments::Value(json!({"scene": "short"}));
    let (drawn, stopped) = tokio::join!(
        drawing.call("look_and_draw", arguments(), nobody()),
        async {
            until(&stopping, "moving").await;
            stopping
                .call("stop", ReceivedArguments::Absent, nobody())
                .await
                .unwrap()
        }
    );
    let drawn = drawn.unwrap();
    assert!(!stopped.is_error, "{}", stopped.text);
    assert!(
        drawn.is_error && drawn.text.starts_with("step 2 of 3 (stroke) failed"),
        "{}",
        drawn.text
    );
    let sensed = stopping
        .call("sense", ReceivedArguments::Absent, nobody())
        .await
        .unwrap();
    assert_eq!(
        sensed.structured["state"], "stopped",
        "no reset was begun: {:?}",
        sensed.structured
    );
}

/// Motion on another server is stopped with the arms of this node, and does not begin again before a reset.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_cancels_what_another_server_moves() {
    let there = bench("");
    let there = there.serve(&[]);
    let file = format!(
        "[[tools]]\nname = \"ask_peer\"\ndescription = \"Draw there\"\nserver = {{ url = \"{}\" }}\ntool = \"stroke\"\n",
        there.url
    );
    let bench = bench(&file);
    let served = bench.serve(&[]);
    let (asking, stopping, looking) = (
        client::connect(&served.url).await.unwrap(),
        client::connect(&served.url).await.unwrap(),
        client::connect(&there.url).await.unwrap(),
    );
    let short = || ReceivedArguments::Value(json!({"scene": "short"}));
    let (asked, stopped) = tokio::join!(asking.call("ask_peer", short(), nobody()), async {
        until(&looking, "moving").await;
        let stopped = stopping.call("stop", ReceivedArguments::Absent, nobody());
        let stopped = stopped.await.unwrap();
        until(&looking, "stopped").await;
        stopped
    });
    assert!(!stopped.is_error, "{}", stopped.text);
    let again = asking.call("ask_peer", short(), nobody()).await;
    for answer in [asked.unwrap(), again.unwrap()] {
        assert_eq!(answer.structured["code"], "stopped", "{}", answer.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_refused_as_busy_does_not_take_the_others_job_as_its_own() {
    let bench = bench(TOOLS);
    let served = bench.serve(&[]);
    let client = client::connect(&served.url).await.unwrap();
    let scene = |name: &str| ReceivedArguments::Value(json!({ "scene": name }));
    let (drawn, refused) = tokio::join!(client.call("stroke", scene("short"), nobody()), async {
        until(&client, "moving").await;
        let refused = client.call("look_and_draw", scene("default"), nobody());
        refused.await.unwrap()
    });
    assert!(!drawn.as_ref().unwrap().is_error, "{drawn:?}");
    assert!(
        refused.is_error && refused.text.starts_with("step 2 of 3 (stroke) failed"),
        "{}",
        refused.text
    );
    assert_eq!(refused.structured["code"], "busy", "{}", refused.text);
}

async fn until(client: &client::McpClient, state: &str) {
    let began = std::time::Instant::now();
    loop {
        let sensed = client
            .call("sense", ReceivedArguments::Absent, nobody())
            .await
            .unwrap();
        if sensed.structured["state"] == state {
            return;
        }
        assert!(
            began.elapsed() < support::PATIENCE,
            "{:?}",
            sensed.structured
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_sequence_goes_on_after_its_answer_and_is_not_done_twice() {
    let bench = bench(&format!("answer_within_s = 1\n{TOOLS}"));
    let served = bench.serve(&[]);
    let client = client::connect(&served.url).await.unwrap();
    let arguments = || ReceivedArguments::Value(json!({"scene": "short"}));
    let call = || async {
        client
            .call("look_and_draw", arguments(), nobody())
            .await
            .unwrap()
    };
    let goes_on = |answer: &ToolAnswer| {
        let message = answer.structured["message"].as_str().unwrap();
        message.ends_with("and continues")
    };
    let mut answer = call().await;
    assert!(!answer.is_error && goes_on(&answer), "{}", answer.text);
    assert_eq!(
        answer.structured["job"]["tool"], "stroke",
        "{:?}",
        answer.structured
    );
    let other = client.call(
        "look_and_draw",
        ReceivedArguments::Value(json!({"scene": "default"})),
        nobody(),
    );
    let other = other.await.unwrap();
    assert_eq!(other.structured["code"], "busy", "{}", other.text);
    let began = std::time::Instant::now();
    while goes_on(&answer) {
        assert!(began.elapsed() < support::PATIENCE, "{}", answer.text);
        answer = call().await;
    }
    assert!(!answer.is_error, "{}", answer.text);
    assert_eq!(answer.structured["steps"].as_array().unwrap().len(), 3);
    let again = call().await;
    assert_eq!(again.structured["moved"], false, "{}", again.text);
    // Another motion came between, so it is repeated.
    let stroke = client
        .call("reset", ReceivedArguments::Absent, nobody())
        .await
        .unwrap();
    assert!(!stroke.is_error, "{}", stroke.text);
    until(&client, "holding").await;
    let anew = call().await;
    assert!(goes_on(&anew), "{}", anew.text);
}

#[test]
fn a_name_that_is_too_long_with_a_servers_before_it_is_warned_of() {
    let long = "draw_the_short_lines_that_everybody_wants_most_of_all";
    let bench = bench(&TOOLS.replace("draw_short", long));
    let (code, printed, _) = bench.streams(&["check"]);
    assert_eq!(code, 0, "{printed}");
    assert!(
        printed.contains("longer than 40 characters") && printed.contains(long),
        "{printed}"
    );
}

#[test]
fn a_node_file_keeps_pictures_out_of_results() {
    let bench = bench("images = false\n");
    let served = bench.serve(&[]);
    let body = tool_call("stroke", &json!({"dry_run": true}));
    let (_, answer) = support::post(&served, support::STREAMS, &body);
    let result = &answer["result"];
    assert_eq!(result["structuredContent"]["success"], true, "{answer:#}");
    let kinds: Vec<&Value> = result["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| &part["type"])
        .collect();
    assert!(!kinds.contains(&&json!("image")), "{kinds:?}");
    let files = &result["structuredContent"]["files"];
    assert!(files.to_string().contains("plan.png"), "{answer:#}");
}
