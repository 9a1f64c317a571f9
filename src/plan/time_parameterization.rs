//! Turns a path into samples: paces it, samples it at the fixed rate, checks differences, and slows
//! it where and for as long as a difference exceeds its limit.

#![expect(
    clippy::indexing_slicing,
    reason = "every index is a waypoint, and a followed path has three or more"
)]

use nalgebra::Point3;

use super::PERIOD_S;
use super::cartesian_path::{CartesianPath, to_count};
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
    /// Applies at the beginning and the end; between them, acceleration may change at once.
    pub(super) jerk_m_s3: f64,
    /// The pacing between beginning and end.
    pub(super) manner: PacingMode,
}

impl TipLimits {
    /// Returns the same limits for a motion in one dimension.
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
    /// As fast as the limits at each place allow.
    Soonest,
    /// With one ramp up and one down; for paths without corners, where jerk matters throughout.
    Ramp,
}

/// Rounds of slowing locally, and then of slowing the whole path.
const ROUNDS_LOCAL: usize = 12;
const ROUNDS_WHOLE: usize = 24;
/// A ratio above this that slowing does not reduce comes from a joint's jump, not from speed.
const JUMP_RATIO: f64 = 2.0;
/// Fraction of each limit used for pacing: between two stations a little more is needed than at
/// them.
const USED: f64 = 0.97;
const USED_RAMP: f64 = 0.999;
/// Rounds of slowing where a joint turns abruptly, in between.
const ROUNDS_KINKS: usize = 24;
/// Number of times that the path is halved there, so that only hundredths of a millimetre are slow.
const HALVINGS: usize = 5;
/// The joints turn abruptly where the tip has to be slower than this fraction of its speed.
const KINK_SHARE: f64 = 0.25;
/// A path that takes this many times as long as at first, and is still too fast, is given up.
const STRETCHED_MUCH: usize = 3;
/// A ramp that takes this many times as long as without the joints' limits is slowed by one place.
const SLOWED_MUCH: usize = 2;
/// Number of stations eased on each side of a sample that violates a limit.
const AROUND: usize = 4;
/// Least fraction of the limits that is left.
const EASE_LEAST: f64 = 0.02;
const EASE_LEAST_AT_KINKS: f64 = 0.2;
/// Most samples of one path: an hour.
const SAMPLES_MAX: usize = 360_000;
/// Inverse kinematics leaves this much noise in differences.
pub(super) const NOISE: f64 = 1e-6;

/// The slowing of a path at each waypoint.
struct PathSlowing {
    /// Fraction of the limits that is used.
    ease: Vec<f64>,
    /// Largest squared speed.
    x_max: Vec<f64>,
}

/// A solved path that is to be timed.
#[derive(Clone, Copy)]
pub(super) struct PacedPath<'a> {
    pub(super) ik: &'a ToolIk<'a>,
    pub(super) surface: &'a Surface,
    pub(super) path: &'a CartesianPath,
    pub(super) waypoints: &'a [PathWaypoint],
    pub(super) tip_limits: TipLimits,
}

