//! Builds a trajectory: keeps the samples so far and where the arm stands.

use nalgebra::{Point3, Vector3};

use super::cartesian_path::{CartesianPath, CartesianSegment, ToolPose, to_count};
use super::error::{PlanError, PlanRefusal, RefusalCause};
use super::follow_path::{PathError, follow_path};
use super::hop::PlannedHop;
use super::limit_violations::seam_ratio;
use super::self_clearance::SelfClearance;
use super::time_parameterization::{NOISE, PacedPath, PacingMode, TipLimits};
use super::tool_ik::ToolIk;
use super::trajectory::{SpanKind, Trajectory, TrajectorySpan};
use super::{BUILT_SAMPLES_MAX, PERIOD, PERIOD_S, PlanObserver};
use base::plane::{Point, distance};
use base::units::JointVector;
use scene::{Scene, ScenePen, ToolKind};

/// Largest acceleration of a tip that does not draw.
const TRAVEL_M_S2: f64 = 1.0;
/// Largest jerk of a tip that does not draw.
const TRAVEL_M_S3: f64 = 20.0;
/// Shortest time in which a drawing tip reaches its largest acceleration.
const DRAW_RISE_S: f64 = 0.04;
/// Height below which a needle is slow, even if a higher speed is requested.
pub(super) const NEEDLE_NEAR_MM: f64 = 20.0;
pub(super) const NEEDLE_M_S: f64 = 0.025;

