//! A test bench for a device: a clock, a host's messages, and a check of every set-point.

use firmware_protocol::device::STALL_US;
use firmware_protocol::message::*;
use firmware_protocol::{
    Decoder, Device, DeviceConfig, Drives, Joints, Message, Received, Setpoints,
};
use proptest::prelude::*;

pub(crate) const JOINTS: usize = 4;
pub(crate) const TICK_US: u16 = 1_000;
pub(crate) const VELOCITY: i32 = 2_000_000;
pub(crate) const ACCELERATION: u32 = 8_000_000;
pub(crate) const STOP: u32 = 20_000_000;
const RANGE_URAD: i32 = 1_500_000;
const BOOT_ID: u32 = 0x5EED_0001;

pub(crate) fn config() -> DeviceConfig {
    let limits = JointLimits {
        position_min_urad: -RANGE_URAD,
        position_max_urad: RANGE_URAD,
        velocity_max_urad_s: VELOCITY as u32,
        acceleration_max_urad_s2: ACCELERATION,
        stop_urad_s2: STOP,
    };
    DeviceConfig {
        limits: Joints::from_slice(&[limits; JOINTS]).unwrap(),
        park_urad: Joints::from_slice(&[-1_000_000, 700_000, 0, 10]).unwrap(),
        tick_us: TICK_US,
        state_period_us: 20_000,
        firmware: *b"bench 1\0\0\0\0\0",
        reset_cause: ResetCause::PowerOn,
    }
}

/// Returns the knots of a smooth motion away and back for every joint, each with its own amplitude. It begins
/// at rest and, if `count` is even, ends at rest.
pub(crate) fn wave(from: &Joints<Knot>, count: usize, duration_us: u32) -> Vec<Joints<Knot>> {
    let period_s = count as f64 * f64::from(duration_us) / 1e6;
    let rate = std::f64::consts::TAU / period_s;
    let reach = |joint: usize| {
        let by_acceleration = 0.9 * f64::from(ACCELERATION) / (rate * rate);
        let by_speed = 0.9 * f64::from(VELOCITY) / rate;
        by_acceleration.min(by_speed).min(600_000.0) / (joint as f64 + 1.0)
    };
    (1..=count)
        .map(|index| {
            let at_s = index as f64 * f64::from(duration_us) / 1e6;
            let mut knots = *from;
            for (joint, knot) in knots.as_mut_slice().iter_mut().enumerate() {
                knot.position_urad += (reach(joint) * (1.0 - (rate * at_s).cos())).round() as i32;
                knot.velocity_urad_s = (reach(joint) * rate * (rate * at_s).sin()).round() as i32;
            }
            knots
        })
        .collect()
}

