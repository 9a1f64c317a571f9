//! Dynamixel X servos over protocol 2.0. Their watchdog stops them when the bus is silent.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::bus::StatusReply;
use crate::dialect::{
    Dialect, RegisterSetting, ServoGoal, ServoReading, ServoRegister, SlowReadings, faults_of,
};
use crate::error::{ServoFault, ServoName, TooLarge};
use crate::identity::ServoIdentity;
use crate::setup_fault::SetupFault;
use crate::wire::{ServoInstruction, ServoWire};

pub mod codec;
pub mod registers;

use codec::DynamixelDecoder;
use registers::{present, settings, torque_state};

/// Factor by which the servo may accelerate harder than the plan: at the plan's own limit its ramps
/// would lag behind the stream of goals.
const ACCELERATION_HEADROOM: f64 = 2.0;

/// Bit in the error byte of a reply while a hardware error is latched. Requests are still accepted.
const ALERT: u8 = 0x80;

/// The protocol 2.0 dialect of the X series.
#[derive(Debug)]
pub struct DynamixelDialect;

impl ServoWire for DynamixelDialect {
    const FAST: bool = true;
    const REBOOTS: bool = true;

    fn frame(out: &mut Vec<u8>, id: u8, instruction: ServoInstruction, parameters: &[u8]) {
        codec::encode(out, id, instruction, parameters);
    }

    fn range(register: ServoRegister) -> Vec<u8> {
        [
            register.address.to_le_bytes(),
            register.length.to_le_bytes(),
        ]
        .concat()
    }
}

impl Dialect for DynamixelDialect {
    type Framing = DynamixelDecoder;

