//! Computes the frame of a sheet on its plane from touches of its origin and of points along its axes.

use nalgebra::{Point3, Unit, Vector3};

use super::{FitError, PlaneFit, TouchRole};
use scene::Surface;

/// Largest relative difference of a length from its requested value.
const SCALE_MAX: f64 = 0.01;

/// Largest difference of the axes from a right angle: twice the effect of the allowed scale error.
pub(super) const SQUARE_MAX_RAD: f64 = 0.035;

/// Distances between the three points, by ruler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RulerDistances {
    /// From the origin to +x.
    pub x_mm: f64,
    /// From the origin to +y.
    pub y_mm: f64,
}

/// A sheet's place.
#[derive(Clone, Copy, Debug)]
pub struct SheetFrame {
    /// Its lower left corner, on the plane.
    pub origin_m: Point3<f64>,
    /// Points to the reader's right.
    pub x: Unit<Vector3<f64>>,
    /// Points upwards for the reader.
    pub y: Unit<Vector3<f64>>,
    /// Ratio of measured to expected length, along x and y.
    pub scale: [f64; 2],
    /// Difference of the touched axes from a right angle.
    pub square_rad: f64,
    /// Distance from the origin to the touched +x.
    pub length_m: f64,
}

/// Uncertainty of a sheet's frame on its plane, from its touches' distances to that plane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FrameSigma {
    /// The standard deviation of the origin along either axis.
    pub origin_m: f64,
    /// The standard deviation of the direction of x.
    pub turn_rad: f64,
}

impl SheetFrame {
    /// Returns a point's place along x and along y.
    pub(super) fn place_mm(&self, at_m: &Point3<f64>) -> [f64; 2] {
        let from_origin = at_m - self.origin_m;
        [&self.x, &self.y].map(|axis| axis.dot(&from_origin) * 1e3)
    }

    /// Returns its uncertainty, assuming that touches err as much along the plane as across it.
    #[must_use]
    pub fn sigma(&self, plane: &PlaneFit) -> FrameSigma {
        let sigma_m = plane.place_sigma_m;
        FrameSigma {
            origin_m: sigma_m,
            turn_rad: sigma_m.hypot(sigma_m) / self.length_m,
        }
    }
}

/// Computes the frame by Gram–Schmidt on the plane: x as touched, y at a right angle to it.
///
/// # Errors
/// Points that do not match the expected sheet: swapped, not at a right angle, or at other distances.
pub fn frame(
    [origin, x, y]: [&Point3<f64>; 3],
    expected: RulerDistances,
    plane: &PlaneFit,
) -> Result<SheetFrame, FitError> {
    let on_plane = |point: &Point3<f64>| point - plane.normal.scale(plane.height_m(point));
    let origin_m = on_plane(origin);
    let (along, up) = (on_plane(x) - origin_m, on_plane(y) - origin_m);
    let direction = |v: &Vector3<f64>| {
        Unit::try_new(*v, 1e-6).ok_or(FitError::OnALine {
            across_mm: 0.0,
            along_mm: 0.0,
        })
    };
    let (x, touched_y) = (direction(&along)?, direction(&up)?);
    if x.cross(&touched_y).dot(&plane.normal) < 0.0 {
        return Err(FitError::Swapped);
    }
    let square_rad = touched_y.angle(&x) - std::f64::consts::FRAC_PI_2;
    if square_rad.abs() > SQUARE_MAX_RAD {
        return Err(FitError::NotSquare((touched_y.angle(&x)).to_degrees()));
    }
    let scale = [
        scale("+x", along.norm(), expected.x_mm)?,
        scale("+y", up.norm(), expected.y_mm)?,
    ];
    Ok(SheetFrame {
        origin_m,
        y: Unit::new_normalize(plane.normal.cross(&x)),
        x,
        scale,
        square_rad,
        length_m: along.norm(),
    })
}

/// Returns the corners that show a sheet's axes: lower left, lower right and upper left.
pub(super) fn corners_of(surface: &Surface) -> [Point3<f64>; 3] {
    let [width, height] = surface.size_mm();
    let corner = |at: [f64; 2]| match surface.radius_mm() {
        Some(_) => surface.at(at).point_m,
        None => surface.flat() * Point3::new(at[0] / 1e3, at[1] / 1e3, 0.0),
    };
    [[0.0, 0.0], [width, 0.0], [0.0, height]].map(corner)
}

/// Returns the touched origin, +x and +y; a point that was touched repeatedly counts with the mean of its touches.
///
/// # Errors
/// One of them was not touched.
pub(super) fn touched_axes(
    touches: &(impl Iterator<Item = (TouchRole, Point3<f64>)> + Clone),
) -> Result<[Point3<f64>; 3], FitError> {
    let mean = |role: TouchRole, what| {
        let matching = touches.clone().filter(|(touched, _)| *touched == role);
        let (sum, count) = matching.fold((Vector3::zeros(), 0.0), |(sum, count), (_, at)| {
            (sum + at.coords, count + 1.0)
        });
        let not_touched = FitError::TooFew {
            what,
            have: 0,
            need: 1,
        };
        (count > 0.0)
            .then(|| (sum / count).into())
            .ok_or(not_touched)
    };
    Ok([
        mean(TouchRole::Origin, "the origin")?,
        mean(TouchRole::X, "+x")?,
        mean(TouchRole::Y, "+y")?,
    ])
}

pub(super) fn scale(axis: &'static str, length_m: f64, asked_mm: f64) -> Result<f64, FitError> {
    let measured_mm = length_m * 1e3;
    let ratio = measured_mm / asked_mm;
    if (ratio - 1.0).abs() <= SCALE_MAX {
        return Ok(ratio);
    }
    Err(FitError::Scale {
        axis,
        measured_mm,
        asked_mm,
        percent: (ratio - 1.0) * 100.0,
    })
}
