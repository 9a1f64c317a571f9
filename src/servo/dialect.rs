//! The interface of a servo family: its requests, its registers and what their contents mean. A new
//! family implements it in one file, and adds a codec.

use std::ops::RangeInclusive;

use crate::authority::MotionAuthority;
use crate::bus::StatusReply;
use crate::error::{ServoFault, ServoName, TooLarge};
use crate::framing::ReplyFraming;
use crate::identity::ServoIdentity;
use crate::setup_fault::SetupFault;
use crate::wire::{BROADCAST, ServoInstruction, ServoWire};

/// A register in a servo's memory: address and length in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServoRegister {
    /// The manual's name.
    pub name: &'static str,
    /// Address of its first byte.
    pub address: u16,
    /// Length in bytes.
    pub length: u16,
}

impl ServoRegister {
    /// Creates a register.
    pub(crate) const fn new(name: &'static str, address: u16, length: u16) -> Self {
        Self {
            name,
            address,
            length,
        }
    }

    /// Returns a value as the bytes of this register.
    #[must_use]
    pub fn bytes_of(&self, value: i32) -> Vec<u8> {
        let bytes = value.to_le_bytes().into_iter();
        bytes.take(usize::from(self.length)).collect()
    }
}

/// A request to servos.
#[derive(Clone, Copy, Debug)]
pub enum ServoRequest<'a> {
    /// Checks that a servo is there.
    Ping(u8),
    /// Reads a register of one servo.
    Read(u8, ServoRegister),
    /// Reads a register of each servo; they reply in this order.
    SyncRead(ServoRegister, &'a [u8]),
    /// Reads a register of each servo, in one packet that they build together. `false` from
    /// [`Dialect::encode`] where a family has no such request.
    FastSyncRead(ServoRegister, &'a [u8]),
    /// Writes a setting of each servo, without a reply. `false` from [`Dialect::encode`] where it would
    /// let a servo move: a goal, or torque switched on.
    SyncWrite(ServoRegister, &'a [(u8, Vec<u8>)]),
    /// Writes a register of each servo that may let it move, without a reply.
    MotionWrite(ServoRegister, &'a [(u8, Vec<u8>)], &'a MotionAuthority),
    /// Restarts a servo. `false` from [`Dialect::encode`] where a family has no such request.
    Reboot(u8),
}

/// Goal of a servo, with its speed cap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServoGoal {
    pub ticks: i32,
    pub speed_ticks_s: f64,
}

/// One reading of a servo's present state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServoReading {
    pub ticks: i32,
    pub speed_ticks_s: f64,
    pub load_ratio: f64,
    pub voltage_v: Option<f64>,
    pub temperature_c: Option<f64>,
    pub error: u8,
}

/// State of a servo from the less frequent readings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowReadings {
    pub torque_on: Option<bool>,
    pub voltage_v: Option<f64>,
    pub temperature_c: Option<f64>,
    /// Latched hardware error bits, where the family keeps them in a register.
    pub hardware_error: u8,
    pub voltage_limits_v: (f64, f64),
}

impl Default for SlowReadings {
    fn default() -> Self {
        Self {
            torque_on: None,
            voltage_v: None,
            temperature_c: None,
            hardware_error: 0,
            voltage_limits_v: (0.0, f64::INFINITY),
        }
    }
}

/// A register and what is written to it in every servo.
pub type RegisterSetting = (ServoRegister, i32);

