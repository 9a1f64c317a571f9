//! Chooses the posture of the arm with which a whole stroke can be drawn well.

use super::cartesian_path::{STEP_MM, ToolPose};
use super::error::RefusalCause;
use super::follow_path::JUMP_RAD;
use super::tool_ik::ToolIk;
use base::plane::{self, Point, bounds, distance, length, pieces};
use base::units::JointVector;
use kin::IkSolution;
use scene::{Scene, SheetStroke};

/// Most postures that are compared over the whole drawing.
const POSTURES_MAX: usize = 12;

/// Most points that represent a stroke when postures are compared.
const TRACED_MAX: f64 = 200.0;

/// Least distance between them.
const TRACED_MM: f64 = 2.0;

/// Cost of an unreachable place, where a tenth of a radian of tilt costs 1.
const MISSED_COST: f64 = 1000.0;

/// Samples points along all of a stroke, its first and last included: a straight line between two
/// corners may leave the arm's reach, or its joints' ranges, half-way.
pub(super) fn sample_evenly(points_mm: &[Point]) -> Vec<Point> {
    let every_mm = (length(points_mm) / TRACED_MAX).max(TRACED_MM);
    let mut all: Vec<Point> = points_mm.first().copied().into_iter().collect();
    let mut next_mm = every_mm;
    for [from, to] in pieces(points_mm) {
        let length_mm = distance(from, to);
        while next_mm < length_mm {
            all.push(plane::along(from, to, next_mm / length_mm));
            next_mm += every_mm;
        }
        next_mm -= length_mm;
    }
    all.extend(points_mm.last());
    all
}

/// Returns the posture that serves all poses best, one after the other.
#[expect(clippy::expect_used, reason = "`solutions` refuses a pose without one")]
pub(super) fn best_posture(
    scene: &Scene,
    ik: &ToolIk<'_>,
    pose: &ToolPose,
    poses: &[ToolPose],
) -> Result<JointVector, RefusalCause> {
    let solutions = ik.solutions(pose, &[scene.ready_rad])?;
    let costs = solutions.iter().take(POSTURES_MAX).map(|solution| {
        let cost = cost(scene, ik, solution, poses);
        (cost, solution.q_rad)
    });
    let best = costs.min_by(|a, b| a.0.total_cmp(&b.0));
    Ok(best.expect("a solution").1)
}

/// Returns the cost of a posture; smaller is better. Poses out of reach, or reached with too much
/// lean or by a jump, weigh most, then lean, then the largest step from one pose to the next,
/// margin, and distance from the ready pose.
fn cost(scene: &Scene, ik: &ToolIk<'_>, solution: &IkSolution, poses: &[ToolPose]) -> f64 {
    let mut margin = ik.margin_rad(&solution.q_rad);
    let (mut lean, mut largest_step, mut missed) = (solution.off_rad, 0.0_f64, 0.0);
    // The first pose may lean too much although the next ones do not.
    if solution.off_rad > ik.cone_rad {
        missed += MISSED_COST;
    }
    let (mut joints, mut point_m) = (solution.q_rad, ik.point(&solution.q_rad));
    for pose in poses {
        let Ok(found) = ik.solve(pose, &joints) else {
            missed += MISSED_COST;
            continue;
        };
        let step_rad = found.q_rad.distance_max(&joints);
        let step_count = (pose.point_m - point_m).norm() * 1e3 / STEP_MM;
        if found.off_rad > ik.cone_rad || step_rad > JUMP_RAD * step_count.max(1.0) {
            missed += MISSED_COST;
        }
        lean = lean.max(found.off_rad);
        largest_step = largest_step.max(step_rad);
        margin = margin.min(ik.margin_rad(&found.q_rad));
        (joints, point_m) = (found.q_rad, pose.point_m);
    }
    let from_ready = solution.q_rad.distance_max(&scene.ready_rad);
    missed + lean * 10.0 + largest_step * 0.2 + from_ready * 0.1 - margin.min(0.5) * 2.0
}

/// Returns poses along all of a stroke, at drawing depth.
pub(super) fn along(scene: &Scene, stroke: &SheetStroke) -> Vec<ToolPose> {
    sample_evenly(&stroke.points_mm)
        .into_iter()
        .map(|at_mm| ToolPose::over(&scene.surface, at_mm, -scene.pen_press_mm(stroke.pen)))
        .collect()
}

/// Returns poses at the corners and the centre of all that a pen draws, at drawing depth; none if
/// it draws nothing.
pub(super) fn corners(scene: &Scene, strokes: &[SheetStroke], pen: usize) -> Vec<ToolPose> {
    let pen_strokes = strokes.iter().filter(|stroke| stroke.pen == pen);
    let points = pen_strokes.flat_map(|stroke| &stroke.points_mm);
    let Some((low, high)) = bounds(points) else {
        return Vec::new();
    };
    let centre = [(low[0] + high[0]) / 2.0, (low[1] + high[1]) / 2.0];
    [low, [high[0], low[1]], high, [low[0], high[1]], centre]
        .map(|at_mm| ToolPose::over(&scene.surface, at_mm, -scene.pen_press_mm(pen)))
        .to_vec()
}
