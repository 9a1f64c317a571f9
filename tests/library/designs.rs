//! Tests the designs in `scenes/designs/`: each loads, fits its sheet, and has the stated length.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use steadyhand::design::{Design, DesignCaps, load};

fn shipped(name: &str) -> Design {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes/designs");
    let bytes = std::fs::read(folder.join(name)).unwrap();
    load(name, &bytes, &DesignCaps::default()).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn length_mm(design: &Design) -> f64 {
    design.strokes.iter().map(|stroke| stroke.length_mm()).sum()
}

fn check_within(design: &Design, page_mm: [f64; 2]) {
    for (side, expected) in design.page_mm.iter().zip(page_mm) {
        assert!((side - expected).abs() < 0.05, "{side} is not {expected}");
    }
    for point in design.strokes.iter().flat_map(|stroke| &stroke.points_mm) {
        for (value, side) in point.iter().zip(page_mm) {
            assert!((0.0..=side).contains(value), "{point:?} is off the page");
        }
    }
}

#[test]
fn the_practice_drawing_is_short() {
    let design = shipped("practice.svg");
    check_within(&design, [60.0, 60.0]);
    assert!((8..=12).contains(&design.strokes.len()));
    assert!(length_mm(&design) <= 550.0, "{}", length_mm(&design));
}

#[test]
fn two_colours_has_exactly_two() {
    let design = shipped("two_colours.svg");
    check_within(&design, [60.0, 60.0]);
    let mut colours: Vec<_> = design.strokes.iter().filter_map(|s| s.colour).collect();
    assert_eq!(colours.len(), design.strokes.len());
    colours.sort_unstable();
    colours.dedup();
    assert_eq!(colours, [[0x1a, 0x1a, 0x2e], [0xc0, 0x39, 0x2b]]);
}

#[test]
fn the_leaf_fits_an_a5_sheet() {
    check_within(&shipped("leaf.svg"), [120.0, 80.0]);
}

#[test]
fn the_crosses_are_square_and_round() {
    let design = shipped("crosses.gcode");
    check_within(&design, [40.0, 40.0]);
    assert_eq!(design.strokes.len(), 11);
    let expected = 60.0 + std::f64::consts::TAU * 10.0 + 8.0 * 6.0;
    assert!((length_mm(&design) - expected).abs() < 0.1);
}
