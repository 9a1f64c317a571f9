//! Proves that a segment may be executed, and derives times from a joint's limits.

use super::SECOND_US;
use super::curve::after_stop;
use crate::Joints;
use crate::message::{JointLimits, Knot, NO_JOINT, SegmentStatus};

/// Shortest stop along a tail, in microseconds; in a shorter one, rounding to microradians would look like
/// acceleration.
const STOP_MIN_US: u32 = 10_000;

/// The reason why a segment may not be executed, and the joint concerned.
pub(super) type Refusal = (SegmentStatus, u8);

/// Returns the time that all joints together need to stop at their acceleration limits, in microseconds; never less
/// than [`STOP_MIN_US`].
pub(super) fn stop_us(from: &Joints<Knot>, limits: &Joints<JointLimits>) -> u32 {
    let mut longest_us = STOP_MIN_US;
    for (knot, limits) in from.iter().zip(limits) {
        longest_us = longest_us.max(brake_us(
            knot.velocity_urad_s,
            limits.acceleration_max_urad_s2,
        ));
    }
    longest_us
}

/// Returns the time that one joint needs to stop, in microseconds, rounded up.
pub(super) fn brake_us(velocity_urad_s: i32, rate_urad_s2: u32) -> u32 {
    let speed = u64::from(velocity_urad_s.unsigned_abs()) * 1_000_000;
    u32::try_from(speed.div_ceil(u64::from(rate_urad_s2.max(1)))).unwrap_or(u32::MAX)
}

/// Returns the least time of a smooth curve from rest to rest that keeps a joint within its limits, in
/// microseconds: the speed in the middle is 1.5 times the mean, the acceleration at the ends 6 d/t².
pub(super) fn travel_us(from_urad: i32, to_urad: i32, limits: &JointLimits) -> u32 {
    let distance = u64::from(to_urad.abs_diff(from_urad));
    let by_speed = distance * 1_500_000 / u64::from(limits.velocity_max_urad_s);
    let by_acceleration =
        (6 * distance * 1_000_000 / u64::from(limits.acceleration_max_urad_s2) * 1_000_000).isqrt();
    u32::try_from(by_speed.max(by_acceleration) + 2_000).unwrap_or(u32::MAX)
}

/// Proves that the curve keeps every joint within its limits and that the arm can stop after it.
pub(super) fn prove(
    from: &Joints<Knot>,
    to: &Joints<Knot>,
    duration_us: u16,
    limits: &Joints<JointLimits>,
) -> Result<(), Refusal> {
    let stop_us = stop_us(to, limits);
    let knots = from.iter().zip(to).zip(limits);
    for (joint, ((&from, &to), limits)) in (0u8..).zip(knots) {
        prove_joint(from, to, i64::from(duration_us), limits).map_err(|status| (status, joint))?;
        if !is_within_range(i64::from(after_stop(to, stop_us).position_urad), limits) {
            return Err((SegmentStatus::NoStop, joint));
        }
    }
    Ok(())
}

/// Refuses an anchor of which a joint moves or lies further than `tolerance_urad` from where it stands.
pub(super) fn prove_anchor(
    here: &Joints<Knot>,
    anchor: &Joints<Knot>,
    tolerance_urad: u32,
) -> Result<(), Refusal> {
    for (joint, (here, anchor)) in (0u8..).zip(here.iter().zip(anchor)) {
        let off_urad = here.position_urad.abs_diff(anchor.position_urad);
        if off_urad > tolerance_urad || anchor.velocity_urad_s != 0 {
            return Err((SegmentStatus::Discontinuous, joint));
        }
    }
    Ok(())
}

/// Returns a refusal that concerns no joint.
pub(super) const fn refuse(status: SegmentStatus) -> Refusal {
    (status, NO_JOINT)
}

fn is_within_range(position_urad: i64, limits: &JointLimits) -> bool {
    (i64::from(limits.position_min_urad)..=i64::from(limits.position_max_urad))
        .contains(&position_urad)
}

fn prove_joint(
    from: Knot,
    to: Knot,
    duration_us: i64,
    limits: &JointLimits,
) -> Result<(), SegmentStatus> {
    let (start, end) = (i64::from(from.position_urad), i64::from(to.position_urad));
    let (leave, arrive) = (
        i64::from(from.velocity_urad_s),
        i64::from(to.velocity_urad_s),
    );
    let speed_max = i64::from(limits.velocity_max_urad_s);
    // The curve stays within the hull of its four control points.
    let controls = [
        end,
        start + leave * duration_us / (3 * SECOND_US),
        end - arrive * duration_us / (3 * SECOND_US),
    ];
    if arrive.abs() > speed_max || (end - start).abs() * SECOND_US > speed_max * duration_us {
        return Err(SegmentStatus::Velocity);
    }
    if !controls
        .iter()
        .all(|&control| is_within_range(control, limits))
    {
        return Err(SegmentStatus::Position);
    }
    let (first, last) = accelerations(end - start, leave, arrive, duration_us);
    let rounding =
        6 * SECOND_US * SECOND_US / (duration_us * duration_us) + 6 * SECOND_US / duration_us;
    if first.abs().max(last.abs()) > i64::from(limits.acceleration_max_urad_s2) + rounding {
        return Err(SegmentStatus::Acceleration);
    }
    let peak = peak_speed(leave, first, last, duration_us).abs();
    if peak > speed_max + rounding * duration_us / SECOND_US + 1 {
        return Err(SegmentStatus::Velocity);
    }
    Ok(())
}

