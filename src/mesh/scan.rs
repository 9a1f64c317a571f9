//! Makes a surface of points alone, as a scanner or a depth camera sees them from the sheet's side.
//!
//! Around each place of a grid a plane is laid through the nearest points. How far they scatter about it says how well the
//! height is known there. A place with too few points, or too uncertain, is left out: nothing can be drawn on it.

use std::collections::HashMap;

use nalgebra::{Matrix3, Point3, Vector3};

use super::weld::to_index;
use super::{FilePoints, MeshError, TRIANGLES_MAX};

/// Fewest points of a scan.
pub(crate) const POINTS_MIN: usize = 100;

/// Points for each place of the grid, and its finest and coarsest step.
const POINTS_EACH: f64 = 4.0;
const STEP_M: [f64; 2] = [0.0015, 0.01];

/// Fewest points around a place, and farthest distance of their middle from it, in steps.
const NEAR_MIN: usize = 6;
const ASIDE_STEPS: f64 = 0.5;

/// Radius around a place in which points count, in steps.
const RADIUS_STEPS: f64 = 1.2;

/// Points farther from the median height than this multiple of the median distance belong to something else.
const STRAY: f64 = 6.0;
const STRAY_M_MIN: f64 = 5e-4;

/// Number of standard deviations that an uncertainty stands for, and the largest that is drawn on.
const SIGMAS: f64 = 3.0;
const UNCERTAINTY_M_MAX: f64 = 5e-4;

/// What is known of a surface that was made of points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScanReport {
    /// Points of the scan.
    pub points: usize,
    /// Distance between the places of the surface.
    pub step_mm: f64,
    /// The largest uncertainty of its height that was kept.
    pub uncertainty_mm: f64,
    /// Places within the scan that were left out.
    pub left_out: usize,
}

/// A place of the grid: its columns and rows from the origin.
type Cell = [i32; 2];

/// Makes the surface. Points are metres in the sheet's frame, whose z points to the scanner.
///
/// # Errors
/// Too few points, or none of their places is known well enough.
pub(crate) fn surface(points: &[Point3<f64>]) -> Result<(FilePoints, ScanReport), MeshError> {
    if points.len() < POINTS_MIN {
        return Err(MeshError::NoTriangle {
            points: points.len(),
        });
    }
    let step_m = step_m(points);
    let mut near: HashMap<Cell, Vec<Point3<f64>>> = HashMap::new();
    for point in points {
        near.entry(cell_of(point, step_m)).or_default().push(*point);
    }
    let mut cells: Vec<Cell> = near.keys().copied().collect();
    cells.sort_unstable();
    let heights = cells.iter().filter_map(|cell| {
        let known = height_at(*cell, step_m, &near)?;
        Some((*cell, known))
    });
    let heights: HashMap<Cell, KnownHeight> = heights.collect();
    let file = triangulated(&cells, &heights, step_m)?;
    let uncertainties = heights.values().map(|known| known.uncertainty_m);
    let report = ScanReport {
        points: points.len(),
        step_mm: step_m * 1e3,
        uncertainty_mm: uncertainties.fold(0.0, f64::max) * 1e3,
        left_out: cells.len() - heights.len(),
    };
    match file.triangles.is_empty() {
        true => Err(MeshError::Scan {
            points: points.len(),
            limit_mm: UNCERTAINTY_M_MAX * 1e3,
        }),
        false => Ok((file, report)),
    }
}

/// Returns a step by which each place has some points.
fn step_m(points: &[Point3<f64>]) -> f64 {
    let range = |axis: usize| {
        let along = points.iter().filter_map(|point| point.coords.get(axis));
        let low = along.clone().copied().fold(f64::INFINITY, f64::min);
        along.copied().fold(f64::NEG_INFINITY, f64::max) - low
    };
    let area_m2 = range(0) * range(1);
    let by_points = (POINTS_EACH * area_m2 / points.len() as f64).sqrt();
    let by_triangles = (3.0 * area_m2 / TRIANGLES_MAX as f64).sqrt();
    by_points.clamp(STEP_M[0], STEP_M[1]).max(by_triangles)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "`as` saturates, and a mesh is at most some metres long"
)]
fn cell_of(point: &Point3<f64>, step_m: f64) -> Cell {
    [point.x, point.y].map(|at| (at / step_m).round() as i32)
}

/// The height at a place.
struct KnownHeight {
    height_m: f64,
    uncertainty_m: f64,
}

/// Returns the height of a plane through the points around a place; `None` where they do not tell it.
fn height_at(
    cell: Cell,
    step_m: f64,
    near: &HashMap<Cell, Vec<Point3<f64>>>,
) -> Option<KnownHeight> {
    let at = cell.map(|index| f64::from(index) * step_m);
    let around = (-2..=2).flat_map(|up| (-2..=2).map(move |right| [cell[0] + right, cell[1] + up]));
    let all = around.filter_map(|cell| near.get(&cell)).flatten();
    let within =
        all.filter(|point| (point.x - at[0]).hypot(point.y - at[1]) <= RADIUS_STEPS * step_m);
    let within: Vec<Vector3<f64>> = within
        .map(|point| Vector3::new(point.x - at[0], point.y - at[1], point.z))
        .collect();
    let points = without_strays(within);
    let count = points.len() as f64;
    let middle = points.iter().sum::<Vector3<f64>>() / count;
    if points.len() < NEAR_MIN || middle.xy().norm() > ASIDE_STEPS * step_m {
        return None;
    }
    let row = |point: &Vector3<f64>| Vector3::new(1.0, point.x / step_m, point.y / step_m);
    let normal: Matrix3<f64> = points
        .iter()
        .map(|point| row(point) * row(point).transpose())
        .sum();
    let right: Vector3<f64> = points.iter().map(|point| row(point) * point.z).sum();
    let inverse = normal.try_inverse()?;
    let plane = inverse * right;
    let square: f64 = points
        .iter()
        .map(|point| (point.z - row(point).dot(&plane)).powi(2))
        .sum();
    let sigma_m = (square / (count - 3.0)).sqrt() * inverse.m11.max(0.0).sqrt();
    let known = KnownHeight {
        height_m: plane.x,
        uncertainty_m: SIGMAS * sigma_m,
    };
    (known.uncertainty_m <= UNCERTAINTY_M_MAX && known.height_m.is_finite()).then_some(known)
}

