//! Tests of reading G-code, and of refusals.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::float_cmp,
    reason = "a failing test may panic"
)]

use proptest::prelude::*;

use super::super::{Design, DesignCaps, DesignError, ReadOptions, load};

fn read(text: &str) -> Result<Design, DesignError> {
    load("drawing.gcode", text.as_bytes(), &DesignCaps::default())
}

fn points(design: &Design) -> Vec<Vec<[f64; 2]>> {
    let strokes = design.strokes.iter();
    strokes.map(|stroke| stroke.points_mm.clone()).collect()
}

/// Two strokes that every dialect below draws.
fn two_strokes() -> Vec<Vec<[f64; 2]>> {
    vec![
        vec![[0.0, 0.0], [10.0, 0.0], [10.0, 5.0]],
        vec![[0.0, 5.0], [5.0, 5.0]],
    ]
}

#[test]
fn every_dialect_draws_the_same_strokes() {
    for (dialect, text) in [
        (
            "motion",
            "G21 G90\nG0 X1 Y1 F3000\nG1 X11 Y1 ; right\nG1 Y6\nG0 X1 Y6\nG1 X6\nM2\nG1 X99",
        ),
        (
            "height",
            "(start)\nG90\nG0 Z5\nG0 X1 Y1\nG1 Z0 F300\nG1 X11\nY6\nG0 Z5\nX1\nG1 Z0\nX6\nG0 Z5 X0 Y0",
        ),
        (
            "height below",
            "G0 Z0\nX1 Y1\nG1 Z-1\nX11\nY6\nG0 Z0\nX1\nG1 Z-1\nX6\nG0 Z0",
        ),
        (
            "tool",
            "M5\nG0 X1 Y1\nM3 S90\nG4 P0.2\nG1 X11\nY6\nM5\nG0 X1\nM3\nG1X6Y6\nM5\nM30",
        ),
        (
            "laser",
            "M4 S0\nG0 X1 Y1\nG1 X11 S500\nY6\nG0 X1 S0\nG1 X6 S500\nM5",
        ),
        ("relative", "G91\nG0 X1 Y1\nG1 X10\nY5\nG0 X-10\nG1 X5"),
        (
            "inches",
            "G20\nG0 X0.039370078740157 Y0.039370078740157\nG91\nG1 X0.393700787401575\n\
             G21\nY5\nG0 X-10\nG1 X5",
        ),
        (
            "another origin",
            "G92 X100 Y100\nN10 g1 x110 y100*71\nN20 Y105\nG0 X100\nG1 X105",
        ),
    ] {
        let design = read(text).unwrap_or_else(|error| panic!("{dialect}: {error}"));
        let found = points(&design);
        assert_eq!(found.len(), 2, "{dialect}: {found:?}");
        for (found, expected) in found.iter().flatten().zip(two_strokes().iter().flatten()) {
            let error_mm = (found[0] - expected[0]).hypot(found[1] - expected[1]);
            assert!(error_mm < 1e-9, "{dialect}: {found:?} {expected:?}");
        }
    }
}

