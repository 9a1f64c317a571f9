//! Calls that were made badly, and the corrected calls that they are answered with: these are accepted, and do no more
//! than was asked for.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use super::super::{
    ArgumentRefusal, ArgumentShape, ForgivenessProfile, LineReading, ParameterShape, ReaderPolicy,
    ReaderRule, ReceivedArguments, RefusalMemory, RepairClass, ToolEffect, ValueKind, explain_line,
    read,
    tests::{previewed, stroke},
};
use proptest::{
    prelude::*,
    sample::select,
    test_runner::{RngAlgorithm, TestRng, TestRunner},
};
use serde_json::{Map, Value, json};

/// Cases of the normal run; `STEADYHAND_CASES` sets another number.
const CASES: u32 = 1_000;

/// A call as it is sent, and what its caller intended.
#[derive(Debug, Clone)]
struct Sent {
    text: String,
    /// The scene that it names clearly.
    scene: Option<&'static str>,
    asks_for_no_motion: bool,
}

/// Returns a tool that moves and has no preview.
fn without_preview() -> ArgumentShape {
    let mut shape = previewed();
    shape.params.retain(|param| param.name != "dry_run");
    shape.foreign.extend(["dry_run".into(), "preview".into()]);
    shape
}

/// Returns a tool that moves, whose overlay must be named.
fn with_required() -> ArgumentShape {
    let mut shape = previewed();
    let overlay = shape.params.iter_mut().find(|one| one.name == "overlay");
    overlay.unwrap().required = true;
    shape
}

fn scene() -> impl Strategy<Value = (Option<Value>, Option<&'static str>)> {
    let named = |value: Value, name| (Some(value), Some(name));
    let wrong = |value: Value| (Some(value), None);
    select(vec![
        (None, None),
        named(json!("koi"), "koi"),
        named(json!("Koi"), "koi"),
        named(json!(["star"]), "star"),
        named(json!("practice skin"), "practice_skin"),
        wrong(json!("tigger")),
        wrong(json!("the koi")),
        wrong(json!("zebra")),
        wrong(json!("<scene>")),
        wrong(json!({"type": "string"})),
        wrong(json!("[object Object]")),
        wrong(json!(["koi", "star"])),
        wrong(json!(5)),
    ])
}

/// Generates arguments beside the scene, good and bad.
fn other_arguments() -> impl Strategy<Value = Vec<(&'static str, Value)>> {
    let pair = select(vec![
        ("fps", json!(0)),
        ("fps", json!("High")),
        ("fps", json!(5)),
        ("fps", json!(2.5)),
        ("lift", json!("5 mm")),
        ("lift", json!("5 s")),
        ("lift", json!(80)),
        ("debug", json!("maybe")),
        ("debug", json!(true)),
        ("overlay", json!("leaf")),
        ("overlay", json!("lea")),
        ("overlay", json!("[object Object]")),
        ("note", json!("hello there")),
        ("note", json!({"a": 1})),
        ("depth", json!(2)),
        ("depth", json!("2 mm")),
        ("speed", json!("slow")),
        ("style", json!("bold")),
        ("num_plys", json!(4)),
        ("options", json!({"fps": 5})),
        ("tool", json!("align")),
        ("fsp", json!(5)),
        ("ctx", json!({})),
        ("", json!(1)),
    ]);
    prop::collection::vec(pair, 0..4)
}

/// Requests not to move, as keys.
fn request() -> impl Strategy<Value = (&'static str, Value)> {
    select(vec![
        ("dry_run", json!(true)),
        ("dryRun", json!("yes")),
        ("DRY-RUN", json!(1)),
        ("dry_run", json!("tru")),
        ("dry_run", json!({"enabled": true})),
        ("dri_run", json!(true)),
        ("preview", json!(true)),
        ("preview_only", json!(true)),
        ("simulate", json!(true)),
        ("simulation", json!("on")),
        ("mode", json!("dry run")),
        ("do_not_draw", json!(true)),
        ("no_motion", json!(true)),
        ("confirm", json!(false)),
        ("execute", json!("no")),
        ("options", json!({"dry_run": true})),
        ("config", json!({"run": {"flags": [{"preview": true}]}})),
        ("settings", json!("{\"dry_run\": true}")),
    ])
}

