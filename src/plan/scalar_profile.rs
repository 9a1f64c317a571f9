//! Fastest motions in one dimension that speed, acceleration and jerk allow: from rest to rest, or
//! from rest to a crest.

#![expect(clippy::indexing_slicing, reason = "everything has one dimension")]

use rsruckig::prelude::{DataArrayOrVec, InputParameter, Ruckig, ThrowErrorHandler, Trajectory};

/// Largest values along the path; all above 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProfileLimits {
    pub(super) speed: f64,
    pub(super) acceleration: f64,
    pub(super) jerk: f64,
}

/// A motion along a length over time.
pub(super) struct ScalarProfile {
    trajectory: Trajectory<1>,
    length: f64,
}

impl ScalarProfile {
    /// Plans from rest to rest. `None` if a number makes no sense; otherwise there is a profile for
    /// every length above 0.
    pub(super) fn new(length: f64, limits: ProfileLimits) -> Option<Self> {
        Self::ending_with(length, 0.0, limits)
    }

    /// Plans from rest to a crest, where the motion has no speed but still decelerates; the way
    /// back is its mirror image. `None` as for [`ScalarProfile::new`].
    pub(super) fn to_crest(length: f64, limits: ProfileLimits) -> Option<Self> {
        Self::ending_with(length, -crest_deceleration(length, limits), limits)
    }

    fn ending_with(length: f64, acceleration: f64, limits: ProfileLimits) -> Option<Self> {
        let mut input = InputParameter::<1>::new(None);
        input.target_position[0] = length;
        input.target_acceleration[0] = acceleration;
        input.max_velocity[0] = limits.speed;
        input.max_acceleration[0] = limits.acceleration;
        input.max_jerk[0] = limits.jerk;
        let mut trajectory = Trajectory::<1>::new(None);
        Ruckig::<1, ThrowErrorHandler>::new(None, super::PERIOD_S)
            .calculate(&input, &mut trajectory)
            .ok()?;
        let duration = trajectory.get_duration();
        (duration.is_finite() && duration > 0.0).then_some(Self { trajectory, length })
    }

    pub(super) fn duration_s(&self) -> f64 {
        self.trajectory.get_duration()
    }

    /// Returns the distance covered after `t_s`, from 0 to the length.
    pub(super) fn at(&self, t_s: f64) -> f64 {
        self.state(t_s).position
    }

    /// Returns the state after `t_s`.
    pub(super) fn state(&self, t_s: f64) -> ProfileState {
        let [mut position, mut speed, mut acceleration] =
            [const { DataArrayOrVec::Stack([0.0]) }; 3];
        self.trajectory.at_time(
            t_s,
            &mut Some(&mut position),
            &mut Some(&mut speed),
            &mut Some(&mut acceleration),
            &mut None,
            &mut None,
        );
        ProfileState {
            position: position[0].clamp(0.0, self.length),
            speed: speed[0],
            acceleration: acceleration[0],
        }
    }

    /// Returns the time after which `position` is passed.
    pub(super) fn time_at(&self, position: f64) -> f64 {
        let (mut before_s, mut after_s) = (0.0, self.duration_s());
        for _ in 0..BISECTIONS {
            let midpoint_s = f64::midpoint(before_s, after_s);
            if self.at(midpoint_s) < position {
                before_s = midpoint_s;
            } else {
                after_s = midpoint_s;
            }
        }
        after_s
    }
}

/// Halvings of a profile's duration: a second becomes less than a nanosecond.
const BISECTIONS: usize = 30;

/// Position, speed and acceleration at one time.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProfileState {
    pub(super) position: f64,
    pub(super) speed: f64,
    pub(super) acceleration: f64,
}

impl ProfileState {
    /// At rest.
    pub(super) fn at_rest(position: f64) -> Self {
        Self {
            position,
            speed: 0.0,
            acceleration: 0.0,
        }
    }
}

/// Returns the deceleration at the crest that is reached soonest. Where nothing but the jerk limits
/// it, the jerk is positive for a time `t` and then negative for `x·t`, and no speed is left if
/// `1/2 + x - x²/2 = 0`. Otherwise it is the largest allowed, or what the speed limit leaves room
/// for.
fn crest_deceleration(length: f64, limits: ProfileLimits) -> f64 {
    let x = 1.0 + std::f64::consts::SQRT_2;
    let height_jt3 = 1.0 / 6.0 + x / 2.0 + x * x / 2.0 - x.powi(3) / 6.0;
    let rising_s = (length / (height_jt3 * limits.jerk)).cbrt();
    let from_speed = (2.0 * limits.jerk * limits.speed).sqrt();
    ((x - 1.0) * limits.jerk * rising_s)
        .min(limits.acceleration)
        .min(from_speed)
        * CREST_SAFETY
}

/// Factor that keeps a crest's deceleration below its limit despite rounding.
const CREST_SAFETY: f64 = 1.0 - 1e-6;

