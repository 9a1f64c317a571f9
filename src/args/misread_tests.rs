//! Calls that say something else than "draw this": nothing, another tool, a denied parameter, an instruction, a question.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use super::{
    ArgumentShape, ForgivenessProfile, ParameterShape, ReaderPolicy, ReceivedArguments, ToolEffect,
    ValueKind, read,
    request_tests::{all_draw, lenient_draws, moves, never_draws, none_draws, stroke},
};
use serde_json::json;

#[test]
fn a_call_of_nothing_with_an_empty_value_draws_nothing() {
    never_draws(&[
        r#"{"name":null,"arguments":{}}"#,
        r#"{"name":"","arguments":{}}"#,
        r#"{"tool":null,"args":null}"#,
        r#"{"action":null,"action_input":null}"#,
        r#"{"action":"","action_input":""}"#,
        r#"{"function_call":null}"#,
        r#"{"tool_calls":null}"#,
        r#"{"tool_calls":""}"#,
        r#"{"tool_calls":{}}"#,
        r#"{"tool_calls":[null]}"#,
        r#"{"tool_calls":[{}]}"#,
        r#"{"role":"assistant","content":"","tool_calls":null}"#,
        r#"{"calls":[]}"#,
        r#"{"arguments":"[TOOL_CALLS][]"}"#,
        r#"<tool_call>{"name":null,"arguments":{}}</tool_call>"#,
        "<tool_call>null</tool_call>",
        "<tool_call></tool_call>",
        "[TOOL_CALLS][]",
        "[TOOL_CALLS] null",
    ]);
    all_draw(&[
        "null",
        "[]",
        r#"{"arguments":null}"#,
        r#"{"name":"stroke","arguments":null}"#,
        r#"{"name":null,"arguments":{"scene":"letters"}}"#,
        "<tool_call>{}</tool_call>",
        "stroke()",
    ]);
}

#[test]
fn a_tool_that_is_called_by_a_key_is_another_call() {
    never_draws(&[
        r#"{"stop":{}}"#,
        r#"{"align":{}}"#,
        r#"{"sense":{}}"#,
        r#"{"reset":{}}"#,
        r#"{"robot_align":{}}"#,
        r#"{"cancel":{}}"#,
        r#"{"emergency_stop":{}}"#,
        r#"{"tool_calls":[{"stop":{}}]}"#,
        r#"{"arguments":{"stop":{}}}"#,
        r#"{"stroke":{"stop":{}}}"#,
        r#"{"align":{},"stroke":{"scene":"letters"}}"#,
        r#"{"scene":"letters","stop":{}}"#,
        r#"{"scene":"letters","stop":[{}]}"#,
        r#"{"scene":"letters","align":{}}"#,
        r#"{"scene":"letters","align":[{}]}"#,
        r#"{"scene":"letters","align":{"debug":true}}"#,
        r#"{"reset":[]}"#,
        r#"{"align":[]}"#,
        r#"{"sense":[]}"#,
        r#"{"list_nodes":[]}"#,
        r#"{"scene":"letters","robot_align":[]}"#,
    ]);
    none_draws(&[
        r#"{"get_weather":{}}"#,
        r#"{"final_answer":{}}"#,
        r#"{"thoughts":"x","command":{}}"#,
        r#"{"scene":"letters","align":true}"#,
    ]);
    all_draw(&[
        r#"{"stroke":{}}"#,
        r#"{"stroke":{"scene":"letters"}}"#,
        r#"{"ctx":{}}"#,
        r#"{"scene":"letters","stop":null}"#,
    ]);
}

