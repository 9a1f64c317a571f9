//! Files as a newcomer has them: each ends in a drawing by the command that the answer offers, with at most two commands.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use std::fmt::Write as _;

use serde_json::Value;

use crate::support::Bench;

/// A page of Inkscape, larger than the sheet, with a layer that is hidden.
const INKSCAPE: &str = r##"<svg width="210mm" height="297mm" viewBox="0 0 210 297" xmlns="http://www.w3.org/2000/svg" xmlns:inkscape="http://www.inkscape.org/namespaces/inkscape" inkscape:version="1.3.2 (091e20e, 2023-11-25)">
<g inkscape:groupmode="layer" inkscape:label="Frame"><rect x="10" y="10" width="190" height="277" style="fill:none;stroke:#000000"/></g>
<g inkscape:groupmode="layer" inkscape:label="Sun"><circle cx="105" cy="120" r="40" style="fill:none;stroke:#ff0000"/></g>
<g inkscape:groupmode="layer" inkscape:label="Guides" style="display:none"><path d="M0 148h210" stroke="#00f"/></g></svg>"##;

/// A frame of Figma with its clip and its white ground.
const FIGMA: &str = r##"<svg width="390" height="844" viewBox="0 0 390 844" fill="none" xmlns="http://www.w3.org/2000/svg"><g clip-path="url(#clip0)">
<rect width="390" height="844" fill="white"/><rect x="24" y="80" width="342" height="200" rx="16" stroke="#1E1E1E" stroke-width="2"/>
<circle cx="380" cy="700" r="90" stroke="#0D99FF"/></g><defs><clipPath id="clip0"><rect width="390" height="844" fill="white"/></clipPath></defs></svg>"##;

const LOGO: &str = r#"<svg xmlns="http://www.w3.org/2000/svg" width="24" height="24" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2"><path d="M12 2l3 7h7l-5.5 4.5L18 21l-6-4-6 4 1.5-7.5L2 9h7z"/></svg>"#;

const MILLIMETRES: &str = "G21\nG90\nG0 Z5\nG0 X0 Y0\nG1 Z0 F300\nG1 X40 F1200\nG1 Y30\nG1 X0\nG1 Y0\nG0 Z5\nG0 X0 Y40\nG1 Z0\nG2 X40 Y40 I20 J0\nG0 Z5\nM30\n";

/// A traced picture: many short curves, in pixels.
fn traced() -> String {
    let mut svg = r#"<svg xmlns="http://www.w3.org/2000/svg" width="2000px" height="1500px" viewBox="0 0 2000 1500" fill="none" stroke="black">"#.to_owned();
    for path in 0..300 {
        let (x, y) = (path * 37 % 1990, path * 91 % 1490);
        let _ = write!(svg, r#"<path d="M{x} {y}c2 5 4 7 9 9"/>"#);
    }
    svg + "</svg>"
}

/// Runs a command, and the command that its answer offers; returns the result and how many ran.
fn drawn(bench: &Bench, command: &[&str]) -> (Value, usize) {
    let run = |command: &[&str]| -> Value {
        let output = bench.run(&[command, &["--json"]].concat());
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let result = run(command);
    if result["success"] == true {
        return (result, 1);
    }
    let message = result["message"].as_str().unwrap();
    let offered = message.split("Next: `steadyhand ").nth(1);
    let offered = offered.unwrap_or_else(|| panic!("nothing is offered: {message}"));
    let words = offered.split('`').next().unwrap().split(' ');
    // The bench says where its scenes are.
    let words = words.skip_while(|word| *word != "draw");
    let words: Vec<&str> = words.filter(|word| *word != "--json").collect();
    (run(&words), 2)
}

#[test]
fn files_of_a_newcomer_end_in_a_drawing_by_the_offered_command() {
    let bench = Bench::at_test_rate();
    for (name, content, commands, note) in [
        ("inkscape-a4.svg", INKSCAPE, 2, "hidden"),
        ("figma-frame.svg", FIGMA, 1, "white area"),
        ("logo.svg", LOGO, 1, "pixels"),
        ("traced.svg", &traced(), 1, "pixels"),
        ("millimetres.gcode", MILLIMETRES, 1, ""),
    ] {
        let file = bench.path(name);
        std::fs::write(&file, content).unwrap();
        let (result, ran) = drawn(&bench, &["draw", file.to_str().unwrap()]);
        assert_eq!(
            (&result["success"], ran),
            (&true.into(), commands),
            "{name}: {result:#}"
        );
        let notes = result["drawing"]["notes"].to_string();
        assert!(notes.contains(note), "{name}: {notes}");
    }
    let text = "A text that is longer than a line of the sheet";
    let (result, ran) = drawn(&bench, &["draw", "--text", text]);
    assert_eq!((&result["success"], ran), (&true.into(), 1), "{result:#}");
}
