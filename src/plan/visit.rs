//! Visiting points to be measured, and going to poses.

use nalgebra::{Point3, Vector3};

use super::build::{Build, Stand, What, fits, nowhere};
use super::course::{Piece, Place};
use super::error::{Cause, PlanError};
use super::report;
use super::trace::Stuck;
use super::trajectory::SpanKind;
use super::{Plan, Watch};
use base::units::{Joints, short};
use scene::Scene;

/// A point to stand still at.
#[derive(Clone, Debug, PartialEq)]
pub struct Visit {
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
    start: &Joints,
    points: &[Visit],
    watch: &dyn Watch,
) -> Result<Plan, PlanError> {
    if points.is_empty() {
        return Err(PlanError::Nothing);
    }
    let mut build = Build::new(scene, start, watch)?;
    for (item, point) in points.iter().enumerate() {
        build.check_wanted()?;
        let mark = build.mark();
        if let Err(mut stuck) = one(&mut build, item, point) {
            build.back_to(&mark);
            if let VisitTarget::Sheet { at_mm, .. } = point.target {
                stuck.at_mm = Some(at_mm);
            }
            build.refuse(None, &point.name, stuck);
        }
        build.progress(item + 1, points.len());
    }
    report::without_ink(build)
}

fn one(build: &mut Build<'_>, item: usize, visit: &Visit) -> Result<(), Stuck> {
    if !(visit.dwell_s.is_finite() && visit.dwell_s >= 0.0) {
        return Err(nowhere(Cause::Unfit {
            why: format!("cannot be stood at for {} s", short(visit.dwell_s)),
        }));
    }
    let (above, down, up) = legs(build.scene, &visit.target);
    go_above(build, item, visit.pen, above)?;
    let what = |kind| What {
        kind,
        item: Some(item),
        pen: visit.pen,
    };
    let asked = build.travelling();
    let leg = |piece: Option<Piece>| {
        piece
            .map(|piece| vec![piece])
            .into_iter()
            .collect::<Vec<_>>()
    };
    build.follow(what(SpanKind::Lower), &leg(down), asked)?;
    build
        .wait(what(SpanKind::Dwell), visit.dwell_s)
        .map_err(nowhere)?;
    build.follow(what(SpanKind::Lift), &leg(up), asked)?;
    build.in_use = Some((visit.pen, above));
    Ok(())
}

/// Returns the hover place above a target, the path down from there, and the path back.
fn legs(scene: &Scene, target: &VisitTarget) -> (Stand, Option<Piece>, Option<Piece>) {
    let lift_mm = scene.heights.lift_mm;
    match *target {
        VisitTarget::Sheet { at_mm, height_mm } => {
            let leg = |from_mm, to_mm| Piece::Rise {
                at_mm,
                from_mm,
                to_mm,
            };
            let apart = (lift_mm - height_mm).abs() > 1e-6;
            (
                Stand::Sheet(at_mm),
                apart.then(|| leg(lift_mm, height_mm)),
                apart.then(|| leg(height_mm, lift_mm)),
            )
        }
        VisitTarget::Point { point_m } => {
            let above = point_m + Vector3::z() * (lift_mm / 1e3);
            let (high, low) = (Place::above(above), Place::above(point_m));
            let leg = |from, to| Some(Piece::Across { from, to });
            (Stand::Space(above), leg(high, low), leg(low, high))
        }
    }
}

pub(super) fn go_above(
    build: &mut Build<'_>,
    item: usize,
    pen: usize,
    to: Stand,
) -> Result<(), Stuck> {
    let what = |kind, item| What { kind, item, pen };
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
    let hand = build.hand(pen).map_err(nowhere)?;
    let place = build.place_of(to);
    let best = hand.best_way(&place, &[build.scene.ready_rad]);
    build
        .swing_to(what(kind, item), &best.map_err(nowhere)?.q_rad)
        .map_err(nowhere)?;
    build.in_use = Some((pen, to));
    if !begun {
        build.hover_from = Some(build.mark_samples());
    }
    Ok(())
}

/// Lifts the tip if it is low, then goes to each pose.
///
/// # Errors
/// [`PlanError::Refused`] names the pose that does not fit or cannot be gone to.
pub fn go_to(
    scene: &Scene,
    start: &Joints,
    poses: &[Joints],
    watch: &dyn Watch,
) -> Result<Plan, PlanError> {
    let mut build = Build::new(scene, start, watch)?;
    for (index, pose) in poses.iter().enumerate() {
        fits(scene, &pose_name(scene, pose, index), pose)?;
    }
    if let Err(stuck) = build.lift_if_low(SpanKind::Lift) {
        build.refuse(None, "lifting the tip from where it is", stuck);
        return Err(refused(build));
    }
    for (index, pose) in poses.iter().enumerate() {
        build.check_wanted()?;
        let what = What {
            kind: SpanKind::Pose,
            item: Some(index),
            pen: 0,
        };
        if let Err(cause) = build.swing_to(what, pose) {
            build.refuse(None, &pose_name(scene, pose, index), nowhere(cause));
            return Err(refused(build));
        }
        build.progress(index + 1, poses.len());
    }
    report::without_ink(build)
}

fn refused(build: Build<'_>) -> PlanError {
    PlanError::Refused(build.refusals)
}

fn pose_name(scene: &Scene, pose: &Joints, index: usize) -> String {
    if *pose == scene.ready_rad {
        "the ready pose".to_owned()
    } else if *pose == scene.rest_rad {
        "the rest pose".to_owned()
    } else {
        format!("pose {index}")
    }
}
