//! The whole of a trajectory, judged before anything moves.

use std::sync::Arc;
use std::time::Duration;

use nalgebra::Point3;

use super::clearance::{Posture, point_to_box};
use super::stopping::Stops;
use super::{CheckedTrajectory, Refusal, Refused, Rule};
use crate::permit::Permit;
use crate::plan::{Span, SpanKind, Trajectory};
use crate::scene::{Scene, TIP_MM_S_MAX, ToolKind};
use crate::units::{Instant, Joints, Measured};

/// Longer plans are refused: at 100 Hz this is more than two hours and a half.
const SAMPLES_MAX: usize = 1_000_000;

/// Which control periods make sense for hobby servos.
const PERIOD: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(2)..=Duration::from_millis(50);

/// How far each joint may be from where the plan begins.
pub(super) const START_RAD: f64 = 0.02;

/// How old the reading may be that says where the arm is.
pub(super) const START_AGE: Duration = Duration::from_millis(250);

/// Rounding that is not held against a plan.
const SLACK: f64 = 1.0 + 1e-3;

/// How much deeper than the scene's press a tip may be: the planner's own tolerance.
const DEPTH_SLACK_MM: f64 = 0.25;

/// How near the body may come to the sheet, and anything to a keep-out. More than what is
/// passed between two samples at full speed.
pub(super) const CLEARANCE_M: f64 = 0.003;

/// How far from the middle of an ink cap its wall is at the most.
const CAP_M: f64 = 0.015;

/// A needle is slow below this height.
const NEEDLE_NEAR_MM: f64 = 20.0;

/// And this slow.
const NEEDLE_MM_S: f64 = 25.0;

/// Judges a trajectory. Nothing is repaired; every rule that says no is in the answer, each with
/// the first place where it did.
///
/// `start` is where the arm was measured to be, `now` is on the same clock.
///
/// # Errors
/// [`Refused`] with one refusal a rule and stroke.
pub fn check(
    scene: &Arc<Scene>,
    permit: Permit,
    start: &Measured,
    now: Instant,
    trajectory: Trajectory,
) -> Result<CheckedTrajectory, Refused> {
    let mut judge = Judge {
        scene,
        trajectory: &trajectory,
        refusals: Vec::new(),
    };
    judge.form();
    if judge.refusals.is_empty() {
        judge.leave(&permit, start, now);
        judge.samples();
    }
    judge.verdict()?;
    let stops = Stops::prove(scene, &trajectory).map_err(|refusal| Refused(vec![refusal]))?;
    Ok(CheckedTrajectory {
        scene: Arc::clone(scene),
        permit,
        trajectory,
        stops,
    })
}

/// Judges all of a trajectory but the leave to move and where the arm is, and mints nothing: for
/// previews.
///
/// # Errors
/// As [`check`].
pub fn preview(scene: &Arc<Scene>, trajectory: &Trajectory) -> Result<(), Refused> {
    let mut judge = Judge {
        scene,
        trajectory,
        refusals: Vec::new(),
    };
    judge.form();
    if judge.refusals.is_empty() {
        judge.samples();
    }
    judge.verdict()?;
    Stops::prove(scene, trajectory)
        .map(|_| ())
        .map_err(|refusal| Refused(vec![refusal]))
}

struct Judge<'a> {
    scene: &'a Scene,
    trajectory: &'a Trajectory,
    refusals: Vec<Refusal>,
}

/// What was nearest so far: something that begins too near may only get away.
struct Ratchet(f64);

impl Ratchet {
    fn new() -> Self {
        Self(f64::INFINITY)
    }

    /// Whether a margin below 0 is one too many: it may be below 0 only from the start on, and
    /// only while it grows.
    fn breached(&mut self, margin: f64) -> bool {
        let before = if self.0 == f64::INFINITY {
            margin
        } else {
            self.0
        };
        self.0 = margin;
        margin < 0.0 && (before >= 0.0 || margin < before - 1e-9)
    }
}

impl Ratchet {
    /// Nothing is near: whatever comes near from now on does not begin there.
    fn away(&mut self) {
        self.0 = f64::MAX;
    }
}

struct Ratchets {
    sheet: Ratchet,
    body: Ratchet,
    idle: Ratchet,
    workspace: Ratchet,
    keep_outs: Vec<Ratchet>,
}

