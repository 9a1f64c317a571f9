//! Joints along a path: solves each waypoint from the ones before it.

use nalgebra::Point3;

use super::cartesian_path::{CartesianPath, CartesianSegment};
use super::error::RefusalCause;
use super::tool_ik::ToolIk;
use base::plane::Point;
use base::units::JointVector;
use kin::IkSolution;
use scene::Surface;

/// A waypoint of a path.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathWaypoint {
    /// Index of the segment that it ends, or begins at the very first.
    pub(super) piece: usize,
    /// Parameter within that segment.
    pub(super) t: f64,
    /// Distance of the tip along the path, from its beginning.
    pub(super) s_m: f64,
    pub(super) point_m: Point3<f64>,
    pub(super) q: JointVector,
    pub(super) tilt_rad: f64,
    /// Condition number of the tip's motion; 1 is best.
    pub(super) condition: f64,
}

/// The place at which a path cannot be followed, and the reason.
#[derive(Clone, Debug)]
pub(super) struct PathError {
    pub(super) at_mm: Option<Point>,
    pub(super) cause: RefusalCause,
}

impl From<RefusalCause> for PathError {
    /// Names no place.
    fn from(cause: RefusalCause) -> Self {
        Self { at_mm: None, cause }
    }
}

/// Most waypoints of one path.
const WAYPOINTS_MAX: usize = 400_000;
/// Most that a joint may turn from one waypoint to the next.
pub(super) const JUMP_RAD: f64 = 0.2;

/// Solves a path from `start`, which must hold the tip at the path's beginning. However short it
/// is, there is a waypoint between its ends.
pub(super) fn follow_path(
    ik: &ToolIk<'_>,
    surface: &Surface,
    path: &CartesianPath,
    start: &JointVector,
) -> Result<Vec<PathWaypoint>, PathError> {
    let count: usize = path.iter().map(CartesianSegment::steps).sum();
    RefusalCause::refuse_longer(count, WAYPOINTS_MAX)?;
    assert!(!path.is_empty(), "a path needs segments");
    let mut waypoints = Vec::with_capacity(count + 1);
    let mut last = first_waypoint(ik, surface, path, start);
    let mut before = None;
    waypoints.push(last);
    for (index, piece) in path.iter().enumerate() {
        let ends = (index == 0, index + 1 == path.len());
        for t in waypoint_parameters(piece.steps(), ends) {
            let waypoint = next_waypoint(ik, surface, (before.as_ref(), &last), (index, piece), t)?;
            waypoints.push(waypoint);
            before = Some(std::mem::replace(&mut last, waypoint));
        }
    }
    Ok(waypoints)
}

/// Returns the parameters of a segment's waypoints. Near the ends of a path, where the tip starts
/// from rest, they lie as close as an evenly rising acceleration needs.
fn waypoint_parameters(steps: usize, (begins, ends): (bool, bool)) -> impl Iterator<Item = f64> {
    let (even, step) = (move |n: usize| n as f64 / steps as f64, 1.0 / steps as f64);
    let rising = RISING.iter().filter(move |_| begins).map(move |t| t * step);
    let falling = RISING.iter().rev().filter(move |_| ends);
    let falling = falling.map(move |t| 1.0 - t * step);
    // With a single step both would overlap: it is divided in two halves first.
    let is_single = steps == 1 && begins && ends;
    let first_half = move |t: f64| if is_single { t / 2.0 } else { t };
    let second_half = move |t: f64| if is_single { 0.5 + t / 2.0 } else { t };
    rising
        .map(first_half)
        .chain(is_single.then_some(0.5))
        .chain((1..steps).map(even))
        .chain(falling.map(second_half))
        .chain(std::iter::once(1.0))
}

/// Cubes of sixths: the tip passes them at even intervals while its acceleration rises evenly.
const RISING: [f64; 5] = [
    1.0 / 216.0,
    8.0 / 216.0,
    27.0 / 216.0,
    64.0 / 216.0,
    125.0 / 216.0,
];

fn first_waypoint(
    ik: &ToolIk<'_>,
    surface: &Surface,
    path: &CartesianPath,
    start: &JointVector,
) -> PathWaypoint {
    let pose = ik.tip_pose(start);
    let target_axis = path.first().map(|piece| piece.at(surface, 0.0).axis);
    let tilt_rad = target_axis.map_or(0.0, |axis| pose.axis.angle(&axis));
    PathWaypoint {
        piece: 0,
        t: 0.0,
        s_m: 0.0,
        point_m: pose.point_m,
        q: *start,
        tilt_rad,
        condition: ik.arm.chain.condition(start, &ik.tip),
    }
}

fn next_waypoint(
    ik: &ToolIk<'_>,
    surface: &Surface,
    (before, last): (Option<&PathWaypoint>, &PathWaypoint),
    (index, piece): (usize, &CartesianSegment),
    t: f64,
) -> Result<PathWaypoint, PathError> {
    let pose = piece.at(surface, t);
    let path_error = |cause| PathError {
        at_mm: piece.place_mm(t),
        cause,
    };
    let solution = ik
        .solve(&pose, &seed(before, last, &pose.point_m))
        .or_else(|_| ik.solve(&pose, &last.q))
        .map_err(|failure| path_error(failure.into()))?;
    check_waypoint(ik, piece, &solution, last).map_err(path_error)?;
    Ok(PathWaypoint {
        piece: index,
        t,
        s_m: last.s_m + (pose.point_m - last.point_m).norm(),
        point_m: pose.point_m,
        q: solution.q_rad,
        tilt_rad: solution.off_rad,
        condition: ik.arm.chain.condition(&solution.q_rad, &ik.tip),
    })
}

/// Extrapolates the joints of the last two waypoints in a straight line.
fn seed(before: Option<&PathWaypoint>, last: &PathWaypoint, to: &Point3<f64>) -> JointVector {
    match before {
        Some(before) if last.s_m > before.s_m => {
            let ratio = ((to - last.point_m).norm() / (last.s_m - before.s_m)).min(1.0);
            last.q
                .zip(&before.q, |now, then| now + (now - then) * ratio)
        }
        _ => last.q,
    }
}

fn check_waypoint(
    ik: &ToolIk<'_>,
    piece: &CartesianSegment,
    solution: &IkSolution,
    last: &PathWaypoint,
) -> Result<(), RefusalCause> {
    let turns_rad = solution.q_rad.zip(&last.q, |to, from| (to - from).abs());
    let (mut joint, mut max_turn_rad) = (0, 0.0);
    for (index, turn_rad) in turns_rad.iter().enumerate() {
        if *turn_rad > max_turn_rad {
            (joint, max_turn_rad) = (index, *turn_rad);
        }
    }
    if max_turn_rad > JUMP_RAD {
        return Err(RefusalCause::Jump {
            by_deg: max_turn_rad.to_degrees(),
            joint: ik.arm.joint_name(joint),
        });
    }
    let is_in_space = matches!(piece, CartesianSegment::Across { .. });
    if !is_in_space && solution.off_rad > ik.cone_rad {
        return Err(RefusalCause::Tilt {
            tilt_deg: solution.off_rad.to_degrees(),
            cone_deg: ik.cone_rad.to_degrees(),
        });
    }
    Ok(())
}
