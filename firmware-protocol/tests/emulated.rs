//! The host against the example firmware on an emulated Cortex-M3, over a pseudo-terminal.
//!
//! Needs Debian's `gcc-arm-none-eabi`, `make` and `qemu-system-arm`:
//! `cargo test -p firmware-protocol --test emulated -- --ignored`
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "tests against an emulator that runs in real time"
)]

use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use firmware_protocol::message::*;
use firmware_protocol::{Event, Host, Joints, Message};

const TIMEOUT: Duration = Duration::from_secs(20);
/// Number of times that a starved machine may hold the arm before the test gives up.
const RESUMES_MAX: u32 = 20;
/// Number of attempts at a scenario, which is repeated if the machine was too busy for real time.
const ATTEMPTS: u32 = 3;
/// Delay behind real time at which the emulator has lost ticks of its clock, which no hardware does.
const STARVED_US: u64 = 30_000;
const PIECE_US: u32 = 20_000;

fn build() -> PathBuf {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("c/examples/lm3s6965evb");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lm3s6965evb");
    let status = Command::new("make")
        .arg("-C")
        .arg(&example)
        .arg(format!("OUT={}", out.display()))
        .status()
        .unwrap();
    assert!(
        status.success(),
        "the firmware does not build; is gcc-arm-none-eabi installed?"
    );
    out.join("firmware.elf")
}

/// QEMU running the firmware; ends when dropped.
struct Board {
    qemu: Child,
    line: File,
    bytes: Receiver<Vec<u8>>,
    host: Host,
    start: Instant,
    state: Option<State>,
    events: Vec<Event>,
    worst_poll_us: u64,
    /// Set to resume, as an operator would, after a machine too busy for its beats held the arm.
    resumes_when_starved: bool,
    resume_count: u32,
    /// Arrival of the first STATE, and the clock in it.
    first: Option<(u64, u32)>,
}

thread_local! {
    /// Time by which the emulator, or this test, fell behind real time in the current scenario.
    static BEHIND_US: Cell<u64> = const { Cell::new(0) };
}

