//! Judges how well an arm reaches its poses and follows its paths, in the terms of ISO 9283, and how well each joint follows.
//!
//! All figures come from the servos' own readings, which do not show play behind the servos.

use std::ops::Range;

use nalgebra::Point3;
use serde_json::{Value, json};

use super::visits::SIDES;
use base::units::JointVector;
use scene::Scene;

/// A resting joint that swings at least `SWINGS_MIN` times and by more than this has too high a gain.
const SWING_DEG: f64 = 0.3;
const SWINGS_MIN: usize = 4;

/// A joint that overshoots its goal by more than this has too high a gain, or too little damping.
const OVERSHOOT_DEG: f64 = 1.0;

/// A joint that rests farther from its goal than this has too low a gain, or too much to carry.
const REST_DEG: f64 = 1.0;

/// A joint whose goal changes by more than this in a tick is moving.
const MOVES_RAD: f64 = 1e-5;

/// Number of samples before and after a tick among which the nearest point of the path is searched.
const NEAR_SAMPLES: usize = 40;

/// One reading with its goal.
#[derive(Clone, Copy, Debug)]
pub(super) struct PerformanceTick {
    pub(super) sample: usize,
    pub(super) goal_rad: JointVector,
    pub(super) measured_rad: JointVector,
}

/// Measurements of how well a joint follows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct JointFollowing {
    pub(super) name: String,
    /// Time by which it lags its goal.
    pub(super) lag_ms: f64,
    /// Largest distance from its goal while it moves.
    pub(super) following_deg: f64,
    /// Largest mean distance from its goal at rest.
    pub(super) rest_deg: f64,
    /// Largest overshoot beyond its goal.
    pub(super) overshoot_deg: f64,
    /// Largest width of its swings at rest.
    swing_deg: f64,
    swings: usize,
}

impl JointFollowing {
    /// Returns what seems wrong with its gains, and how to fix it.
    pub(super) fn gains(&self) -> Option<String> {
        let name = &self.name;
        if self.swings >= SWINGS_MIN && self.swing_deg > SWING_DEG {
            return Some(format!(
                "{name} swings by {:.1}° while it holds: its P gain is too high. (LeRobot lowers it from 32 to 16 for an STS3215)",
                self.swing_deg
            ));
        }
        if self.overshoot_deg > OVERSHOOT_DEG {
            return Some(format!(
                "{name} overshoots its goal by {:.1}°. Next: lower its P gain, or raise its D gain",
                self.overshoot_deg
            ));
        }
        (self.rest_deg > REST_DEG).then(|| {
            format!(
                "{name} stops {:.1}° from its goal: its P gain is too low, it is blocked, or its load is too heavy",
                self.rest_deg
            )
        })
    }
}

/// Measurements of how well an arm reaches a pose and follows its paths.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TipPerformance {
    pub(super) visits: usize,
    /// Distance of the mean of all visits from the goal (AP).
    accuracy_mm: f64,
    /// Mean distance from that mean plus three standard deviations (RP), the largest of any side.
    pub(super) repeatability_mm: f64,
    /// Largest distance between the means of two sides (vAP).
    sides_mm: f64,
    /// Largest distance of the tip from its path (AT).
    pub(super) path_mm: f64,
    pub(super) joints: Vec<JointFollowing>,
}

