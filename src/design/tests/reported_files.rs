//! Files that strangers reported, byte by byte, and what each draws.
#![expect(clippy::indexing_slicing, reason = "tests")]

use steadyhand_design::{Design, DesignCaps, load};

fn read(name: &str, bytes: &[u8]) -> Design {
    load(name, bytes, &DesignCaps::default()).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Lines of a file, with the layer of each.
fn lines(name: &str, bytes: &[u8]) -> Vec<(Vec<[f64; 2]>, Option<String>)> {
    let strokes = read(name, bytes).strokes.into_iter();
    strokes
        .map(|stroke| (stroke.points_mm, stroke.layer))
        .collect()
}

/// Checks lines that are straight between these points, in any order, against a file's.
fn check(name: &str, bytes: &[u8], expected: &[&[[f64; 2]]]) {
    let drawn = lines(name, bytes);
    assert_eq!(drawn.len(), expected.len(), "{name}: {drawn:?}");
    for line in expected {
        let is_same = |points: &Vec<[f64; 2]>| {
            points.len() == line.len()
                && points
                    .iter()
                    .zip(*line)
                    .all(|(a, b)| (a[0] - b[0]).hypot(a[1] - b[1]) < 0.06)
        };
        assert!(
            drawn.iter().any(|(points, _)| is_same(points)),
            "{name}: {line:?} is not in {drawn:?}"
        );
    }
}

#[test]
fn svg_and_dxf_and_gcode_in_another_encoding_draw_the_same() {
    let plain = lines("a.svg", CORELDRAW_UTF_8);
    assert_eq!(plain.len(), 2);
    for bytes in [CORELDRAW_UTF_16, CORELDRAW_LATIN_1] {
        assert_eq!(lines("a.svg", bytes), plain);
    }
    let page_mm = read("a.svg", CORELDRAW_UTF_16).page_mm;
    assert!((page_mm[0] - 60.0).abs() < 0.001 && (page_mm[1] - 40.0).abs() < 0.001);
    let plain = lines("a.nc", GCODE_UTF_8);
    assert_eq!(plain.len(), 1);
    for bytes in [GCODE_CP1252, GCODE_CONTROL_Z] {
        assert_eq!(lines("a.nc", bytes), plain);
    }
    let plain = lines("a.dxf", DXF_UTF_8);
    assert_eq!(plain[0].1.as_deref(), Some("Ma\u{df}e"));
    assert_eq!(lines("a.dxf", DXF_CP1252), plain);
}

#[test]
fn prefixes_and_entities_that_nothing_declares_are_form() {
    let line: &[[f64; 2]] = &[[5.0, 15.0], [55.0, 15.0]];
    check("a.svg", SVG_BARE, &[line]);
    let with_text = lines("a.svg", SVG_ENTITIES);
    assert!(
        with_text.len() > 3
            && with_text
                .iter()
                .any(|(points, _)| points.len() == 2 && (points[1][0] - 55.0).abs() < 0.01)
    );
    check(
        "a.svg",
        SVG_UNBOUND,
        &[
            &[[10.0, 30.0], [10.0, 10.0]],
            &[[50.0, 30.0], [50.0, 10.0]],
            &[[10.0, 30.0], [50.0, 30.0]],
        ],
    );
}

#[test]
fn a_dwell_beside_a_spindle_keeps_travel_undrawn() {
    let lines_of_40: [&[[f64; 2]]; 2] = [&[[0.0, 0.0], [40.0, 0.0]], &[[0.0, 20.0], [40.0, 20.0]]];
    check("a.gcode", GCODE_DWELL_ALONE, &lines_of_40);
    check("a.gcode", GCODE_DWELL, &lines_of_40);
}

#[test]
fn circles_without_a_radius_are_dots() {
    assert_eq!(read("a.svg", SVG_DOTS).strokes.len(), 15);
    let mixed = read("a.svg", SVG_SIZELESS);
    assert_eq!(mixed.strokes.len(), 6);
    assert!(
        mixed.notes.iter().any(|note| note.contains("no size")),
        "{:?}",
        mixed.notes
    );
}

#[test]
fn a_spline_of_fit_points_goes_through_them() {
    let drawn = lines("a.dxf", DXF_FIT_POINTS);
    let low = drawn[0]
        .0
        .iter()
        .fold(f64::INFINITY, |low, point| low.min(point[1]));
    let first = drawn[0].0[0];
    for [x, y] in [[0.0, 0.0], [15.0, 12.0], [30.0, 4.0], [45.0, 20.0]] {
        let is_near =
            |point: &[f64; 2]| (point[0] - first[0] - x).hypot(point[1] - first[1] - y) < 0.1;
        assert!(
            drawn[0].0.iter().any(is_near),
            "{x}, {y} over {low}: {drawn:?}"
        );
    }
}

#[test]
fn the_extrusion_of_lines_and_points_moves_nothing() {
    let drawn = lines("a.dxf", DXF_EXTRUSIONS);
    let expected: [&[[f64; 2]]; 3] = [
        &[[0.0, 0.0], [40.0, 0.0]],
        &[[40.0, 0.0], [40.0, 20.0]],
        &[[40.0, 20.0], [0.0, 20.0]],
    ];
    assert_eq!(drawn.len(), 4, "{drawn:?}");
    for line in expected {
        assert!(
            drawn.iter().any(|(points, _)| points == line),
            "{line:?}: {drawn:?}"
        );
    }
    let is_dot = |points: &[[f64; 2]]| {
        points
            .iter()
            .all(|point| (point[0] - 5.0).hypot(point[1] - 15.0) < 0.1)
    };
    assert!(drawn.iter().any(|(points, _)| is_dot(points)), "{drawn:?}");
}

#[test]
fn words_of_cutters_draw_nothing_and_are_counted() {
    let hook: &[[f64; 2]] = &[[0.0, 0.0], [30.0, 0.0], [30.0, 20.0]];
    check("a.plt", PLT_AT, &[hook]);
    check("a.plt", PLT_CONTROL_Z, &[hook]);
    check("a.plt", PLT_VINYL, &[hook, &[[0.0, 20.0], [0.0, 0.0]]]);
    let notes = read("a.plt", PLT_VINYL).notes;
    for word in ["MK", "CB"] {
        assert!(
            notes.iter().any(|note| note.contains(word)),
            "{word}: {notes:?}"
        );
    }
}

/// CorelDRAW in its own encoding.
const CORELDRAW_UTF_16: &[u8] = b"\xff\xfe<\x00?\x00x\x00m\x00l\x00 \x00v\x00e\x00r\x00s\x00i\x00o\x00n\x00=\x00\"\x001\x00.\x000\x00\"\x00 \x00e\x00n\x00c\x00o\x00d\x00i\x00n\x00g\x00=\x00\"\x00U\x00T\x00F\x00-\x001\x006\x00\"\x00?\x00>\x00\r\x00\n\x00<\x00!\x00D\x00O\x00C\x00T\x00Y\x00P\x00E\x00 \x00s\x00v\x00g\x00 \x00P\x00U\x00B\x00L\x00I\x00C\x00 \x00\"\x00-\x00/\x00/\x00W\x003\x00C\x00/\x00/\x00D\x00T\x00D\x00 \x00S\x00V\x00G\x00 \x001\x00.\x001\x00/\x00/\x00E\x00N\x00\"\x00 \x00\"\x00h\x00t\x00t\x00p\x00:\x00/\x00/\x00w\x00w\x00w\x00.\x00w\x003\x00.\x00o\x00r\x00g\x00/\x00G\x00r\x00a\x00p\x00h\x00i\x00c\x00s\x00/\x00S\x00V\x00G\x00/\x001\x00.\x001\x00/\x00D\x00T\x00D\x00/\x00s\x00v\x00g\x001\x001\x00.\x00d\x00t\x00d\x00\"\x00>\x00\r\x00\n\x00<\x00s\x00v\x00g\x00 \x00x\x00m\x00l\x00n\x00s\x00=\x00\"\x00h\x00t\x00t\x00p\x00:\x00/\x00/\x00w\x00w\x00w\x00.\x00w\x003\x00.\x00o\x00r\x00g\x00/\x002\x000\x000\x000\x00/\x00s\x00v\x00g\x00\"\x00 \x00x\x00m\x00l\x00:\x00s\x00p\x00a\x00c\x00e\x00=\x00\"\x00p\x00r\x00e\x00s\x00e\x00r\x00v\x00e\x00\"\x00 \x00w\x00i\x00d\x00t\x00h\x00=\x00\"\x006\x000\x00m\x00m\x00\"\x00 \x00h\x00e\x00i\x00g\x00h\x00t\x00=\x00\"\x004\x000\x00m\x00m\x00\"\x00 \x00v\x00e\x00r\x00s\x00i\x00o\x00n\x00=\x00\"\x001\x00.\x001\x00\"\x00 \x00v\x00i\x00e\x00w\x00B\x00o\x00x\x00=\x00\"\x000\x00 \x000\x00 \x006\x000\x000\x000\x00 \x004\x000\x000\x000\x00\"\x00>\x00\r\x00\n\x00 \x00<\x00g\x00 \x00i\x00d\x00=\x00\"\x00E\x00b\x00e\x00n\x00e\x00_\x00x\x000\x000\x002\x000\x00_\x001\x00\"\x00>\x00\r\x00\n\x00 \x00 \x00<\x00!\x00-\x00-\x00 \x00G\x00r\x00\xf6\x00\xdf\x00e\x00:\x00 \x006\x000\x00 \x00\xd7\x00 \x004\x000\x00 \x00-\x00-\x00>\x00\r\x00\n\x00 \x00 \x00<\x00r\x00e\x00c\x00t\x00 \x00f\x00i\x00l\x00l\x00=\x00\"\x00n\x00o\x00n\x00e\x00\"\x00 \x00s\x00t\x00r\x00o\x00k\x00e\x00=\x00\"\x00#\x002\x00B\x002\x00A\x002\x009\x00\"\x00 \x00s\x00t\x00r\x00o\x00k\x00e\x00-\x00w\x00i\x00d\x00t\x00h\x00=\x00\"\x002\x000\x00\"\x00 \x00x\x00=\x00\"\x005\x000\x000\x00\"\x00 \x00y\x00=\x00\"\x005\x000\x000\x00\"\x00 \x00w\x00i\x00d\x00t\x00h\x00=\x00\"\x005\x000\x000\x000\x00\"\x00 \x00h\x00e\x00i\x00g\x00h\x00t\x00=\x00\"\x003\x000\x000\x000\x00\"\x00/\x00>\x00\r\x00\n\x00 \x00 \x00<\x00p\x00a\x00t\x00h\x00 \x00f\x00i\x00l\x00l\x00=\x00\"\x00n\x00o\x00n\x00e\x00\"\x00 \x00s\x00t\x00r\x00o\x00k\x00e\x00=\x00\"\x00#\x002\x00B\x002\x00A\x002\x009\x00\"\x00 \x00s\x00t\x00r\x00o\x00k\x00e\x00-\x00w\x00i\x00d\x00t\x00h\x00=\x00\"\x002\x000\x00\"\x00 \x00d\x00=\x00\"\x00M\x005\x000\x000\x00 \x005\x000\x000\x00l\x005\x000\x000\x000\x00 \x003\x000\x000\x000\x00\"\x00/\x00>\x00\r\x00\n\x00 \x00<\x00/\x00g\x00>\x00\r\x00\n\x00<\x00/\x00s\x00v\x00g\x00>\x00\r\x00\n\x00";

/// The same in Latin-1.
const CORELDRAW_LATIN_1: &[u8] = b"<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\r\n<!DOCTYPE svg PUBLIC \"-//W3C//DTD SVG 1.1//EN\" \"http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd\">\r\n<svg xmlns=\"http://www.w3.org/2000/svg\" xml:space=\"preserve\" width=\"60mm\" height=\"40mm\" version=\"1.1\" viewBox=\"0 0 6000 4000\">\r\n <g id=\"Ebene_x0020_1\">\r\n  <!-- Gr\xf6\xdfe: 60 \xd7 40 -->\r\n  <rect fill=\"none\" stroke=\"#2B2A29\" stroke-width=\"20\" x=\"500\" y=\"500\" width=\"5000\" height=\"3000\"/>\r\n  <path fill=\"none\" stroke=\"#2B2A29\" stroke-width=\"20\" d=\"M500 500l5000 3000\"/>\r\n </g>\r\n</svg>\r\n";

/// The same in UTF-8.
const CORELDRAW_UTF_8: &[u8] = b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\r\n<!DOCTYPE svg PUBLIC \"-//W3C//DTD SVG 1.1//EN\" \"http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd\">\r\n<svg xmlns=\"http://www.w3.org/2000/svg\" xml:space=\"preserve\" width=\"60mm\" height=\"40mm\" version=\"1.1\" viewBox=\"0 0 6000 4000\">\r\n <g id=\"Ebene_x0020_1\">\r\n  <!-- Gr\xc3\xb6\xc3\x9fe: 60 \xc3\x97 40 -->\r\n  <rect fill=\"none\" stroke=\"#2B2A29\" stroke-width=\"20\" x=\"500\" y=\"500\" width=\"5000\" height=\"3000\"/>\r\n  <path fill=\"none\" stroke=\"#2B2A29\" stroke-width=\"20\" d=\"M500 500l5000 3000\"/>\r\n </g>\r\n</svg>\r\n";

/// Comments in Windows-1252.
const GCODE_CP1252: &[u8] = b"; Schaftfr\xe4ser \xd8 0,5 mm\n(Gr\xf6\xdfe 40 x 20)\nG21\nG90\nG0 Z5\nG0 X0 Y0\nG1 Z0 F300\nG1 X40 Y0 F1200\nG1 X40 Y20\nG0 Z5\nM30\n";

/// An end-of-file character of DOS.
const GCODE_CONTROL_Z: &[u8] =
    b"%\r\nG21 G90\r\nG0 Z5\r\nG0 X0 Y0\r\nG1 Z0 F300\r\nG1 X40 Y0\r\nG1 X40 Y20\r\nG0 Z5\r\n\x1a";

/// The same lines in UTF-8.
const GCODE_UTF_8: &[u8] = b"; Schaftfr\xc3\xa4ser \xc3\x98 0,5 mm\n(Gr\xc3\xb6\xc3\x9fe 40 x 20)\nG21\nG90\nG0 Z5\nG0 X0 Y0\nG1 Z0 F300\nG1 X40 Y0 F1200\nG1 X40 Y20\nG0 Z5\nM30\n";

/// A layer and a text in the code page of the header.
const DXF_CP1252: &[u8] = b"0\r\nSECTION\r\n2\r\nHEADER\r\n9\r\n$ACADVER\r\n1\r\nAC1015\r\n9\r\n$DWGCODEPAGE\r\n3\r\nANSI_1252\r\n9\r\n$INSUNITS\r\n70\r\n4\r\n0\r\nENDSEC\r\n0\r\nSECTION\r\n2\r\nTABLES\r\n0\r\nTABLE\r\n2\r\nLAYER\r\n70\r\n1\r\n0\r\nLAYER\r\n2\r\nMa\xdfe\r\n70\r\n0\r\n62\r\n7\r\n6\r\nCONTINUOUS\r\n0\r\nENDTAB\r\n0\r\nENDSEC\r\n0\r\nSECTION\r\n2\r\nENTITIES\r\n0\r\nLINE\r\n8\r\nMa\xdfe\r\n10\r\n0\r\n20\r\n0\r\n11\r\n40\r\n21\r\n0\r\n0\r\nLINE\r\n8\r\nMa\xdfe\r\n10\r\n40\r\n20\r\n0\r\n11\r\n40\r\n21\r\n20\r\n0\r\nTEXT\r\n8\r\nMa\xdfe\r\n10\r\n2\r\n20\r\n5\r\n40\r\n6\r\n1\r\n\xd8 12 f\xfcr\r\n0\r\nENDSEC\r\n0\r\nEOF\r\n";

/// The same in UTF-8.
const DXF_UTF_8: &[u8] = b"0\r\nSECTION\r\n2\r\nHEADER\r\n9\r\n$ACADVER\r\n1\r\nAC1021\r\n9\r\n$DWGCODEPAGE\r\n3\r\nANSI_1252\r\n9\r\n$INSUNITS\r\n70\r\n4\r\n0\r\nENDSEC\r\n0\r\nSECTION\r\n2\r\nTABLES\r\n0\r\nTABLE\r\n2\r\nLAYER\r\n70\r\n1\r\n0\r\nLAYER\r\n2\r\nMa\xc3\x9fe\r\n70\r\n0\r\n62\r\n7\r\n6\r\nCONTINUOUS\r\n0\r\nENDTAB\r\n0\r\nENDSEC\r\n0\r\nSECTION\r\n2\r\nENTITIES\r\n0\r\nLINE\r\n8\r\nMa\xc3\x9fe\r\n10\r\n0\r\n20\r\n0\r\n11\r\n40\r\n21\r\n0\r\n0\r\nLINE\r\n8\r\nMa\xc3\x9fe\r\n10\r\n40\r\n20\r\n0\r\n11\r\n40\r\n21\r\n20\r\n0\r\nTEXT\r\n8\r\nMa\xc3\x9fe\r\n10\r\n2\r\n20\r\n5\r\n40\r\n6\r\n1\r\n\xc3\x98 12 f\xc3\xbcr\r\n0\r\nENDSEC\r\n0\r\nEOF\r\n";

/// Entities of HTML.
const SVG_ENTITIES: &[u8] = b"<svg width=\"60mm\" height=\"40mm\" viewBox=\"0 0 60 40\"><text x=\"5\" y=\"20\" font-size=\"8\">A&nbsp;&copy;&nbsp;B</text><path d=\"M5 25 H55\" stroke=\"black\"/></svg>\n";

/// No namespace.
const SVG_BARE: &[u8] = b"<svg width=\"60mm\" height=\"40mm\" viewBox=\"0 0 60 40\"><path d=\"M5 25 H55\" stroke=\"black\"/></svg>\n";

/// A prefix that nothing binds.
const SVG_UNBOUND: &[u8] = b"<svg width=\"60mm\" height=\"40mm\" viewBox=\"0 0 60 40\">\n<defs><path id=\"leg\" d=\"M0 0 L0 20\" stroke=\"black\" fill=\"none\"/></defs>\n<use xlink:href=\"#leg\" x=\"10\" y=\"10\"/>\n<use xlink:href=\"#leg\" x=\"50\" y=\"10\"/>\n<path d=\"M10 10 H50\" stroke=\"black\" fill=\"none\"/>\n</svg>\n";

/// A dwell on the line of the spindle.
const GCODE_DWELL: &[u8] = b"G21\nG90\nM3 S0 G4P0.2\nG1 X0 Y0 F3000\nM3 S25 G4P0.3\nG1 X40 Y0 F1200\nM3 S0 G4P0.2\nG1 X0 Y20 F3000\nM3 S25 G4P0.3\nG1 X40 Y20 F1200\nM3 S0 G4P0.2\nG1 X0 Y0 F3000\n";

/// The same dwells on lines of their own.
const GCODE_DWELL_ALONE: &[u8] = b"G21\nG90\nM3 S0\nG4 P0.2\nG1 X0 Y0 F3000\nM3 S25\nG4 P0.3\nG1 X40 Y0 F1200\nM3 S0\nG4 P0.2\nG1 X0 Y20 F3000\nM3 S25\nG4 P0.3\nG1 X40 Y20 F1200\nM3 S0\nG4 P0.2\nG1 X0 Y0 F3000\n";

/// Dots, a line and shapes without size.
const SVG_SIZELESS: &[u8] = b"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"60mm\" height=\"40mm\" viewBox=\"0 0 60 40\" fill=\"none\" stroke=\"black\">\n<path d=\"M5 35H55\"/>\n<circle cx=\"10\" cy=\"20\" r=\"0\"/>\n<circle cx=\"20\" cy=\"20\" r=\"0\"/>\n<circle cx=\"30\" cy=\"20\" r=\"0\"/>\n<circle cx=\"40\" cy=\"20\" r=\"0\"/>\n<circle cx=\"50\" cy=\"20\" r=\"0\"/>\n<rect x=\"30\" y=\"5\" width=\"0\" height=\"10\"/>\n<ellipse cx=\"40\" cy=\"10\" rx=\"0\" ry=\"6\"/>\n</svg>\n";

/// Dots alone.
const SVG_DOTS: &[u8] = b"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"60mm\" height=\"40mm\" viewBox=\"0 0 60 40\" fill=\"none\" stroke=\"black\">\n<circle cx=\"10\" cy=\"10\" r=\"0\"/>\n<circle cx=\"10\" cy=\"20\" r=\"0\"/>\n<circle cx=\"10\" cy=\"30\" r=\"0\"/>\n<circle cx=\"20\" cy=\"10\" r=\"0\"/>\n<circle cx=\"20\" cy=\"20\" r=\"0\"/>\n<circle cx=\"20\" cy=\"30\" r=\"0\"/>\n<circle cx=\"30\" cy=\"10\" r=\"0\"/>\n<circle cx=\"30\" cy=\"20\" r=\"0\"/>\n<circle cx=\"30\" cy=\"30\" r=\"0\"/>\n<circle cx=\"40\" cy=\"10\" r=\"0\"/>\n<circle cx=\"40\" cy=\"20\" r=\"0\"/>\n<circle cx=\"40\" cy=\"30\" r=\"0\"/>\n<circle cx=\"50\" cy=\"10\" r=\"0\"/>\n<circle cx=\"50\" cy=\"20\" r=\"0\"/>\n<circle cx=\"50\" cy=\"30\" r=\"0\"/>\n</svg>\n";

/// A spline of fit points alone.
const DXF_FIT_POINTS: &[u8] = b"0\nSECTION\n2\nHEADER\n9\n$INSUNITS\n70\n4\n0\nENDSEC\n0\nSECTION\n2\nENTITIES\n0\nSPLINE\n8\n0\n210\n0\n220\n0\n230\n1\n70\n8\n71\n3\n72\n0\n73\n0\n74\n4\n11\n0\n21\n0\n31\n0\n11\n15\n21\n12\n31\n0\n11\n30\n21\n4\n31\n0\n11\n45\n21\n20\n31\n0\n0\nENDSEC\n0\nEOF\n";

/// Extrusions that move nothing.
const DXF_EXTRUSIONS: &[u8] = b"0\nSECTION\n2\nHEADER\n9\n$INSUNITS\n70\n4\n0\nENDSEC\n0\nSECTION\n2\nENTITIES\n0\nLINE\n8\n0\n39\n5\n10\n0\n20\n0\n30\n0\n11\n40\n21\n0\n31\n0\n210\n1\n220\n0\n230\n0\n0\nLINE\n8\n0\n10\n40\n20\n0\n30\n0\n11\n40\n21\n20\n31\n0\n210\n0\n220\n-1\n230\n0\n0\nPOINT\n8\n0\n10\n5\n20\n15\n30\n0\n210\n0\n220\n1\n230\n0\n0\nLINE\n8\n0\n10\n40\n20\n20\n30\n0\n11\n0\n21\n20\n31\n0\n0\nENDSEC\n0\nEOF\n";

/// A word of a cutter at the end.
const PLT_AT: &[u8] = b"IN;PA;SP1;PU400,400;PD1600,400,1600,1200;PU0,0;SP0;@";

/// An end-of-file character.
const PLT_CONTROL_Z: &[u8] =
    b"IN;PA;SP1;\r\nPU400,400;\r\nPD1600,400,1600,1200;\r\nPU0,0;SP0;\r\n\x1a";

/// Words of a vinyl cutter before and after the drawing.
const PLT_VINYL: &[u8] =
    b"MK8,8,0,0;IN;PA;SP1;CB1;PU400,400;PD1600,400,1600,1200;PU400,1200;PD400,400;PU2000,0;!PG;;";