/// Returns the time from rest to rest in closed form, without a profile.
pub(super) fn rest_to_rest_s(length: f64, limits: ProfileLimits) -> f64 {
    let (speed, acceleration, jerk) = (limits.speed, limits.acceleration, limits.jerk);
    let rise_s = acceleration / jerk;
    let ramp_s = |peak: f64| {
        if peak < acceleration * rise_s {
            2.0 * (peak / jerk).sqrt()
        } else {
            peak / acceleration + rise_s
        }
    };
    let cruise = length - speed * ramp_s(speed);
    if cruise >= 0.0 {
        return 2.0 * ramp_s(speed) + cruise / speed;
    }
    // The speed whose two ramps cover the whole length, if the acceleration limit is reached.
    let half_s = f64::midpoint(-rise_s, rise_s.hypot(2.0 * (length / acceleration).sqrt()));
    let peak = acceleration * half_s;
    if peak < acceleration * rise_s {
        (32.0 * length / jerk).cbrt()
    } else {
        2.0 * ramp_s(peak)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    #[test]
    fn a_ramp_keeps_speed_acceleration_and_jerk() {
        let limits = ProfileLimits {
            speed: 0.1,
            acceleration: 1.0,
            jerk: 20.0,
        };
        for length in [1e-4, 0.01, 0.3] {
            let ramp = ScalarProfile::new(length, limits).unwrap();
            let dt = 1e-3;
            let at = |n: i32| ramp.at(f64::from(n) * dt);
            for n in 3..2000 {
                let (a, b, c, d) = (at(n - 3), at(n - 2), at(n - 1), at(n));
                assert!((d - c) / dt <= limits.speed * 1.001);
                assert!((d - 2.0 * c + b).abs() / dt / dt <= limits.acceleration * 1.01);
                let jerk = (d - 3.0 * c + 3.0 * b - a) / dt / dt / dt;
                assert!(jerk.abs() <= limits.jerk * 1.05, "{jerk}");
            }
            assert!((ramp.at(ramp.duration_s()) - length).abs() < 1e-9);
        }
    }

    /// Limits of each kind, and lengths at which each of them is the binding one.
    fn cases() -> impl Iterator<Item = (f64, ProfileLimits)> {
        let all_limits = [
            (0.1, 1.0, 20.0),
            (3.0, 15.0, 750.0),
            (0.025, 1.0, 20.0),
            (0.01, 1.0, 2.0),
            (10.0, 1.0, 20.0),
        ];
        let lengths = (0..40).map(|n| 1e-5 * 1.4_f64.powi(n));
        lengths.flat_map(move |length| {
            all_limits.map(|(speed, acceleration, jerk)| {
                let limits = ProfileLimits {
                    speed,
                    acceleration,
                    jerk,
                };
                (length, limits)
            })
        })
    }

    #[test]
    fn the_closed_form_takes_as_long_as_the_profile() {
        for (length, limits) in cases() {
            let profile_s = ScalarProfile::new(length, limits).unwrap().duration_s();
            let closed_s = rest_to_rest_s(length, limits);
            assert!(
                (closed_s - profile_s).abs() < 1e-6 * profile_s,
                "{length} {limits:?}: {closed_s} {profile_s}"
            );
        }
    }

    /// Returns time and length from rest over speed `peak` to a crest. The acceleration rises from
    /// 0 and falls to 0; the deceleration rises and stays.
    fn over_a_peak(peak: f64, limits: ProfileLimits) -> (f64, f64) {
        let rise_s = limits.acceleration / limits.jerk;
        let up_s = if peak < limits.acceleration * rise_s {
            2.0 * (peak / limits.jerk).sqrt()
        } else {
            peak / limits.acceleration + rise_s
        };
        let jerk_only_s = (2.0 * peak / limits.jerk).sqrt();
        let (down_s, down) = if jerk_only_s < rise_s {
            (jerk_only_s, peak * jerk_only_s * 2.0 / 3.0)
        } else {
            let remaining_speed = peak - limits.acceleration * rise_s / 2.0;
            let rising = peak * rise_s - limits.jerk * rise_s.powi(3) / 6.0;
            let falling = remaining_speed * remaining_speed / limits.acceleration / 2.0;
            (
                rise_s + remaining_speed / limits.acceleration,
                rising + falling,
            )
        };
        (up_s + down_s, peak * up_s / 2.0 + down)
    }

    #[test]
    fn a_crest_is_reached_as_soon_as_its_limits_allow() {
        for (length, limits) in cases() {
            let (mut low, mut high) = (0.0, limits.speed);
            for _ in 0..100 {
                let peak = f64::midpoint(low, high);
                let is_short = over_a_peak(peak, limits).1 < length;
                (low, high) = if is_short { (peak, high) } else { (low, peak) };
            }
            let (ramps_s, ramps) = over_a_peak(high, limits);
            let expected_s = ramps_s + (length - ramps).max(0.0) / limits.speed;
            let profile = ScalarProfile::to_crest(length, limits)
                .unwrap_or_else(|| panic!("{length} {limits:?}"));
            let found_s = profile.duration_s();
            assert!(
                (found_s - expected_s).abs() < 1e-4 * expected_s,
                "{length} {limits:?}: {found_s} {expected_s}"
            );
            let crest = profile.state(found_s);
            assert!((crest.position - length).abs() < 1e-9 && crest.speed.abs() < 1e-6);
            let half = profile.time_at(length / 2.0);
            assert!((profile.at(half) - length / 2.0).abs() < 1e-6 * length);
        }
    }
}
