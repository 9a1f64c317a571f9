//! Tests calls in the syntax of models, of which all is read or nothing runs.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use super::{
    ArgumentShape, ForgivenessProfile, ParameterShape, ReaderPolicy, ReaderRule, ReceivedArguments,
    ToolEffect, ValueKind, read,
    tests::{check, guarded},
};
use serde_json::{Value, json};

#[test]
fn a_call_in_a_models_own_syntax_is_read() {
    for text in [
        r#"{"type": "function", "name": "stroke", "parameters": {"scene": "koi"}}"#,
        r#"{"type": "function", "function": "stroke", "parameters": {"scene": "koi"}}"#,
        "<|recipient|>stroke\n<|content|>{\"scene\": \"koi\"}<|stop|>",
        "<|from|>assistant\n<|recipient|>stroke\n<|content|>{\"scene\": \"koi\"}<|stop|>",
        ">>>stroke\n{\"scene\": \"koi\"}",
        "<|python_tag|>stroke.call(scene=\"koi\")",
        "<minimax:tool_call><invoke name=\"stroke\"><parameter name=\"scene\">koi</parameter></invoke></minimax:tool_call>",
        "<seed:tool_call><function=stroke><parameter=scene>koi</parameter></function></seed:tool_call>",
        "<|START_THINKING|>the {star}?<|END_THINKING|><|START_ACTION|>[{\"tool_call_id\": \"0\", \"tool_name\": \"stroke\", \"parameters\": {\"scene\": \"koi\"}}]<|END_ACTION|>",
        "[stroke]\nscene = \"koi\"",
        "scene: |\n  koi",
        "scene: >-\n  koi\n",
        "stroke:\n  scene: koi",
        "scene: koi;",
    ] {
        let read = guarded(text).map_err(|refusal| refusal.to_string());
        assert_eq!(
            Value::Object(read.unwrap().given),
            json!({"scene": "koi"}),
            "{text}"
        );
    }
    check(&[
        (
            r#"{"type": "function", "name": "stroke", "parameters": {"type": "object", "properties": {"scene": {}}}}"#,
            "!!rr",
        ),
        (
            r#"{"type": "function", "name": "stroke", "parameters": {"scene": {"type": "string"}}}"#,
            "!!rr",
        ),
        (
            r#"{"type": "function", "name": "align", "parameters": {"scene": "koi"}}"#,
            "!!rr",
        ),
        ("<|recipient|>reset\n<|content|>{}<|stop|>", "!!rr"),
        (">>>reset\n{}", "!!rr"),
        ("[reset]\nscene = \"koi\"", "!!rr"),
        ("reset.call(scene=\"koi\")", "!!rr"),
        (
            "<dry_run:tool_call><scene>koi</scene></dry_run:tool_call>",
            "!!rr",
        ),
        ("{note: ½}", "...."),
        ("note: |\n  a\n  b", "!!rr"),
        ("scene: |", "!rrr"),
        ("scene: koi; fps: 5;", "!!rr"),
    ]);
}

#[test]
fn the_default_is_not_drawn_in_place_of_a_value_that_is_seen() {
    for text in [
        "--scene koi --",
        "stroke --scene koi -d",
        "echo stroke --scene koi",
        "scene -> koi",
        "scene is koi",
        "scene != \"koi\"",
        "(scene koi)",
        "measured:\n  dx: 0.8\n  dy: -0.3",
        r#"{"input": "scene is koi"}"#,
        "| scene | koi |",
        "<tool_call>stroke\n<arg_key>scene</arg_key>\n<arg_value>koi</arg_value>\n</tool_call>\n<tool_call>reset</tool_call>",
        "<stroke scene=\"koi\"/><reset/>",
        "<function=stroke><parameter=scene>koi</parameter></function><function=reset></function>",
        "call:align{}",
    ] {
        check(&[(text, "!!rr")]);
    }
}

