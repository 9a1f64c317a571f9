//! Drawing surface: a sheet on a shape in the arm's base frame.
//!
//! Planning, the gate and pictures use only the [`SheetShape`] trait. A new shape needs an
//! implementation and a key in the scene file.

use std::fmt;
use std::sync::Arc;

use nalgebra::{Isometry3, Point3, Rotation3, Translation3, Unit, UnitQuaternion, Vector3};

use super::file::{Lay, SheetFile};
use super::height_map::{HeightMap, MappedSheet};
use super::mesh_sheet::MeshSheet;
use super::scene_fault::SceneFault;
use base::plane::{along, distance, pieces};
use base::units::Finite;
use mesh::MeshPatch;

/// Shape under a sheet. Coordinates on it are millimetres from the sheet's lower left corner, x to the right,
/// y up.
pub trait SheetShape: fmt::Debug + Send + Sync {
    /// Returns the surface point at a point of the sheet. Beyond the edges it is on the shape's continuation.
    fn at(&self, at_mm: [f64; 2]) -> SurfacePoint;

    /// Projects a point onto the nearest point of the shape. Heights of two points over it differ by
    /// at most their distance, and no height is more than the distance from the shape: the gate relies
    /// on that.
    fn project(&self, point_m: &Point3<f64>) -> SurfaceProjection;

    /// Returns what the ends of a straight line say of all of it; `None` for a shape over which places do not run straight.
    fn line_bounds(&self, _ends_m: [&Point3<f64>; 2]) -> Option<LineBounds> {
        None
    }

    /// Returns the radius that it is rolled to; `None` if it is not rolled.
    fn radius_mm(&self) -> Option<f64> {
        None
    }

    /// Returns the same shape rolled to another radius, touching the flat sheet `flat` along its
    /// centre line; `None` if it is not rolled.
    fn rolled(&self, _flat: &Isometry3<f64>, _radius_mm: f64) -> Option<Arc<dyn SheetShape>> {
        None
    }

    /// Returns whether points on it and heights over it change linearly along every straight line.
    fn is_flat(&self) -> bool {
        false
    }

    /// Returns whether exactly one point of it lies at a point of the sheet.
    fn is_on(&self, _at_mm: [f64; 2]) -> bool {
        true
    }

    /// Returns by how much its height may be off.
    fn uncertainty_mm(&self) -> f64 {
        0.0
    }

    /// Returns the pose of the sheet that it lies in as it is: `origin_m`, `x_axis` and `y_axis` of a scene file; `None` if it has
    /// another from its own shape.
    fn frame(&self) -> Option<&Isometry3<f64>> {
        None
    }

    /// Returns the same mesh with its sheet in another pose; `None` for any other shape.
    fn in_frame(&self, _frame: &Isometry3<f64>) -> Option<Arc<dyn SheetShape>> {
        None
    }

    /// Returns the heights over its plane that were touched; `None` for any other sheet.
    fn heights(&self) -> Option<&HeightMap> {
        None
    }
}

/// A sheet on its shape.
#[derive(Clone, Debug)]
pub struct Surface {
    shape: Arc<dyn SheetShape>,
    size_mm: [f64; 2],
}

/// A point of the surface.
#[derive(Clone, Copy, Debug)]
pub struct SurfacePoint {
    /// Position in the arm's base frame.
    pub point_m: Point3<f64>,
    /// Outward normal.
    pub normal: Unit<Vector3<f64>>,
    /// Direction of increasing x.
    pub x: Unit<Vector3<f64>>,
    /// Direction from the surface along which a tool is held: the normal, but for small bumps.
    pub hold: Unit<Vector3<f64>>,
}

/// A point in space projected onto the surface.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SurfaceProjection {
    /// The nearest point of the (endless) surface.
    pub at_mm: [f64; 2],
    /// Height over the surface; negative below it.
    pub height_mm: f64,
    /// Height over a shape that is an obstacle as a whole and nothing beyond it; beyond its edges the
    /// distance from it. `None` if the sheet and a border around it are the obstacle.
    pub obstacle_mm: Option<f64>,
}