/// They are usual defaults of language models' own parameters. In a tag, a name alone is a call.
#[test]
fn an_empty_stop_beside_a_scene_was_not_sent() {
    for key in [
        "stop",
        "cancel",
        "pause",
        "abort",
        "estop",
        "emergency_stop",
    ] {
        for value in [json!(""), json!([]), json!(" "), json!(null)] {
            let call = json!({"scene": "letters", key: value}).to_string();
            all_draw(&[&call]);
            lenient_draws(&[&call]);
        }
        for value in [json!({}), json!([{}]), json!(true)] {
            never_draws(&[json!({"scene": "letters", key: value}).to_string()]);
        }
        never_draws(&[json!({key: ""}).to_string(), json!({key: []}).to_string()]);
        never_draws(&[
            format!("<scene>letters</scene><{key}></{key}>"),
            format!("<stroke><scene>letters</scene><{key}></{key}></stroke>"),
            format!("<stroke><scene>letters</scene><{key}/></stroke>"),
        ]);
    }
    let refusal = moves(ForgivenessProfile::Lenient, r#"{"name":"stop"}"#).unwrap_err();
    assert_eq!(refusal.complaints[0].received, "stop", "{refusal}");
}

/// Only a scene or another choice shows that more than a stop was asked for.
#[test]
fn an_empty_stop_without_a_choice_is_a_stop() {
    for value in [r#""""#, "[]", r#"" ""#] {
        for others in [
            r#""reason":"x""#,
            r#""foo":"bar""#,
            r#""get_weather":{}"#,
            r#""dry_run":false"#,
            r#""resume":true"#,
            r#""resume":true,"debug":true,"foo":"bar""#,
            r#""scene":"""#,
        ] {
            never_draws(&[
                format!(r#"{{{others},"stop":{value}}}"#),
                format!(r#"{{"stop":{value},{others}}}"#),
                format!(r#"{{"cancel":null,{others},"emergency_stop":{value}}}"#),
            ]);
        }
        lenient_draws(&[
            format!(r#"{{"reason":"x","scene":"default","stop":{value}}}"#),
            format!(r#"{{"stop":{value},"foo":"bar","meta":"leaf"}}"#),
        ]);
    }
    all_draw(&[
        r#"{"resume":true,"stop":null}"#,
        r#"{"stop_sequences":[],"temperature":0.2}"#,
    ]);
}

/// Beside data, no key is left out.
#[test]
fn a_call_of_nothing_is_heard_beside_data() {
    let shape = ArgumentShape::new(vec![
        ParameterShape::new("text", ValueKind::Verbatim { bytes_max: 100 }),
        ParameterShape::new("dry_run", ValueKind::Bool).cautious(true),
    ])
    .with_tool_names(["stroke"]);
    for profile in ForgivenessProfile::ALL {
        let policy = ReaderPolicy::new(ToolEffect::Moves, profile);
        let runs = |call| read(&shape, &policy, ReceivedArguments::Value(call)).is_ok();
        assert!(runs(json!({"text": "Hi"})));
        assert!(!runs(json!({"text": "Hi", "name": null})));
        assert!(!runs(json!({"text": "Hi", "tool_calls": []})));
        assert!(runs(json!({"text": "Hi", "tool_calls": null})));
        assert!(runs(json!({"text": "Hi", "function_call": null})));
        assert!(!runs(json!({"tool_calls": null})));
        assert!(!runs(json!({"text": "Hi", "stop": {}})));
    }
}

#[test]
fn a_request_for_help_draws_nothing() {
    none_draws(&[
        "stroke --scene letters --help",
        r#"{"scene":"letters","help":true}"#,
        r#"{"scene":"letters","help":"yes"}"#,
        r#"{"scene":"letters","show_help":true}"#,
        r#"{"scene":"letters","usage":true}"#,
        r#"{"scene":"letters","explain":true}"#,
        r#"{"scene":"letters","describe":true}"#,
        r#"{"scene":"letters","info":true}"#,
        r#"{"scene":"letters","example":true}"#,
        r#"{"scene":"letters","template":true}"#,
        r#"{"scene":"letters","hilfe":true}"#,
        r#"{"scene":"letters","already_done":true}"#,
        r#"{"scene":"letters","is_finished":true}"#,
        r#"{"scene":"letters","erase":true}"#,
    ]);
    all_draw(&[
        r#"{"scene":"letters","help":null}"#,
        r#"{"scene":"letters","description":"The letters of Anna's name"}"#,
        r#"{"scene":"letters","explanation":"This example shows the help."}"#,
    ]);
}

/// The namespace of a call's tag is judged as that of a tool's name.
#[test]
fn a_namespace_that_asks_for_something_else_draws_nothing() {
    for namespace in [
        "help", "explain", "example", "template", "slowly", "twice", "reset", "align", "later",
    ] {
        none_draws(&[
            format!("{namespace}.stroke(scene=\"letters\")"),
            json!({"name": format!("{namespace}.stroke"), "arguments": {"scene": "letters"}})
                .to_string(),
            format!(
                "<{namespace}:invoke name=\"stroke\"><parameter name=\"scene\">letters</parameter></{namespace}:invoke>"
            ),
            format!(
                "<{namespace}:tool_call><invoke name=\"stroke\"><parameter name=\"scene\">letters</parameter></invoke></{namespace}:tool_call>"
            ),
            format!("<{namespace}:tool_call>{{\"scene\":\"letters\"}}</{namespace}:tool_call>"),
            format!(
                "<{namespace}:tool_call>{{\"name\":\"stroke\",\"arguments\":{{\"scene\":\"letters\"}}}}</{namespace}:tool_call>"
            ),
        ]);
    }
    for namespace in ["minimax", "antml", "functions", "ns_1"] {
        all_draw(&[
            format!(
                "<{namespace}:invoke name=\"stroke\"><parameter name=\"scene\">letters</parameter></{namespace}:invoke>"
            ),
            format!("<{namespace}:tool_call>{{\"scene\":\"letters\"}}</{namespace}:tool_call>"),
        ]);
    }
}

#[test]
fn a_call_of_a_denial_draws_in_no_profile() {
    for word in ["not", "never", "dont", "later", "tomorrow", "nicht"] {
        never_draws(&[
            format!("[{word}]\nscene = \"letters\""),
            format!("{word}(scene=\"letters\")"),
            format!("{word}.stroke(scene=\"letters\")"),
            format!("<{word}><scene>letters</scene></{word}>"),
            format!("<{word} scene=\"letters\"/>"),
            json!({"arguments": format!("{word}(scene=\"letters\")")}).to_string(),
            json!({"name": word, "arguments": {"scene": "letters"}}).to_string(),
            json!({"tool_calls": [{"function": {"name": word, "arguments": {"scene": "letters"}}}]})
                .to_string(),
        ]);
    }
    all_draw(&["[stroke]\nscene = \"letters\""]);
}

#[test]
fn a_motion_that_is_denied_in_any_words_is_made_in_no_profile() {
    never_draws(&[
        r#"{"scene":"letters","sans_dessiner":true}"#,
        r#"{"scene":"letters","ne_pas_dessiner":true}"#,
        r#"{"scene":"letters","sin_dibujar":true}"#,
        r#"{"scene":"letters","no_dibujar":true}"#,
        r#"{"scene":"letters","sin_tinta":true}"#,
        r#"{"scene":"letters","não_desenhar":true}"#,
        r#"{"scene":"letters","non_disegnare":true}"#,
        r#"{"scene":"letters","nicht_malen":true}"#,
        r#"{"scene":"letters","nichtZeichnen":true}"#,
        r#"{"scene":"letters","niet_tekenen":true}"#,
        r#"{"scene":"letters","nie_rysuj":true}"#,
        r#"{"scene":"letters","не_рисовать":true}"#,
        r#"{"scene":"letters","不要画":true}"#,
        r#"{"scene":"letters","描かない":true}"#,
        r#"{"scene":"letters","그리지 마":true}"#,
        r#"{"scene":"letters","do_not_paint":true}"#,
        r#"{"scene":"letters","no_contact":true}"#,
        r#"{"scene":"letters","motors_disabled":true}"#,
        r#"{"scene":"letters","inhibit_motion":true}"#,
        r#"{"scene":"letters","suppress_motion":true}"#,
        r#"{"scene":"letters","block_motion":true}"#,
        r#"{"scene":"letters","disarmed":true}"#,
        r#"{"scene":"letters","locked":true}"#,
        r#"{"scene":"letters","mode":"测试"}"#,
        r#"{"scene":"letters","mode":"テスト"}"#,
        r#"{"scene":"letters","mode":"тест"}"#,
        r#"{"scene":"letters","mode":"테스트"}"#,
        r#"{"scene":"letters","mode":"drу_run"}"#,
        r#"sans dessiner: {"scene":"letters"}"#,
        r#"{"scene":"letters"} sin dibujar"#,
        r#"그리지 마: {"scene":"letters"}"#,
    ]);
    none_draws(&[
        r#"{"scene":"letters","details":"sin tocar el papel"}"#,
        r#"{"scene":"letters","details":"sans toucher le papier"}"#,
        r#"{"scene":"letters","details":"그리지 마"}"#,
    ]);
    all_draw(&[
        r#"{"scene":"letters","mode":"draw"}"#,
        r#"{"scene":"letters","artist":"Martin Malenkov"}"#,
        r#"{"scene":"letters","comment":"画得好看一点"}"#,
    ]);
    lenient_draws(&[
        r#"{"scene":"letters","locked":false}"#,
        r#"{"scene":"letters","zeichnen":true}"#,
        r#"{"scene":"letters","motors":true}"#,
    ]);
}

/// An instruction that no parameter takes is not left out; what explains the call or says whose it is may be.
#[test]
fn an_instruction_under_any_key_is_not_left_out() {
    for words in [
        "as slowly as possible",
        "very careful",
        "just the first letter",
        "all but the last",
        "half the size",
        "ten times smaller",
        "repeat five times",
        "5 copies",
        "twice",
        "mirrored",
        "upside down",
        "in the upper left corner",
        "on the left half",
        "low pressure",
        "on sheet 2",
        "write HELLO",
        "drawing.svg",
        "langsam",
        "lentement",
        "慢一点",
    ] {
        for key in ["details", "mode", "instruction", "request"] {
            none_draws(&[
                json!({"scene": "letters", key: words}).to_string(),
                json!({"scene": "letters", key: [words]}).to_string(),
                json!({"scene": "letters", "options": {key: words}}).to_string(),
            ]);
        }
    }
    none_draws(&[
        r#"{"scene":"letters","letter":"A"}"#,
        r#"{"scene":"letters","selection":"A"}"#,
    ]);
    all_draw(&[
        r#"{"scene":"letters","reason":"The user wants the first letter, on the left"}"#,
        r#"{"scene":"letters","explanation":"Draws the letters at the top left of the sheet"}"#,
        r#"{"scene":"letters","options":{"description":"slowly"}}"#,
        r#"{"scene":"letters","thought":"slowly"}"#,
        r#"{"scene":"letters","style":"bold","type":"drawing","task":"draw text"}"#,
        r#"{"scene":"short","query":"Draw the short scene with the robot arm"}"#,
    ]);
}

/// A wish is an instruction whosever it is.
#[test]
fn an_instruction_is_not_left_out_because_its_key_says_whose_it_is() {
    for key in [
        "user_request",
        "user_instruction",
        "user_message",
        "userPreferences",
        "agent_instruction",
        "customer_wish",
        "client_requirements",
        "step_details",
        "plan_details",
        "title_request",
        "instructions_by_user",
        "reduced_by",
        "by",
        "Benutzerwunsch",
    ] {
        for words in [
            "mirrored, at half the size",
            "draw it twice, mirrored",
            "upside down, please",
            "just the left half",
        ] {
            let call = json!({"scene": "letters", key: words}).to_string();
            none_draws(&[call]);
        }
    }
}

#[test]
fn what_explains_a_call_in_any_language_or_says_whose_it_is_is_left_out() {
    for (key, value) in [
        ("begründung", "Der Nutzer will es schnell"),
        ("Grund", "schnell"),
        ("kommentar", "auf der linken Seite, langsam"),
        ("raison", "lentement"),
        ("explicación", "lo pidió despacio"),
        ("причина", "пользователь просил быстро"),
        ("理由", "ユーザーがゆっくりと言った"),
        ("原因", "用户要慢一点"),
        ("이유", "천천히"),
        ("request_reason", "the user wants it quickly"),
        ("reason_for_request", "the user wants it quickly"),
        ("requested_by", "Anna Small"),
        ("created_by", "Ms. Quick"),
        ("for_whom", "Anna Small"),
        ("person", "Anna Small"),
        ("user_name", "Anna Small"),
        ("project", "Small World"),
        ("branch", "feature/quick-fix"),
        ("provider", "deep-infra"),
        ("url", "https://example.com/left/right"),
    ] {
        all_draw(&[json!({"scene": "letters", key: value}).to_string()]);
    }
}

#[test]
fn words_that_only_sound_like_an_instruction_are_left_out() {
    for (key, value) in [
        ("note", json!("first try")),
        ("note", json!("on the sheet")),
        ("why", json!("because the user wants to write")),
        ("intent", json!("write a letter")),
        ("objective", json!("a drawing on the sheet")),
        ("request", json!("please draw it right now")),
        ("thought_process", json!("I will first draw the letters")),
        ("step_name", json!("first")),
        ("caller", json!("first agent")),
        ("todo", json!(["draw", "write"])),
        ("message", json!("I left the rest as is")),
        ("selected", json!(true)),
        ("selection_reason", json!("fits")),
        ("selected_scene", json!("default")),
        ("writing", json!(true)),
        ("selected_tool", json!("stroke")),
        ("message", json!("All right, drawing now")),
        ("message", json!("That's right.")),
        ("message", json!("You are right")),
        ("message", json!("Right, drawing the letters")),
        ("message", json!("Everything looks right")),
        ("message", json!("Everything is right, the user says")),
        ("message", json!("Drawing at last")),
        ("message", json!("Right, here you are")),
    ] {
        all_draw(&[json!({"scene": "letters", key: value}).to_string()]);
    }
    for (key, value) in [
        ("message", "on the left"),
        ("message", "left"),
        ("message", "the first"),
        ("message", "first two letters"),
        ("message", "only the first two"),
        ("message", "slightly left"),
        ("message", "write HELLO"),
        ("message", "right"),
        ("message", "right, please"),
        ("message", "the head is right"),
        ("message", "it is right of the edge"),
        ("message", "all right of the edge"),
        ("message", "letters all right"),
        ("message", "last"),
        ("message", "at last point"),
        ("message", "on the second sheet"),
        ("message", "right drawing"),
        ("message", "right here"),
        ("message", "all right starting points"),
        ("placement", "this is right"),
        ("Motiv", "Fisch, gespiegelt"),
        ("motif", "a fish, mirrored"),
        ("motivo", "un pez, a la izquierda"),
        ("selected", "A"),
        ("selected_line", "A"),
        ("write", "HELLO"),
    ] {
        none_draws(&[json!({"scene": "letters", key: value}).to_string()]);
    }
}

#[test]
fn a_word_with_another_meaning_denies_nothing() {
    all_draw(&[
        r#"{"scene":"letters","font":"sans-serif"}"#,
        r#"{"scene":"letters","comment":"a sin wave"}"#,
        r#"{"scene":"letters","title":"sans"}"#,
    ]);
    lenient_draws(&[
        r#"{"scene":"letters","pen_no":1}"#,
        r#"{"scene":"letters","stroke_block":"A"}"#,
        r#"{"scene":"letters","aspect_ratio_locked":true}"#,
    ]);
    never_draws(&[
        r#"{"scene":"letters","sin_usar_tinta":true}"#,
        r#"{"scene":"letters","is_locked":true}"#,
        r#"{"scene":"letters","arm_locked":true}"#,
        r#"{"scene":"letters","motion_blocked":true}"#,
        r#"{"scene":"letters","pen_lockout":true}"#,
        r#"{"scene":"letters","draw_no":true}"#,
        r#"{"scene":"letters","stop_no":1}"#,
    ]);
}

#[test]
fn an_empty_place_for_arguments_is_no_call() {
    all_draw(&[
        r#"{"options":{}}"#,
        r#"{"config":{}}"#,
        r#"{"settings":{}}"#,
        r#"{"body":{}}"#,
        r#"{"query":{}}"#,
        r#"{"extra":{}}"#,
        r#"{"additional_properties":{}}"#,
        r#"{"":{}}"#,
        r#"{"data":{}}"#,
        r#"{"additional_kwargs":{}}"#,
        r#"{"extra_args":{}}"#,
        r#"{"stroke_args":{}}"#,
        r#"{"strokeArguments":{}}"#,
        r#"{"query_params":{}}"#,
        r#"{"robot_stroke_params":{}}"#,
        r#"{"toolCallArguments":{}}"#,
        r#"{"additional_model_kwargs":{}}"#,
        r#"{"request":{}}"#,
        r#"{"state":{}}"#,
        r#"{"session":{}}"#,
        r#"{"values":{}}"#,
        r#"{"scene":"letters","status":""}"#,
    ]);
    none_draws(&[
        r#"{"align_args":{}}"#,
        r#"{"robot_reset_params":{}}"#,
        r#"{"stop_args":{}}"#,
        r#"{"get_weather":{}}"#,
        r#"{"get_weather_args":{}}"#,
        r#"{"set_torque_params":{}}"#,
        r#"{"erase_all_args":{}}"#,
        r#"{"dont_args":{}}"#,
        r#"{"emergency_params":{}}"#,
        r#"{"letters_params":{}}"#,
        r#"{"two_pens_args":{}}"#,
        r#"{"extra_letters_args":{}}"#,
    ]);
    let call = r#"{"scene":"letters","status":{}}"#;
    let refusal = moves(ForgivenessProfile::Guarded, call).unwrap_err();
    assert_eq!(refusal.complaints[0].path, "status");
}

/// Words and marks around a parameter's name that may deny it, ask for it later, or only speak of it.
const AFFIXES: [&str; 49] = [
    "no_{}",
    "not_{}",
    "never_{}",
    "dont_{}",
    "exclude_{}",
    "skip_{}",
    "disable_{}",
    "ignore_{}",
    "forbidden_{}",
    "without_{}",
    "un{}",
    "no{}",
    "not{}",
    "{}Not",
    "{}_off",
    "{}_false",
    "{}_done",
    "{}_disabled",
    "{}_ignored",
    "{}_denied",
    "{}_failed",
    "{}_later",
    "{}_before",
    "{}_after",
    "{}_to_avoid",
    "{}_or_not",
    "if_{}",
    "was_{}",
    "only_{}",
    "{}_only",
    "max_{}",
    "{}_limit",
    "{}_count",
    "{}_2",
    "{}2",
    "first_{}",
    "describe_{}",
    "erase_{}",
    "allow_{}",
    "{}_required",
    "!{}",
    "//{}",
    "-{}",
    "¬{}",
    "~{}",
    "{}!=",
    "{}≠",
    "{}<>",
    "❌{}",
];

#[test]
fn a_parameter_that_is_denied_is_never_taken_nor_offered_as_a_motion() {
    let policy = ReaderPolicy::new(ToolEffect::Moves, ForgivenessProfile::Guarded);
    let shape = stroke();
    for (name, value) in [
        ("scene", json!("letters")),
        ("meta", json!("leaf")),
        ("resume", json!(true)),
        ("debug", json!(true)),
    ] {
        for affix in AFFIXES {
            let mut call = json!({affix.replace("{}", name): value});
            if name != "scene" {
                call["scene"] = json!("letters");
            }
            match read(&shape, &policy, ReceivedArguments::Value(call.clone())) {
                Ok(reading) => assert!(!reading.given.contains_key(name), "{call}: {reading:?}"),
                Err(refusal) => {
                    let corrected = refusal.corrected.unwrap();
                    assert_eq!(corrected["dry_run"], true, "{call} -> {corrected:?}");
                }
            }
        }
    }
}

#[test]
fn the_default_is_not_drawn_in_place_of_a_scene_that_is_named_without_a_place() {
    let texts = [
        r#"["letters", true]"#,
        r#"["letters", "leaf"]"#,
        r#"{"args": ["letters", "leaf"]}"#,
        r#"{"args": ["scene=sunset", "x"]}"#,
        r#"["scene", "sunset"]"#,
        r#"{"name": "scene", "value": "letters"}"#,
        r#"(stroke :scene "letters")"#,
        r#"Draw the letters: {"debug": true}"#,
        r#"scene is sunset, scene: sunset; {"debug": true}"#,
        "<tool_call><function=stroke>letters</function></tool_call>",
        r#"<function=stroke>{"scene": "letters"}<parameter=debug>true</parameter></function>"#,
    ];
    never_draws(&texts);
    lenient_draws(&[
        r#"[1, true]"#,
        r#"{"args": ["default", true]}"#,
        // An unknown key is left out with a warning that names it.
        r#"{"scen": "letters"}"#,
        r#"{"artwork": "letters"}"#,
        r#"{"artwork": "default"}"#,
        r#"Draw the letters: {"scene": "letters"}"#,
        r#"The scene: {"debug": true}"#,
        r#"{"scene": "short", "artwork": "letters"}"#,
    ]);
}
