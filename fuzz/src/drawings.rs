//! Properties that hold of every drawing, whoever made it.

use steadyhand::design::{DesignCaps, load};

/// Limits of the fuzzed designs.
const CAPS: DesignCaps = DesignCaps {
    bytes_max: 1 << 16,
    strokes_max: 1000,
    points_max: 20_000,
    elements_max: 1000,
};

/// Any bytes as a drawing of the kind that its name says: refused, or strokes of finite points.
pub fn draw(name: &str, bytes: &[u8]) {
    if let Ok(design) = load(name, bytes, &CAPS) {
        let points = design.strokes.iter().flat_map(|stroke| &stroke.points_mm);
        assert!(
            points
                .into_iter()
                .all(|point| point.iter().all(|mm| mm.is_finite()))
        );
    }
}