/// Requests not to move, in words around the arguments or in a comment.
const WORDS: [(&str, &str); 6] = [
    ("Only a dry run: ", ""),
    ("", "\ndry_run: true"),
    ("", " but do not draw it"),
    ("", " --dry-run"),
    ("", " // a dry run"),
    ("<dry_run>", "</dry_run>"),
];

/// Generates text to put around the call, and whether it asks for no motion.
fn around() -> impl Strategy<Value = ((&'static str, &'static str), bool)> {
    let wrappings = [("", ""), ("```json\n", "\n```"), ("Sure: ", ""), ("[", "]")];
    let wrappings = wrappings.map(|pair| (pair, false));
    prop_oneof![3 => select(wrappings.to_vec()), 1 => select(WORDS.map(|pair| (pair, true)).to_vec())]
}

/// Generates damage to the text: none, cut at a fraction of its length, doubled, or lost.
fn spoilt() -> impl Strategy<Value = (u8, prop::sample::Index)> {
    let way = prop_oneof![6 => Just(0_u8), 1 => Just(1_u8), 1 => Just(2_u8), 1 => Just(3_u8)];
    (way, any::<prop::sample::Index>())
}

fn sent() -> impl Strategy<Value = Sent> {
    let parts = (
        scene(),
        other_arguments(),
        prop::option::of(request()),
        around(),
        spoilt(),
    );
    parts.prop_map(
        |((scene, name), others, request, (around, says_no), (way, at))| {
            let mut pairs: Vec<(&str, Value)> =
                scene.map(|value| ("scene", value)).into_iter().collect();
            pairs.extend(others);
            let asks_for_no_motion = request.is_some() || says_no;
            pairs.extend(request);
            let pairs: Vec<String> = pairs
                .iter()
                .map(|(key, value)| format!("{}: {value}", json!(key)))
                .collect();
            let text = format!("{}{{{}}}{}", around.0, pairs.join(", "), around.1);
            let cut = text.chars().take(at.index(text.chars().count())).collect();
            let (text, is_whole) = match way {
                0 => (text, true),
                1 => (cut, false),
                2 => (format!("{text} {{\"scene\": \"star\"}}"), false),
                _ => ("[object Object]".to_owned(), false),
            };
            Sent {
                text,
                scene: name,
                // A cut text may have lost its request, and then there is none to be kept.
                asks_for_no_motion: asks_for_no_motion && is_whole,
            }
        },
    )
}

/// Returns whether the sent text contains every word of a value.
fn is_stated(text: &str, value: &Value) -> bool {
    let letters = |text: &str| -> String {
        let all = text.chars().filter(|c| c.is_alphanumeric());
        all.flat_map(char::to_lowercase).collect()
    };
    match value {
        Value::String(word) => letters(text).contains(&letters(word)),
        Value::Bool(_) => true,
        _ => text.chars().any(|c| c.is_ascii_digit()),
    }
}

fn check(
    shape: &ArgumentShape,
    policy: &ReaderPolicy,
    sent: &Sent,
    refusal: &ArgumentRefusal,
) -> Result<(), TestCaseError> {
    let Some(call) = &refusal.corrected else {
        prop_assert!(
            !refusal.guidance.is_empty(),
            "no call and no reason: {sent:?}"
        );
        return Ok(());
    };
    let case = format!(
        "{:?} {sent:?} -> {}",
        policy.profile,
        Value::Object(call.clone())
    );
    let again = read(
        shape,
        policy,
        ReceivedArguments::Value(Value::Object(call.clone())),
    );
    let reading = again.map_err(|refusal| TestCaseError::fail(format!("{case}: {refusal}")))?;
    prop_assert_eq!(&reading.given, call, "{}", &case);
    prop_assert!(reading.repairs.is_empty(), "{}", &case);
    for (name, value) in call {
        let param = shape
            .params
            .iter()
            .find(|param| param.name == *name)
            .unwrap();
        let is_default =
            param.default.as_ref() == Some(value) && !matches!(param.kind, ValueKind::Name { .. });
        let is_cautious = param.cautious.as_ref() == Some(value);
        let is_own = is_default || is_cautious || is_stated(&sent.text, value);
        prop_assert!(is_own, "{} invents {}", &case, name);
    }
    let previews = call.get("dry_run") == Some(&json!(true));
    let named = call.get("scene").and_then(Value::as_str);
    prop_assert!(
        named.is_none() || named == sent.scene || previews,
        "{}",
        &case
    );
    prop_assert!(!sent.asks_for_no_motion || previews, "{}", &case);
    let guarded = policy.profile == ForgivenessProfile::Guarded;
    prop_assert!(!guarded || previews || named.is_some(), "{}", &case);
    Ok(())
}

