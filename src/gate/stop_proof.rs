//! Proves a stop from every sample of a trajectory: a deceleration along the path and, where the
//! tip is near the sheet, a lift.
//!
//! Braking goes on along samples that were judged, ever slower, so it stays on a path that is known
//! to be clear; only its acceleration has to be bounded, by how long it takes. The lift is a
//! straight line of joint angles to a pose with the tip higher along the normal. It is checked here
//! from every sample and must rise all the way, stay inside limits and the workspace, and keep as
//! far from the sheet, from keep-outs and from itself as the plan itself has to.
//!
//! The lifts tried at a sample depend on no limit, and limits only ever reject them: a stricter scene
//! never proves a stop that a looser one does not.

use std::ops::Range;

use nalgebra::{Matrix3, Point3, Vector3};

use super::check::{NEEDLE_MM_S, exceeds, idle_needles, is_near_sheet, tip_limit_mm_s};
use super::clearance::{height_mm, tip_m};
use super::collision_body::PosedBody;
use super::collision_world::CollisionWorld;
use super::depth_trim::TrimmedCopies;
use super::escape::PartProximity;
use super::{GateRefusal, GateRule};
use base::units::{JOINTS_MAX, JointVector, short, value_and_limit};
use kin::{LinkFrames, ToolTip};
use plan::{SpanKind, Trajectory, TrajectorySpan};
use scene::{CLEARANCE_M, Scene, ScenePen};

/// Fraction of a joint's acceleration limit that braking may add to what the path itself needs.
pub(super) const BRAKE_SHARE: f64 = 0.5;

/// Least number of ticks of a stop along the path, so that it is smooth.
const BRAKE_TICKS_MIN: f64 = 3.0;

/// Most ticks of a stop along the path: a plan that needs more is too fast.
const BRAKE_TICKS_MAX: f64 = 60.0;

/// Interval in samples at which lifts are solved. The samples between share the lift if a check
/// from each of them allows it; otherwise they get their own.
const LIFT_EVERY: usize = 4;

/// Number of points at which a lift is checked from the sample where it was solved.
const LIFT_POINTS: usize = 8;

/// Number of points at which it is checked from a sample between.
const LIFT_POINTS_BETWEEN: usize = 3;

/// Peak speed of the smooth step over its mean.
pub(super) const SMOOTH_PEAK: f64 = 1.875;

/// Number of steps in which a lift's tip movement is measured, and the factor by which its speed
/// within a step may exceed the step's mean.
const SWEEP_POINTS: usize = 4;
const UNEVENNESS: f64 = 1.05;

/// A tip less than this below the height of travel moves needs no lift.
const UP_TOLERANCE_MM: f64 = 0.5;

/// Largest sideways deviation of a lift from the normal.
const LIFT_SIDEWAYS_MM: f64 = 2.0;

/// Most Newton steps to a lifted pose.
const NEWTON_STEPS: usize = 8;

/// Distance from the target below which no further step is taken.
const CONVERGED_M: f64 = 1e-5;

/// Damping of the steps, in square metres per square radian.
const DAMPING: f64 = 1e-8;

/// Largest height error of a lifted pose.
const LIFTED_MM: f64 = 0.5;

/// A proof that the arm can be stopped at every sample.
#[derive(Debug)]
pub(super) struct StopProof {
    /// Number of ticks that braking takes, per sample.
    brake_ticks: Vec<f64>,
    /// The lifts in order of their samples.
    lifts: Vec<ProvenLift>,
}

/// A proven lift from some consecutive samples.
#[derive(Debug)]
pub(super) struct ProvenLift {
    first: usize,
    end: usize,
    /// Movement of each joint; zero where the tip is up already.
    pub(super) by_rad: JointVector,
    /// Least duration that keeps the tip within its speed limit, up and down.
    pub(super) seconds_min: f64,
}

