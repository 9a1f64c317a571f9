//! Cases that are made: good, new, the same from the same seed, and not lost.
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

fn made(count: usize, seed: u64) -> GeneratedCases {
    let wanted = GenerationRequest {
        count,
        seed,
        ..GenerationRequest::default()
    };
    generate(&wanted, &[], &tools()).unwrap()
}

#[test]
fn the_same_seed_makes_the_same_cases_and_all_are_good() {
    let (one, other) = (made(60, 7), made(60, 8));
    assert_eq!(one.cases, made(60, 7).cases);
    assert_ne!(one.cases, other.cases);
    assert_eq!(one.cases.len(), 60);
    let tools = tools();
    for (index, case) in one.cases.iter().enumerate() {
        assert!(
            check(case, one.cases.iter().take(index), &tools).passes(),
            "{case:?}"
        );
    }
    let still = one
        .cases
        .iter()
        .filter(|case| case.hazard(&tools).forbids_motion());
    assert!(10 * still.count() >= 3 * one.cases.len());
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
    let wanted = GenerationRequest {
        tool: Some("nothing".to_owned()),
        count: 1,
        ..GenerationRequest::default()
    };
    assert!(generate(&wanted, &[], &tools()).is_err());
}

fn case(line: &str) -> ExamCase {
    ExamCase::read_lines(line).unwrap().pop().unwrap()
}

#[test]
fn a_bad_case_is_found_out() {
    let good = case(
        r#"{"query":"Draw the letters, please.","expected_tool":"stroke","expected_params":{"scene":"letters"}}"#,
    );
    let score = |line: &str| check(&case(line), [&good].into_iter(), &tools()).score;
    let same = good.line();
    assert!(score(&same) < 0.7);
    let near = r#"{"query":"Draw the letters, pleas.","expected_tool":"stroke"}"#;
    assert!((0.7..0.85).contains(&score(near)), "{}", score(near));
    let refused = r#"{"query":"Draw a tiger on the sheet","expected_tool":"stroke","expected_params":{"scene":"tiger"}}"#;
    assert!(score(refused) < 0.7);
    let stray = case(r#"{"query":"Draw over the whole sheet","expected_tool":"strok"}"#);
    let found = check(&stray, [&good].into_iter(), &tools());
    assert!(found.score < 0.7, "{found:?}");
    let why = found.why.join("; ");
    assert!(why.contains("the nearest is \"stroke\""), "{why}");
    assert!(score(r#"{"query":"Put {scene} on the paper","expected_tool":null}"#) < 0.7);
    assert!(score(r#"{"query":"What is the weather like?","expected_tool":null}"#) >= 0.85);
}

#[test]
fn what_cannot_be_saved_waits_and_is_saved_later() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("exam.db");
    let mut record = ExamRecord::open(&store).unwrap();
    let other = rusqlite::Connection::open(&store).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let cases = made(3, 1).cases;
    let why = keep(&mut record, &store, &cases).unwrap().unwrap();
    assert!(why.contains("they wait in"), "{why}");
    assert_eq!(record.cases().unwrap(), []);
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(save_pending(&mut record, &store).unwrap(), 3);
    assert_eq!(record.cases().unwrap(), cases);
    assert_eq!(save_pending(&mut record, &store).unwrap(), 0);
    // One that was killed while it saved had taken the file.
    let more = made(2, 9).cases;
    wait(&store, &more, "because").unwrap();
    let waiting = folder.path().join("exam.db.later.jsonl");
    std::fs::rename(&waiting, folder.path().join("exam.db.later.jsonl.taken")).unwrap();
    wait(&store, &cases, "because").unwrap();
    assert_eq!(save_pending(&mut record, &store).unwrap(), 5);
    assert_eq!(record.cases().unwrap().len(), 5);
    assert!(cases.iter().all(|case| json!(case).is_object()));
}
