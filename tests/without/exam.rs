//! A program that was built without the exam: its commands say so, and no token that needs a certificate moves an arm.

use serde_json::json;

use crate::support::{Bench, post, tool_call};

#[test]
fn the_commands_of_the_exam_say_that_they_are_not_there() {
    let bench = Bench::new();
    for command in [
        &["exam", "run", "--planner", "http://127.0.0.1:9/v1"][..],
        &["exam", "summary"],
    ] {
        let output = bench.run(command);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{command:?}");
        assert!(text.contains("built without the exam"), "{text}");
    }
}

#[test]
fn a_token_that_needs_a_certificate_looks_and_does_not_move() {
    let bench = Bench::new();
    std::fs::write(bench.path("node.toml"), "require_tokens = true\n").unwrap();
    let path = |name: &str| bench.path(name).display().to_string();
    let at = ["--state", &path("state"), "--config", &path("node.toml")];
    let token = |more: &[&str]| {
        let made = bench.run(&[&["token", "add"][..], more, &at].concat());
        assert!(made.status.success(), "{made:?}");
        String::from_utf8(made.stdout).unwrap().trim().to_owned()
    };
    let bound = token(&["bound", "--qualified", "align"]);
    let free = token(&["free"]);
    let served = bench.serve(&at);
    let code = |token: &str, tool: &str| {
        let bearer = format!("Authorization: Bearer {token}\r\n");
        let call = tool_call(tool, &json!({}));
        let (_, answer) = post(&served, &bearer, &call);
        answer["result"]["structuredContent"]["code"].clone()
    };
    assert_eq!(code(&bound, "reset"), "needs_qualification");
    assert_eq!(code(&bound, "sense"), json!(null));
    assert_eq!(code(&free, "reset"), json!(null));
}
