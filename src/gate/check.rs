//! Judges a whole trajectory before anything moves.

use std::collections::HashMap;
use std::time::Duration;

use nalgebra::{IsometryMatrix3, Point3};

use super::clearance::{height_mm, tilt_rad, tip_m};
use super::collision_body::PosedBody;
use super::collision_world::{CollisionWorld, JointLevers};
use super::depth_trim::TrimmedCopies;
use super::escape::{EscapeTracker, Ratchet};
use super::joint_rates::excess;
use super::stop_proof::{StopProof, touches};
use super::{GateRefusal, GateRule, LimitExcess, RefusedTrajectory};
use base::units::{ArmMeasurement, ClockInstant, JointVector, short, value_and_limit};
use base::wording::duration;
use kin::{LinkFrames, ToolTip};
use permit::MotionPermit;
use plan::{SpanKind, Trajectory, TrajectorySpan};
use scene::{
    CLEARANCE_M, InkCap, JOG_MM_S, PROBE_DEPTH_MM, PROBE_MM_S, Scene, ScenePen, TIP_MM_S_MAX,
    ToolKind,
};

/// Longer plans are refused: at 100 Hz this is more than two hours and a half.
const SAMPLES_MAX: usize = 1_000_000;
// The gate accepts every length that the planner can make.
const _: () = assert!(plan::SAMPLES_MAX <= SAMPLES_MAX);

/// Range of control periods that make sense for hobby servos.
const PERIOD: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(2)..=Duration::from_millis(50);

/// Largest distance of each joint from the start of the plan.
pub(super) const START_RAD: f64 = 0.02;

/// Largest age of the reading that gives the arm's position.
pub const READING_AGE_MAX: Duration = Duration::from_millis(250);

/// Rounding that is not held against a plan.
pub(super) const SLACK: f64 = 1.0 + 1e-3;

/// Depth that a tip may have beyond the scene's press: the planner's own tolerance.
pub(super) const DEPTH_SLACK_MM: f64 = 0.25;

/// Largest distance between the middle of an ink cap and its wall.
const CAP_M: f64 = 0.015;

/// Largest distance of the tip from the straight line, in the middle between two samples.
const MIDPOINT_MM: f64 = 0.1;

/// Largest condition number for a tip that follows the surface: the largest tip movement over the
/// smallest. Beyond it, servo errors grow too large at the tip.
const CONDITION_MAX: f64 = 30.0;

/// Height over the sheet below which a needle must move slowly.
const NEEDLE_NEAR_MM: f64 = 20.0;

/// Speed limit of a needle near the sheet.
pub(super) const NEEDLE_MM_S: f64 = 25.0;

/// The verdict of a judge as comparable text.
#[cfg(test)]
pub(super) struct TestVerdict {
    pub(super) refusals: Vec<GateRefusal>,
    pub(super) stops: String,
}

/// Judges every sample and proves the stops, whether samples were refused or not.
#[cfg(test)]
pub(super) fn judge_samples<'a>(
    scene: &'a Scene,
    trajectory: &'a Trajectory,
    new_world: impl Fn() -> CollisionWorld<'a>,
) -> TestVerdict {
    let mut judge = TrajectoryJudge::new(scene, trajectory);
    let spans = judge.check_form();
    assert!(judge.refusals.is_empty(), "{:?}", judge.refusals);
    judge.check_samples(&spans, new_world());
    TestVerdict {
        refusals: judge.refusals,
        stops: format!("{:?}", StopProof::prove(new_world(), trajectory, None)),
    }
}

pub(super) struct TrajectoryJudge<'a> {
    pub(super) scene: &'a Scene,
    pub(super) trajectory: &'a Trajectory,
    pub(super) refusals: Vec<GateRefusal>,
    /// Factor by which rates may exceed their limits, more than by rounding: 1 except for trimmed copies.
    pub(super) rate_slack: f64,
    /// Index of the worst refusal by rule, stroke and activity.
    worst_index: HashMap<(GateRule, Option<usize>, Option<SpanKind>), usize>,
}

/// Returns by how much a limit is exceeded.
fn overshoot(excess: Option<LimitExcess>) -> f64 {
    excess.map_or(0.0, |excess| (excess.value - excess.limit).abs())
}

/// Escape histories of everything that may begin beyond a limit and move back from it.
struct EscapeHistories {
    sheet: Ratchet,
    body: EscapeTracker,
    idle: EscapeTracker,
    workspace: EscapeTracker<(usize, usize)>,
    own: EscapeTracker<(usize, usize)>,
    keep_outs: Vec<EscapeTracker>,
}

/// The joint angles that are judged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum JudgedJoints {
    /// The expected ones: the tip's motion is judged as well.
    Expected,
    /// The goals, as if an arm without play followed them exactly.
    Sent,
}

