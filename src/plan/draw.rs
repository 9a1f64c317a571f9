//! Plans drawings: lowers to every stroke, draws it and lifts, with dips where the pen needs ink.

#![expect(
    clippy::indexing_slicing,
    reason = "every index is a stroke of the order, a pen of the builder, or the ink of a pen"
)]

use nalgebra::Vector3;

use super::cartesian_path::{CartesianSegment, ToolPose};
use super::error::{PlanError, PlanRefusal, RefusalCause};
use super::follow_path::PathError;
use super::hop::{HopEnds, HopPlanner, PlannedHop};
use super::hop_clearance::HopClearance;
use super::order::{StrokeTurn, order};
use super::plan_report::{self, StrokeReport};
use super::prepare_strokes::{PreparedStroke, prepare_strokes};
use super::tool_ik::ToolIk;
use super::trajectory::SpanKind;
use super::trajectory_builder::{
    BuildCheckpoint, HoverTarget, SpanLabel, TrajectoryBuilder, hop_limits,
};
use super::{Plan, PlanObserver, compensation, corner_blending, hand_changed_pens, ink, posture};
use base::plane::{Point, distance, length};
use base::units::JointVector;
use scene::{InkCap, Order, PenHolder, Scene, SheetStroke};

/// Most strokes of one plan.
const STROKES_MAX: usize = 100_000;
/// Number of refusals after which planning stops looking for more.
const REFUSALS_MAX: usize = 1000;

/// The part of a drawing that can be planned, and the reasons for the rest.
#[derive(Clone, Debug)]
pub struct PartialPlan {
    /// The part that can be drawn well.
    pub plan: Plan,
    /// One reason for each stroke that cannot be drawn.
    pub refusals: Vec<PlanRefusal>,
    /// The refused strokes, joined and tidied.
    pub refused: Vec<SheetStroke>,
}

/// Plans as much of the scene's design as can be drawn well, for previews.
///
/// # Errors
/// Cancelled, nothing to draw, or invalid strokes.
pub fn attempt(
    scene: &Scene,
    start: &JointVector,
    observer: &dyn PlanObserver,
) -> Result<PartialPlan, PlanError> {
    attempt_strokes(scene, start, &scene.strokes, scene.order, observer)
}

/// Plans the scene's design.
///
/// # Errors
/// [`PlanError::Refused`] with everything that cannot be drawn well, or cancelled, or nothing.
pub fn draw(
    scene: &Scene,
    start: &JointVector,
    observer: &dyn PlanObserver,
) -> Result<Plan, PlanError> {
    draw_strokes(scene, start, &scene.strokes, scene.order, observer)
}

/// Plans strokes other than the scene's, on its sheet and with its pens.
///
/// # Errors
/// As [`draw`].
pub fn draw_strokes(
    scene: &Scene,
    start: &JointVector,
    strokes: &[SheetStroke],
    stroke_order: Order,
    observer: &dyn PlanObserver,
) -> Result<Plan, PlanError> {
    let attempt = attempt_strokes(scene, start, strokes, stroke_order, observer)?;
    if attempt.refusals.is_empty() {
        Ok(attempt.plan)
    } else {
        Err(PlanError::Refused(attempt.refusals))
    }
}

fn attempt_strokes(
    scene: &Scene,
    start: &JointVector,
    strokes: &[SheetStroke],
    stroke_order: Order,
    observer: &dyn PlanObserver,
) -> Result<PartialPlan, PlanError> {
    check_strokes(strokes)?;
    let has_pauses = strokes.iter().any(|stroke| stroke.pause.is_some());
    let end = match &scene.holder {
        PenHolder::ByHand { mounted: None, .. } => None,
        PenHolder::ByHand { change_rad, .. } => Some(Some(change_rad)),
        PenHolder::AllMounted => Some(None),
    };
    let Some(end) = end.filter(|_| !has_pauses) else {
        return hand_changed_pens::attempt(scene, start, strokes, stroke_order, observer);
    };
    let planned = attempt_mounted(scene, (start, end), strokes, stroke_order, observer);
    planned.map(|(partial_plan, _)| partial_plan)
}

