//! From every sample of a trajectory, a proven stop: a deceleration along the path and, where the
//! tip is near the sheet, a lift.
//!
//! Braking walks on along samples that were judged, ever slower, so it stays on a path that is
//! known to be clear; only its acceleration has to be bounded, by how long it takes. The lift is a
//! straight line of joint angles to a pose with the tip higher along the normal; each is walked
//! here and must rise all the way, stay inside limits and out of keep-outs.

use nalgebra::{Matrix3, Matrix3xX, Point3, Vector3};

use super::clearance::Posture;
use super::{Refusal, Rule};
use crate::plan::{SpanKind, Trajectory};
use crate::scene::Scene;
use crate::units::Joints;

/// The share of a joint's acceleration that braking may add to what the path itself needs.
const BRAKE_SHARE: f64 = 0.5;

/// A stop along the path never takes fewer ticks than this, so that it is smooth.
const BRAKE_TICKS_MIN: f64 = 3.0;

/// And never more: a plan that needs longer is too fast to be stopped.
const BRAKE_TICKS_MAX: f64 = 60.0;

/// Lifts are proven at every so many samples and at the ends of spans; between two of them the
/// nearer one before is used.
const LIFT_EVERY: usize = 4;

/// Points at which a lift is looked at.
const LIFT_POINTS: usize = 8;

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
        for span in trajectory.spans.iter().filter(|span| touches(span.kind)) {
            for first in (span.first..span.end).step_by(LIFT_EVERY) {
                let end = (first + LIFT_EVERY).min(span.end);
                let Some(from) = trajectory.samples.get(first) else {
                    continue;
                };
                let by_rad = lift(scene, span.pen, from).map_err(|why| Refusal {
                    rule: Rule::Stop,
                    sample: first,
                    doing: Some(span.kind),
                    item: span.item,
                    at_mm: None,
                    excess: None,
                    why,
                })?;
                lifts.push(Lift { first, end, by_rad });
            }
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

pub(super) fn touches(kind: SpanKind) -> bool {
    matches!(
        kind,
        SpanKind::Draw | SpanKind::Lower | SpanKind::Lift | SpanKind::Dwell | SpanKind::Dip
    )
}

fn brake_ticks(scene: &Scene, trajectory: &Trajectory) -> Result<Vec<f64>, Refusal> {
    let period = trajectory.period.as_secs_f64();
    let limits = scene.arm.limits;
    let needed: Vec<f64> = trajectory
        .samples
        .windows(2)
        .map(|pair| match pair {
            [a, b] => b
                .zip(a, |b, a| (b - a).abs() / period)
                .zip(&limits.acceleration_rad_s2, |speed, hardest| {
                    speed / (hardest * BRAKE_SHARE * period)
                })
                .iter()
                .copied()
                .fold(BRAKE_TICKS_MIN, f64::max),
            _ => BRAKE_TICKS_MIN,
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
fn lift(scene: &Scene, pen: usize, from: &Joints) -> Result<Joints, String> {
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
    walk(scene, pen, from, &by_rad, &tip, &normal)?;
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
        let Some(inverse) = damped.try_inverse() else {
            break;
        };
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

fn walk(
    scene: &Scene,
    pen: usize,
    from: &Joints,
    by_rad: &Joints,
    start: &Point3<f64>,
    normal: &Vector3<f64>,
) -> Result<(), String> {
    let mut height_before = f64::NEG_INFINITY;
    for point in 0..=LIFT_POINTS {
        let share = point as f64 / LIFT_POINTS as f64;
        let q = from.zip(by_rad, |from, by| from + by * share);
        let posture = Posture::new(scene, &q);
        let tip = posture.tip_m(scene, pen).ok_or("there is no such pen")?;
        let moved = tip - start;
        let height = moved.dot(normal);
        let aside_mm = (moved - normal.scale(height)).norm() * 1e3;
        if height < height_before - 1e-6 || aside_mm > LIFT_ASIDE_MM {
            return Err(format!(
                "a stop here could not lift the tip straight up: it would stray {aside_mm:.1} mm; {LIFT_ASIDE_MM} mm is the limit"
            ));
        }
        height_before = height;
        for keep_out in &scene.keep_outs {
            let near = posture.near_box(scene, &keep_out.corners);
            if let Some(near) = near.filter(|near| near.metres < 0.0) {
                return Err(format!(
                    "a stop here would lift {} into keep-out `{}`",
                    near.what, keep_out.name
                ));
            }
        }
    }
    Ok(())
}
