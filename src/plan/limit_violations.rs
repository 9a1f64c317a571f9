//! Finds the samples of a course that violate a limit, by differences, and the ratio to the limit.

#![expect(
    clippy::indexing_slicing,
    reason = "every index is cut to the last sample, and each has its joints, tip and waypoint"
)]

use super::PERIOD_S;
use super::time_parameterization::{TimedPath, TipLimits};
use super::tool_ik::ToolIk;
use arm::ArmModel;
use base::units::JointVector;

/// Largest distance of the tip from the straight line, in the middle between two samples.
const BOW_M: f64 = 1e-4;
/// Joint turn below which no arm of a metre deviates that much.
const BOW_RAD: f64 = 0.01;

/// A sample with the two before it and the one behind; the course stands still at its ends.
struct StencilWindow<'a> {
    joints: [&'a JointVector; 4],
    index: [usize; 4],
}

impl TimedPath {
    /// Returns the limit violations: waypoint and ratio. A ratio that grows with the square of the
    /// speed is returned as it is, and ratios of speeds are squared, so slowing by the square root of
    /// the ratio is enough.
    pub(super) fn limit_violations(
        &self,
        hand: &ToolIk<'_>,
        asked: TipLimits,
    ) -> Vec<(usize, f64)> {
        let last = self.joints.len().saturating_sub(1);
        let windows = if self.joints.is_empty() { 0 } else { last + 2 };
        let ratios = (0..windows)
            .map(|index| self.window(index, last))
            .map(|four| {
                let ratio = joint_ratio(hand.arm, &four.joints)
                    .max(self.tip_ratio(&four, asked))
                    .max(self.bow_ratio(hand, &four));
                let [_, _, at, _] = four.index;
                (self.knots[at], ratio)
            });
        ratios.filter(|(_, ratio)| *ratio > 1.0).collect()
    }

    /// Returns the largest ratio to a limit that is passed; 0 where none is.
    pub(super) fn worst_ratio(&self, hand: &ToolIk<'_>, asked: TipLimits) -> f64 {
        let all = self.limit_violations(hand, asked).into_iter();
        all.map(|(_, ratio)| ratio).fold(0.0, f64::max)
    }

    /// Before the first sample and behind the last one the course stands still.
    fn window(&self, index: usize, last: usize) -> StencilWindow<'_> {
        let before = [2, 1].map(|by| index.saturating_sub(by));
        let index = [before[0], before[1], index, index + 1].map(|index| index.min(last));
        StencilWindow {
            joints: index.map(|index| &self.joints[index]),
            index,
        }
    }

    fn tip_ratio(&self, four: &StencilWindow<'_>, asked: TipLimits) -> f64 {
        let [_, p, q, r] = four.index.map(|index| self.points[index]);
        let speed = (r - q).norm() / (PERIOD_S * asked.speed_m_s);
        let bend = (r - q) - (q - p);
        let pull = bend.norm() / (PERIOD_S * PERIOD_S * asked.acceleration_m_s2);
        (speed * speed).max(pull)
    }

    /// Joints go straight from one sample to the next; the tip then does not.
    fn bow_ratio(&self, hand: &ToolIk<'_>, four: &StencilWindow<'_>) -> f64 {
        let [_, _, b, c] = four.joints;
        if b.distance_max(c) < BOW_RAD {
            return 0.0;
        }
        let [_, _, q, r] = four.index.map(|index| self.points[index]);
        let middle = b.zip(c, f64::midpoint);
        (hand.point(&middle) - nalgebra::center(&q, &r)).norm() / BOW_M
    }
}

/// By how much the joints pass a limit where one course's last samples meet the next one's first.
pub(super) fn seam_ratio(arm: &ArmModel, samples: &[JointVector]) -> f64 {
    let fours = samples.windows(4);
    let ratios = fours.map(|of| joint_ratio(arm, &[&of[0], &of[1], &of[2], &of[3]]));
    ratios.fold(0.0, f64::max)
}

fn joint_ratio(arm: &ArmModel, [z, a, b, c]: &[&JointVector; 4]) -> f64 {
    let most = &arm.limits;
    let now = b.zip(c, |b, c| (c - b) / PERIOD_S);
    let before = a.zip(b, |a, b| (b - a) / PERIOD_S);
    let first = z.zip(a, |z, a| (a - z) / PERIOD_S);
    let change = now.zip(&before, |now, then| (now - then) / PERIOD_S);
    let change_before = before.zip(&first, |now, then| (now - then) / PERIOD_S);
    let jerk = change.zip(&change_before, |now, then| (now - then) / PERIOD_S);
    let largest = |values: &JointVector, most: &JointVector| {
        let ratios = values.zip(most, |value, most| value.abs() / most);
        ratios.iter().copied().fold(0.0, f64::max)
    };
    let speed = largest(&now, &most.velocity_rad_s);
    (speed * speed)
        .max(largest(&change, &most.acceleration_rad_s2))
        .max(largest(&jerk, &most.jerk_rad_s3))
}
