//! Requests around a call's arguments: words, unknown keys, and dry runs.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::result_large_err,
    reason = "a failing test may panic"
)]

use super::{
    ArgumentReading, ArgumentRefusal, ArgumentShape, ForgivenessProfile, ParameterShape,
    ReaderPolicy, ReceivedArguments, ToolEffect, ValueKind, read,
};
use serde_json::{Value, json};

/// Returns a drawing tool that has a dry run, like `stroke`.
pub(super) fn stroke() -> ArgumentShape {
    ArgumentShape::new(vec![
        ParameterShape::new("scene", ValueKind::name(["default", "letters", "short"]))
            .default("default"),
        ParameterShape::new("meta", ValueKind::name(["crosses", "leaf"])).guards(),
        ParameterShape::new("dry_run", ValueKind::Bool)
            .alias("preview")
            .default(false)
            .cautious(Value::from(true)),
        ParameterShape::new("resume", ValueKind::Bool)
            .default(false)
            .guards(),
        ParameterShape::new("debug", ValueKind::Bool).default(false),
        ParameterShape::new("note", ValueKind::Text),
    ])
    .with_foreign(["num_plys"])
    .with_known_names(["default", "letters", "short", "crosses", "leaf"])
    .with_tool_names(["stroke", "robot_stroke"])
}

/// Returns a tool that moves and has no dry run, like `reset`.
fn reset() -> ArgumentShape {
    ArgumentShape::new(vec![ParameterShape::new(
        "scene",
        ValueKind::name(["default", "letters"]),
    )])
    .with_foreign(["dry_run", "preview"])
    .with_tool_names(["reset"])
}

pub(super) fn moves(
    profile: ForgivenessProfile,
    text: &str,
) -> Result<ArgumentReading, Box<ArgumentRefusal>> {
    let policy = ReaderPolicy::new(ToolEffect::Moves, profile);
    read(&stroke(), &policy, ReceivedArguments::Text(text.into()))
}

/// Returns whether the call would draw.
fn draws(profile: ForgivenessProfile, text: &str) -> bool {
    moves(profile, text).is_ok_and(|reading| reading.understood["dry_run"] == false)
}

/// Asserts for every text and profile that the call draws, or that it does not.
#[track_caller]
fn check_draws(profiles: &[ForgivenessProfile], texts: &[impl AsRef<str>], expected: bool) {
    for text in texts.iter().map(AsRef::as_ref) {
        for profile in profiles {
            assert_eq!(
                draws(*profile, text),
                expected,
                "{profile:?}: {text:.400}: {:?}",
                codes(*profile, text)
            );
        }
    }
}

/// Asserts that no text draws in the guarded profile.
#[track_caller]
pub(super) fn none_draws(texts: &[impl AsRef<str>]) {
    check_draws(&[ForgivenessProfile::Guarded], texts, false);
}

/// Asserts that every text draws in the guarded profile.
#[track_caller]
pub(super) fn all_draw(texts: &[impl AsRef<str>]) {
    check_draws(&[ForgivenessProfile::Guarded], texts, true);
}

/// Asserts that every text draws in the lenient profile.
#[track_caller]
pub(super) fn lenient_draws(texts: &[impl AsRef<str>]) {
    check_draws(&[ForgivenessProfile::Lenient], texts, true);
}

/// Asserts that no text draws in either profile.
#[track_caller]
pub(super) fn never_draws(texts: &[impl AsRef<str>]) {
    check_draws(&ForgivenessProfile::ALL, texts, false);
}

/// Returns the codes of the complaints; empty if the call runs.
pub(super) fn codes(profile: ForgivenessProfile, text: &str) -> Vec<&'static str> {
    let complaints = moves(profile, text).err().map(|refusal| refusal.complaints);
    complaints.iter().flatten().map(|one| one.code).collect()
}

const LETTERS: &str = r#"{"scene":"letters"}"#;

#[test]
fn refuses_words_around_the_arguments() {
    none_draws(
        &[
            "<!-- {} -->",
            "<think>{}</think>",
            "<think>{}",
            "// {}",
            "# {}",
            "/* {} */",
            "-- {}",
            "~~{}~~",
            "> {}",
            "```dry_run⏎{}⏎```",
            "```diff⏎{}⏎```",
            "<|dry_run|>{}<|eom_id|>",
            "<foo>{}</foo>",
            "<preview>{}</preview>",
            "<example>{}</example>",
            "Tomorrow: {}",
            "For example: {}",
            "{} if the operator agrees",
            "The user did not ask for this: {}",
            "assert not {}",
            "{} # only as a dry run",
            "{} // not yet",
            "dry run⏎Action: stroke⏎Action Input: {}",
            "Action: stroke⏎Action Input: {}⏎Observation: dry_run: true",
            "const dry_run = {};",
            "simulate(stroke({}))",
            "if False: stroke({})",
            "<tool_call>do not run <scene>letters</scene></tool_call>",
            "<tool_call><scene>letters</scene> dry run</tool_call>",
            "<stroke><dry_run><scene>letters</scene></dry_run></stroke>",
            "<stroke><maybe><scene>letters</scene></maybe></stroke>",
        ]
        .map(|around| around.replace("{}", LETTERS).replace('⏎', "\n")),
    );
}