/// One sample, and where joints and tool mount were at the one before it.
struct JudgedSample<'a> {
    sample: usize,
    span: &'a TrajectorySpan,
    pen: &'a ScenePen,
    q: &'a JointVector,
    pose: &'a PosedBody,
    frames: &'a LinkFrames,
    tip: Point3<f64>,
    previous: Option<(&'a JointVector, IsometryMatrix3<f64>)>,
}

impl<'a> TrajectoryJudge<'a> {
    pub(super) fn new(scene: &'a Scene, trajectory: &'a Trajectory) -> Self {
        Self {
            scene,
            trajectory,
            refusals: Vec::new(),
            rate_slack: 1.0,
            worst_index: HashMap::new(),
        }
    }

    /// Applies every rule and `check_permit`, and the rules for what a trim may do; returns the proven stops if none refuses.
    pub(super) fn run(
        mut self,
        copies: Option<&TrimmedCopies>,
        check_permit: impl FnOnce(&mut Self),
    ) -> Result<StopProof, RefusedTrajectory> {
        let spans = self.check_form();
        if !self.refusals.is_empty() {
            return Err(RefusedTrajectory(self.refusals));
        }
        check_permit(&mut self);
        self.check_samples(&spans, CollisionWorld::new(self.scene));
        if let Some(copies) = copies.filter(|_| self.refusals.is_empty()) {
            self.check_copies(copies);
        }
        match StopProof::prove(CollisionWorld::new(self.scene), self.trajectory, copies) {
            Ok(stops) if self.refusals.is_empty() => Ok(stops),
            Ok(_) => Err(RefusedTrajectory(self.refusals)),
            Err(refusal) => {
                let at_mm = self.at_mm(refusal.sample);
                self.refusals.push(GateRefusal { at_mm, ..*refusal });
                Err(RefusedTrajectory(self.refusals))
            }
        }
    }

    pub(super) fn refuse(
        &mut self,
        rule: GateRule,
        sample: usize,
        excess: Option<LimitExcess>,
        reason: impl FnOnce() -> String,
    ) {
        let span = self.trajectory.span_at(sample);
        let (item, doing) = (span.and_then(|span| span.item), span.map(|span| span.kind));
        let next = self.refusals.len();
        let index = *self.worst_index.entry((rule, item, doing)).or_insert(next);
        let worst = self.refusals.get(index);
        if worst.is_some_and(|worst| overshoot(excess) <= overshoot(worst.excess)) {
            return;
        }
        let seconds = self.trajectory.period.as_secs_f64() * sample as f64;
        let refusal = GateRefusal {
            arm: None,
            rule,
            sample,
            doing,
            item,
            at_mm: self.at_mm(sample),
            excess,
            why: format!("{} ({seconds:.2} s into the motion)", reason()),
        };
        match self.refusals.get_mut(index) {
            Some(previous) => *previous = refusal,
            None => self.refusals.push(refusal),
        }
    }