impl TipPerformance {
    /// Judges ticks of an arm that rested in these ranges of samples, after an approach from each side in turn. Returns `None` if
    /// there were too few readings.
    pub(super) fn of(
        scene: &Scene,
        ticks: &[PerformanceTick],
        rest_spans: &[Range<usize>],
        period_s: f64,
    ) -> Option<Self> {
        let pen = scene.pen(0)?;
        let tip_mm = |q: &JointVector| (scene.arm.chain.forward(q) * pen.tip_m) * 1e3;
        let ticks_of = |span: &Range<usize>| {
            let ticks = ticks.iter().filter(|tick| span.contains(&tick.sample));
            ticks.collect::<Vec<_>>()
        };
        let rests: Vec<Vec<&PerformanceTick>> = rest_spans.iter().map(ticks_of).collect();
        let mean_tip = |ticks: &Vec<&PerformanceTick>| {
            mean(ticks.iter().map(|tick| tip_mm(&tick.measured_rad)))
        };
        let visits: Vec<Point3<f64>> = rests.iter().map(mean_tip).collect::<Option<_>>()?;
        let goal = tip_mm(&rests.first()?.first()?.goal_rad);
        let of_side = |side| {
            let visits = visits.iter().skip(side).step_by(SIDES.len());
            visits.copied().collect()
        };
        let sides: Vec<Vec<Point3<f64>>> = (0..SIDES.len()).map(of_side).collect();
        let side_means = sides.iter().filter_map(|side| mean(side.iter().copied()));
        let side_means: Vec<Point3<f64>> = side_means.collect();
        let distances_mm = side_means
            .iter()
            .flat_map(|first| side_means.iter().map(move |second| (first - second).norm()));
        let following =
            |joint| measure_following(scene.arm.joint_name(joint), joint, ticks, &rests, period_s);
        Some(Self {
            visits: visits.len(),
            accuracy_mm: (mean(visits.iter().copied())? - goal).norm(),
            repeatability_mm: largest(sides.iter().map(|side| repeatability_mm(side))),
            sides_mm: largest(distances_mm),
            path_mm: deviation_mm(ticks, tip_mm),
            joints: (0..scene.arm.dof()).map(following).collect(),
        })
    }

    /// Returns lines for a person.
    pub(super) fn table(&self) -> String {
        let mut lines = vec![
            format!(
                "  measured by the servos in {} visits to one point from {} sides (ISO 9283):",
                self.visits,
                SIDES.len()
            ),
            format!(
                "  pose repeatability {:.2} mm, accuracy {:.2} mm, between sides {:.2} mm; path accuracy {:.2} mm",
                self.repeatability_mm, self.accuracy_mm, self.sides_mm, self.path_mm
            ),
            format!(
                "  {:<16}{:>8}{:>12}{:>9}{:>12}",
                "joint", "lag", "following", "at rest", "overshoot"
            ),
        ];
        lines.extend(self.joints.iter().map(|joint| {
            format!(
                "  {:<16}{:>5.0} ms{:>11.2}°{:>8.2}°{:>11.2}°",
                joint.name, joint.lag_ms, joint.following_deg, joint.rest_deg, joint.overshoot_deg
            )
        }));
        let gains = self.joints.iter().filter_map(JointFollowing::gains);
        lines.extend(gains.map(|advice| format!("  ! {advice}")));
        lines.join("\n")
    }

    /// Returns the same as data.
    pub(super) fn card(&self) -> Value {
        let joints = self.joints.iter().map(|joint| {
            json!({
                "name": joint.name,
                "lag_ms": rounded(joint.lag_ms),
                "following_error_deg_max": rounded(joint.following_deg),
                "rest_error_deg": rounded(joint.rest_deg),
                "overshoot_deg": rounded(joint.overshoot_deg),
                "gains": joint.gains(),
            })
        });
        json!({
            "visits": self.visits,
            "pose_repeatability_mm": rounded(self.repeatability_mm),
            "pose_accuracy_mm": rounded(self.accuracy_mm),
            "pose_between_sides_mm": rounded(self.sides_mm),
            "path_accuracy_mm": rounded(self.path_mm),
            "joints": joints.collect::<Vec<Value>>(),
        })
    }
}

/// Returns the largest distance of the tip from the nearest point of its path, regardless of time. Before the motion begins an arm
/// may sag, where torque has just come on: it is on no path then.
fn deviation_mm(ticks: &[PerformanceTick], tip_mm: impl Fn(&JointVector) -> Point3<f64>) -> f64 {
    let goals: Vec<Point3<f64>> = ticks.iter().map(|tick| tip_mm(&tick.goal_rad)).collect();
    let distance_mm = |(index, tick): (usize, &PerformanceTick)| {
        let near = index.saturating_sub(NEAR_SAMPLES)..(index + NEAR_SAMPLES).min(goals.len());
        let tip = tip_mm(&tick.measured_rad);
        let segments = goals.get(near).unwrap_or_default().windows(2);
        segments
            .filter_map(|s| Some(segment_distance_mm(&tip, s.first()?, s.last()?)))
            .fold(f64::INFINITY, f64::min)
    };
    let ticks = ticks.iter().enumerate();
    let distances_mm = ticks.filter(|(_, tick)| tick.sample > 0).map(distance_mm);
    largest(distances_mm.filter(|mm| mm.is_finite()))
}

