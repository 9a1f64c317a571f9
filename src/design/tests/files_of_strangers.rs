//! Files as other programs write them: with version numbers, settings and envelopes around the drawing, and in units of any size.
#![expect(clippy::indexing_slicing, reason = "tests")]

use proptest::prelude::*;
use steadyhand_design::{Design, DesignCaps, DesignError, load};

fn read(name: &str, bytes: &[u8]) -> Design {
    load(name, bytes, &DesignCaps::default()).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn lines(name: &str, bytes: &[u8]) -> Vec<Vec<[f64; 2]>> {
    let strokes = read(name, bytes).strokes.into_iter();
    strokes.map(|stroke| stroke.points_mm).collect()
}

#[test]
fn numbers_of_a_programs_own_attributes_are_not_the_drawings() {
    for own in [
        r#"inkscape:version="1.3.2 (091e20e, 2023-11-25, custom)""#,
        r#"sodipodi:docname="9e99.svg""#,
        r#"data-name="7e77""#,
        r#"version="1e30""#,
    ] {
        let svg = format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" xmlns:inkscape="http://www.inkscape.org/namespaces/inkscape" xmlns:sodipodi="http://sodipodi.sourceforge.net/DTD/sodipodi-0.dtd" width="60mm" height="40mm" viewBox="0 0 60 40" {own}><path d="M5 5H55" stroke="black"/></svg>"#
        );
        assert_eq!(read("a.svg", svg.as_bytes()).strokes.len(), 1, "{own}");
    }
}

#[test]
fn shapes_without_an_end_are_read_as_if_they_had_one() {
    let plain = lines(
        "a.svg",
        b"<path d='M5 5L40 40' stroke='black'/><circle cx='9' cy='9' r='4'/>",
    );
    for text in [
        "<path d='M5 5L40 40' stroke='black'><circle cx='9' cy='9' r='4'>",
        "<path d='M5 5L40 40' stroke=black><circle cx=9 cy=9 r=4>",
        "<path d='M5 5L40 40' stroke='black'></path><circle cx='9' cy='9' r='4'>",
        "<g><path d='M5 5L40 40' stroke='black'><circle cx='9' cy='9' r='4'></g>",
    ] {
        assert_eq!(lines("a.svg", text.as_bytes()), plain, "{text}");
    }
    let whole = b"<path d='M5 5L40 40' stroke='black'><title>a</title></path>";
    assert!(
        read("a.svg", whole)
            .notes
            .iter()
            .all(|note| !note.contains("without an end"))
    );
}

#[test]
fn settings_of_grbl_are_no_movements_and_a_jog_is_refused() {
    let plain = "G21 G90\nG0 Z5\nG0 X0 Y0\nG1 Z0\nG1 X40\nY20\nG0 Z5\n";
    let with = format!("$H\n$X\n$32=1\n{plain}$SLP\n");
    for ending in ["nc", "gc", "cnc", "tap", "gcode"] {
        let name = format!("a.{ending}");
        assert_eq!(
            lines(&name, with.as_bytes()),
            lines("a.nc", plain.as_bytes()),
            "{ending}"
        );
    }
    let jog = with.replace("$X", "$J=G91X10");
    assert!(load("a.nc", jog.as_bytes(), &DesignCaps::default()).is_err());
}

#[test]
fn what_printers_and_cutters_put_around_hpgl_draws_nothing() {
    let plain = "IN;SP1;PU400,400;PD1600,400,1600,1200;PU0,0;SP0;";
    let strokes = lines("a.plt", plain.as_bytes());
    for [before, after] in [
        ["\x1b%-12345X@PJL ENTER LANGUAGE=HPGL2\r\n", "\x1b%-12345X"],
        [
            "\x1b%-12345X@PJL JOB\n@PJL SET COPIES=1\n\x1bE\x1b%0B",
            "\x1b%0A\x1bE\x1b%-12345X@PJL EOJ\n",
        ],
        ["\x1b%-1B", ""],
        ["\x1b;@:SET VELOCITY=400.\rSET OVERCUT=1.\rEND.\r", ""],
        ["\x1b;@:\nEND.\n", "\x1b;@:LOAD_MARKERS.\nEND.\n"],
    ] {
        let text = format!("{before}{plain}{after}");
        assert_eq!(lines("a.plt", text.as_bytes()), strokes, "{text:?}");
    }
    let raster = format!("\x1b*r1A{plain}");
    assert!(load("a.plt", raster.as_bytes(), &DesignCaps::default()).is_err());
}

#[test]
fn utf_32_is_named_in_its_refusal() {
    let text = "<svg xmlns='http://www.w3.org/2000/svg'/>";
    let bytes: Vec<u8> = [0xfeff]
        .into_iter()
        .chain(text.chars().map(u32::from))
        .flat_map(u32::to_le_bytes)
        .collect();
    let error = load("a.svg", &bytes, &DesignCaps::default());
    assert!(
        matches!(error, Err(DesignError::Encoding { .. })),
        "{error:?}"
    );
}

/// An open path through three corners of a box that is `unit` wide and half as high.
fn small_files(unit: f64) -> [(&'static str, String); 3] {
    let half = unit / 2.0;
    [
        (
            "a.svg",
            format!(
                r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {unit} {half}"><path d="M0 0H{unit}V{half}" fill="none" stroke="black"/></svg>"#
            ),
        ),
        (
            "a.dxf",
            format!(
                "0\nSECTION\n2\nENTITIES\n0\nLWPOLYLINE\n90\n3\n70\n0\n10\n0\n20\n0\n10\n{unit}\n20\n0\n10\n{unit}\n20\n{half}\n0\nENDSEC\n0\nEOF\n"
            ),
        ),
        (
            "a.nc",
            format!("G0 Z5\nG0 X0 Y0\nG1 Z-1\nG1 X{unit:.9}\nY{half:.9}\nG0 Z5\n"),
        ),
    ]
}

proptest! {
    #[test]
    fn a_drawing_without_lengths_keeps_its_shape_in_units_of_any_size(exponent in -5.0..5.0_f64) {
        for (name, text) in small_files(10.0_f64.powf(exponent)) {
            let design = read(name, text.as_bytes());
            prop_assert!(!design.states_lengths);
            let points = &design.strokes[0].points_mm;
            prop_assert_eq!(points.len(), 3, "{}", text);
            let long = design.page_mm[0];
            let corner = [long, design.page_mm[1]].map(|side| side / long);
            prop_assert!((corner[1] - 0.5).abs() < 2e-3, "{}: {:?} of {}", name, design.page_mm, text);
            let width = (points[1][0] - points[0][0]).abs() / long;
            prop_assert!((width - 1.0).abs() < 2e-3, "{}: {:?} on {:?}", name, points, design.page_mm);
        }
    }
}
