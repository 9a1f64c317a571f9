//! Feetech STS servos. They have no watchdog.

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

use codec::{FeetechDecoder, from_sign_magnitude, to_sign_magnitude};
use registers::{present, settings};

/// Factor by which the servo may accelerate harder than the plan: at the plan's own limit its ramps
/// would lag behind the stream of goals.
const ACCELERATION_HEADROOM: f64 = 2.5;

/// Fraction of stall torque that the servos may use, in thousandths. It differs from the value after
/// power-on, so that it also reveals a restart: a goal energises such a servo again, and its torque
/// enable would then read as if nothing had happened.
const TORQUE_LIMIT_PERMILLE: i32 = 950;

/// The same for a tip that looks for something: half, and not a round number, for the same reason.
const TORQUE_LIMIT_TOUCH_PERMILLE: i32 = 475;

/// The STS dialect.
#[derive(Debug)]
pub struct FeetechDialect;

impl ServoWire for FeetechDialect {
    fn frame(out: &mut Vec<u8>, id: u8, instruction: ServoInstruction, parameters: &[u8]) {
        codec::encode(out, id, instruction, parameters);
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "every register of this family lies below 256"
    )]
    fn range(register: ServoRegister) -> Vec<u8> {
        vec![register.address as u8, register.length as u8]
    }
}

impl Dialect for FeetechDialect {
    type Framing = FeetechDecoder;

