//! A program that was built without the exam: its commands say so, and no token that needs a certificate moves an arm.

use serde_json::json;

use crate::support::{Bench, Caller};

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
        assert!(text.contains("without the exam"), "{text}");
    }
}

#[test]
fn a_token_that_needs_a_certificate_looks_and_does_not_move() {
    let bench = Bench::new().with_file("require_tokens = true\n");
    let bound = bench.token("bound", &["--qualified", "align"]);
    let free = bench.token("free", &[]);
    let served = bench.serve(&[]);
    let code =
        |token: &str, tool: &str| served.caller(token).call(tool, &json!({}))["code"].clone();
    assert_eq!(code(&bound, "reset"), "needs_qualification");
    assert_eq!(code(&bound, "sense"), json!(null));
    assert_eq!(code(&free, "reset"), json!(null));
}
