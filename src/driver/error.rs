//! Errors of servos, by phase; each message names the servo, the cause and a fix.

use crate::firmware::ControllerFault;
use base::units::{ArmMeasurement, short};
use firmware_protocol::message::Cause;
use link::LinkError;
use servo::SetupFault;
use servo::error::TooLarge;
pub use servo::error::{BusError, ServoFault, ServoName};

/// An error in communication with servos.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// The line failed.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// A servo gave no valid reply.
    #[error(
        "no reply from {servo} after {tries} tries: check its cable and power, and that no other servo has id {}", .servo.id
    )]
    NoReply {
        /// The servo.
        servo: ServoName,
        /// Number of requests.
        tries: u32,
    },
    /// No servo replied at all: the fault is in the bus, not in a servo.
    #[error(
        "none of the {servos} servos answers. Switch the servo supply on, check the cable, and check that the bus runs at {baud} baud"
    )]
    SilentBus {
        /// Number of servos.
        servos: usize,
        /// The baud rate of the requests.
        baud: u32,
    },
    /// The servos that reply are those of another shipped arm.
    #[error(
        "the ids that answer belong to arm `{other}`, but the node file has arm `{arm}`. Connect the right arm, correct the node file, or add a new servo to the arm's file"
    )]
    OtherArm {
        /// The arm with these ids.
        other: &'static str,
        /// The arm that is to be attached.
        arm: String,
    },
    /// Several consecutive readings that no movement explains.
    #[error(
        "{servo} jumped from {from_ticks} to {to_ticks} counts three times in a row (at most {bound_ticks} at its speed): check its cable, and look for a second servo with the same id"
    )]
    Jump {
        /// The servo.
        servo: ServoName,
        /// The last reading that was believed.
        from_ticks: i32,
        /// The last reading that was not.
        to_ticks: i32,
        /// The largest step that would have been believed.
        bound_ticks: i32,
    },
    /// A servo is not set up as this arm needs it.
    #[error("{servo}: {fault}")]
    Setup {
        /// The servo.
        servo: ServoName,
        /// The register, its value, the value needed and the fix.
        fault: SetupFault,
    },
    /// No two readings of the positions agree.
    #[error(
        "{servo}: its position changes between readings. Hold arm `{arm}` still and check its cables"
    )]
    UnsteadyReadings {
        /// The first servo.
        servo: ServoName,
        /// The arm.
        arm: String,
    },
    /// A servo has other firmware than the rest.
    #[error(
        "{servo}: its firmware is {}.{}, but the others have {}.{}. It may be made for a different voltage: check its label, then give all the same firmware with the manufacturer's program",
        .found.0, .found.1, .usual.0, .usual.1
    )]
    OtherFirmware {
        /// The odd one out.
        servo: ServoName,
        /// Its major and minor version.
        found: (u8, u8),
        /// Version of most of them.
        usual: (u8, u8),
    },
    /// A servo is not the one that the arm's zeros were measured with, or its settings have changed.
    #[error(
        "{servo}: its identity is {found}, but the arm's file has {known}: its model, firmware, limits, homing offset or phase changed. Undo that change, or calibrate the joint and copy the identity from `steadyhand doctor`"
    )]
    Stranger {
        /// The servo.
        servo: ServoName,
        /// As the arm's file has it.
        known: String,
        /// As it was read.
        found: String,
    },
    /// A servo reports a fault.
    #[error("{servo}: {fault}")]
    Device {
        /// The servo.
        servo: ServoName,
        /// The reported fault.
        fault: ServoFault,
        /// The readings of that cycle where they were complete.
        measured: Option<Box<ArmMeasurement>>,
    },
    /// A register did not take the written value.
    #[error("{servo}: {written} was written to {register}, but it reads {found}")]
    NotTaken {
        /// The servo.
        servo: ServoName,
        /// The register, as the manual calls it.
        register: &'static str,
        /// The value written.
        written: i32,
        /// The value read back.
        found: i32,
    },
    /// A goal outside the joint's limits. It should have been refused long before.
    #[error("goal for {servo} is {} rad, outside {} to {}", short(*.goal_rad), short(*.lower_rad), short(*.upper_rad))]
    Goal {
        /// The servo.
        servo: ServoName,
        /// The requested goal.
        goal_rad: f64,
        /// The joint's lower limit.
        lower_rad: f64,
        /// The joint's upper limit.
        upper_rad: f64,
    },
    /// A goal that does not fit its register. It should have been refused long before.
    #[error("goal for {servo}: {refused}")]
    Unfit {
        /// The servo.
        servo: ServoName,
        /// The goal and what fits.
        refused: TooLarge,
    },
    /// A controller with firmware of its own cannot be used, or stopped by itself.
    #[error("the arm's controller {0}")]
    Controller(#[from] ControllerFault),
    /// Two servos of one joint read different angles.
    #[error(
        "{servo} and {twin} turn one joint but read {apart_deg:.1}° apart (at most {limit_deg:.0}°). Torque would drive them against each other: check their mounting, homing offsets and `zero_tick`"
    )]
    TwinsDiffer {
        /// The later servo.
        servo: ServoName,
        /// The first servo of that joint.
        twin: Box<ServoName>,
        /// The angle between them.
        apart_deg: f64,
        /// The largest angle that is allowed.
        limit_deg: f64,
    },
    /// A joint is being turned by hand, and torque would pull it back to where it was read.
    #[error(
        "{servo} was turned while its torque was being switched on: hold the arm still, then try again"
    )]
    Turned {
        /// The servo.
        servo: ServoName,
    },
    /// Motion was requested of an arm without torque.
    #[error("the arm's torque is off")]
    Limp,
}

impl DriverError {
    /// Returns whether a later cycle may succeed without help: only a reading was lost.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::NoReply { .. }
                | Self::SilentBus { .. }
                | Self::Controller(ControllerFault::Silent { .. })
        )
    }

    /// Returns whether a servo or the controller heard nothing from this node for too long.
    #[must_use]
    pub fn is_of_silence(&self) -> bool {
        matches!(
            self,
            Self::Device {
                fault: ServoFault::Watchdog,
                ..
            } | Self::Controller(ControllerFault::Stopped(Cause::Deadman))
        )
    }

    /// Returns whether the adapter itself is gone.
    #[must_use]
    pub fn is_unplugged(&self) -> bool {
        matches!(
            self,
            Self::Bus(BusError::Write(LinkError::Unplugged) | BusError::Read(LinkError::Unplugged))
        )
    }

    /// Returns the servo that it concerns, if any.
    #[must_use]
    pub fn servo(&self) -> Option<&ServoName> {
        match self {
            Self::NoReply { servo, .. }
            | Self::Jump { servo, .. }
            | Self::Setup { servo, .. }
            | Self::UnsteadyReadings { servo, .. }
            | Self::OtherFirmware { servo, .. }
            | Self::Device { servo, .. }
            | Self::NotTaken { servo, .. }
            | Self::TwinsDiffer { servo, .. }
            | Self::Goal { servo, .. } => Some(servo),
            _ => None,
        }
    }

    /// Returns the readings of the failed cycle, where they were complete nevertheless.
    #[must_use]
    pub fn measured(&self) -> Option<&ArmMeasurement> {
        match self {
            Self::Device { measured, .. } => measured.as_deref(),
            _ => None,
        }
    }
}