/// A straight line in space over a surface, as its ends tell.
#[derive(Clone, Copy, Debug)]
pub struct LineBounds {
    /// The ends projected onto the surface. All between is projected onto the straight line from one to the other, at no greater
    /// distances than in space.
    pub ends_at_mm: [[f64; 2]; 2],
    /// Height that no point of the line is below.
    pub height_mm: f64,
}

/// Distortion of a line on a surface.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SurfaceDistortion {
    /// The largest ratio of a stretch's length on the surface to its length on the sheet, or of
    /// the sheet's to the surface's; 1 where nothing is stretched.
    pub stretch: f64,
    /// Place of that stretch.
    pub stretched_at_mm: [f64; 2],
    /// Largest turn of the surface per millimetre of line.
    pub turn_rad_mm: f64,
    /// Place of that turn.
    pub turned_at_mm: [f64; 2],
    /// First place at which no point of the surface lies, or several do.
    pub off_at_mm: Option<[f64; 2]>,
}

const RIGHT_ANGLE_TOLERANCE: f64 = 1e-3;
/// Distance between samples of a line.
const SAMPLE_MM: f64 = 0.5;
/// Shortest stretch whose ratio is meaningful.
const SAMPLE_MM_MIN: f64 = 1e-3;
const SAMPLES_MAX: usize = 100_000;
/// Rounds by which a foot is found, and the least rise of a mesh's normal over its sheet there: 70° of slope.
const FOOT_ROUNDS: usize = 6;
const FOOT_RISE_MIN: f64 = 0.35;

impl Surface {
    /// Creates a sheet from its file.
    ///
    /// # Errors
    /// The value that is wrong, and what it must be.
    pub fn new(file: &SheetFile) -> Result<Self, SceneFault> {
        let (plane, size_mm) = FlatSheet::of_file(file)?;
        let heights = HeightMap::in_sheet(file)?;
        let shape: Arc<dyn SheetShape> = match (file.cylinder_radius_mm, heights) {
            (None, None) => Arc::new(plane),
            (None, Some(map)) => Arc::new(MappedSheet::new(plane.pose(), map)),
            (Some(_), Some(_)) => return Err(SceneFault::MappedShape),
            (Some(radius), None) => Arc::new(CylindricalSheet::new(
                plane,
                radius.get(),
                size_mm,
                file.lay,
            )?),
        };
        Ok(Self::from_shape(shape, size_mm))
    }

    /// Creates a sheet on a mesh that lies in its frame.
    ///
    /// # Errors
    /// The value that is wrong, and what it must be.
    pub fn on_mesh(file: &SheetFile, patch: Arc<MeshPatch>) -> Result<Self, SceneFault> {
        let (plane, size_mm) = FlatSheet::of_file(file)?;
        if file.cylinder_radius_mm.is_some() || file.lay != Lay::default() {
            return Err(SceneFault::TwoShapes);
        }
        if HeightMap::in_sheet(file)?.is_some() {
            return Err(SceneFault::MappedShape);
        }
        let shape = MeshSheet::new(patch, plane.pose());
        Ok(Self::from_shape(Arc::new(shape), size_mm))
    }

    /// Creates a sheet of a size on a shape.
    #[must_use]
    pub fn from_shape(shape: Arc<dyn SheetShape>, size_mm: [f64; 2]) -> Self {
        Self { shape, size_mm }
    }

    /// Returns its width and height.
    #[must_use]
    pub fn size_mm(&self) -> [f64; 2] {
        self.size_mm
    }

    /// Returns the radius that it is rolled to; `None` for a plane.
    #[must_use]
    pub fn radius_mm(&self) -> Option<f64> {
        self.shape.radius_mm()
    }

