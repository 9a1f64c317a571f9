//! From every sample of a trajectory, a proven stop: a deceleration along the path and, where the
//! tip is near the sheet, a lift.
//!
//! Braking walks on along samples that were judged, ever slower, so it stays on a path that is
//! known to be clear; only its acceleration has to be bounded, by how long it takes. The lift is a
//! straight line of joint angles to a pose with the tip higher along the normal. It is walked here
//! from every sample and must rise all the way, stay inside limits and the workspace, and keep as
//! far from the sheet, from keep-outs and from itself as the plan itself has to.
//!
//! What is tried at a sample depends on no limit, and what is found there is only ever turned down
//! by one: in a stricter scene no stop is proven that was not proven in a looser one.

use std::ops::Range;

use nalgebra::{Matrix3, Point3, Vector3};

use super::check::{exceeds, tip_limit_mm_s};
use super::clearance::{height_mm, tip_m};
use super::collision_body::PosedBody;
use super::collision_world::CollisionWorld;
use super::escape::PartProximity;
use super::{GateRefusal, GateRule};
use base::units::{JOINTS_MAX, JointVector, apart, short};
use kin::ToolTip;
use plan::{SpanKind, Trajectory, TrajectorySpan};
use scene::{CLEARANCE_M, Scene};

/// The share of a joint's acceleration that braking may add to what the path itself needs.
pub(super) const BRAKE_SHARE: f64 = 0.5;

/// A stop along the path never takes fewer ticks than this, so that it is smooth.
const BRAKE_TICKS_MIN: f64 = 3.0;

/// And never more: a plan that needs longer is too fast to be stopped.
const BRAKE_TICKS_MAX: f64 = 60.0;

/// Interval in samples at which lifts are solved. The samples between share the lift if a check
/// from each of them allows it; otherwise they get their own.
const LIFT_EVERY: usize = 4;

/// Points at which a lift is looked at where it was solved.
const LIFT_POINTS: usize = 8;

/// And from a sample between.
const LIFT_POINTS_BETWEEN: usize = 3;

/// The smooth step's fastest, over its mean.
pub(super) const SMOOTH_PEAK: f64 = 1.875;

/// Points between which it is looked at how far the tip goes, and how much faster than between
/// them it may be within.
const SWEEP_POINTS: usize = 4;
const UNEVEN: f64 = 1.05;

/// A tip that much below the height of travels needs no lift.
const UP_MM: f64 = 0.5;

/// Largest sideways deviation of a lift from the normal.
const LIFT_ASIDE_MM: f64 = 2.0;

/// Newton steps to a lifted pose.
const NEWTON_STEPS: usize = 8;

/// Near enough to take no further step.
const THERE_M: f64 = 1e-5;

/// Of the steps, in square metres a square radian.
const DAMPING: f64 = 1e-8;

/// Largest height error of a lifted pose.
const LIFTED_MM: f64 = 0.5;

/// The proof.
#[derive(Debug)]
pub(super) struct StopProof {
    /// Per sample, how many ticks braking takes.
    brake_ticks: Vec<f64>,
    /// First and last sample of each lift and the movement of each joint, in order of the samples.
    lifts: Vec<ProvenLift>,
}

/// A proven way straight up from some samples in a row.
#[derive(Debug)]
pub(super) struct ProvenLift {
    first: usize,
    end: usize,
    /// Movement of each joint; zero where the tip is up already.
    pub(super) by_rad: JointVector,
    /// Faster, up or down again, its tip would pass its limit.
    pub(super) seconds_min: f64,
}

