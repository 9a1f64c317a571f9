//! Paths of the tip without time or joints: lines, bends and rises from rest to rest.

use nalgebra::{Point3, Rotation3, Unit, Vector3};

use base::plane::{Point, along, distance};
use scene::Surface;

/// Position and direction of a tip.
#[derive(Clone, Copy, Debug)]
pub(super) struct ToolPose {
    pub(super) point_m: Point3<f64>,
    pub(super) axis: Unit<Vector3<f64>>,
}

/// A smooth stretch. Its parameter runs from 0 to 1.
#[derive(Clone, Copy, Debug)]
pub(super) enum CartesianSegment {
    /// Straight on the sheet, at a height over it.
    Along {
        from_mm: Point,
        to_mm: Point,
        height_mm: f64,
    },
    /// A parabola on the sheet: leaves `from_mm` towards `corner_mm` and arrives at `to_mm` from
    /// there.
    Bend {
        from_mm: Point,
        corner_mm: Point,
        to_mm: Point,
        height_mm: f64,
    },
    /// Along the surface's normal.
    Rise {
        at_mm: Point,
        from_mm: f64,
        to_mm: f64,
    },
    /// Straight in space, with the tool axis turning evenly.
    Across { from: ToolPose, to: ToolPose },
}

/// The segments from one rest to the next.
pub(super) type CartesianPath = Vec<CartesianSegment>;

/// Largest distance between waypoints.
pub(super) const STEP_MM: f64 = 0.5;
/// Largest distance between waypoints of free movements.
const STEP_FREE_MM: f64 = 3.0;
/// Largest change of direction in a bend between two waypoints.
const STEP_TURN_RAD: f64 = 0.06;
/// Most waypoints of one segment.
pub(super) const STEPS_MAX: usize = 100_000;

impl ToolPose {
    /// Over a point of the sheet, pointing into it.
    pub(super) fn over(surface: &Surface, at_mm: Point, height_mm: f64) -> Self {
        let contact = surface.at(at_mm);
        Self {
            point_m: contact.point_m + contact.normal.scale(height_mm / 1e3),
            axis: -contact.hold,
        }
    }

    /// At a point in space, pointing down.
    pub(super) fn above(point_m: Point3<f64>) -> Self {
        Self {
            point_m,
            axis: -Vector3::z_axis(),
        }
    }

    fn interpolate(&self, to: &Self, t: f64) -> Self {
        let axis = Rotation3::rotation_between(&self.axis, &to.axis)
            .map_or(self.axis, |rotation| {
                Rotation3::new(rotation.scaled_axis() * t) * self.axis
            });
        Self {
            point_m: self.point_m + (to.point_m - self.point_m) * t,
            axis,
        }
    }
}

impl CartesianSegment {
    /// Along the surface's normal, from one height to another.
    pub(super) fn rise(at_mm: Point, from_mm: f64, to_mm: f64) -> Self {
        Self::Rise {
            at_mm,
            from_mm,
            to_mm,
        }
    }

    /// Returns the place on the sheet at `t`; none for segments in space.
    pub(super) fn place_mm(&self, t: f64) -> Option<Point> {
        (!matches!(self, Self::Across { .. })).then(|| self.on_sheet(t))
    }

    /// Returns the tool pose at `t`.
    pub(super) fn at(&self, surface: &Surface, t: f64) -> ToolPose {
        match self {
            Self::Along { height_mm, .. } | Self::Bend { height_mm, .. } => {
                ToolPose::over(surface, self.on_sheet(t), *height_mm)
            }
            Self::Rise {
                at_mm,
                from_mm,
                to_mm,
            } => ToolPose::over(surface, *at_mm, from_mm + (to_mm - from_mm) * t),
            Self::Across { from, to } => from.interpolate(to, t),
        }
    }

    /// Returns the place on the sheet at `t`; the origin for segments in space.
    pub(super) fn on_sheet(&self, t: f64) -> Point {
        match self {
            Self::Along { from_mm, to_mm, .. } => along(*from_mm, *to_mm, t),
            Self::Bend {
                from_mm,
                corner_mm,
                to_mm,
                ..
            } => along(
                along(*from_mm, *corner_mm, t),
                along(*corner_mm, *to_mm, t),
                t,
            ),
            Self::Rise { at_mm, .. } => *at_mm,
            Self::Across { .. } => [0.0, 0.0],
        }
    }

    /// Returns the number of waypoints that the segment is divided into.
    pub(super) fn steps(&self) -> usize {
        let (length_mm, step_mm, turn_rad) = match self {
            Self::Along { from_mm, to_mm, .. } => (distance(*from_mm, *to_mm), STEP_MM, 0.0),
            Self::Bend {
                from_mm,
                corner_mm,
                to_mm,
                ..
            } => (
                distance(*from_mm, *corner_mm) + distance(*corner_mm, *to_mm),
                STEP_MM,
                turning(*from_mm, *corner_mm, *to_mm),
            ),
            Self::Rise { from_mm, to_mm, .. } => ((to_mm - from_mm).abs(), STEP_MM, 0.0),
            Self::Across { from, to } => (
                (to.point_m - from.point_m).norm() * 1e3,
                STEP_FREE_MM,
                from.axis.angle(&to.axis),
            ),
        };
        let steps = (length_mm / step_mm).max(turn_rad / STEP_TURN_RAD).ceil();
        let min_steps = if let Self::Bend { .. } = self { 2 } else { 1 };
        to_count(steps).clamp(min_steps, STEPS_MAX)
    }
}

/// Rounds a number that is not negative down to a count.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates, and the number is not negative"
)]
pub(super) fn to_count(number: f64) -> usize {
    number as usize
}

/// Returns by how much a path turns at `b`, 0 to π.
pub(super) fn turning([ax, ay]: Point, [bx, by]: Point, [cx, cy]: Point) -> f64 {
    let (ux, uy, vx, vy) = (bx - ax, by - ay, cx - bx, cy - by);
    (ux * vy - uy * vx).abs().atan2(ux * vx + uy * vy)
}
