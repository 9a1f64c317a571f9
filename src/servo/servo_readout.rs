//! Reads everything that one servo reports of itself. Nothing is written.

use serde::Serialize;

use super::complaints::{ServoComplaint, ServoLimits};
use super::{ServoLine, ServoProtocol, model_names};
use crate::dialect::{Dialect, SlowReadings};
use crate::dynamixel::DynamixelDialect;
use crate::feetech::FeetechDialect;
use crate::{BusError, ServoName};

/// A servo as it was read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServoReadout {
    /// Its id.
    pub id: u8,
    /// Its model's number.
    pub model: u16,
    /// Its model's name.
    pub name: String,
    /// Major and minor; Dynamixel servos have one number.
    pub firmware: String,
    /// Delay before a reply.
    pub return_delay_us: u32,
    /// Least position that it goes to.
    pub position_min_ticks: i32,
    /// Greatest position that it goes to.
    pub position_max_ticks: i32,
    /// Present position.
    pub position_ticks: i32,
    /// Present speed.
    pub speed_ticks_s: i32,
    /// Signed load in percent of its torque.
    pub load_percent: i32,
    /// Its supply.
    pub voltage_v: Option<f64>,
    /// Highest supply that it is set for.
    pub voltage_max_v: Option<f64>,
    /// Temperature.
    pub temperature_c: Option<f64>,
    /// `true` if its torque is on.
    pub torque_on: bool,
    /// Error bits as its manual numbers them.
    pub error_bits: u8,
    /// Complaints in its own report.
    pub complaints: Vec<ServoComplaint>,
}

/// Reads a servo; `None` where it did not reply to every request.
///
/// # Errors
/// When the line itself fails.
pub async fn read_servo(line: &mut ServoLine, id: u8) -> Result<Option<ServoReadout>, BusError> {
    match line.protocol() {
        ServoProtocol::FeetechSts => read::<FeetechDialect>(line, id).await,
        ServoProtocol::Dynamixel2 => read::<DynamixelDialect>(line, id).await,
    }
}

async fn read<D: Dialect>(line: &mut ServoLine, id: u8) -> Result<Option<ServoReadout>, BusError> {
    let Some(settings) = line.read(id, D::SETTINGS).await? else {
        return Ok(None);
    };
    let mut slow = SlowReadings::default();
    for (index, register) in D::STATES.iter().enumerate() {
        match line.read(id, *register).await? {
            Some(status) => {
                let _ = D::update_slow_readings(index, &status, &mut slow);
            }
            // The first one has the torque state; a servo without the others is shown all the same.
            None if index == 0 => return Ok(None),
            None => {}
        }
    }
    let Some(present) = line.read(id, D::PRESENT).await? else {
        return Ok(None);
    };
    let (protocol, reading) = (line.protocol(), D::parse_reading(&present));
    let name = String::new();
    let identity = D::describe(&settings, ServoName { id, name });
    let (major, minor) = identity.firmware;
    let (firmware, error_bits) = match protocol {
        ServoProtocol::FeetechSts => (format!("{major}.{minor}"), reading.error),
        ServoProtocol::Dynamixel2 => (major.to_string(), slow.hardware_error),
    };
    let limits = ServoLimits {
        voltage_v: D::voltage_limits_v(&settings),
        temperature_max_c: D::temperature_max_c(&settings),
        error_bits: D::ERROR_BITS,
    };
    let voltage_v = reading.voltage_v.or(slow.voltage_v);
    let temperature_c = reading.temperature_c.or(slow.temperature_c);
    Ok(Some(ServoReadout {
        id,
        model: identity.model,
        name: model_names::name(protocol, identity.model),
        firmware,
        return_delay_us: u32::try_from(identity.return_delay.as_micros()).unwrap_or(u32::MAX),
        position_min_ticks: identity.position_min_ticks,
        position_max_ticks: identity.position_max_ticks,
        position_ticks: reading.ticks,
        speed_ticks_s: rounded(reading.speed_ticks_s),
        load_percent: rounded(reading.load_ratio * 100.0),
        voltage_v,
        voltage_max_v: Some(limits.voltage_v.1).filter(|max_v| *max_v > 0.0),
        temperature_c,
        torque_on: slow.torque_on == Some(true),
        error_bits,
        complaints: limits.judge(voltage_v, temperature_c, error_bits),
    }))
}

#[expect(clippy::cast_possible_truncation, reason = "`as` saturates")]
fn rounded(value: f64) -> i32 {
    value.round() as i32
}