/// Runs a scenario. A failure counts unless the machine was measurably too busy for real time; then the scenario
/// runs again on a new board.
fn run_scenario(scenario: fn()) {
    for attempt in 1..=ATTEMPTS {
        BEHIND_US.set(0);
        let Err(panic) = std::panic::catch_unwind(scenario) else {
            return;
        };
        let behind_us = BEHIND_US.get();
        if behind_us < STARVED_US || attempt == ATTEMPTS {
            std::panic::resume_unwind(panic);
        }
        eprintln!("attempt {attempt}: {behind_us} us behind real time, once more");
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

impl Board {
    fn start() -> Self {
        // Gives the emulator priority where that is permitted; otherwise `nice` runs it without.
        let mut qemu = Command::new("nice")
            .args(["-n", "-5", "qemu-system-arm"])
            .args([
                "-M",
                "lm3s6965evb",
                "-nographic",
                "-monitor",
                "none",
                "-serial",
                "pty",
                "-kernel",
            ])
            .arg(build())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot run qemu-system-arm: {error}"));
        let path = pty_of(&mut qemu);
        assert!(
            Command::new("stty")
                .args(["-F", &path, "raw", "-echo"])
                .status()
                .unwrap()
                .success()
        );
        let line = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&path)
            .unwrap();
        let bytes = listen(line.try_clone().unwrap());
        let host = Host::new(LostHost::Hold, 0);
        let start = Instant::now();
        Self {
            qemu,
            line,
            bytes,
            host,
            start,
            state: None,
            events: Vec::new(),
            worst_poll_us: 0,
            resumes_when_starved: true,
            resume_count: 0,
            first: None,
        }
    }

    fn now_us(&self) -> u64 {
        self.start.elapsed().as_micros() as u64
    }

    /// Runs one iteration of a control loop.
    fn poll(&mut self) {
        let before_us = self.now_us();
        self.host.poll(before_us);
        let mut out = [0; 2048];
        let len = self.host.transmit(&mut out);
        self.line.write_all(&out[..len]).unwrap();
        if let Ok(bytes) = self.bytes.recv_timeout(Duration::from_millis(1)) {
            self.host.receive(&bytes, self.now_us());
        }
        while let Some(event) = self.host.next_event() {
            match event {
                Event::State(state) => self.record_state(state),
                other => self.events.push(other),
            }
        }
        self.worst_poll_us = self.worst_poll_us.max(self.now_us() - before_us);
    }

    fn record_state(&mut self, state: State) {
        let now_us = self.now_us();
        let (first_us, first_clock_us) = *self.first.get_or_insert((now_us, state.clock_us));
        let behind_us = (now_us - first_us)
            .saturating_sub(u64::from(state.clock_us.wrapping_sub(first_clock_us)));
        BEHIND_US.set(BEHIND_US.get().max(behind_us).max(self.worst_poll_us));
        self.state = Some(state);
    }

    fn wait_until(&mut self, event: &str, mut is_done: impl FnMut(&Self) -> bool) {
        let deadline = Instant::now() + TIMEOUT;
        while !is_done(self) {
            let observed = (&self.state, &self.events, self.worst_poll_us);
            assert!(Instant::now() < deadline, "never {event}: {observed:?}");
            self.poll();
            self.resume_if_starved();
        }
    }

    /// Resumes an arm that was held because other programs starved the emulator or this test for 150 ms.
    fn resume_if_starved(&mut self) {
        let is_starved = |state: State| {
            state.mode == Mode::Held && matches!(state.cause, Cause::Deadman | Cause::Stalled)
        };
        if self.resumes_when_starved
            && self.state.is_some_and(is_starved)
            && !self.host.command_pending()
        {
            self.resume_count += 1;
            assert!(
                self.resume_count <= RESUMES_MAX,
                "held too often: {:?}",
                self.state
            );
            self.state = None;
            let now_us = self.now_us();
            self.host.command(Message::Resume, now_us);
        }
    }

    /// Returns the current path time: the device's clock minus the delay by holds.
    fn path_us(&self) -> u32 {
        let clock_us = self.host.clock().device_us(self.now_us()).unwrap() as u32;
        clock_us.wrapping_sub(self.state.map_or(0, |state| state.shift_us))
    }

    fn wait_for_mode(&mut self, mode: Mode) {
        self.state = None;
        self.wait_until(&format!("{mode:?}"), |board| {
            board.state.is_some_and(|state| state.mode == mode)
        });
    }

    fn command(&mut self, message: Message) -> CommandResult {
        let now_us = self.now_us();
        self.host.command(message, now_us);
        self.wait_until("answered", |board| !board.host.command_pending());
        self.state.unwrap().result
    }

    fn here(&self) -> Joints<Knot> {
        let mut knots = Joints::empty();
        for joint in &self.state.unwrap().joints {
            knots.push(Knot {
                position_urad: joint.commanded_urad,
                velocity_urad_s: 0,
            });
        }
        knots
    }

    /// Opens a motion, streams the first `pieces` of the `total` pieces of a swing as far ahead as the device has
    /// room, and returns its end.
    fn swing(&mut self, pieces: u32, total: u32) -> Joints<Knot> {
        let here = self.here();
        let now_us = self.now_us();
        let start_us = (self.host.clock().device_us(now_us).unwrap() + 300_000) as u32;
        self.host.open(start_us, &here, now_us).unwrap();
        let mut end = here;
        for piece in 1..=pieces {
            end = swing_at(&here, f64::from(piece) / f64::from(total), total);
            let begins_us = start_us.wrapping_add((piece - 1) * PIECE_US);
            self.wait_until("room", |board| {
                let is_running = board
                    .state
                    .is_some_and(|state| matches!(state.mode, Mode::Idle | Mode::Running));
                is_running && begins_us.wrapping_sub(board.path_us()).cast_signed() < 400_000
            });
            let now_us = self.now_us();
            self.host
                .push(begins_us, PIECE_US as u16, &end, now_us)
                .unwrap();
        }
        end
    }
}

/// Returns the knots at a fraction of a swing of every joint away and back, each half as far as the previous joint.
fn swing_at(from: &Joints<Knot>, fraction: f64, pieces: u32) -> Joints<Knot> {
    let rate = std::f64::consts::TAU / (f64::from(pieces) * f64::from(PIECE_US) / 1e6);
    let mut knots = *from;
    for (joint, knot) in (0..).zip(knots.as_mut_slice()) {
        let reach = 300_000.0 / 2f64.powi(joint);
        let angle = std::f64::consts::TAU * fraction;
        knot.position_urad += (reach * (1.0 - angle.cos())).round() as i32;
        knot.velocity_urad_s = (reach * rate * angle.sin()).round() as i32;
    }
    knots
}

fn pty_of(qemu: &mut Child) -> String {
    let mut lines = BufReader::new(qemu.stdout.take().unwrap()).lines();
    let line = lines
        .find(|line| line.as_ref().unwrap().contains("/dev/pts/"))
        .unwrap()
        .unwrap();
    line.split_whitespace()
        .find(|word| word.starts_with("/dev/pts/"))
        .unwrap()
        .to_owned()
}

fn listen(mut line: File) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 1024];
        while let Ok(len @ 1..) = line.read(&mut buffer) {
            if sender.send(buffer[..len].to_vec()).is_err() {
                break;
            }
        }
    });
    receiver
}

