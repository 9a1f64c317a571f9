//! Tests which node a command acts on, where several run, where a node file is named, and where none runs.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;

use crate::support;
use support::Bench;
use support::person::Person;
use support::{Running, Served};

/// Two nodes of one user, each of a file of its own.
struct TwoNodes {
    bench: Bench,
    files: [String; 2],
    served: [Served; 2],
}

/// Writes a node file with a state folder of its own.
fn file(bench: &Bench, name: &str) -> String {
    let text = format!(
        "name = \"{name}\"\nstate = {:?}\n\n[[arms]]\nname = \"arm-{name}\"\nmodel = \"so101\"\nport = \"simulator\"\n",
        bench.path(&format!("state-{name}"))
    );
    let path = bench.path(&format!("{name}.toml"));
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

impl TwoNodes {
    fn new() -> Self {
        let bench = Bench::new();
        let files = ["left", "right"].map(|name| file(&bench, name));
        let served = files
            .each_ref()
            .map(|file| bench.serve(&["--config", file]));
        Self {
            bench,
            files,
            served,
        }
    }
}

#[test]
fn a_node_file_names_the_node_that_a_command_acts_on() {
    let nodes = TwoNodes::new();
    let [left, right] = &nodes.files;
    let (code, _, printed) = nodes
        .bench
        .streams(&["--config", right, "enable", "--scene", "short"]);
    assert_eq!(code, 0, "{printed}");
    let named = format!("on node right, arm arm-right (so101) at simulator, file {right}");
    assert!(printed.contains(&named), "{printed}");
    let touched = nodes.bench.streams(&[
        "--config",
        left,
        "calibrate",
        "touch",
        "sheet",
        "--scene",
        "short",
        "--of",
        "origin",
    ]);
    assert_eq!(touched.0, 0, "{touched:?}");
    assert!(touched.2.contains("on node left"), "{touched:?}");
    // The joints are that node's, and the touch lies with its state.
    assert!(
        nodes.bench.path("state-left/calibration").exists(),
        "{touched:?}"
    );
    let discarded = nodes
        .bench
        .streams(&["--config", left, "calibrate", "discard"]);
    assert_eq!(discarded.0, 0, "{discarded:?}");
}

#[test]
fn a_file_whose_node_does_not_run_means_no_other_node() {
    let nodes = TwoNodes::new();
    let absent = file(&nodes.bench, "absent");
    for verb in [
        &["status"][..],
        &["enable", "--scene", "short"],
        &["torque-off", "--yes"],
        &["stop"],
        &["jog", "--scene", "short", "--step", "z+1"],
    ] {
        let (code, out, printed) = nodes
            .bench
            .streams(&[&["--config", &absent], verb].concat());
        assert_ne!(code, 0, "{verb:?}: {out}");
        let how = format!("`steadyhand --config {absent} --scenes ");
        assert!(
            printed.contains(&how) && printed.contains(" serve`"),
            "{verb:?}: {printed}"
        );
    }
    let touch = ["calibrate", "touch", "sheet", "--scene", "short"];
    let (code, _, printed) = nodes
        .bench
        .streams(&[&["--config", &absent], &touch[..]].concat());
    assert_ne!(code, 0);
    assert!(printed.contains("serve`"), "{printed}");
}

#[test]
fn several_nodes_are_listed_and_a_person_picks_one() {
    let nodes = TwoNodes::new();
    for verb in [
        &["status"][..],
        &["enable", "--scene", "short"],
        &["calibrate", "history"],
        &["jobs"],
    ] {
        let (code, out, printed) = nodes.bench.streams(verb);
        assert_ne!(code, 0, "{verb:?}: {out}");
        for expected in [
            "2 nodes",
            "node left, arm arm-left (so101) at simulator",
            "node right, arm arm-right (so101) at simulator",
            "Nothing was done",
        ] {
            assert!(
                printed.contains(expected),
                "{verb:?}: {expected}: {printed}"
            );
        }
    }
    let mut person = Person::at(&nodes.bench, &["enable", "--scene", "short"]);
    person.sees("Which one?");
    person.sees("2: node right");
    person.sees("its number");
    person.types("2\n");
    person.sees("on node right");
    person.sees("scene short");
    person.ends_with(0);
}

/// Builds a command that is typed in a folder and says nothing about the folders of scenes and pictures.
fn typed_in(bench: &Bench, folder: &str, args: &[&str]) -> Command {
    let mut command = Command::new(support::binary());
    command
        .args(args)
        .current_dir(bench.path(folder))
        .env("XDG_RUNTIME_DIR", bench.path(""))
        .env("XDG_STATE_HOME", bench.path("state-home"));
    command
}

/// An emergency stop that was latched in a state folder at the current directory was forgotten.
#[test]
fn state_left_in_the_current_folder_keeps_a_node_from_elsewhere() {
    let bench = Bench::new();
    std::fs::create_dir_all(bench.path("one")).unwrap();
    std::fs::create_dir_all(bench.path("other/state/jobs")).unwrap();
    std::fs::write(bench.path("one/node.toml"), "state = \"state\"\n").unwrap();
    let told = |command: &[&str]| {
        let all = [&["--config", "../one/node.toml"], command].concat();
        let output = typed_in(&bench, "other", &all).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (
            output.status.code(),
            String::from_utf8_lossy(&text).into_owned(),
        )
    };
    let folders = ["one/state", "other/state"].map(|folder| bench.path(folder));
    for command in [&["check"][..], &["call", "list_nodes"]] {
        let (code, text) = told(command);
        assert!(code == Some(1) && text.contains("--state"), "{text}");
        for folder in ["other/../one/state", "other/state"] {
            assert!(text.contains(folder), "{folder}: {text}");
        }
    }
    std::fs::rename(&folders[1], &folders[0]).unwrap();
    let (_, text) = told(&["check"]);
    assert!(!text.contains("--state"), "{text}");
}

/// A taught pose was written into the scene of the folder in which the command was typed, and pictures were named by paths that
/// lead nowhere from there.
#[test]
fn folders_in_a_node_file_are_beside_it_wherever_a_command_runs() {
    let bench = Bench::new();
    for folder in ["one", "other"] {
        let scenes = bench.path(folder).join("scenes");
        std::fs::create_dir_all(&scenes).unwrap();
        std::fs::copy(bench.path("scenes/short.toml"), scenes.join("short.toml")).unwrap();
    }
    let text = "name = \"one\"\nscenes = \"scenes\"\noutput = \"out\"\nstate = \"state\"\n";
    std::fs::write(bench.path("one/node.toml"), text).unwrap();
    let scene = |folder: &str| {
        std::fs::read_to_string(bench.path(folder).join("scenes/short.toml")).unwrap()
    };
    let untouched = scene("other");
    let serve = ["--config", "node.toml", "serve", "--http", "127.0.0.1:0"];
    let served = support::served(typed_in(&bench, "one", &serve));
    let run = |args: &[&str]| {
        let all = [&["--config", "../one/node.toml"], args].concat();
        let output = typed_in(&bench, "other", &all).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{args:?}: {output:?}");
        printed
    };
    run(&[
        "teach",
        "pose",
        "ready",
        "--scene",
        "short",
        "--joints=0.1,-0.3,0.4,1.2,0.05",
        "--yes",
    ]);
    assert_eq!(scene("other"), untouched);
    assert_ne!(scene("one"), untouched);
    drop(served);
    let printed = run(&[
        "call",
        "stroke",
        r#"{"scene":"short","dry_run":true}"#,
        "--json",
    ]);
    let answer: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let plan = answer.pointer("/files/0").unwrap();
    let plan = Path::new(plan.as_str().unwrap());
    assert!(plan.is_absolute() && plan.is_file(), "{answer:#}");
    assert!(bench.path("one/state").is_dir());
}

/// Enter and Ctrl-D moved the arm of the first node.
#[test]
fn without_an_answer_no_node_is_picked() {
    let nodes = TwoNodes::new();
    let mut person = Person::at(&nodes.bench, &["torque-off", "--yes"]);
    person.sees("Which one?");
    for answer in ["\n", "3\n"] {
        person.sees("its number [1 to 2]");
        person.types(answer);
        person.sees("1 to 2");
    }
    person.sees("its number [1 to 2]");
    person.types("\u{4}");
    person.sees("ended without");
    person.ends_with(1);
}

/// It answered a question that had not been asked yet.
#[test]
fn what_is_typed_before_a_question_does_not_answer_it() {
    let nodes = TwoNodes::new();
    let mut person = Person::at(&nodes.bench, &["torque-off"]);
    person.types("1\nyes\n");
    person.sees("its number");
    // The question is there before its answer is heard.
    std::thread::sleep(std::time::Duration::from_millis(300));
    person.types("2\n");
    person.sees("on node right");
    person.sees("`yes` to");
    person.types("no\n");
    person.sees("nothing was done");
    person.ends_with(1);
}

#[test]
fn a_stop_with_a_word_too_many_or_in_another_spelling_stops_and_says_so() {
    let nodes = TwoNodes::new();
    let status_of = |file| nodes.bench.streams(&["--config", file, "status"]).1;
    let [left, right] = &nodes.files;
    let (code, printed, said) = nodes
        .bench
        .streams(&["--config", left, "STOP", "--arm", "arm"]);
    assert_eq!(code, 0, "{printed}{said}");
    assert!(
        said.contains(
            "taken as `steadyhand stop`; this was not understood and is ignored: --arm arm"
        ),
        "{said}"
    );
    assert!(status_of(left).contains("stopped"), "{}", status_of(left));
    let other = status_of(right);
    assert!(!other.contains("stopped"), "{other}");
    let line = ["--config", left, "stop", "--nodes", "arm:8700"];
    let (code, _, said) = nodes.bench.streams(&line);
    assert!(code == 70 && said.contains("NOT stopped"), "{said}");
    let (code, _, said) = nodes.bench.streams(&["stop", "--emergency"]);
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("`stop` was taken as `steadyhand estop`"),
        "{said}"
    );
    for file in &nodes.files {
        let status = status_of(file);
        assert!(status.contains("emergency stop"), "{status}");
    }
    let (code, help, _) = nodes.bench.streams(&["stop", "--help"]);
    assert!(
        code == 0 && help.contains("Usage: steadyhand stop"),
        "{help}"
    );
}

