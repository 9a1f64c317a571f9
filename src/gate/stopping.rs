//! From every sample of a trajectory, a proven stop: a deceleration along the path and, where the
//! tip is near the sheet, a lift.
//!
//! Braking walks on along samples that were judged, ever slower, so it stays on a path that is
//! known to be clear; only its acceleration has to be bounded, by how long it takes. The lift is a
//! straight line of joint angles to a pose with the tip higher along the normal. It is walked here
//! from every sample and must rise all the way, stay inside limits, and keep as far from the sheet
//! and from keep-outs as the plan itself has to.

use std::ops::Range;

use nalgebra::{Matrix3, Point3, Vector3};

use super::around::Around;
use super::body::{Near, Stance};
use super::check::{CLEARANCE_M, above, tip_limit_mm_s};
use super::clearance::{height_mm, tip_m};
use super::{Refusal, Rule};
use crate::kin::Tip;
use crate::plan::{Span, SpanKind, Trajectory};
use crate::scene::Scene;
use crate::units::{Joints, apart, short};

/// The share of a joint's acceleration that braking may add to what the path itself needs.
const BRAKE_SHARE: f64 = 0.5;

/// A stop along the path never takes fewer ticks than this, so that it is smooth.
const BRAKE_TICKS_MIN: f64 = 3.0;

/// And never more: a plan that needs longer is too fast to be stopped.
const BRAKE_TICKS_MAX: f64 = 60.0;

/// A lift is solved at every so many samples; from those between, the same lift is walked too, and
/// where it does not do, they get one of their own.
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

/// How far a lift may stray sideways from the normal.
const LIFT_ASIDE_MM: f64 = 2.0;

/// Newton steps to a lifted pose.
const NEWTON_STEPS: usize = 8;

/// Near enough to take no further step.
const THERE_M: f64 = 1e-5;

/// Of the steps, in square metres a square radian.
const DAMPING: f64 = 1e-8;

/// How near to its height a lifted pose must be.
const LIFTED_MM: f64 = 0.5;

/// The proof.
#[derive(Debug)]
pub(super) struct Stops {
    /// Per sample, how many ticks braking takes.
    brake_ticks: Vec<f64>,
    /// Where lifts begin and how far each joint then moves, in order of the samples.
    lifts: Vec<Lift>,
}

#[derive(Debug)]
struct Lift {
    first: usize,
    end: usize,
    by_rad: Joints,
    /// Faster, up or down again, its tip would pass its limit.
    seconds_min: f64,
}

impl Stops {
    /// Proves a stop from every sample.
    pub(super) fn prove(mut around: Around<'_>, trajectory: &Trajectory) -> Result<Self, Refusal> {
        let brake_ticks = brake_ticks(around.body().scene(), trajectory)?;
        let mut lifts = Vec::new();
        for span in &trajectory.spans {
            prove_lifts(&mut around, trajectory, span, &mut lifts)?;
        }
        Ok(Self { brake_ticks, lifts })
    }

    /// How many ticks braking takes from a sample on.
    pub(super) fn brake_ticks(&self, sample: usize) -> f64 {
        self.brake_ticks
            .get(sample)
            .copied()
            .unwrap_or(BRAKE_TICKS_MIN)
    }

    /// How far the joints move to lift the tip at a sample; `None` where it is up already.
    pub(super) fn lift_rad(&self, sample: usize) -> Option<Joints> {
        self.lift(sample).map(|lift| lift.by_rad)
    }

    /// How long that takes at least, for the tip to be no faster than it may be there.
    pub(super) fn lift_seconds_min(&self, sample: usize) -> f64 {
        self.lift(sample).map_or(0.0, |lift| lift.seconds_min)
    }

    fn lift(&self, sample: usize) -> Option<&Lift> {
        let after = self.lifts.partition_point(|lift| lift.end <= sample);
        self.lifts.get(after).filter(|lift| lift.first <= sample)
    }
}

/// Whether the tip is on its way to the sheet, at it, or on its way from it.
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
    around: &mut Around<'_>,
    trajectory: &Trajectory,
    span: &Span,
    lifts: &mut Vec<Lift>,
) -> Result<(), Refusal> {
    let mut next = span.first;
    let here = |next: usize| trajectory.samples.get(next).filter(|_| next < span.end);
    while let Some(from) = here(next) {
        let end = (next + LIFT_EVERY).min(span.end);
        next = match lift_from(around, trajectory, span, from, next..end) {
            Ok(Some(lift)) => {
                let end = lift.end;
                lifts.push(lift);
                end
            }
            Ok(None) => next + 1,
            // Where an arm comes from, or passes, no lift may be possible: there a stop is a hold.
            Err(_) if !touches(span.kind) => next + 1,
            Err(why) => {
                return Err(Refusal {
                    rule: Rule::Stop,
                    sample: next,
                    doing: Some(span.kind),
                    item: span.item,
                    at_mm: None,
                    excess: None,
                    why,
                });
            }
        };
    }
    Ok(())
}

