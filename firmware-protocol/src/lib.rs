//! The wire protocol between a Steadyhand node and a custom arm controller.
//!
//! The crate is `no_std`, allocates nothing and does no input or output: bytes and instants go in,
//! bytes, set-points and events come out. `SPEC.md` is the normative text, `vectors.json` holds
//! frozen bytes, and `c/` is a port of the device side to C99.
//!
//! Quantities on the wire are integers, so that a Cortex-M3 without a floating-point unit can keep
//! up: positions in microradians (`i32`), speeds in microradians a second, time in microseconds of
//! the device's own clock (`u32`, wraps after 71.6 minutes).
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

#[cfg(test)]
extern crate std;

/// Makes the examples of the README run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod cobs;
pub mod crc;
pub mod device;
pub mod frame;
pub mod host;
pub mod joints;
pub mod message;
mod ring;
pub mod schema;
mod wire;

pub use device::{Device, DeviceConfig, Drives, Setpoints};
pub use frame::{Decoder, DecoderCounters, Frame, FrameBytes, Received};
pub use host::{Event, Host};
pub use joints::Joints;
pub use message::{Message, MessageError};

/// Major version of the protocol, in the top two bits of every frame's first byte.
/// A device refuses to arm for a host of another major version.
pub const PROTOCOL_MAJOR: u8 = 1;

/// Minor version of the protocol. Minor versions only add message types at the end of a range; existing ones keep
/// their bytes.
pub const PROTOCOL_MINOR: u8 = 0;

/// Maximum number of joints that one controller may drive.
pub const MAX_JOINTS: usize = 8;

/// Number of segments that a device can queue before it answers `Full`.
pub const QUEUE_DEPTH: usize = 64;
