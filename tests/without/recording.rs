//! A program that was built without recordings: it says so, and does not move what it was asked to record.

use crate::support::Bench;

#[test]
fn what_asks_for_a_recording_is_told_that_there_are_none() {
    let bench = Bench::new();
    for command in [
        &["recording", "show", "job-1"][..],
        &["call", "stroke", r#"{"scene":"short"}"#, "--record"],
    ] {
        let output = bench.run(command);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{command:?}");
        assert!(text.contains("without recordings"), "{text}");
    }
}
