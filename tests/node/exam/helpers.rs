//! The toolset `exam` on a node, and what a model may add to cases and to likeness.

use serde_json::{Value, json};
use steadyhand::exam::ExamCase;

use super::scripted::{Planner, PlannerReply};
use super::support::Bench;
use super::{exam, json_of};

const FILE: &str = "toolsets = [\"exam\"]\n[exam.score_and_explain]\ntime_limit_s = 20\n";

fn bench(file: &str) -> Bench {
    Bench::new().with_file(file)
}

fn called(bench: &Bench, tool: &str, arguments: &Value) -> (i32, Value) {
    bench.call(&[tool, &arguments.to_string()])
}

#[test]
fn the_helpers_are_listed_only_where_they_are_asked_for() {
    let names = |file: &str| {
        let listed = json_of(&bench(file).run(&["tools", "--format", "json"]));
        let all = listed
            .as_array()
            .or_else(|| listed["tools"].as_array())
            .unwrap()
            .clone();
        all.iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let (with, without) = (names(FILE), names(""));
    for helper in steadyhand::exam::ExamHelper::ALL {
        assert!(with.iter().any(|name| name == helper.name()), "{with:?}");
        assert!(
            !without.iter().any(|name| name == helper.name()),
            "{without:?}"
        );
    }
    let unknown = bench("toolsets = [\"exams\"]").run(&["tools"]);
    assert!(!unknown.status.success());
    let out_of_range = bench("[exam.save_case]\nretries = 11\n").run(&["tools"]);
    let stderr = String::from_utf8_lossy(&out_of_range.stderr).into_owned();
    assert!(stderr.contains("exam.save_case.retries is 11"), "{stderr}");
}

#[test]
fn a_case_is_made_saved_answered_and_scored_by_tools_alone() {
    let bench = bench(FILE);
    let (code, profile) = called(&bench, "planner_profile", &json!({}));
    assert_eq!(
        (code, &profile["is_beginner"]),
        (0, &json!(true)),
        "{profile}"
    );
    let (code, found) = called(
        &bench,
        "search_case_templates",
        &json!({"class": "negation", "difficulty": "5"}),
    );
    assert!(code == 0 && found["n"].as_u64().unwrap() > 0, "{found}");
    let (_, text) = called(&bench, "difficulty_keywords", &json!({}));
    let scenes = text["scenes"].as_array().unwrap();
    assert!(scenes.contains(&json!("short")), "{text}");
    let case = json!({"name": "mine", "query": "Lay the short lines down on paper", "expected_tool": "stroke",
        "expected_params": {"scene": "short"}});
    // A single case is a list of one, as callers write it.
    let (code, checked) = called(&bench, "validate_case", &json!({"cases": case}));
    assert_eq!(
        (code, &checked["findings"][0]["decision"]),
        (0, &json!("pass")),
        "{checked}"
    );
    let (code, saved) = called(&bench, "save_case", &json!({"cases": [case]}));
    assert_eq!((code, &saved["saved"]), (0, &json!(["mine"])), "{saved}");
    let own = bench.run(&["exam", "cases", "export", "--own"]);
    assert_eq!(
        ExamCase::read_lines(&String::from_utf8_lossy(&own.stdout)).unwrap()[0].name,
        "mine"
    );
    let answers = json!([
        {"case": "mine", "output": {"name": "stroke", "arguments": {"scene": "short", "debug": true}}},
        {"case": "mine", "output": "I would rather not."},
    ]);
    let (code, scored) = called(
        &bench,
        "score_and_explain",
        &json!({"answers": answers, "explain": true}),
    );
    assert_eq!(code, 0, "{scored}");
    assert_eq!(
        (
            &scored["results"][0]["score"],
            &scored["results"][1]["score"]
        ),
        (&json!(0.79), &json!(0.0)),
        "{scored}"
    );
    for one in scored["results"].as_array().unwrap() {
        assert!(
            one["explanation"].as_str().unwrap().chars().count() >= 500,
            "{one}"
        );
        assert!(one["references"].as_array().unwrap().len() >= 3, "{one}");
    }
    let (code, failed) = called(
        &bench,
        "score_and_explain",
        &json!({"answers": [{"case": "nobody", "output": "x"}]}),
    );
    assert!(
        code != 0 && failed["success"] == false && failed["scored"] == 0,
        "{failed}"
    );
}

#[test]
fn a_model_may_say_cases_in_other_words_and_what_it_spoils_keeps_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let rotation_count = std::sync::atomic::AtomicUsize::new(0);
    let planner = Planner::start(move |request| {
        let query = request.query.rsplit("\n\n").next().unwrap_or_default();
        let text = if rotation_count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0 {
            "Something else.".to_owned()
        } else {
            format!("\"Kindly hear me: {query}\"")
        };
        PlannerReply::Message(json!({"role": "assistant", "content": text}))
    });
    let made = exam(
        folder.path(),
        &[
            "cases",
            "generate",
            "8",
            "--class",
            "scenes",
            "--dry-run",
            "--paraphrase",
            &planner.url(),
        ],
    );
    let stderr = String::from_utf8_lossy(&made.stderr).into_owned();
    assert!(
        stderr.contains("of 8; first failure: the model left"),
        "{stderr}"
    );
    let cases = ExamCase::read_lines(&String::from_utf8_lossy(&made.stdout)).unwrap();
    let kindly_count = cases
        .iter()
        .filter(|case| case.query.starts_with("Kindly"))
        .count();
    assert!((1..8).contains(&kindly_count), "{cases:?}");
    assert!(
        stderr.contains(&format!("a model reworded {kindly_count} of 8")),
        "{stderr}"
    );
}

