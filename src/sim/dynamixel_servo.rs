//! Device side of Dynamixel X servos: their memory, their watchdog, and their answers.
//!
//! Written from the manual and independently of the driver, so that the two check each other.

use std::time::Duration;

use crate::arm_dynamics::{ArmDynamics, ServoDrive, ServoReadings};
use crate::bus_device::ServoAnswer;
use crate::servo_bus::{
    BROADCAST, RegisterServo, Request, ServoMemory, SimulatedFamily, block, execute_each, find,
    read_from, write_unanswered,
};
use crate::servo_motor::ServoRegulator;

const STATUS: u8 = 0x55;

/// Largest length of a request; longer ones are noise.
const FRAME_MAX: usize = 1100;

/// Steps of the velocity and the acceleration register, in ticks.
const VELOCITY_TICKS_S: f64 = 15.633_066_7;
const ACCELERATION_TICKS_S2: f64 = 244.140_942_2;

/// Steps of the current register.
const CURRENT_STEPS: f64 = 1193.0;

const ERROR_INSTRUCTION: u8 = 2;
const ERROR_CRC: u8 = 3;
const ERROR_LENGTH: u8 = 5;
const ERROR_LIMIT: u8 = 6;
const ERROR_ACCESS: u8 = 7;
const ALERT: u8 = 0x80;

/// Registers of the fraction of its voltage that a servo may use, and of the largest goal for it.
const GOAL_PWM: usize = 100;
const PWM_LIMIT: usize = 36;

/// Registers of the goal and of its limits.
const GOAL_POSITION: usize = 116;
const POSITION_MAX: usize = 48;
const POSITION_MIN: usize = 52;

/// Value of the register for the full voltage.
const PWM_STEPS: f64 = 885.0;

/// The first firmware that answers a fast sync read.
const FAST_FIRMWARE: u8 = 46;

const WATCHDOG: usize = 98;
const WATCHDOG_STEP: Duration = Duration::from_millis(20);
const TRIPPED: u8 = 0xFF;

fn read_request(id: u8, body: &[u8], crc: u16) -> Option<Request> {
    let [instruction, stuffed @ .., low, high] = body else {
        return None;
    };
    Some(Request {
        id,
        instruction: *instruction,
        parameters: without_stuffing(stuffed),
        is_intact: u16::from(*low) + 256 * u16::from(*high) == crc,
    })
}

/// Removes byte stuffing: `FF FF FD` is sent as `FF FF FD FD`.
fn without_stuffing(bytes: &[u8]) -> Vec<u8> {
    let mut unstuffed: Vec<u8> = Vec::with_capacity(bytes.len());
    let mut skip = false;
    for byte in bytes {
        if skip && *byte == 253 {
            skip = false;
            continue;
        }
        unstuffed.push(*byte);
        skip = unstuffed.ends_with(&[255, 255, 253]);
    }
    unstuffed
}

fn with_stuffing(bytes: &[u8]) -> Vec<u8> {
    let mut stuffed: Vec<u8> = Vec::with_capacity(bytes.len() + 4);
    for byte in bytes {
        stuffed.push(*byte);
        if stuffed.ends_with(&[255, 255, 253]) {
            stuffed.push(253);
        }
    }
    stuffed
}

/// Computes the manual's CRC bit by bit: polynomial 8005, initial value 0.
fn crc16(bytes: &[u8], count: usize) -> u16 {
    bytes.iter().take(count).fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            let carry = crc & 0x8000 != 0;
            (crc << 1) ^ if carry { 0x8005 } else { 0 }
        })
    })
}

fn word(bytes: &[u8], at: usize) -> u16 {
    let byte = |at: usize| u16::from(bytes.get(at).copied().unwrap_or(0));
    byte(at) | byte(at + 1) << 8
}

/// The Dynamixel X family.
pub(crate) struct DynamixelX;

