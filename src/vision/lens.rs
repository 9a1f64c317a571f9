//! A camera's lens and place: from points in space to pixels and back.

use nalgebra::{Isometry3, Point3};
use serde::{Deserialize, Serialize};

/// A pinhole camera with lens distortion `k1 k2 p1 p2 k3`, as most calibration programs print it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LensModel {
    /// Size of the pictures that the model was calibrated for.
    pub size_px: [u32; 2],
    /// Focal lengths in x and y.
    pub focal_px: [f64; 2],
    /// Point of the picture on the optical axis.
    pub centre_px: [f64; 2],
    /// Distortion `k1 k2 p1 p2 k3`: two radial, two tangential and a third radial coefficient.
    pub distortion: [f64; 5],
}

/// A camera with a known pose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlacedCamera {
    /// Its lens.
    pub lens: LensModel,
    /// Transform from the camera's frame, with x to the right in the picture, y down and z away from it, to the arm's base.
    pub pose: Isometry3<f64>,
}

/// Nearest visible distance from the camera.
const NEAR_M: f64 = 1e-3;

/// Maximum number of iterations to undo the distortion; with a usual lens each gains at least a digit.
const ROUNDS: usize = 20;

/// Step, in focal lengths, below which the iterations end.
const STEP_MIN: f64 = 1e-12;

/// Largest distance from the optical axis, in focal lengths; beyond it the lens model folds over.
const RADIUS_MAX: f64 = 4.0;

impl LensModel {
    /// Returns the picture coordinates of a point in the camera's frame, which may lie beyond the picture's
    /// edges; `None` behind the camera, or too far off the axis for the lens model.
    #[must_use]
    pub fn project(&self, at_m: &Point3<f64>) -> Option<[f64; 2]> {
        if at_m.z < NEAR_M {
            return None;
        }
        let flat = [at_m.x / at_m.z, at_m.y / at_m.z];
        if norm_squared(flat) > RADIUS_MAX * RADIUS_MAX {
            return None;
        }
        let [x, y] = self.distort(flat);
        let at = [
            x * self.focal_px[0] + self.centre_px[0],
            y * self.focal_px[1] + self.centre_px[1],
        ];
        (at[0].is_finite() && at[1].is_finite()).then_some(at)
    }

    /// Returns the direction, as a point at distance 1, from which light comes to a place in the picture.
    #[must_use]
    pub fn ray(&self, [u, v]: [f64; 2]) -> [f64; 2] {
        let distorted = [
            (u - self.centre_px[0]) / self.focal_px[0],
            (v - self.centre_px[1]) / self.focal_px[1],
        ];
        let mut flat = distorted;
        for _ in 0..ROUNDS {
            let projected = self.distort(flat);
            let next = [
                flat[0] + distorted[0] - projected[0],
                flat[1] + distorted[1] - projected[1],
            ];
            let step_squared = norm_squared([next[0] - flat[0], next[1] - flat[1]]);
            // NaN ends the iteration, too: the last result is the best.
            if !(step_squared.is_finite() && norm_squared(next) < RADIUS_MAX * RADIUS_MAX) {
                return flat;
            }
            flat = next;
            if step_squared < STEP_MIN * STEP_MIN {
                break;
            }
        }
        flat
    }

    fn distort(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        let [k1, k2, p1, p2, k3] = self.distortion;
        let r2 = norm_squared([x, y]);
        let radial = 1.0 + r2 * (k1 + r2 * (k2 + r2 * k3));
        [
            x * radial + 2.0 * p1 * x * y + p2 * (r2 + 2.0 * x * x),
            y * radial + p1 * (r2 + 2.0 * y * y) + 2.0 * p2 * x * y,
        ]
    }
}

fn norm_squared([x, y]: [f64; 2]) -> f64 {
    x * x + y * y
}

impl PlacedCamera {
    /// Returns the picture coordinates of a point in the arm's base frame, if within the picture's edges.
    #[must_use]
    pub fn sees(&self, at_m: &Point3<f64>) -> Option<[f64; 2]> {
        let camera_m = self.pose.inverse_transform_point(at_m);
        let [x, y] = self.lens.project(&camera_m)?;
        let [width, height] = self.lens.size_px.map(f64::from);
        ((0.0..width).contains(&x) && (0.0..height).contains(&y)).then_some([x, y])
    }
}
