//! The arm at the far end of the port, in the test's own process: it outlives every node, hears and
//! judges every byte, and can be broken.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, SystemTime};

use steadyhand::arm::ArmModel;
use steadyhand::clock::NodeClock;
use steadyhand::link::memory::FarEnd;
use steadyhand::link::pty;
use steadyhand::scene::{SceneLibrary, Surface};
use steadyhand::sim::{ArmSimulator, PaperSurface, SimPen, SimulatedFault};
use steadyhand::units::ClockInstant;

use super::support::ink::Line;

/// A port that was unplugged is back after this.
const UNPLUGGED: Duration = Duration::from_millis(250);

/// Goals may be this many counts beyond a limit: they lead by the dead band.
const LEAD_TICKS: f64 = 4.0;

/// An arm that is energised is sent to where it is, as near as a damaged or late reading says.
const HERE_TICKS: f64 = 14.0;

/// Greatest lead of a goal over its joint, in time at full speed: the leash and the greatest age of a
/// reading.
const LEASH_S: f64 = 0.150 + 0.050;

/// The arm; dropping it ends its thread.
pub(super) struct FarArm {
    pub(super) sim: ArmSimulator,
    pub(super) link: PathBuf,
    received: Arc<Mutex<ReceivedGoals>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// The record of what came over the wire.
#[derive(Default)]
pub(super) struct ReceivedGoals {
    /// Times at which goals changed, by the machine's calendar: the files' own clock.
    pub(super) moves: Vec<SystemTime>,
    /// Goals that must never have been sent.
    pub(super) wrong: Vec<String>,
    pub(super) frames: usize,
    last: Vec<(u8, i32)>,
}

struct Ear {
    sim: ArmSimulator,
    arm: Arc<ArmModel>,
    received: Arc<Mutex<ReceivedGoals>>,
    over: Arc<AtomicBool>,
    pending: Vec<u8>,
}

impl FarEnd for Ear {
    fn hear(&mut self, at: ClockInstant, bytes: &[u8]) {
        self.pending.extend(bytes);
        while let Some((goals, used)) = next_goals(&self.pending) {
            self.pending.drain(..used);
            let truth: Vec<f64> = self.sim.true_joints().iter().copied().collect();
            self.received.lock().unwrap().take(&self.arm, goals, &truth);
        }
        let keep = self.pending.len().saturating_sub(260);
        self.pending.drain(..keep);
        self.sim.hear(at, bytes);
    }

    fn next_due(&self) -> Option<ClockInstant> {
        self.sim.next_due()
    }

    fn speak(&mut self, now: ClockInstant, into: &mut Vec<u8>) {
        self.sim.speak(now, into);
    }

    fn tune(&mut self, baud: u32) {
        self.sim.tune(baud);
    }

