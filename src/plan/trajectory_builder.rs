//! A trajectory in the making: where the arm stands, and what has been put together so far.

use nalgebra::{Point3, Vector3};

use super::cartesian_path::{CartesianPath, CartesianSegment, ToolPose, whole};
use super::error::{PlanError, PlanRefusal, RefusalCause};
use super::follow_path::{PathError, follow_path};
use super::hop::PlannedHop;
use super::limit_violations::seam_ratio;
use super::time_parameterization::{NOISE, PacedPath, PacingMode, TipLimits};
use super::tool_ik::ToolIk;
use super::trajectory::{SpanKind, Trajectory, TrajectorySpan};
use super::{BUILT_SAMPLES_MAX, PERIOD, PERIOD_S, PlanObserver};
use base::plane::{Point, distance};
use base::units::JointVector;
use scene::{Scene, ScenePen, ToolKind};

/// Hardest acceleration of a tip that does not draw.
const TRAVEL_M_S2: f64 = 1.0;
/// And how fast that acceleration rises.
const TRAVEL_M_S3: f64 = 20.0;
/// Shortest time in which a drawing tip reaches its largest acceleration.
const DRAW_RISE_S: f64 = 0.04;
/// Height below which a needle is slow, even if a higher speed is asked.
pub(super) const NEEDLE_NEAR_MM: f64 = 20.0;
pub(super) const NEEDLE_M_S: f64 = 0.025;

/// Reach of third differences, in samples, on either side of a seam between two courses.
const SEAM_SAMPLES: usize = 3;
/// Number of samples at rest after which no difference contains the course before.
const SEAM_STILL_MAX: usize = 2;

/// The label of a span.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpanLabel {
    pub(super) kind: SpanKind,
    pub(super) item: Option<usize>,
    pub(super) pen: usize,
}

impl SpanLabel {
    pub(super) fn new(kind: SpanKind, item: Option<usize>, pen: usize) -> Self {
        Self { kind, item, pen }
    }

    fn span(self, first: usize, end: usize) -> TrajectorySpan {
        TrajectorySpan {
            kind: self.kind,
            item: self.item,
            pen: self.pen,
            first,
            end,
        }
    }
}

/// The place over which a tip hovers between movements.
#[derive(Clone, Copy, Debug)]
pub(super) enum HoverTarget {
    /// Over the sheet, at the height of travel.
    Sheet(Point),
    /// Over a point in space, the pen pointing down.
    Space(Point3<f64>),
}

pub(super) struct TrajectoryBuilder<'a> {
    pub(super) scene: &'a Scene,
    pub(super) hands: Vec<ToolIk<'a>>,
    /// The pen in use and where its tip stands; before the first is taken the arm is anywhere.
    pub(super) in_use: Option<(usize, HoverTarget)>,
    pub(super) refusals: Vec<PlanRefusal>,
    /// First sample of the part that does not depend on the start.
    pub(super) hover_from: Option<usize>,
    samples: Vec<JointVector>,
    spans: Vec<TrajectorySpan>,
    watch: &'a dyn PlanObserver,
}

/// A state of the builder to return to.
#[derive(Clone)]
pub(super) struct BuildCheckpoint {
    samples: usize,
    spans: usize,
    in_use: Option<(usize, HoverTarget)>,
    hover_from: Option<usize>,
}

/// Largest number of times that a level move is raised by its shortfall, and the shortfall that is
/// tolerated.
const RAISES_MAX: usize = 12;
const RAISED_MM: f64 = 0.05;

/// Number of parts in which a level move is examined.
const LOOKS_BETWEEN: u32 = 100;

impl<'a> TrajectoryBuilder<'a> {
    pub(super) fn new(
        scene: &'a Scene,
        start: &JointVector,
        watch: &'a dyn PlanObserver,
    ) -> Result<Self, PlanError> {
        check_joints_fit(scene, "the arm's present place", start)?;
        let hands = scene.pens.iter().map(|pen| ToolIk::new(scene, pen));
        Ok(Self {
            scene,
            hands: hands.collect(),
            in_use: None,
            refusals: Vec::new(),
            hover_from: None,
            samples: vec![*start],
            spans: Vec::new(),
            watch,
        })
    }

