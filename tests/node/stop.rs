//! Tests that a stop stops: from another connection, by every name, with any arguments, and on the wire.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

use crate::support;
use std::io::{Read, Write};
use std::process::Stdio;
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use support::wire::Trace;
use support::{Bench, PATIENCE, lines, on_port, unless_starved, until};

/// A line long enough to be stopped in its middle.
const LONG_LINE: &str =
    "[[[0.0, 0.0], [80.0, 0.0], [80.0, 20.0], [0.0, 20.0], [0.0, 40.0], [80.0, 40.0]]]";

/// Returns lines that take most of a minute.
fn long_lines() -> String {
    let row = |row: u32| format!("[[0.0, {y}.0], [80.0, {y}.0]]", y = 2 * row);
    let rows: Vec<String> = (0..20).map(row).collect();
    format!("[{}]", rows.join(", "))
}

pub(super) fn long_bench() -> Bench {
    let bench = Bench::new();
    bench.scene("long", &support::scene("long", LONG_LINE));
    bench
}

fn sense(bench: &Bench, node: &str) -> impl Fn() -> Value {
    move || bench.call_at(node, &["sense"]).1
}

/// Waits until the pen is on the paper.
pub(super) fn wait_until_drawing(bench: &Bench, node: &str) {
    until("drawing", sense(bench, node), |sensed| {
        let height_mm = sensed["tip"]["height_mm"].as_f64();
        sensed["state"] == "moving" && height_mm.is_some_and(|mm| mm < 0.5)
    });
}