/// The lift from a sample, and how many of the samples after it may use it; `None` where a tip
/// that only passes is up already.
fn lift_from(
    around: &mut Around<'_>,
    trajectory: &Trajectory,
    span: &Span,
    from: &Joints,
    Range { start: first, end }: Range<usize>,
) -> Result<Option<Lift>, String> {
    let scene = around.body().scene();
    if !touches(span.kind) && !is_low(scene, span.pen, from) {
        return Ok(None);
    }
    let by_rad = lift(around, span.pen, from)?;
    let mut fits = |sample: &usize| {
        let between = trajectory.samples.get(*sample);
        between.is_some_and(|from| {
            Walk::new(around, span.pen, from)
                .is_ok_and(|mut walk| walk.is_clear(&by_rad, LIFT_POINTS_BETWEEN).is_ok())
        })
    };
    let shared = (first + 1..end).take_while(|sample| fits(sample)).count();
    let end = first + 1 + shared;
    let from_all = trajectory.samples.get(first..end).unwrap_or_default();
    let seconds = from_all
        .iter()
        .map(|from| seconds_min(scene, span.pen, from, &by_rad));
    let seconds_min = seconds.reduce(|one, other| Ok(one?.max(other?)));
    Ok(Some(Lift {
        first,
        end,
        by_rad,
        seconds_min: seconds_min.unwrap_or(Ok(0.0))?,
    }))
}

/// How long a smooth lift takes at least whose tip is nowhere faster than it may be where the lift
/// begins: higher up it may be no slower.
fn seconds_min(scene: &Scene, pen: usize, from: &Joints, by_rad: &Joints) -> Result<f64, String> {
    let start = pen_tip_m(scene, pen, from)?;
    let (mut before, mut furthest_m) = (start, 0.0_f64);
    for point in 1..=SWEEP_POINTS {
        let share = point as f64 / SWEEP_POINTS as f64;
        let tip = pen_tip_m(scene, pen, &from.zip(by_rad, |from, by| from + by * share))?;
        furthest_m = furthest_m.max((tip - before).norm());
        before = tip;
    }
    let tool = scene.pen(pen).ok_or_else(no_pen)?.kind;
    let limit_mm_s = tip_limit_mm_s(scene, tool, SpanKind::Lift, &start);
    let all_mm = furthest_m * SWEEP_POINTS as f64 * 1e3;
    Ok(SMOOTH_PEAK * UNEVEN * all_mm / limit_mm_s)
}

/// Whether a tip that only passes is over the sheet and lower than travels are.
fn is_low(scene: &Scene, pen: usize, q: &Joints) -> bool {
    let height = tip_m(scene, pen, q).and_then(|tip| height_mm(scene, &tip));
    height.is_some_and(|height| above(scene.heights.lift_mm - UP_MM, height))
}