impl SimulatedFamily for DynamixelX {
    const MEMORY: usize = 160;
    const PERSISTENT_END: usize = 64;
    const FACTORY: &'static [(usize, u8)] = &[
        (0, 0xFC),
        (1, 0x03),
        (6, 48),
        (8, 3),
        (11, 3),
        (12, 255),
        (13, 2),
        (31, 80),
        (32, 160),
        (34, 95),
        (36, 0x75),
        (37, 0x03),
        (38, 0xA9),
        (39, 0x04),
        (48, 0xFF),
        (49, 0x0F),
        (63, 52),
        (68, 2),
        (80, 0x20),
        (81, 0x03),
        (100, 0x75),
        (101, 0x03),
    ];
    const ID: usize = 7;
    const MODEL: usize = 0;
    const BAUD: usize = 8;
    const BAUDS: &'static [u32] = &[
        9_600, 57_600, 115_200, 1_000_000, 2_000_000, 3_000_000, 4_000_000, 4_500_000,
    ];
    const DELAY: usize = 9;
    const WIDTH: usize = 2;
    const DAMAGED: u8 = ERROR_CRC;
    const UNKNOWN: Option<u8> = Some(ERROR_INSTRUCTION);
    const BEYOND: Option<u8> = Some(ERROR_LENGTH);
    const RESTARTS: bool = true;

    fn receive(frame: &mut Vec<u8>, byte: u8) -> Option<Request> {
        frame.push(byte);
        let header = [255, 255, 253, 0];
        if !frame.iter().zip(header).all(|(a, b)| *a == b) {
            let keep = match frame.as_slice() {
                [255, 255, 255] => 2,
                _ => usize::from(byte == 255),
            };
            frame.truncate(keep);
            return None;
        }
        let [_, _, _, _, id, low, high, body @ ..] = frame.as_slice() else {
            return None;
        };
        let length = usize::from(*low) + 256 * usize::from(*high);
        if !(3..FRAME_MAX).contains(&length) {
            frame.clear();
            return None;
        }
        if body.len() < length {
            return None;
        }
        let request = read_request(*id, body, crc16(frame, frame.len() - 2));
        frame.clear();
        request
    }

    /// `length` counts from the instruction to the CRC.
    fn status(id: u8, error: u8, data: &[u8]) -> Vec<u8> {
        let mut body = vec![error];
        body.extend(data);
        let body = with_stuffing(&body);
        let length = u16::try_from(body.len() + 3).unwrap_or(u16::MAX);
        let mut frame = vec![255, 255, 253, 0, id];
        frame.extend(length.to_le_bytes());
        frame.push(STATUS);
        frame.extend(body);
        frame.extend(crc16(&frame, frame.len()).to_le_bytes());
        frame
    }

    fn alert(error: u8) -> u8 {
        if error == 0 { 0 } else { ALERT }
    }

    fn greeting(memory: &ServoMemory) -> Vec<u8> {
        [0, 1, 6].map(|address| memory.byte(address)).to_vec()
    }

    fn status_level(memory: &ServoMemory) -> u8 {
        memory.byte(68)
    }

    /// Compares the secondary id.
    fn is_shadow(memory: &ServoMemory, id: u8) -> bool {
        memory.byte(12) == id
    }

    /// Restarts the watchdog.
    fn on_request(servo: &mut RegisterServo<Self>, body: &ArmDynamics) {
        let steps = servo.memory.byte(WATCHDOG);
        let is_armed = (1..=127).contains(&steps);
        servo.due = is_armed.then(|| body.at().after(WATCHDOG_STEP * u32::from(steps)));
    }

    fn execute_all(
        servos: &mut [RegisterServo<Self>],
        request: &Request,
        body: &mut ArmDynamics,
    ) -> Vec<ServoAnswer> {
        let parameters = request.parameters.as_slice();
        match (request.instruction, block::<Self>(parameters)) {
            (0x8A, Some((address, length, ids))) => {
                fast_sync_read(servos, (address, length), ids, body)
            }
            (0x92, _) => {
                let blocks = parameters.chunks_exact(5);
                let answers = blocks.filter_map(|block| {
                    let address = usize::from(word(block, 1));
                    let length = usize::from(word(block, 3));
                    read_from(servos, *block.first()?, (address, length), body)
                });
                answers.collect()
            }
            (0x93, _) => {
                bulk_write(servos, parameters, body);
                Vec::new()
            }
            _ => execute_each(servos, request, body),
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "`as` saturates at what a register can show"
    )]
    fn report(servo: &RegisterServo<Self>, memory: &mut ServoMemory, readings: &ServoReadings) {
        let position = match servo.forced_position {
            Some(word) => i32::from(word),
            None => readings.ticks.round() as i32 + servo.memory.long(20),
        };
        let current = (readings.load_ratio * CURRENT_STEPS).round() as i16;
        let velocity = (readings.speed_ticks_s / VELOCITY_TICKS_S).round() as i32;
        let volts = (readings.voltage_v * 10.0).round() as u16;
        memory.set(70, &[servo.error]);
        memory.set(122, &[u8::from(readings.moving)]);
        memory.set(126, &current.to_le_bytes());
        memory.set(128, &velocity.to_le_bytes());
        memory.set(132, &position.to_le_bytes());
        memory.set(144, &volts.to_le_bytes());
        memory.set(146, &[readings.temperature_c.round() as u8]);
    }

    fn write(
        servo: &mut RegisterServo<Self>,
        first: usize,
        data: &[u8],
        body: &mut ArmDynamics,
    ) -> Result<(), u8> {
        let range = first..first + data.len();
        let touches = |register: usize| range.contains(&register);
        let is_locked = first < Self::PERSISTENT_END && servo.memory.byte(64) != 0;
        let has_tripped = servo.memory.byte(WATCHDOG) == TRIPPED
            && range.clone().any(|at| (100..120).contains(&at));
        let is_read_only = range.end > 120 && first < 147 || first < 7;
        if is_locked || has_tripped || is_read_only {
            return Err(ERROR_ACCESS);
        }
        if range.end > Self::MEMORY {
            return Err(ERROR_LENGTH);
        }
        let was_on = servo.memory.byte(64) == 1;
        let previous = servo.memory.clone();
        servo.memory.set(first, data);
        let goal = servo.memory.long(GOAL_POSITION);
        let positions = servo.memory.long(POSITION_MIN)..=servo.memory.long(POSITION_MAX);
        let is_beyond = touches(GOAL_POSITION) && !positions.contains(&goal);
        let is_too_strong =
            touches(GOAL_PWM) && servo.memory.word(GOAL_PWM) > servo.memory.word(PWM_LIMIT);
        if is_beyond || is_too_strong {
            servo.memory = previous;
            return Err(ERROR_LIMIT);
        }
        if touches(64) && servo.memory.byte(64) == 1 && servo.error & servo.memory.byte(63) != 0 {
            // A latched error keeps the torque off until the servo restarts.
            servo.memory.set(64, &[0]);
            return Err(ERROR_ACCESS);
        }
        if touches(64) && !was_on && servo.memory.byte(64) == 1 && !touches(116) {
            servo.set_goal_to_present(body);
        }
        if touches(WATCHDOG) {
            servo.due = None;
            Self::on_request(servo, body);
        }
        Ok(())
    }

    #[expect(clippy::cast_possible_truncation, reason = "`as` saturates")]
    fn goal_at(servo: &RegisterServo<Self>, ticks: f64) -> (usize, Vec<u8>) {
        let goal = ticks.round() as i32 + servo.memory.long(20);
        (116, goal.to_le_bytes().to_vec())
    }

    fn drive(servo: &RegisterServo<Self>) -> ServoDrive {
        let or_unlimited = |steps: i32, step: f64| match steps {
            0 => f64::INFINITY,
            steps => f64::from(steps) * step,
        };
        let (most, least) = (servo.memory.long(48), servo.memory.long(52));
        let goal = servo.memory.long(116).max(least).min(most) - servo.memory.long(20);
        ServoDrive {
            torque_on: servo.memory.byte(64) == 1,
            goal_ticks: f64::from(goal),
            speed_ticks_s: or_unlimited(servo.memory.long(112), VELOCITY_TICKS_S),
            acceleration_ticks_s2: or_unlimited(servo.memory.long(108), ACCELERATION_TICKS_S2),
            torque_ratio: f64::from(servo.memory.word(GOAL_PWM)) / PWM_STEPS,
            regulator: ServoRegulator::UNKNOWN,
        }
    }

    fn restart(memory: &mut ServoMemory) {
        let status_level = memory.byte(68);
        memory.clear_from(Self::PERSISTENT_END);
        memory.set(68, &[status_level]);
        let pwm_limit = memory.word(PWM_LIMIT);
        memory.set(GOAL_PWM, &pwm_limit.to_le_bytes());
    }

    /// Switches the torque off on an error that the servo's shutdown register names.
    fn fail(servo: &mut RegisterServo<Self>) {
        if servo.error & servo.memory.byte(63) != 0 {
            servo.memory.set(64, &[0]);
        }
    }

    /// Handles the watchdog's timeout: the servo stops, and accepts no goals.
    fn wake(memory: &mut ServoMemory) {
        memory.set(WATCHDOG, &[TRIPPED]);
    }
}

