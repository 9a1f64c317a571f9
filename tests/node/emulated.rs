//! A node draws through the example firmware on an emulated Cortex-M3, over two pseudo-terminals
//! between which every byte is kept.
//!
//! Needs Debian's `gcc-arm-none-eabi`, `make` and `qemu-system-arm`:
//! `cargo test --test node emulated:: -- --ignored --test-threads 1`
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "tests against an emulator that runs in real time"
)]

use crate::support;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use firmware_protocol::message::{Cause, Mode, State};
use firmware_protocol::{Decoder, Message, Received};
use nalgebra::Point3;
use rustix::fs::OFlags;
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use steadyhand::plan::{self, SilentObserver};
use steadyhand::scene::{Scene, SceneLibrary};
use steadyhand::units::JointVector;
use support::{Bench, PATIENCE, Running, lines};

/// Attempts at a scene, which is played again where the machine was too busy to play it in real time.
const ATTEMPTS: u32 = 12;

/// Time between two attempts, for the first of them; later ones wait longer.
const PAUSE: Duration = Duration::from_secs(1);

/// Delay of the emulator that ends an attempt.
const GIVEN_UP: Duration = Duration::from_millis(200);

/// Time at rest after which a starved controller will not continue.
const STUCK: Duration = Duration::from_secs(4);

/// An emulator that fell this far behind real time has lost ticks of its clock, which no hardware does.
const STARVED: Duration = Duration::from_millis(15);

/// The furthest that the joints may report to have been from the planned line, and a planned point
/// from the reported line.
const OFF_MM_MAX: f64 = 0.5;

/// A STATE message and the time of its arrival.
#[derive(Clone, Copy)]
struct ReceivedState {
    at: Instant,
    state: State,
}

/// QEMU with the firmware in it, and a port for a node; both end with this value.
struct Board {
    _qemu: Running,
    port: String,
    received: Arc<Mutex<Vec<ReceivedState>>>,
}

fn build() -> PathBuf {
    let example =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("firmware-protocol/c/examples/lm3s6965evb");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lm3s6965evb");
    let status = Command::new("make")
        .arg("-C")
        .arg(&example)
        .arg(format!("OUT={}", out.display()))
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "is gcc-arm-none-eabi installed?");
    out.join("firmware.elf")
}

fn emulate() -> Child {
    // Where it may, the emulator goes ahead of other work; where it may not, `nice` runs it all the same.
    Command::new("nice")
        .args(["-n", "-15", "qemu-system-arm", "-M", "lm3s6965evb"])
        .args(["-nographic", "-monitor", "none", "-serial", "pty"])
        .arg("-kernel")
        .arg(build())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("cannot run qemu-system-arm: {error}"))
}

/// Opens a terminal's slave side, every byte as it is.
fn raw(path: &str) -> File {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let line = rustix::fs::open(path, flags, rustix::fs::Mode::empty()).unwrap();
    let mut settings = tcgetattr(&line).unwrap();
    settings.make_raw();
    tcsetattr(&line, OptionalActions::Now, &settings).unwrap();
    File::from(line)
}

/// A new pseudo-terminal: its master, its slave, which is kept open, and the slave's path.
fn terminal() -> (File, File, String) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let path = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let slave = raw(&path);
    (File::from(master), slave, path)
}

impl Board {
    fn start() -> Self {
        let mut qemu = emulate();
        let stdout = lines(qemu.stdout.take().unwrap());
        let qemu = Running(qemu);
        let path = loop {
            let line = stdout.recv_timeout(PATIENCE).unwrap();
            if let Some(path) = line
                .split_whitespace()
                .find(|word| word.starts_with("/dev/pts/"))
            {
                break path.to_owned();
            }
        };
        let board = raw(&path);
        let (near, slave, port) = terminal();
        let received = Arc::default();
        let kept = Arc::clone(&received);
        let (mut from_node, mut to_board) = (near.try_clone().unwrap(), board.try_clone().unwrap());
        std::thread::spawn(move || {
            // Kept open: a node may die and the line is still there.
            let _slave = slave;
            let mut buffer = [0; 1024];
            while let Ok(count @ 1..) = from_node.read(&mut buffer) {
                if to_board.write_all(&buffer[..count]).is_err() {
                    break;
                }
            }
        });
        std::thread::spawn(move || pass_on(board, near, &kept));
        Self {
            _qemu: qemu,
            port,
            received,
        }
    }

