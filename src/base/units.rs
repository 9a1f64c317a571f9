//! Types that all crates share: finite numbers, instants, joint vectors and measurements.
//!
//! Nothing here knows of scenes, drivers or time sources.

use std::fmt;
use std::ops::{Deref, DerefMut, RangeInclusive};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[path = "units/decimals.rs"]
mod decimals;

pub(crate) use decimals::at_most;
pub use decimals::{short, value_and_limit};

/// Maximum number of joints of an arm.
pub const JOINTS_MAX: usize = 7;

/// Maximum number of servos on one port: coupled joints have two each.
pub const SERVOS_MAX: usize = 12;

/// A number that is neither NaN nor infinite. The field's name tells its unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Finite(f64);

/// A number that was NaN or infinite.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{0} is not a finite number")]
pub struct NotFinite(pub f64);

/// A number outside of its range.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{what} is {value}; {least} to {most} are possible")]
pub struct OutOfRange {
    /// Name and location of the number.
    pub what: String,
    /// The number.
    pub value: f64,
    /// The smallest possible number.
    pub least: f64,
    /// The largest possible number.
    pub most: f64,
}

impl OutOfRange {
    /// Returns the value of a number if it is in the range.
    ///
    /// # Errors
    /// The number is outside of it; the message begins with `what`.
    pub fn check(
        what: impl FnOnce() -> String,
        value: Finite,
        range: &RangeInclusive<f64>,
    ) -> Result<f64, Self> {
        let value = value.get();
        if range.contains(&value) {
            return Ok(value);
        }
        let (least, most) = (*range.start(), *range.end());
        Err(Self {
            what: what(),
            value,
            least,
            most,
        })
    }
}

impl Finite {
    /// Refuses NaN and both infinities.
    pub fn new(value: f64) -> Result<Self, NotFinite> {
        if value.is_finite() {
            Ok(Self(value))
        } else {
            Err(NotFinite(value))
        }
    }

    /// Creates a constant.
    ///
    /// # Panics
    /// When it is NaN or infinite.
    #[must_use]
    pub const fn literal(value: f64) -> Self {
        assert!(value.is_finite(), "not a finite number");
        Self(value)
    }

    /// Returns the number.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl<'de> Deserialize<'de> for Finite {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::new(f64::deserialize(from)?).map_err(serde::de::Error::custom)
    }
}

/// One number per joint, in the chain's order. The variable's name tells the unit (rad, rad/s, rad/s²).
/// Never longer than [`JOINTS_MAX`].
#[derive(Clone, Copy, PartialEq)]
pub struct JointVector {
    len: u8,
    values: [f64; JOINTS_MAX],
}

impl JointVector {
    /// Returns `len` zeros.
    ///
    /// # Panics
    /// If `len` is above [`JOINTS_MAX`]: no joint is dropped silently.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "at most JOINTS_MAX")]
    pub fn zeros(len: usize) -> Self {
        assert!(
            len <= JOINTS_MAX,
            "{len} joints were given; at most {JOINTS_MAX} are possible"
        );
        Self {
            len: len as u8,
            values: [0.0; JOINTS_MAX],
        }
    }

    /// Returns a copy of `values`.
    ///
    /// # Panics
    /// As [`JointVector::zeros`].
    #[must_use]
    pub fn from_slice(values: &[f64]) -> Self {
        let mut all = Self::zeros(values.len());
        for (to, from) in all.iter_mut().zip(values) {
            *to = *from;
        }
        all
    }

    /// Returns a copy with each joint's number replaced by `f`'s result.
    #[must_use]
    pub fn map(&self, f: impl Fn(usize, f64) -> f64) -> Self {
        let mut all = *self;
        for (index, value) in all.iter_mut().enumerate() {
            *value = f(index, *value);
        }
        all
    }

    /// Combines two vectors joint by joint; the result is as long as the shorter of them.
    #[must_use]
    pub fn zip(&self, other: &Self, f: impl Fn(f64, f64) -> f64) -> Self {
        let mut all = Self::zeros(self.len().min(other.len()));
        for (to, (a, b)) in all.iter_mut().zip(self.iter().zip(other.iter())) {
            *to = f(*a, *b);
        }
        all
    }

