//! Fits a height and a slope to the points of a scan around a place, and says how well they are known.
//!
//! Each fit is a quadratic in a round window that weighs near points most. A wide window averages noise away, and a narrow one
//! follows the shape. The window of a place is the widest whose fit agrees with those of all narrower ones within their noise.

use nalgebra::{Matrix6, Vector3, Vector6};

use super::scan_bins::{Cell, ScanBins};

/// Radii of windows, in steps.
const RADII_STEPS: [f64; 4] = [2.5, 3.5, 5.0, 7.0];

/// Fewest places with points in a window: a quadratic has six coefficients.
const BINS_MIN: usize = 9;

/// Number of standard deviations that an uncertainty stands for, and by which fits that agree may each be off.
const SIGMAS: f64 = 3.0;

/// A height and a slope, and how well they are known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownHeight {
    pub(crate) height_m: f64,
    pub(crate) uncertainty_m: f64,
    /// Uncertainty of the slope, along the axis in which it is worse.
    pub(crate) slope_uncertainty: f64,
}

/// A quadratic in a window.
struct WindowFit {
    /// Height, and slopes along x and y in metres a step.
    values: Vector3<f64>,
    /// Standard deviations of the values for points that scatter by 1.
    sigmas: Vector3<f64>,
    /// Standard deviation of a point from the quadratic.
    scatter_m: f64,
}

/// Returns what is known at each cell; `None` where the points do not tell it.
pub(crate) fn known_heights(bins: &ScanBins, cells: &[Cell]) -> Vec<Option<KnownHeight>> {
    let narrow: Vec<Option<WindowFit>> = cells
        .iter()
        .map(|cell| fit(bins, *cell, RADII_STEPS[0]))
        .collect();
    let noise_m = median(narrow.iter().flatten().map(|fit| fit.scatter_m).collect());
    let widths: Vec<Option<usize>> = cells
        .iter()
        .zip(&narrow)
        .map(|(cell, narrow)| width(bins, *cell, narrow.as_ref()?, noise_m))
        .collect();
    let widths = bins.by_cell(cells, &widths);
    // Windows that jump from place to place would leave steps.
    let least: Vec<Option<usize>> = cells
        .iter()
        .map(|cell| widths.around(*cell).min())
        .collect();
    let least = bins.by_cell(cells, &least);
    let radius = |cell: &Cell| {
        let around: Vec<usize> = least.around(*cell).collect();
        let sum: f64 = around.iter().filter_map(|at| RADII_STEPS.get(*at)).sum();
        (!around.is_empty()).then(|| sum / around.len() as f64)
    };
    let known = |cell: &Cell| {
        let fit = fit(bins, *cell, radius(cell)?)?;
        let known = fit.sigmas * (SIGMAS * fit.scatter_m.max(noise_m));
        Some(KnownHeight {
            height_m: fit.values.x,
            uncertainty_m: known.x,
            slope_uncertainty: known.y.max(known.z) / bins.step_m(),
        })
    };
    cells.iter().map(known).collect()
}

/// Returns the widest window of a place that agrees with all narrower ones, of which `narrow` is the narrowest.
fn width(bins: &ScanBins, cell: Cell, narrow: &WindowFit, noise_m: f64) -> Option<usize> {
    let interval = |fit: &WindowFit| {
        let half = fit.sigmas * (SIGMAS * noise_m);
        (fit.values - half, fit.values + half)
    };
    let (mut low, mut high) = interval(narrow);
    let mut widest = 0;
    for (index, radius) in RADII_STEPS.iter().enumerate().skip(1) {
        let (lower, upper) = interval(&fit(bins, cell, *radius)?);
        (low, high) = (low.sup(&lower), high.inf(&upper));
        if low.iter().zip(high.iter()).any(|(low, high)| low > high) {
            break;
        }
        widest = index;
    }
    Some(widest)
}

/// Fits a quadratic around a cell.
fn fit(bins: &ScanBins, cell: Cell, radius_steps: f64) -> Option<WindowFit> {
    let (mut normal, mut square) = (Matrix6::zeros(), Matrix6::zeros());
    let (mut right, mut heights, mut total, mut count) = (Vector6::zeros(), 0.0, 0.0, 0_usize);
    let (middle_m, per_m) = (bins.middle_height_m(cell)?, 1.0 / bins.step_m());
    for bin in bins.within(cell, radius_steps) {
        let (row, height_m) = (bin.row(cell, per_m), bin.height_m - middle_m);
        let near = 1.0 - (row.y * row.y + row.z * row.z) / (radius_steps * radius_steps);
        if near <= 0.0 {
            continue;
        }
        let weight = near * bin.count;
        let weighted = row * weight;
        normal += weighted * row.transpose();
        square += weighted * row.transpose() * near;
        right += weighted * height_m;
        heights += weight * height_m * height_m;
        total += near;
        count += 1;
    }
    let inverse = normal.try_inverse().filter(|_| count >= BINS_MIN)?;
    let solved = inverse * right;
    let spread = inverse * square * inverse;
    let sigmas =
        Vector3::new(spread.m11, spread.m22, spread.m33).map(|value| value.max(0.0).sqrt());
    let left = (heights - solved.dot(&right)).max(0.0);
    let free = total * (1.0 - 6.0 / count as f64);
    let values = Vector3::new(solved.x + middle_m, solved.y, solved.z);
    let known = WindowFit {
        values,
        sigmas,
        scatter_m: (left / free).sqrt(),
    };
    let is_finite = known.scatter_m.is_finite() && values.iter().all(|value| value.is_finite());
    is_finite.then_some(known)
}

/// Returns the median; 0 of nothing.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    let middle = values.len() / 2;
    match middle < values.len() {
        true => *values.select_nth_unstable_by(middle, f64::total_cmp).1,
        false => 0.0,
    }
}
