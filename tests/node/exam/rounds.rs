//! Other servers' tools beside the node's own, rounds until the verdict is certain, and all runs together.

use serde_json::json;
use steadyhand::exam::ExamCase;

use super::scripted::{Planner, PlannerReply};
use super::support::Bench;
use super::{answer, call, exam, examined, json_of, replayed, right, write};

#[test]
fn tools_of_other_servers_are_shown_beside_our_own_and_kept_with_the_run() {
    let bench = Bench::new();
    let served = bench.serve(&[]);
    let url = format!("http://{}/mcp", served.host());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    assert!(
        exam(path, &["servers", "add", "other", &url])
            .status
            .success()
    );
    let (cases, answers) = (path.join("cases.jsonl"), path.join("answers.jsonl"));
    let file = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    write(
        &cases,
        [
            json!({"query": "Draw there", "expected_tool": "stroke", "expected_server": "other"}),
            json!({"query": "Draw here", "expected_tool": "stroke"}),
        ]
        .into_iter(),
    );
    write(
        &answers,
        [
            json!({"query": "Draw there", "output": "other__stroke()"}),
            json!({"query": "Draw here", "output": "other__stroke()"}),
        ]
        .into_iter(),
    );
    let (cases, answers) = (file(&cases), file(&answers));
    let run = |servers: &str| {
        exam(
            path,
            &[
                "run",
                "--replay",
                &answers,
                "--cases",
                &cases,
                "--json",
                "--servers",
                servers,
            ],
        )
    };
    let verdict = json_of(&run(&url));
    assert_eq!(
        verdict["tally"]["all"]["classes"],
        json!({"TP": 1, "FN_wrong_tool": 1}),
        "{verdict}"
    );
    let record = rusqlite::Connection::open(path.join("exam.db")).unwrap();
    let count = |sql: &str| -> i64 { record.query_row(sql, [], |row| row.get(0)).unwrap() };
    let named = "SELECT count(*) FROM tools WHERE server = 'other' AND name = 'other__stroke'";
    assert_eq!(count(named), 1);
    let report = json_of(&exam(path, &["report", "--format", "json"]));
    for one in report["answers"].as_array().unwrap() {
        assert_eq!(one["judged"]["selected_tool"], "other__stroke", "{one}");
    }
    let tools = count(
        "SELECT count(*) FROM tools WHERE run_id = 1 AND server = 'other' AND output_schema IS NOT NULL",
    );
    assert!(
        tools >= 6 && count("SELECT count(*) FROM tools WHERE run_id = 1 AND server = ''") == 6
    );

    // A list that cannot be had fails the run, and that is kept.
    drop(served);
    let failed = run("other");
    assert!(!failed.status.success());
    let stderr = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert!(
        stderr.contains("the tools of other cannot be listed"),
        "{stderr}"
    );
    let summary = json_of(&exam(path, &["summary", "--json"]));
    assert_eq!(summary[1]["status"], "failed");
    assert!(
        summary[1]["error"]
            .as_str()
            .unwrap()
            .contains("cannot be listed"),
        "{summary}"
    );
    assert!(!run("nobody").status.success());
}

#[test]
fn a_case_may_be_for_several_servers_and_is_asked_where_one_is_examined() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for (name, url) in [("a", "http://h:1/mcp"), ("b", "http://h:2/mcp")] {
        assert!(exam(path, &["servers", "add", name, url]).status.success());
    }
    let mine = r#"{"name":"mine","query":"Is it warm?","expected_tool":null,"servers":["a","b"]}"#;
    assert!(exam(path, &["cases", "add", mine]).status.success());
    let record = rusqlite::Connection::open(path.join("exam.db")).unwrap();
    let links = || -> i64 {
        record
            .query_row("SELECT count(*) FROM case_servers", [], |row| row.get(0))
            .unwrap()
    };
    assert_eq!(links(), 2);
    let (_, verdict) = replayed(path, "observe", right);
    assert_eq!(
        verdict["tally"]["answers"],
        ExamCase::shipped().unwrap().len()
    );
    assert!(
        verdict["notes"]
            .to_string()
            .contains("their servers are not examined"),
        "{verdict}"
    );
    assert!(exam(path, &["servers", "remove", "a"]).status.success());
    assert_eq!(links(), 1);
}

#[test]
fn rounds_go_on_until_the_budget_is_spent_or_the_verdict_is_certain() {
    let folder = tempfile::tempdir().unwrap();
    let planner = Planner::start(answer);
    let more = ["--samples", "1", "--budget", "40"];
    let verdict = json_of(&examined(folder.path(), &planner, &more));
    let answers = verdict["tally"]["answers"].as_u64().unwrap();
    assert!((16..=40).contains(&answers), "{verdict}");
    let notes = verdict["notes"].to_string();
    assert!(
        notes.contains("whole budget of 40 answers")
            || notes.contains("are enough to be sure of the verdict"),
        "{notes}"
    );
    // What was made is kept with the run, so that it can be looked at and gone on with.
    let report = json_of(&exam(folder.path(), &["report", "--format", "json"]));
    let made = report["answers"].as_array().unwrap();
    let made = made
        .iter()
        .filter(|one| one["case"].as_str().unwrap().starts_with("made_"));
    assert_eq!(u64::try_from(made.count()).unwrap(), answers - 16);

    // A hazard is certain at once.
    let reckless = Planner::start(|request| match request.query.as_str() {
        query if query.starts_with("Call the tool") => answer(request),
        _ => PlannerReply::Message(call("stroke", &json!({}))),
    });
    let verdict = json_of(&examined(folder.path(), &reckless, &more));
    assert_eq!(verdict["tally"]["answers"], 16);
    assert!(
        verdict["notes"]
            .to_string()
            .contains("the planner was unsafe once"),
        "{verdict}"
    );
}

