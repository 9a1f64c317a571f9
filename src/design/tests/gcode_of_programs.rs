//! G-code as CAM and plotter programs write it (`gcode/`): each file draws a rectangle of 30 by 20
//! mm, and most also a line or a circle within. The expected values are those of the drawing, not
//! of the reader's output.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::path::Path;

use steadyhand_design::{Design, DesignCaps, DesignError, load};

/// The shape that a file draws besides the rectangle.
#[derive(Clone, Copy, PartialEq)]
enum Second {
    Nothing,
    /// From (5, 5) to (25, 15) of the rectangle.
    Line,
    /// Of radius 5 mm around (15, 10) of the rectangle.
    Circle,
}

fn read(name: &str) -> Result<Design, DesignError> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gcode");
    let bytes = std::fs::read(folder.join(name)).unwrap();
    load(name, &bytes, &DesignCaps::default())
}

fn check(name: &str, second: Second) {
    let design = read(name).unwrap_or_else(|error| panic!("{name}: {error}"));
    for (side, expected) in design.page_mm.iter().zip([30.0, 20.0]) {
        assert!(
            (side - expected).abs() < 1e-3,
            "{name}: a page of {:?}",
            design.page_mm
        );
    }
    let strokes = &design.strokes;
    let expected = if second == Second::Nothing { 1 } else { 2 };
    assert_eq!(strokes.len(), expected, "{name}: {strokes:#?}");
    let corners = [
        [0.0, 0.0],
        [30.0, 0.0],
        [30.0, 20.0],
        [0.0, 20.0],
        [0.0, 0.0],
    ];
    assert_eq!(strokes[0].points_mm.len(), corners.len(), "{name}");
    for (point, corner) in strokes[0].points_mm.iter().zip(corners) {
        assert_near(name, *point, corner);
    }
    match second {
        Second::Nothing => {}
        Second::Line => {
            assert_near(name, strokes[1].points_mm[0], [5.0, 5.0]);
            assert_near(name, *strokes[1].points_mm.last().unwrap(), [25.0, 15.0]);
            assert_eq!(strokes[1].points_mm.len(), 2, "{name}");
        }
        Second::Circle => {
            for [x, y] in &strokes[1].points_mm {
                let radius_mm = (x - 15.0).hypot(y - 10.0);
                assert!((radius_mm - 5.0).abs() < 1e-3, "{name}: {radius_mm}");
            }
            let circle_mm = std::f64::consts::TAU * 5.0;
            assert!((strokes[1].length_mm() - circle_mm).abs() < 0.2, "{name}");
        }
    }
}

fn assert_near(name: &str, found: [f64; 2], expected: [f64; 2]) {
    let error_mm = (found[0] - expected[0]).hypot(found[1] - expected[1]);
    assert!(error_mm < 1e-3, "{name}: {found:?} is not {expected:?}");
}

#[test]
fn gcode_of_many_programs_draws_its_shapes() {
    use Second::{Circle, Line, Nothing};
    let all = [
        ("bcnc.nc", Circle),
        ("bed_printer.gcode", Line),
        ("carbide_create.nc", Circle),
        ("carriage_returns.nc", Nothing),
        ("centre_origin.nc", Line),
        ("drawingbot_pen0_black.gcode", Line),
        ("estlcam.nc", Circle),
        ("flatcam.nc", Line),
        ("four_lines_m3.nc", Nothing),
        ("freecad.ngc", Circle),
        ("fusion360_personal.nc", Circle),
        ("gcodetools.ngc", Circle),
        ("grbl_plotter_servo.nc", Circle),
        ("grbl_plotter_z.nc", Line),
        ("hpgl_to_gcode.nc", Line),
        ("jscut.gcode", Line),
        ("juicy_gcode.gcode", Circle),
        ("laser_focus.nc", Line),
        ("laser_grbl.nc", Line),
        ("lightburn_m4.nc", Line),
        ("linuxcnc.ngc", Circle),
        ("luban_laser.nc", Line),
        ("marlin_checksums.gcode", Line),
        ("pcb2gcode.ngc", Line),
        ("servo_m280.gcode", Line),
        ("two_pens_by_hand.nc", Line),
        ("ugs_relative.gcode", Line),
        ("vpype_gcode.gcode", Line),
    ];
    for (name, second) in all {
        check(name, second);
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gcode");
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), all.len());
}

