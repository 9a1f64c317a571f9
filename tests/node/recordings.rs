//! Tests recordings from a user's view: written while a job runs, shown, exported, replayed, and offered to MCP clients.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::support::{Bench, PATIENCE, Running, stdout};

const STROKE: &str = r#"{"scene":"short"}"#;

fn recording(bench: &Bench, job: &str) -> PathBuf {
    bench.path(&format!("state/jobs/{job}/job.mcap"))
}

fn show_json(bench: &Bench, of: &Path) -> Value {
    let shown = bench.run(&["recording", "show", of.to_str().unwrap(), "--json"]);
    assert!(shown.status.success(), "{shown:?}");
    serde_json::from_slice(&shown.stdout).unwrap()
}

/// A bench with one recorded drawing, `job-1`.
fn recorded() -> Bench {
    let bench = Bench::at_test_rate();
    let state = bench.state();
    let (code, drawn) = bench.call(&["stroke", STROKE, "--state", &state, "--record"]);
    assert_eq!(code, 0, "{drawn:#}");
    bench
}

#[test]
fn a_job_is_recorded_only_where_that_was_asked_for() {
    let bench = Bench::at_test_rate();
    let state = bench.state();
    let at = ["--state", state.as_str()];
    let (code, _) = bench.call(&[&["stroke", STROKE][..], &at].concat());
    assert_eq!(code, 0);
    assert!(!recording(&bench, "job-1").exists());
    std::fs::write(bench.path("node.toml"), "record = true\n").unwrap();
    let config = bench.path("node.toml").display().to_string();
    let (code, drawn) = bench.call(&[&["stroke", STROKE, "--config", &config][..], &at].concat());
    assert_eq!(code, 0, "{drawn:#}");
    let reply = show_json(&bench, &recording(&bench, "job-2"));
    assert_eq!(reply["state"], "reached");
    assert_eq!(
        (&reply["strokes"], &reply["missing_ticks"]),
        (&json!(2), &json!(0))
    );
    // Simulated time waits for its recording: every tick of the drawing is there.
    let ticks = reply["ticks"].as_f64().unwrap();
    let expected_ticks = reply["duration_s"].as_f64().unwrap() * 100.0;
    assert!((ticks - expected_ticks - 1.0).abs() < 1.5, "{reply:#}");
    assert_eq!(reply["topics"]["/job"], reply["topics"]["/joint_states"]);
    assert!(reply["topics"].get("/camera/top").is_none());
    let far = reply["ink_max_mm"].as_f64().unwrap();
    assert!(far > 0.0 && far < 1.0, "{reply:#}");
    let files = reply["attachments"].as_array().unwrap();
    assert!(files.contains(&json!("plan-1.json")) && files.contains(&json!("audit.log")));
}

#[test]
fn a_camera_that_nobody_knows_cannot_be_recorded() {
    let bench = Bench::at_test_rate();
    let config = bench.path("node.toml").display().to_string();
    for (key, reason) in [
        ("record = { cameras = [\"top\"] }", "no such camera"),
        ("record = { fps = 0.0 }", "above 0 and at most 30"),
    ] {
        std::fs::write(bench.path("node.toml"), key).unwrap();
        let checked = bench.run(&["check", "--config", &config]);
        let message = format!(
            "{}{}",
            stdout(&checked),
            String::from_utf8_lossy(&checked.stderr)
        );
        assert!(
            !checked.status.success() && message.contains(reason),
            "{key}: {message}"
        );
    }
}

#[cfg(not(feature = "live"))]
#[test]
fn a_live_view_that_the_program_does_not_have_is_refused() {
    let bench = Bench::at_test_rate();
    std::fs::write(bench.path("node.toml"), "record = { live_port = 0 }\n").unwrap();
    let config = bench.path("node.toml").display().to_string();
    let refused = bench.run(&["call", "stroke", STROKE, "--config", &config]);
    let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success(), "{refused:?}");
    assert!(stderr.contains("live view"), "{stderr}");
}

