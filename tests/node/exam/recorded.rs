//! A real and very small model: what it once answered, recorded by `tests/peers/smollm2/run`, is scored without it.

use std::path::Path;

use serde_json::Value;
use steadyhand::exam::ExamCase;

use super::{exam, json_of};

/// The row of the table of planners in the documentation, as a verdict has it.
fn row(verdict: &Value) -> String {
    let tally = &verdict["tally"];
    let of = |rate: &Value| format!("{} of {}", rate["hits"], rate["n"]);
    let f1 = tally["f1"]["value"].as_f64().unwrap();
    format!(
        "| {} | {} | {f1:.3} (n = {}) | {} | {} | {} |",
        tally["cases"],
        of(&tally["all"]["right"]),
        tally["f1"]["n"],
        of(&tally["hazards"]),
        of(&tally["lost_stops"]),
        verdict["reached"].as_str().unwrap_or("none"),
    )
}

/// Previews of doubtful calls, in conversations in which such a model calls at all.
#[test]
fn smollm2_confirms_previews_as_often_as_the_page_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let [recorded, cases] = [
        "tests/exam/smollm2_doubt.jsonl",
        "tests/peers/smollm2/doubt.jsonl",
    ]
    .map(|path| root.join(path).display().to_string());
    let folder = tempfile::tempdir().unwrap();
    let replay = ["run", "--replay", &recorded, "--cases", &cases, "--json"];
    let verdict = json_of(&exam(folder.path(), &replay));
    let rate = |key: &str| {
        let rate = &verdict["tally"][key];
        let [hits, n] = ["hits", "n"].map(|key| rate[key].as_f64().unwrap());
        format!("{:.3} (n = {n})", hits / n)
    };
    let rates = ["blind_confirms_words", "blind_confirms_next_call"].map(rate);
    let row = format!("| {} | {} |", rates[0], rates[1]);
    let page = std::fs::read_to_string(root.join("docs/exam.md")).unwrap();
    assert!(page.contains(&row), "{row}");
    let html = std::fs::read_to_string(verdict["report"][0].as_str().unwrap()).unwrap();
    assert!(html.contains("Previews confirmed blindly (preview in words only)"));
}

#[test]
fn smollm2_fails_and_the_report_says_why() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let recorded = root.join("tests/exam/smollm2.jsonl");
    let folder = tempfile::tempdir().unwrap();
    let replay = ["run", "--replay", recorded.to_str().unwrap()];
    let output = exam(
        folder.path(),
        &[&replay[..], &["--level", "observe", "--json"]].concat(),
    );
    assert_eq!(output.status.code(), Some(1));
    let verdict = json_of(&output);
    let cases = ExamCase::shipped().unwrap().len();
    assert_eq!(verdict["tally"]["answers"], cases, "{verdict}");
    assert_eq!(verdict["tally"]["failed"], 0);
    assert_eq!(verdict["reached"], Value::Null);
    let reasons = verdict["reasons"].to_string();
    assert!(
        reasons.contains("F1 is") && reasons.contains("observe needs"),
        "{reasons}"
    );
    assert!(!reasons.contains("no answer"), "{reasons}");
    assert_eq!(verdict["worst"].as_array().unwrap().len(), 3);
    let html = std::fs::read_to_string(verdict["report"][0].as_str().unwrap()).unwrap();
    assert!(html.contains("The worst answers") && html.contains("F1 is"));

    let contents = std::fs::read_to_string(root.join("docs/internals/exam.md")).unwrap();
    let rows: Vec<&str> = contents
        .lines()
        .filter(|line| line.starts_with('|'))
        .collect();
    let command = "`steadyhand exam run --replay tests/exam/smollm2.jsonl --level observe`";
    let is_it = |line: &&&str| line.contains("SmolLM2") && line.contains(command);
    let line = rows.iter().find(is_it).unwrap();
    assert!(line.contains(&row(&verdict)), "{line}\n{}", row(&verdict));
    let router = &verdict["router"];
    let right = format!(
        "| {} | {} of {} |",
        router["n"], router["hits"], router["n"]
    );
    let is_router = |line: &&&str| line.contains("built-in router");
    let line = rows.iter().find(is_router).unwrap();
    assert!(line.contains(&right), "{line}\n{right}");
}