impl StopProof {
    /// Proves a stop from every sample, and from where trims bring it.
    pub(super) fn prove(
        mut world: CollisionWorld<'_>,
        trajectory: &Trajectory,
        trims: Option<&TrimmedCopies>,
    ) -> Result<Self, Box<GateRefusal>> {
        let brake_ticks = brake_ticks(world.body().scene(), trajectory)?;
        let mut lifts = Vec::new();
        let proven = ProvenFrom::new(trajectory, trims);
        for span in &trajectory.spans {
            prove_lifts(&mut world, &proven, span, &mut lifts)?;
        }
        Ok(Self { brake_ticks, lifts })
    }

    /// Returns the number of ticks that braking takes from a sample on.
    #[expect(
        clippy::expect_used,
        reason = "a brake that is made up could be too hard; a panic on an arm's thread is a latched fault"
    )]
    pub(super) fn brake_ticks(&self, sample: usize) -> f64 {
        let ticks = self.brake_ticks.get(sample);
        *ticks.expect("every sample of the trajectory has a proven brake")
    }

    /// Returns how many samples braking passes at the most, if it begins between two samples.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "no brake is longer than BRAKE_TICKS_MAX, and none is negative"
    )]
    pub(super) fn braking_samples(&self, first: usize, last: usize) -> usize {
        // The rate falls evenly, so half as many samples as ticks are passed; a longer brake may be met on the way.
        let half = |ticks: f64| (ticks / 2.0).ceil() as usize;
        let reach = (last + 1 + half(BRAKE_TICKS_MAX)).min(self.brake_ticks.len());
        let met = self.brake_ticks.iter().take(reach).skip(first);
        half(met.copied().fold(0.0, f64::max))
    }

    /// Returns all lifts.
    pub(super) fn lifts(&self) -> impl Iterator<Item = &ProvenLift> {
        self.lifts.iter()
    }

    /// Returns the lift from a sample; `None` where a tip that only passes is up already, or cannot
    /// be lifted.
    pub(super) fn lift(&self, sample: usize) -> Option<&ProvenLift> {
        let after = self.lifts.partition_point(|lift| lift.end <= sample);
        self.lifts.get(after).filter(|lift| lift.first <= sample)
    }
}

/// Returns whether the tip is at the sheet, on its way to it, or on its way from it.
pub(super) fn touches(kind: SpanKind) -> bool {
    matches!(
        kind,
        SpanKind::Draw
            | SpanKind::Lower
            | SpanKind::Lift
            | SpanKind::Dwell
            | SpanKind::Dip
            | SpanKind::Probe
    )
}

/// The places that stops are proven from: where the arm is expected, and the others that its goals may be at.
struct ProvenFrom<'a> {
    trajectory: &'a Trajectory,
    /// Joint angles for each sample: goals that lead, and those of trims.
    others: Vec<&'a [JointVector]>,
}

impl<'a> ProvenFrom<'a> {
    fn new(trajectory: &'a Trajectory, trims: Option<&'a TrimmedCopies>) -> Self {
        let goals = (!trajectory.reached.is_empty()).then_some(&trajectory.samples[..]);
        let copies = trims.into_iter().flat_map(TrimmedCopies::all);
        Self {
            trajectory,
            others: goals.into_iter().chain(copies).collect(),
        }
    }
}

