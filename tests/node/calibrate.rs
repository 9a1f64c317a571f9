//! Joints by hand, teaching and jogging, by the commands that a technician gives.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

mod terminal;

use crate::support;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Bench, Caller, PATIENCE, Served, until};

fn run(bench: &Bench, args: &[&str]) -> (i32, String) {
    let state = bench.path("state");
    let mut all = vec!["--state", state.to_str().unwrap()];
    all.extend(args);
    bench.said(&all)
}

/// A recording of a hand that moves each of the five joints to its ends.
fn recording(bench: &Bench, ends: [(i32, i32); 5]) -> PathBuf {
    let mut lines = String::new();
    let mut ticks = [2060; 5];
    let mut record = |ticks: &[i32; 5], enter: bool| {
        let by_id: Value = (1..=5)
            .map(|id| (id.to_string(), json!(ticks[id - 1])))
            .collect();
        lines.push_str(&json!({"ticks": by_id, "enter": enter}).to_string());
        lines.push('\n');
    };
    record(&ticks, true);
    for (joint, (first, last)) in ends.into_iter().enumerate() {
        for to in [first, last] {
            while ticks[joint] != to {
                ticks[joint] += (to - ticks[joint]).clamp(-200, 200);
                record(&ticks, false);
            }
        }
        record(&ticks, true);
    }
    let path = bench.path("hand.jsonl");
    std::fs::write(&path, lines).unwrap();
    path
}

#[test]
fn joints_moved_by_hand_are_saved_with_their_file_s_comments() {
    let bench = Bench::at_test_rate();
    let arm = bench.path("scenes/arms/so101.toml");
    let shipped = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/scenes/arms/so101.toml"
    ))
    .unwrap();
    std::fs::write(&arm, &shipped).unwrap();
    let hand = recording(
        &bench,
        [
            (1000, 3100),
            (1000, 3100),
            (3100, 1000),
            (1500, 2700),
            (600, 3500),
        ],
    );
    let from = hand.to_str().unwrap();
    let joints = ["calibrate", "joints", "--from", from];
    // One of them turns the other way than the file says, which no arm does by itself.
    let (code, printed) = run(&bench, &[&joints[..], &["--yes"]].concat());
    let loud: Vec<&str> = printed
        .lines()
        .filter(|line| line.contains("SIGN FLIP"))
        .collect();
    assert!(code != 0 && loud.len() == 1, "{printed}");
    assert!(
        loud[0].contains("elbow_flex") && loud[0].contains("--override"),
        "{printed}"
    );
    assert_eq!(std::fs::read_to_string(&arm).unwrap(), shipped);
    let joints = [&joints[..], &["--override"]].concat();
    let (code, printed) = run(&bench, &joints);
    assert!(printed.contains("SIGN FLIP: elbow_flex"), "{printed}");
    assert!(
        code != 0 && printed.contains("--yes"),
        "nobody was asked: {printed}"
    );
    assert_eq!(std::fs::read_to_string(&arm).unwrap(), shipped);
    let (code, printed) = run(&bench, &[&joints[..], &["--yes"]].concat());
    assert_eq!(code, 0, "{printed}");
    for part in [
        "shoulder_pan",
        "1000 to 3100",
        "zero_tick of servo 3: old [2048",
        "sign of servo 3",
    ] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    let written = std::fs::read_to_string(&arm).unwrap();
    assert!(
        written.starts_with(shipped.lines().next().unwrap()),
        "its comments stay"
    );
    assert!(
        written.contains("id = 3, sign = -1, zero_tick = 2060"),
        "{written}"
    );
    let (_, history) = run(&bench, &["calibrate", "history"]);
    assert!(history.contains("by hand"), "{history}");
    let (code, printed) = run(&bench, &["calibrate", "restore", "1"]);
    assert_eq!(code, 0, "{printed}");
    // Taken back by hand, it is not restored over either.
    std::fs::write(&arm, &shipped).unwrap();
    let (code, printed) = run(&bench, &["calibrate", "restore", "1"]);
    assert!(code != 0 && printed.contains("SIGN FLIP"), "{printed}");
    assert_eq!(std::fs::read_to_string(&arm).unwrap(), shipped);
    let (code, printed) = run(&bench, &["calibrate", "restore", "1", "--override"]);
    assert!(code == 0 && printed.contains("SIGN FLIP"), "{printed}");
}