/// Plans what the pens in the holder draw, and the motion to the last pose if there is one. Also
/// returns the sample at which the approach ends.
pub(super) fn attempt_mounted(
    scene: &Scene,
    ends: (&JointVector, Option<&JointVector>),
    strokes: &[SheetStroke],
    stroke_order: Order,
    observer: &dyn PlanObserver,
) -> Result<(PartialPlan, usize), PlanError> {
    let in_order = |prepared: &[PreparedStroke]| order(&strokes_of(prepared), stroke_order);
    attempt_in_order(scene, ends, strokes, stroke_order, &in_order, observer)
}

/// As [`attempt_mounted`], in an order of its own once the strokes are joined as `stroke_order` asks.
pub(super) fn attempt_in_order(
    scene: &Scene,
    (start, end_rad): (&JointVector, Option<&JointVector>),
    strokes: &[SheetStroke],
    stroke_order: Order,
    in_order: &dyn Fn(&[PreparedStroke]) -> Vec<StrokeTurn>,
    observer: &dyn PlanObserver,
) -> Result<(PartialPlan, usize), PlanError> {
    // Report at once that planning has begun.
    observer.progress(0, strokes.len());
    let full_scene = scene;
    let scene = &*compensation::eased(full_scene);
    let mut prepared_strokes = prepare_strokes(strokes, stroke_order, scene.join_mm);
    ink::divide(scene, &mut prepared_strokes);
    let turns = in_order(&prepared_strokes);
    let pens = 0..scene.pens.len();
    let hops = pens.map(|pen| HopPlanner::new(scene, pen, hop_limits(scene, pen)));
    let mut drawing = DrawingPlanner {
        builder: TrajectoryBuilder::new(scene, start, observer)?,
        hops: hops.collect(),
        lifted_end: None,
        given_strokes: strokes,
        since_dip_mm: vec![f64::INFINITY; scene.pens.len()],
        reports: Vec::with_capacity(turns.len()),
        drawn: Vec::with_capacity(turns.len()),
        refused: Vec::new(),
        dips: 0,
    };
    for (done, turn) in turns.iter().enumerate() {
        drawing.builder.check_cancelled()?;
        drawing.plan_stroke(turn, &prepared_strokes[turn.stroke]);
        drawing.builder.progress(done + 1, turns.len());
        if drawing.builder.refusals.len() >= REFUSALS_MAX {
            break;
        }
    }
    if let Some(end_rad) = end_rad {
        drawing.move_to_final_pose(end_rad);
    }
    let refusals = std::mem::take(&mut drawing.builder.refusals);
    let (reports, drawn, dips) = (drawing.reports, drawing.drawn, drawing.dips);
    let (trajectory, hover_from) = drawing.builder.finish()?;
    let (trajectory, settle_samples) = compensation::compensated(full_scene, trajectory);
    let hover_from = hover_from + settle_samples;
    let drawn = (reports, drawn);
    let planned = PartialPlan {
        plan: plan_report::plan(full_scene, trajectory, hover_from, drawn, dips),
        refusals,
        refused: drawing.refused,
    };
    Ok((planned, hover_from))
}

/// Returns the strokes alone.
pub(super) fn strokes_of(prepared: &[PreparedStroke]) -> Vec<SheetStroke> {
    let strokes = prepared.iter().map(|prepared| prepared.stroke.clone());
    strokes.collect()
}

fn check_strokes(strokes: &[SheetStroke]) -> Result<(), PlanError> {
    if strokes.is_empty() {
        return Err(PlanError::Nothing);
    }
    if strokes.len() > STROKES_MAX {
        let why = format!(
            "has {} strokes; at most {STROKES_MAX} are possible",
            strokes.len()
        );
        return Err(PlanError::unfit(None, "the design", why));
    }
    for (index, stroke) in strokes.iter().enumerate() {
        let why = if stroke.points_mm.is_empty() {
            "has no points"
        } else if stroke.points_mm.iter().flatten().any(|v| !v.is_finite()) {
            "has a point that is not finite"
        } else {
            continue;
        };
        return Err(PlanError::unfit(
            Some(index),
            &stroke.source,
            why.to_owned(),
        ));
    }
    Ok(())
}

