//! From one pose of the joints to another, all joints together, beginning and ending gently.

use nalgebra::Point3;

use super::PERIOD_S;
use super::cartesian_path::whole;
use super::error::RefusalCause;
use super::scalar_profile::{ProfileLimits, ScalarProfile};
use arm::ArmModel;
use base::units::JointVector;
use kin::ToolTip;

/// Shortest time in which a joint reaches its largest acceleration.
const RISE_S: f64 = 0.1;
/// Samples of one swing: a minute.
const SAMPLES_MAX: usize = 6_000;
const ROUNDS_MAX: usize = 40;

/// Samples after the first. No joint passes its limits, no tip passes `tip_m_s`.
///
/// # Errors
/// When it takes longer than [`SAMPLES_MAX`] samples, or its limits make no sense.
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
    let mut most = most(arm, from, to);
    let mut samples = sampled(from, to, most)?;
    for _ in 0..ROUNDS_MAX {
        let fastest = fastest_m_s(arm, tips, from, &samples);
        if fastest <= tip_m_s {
            break;
        }
        // A short way may never be as fast as it might be.
        let reached = most.speed.min(share_s(from, to, &samples));
        most.speed = reached / (fastest / tip_m_s).max(1.01);
        samples = sampled(from, to, most)?;
    }
    Ok(samples)
}

/// The limits of the way as a whole, its length being 1.
fn most(arm: &ArmModel, from: &JointVector, to: &JointVector) -> ProfileLimits {
    let most = &arm.limits;
    let limits = most
        .velocity_rad_s
        .iter()
        .zip(most.acceleration_rad_s2.iter());
    let (mut speed, mut acceleration) = (1.0 / PERIOD_S, 1.0 / PERIOD_S / PERIOD_S);
    for ((a, b), (v, hardest)) in from.iter().zip(to.iter()).zip(limits) {
        let way = (b - a).abs().max(1e-9);
        speed = f64::min(speed, v / way);
        acceleration = f64::min(acceleration, hardest / way);
    }
    ProfileLimits {
        speed,
        acceleration,
        jerk: acceleration / RISE_S,
    }
}

fn sampled(
    from: &JointVector,
    to: &JointVector,
    most: ProfileLimits,
) -> Result<Vec<JointVector>, RefusalCause> {
    let ramp = ScalarProfile::new(1.0, most).ok_or_else(|| RefusalCause::Unfit {
        why: format!("cannot be timed from {from:?} to {to:?} rad with {most:?} of the way"),
    })?;
    let periods = (ramp.duration_s() / PERIOD_S).ceil().max(1.0);
    let count = whole(periods);
    RefusalCause::refuse_longer(count, SAMPLES_MAX)?;
    let rate = ramp.duration_s() / periods;
    let at = |n: usize| {
        let share = ramp.at(n as f64 * rate);
        from.zip(to, |a, b| a + (b - a) * share)
    };
    Ok((1..count).map(at).chain([*to]).collect())
}

/// The most of the way that a second takes, the way's length being 1.
fn share_s(from: &JointVector, to: &JointVector, samples: &[JointVector]) -> f64 {
    let way = from.distance_max(to).max(1e-9);
    let before = std::iter::once(from).chain(samples);
    let steps = before.zip(samples).map(|(a, b)| a.distance_max(b));
    steps.fold(0.0, f64::max) / way / PERIOD_S
}

fn fastest_m_s(
    arm: &ArmModel,
    tips: &[ToolTip],
    from: &JointVector,
    samples: &[JointVector],
) -> f64 {
    let places = |q: &JointVector| -> Vec<Point3<f64>> {
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
