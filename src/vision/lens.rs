//! A camera's lens and place: from points in space to pixels and back.

use nalgebra::{Isometry3, Point3};
use serde::{Deserialize, Serialize};

/// A pinhole with a lens that bends: `k1 k2 p1 p2 k3`, as most calibration programs print them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LensModel {
    /// The size of the pictures that it is known for.
    pub size_px: [u32; 2],
    /// Focal lengths across and down.
    pub focal_px: [f64; 2],
    /// Point of the picture on the optical axis.
    pub centre_px: [f64; 2],
    /// Radial, tangential and radial again.
    pub distortion: [f64; 5],
}

/// A lens that stands somewhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlacedCamera {
    /// Its lens.
    pub lens: LensModel,
    /// From its own frame, x to the right in the picture, y down, z away from it, to the arm's base.
    pub stands: Isometry3<f64>,
}

/// Nearer than this nothing is seen.
const NEAR_M: f64 = 1e-3;

/// Rounds of undoing the lens; each gains a digit and more where the lens is a usual one.
const ROUNDS: usize = 20;

/// A shorter step than this, in focal lengths, ends them.
const STEP_MIN: f64 = 1e-12;

/// Largest distance from the middle, in focal lengths; beyond it the lens model folds over.
const ASIDE_MAX: f64 = 4.0;

impl LensModel {
    /// Returns the picture coordinates of a point in the camera's own frame; `None` behind the camera, or
    /// too far aside for the lens model. They may lie beyond the picture's edges.
    #[must_use]
    pub fn project(&self, at_m: &Point3<f64>) -> Option<[f64; 2]> {
        if at_m.z < NEAR_M {
            return None;
        }
        let flat = [at_m.x / at_m.z, at_m.y / at_m.z];
        if square(flat) > ASIDE_MAX * ASIDE_MAX {
            return None;
        }
        let [x, y] = self.bend(flat);
        let at = [
            x * self.focal_px[0] + self.centre_px[0],
            y * self.focal_px[1] + self.centre_px[1],
        ];
        (at[0].is_finite() && at[1].is_finite()).then_some(at)
    }

    /// The direction, at distance 1, from which light comes to this place of the picture.
    #[must_use]
    pub fn ray(&self, [u, v]: [f64; 2]) -> [f64; 2] {
        let bent = [
            (u - self.centre_px[0]) / self.focal_px[0],
            (v - self.centre_px[1]) / self.focal_px[1],
        ];
        let mut flat = bent;
        for _ in 0..ROUNDS {
            let again = self.bend(flat);
            let next = [flat[0] + bent[0] - again[0], flat[1] + bent[1] - again[1]];
            let step2 = square([next[0] - flat[0], next[1] - flat[1]]);
            // NaN, too, ends it: what was found before is the best there is.
            if !(step2.is_finite() && square(next) < ASIDE_MAX * ASIDE_MAX) {
                return flat;
            }
            flat = next;
            if step2 < STEP_MIN * STEP_MIN {
                break;
            }
        }
        flat
    }

    fn bend(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        let [k1, k2, p1, p2, k3] = self.distortion;
        let r2 = square([x, y]);
        let radial = 1.0 + r2 * (k1 + r2 * (k2 + r2 * k3));
        [
            x * radial + 2.0 * p1 * x * y + p2 * (r2 + 2.0 * x * x),
            y * radial + p1 * (r2 + 2.0 * y * y) + 2.0 * p2 * x * y,
        ]
    }
}

fn square([x, y]: [f64; 2]) -> f64 {
    x * x + y * y
}

impl PlacedCamera {
    /// Returns the picture coordinates of a point of the arm's base frame, if within the picture's edges.
    #[must_use]
    pub fn sees(&self, at_m: &Point3<f64>) -> Option<[f64; 2]> {
        let own_m = self.stands.inverse_transform_point(at_m);
        let [x, y] = self.lens.project(&own_m)?;
        let [width, height] = self.lens.size_px.map(f64::from);
        ((0.0..width).contains(&x) && (0.0..height).contains(&y)).then_some([x, y])
    }
}
