//! Tests that each helper does its work and reports what it could not do.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use std::path::Path;

use serde_json::json;

use super::*;
use crate::{AnswerReplay, EndpointResponse, ExamToolCard, PlannerExam};
use args::{
    ArgumentShape, ForgivenessProfile, ParameterShape, ReaderPolicy, ToolEffect, ValueKind,
};

fn tools() -> Arc<ExamToolbox> {
    let card = |(name, does): (&str, ToolEffect)| {
        let scene = ValueKind::name(["default", "letters"]);
        ExamToolCard {
            does,
            shape: ArgumentShape::new(vec![ParameterShape::new("scene", scene)]),
            policy: ReaderPolicy::new(ToolEffect::Moves, ForgivenessProfile::Guarded),
            ..ExamToolCard::named(name)
        }
    };
    let named = [
        ("stroke", ToolEffect::Moves),
        ("sense", ToolEffect::Reads),
        ("stop", ToolEffect::Stops),
    ];
    Arc::new(ExamToolbox::new(named.map(card).to_vec()))
}

fn service(store: &Path) -> HelperService {
    HelperService::new(store.to_owned(), HashMap::new(), None)
}

fn help(service: &HelperService, helper: ExamHelper, arguments: &Value) -> HelperToolResult {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let arguments = arguments.as_object().unwrap();
    runtime.block_on(service.help(helper, arguments, &tools()))
}

const DRAW: &str = "Put the letters on the paper, would you";

fn draw() -> Value {
    json!({"query": DRAW, "expected_tool": "stroke", "expected_params": {"scene": "letters"}})
}

#[test]
fn limits_are_as_agreed() {
    let seconds = ExamHelper::ALL.map(|one| HelperLimits::shipped(one).time_limit.as_secs());
    assert_eq!(seconds, [3, 5, 2, 10, 10, 15]);
    let retries = ExamHelper::ALL.map(|one| HelperLimits::shipped(one).retries);
    assert_eq!(retries, [3, 3, 1, 1, 1, 0]);
    for helper in ExamHelper::ALL {
        assert_eq!(ExamHelper::named(helper.name()), Some(helper));
    }
}

#[test]
fn an_unknown_planner_is_a_beginner_and_an_examined_one_has_its_results() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("exam.db");
    let beginner = help(&service(&store), ExamHelper::PlannerProfile, &json!({}));
    assert!(
        !beginner.is_failed && beginner.fields["is_beginner"] == true,
        "{beginner:?}"
    );
    assert_eq!(
        beginner.fields["weak_classes"].as_array().unwrap().len(),
        16
    );
    assert!(!store.exists(), "a look makes no record");
    // A store that cannot be read counts as missing.
    let broken = folder.path().join("broken.db");
    std::fs::write(&broken, "this is no database, and long enough to be one").unwrap();
    let unreadable = help(&service(&broken), ExamHelper::PlannerProfile, &json!({}));
    assert!(
        !unreadable.is_failed && unreadable.fields["is_beginner"] == true,
        "{unreadable:?}"
    );

    let mut record = ExamRecord::open(&store).unwrap();
    let exam = PlannerExam {
        cases: ExamCase::read_lines(&draw().to_string()).unwrap(),
        tools: Arc::unwrap_or_clone(tools()),
        preamble: String::new(),
        requested: None,
        notes: Vec::new(),
    };
    let line = json!({"query": DRAW, "output": "No."});
    let replay = AnswerReplay::read_lines(&line.to_string()).unwrap();
    exam.replay(&replay, "some-model", &mut record).unwrap();
    drop(record);
    let examined = help(&service(&store), ExamHelper::PlannerProfile, &json!({}));
    assert_eq!(examined.fields["model"], "some-model");
    assert_eq!(
        examined.fields["scores"][0]["right"],
        json!({"hits": 0, "n": 1})
    );
    let other = help(
        &service(&store),
        ExamHelper::PlannerProfile,
        &json!({"model": "other"}),
    );
    assert_eq!(other.fields["is_beginner"], true);
}

#[test]
fn no_template_may_match_and_an_unknown_class_is_refused() {
    let service = service(Path::new("/nowhere/exam.db"));
    let search = |given: &Value| help(&service, ExamHelper::SearchCaseTemplates, given);
    assert!(
        search(&json!({"class": "stop"})).fields["n"]
            .as_u64()
            .unwrap()
            >= 2
    );
    let none = search(&json!({"class": "stop", "tool": "stroke"}));
    assert_eq!(
        (none.is_failed, &none.fields["templates"]),
        (false, &json!([]))
    );
    let wrong = search(&json!({"class": "stops"}));
    assert!(
        wrong.is_failed && wrong.message.contains("nearest first): stop, "),
        "{wrong:?}"
    );
}

