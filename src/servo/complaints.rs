//! Judges a servo's own readings: its supply, its temperature and its error bits.

use serde::{Serialize, Serializer};

use crate::dialect::{Dialect as _, faults_of};
use crate::dynamixel::DynamixelDialect;
use crate::error::ServoFault;
use crate::feetech::FeetechDialect;
use crate::servo_line::ServoProtocol;
use crate::supply::SWITCH_OFF;

/// Margin below the temperature at which a servo takes its torque off; within it a servo is too hot.
const HEAT_MARGIN_C: f64 = 10.0;

/// A problem that a servo reports.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ServoComplaint {
    /// The supply is outside the servo's limits.
    #[error("its supply is {voltage_v:.1} V (its limits: {min_v:.1} to {max_v:.1} V)")]
    Supply {
        /// Measured.
        voltage_v: f64,
        /// Least.
        min_v: f64,
        /// Greatest.
        max_v: f64,
    },
    /// It is close to taking its torque off.
    #[error("it is at {temperature_c:.0} °C and switches its torque off at {max_c:.0} °C")]
    Heat {
        /// Measured.
        temperature_c: f64,
        /// The servo's own limit.
        max_c: f64,
    },
    /// An error bit is set.
    #[error("it reports {0}")]
    Reported(ServoFault),
}

impl ServoComplaint {
    /// Returns a supply above the servo's limit, and the limit.
    pub(crate) fn high_supply(&self) -> Option<(f64, f64)> {
        match self {
            Self::Supply {
                voltage_v, max_v, ..
            } if voltage_v > max_v => Some((*voltage_v, *max_v)),
            _ => None,
        }
    }

    /// Returns what to do about it.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Supply {
                voltage_v, max_v, ..
            } if voltage_v > max_v => SWITCH_OFF,
            Self::Supply { .. } => {
                "measure the voltage at the servo while the arm moves. Use the right power adapter, thick short wires and firm plugs"
            }
            Self::Heat { .. } => "let it cool without torque, then reduce its load",
            Self::Reported(_) => {
                "remove the cause. `steadyhand bus monitor PORT` shows whether the error stays; `steadyhand bus reboot` clears a latched error of a Dynamixel servo"
            }
        }
    }
}

impl Serialize for ServoComplaint {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// Returns the complaints of a servo's error bits, the most severe first.
pub fn reported(protocol: ServoProtocol, error_bits: u8) -> impl Iterator<Item = ServoComplaint> {
    let bits = match protocol {
        ServoProtocol::FeetechSts => FeetechDialect::ERROR_BITS,
        ServoProtocol::Dynamixel2 => DynamixelDialect::ERROR_BITS,
    };
    faults_of(bits, error_bits).map(ServoComplaint::Reported)
}

/// Limits that a servo keeps in its settings, and the meaning of its error bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServoLimits {
    pub(crate) voltage_v: (f64, f64),
    pub(crate) temperature_max_c: f64,
    pub(crate) error_bits: &'static [(u8, ServoFault)],
}

impl ServoLimits {
    /// Returns all complaints; a value that a servo does not report is not judged.
    pub(crate) fn judge(
        &self,
        voltage_v: Option<f64>,
        temperature_c: Option<f64>,
        error_bits: u8,
    ) -> Vec<ServoComplaint> {
        let (min_v, max_v) = self.voltage_v;
        let supply = voltage_v
            .filter(|supply_v| max_v > 0.0 && !(min_v..=max_v).contains(supply_v))
            .map(|voltage_v| ServoComplaint::Supply {
                voltage_v,
                min_v,
                max_v,
            });
        let max_c = self.temperature_max_c;
        let heat = temperature_c
            .filter(|servo_c| max_c > 0.0 && *servo_c > max_c - HEAT_MARGIN_C)
            .map(|temperature_c| ServoComplaint::Heat {
                temperature_c,
                max_c,
            });
        let is_covered = |fault: &ServoFault| match fault {
            ServoFault::Voltage => supply.is_some(),
            ServoFault::Heat => heat.is_some(),
            _ => false,
        };
        let reported = faults_of(self.error_bits, error_bits)
            .filter(|fault| !is_covered(fault))
            .map(ServoComplaint::Reported)
            .collect::<Vec<_>>();
        [supply, heat]
            .into_iter()
            .flatten()
            .chain(reported)
            .collect()
    }
}
