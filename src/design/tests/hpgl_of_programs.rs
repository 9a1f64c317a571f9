//! HP-GL written by programs (`hpgl/`, whose README says how). The expected values are those of the
//! requested drawings.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::f64::consts::PI;
use std::path::Path;

use steadyhand_design::{Design, DesignCaps, load};

const PT_MM: f64 = 25.4 / 72.0;
/// vpype writes the steps of an HP 7475A, 0.02488 mm, for units of 0.025 mm.
const HP7475A: f64 = 0.025 / 0.02488;

fn read(name: &str) -> Design {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hpgl");
    let bytes = std::fs::read(folder.join(name)).unwrap();
    load(name, &bytes, &DesignCaps::default()).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Checks pens and lengths of the strokes, longest first.
fn check(name: &str, expected: &[(u16, f64)], tolerance_mm: f64) {
    let design = read(name);
    let strokes = design.strokes.iter();
    let mut found: Vec<(u16, f64)> = strokes
        .map(|s| (s.pen.unwrap_or_default(), s.length_mm()))
        .collect();
    found.sort_by(|a, b| b.1.total_cmp(&a.1));
    assert_eq!(found.len(), expected.len(), "{name}: {found:?}");
    for ((pen, length_mm), (expected_pen, expected_mm)) in found.iter().zip(expected) {
        assert_eq!(pen, expected_pen, "{name}");
        assert!(
            (length_mm - expected_mm).abs() < tolerance_mm,
            "{name}: {length_mm} is not {expected_mm}"
        );
    }
}

#[test]
fn hpgl_of_programs_draws_its_shapes() {
    let circumference_mm = 30.0 * PI;
    check(
        "vpype.hpgl",
        &[
            (2, 280.0 * HP7475A),
            (1, circumference_mm * HP7475A),
            (1, f64::hypot(40.0, 10.0) * HP7475A),
        ],
        0.5,
    );
    check(
        "pstoedit.hpgl",
        &[(1, 600.0 * PT_MM), (1, 100.0 * PI * PT_MM)],
        0.5,
    );
    let arc_mm = 12.5 * 2.0 / 3.0 * PI;
    let shapes = [(2, 72.5), (1, 70.0), (2, 70.0), (1, 15.0 * PI), (1, arc_mm)];
    check("shapes.plt", &shapes, 0.05);
}

#[test]
fn pages_are_what_the_lines_cover() {
    for (name, page_mm, strokes) in [
        ("shapes.plt", [72.5, 62.5], 5),
        ("hp2xx.hpgl", [200.0, 172.414], 17),
    ] {
        let design = read(name);
        assert_eq!(design.strokes.len(), strokes, "{name}");
        for (side, target) in design.page_mm.iter().zip(page_mm) {
            assert!((side - target).abs() < 0.01, "{name}: {:?}", design.page_mm);
        }
    }
}

#[test]
fn what_a_program_sets_up_is_counted() {
    assert!(read("vpype.hpgl").notes.is_empty());
    assert_eq!(
        read("pstoedit.hpgl").notes,
        ["ignored, because they draw nothing: EC (2 times), PW (2 times)"]
    );
    let scaled_by_the_plotter = read("gnuplot.plt");
    assert!(scaled_by_the_plotter.notes.is_empty() && !scaled_by_the_plotter.states_lengths);
}
