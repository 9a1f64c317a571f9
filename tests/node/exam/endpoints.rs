//! Tests exams against eleven kinds of endpoints: the verdict, the number of answers, and the reasons. An answer that never came does not count.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::{Value, json};
use steadyhand::exam::ExamCase;

use super::scripted::{Planner, PlannerReply, PlannerRequest};
use super::support::Bench;
use super::{answer, call, exam, examined, few, json_of, right};

/// Cases of the exam: one of each class.
const N: u64 = 16;

fn is_canary(request: &PlannerRequest) -> bool {
    request.tools.iter().any(|tool| tool.starts_with("canary"))
}

/// Answers the canary, and what follows by `script`.
fn after_canary(
    script: impl Fn(&PlannerRequest) -> PlannerReply + Send + Sync + 'static,
) -> impl Fn(&PlannerRequest) -> PlannerReply + Send + Sync + 'static {
    move |request| {
        if is_canary(request) {
            answer(request)
        } else {
            script(request)
        }
    }
}

fn raw(text: &'static str) -> impl Fn(&PlannerRequest) -> PlannerReply + Send + Sync + 'static {
    after_canary(move |_| PlannerReply::Raw(200, text.to_owned()))
}

/// The outcome that is expected of an exam.
struct ExpectedExam {
    status: &'static str,
    /// Answers that came, and that did not.
    n: (u64, u64),
    reached: Value,
    /// Texts that the terminal, the Markdown and the HTML report contain; if the exam falls short, also among the reasons.
    reasons: Vec<&'static str>,
}

impl ExpectedExam {
    fn is_whole(&self) -> bool {
        !self.reached.is_null()
    }
}

/// Returns what the report of this kind says.
fn reported(verdict: &Value, ending: &str) -> String {
    let files = verdict["report"].as_array().unwrap();
    let mut paths = files.iter().map(|file| file.as_str().unwrap());
    let path = paths.find(|path| path.ends_with(ending)).unwrap();
    std::fs::read_to_string(path).unwrap()
}

/// Runs the same exam again, with the output for a person at the terminal.
fn in_words(folder: &Path, planner: &Planner, more: &[&str]) -> String {
    let cases = folder.join("few.jsonl");
    let (url, cases) = (planner.url(), cases.to_str().unwrap());
    let args = ["run", "--planner", &url, "--cases", cases];
    let output = exam(folder, &[&args[..], more].concat());
    String::from_utf8(output.stdout).unwrap()
}

fn check(
    script: impl Fn(&PlannerRequest) -> PlannerReply + Send + Sync + 'static,
    want: &ExpectedExam,
) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let planner = Planner::start(script);
    let more = ["--samples", "1", "--retries", "0", "--time-limit", "1"];
    let output = examined(folder.path(), &planner, &more);
    let verdict = json_of(&output);
    let (n, failed) = want.n;
    let tally = &verdict["tally"];
    assert_eq!(verdict["status"], want.status, "{verdict}");
    assert_eq!(
        (&tally["answers"], &tally["failed"], &verdict["reached"]),
        (&json!(n), &json!(failed), &want.reached),
        "{verdict}"
    );
    // Nothing that did not come is counted anywhere.
    assert_eq!(tally["all"]["right"]["n"], n, "{verdict}");
    assert_eq!(tally["f1"]["n"], n);
    let stops = tally["lost_stops"]["n"].as_u64().unwrap();
    let hazards = tally["hazards"]["n"].as_u64().unwrap();
    let others = tally["unsafe_elsewhere"]["n"].as_u64().unwrap();
    assert_eq!((hazards + others, stops <= hazards), (n, true), "{verdict}");
    for (place, text) in [
        ("reasons", verdict["reasons"].to_string()),
        ("markdown", reported(&verdict, ".md")),
        ("html", reported(&verdict, ".html")),
        ("terminal", in_words(folder.path(), &planner, &more)),
    ] {
        let text = text.replace("&lt;", "<").replace("\\\"", "\"");
        let is_said = want.reasons.iter().all(|reason| text.contains(reason));
        assert!(
            is_said || place == "reasons" && want.is_whole(),
            "{place}: {:?}: {text}",
            want.reasons
        );
    }
    let held = exam(folder.path(), &["certificate", "show", "--json"]);
    assert_eq!(json_of(&held), json!([]));
    assert_eq!(
        output.status.success(),
        want.status == "completed",
        "{verdict}"
    );
    let summary = json_of(&exam(folder.path(), &["summary", "--json"]));
    assert_eq!(summary[0]["status"], want.status);
    verdict
}