/// The first calibration could not be undone: `restore 1` writes it again.
#[test]
fn the_first_calibration_of_a_thing_is_undone() {
    let bench = Bench::at_test_rate();
    let file = bench.path("scenes/short.toml");
    let ready = || {
        let text = std::fs::read_to_string(&file).unwrap();
        let scene: toml::Table = toml::from_str(&text).unwrap();
        scene["poses"]["ready_rad"].to_string()
    };
    let before = ready();
    let at = [
        "--scene",
        "short",
        "--joints",
        "0.1,-0.3,0.4,1.2,0",
        "--yes",
    ];
    let (code, printed) = run(&bench, &[&["teach", "pose", "ready"], &at[..]].concat());
    assert_eq!(code, 0, "{printed}");
    let after = ready();
    assert_ne!(after, before);
    let (code, printed) = run(&bench, &["calibrate", "restore", "1"]);
    let hint = "`steadyhand calibrate restore 1 --before`";
    assert!(code == 0 && printed.contains(hint), "{printed}");
    assert_eq!(ready(), after);
    let (code, printed) = run(&bench, &["calibrate", "restore", "1", "--before"]);
    assert_eq!((code, ready()), (0, before), "{printed}");
    let (_, history) = run(&bench, &["calibrate", "history"]);
    let last = history.lines().last().unwrap();
    assert!(
        last.contains("before calibration 1, 0 touches") && last.contains("not recorded"),
        "{history}"
    );
    let (code, printed) = run(&bench, &[&["teach", "calibrator"], &at[..]].concat());
    assert_eq!(code, 0, "{printed}");
    let (code, printed) = run(&bench, &["calibrate", "restore", "4", "--before"]);
    assert!(
        code != 0 && printed.contains("calibration 4") && printed.contains("calibrator_m"),
        "{printed}"
    );
}

/// Degrees in the place of radians, and metres beside a sheet of 100 mm, were counted.
#[test]
fn a_touch_that_cannot_be_is_refused_with_the_limit_and_the_unit() {
    let bench = Bench::at_test_rate();
    let touch = |more: &[&str]| {
        let sheet = ["calibrate", "touch", "sheet", "--scene", "short"];
        run(&bench, &[&sheet[..], more].concat())
    };
    for (joints, parts) in [
        ("0,0,0,0,99", ["joint wrist_roll", "1.7279 for 99 degrees"]),
        ("0,0,0,0,-3000", ["-3000 rad", "steadyhand call sense"]),
    ] {
        let (code, printed) = touch(&["--of", "origin", "--joints", joints]);
        assert!(
            code != 0 && parts.iter().all(|part| printed.contains(part)),
            "{printed}"
        );
    }
    let joints = ["--joints", "0,0,0,0,0"];
    for (axis, far) in [("x", "100 mm wide"), ("y", "100 mm high")] {
        let (code, printed) = touch(&[&["--of", axis, "--mm", "5000"], &joints[..]].concat());
        assert!(
            code != 0 && printed.contains(far) && printed.contains("200 mm"),
            "{printed}"
        );
    }
    let (_, printed) = run(&bench, &["calibrate", "show"]);
    assert!(
        printed.contains("steadyhand calibrate touch tool"),
        "{printed}"
    );
    let (code, printed) = touch(&[&["--of", "x", "--mm", "90"], &joints[..]].concat());
    assert_eq!(code, 0, "{printed}");
}

