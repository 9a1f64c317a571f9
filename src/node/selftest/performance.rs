//! Judges how well an arm comes to its poses and keeps to its paths, in the words of ISO 9283, and how well each joint follows.
//!
//! All of it as the servos read themselves: play behind them is not seen.

use std::ops::Range;

use nalgebra::Point3;
use serde_json::{Value, json};

use super::visits::SIDES;
use base::units::JointVector;
use scene::Scene;

/// A joint that swings by more than this around where it stands, so often, has too high a gain.
const SWING_DEG: f64 = 0.3;
const SWINGS: usize = 4;

/// A joint that goes farther beyond its goal than this has too high a gain, or too little damping.
const OVERSHOOT_DEG: f64 = 1.0;

/// A joint that rests farther from its goal than this has too low a gain, or too much to carry.
const REST_DEG: f64 = 1.0;

/// A tip moves where its joints do, by more than this in a tick.
const MOVES_RAD: f64 = 1e-5;

/// Samples of the path around a tick among which its nearest point is looked for.
const NEAR_SAMPLES: usize = 40;

/// One reading beside its goal.
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
    /// By how much it is behind its goal in time.
    pub(super) lag_ms: f64,
    /// Largest distance from its goal while it moves.
    pub(super) following_deg: f64,
    /// Largest mean distance from its goal where it stands.
    pub(super) rest_deg: f64,
    /// Largest way beyond its goal where it stands.
    pub(super) overshoot_deg: f64,
    /// Largest width of its swings where it stands.
    swing_deg: f64,
    swings: usize,
}

impl JointFollowing {
    /// Returns what its gains seem to be, and what to do about it.
    pub(super) fn gains(&self) -> Option<String> {
        let name = &self.name;
        if self.swings >= SWINGS && self.swing_deg > SWING_DEG {
            return Some(format!(
                "{name} swings by {:.1}° where it stands: its P gain is too high; LeRobot lowers that of an STS3215 from 32 to 16",
                self.swing_deg
            ));
        }
        if self.overshoot_deg > OVERSHOOT_DEG {
            return Some(format!(
                "{name} goes {:.1}° beyond its goal: lower its P gain, or raise its D gain",
                self.overshoot_deg
            ));
        }
        (self.rest_deg > REST_DEG).then(|| {
            format!(
                "{name} rests {:.1}° from its goal: its P gain is too low, something holds it, or it carries too much",
                self.rest_deg
            )
        })
    }
}

/// Measurements of how well an arm comes to a pose and keeps to its paths.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TipPerformance {
    pub(super) visits: usize,
    /// Distance of the mean of all visits from the goal (AP).
    accuracy_mm: f64,
    /// Mean distance from that mean and three standard deviations (RP), the largest of any side.
    pub(super) repeatability_mm: f64,
    /// Largest distance between the means of two sides (vAP).
    sides_mm: f64,
    /// Largest distance of the tip from its path (AT).
    pub(super) path_mm: f64,
    pub(super) joints: Vec<JointFollowing>,
}

impl TipPerformance {
    /// Judges ticks in which the arm stood in these ranges of samples, from each side in turn; nothing where too few were read.
    pub(super) fn of(
        scene: &Scene,
        ticks: &[PerformanceTick],
        stands: &[Range<usize>],
        period_s: f64,
    ) -> Option<Self> {
        let pen = scene.pen(0)?;
        let tip_mm = |q: &JointVector| (scene.arm.chain.forward(q) * pen.tip_m) * 1e3;
        let within = |stand: &Range<usize>| {
            let ticks = ticks.iter().filter(|tick| stand.contains(&tick.sample));
            ticks.collect::<Vec<_>>()
        };
        let stood: Vec<Vec<&PerformanceTick>> = stands.iter().map(within).collect();
        let attained = |ticks: &Vec<&PerformanceTick>| {
            mean(ticks.iter().map(|tick| tip_mm(&tick.measured_rad)))
        };
        let visits: Vec<Point3<f64>> = stood.iter().map(attained).collect::<Option<_>>()?;
        let goal = tip_mm(&stood.first()?.first()?.goal_rad);
        let of_side = |side| {
            let visits = visits.iter().skip(side).step_by(SIDES.len());
            visits.copied().collect()
        };
        let sides: Vec<Vec<Point3<f64>>> = (0..SIDES.len()).map(of_side).collect();
        let means = sides.iter().filter_map(|one| mean(one.iter().copied()));
        let means: Vec<Point3<f64>> = means.collect();
        let apart = |one: &Point3<f64>, other: &Point3<f64>| (one - other).norm();
        let pairs = means
            .iter()
            .flat_map(|one| means.iter().map(move |other| apart(one, other)));
        Some(Self {
            visits: visits.len(),
            accuracy_mm: (mean(visits.iter().copied())? - goal).norm(),
            repeatability_mm: largest(sides.iter().map(|side| repeatability_mm(side))),
            sides_mm: largest(pairs),
            path_mm: path_mm(ticks, tip_mm),
            joints: (0..scene.arm.dof())
                .map(|joint| follow(scene.arm.joint_name(joint), joint, ticks, &stood, period_s))
                .collect(),
        })
    }

