//! The homing offset of a Feetech servo, which shifts its encoder so that a chosen position reads 2048.

use super::feetech::codec::{from_sign_magnitude, to_sign_magnitude};
use super::setup::{SetupStep, check_written, read};
use super::{ServiceError, ServoLine, ServoProtocol};
use crate::ServoRegister;

/// The register's name in messages.
pub(crate) const HOMING_OFFSET: &str = "homing offset";

const OFFSET: ServoRegister = ServoRegister::new(HOMING_OFFSET, 31, 2);
const OFFSET_SIGN_BIT: u32 = 11;
const OFFSET_TICKS_MAX: i32 = 2047;

const POSITION: ServoRegister = ServoRegister::new("position", 56, 2);
const POSITION_SIGN_BIT: u32 = 15;

const TURN_TICKS: i32 = 4096;
const MIDDLE_TICKS: i32 = 2048;

/// Most that a limp joint may sink between two readings.
const STEADY_TICKS: i32 = 8;

/// Returns the step that makes the present position read 2048; `None` where it already does. Both
/// registers are read twice, because the result is permanent and their replies look alike.
pub(crate) async fn step(line: &mut ServoLine, id: u8) -> Result<Option<SetupStep>, ServiceError> {
    if line.protocol() != ServoProtocol::FeetechSts {
        return Err(ServiceError::NoHoming { id });
    }
    let before = read(line, id, OFFSET).await?;
    let position = position_ticks(line, id).await?;
    let is_steady = read(line, id, OFFSET).await? == before
        && (position_ticks(line, id).await? - position).abs() <= STEADY_TICKS;
    if !is_steady {
        return Err(ServiceError::Unsteady { id });
    }
    let encoder = position + offset_ticks(before);
    let offset = (encoder.rem_euclid(TURN_TICKS) - MIDDLE_TICKS).max(-OFFSET_TICKS_MAX);
    let word = to_sign_magnitude(offset, OFFSET_SIGN_BIT).map_err(|_| ServiceError::Range {
        what: HOMING_OFFSET,
        value: offset.to_string(),
        range: "-2047 to 2047 counts",
    })?;
    let after = i32::from(word);
    Ok((before != after).then_some(SetupStep {
        name: HOMING_OFFSET,
        register: OFFSET,
        before,
        after,
    }))
}

/// Checks that the servo reads 2048 where it stands. If it does not, its old offset is restored.
pub(crate) async fn check(
    line: &mut ServoLine,
    id: u8,
    step: &SetupStep,
) -> Result<(), ServiceError> {
    let found = position_ticks(line, id).await?;
    if (found - MIDDLE_TICKS).abs() <= STEADY_TICKS {
        return Ok(());
    }
    line.write(id, OFFSET, step.before).await?;
    check_written(
        id,
        HOMING_OFFSET,
        step.before,
        read(line, id, OFFSET).await?,
    )?;
    Err(ServiceError::NotHomed { id, found })
}

/// Describes a register's value in signed counts and in degrees.
pub(crate) fn describe(word: i32) -> String {
    let ticks = offset_ticks(word);
    let degrees = f64::from(ticks) * 360.0 / f64::from(TURN_TICKS);
    format!("{ticks} counts ({degrees:.1}°)")
}

async fn position_ticks(line: &mut ServoLine, id: u8) -> Result<i32, ServiceError> {
    let word = read(line, id, POSITION).await?;
    Ok(signed(word, POSITION_SIGN_BIT))
}

fn offset_ticks(word: i32) -> i32 {
    signed(word, OFFSET_SIGN_BIT)
}

/// Converts a two-byte register, whose value fits a `u16`, from sign and magnitude.
fn signed(word: i32, sign_bit: u32) -> i32 {
    from_sign_magnitude(u16::try_from(word).unwrap_or(u16::MAX), sign_bit)
}
