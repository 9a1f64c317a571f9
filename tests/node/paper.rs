//! `draw --paper`: paper of a standard size in place of a scene's sheet, and how much of it the pen reaches.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use crate::support;
use serde_json::{Value, json};
use support::{Bench, json_of};

/// The answer of a command that draws words, and its exit code.
fn draw(bench: &Bench, options: &[&str]) -> (Option<i32>, Value) {
    let words = ["draw", "--json", "--text", "Hi", "--at", "20mm,20mm"];
    let state = bench.state();
    let output = bench.run(&[&["--state", &*state][..], &words, options].concat());
    let answer = json_of(&output);
    (output.status.code(), answer["drawing"].clone())
}

fn notes(drawing: &Value) -> String {
    let notes = drawing["notes"].as_array().unwrap().iter();
    notes.map(|note| format!("{note}\n")).collect()
}

#[test]
fn paper_takes_the_place_of_the_sheet_and_the_part_in_reach_is_said() {
    let bench = Bench::at_test_rate();
    for (paper, size_mm, whole) in [
        ("a6", [105.0, 148.0], true),
        ("a5", [148.0, 210.0], true),
        ("a4", [210.0, 297.0], false),
        ("a4-landscape", [297.0, 210.0], true),
    ] {
        let options = ["--scene", "canvas", "--paper", paper, "--dry-run"];
        let (code, shown) = draw(&bench, &options);
        assert_eq!(code, Some(0), "{shown:#}");
        assert_eq!(shown["sheet_mm"], json!(size_mm), "{shown:#}");
        let notes = notes(&shown);
        assert!(notes.contains(&format!("paper {paper} of ")), "{notes}");
        assert_eq!(notes.contains("% of it"), !whole, "{notes}");
    }
    let (_, shown) = draw(&bench, &["--scene", "canvas", "--dry-run"]);
    assert!(!notes(&shown).contains("paper"), "{shown:#}");
}

/// A size was proposed where the drawing had only to be moved, without the place that was asked for, or of a few millimetres.
#[test]
fn what_is_out_of_reach_is_moved_before_it_is_made_smaller_and_never_to_a_dot() {
    let bench = Bench::at_test_rate();
    let paper = ["--scene", "canvas", "--paper", "a4", "--dry-run"];
    let at = |at: &str, size: &str| {
        let state = bench.state();
        let words = ["draw", "--text", "Hi", "--at", at, "--size", size];
        let draw = [&["--state", &*state][..], &words, &paper].concat();
        let json = bench.run(&[&draw[..], &["--json"]].concat());
        let (_, printed) = bench.said(&draw);
        let drawing = json_of(&json)["drawing"].clone();
        (json.status.code(), drawing, printed)
    };
    // The upper end of the paper is out of reach, and the rest is not.
    let (code, refused, printed) = at("85mm,255mm", "40mm");
    assert_eq!(code, Some(1), "{refused:#}");
    assert_eq!(refused["fits_mm"], Value::Null, "{refused:#}");
    // It is not said of strokes that are refused that they are drawn already.
    assert_eq!(refused["strokes_changed"], Value::Null, "{refused:#}");
    let place = refused["moves_to_mm"].as_array().unwrap();
    let place = format!("{}mm,{}mm", place[0], place[1]).replace(".0mm", "mm");
    let next = printed.lines().last().unwrap();
    assert!(next.contains(&format!("--at {place}")), "{next}: {place}");
    assert!(next.contains("--size 40mm"), "{next}");
    let (code, accepted, _) = at(&place, "40mm");
    assert_eq!(code, Some(0), "{accepted:#}");
}

#[test]
fn a_drawing_on_other_paper_is_drawn_and_kept_with_it() {
    let bench = Bench::at_test_rate();
    let state = bench.state();
    let (code, drawn) = draw(&bench, &["--paper", "a5"]);
    assert_eq!(code, Some(0), "{drawn:#}");
    let design = std::fs::read_to_string(bench.path("state/jobs/job-1/design.toml")).unwrap();
    assert!(design.contains("paper = \"a5\""), "{design}");
    // The job's scene can be built anew from what is kept.
    let (code, said) = bench.said(&["--state", &state, "jobs", "job-1"]);
    assert_eq!(code, 0, "{said}");
}

#[test]
fn paper_that_cannot_lie_there_is_refused() {
    let bench = Bench::at_test_rate();
    for (options, why) in [
        (&["--paper", "a3"][..], "a4-landscape"),
        (&["--paper", "a5", "--scene", "bottle"], "is not flat"),
        (&["--paper", "a5", "--resume"], "--resume"),
    ] {
        let words: &[&str] = match options.contains(&"--resume") {
            true => &["draw"],
            false => &["draw", "--text", "Hi", "--dry-run"],
        };
        let (code, said) = bench.said(&[words, options].concat());
        assert_ne!(code, 0, "{options:?}: {said}");
        assert!(said.contains(why), "{options:?}: {said}");
    }
}
