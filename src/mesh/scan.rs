//! Makes a surface of points alone, as a scanner or a depth camera sees them from the sheet's side.
//!
//! A place that the scan does not show, or not well enough, is left out: nothing can be drawn on it.

use nalgebra::Point3;

use super::scan_bins::{Cell, CellGrid, ScanBins};
use super::scan_fit::{KnownHeight, known_heights};
use super::weld::to_index;
use super::{FilePoints, MeshError, TRIANGLES_MAX};

/// Fewest points of a scan.
pub(crate) const POINTS_MIN: usize = 100;

/// Points for each place of the grid, and its finest and coarsest step.
const POINTS_EACH: f64 = 4.0;
const STEP_M: [f64; 2] = [0.0015, 0.01];

/// The largest uncertainty of a height and of a slope that is drawn on; the slope's is 5°.
pub(crate) const UNCERTAINTY_M_MAX: f64 = 5e-4;
const SLOPE_UNCERTAINTY_MAX: f64 = 0.0875;

/// What is known of a surface that was made of points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScanReport {
    /// Points of the scan around the sheet.
    pub points: usize,
    /// Points farther away, which are no part of the surface.
    pub beyond: usize,
    /// Points of the file without a place, such as pixels without a depth.
    pub unseen: usize,
    /// Distance between the places of the surface.
    pub step_mm: f64,
    /// The largest uncertainty of its height that was kept.
    pub uncertainty_mm: f64,
    /// Places within the scan that were left out.
    pub left_out: usize,
}

impl ScanReport {
    /// Returns a line about it, and one for each kind of points that were not used.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> + use<> {
        let made = format!(
            "a surface was made from {} points: one place every {:.1} mm, each accurate to {:.2} mm. {} places were left out",
            self.points, self.step_mm, self.uncertainty_mm, self.left_out
        );
        let beyond = format!(
            "{} points far from the sheet were left out, so the arm does not avoid what is there. Next: add `[[keep_outs]]` for other things that stand there",
            self.beyond
        );
        let unseen = format!("{} points without coordinates were left out", self.unseen);
        let left_out = [(self.beyond, beyond), (self.unseen, unseen)];
        let left_out = left_out.into_iter().filter(|(count, _)| *count > 0);
        [made].into_iter().chain(left_out.map(|(_, line)| line))
    }
}

/// Makes the surface within a rectangle of the sheet's plane. Points are metres in the sheet's frame, whose z points to the scanner.
///
/// # Errors
/// Too few points, or none of their places is known well enough.
pub(crate) fn surface(
    points: &[Point3<f64>],
    around_m: [[f64; 2]; 2],
) -> Result<(FilePoints, ScanReport), MeshError> {
    let [[left, lower], [right, upper]] = around_m;
    let is_near =
        |at: &&Point3<f64>| (left..=right).contains(&at.x) && (lower..=upper).contains(&at.y);
    let near: Vec<Point3<f64>> = points.iter().filter(is_near).copied().collect();
    if near.len() < POINTS_MIN {
        let points = near.len();
        return Err(MeshError::NoTriangle { points });
    }
    let bins = ScanBins::new(&near, around_m, step_m(&near, around_m));
    let cells = bins.shown();
    let is_well_known = |known: &KnownHeight| {
        known.uncertainty_m <= UNCERTAINTY_M_MAX && known.slope_uncertainty <= SLOPE_UNCERTAINTY_MAX
    };
    let known: Vec<Option<KnownHeight>> = known_heights(&bins, &cells)
        .into_iter()
        .map(|known| known.filter(is_well_known))
        .collect();
    let file = triangulated(&bins, &cells, &bins.by_cell(&cells, &known))?;
    if file.triangles.is_empty() {
        return Err(MeshError::Scan {
            points: near.len(),
            limit_mm: UNCERTAINTY_M_MAX * 1e3,
        });
    }
    let uncertainties = known.iter().flatten().map(|known| known.uncertainty_m);
    let report = ScanReport {
        points: near.len(),
        beyond: points.len() - near.len(),
        unseen: 0,
        step_mm: bins.step_m() * 1e3,
        uncertainty_mm: uncertainties.fold(0.0, f64::max) * 1e3,
        left_out: known.iter().filter(|known| known.is_none()).count(),
    };
    Ok((file, report))
}

