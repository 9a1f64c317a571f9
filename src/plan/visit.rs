//! Visiting points to be measured, and going to poses.

use nalgebra::{Point3, Vector3};

use super::cartesian_path::{CartesianSegment, ToolPose};
use super::error::{PlanError, RefusalCause};
use super::follow_path::PathError;
use super::plan_report;
use super::trajectory::SpanKind;
use super::trajectory_builder::{
    HoverTarget, SpanLabel, TrajectoryBuilder, check_joints_fit, without_place,
};
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
        return Err(without_place(RefusalCause::Unfit {
            why: format!("cannot be stood at for {} s", short(visit.dwell_s)),
        }));
    }
    let (above, down, up) = approach_and_retreat(build.scene, &visit.target);
    go_above(build, item, visit.pen, above)?;
    let what = |kind| SpanLabel {
        kind,
        item: Some(item),
        pen: visit.pen,
    };
    let asked = build.travel_limits();
    let leg = |piece: Option<CartesianSegment>| {
        piece
            .map(|piece| vec![piece])
            .into_iter()
            .collect::<Vec<_>>()
    };
    build.follow(what(SpanKind::Lower), &leg(down), asked)?;
    build
        .dwell(what(SpanKind::Dwell), visit.dwell_s)
        .map_err(without_place)?;
    build.follow(what(SpanKind::Lift), &leg(up), asked)?;
    build.in_use = Some((visit.pen, above));
    Ok(())
}

/// Returns the hover place above a target, the path down from there, and the path back.
fn approach_and_retreat(
    scene: &Scene,
    target: &VisitTarget,
) -> (
    HoverTarget,
    Option<CartesianSegment>,
    Option<CartesianSegment>,
) {
    let lift_mm = scene.heights.lift_mm;
    match *target {
        VisitTarget::Sheet { at_mm, height_mm } => {
            let leg = |from_mm, to_mm| CartesianSegment::Rise {
                at_mm,
                from_mm,
                to_mm,
            };
            let apart = (lift_mm - height_mm).abs() > 1e-6;
            (
                HoverTarget::Sheet(at_mm),
                apart.then(|| leg(lift_mm, height_mm)),
                apart.then(|| leg(height_mm, lift_mm)),
            )
        }
        VisitTarget::Point { point_m } => {
            let above = point_m + Vector3::z() * (lift_mm / 1e3);
            let (high, low) = (ToolPose::above(above), ToolPose::above(point_m));
            let leg = |from, to| Some(CartesianSegment::Across { from, to });
            (HoverTarget::Space(above), leg(high, low), leg(low, high))
        }
    }
}

pub(super) fn go_above(
    build: &mut TrajectoryBuilder<'_>,
    item: usize,
    pen: usize,
    to: HoverTarget,
) -> Result<(), PathError> {
    let what = |kind, item| SpanLabel { kind, item, pen };
    if let Some(from) = build.stand_with(pen) {
        return build.travel(what(SpanKind::Travel, Some(item)), from, to);
    }
    let begun = build.hover_from.is_some();
    let (kind, item) = if begun {
        (SpanKind::Travel, Some(item))
    } else {
        (SpanKind::Approach, None)
    };
    build.lift_if_low(kind)?;
    let hand = build.hand(pen).map_err(without_place)?;
    let place = build.place_of(to);
    let best = hand.best_solution(&place, &[build.scene.ready_rad]);
    build
        .swing_to(what(kind, item), &best.map_err(without_place)?.q_rad)
        .map_err(without_place)?;
    build.in_use = Some((pen, to));
    if !begun {
        build.hover_from = Some(build.sample_count());
    }
    Ok(())
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
        let what = SpanLabel {
            kind: SpanKind::Pose,
            item: Some(index),
            pen: 0,
        };
        if let Err(cause) = build.swing_to(what, pose) {
            build.refuse(None, &pose_name(scene, pose, index), without_place(cause));
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
