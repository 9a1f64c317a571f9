//! Work that survives: history, plans that were seen, a person's word, and `kill -9`.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

mod support;

use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::ink::{self, Line};
use support::{Bench, PATIENCE, Served};

/// Three lines of 60 mm: about ten seconds of arm time.
const LINES: &str =
    "[[[0.0, 0.0], [60.0, 0.0]], [[60.0, 12.0], [0.0, 12.0]], [[0.0, 24.0], [60.0, 24.0]]]";

const STROKE: &str = r#"{"scene":"short"}"#;

fn state(bench: &Bench) -> String {
    bench.path("state").display().to_string()
}

fn text(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_job_is_told_replayed_and_audited_with_the_node_down() {
    let bench = Bench::new();
    let state = state(&bench);
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
    let listed = text(&bench.run(&["jobs", "--state", &state]));
    assert!(
        listed.contains("job-1") && listed.contains("reached"),
        "{listed}"
    );
    let replayed = bench.run(&["replay", "job-1", "--state", &state]);
    assert_eq!(replayed.status.code(), Some(0), "{}", text(&replayed));
    assert!(
        text(&replayed).contains("the same plan"),
        "{}",
        text(&replayed)
    );
    let log = bench.path("state/audit.log");
    let verify = || bench.run(&["audit", "verify", log.to_str().unwrap()]);
    assert_eq!(verify().status.code(), Some(0), "{}", text(&verify()));
    let changed = std::fs::read_to_string(&log)
        .unwrap()
        .replace("stroke", "strike");
    std::fs::write(&log, changed).unwrap();
    assert_eq!(verify().status.code(), Some(1));
    assert!(text(&verify()).contains("record 1 "), "{}", text(&verify()));
    // The next job has another name, though the process is another.
    let (_, again) = bench.call(&["stroke", STROKE, "--state", &state]);
    assert_eq!(again["job"]["id"], "job-2");
}

#[test]
fn only_the_plan_that_was_seen_is_drawn() {
    let bench = Bench::new();
    std::fs::write(bench.path("node.toml"), "require_preview = true\n").unwrap();
    let (config, state) = (bench.path("node.toml"), state(&bench));
    let here = ["--config", config.to_str().unwrap(), "--state", &state];
    let call = |arguments: &str| bench.call(&[&["stroke", arguments], &here[..]].concat());
    let (code, refused) = call(STROKE);
    assert_eq!(
        (code, &refused["code"]),
        (1, &"needs_preview".into()),
        "{refused:#}"
    );
    let (_, seen) = call(r#"{"scene":"short","dry_run":true}"#);
    let hash = seen["plan_hash"].as_str().unwrap();
    let planned = format!(r#"{{"scene":"short","plan":"{hash}"}}"#);
    let (code, drawn) = call(&planned);
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
    let call = |arguments: &str| call(&bench, &served, "stroke", arguments).1;
    let seen = call(r#"{"scene":"short","dry_run":true}"#);
    let hash = seen["plan_hash"].as_str().unwrap();
    bench.scene(
        "short",
        &support::scene("short", "[[[0.0, 0.0], [31.0, 0.0]]]"),
    );
    let refused = call(&format!(r#"{{"scene":"short","plan":"{hash}"}}"#));
    let why = refused["message"].as_str().unwrap();
    assert!(
        why.contains("was revision") && why.contains("nothing moved"),
        "{why}"
    );
}

fn call(bench: &Bench, served: &Served, tool: &str, arguments: &str) -> (i32, Value) {
    bench.call(&[tool, arguments, "--node", &served.url])
}

#[test]
fn a_job_waits_for_a_person_who_has_seen_its_plan() {
    let bench = Bench::new();
    std::fs::write(bench.path("node.toml"), "require_approval = true\n").unwrap();
    let (config, state) = (bench.path("node.toml"), state(&bench));
    let served = bench.serve(&["--config", config.to_str().unwrap(), "--state", &state]);
    std::thread::scope(|scope| {
        let (bench, node) = (&bench, served.url.clone());
        let drawn = scope.spawn(move || bench.call(&["stroke", STROKE, "--node", &node]));
        let began = Instant::now();
        let shown = loop {
            let shown = text(&bench.run(&["approve"]));
            if shown.contains("job-1") {
                break shown;
            }
            assert!(began.elapsed() < PATIENCE, "{shown}");
            sleep(Duration::from_millis(100));
        };
        for word in ["plan ", "picture: ", "mm of line", "short"] {
            assert!(shown.contains(word), "{shown}");
        }
        let (_, sensed) = call(bench, &served, "sense", "{}");
        assert_eq!(sensed["job"]["state"], "held", "{sensed:#}");
        // Nobody at a terminal has said yes.
        assert_ne!(bench.run(&["approve", "job-1"]).status.code(), Some(0));
        let approved = bench.run(&["approve", "job-1", "--yes"]);
        assert_eq!(approved.status.code(), Some(0), "{}", text(&approved));
        let (_, drawn) = drawn.join().unwrap();
        assert_eq!(drawn["job"]["id"], "job-1", "{drawn:#}");
        assert_ne!(drawn["job"]["state"], "refused", "{drawn:#}");
    });
    let one = bench.run(&["jobs", "job-1", "--json"]);
    let one: Value = serde_json::from_slice(&one.stdout).unwrap();
    assert_eq!(one["approved"], true, "{one:#}");
}

#[test]
fn three_refusals_of_one_kind_send_the_model_to_a_person() {
    let bench = Bench::new();
    let mut child = bench
        .command(&["serve"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let output = support::lines(child.stdout.take().unwrap());
    let _child = support::Running(child);
    let mut say = |line: &str| writeln!(input, "{line}").unwrap();
    say(
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
    );
    say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    output.recv_timeout(PATIENCE).unwrap();
    assert_eq!(bench.run(&["disable"]).status.code(), Some(0));
    for time in 1..=3 {
        say(&format!(
            r#"{{"jsonrpc":"2.0","id":{time},"method":"tools/call","params":{{"name":"stroke","arguments":{STROKE}}}}}"#
        ));
        let told = output.recv_timeout(PATIENCE).unwrap();
        assert!(told.contains("needs_enabling"), "{told}");
        assert_eq!(told.contains("ask the operator"), time == 3, "{told}");
    }
}

/// Calls `tool` until it succeeds; faults of a machine that is too busy are reset.
fn insist(bench: &Bench, served: &Served, arguments: &str) -> Value {
    let began = Instant::now();
    loop {
        let (code, result) = call(bench, served, "stroke", arguments);
        if code == 0 || result["code"] == "nothing_to_resume" {
            return result;
        }
        assert!(began.elapsed() < PATIENCE * 4, "{result:#}");
        bench.run(&["reset"]);
    }
}

/// Bytes of the longest journal, which grows with the drawing.
fn journal_bytes(state: &Path) -> u64 {
    let jobs = std::fs::read_dir(state.join("jobs")).into_iter().flatten();
    let sizes = jobs.filter_map(|job| std::fs::metadata(job.ok()?.path().join("journal")).ok());
    sizes.map(|found| found.len()).max().unwrap_or(0)
}

/// Ink of the simulated sheet, which outlives every node.
fn ink_of(path: &Path) -> Vec<Line> {
    sleep(Duration::from_millis(1500));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn a_node_that_is_killed_goes_on_where_it_was_with_nothing_missing_and_little_twice() {
    let bench = Bench::new();
    bench.scene("short", &support::scene("short", LINES));
    let file = bench.path("ink.json");
    let (_sim, port) = bench.sim(&["--scene", "short", "--ink", file.to_str().unwrap()]);
    let state = state(&bench);
    let config = bench.path("node.toml").display().to_string();
    std::fs::write(&config, "lease_idle_s = 1\n").unwrap();
    let here = [
        "--config", &config, "--port", &port, "--state", &state, "--enable", "short",
    ];
    let mut kills = 0_u32;
    let url = |served: &Served| served.url.clone();
    let mut served = bench.serve(&here);
    for wanted in [2600, 3800] {
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
        while journal_bytes(Path::new(&state)) < wanted && began.elapsed() < PATIENCE {
            sleep(Duration::from_millis(20));
        }
        served.child.0.kill().unwrap();
        served.child.0.wait().unwrap();
        caller.wait().unwrap();
        kills += 1;
        served = bench.serve(&here);
        let (_, sensed) = call(&bench, &served, "sense", "{}");
        if sensed["unfinished"].is_null() {
            break;
        }
        let left = sensed["unfinished"]["left_mm"].as_f64().unwrap();
        assert!(left > 0.0 && left <= 180.1, "{sensed:#}");
        if sensed["unfinished"]["interrupted"] == true {
            assert_eq!(sensed["enabled"], "nothing", "{sensed:#}");
            let (_, refused) = call(&bench, &served, "stroke", STROKE);
            assert_eq!(refused["code"], "interrupted", "{refused:#}");
            let (_, refused) = call(&bench, &served, "stroke", r#"{"resume":true}"#);
            assert_eq!(refused["code"], "needs_enabling", "{refused:#}");
        }
        assert_eq!(
            bench.run(&["enable", "--scene", "short"]).status.code(),
            Some(0)
        );
    }
    insist(&bench, &served, r#"{"resume":true}"#);
    let scenes = steadyhand::scene::Library::new(Some(bench.path("scenes")));
    let scene = scenes.scene("short", None).unwrap();
    let design: Vec<Line> = scene
        .strokes
        .iter()
        .map(|one| one.points_mm.clone())
        .collect();
    let ink = ink_of(&file);
    let missing = ink::missing_mm(&design, &ink, 0.8);
    assert!(missing < 0.5, "{missing} mm are missing");
    let twice = ink::length_mm(&ink) - ink::length_mm(&design);
    // Each attempt redraws the overlap and at most 5 mm, and sets the pen down once more.
    let attempts = text(&bench.run(&["jobs", "--state", &state]))
        .lines()
        .count();
    #[allow(clippy::cast_precision_loss, reason = "small")]
    let most = 9.0 * (attempts as f64) + 3.0;
    assert!(
        twice <= most,
        "{twice} mm twice after {kills} kills, {attempts} attempts"
    );
}

#[test]
fn a_full_disk_stops_the_motion_and_says_so() {
    let bench = Bench::new();
    bench.scene("short", &support::scene("short", LINES));
    // Files of this process end at 4 KiB: the journal of 180 mm does not fit.
    let binary = env!("CARGO_BIN_EXE_steadyhand");
    let state = state(&bench);
    let line = format!(
        "trap '' XFSZ; ulimit -f 4; exec {binary} --scenes {} --output {} --state {state} call --json stroke '{STROKE}'",
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
    let state = state(&bench);
    let served = bench.serve(&["--state", &state]);
    let began = Instant::now();
    let second = bench.run(&["call", "sense", "--state", &state]);
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(said.contains(&served.child.0.id().to_string()), "{said}");
    assert!(began.elapsed() < PATIENCE);
}
