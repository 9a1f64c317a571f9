//! `steadyhand explain`: what a person or a program sees of the reader, without anything being done.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Output, Stdio};

fn explain(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_steadyhand"))
        .arg("explain")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
}

fn lines(output: &Output) -> Vec<Value> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// A schema of the kind that models misuse.
fn alerts() -> Value {
    json!({"type": "object", "required": ["title"], "properties": {
        "title": {"type": "string"}, "id": {"type": "string"}, "owner_id": {"type": "string"},
        "priority": {"type": "integer"},
        "threshold_operator": {"type": "string", "enum": [">", ">=", "<", "<="]},
        "score_type": {"type": "string", "enum": ["numeric", "categorical", "boolean"]},
        "categories": {"type": "array", "items": {"type": "string"}}}})
}

#[test]
fn an_explanation_is_short_until_all_of_it_is_asked_for() {
    let call = r#"{"a": 1, "b": 2, "scene": "lettrs", "meta": "leav", "dry_run": "maybe"}"#;
    let short = explain(&["stroke", call], "");
    let text = String::from_utf8(short.stdout).unwrap();
    assert!(text.contains("guarded: "), "{text}");
    assert!(text.lines().count() <= 40, "{text}");
    let whole = explain(&["stroke", call, "--format", "json"], "");
    let whole: Value = serde_json::from_slice(&whole.stdout).unwrap();
    assert_eq!(whole["profiles"].as_array().unwrap().len(), 2);
}

#[test]
fn a_schema_as_models_misuse_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("schema.json");
    std::fs::write(&file, alerts().to_string()).unwrap();
    let absent = [
        r#"{"title": "t", "priority": ""}"#,
        r#"{"title": "t", "categories": []}"#,
        r#"{"title": "t", "id": "", "owner_id": ""}"#,
        r#"{"title": "t", "id": null, "owner_id": null}"#,
    ];
    let refused = [
        (r#"{"title": "t", "priority": "High"}"#, "priority"),
        (r#"{"title": "t", "priority": "medium"}"#, "priority"),
        (
            r#"{"title": "t", "threshold_operator": "gte"}"#,
            "threshold_operator",
        ),
        (r#"{"title": "t", "score_type": "binary"}"#, "score_type"),
    ];
    let texts = absent.iter().chain(refused.iter().map(|(text, _)| text));
    let input: String = texts
        .map(|text| format!("{}\n", json!({"s": text})))
        .collect();
    let answers = lines(&explain(&["--schema", file.to_str().unwrap()], &input));
    assert_eq!(answers.len(), 8);
    for answer in &answers[..4] {
        assert_eq!(answer["understood"], json!({"title": "t"}), "{answer}");
    }
    for (answer, (_, path)) in answers[4..].iter().zip(refused) {
        assert_eq!(answer["complaints"][0]["path"], path, "{answer}");
        assert_eq!(answer["corrected"]["title"], "t", "{answer}");
        assert!(
            answer["refused"].as_str().unwrap().starts_with(path),
            "{answer}"
        );
    }
}

#[test]
fn synonyms_hold_only_where_the_schema_declares_them() {
    let mut schema = alerts();
    let case = |schema: &Value| {
        json!({"s": "{title: 't', threshold_operator: 'gte'}", "schema": schema}).to_string()
    };
    let plain = case(&schema);
    schema["properties"]["threshold_operator"]["x-synonyms"] = json!({"gte": ">="});
    let answers = lines(&explain(
        &["--schema", "-"],
        &format!("{plain}\n{}\n", case(&schema)),
    ));
    assert!(answers[0].get("refused").is_some());
    assert_eq!(answers[1]["understood"]["threshold_operator"], ">=");
}

#[test]
fn a_line_that_is_no_case_is_answered_in_its_place() {
    let answers = lines(&explain(
        &["--schema", "-"],
        "nonsense\n{\"s\": \"{}\"}\n{\"s\": \"{}\", \"schema\": {}}\n",
    ));
    assert!(answers[0]["error"].as_str().unwrap().contains("not JSON"));
    assert!(answers[1]["error"].as_str().unwrap().contains("--schema"));
    assert_eq!(answers[2]["understood"], json!({}));
}

/// A text on the canvas was explained as the default scene, and what a call refuses as what runs.
#[test]
fn a_design_is_explained_as_a_call_takes_it() {
    let explained = |arguments: &str| -> Value {
        serde_json::from_slice(&explain(&["stroke", arguments, "--format", "json"], "").stdout)
            .unwrap()
    };
    for (arguments, scene) in [
        (r#"{"text": "Hi"}"#, "canvas"),
        (r#"{"scene": "canvas", "text": "Hi"}"#, "canvas"),
        (r#"{"scene": "letters"}"#, "letters"),
        (r#"{"scene": "canvas", "meta": "leaf"}"#, "canvas"),
        ("{}", "default"),
    ] {
        let explanation = explained(arguments);
        assert_eq!(explanation["candidates"][0]["understood"]["scene"], scene);
        for profile in explanation["profiles"].as_array().unwrap() {
            assert_eq!(profile["outcome"], "moves", "{arguments}: {profile:#}");
            assert_eq!(profile["understood"]["scene"], scene, "{arguments}");
        }
    }
    for (arguments, says) in [
        (r#"{"scene": "letters", "text": "Hi"}"#, "own design"),
        (r#"{"text": "Hi", "svg": "<svg/>"}"#, "two designs"),
        (r#"{"scene": "canvas"}"#, "is a canvas"),
        (r#"{"scene": "letters", "size_mm": 30}"#, "has none"),
        (r#"{"resume": true, "text": "Hi"}"#, "a new one"),
    ] {
        for profile in explained(arguments)["profiles"].as_array().unwrap() {
            assert_eq!(profile["outcome"], "refused", "{arguments}");
            assert_eq!(profile.get("understood"), None, "{arguments}");
            let refused = profile["refused"].as_str().unwrap();
            assert!(refused.contains(says), "{arguments}: {refused}");
        }
    }
}

#[test]
fn a_tool_is_explained_in_words_and_as_json() {
    let call = "{scene: 'Default', depth: 2}";
    let output = explain(&["stroke", call], "");
    let text = String::from_utf8(output.stdout).unwrap();
    for expected in ["lenient", "guarded", "shows", "depth", "L0"] {
        assert!(text.contains(expected), "{expected} is not in:\n{text}");
    }
    let json = explain(&["stroke", call, "--format", "json"], "");
    let explanation: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(explanation["profiles"][0]["outcome"], "moves");
    assert_eq!(explanation["profiles"][1]["outcome"], "preview");
    let unknown = explain(&["strok", "{}"], "");
    assert!(!unknown.status.success());
    assert!(
        String::from_utf8(unknown.stderr)
            .unwrap()
            .contains("stroke")
    );
}
