//! Visits points to be measured, and goes to poses.

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
    /// Name of the point in messages.
    pub name: String,
    /// The target.
    pub target: VisitTarget,
    /// Index of the pen whose tip goes to the point.
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
    observer: &dyn PlanObserver,
) -> Result<Plan, PlanError> {
    if points.is_empty() {
        return Err(PlanError::Nothing);
    }
    let mut builder = TrajectoryBuilder::new(scene, start, observer)?;
    for (item, point) in points.iter().enumerate() {
        builder.check_cancelled()?;
        let checkpoint = builder.checkpoint();
        if let Err(mut error) = plan_visit(&mut builder, item, point) {
            builder.restore(&checkpoint);
            if let VisitTarget::Sheet { at_mm, .. } = point.target {
                error.at_mm = Some(at_mm);
            }
            builder.refuse(None, &point.name, error);
        }
        builder.progress(item + 1, points.len());
    }
    plan_report::without_ink(builder)
}

fn plan_visit(
    builder: &mut TrajectoryBuilder<'_>,
    item: usize,
    visit: &VisitPoint,
) -> Result<(), PathError> {
    if !(visit.dwell_s.is_finite() && visit.dwell_s >= 0.0) {
        let why = format!("cannot be held for {} s", short(visit.dwell_s));
        return Err(RefusalCause::Unfit { why }.into());
    }
    let (above, [down, up]) = approach_and_retreat(builder.scene, &visit.target);
    go_above(builder, item, visit.pen, above)?;
    let label = |kind| SpanLabel::new(kind, Some(item), visit.pen);
    let tip_limits = builder.travel_limits();
    builder.follow(label(SpanKind::Lower), &down, tip_limits)?;
    builder.dwell(label(SpanKind::Dwell), visit.dwell_s)?;
    builder.follow(label(SpanKind::Lift), &up, tip_limits)?;
    builder.in_use = Some((visit.pen, above));
    Ok(())
}

/// Returns the hover target above a point, the path down from it, and the path back; no paths if
/// the tip hovers there already.
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
    builder: &mut TrajectoryBuilder<'_>,
    item: usize,
    pen: usize,
    to: HoverTarget,
) -> Result<(), PathError> {
    if let Some(from) = builder.hover_of(pen) {
        let label = SpanLabel::new(SpanKind::Travel, Some(item), pen);
        return builder.travel(label, from, to);
    }
    let ready_rad = builder.scene.ready_rad;
    builder.take_pen(item, pen, to, |ik, pose| {
        Ok(ik.best_solution(pose, &[ready_rad])?.q_rad)
    })
}

/// Lifts the tip if it is low, then goes to each pose.
///
/// # Errors
/// [`PlanError::Refused`] names the pose that does not fit or cannot be reached.
pub fn go_to(
    scene: &Scene,
    start: &JointVector,
    poses: &[JointVector],
    observer: &dyn PlanObserver,
) -> Result<Plan, PlanError> {
    let mut builder = TrajectoryBuilder::new(scene, start, observer)?;
    for (index, pose) in poses.iter().enumerate() {
        check_joints_fit(scene, &pose_name(scene, pose, index), pose)?;
    }
    if let Err(error) = builder.lift_if_low(SpanKind::Lift) {
        builder.refuse(None, "lifting the tip from where it is", error);
        return Err(into_refusals(builder));
    }
    for (index, pose) in poses.iter().enumerate() {
        builder.check_cancelled()?;
        let label = SpanLabel::new(SpanKind::Pose, Some(index), 0);
        if let Err(cause) = builder.swing_to(label, pose) {
            builder.refuse(None, &pose_name(scene, pose, index), cause.into());
            return Err(into_refusals(builder));
        }
        builder.progress(index + 1, poses.len());
    }
    plan_report::without_ink(builder)
}

fn into_refusals(builder: TrajectoryBuilder<'_>) -> PlanError {
    PlanError::Refused(builder.refusals)
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