fn prove_lifts(
    world: &mut CollisionWorld<'_>,
    proven: &ProvenFrom<'_>,
    span: &TrajectorySpan,
    lifts: &mut Vec<ProvenLift>,
) -> Result<(), Box<GateRefusal>> {
    let mut next = span.first;
    let reached = proven.trajectory.reached();
    let here = |next: usize| reached.get(next).filter(|_| next < span.end);
    while let Some(from) = here(next) {
        let end = (next + LIFT_EVERY).min(span.end);
        let own_lift = lift_from(world, proven, span, from, next..end);
        let found = own_lift.or_else(|refusal| {
            let earlier = earlier_lift(world, proven, span, next);
            earlier.map(Some).ok_or(refusal)
        });
        next = match found {
            Ok(Some(lift)) => {
                let end = lift.end;
                lifts.push(lift);
                end
            }
            Ok(None) => next + 1,
            // Away from the sheet a lift may be impossible: there a stop just stands.
            Err(_) if !touches(span.kind) => next + 1,
            Err(refusal) => {
                return Err(Box::new(GateRefusal {
                    arm: None,
                    rule: GateRule::Stop,
                    sample: next,
                    doing: Some(span.kind),
                    item: span.item,
                    at_mm: None,
                    excess: None,
                    why: refusal.to_string(),
                }));
            }
        };
    }
    Ok(())
}

/// Finds the lift from a sample, and which of the samples after it may share it; `None` where a tip
/// that only passes is up already.
fn lift_from(
    world: &mut CollisionWorld<'_>,
    proven: &ProvenFrom<'_>,
    span: &TrajectorySpan,
    from: &JointVector,
    Range { start: first, end }: Range<usize>,
) -> Result<Option<ProvenLift>, LiftRefusal> {
    let scene = world.body().scene();
    if !touches(span.kind) && !is_low(scene, span.pen, from) {
        return Ok(None);
    }
    let by_rad = find_lift(world, span.pen, from)?;
    check_from_others(world, proven, span.pen, first, &by_rad)?;
    let mut seconds_min = seconds_min_of(scene, span.pen, from, &by_rad)?;
    let samples = proven.trajectory.reached().iter().enumerate();
    let mut shared_end = first + 1;
    for (sample, from) in samples.take(end).skip(shared_end) {
        let is_from_others = check_from_others(world, proven, span.pen, sample, &by_rad).is_ok();
        if !is_from_others || !is_shared(world, span.pen, from, &by_rad) {
            break;
        }
        seconds_min = seconds_min.max(seconds_min_of(scene, span.pen, from, &by_rad)?);
        shared_end += 1;
    }
    Ok(Some(ProvenLift {
        first,
        end: shared_end,
        by_rad,
        seconds_min,
    }))
}

/// Finds the lift of an earlier sample that is valid from this one too. Without this, an additional
/// obstacle could make a stop provable, because it shifts which samples share a lift.
fn earlier_lift(
    world: &mut CollisionWorld<'_>,
    proven: &ProvenFrom<'_>,
    span: &TrajectorySpan,
    sample: usize,
) -> Option<ProvenLift> {
    let scene = world.body().scene();
    let from = proven.trajectory.reached().get(sample)?;
    let before = proven
        .trajectory
        .reached()
        .iter()
        .take(sample)
        .skip(span.first);
    before.rev().take(LIFT_EVERY - 1).find_map(|earlier| {
        let by_rad = find_lift(world, span.pen, earlier).ok()?;
        let is_lift = is_shared(world, span.pen, from, &by_rad)
            && check_from_others(world, proven, span.pen, sample, &by_rad).is_ok();
        Some(ProvenLift {
            first: sample,
            end: sample + 1,
            by_rad,
            seconds_min: seconds_min_of(scene, span.pen, from, &by_rad).ok()?,
        })
        .filter(|_| is_lift)
    })
}

/// Checks a lift from a leading goal and from trims too: it was found from where the arm is expected,
/// but is executed from the goal.
fn check_from_others(
    world: &mut CollisionWorld<'_>,
    proven: &ProvenFrom<'_>,
    pen: usize,
    sample: usize,
    by_rad: &JointVector,
) -> Result<(), LiftRefusal> {
    let mut others = proven.others.iter().filter_map(|other| other.get(sample));
    others.try_for_each(|from| LiftCheck::new(world, pen, from)?.check(by_rad, LIFT_POINTS_BETWEEN))
}