fn brake_ticks(scene: &Scene, trajectory: &Trajectory) -> Result<Vec<f64>, Refusal> {
    let period = trajectory.period.as_secs_f64();
    let limits = scene.arm.limits;
    let samples = &trajectory.samples;
    let needed: Vec<f64> = samples
        .iter()
        .zip(samples.iter().skip(1))
        .map(|(a, b)| {
            b.zip(a, |b, a| (b - a).abs() / period)
                .zip(&limits.acceleration_rad_s2, |speed, hardest| {
                    speed / (hardest * BRAKE_SHARE * period)
                })
                .iter()
                .copied()
                .fold(BRAKE_TICKS_MIN, f64::max)
        })
        .chain([BRAKE_TICKS_MIN])
        .collect();
    if let Some(sample) = needed
        .iter()
        .position(|ticks| above(*ticks, BRAKE_TICKS_MAX))
    {
        return Err(Refusal {
            rule: Rule::Stop,
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
    let ahead = std::iter::successors(Some(1_usize), |n| Some(n + 1))
        .find(|n| *n as f64 >= longest / 2.0)
        .unwrap_or(1);
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

/// The joint motion that lifts the tip from `from`, walked and found clear.
fn lift(around: &mut Around<'_>, pen: usize, from: &Joints) -> Result<Joints, String> {
    let mut walk = Walk::new(around, pen, from)?;
    let scene = walk.scene;
    let rise_mm = scene.heights.lift_mm - walk.height_mm;
    if !above(rise_mm, 0.0) {
        return Ok(from.map(|_, _| 0.0));
    }
    let target = walk.tip + walk.normal.scale(rise_mm / 1e3);
    let to = reach(scene, pen, from, &target)?;
    let by_rad = to.zip(from, |to, from| to - from);
    walk.is_clear(&by_rad, LIFT_POINTS)?;
    Ok(by_rad)
}

/// Joint angles near `from` that bring the tip to `target`: damped least squares, limits kept.
fn reach(scene: &Scene, pen: usize, from: &Joints, target: &Point3<f64>) -> Result<Joints, String> {
    let limits = &scene.arm.limits;
    let mut q = *from;
    for _ in 0..NEWTON_STEPS {
        let Some(step) = step_to(scene, pen, &q, target)? else {
            return Ok(q);
        };
        q = q.map(|joint, angle| {
            let moved = angle + step.get(joint).copied().unwrap_or(0.0);
            let bound = |of: &Joints| of.get(joint).copied().unwrap_or(moved);
            let (low, high) = (bound(&limits.lower_rad), bound(&limits.upper_rad));
            moved.clamp(low.min(angle), high.max(angle))
        });
    }
    let short_mm = (target - pen_tip_m(scene, pen, &q)?).norm() * 1e3;
    if above(short_mm, LIFTED_MM) {
        return Err(format!(
            "from here the tip cannot be lifted to {} mm when the arm is stopped ({short_mm:.1} mm short): move the sheet, or lower heights.lift_mm",
            scene.heights.lift_mm
        ));
    }
    Ok(q)
}

/// The shortest turn of the joints that seems to bring the tip to `target`; `None` where it is
/// there. What comes of it is walked: nothing rests on this being right.
fn step_to(
    scene: &Scene,
    pen: usize,
    q: &Joints,
    target: &Point3<f64>,
) -> Result<Option<Joints>, String> {
    let (chain, pen) = (&scene.arm.chain, scene.pen(pen).ok_or_else(no_pen)?);
    let (point_m, axis) = (pen.tip_m, pen.axis);
    let frames = chain.frames(q);
    let error = target - frames.tool * point_m;
    if above(THERE_M, error.norm()) {
        return Ok(None);
    }
    let jacobian = chain.jacobian_at(&frames, &Tip { point_m, axis });
    let moves = jacobian
        .iter()
        .map(|[x, y, z, ..]| Vector3::new(*x, *y, *z));
    let damped = moves
        .clone()
        .fold(Matrix3::identity() * DAMPING, |all, by| {
            all + by * by.transpose()
        });
    // Damping makes it positive; without an inverse there would be no step.
    let pull = damped.try_inverse().unwrap_or_else(Matrix3::zeros) * error;
    let mut step = q.map(|_, _| 0.0);
    for (to, by) in step.iter_mut().zip(moves) {
        *to = by.dot(&pull);
    }
    Ok(Some(step))
}

fn pen_tip_m(scene: &Scene, pen: usize, q: &Joints) -> Result<Point3<f64>, String> {
    tip_m(scene, pen, q).ok_or_else(no_pen)
}

fn no_pen() -> String {
    "there is no such pen".to_owned()
}

/// A way up from one sample, and how near it may come to anything.
struct Walk<'w, 'a> {
    around: &'w mut Around<'a>,
    scene: &'a Scene,
    pen: usize,
    from: &'w Joints,
    tip: Point3<f64>,
    height_mm: f64,
    normal: Vector3<f64>,
    /// What stands nearer already than a plan may go was let through: it may not come nearer yet.
    sheet_m: f64,
    own_m: f64,
    keep_outs_m: Vec<f64>,
}

impl<'w, 'a> Walk<'w, 'a> {
    fn new(around: &'w mut Around<'a>, pen: usize, from: &'w Joints) -> Result<Self, String> {
        let (scene, stance) = (around.body().scene(), around.body().at(from));
        let tip = pen_tip_m(scene, pen, from)?;
        let under = scene.surface.project(&tip);
        let keep_outs = scene.keep_outs.iter().enumerate();
        Ok(Self {
            scene,
            pen,
            from,
            tip,
            height_mm: under.height_mm,
            normal: scene.surface.at(under.at_mm).normal.into_inner(),
            sheet_m: floor(around.over_sheet(&stance)),
            own_m: around
                .nearest_two(&stance)
                .map_or(CLEARANCE_M, |(_, _, m)| m.min(CLEARANCE_M)),
            keep_outs_m: keep_outs
                .map(|(index, it)| floor(around.near_keep_out(&stance, index, &it.corners)))
                .collect(),
            around,
        })
    }

    /// Whether the straight line of joint angles rises all the way and stays clear.
    fn is_clear(&mut self, by_rad: &Joints, points: usize) -> Result<(), String> {
        let mut height_before = 0.0;
        for point in 1..=points {
            let share = point as f64 / points as f64;
            let q = self.from.zip(by_rad, |from, by| from + by * share);
            self.inside_limits(&q)?;
            height_before = self.rises(&q, height_before)?;
            self.stays_clear(&q)?;
        }
        Ok(())
    }

    fn inside_limits(&self, q: &Joints) -> Result<(), String> {
        let arm = &self.scene.arm;
        for (joint, (at, from)) in q.iter().zip(self.from.iter()).enumerate() {
            let low = arm.limits.lower_rad.get(joint).copied();
            let high = arm.limits.upper_rad.get(joint).copied();
            let (low, high) = (low.unwrap_or(*from), high.unwrap_or(*from));
            if above(low.min(*from) - 1e-6, *at) || above(*at, high.max(*from) + 1e-6) {
                return Err(format!(
                    "a stop here would lift {} to {} rad; {} to {} are allowed",
                    arm.joint_name(joint),
                    short(*at),
                    short(low),
                    short(high)
                ));
            }
        }
        Ok(())
    }

    /// How high the tip is over where it began.
    fn rises(&self, q: &Joints, before: f64) -> Result<f64, String> {
        let moved = pen_tip_m(self.scene, self.pen, q)? - self.tip;
        let height = moved.dot(&self.normal);
        let aside_mm = (moved - self.normal.scale(height)).norm() * 1e3;
        if above(before - 1e-6, height) || above(aside_mm, LIFT_ASIDE_MM) {
            let (aside, limit) = apart(aside_mm, LIFT_ASIDE_MM);
            return Err(format!(
                "a stop here could not lift the tip straight up: it would stray {aside} mm; {limit} mm is the limit"
            ));
        }
        Ok(height)
    }

    fn stays_clear(&mut self, q: &Joints) -> Result<(), String> {
        let stance = self.around.body().at(q);
        self.clear_of_sheet(&stance)?;
        self.clear_of_itself(&stance)?;
        let keep_outs = self.scene.keep_outs.iter().zip(&self.keep_outs_m);
        for (index, (keep_out, least_m)) in keep_outs.enumerate() {
            let near = self.around.near_keep_out(&stance, index, &keep_out.corners);
            if let Some(near) = near.filter(|near| too_near(near.metres, *least_m)) {
                let what = self.around.body().what(near.part);
                let other = format!("keep-out `{}`", keep_out.name);
                return Err(brought_near(&what, near.metres, &other));
            }
        }
        Ok(())
    }

    fn clear_of_sheet(&mut self, stance: &Stance) -> Result<(), String> {
        match self.around.over_sheet(stance) {
            Some(near) if too_near(near.metres, self.sheet_m) => {
                let what = self.around.body().what(near.part);
                Err(brought_near(&what, near.metres, "the sheet"))
            }
            _ => Ok(()),
        }
    }

    fn clear_of_itself(&mut self, stance: &Stance) -> Result<(), String> {
        match self.around.nearest_two(stance) {
            Some((one, other, metres)) if too_near(metres, self.own_m) => {
                let body = self.around.body();
                Err(brought_near(&body.what(one), metres, &body.what(other)))
            }
            _ => Ok(()),
        }
    }
}

fn too_near(metres: f64, least_m: f64) -> bool {
    above(least_m - 1e-6, metres)
}

fn brought_near(what: &str, metres: f64, other: &str) -> String {
    let mm = short(metres * 1e3);
    format!("a stop here would bring {what} within {mm} mm of {other}")
}

/// How near something may come that stands so near now; what is not near may come as near as
/// plans may.
fn floor(now: Option<Near>) -> f64 {
    now.map_or(CLEARANCE_M, |near| near.metres.min(CLEARANCE_M))
}

#[cfg(test)]
mod tests;