impl StopProof {
    /// Proves a stop from every sample.
    pub(super) fn prove(
        mut around: CollisionWorld<'_>,
        trajectory: &Trajectory,
    ) -> Result<Self, GateRefusal> {
        let brake_ticks = brake_ticks(around.body().scene(), trajectory)?;
        let mut lifts = Vec::new();
        for span in &trajectory.spans {
            prove_lifts(&mut around, trajectory, span, &mut lifts)?;
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
        *ticks.expect("a brake is proven at every sample of the trajectory")
    }

    /// The lift from a sample; `None` where a tip that only passes is up already, or cannot be
    /// lifted.
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

fn prove_lifts(
    around: &mut CollisionWorld<'_>,
    trajectory: &Trajectory,
    span: &TrajectorySpan,
    lifts: &mut Vec<ProvenLift>,
) -> Result<(), GateRefusal> {
    let mut next = span.first;
    let here = |next: usize| trajectory.reached().get(next).filter(|_| next < span.end);
    while let Some(from) = here(next) {
        let end = (next + LIFT_EVERY).min(span.end);
        let own = lift_from(around, trajectory, span, from, next..end);
        let found = own.or_else(|why| {
            let earlier = earlier_lift(around, trajectory, span, next);
            earlier.map(Some).ok_or(why)
        });
        next = match found {
            Ok(Some(lift)) => {
                let end = lift.end;
                lifts.push(lift);
                end
            }
            Ok(None) => next + 1,
            // Where an arm comes from, or passes, no lift may be possible: there a stop is a hold.
            Err(_) if !touches(span.kind) => next + 1,
            Err(why) => {
                return Err(GateRefusal {
                    rule: GateRule::Stop,
                    sample: next,
                    doing: Some(span.kind),
                    item: span.item,
                    at_mm: None,
                    excess: None,
                    why: why.to_string(),
                });
            }
        };
    }
    Ok(())
}

/// The lift from a sample, and how many of the samples after it may use it; `None` where a tip
/// that only passes is up already.
fn lift_from(
    around: &mut CollisionWorld<'_>,
    trajectory: &Trajectory,
    span: &TrajectorySpan,
    from: &JointVector,
    Range { start: first, end }: Range<usize>,
) -> Result<Option<ProvenLift>, LiftRefusal> {
    let scene = around.body().scene();
    if !touches(span.kind) && !is_low(scene, span.pen, from) {
        return Ok(None);
    }
    let by_rad = lift(around, span.pen, from)?;
    check_from_goal(around, trajectory, span.pen, first, &by_rad)?;
    let mut seconds_min = seconds_min_of(scene, span.pen, from, &by_rad)?;
    let samples = trajectory.reached().iter().enumerate();
    let mut shared_end = first + 1;
    for (sample, from) in samples.take(end).skip(shared_end) {
        let is_from_goal = check_from_goal(around, trajectory, span.pen, sample, &by_rad).is_ok();
        if !is_from_goal || !is_shared(around, span.pen, from, &by_rad) {
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

/// The lift of one of the samples before, where it does from here too. Without it, something more
/// in the scene could prove a stop: it shifts which samples share a lift.
fn earlier_lift(
    around: &mut CollisionWorld<'_>,
    trajectory: &Trajectory,
    span: &TrajectorySpan,
    at: usize,
) -> Option<ProvenLift> {
    let scene = around.body().scene();
    let here = trajectory.reached().get(at)?;
    let before = trajectory.reached().iter().take(at).skip(span.first);
    before.rev().take(LIFT_EVERY - 1).find_map(|earlier| {
        let by_rad = lift(around, span.pen, earlier).ok()?;
        let is_lift = is_shared(around, span.pen, here, &by_rad)
            && check_from_goal(around, trajectory, span.pen, at, &by_rad).is_ok();
        Some(ProvenLift {
            first: at,
            end: at + 1,
            by_rad,
            seconds_min: seconds_min_of(scene, span.pen, here, &by_rad).ok()?,
        })
        .filter(|_| is_lift)
    })
}

/// Checks a lift, which was found from where the arm is expected, from a goal that leads as well: it is from there that it is
/// carried out.
fn check_from_goal(
    around: &mut CollisionWorld<'_>,
    trajectory: &Trajectory,
    pen: usize,
    sample: usize,
    by_rad: &JointVector,
) -> Result<(), LiftRefusal> {
    match trajectory.samples.get(sample) {
        Some(goal) if !trajectory.reached.is_empty() => {
            LiftCheck::new(around, pen, goal)?.check(by_rad, LIFT_POINTS_BETWEEN)
        }
        _ => Ok(()),
    }
}

/// Returns whether a lift that was proven from another sample is also valid from this one.
fn is_shared(
    around: &mut CollisionWorld<'_>,
    pen: usize,
    from: &JointVector,
    by_rad: &JointVector,
) -> bool {
    LiftCheck::new(around, pen, from)
        .is_ok_and(|mut walk| walk.check(by_rad, LIFT_POINTS_BETWEEN).is_ok())
}

/// Returns the shortest duration of a smooth lift whose tip never exceeds the speed limit at the
/// lift's start. Higher up the limit is no lower.
fn seconds_min_of(
    scene: &Scene,
    pen: usize,
    from: &JointVector,
    by_rad: &JointVector,
) -> Result<f64, LiftRefusal> {
    let start = pen_tip_m(scene, pen, from)?;
    let (mut before, mut furthest_m) = (start, 0.0_f64);
    for point in 1..=SWEEP_POINTS {
        let share = point as f64 / SWEEP_POINTS as f64;
        let tip = pen_tip_m(scene, pen, &from.zip(by_rad, |from, by| from + by * share))?;
        furthest_m = furthest_m.max((tip - before).norm());
        before = tip;
    }
    let tool = scene.pen(pen).ok_or(LiftRefusal::NoPen)?.kind;
    let limit_mm_s = tip_limit_mm_s(scene, tool, SpanKind::Lift, &start);
    let all_mm = furthest_m * SWEEP_POINTS as f64 * 1e3;
    Ok(SMOOTH_PEAK * UNEVEN * all_mm / limit_mm_s)
}

/// Returns whether a passing tip is over the sheet and lower than travel moves.
fn is_low(scene: &Scene, pen: usize, q: &JointVector) -> bool {
    let height = tip_m(scene, pen, q).and_then(|tip| height_mm(scene, &tip));
    height.is_some_and(|height| exceeds(scene.heights.lift_mm - UP_MM, height))
}

/// Returns the ticks in which the slowest of joints at these speeds is braked with its share of acceleration.
pub(super) fn ticks_to_brake(scene: &Scene, speed_rad_s: &JointVector, period_s: f64) -> f64 {
    let limits = scene.arm.limits;
    let ticks = speed_rad_s.zip(&limits.acceleration_rad_s2, |speed, hardest| {
        speed / (hardest * BRAKE_SHARE * period_s)
    });
    ticks.iter().copied().fold(0.0, f64::max)
}

fn brake_ticks(scene: &Scene, trajectory: &Trajectory) -> Result<Vec<f64>, GateRefusal> {
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
        return Err(GateRefusal {
            rule: GateRule::Stop,
            sample,
            doing: trajectory.span_at(sample).map(|span| span.kind),
            item: None,
            at_mm: None,
            excess: None,
            why: format!(
                "stopping here would take more than {:.1} s: lower the speed",
                BRAKE_TICKS_MAX * period
            ),
        });
    }
    Ok(window_max(&needed))
}

/// The largest within the samples that braking can still pass through: half of the longest brake.
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

/// The joint motion that lifts the tip from `from`, walked and found clear: of all joints, or
/// where that comes to a limit, of all but one or two that stay where they are.
fn lift(
    around: &mut CollisionWorld<'_>,
    pen: usize,
    from: &JointVector,
) -> Result<JointVector, LiftRefusal> {
    let mut walk = LiftCheck::new(around, pen, from)?;
    let scene = walk.scene;
    let rise_mm = scene.heights.lift_mm - walk.height_mm;
    if !exceeds(rise_mm, 0.0) {
        return Ok(from.map(|_, _| 0.0));
    }
    let target = walk.tip + walk.normal.scale(rise_mm / 1e3);
    let mut with = |still: FixedJoints| {
        let to = solve_lifted_pose(scene, pen, from, &target, still)?;
        let by_rad = to.zip(from, |to, from| to - from);
        walk.check(&by_rad, LIFT_POINTS)?;
        Ok(by_rad)
    };
    with(FixedJoints::NONE).or_else(|why| {
        FixedJoints::all(from.len())
            .find_map(|still| with(still).ok())
            .ok_or(why)
    })
}

/// Joints that a lift does not turn, a bit each.
#[derive(Clone, Copy)]
struct FixedJoints(u8);

// There are bits for all of them.
const _: () = assert!(JOINTS_MAX < u8::BITS as usize);

impl FixedJoints {
    const NONE: Self = Self(0);

    /// Each joint alone, then each two.
    fn all(joints: usize) -> impl Iterator<Item = Self> {
        [1, 2].into_iter().flat_map(move |count| {
            let bits = 0..1_u8 << joints;
            bits.filter(move |bits| bits.count_ones() == count)
                .map(Self)
        })
    }

    fn holds(self, joint: usize) -> bool {
        self.0 >> joint & 1 == 1
    }
}

/// Joint angles near `from` that bring the tip to `target`, by damped least squares. They may be
/// beyond limits: what comes of it is walked.
fn solve_lifted_pose(
    scene: &Scene,
    pen: usize,
    from: &JointVector,
    target: &Point3<f64>,
    still: FixedJoints,
) -> Result<JointVector, LiftRefusal> {
    let mut q = *from;
    for _ in 0..NEWTON_STEPS {
        let Some(step) = step_to(scene, pen, &q, target, still)? else {
            return Ok(q);
        };
        q = q.zip(&step, |angle, step| angle + step);
    }
    let short_mm = (target - pen_tip_m(scene, pen, &q)?).norm() * 1e3;
    if short_mm.is_nan() || exceeds(short_mm, LIFTED_MM) {
        return Err(LiftRefusal::Unreachable {
            lift_mm: scene.heights.lift_mm,
            short_mm,
        });
    }
    Ok(q)
}

/// The shortest turn of the joints that seems to bring the tip to `target`; `None` where it is
/// there. What comes of it is walked: nothing rests on this being right.
fn step_to(
    scene: &Scene,
    pen: usize,
    q: &JointVector,
    target: &Point3<f64>,
    still: FixedJoints,
) -> Result<Option<JointVector>, LiftRefusal> {
    let (chain, pen) = (&scene.arm.chain, scene.pen(pen).ok_or(LiftRefusal::NoPen)?);
    let (point_m, axis) = (pen.tip_m, pen.axis);
    let frames = chain.frames(q);
    let error = target - frames.tool * point_m;
    if exceeds(THERE_M, error.norm()) {
        return Ok(None);
    }
    let jacobian = chain.jacobian_at(&frames, &ToolTip { point_m, axis });
    let turns = jacobian.iter().enumerate();
    let moves = turns.map(|(joint, [x, y, z, ..])| {
        let turns = if still.holds(joint) { 0.0 } else { 1.0 };
        Vector3::new(*x, *y, *z) * turns
    });
    let damped = moves
        .clone()
        .fold(Matrix3::identity() * DAMPING, |all, by| {
            all + by * by.transpose()
        });
    #[expect(
        clippy::expect_used,
        reason = "without an inverse there is no step, and no step is no lift"
    )]
    let pull = damped.try_inverse().expect("damping makes it positive") * error;
    let mut step = q.map(|_, _| 0.0);
    for (to, by) in step.iter_mut().zip(moves) {
        *to = by.dot(&pull);
    }
    Ok(Some(step))
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
        "from here the tip cannot be lifted to {lift_mm} mm when the arm is stopped ({short_mm:.1} mm short): move the sheet, or lower heights.lift_mm"
    )]
    Unreachable { lift_mm: f64, short_mm: f64 },
    #[error(
        "a stop here would lift {joint} to {} rad; {} to {} are allowed", short(*at_rad), short(range_rad[0]), short(range_rad[1])
    )]
    JointLimit {
        joint: String,
        at_rad: f64,
        range_rad: [f64; 2],
    },
    #[error(
        "a stop here could not lift the tip straight up: it would stray {} mm; {} mm is the limit", apart(*aside_mm, LIFT_ASIDE_MM).0, apart(*aside_mm, LIFT_ASIDE_MM).1
    )]
    Strays { aside_mm: f64 },
    #[error("a stop here would bring {part} {} {other}", distance_words(*metres))]
    TooNear {
        part: String,
        metres: f64,
        other: String,
    },
    #[error("a stop here would bring {part} {by_mm:.1} mm out of the workspace")]
    OutOfWorkspace { part: String, by_mm: f64 },
}

