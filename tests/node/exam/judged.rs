//! Answers judged by a script that knows the documentation alone are judged the same here.

use std::path::Path;
use std::process::Command;

#[test]
fn an_independent_judge_agrees_on_every_answer_and_figure() {
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exam/judge");
    let judged = Command::new("python3")
        .arg(script)
        .arg(env!("CARGO_BIN_EXE_steadyhand"))
        .arg(folder.path())
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&judged.stdout).into_owned();
    assert!(judged.status.success(), "{stdout} {judged:?}");
    assert!(
        stdout.contains("304 answers and 10 figures compared, 0 differ"),
        "{stdout}"
    );
}
