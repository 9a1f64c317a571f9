//! Tests host and device over a line that loses, copies, delays and corrupts frames.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "tests"
)]

#[allow(dead_code, reason = "shared by several tests")]
mod rig;

use firmware_protocol::host::Mismatch;
use firmware_protocol::message::*;
use firmware_protocol::{Device, Drives, Event, Host, Joints, Message};
use proptest::prelude::*;

const TICK_US: u64 = 1_000;

/// A line with a delay, and a probability per thousand for each frame to be lost or corrupted.
struct Line {
    pieces: Vec<(u64, Vec<u8>)>,
    harm_permille: u64,
    random: u64,
}

impl Line {
    fn new(harm_permille: u64, random: u64) -> Self {
        Self {
            pieces: Vec::new(),
            harm_permille,
            random,
        }
    }

    fn random_below(&mut self, bound: u64) -> u64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % bound
    }

    fn send(&mut self, bytes: &[u8], now_us: u64) {
        for frame in bytes.split_inclusive(|&byte| byte == 0) {
            let mut frame = frame.to_vec();
            if self.random_below(1_000) < self.harm_permille {
                let at = self.random_below(frame.len() as u64) as usize;
                frame[at] ^= 0x10;
            }
            let jitter_us = self.random_below(3_000);
            self.pieces.push((now_us + 500 + jitter_us, frame));
        }
    }

    /// Takes the bytes that have arrived, in order.
    fn take_arrived(&mut self, now_us: u64) -> Vec<u8> {
        let ready = self
            .pieces
            .iter()
            .take_while(|(at_us, _)| *at_us <= now_us)
            .count();
        self.pieces
            .drain(..ready)
            .flat_map(|(_, bytes)| bytes)
            .collect()
    }
}

struct Session {
    host: Host,
    device: Device,
    drives: Drives,
    down: Line,
    up: Line,
    now_us: u64,
    /// Device clock minus host clock, and the drift between them.
    skew_us: u64,
    drift: f64,
    events: Vec<Event>,
}

impl Session {
    fn new(harm_permille: u64, seed: u64) -> Self {
        let measured = [Knot::default(); rig::JOINTS];
        let now_us = 5_000_000;
        Self {
            host: Host::new(LostHost::Hold, now_us),
            device: Device::new(rig::config(), 77, 0).unwrap(),
            drives: Drives {
                measured: Joints::from_slice(&measured),
                faults: 0,
            },
            down: Line::new(harm_permille, seed),
            up: Line::new(harm_permille, seed ^ 0xFFFF),
            now_us,
            skew_us: 4_294_000_000,
            drift: 80e-6,
            events: Vec::new(),
        }
    }

    fn device_us(&self) -> u64 {
        self.now_us + self.skew_us + (self.now_us as f64 * self.drift) as u64
    }

    fn step(&mut self) {
        self.now_us += TICK_US;
        let device_us = self.device_us() as u32;
        self.host.poll(self.now_us);
        let mut bytes = [0; 8192];
        let len = self.host.transmit(&mut bytes);
        self.down.send(&bytes[..len], self.now_us);
        let arrived = self.down.take_arrived(self.now_us);
        self.device.receive(&arrived, device_us);
        let setpoints = self.device.tick(device_us, &self.drives);
        if setpoints.torque {
            self.drives.measured = Some(setpoints.joints);
        }
        let len = self.device.transmit(&mut bytes);
        self.up.send(&bytes[..len], self.now_us);
        let arrived = self.up.take_arrived(self.now_us);
        self.host.receive(&arrived, self.now_us);
        while let Some(event) = self.host.next_event() {
            self.events.push(event);
        }
    }

    fn run_ms(&mut self, ms: u64) {
        for _ in 0..ms {
            self.step();
        }
    }

    fn arm(&mut self) {
        self.run_ms(2_000);
        self.command(Message::Torque(true));
        assert_eq!(self.device.mode(), Mode::Idle);
    }