    /// Returns the pose of a mesh's sheet, in whose frame the mesh lies; `None` for any other shape.
    #[must_use]
    pub fn mesh_frame(&self) -> Option<&Isometry3<f64>> {
        self.shape.frame().filter(|_| self.heights().is_none())
    }

    /// Returns the same mesh with its sheet in another pose; `None` for any other shape.
    #[must_use]
    pub fn in_frame(&self, frame: &Isometry3<f64>) -> Option<Self> {
        let shape = self.shape.in_frame(frame)?;
        Some(Self::from_shape(shape, self.size_mm))
    }

    /// Returns a point less by the height of a mesh under it, as if the sheet were its plane; `None` where [`Self::foot_on_mesh`] is.
    #[must_use]
    pub fn over_plane(&self, point_m: &Point3<f64>) -> Option<Point3<f64>> {
        let (frame, foot) = (self.mesh_frame()?, self.foot_on_mesh(point_m)?);
        let rise_m = frame.inverse_transform_point(&foot).z;
        Some(point_m - frame.rotation * Vector3::z() * rise_m)
    }

    /// Returns the foot of a point on a mesh along the normal of its sheet; `None` for any other shape, and where it has none.
    #[must_use]
    pub fn foot_on_mesh(&self, point_m: &Point3<f64>) -> Option<Point3<f64>> {
        let up = self.mesh_frame()?.rotation * Vector3::z();
        let mut foot = *point_m;
        for _ in 0..FOOT_ROUNDS {
            let projected = self.project(&foot);
            let rise = self.at(projected.at_mm).normal.dot(&up);
            let down_m = projected.height_mm / 1e3 / rise;
            if rise < FOOT_RISE_MIN || !down_m.is_finite() {
                return None;
            }
            foot -= up.scale(down_m);
        }
        Some(foot)
    }

    /// Returns by how much its height may be off, in metres. The arm keeps off by as much more.
    #[must_use]
    pub fn uncertainty_m(&self) -> f64 {
        self.shape.uncertainty_mm() / 1e3
    }

    /// Returns the heights over its plane that were touched, if it has a map of them.
    #[must_use]
    pub fn heights(&self) -> Option<&HeightMap> {
        self.shape.heights()
    }

    /// Returns whether a point lies on the sheet, its edges included.
    #[must_use]
    pub fn holds(&self, [x, y]: [f64; 2]) -> bool {
        let [width, height] = self.size_mm;
        (0.0..=width).contains(&x) && (0.0..=height).contains(&y)
    }

    /// Returns the surface point at a point of the sheet. Beyond the edges it is on the surface's continuation.
    #[must_use]
    pub fn at(&self, at_mm: [f64; 2]) -> SurfacePoint {
        self.shape.at(at_mm)
    }

    /// Returns whether points on it and heights over it change linearly along every straight line.
    #[must_use]
    pub fn is_flat(&self) -> bool {
        self.shape.is_flat()
    }

    /// Returns whether exactly one point of it lies at a point of the sheet.
    #[must_use]
    pub fn is_on(&self, at_mm: [f64; 2]) -> bool {
        self.shape.is_on(at_mm)
    }

    /// Returns the pose of a flat sheet in the arm's base frame: its lower left corner with x to
    /// the right, y up and z towards the reader; `None` if it is not flat.
    #[must_use]
    pub fn flat_pose(&self) -> Option<Isometry3<f64>> {
        self.is_flat().then(|| self.flat())
    }

    /// Returns the pose of the flat sheet that touches this one along its centre line, of the plane under a map of heights, or of
    /// the frame of a mesh: `origin_m`, `x_axis` and `y_axis` of a scene file.
    #[must_use]
    pub fn flat(&self) -> Isometry3<f64> {
        self.flat_along(0.0, 0.0)
    }