#[test]
#[ignore = "needs gcc-arm-none-eabi and qemu-system-arm, and runs in real time"]
fn a_host_draws_with_an_emulated_controller() {
    run_scenario(draw);
}

fn draw() {
    let mut board = Board::start();
    board.wait_until("paired", |board| board.host.paired().is_some());
    assert_eq!(&board.host.paired().unwrap().firmware, b"lm3s6965 1.0");
    board.wait_until("on time", |board| {
        board.now_us() > 1_500_000 && board.host.clock().is_known()
    });
    assert_eq!(board.command(Message::Torque(true)), CommandResult::Done);

    let goal = board.swing(100, 100);
    board.wait_for_mode(Mode::Idle);
    assert_eq!(board.here(), goal);
    // The joints follow their set-points with a few milliseconds' delay.
    board.wait_until("arrived", |board| {
        let joints = board.state.map(|state| state.joints).unwrap_or_default();
        let has_arrived = |(joint, goal): (&JointState, &Knot)| {
            joint.measured_urad.abs_diff(goal.position_urad) <= 100
        };
        joints.len() == goal.len() && joints.iter().zip(&goal).all(has_arrived)
    });

    board.swing(40, 100);
    board.resumes_when_starved = false;
    assert_eq!(board.command(Message::Hold), CommandResult::Done);
    board.wait_for_mode(Mode::Held);
    board.resumes_when_starved = true;
    assert_eq!(board.command(Message::Resume), CommandResult::Done);
    board.wait_for_mode(Mode::Stopped);
    assert_eq!(
        board.state.unwrap().cause,
        Cause::Underrun,
        "the swing was left half-way"
    );
    assert_eq!(board.command(Message::Flush), CommandResult::Done);

    board.swing(50, 100);
    let now_us = board.now_us();
    board.host.emergency_stop(now_us);
    board.wait_for_mode(Mode::Estop);
    board.wait_until("at rest", |board| {
        board
            .state
            .is_some_and(|state| state.flags & State::MOVING == 0)
    });
    assert_eq!(board.command(Message::Resume), CommandResult::Latched);
    let nonce = board.state.unwrap().nonce;
    assert_eq!(
        board.command(Message::ClearFault(nonce)),
        CommandResult::Done
    );
    board.wait_for_mode(Mode::Idle);
    let state = board.state.unwrap();
    eprintln!(
        "corrupt {}, round trip {:?} us",
        state.corrupt,
        board.host.clock().round_trip_us()
    );
    assert_eq!(state.corrupt, 0);
}

#[test]
#[ignore = "needs gcc-arm-none-eabi and qemu-system-arm, and runs in real time"]
fn a_host_that_falls_silent_leaves_a_held_arm() {
    run_scenario(fall_silent);
}

fn fall_silent() {
    let mut board = Board::start();
    board.wait_until("paired", |board| board.host.paired().is_some());
    board.wait_until("on time", |board| {
        board.now_us() > 1_000_000 && board.host.clock().is_known()
    });
    assert_eq!(board.command(Message::Torque(true)), CommandResult::Done);
    board.swing(20, 100);
    board.resumes_when_starved = false;
    std::thread::sleep(Duration::from_millis(400));
    board.wait_for_mode(Mode::Held);
    assert_eq!(board.state.unwrap().cause, Cause::Deadman);
}
