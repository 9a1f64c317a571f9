//! The device side of STS3215 servos: their memory, and what they answer.
//!
//! Written from the manual, apart from the driver, so that the two judge each other.

use std::time::Duration;

use crate::sim::body::{Body, Drive, Felt};
use crate::sim::device::{Answer, Device};
use crate::units::Instant;

const MEMORY: usize = 128;
const BROADCAST: u8 = 254;

/// A request is never longer than its length byte can say.
const FRAME_MAX: usize = 260;

/// Counts in one turn.
const TURN: i32 = 4096;

/// One of the manual's steps of current.
const CURRENT_STEP_A: f64 = 0.0065;

/// Memory as a servo leaves the factory, then set up for an arm: address, value.
const FACTORY: [(usize, u8); 24] = [
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
    (34, 20),
    (35, 200),
    (36, 80),
    (48, 0xE8),
    (49, 0x03),
    (55, 1),
];

/// All servos of one bus.
#[derive(Debug)]
pub(crate) struct Servos {
    listener: Listener,
    servos: Vec<Servo>,
}

#[derive(Debug)]
struct Servo {
    memory: [u8; MEMORY],
    pending: Option<(u8, Vec<u8>)>,
    error: u8,
    kept_writes: u64,
    forced_position: Option<u16>,
}

/// Collects one request at a time, byte by byte, as a servo's own receiver does.
#[derive(Debug, Default)]
struct Listener {
    frame: Vec<u8>,
}

struct Request {
    id: u8,
    instruction: u8,
    parameters: Vec<u8>,
}

impl Listener {
    fn hear(&mut self, byte: u8) -> Option<Request> {
        self.frame.push(byte);
        match self.frame.as_slice() {
            [255] | [255, 255] => return None,
            [255, 255, 255] => self.frame.truncate(2),
            [255, 255, _] => {}
            [255, 255, _, length] if *length >= 2 => {}
            [255, 255, _, length, rest @ ..] if rest.len() < usize::from(*length) => {}
            [255, 255, id, _, instruction, parameters @ .., check] => {
                let sum = self
                    .frame
                    .iter()
                    .skip(2)
                    .fold(0_u32, |sum, byte| sum + u32::from(*byte));
                // Everything from the id on, the checksum itself included, adds up to 255.
                let good = sum % 256 == 255;
                let request = good.then(|| Request {
                    id: *id,
                    instruction: *instruction,
                    parameters: parameters.to_vec(),
                });
                debug_assert!(self.frame.len() < FRAME_MAX && u32::from(*check) < 256);
                self.frame.clear();
                return request;
            }
            _ => self.frame.clear(),
        }
        None
    }
}

impl Servos {
    pub(crate) fn new(body: &Body, return_delay: Duration) -> Self {
        let delay = u8::try_from(return_delay.as_micros() / 2)
            .unwrap_or(254)
            .min(254);
        let servos = body.servos().enumerate().map(|(place, servo)| {
            let mut servo = Servo::new(servo.id, delay);
            servo.aim_here(place, body, Instant::ZERO);
            servo
        });
        Self {
            listener: Listener::default(),
            servos: servos.collect(),
        }
    }

    fn sync_read(
        &self,
        address: u8,
        length: u8,
        ids: &[u8],
        body: &Body,
        at: Instant,
    ) -> Vec<Answer> {
        let answers = ids.iter().filter_map(|id| {
            let place = self.servos.iter().position(|servo| servo.id() == *id)?;
            let servo = self.servos.get(place)?;
            let data = servo.read(address, length, body.felt(place, at))?;
            Some(servo.answer(&data))
        });
        answers.collect()
    }

    fn sync_write(&mut self, address: u8, length: u8, blocks: &[u8], body: &mut Body, at: Instant) {
        for block in blocks.chunks_exact(usize::from(length) + 1) {
            let [id, data @ ..] = block else { continue };
            for (place, servo) in self.servos.iter_mut().enumerate() {
                if servo.id() == *id {
                    servo.write(address, data, place, body, at);
                }
            }
        }
    }

    /// A request to one servo, or to all of them when it is broadcast.
    fn each(&mut self, request: &Request, body: &mut Body, at: Instant) -> Vec<Answer> {
        let all = request.id == BROADCAST;
        let mut answers = Vec::new();
        for (place, servo) in self.servos.iter_mut().enumerate() {
            if all || servo.id() == request.id {
                let answer = servo.obey(request, place, body, at);
                // A broadcast is answered to a ping only; the servos then take turns by id.
                answers.extend(answer.filter(|_| !all || request.instruction == 1));
            }
        }
        answers
    }
}