pub(crate) struct Rig {
    pub(crate) device: Device,
    pub(crate) drives: Drives,
    pub(crate) now_us: u32,
    pub(crate) beats: bool,
    pub(crate) sequence: u8,
    pub(crate) epoch: u16,
    pub(crate) index: u16,
    pub(crate) worst_acceleration: f64,
    pub(crate) violation: Option<String>,
    pub(crate) model: Vec<(u32, Joints<Knot>, Joints<Knot>)>,
    pub(crate) model_error_urad: f64,
    sent: Vec<Message>,
    decoder: Decoder,
    recent: Vec<(Setpoints, u32)>,
    tail: Joints<Knot>,
    random: u64,
    delayed: Vec<Vec<u8>>,
    disturbed: bool,
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::at(7_000_000)
    }

    pub(crate) fn at(now_us: u32) -> Self {
        let measured = [100_000, -200_000, 0, 50_000].map(|position_urad| Knot {
            position_urad,
            velocity_urad_s: 0,
        });
        let mut rig = Self {
            device: Device::new(config(), BOOT_ID, now_us).unwrap(),
            drives: Drives {
                measured: Joints::from_slice(&measured),
                faults: 0,
            },
            now_us,
            beats: true,
            sequence: 0,
            epoch: 0,
            index: 0,
            worst_acceleration: 0.0,
            violation: None,
            model: Vec::new(),
            model_error_urad: 0.0,
            sent: Vec::new(),
            decoder: Decoder::new(),
            recent: Vec::new(),
            tail: Joints::empty(),
            random: 0,
            delayed: Vec::new(),
            disturbed: false,
        };
        rig.tick();
        rig
    }

    pub(crate) fn armed() -> Self {
        Self::armed_at(7_000_000)
    }

    pub(crate) fn armed_at(now_us: u32) -> Self {
        let mut rig = Self::at(now_us);
        rig.hello();
        assert_eq!(rig.command(Message::Torque(true)), CommandResult::Done);
        rig.recent.clear();
        rig
    }

    pub(crate) fn hello(&mut self) {
        self.send(Message::Hello(Hello {
            major: 1,
            minor: 0,
            lost_host: LostHost::Hold,
        }));
    }

    /// Passes bytes directly to the device.
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        self.device.receive(bytes, self.now_us);
        self.collect_sent();
    }

    /// Returns the messages that the device has sent since the last call.
    pub(crate) fn take_sent(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.sent)
    }

    fn collect_sent(&mut self) {
        let mut bytes = [0; 4096];
        let len = self.device.transmit(&mut bytes);
        for &byte in &bytes[..len] {
            if let Received::Frame(frame) = self.decoder.push(byte) {
                self.sent.push(Message::decode(&frame).unwrap());
            }
        }
        let state = self.device.state();
        if state.epoch != self.epoch {
            self.epoch = state.epoch;
            self.index = 0;
        }
    }

    pub(crate) fn send_as(&mut self, message: Message, sequence: u8) -> Vec<Message> {
        self.sent.clear();
        self.send_over_line(message.encode(sequence).as_slice());
        self.sent.clone()
    }

    pub(crate) fn send(&mut self, message: Message) -> Vec<Message> {
        self.sequence = self.sequence.wrapping_add(1);
        self.send_as(message, self.sequence)
    }

    /// Sends a command and returns its result from the device's state.
    pub(crate) fn command(&mut self, message: Message) -> CommandResult {
        self.send(message);
        self.tick();
        let state = self.device.state();
        assert!(self.disturbed || state.command == self.sequence);
        state.result
    }

    pub(crate) fn last_ack(&self) -> SegmentAck {
        let ack = |message: &Message| match message {
            Message::SegmentAck(ack) => Some(*ack),
            _ => None,
        };
        self.sent.iter().rev().find_map(ack).unwrap()
    }

    pub(crate) fn segment(&mut self, start_us: u32, duration_us: u16, end: &Joints<Knot>) {
        let segment = Segment {
            epoch: self.epoch,
            index: self.index,
            start_us,
            duration_us,
            end: *end,
        };
        self.index = self.index.wrapping_add(1);
        self.tail = *end;
        self.send_as(Message::Segment(segment), segment.index as u8);
    }

    pub(crate) fn open(&mut self, start_us: u32) {
        let here = self.here();
        self.segment(start_us, 0, &here);
    }

    /// Queues `count` segments of a wave of at least 40, and returns their end.
    pub(crate) fn start_wave(&mut self, count: usize) -> Joints<Knot> {
        let start_us = self.now_us.wrapping_add(40_000);
        self.open(start_us);
        let knots = wave(&self.here(), count.max(40), 20_000);
        for (index, knot) in knots.iter().take(count).enumerate() {
            self.segment(start_us.wrapping_add(index as u32 * 20_000), 20_000, knot);
        }
        knots[count - 1]
    }

    pub(crate) fn tail(&self) -> Joints<Knot> {
        self.tail
    }

    pub(crate) fn tail_us(&self) -> u32 {
        self.last_ack().tail_us
    }

    pub(crate) fn here(&self) -> Joints<Knot> {
        self.device.setpoints().joints
    }

    pub(crate) fn speeds(&self) -> Vec<i32> {
        self.here()
            .iter()
            .map(|knot| knot.velocity_urad_s)
            .collect()
    }

    pub(crate) fn run_ms(&mut self, ms: u32) {
        self.run_us(ms * 1_000);
    }

    pub(crate) fn run_us(&mut self, us: u32) {
        for _ in 0..us / u32::from(TICK_US) {
            self.tick();
        }
    }

    pub(crate) fn tick(&mut self) -> Setpoints {
        self.now_us = self.now_us.wrapping_add(u32::from(TICK_US));
        self.tick_in_place()
    }

    pub(crate) fn tick_in_place(&mut self) -> Setpoints {
        if self.beats && (self.now_us / u32::from(TICK_US)).is_multiple_of(50) {
            self.send_over_line(Message::Beat(self.now_us).encode(0).as_slice());
        }
        let setpoints = self.device.tick(self.now_us, &self.drives);
        if setpoints.torque {
            self.drives.measured = Some(setpoints.joints);
        }
        self.collect_sent();
        self.check(setpoints);
        setpoints
    }

    fn check(&mut self, setpoints: Setpoints) {
        if !setpoints.torque {
            self.recent.clear();
            return;
        }
        self.compare_with_model(&setpoints.joints);
        self.recent.push((setpoints, self.now_us));
        let [.., (a, _), (b, _), (c, _)] = &self.recent[..] else {
            return;
        };
        for joint in 0..JOINTS {
            let [a, b, c] = [a, b, c].map(|at| f64::from(at.joints.at(joint).position_urad));
            let tick_s = f64::from(TICK_US) / 1e6;
            let (speed, change) = ((c - b).abs(), (c - 2.0 * b + a).abs());
            self.worst_acceleration = self.worst_acceleration.max(change / tick_s / tick_s);
            // Rounding to whole microradians costs up to half a unit at each of the points.
            let is_within = c.abs() <= f64::from(RANGE_URAD)
                && speed <= f64::from(VELOCITY) * tick_s + 2.0
                && change <= f64::from(STOP) * tick_s * tick_s + 4.0;
            if !is_within && self.violation.is_none() {
                let mode = self.device.mode();
                self.violation = Some(format!("{mode:?} joint {joint}: {a} {b} {c}"));
            }
        }
        if self.recent.len() > 8 {
            self.recent.remove(0);
        }
    }

    /// Compares the set-points with the same cubic in floating point, in another basis.
    fn compare_with_model(&mut self, joints: &Joints<Knot>) {
        let is_current = |start_us: u32| self.now_us >= start_us && self.now_us < start_us + 20_000;
        let Some((start_us, from, to)) = self
            .model
            .iter()
            .find(|(start_us, ..)| is_current(*start_us))
        else {
            return;
        };
        let (t, length_s) = (f64::from(self.now_us - start_us) / 20_000.0, 0.02);
        for ((from, to), actual) in from.iter().zip(to).zip(joints) {
            let [p, q] = [from, to].map(|knot| f64::from(knot.position_urad));
            let [v, w] = [from, to].map(|knot| f64::from(knot.velocity_urad_s) * length_s);
            let (h, k) = (t * t * (3.0 - 2.0 * t), t * (1.0 - t));
            let want = p + (q - p) * h + k * (v * (1.0 - t) - w * t);
            self.model_error_urad = self
                .model_error_urad
                .max((want - f64::from(actual.position_urad)).abs());
        }
    }

    /// Makes the line lose, copy, swap and corrupt frames from now on.
    pub(crate) fn disturb(&mut self, seed: u64) {
        self.disturbed = true;
        self.random = seed;
    }

    fn random_below(&mut self, bound: u64) -> u64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % bound
    }

    /// Sends a frame over the line, which may be disturbed.
    fn send_over_line(&mut self, frame: &[u8]) {
        if !self.disturbed {
            return self.send_bytes(frame);
        }
        let mut bytes = frame.to_vec();
        match self.random_below(20) {
            0 => return,
            1 => self.send_bytes(frame),
            2 => return self.delayed.push(bytes),
            3 => {
                let bit = self.random_below(bytes.len() as u64 * 8) as usize;
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            _ => {}
        }
        self.send_bytes(&bytes);
        if let Some(old) = self.delayed.pop().filter(|_| !self.delayed.is_empty()) {
            self.send_bytes(&old);
        }
    }

    pub(crate) fn play(&mut self, step: &Move) {
        match step {
            Move::Wave(count) => {
                self.start_wave(*count);
            }
            Move::BadSegment {
                joint,
                position_urad,
                velocity_urad_s,
                duration_us,
            } => {
                let mut end = if self.tail.is_empty() {
                    self.here()
                } else {
                    self.tail
                };
                let knot = &mut end.as_mut_slice()[*joint];
                knot.position_urad = knot.position_urad.saturating_add(*position_urad);
                knot.velocity_urad_s = *velocity_urad_s;
                let state = self.device.state();
                let start_us = self.sent.iter().rev().find_map(|message| match message {
                    Message::SegmentAck(ack) => Some(ack.tail_us),
                    _ => None,
                });
                self.segment(start_us.unwrap_or(state.clock_us), *duration_us, &end);
            }
            Move::Command(message) => {
                let message = match message {
                    Message::ClearFault(0) => Message::ClearFault(self.device.state().nonce),
                    other => *other,
                };
                self.send(message);
            }
            Move::Estop => self.send_bytes(&firmware_protocol::frame::ESTOP_BYTES),
            Move::Run(ms) => self.run_ms(*ms),
            Move::Silence(ms) => {
                self.beats = false;
                self.run_ms(*ms);
                self.beats = true;
            }
            Move::Jitter(us) => {
                // The check assumes even ticks, so its record restarts after a pause.
                self.now_us = self.now_us.wrapping_add(*us % (2 * STALL_US));
                self.device.tick(self.now_us, &self.drives);
                self.recent.clear();
            }
            Move::Noise(bytes) => self.send_bytes(bytes),
        }
    }
}