    /// Returns that pose after the sheet is moved along itself, to the right and up.
    #[must_use]
    pub fn flat_along(&self, right_mm: f64, up_mm: f64) -> Isometry3<f64> {
        if let Some(frame) = self.shape.frame() {
            return frame * Translation3::new(right_mm / 1e3, up_mm / 1e3, 0.0);
        }
        let half_mm = self.size_mm[0] / 2.0;
        let centre = self.at([half_mm + right_mm, up_mm]);
        let corner = centre.point_m - centre.x.scale(half_mm / 1e3);
        pose(&corner, &centre.x, &centre.normal)
    }

    /// Returns the same sheet rolled to this radius, touching the flat sheet `flat` along its
    /// centre line; `None` if it is not rolled.
    #[must_use]
    pub fn rolled(&self, flat: &Isometry3<f64>, radius_mm: f64) -> Option<Self> {
        let shape = self.shape.rolled(flat, radius_mm)?;
        Some(Self::from_shape(shape, self.size_mm))
    }

    /// Projects a point onto the surface.
    #[must_use]
    pub fn project(&self, point_m: &Point3<f64>) -> SurfaceProjection {
        self.shape.project(point_m)
    }

    /// Returns what the ends of a straight line say of all of it, if they say anything.
    #[must_use]
    pub fn line_bounds(&self, ends_m: [&Point3<f64>; 2]) -> Option<LineBounds> {
        self.shape.line_bounds(ends_m)
    }

    /// Returns the distortion of a line on the surface, sampled every half millimetre.
    #[must_use]
    pub fn distortion(&self, points_mm: &[[f64; 2]]) -> SurfaceDistortion {
        let mut distortion = SurfaceDistortion {
            stretch: 1.0,
            stretched_at_mm: [0.0; 2],
            turn_rad_mm: 0.0,
            turned_at_mm: [0.0; 2],
            off_at_mm: None,
        };
        for [from, to] in pieces(points_mm) {
            self.sample_segment(from, to, &mut distortion);
        }
        distortion
    }

    fn sample_segment(&self, from: [f64; 2], to: [f64; 2], distortion: &mut SurfaceDistortion) {
        let samples = sample_count(distance(from, to));
        let at = |n: usize| along(from, to, n as f64 / samples as f64);
        let mut previous = self.at(at(0));
        for n in 1..=samples {
            let (at_mm, current) = (at(n), self.at(at(n)));
            if distortion.off_at_mm.is_none() {
                let mut ends = [at(n - 1), at_mm].into_iter();
                distortion.off_at_mm = ends.find(|at_mm| !self.shape.is_on(*at_mm));
            }
            let sheet_mm = distance(at(n - 1), at_mm);
            let surface_mm = (current.point_m - previous.point_m).norm() * 1e3;
            if sheet_mm > SAMPLE_MM_MIN {
                let ratio = surface_mm / sheet_mm;
                let stretch = ratio.max(1.0 / ratio.max(1e-9));
                if stretch > distortion.stretch {
                    (distortion.stretch, distortion.stretched_at_mm) = (stretch, at_mm);
                }
                let turn = previous.normal.angle(&current.normal) / surface_mm.max(SAMPLE_MM_MIN);
                if turn > distortion.turn_rad_mm {
                    (distortion.turn_rad_mm, distortion.turned_at_mm) = (turn, at_mm);
                }
            }
            previous = current;
        }
    }
}

/// Returns the pose of a frame with this origin, x and z; both axes have length 1 and are at a
/// right angle.
#[must_use]
pub fn pose(origin_m: &Point3<f64>, x: &Vector3<f64>, z: &Vector3<f64>) -> Isometry3<f64> {
    let rotation = Rotation3::from_basis_unchecked(&[*x, z.cross(x), *z]);
    Isometry3::from_parts(
        Translation3::from(origin_m.coords),
        UnitQuaternion::from_rotation_matrix(&rotation),
    )
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates, and a length is not negative"
)]
fn sample_count(length_mm: f64) -> usize {
    ((length_mm / SAMPLE_MM).ceil() as usize).clamp(1, SAMPLES_MAX)
}

