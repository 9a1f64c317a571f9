//! A sheet with a map of its heights: what the ends of a line say spares searches and changes no verdict.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use nalgebra::{Point3, Vector3};
use proptest::prelude::*;

use crate::check::judge_samples;
use crate::clearance::{lowest_over_sheet_m, way_to_sheet_m};
use crate::collision_world::CollisionWorld;
use plan::{SilentObserver, Trajectory};
use scene::file::SheetFile;
use scene::{
    LineBounds, Scene, SceneLibrary, SheetShape, Surface, SurfacePoint, SurfaceProjection,
};

/// The default scene on a sheet that is 2 mm higher at its corners than in its middle, and its plan.
pub(crate) static BOWL: LazyLock<(Arc<Scene>, Trajectory)> = LazyLock::new(|| {
    let mut scene = Scene::clone(&SceneLibrary::new(None).scene("default", None).unwrap());
    scene.surface = Surface::new(&bowl()).unwrap();
    let plan = plan::draw(&scene, &scene.rest_rad, &SilentObserver).unwrap();
    (Arc::new(scene), plan.trajectory)
});

fn bowl() -> SheetFile {
    let text = include_str!("../../../scenes/default.toml");
    let file: toml::Table = toml::from_str(text).unwrap();
    let mut sheet = file.get("sheet").unwrap().as_table().unwrap().clone();
    let steps = [8.0, 29.0, 50.0, 71.0, 92.0];
    let places = || {
        steps
            .iter()
            .flat_map(|y| steps.iter().map(move |x| [*x, *y]))
    };
    let square = |at: f64| ((at - 50.0) / 42.0_f64).powi(2);
    let list = |value: &dyn Fn([f64; 2]) -> f64| -> toml::Value {
        places().map(value).collect::<Vec<f64>>().into()
    };
    let heights = [
        ("x_mm", list(&|[x, _]| x)),
        ("y_mm", list(&|[_, y]| y)),
        ("height_mm", list(&|[x, y]| square(x) + square(y) - 1.5)),
    ];
    let heights = heights.map(|(key, list)| (key.to_owned(), list));
    sheet.insert("heights".to_owned(), toml::Table::from_iter(heights).into());
    sheet.try_into().unwrap()
}

/// A sheet that counts its projections, and one over which the ends of a line say nothing.
#[derive(Debug)]
struct Watched {
    sheet: Surface,
    says_bounds: bool,
    projections: Arc<AtomicUsize>,
}

impl SheetShape for Watched {
    fn at(&self, at_mm: [f64; 2]) -> SurfacePoint {
        self.sheet.at(at_mm)
    }

    fn project(&self, point_m: &Point3<f64>) -> SurfaceProjection {
        self.projections.fetch_add(1, Ordering::Relaxed);
        self.sheet.project(point_m)
    }

    fn line_bounds(&self, ends_m: [&Point3<f64>; 2]) -> Option<LineBounds> {
        self.sheet.line_bounds(ends_m).filter(|_| self.says_bounds)
    }

    fn uncertainty_mm(&self) -> f64 {
        self.sheet.uncertainty_m() * 1e3
    }
}

fn watched(says_bounds: bool) -> (Scene, Arc<AtomicUsize>) {
    let mut scene = Scene::clone(&BOWL.0);
    let projections = Arc::new(AtomicUsize::new(0));
    let size_mm = scene.surface.size_mm();
    let shape = Watched {
        sheet: scene.surface.clone(),
        says_bounds,
        projections: Arc::clone(&projections),
    };
    scene.surface = Surface::from_shape(Arc::new(shape), size_mm);
    (scene, projections)
}

static SEARCHED: LazyLock<Scene> = LazyLock::new(|| watched(false).0);

/// Returns a line about the middle of the sheet.
fn line(a: [f64; 3], b: [f64; 3]) -> (Point3<f64>, Point3<f64>) {
    let middle = BOWL.0.surface.at([50.0, 50.0]).point_m.coords;
    (Point3::from(a) + middle, Point3::from(b) + middle)
}

/// An end of a line, mostly near to the sheet.
fn end() -> impl Strategy<Value = [f64; 3]> {
    (-0.15..0.15_f64, -0.15..0.15_f64, -0.02..0.08_f64).prop_map(|(x, y, z)| [x, y, z])
}

proptest! {
    #[test]
    fn what_the_ends_say_changes_no_height(a in end(), b in end(), limit_m in 0.0..0.06_f64) {
        let (from, to) = line(a, b);
        let lowest = |scene: &Scene| lowest_over_sheet_m(scene, (&from, &to), limit_m);
        prop_assert_eq!(lowest(&BOWL.0), lowest(&SEARCHED));
    }

    #[test]
    fn a_line_is_not_at_the_sheet_before_it_has_gone_its_way(
        a in end(), b in end(), direction in prop::array::uniform3(-1.0..1.0_f64), off_m in 0.0..0.04_f64, exact: bool,
    ) {
        let enough_m = if exact { f64::INFINITY } else { 0.0 };
        let (from, to) = line(a, b);
        let way_m = way_to_sheet_m(&BOWL.0, (&from, &to), off_m, enough_m);
        prop_assume!(way_m > 0.0 && Vector3::from(direction).norm() > 0.1);
        let by = Vector3::from(direction).normalize() * (way_m - 1e-9);
        let moved = (&(from + by), &(to + by));
        prop_assert_eq!(lowest_over_sheet_m(&BOWL.0, moved, off_m), None);
    }
}

/// Beside the sheet the shoulder is lower than it, and may be: it is far from where the sheet ends.
#[test]
fn a_drawing_is_judged_with_few_looks_at_the_map() {
    let (scene, projections) = watched(true);
    let plan = &BOWL.1;
    let verdict = judge_samples(&scene, plan, || CollisionWorld::new(&scene));
    assert!(verdict.refusals.is_empty(), "{:?}", verdict.refusals);
    let each = projections.load(Ordering::Relaxed) / plan.samples.len();
    assert!(each < 16, "{each} projections for each sample");
}