/// Returns a step by which each place has some points, whose triangles are not too many.
fn step_m(points: &[Point3<f64>], around_m: [[f64; 2]; 2]) -> f64 {
    let coarse = ScanBins::new(points, around_m, STEP_M[1]);
    let shown_m2 = coarse.shown().len() as f64 * STEP_M[1] * STEP_M[1];
    let by_points = (POINTS_EACH * shown_m2 / points.len() as f64).sqrt();
    let [low_m, high_m] = around_m;
    let area_m2 = (high_m[0] - low_m[0]) * (high_m[1] - low_m[1]);
    let by_triangles = (3.0 * area_m2 / TRIANGLES_MAX as f64).sqrt();
    by_points.clamp(STEP_M[0], STEP_M[1]).max(by_triangles)
}

/// Returns two triangles for each four neighbours that are known.
fn triangulated(
    bins: &ScanBins,
    cells: &[Cell],
    heights: &CellGrid<KnownHeight>,
) -> Result<FilePoints, MeshError> {
    let mut file = FilePoints::default();
    let mut indices = bins.by_cell::<i64>(&[], &[]);
    for cell in cells {
        if let Some(known) = heights.get(*cell) {
            let [x, y] = bins.middle_m(*cell);
            indices.set(*cell, Some(i64::from(to_index(file.points.len()))));
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
        let known = corners.iter().filter_map(|cell| indices.get(*cell));
        let known: Vec<i64> = known.collect();
        if known.len() == corners.len() {
            file.add_face(&known)?;
        }
    }
    Ok(file)
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a failing test may panic"
)]
mod tests {
    use super::*;
    use crate::{CleanMesh, MeshAnchor, MeshPatch};
    use nalgebra::{Unit, Vector3};

    /// Half of the side of a scan, and of the sheet in its middle.
    const HALF_M: f64 = 0.045;
    const SHEET_HALF_MM: f64 = 25.0;
    const AROUND_M: [[f64; 2]; 2] = [[-0.2; 2], [0.2; 2]];

    fn random(seed: u32) -> f64 {
        let mixed = seed.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        let mixed = ((mixed >> ((mixed >> 28) + 4)) ^ mixed).wrapping_mul(277_803_737);
        f64::from((mixed >> 22) ^ mixed) / f64::from(u32::MAX)
    }

    /// A number of the standard normal distribution.
    fn normal(seed: u32) -> f64 {
        let [one, other] = [2 * seed, 2 * seed + 1].map(|seed| random(seed).max(1e-9));
        (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * other).cos()
    }

    type Height = fn(f64, f64) -> f64;

    /// A scan of a shape with so many points for each square millimetre, with noise and with points of a wall behind it.
    fn scan(height_m: Height, density_mm2: f64, noise_m: f64) -> Vec<Point3<f64>> {
        let count = (4.0 * HALF_M * HALF_M * 1e6 * density_mm2) as u32;
        let points = (0..count).map(|index| {
            let [x, y] = [3 * index, 3 * index + 1].map(|seed| HALF_M * (2.0 * random(seed) - 1.0));
            let off_m = noise_m * normal(index + 77_777_777);
            let behind_m = if index % 50 == 0 { 0.03 } else { 0.0 };
            Point3::new(x, y, height_m(x, y) + off_m - behind_m)
        });
        points.collect()
    }

    fn tilted(x: f64, y: f64) -> f64 {
        0.01 + 0.2 * x - 0.1 * y
    }

    fn bottle(x: f64, _: f64) -> f64 {
        (0.05_f64 * 0.05 - x * x).sqrt() - 0.05
    }

    fn ball(x: f64, y: f64) -> f64 {
        (0.08_f64 * 0.08 - x * x - y * y).sqrt() - 0.08
    }

    fn bump(x: f64, y: f64) -> f64 {
        0.1 * x + 0.004 * (-(x * x + y * y) / 0.0003).exp()
    }

    fn waves(x: f64, y: f64) -> f64 {
        0.0025 * (x / 0.012).sin() * (y / 0.014).cos() + 0.0006 * ((x + y) / 0.007).sin()
    }

    const SHAPES: [(&str, Height); 5] = [
        ("tilted", tilted),
        ("bottle", bottle),
        ("ball", ball),
        ("bump", bump),
        ("waves", waves),
    ];

    fn normal_of(height_m: Height, x: f64, y: f64) -> Unit<Vector3<f64>> {
        let by = 1e-6;
        let slope =
            |dx: f64, dy: f64| (height_m(x + dx, y + dy) - height_m(x - dx, y - dy)) / 2.0 / by;
        Unit::new_normalize(Vector3::new(-slope(by, 0.0), -slope(0.0, by), 1.0))
    }

