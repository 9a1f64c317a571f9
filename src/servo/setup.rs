//! Writes a servo's permanent settings; nothing else in this program does.
//!
//! Torque goes off first, every register is read back, and the lock is restored at whichever id the
//! servo answers to afterwards.

use std::time::Duration;

use serde::Serialize;

use super::servo_line::IDS;
use super::{PATIENT, RETRIES_MAX, ServiceError, ServoLine, ServoProtocol, homing};
use crate::{ServoRegister, dynamixel, feetech};

/// Requested changes of a servo's settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SetupChange {
    /// Another id.
    pub id: Option<u8>,
    /// Another return delay.
    pub return_delay: Option<Duration>,
    /// Least and greatest position.
    pub limits_ticks: Option<(i32, i32)>,
    /// Another gain P of the position loop; Feetech servos only.
    pub gain_p: Option<u8>,
    /// `true` to repair settings that keep a node from using it: operating mode, multi-turn counting,
    /// drive mode, secondary id.
    pub repair: bool,
    /// `true` to make the present position read 2048; Feetech servos only.
    pub home: bool,
}

/// A register to be written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SetupStep {
    /// Its name.
    pub name: &'static str,
    /// Its address in the servo's memory.
    #[serde(skip)]
    pub(crate) register: ServoRegister,
    /// The present value.
    pub before: i32,
    /// The new value.
    pub after: i32,
}

/// Name of the return delay, which both families keep in steps of 2 µs.
const RETURN_DELAY: &str = "return delay";
const RETURN_DELAY_STEP_US: i32 = 2;

impl SetupStep {
    /// Describes the change in a unit for people.
    #[must_use]
    pub fn describe(&self) -> String {
        if self.name == homing::HOMING_OFFSET {
            let [before, after] = [self.before, self.after].map(homing::describe);
            return format!("{} from {before} to {after}", self.name);
        }
        let (scale, unit) = if self.name == RETURN_DELAY {
            (RETURN_DELAY_STEP_US, " µs")
        } else {
            (1, "")
        };
        let (before, after) = (self.before * scale, self.after * scale);
        format!("{} from {before}{unit} to {after}{unit}", self.name)
    }
}

/// The target of a register: which bits of its present value are kept, and which are set.
#[derive(Clone, Copy, Debug)]
struct TargetSetting {
    register: ServoRegister,
    mask: i32,
    set: i32,
}

impl TargetSetting {
    /// Sets a value, whatever the present one is.
    const fn value(register: ServoRegister, set: i32) -> Self {
        Self {
            register,
            mask: 0,
            set,
        }
    }

    /// Clears these bits of the present value.
    const fn cleared(register: ServoRegister, bits: u8) -> Self {
        Self {
            register,
            mask: !(bits as i32),
            set: 0,
        }
    }

    /// Returns the target value of a register with this present value.
    const fn value_from(self, before: i32) -> i32 {
        before & self.mask | self.set
    }
}

/// Gains P with which an arm holds itself and does not swing.
const GAINS_P: std::ops::RangeInclusive<u8> = 8..=100;

/// The last count of a turn, in both families.
const TICKS_MAX: i32 = 4095;

struct SettingsMap {
    id: ServoRegister,
    return_delay: ServoRegister,
    min: ServoRegister,
    max: ServoRegister,
    gain_p: Option<ServoRegister>,
    torque: ServoRegister,
    lock: Option<ServoRegister>,
    repairs: &'static [TargetSetting],
}

const FEETECH: SettingsMap = SettingsMap {
    id: ServoRegister::new("id", 5, 1),
    return_delay: ServoRegister::new(RETURN_DELAY, 7, 1),
    min: ServoRegister::new("least position", 9, 2),
    max: ServoRegister::new("greatest position", 11, 2),
    gain_p: Some(ServoRegister::new("gain P", 21, 1)),
    torque: feetech::registers::TORQUE_ENABLE,
    lock: Some(ServoRegister::new("lock", 55, 1)),
    repairs: &[
        TargetSetting::value(ServoRegister::new("response level", 8, 1), 1),
        TargetSetting::cleared(
            ServoRegister::new("phase", 18, 1),
            feetech::registers::PHASE_MULTI_TURN,
        ),
        TargetSetting::value(ServoRegister::new("operating mode", 33, 1), 0),
    ],
};