fn completed(reached: Value, reason: &[&'static str]) -> ExpectedExam {
    ExpectedExam {
        status: "completed",
        n: (N, 0),
        reached,
        reasons: reason.to_vec(),
    }
}

/// A run that ends after five answers in a row that never came.
fn failed(n: u64, reason: &'static str) -> ExpectedExam {
    ExpectedExam {
        status: "failed",
        n: (n, 5),
        reached: Value::Null,
        reasons: vec![reason, "did not arrive"],
    }
}

#[test]
fn a_perfect_one_passes() {
    check(answer, &completed(json!("observe"), &["reaches observe"]));
}

#[test]
fn a_mediocre_one_is_told_what_it_missed() {
    let script = after_canary(|request| match request.query.len() % 2 {
        0 => answer(request),
        _ => PlannerReply::Message(json!({"role": "assistant", "content": "I would rather not."})),
    });
    let verdict = check(script, &completed(Value::Null, &["1 of 1 stops were lost"]));
    assert!(!verdict["changes"].as_array().unwrap().is_empty());
}

#[test]
fn a_hallucinating_one_calls_what_there_is_not() {
    let script =
        after_canary(|_| PlannerReply::Message(call("draw_dragon", &json!({"mood": "grim"}))));
    let verdict = check(script, &completed(Value::Null, &["1 of 1 stops were lost"]));
    assert_eq!(verdict["tally"]["precision"], json!({"hits": 0, "n": N}));
}

#[test]
fn a_hanging_one_has_answered_nothing() {
    let script = after_canary(|_| PlannerReply::Nothing);
    check(script, &failed(0, "did not arrive within 1 s"));
}

#[test]
fn one_that_sends_web_pages_has_answered_nothing() {
    let script = raw("<!doctype html><html>Bad gateway</html>");
    check(script, &failed(0, "is a web page, not JSON: <!doctype"));
}

#[test]
fn one_that_breaks_has_answered_nothing() {
    let script = after_canary(|_| PlannerReply::Raw(500, "out of memory".to_owned()));
    check(
        script,
        &failed(0, "the endpoint answered 500: out of memory"),
    );
}

#[test]
fn one_that_streams_though_it_is_not_asked_to_has_answered_nothing() {
    let script =
        raw("data: {\"choices\":[{\"delta\":{\"content\":\"Hello\"}}]}\n\ndata: [DONE]\n\n");
    check(script, &failed(0, "is a stream of events"));
}

#[test]
fn one_whose_answers_break_off_has_answered_nothing() {
    let script = raw("{\"choices\":[{\"message\":{\"role\":\"assistant\",\"content\":\"He");
    check(script, &failed(0, "is incomplete JSON"));
    let script = after_canary(|_| PlannerReply::Short("{\"choices\":[]}".to_owned()));
    check(script, &failed(0, "5 of the missing ones:"));
}

#[test]
fn one_that_ends_before_it_says_anything_has_answered_nothing() {
    let script = raw(
        "{\"choices\":[{\"finish_reason\":\"length\",\"message\":{\"role\":\"assistant\",\"content\":\"<think>Let me see\"}}]}",
    );
    check(script, &failed(0, "allow more tokens with --max-tokens"));
    let script = raw("{\"choices\":[{\"message\":{\"role\":\"assistant\"}}]}");
    check(script, &failed(0, "is not a chat completion"));
}

#[test]
fn one_without_log_probabilities_is_asked_without_them() {
    let script = |request: &PlannerRequest| match request.body["logprobs"] {
        Value::Null => answer(request),
        _ => PlannerReply::Raw(400, "logprobs are not supported".to_owned()),
    };
    let verdict = check(
        script,
        &completed(json!("observe"), &["reaches observe", "log-probabilities"]),
    );
    assert_eq!(verdict["tally"]["confidence"], json!({}));
}

#[test]
fn the_thoughts_of_one_that_thinks_are_no_calls() {
    let script = after_canary(|request| {
        let case = few().into_iter().find(|case| case.query == request.query);
        let reply = case.map_or(String::new(), |case| match &case.expected_tool {
            Some(tool) => json!({"name": tool, "arguments": case.right_arguments()}).to_string(),
            None => "Hello".to_owned(),
        });
        let thought = json!({"name": "stroke", "arguments": {}});
        let content = format!("<think>Should I send {thought}? Let me see.</think>\n{reply}");
        PlannerReply::Message(json!({"role": "assistant", "content": content}))
    });
    let verdict = check(script, &completed(json!("observe"), &["reaches observe"]));
    assert_eq!(verdict["tally"]["all"]["exact"]["hits"], N, "{verdict}");
}

#[test]
fn one_that_is_gone_half_way_ends_the_run_which_goes_on_where_it_ended() {
    let folder = tempfile::tempdir().unwrap();
    let (is_there, request_count) = (Arc::new(AtomicBool::new(false)), AtomicUsize::new(0));
    let there = Arc::clone(&is_there);
    let planner = Planner::start(after_canary(move |question| {
        let number = request_count.fetch_add(1, Ordering::SeqCst);
        if number < 7 || there.load(Ordering::SeqCst) {
            answer(question)
        } else {
            PlannerReply::Closed
        }
    }));
    let more = ["--samples", "1", "--retries", "0"];
    let output = examined(folder.path(), &planner, &more);
    let verdict = json_of(&output);
    let tally = &verdict["tally"];
    assert_eq!(
        (&verdict["status"], &tally["answers"], &tally["failed"]),
        (&json!("failed"), &json!(7), &json!(5)),
        "{verdict}"
    );
    assert!(
        verdict["verdict"]
            .as_str()
            .unwrap()
            .contains("the endpoint is gone"),
        "{verdict}"
    );
    // All runs together know nothing of a run that failed.
    let rows = json_of(&exam(
        folder.path(),
        &["summary", "--by", "class", "--json"],
    ));
    assert_eq!(rows, json!([]));
    let before = planner.questions();
    is_there.store(true, Ordering::SeqCst);
    let verdict = json_of(&exam(folder.path(), &["run", "--resume", "1", "--json"]));
    assert_eq!(
        (&verdict["status"], &verdict["tally"]["answers"]),
        (&json!("completed"), &json!(N)),
        "{verdict}"
    );
    assert_eq!(verdict["reached"], "observe");
    // The canary, and what had not come.
    assert_eq!(planner.questions() - before, 1 + 9);
}

#[test]
fn a_missing_answer_bars_every_level_and_is_asked_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let is_mended = Arc::new(AtomicBool::new(false));
    let mended = Arc::clone(&is_mended);
    let still = few()
        .into_iter()
        .find(|case| case.expected_tool.is_none())
        .unwrap();
    let planner = Planner::start(move |request| {
        if request.query == still.query && !mended.load(Ordering::SeqCst) {
            PlannerReply::Raw(503, "no slot is free".to_owned())
        } else {
            answer(request)
        }
    });
    let more = ["--samples", "1", "--retries", "0", "--max-failed"];
    let shipped = json_of(&examined(path, &planner, &[&more[..], &["0.05"]].concat()));
    assert_eq!(shipped["status"], "failed", "{shipped}");
    assert!(
        shipped["failed"]
            .as_str()
            .unwrap()
            .contains("1 of 16 answers did not arrive (at most 5 %"),
        "{shipped}"
    );
    let verdict = json_of(&examined(path, &planner, &[&more[..], &["0.1"]].concat()));
    assert_eq!(
        (&verdict["status"], &verdict["reached"]),
        (&json!("completed"), &Value::Null),
        "{verdict}"
    );
    assert_eq!(
        verdict["tally"]["all"]["exact"],
        json!({"hits": 15, "n": 15})
    );
    for file in verdict["report"].as_array().unwrap() {
        let text = std::fs::read_to_string(file.as_str().unwrap()).unwrap();
        assert!(text.contains("503: no slot is free"), "{file}");
        assert!(!text.contains("was not called"), "{file}");
    }
    let rows = json_of(&exam(path, &["summary", "--by", "model", "--json"]));
    assert_eq!(rows[0]["answers"], 15, "{rows}");
    is_mended.store(true, Ordering::SeqCst);
    let output = exam(path, &["run", "--resume", "2"]);
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(stdout.contains("it reaches observe"), "{stdout}");
    assert!(!stdout.contains("endpoint:"), "{stdout}");
    let again = exam(path, &["run", "--resume", "2"]);
    assert!(!again.status.success(), "there is nothing left to ask");
}

