//! The device side of Dynamixel X servos: their memory, their watchdog, and what they answer.
//!
//! Written from the manual, apart from the driver, so that the two judge each other.

use std::time::Duration;

use crate::body::{Body, Drive, Felt};
use crate::device::Answer;
use crate::servos::{self, BROADCAST, Model, delay};
use base::units::Instant;

const MEMORY: usize = 160;
type Memory = servos::Memory<MEMORY>;

/// What lies below outlives the power.
const KEPT: usize = 64;
const STATUS: u8 = 0x55;

/// A request is never longer than this; longer ones are noise.
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

/// The share of its voltage that a servo may use, and the most that may be asked for.
const GOAL_PWM: usize = 100;
const PWM_LIMIT: usize = 36;

/// All of its voltage.
const PWM_STEPS: f64 = 885.0;

/// The first firmware that answers a fast sync read.
const FAST_FIRMWARE: u8 = 46;

const WATCHDOG: usize = 98;
const WATCHDOG_STEP: Duration = Duration::from_millis(20);
const TRIPPED: u8 = 0xFF;

/// Memory as a servo leaves the factory, then set up for an arm: address, value.
const FACTORY: [(usize, u8); 22] = [
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

/// One servo.
#[derive(Debug)]
pub(crate) struct Servo {
    memory: Memory,
    pending: Option<(u16, Vec<u8>)>,
    hardware_error: u8,
    kept_writes: u64,
    forced_position: Option<u16>,
    watchdog_due: Option<Instant>,
}

/// Collects one request at a time, byte by byte, as a servo's own receiver does.
#[derive(Debug, Default)]
pub(crate) struct Listener {
    frame: Vec<u8>,
}

pub(crate) struct Request {
    id: u8,
    instruction: u8,
    parameters: Vec<u8>,
    whole: bool,
}

impl Listener {
    fn hear(&mut self, byte: u8) -> Option<Request> {
        self.frame.push(byte);
        let wanted = [255, 255, 253, 0];
        if !self.frame.iter().zip(wanted).all(|(a, b)| *a == b) {
            let keep = match self.frame.as_slice() {
                [255, 255, 255] => 2,
                _ => usize::from(byte == 255),
            };
            self.frame.truncate(keep);
            return None;
        }
        let [_, _, _, _, id, low, high, body @ ..] = self.frame.as_slice() else {
            return None;
        };
        let length = usize::from(*low) + 256 * usize::from(*high);
        if !(3..FRAME_MAX).contains(&length) {
            self.frame.clear();
            return None;
        }
        if body.len() < length {
            return None;
        }
        let request = read_request(*id, body, crc16(&self.frame, self.frame.len() - 2));
        self.frame.clear();
        request
    }
}

fn read_request(id: u8, body: &[u8], crc: u16) -> Option<Request> {
    let [instruction, stuffed @ .., low, high] = body else {
        return None;
    };
    Some(Request {
        id,
        instruction: *instruction,
        parameters: without_stuffing(stuffed),
        whole: u16::from(*low) + 256 * u16::from(*high) == crc,
    })
}

/// Each `FF FF FD FD` was `FF FF FD` before it was sent.
fn without_stuffing(bytes: &[u8]) -> Vec<u8> {
    let mut plain: Vec<u8> = Vec::with_capacity(bytes.len());
    let mut skip = false;
    for byte in bytes {
        if skip && *byte == 253 {
            skip = false;
            continue;
        }
        plain.push(*byte);
        skip = plain.ends_with(&[255, 255, 253]);
    }
    plain
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

/// The manual's CRC, bit by bit: polynomial 8005, beginning with 0.
fn crc16(bytes: &[u8], count: usize) -> u16 {
    bytes.iter().take(count).fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            let carry = crc & 0x8000 != 0;
            (crc << 1) ^ if carry { 0x8005 } else { 0 }
        })
    })
}

/// A frame with the status instruction. `length` counts from the instruction to the CRC.
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

fn word(bytes: &[u8], at: usize) -> u16 {
    let byte = |at: usize| u16::from(bytes.get(at).copied().unwrap_or(0));
    byte(at) | byte(at + 1) << 8
}

/// The bus while a request is obeyed.
struct Bus<'a>(&'a mut [Servo]);

