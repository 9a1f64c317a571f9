//! Servo health: temperatures that call for a warning, forbid a stroke, or end one.

use serde::Serialize;

use arm::ArmModel;
use base::units::ArmMeasurement;

/// From here on people are warned.
const WARM_C: f64 = 55.0;

/// From here on no stroke begins; going to rest is always possible.
const HOT_C: f64 = 60.0;

/// From here on the stroke is finished, the tip lifted and the arm parked. Servos cut their torque
/// at 70 °C or a little above, and an arm without torque drops.
const TOO_HOT_C: f64 = 65.0;

/// Number of consecutive hot readings that end a stroke; a single damaged reading must not.
const HOT_READINGS: u32 = 5;

/// A joint that came down that far below a threshold is well again.
const COOLED_C: f64 = 2.0;

/// The action that servo health demands; of several servos, the gravest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HealthAction {
    /// Nothing.
    #[default]
    None,
    /// An operator should take a look.
    Warn,
    /// No stroke begins.
    NoStroke,
    /// The stroke is finished, then the arm goes to rest.
    Park,
}

/// Health of the servos.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ServoHealth {
    /// The gravest.
    pub care: HealthAction,
    /// One sentence a servo that is not well.
    pub says: Vec<String>,
    /// Readings in a row that were too hot.
    #[serde(skip)]
    hot_readings: u32,
    /// Temperature of each servo at its last reading, in degrees Celsius.
    #[serde(skip)]
    read_c: Vec<(u8, f64)>,
}

impl ServoHealth {
    /// Judges a reading with what was known before: a servo at a threshold shall not flicker, and one
    /// whose temperature is no longer read is as hot as it was, for all that is known. One that has
    /// never told it is not judged.
    pub(super) fn from_reading(arm: &ArmModel, measured: &ArmMeasurement, before: &Self) -> Self {
        let mut health = Self {
            read_c: before.read_c.clone(),
            ..Self::default()
        };
        let enough = before.hot_readings + 1 >= HOT_READINGS;
        for servo in &measured.servos {
            let Some(temperature_c) = servo.temperature_c else {
                health.note_unread(arm, servo.id, before);
                continue;
            };
            health.read_c.retain(|(id, _)| *id != servo.id);
            health.read_c.push((servo.id, temperature_c));
            let care = care(temperature_c, before.care);
            if care == HealthAction::None {
                continue;
            }
            if care == HealthAction::Park {
                health.hot_readings = (before.hot_readings + 1).min(HOT_READINGS);
            }
            let care = if enough {
                care
            } else {
                care.min(HealthAction::NoStroke)
            };
            health.care = health.care.max(care);
            let what = match care {
                HealthAction::Park => "the arm is parked when its stroke is done",
                HealthAction::NoStroke => "no stroke begins until it has cooled",
                _ => "lessen its load, or let it rest",
            };
            health.says.push(format!(
                "{} is at {temperature_c:.0} °C; {:.0} °C is the limit for that: {what}",
                name(arm, servo.id),
                limit_c(care)
            ));
        }
        health
    }

    /// Takes a servo that has stopped telling its temperature for as hot as it was. No reading is no
    /// further hot one, nor one that ends them.
    fn note_unread(&mut self, arm: &ArmModel, id: u8, before: &Self) {
        let Some((_, temperature_c)) = before.read_c.iter().find(|(known, _)| *known == id) else {
            return;
        };
        let care = care(*temperature_c, before.care);
        if care == HealthAction::Park {
            self.hot_readings = self.hot_readings.max(before.hot_readings);
        }
        self.care = self.care.max(care.min(before.care)).max(HealthAction::Warn);
        self.says.push(format!(
            "{} no longer tells its temperature; it was at {temperature_c:.0} °C when it was read last: check its cable, and let it rest",
            name(arm, id)
        ));
    }

    /// All in one line.
    #[must_use]
    pub fn summary(&self) -> String {
        self.says.join("; ")
    }
}

