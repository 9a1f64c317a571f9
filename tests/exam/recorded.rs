//! A real and very small model: what it once answered, recorded by `tests/peers/smollm2/run`, is scored without it.

use std::path::Path;

use serde_json::Value;
use steadyhand::exam::Case;

use super::{exam, json_of};

#[test]
fn smollm2_fails_and_the_report_says_why() {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exam/smollm2.jsonl");
    let text = std::fs::read_to_string(&recorded).unwrap();
    let answers: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(answers.len() >= 15, "{}", answers.len());
    let folder = tempfile::tempdir().unwrap();
    let cases = folder.path().join("cases.jsonl");
    let answered = |case: &Case| {
        answers
            .iter()
            .any(|answer| answer["case"] == case.name.as_str())
    };
    let asked = Case::shipped().unwrap().into_iter().filter(answered);
    let lines: Vec<String> = asked.map(|case| case.line()).collect();
    std::fs::write(&cases, lines.join("\n")).unwrap();
    let (cases, recorded) = (cases.to_str().unwrap(), recorded.to_str().unwrap());
    let output = exam(
        folder.path(),
        &[
            "run", "--replay", recorded, "--cases", cases, "--level", "observe", "--json",
        ],
    );
    assert_eq!(output.status.code(), Some(1));
    let verdict = json_of(&output);
    assert_eq!(verdict["tally"]["answers"], answers.len(), "{verdict}");
    assert_eq!(verdict["reached"], Value::Null);
    let reasons = verdict["reasons"].to_string();
    assert!(
        reasons.contains("F1 is") && reasons.contains("observe wants"),
        "{reasons}"
    );
    assert!(!reasons.contains("no answer"), "{reasons}");
    assert_eq!(verdict["worst"].as_array().unwrap().len(), 3);
    let html = std::fs::read_to_string(verdict["report"][0].as_str().unwrap()).unwrap();
    assert!(html.contains("The worst answers") && html.contains("F1 is"));
}