impl Bus<'_> {
    fn obey(&mut self, request: &Request, body: &mut Body, at: Instant) -> Vec<Answer> {
        let parameters = request.parameters.as_slice();
        match (request.instruction, parameters) {
            (0x82, [_, _, _, _, ids @ ..]) => self.sync_read(parameters, ids, body, at),
            (0x8A, [_, _, _, _, ids @ ..]) => self.fast_sync_read(parameters, ids, body, at),
            (0x83, [_, _, _, _, blocks @ ..]) => {
                self.sync_write(word(parameters, 0), word(parameters, 2), blocks, body, at);
                Vec::new()
            }
            (0x92, blocks) => self.bulk_read(blocks, body, at),
            (0x93, blocks) => {
                self.bulk_write(blocks, body, at);
                Vec::new()
            }
            _ => self.each(request, body, at),
        }
    }

    fn find(&self, id: u8) -> Option<(usize, &Servo)> {
        let mut all = self.0.iter().enumerate();
        all.find(|(_, servo)| servo.id() == id)
    }

    fn sync_read(&self, parameters: &[u8], ids: &[u8], body: &Body, at: Instant) -> Vec<Answer> {
        let (address, length) = (word(parameters, 0), word(parameters, 2));
        let answers = ids.iter().filter_map(|id| {
            let (place, servo) = self.find(*id)?;
            let data = servo.read(address, length, body.felt(place, at))?;
            Some(servo.answer(0, &data))
        });
        answers.collect()
    }

    /// All answer within one frame: each adds its share and the CRC of everything so far.
    fn fast_sync_read(
        &self,
        parameters: &[u8],
        ids: &[u8],
        body: &Body,
        at: Instant,
    ) -> Vec<Answer> {
        let (address, length) = (word(parameters, 0), word(parameters, 2));
        let shares = ids.len() * (usize::from(length) + 4);
        let mut frame = vec![255, 255, 253, 0, BROADCAST];
        frame.extend(u16::try_from(shares + 1).unwrap_or(u16::MAX).to_le_bytes());
        frame.push(STATUS);
        let mut delay = Duration::ZERO;
        for id in ids {
            let Some((place, servo)) = self.find(*id) else {
                // Who is not there leaves a hole, and nobody can use the frame.
                return Vec::new();
            };
            if servo.memory.byte(6) < FAST_FIRMWARE {
                // It does not know the request, and nobody answers in its place.
                return Vec::new();
            }
            let Some(data) = servo.read(address, length, body.felt(place, at)) else {
                return Vec::new();
            };
            delay = delay.max(self::delay(servo.memory.byte(9)));
            frame.extend([servo.alert(0), *id]);
            frame.extend(data);
            frame.extend(crc16(&frame, frame.len()).to_le_bytes());
        }
        vec![Answer {
            id: ids.first().copied().unwrap_or(BROADCAST),
            with: ids.iter().skip(1).copied().collect(),
            delay,
            bytes: frame,
        }]
    }

    fn bulk_read(&self, blocks: &[u8], body: &Body, at: Instant) -> Vec<Answer> {
        let answers = blocks.chunks_exact(5).filter_map(|block| {
            let (place, servo) = self.find(*block.first()?)?;
            let data = servo.read(word(block, 1), word(block, 3), body.felt(place, at))?;
            Some(servo.answer(0, &data))
        });
        answers.collect()
    }

    fn sync_write(
        &mut self,
        address: u16,
        length: u16,
        blocks: &[u8],
        body: &mut Body,
        at: Instant,
    ) {
        for block in blocks.chunks_exact(usize::from(length) + 1) {
            if let [id, data @ ..] = block {
                self.write(*id, address, data, body, at);
            }
        }
    }

    fn bulk_write(&mut self, mut blocks: &[u8], body: &mut Body, at: Instant) {
        while let [id, _, _, _, _, rest @ ..] = blocks {
            let length = usize::from(word(blocks, 3));
            let Some((data, next)) = rest.split_at_checked(length) else {
                return;
            };
            self.write(*id, word(blocks, 1), data, body, at);
            blocks = next;
        }
    }

    /// A write that nobody answers; a servo with that secondary id obeys too.
    fn write(&mut self, id: u8, address: u16, data: &[u8], body: &mut Body, at: Instant) {
        for (place, servo) in self.0.iter_mut().enumerate() {
            if servo.id() == id || servo.memory.byte(12) == id {
                let _ = servo.write(address, data, place, body, at);
            }
        }
    }

    /// A request to one servo, or to all of them when it is broadcast.
    fn each(&mut self, request: &Request, body: &mut Body, at: Instant) -> Vec<Answer> {
        let all = request.id == BROADCAST;
        let mut answers = Vec::new();
        for (place, servo) in self.0.iter_mut().enumerate() {
            let shadow = servo.memory.byte(12) == request.id && !all;
            if all || shadow || servo.id() == request.id {
                let answer = servo.obey(request, place, body, at);
                // Broadcasts are answered to a ping only; a shadow never speaks.
                answers.extend(answer.filter(|_| !shadow && (!all || request.instruction == 1)));
            }
        }
        answers
    }
}