    const PING_LENGTH: usize = 0;
    const SETTINGS: ServoRegister = registers::SETTINGS;
    const TORQUE_ENABLE: ServoRegister = registers::TORQUE_ENABLE;
    const GOAL: ServoRegister = registers::GOAL;
    // Variants of a servo for other voltages differ only in their firmware.
    const SAME_FIRMWARE: bool = true;
    const PRESENT: ServoRegister = registers::PRESENT;
    const STATES: &'static [ServoRegister] = &[registers::TORQUE_STATE];
    const TORQUE_LIMIT: ServoRegister = registers::TORQUE_LIMIT;
    const PREPARE: &'static [RegisterSetting] = &[];
    const ARM: &'static [RegisterSetting] = &[];
    const DISARM: &'static [RegisterSetting] = &[];
    const POSITIONS: RangeInclusive<i32> = registers::POSITIONS;
    const ERROR_BITS: &'static [(u8, ServoFault)] = &[
        (32, ServoFault::Overload),
        (4, ServoFault::Heat),
        (8, ServoFault::Current),
        (2, ServoFault::Encoder),
        (1, ServoFault::Voltage),
    ];
    const MOTION: &'static [RangeInclusive<u16>] = registers::MOTION;

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "both numbers are clamped to their register's range first"
    )]
    fn goal_block(acceleration_ticks_s2: f64, goal: ServoGoal) -> Result<Vec<u8>, TooLarge> {
        let steps =
            ACCELERATION_HEADROOM * acceleration_ticks_s2 / registers::ACCELERATION_STEP_TICKS_S2;
        // 0 would mean "without limit" in both registers.
        let acceleration = steps
            .ceil()
            .clamp(1.0, f64::from(registers::ACCELERATION_MAX)) as u8;
        let speed = goal
            .speed_ticks_s
            .ceil()
            .clamp(1.0, f64::from(registers::SPEED_MAX)) as u16;
        let ticks = to_sign_magnitude(goal.ticks, 15)?;
        let mut block = vec![acceleration];
        block.extend(ticks.to_le_bytes());
        block.extend([0, 0]);
        block.extend(speed.to_le_bytes());
        Ok(block)
    }

    fn goal_ticks(status: &StatusReply) -> i32 {
        from_sign_magnitude(status.word(1), 15)
    }

    fn parse_reading(status: &StatusReply) -> ServoReading {
        let signed = |at, bit| from_sign_magnitude(status.word(at), bit);
        ServoReading {
            ticks: signed(present::POSITION, 15),
            speed_ticks_s: f64::from(signed(present::SPEED, 15)),
            load_ratio: f64::from(signed(present::LOAD, 10)) / 1000.0,
            voltage_v: Some(f64::from(status.byte(present::VOLTAGE)) / 10.0),
            temperature_c: Some(f64::from(status.byte(present::TEMPERATURE))),
            error: status.error,
        }
    }

    fn check(status: &StatusReply, requested: u8, _others: &[u8]) -> Result<(), SetupFault> {
        let id = status.byte(settings::ID);
        let model = status.word(settings::MODEL);
        let level = status.byte(settings::RESPONSE_LEVEL);
        let phase = status.byte(settings::PHASE);
        let mode = status.byte(settings::MODE);
        if !registers::MODELS.contains(&model) {
            return Err(SetupFault::NoSts { model });
        }
        if id != requested {
            return Err(SetupFault::SharedId { id, requested });
        }
        if level > 1 {
            return Err(SetupFault::ResponseLevel(level));
        }
        if phase & registers::PHASE_MULTI_TURN != 0 {
            return Err(SetupFault::MultiTurn {
                phase,
                needed: phase & !registers::PHASE_MULTI_TURN,
            });
        }
        if mode != 0 {
            return Err(SetupFault::FeetechMode(mode));
        }
        check_limits(status)
    }

    fn describe(status: &StatusReply, servo: ServoName) -> ServoIdentity {
        ServoIdentity {
            servo,
            model: status.word(settings::MODEL),
            firmware: (
                status.byte(settings::FIRMWARE),
                status.byte(settings::FIRMWARE + 1),
            ),
            return_delay: Duration::from_micros(2 * u64::from(status.byte(settings::RETURN_DELAY))),
            position_min_ticks: i32::from(status.word(settings::POSITION_MIN)),
            position_max_ticks: i32::from(status.word(settings::POSITION_MAX)),
            homing_offset_ticks: from_sign_magnitude(status.word(settings::HOMING_OFFSET), 11),
            phase: status.byte(settings::PHASE),
            gain_p: Some(status.byte(settings::GAIN_P)),
            torque_on: false,
            error_bits: status.error,
        }
    }

    fn voltage_limits_v(status: &StatusReply) -> (f64, f64) {
        let volts = |at| f64::from(status.byte(at)) / 10.0;
        (volts(settings::VOLTAGE_MIN), volts(settings::VOLTAGE_MAX))
    }

    fn temperature_max_c(status: &StatusReply) -> f64 {
        f64::from(status.byte(settings::TEMPERATURE_MAX))
    }

    fn torque_limits(_settings: &StatusReply) -> [i32; 2] {
        [TORQUE_LIMIT_PERMILLE, TORQUE_LIMIT_TOUCH_PERMILLE]
    }

    fn update_slow_readings(
        _index: usize,
        status: &StatusReply,
        slow: &mut SlowReadings,
    ) -> Option<ServoFault> {
        let limit = i32::from(status.word(registers::TORQUE_LIMIT_AT));
        let is_on = status.byte(0) == 1;
        slow.torque_on = Some(is_on);
        let is_ours = [TORQUE_LIMIT_PERMILLE, TORQUE_LIMIT_TOUCH_PERMILLE].contains(&limit);
        (!is_on || !is_ours).then_some(ServoFault::TorqueLost)
    }

    fn reported_fault(error: u8, _known: &SlowReadings) -> Option<ServoFault> {
        faults_of(Self::ERROR_BITS, error).next()
    }
}

fn check_limits(status: &StatusReply) -> Result<(), SetupFault> {
    let (min, max) = (
        status.word(settings::POSITION_MIN),
        status.word(settings::POSITION_MAX),
    );
    let offset = status.word(settings::HOMING_OFFSET);
    if (min, max) != (0, 0) && (min >= max || max > registers::POSITION_LAST) {
        return Err(SetupFault::PositionLimits {
            least: min,
            most: max,
            last: registers::POSITION_LAST,
        });
    }
    if offset & !registers::HOMING_OFFSET_BITS != 0 {
        return Err(SetupFault::HomingOffset(offset));
    }
    Ok(())
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_of_another_servo_under_the_same_id_is_refused() {
        let mut data = vec![0; usize::from(registers::EEPROM_END)];
        (data[3], data[4]) = (9, 3);
        data[settings::ID] = 9;
        let status = StatusReply { error: 0, data };
        let servo = |id| ServoName {
            id,
            name: "elbow".to_owned(),
        };
        let message = FeetechDialect::identify(&status, servo(4), &[])
            .unwrap_err()
            .to_string();
        assert!(
            message.contains("a reply from id 4 has id 9 (register 5)"),
            "{message}"
        );
        assert!(FeetechDialect::identify(&status, servo(9), &[]).is_ok());
    }
}
