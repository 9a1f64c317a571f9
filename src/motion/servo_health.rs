//! Servo health: temperatures that warn, forbid a stroke, or end one.

use serde::Serialize;

use arm::ArmModel;
use base::units::ArmMeasurement;

/// Temperature from which an operator is warned.
const WARM_C: f64 = 55.0;

/// Temperature from which no stroke begins; going to rest is always possible.
const HOT_C: f64 = 60.0;

/// Temperature from which the stroke is finished, the tip lifted and the arm parked. Servos cut their
/// torque at 70 °C or a little above, and an arm without torque drops.
pub const TOO_HOT_C: f64 = 65.0;

/// Number of consecutive hot readings that end a stroke; a single damaged reading must not.
const HOT_READINGS: u32 = 5;

/// A servo that has cooled this far below a threshold is well again.
const COOLED_C: f64 = 2.0;

/// The action that servo health demands; the most severe of all servos.
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
    /// The most severe action of all servos.
    pub care: HealthAction,
    /// One sentence per servo that is not well.
    pub says: Vec<String>,
    /// Number of consecutive readings that were too hot.
    #[serde(skip)]
    hot_readings: u32,
    /// Temperature of each servo at its last reading, in degrees Celsius.
    #[serde(skip)]
    read_c: Vec<(u8, f64)>,
}

impl ServoHealth {
    /// Judges a reading with the previous health: a servo at a threshold must not flicker, and one whose
    /// temperature is no longer read counts as hot as it was. One that never reported a temperature is
    /// not judged.
    pub(super) fn from_reading(arm: &ArmModel, measured: &ArmMeasurement, previous: &Self) -> Self {
        let mut health = Self {
            read_c: previous.read_c.clone(),
            ..Self::default()
        };
        let is_confirmed = previous.hot_readings + 1 >= HOT_READINGS;
        for servo in &measured.servos {
            let Some(temperature_c) = servo.temperature_c else {
                health.note_unread(arm, servo.id, previous);
                continue;
            };
            health.read_c.retain(|(id, _)| *id != servo.id);
            health.read_c.push((servo.id, temperature_c));
            let care = action_for(temperature_c, previous.care);
            if care == HealthAction::None {
                continue;
            }
            if care == HealthAction::Park {
                health.hot_readings = (previous.hot_readings + 1).min(HOT_READINGS);
            }
            let care = if is_confirmed {
                care
            } else {
                care.min(HealthAction::NoStroke)
            };
            health.care = health.care.max(care);
            let advice = match care {
                HealthAction::Park => "the arm parks at the end of its stroke",
                HealthAction::NoStroke => "no new stroke starts until it has cooled",
                _ => "reduce its load, or let the arm rest",
            };
            health.says.push(format!(
                "{} is at {temperature_c:.0} °C (limit: {:.0} °C): {advice}",
                servo_name(arm, servo.id),
                limit_c(care)
            ));
        }
        health
    }

    /// Judges a servo that no longer reports its temperature by its last one. A missing reading neither
    /// counts as hot nor ends a series of hot ones.
    fn note_unread(&mut self, arm: &ArmModel, id: u8, previous: &Self) {
        let Some((_, temperature_c)) = previous.read_c.iter().find(|(of, _)| *of == id) else {
            return;
        };
        let care = action_for(*temperature_c, previous.care);
        if care == HealthAction::Park {
            self.hot_readings = self.hot_readings.max(previous.hot_readings);
        }
        let care = care.min(previous.care).max(HealthAction::Warn);
        self.care = self.care.max(care);
        self.says.push(format!(
            "{} no longer reports its temperature (last: {temperature_c:.0} °C): check its cable, and let the arm rest",
            servo_name(arm, id)
        ));
    }

    /// Returns all sentences in one line.
    #[must_use]
    pub fn summary(&self) -> String {
        self.says.join("; ")
    }
}

fn action_for(temperature_c: f64, previous: HealthAction) -> HealthAction {
    [
        HealthAction::Park,
        HealthAction::NoStroke,
        HealthAction::Warn,
    ]
    .into_iter()
    .find(|care| {
        let cooled = if previous >= *care { COOLED_C } else { 0.0 };
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

fn servo_name(arm: &ArmModel, id: u8) -> String {
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

    /// A reading of every servo, with this temperature of the first.
    fn reading(arm: &ArmModel, first_c: Option<f64>) -> ArmMeasurement {
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

    /// Returns the arm's health after these readings of its first servo.
    fn health_after(arm: &ArmModel, all_c: &[Option<f64>]) -> ServoHealth {
        all_c
            .iter()
            .fold(ServoHealth::default(), |previous, first_c| {
                ServoHealth::from_reading(arm, &reading(arm, *first_c), &previous)
            })
    }

    /// Such a servo must not pass for cool, or a stroke would begin.
    #[test]
    fn a_servo_whose_temperature_is_no_longer_read_is_not_cool() {
        let scene = scene::SceneLibrary::new(None)
            .scene("default", None)
            .unwrap();
        for (all_c, expected) in [
            (vec![None; 3], HealthAction::None),
            (vec![Some(30.0), None], HealthAction::Warn),
            (vec![Some(56.0), None, None], HealthAction::Warn),
            (vec![Some(61.0), None, None], HealthAction::NoStroke),
            (
                [vec![Some(66.0); 5], vec![None; 9]].concat(),
                HealthAction::Park,
            ),
            // A missing reading is no fifth hot reading.
            (
                [vec![Some(66.0); 4], vec![None; 9]].concat(),
                HealthAction::NoStroke,
            ),
            (vec![Some(61.0), None, Some(30.0)], HealthAction::None),
        ] {
            let health = health_after(&scene.arm, &all_c);
            assert_eq!(health.care, expected, "{all_c:?}: {}", health.summary());
            let is_unread = all_c.last().unwrap().is_none() && expected != HealthAction::None;
            assert_eq!(health.summary().contains("no longer reports"), is_unread);
        }
    }

    #[test]
    fn each_threshold_has_its_action_and_is_left_two_degrees_below() {
        for (temperature_c, previous, expected) in [
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
            let action = action_for(temperature_c, previous);
            assert_eq!(action, expected, "{temperature_c}");
        }
    }
}
