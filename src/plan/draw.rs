//! Drawing: every stroke lowered to, drawn and lifted from, with dips where the pen needs ink.

#![expect(
    clippy::indexing_slicing,
    reason = "every index is a stroke of the order, a pen that the build has, or an ink of one"
)]

use nalgebra::Vector3;

use super::cartesian_path::{CartesianSegment, STEP_MM, ToolPose, distance};
use super::error::{PlanError, PlanRefusal, RefusalCause};
use super::follow_path::{JUMP_RAD, PathError};
use super::order::{StrokeTurn, order};
use super::plan_report::{self, StrokeReport};
use super::prepare_strokes::{PreparedStroke, prepare_strokes};
use super::tool_ik::ToolIk;
use super::trajectory::SpanKind;
use super::trajectory_builder::{HoverTarget, SpanLabel, TrajectoryBuilder, without_place};
use super::{Plan, PlanObserver, corner_blending, hand_changed_pens, ink};
use base::units::JointVector;
use kin::IkSolution;
use scene::{InkCap, Order, PenHolder, Scene, SheetStroke};

/// Strokes of one plan.
const STROKES_MAX: usize = 100_000;
/// Number of ways to hold the pen that are compared over the whole drawing.
const WAYS_MAX: usize = 12;
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
    match &scene.holder {
        PenHolder::ByHand {
            mounted: None,
            change_rad,
        } => hand_changed_pens::attempt(scene, (start, change_rad), strokes, how, watch),
        PenHolder::ByHand {
            mounted: Some(_),
            change_rad,
        } => {
            let ends = (start, Some(change_rad));
            attempt_mounted(scene, ends, strokes, how, watch).map(|(planned, _)| planned)
        }
        PenHolder::AllMounted => {
            let planned = attempt_mounted(scene, (start, None), strokes, how, watch);
            planned.map(|(planned, _)| planned)
        }
    }
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
    let mut tidied = prepare_strokes(strokes, how);
    ink::divide(scene, &mut tidied);
    let alone: Vec<SheetStroke> = tidied.iter().map(|one| one.stroke.clone()).collect();
    let turns = order(&alone, how);
    let mut drawing = DrawingPlanner {
        build: TrajectoryBuilder::new(scene, start, watch)?,
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
    let drawn = (reports, drawn);
    let planned = PartialPlan {
        plan: plan_report::plan(scene, trajectory, hover_from, drawn, dips),
        refusals,
        refused: drawing.refused,
    };
    Ok((planned, hover_from))
}

fn check(strokes: &[SheetStroke]) -> Result<(), PlanError> {
    if strokes.is_empty() {
        return Err(PlanError::Nothing);
    }
    let unfit = |stroke: Option<usize>, source: &str, why: String| {
        Err(PlanError::Refused(vec![PlanRefusal {
            stroke,
            source: source.to_owned(),
            at_mm: None,
            cause: RefusalCause::Unfit { why },
        }]))
    };
    if strokes.len() > STROKES_MAX {
        let why = format!("has {} strokes; {STROKES_MAX} are possible", strokes.len());
        return unfit(None, "the design", why);
    }
    for (index, stroke) in strokes.iter().enumerate() {
        if stroke.points_mm.is_empty() {
            return unfit(Some(index), &stroke.source, "has no points".to_owned());
        }
        if stroke.points_mm.iter().flatten().any(|v| !v.is_finite()) {
            let why = "has a point that is not finite".to_owned();
            return unfit(Some(index), &stroke.source, why);
        }
    }
    Ok(())
}

/// The tilt of the pen along a stroke, and the stretch of the stroke on the surface.
#[derive(Clone, Copy, Debug, Default)]
struct SurfaceFit {
    tilt_rad: f64,
    stretch: f64,
}

