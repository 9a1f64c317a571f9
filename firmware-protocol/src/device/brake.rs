//! The emergency brake: every joint decelerates on its own at its stop rate.
//!
//! An accepted path can be stopped within the range at a lower rate, so a joint that brakes harder on its own
//! stays within the range as well.

use super::limits::brake_us;
use super::{SECOND_US, saturate};
use crate::Joints;
use crate::message::{JointLimits, Knot};

/// One joint's braking.
#[derive(Debug, Clone, Copy, Default)]
struct Joint {
    from: Knot,
    rate_urad_s2: u32,
    duration_us: u32,
}

/// All joints, braking since the same instant.
#[derive(Debug, Clone, Default)]
pub(super) struct Brake {
    joints: Joints<Joint>,
    elapsed_us: u32,
}

impl Brake {
    /// Begins to brake joints at these positions and speeds.
    pub(super) fn begin(moving: &Joints<Knot>, limits: &Joints<JointLimits>) -> Self {
        let mut joints = Joints::empty();
        for (&from, limits) in moving.iter().zip(limits) {
            let rate_urad_s2 = limits.stop_urad_s2;
            joints.push(Joint {
                from,
                rate_urad_s2,
                duration_us: brake_us(from.velocity_urad_s, rate_urad_s2),
            });
        }
        Self {
            joints,
            elapsed_us: 0,
        }
    }

    pub(super) fn advance(&mut self, step_us: u32) {
        self.elapsed_us = self.elapsed_us.saturating_add(step_us);
    }

    pub(super) fn at_rest(&self) -> bool {
        self.joints
            .iter()
            .all(|joint| self.elapsed_us >= joint.duration_us)
    }

    /// Returns the joints' positions and speeds now.
    pub(super) fn now(&self) -> Joints<Knot> {
        let mut now = Joints::empty();
        for joint in &self.joints {
            now.push(joint.state_after(self.elapsed_us));
        }
        now
    }
}

impl Joint {
    fn state_after(&self, elapsed_us: u32) -> Knot {
        let elapsed_us = i64::from(elapsed_us.min(self.duration_us));
        let speed = i64::from(self.from.velocity_urad_s);
        let lost = (i64::from(self.rate_urad_s2) * elapsed_us / SECOND_US).min(speed.abs());
        let remaining = speed - lost * speed.signum();
        let distance = (speed + remaining) * elapsed_us / (2 * SECOND_US);
        Knot {
            position_urad: saturate(i64::from(self.from.position_urad) + distance),
            velocity_urad_s: if elapsed_us == i64::from(self.duration_us) {
                0
            } else {
                saturate(remaining)
            },
        }
    }
}
