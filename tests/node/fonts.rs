//! Fonts of texts: listed, on the command line, in scenes and in calls on a canvas.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use crate::support;
use serde_json::{Value, json};
use steadyhand::catalogue::{ParameterKind, TOOLS};
use steadyhand::design::StrokeFont;
use support::{Bench, Caller, json_of, printed_by};

fn names() -> Vec<String> {
    StrokeFont::all()
        .map(|font| font.name().to_owned())
        .collect()
}

fn dry_run(bench: &Bench, args: &[&str]) -> Value {
    let output = bench.run(&[&["draw", "--json", "--dry-run"], args].concat());
    assert_eq!(output.status.code(), Some(0), "{}", printed_by(&output));
    json_of(&output)
}

fn width_mm(shown: &Value) -> f64 {
    let at = |corner: usize| shown["drawing"]["box_mm"][corner][0].as_f64().unwrap();
    at(1) - at(0)
}

#[test]
fn fonts_are_listed_and_their_sheet_of_samples_can_be_drawn() {
    let bench = Bench::at_test_rate();
    let sheet = bench.path("fonts.svg").display().to_string();
    let output = bench.run(&["fonts", "--json", "--out", &sheet]);
    assert_eq!(output.status.code(), Some(0), "{}", printed_by(&output));
    let listed = json_of(&output);
    let listed: Vec<&str> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|font| font["name"].as_str().unwrap())
        .collect();
    assert_eq!(listed, names());
    dry_run(&bench, &[&sheet, "--fit"]);
    let table = printed_by(&bench.run(&["fonts"]));
    assert!(names().iter().all(|name| table.contains(name)), "{table}");
}

#[test]
fn words_are_drawn_in_a_font_and_what_it_lacks_is_noted() {
    let bench = Bench::at_test_rate();
    let plain = dry_run(&bench, &["--text", "Ωmega"]);
    let script = dry_run(&bench, &["--text", "Ωmega", "--font", "Script"]);
    assert!((width_mm(&plain) - width_mm(&script)).abs() > 1.0);
    let notes = script.to_string();
    assert!(
        notes.contains("script lacks Ω") && notes.contains("sans"),
        "{notes}"
    );
    let broken = [
        "--text",
        "one two three",
        "--width",
        "45mm",
        "--align",
        "right",
        "--line-spacing",
        "0.8",
    ];
    assert!(width_mm(&dry_run(&bench, &broken)) <= 45.0);
}

#[test]
fn unknown_fonts_and_looks_of_no_text_are_refused() {
    let bench = Bench::at_test_rate();
    let square = bench.path("square.json");
    std::fs::write(&square, r#"[[[0, 0], [9, 0], [9, 9]]]"#).unwrap();
    let square = square.display().to_string();
    for (args, word) in [
        (&["--text", "hi", "--font", "scrpt"][..], "script"),
        (&["--text", "漢"], "character 1"),
        (&["--text", "hi", "--line-spacing", "9"], "line_spacing"),
        (&["--text", "hi", "--line-spacing", "nan"], "finite"),
        (&["--text", "hi", "--width", "0mm"], "mm"),
        (&["--text", "hi", "--align", "justify"], "center"),
        (&[&square, "--font", "script"], "font"),
        (&[&square, "--align", "left"], "--text"),
        (&["--text", "hi", "--text-as", "outlines"], "Next"),
    ] {
        let output = bench.run(&[&["draw", "--dry-run"], args].concat());
        let printed = printed_by(&output);
        assert_ne!(output.status.code(), Some(0), "{args:?}: {printed}");
        assert!(printed.contains(word), "{args:?}: {printed}");
    }
}

#[test]
fn a_call_on_a_canvas_names_the_font_of_its_text_or_svg() {
    let tool = TOOLS.iter().find(|tool| tool.name == "stroke").unwrap();
    let font = tool
        .canvas_parameters
        .iter()
        .find(|one| one.name == "font")
        .unwrap();
    assert_eq!(font.kind, ParameterKind::Choice(names()));
    let bench = Bench::at_test_rate();
    let served = bench.serve(&[]);
    let shown = |call: Value| served.told("stroke", &call);
    let (_, plain) = shown(json!({"text": "hi", "dry_run": true}));
    let (text, script) = shown(json!({"text": "hi", "font": "script", "dry_run": true}));
    assert_eq!(script["success"], true, "{text}");
    assert_ne!(plain["plan_hash"], script["plan_hash"]);
    let svg = r#"<svg xmlns="http://www.w3.org/2000/svg" width="40mm" height="20mm"><text x="5" y="50">hi</text></svg>"#;
    let (text, of_svg) = shown(json!({"svg": svg, "font": "gothic", "dry_run": true}));
    assert_eq!(of_svg["success"], true, "{text}");
    for call in [
        json!({"text": "hi", "font": "Comic"}),
        json!({"image": "iVBORw0KGgo=", "font": "script"}),
        json!({"font": "script"}),
        json!({"resume": true, "font": "script"}),
    ] {
        let (text, refused) = shown(call);
        assert_eq!(refused["success"], false, "{text}");
        assert!(text.contains("nothing moved"), "{text}");
    }
}

#[test]
fn a_scenes_own_text_has_the_look_that_its_file_says() {
    let bench = Bench::at_test_rate();
    let scene = |name: &str, design: &str| {
        let shipped = include_str!("../../scenes/default.toml");
        let own = shipped
            .replace("file = \"practice.svg\"\nsize_mm = 60.0", design)
            .replace("name = \"default\"", &format!("name = \"{name}\""));
        bench.scene(name, &own);
        bench.run(&["plan", name, "--json"])
    };
    let look = "text = \"one two\"\nfont = \"tech\"\nalign = \"center\"\nwrap_mm = 30.0\nline_spacing = 1.5";
    let output = scene("look", look);
    assert_eq!(output.status.code(), Some(0), "{}", printed_by(&output));
    for (name, design, word) in [
        ("unknown", "text = \"a\"\nfont = \"teck\"", "tech"),
        ("far", "text = \"a\"\nline_spacing = 50.0", "line_spacing"),
        (
            "none",
            "polylines = [[[0.0, 0.0], [9.0, 9.0]]]\nfont = \"tech\"",
            "font",
        ),
        (
            "lines",
            "file = \"practice.svg\"\nalign = \"left\"",
            "align",
        ),
    ] {
        let output = scene(name, design);
        let printed = printed_by(&output);
        assert_ne!(output.status.code(), Some(0), "{printed}");
        assert!(printed.contains(word), "{name}: {printed}");
    }
}
