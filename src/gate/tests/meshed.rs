//! Distances from a mesh, by which the arm is judged.

use nalgebra::Point3;
use proptest::prelude::*;

use crate::clearance::{height_lower_bound_m, height_mm, lowest_over_sheet_m};
use scene::{Scene, SceneLibrary};
use std::sync::{Arc, LazyLock};

static BUMPY: LazyLock<Arc<Scene>> =
    LazyLock::new(|| SceneLibrary::new(None).scene("bumpy", None).unwrap());

proptest! {
    #[test]
    fn a_segment_over_a_mesh_is_as_low_as_its_points(
        a in prop::array::uniform3(-0.12..0.12_f64), b in prop::array::uniform3(-0.12..0.12_f64),
    ) {
        let middle = BUMPY.surface.at([50.0, 50.0]).point_m.coords;
        let (from, to) = (Point3::from(a) + middle, Point3::from(b) + middle);
        let points = (0..=2000).map(|i| from.lerp(&to, f64::from(i) / 2000.0));
        let heights = points.filter_map(|point| height_mm(&BUMPY, &point));
        let lowest = heights.fold(f64::INFINITY, f64::min) / 1e3;
        // A line may come below an open mesh around its edge, at a distance that is not looked at.
        prop_assume!(lowest > 0.0);
        let found = lowest_over_sheet_m(&BUMPY, (&from, &to), 1.0).unwrap();
        prop_assert!((found - lowest).abs() < 6e-4, "{found} {lowest}");
        prop_assert!(height_lower_bound_m(&BUMPY, &from, &to) <= lowest + 1e-9);
    }
}

/// Beyond the edge of a mesh there is nothing, however low.
#[test]
fn a_mesh_is_in_the_way_as_a_whole_and_not_beyond_its_edge() {
    let at = |place: [f64; 2], height_m: f64| {
        let at = BUMPY.surface.at(place);
        at.point_m + at.normal.scale(height_m)
    };
    let beside = at([-60.0, 50.0], -0.02);
    assert!(height_mm(&BUMPY, &beside).unwrap() > 40.0);
    let below = at([50.0, 50.0], -0.01);
    assert!(height_mm(&BUMPY, &below).unwrap() < -8.0);
    let over_edge = at([-8.0, 50.0], 0.005);
    assert!((height_mm(&BUMPY, &over_edge).unwrap() - 5.0).abs() < 0.5);
}