#[test]
fn a_stop_from_another_connection_ends_the_stroke_and_both_are_told() {
    unless_starved(|| {
        let bench = long_bench();
        let (_sim, _path, served) = drawing_on_a_port(&bench);
        let node = served.url.as_str();
        std::thread::scope(|scope| {
            let stroke = scope.spawn(|| bench.call_at(node, &["stroke", r#"{"scene":"long"}"#]));
            wait_until_drawing(&bench, node);
            let mark = trace(&bench).mark();
            let (code, stopped) = bench.call_at(node, &["stop", "\"now!!\""]);
            assert_eq!(code, 0, "{stopped:#}");
            assert!(
                stopped["stopped_after_ms"].as_f64().unwrap() < 1500.0,
                "{stopped:#}"
            );
            assert_eq!(stopped["arms"][0]["report"]["verified"], true);
            assert_eq!(stopped["arms"][0]["report"]["lifted"], true);
            let next = r#"reset, then stroke {"resume":true}"#;
            let told = format!("The arm stands still, pen up. Next: {next}. arm: stopped");
            let message = stopped["message"].as_str().unwrap();
            assert!(message.starts_with(&told), "{message}");
            assert_eq!(stopped["usage_hints"][0], next, "{stopped:#}");
            trace(&bench).was_stopped(mark);
            trace(&bench).stays();
            let (code, stroke) = stroke.join().unwrap();
            assert_eq!(
                (code, &stroke["code"]),
                (1, &Value::from("stopped")),
                "{stroke:#}"
            );
            assert_eq!(stroke["job"]["state"], "stopped");
        });
        let (_, sensed) = bench.call_at(node, &["sense"]);
        let height = sensed["tip"]["height_mm"].as_f64().unwrap();
        assert!(height > 6.0, "the pen is {height} mm up");
        // Each call here is a session of its own; the one that drew has ended and gave the arm back.
        assert_eq!(
            bench.run(&["enable", "--scene", "short"]).status.code(),
            Some(0)
        );
        let (_, refused) = bench.call_at(node, &["stroke", r#"{"scene":"short"}"#]);
        assert_eq!(refused["code"], "needs_reset", "{refused:#}");
        assert_eq!(bench.call_at(node, &["reset"]).0, 0);
        assert_eq!(
            bench.call_at(node, &["stroke", r#"{"scene":"short"}"#]).0,
            0
        );
    });
}

#[test]
fn any_arguments_and_every_name_stop() {
    let bench = Bench::new();
    let served = bench.serve(&[]);
    let node = served.url.as_str();
    let long = format!("\"{}\"", "stop ".repeat(2000));
    for arguments in [
        "{}",
        "null",
        "\"\"",
        "[]",
        "stop!!",
        "42",
        "{\"node\":\"nowhere\"}",
        "{'a",
        &long,
    ] {
        let (code, result) = bench.call_at(node, &["stop", arguments]);
        assert_eq!(
            (code, &result["success"]),
            (0, &Value::from(true)),
            "{arguments:.20}: {result:#}"
        );
        let told = "The arm stands still (nothing was moving). Next: reset. ";
        let message = result["message"].as_str().unwrap();
        assert!(message.starts_with(told), "{message}");
    }
    for name in [
        "robot_stop",
        "emergency_stop",
        "estop",
        "e_stop",
        "E-Stop",
        "halt",
        "abort()",
        "freeze",
    ] {
        assert_eq!(bench.call_at(node, &[name]).0, 0, "{name}");
    }
}

#[test]
fn only_an_operator_resets_their_stop_and_emergencies_latch() {
    let bench = Bench::new();
    let served = bench.serve(&[]);
    let node = served.url.as_str();
    let verb = |word: &str| bench.run(&[word]).status.code();
    assert_eq!(verb("stop"), Some(0));
    let (_, again) = bench.call_at(node, &["stop"]);
    let next = "an operator's `steadyhand reset`";
    assert_eq!(again["usage_hints"][0], next, "{again:#}");
    let (_, refused) = bench.call_at(node, &["reset"]);
    assert_eq!(refused["code"], "needs_reset", "{refused:#}");
    assert_eq!(verb("reset"), Some(0));
    // Nothing is latched, so nothing is done, and the exit code tells it.
    assert_eq!(verb("clear"), Some(1));
    assert_eq!(verb("estop"), Some(0));
    assert_eq!(verb("reset"), Some(1));
    let (_, refused) = bench.call_at(node, &["stroke", r#"{"scene":"short"}"#]);
    assert_eq!(refused["code"], "emergency_stop", "{refused:#}");
    assert_eq!((verb("clear"), verb("reset")), (Some(0), Some(0)));
    assert_eq!(
        bench.call_at(node, &["stroke", r#"{"scene":"short"}"#]).0,
        0
    );
}

/// An operator's stop lifts; an emergency stop stands where it is, and nothing but `clear` and then
/// `reset` ends it.
#[test]
fn an_operators_verbs_stop_the_arm_on_the_wire() {
    unless_starved(|| {
        let bench = long_bench();
        let (_sim, _path, served) = drawing_on_a_port(&bench);
        let verb = |word: &str| bench.run(&[word]).status.code();
        for (word, kind) in [("stop", "stopped (stop)"), ("estop", "(emergency stop)")] {
            let _caller = begin_to_draw(&bench, &served.url);
            let mark = trace(&bench).mark();
            let stopped = bench.run(&[word]);
            assert_eq!(stopped.status.code(), Some(0));
            let stdout = String::from_utf8_lossy(&stopped.stdout).into_owned();
            for fact in [
                kind,
                "first stop frame",
                "standing still",
                "°/s",
                "mm up on",
            ] {
                assert!(stdout.contains(fact), "{fact}: {stdout}");
            }
            match word {
                "stop" => trace(&bench).was_stopped(mark),
                _ => trace(&bench).was_frozen(mark),
            }
            trace(&bench).stays();
            if word == "estop" {
                assert_eq!(verb("reset"), Some(1));
                trace(&bench).stays();
                assert_eq!(verb("clear"), Some(0));
            }
            assert_eq!(verb("reset"), Some(0));
        }
    });
}

#[test]
fn a_caller_that_hangs_up_stops_the_arm() {
    unless_starved(|| {
        let bench = long_bench();
        let (_sim, _path, served) = drawing_on_a_port(&bench);
        let node = served.url.as_str();
        let mut caller = bench
            .command(&["call", "stroke", r#"{"scene":"long"}"#, "--node", node])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_until_drawing(&bench, node);
        let mark = trace(&bench).mark();
        caller.kill().unwrap();
        caller.wait().unwrap();
        until("stopped", sense(&bench, node), |sensed| {
            sensed["state"] == "stopped"
        });
        trace(&bench).was_stopped(mark);
        trace(&bench).stays();
    });
}

/// Returns the trace of what the bench's arm receives.
fn trace(bench: &Bench) -> Trace {
    Trace(bench.path("wire.txt"))
}

/// Starts a simulated arm on a pseudo-terminal that traces what it receives. Returns a node's options for it as well.
fn arm_on_a_port(bench: &Bench) -> (support::Running, String, Vec<String>) {
    let trace_path = trace(bench).0.display().to_string();
    let (sim, path) = bench.sim(&["--scene", "long", "--trace", &trace_path]);
    let state = bench.state();
    let args = [&on_port(&path, &state)[..], &["--enable", "long"]].concat();
    let args = args.into_iter().map(str::to_owned).collect();
    (sim, path, args)
}

/// Starts a node on a pseudo-terminal that may move in the scene `long`, and the simulated arm there.
pub(super) fn drawing_on_a_port(bench: &Bench) -> (support::Running, String, support::Served) {
    let (sim, path, args) = arm_on_a_port(bench);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let served = bench.serve(&args);
    (sim, path, served)
}

/// Calls `stroke` in the background, and returns once it draws.
pub(super) fn begin_to_draw(bench: &Bench, node: &str) -> support::Running {
    let caller = bench
        .command(&["call", "stroke", r#"{"scene":"long"}"#, "--node", node])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until_drawing(bench, node);
    support::Running(caller)
}

/// Returns the angle of each joint in degrees, as a separate process reads them.
pub(super) fn joints_deg(bench: &Bench, path: &str) -> Vec<f64> {
    let state = bench.path("other-state");
    let (_, sensed) = bench.call(&["--state", state.to_str().unwrap(), "--port", path, "sense"]);
    let joints = sensed["joints"].as_array().unwrap();
    joints
        .iter()
        .map(|joint| joint["angle_deg"].as_f64().unwrap())
        .collect()
}

pub(super) fn is_at_rest(joints_deg: &[f64]) -> bool {
    let rest = [0.0, -1.5_f64, 1.2, 0.8, 0.0487].map(f64::to_degrees);
    joints_deg
        .iter()
        .zip(rest)
        .all(|(is, rest)| (is - rest).abs() < 2.0)
}

/// The exit code of a node that ended while its arm is energised away from its rest.
const ENERGISED: i32 = 71;

/// Checks that the node reports in its log and by its exit code that it leaves its arm energised, and that
/// the journal has the end of its job.
fn ends_energised(bench: &Bench, served: &mut support::Served) {
    assert_eq!(served.child.exit_code(), Some(ENERGISED));
    let lines: Vec<String> = served.lines.iter().collect();
    assert!(
        lines.iter().any(|line| line.contains("torque on")),
        "{lines:#?}"
    );
    assert_eq!(job_state(bench), "stopped");
}

/// Returns the state of the first job, from its journal.
fn job_state(bench: &Bench) -> String {
    let state = bench.state();
    let output = bench.run(&["jobs", "job-1", "--json", "--state", &state]);
    let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
    reply["state"].as_str().unwrap().to_owned()
}

#[test]
fn an_interrupt_stops_the_arm_and_ends_the_node() {
    unless_starved(|| {
        let bench = long_bench();
        let (_sim, path, mut served) = drawing_on_a_port(&bench);
        let _caller = begin_to_draw(&bench, &served.url);
        let mark = trace(&bench).mark();
        served.child.signal(Signal::INT);
        ends_energised(&bench, &mut served);
        trace(&bench).was_stopped(mark);
        assert!(!is_at_rest(&joints_deg(&bench, &path)));
    });
}

#[test]
fn a_second_interrupt_is_an_emergency_stop_that_outlives_the_node() {
    unless_starved(|| {
        let bench = long_bench();
        let (_sim, path, mut served) = drawing_on_a_port(&bench);
        let _caller = begin_to_draw(&bench, &served.url);
        let mark = trace(&bench).mark();
        let began = Instant::now();
        served.child.signal(Signal::INT);
        sleep(Duration::from_millis(20));
        served.child.signal(Signal::INT);
        // A lift takes longer than this.
        let soon = began.elapsed() < Duration::from_millis(80);
        ends_energised(&bench, &mut served);
        if soon {
            trace(&bench).was_frozen(mark);
        }
        let state = bench.path("state");
        let kept = std::fs::read_dir(&state).unwrap().flatten();
        let kept: Vec<_> = kept.map(|entry| entry.file_name()).collect();
        assert!(
            kept.iter()
                .any(|name| name.to_string_lossy().starts_with("emergency-stop-")),
            "{kept:?}"
        );
        let (mark, stands) = (trace(&bench).mark(), joints_deg(&bench, &path));
        let here = on_port(&path, state.to_str().unwrap());
        let again = bench.serve(&[&here[..], &["--enable", "long"]].concat());
        let (_, refused) = bench.call_at(&again.url, &["stroke", r#"{"scene":"long"}"#]);
        assert_eq!(refused["code"], "emergency_stop", "{refused:#}");
        // Watching an arm that holds itself up sends it no goals.
        let (_, sensed) = bench.call_at(&again.url, &["sense"]);
        assert_eq!(sensed["energised"], true, "{sensed:#}");
        assert_eq!(trace(&bench).mark(), mark, "goals were sent");
        let now = sensed["joints"].as_array().unwrap().iter();
        let now = now.map(|joint| joint["angle_deg"].as_f64().unwrap());
        assert!(
            now.zip(stands)
                .all(|(now, stood)| (now - stood).abs() < 0.2),
            "{sensed:#}"
        );
        assert_eq!(
            bench.run(&["reset", "--scene", "long"]).status.code(),
            Some(1)
        );
        assert_eq!(bench.run(&["clear"]).status.code(), Some(0));
        // After an operator's word `--enable` is not heeded.
        assert_eq!(
            bench.run(&["enable", "--scene", "long"]).status.code(),
            Some(0)
        );
        assert_eq!(
            bench.run(&["reset", "--scene", "long"]).status.code(),
            Some(0)
        );
    });
}

#[test]
fn termination_parks_the_arm() {
    unless_starved(|| {
        let bench = long_bench();
        let (_sim, path, mut served) = drawing_on_a_port(&bench);
        let _caller = begin_to_draw(&bench, &served.url);
        assert_eq!(served.child.terminate(), Some(0));
        let joints = joints_deg(&bench, &path);
        assert!(is_at_rest(&joints), "{joints:?}");
    });
}

#[test]
fn termination_does_not_park_what_was_stopped() {
    unless_starved(|| {
        let bench = long_bench();
        let (_sim, path, mut served) = drawing_on_a_port(&bench);
        let _caller = begin_to_draw(&bench, &served.url);
        assert_eq!(bench.call_at(&served.url, &["stop"]).0, 0);
        assert_eq!(served.child.terminate(), Some(71));
        let lines: Vec<String> = served.lines.iter().collect();
        assert!(
            lines.iter().any(|line| line.contains("torque on")),
            "{lines:#?}"
        );
        assert!(!is_at_rest(&joints_deg(&bench, &path)));
    });
}

/// A stop after the signal wins, whether the arm still brakes or is on
/// its way to rest.
#[test]
fn a_stop_after_termination_is_the_last_word() {
    unless_starved(|| {
        let bench = long_bench();
        let (_sim, path, mut served) = drawing_on_a_port(&bench);
        let _caller = begin_to_draw(&bench, &served.url);
        served.child.signal(Signal::TERM);
        assert_eq!(bench.run(&["stop"]).status.code(), Some(0));
        assert_eq!(served.child.exit_code(), Some(71));
        assert!(!is_at_rest(&joints_deg(&bench, &path)));
    });
}

#[test]
fn the_end_of_the_terminal_stops_the_arm() {
    stops_and_ends_at(Signal::HUP);
}

/// It ended the process in the middle of the stroke, as Ctrl-\ does in a terminal.
#[test]
fn a_signal_without_a_meaning_stops_the_arm() {
    for signal in [Signal::QUIT, Signal::USR1] {
        stops_and_ends_at(signal);
    }
}

fn stops_and_ends_at(signal: Signal) {
    unless_starved(|| {
        let bench = long_bench();
        let (_sim, path, mut served) = drawing_on_a_port(&bench);
        let _caller = begin_to_draw(&bench, &served.url);
        let mark = trace(&bench).mark();
        served.child.signal(signal);
        ends_energised(&bench, &mut served);
        trace(&bench).was_stopped(mark);
        assert!(!is_at_rest(&joints_deg(&bench, &path)));
    });
}

/// Servos that do not answer may hold or not.
#[test]
fn a_node_ending_with_a_dead_bus_does_not_call_its_arm_energised() {
    unless_starved(|| {
        let bench = long_bench();
        let (sim, _path, mut served) = drawing_on_a_port(&bench);
        let _caller = begin_to_draw(&bench, &served.url);
        drop(sim);
        assert_eq!(served.child.terminate(), Some(70));
        let lines: Vec<String> = served.lines.iter().collect();
        let told = "torque may be on";
        assert!(lines.iter().any(|line| line.contains(told)), "{lines:#?}");
        assert!(
            !lines.iter().any(|line| line.contains("torque on")),
            "{lines:#?}"
        );
    });
}

#[test]
fn a_lost_bus_is_a_fault() {
    unless_starved(|| {
        let bench = long_bench();
        let (sim, _path, served) = drawing_on_a_port(&bench);
        let _caller = begin_to_draw(&bench, &served.url);
        let mark = trace(&bench).mark();
        drop(sim);
        let sense = sense(&bench, &served.url);
        let sensed = until("detached", sense, |sensed| sensed["state"] == "detached");
        assert!(
            sensed["latched"].as_str().unwrap().starts_with("fault"),
            "{sensed:#}"
        );
        // Whatever was on its way: the arm is never sent further than its leash.
        assert!(trace(&bench).stand(mark).went_mm < 30.0);
        assert_eq!(bench.run(&["reset"]).status.code(), Some(1));
    });
}

#[test]
fn a_held_motion_goes_on_and_torque_goes_off_only_at_a_standstill() {
    unless_starved(|| {
        let bench = long_bench();
        let (_sim, _path, served) = drawing_on_a_port(&bench);
        let mut caller = begin_to_draw(&bench, &served.url);
        let verb = |args: &[&str]| bench.run(args).status.code();
        bench.hold();
        let (_, sensed) = bench.call_at(&served.url, &["sense"]);
        assert_eq!(sensed["state"], "held", "{sensed:#}");
        assert_eq!(sensed["job"]["state"], "held", "{sensed:#}");
        assert!(
            sensed["tip"]["height_mm"].as_f64().unwrap() > 6.0,
            "{sensed:#}"
        );
        assert_eq!(verb(&["torque-off", "--yes"]), Some(1));
        let again = bench.run(&["hold"]);
        let stdout = String::from_utf8_lossy(&again.stdout);
        assert_eq!(again.status.code(), Some(0));
        assert!(stdout.contains("already held"), "{stdout}");
        assert_eq!(verb(&["resume"]), Some(0));
        assert_eq!(verb(&["resume"]), Some(1));
        wait_until_drawing(&bench, &served.url);
        assert_eq!(verb(&["stop"]), Some(0));
        assert_eq!(verb(&["hold"]), Some(1));
        // Without a terminal there is no question.
        assert_eq!(verb(&["torque-off"]), Some(1));
        let dropped = bench.run(&["torque-off", "--yes"]);
        let stdout = String::from_utf8_lossy(&dropped.stdout);
        assert!(stdout.contains("6 servos"), "{stdout}");
        let (_, sensed) = bench.call_at(&served.url, &["sense"]);
        assert_eq!(sensed["energised"], false, "{sensed:#}");
        // Its session has ended with it.
        assert_eq!(caller.exit_code(), Some(1));
        let (_, refused) = bench.call_at(&served.url, &["stroke", r#"{"scene":"long"}"#]);
        assert_eq!(refused["code"], "needs_reset", "{refused:#}");
        let message = refused["message"].as_str().unwrap();
        assert!(message.contains("torque"), "{message}");
        assert_eq!(verb(&["reset"]), Some(0));
    });
}

/// A job may be held for longer than its caller waits.
#[test]
fn a_call_whose_job_is_held_is_told_who_goes_on_with_it() {
    let bench = long_bench();
    let served = bench.serve_with_file("answer_within_s = 10\n");
    let node = served.url.as_str();
    std::thread::scope(|scope| {
        let stroke = scope.spawn(|| bench.call_at(node, &["stroke", r#"{"scene":"long"}"#]));
        wait_until_drawing(&bench, node);
        bench.hold();
        let (_, reply) = stroke.join().unwrap();
        let message = reply["message"].as_str().unwrap();
        assert_eq!(reply["state"], "held", "{reply:#}");
        assert!(message.contains("steadyhand continue"), "{message}");
        assert!(!message.contains("approve"), "{message}");
    });
    let stopped = bench.run(&["stop"]);
    let stdout = String::from_utf8_lossy(&stopped.stdout);
    assert_eq!(stopped.status.code(), Some(0), "{stdout}");
    for words in ["was held", " ended job-1 after ", "can be resumed"] {
        assert!(stdout.contains(words), "{stdout}");
    }
}

#[test]
fn a_second_node_is_told_who_holds_the_arm() {
    unless_starved(|| {
        let bench = long_bench();
        let (_sim, path, served) = drawing_on_a_port(&bench);
        let state = bench.path("other-state");
        let second = bench.run(&[
            "--state",
            state.to_str().unwrap(),
            "--port",
            &path,
            "call",
            "sense",
        ]);
        let stderr = String::from_utf8_lossy(&second.stderr);
        assert_ne!(second.status.code(), Some(0));
        assert!(
            stderr.contains(&format!("process {}", served.child.0.id())),
            "{stderr}"
        );
        assert!(stderr.contains("serve --http"), "{stderr}");
    });
}

/// Measured from the start of the second process to its end, for any command. A slow machine is allowed for
/// by a process that does nothing.
#[test]
fn a_second_node_is_told_so_within_200_ms() {
    unless_starved(|| {
        const TOLD: Duration = Duration::from_millis(200);
        const LATER: Duration = Duration::from_millis(150);
        let bench = long_bench();
        let (_sim, path, served) = drawing_on_a_port(&bench);
        let state = bench.path("other-state").display().to_string();
        let here = ["--state", &state, "--port", &path];
        let holds = format!("process {}", served.child.0.id());
        for what in [&["call", "sense"][..], &["serve", "--http", "127.0.0.1:0"]] {
            let args = [&here[..], what].concat();
            let timed = |args: &[&str]| {
                let began = Instant::now();
                let output = bench.run(args);
                (began.elapsed(), output)
            };
            let tries = (0..5).map(|_| {
                let (baseline, _) = timed(&["--version"]);
                let (took, second) = timed(&args);
                let stderr = String::from_utf8_lossy(&second.stderr).into_owned();
                assert!(
                    !second.status.success() && stderr.contains(&holds),
                    "{stderr}"
                );
                (took, baseline)
            });
            let (took, baseline): (Vec<_>, Vec<_>) = tries.unzip();
            let quickest = |of: &[Duration]| of.iter().copied().min().unwrap();
            assert!(
                quickest(&took) < TOLD.max(quickest(&baseline) + LATER),
                "{what:?}: {took:?}; a process that does nothing took {baseline:?}"
            );
        }
    });
}

/// As root, the lock that keeps a second program out protects nothing.
#[test]
fn a_real_port_is_refused_to_root() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let bench = Bench::new();
    let state = bench.path("state");
    let state = state.to_str().unwrap();
    let refused = bench.run(&["--state", state, "--port", "/dev/ttyACM9", "call", "sense"]);
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert!(stderr.contains("--allow-root"), "{stderr}");
    assert_ne!(refused.status.code(), Some(0));
}

/// Messages with which a client opens a session and draws.
const OPENING: [&str; 3] = [
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"stroke","arguments":{"scene":"long"},"_meta":{"progressToken":7}}}"#,
];

/// Waits until the arm receives goals that put the pen on the paper. Fails if the call is answered before.
fn wait_until_near(bench: &Bench, is_answered: impl Fn() -> bool) {
    let began = Instant::now();
    while trace(bench).mark() == 0 || trace(bench).stand(0).height_mm > 2.0 {
        assert!(began.elapsed() < PATIENCE, "it never drew");
        assert!(!is_answered(), "it ended before it drew");
        sleep(Duration::from_millis(50));
    }
}

/// Starts a node that draws for a client on standard input and output. Returns it with its input and output.
fn drawing_for_a_client(
    bench: &Bench,
) -> (
    [support::Running; 2],
    std::process::ChildStdin,
    std::sync::mpsc::Receiver<String>,
) {
    let (sim, _, args) = arm_on_a_port(bench);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let child = bench
        .command(&[&["serve"], &args[..]].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut child = support::Running(child);
    let mut input = child.0.stdin.take().unwrap();
    let output = lines(child.0.stdout.take().unwrap());
    for line in OPENING {
        writeln!(input, "{line}").unwrap();
    }
    while let Ok(line) = output.recv_timeout(PATIENCE) {
        if line.contains("long: ") && line.contains("s left") {
            wait_until_near(bench, || {
                output.try_iter().any(|line| line.contains("\"result\""))
            });
            return ([child, sim], input, output);
        }
    }
    panic!("it never moved");
}

#[test]
fn a_cancelled_call_stops_the_arm() {
    unless_starved(|| {
        let bench = long_bench();
        let (_both, mut input, output) = drawing_for_a_client(&bench);
        let mark = trace(&bench).mark();
        writeln!(
            input,
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":2}}}}"#
        )
        .unwrap();
        let began = Instant::now();
        for id in 10.. {
            assert!(began.elapsed() < PATIENCE, "it never stopped");
            writeln!(
                input,
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"sense"}}}}"#
            )
            .unwrap();
            let sensed = output.recv_timeout(PATIENCE).unwrap();
            if sensed.contains(r#""state":"stopped""#) {
                trace(&bench).was_stopped(mark);
                trace(&bench).stays();
                return;
            }
        }
    });
}

/// A client sends more requests than it reads replies: a stop after them all takes effect at once.
#[test]
fn a_stop_behind_a_full_pipe_is_heard() {
    unless_starved(|| {
        let bench = long_bench();
        let ([mut node, _sim], mut input, output) = drawing_for_a_client(&bench);
        let flood = spawn(move || {
            for id in 100..6_000 {
                let sent = writeln!(
                    input,
                    r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"list_nodes"}}}}"#
                );
                if sent.is_err() {
                    break;
                }
            }
            let _ = writeln!(
                input,
                r#"{{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{{"name":"stop"}}}}"#
            );
            input
        });
        let input = flood.join().unwrap();
        let status = bench.run(&["status"]);
        let began = Instant::now();
        let mut stdout = String::from_utf8_lossy(&status.stdout).into_owned();
        while !stdout.contains("stopped") {
            assert!(began.elapsed() < PATIENCE, "{stdout}");
            sleep(Duration::from_millis(50));
            stdout = String::from_utf8_lossy(&bench.run(&["status"]).stdout).into_owned();
        }
        drop((input, output));
        assert_eq!(node.exit_code(), Some(ENERGISED));
    });
}

/// A client that reads nothing any more has gone, though its other end is still open.
#[test]
fn a_client_that_closes_its_end_of_the_output_stops_the_arm() {
    unless_starved(|| {
        let bench = long_bench();
        let ([mut node, _sim], input, output) = drawing_for_a_client(&bench);
        let mark = trace(&bench).mark();
        // The reading thread ends, and closes the pipe, at the next line.
        drop(output);
        assert_eq!(node.exit_code(), Some(ENERGISED));
        trace(&bench).was_stopped(mark);
        drop(input);
    });
}

/// A person at a terminal.
#[test]
fn a_key_in_the_live_view_stops_the_arm() {
    unless_starved(|| {
        let bench = Bench::new();
        bench.scene("long", &support::scene("long", &long_lines()));
        for (at, key) in [b" ", b"q"].into_iter().enumerate() {
            let (_sim, _path, args) = arm_on_a_port(&bench);
            let state = bench.path(&format!("state-{at}")).display().to_string();
            let mut args: Vec<&str> = args.iter().map(String::as_str).collect();
            args[3] = &state;
            let (mut screen, terminal) = support::person::pseudo_terminal();
            let child = bench
                .command(&[&["call", "stroke", r#"{"scene":"long"}"#], &args[..]].concat())
                .stdin(terminal.try_clone().unwrap())
                .stderr(terminal)
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut child = support::Running(child);
            let output = lines(child.0.stdout.take().unwrap());
            let mut keys = screen.try_clone().unwrap();
            let mut received = Vec::new();
            let mut some = [0_u8; 256];
            while !String::from_utf8_lossy(&received).contains("s left") {
                let count = screen.read(&mut some).unwrap();
                received.extend(&some[..count]);
            }
            spawn(move || while screen.read(&mut some).is_ok_and(|count| count > 0) {});
            wait_until_near(&bench, || output.try_recv().is_ok());
            let mark = trace(&bench).mark();
            keys.write_all(key).unwrap();
            assert_eq!(child.exit_code(), Some(1));
            let printed_lines: Vec<String> = output.iter().collect();
            assert!(
                printed_lines.iter().any(|line| line.contains("stopped")),
                "{printed_lines:#?}"
            );
            trace(&bench).was_stopped(mark);
        }
    });
}

/// Checks the rows of the page about stopping: each source of a stop names its tests.
#[test]
fn the_page_names_every_source_and_a_test_for_each() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/internals/stops.md")).unwrap();
    let table = page.split("## What stops the arm").nth(1).unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| ")).skip(1);
    let mut sources = Vec::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        assert_eq!(cells.len(), 2, "{row}");
        sources.push(cells[0].to_owned());
        let mut file = String::new();
        let mut tests = 0;
        for word in cells[1].split('`').skip(1).step_by(2) {
            if word.contains('/') {
                file = std::fs::read_to_string(root.join(word)).unwrap();
            } else {
                let named = format!("fn {word}(");
                let at = file
                    .find(&named)
                    .unwrap_or_else(|| panic!("no test {word}: {row}"));
                let before = &file[..at];
                let attribute = before.rfind("test]").max(before.rfind("test(")).unwrap();
                assert!(
                    before[attribute..].lines().count() <= 2,
                    "{word} is no test"
                );
                tests += 1;
            }
        }
        assert!(tests > 0, "{row}");
    }
    for source in SOURCES {
        let found = sources.iter().filter(|row| row.contains(source)).count();
        assert!(found > 0, "no row for {source:?}");
    }
    assert_eq!(sources.len(), ROWS, "{sources:#?}");
}

/// Words that the page's rows must have between them.
const SOURCES: [&str; 52] = [
    "a joint that leaves the pose",
    "a joint that trembles at its goal",
    "`steadyhand` with another word for stopping",
    "a second SIGTERM",
    "before its motion has begun",
    "Stop on the operator's page",
    "Emergency stop on the operator's page",
    "the `stop` tool",
    "under a name that no tool has",
    "a call of any tool whose arguments name a stop",
    "a message that is no call",
    "a line on the control socket that is no verb",
    "a cancellation that does not tell what it cancels",
    "a stop in a message that is never completed",
    "cancelled",
    "as soon as it is sent",
    "hangs up",
    "the end of a session",
    "the end of standard input",
    "closes its end of the output",
    "SIGINT",
    "a second SIGINT",
    "SIGTERM",
    "SIGTERM where motion is not enabled",
    "SIGHUP",
    "systemd's watchdog",
    "SIGKILL",
    "`steadyhand stop`",
    "`steadyhand estop`",
    "the live view",
    "the person who jogs",
    "the person who asked for `selftest`",
    "Ctrl-C in `steadyhand selftest`",
    "Ctrl-C in `steadyhand first-line`",
    "`steadyhand first-line` is killed",
    "Ctrl-C in `steadyhand jog`",
    "space bar",
    "loss of the bus",
    "an arm that is carried out together with this one",
    "an arm that stands for the motion of another",
    "panic of the arm's thread",
    "panic of the task",
    "panic of the thread that keeps",
    "does not follow",
    "reports an error",
    "short of its goal",
    "journal that cannot be written",
    "65 °C",
    "the machine was suspended",
    "the node's process was suspended",
    "the time of an `enable` that ends",
    "`steadyhand hold`",
];
const ROWS: usize = SOURCES.len();

#[test]
fn the_end_of_standard_input_stops_the_arm_and_ends_the_node() {
    unless_starved(|| {
        let bench = long_bench();
        let ([mut node, _sim], input, _output) = drawing_for_a_client(&bench);
        let mark = trace(&bench).mark();
        drop(input);
        assert_eq!(node.exit_code(), Some(ENERGISED));
        assert_eq!(job_state(&bench), "stopped");
        trace(&bench).was_stopped(mark);
    });
}