/// A way up from one sample, and how near it may come to anything.
struct LiftCheck<'w, 'a> {
    around: &'w mut CollisionWorld<'a>,
    scene: &'a Scene,
    pen: usize,
    /// The pen's tip in the tool mount's frame.
    tip_m: Point3<f64>,
    from: &'w JointVector,
    tip: Point3<f64>,
    height_mm: f64,
    normal: Vector3<f64>,
    /// Clearances at the start of the lift. Those already below the limit were accepted; they may not
    /// shrink further.
    begun: Vec<Nearby>,
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
    /// The distance that a plan keeps from it, in metres.
    const fn least_m(self) -> f64 {
        match self {
            Self::Sheet | Self::Part(_) | Self::KeepOut(_) => CLEARANCE_M,
            Self::SheetBelow | Self::Side(_) => 0.0,
        }
    }
}

/// A part, and what it is nearer to than a plan may go.
type Nearby = PartProximity<(usize, Obstacle)>;

/// All that is nearer than a plan may go, at one pose.
fn all_nearby(around: &mut CollisionWorld<'_>, pen: usize, stance: &PosedBody) -> Vec<Nearby> {
    let mut all = Vec::new();
    all.extend(named(around.over_sheet(stance), |of| (of, Obstacle::Sheet)));
    let idle = around.idle_pens(stance, pen);
    all.extend(named(idle, |of| (of, Obstacle::SheetBelow)));
    let own = around.near_itself(stance);
    all.extend(named(own, |(of, other)| (of, Obstacle::Part(other))));
    let outside = around.outside_workspace(stance);
    all.extend(named(outside, |(of, side)| (of, Obstacle::Side(side))));
    let keep_outs = around.body().scene().keep_outs.iter();
    for (index, keep_out) in keep_outs.enumerate() {
        let near = around.near_keep_out(stance, index, &keep_out.corners);
        all.extend(named(near, |of| (of, Obstacle::KeepOut(index))));
    }
    all
}