    pub(super) fn check_wanted(&self) -> Result<(), PlanError> {
        if self.watch.cancelled() {
            Err(PlanError::Cancelled)
        } else {
            Ok(())
        }
    }

    pub(super) fn progress(&self, done: usize, of: usize) {
        self.watch.progress(done, of);
    }

    #[expect(
        clippy::expect_used,
        reason = "it begins with the start, and no mark is before that"
    )]
    pub(super) fn last_joints(&self) -> JointVector {
        *self.samples.last().expect("the start")
    }

    /// The pen with which the arm stands over a place of the plan, and where.
    pub(super) fn stand_with(&self, pen: usize) -> Option<HoverTarget> {
        let (in_use, stand) = self.in_use?;
        (in_use == pen).then_some(stand)
    }

    pub(super) fn hand(&self, pen: usize) -> Result<ToolIk<'a>, RefusalCause> {
        self.hands.get(pen).copied().ok_or_else(|| {
            let count = self.hands.len();
            let why = format!("asks for pen {pen}; the scene has {count} of them, counted from 0");
            RefusalCause::Unfit { why }
        })
    }

    /// The pens that are in the holder, or may be.
    pub(super) fn hands_in_holder(&self) -> impl Iterator<Item = (usize, &ToolIk<'a>)> {
        let all = self.hands.iter().enumerate();
        all.filter(|(pen, _)| self.scene.holder.may_hold(*pen))
    }

    pub(super) fn checkpoint(&self) -> BuildCheckpoint {
        BuildCheckpoint {
            samples: self.samples.len(),
            spans: self.spans.len(),
            in_use: self.in_use,
            hover_from: self.hover_from,
        }
    }

    pub(super) fn restore(&mut self, mark: &BuildCheckpoint) {
        self.samples.truncate(mark.samples);
        self.spans.truncate(mark.spans);
        if let Some(last) = self.spans.last_mut() {
            last.end = last.end.min(mark.samples);
        }
        (self.in_use, self.hover_from) = (mark.in_use, mark.hover_from);
    }

    /// The joints with which the arm stood at a state that is still part of the trajectory.
    #[expect(clippy::expect_used, reason = "a hop from elsewhere would be no hop")]
    pub(super) fn joints_at(&self, mark: &BuildCheckpoint) -> JointVector {
        let until = self.samples.get(..mark.samples);
        let last = until.and_then(<[_]>::last);
        *last.expect("the start is before every mark, and the mark is still part")
    }

    /// The samples after a state that is still part of the trajectory.
    #[expect(clippy::expect_used, reason = "a lift without its samples is no lift")]
    pub(super) fn samples_since(&self, mark: &BuildCheckpoint) -> &[JointVector] {
        let since = self.samples.get(mark.samples..);
        since.expect("the mark is still part of the trajectory")
    }

    /// Appends samples that were part of the trajectory before, in the same place.
    pub(super) fn reappend(&mut self, what: SpanLabel, samples: &[JointVector]) {
        let first = self.samples.len();
        self.samples.extend_from_slice(samples);
        self.spans.push(what.span(first, self.samples.len()));
    }

    /// Appends a hop: of what is done before it, up to where the tip is clear, then of the next
    /// item.
    pub(super) fn append_hop(
        &mut self,
        before: SpanLabel,
        item: usize,
        hop: &PlannedHop,
    ) -> Result<(), RefusalCause> {
        let (up, clear) = hop.joints.split_at(hop.clear.start);
        let (across, down) = clear.split_at(hop.clear.len());
        let next = |kind| SpanLabel::new(kind, Some(item), before.pen);
        self.append(before, up)?;
        self.append(next(SpanKind::Travel), across)?;
        self.append(next(SpanKind::Lower), down)
    }

    /// Appends samples; neighbours of one kind and item are one span.
    pub(super) fn append(
        &mut self,
        what: SpanLabel,
        samples: &[JointVector],
    ) -> Result<(), RefusalCause> {
        let still = self.still_before(samples);
        let count = self.samples.len() + still + samples.len();
        RefusalCause::refuse_longer(count, BUILT_SAMPLES_MAX)?;
        // The very first sample is the start, and belongs to the first span.
        let is_first = self.spans.is_empty();
        let first = if is_first { 0 } else { self.samples.len() };
        self.samples.extend(vec![self.last_joints(); still]);
        self.samples.extend_from_slice(samples);
        let end = self.samples.len();
        match self.spans.last_mut() {
            Some(last) if (last.kind, last.item, last.pen) == (what.kind, what.item, what.pen) => {
                last.end = end;
            }
            _ if first < end => self.spans.push(what.span(first, end)),
            _ => {}
        }
        Ok(())
    }

    /// Returns the number of samples that the arm must stand still before it goes on: each course keeps
    /// within the limits, but where one ends and the next begins, their jerks add up.
    fn still_before(&self, samples: &[JointVector]) -> usize {
        // Before its first sample the arm stood there.
        let missing = SEAM_SAMPLES.saturating_sub(self.samples.len());
        let gone = self.samples.len().saturating_sub(SEAM_SAMPLES);
        let first = self.samples.first().copied();
        let mut seam: Vec<JointVector> = first.into_iter().cycle().take(missing).collect();
        seam.extend(self.samples.iter().skip(gone));
        let end = seam.len();
        seam.extend(samples.iter().take(SEAM_SAMPLES));
        let mut best = (f64::INFINITY, 0);
        for still in 0..=SEAM_STILL_MAX {
            // What passes a limit within one course does so however long the arm stands before it.
            let ratio = seam_ratio(&self.scene.arm, &seam).max(1.0 + NOISE);
            if ratio < best.0 {
                best = (ratio, still);
            }
            seam.insert(end, self.last_joints());
        }
        best.1
    }

    /// Follows courses from where the arm is; the largest tilt on the way, in radians.
    pub(super) fn follow(
        &mut self,
        what: SpanLabel,
        courses: &[CartesianPath],
        asked: TipLimits,
    ) -> Result<f64, PathError> {
        let hand = self.hand(what.pen)?;
        let mut tilt_rad: f64 = 0.0;
        for course in courses {
            self.check_wanted().map_err(|_| RefusalCause::Cancelled)?;
            let asked = self.slow_for_needle(&hand, course, asked);
            let knots = follow_path(&hand, &self.scene.surface, course, &self.last_joints())?;
            let tilts_rad = knots.iter().map(|knot| knot.tilt_rad);
            tilt_rad = tilts_rad.fold(tilt_rad, f64::max);
            let path = PacedPath {
                hand: &hand,
                surface: &self.scene.surface,
                course,
                knots: &knots,
                asked,
            };
            let samples = path.samples().map_err(|cause| PathError {
                at_mm: course.first().and_then(|piece| piece.place_mm(0.0)),
                cause,
            })?;
            self.append(what, &samples)?;
        }
        Ok(tilt_rad)
    }

    pub(super) fn travel_limits(&self) -> TipLimits {
        travel_limits(self.scene)
    }

    pub(super) fn draw_limits(&self, pen: &ScenePen) -> TipLimits {
        let limits = &self.scene.limits;
        TipLimits {
            speed_m_s: self.scene.draw_mm_s(pen) / 1e3,
            acceleration_m_s2: limits.draw_mm_s2 / 1e3,
            jerk_m_s3: limits.draw_mm_s2 / 1e3 / DRAW_RISE_S,
            manner: PacingMode::Soonest,
        }
    }

    /// A needle near the surface is slow.
    fn slow_for_needle(
        &self,
        hand: &ToolIk<'_>,
        course: &CartesianPath,
        asked: TipLimits,
    ) -> TipLimits {
        let height_mm = |place: ToolPose| self.scene.surface.project(&place.point_m).height_mm;
        let ends = |piece: &CartesianSegment| {
            let at = |t| height_mm(piece.at(&self.scene.surface, t));
            at(0.0).min(at(1.0))
        };
        let lowest_mm = course.iter().map(ends).fold(f64::INFINITY, f64::min);
        asked.of_needle(hand.pen.kind == ToolKind::Needle && lowest_mm < NEEDLE_NEAR_MM)
    }

    /// Stands still where the arm is.
    pub(super) fn dwell(&mut self, what: SpanLabel, seconds: f64) -> Result<(), RefusalCause> {
        if !(seconds >= 0.0 && seconds.is_finite()) {
            return Err(RefusalCause::Unfit {
                why: format!("cannot be stood at for {seconds} s"),
            });
        }
        let count = whole((seconds / PERIOD_S).ceil());
        RefusalCause::refuse_longer(count, BUILT_SAMPLES_MAX)?;
        let still = vec![self.last_joints(); count];
        self.append(what, &still)
    }

    /// From where the pen's tip stands to above a point: over the sheet along the sheet, otherwise
    /// up, across and down.
    pub(super) fn travel(
        &mut self,
        what: SpanLabel,
        from: HoverTarget,
        to: HoverTarget,
    ) -> Result<(), PathError> {
        let asked = self.travel_limits();
        let courses = self.travel_paths(from, to);
        self.follow(what, &courses, asked)?;
        self.in_use = Some((what.pen, to));
        Ok(())
    }

    /// Begins to use a pen: lifts what is low and swings the pen's tip to above a place, as `pose` says.
    pub(super) fn take_pen(
        &mut self,
        item: usize,
        pen: usize,
        to: HoverTarget,
        pose: impl FnOnce(&ToolIk<'a>, &ToolPose) -> Result<JointVector, RefusalCause>,
    ) -> Result<(), PathError> {
        let begun = self.hover_from.is_some();
        let kind = if begun {
            SpanKind::Travel
        } else {
            SpanKind::Approach
        };
        self.lift_if_low(kind)?;
        let hand = self.hand(pen)?;
        let at_mm = match to {
            HoverTarget::Sheet(at_mm) => Some(at_mm),
            HoverTarget::Space(_) => None,
        };
        let what = SpanLabel::new(kind, begun.then_some(item), pen);
        pose(&hand, &self.place_of(to))
            .and_then(|pose| self.swing_to(what, &pose))
            .map_err(|cause| PathError { at_mm, cause })?;
        self.in_use = Some((pen, to));
        self.hover_from.get_or_insert(self.samples.len());
        Ok(())
    }

    pub(super) fn place_of(&self, stand: HoverTarget) -> ToolPose {
        match stand {
            HoverTarget::Sheet(at_mm) => {
                ToolPose::over(&self.scene.surface, at_mm, self.scene.heights.lift_mm)
            }
            HoverTarget::Space(point_m) => ToolPose::above(point_m),
        }
    }

    fn travel_paths(&self, from: HoverTarget, to: HoverTarget) -> Vec<CartesianPath> {
        if let (HoverTarget::Sheet(from_mm), HoverTarget::Sheet(to_mm)) = (from, to) {
            let apart = distance(from_mm, to_mm) > 1e-6;
            let height_mm = self.scene.heights.lift_mm;
            let along = CartesianSegment::Along {
                from_mm,
                to_mm,
                height_mm,
            };
            return if apart { vec![vec![along]] } else { Vec::new() };
        }
        let (from, to) = (self.place_of(from), self.place_of(to));
        let top_m = self.top_m(&from, &to);
        let above = |place: ToolPose| ToolPose {
            point_m: place.point_m + Vector3::z() * (top_m - place.point_m.z),
            ..place
        };
        let stands = [from, above(from), above(to), to];
        let legs = stands.iter().zip(stands.iter().skip(1));
        legs.filter(|(a, b)| (b.point_m - a.point_m).norm() > 1e-6 || a.axis.angle(&b.axis) > 1e-6)
            .map(|(from, to)| {
                let (from, to) = (*from, *to);
                vec![CartesianSegment::Across { from, to }]
            })
            .collect()
    }

    /// Returns the height of a level move between two poses, in the base frame: as far above the
    /// surface between them as tips hover.
    fn top_m(&self, from: &ToolPose, to: &ToolPose) -> f64 {
        let mut top_m = from.point_m.z.max(to.point_m.z);
        for _ in 0..RAISES_MAX {
            let short_mm = self.short_mm(from, to, top_m);
            if short_mm < RAISED_MM {
                break;
            }
            // Rising so much brings it no farther from the surface than that: never too high.
            top_m += short_mm / 1e3;
        }
        top_m
    }

    /// By how much a level way is nearer to the surface than hovering tips are, at the most. A flat
    /// sheet ends at its edges; what another is rolled round does not.
    fn short_mm(&self, from: &ToolPose, to: &ToolPose, top_m: f64) -> f64 {
        let surface = &self.scene.surface;
        let short_mm = |n: u32| {
            let share = f64::from(n) / f64::from(LOOKS_BETWEEN);
            let mut point = from.point_m.lerp(&to.point_m, share);
            point.z = top_m;
            let seen = surface.project(&point);
            let is_over = !surface.is_flat() || surface.holds(seen.at_mm);
            is_over.then_some(self.scene.heights.lift_mm - seen.height_mm)
        };
        (1..LOOKS_BETWEEN).filter_map(short_mm).fold(0.0, f64::max)
    }

    pub(super) fn refuse(&mut self, stroke: Option<usize>, source: &str, stuck: PathError) {
        self.refusals.push(PlanRefusal {
            stroke,
            source: source.to_owned(),
            at_mm: stuck.at_mm,
            cause: stuck.cause,
        });
    }

    /// The trajectory, or every refusal.
    pub(super) fn finish(mut self) -> Result<(Trajectory, usize), PlanError> {
        if !self.refusals.is_empty() {
            return Err(PlanError::Refused(self.refusals));
        }
        self.check_wanted()?;
        if self.spans.is_empty() {
            let approach = SpanLabel::new(SpanKind::Approach, None, 0);
            self.spans.push(approach.span(0, self.samples.len()));
        }
        let hover_from = self.hover_from.unwrap_or(self.samples.len());
        let trajectory = Trajectory {
            period: PERIOD,
            samples: self.samples,
            reached: Vec::new(),
            spans: self.spans,
        };
        Ok((trajectory, hover_from))
    }
}

