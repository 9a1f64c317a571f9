//! `steadyhand draw` as a person uses it: files and words onto the sheet, refusals with their remedies, a real arm that asks,
//! a node that runs, a job that is followed, and a drawing that is gone on with.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

use crate::support;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use steadyhand::job::past_jobs;
use support::person::Person;
use support::{Bench, PATIENCE, Running, json_of, printed_by};

mod ports;

/// A hook on a page of 40 by 20 units, to each of its edges.
const HOOK: &str = r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 20"><path fill="none" stroke="black" d="M0 20V0H40V10"/></svg>"#;

/// The same hook on a page with y up.
const HOOK_POINTS: [[f64; 2]; 4] = [[0.0, 0.0], [0.0, 20.0], [40.0, 20.0], [40.0, 10.0]];

fn file(bench: &Bench, name: &str, text: &str) -> String {
    let path = bench.path(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// Runs `draw` on a node of its own: the exit code and the result.
fn drawn(bench: &Bench, args: &[&str]) -> (Option<i32>, Value) {
    let output = bench.run(&[&["draw", "--json"], args].concat());
    (output.status.code(), json_of(&output))
}

fn is_near(found: &Value, expected: [f64; 2]) -> bool {
    let off = |axis: usize| (found[axis].as_f64().unwrap() - expected[axis]).abs();
    off(0) < 0.01 && off(1) < 0.01
}

/// Jobs that a state folder holds.
/// Number of jobs that are kept, each in a folder of its own.
fn jobs(state: &str) -> usize {
    let kept = std::fs::read_dir(Path::new(state).join("jobs"));
    let is_job = |entry: &std::io::Result<std::fs::DirEntry>| {
        entry.as_ref().is_ok_and(|entry| entry.path().is_dir())
    };
    kept.map_or(0, |kept| kept.filter(is_job).count())
}

/// It took a tenth of the arm's time to play what the picture shows, and said the title with each step.
#[test]
fn a_simulated_drawing_in_a_terminal_is_done_at_once_and_titled_once() {
    let bench = Bench::new();
    let mut person = Person::at(&bench, &["draw", "--text", "Hi", "--scene", "short"]);
    person.sees("Ctrl-C stops");
    person.sees("drawn.png");
    person.ends_with(0);
    let printed = person.transcript();
    assert_eq!(printed.matches("“Hi” in ").count(), 1, "{printed}");
    let mut person = Person::at(
        &bench,
        &["draw", "--text", "Hi", "--scene", "short", "--watch"],
    );
    person.sees("s left");
    person.ends_with(0);
}

#[test]
fn a_file_is_drawn_where_it_was_asked_for() {
    let bench = Bench::at_test_rate();
    let hook = file(&bench, "hook.svg", HOOK);
    let (code, result) = drawn(
        &bench,
        &[
            &hook,
            "--size",
            "4cm",
            "--at",
            "20mm,30mm",
            "--rotate",
            "90",
        ],
    );
    assert_eq!(code, Some(0), "{result:#}");
    let shown = &result["drawing"];
    // Its corner is where it was put, and it is as high now as it was wide.
    assert!(is_near(&shown["box_mm"][0], [20.0, 30.0]), "{shown:#}");
    assert!(is_near(&shown["box_mm"][1], [40.0, 70.0]), "{shown:#}");
    assert_eq!(shown["title"], "hook.svg in default");
    assert_eq!(shown["size_from"], "asked");
    let off_mm = result["deviation_mm_max"].as_f64().unwrap();
    assert!(off_mm < 0.9, "{result:#}");
    let length_mm = result["pen_down_mm"].as_f64().unwrap();
    assert!((length_mm - 70.0).abs() < 0.5, "{result:#}");
    let picture = PathBuf::from(shown["picture"].as_str().unwrap());
    assert!(std::fs::read(picture).unwrap().starts_with(b"\x89PNG"));
    assert_eq!(result["files"].as_array().unwrap().len(), 2, "{result:#}");
}

#[test]
fn a_text_may_begin_with_a_minus_and_too_high_letters_name_their_option() {
    let bench = Bench::at_test_rate();
    let minus = bench.run(&["draw", "--dry-run", "--text", "-hi"]);
    let printed = printed_by(&minus);
    assert_eq!(minus.status.code(), Some(0), "{printed}");
    assert!(printed.contains("“-hi” in default"), "{printed}");
    let high = bench.run(&["draw", "--text", "hi", "--letter-height", "300mm"]);
    let printed = printed_by(&high);
    assert_eq!(high.status.code(), Some(1), "{printed}");
    assert!(printed.contains("--text hi --fit"), "{printed}");
    assert!(!printed.contains("--size"), "{printed}");
}

#[test]
fn a_pause_is_noted_where_the_drawing_pauses() {
    let bench = Bench::at_test_rate();
    let layer = |label: &str, y: u32| {
        format!(
            r#"<g inkscape:groupmode="layer" inkscape:label="{label}"><path fill="none" stroke="black" d="M0 {y}h20"/></g>"#
        )
    };
    let layers = layer("1 thin", 5) + &layer("!2 thick", 9);
    let svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" xmlns:inkscape="http://www.inkscape.org/namespaces/inkscape" viewBox="0 0 20 20">{layers}</svg>"#
    );
    let design = file(&bench, "layers.svg", &svg);
    let of_pen = |pen: &str| {
        let draw = ["draw", "--dry-run", "--scene", "pens_by_hand", "--pens"];
        printed_by(&bench.run(&[&draw[..], &[pen, &design]].concat()))
    };
    let pauses = "layer `!2 thick`";
    assert!(of_pen("1,2").contains(pauses), "{}", of_pen("1,2"));
    let without = of_pen("1");
    assert!(without.contains("1 stroke of other pens"), "{without}");
    assert!(!without.contains(pauses), "{without}");
}

#[test]
fn words_are_drawn_and_people_are_told_what_comes() {
    let bench = Bench::at_test_rate();
    let output = bench.run(&["draw", "--text", "hi", "--letter-height", "8mm"]);
    let printed = printed_by(&output);
    assert_eq!(output.status.code(), Some(0), "{printed}");
    for expected in [
        "“hi” in default",
        "sheet  x ",
        "in its file",
        " mm, 1 pen: fineliner",
        "  drawn         ",
        " drawn as ",
        "comes within ",
        "arm (simulated so101) of node local, at simulator",
        "draw-plan.png",
        " line, in ",
        "drawn.png",
    ] {
        assert!(printed.contains(expected), "{expected}: {printed}");
    }
}

#[test]
fn a_dry_run_moves_nothing_and_keeps_no_job() {
    let bench = Bench::at_test_rate();
    let (hook, state) = (file(&bench, "hook.svg", HOOK), bench.state());
    let out = bench.path("pictures").display().to_string();
    let args = [
        &hook,
        "--dry-run",
        "--fit",
        "--out",
        &out,
        "--state",
        &state,
    ];
    let (code, shown) = drawn(&bench, &args);
    assert_eq!(
        (code, &shown["success"]),
        (Some(0), &true.into()),
        "{shown:#}"
    );
    let size_mm = shown["drawing"]["size_mm"].as_f64().unwrap();
    assert!((97.0..98.6).contains(&size_mm), "{shown:#}");
    assert_eq!(shown["drawing"]["size_from"], "fitted", "{shown:#}");
    assert!(bench.path("pictures/draw-plan.png").is_file());
    assert_eq!(jobs(&state), 0);
}

#[test]
fn pictures_of_a_node_that_runs_lie_in_the_folder_of_the_command() {
    let bench = Bench::at_test_rate();
    let hook = file(&bench, "hook.svg", HOOK);
    let _node = bench.serve(&["--state", &bench.state()]);
    let out = bench.path("pictures").display().to_string();
    let (code, shown) = drawn(&bench, &[&hook, "--fit", "--out", &out, "--yes"]);
    assert_eq!(code, Some(0), "{shown:#}");
    let files = shown["files"].as_array().unwrap();
    assert_eq!(files.len(), 2, "{shown:#}");
    for path in files.iter().filter_map(Value::as_str) {
        assert!(path.starts_with(&out), "{path}");
        assert!(std::path::Path::new(path).is_file(), "{path}");
    }
}

#[test]
fn what_is_too_large_is_offered_as_the_command_that_fits_it() {
    let bench = Bench::at_test_rate();
    let hook = file(&bench, "hook.svg", HOOK);
    let place = ["--at", "25,35", "--rotate", "90"];
    let (code, refused) = drawn(
        &bench,
        &[&[hook.as_str(), "--size", "200"], &place[..]].concat(),
    );
    assert_eq!(code, Some(1), "{refused:#}");
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("100.0 × 200.0 mm"), "{message}");
    let next = message.split("Next: `steadyhand ").nth(1).unwrap();
    let next: Vec<&str> = next.split('`').next().unwrap().split(' ').collect();
    assert!(
        next.contains(&"--fit") && !next.contains(&"--size"),
        "{next:?}"
    );
    let (code, result) = drawn(&bench, &[&[hook.as_str(), "--fit"], &place[..]].concat());
    assert_eq!(code, Some(0), "{result:#}");
}

