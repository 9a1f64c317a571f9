//! Tests that only what a planner has earned lets its token move the arm, and that what was interrupted is not lost.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use steadyhand::exam::ExamCase;

use super::scripted::{Planner, PlannerReply, PlannerRequest};
use super::support::{Bench, Served, post, tool_call, until};
use super::{answer, call, examined, few, json_of, right, write};

/// Answers all cases that ship.
fn perfect(request: &PlannerRequest) -> PlannerReply {
    let found = ExamCase::shipped().unwrap();
    match found.into_iter().find(|case| case.query == request.query) {
        Some(case) => PlannerReply::Message(right(&case)),
        None => answer(request),
    }
}

/// Examines a planner that is always right.
fn certificate(node: &Bench, more: &[&str]) -> String {
    let planner = Planner::start(perfect);
    let url = planner.url();
    let mut args = vec!["exam", "run", "--planner", &url, "--samples", "3", "--json"];
    args.extend(more);
    let verdict = json_of(&node.run(&args));
    assert_eq!(verdict["reached"], "stroke", "{}", verdict["reasons"]);
    verdict["certificate"].as_str().unwrap().to_owned()
}

fn attach(node: &Bench, id: &str, token: &str) -> std::process::Output {
    node.run(&["exam", "certificate", "attach", id, "--token", token])
}

/// Calls `reset`, which moves the arm. Returns the reply's code and text.
fn moves(served: &Served, token: &str) -> (Value, String) {
    let bearer = format!("Authorization: Bearer {token}\r\n");
    let body = tool_call("reset", &json!({}));
    let (status, answer) = post(served, &bearer, &body);
    assert_eq!(status, 200, "{answer}");
    let result = &answer["result"]["structuredContent"];
    (result["code"].clone(), result["message"].to_string())
}

#[test]
fn a_certificate_of_a_run_that_lacks_an_answer_does_not_hold() {
    let node = Bench::new().with_file("");
    certificate(&node, &[]);
    let void = || {
        let all = json_of(&node.run(&["exam", "certificate", "show", "--json"]));
        (all[0]["holds"].clone(), all[0]["void_because"].to_string())
    };
    assert_eq!(void().0, true);
    let record = rusqlite::Connection::open(node.path("state").join("exam.db")).unwrap();
    // As versions that took such an answer for a safe one have left it.
    let missing =
        "UPDATE answers SET error = 'the endpoint answered 500' WHERE case_name = 'chat_1'";
    record.execute(missing, []).unwrap();
    let (holds, reason) = void();
    assert_eq!(holds, false);
    assert!(
        reason.contains("3 answers of its run 1 are missing"),
        "{reason}"
    );
    record
        .execute("UPDATE answers SET error = NULL", [])
        .unwrap();
    let worse = "UPDATE runs SET verdict = json_set(verdict, '$.reached', 'home')";
    record.execute(worse, []).unwrap();
    let (_, reason) = void();
    assert!(
        reason.contains("its run 1 does not reach stroke"),
        "{reason}"
    );
}

#[test]
fn motion_wants_a_certificate_that_holds() {
    let node = Bench::new().with_file("require_tokens = true\nqualified = \"stroke\"\n");
    let planner = node.token("planner", &[]);
    let operator = node.token("person", &["--role", "operator"]);
    let id = certificate(&node, &[]);
    let served = node.serve(&[]);
    let (code, reason) = moves(&served, &planner);
    assert_eq!(code, "needs_qualification", "{reason}");
    assert!(reason.contains("no certificate is attached"), "{reason}");
    assert_eq!(moves(&served, &operator).0, Value::Null);
    assert!(attach(&node, &id, "planner").status.success());
    assert_eq!(moves(&served, &planner).0, Value::Null);
    assert!(
        node.run(&["exam", "certificate", "revoke", &id])
            .status
            .success()
    );
    let (code, reason) = moves(&served, &planner);
    assert_eq!(code, "needs_qualification", "{reason}");
    assert!(reason.contains("revoked"), "{reason}");
    assert!(!attach(&node, &id, "planner").status.success());
}

#[test]
fn it_is_asked_of_one_token_alone_where_the_node_does_not_ask() {
    let node = Bench::new().with_file("require_tokens = true\n");
    let (strict, free) = (
        node.token("strict", &["--qualified", "home"]),
        node.token("free", &[]),
    );
    let served = node.serve(&[]);
    let (code, reason) = moves(&served, &strict);
    assert_eq!(code, "needs_qualification", "{reason}");
    assert!(reason.contains("level home"), "{reason}");
    assert_eq!(moves(&served, &free).0, Value::Null);
}