/// Runs an operator's command on the serving node. Returns whether it was done, and the output.
fn run_at_node(bench: &Bench, args: &[&str]) -> (bool, String) {
    let (code, text) = bench.said(args);
    (code == 0, text)
}

/// As accepting writes them, while the node goes on with the zeros that it was started with.
#[test]
fn refuses_all_that_moves_or_records_once_the_arms_file_has_other_zeros() {
    let bench = Bench::at_test_rate();
    let state = bench.state();
    let served = bench.serve(&["--state", &state]);
    let (done, printed) = run_at_node(&bench, &["jog", "--scene", "short", "--step", "z+1"]);
    assert!(done, "{printed}");
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/scenes/arms/so101.toml");
    let text = std::fs::read_to_string(shipped).unwrap();
    let other = text.replacen("zero_tick = 2048", "zero_tick = 2098", 1);
    std::fs::write(bench.path("scenes/arms/so101.toml"), other).unwrap();
    let before = stance(&bench)["joints"].clone();
    for args in [
        &["enable", "--scene", "short"][..],
        &["jog", "--scene", "short", "--step", "z+1"],
        &["selftest", "--scene", "short"],
        // In the scene last moved in.
        &["selftest"],
        &[
            "calibrate",
            "touch",
            "sheet",
            "--scene",
            "short",
            "--of",
            "origin",
        ],
        &["calibrate", "touch", "tool", "--scene", "short"],
        &["teach", "pose", "rest", "--scene", "short", "--yes"],
    ] {
        let (done, printed) = run_at_node(&bench, args);
        assert!(!done, "{args:?}: {printed}");
        assert!(printed.contains("zeros"), "{args:?}: {printed}");
    }
    for (tool, arguments) in [
        ("align", json!({"scene": "short"})),
        ("align", json!({"scene": "short", "touch": true})),
        (
            "align",
            json!({"scene": "short", "measured": {"dx": 0.5, "dy": 0.5}}),
        ),
        ("stroke", json!({"scene": "short"})),
    ] {
        let refused = served.call(tool, &arguments);
        assert_eq!(refused["code"], "stale_calibration", "{tool}: {refused:#}");
        let message = refused["message"].as_str().unwrap();
        assert!(
            message.contains("restart") && message.contains("nothing moved"),
            "{message}"
        );
    }
    assert_eq!(stance(&bench)["joints"], before, "nothing moved");
    assert!(!bench.path("state/calibration/proposal.toml").exists());
    // A stop stops, whatever the files say; and a node that was started again knows the zeros.
    let (done, printed) = run_at_node(&bench, &["stop"]);
    assert!(done, "{printed}");
    drop(served);
    let _served = bench.serve(&["--state", &state]);
    for command in [
        &["enable", "--scene", "default", "--for", "10m"][..],
        &["enable", "--scene", "short", "--for", "10m"],
        &["reset"],
        &["jog", "--scene", "short", "--step", "z+1"],
    ] {
        let (done, printed) = run_at_node(&bench, command);
        assert!(done, "{printed}");
    }
}

#[test]
fn a_held_drawing_does_not_go_on_once_the_arms_file_has_other_zeros() {
    let bench = Bench::at_test_rate();
    let lines: Vec<_> = (0..12).map(|line| [[0, line], [40, line]]).collect();
    bench.scene("long", &support::scene("long", &json!(lines).to_string()));
    let served = bench.serve_with_file("answer_within_s = 1\n");
    served.call("stroke", &json!({"scene": "long"}));
    served.until_job("moving");
    let (done, printed) = run_at_node(&bench, &["hold"]);
    assert!(done, "{printed}");
    served.until_job("held");
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/scenes/arms/so101.toml");
    let text = std::fs::read_to_string(shipped).unwrap();
    let other = text.replacen("zero_tick = 2048", "zero_tick = 2098", 1);
    std::fs::write(bench.path("scenes/arms/so101.toml"), other).unwrap();
    let (done, printed) = run_at_node(&bench, &["resume"]);
    assert!(!done && printed.contains("zeros"), "{printed}");
    served.until_job("held");
    let (done, printed) = run_at_node(&bench, &["stop"]);
    assert!(done, "{printed}");
}