struct DrawingPlanner<'a> {
    build: TrajectoryBuilder<'a>,
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
            self.build.restore(&mark.0);
            (self.since_dip_mm, self.dips) = (mark.1.clone(), mark.2);
        }
        if let Some(stuck) = failed {
            self.refuse(&stroke, tidied, stuck);
        }
    }

    /// Goes from the last stroke to a pose, from where the arm stands over the sheet.
    fn leave_for(&mut self, end: &JointVector) {
        let pen = self.build.in_use.map_or(0, |(pen, _)| pen);
        let what = SpanLabel {
            kind: SpanKind::Pose,
            item: None,
            pen,
        };
        if let Err(cause) = self.build.swing_to(what, end) {
            self.build.refuse(
                None,
                "the pose in which the pen is changed",
                without_place(cause),
            );
        }
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
            let points = self.given.get(*part).map(|given| given.points_mm.iter());
            let far = |point: &[f64; 2]| at_mm.map_or(0.0, |at| distance(*point, at));
            points.map_or(f64::INFINITY, |points| {
                points.map(far).fold(f64::INFINITY, f64::min)
            })
        };
        let part = tidied
            .parts
            .iter()
            .min_by(|a, b| near(a).total_cmp(&near(b)))
            .copied();
        let source = part
            .and_then(|part| self.given.get(part))
            .map_or(stroke.source.as_str(), |given| given.source.as_str());
        self.build.refuse(part, source, stuck);
        self.refused.push(stroke.clone());
    }

    /// The point of a stroke that the tip misses by most, if it misses any.
    fn farthest(&self, stroke: &SheetStroke) -> Option<([f64; 2], f64)> {
        let scene = self.build.scene;
        let hand = self.build.hand(stroke.pen).ok()?;
        let mut seed = scene.ready_rad;
        let mut worst: Option<([f64; 2], f64)> = None;
        for at_mm in sample_evenly(&stroke.points_mm) {
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
        let pen = self.build.hand(stroke.pen).map_err(without_place)?.pen;
        let press_mm = self.build.scene.press_mm(pen);
        let courses = corner_blending::courses(&stroke.points_mm, -press_mm);
        let points = &stroke.points_mm;
        let (Some(first), Some(last)) = (points.first(), points.last()) else {
            return Err(without_place(RefusalCause::Unfit {
                why: "has no points".to_owned(),
            }));
        };
        self.go_above(item, stroke, *first, retake)?;
        let what = |kind| SpanLabel {
            kind,
            item: Some(item),
            pen: stroke.pen,
        };
        let (travelling, drawing) = (self.build.travel_limits(), self.build.draw_limits(pen));
        let (lift, press) = (heights.lift_mm, -press_mm);
        let lower = rise(*first, lift, press);
        self.build
            .follow(what(SpanKind::Lower), &[vec![lower]], travelling)?;
        let tilt_rad = self.build.follow(what(SpanKind::Draw), &courses, drawing)?;
        let raise = rise(*last, press, lift);
        self.build
            .follow(what(SpanKind::Lift), &[vec![raise]], travelling)?;
        self.build.in_use = Some((stroke.pen, HoverTarget::Sheet(*last)));
        Ok(SurfaceFit { tilt_rad, stretch })
    }

    /// Refuses a line that the surface stretches too much, or that turns too fast under the pen;
    /// the stretch otherwise.
    fn fits_surface(&self, stroke: &SheetStroke) -> Result<f64, PathError> {
        let scene = self.build.scene;
        let pen = self.build.hand(stroke.pen).map_err(without_place)?.pen;
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
        at_mm: [f64; 2],
        retake: bool,
    ) -> Result<(), PathError> {
        let (pen, length_mm) = (stroke.pen, length(&stroke.points_mm));
        let due = self.ink_due(pen, length_mm);
        let hover = HoverTarget::Sheet(at_mm);
        let first = match &due {
            Some(ink) => HoverTarget::Space(self.above(ink)),
            None => hover,
        };
        let travel = SpanLabel {
            kind: SpanKind::Travel,
            item: Some(item),
            pen,
        };
        if let Some(from) = self.build.stand_with(pen).filter(|_| !retake) {
            self.build.travel(travel, from, first)?;
        } else {
            // The whole of the stroke, and where others of this pen will lie.
            let mut serves = self.along(stroke);
            if !retake {
                serves.extend(self.corners(pen));
            }
            self.take_pen(item, pen, first, &serves)?;
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

    /// Begins to use a pen: lifts what is low and swings the pen's tip to where it is needed.
    fn take_pen(
        &mut self,
        item: usize,
        pen: usize,
        to: HoverTarget,
        serves: &[ToolPose],
    ) -> Result<(), PathError> {
        let begun = self.build.hover_from.is_some();
        let kind = if begun {
            SpanKind::Travel
        } else {
            SpanKind::Approach
        };
        self.build.lift_if_low(kind)?;
        let hand = self.build.hand(pen).map_err(without_place)?;
        let place = self.build.place_of(to);
        let at_mm = match to {
            HoverTarget::Sheet(at_mm) => Some(at_mm),
            HoverTarget::Space(_) => None,
        };
        let pose = self
            .best_solution(&hand, &place, serves)
            .map_err(|cause| PathError { at_mm, cause })?;
        let item = begun.then_some(item);
        self.build
            .swing_to(SpanLabel { kind, item, pen }, &pose)
            .map_err(|cause| PathError { at_mm, cause })?;
        self.build.in_use = Some((pen, to));
        if !begun {
            self.build.hover_from = Some(self.build.sample_count());
        }
        Ok(())
    }

    /// The way of holding the pen that serves all places, one after the other, best.
    #[expect(clippy::expect_used, reason = "`ways` refuses a place without one")]
    fn best_solution(
        &self,
        hand: &ToolIk<'_>,
        place: &ToolPose,
        serves: &[ToolPose],
    ) -> Result<JointVector, RefusalCause> {
        let ways = hand.solutions(place, &[self.build.scene.ready_rad])?;
        let costs = ways.iter().take(WAYS_MAX).map(|way| {
            let cost = self.cost(hand, way, serves);
            (cost, way.q_rad)
        });
        let best = costs.min_by(|a, b| a.0.total_cmp(&b.0));
        Ok(best.expect("a way").1)
    }

    /// Smaller is better: places missed, or met with too much lean or by a jump, then lean, then
    /// the largest step from one place to the next, margin, and nearness to the ready pose.
    fn cost(&self, hand: &ToolIk<'_>, way: &IkSolution, serves: &[ToolPose]) -> f64 {
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
        let away = way.q_rad.distance_max(&self.build.scene.ready_rad);
        missed + lean * 10.0 + step * 0.2 + away * 0.1 - margin.min(0.5) * 2.0
    }

    /// The whole of a stroke, at the depth of drawing.
    fn along(&self, stroke: &SheetStroke) -> Vec<ToolPose> {
        let scene = self.build.scene;
        let press_mm = self.press_mm(stroke.pen);
        sample_evenly(&stroke.points_mm)
            .into_iter()
            .map(|at_mm| ToolPose::over(&scene.surface, at_mm, -press_mm))
            .collect()
    }

    /// The corners and the middle of all that a pen draws, at the depth of drawing.
    fn corners(&self, pen: usize) -> Vec<ToolPose> {
        let (mut low, mut high) = ([f64::INFINITY; 2], [f64::NEG_INFINITY; 2]);
        let of_pen = self.given.iter().filter(|stroke| stroke.pen == pen);
        for [x, y] in of_pen.flat_map(|stroke| &stroke.points_mm) {
            low = [low[0].min(*x), low[1].min(*y)];
            high = [high[0].max(*x), high[1].max(*y)];
        }
        let (scene, press_mm) = (self.build.scene, self.press_mm(pen));
        let middle = [(low[0] + high[0]) / 2.0, (low[1] + high[1]) / 2.0];
        [low, [high[0], low[1]], high, [low[0], high[1]], middle]
            .map(|at_mm| ToolPose::over(&scene.surface, at_mm, -press_mm))
            .to_vec()
    }

    fn press_mm(&self, pen: usize) -> f64 {
        let scene = self.build.scene;
        scene
            .pen(pen)
            .map_or(scene.heights.press_mm, |pen| scene.press_mm(pen))
    }

    /// Down to a third of the cap's depth, wait, up.
    fn dip(&mut self, item: usize, pen: usize, ink: &InkCap) -> Result<(), PathError> {
        let what = SpanLabel {
            kind: SpanKind::Dip,
            item: Some(item),
            pen,
        };
        let above = ToolPose::above(self.above(ink));
        let below = ToolPose::above(ink.rim_m - Vector3::z() * (ink.depth_m / 3.0));
        let asked = self.build.travel_limits();
        let leg = |from, to| vec![CartesianSegment::Across { from, to }];
        self.build.follow(what, &[leg(above, below)], asked)?;
        self.build.dwell(what, ink.wait_s).map_err(without_place)?;
        self.build.follow(what, &[leg(below, above)], asked)?;
        self.dips += 1;
        self.since_dip_mm[pen] = 0.0;
        Ok(())
    }
}

/// Number of points that represent a whole stroke when ways of holding the arm are compared.
const TRACED_MAX: f64 = 200.0;

/// And how far they are apart at the least.
const TRACED_MM: f64 = 2.0;

/// Cost of an unreachable place, against tenths of a radian of tilt.
const MISSED_COST: f64 = 1000.0;

/// Points all along a stroke, its first and last among them: a straight line between two corners
/// may leave the arm's reach, or its joints' ranges, half-way.
fn sample_evenly(points_mm: &[[f64; 2]]) -> Vec<[f64; 2]> {
    let every_mm = (length(points_mm) / TRACED_MAX).max(TRACED_MM);
    let mut all: Vec<[f64; 2]> = points_mm.first().copied().into_iter().collect();
    let mut next_mm = every_mm;
    for (from, to) in points_mm.iter().zip(points_mm.iter().skip(1)) {
        let (long_mm, [ax, ay], [bx, by]) = (distance(*from, *to), *from, *to);
        while next_mm < long_mm {
            let share = next_mm / long_mm;
            all.push([ax + (bx - ax) * share, ay + (by - ay) * share]);
            next_mm += every_mm;
        }
        next_mm -= long_mm;
    }
    all.extend(points_mm.last());
    all
}

fn rise(at_mm: [f64; 2], from_mm: f64, to_mm: f64) -> CartesianSegment {
    CartesianSegment::Rise {
        at_mm,
        from_mm,
        to_mm,
    }
}

pub(super) fn length(points_mm: &[[f64; 2]]) -> f64 {
    points_mm
        .iter()
        .zip(points_mm.iter().skip(1))
        .map(|(a, b)| distance(*a, *b))
        .sum()
}
