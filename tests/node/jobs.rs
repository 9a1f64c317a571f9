//! Tests what survives: history, previewed plans, approvals, and `kill -9`.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

use crate::support;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::ink::{self, Line};
use support::{Bench, PATIENCE, Served, StdioClient, on_port, stdout, unless_starved, until};

/// Three lines of 60 mm: about ten seconds of arm time.
const LINES: &str =
    "[[[0.0, 0.0], [60.0, 0.0]], [[60.0, 12.0], [0.0, 12.0]], [[0.0, 24.0], [60.0, 24.0]]]";

const STROKE: &str = r#"{"scene":"short"}"#;

#[test]
fn a_job_is_told_replayed_and_audited_with_the_node_down() {
    let bench = Bench::at_test_rate();
    let state = bench.state();
    let (code, drawn) = bench.call(&["stroke", STROKE, "--state", &state]);
    assert_eq!(code, 0, "{drawn:#}");
    assert_eq!(drawn["job"]["state"], "reached");
    let one = bench.run(&["jobs", "job-1", "--json", "--state", &state]);
    let one: Value = serde_json::from_slice(&one.stdout).unwrap();
    assert_eq!(one["plan_hash"], drawn["plan_hash"]);
    assert_eq!(
        (&one["state"], &one["received"]),
        (&"reached".into(), &STROKE.into())
    );
    assert_eq!(one["drawn_mm"], one["total_mm"]);
    let listed = stdout(&bench.run(&["jobs", "--state", &state]));
    assert!(
        listed.contains("job-1") && listed.contains("reached"),
        "{listed}"
    );
    let card = stdout(&bench.run(&["jobs", "job-1", "--state", &state]));
    for expected in [
        "strokes 2",
        "pen-down length ",
        "arm time ",
        "picture-1.png",
        STROKE,
    ] {
        assert!(card.contains(expected), "{expected}: {card}");
    }
    let figures = card.lines().find(|line| line.starts_with("figures"));
    assert!(!figures.unwrap().contains(['{', '"']), "{card}");
    let replayed = bench.run(&["replay", "job-1", "--state", &state]);
    assert_eq!(replayed.status.code(), Some(0), "{}", stdout(&replayed));
    assert!(
        stdout(&replayed).contains("the same plan"),
        "{}",
        stdout(&replayed)
    );
    let log = bench.path("state/audit.log");
    let verify = || bench.run(&["audit", "verify", log.to_str().unwrap()]);
    assert_eq!(verify().status.code(), Some(0), "{}", stdout(&verify()));
    let changed = std::fs::read_to_string(&log)
        .unwrap()
        .replace("stroke", "strike");
    std::fs::write(&log, changed).unwrap();
    assert_eq!(verify().status.code(), Some(1));
    assert!(
        stdout(&verify()).contains("(line "),
        "{}",
        stdout(&verify())
    );
    // The next job has another name, though the process is another.
    let (_, again) = bench.call(&["stroke", STROKE, "--state", &state]);
    assert_eq!(again["job"]["id"], "job-2");
}

