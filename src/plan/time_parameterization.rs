//! A course made samples: paced, sampled at the fixed rate, checked by differences, and slowed
//! where and for as long as a difference passes its limit.

#![expect(
    clippy::indexing_slicing,
    reason = "every index is a waypoint, and a traced course has three or more"
)]

use nalgebra::Point3;

use super::PERIOD_S;
use super::cartesian_path::{CartesianPath, whole};
use super::error::RefusalCause;
use super::follow_path::PathWaypoint;
use super::scalar_profile::{ProfileLimits, ScalarProfile};
use super::tool_ik::ToolIk;
use super::velocity_profile::{self, LinearLimit, PathLimits};
use base::units::JointVector;
use scene::Surface;

/// Limits of the tip's motion, and the pacing mode.
#[derive(Clone, Copy, Debug)]
pub(super) struct TipLimits {
    pub(super) speed_m_s: f64,
    pub(super) acceleration_m_s2: f64,
    /// At the beginning and the end; between them, accelerations may change at once.
    pub(super) jerk_m_s3: f64,
    /// The pacing between beginning and end.
    pub(super) manner: PacingMode,
}

impl TipLimits {
    /// The same for a way in one number.
    pub(super) fn as_profile(self) -> ProfileLimits {
        ProfileLimits {
            speed: self.speed_m_s,
            acceleration: self.acceleration_m_s2,
            jerk: self.jerk_m_s3,
        }
    }
}

/// The pacing of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacingMode {
    /// As soon as every limit allows, at each place of its own.
    Soonest,
    /// With one ramp up and one down; for ways without corners, where jerk matters throughout.
    Ramp,
}

/// Rounds of slowing where it is needed, before the whole is slowed.
const ROUNDS_LOCAL: usize = 12;
const ROUNDS_WHOLE: usize = 24;
/// Passing a limit by more than this while slowing does not help is a joint's jump, and no matter of speed.
const JUMP_RATIO: f64 = 2.0;
/// Of each limit, when pacing: stations lie apart, and between them a little more is needed.
const USED: f64 = 0.97;
const USED_RAMP: f64 = 0.999;
/// Number of stations slowed on each side of a sample that violates a limit.
const AROUND: usize = 4;
/// Samples of one course: an hour.
const SAMPLES_MAX: usize = 360_000;
/// Inverse kinematics leaves this much noise in differences.
pub(super) const NOISE: f64 = 1e-6;

/// A course that is solved, and is to be timed.
#[derive(Clone, Copy)]
pub(super) struct PacedPath<'a> {
    pub(super) hand: &'a ToolIk<'a>,
    pub(super) surface: &'a Surface,
    pub(super) course: &'a CartesianPath,
    pub(super) knots: &'a [PathWaypoint],
    pub(super) asked: TipLimits,
}

impl PacedPath<'_> {
    /// Its samples after the first, which is where it begins.
    pub(super) fn samples(&self) -> Result<Vec<JointVector>, RefusalCause> {
        match self.asked.manner {
            PacingMode::Soonest => self.time_optimal(),
            PacingMode::Ramp => self.single_profile(),
        }
    }

    fn time_optimal(&self) -> Result<Vec<JointVector>, RefusalCause> {
        let mut ease = vec![USED; self.knots.len()];
        let mut stretch = 1.0;
        let mut worst = f64::INFINITY;
        for round in 0..ROUNDS_LOCAL + ROUNDS_WHOLE {
            let timing = WaypointTiming::new(self, &ease, stretch)?;
            let places = (0..timing.samples + 1).map(|n| timing.find(n));
            let run = self.sampled(places)?;
            let before = std::mem::take(&mut worst);
            for (knot, ratio) in run.limit_violations(self.hand, self.asked) {
                worst = f64::max(worst, ratio);
                slow(&mut ease, knot, ratio);
            }
            if worst <= 1.0 + NOISE {
                return Ok(run.joints.into_iter().skip(1).collect());
            }
            if round > ROUNDS_LOCAL && worst > JUMP_RATIO && worst >= before {
                break;
            }
            if round >= ROUNDS_LOCAL {
                stretch *= worst.clamp(1.02, 2.0);
            }
        }
        Err(RefusalCause::TooFast { ratio: worst })
    }

    fn single_profile(&self) -> Result<Vec<JointVector>, RefusalCause> {
        let length = self.knots.last().map_or(0.0, |knot| knot.s_m);
        let mut most = ProfileLimits {
            speed: self.asked.speed_m_s * USED_RAMP,
            acceleration: self.asked.acceleration_m_s2 * USED_RAMP,
            jerk: self.asked.jerk_m_s3,
        };
        let mut worst = f64::INFINITY;
        for _ in 0..ROUNDS_LOCAL + ROUNDS_WHOLE {
            let ramp =
                ScalarProfile::new(length, most).ok_or(RefusalCause::TooFast { ratio: worst })?;
            let periods = (ramp.duration_s() / PERIOD_S).ceil().max(1.0);
            let samples = whole(periods);
            RefusalCause::refuse_longer(samples, SAMPLES_MAX)?;
            let rate = ramp.duration_s() / periods;
            let place = |n| place_at(self.knots, ramp.at(n as f64 * rate));
            let run = self.sampled((0..samples + 1).map(place))?;
            let before = worst;
            worst = run.worst_ratio(self.hand, self.asked);
            if worst <= 1.0 + NOISE {
                return Ok(run.joints.into_iter().skip(1).collect());
            }
            if worst > JUMP_RATIO && worst >= before {
                break;
            }
            // The ratio is squared where it is a speed's: slower by its root is slow enough for both.
            let by = (worst * 1.01).min(4.0);
            most.speed /= by.sqrt();
            most.acceleration /= by;
            most.jerk /= by * by.sqrt();
        }
        Err(RefusalCause::TooFast { ratio: worst })
    }

    /// Solves the joints at places: waypoints, and how far on to the next one each is.
    fn sampled(
        &self,
        places: impl ExactSizeIterator<Item = (usize, f64)>,
    ) -> Result<TimedPath, RefusalCause> {
        let count = places.len();
        let mut run = TimedPath {
            joints: Vec::with_capacity(count),
            points: Vec::with_capacity(count),
            knots: Vec::with_capacity(count),
        };
        for (n, (knot, share)) in places.enumerate() {
            let (from, to) = (&self.knots[knot], &self.knots[knot + 1]);
            let (q, point) = match (n, n + 1 == count) {
                (0, _) => (from.q, from.point_m),
                (_, true) => (to.q, to.point_m),
                _ => self.between(from, to, share)?,
            };
            run.joints.push(q);
            run.points.push(point);
            run.knots.push(knot);
        }
        Ok(run)
    }

    /// Joints at a share of the way from one waypoint to the next, on the course and not on a chord.
    fn between(
        &self,
        from: &PathWaypoint,
        to: &PathWaypoint,
        share: f64,
    ) -> Result<(JointVector, Point3<f64>), RefusalCause> {
        let begin = if from.piece == to.piece { from.t } else { 0.0 };
        let place = self.course[to.piece].at(self.surface, begin + (to.t - begin) * share);
        let seed = from.q.zip(&to.q, |a, b| a + (b - a) * share);
        let found = self.hand.solve(&place, &seed)?;
        Ok((found.q_rad, place.point_m))
    }
}

