//! Common behaviour of simulated servos, independent of their protocol.

use std::time::Duration;

use crate::arm_dynamics::ArmDynamics;
use base::units::ClockInstant;

/// A servo's answer on the wire, still to be sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ServoAnswer {
    pub(crate) id: u8,
    /// Ids of the other servos that answer within the same frame.
    pub(crate) with: Vec<u8>,
    /// Delay after the wire was last in use.
    pub(crate) delay: Duration,
    pub(crate) bytes: Vec<u8>,
}

impl ServoAnswer {
    /// Returns the ids of all servos that answer in it.
    pub(crate) fn speakers(&self) -> Vec<u8> {
        std::iter::once(self.id)
            .chain(self.with.iter().copied())
            .collect()
    }
}

/// All servos of one bus. Every method ignores unknown ids.
pub(crate) trait BusDevice: Send {
    /// Receives a byte, and returns the servos' answers to the request that it completes.
    fn receive(&mut self, byte: u8, body: &mut ArmDynamics) -> Vec<ServoAnswer>;

    /// Returns the time of a servo's next action without a request.
    fn next_due(&self) -> Option<ClockInstant>;

    /// Lets servos act on their own as far as it is due, and returns what they send unasked.
    fn wake(&mut self, body: &mut ArmDynamics) -> Vec<ServoAnswer>;

    /// Resets everything that is not kept over power cycles.
    fn power_cycle(&mut self, id: u8, body: &mut ArmDynamics);

    /// Takes a servo's power away; a controller keeps its own.
    fn power_off(&mut self, _id: u8, _body: &mut ArmDynamics) {}

    /// Gives a servo its power back.
    fn power_on(&mut self, _id: u8, _body: &mut ArmDynamics) {}

    /// Sets a byte of memory directly; a controller has none that a host could write to.
    fn poke(&mut self, _id: u8, _address: u16, _value: u8) {}

    /// Sets the error bits that the servo reports.
    fn set_error(&mut self, id: u8, bits: u8, body: &mut ArmDynamics);

    /// Makes a servo report this word as its position; `None` for the true one.
    fn force_position(&mut self, id: u8, word: Option<u16>);

    /// Makes a servo report this supply; `None` for the true one. A controller reports one for all.
    fn force_supply(&mut self, _id: u8, _volts: Option<f64>) {}

    /// Sets the speed of the line. Returns whether the device itself ignores what comes at a speed that is not its own.
    fn tune(&mut self, _baud: u32) -> bool {
        false
    }

    /// Sets the speed of all servos, where they have a register for it.
    fn set_baud(&mut self, _baud: u32) {}

    /// Sets the model that a servo reports.
    fn set_model(&mut self, _id: u8, _model: u16) {}

    /// Sets the version and layouts of a controller's greeting; servos send none.
    fn set_greeting(&mut self, _major: u8, _schema: u32) {}

    /// Returns a servo's index on the bus, by its id.
    fn place(&self, id: u8) -> Option<usize>;

    /// Returns the number of attempted writes into memory that outlives the power, in bytes.
    fn kept_writes(&self) -> u64 {
        0
    }
}