    /// Returns the largest absolute difference to `other`; 0 for empty vectors, and infinity if a number is
    /// NaN or the lengths differ.
    #[must_use]
    pub fn distance_max(&self, other: &Self) -> f64 {
        if self.len != other.len {
            return f64::INFINITY;
        }
        let differences = self.iter().zip(other.iter()).map(|(a, b)| (a - b).abs());
        differences.fold(0.0, |largest: f64, difference| {
            if difference.is_nan() {
                f64::INFINITY
            } else {
                largest.max(difference)
            }
        })
    }

    /// Returns whether every number is finite.
    #[must_use]
    pub fn is_finite(&self) -> bool {
        self.iter().all(|value| value.is_finite())
    }
}

impl Deref for JointVector {
    type Target = [f64];
    #[expect(clippy::indexing_slicing, reason = "made with at most JOINTS_MAX")]
    fn deref(&self) -> &[f64] {
        &self.values[..usize::from(self.len)]
    }
}

impl DerefMut for JointVector {
    #[expect(clippy::indexing_slicing, reason = "made with at most JOINTS_MAX")]
    fn deref_mut(&mut self) -> &mut [f64] {
        &mut self.values[..usize::from(self.len)]
    }
}

impl fmt::Debug for JointVector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Serialize for JointVector {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.iter())
    }
}

/// A moment on a node's clock, in nanoseconds since that clock began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClockInstant {
    nanos: u64,
}

/// Returns a duration in nanoseconds, saturating.
pub(crate) fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

impl ClockInstant {
    /// The clock's beginning.
    pub const ZERO: Self = Self { nanos: 0 };

    /// Returns the moment `nanos` nanoseconds after the clock's beginning.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self { nanos }
    }

    /// Returns the nanoseconds since the clock's beginning.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.nanos
    }

    /// Returns the moment later by `by`, saturating.
    #[must_use]
    pub fn after(self, by: Duration) -> Self {
        Self::from_nanos(self.nanos.saturating_add(nanos(by)))
    }

    /// Returns the moment earlier by `by`, saturating at the clock's beginning.
    #[must_use]
    pub fn before(self, by: Duration) -> Self {
        Self::from_nanos(self.nanos.saturating_sub(nanos(by)))
    }

    /// Returns the time since `earlier`; zero if that is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.nanos.saturating_sub(earlier.nanos))
    }

    /// Returns the seconds since `earlier`; zero if that is later.
    #[must_use]
    pub fn seconds_since(self, earlier: Self) -> f64 {
        self.since(earlier).as_secs_f64()
    }
}

/// State reported by one servo. `None` is "not read", never "zero".
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ServoState {
    /// The servo's id on its bus.
    pub id: u8,
    /// Position in the servo's own counts.
    pub position_ticks: Option<i32>,
    /// Supply voltage.
    pub voltage_v: Option<f64>,
    /// Temperature inside the servo.
    pub temperature_c: Option<f64>,
    /// Load, signed, as a fraction of the servo's stall torque (-1 to 1).
    pub load_ratio: Option<f64>,
    /// The servo's error bits as its manual numbers them, 0 for none.
    pub error_bits: Option<u8>,
    /// Last reading of the torque switch.
    pub torque_on: Option<bool>,
}

/// Measurements of one bus cycle, in the arm's joints.
#[derive(Clone, Debug, PartialEq)]
pub struct ArmMeasurement {
    /// Arrival of the cycle's last byte.
    pub at: ClockInstant,
    /// Joint positions.
    pub position_rad: JointVector,
    /// Joint velocities as the servos report them.
    pub velocity_rad_s: JointVector,
    /// State of each servo on the port, in the servo map's order.
    pub servos: Vec<ServoState>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_that_cannot_be_compared_are_infinitely_distant() {
        let vector = |values: &[f64]| JointVector::from_slice(values);
        let (two, three) = (vector(&[0.0, 0.0]), vector(&[0.0, 0.0, 0.0]));
        assert_eq!(
            two.distance_max(&vector(&[0.1, -0.5])).to_bits(),
            0.5_f64.to_bits()
        );
        assert!(two.distance_max(&three).is_infinite());
        assert!(two.distance_max(&vector(&[])).is_infinite());
        assert!(
            three
                .distance_max(&vector(&[0.0, f64::NAN, 0.1]))
                .is_infinite()
        );
        assert!(vector(&[]).distance_max(&vector(&[])) < 1e-300);
    }

    #[test]
    #[should_panic = "8 joints were given; at most 7 are possible"]
    fn refuses_more_joints_than_an_arm_may_have() {
        let _ = JointVector::from_slice(&[0.0; 8]);
    }
}
