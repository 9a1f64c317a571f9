//! Drawing: every stroke lowered to, drawn and lifted from, with dips where the pen needs ink.

#![expect(
    clippy::indexing_slicing,
    reason = "every index is a stroke of the order, a pen that the build has, or an ink of one"
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
use super::trajectory::SpanKind;
use super::trajectory_builder::{
    BuildCheckpoint, HoverTarget, SpanLabel, TrajectoryBuilder, hop_limits,
};
use super::{Plan, PlanObserver, compensation, corner_blending, hand_changed_pens, ink, posture};
use base::plane::{Point, distance, length};
use base::units::JointVector;
use scene::{InkCap, Order, PenHolder, Scene, SheetStroke};

/// Strokes of one plan.
const STROKES_MAX: usize = 100_000;
/// Refusals after which no further ones are looked for.
const REFUSALS_MAX: usize = 1000;

/// As much of a drawing as can be planned, and what cannot.
#[derive(Clone, Debug)]
pub struct PartialPlan {
    /// The part that can be drawn well.
    pub plan: Plan,
    /// The reasons for all that cannot be drawn.
    pub refusals: Vec<PlanRefusal>,
    /// The strokes that the refusals are about, joined and tidied.
    pub refused: Vec<SheetStroke>,
}

/// Plans as much of the scene's design as can be drawn well: for previews.
///
/// # Errors
/// Cancelled, nothing to draw, or invalid strokes.
pub fn attempt(
    scene: &Scene,
    start: &JointVector,
    watch: &dyn PlanObserver,
) -> Result<PartialPlan, PlanError> {
    attempt_strokes(scene, start, &scene.strokes, scene.order, watch)
}

/// Plans the scene's design.
///
/// # Errors
/// [`PlanError::Refused`] with everything that cannot be drawn well, or cancelled, or nothing.
pub fn draw(
    scene: &Scene,
    start: &JointVector,
    watch: &dyn PlanObserver,
) -> Result<Plan, PlanError> {
    draw_strokes(scene, start, &scene.strokes, scene.order, watch)
}

/// Plans other strokes than the scene's, on its sheet and with its pens.
///
/// # Errors
/// As [`draw`].
pub fn draw_strokes(
    scene: &Scene,
    start: &JointVector,
    strokes: &[SheetStroke],
    how: Order,
    watch: &dyn PlanObserver,
) -> Result<Plan, PlanError> {
    let attempt = attempt_strokes(scene, start, strokes, how, watch)?;
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
    how: Order,
    watch: &dyn PlanObserver,
) -> Result<PartialPlan, PlanError> {
    check(strokes)?;
    let pauses = strokes.iter().any(|stroke| stroke.pause.is_some());
    let end = match &scene.holder {
        PenHolder::ByHand { mounted: None, .. } => None,
        PenHolder::ByHand { change_rad, .. } => Some(Some(change_rad)),
        PenHolder::AllMounted => Some(None),
    };
    let Some(end) = end.filter(|_| !pauses) else {
        return hand_changed_pens::attempt(scene, start, strokes, how, watch);
    };
    let planned = attempt_mounted(scene, (start, end), strokes, how, watch);
    planned.map(|(planned, _)| planned)
}

/// Plans what pens in the holder draw, and the way to the last pose, if there is one. Returns the sample at which the
/// approach ends as well.
pub(super) fn attempt_mounted(
    scene: &Scene,
    (start, end): (&JointVector, Option<&JointVector>),
    strokes: &[SheetStroke],
    how: Order,
    watch: &dyn PlanObserver,
) -> Result<(PartialPlan, usize), PlanError> {
    // Somebody who waits hears at once that planning has begun.
    watch.progress(0, strokes.len());
    let whole = scene;
    let scene = &*compensation::eased(whole);
    let mut tidied = prepare_strokes(strokes, how, scene.join_mm);
    ink::divide(scene, &mut tidied);
    let alone: Vec<SheetStroke> = tidied.iter().map(|one| one.stroke.clone()).collect();
    let turns = order(&alone, how);
    let pens = 0..scene.pens.len();
    let hops = pens.map(|pen| HopPlanner::new(scene, pen, hop_limits(scene, pen)));
    let mut drawing = DrawingPlanner {
        build: TrajectoryBuilder::new(scene, start, watch)?,
        hops: hops.collect(),
        raised: None,
        given: strokes,
        since_dip_mm: vec![f64::INFINITY; scene.pens.len()],
        reports: Vec::with_capacity(turns.len()),
        drawn: Vec::with_capacity(turns.len()),
        refused: Vec::new(),
        dips: 0,
    };
    for (done, turn) in turns.iter().enumerate() {
        drawing.build.check_wanted()?;
        drawing.plan_stroke(turn, &tidied[turn.stroke]);
        drawing.build.progress(done + 1, turns.len());
        if drawing.build.refusals.len() >= REFUSALS_MAX {
            break;
        }
    }
    if let Some(end) = end {
        drawing.leave_for(end);
    }
    let refusals = std::mem::take(&mut drawing.build.refusals);
    let (reports, drawn, dips) = (drawing.reports, drawing.drawn, drawing.dips);
    let (trajectory, hover_from) = drawing.build.finish()?;
    let (trajectory, before) = compensation::compensated(whole, trajectory);
    let hover_from = hover_from + before;
    let drawn = (reports, drawn);
    let planned = PartialPlan {
        plan: plan_report::plan(whole, trajectory, hover_from, drawn, dips),
        refusals,
        refused: drawing.refused,
    };
    Ok((planned, hover_from))
}