/// Reach of third differences, in samples, on either side of a seam between two paths.
const SEAM_SAMPLES: usize = 3;
/// Number of samples at rest after which no difference spans the previous path.
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
    pub(super) iks: Vec<ToolIk<'a>>,
    pub(super) own_parts: SelfClearance<'a>,
    /// The pen in use and where its tip hovers; `None` before the first pen is taken.
    pub(super) in_use: Option<(usize, HoverTarget)>,
    pub(super) refusals: Vec<PlanRefusal>,
    /// First sample of the part that does not depend on the start.
    pub(super) hover_from: Option<usize>,
    samples: Vec<JointVector>,
    spans: Vec<TrajectorySpan>,
    observer: &'a dyn PlanObserver,
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
        observer: &'a dyn PlanObserver,
    ) -> Result<Self, PlanError> {
        check_joints_fit(scene, "the arm's present pose", start)?;
        let iks = scene.pens.iter().map(|pen| ToolIk::new(scene, pen));
        Ok(Self {
            scene,
            iks: iks.collect(),
            own_parts: SelfClearance::new(scene),
            in_use: None,
            refusals: Vec::new(),
            hover_from: None,
            samples: vec![*start],
            spans: Vec::new(),
            observer,
        })
    }

    pub(super) fn check_cancelled(&self) -> Result<(), PlanError> {
        if self.observer.cancelled() {
            Err(PlanError::Cancelled)
        } else {
            Ok(())
        }
    }

    pub(super) fn progress(&self, done: usize, of: usize) {
        self.observer.progress(done, of);
    }

    #[expect(
        clippy::expect_used,
        reason = "the samples begin with the start, and no checkpoint is before it"
    )]
    pub(super) fn last_joints(&self) -> JointVector {
        *self.samples.last().expect("the start")
    }

    /// Returns where the tip of this pen hovers, if the pen is in use.
    pub(super) fn hover_of(&self, pen: usize) -> Option<HoverTarget> {
        let (in_use, target) = self.in_use?;
        (in_use == pen).then_some(target)
    }

    pub(super) fn ik(&self, pen: usize) -> Result<ToolIk<'a>, RefusalCause> {
        self.iks.get(pen).copied().ok_or_else(|| {
            let count = self.iks.len();
            let why = format!("asks for pen {}; the scene has {count} pens", pen + 1);
            RefusalCause::Unfit { why }
        })
    }

    /// Returns the pens that are or may be in the holder.
    pub(super) fn tools_in_holder(&self) -> impl Iterator<Item = (usize, &ToolIk<'a>)> {
        let all = self.iks.iter().enumerate();
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

    pub(super) fn restore(&mut self, checkpoint: &BuildCheckpoint) {
        self.samples.truncate(checkpoint.samples);
        self.spans.truncate(checkpoint.spans);
        if let Some(last) = self.spans.last_mut() {
            last.end = last.end.min(checkpoint.samples);
        }
        (self.in_use, self.hover_from) = (checkpoint.in_use, checkpoint.hover_from);
    }

    /// Returns the last joints at a checkpoint that is still part of the trajectory.
    #[expect(clippy::expect_used, reason = "a hop from elsewhere would be no hop")]
    pub(super) fn joints_at(&self, checkpoint: &BuildCheckpoint) -> JointVector {
        let until = self.samples.get(..checkpoint.samples);
        let last = until.and_then(<[_]>::last);
        *last.expect("the start is before every checkpoint")
    }

    /// Returns the samples after a checkpoint that is still part of the trajectory.
    #[expect(clippy::expect_used, reason = "a lift without its samples is no lift")]
    pub(super) fn samples_since(&self, checkpoint: &BuildCheckpoint) -> &[JointVector] {
        let since = self.samples.get(checkpoint.samples..);
        since.expect("the checkpoint is still part of the trajectory")
    }

    /// Appends samples that were at this place of the trajectory before.
    pub(super) fn reappend(&mut self, label: SpanLabel, samples: &[JointVector]) {
        let first = self.samples.len();
        self.samples.extend_from_slice(samples);
        self.spans.push(label.span(first, self.samples.len()));
    }

    /// Appends a hop: the rise to the previous item, the rest to the next one.
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
        label: SpanLabel,
        samples: &[JointVector],
    ) -> Result<(), RefusalCause> {
        let still_samples = self.samples_at_rest_before(samples);
        let count = self.samples.len() + still_samples + samples.len();
        RefusalCause::refuse_longer(count, BUILT_SAMPLES_MAX)?;
        // The very first sample is the start, and belongs to the first span.
        let is_first = self.spans.is_empty();
        let first = if is_first { 0 } else { self.samples.len() };
        self.samples.extend(vec![self.last_joints(); still_samples]);
        self.samples.extend_from_slice(samples);
        let end = self.samples.len();
        match self.spans.last_mut() {
            Some(last)
                if (last.kind, last.item, last.pen) == (label.kind, label.item, label.pen) =>
            {
                last.end = end;
            }
            _ if first < end => self.spans.push(label.span(first, end)),
            _ => {}
        }
        Ok(())
    }

    /// Returns the number of samples that the arm must stand still before it continues: each path
    /// keeps the limits, but where one ends and the next begins, their jerks add up.
    fn samples_at_rest_before(&self, samples: &[JointVector]) -> usize {
        // Before its first sample the arm stands there.
        let missing = SEAM_SAMPLES.saturating_sub(self.samples.len());
        let skipped = self.samples.len().saturating_sub(SEAM_SAMPLES);
        let first = self.samples.first().copied();
        let mut seam: Vec<JointVector> = first.into_iter().cycle().take(missing).collect();
        seam.extend(self.samples.iter().skip(skipped));
        let end = seam.len();
        seam.extend(samples.iter().take(SEAM_SAMPLES));
        let mut best = (f64::INFINITY, 0);
        for still_samples in 0..=SEAM_STILL_MAX {
            // A violation within one path does not depend on how long the arm stands before it.
            let ratio = seam_ratio(&self.scene.arm, &seam).max(1.0 + NOISE);
            if ratio < best.0 {
                best = (ratio, still_samples);
            }
            seam.insert(end, self.last_joints());
        }
        best.1
    }

    /// Follows paths from where the arm is, and returns the largest tilt on the way, in radians.
    pub(super) fn follow(
        &mut self,
        label: SpanLabel,
        paths: &[CartesianPath],
        tip_limits: TipLimits,
    ) -> Result<f64, PathError> {
        let ik = self.ik(label.pen)?;
        let mut tilt_rad: f64 = 0.0;
        for path in paths {
            self.check_cancelled()
                .map_err(|_| RefusalCause::Cancelled)?;
            let start = self.last_joints();
            let ik = ik.leaving(&start);
            let waypoints = follow_path(&ik, &self.scene.surface, path, &start)?;
            let is_needle_near = (waypoints.iter()).any(|waypoint| ik.has_needle_near(&waypoint.q));
            let tip_limits = tip_limits.for_needle(is_needle_near);
            let tilts_rad = waypoints.iter().map(|waypoint| waypoint.tilt_rad);
            tilt_rad = tilts_rad.fold(tilt_rad, f64::max);
            let paced_path = PacedPath {
                ik: &ik,
                surface: &self.scene.surface,
                path,
                waypoints: &waypoints,
                tip_limits,
            };
            let samples = paced_path.samples().map_err(|cause| PathError {
                at_mm: path.first().and_then(|piece| piece.place_mm(0.0)),
                cause,
            })?;
            self.append(label, &samples)?;
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

    /// Stands still where the arm is.
    pub(super) fn dwell(&mut self, label: SpanLabel, seconds: f64) -> Result<(), RefusalCause> {
        if !(seconds >= 0.0 && seconds.is_finite()) {
            return Err(RefusalCause::Unfit {
                why: format!("cannot be held for {seconds} s"),
            });
        }
        let count = to_count((seconds / PERIOD_S).ceil());
        RefusalCause::refuse_longer(count, BUILT_SAMPLES_MAX)?;
        let still_samples = vec![self.last_joints(); count];
        self.append(label, &still_samples)
    }

    /// Moves the tip from one hover target to another: along the sheet if both are over it,
    /// otherwise up, across and down. Where the arm would come too near itself on that way, as in
    /// front of its base, all joints swing together.
    pub(super) fn travel(
        &mut self,
        label: SpanLabel,
        from: HoverTarget,
        to: HoverTarget,
    ) -> Result<(), PathError> {
        let tip_limits = self.travel_limits();
        let paths = self.travel_paths(from, to);
        let before = self.checkpoint();
        self.follow(label, &paths, tip_limits)?;
        let ends = [self.joints_at(&before), self.last_joints()];
        let straight = self.samples_since(&before);
        if !self.own_parts.is_kept(&ends, straight) {
            self.swing_instead(label, &before, &ends)?;
        }
        self.in_use = Some((label.pen, to));
        Ok(())
    }

    /// Replaces a way that comes too near itself by a swing to the same pose, if that keeps apart.
    fn swing_instead(
        &mut self,
        label: SpanLabel,
        before: &BuildCheckpoint,
        ends: &[JointVector; 2],
    ) -> Result<(), RefusalCause> {
        let straight = self.samples_since(before).to_vec();
        self.restore(before);
        let has_swung = self.swing_to(label, &ends[1]).is_ok();
        if has_swung && self.own_parts.is_kept(ends, self.samples_since(before)) {
            return Ok(());
        }
        self.restore(before);
        self.append(label, &straight)
    }

    /// Begins to use a pen: lifts a low tip and swings the pen's tip to a hover target, with the
    /// joints that `solve` chooses.
    pub(super) fn take_pen(
        &mut self,
        item: usize,
        pen: usize,
        to: HoverTarget,
        solve: impl FnOnce(&ToolIk<'a>, &ToolPose) -> Result<JointVector, RefusalCause>,
    ) -> Result<(), PathError> {
        let has_hovered = self.hover_from.is_some();
        let kind = if has_hovered {
            SpanKind::Travel
        } else {
            SpanKind::Approach
        };
        self.lift_if_low(kind)?;
        let ik = self.ik(pen)?;
        let at_mm = match to {
            HoverTarget::Sheet(at_mm) => Some(at_mm),
            HoverTarget::Space(_) => None,
        };
        let label = SpanLabel::new(kind, has_hovered.then_some(item), pen);
        solve(&ik, &self.hover_pose(to))
            .and_then(|pose| self.swing_to(label, &pose))
            .map_err(|cause| PathError { at_mm, cause })?;
        self.in_use = Some((pen, to));
        self.hover_from.get_or_insert(self.samples.len());
        Ok(())
    }

    pub(super) fn hover_pose(&self, target: HoverTarget) -> ToolPose {
        match target {
            HoverTarget::Sheet(at_mm) => {
                ToolPose::over(&self.scene.surface, at_mm, self.scene.heights.lift_mm)
            }
            HoverTarget::Space(point_m) => ToolPose::above(point_m),
        }
    }

    fn travel_paths(&self, from: HoverTarget, to: HoverTarget) -> Vec<CartesianPath> {
        if let (HoverTarget::Sheet(from_mm), HoverTarget::Sheet(to_mm)) = (from, to) {
            let is_apart = distance(from_mm, to_mm) > 1e-6;
            let height_mm = self.scene.heights.lift_mm;
            let along = CartesianSegment::Along {
                from_mm,
                to_mm,
                height_mm,
            };
            return if is_apart {
                vec![vec![along]]
            } else {
                Vec::new()
            };
        }
        let (from, to) = (self.hover_pose(from), self.hover_pose(to));
        let top_m = self.top_m(&from, &to);
        let above = |pose: ToolPose| ToolPose {
            point_m: pose.point_m + Vector3::z() * (top_m - pose.point_m.z),
            ..pose
        };
        let poses = [from, above(from), above(to), to];
        let legs = poses.iter().zip(poses.iter().skip(1));
        legs.filter(|(a, b)| (b.point_m - a.point_m).norm() > 1e-6 || a.axis.angle(&b.axis) > 1e-6)
            .map(|(from, to)| {
                let (from, to) = (*from, *to);
                vec![CartesianSegment::Across { from, to }]
            })
            .collect()
    }

    /// Returns the height of a level move between two poses, in the base frame: it clears the
    /// surface between them by the hover height.
    fn top_m(&self, from: &ToolPose, to: &ToolPose) -> f64 {
        let mut top_m = from.point_m.z.max(to.point_m.z);
        for _ in 0..RAISES_MAX {
            let shortfall_mm = self.shortfall_mm(from, to, top_m);
            if shortfall_mm < RAISED_MM {
                break;
            }
            // Rising by this much adds at most as much distance from the surface: never too high.
            top_m += shortfall_mm / 1e3;
        }
        top_m
    }

    /// Returns by how much a level move comes nearer to the surface than the hover height, at most.
    /// A flat sheet ends at its edges; the shape that another is rolled around does not.
    fn shortfall_mm(&self, from: &ToolPose, to: &ToolPose, top_m: f64) -> f64 {
        let surface = &self.scene.surface;
        let shortfall_mm = |n: u32| {
            let t = f64::from(n) / f64::from(LOOKS_BETWEEN);
            let mut point = from.point_m.lerp(&to.point_m, t);
            point.z = top_m;
            let projection = surface.project(&point);
            let is_over = !surface.is_flat() || surface.holds(projection.at_mm);
            is_over.then_some(self.scene.heights.lift_mm - projection.height_mm)
        };
        (1..LOOKS_BETWEEN)
            .filter_map(shortfall_mm)
            .fold(0.0, f64::max)
    }

    pub(super) fn refuse(&mut self, stroke: Option<usize>, source: &str, error: PathError) {
        self.refusals.push(PlanRefusal {
            stroke,
            source: source.to_owned(),
            at_mm: error.at_mm,
            cause: error.cause,
        });
    }

    /// Returns the trajectory and the first sample after the approach, or every refusal.
    pub(super) fn finish(mut self) -> Result<(Trajectory, usize), PlanError> {
        if !self.refusals.is_empty() {
            return Err(PlanError::Refused(self.refusals));
        }
        self.check_cancelled()?;
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
    /// Returns the limits, slowed if a needle is near the surface.
    fn for_needle(self, is_near: bool) -> Self {
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

/// Returns the limits of a pen's tip between two lines. A hop begins at the sheet, where a needle
/// is slow.
pub(super) fn hop_limits(scene: &Scene, pen: usize) -> TipLimits {
    let pen = scene.pen(pen);
    travel_limits(scene).for_needle(pen.is_some_and(|pen| pen.kind == ToolKind::Needle))
}

/// Refuses joints that do not fit this arm.
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
    let why = format!("has {count} joint angles; arm {arm} needs {joints} finite angles");
    Err(PlanError::unfit(None, name, why))
}
