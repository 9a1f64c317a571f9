//! The same arm at the far end of a pseudo-terminal draws the same picture.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use crate::support;
use support::{Bench, unless_starved};
use tiny_skia::Pixmap;

/// Dark pixels of a picture: ink and letters.
fn dark(path: &std::path::Path) -> Vec<bool> {
    let picture = Pixmap::load_png(path).unwrap();
    picture
        .pixels()
        .iter()
        .map(|pixel| pixel.red() < 90)
        .collect()
}

#[test]
fn a_serial_arm_draws_what_the_embedded_one_draws() {
    unless_starved(|| {
        let bench = Bench::new();
        let (code, embedded) = bench.call(&["stroke", r#"{"scene":"short"}"#]);
        assert_eq!(code, 0, "{embedded:#}");
        let ink = bench.path("ink.png");
        let (mut sim, path) = bench.sim(&["--scene", "short", "--ink", ink.to_str().unwrap()]);
        let (code, drawn) = bench.call(&[
            "stroke",
            r#"{"scene":"short"}"#,
            "--port",
            &path,
            "--calibrated",
            "elsewhere",
            "--enable",
            "short",
        ]);
        assert_eq!(code, 0, "{drawn:#}");
        let calibration = drawn["calibration"].as_str().unwrap();
        assert!(calibration.contains("elsewhere"), "{calibration}");
        assert_eq!(drawn["arm"], "so101");
        assert!(
            drawn.get("deviation_mm_max").is_none(),
            "nobody looked at that paper: {drawn:#}"
        );
        assert_eq!(sim.terminate(), Some(0));
        let drawn_here = embedded["files"][1].as_str().unwrap();
        let (here, there) = (dark(std::path::Path::new(drawn_here)), dark(&ink));
        assert_eq!(here.len(), there.len());
        let inked = here.iter().filter(|dark| **dark).count();
        let other = here.iter().zip(&there).filter(|(a, b)| a != b).count();
        assert!(other * 4 < inked, "{other} of {inked} dark pixels differ");
    });
}

#[test]
fn a_serial_arm_moves_only_when_it_is_enabled_and_stays_itself() {
    unless_starved(|| {
        let bench = Bench::new();
        let (_sim, path) = bench.sim(&["--scene", "short"]);
        let elsewhere = ["--calibrated", "elsewhere"];
        let stroke = ["stroke", r#"{"scene":"short"}"#, "--port", &path];
        let (code, refused) = bench.call(&[&stroke[..], &elsewhere].concat());
        assert_eq!(
            (code, refused["code"].as_str()),
            (1, Some("needs_enabling")),
            "{refused:#}"
        );
    });
}