    fn is_plugged(&self) -> bool {
        self.sim.is_plugged() && !self.over.load(Ordering::SeqCst)
    }
}

/// The first whole frame of goals, by servo, and how many bytes it ends after. Synchronous writes
/// that begin at the acceleration or at the goal.
fn next_goals(bytes: &[u8]) -> Option<(Vec<(u8, i32)>, usize)> {
    (0..bytes.len().saturating_sub(8)).find_map(|at| {
        let frame = &bytes[at..];
        let length = usize::from(frame[3]);
        let is_goal_frame = frame.starts_with(&[0xFF, 0xFF, 0xFE]) && frame[4] == 0x83;
        if !is_goal_frame || frame.len() < length + 4 {
            return None;
        }
        let (first, each) = (frame[5], usize::from(frame[6]));
        let goal_at = 42_usize.checked_sub(usize::from(first))?;
        let goals = frame[7..length + 3].chunks_exact(each + 1).map(|data| {
            let word = i32::from(data[1 + goal_at]) | i32::from(data[2 + goal_at]) << 8;
            let sign = if word & 0x8000 == 0 { 1 } else { -1 };
            (data[0], sign * (word & 0x7FFF))
        });
        (goal_at + 2 <= each).then(|| (goals.collect(), at + length + 4))
    })
}

impl ReceivedGoals {
    fn take(&mut self, arm: &ArmModel, goals: Vec<(u8, i32)>, truth_rad: &[f64]) {
        self.frames += 1;
        for (joint, servo) in arm.servos() {
            let goal = |goals: &[(u8, i32)]| {
                let found = goals.iter().find(|(id, _)| *id == servo.id);
                found.map(|(_, ticks)| f64::from(*ticks))
            };
            let Some(to) = goal(&goals) else { continue };
            let ends = [arm.limits.lower_rad[joint], arm.limits.upper_rad[joint]];
            let [a, b] = ends.map(|end| f64::from(servo.ticks(end)));
            let here = f64::from(servo.ticks(truth_rad[joint]));
            let per_rad = f64::from(servo.ticks_per_turn) / std::f64::consts::TAU;
            let fastest = arm.limits.velocity_rad_s[joint] * per_rad;
            let id = servo.id;
            if !(a.min(b) - LEAD_TICKS..=a.max(b) + LEAD_TICKS).contains(&to) {
                self.wrong
                    .push(format!("servo {id} was sent to {to}, beyond {a} to {b}"));
            }
            let is_here = (to - here).abs() <= HERE_TICKS;
            let step = goal(&self.last).map_or(0.0, |last| (to - last).abs());
            if step > fastest * 0.01 + LEAD_TICKS && !is_here {
                self.wrong
                    .push(format!("servo {id} was sent {step} counts in a frame"));
            }
            if (to - here).abs() > fastest * LEASH_S + LEAD_TICKS && step > 0.0 {
                self.wrong
                    .push(format!("servo {id} was sent to {to} from {here}"));
            }
        }
        if !self.last.is_empty() && self.last != goals {
            self.moves.push(SystemTime::now());
        }
        self.last = goals;
    }
}

/// A sheet of paper.
struct Sheet(Surface);

impl PaperSurface for Sheet {
    fn touch(&self, tip_m: [f64; 3]) -> Option<([f64; 2], f64)> {
        let projected = self.0.project(&nalgebra::Point3::from(tip_m));
        let holds = self.0.holds(projected.at_mm);
        holds.then_some((projected.at_mm, projected.height_mm))
    }
}

impl FarArm {
    /// In the scene `short` of a folder of scenes; its port is at `link`.
    pub(super) fn start(scenes: &Path, link: PathBuf) -> Self {
        let scene = SceneLibrary::new(Some(scenes.to_owned()))
            .scene("short", None)
            .unwrap();
        let sim = ArmSimulator::new(&scene.arm, &scene.rest_rad);
        let pen = SimPen {
            tip_m: scene.pens[0].tip_m.coords.into(),
            colour: "#000000".to_owned(),
            width_mm: 0.5,
        };
        sim.place_sheet(Box::new(Sheet(scene.surface.clone())), vec![pen]);
        let (received, over) = (Arc::default(), Arc::new(AtomicBool::new(false)));
        let ear = || Ear {
            sim: sim.clone(),
            arm: Arc::clone(&scene.arm),
            received: Arc::clone(&received),
            over: Arc::clone(&over),
            pending: Vec::new(),
        };
        let (first, at, ended) = (ear(), link.clone(), Arc::clone(&over));
        let thread = std::thread::spawn(move || serve(first, &at, &ended));
        while !link.exists() {
            sleep(Duration::from_millis(2));
        }
        Self {
            sim,
            link,
            received,
            over,
            thread: Some(thread),
        }
    }

    pub(super) fn received(&self) -> MutexGuard<'_, ReceivedGoals> {
        self.received.lock().unwrap()
    }

    pub(super) fn ink(&self) -> Vec<Line> {
        let ink = self.sim.ink().into_iter();
        ink.map(|line| line.points_mm).collect()
    }

    pub(super) fn break_it(&self, fault: SimulatedFault) {
        self.sim.break_it(fault);
    }
}

impl Drop for FarArm {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// On one pseudo-terminal after the other: each ends when it is unplugged.
fn serve(first: Ear, link: &Path, over: &AtomicBool) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let clock = NodeClock::real();
    let mut ear = first;
    while !over.load(Ordering::SeqCst) {
        let again = Ear {
            sim: ear.sim.clone(),
            arm: Arc::clone(&ear.arm),
            received: Arc::clone(&ear.received),
            over: Arc::clone(&ear.over),
            pending: Vec::new(),
        };
        runtime.block_on(async {
            let open = |path: &Path| {
                let _ = std::fs::remove_file(link);
                std::os::unix::fs::symlink(path, link).unwrap();
            };
            pty::serve(ear, &clock, open).await.unwrap();
        });
        ear = again;
        sleep(UNPLUGGED);
        ear.sim.break_it(SimulatedFault::Plug);
    }
}
