//! A servo bus: all communication with servos, without a setpoint and without an arm.
#![doc = include_str!("README.md")]

pub mod authority;
pub mod bus;
pub mod complaints;
pub mod counts;
pub mod diagnose;
mod diagnosis;
pub mod dialect;
mod duration_histogram;
pub mod dynamixel;
pub mod error;
pub mod feetech;
pub mod framing;
mod homing;
pub mod host;
pub mod identity;
pub mod model_names;
pub mod reboot;
mod reply_tally;
pub mod scan;
mod servo_line;
pub mod servo_readout;
pub mod setup;
mod setup_fault;
pub mod supply;
#[cfg(test)]
mod tests;
mod unknown_device;
mod wire;

// A user of this crate needs these to open a port and to keep time.
pub use {base, link};

pub use authority::MotionAuthority;
pub use counts::{BusCounts, ServoCounts};
pub use dialect::ServoRegister;
pub use duration_histogram::DurationHistogram;
pub use error::{BusError, ServoFault, ServoName};
pub use framing::{RawReply, ReplyFraming};
pub use identity::{IDENTITY_DIGITS, ServoIdentity};
pub use servo_line::{BusSettings, IDS, PATIENT, SLACK, ServoLine, ServoProtocol};
pub use setup_fault::SetupFault;

use base::wording::next_apart;
use link::{ByteLink, LinkError};

/// Number of retries when a servo does not reply.
pub const RETRIES_MAX: u32 = 2;

/// Opens the port at a baud rate.
pub type OpenPort<'a> = dyn FnMut(u32) -> Result<Box<dyn ByteLink>, LinkError> + Send + 'a;

/// Reason that reading a bus, or a change on it, failed.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The port could not be opened.
    #[error(transparent)]
    Port(#[from] LinkError),
    /// The line failed, or has no such request.
    #[error(transparent)]
    Line(#[from] BusError),
    /// No servo has that id.
    #[error("no servo {id} answers at {baud} baud. Next: `steadyhand bus scan PORT`")]
    NoServo {
        /// The requested id.
        id: u8,
        /// The baud rate.
        baud: u32,
    },
    /// No servo with a usual id is on the bus.
    #[error(
        "no servo with an id from 0 to 16 answers on this port at any speed; `steadyhand bus scan PORT` asks every id. Next: `steadyhand doctor`"
    )]
    NobodyUsual,
    /// The new id is taken.
    #[error("there is already a servo {id}; two servos with one id disturb each other")]
    Taken {
        /// The new id.
        id: u8,
    },
    /// Something that cannot be read replies to the new id.
    #[error(
        "the reply from id {id} is damaged, so a servo may already have this id. Nothing was written. Next: `steadyhand doctor PORT`"
    )]
    MayBeTaken {
        /// The new id.
        id: u8,
    },
    /// A servo replies neither to its old id nor to the new one.
    #[error(
        "neither id {id} nor id {new} answers after the new id was written. Next: `steadyhand bus scan PORT` shows which one the servo has"
    )]
    NeitherId {
        /// The old id.
        id: u8,
        /// The new id.
        new: u8,
    },
    /// The lock of a servo's memory was not restored.
    #[error(
        "{}the lock of servo {id} could not be restored. Its torque is off, and its settings may be unlocked. Next: `steadyhand doctor PORT`, then switch the servo's supply off and on",
        cause.as_ref().map(|cause| failed_part(cause)).unwrap_or_default()
    )]
    Unlocked {
        /// The servo, as it was called before.
        id: u8,
        /// The failure before it.
        cause: Option<Box<ServiceError>>,
    },
    /// A value that the register cannot hold.
    #[error("{what} cannot be {value}. Valid: {range}")]
    Range {
        /// The setting.
        what: &'static str,
        /// The requested value.
        value: String,
        /// The possible values.
        range: &'static str,
    },
    /// The servo has no such setting.
    #[error(
        "servo {id} is a Dynamixel servo, but only Feetech servos have a homing offset. Next: write the count at its joint's zero into the arm file (`zero_tick`)"
    )]
    NoHoming {
        /// The servo.
        id: u8,
    },
    /// Torque stayed on.
    #[error("the torque of servo {id} stays on, but settings can be written only with torque off")]
    TorqueOn {
        /// The servo.
        id: u8,
    },
    /// Two readings of a servo's position or offset differ.
    #[error(
        "servo {id} moves, or its replies are late. Nothing was written. Next: hold the joint still, and check the bus with `steadyhand doctor`"
    )]
    Unsteady {
        /// The servo.
        id: u8,
    },
    /// A servo does not read 2048 after its homing offset was written.
    #[error(
        "servo {id} reads {found} instead of 2048 with the new homing offset. The old offset was restored. Next: hold the joint still, and try again"
    )]
    NotHomed {
        /// The servo.
        id: u8,
        /// The position that it read.
        found: i32,
    },
    /// A setting was not taken.
    #[error("{written} was written to {name} of servo {id}, but it reads {found}")]
    NotTaken {
        /// The servo.
        id: u8,
        /// The setting.
        name: &'static str,
        /// The value written.
        written: i32,
        /// The value read back.
        found: i32,
    },
}

/// Returns an error without its next step, before the rest of a longer message.
fn failed_part(error: &ServiceError) -> String {
    format!("{}; ", next_apart(&error.to_string()).0)
}
