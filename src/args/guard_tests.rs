//! Requested guards: none is lost in any form, and no text without a call draws the default.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use super::{
    ForgivenessProfile, ReaderPolicy, ReceivedArguments, ToolEffect, read,
    request_tests::{all_draw, codes, lenient_draws, moves, never_draws, none_draws, stroke},
};
use serde_json::json;

/// Asserts that every text draws the letters in either profile, in whatever form.
#[track_caller]
fn always_draws(texts: &[impl AsRef<str>]) {
    for text in texts.iter().map(AsRef::as_ref) {
        for profile in ForgivenessProfile::ALL {
            let reading = moves(profile, text)
                .unwrap_or_else(|reason| panic!("{profile:?} {text}: {reason}"));
            assert_eq!(reading.understood["scene"], "letters", "{profile:?} {text}");
            assert_eq!(reading.understood["dry_run"], false, "{profile:?} {text}");
        }
    }
}

/// Returns whether the arguments would draw.
fn reads_as_motion(profile: ForgivenessProfile, sent: ReceivedArguments) -> bool {
    let policy = ReaderPolicy::new(ToolEffect::Moves, profile);
    read(&stroke(), &policy, sent).is_ok_and(|reading| !reading.is_cautious)
}

#[test]
fn a_dry_run_beside_the_arguments_is_found() {
    never_draws(&[
        r#"{"simulate":"yes","arguments":{"scene":"letters"}}"#,
        r#"{"confirm":false,"arguments":{"scene":"letters"}}"#,
        r#"{"_meta":{"dry_run":true},"arguments":{"scene":"letters"}}"#,
        r#"{"dry_run":true,"arguments":"scene: letters"}"#,
        r#"[{"scene":"letters"},{"dry_run":true}]"#,
    ]);
}

/// Every way to leave out words at both ends was tried, which took minutes.
#[test]
fn a_long_text_of_fillers_is_read_to_its_end_at_once() {
    let under_context =
        |text: &str| json!({"scene": "letters", "context": {"x": text}}).to_string();
    let fillers = "just the ".repeat(700);
    always_draws(&[under_context(&fillers)]);
    never_draws(&[
        under_context(&format!("{fillers} dry run")),
        under_context(&format!("do not draw {fillers}")),
        under_context(&format!("{fillers} keep the pen up, please, {fillers}")),
    ]);
}

