//! Device side of STS3215 servos: their memory and their answers. They have no watchdog.
//!
//! Written from the manual and independently of the driver, so that the two check each other.

use crate::arm_dynamics::{ArmDynamics, ServoDrive, ServoReadings};
use crate::servo_bus::{RegisterServo, Request, ServoMemory, SimulatedFamily};
use crate::servo_motor::{OverloadProtection, ServoRegulator};

/// More than the longest request that a length byte allows.
const FRAME_MAX: usize = 260;

/// Ticks in one revolution.
const TICKS_PER_TURN: i32 = 4096;

/// Step of the current register, from the manual.
const CURRENT_STEP_A: f64 = 0.0065;

/// The status bit of an overload.
const OVERLOAD: u8 = 32;

/// The STS family.
pub(crate) struct Sts;

impl SimulatedFamily for Sts {
    const MEMORY: usize = 128;
    const PERSISTENT_END: usize = 40;
    const FACTORY: &'static [(usize, u8)] = &[
        (0, 3),
        (1, 10),
        (3, 9),
        (4, 3),
        (6, 0),
        (8, 1),
        (11, 0xFF),
        (12, 0x0F),
        (13, 70),
        (14, 140),
        (15, 40),
        (16, 0xE8),
        (17, 0x03),
        (19, 44),
        (20, 47),
        (21, 32),
        (22, 32),
        (24, 16),
        (26, 1),
        (27, 1),
        (34, 20),
        (35, 200),
        (36, 80),
        (37, 10),
        (38, 200),
        (39, 10),
        (48, 0xE8),
        (49, 0x03),
        (55, 1),
    ];
    const GAIN_P: Option<usize> = Some(21);
    const ID: usize = 5;
    const MODEL: usize = 3;
    const BAUD: usize = 6;
    const BAUDS: &'static [u32] = &[
        1_000_000, 500_000, 250_000, 128_000, 115_200, 76_800, 57_600, 38_400,
    ];
    const DELAY: usize = 7;
    const WIDTH: usize = 1;

    fn receive(frame: &mut Vec<u8>, byte: u8) -> Option<Request> {
        frame.push(byte);
        match frame.as_slice() {
            [255] | [255, 255] => return None,
            [255, 255, 255] => frame.truncate(2),
            [255, 255, _] => {}
            [255, 255, _, length] if *length >= 2 => {}
            [255, 255, _, length, rest @ ..] if rest.len() < usize::from(*length) => {}
            [255, 255, id, _, instruction, parameters @ .., check] => {
                let sum = frame
                    .iter()
                    .skip(2)
                    .fold(0_u32, |sum, byte| sum + u32::from(*byte));
                // All bytes from the id on, including the checksum, add up to 255.
                let is_intact = sum % 256 == 255;
                let request = is_intact.then(|| Request {
                    id: *id,
                    instruction: *instruction,
                    parameters: parameters.to_vec(),
                    is_intact: true,
                });
                assert!(frame.len() < FRAME_MAX && u32::from(*check) < 256);
                frame.clear();
                return request;
            }
            _ => frame.clear(),
        }
        None
    }

    fn status(id: u8, error: u8, data: &[u8]) -> Vec<u8> {
        let length = u8::try_from(data.len()).unwrap_or(0) + 2;
        let mut bytes = vec![255, 255, id, length, error];
        bytes.extend(data);
        let sum: u32 = bytes.iter().skip(2).map(|byte| u32::from(*byte)).sum();
        bytes.push(u8::try_from(255 - sum % 256).unwrap_or(0));
        bytes
    }

    fn alert(error: u8) -> u8 {
        error
    }

    fn status_level(memory: &ServoMemory) -> u8 {
        1 + u8::from(memory.byte(8) != 0)
    }

    /// Shows a protection that has tripped.
    fn on_request(servo: &mut RegisterServo<Self>, body: &ArmDynamics) {
        if body.has_tripped(servo.place) {
            servo.error |= OVERLOAD;
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "`as` saturates at what a register can show"
    )]
    fn report(servo: &RegisterServo<Self>, memory: &mut ServoMemory, readings: &ServoReadings) {
        let mut put = |address: usize, bytes: &[u8]| memory.set(address, bytes);
        let position = servo
            .forced_position
            .unwrap_or_else(|| servo.reported(readings.ticks));
        put(56, &position.to_le_bytes());
        put(
            58,
            &magnitude(readings.speed_ticks_s.round() as i32, 0x8000).to_le_bytes(),
        );
        put(
            60,
            &magnitude((readings.load_ratio * 1000.0).round() as i32, 0x0400).to_le_bytes(),
        );
        put(62, &[(readings.voltage_v * 10.0).round() as u8]);
        put(63, &[readings.temperature_c.round() as u8]);
        put(65, &[servo.error]);
        put(66, &[u8::from(readings.moving)]);
        put(
            69,
            &((readings.current_a / CURRENT_STEP_A).round() as u16).to_le_bytes(),
        );
    }

    fn write(
        servo: &mut RegisterServo<Self>,
        first: usize,
        data: &[u8],
        body: &mut ArmDynamics,
    ) -> Result<(), u8> {
        let memory = &mut servo.memory;
        for (address, value) in (first..).zip(data) {
            let is_locked = address < Self::PERSISTENT_END && memory.byte(55) != 0;
            let is_read_only = address < 5 || (56..=70).contains(&address);
            if !is_locked && !is_read_only {
                memory.set(address, &[*value]);
            }
        }
        let touches = |register: usize| (first..first + data.len()).contains(&register);
        if touches(40) && memory.byte(40) == 128 {
            servo.centre(body);
        }
        let memory = &mut servo.memory;
        // A goal switches on the torque of a limp servo.
        if touches(42) && memory.byte(40) == 0 {
            memory.set(40, &[1]);
        }
        if touches(40) && memory.byte(40) == 0 {
            servo.error &= !OVERLOAD;
        }
        Ok(())
    }

    fn goal_at(servo: &RegisterServo<Self>, ticks: f64) -> (usize, Vec<u8>) {
        (42, servo.reported(ticks).to_le_bytes().to_vec())
    }

    fn drive(servo: &RegisterServo<Self>) -> ServoDrive {
        let or_unlimited = |value: f64| if value > 0.0 { value } else { f64::INFINITY };
        let ratio = f64::from(servo.memory.word(48)) / 1000.0;
        let (least, most) = (
            i32::from(servo.memory.word(9)),
            i32::from(servo.memory.word(11)),
        );
        let goal = signed(servo.memory.word(42), 0x8000);
        let goal = if most > least {
            goal.clamp(least, most)
        } else {
            goal
        };
        ServoDrive {
            torque_on: servo.memory.byte(40) == 1,
            goal_ticks: f64::from(goal + servo.offset()),
            speed_ticks_s: or_unlimited(f64::from(servo.memory.word(46) & 0x7FFF)),
            acceleration_ticks_s2: or_unlimited(f64::from(servo.memory.byte(41)) * 100.0),
            torque_ratio: ratio.min(1.0),
            regulator: servo.regulator(),
        }
    }

    fn restart(memory: &mut ServoMemory) {
        memory.clear_from(Self::PERSISTENT_END);
        memory.set(55, &[1]);
        let torque_max = memory.word(16);
        memory.set(48, &torque_max.to_le_bytes());
    }
}

