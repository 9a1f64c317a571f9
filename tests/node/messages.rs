//! Tests what a new user reads: consistent wording, and errors that say what to do next.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

use crate::support;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use steadyhand::wording::names_step;
use support::{Bench, Caller, Served, scene, unless_starved};

fn output_text(output: &Output) -> String {
    let output_text = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    output_text.join("\n")
}

fn check(printed: &str, has: &[&str], has_not: &[&str]) {
    for expected in has {
        assert!(
            printed.contains(expected),
            "{expected:?} is missing: {printed}"
        );
    }
    for expected in has_not {
        assert!(
            !printed.contains(expected),
            "{expected:?} is said: {printed}"
        );
    }
}

#[test]
fn an_arm_without_torque_is_limp_and_holds_nothing() {
    let bench = Bench::at_test_rate();
    for tool in ["sense", "list_nodes"] {
        let output = output_text(&bench.run(&["call", tool]));
        check(&output, &["limp"], &["holding", "(s)"]);
    }
    let output = output_text(&bench.run(&["call", "list_nodes", "--json"]));
    check(&output, &["1 node: local"], &[]);
}

/// A disk that is full, as the system shows it.
#[cfg(target_os = "linux")]
#[test]
fn a_token_that_could_not_be_printed_is_revoked_and_not_called_done() {
    let bench = Bench::at_test_rate();
    let here = ["--state", &bench.state()];
    let full = std::fs::File::options().write(true).open("/dev/full");
    let mut add = Command::new(env!("CARGO_BIN_EXE_steadyhand"));
    add.args(["token", "add", "me"]).args(here);
    let made = add.stdout(full.unwrap()).output().unwrap();
    check(&output_text(&made), &["me is revoked"], &[]);
    assert_ne!(made.status.code(), Some(0));
    let listed = bench.run(&[&["token", "list"], &here[..]].concat());
    check(&output_text(&listed), &[], &["planner"]);
}

/// Both named a scene that had not been asked for.
#[test]
fn a_reset_says_why_its_scene_counts_and_a_resume_that_nothing_is_held() {
    let bench = Bench::at_test_rate();
    let _node = bench.serve(&[]);
    let says = |args: &[&str]| output_text(&bench.run(args));
    says(&["disable"]);
    says(&["enable", "--scene", "short", "--for", "30m"]);
    check(&says(&["resume"]), &["held"], &["is not enabled"]);
    says(&["stop"]);
    check(
        &says(&["reset"]),
        &[
            "`steadyhand enable --scene default --for 30m`",
            "scene `default`",
        ],
        &[],
    );
    check(&says(&["resume"]), &["`steadyhand reset`"], &[]);
}

#[test]
fn the_first_reset_of_a_real_arm_takes_no_scene_that_is_not_enabled() {
    unless_starved(|| {
        let bench = Bench::new();
        let (_sim, port) = bench.sim(&["--scene", "short"]);
        let state = bench.state();
        let _node = bench.serve(&support::on_port(&port, &state));
        let says = |args: &[&str]| output_text(&bench.run(args));
        says(&["enable", "--scene", "short", "--for", "30m"]);
        check(
            &says(&["reset"]),
            &["enabled for short", "`steadyhand reset --scene NAME`"],
            &["enable --scene default"],
        );
    });
}

#[test]
fn a_node_is_named_by_host_and_port() {
    let bench = Bench::at_test_rate();
    let served = bench.serve(&[]);
    let host = served.host();
    for node in [&host, &format!("http://{host}"), &format!("{host}/mcp")] {
        let called = bench.run(&["call", "list_nodes", "--node", node]);
        assert_eq!(
            called.status.code(),
            Some(0),
            "{node}: {}",
            output_text(&called)
        );
    }
}

#[test]
fn a_missing_token_is_asked_for_by_its_option() {
    let bench = Bench::at_test_rate().with_file("require_tokens = true\n");
    bench.token("me", &[]);
    let served = bench.serve(&[]);
    let called = bench.run(&["call", "sense", "--node", &served.host()]);
    assert_ne!(called.status.code(), Some(0));
    check(
        &output_text(&called),
        &["needs a token", "--token-file FILE", "steadyhand token add"],
        &["-32600", "JSON-RPC"],
    );
    let wrong = bench.path("wrong").display().to_string();
    std::fs::write(&wrong, "sth_wrong\n").unwrap();
    let node = served.host();
    let called = bench.run(&["call", "sense", "--node", &node, "--token-file", &wrong]);
    assert_ne!(called.status.code(), Some(0));
    check(
        &output_text(&called),
        &["token", "`steadyhand token add`"],
        &["-32600", "JSON-RPC"],
    );
}