/// Returns the distance of a point from a segment.
fn segment_distance_mm(point: &Point3<f64>, from: &Point3<f64>, to: &Point3<f64>) -> f64 {
    let segment = to - from;
    let fraction = (point - from).dot(&segment) / segment.norm_squared().max(f64::MIN_POSITIVE);
    (point - (from + segment * fraction.clamp(0.0, 1.0))).norm()
}

/// Measures how well a joint follows its goals.
fn measure_following(
    name: String,
    joint: usize,
    ticks: &[PerformanceTick],
    rests: &[Vec<&PerformanceTick>],
    period_s: f64,
) -> JointFollowing {
    let angle = |q: &JointVector| q.get(joint).copied().unwrap_or_default();
    let mut following = JointFollowing {
        name,
        ..JointFollowing::default()
    };
    let (mut error_speed_sum, mut speed_squared_sum) = (0.0, 0.0);
    for pair in ticks.windows(2) {
        let [previous, now] = pair else { continue };
        let samples = now.sample.saturating_sub(previous.sample).max(1) as f64;
        let speed = (angle(&now.goal_rad) - angle(&previous.goal_rad)) / (samples * period_s);
        if (speed * period_s).abs() < MOVES_RAD {
            continue;
        }
        let error = angle(&now.goal_rad) - angle(&now.measured_rad);
        error_speed_sum += error * speed;
        speed_squared_sum += speed * speed;
        following.following_deg = following.following_deg.max(error.abs().to_degrees());
    }
    if speed_squared_sum > 0.0 {
        following.lag_ms = 1e3 * error_speed_sum / speed_squared_sum;
    }
    for rest in rests {
        let Some(at_rest) = JointAtRest::of(rest, ticks, &angle) else {
            continue;
        };
        following.rest_deg = following.rest_deg.max(at_rest.error_deg);
        following.overshoot_deg = following.overshoot_deg.max(at_rest.overshoot_deg);
        if at_rest.swings >= following.swings {
            (following.swings, following.swing_deg) =
                (at_rest.swings, following.swing_deg.max(at_rest.swing_deg));
        }
    }
    following
}

/// Measurements of a joint while the arm is at rest.
struct JointAtRest {
    error_deg: f64,
    overshoot_deg: f64,
    swing_deg: f64,
    swings: usize,
}

impl JointAtRest {
    fn of(
        rest: &[&PerformanceTick],
        ticks: &[PerformanceTick],
        angle: &impl Fn(&JointVector) -> f64,
    ) -> Option<Self> {
        let first = rest.first()?;
        let goal = angle(&first.goal_rad);
        let readings: Vec<f64> = rest.iter().map(|tick| angle(&tick.measured_rad)).collect();
        let mean_rad = readings.iter().sum::<f64>() / readings.len() as f64;
        let is_swing = |q: &&f64| (*q - mean_rad).abs().to_degrees() > SWING_DEG / 2.0;
        let above_mean = readings.iter().filter(is_swing);
        let above_mean: Vec<bool> = above_mean.map(|q| *q > mean_rad).collect();
        let pairs = above_mean.windows(2);
        let swings = pairs.filter(|pair| pair.first() != pair.last()).count();
        let low = readings.iter().copied().fold(f64::INFINITY, f64::min);
        let high = readings.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // The last different goal tells from which side the joint came.
        let earlier_goals = ticks.iter().rev().filter(|tick| tick.sample < first.sample);
        let mut earlier_goals = earlier_goals.map(|tick| angle(&tick.goal_rad));
        let from = earlier_goals.find(|q| (q - goal).abs() > MOVES_RAD)?;
        let arriving = ticks.iter().filter(|tick| {
            tick.sample <= first.sample && (angle(&tick.goal_rad) - goal).abs() <= MOVES_RAD
        });
        let ticks_near_goal = arriving.chain(rest.iter().copied());
        let overshoots_rad =
            ticks_near_goal.map(|tick| (angle(&tick.measured_rad) - goal) * (goal - from).signum());
        Some(Self {
            error_deg: (mean_rad - goal).abs().to_degrees(),
            overshoot_deg: (largest(overshoots_rad) - (mean_rad - goal).abs())
                .max(0.0)
                .to_degrees(),
            swing_deg: (high - low).to_degrees(),
            swings,
        })
    }
}

