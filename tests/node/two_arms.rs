//! Two arms on ports over one table: operators enable one of them at a time, by every door.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

use crate::support;
use std::time::Instant;

use support::{Bench, PATIENCE, Running, Served, unless_starved, wait_for};

/// Two simulated arms on pseudo-terminals.
struct Table {
    bench: Bench,
    ports: [String; 2],
    _arms: [Running; 2],
}

impl Table {
    fn new() -> Self {
        let bench = Bench::at_test_rate();
        let (one, left) = bench.sim(&["--scene", "short"]);
        let (other, right) = bench.sim(&["--scene", "short"]);
        Self {
            bench,
            ports: [left, right],
            _arms: [one, other],
        }
    }

    /// A node file, with these keys of the arms.
    fn file(&self, keys: [&str; 2]) -> String {
        let arms = ["left", "right"].into_iter().zip(&self.ports).zip(keys);
        let arms = arms.map(|((name, port), keys)| {
            format!("[[arms]]\nname = \"{name}\"\nmodel = \"so101\"\nport = \"{port}\"\ncalibrated = \"elsewhere\"\n{keys}\n")
        });
        let head = format!("name = \"table\"\nstate = {:?}\n\n", self.bench.state());
        let path = self.bench.path("node.toml");
        std::fs::write(&path, head + &arms.collect::<String>()).unwrap();
        path.display().to_string()
    }

    fn serves(&self, keys: [&str; 2]) -> Served {
        self.bench.serve(&["--config", &self.file(keys)])
    }

    /// Runs an operator's verb over the control socket. Returns whether it was done, and the output.
    fn run(&self, args: &[&str]) -> (bool, String) {
        let (code, text, _) = self.bench.streams(args);
        (code == 0, text)
    }

    fn enable(&self, more: &[&str]) -> (bool, String) {
        self.run(&[&["enable", "--scene", "short"], more].concat())
    }
}

fn refused(printed: (bool, String), expected: &[&str]) {
    let (done, text) = printed;
    assert!(!done, "{text}");
    for expected in expected {
        assert!(text.contains(expected), "{expected:?} is not in {text:?}");
    }
}

fn expect_done(printed: (bool, String)) -> String {
    let (done, text) = printed;
    assert!(done, "{text}");
    text
}

#[test]
fn refuses_two_arms_at_once_where_their_places_are_not_said() {
    unless_starved(|| {
        let table = Table::new();
        let file = table.file(["", ""]);
        // At the start of a node.
        let args = [
            "--config",
            &file,
            "serve",
            "--http",
            "127.0.0.1:0",
            "--enable",
            "short",
        ];
        let output = table.bench.run(&args);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        refused(
            (output.status.success(), stderr),
            &["`left` and `right`", "base_m", "apart = true"],
        );
        let checked = table.run(&["--config", &file, "check"]).1;
        assert!(checked.contains("one of `left` and `right`"), "{checked}");
        // On a node that runs.
        let mut node = table.serves(["", ""]);
        refused(
            table.enable(&[]),
            &["`left` and `right`", "--arm", "othing was enabled"],
        );
        expect_done(table.enable(&["--arm", "left"]));
        refused(
            table.enable(&["--arm", "right"]),
            &["because of `left`", "enabled for short"],
        );
        expect_done(table.run(&["reset", "--scene", "short", "--arm", "left"]));
        // It holds itself up at rest, which is out of nobody's way but its own.
        expect_done(table.run(&["disable"]));
        expect_done(table.enable(&["--arm", "right"]));
        let right = ["reset", "--scene", "short", "--arm", "right"];
        expect_done(table.run(&right));
        refused(table.enable(&["--arm", "left"]), &["because of `right`"]);
        assert_eq!(node.child.terminate(), Some(0));
    });
}

#[test]
fn parks_the_arm_that_is_enabled_when_the_node_ends() {
    unless_starved(|| {
        let table = Table::new();
        let mut node = table.serves(["base_m = [0.0, 0.0, 0.0]", "base_m = [0.0, 0.3, 0.0]"]);
        refused(table.enable(&[]), &["bases are 0.30 m apart"]);
        expect_done(table.enable(&["--arm", "left"]));
        let status = expect_done(table.run(&["status"]));
        assert!(
            status.contains("left: so101 ") && status.contains("right: so101 "),
            "{status}"
        );
        let url = &node.url.clone();
        std::thread::scope(|scope| {
            let bench = &table.bench;
            let stroke = ["call", "--node", url, "stroke", r#"{"scene":"short"}"#];
            let drawn = scope.spawn(move || bench.run(&stroke));
            let began = Instant::now();
            // What is only planned would be held before it moves.
            while !expect_done(table.run(&["status"])).contains("moving") {
                assert!(began.elapsed() < PATIENCE, "it never moved");
            }
            loop {
                // Done is what was asked of the arm that moves; the other one has nothing to hold.
                let (is_done, printed) = table.run(&["hold", "--now"]);
                assert_eq!(is_done, printed.contains("left: the motion"), "{printed}");
                if is_done {
                    break;
                }
                assert!(began.elapsed() < PATIENCE, "it never moved");
            }
            assert_eq!(node.child.terminate(), Some(0));
            drop(drawn.join().unwrap());
        });
        wait_for(&node.lines, "at rest");
    });
}

#[test]
fn a_person_s_word_or_distance_lets_both_arms_be_enabled() {
    unless_starved(|| {
        for (keys, expected) in [
            (["", "apart = true"], "`apart = true` of `right`"),
            (
                ["base_m = [0.0, 0.0, 0.0]", "base_m = [0.0, 2.5, 0.0]"],
                "enabled",
            ),
        ] {
            let table = Table::new();
            let _node = table.serves(keys);
            let printed = expect_done(table.enable(&[]));
            assert!(printed.contains(expected), "{printed}");
        }
    });
}
