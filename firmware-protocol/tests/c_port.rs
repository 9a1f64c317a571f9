//! Compares the C port with the Rust device: the same bytes in, the same set-points and bytes out.
//!
//! Needs a C compiler called `cc`, or named by `CC`; without one these tests fail and say so.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "tests"
)]

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use firmware_protocol::message::*;
use firmware_protocol::{Device, DeviceConfig, Drives, Joints, Message, frame};

const WARNINGS: [&str; 6] = [
    "-std=c99",
    "-O1",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-pedantic",
];
const JOINTS: usize = 3;
const BOOT_ID: u32 = 0xC0FF_EE01;
const SCENARIOS: u64 = 40;
const SCENARIO_STEPS: usize = 300;

/// Compiles a test program. Tests that run at the same time use different names for `binary`.
fn compile(program: &str, binary: &str) -> PathBuf {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("c");
    let binary = Path::new(env!("CARGO_TARGET_TMPDIR")).join(binary);
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let output = Command::new(&compiler)
        .args(WARNINGS)
        .arg("-I")
        .arg(&sources)
        .arg(sources.join("firmware_protocol.c"))
        .arg(sources.join("tests").join(format!("{program}.c")))
        .arg("-o")
        .arg(&binary)
        .output()
        .unwrap_or_else(|error| panic!("cannot run the C compiler {compiler}: {error}"));
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    binary
}

/// Returns the program's output; `None` if it failed.
fn try_run(binary: &Path, input: &str) -> Option<String> {
    let mut child = Command::new(binary)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    // A program that gives up early closes its input; its exit status tells that.
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()).is_ok());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
        .status
        .success()
        .then(|| String::from_utf8(output.stdout).unwrap())
}