fn mean(points: impl Iterator<Item = Point3<f64>>) -> Option<Point3<f64>> {
    let mut count = 0_u32;
    let sum = points.fold(nalgebra::Vector3::zeros(), |sum, point| {
        count += 1;
        sum + point.coords
    });
    (count > 0).then(|| Point3::from(sum / f64::from(count)))
}

/// Returns the mean distance from the mean plus three standard deviations of those distances.
fn repeatability_mm(points: &[Point3<f64>]) -> f64 {
    let Some(centre) = mean(points.iter().copied()) else {
        return 0.0;
    };
    let distances_mm: Vec<f64> = points.iter().map(|point| (point - centre).norm()).collect();
    let count = distances_mm.len() as f64;
    let mean_mm = distances_mm.iter().sum::<f64>() / count;
    let squares: f64 = distances_mm.iter().map(|mm| (mm - mean_mm).powi(2)).sum();
    mean_mm + 3.0 * (squares / (count - 1.0).max(1.0)).sqrt()
}

/// Returns the largest of values that are not negative; 0 of none.
pub(super) fn largest(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, f64::max)
}

fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    const PERIOD_S: f64 = 0.01;

    /// Returns the ticks of a joint that turns by 1 rad/s for a second and rests for another, read as `read` returns at each time.
    fn ticks(read: impl Fn(f64) -> f64) -> Vec<PerformanceTick> {
        let tick = |sample: usize| PerformanceTick {
            sample,
            goal_rad: JointVector::from_slice(&[goal_rad(sample as f64 * PERIOD_S)]),
            measured_rad: JointVector::from_slice(&[read(sample as f64 * PERIOD_S)]),
        };
        (0..200).map(tick).collect()
    }

    fn goal_rad(at_s: f64) -> f64 {
        at_s.clamp(0.0, 1.0)
    }

    fn joint(read: impl Fn(f64) -> f64) -> JointFollowing {
        let ticks = ticks(read);
        let rest: Vec<&PerformanceTick> = ticks.iter().filter(|tick| tick.sample > 130).collect();
        measure_following("elbow".to_owned(), 0, &ticks, &[rest], PERIOD_S)
    }

    #[test]
    fn a_late_joint_has_a_lag_and_no_other_fault() {
        let late = joint(|at_s| goal_rad(at_s - 0.05));
        assert!((late.lag_ms - 50.0).abs() < 2.0, "{late:?}");
        assert!(
            (late.following_deg - 0.05_f64.to_degrees()).abs() < 0.1,
            "{late:?}"
        );
        assert!(
            late.rest_deg < 0.01 && late.overshoot_deg < 0.01,
            "{late:?}"
        );
        assert_eq!(late.gains(), None);
    }

    #[test]
    fn wrong_gains_are_recognised_by_their_effects() {
        let swings = |at_s: f64| goal_rad(at_s) + 0.01 * (at_s * 40.0).sin();
        let beyond = |at_s: f64| {
            goal_rad(at_s)
                + if (1.0..1.2).contains(&at_s) {
                    0.03
                } else {
                    0.0
                }
        };
        let short = |at_s: f64| goal_rad(at_s) - 0.03;
        for (found, expected) in [
            (joint(swings), "P gain is too high"),
            (joint(beyond), "overshoots its goal by 1.7°"),
            (joint(short), "stops 1.7° from its goal"),
        ] {
            let advice = found.gains().unwrap();
            assert!(advice.contains(expected), "{advice}: {found:?}");
        }
        assert_eq!(joint(goal_rad).gains(), None);
    }

    #[test]
    fn repeatability_is_the_mean_distance_and_three_standard_deviations() {
        let at = |x| Point3::new(x, 0.0, 0.0);
        assert!((repeatability_mm(&[at(-1.0), at(1.0)]) - 1.0).abs() < 1e-9);
        let spread = repeatability_mm(&[at(0.0), at(0.0), at(3.0)]);
        // From the mean at 1: 1, 1 and 2 mm, so 4/3 and three times 0.577.
        assert!(
            (spread - (4.0 / 3.0 + 3.0 * (1.0_f64 / 3.0).sqrt())).abs() < 1e-9,
            "{spread}"
        );
        assert!((segment_distance_mm(&at(5.0), &at(0.0), &at(3.0)) - 2.0).abs() < 1e-9);
    }
}
