//! Tests of generated cases: they are good and new, depend on the seed alone, and are not lost.
#![expect(clippy::unwrap_used, reason = "tests")]

use serde_json::json;

use super::*;
use crate::{ExamRecord, ExamToolCard};
use args::{
    ArgumentShape, ForgivenessProfile, ParameterShape, ReaderPolicy, ToolEffect, ValueKind,
};

fn card(name: &str, does: ToolEffect) -> ExamToolCard {
    let scene = ValueKind::Name {
        known: ["default", "letters", "hatched"]
            .map(str::to_owned)
            .to_vec(),
    };
    let shape = ArgumentShape {
        params: vec![
            ParameterShape::new("scene", scene),
            ParameterShape::new("dry_run", ValueKind::Bool),
        ],
        ..ArgumentShape::default()
    };
    ExamToolCard {
        does,
        shape,
        policy: ReaderPolicy::new(ToolEffect::Moves, ForgivenessProfile::Guarded),
        ..ExamToolCard::named(name)
    }
}

fn tools() -> ExamToolbox {
    let named = [
        ("stroke", ToolEffect::Moves),
        ("align", ToolEffect::Moves),
        ("reset", ToolEffect::Moves),
        ("sense", ToolEffect::Reads),
        ("list_nodes", ToolEffect::Reads),
        ("stop", ToolEffect::Stops),
    ];
    ExamToolbox::new(named.map(|(name, does)| card(name, does)).to_vec())
}

fn generated(count: usize, seed: u64) -> GeneratedCases {
    let request = GenerationRequest {
        count,
        seed,
        ..GenerationRequest::default()
    };
    generate(&request, &[], &tools()).unwrap()
}

#[test]
fn the_same_seed_makes_the_same_cases_and_all_are_good() {
    let (one, other) = (generated(60, 7), generated(60, 8));
    assert_eq!(one.cases, generated(60, 7).cases);
    assert_ne!(one.cases, other.cases);
    assert_eq!(one.cases.len(), 60);
    let tools = tools();
    for (index, case) in one.cases.iter().enumerate() {
        assert!(
            check(case, one.cases.iter().take(index), &tools).passes(),
            "{case:?}"
        );
    }
    let no_motion = one
        .cases
        .iter()
        .filter(|case| case.hazard(&tools).forbids_motion());
    assert!(10 * no_motion.count() >= 3 * one.cases.len());
    let classes: std::collections::BTreeSet<CaseClass> =
        one.cases.iter().map(|case| case.class).collect();
    assert_eq!(classes.len(), 15);
}

#[test]
fn templates_are_found_by_class_tool_and_difficulty() {
    let near = templates(None, None, Some(7.0)).unwrap();
    assert!(near.iter().all(|one| (5.5..=8.5).contains(&one.difficulty)));
    let stops = templates(Some(CaseClass::Stop), Some("stop"), None).unwrap();
    assert_eq!(stops.len(), 2);
    assert_eq!(
        templates(Some(CaseClass::Stop), Some("stroke"), None).unwrap(),
        []
    );
    let request = GenerationRequest {
        tool: Some("nothing".to_owned()),
        count: 1,
        ..GenerationRequest::default()
    };
    assert!(generate(&request, &[], &tools()).is_err());
}

fn case(line: &str) -> ExamCase {
    ExamCase::read_lines(line).unwrap().pop().unwrap()
}

#[test]
fn a_bad_case_scores_low() {
    let good = case(
        r#"{"query":"Draw the letters, please.","expected_tool":"stroke","expected_params":{"scene":"letters"}}"#,
    );
    let score = |line: &str| check(&case(line), [&good].into_iter(), &tools()).score;
    let copy = good.line();
    assert!(score(&copy) < 0.7);
    let near = r#"{"query":"Draw the letters, pleas.","expected_tool":"stroke"}"#;
    assert!((0.7..0.85).contains(&score(near)), "{}", score(near));
    let refused = r#"{"query":"Draw a tiger on the sheet","expected_tool":"stroke","expected_params":{"scene":"tiger"}}"#;
    assert!(score(refused) < 0.7);
    let unknown_tool = case(r#"{"query":"Draw over the whole sheet","expected_tool":"strok"}"#);
    let finding = check(&unknown_tool, [&good].into_iter(), &tools());
    assert!(finding.score < 0.7, "{finding:?}");
    let findings = finding.why.join("; ");
    assert!(findings.contains("nearest: \"stroke\""), "{findings}");
    assert!(score(r#"{"query":"Put {scene} on the paper","expected_tool":null}"#) < 0.7);
    assert!(score(r#"{"query":"What is the weather like?","expected_tool":null}"#) >= 0.85);
}

#[test]
fn a_case_that_cannot_be_saved_is_queued_and_saved_later() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("exam.db");
    let mut record = ExamRecord::open(&store).unwrap();
    let writer = rusqlite::Connection::open(&store).unwrap();
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    let cases = generated(3, 1).cases;
    let notice = keep(&mut record, &store, &cases).unwrap().unwrap();
    assert!(notice.contains("the cases wait in"), "{notice}");
    assert_eq!(record.cases().unwrap(), []);
    writer.execute_batch("ROLLBACK").unwrap();
    assert_eq!(save_pending(&mut record, &store).unwrap(), 3);
    assert_eq!(record.cases().unwrap(), cases);
    assert_eq!(save_pending(&mut record, &store).unwrap(), 0);
    // A process that was killed while saving had already taken the file.
    let queued = generated(2, 9).cases;
    wait(&store, &queued, "because").unwrap();
    let queue = folder.path().join("exam.db.later.jsonl");
    std::fs::rename(&queue, folder.path().join("exam.db.later.jsonl.taken")).unwrap();
    wait(&store, &cases, "because").unwrap();
    assert_eq!(save_pending(&mut record, &store).unwrap(), 5);
    assert_eq!(record.cases().unwrap().len(), 5);
    assert!(cases.iter().all(|case| json!(case).is_object()));
}
