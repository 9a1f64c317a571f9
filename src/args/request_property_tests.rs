//! Properties of requests around the arguments: more words or more keys never make a call move that did not,
//! and a request for a dry run never moves.
//!
//! The seed is fixed. `STEADYHAND_CASES` is the number of cases of each property.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use super::{
    ArgumentShape, ForgivenessProfile, ParameterShape, ReaderPolicy, ReceivedArguments, ToolEffect,
    ValueKind, property_tests::renderings, read,
};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Map, Value, json};

/// Default number of cases of each property, and the largest.
const CASES: u32 = 500;
const CASES_MAX: u32 = 100_000;
const SEED: &[u8; 32] = b"words never move a standing arm!";

/// Runs a property on cases from the fixed seed.
fn check<S: Strategy>(strategy: S, test: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let cases = std::env::var("STEADYHAND_CASES").ok();
    let cases = cases
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(CASES)
        .min(CASES_MAX);
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, SEED);
    let outcome = TestRunner::new_with_rng(config, rng).run(&strategy, test);
    if let Err(failure) = outcome {
        panic!(
            "{failure}\nseed {:?}, {cases} cases",
            String::from_utf8_lossy(SEED)
        );
    }
}

/// Returns a tool that has a dry run, and one that has none.
fn shapes() -> [ArgumentShape; 2] {
    let params = || {
        vec![
            ParameterShape::new("scene", ValueKind::name(["default", "koi", "star"]))
                .default("default"),
            ParameterShape::new("debug", ValueKind::Bool).default(false),
            ParameterShape::new("fps", ValueKind::integer(1, 120)).default(10),
            ParameterShape::new("note", ValueKind::Text),
        ]
    };
    let dry_run = ParameterShape::new("dry_run", ValueKind::Bool)
        .alias("preview")
        .default(false);
    let mut drawing = params();
    drawing.push(dry_run.cautious(true));
    [(drawing, "num_plys"), (params(), "dry_run")].map(|(params, foreign)| {
        ArgumentShape::new(params)
            .with_foreign([foreign])
            .with_known_names(["default", "koi", "star"])
            .with_tool_names(["stroke"])
    })
}

/// Returns whether a tool of this shape would move.
fn moves(shape: &ArgumentShape, profile: ForgivenessProfile, received: ReceivedArguments) -> bool {
    let policy = ReaderPolicy::new(ToolEffect::Moves, profile);
    let reading = read(shape, &policy, received);
    reading.is_ok_and(|reading| reading.understood.get("dry_run") != Some(&json!(true)))
}

fn text(object: &Map<String, Value>) -> String {
    Value::Object(object.clone()).to_string()
}

/// Generates arguments, good and bad.
fn arguments() -> impl Strategy<Value = Map<String, Value>> {
    let value = |values: Vec<Value>| prop::option::weighted(0.4, prop::sample::select(values));
    let fields = (
        value(vec![
            json!("koi"),
            json!("Star"),
            json!("default"),
            json!("tigger"),
            json!(""),
            json!(null),
        ]),
        value(vec![json!(true), json!("no"), json!("maybe"), json!(2)]),
        value(vec![json!(5), json!("7"), json!(0), json!("fast")]),
        value(vec![
            json!(true),
            json!(false),
            json!("yes"),
            json!({}),
            json!(null),
        ]),
        prop::option::weighted(0.2, unknown()),
    );
    fields.prop_map(|(scene, debug, fps, dry_run, unknown)| {
        let known = [
            ("scene", scene),
            ("debug", debug),
            ("fps", fps),
            ("dry_run", dry_run),
        ];
        let known = known
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?)));
        known.chain(unknown).collect()
    })
}

/// Keys that no tool has, harmless and not.
const UNKNOWN_KEYS: [&str; 31] = [
    "style",
    "colour",
    "artwork",
    "0",
    "escena",
    "real",
    "when",
    "comment",
    "confirm",
    "options",
    "ctx",
    "thought",
    "verbose",
    "depth",
    "x",
    "num_plys",
    "scen",
    "input",
    "data",
    "name",
    "type",
    "function",
    "id",
    "_meta",
    "simulate",
    "stop",
    "",
    "预览",
    "tool_calls",
    "description",
    "properties",
];