#[test]
fn a_recording_is_shown_exported_reported_and_replayed() {
    let bench = recorded();
    let state = bench.state();
    let out = |name: &str| bench.path(name).display().to_string();
    let run = |args: &[&str]| {
        let ran = bench.run(&[args, &["--state", &state]].concat());
        assert!(ran.status.success(), "{args:?}: {ran:?}");
        stdout(&ran)
    };
    let summary = run(&["recording", "show", "job-1", "--out", &out("show.png")]);
    assert!(summary.contains("missing         0 ticks"), "{summary}");
    assert!(
        std::fs::read(out("show.png"))
            .unwrap()
            .starts_with(b"\x89PNG")
    );
    run(&["recording", "report", "job-1", "--out", &out("report.html")]);
    let report = std::fs::read_to_string(out("report.html")).unwrap();
    for heading in [
        "Where the ink is off",
        "Following error",
        "Temperatures",
        "Bus",
        "Log",
    ] {
        assert!(report.contains(&format!("<h2>{heading}</h2>")), "{heading}");
    }
    assert!(
        !report.contains("<script") && !report.contains("http"),
        "from elsewhere"
    );
    let replayed = run(&["recording", "replay", "job-1"]);
    assert!(replayed.contains("recorded ink"), "{replayed}");
    for form in ["csv", "svg", "gcode"] {
        run(&[
            "recording",
            "export",
            form,
            "job-1",
            "--out",
            &out("exported"),
        ]);
    }
    // Every node has a first job: of two recordings neither is lost.
    let csv = ["recording", "export", "csv", "job-1", "job-1"];
    let both = run(&[&csv[..], &["--out", &out("exported")]].concat());
    assert!(both.contains("job-1_2.csv"), "{both}");
    let exported = |name: &str| std::fs::read(bench.path("exported").join(name)).unwrap();
    assert_eq!(exported("job-1.csv"), exported("job-1_2.csv"));
    let svg = std::fs::read_to_string(out("exported/job-1.svg")).unwrap();
    assert_eq!(svg.matches("<polyline").count(), 2);
    // What was exported can be drawn.
    let gcode = out("exported/job-1.gcode");
    let planned = bench.run(&["draw", &gcode, "--dry-run", "--state", &state]);
    assert!(planned.status.success(), "{planned:?}");
    run(&[
        "recording",
        "export",
        "lerobot",
        "job-1",
        "--out",
        &out("set"),
    ]);
    // The same command again gives the same data set, and no other is written over it.
    let export = ["recording", "export", "lerobot", "job-1"];
    let set = out("set");
    run(&[&export[..], &["--out", &set]].concat());
    std::fs::write(bench.path("exported/job-1.csv"), "another node's").unwrap();
    for refused in [
        [&export[..], &["--fps", "10", "--out", &set]].concat(),
        [&export[..], &["job-1", "--out", &set]].concat(),
        [&csv[..], &["--out", &out("exported")]].concat(),
    ] {
        let done = bench.run(&[&refused[..], &["--state", &state]].concat());
        assert!(!done.status.success(), "{refused:?} {done:?}");
    }
    let info = std::fs::read_to_string(out("set/meta/info.json")).unwrap();
    let info: Value = serde_json::from_str(&info).unwrap();
    assert_eq!(
        (&info["total_episodes"], &info["fps"]),
        (&json!(2), &json!(20))
    );
    let again = run(&[
        "recording",
        "export",
        "lerobot",
        "job-1",
        "--out",
        &out("other"),
        "--fps",
        "30",
    ]);
    let differs = again.lines().find(|line| line.contains("set differs"));
    assert!(
        differs.is_some_and(|line| line.contains("fps 20, not 30")),
        "{again}"
    );
    let csv = ["recording", "export", "lerobot", "job-1", "--out"];
    let too_often = bench.run(
        &[
            &csv[..],
            &[&out("often"), "--fps", "110"],
            &["--state", &state],
        ]
        .concat(),
    );
    let stderr = String::from_utf8_lossy(&too_often.stderr).into_owned();
    assert!(
        !too_often.status.success() && stderr.contains("--fps 100"),
        "{stderr}"
    );
}