const DYNAMIXEL: SettingsMap = SettingsMap {
    id: ServoRegister::new("id", 7, 1),
    return_delay: ServoRegister::new(RETURN_DELAY, 9, 1),
    min: ServoRegister::new("least position", 52, 4),
    max: ServoRegister::new("greatest position", 48, 4),
    gain_p: None,
    torque: dynamixel::registers::TORQUE_ENABLE,
    lock: None,
    repairs: &[
        TargetSetting::cleared(
            ServoRegister::new("drive mode", 10, 1),
            dynamixel::registers::DRIVE_MODE_TIME_BASED,
        ),
        TargetSetting::value(
            ServoRegister::new("operating mode", 11, 1),
            dynamixel::registers::OPERATING_MODE_POSITION as i32,
        ),
        TargetSetting::value(ServoRegister::new("secondary id", 12, 1), 255),
    ],
};

const fn settings_map(protocol: ServoProtocol) -> &'static SettingsMap {
    match protocol {
        ServoProtocol::FeetechSts => &FEETECH,
        ServoProtocol::Dynamixel2 => &DYNAMIXEL,
    }
}

/// Lists the registers that would be written to a servo, without those that already have their value.
/// `present` are the ids that are known to be on the bus. Writes nothing.
///
/// # Errors
/// A value that is not possible, an id that is or may be taken, or a servo that does not reply.
pub async fn plan(
    line: &mut ServoLine,
    id: u8,
    change: &SetupChange,
    present: &[u8],
) -> Result<Vec<SetupStep>, ServiceError> {
    let settings = targets(settings_map(line.protocol()), change)?;
    if let Some(new) = change.id.filter(|new| *new != id) {
        if present.contains(&new) {
            return Err(ServiceError::Taken { id: new });
        }
        check_free(line, new).await?;
    }
    let mut steps = Vec::new();
    if change.home {
        steps.extend(homing::step(line, id).await?);
    }
    for setting in settings {
        let register = setting.register;
        let before = read(line, id, register).await?;
        let after = setting.value_from(before);
        if before != after {
            steps.push(SetupStep {
                name: register.name,
                register,
                before,
                after,
            });
        }
    }
    Ok(steps)
}

/// Number of unanswered pings after which an id counts as free: replies may be lost.
const FREE_PINGS: u32 = 8;

/// Refuses an id that a servo has or may have.
async fn check_free(line: &mut ServoLine, id: u8) -> Result<(), ServiceError> {
    let slack = line.set_slack(PATIENT);
    let corrupt = line.counts().corrupt;
    for _ in 0..FREE_PINGS {
        if line.ping(id).await?.is_some() {
            return Err(ServiceError::Taken { id });
        }
    }
    line.set_slack(slack);
    if line.counts().corrupt > corrupt {
        return Err(ServiceError::MayBeTaken { id });
    }
    Ok(())
}

/// Returns the target settings in the order in which they are written: a new id last, because the
/// servo replies to the old one until then.
fn targets(map: &SettingsMap, change: &SetupChange) -> Result<Vec<TargetSetting>, ServiceError> {
    let mut settings = Vec::new();
    if change.repair {
        settings.extend(map.repairs);
    }
    if let Some(delay) = change.return_delay {
        let steps = u8::try_from(delay.as_micros() / 2).ok();
        let steps = steps
            .filter(|steps| *steps <= 254)
            .ok_or_else(|| ServiceError::Range {
                what: "the return delay",
                value: format!("{delay:?}"),
                range: "0 to 508 µs",
            })?;
        settings.push(TargetSetting::value(map.return_delay, i32::from(steps)));
    }
    if let Some((min, max)) = change.limits_ticks {
        if !(0 <= min && min < max && max <= TICKS_MAX) {
            return Err(ServiceError::Range {
                what: "the position limits",
                value: format!("{min} to {max}"),
                range: "a range within 0 to 4095",
            });
        }
        settings.push(TargetSetting::value(map.min, min));
        settings.push(TargetSetting::value(map.max, max));
    }
    if let Some(gain_p) = change.gain_p {
        let range_error = |range| ServiceError::Range {
            what: "the gain P",
            value: gain_p.to_string(),
            range,
        };
        let register = map
            .gain_p
            .ok_or_else(|| range_error("only on Feetech servos"))?;
        if !GAINS_P.contains(&gain_p) {
            return Err(range_error("8 to 100"));
        }
        settings.push(TargetSetting::value(register, i32::from(gain_p)));
    }
    if let Some(id) = change.id {
        if !IDS.contains(&id) {
            return Err(ServiceError::Range {
                what: "an id",
                value: id.to_string(),
                range: "0 to 252",
            });
        }
        settings.push(TargetSetting::value(map.id, i32::from(id)));
    }
    Ok(settings)
}