/// Rewrites each line of a text.
fn rewrite(text: &str, end: &str, line: impl Fn(usize, &str) -> String) -> String {
    let lines = text.split(['\n', '\r']).enumerate();
    lines.map(|(index, text)| line(index, text) + end).collect()
}

#[test]
fn comments_blank_lines_and_line_ends_change_no_stroke() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gcode");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let points = |text: &str| {
            let design = load(name, text.as_bytes(), &DesignCaps::default());
            let strokes = design
                .unwrap_or_else(|error| panic!("{name}: {error}"))
                .strokes;
            strokes.into_iter().map(|s| s.points_mm).collect::<Vec<_>>()
        };
        let before = points(&text);
        for variant in [
            rewrite(&text, "\r\n", |_, line| line.to_owned()),
            rewrite(&text, "\r", |_, line| line.to_owned()),
            rewrite(&text, "\n\n", |_, line| format!("  {line}\t")),
            rewrite(&text, "\n", |index, line| {
                format!("(step {index}) {line} ; X5 Y5")
            }),
            rewrite(&text, "\n", |_, line| match line.contains([';', '(']) {
                true => line.to_owned(),
                false => line.to_lowercase().replace(' ', ""),
            }),
        ] {
            assert_eq!(points(&variant), before, "{name}: {variant}");
        }
    }
}

#[test]
fn a_pause_of_the_machine_is_a_pause_before_the_next_stroke() {
    let design = read("two_pens_by_hand.nc").unwrap();
    let pauses: Vec<bool> = design.strokes.iter().map(|s| s.pause_before).collect();
    assert_eq!(pauses, [false, true]);
    assert_eq!(design.strokes[1].place_text(), "line 18");
    // A stop for the tool before anything is drawn causes no pause.
    let design = read("carbide_create.nc").unwrap();
    assert!(!design.strokes.iter().any(|stroke| stroke.pause_before));
}

#[test]
fn gcode_that_cannot_be_drawn_is_refused_by_name_and_line() {
    for (program, text, message) in [
        (
            "Cura",
            ";FLAVOR:Marlin\nM140 S60\nG28",
            "line 2: M140 cannot be drawn",
        ),
        (
            "a 3D print",
            "G21\nG0 X1 Y1\nG1 X9 E0.4",
            "line 3: E0.4 cannot be drawn",
        ),
        (
            "a drill",
            "G90\nG81 X1 Y1 Z-1 R2",
            "line 2: G81 cannot be drawn",
        ),
        (
            "a jog of Grbl",
            "$J=G91X9\nG0 X1",
            "line 1: found `$J=G91X9`",
        ),
        ("parameters", "#1=5\nG0 X#1", "line 1: found `#1=5`"),
        ("a subroutine", "O100 sub\nG0 X1", "line 1: found `sub`"),
        (
            "the plane XZ",
            "G18\nG2 X1 Z1 R1",
            "line 1: G18 cannot be drawn",
        ),
        (
            "a servo whose travel is no G0",
            "M300 S30\nG1 X5 F3500\nM300 S50\nG1 X9 F3500",
            "line 4: S50 after S30 cannot be drawn. Next: lift with M5, S0 or another S in G0",
        ),
        (
            "a ramp",
            "M3 S900\nG0 Z5\nG0 X1 Y1\nG1 X9 Z-1\nG1 X20\nG0 Z5",
            "line 4: G1 that moves along the paper and also lifts or lowers the pen",
        ),
        (
            "Z and M3 that contradict each other",
            "G0 Z5\nM3\nG1 X5\nM5\nG1 Z0\nG1 X9\nG0 Z5\nG0 X20\nG1 Z0\nG1 X30\nG0 Z5\nG0 X31\nM3\nG1 X40",
            "line 6: a cut where Z and the tool (M3, M5, S) disagree",
        ),
        (
            "grey values",
            "M4 S0\nG1 X1 S20\nG1 X2 S90\nM5",
            "line 3: S90 after S20 cannot be drawn",
        ),
        (
            "a place of the machine",
            "G53 G0 X-5 Y-5\nG1 X9",
            "line 2: a line that begins in the machine's own coordinates (G53)",
        ),
    ] {
        let error = load("a.nc", text.as_bytes(), &DesignCaps::default()).unwrap_err();
        assert!(error.to_string().starts_with(message), "{program}: {error}");
    }
}

