//! Registers of an STS3215, under the manual's names.

use crate::dialect::ServoRegister;

/// Model numbers of the servos with these registers: STS3215 and STS3250.
pub const MODELS: [u16; 2] = [777, 2825];

/// Addresses below this are kept over power cycles; nothing here ever writes them.
pub const EEPROM_END: u16 = 40;

/// All settings that are kept over power cycles.
pub const SETTINGS: ServoRegister = ServoRegister::new("settings", 0, EEPROM_END);
/// Torque on or off. 128 would re-centre the servo: nothing but 0 and 1 is ever written.
pub const TORQUE_ENABLE: ServoRegister = ServoRegister::new("torque enable", 40, 1);
/// Acceleration, goal position, goal time and goal speed, always written together so that a cap
/// travels with every goal.
pub const GOAL: ServoRegister = ServoRegister::new("goal", 41, 7);
/// Fraction of stall torque in thousandths, until the power is cycled.
pub const TORQUE_LIMIT: ServoRegister = ServoRegister::new("torque limit", 48, 2);
/// From torque enable to torque limit: both read as they were written, unless the servo restarted.
pub const TORQUE_STATE: ServoRegister = ServoRegister::new("torque state", 40, 10);
/// Offset of [`TORQUE_LIMIT`] within [`TORQUE_STATE`].
pub const TORQUE_LIMIT_AT: usize = 8;
/// Position, speed, load, voltage and temperature.
pub const PRESENT: ServoRegister = ServoRegister::new("present state", 56, 8);

/// Torque enable, and all registers of a goal.
pub const MOTION: &[std::ops::RangeInclusive<u16>] = &[40..=47];

/// Offsets within [`SETTINGS`].
pub mod settings {
    /// Firmware, major then minor.
    pub const FIRMWARE: usize = 0;
    /// Model number, a word.
    pub const MODEL: usize = 3;
    /// Id.
    pub const ID: usize = 5;
    /// Return delay in steps of 2 µs.
    pub const RETURN_DELAY: usize = 7;
    /// Response level: 0 replies to reads and pings only, 1 to writes too.
    pub const RESPONSE_LEVEL: usize = 8;
    /// Least position, a word.
    pub const POSITION_MIN: usize = 9;
    /// Greatest position, a word.
    pub const POSITION_MAX: usize = 11;
    /// Temperature at which it takes its torque off, in °C.
    pub const TEMPERATURE_MAX: usize = 13;
    /// Greatest voltage in 0.1 V.
    pub const VOLTAGE_MAX: usize = 14;
    /// Least voltage in 0.1 V.
    pub const VOLTAGE_MIN: usize = 15;
    /// Phase bits; see [`super::PHASE_MULTI_TURN`].
    pub const PHASE: usize = 18;
    /// Gain P of the position loop.
    pub const GAIN_P: usize = 21;
    /// Homing offset, a word with its sign in bit 11.
    pub const HOMING_OFFSET: usize = 31;
    /// Operating mode; 0 is position.
    pub const MODE: usize = 33;
}

/// Bit in the phase byte: positions count beyond one turn.
pub const PHASE_MULTI_TURN: u8 = 0x10;

/// The greatest position within one turn.
pub const POSITION_LAST: u16 = 4095;

/// The bits of a homing offset, including its sign.
pub const HOMING_OFFSET_BITS: u16 = 0x0FFF;

/// Offsets within [`PRESENT`].
pub mod present {
    /// Position, sign in bit 15.
    pub const POSITION: usize = 0;
    /// Speed in ticks/s, sign in bit 15.
    pub const SPEED: usize = 2;
    /// Load in thousandths, sign in bit 10.
    pub const LOAD: usize = 4;
    /// Voltage in 0.1 V.
    pub const VOLTAGE: usize = 6;
    /// Temperature in °C.
    pub const TEMPERATURE: usize = 7;
}

/// One step of the acceleration register, in ticks/s².
pub const ACCELERATION_STEP_TICKS_S2: f64 = 100.0;

/// The largest value of the acceleration register.
pub const ACCELERATION_MAX: u8 = 254;

/// The largest goal speed that is ever written, in ticks/s.
pub const SPEED_MAX: u16 = 4095;

/// Ticks that an unwrapped position may have.
pub const POSITIONS: std::ops::RangeInclusive<i32> = 0..=4095;
