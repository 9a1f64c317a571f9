//! Making a node file without a person: from what answers on a port, and from what is said.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failing test may panic"
)]

mod support;

use std::fs::File;
use std::io::Write;
use std::process::Stdio;
use std::sync::mpsc::Receiver;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use support::{Bench, PATIENCE, Running};

/// `init` at a terminal, with somebody who types.
struct AtATerminal {
    keys: File,
    said: Receiver<String>,
    init: Running,
}

impl AtATerminal {
    fn new(bench: &Bench, args: &[&str]) -> Self {
        let keys = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keys).unwrap();
        unlockpt(&keys).unwrap();
        let name = ptsname(&keys, Vec::new()).unwrap();
        let terminal = File::options()
            .read(true)
            .write(true)
            .open(name.to_str().unwrap())
            .unwrap();
        let mut command = bench.command(args);
        command.stdin(terminal).stdout(Stdio::null());
        let mut init = command.stderr(Stdio::piped()).spawn().unwrap();
        let said = support::lines(init.stderr.take().unwrap());
        Self {
            keys: File::from(keys),
            said,
            init: Running(init),
        }
    }

    /// Types this once a line has these words; the lines before it.
    fn answers(&mut self, words: &str, what: impl Fn(&[String]) -> String) {
        let mut before = Vec::new();
        loop {
            let Ok(line) = self.said.recv_timeout(PATIENCE) else {
                panic!("no {words:?} in {before:#?}");
            };
            if line.contains(words) {
                let typed = what(&before);
                return writeln!(self.keys, "{typed}").unwrap();
            }
            before.push(line);
        }
    }
}

/// The number before `name` in a list.
fn number(lines: &[String], name: &str) -> String {
    let line = lines
        .iter()
        .find(|line| line.ends_with(&format!(": {name}")));
    line.unwrap().split(':').next().unwrap().trim().to_owned()
}

#[test]
fn a_person_is_asked_where_the_arm_is_and_what_the_node_is_called() {
    let bench = Bench::new();
    let out = bench.path("node.toml").display().to_string();
    let mut person = AtATerminal::new(&bench, &["init", "--out", &out]);
    person.answers("its number", |shown| number(shown, "simulator"));
    person.answers("what is this node called?", |_| "desk".to_owned());
    assert_eq!(person.init.exit_code(), Some(0));
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(
        text.contains("name = \"desk\"") && text.contains("port = \"simulator\""),
        "{text}"
    );
}

#[test]
fn a_person_chooses_the_arm_where_the_servos_do_not_say_and_nonsense_writes_nothing() {
    let bench = Bench::new();
    let (_sim, port) = bench.sim(&["--unpaced"]);
    let out = bench.path("node.toml").display().to_string();
    let args = [
        "init",
        "--port",
        &port,
        "--no-scan",
        "--name",
        "x",
        "--out",
        &out,
    ];
    let mut wrong = AtATerminal::new(&bench, &args);
    wrong.answers("its number", |_| "seven".to_owned());
    assert_eq!(wrong.init.exit_code(), Some(1));
    assert!(!bench.path("node.toml").exists());
    let mut person = AtATerminal::new(&bench, &args);
    person.answers("its number", |shown| number(shown, "widowx250s"));
    assert_eq!(person.init.exit_code(), Some(0));
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(text.contains("model = \"widowx250s\""), "{text}");
}

#[test]
fn a_node_file_is_made_from_who_answers_and_can_be_checked() {
    let bench = Bench::new();
    let (_sim, port) = bench.sim(&["--unpaced"]);
    let out = bench.path("node.toml").display().to_string();
    let made = bench.run(&["init", "--port", &port, "--name", "desk", "--out", &out]);
    assert!(made.status.success(), "{made:?}");
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(
        text.contains("name = \"desk\"") && text.contains("model = \"so101\""),
        "{text}"
    );
    assert!(text.contains(&format!("port = \"{port}\"")), "{text}");
    assert!(
        text.contains("# lenient: garbage may run"),
        "every key is explained: {text}"
    );
    let checked = bench.run(&[
        "--config",
        &out,
        "--state",
        &bench.path("s").display().to_string(),
        "check",
    ]);
    let said = String::from_utf8(checked.stdout).unwrap();
    assert!(checked.status.success() && said.contains("desk"), "{said}");
    // What a person has written is not written over.
    let again = bench.run(&["init", "--port", "simulator", "--out", &out]);
    let why = String::from_utf8(again.stderr).unwrap();
    assert!(!again.status.success() && why.contains("--force"), "{why}");
    assert_eq!(std::fs::read_to_string(&out).unwrap(), text);
}

#[test]
fn a_simulated_arm_needs_no_port_and_a_wrong_arm_is_named() {
    let bench = Bench::new();
    let out = bench.path("node.toml").display().to_string();
    let wrong = bench.run(&[
        "init",
        "--port",
        "simulator",
        "--arm",
        "so100",
        "--out",
        &out,
    ]);
    let why = String::from_utf8(wrong.stderr).unwrap();
    assert!(!wrong.status.success() && why.contains("so101"), "{why}");
    let made = bench.run(&[
        "init",
        "--port",
        "simulator",
        "--arm",
        "widowx250s",
        "--out",
        &out,
    ]);
    assert!(made.status.success(), "{made:?}");
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(text.contains("model = \"widowx250s\""), "{text}");
}