    /// Returns lines for a person.
    pub(super) fn table(&self) -> String {
        let mut lines = vec![
            format!(
                "  as the servos read themselves, {} visits of one point from {} sides (ISO 9283):",
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
        lines.extend(gains.map(|words| format!("  ! {words}")));
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

/// Distance of the tip from the nearest point of its path, whenever it was there.
fn path_mm(ticks: &[PerformanceTick], tip_mm: impl Fn(&JointVector) -> Point3<f64>) -> f64 {
    let goals: Vec<Point3<f64>> = ticks.iter().map(|tick| tip_mm(&tick.goal_rad)).collect();
    let off = |(index, tick): (usize, &PerformanceTick)| {
        let near = index.saturating_sub(NEAR_SAMPLES)..(index + NEAR_SAMPLES).min(goals.len());
        let here = tip_mm(&tick.measured_rad);
        let legs = goals.get(near).unwrap_or_default().windows(2);
        legs.filter_map(|leg| Some(from_leg_mm(&here, leg.first()?, leg.last()?)))
            .fold(f64::INFINITY, f64::min)
    };
    let all = ticks.iter().enumerate().map(off);
    largest(all.filter(|mm| mm.is_finite()))
}

fn from_leg_mm(here: &Point3<f64>, from: &Point3<f64>, to: &Point3<f64>) -> f64 {
    let leg = to - from;
    let share = (here - from).dot(&leg) / leg.norm_squared().max(f64::MIN_POSITIVE);
    (here - (from + leg * share.clamp(0.0, 1.0))).norm()
}

fn follow(
    name: String,
    joint: usize,
    ticks: &[PerformanceTick],
    stood: &[Vec<&PerformanceTick>],
    period_s: f64,
) -> JointFollowing {
    let at = |q: &JointVector| q.get(joint).copied().unwrap_or_default();
    let mut found = JointFollowing {
        name,
        ..JointFollowing::default()
    };
    let (mut behind, mut square) = (0.0, 0.0);
    for pair in ticks.windows(2) {
        let [before, now] = pair else { continue };
        let samples = now.sample.saturating_sub(before.sample).max(1) as f64;
        let speed = (at(&now.goal_rad) - at(&before.goal_rad)) / (samples * period_s);
        if (speed * period_s).abs() < MOVES_RAD {
            continue;
        }
        let error = at(&now.goal_rad) - at(&now.measured_rad);
        behind += error * speed;
        square += speed * speed;
        found.following_deg = found.following_deg.max(error.abs().to_degrees());
    }
    if square > 0.0 {
        found.lag_ms = 1e3 * behind / square;
    }
    for stand in stood {
        let Some(rest) = Rest::of(stand, ticks, &at) else {
            continue;
        };
        found.rest_deg = found.rest_deg.max(rest.off_deg);
        found.overshoot_deg = found.overshoot_deg.max(rest.beyond_deg);
        if rest.swings >= found.swings {
            (found.swings, found.swing_deg) = (rest.swings, found.swing_deg.max(rest.swing_deg));
        }
    }
    found
}

/// A joint where the arm stands.
struct Rest {
    off_deg: f64,
    beyond_deg: f64,
    swing_deg: f64,
    swings: usize,
}

impl Rest {
    fn of(
        stand: &[&PerformanceTick],
        ticks: &[PerformanceTick],
        at: &impl Fn(&JointVector) -> f64,
    ) -> Option<Self> {
        let first = stand.first()?;
        let goal = at(&first.goal_rad);
        let read: Vec<f64> = stand.iter().map(|tick| at(&tick.measured_rad)).collect();
        let middle = read.iter().sum::<f64>() / read.len() as f64;
        let is_aside = |q: &&f64| (*q - middle).abs().to_degrees() > SWING_DEG / 2.0;
        let sides = read.iter().filter(is_aside);
        let sides: Vec<bool> = sides.map(|q| *q > middle).collect();
        let pairs = sides.windows(2);
        let swings = pairs.filter(|pair| pair.first() != pair.last()).count();
        let low = read.iter().copied().fold(f64::INFINITY, f64::min);
        let high = read.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // The last goal before that was another says from where it came.
        let before = ticks.iter().rev().filter(|tick| tick.sample < first.sample);
        let mut before = before.map(|tick| at(&tick.goal_rad));
        let from = before.find(|q| (q - goal).abs() > MOVES_RAD)?;
        let arriving = ticks.iter().filter(|tick| {
            tick.sample <= first.sample && (at(&tick.goal_rad) - goal).abs() <= MOVES_RAD
        });
        let all = arriving.chain(stand.iter().copied());
        let beyond = all.map(|tick| (at(&tick.measured_rad) - goal) * (goal - from).signum());
        Some(Self {
            off_deg: (middle - goal).abs().to_degrees(),
            beyond_deg: (largest(beyond) - (middle - goal).abs())
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

/// Mean distance from the mean, and three standard deviations of those distances.
fn repeatability_mm(points: &[Point3<f64>]) -> f64 {
    let Some(middle) = mean(points.iter().copied()) else {
        return 0.0;
    };
    let away: Vec<f64> = points.iter().map(|point| (point - middle).norm()).collect();
    let count = away.len() as f64;
    let average = away.iter().sum::<f64>() / count;
    let squares = away.iter().map(|mm| (mm - average).powi(2)).sum::<f64>();
    average + 3.0 * (squares / (count - 1.0).max(1.0)).sqrt()
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

    /// A joint that turns by 1 rad/s for a second and stands for another, as `read` tells it at each time.
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
        let stood: Vec<&PerformanceTick> = ticks.iter().filter(|tick| tick.sample > 130).collect();
        follow("elbow".to_owned(), 0, &ticks, &[stood], PERIOD_S)
    }

    #[test]
    fn a_joint_that_is_late_is_so_late_and_nothing_else() {
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
    fn gains_that_are_wrong_are_told_by_what_they_do() {
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
        for (found, words) in [
            (joint(swings), "P gain is too high"),
            (joint(beyond), "goes 1.7° beyond its goal"),
            (joint(short), "rests 1.7° from its goal"),
        ] {
            let said = found.gains().unwrap();
            assert!(said.contains(words), "{said}: {found:?}");
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
        assert!((from_leg_mm(&at(5.0), &at(0.0), &at(3.0)) - 2.0).abs() < 1e-9);
    }
}