fn run(binary: &Path, input: &str) -> String {
    try_run(binary, input).unwrap_or_else(|| panic!("{} failed", binary.display()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

#[test]
fn the_c_port_has_the_same_frozen_bytes() {
    let file: serde_json::Value = serde_json::from_str(include_str!("../vectors.json")).unwrap();
    let vectors = file["vectors"].as_array().unwrap();
    let mut input = String::new();
    for vector in vectors {
        let payload = vector["payload"]
            .as_str()
            .filter(|payload| !payload.is_empty())
            .unwrap_or("-");
        let frame = vector["frame"].as_str().unwrap();
        let (kind, sequence) = (
            vector["kind"].as_u64().unwrap(),
            vector["sequence"].as_u64().unwrap(),
        );
        writeln!(input, "{kind:x} {sequence:x} {payload} {frame}").unwrap();
    }
    assert_eq!(
        run(&compile("vectors", "vectors"), &input),
        format!("{}\n", vectors.len())
    );
}

/// A scenario that both devices play. It is built against the Rust device, whose replies it can use.
struct Scenario {
    device: Device,
    drives: Drives,
    now_us: u32,
    random: u64,
    sequence: u8,
    index: u16,
    tail: Joints<Knot>,
    tail_us: u32,
    epoch: u16,
    script: String,
    expected: String,
    reached: std::collections::BTreeSet<(u8, u8)>,
}

fn config() -> DeviceConfig {
    let limits = |range: i32, velocity: u32, acceleration: u32| JointLimits {
        position_min_urad: -range,
        position_max_urad: range,
        velocity_max_urad_s: velocity,
        acceleration_max_urad_s2: acceleration,
        stop_urad_s2: acceleration * 3,
    };
    let limits = [
        limits(1_000_000, 2_000_000, 9_000_000),
        limits(2_500_000, 4_000_000, 30_000_000),
        limits(300_000, 700_000, 2_000_000),
    ];
    DeviceConfig {
        limits: Joints::from_slice(&limits).unwrap(),
        park_urad: Joints::from_slice(&[-500_000, 2_000_000, 17]).unwrap(),
        tick_us: 1_000,
        state_period_us: 10_000,
        firmware: [0; 12],
        reset_cause: ResetCause::Unknown,
    }
}

/// Returns the first lines of a scenario.
fn opening(config: &DeviceConfig, now_us: u32) -> String {
    let mut script = format!(
        "I {JOINTS} {BOOT_ID} {now_us} {} {}\n",
        config.tick_us, config.state_period_us
    );
    for (limits, park) in config.limits.iter().zip(&config.park_urad) {
        let (min, max) = (limits.position_min_urad, limits.position_max_urad);
        let (velocity, acceleration) =
            (limits.velocity_max_urad_s, limits.acceleration_max_urad_s2);
        writeln!(
            script,
            "{min} {max} {velocity} {acceleration} {} {park}",
            limits.stop_urad_s2
        )
        .unwrap();
    }
    script
}

impl Scenario {
    fn new(seed: u64) -> Self {
        let now_us = u32::MAX - 400_000;
        let config = config();
        let script = opening(&config, now_us);
        Self {
            device: Device::new(config, BOOT_ID, now_us).unwrap(),
            drives: Drives {
                measured: Joints::zeroed(JOINTS),
                faults: 0,
            },
            now_us,
            random: seed,
            sequence: 0,
            index: 0,
            tail: Joints::zeroed(JOINTS).unwrap(),
            tail_us: now_us,
            epoch: 0,
            script,
            expected: String::new(),
            reached: std::collections::BTreeSet::new(),
        }
    }

    fn random_below(&mut self, bound: u64) -> u64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % bound
    }

    fn random_within(&mut self, reach: i32) -> i32 {
        self.random_below(2 * reach as u64 + 1) as i32 - reach
    }

    fn receive(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            writeln!(self.script, "R {} {}", self.now_us, hex(bytes)).unwrap();
            self.device.receive(bytes, self.now_us);
        }
    }

    fn tick(&mut self, elapsed_us: u32) {
        self.now_us = self.now_us.wrapping_add(elapsed_us);
        let measured = self.drives.measured;
        write!(
            self.script,
            "T {} {} {}",
            self.now_us,
            self.drives.faults,
            u8::from(measured.is_some())
        )
        .unwrap();
        for knot in measured.iter().flat_map(Joints::as_slice) {
            write!(
                self.script,
                " {} {}",
                knot.position_urad, knot.velocity_urad_s
            )
            .unwrap();
        }
        self.script.push('\n');
        let setpoints = self.device.tick(self.now_us, &self.drives);
        write!(self.expected, "{}", u8::from(setpoints.torque)).unwrap();
        for knot in &setpoints.joints {
            write!(
                self.expected,
                " {} {}",
                knot.position_urad, knot.velocity_urad_s
            )
            .unwrap();
        }
        let mut bytes = [0; 1024];
        let len = self.device.transmit(&mut bytes);
        writeln!(self.expected, " {}", hex(&bytes[..len])).unwrap();
        if setpoints.torque && measured.is_some() {
            self.drives.measured = Some(setpoints.joints);
        }
        self.reached
            .insert((self.device.mode().byte(), self.device.cause().byte()));
    }

    fn send(&mut self, message: Message) {
        self.sequence = self.sequence.wrapping_add(1);
        self.receive(message.encode(self.sequence).as_slice());
    }

    /// Opens a motion and queues steady pieces that mostly keep the limits.
    fn stream(&mut self, pieces: u64) {
        let epoch = self.device.state().epoch;
        if epoch != self.epoch || self.device.mode() == Mode::Idle {
            (self.index, self.epoch) = (if epoch == self.epoch { self.index } else { 0 }, epoch);
            self.tail = self.device.setpoints().joints;
            self.tail_us = self
                .now_us
                .wrapping_add(30_000 + self.random_below(20_000) as u32);
            self.segment(0);
        }
        for _ in 0..pieces {
            let duration_us = 8_000 + self.random_below(40_000) as u16;
            let rates = [9_000_000, 30_000_000, 2_000_000];
            let mut end = self.tail;
            for (knot, rate) in end.as_mut_slice().iter_mut().zip(rates) {
                let t = f64::from(duration_us) / 1e6;
                let (v, a) = (
                    f64::from(knot.velocity_urad_s),
                    f64::from(self.random_within(rate)) * 0.9,
                );
                // Accelerates towards the centre, so that a long stream stays within the range.
                let a = if (f64::from(knot.position_urad) * a) > 0.0 {
                    -a
                } else {
                    a
                };
                knot.position_urad += (v * t + a * t * t / 2.0) as i32;
                knot.velocity_urad_s += (a * t) as i32;
            }
            self.tail = end;
            self.segment(duration_us);
        }
    }

    fn segment(&mut self, duration_us: u16) {
        let segment = Segment {
            epoch: self.epoch,
            index: self.index,
            start_us: self.tail_us,
            duration_us,
            end: self.tail,
        };
        self.index = self.index.wrapping_add(1);
        self.tail_us = self.tail_us.wrapping_add(u32::from(duration_us));
        let bytes = Message::Segment(segment).encode(segment.index as u8);
        match self.random_below(60) {
            0 => {}
            1 => self.receive(&[bytes.as_slice(), bytes.as_slice()].concat()),
            2 => {
                let mut bytes = bytes.as_slice().to_vec();
                let at = self.random_below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << self.random_below(8);
                self.receive(&bytes);
            }
            _ => self.receive(bytes.as_slice()),
        }
    }

    fn step(&mut self) {
        match self.random_below(100) {
            0..=1 => self.send(Message::Hello(Hello {
                major: if self.random.is_multiple_of(7) { 2 } else { 1 },
                minor: 0,
                lost_host: LostHost::from_byte(self.random as u8 % 3).unwrap(),
            })),
            2..=7 => self.send(Message::Torque(true)),
            8 => self.send(Message::Torque(false)),
            9..=10 => self.send(Message::Hold),
            11..=14 => self.send(Message::Resume),
            15 => self.send(Message::Flush),
            16 => self.send(Message::Park),
            17..=19 => self.send(Message::ClearFault(self.device.state().nonce)),
            20 => self.receive(&frame::ESTOP_BYTES),
            21 => self.drives.faults = self.random_below(20) as u16 & 1,
            22 => self.drives.faults = 0,
            23 => self.send(Message::TimeReq(self.now_us)),
            24..=50 => {
                let pieces = self.random_below(8);
                self.stream(pieces);
            }
            51 => {
                let kind = self.random_below(64) as u8;
                let payload: Vec<u8> = (0..self.random_below(80))
                    .map(|at| (self.random >> (at % 50)) as u8)
                    .collect();
                let bytes = frame::encode(kind, self.sequence, &payload).unwrap();
                self.receive(bytes.as_slice());
            }
            52 => {
                let noise: Vec<u8> = (0..self.random_below(60))
                    .map(|_| self.random_below(256) as u8)
                    .collect();
                self.receive(&noise);
            }
            53 => self.run(300, false),
            54 if self.random_below(6) == 0 => self.run(1_400, false),
            55 => {
                let pause_us = self.random_below(60_000) as u32;
                self.tick(pause_us);
            }
            56 => self.drives.measured = None,
            57..=60 => self.drives.measured = Some(self.device.setpoints().joints),
            61..=62 => self.tail_us = self.tail_us.wrapping_add(self.random_below(2_500) as u32),
            _ => {
                let ticks = self.random_below(60);
                self.run(ticks, true);
            }
        }
    }

    fn run(&mut self, ticks: u64, beats: bool) {
        for tick in 0..ticks {
            if beats && tick % 40 == 0 {
                self.receive(Message::Beat(self.now_us).encode(0).as_slice());
            }
            self.tick(1_000);
        }
    }
}

#[test]
fn the_c_port_answers_every_scenario_like_the_rust_device() {
    let replay = compile("replay", "replay");
    let mut reached = std::collections::BTreeSet::new();
    for seed in 0..SCENARIOS {
        let mut scenario = Scenario::new(seed);
        scenario.send(Message::Hello(Hello {
            major: 1,
            minor: 0,
            lost_host: LostHost::Park,
        }));
        scenario.tick(1_000);
        scenario.send(Message::Torque(true));
        scenario.tick(1_000);
        for _ in 0..SCENARIO_STEPS {
            scenario.step();
        }
        let got = run(&replay, &scenario.script);
        for (number, (got, want)) in got.lines().zip(scenario.expected.lines()).enumerate() {
            assert_eq!(got, want, "seed {seed}, tick {number}");
        }
        assert_eq!(got.lines().count(), scenario.expected.lines().count());
        reached.extend(scenario.reached);
    }
    let modes: std::collections::BTreeSet<u8> = reached.iter().map(|(mode, _)| *mode).collect();
    let causes: std::collections::BTreeSet<u8> = reached.iter().map(|(_, cause)| *cause).collect();
    assert_eq!(modes.len(), 10, "the scenarios reach every mode: {modes:?}");
    assert_eq!(
        causes.len(),
        12,
        "the scenarios reach every cause: {causes:?}"
    );
}

#[test]
fn both_refuse_the_same_configurations() {
    type Change = fn(&mut DeviceConfig);
    let changes: [(Change, bool); 15] = [
        (|_| {}, true),
        (|config| config.limits = Joints::empty(), false),
        (|config| config.tick_us = 199, false),
        (|config| config.tick_us = 2_000, true),
        (|config| config.tick_us = 2_001, false),
        (|config| config.state_period_us = 4_999, false),
        (
            |config| config.limits.as_mut_slice()[1].position_min_urad = 2_500_001,
            false,
        ),
        (
            |config| config.limits.as_mut_slice()[1].position_max_urad = (1 << 27) + 1,
            false,
        ),
        (
            |config| config.limits.as_mut_slice()[0].velocity_max_urad_s = 0,
            false,
        ),
        (
            |config| config.limits.as_mut_slice()[0].velocity_max_urad_s = 50_000_001,
            false,
        ),
        (
            |config| config.limits.as_mut_slice()[0].velocity_max_urad_s = 36_000_000,
            false,
        ),
        (
            |config| config.limits.as_mut_slice()[2].acceleration_max_urad_s2 = 9_999,
            false,
        ),
        (
            |config| config.limits.as_mut_slice()[2].stop_urad_s2 = 4_000_000,
            true,
        ),
        (
            |config| config.limits.as_mut_slice()[2].stop_urad_s2 = 3_999_999,
            false,
        ),
        (|config| config.park_urad.as_mut_slice()[2] = 300_001, false),
    ];
    let replay = compile("replay", "replay_config");
    for (number, (change, is_valid)) in changes.into_iter().enumerate() {
        let mut config = config();
        change(&mut config);
        assert_eq!(
            Device::new(config, 1, 0).is_ok(),
            is_valid,
            "change {number} in Rust"
        );
        let opening = opening(&config, 0).replacen(
            &format!("I {JOINTS}"),
            &format!("I {}", config.limits.len()),
            1,
        );
        assert_eq!(
            try_run(&replay, &opening).is_some(),
            is_valid,
            "change {number} in C"
        );
    }
}