#[test]
fn a_call_in_one_more_tag_is_read() {
    for call in [
        "<function=stroke>{\"scene\": \"koi\"}</function>",
        "<function name=\"stroke\">{\"scene\": \"koi\"}</function>",
        "<invoke name=\"stroke\">\n{\"scene\": \"koi\"}\n</invoke>",
        "<invoke name=\"stroke\">[{\"scene\": \"koi\"}]</invoke>",
        "<stroke>{\"scene\": \"koi\"}</stroke>",
    ] {
        for tag in ["tool_call", "function_call", "function_calls", "tool"] {
            is_koi(&format!("<{tag}>\n{call}\n</{tag}>"));
        }
    }
}

/// Forms of one call, as models and clients write it.
const FORMS: [&str; 22] = [
    r#"{"scene": "koi"}"#,
    r#"[{"scene": "koi"}]"#,
    r#""{\"scene\": \"koi\"}""#,
    "{'scene': 'koi',}",
    "scene: koi",
    "scene = \"koi\"",
    "scene=koi",
    "--scene koi",
    "stroke --scene=koi",
    "stroke(scene=\"koi\")",
    "[stroke(scene=\"koi\")]",
    "print(default_api.stroke(scene='koi'))",
    "args = {'scene': 'koi'}",
    "<function=stroke>\n<parameter=scene>\nkoi\n</parameter>\n</function>",
    "<tool_call>stroke\n<arg_key>scene</arg_key>\n<arg_value>koi</arg_value>\n</tool_call>",
    "<tool_call>\n{\"name\": \"stroke\", \"arguments\": {\"scene\": \"koi\"}}\n</tool_call>",
    "<invoke name=\"stroke\"><parameter name=\"scene\">koi</parameter></invoke>",
    "[TOOL_CALLS][{\"name\": \"stroke\", \"arguments\": {\"scene\": \"koi\"}}]",
    "<|tool_call|>[{\"name\": \"stroke\", \"arguments\": {\"scene\": \"koi\"}}]<|/tool_call|>",
    "<|channel|>commentary to=functions.stroke <|constrain|>json<|message|>{\"scene\": \"koi\"}<|call|>",
    "<think>ok</think>\n{\"scene\": \"koi\"}",
    "```json\n{\"scene\": \"koi\"}\n```",
];

#[track_caller]
fn is_koi(text: &str) {
    let read = guarded(text).map_err(|refusal| refusal.to_string());
    assert_eq!(
        Value::Object(read.unwrap().given),
        json!({"scene": "koi"}),
        "{text}"
    );
}

#[test]
fn a_form_is_read_behind_a_known_phrase_and_before_one() {
    for form in FORMS {
        is_koi(form);
        is_koi(&format!("Here is the call:\n{form}"));
        is_koi(&format!("Sure! I'll use `stroke`.\n\n{form}"));
        is_koi(&format!("{form}\n\nLet me know if this works."));
        is_koi(&format!("Okay.\n{form}\nThank you!"));
        for before in ["Tomorrow:\n", "If the lamp is on:\n", "Not this call:\n"] {
            for text in [format!("{before}{form}"), format!("Sure!\n{before}{form}")] {
                assert!(guarded(&text).is_err(), "{text}");
            }
        }
    }
    check(&[
        ("Here is the call:", "!!rr"),
        ("Done.\nnull", "!!!r"),
        ("Sure, not this:\nscene: koi", "!!rr"),
    ]);
}

#[test]
fn a_form_is_read_that_was_url_encoded() {
    for form in FORMS {
        is_koi(&url_encoded(form));
        is_koi(&url_encoded(&url_encoded(form)));
        is_koi(&json!({"args": url_encoded(form)}).to_string());
        is_koi(&format!("Here is the call:\n{}", url_encoded(form)));
    }
    check(&[
        ("draw%20the%20koi", "!!rr"),
        ("%28stroke%20%3Ascene%20%22koi%22%29", "!!rr"),
        ("tomorrow:\n%7B%22scene%22%3A%20%22koi%22%7D", "!!rr"),
        ("koi%2", "!!!r"),
        ("koi%FF", "!!rr"),
        ("100%", "!!!r"),
    ]);
}