impl Model for Servo {
    type Request = Request;
    type Listener = Listener;

    fn new(id: u8, return_delay_steps: u8) -> Self {
        Self {
            memory: Memory::of(&FACTORY, [7, 9], id, return_delay_steps),
            pending: None,
            hardware_error: 0,
            kept_writes: 0,
            forced_position: None,
            watchdog_due: None,
        }
    }

    fn listen(listener: &mut Listener, byte: u8) -> Option<Request> {
        listener.hear(byte)
    }

    fn obey_all(
        servos: &mut [Self],
        request: &Request,
        body: &mut Body,
        at: Instant,
    ) -> Vec<Answer> {
        if !request.whole {
            let asked = servos.iter().filter(|servo| servo.id() == request.id);
            return asked.map(|servo| servo.answer(ERROR_CRC, &[])).collect();
        }
        for servo in servos.iter_mut() {
            servo.feed_watchdog(at);
        }
        Bus(servos).obey(request, body, at)
    }

    fn id(&self) -> u8 {
        self.memory.byte(7)
    }

    #[expect(clippy::cast_possible_truncation, reason = "`as` saturates")]
    fn aim_here(&mut self, place: usize, body: &Body, at: Instant) {
        if let Some(felt) = body.felt(place, at) {
            let goal = felt.ticks.round() as i32 + self.memory.long(20);
            self.memory.set(116, &goal.to_le_bytes());
        }
    }

    fn restart(&mut self, place: usize, body: &mut Body, at: Instant) {
        let level = self.memory.byte(68);
        self.memory.forget(KEPT);
        self.memory.set(68, &[level]);
        let pwm_limit = self.memory.word(PWM_LIMIT);
        self.memory.set(GOAL_PWM, &pwm_limit.to_le_bytes());
        self.hardware_error = 0;
        self.pending = None;
        self.watchdog_due = None;
        self.aim_here(place, body, at);
        self.drive(place, body);
    }

    fn set_error(&mut self, bits: u8, place: usize, body: &mut Body) {
        self.hardware_error = bits;
        // Which errors switch the torque off, the servo's shutdown register says.
        if bits & self.memory.byte(63) != 0 {
            self.memory.set(64, &[0]);
            self.drive(place, body);
        }
    }

    fn force_position(&mut self, word: Option<u16>) {
        self.forced_position = word;
    }

    fn poke(&mut self, address: usize, value: u8) {
        self.memory.set(address, &[value]);
    }

    fn kept_writes(&self) -> u64 {
        self.kept_writes
    }

    fn next_due(&self) -> Option<Instant> {
        self.watchdog_due
    }

    /// Nobody spoke for too long: stand still, and take no goals.
    fn wake(&mut self, place: usize, body: &mut Body, now: Instant) {
        self.watchdog_due = None;
        self.memory.set(WATCHDOG, &[TRIPPED]);
        self.aim_here(place, body, now);
        self.drive(place, body);
    }
}

impl Servo {
    fn alert(&self, error: u8) -> u8 {
        error | if self.hardware_error == 0 { 0 } else { ALERT }
    }

    fn answer(&self, error: u8, data: &[u8]) -> Answer {
        Answer {
            id: self.id(),
            with: Vec::new(),
            delay: delay(self.memory.byte(9)),
            bytes: status(self.id(), self.alert(error), data),
        }
    }

    fn obey(
        &mut self,
        request: &Request,
        place: usize,
        body: &mut Body,
        at: Instant,
    ) -> Option<Answer> {
        let level = self.memory.byte(68);
        let parameters = request.parameters.as_slice();
        let error = match (request.instruction, parameters) {
            (1, []) => {
                let data = [
                    self.memory.byte(0),
                    self.memory.byte(1),
                    self.memory.byte(6),
                ];
                return Some(self.answer(0, &data));
            }
            (2, [_, _, _, _]) => {
                let (address, length) = (word(parameters, 0), word(parameters, 2));
                let data = self.read(address, length, body.felt(place, at));
                let error = if data.is_some() { 0 } else { ERROR_LENGTH };
                return (level >= 1).then(|| self.answer(error, &data.unwrap_or_default()));
            }
            (3, [_, _, data @ ..]) => self.write(word(parameters, 0), data, place, body, at),
            (4, [_, _, data @ ..]) => {
                self.pending = Some((word(parameters, 0), data.to_vec()));
                Ok(())
            }
            (5, []) => match self.pending.take() {
                Some((address, data)) => self.write(address, &data, place, body, at),
                None => Ok(()),
            },
            (8, []) => {
                self.restart(place, body, at);
                Ok(())
            }
            _ => Err(ERROR_INSTRUCTION),
        };
        (level >= 2).then(|| self.answer(error.err().unwrap_or(0), &[]))
    }

