//! Requests as bytes. It is private: outside this crate only [`Dialect::encode`] makes requests, and
//! it requires authority where servos move.
//!
//! [`Dialect::encode`]: crate::dialect::Dialect::encode

use crate::dialect::ServoRegister;

/// The id that every servo obeys. Servos that reply together use this id.
pub(crate) const BROADCAST: u8 = 0xFE;

/// Instruction to a servo; both families use the same numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ServoInstruction {
    /// No parameters; the servo replies.
    Ping = 0x01,
    /// Address, length.
    Read = 0x02,
    /// Address, data.
    #[cfg(test)]
    Write = 0x03,
    /// Restart.
    Reboot = 0x08,
    /// Address, length, ids: the servos reply in that order.
    SyncRead = 0x82,
    /// Address, length, then an id and its data for each; without a reply.
    SyncWrite = 0x83,
    /// As a sync read, with all replies in one packet.
    FastSyncRead = 0x8A,
}

/// A family's requests.
pub trait ServoWire {
    /// True if servos can reply in one packet that they build together.
    const FAST: bool = false;
    /// True if servos restart on request.
    const REBOOTS: bool = false;

    /// Appends a frame.
    ///
    /// # Panics
    /// With more parameters than fit into a frame: cut, the frame would say something else.
    fn frame(out: &mut Vec<u8>, id: u8, instruction: ServoInstruction, parameters: &[u8]);

    /// Returns a register's address and length, as requests begin with them.
    fn range(register: ServoRegister) -> Vec<u8>;
}
