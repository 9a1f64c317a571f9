//! Cubic curves in fixed point, of which every path consists.
//!
//! Positions carry six binary places below the microradian, progress along a curve twenty-four; with
//! the bounds of `config` no product exceeds 61 bits.

use super::limits::stop_us;
use super::{SECOND_US, saturate};
use crate::Joints;
use crate::message::{JointLimits, Knot};

const POSITION_ONE: i64 = 1 << 6;
const PROGRESS_BITS: u32 = 24;

/// One joint's cubic in progress `u` from 0 to 1: `p + a·u + b·u² + c·u³`, in 1/64 microradian.
#[derive(Debug, Clone, Copy, Default)]
struct Cubic {
    p: i64,
    a: i64,
    b: i64,
    c: i64,
}

impl Cubic {
    fn between(from: Knot, to: Knot, duration_us: u32) -> Self {
        let distance = (i64::from(to.position_urad) - i64::from(from.position_urad)) * POSITION_ONE;
        let (leave, arrive) = (
            travel(from.velocity_urad_s, duration_us),
            travel(to.velocity_urad_s, duration_us),
        );
        Self {
            p: i64::from(from.position_urad) * POSITION_ONE,
            a: leave,
            b: 3 * distance - 2 * leave - arrive,
            c: leave + arrive - 2 * distance,
        }
    }

    fn at(&self, progress: i64, duration_us: u32) -> Knot {
        let cu = (self.c * progress) >> PROGRESS_BITS;
        let bu = ((self.b + cu) * progress) >> PROGRESS_BITS;
        let position = self.p + (((self.a + bu) * progress) >> PROGRESS_BITS);
        let slope = self.a + (((2 * self.b + 3 * cu) * progress) >> PROGRESS_BITS);
        Knot {
            position_urad: saturate((position + POSITION_ONE / 2) >> 6),
            velocity_urad_s: saturate(slope * SECOND_US / (i64::from(duration_us) * POSITION_ONE)),
        }
    }
}

/// Returns the distance that a joint covers at this speed in this time, in 1/64 microradian.
fn travel(velocity_urad_s: i32, duration_us: u32) -> i64 {
    i64::from(velocity_urad_s) * i64::from(duration_us) * POSITION_ONE / SECOND_US
}

/// A piece of a path for all joints.
#[derive(Debug, Clone, Copy)]
pub(super) struct Curve {
    cubics: Joints<Cubic>,
    end: Joints<Knot>,
    start_us: u32,
    duration_us: u32,
}

impl Curve {
    /// Creates the curve from one set of knots to another; `duration_us` must not be 0.
    pub(super) fn between(
        from: &Joints<Knot>,
        to: &Joints<Knot>,
        start_us: u32,
        duration_us: u32,
    ) -> Self {
        let mut cubics = Joints::empty();
        for (&from, &to) in from.iter().zip(to) {
            cubics.push(Cubic::between(from, to, duration_us));
        }
        Self {
            cubics,
            end: *to,
            start_us,
            duration_us,
        }
    }

    /// Creates the curve on which all joints decelerate to rest in the same time, the slowest of them at its limit.
    pub(super) fn tail(from: &Joints<Knot>, limits: &Joints<JointLimits>, start_us: u32) -> Self {
        let duration_us = stop_us(from, limits);
        let mut end = *from;
        for knot in end.as_mut_slice() {
            *knot = after_stop(*knot, duration_us);
        }
        Self::between(from, &end, start_us, duration_us)
    }

    pub(super) const fn end_us(&self) -> u32 {
        self.start_us.wrapping_add(self.duration_us)
    }

    pub(super) const fn end(&self) -> &Joints<Knot> {
        &self.end
    }

    /// Returns the joints' positions and speeds at `now_us` and `fraction` 65536ths of a microsecond; `None` once the
    /// curve is over.
    pub(super) fn at(&self, now_us: u32, fraction: u32) -> Option<Joints<Knot>> {
        let elapsed_us = now_us.wrapping_sub(self.start_us);
        if elapsed_us >= self.duration_us {
            return None;
        }
        let elapsed = (i64::from(elapsed_us) << 8) | i64::from(fraction >> 8);
        let progress = (elapsed << (PROGRESS_BITS - 8)) / i64::from(self.duration_us);
        let mut joints = Joints::empty();
        for cubic in &self.cubics {
            joints.push(cubic.at(progress, self.duration_us));
        }
        Some(joints)
    }
}

/// Returns where a joint stands after decelerating evenly for `duration_us`.
pub(super) fn after_stop(knot: Knot, duration_us: u32) -> Knot {
    let distance = i64::from(knot.velocity_urad_s) * i64::from(duration_us) / (2 * SECOND_US);
    Knot {
        position_urad: saturate(i64::from(knot.position_urad) + distance),
        velocity_urad_s: 0,
    }
}
