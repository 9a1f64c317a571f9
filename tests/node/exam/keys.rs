//! A key is given at run time, and is neither kept, logged nor shown.

use std::path::Path;

use serde_json::json;

use super::scripted::{Planner, PlannerReply};
use super::support::Bench;
use super::{call, exam, json_of, write};

const SECRET: &str = "s3cret-in-an-address";

fn holds_secret(folder: &Path) -> bool {
    let files = std::fs::read_dir(folder).unwrap();
    let bytes = files.filter_map(|entry| std::fs::read(entry.unwrap().path()).ok());
    let mut found = bytes.map(|bytes| {
        let mut parts = bytes.windows(SECRET.len());
        parts.any(|part| part == SECRET.as_bytes())
    });
    found.any(|one| one)
}

#[test]
fn a_key_in_an_address_is_refused_and_shown_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let (user, query) = (
        format!("http://me:{SECRET}@127.0.0.1:9/v1"),
        format!("http://127.0.0.1:9/v1?api_key={SECRET}"),
    );
    let command = format!("server --api-key {SECRET}");
    let commands: [&[&str]; 9] = [
        &["run", "--planner", &user],
        &["run", "--planner", &query],
        &[
            "run",
            "--planner",
            "http://127.0.0.1:9/v1",
            "--servers",
            &query,
        ],
        &["servers", "add", "other", &user],
        &["servers", "add", "other", &query],
        &["servers", "add", "other", &command, "--transport", "stdio"],
        &["similar", "--urls", &query],
        &["similar", "--tools", "--embeddings", &query],
        &["cases", "generate", "2", "--paraphrase", &user],
    ];
    for command in commands {
        let refused = exam(path, command);
        let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success(), "{command:?}");
        assert!(
            stderr.contains("addresses are stored and shown"),
            "{command:?}: {stderr}"
        );
        let shown = format!("{stderr}{}", String::from_utf8_lossy(&refused.stdout));
        assert!(!shown.contains(SECRET), "{shown}");
    }
    assert!(!holds_secret(path));
    let bench = Bench::new();
    let file = format!("toolsets = [\"exam\"]\n[exam]\nmodel_url = \"{query}\"\n");
    std::fs::write(bench.path("node.toml"), file).unwrap();
    let config = bench.path("node.toml").display().to_string();
    let refused = bench.run(&["call", "sense", "{}", "--config", &config]);
    let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && stderr.contains("STEADYHAND_API_KEY"),
        "{stderr}"
    );
    assert!(!stderr.contains(SECRET), "{stderr}");
}

#[test]
fn the_key_of_a_server_comes_from_the_variable_that_is_noted() {
    let node = Bench::new().with_file("require_tokens = true\n");
    let token = node.token("examiner", &[]);
    let served = node.serve(&[]);
    let url = format!("http://{}/mcp", served.host());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let added = exam(
        path,
        &[
            "servers",
            "add",
            "other",
            &url,
            "--key-env",
            "EXAM_TEST_KEY",
        ],
    );
    assert!(added.status.success(), "{added:?}");
    let check = |key: Option<&str>| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_steadyhand"));
        command.args(["exam", "servers", "check", "--store"]);
        command
            .arg(path.join("exam.db"))
            .env_remove("EXAM_TEST_KEY");
        if let Some(key) = key {
            command.env("EXAM_TEST_KEY", key);
        }
        let output = command.output().unwrap();
        (
            output.status.success(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    };
    let (is_there, reply) = check(None);
    assert!(
        !is_there && reply.contains("EXAM_TEST_KEY, which is not set"),
        "{reply}"
    );
    let (is_there, reply) = check(Some("wrong"));
    assert!(!is_there, "{reply}");
    let (is_there, reply) = check(Some(&token));
    assert!(is_there, "{reply}");
    let listed = json_of(&exam(path, &["servers", "list", "--json"]));
    assert_eq!(listed[0]["key_env"], "EXAM_TEST_KEY");
    let bytes = std::fs::read(path.join("exam.db")).unwrap();
    assert!(
        !bytes
            .windows(token.len())
            .any(|part| part == token.as_bytes())
    );
}

#[test]
fn a_hanging_program_is_given_up_in_time_and_prints_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for (name, script) in [
        ("hangs", "echo noise >&2\nexec sleep 60\n"),
        ("fails", "echo there is no licence >&2\nexit 3\n"),
    ] {
        let file = path.join(name);
        std::fs::write(&file, script).unwrap();
        let command = format!("sh {}", file.display());
        let added = exam(
            path,
            &["servers", "add", name, &command, "--transport", "stdio"],
        );
        assert!(added.status.success(), "{added:?}");
    }
    let checked = exam(path, &["servers", "check"]);
    assert!(!checked.status.success());
    assert_eq!(String::from_utf8_lossy(&checked.stderr), "");
    let stdout = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(stdout.contains("did not answer within 1500 ms"), "{stdout}");
    assert!(stdout.contains("it said: there is no licence"), "{stdout}");
    assert!(!stdout.contains("noise"), "{stdout}");
}

#[test]
fn what_is_sent_with_a_question_is_what_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let bodies = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let received = std::sync::Arc::clone(&bodies);
    let planner = Planner::start(move |request| {
        received.lock().unwrap().push(request.body.clone());
        let tool = request.tools.first().map_or("sense", String::as_str);
        PlannerReply::Message(call(tool, &json!({})))
    });
    let cases = path.join("one.jsonl");
    write(
        &cases,
        std::iter::once(json!({"query": "Look", "expected_tool": "sense"})),
    );
    let (cases, url) = (cases.to_str().unwrap().to_owned(), planner.url());
    let run = |more: &[&str]| {
        let mut all = vec!["run", "--planner", &url, "--cases", &cases, "--json"];
        all.extend(["--samples", "1", "--seed", "7"]);
        all.extend(more);
        let output = exam(path, &all);
        assert!(output.status.success(), "{output:?}");
        let report = json_of(&exam(path, &["report", "--format", "json"]));
        (
            bodies.lock().unwrap().last().unwrap().clone(),
            report["settings"].clone(),
        )
    };
    let own = ["messages", "tools", "stream", "logprobs", "tool_choice"];
    for (more, top_p) in [
        (&[][..], None),
        (
            &[
                "--top-p",
                "0.9",
                "--max-tokens",
                "64",
                "--temperature",
                "1.5",
            ][..],
            Some(0.9),
        ),
    ] {
        let (mut sent, recorded) = run(more);
        let sent = sent.as_object_mut().unwrap();
        // These are the same in every run of this version.
        for key in own {
            sent.remove(key);
        }
        for (key, value) in sent.iter() {
            assert_eq!(&recorded[key], value, "{key}: {recorded}");
        }
        assert_eq!(recorded["top_p"].as_f64(), top_p, "{recorded}");
        assert_eq!(sent.len(), 4 + usize::from(top_p.is_some()), "{sent:?}");
    }
    let wrong = exam(path, &["run", "--planner", &url, "--top-p", "1.5"]);
    let stderr = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(stderr.contains("above 0 and at most 1"), "{stderr}");
}