    const PING_LENGTH: usize = 3;
    const SETTINGS: ServoRegister = registers::SETTINGS;
    const TORQUE_ENABLE: ServoRegister = registers::TORQUE_ENABLE;
    const GOAL: ServoRegister = registers::GOAL;
    const GOAL_POSITION: Option<ServoRegister> = Some(registers::GOAL_POSITION);
    const PRESENT: ServoRegister = registers::PRESENT;
    const STATES: &'static [ServoRegister] = &[
        registers::TORQUE_STATE,
        registers::BUS_WATCHDOG,
        registers::SUPPLY,
    ];
    const TORQUE_LIMIT: ServoRegister = registers::GOAL_PWM;
    // A tripped watchdog makes goals read-only until it is cleared.
    const PREPARE: &'static [RegisterSetting] = &[(registers::BUS_WATCHDOG, 0)];
    const ARM: &'static [RegisterSetting] = &[(registers::BUS_WATCHDOG, registers::WATCHDOG_STEPS)];
    const DISARM: &'static [RegisterSetting] = &[(registers::BUS_WATCHDOG, 0)];
    const POSITIONS: RangeInclusive<i32> = registers::POSITIONS;
    const ERROR_BITS: &'static [(u8, ServoFault)] = &[
        (0x20, ServoFault::Overload),
        (0x04, ServoFault::Heat),
        (0x10, ServoFault::Current),
        (0x08, ServoFault::Encoder),
        (0x01, ServoFault::Voltage),
    ];
    const MOTION: &'static [RangeInclusive<u16>] = registers::MOTION;

    fn goal_block(acceleration_ticks_s2: f64, goal: ServoGoal) -> Result<Vec<u8>, TooLarge> {
        let acceleration =
            ACCELERATION_HEADROOM * acceleration_ticks_s2 / registers::ACCELERATION_STEP_TICKS_S2;
        let velocity = goal.speed_ticks_s / registers::VELOCITY_STEP_TICKS_S;
        let mut block = Vec::with_capacity(usize::from(Self::GOAL.length));
        block.extend(profile(acceleration).to_le_bytes());
        block.extend(profile(velocity).to_le_bytes());
        block.extend(goal.ticks.to_le_bytes());
        Ok(block)
    }

    fn goal_ticks(status: &StatusReply) -> i32 {
        status.long(8)
    }

    fn parse_reading(status: &StatusReply) -> ServoReading {
        let current = i16::from_le_bytes(status.word(present::CURRENT).to_le_bytes());
        ServoReading {
            ticks: status.long(present::POSITION),
            speed_ticks_s: f64::from(status.long(present::VELOCITY))
                * registers::VELOCITY_STEP_TICKS_S,
            load_ratio: (f64::from(current) / registers::CURRENT_MAX).clamp(-1.0, 1.0),
            voltage_v: None,
            temperature_c: None,
            error: status.error,
        }
    }

    fn check(status: &StatusReply, _requested: u8, others: &[u8]) -> Result<(), SetupFault> {
        let model = status.word(settings::MODEL);
        let drive = status.byte(settings::DRIVE_MODE);
        let mode = status.byte(settings::OPERATING_MODE);
        let shadow = status.byte(settings::SECONDARY_ID);
        if !registers::MODELS.contains(&model) {
            return Err(SetupFault::NoDynamixelX(model));
        }
        if drive & registers::DRIVE_MODE_TIME_BASED != 0 {
            return Err(SetupFault::TimeBased {
                drive,
                needed: drive & !registers::DRIVE_MODE_TIME_BASED,
            });
        }
        if mode != registers::OPERATING_MODE_POSITION {
            return Err(SetupFault::DynamixelMode(mode));
        }
        if others.contains(&shadow) {
            return Err(SetupFault::SecondaryId(shadow));
        }
        Ok(())
    }

    fn describe(status: &StatusReply, servo: ServoName) -> ServoIdentity {
        ServoIdentity {
            servo,
            model: status.word(settings::MODEL),
            firmware: (status.byte(settings::FIRMWARE), 0),
            return_delay: Duration::from_micros(2 * u64::from(status.byte(settings::RETURN_DELAY))),
            position_min_ticks: status.long(settings::POSITION_MIN),
            position_max_ticks: status.long(settings::POSITION_MAX),
            homing_offset_ticks: status.long(settings::HOMING_OFFSET),
            phase: status.byte(settings::DRIVE_MODE),
            gain_p: None,
            torque_on: false,
            error_bits: status.error,
        }
    }

    fn voltage_limits_v(status: &StatusReply) -> (f64, f64) {
        let volts = |at| f64::from(status.word(at)) / 10.0;
        (volts(settings::VOLTAGE_MIN), volts(settings::VOLTAGE_MAX))
    }

    fn temperature_max_c(status: &StatusReply) -> f64 {
        f64::from(status.byte(settings::TEMPERATURE_MAX))
    }

    fn torque_limits(settings: &StatusReply) -> [i32; 2] {
        let limit = i32::from(settings.word(settings::PWM_LIMIT));
        [limit, limit.min(registers::PWM_MAX / 2)]
    }

    fn update_slow_readings(
        index: usize,
        status: &StatusReply,
        slow: &mut SlowReadings,
    ) -> Option<ServoFault> {
        match index {
            0 => {
                let is_on = status.byte(torque_state::TORQUE) == 1;
                slow.torque_on = Some(is_on);
                slow.hardware_error = status.byte(torque_state::HARDWARE_ERROR);
                (!is_on).then_some(ServoFault::TorqueLost)
            }
            1 if status.byte(0) == registers::WATCHDOG_TRIPPED => Some(ServoFault::Watchdog),
            // A servo that restarted has forgotten its watchdog.
            1 => (status.number() != registers::WATCHDOG_STEPS).then_some(ServoFault::TorqueLost),
            _ => {
                slow.voltage_v = Some(f64::from(status.word(0)) / 10.0);
                slow.temperature_c = Some(f64::from(status.byte(2)));
                None
            }
        }
    }

    fn reported_fault(error: u8, slow: &SlowReadings) -> Option<ServoFault> {
        if error & ALERT == 0 {
            return None;
        }
        let named = faults_of(Self::ERROR_BITS, slow.hardware_error).next();
        named.or(Some(ServoFault::Hardware))
    }

    fn fast_length(register: ServoRegister, servos: usize) -> usize {
        (servos * (usize::from(register.length) + FAST_OVERHEAD)).saturating_sub(3)
    }

    fn split_fast(
        status: &StatusReply,
        register: ServoRegister,
        ids: &[u8],
    ) -> Option<Vec<Option<StatusReply>>> {
        let length = usize::from(register.length);
        // The first servo's error is before the parameters, the last one's CRC after them.
        let mut all = vec![status.error];
        all.extend(&status.data);
        all.extend([0, 0]);
        let parts = all.chunks_exact(length + FAST_OVERHEAD);
        let replies: Option<Vec<_>> = parts
            .zip(ids)
            .map(|(part, id)| match part {
                [error, from, data @ .., _, _] if from == id => Some(Some(StatusReply {
                    error: *error,
                    data: data.to_vec(),
                })),
                _ => None,
            })
            .collect();
        replies.filter(|replies| replies.len() == ids.len())
    }
}

/// Error, id and CRC around each servo's part of a fast reply.
const FAST_OVERHEAD: usize = 4;

/// A profile register's value; 0 would mean "without limit".
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to the register's range first"
)]
fn profile(steps: f64) -> u32 {
    steps.ceil().clamp(1.0, registers::PROFILE_MAX) as u32
}
