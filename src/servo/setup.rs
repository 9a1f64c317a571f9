//! Writes a servo's permanent settings; nothing else in this program does.
//!
//! Torque goes off first, every register is read back, and the lock is restored in any case.

use std::time::Duration;

use serde::Serialize;

use super::servo_line::IDS;
use super::{ServiceError, ServoLine, ServoProtocol, homing};
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

/// The last count of a turn, in both families.
const TICKS_MAX: i32 = 4095;

struct SettingsMap {
    id: ServoRegister,
    return_delay: ServoRegister,
    min: ServoRegister,
    max: ServoRegister,
    torque: ServoRegister,
    lock: Option<ServoRegister>,
    repairs: &'static [TargetSetting],
}

const FEETECH: SettingsMap = SettingsMap {
    id: ServoRegister::new("id", 5, 1),
    return_delay: ServoRegister::new(RETURN_DELAY, 7, 1),
    min: ServoRegister::new("least position", 9, 2),
    max: ServoRegister::new("greatest position", 11, 2),
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
/// Writes nothing.
///
/// # Errors
/// A value that is not possible, an id that is taken, or a servo that does not reply.
pub async fn plan(
    line: &mut ServoLine,
    id: u8,
    change: &SetupChange,
) -> Result<Vec<SetupStep>, ServiceError> {
    let settings = targets(settings_map(line.protocol()), change)?;
    if let Some(new) = change.id.filter(|new| *new != id)
        && line.ping(new).await?.is_some()
    {
        return Err(ServiceError::Taken { id: new });
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
/// The step that failed. Earlier steps stay written; the lock is restored in any case.
pub async fn apply_steps(
    line: &mut ServoLine,
    id: u8,
    steps: &[SetupStep],
) -> Result<(), ServiceError> {
    let map = settings_map(line.protocol());
    line.write(id, map.torque, 0).await?;
    if read(line, id, map.torque).await? != 0 {
        return Err(ServiceError::TorqueOn { id });
    }
    let lock = match map.lock {
        Some(lock) => Some((lock, read(line, id, lock).await?)),
        None => None,
    };
    if let Some((lock, _)) = lock {
        line.write(id, lock, 0).await?;
    }
    let mut current_id = id;
    let result = write_all(line, &mut current_id, steps).await;
    let lock_result = match lock {
        Some((lock, before)) => restore_lock(line, current_id, lock, before).await,
        None => Ok(()),
    };
    result.and(lock_result)
}

async fn restore_lock(
    line: &mut ServoLine,
    id: u8,
    lock: ServoRegister,
    before: i32,
) -> Result<(), ServiceError> {
    line.write(id, lock, before).await?;
    let found = read(line, id, lock).await?;
    check_written(id, lock.name, before, found)
}

async fn write_all(
    line: &mut ServoLine,
    id: &mut u8,
    steps: &[SetupStep],
) -> Result<(), ServiceError> {
    for step in steps {
        line.write(*id, step.register, step.after).await?;
        if step.register == settings_map(line.protocol()).id {
            *id = u8::try_from(step.after).unwrap_or(*id);
        }
        let found = read(line, *id, step.register).await?;
        check_written(*id, step.name, step.after, found)?;
        if step.name == homing::HOMING_OFFSET {
            homing::check(line, *id, step).await?;
        }
    }
    Ok(())
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
