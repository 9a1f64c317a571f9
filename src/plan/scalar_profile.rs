//! From rest to rest over a way in one number, as soon as speed, acceleration and jerk allow.

#![expect(clippy::indexing_slicing, reason = "everything has one dimension")]

use rsruckig::prelude::{DataArrayOrVec, InputParameter, Ruckig, ThrowErrorHandler, Trajectory};

/// Largest values along the path; all above 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProfileLimits {
    pub(super) speed: f64,
    pub(super) acceleration: f64,
    pub(super) jerk: f64,
}

/// A way in time.
pub(super) struct ScalarProfile {
    trajectory: Trajectory<1>,
    length: f64,
}

impl ScalarProfile {
    /// `None` where a number makes no sense; for lengths above 0 there always is one otherwise.
    pub(super) fn new(length: f64, most: ProfileLimits) -> Option<Self> {
        let mut input = InputParameter::<1>::new(None);
        input.target_position[0] = length;
        input.max_velocity[0] = most.speed;
        input.max_acceleration[0] = most.acceleration;
        input.max_jerk[0] = most.jerk;
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
        let mut position = DataArrayOrVec::Stack([0.0]);
        let none = || None;
        self.trajectory.at_time(
            t_s,
            &mut Some(&mut position),
            &mut none(),
            &mut none(),
            &mut none(),
            &mut None,
        );
        position[0].clamp(0.0, self.length)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    #[test]
    fn a_ramp_keeps_speed_acceleration_and_jerk() {
        let most = ProfileLimits {
            speed: 0.1,
            acceleration: 1.0,
            jerk: 20.0,
        };
        for length in [1e-4, 0.01, 0.3] {
            let ramp = ScalarProfile::new(length, most).unwrap();
            let dt = 1e-3;
            let at = |n: i32| ramp.at(f64::from(n) * dt);
            for n in 3..2000 {
                let (a, b, c, d) = (at(n - 3), at(n - 2), at(n - 1), at(n));
                assert!((d - c) / dt <= most.speed * 1.001);
                assert!((d - 2.0 * c + b).abs() / dt / dt <= most.acceleration * 1.01);
                let jerk = (d - 3.0 * c + 3.0 * b - a) / dt / dt / dt;
                assert!(jerk.abs() <= most.jerk * 1.05, "{jerk}");
            }
            assert!((ramp.at(ramp.duration_s()) - length).abs() < 1e-9);
        }
    }
}