/// The waypoint before a distance, and how far on to the next one it is, 0 to 1.
fn place_at(knots: &[PathWaypoint], s_m: f64) -> (usize, f64) {
    let last = knots.len().saturating_sub(2);
    let behind = knots.partition_point(|knot| knot.s_m <= s_m);
    let knot = behind.saturating_sub(1).min(last);
    let (a, b) = (knots[knot].s_m, knots[knot + 1].s_m);
    // Waypoints at one place are passed at once.
    let share = if b > a {
        ((s_m - a) / (b - a)).clamp(0.0, 1.0)
    } else {
        1.0
    };
    (knot, share)
}

fn slow(ease: &mut [f64], knot: usize, ratio: f64) {
    if ratio <= 1.0 + NOISE {
        return;
    }
    let first = knot.saturating_sub(AROUND);
    for ease in ease.iter_mut().skip(first).take(2 * AROUND + 1) {
        *ease = f64::max(*ease / f64::min(ratio * 1.01, 1.5), 0.02);
    }
}

/// Time and speed at each waypoint.
struct WaypointTiming {
    at_s: Vec<f64>,
    speed_m_s: Vec<f64>,
    samples: usize,
    /// Seconds of the pace for a second of the clock, at most 1.
    rate: f64,
}

impl WaypointTiming {
    fn new(path: &PacedPath<'_>, ease: &[f64], stretch: f64) -> Result<Self, RefusalCause> {
        let limits = limits(path, ease);
        let paced = velocity_profile::pace(&limits).into_iter();
        let speed_m_s: Vec<f64> = paced.map(f64::sqrt).collect();
        let mut at_s = Vec::with_capacity(path.knots.len());
        let mut now = 0.0;
        at_s.push(now);
        for (s, v) in limits.s.windows(2).zip(speed_m_s.windows(2)) {
            now += 2.0 * (s[1] - s[0]) / (v[0] + v[1]);
            at_s.push(now);
        }
        let periods = (now * stretch / PERIOD_S).ceil().max(1.0);
        let samples = whole(periods);
        if !now.is_finite() || samples > SAMPLES_MAX {
            let ratio = now / PERIOD_S;
            return Err(RefusalCause::TooFast { ratio });
        }
        Ok(Self {
            at_s,
            speed_m_s,
            samples,
            rate: now / (periods * PERIOD_S),
        })
    }

    /// The waypoint before sample `n`, and how far on to the next one it is, 0 to 1.
    fn find(&self, n: usize) -> (usize, f64) {
        let t = n as f64 * PERIOD_S * self.rate;
        let last = self.at_s.len().saturating_sub(2);
        let behind = self.at_s.partition_point(|at| *at <= t);
        let knot = behind.saturating_sub(1).min(last);
        let pair = |of: &[f64]| (of[knot], of[knot + 1]);
        let ((begin, end), (from, to)) = (pair(&self.at_s), pair(&self.speed_m_s));
        let share = ((t - begin) / (end - begin)).clamp(0.0, 1.0);
        // Evenly accelerated, and so of the distance:
        let passed = share * (2.0 * from + (to - from) * share) / (from + to);
        (knot, passed.clamp(0.0, 1.0))
    }
}