impl Device for Servos {
    fn hear(&mut self, byte: u8, body: &mut Body, at: Instant) -> Vec<Answer> {
        let Some(request) = self.listener.hear(byte) else {
            return Vec::new();
        };
        match (request.instruction, request.parameters.as_slice()) {
            (0x82, [address, length, ids @ ..]) => self.sync_read(*address, *length, ids, body, at),
            (0x83, [address, length, blocks @ ..]) => {
                self.sync_write(*address, *length, blocks, body, at);
                Vec::new()
            }
            _ => self.each(&request, body, at),
        }
    }

    /// These servos have no watchdog.
    fn next_due(&self) -> Option<Instant> {
        None
    }

    fn wake(&mut self, _body: &mut Body, _now: Instant) -> Vec<Answer> {
        Vec::new()
    }

    fn power_cycle(&mut self, id: u8, body: &mut Body, at: Instant) {
        for (place, servo) in self.servos.iter_mut().enumerate() {
            if servo.id() == id {
                servo.restart(place, body, at);
            }
        }
    }

    fn poke(&mut self, id: u8, address: u16, value: u8) {
        for servo in self.servos.iter_mut().filter(|servo| servo.id() == id) {
            if let Some(byte) = servo.memory.get_mut(usize::from(address)) {
                *byte = value;
            }
        }
    }

    fn set_error(&mut self, id: u8, bits: u8, body: &mut Body) {
        for (place, servo) in self.servos.iter_mut().enumerate() {
            if servo.id() == id {
                servo.error = bits;
                servo.drive(place, body);
            }
        }
    }

    fn force_position(&mut self, id: u8, word: Option<u16>) {
        for servo in self.servos.iter_mut().filter(|servo| servo.id() == id) {
            servo.forced_position = word;
        }
    }

    fn kept_writes(&self) -> u64 {
        self.servos.iter().map(|servo| servo.kept_writes).sum()
    }

    fn place(&self, id: u8) -> Option<usize> {
        self.servos.iter().position(|servo| servo.id() == id)
    }
}

impl Servo {
    fn new(id: u8, return_delay: u8) -> Self {
        let mut memory = [0; MEMORY];
        for (address, value) in FACTORY {
            if let Some(byte) = memory.get_mut(address) {
                *byte = value;
            }
        }
        let mut servo = Self {
            memory,
            pending: None,
            error: 0,
            kept_writes: 0,
            forced_position: None,
        };
        servo.set(5, id);
        servo.set(7, return_delay);
        servo
    }

    fn set(&mut self, address: usize, value: u8) {
        if let Some(byte) = self.memory.get_mut(address) {
            *byte = value;
        }
    }

    fn byte(&self, address: usize) -> u8 {
        self.memory.get(address).copied().unwrap_or(0)
    }

    fn word(&self, address: usize) -> u16 {
        u16::from(self.byte(address)) | u16::from(self.byte(address + 1)) << 8
    }

    fn id(&self) -> u8 {
        self.byte(5)
    }

    /// The homing offset: eleven bits and a sign.
    fn offset(&self) -> i32 {
        signed(self.word(31), 0x0800)
    }

    fn obey(
        &mut self,
        request: &Request,
        place: usize,
        body: &mut Body,
        at: Instant,
    ) -> Option<Answer> {
        let acknowledges = self.byte(8) != 0;
        match (request.instruction, request.parameters.as_slice()) {
            (1, []) => return Some(self.answer(&[])),
            (2, [address, length]) => {
                let data = self.read(*address, *length, body.felt(place, at))?;
                return Some(self.answer(&data));
            }
            (3, [address, data @ ..]) => self.write(*address, data, place, body, at),
            (4, [address, data @ ..]) => self.pending = Some((*address, data.to_vec())),
            (5, []) => {
                if let Some((address, data)) = self.pending.take() {
                    self.write(address, &data, place, body, at);
                }
            }
            _ => return None,
        }
        acknowledges.then(|| self.answer(&[]))
    }

    fn answer(&self, data: &[u8]) -> Answer {
        let length = u8::try_from(data.len()).unwrap_or(0) + 2;
        let mut bytes = vec![255, 255, self.id(), length, self.error];
        bytes.extend(data);
        let sum: u32 = bytes.iter().skip(2).map(|byte| u32::from(*byte)).sum();
        bytes.push(u8::try_from(255 - sum % 256).unwrap_or(0));
        Answer {
            id: self.id(),
            with: Vec::new(),
            delay: Duration::from_micros(2 * u64::from(self.byte(7))),
            bytes,
        }
    }

    fn read(&self, address: u8, length: u8, felt: Option<Felt>) -> Option<Vec<u8>> {
        let mut memory = self.memory;
        if let Some(felt) = felt {
            self.feel(&mut memory, &felt);
        }
        let from = usize::from(address);
        memory
            .get(from..from + usize::from(length))
            .map(<[u8]>::to_vec)
    }