/// The protocol of one servo family.
pub trait Dialect: ServoWire + Send + Sized + 'static {
    /// Its frames.
    type Framing: ReplyFraming + Default + 'static;

    /// Parameter bytes of the reply to a ping.
    const PING_LENGTH: usize;
    /// The settings that are kept over power cycles and are checked.
    const SETTINGS: ServoRegister;
    /// Torque on or off.
    const TORQUE_ENABLE: ServoRegister;
    /// The goal and its caps.
    const GOAL: ServoRegister;
    /// The goal position without the caps, at the end of [`Self::GOAL`], for a servo that keeps its caps
    /// and also stops by itself when the bus is silent. `None`: every goal includes its caps.
    const GOAL_POSITION: Option<ServoRegister> = None;
    /// `true` if all servos of an arm must have the same firmware.
    const SAME_FIRMWARE: bool = false;
    /// The present state, read in every cycle.
    const PRESENT: ServoRegister;
    /// Slower readings, one after the other.
    const STATES: &'static [ServoRegister];
    /// Fraction of its torque that a servo may use, until its power is cycled.
    const TORQUE_LIMIT: ServoRegister;
    /// Written and read back before torque goes on.
    const PREPARE: &'static [RegisterSetting];
    /// Written and read back when torque is on.
    const ARM: &'static [RegisterSetting];
    /// Written when torque goes off.
    const DISARM: &'static [RegisterSetting];
    /// Positions that a servo may report.
    const POSITIONS: RangeInclusive<i32>;

    /// Meaning of each error bit, the most severe first.
    const ERROR_BITS: &'static [(u8, ServoFault)];

    /// Addresses that make a servo move, or hold still, when they are written: torque enable and goals.
    const MOTION: &'static [RangeInclusive<u16>];

    /// Appends a request's bytes; returns whether the family has such a request and it may be sent.
    fn encode(out: &mut Vec<u8>, request: ServoRequest<'_>) -> bool {
        let (id, instruction, parameters) = match request {
            ServoRequest::Ping(id) => (id, ServoInstruction::Ping, Vec::new()),
            ServoRequest::Read(id, register) => (id, ServoInstruction::Read, Self::range(register)),
            ServoRequest::SyncRead(register, ids) => {
                let parameters = [&Self::range(register), ids].concat();
                (BROADCAST, ServoInstruction::SyncRead, parameters)
            }
            ServoRequest::FastSyncRead(register, ids) if Self::FAST => {
                let parameters = [&Self::range(register), ids].concat();
                (BROADCAST, ServoInstruction::FastSyncRead, parameters)
            }
            ServoRequest::Reboot(id) if Self::REBOOTS => (id, ServoInstruction::Reboot, Vec::new()),
            ServoRequest::FastSyncRead(..) | ServoRequest::Reboot(_) => return false,
            ServoRequest::SyncWrite(register, blocks) if !is_harmless::<Self>(register, blocks) => {
                return false;
            }
            ServoRequest::SyncWrite(register, blocks)
            | ServoRequest::MotionWrite(register, blocks, _) => {
                let mut parameters = Self::range(register);
                for (id, block) in blocks {
                    parameters.push(*id);
                    parameters.extend(block);
                }
                (BROADCAST, ServoInstruction::SyncWrite, parameters)
            }
        };
        Self::frame(out, id, instruction, &parameters);
        true
    }

    /// Returns the bytes of [`Self::GOAL`], for a joint whose plan accelerates up to this.
    ///
    /// # Errors
    /// When the register does not hold the goal.
    fn goal_block(acceleration_ticks_s2: f64, goal: ServoGoal) -> Result<Vec<u8>, TooLarge>;

    /// Returns the goal position in [`Self::GOAL`] as it was read back.
    fn goal_ticks(status: &StatusReply) -> i32;

    /// Returns the contents of [`Self::PRESENT`].
    fn parse_reading(status: &StatusReply) -> ServoReading;

    /// Returns a servo's identity, from [`Self::SETTINGS`].
    ///
    /// # Errors
    /// As [`Self::check`].
    fn identify(
        settings: &StatusReply,
        servo: ServoName,
        others: &[u8],
    ) -> Result<ServoIdentity, SetupFault> {
        Self::check(settings, servo.id, others)?;
        Ok(Self::describe(settings, servo))
    }

    /// Refuses settings that an arm cannot use.
    ///
    /// # Errors
    /// The register, its value, the value needed and the fix.
    fn check(settings: &StatusReply, requested: u8, others: &[u8]) -> Result<(), SetupFault>;

    /// Reads the identity of a servo from [`Self::SETTINGS`].
    fn describe(settings: &StatusReply, servo: ServoName) -> ServoIdentity;

    /// Returns the supply limits from a servo's settings.
    fn voltage_limits_v(settings: &StatusReply) -> (f64, f64);

    /// Returns the temperature at which a servo takes its torque off, from its settings; 0 where it never
    /// does.
    fn temperature_max_c(settings: &StatusReply) -> f64;

    /// Returns what [`Self::TORQUE_LIMIT`] is for work and for touching, in a servo with such
    /// [`Self::SETTINGS`].
    fn torque_limits(settings: &StatusReply) -> [i32; 2];

    /// Updates the slow readings from the `index`-th of [`Self::STATES`]; returns the fault of an
    /// energised servo, if any.
    fn update_slow_readings(
        index: usize,
        status: &StatusReply,
        slow: &mut SlowReadings,
    ) -> Option<ServoFault>;

    /// Returns the fault that a servo reports in its replies.
    fn reported_fault(error: u8, slow: &SlowReadings) -> Option<ServoFault>;

    /// Returns the number of parameter bytes of the one packet in reply to a fast request.
    fn fast_length(register: ServoRegister, servos: usize) -> usize {
        let _ = (register, servos);
        0
    }

    /// Splits that packet into replies in the order of `ids`; `None` where it is not theirs.
    fn split_fast(
        status: &StatusReply,
        register: ServoRegister,
        ids: &[u8],
    ) -> Option<Vec<Option<StatusReply>>> {
        let _ = (status, register, ids);
        None
    }
}

/// Returns the faults that these bits report, the most severe first.
pub(crate) fn faults_of(
    table: &'static [(u8, ServoFault)],
    error_bits: u8,
) -> impl Iterator<Item = ServoFault> {
    let reported = table.iter().filter(move |(bit, _)| error_bits & bit != 0);
    reported.map(|(_, fault)| *fault)
}

/// Returns whether writing these blocks to `register` moves no servo of `D`: they contain no goal, and
/// where they are torque enable only, they switch torque off.
fn is_harmless<D: Dialect>(register: ServoRegister, blocks: &[(u8, Vec<u8>)]) -> bool {
    let lengths = blocks.iter().map(|(_, block)| block.len());
    let length = lengths.fold(usize::from(register.length), usize::max);
    let end = usize::from(register.address) + length;
    let is_motion = D::MOTION.iter().any(|range| {
        usize::from(register.address) <= usize::from(*range.end())
            && usize::from(*range.start()) < end
    });
    let is_off = |(_, block): &(u8, Vec<u8>)| block.iter().all(|byte| *byte == 0);
    !is_motion || (register == D::TORQUE_ENABLE && length == 1 && blocks.iter().all(is_off))
}
