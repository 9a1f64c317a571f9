//! Finds a place for the first sheet of an arm that has no scene yet: in reach of a pen along its tool, with poses over it.

use arm::ArmModel;
use base::units::JointVector;
use kin::{IkGoal, ToolTip};
use nalgebra::{Point3, Unit, Vector3};

/// How far a pen stands out of the tool mount and the body around it.
const PEN_M: f64 = 0.02;

/// Height of a sheet over the table.
const SHEET_M: f64 = 0.005;

/// Sides of the sheets that are tried, the largest first.
const SIDES_M: [f64; 3] = [0.1, 0.06, 0.03];

/// Directions from the base that are tried, from the one in which the arm points in the middle of its joints.
const TURNS_DEG: [f64; 8] = [0.0, 45.0, -45.0, 90.0, -90.0, 135.0, -135.0, 180.0];

/// Distance from one place that is tried to the next.
const STEP_M: f64 = 0.02;

/// Most that the pen may lean anywhere on the sheet, and the least distance of a joint from its limit.
const LEAN_RAD_MAX: f64 = 0.3;
const MARGIN_RAD_MIN: f64 = 0.1;

/// Seeds of the inverse kinematics for one point.
const RESTARTS: usize = 8;

/// Distance that counts as nothing beside an arm.
const NEAR_M: f64 = 1e-3;

/// Heights over the sheet of the pose between jobs, and of the one in which the arm is left.
const READY_M: f64 = 0.03;
const REST_M: f64 = 0.06;

/// A sheet on the table of an arm, the pen that draws on it, and poses over it.
#[derive(Clone, Debug)]
pub struct FirstSheet {
    /// The pen's tip in the tool mount's frame.
    pub tip_m: Point3<f64>,
    /// The pen's direction in that frame.
    pub pen_axis: Unit<Vector3<f64>>,
    /// The sheet's middle, in the arm's base frame.
    pub centre_m: Point3<f64>,
    /// The direction of the sheet's y: away from the base. Its x is to the right of that.
    pub ahead: Vector3<f64>,
    /// Its width and height.
    pub side_mm: f64,
    /// Where the arm waits between jobs.
    pub ready_rad: JointVector,
    /// Where it is left.
    pub rest_rad: JointVector,
}

/// Returns a place ahead of the arm, or else as little aside as can be, where the pen stands upright; `None` if it reaches no sheet.
/// Inverse kinematics alone decides: a plan may still be refused.
#[must_use]
pub fn first_sheet(arm: &ArmModel) -> Option<FirstSheet> {
    let tip = pen_along(arm);
    let heading_rad = middle_heading_rad(arm, &tip)?;
    let places = SIDES_M
        .into_iter()
        .flat_map(|side_m| TURNS_DEG.map(|turn_deg| (side_m, turn_deg)));
    let mut best = places.filter_map(|(side_m, turn_deg): (f64, f64)| {
        best_ahead(arm, &tip, heading_rad + turn_deg.to_radians(), side_m)
    });
    best.next()
}

/// Returns the best distance for a sheet in one direction from the base.
fn best_ahead(arm: &ArmModel, tip: &ToolTip, heading_rad: f64, side_m: f64) -> Option<FirstSheet> {
    let links = arm.chain.joints().iter().skip(1);
    let links = links.map(|joint| joint.origin.translation.vector.norm());
    let reach_m = links.sum::<f64>() + arm.chain.mount_m() + PEN_M;
    let distances = (1_u32..).map(|step| f64::from(step) * STEP_M);
    let judged = distances
        .take_while(|distance_m| *distance_m < reach_m)
        .filter_map(|distance_m| judged_place(arm, tip, heading_rad, distance_m, side_m));
    let best = judged.min_by(|(one, _), (other, _)| one.total_cmp(other));
    best.map(|(_, place)| place)
}

/// Returns the direction from the base in which the arm points in the middle of its joints.
fn middle_heading_rad(arm: &ArmModel, tip: &ToolTip) -> Option<f64> {
    let limits = &arm.limits;
    let middle_rad = limits.lower_rad.zip(&limits.upper_rad, f64::midpoint);
    let (at_m, axis) = arm.chain.tip(&middle_rad, tip);
    let from_foot_m = at_m.coords - foot_m(arm)?;
    // Of an arm that stands straight up only the pen's direction is left.
    let ahead = from_foot_m + axis.scale(NEAR_M);
    Some(ahead.y.atan2(ahead.x))
}

/// Returns the place of the first joint.
fn foot_m(arm: &ArmModel) -> Option<Vector3<f64>> {
    let first = arm.chain.joints().first()?;
    Some(first.origin.translation.vector)
}

/// Returns the tip of a pen that goes on where the tool mount leads from the last joint.
fn pen_along(arm: &ArmModel) -> ToolTip {
    let frames = arm.chain.frames(&JointVector::zeros(arm.chain.dof()));
    let to_mount = frames.tool.inverse();
    let from_last = frames.last().map(|last| to_mount * last.translation);
    let along = from_last.map_or_else(Vector3::zeros, |last| -last.translation.vector);
    let axis = nearest_axis(&along);
    // The last two links may stand out of the mount.
    let last = arm
        .capsules
        .iter()
        .filter(|part| part.joints_before + 2 > arm.chain.dof());
    let ends = last.flat_map(|part| [part.from_m, part.to_m].map(|end| (part, end)));
    let ahead = ends.filter_map(|(part, end)| {
        let in_mount = to_mount * (frames.get(part.joints_before)? * end);
        Some(in_mount.coords.dot(&axis) + part.radius_m)
    });
    let body_ahead_m = ahead.fold(0.0, f64::max);
    ToolTip {
        point_m: Point3::from(axis.scale(PEN_M + body_ahead_m)),
        axis,
    }
}