/// The limits at each waypoint.
fn limits(path: &PacedPath<'_>, ease: &[f64]) -> PathLimits {
    let PacedPath {
        hand, knots, asked, ..
    } = *path;
    let joints = hand.arm.dof();
    let most = &hand.arm.limits;
    let mut limits = PathLimits {
        s: knots.iter().map(|knot| knot.s_m).collect(),
        stride: joints + 2,
        ..PathLimits::default()
    };
    limits.x_max.reserve(knots.len());
    limits.rows.reserve(knots.len() * limits.stride);
    let end_m = knots.last().map_or(0.0, |knot| knot.s_m);
    for ((index, knot), ease) in knots.iter().enumerate().zip(ease) {
        let slope = PathDerivatives::at(knots, index);
        let from_rest = ramp_x(knot.s_m.min(end_m - knot.s_m), asked.jerk_m_s3);
        let bent = ACROSS * asked.acceleration_m_s2 / slope.bend.max(1e-9);
        let mut x_max = asked.speed_m_s.powi(2).min(bent);
        for joint in 0..joints {
            let (a, b) = (slope.first[joint], slope.second[joint]);
            x_max = x_max.min((most.velocity_rad_s[joint] / a.abs().max(1e-9)).powi(2));
            let c = most.acceleration_rad_s2[joint] * ease;
            limits.rows.push(LinearLimit { a, b, c });
        }
        let c = asked.acceleration_m_s2 * ease;
        let b = slope.bend * TOGETHER;
        limits.rows.push(LinearLimit { a: 1.0, b, c });
        limits.rows.push(LinearLimit { a: 1.0, b: -b, c });
        let x_max = x_max * ease * caution(knot.condition);
        limits.x_max.push(x_max.min(from_rest));
    }
    limits
}

/// The squared speed at a distance from rest, where the acceleration rises evenly from nothing:
/// `s = j·t³/6`, `v = j·t²/2`.
fn ramp_x(s_m: f64, jerk_m_s3: f64) -> f64 {
    let t_s = (6.0 * s_m.max(0.0) / jerk_m_s3).cbrt();
    (jerk_m_s3 * t_s * t_s / 2.0).powi(2)
}

/// Condition number above which the tip is slowed: small movements of the tip need large ones of
/// the joints, and servo errors grow at the tip.
const CONDITION_SLOW: f64 = 17.0;

/// By how much the squared speed is cut there.
fn caution(condition: f64) -> f64 {
    let ratio = CONDITION_SLOW / condition.max(CONDITION_SLOW);
    (ratio * ratio).max(0.01)
}

/// Acceleration along and across the line share one limit. Of the quarter of the circle that they
/// may fill, a chord from (0, 1) to (√3/2, 1/2) is used, so that the limit stays linear.
const ACROSS: f64 = 0.866;
const TOGETHER: f64 = 0.577;

/// First and second derivatives along the path.
struct PathDerivatives {
    first: JointVector,
    second: JointVector,
    /// Of the tip's path: one over its radius.
    bend: f64,
}

impl PathDerivatives {
    /// By the parabola through three neighbours.
    fn at(knots: &[PathWaypoint], index: usize) -> Self {
        let middle = index.clamp(1, knots.len() - 2);
        let (a, b, c) = (&knots[middle - 1], &knots[middle], &knots[middle + 1]);
        let (before, after) = ((b.s_m - a.s_m).max(1e-12), (c.s_m - b.s_m).max(1e-12));
        let second_of =
            |a: f64, b: f64, c: f64| 2.0 * ((c - b) / after - (b - a) / before) / (before + after);
        let rise = a.q.zip(&b.q, |a, b| (b - a) / before);
        let next = b.q.zip(&c.q, |b, c| (c - b) / after);
        let second = rise.zip(&next, |r, n| 2.0 * (n - r) / (before + after));
        let first = match index.cmp(&middle) {
            std::cmp::Ordering::Less => rise.zip(&second, |r, d| r - d * before / 2.0),
            std::cmp::Ordering::Greater => next.zip(&second, |n, d| n + d * after / 2.0),
            std::cmp::Ordering::Equal => {
                rise.zip(&next, |r, n| (r * after + n * before) / (before + after))
            }
        };
        let bend =
            [0, 1, 2].map(|axis| second_of(a.point_m[axis], b.point_m[axis], c.point_m[axis]));
        Self {
            first,
            second,
            bend: bend.iter().map(|v| v * v).sum::<f64>().sqrt(),
        }
    }
}

/// A course as sampled.
pub(super) struct TimedPath {
    pub(super) joints: Vec<JointVector>,
    /// Positions of the tip.
    pub(super) points: Vec<Point3<f64>>,
    /// The waypoint before.
    pub(super) knots: Vec<usize>,
}
