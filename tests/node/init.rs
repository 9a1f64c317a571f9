//! Tests `init` without a person: it makes a node file from what answers on a port and from its options.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failing test may panic"
)]

use crate::support;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc::Receiver;

use support::{Bench, PATIENCE, Running, unless_starved};

/// `init` at a terminal, with somebody who types.
struct AtATerminal {
    keys: File,
    stderr: Receiver<String>,
    init: Running,
}

impl AtATerminal {
    fn new(bench: &Bench, args: &[&str]) -> Self {
        let (keys, terminal) = support::person::pseudo_terminal();
        let mut command = bench.command(args);
        command.stdin(terminal).stdout(Stdio::null());
        let mut init = command.stderr(Stdio::piped()).spawn().unwrap();
        let stderr = support::lines(init.stderr.take().unwrap());
        Self {
            keys,
            stderr,
            init: Running(init),
        }
    }

    /// Types a reply once a line contains a text; the reply may use the lines before it.
    fn answers(&mut self, expected: &str, what: impl FnOnce(&[String]) -> String) {
        let mut before = Vec::new();
        loop {
            let Ok(line) = self.stderr.recv_timeout(PATIENCE) else {
                panic!("no {expected:?} in {before:#?}");
            };
            if line.contains(expected) {
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
    person.answers("name?", |_| "desk".to_owned());
    assert_eq!(person.init.exit_code(), Some(0));
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(
        text.contains("name = \"desk\"") && text.contains("port = \"simulator\""),
        "{text}"
    );
}

#[test]
fn a_person_chooses_an_unknown_arm_and_nonsense_writes_nothing() {
    unless_starved(|| {
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
        let mut person = AtATerminal::new(&bench, &args);
        let mut listed = Vec::new();
        person.answers("its number", |shown| {
            listed = shown.to_vec();
            "seven".to_owned()
        });
        person.answers("its number", |_| {
            assert!(!bench.path("node.toml").exists());
            number(&listed, "widowx250s")
        });
        assert_eq!(person.init.exit_code(), Some(0));
        let text = std::fs::read_to_string(&out).unwrap();
        assert!(text.contains("model = \"widowx250s\""), "{text}");
    });
}

#[test]
fn a_node_file_is_made_from_who_answers_and_can_be_checked() {
    unless_starved(|| {
        let bench = Bench::new();
        let (_sim, port) = bench.sim(&["--unpaced"]);
        let out = bench.path("node.toml").display().to_string();
        let init = ["init", "--port", &port, "--name", "desk", "--out", &out];
        // Without a terminal it cannot ask which of the arms with the same servos it is. An STS3250 is told apart by its model.
        let output = bench.run(&init);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{stderr}");
        assert!(
            stderr.contains("Valid: so101, so100, so101-hx30\n"),
            "{stderr}"
        );
        // Variants with the same servos are told apart by their supply.
        let (_kit, kit) = bench.sim(&["--unpaced", "--arm", "so101-12v"]);
        let output = bench.run(&["init", "--port", &kit, "--name", "desk", "--out", &out]);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(stderr.contains("Valid: so100, so101-12v\n"), "{stderr}");
        let made = bench.run(&[&init[..], &["--arm", "so101"]].concat());
        assert!(made.status.success(), "{made:?}");
        let text = std::fs::read_to_string(&out).unwrap();
        assert!(
            text.contains("name = \"desk\"") && text.contains("model = \"so101\""),
            "{text}"
        );
        assert!(text.contains(&format!("port = \"{port}\"")), "{text}");
        assert!(
            text.contains("# guarded: a call with anything"),
            "every key is explained: {text}"
        );
        // It may come to hold tokens of other nodes.
        let mode = std::fs::metadata(&out).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        let checked = bench.run(&[
            "--config",
            &out,
            "--state",
            &bench.path("s").display().to_string(),
            "check",
        ]);
        let stdout = String::from_utf8(checked.stdout).unwrap();
        assert!(
            checked.status.success() && stdout.contains("desk"),
            "{stdout}"
        );
        // An arm that is not the one whose servos answer is not written without a word.
        let (_koch, koch) = bench.sim(&["--unpaced", "--arm", "koch"]);
        let other = bench.path("other.toml").display().to_string();
        let init = ["init", "--name", "desk", "--out", &other, "--port", &koch];
        let refused = bench.run(&[&init[..], &["--arm", "openmanipulator-x"]].concat());
        let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success(), "{stderr}");
        assert!(stderr.contains("belong to koch"), "{stderr}");
        // What a person has written is not written over.
        let again = bench.run(&["init", "--port", "simulator", "--out", &out]);
        let stderr = String::from_utf8(again.stderr).unwrap();
        assert!(
            !again.status.success() && stderr.contains("--force"),
            "{stderr}"
        );
        assert_eq!(std::fs::read_to_string(&out).unwrap(), text);
    });
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
        "so200",
        "--out",
        &out,
    ]);
    let stderr = String::from_utf8(wrong.stderr).unwrap();
    assert!(
        !wrong.status.success() && stderr.contains("so101"),
        "{stderr}"
    );
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

/// Returns what `check` says of this node file, whose mode is this.
fn checked(bench: &Bench, file: &str, mode: u32) -> (bool, String) {
    let config = bench.path("checked.toml");
    std::fs::write(&config, file).unwrap();
    std::fs::set_permissions(&config, PermissionsExt::from_mode(mode)).unwrap();
    let (config, state) = (config.display().to_string(), bench.path("s"));
    let mut command = bench.command(&["--config", &config, "check"]);
    command.arg("--state").arg(state);
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    (output.status.success(), text)
}

/// Returns the files below a folder with their bytes, and the folders in it.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path));
        }
        found.insert(path.clone(), std::fs::read(&path).unwrap_or_default());
    }
    found
}