/// Returns the axis of a frame that is nearest to a direction; z for none.
fn nearest_axis(along: &Vector3<f64>) -> Unit<Vector3<f64>> {
    let axes = [Vector3::z_axis(), Vector3::x_axis(), Vector3::y_axis()];
    let size = |axis: &Unit<Vector3<f64>>| along.dot(axis).abs();
    let nearest = axes.into_iter().fold(Vector3::z_axis(), |best, axis| {
        if size(&axis) > size(&best) + 1e-9 {
            axis
        } else {
            best
        }
    });
    if along.dot(&nearest) < 0.0 {
        -nearest
    } else {
        nearest
    }
}

/// Returns a place with its cost: the lean of the pen at the sheet's middle and corners, less the joints' margin.
fn judged_place(
    arm: &ArmModel,
    tip: &ToolTip,
    heading_rad: f64,
    distance_m: f64,
    side_m: f64,
) -> Option<(f64, FirstSheet)> {
    let ahead = Vector3::new(heading_rad.cos(), heading_rad.sin(), 0.0);
    let right = ahead.cross(&Vector3::z());
    let foot_m = foot_m(arm)?;
    let centre_m = Point3::new(foot_m.x, foot_m.y, SHEET_M) + ahead.scale(distance_m);
    let over = |right_m: f64, ahead_m: f64, up_m: f64, seed: &JointVector| {
        let point_m =
            centre_m + right.scale(right_m) + ahead.scale(ahead_m) + Vector3::z().scale(up_m);
        upright(arm, tip, point_m, seed)
    };
    let middle = JointVector::zeros(arm.chain.dof());
    let (ready_rad, mut cost) = over(0.0, 0.0, READY_M, &middle)?;
    let half_m = side_m / 2.0;
    for (right_m, ahead_m) in [
        (-half_m, -half_m),
        (half_m, -half_m),
        (-half_m, half_m),
        (half_m, half_m),
        (0.0, 0.0),
    ] {
        cost = cost.max(over(right_m, ahead_m, 0.0, &ready_rad)?.1);
    }
    let higher =
        over(0.0, -half_m, REST_M, &ready_rad).or_else(|| over(0.0, 0.0, REST_M, &ready_rad));
    let rest_rad = higher.map_or(ready_rad, |(rest_rad, _)| rest_rad);
    let place = FirstSheet {
        tip_m: tip.point_m,
        pen_axis: tip.axis,
        centre_m,
        ahead,
        side_mm: side_m * 1e3,
        ready_rad,
        rest_rad,
    };
    Some((cost, place))
}

/// Returns joints that hold the pen upright at a point, with their cost; `None` if it leans, or a joint is near its limit.
fn upright(
    arm: &ArmModel,
    tip: &ToolTip,
    point_m: Point3<f64>,
    seed: &JointVector,
) -> Option<(JointVector, f64)> {
    let goal = IkGoal::PointThenAxis {
        point_m,
        axis: -Vector3::z_axis(),
    };
    let seeds = std::iter::once(*seed).chain(arm.chain.restart_seeds(RESTARTS));
    let solved = seeds.filter_map(|seed| arm.chain.solve(tip, &goal, &seed).ok());
    let judged = solved.filter_map(|solution| {
        let margin_rad = super::tool_ik::margin_rad(arm, &solution.q_rad).0;
        let is_good = solution.off_rad <= LEAN_RAD_MAX && margin_rad >= MARGIN_RAD_MIN;
        let cost = solution.off_rad - 0.1 * margin_rad.min(LEAN_RAD_MAX);
        is_good.then_some((solution.q_rad, cost))
    });
    judged.min_by(|(_, one), (_, other)| one.total_cmp(other))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use scene::SceneLibrary;

    #[test]
    fn the_pen_and_the_sheet_of_shipped_arms_are_found_again() {
        let library = SceneLibrary::new(None);
        for (name, scene) in [
            ("koch", "koch"),
            ("openmanipulator-x", "openmanipulator_x"),
            ("omx", "omx"),
            ("roarm-m2", "roarm_m2"),
            ("roarm-m3", "roarm_m3"),
            ("vx300", "vx300"),
            ("widowx250s", "widowx"),
            ("so100", "so100"),
            ("so101", "default"),
        ] {
            let arm = library.arm(name).unwrap();
            let found = first_sheet(&arm).unwrap_or_else(|| panic!("{name}"));
            let scene = library.scene(scene, None).unwrap();
            let pen = scene.pens.first().unwrap();
            assert!(pen.axis.angle(&found.pen_axis) < 0.3, "{name}: {found:?}");
            let ahead = scene.surface.flat().rotation * Vector3::y();
            assert!(ahead.angle(&found.ahead) < 0.9, "{name}: {found:?}");
        }
    }
}