#[test]
fn refuses_a_dry_run_in_words_in_either_profile() {
    never_draws(
        &[
            "{}⏎dry_run: true",
            "{} --dry-run",
            "<dry_run>{}</dry_run>",
            "{} but only as a dry run",
            "Do not run: {}",
            "I will not call {}",
            "if False: stroke(scene='letters')",
            "{} // dry run",
            "{} (simulation)",
            "Trockenlauf: {}",
            "预览：{}",
            "ドライラン {}",
            "{} ｄｒｙ＿ｒｕｎ",
            "{} dri_run",
            "Vorschau {}",
            "{} sin mover el brazo",
            "Simulação: {}",
            "пробный запуск {}",
            "dry_run({})",
            "dry_run.stroke({})",
            "<dry_run><stroke scene=\"letters\"/></dry_run>",
            "http://arm/dry_run/stroke?scene=letters",
            "{\"scene\":\"letters\" /* dry run */}",
            "{\"scene\":\"letters\", // \"dry_run\": true⏎}",
            "scene: letters⏎# dry run",
            "just a dry run, please",
            "do not draw anything",
            "\"dry run\"",
        ]
        .map(|around| around.replace("{}", LETTERS).replace('⏎', "\n")),
    );
}

/// It is found among any number of comments, at any place.
#[test]
fn a_dry_run_among_a_thousand_comments_is_found() {
    for (before, after) in [(0, 1000), (600, 400), (1000, 0)] {
        let comments = |count: usize| "/* a line */ ".repeat(count);
        let call = |text: &str| {
            let (before, after) = (comments(before), comments(after));
            format!("{{{before}{text}{after}\"scene\":\"letters\"}}")
        };
        for profile in ForgivenessProfile::ALL {
            assert!(draws(profile, &call("")), "{profile:?} {before}");
            for text in ["/* dry run */", "/* dri run */", "/* \"dry_run\": true */"] {
                assert!(!draws(profile, &call(text)), "{profile:?} {before}: {text}");
            }
        }
    }
}

#[test]
fn a_text_with_too_many_comments_is_not_a_call() {
    let comments = "/* a line */ ".repeat(5000);
    never_draws(&[
        format!("{{{comments}\"scene\":\"letters\"}}"),
        format!("{{\"scene\":\"letters\"{comments}}}"),
        format!("{}scene: letters", "# a line\n".repeat(5000)),
        format!("{}scene: letters", "#\n".repeat(5000)),
        format!("{}scene: nonsense", "#\n".repeat(5000)),
        format!("stroke({}scene=\"letters\")", "//\n".repeat(5000)),
        format!(
            "<stroke scene=\"letters\" options=\"{{{}a:1}}\"/>",
            "#\n".repeat(5000)
        ),
    ]);
}

#[test]
fn a_request_is_found_anywhere_in_comments_and_inner_texts() {
    let ok = "ok ".repeat(70);
    never_draws(&[
        "{# dry\n# run\n\"scene\":\"letters\"}".to_owned(),
        "{/* do */ /* not */ /* draw */\"scene\":\"letters\"}".to_owned(),
        format!("{{\"scene\":\"letters\" /* {ok} dri run */}}"),
        r#"{"scene":"letters","options":"{/* x */ dryrn:true}"}"#.to_owned(),
        r#"{"scene":"letters","options":"{a:1} // a dry run"}"#.to_owned(),
        r#"{"scene":"letters","options":"{a:1} // dry"}"#.to_owned(),
        r#"{"scene":"letters" /* dry */}"#.to_owned(),
        r#"{"scene":"letters","options":"{sim:true,, }}"}"#.to_owned(),
        r#"{"scene":"letters","options":"[{sim:true}} ]"}"#.to_owned(),
        format!(
            r#"{{"scene":"letters","options":"{{{}sim:true}}"}}"#,
            "#\\n".repeat(5000)
        ),
    ]);
    all_draw(&[
        r#"{"scene":"letters","style":"[bold]"}"#,
        r#"{"scene":"letters","note":"{/* x */ dryrn:true}"}"#,
    ]);
}