/// The tilt of the pen along a stroke, and the stretch of the stroke on the surface.
#[derive(Clone, Copy, Debug, Default)]
struct SurfaceFit {
    tilt_rad: f64,
    stretch: f64,
}

/// The end of a stroke over which the tip was lifted: where another stroke follows, a hop replaces
/// the lift.
#[derive(Clone)]
struct LiftedEnd {
    /// The builder's state with the tip still down.
    down: BuildCheckpoint,
    label: SpanLabel,
    at_mm: Point,
    /// The samples of the lift.
    lift: Vec<JointVector>,
}

struct DrawingPlanner<'a> {
    builder: TrajectoryBuilder<'a>,
    /// One for each pen.
    hops: Vec<HopPlanner<'a>>,
    /// The end of the previous stroke, while the tip hovers over it.
    lifted_end: Option<LiftedEnd>,
    given_strokes: &'a [SheetStroke],
    since_dip_mm: Vec<f64>,
    reports: Vec<StrokeReport>,
    drawn: Vec<SheetStroke>,
    refused: Vec<SheetStroke>,
    dips: usize,
}

impl DrawingPlanner<'_> {
    /// Plans one stroke with the motions before and after it. If that fails, tries once more in the
    /// posture that serves this stroke best. A refused stroke leaves no trace.
    fn plan_stroke(&mut self, turn: &StrokeTurn, prepared: &PreparedStroke) {
        let mut stroke = prepared.stroke.clone();
        if turn.reversed {
            stroke.points_mm.reverse();
        }
        let state = (
            self.builder.checkpoint(),
            self.lifted_end.clone(),
            self.since_dip_mm.clone(),
            self.dips,
        );
        let mut last_error = None;
        for use_best_posture in [false, true] {
            match self.try_stroke(&stroke, use_best_posture) {
                Ok(fit) => {
                    self.report(turn, prepared, stroke, fit);
                    return;
                }
                Err(error) => last_error = Some(error),
            }
            self.restore(&state.0, state.1.clone());
            (self.since_dip_mm, self.dips) = (state.2.clone(), state.3);
        }
        if let Some(error) = last_error {
            self.refuse(&stroke, prepared, error);
        }
    }

    /// Swings from above the last stroke to a pose.
    fn move_to_final_pose(&mut self, end: &JointVector) {
        let pen = self.builder.in_use.map_or(0, |(pen, _)| pen);
        let label = SpanLabel::new(SpanKind::Pose, None, pen);
        if let Err(cause) = self.builder.swing_to(label, end) {
            let name = "the pose for changing the pen";
            self.builder.refuse(None, name, cause.into());
        }
    }

    /// Undoes everything since a checkpoint, also where a hop has replaced the lift before it.
    fn restore(&mut self, checkpoint: &BuildCheckpoint, lifted_end: Option<LiftedEnd>) {
        if let Some(end) = &lifted_end {
            self.builder.restore(&end.down);
            self.builder.reappend(end.label, &end.lift);
        }
        self.builder.restore(checkpoint);
        self.lifted_end = lifted_end;
    }

    fn report(
        &mut self,
        turn: &StrokeTurn,
        prepared: &PreparedStroke,
        stroke: SheetStroke,
        fit: SurfaceFit,
    ) {
        self.reports.push(StrokeReport {
            stroke: prepared.parts[0],
            parts: prepared.parts.clone(),
            source: stroke.source.clone(),
            pen: stroke.pen,
            reversed: turn.reversed,
            length_mm: length(&stroke.points_mm),
            tilt_max_deg: fit.tilt_rad.to_degrees(),
            stretch_max: fit.stretch,
            ..StrokeReport::default()
        });
        self.drawn.push(stroke);
    }

    /// Refuses the given stroke that the place belongs to, at the farthest point if it is out of
    /// reach.
    fn refuse(&mut self, stroke: &SheetStroke, prepared: &PreparedStroke, mut error: PathError) {
        if matches!(error.cause, RefusalCause::OutOfReach { .. })
            && let Some((at_mm, by_mm)) = self.farthest(stroke)
        {
            error.at_mm = Some(at_mm);
            error.cause = RefusalCause::OutOfReach { by_mm };
        }
        let at_mm = error.at_mm.or(stroke.points_mm.first().copied());
        let distance_mm = |part: &usize| {
            let given = self.given_strokes.get(*part).into_iter();
            let points = given.flat_map(|given| &given.points_mm);
            let distances = points.map(|point| at_mm.map_or(0.0, |at| distance(*point, at)));
            distances.fold(f64::INFINITY, f64::min)
        };
        let parts = prepared.parts.iter().copied();
        let part = parts.min_by(|a, b| distance_mm(a).total_cmp(&distance_mm(b)));
        let given = part.and_then(|part| self.given_strokes.get(part));
        let source = given.map_or(&stroke.source, |given| &given.source);
        self.builder.refuse(part, source, error);
        self.refused.push(stroke.clone());
    }

    /// Returns the point of a stroke that the tip misses by most, if it misses any.
    fn farthest(&self, stroke: &SheetStroke) -> Option<(Point, f64)> {
        let scene = self.builder.scene;
        let ik = self.builder.ik(stroke.pen).ok()?;
        let mut seed = scene.ready_rad;
        let mut worst: Option<(Point, f64)> = None;
        for at_mm in posture::sample_evenly(&stroke.points_mm) {
            let pose = ToolPose::over(&scene.surface, at_mm, -scene.press_mm(ik.pen));
            match ik.solve(&pose, &seed) {
                Ok(found) => seed = found.q_rad,
                Err(failure) => {
                    let by_mm = failure.nearest.off_m * 1e3;
                    if worst.is_none_or(|(_, worst_mm)| by_mm > worst_mm) {
                        worst = Some((at_mm, by_mm));
                    }
                }
            }
        }
        worst
    }

    fn try_stroke(
        &mut self,
        stroke: &SheetStroke,
        use_best_posture: bool,
    ) -> Result<SurfaceFit, PathError> {
        let stretch = self.check_surface_fit(stroke)?;
        let item = self.reports.len();
        let heights = self.builder.scene.heights;
        let pen = self.builder.ik(stroke.pen)?.pen;
        let press_mm = self.builder.scene.press_mm(pen);
        let paths = corner_blending::blend_corners(&stroke.points_mm, -press_mm);
        let points = &stroke.points_mm;
        let (Some(first), Some(last)) = (points.first(), points.last()) else {
            let why = "has no points".to_owned();
            return Err(RefusalCause::Unfit { why }.into());
        };
        let label = |kind| SpanLabel::new(kind, Some(item), stroke.pen);
        let (travel_limits, draw_limits) =
            (self.builder.travel_limits(), self.builder.draw_limits(pen));
        let (lift_mm, contact_mm) = (heights.lift_mm, -press_mm);
        if use_best_posture || !self.try_from_previous(item, stroke, *first)? {
            self.lower_to(item, stroke, *first, use_best_posture)?;
        }
        let tilt_rad = self
            .builder
            .follow(label(SpanKind::Draw), &paths, draw_limits)?;
        let down = self.builder.checkpoint();
        let raise = [vec![CartesianSegment::rise(*last, contact_mm, lift_mm)]];
        self.builder
            .follow(label(SpanKind::Lift), &raise, travel_limits)?;
        self.builder.in_use = Some((stroke.pen, HoverTarget::Sheet(*last)));
        self.lifted_end = Some(LiftedEnd {
            lift: self.builder.samples_since(&down).to_vec(),
            down,
            label: label(SpanKind::Lift),
            at_mm: *last,
        });
        Ok(SurfaceFit { tilt_rad, stretch })
    }

    /// Goes above a stroke's beginning, and down to it.
    fn lower_to(
        &mut self,
        item: usize,
        stroke: &SheetStroke,
        to_mm: Point,
        use_best_posture: bool,
    ) -> Result<(), PathError> {
        self.go_above(item, stroke, to_mm, use_best_posture)?;
        let scene = self.builder.scene;
        let press_mm = scene.press_mm(self.builder.ik(stroke.pen)?.pen);
        let lower = CartesianSegment::rise(to_mm, scene.heights.lift_mm, -press_mm);
        let label = SpanLabel::new(SpanKind::Lower, Some(item), stroke.pen);
        let limits = self.builder.travel_limits();
        self.builder.follow(label, &[vec![lower]], limits)?;
        Ok(())
    }

    /// Goes from the end of the previous stroke to a stroke's beginning: hops in place of the lift there;
    /// where joints slow a hop much, goes up, across and down. Returns whether the tip is there: if the
    /// pen is another, ink is due, or no hop is clear, it changes nothing and returns `false`.
    fn try_from_previous(
        &mut self,
        item: usize,
        stroke: &SheetStroke,
        to_mm: Point,
    ) -> Result<bool, PathError> {
        let (pen, length_mm) = (stroke.pen, length(&stroke.points_mm));
        let previous = self.lifted_end.take().filter(|end| end.label.pen == pen);
        let Some(previous) = previous.filter(|_| self.ink_due(pen, length_mm).is_none()) else {
            return Ok(false);
        };
        let Some(hop) = self.clear_hop(&previous, to_mm) else {
            return Ok(false);
        };
        if hop.is_slow() {
            let since_dip_mm = self.since_dip_mm.clone();
            let is_lowered = self.lower_to(item, stroke, to_mm, false).is_ok();
            if is_lowered && self.builder.samples_since(&previous.down).len() < hop.joints.len() {
                return Ok(true);
            }
            self.since_dip_mm = since_dip_mm;
        }
        self.builder.restore(&previous.down);
        self.builder.append_hop(previous.label, item, &hop)?;
        self.since_dip_mm[pen] += length_mm;
        Ok(true)
    }

    fn clear_hop(&self, previous: &LiftedEnd, to_mm: Point) -> Option<PlannedHop> {
        let (scene, pen) = (self.builder.scene, previous.label.pen);
        let ends = HopEnds {
            from_mm: previous.at_mm,
            to_mm,
            start: self.builder.joints_at(&previous.down),
        };
        let ik = self.builder.ik(pen).ok()?;
        self.hops.get(pen)?.plan(&ik, &ends, |samples| {
            let ends = [ends.start, *samples.last().unwrap_or(&ends.start)];
            HopClearance::new(scene, pen, ends.each_ref()).is_clear(samples)
                && self
                    .builder
                    .own_parts
                    .is_kept(&self.with_lifts(&ik, ends), samples)
        })
    }

    /// Returns poses on the sheet, and those above them at the height of travel: an arm is nearer to itself there.
    fn with_lifts(&self, ik: &ToolIk<'_>, poses: [JointVector; 2]) -> Vec<JointVector> {
        let lift_mm = self.builder.scene.heights.lift_mm;
        let lifted = poses.iter().filter_map(|q| {
            let at_mm = self.builder.scene.surface.project(&ik.point(q)).at_mm;
            let above = ToolPose::over(&self.builder.scene.surface, at_mm, lift_mm);
            Some(ik.leaving(q).solve(&above, q).ok()?.q_rad)
        });
        poses.iter().copied().chain(lifted).collect()
    }

    /// Returns the stretch of a line on the surface; refuses a line that leaves it, is stretched too
    /// much, or turns too fast under the pen.
    fn check_surface_fit(&self, stroke: &SheetStroke) -> Result<f64, PathError> {
        let scene = self.builder.scene;
        let pen = self.builder.ik(stroke.pen)?.pen;
        let distortion = scene.surface.distortion(&stroke.points_mm);
        if distortion.off_at_mm.is_some() {
            return Err(PathError {
                at_mm: distortion.off_at_mm,
                cause: RefusalCause::OffSurface,
            });
        }
        if distortion.stretch > scene.limits.stretch_max {
            return Err(PathError {
                at_mm: Some(distortion.stretched_at_mm),
                cause: RefusalCause::Stretched {
                    by_percent: (distortion.stretch - 1.0) * 1e2,
                    most_percent: (scene.limits.stretch_max - 1.0) * 1e2,
                },
            });
        }
        if distortion.turn_rad_mm > pen.turn_rad_mm {
            return Err(PathError {
                at_mm: Some(distortion.turned_at_mm),
                cause: RefusalCause::Turns {
                    turn_deg_mm: distortion.turn_rad_mm.to_degrees(),
                    most_deg_mm: pen.turn_rad_mm.to_degrees(),
                },
            });
        }
        Ok(distortion.stretch)
    }

    /// Goes above a stroke's beginning, by way of the ink where a dip is due.
    fn go_above(
        &mut self,
        item: usize,
        stroke: &SheetStroke,
        at_mm: Point,
        use_best_posture: bool,
    ) -> Result<(), PathError> {
        let (pen, length_mm) = (stroke.pen, length(&stroke.points_mm));
        let due = self.ink_due(pen, length_mm);
        let hover = HoverTarget::Sheet(at_mm);
        let first_target = match &due {
            Some(ink) => HoverTarget::Space(self.point_above(ink)),
            None => hover,
        };
        let travel = SpanLabel::new(SpanKind::Travel, Some(item), pen);
        if let Some(from) = self.builder.hover_of(pen).filter(|_| !use_best_posture) {
            self.builder.travel(travel, from, first_target)?;
        } else {
            // All of the stroke, and the area of the other strokes of this pen.
            let mut poses = posture::along(self.builder.scene, stroke);
            if !use_best_posture {
                poses.extend(posture::corners(
                    self.builder.scene,
                    self.given_strokes,
                    pen,
                ));
            }
            let scene = self.builder.scene;
            self.builder.take_pen(item, pen, first_target, |ik, pose| {
                posture::best_posture(scene, ik, pose, &poses)
            })?;
        }
        if let Some(ink) = due {
            self.dip(item, pen, &ink)?;
            self.builder.travel(travel, first_target, hover)?;
        }
        self.since_dip_mm[pen] += length_mm;
        Ok(())
    }

    fn ink_due(&self, pen: usize, length_mm: f64) -> Option<InkCap> {
        let scene = self.builder.scene;
        let ink = &scene.inks[scene.pens[pen].ink?];
        let since_mm = self.since_dip_mm[pen];
        (since_mm + length_mm > ink.dip_every_mm && since_mm > 0.0).then(|| ink.clone())
    }

    fn point_above(&self, ink: &InkCap) -> nalgebra::Point3<f64> {
        ink.rim_m + Vector3::z() * (self.builder.scene.heights.lift_mm / 1e3)
    }

    /// Dips: down to a third of the cap's depth, waits, and up.
    fn dip(&mut self, item: usize, pen: usize, ink: &InkCap) -> Result<(), PathError> {
        let label = SpanLabel::new(SpanKind::Dip, Some(item), pen);
        let above = ToolPose::above(self.point_above(ink));
        let below = ToolPose::above(ink.rim_m - Vector3::z() * (ink.depth_m / 3.0));
        let tip_limits = self.builder.travel_limits();
        let path_between = |from, to| vec![CartesianSegment::Across { from, to }];
        self.builder
            .follow(label, &[path_between(above, below)], tip_limits)?;
        self.builder.dwell(label, ink.wait_s)?;
        self.builder
            .follow(label, &[path_between(below, above)], tip_limits)?;
        self.dips += 1;
        self.since_dip_mm[pen] = 0.0;
        Ok(())
    }
}