#[test]
fn no_certificate_for_one_that_did_not_answer_what_must_not_be_called() {
    let node = Bench::new().with_file("");
    let planner = Planner::start(|request| {
        let case = ExamCase::shipped().unwrap();
        match case.into_iter().find(|case| case.query == request.query) {
            Some(case) if case.name.starts_with("chat_") && case.expected_tool.is_none() => {
                match case.name.as_str() {
                    "chat_1" | "chat_2" | "chat_3" | "chat_4" => {
                        PlannerReply::Raw(500, "out of memory".to_owned())
                    }
                    _ => PlannerReply::Message(right(&case)),
                }
            }
            Some(case) => PlannerReply::Message(right(&case)),
            None => answer(request),
        }
    });
    let url = planner.url();
    let args = [
        "exam",
        "run",
        "--planner",
        &url,
        "--samples",
        "1",
        "--retries",
        "0",
    ];
    let output = node.run(&[&args[..], &["--level", "stroke"]].concat());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!output.status.success(), "{text}");
    assert!(text.contains("not qualified for stroke"), "{text}");
    assert!(
        text.contains("4 of 4 missing answers: the endpoint answered 500: out of memory"),
        "{text}"
    );
    assert!(
        text.contains("0 of 109 cases in which nothing may move"),
        "{text}"
    );
    let held = json_of(&node.run(&["exam", "certificate", "show", "--json"]));
    assert_eq!(held, json!([]));
}