impl Judge<'_> {
    fn refuse(&mut self, rule: Rule, sample: usize, why: impl FnOnce() -> String) {
        let span = self.trajectory.span_at(sample);
        let item = span.and_then(|span| span.item);
        if self
            .refusals
            .iter()
            .any(|known| known.rule == rule && known.item == item)
        {
            return;
        }
        let seconds = self.trajectory.period.as_secs_f64() * sample as f64;
        self.refusals.push(Refusal {
            rule,
            sample,
            doing: span.map(|span| span.kind),
            item,
            why: format!("{} ({seconds:.2} s into the motion)", why()),
        });
    }

    fn verdict(&mut self) -> Result<(), Refused> {
        if self.refusals.is_empty() {
            Ok(())
        } else {
            Err(Refused(std::mem::take(&mut self.refusals)))
        }
    }

    fn form(&mut self) {
        let plan = self.trajectory;
        let (count, dof) = (plan.samples.len(), self.scene.arm.dof());
        if !(2..=SAMPLES_MAX).contains(&count) {
            self.refuse(Rule::Form, 0, || {
                format!("{count} samples; 2 to {SAMPLES_MAX} are possible")
            });
        }
        if !PERIOD.contains(&plan.period) {
            self.refuse(Rule::Form, 0, || {
                format!("a period of {:?}; {PERIOD:?} are possible", plan.period)
            });
        }
        if let Some(bad) = plan
            .samples
            .iter()
            .position(|q| q.len() != dof || !q.is_finite())
        {
            self.refuse(Rule::Form, bad, || {
                format!("sample {bad} is not {dof} finite angles")
            });
        }
        let mut next = 0;
        for span in &plan.spans {
            if span.first != next || span.end <= span.first || self.scene.pen(span.pen).is_none() {
                self.refuse(Rule::Form, span.first, || {
                    format!("span {span:?} does not follow sample {next} with a pen of the scene")
                });
                return;
            }
            next = span.end;
        }
        if next != count {
            self.refuse(Rule::Form, next, || {
                format!("spans end at sample {next} of {count}")
            });
        }
    }

    fn leave(&mut self, permit: &Permit, start: &Measured, now: Instant) {
        if !permit.covers(self.scene, now) {
            let scene = self.scene.title();
            self.refuse(Rule::Enabled, 0, || {
                format!("motion is not enabled for scene `{scene}` as it is now")
            });
        }
        let end = now.after(self.trajectory.duration());
        if permit.covers(self.scene, now) && !permit.covers(self.scene, end) {
            let seconds = self.trajectory.duration().as_secs_f64();
            self.refuse(Rule::Enabled, 0, || {
                format!("motion is enabled for less than the {seconds:.0} s that it takes: enable it for longer")
            });
        }
        let Some(first) = self.trajectory.samples.first().copied() else {
            return;
        };
        if let Err(why) = near(self.scene, &first, start, now) {
            self.refuse(Rule::Start, 0, || why);
        }
    }

    fn samples(&mut self) {
        self.joint_limits();
        self.joint_rates();
        let mut ratchets = Ratchets {
            sheet: Ratchet::new(),
            body: Ratchet::new(),
            idle: Ratchet::new(),
            workspace: Ratchet::new(),
            keep_outs: self
                .scene
                .keep_outs
                .iter()
                .map(|_| Ratchet::new())
                .collect(),
        };
        let mut tip_before: Option<(usize, Point3<f64>)> = None;
        let (scene, trajectory) = (self.scene, self.trajectory);
        for span in &trajectory.spans {
            for (sample, q) in trajectory
                .samples
                .iter()
                .enumerate()
                .take(span.end)
                .skip(span.first)
            {
                let posture = Posture::new(scene, q);
                let Some(tip) = posture.tip_m(scene, span.pen) else {
                    continue;
                };
                let same_pen = tip_before.filter(|(pen, _)| *pen == span.pen);
                if let Some((_, before)) = same_pen {
                    self.tip_speed(sample, span, &before, &tip);
                }
                tip_before = Some((span.pen, tip));
                self.tip(sample, span, &posture, &tip, &mut ratchets);
                self.surroundings(sample, span, &posture, &mut ratchets);
            }
        }
    }

    fn joint_limits(&mut self) {
        let (limits, samples) = (self.scene.arm.limits, &self.trajectory.samples);
        for joint in 0..self.scene.arm.dof() {
            let mut ratchet = Ratchet::new();
            for (sample, q) in samples.iter().enumerate() {
                let (Some(at), Some(low), Some(high)) = (
                    q.get(joint),
                    limits.lower_rad.get(joint),
                    limits.upper_rad.get(joint),
                ) else {
                    continue;
                };
                if ratchet.breached((at - low).min(high - at) + 1e-6) {
                    let name = self.scene.arm.joint_name(joint);
                    self.refuse(Rule::JointLimit, sample, || {
                        format!("{name} would be at {at:.3} rad; {low:.3} to {high:.3} are allowed")
                    });
                }
            }
        }
    }

    fn joint_rates(&mut self) {
        let period = self.trajectory.period.as_secs_f64();
        let limits = self.scene.arm.limits;
        let zero = Joints::zeros(self.scene.arm.dof());
        let mut before = zero;
        let rates = self.trajectory.samples.windows(2).map(|pair| match pair {
            [a, b] => b.zip(a, |b, a| (b - a) / period),
            _ => zero,
        });
        // The arm stands before the first sample and after the last.
        for (sample, rate) in rates.chain([zero]).enumerate() {
            let change = rate.zip(&before, |now, then| (now - then) / period);
            for (joint, (speed, change)) in rate.iter().zip(change.iter()).enumerate() {
                self.joint_rate(sample, joint, *speed, *change, &limits);
            }
            before = rate;
        }
    }

    fn joint_rate(
        &mut self,
        sample: usize,
        joint: usize,
        speed: f64,
        change: f64,
        limits: &crate::arm::Limits,
    ) {
        let (Some(fastest), Some(hardest)) = (
            limits.velocity_rad_s.get(joint),
            limits.acceleration_rad_s2.get(joint),
        ) else {
            return;
        };
        let arm = &self.scene.arm;
        if speed.abs() > fastest * SLACK {
            self.refuse(Rule::JointSpeed, sample, || {
                format!(
                    "{} would turn at {speed:.2} rad/s; {fastest:.2} is the limit",
                    arm.joint_name(joint)
                )
            });
        }
        if change.abs() > hardest * SLACK {
            self.refuse(Rule::JointAcceleration, sample, || {
                format!(
                    "{} would accelerate at {change:.1} rad/s²; {hardest:.1} is the limit",
                    arm.joint_name(joint)
                )
            });
        }
    }

    fn tip_speed(&mut self, sample: usize, span: &Span, before: &Point3<f64>, tip: &Point3<f64>) {
        let speed_mm_s = (tip - before).norm() * 1e3 / self.trajectory.period.as_secs_f64();
        let limit_mm_s = self.tip_limit_mm_s(span, tip);
        if speed_mm_s > limit_mm_s * SLACK {
            self.refuse(Rule::TipSpeed, sample, || {
                format!(
                    "the tip would move at {speed_mm_s:.0} mm/s; {limit_mm_s:.0} is the limit here"
                )
            });
        }
    }

    fn tip_limit_mm_s(&self, span: &Span, tip: &Point3<f64>) -> f64 {
        let limits = &self.scene.limits;
        let asked = match span.kind {
            SpanKind::Draw => limits.draw_mm_s,
            _ => limits.travel_mm_s.max(limits.draw_mm_s),
        };
        let needle = self
            .scene
            .pen(span.pen)
            .is_some_and(|pen| pen.kind == ToolKind::Needle);
        let near = self.scene.surface.project(tip).height_mm < NEEDLE_NEAR_MM;
        let most = if needle && near {
            NEEDLE_MM_S
        } else {
            TIP_MM_S_MAX
        };
        asked.min(most)
    }

    fn tip(
        &mut self,
        sample: usize,
        span: &Span,
        posture: &Posture,
        tip: &Point3<f64>,
        ratchets: &mut Ratchets,
    ) {
        let scene = self.scene;
        let inside = -point_to_box(tip, &scene.limits.workspace);
        if ratchets.workspace.breached(inside) {
            self.refuse(Rule::Workspace, sample, || {
                format!(
                    "the tip would be {:.1} mm outside the workspace",
                    -inside * 1e3
                )
            });
        }
        self.sheet(sample, span, tip, ratchets);
        if span.kind == SpanKind::Draw
            && let (Some(tilt), Some(pen)) =
                (posture.tilt_rad(scene, span.pen), scene.pen(span.pen))
            && tilt > pen.cone_rad * SLACK
        {
            self.refuse(Rule::Tilt, sample, || {
                format!(
                    "`{}` would lean {:.1}°; {:.1}° is the limit",
                    pen.name,
                    tilt.to_degrees(),
                    pen.cone_rad.to_degrees()
                )
            });
        }
    }

    fn sheet(&mut self, sample: usize, span: &Span, tip: &Point3<f64>, ratchets: &mut Ratchets) {
        let Some(height_mm) = Posture::height_mm(self.scene, tip) else {
            ratchets.sheet.away();
            return;
        };
        let floor_mm = match span.kind {
            SpanKind::Draw | SpanKind::Lower | SpanKind::Lift | SpanKind::Dwell => {
                -self.scene.heights.press_mm - DEPTH_SLACK_MM
            }
            SpanKind::Dip => self.cap_floor_mm(tip).min(-DEPTH_SLACK_MM),
            SpanKind::Approach | SpanKind::Travel | SpanKind::Pose => -DEPTH_SLACK_MM,
        };
        if ratchets.sheet.breached(height_mm - floor_mm) {
            self.refuse(Rule::Sheet, sample, || {
                format!(
                    "the tip would be {:.2} mm below the sheet; {:.2} mm is the limit here",
                    -height_mm, -floor_mm
                )
            });
        }
    }

    /// The bottom of the ink cap that a tip is over, as a height over the sheet; none is as high
    /// as anything.
    fn cap_floor_mm(&self, tip: &Point3<f64>) -> f64 {
        let over = self
            .scene
            .inks
            .iter()
            .find(|ink| (tip - ink.rim_m).xy().norm() < CAP_M);
        over.map_or(f64::INFINITY, |ink| {
            self.scene.surface.project(&ink.rim_m).height_mm - ink.depth_m * 1e3
        })
    }

    fn surroundings(
        &mut self,
        sample: usize,
        span: &Span,
        posture: &Posture,
        ratchets: &mut Ratchets,
    ) {
        let scene = self.scene;
        let body = posture.body_over_sheet(scene);
        if body.is_none() {
            ratchets.body.away();
        }
        if let Some(body) = body
            && ratchets.body.breached(body.metres - CLEARANCE_M)
        {
            self.refuse(Rule::Body, sample, || {
                format!(
                    "{} would come within {:.1} mm of the sheet; {:.0} mm is the limit",
                    body.what,
                    body.metres * 1e3,
                    CLEARANCE_M * 1e3
                )
            });
        }
        let idle = posture.idle_pens(scene, span.pen);
        if idle.is_none() {
            ratchets.idle.away();
        }
        if let Some(pen) = idle
            && ratchets.idle.breached(pen.metres)
        {
            self.refuse(Rule::Sheet, sample, || {
                format!(
                    "{}, which does not draw now, would be {:.1} mm below the sheet",
                    pen.what,
                    -pen.metres * 1e3
                )
            });
        }
        for (keep_out, ratchet) in scene.keep_outs.iter().zip(&mut ratchets.keep_outs) {
            let Some(near) = posture.near_box(scene, &keep_out.corners) else {
                continue;
            };
            if ratchet.breached(near.metres - CLEARANCE_M) {
                self.refuse(Rule::KeepOut, sample, || {
                    format!(
                        "{} would come within {:.1} mm of keep-out `{}`; {:.0} mm is the limit",
                        near.what,
                        near.metres * 1e3,
                        keep_out.name,
                        CLEARANCE_M * 1e3
                    )
                });
            }
        }
    }
}

/// Whether an arm stands where a motion begins, and that is known now.
pub(super) fn near(
    scene: &Scene,
    first: &Joints,
    seen: &Measured,
    now: Instant,
) -> Result<(), String> {
    let age = now.since(seen.at);
    if age > START_AGE {
        return Err(format!(
            "the arm was last read {} ms ago; {} ms is the limit",
            age.as_millis(),
            START_AGE.as_millis()
        ));
    }
    let (joints, read) = (first.len(), seen.position_rad.len());
    if read != joints {
        return Err(format!("{read} joints were read; the arm has {joints}"));
    }
    for (joint, (plan, is)) in first.iter().zip(seen.position_rad.iter()).enumerate() {
        let away = (plan - is).abs();
        if away.is_nan() || away > START_RAD {
            let name = scene.arm.joint_name(joint);
            return Err(format!(
                "{name} is at {is:.3} rad and the plan begins at {plan:.3}; {START_RAD} rad is the most they may differ: plan again"
            ));
        }
    }
    Ok(())
}
