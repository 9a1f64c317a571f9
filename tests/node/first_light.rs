//! Tests how near the ink comes to the design, through the whole node.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a failing test may panic"
)]

use crate::support;
use support::{Bench, sloppy_arm};

fn deviation_mm(bench: &Bench) -> (f64, f64) {
    let (code, result) = bench.call(&["stroke"]);
    assert_eq!(code, 0, "{result:#}");
    let figure = |name: &str| result[name].as_f64().unwrap();
    (figure("deviation_mm_p95"), figure("deviation_mm_max"))
}

#[test]
fn the_ink_is_nowhere_a_millimetre_from_the_design() {
    let (_, max) = deviation_mm(&Bench::at_test_rate());
    assert!(max <= 1.0, "{max} mm");
}

#[test]
fn the_ink_is_half_a_millimetre_from_the_design_at_most_places() {
    let (p95, _) = deviation_mm(&Bench::at_test_rate());
    assert!(p95 <= 0.5, "{p95} mm");
}

#[test]
fn play_in_the_gears_shows_in_the_ink() {
    let (without, _) = deviation_mm(&Bench::at_test_rate());
    let sloppy = Bench::at_test_rate();
    std::fs::write(sloppy.path("scenes/arms/so101.toml"), sloppy_arm(1.0)).unwrap();
    let (with, max) = deviation_mm(&sloppy);
    println!("half a degree of play either way: 95 in 100 within {with} mm, all within {max} mm");
    assert!(
        with.is_finite() && with > without,
        "{with} mm with play, {without} mm without"
    );
}