impl RegisterServo<Sts> {
    /// Returns what the registers say of gain, dead zone and protection.
    fn regulator(&self) -> ServoRegulator {
        let byte = |address: usize| f64::from(self.memory.byte(address));
        ServoRegulator {
            gain_p: byte(21),
            dead_zone_ticks: byte(26).max(byte(27)),
            protection: Some(OverloadProtection {
                above_ratio: byte(36) / 100.0,
                after_s: byte(35) / 100.0,
                limited_ratio: byte(34) / 100.0,
                has_tripped: self.error & OVERLOAD != 0,
            }),
        }
    }

    /// Returns the homing offset: eleven bits and a sign.
    fn offset(&self) -> i32 {
        signed(self.memory.word(31), 0x0800)
    }

    #[expect(clippy::cast_possible_truncation, reason = "`as` saturates")]
    fn reported(&self, ticks: f64) -> u16 {
        let counted = ticks.round() as i32 - self.offset();
        let is_multi_turn = self.memory.byte(18) & 0x10 != 0;
        magnitude(
            if is_multi_turn {
                counted
            } else {
                counted.rem_euclid(TICKS_PER_TURN)
            },
            0x8000,
        )
    }

    /// Sets the homing offset so that the present position is the middle of the revolution.
    #[expect(clippy::cast_possible_truncation, reason = "`as` saturates")]
    fn centre(&mut self, body: &ArmDynamics) {
        if let Some(readings) = body.readings(self.place) {
            let offset = readings.ticks.round() as i32 - TICKS_PER_TURN / 2;
            self.memory
                .set(31, &magnitude(offset, 0x0800).to_le_bytes());
        }
        self.memory.set(40, &[0]);
    }
}

/// Decodes a word whose highest used bit is the sign.
fn signed(word: u16, sign: u16) -> i32 {
    let size = i32::from(word & (sign - 1));
    if word & sign == 0 { size } else { -size }
}

fn magnitude(value: i32, sign: u16) -> u16 {
    let size = u16::try_from(value.unsigned_abs())
        .unwrap_or(u16::MAX)
        .min(sign - 1);
    if value < 0 { size | sign } else { size }
}
