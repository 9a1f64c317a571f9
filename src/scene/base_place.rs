//! Where an arm's base stands in a frame that several arms share: as a file's numbers, and as a pose.

use nalgebra::{IsometryMatrix3, Rotation3, Translation3, Vector3};

/// Place of a base by the numbers of a scene's file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BasePlace {
    /// Position of the base frame.
    pub at_m: [f64; 3],
    /// Its rotation about the common z, counter-clockwise.
    pub yaw_deg: f64,
    /// Its lean, after that rotation: the components about the common x and y of one rotation.
    pub tilt_deg: [f64; 2],
}

impl BasePlace {
    /// Returns the numbers of a pose.
    #[must_use]
    pub fn of(pose: &IsometryMatrix3<f64>) -> Self {
        let up = pose.rotation * Vector3::z();
        let axis = Vector3::z().cross(&up).try_normalize(f64::MIN_POSITIVE);
        let tilt = axis.map_or_else(Vector3::zeros, |axis| axis * Vector3::z().angle(&up));
        // What is left after the lean is taken back is a rotation about z.
        let forward = Rotation3::new(-tilt) * (pose.rotation * Vector3::x());
        Self {
            at_m: pose.translation.vector.into(),
            yaw_deg: forward.y.atan2(forward.x).to_degrees(),
            tilt_deg: [tilt.x, tilt.y].map(f64::to_degrees),
        }
    }

    /// Returns the pose of the base frame in the common frame.
    #[must_use]
    pub fn pose(&self) -> IsometryMatrix3<f64> {
        let [about_x, about_y] = self.tilt_deg.map(f64::to_radians);
        let tilt = Rotation3::new(Vector3::new(about_x, about_y, 0.0));
        let yaw = Rotation3::from_axis_angle(&Vector3::z_axis(), self.yaw_deg.to_radians());
        IsometryMatrix3::from_parts(Translation3::from(self.at_m), tilt * yaw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 256, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

        #[test]
        fn a_pose_has_the_numbers_that_it_was_made_of(
            at_m in prop::array::uniform3(-1.0..1.0_f64), yaw_deg in -179.9..179.9_f64,
            tilt_deg in prop::array::uniform2(-10.0..10.0_f64),
        ) {
            let place = BasePlace { at_m, yaw_deg, tilt_deg };
            let again = BasePlace::of(&place.pose());
            let pairs = again.at_m.iter().zip(&at_m).chain(again.tilt_deg.iter().zip(&tilt_deg));
            for (a, b) in pairs.chain([(&again.yaw_deg, &yaw_deg)]) {
                prop_assert!((a - b).abs() < 1e-6, "{place:?} {again:?}");
            }
        }
    }
}