/// Returns whether a lift that was proven from another sample is also valid from this one.
fn is_shared(
    world: &mut CollisionWorld<'_>,
    pen: usize,
    from: &JointVector,
    by_rad: &JointVector,
) -> bool {
    LiftCheck::new(world, pen, from)
        .is_ok_and(|mut lift_check| lift_check.check(by_rad, LIFT_POINTS_BETWEEN).is_ok())
}

/// Returns the shortest duration of a smooth lift whose tip never exceeds the speed limit at the
/// lift's start, and no idle needle its own. Higher up the limit is no lower.
fn seconds_min_of(
    scene: &Scene,
    pen: usize,
    from: &JointVector,
    by_rad: &JointVector,
) -> Result<f64, LiftRefusal> {
    let tool = scene.pen(pen).ok_or(LiftRefusal::NoPen)?;
    let start = scene.arm.chain.point(from, &tool.tip_m);
    let limit_mm_s = tip_limit_mm_s(scene, tool.kind, SpanKind::Lift, &start);
    let in_use_s = seconds_within(sweep(scene, tool, from, by_rad), |_| Some(limit_mm_s));
    let idle_s = idle_needles(scene, pen).map(|needle| {
        seconds_within(sweep(scene, needle, from, by_rad), |tips| {
            let is_near = tips.iter().any(|tip| is_near_sheet(scene, tip));
            is_near.then_some(NEEDLE_MM_S)
        })
    });
    Ok(idle_s.fold(in_use_s, f64::max))
}

/// Returns the steps of a tip on a lift.
fn sweep(
    scene: &Scene,
    pen: &ScenePen,
    from: &JointVector,
    by_rad: &JointVector,
) -> [[Point3<f64>; 2]; SWEEP_POINTS] {
    let tip_at = |point: usize| {
        let fraction = point as f64 / SWEEP_POINTS as f64;
        let q = from.zip(by_rad, |from, by| from + by * fraction);
        scene.arm.chain.point(&q, &pen.tip_m)
    };
    std::array::from_fn(|step| [tip_at(step), tip_at(step + 1)])
}

/// Returns the shortest duration of a smooth lift whose steps all keep their speed limits.
fn seconds_within(
    steps: [[Point3<f64>; 2]; SWEEP_POINTS],
    limit_mm_s: impl Fn(&[Point3<f64>; 2]) -> Option<f64>,
) -> f64 {
    let seconds = steps.iter().filter_map(|tips @ [from, to]| {
        let path_mm = (to - from).norm() * SWEEP_POINTS as f64 * 1e3;
        Some(SMOOTH_PEAK * UNEVENNESS * path_mm / limit_mm_s(tips)?)
    });
    seconds.fold(0.0, f64::max)
}

/// Returns whether a passing tip is over the sheet and lower than travel moves.
fn is_low(scene: &Scene, pen: usize, q: &JointVector) -> bool {
    let height = tip_m(scene, pen, q).and_then(|tip| height_mm(scene, &tip));
    height.is_some_and(|height| exceeds(scene.heights.lift_mm - UP_TOLERANCE_MM, height))
}

/// Returns the ticks in which every joint comes to rest from these speeds, each with its fraction of
/// the acceleration limit.
pub(super) fn ticks_to_brake(scene: &Scene, speed_rad_s: &JointVector, period_s: f64) -> f64 {
    let limits = scene.arm.limits;
    let ticks = speed_rad_s.zip(&limits.acceleration_rad_s2, |speed, hardest| {
        speed / (hardest * BRAKE_SHARE * period_s)
    });
    ticks.iter().copied().fold(0.0, f64::max)
}

