//! Moves from one pose to another, all joints together, from rest to rest.

use nalgebra::Point3;

use super::PERIOD_S;
use super::cartesian_path::to_count;
use super::error::RefusalCause;
use super::scalar_profile::{ProfileLimits, ScalarProfile};
use arm::ArmModel;
use base::units::JointVector;
use kin::ToolTip;

/// Shortest time in which a joint reaches its largest acceleration.
const RISE_S: f64 = 0.1;
/// Most samples of one swing: a minute.
const SAMPLES_MAX: usize = 6_000;
const ROUNDS_MAX: usize = 40;

/// Returns the samples after the first. No joint exceeds its limits, and no tip exceeds `tip_m_s`.
///
/// # Errors
/// When the move takes longer than [`SAMPLES_MAX`] samples, or its limits make no sense.
pub(super) fn plan_joint_move(
    arm: &ArmModel,
    tips: &[ToolTip],
    from: &JointVector,
    to: &JointVector,
    tip_m_s: f64,
) -> Result<Vec<JointVector>, RefusalCause> {
    if !(tip_m_s > 0.0 && from.is_finite() && to.is_finite()) {
        return Err(RefusalCause::Unfit {
            why: format!("cannot be timed from {from:?} to {to:?} rad at {tip_m_s} m/s"),
        });
    }
    let mut limits = move_limits(arm, from, to);
    let mut samples = sample_move(from, to, limits)?;
    for _ in 0..ROUNDS_MAX {
        let fastest_m_s = fastest_tip_m_s(arm, tips, from, &samples);
        if fastest_m_s <= tip_m_s {
            break;
        }
        // A short move may never come to its speed limit.
        let peak_speed = limits.speed.min(peak_fraction_per_s(from, to, &samples));
        limits.speed = peak_speed / (fastest_m_s / tip_m_s).max(1.01);
        samples = sample_move(from, to, limits)?;
    }
    Ok(samples)
}

/// Returns the limits of the whole move, its length being 1.
fn move_limits(arm: &ArmModel, from: &JointVector, to: &JointVector) -> ProfileLimits {
    let joint_limits = &arm.limits;
    let cruise_rad_s = joint_limits.cruise_rad_s();
    let limits = cruise_rad_s
        .iter()
        .zip(joint_limits.acceleration_rad_s2.iter());
    let (mut speed, mut acceleration) = (1.0 / PERIOD_S, 1.0 / PERIOD_S / PERIOD_S);
    for ((a, b), (speed_max, acceleration_max)) in from.iter().zip(to.iter()).zip(limits) {
        let angle_rad = (b - a).abs().max(1e-9);
        speed = f64::min(speed, speed_max / angle_rad);
        acceleration = f64::min(acceleration, acceleration_max / angle_rad);
    }
    ProfileLimits {
        speed,
        acceleration,
        jerk: acceleration / RISE_S,
    }
}

fn sample_move(
    from: &JointVector,
    to: &JointVector,
    limits: ProfileLimits,
) -> Result<Vec<JointVector>, RefusalCause> {
    let ramp = ScalarProfile::new(1.0, limits).ok_or_else(|| RefusalCause::Unfit {
        why: format!("cannot be timed from {from:?} to {to:?} rad with {limits:?}"),
    })?;
    let periods = (ramp.duration_s() / PERIOD_S).ceil().max(1.0);
    let count = to_count(periods);
    RefusalCause::refuse_longer(count, SAMPLES_MAX)?;
    let rate = ramp.duration_s() / periods;
    let at = |n: usize| {
        let fraction = ramp.at(n as f64 * rate);
        from.zip(to, |a, b| a + (b - a) * fraction)
    };
    Ok((1..count).map(at).chain([*to]).collect())
}

/// Returns the largest fraction of the move per second.
fn peak_fraction_per_s(from: &JointVector, to: &JointVector, samples: &[JointVector]) -> f64 {
    let angle_rad = from.distance_max(to).max(1e-9);
    let before = std::iter::once(from).chain(samples);
    let steps = before.zip(samples).map(|(a, b)| a.distance_max(b));
    steps.fold(0.0, f64::max) / angle_rad / PERIOD_S
}

fn fastest_tip_m_s(
    arm: &ArmModel,
    tips: &[ToolTip],
    from: &JointVector,
    samples: &[JointVector],
) -> f64 {
    let tip_points = |q: &JointVector| -> Vec<Point3<f64>> {
        let mount = arm.chain.frames(q).tool;
        tips.iter().map(|tip| mount * tip.point_m).collect()
    };
    let mut before = tip_points(from);
    let mut fastest = 0.0;
    for sample in samples {
        let now = tip_points(sample);
        for (a, b) in before.iter().zip(&now) {
            fastest = f64::max(fastest, (b - a).norm() / PERIOD_S);
        }
        before = now;
    }
    fastest
}