/// `jobs` listed the jobs of the node that runs, and `replay` looked for them elsewhere.
#[test]
fn replay_finds_the_jobs_that_jobs_lists() {
    let bench = Bench::at_test_rate();
    let served = bench.serve(&["--state", &bench.state()]);
    draw(&bench, &served);
    check(&output_text(&bench.run(&["jobs"])), &["job-1"], &[]);
    let replayed = bench.run(&["replay", "job-1"]);
    let printed = output_text(&replayed);
    assert_eq!(replayed.status.code(), Some(0), "{printed}");
    check(&printed, &["job-1: the same plan"], &[]);
    let none = output_text(&bench.run(&["replay", "job-9"]));
    check(
        &none,
        &["\"job-9\"", "`steadyhand jobs`"],
        &["No such file"],
    );
}

/// They named a temporary folder of their own process, another one each time.
#[test]
fn commands_without_a_node_and_without_jobs_say_so() {
    let bench = Bench::new();
    for args in [&["jobs"][..], &["jobs", "job-1"], &["replay", "job-1"]] {
        let output = bench.run(args);
        assert_eq!(output.status.code(), Some(1));
        check(&output_text(&output), &["--state DIR"], &["/state"]);
    }
}

/// A job that another one followed had no result, so that a `draw` did not say how its rest is drawn.
#[test]
fn a_followed_job_keeps_its_result_when_another_follows_it() {
    let bench = Bench::at_test_rate();
    let served = bench.serve(&["--state", &bench.state()]);
    draw(&bench, &served);
    let reset = bench.run(&["call", "reset", "{}", "--node", &served.url]);
    assert!(reset.status.success(), "{}", output_text(&reset));
    let watched = output_text(&bench.run(&["watch", "job-1", "--json"]));
    check(&watched, &["\"stroke_count\"", "\"success\": true"], &[]);
}