#[test]
fn a_stop_that_names_no_node_stops_all_of_them() {
    let nodes = TwoNodes::new();
    let (code, printed, _) = nodes.bench.streams(&["estop"]);
    assert_eq!(code, 0, "{printed}");
    assert!(
        printed.contains("left: ") && printed.contains("right: "),
        "{printed}"
    );
    for file in &nodes.files {
        let (_, status, _) = nodes.bench.streams(&["--config", file, "status"]);
        assert!(status.contains("emergency stop"), "{status}");
    }
    drop(nodes.served);
}

/// The named node was stopped only after a wait for another one that hung.
#[test]
fn a_stop_of_a_named_node_waits_for_no_other_that_hangs() {
    let nodes = TwoNodes::new();
    let [left, _] = &nodes.served;
    let hung = UnixListener::bind(nodes.bench.path("steadyhand/hung.sock")).unwrap();
    std::thread::scope(|scope| {
        let command = scope.spawn(|| nodes.bench.streams(&["--config", &nodes.files[0], "stop"]));
        // It is asked who it is, and says nothing for as long as anybody waits.
        let mut request = next_line(&hung);
        assert!(request.1.contains("describe"), "{}", request.1);
        let _ = request.0.read_to_end(&mut Vec::new());
        assert_eq!(state(left), "stopped");
        // It may be the intended one, so it is listed as well.
        let (mut stream, line) = next_line(&hung);
        assert!(line.contains("stop"), "{line}");
        writeln!(stream, r#"{{"done":true,"text":"it stands"}}"#).unwrap();
        let (code, printed, _) = command.join().unwrap();
        assert_eq!(code, 0, "{printed}");
        assert!(printed.contains("arm-left: "), "{printed}");
        assert!(printed.contains("it stands"), "{printed}");
        assert!(!printed.contains("arm-right"), "{printed}");
    });
}

/// It was said not to run, and that it should be started, while its arm moved.
#[test]
fn a_node_that_hangs_is_not_said_to_be_absent() {
    let bench = Bench::new();
    let config = file(&bench, "left");
    std::fs::create_dir_all(bench.path("steadyhand")).unwrap();
    let _hung = UnixListener::bind(bench.path("steadyhand/left.sock")).unwrap();
    let (code, _, errors) = bench.streams(&["--config", &config, "status"]);
    assert_ne!(code, 0);
    assert!(errors.contains("left.sock"), "{errors}");
    assert!(errors.contains("stop`"), "{errors}");
    assert!(!errors.contains("serve`"), "{errors}");
}

/// A stop of a node that is named waited for as long as that node hung.
#[test]
fn a_stop_of_a_named_node_that_hangs_ends_and_says_so() {
    let bench = Bench::new();
    let socket = bench.path("hung.sock").display().to_string();
    let _hung = UnixListener::bind(&socket).unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let token = bench.path("node.token").display().to_string();
    std::fs::write(&token, "sth_hung.token").unwrap();
    let by_address = ["--node", &address, "--token-file", &token];
    let (bench, by_address) = (&bench, &by_address);
    std::thread::scope(|scope| {
        let stops = [
            scope.spawn(|| bench.streams(&["stop", "--socket", &socket])),
            scope.spawn(move || bench.streams(&[&["stop"], by_address.as_slice()].concat())),
            scope.spawn(move || bench.streams(&[&["estop"], by_address.as_slice()].concat())),
        ];
        for stop in stops {
            let (code, _, errors) = stop.join().unwrap();
            assert_ne!(code, 0);
            let (early, late) = errors.trim_end().rsplit_once('\n').unwrap();
            assert!(
                early.contains("not answered") && early.contains("power"),
                "{errors}"
            );
            assert!(late.contains("for 30 s"), "{errors}");
        }
    });
}

/// The next connection that says something, and its line. Who only looks whether somebody listens says nothing.
fn next_line(listener: &UnixListener) -> (UnixStream, String) {
    loop {
        let (stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(support::PATIENCE)).unwrap();
        let mut line = String::new();
        let read = BufReader::new(stream.try_clone().unwrap()).read_line(&mut line);
        if read.is_ok_and(|bytes| bytes > 0) {
            return (stream, line);
        }
    }
}

fn state(served: &Served) -> String {
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sense","arguments":{}}}"#;
    let (status, answer) = support::post(served, "", call);
    assert_eq!(status, 200, "{answer:#}");
    let state = answer.pointer("/result/structuredContent/state").unwrap();
    state.as_str().unwrap().to_owned()
}

#[test]
fn without_a_node_a_command_says_how_to_start_one() {
    let bench = Bench::new();
    for verb in [&["status"][..], &["enable", "--scene", "short"], &["clear"]] {
        let (code, _, printed) = bench.streams(verb);
        assert_ne!(code, 0);
        assert!(
            printed.contains("steadyhand --config node.toml --scenes "),
            "{printed}"
        );
        assert!(printed.contains(" serve`"), "{printed}");
    }
}

#[test]
fn a_node_that_has_died_is_no_candidate() {
    let nodes = TwoNodes::new();
    let [left, mut right] = nodes.served;
    let Running(child) = &mut right.child;
    child.kill().unwrap();
    child.wait().unwrap();
    let (code, _, printed) = nodes.bench.streams(&["status"]);
    assert_eq!(code, 0, "{printed}");
    assert!(printed.contains("on node left"), "{printed}");
    drop(left);
}

/// A chat client's node and a terminal's of one name could not be told apart, and a drawing on paper nobody owns asked which.
#[test]
fn nodes_of_one_name_are_told_apart_by_their_processes() {
    let bench = Bench::at_test_rate();
    let [one, two] = ["one", "two"]
        .map(|state| bench.serve(&["--state", &bench.path(state).display().to_string()]));
    let (code, _, printed) = bench.streams(&["status"]);
    assert_eq!(code, 1, "{printed}");
    for served in [&one, &two] {
        let process = format!("process {} (started by ", served.child.0.id());
        let line = printed.lines().find(|line| line.contains(&process));
        let line = line.unwrap_or_else(|| panic!("{process}: {printed}"));
        for told in [
            &format!("serves http://{}", served.host()),
            " ago",
            "the arm ",
        ] {
            assert!(line.contains(told), "{told}: {line}");
        }
    }
    let (code, out, printed) = bench.streams(&["draw", "--text", "a", "--dry-run"]);
    assert_eq!(code, 0, "{out}{printed}");
    assert!(printed.contains("`--socket PATH`"), "{printed}");
}

#[test]
fn another_home_or_runtime_folder_keeps_nodes_apart() {
    let bench = Bench::at_test_rate();
    let temporary = bench.path("tmp");
    std::fs::create_dir_all(&temporary).unwrap();
    let state = bench.path("one").display().to_string();
    let home = |name: &str| bench.path(name);
    let mut node = bench.serving(&["--state", &state]);
    node.env("TMPDIR", &temporary)
        .env_remove("XDG_RUNTIME_DIR")
        .env("HOME", home("first"));
    let _served = support::served(node);
    let is_found = |home_name: &str, runtime: Option<&str>| {
        let mut command = bench.command(&["status"]);
        command
            .env("TMPDIR", &temporary)
            .env("HOME", home(home_name));
        match runtime {
            Some(folder) => command.env("XDG_RUNTIME_DIR", folder),
            None => command.env_remove("XDG_RUNTIME_DIR"),
        };
        let output = command.output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() || told.contains("serve`"), "{told}");
        output.status.success()
    };
    let user = rustix::process::geteuid().as_raw();
    let sessions = format!("/run/user/{user}");
    assert!(is_found("first", None));
    assert!(is_found("first", Some(&sessions)));
    assert!(!is_found("second", None));
    assert!(!is_found("second", Some(&sessions)));
    assert!(!is_found(
        "first",
        Some(bench.path("run").to_str().unwrap())
    ));
}

/// A second file with a node of the same name read the first one's stops, jobs and touches as its own.
#[test]
fn two_node_files_of_one_name_have_two_states() {
    let bench = Bench::at_test_rate();
    let config = |folder: &str| bench.path(folder).join("node.toml").display().to_string();
    for folder in ["one", "two"] {
        std::fs::create_dir_all(bench.path(folder)).unwrap();
        std::fs::write(config(folder), "name = \"bench\"\n").unwrap();
    }
    let jobs = |folder: &str| bench.streams(&["--config", &config(folder), "jobs"]).1;
    let draw = ["draw", "--text", "a", "--json"];
    for folder in ["one", "two"] {
        assert!(!jobs(folder).contains("job-1"), "{}", jobs(folder));
        let (code, out, printed) =
            bench.streams(&[&["--config", &config(folder)], &draw[..]].concat());
        assert_eq!(code, 0, "{out}{printed}");
        assert!(jobs(folder).contains("job-1"), "{}", jobs(folder));
    }
    // A file that is moved keeps its state.
    std::fs::rename(bench.path("one"), bench.path("three")).unwrap();
    assert!(jobs("three").contains("job-1"), "{}", jobs("three"));
}