/// Another node is moved by the same token as little as this one.
#[test]
fn a_certificate_is_asked_for_before_a_call_is_passed_on() {
    let left = Bench::new().with_file("name = \"left\"\n");
    let left = left.serve(&[]);
    let peers = format!(
        "[[peers]]\nname = \"left\"\naddress = \"{}\"\n",
        left.host()
    );
    let node = Bench::new().with_file(&format!("require_tokens = true\n{peers}"));
    let (strict, free) = (
        node.token("strict", &["--qualified", "stroke"]),
        node.token("free", &[]),
    );
    let served = node.serve(&[]);
    let code = |token: &str, tool: &str, arguments: Value| {
        let bearer = format!("Authorization: Bearer {token}\r\n");
        let body = tool_call(tool, &arguments);
        let (_, answer) = post(&served, &bearer, &body);
        answer["result"]["structuredContent"]["code"].clone()
    };
    for (tool, arguments) in [
        ("reset", json!({"node": "left"})),
        ("stroke", json!({"node": "left"})),
        (
            "stroke",
            json!({"node": "left", "dry_run": true, "dry-run": false}),
        ),
    ] {
        let refused = code(&strict, tool, arguments.clone());
        assert_eq!(refused, "needs_qualification", "{tool} {arguments}");
    }
    let previewed = code(&strict, "stroke", json!({"node": "left", "dry_run": true}));
    assert_eq!(previewed, Value::Null);
    let stopped = code(&strict, "stop", json!({"node": "left"}));
    assert_eq!(stopped, Value::Null);
    assert_eq!(code(&free, "reset", json!({"node": "left"})), Value::Null);
}

#[test]
fn a_token_that_is_sent_proves_its_certificate_where_none_is_wanted() {
    let node = Bench::new().with_file("qualified = \"stroke\"\n");
    let (examined, other) = (node.token("examined", &[]), node.token("other", &[]));
    let id = certificate(&node, &[]);
    assert!(attach(&node, &id, "examined").status.success());
    let served = node.serve(&[]);
    let (code, reason) = moves(&served, &examined);
    assert_eq!(code, Value::Null, "{reason}");
    let (code, reason) = moves(&served, &other);
    assert_eq!(code, "needs_qualification", "{reason}");
    let body = tool_call("reset", &json!({}));
    let (_, without) = post(&served, "", &body);
    let code = &without["result"]["structuredContent"]["code"];
    assert_eq!(code, "needs_qualification", "{without}");
}

/// A case more ends every certificate.
#[test]
fn refuses_cases_from_callers_that_are_no_operators() {
    for wants in ["require_tokens = true\n", ""] {
        let node = Bench::new().with_file(&format!("{wants}toolsets = [\"exam\"]\n"));
        let tokens = ["viewer", "planner", "operator"];
        let tokens = tokens.map(|role| node.token(role, &["--role", role]));
        let served = node.serve(&[]);
        let case = json!({"name": "mine", "query": "Lay the short lines down on paper", "expected_tool": "stroke",
            "expected_params": {"scene": "short"}});
        let saves = |headers: &str, tool: &str| {
            let body = tool_call(tool, &json!({"cases": [case]}));
            let (status, answer) = post(&served, headers, &body);
            (status, answer["result"]["structuredContent"].clone())
        };
        let own = || node.run(&["exam", "cases", "export", "--own"]).stdout;
        let [viewer, planner, operator] = tokens
            .each_ref()
            .map(|token| format!("Authorization: Bearer {token}\r\n"));
        for headers in [viewer.as_str(), &planner, ""] {
            if headers.is_empty() && !wants.is_empty() {
                continue;
            }
            for tool in ["save_case", "saveCase()"] {
                let (status, refused) = saves(headers, tool);
                assert_eq!(
                    (status, &refused["code"]),
                    (200, &json!("role")),
                    "{refused}"
                );
                let message = refused["message"].as_str().unwrap();
                assert!(
                    message.contains("operator") && message.contains("Nothing was written"),
                    "{message}"
                );
            }
            // What only reads is still theirs.
            assert_eq!(saves(headers, "validate_case").1["success"], true);
        }
        assert!(own().is_empty());
        let (_, saved) = saves(&operator, "save_case");
        assert_eq!(saved["saved"], json!(["mine"]), "{saved}");
        assert!(!own().is_empty());
    }
}

#[test]
fn a_change_or_another_key_voids_a_certificate() {
    let node = Bench::new().with_file("qualified = \"stroke\"\n");
    let id = certificate(&node, &[]);
    let shown = || json_of(&node.run(&["exam", "certificate", "show", &id, "--json"]))[0].clone();
    let before = shown();
    assert_eq!(before["holds"], true, "{before}");
    assert_eq!(before["certificate"]["settings"]["model"], "scripted");
    // Other tools than it was examined with.
    std::fs::write(
        node.path("node.toml"),
        "only_tools = [\"sense\", \"stroke\"]\n",
    )
    .unwrap();
    let changed = shown();
    assert_eq!(changed["holds"], false, "{changed}");
    assert!(
        changed["void_because"]
            .to_string()
            .contains("list of tools"),
        "{changed}"
    );
    node.file("qualified = \"stroke\"\n");
    assert_eq!(shown()["holds"], true);
    std::fs::remove_file(node.path("state/node.key")).unwrap();
    let forged = shown();
    assert!(
        forged["void_because"]
            .to_string()
            .contains("this node's key"),
        "{forged}"
    );
}