#[test]
fn what_keeps_a_node_from_using_its_state_is_found_before_it_is_started() {
    let bench = Bench::new();
    let state = bench.path("s");
    let check = || checked(&bench, "", 0o640);
    let (good, message) = check();
    assert!(good && message.contains("creates"), "{message}");
    assert!(!state.exists(), "a check makes nothing");
    let (code, reset) = bench.call(&["reset", "--state", &state.display().to_string()]);
    assert_eq!(code, 0, "{reset:#}");
    let before = contents(&state);
    let (good, message) = check();
    assert!(good, "{message}");
    assert_eq!(contents(&state), before, "a check changes nothing");
    let spoil = |path: &str, says: &[&str]| {
        let path = state.join(path);
        let (good, message) = check();
        assert!(!good, "{message}");
        let path = path.display().to_string();
        for part in says.iter().chain(&[path.as_str()]) {
            assert!(message.contains(part), "{part}: {message}");
        }
    };
    let [key, log] = ["node.key", "audit.log"].map(|file| state.join(file));
    let kept = std::fs::read(&key).unwrap();
    std::fs::write(&key, "").unwrap();
    spoil("node.key", &["wrong  key: ", "64 hexadecimal digits"]);
    std::fs::write(&key, kept).unwrap();
    // A node that starts on this log moves it away and begins another.
    let kept = std::fs::read_to_string(&log).unwrap();
    let damaged = format!("{} and more\n", kept.trim_end());
    std::fs::write(&log, &damaged).unwrap();
    spoil("audit.log", &["wrong  audit log: ", "audit verify"]);
    assert_eq!(std::fs::read_to_string(&log).unwrap(), damaged);
    std::fs::write(&log, kept).unwrap();
    std::fs::remove_file(state.join("lock")).unwrap();
    std::fs::create_dir(state.join("lock")).unwrap();
    spoil("lock", &["wrong  jobs: "]);
    std::fs::remove_dir(state.join("lock")).unwrap();
    std::fs::remove_dir_all(state.join("jobs")).unwrap();
    std::fs::write(state.join("jobs"), "").unwrap();
    spoil("jobs", &["wrong  jobs: "]);
    std::fs::remove_file(state.join("jobs")).unwrap();
    std::fs::create_dir_all(state.join("calibration")).unwrap();
    let record = "calibration/000003.toml";
    std::fs::write(state.join(record), "a = [").unwrap();
    spoil(record, &["wrong  calibrations: ", "away"]);
    // What a person laid beside the records is none of them.
    std::fs::rename(state.join(record), state.join("calibration/4.toml")).unwrap();
    let (good, message) = check();
    assert!(good, "{message}");
    let state = state.display().to_string();
    let history = bench.run(&["calibrate", "history", "--state", &state]);
    assert!(history.status.success(), "{history:?}");
    // A node that runs has opened its state itself.
    let _served = bench.serve(&["--state", &state]);
    let (good, message) = check();
    assert!(good && message.contains("running"), "{message}");
}