/// A flat sheet.
#[derive(Clone, Debug)]
struct FlatSheet {
    origin_m: Point3<f64>,
    x: Unit<Vector3<f64>>,
    y: Unit<Vector3<f64>>,
    normal: Unit<Vector3<f64>>,
}

impl FlatSheet {
    fn pose(&self) -> Isometry3<f64> {
        pose(&self.origin_m, &self.x, &self.normal)
    }

    /// Creates the plane of a sheet's file, and the sheet's size.
    fn of_file(file: &SheetFile) -> Result<(Self, [f64; 2]), SceneFault> {
        let x = axis("x_axis", file.x_axis.map(Finite::get))?;
        let y = axis("y_axis", file.y_axis.map(Finite::get))?;
        if x.dot(&y).abs() > RIGHT_ANGLE_TOLERANCE {
            let degrees = x.dot(&y).clamp(-1.0, 1.0).acos().to_degrees();
            return Err(SceneFault::SheetAngle { degrees });
        }
        let size_mm = file.size_mm.map(Finite::get);
        if size_mm
            .iter()
            .any(|side| *side <= 0.0 || *side > SIDE_MM_MAX)
        {
            return Err(SceneFault::SheetSize(size_mm));
        }
        let plane = Self {
            origin_m: Point3::from(file.origin_m.map(Finite::get)),
            normal: Unit::new_normalize(x.cross(&y)),
            x,
            y,
        };
        Ok((plane, size_mm))
    }
}

impl SheetShape for FlatSheet {
    fn at(&self, [x_mm, y_mm]: [f64; 2]) -> SurfacePoint {
        SurfacePoint {
            point_m: offset(
                &offset(&self.origin_m, &self.y, y_mm / 1e3),
                &self.x,
                x_mm / 1e3,
            ),
            normal: self.normal,
            x: self.x,
            hold: self.normal,
        }
    }

    fn project(&self, point_m: &Point3<f64>) -> SurfaceProjection {
        let along = |axis: &Vector3<f64>| {
            let (from, to) = (&self.origin_m, point_m);
            (to.x - from.x) * axis.x + (to.y - from.y) * axis.y + (to.z - from.z) * axis.z
        };
        SurfaceProjection {
            at_mm: [along(&self.x) * 1e3, along(&self.y) * 1e3],
            height_mm: along(&self.normal) * 1e3,
            obstacle_mm: None,
        }
    }

    fn line_bounds(&self, ends_m: [&Point3<f64>; 2]) -> Option<LineBounds> {
        let [from, to] = ends_m.map(|end| self.project(end));
        Some(LineBounds {
            ends_at_mm: [from.at_mm, to.at_mm],
            height_mm: from.height_mm.min(to.height_mm),
        })
    }

    fn is_flat(&self) -> bool {
        true
    }
}

/// Returns a point at a distance along an axis from another. It runs for every sample of every
/// plan, and written out it takes a tenth of the time of `nalgebra`'s operators in unoptimized
/// builds.
fn offset(from_m: &Point3<f64>, axis: &Vector3<f64>, by_m: f64) -> Point3<f64> {
    Point3::new(
        from_m.x + axis.x * by_m,
        from_m.y + axis.y * by_m,
        from_m.z + axis.z * by_m,
    )
}

/// A sheet on a cylinder whose axis is parallel to y and lies one radius below the sheet's centre
/// line.
#[derive(Clone, Debug)]
struct CylindricalSheet {
    /// The plane that touches it along the sheet's centre line.
    flat: FlatSheet,
    radius_m: f64,
    half_width_m: f64,
    lay: Lay,
}

/// Largest sine of the angle from the vertical at the edges of a projected design.
const EDGE_SIN_MAX: f64 = 0.999;