/// A device has no end, and a pipe made a command wait for ever.
#[cfg(target_os = "linux")]
#[test]
fn only_plain_files_are_read() {
    let bench = Bench::at_test_rate();
    std::fs::create_dir_all(bench.path("scenes/designs")).unwrap();
    let pipe = bench.path("scenes/designs/pipe.svg");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    let pipe = pipe.display().to_string();
    let scene = support::scene("piped", "[]");
    let scene = scene.replace("polylines = []", "file = \"pipe.svg\"\nsize_mm = 60.0");
    bench.scene("piped", &scene);
    let piped = ["call", "stroke", r#"{"scene":"piped","dry_run":true}"#];
    let refused = bench.run(&piped);
    assert_ne!(refused.status.code(), Some(0), "{}", printed_by(&refused));
    for file in ["/dev/zero", pipe.as_str()] {
        for args in [
            vec!["draw", file, "--dry-run"],
            vec!["plan", "--design", file],
            vec!["call", "sense", "--config", file],
            vec!["audit", "verify", file],
        ] {
            let done = bench.run(&args);
            assert_ne!(done.status.code(), Some(0), "{args:?}");
            let words = printed_by(&done);
            assert!(words.contains("plain file"), "{args:?}: {words}");
        }
    }
}

/// The default sheet, moved so far away that only its near part is reached.
fn far_scene() -> String {
    let far = support::scene("far", support::SHORT_LINES);
    far.replace("[0.05, -0.125, 0.005]", "[0.05, -0.32, 0.005]")
}

#[test]
fn strokes_beyond_reach_are_one_refusal_with_a_size_that_is_drawn() {
    let bench = Bench::at_test_rate();
    bench.scene("far", &far_scene());
    let lines: Vec<String> = (0..13)
        .map(|row| format!("[[0, {row}], [13, {row}]]"))
        .collect();
    let rows = file(&bench, "rows.json", &format!("[{}]", lines.join(", ")));
    let place = ["--scene", "far", "--at", "2,2"];
    let output = bench.run(&[&["draw", &rows, "--size", "96mm"], &place[..]].concat());
    let printed = printed_by(&output);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert_eq!(printed.matches("refused: ").count(), 1, "{printed}");
    assert!(printed.contains(" more); the worst: "), "{printed}");
    let size = printed
        .split("Next: ")
        .nth(1)
        .and_then(|next| next.split("--size ").nth(1));
    let size = size.unwrap_or_else(|| panic!("no size: {printed}"));
    let size = size.split('`').next().unwrap().trim();
    let output = bench.run(&[&["draw", &rows, "--size", size], &place[..]].concat());
    assert_eq!(
        output.status.code(),
        Some(0),
        "{size}: {}",
        printed_by(&output)
    );
}

#[test]
fn mistakes_on_the_command_line_say_what_to_do() {
    let bench = Bench::at_test_rate();
    let hook = file(&bench, "hook.svg", HOOK);
    let other = file(&bench, "other.svg", HOOK);
    let state = bench.state();
    for (args, expected) in [
        (vec!["draw"], "--text"),
        (vec!["draw", "missing.svg"], "cannot read missing.svg"),
        (vec!["draw", &hook, &other], "takes one"),
        (vec!["draw", &hook, "--text", "hi"], "cannot be used with"),
        (
            vec!["draw", &hook, "--fit", "--size", "9"],
            "cannot be used with",
        ),
        (
            vec!["draw", &hook, "--center", "--at", "1,2"],
            "cannot be used with",
        ),
        (vec!["draw", &hook, "--at", "1"], "20mm,30mm"),
        (vec!["draw", "--resume"], "--state DIR"),
        (vec!["draw", "--resume", "--state", &state], "unfinished"),
        (vec!["draw", &hook, "--size", "1,000mm"], "1000mm"),
        (vec!["draw", &hook, "--scale", "2"], "--size 60mm"),
        (vec!["draw", &hook, "--merge", "-1mm"], "-1 mm"),
        (
            vec!["draw", &hook, "--letter-height", "5mm"],
            "--letter-height",
        ),
        (
            vec!["draw", &hook, "--scene", "../mine/desk.toml"],
            "`--scenes ../mine --scene desk`",
        ),
        (
            vec!["draw", &hook, "--scene", "widowx"],
            "such as `a5_sheet`",
        ),
        (vec!["plan", &hook], "`steadyhand draw "),
        (vec!["scene", "check", "x.svg"], "not a scene"),
        (vec!["draw", "--resume", "--size", "9"], "--size"),
        (vec!["draw", &hook, "--scene", "defualt"], "Valid: default"),
        (
            vec!["call", "stroke", "--design", &hook],
            "`steadyhand draw ",
        ),
    ] {
        let output = bench.run(&args);
        assert_ne!(output.status.code(), Some(0), "{args:?}");
        let printed = printed_by(&output);
        assert!(printed.contains(expected), "{args:?}: {printed}");
    }
}

#[test]
fn one_pen_draws_all_colours() {
    let bench = Bench::at_test_rate();
    let two = r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 20"><path stroke="black" d="M1 1h9"/><path stroke="red" d="M1 5h9"/></svg>"#;
    let two = file(&bench, "two.svg", two);
    let pens = |more: &[&str]| {
        let args = [&[two.as_str(), "--scene", "two_pens", "--dry-run"], more].concat();
        let (code, shown) = drawn(&bench, &args);
        assert_eq!(code, Some(0), "{shown:#}");
        shown["drawing"]["pens"].as_array().unwrap().len()
    };
    assert_eq!(pens(&[]), 2);
    assert_eq!(pens(&["--one-pen"]), 1);
}

#[test]
fn an_operators_token_draws_on_a_node_elsewhere_and_a_planners_does_not() {
    let bench = Bench::at_test_rate().with_file("require_tokens = true\n");
    let hook = file(&bench, "hook.svg", HOOK);
    let token = |role: &str| {
        let token = bench.token(role, &["--role", role]);
        file(&bench, &format!("{role}.token"), &token)
    };
    let (operator, planner) = (token("operator"), token("planner"));
    let served = bench.serve(&[]);
    let host = served.host();
    let draw = |token: &str| {
        let at = ["--node", &host, "--token-file", token];
        bench.run(&[&["draw", &hook, "--size", "20mm", "--json"], &at[..]].concat())
    };
    let refused = draw(&planner);
    assert_eq!(refused.status.code(), Some(1), "{}", printed_by(&refused));
    assert!(
        printed_by(&refused).contains("operator's token"),
        "{}",
        printed_by(&refused)
    );
    // A simulated arm in that node needs no confirmation.
    let done = draw(&operator);
    assert_eq!(done.status.code(), Some(0), "{}", printed_by(&done));
    assert_eq!(json_of(&done)["drawing"]["title"], "hook.svg in default");
}

/// HP-GL of plotters has labels in 8-bit letters, which are not UTF-8: kept with the job as they came, and in the revision.
#[test]
fn a_plotter_file_with_letters_of_eight_bits_is_drawn_and_replayed() {
    let bench = Bench::at_test_rate();
    let state = bench.state();
    let revision = |last: u8| {
        let path = bench.path("label.plt");
        let args = [
            &b"IN;SP1;PU400,400;PD800,400;PU400,600;SI0.5,0.7;LBi\xe4"[..],
            &[last],
            b"\x03;",
        ];
        std::fs::write(&path, args.concat()).unwrap();
        let path = path.display().to_string();
        let (code, reply) = drawn(&bench, &[&path, "--size", "20mm", "--state", &state]);
        assert_eq!(code, Some(0), "{reply:#}");
        reply["drawing"]["revision"].clone()
    };
    assert_ne!(revision(b'l'), revision(b'i'));
    for job in ["job-1", "job-2"] {
        let replayed = bench.run(&["replay", job, "--state", &state]);
        assert_eq!(replayed.status.code(), Some(0), "{}", printed_by(&replayed));
    }
}

/// Whatever moves in a drawing's scene is read back with that scene: at the next start, and by `jobs`.
#[test]
fn a_reset_after_a_drawing_keeps_the_drawing() {
    let bench = Bench::at_test_rate();
    let (hook, state) = (file(&bench, "hook.svg", HOOK), bench.state());
    let mut served = bench.serve(&["--state", &state]);
    let done = bench.run(&["draw", &hook, "--size", "20mm", "--json"]);
    assert_eq!(done.status.code(), Some(0), "{}", printed_by(&done));
    let output = bench.run(&["call", "reset", "--json", "--node", &served.host()]);
    assert_eq!(output.status.code(), Some(0), "{}", printed_by(&output));
    assert_eq!(served.child.terminate(), Some(0));
    let job = |id: &str| json_of(&bench.run(&["jobs", id, "--json", "--state", &state]));
    let (drawn, reset) = (job("job-1"), job("job-2"));
    assert_eq!(
        (&drawn["tool"], &reset["tool"]),
        (&"stroke".into(), &"reset".into())
    );
    assert_eq!(reset["revision"], drawn["revision"], "{reset:#}");
    assert!(
        drawn["drawing"]
            .as_str()
            .is_some_and(|name| !name.is_empty()),
        "{drawn:#}"
    );
    assert_eq!(reset["drawing"], drawn["drawing"], "{reset:#}");
    assert_eq!(reset["design_hash"], drawn["design_hash"], "{reset:#}");
}

#[test]
fn a_scene_of_ones_own_is_written_checked_and_drawn_in() {
    let bench = Bench::at_test_rate();
    let scene = bench.path("scenes/desk.toml").display().to_string();
    let new = |more: &[&str]| bench.run(&[&["scene", "new", &scene, "--yes"], more].concat());
    let written = new(&["--sheet", "12x8cm"]);
    assert_eq!(written.status.code(), Some(0), "{}", printed_by(&written));
    assert!(bench.path("scenes/desk.png").is_file());
    let checked = bench.run(&["scene", "check", &scene]);
    assert_eq!(checked.status.code(), Some(0), "{}", printed_by(&checked));
    let hook = file(&bench, "hook.svg", HOOK);
    let (code, shown) = drawn(&bench, &[&hook, "--scene", "desk", "--fit"]);
    assert_eq!(code, Some(0), "{shown:#}");
    assert_eq!(
        shown["drawing"]["sheet_mm"],
        serde_json::json!([120.0, 80.0])
    );
    // As wide as the sheet but for a margin, and half as high.
    let left_mm = shown["drawing"]["box_mm"][0][0].as_f64().unwrap();
    assert!((0.7..1.5).contains(&left_mm), "{shown:#}");
    assert!(
        is_near(
            &shown["drawing"]["box_mm"][0],
            [left_mm, 10.0 + left_mm / 2.0]
        ),
        "{shown:#}"
    );
    // An arm that no scene is for gets its first one.
    let first = bench.path("scenes/first.toml").display().to_string();
    let first = bench.run(&["scene", "new", &first, "--yes", "--arm", "custom"]);
    assert_eq!(first.status.code(), Some(0), "{}", printed_by(&first));
    let again = new(&[]);
    assert!(
        printed_by(&again).contains("already exists"),
        "{}",
        printed_by(&again)
    );
    for (more, expected) in [
        (&["--force", "--sheet", "700x700"][..], "a smaller --sheet"),
        (&["--force", "--arm", "nothing"], "`nothing`"),
        (&["--force", "--name", "other"], "its file"),
        (&["--force", "--sheet", "big"], "100x80mm"),
    ] {
        let refused = new(more);
        assert_ne!(refused.status.code(), Some(0), "{more:?}");
        assert!(
            printed_by(&refused).contains(expected),
            "{more:?}: {}",
            printed_by(&refused)
        );
    }
    let listed = printed_by(&bench.run(&["scene", "list"]));
    assert!(
        listed.contains("desk ") && listed.contains("overlay"),
        "{listed}"
    );
}

#[test]
fn a_scene_is_asked_for_at_a_terminal() {
    let bench = Bench::at_test_rate();
    let scene = bench.path("scenes/desk.toml").display().to_string();
    let mut person = Person::at(&bench, &["scene", "new", &scene]);
    person.sees("which arm");
    person.sees("its number");
    person.types("1\n");
    person.sees("how large");
    person.types("90x60mm\n");
    person.sees("name?");
    person.types("brush\n");
    person.sees("is written");
    person.ends_with(0);
    let written = std::fs::read_to_string(&scene).unwrap();
    for expected in [
        "size_mm = [90.0, 60.0]",
        "name = \"brush\"",
        "arm = \"so101\"",
    ] {
        assert!(written.contains(expected), "{expected}: {written}");
    }
}

#[test]
fn a_simulated_arm_that_was_killed_goes_on_without_a_question() {
    let bench = Bench::at_test_rate();
    let (hook, state) = (file(&bench, "hook.svg", HOOK), bench.state());
    let mut served = bench.serve(&["--state", &state]);
    let mut draw = bench.command(&["draw", &hook, "--size", "60mm"]);
    let draw = draw.stdout(std::process::Stdio::null());
    let mut draw = Running(draw.stderr(std::process::Stdio::null()).spawn().unwrap());
    let began = Instant::now();
    let drawn_mm = || {
        let output = bench.run(&["jobs", "job-1", "--json", "--state", &state]);
        let reply: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        reply["drawn_mm"].as_f64().unwrap_or(0.0)
    };
    while drawn_mm() < 3.0 {
        assert!(began.elapsed() < PATIENCE, "it does not draw");
        sleep(Duration::from_millis(50));
    }
    served.child.0.kill().unwrap();
    served.child.0.wait().unwrap();
    // Its terminal reports that it no longer follows the job.
    assert_eq!(draw.exit_code(), Some(1));
    let listed = json_of(&bench.run(&["jobs", "job-1", "--json", "--state", &state]));
    assert_eq!(listed["state"], "interrupted", "{listed:#}");
    let done = bench.run(&["--state", &state, "draw", "--resume", "--json"]);
    assert_eq!(done.status.code(), Some(0), "{}", printed_by(&done));
    let done = json_of(&done);
    assert!(
        done["drawing"]["resumes"]
            .as_str()
            .unwrap()
            .starts_with("job-1: "),
        "{done:#}"
    );
    let message = done["message"].as_str().unwrap();
    assert!(message.contains("complete"), "{message}");
}

/// Returns the state folders in the bench's temporary folder.
fn practice_states(bench: &Bench) -> Vec<PathBuf> {
    let users = std::fs::read_dir(bench.path("tmp")).unwrap().flatten();
    let folders = users.flat_map(|user| std::fs::read_dir(user.path()).into_iter().flatten());
    let states = folders.flatten().map(|folder| folder.path().join("state"));
    states.filter(|state| state.is_dir()).collect()
}

/// Begins a drawing on a simulated arm of its own, and ends it in the middle.
fn leave_half_done(bench: &Bench, signal: Signal) {
    let mut command = bench.command(&["draw", "--text", "hello hello", "--fit", "--watch"]);
    let command = command.stdout(std::process::Stdio::null());
    let command = command.stderr(std::process::Stdio::null());
    let mut draw = Running(command.spawn().unwrap());
    let began = Instant::now();
    let drawn_mm = || {
        let states = practice_states(bench);
        let pasts = states
            .iter()
            .flat_map(|state| past_jobs(state).unwrap_or_default());
        let drawn = pasts.flatten().map(|past| past.drawn.mm);
        drawn.fold(0.0, f64::max)
    };
    while drawn_mm() < 20.0 {
        assert!(began.elapsed() < PATIENCE, "it does not draw");
        sleep(Duration::from_millis(20));
    }
    draw.signal(signal);
    draw.0.wait().unwrap();
}

#[test]
fn a_practice_drawing_that_was_cut_short_is_resumed_without_a_folder() {
    // In real time, so that there is a middle.
    let bench = Bench::new();
    for signal in [Signal::INT, Signal::KILL] {
        leave_half_done(&bench, signal);
        let (code, listed) = bench.said(&["jobs"]);
        assert!(code == 0 && listed.contains("job-1"), "{listed}");
        let done = bench.run(&["draw", "--resume", "--json"]);
        assert_eq!(done.status.code(), Some(0), "{}", printed_by(&done));
        let message = json_of(&done)["message"].to_string();
        assert!(message.contains("complete"), "{message}");
        assert_eq!(practice_states(&bench), Vec::<PathBuf>::new());
    }
    let (code, refused) = bench.said(&["draw", "--resume"]);
    assert!(code == 1 && refused.contains("no node"), "{refused}");
}

#[test]
fn a_later_practice_drawing_gives_up_the_one_before() {
    let bench = Bench::new();
    leave_half_done(&bench, Signal::KILL);
    assert_eq!(practice_states(&bench).len(), 1);
    let hook = file(&bench, "hook.svg", HOOK);
    assert_eq!(drawn(&bench, &[&hook]).0, Some(0));
    assert_eq!(practice_states(&bench), Vec::<PathBuf>::new());
}

#[test]
fn the_size_says_what_of_the_design_is_drawn() {
    let bench = Bench::at_test_rate();
    let svg = r#"<svg xmlns="http://www.w3.org/2000/svg" width="80mm" height="80mm" viewBox="0 0 80 80" fill="none"><path stroke="black" d="M5 5h20v20"/><path stroke="white" d="M70 70h9v9"/></svg>"#;
    let partly = file(&bench, "partly.svg", svg);
    let (_, shown) = drawn(&bench, &[&partly, "--dry-run"]);
    assert_eq!(shown["drawing"]["size_mm"], 74.0, "{shown:#}");
    assert_eq!(shown["drawing"]["drawn_mm"], 20.0, "{shown:#}");
    let whole = file(&bench, "whole.svg", &svg.replace("white", "black"));
    let (_, shown) = drawn(&bench, &[&whole, "--dry-run"]);
    assert!(shown["drawing"]["drawn_mm"].is_null(), "{shown:#}");
}

#[test]
fn a_drawing_on_a_disabled_simulated_arm_says_that_it_enables_itself() {
    let bench = Bench::at_test_rate();
    let (hook, state) = (file(&bench, "hook.svg", HOOK), bench.state());
    let _served = bench.serve(&["--state", &state]);
    let notes = || drawn(&bench, &[&hook, "--dry-run"]).1["drawing"]["notes"].to_string();
    assert!(!notes().contains("operator's order"), "{}", notes());
    assert_eq!(bench.run(&["disable"]).status.code(), Some(0));
    assert!(notes().contains("operator's order"), "{}", notes());
}
