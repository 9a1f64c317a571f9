//! Registers of a Dynamixel X servo, under the manual's names.

use crate::dialect::ServoRegister;

/// Model numbers of the X series: XL430, XL330, XC and XM430, XM540, XH and XW. They count alike.
pub const MODELS: [u16; 24] = [
    1000, 1010, 1020, 1030, 1040, 1050, 1060, 1070, 1080, 1090, 1100, 1110, 1120, 1130, 1140, 1150,
    1170, 1180, 1190, 1200, 1210, 1220, 1230, 1240,
];

/// Addresses below this are kept over power cycles; nothing here ever writes them.
pub const EEPROM_END: u16 = 64;

/// All settings that are kept over power cycles.
pub const SETTINGS: ServoRegister = ServoRegister::new("settings", 0, EEPROM_END);
/// Torque on or off.
pub const TORQUE_ENABLE: ServoRegister = ServoRegister::new("torque enable", 64, 1);
/// From torque enable to hardware error status.
pub const TORQUE_STATE: ServoRegister = ServoRegister::new("torque state", 64, 7);
/// Stops the servo when the bus is silent, in steps of 20 ms.
pub const BUS_WATCHDOG: ServoRegister = ServoRegister::new("bus watchdog", 98, 1);
/// Fraction of the supply's voltage that a servo may use, and so of its torque, in [`PWM_MAX`]ths. A
/// servo starts with [`settings::PWM_LIMIT`] there and takes no more than that.
pub const GOAL_PWM: ServoRegister = ServoRegister::new("goal PWM", 100, 2);
/// Profile acceleration, profile velocity and goal position: written together, and read back,
/// whenever a cap changes.
pub const GOAL: ServoRegister = ServoRegister::new("goal", 108, 12);
/// Goal position alone.
pub const GOAL_POSITION: ServoRegister = ServoRegister::new("goal position", 116, 4);
/// Present current, velocity and position.
pub const PRESENT: ServoRegister = ServoRegister::new("present state", 126, 10);
/// Voltage and temperature.
pub const SUPPLY: ServoRegister = ServoRegister::new("present supply", 144, 3);

/// Torque enable, and goals of PWM, current, velocity and position with their profile.
pub const MOTION: &[std::ops::RangeInclusive<u16>] = &[64..=64, 100..=119];

/// Offsets within [`SETTINGS`].
pub mod settings {
    /// Model number, a word.
    pub const MODEL: usize = 0;
    /// Firmware.
    pub const FIRMWARE: usize = 6;
    /// Return delay in steps of 2 µs.
    pub const RETURN_DELAY: usize = 9;
    /// Drive mode bits.
    pub const DRIVE_MODE: usize = 10;
    /// Operating mode; 3 is position within one turn.
    pub const OPERATING_MODE: usize = 11;
    /// A second id that the servo obeys silently; 255 for none.
    pub const SECONDARY_ID: usize = 12;
    /// Homing offset, four bytes.
    pub const HOMING_OFFSET: usize = 20;
    /// Temperature at which it takes its torque off, in °C.
    pub const TEMPERATURE_MAX: usize = 31;
    /// Greatest voltage in 0.1 V, a word.
    pub const VOLTAGE_MAX: usize = 32;
    /// Least voltage in 0.1 V, a word.
    pub const VOLTAGE_MIN: usize = 34;
    /// Largest fraction of the supply's voltage, a word.
    pub const PWM_LIMIT: usize = 36;
    /// Greatest position, four bytes.
    pub const POSITION_MAX: usize = 48;
    /// Least position, four bytes.
    pub const POSITION_MIN: usize = 52;
}

/// Value for all of the supply's voltage.
pub const PWM_MAX: i32 = 885;

/// Bit in the drive mode: profiles are in time, not in velocity.
pub const DRIVE_MODE_TIME_BASED: u8 = 0x04;

/// The required operating mode. In extended position mode a tripped watchdog may move on.
pub const OPERATING_MODE_POSITION: u8 = 3;

/// Offsets within [`TORQUE_STATE`].
pub mod torque_state {
    /// Torque enable.
    pub const TORQUE: usize = 0;
    /// Hardware error bits.
    pub const HARDWARE_ERROR: usize = 6;
}

/// Offsets within [`PRESENT`].
pub mod present {
    /// Current or load, signed.
    pub const CURRENT: usize = 0;
    /// Velocity, signed, four bytes.
    pub const VELOCITY: usize = 2;
    /// Position, signed, four bytes.
    pub const POSITION: usize = 6;
}

/// One step of the velocity registers: 0.229 turns per minute.
pub const VELOCITY_STEP_TICKS_S: f64 = 0.229 * 4096.0 / 60.0;

/// One step of the acceleration register: 214.577 turns per minute squared.
pub const ACCELERATION_STEP_TICKS_S2: f64 = 214.577 * 4096.0 / 3600.0;

/// The largest value of either register.
pub const PROFILE_MAX: f64 = 32_767.0;

/// The watchdog's setting while the arm is energised: 100 ms.
pub const WATCHDOG_STEPS: i32 = 5;

/// Value of the watchdog once it has tripped.
pub const WATCHDOG_TRIPPED: u8 = 0xFF;

/// Full load, in the current register's steps of 2.69 mA. Models that count load in thousandths there
/// read one sixth low.
pub const CURRENT_MAX: f64 = 1193.0;

/// Positions that may be read in one turn, with a little beyond its ends.
pub const POSITIONS: std::ops::RangeInclusive<i32> = -64..=4159;