impl TipLimits {
    /// The same, slow if a needle is near the surface.
    fn of_needle(self, is_near: bool) -> Self {
        if !is_near {
            return self;
        }
        Self {
            speed_m_s: self.speed_m_s.min(NEEDLE_M_S),
            ..self
        }
    }
}

fn travel_limits(scene: &Scene) -> TipLimits {
    TipLimits {
        speed_m_s: scene.limits.travel_mm_s / 1e3,
        acceleration_m_s2: TRAVEL_M_S2,
        jerk_m_s3: TRAVEL_M_S3,
        manner: PacingMode::Ramp,
    }
}

/// Limits of a pen's tip between two lines. A hop begins at the sheet, and a needle is slow there.
pub(super) fn hop_limits(scene: &Scene, pen: usize) -> TipLimits {
    let pen = scene.pen(pen);
    travel_limits(scene).of_needle(pen.is_some_and(|pen| pen.kind == ToolKind::Needle))
}

/// Refuses joints that are not this arm's.
pub(super) fn check_joints_fit(
    scene: &Scene,
    name: &str,
    q: &JointVector,
) -> Result<(), PlanError> {
    let joints = scene.arm.dof();
    if q.len() == joints && q.is_finite() {
        return Ok(());
    }
    let (count, arm) = (q.len(), &scene.arm.file.name);
    let why = format!("has {count} joint angles; arm {arm} needs {joints} finite ones");
    Err(PlanError::unfit(None, name, why))
}