    /// The registers that report the present, computed when they are read.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "`as` saturates at what a register can show"
    )]
    fn feel(&self, memory: &mut [u8; MEMORY], felt: &Felt) {
        let mut put = |address: usize, bytes: &[u8]| {
            for (slot, byte) in memory.iter_mut().skip(address).zip(bytes) {
                *slot = *byte;
            }
        };
        let position = self
            .forced_position
            .unwrap_or_else(|| self.reported(felt.ticks));
        put(56, &position.to_le_bytes());
        put(
            58,
            &magnitude(felt.speed_ticks_s.round() as i32, 0x8000).to_le_bytes(),
        );
        put(
            60,
            &magnitude((felt.load_ratio * 1000.0).round() as i32, 0x0400).to_le_bytes(),
        );
        put(62, &[(felt.voltage_v * 10.0).round() as u8]);
        put(63, &[felt.temperature_c.round() as u8]);
        put(65, &[self.error]);
        put(66, &[u8::from(felt.moving)]);
        put(
            69,
            &((felt.current_a / CURRENT_STEP_A).round() as u16).to_le_bytes(),
        );
    }

    #[expect(clippy::cast_possible_truncation, reason = "`as` saturates")]
    fn reported(&self, ticks: f64) -> u16 {
        let counted = ticks.round() as i32 - self.offset();
        let multi_turn = self.byte(18) & 0x10 != 0;
        magnitude(
            if multi_turn {
                counted
            } else {
                counted.rem_euclid(TURN)
            },
            0x8000,
        )
    }

    fn write(&mut self, address: u8, data: &[u8], place: usize, body: &mut Body, at: Instant) {
        let first = usize::from(address);
        for (address, value) in (first..).zip(data) {
            let kept = address < 40;
            self.kept_writes += u64::from(kept);
            let locked = kept && self.byte(55) != 0;
            let read_only = address < 5 || (56..=70).contains(&address);
            if !locked && !read_only {
                self.set(address, *value);
            }
        }
        let touches = |register: usize| (first..first + data.len()).contains(&register);
        if touches(40) && self.byte(40) == 128 {
            self.centre(place, body, at);
        }
        // A goal makes a limp servo stiff.
        if touches(42) && self.byte(40) == 0 {
            self.set(40, 1);
        }
        if touches(40) && self.byte(40) == 0 {
            self.error &= !32;
        }
        self.drive(place, body);
    }

    /// Makes the present position the middle of the turn.
    #[expect(clippy::cast_possible_truncation, reason = "`as` saturates")]
    fn centre(&mut self, place: usize, body: &Body, at: Instant) {
        if let Some(felt) = body.felt(place, at) {
            let offset = felt.ticks.round() as i32 - TURN / 2;
            let [low, high] = magnitude(offset, 0x0800).to_le_bytes();
            self.set(31, low);
            self.set(32, high);
        }
        self.set(40, 0);
    }

    fn restart(&mut self, place: usize, body: &mut Body, at: Instant) {
        for address in 40..MEMORY {
            self.set(address, 0);
        }
        self.set(55, 1);
        let (low, high) = (self.byte(16), self.byte(17));
        self.set(48, low);
        self.set(49, high);
        self.aim_here(place, body, at);
        self.error = 0;
        self.pending = None;
        self.drive(place, body);
    }

    /// A servo wakes up with its goal where it stands.
    fn aim_here(&mut self, place: usize, body: &Body, at: Instant) {
        if let Some(felt) = body.felt(place, at) {
            let [low, high] = self.reported(felt.ticks).to_le_bytes();
            self.set(42, low);
            self.set(43, high);
        }
    }

    /// Passes on to the body what the registers now say.
    fn drive(&self, place: usize, body: &mut Body) {
        let or_unlimited = |value: f64| if value > 0.0 { value } else { f64::INFINITY };
        let overloaded = self.error & 32 != 0;
        let ratio = if overloaded {
            0.0
        } else {
            f64::from(self.word(48)) / 1000.0
        };
        let (least, most) = (i32::from(self.word(9)), i32::from(self.word(11)));
        let goal = signed(self.word(42), 0x8000);
        let goal = if most > least {
            goal.clamp(least, most)
        } else {
            goal
        };
        let drive = Drive {
            torque_on: self.byte(40) == 1,
            goal_ticks: f64::from(goal + self.offset()),
            speed_ticks_s: or_unlimited(f64::from(self.word(46) & 0x7FFF)),
            acceleration_ticks_s2: or_unlimited(f64::from(self.byte(41)) * 100.0),
            torque_ratio: ratio.min(1.0),
        };
        body.drive(place, drive);
    }
}

/// A word whose highest used bit is the sign.
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
