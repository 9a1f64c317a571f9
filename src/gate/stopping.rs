//! From every sample of a trajectory, a proven stop: a deceleration along the path and, where the
//! tip is near the sheet, a lift.
//!
//! Braking walks on along samples that were judged, ever slower, so it stays on a path that is
//! known to be clear; only its acceleration has to be bounded, by how long it takes. The lift is a
//! straight line of joint angles to a pose with the tip higher along the normal. It is walked here
//! from every sample and must rise all the way, stay inside limits, and keep as far from the sheet
//! and from keep-outs as the plan itself has to.

use std::ops::Range;

use nalgebra::{Matrix3, Matrix3xX, Point3, Vector3};

use super::body::{Body, Stance};
use super::check::CLEARANCE_M;
use super::clearance::Posture;
use super::{Refusal, Rule};
use crate::plan::{Span, SpanKind, Trajectory};
use crate::scene::Scene;
use crate::units::Joints;

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

/// A tip that much below the height of travels needs no lift.
const UP_MM: f64 = 0.5;

/// How far a lift may stray sideways from the normal.
const LIFT_ASIDE_MM: f64 = 2.0;

/// Newton steps to a lifted pose.
const NEWTON_STEPS: usize = 8;

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
}

impl Stops {
    /// Proves a stop from every sample.
    pub(super) fn prove(scene: &Scene, trajectory: &Trajectory) -> Result<Self, Refusal> {
        let brake_ticks = brake_ticks(scene, trajectory)?;
        let mut lifts = Vec::new();
        let body = Body::new(scene);
        for span in &trajectory.spans {
            prove_lifts(&body, trajectory, span, &mut lifts)?;
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
        let after = self.lifts.partition_point(|lift| lift.end <= sample);
        self.lifts
            .get(after)
            .filter(|lift| lift.first <= sample)
            .map(|lift| lift.by_rad)
    }
}

/// Whether the tip is on its way to the sheet, at it, or on its way from it.
pub(super) fn touches(kind: SpanKind) -> bool {
    matches!(
        kind,
        SpanKind::Draw | SpanKind::Lower | SpanKind::Lift | SpanKind::Dwell | SpanKind::Dip
    )
}

fn prove_lifts(
    body: &Body<'_>,
    trajectory: &Trajectory,
    span: &Span,
    lifts: &mut Vec<Lift>,
) -> Result<(), Refusal> {
    let mut next = span.first;
    let here = |next: usize| trajectory.samples.get(next).filter(|_| next < span.end);
    while let Some(from) = here(next) {
        let end = (next + LIFT_EVERY).min(span.end);
        next = match lift_from(body, trajectory, span, from, next..end) {
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
    body: &Body<'_>,
    trajectory: &Trajectory,
    span: &Span,
    from: &Joints,
    Range { start: first, end }: Range<usize>,
) -> Result<Option<Lift>, String> {
    if !touches(span.kind) && !is_low(body.scene(), span.pen, from) {
        return Ok(None);
    }
    let by_rad = lift(body, span.pen, from)?;
    let fits = |sample: &usize| {
        let between = trajectory.samples.get(*sample);
        between.is_some_and(|from| {
            Walk::new(body, span.pen, from)
                .is_ok_and(|walk| walk.is_clear(&by_rad, LIFT_POINTS_BETWEEN).is_ok())
        })
    };
    let shared = (first + 1..end).take_while(fits).count();
    Ok(Some(Lift {
        first,
        end: first + 1 + shared,
        by_rad,
    }))
}

/// Whether a tip that only passes is over the sheet and lower than travels are.
fn is_low(scene: &Scene, pen: usize, q: &Joints) -> bool {
    let tip = Posture::new(scene, q).tip_m(scene, pen);
    let height = tip.and_then(|tip| Posture::height_mm(scene, &tip));
    height.is_some_and(|height| height < scene.heights.lift_mm - UP_MM)
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
    if let Some(sample) = needed.iter().position(|ticks| *ticks > BRAKE_TICKS_MAX) {
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
fn lift(body: &Body<'_>, pen: usize, from: &Joints) -> Result<Joints, String> {
    let scene = body.scene();
    let posture = Posture::new(scene, from);
    let tip = posture.tip_m(scene, pen).ok_or("there is no such pen")?;
    let under = scene.surface.project(&tip);
    let normal = scene.surface.at(under.at_mm).normal;
    let rise_mm = scene.heights.lift_mm - under.height_mm;
    if rise_mm <= 0.0 {
        return Ok(from.map(|_, _| 0.0));
    }
    let target = tip + normal.scale(rise_mm / 1e3);
    let to = reach(scene, pen, from, &target)?;
    let by_rad = to.zip(from, |to, from| to - from);
    Walk::new(body, pen, from)?.is_clear(&by_rad, LIFT_POINTS)?;
    Ok(by_rad)
}

/// Joint angles near `from` that bring the tip to `target`: damped least squares, limits kept.
fn reach(scene: &Scene, pen: usize, from: &Joints, target: &Point3<f64>) -> Result<Joints, String> {
    let limits = scene.arm.limits;
    let mut q = *from;
    for _ in 0..NEWTON_STEPS {
        let tip = tip_m(scene, pen, &q)?;
        let error = target - tip;
        if error.norm() < 1e-5 {
            break;
        }
        let jacobian = tip_jacobian(scene, pen, &q, &tip)?;
        let damped = &jacobian * jacobian.transpose() + Matrix3::identity() * 1e-8;
        // Damping makes it positive; without an inverse there would be no step.
        let inverse = damped.try_inverse().unwrap_or_else(Matrix3::zeros);
        let step = jacobian.transpose() * (inverse * error);
        q = q.map(|joint, angle| {
            let moved = angle + step.get(joint).copied().unwrap_or(0.0);
            let low = limits
                .lower_rad
                .get(joint)
                .copied()
                .unwrap_or(moved)
                .min(angle);
            let high = limits
                .upper_rad
                .get(joint)
                .copied()
                .unwrap_or(moved)
                .max(angle);
            moved.clamp(low, high)
        });
    }
    let short_mm = (target - tip_m(scene, pen, &q)?).norm() * 1e3;
    if short_mm > LIFTED_MM {
        return Err(format!(
            "from here the tip cannot be lifted to {} mm when the arm is stopped ({short_mm:.1} mm short): move the sheet, or lower heights.lift_mm",
            scene.heights.lift_mm
        ));
    }
    Ok(q)
}

fn pen_tip_m(body: &Body<'_>, stance: &Stance, pen: usize) -> Result<Point3<f64>, String> {
    let pen = body.scene().pen(pen);
    pen.map(|pen| stance.frames().tool * pen.tip_m)
        .ok_or_else(|| "there is no such pen".to_owned())
}

fn tip_m(scene: &Scene, pen: usize, q: &Joints) -> Result<Point3<f64>, String> {
    Posture::new(scene, q)
        .tip_m(scene, pen)
        .ok_or_else(|| "there is no such pen".to_owned())
}

/// By differences: independent of the planner's.
fn tip_jacobian(
    scene: &Scene,
    pen: usize,
    q: &Joints,
    tip: &Point3<f64>,
) -> Result<Matrix3xX<f64>, String> {
    const STEP_RAD: f64 = 1e-6;
    let mut columns: Vec<Vector3<f64>> = Vec::with_capacity(q.len());
    for joint in 0..q.len() {
        let moved = q.map(|index, angle| {
            if index == joint {
                angle + STEP_RAD
            } else {
                angle
            }
        });
        columns.push((tip_m(scene, pen, &moved)? - tip) / STEP_RAD);
    }
    Ok(Matrix3xX::from_columns(&columns))
}

/// A way up from one sample, and how near it may come to anything.
struct Walk<'a> {
    body: &'a Body<'a>,
    scene: &'a Scene,
    pen: usize,
    from: &'a Joints,
    tip: Point3<f64>,
    normal: Vector3<f64>,
    /// What stands nearer already than a plan may go was let through: it may not come nearer yet.
    sheet_m: f64,
    own_m: f64,
    keep_outs_m: Vec<f64>,
}

impl<'a> Walk<'a> {
    fn new(body: &'a Body<'a>, pen: usize, from: &'a Joints) -> Result<Self, String> {
        let (scene, stance) = (body.scene(), body.at(from));
        let tip = pen_tip_m(body, &stance, pen)?;
        let under = scene.surface.project(&tip);
        let keep_outs = scene.keep_outs.iter();
        let near_box = |corners| body.near_box(&stance, corners);
        Ok(Self {
            body,
            scene,
            pen,
            from,
            tip,
            normal: scene.surface.at(under.at_mm).normal.into_inner(),
            sheet_m: floor(body.over_sheet(&stance).map(|near| near.metres)),
            own_m: floor(body.nearest_two(&stance).map(|(_, _, metres)| metres)),
            keep_outs_m: keep_outs
                .map(|keep_out| floor(near_box(&keep_out.corners).map(|near| near.metres)))
                .collect(),
        })
    }

    /// Whether the straight line of joint angles rises all the way and stays clear.
    fn is_clear(&self, by_rad: &Joints, points: usize) -> Result<(), String> {
        let mut height_before = f64::NEG_INFINITY;
        for point in 0..=points {
            let share = point as f64 / points as f64;
            let q = self.from.zip(by_rad, |from, by| from + by * share);
            self.inside_limits(&q)?;
            let stance = self.body.at(&q);
            height_before = self.rises(&stance, height_before)?;
            self.stays_clear(&stance)?;
        }
        Ok(())
    }

    fn inside_limits(&self, q: &Joints) -> Result<(), String> {
        let arm = &self.scene.arm;
        for (joint, (at, from)) in q.iter().zip(self.from.iter()).enumerate() {
            let low = arm.limits.lower_rad.get(joint).copied();
            let high = arm.limits.upper_rad.get(joint).copied();
            let (low, high) = (low.unwrap_or(*from), high.unwrap_or(*from));
            if *at < low.min(*from) - 1e-6 || *at > high.max(*from) + 1e-6 {
                return Err(format!(
                    "a stop here would lift {} to {at:.3} rad; {low:.3} to {high:.3} are allowed",
                    arm.joint_name(joint)
                ));
            }
        }
        Ok(())
    }

    /// How high the tip is over where it began.
    fn rises(&self, stance: &Stance, before: f64) -> Result<f64, String> {
        let moved = pen_tip_m(self.body, stance, self.pen)? - self.tip;
        let height = moved.dot(&self.normal);
        let aside_mm = (moved - self.normal.scale(height)).norm() * 1e3;
        if height < before - 1e-6 || aside_mm > LIFT_ASIDE_MM {
            return Err(format!(
                "a stop here could not lift the tip straight up: it would stray {aside_mm:.1} mm; {LIFT_ASIDE_MM} mm is the limit"
            ));
        }
        Ok(height)
    }

    fn stays_clear(&self, stance: &Stance) -> Result<(), String> {
        let body = self.body;
        let too_near = |metres: f64, least_m: f64| metres < least_m - 1e-6;
        let refused = |what: String, metres: f64, other: &str| {
            format!(
                "a stop here would bring {what} within {:.1} mm of {other}",
                metres * 1e3
            )
        };
        if let Some(near) = body.over_sheet(stance)
            && too_near(near.metres, self.sheet_m)
        {
            return Err(refused(body.what(near.part), near.metres, "the sheet"));
        }
        if let Some((one, other, metres)) = body.nearest_two(stance)
            && too_near(metres, self.own_m)
        {
            return Err(refused(body.what(one), metres, &body.what(other)));
        }
        for (keep_out, least_m) in self.scene.keep_outs.iter().zip(&self.keep_outs_m) {
            let near = body.near_box(stance, &keep_out.corners);
            if let Some(near) = near.filter(|near| too_near(near.metres, *least_m)) {
                let other = format!("keep-out `{}`", keep_out.name);
                return Err(refused(body.what(near.part), near.metres, &other));
            }
        }
        Ok(())
    }
}

/// How near something may come that stands so near now.
fn floor(now_m: Option<f64>) -> f64 {
    now_m.map_or(CLEARANCE_M, |metres| metres.min(CLEARANCE_M))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use crate::plan::{self, Patient};
    use crate::scene::Library;

    /// A way that would bring the body to the sheet, or the joint beyond its range, is no lift.
    #[test]
    fn a_way_that_comes_too_near_is_no_lift() {
        let scene = Library::new(None).scene("default", None).unwrap();
        let plan = plan::draw(&scene, &scene.rest_rad, &Patient).unwrap();
        let mut spans = plan.trajectory.spans.iter();
        let draw = spans.find(|span| span.kind == SpanKind::Draw).unwrap();
        let from = plan.trajectory.samples.get(draw.first).unwrap();
        let body = Body::new(&scene);
        let walk = Walk::new(&body, draw.pen, from).unwrap();
        assert_eq!(walk.stays_clear(&body.at(from)), Ok(()));
        let bent = |joint: usize, by: f64| from.map(|at, q| if at == joint { q + by } else { q });
        let said: Vec<String> = (1..4)
            .flat_map(|joint| [(joint, -0.3), (joint, 0.3)])
            .filter_map(|(joint, by)| walk.stays_clear(&body.at(&bent(joint, by))).err())
            .collect();
        assert!(
            said.iter().any(|why| why.ends_with("mm of the sheet")),
            "{said:?}"
        );
        assert_eq!(walk.inside_limits(from), Ok(()));
        assert!(walk.inside_limits(&bent(1, 4.0)).is_err());
        assert!(walk.inside_limits(&bent(1, -4.0)).is_err());
        // Down, and up but aside.
        assert!(walk.rises(&body.at(from), 1e-3).is_err());
        assert!(
            walk.rises(&body.at(&bent(0, 0.1)), f64::NEG_INFINITY)
                .is_err()
        );
    }
}