    fn read(&self, address: u16, length: u16, felt: Option<Felt>) -> Option<Vec<u8>> {
        let mut memory = self.memory;
        if let Some(felt) = felt {
            self.feel(&mut memory, &felt);
        }
        memory.read(usize::from(address), usize::from(length))
    }

    /// The registers that report the present, computed when they are read.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "`as` saturates at what a register can show"
    )]
    fn feel(&self, memory: &mut Memory, felt: &Felt) {
        let position = match self.forced_position {
            Some(word) => i32::from(word),
            None => felt.ticks.round() as i32 + self.memory.long(20),
        };
        let current = (felt.load_ratio * CURRENT_STEPS).round() as i16;
        let velocity = (felt.speed_ticks_s / VELOCITY_TICKS_S).round() as i32;
        let volts = (felt.voltage_v * 10.0).round() as u16;
        memory.set(70, &[self.hardware_error]);
        memory.set(122, &[u8::from(felt.moving)]);
        memory.set(126, &current.to_le_bytes());
        memory.set(128, &velocity.to_le_bytes());
        memory.set(132, &position.to_le_bytes());
        memory.set(144, &volts.to_le_bytes());
        memory.set(146, &[felt.temperature_c.round() as u8]);
    }

    fn write(
        &mut self,
        address: u16,
        data: &[u8],
        place: usize,
        body: &mut Body,
        at: Instant,
    ) -> Result<(), u8> {
        let first = usize::from(address);
        let range = first..first + data.len();
        let touches = |register: usize| range.contains(&register);
        self.kept_writes +=
            u64::try_from(range.clone().filter(|at| *at < KEPT).count()).unwrap_or(0);
        let kept_while_on = first < KEPT && self.memory.byte(64) != 0;
        let tripped = self.memory.byte(WATCHDOG) == TRIPPED
            && range.clone().any(|at| (100..120).contains(&at));
        let read_only = range.end > 120 && first < 147 || first < 7;
        if kept_while_on || tripped || read_only {
            return Err(ERROR_ACCESS);
        }
        if range.end > MEMORY {
            return Err(ERROR_LENGTH);
        }
        let was_on = self.memory.byte(64) == 1;
        let before = self.memory;
        self.memory.set(first, data);
        if touches(GOAL_PWM) && self.memory.word(GOAL_PWM) > self.memory.word(PWM_LIMIT) {
            self.memory = before;
            return Err(ERROR_LIMIT);
        }
        if touches(64)
            && self.memory.byte(64) == 1
            && self.hardware_error & self.memory.byte(63) != 0
        {
            // A latched error keeps the torque off until the servo restarts.
            self.memory.set(64, &[0]);
            return Err(ERROR_ACCESS);
        }
        if touches(64) && !was_on && self.memory.byte(64) == 1 && !touches(116) {
            self.aim_here(place, body, at);
        }
        if touches(WATCHDOG) {
            self.watchdog_due = None;
            self.feed_watchdog(at);
        }
        self.drive(place, body);
        Ok(())
    }

    fn feed_watchdog(&mut self, at: Instant) {
        let steps = self.memory.byte(WATCHDOG);
        let armed = (1..=127).contains(&steps);
        self.watchdog_due = armed.then(|| at.after(WATCHDOG_STEP * u32::from(steps)));
    }

    /// Passes on to the body what the registers now say.
    fn drive(&self, place: usize, body: &mut Body) {
        let or_unlimited = |steps: i32, step: f64| match steps {
            0 => f64::INFINITY,
            steps => f64::from(steps) * step,
        };
        let (most, least) = (self.memory.long(48), self.memory.long(52));
        let goal = self.memory.long(116).max(least).min(most) - self.memory.long(20);
        body.drive(
            place,
            Drive {
                torque_on: self.memory.byte(64) == 1,
                goal_ticks: f64::from(goal),
                speed_ticks_s: or_unlimited(self.memory.long(112), VELOCITY_TICKS_S),
                acceleration_ticks_s2: or_unlimited(self.memory.long(108), ACCELERATION_TICKS_S2),
                torque_ratio: f64::from(self.memory.word(GOAL_PWM)) / PWM_STEPS,
            },
        );
    }
}