    fn received(&self) -> Vec<ReceivedState> {
        self.received.lock().unwrap().clone()
    }

    fn last(&self) -> Option<State> {
        self.received
            .lock()
            .unwrap()
            .last()
            .map(|received| received.state)
    }

    /// Waits until a STATE is as wanted.
    fn until(&self, what: &str, expected: impl Fn(&State) -> bool) -> State {
        let began = Instant::now();
        let mut went = began;
        while began.elapsed() < PATIENCE {
            if let Some(state) = self.last().filter(|state| expected(state)) {
                return state;
            }
            std::thread::sleep(Duration::from_millis(5));
            // A machine that cannot keep up will not bring it about; it is played again.
            let stands = |state: State| matches!(state.mode, Mode::Held | Mode::Stopped);
            if !(self.was_starved() && self.last().is_some_and(stands)) {
                went = Instant::now();
            }
            if self.delay() > GIVEN_UP || went.elapsed() > STUCK {
                break;
            }
        }
        panic!("never {what}: {:?}", self.last());
    }

    /// Returns how far the emulator fell behind real time: as much as its clock ever lost.
    fn delay(&self) -> Duration {
        let received = self.received();
        let Some(first) = received.first() else {
            return Duration::ZERO;
        };
        let lost = received.iter().map(|next| {
            let device_us = next.state.clock_us.wrapping_sub(first.state.clock_us);
            let device = Duration::from_micros(u64::from(device_us));
            (next.at - first.at).saturating_sub(device)
        });
        let gaps = received.windows(2).map(|pair| pair[1].at - pair[0].at);
        lost.chain(gaps.map(|gap| gap.saturating_sub(Duration::from_millis(20))))
            .max()
            .unwrap_or_default()
    }
}

/// Passes on what the board says, and keeps every STATE of it.
fn pass_on(mut board: File, mut near: File, received: &Mutex<Vec<ReceivedState>>) {
    let mut decoder = Decoder::new();
    let (tell, printed) = channel::<Vec<u8>>();
    // While no node reads, its side fills up; the board's bytes must be read nevertheless.
    std::thread::spawn(move || {
        while printed
            .recv()
            .is_ok_and(|bytes| near.write_all(&bytes).is_ok())
        {}
    });
    let mut buffer = [0; 1024];
    while let Ok(count @ 1..) = board.read(&mut buffer) {
        let at = Instant::now();
        let mut rest = &buffer[..count];
        while !rest.is_empty() {
            if let Received::Frame(frame) = decoder.take(&mut rest)
                && let Ok(Message::State(state)) = Message::decode(&frame)
            {
                received.lock().unwrap().push(ReceivedState { at, state });
            }
        }
        if tell.send(buffer[..count].to_vec()).is_err() {
            break;
        }
    }
}

impl Board {
    /// Returns whether the board says that it, or the node, did not run in time.
    fn was_starved(&self) -> bool {
        let late = [Cause::Deadman, Cause::Underrun, Cause::Late, Cause::Stalled];
        let mut received = self.received().into_iter();
        received.any(|received| late.contains(&received.state.cause))
    }
}

/// Plays a scene on a new board. A failure counts unless the machine was too busy for real time,
/// which is measured; then it is played again.
fn play(scene: impl Fn(&Board)) {
    for attempt in 1..=ATTEMPTS {
        let board = Board::start();
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| scene(&board)));
        let Err(panic) = result else { return };
        let delay = board.delay();
        let starved = delay >= STARVED || board.was_starved();
        if !starved || attempt == ATTEMPTS {
            std::panic::resume_unwind(panic);
        }
        eprintln!("attempt {attempt}: {delay:?} behind real time, once more");
        // What keeps the machine busy may soon be over.
        std::thread::sleep(PAUSE * attempt);
    }
}