#[test]
fn what_stands_next_to_a_dwell_is_done() {
    let expected = [vec![[0.0, 0.0], [20.0, 0.0], [20.0, 5.0]]];
    for text in [
        "G0 X0 Y0\nG4 P1 G1 X20 Y0\nY5",
        "G0 X0 Y0\nG1 X20 Y0 G4 P1\nY5",
        "G0 X0 Y0\nG4 S1 G1 X20 Y0\nG4 P1 Y5",
        "G0 X0 Y0\nG4 P1 G1\nX20 Y0\nG4 X3\nG4\nY5",
        "G0 X9 Y9\nG4 P1 G28\nG1 X20 Y0\nY5",
        "G1 G53 Z0\nG0 X0 Y0\nG53 G1 Z0\nX20 Y0\nY5",
        "G0 X0 Y0\nG92 X0 G1\nX20 Y0\nY5",
    ] {
        let design = read(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(points(&design), expected, "{text}");
    }
    for text in [
        "G4 G1 X20 Y0",
        "G4 G1 X20",
        "G1 X5\nG4 X20 Y0",
        "G4 G2 X5 I2",
    ] {
        let error = read(&format!("G0 X0 Y0\n{text}")).unwrap_err().to_string();
        assert!(
            error.contains("G4 without a time on a line with coordinates"),
            "{text}: {error}"
        );
    }
}

#[test]
fn arcs_by_centre_and_by_radius_agree() {
    let by_centre = read("G0 X0 Y0\nG3 X10 Y10 I0 J10\nG2 X20 Y20 I10 J0").unwrap();
    let by_radius = read("G0 X0 Y0\nG3 X10 Y10 R10\nG2 X20 Y20 R10").unwrap();
    let length = std::f64::consts::PI * 10.0;
    for design in [&by_centre, &by_radius] {
        assert!((design.strokes[0].length_mm() - length).abs() < 0.02);
    }
    for (a, b) in points(&by_centre)[0].iter().zip(&points(&by_radius)[0]) {
        assert!((a[0] - b[0]).hypot(a[1] - b[1]) < 1e-9);
    }
    let longer_arc = read("G0 X0 Y0\nG3 X10 Y10 R-10").unwrap();
    assert!((longer_arc.strokes[0].length_mm() - 1.5 * length).abs() < 0.05);
}

#[test]
fn an_arc_back_to_its_start_is_a_full_circle() {
    for text in ["G0 X5 Y0\nG2 I-5", "G0 X5 Y0\nG3 X5 Y0 I-5 J0"] {
        let design = read(text).unwrap();
        let circumference = std::f64::consts::TAU * 5.0;
        assert!((design.strokes[0].length_mm() - circumference).abs() < 0.05);
        assert!((design.page_mm[0] - 10.0).abs() < 0.05);
    }
}

#[test]
fn a_pen_that_comes_down_and_goes_up_leaves_a_dot() {
    let design = read("G21\nG0 Z5\nG0 X3 Y3\nG1 Z0\nG0 Z5\nG0 X9\nG1 Z0\nG0 Z5").unwrap();
    assert_eq!(design.strokes.len(), 2);
    assert!((design.strokes[0].length_mm() - super::super::DOT_MM).abs() < 1e-9);
}

#[test]
fn the_file_name_gives_the_pen() {
    let draw = b"G0 X0 Y0\nG1 X1 Y1";
    for (name, pen) in [
        ("flower_pen3_red.gcode", Some(3)),
        ("flower_pen0_red.gcode", Some(1)),
        ("a/b/flower_pen12.nc", Some(12)),
        ("flower.gcode", None),
        ("pencil_case.gcode", None),
        ("flower_pen99999_x.gcode", None),
    ] {
        let design = load(name, draw, &DesignCaps::default()).unwrap();
        assert_eq!(design.strokes[0].pen, pen, "{name}");
        assert_eq!(design.strokes[0].source, "line 2");
    }
}

/// Reads the pens of a file's strokes, and its notes.
fn pens(name: &str, text: &str) -> (Vec<Option<u16>>, Vec<String>) {
    let design = load(name, text.as_bytes(), &DesignCaps::default()).unwrap();
    let pens = design.strokes.iter().map(|stroke| stroke.pen);
    (pens.collect(), design.notes)
}

#[test]
fn a_tool_is_a_pen_unless_a_person_puts_it_in() {
    let two = "T1\nG0 Z5\nG0 X0 Y0\nG1 Z0\nG1 X9\nT2\nG0 Z5\nG0 X0 Y9\nG1 Z0\nG1 X9\nT0\nG0 Z5";
    let none: Vec<String> = Vec::new();
    assert_eq!(pens("a.nc", two), (vec![Some(1), Some(2)], none.clone()));
    let while_down = "G0 X0 Y0\nT1 G1 X9\nT2 G1 X9 Y9";
    assert_eq!(
        pens("a.nc", while_down),
        (vec![Some(1), Some(2)], none.clone())
    );
    let (found, notes) = pens("a.nc", &two.replace("T2", "T2 M6"));
    assert_eq!(found, [None, None]);
    assert!(
        notes[0].starts_with("line 9: T2 is drawn with the same pen "),
        "{notes:?}"
    );
    let (found, notes) = pens("a_pen3_red.nc", two);
    assert_eq!(found, [Some(3), Some(3)]);
    assert!(
        notes[0].starts_with("line 9: T2 is also drawn with pen 3"),
        "{notes:?}"
    );
    assert_eq!(pens("a.nc", "T102 M6\nG0 X0 Y0\nG1 X9"), (vec![None], none));
}

/// Slicers and firmware of 3D printers write T0 into files of one tool.
#[test]
fn one_tool_alone_chooses_no_pen() {
    for tool in ["T0", "T2", "T5"] {
        let (found, notes) = pens("a.nc", &format!("{tool}\nG0 X0 Y0\nG1 X9\nG0 Y9\nG1 X0"));
        assert_eq!(found, [None, None]);
        let note = format!("line 3: {tool} is the file's only tool, so it chooses no pen ");
        assert!(notes[0].starts_with(&note), "{notes:?}");
    }
    let none: Vec<String> = Vec::new();
    let first = "T1\nG0 X0 Y0\nG1 X9";
    assert_eq!(pens("a.nc", first), (vec![None], none.clone()));
    assert_eq!(pens("a_pen3.nc", "T0\nG0 X0 Y0\nG1 X9").0, [Some(3)]);
    // Firmware starts with T0; tools that draw nothing do not count.
    let late = "G0 X0 Y0\nG1 X9\nT0\nG0 Y9\nG1 X0\nT2\nG0 X0";
    assert_eq!(pens("a.nc", late).0, [None, None]);
    let second = late.replace("T0", "T2");
    assert_eq!(pens("a.nc", &second), (vec![None, Some(2)], none));
}

#[test]
fn refuses_by_name_and_line() {
    for (text, message) in [
        (
            "T0\nG1 X1\nT2\nG1 X2",
            "line 2: found a line with T0; accepted: T1 for the first pen",
        ),
        ("T1.5\nG1 X1", "line 1: found T1.5; accepted: T1 for"),
        (
            "G1 X1\nG5 X3 Y4",
            "line 2: G5 cannot be drawn. Next: use G0",
        ),
        ("M106 S3", "line 1: M106 cannot be drawn"),
        ("G1 X1 E0.4", "line 1: E0.4 cannot be drawn"),
        ("\n\nhello", "line 3: found `hello`"),
        ("G1 X", "line 1: found `X`"),
        ("G1 X1 X2", "line 1: found a second X"),
        ("X1 Y1", "line 1: found coordinates before any of G0 to G3"),
        ("G0 G1 X1", "line 1: found G1 on a line with another motion"),
        (
            "G1 X1 (never closed",
            "line 1: found a comment that does not end",
        ),
        ("G2 X10 Y0 R2", "line 1: found an arc without a centre"),
        ("G2 X10 Y0", "line 1: found an arc without a centre"),
        (
            "G2 X10 Y0 I2 J0",
            "line 1: found an arc that starts 2.000 mm",
        ),
        ("G1 X1 I3", "line 1: found I, J or R in a straight move"),
        ("G0 Z5\nG1 Z0\nX5\nG0 X9", "line 4: G0 with the pen down"),
        (
            "G0 Z5\nX1\nG1 X5 Z0",
            "line 3: G1 that moves along the paper and also",
        ),
        (
            "G0 Z5\nG1 Z0\nG1 Z-1",
            "line 3: a mix of heights above, at and below 0",
        ),
        (
            "G0 Z5\nG1 Z2 X3",
            "line 2: a mix of heights on one side of 0",
        ),
        (
            "M3 S30\nG1 X1\nM3 S90\nG1 X2",
            "line 4: S90 after S30 cannot be drawn",
        ),
        ("G0 X1", "the drawing has no line to draw"),
        ("G0 X1\nG1 X9e9", "line 2: E9 cannot be drawn"),
        (
            "G1 X99999999999",
            "line 1: a point is at 9.9999999999e10, 0 mm",
        ),
    ] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.starts_with(message), "{text:?}: {error}");
    }
}