impl CylindricalSheet {
    fn new(
        flat: FlatSheet,
        radius_mm: f64,
        [width_mm, _]: [f64; 2],
        lay: Lay,
    ) -> Result<Self, SceneFault> {
        let min_mm = match lay {
            Lay::Wrapped => width_mm / std::f64::consts::PI,
            Lay::Projected => width_mm / 2.0 / EDGE_SIN_MAX,
        };
        if radius_mm < min_mm {
            return Err(SceneFault::CylinderRadius {
                radius_mm,
                width_mm,
                least_mm: min_mm,
            });
        }
        Ok(Self {
            flat,
            radius_m: radius_mm / 1e3,
            half_width_m: width_mm / 2e3,
            lay,
        })
    }
}

impl SheetShape for CylindricalSheet {
    fn at(&self, [x_mm, y_mm]: [f64; 2]) -> SurfacePoint {
        let (flat, radius) = (&self.flat, self.radius_m);
        let sideways = (x_mm / 1e3 - self.half_width_m) / radius;
        let (sin, cos) = match self.lay {
            Lay::Wrapped => sideways.sin_cos(),
            Lay::Projected => {
                let sin = sideways.clamp(-EDGE_SIN_MAX, EDGE_SIN_MAX);
                (sin, (1.0 - sin * sin).sqrt())
            }
        };
        let top = flat.origin_m + flat.y.scale(y_mm / 1e3) + flat.x.scale(self.half_width_m);
        let normal = Unit::new_unchecked(flat.x.scale(sin) + flat.normal.scale(cos));
        SurfacePoint {
            point_m: top + flat.x.scale(radius * sin) + flat.normal.scale(radius * (cos - 1.0)),
            normal,
            hold: normal,
            x: Unit::new_unchecked(flat.x.scale(cos) - flat.normal.scale(sin)),
        }
    }

    fn project(&self, point_m: &Point3<f64>) -> SurfaceProjection {
        let (flat, radius) = (&self.flat, self.radius_m);
        let from = point_m - flat.origin_m;
        let (along, out) = (
            from.dot(&flat.x) - self.half_width_m,
            from.dot(&flat.normal) + radius,
        );
        let angle = along.atan2(out);
        let sideways = match self.lay {
            Lay::Wrapped => angle,
            Lay::Projected if out > 0.0 => angle.sin(),
            Lay::Projected => along.signum(),
        };
        SurfaceProjection {
            at_mm: [
                (sideways * radius + self.half_width_m) * 1e3,
                from.dot(&flat.y) * 1e3,
            ],
            height_mm: (along.hypot(out) - radius) * 1e3,
            obstacle_mm: None,
        }
    }

    fn radius_mm(&self) -> Option<f64> {
        Some(self.radius_m * 1e3)
    }

    fn rolled(&self, flat: &Isometry3<f64>, radius_mm: f64) -> Option<Arc<dyn SheetShape>> {
        let axis = |axis: Vector3<f64>| Unit::new_normalize(flat.rotation * axis);
        let flat = FlatSheet {
            origin_m: flat.translation.vector.into(),
            x: axis(Vector3::x()),
            y: axis(Vector3::y()),
            normal: axis(Vector3::z()),
        };
        Some(Arc::new(Self {
            flat,
            radius_m: radius_mm / 1e3,
            ..*self
        }))
    }
}

pub(super) const SIDE_MM_MAX: f64 = 2000.0;

