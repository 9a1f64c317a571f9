//! What a person said stands until a person ends it: in the next process as well, however this one ended, and whatever enables
//! motion at its start.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

use crate::support;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};
use serde_json::{Value, json};
use support::{Bench, Running, Served, on_port, served, unless_starved, until};

use super::stop::{begin_to_draw, long_bench};

/// The word of an operator, with the order that it leaves.
const WORDS: [(&str, &str); 4] = [
    ("stop", "stop"),
    ("disable", "disable"),
    ("hold", "hold"),
    ("estop", "emergency_stop"),
];

/// The way in which the process ends that was told it.
#[derive(Clone, Copy, Debug)]
enum End {
    Kill,
    Terminate,
    /// What was written after the answer is lost.
    PowerLoss,
    /// No file grows any more from before the word on.
    FullDisk,
}

const ENDS: [End; 4] = [End::Kill, End::Terminate, End::PowerLoss, End::FullDisk];

/// Length of a file of orders: writing within it needs no room.
const ORDER_FILE_BYTES: u64 = 2048;

/// Where the arm is, and so what could enable it at the next start.
#[derive(Clone, Copy, Debug)]
enum Place {
    Port,
    /// Simulated in a node with a node file, which enables everything.
    NodeFile,
}

struct Life {
    bench: Bench,
    place: Place,
    port: Option<(Running, String)>,
}

impl Life {
    fn new(place: Place) -> Self {
        let bench = long_bench();
        let port = match place {
            Place::Port => Some(bench.sim(&["--scene", "long"])),
            Place::NodeFile => None,
        };
        std::fs::write(bench.path("node.toml"), "name = \"local\"\n").unwrap();
        Self { bench, place, port }
    }