#[test]
fn the_cap_on_points_counts_arcs() {
    let caps = DesignCaps {
        points_max: 50,
        ..DesignCaps::default()
    };
    let error = load("a.nc", b"G0 X50\nG2 I-50", &caps).unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 2: more than 50 points. Next: simplify the drawing"
    );
}

proptest! {
    #[test]
    fn any_words_are_refused_or_drawn_but_never_panic(
        lines in prop::collection::vec("[GMXYZIJRSFN(); 0-9.-]{0,12}", 0..12),
    ) {
        let _ = read(&lines.join("\n"));
    }

    #[test]
    fn plausible_programs_never_panic(
        moves in prop::collection::vec((0..4_u8, -99.0..99.0_f64, -99.0..99.0_f64, -9.0..9.0_f64), 0..20),
    ) {
        let text: Vec<String> = moves.iter().map(|(g, x, y, r)| match g {
            0 | 1 => format!("G{g} X{x:.3} Y{y:.3}"),
            _ => format!("G{g} X{x:.3} Y{y:.3} R{r:.3}"),
        }).collect();
        if let Ok(design) = read(&text.join("\n")) {
            prop_assert!(design.strokes.iter().all(|s| s.points_mm.len() >= 2));
        }
    }
}

#[test]
fn files_of_a_set_share_a_page_and_each_has_its_pen() {
    let black: &[u8] = b"G21 G90\nG0 X0 Y0\nG1 X100 Y0\nG1 X100 Y100";
    let red: &[u8] = b"G0 X45 Y45\nG1 X55 Y45\nG1 X55 Y55";
    let files = [("X_pen0_black.gcode", black), ("X_pen1_red.gcode", red)];
    let design =
        super::super::load_set(&files, &DesignCaps::default(), ReadOptions::default()).unwrap();
    assert_eq!(design.page_mm, [100.0, 100.0]);
    assert_eq!(design.strokes[1].points_mm[0], [45.0, 45.0]);
    assert_eq!(
        design.strokes.iter().map(|s| s.pen).collect::<Vec<_>>(),
        [Some(1), Some(2)]
    );
    assert_eq!(design.strokes[1].source, "X_pen1_red.gcode line 2");
    let broken = [files[0], ("X_pen1_red.gcode", &b"G0 X0\nFOO"[..])];
    let error = super::super::load_set(&broken, &DesignCaps::default(), ReadOptions::default())
        .unwrap_err();
    assert!(
        error.to_string().starts_with("`X_pen1_red.gcode`: line 2"),
        "{error}"
    );
}

#[test]
fn names_say_which_files_are_one_drawing() {
    for (name, stem) in [
        ("flower_pen3_red.gcode", Some("flower")),
        ("flower_pen12.NC", Some("flower")),
        ("my_flower_pen0_a_b.gco", Some("my_flower")),
        ("pen3_red.gcode", None),
        ("flower_pencil.gcode", None),
        ("flower_pen3_red.svg", None),
        ("flower.gcode", None),
    ] {
        assert_eq!(super::super::set_of(name), stem, "{name}");
    }
}
