//! Homographies: projective maps from one plane to another.
#![expect(
    clippy::indexing_slicing,
    reason = "matrices of nine columns, and rows as many as were made"
)]

use nalgebra::{DMatrix, Matrix3, Vector3};

/// Fits a homography by least squares to at least four pairs of points; `None` if they do not determine
/// it: too few, on one line, or not finite.
pub(super) fn homography(pairs: &[([f64; 2], [f64; 2])]) -> Option<Matrix3<f64>> {
    let from = normalization(pairs.iter().map(|p| p.0))?;
    let to = normalization(pairs.iter().map(|p| p.1))?;
    // At least nine rows, so that four pairs, too, yield the last singular vector.
    let mut rows = DMatrix::zeros((2 * pairs.len()).max(9), 9);
    for (index, (a, b)) in pairs.iter().enumerate() {
        let (a, b) = (from * homogeneous(*a), to * homogeneous(*b));
        for column in 0..3 {
            rows[(2 * index, column)] = a[column];
            rows[(2 * index, column + 6)] = -b.x * a[column];
            rows[(2 * index + 1, column + 3)] = a[column];
            rows[(2 * index + 1, column + 6)] = -b.y * a[column];
        }
    }
    let svd = rows.try_svd(false, true, f64::EPSILON, 200)?;
    let (last, second) = two_smallest(svd.singular_values.as_slice())?;
    // Two solutions: the points are on a line.
    if svd.singular_values[second] < 1e-9 {
        return None;
    }
    let v_t = svd.v_t?;
    let h = Matrix3::from_fn(|row, column| v_t[(last, 3 * row + column)]);
    let h = to.try_inverse()? * h * from;
    let scale = h[(2, 2)];
    (h.iter().all(|v| v.is_finite()) && scale.abs() > 1e-12).then(|| h / scale)
}

/// Maps a point; `None` if it maps to infinity.
pub(super) fn map_point(h: &Matrix3<f64>, at: [f64; 2]) -> Option<[f64; 2]> {
    let to = h * homogeneous(at);
    (to.z.abs() > 1e-12).then(|| [to.x / to.z, to.y / to.z])
}

fn homogeneous([x, y]: [f64; 2]) -> Vector3<f64> {
    Vector3::new(x, y, 1.0)
}

/// Returns the map that moves the points' mean to 0 and scales their mean distance from it to 1.
fn normalization(points: impl Iterator<Item = [f64; 2]> + Clone) -> Option<Matrix3<f64>> {
    let count = points.clone().count();
    if count < 4 {
        return None;
    }
    let count = count as f64;
    let sum = (points.clone()).fold([0.0, 0.0], |s, p| [s[0] + p[0], s[1] + p[1]]);
    let mean = sum.map(|v| v / count);
    let distances = points.map(|p| (p[0] - mean[0]).hypot(p[1] - mean[1]));
    let mean_distance = distances.sum::<f64>() / count;
    if !(mean_distance.is_finite() && mean_distance > 1e-9) {
        return None;
    }
    let s = 1.0 / mean_distance;
    Some(Matrix3::new(
        s,
        0.0,
        -s * mean[0],
        0.0,
        s,
        -s * mean[1],
        0.0,
        0.0,
        1.0,
    ))
}

/// Returns the indices of the smallest and the second smallest value.
fn two_smallest(values: &[f64]) -> Option<(usize, usize)> {
    let mut order: Vec<(usize, f64)> = values.iter().copied().enumerate().collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    Some((order.first()?.0, order.get(1)?.0))
}
