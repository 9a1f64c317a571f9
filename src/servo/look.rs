//! What one servo says of itself. Nothing is written.

use serde::Serialize;

use super::{Line, Speech, models};
use crate::bus::Status;
use crate::{BusError, Register, dynamixel, feetech};
use link::Link;

/// A servo as it was read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Seen {
    /// Its id.
    pub id: u8,
    /// Its model's number.
    pub model: u16,
    /// Its model's name.
    pub name: String,
    /// Major and minor; Dynamixel servos have one number.
    pub firmware: String,
    /// How long it waits before a reply.
    pub return_delay_us: u32,
    /// Least position that it goes to.
    pub position_min_ticks: i32,
    /// Greatest position that it goes to.
    pub position_max_ticks: i32,
    /// Where it stands.
    pub position_ticks: i32,
    /// How fast it turns.
    pub speed_ticks_s: i32,
    /// Signed share of what it can push, in hundredths.
    pub load_percent: i32,
    /// Its supply.
    pub voltage_v: Option<f64>,
    /// How hot it is.
    pub temperature_c: Option<f64>,
    /// Whether its torque is on.
    pub torque_on: bool,
    /// Error bits as its manual numbers them.
    pub error_bits: u8,
}

struct Places {
    settings: Register,
    present: Register,
    torque: Register,
    /// Voltage and temperature, where they are not in the present state.
    supply: Option<Register>,
    model: usize,
    firmware: usize,
    return_delay: usize,
}

const fn places(speech: Speech) -> Places {
    match speech {
        Speech::FeetechSts => Places {
            settings: feetech::registers::SETTINGS,
            present: feetech::registers::PRESENT,
            torque: feetech::registers::TORQUE_ENABLE,
            supply: None,
            model: feetech::registers::settings::MODEL,
            firmware: feetech::registers::settings::FIRMWARE,
            return_delay: feetech::registers::settings::RETURN_DELAY,
        },
        Speech::Dynamixel2 => Places {
            settings: dynamixel::registers::SETTINGS,
            present: dynamixel::registers::PRESENT,
            torque: dynamixel::registers::TORQUE_STATE,
            supply: Some(dynamixel::registers::SUPPLY),
            model: dynamixel::registers::settings::MODEL,
            firmware: dynamixel::registers::settings::FIRMWARE,
            return_delay: dynamixel::registers::settings::RETURN_DELAY,
        },
    }
}

/// Reads a servo; `None` where it did not answer every question.
///
/// # Errors
/// When the line itself fails.
pub async fn at(line: &mut Line, link: &mut dyn Link, id: u8) -> Result<Option<Seen>, BusError> {
    let places = places(line.speech());
    let Some(settings) = line.read(link, id, places.settings).await? else {
        return Ok(None);
    };
    let Some(torque) = line.read(link, id, places.torque).await? else {
        return Ok(None);
    };
    let supply = match places.supply {
        Some(register) => line.read(link, id, register).await?,
        None => None,
    };
    let Some(present) = line.read(link, id, places.present).await? else {
        return Ok(None);
    };
    let reading = line.reading(&present);
    let speech = line.speech();
    let model = settings.word(places.model);
    let (least, most) = range(speech, &settings);
    let supplied =
        supply.map(|status| (f64::from(status.word(0)) / 10.0, f64::from(status.byte(2))));
    Ok(Some(Seen {
        id,
        model,
        name: models::name(speech, model),
        firmware: firmware(speech, &settings, places.firmware),
        return_delay_us: 2 * u32::from(settings.byte(places.return_delay)),
        position_min_ticks: least,
        position_max_ticks: most,
        position_ticks: reading.ticks,
        speed_ticks_s: rounded(reading.speed_ticks_s),
        load_percent: rounded(reading.load_ratio * 100.0),
        voltage_v: reading.voltage_v.or(supplied.map(|(volts, _)| volts)),
        temperature_c: reading
            .temperature_c
            .or(supplied.map(|(_, celsius)| celsius)),
        torque_on: torque.byte(0) == 1,
        error_bits: errors(speech, &present, &torque),
    }))
}

fn range(speech: Speech, settings: &Status) -> (i32, i32) {
    match speech {
        Speech::FeetechSts => {
            use feetech::registers::settings::{POSITION_MAX, POSITION_MIN};
            let word = |at| i32::from(settings.word(at));
            (word(POSITION_MIN), word(POSITION_MAX))
        }
        Speech::Dynamixel2 => {
            use dynamixel::registers::settings::{POSITION_MAX, POSITION_MIN};
            (settings.long(POSITION_MIN), settings.long(POSITION_MAX))
        }
    }
}

fn firmware(speech: Speech, settings: &Status, at: usize) -> String {
    match speech {
        Speech::FeetechSts => format!("{}.{}", settings.byte(at), settings.byte(at + 1)),
        Speech::Dynamixel2 => settings.byte(at).to_string(),
    }
}

fn errors(speech: Speech, present: &Status, torque: &Status) -> u8 {
    match speech {
        Speech::FeetechSts => present.error,
        Speech::Dynamixel2 => torque.byte(dynamixel::registers::torque_state::HARDWARE_ERROR),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "`as` saturates")]
fn rounded(value: f64) -> i32 {
    value.round() as i32
}