/// Writes the steps to a servo, torque off first, and reads each back.
///
/// # Errors
/// The step that failed. Earlier steps stay written; the lock is restored if the servo answers at all.
pub async fn apply_steps(
    line: &mut ServoLine,
    id: u8,
    steps: &[SetupStep],
) -> Result<(), ServiceError> {
    let map = settings_map(line.protocol());
    // A servo with the new id may have woken while a person was asked.
    let new_id = new_id(map, steps);
    if let Some(new) = new_id {
        check_free(line, new).await?;
    }
    line.write(id, map.torque, 0).await?;
    if read(line, id, map.torque).await? != 0 {
        return Err(ServiceError::TorqueOn { id });
    }
    let Some(lock) = map.lock else {
        return write_all(line, id, steps).await;
    };
    let before = read(line, id, lock).await?;
    let result = match write_checked(line, id, lock, 0).await {
        Ok(()) => write_all(line, id, steps).await,
        Err(error) => Err(error),
    };
    // Whether the servo has its new id is not known where that step failed.
    for candidate in new_id.into_iter().chain([id]) {
        if write_checked(line, candidate, lock, before).await.is_ok() {
            return result;
        }
    }
    let cause = result.err().map(Box::new);
    Err(ServiceError::Unlocked { id, cause })
}

/// Returns the id that the steps give to a servo.
fn new_id(map: &SettingsMap, steps: &[SetupStep]) -> Option<u8> {
    let step = steps.iter().find(|step| step.register == map.id)?;
    u8::try_from(step.after).ok()
}

async fn write_all(line: &mut ServoLine, id: u8, steps: &[SetupStep]) -> Result<(), ServiceError> {
    let map = settings_map(line.protocol());
    for step in steps {
        if step.register == map.id {
            write_id(line, id, step).await?;
            continue;
        }
        write_checked(line, id, step.register, step.after).await?;
        if step.name == homing::HOMING_OFFSET {
            homing::check(line, id, step).await?;
        }
    }
    Ok(())
}

/// Writes a new id until the servo answers to it.
async fn write_id(line: &mut ServoLine, id: u8, step: &SetupStep) -> Result<(), ServiceError> {
    let new = u8::try_from(step.after).unwrap_or(id);
    for _ in 0..=RETRIES_MAX {
        line.write(id, step.register, step.after).await?;
        if let Some(found) = line.read(new, step.register).await? {
            return check_written(new, step.name, step.after, found.number());
        }
    }
    match line.read(id, step.register).await? {
        Some(found) => check_written(id, step.name, step.after, found.number()),
        None => Err(ServiceError::NeitherId { id, new }),
    }
}

/// Writes a register until it reads as written: a write has no reply, and may be lost.
async fn write_checked(
    line: &mut ServoLine,
    id: u8,
    register: ServoRegister,
    value: i32,
) -> Result<(), ServiceError> {
    let mut found = value;
    for _ in 0..=RETRIES_MAX {
        line.write(id, register, value).await?;
        found = read(line, id, register).await?;
        if found == value {
            break;
        }
    }
    check_written(id, register.name, value, found)
}

pub(crate) fn check_written(
    id: u8,
    name: &'static str,
    written: i32,
    found: i32,
) -> Result<(), ServiceError> {
    if written == found {
        return Ok(());
    }
    Err(ServiceError::NotTaken {
        id,
        name,
        written,
        found,
    })
}

pub(crate) async fn read(
    line: &mut ServoLine,
    id: u8,
    register: ServoRegister,
) -> Result<i32, ServiceError> {
    let status = line.read(id, register).await?;
    let number = status.map(|status| status.number());
    number.ok_or_else(|| line.no_servo(id))
}
