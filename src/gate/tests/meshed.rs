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

/// A flat sheet whose height may be off by as much as the number says.
#[derive(Debug)]
struct Uncertain(scene::Surface, f64);

impl scene::SheetShape for Uncertain {
    fn at(&self, at_mm: [f64; 2]) -> scene::SurfacePoint {
        self.0.at(at_mm)
    }

    fn project(&self, point_m: &Point3<f64>) -> scene::SurfaceProjection {
        self.0.project(point_m)
    }

    fn uncertainty_mm(&self) -> f64 {
        self.1
    }
}

#[test]
fn the_arm_keeps_off_a_surface_by_as_much_more_as_it_is_uncertain() {
    let gaps = |uncertainty_mm: f64| {
        let library = SceneLibrary::new(None);
        let mut scene = Scene::clone(&library.scene("default", None).unwrap());
        let size_mm = scene.surface.size_mm();
        let shape = Uncertain(scene.surface.clone(), uncertainty_mm);
        scene.surface = scene::Surface::from_shape(Arc::new(shape), size_mm);
        let mut low = scene.ready_rad;
        let body = crate::collision_body::CollisionBody::new(&scene);
        for step in 0..400 {
            low = low.map(|joint, at| if joint == 1 { at + 0.002 } else { at });
            let near = body.over_sheet(&body.pose(&low));
            if !near.is_empty() {
                return step;
            }
        }
        400
    };
    assert!(
        gaps(2.0) < gaps(0.0) && gaps(0.0) < 400,
        "{} {}",
        gaps(2.0),
        gaps(0.0)
    );
}
