//! Configuration of a device, and the rules that keep its arithmetic in range.

use crate::message::{JointLimits, ResetCause};
use crate::{Joints, MAX_JOINTS};

/// Largest position in either direction, in microradians (21 turns).
pub const POSITION_MAX_URAD: i32 = 1 << 27;

/// Highest speed limit, in microradians per second.
pub const VELOCITY_MAX_URAD_S: u32 = 50_000_000;

/// Lowest acceleration limit, in microradians per second squared.
pub const ACCELERATION_MIN_URAD_S2: u32 = 10_000;

/// Highest acceleration limit, in microradians per second squared.
pub const ACCELERATION_MAX_URAD_S2: u32 = 1_000_000_000;

/// Longest time that a joint may need to stop from its highest speed, in seconds.
pub const STOP_TIME_MAX_S: u32 = 4;

/// Shortest tick, in microseconds.
pub const TICK_MIN_US: u16 = 200;

/// Longest tick, in microseconds; an emergency stop takes effect with the next tick.
pub const TICK_MAX_US: u16 = 2_000;

/// Configuration of a device for its arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceConfig {
    /// Limits of each joint, base first; 1 to [`MAX_JOINTS`].
    pub limits: Joints<JointLimits>,
    /// Park pose in microradians, within the ranges.
    pub park_urad: Joints<i32>,
    /// Interval between calls of [`super::Device::tick`]: [`TICK_MIN_US`] to [`TICK_MAX_US`].
    pub tick_us: u16,
    /// Interval between two STATE messages, at least 5 000 microseconds.
    pub state_period_us: u32,
    /// Name and version of the firmware: ASCII, padded with zeros.
    pub firmware: [u8; 12],
    /// The reason why the controller last started.
    pub reset_cause: ResetCause,
}

/// Rules that a configuration can break; joints count from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigError {
    /// There must be 1 to [`MAX_JOINTS`] joints, and a park position for each.
    Joints(usize),
    /// The range is empty or exceeds [`POSITION_MAX_URAD`].
    Range(usize),
    /// The speed limit is zero or above [`VELOCITY_MAX_URAD_S`].
    Velocity(usize),
    /// The acceleration limit is outside its bounds, or too low to stop within [`STOP_TIME_MAX_S`].
    Acceleration(usize),
    /// The emergency deceleration is below twice the acceleration limit, or above twice
    /// [`ACCELERATION_MAX_URAD_S2`]. A hold adds its own deceleration to the path's, so a drive must
    /// be capable of twice the limit anyway.
    Stop(usize),
    /// The park position is outside the range.
    Park(usize),
    /// The tick or the state period is outside its bounds.
    Period,
}

impl core::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Joints(count) => {
                write!(
                    f,
                    "{count} joints; there must be 1 to {MAX_JOINTS}, each with a park position"
                )
            }
            Self::Range(joint) => write!(
                f,
                "joint {joint}: empty range, or beyond {POSITION_MAX_URAD} microradians"
            ),
            Self::Velocity(joint) => {
                write!(
                    f,
                    "joint {joint}: speed limit must be 1 to {VELOCITY_MAX_URAD_S} microradians a second"
                )
            }
            Self::Acceleration(joint) => {
                write!(f, "joint {joint}: acceleration limit too low or too high")
            }
            Self::Stop(joint) => write!(
                f,
                "joint {joint}: stop rate must be at least twice the acceleration limit"
            ),
            Self::Park(joint) => write!(f, "joint {joint}: park position outside its range"),
            Self::Period => {
                f.write_str("tick must be 200 to 2000 and state period at least 5000 microseconds")
            }
        }
    }
}

impl core::error::Error for ConfigError {}

impl DeviceConfig {
    /// Checks every rule; fails with the first that is broken.
    pub fn check(&self) -> Result<(), ConfigError> {
        let joints = self.limits.len();
        if joints == 0 || self.park_urad.len() != joints {
            return Err(ConfigError::Joints(joints));
        }
        if !(TICK_MIN_US..=TICK_MAX_US).contains(&self.tick_us) || self.state_period_us < 5_000 {
            return Err(ConfigError::Period);
        }
        for (joint, (limits, &park)) in self.limits.iter().zip(&self.park_urad).enumerate() {
            check_joint(joint, limits, park)?;
        }
        Ok(())
    }
}

fn check_joint(joint: usize, limits: &JointLimits, park_urad: i32) -> Result<(), ConfigError> {
    let range = limits.position_min_urad..=limits.position_max_urad;
    let acceleration = limits.acceleration_max_urad_s2;
    if range.is_empty() || *range.start() < -POSITION_MAX_URAD || *range.end() > POSITION_MAX_URAD {
        return Err(ConfigError::Range(joint));
    }
    if !(1..=VELOCITY_MAX_URAD_S).contains(&limits.velocity_max_urad_s) {
        return Err(ConfigError::Velocity(joint));
    }
    if !(ACCELERATION_MIN_URAD_S2..=ACCELERATION_MAX_URAD_S2).contains(&acceleration)
        || limits.velocity_max_urad_s / acceleration >= STOP_TIME_MAX_S
    {
        return Err(ConfigError::Acceleration(joint));
    }
    if !(2 * acceleration..=2 * ACCELERATION_MAX_URAD_S2).contains(&limits.stop_urad_s2) {
        return Err(ConfigError::Stop(joint));
    }
    if !range.contains(&park_urad) {
        return Err(ConfigError::Park(joint));
    }
    Ok(())
}