    fn command(&mut self, message: Message) {
        self.host.command(message, self.now_us);
        for _ in 0..2_000 {
            self.step();
            if !self.host.command_pending() {
                return;
            }
        }
        panic!("never answered: {message:?}");
    }

    /// Streams a wave with 300 ms in the queue, and returns its end.
    fn draw(&mut self, count: usize) -> Joints<Knot> {
        let here = self.device.setpoints().joints;
        let start_us = (self.host.clock().device_us(self.now_us).unwrap() + 300_000) as u32;
        let knots = rig::wave(&here, count, 20_000);
        self.host.open(start_us, &here, self.now_us).unwrap();
        for (index, knot) in knots.iter().enumerate() {
            let begins_us = start_us.wrapping_add(index as u32 * 20_000);
            while begins_us
                .wrapping_sub(self.device_us() as u32)
                .cast_signed()
                > 300_000
            {
                self.step();
            }
            while self
                .host
                .push(begins_us, 20_000, knot, self.now_us)
                .is_err()
            {
                self.step();
            }
        }
        self.run_ms(800);
        knots[count - 1]
    }
}

#[test]
fn a_host_finds_arms_and_moves_a_device() {
    let mut session = Session::new(0, 1);
    session.arm();
    assert!(matches!(session.events[0], Event::Paired(ack) if ack.limits.len() == rig::JOINTS));
    let goal = session.draw(100);
    assert_eq!(session.device.setpoints().joints, goal);
    assert_eq!(
        (session.device.mode(), session.device.cause()),
        (Mode::Idle, Cause::None)
    );
    assert_eq!(session.host.unacknowledged(), 0);
}

#[test]
fn the_clock_is_estimated_to_half_the_jitter_of_the_line_across_a_wrap() {
    let mut session = Session::new(0, 3);
    session.run_ms(6_000);
    let error_us = session.host.clock().device_us(session.now_us).unwrap() as u32;
    let error_us = error_us
        .wrapping_sub(session.device_us() as u32)
        .cast_signed();
    assert!(error_us.abs() <= 1_500, "{error_us}");
    let drift = session.host.clock().rate() - 1.0;
    assert!((drift - session.drift).abs() <= 450e-6, "{drift}");
}

#[test]
fn an_emergency_stop_overtakes_everything_that_waits() {
    let mut session = Session::new(0, 5);
    session.arm();
    session.host.command(Message::Hold, session.now_us);
    session.host.emergency_stop(session.now_us);
    let mut bytes = [0; 27];
    assert_eq!(session.host.transmit(&mut bytes), 27);
    assert_eq!(bytes[..9], firmware_protocol::frame::ESTOP_BYTES);
    assert_eq!(bytes[18..], firmware_protocol::frame::ESTOP_BYTES);
    assert_eq!(session.host.unacknowledged(), 0);
}

#[test]
fn an_emergency_stop_is_repeated_until_the_device_shows_it() {
    let mut session = Session::new(0, 5);
    session.arm();
    session.down.harm_permille = 1_000;
    session.host.emergency_stop(session.now_us);
    session.run_ms(100);
    assert_eq!(session.device.mode(), Mode::Idle, "none came through");
    session.down.harm_permille = 0;
    session.run_ms(100);
    assert_eq!(session.device.mode(), Mode::Estop);
    session.events.clear();
    session.run_ms(40);
    let Some(Event::State(state)) = session.events.last().copied() else {
        panic!("no state")
    };
    session.command(Message::ClearFault(state.nonce));
    session.run_ms(200);
    assert_eq!(
        session.device.mode(),
        Mode::Idle,
        "an answered stop is not sent again"
    );
}

#[test]
fn a_refusal_within_an_epoch_keeps_the_count_of_its_segments() {
    let mut session = Session::new(0, 6);
    session.arm();
    session.draw(40);
    session.command(Message::Hold);
    let here = session.device.setpoints().joints;
    let start_us = (session.host.clock().device_us(session.now_us).unwrap() + 100_000) as u32;
    session.host.open(start_us, &here, session.now_us).unwrap();
    session.run_ms(50);
    let not_ready = |event: &Event| matches!(event, Event::Refused(ack) if ack.status == SegmentStatus::NotReady);
    assert!(session.events.iter().any(not_ready));
    session.command(Message::Resume);
    let goal = session.draw(40);
    assert_eq!(session.device.setpoints().joints, goal);
}

