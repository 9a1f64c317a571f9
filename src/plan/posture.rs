//! The way of holding the arm with which a whole stroke can be drawn well.

use super::cartesian_path::{STEP_MM, ToolPose};
use super::error::RefusalCause;
use super::follow_path::JUMP_RAD;
use super::tool_ik::ToolIk;
use base::plane::{self, Point, bounds, distance, length, pieces};
use base::units::JointVector;
use kin::IkSolution;
use scene::{Scene, SheetStroke};

/// Number of ways to hold the pen that are compared over the whole drawing.
const WAYS_MAX: usize = 12;

/// Number of points that represent a whole stroke when ways of holding the arm are compared.
const TRACED_MAX: f64 = 200.0;

/// And how far they are apart at the least.
const TRACED_MM: f64 = 2.0;

/// Cost of an unreachable place, against tenths of a radian of tilt.
const MISSED_COST: f64 = 1000.0;

/// Points all along a stroke, its first and last among them: a straight line between two corners
/// may leave the arm's reach, or its joints' ranges, half-way.
pub(super) fn sample_evenly(points_mm: &[Point]) -> Vec<Point> {
    let every_mm = (length(points_mm) / TRACED_MAX).max(TRACED_MM);
    let mut all: Vec<Point> = points_mm.first().copied().into_iter().collect();
    let mut next_mm = every_mm;
    for [from, to] in pieces(points_mm) {
        let long_mm = distance(from, to);
        while next_mm < long_mm {
            all.push(plane::along(from, to, next_mm / long_mm));
            next_mm += every_mm;
        }
        next_mm -= long_mm;
    }
    all.extend(points_mm.last());
    all
}

/// The way of holding the pen that serves all places, one after the other, best.
#[expect(clippy::expect_used, reason = "`ways` refuses a place without one")]
pub(super) fn best_posture(
    scene: &Scene,
    hand: &ToolIk<'_>,
    place: &ToolPose,
    serves: &[ToolPose],
) -> Result<JointVector, RefusalCause> {
    let ways = hand.solutions(place, &[scene.ready_rad])?;
    let costs = ways.iter().take(WAYS_MAX).map(|way| {
        let cost = cost(scene, hand, way, serves);
        (cost, way.q_rad)
    });
    let best = costs.min_by(|a, b| a.0.total_cmp(&b.0));
    Ok(best.expect("a way").1)
}

/// Smaller is better: places missed, or met with too much lean or by a jump, then lean, then
/// the largest step from one place to the next, margin, and nearness to the ready pose.
fn cost(scene: &Scene, hand: &ToolIk<'_>, way: &IkSolution, serves: &[ToolPose]) -> f64 {
    let mut margin = hand.margin_rad(&way.q_rad);
    let (mut lean, mut step, mut missed) = (way.off_rad, 0.0_f64, 0.0);
    // Where it begins it may lean too much, and yet lead to where it would not.
    if way.off_rad > hand.cone_rad {
        missed += MISSED_COST;
    }
    let (mut at, mut point_m) = (way.q_rad, hand.point(&way.q_rad));
    for place in serves {
        let Ok(found) = hand.solve(place, &at) else {
            missed += MISSED_COST;
            continue;
        };
        let by = found.q_rad.distance_max(&at);
        let steps = (place.point_m - point_m).norm() * 1e3 / STEP_MM;
        if found.off_rad > hand.cone_rad || by > JUMP_RAD * steps.max(1.0) {
            missed += MISSED_COST;
        }
        lean = lean.max(found.off_rad);
        step = step.max(by);
        margin = margin.min(hand.margin_rad(&found.q_rad));
        (at, point_m) = (found.q_rad, place.point_m);
    }
    let away = way.q_rad.distance_max(&scene.ready_rad);
    missed + lean * 10.0 + step * 0.2 + away * 0.1 - margin.min(0.5) * 2.0
}

/// The whole of a stroke, at the depth of drawing.
pub(super) fn along(scene: &Scene, stroke: &SheetStroke) -> Vec<ToolPose> {
    sample_evenly(&stroke.points_mm)
        .into_iter()
        .map(|at_mm| ToolPose::over(&scene.surface, at_mm, -scene.pen_press_mm(stroke.pen)))
        .collect()
}

/// The corners and the middle of all that a pen draws, at the depth of drawing; none where it draws nothing.
pub(super) fn corners(scene: &Scene, given: &[SheetStroke], pen: usize) -> Vec<ToolPose> {
    let of_pen = given.iter().filter(|stroke| stroke.pen == pen);
    let points = of_pen.flat_map(|stroke| &stroke.points_mm);
    let Some((low, high)) = bounds(points) else {
        return Vec::new();
    };
    let middle = [(low[0] + high[0]) / 2.0, (low[1] + high[1]) / 2.0];
    [low, [high[0], low[1]], high, [low[0], high[1]], middle]
        .map(|at_mm| ToolPose::over(&scene.surface, at_mm, -scene.pen_press_mm(pen)))
        .to_vec()
}