#[test]
fn tokens_of_other_nodes_have_to_be_there_and_nobody_elses() {
    let bench = Bench::new();
    let peer = "[[peers]]\nname = \"left\"\naddress = \"10.0.0.7:8700\"\n";
    let gone = bench.path("gone.token").display().to_string();
    let (good, message) = checked(&bench, &format!("{peer}token_file = {gone:?}\n"), 0o640);
    assert!(
        !good && message.contains("wrong  token for left") && message.contains(&gone),
        "{message}"
    );
    let inline = format!("{peer}token = \"sth_abc.def\"\n");
    let (good, printed) = checked(&bench, &inline, 0o644);
    assert!(!good && printed.contains("chmod 640"), "{printed}");
    assert!(!printed.contains("sth_abc"), "{printed}");
    assert!(checked(&bench, &inline, 0o640).0);
}

#[test]
fn all_that_is_wrong_with_a_node_is_said_at_once() {
    let bench = Bench::new();
    let arms = "[[arms]]\nname = \"a\"\nmodel = \"so200\"\nport = \"simulator\"\n[[arms]]\nname = \"b\"\nmodel = \"so101\"\nport = \"/no/such/port\"\n";
    // The folder of scenes is not there, and still the arms are looked at.
    let config = bench.path("arms.toml");
    std::fs::write(&config, format!("scenes = \"/no/such/scenes\"\n{arms}")).unwrap();
    let output = std::process::Command::new(support::binary())
        .args(["check", "--config"])
        .arg(&config)
        .arg("--state")
        .arg(bench.path("s"))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for expected in [
        "/no/such/scenes",
        "wrong  arm a",
        "so200",
        "wrong  arm b",
        "/no/such/port",
    ] {
        assert!(text.contains(expected), "no {expected}: {text}");
    }
    // One file with several faults, of every kind.
    let file =
        "nmae = \"x\"\nanswer_within_s = \"soon\"\nread_only = 1\n[[peers]]\nname = \"left\"\n";
    let (good, printed) = checked(&bench, file, 0o640);
    for expected in [
        "`nmae`",
        "line 2: ",
        "answer_within_s",
        "line 3: ",
        "read_only",
        "peers[0].address",
    ] {
        assert!(
            !good && printed.contains(expected),
            "no {expected}: {printed}"
        );
    }
    let file = "nmae = \"x\"\nkeep_jobs = 0\nlease_idle_s = 1\nanswer_within_s = 0\n";
    let (good, printed) = checked(&bench, file, 0o640);
    for expected in ["`nmae`", "keep_jobs is 0", "answer_within_s is 0"] {
        assert!(
            !good && printed.contains(expected),
            "no {expected}: {printed}"
        );
    }
}

#[test]
fn the_folder_of_scenes_that_is_said_is_in_the_file() {
    let bench = Bench::new();
    let out = bench.path("node.toml").display().to_string();
    let args = [
        "init",
        "--out",
        &out,
        "--port",
        "simulator",
        "--name",
        "desk",
    ];
    assert!(bench.run(&args).status.success());
    let text = std::fs::read_to_string(&out).unwrap();
    let scenes = format!("\nscenes = \"{}\"\n", bench.path("scenes").display());
    assert!(text.contains(&scenes), "{text}");
}

#[test]
fn the_arm_with_worn_servos_is_for_the_simulator_alone() {
    let bench = Bench::new();
    let config = bench.path("node.toml").display().to_string();
    let state = bench.state();
    let at = ["--config", &config, "--state", &state];
    let arm =
        |port: &str| format!("[[arms]]\nname = \"arm\"\nmodel = \"so101-worn\"\nport = {port:?}\n");
    std::fs::write(&config, arm("/dev/ttyACM9")).unwrap();
    let refused = bench.run(&[&["call", "sense"], &at[..]].concat());
    let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success(), "{stderr}");
    assert!(stderr.contains("without wear, so101"), "{stderr}");
    // It draws the scenes of the arm that it is like, and worse.
    std::fs::write(&config, arm("simulator")).unwrap();
    let (code, drawn) = bench.call(&[&["stroke", "{}"], &at[..]].concat());
    assert_eq!(code, 1, "{drawn:#}");
    let refused = drawn.get("code").and_then(serde_json::Value::as_str);
    assert_eq!(refused, Some("ink_missing"), "{drawn:#}");
    let off_mm = drawn
        .get("deviation_mm_p95")
        .and_then(serde_json::Value::as_f64);
    let off_mm = off_mm.unwrap();
    assert!((0.5..8.0).contains(&off_mm), "{drawn:#}");
}
