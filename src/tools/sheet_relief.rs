//! Light on a sheet that is not flat, for its pictures.

use nalgebra::{Unit, Vector3};

use picture::SheetRelief;
use scene::Surface;

/// Most points along the longer side, and least distance between two.
const POINTS_MAX: f64 = 160.0;
const STEP_MM_MIN: f64 = 0.5;

/// Factor by which slopes are exaggerated, so that low bumps show.
const EXAGGERATION: f64 = 3.0;

/// Returns the light from the upper left on a surface; `None` for a flat one.
pub(super) fn relief(surface: &Surface) -> Option<SheetRelief> {
    if surface.is_flat() {
        return None;
    }
    let size_mm = surface.size_mm();
    let step_mm = (size_mm[0].max(size_mm[1]) / POINTS_MAX).max(STEP_MM_MIN);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most as many as there may be"
    )]
    let size = size_mm.map(|side| (side / step_mm).ceil() as usize + 1);
    let place = |index: usize| {
        let (column, row) = (index % size[0], index / size[0]);
        [column as f64 * step_mm, row as f64 * step_mm]
    };
    let places = || (0..size[0] * size[1]).map(place);
    let normals: Vec<Option<Vector3<f64>>> = places()
        .map(|at_mm| {
            surface
                .is_on(at_mm)
                .then(|| surface.at(at_mm).normal.into_inner())
        })
        .collect();
    let up = Unit::try_new(normals.iter().flatten().sum::<Vector3<f64>>(), 1e-9)?;
    let right = surface.at(size_mm.map(|side| side / 2.0)).x;
    let right = Unit::try_new(right.into_inner() - up.scale(up.dot(&right)), 1e-9)?;
    let away = up.cross(&right);
    let sun = Vector3::new(-1.0, 1.0, 2.0).normalize();
    let light = |normal: Vector3<f64>| {
        let slope = [right.dot(&normal), away.dot(&normal)].map(|part| part * EXAGGERATION);
        let seen = Vector3::new(slope[0], slope[1], up.dot(&normal).max(0.0));
        seen.try_normalize(1e-9)
            .map_or(0.0, |seen| seen.dot(&sun).max(0.0))
    };
    Some(SheetRelief {
        step_mm,
        size,
        light: normals
            .into_iter()
            .map(|normal| normal.map(light))
            .collect(),
    })
}