fn axis(name: &str, direction: [f64; 3]) -> Result<Unit<Vector3<f64>>, SceneFault> {
    let fault = || SceneFault::SheetAxis(name.to_owned(), direction);
    Unit::try_new(Vector3::from(direction), 1e-9).ok_or_else(fault)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sheet(radius: Option<f64>) -> Surface {
        sheet_on(radius, Lay::Wrapped)
    }

    fn sheet_on(radius: Option<f64>, lay: Lay) -> Surface {
        let number = |v| Finite::new(v).unwrap();
        Surface::new(&SheetFile {
            correction: None,
            heights: None,
            origin_m: [0.15, 0.05, 0.02].map(number),
            x_axis: [0.0, -1.0, 0.0].map(number),
            y_axis: [1.0, 0.0, 0.0].map(number),
            size_mm: [100.0, 80.0].map(number),
            cylinder_radius_mm: radius.map(number),
            lay,
        })
        .unwrap()
    }

    proptest! {
        #[test]
        fn projection_is_the_inverse_of_placing(x in 0.0..100.0_f64, y in 0.0..80.0_f64, h in -5.0..20.0_f64, r in proptest::option::of(51.0..500.0), projected: bool) {
            let sheet = sheet_on(r, if projected { Lay::Projected } else { Lay::Wrapped });
            let contact = sheet.at([x, y]);
            let projection = sheet.project(&(contact.point_m + contact.normal.scale(h / 1e3)));
            prop_assert!((projection.at_mm[0] - x).abs() < 1e-6);
            prop_assert!((projection.at_mm[1] - y).abs() < 1e-6);
            prop_assert!((projection.height_mm - h).abs() < 1e-6);
        }
    }

    #[test]
    fn a_sheet_that_lies_on_the_table_faces_up() {
        assert!(sheet(None).at([0.0, 0.0]).normal.z > 0.999);
    }

    #[test]
    fn wrapping_keeps_lengths_and_projecting_does_not() {
        let line = [[10.0, 5.0], [90.0, 5.0]];
        let wrapped = sheet_on(Some(60.0), Lay::Wrapped).distortion(&line);
        assert!(wrapped.stretch < 1.0001, "{wrapped:?}");
        // 1 rad on 60 mm.
        assert!(
            (wrapped.turn_rad_mm - 1.0 / 60.0).abs() < 1e-5,
            "{wrapped:?}"
        );
        let projected = sheet_on(Some(60.0), Lay::Projected).distortion(&line);
        // 40 mm from the centre: sin = 2/3, and a millimetre there becomes 1/cos of one.
        let edge = 1.0 / (1.0_f64 - (40.0_f64 / 60.0).powi(2)).sqrt();
        assert!(
            (projected.stretch - edge).abs() < 0.01,
            "{projected:?} {edge}"
        );
        assert!((projected.stretched_at_mm[0] - 50.0).abs() > 39.0);
        let along = sheet_on(Some(60.0), Lay::Projected).distortion(&[[80.0, 0.0], [80.0, 80.0]]);
        assert!(
            along.stretch < 1.0001 && along.turn_rad_mm < 1e-9,
            "{along:?}"
        );
        assert!(sheet_on(None, Lay::Wrapped).distortion(&line).turn_rad_mm < 1e-12);
    }

    /// Spherical shape outside this crate. Shows that the trait is open to other shapes.
    #[derive(Debug)]
    struct Ball(f64);

    impl SheetShape for Ball {
        fn at(&self, [x, y]: [f64; 2]) -> SurfacePoint {
            let normal = Unit::new_normalize(Vector3::new(x / 1e3, y / 1e3, self.0));
            SurfacePoint {
                point_m: Point3::from(normal.scale(self.0)),
                normal,
                hold: normal,
                x: Unit::new_normalize(Vector3::y().cross(&normal)),
            }
        }

        fn project(&self, point_m: &Point3<f64>) -> SurfaceProjection {
            let [x, y, z]: [f64; 3] = point_m.coords.into();
            SurfaceProjection {
                at_mm: [x / z * self.0 * 1e3, y / z * self.0 * 1e3],
                height_mm: (point_m.coords.norm() - self.0) * 1e3,
                obstacle_mm: None,
            }
        }
    }

    #[test]
    fn another_shape_needs_only_the_trait() {
        let ball = Surface::from_shape(Arc::new(Ball(0.05)), [40.0, 40.0]);
        let projection = ball.project(&ball.at([10.0, 20.0]).point_m);
        assert!((projection.at_mm[0] - 10.0).abs() < 1e-9 && projection.height_mm.abs() < 1e-9);
        assert!(ball.distortion(&[[0.0, 0.0], [40.0, 0.0]]).stretch > 1.3);
    }
}