fn draw(bench: &Bench, served: &Served) {
    let args = ["call", "stroke", r#"{"scene":"short"}"#, "--node"];
    let drawn = bench.run(&[&args[..], &[&served.host()]].concat());
    assert_eq!(drawn.status.code(), Some(0), "{drawn:?}");
}

/// The message told how much of the rest was drawn, but never that the drawing was complete.
#[test]
fn a_resumed_drawing_says_that_it_is_complete() {
    let bench = Bench::at_test_rate();
    // Enough strokes that a stop comes before the end, however late it arrives.
    let lines: Vec<_> = (0..12).map(|line| [[0, line], [20, line]]).collect();
    bench.scene("short", &support::scene("short", &json!(lines).to_string()));
    let served = bench.serve_with_file("lease_idle_s = 1\n");
    let url = &served.url;
    let caller = bench
        .command(&["call", "stroke", r#"{"scene":"short"}"#, "--node", url])
        .spawn();
    let mut caller = support::Running(caller.unwrap());
    support::until("drawing", || drawn(&bench, url), |drawn| *drawn > 0);
    let stopped = bench.run(&["call", "stop", "--node", url]);
    assert_eq!(stopped.status.code(), Some(0), "{}", output_text(&stopped));
    caller.exit_code();
    let reset = bench.run(&["reset"]);
    assert_eq!(reset.status.code(), Some(0), "{}", output_text(&reset));
    let resume = ["call", "stroke", r#"{"resume":true}"#, "--node", url];
    let output = output_text(&bench.run(&resume));
    check(&output, &["12 of 12 strokes"], &[]);
}

/// The strokes that a node's arm has drawn of its job. While it plans, `done` counts the planned ones.
fn drawn(bench: &Bench, url: &str) -> u64 {
    let (_, sensed) = bench.call(&["sense", "--node", url]);
    let job = &sensed["job"];
    if job["state"] == "moving" {
        job["done"].as_u64().unwrap()
    } else {
        0
    }
}

#[test]
fn a_job_that_draws_nothing_says_nothing_of_strokes() {
    let bench = Bench::at_test_rate();
    let state = bench.state();
    let (code, reset) = bench.call(&["reset", "--state", &state]);
    assert_eq!(code, 0, "{reset:#}");
    let card = output_text(&bench.run(&["jobs", "job-1", "--state", &state]));
    check(&card, &["job-1"], &["-0", "strokes", "drawn "]);
}

#[test]
fn a_key_below_the_wrong_heading_is_told_where_it_belongs() {
    let file = "[[arms]]\nname = \"a\"\nmodel = \"so101\"\nport = \"simulator\"\nforgiveness = \"guarded\"\n";
    let bench = Bench::at_test_rate().with_file(file);
    let output = output_text(&bench.run(&["check"]));
    check(
        &output,
        &[
            "line 5",
            "`forgiveness` belongs to the whole file",
            "above the first `[[arms]]`",
        ],
        &["did you mean `model`"],
    );
}

/// The folders of processes in a temporary folder.
fn of_processes(temporary: &Path) -> Vec<PathBuf> {
    let users = std::fs::read_dir(temporary).unwrap().flatten();
    users
        .filter(|entry| {
            entry
                .file_name()
                .to_string_lossy()
                .starts_with("steadyhand-")
        })
        .filter_map(|entry| std::fs::read_dir(entry.path()).ok())
        .flat_map(|entries| entries.flatten().map(|entry| entry.path()))
        .collect()
}

/// Runs a program in the environment of a user who names no folder.
fn of_practice(bench: &Bench, temporary: &Path, program: impl AsRef<OsStr>) -> Command {
    std::fs::create_dir_all(temporary).unwrap();
    let mut command = Command::new(program);
    command
        .env("TMPDIR", temporary)
        .env("XDG_RUNTIME_DIR", bench.path("run"))
        .env_remove("STATE_DIRECTORY")
        .env_remove("RUNTIME_DIRECTORY");
    command
}

/// As a user runs it who names no folder at all.
fn practise(bench: &Bench, temporary: &Path, args: &[&str]) -> String {
    let run = of_practice(bench, temporary, support::binary())
        .arg("--scenes")
        .arg(bench.path("scenes"))
        .args(args)
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(0), "{}", output_text(&run));
    output_text(&run)
}

#[test]
fn a_practice_run_leaves_only_the_pictures_that_it_has_named() {
    let bench = Bench::at_test_rate();
    let temporary = bench.path("temporary");
    practise(&bench, &temporary, &["call", "list_nodes"]);
    assert_eq!(of_processes(&temporary), Vec::<PathBuf>::new());
    let printed = practise(
        &bench,
        &temporary,
        &["call", "stroke", r#"{"scene":"short"}"#],
    );
    let named = printed
        .lines()
        .filter_map(|line| line.strip_prefix("File: "))
        .find(|path| path.ends_with("drawn.png"));
    assert!(Path::new(named.unwrap().trim()).is_file(), "{printed}");
    let kept = of_processes(&temporary);
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert!(kept.iter().all(|folder| !folder.join("state").exists()));
    // Another run a day later takes them away; one that comes sooner does not.
    practise(&bench, &temporary, &["call", "list_nodes"]);
    assert_eq!(of_processes(&temporary), kept);
    let long_ago = std::time::SystemTime::UNIX_EPOCH;
    let name = kept[0].file_name().unwrap().to_str().unwrap();
    let (process, _) = name.split_once('-').unwrap();
    let old = kept[0].with_file_name(format!("{process}-0"));
    std::fs::rename(&kept[0], &old).unwrap();
    let folder = std::fs::File::open(&old).unwrap();
    folder.set_modified(long_ago).unwrap();
    practise(&bench, &temporary, &["call", "list_nodes"]);
    assert_eq!(of_processes(&temporary), Vec::<PathBuf>::new());
}

#[test]
fn relative_folders_of_the_environment_are_ignored() {
    let bench = Bench::at_test_rate();
    let config = bench.path("node.toml").display().to_string();
    std::fs::write(&config, "name = \"bench\"\n").unwrap();
    let mut jobs = bench.plain_command(&["jobs", "--config", &config]);
    jobs.env("XDG_STATE_HOME", "relative");
    jobs.env("HOME", bench.path("home"));
    let told = output_text(&jobs.current_dir(bench.path("scenes")).output().unwrap());
    let folder = bench.path("home/.local/state/steadyhand/bench");
    check(&told, &[&folder.display().to_string()], &["relative"]);
}

#[test]
fn times_of_jobs_are_told_in_utc_and_names_of_files_in_one_line() {
    let bench = Bench::at_test_rate();
    let state = bench.state();
    let file = bench.path("two\nlines.svg").display().to_string();
    let line = r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 10"><path fill="none" stroke="black" d="M2 2h3"/></svg>"#;
    std::fs::write(&file, line).unwrap();
    let drawn = bench.run(&["draw", &file, "--size", "20mm", "--state", &state]);
    check(
        &output_text(&drawn),
        &["two\\nlines.svg in default"],
        &["two\nlines"],
    );
    for args in [
        &["jobs", "--state", &state][..],
        &["jobs", "job-1", "--state", &state],
    ] {
        check(&output_text(&bench.run(args)), &[" UTC"], &["two\nlines"]);
    }
}

/// The system gives a process number again, and a process that was killed has removed nothing.
#[test]
fn a_practice_run_takes_nothing_from_a_killed_process_of_its_number() {
    let bench = Bench::at_test_rate();
    let state = bench.state();
    let (code, drawn) = bench.call(&["stroke", r#"{"scene":"short"}"#, "--state", &state]);
    assert_eq!(code, 0, "{drawn:#}");
    let user = rustix::process::geteuid().as_raw();
    let binary = support::binary();
    let line = format!(
        "left=$TMPDIR/steadyhand-{user}/$$; mkdir -p -m 700 $TMPDIR/steadyhand-{user} $left; cp -r {state} $left/state; exec {} --scenes {} call stroke '{{\"resume\":true}}'",
        binary.display(),
        bench.path("scenes").display()
    );
    let run = of_practice(&bench, &bench.path("temporary"), "sh")
        .args(["-c", &line])
        .output()
        .unwrap();
    check(&output_text(&run), &["unfinished drawing"], &[]);
}

#[test]
fn a_refused_argument_ends_with_the_shortest_call_that_works() {
    let bench = Bench::at_test_rate();
    let (_, refused) = bench.call(&["sense", r#"{"debug":"perhaps","ctx":{"a":1}}"#]);
    let message = refused["message"].as_str().unwrap();
    check(message, &["true, false", "Next: send {}"], &[]);
    let (code, sensed) = bench.call(&["sense", r#"{"ctx":{"a":1}}"#]);
    assert_eq!(code, 0, "{sensed:#}");
    check(&sensed["repairs"].to_string(), &["ignored"], &[]);
}

#[test]
fn nothing_said_after_a_refused_scene_is_shown_and_names_the_plan() {
    let bench = Bench::at_test_rate();
    let served = bench.serve_with_file("forgiveness = \"guarded\"\n");
    let refused = |arguments: Value, code| served.refused("stroke", &arguments, code);
    refused(json!({"scene": "shrt"}), "arguments_refused");
    check(
        &refused(json!({}), "preview_only"),
        &["NOT DRAWN", ": plan "],
        &["{"],
    );
}

#[test]
fn each_repaired_or_refused_call_is_a_warning_in_the_log() {
    let bench = Bench::at_test_rate();
    let served = bench.serve(&[]);
    for (arguments, expected) in [
        (json!("[object Object]"), "were repaired"),
        (json!({"debug": "perhaps"}), "were refused"),
    ] {
        served.call("sense", &arguments);
        let line = support::wait_for(&served.lines, expected);
        check(&line, &["WARN", "sense"], &[]);
        let arrived = arguments.as_str().unwrap_or("perhaps");
        check(&line, &[arrived], &[]);
    }
    let broken = r#"{"jsonrpc":"2.0","id":7,"method":"ping",}"#;
    support::post(&served, "", broken);
    let line = support::wait_for(&served.lines, "was repaired");
    check(&line, &["WARN", "ping"], &[]);
    support::post(&served, "", "{nothing of the kind");
    let line = support::wait_for(&served.lines, "not be read");
    check(&line, &["WARN", "nothing of the kind"], &[]);
}

#[test]
fn a_node_file_chooses_names_and_words() {
    let file = "names = \"robot\"\n[descriptions.stroke]\ntext = \"Draw with the fineliner\"\n";
    let bench = Bench::at_test_rate().with_file(file);
    let output = output_text(&bench.run(&["tools"]));
    check(
        &output,
        &[
            "robot_stroke  (",
            "Draw with the fineliner.",
            "system_list_nodes  (",
        ],
        &["\nstroke  ("],
    );
    let (code, listed) = bench.call(&["ping_nodes"]);
    assert_eq!(code, 0, "{listed:#}");
}

const HOOK: &str = "<svg xmlns='http://www.w3.org/2000/svg' width='40mm' height='40mm'><path d='M5 5H45V30' stroke='black' fill='none'/></svg>";

/// Whatever a person types wrong, the last words are a command or the valid values.
#[test]
fn every_refusal_of_a_command_names_a_next_step() {
    let bench = Bench::at_test_rate();
    std::fs::write(bench.path("one.svg"), HOOK).unwrap();
    let one = &*bench.path("one.svg").display().to_string();
    let refused = |args: &[&str]| {
        let output = bench.run(args);
        let said = output_text(&output);
        assert_ne!(output.status.code(), Some(0), "{args:?}: {said}");
        assert!(names_step(&said), "{args:?}: {said}");
    };
    for args in [
        &["draw", "none.svg"][..],
        &["draw", one, one],
        &["draw", one, "--scene", "nowhere"],
        &["draw", "--resume"],
        &["draw", "--text", "a", "--font", "none"],
        &["call", "stroke", "{\"scene\":\"nowhere\"}"],
        &["call", "none"],
        &["call", "sense", "--node", "127.0.0.1:1"],
        &["--config", "none.toml", "doctor"],
        &["scene", "check", "none"],
        &["scene", "convert", "none"],
        &["jobs", "job-9"],
        &["replay", "job-9"],
        &["token", "list"],
        &["calibrate", "show"],
        &["explain", "none"],
        &["tools", "--format", "none"],
        &["fleet", "draw", one],
        &["arm", "import", "none.urdf", "--base", "a", "--tip", "b"],
    ] {
        refused(args);
    }
    let _node = bench.serve(&[]);
    for args in [
        &["continue"][..],
        &["hold"],
        &["enable", "--scene", "nowhere"],
        &["reset", "--scene", "nowhere"],
        &["reset", "--arm", "nowhere"],
        &["pen", "job-9", "--yes"],
        &["approve", "job-9", "--yes"],
        &["trim", "0.1"],
        &["jobs", "job-9"],
    ] {
        refused(args);
    }
}

/// It offered to compare them by a command that has another name now.
#[test]
fn several_drawings_are_compared_by_a_dry_run_as_the_refusal_says() {
    let bench = Bench::at_test_rate();
    let files = ["one.svg", "two.svg"].map(|name| {
        std::fs::write(bench.path(name), HOOK).unwrap();
        bench.path(name).display().to_string()
    });
    let [one, two] = &files;
    let refused = bench.run(&["draw", one, two]);
    assert_eq!(refused.status.code(), Some(1));
    let advice = format!("draw {one} {two} --dry-run`");
    check(&output_text(&refused), &[&advice], &["--design"]);
    let compared = bench.run(&["draw", one, two, "--dry-run"]);
    let said = output_text(&compared);
    assert_eq!(compared.status.code(), Some(0), "{said}");
    check(&said, &["one.svg: good", "two.svg: good"], &["--design"]);
}

/// It said first that the drawing enables motion, then that it does not.
#[test]
fn a_yes_beside_a_standing_order_is_refused_and_promises_nothing() {
    let bench = Bench::at_test_rate();
    let _node = bench.serve(&[]);
    bench.run(&["disable"]);
    let refused = bench.run(&["draw", "--text", "a", "--yes"]);
    assert_eq!(refused.status.code(), Some(1));
    check(&output_text(&refused), &["order is"], &["a yes"]);
}

/// What the doctor finds at ports it found; what `check` finds in files it did not.
#[test]
fn the_doctor_finds_what_check_finds_in_the_files_of_a_node() {
    let bench = Bench::at_test_rate().with_file("");
    let wrong = scene("wrong", support::SHORT_LINES).replace("width_mm", "widht_mm");
    bench.scene("wrong", &wrong);
    for command in ["check", "doctor"] {
        let found = bench.run(&[command]);
        assert_eq!(found.status.code(), Some(1), "{command}");
        check(&output_text(&found), &["scene wrong", "widht_mm"], &[]);
    }
    let json = support::json_of(&bench.run(&["doctor", "--json"]));
    assert_eq!(json["files"][0]["cause"], "node_files", "{json:#}");
}
