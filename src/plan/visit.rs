//! Visiting points to be measured, and going to poses.

use nalgebra::{Point3, Vector3};

use super::cartesian_path::{CartesianPath, CartesianSegment, ToolPose};
use super::error::{PlanError, RefusalCause};
use super::follow_path::PathError;
use super::plan_report;
use super::trajectory::SpanKind;
use super::trajectory_builder::{HoverTarget, SpanLabel, TrajectoryBuilder, check_joints_fit};
use super::{Plan, PlanObserver};
use base::units::{JointVector, short};
use scene::Scene;

/// A point to stand still at.
#[derive(Clone, Debug, PartialEq)]
pub struct VisitPoint {
    /// Name in messages.
    pub name: String,
    /// The target.
    pub target: VisitTarget,
    /// Index of the pen whose tip goes there.
    pub pen: usize,
    /// Time for which the tip stays.
    pub dwell_s: f64,
}

/// The place of a visited point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum VisitTarget {
    /// Over the sheet: 0 touches it.
    Sheet {
        /// On the sheet.
        at_mm: [f64; 2],
        /// Over it.
        height_mm: f64,
    },
    /// In the arm's base frame, the pen pointing down.
    Point {
        /// The tip's place.
        point_m: Point3<f64>,
    },
}

/// Visits points in the order given, always from above.
///
/// # Errors
/// [`PlanError::Refused`] with every point that cannot be visited, or cancelled, or nothing.
pub fn visit(
    scene: &Scene,
    start: &JointVector,
    points: &[VisitPoint],
    watch: &dyn PlanObserver,
) -> Result<Plan, PlanError> {
    if points.is_empty() {
        return Err(PlanError::Nothing);
    }
    let mut build = TrajectoryBuilder::new(scene, start, watch)?;
    for (item, point) in points.iter().enumerate() {
        build.check_wanted()?;
        let mark = build.checkpoint();
        if let Err(mut stuck) = plan_visit(&mut build, item, point) {
            build.restore(&mark);
            if let VisitTarget::Sheet { at_mm, .. } = point.target {
                stuck.at_mm = Some(at_mm);
            }
            build.refuse(None, &point.name, stuck);
        }
        build.progress(item + 1, points.len());
    }
    plan_report::without_ink(build)
}

fn plan_visit(
    build: &mut TrajectoryBuilder<'_>,
    item: usize,
    visit: &VisitPoint,
) -> Result<(), PathError> {
    if !(visit.dwell_s.is_finite() && visit.dwell_s >= 0.0) {
        let why = format!("cannot be stood at for {} s", short(visit.dwell_s));
        return Err(RefusalCause::Unfit { why }.into());
    }
    let (above, [down, up]) = approach_and_retreat(build.scene, &visit.target);
    go_above(build, item, visit.pen, above)?;
    let what = |kind| SpanLabel::new(kind, Some(item), visit.pen);
    let asked = build.travel_limits();
    build.follow(what(SpanKind::Lower), &down, asked)?;
    build.dwell(what(SpanKind::Dwell), visit.dwell_s)?;
    build.follow(what(SpanKind::Lift), &up, asked)?;
    build.in_use = Some((visit.pen, above));
    Ok(())
}

/// Returns the hover place above a target, the way down from there, and the way back; no ways if the tip hovers there
/// already.
fn approach_and_retreat(
    scene: &Scene,
    target: &VisitTarget,
) -> (HoverTarget, [Vec<CartesianPath>; 2]) {
    let lift_mm = scene.heights.lift_mm;
    match *target {
        VisitTarget::Sheet { at_mm, height_mm } => {
            let is_apart = (lift_mm - height_mm).abs() > 1e-6;
            let leg = |from_mm, to_mm| {
                if is_apart {
                    vec![vec![CartesianSegment::rise(at_mm, from_mm, to_mm)]]
                } else {
                    Vec::new()
                }
            };
            let legs = [leg(lift_mm, height_mm), leg(height_mm, lift_mm)];
            (HoverTarget::Sheet(at_mm), legs)
        }
        VisitTarget::Point { point_m } => {
            let above = point_m + Vector3::z() * (lift_mm / 1e3);
            let (high, low) = (ToolPose::above(above), ToolPose::above(point_m));
            let leg = |from, to| vec![vec![CartesianSegment::Across { from, to }]];
            (HoverTarget::Space(above), [leg(high, low), leg(low, high)])
        }
    }
}

pub(super) fn go_above(
    build: &mut TrajectoryBuilder<'_>,
    item: usize,
    pen: usize,
    to: HoverTarget,
) -> Result<(), PathError> {
    if let Some(from) = build.stand_with(pen) {
        let what = SpanLabel::new(SpanKind::Travel, Some(item), pen);
        return build.travel(what, from, to);
    }
    let ready_rad = build.scene.ready_rad;
    build.take_pen(item, pen, to, |hand, place| {
        Ok(hand.best_solution(place, &[ready_rad])?.q_rad)
    })
}

/// Lifts the tip if it is low, then goes to each pose.
///
/// # Errors
/// [`PlanError::Refused`] names the pose that does not fit or cannot be gone to.
pub fn go_to(
    scene: &Scene,
    start: &JointVector,
    poses: &[JointVector],
    watch: &dyn PlanObserver,
) -> Result<Plan, PlanError> {
    let mut build = TrajectoryBuilder::new(scene, start, watch)?;
    for (index, pose) in poses.iter().enumerate() {
        check_joints_fit(scene, &pose_name(scene, pose, index), pose)?;
    }
    if let Err(stuck) = build.lift_if_low(SpanKind::Lift) {
        build.refuse(None, "lifting the tip from where it is", stuck);
        return Err(refused(build));
    }
    for (index, pose) in poses.iter().enumerate() {
        build.check_wanted()?;
        let what = SpanLabel::new(SpanKind::Pose, Some(index), 0);
        if let Err(cause) = build.swing_to(what, pose) {
            build.refuse(None, &pose_name(scene, pose, index), cause.into());
            return Err(refused(build));
        }
        build.progress(index + 1, poses.len());
    }
    plan_report::without_ink(build)
}

fn refused(build: TrajectoryBuilder<'_>) -> PlanError {
    PlanError::Refused(build.refusals)
}

fn pose_name(scene: &Scene, pose: &JointVector, index: usize) -> String {
    if *pose == scene.ready_rad {
        "the ready pose".to_owned()
    } else if *pose == scene.rest_rad {
        "the rest pose".to_owned()
    } else {
        format!("pose {index}")
    }
}