    /// Refuses a value above its limit, with the slack that rounding needs. `reason` gets both as
    /// text with enough digits to differ.
    pub(super) fn check_limit(
        &mut self,
        rule: GateRule,
        sample: usize,
        (value, limit, unit): (f64, f64, &'static str),
        slack: f64,
        reason: impl FnOnce(&str, &str) -> String,
    ) {
        let slack = slack * self.slack_of(rule);
        if exceeds(value, limit * slack) {
            self.refuse(rule, sample, excess(value, limit, unit), || {
                let (value, limit) = value_and_limit(value, limit);
                reason(&value, &limit)
            });
        }
    }

    /// Returns where the tip is over the sheet, if the sample fits this arm.
    fn at_mm(&self, sample: usize) -> Option<[f64; 2]> {
        let fits_arm = |q: &&JointVector| q.len() == self.scene.arm.dof();
        let q = self.trajectory.reached().get(sample).filter(fits_arm)?;
        let pen = self.trajectory.span_at(sample)?.pen;
        let tip = tip_m(self.scene, pen, q)?;
        let at_mm = self.scene.surface.project(&tip).at_mm;
        at_mm.iter().all(|v| v.is_finite()).then_some(at_mm)
    }

    /// Refuses a malformed trajectory, or one of another arm. Returns the spans, each with its pen.
    pub(super) fn check_form(&mut self) -> Vec<(&'a TrajectorySpan, &'a ScenePen)> {
        let plan = self.trajectory;
        let (count, dof) = (plan.samples.len(), self.scene.arm.dof());
        if !(2..=SAMPLES_MAX).contains(&count) {
            self.refuse(GateRule::Form, 0, None, || {
                format!(
                    "the motion has {count} samples of {:?}; 2 to {SAMPLES_MAX} are possible (a few hours). Draw it in parts",
                    plan.period
                )
            });
        }
        if !PERIOD.contains(&plan.period) {
            self.refuse(GateRule::Form, 0, None, || {
                format!(
                    "the sample period is {:?}; it must be {PERIOD:?}",
                    plan.period
                )
            });
        }
        let is_bad = |q: &JointVector| q.len() != dof || !q.is_finite();
        let mut all = plan.samples.iter().chain(&plan.reached);
        if let Some(position) = all.position(is_bad) {
            let sample = position % count.max(1);
            self.refuse(GateRule::Form, sample, None, || {
                format!("sample {sample} must be {dof} finite angles")
            });
        }
        self.check_leads_form();
        self.check_arm_limits();
        self.check_spans()
    }

    /// Refuses an arm whose limits do not match its joints: a joint without one would be unbounded.
    fn check_arm_limits(&mut self) {
        let (limits, dof) = (&self.scene.arm.limits, self.scene.arm.dof());
        for (what, limits) in [
            ("lower", &limits.lower_rad),
            ("upper", &limits.upper_rad),
            ("speed", &limits.velocity_rad_s),
            ("acceleration", &limits.acceleration_rad_s2),
            ("jerk", &limits.jerk_rad_s3),
        ] {
            let count = limits.len();
            if count != dof || !limits.is_finite() {
                self.refuse(GateRule::Form, 0, None, || {
                    format!(
                        "the arm has {count} {what} limits; it needs {dof} finite ones, one for each joint. Correct the arm's file"
                    )
                });
            }
        }
    }

    fn check_spans(&mut self) -> Vec<(&'a TrajectorySpan, &'a ScenePen)> {
        let (plan, scene) = (self.trajectory, self.scene);
        let count = plan.samples.len();
        let (mut next, mut spans) = (0, Vec::new());
        for span in &plan.spans {
            let pen = scene.pen(span.pen);
            let Some(pen) = pen.filter(|_| span.first == next && span.end > span.first) else {
                self.refuse(GateRule::Form, span.first, None, || {
                    format!(
                        "span {span:?} must begin at sample {next}, end after it, and name a pen of the scene"
                    )
                });
                return spans;
            };
            if span.kind == SpanKind::Probe && span.end != count {
                self.refuse(GateRule::Form, span.first, None, || {
                    "a probe must be the last part of its motion, because it goes back along its own path".to_owned()
                });
            }
            spans.push((span, pen));
            next = span.end;
        }
        if next != count {
            self.refuse(GateRule::Form, next, None, || {
                format!("the spans end at sample {next} instead of {count}")
            });
        }
        spans
    }

    pub(super) fn check_permit_and_start(
        &mut self,
        permit: &MotionPermit,
        start: &ArmMeasurement,
        now: ClockInstant,
    ) {
        if !permit.covers(self.scene, now) {
            let scene = self.scene.title();
            self.refuse(GateRule::Enabled, 0, None, || {
                format!("motion is not enabled for the present version of scene `{scene}`")
            });
        }
        let end = now.after(self.trajectory.duration());
        if permit.covers(self.scene, now) && !permit.covers(self.scene, end) {
            self.refuse(GateRule::Enabled, 0, None, || {
                format!(
                    "the motion takes {}, but motion is enabled for less time. Enable it for longer",
                    duration(self.trajectory.duration())
                )
            });
        }
        self.check_pens_confirmed();
        let first = self.trajectory.samples.first();
        if let Some(Err(error)) = first.map(|first| check_at_start(self.scene, first, start, now)) {
            self.refuse(GateRule::Start, 0, None, || error.to_string());
        }
    }

    /// Refuses to bring down a pen that no person has confirmed: if another is in the holder, its tip
    /// is elsewhere.
    fn check_pens_confirmed(&mut self) {
        let lowers_pen = |span: &&TrajectorySpan| match span.kind {
            SpanKind::Lower
            | SpanKind::Draw
            | SpanKind::Dip
            | SpanKind::Dwell
            | SpanKind::Probe => true,
            // A person who jogs sees which pen is there.
            SpanKind::Approach
            | SpanKind::Travel
            | SpanKind::Lift
            | SpanKind::Pose
            | SpanKind::Jog => false,
        };
        let scene = self.scene;
        for span in self.trajectory.spans.iter().filter(lowers_pen) {
            if !scene.holder.holds(span.pen) {
                self.refuse(GateRule::Pen, span.first, None, || {
                    format!(
                        "no person has confirmed that {} is in the holder. Draw with that pen first: then a person is asked",
                        scene.pen_words(span.pen)
                    )
                });
            }
        }
    }

    pub(super) fn check_samples(
        &mut self,
        spans: &[(&'a TrajectorySpan, &'a ScenePen)],
        mut world: CollisionWorld<'_>,
    ) {
        self.check_joint_limits();
        self.check_joint_rates();
        self.check_poses(spans, &mut world, JudgedJoints::Expected);
        if !self.trajectory.reached.is_empty() {
            self.check_leads(spans);
            self.check_poses(spans, &mut world, JudgedJoints::Sent);
        }
    }

    fn check_poses(
        &mut self,
        spans: &[(&'a TrajectorySpan, &'a ScenePen)],
        world: &mut CollisionWorld<'_>,
        judged: JudgedJoints,
    ) {
        let joints = match judged {
            JudgedJoints::Expected => self.trajectory.reached(),
            JudgedJoints::Sent => &self.trajectory.samples,
        };
        let mut escapes = EscapeHistories::new(self.scene, spans);
        let mut previous: Option<(usize, &JointVector, IsometryMatrix3<f64>)> = None;
        for (span, pen) in spans {
            for (sample, q) in joints.iter().enumerate().take(span.end).skip(span.first) {
                let pose = world.body().pose(q);
                let frames = world.body().frames(&pose);
                let tool = frames.tool;
                let at = JudgedSample {
                    sample,
                    span,
                    pen,
                    q,
                    pose: &pose,
                    frames,
                    tip: tool * pen.tip_m,
                    previous: previous.map(|(_, q, tool)| (q, tool)),
                };
                if previous.is_some_and(|(pen, ..)| pen != span.pen) {
                    // Until now this tip was judged as one that does not draw.
                    escapes.sheet = Ratchet::far();
                }
                previous = Some((span.pen, q, tool));
                if judged == JudgedJoints::Expected {
                    self.check_tip_motion(&at, world.levers());
                    self.check_idle_needles(&at);
                    self.check_tip_pose(&at);
                }
                self.check_tip_height(&at, &mut escapes);
                self.check_surroundings(world, &at, &mut escapes);
                self.check_keep_outs(world, &at, &mut escapes);
            }
        }
    }

    /// Checks how fast and how straight the tip moves from the previous sample.
    fn check_tip_motion(&mut self, at: &JudgedSample<'_>, levers: &JointLevers) {
        let Some((previous_q, previous_tool)) = &at.previous else {
            return;
        };
        let previous = previous_tool * at.pen.tip_m;
        let speed = (at.tip - previous).norm() * 1e3 / self.trajectory.period.as_secs_f64();
        let limit = tip_limit_mm_s(self.scene, at.pen.kind, at.span.kind, &at.tip);
        let limit = match at.span.kind {
            SpanKind::Draw => limit.min(self.scene.draw_mm_s(at.pen)),
            _ => limit,
        };
        let values = (speed, limit, "mm/s");
        let rule = GateRule::TipSpeed;
        self.check_limit(rule, at.sample, values, SLACK, |speed, limit| {
            format!("the tip would move at {speed} mm/s; {limit} mm/s is the limit here")
        });
        if is_straight(levers, previous_q, at.q) {
            return;
        }
        let middle = previous_q.zip(at.q, f64::midpoint);
        let tip = self.scene.arm.chain.point(&middle, &at.pen.tip_m);
        let off = (tip - nalgebra::center(&previous, &at.tip)).norm() * 1e3;
        let values = (off, MIDPOINT_MM, "mm");
        self.check_limit(GateRule::Midpoint, at.sample, values, 1.0, |off, limit| {
            format!("between two samples the tip would stray {off} mm from the straight line; {limit} mm is the limit: go slower")
        });
    }

    /// Checks how fast the needles near the sheet move that do not draw.
    fn check_idle_needles(&mut self, at: &JudgedSample<'_>) {
        let Some((_, previous_tool)) = &at.previous else {
            return;
        };
        let period_s = self.trajectory.period.as_secs_f64();
        for needle in idle_needles(self.scene, at.span.pen) {
            let [then, now] = [previous_tool, &at.frames.tool].map(|tool| tool * needle.tip_m);
            if !is_near_sheet(self.scene, &now) {
                continue;
            }
            let values = ((now - then).norm() * 1e3 / period_s, NEEDLE_MM_S, "mm/s");
            let rule = GateRule::TipSpeed;
            self.check_limit(rule, at.sample, values, SLACK, |speed, limit| {
                format!(
                    "needle `{}` would move at {speed} mm/s while it does not draw; {limit} mm/s is the limit within {NEEDLE_NEAR_MM:.0} mm of the sheet",
                    needle.name
                )
            });
        }
    }

    /// Checks the arm's pose while the tip touches: its condition number, and the tilt of a drawing pen.
    fn check_tip_pose(&mut self, at: &JudgedSample<'_>) {
        if !touches(at.span.kind) {
            return;
        }
        let tip = ToolTip {
            point_m: at.pen.tip_m,
            axis: at.pen.axis,
        };
        let chain = &self.scene.arm.chain;
        if let Some(condition) = chain.condition_over(at.frames, &tip, CONDITION_MAX) {
            let excess = excess(condition, CONDITION_MAX, "");
            self.refuse(GateRule::Condition, at.sample, excess, || {
                format!("the arm would be too near a singular pose: its joints move the tip {condition:.0} times farther in one direction than in another; {CONDITION_MAX:.0} is the limit. Move the sheet")
            });
        }
        let cone = at.pen.cone_rad;
        if at.span.kind != SpanKind::Draw {
            return;
        }
        let tilt = tilt_rad(self.scene, at.frames, at.pen);
        if exceeds(tilt, cone * SLACK) {
            let (name, tilt, cone) = (&at.pen.name, tilt.to_degrees(), cone.to_degrees());
            self.refuse(GateRule::Tilt, at.sample, excess(tilt, cone, "deg"), || {
                let (tilt, cone) = value_and_limit(tilt, cone);
                format!("`{name}` would lean {tilt}°; {cone}° is the limit")
            });
        }
    }

    fn check_tip_height(&mut self, at: &JudgedSample<'_>, escapes: &mut EscapeHistories) {
        let Some(height) = height_mm(self.scene, &at.tip) else {
            escapes.sheet = Ratchet::far();
            return;
        };
        let floor = self.floor_mm(at.span.kind, &at.tip);
        let floor = match at.span.kind {
            SpanKind::Draw | SpanKind::Lower => {
                floor.max(-self.scene.press_mm(at.pen) - DEPTH_SLACK_MM)
            }
            _ => floor,
        };
        // The margin is tracked, not the height: what is deep enough to draw is too deep to travel.
        if escapes.sheet.breached(height - floor, 0.0) {
            self.refuse(
                GateRule::Sheet,
                at.sample,
                excess(height, floor, "mm"),
                || {
                    let (depth, limit) = value_and_limit(-height, -floor);
                    format!(
                        "the tip would be {depth} mm below the sheet; {limit} mm is the limit here"
                    )
                },
            );
        }
    }

    /// Returns the lowest permitted height of a tip over the sheet.
    fn floor_mm(&self, doing: SpanKind, tip: &Point3<f64>) -> f64 {
        match doing {
            SpanKind::Draw | SpanKind::Lower | SpanKind::Lift | SpanKind::Dwell | SpanKind::Jog => {
                -self.scene.heights.press_mm - DEPTH_SLACK_MM
            }
            SpanKind::Dip => self.cap_floor_mm(tip).min(-DEPTH_SLACK_MM),
            SpanKind::Approach | SpanKind::Travel | SpanKind::Pose => -DEPTH_SLACK_MM,
            SpanKind::Probe => -PROBE_DEPTH_MM - DEPTH_SLACK_MM,
        }
    }

    /// Returns the bottom of the ink cap below the tip, as a height over the sheet; infinity where
    /// there is none. Of two adjacent caps the nearer one counts.
    fn cap_floor_mm(&self, tip: &Point3<f64>) -> f64 {
        let gap_m = |ink: &InkCap| (tip - ink.rim_m).xy().norm();
        let caps = self.scene.inks.iter().map(|ink| (ink, gap_m(ink)));
        let over = caps
            .filter(|(_, gap_m)| exceeds(CAP_M, *gap_m))
            .min_by(|(_, one), (_, other)| one.total_cmp(other));
        over.map_or(f64::INFINITY, |(ink, _)| {
            self.scene.surface.project(&ink.rim_m).height_mm - ink.depth_m * 1e3
        })
    }

    fn check_surroundings(
        &mut self,
        world: &mut CollisionWorld<'_>,
        at: &JudgedSample<'_>,
        escapes: &mut EscapeHistories,
    ) {
        let (pose, sample) = (at.pose, at.sample);
        let outside = world.outside_workspace(pose);
        for part in escapes.workspace.breaches(outside, 0.0) {
            let (name, by) = (world.body().part_name(part.key.0), -part.gap_m * 1e3);
            self.refuse(GateRule::Workspace, sample, excess(by, 0.0, "mm"), || {
                format!("{name} would be {} mm outside the workspace", short(by))
            });
        }
        let near_sheet = world.over_sheet(pose);
        for near in escapes.body.breaches(near_sheet, CLEARANCE_M) {
            let what = world.body().part_name(near.key);
            self.too_near(GateRule::Body, sample, near.gap_m, &what, "the sheet");
        }
        let low_pens = world.idle_pens(pose, at.span.pen);
        let limit_m = self.scene.idle_clearance_m();
        for pen in escapes.idle.breaches(low_pens, limit_m) {
            let name = world.body().part_name(pen.key);
            self.idle_too_near(sample, &name, (pen.gap_m * 1e3, limit_m * 1e3));
        }
        let pairs = world.near_itself(pose);
        for near in escapes.own.breaches(pairs, CLEARANCE_M) {
            let (one, other) = near.key;
            let (one, other) = (world.body().part_name(one), world.body().part_name(other));
            self.too_near(GateRule::SelfCollision, sample, near.gap_m, &one, &other);
        }
    }

    fn check_keep_outs(
        &mut self,
        world: &mut CollisionWorld<'_>,
        at: &JudgedSample<'_>,
        escapes: &mut EscapeHistories,
    ) {
        let keep_outs = self.scene.keep_outs.iter().enumerate();
        for ((index, keep_out), escape) in keep_outs.zip(&mut escapes.keep_outs) {
            let near = world.near_keep_out(at.pose, index, &keep_out.corners);
            for near in escape.breaches(near, CLEARANCE_M) {
                let (one, other) = (world.body().part_name(near.key), &keep_out.name);
                if at.sample == 0 {
                    self.begins_in(near.gap_m, &one, other);
                } else {
                    let other = format!("keep-out `{other}`");
                    self.too_near(GateRule::KeepOut, at.sample, near.gap_m, &one, &other);
                }
            }
        }
    }

    /// Refuses a motion that begins in a keep-out and does more than leave it.
    fn begins_in(&mut self, gap_m: f64, part: &str, keep_out: &str) {
        let (value, limit) = (gap_m * 1e3, CLEARANCE_M * 1e3);
        let place = place_text(value);
        self.refuse(GateRule::KeepOut, 0, excess(value, limit, "mm"), || {
            format!(
                "at the start, {part} is {place} keep-out `{keep_out}`; it must be {limit:.0} mm away. First move the arm out with `reset` or by hand, or correct the keep-out"
            )
        });
    }

    fn idle_too_near(&mut self, sample: usize, pen: &str, (height, limit): (f64, f64)) {
        let excess = excess(height, limit, "mm");
        self.refuse(GateRule::Sheet, sample, excess, || {
            let place = if exceeds(0.0, height) {
                format!("be {} mm below", short(-height))
            } else {
                format!("come within {} mm of", value_and_limit(height, limit).0)
            };
            let limit = short(limit);
            format!(
                "{pen} would {place} the sheet while it does not draw; it must stay {limit} mm above it. Mount it higher, or write `pen_change = \"by_hand\"` if a person changes the pens"
            )
        });
    }

    fn too_near(&mut self, rule: GateRule, sample: usize, gap_m: f64, one: &str, other: &str) {
        let (value, limit) = (gap_m * 1e3, CLEARANCE_M * 1e3);
        self.refuse(rule, sample, excess(value, limit, "mm"), || {
            if exceeds(0.0, value) {
                let into = short(-value);
                return format!(
                    "{one} would enter {other} by {into} mm; it must stay {limit:.0} mm away"
                );
            }
            let (value, limit) = value_and_limit(value, limit);
            format!("{one} would come within {value} mm of {other}; {limit} mm is the limit")
        });
    }
}

/// Describes a distance from a box; a negative one is inside it.
fn place_text(mm: f64) -> String {
    if exceeds(0.0, mm) {
        format!("{:.1} mm inside", -mm)
    } else {
        format!("{mm:.1} mm from")
    }
}

/// Returns whether a step stays so close to the straight line that its middle need not be checked.
fn is_straight(levers: &JointLevers, from_rad: &JointVector, to_rad: &JointVector) -> bool {
    !exceeds(
        levers.midpoint_deviation_m(from_rad, to_rad) * 1e3,
        MIDPOINT_MM,
    )
}

/// Returns the largest permitted tip speed at a place: the scene's limit, and always a slow one
/// for a needle near the sheet.
pub(super) fn tip_limit_mm_s(
    scene: &Scene,
    tool: ToolKind,
    doing: SpanKind,
    tip: &Point3<f64>,
) -> f64 {
    let limits = &scene.limits;
    let scene_limit = match doing {
        SpanKind::Draw => limits.draw_mm_s,
        SpanKind::Probe => limits.draw_mm_s.min(PROBE_MM_S),
        SpanKind::Jog => limits.travel_mm_s.min(JOG_MM_S),
        _ => limits.travel_mm_s.max(limits.draw_mm_s),
    };
    let is_slow = tool == ToolKind::Needle && is_near_sheet(scene, tip);
    scene_limit.min(if is_slow { NEEDLE_MM_S } else { TIP_MM_S_MAX })
}

/// Returns whether a needle's tip must move slowly at a place.
pub(super) fn is_near_sheet(scene: &Scene, tip: &Point3<f64>) -> bool {
    exceeds(NEEDLE_NEAR_MM, scene.surface.project(tip).height_mm)
}

/// Returns the needles that are or may be in the holder, without the pen in use.
pub(super) fn idle_needles(scene: &Scene, in_use: usize) -> impl Iterator<Item = &ScenePen> {
    let pens = scene.pens.iter().enumerate();
    let idle = pens.filter(move |(pen, _)| *pen != in_use && scene.holder.may_hold(*pen));
    idle.map(|(_, pen)| pen)
        .filter(|pen| pen.kind == ToolKind::Needle)
}

/// Returns whether a value is beyond its limit; a value at its limit is not. The only place that
/// decides this.
pub(super) fn exceeds<T: PartialOrd + Copy>(value: T, limit: T) -> bool {
    value > limit
}

impl EscapeHistories {
    /// Only a motion that withdraws the arm may begin in a keep-out. One that draws, visits or probes
    /// must begin clear of all of them: otherwise a large keep-out would let it pass through a part
    /// that would stop it as a keep-out of its own.
    fn new(scene: &Scene, spans: &[(&TrajectorySpan, &ScenePen)]) -> Self {
        let only_withdraws = spans.iter().all(|(span, _)| {
            let kind = span.kind;
            matches!(kind, SpanKind::Lift | SpanKind::Pose | SpanKind::Jog)
        });
        let keep_out = || {
            if only_withdraws {
                EscapeTracker::lenient()
            } else {
                EscapeTracker::strict()
            }
        };
        Self {
            sheet: Ratchet::new(),
            body: EscapeTracker::lenient(),
            idle: EscapeTracker::lenient(),
            workspace: EscapeTracker::lenient(),
            own: EscapeTracker::lenient(),
            keep_outs: scene.keep_outs.iter().map(|_| keep_out()).collect(),
        }
    }
}

/// Reason that an arm is not known to stand where a motion begins.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum StartMismatch {
    /// The last reading is too old.
    #[error(
        "the arm has not answered for {} (at most {}), so its position is unknown. Next: wait until it is connected again (`sense` shows it), or check its cable and supply", duration(*.0), duration(READING_AGE_MAX)
    )]
    Silent(Duration),
    /// The reading is of a different number of joints.
    #[error("{read} joints were read; the arm has {joints}")]
    JointCount {
        /// Number of joints that were read.
        read: usize,
        /// Number of joints of the plan.
        joints: usize,
    },
    /// A joint is elsewhere.
    #[error(
        "{joint} is at {measured_rad:.3} rad, but the plan begins at {plan_rad:.3} rad (at most {START_RAD} rad apart). Next: plan again"
    )]
    Elsewhere {
        /// The joint.
        joint: String,
        /// Its measured angle.
        measured_rad: f64,
        /// Its angle where the plan begins.
        plan_rad: f64,
    },
}