#[test]
fn higher_difficulty_gives_more_keywords_and_they_are_cached_for_an_hour() {
    let service = service(Path::new("/nowhere/exam.db"));
    let keywords = |difficulty: f64| {
        help(
            &service,
            ExamHelper::DifficultyKeywords,
            &json!({"difficulty": difficulty}),
        )
    };
    let (easy, hard) = (keywords(1.0), keywords(10.0));
    let count = |helped: &HelperToolResult| helped.fields["distractors"].as_array().unwrap().len();
    assert!(count(&easy) < count(&hard));
    assert_eq!(easy.fields["scenes"], json!(["default", "letters"]));
    assert!(
        easy.fields["synonyms"].get("align").is_none(),
        "this node has none"
    );
    assert_eq!(
        (&easy.fields["cached"], &keywords(1.0).fields["cached"]),
        (&json!(false), &json!(true))
    );
}

#[test]
fn cases_are_validated_in_batches_and_the_judge_is_named() {
    let service = service(Path::new("/nowhere/exam.db"));
    let refused = json!({"query": "Draw a tiger here", "expected_tool": "stroke", "expected_params": {"scene": "tiger"}});
    let helped = help(
        &service,
        ExamHelper::ValidateCase,
        &json!({"ask_model": true, "cases": [draw(), draw(), refused, {"query": 3}]}),
    );
    let decisions: Vec<&str> = helped.fields["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["decision"].as_str().unwrap())
        .collect();
    // The second has the first one's name, so it is the same case, not a copy.
    assert_eq!(
        decisions,
        ["pass", "pass", "reject", "reject"],
        "{helped:?}"
    );
    assert!(
        helped
            .message
            .contains("by rules only: this node has no model"),
        "{helped:?}"
    );
    assert!(
        helped.fields["findings"][3].get("score").is_none(),
        "no score is made up"
    );
    let near = json!({"query": format!("{DRAW}!"), "expected_tool": "stroke", "expected_params": {"scene": "letters"}});
    let second_decision = |extra: Value| {
        let mut arguments = json!({"cases": [draw(), near]});
        arguments
            .as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        let helped = help(&service, ExamHelper::ValidateCase, &arguments);
        helped.fields["findings"][1]["decision"].clone()
    };
    let copy = second_decision(json!({}));
    assert!(copy == "revise" || copy == "reject", "{copy}");
    assert_eq!(second_decision(json!({"is_revised": true})), "reject");
}

/// A model that always gives the same answer.
struct FixedReply(Result<&'static str, &'static str>);

impl ModelEndpoint for FixedReply {
    fn ask(
        &self,
        _: Value,
    ) -> futures::future::BoxFuture<'_, Result<EndpointResponse, crate::AnswerError>> {
        let answer = self
            .0
            .map_err(|message| crate::AnswerError::Unreachable(message.to_owned()))
            .map(|text| EndpointResponse {
                status: 200,
                body: json!({"choices": [{"message": {"role": "assistant", "content": text}}]})
                    .to_string(),
            });
        Box::pin(async move { answer })
    }
}

#[test]
fn a_model_can_lower_a_score_and_one_that_fails_gives_none() {
    let judged = |reply: Result<&'static str, &'static str>| {
        let settings = PlannerSettings {
            retries: 0,
            ..PlannerSettings::new("p", "m")
        };
        let client = ModelClient {
            endpoint: Box::new(FixedReply(reply)),
            settings,
        };
        let service = HelperService::new("/nowhere/exam.db".into(), HashMap::new(), Some(client));
        let helped = help(
            &service,
            ExamHelper::ValidateCase,
            &json!({"ask_model": true, "cases": [draw()]}),
        );
        helped.fields["findings"][0].clone()
    };
    let low = judged(Ok("Well: {\"score\": 0.72, \"why\": \"vague\"}"));
    assert_eq!(
        (&low["decision"], &low["judged_by"]),
        (&json!("revise"), &json!("rules and a model"))
    );
    for broken in [Ok("It is fine."), Ok("{\"score\": 7}"), Err("nobody there")] {
        let found = judged(broken);
        assert_eq!(
            (&found["decision"], &found["judged_by"]),
            (&json!("pass"), &json!("rules")),
            "{found}"
        );
        assert!(
            found["why"].to_string().contains("the model failed"),
            "{found}"
        );
    }
}

