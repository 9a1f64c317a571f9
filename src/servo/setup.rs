//! Settings that outlive a servo's power: the only place in this program that writes them.
//!
//! Torque goes off first, every register is read back, and the lock is put back however it ended.

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
    /// `true` to repair what keeps a node from using it: operating mode, multi-turn counting, drive mode,
    /// second id.
    pub repair: bool,
    /// `true` to make the present position read 2048; Feetech servos alone.
    pub home: bool,
}

/// A register that is to be written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SetupStep {
    /// Its name.
    pub name: &'static str,
    /// Its place in the servo's memory.
    #[serde(skip)]
    pub(crate) register: ServoRegister,
    /// The present value.
    pub before: i32,
    /// The new value.
    pub after: i32,
}

/// Both families keep it in steps of 2 µs.
const RETURN_DELAY: &str = "return delay";
const RETURN_DELAY_STEP_US: i32 = 2;

impl SetupStep {
    /// Returns the change as text, in the unit that a person would use.
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

/// A register's wanted value: the bits of its present one that it keeps, and those that are set.
#[derive(Clone, Copy, Debug)]
struct WantedSetting {
    register: ServoRegister,
    kept: i32,
    set: i32,
}

impl WantedSetting {
    /// Wants a value, whatever the present one is.
    const fn value(register: ServoRegister, set: i32) -> Self {
        Self {
            register,
            kept: 0,
            set,
        }
    }

    /// Wants these bits of the present value cleared.
    const fn cleared(register: ServoRegister, bits: u8) -> Self {
        Self {
            register,
            kept: !(bits as i32),
            set: 0,
        }
    }

    /// Returns the wanted value of a register that has this one.
    const fn of(self, before: i32) -> i32 {
        before & self.kept | self.set
    }
}

/// The last count of a turn, in both families.
const TICKS_MAX: i32 = 4095;

struct SettingsMap {
    id: ServoRegister,
    return_delay: ServoRegister,
    least: ServoRegister,
    most: ServoRegister,
    torque: ServoRegister,
    lock: Option<ServoRegister>,
    repairs: &'static [WantedSetting],
}

const FEETECH: SettingsMap = SettingsMap {
    id: ServoRegister::new("id", 5, 1),
    return_delay: ServoRegister::new(RETURN_DELAY, 7, 1),
    least: ServoRegister::new("least position", 9, 2),
    most: ServoRegister::new("greatest position", 11, 2),
    torque: feetech::registers::TORQUE_ENABLE,
    lock: Some(ServoRegister::new("lock", 55, 1)),
    repairs: &[
        WantedSetting::value(ServoRegister::new("response level", 8, 1), 1),
        WantedSetting::cleared(
            ServoRegister::new("phase", 18, 1),
            feetech::registers::PHASE_MULTI_TURN,
        ),
        WantedSetting::value(ServoRegister::new("operating mode", 33, 1), 0),
    ],
};

const DYNAMIXEL: SettingsMap = SettingsMap {
    id: ServoRegister::new("id", 7, 1),
    return_delay: ServoRegister::new(RETURN_DELAY, 9, 1),
    least: ServoRegister::new("least position", 52, 4),
    most: ServoRegister::new("greatest position", 48, 4),
    torque: dynamixel::registers::TORQUE_ENABLE,
    lock: None,
    repairs: &[
        WantedSetting::cleared(
            ServoRegister::new("drive mode", 10, 1),
            dynamixel::registers::DRIVE_MODE_TIME_BASED,
        ),
        WantedSetting::value(
            ServoRegister::new("operating mode", 11, 1),
            dynamixel::registers::OPERATING_MODE_POSITION as i32,
        ),
        WantedSetting::value(ServoRegister::new("secondary id", 12, 1), 255),
    ],
};

const fn settings_map(speech: ServoProtocol) -> &'static SettingsMap {
    match speech {
        ServoProtocol::FeetechSts => &FEETECH,
        ServoProtocol::Dynamixel2 => &DYNAMIXEL,
    }
}

/// Lists the registers that would be written to a servo, without those that have their value already.
/// Writes nothing.
///
/// # Errors
/// A value that is not possible, an id that is taken, a servo that does not answer.
pub async fn plan(
    line: &mut ServoLine,
    id: u8,
    change: &SetupChange,
) -> Result<Vec<SetupStep>, ServiceError> {
    let wanted = wanted(settings_map(line.speech()), change)?;
    if let Some(new) = change.id.filter(|new| *new != id)
        && line.ping(new).await?.is_some()
    {
        return Err(ServiceError::Taken { id: new });
    }
    let mut steps = Vec::new();
    if change.home {
        steps.extend(homing::step(line, id).await?);
    }
    for setting in wanted {
        let register = setting.register;
        let before = read(line, id, register).await?;
        let after = setting.of(before);
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

/// The registers in the order in which they are written: a new id last, for it answers to the old
/// one until then.
fn wanted(map: &SettingsMap, change: &SetupChange) -> Result<Vec<WantedSetting>, ServiceError> {
    let mut all = Vec::new();
    if change.repair {
        all.extend(map.repairs);
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
        all.push(WantedSetting::value(map.return_delay, i32::from(steps)));
    }
    if let Some((least, most)) = change.limits_ticks {
        if !(0 <= least && least < most && most <= TICKS_MAX) {
            return Err(ServiceError::Range {
                what: "the position limits",
                value: format!("{least} to {most}"),
                range: "a range within 0 to 4095",
            });
        }
        all.push(WantedSetting::value(map.least, least));
        all.push(WantedSetting::value(map.most, most));
    }
    if let Some(id) = change.id {
        if !IDS.contains(&id) {
            return Err(ServiceError::Range {
                what: "an id",
                value: id.to_string(),
                range: "0 to 252",
            });
        }
        all.push(WantedSetting::value(map.id, i32::from(id)));
    }
    Ok(all)
}

/// Writes the steps to a servo, torque off first, and reads each back.
///
/// # Errors
/// The step that was not taken. Those before it are; the lock is put back in any case.
pub async fn apply_steps(
    line: &mut ServoLine,
    id: u8,
    steps: &[SetupStep],
) -> Result<(), ServiceError> {
    let map = settings_map(line.speech());
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
    let mut now = id;
    let result = write_all(line, &mut now, steps).await;
    let relocked = match lock {
        Some((lock, before)) => restore_lock(line, now, lock, before).await,
        None => Ok(()),
    };
    result.and(relocked)
}

async fn restore_lock(
    line: &mut ServoLine,
    id: u8,
    lock: ServoRegister,
    before: i32,
) -> Result<(), ServiceError> {
    line.write(id, lock, before).await?;
    let found = read(line, id, lock).await?;
    expect(id, lock.name, before, found)
}

async fn write_all(
    line: &mut ServoLine,
    id: &mut u8,
    steps: &[SetupStep],
) -> Result<(), ServiceError> {
    for step in steps {
        line.write(*id, step.register, step.after).await?;
        if step.register == settings_map(line.speech()).id {
            *id = u8::try_from(step.after).unwrap_or(*id);
        }
        let found = read(line, *id, step.register).await?;
        expect(*id, step.name, step.after, found)?;
        if step.name == homing::HOMING_OFFSET {
            homing::check(line, *id, step).await?;
        }
    }
    Ok(())
}

pub(crate) fn expect(
    id: u8,
    name: &'static str,
    wanted: i32,
    found: i32,
) -> Result<(), ServiceError> {
    if wanted == found {
        return Ok(());
    }
    Err(ServiceError::NotTaken {
        id,
        name,
        wanted,
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