#[test]
fn a_late_answer_of_an_earlier_epoch_changes_nothing() {
    let mut session = Session::new(0, 6);
    session.arm();
    let paired = *session.host.paired().unwrap();
    for status in [
        SegmentStatus::Accepted,
        SegmentStatus::Stale,
        SegmentStatus::Late,
    ] {
        let before = session.host.ignored();
        let late = SegmentAck {
            epoch: paired.epoch.wrapping_sub(1),
            next_index: 3,
            free: 9,
            status,
            joint: NO_JOINT,
            answers: 2,
            tail_us: 1,
        };
        session.events.clear();
        let bytes = Message::SegmentAck(late).encode(0);
        session.host.receive(bytes.as_slice(), session.now_us);
        assert_eq!(session.host.next_event(), None, "{status:?}");
        assert_eq!(session.host.ignored(), before + 1);
    }
    let goal = session.draw(40);
    assert_eq!(session.device.setpoints().joints, goal);
}

#[test]
fn a_host_that_stops_polling_leaves_a_held_arm() {
    let mut session = Session::new(0, 6);
    session.arm();
    for _ in 0..700 {
        session.now_us += TICK_US;
        let device_us = session.device_us() as u32;
        session.device.tick(device_us, &session.drives);
    }
    assert_eq!(
        (session.device.mode(), session.device.cause()),
        (Mode::Held, Cause::Deadman)
    );
}

#[test]
fn a_reboot_ends_the_session_and_is_reported() {
    let mut session = Session::new(0, 7);
    session.arm();
    session.device = Device::new(rig::config(), 78, 0).unwrap();
    session.events.clear();
    session.run_ms(500);
    assert!(session.events.contains(&Event::Rebooted));
    assert!(
        session
            .events
            .iter()
            .any(|event| matches!(event, Event::Paired(ack) if ack.boot_id == 78))
    );
    assert_eq!(session.device.mode(), Mode::Disarmed);
}

#[test]
fn a_device_with_other_layouts_is_refused() {
    let mut host = Host::new(LostHost::Hold, 0);
    let mut session = Session::new(0, 8);
    session.run_ms(200);
    let ack = *session.host.paired().unwrap();
    for (ack, want) in [
        (HelloAck { schema: 1, ..ack }, Mismatch::Schema(1)),
        (HelloAck { major: 3, ..ack }, Mismatch::Version(3)),
    ] {
        host.receive(Message::HelloAck(ack).encode(0).as_slice(), 10);
        assert_eq!(host.next_event(), Some(Event::Mismatch(want)));
        assert!(host.paired().is_none());
    }
}

#[test]
fn a_dead_line_is_detected() {
    let mut session = Session::new(0, 9);
    session.arm();
    session.down.harm_permille = 1_000;
    session.up.harm_permille = 1_000;
    session.events.clear();
    session.run_ms(700);
    assert_eq!(session.events, [Event::LinkLost]);
}

#[test]
fn a_motion_survives_one_frame_in_fifty_being_corrupt() {
    for seed in 0..20 {
        // A frame travels in two pieces, its first delimiter and the rest; either may be hit.
        let mut session = Session::new(10, seed);
        session.arm();
        let goal = session.draw(100);
        assert_eq!(session.device.cause(), Cause::None, "seed {seed}");
        assert_eq!(session.device.setpoints().joints, goal, "seed {seed}");
    }
}

proptest! {
    #[test]
    fn a_host_takes_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let mut host = Host::new(LostHost::Hold, 0);
        host.receive(&bytes, 5);
        host.poll(10);
        prop_assert!(host.paired().is_none());
    }
}