fn named<K>(
    near: Vec<PartProximity<K>>,
    name: impl Fn(K) -> (usize, Obstacle),
) -> impl Iterator<Item = Nearby> {
    near.into_iter().map(move |near| Nearby {
        metres: near.metres,
        of: name(near.of),
    })
}

impl<'w, 'a> LiftCheck<'w, 'a> {
    fn new(
        around: &'w mut CollisionWorld<'a>,
        pen: usize,
        from: &'w JointVector,
    ) -> Result<Self, LiftRefusal> {
        let (scene, stance) = (around.body().scene(), around.body().at(from));
        let tip_m = scene.pen(pen).ok_or(LiftRefusal::NoPen)?.tip_m;
        let tip = around.body().frames(&stance).tool * tip_m;
        let under = scene.surface.project(&tip);
        Ok(Self {
            scene,
            pen,
            tip_m,
            from,
            tip,
            height_mm: under.height_mm,
            normal: scene.surface.at(under.at_mm).normal.into_inner(),
            begun: all_nearby(around, pen, &stance),
            around,
        })
    }

    /// Checks that the straight line of joint angles rises all the way and stays clear.
    fn check(&mut self, by_rad: &JointVector, points: usize) -> Result<(), LiftRefusal> {
        let mut height_before = 0.0;
        for point in 1..=points {
            let share = point as f64 / points as f64;
            let q = self.from.zip(by_rad, |from, by| from + by * share);
            self.check_joint_limits(&q)?;
            let stance = self.around.body().at(&q);
            height_before = self.check_rise(&stance, height_before)?;
            self.check_clearance(&stance)?;
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
    fn check_rise(&self, stance: &PosedBody, before: f64) -> Result<f64, LiftRefusal> {
        let moved = self.around.body().frames(stance).tool * self.tip_m - self.tip;
        let height = moved.dot(&self.normal);
        let aside_mm = (moved - self.normal.scale(height)).norm() * 1e3;
        if exceeds(before - 1e-6, height) || exceeds(aside_mm, LIFT_ASIDE_MM) {
            return Err(LiftRefusal::Strays { aside_mm });
        }
        Ok(height)
    }

    fn check_clearance(&mut self, stance: &PosedBody) -> Result<(), LiftRefusal> {
        let now = all_nearby(self.around, self.pen, stance);
        let breach = first_breach(&now, &self.begun, |(_, to)| to.least_m());
        let Some(PartProximity {
            metres,
            of: (part, to),
        }) = breach
        else {
            return Ok(());
        };
        let body = self.around.body();
        let part = body.part_name(part);
        let other = match to {
            Obstacle::Sheet | Obstacle::SheetBelow => "the sheet".to_owned(),
            Obstacle::Part(other) => body.part_name(other),
            Obstacle::KeepOut(index) => {
                let keep_out = self.scene.keep_outs.get(index);
                format!("keep-out `{}`", keep_out.map_or("", |it| &it.name))
            }
            Obstacle::Side(_) => {
                let by_mm = -metres * 1e3;
                return Err(LiftRefusal::OutOfWorkspace { part, by_mm });
            }
        };
        Err(LiftRefusal::TooNear {
            part,
            metres,
            other,
        })
    }
}

/// The first that is nearer than it may be: as near as it was when it `begun` to move, if that was
/// nearer than `least_m`.
fn first_breach<K: Copy + PartialEq>(
    now: &[PartProximity<K>],
    begun: &[PartProximity<K>],
    least_m: impl Fn(K) -> f64,
) -> Option<PartProximity<K>> {
    let least_of = |near: &PartProximity<K>| {
        let begun = begun.iter().find(|begun| begun.of == near.of);
        begun.map_or_else(|| least_m(near.of), |begun| begun.metres)
    };
    let mut now = now.iter().copied();
    now.find(|near| exceeds(least_of(near) - 1e-6, near.metres))
}

/// Returns how far a part stays off another, or how far it comes into it.
fn distance_words(metres: f64) -> String {
    match metres < 0.0 {
        true => format!("{} mm into", short(-metres * 1e3)),
        false => format!("within {} mm of", short(metres * 1e3)),
    }
}

#[cfg(test)]
mod tests;