/// Returns the acceleration at both ends in microradians per second squared; it changes linearly in between.
fn accelerations(distance: i64, leave: i64, arrive: i64, duration_us: i64) -> (i64, i64) {
    let mean = 6 * distance * SECOND_US / duration_us;
    let first = (mean - 4 * leave - 2 * arrive) * SECOND_US / duration_us;
    let last = (2 * leave + 4 * arrive - mean) * SECOND_US / duration_us;
    (first, last)
}

/// Returns the speed where acceleration changes sign within the curve, or the initial speed if it does not.
fn peak_speed(leave: i64, first: i64, last: i64, duration_us: i64) -> i64 {
    if first.signum() * last.signum() >= 0 {
        return leave;
    }
    let peak_us = duration_us * first / (first - last);
    leave + first * peak_us / (2 * SECOND_US)
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a failing test may panic"
)]
mod tests {
    use super::super::curve::Curve;
    use super::*;
    use proptest::prelude::*;

    const LIMITS: JointLimits = JointLimits {
        position_min_urad: -100_000,
        position_max_urad: 100_000,
        velocity_max_urad_s: 1_000_000,
        acceleration_max_urad_s2: 10_000_000,
        stop_urad_s2: 20_000_000,
    };

    fn one_joint(position_urad: i32, velocity_urad_s: i32) -> Joints<Knot> {
        Joints::from_slice(&[Knot {
            position_urad,
            velocity_urad_s,
        }])
        .unwrap()
    }

    fn limits() -> Joints<JointLimits> {
        Joints::from_slice(&[LIMITS]).unwrap()
    }

    /// Samples a curve ten times per millisecond, as (position, speed).
    fn samples(curve: &Curve) -> impl Iterator<Item = (f64, f64)> {
        let joint = |at: &Joints<Knot>| {
            let knot = at.at(0);
            (
                f64::from(knot.position_urad),
                f64::from(knot.velocity_urad_s),
            )
        };
        (0u32..)
            .step_by(100)
            .map_while(move |at_us| curve.at(at_us, 0))
            .map(move |at| joint(&at))
    }

    fn assert_within(curve: &Curve, duration_us: u32) {
        let samples: std::vec::Vec<(f64, f64)> = samples(curve).collect();
        let duration_s = f64::from(duration_us) / 1e6;
        let slack = 6.0 / (duration_s * duration_s) + 6.0 / duration_s;
        // A few units of the coefficients' last binary place, which is 1/64 microradian, over the
        // curve's duration.
        let resolution = 2.0 + 0.1 / duration_s;
        for pair in samples.windows(2) {
            let [(_, previous), (position, speed)] = pair else {
                continue;
            };
            assert!(position.abs() <= 100_001.0, "position {position}");
            assert!(
                speed.abs() <= 1e6 + slack * duration_s + resolution,
                "speed {speed}"
            );
            let gain = (speed - previous).abs();
            assert!(gain <= (1e7 + slack) * 1e-4 + resolution, "gain {gain}");
        }
    }

    /// Generates knots as a planner near the limits would send them: each follows from the previous one by
    /// constant acceleration, sometimes slightly too much of it.
    fn near_the_limits() -> impl Strategy<Value = (Joints<Knot>, Joints<Knot>, u16)> {
        (
            -100_000i32..=100_000,
            -1_000_000i32..=1_000_000,
            -13_000_000i32..=13_000_000,
            -300i32..=300,
            5_000u16..,
        )
            .prop_map(|(position, speed, rate, off, duration_us)| {
                let t = f64::from(duration_us) / 1e6;
                let (v, a) = (f64::from(speed), f64::from(rate));
                let end = f64::from(position) + v * t + a * t * t / 2.0;
                let to = one_joint(end as i32 + off, (v + a * t) as i32);
                (one_joint(position, speed), to, duration_us)
            })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn proven_segments_stay_within_all_limits_and_can_stop((from, to, duration_us) in near_the_limits()) {
            // Only a segment that could itself be stopped within the range can have been accepted before.
            let is_stoppable = is_within_range(i64::from(after_stop(from.at(0), stop_us(&from, &limits())).position_urad), &LIMITS);
            if is_stoppable && prove(&from, &to, duration_us, &limits()).is_ok() {
                let curve = Curve::between(&from, &to, 0, u32::from(duration_us));
                assert_within(&curve, u32::from(duration_us));
                assert_within(&Curve::tail(&to, &limits(), 0), stop_us(&to, &limits()));
            }
        }

        #[test]
        fn segments_well_within_the_limits_are_proven((from, to, duration_us) in near_the_limits()) {
            let curve = Curve::between(&from, &to, 0, u32::from(duration_us));
            let (last_speed, is_calm) = samples(&curve).fold((None, true), |(previous, is_calm): (Option<f64>, bool), (at, speed)| {
                let is_steady = previous.is_none_or(|previous| (speed - previous).abs() <= 900.0);
                (Some(speed), is_calm && is_steady && at.abs() <= 40_000.0 && speed.abs() <= 5e5)
            });
            let last = to.at(0);
            let ends_inside = last.position_urad.abs() <= 40_000 && last.velocity_urad_s.abs() <= 500_000;
            if last_speed.is_some() && is_calm && ends_inside {
                prop_assert_eq!(prove(&from, &to, duration_us, &limits()), Ok(()));
            }
        }
    }
}