/// A corrected call does not count as the refused one with an argument left out.
fn check_memory(
    shape: &ArgumentShape,
    policy: &ReaderPolicy,
    sent: &Sent,
) -> Result<(), TestCaseError> {
    let mut memory = RefusalMemory::default();
    let mut judge = |received| {
        let outcome = read(shape, policy, received);
        memory.judge(&["caller"], "stroke", policy, outcome)
    };
    if let Err((refusal, _)) = judge(ReceivedArguments::Text(sent.text.clone()))
        && let Some(call) = refusal.corrected
    {
        let again = judge(ReceivedArguments::Value(Value::Object(call)));
        prop_assert!(again.is_ok(), "{sent:?}");
    }
    Ok(())
}

/// Parts of the cases, each judged by a thread of its own.
const SHARES: u8 = 3;

#[test]
fn a_corrected_call_is_accepted_and_does_no_more_than_requested() {
    let cases = std::env::var("STEADYHAND_CASES").ok();
    let cases: u32 = cases.and_then(|cases| cases.parse().ok()).unwrap_or(CASES);
    std::thread::scope(|threads| {
        for seed in 1..=SHARES {
            threads.spawn(move || judge_corrected(cases.div_ceil(SHARES.into()), seed));
        }
    });
}

fn judge_corrected(cases: u32, seed: u8) {
    let shapes = [previewed(), without_preview(), with_required()];
    let config = ProptestConfig {
        cases,
        ..ProptestConfig::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    let outcome = TestRunner::new_with_rng(config, rng).run(&sent(), |sent| {
        for profile in ForgivenessProfile::ALL {
            let policy = ReaderPolicy::new(ToolEffect::Moves, profile);
            for shape in &shapes {
                let received = ReceivedArguments::Text(sent.text.clone());
                if let Err(refusal) = read(shape, &policy, received) {
                    check(shape, &policy, &sent, &refusal)?;
                    check_memory(shape, &policy, &sent)?;
                }
            }
        }
        Ok(())
    });
    outcome.unwrap_or_else(|failed| panic!("seed {seed}: {failed}"));
}

/// A tool that reads is offered its readable arguments, even `{}`; none of them is invented.
#[test]
fn a_tool_that_reads_is_offered_its_readable_arguments() {
    let policy = ReaderPolicy::new(ToolEffect::Reads, ForgivenessProfile::Guarded);
    let offered = |text: &str| {
        let refusal = read(&previewed(), &policy, ReceivedArguments::Text(text.into()));
        refusal.unwrap_err().corrected
    };
    let map = |value: Value| value.as_object().cloned();
    assert_eq!(offered(r#"{"scene": "tigger"}"#), Some(Map::new()));
    // Alone it would be taken for a piece of the schema.
    let echo = offered(r#"{"scene": "tigger", "note": "string"}"#);
    assert_eq!(echo, Some(Map::new()));
    assert_eq!(
        offered(r#"{"scene": "tigger", "fps": 5}"#),
        map(json!({"fps": 5}))
    );
    let shape = ArgumentShape::new(vec![
        ParameterShape::new("cases", ValueKind::list(ValueKind::Any)).required(),
    ]);
    let refusal = read(&shape, &policy, ReceivedArguments::Absent).unwrap_err();
    assert_eq!(refusal.corrected, None);
    assert!(refusal.guidance.contains("cases"), "{}", refusal.guidance);
}

#[test]
fn every_complaint_comes_at_once_with_a_call_that_works() {
    let policy = ReaderPolicy::new(ToolEffect::Moves, ForgivenessProfile::Guarded);
    let text = r#"{"scene": "tigger", "debug": "maybe", "fps": 0, "note": "hi", "depth": 3}"#;
    let refusal = read(&previewed(), &policy, ReceivedArguments::Text(text.into())).unwrap_err();
    assert_eq!(refusal.complaints.len(), 4, "{refusal}");
    let of_scene = refusal.complaints.iter().find(|c| c.path == "scene");
    assert_eq!(of_scene.unwrap().valid[0], "tiger");
    let corrected = refusal.corrected.map(Value::Object).unwrap();
    assert_eq!(
        corrected,
        json!({"debug": false, "fps": 10, "note": "hi", "dry_run": true})
    );
    assert_eq!(refusal.kind, ReaderRule::Unplaceable);
    assert!(read(&previewed(), &policy, ReceivedArguments::Value(corrected)).is_ok());
}

/// Small models send the corrected call unchanged: it must not draw what they did not name, nor draw if they asked for a preview.
#[test]
fn a_corrected_call_moves_nothing_if_its_intent_is_in_doubt() {
    let policy = ReaderPolicy::new(ToolEffect::Moves, ForgivenessProfile::Guarded);
    let read = |text: &str| read(&previewed(), &policy, ReceivedArguments::Text(text.into()));
    let koi = json!({"scene": "koi", "dry_run": true});
    let look = json!({"dry_run": true});
    for (text, corrected) in [
        // A request not to move is kept, however it was made.
        (r#"{"scene": "koi", "dri_run": true}"#, &koi),
        (r#"{"scene": "koi", "dry_run": "tru"}"#, &koi),
        (r#"{"scene": "koi", "dry_run": {"value": true}}"#, &koi),
        (r#"{"scene": "koi", "dry_run": "[object Object]"}"#, &koi),
        (r#"{"scene": "koi", "dry_run":tr"#, &koi),
        (r#"{"scene": "koi", "simulate": true}"#, &koi),
        (r#"{"scene": "koi", "plan_only": true}"#, &koi),
        (r#"{"scene": "koi", "mode": "dry run"}"#, &koi),
        (r#"{"scene": "koi", "confirm": false}"#, &koi),
        (r#"{"scene": "koi", "options": {"dry_run": true}}"#, &koi),
        (r#"{"scene": "koi", "depth": 2} // dry run only"#, &koi),
        (r#"Only a dry run: {"scene": "koi", "depth": 2}"#, &koi),
        (r#"{"stop": true}"#, &look),
        ("do not draw anything", &look),
        ("Action: stop", &look),
        // The lost part may have been such a request.
        (r#"{"scene": "koi", "#, &koi),
        (r#"{"scene": "koi"} {"scene": "star"}"#, &koi),
        (r#"{"scene": "koi", "overlay": "lef"}"#, &koi),
        (r#"{"scene": "koi", "num_plys": 4}"#, &koi),
        (r#"{"scene": "koi", "speed": "slow"}"#, &koi),
        (r#"{"scene": "koi", "ink": false}"#, &koi),
        ("[object Object]", &look),
        // No other scene is named, and no default scene is drawn.
        (r#"{"scene": "zebra"}"#, &look),
        (r#"{"scene": "<scene>"}"#, &look),
        (r#"{"scene": "tigger"}"#, &look),
        (r#"{"scene": "zebra", "dry_run": false}"#, &look),
        (r#"{"fps": 0}"#, &json!({"fps": 10, "dry_run": true})),
        // Without the number it may do more.
        (r#"{"scene": "koi", "depth": 2}"#, &koi),
        (r#"{"scene": "koi", "pen_up": true}"#, &koi),
        (r#"{"scene": "koi", "delay_s": 3600}"#, &koi),
        (
            r#"{"scene": "koi", "fps": 0}"#,
            &json!({"scene": "koi", "fps": 10, "dry_run": true}),
        ),
        // The caller's own scene; only a letter of a key was lost.
        (r#"{"scen": "koi"}"#, &json!({"scene": "koi"})),
    ] {
        let offered = read(text).unwrap_err().corrected.map(Value::Object);
        assert_eq!(offered.as_ref(), Some(corrected), "{text}");
        assert!(read(&corrected.to_string()).is_ok(), "{text}");
    }
}

/// `align` moves and has no preview: a call that would move on a guess is not offered, and the guidance says why.
#[test]
fn a_tool_without_preview_offers_only_the_callers_own_scene() {
    let measured =
        |name: &str| ParameterShape::new(name, ValueKind::number(-5.0, 5.0, None)).default(0.0);
    let kind = ValueKind::Object {
        fields: vec![measured("dx"), measured("dy")],
        open: false,
    };
    let shape = ArgumentShape {
        params: vec![
            stroke().params[0].clone(),
            ParameterShape::new("fps", ValueKind::integer(1, 120)).default(10),
            ParameterShape::new("measured", kind),
        ],
        foreign: vec!["dry_run".into()],
        ..stroke()
    };
    let policy = ReaderPolicy::new(ToolEffect::Moves, ForgivenessProfile::Guarded);
    let read = |text: &str| read(&shape, &policy, ReceivedArguments::Text(text.into()));
    for text in [
        r#"{"scene": "koi", "dry_run": true}"#,
        r#"{"scene": "koi", "measured": "abc"}"#,
        r#"{"scene": "koi", "measured": {"x": 0.8}}"#,
        r#"{"scene": "tigger"}"#,
        r#"{"fps": 0}"#,
        r#"{"scene": "koi", "fps": 0}"#,
        "[object Object]",
    ] {
        let refusal = read(text).unwrap_err();
        assert_eq!(refusal.corrected, None, "{text}");
        assert!(refusal.guidance.contains("has no preview"), "{text}");
    }
    let refusal = read(r#"{"scen": "koi"}"#).unwrap_err();
    let corrected = refusal.corrected.map(Value::Object);
    assert_eq!(corrected, Some(json!({"scene": "koi"})));
    // One of two numbers is enough; the other is 0.
    let reading = read(r#"{"measured": {"dx": 0.8}}"#).unwrap();
    assert_eq!(
        reading.understood["measured"],
        json!({"dx": 0.8, "dy": 0.0})
    );
    assert_eq!(reading.given["measured"], json!({"dx": 0.8}));
    let noted = &reading.repairs[0];
    assert_eq!(
        (noted.field.as_str(), noted.used.as_str(), noted.class),
        ("measured.dy", "0.0", RepairClass::L1)
    );
}

#[test]
fn a_correction_invents_no_value() {
    let shape = ArgumentShape::from_json_schema(&json!({"required": ["a", "tests"], "properties": {
        "a": {"type": "integer"}, "tests": {"type": "array", "minItems": 1, "items": {"type": "string"}},
        "mode": {"enum": ["fast", "slow"]}}}))
    .unwrap();
    let corrected = |text: &str| match explain_line(&shape, text) {
        LineReading::Refused { corrected, .. } => corrected.map(Value::Object),
        LineReading::Understood { understood, .. } => panic!("{text}: {understood:?}"),
    };
    for text in [
        "{}",
        "[object Object]",
        r#"{"a": 1}"#,
        r#"{"a": 1, "tests": []}"#,
        r#"{"a": null, "tests": ["x"]}"#,
        r#"{"a": "many", "tests": ["x"]}"#,
    ] {
        assert_eq!(corrected(text), None, "{text}");
    }
    assert_eq!(
        corrected(r#"{"a": 1, "tests": ["x"], "mode": "fats"}"#),
        Some(json!({"a": 1, "tests": ["x"]}))
    );
}
