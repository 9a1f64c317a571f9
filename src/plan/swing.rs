//! From one pose of the joints to another, all joints together, beginning and ending gently.

use nalgebra::Point3;

use super::PERIOD_S;
use super::course::whole;
use crate::arm::Arm;
use crate::kin::Tip;
use crate::units::Joints;

/// The largest speed of [`gentle`], for a way of 1 in a time of 1.
const SPEED_PEAK: f64 = 1.875;
/// Its largest acceleration.
const ACCELERATION_PEAK: f64 = 5.774;
/// Samples of one swing: a minute.
const SAMPLES_MAX: usize = 6_000;
const ROUNDS_MAX: usize = 40;

/// Samples after the first. No joint passes its limits, no tip passes `tip_m_s`.
pub(super) fn swing(
    arm: &Arm,
    tips: &[Tip],
    from: &Joints,
    to: &Joints,
    tip_m_s: f64,
) -> Vec<Joints> {
    let mut duration_s = shortest_s(arm, from, to);
    for _ in 0..ROUNDS_MAX {
        let samples = sampled(from, to, duration_s);
        let fastest = fastest_m_s(arm, tips, from, &samples);
        if fastest <= tip_m_s || samples.len() >= SAMPLES_MAX {
            return samples;
        }
        duration_s *= (fastest / tip_m_s).max(1.01);
    }
    sampled(from, to, duration_s)
}

fn shortest_s(arm: &Arm, from: &Joints, to: &Joints) -> f64 {
    let mut shortest = PERIOD_S;
    let limits = arm
        .limits
        .velocity_rad_s
        .iter()
        .zip(arm.limits.acceleration_rad_s2.iter());
    for ((a, b), (speed, acceleration)) in from.iter().zip(to.iter()).zip(limits) {
        let way = (b - a).abs();
        shortest = shortest
            .max(SPEED_PEAK * way / speed)
            .max((ACCELERATION_PEAK * way / acceleration).sqrt());
    }
    shortest
}

fn sampled(from: &Joints, to: &Joints, duration_s: f64) -> Vec<Joints> {
    let count = whole((duration_s / PERIOD_S).ceil()).clamp(1, SAMPLES_MAX);
    (1..=count)
        .map(|n| {
            if n == count {
                return *to;
            }
            #[expect(clippy::cast_precision_loss, reason = "at most SAMPLES_MAX")]
            let share = gentle(n as f64 / count as f64);
            from.zip(to, |a, b| a + (b - a) * share)
        })
        .collect()
}

/// From 0 to 1, with no speed and no acceleration at either end.
fn gentle(t: f64) -> f64 {
    t * t * t * (10.0 + t * (6.0 * t - 15.0))
}

fn fastest_m_s(arm: &Arm, tips: &[Tip], from: &Joints, samples: &[Joints]) -> f64 {
    let places = |q: &Joints| -> Vec<Point3<f64>> {
        let mount = arm.chain.frames(q).tool;
        tips.iter().map(|tip| mount * tip.point_m).collect()
    };
    let mut before = places(from);
    let mut fastest = 0.0;
    for sample in samples {
        let now = places(sample);
        for (a, b) in before.iter().zip(&now) {
            fastest = f64::max(fastest, (b - a).norm() / PERIOD_S);
        }
        before = now;
    }
    fastest
}