/// A boolean parameter is read in these forms too.
#[test]
fn a_dry_run_is_heard_in_every_form_of_true() {
    for value in [
        r#""y""#,
        r#"["true"]"#,
        "[[1]]",
        "1.0",
        r#""1.0""#,
        r#"{"value":true}"#,
        r#"{"enabled":"yes"}"#,
        r#""enabled""#,
        r#""active""#,
        r#""'true'""#,
    ] {
        let call = |key: &str| format!(r#"{{"scene":"letters","{key}":{value}}}"#);
        never_draws(&["sim", "estimate", "draft", "тест", "practice"].map(call));
    }
    never_draws(&[r#"{"scene":"letters","mode":["test"]}"#]);
    // Under other keys these say less.
    all_draw(&[
        r#"{"scene":"letters","status":"active"}"#,
        r#"{"scene":"letters","status":"enabled"}"#,
        r#"{"scene":"letters","info":{"value":true}}"#,
    ]);
    for value in [
        r#""n""#,
        r#"["no"]"#,
        r#""koi fish""#,
        "2",
        r#"{"value":false}"#,
    ] {
        let text = format!(r#"{{"scene":"letters","draft":{value}}}"#);
        let withheld = codes(ForgivenessProfile::Guarded, &text).contains(&"withheld");
        assert!(!withheld, "{text}");
    }
}

/// The lenient profile left these out.
#[test]
fn a_key_that_says_that_nothing_moves_is_heard_in_either_profile() {
    let call = |pair: &str| format!(r#"{{"scene":"letters",{pair}}}"#);
    never_draws(
        &[
            r#""view_only":true"#,
            r#""displayOnly":"yes""#,
            r#""hover-only":1"#,
            r#""skip":true"#,
            r#""pen":"up""#,
            r#""pen_down":false"#,
            r#""do_not":"draw""#,
            r#""start":false"#,
            r#""begin":"no""#,
            r#""do_it":false"#,
            r#""is_enabled":false"#,
            r#""enable":"off""#,
            r#""active":"no""#,
            r#""armed":[false]"#,
            r#""permission":"denied""#,
            r#""execute":"later""#,
            r#""mode":"view only""#,
        ]
        .map(call),
    );
    for text in [
        "не рисуй",
        "ne dessine pas",
        "no dibujes",
        "描かないで",
        "不要画",
        "đừng vẽ",
        "çizme",
        "keep the arm still",
    ] {
        never_draws(
            &["comment", "message", "reason"].map(|key| call(&format!(r#""{key}":"{text}""#))),
        );
    }
    never_draws(&[call(r#""đừng_vẽ":true"#), call(r#""çizme":true"#)]);
    lenient_draws(
        &[
            r#""start":0"#,
            r#""start":"""#,
            r#""enable_logging":false"#,
            r#""skip":2"#,
            r#""pen":"blue""#,
            r#""comment":"for display only""#,
            r#""comment":"draft of a cat""#,
        ]
        .map(call),
    );
    all_draw(
        &[
            r#""start":"""#,
            r#""enabled":true"#,
            r#""comment":"draft of a cat""#,
        ]
        .map(call),
    );
}

/// `描くな` is in "if you draw", `别画` in "draw each", and `çizme` is a boot.
#[test]
fn words_of_no_motion_inside_other_words_are_not_heard() {
    let call = |text: &str| format!(r#"{{"scene":"letters","comment":"{text}"}}"#);
    let texts = [
        "きれいに描くなら今日",
        "特别画给你",
        "分别画字母",
        "分別畫字母",
        "kirmizi çizme",
    ];
    lenient_draws(&texts.map(call));
    let texts = ["描くな。", "别画！", "別畫", "请别画字母", "Çizme!"];
    never_draws(&texts.map(call));
}

/// Arguments that come as an object or a list are read as the text of them is.
#[test]
fn a_call_that_is_declined_inside_a_value_draws_no_default() {
    for text in [
        "I refuse",
        "Sorry, I can't help with that.",
        "no",
        "stop",
        "pen up",
        "dry rum",
        "preveiw only",
        "the user said no",
        "%5Bstroke%5D%0Adry_run%20%3D%20true",
    ] {
        for value in [
            json!(text),
            json!({"args": text}),
            json!({"input": [text]}),
            json!([text]),
            json!([text, "please"]),
        ] {
            for profile in ForgivenessProfile::ALL {
                for sent in [
                    ReceivedArguments::Value(value.clone()),
                    ReceivedArguments::Text(value.to_string()),
                ] {
                    assert!(
                        !reads_as_motion(profile, sent.clone()),
                        "{profile:?} {sent:?}"
                    );
                }
            }
        }
    }
    for value in [
        json!({"args": "please"}),
        json!(["go ahead"]),
        json!({"input": "no arguments"}),
    ] {
        let sent = ReceivedArguments::Value(value.clone());
        assert!(
            reads_as_motion(ForgivenessProfile::Lenient, sent),
            "{value}"
        );
    }
}

/// It counts in any form, as `"dry_run": ""` does.
#[test]
fn an_empty_dry_run_was_sent_in_any_form() {
    never_draws(&[
        "--scene letters --dry-run=",
        "stroke --scene=letters --preview=",
        "<scene>letters</scene><dry_run></dry_run>",
        "<stroke><scene>letters</scene><preview>  </preview></stroke>",
        "<stroke scene=\"letters\" simulate=\"\"/>",
        "<stroke dry_run=\"\"/>",
        "<parameter name=\"dry_run\" value=\"\"/>",
        "<tool_call><function=stroke><parameter=scene>letters</parameter><parameter=dry_run></parameter></function></tool_call>",
        "<invoke name=\"stroke\"><parameter name=\"scene\">letters</parameter><parameter name=\"dry_run\"></parameter></invoke>",
        "<tool_call>stroke<arg_key>scene</arg_key><arg_value>letters</arg_value><arg_key>dry_run</arg_key><arg_value></arg_value></tool_call>",
    ]);
}

#[test]
fn a_guard_that_was_lost_on_the_way_is_refused() {
    never_draws(&[
        r#"{"scene":"letters","dry_run":"[object Object]"}"#,
        r#"{"dry_run":"[object Object]"}"#,
        r#"{"preview":["[object Object]"]}"#,
        r#"{"scene":"letters","meta":"[object Object]"}"#,
        r#"{"scene":"letters","resume":"[object Object]"}"#,
    ]);
}

/// "No dry run: no" may mean either, so it moves nothing, and nor does the corrected call.
#[test]
fn a_dry_run_that_is_denied_is_not_a_request_to_move() {
    for key in [
        "no_dry_run",
        "noDryRun",
        "nodryrun",
        "not_dry_run",
        "skip_dry_run",
        "skip_preview",
        "no_preview",
        "disable_preview",
        "disablePreview",
        "bypass_dry_run",
        "without_dry_run",
        "no_simulation",
        "skip_simulation",
        "not_simulated",
        "dry_run_off",
        "dry_run_disabled",
        "dry_run_done",
        "after_dry_run",
        "execute_after_dry_run",
        "move_after_dry_run",
        "preview_approved",
        "keine_vorschau",
        "sin_simulacro",
        "sans_simulation",
    ] {
        for value in [
            json!(false),
            json!("no"),
            json!(0),
            json!("false"),
            json!(true),
        ] {
            let text = json!({"scene": "letters", key: value}).to_string();
            for profile in ForgivenessProfile::ALL {
                let refusal = moves(profile, &text).expect_err(&text);
                let corrected = refusal.corrected.as_ref().unwrap();
                assert_eq!(corrected["dry_run"], true, "{profile:?} {text}");
            }
        }
    }
    let idle = [
        "dry_run",
        "dryRun",
        "is_dry_run",
        "dry_run_only",
        "run_simulation",
        "simulate",
        "preview_mode",
        "show_preview",
        "noop",
        "no_op",
    ];
    lenient_draws(&idle.map(|key| json!({"scene": "letters", key: false}).to_string()));
    all_draw(&[r#"{"scene":"letters","skip_preview":null}"#]);
}

#[test]
fn a_refusal_before_a_call_in_tags_is_found() {
    let call =
        "<tool_call>stroke<arg_key>scene</arg_key><arg_value>letters</arg_value></tool_call>";
    for words in [
        "I won't:",
        "I can't do that:",
        "I cannot do it, the input is unsafe.",
        "Don't use this data:",
    ] {
        never_draws(&[&*format!("{words} {call}"), words]);
    }
}

#[test]
fn a_call_of_nothing_draws_nothing() {
    never_draws(&[
        r#"{"tool_calls":[]}"#,
        r#"{"content":null,"tool_calls":[]}"#,
        r#"{"name":"none"}"#,
        r#"{"tool":"none"}"#,
        r#"{"function_call":"none"}"#,
        r#"{"name":"None","arguments":{}}"#,
    ]);
    all_draw(&[
        r#"{"scene":"letters","function":[]}"#,
        r#"{"scene":"letters","tool":null}"#,
        "{}",
    ]);
}

#[test]
fn the_name_of_another_tool_is_another_call() {
    never_draws(
        &[
            r#"{"name":"sense"}"#,
            "sense()",
            r#"{"name":"reset"}"#,
            r#"{"name":"robot_align","arguments":{"scene":"letters"}}"#,
            "functions.sense()",
            "Action: sense⏎Action Input: {}",
            r#"<tool_call>{"name":"reset","arguments":{}}</tool_call>"#,
            "align(scene=\"letters\")",
            "call align⏎scene=letters",
            "Sure! I will call the align tool.⏎scene: letters",
            r#"[{"name":"scene","value":"letters"}]"#,
        ]
        .map(|text| text.replace('⏎', "\n")),
    );
    lenient_draws(&[r#"{"scene":"letters","name":"for Anna"}"#]);
}

/// Arguments that are not read are not replaced by the default either.
#[test]
fn arguments_that_were_passed_over_draw_no_default() {
    for text in [
        "Final Answer: scene=\"letters\"",
        "Here is the JSON: scene: letters",
        "scene: letters}",
        "<stroke scene=\"letters\" meta=\"leaf\"/>.",
        r#"["stroke",{"scene":"letters"}]"#,
        r#"("stroke",{"scene":"letters"})"#,
        r#"{"request":{"scene":"letters"}}"#,
        r#"{"body":{"scene":"letters"}}"#,
        r#"{"options":{"scene":"letters"}}"#,
        r#"{"parts":[{"functionCall":{"name":"stroke","args":{"scene":"letters"}}}]}"#,
    ] {
        for profile in ForgivenessProfile::ALL {
            let reading = moves(profile, text);
            let is_default = reading.is_ok_and(|reading| reading.understood["scene"] == "default");
            assert!(
                !is_default,
                "{profile:?} {text}: {:?}",
                codes(profile, text)
            );
        }
    }
    none_draws(&["You could use stroke(scene=\"letters\")"]);
}

#[test]
fn a_label_is_not_a_key() {
    always_draws(&[
        r#"Assistant: {"scene":"letters","dry_run":false}"#,
        r#"JSON: {"scene":"letters","dry_run":false}"#,
        r#"Output: {"scene":"letters","resume":false}"#,
    ]);
}

/// A limit of the motion in any words of a value, a way of standing still, a plan by another name.
#[test]
fn a_guard_in_the_value_of_an_unknown_key_is_not_left_out() {
    none_draws(&[
        r#"{"scene":"letters","instructions":"max speed 10 mm/s"}"#,
        r#"{"scene":"letters","constraints":"speed <= 10 mm/s"}"#,
        r#"{"scene":"letters","notes":"slowly, at most 5 mm/s"}"#,
        r#"{"scene":"letters","notes":"use 50% speed"}"#,
        r#"{"scene":"letters","notes":"scale 0.5"}"#,
        r#"{"scene":"letters","notes":"half size, please"}"#,
        r#"{"scene":"letters","comment":"hover 10 mm above the paper"}"#,
        r#"{"scene":"letters","comment":"first check with the operator"}"#,
        r#"{"scene":"letters","operation":"measure"}"#,
    ]);
    all_draw(&[
        r#"{"scene":"letters","comment":"step 2 in the plan"}"#,
        r#"{"scene":"letters","comment":"draw it at full size"}"#,
        r#"{"scene":"letters","title":"letters for room 12"}"#,
        r#"{"scene":"letters","comment":"a full run in the same mode as first, rechecked"}"#,
        r#"{"scene":"letters","comment":"lift the pen up at the end"}"#,
        r#"{"scene":"letters","summary":"the letters, with the pen up between strokes"}"#,
    ]);
}

#[test]
fn a_pen_in_the_air_and_an_arm_that_stands_draw_in_no_profile() {
    never_draws(&[
        r#"{"scene":"letters","notes":"keep the pen up"}"#,
        r#"{"scene":"letters","command":"pen up"}"#,
        r#"{"scene":"letters","pen_up":true}"#,
        r#"{"scene":"letters","stay_still":true}"#,
        r#"{"scene":"letters","standstill":true}"#,
        r#"{"scene":"letters","safe_mode":true}"#,
        r#"{"scene":"letters","immobile":true}"#,
        r#"{"scene":"letters","idle":true}"#,
        r#"{"scene":"letters","still":true}"#,
        r#"{"scene":"letters","precheck":true}"#,
        r#"{"scene":"letters","preflight":true}"#,
        r#"{"scene":"letters","visualize":true}"#,
        r#"{"scene":"letters","null_run":true}"#,
        r#"{"scene":"letters","motion":"paused"}"#,
        r#"{"scene":"letters","execute":"test"}"#,
        r#"{"scene":"letters","execute":"virtual"}"#,
        r#"{"scene":"letters","draw":"virtual"}"#,
        r#"{"scene":"letters","run":"planning"}"#,
        r#"{"scene":"letters","command":"get_plan"}"#,
        r#"{"scene":"letters","comment":"do nothing"}"#,
    ]);
}

#[test]
fn the_same_call_several_times_is_one() {
    always_draws(&[
        r#"{"scene":"letters"}{"scene":"letters"}"#,
        "{\"scene\":\"letters\"}\n\n{\"scene\":\"letters\"}\n{\"scene\":\"letters\"}",
        r#"[{"scene":"letters"},{"scene":"letters"}]"#,
        r#"{"tool_calls":[{"name":"stroke","arguments":{"scene":"letters"}},{"name":"stroke","arguments":{"scene":"letters"}}]}"#,
    ]);
    never_draws(&[
        r#"{"scene":"letters"}{"scene":"letters","dry_run":true}"#,
        r#"{"scene":"letters","dry_run":true}{"scene":"letters","dry_run":true}"#,
        r#"[{"scene":"letters"},{"scene":"letters"},{"scene":"short"}]"#,
        r#"{"scene":"letters"}{"scene":"letters"} as a dry run"#,
        r#"{"scene":"letters"}{"scene":"letters""#,
    ]);
}

#[test]
fn a_consent_that_is_not_given_yet_draws_in_no_profile() {
    never_draws(&[
        r#"{"scene":"letters","requires_confirmation":true}"#,
        r#"{"scene":"letters","require_approval":true}"#,
        r#"{"scene":"letters","wait_for_approval":true}"#,
        r#"{"scene":"letters","no_approval_required":false}"#,
        r#"{"scene":"letters","comment":"the pen must stay raised"}"#,
        r#"{"scene":"letters","dry_run":"y"}"#,
        r#"{"scene":"letters","ask_first":true}"#,
        r#"{"scene":"letters","authorized":false}"#,
        r#"{"scene":"letters","send_to_robot":false}"#,
        r#"{"scene":"letters","motors":false}"#,
        r#"{"scene":"letters","motors_off":true}"#,
        r#"{"scene":"letters","torque_off":true}"#,
        r#"{"scene":"letters","execution":"off"}"#,
        r#"{"scene":"letters","compute_only":true}"#,
        r#"{"scene":"letters","render_only":true}"#,
        r#"{"scene":"letters","visualize_only":true}"#,
        r#"{"scene":"letters","queue_only":true}"#,
        r#"{"scene":"letters","picture_only":true}"#,
    ]);
    all_draw(&[
        r#"{"scene":"letters","requires_confirmation":false}"#,
        r#"{"scene":"letters","dry_run":"n"}"#,
    ]);
    lenient_draws(&[
        r#"{"scene":"letters","wait_for_completion":true}"#,
        r#"{"scene":"letters","motors":true}"#,
        r#"{"scene":"letters","authorized":true}"#,
        r#"{"scene":"letters","safe_mode":false}"#,
        r#"{"scene":"letters","visualize":false}"#,
    ]);
}

#[test]
fn a_call_among_known_packaging_is_read() {
    always_draws(
        &[
            "Sure! stroke(scene=\"letters\")",
            "**stroke(scene=\"letters\")**",
            "~~~⏎stroke(scene=\"letters\")⏎~~~",
            "<|im_start|>assistant⏎stroke(scene=\"letters\")<|im_end|>",
            "await stroke({\"scene\":\"letters\"})",
            "return {\"scene\":\"letters\"};",
        ]
        .map(|text| text.replace('⏎', "\n")),
    );
    all_draw(&[
        "<stroke/>",
        "<tool_call><function=stroke></function></tool_call>",
        "<function_calls><invoke name=\"stroke\"></invoke></function_calls>",
    ]);
    never_draws(&[
        "<dry_run/>",
        "<reset/>",
        "<scene/>",
        "Don't do this. stroke(scene=\"letters\")",
        "Only a dry run! stroke(scene=\"letters\")",
        "!stroke(scene=\"letters\")",
    ]);
    none_draws(&[
        "<foo/>",
        "Later. stroke(scene=\"letters\")",
        "// stroke(scene=\"letters\")",
    ]);
}