/// Leaves out points of something before or behind the surface.
fn without_strays(mut points: Vec<Vector3<f64>>) -> Vec<Vector3<f64>> {
    let median = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(0.0)
    };
    let mut heights: Vec<f64> = points.iter().map(|point| point.z).collect();
    let middle = median(&mut heights);
    let mut distances: Vec<f64> = heights
        .iter()
        .map(|height| (height - middle).abs())
        .collect();
    let most_m = (STRAY * median(&mut distances)).max(STRAY_M_MIN);
    points.retain(|point| (point.z - middle).abs() <= most_m);
    points
}

/// Returns two triangles for each four neighbours that are known.
fn triangulated(
    cells: &[Cell],
    heights: &HashMap<Cell, KnownHeight>,
    step_m: f64,
) -> Result<FilePoints, MeshError> {
    let mut file = FilePoints::default();
    let mut indices: HashMap<Cell, i64> = HashMap::new();
    for cell in cells {
        if let Some(known) = heights.get(cell) {
            let [x, y] = cell.map(|index| f64::from(index) * step_m);
            indices.insert(*cell, i64::from(to_index(file.points.len())));
            file.add_point([x, y, known.height_m])?;
        }
    }
    for [column, row] in cells {
        let corners = [
            [*column, *row],
            [column + 1, *row],
            [column + 1, row + 1],
            [*column, row + 1],
        ];
        let known: Vec<i64> = corners
            .iter()
            .filter_map(|cell| indices.get(cell).copied())
            .collect();
        if known.len() == corners.len() {
            file.add_face(&known)?;
        }
    }
    Ok(file)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    /// A scan of a bump on a tilted board of 60 by 60 mm, with noise and with points of a wall behind it.
    fn scan(count: u32, noise_m: f64, keeps: impl Fn(f64, f64) -> bool) -> Vec<Point3<f64>> {
        let random = |seed: u32| {
            let mixed = seed.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
            let mixed = ((mixed >> ((mixed >> 28) + 4)) ^ mixed).wrapping_mul(277_803_737);
            f64::from((mixed >> 22) ^ mixed) / f64::from(u32::MAX)
        };
        let points = (0..count).map(|index| {
            let [x, y] = [random(3 * index), random(3 * index + 1)].map(|part| 0.06 * part);
            let off = noise_m * (2.0 * random(3 * index + 2) - 1.0);
            let is_behind = index % 50 == 0;
            Point3::new(
                x,
                y,
                height_m(x, y) + off - if is_behind { 0.03 } else { 0.0 },
            )
        });
        points.filter(|point| keeps(point.x, point.y)).collect()
    }

    fn height_m(x: f64, y: f64) -> f64 {
        let square = (x - 0.03).powi(2) + (y - 0.03).powi(2);
        0.01 + 0.1 * x + 0.004 * (-square / 0.0003).exp()
    }

    #[test]
    fn a_scan_becomes_a_surface_that_is_as_good_as_it_says() {
        let points = scan(20_000, 3e-4, |_, _| true);
        let (file, report) = surface(&points).unwrap();
        let off_mm = |point: &Point3<f64>| (point.z - height_m(point.x, point.y)).abs() * 1e3;
        let inner = |point: &&Point3<f64>| {
            [point.x, point.y]
                .iter()
                .all(|at| (0.004..0.056).contains(at))
        };
        let worst_mm = file
            .points
            .iter()
            .filter(inner)
            .map(off_mm)
            .fold(0.0, f64::max);
        assert!(worst_mm <= report.uncertainty_mm, "{worst_mm} {report:?}");
        assert!(
            report.uncertainty_mm < 0.5 && file.triangles.len() > 500,
            "{report:?}"
        );
    }

    #[test]
    fn places_without_points_or_with_too_much_noise_are_left_out() {
        let is_seen = |x: f64, y: f64| (x - 0.045).hypot(y - 0.015) > 0.008;
        let (file, _) = surface(&scan(20_000, 2e-4, is_seen)).unwrap();
        let in_hole = |point: &Point3<f64>| !is_seen(point.x, point.y + 0.0);
        let far_in = file
            .points
            .iter()
            .filter(|point| in_hole(point))
            .filter(|point| (point.x - 0.045).hypot(point.y - 0.015) < 0.006);
        assert_eq!(far_in.count(), 0);
        let noisy = surface(&scan(20_000, 5e-3, |_, _| true));
        assert!(matches!(noisy, Err(MeshError::Scan { .. })) || noisy.unwrap().1.left_out > 200);
        assert!(surface(&scan(90, 1e-4, |_, _| true)).is_err());
    }
}