fn check(strokes: &[SheetStroke]) -> Result<(), PlanError> {
    if strokes.is_empty() {
        return Err(PlanError::Nothing);
    }
    if strokes.len() > STROKES_MAX {
        let why = format!("has {} strokes; {STROKES_MAX} are possible", strokes.len());
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

/// The end of a stroke, from which the tip was lifted to hover over it: where another stroke
/// follows, a hop takes the lift's place.
#[derive(Clone)]
struct LiftedEnd {
    /// With the tip still down.
    down: BuildCheckpoint,
    what: SpanLabel,
    at_mm: Point,
    /// The samples of the lift.
    lift: Vec<JointVector>,
}

struct DrawingPlanner<'a> {
    build: TrajectoryBuilder<'a>,
    /// One a pen.
    hops: Vec<HopPlanner<'a>>,
    /// The end of the stroke before, while the tip hovers over it.
    raised: Option<LiftedEnd>,
    given: &'a [SheetStroke],
    since_dip_mm: Vec<f64>,
    reports: Vec<StrokeReport>,
    drawn: Vec<SheetStroke>,
    refused: Vec<SheetStroke>,
    dips: usize,
}

impl DrawingPlanner<'_> {
    /// One stroke with all that goes before and after it. Where that fails, it is tried once more
    /// with the arm held in the way that serves this stroke best; refused, it leaves no trace.
    fn plan_stroke(&mut self, turn: &StrokeTurn, tidied: &PreparedStroke) {
        let mut stroke = tidied.stroke.clone();
        if turn.reversed {
            stroke.points_mm.reverse();
        }
        let mark = (
            self.build.checkpoint(),
            self.raised.clone(),
            self.since_dip_mm.clone(),
            self.dips,
        );
        let mut failed = None;
        for retake in [false, true] {
            match self.try_stroke(&stroke, retake) {
                Ok(lies) => {
                    self.report(turn, tidied, stroke, lies);
                    return;
                }
                Err(stuck) => failed = Some(stuck),
            }
            self.restore(&mark.0, mark.1.clone());
            (self.since_dip_mm, self.dips) = (mark.2.clone(), mark.3);
        }
        if let Some(stuck) = failed {
            self.refuse(&stroke, tidied, stuck);
        }
    }

    /// Goes from the last stroke to a pose, from where the arm stands over the sheet.
    fn leave_for(&mut self, end: &JointVector) {
        let pen = self.build.in_use.map_or(0, |(pen, _)| pen);
        let what = SpanLabel::new(SpanKind::Pose, None, pen);
        if let Err(cause) = self.build.swing_to(what, end) {
            let name = "the pose in which the pen is changed";
            self.build.refuse(None, name, cause.into());
        }
    }

    /// Takes back all since a mark. The lift before it may have given way to a hop.
    fn restore(&mut self, mark: &BuildCheckpoint, raised: Option<LiftedEnd>) {
        if let Some(end) = &raised {
            self.build.restore(&end.down);
            self.build.reappend(end.what, &end.lift);
        }
        self.build.restore(mark);
        self.raised = raised;
    }

    fn report(
        &mut self,
        turn: &StrokeTurn,
        tidied: &PreparedStroke,
        stroke: SheetStroke,
        lies: SurfaceFit,
    ) {
        self.reports.push(StrokeReport {
            stroke: tidied.parts[0],
            parts: tidied.parts.clone(),
            source: stroke.source.clone(),
            pen: stroke.pen,
            reversed: turn.reversed,
            length_mm: length(&stroke.points_mm),
            tilt_max_deg: lies.tilt_rad.to_degrees(),
            stretch_max: lies.stretch,
            ..StrokeReport::default()
        });
        self.drawn.push(stroke);
    }

    /// Refuses the part that the place belongs to, with the farthest point where it is out of
    /// reach.
    fn refuse(&mut self, stroke: &SheetStroke, tidied: &PreparedStroke, mut stuck: PathError) {
        if matches!(stuck.cause, RefusalCause::OutOfReach { .. })
            && let Some((at_mm, by_mm)) = self.farthest(stroke)
        {
            stuck.at_mm = Some(at_mm);
            stuck.cause = RefusalCause::OutOfReach { by_mm };
        }
        let at_mm = stuck.at_mm.or(stroke.points_mm.first().copied());
        let near = |part: &usize| {
            let given = self.given.get(*part).into_iter();
            let points = given.flat_map(|given| &given.points_mm);
            let far = points.map(|point| at_mm.map_or(0.0, |at| distance(*point, at)));
            far.fold(f64::INFINITY, f64::min)
        };
        let parts = tidied.parts.iter().copied();
        let part = parts.min_by(|a, b| near(a).total_cmp(&near(b)));
        let given = part.and_then(|part| self.given.get(part));
        let source = given.map_or(&stroke.source, |given| &given.source);
        self.build.refuse(part, source, stuck);
        self.refused.push(stroke.clone());
    }

    /// The point of a stroke that the tip misses by most, if it misses any.
    fn farthest(&self, stroke: &SheetStroke) -> Option<(Point, f64)> {
        let scene = self.build.scene;
        let hand = self.build.hand(stroke.pen).ok()?;
        let mut seed = scene.ready_rad;
        let mut worst: Option<(Point, f64)> = None;
        for at_mm in posture::sample_evenly(&stroke.points_mm) {
            let place = ToolPose::over(&scene.surface, at_mm, -scene.press_mm(hand.pen));
            match hand.solve(&place, &seed) {
                Ok(found) => seed = found.q_rad,
                Err(missed) => {
                    let by_mm = missed.nearest.off_m * 1e3;
                    if worst.is_none_or(|(_, most)| by_mm > most) {
                        worst = Some((at_mm, by_mm));
                    }
                }
            }
        }
        worst
    }

    fn try_stroke(&mut self, stroke: &SheetStroke, retake: bool) -> Result<SurfaceFit, PathError> {
        let stretch = self.fits_surface(stroke)?;
        let item = self.reports.len();
        let heights = self.build.scene.heights;
        let pen = self.build.hand(stroke.pen)?.pen;
        let press_mm = self.build.scene.press_mm(pen);
        let courses = corner_blending::courses(&stroke.points_mm, -press_mm);
        let points = &stroke.points_mm;
        let (Some(first), Some(last)) = (points.first(), points.last()) else {
            let why = "has no points".to_owned();
            return Err(RefusalCause::Unfit { why }.into());
        };
        let what = |kind| SpanLabel::new(kind, Some(item), stroke.pen);
        let (travelling, drawing) = (self.build.travel_limits(), self.build.draw_limits(pen));
        let (lift, press) = (heights.lift_mm, -press_mm);
        if retake || !self.hop_to(item, stroke, *first)? {
            self.go_above(item, stroke, *first, retake)?;
            let lower = [vec![CartesianSegment::rise(*first, lift, press)]];
            self.build
                .follow(what(SpanKind::Lower), &lower, travelling)?;
        }
        let tilt_rad = self.build.follow(what(SpanKind::Draw), &courses, drawing)?;
        let down = self.build.checkpoint();
        let raise = [vec![CartesianSegment::rise(*last, press, lift)]];
        self.build
            .follow(what(SpanKind::Lift), &raise, travelling)?;
        self.build.in_use = Some((stroke.pen, HoverTarget::Sheet(*last)));
        self.raised = Some(LiftedEnd {
            lift: self.build.samples_since(&down).to_vec(),
            down,
            what: what(SpanKind::Lift),
            at_mm: *last,
        });
        Ok(SurfaceFit { tilt_rad, stretch })
    }

    /// Hops from the end of the stroke before, in place of the lift from there. `false`, and nothing
    /// changes, with another pen, where ink is due, or where no hop is clear.
    fn hop_to(
        &mut self,
        item: usize,
        stroke: &SheetStroke,
        to_mm: Point,
    ) -> Result<bool, PathError> {
        let (pen, length_mm) = (stroke.pen, length(&stroke.points_mm));
        let before = self.raised.take().filter(|end| end.what.pen == pen);
        let Some(before) = before.filter(|_| self.ink_due(pen, length_mm).is_none()) else {
            return Ok(false);
        };
        let Some(hop) = self.clear_hop(&before, to_mm) else {
            return Ok(false);
        };
        self.build.restore(&before.down);
        self.build.append_hop(before.what, item, &hop)?;
        self.since_dip_mm[pen] += length_mm;
        Ok(true)
    }

    fn clear_hop(&self, before: &LiftedEnd, to_mm: Point) -> Option<PlannedHop> {
        let (scene, pen) = (self.build.scene, before.what.pen);
        let ends = HopEnds {
            from_mm: before.at_mm,
            to_mm,
            start: self.build.joints_at(&before.down),
        };
        let hand = self.build.hand(pen).ok()?;
        self.hops.get(pen)?.plan(&hand, &ends, |samples| {
            let last = samples.last().unwrap_or(&ends.start);
            HopClearance::new(scene, pen, [&ends.start, last]).is_clear(samples)
        })
    }

    /// Refuses a line that the surface stretches too much, or that turns too fast under the pen;
    /// the stretch otherwise.
    fn fits_surface(&self, stroke: &SheetStroke) -> Result<f64, PathError> {
        let scene = self.build.scene;
        let pen = self.build.hand(stroke.pen)?.pen;
        let lie = scene.surface.distortion(&stroke.points_mm);
        if lie.stretch > scene.limits.stretch_max {
            return Err(PathError {
                at_mm: Some(lie.stretched_at_mm),
                cause: RefusalCause::Stretched {
                    by_percent: (lie.stretch - 1.0) * 1e2,
                    most_percent: (scene.limits.stretch_max - 1.0) * 1e2,
                },
            });
        }
        if lie.turn_rad_mm > pen.turn_rad_mm {
            return Err(PathError {
                at_mm: Some(lie.turned_at_mm),
                cause: RefusalCause::Turns {
                    turn_deg_mm: lie.turn_rad_mm.to_degrees(),
                    most_deg_mm: pen.turn_rad_mm.to_degrees(),
                },
            });
        }
        Ok(lie.stretch)
    }

    /// To above a stroke's beginning, by way of the ink where that is due.
    fn go_above(
        &mut self,
        item: usize,
        stroke: &SheetStroke,
        at_mm: Point,
        retake: bool,
    ) -> Result<(), PathError> {
        let (pen, length_mm) = (stroke.pen, length(&stroke.points_mm));
        let due = self.ink_due(pen, length_mm);
        let hover = HoverTarget::Sheet(at_mm);
        let first = match &due {
            Some(ink) => HoverTarget::Space(self.above(ink)),
            None => hover,
        };
        let travel = SpanLabel::new(SpanKind::Travel, Some(item), pen);
        if let Some(from) = self.build.stand_with(pen).filter(|_| !retake) {
            self.build.travel(travel, from, first)?;
        } else {
            // The whole of the stroke, and where others of this pen will lie.
            let mut serves = posture::along(self.build.scene, stroke);
            if !retake {
                serves.extend(posture::corners(self.build.scene, self.given, pen));
            }
            let scene = self.build.scene;
            self.build.take_pen(item, pen, first, |hand, place| {
                posture::best_posture(scene, hand, place, &serves)
            })?;
        }
        if let Some(ink) = due {
            self.dip(item, pen, &ink)?;
            self.build.travel(travel, first, hover)?;
        }
        self.since_dip_mm[pen] += length_mm;
        Ok(())
    }

    fn ink_due(&self, pen: usize, length_mm: f64) -> Option<InkCap> {
        let scene = self.build.scene;
        let ink = &scene.inks[scene.pens[pen].ink?];
        let since = self.since_dip_mm[pen];
        (since + length_mm > ink.dip_every_mm && since > 0.0).then(|| ink.clone())
    }

    fn above(&self, ink: &InkCap) -> nalgebra::Point3<f64> {
        ink.rim_m + Vector3::z() * (self.build.scene.heights.lift_mm / 1e3)
    }

    /// Down to a third of the cap's depth, wait, up.
    fn dip(&mut self, item: usize, pen: usize, ink: &InkCap) -> Result<(), PathError> {
        let what = SpanLabel::new(SpanKind::Dip, Some(item), pen);
        let above = ToolPose::above(self.above(ink));
        let below = ToolPose::above(ink.rim_m - Vector3::z() * (ink.depth_m / 3.0));
        let asked = self.build.travel_limits();
        let leg = |from, to| vec![CartesianSegment::Across { from, to }];
        self.build.follow(what, &[leg(above, below)], asked)?;
        self.build.dwell(what, ink.wait_s)?;
        self.build.follow(what, &[leg(below, above)], asked)?;
        self.dips += 1;
        self.since_dip_mm[pen] = 0.0;
        Ok(())
    }
}
