//! Offset of a sheet from its taught pose.

use nalgebra::{Isometry3, Point3, UnitQuaternion, Vector3};
use serde::Serialize;

/// Offset of a sheet from its taught pose to its observed one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SheetOffset {
    /// Largest displacement of a corner.
    pub mm: f64,
    /// Angle of rotation about any axis.
    pub deg: f64,
    /// Displacement of the centre along the taught x and y.
    pub along_mm: [f64; 2],
    /// Displacement of the centre off the taught plane; positive towards the reader.
    pub height_mm: f64,
    /// Rotation within the sheet's plane, counter-clockwise.
    pub turn_deg: f64,
    /// Tilt of the sheet's plane against the taught one.
    pub tilt_deg: f64,
}

/// Returns the offset of a sheet of a given size. Both poses map its frame, at its lower left corner with z
/// towards the reader, to the same reference frame, in m.
#[must_use]
pub fn sheet_offset(
    taught: &Isometry3<f64>,
    now: &Isometry3<f64>,
    [width, height]: [f64; 2],
) -> SheetOffset {
    let at = |x: f64, y: f64| Point3::new(width * x / 1e3, height * y / 1e3, 0.0);
    let motion = taught.inverse() * now;
    let distances = [at(0.0, 0.0), at(1.0, 0.0), at(1.0, 1.0), at(0.0, 1.0)]
        .map(|corner| (motion * corner - corner).norm() * 1e3);
    let centre = at(0.5, 0.5);
    let shift = (motion * centre - centre) * 1e3;
    let normal = motion.rotation * Vector3::z();
    let upright = UnitQuaternion::rotation_between(&normal, &Vector3::z())
        .unwrap_or_else(UnitQuaternion::identity);
    let x = upright * (motion.rotation * Vector3::x());
    SheetOffset {
        mm: distances.into_iter().fold(0.0, f64::max),
        deg: motion.rotation.angle().to_degrees(),
        along_mm: [shift.x, shift.y],
        height_mm: shift.z,
        turn_deg: x.y.atan2(x.x).to_degrees(),
        tilt_deg: normal.angle(&Vector3::z()).to_degrees(),
    }
}