/// Generates an unknown key with a value.
fn unknown() -> impl Strategy<Value = (String, Value)> {
    let keys = prop_oneof![
        prop::sample::select(UNKNOWN_KEYS.to_vec()).prop_map(str::to_owned),
        "[a-zA-Z_]{1,12}",
    ];
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        (-3_i64..9).prop_map(Value::from),
        prop::sample::select(vec![
            "bold",
            "koi",
            "not yet",
            "tomorrow",
            "dry run",
            "{}",
            "{\"scene\":\"koi\"}",
            "stroke",
            "align",
            "18:30",
            "no",
            "",
            "null",
            "[object Object]",
            "scene=koi",
            "string",
        ])
        .prop_map(Value::from),
        Just(Value::Null),
    ];
    let value = leaf.prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-z_]{1,8}", inner, 0..3).prop_map(|map| json!(map)),
        ]
    });
    (keys, value).prop_filter("a parameter is no unknown key", |(key, _)| {
        super::parameter_keys::find(&shapes()[0].params, key).is_none()
    })
}

/// Words as they stand around calls, without brackets and quotes of their own.
fn prose() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "Sure!",
        "Here is the call:",
        "Do not run:",
        "please",
        "as a dry run",
        "--dry-run",
        "dry_run: true",
        "I will not call",
        "if False:",
        "tomorrow",
        "scene: koi",
        "<foo>",
        "</foo>",
        "<think>",
        "</think>",
        "<!--",
        "-->",
        "//",
        "#",
        "/*",
        "*/",
        "```",
        "```json\n",
        "\n",
        "<tool_call>",
        "</tool_call>",
        "Action: stroke\nAction Input:",
        "Observation:",
        "Thought:",
        ";",
        ".",
        "return",
        "const args =",
        "<|im_end|>",
        "<|maybe|>",
        "~~~",
        "stroke",
        "preview",
        "漢字",
        "не надо",
        "Let me know.",
        "data",
    ]);
    prop::collection::vec(words, 0..5).prop_map(|words| words.join(" "))
}

#[test]
fn more_words_around_a_call_never_make_it_move() {
    check(
        (arguments(), prose(), prose()),
        |(object, before, after)| {
            let call = text(&object);
            // What stands in a thought is never read.
            if before.contains("Thought:") || before.contains("<think>") {
                return Ok(());
            }
            for shape in shapes() {
                for profile in ForgivenessProfile::ALL {
                    let more = format!("{before} {call} {after}");
                    let moved = moves(&shape, profile, ReceivedArguments::Text(call.clone()));
                    prop_assert!(
                        moved || !moves(&shape, profile, ReceivedArguments::Text(more.clone())),
                        "{profile:?} {more}"
                    );
                }
            }
            Ok(())
        },
    );
}

#[test]
fn words_around_any_rendering_never_make_it_move() {
    let case = (arguments(), prose(), prose(), any::<Index>());
    check(case, |(object, before, after, which)| {
        let all = renderings(&object);
        let call = &all[which.index(all.len())];
        // What stands in a thought is never read.
        if before.contains("Thought:") || before.contains("<think>") {
            return Ok(());
        }
        for shape in shapes() {
            let more = format!("{before} {call} {after}");
            let as_guarded = |text: &str| {
                moves(
                    &shape,
                    ForgivenessProfile::Guarded,
                    ReceivedArguments::Text(text.to_owned()),
                )
            };
            prop_assert!(as_guarded(call) || !as_guarded(&more), "{more}");
        }
        Ok(())
    });
}

#[test]
fn more_keys_never_make_a_call_move() {
    check(
        (arguments(), unknown(), any::<Index>()),
        |(object, (key, value), at)| {
            let mut more: Vec<(String, Value)> = object.clone().into_iter().collect();
            if !object.contains_key(&key) {
                more.insert(at.index(more.len() + 1), (key, value));
            }
            let more: Map<String, Value> = more.into_iter().collect();
            for shape in shapes() {
                for profile in ForgivenessProfile::ALL {
                    let as_value = |object: &Map<String, Value>| {
                        ReceivedArguments::Value(Value::Object(object.clone()))
                    };
                    let moved = moves(&shape, profile, as_value(&object));
                    prop_assert!(
                        moved || !moves(&shape, profile, as_value(&more)),
                        "{profile:?} {more:?}"
                    );
                    let as_text = ReceivedArguments::Text(text(&more));
                    prop_assert!(
                        moved || !moves(&shape, profile, as_text),
                        "{profile:?} {more:?}"
                    );
                }
            }
            Ok(())
        },
    );
}