fn brake_ticks(scene: &Scene, trajectory: &Trajectory) -> Result<Vec<f64>, Box<GateRefusal>> {
    let period = trajectory.period.as_secs_f64();
    let samples = &trajectory.samples;
    let needed: Vec<f64> = samples
        .iter()
        .zip(samples.iter().skip(1))
        .map(|(a, b)| {
            let speed_rad_s = b.zip(a, |b, a| (b - a).abs() / period);
            ticks_to_brake(scene, &speed_rad_s, period).max(BRAKE_TICKS_MIN)
        })
        .chain([BRAKE_TICKS_MIN])
        .collect();
    if let Some(sample) = needed
        .iter()
        .position(|ticks| exceeds(*ticks, BRAKE_TICKS_MAX))
    {
        return Err(Box::new(GateRefusal {
            arm: None,
            rule: GateRule::Stop,
            sample,
            doing: trajectory.span_at(sample).map(|span| span.kind),
            item: None,
            at_mm: None,
            excess: None,
            why: format!(
                "a stop here would take more than {:.1} s: lower the speed",
                BRAKE_TICKS_MAX * period
            ),
        }));
    }
    Ok(window_max(&needed))
}

/// Returns for each sample the longest brake among those it can still pass through: half of the
/// longest brake of all.
fn window_max(needed: &[f64]) -> Vec<f64> {
    let longest = needed.iter().copied().fold(0.0, f64::max);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "no brake is longer than BRAKE_TICKS_MAX, and none is negative"
    )]
    let ahead = (longest / 2.0).ceil() as usize;
    (0..needed.len())
        .map(|at| {
            needed
                .iter()
                .skip(at)
                .take(ahead + 1)
                .copied()
                .fold(0.0, f64::max)
        })
        .collect()
}

/// Finds a clear joint motion that lifts the tip from `from`: of all joints or, where that meets a
/// limit, of all but one or two.
fn find_lift(
    world: &mut CollisionWorld<'_>,
    pen: usize,
    from: &JointVector,
) -> Result<JointVector, LiftRefusal> {
    let mut lift_check = LiftCheck::new(world, pen, from)?;
    let scene = lift_check.scene;
    let rise_mm = scene.heights.lift_mm - lift_check.height_mm;
    if !exceeds(rise_mm, 0.0) {
        return Ok(from.map(|_, _| 0.0));
    }
    let target = lift_check.tip + lift_check.normal.scale(rise_mm / 1e3);
    let mut lift_with = |fixed: FixedJoints| {
        let to = solve_lifted_pose(scene, pen, from, &target, fixed)?;
        let by_rad = to.zip(from, |to, from| to - from);
        lift_check.check(&by_rad, LIFT_POINTS)?;
        Ok(by_rad)
    };
    lift_with(FixedJoints::NONE).or_else(|refusal| {
        FixedJoints::all(from.len())
            .find_map(|fixed| lift_with(fixed).ok())
            .ok_or(refusal)
    })
}

/// Joints that a lift does not move, one bit each.
#[derive(Clone, Copy)]
pub(super) struct FixedJoints(u8);

// There is a bit for every joint.
const _: () = assert!(JOINTS_MAX < u8::BITS as usize);

impl FixedJoints {
    pub(super) const NONE: Self = Self(0);

    /// Returns each single joint, then each pair.
    fn all(joints: usize) -> impl Iterator<Item = Self> {
        [1, 2].into_iter().flat_map(move |count| {
            let bits = 0..1_u8 << joints;
            bits.filter(move |bits| bits.count_ones() == count)
                .map(Self)
        })
    }

    fn contains(self, joint: usize) -> bool {
        self.0 >> joint & 1 == 1
    }
}

/// Solves for joint angles near `from` that bring the tip to `target`, by damped least squares. They
/// may exceed limits: the resulting lift is checked.
fn solve_lifted_pose(
    scene: &Scene,
    pen: usize,
    from: &JointVector,
    target: &Point3<f64>,
    fixed: FixedJoints,
) -> Result<JointVector, LiftRefusal> {
    let mut q = *from;
    for _ in 0..NEWTON_STEPS {
        let Some(step) = step_to(scene, pen, &q, target, fixed)? else {
            return Ok(q);
        };
        q = q.zip(&step, |angle, step| angle + step);
    }
    let missing_mm = (target - pen_tip_m(scene, pen, &q)?).norm() * 1e3;
    if missing_mm.is_nan() || exceeds(missing_mm, LIFTED_MM) {
        return Err(LiftRefusal::Unreachable {
            lift_mm: scene.heights.lift_mm,
            missing_mm,
        });
    }
    Ok(q)
}

