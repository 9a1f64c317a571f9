//! A model that judges cases, behind a real endpoint: what it says, how often it is asked again, and what it costs to fail.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::scripted::{Planner, PlannerReply, PlannerRequest};
use super::support::Bench;

fn verdict(score: f64) -> PlannerReply {
    let text = json!({"score": score, "why": "plain"}).to_string();
    PlannerReply::Message(json!({"role": "assistant", "content": text}))
}

/// Lets a node validate three cases with the model at `planner`.
fn validated(planner: &Planner, settings: &str) -> impl Fn() -> Value {
    let file = format!(
        "toolsets = [\"exam\"]\n[exam]\nmodel_url = \"{}\"\n[exam.validate_case]\n{settings}",
        planner.url()
    );
    let cases: Vec<Value> = ["Lay the short lines down", "Draw the letters slowly", "Where is the pen"]
        .iter()
        .zip(["stroke", "stroke", "sense"])
        .map(|(query, tool)| json!({"name": query.split(' ').next(), "query": query, "expected_tool": tool}))
        .collect();
    let call = json!({"cases": cases, "ask_model": true}).to_string();
    let bench = Bench::new().with_file(&file);
    move || bench.call(&["validate_case", &call]).1
}

fn is_about(request: &PlannerRequest, word: &str) -> bool {
    request.query.contains(&format!("A test asks: \"{word}"))
}

#[test]
fn a_judge_that_hangs_costs_its_own_score_and_the_rest_is_kept() {
    let planner = Planner::start(|request| {
        if is_about(request, "Draw") {
            PlannerReply::Nothing
        } else {
            verdict(0.9)
        }
    });
    let validate = validated(&planner, "time_limit_s = 4\n");
    let found = validate();
    assert_eq!(found["model_failed"], json!(["Draw"]), "{found}");
    let all = found["findings"].as_array().unwrap();
    let judged: Vec<&Value> = all.iter().map(|one| &one["judged_by"]).collect();
    assert_eq!(judged, ["rules and a model", "rules", "rules and a model"]);
    // What the rules found stands.
    assert_eq!(
        (
            &all[1]["score"],
            &all[1]["model"]["score"],
            &all[1]["model"]["is_default"]
        ),
        (&json!(1.0), &json!(0.5), &json!(true)),
        "{found}"
    );
    assert_eq!(all[2]["model"]["score"], 0.9);
    assert!(
        found["message"]
            .as_str()
            .unwrap()
            .contains("failed for 1 of them"),
        "{found}"
    );
}

#[test]
fn a_judge_that_stumbles_is_asked_again_and_that_is_told() {
    let request_count = AtomicUsize::new(0);
    let planner = Planner::start(move |_| {
        if request_count.fetch_add(1, Ordering::SeqCst) == 0 {
            PlannerReply::Raw(503, "no slot is free".to_owned())
        } else {
            verdict(0.75)
        }
    });
    let validate = validated(&planner, "time_limit_s = 20\n");
    let found = validate();
    let retries: Vec<&Value> = found["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["model"]["retries"])
        .collect();
    assert_eq!(retries, [1, 0, 0], "{found}");
    assert_eq!(found["findings"][0]["decision"], "revise", "{found}");
    assert_eq!(
        (&found["model_failed"], &found["retries"]),
        (&json!([]), &json!(0))
    );
    assert_eq!(planner.questions(), 4);
}

#[test]
fn a_judge_that_is_gone_is_not_asked_for_ever() {
    let planner = Planner::start(|_| PlannerReply::Raw(401, "no".to_owned()));
    let validate = validated(&planner, "time_limit_s = 20\n");
    let found = validate();
    assert_eq!(found["model_failed"].as_array().unwrap().len(), 3);
    assert_eq!(planner.questions(), 2, "{found}");
    assert!(
        found["findings"][2]["model"]["failed"]
            .as_str()
            .unwrap()
            .contains("it failed 2 times in a row"),
        "{found}"
    );
}