/// One step of a random scenario.
#[derive(Debug, Clone)]
pub(crate) enum Move {
    Wave(usize),
    BadSegment {
        joint: usize,
        position_urad: i32,
        velocity_urad_s: i32,
        duration_us: u16,
    },
    Command(Message),
    Estop,
    Run(u32),
    Silence(u32),
    Jitter(u32),
    Noise(Vec<u8>),
}

pub(crate) fn any_move() -> impl Strategy<Value = Move> {
    let command = prop::sample::select(vec![
        Message::Hold,
        Message::Resume,
        Message::Resume,
        Message::Flush,
        Message::Park,
        Message::ClearFault(0),
        Message::Torque(true),
        Message::Torque(true),
        Message::Torque(false),
        Message::Hello(Hello {
            major: 1,
            minor: 0,
            lost_host: LostHost::Park,
        }),
    ]);
    let bad_segment = (
        0..JOINTS,
        prop_oneof![-60_000..60_000, any::<i32>()],
        prop_oneof![-VELOCITY..VELOCITY, any::<i32>()],
    );
    prop_oneof![
        4 => prop_oneof![Just(10usize), Just(40), Just(64)].prop_map(Move::Wave),
        3 => (bad_segment, prop_oneof![Just(20_000), Just(50_000), any::<u16>()]).prop_map(
            |((joint, position_urad, velocity_urad_s), duration_us)| Move::BadSegment { joint, position_urad, velocity_urad_s, duration_us }
        ),
        6 => command.prop_map(Move::Command),
        1 => Just(Move::Estop),
        6 => (1u32..400).prop_map(Move::Run),
        1 => (100u32..1_500).prop_map(Move::Silence),
        1 => any::<u32>().prop_map(Move::Jitter),
        1 => prop::collection::vec(any::<u8>(), 0..80).prop_map(Move::Noise),
    ]
}