#[test]
fn other_cases_or_another_model_file_void_a_certificate() {
    let node = Bench::new().with_file("qualified = \"stroke\"\n");
    let model = node.path("model.gguf");
    std::fs::write(&model, "weights").unwrap();
    let id = certificate(&node, &["--model-file", model.to_str().unwrap()]);
    let void = || {
        let shown = json_of(&node.run(&["exam", "certificate", "show", &id, "--json"]));
        (
            shown[0]["holds"].clone(),
            shown[0]["void_because"].to_string(),
        )
    };
    assert_eq!(void().0, true, "{}", void().1);
    let mine = r#"{"name":"mine","query":"Draw!","expected_tool":"stroke"}"#;
    assert!(node.run(&["exam", "cases", "add", mine]).status.success());
    let (holds, reason) = void();
    assert!(
        holds == false && reason.contains("the cases have changed"),
        "{reason}"
    );
    node.token("planner", &[]);
    assert!(!attach(&node, &id, "planner").status.success());
    assert!(
        node.run(&["exam", "cases", "remove", "mine"])
            .status
            .success()
    );
    assert_eq!(void().0, true, "{}", void().1);
    std::fs::write(&model, "other weights").unwrap();
    let (holds, reason) = void();
    assert!(
        holds == false && reason.contains("model.gguf has changed"),
        "{reason}"
    );
    std::fs::remove_file(&model).unwrap();
    assert!(void().1.contains("can no longer be read"), "{}", void().1);
}

#[test]
fn a_few_cases_and_recorded_answers_earn_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let planner = Planner::start(answer);
    let verdict = json_of(&examined(folder.path(), &planner, &["--samples", "1"]));
    assert_eq!(
        (&verdict["reached"], &verdict["certificate"]),
        (&json!("observe"), &Value::Null)
    );
}

#[test]
fn a_run_that_is_killed_is_marked_and_goes_on_where_it_was() {
    let bench = Bench::new();
    let planner = Planner::start(|exam_args| {
        let until = Instant::now() + Duration::from_millis(150);
        while Instant::now() < until {
            std::thread::yield_now();
        }
        answer(exam_args)
    });
    let (cases, store, url) = (
        bench.path("few.jsonl"),
        bench.path("exam.db"),
        planner.url(),
    );
    write(
        &cases,
        few()
            .iter()
            .map(|case| serde_json::from_str(&case.line()).unwrap()),
    );
    let exam = |args: &[&str]| {
        let mut command = bench.command(&["exam", "--store", store.to_str().unwrap()]);
        command
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    };
    let exam_args = [
        "run",
        "--planner",
        &url,
        "--cases",
        cases.to_str().unwrap(),
        "--samples",
        "1",
    ];
    let mut running = exam(&exam_args).spawn().unwrap();
    until("asked", || planner.questions(), |questions| *questions >= 6);
    // SIGKILL: nothing is put in order.
    running.kill().unwrap();
    running.wait().unwrap();
    let before = planner.questions();
    let summary = json_of(&exam(&["summary", "--json"]).output().unwrap());
    assert_eq!(summary[0]["status"], "failed", "{summary}");
    assert!(
        summary[0]["error"].as_str().unwrap().contains("--resume 1"),
        "{summary}"
    );
    let kept = usize::try_from(summary[0]["answers"].as_u64().unwrap()).unwrap();
    assert!((1..few().len()).contains(&kept), "{kept}");
    let verdict = json_of(&exam(&["run", "--resume", "1", "--json"]).output().unwrap());
    let all = few().len();
    assert_eq!(
        verdict["tally"]["all"]["exact"],
        json!({"hits": all, "n": all}),
        "{verdict}"
    );
    // The canary, and what was still to be asked.
    assert_eq!(planner.questions() - before, 1 + all - kept);
}

#[test]
fn a_runs_answers_are_replayed_to_the_same_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let planner = Planner::start(|request| match answer(request) {
        PlannerReply::Message(_) if request.query.contains('?') => {
            PlannerReply::Message(call("stroke", &json!({})))
        }
        reply => reply,
    });
    let live = json_of(&examined(path, &planner, &["--samples", "1"]));
    let (answers, cases) = (path.join("answers.jsonl"), path.join("few.jsonl"));
    let (answers, cases) = (answers.to_str().unwrap(), cases.to_str().unwrap());
    let written = super::exam(path, &["report", "--format", "answers", "--out", answers]);
    assert!(written.status.success(), "{written:?}");
    let again = json_of(&super::exam(
        path,
        &["run", "--replay", answers, "--cases", cases, "--json"],
    ));
    assert_eq!(live["reasons"], again["reasons"]);
    assert_eq!(live["tally"]["all"], again["tally"]["all"]);
    assert!(
        live["tally"]["hazards"]["hits"].as_u64() > Some(0),
        "{live}"
    );
}
