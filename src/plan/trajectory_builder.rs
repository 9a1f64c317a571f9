//! A trajectory in the making: where the arm stands, and what has been put together so far.

use nalgebra::{Point3, Vector3};

use super::cartesian_path::{CartesianPath, CartesianSegment, ToolPose};
use super::error::{PlanError, PlanRefusal, RefusalCause};
use super::follow_path::{PathError, follow_path};
use super::limit_violations::seam_ratio;
use super::time_parameterization::{self, NOISE, PacingMode, TipLimits};
use super::tool_ik::ToolIk;
use super::trajectory::{SpanKind, Trajectory, TrajectorySpan};
use super::{PERIOD, PERIOD_S, PlanObserver, SAMPLES_MAX, joint_move};
use base::units::JointVector;
use scene::{Scene, ScenePen, ToolKind};

/// Hardest acceleration of a tip that does not draw.
const TRAVEL_M_S2: f64 = 1.0;
/// And how fast that acceleration rises.
const TRAVEL_M_S3: f64 = 20.0;
/// Shortest time in which a drawing tip reaches its largest acceleration.
const DRAW_RISE_S: f64 = 0.04;
/// Height below which a needle is slow, even if a higher speed is asked.
const NEEDLE_NEAR_MM: f64 = 20.0;
const NEEDLE_M_S: f64 = 0.025;
/// Heights that a swing is tried over where the straight one comes too near the surface.
const OVER_MM: [f64; 4] = [15.0, 40.0, 70.0, 100.0];
/// A swing may come this much nearer to the surface than its ends.
const DIP_MM: f64 = 0.5;

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