/// The lift of a stop was judged as a line that is drawn, and limits were blamed that nothing had broken.
#[test]
fn a_job_that_was_stopped_is_not_replayed_and_no_limit_is_blamed() {
    let bench = Bench::new();
    let line = |y: u8| format!("[[10.0, {y}.0], [90.0, {y}.0]]");
    let lines = [10, 30, 50, 70, 90].map(line).join(", ");
    bench.scene(
        "long",
        &super::support::scene("long", &format!("[{lines}]")),
    );
    let served = bench.serve(&["--state", &bench.state(), "--record"]);
    let call = draw_in_background(&bench, &served.url, r#"{"scene":"long"}"#);
    let until = Instant::now() + PATIENCE;
    let is_drawing = || stdout(&bench.run(&["jobs", "--json"])).contains("\"moving\"");
    while !is_drawing() {
        assert!(Instant::now() < until, "nothing is drawn");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(bench.run(&["stop"]).status.success());
    while !stdout(&bench.run(&["jobs", "--json"])).contains("\"stopped\"") {
        assert!(Instant::now() < until, "it does not stop");
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(call);
    let replayed = bench.run(&["recording", "replay", "job-1"]);
    let stderr = String::from_utf8_lossy(&replayed.stderr).into_owned();
    assert!(!replayed.status.success(), "{replayed:?}");
    assert!(
        stderr.contains("`steadyhand replay job-1 --bytes`"),
        "{stderr}"
    );
    assert!(!stderr.contains("rad/s"), "{stderr}");
}

/// The queue of ticks was opened for the next motion before the last one's were fetched, so that ticks were lost uncounted, or
/// counted for the motion before.
#[test]
fn a_drawing_that_pauses_is_recorded_whole() {
    let bench = Bench::at_test_rate();
    let layer = |name: &str, y: u8| {
        format!(
            r#"<g inkscape:groupmode="layer" inkscape:label="{name}"><path stroke="black" d="M5 {y}H25"/></g>"#
        )
    };
    let layers = layer("1 a", 5) + &layer("!1 b", 15) + &layer("!1 c", 25);
    let design = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" xmlns:inkscape="http://www.inkscape.org/namespaces/inkscape" width="30mm" height="30mm" viewBox="0 0 30 30">{layers}</svg>"#
    );
    let scene = super::support::scene("layers", "[[[0.0, 0.0], [1.0, 0.0]]]").replace(
        "polylines = [[[0.0, 0.0], [1.0, 0.0]]]",
        "file = \"layers.svg\"",
    );
    bench.scene("layers", &scene);
    std::fs::create_dir_all(bench.path("scenes/designs")).unwrap();
    std::fs::write(bench.path("scenes/designs/layers.svg"), design).unwrap();
    let served = bench.serve(&["--state", &bench.state(), "--record"]);
    let call = draw_in_background(&bench, &served.url, r#"{"scene":"layers"}"#);
    let until = Instant::now() + PATIENCE;
    // A call may be answered while the drawing pauses.
    while !stdout(&bench.run(&["jobs", "--json"])).contains("\"reached\"") {
        assert!(Instant::now() < until, "it does not come to its end");
        bench.run(&["pen", "--yes"]);
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(call);
    let out = bench.path("exported").display().to_string();
    let exported = bench.run(&["recording", "export", "csv", "job-1", "--out", &out]);
    assert!(exported.status.success(), "{exported:?}");
    let table = std::fs::read_to_string(bench.path("exported/job-1.csv")).unwrap();
    let mut before = (0, 0);
    for row in table.lines().skip(1) {
        let cells: Vec<usize> = row
            .split(',')
            .skip(1)
            .take(2)
            .flat_map(str::parse)
            .collect();
        let (motion, sample) = (cells[0], cells[1]);
        let is_next = motion == before.0 && sample.wrapping_sub(before.1) <= 1;
        assert!(
            is_next || (motion == before.0 + 1 && sample <= 1),
            "{before:?}: {row}"
        );
        before = (motion, sample);
    }
    // Three layers, and the way to each pause.
    assert_eq!(before.0, 5);
    let replayed = bench.run(&["recording", "replay", "job-1"]);
    let stderr = String::from_utf8_lossy(&replayed.stderr).into_owned();
    // A busy machine may have slowed it down.
    let is_slowed = stderr.contains("slowed");
    assert!(replayed.status.success() || is_slowed, "{replayed:?}");
}

/// Calls `stroke` of a node that serves.
fn draw_in_background(bench: &Bench, url: &str, arguments: &str) -> Running {
    let mut call = bench.command(&["call", "stroke", arguments, "--node", url]);
    let call = call.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    Running(call.unwrap())
}

#[test]
fn what_is_no_recording_is_named() {
    let bench = recorded();
    let state = bench.state();
    let file = |name: &str, bytes: &[u8]| {
        std::fs::write(bench.path(name), bytes).unwrap();
        bench.path(name).display().to_string()
    };
    let start = b"\x89MCAP0\r\n";
    let own = std::fs::read(recording(&bench, "job-1")).unwrap();
    let [text, empty, cut, cut_in_magic, foreign, whole] = [
        file("text.mcap", b"no"),
        file("empty.mcap", b""),
        file("cut.mcap", &own[..60]),
        file("start.mcap", &own[..5]),
        file("foreign.mcap", &foreign_recording(true)),
        file("whole.mcap", &foreign_recording(false)),
    ];
    assert!(own.starts_with(start));
    for (of, reason) in [
        ("job-7", "recording job-7"),
        ("../job-1", "../job-1"),
        (text.as_str(), "MCAP"),
        (empty.as_str(), "is empty"),
        (cut.as_str(), "ends after 60 bytes"),
        (cut_in_magic.as_str(), "ends after 5 bytes"),
        (
            foreign.as_str(),
            "`recorder 1.0` wrote it, with the topics /joint_states",
        ),
        (whole.as_str(), "`recorder 1.0` wrote it, with no messages"),
    ] {
        let shown = bench.run(&["recording", "show", of, "--state", &state]);
        let stderr = String::from_utf8_lossy(&shown.stderr).into_owned();
        assert!(
            !shown.status.success() && stderr.contains(reason),
            "{of}: {stderr}"
        );
    }
}

/// A recording of a ROS program, or a whole one without messages.
fn foreign_recording(has_topic: bool) -> Vec<u8> {
    let text = |text: &str| {
        [
            &u32::try_from(text.len()).unwrap().to_le_bytes()[..],
            text.as_bytes(),
        ]
        .concat()
    };
    let record = |opcode: u8, body: Vec<u8>| {
        [&[opcode][..], &(body.len() as u64).to_le_bytes(), &body].concat()
    };
    let mut bytes = b"\x89MCAP0\r\n".to_vec();
    bytes.extend(record(1, [text(""), text("recorder 1.0")].concat()));
    if has_topic {
        let schema = [
            text("sensor_msgs/msg/JointState"),
            text("ros2msg"),
            text(""),
        ]
        .concat();
        bytes.extend(record(3, [vec![1, 0], schema].concat()));
        let channel = [text("/joint_states"), text("cdr"), text("")].concat();
        bytes.extend(record(4, [vec![1, 0, 1, 0], channel].concat()));
        bytes.extend(record(
            5,
            [vec![1, 0], vec![0; 20], b"hi".to_vec()].concat(),
        ));
    }
    bytes.extend(record(15, vec![0; 4]));
    bytes.extend(record(2, vec![0; 20]));
    bytes.extend(b"\x89MCAP0\r\n");
    bytes
}

#[test]
fn a_finished_recording_that_is_cut_says_so_and_a_damaged_one_is_refused() {
    let bench = recorded();
    let bytes = std::fs::read(recording(&bench, "job-1")).unwrap();
    let file = bench.path("cut.mcap");
    let all = show_json(&bench, &recording(&bench, "job-1"))["ticks"].clone();
    let mut damaged = bytes.clone();
    let at = damaged.len() / 2;
    damaged[at] ^= 0x55;
    std::fs::write(&file, damaged).unwrap();
    let shown = bench.run(&["recording", "show", file.to_str().unwrap(), "--json"]);
    let stderr = String::from_utf8_lossy(&shown.stderr).into_owned();
    assert!(
        !shown.status.success() && stderr.contains("cut.mcap"),
        "{stderr}"
    );
    // Only its index is cut off.
    std::fs::write(&file, &bytes[..bytes.len() - 20]).unwrap();
    let reply = self::show_json(&bench, &file);
    assert_eq!((&reply["ticks"], &reply["is_torn"]), (&all, &json!(true)));
    std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    let cut = bench.run(&["recording", "show", file.to_str().unwrap(), "--json"]);
    let stderr = String::from_utf8_lossy(&cut.stderr).into_owned();
    assert!(
        cut.status.success() || stderr.contains("cut off"),
        "{stderr}"
    );
}

#[test]
fn clients_learn_of_recordings_only_where_the_toolset_is_listed() {
    let bench = recorded();
    let state = bench.state();
    let config = bench.path("node.toml").display().to_string();
    let (code, _) = bench.call(&["list_recordings", "--state", &state]);
    assert_ne!(code, 0, "listed without its toolset");
    std::fs::write(bench.path("node.toml"), "toolsets = [\"recording\"]\n").unwrap();
    let at = ["--state", state.as_str(), "--config", config.as_str()];
    let (code, listed) = bench.call(&[&["list_recordings"][..], &at].concat());
    assert_eq!(
        (code, &listed["recordings"][0]["job"]),
        (0, &json!("job-1"))
    );
    let get = |job: &str| {
        let given = json!({ "job": job }).to_string();
        bench.call(&[&["get_recording", &given][..], &at].concat())
    };
    let (code, reply) = get("job-1");
    assert_eq!(
        (code, &reply["recording"]["strokes"]),
        (0, &json!(2)),
        "{reply:#}"
    );
    assert!(reply["recording"].get("file").is_none(), "{reply:#}");
    for other in ["job-9", "../job-1", ""] {
        let (code, reply) = get(other);
        assert_ne!(code, 0, "{other}: {reply:#}");
    }
}

#[test]
fn a_killed_nodes_recording_is_read_and_made_whole_at_the_next_start() {
    let bench = Bench::at_test_rate();
    let state = bench.state();
    let at = ["--state", state.as_str(), "--record"];
    let mut served = bench.serve(&at);
    let file = recording(&bench, "job-1");
    let caller = draw_in_background(&bench, &served.url, STROKE);
    let until = Instant::now() + PATIENCE;
    // Two seconds of messages have been handed to the system.
    while std::fs::metadata(&file).map_or(0, |about| about.len()) < 300_000 {
        assert!(Instant::now() < until, "the recording does not grow");
        std::thread::sleep(Duration::from_millis(20));
    }
    served.child.0.kill().unwrap();
    served.child.0.wait().unwrap();
    drop(caller);
    let torn = show_json(&bench, &file);
    assert_eq!(
        (&torn["is_torn"], &torn["state"]),
        (&json!(true), &json!(null))
    );
    assert!(torn["ticks"].as_u64().unwrap() > 100, "{torn:#}");
    let again = bench.serve(&at);
    let until = Instant::now() + PATIENCE;
    let mended = loop {
        let reply = show_json(&bench, &file);
        if reply["is_torn"] == false {
            break reply;
        }
        assert!(Instant::now() < until, "{reply:#}");
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(mended["ticks"], torn["ticks"]);
    // A job is looked for in the node that runs here, as `jobs` does.
    let of_running = show_json(&bench, Path::new("job-1"));
    assert_eq!(of_running["ticks"], torn["ticks"]);
    drop(again);
}
