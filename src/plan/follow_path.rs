//! Joints along a course: each waypoint solved from the ones before it.

use nalgebra::Point3;

use super::cartesian_path::{CartesianPath, CartesianSegment};
use super::error::RefusalCause;
use super::tool_ik::ToolIk;
use base::plane::Point;
use base::units::JointVector;
use kin::IkSolution;
use scene::Surface;

/// A waypoint of a course.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathWaypoint {
    /// The piece that it ends, or begins at the very first.
    pub(super) piece: usize,
    /// Parameter within that segment.
    pub(super) t: f64,
    /// Distance of the tip from the course's beginning.
    pub(super) s_m: f64,
    pub(super) point_m: Point3<f64>,
    pub(super) q: JointVector,
    pub(super) tilt_rad: f64,
    /// Condition number of the tip's motion; 1 is best.
    pub(super) condition: f64,
}

/// The place at which a course cannot be followed, and the reason.
#[derive(Clone, Debug)]
pub(super) struct PathError {
    pub(super) at_mm: Option<Point>,
    pub(super) cause: RefusalCause,
}

impl From<RefusalCause> for PathError {
    /// At no place.
    fn from(cause: RefusalCause) -> Self {
        Self { at_mm: None, cause }
    }
}

/// Waypoints of one course.
const KNOTS_MAX: usize = 400_000;
/// From one waypoint to the next, no joint may turn more.
pub(super) const JUMP_RAD: f64 = 0.2;

/// Solves a course from `start`, which must hold the tip at the course's beginning. There is a
/// waypoint between its ends, however short it is.
pub(super) fn follow_path(
    hand: &ToolIk<'_>,
    surface: &Surface,
    course: &CartesianPath,
    start: &JointVector,
) -> Result<Vec<PathWaypoint>, PathError> {
    let waypoints: usize = course.iter().map(CartesianSegment::steps).sum();
    RefusalCause::refuse_longer(waypoints, KNOTS_MAX)?;
    assert!(!course.is_empty(), "a course is one of pieces");
    let mut knots = Vec::with_capacity(waypoints + 1);
    let mut last = first(hand, surface, course, start);
    let mut before = None;
    knots.push(last);
    for (index, piece) in course.iter().enumerate() {
        let ends = (index == 0, index + 1 == course.len());
        for t in shares(piece.steps(), ends) {
            let knot = next(hand, surface, (before.as_ref(), &last), (index, piece), t)?;
            knots.push(knot);
            before = Some(std::mem::replace(&mut last, knot));
        }
    }
    Ok(knots)
}

/// A piece's waypoints. Near the ends of a course, where the speed rises from nothing, they lie
/// as close as an evenly rising acceleration needs.
fn shares(steps: usize, (begins, ends): (bool, bool)) -> impl Iterator<Item = f64> {
    let (even, step) = (move |n: usize| n as f64 / steps as f64, 1.0 / steps as f64);
    let rising = RISING.iter().filter(move |_| begins);
    let rising = rising.map(move |share| share * step);
    let falling = RISING.iter().rev().filter(move |_| ends);
    let falling = falling.map(move |share| 1.0 - share * step);
    // With a single step both would overlap: it is divided in two halves first.
    let single = steps == 1 && begins && ends;
    let halve = move |share: f64| if single { share / 2.0 } else { share };
    let mirror = move |share: f64| if single { 0.5 + share / 2.0 } else { share };
    rising
        .map(halve)
        .chain(single.then_some(0.5))
        .chain((1..steps).map(even))
        .chain(falling.map(mirror))
        .chain(std::iter::once(1.0))
}

/// Cubes of sixths: passed at even times while the acceleration rises evenly.
const RISING: [f64; 5] = [
    1.0 / 216.0,
    8.0 / 216.0,
    27.0 / 216.0,
    64.0 / 216.0,
    125.0 / 216.0,
];

fn first(
    hand: &ToolIk<'_>,
    surface: &Surface,
    course: &CartesianPath,
    start: &JointVector,
) -> PathWaypoint {
    let place = hand.tip_pose(start);
    let wanted = course.first().map(|piece| piece.at(surface, 0.0).axis);
    let tilt_rad = wanted.map_or(0.0, |axis| place.axis.angle(&axis));
    PathWaypoint {
        piece: 0,
        t: 0.0,
        s_m: 0.0,
        point_m: place.point_m,
        q: *start,
        tilt_rad,
        condition: hand.arm.chain.condition(start, &hand.tip),
    }
}

fn next(
    hand: &ToolIk<'_>,
    surface: &Surface,
    (before, last): (Option<&PathWaypoint>, &PathWaypoint),
    (index, piece): (usize, &CartesianSegment),
    t: f64,
) -> Result<PathWaypoint, PathError> {
    let place = piece.at(surface, t);
    let stuck = |cause| PathError {
        at_mm: piece.place_mm(t),
        cause,
    };
    let found = hand
        .solve(&place, &seed(before, last, &place.point_m))
        .or_else(|_| hand.solve(&place, &last.q))
        .map_err(|missed| stuck(missed.into()))?;
    check_waypoint(hand, piece, &found, last).map_err(stuck)?;
    Ok(PathWaypoint {
        piece: index,
        t,
        s_m: last.s_m + (place.point_m - last.point_m).norm(),
        point_m: place.point_m,
        q: found.q_rad,
        tilt_rad: found.off_rad,
        condition: hand.arm.chain.condition(&found.q_rad, &hand.tip),
    })
}

/// The last two waypoints' joints carried on in a straight line.
fn seed(before: Option<&PathWaypoint>, last: &PathWaypoint, to: &Point3<f64>) -> JointVector {
    match before {
        Some(before) if last.s_m > before.s_m => {
            let share = ((to - last.point_m).norm() / (last.s_m - before.s_m)).min(1.0);
            last.q
                .zip(&before.q, |now, then| now + (now - then) * share)
        }
        _ => last.q,
    }
}

fn check_waypoint(
    hand: &ToolIk<'_>,
    piece: &CartesianSegment,
    found: &IkSolution,
    last: &PathWaypoint,
) -> Result<(), RefusalCause> {
    let turns = found.q_rad.zip(&last.q, |to, from| (to - from).abs());
    let (mut joint, mut most) = (0, 0.0);
    for (index, turn) in turns.iter().enumerate() {
        if *turn > most {
            (joint, most) = (index, *turn);
        }
    }
    if most > JUMP_RAD {
        return Err(RefusalCause::Jump {
            by_deg: most.to_degrees(),
            joint: hand.arm.joint_name(joint),
        });
    }
    let free = matches!(piece, CartesianSegment::Across { .. });
    if !free && found.off_rad > hand.cone_rad {
        return Err(RefusalCause::Tilt {
            tilt_deg: found.off_rad.to_degrees(),
            cone_deg: hand.cone_rad.to_degrees(),
        });
    }
    Ok(())
}