#[test]
fn a_dry_run_as_a_key_never_moves() {
    let keys = prop::sample::select(vec![
        "dry_run",
        "dryRun",
        "DRY-RUN",
        "dry run",
        "isDryRun",
        "ｄｒｙ＿ｒｕｎ",
        "dri_run",
        "simulate",
        "Vorschau",
        "预览",
        "preview_only",
        "what_if",
    ]);
    let values = prop::sample::select(vec![
        json!(true),
        json!("true"),
        json!(1),
        json!("yes"),
        json!("maybe"),
        json!({}),
        json!([]),
        json!("x"),
    ]);
    let places = (any::<Index>(), any::<Index>());
    let case = (arguments(), keys, values, places, 0..4);
    check(case, |(object, key, value, (at, which), depth)| {
        let mut pairs: Vec<(String, Value)> = object.into_iter().collect();
        pairs.retain(|(name, _)| !["dry_run", "options", key].contains(&name.as_str()));
        let wrap = |value: Value, depth| match depth {
            0 => value,
            1 => json!({ key: value }),
            2 => json!([{ "a": { key: value } }]),
            _ => json!(json!({ key: value }).to_string()),
        };
        let name = if depth == 0 { key } else { "options" };
        pairs.insert(
            at.index(pairs.len() + 1),
            (name.to_owned(), wrap(value, depth)),
        );
        let object: Map<String, Value> = pairs.into_iter().collect();
        for shape in shapes() {
            for profile in ForgivenessProfile::ALL {
                let as_value = ReceivedArguments::Value(Value::Object(object.clone()));
                prop_assert!(!moves(&shape, profile, as_value), "{profile:?} {object:?}");
                let all = renderings(&object);
                let call = &all[which.index(all.len())];
                prop_assert!(
                    !moves(&shape, profile, ReceivedArguments::Text(call.clone())),
                    "{profile:?} {call}"
                );
            }
        }
        Ok(())
    });
}

#[test]
fn a_dry_run_as_a_word_never_moves() {
    let words = prop::sample::select(vec![
        " dry run ",
        " dry_run: true ",
        " --dry-run ",
        "/* dry run */",
        "# dry run\n",
        "\n// a dry run\n",
        "<dry_run>",
        " ｄｒｙ＿ｒｕｎ ",
        " Trockenlauf ",
        " (simulation) ",
        "<!-- dry run -->",
        "，预览，",
    ]);
    let scenes = prop::option::of(prop::sample::select(vec!["default", "koi", "star"]));
    let case = (
        scenes,
        prop::option::of(1_i64..=120),
        words,
        any::<Index>(),
        any::<Index>(),
    );
    check(case, |(scene, fps, word, which, at)| {
        let fields = [("scene", json!(scene)), ("fps", json!(fps))];
        let sent = fields.into_iter().filter(|(_, value)| !value.is_null());
        let object: Map<String, Value> = sent.map(|(key, value)| (key.to_owned(), value)).collect();
        // What stands in a thought is never read.
        let is_thought = |call: &String| call.contains("<think>") || call.contains("Thought:");
        let mut all = renderings(&object);
        all.retain(|call| !is_thought(call));
        let call = &all[which.index(all.len())];
        let places: Vec<usize> = call
            .char_indices()
            .map(|(at, _)| at)
            .chain([call.len()])
            .collect();
        let (before, after) = call.split_at(places[at.index(places.len())]);
        let text = format!("{before}{word}{after}");
        for shape in shapes() {
            for profile in ForgivenessProfile::ALL {
                prop_assert!(
                    !moves(&shape, profile, ReceivedArguments::Text(text.clone())),
                    "{profile:?} {text}"
                );
            }
        }
        Ok(())
    });
}