/// Returns the smallest step of the joints that brings the tip to `target` to first order; `None`
/// where it is there. Safety does not depend on it: the resulting lift is checked.
fn step_to(
    scene: &Scene,
    pen: usize,
    q: &JointVector,
    target: &Point3<f64>,
    fixed: FixedJoints,
) -> Result<Option<JointVector>, LiftRefusal> {
    let pen = scene.pen(pen).ok_or(LiftRefusal::NoPen)?;
    let frames = scene.arm.chain.frames(q);
    let error = target - frames.tool * pen.tip_m;
    if exceeds(CONVERGED_M, error.norm()) {
        return Ok(None);
    }
    Ok(Some(tip_step(scene, pen, q, &frames, &error, fixed)))
}

/// Returns the smallest step of the joints that moves a tip by `error` to first order.
pub(super) fn tip_step(
    scene: &Scene,
    pen: &ScenePen,
    q: &JointVector,
    frames: &LinkFrames,
    error: &Vector3<f64>,
    fixed: FixedJoints,
) -> JointVector {
    let tip = ToolTip {
        point_m: pen.tip_m,
        axis: pen.axis,
    };
    let jacobian = scene.arm.chain.jacobian_at(frames, &tip);
    let turns = jacobian.iter().enumerate();
    let tip_motion = turns.map(|(joint, [x, y, z, ..])| {
        let factor = if fixed.contains(joint) { 0.0 } else { 1.0 };
        Vector3::new(*x, *y, *z) * factor
    });
    let damped = tip_motion
        .clone()
        .fold(Matrix3::identity() * DAMPING, |all, column| {
            all + column * column.transpose()
        });
    #[expect(
        clippy::expect_used,
        reason = "without an inverse there is no step, and no step is no lift"
    )]
    let pull = damped
        .try_inverse()
        .expect("a damped matrix has an inverse")
        * error;
    let mut step = q.map(|_, _| 0.0);
    for (to, by) in step.iter_mut().zip(tip_motion) {
        *to = by.dot(&pull);
    }
    step
}

fn pen_tip_m(scene: &Scene, pen: usize, q: &JointVector) -> Result<Point3<f64>, LiftRefusal> {
    tip_m(scene, pen, q).ok_or(LiftRefusal::NoPen)
}

/// Reason that the tip cannot be lifted from a sample.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
enum LiftRefusal {
    #[error("there is no such pen")]
    NoPen,
    #[error(
        "after a stop here the tip could not be lifted to {lift_mm} mm ({missing_mm:.1} mm short): move the sheet, or lower `heights.lift_mm`"
    )]
    Unreachable { lift_mm: f64, missing_mm: f64 },
    #[error(
        "the lift after a stop here would turn {joint} to {} rad; {} to {} are allowed", short(*at_rad), short(range_rad[0]), short(range_rad[1])
    )]
    JointLimit {
        joint: String,
        at_rad: f64,
        range_rad: [f64; 2],
    },
    #[error(
        "after a stop here the tip could not be lifted straight up: it would stray {} mm; {} mm is the limit", value_and_limit(*sideways_mm, LIFT_SIDEWAYS_MM).0, value_and_limit(*sideways_mm, LIFT_SIDEWAYS_MM).1
    )]
    Strays { sideways_mm: f64 },
    #[error("a stop here would bring {part} {} {other}", describe_distance(*gap_m))]
    TooNear {
        part: String,
        gap_m: f64,
        other: String,
    },
    #[error("after a stop here, {part} would be {by_mm:.1} mm outside the workspace")]
    OutOfWorkspace { part: String, by_mm: f64 },
}

