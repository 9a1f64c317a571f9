//! Checks joint limits, and speed, acceleration and jerk by differences of samples.

use super::check::{SLACK, TrajectoryJudge};
use super::escape::Ratchet;
use super::{GateRule, LimitExcess};
use base::units::{JointVector, short};

/// Rounding of jerk that is accepted: inverse kinematics leaves noise in third differences.
const JERK_SLACK: f64 = 1.02;

/// Rounding that is accepted of a joint at its limit.
const ANGLE_ROUNDING_RAD: f64 = 1e-6;

impl TrajectoryJudge<'_> {
    /// Refuses joints beyond their limits. Each limit has its own history: a joint that begins
    /// beyond the lower one may not pass the upper one.
    pub(super) fn check_joint_limits(&mut self) {
        let (limits, samples) = (self.scene.arm.limits, &self.trajectory.samples);
        let ranges = limits.lower_rad.iter().zip(limits.upper_rad.iter());
        let mut joints: Vec<_> = ranges
            .map(|range| (range, Ratchet::new(), Ratchet::new()))
            .collect();
        for (sample, q) in samples.iter().enumerate() {
            let angles = q.iter().zip(&mut joints).enumerate();
            for (joint, (angle, (range, over_low, under_high))) in angles {
                let (low, high) = *range;
                let is_low = over_low.breached(*angle, low - ANGLE_ROUNDING_RAD);
                let is_high = under_high.breached(-angle, -high - ANGLE_ROUNDING_RAD);
                let limit = match (is_low, is_high) {
                    (false, false) => continue,
                    (true, _) => low,
                    (false, true) => high,
                };
                let name = self.scene.arm.joint_name(joint);
                self.refuse(
                    GateRule::JointLimit,
                    sample,
                    excess(*angle, *limit, "rad"),
                    || {
                        let (angle, low, high) = (short(*angle), short(*low), short(*high));
                        format!("{name} would be at {angle} rad; {low} to {high} are allowed")
                    },
                );
            }
        }
    }

    pub(super) fn check_joint_rates(&mut self) {
        let period = self.trajectory.period.as_secs_f64();
        let zero = JointVector::zeros(self.scene.arm.dof());
        let samples = &self.trajectory.samples;
        let pairs = samples.iter().zip(samples.iter().skip(1));
        let steps = pairs.map(|(a, b)| b.zip(a, |b, a| (b - a) / period));
        let last = self.trajectory.samples.len().saturating_sub(1);
        let (mut previous_speed, mut previous_change) = (zero, zero);
        // The arm is at rest before the first sample and after the last.
        for (sample, speed) in steps.chain([zero, zero]).enumerate() {
            let change = speed.zip(&previous_speed, |now, then| (now - then) / period);
            let jerk = change.zip(&previous_change, |now, then| (now - then) / period);
            (previous_speed, previous_change) = (speed, change);
            self.check_rates(sample.min(last), speed, change, jerk);
        }
    }

    fn check_rates(
        &mut self,
        sample: usize,
        speed: JointVector,
        change: JointVector,
        jerk: JointVector,
    ) {
        let arm = &self.scene.arm;
        let limits = &arm.limits;
        let turns = (GateRule::JointSpeed, "turn at", "rad/s");
        let speeds_up = (GateRule::JointAcceleration, "accelerate at", "rad/s²");
        let jerks = (GateRule::JointJerk, "change its acceleration at", "rad/s³");
        let by_rule = [
            (turns, speed, &limits.velocity_rad_s, SLACK),
            (speeds_up, change, &limits.acceleration_rad_s2, SLACK),
            (jerks, jerk, &limits.jerk_rad_s3, JERK_SLACK),
        ];
        for ((rule, verb, unit), values, limit, slack) in by_rule {
            for (joint, (value, limit)) in values.iter().zip(limit.iter()).enumerate() {
                let values = (value.abs(), *limit, unit);
                self.check_limit(rule, sample, values, slack, |value, limit| {
                    let name = arm.joint_name(joint);
                    format!("{name} would {verb} {value} {unit}; {limit} is the limit")
                });
            }
        }
    }
}

pub(super) fn excess(value: f64, limit: f64, unit: &'static str) -> Option<LimitExcess> {
    Some(LimitExcess { value, limit, unit })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use std::time::Duration;

    use super::*;
    use plan::Trajectory;
    use scene::SceneLibrary;

    #[test]
    fn a_joint_may_be_at_its_limit_and_a_rounding_beyond() {
        let scene = SceneLibrary::new(None).scene("default", None).unwrap();
        let (low, high) = (scene.arm.limits.lower_rad, scene.arm.limits.upper_rad);
        let refusal_of = |joint: usize, angle: f64| {
            let moved = scene
                .rest_rad
                .map(|i, q| if i == joint { angle } else { q });
            let plan = Trajectory {
                reached: Vec::new(),
                period: Duration::from_millis(10),
                samples: vec![scene.rest_rad, moved],
                spans: Vec::new(),
            };
            let mut judge = TrajectoryJudge::new(&scene, &plan);
            judge.check_joint_limits();
            judge
                .refusals
                .pop()
                .map(|refusal| (refusal.sample, refusal.excess.unwrap().limit))
        };
        for joint in 0..scene.arm.dof() {
            let (low, high) = (*low.get(joint).unwrap(), *high.get(joint).unwrap());
            for inside in [low, high, low - 5e-7, high + 5e-7] {
                assert_eq!(refusal_of(joint, inside), None, "{joint} at {inside}");
            }
            for (outside, limit) in [(low - 2e-6, low), (high + 2e-6, high)] {
                let (sample, found_limit) = refusal_of(joint, outside).unwrap();
                assert!(
                    sample == 1 && (found_limit - limit).abs() < 1e-9,
                    "{joint}: {found_limit}"
                );
            }
        }
    }
}