/// A node file with one self-built controller on the board's port.
fn node_file(bench: &Bench, board: &Board) -> String {
    let text = format!(
        "name = \"local\"\nstate = \"{}\"\nanswer_within_s = 300\n\n[[arms]]\nname = \"arm\"\nmodel = \"custom\"\nport = \"{}\"\ncalibrated = \"elsewhere\"\n",
        bench.path("state").display(),
        board.port
    );
    let path = bench.path("node.toml");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn default_scene() -> Arc<Scene> {
    let mut library = SceneLibrary::new(None);
    let arm = library.arm("custom").unwrap();
    library.let_stand_in(&arm).unwrap();
    library.scene("default", None).unwrap()
}

fn tip(scene: &Scene, joints: &JointVector) -> Point3<f64> {
    scene.arm.chain.forward(joints) * scene.pens[0].tip_m
}

/// Returns where the pen was by what the firmware measured, millimetre for millimetre of the way.
fn reported(scene: &Scene, received: &[ReceivedState]) -> Vec<Point3<f64>> {
    let angles = |state: &State| -> Vec<f64> {
        let joints = state.joints.iter();
        joints
            .map(|joint| f64::from(joint.measured_urad) / 1e6)
            .collect()
    };
    let moving = received
        .iter()
        .map(|received| JointVector::from_slice(&angles(&received.state)));
    moving.map(|joints| tip(scene, &joints)).collect()
}

/// Returns how far the point of `from` that is furthest from the line `to` is from it, in millimetres.
fn furthest_mm(from: &[Point3<f64>], to: &[Point3<f64>]) -> f64 {
    let nearest = |point: &Point3<f64>| {
        let pieces = to.windows(2).map(|pair| {
            let along = pair[1] - pair[0];
            let square = along.norm_squared().max(1e-18);
            let fraction = ((point - pair[0]).dot(&along) / square).clamp(0.0, 1.0);
            (point - (pair[0] + along * fraction)).norm_squared()
        });
        pieces.fold(f64::INFINITY, f64::min)
    };
    from.iter().map(nearest).fold(0.0, f64::max).sqrt() * 1e3
}

#[test]
#[ignore = "needs gcc-arm-none-eabi and qemu-system-arm, and runs in real time"]
fn the_default_scene_is_drawn_by_an_emulated_microcontroller() {
    play(|board| {
        let bench = Bench::new();
        let file = node_file(&bench, board);
        let node = bench.serve(&["--config", &file, "--enable", "default"]);
        let (code, drawn) = bench.call(&["stroke", "{}", "--node", &node.url]);
        assert_eq!(code, 0, "{drawn:#}");
        assert_eq!(drawn["success"], true, "{drawn:#}");
        let received = board.received();
        let scene = default_scene();
        let plan = plan::draw(&scene, &scene.rest_rad, &SilentObserver).unwrap();
        let samples = plan.trajectory.samples.iter();
        let planned: Vec<_> = samples.map(|joints| tip(&scene, joints)).collect();
        let reported = reported(&scene, &received);
        let off_mm = furthest_mm(&reported, &planned);
        let left_mm = furthest_mm(&planned, &reported);
        let state = received.last().unwrap().state;
        eprintln!(
            "{} readings, at most {off_mm:.3} mm from the plan, which is nowhere more than {left_mm:.3} mm from them; {} corrupt frames",
            received.len(),
            state.corrupt
        );
        assert!(
            off_mm < OFF_MM_MAX && left_mm < OFF_MM_MAX,
            "{off_mm} {left_mm}"
        );
        assert_eq!((state.mode, state.corrupt), (Mode::Idle, 0));
    });
}

#[test]
#[ignore = "needs gcc-arm-none-eabi and qemu-system-arm, and runs in real time"]
fn a_stop_half_way_stands_with_the_pen_up() {
    play(|board| {
        let bench = Bench::new();
        let file = node_file(&bench, board);
        let node = bench.serve(&["--config", &file, "--enable", "default"]);
        let scene = default_scene();
        stop_while_drawing(&bench, board, &node.url, &scene);
        let received = board.received();
        let points = reported(&scene, &received);
        let high_mm = scene.surface.project(points.last().unwrap()).height_mm;
        assert!(high_mm > 5.0, "the pen is {high_mm} mm above the paper");
        assert_eq!(board.last().unwrap().mode, Mode::Idle);
    });
}

/// Returns whether the pen is on the paper.
fn is_down(scene: &Scene, state: &State) -> bool {
    let received = [ReceivedState {
        at: Instant::now(),
        state: *state,
    }];
    let point = reported(scene, &received)[0];
    scene.surface.project(&point).height_mm < 0.2
}

/// Begins to draw, stops when the pen is on the paper, and checks what both calls say.
fn stop_while_drawing(bench: &Bench, board: &Board, url: &str, scene: &Scene) {
    std::thread::scope(|threads| {
        let stroke = threads.spawn(|| bench.call(&["stroke", "{}", "--node", url]));
        board.until("on the paper", |state| is_down(scene, state));
        std::thread::sleep(Duration::from_millis(300));
        let (code, stopped) = bench.call(&["stop", "{}", "--node", url]);
        assert_eq!(code, 0, "{stopped:#}");
        assert_eq!(stopped["success"], true, "{stopped:#}");
        eprintln!("stopped in {} ms", stopped["stopped_after_ms"]);
        let (_, drawn) = stroke.join().unwrap();
        assert_eq!(drawn["success"], false, "{drawn:#}");
    });
}

#[test]
#[ignore = "needs gcc-arm-none-eabi and qemu-system-arm, and runs in real time"]
fn an_operators_emergency_stop_latches_the_controller_where_it_is() {
    play(|board| {
        let bench = Bench::new();
        let file = node_file(&bench, board);
        let node = bench.serve(&["--config", &file, "--enable", "default"]);
        let scene = default_scene();
        let mut call = bench.command(&["call", "stroke", "{}", "--node", &node.url]);
        let call = call.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let _call = Running(call.unwrap());
        board.until("on the paper", |state| is_down(&scene, state));
        std::thread::sleep(Duration::from_millis(300));
        let output = bench.run(&["estop"]);
        assert!(output.status.success(), "{output:?}");
        let state = board.until("latched", |state| {
            state.mode == Mode::Estop && state.flags & State::MOVING == 0
        });
        assert_eq!(state.cause, Cause::Estop);
        assert!(is_down(&scene, &state), "it lifted: {state:?}");
        assert!(state.flags & State::TORQUE != 0, "it let go");
    });
}

#[test]
#[ignore = "needs gcc-arm-none-eabi and qemu-system-arm, and runs in real time"]
fn a_node_that_is_killed_leaves_an_arm_that_has_come_to_rest_and_holds() {
    play(|board| {
        let bench = Bench::new();
        let file = node_file(&bench, board);
        let mut node = bench.serve(&["--config", &file, "--enable", "default"]);
        let url = node.url.clone();
        let mut call = bench.command(&["call", "stroke", "{}", "--node", &url]);
        let call = call.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let _call = Running(call.unwrap());
        board.until("moving", |state| state.mode == Mode::Running);
        std::thread::sleep(Duration::from_millis(700));
        let before = board.last().unwrap();
        assert!(before.flags & State::MOVING != 0, "{before:?}");
        node.child.0.kill().unwrap();
        let killed = Instant::now();
        let state = board.until("at rest", |state| state.flags & State::MOVING == 0);
        let within = killed.elapsed();
        assert!(
            matches!(state.mode, Mode::Held | Mode::Stopped),
            "{state:?}"
        );
        assert!(
            matches!(state.cause, Cause::Deadman | Cause::Underrun),
            "{state:?}"
        );
        assert!(state.flags & State::TORQUE != 0, "it let go");
        // 150 ms of silence at most, 100 ms of path queued, and a tenth of a second to brake.
        eprintln!(
            "at rest {within:?} after the node died: {:?}, {:?}",
            state.mode, state.cause
        );
        assert!(within < Duration::from_millis(600), "{within:?}");
        std::thread::sleep(Duration::from_millis(1500));
        let later = board.last().unwrap();
        let stands = |a: &State| {
            a.joints
                .iter()
                .map(|joint| joint.commanded_urad)
                .collect::<Vec<_>>()
        };
        assert_eq!(stands(&later), stands(&state));
        brakes_within_limits(&board.received());
    });
}

/// No joint's set-point ever changed its speed faster than its limits allow.
fn brakes_within_limits(received: &[ReceivedState]) {
    for three in received.windows(3) {
        let [a, b, c] = [three[0].state, three[1].state, three[2].state];
        let seconds =
            |from: &State, to: &State| f64::from(to.clock_us.wrapping_sub(from.clock_us)) / 1e6;
        let (first_s, second_s) = (seconds(&a, &b), seconds(&b, &c));
        if !(0.004..0.05).contains(&first_s) || !(0.004..0.05).contains(&second_s) {
            continue;
        }
        for joint in 0..a.joints.len() {
            let at = |state: &State| f64::from(state.joints.at(joint).commanded_urad);
            let speeds = ((at(&b) - at(&a)) / first_s, (at(&c) - at(&b)) / second_s);
            let push = (speeds.1 - speeds.0).abs() / ((first_s + second_s) / 2.0);
            // Twice the limit of 40 rad/s² while a hold takes effect, and rounding.
            assert!(push < 85e6, "joint {joint}: {push} µrad/s²");
        }
    }
}