/// A key that may ask for no motion never counts as the name of a tool whose names are unknown.
#[test]
fn a_key_that_forbids_is_not_an_envelope() {
    let shape = ArgumentShape {
        tool_names: Vec::new(),
        ..stroke()
    };
    let policy = ReaderPolicy::new(ToolEffect::Moves, ForgivenessProfile::Guarded);
    let runs = |text: &str| read(&shape, &policy, ReceivedArguments::Text(text.into())).is_ok();
    let long = format!("dry{}_run", "_".repeat(510));
    for key in ["simulate", "dri_run", "stop", long.as_str()] {
        assert!(
            !runs(&json!({key: {"scene": "letters"}}).to_string()),
            "{key:.20}"
        );
    }
    assert!(runs(r#"{"paint": {"scene": "letters"}}"#));
}

/// A program's own data beside the arguments is searched up to a limit.
#[test]
fn a_value_too_large_to_search_may_ask_for_anything() {
    let history = |messages: usize| {
        let messages = (0..messages).map(|i| format!(r#"{{"role":"user","content":"{i}"}}"#));
        let messages = messages.collect::<Vec<_>>().join(",");
        format!(r#"{{"scene":"letters","history":[{messages}]}}"#)
    };
    let keyed = |bytes: usize| format!(r#"{{"scene":"letters","{}":1}}"#, "ab ".repeat(bytes / 3));
    let lenient = ForgivenessProfile::Lenient;
    assert!(draws(lenient, &history(300)));
    assert!(draws(lenient, &keyed(300)));
    for text in [history(3000), keyed(3000)] {
        assert_eq!(codes(lenient, &text), ["withheld"]);
    }
}

#[test]
fn known_packaging_is_skipped() {
    for around in [
        "{}",
        "Sure! Here is the call: {} Let me know.",
        "Here are the arguments: {}⏎Let me know if this works.",
        "```json⏎{}⏎```",
        "Sure! ```json⏎{}⏎``` Done.",
        "~~~json⏎{}⏎~~~",
        "```javascript⏎{};⏎```",
        "<tool_call>⏎{}⏎</tool_call>",
        "<stroke>{}</stroke>",
        "<function=stroke>{}</function>",
        "<seed:tool_call>{}</seed:tool_call>",
        "<think>I should not draw. A dry run?</think>{}",
        "I should not draw.⏎</think>⏎{}",
        "Thought: not as a dry run⏎Action: stroke⏎Action Input: {}",
        "Action: stroke⏎Action Input: {}⏎Observation:",
        "<|channel|>analysis<|message|>Not a dry run.<|end|><|start|>assistant<|channel|>commentary to=functions.stroke <|constrain|>json<|message|>{}<|call|>",
        "<|channel|>commentary to=functions.stroke <|constrain|>json<|message|>{}<|call|>",
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>stroke⏎```json⏎{}⏎```<｜tool▁call▁end｜>",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.stroke:0<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>",
        "[TOOL_CALLS]stroke[ARGS]{}",
        "<|im_start|>assistant⏎{}<|im_end|>",
        "const args = {};",
        "return {};",
        "export default {}",
        "Result: {}",
        "Arguments: {}",
        "stroke: {}",
        "I will call `stroke` with `{}`",
        "# the letters⏎{}",
        "{} // done",
        "{} # letters",
        "Calling: stroke(scene=\"letters\")",
        "**{}**",
        "\"{}\"",
        "`{}`",
    ] {
        let text = around.replace("{}", LETTERS).replace('⏎', "\n");
        assert!(
            draws(ForgivenessProfile::Guarded, &text),
            "{text}: {:?}",
            moves(ForgivenessProfile::Guarded, &text)
        );
    }
}

#[test]
fn refuses_an_unknown_key_that_may_change_the_act() {
    none_draws(&[
        // Its value is a known name that is not used.
        r#"{"artwork":"letters"}"#,
        r#"{"escena":"letters"}"#,
        r#"{"场景":"letters"}"#,
        r#"{"0":"letters"}"#,
        r#"{"scene":"short","artwork":"letters"}"#,
        r#"{"scene":"short","extra":{"what":["Letters"]}}"#,
        r#"{"scene":"short","with":"crosses"}"#,
        r#"{"scene":"short","letters":true}"#,
        r#"{"letters":{}}"#,
        r#"{"letters":null}"#,
        r#"{"scene":"short","Letters":""}"#,
        // It is a misspelt parameter, or its name in another language.
        r#"{"scene":"letters","trockenlauf":"ja"}"#,
        r#"{"scene":"letters","预览":true}"#,
        r#"{"scene":"letters","what_if":true}"#,
        r#"{"scene":"letters","pretend":true}"#,
        r#"{"scene":"letters","noop":true}"#,
        r#"{"scene":"letters","validate":true}"#,
        r#"{"scene":"letters","fortsetzen":true}"#,
        r#"{"scene":"letters","resum":true}"#,
        r#"{"scene":"letters","tiefe":2}"#,
        // Its value is false, a negation or a condition.
        r#"{"scene":"letters","real":false}"#,
        r#"{"scene":"letters","bold":false}"#,
        r#"{"scene":"letters","stroke":0}"#,
        r#"{"input":"","type":false}"#,
        r#"{"input":"","type":true}"#,
        r#"{"input":"","type":[1]}"#,
        "debug=\"maybe\" Action: stroke\nAction Input: scene: letters",
        r#"scene: letters Observation: {"tool_calls":[{"function":{"name":"stroke","arguments":"{\"dry_run\":null}"}}]}"#,
        r#"{"scene":"letters","enabled":0}"#,
        r#"{"scene":"letters","enabled":{"now":0.0}}"#,
        r#"{"scene":"letters","execute":""}"#,
        r#"{"scene":"letters","execute":[]}"#,
        r#"{"scene":"letters","confirm":null}"#,
        r#"{"scene":"letters","motion":"null"}"#,
        r#"{"scene":"letters","comment":"please draw the short lines for my friend"}"#,
        r#"{"scene":"letters","style":{"bold":"no"}}"#,
        r#"{"scene":"letters","confirm":"not yet"}"#,
        r#"{"scene":"letters","when":"tomorrow"}"#,
        r#"{"scene":"letters","if":true}"#,
        r#"{"scene":"letters","requires_approval":true}"#,
        r#"{"scene":"letters","in_air":true}"#,
        r#"{"scene":"letters","hint":"18:30"}"#,
        r#"{"scene":"letters","comment":"don't move the arm"}"#,
        r#"{"scene":"letters","comment":"ne le fais pas"}"#,
        r#"{"scene":"letters","comment":"erst morgen"}"#,
        r#"{"scene":"letters","instruction":"wait for my ok"}"#,
        r#"{"scene":"letters","comment":"ask me first"}"#,
        r#"{"scene":"letters","comment":"needs approval"}"#,
        r#"{"scene":"letters","comment":"不要动"}"#,
        // It is the caller's only argument.
        r#"{"num_plys":4}"#,
        r#"{"design":"cat.svg"}"#,
        r#"{"style":"bold"}"#,
        r#"{"style":"bold","debug":true}"#,
        r#"{"scene":"","style":"bold"}"#,
    ]);
}

#[test]
fn a_key_that_is_a_sentence_counts_without_a_value() {
    none_draws(&[
        r#"{"if the pen is ready":null}"#,
        r#"{"do nothing":""}"#,
        r#"{"do_not_run":""}"#,
        r#"{"scene=letters":""}"#,
        r#"{"scene: letters":null}"#,
        r#"{"{\"scene\":\"letters\"}":""}"#,
        r#"{"dry_run=true":null}"#,
        r#"{"the short ones":{}}"#,
        r#"{"please draw a tiger":null}"#,
        r#"{"scene":"short","only if the pen is ready":null}"#,
        r#"{"scene":"short","scene=letters":""}"#,
        r#"{"scene":"short","draw letters":[]}"#,
        r#"{"scene":"short","after lunch":null}"#,
        r#"{"scene":"short","10 mm":null}"#,
        r#"{"scene":"short","dry=1":null}"#,
        r#"{"scene":"short","how long does it take?":true}"#,
        r#"{"scene":"short","make it blue":true}"#,
        r#"{"scene":"short","query":"how long would it take?"}"#,
        r#"{"scene":"short","command":"reset"}"#,
        r#"{"scene":"short","op":"delete"}"#,
    ]);
    all_draw(&[
        r#"{"depth":null,"speed":""}"#,
        r#"{"line width":null}"#,
        r#"{"start_after":null,"wait_until":""}"#,
        r#"{"scene":"short","style":"","title":null}"#,
        r#"{"scene":"short","stop":null,"exclude":[],"skip":null,"no_cache":""}"#,
        r#"{"scene":"short","mode":"draw","step_number":3,"nonce":12345}"#,
        r#"{"scene":"short","user_query":"can you draw the short one?"}"#,
    ]);
}

#[test]
fn a_quantity_under_any_key_is_physical() {
    none_draws(&[
        r#"{"scene":"letters","loop":5}"#,
        r#"{"scene":"letters","iterations":true}"#,
        r#"{"scene":"letters","tempo":"10 mm/s"}"#,
        r#"{"scene":"letters","grip":"3mm"}"#,
        r#"{"scene":"letters","zoom":2}"#,
        r#"{"scene":"letters","origin":[10,20]}"#,
        r#"{"scene":"letters","options":{"countdown":10}}"#,
        r#"{"scene":"letters","steps":3}"#,
        r#"{"scene":"letters","max_steps":3}"#,
        r#"{"scene":"letters","k":"3"}"#,
        r#"{"scene":"letters","k":"2x"}"#,
        r#"{"scene":"letters","k":"200%"}"#,
        r#"{"scene":"letters","k":"30 mm wide"}"#,
        r#"{"scene":"letters","k":"３"}"#,
        r#"{"scene":"letters","turn":90}"#,
        r#"{"scene":"letters","exclude":"B"}"#,
        r#"{"scene":"letters","except":"the first"}"#,
    ]);
}

#[test]
fn a_dry_run_that_is_clearly_false_raises_no_doubt() {
    all_draw(&[
        r#"{"scene":"letters","simulate":false}"#,
        r#"{"scene":"letters","plan":false}"#,
        r#"{"scene":"letters","draft":"n"}"#,
        r#"{"scene":"letters","run_simulation":false}"#,
        r#"{"scene":"letters","trial_run":false}"#,
        "<scene>letters</scene><meta></meta>",
        "<stroke scene=\"letters\" note=\"\"/>",
    ]);
    none_draws(&[
        r#"{"scene":"letters","ink":false}"#,
        r#"{"scene":"letters","preview_approved":false}"#,
        r#"{"scene":"letters","!dry_run":false}"#,
        r#"{"scene":"letters","bypass_preview":false}"#,
        r#"{"scene":"letters","run_plan":false}"#,
        r#"{"scene":"letters","run_plan":"no"}"#,
        r#"{"scene":"letters","do_plan":false}"#,
        r#"{"scene":"letters","use_plan":0}"#,
        r#"{"scene":"letters","do_sim":false}"#,
        r#"{"scene":"letters","run_demo":false}"#,
    ]);
    let policy = ReaderPolicy::new(ToolEffect::Moves, ForgivenessProfile::Guarded);
    let shape = reset().with_foreign_flags(["dry_run", "resume"]);
    let shape = shape.with_foreign(["dry_run", "preview", "resume"]);
    for call in [json!({"resume": false}), json!({"dry_run": "off"})] {
        let reading = read(&shape, &policy, ReceivedArguments::Value(call.clone()));
        assert!(reading.is_ok(), "{call}: {reading:?}");
    }
    for call in [json!({"resume": true}), json!({"dry_run": true})] {
        let reading = read(&shape, &policy, ReceivedArguments::Value(call.clone()));
        assert!(reading.is_err(), "{call}");
    }
}

#[test]
fn a_harmless_key_does_not_hide_a_request_for_a_dry_run() {
    let call = |keys: &str| format!(r#"{{"scene":"letters",{keys}}}"#);
    for keys in [
        r#""output":"preview""#,
        r#""format":"dry_run""#,
        r#""metadata":"dry_run=true""#,
        r#""context":"dry run: yes""#,
        r#""metadata":"dry run""#,
        r#""output":{"mode":"preview"}"#,
        r#""output":"pen must stay up""#,
        r#""context":"just a dry-run""#,
        r#""context":{"mode":"dry run"}"#,
        r#""_meta":{"mode":["dry run"]}"#,
        r#""context":{"instruction":"do not draw"}"#,
        r#""metadata":{"user_wish":"do not draw, please"}"#,
        r#""stop":"stop""#,
        r#""stop":"not now""#,
    ] {
        never_draws(&[call(keys)]);
    }
    for keys in [
        r#""context":{"thought":"no dry run"}"#,
        r#""context":{"user":"asked for a preview of the letters first"}"#,
        r#""metadata":{"source":"mockup.svg"}"#,
        r#""context":{"title":"Fake plastic trees"}"#,
        r#""ctx":{"name":"preview.png"}"#,
        r#""metadata":{"app":"Simulator X"}"#,
        r#""context":{"last_tool":"preview"}"#,
        r#""context":{"history":["preview","stroke"]}"#,
        r#""metadata":{"reason":"dry run was fine"}"#,
        r#""metadata":{"tags":["practice run","demo"]}"#,
        r#""metadata":"not a dry run""#,
        r#""format":["name","preview"]"#,
        r#""metadata":"dry_run=false""#,
        r#""model":"o1-preview""#,
        r#""format":"markdown""#,
    ] {
        all_draw(&[call(keys)]);
        lenient_draws(&[call(keys)]);
    }
    let waits = call(r#""wait":"until I say so""#);
    assert!(!draws(ForgivenessProfile::Guarded, &waits));
}

#[test]
fn finds_a_condition_or_refusal_in_other_words() {
    none_draws(&[
        r#"{"scene":"letters","comment":"just show me the picture"}"#,
        r#"{"scene":"letters","status":"hold"}"#,
        r#"{"scene":"letters","comment":"pause first"}"#,
        r#"{"scene":"letters","await":"operator"}"#,
        r#"{"scene":"letters","precondition":"pen is in"}"#,
        r#"{"scene":"letters","depends_on":"align"}"#,
        r#"{"scene":"letters","human_in_the_loop":true}"#,
        r#"{"scene":"letters","confirm":"n"}"#,
        r#"{"scene":"letters","comment":"attendez mon signal"}"#,
        r#"{"scene":"letters","comment":"espera a que te avise"}"#,
        r#"{"scene":"letters","comment":"подожди меня"}"#,
        r#"{"scene":"letters","comment":"등을 기다려"}"#,
    ]);
}

/// Such a key asks for a part of the motion, or for a lighter or later one.
#[test]
fn refuses_a_key_that_limits_the_act() {
    none_draws(&[
        r#"{"scene":"letters","max_strokes":1}"#,
        r#"{"scene":"letters","limit":1}"#,
        r#"{"scene":"letters","number_of_strokes":1}"#,
        r#"{"scene":"letters","max_points":1}"#,
        r#"{"scene":"letters","strokes":[1,2]}"#,
        r#"{"scene":"letters","stroke_range":"1-2"}"#,
        r#"{"scene":"letters","half":true}"#,
        r#"{"scene":"letters","portion":0.5}"#,
        r#"{"scene":"letters","percent":10}"#,
        r#"{"scene":"letters","region":"left"}"#,
        r#"{"scene":"letters","part":"first half"}"#,
        r#"{"scene":"letters","hover":true}"#,
        r#"{"scene":"letters","words":"hello"}"#,
        r#"{"scene":"letters","require_confirmation":true}"#,
    ]);
}

#[test]
fn an_unknown_key_beside_sufficient_arguments_is_ignored() {
    for text in [
        r#"{"scene":"letters","colour":"x"}"#,
        r#"{"scene":"letters","style":"bold"}"#,
        r#"{"scene":"letters","style":"default"}"#,
        r#"{"scene":"letters","user":"anna","source":"chat","level":3}"#,
        r#"{"scene":"letters","artwork":"Letters"}"#,
        r#"{"scene":"letters","extra":null,"more":{}}"#,
        r#"{"scene":"letters","confirm":true}"#,
        r#"{"scene":"letters","comment":"please draw it nicely"}"#,
        r#"{"scene":"letters","comment":"please draw all of the letters as nicely as you can"}"#,
        r#"{"scene":"letters","plan":"First the long strokes, then the rest."}"#,
        r#"{"scene":"letters","handle":"abc","env":"production","step":2,"task":"sign"}"#,
        r#"{"scene":"letters","mode":"draw"}"#,
        r#"{"scene":"letters","action":"stroke"}"#,
    ] {
        for profile in ForgivenessProfile::ALL {
            assert!(
                draws(profile, text),
                "{profile:?} {text}: {:?}",
                codes(profile, text)
            );
        }
        assert!(
            !moves(ForgivenessProfile::Guarded, text)
                .unwrap()
                .repairs
                .is_empty(),
            "{text}"
        );
    }
}

#[test]
fn keys_of_frameworks_and_of_presentation_mean_nothing() {
    for text in [
        r#"{"ctx":{"a":false}}"#,
        r#"{"_meta":{"progressToken":1}}"#,
        r#"{"temperature":0}"#,
        r#"{"thought":"I must not draw the short one, maybe later"}"#,
        r#"{"tool_call_id":"letters"}"#,
        r#"{"verbose":false,"stream":false,"wait":"no","async":true,"cache":"never","images":0}"#,
        r#"{"debug":true,"timeout_s":30}"#,
    ] {
        for profile in ForgivenessProfile::ALL {
            let reading = moves(profile, text).unwrap_or_else(|reason| panic!("{text}: {reason}"));
            assert_eq!(reading.understood["scene"], "default", "{text}");
        }
    }
}

#[test]
fn a_call_that_asks_for_a_dry_run_never_moves_in_either_profile() {
    never_draws(&[
        r#"{"scene":"letters","dry-run":"true"}"#,
        r#"{"scene":"letters","DRYRUN":1}"#,
        r#"{"scene":"letters","isDryRun":true}"#,
        r#"{"scene":"letters","dri_run":true}"#,
        r#"{"scene":"letters","drurun":true}"#,
        r#"{"scene":"letters","ｄｒｙ＿ｒｕｎ":true}"#,
        r#"{"scene":"letters","dry\u200b_run":true}"#,
        r#"{"scene":"letters","dry_run_mode":"full"}"#,
        r#"{"scene":"letters","simulate":true}"#,
        r#"{"scene":"letters","simulaçao":"sim"}"#,
        r#"{"scene":"letters","Vorschau":"ja"}"#,
        r#"{"scene":"letters","プレビュー":1}"#,
        r#"{"scene":"letters","options":{"dry_run":true}}"#,
        r#"{"scene":"letters","options":[{"a":{"dryRun":"maybe"}}]}"#,
        r#"{"scene":"letters","options":"{\"dry_run\": true}"}"#,
        r#"{"scene":"letters","ctx":{"dry_run":true}}"#,
        r#"{"scene":"letters","_meta":{"dry_run":true}}"#,
        r#"{"scene":"letters","dry_run":false,"options":{"dry_run":true}}"#,
        r#"{"scene":"letters","dry_run":{}}"#,
        r#"{"scene":"letters","dry_run":[]}"#,
        r#"{"scene":"letters","dry_run":""}"#,
        "scene=letters&dry_run=",
        r#"{"scene":"letters","emulate":true}"#,
        r#"{"scene":"letters","dry_run":"perhaps"}"#,
        r#"{"scene":"letters","mode":"dry run"}"#,
        r#"{"scene":"letters","comment":"only as a dry run"}"#,
        r#"{"scene":"letters","do_not_draw":true}"#,
        r#"{"scene":"letters","execute":false}"#,
        r#"{"scene":"letters","apply":false}"#,
        r#"{"scene":"letters","prova":true}"#,
        r#"{"scene":"letters","essai":"oui"}"#,
        r#"{"scene":"letters","запуск":"пробный"}"#,
        "stroke --scene letters -n",
        "-n --scene letters",
        "stroke -n --scene letters",
        "--scene letters -n --debug",
        "--scene -n",
        r#"{"scene":"letters","real":"no"}"#,
        r#"{"scene":"letters","stop":true}"#,
        r#"{"action":"preview","scene":"letters"}"#,
        r#"{"type":"dry_run","arguments":{"scene":"letters"}}"#,
        r#"{"name":"stroke","dry_run":true,"arguments":{"scene":"letters"}}"#,
        r#"{"name":"stroke","mode":"simulation","arguments":"{\"scene\":\"letters\"}"}"#,
        r#"["dry run"]"#,
        r#"{"input":"a dry run"}"#,
        r#"{"input":"scene=letters but as a dry run"}"#,
        r#"{"input":{"args":{"data":{"kwargs":{"params":{"dry_run":true}}}}}}"#,
        "stroke --scene letters --no-motion",
        "<tool_call dry_run=\"true\">{\"scene\":\"letters\"}</tool_call>",
        "<parameter name=\"scene\" type=\"dry_run\">letters</parameter>",
        "<tool_call id=\"dry_run\"><scene>letters</scene></tool_call>",
    ]);
}

#[test]
fn a_list_without_a_call_is_not_an_envelope() {
    for text in [
        r#"{"scene":"letters","function":[false]}"#,
        r#"{"scene":"letters","tool_calls":[1,2]}"#,
        r#"{"scene":"letters","function":[]}"#,
    ] {
        let profile = ForgivenessProfile::Lenient;
        let reading = moves(profile, text).unwrap_or_else(|reason| panic!("{text}: {reason}"));
        assert_eq!(reading.understood["scene"], "letters", "{text}");
    }
}

#[test]
fn a_mode_in_which_nothing_moves_never_moves_in_either_profile() {
    never_draws(&[
        r#"{"scene":"letters","ᴅʀʏ_ʀᴜɴ":true}"#,
        r#"{"scene":"letters","🅳🆁🆈 🆁🆄🅽":true}"#,
        r#"{"scene":"letters","note_to_arm":"ᴅʀʏ ʀᴜɴ"}"#,
        r#"{"scene":"letters","sim":true}"#,
        r#"{"scene":"letters","isVirtual":"yes"}"#,
        r#"{"scene":"letters","plan":true}"#,
        r#"{"scene":"letters","plan_only":1}"#,
        r#"{"scene":"letters","draft":"true"}"#,
        r#"{"scene":"letters","trial":true}"#,
        r#"{"scene":"letters","ghost_run":true}"#,
        r#"{"scene":"letters","postponed":true}"#,
        r#"{"scene":"letters","state":{"paused":1}}"#,
        r#"{"scene":"letters","options":{"estimate":true}}"#,
        r#"{"scene":"letters","offline_mode":true}"#,
        r#"{"scene":"letters","mode":"plan"}"#,
        r#"{"scene":"letters","mode":"test"}"#,
        r#"{"scene":"letters","mode":"validate only"}"#,
        r#"{"scene":"letters","run_mode":"OFFLINE"}"#,
        r#"{"scene":"letters","action":"stop"}"#,
        r#"{"scene":"letters","tool":"stop"}"#,
        r#"{"scene":"letters","options":{"action":"halt"}}"#,
        r#"{"scene":"letters","motion":"none"}"#,
        r#"{"scene":"letters","action":"none"}"#,
        r#"{"scene":"letters","do":"nothing"}"#,
        r#"{"scene":"letters","phase":"planning"}"#,
        r#"{"scene":"letters","env":"test"}"#,
        r#"{"scene":"letters","instruction":"just show me, nothing should move"}"#,
        r#"{"scene":"letters","execute":"None"}"#,
        r#"{"name":"stop","arguments":{"scene":"letters"}}"#,
        r#"{"name":"plan","arguments":{"scene":"letters"}}"#,
        r#"plan(scene="letters")"#,
        r#"no_stroke(scene="letters")"#,
        r#"{"scene":"letters","ydr_run":true}"#,
        r#"!{"scene":"letters"}"#,
        r#"! {"scene":"letters"}"#,
        r#"<function=/* dry run */stroke>{"scene":"letters"}</function>"#,
        "arguments:\n  scene dry run : \"letters\"\n  debug: true",
        "scene: letters dry run: yes",
        r#"scene: letters Observation: {"debug":"maybe"}"#,
        r#"JSON.parse("{\"scene\":\"letters\"}") // dry run"#,
        r#"stroke(scene="letters") /* dry run */"#,
        r#"scene: letters // {"fps":0}"#,
        "// debug: 2\nscene: letters",
        "# scene = short\nscene: letters",
        "# 1. debug: 2\n2. scene: letters",
        r#"{"scene":"letters","input":[{},{}]}"#,
        r#"{"style":"{\"scene\":\"letters\"}","function":{"_":"{}"}}"#,
        r#"{"scene":"letters"} # {"scene":"short"}"#,
        r#"{"scene":"letters","arguments":"[1,2]"}"#,
        r#"{"scene":"letters","arguments":[1],"dry_run":true}"#,
    ]);
}

#[test]
fn a_text_that_declines_draws_no_default() {
    for text in [
        "not now",
        "don't",
        "no",
        r#""no""#,
        "I cannot call this tool",
        "не надо",
        "不要",
        "lieber nicht",
    ] {
        assert!(!draws(ForgivenessProfile::Lenient, text), "{text}");
    }
    for text in [
        "",
        "null",
        "none",
        "no arguments",
        "No parameters needed.",
        "undefined",
    ] {
        assert!(draws(ForgivenessProfile::Lenient, text), "{text}");
    }
}

#[test]
fn a_tool_without_a_dry_run_refuses_to_move_for_one() {
    for text in [
        r#"{"dry_run":true}"#,
        r#"{"scene":"letters","dry_run":true}"#,
        r#"{"scene":"letters","preview":"yes"}"#,
        r#"{"scene":"letters","options":{"simulate":1}}"#,
        "{\"scene\":\"letters\"} as a dry run",
    ] {
        for profile in ForgivenessProfile::ALL {
            let policy = ReaderPolicy::new(ToolEffect::Moves, profile);
            let outcome = read(&reset(), &policy, ReceivedArguments::Text(text.into()));
            let refusal = outcome.unwrap_err();
            assert!(
                refusal.complaints.iter().any(|one| one.code == "withheld"),
                "{text}: {refusal}"
            );
        }
    }
}

#[test]
fn a_dry_run_that_is_understood_may_be_requested_repeatedly() {
    for text in [
        r#"{"scene":"letters","dry_run":true,"simulate":true,"options":{"dryRun":1}}"#,
        r#"{"scene":"letters","preview":"yes","mode":"dry run"}"#,
        "stroke --scene letters --dry-run",
        "scene: letters\ndry_run: yes",
        "scene=letters&dryRun=1",
        "stroke(scene='letters', dry_run=True) # a dry run",
    ] {
        for profile in ForgivenessProfile::ALL {
            let reading = moves(profile, text).unwrap_or_else(|reason| panic!("{text}: {reason}"));
            assert_eq!(reading.given["dry_run"], true, "{text}");
        }
    }
    let text = r#"{"scene":"letters","dry_run":true} as a dry run"#;
    assert_eq!(
        moves(ForgivenessProfile::Lenient, text).unwrap().given["dry_run"],
        true
    );
}

#[test]
fn text_that_is_data_is_never_searched() {
    for note in [
        "a dry run",
        "do not move",
        "simulation only, if tomorrow",
        "预览",
        "{\"dry_run\": true}",
    ] {
        for profile in ForgivenessProfile::ALL {
            let text = json!({"scene": "letters", "note": note}).to_string();
            assert!(draws(profile, &text), "{text}");
            let wrapped = json!({"arguments": text}).to_string();
            assert!(draws(profile, &wrapped), "{wrapped}");
        }
    }
}

#[test]
fn a_tool_that_reads_or_stops_is_never_withheld() {
    for text in [
        "Do not run: {\"scene\":\"letters\"}",
        r#"{"scene":"letters","options":{"dry_run":true},"real":false}"#,
        "just a dry run",
    ] {
        for effect in [ToolEffect::Reads, ToolEffect::Stops] {
            let policy = ReaderPolicy::new(effect, ForgivenessProfile::Guarded);
            assert!(
                read(&stroke(), &policy, ReceivedArguments::Text(text.into())).is_ok(),
                "{text}"
            );
        }
    }
}

#[test]
fn a_hundred_calls_with_extra_keys_and_a_scene_still_run() {
    let extras = [
        json!("x"),
        json!(1),
        json!(true),
        json!(["a", "b"]),
        json!({"a": "b"}),
    ];
    let keys = [
        "extra",
        "colour",
        "style",
        "user",
        "source",
        "comment",
        "tag",
        "priority_class",
        "level",
        "request",
        "origin",
        "quality",
        "reason",
        "title",
        "label",
        "who",
        "version",
        "client",
        "kind",
        "flavour",
    ];
    let mut runs = 0;
    for key in keys {
        for value in &extras {
            let call = json!({"scene": "letters", key: value});
            let policy = ReaderPolicy::new(ToolEffect::Moves, ForgivenessProfile::Guarded);
            let outcome = read(&stroke(), &policy, ReceivedArguments::Value(call.clone()));
            let reading = outcome.unwrap_or_else(|reason| panic!("{call}: {reason}"));
            assert_eq!(
                Value::Object(reading.given),
                json!({"scene": "letters"}),
                "{call}"
            );
            runs += 1;
        }
    }
    assert_eq!(runs, 100);
}