    /// Starts a node with this state folder that ignores the signal of a limit on files.
    fn serve(&self, state: &Path, enables: bool) -> Served {
        let state = state.display().to_string();
        let config = self.bench.path("node.toml").display().to_string();
        let mut args: Vec<&str> = match &self.port {
            Some((_, port)) => on_port(port, &state).to_vec(),
            None => vec!["--config", &config, "--state", &state],
        };
        if enables {
            args.extend(["--enable", "long", "short"]);
        }
        let command = self.bench.serving(&args);
        let mut shell = Command::new("sh");
        shell
            .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""])
            .arg(command.get_program())
            .args(command.get_args())
            .stdin(Stdio::null());
        for (key, value) in command.get_envs() {
            match value {
                Some(value) => shell.env(key, value),
                None => shell.env_remove(key),
            };
        }
        served(shell)
    }

    /// Says a word to a node, ends it, and returns the state folder that it leaves.
    fn told(&self, word: Option<&str>, end: End) -> PathBuf {
        let state = self.bench.path("state");
        // Each life begins in a home of its own, where no port is known.
        for earlier in [&state, &self.bench.path("state-home")] {
            let _ = std::fs::remove_dir_all(earlier);
        }
        let mut node = self.serve(&state, matches!(self.place, Place::Port));
        let drawing = (word == Some("hold")).then(|| begin_to_draw(&self.bench, &node.url));
        if matches!(end, End::FullDisk) {
            let limit = Rlimit {
                current: Some(ORDER_FILE_BYTES),
                maximum: Some(ORDER_FILE_BYTES),
            };
            prlimit(Some(Pid::from_child(&node.child.0)), Resource::Fsize, limit).unwrap();
        }
        match word {
            Some("hold") => self.bench.hold(),
            Some(word) => {
                let said = self.bench.run(&[word]);
                let stdout = String::from_utf8_lossy(&said.stdout).into_owned();
                assert!(said.status.success(), "{word}, {end:?}: {stdout}");
                assert!(!stdout.contains("saved"), "{word}, {end:?}: {stdout}");
            }
            None => {}
        }
        let left = self.bench.path("left");
        let _ = std::fs::remove_dir_all(&left);
        match end {
            End::PowerLoss => {
                copy(&state, &left);
                node.child.0.kill().unwrap();
            }
            End::Kill | End::FullDisk => node.child.0.kill().unwrap(),
            End::Terminate => drop(node.child.terminate()),
        }
        node.child.0.wait().unwrap();
        drop(drawing);
        if !left.exists() {
            copy(&state, &left);
        }
        left
    }

    /// Starts a node with a copy of what was left, and returns what it says and how it answers a planner's stroke.
    fn next(&self, left: &Path, enables: bool) -> (Value, Value) {
        let state = self.bench.path("next");
        let _ = std::fs::remove_dir_all(&state);
        copy(left, &state);
        let node = self.serve(&state, enables);
        let (_, sensed) = self.bench.call_at(&node.url, &["sense"]);
        let (_, stroke) = self
            .bench
            .call_at(&node.url, &["stroke", r#"{"scene":"short"}"#]);
        (sensed, stroke)
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
    let mode = std::fs::metadata(from).unwrap().permissions();
    std::fs::set_permissions(to, mode).unwrap();
}

fn orders(sensed: &Value) -> Vec<&str> {
    let orders = sensed["orders"].as_array().into_iter().flatten();
    orders
        .map(|order| order["order"].as_str().unwrap())
        .collect()
}

/// A word, an end of its process, and what would enable motion at the next start: none of them makes a planner's stroke move.
fn check_matrix(place: Place, enablings: &[bool]) {
    let life = Life::new(place);
    for (word, order) in WORDS {
        for end in ENDS {
            let left = life.told(Some(word), end);
            for enables in enablings {
                let case = format!("{place:?}, {word}, {end:?}, --enable {enables}");
                let (sensed, stroke) = life.next(&left, *enables);
                assert_eq!(orders(&sensed), [order], "{case}: {sensed:#}");
                let by = sensed["orders"][0]["by"].as_str().unwrap();
                assert!(by.contains("user"), "{case}: {by}");
                assert_eq!(sensed["enabled"], "nothing", "{case}: {sensed:#}");
                assert_eq!(stroke["success"], false, "{case}: {stroke:#}");
                let code = stroke["code"].as_str().unwrap();
                let refusals = [
                    "needs_enabling",
                    "needs_reset",
                    "emergency_stop",
                    "held",
                    "interrupted",
                ];
                assert!(refusals.contains(&code), "{case}: {stroke:#}");
            }
        }
    }
    // Without a word it would have drawn.
    let left = life.told(None, End::Terminate);
    let (sensed, stroke) = life.next(&left, true);
    assert_eq!(orders(&sensed), [""; 0], "{sensed:#}");
    assert_eq!(stroke["success"], true, "{place:?}: {stroke:#}");
}

#[test]
fn a_persons_word_outlives_the_process_of_an_arm_on_a_port() {
    unless_starved(|| check_matrix(Place::Port, &[true, false]));
}

#[test]
fn a_persons_word_outlives_the_process_whose_node_file_enables() {
    unless_starved(|| check_matrix(Place::NodeFile, &[true, false]));
}

#[test]
fn each_word_is_ended_by_its_own_word_of_an_operator() {
    let life = Life::new(Place::NodeFile);
    let verb = |args: &[&str]| {
        let said = life.bench.run(args);
        let stdout = String::from_utf8_lossy(&said.stdout).into_owned();
        assert!(said.status.success(), "{args:?}: {stdout}");
    };
    for (word, ends) in [
        ("stop", &[&["reset"][..]][..]),
        ("disable", &[]),
        ("hold", &[&["resume"]]),
        ("estop", &[&["clear"], &["reset"]]),
    ] {
        let left = life.told(Some(word), End::Kill);
        let node = life.serve(&left, false);
        // A simulated arm that has not moved yet stands in the default scene.
        for scene in ["short", "default"] {
            verb(&["enable", "--scene", scene]);
        }
        ends.iter().for_each(|end| verb(end));
        let again = r#"{"scene":"short","again":true}"#;
        let (_, stroke) = life.bench.call_at(&node.url, &["stroke", again]);
        assert_eq!(stroke["success"], true, "{word}: {stroke:#}");
        drop(node);
        let (sensed, _) = life.next(&left, true);
        assert_eq!(orders(&sensed), [""; 0], "{word}: {sensed:#}");
    }
}

#[test]
fn a_yes_that_was_given_before_an_order_was_seen_does_not_end_it() {
    let life = Life::new(Place::NodeFile);
    let left = life.told(Some("disable"), End::Kill);
    let node = life.serve(&left, false);
    for assent in [None, Some("--yes")] {
        let line = ["draw", "--text", "Hi", "--scene", "short"];
        let line = line.into_iter().chain(assent);
        let drawn = life.bench.run(&line.collect::<Vec<_>>());
        assert!(!drawn.status.success(), "{drawn:?}");
        let (_, sensed) = life.bench.call_at(&node.url, &["sense"]);
        assert_eq!(orders(&sensed), ["disable"], "{sensed:#}");
    }
}

/// One of them may have been interrupted, with the pen on the paper.
#[test]
fn a_node_whose_jobs_were_removed_is_disabled() {
    let life = Life::new(Place::NodeFile);
    let left = life.told(None, End::Kill);
    std::fs::remove_dir_all(left.join("jobs")).unwrap();
    let (sensed, stroke) = life.next(&left, true);
    assert_eq!(orders(&sensed), ["disable"], "{sensed:#}");
    assert_eq!(stroke["success"], false, "{stroke:#}");
}

/// What happens to a file.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Removed,
    Emptied,
    Zeroed,
    /// So many hundredths of it are left.
    Cut(usize),
    /// As it was before the word.
    Old,
}

/// Damages the files whose names begin so.
fn damage(left: &Path, before: &Path, name: &str, damage: Damage) {
    for entry in std::fs::read_dir(left).unwrap().flatten() {
        let file = entry.file_name().to_string_lossy().into_owned();
        if !file.starts_with(name) {
            continue;
        }
        let path = entry.path();
        if path.is_dir() {
            std::fs::remove_dir_all(path).unwrap();
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        match damage {
            Damage::Removed => std::fs::remove_file(path).unwrap(),
            Damage::Emptied => std::fs::write(path, "").unwrap(),
            Damage::Zeroed => std::fs::write(path, vec![0; bytes.len()]).unwrap(),
            Damage::Cut(share) => {
                std::fs::write(path, &bytes[..bytes.len() * share / 100]).unwrap();
            }
            // A node that was killed early had not written it yet.
            Damage::Old if !before.join(&file).exists() => std::fs::remove_file(path).unwrap(),
            Damage::Old => drop(std::fs::copy(before.join(file), path).unwrap()),
        }
    }
}

/// File and audit log witness each other: no damage to one of them, nor to both in the same way, enables the arm.
#[test]
fn no_damage_to_its_files_makes_a_node_forget_a_word() {
    use Damage::{Cut, Emptied, Old, Removed, Zeroed};
    const ORDERS: &str = "standing-orders-";
    const CONFIG: &str = "configuration.json";
    const KEY: &str = "node.key";
    let cases: [&[(&str, Damage)]; 16] = [
        &[(ORDERS, Removed)],
        &[(ORDERS, Emptied)],
        &[(ORDERS, Old)],
        &[("audit.log", Removed)],
        &[(ORDERS, Removed), ("audit.log", Removed)],
        &[(ORDERS, Removed), ("audit.log", Emptied)],
        &[(ORDERS, Removed), ("audit.log", Zeroed)],
        &[(ORDERS, Removed), ("audit.log", Cut(2))],
        &[(ORDERS, Removed), ("audit.log", Cut(30))],
        &[(ORDERS, Removed), ("audit.log", Removed), ("jobs", Removed)],
        &[(ORDERS, Removed), ("audit.log", Removed), (CONFIG, Removed)],
        &[
            (ORDERS, Removed),
            ("audit.log", Removed),
            (CONFIG, Removed),
            ("jobs", Removed),
        ],
        &[
            (ORDERS, Removed),
            ("audit.log", Removed),
            (CONFIG, Removed),
            ("jobs", Removed),
            (KEY, Removed),
        ],
        &[(ORDERS, Old), ("audit.log", Removed)],
        &[(ORDERS, Old), ("audit.log", Emptied)],
        &[(ORDERS, Old), ("audit.log", Zeroed)],
    ];
    let life = Life::new(Place::NodeFile);
    for (word, kind) in [("stop", "stop"), ("estop", "emergency_stop")] {
        let before = life.told(None, End::Kill);
        let kept = life.bench.path("before");
        let _ = std::fs::remove_dir_all(&kept);
        copy(&before, &kept);
        let whole = life.told(Some(word), End::Kill);
        for case in cases {
            let left = life.bench.path("damaged");
            let _ = std::fs::remove_dir_all(&left);
            copy(&whole, &left);
            case.iter()
                .for_each(|(name, what)| damage(&left, &kept, name, *what));
            let (sensed, stroke) = life.next(&left, true);
            assert_eq!(sensed["enabled"], "nothing", "{word} {case:?}: {sensed:#}");
            assert_ne!(stroke["success"], true, "{word} {case:?}: {stroke:#}");
            // An emergency stop has a file of its own as well.
            assert!(
                word == "stop" || orders(&sensed).contains(&kind),
                "{case:?}: {sensed:#}"
            );
        }
    }
}

#[test]
fn an_arm_that_is_called_otherwise_keeps_its_orders() {
    let life = Life::new(Place::NodeFile);
    let left = life.told(Some("estop"), End::Kill);
    let file =
        "name = \"local\"\n[[arms]]\nname = \"renamed\"\nmodel = \"so101\"\nport = \"simulator\"\n";
    std::fs::write(life.bench.path("node.toml"), file).unwrap();
    for _ in 0..2 {
        let (sensed, stroke) = life.next(&left, true);
        assert_eq!(stroke["code"], "emergency_stop", "{stroke:#}\n{sensed:#}");
        copy(&life.bench.path("next"), &left);
    }
}

/// A node of another name, with a state folder of its own, has the same arm if it has the same port.
#[test]
fn a_word_stands_for_the_port_whichever_node_has_it() {
    unless_starved(|| {
        let life = Life::new(Place::Port);
        for (word, kind) in [
            ("stop", "stop"),
            ("disable", "disable"),
            ("estop", "emergency_stop"),
        ] {
            let state = life.told(Some(word), End::Kill);
            assert!(state.is_dir());
            let other = life.bench.path(&format!("other-{word}"));
            let node = life.serve(&other, true);
            let (_, sensed) = life.bench.call_at(&node.url, &["sense"]);
            assert_eq!(sensed["enabled"], "nothing", "{word}: {sensed:#}");
            assert!(orders(&sensed).contains(&kind), "{word}: {sensed:#}");
            drop(node);
            std::fs::remove_dir_all(other).unwrap();
        }
    });
}

/// The folder of records at ports, where a test's home is.
fn port_records(life: &Life) -> PathBuf {
    life.bench.path("state-home/steadyhand/ports")
}

#[test]
fn a_damaged_record_at_the_port_disables_whichever_node_has_it() {
    unless_starved(|| {
        let life = Life::new(Place::Port);
        for (word, what) in [("estop", Damage::Emptied), ("stop", Damage::Cut(50))] {
            let state = life.told(Some(word), End::Kill);
            assert!(state.is_dir());
            damage(&port_records(&life), &state, "", what);
            let other = life.bench.path(&format!("other-{word}"));
            let node = life.serve(&other, true);
            let (_, sensed) = life.bench.call_at(&node.url, &["sense"]);
            assert_eq!(sensed["enabled"], "nothing", "{word}: {sensed:#}");
            let by = sensed["orders"][0]["by"].as_str().unwrap();
            assert!(by.contains("ports/dev"), "{by}");
        }
    });
}

#[test]
fn an_order_that_its_port_does_not_have_is_answered_so() {
    unless_starved(|| {
        let life = Life::new(Place::Port);
        let _node = life.serve(&life.bench.path("state"), true);
        let records = port_records(&life);
        std::fs::create_dir_all(records.parent().unwrap()).unwrap();
        std::fs::write(&records, "").unwrap();
        for word in ["disable", "stop", "estop"] {
            let said = life.bench.run(&[word]);
            let stdout = String::from_utf8_lossy(&said.stdout).into_owned();
            assert!(stdout.contains("saved"), "{word}: {stdout}");
        }
    });
}

/// A person who plugs the arm in and tries again has said nothing that forbids motion.
#[test]
fn a_start_without_its_arm_does_not_disable_the_next() {
    unless_starved(|| {
        let life = Life::new(Place::Port);
        let (state, link) = (life.bench.state(), life.bench.path("arm"));
        let link_text = link.display().to_string();
        let args = on_port(&link_text, &state);
        let args = [&args[..], &["--allow-root", "--enable", "short"]].concat();
        let refused = life.bench.serving(&args).output().unwrap();
        assert!(!refused.status.success(), "{refused:?}");
        let (_, port) = life.port.as_ref().unwrap();
        std::os::unix::fs::symlink(port, &link).unwrap();
        let node = served(life.bench.serving(&args));
        let (_, sensed) = life.bench.call_at(&node.url, &["sense"]);
        assert_eq!(sensed["enabled"], "short", "{sensed:#}");
        assert_eq!(orders(&sensed), [""; 0], "{sensed:#}");
    });
}

#[test]
fn a_state_folder_has_one_node_although_its_lock_is_removed() {
    let life = Life::new(Place::NodeFile);
    let state = life.bench.path("state");
    let _node = life.serve(&state, false);
    std::fs::remove_file(state.join("lock")).unwrap();
    for spelling in [state.clone(), life.bench.path("scenes/../state"), {
        let link = life.bench.path("link");
        std::os::unix::fs::symlink(&state, &link).unwrap();
        link
    }] {
        let spelling = spelling.display().to_string();
        let second = life.bench.run(&["--state", &spelling, "call", "sense"]);
        let stderr = String::from_utf8_lossy(&second.stderr);
        assert!(!second.status.success(), "{spelling}");
        assert!(stderr.contains("in use"), "{spelling}: {stderr}");
    }
}

#[test]
fn tokens_are_given_while_a_node_has_locked_its_folder() {
    let life = Life::new(Place::NodeFile);
    let state = life.bench.path("state");
    let _node = life.serve(&state, false);
    let state = state.display().to_string();
    let added = life.bench.run(&["--state", &state, "token", "add", "hand"]);
    assert!(added.status.success(), "{added:?}");
}

#[test]
fn a_journal_cut_in_its_first_record_counts_as_interrupted() {
    unless_starved(|| {
        let life = Life::new(Place::NodeFile);
        let state = life.bench.path("state");
        let mut node = life.serve(&state, false);
        let drawing = begin_to_draw(&life.bench, &node.url);
        node.child.0.kill().unwrap();
        node.child.0.wait().unwrap();
        drop(drawing);
        let job = state.join("jobs/job-1");
        let journal = std::fs::read(job.join("journal")).unwrap();
        std::fs::remove_dir_all(&job).unwrap();
        std::fs::create_dir(&job).unwrap();
        std::fs::write(job.join("journal"), &journal[..40]).unwrap();
        for _ in 0..2 {
            let (sensed, stroke) = life.next(&state, true);
            assert_eq!(sensed["enabled"], "nothing", "{sensed:#}");
            let message = sensed["message"].as_str().unwrap();
            assert!(message.contains("job-1 was interrupted"), "{message}");
            assert_eq!(stroke["success"], false, "{stroke:#}");
            copy(&life.bench.path("next"), &state);
        }
    });
}

fn cancel_unknown(node: &Served) {
    let unknown = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": 4711}});
    support::post(node, support::STREAMS, &unknown.to_string());
}

fn audit(life: &Life) -> String {
    std::fs::read_to_string(life.bench.path("state/audit.log")).unwrap()
}

#[test]
fn an_unknown_cancellation_costs_an_arm_at_rest_no_reset_and_is_told() {
    let life = Life::new(Place::NodeFile);
    let node = life.serve(&life.bench.path("state"), false);
    cancel_unknown(&node);
    support::wait_for(&node.lines, "a cancellation");
    until(
        "recorded",
        || audit(&life),
        |log| log.contains("\tcancellation\t"),
    );
    let (_, sensed) = life.bench.call_at(&node.url, &["sense"]);
    assert_eq!(sensed["latched"], Value::Null, "{sensed:#}");
    assert_eq!(sensed["state"], "limp", "{sensed:#}");
    let (_, stroke) = life
        .bench
        .call_at(&node.url, &["stroke", r#"{"scene":"short"}"#]);
    assert_eq!(stroke["success"], true, "{stroke:#}");
}

#[test]
fn what_stopped_an_arm_is_told_with_its_cause_and_caller() {
    let life = Life::new(Place::NodeFile);
    let node = life.serve(&life.bench.path("state"), false);
    let stopped_by = |cause: &str, caller: Option<&str>| {
        let sense = || life.bench.call_at(&node.url, &["sense"]).1;
        until(&format!("stopped by {cause}"), sense, |sensed| {
            let by = &sensed["stopped_by"];
            let told = by["cause"].as_str().unwrap_or_default();
            let has_caller = caller
                .is_none_or(|caller| by["caller"].as_str().is_some_and(|by| by.contains(caller)));
            sensed["state"] == "stopped" && told.contains(cause) && has_caller
        });
        support::wait_for(&node.lines, &format!("stopped: {cause}"));
        let told = format!("\"cause\":\"{cause}");
        assert!(audit(&life).contains(&told), "{}", audit(&life));
    };
    let _drawing = begin_to_draw(&life.bench, &node.url);
    cancel_unknown(&node);
    stopped_by("a cancellation", None);
    assert_eq!(life.bench.call_at(&node.url, &["reset"]).0, 0);
    assert!(life.bench.run(&["stop"]).status.success());
    stopped_by("stop", Some("user"));
    assert!(life.bench.run(&["reset"]).status.success());
    assert_eq!(life.bench.call_at(&node.url, &["stop"]).0, 0);
    stopped_by("stop", Some("session"));
    node.child.signal(Signal::TERM);
}