#[test]
fn only_the_plan_that_was_seen_is_drawn() {
    let bench = Bench::at_test_rate().with_file("before_drawing = \"preview\"\n");
    let call = |arguments: &str| bench.call(&["stroke", arguments]);
    let (code, refused) = call(STROKE);
    assert_eq!(
        (code, &refused["code"]),
        (1, &"needs_preview".into()),
        "{refused:#}"
    );
    let (_, preview) = call(r#"{"scene":"short","dry_run":true}"#);
    let hash = preview["plan_hash"].as_str().unwrap();
    let planned = format!(r#"{{"scene":"short","plan":"{hash}"}}"#);
    let (code, drawn) = call(&planned);
    assert_eq!((code, &drawn["plan_hash"]), (0, &hash.into()), "{drawn:#}");
    // Capitals and blanks around it are form.
    let shouted = format!(" {}\n", hash.to_uppercase());
    let shouted = serde_json::json!({"scene": "short", "plan": shouted, "again": true});
    let (code, drawn) = call(&shouted.to_string());
    assert_eq!((code, &drawn["plan_hash"]), (0, &hash.into()), "{drawn:#}");
    bench.scene(
        "short",
        &support::scene("short", "[[[0.0, 0.0], [31.0, 0.0]]]"),
    );
    let (code, refused) = call(&planned);
    assert_eq!(
        (code, &refused["code"]),
        (1, &"plan_changed".into()),
        "{refused:#}"
    );
    assert_eq!(refused["job"]["state"], "refused");
}

#[test]
fn a_swapped_design_is_named_to_the_one_who_previewed_it() {
    let bench = Bench::new();
    let served = bench.serve(&[]);
    let call = |arguments: &str| bench.call_at(&served.url, &["stroke", arguments]).1;
    let preview = call(r#"{"scene":"short","dry_run":true}"#);
    let hash = preview["plan_hash"].as_str().unwrap();
    bench.scene(
        "short",
        &support::scene("short", "[[[0.0, 0.0], [31.0, 0.0]]]"),
    );
    let refused = call(&format!(r#"{{"scene":"short","plan":"{hash}"}}"#));
    let message = refused["message"].as_str().unwrap();
    assert!(
        message.contains("from revision") && message.contains("nothing moved"),
        "{message}"
    );
}

#[test]
fn a_job_waits_for_a_person_who_has_seen_its_plan() {
    let bench = Bench::at_test_rate();
    let served = bench.serve_with_file("before_drawing = \"person\"\n");
    std::thread::scope(|scope| {
        let (bench, node) = (&bench, served.url.clone());
        let drawn = scope.spawn(move || bench.call(&["stroke", STROKE, "--node", &node]));
        let began = Instant::now();
        let shown = loop {
            let shown = stdout(&bench.run(&["approve"]));
            if shown.contains("job-1") {
                break shown;
            }
            assert!(began.elapsed() < PATIENCE, "{shown}");
            sleep(Duration::from_millis(100));
        };
        for word in ["plan ", "picture: ", "mm of line", "short"] {
            assert!(shown.contains(word), "{shown}");
        }
        let (_, sensed) = bench.call_at(&served.url, &["sense", "{}"]);
        assert_eq!(sensed["job"]["state"], "held", "{sensed:#}");
        let reason = "job-1 waits for a person's approval: `steadyhand approve job-1`";
        assert_eq!(sensed["job"]["reason"], reason, "{sensed:#}");
        // Without a terminal nobody can confirm.
        assert_ne!(bench.run(&["approve", "job-1"]).status.code(), Some(0));
        let approved = bench.run(&["approve", "job-1", "--yes"]);
        assert_eq!(approved.status.code(), Some(0), "{}", stdout(&approved));
        let (_, drawn) = drawn.join().unwrap();
        assert_eq!(drawn["job"]["id"], "job-1", "{drawn:#}");
        assert_ne!(drawn["job"]["state"], "refused", "{drawn:#}");
    });
    let one = bench.run(&["jobs", "job-1", "--json"]);
    let one: Value = serde_json::from_slice(&one.stdout).unwrap();
    assert_eq!(
        one["approved"],
        serde_json::json!([one["plan_hash"]]),
        "{one:#}"
    );
}

/// Waits for an approval request of another plan than `not`. Returns the plan's hash and the output.
fn wait_for_approval_request(bench: &Bench, not: &str) -> (String, String) {
    let began = Instant::now();
    loop {
        let shown = stdout(&bench.run(&["approve"]));
        let plan = shown.lines().find_map(|line| line.strip_prefix("plan "));
        let hash = plan.and_then(|rest| rest.split(':').next());
        if let Some(hash) = hash.filter(|hash| *hash != not) {
            return (hash.to_owned(), shown.clone());
        }
        assert!(began.elapsed() < PATIENCE * 2, "{shown}");
        sleep(Duration::from_millis(100));
    }
}

#[test]
fn each_of_aligns_two_plans_waits_for_a_person() {
    let bench = Bench::at_test_rate();
    let served = bench.serve_with_file("before_drawing = \"person\"\n");
    std::thread::scope(|scope| {
        let (bench, node) = (&bench, served.url.clone());
        let aligned =
            scope.spawn(move || bench.call(&["align", r#"{"scene":"short"}"#, "--node", &node]));
        let (first, shown) = wait_for_approval_request(bench, "");
        assert!(
            shown.contains("align") && shown.contains("picture: "),
            "{shown}"
        );
        assert_eq!(
            bench.run(&["approve", "job-1", "--yes"]).status.code(),
            Some(0)
        );
        // The first approval is used up: the cross is another plan and needs its own.
        let (second, _) = wait_for_approval_request(bench, &first);
        let (_, sensed) = bench.call_at(&served.url, &["sense", "{}"]);
        assert_eq!(sensed["job"]["state"], "held", "{sensed:#}");
        let reason = sensed["job"]["reason"].as_str().unwrap_or_default();
        assert!(reason.contains("`steadyhand approve job-1`"), "{sensed:#}");
        assert_eq!(
            bench.run(&["approve", "job-1", "--yes"]).status.code(),
            Some(0)
        );
        let (_, aligned) = aligned.join().unwrap();
        assert_eq!(aligned["job"]["id"], "job-1", "{aligned:#}");
        let began = Instant::now();
        let one = loop {
            let one = bench.run(&["jobs", "job-1", "--json"]);
            let one: Value = serde_json::from_slice(&one.stdout).unwrap();
            if one["state"] == "reached" {
                break one;
            }
            assert!(began.elapsed() < PATIENCE * 2, "{one:#}");
            sleep(Duration::from_millis(200));
        };
        assert_eq!(
            one["approved"],
            serde_json::json!([first, second]),
            "{one:#}"
        );
        // The job is over, so a further approval is refused.
        let second_approval = bench.run(&["approve", "job-1", "--yes"]);
        assert_ne!(
            second_approval.status.code(),
            Some(0),
            "{}",
            stdout(&second_approval)
        );
    });
}

#[test]
fn the_recorded_bytes_of_a_job_draw_it_again() {
    let bench = Bench::at_test_rate();
    let state = bench.state();
    for call in [["stroke", STROKE], ["align", r#"{"scene":"short"}"#]] {
        let (code, done) = bench.call(&[&call[..], &["--state", &state]].concat());
        assert_eq!(code, 0, "{done:#}");
    }
    for job in ["job-1", "job-2"] {
        let replayed = bench.run(&["replay", job, "--bytes", "--state", &state]);
        let printed = stdout(&replayed);
        assert_eq!(replayed.status.code(), Some(0), "{job}: {printed}");
        for word in ["frames in", "ink is at", "plan's end"] {
            assert!(printed.contains(word), "{job}: {printed}");
        }
    }
    let trace = bench.path("state/jobs/job-1/bytes.trace");
    let full_trace = std::fs::read_to_string(&trace).unwrap();
    let half: String = full_trace
        .lines()
        .take(full_trace.lines().count() / 2)
        .map(|line| format!("{line}\n"))
        .collect();
    std::fs::write(&trace, &half).unwrap();
    let other = bench.run(&["replay", "job-1", "--bytes", "--state", &state]);
    assert_eq!(other.status.code(), Some(1), "{}", stdout(&other));
    let complains = |expected: &str| {
        let refused = bench.run(&["replay", "job-1", "--bytes", "--state", &state]);
        assert_ne!(refused.status.code(), Some(0));
        let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(stderr.contains(expected), "{stderr}");
    };
    std::fs::write(&trace, format!("{half}cut\n")).unwrap();
    complains("incomplete");
    std::fs::remove_file(&trace).unwrap();
    complains("job-1 has no bytes");
}

#[test]
fn every_call_refusal_enabling_and_stop_is_a_record() {
    let bench = Bench::at_test_rate();
    bench.scene(
        "second",
        &support::scene("second", "[[[0.0, 0.0], [31.0, 0.0]]]"),
    );
    let state = bench.state();
    let served = bench.serve(&["--state", &state]);
    let verb = |args: &[&str]| assert_eq!(bench.run(args).status.code(), Some(0), "{args:?}");
    verb(&["disable"]);
    let (_, refused) = bench.call_at(&served.url, &["stroke", STROKE]);
    assert_eq!(refused["code"], "needs_enabling", "{refused:#}");
    let both = ["enable", "--scene", "short", "--scene", "second"];
    verb(&[&both[..], &["--for", "30m"]].concat());
    let (_, sensed) = bench.call_at(&served.url, &["sense", "{}"]);
    let (_, listed) = bench.call_at(&served.url, &["list_nodes", "{}"]);
    for expected in [sensed["enabled"].to_string(), listed.to_string()] {
        assert!(expected.contains("short, second"), "{expected}");
    }
    let (_, stopped) = bench.call_at(&served.url, &["stop", "\"please\""]);
    assert_eq!(stopped["success"], true, "{stopped:#}");
    let log = bench.path("state/audit.log");
    for (kind, expected_text) in [
        ("start", &["\"version\""][..]),
        ("operator", &["disable", "; done: "]),
        ("operator", &["enable", "second", "1800"]),
        (
            "call",
            &["\"tool\":\"stroke\"", "needs_enabling", "\"success\":false"],
        ),
        ("call", &["\"tool\":\"sense\"", "\"success\":true"]),
        ("call", &["\"tool\":\"list_nodes\""]),
        ("call", &["\"tool\":\"stop\"", "please"]),
        ("stop", &["\"report\"", "\"verified\":true"]),
    ] {
        let began = Instant::now();
        let is_there = || {
            let text = std::fs::read_to_string(&log).unwrap();
            let kind = format!("\t{kind}\t");
            let mut lines = text.lines().filter(|line| line.contains(&kind));
            lines.any(|line| expected_text.iter().all(|word| line.contains(word)))
        };
        while !is_there() {
            assert!(
                began.elapsed() < PATIENCE,
                "no record {kind} with {expected_text:?}"
            );
            sleep(Duration::from_millis(50));
        }
    }
    let verify = bench.run(&["audit", "verify", log.to_str().unwrap()]);
    assert_eq!(verify.status.code(), Some(0), "{}", stdout(&verify));
}

#[test]
fn changes_of_the_configuration_are_records_whether_the_node_runs_or_not() {
    let bench = Bench::new().with_file("before_drawing = \"preview\"\n");
    let log = bench.path("state/audit.log");
    let comes = |expected: &[&str]| {
        let read = || std::fs::read_to_string(&log).unwrap_or_default();
        until(&format!("{expected:?}"), read, |text| {
            let lines = text.lines();
            let mut changes = lines.filter(|line| line.contains("\tconfiguration\t"));
            changes.any(|line| expected.iter().all(|word| line.contains(word)))
        });
    };
    let mut served = bench.serve(&[]);
    bench.token("cell", &["--role", "viewer"]);
    comes(&["token", "cell", "was added: viewer"]);
    bench.scene(
        "short",
        &support::scene("short", "[[[0.0, 0.0], [31.0, 0.0]]]"),
    );
    comes(&["short.toml: was ", ", is "]);
    bench.done(&["token", "revoke", "cell"]);
    comes(&["token", "cell", "was revoked"]);
    served.child.terminate();
    bench.file("before_drawing = \"nothing\"\n");
    bench.scene(
        "late",
        &support::scene("late", "[[[0.0, 0.0], [31.0, 0.0]]]"),
    );
    let _served = bench.serve(&[]);
    comes(&["node.toml: was ", ", is "]);
    comes(&["late.toml: was none, is "]);
    let verify = bench.run(&["audit", "verify", log.to_str().unwrap()]);
    assert_eq!(verify.status.code(), Some(0), "{}", stdout(&verify));
}

#[test]
fn three_refusals_of_one_kind_send_the_model_to_a_person() {
    let bench = Bench::at_test_rate();
    let client = StdioClient::start(&bench, &[]);
    client.greet("t");
    assert_eq!(bench.run(&["disable"]).status.code(), Some(0));
    for time in 1..=3 {
        let arguments = serde_json::from_str(STROKE).unwrap();
        client.begin(time, "stroke", &arguments);
        let reply = client.answer(time).to_string();
        assert!(reply.contains("needs_enabling"), "{reply}");
        assert_eq!(reply.contains("3 times"), time == 3, "{reply}");
    }
}

#[test]
fn of_a_drawing_that_is_complete_nothing_is_resumed() {
    let bench = Bench::at_test_rate();
    bench.scene("short", &support::scene("short", LINES));
    let state = bench.state();
    let call = |arguments: &str| bench.call(&["stroke", arguments, "--state", &state]).1;
    let none = call(r#"{"resume":true}"#);
    assert_eq!(none["code"], "nothing_to_resume", "{none:#}");
    let drawn = call(STROKE);
    assert_eq!(drawn["job"]["state"], "reached", "{drawn:#}");
    let refused = call(r#"{"resume":true}"#);
    assert_eq!(refused["code"], "drawing_complete", "{refused:#}");
    let message = refused["message"].as_str().unwrap();
    let job = drawn["job"]["id"].as_str().unwrap();
    assert!(message.contains(job), "{message}");
}

/// Begins an operator's drawing and stops it in the middle. Returns its job and the terminal's output.
fn stopped_drawing(bench: &Bench, design: &str, stop: &[&str]) -> (String, String) {
    let mut drawing = support::Running(
        bench
            .command(&["--state", &bench.state(), "draw", design, "--size", "60mm"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    until(
        "drawing",
        || newest_job(bench),
        |job| job["drawn_mm"].as_f64() > Some(3.0),
    );
    match stop {
        [] => drawing.signal(rustix::process::Signal::INT),
        verb => assert_eq!(bench.run(verb).status.code(), Some(0)),
    }
    let mut printed = String::new();
    let lines = support::lines(drawing.0.stdout.take().unwrap());
    drawing.exit_code();
    while let Ok(line) = lines.recv_timeout(PATIENCE) {
        printed.push_str(&line);
        printed.push('\n');
    }
    let job = newest_job(bench)["id"].as_str().unwrap().to_owned();
    (job, printed)
}

fn newest_job(bench: &Bench) -> Value {
    let jobs = bench.run(&["jobs", "--json", "--state", &bench.state()]);
    let jobs: Value = serde_json::from_slice(&jobs.stdout).unwrap_or_default();
    jobs[0].clone()
}

/// `jobs` took the other drawing for a repetition of the stopped one, and `draw --resume` no longer knew the stopped one.
#[test]
fn a_drawing_that_another_displaces_is_named_before_and_after() {
    let bench = Bench::new();
    let (house, other) = (bench.path("house.svg"), bench.path("other.svg"));
    let of = |path: &str| {
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 20"><path d="{path}"/></svg>"#
        )
    };
    std::fs::write(&house, of("M0 0H40M0 5H40M0 10H40M0 15H40M0 20H40")).unwrap();
    std::fs::write(&other, of("M0 20V0H9")).unwrap();
    let (house, other) = (house.display().to_string(), other.display().to_string());
    let _served = bench.serve(&["--state", &bench.state()]);
    let (left, reply) = stopped_drawing(&bench, &house, &[]);
    // Each command means this node, whatever others run.
    let at = format!("--state {}", bench.state());
    let reset = format!("`steadyhand {at} reset`, then ");
    assert!(reply.contains(&reset), "{reply}");
    assert_eq!(bench.run(&["reset"]).status.code(), Some(0));
    let run = |args: &[&str]| {
        let output = bench.run(args);
        (
            output.status.code(),
            stdout(&output) + &String::from_utf8_lossy(&output.stderr),
        )
    };
    // A request for another drawing reports the unfinished one and how to resume it.
    let (_, offered) = run(&["draw", &other, "--size", "20mm", "--dry-run"]);
    assert!(
        offered.contains(&format!("{left} is")) && offered.contains("`steadyhand draw --resume`"),
        "{offered}"
    );
    let (code, drawn) = run(&["draw", &other, "--size", "20mm"]);
    assert_eq!(code, Some(0), "{drawn}");
    assert!(drawn.contains(&format!("{left} is")), "{drawn}");
    // Afterwards it is not reported as drawn.
    let (code, resumed) = run(&["draw", "--resume"]);
    assert_eq!(code, Some(1), "{resumed}");
    let given_up = format!("{left}, a drawing of house.svg");
    assert!(resumed.contains(&given_up), "{resumed}");
    let (_, card) = run(&["jobs", &left, "--state", &bench.state()]);
    assert!(
        card.contains("replaced") && !card.contains("drawn again"),
        "{card}"
    );
}

/// Writes the design of a house, long enough to be stopped.
fn write_house_design(bench: &Bench) -> String {
    let lines = r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 20"><path d="M0 0H40M0 5H40M0 10H40M0 15H40M0 20H40"/></svg>"#;
    let path = bench.path("house.svg");
    std::fs::write(&path, lines).unwrap();
    path.display().to_string()
}

/// A tool call displaced an operator's drawing without a notice.
#[test]
fn a_tool_call_says_whose_drawing_it_displaces() {
    let bench = Bench::new();
    let house = write_house_design(&bench);
    let served = bench.serve(&["--state", &bench.state()]);
    let (left, reply) = stopped_drawing(&bench, &house, &["estop"]);
    // The advised commands are the allowed ones.
    let at = format!("--state {}", bench.state());
    let rest = format!("`steadyhand {at} clear`, then `steadyhand {at} reset`");
    assert!(reply.contains(&rest), "{reply}");
    assert_eq!(bench.run(&["clear"]).status.code(), Some(0));
    assert_eq!(bench.run(&["reset"]).status.code(), Some(0));
    let call = |arguments: &str| {
        bench
            .call(&["stroke", arguments, "--node", &served.host()])
            .1
    };
    let shown = call(r#"{"scene":"short","dry_run":true}"#);
    assert!(
        shown["usage_hints"].to_string().contains(&left),
        "{shown:#}"
    );
    let drawn = call(STROKE);
    assert_eq!(drawn["success"], true, "{drawn:#}");
    let message = drawn["message"].as_str().unwrap();
    assert!(
        message.contains(&format!("{left} is")) && message.contains("replaces"),
        "{message}"
    );
}

/// A drawing was reported as replaced by one that only waited for approval.
#[test]
fn a_drawing_is_not_given_up_for_one_that_has_not_begun() {
    let bench = Bench::new();
    let house = write_house_design(&bench);
    let served = bench.serve_with_file("before_drawing = \"person\"\nanswer_within_s = 1\n");
    let (left, _) = stopped_drawing(&bench, &house, &["stop"]);
    assert_eq!(bench.run(&["reset"]).status.code(), Some(0));
    until(
        "at rest",
        || newest_job(&bench),
        |job| job["state"] == "reached",
    );
    // The same call returns the same job, even one that is still being planned.
    let call = || bench.call_at(&served.url, &["stroke", STROKE]).1;
    let waits = until("planned", call, |waits| waits["job"]["state"] != "planning");
    assert_eq!(waits["job"]["state"], "held", "{waits:#}");
    let message = waits["message"].as_str().unwrap();
    assert!(
        message.contains(&format!("{left} is")) && !message.contains("replace"),
        "{message}"
    );
    assert_eq!(
        bench.call_at(&served.url, &["stop", "{}"]).1["success"],
        true
    );
}

#[test]
fn a_job_that_there_is_not_neither_waits_nor_does_not() {
    let bench = Bench::at_test_rate();
    let _served = bench.serve(&["--state", &bench.state()]);
    for verb in ["approve", "pen"] {
        let output = bench.run(&[verb, "job-99"]);
        assert_ne!(output.status.code(), Some(0));
        let output_text = String::from_utf8_lossy(&output.stderr).into_owned() + &stdout(&output);
        assert!(output_text.contains("\"job-99\""), "{verb}: {output_text}");
    }
}

/// Planned strokes were reported as drawn, and complete work as half done.
#[test]
fn counts_are_of_what_was_done() {
    let bench = Bench::at_test_rate();
    let counts = |tool: &str, arguments: &str| {
        let (_, reply) = bench.call(&[tool, arguments]);
        let job = &reply["job"];
        let number = |key: &str| job[key].as_u64().unwrap_or_else(|| panic!("{reply:#}"));
        (number("done"), number("of"))
    };
    assert_eq!(
        counts("stroke", r#"{"scene":"short","plan":"abcdef0123"}"#),
        (0, 2)
    );
    let (done, of) = counts("align", "{}");
    assert!(done == of && of > 2, "{done} of {of}");
    assert_eq!(counts("stroke", STROKE), (2, 2));
    assert_eq!(counts("reset", "{}"), (2, 2));
}

/// Resumes the drawing, or begins it if nothing was drawn, until it is done. Resets faults of a machine
/// that is too busy.
fn resume_until_done(bench: &Bench, served: &Served) {
    let began = Instant::now();
    loop {
        let (mut code, mut result) = bench.call_at(&served.url, &["stroke", r#"{"resume":true}"#]);
        if result["code"] == "drawing_complete" {
            return;
        }
        if result["code"] == "nothing_to_resume" {
            (code, result) = bench.call_at(&served.url, &["stroke", STROKE]);
        }
        if code == 0 {
            return;
        }
        assert!(began.elapsed() < PATIENCE * 4, "{result:#}");
        bench.run(&["reset"]);
    }
}

/// Returns the size of the longest journal, which grows with the drawing.
fn journal_bytes(state: &Path) -> u64 {
    let jobs = std::fs::read_dir(state.join("jobs")).into_iter().flatten();
    let sizes = jobs.filter_map(|job| std::fs::metadata(job.ok()?.path().join("journal")).ok());
    sizes.map(|found| found.len()).max().unwrap_or(0)
}

/// Returns the ink on the simulated sheet, which outlives every node.
fn ink_of(path: &Path) -> Vec<Line> {
    sleep(Duration::from_millis(1500));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn a_killed_node_goes_on_with_nothing_missing_and_little_twice() {
    unless_starved(|| {
        let bench = Bench::new();
        bench.scene("short", &support::scene("short", LINES));
        let file = bench.path("ink.json");
        let (_sim, port) = bench.sim(&["--scene", "short", "--ink", file.to_str().unwrap()]);
        let state = bench.state();
        let config = bench.path("node.toml").display().to_string();
        std::fs::write(&config, "lease_idle_s = 1\n").unwrap();
        let args = ["--config", &config, "--enable", "short"];
        let here = [&args[..], &on_port(&port, &state)].concat();
        let mut kills = 0_u32;
        let url = |served: &Served| served.url.clone();
        let mut served = bench.serve(&here);
        for target in [2600, 3800] {
            let (node, arguments) = (
                url(&served),
                if kills == 0 {
                    STROKE
                } else {
                    r#"{"resume":true}"#
                },
            );
            let mut caller = bench
                .command(&["call", "stroke", arguments, "--node", &node])
                .spawn()
                .unwrap();
            let began = Instant::now();
            while journal_bytes(Path::new(&state)) < target && began.elapsed() < PATIENCE {
                sleep(Duration::from_millis(20));
            }
            served.child.0.kill().unwrap();
            served.child.0.wait().unwrap();
            caller.wait().unwrap();
            kills += 1;
            served = bench.serve(&here);
            let (_, sensed) = bench.call_at(&served.url, &["sense", "{}"]);
            if sensed["unfinished"].is_null() {
                break;
            }
            let left = sensed["unfinished"]["left_mm"].as_f64().unwrap();
            assert!(left > 0.0 && left <= 180.1, "{sensed:#}");
            if sensed["unfinished"]["interrupted"] == true {
                assert_eq!(sensed["enabled"], "nothing", "{sensed:#}");
                let (_, refused) = bench.call_at(&served.url, &["stroke", STROKE]);
                assert_eq!(refused["code"], "interrupted", "{refused:#}");
                for expected in [&sensed, &refused] {
                    let message = expected["message"].as_str().unwrap();
                    let lifts = "its pen may still stand on the paper: `steadyhand enable --scene short --for 30m`, then `steadyhand reset` lifts it";
                    assert!(message.contains(lifts), "{message}");
                }
                let (_, refused) = bench.call_at(&served.url, &["stroke", r#"{"resume":true}"#]);
                assert_eq!(refused["code"], "needs_enabling", "{refused:#}");
            }
            assert_eq!(
                bench.run(&["enable", "--scene", "short"]).status.code(),
                Some(0)
            );
        }
        let scenes = steadyhand::scene::SceneLibrary::new(Some(bench.path("scenes")));
        let scene = scenes.scene("short", None).unwrap();
        let design: Vec<Line> = scene
            .strokes
            .iter()
            .map(|one| one.points_mm.clone())
            .collect();
        let missing_mm = || ink::missing_mm(&design, &ink_of(&file), 0.8);
        // On a busy machine a kill may come after the end of the drawing, which is not to be drawn again.
        if missing_mm() >= 0.5 {
            bench.run(&["enable", "--scene", "short"]);
            resume_until_done(&bench, &served);
        }
        let missing = missing_mm();
        assert!(missing < 0.5, "{missing} mm are missing");
        let ink = ink_of(&file);
        let twice = ink::length_mm(&ink) - ink::length_mm(&design);
        // Each attempt redraws the overlap and at most 5 mm, and sets the pen down once more.
        let attempts = stdout(&bench.run(&["jobs", "--state", &state]))
            .lines()
            .count();
        let most = 9.0 * (attempts as f64) + 3.0;
        assert!(
            twice <= most,
            "{twice} mm twice after {kills} kills, {attempts} attempts"
        );
    });
}

#[test]
fn a_full_disk_stops_the_motion_and_says_so() {
    let bench = Bench::new();
    bench.scene("short", &support::scene("short", LINES));
    // Files of this process end at 4 KiB: the journal of 180 mm does not fit.
    let binary = env!("CARGO_BIN_EXE_steadyhand");
    let state = bench.state();
    let line = format!(
        "ulimit -f 4; exec {binary} --scenes {} --output {} --state {state} call --json stroke '{STROKE}'",
        bench.path("scenes").display(),
        bench.path("out").display()
    );
    let output = std::process::Command::new("bash")
        .args(["-c", &line])
        .env("XDG_RUNTIME_DIR", bench.path("."))
        .output()
        .unwrap();
    let result: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!(result["code"], "journal", "{result:#}");
    let one = bench.run(&["jobs", "job-1", "--json", "--state", &state]);
    let one: Value = serde_json::from_slice(&one.stdout).unwrap();
    let drawn = one["drawn_mm"].as_f64().unwrap();
    assert!(drawn > 5.0 && drawn < 175.0, "{one:#}");
    // The next start finds it and does not move by itself.
    let (code, refused) = bench.call(&["stroke", STROKE, "--state", &state]);
    assert_eq!(
        (code, &refused["code"]),
        (1, &"interrupted".into()),
        "{refused:#}"
    );
    let (code, drawn) = bench.call(&[
        "stroke",
        r#"{"resume":true}"#,
        "--state",
        &state,
        "--enable",
        "short",
    ]);
    assert_eq!(code, 0, "{drawn:#}");
}

#[test]
fn a_second_node_on_one_state_folder_is_told_who_has_it() {
    let bench = Bench::new();
    let state = bench.state();
    let served = bench.serve(&["--state", &state]);
    let began = Instant::now();
    let second = bench.run(&["call", "sense", "--state", &state]);
    let stderr = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(
        stderr.contains(&served.child.0.id().to_string()),
        "{stderr}"
    );
    assert!(began.elapsed() < PATIENCE);
}

/// Files that a person has put beside a job stay, and so does the proof that it moved.
#[test]
fn a_job_without_its_journal_is_named_and_nothing_moves_until_it_is_back() {
    let bench = Bench::new();
    let state = bench.state();
    let draw = || bench.call(&["stroke", STROKE, "--state", &state]);
    let (code, drawn) = draw();
    assert_eq!(code, 0, "{drawn:#}");
    let job = bench.path("state/jobs/job-1");
    std::fs::write(job.join("my-notes.txt"), "kept").unwrap();
    let (journal, away) = (job.join("journal"), bench.path("journal"));
    std::fs::rename(&journal, &away).unwrap();
    let (code, refused) = draw();
    assert_ne!(code, 0, "{refused:#}");
    assert_eq!(refused["code"], "journal", "{refused:#}");
    for args in [
        &["jobs", "--state", &state][..],
        &["check", "--state", &state],
    ] {
        let told = stdout(&bench.run(args));
        assert!(
            told.contains("job-1/journal is missing"),
            "{args:?}: {told}"
        );
    }
    assert!(job.join("my-notes.txt").exists() && job.join("bytes.trace").exists());
    std::fs::rename(&away, &journal).unwrap();
    let (code, drawn) = draw();
    assert_eq!(code, 0, "{drawn:#}");
    assert_eq!(drawn["job"]["id"], "job-2", "{drawn:#}");
}

/// A calendar that was set wrong, and set right again: nothing that was drawn is forgotten for it.
#[test]
fn a_calendar_that_jumps_twenty_years_loses_no_history() {
    const BACK_MS: &str = "-631152000000";
    let bench = Bench::new();
    let state = bench.state();
    let config = bench.path("node.toml").display().to_string();
    std::fs::write(&config, "keep_jobs_days = 1\n").unwrap();
    for offset_ms in [BACK_MS, "0", BACK_MS, "0", "631152000000", "0"] {
        let drawn = bench
            .command(&[
                "call", "stroke", STROKE, "--config", &config, "--state", &state,
            ])
            .env("STEADYHAND_CALENDAR_OFFSET_MS", offset_ms)
            .output()
            .unwrap();
        assert_eq!(drawn.status.code(), Some(0), "{}", stdout(&drawn));
    }
    let listed = stdout(&bench.run(&["jobs", "--state", &state]));
    for job in 1..=6 {
        assert!(listed.contains(&format!("job-{job}")), "{listed}");
    }
    let verified = bench.run(&["audit", "verify", &format!("{state}/audit.log")]);
    assert_eq!(verified.status.code(), Some(0), "{}", stdout(&verified));
}

/// Each file of this node takes some kilobytes and no more, so that a journal comes to its end in the middle of the
/// drawing, as on a disk that fills; the audit log, without which nothing would begin, comes to its end later.
#[test]
fn a_drawing_that_a_full_disk_cut_short_is_kept_and_gone_on_with() {
    const LENGTH_MM: f64 = 540.0;
    let bench = Bench::new();
    let line = |row: i32| format!("[[0.0, {0}.0], [60.0, {0}.0]]", 4 * row);
    let lines: Vec<String> = (0..9).map(line).collect();
    let lines = format!("[{}]", lines.join(", "));
    bench.scene("short", &support::scene("short", &lines));
    let config = bench.path("node.toml").display().to_string();
    std::fs::write(&config, "keep_jobs = 1\nlease_idle_s = 1\n").unwrap();
    let node = bench.command(&["serve", "--http", "127.0.0.1:0", "--config", &config]);
    let limited = r#"trap "" XFSZ; ulimit -f 24; exec "$0" "$@""#;
    let mut command = std::process::Command::new("sh");
    command
        .args(["-c", limited])
        .arg(node.get_program())
        .args(node.get_args());
    command.envs(
        node.get_envs()
            .filter_map(|(key, value)| Some((key, value?))),
    );
    let served = support::served(command);
    let call = |tool: &str, arguments: &str| bench.call_at(&served.url, &[tool, arguments]).1;
    let cut = call("stroke", STROKE);
    assert_eq!(cut["code"], "journal", "{cut:#}");
    assert_eq!(call("reset", "{}")["success"], true);
    // More jobs than are kept.
    for _ in 0..3 {
        let reset = call("reset", "{}");
        assert_eq!(reset["success"], true, "{reset:#}");
    }
    let sensed = call("sense", "{}");
    assert_eq!(sensed["unfinished"]["job"], cut["job"]["id"], "{sensed:#}");
    let refused = call("stroke", STROKE);
    assert_eq!(refused["code"], "interrupted", "{refused:#}");
    let shown = call("stroke", r#"{"resume":true,"dry_run":true}"#);
    let left_mm = shown["pen_down_mm"].as_f64().unwrap();
    let drawn_mm = sensed["unfinished"]["drawn_mm"].as_f64().unwrap();
    assert!(drawn_mm > 10.0, "{sensed:#}");
    assert!(
        (left_mm + drawn_mm - LENGTH_MM).abs() < 5.0,
        "{left_mm} of {drawn_mm}"
    );
    // The rest is shorter, and its journal with it.
    let drawn = call("stroke", r#"{"resume":true}"#);
    assert_eq!(drawn["resumed"]["job"], cut["job"]["id"], "{drawn:#}");
    let listed = stdout(&bench.run(&["jobs", "--config", &config]));
    assert!(
        listed.contains(cut["job"]["id"].as_str().unwrap()),
        "{listed}"
    );
}