impl PacedPath<'_> {
    /// Returns the samples after the first, which is where the path begins.
    pub(super) fn samples(&self) -> Result<Vec<JointVector>, RefusalCause> {
        match self.tip_limits.manner {
            PacingMode::Soonest => self.time_optimal(true),
            PacingMode::Ramp => self.ramped(),
        }
    }

    /// Returns the path with one ramp up and one down. Where a single place slows all of that much, it
    /// is paced place by place instead.
    fn ramped(&self) -> Result<Vec<JointVector>, RefusalCause> {
        let (samples, unslowed) = self.single_profile()?;
        if samples.len() < unslowed * SLOWED_MUCH {
            return Ok(samples);
        }
        let paced = self.slowed_at_kinks();
        let paced = paced.or_else(|| self.time_optimal(false).ok());
        let shorter = paced.filter(|paced| paced.len() < samples.len());
        Ok(shorter.unwrap_or(samples))
    }

    /// Returns the path as fast as its limits allow, `with_kinks` also where the joints turn abruptly.
    fn time_optimal(&self, with_kinks: bool) -> Result<Vec<JointVector>, RefusalCause> {
        let mut slowing = PathSlowing::none(self.waypoints.len());
        let mut stretch = 1.0;
        let mut worst = f64::INFINITY;
        for round in 0..ROUNDS_LOCAL + ROUNDS_WHOLE {
            if with_kinks
                && round == ROUNDS_LOCAL
                && let Some(samples) = self.slowed_at_kinks()
            {
                return Ok(samples);
            }
            let timing = WaypointTiming::new(self, &slowing, stretch)?;
            let timed = self.sample_timing(&timing)?;
            let before = std::mem::take(&mut worst);
            for (waypoint, ratio) in timed.limit_violations(self.ik, self.tip_limits) {
                worst = f64::max(worst, ratio);
                slowing.ease_around(waypoint, ratio, EASE_LEAST);
            }
            if worst <= 1.0 + NOISE {
                return Ok(timed.joints.into_iter().skip(1).collect());
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

    /// Slows a path to any speed where its joints turn abruptly, and only there: a joint comes to its
    /// limit, or the arm is stretched. `None` if that is not enough.
    fn slowed_at_kinks(&self) -> Option<Vec<JointVector>> {
        let waypoints = self.refined_at_kinks().ok()?;
        let paced_path = PacedPath {
            waypoints: &waypoints,
            ..*self
        };
        let mut slowing = PathSlowing::none(waypoints.len());
        for (index, x_max) in slowing.x_max.iter_mut().enumerate() {
            if paced_path.is_kink(index) {
                *x_max = (paced_path.kink_m_s(index) / 2.0).powi(2);
            }
        }
        let mut samples_first = None;
        for _ in 0..ROUNDS_KINKS {
            let timing = WaypointTiming::new(&paced_path, &slowing, 1.0).ok()?;
            let first = *samples_first.get_or_insert(timing.samples);
            if timing.samples > first * STRETCHED_MUCH {
                // The joints cannot pass at any speed.
                return None;
            }
            let timed = paced_path.sample_timing(&timing).ok()?;
            let violations = timed.limit_violations(self.ik, self.tip_limits);
            if violations.iter().all(|(_, ratio)| *ratio <= 1.0 + NOISE) {
                return Some(timed.joints.into_iter().skip(1).collect());
            }
            for (waypoint, ratio) in violations {
                slowing.ease_around(waypoint, ratio, EASE_LEAST_AT_KINKS);
                slowing.slow_at(waypoint, ratio, &timing.speed_m_s);
            }
        }
        None
    }

    /// Returns the waypoints, with more of them where the joints turn abruptly.
    fn refined_at_kinks(&self) -> Result<Vec<PathWaypoint>, RefusalCause> {
        let mut waypoints = self.waypoints.to_vec();
        for _ in 0..HALVINGS {
            let coarse = PacedPath {
                waypoints: &waypoints,
                ..*self
            };
            let mut finer = Vec::with_capacity(2 * waypoints.len());
            for (index, pair) in waypoints.windows(2).enumerate() {
                finer.push(pair[0]);
                if coarse.is_kink(index) || coarse.is_kink(index + 1) {
                    finer.push(self.midpoint(&pair[0], &pair[1])?);
                }
            }
            finer.extend(waypoints.last());
            waypoints = finer;
        }
        Ok(waypoints)
    }

    /// Returns whether the joints turn so abruptly at a waypoint that the tip has to be slow.
    fn is_kink(&self, index: usize) -> bool {
        self.kink_m_s(index) < KINK_SHARE * self.tip_limits.speed_m_s
    }

    /// Returns the speed of the tip at which the joints' turn at a waypoint takes all of a joint's jerk.
    fn kink_m_s(&self, index: usize) -> f64 {
        let Some([a, b, c]) = index
            .checked_sub(1)
            .and_then(|first| self.waypoints.get(first..first + 3))
        else {
            return f64::INFINITY;
        };
        let slope = |from: &PathWaypoint, to: &PathWaypoint| {
            let length_m = (to.s_m - from.s_m).max(1e-12);
            to.q.zip(&from.q, |to, from| (to - from) / length_m)
        };
        let turn = slope(b, c).zip(&slope(a, b), |after, before| (after - before).abs());
        let jerk_rad_s3 = &self.ik.arm.limits.jerk_rad_s3;
        let speeds = turn.zip(jerk_rad_s3, |turn, jerk| jerk * PERIOD_S * PERIOD_S / turn);
        speeds.iter().copied().fold(f64::INFINITY, f64::min)
    }

    fn midpoint(
        &self,
        from: &PathWaypoint,
        to: &PathWaypoint,
    ) -> Result<PathWaypoint, RefusalCause> {
        let (q, point_m) = self.between(from, to, 0.5)?;
        let from_t = if from.piece == to.piece { from.t } else { 0.0 };
        Ok(PathWaypoint {
            t: f64::midpoint(from_t, to.t),
            s_m: f64::midpoint(from.s_m, to.s_m),
            point_m,
            q,
            condition: self.ik.arm.chain.condition(&q, &self.ik.tip),
            ..*to
        })
    }

    fn sample_timing(&self, timing: &WaypointTiming) -> Result<TimedPath, RefusalCause> {
        self.sample((0..timing.samples + 1).map(|n| timing.position_of_sample(n)))
    }

    /// Returns the samples, and how many there would be if no joint slowed them.
    fn single_profile(&self) -> Result<(Vec<JointVector>, usize), RefusalCause> {
        let length = self.waypoints.last().map_or(0.0, |waypoint| waypoint.s_m);
        let mut limits = ProfileLimits {
            speed: self.tip_limits.speed_m_s * USED_RAMP,
            acceleration: self.tip_limits.acceleration_m_s2 * USED_RAMP,
            jerk: self.tip_limits.jerk_m_s3,
        };
        let mut worst = f64::INFINITY;
        let mut unslowed = None;
        for _ in 0..ROUNDS_LOCAL + ROUNDS_WHOLE {
            let ramp =
                ScalarProfile::new(length, limits).ok_or(RefusalCause::TooFast { ratio: worst })?;
            let periods = (ramp.duration_s() / PERIOD_S).ceil().max(1.0);
            let samples = to_count(periods);
            RefusalCause::refuse_longer(samples, SAMPLES_MAX)?;
            let unslowed = *unslowed.get_or_insert(samples);
            let rate = ramp.duration_s() / periods;
            let position = |n| position_at(self.waypoints, ramp.at(n as f64 * rate));
            let timed = self.sample((0..samples + 1).map(position))?;
            let before = worst;
            worst = timed.worst_ratio(self.ik, self.tip_limits);
            if worst <= 1.0 + NOISE {
                return Ok((timed.joints.into_iter().skip(1).collect(), unslowed));
            }
            if worst > JUMP_RATIO && worst >= before {
                break;
            }
            // Ratios of speeds are squared, so slowing by the root is enough for both kinds.
            let by = (worst * 1.01).min(4.0);
            limits.speed /= by.sqrt();
            limits.acceleration /= by;
            limits.jerk /= by * by.sqrt();
        }
        Err(RefusalCause::TooFast { ratio: worst })
    }

    /// Solves the joints at positions: the waypoint before, and the fraction of the way to the next
    /// one.
    fn sample(
        &self,
        positions: impl ExactSizeIterator<Item = (usize, f64)>,
    ) -> Result<TimedPath, RefusalCause> {
        let count = positions.len();
        let mut timed = TimedPath {
            joints: Vec::with_capacity(count),
            points: Vec::with_capacity(count),
            waypoints: Vec::with_capacity(count),
        };
        for (n, (waypoint, fraction)) in positions.enumerate() {
            let (from, to) = (&self.waypoints[waypoint], &self.waypoints[waypoint + 1]);
            let (q, point) = match (n, n + 1 == count) {
                (0, _) => (from.q, from.point_m),
                (_, true) => (to.q, to.point_m),
                _ => self.between(from, to, fraction)?,
            };
            timed.joints.push(q);
            timed.points.push(point);
            timed.waypoints.push(waypoint);
        }
        Ok(timed)
    }

    /// Solves the joints at a fraction of the way from one waypoint to the next, on the path and
    /// not on a chord.
    fn between(
        &self,
        from: &PathWaypoint,
        to: &PathWaypoint,
        fraction: f64,
    ) -> Result<(JointVector, Point3<f64>), RefusalCause> {
        let from_t = if from.piece == to.piece { from.t } else { 0.0 };
        let pose = self.path[to.piece].at(self.surface, from_t + (to.t - from_t) * fraction);
        let seed = from.q.zip(&to.q, |a, b| a + (b - a) * fraction);
        let solution = self.ik.solve(&pose, &seed)?;
        Ok((solution.q_rad, pose.point_m))
    }
}

/// Returns the waypoint before a distance, and the fraction of the way to the next one, 0 to 1.
fn position_at(waypoints: &[PathWaypoint], s_m: f64) -> (usize, f64) {
    let last = waypoints.len().saturating_sub(2);
    let after = waypoints.partition_point(|waypoint| waypoint.s_m <= s_m);
    let waypoint = after.saturating_sub(1).min(last);
    let (a, b) = (waypoints[waypoint].s_m, waypoints[waypoint + 1].s_m);
    // Waypoints at the same place are passed at once.
    let fraction = if b > a {
        ((s_m - a) / (b - a)).clamp(0.0, 1.0)
    } else {
        1.0
    };
    (waypoint, fraction)
}

impl PathSlowing {
    fn none(waypoints: usize) -> Self {
        Self {
            ease: vec![USED; waypoints],
            x_max: vec![f64::INFINITY; waypoints],
        }
    }

    /// Lowers the limits around a waypoint.
    fn ease_around(&mut self, waypoint: usize, ratio: f64, least: f64) {
        if ratio <= 1.0 + NOISE {
            return;
        }
        let first = waypoint.saturating_sub(AROUND);
        for ease in self.ease.iter_mut().skip(first).take(2 * AROUND + 1) {
            *ease = f64::max(*ease / f64::min(ratio * 1.01, 1.5), least);
        }
    }

    /// Lowers the speed at a waypoint and the two beside it below the present one.
    fn slow_at(&mut self, waypoint: usize, ratio: f64, speed_m_s: &[f64]) {
        let first = waypoint.saturating_sub(1);
        let all = self.x_max.iter_mut().zip(speed_m_s);
        for (x_max, speed) in all.skip(first).take(3) {
            *x_max = f64::min(*x_max, speed * speed / f64::min(ratio * 1.01, 4.0));
        }
    }
}

/// Time and speed at each waypoint.
struct WaypointTiming {
    time_s: Vec<f64>,
    speed_m_s: Vec<f64>,
    samples: usize,
    /// Seconds of the paced path for each second of the clock, at most 1.
    rate: f64,
}

impl WaypointTiming {
    fn new(
        paced_path: &PacedPath<'_>,
        slowing: &PathSlowing,
        stretch: f64,
    ) -> Result<Self, RefusalCause> {
        let limits = path_limits(paced_path, slowing);
        let speeds_squared = velocity_profile::pace(&limits).into_iter();
        let speed_m_s: Vec<f64> = speeds_squared.map(f64::sqrt).collect();
        let mut time_s = Vec::with_capacity(paced_path.waypoints.len());
        let mut elapsed_s = 0.0;
        time_s.push(elapsed_s);
        for (s, v) in limits.s.windows(2).zip(speed_m_s.windows(2)) {
            elapsed_s += 2.0 * (s[1] - s[0]) / (v[0] + v[1]);
            time_s.push(elapsed_s);
        }
        let periods = (elapsed_s * stretch / PERIOD_S).ceil().max(1.0);
        let samples = to_count(periods);
        if !elapsed_s.is_finite() || samples > SAMPLES_MAX {
            let ratio = elapsed_s / PERIOD_S;
            return Err(RefusalCause::TooFast { ratio });
        }
        Ok(Self {
            time_s,
            speed_m_s,
            samples,
            rate: elapsed_s / (periods * PERIOD_S),
        })
    }

    /// Returns the waypoint before sample `n`, and the fraction of the way to the next one, 0 to 1.
    fn position_of_sample(&self, n: usize) -> (usize, f64) {
        let t = n as f64 * PERIOD_S * self.rate;
        let last = self.time_s.len().saturating_sub(2);
        let after = self.time_s.partition_point(|at| *at <= t);
        let waypoint = after.saturating_sub(1).min(last);
        let pair = |values: &[f64]| (values[waypoint], values[waypoint + 1]);
        let ((begin, end), (from, to)) = (pair(&self.time_s), pair(&self.speed_m_s));
        let time_fraction = ((t - begin) / (end - begin)).clamp(0.0, 1.0);
        // The acceleration is even, so the fraction of the distance is:
        let distance_fraction =
            time_fraction * (2.0 * from + (to - from) * time_fraction) / (from + to);
        (waypoint, distance_fraction.clamp(0.0, 1.0))
    }
}

/// Returns the limits at each waypoint.
fn path_limits(paced_path: &PacedPath<'_>, slowing: &PathSlowing) -> PathLimits {
    let PacedPath {
        ik,
        waypoints,
        tip_limits,
        ..
    } = *paced_path;
    let joints = ik.arm.dof();
    let joint_limits = &ik.arm.limits;
    let cruise_rad_s = joint_limits.cruise_rad_s();
    let mut limits = PathLimits {
        s: waypoints.iter().map(|waypoint| waypoint.s_m).collect(),
        stride: joints + 2,
        ..PathLimits::default()
    };
    limits.x_max.reserve(waypoints.len());
    limits.rows.reserve(waypoints.len() * limits.stride);
    let end_m = waypoints.last().map_or(0.0, |waypoint| waypoint.s_m);
    let slowing = slowing.ease.iter().zip(&slowing.x_max);
    for ((index, waypoint), (ease, slowed)) in waypoints.iter().enumerate().zip(slowing) {
        let derivatives = PathDerivatives::at(waypoints, index);
        let from_rest =
            speed_squared_from_rest(waypoint.s_m.min(end_m - waypoint.s_m), tip_limits.jerk_m_s3);
        let bend_limit = ACROSS * tip_limits.acceleration_m_s2 / derivatives.bend.max(1e-9);
        let mut x_max = tip_limits.speed_m_s.powi(2).min(bend_limit);
        for joint in 0..joints {
            let (a, b) = (derivatives.first[joint], derivatives.second[joint]);
            x_max = x_max.min((cruise_rad_s[joint] / a.abs().max(1e-9)).powi(2));
            let c = joint_limits.acceleration_rad_s2[joint] * ease;
            limits.rows.push(LinearLimit { a, b, c });
        }
        let c = tip_limits.acceleration_m_s2 * ease;
        let b = derivatives.bend * TOGETHER;
        limits.rows.push(LinearLimit { a: 1.0, b, c });
        limits.rows.push(LinearLimit { a: 1.0, b: -b, c });
        let x_max = x_max * ease * condition_factor(waypoint.condition);
        limits.x_max.push(x_max.min(from_rest).min(*slowed));
    }
    limits
}

/// Returns the squared speed at a distance from rest, where the acceleration rises evenly from 0:
/// `s = j·t³/6`, `v = j·t²/2`.
fn speed_squared_from_rest(s_m: f64, jerk_m_s3: f64) -> f64 {
    let t_s = (6.0 * s_m.max(0.0) / jerk_m_s3).cbrt();
    (jerk_m_s3 * t_s * t_s / 2.0).powi(2)
}

/// Condition number above which the tip is slowed: small movements of the tip need large ones of
/// the joints, and servo errors grow at the tip.
const CONDITION_SLOW: f64 = 17.0;

/// Returns the factor by which the squared speed is reduced at a condition number.
fn condition_factor(condition: f64) -> f64 {
    let ratio = CONDITION_SLOW / condition.max(CONDITION_SLOW);
    (ratio * ratio).max(0.01)
}

/// Acceleration along and across the line share one limit, a quarter circle. A chord from (0, 1) to
/// (√3/2, 1/2) replaces it, so that the limit stays linear.
const ACROSS: f64 = 0.866;
const TOGETHER: f64 = 0.577;

/// First and second derivatives along the path.
struct PathDerivatives {
    first: JointVector,
    second: JointVector,
    /// Curvature of the tip's path: one over its radius.
    bend: f64,
}

impl PathDerivatives {
    /// Differentiates the parabola through three neighbours.
    fn at(waypoints: &[PathWaypoint], index: usize) -> Self {
        let centre = index.clamp(1, waypoints.len() - 2);
        let (a, b, c) = (
            &waypoints[centre - 1],
            &waypoints[centre],
            &waypoints[centre + 1],
        );
        let (before, after) = ((b.s_m - a.s_m).max(1e-12), (c.s_m - b.s_m).max(1e-12));
        let second_of =
            |a: f64, b: f64, c: f64| 2.0 * ((c - b) / after - (b - a) / before) / (before + after);
        let rise = a.q.zip(&b.q, |a, b| (b - a) / before);
        let next = b.q.zip(&c.q, |b, c| (c - b) / after);
        let second = rise.zip(&next, |r, n| 2.0 * (n - r) / (before + after));
        let first = match index.cmp(&centre) {
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

/// A sampled path.
pub(super) struct TimedPath {
    pub(super) joints: Vec<JointVector>,
    /// Positions of the tip.
    pub(super) points: Vec<Point3<f64>>,
    /// The waypoint before each sample.
    pub(super) waypoints: Vec<usize>,
}