fn care(temperature_c: f64, before: HealthAction) -> HealthAction {
    [
        HealthAction::Park,
        HealthAction::NoStroke,
        HealthAction::Warn,
    ]
    .into_iter()
    .find(|care| {
        let cooled = if before >= *care { COOLED_C } else { 0.0 };
        temperature_c >= limit_c(*care) - cooled
    })
    .unwrap_or(HealthAction::None)
}

const fn limit_c(care: HealthAction) -> f64 {
    match care {
        HealthAction::None | HealthAction::Warn => WARM_C,
        HealthAction::NoStroke => HOT_C,
        HealthAction::Park => TOO_HOT_C,
    }
}

fn name(arm: &ArmModel, id: u8) -> String {
    let joint = arm.servos().find(|(_, servo)| servo.id == id);
    match joint {
        Some((joint, _)) => format!("servo {id} ({})", arm.joint_name(joint)),
        None => format!("servo {id}"),
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use super::*;
    use base::units::{ClockInstant, JointVector, ServoState};

    /// A reading of every servo, of which the first is so hot.
    fn read(arm: &ArmModel, first_c: Option<f64>) -> ArmMeasurement {
        let servos = arm.servos().map(|(_, servo)| ServoState {
            id: servo.id,
            temperature_c: Some(30.0),
            ..ServoState::default()
        });
        let mut servos: Vec<_> = servos.collect();
        servos[0].temperature_c = first_c;
        ArmMeasurement {
            at: ClockInstant::ZERO,
            position_rad: JointVector::zeros(arm.dof()),
            velocity_rad_s: JointVector::zeros(arm.dof()),
            servos,
        }
    }

    /// Returns the judgement of the arm after these readings of its first servo.
    fn after(arm: &ArmModel, all_c: &[Option<f64>]) -> ServoHealth {
        all_c
            .iter()
            .fold(ServoHealth::default(), |before, first_c| {
                ServoHealth::from_reading(arm, &read(arm, *first_c), &before)
            })
    }

    /// It passed for cool, and a stroke began.
    #[test]
    fn a_servo_whose_temperature_is_no_longer_read_is_not_cool() {
        let scene = scene::SceneLibrary::new(None)
            .scene("default", None)
            .unwrap();
        for (all_c, then) in [
            (vec![None; 3], HealthAction::None),
            (vec![Some(30.0), None], HealthAction::Warn),
            (vec![Some(56.0), None, None], HealthAction::Warn),
            (vec![Some(61.0), None, None], HealthAction::NoStroke),
            (
                [vec![Some(66.0); 5], vec![None; 9]].concat(),
                HealthAction::Park,
            ),
            // What is not read is no fifth hot reading.
            (
                [vec![Some(66.0); 4], vec![None; 9]].concat(),
                HealthAction::NoStroke,
            ),
            (vec![Some(61.0), None, Some(30.0)], HealthAction::None),
        ] {
            let health = after(&scene.arm, &all_c);
            assert_eq!(health.care, then, "{all_c:?}: {}", health.summary());
            let is_unread = all_c.last().unwrap().is_none() && then != HealthAction::None;
            assert_eq!(health.summary().contains("no longer tells"), is_unread);
        }
    }

    #[test]
    fn each_threshold_has_its_care_and_is_left_two_degrees_below() {
        for (temperature_c, before, then) in [
            (54.9, HealthAction::None, HealthAction::None),
            (55.0, HealthAction::None, HealthAction::Warn),
            (60.0, HealthAction::Warn, HealthAction::NoStroke),
            (65.0, HealthAction::NoStroke, HealthAction::Park),
            (64.0, HealthAction::Park, HealthAction::Park),
            (62.9, HealthAction::Park, HealthAction::NoStroke),
            (58.5, HealthAction::NoStroke, HealthAction::NoStroke),
            (57.9, HealthAction::NoStroke, HealthAction::Warn),
            (52.9, HealthAction::Warn, HealthAction::None),
        ] {
            assert_eq!(care(temperature_c, before), then, "{temperature_c}");
        }
    }
}