/// Checks that a recent reading has the arm where a motion begins.
pub(super) fn check_at_start(
    scene: &Scene,
    first: &JointVector,
    measured: &ArmMeasurement,
    now: ClockInstant,
) -> Result<(), StartMismatch> {
    let age = now.since(measured.at);
    if age > READING_AGE_MAX {
        return Err(StartMismatch::Silent(age));
    }
    let (joints, read) = (first.len(), measured.position_rad.len());
    if read != joints {
        return Err(StartMismatch::JointCount { read, joints });
    }
    for (joint, (plan, arm_rad)) in first.iter().zip(measured.position_rad.iter()).enumerate() {
        let error_rad = (plan - arm_rad).abs();
        if error_rad.is_nan() || exceeds(error_rad, START_RAD) {
            return Err(StartMismatch::Elsewhere {
                joint: scene.arm.joint_name(joint),
                measured_rad: *arm_rad,
                plan_rad: *plan,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use scene::{InkCap, SceneLibrary};

    fn resting_plan(scene: &Scene) -> Trajectory {
        Trajectory {
            reached: Vec::new(),
            period: Duration::from_millis(10),
            samples: vec![scene.rest_rad; 2],
            spans: Vec::new(),
        }
    }

    #[test]
    fn a_limit_is_passed_only_beyond_it() {
        assert!(exceeds(1.0 + f64::EPSILON, 1.0));
        assert!(!exceeds(1.0, 1.0) && !exceeds(1.0 - f64::EPSILON, 1.0));
    }

    /// Adds an ink cap over the middle of the sheet and returns its rim.
    fn cap(scene: &mut Scene, rim_mm: f64, depth_mm: f64) -> Point3<f64> {
        let foot = scene.surface.at([50.0, 50.0]);
        let rim_m = foot.point_m + foot.normal.scale(rim_mm / 1e3);
        scene.inks.push(InkCap {
            name: "black".to_owned(),
            rim_m,
            depth_m: depth_mm / 1e3,
            dip_every_mm: 100.0,
            wait_s: 0.0,
        });
        rim_m
    }

    #[test]
    fn the_lowest_permitted_tip_height_depends_on_the_activity() {
        let mut scene = Scene::clone(&SceneLibrary::new(None).scene("default", None).unwrap());
        let rim_m = cap(&mut scene, 5.0, 8.0);
        let plan = resting_plan(&scene);
        let floor = |scene: &Scene, activity, aside_m: f64| {
            let tip = rim_m + nalgebra::Vector3::new(aside_m, 0.0, 0.0);
            TrajectoryJudge::new(scene, &plan).floor_mm(activity, &tip)
        };
        let press = -scene.heights.press_mm - 0.25;
        for (activity, aside_m, lowest) in [
            (SpanKind::Draw, 0.0, press),
            (SpanKind::Lower, 0.0, press),
            (SpanKind::Lift, 0.0, press),
            (SpanKind::Dwell, 0.0, press),
            (SpanKind::Travel, 0.0, -0.25),
            (SpanKind::Approach, 0.0, -0.25),
            (SpanKind::Probe, 0.0, -5.25),
            (SpanKind::Jog, 0.0, press),
            (SpanKind::Pose, 0.0, -0.25),
            (SpanKind::Dip, 0.0, -3.0),
            (SpanKind::Dip, 0.0149, -3.0),
            (SpanKind::Dip, 0.0151, -0.25),
        ] {
            let found = floor(&scene, activity, aside_m);
            assert!((found - lowest).abs() < 1e-9, "{activity:?}: {found}");
        }
        // Of two caps the nearer one counts, in whatever order they are listed.
        let deep = scene.inks.first().unwrap().clone();
        let shallow = InkCap {
            rim_m: deep.rim_m + nalgebra::Vector3::new(0.012, 0.0, 0.0),
            depth_m: 0.006,
            ..deep.clone()
        };
        for caps in [[deep.clone(), shallow.clone()], [shallow, deep]] {
            scene.inks = caps.to_vec();
            for (aside_m, lowest) in [(0.0, -3.0), (0.0059, -3.0), (0.0061, -1.0), (0.02, -1.0)] {
                let found = floor(&scene, SpanKind::Dip, aside_m);
                assert!((found - lowest).abs() < 1e-9, "{aside_m}: {found}");
            }
        }
        // The bottom of a cap that stands high is not the floor of the sheet.
        scene.inks.clear();
        cap(&mut scene, 9.0, 8.0);
        assert!((floor(&scene, SpanKind::Dip, 0.0) + 0.25).abs() < 1e-9);
    }

    #[test]
    fn a_refusal_says_where_and_when() {
        let scene = SceneLibrary::new(None).scene("default", None).unwrap();
        let mut plan = resting_plan(&scene);
        plan.samples = vec![scene.rest_rad; 300];
        plan.spans = vec![TrajectorySpan {
            kind: SpanKind::Travel,
            item: Some(3),
            pen: 0,
            first: 0,
            end: 300,
        }];
        let mut judge = TrajectoryJudge::new(&scene, &plan);
        judge.refuse(GateRule::Tilt, 250, None, || "it leans".to_owned());
        let refusal = judge.refusals.first().unwrap();
        assert_eq!(refusal.why, "it leans (2.50 s into the motion)");
        let tip = tip_m(&scene, 0, &scene.rest_rad).unwrap();
        assert_eq!(refusal.at_mm, Some(scene.surface.project(&tip).at_mm));
        assert_eq!(refusal.item, Some(3));
        assert_eq!(refusal.doing, Some(SpanKind::Travel));
    }

    #[test]
    fn a_refusal_reports_the_worst_sample_by_rule_stroke_and_activity() {
        let scene = SceneLibrary::new(None).scene("default", None).unwrap();
        let mut plan = resting_plan(&scene);
        plan.samples = vec![scene.rest_rad; 300];
        let span = |kind, first, end| TrajectorySpan {
            kind,
            item: Some(3),
            pen: 0,
            first,
            end,
        };
        plan.spans = vec![
            span(SpanKind::Travel, 0, 150),
            span(SpanKind::Draw, 150, 300),
        ];
        let mut judge = TrajectoryJudge::new(&scene, &plan);
        for (sample, value) in [(10, 1.0), (20, -2.8), (30, 2.95), (200, 3.5), (210, 3.5)] {
            let excess = excess(value, 3.0, "mm");
            judge.refuse(GateRule::KeepOut, sample, excess, || {
                format!("comes to {value}")
            });
        }
        let refusals: Vec<_> = judge
            .refusals
            .iter()
            .map(|refusal| (refusal.sample, refusal.doing, refusal.why.as_str()))
            .collect();
        let (travel, draw) = (Some(SpanKind::Travel), Some(SpanKind::Draw));
        assert_eq!(
            refusals,
            [
                (20, travel, "comes to -2.8 (0.20 s into the motion)"),
                (200, draw, "comes to 3.5 (2.00 s into the motion)")
            ]
        );
    }

    #[test]
    fn a_reading_is_fresh_up_to_its_limit() {
        let scene = SceneLibrary::new(None).scene("default", None).unwrap();
        let measured = ArmMeasurement {
            at: ClockInstant::ZERO,
            position_rad: scene.rest_rad,
            velocity_rad_s: JointVector::zeros(scene.arm.dof()),
            servos: Vec::new(),
        };
        let at = |ms| {
            check_at_start(
                &scene,
                &scene.rest_rad,
                &measured,
                ClockInstant::ZERO.after(Duration::from_millis(ms)),
            )
        };
        assert!(at(250).is_ok() && at(251).is_err());
        let text = at(2996).unwrap_err().to_string();
        assert!(text.contains("has not answered for 3 s"), "{text}");
        assert!(text.contains("wait until it is connected again"), "{text}");
    }
}
