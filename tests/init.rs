//! Making a node file without a person: from what answers on a port, and from what is said.
#![allow(clippy::unwrap_used, reason = "a failing test may panic")]

mod support;

use support::Bench;

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
