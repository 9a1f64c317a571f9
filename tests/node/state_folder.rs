//! The state folder: whose it must be, and where a unit's is.
#![allow(clippy::unwrap_used, reason = "a failing test may panic")]

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use crate::support::{Bench, Running};

/// `serve` took it without a word: another user ended an emergency stop there, and made a token.
#[test]
fn a_state_folder_that_others_may_write_to_is_refused_also_by_check() {
    let bench = Bench::new();
    let state = bench.state();
    std::fs::create_dir(&state).unwrap();
    let with_mode = |mode| {
        std::fs::set_permissions(&state, PermissionsExt::from_mode(mode)).unwrap();
    };
    let named = |args: &[&'static str]| [&["--state", state.as_str()], args].concat();
    for mode in [0o777, 0o770, 0o1777] {
        with_mode(mode);
        for args in [
            &["check"][..],
            &["serve", "--http", "127.0.0.1:0"],
            &["call", "sense"],
            &["token", "add", "anybody"],
        ] {
            let (code, reply) = bench.said(&named(args));
            assert_ne!(code, 0, "{mode:o} {args:?}: {reply}");
            let told = "(mode 77";
            assert!(reply.contains(told), "{mode:o} {args:?}: {reply}");
        }
    }
    assert_eq!(std::fs::read_dir(&state).unwrap().count(), 0);
    with_mode(0o700);
    for args in [&["check"][..], &["call", "sense"]] {
        let (code, reply) = bench.said(&named(args));
        assert_eq!(code, 0, "{reply}");
    }
}

/// systemd names the folders of a unit that has several in one variable.
#[test]
fn the_first_of_several_folders_of_a_unit_is_the_state_folder() {
    let bench = Bench::new();
    let folders = ["first", "second"].map(|name| bench.path(name).display().to_string());
    let file = bench.path("node.toml");
    std::fs::write(&file, "name = \"bench\"\n").unwrap();
    let mut check = bench.command(&["--config", file.to_str().unwrap(), "check"]);
    let output = check.env("STATE_DIRECTORY", folders.join(":")).output();
    let printed = String::from_utf8(output.unwrap().stdout).unwrap();
    let [first, _] = folders;
    assert!(printed.contains(&format!("state: {first}")), "{printed}");
}

#[test]
fn a_variable_that_is_no_number_is_told() {
    let bench = Bench::new();
    let wrong = [
        ("STEADYHAND_SIMULATION_RATE", "-3"),
        ("STEADYHAND_CALENDAR_OFFSET_MS", "1h"),
        ("STEADYHAND_LOG", "steadyhand=loud"),
    ];
    let mut serving = bench.serving(&["--state", &bench.state()]);
    let mut node = Running(serving.envs(wrong).stderr(Stdio::piped()).spawn().unwrap());
    let lines = BufReader::new(node.0.stderr.take().unwrap()).lines();
    let lines = lines.map_while(Result::ok);
    let lines: Vec<String> = lines.take_while(|line| !line.contains("MCP at ")).collect();
    for (variable, value) in wrong {
        let told = format!("{variable} is {value:?}");
        assert!(lines.iter().any(|line| line.contains(&told)), "{lines:#?}");
    }
}