#[test]
fn a_call_that_an_answer_offered_is_read_whole() {
    for key in ["draw_call", "corrected_call"] {
        is_koi(&json!({key: {"tool": "stroke", "arguments": {"scene": "koi"}}}).to_string());
        is_koi(&json!({key: {"scene": "koi"}}).to_string());
        is_koi(&json!({"arguments": {key: {"arguments": {"scene": "koi"}}}}).to_string());
        for refused in [
            json!({key: {"tool": "align", "arguments": {"scene": "koi"}}}),
            json!({"scene": "star", key: {"arguments": {"scene": "koi"}}}),
        ] {
            check(&[(&refused.to_string(), "!!rr")]);
        }
    }
}

#[test]
fn a_list_or_object_as_text_is_a_name_or_a_boolean_as_it_is_without_quotes() {
    for value in [
        json!(["koi"]),
        json!({"name": "koi"}),
        json!([{"name": "koi"}]),
    ] {
        is_koi(&json!({"scene": value}).to_string());
        is_koi(&json!({"scene": value.to_string()}).to_string());
    }
    for (value, want) in [
        ("[false]", false),
        ("0.0", false),
        ("1.0", true),
        ("[\"yes\"]", true),
    ] {
        let read = guarded(&json!({"debug": value}).to_string());
        assert_eq!(read.unwrap().given["debug"], want, "{value}");
    }
    check(&[
        (r#"{"scene": "[\"koi\", \"star\"]"}"#, "!rrr"),
        (r#"{"scene": "{\"type\": \"string\"}"}"#, "!!rr"),
        (r#"{"scene": "[scene]"}"#, "!!rr"),
        (r#"{"scene": "[\"carp\"]"}"#, "!rrr"),
        (r#"{"debug": "[true, false]"}"#, "!rrr"),
    ]);
}

/// Encodes all but letters and digits.
fn url_encoded(text: &str) -> String {
    let encoded = text.bytes().map(|byte| match byte.is_ascii_alphanumeric() {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    encoded.collect()
}

/// Returns a drawing tool on a node with two arms, and its `reset`.
fn tools_with_arms() -> (ArgumentShape, ArgumentShape) {
    let tool = |params: Vec<ParameterShape>, action: &str| {
        ArgumentShape::new(params)
            .with_known_names(["koi", "default", "left", "right", "two_pens"])
            .with_default_action(action)
            .with_tool_names(["stroke"])
    };
    let flag = |name| ParameterShape::new(name, ValueKind::Bool).default(false);
    let scene = ValueKind::name(["default", "koi"]);
    let scene = ParameterShape::new("scene", scene).default("default");
    let arm = ParameterShape::new("arm", ValueKind::name(["left", "right"]));
    let text = ParameterShape::new("text", ValueKind::Verbatim { bytes_max: 100 });
    let plan = ParameterShape::new("plan", ValueKind::Text);
    let params = vec![
        scene,
        arm.clone(),
        text,
        plan,
        flag("resume"),
        flag("debug"),
    ];
    let stroke = tool(params, "draws the default scene");
    let reset = tool(vec![arm, flag("debug")], "lifts the pen and goes to rest");
    (stroke, reset)
}

/// Asserts the code of each sentence's first complaint in the lenient profile; none if it runs.
#[track_caller]
fn check_sentences(shape: &ArgumentShape, code: Option<&str>, sentences: &[&str]) {
    let policy = ReaderPolicy::new(ToolEffect::Moves, ForgivenessProfile::Lenient);
    for text in sentences {
        let refused = read(shape, &policy, ReceivedArguments::Text((*text).into())).err();
        let first = refused.map(|refused| refused.complaints[0].code);
        assert_eq!(first, code, "{text}");
    }
}

/// A parameter's name may be an ordinary word; what a sentence asks for is not replaced by the default.
#[test]
fn an_ordinary_sentence_is_no_argument() {
    let (stroke, reset) = tools_with_arms();
    check_sentences(
        &stroke,
        None,
        &[
            "draw the scene now",
            "the plan is to draw",
            "debug please",
            "draw, and show me the plan when done",
            "please draw the whole scene for me",
            "I will draw the scene as requested",
            "Draw the default scene. Thanks",
            "the scene should be drawn on the sheet",
            "use the robot arm to draw",
            "the arm is ready",
            "the scene's lines",
        ],
    );
    check_sentences(
        &reset,
        None,
        &[
            "reset the arm please",
            "Lift the pen and bring the arm home now",
            "bring the arm home by default",
        ],
    );
    check_sentences(
        &stroke,
        Some("no_arguments"),
        &[
            "draw the text on the paper",
            "resume it please",
            "draw the scene at half size",
            "draw the scene 50 mm wide",
            "draw the scene slowly",
            "draw the koi please",
        ],
    );
    let policy = ReaderPolicy::new(ToolEffect::Moves, ForgivenessProfile::Lenient);
    let text = ReceivedArguments::Text("do not draw the koi".into());
    let refused = read(&stroke, &policy, text).unwrap_err();
    assert_eq!(refused.kind, ReaderRule::Withheld);
    check_sentences(
        &stroke,
        Some("garbled"),
        &[
            "draw the scene koi",
            "scene named koi",
            "debug on",
            "plan 3f9a",
            "the arm | left",
            "--scene foo --",
        ],
    );
}

#[test]
fn a_sentence_that_names_a_scene_or_an_arm_asks_for_no_default() {
    let (stroke, reset) = tools_with_arms();
    check_sentences(
        &stroke,
        Some("no_arguments"),
        &[
            "the scene called \"two pens\"",
            "draw the two pens",
            "scene named sunset",
            "draw the scene lettres",
            "draw the scene \"now\"",
            "draw the scene tomorrow",
            "the scene is sunset",
            "draw the sunset scene",
            "draw scene 2",
            "draw scene2",
            "plan deadbeef",
            "arm 1",
        ],
    );
    check_sentences(
        &reset,
        Some("no_arguments"),
        &[
            "reset the left arm",
            "reset arm 1",
            "reset arm_1",
            "reset the other arm",
        ],
    );
    for profile in ForgivenessProfile::ALL {
        let policy = ReaderPolicy::new(ToolEffect::Moves, profile);
        let text = ReceivedArguments::Text("reset arm 1".into());
        let guidance = read(&reset, &policy, text).unwrap_err().guidance;
        assert!(!guidance.contains("{}"), "{guidance}");
    }
}

#[test]
fn the_header_of_a_call_without_arguments_is_cut_off() {
    for text in [
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>stroke\n```json\n",
        "‹｜tool▁call▁begin｜>function‹｜tool▁sep｜>stroke\n```json\n",
        "```json\n",
        "[TOOL_CALLS]stroke[ARGS]",
        "<tool_call>stroke",
        "const args =",
        "--scene=",
    ] {
        let complaint = guarded(text).unwrap_err().complaints[0].code;
        assert_eq!(complaint, "cut_off", "{text}");
        check(&[(text, "!!rr")]);
    }
    check(&[
        ("[TOOL_CALLS]stroke[ARGS]{}", "...."),
        ("```json\n{}\n```", "...."),
        ("draw it<|im_end|>", "!!!r"),
    ]);
}

#[test]
fn a_mark_that_denies_is_no_form() {
    check(&[
        (r#"{"scene": "-koi"}"#, "!rrr"),
        (r#"{"scene": "- koi"}"#, "...."),
    ]);
    let read = guarded(r#"{"scene": "koi", "_meta": "leaf"}"#).unwrap();
    assert_eq!(Value::Object(read.given), json!({"scene": "koi"}));
}

#[test]
fn full_width_numbers_and_fractions_are_read() {
    for (written, want) in [("５０ｍｍ", 0.05), ("½ inch", 0.0127), ("1½ cm", 0.015)] {
        let read = guarded(&format!(r#"{{"lift": "{written}"}}"#)).unwrap();
        assert_eq!(read.understood["lift"], want, "{written}");
    }
    check(&[(r#"{"fps": "½"}"#, "!rrr")]);
    let refused = guarded(r#"{"lift": "٥٠ mm"}"#).unwrap_err().to_string();
    assert!(refused.contains("the digits 0 to 9"), "{refused}");
}