    fn patch(file: &FilePoints) -> MeshPatch {
        let middle = MeshAnchor::Above { xy_m: [0.0; 2] };
        let clean = CleanMesh::new(file, 1.0, &middle).unwrap();
        let sheet = [[-SHEET_HALF_MM; 2], [SHEET_HALF_MM; 2]];
        MeshPatch::new(clean, &Vector3::x(), sheet).unwrap()
    }

    /// The largest distance of a surface's height from the truth in mm, and of its normal in degrees.
    fn worst(patch: &MeshPatch, height_m: Height) -> (f64, f64) {
        let steps = || (-20..=20).map(|n| f64::from(n) / 20.0 * SHEET_HALF_MM);
        let places = steps().flat_map(|x| steps().map(move |y| [x, y]));
        places.fold((0.0, 0.0), |(mm, deg), place| {
            let at = patch.at(place);
            let [x, y, z]: [f64; 3] = at.point_m.coords.into();
            let truth = normal_of(height_m, x, y);
            let off_mm = ((z - height_m(x, y)) * truth.z).abs() * 1e3;
            (
                off_mm.max(mm),
                at.normal.angle(&truth).to_degrees().max(deg),
            )
        })
    }

    /// Checks that a surface is as near to the truth as it says, and its normals within 5°.
    fn check(name: &str, points: &[Point3<f64>], height_m: Height) {
        let (file, report) = surface(points, AROUND_M).unwrap();
        let (off_mm, off_deg) = worst(&patch(&file), height_m);
        let said = format!("{name}: {off_mm:.3} mm, {off_deg:.2}°, {report:?}");
        assert!(off_mm <= report.uncertainty_mm && off_deg <= 5.0, "{said}");
        assert!(report.left_out * 20 < file.points.len(), "{said}");
    }

    #[test]
    fn a_scan_tells_heights_as_well_as_it_says_and_normals_within_5_degrees() {
        for density_mm2 in [0.7, 1.5, 6.0] {
            for (name, height_m) in SHAPES {
                let points = scan(height_m, density_mm2, 3e-4);
                check(&format!("{name}, {density_mm2}"), &points, height_m);
            }
        }
    }

    /// A depth camera matches patches of pixels: neighbours are off by nearly the same.
    #[test]
    fn noise_that_neighbours_share_is_no_shape() {
        for (name, height_m) in SHAPES {
            let mut points = scan(height_m, 6.0, 1e-4);
            for point in &mut points {
                let [column, row] = [point.x, point.y].map(|at| ((at + 0.1) / 0.001) as u32);
                point.z += 3e-4 * normal(column * 1000 + row);
            }
            check(name, &points, height_m);
        }
    }

    #[test]
    fn places_that_are_not_seen_or_too_noisy_are_left_out() {
        let from_hole_m = |x: f64, y: f64| (x - 0.015).hypot(y + 0.015);
        let mut points = scan(bump, 6.0, 2e-4);
        points.retain(|point| from_hole_m(point.x, point.y) > 0.008);
        let (file, _) = surface(&points, AROUND_M).unwrap();
        let in_hole = file
            .points
            .iter()
            .filter(|point| from_hole_m(point.x, point.y) < 0.005);
        assert_eq!(in_hole.count(), 0);
        // A board in noise, and waves with a point every 5 mm.
        for points in [scan(tilted, 6.0, 5e-3), scan(waves, 0.04, 3e-4)] {
            let made = surface(&points, AROUND_M);
            let left_out = made.map(|(file, report)| report.left_out > file.points.len());
            assert!(left_out.unwrap_or(true), "{} points", points.len());
        }
        assert!(surface(points.get(..90).unwrap(), AROUND_M).is_err());
        assert!(surface(&points, [[0.2; 2], [0.3; 2]]).is_err());
    }

    /// What lies beside an edge that the camera sees from above is no slope.
    #[test]
    fn an_edge_between_two_heights_is_left_out() {
        let step = |x: f64, _: f64| if x > 0.01 { 0.008 } else { 0.0 };
        let (file, report) = surface(&scan(step, 6.0, 3e-4), AROUND_M).unwrap();
        for point in &file.points {
            let off_mm = (point.z - step(point.x, point.y)).abs() * 1e3;
            assert!(off_mm <= report.uncertainty_mm, "{point} {report:?}");
        }
        assert!(report.left_out > 50, "{report:?}");
    }
}