#[test]
fn a_joint_that_was_hardly_moved_is_to_be_moved_again() {
    let bench = Bench::at_test_rate();
    let hand = recording(
        &bench,
        [
            (1000, 3100),
            (2000, 2100),
            (1000, 3100),
            (1500, 2700),
            (600, 3500),
        ],
    );
    let (code, printed) = run(
        &bench,
        &[
            "calibrate",
            "joints",
            "--from",
            hand.to_str().unwrap(),
            "--yes",
        ],
    );
    assert!(
        code != 0 && printed.contains("redo: shoulder_lift moved by"),
        "{printed}"
    );
    assert!(!bench.path("scenes/arms/so101.toml").exists());
}

const HERE: &str = "--joints=0.1,-0.3,0.4,1.2,0.05";

#[test]
fn poses_caps_and_the_calibrator_are_taught_and_kept() {
    let bench = Bench::at_test_rate();
    let path = bench.path("scenes/short.toml");
    let cap = "\n# Left of the sheet.\n[[inks]]\nname = \"black\"\nrim_m = [0.12, -0.2, 0.01] # by eye\ndepth_mm = 8.0\ndip_every_mm = 100.0\n";
    let text = std::fs::read_to_string(&path).unwrap() + cap;
    std::fs::write(&path, &text).unwrap();
    let teach = |what: &[&str]| {
        run(
            &bench,
            &[&["teach"], what, &["--scene", "short", HERE]].concat(),
        )
    };
    let (code, printed) = teach(&["pose", "ready"]);
    assert!(
        code != 0 && printed.contains("difference") && printed.contains("--yes"),
        "{printed}"
    );
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        text,
        "nobody agreed"
    );
    let (code, printed) = teach(&["pose", "ready", "--yes"]);
    assert_eq!(code, 0, "{printed}");
    let (code, printed) = teach(&["cap", "black", "--yes", "--override"]);
    assert_eq!(code, 0, "{printed}");
    let (code, printed) = teach(&["calibrator", "--yes"]);
    assert_eq!(code, 0, "{printed}");
    let taught = std::fs::read_to_string(&path).unwrap();
    assert!(
        taught.contains("ready_rad = [0.1, -0.3, 0.4, 1.2, 0.05]"),
        "{taught}"
    );
    assert!(
        taught.contains("# Left of the sheet.") && taught.contains("] # by eye"),
        "{taught}"
    );
    assert!(!taught.contains("rim_m = [0.12, -0.2"), "{taught}");
    assert!(taught.contains("calibrator_m = ["), "{taught}");
    let (_, history) = run(&bench, &["calibrate", "history"]);
    for part in [
        "pose",
        "scene short, ready",
        "cap",
        "scene short, black",
        "calibrator",
        "taught",
    ] {
        assert!(history.contains(part), "{part}: {history}");
    }
    for (what, reason) in [
        (vec!["pose", "nowhere", "--yes"], "rest, ready"),
        (vec!["cap", "blue", "--yes"], "black"),
        (vec!["calibrator", "--pen", "brush", "--yes"], "fineliner"),
    ] {
        let (code, printed) = teach(&what);
        assert!(code != 0 && printed.contains(reason), "{reason}: {printed}");
    }
}