/// The place over which a tip hovers between movements.
#[derive(Clone, Copy, Debug)]
pub(super) enum HoverTarget {
    /// Over the sheet, at the height of travel.
    Sheet([f64; 2]),
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
        Ok(Self {
            scene,
            hands: scene
                .pens
                .iter()
                .map(|pen| ToolIk::new(scene, pen))
                .collect(),
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
        self.hands
            .get(pen)
            .copied()
            .ok_or_else(|| RefusalCause::Unfit {
                why: format!(
                    "asks for pen {pen}; the scene has {} of them, counted from 0",
                    self.hands.len()
                ),
            })
    }

    /// The pens that are in the holder, or may be.
    fn hands_in_holder(&self) -> impl Iterator<Item = (usize, &ToolIk<'a>)> {
        let all = self.hands.iter().enumerate();
        all.filter(|(pen, _)| self.scene.holder.may_hold(*pen))
    }

    pub(super) fn sample_count(&self) -> usize {
        self.samples.len()
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

    /// Appends samples; neighbours of one kind and item are one span.
    pub(super) fn append(
        &mut self,
        what: SpanLabel,
        samples: &[JointVector],
    ) -> Result<(), RefusalCause> {
        if self.samples.len() + samples.len() > SAMPLES_MAX {
            return Err(RefusalCause::TooLong {
                waypoints: self.samples.len() + samples.len(),
                most: SAMPLES_MAX,
            });
        }
        // The very first sample is the start, and belongs to the first span.
        let first = if self.spans.is_empty() {
            0
        } else {
            self.samples.len()
        };
        let still = self.still_before(samples);
        self.samples.extend(vec![self.last_joints(); still]);
        self.samples.extend_from_slice(samples);
        let end = self.samples.len();
        match self.spans.last_mut() {
            Some(last) if (last.kind, last.item, last.pen) == (what.kind, what.item, what.pen) => {
                last.end = end;
            }
            _ if first < end => self.spans.push(TrajectorySpan {
                kind: what.kind,
                item: what.item,
                pen: what.pen,
                first,
                end,
            }),
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
        let hand = self.hand(what.pen).map_err(without_place)?;
        let mut tilt_rad: f64 = 0.0;
        for course in courses {
            self.check_wanted()
                .map_err(|_| without_place(RefusalCause::Cancelled))?;
            let asked = self.slow_for_needle(&hand, course, asked);
            let knots = follow_path(&hand, &self.scene.surface, course, &self.last_joints())?;
            tilt_rad = knots
                .iter()
                .map(|knot| knot.tilt_rad)
                .fold(tilt_rad, f64::max);
            let samples =
                time_parameterization::samples(&hand, &self.scene.surface, course, &knots, asked)
                    .map_err(|cause| PathError {
                    at_mm: course
                        .first()
                        .filter(|piece| !matches!(piece, CartesianSegment::Across { .. }))
                        .map(|piece| piece.on_sheet(0.0)),
                    cause,
                })?;
            self.append(what, &samples).map_err(without_place)?;
        }
        Ok(tilt_rad)
    }

    pub(super) fn travel_limits(&self) -> TipLimits {
        TipLimits {
            speed_m_s: self.scene.limits.travel_mm_s / 1e3,
            acceleration_m_s2: TRAVEL_M_S2,
            jerk_m_s3: TRAVEL_M_S3,
            manner: PacingMode::Ramp,
        }
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
        if hand.pen.kind == ToolKind::Needle && lowest_mm < NEEDLE_NEAR_MM {
            TipLimits {
                speed_m_s: asked.speed_m_s.min(NEEDLE_M_S),
                ..asked
            }
        } else {
            asked
        }
    }

    /// Stands still where the arm is.
    pub(super) fn dwell(&mut self, what: SpanLabel, seconds: f64) -> Result<(), RefusalCause> {
        if !(seconds >= 0.0 && seconds.is_finite()) {
            return Err(RefusalCause::Unfit {
                why: format!("cannot be stood at for {seconds} s"),
            });
        }
        let count = super::cartesian_path::whole((seconds / PERIOD_S).ceil());
        if count > SAMPLES_MAX {
            return Err(RefusalCause::TooLong {
                waypoints: count,
                most: SAMPLES_MAX,
            });
        }
        let still = vec![self.last_joints(); count];
        self.append(what, &still)
    }

    /// Returns the height of the lowest tip over the surface, and its pen.
    pub(super) fn lowest_tip(&self, q: &JointVector) -> (f64, usize) {
        let mut lowest = (f64::INFINITY, 0);
        for (pen, hand) in self.hands_in_holder() {
            let height_mm = self.scene.surface.project(&hand.point(q)).height_mm;
            if height_mm < lowest.0 {
                lowest = (height_mm, pen);
            }
        }
        lowest
    }

    /// Lifts the lowest tip along the surface's normal if it is below the height of travel.
    pub(super) fn lift_if_low(&mut self, kind: SpanKind) -> Result<(), PathError> {
        let lift_mm = self.scene.heights.lift_mm;
        let (height_mm, pen) = self.lowest_tip(&self.last_joints());
        if height_mm >= lift_mm - DIP_MM {
            return Ok(());
        }
        self.enter_limits(kind, pen)?;
        let hand = self.hand(pen).map_err(without_place)?;
        let from = hand.tip_pose(&self.last_joints());
        let seen = self.scene.surface.project(&from.point_m);
        let normal = self.scene.surface.at(seen.at_mm).normal;
        let to = ToolPose {
            point_m: from.point_m + normal.scale((lift_mm - seen.height_mm) / 1e3),
            axis: from.axis,
        };
        let item = None;
        let what = SpanLabel { kind, item, pen };
        let asked = self.travel_limits();
        self.follow(what, &[vec![CartesianSegment::Across { from, to }]], asked)?;
        Ok(())
    }

    /// An arm that was found beyond its limits is first brought to them.
    fn enter_limits(&mut self, kind: SpanKind, pen: usize) -> Result<(), PathError> {
        let here = self.last_joints();
        let limits = &self.scene.arm.limits;
        let within = here
            .zip(&limits.lower_rad, f64::max)
            .zip(&limits.upper_rad, f64::min);
        if within == here {
            return Ok(());
        }
        let item = None;
        self.swing_straight(SpanLabel { kind, item, pen }, &within)
            .map_err(without_place)
    }

    fn swing_straight(&mut self, what: SpanLabel, to: &JointVector) -> Result<(), RefusalCause> {
        let samples = self.swing_samples(&self.last_joints(), to)?;
        self.append(what, &samples)
    }

    fn swing_samples(
        &self,
        from: &JointVector,
        to: &JointVector,
    ) -> Result<Vec<JointVector>, RefusalCause> {
        let tips: Vec<_> = self.hands_in_holder().map(|(_, hand)| hand.tip).collect();
        let speed_m_s = self.scene.limits.travel_mm_s / 1e3;
        let samples = joint_move::plan_joint_move(&self.scene.arm, &tips, from, to, speed_m_s)?;
        let needle = self
            .scene
            .pens
            .iter()
            .any(|pen| pen.kind == ToolKind::Needle);
        if needle
            && samples
                .iter()
                .any(|q| self.lowest_tip(q).0 < NEEDLE_NEAR_MM)
        {
            return joint_move::plan_joint_move(
                &self.scene.arm,
                &tips,
                from,
                to,
                speed_m_s.min(NEEDLE_M_S),
            );
        }
        Ok(samples)
    }

    /// Swings to a pose, over vias above both ends where the straight way comes too low.
    pub(super) fn swing_to(
        &mut self,
        what: SpanLabel,
        to: &JointVector,
    ) -> Result<(), RefusalCause> {
        if self.last_joints().distance_max(to) == 0.0 {
            return Ok(());
        }
        let mut height_mm = f64::NEG_INFINITY;
        let straight = std::iter::once(Some(Vec::new()));
        let from = self.last_joints();
        let over = OVER_MM.map(|mm| self.raised_vias(what.pen, &from, to, mm));
        for vias in straight.chain(over).flatten() {
            let (samples, lowest_mm) = self.joint_path_over(&vias, to)?;
            if lowest_mm >= 0.0 {
                return self.append(what, &samples);
            }
            height_mm = height_mm.max(lowest_mm);
        }
        Err(RefusalCause::NoWay {
            height_mm: height_mm + self.least_mm(),
            least_mm: self.least_mm(),
        })
    }

    /// Half of the height of travel.
    fn least_mm(&self) -> f64 {
        self.scene.heights.lift_mm / 2.0
    }

    /// A way over poses, and how much higher its lowest point is than it must be.
    fn joint_path_over(
        &self,
        vias: &[JointVector],
        to: &JointVector,
    ) -> Result<(Vec<JointVector>, f64), RefusalCause> {
        let from = self.last_joints();
        let least_mm = self
            .least_mm()
            .min(self.lowest_tip(&from).0 - DIP_MM)
            .min(self.lowest_tip(to).0 - DIP_MM);
        let mut samples = Vec::new();
        let mut at = from;
        for via in vias.iter().chain([to]) {
            samples.extend(self.swing_samples(&at, via)?);
            at = *via;
        }
        let lowest_mm = samples
            .iter()
            .map(|q| self.lowest_tip(q).0)
            .fold(f64::INFINITY, f64::min);
        Ok((samples, lowest_mm - least_mm))
    }

    /// The poses between which a way goes that first rises and last descends.
    fn raised_vias(
        &self,
        pen: usize,
        from: &JointVector,
        to: &JointVector,
        by_mm: f64,
    ) -> Option<Vec<JointVector>> {
        let hand = self.hand(pen).ok()?;
        let raised = |q: &JointVector| {
            let place = hand.tip_pose(q);
            let seen = self.scene.surface.project(&place.point_m);
            let normal = self.scene.surface.at(seen.at_mm).normal;
            let higher = ToolPose {
                point_m: place.point_m + normal.scale(by_mm / 1e3),
                ..place
            };
            hand.solve(&higher, q).ok().map(|found| found.q_rad)
        };
        Some(vec![raised(from)?, raised(to)?])
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
            let apart = super::cartesian_path::distance(from_mm, to_mm) > 1e-6;
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
        [
            (from, above(from)),
            (above(from), above(to)),
            (above(to), to),
        ]
        .into_iter()
        .filter(|(a, b)| (b.point_m - a.point_m).norm() > 1e-6 || a.axis.angle(&b.axis) > 1e-6)
        .map(|(from, to)| vec![CartesianSegment::Across { from, to }])
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
            let over_mm = if is_over {
                seen.height_mm
            } else {
                f64::INFINITY
            };
            self.scene.heights.lift_mm - over_mm
        };
        (1..LOOKS_BETWEEN).map(short_mm).fold(0.0, f64::max)
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
            self.spans.push(TrajectorySpan {
                kind: SpanKind::Approach,
                item: None,
                pen: 0,
                first: 0,
                end: self.samples.len(),
            });
        }
        let hover_from = self.hover_from.unwrap_or(self.samples.len());
        Ok((
            Trajectory {
                period: PERIOD,
                samples: self.samples,
                spans: self.spans,
            },
            hover_from,
        ))
    }
}

pub(super) fn without_place(cause: RefusalCause) -> PathError {
    PathError { at_mm: None, cause }
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
    Err(PlanError::Refused(vec![PlanRefusal {
        stroke: None,
        source: name.to_owned(),
        at_mm: None,
        cause: RefusalCause::Unfit {
            why: format!(
                "has {} joint angles; arm {} needs {joints} finite ones",
                q.len(),
                scene.arm.file.name
            ),
        },
    }]))
}