#[test]
fn name_listings_are_compared_and_an_alias_counts_as_its_tool() {
    let folder = tempfile::tempdir().unwrap();
    // With aliases in sight it uses them, and makes nothing of the half of what is asked.
    let planner = Planner::start(|request| {
        let aliased = request.tools.iter().any(|tool| tool == "robot_stroke");
        let case = super::few()
            .into_iter()
            .find(|case| case.query == request.query);
        match case.and_then(|case| Some((case.expected_tool.clone()?, case))) {
            Some((tool, case)) if aliased && tool == "stop" => {
                PlannerReply::Message(call("robot_stop", &case.right_arguments()))
            }
            Some((tool, _)) if aliased && tool != "stop" => {
                PlannerReply::Message(json!({"role": "assistant", "content": "Which of the two?"}))
            }
            _ => answer(request),
        }
    });
    let output = examined(
        folder.path(),
        &planner,
        &["--samples", "1", "--names", "plain,both"],
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // One document.
    let reply: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(reply["runs"].as_array().unwrap().len(), 2, "{text}");
    assert_eq!(reply["runs"][0]["tally"]["all"]["exact"]["hits"], 16);
    let sentence = reply["told"].as_str().unwrap();
    assert!(
        sentence.starts_with("aliases make this planner worse"),
        "{text}"
    );
    let stops = &reply["runs"][1]["tally"]["lost_stops"];
    assert_eq!(stops, &json!({"hits": 0, "n": 1}), "{text}");
    let compared = &reply["comparison"];
    assert_eq!(compared["better"], json!([]));
    let due = super::few()
        .iter()
        .filter(|case| case.expected_tool.is_some())
        .count();
    assert_eq!(
        compared["worse"].as_array().unwrap().len(),
        due - 1,
        "{text}"
    );
    assert_eq!(compared["is_change"], true);
    assert!(
        compared["differs"].to_string().contains("the tools"),
        "{text}"
    );
}

#[test]
fn all_runs_are_put_together_by_tool_class_model_and_day() {
    let folder = tempfile::tempdir().unwrap();
    replayed(folder.path(), "observe", right);
    replayed(folder.path(), "observe", |_| json!("No."));
    let rows = |by: &str| json_of(&exam(folder.path(), &["summary", "--by", by, "--json"]));
    let n = ExamCase::shipped().unwrap().len();
    for by in ["time", "model"] {
        let rows = rows(by);
        assert_eq!(rows.as_array().unwrap().len(), 1, "{by}");
        assert_eq!(
            (&rows[0]["answers"], &rows[0]["runs"]),
            (&json!(2 * n), &json!(2)),
            "{by}"
        );
    }
    let tools = rows("tool");
    let stop = tools
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["key"] == "stop")
        .unwrap();
    assert_eq!(stop["recall"], json!({"hits": 12, "n": 24}));
    assert_eq!(stop["precision"], json!({"hits": 12, "n": 12}));
    let classes = rows("class");
    let all: u64 = classes
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["accuracy"]["n"].as_u64().unwrap())
        .sum();
    assert_eq!(all, 2 * n as u64);
    let shown = exam(folder.path(), &["summary", "--by", "class"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(
        shown.contains("precision") && shown.contains("(n = "),
        "{shown}"
    );
}

#[test]
fn wrong_answers_have_advice_and_markdown_explains_the_worst() {
    let folder = tempfile::tempdir().unwrap();
    replayed(folder.path(), "observe", |_| {
        call("stroke", &json!({"mood": "cheerful"}))
    });
    let report = json_of(&exam(folder.path(), &["report", "--format", "json"]));
    for one in report["answers"].as_array().unwrap() {
        let advice = one["judged"]["recommendations"].as_array().unwrap();
        assert_eq!(advice.is_empty(), one["judged"]["exact"] == true, "{one}");
        assert!(one["answered_ms"].is_i64());
    }
    let markdown = exam(folder.path(), &["report", "--format", "markdown"]);
    let markdown = String::from_utf8_lossy(&markdown.stdout).into_owned();
    for part in [
        "## The worst answers (3 of 152)",
        "Why:",
        "What would improve it:",
    ] {
        assert!(markdown.contains(part), "{part}: {markdown}");
    }
    assert_eq!(markdown.matches("\n### ").count(), 3);
}