/// Checks lifts from one sample.
struct LiftCheck<'w, 'a> {
    world: &'w mut CollisionWorld<'a>,
    scene: &'a Scene,
    pen: usize,
    /// The pen's tip in the tool mount's frame.
    tip_m: Point3<f64>,
    from: &'w JointVector,
    tip: Point3<f64>,
    height_mm: f64,
    normal: Vector3<f64>,
    /// Clearances below the limit at the start of the lift. They were accepted, but may not shrink
    /// further.
    initial: Vec<Nearby>,
}

/// Things that a part may come near to.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Obstacle {
    Sheet,
    /// The sheet, for a pen that does not draw.
    SheetBelow,
    /// Another part.
    Part(usize),
    /// A side of the workspace, from inside.
    Side(usize),
    KeepOut(usize),
}

impl Obstacle {
    /// Returns the distance that a plan keeps from it.
    fn limit_m(self, scene: &Scene) -> f64 {
        match self {
            Self::Sheet | Self::Part(_) | Self::KeepOut(_) => CLEARANCE_M,
            Self::SheetBelow => scene.idle_clearance_m(),
            Self::Side(_) => 0.0,
        }
    }
}

/// A part, and what it is nearer to than a plan may go.
type Nearby = PartProximity<(usize, Obstacle)>;

/// Returns all that is nearer than a plan may go, at one pose.
fn all_nearby(world: &mut CollisionWorld<'_>, pen: usize, pose: &PosedBody) -> Vec<Nearby> {
    let mut all = Vec::new();
    all.extend(label(world.over_sheet(pose), |key| (key, Obstacle::Sheet)));
    let idle = world.idle_pens(pose, pen);
    all.extend(label(idle, |key| (key, Obstacle::SheetBelow)));
    let own = world.near_itself(pose);
    all.extend(label(own, |(key, other)| (key, Obstacle::Part(other))));
    let outside = world.outside_workspace(pose);
    all.extend(label(outside, |(key, side)| (key, Obstacle::Side(side))));
    let keep_outs = world.body().scene().keep_outs.iter();
    for (index, keep_out) in keep_outs.enumerate() {
        let near = world.near_keep_out(pose, index, &keep_out.corners);
        all.extend(label(near, |key| (key, Obstacle::KeepOut(index))));
    }
    all
}

fn label<K>(
    near: Vec<PartProximity<K>>,
    name: impl Fn(K) -> (usize, Obstacle),
) -> impl Iterator<Item = Nearby> {
    near.into_iter().map(move |near| Nearby {
        gap_m: near.gap_m,
        key: name(near.key),
    })
}

impl<'w, 'a> LiftCheck<'w, 'a> {
    fn new(
        world: &'w mut CollisionWorld<'a>,
        pen: usize,
        from: &'w JointVector,
    ) -> Result<Self, LiftRefusal> {
        let (scene, pose) = (world.body().scene(), world.body().pose(from));
        let tip_m = scene.pen(pen).ok_or(LiftRefusal::NoPen)?.tip_m;
        let tip = world.body().frames(&pose).tool * tip_m;
        let foot = scene.surface.project(&tip);
        Ok(Self {
            scene,
            pen,
            tip_m,
            from,
            tip,
            height_mm: foot.height_mm,
            normal: scene.surface.at(foot.at_mm).normal.into_inner(),
            initial: all_nearby(world, pen, &pose),
            world,
        })
    }