/// Layers of a laser were refused as shades.
#[test]
fn layers_of_different_power_are_drawn_alike_and_noted() {
    for (layers, note) in [
        (
            "M4\nG0 X1 Y1\nG1 X9 S200\nG0 X1 Y5\nG1 X9 S500\nM5",
            "S200 to S500",
        ),
        (
            "M3 S0\nG0 X1 Y1\nS200\nG1 X9\nS0\nG0 X1 Y5\nS500\nG1 X9\nM5",
            "S200 to S500",
        ),
        (
            "M3 S200\nG1 X8\nM5\nG0 Y5\nM3 S900\nG1 X0\nM5",
            "S200 to S900",
        ),
    ] {
        let text = format!("G21 G90\n{layers}\n");
        let design = load("a.nc", text.as_bytes(), &DesignCaps::default()).unwrap();
        assert_eq!(design.strokes.len(), 2, "{layers}");
        assert!(design.strokes.iter().all(|stroke| stroke.pen.is_none()));
        assert!(
            design.notes.iter().any(|said| said.contains(note)),
            "{:?}",
            design.notes
        );
    }
    // A pen that S lifts while G1 travels is no layer.
    for travel in [
        "G1 X1 S30\nG1 X9 S90",
        "G0 X5\nG1 X9 S90\nG1 X20 S30\nG1 X25 S90",
    ] {
        let text = format!("G21 G90\nM3\n{travel}\nM5\n");
        assert!(
            load("a.nc", text.as_bytes(), &DesignCaps::default()).is_err(),
            "{travel}"
        );
    }
}

/// Unicorn of Inkscape travels by G1, and says beside each angle of its servo where the pen is.
#[test]
fn a_servo_whose_comments_say_up_and_down_lifts_its_pen() {
    let text = "(unicorn (for (Inkscape))\nG21\nG90\nG92 X0 Y0 Z0\nM300 S30 (pen down)\nM300 S50 (pen up)\nM18\nM01\nM17\n\
        G1 X1 Y1 F3500\nM300 S30.00 (pen down)\nG4 P150\nG1 X9\nG1 Y9\nM300 S50.00 (pen up)\n\
        G1 X20 Y1\nM300 S30.00 (pen down)\nG1 X25\nM300 S50.00 (pen up)\nM300 S255 (turn off servo)\nG1 X0 Y0\nG1 Z0\n";
    let design = load("a.gcode", text.as_bytes(), &DesignCaps::default()).unwrap();
    let lengths: Vec<f64> = design
        .strokes
        .iter()
        .map(|stroke| stroke.length_mm())
        .collect();
    let drawn: Vec<f64> = lengths.into_iter().filter(|mm| *mm > 1.0).collect();
    assert_eq!(drawn, [16.0, 5.0]);
    // Without those words, or with contradictory ones, nothing says which angle draws.
    for text in [
        text.replace("(pen down)", ""),
        text.replace("(pen up)", "(pen down)"),
    ] {
        assert!(load("a.gcode", text.as_bytes(), &DesignCaps::default()).is_err());
    }
}