#[test]
fn a_cap_that_moves_far_needs_an_override() {
    let bench = Bench::at_test_rate();
    let path = bench.path("scenes/short.toml");
    let cap = "\n[[inks]]\nname = \"black\"\nrim_m = [0.3, 0.2, 0.01]\ndepth_mm = 8.0\ndip_every_mm = 100.0\n";
    let text = std::fs::read_to_string(&path).unwrap() + cap;
    std::fs::write(&path, &text).unwrap();
    let (code, printed) = run(
        &bench,
        &["teach", "cap", "black", "--scene", "short", HERE, "--yes"],
    );
    assert!(code != 0 && printed.contains("--override"), "{printed}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

fn socket(bench: &Bench) -> PathBuf {
    bench.path("steadyhand/local.sock")
}

/// Sends a verb to the node's control socket.
fn send_verb(bench: &Bench, verb: &Value) -> UnixStream {
    let stream = UnixStream::connect(socket(bench)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    writeln!(&stream, "{verb}").unwrap();
    stream
}

fn read_reply(stream: &UnixStream) -> Value {
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

fn stance(bench: &Bench) -> Value {
    let reply = read_reply(&send_verb(
        bench,
        &json!({"verb": "jogged", "scene": "short"}),
    ));
    serde_json::from_str(reply["text"].as_str().unwrap()).unwrap()
}

fn until_it_is(bench: &Bench, state: &str) {
    until(state, || stance(bench), |stance| stance["state"] == state);
}

fn tip_mm(bench: &Bench) -> [f64; 3] {
    let stance = stance(bench);
    [0, 1, 2].map(|axis| stance["tip_mm"][axis].as_f64().unwrap())
}

fn jog(bench: &Bench, step: &str) -> (i32, String) {
    let output = bench.run(&["jog", "--scene", "short", "--step", step]);
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code().unwrap(), text)
}

/// A node that serves, its arm in the ready pose's neighbourhood.
fn served(bench: &Bench) -> Served {
    bench.serve(&[])
}

#[test]
fn steps_move_the_tip_by_as_much_and_are_judged_like_any_motion() {
    let bench = Bench::at_test_rate();
    let _served = served(&bench);
    for (step, axis, by) in [
        ("z+10", 2, 10.0),
        ("x-1", 0, -1.0),
        ("z-0.1", 2, -0.1),
        ("y-10", 1, -10.0),
    ] {
        let before = tip_mm(&bench);
        let (code, printed) = jog(&bench, step);
        assert_eq!(code, 0, "{step}: {printed}");
        assert!(printed.contains(" mm over"), "{printed}");
        let after = tip_mm(&bench);
        for other in 0..3 {
            let expected = if other == axis { by } else { 0.0 };
            let moved = after[other] - before[other];
            // Some counts of each servo.
            assert!(
                (moved - expected).abs() < 1.5,
                "{step}: {before:?} {after:?}"
            );
        }
    }
    let before = stance(&bench)["joints"][1]["deg"].as_f64().unwrap();
    let (code, printed) = jog(&bench, "j2+1");
    assert_eq!(code, 0, "{printed}");
    let after = stance(&bench)["joints"][1]["deg"].as_f64().unwrap();
    assert!((after - before - 1.0).abs() < 0.2, "{before} {after}");
    // Into the sheet, and beyond a joint's limit, nothing is jogged.
    let refused = (0..60).find_map(|_| {
        let (code, printed) = jog(&bench, "z-10");
        (code != 0).then_some(printed)
    });
    let reason = refused.unwrap();
    assert!(reason.contains("; nothing moved"), "{reason}");
    assert!(tip_mm(&bench)[2] > 0.0);
}

/// A step is requested and then abandoned: the key is no longer held. How far the arm went, in real time: a step at the test's rate
/// is over before a busy machine has seen it begin.
fn left_in_the_middle<T>(bench: &Bench, request: impl FnOnce(&Value) -> T) -> f64 {
    let verb = json!({"verb": "jog", "scene": "short", "step": {"axis": "y", "by": -10.0}});
    let before = tip_mm(bench)[1];
    let went_mm = || (tip_mm(bench)[1] - before).abs();
    let asking = request(&verb);
    until("moving", went_mm, |went_mm| *went_mm >= 0.5);
    let began = Instant::now();
    drop(asking);
    while stance(bench)["state"] != "stopped" && began.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(10));
    }
    let stopped = stance(bench);
    let reason = stopped["denied"].as_str().unwrap_or_default();
    assert!(reason.contains("stop"), "{stopped:#}");
    went_mm()
}

#[test]
fn hands_off_in_the_middle_of_a_step_stops_the_arm() {
    let bench = Bench::new();
    let _served = served(&bench);
    let (code, printed) = jog(&bench, "z+10");
    assert_eq!(code, 0, "{printed}");
    let went_mm = left_in_the_middle(&bench, |verb| send_verb(&bench, verb));
    assert!(went_mm < 9.5, "{went_mm}");
}

#[test]
fn whoever_leaves_what_moves_the_arm_stops_it() {
    for verb in [
        json!({"verb": "selftest", "scene": "short", "rounds": 3}),
        json!({"verb": "align", "scene": "short", "touch": false}),
        json!({"verb": "first_ink", "scene": "short"}),
        json!({"verb": "reset", "scene": "short", "arm": null}),
    ] {
        let bench = Bench::new();
        let _served = served(&bench);
        if verb["verb"] == "reset" {
            // From somewhere else than its rest.
            let (code, printed) = jog(&bench, "z+10");
            assert_eq!(code, 0, "{printed}");
        }
        let asking = send_verb(&bench, &verb);
        until_it_is(&bench, "moving");
        drop(asking);
        until_it_is(&bench, "stopped");
        let reason = stance(&bench)["denied"].clone();
        assert!(
            reason.as_str().unwrap().contains("stop"),
            "{verb}: {reason}"
        );
    }
}

/// The client leaves while the arm still brakes for a stop, so its reset has not begun.
#[test]
fn whoever_leaves_before_a_reset_begins_ends_no_stop() {
    let bench = Bench::new();
    let _served = served(&bench);
    let drawing = send_verb(&bench, &json!({"verb": "first_ink", "scene": "short"}));
    until_it_is(&bench, "moving");
    let stopping = send_verb(&bench, &json!({"verb": "stop"}));
    let asking = send_verb(&bench, &json!({"verb": "reset", "scene": "short"}));
    std::thread::sleep(Duration::from_millis(50));
    drop(asking);
    assert_eq!(read_reply(&stopping)["done"], true);
    read_reply(&drawing);
    // Longer than a reset would need to begin.
    std::thread::sleep(Duration::from_secs(1));
    let stopped = stance(&bench);
    assert_eq!(stopped["state"], "stopped", "{stopped:#}");
}

#[test]
fn hands_off_over_http_stops_the_arm_too() {
    let bench = Bench::new().with_file("require_tokens = true\n");
    let token = bench.token("hand", &["--role", "operator"]);
    let served = bench.serve(&[]);
    let (code, printed) = jog(&bench, "z+10");
    assert_eq!(code, 0, "{printed}");
    let went_mm = left_in_the_middle(&bench, |verb| {
        let (mut stream, host) = support::connect(&served);
        let body = verb.to_string();
        let length = body.len();
        write!(
            stream,
            "POST /operator HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        stream
    });
    assert!(went_mm < 9.5, "{went_mm}");
}

#[test]
fn a_stop_ends_a_step_and_nothing_is_jogged_until_a_reset() {
    let bench = Bench::at_test_rate();
    let _served = served(&bench);
    let verb = json!({"verb": "jog", "scene": "short", "step": {"axis": "z", "by": 10.0}});
    let asking = send_verb(&bench, &verb);
    until_it_is(&bench, "moving");
    let stopped = read_reply(&send_verb(&bench, &json!({"verb": "stop"})));
    assert_eq!(stopped["done"], true, "{stopped}");
    let answer = read_reply(&asking);
    assert_eq!(answer["done"], false, "{answer}");
    let (code, printed) = jog(&bench, "z+1");
    assert!(code != 0 && printed.contains("reset"), "{printed}");
}