/// Answers for all servos within one frame: each adds its data and the CRC of everything so far.
fn fast_sync_read(
    servos: &[RegisterServo<DynamixelX>],
    (address, length): (usize, usize),
    ids: &[u8],
    body: &ArmDynamics,
) -> Vec<ServoAnswer> {
    let total = ids.len() * (length + 4);
    let mut frame = vec![255, 255, 253, 0, BROADCAST];
    frame.extend(u16::try_from(total + 1).unwrap_or(u16::MAX).to_le_bytes());
    frame.push(STATUS);
    let mut delay = Duration::ZERO;
    for id in ids {
        let Some(servo) = find(servos, *id) else {
            // A missing servo leaves a gap that makes the frame unusable.
            return Vec::new();
        };
        if servo.memory.byte(6) < FAST_FIRMWARE {
            // A servo that does not know the request leaves a gap as well.
            return Vec::new();
        }
        let Some(data) = servo.read(address, length, body) else {
            return Vec::new();
        };
        delay = delay.max(servo.answer_delay());
        frame.extend([DynamixelX::alert(servo.error), *id]);
        frame.extend(data);
        frame.extend(crc16(&frame, frame.len()).to_le_bytes());
    }
    vec![ServoAnswer {
        id: ids.first().copied().unwrap_or(BROADCAST),
        with: ids.iter().skip(1).copied().collect(),
        delay,
        bytes: frame,
    }]
}

fn bulk_write(servos: &mut [RegisterServo<DynamixelX>], mut blocks: &[u8], body: &mut ArmDynamics) {
    while let [id, _, _, _, _, rest @ ..] = blocks {
        let length = usize::from(word(blocks, 3));
        let Some((data, next)) = rest.split_at_checked(length) else {
            return;
        };
        let address = usize::from(word(blocks, 1));
        write_unanswered(servos, *id, address, data, body);
        blocks = next;
    }
}
