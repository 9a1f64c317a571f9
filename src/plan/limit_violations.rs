//! Finds the samples of a path whose differences violate a limit, and the ratio to the limit.

#![expect(
    clippy::indexing_slicing,
    reason = "every index is cut to the last sample, and each has its joints, tip and waypoint"
)]

use super::PERIOD_S;
use super::time_parameterization::{TimedPath, TipLimits};
use super::tool_ik::ToolIk;
use arm::ArmModel;
use base::units::JointVector;

/// Largest distance of the tip from the straight line, half-way between two samples.
const BOW_M: f64 = 1e-4;
/// Joint turn below which an arm of one metre never deviates that much.
const BOW_RAD: f64 = 0.01;

/// A sample with the two before it and the one after; the path stands still at its ends.
struct StencilWindow<'a> {
    joints: [&'a JointVector; 4],
    index: [usize; 4],
}

impl TimedPath {
    /// Returns the limit violations: waypoint and ratio. A ratio that grows with the square of the
    /// speed is returned as is, and ratios of speeds are squared, so slowing by the square root of
    /// the ratio is enough.
    pub(super) fn limit_violations(
        &self,
        ik: &ToolIk<'_>,
        tip_limits: TipLimits,
    ) -> Vec<(usize, f64)> {
        let last = self.joints.len().saturating_sub(1);
        let windows = if self.joints.is_empty() { 0 } else { last + 2 };
        let ratios = (0..windows)
            .map(|index| self.window(index, last))
            .map(|four| {
                let ([_, _, b, c], [_, _, at, _]) = (four.joints, four.index);
                let ratio = joint_ratio(ik.arm, &four.joints)
                    .max(self.tip_ratio(&four, tip_limits))
                    .max(ik.needle_ratio(b, c, PERIOD_S).powi(2))
                    .max(self.bow_ratio(ik, &four));
                (self.waypoints[at], ratio)
            });
        ratios.filter(|(_, ratio)| *ratio > 1.0).collect()
    }

    /// Returns the largest ratio to an exceeded limit; 0 if there is none.
    pub(super) fn worst_ratio(&self, ik: &ToolIk<'_>, tip_limits: TipLimits) -> f64 {
        let all = self.limit_violations(ik, tip_limits).into_iter();
        all.map(|(_, ratio)| ratio).fold(0.0, f64::max)
    }

    /// Returns the window at a sample. Before the first and after the last one the path stands
    /// still.
    fn window(&self, index: usize, last: usize) -> StencilWindow<'_> {
        let before = [2, 1].map(|by| index.saturating_sub(by));
        let index = [before[0], before[1], index, index + 1].map(|index| index.min(last));
        StencilWindow {
            joints: index.map(|index| &self.joints[index]),
            index,
        }
    }

    fn tip_ratio(&self, four: &StencilWindow<'_>, tip_limits: TipLimits) -> f64 {
        let [_, p, q, r] = four.index.map(|index| self.points[index]);
        let speed = (r - q).norm() / (PERIOD_S * tip_limits.speed_m_s);
        let change = (r - q) - (q - p);
        let acceleration = change.norm() / (PERIOD_S * PERIOD_S * tip_limits.acceleration_m_s2);
        (speed * speed).max(acceleration)
    }

    /// Returns the ratio of the bow: between two samples joints move straight, so the tip does not.
    fn bow_ratio(&self, ik: &ToolIk<'_>, four: &StencilWindow<'_>) -> f64 {
        let [_, _, b, c] = four.joints;
        if b.distance_max(c) < BOW_RAD {
            return 0.0;
        }
        let [_, _, q, r] = four.index.map(|index| self.points[index]);
        let midpoint = b.zip(c, f64::midpoint);
        (ik.point(&midpoint) - nalgebra::center(&q, &r)).norm() / BOW_M
    }
}

/// Returns the joints' largest ratio to a limit where the last samples of one path meet the first
/// of the next.
pub(super) fn seam_ratio(arm: &ArmModel, samples: &[JointVector]) -> f64 {
    let ratios = (samples.windows(4)).map(|w| joint_ratio(arm, &[&w[0], &w[1], &w[2], &w[3]]));
    ratios.fold(0.0, f64::max)
}

fn joint_ratio(arm: &ArmModel, [z, a, b, c]: &[&JointVector; 4]) -> f64 {
    let limits = &arm.limits;
    let now = b.zip(c, |b, c| (c - b) / PERIOD_S);
    let before = a.zip(b, |a, b| (b - a) / PERIOD_S);
    let first = z.zip(a, |z, a| (a - z) / PERIOD_S);
    let change = now.zip(&before, |now, then| (now - then) / PERIOD_S);
    let change_before = before.zip(&first, |now, then| (now - then) / PERIOD_S);
    let jerk = change.zip(&change_before, |now, then| (now - then) / PERIOD_S);
    let largest = |values: &JointVector, limits: &JointVector| {
        let ratios = values.zip(limits, |value, limit| value.abs() / limit);
        ratios.iter().copied().fold(0.0, f64::max)
    };
    let speed = largest(&now, &limits.cruise_rad_s());
    (speed * speed)
        .max(largest(&change, &limits.acceleration_rad_s2))
        .max(largest(&jerk, &limits.jerk_rad_s3))
}
