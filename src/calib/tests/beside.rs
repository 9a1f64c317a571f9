//! Meshes that lie to the side of where their scene has them, found by touches of their slopes.

use nalgebra::{Isometry3, Point3, Translation3, UnitQuaternion, Vector3};

use super::Chance;
use crate::sideways_fit::{SidewaysFit, sideways};
use scene::{SceneLibrary, Surface};

/// A sheet of 100 mm on a mesh that rises by a function of its place in mm from the middle.
fn sheet_on(height_mm: impl Fn(f64, f64) -> f64) -> Surface {
    let at = |step: usize| 2.5 * step as f64 - 65.0;
    let (side, mut mesh) = (53, String::new());
    for index in 0..side * side {
        let (x, y) = (at(index % side), at(index / side));
        mesh += &format!("v {} {} {}\n", x + 50.0, y + 50.0, height_mm(x, y));
    }
    for index in (0..(side - 1) * side).filter(|index| index % side < side - 1) {
        let [a, b, c, d] = [1, 2, side + 2, side + 1].map(|by| index + by);
        mesh += &format!("f {a} {b} {c} {d}\n");
    }
    let folder = tempfile::tempdir().unwrap();
    let shipped = include_str!("../../../scenes/bumpy.toml");
    let scene = shipped.replace("bumpy.ply", "made.obj");
    std::fs::write(folder.path().join("bumpy.toml"), scene).unwrap();
    std::fs::write(folder.path().join("made.obj"), mesh).unwrap();
    let library = SceneLibrary::new(Some(folder.path().to_path_buf()));
    library.scene("bumpy", None).unwrap().surface.clone()
}

fn bumps(x: f64, y: f64) -> f64 {
    2.5 * (x / 12.0).sin() * (y / 14.0).cos() + 0.6 * ((x + y) / 7.0).sin()
}

/// Shift along x and y in mm, and turn about the sheet's middle in degrees.
type Moved = [f64; 3];

/// Touches a grid of places three times each on a mesh that lies to the side, 0.8 mm lower, and leans.
fn touches(
    surface: &Surface,
    [x, y, turn]: Moved,
    side: usize,
    chance: &mut Chance,
) -> Vec<Point3<f64>> {
    let middle = Translation3::new(0.05, 0.05, 0.0);
    let turned = UnitQuaternion::from_euler_angles(0.006, -0.009, turn.to_radians());
    let shift = Translation3::new(x / 1e3, y / 1e3, -8e-4);
    let frame = surface.flat() * shift * middle * turned * middle.inverse();
    let truth = surface.in_frame(&frame).unwrap();
    let step = |n: usize| 10.0 + 80.0 * n as f64 / (side - 1) as f64;
    let places = (0..side * side).map(|n| [step(n % side), step(n / side)]);
    let three = |at_mm: [f64; 2]| {
        let at = truth.at(at_mm).point_m;
        [(); 3].map(|()| at + chance.noise(5e-5))
    };
    places.flat_map(three).collect()
}

fn found(surface: &Surface, moved: Moved, side: usize, seed: u64) -> SidewaysFit {
    let touches = touches(surface, moved, side, &mut Chance(seed));
    sideways(surface, &touches, &Vector3::z()).unwrap()
}

/// Returns how far a found mesh's frame is from the scene's, in mm along its plane.
fn moved_mm(surface: &Surface, found: &SidewaysFit) -> f64 {
    let between: Isometry3<f64> = surface.flat().inverse() * found.surface.flat();
    let middle = between * Point3::new(0.05, 0.05, 0.0);
    (middle.x - 0.05).hypot(middle.y - 0.05) * 1e3 + between.rotation.angle() * 70.0
}

#[test]
fn a_mesh_with_relief_is_found_to_the_side() {
    let surface = sheet_on(bumps);
    for (seed, moved) in [[2.0, -1.5, 1.2], [-3.5, 2.5, -2.0], [0.0, 4.0, 0.0]]
        .into_iter()
        .enumerate()
    {
        let found = found(&surface, moved, 5, seed as u64);
        for (told, truth) in found.told.iter().zip(moved) {
            let (value, off) = told.unwrap();
            assert!((value - truth).abs() < 0.2, "{moved:?}: {found:?}");
            assert!(off < 0.9 && (value - truth).abs() < off, "{found:?}");
        }
    }
}

#[test]
fn a_mesh_that_lies_right_is_not_moved() {
    let surface = sheet_on(bumps);
    let moves =
        (0..10).filter(|seed| moved_mm(&surface, &found(&surface, [0.0; 3], 4, *seed)) > 1e-6);
    // Chance moves one in a hundred, and none far.
    assert!(moves.count() <= 1);
}

#[test]
fn a_place_that_the_relief_does_not_tell_is_left() {
    let flat = sheet_on(|_, _| 0.0);
    let ball = sheet_on(|x, y| (250.0_f64.powi(2) - x * x - y * y).sqrt() - 240.0);
    for surface in [&flat, &ball] {
        let found = found(surface, [2.0, 1.0, 1.0], 5, 3);
        assert!(found.told.iter().all(Option::is_none), "{found:?}");
        assert!(moved_mm(surface, &found) < 1e-6, "{found:?}");
    }
    // Ridges along y.
    let ridges = sheet_on(|x, _| 2.0 * (x / 11.0).sin());
    let found = found(&ridges, [1.5, 2.0, 0.0], 5, 4);
    let [x, y, _] = found.told;
    assert!((x.unwrap().0 - 1.5).abs() < 0.1 && y.is_none(), "{found:?}");
    let between = ridges.flat().inverse() * found.surface.flat();
    let middle = between * Point3::new(0.05, 0.05, 0.0);
    assert!((middle.y - 0.05).abs() < 5e-5, "{found:?}");
}

/// Ridges that repeat within reach fit at one as well as at the next.
#[test]
fn a_mesh_that_fits_at_several_places_is_left() {
    let ridges = sheet_on(|x, y| 0.8 * (x / 0.8).sin() + 2.0 * (y / 13.0).sin());
    let found = found(&ridges, [1.0, 0.0, 0.0], 5, 5);
    assert!(moved_mm(&ridges, &found) < 1e-6, "{found:?}");
}

#[test]
fn few_places_tell_no_place_to_the_side() {
    let surface = sheet_on(bumps);
    let found = found(&surface, [2.0, 0.0, 0.0], 3, 6);
    assert!(found.told.iter().all(Option::is_none), "{found:?}");
    assert!(moved_mm(&surface, &found) < 1e-6, "{found:?}");
}
