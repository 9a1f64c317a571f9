//! Any bytes as a drawing of this kind: refused, or strokes of finite points.
#![no_main]

use libfuzzer_sys::fuzz_target;
use steadyhand::design::{Caps, load};

const CAPS: Caps = Caps {
    bytes_max: 1 << 16,
    strokes_max: 1000,
    points_max: 20_000,
    elements_max: 1000,
};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(design) = load("a.json", bytes, &CAPS) {
        let points = design.strokes.iter().flat_map(|stroke| &stroke.points_mm);
        assert!(
            points
                .into_iter()
                .all(|point| point.iter().all(|mm| mm.is_finite()))
        );
    }
});