    /// Checks that the straight line of joint angles rises all the way and stays clear.
    fn check(&mut self, by_rad: &JointVector, points: usize) -> Result<(), LiftRefusal> {
        let mut height_before = 0.0;
        for point in 1..=points {
            let fraction = point as f64 / points as f64;
            let q = self.from.zip(by_rad, |from, by| from + by * fraction);
            self.check_joint_limits(&q)?;
            let pose = self.world.body().pose(&q);
            height_before = self.check_rise(&pose, height_before)?;
            self.check_clearance(&pose)?;
        }
        Ok(())
    }

    fn check_joint_limits(&self, q: &JointVector) -> Result<(), LiftRefusal> {
        let arm = &self.scene.arm;
        let range = arm.limits.lower_rad.iter().zip(arm.limits.upper_rad.iter());
        let angles = q.iter().zip(self.from.iter()).zip(range);
        for (joint, ((at, from), (low, high))) in angles.enumerate() {
            if exceeds(low.min(*from) - 1e-6, *at) || exceeds(*at, high.max(*from) + 1e-6) {
                return Err(LiftRefusal::JointLimit {
                    joint: arm.joint_name(joint),
                    at_rad: *at,
                    range_rad: [*low, *high],
                });
            }
        }
        Ok(())
    }

    /// Returns the tip's height over the start of the lift. Fails if it falls below `before` or strays
    /// sideways.
    fn check_rise(&self, pose: &PosedBody, previous: f64) -> Result<f64, LiftRefusal> {
        let moved = self.world.body().frames(pose).tool * self.tip_m - self.tip;
        let height = moved.dot(&self.normal);
        let sideways_mm = (moved - self.normal.scale(height)).norm() * 1e3;
        if exceeds(previous - 1e-6, height) || exceeds(sideways_mm, LIFT_SIDEWAYS_MM) {
            return Err(LiftRefusal::Strays { sideways_mm });
        }
        Ok(height)
    }

    fn check_clearance(&mut self, pose: &PosedBody) -> Result<(), LiftRefusal> {
        let nearby = all_nearby(self.world, self.pen, pose);
        let limit_m = |(_, obstacle): (usize, Obstacle)| obstacle.limit_m(self.scene);
        let breach = first_breach(&nearby, &self.initial, limit_m);
        let Some(PartProximity {
            gap_m,
            key: (part, obstacle),
        }) = breach
        else {
            return Ok(());
        };
        let body = self.world.body();
        let part = body.part_name(part);
        let other = match obstacle {
            Obstacle::Sheet | Obstacle::SheetBelow => "the sheet".to_owned(),
            Obstacle::Part(other) => body.part_name(other),
            Obstacle::KeepOut(index) => {
                let keep_out = self.scene.keep_outs.get(index);
                format!("keep-out `{}`", keep_out.map_or("", |it| &it.name))
            }
            Obstacle::Side(_) => {
                let by_mm = -gap_m * 1e3;
                return Err(LiftRefusal::OutOfWorkspace { part, by_mm });
            }
        };
        Err(LiftRefusal::TooNear { part, gap_m, other })
    }
}

/// Returns the first that is nearer than it may be: than its `initial` distance, if it has one, or
/// than `limit_m`.
fn first_breach<K: Copy + PartialEq>(
    nearby: &[PartProximity<K>],
    initial: &[PartProximity<K>],
    limit_m: impl Fn(K) -> f64,
) -> Option<PartProximity<K>> {
    let limit_of = |near: &PartProximity<K>| {
        let initial = initial.iter().find(|initial| initial.key == near.key);
        initial.map_or_else(|| limit_m(near.key), |initial| initial.gap_m)
    };
    let mut nearby = nearby.iter().copied();
    nearby.find(|near| exceeds(limit_of(near) - 1e-6, near.gap_m))
}

/// Describes how near a part comes to another, or how far it would enter it.
fn describe_distance(gap_m: f64) -> String {
    match gap_m < 0.0 {
        true => format!("{} mm into", short(-gap_m * 1e3)),
        false => format!("within {} mm of", short(gap_m * 1e3)),
    }
}

#[cfg(test)]
mod tests;