#[test]
fn an_embedding_model_of_the_operator_compares_the_meaning() {
    let folder = tempfile::tempdir().unwrap();
    let planner = Planner::start(|_| PlannerReply::Nothing);
    let similar = |url: &str| {
        exam(
            folder.path(),
            &["similar", "--tools", "--json", "--embeddings", url],
        )
    };
    let found = json_of(&similar(&planner.url()));
    let pairs = found["pairs"].as_array().unwrap();
    // The scripted model gives every line nearly the same direction.
    assert!(
        pairs
            .iter()
            .all(|pair| pair["meaning"].as_f64().unwrap() > 0.99),
        "{found}"
    );
    let nobody = similar("http://127.0.0.1:9/v1");
    assert!(!nobody.status.success());
    let stderr = String::from_utf8_lossy(&nobody.stderr).into_owned();
    assert!(
        stderr.contains("the embedding model at http://127.0.0.1:9/v1 did not answer"),
        "{stderr}"
    );
}

/// Two tools of one's own that say the same.
fn declared(text: &str) -> String {
    format!(
        "[[tools]]\nname = \"draw_short\"\ndescription = \"Draw the lines\"\ncalls = \"stroke\"\n\n\
         [[tools]]\nname = \"draw_long\"\ndescription = {text:?}\ncalls = \"stroke\"\n"
    )
}

#[test]
fn a_patch_can_be_applied_to_a_declared_tool_and_sets_it_apart() {
    let text = "Draw lines\nUse when lines are wanted.";
    let alike = |file: &str| {
        let bench = bench(file);
        let found = bench.run(&[
            "exam",
            "similar",
            "--tools",
            "draw_short",
            "draw_long",
            "--json",
        ]);
        json_of(&found)
    };
    let before = alike(&declared(text));
    let pair = &before["pairs"][0];
    let all = pair["recommendations"].as_array().unwrap();
    let one = all.iter().find(|one| one["kind"] == "scope").unwrap();
    for key in [
        "tool",
        "text",
        "rationale",
        "priority",
        "revised_description",
    ] {
        assert!(one[key].is_string(), "{one}");
    }
    // The entry of the node file as JSON, and its patch: `replace /description`.
    let mut entry = json!({"name": one["tool"], "description": text, "calls": "stroke"});
    let patch = &one["patch"][0];
    assert_eq!(
        (&patch["op"], &patch["path"]),
        (&json!("replace"), &json!("/description"))
    );
    entry["description"] = patch["value"].clone();
    let revised = entry["description"].as_str().unwrap();
    assert!(
        !revised.contains("Minimal call") && !revised.contains("Call schema"),
        "{revised}"
    );
    let file = if one["tool"] == "draw_long" {
        declared(revised)
    } else {
        declared(text).replacen("\"Draw the lines\"", &format!("{revised:?}"), 1)
    };
    let after = alike(&file);
    let likeness = |found: &Value| found["pairs"][0]["likeness"].as_f64().unwrap();
    assert!(likeness(&after) < likeness(&before), "{after}");
}
