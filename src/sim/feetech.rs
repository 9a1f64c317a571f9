//! The device side of STS3215 servos: their memory, and what they answer.
//!
//! Written from the manual, apart from the driver, so that the two judge each other.

use crate::body::{Body, Drive, Felt};
use crate::device::Answer;
use crate::servos::{self, BROADCAST, Model, delay};
use base::units::Instant;

const MEMORY: usize = 128;
type Memory = servos::Memory<MEMORY>;

/// What lies below outlives the power.
const KEPT: usize = 40;

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

/// One servo. It has no watchdog.
#[derive(Debug)]
pub(crate) struct Servo {
    memory: Memory,
    pending: Option<(u8, Vec<u8>)>,
    error: u8,
    kept_writes: u64,
    forced_position: Option<u16>,
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

fn sync_read(
    servos: &[Servo],
    (address, length): (u8, u8),
    ids: &[u8],
    body: &Body,
    at: Instant,
) -> Vec<Answer> {
    let answers = ids.iter().filter_map(|id| {
        let place = servos.iter().position(|servo| servo.id() == *id)?;
        let servo = servos.get(place)?;
        let data = servo.read(address, length, body.felt(place, at))?;
        Some(servo.answer(&data))
    });
    answers.collect()
}

fn sync_write(
    servos: &mut [Servo],
    (address, length): (u8, u8),
    blocks: &[u8],
    body: &mut Body,
    at: Instant,
) {
    for block in blocks.chunks_exact(usize::from(length) + 1) {
        let [id, data @ ..] = block else { continue };
        for (place, servo) in servos.iter_mut().enumerate() {
            if servo.id() == *id {
                servo.write(address, data, place, body, at);
            }
        }
    }
}

/// A request to one servo, or to all of them when it is broadcast.
fn each(servos: &mut [Servo], request: &Request, body: &mut Body, at: Instant) -> Vec<Answer> {
    let all = request.id == BROADCAST;
    let mut answers = Vec::new();
    for (place, servo) in servos.iter_mut().enumerate() {
        if all || servo.id() == request.id {
            let answer = servo.obey(request, place, body, at);
            // A broadcast is answered to a ping only; the servos then take turns by id.
            answers.extend(answer.filter(|_| !all || request.instruction == 1));
        }
    }
    answers
}

impl Model for Servo {
    type Request = Request;
    type Listener = Listener;

    fn new(id: u8, return_delay_steps: u8) -> Self {
        Self {
            memory: Memory::of(&FACTORY, [5, 7], id, return_delay_steps),
            pending: None,
            error: 0,
            kept_writes: 0,
            forced_position: None,
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
        match (request.instruction, request.parameters.as_slice()) {
            (0x82, [address, length, ids @ ..]) => {
                sync_read(servos, (*address, *length), ids, body, at)
            }
            (0x83, [address, length, blocks @ ..]) => {
                sync_write(servos, (*address, *length), blocks, body, at);
                Vec::new()
            }
            _ => each(servos, request, body, at),
        }
    }

    fn id(&self) -> u8 {
        self.memory.byte(5)
    }

    /// A servo wakes up with its goal where it stands.
    fn aim_here(&mut self, place: usize, body: &Body, at: Instant) {
        if let Some(felt) = body.felt(place, at) {
            let goal = self.reported(felt.ticks);
            self.memory.set(42, &goal.to_le_bytes());
        }
    }

    fn restart(&mut self, place: usize, body: &mut Body, at: Instant) {
        self.memory.forget(KEPT);
        self.memory.set(55, &[1]);
        let torque_max = self.memory.word(16);
        self.memory.set(48, &torque_max.to_le_bytes());
        self.aim_here(place, body, at);
        self.error = 0;
        self.pending = None;
        self.drive(place, body);
    }

    fn set_error(&mut self, bits: u8, place: usize, body: &mut Body) {
        self.error = bits;
        self.drive(place, body);
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
}

impl Servo {
    /// The homing offset: eleven bits and a sign.
    fn offset(&self) -> i32 {
        signed(self.memory.word(31), 0x0800)
    }

    fn obey(
        &mut self,
        request: &Request,
        place: usize,
        body: &mut Body,
        at: Instant,
    ) -> Option<Answer> {
        let acknowledges = self.memory.byte(8) != 0;
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
            delay: delay(self.memory.byte(7)),
            bytes,
        }
    }

    fn read(&self, address: u8, length: u8, felt: Option<Felt>) -> Option<Vec<u8>> {
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
        let mut put = |address: usize, bytes: &[u8]| memory.set(address, bytes);
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
        let multi_turn = self.memory.byte(18) & 0x10 != 0;
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
            let kept = address < KEPT;
            self.kept_writes += u64::from(kept);
            let locked = kept && self.memory.byte(55) != 0;
            let read_only = address < 5 || (56..=70).contains(&address);
            if !locked && !read_only {
                self.memory.set(address, &[*value]);
            }
        }
        let touches = |register: usize| (first..first + data.len()).contains(&register);
        if touches(40) && self.memory.byte(40) == 128 {
            self.centre(place, body, at);
        }
        // A goal makes a limp servo stiff.
        if touches(42) && self.memory.byte(40) == 0 {
            self.memory.set(40, &[1]);
        }
        if touches(40) && self.memory.byte(40) == 0 {
            self.error &= !32;
        }
        self.drive(place, body);
    }

    /// Makes the present position the middle of the turn.
    #[expect(clippy::cast_possible_truncation, reason = "`as` saturates")]
    fn centre(&mut self, place: usize, body: &Body, at: Instant) {
        if let Some(felt) = body.felt(place, at) {
            let offset = felt.ticks.round() as i32 - TURN / 2;
            self.memory
                .set(31, &magnitude(offset, 0x0800).to_le_bytes());
        }
        self.memory.set(40, &[0]);
    }

    /// Passes on to the body what the registers now say.
    fn drive(&self, place: usize, body: &mut Body) {
        let or_unlimited = |value: f64| if value > 0.0 { value } else { f64::INFINITY };
        let overloaded = self.error & 32 != 0;
        let ratio = if overloaded {
            0.0
        } else {
            f64::from(self.memory.word(48)) / 1000.0
        };
        let (least, most) = (
            i32::from(self.memory.word(9)),
            i32::from(self.memory.word(11)),
        );
        let goal = signed(self.memory.word(42), 0x8000);
        let goal = if most > least {
            goal.clamp(least, most)
        } else {
            goal
        };
        let drive = Drive {
            torque_on: self.memory.byte(40) == 1,
            goal_ticks: f64::from(goal + self.offset()),
            speed_ticks_s: or_unlimited(f64::from(self.memory.word(46) & 0x7FFF)),
            acceleration_ticks_s2: or_unlimited(f64::from(self.memory.byte(41)) * 100.0),
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