#[test]
fn a_case_that_cannot_be_saved_is_queued_and_saved_with_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("exam.db");
    let bad = json!({"query": "Draw {scene}", "expected_tool": "stroke"});
    let given = json!({"cases": [draw(), bad]});
    // A folder where the record should be: it cannot be opened.
    std::fs::create_dir(&store).unwrap();
    let queued = help(&service(&store), ExamHelper::SaveCase, &given);
    assert!(
        queued.is_failed && queued.message.contains("the cases wait in"),
        "{queued:?}"
    );
    assert_eq!(queued.fields["queued"].as_array().unwrap().len(), 1);
    assert_eq!(queued.fields["refused"].as_array().unwrap().len(), 1);
    // A second request does not queue it twice.
    help(&service(&store), ExamHelper::SaveCase, &given);
    std::fs::remove_dir(&store).unwrap();
    let chat =
        json!({"cases": [{"query": "What is the weather like up there?", "expected_tool": null}]});
    let saved = help(&service(&store), ExamHelper::SaveCase, &chat);
    assert!(
        !saved.is_failed && saved.message.contains("1 waiting case"),
        "{saved:?}"
    );
    assert_eq!(ExamRecord::open(&store).unwrap().cases().unwrap().len(), 2);
}

#[test]
fn answers_are_scored_one_by_one_and_unscorable_ones_have_no_score() {
    let service = service(Path::new("/nowhere/exam.db"));
    let mut sent = draw();
    sent["output"] = json!("stroke(scene='letters')");
    let answers = json!([
        sent,
        {"case": "chat_1", "output": "Hello!"},
        {"query": "nobody ever asked this", "output": "x"},
        {"case": "chat_1"},
    ]);
    let helped = help(
        &service,
        ExamHelper::ScoreAndExplain,
        &json!({"answers": answers, "explain": true}),
    );
    assert_eq!(
        (&helped.fields["scored"], &helped.fields["failed"]),
        (&json!(2), &json!(2)),
        "{helped:?}"
    );
    let results = helped.fields["results"].as_array().unwrap();
    for full in &results[..2] {
        assert_eq!(full["score"], 1.0, "{full}");
        assert!(
            full["explanation"].as_str().unwrap().chars().count() >= 500,
            "{full}"
        );
        assert!(full["references"].as_array().unwrap().len() >= 3);
    }
    for failed in &results[2..] {
        assert!(
            failed.get("score").is_none() && failed["failed"] == true,
            "{failed}"
        );
    }
    let nothing = help(
        &service,
        ExamHelper::ScoreAndExplain,
        &json!({"answers": []}),
    );
    assert!(nothing.is_failed);
}

#[test]
fn a_helper_that_takes_too_long_has_failed() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("exam.db");
    drop(ExamRecord::open(&store).unwrap());
    let other = rusqlite::Connection::open(&store).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let limits = HelperLimits {
        time_limit: Duration::from_millis(100),
        ..HelperLimits::shipped(ExamHelper::SaveCase)
    };
    let service = HelperService::new(store, HashMap::from([(ExamHelper::SaveCase, limits)]), None);
    let result = help(&service, ExamHelper::SaveCase, &json!({"cases": [draw()]}));
    assert!(
        result.is_failed && result.message.contains("the cases wait in"),
        "{result:?}"
    );
    other.execute_batch("ROLLBACK").unwrap();
}

#[test]
fn the_schema_of_a_helper_names_the_keys_that_it_takes() {
    let known = catalogue::KnownNames::default();
    let keys_of = |tool: &str, list: &str| {
        let mut tools = catalogue::EXAM_TOOLS.iter();
        let schema = catalogue::input(tools.find(|one| one.name == tool).unwrap(), &known);
        let items = schema["properties"][list]["items"].clone();
        assert!(items["required"].is_array(), "{tool}");
        items["properties"].as_object().unwrap().clone()
    };
    let value = |kind: &Value| match kind["type"].as_str().unwrap() {
        "array" if kind["items"]["type"] == "object" => json!([{"role": "user"}]),
        "array" => json!(["sense"]),
        "object" => json!({}),
        _ => kind["enum"]
            .get(0)
            .cloned()
            .unwrap_or_else(|| "stop".into()),
    };
    for tool in ["validate_case", "save_case"] {
        let keys = keys_of(tool, "cases");
        assert!(keys.len() >= 10, "{tool}");
        let case: Map<String, Value> = keys
            .iter()
            .map(|(key, kind)| (key.clone(), value(kind)))
            .collect();
        case_of(&Value::Object(case)).unwrap();
    }
    let answer = keys_of("score_and_explain", "answers");
    assert!(
        ["output", "case", "query", "expected_tool"]
            .iter()
            .all(|key| answer.contains_key(*key))
    );
}

#[test]
fn an_empty_expected_tool_means_that_none_is_right() {
    let case = case_of(&json!({"query": "Good morning!", "expected_tool": ""})).unwrap();
    assert_eq!(case.expected_tool, None);
}
