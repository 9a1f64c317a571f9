//! Random operations by people, clocks and links during a motion, in any order, on a virtual clock:
//! after a stop nothing queued moves, motion needs a reset by an entitled person or planner, an
//! emergency stop is on the disk, and nothing unreleased is sent. All judged by the frames sent.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a failing test may panic"
)]

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Weak};

use proptest::prelude::*;

use super::super::*;
use link::memory::MemoryLink;
use permit::StopLatch;
use plan::{self, SilentObserver};
use scene::{Order as DrawingOrder, Scene, SceneLibrary, SheetStroke};
use sim::{ArmSimulator, SimulatedFault};

/// Frames in which a stop comes to its stand: brake and lift.
const STAND_FRAMES: usize = 150;

/// And any other end: the rest of a stroke, the way back from an obstacle, a lift.
const END_FRAMES: usize = 700;

/// No frame for so long: the arm sleeps, and what is next in the script is done anyway.
const ASLEEP: Duration = Duration::from_millis(4);

#[derive(Clone, Copy, Debug)]
enum Op {
    Stop(ActorRank),
    Emergency,
    Clear,
    Hold(HoldAt),
    Resume,
    Enable(Option<u16>),
    Disable,
    Silence(bool),
    Block(bool),
    Jump(u16),
    Release(u16),
    Reset(ActorRank),
    Draw,
    /// A motion that was allowed and proven before all else.
    OldProof,
}

impl Op {
    /// Those that plan are not the arm's thread's to do.
    fn plans(self) -> bool {
        matches!(self, Self::Reset(_) | Self::Draw | Self::OldProof)
    }
}

fn op() -> impl Strategy<Value = Op> {
    let who = || {
        prop_oneof![
            Just(ActorRank::Planner),
            Just(ActorRank::Operator),
            Just(ActorRank::Node)
        ]
    };
    let asks = || prop_oneof![Just(ActorRank::Planner), Just(ActorRank::Operator)];
    prop_oneof![
        3 => who().prop_map(Op::Stop),
        1 => Just(Op::Emergency),
        1 => Just(Op::Clear),
        2 => prop_oneof![Just(HoldAt::Once), Just(HoldAt::StrokeEnd)].prop_map(Op::Hold),
        3 => Just(Op::Resume),
        2 => prop::option::of(1_u16..900).prop_map(Op::Enable),
        1 => Just(Op::Disable),
        1 => any::<bool>().prop_map(Op::Silence),
        1 => any::<bool>().prop_map(Op::Block),
        1 => (1_u16..400).prop_map(Op::Jump),
        4 => (1_u16..300).prop_map(Op::Release),
        4 => asks().prop_map(Op::Reset),
        4 => Just(Op::Draw),
        1 => Just(Op::OldProof),
    ]
}

fn script() -> impl Strategy<Value = Vec<(usize, Op)>> {
    prop::collection::vec((0_usize..160, op()), 1..14)
}

/// Observations on the link, and the rules that must hold there.
#[derive(Default)]
struct Seen {
    frames: usize,
    goals: Vec<u8>,
    script: VecDeque<(usize, Op)>,
    /// The frame at which the next of the script is due.
    due: usize,
    /// Withdrawals when the motion under way was allowed.
    allowed: Option<u64>,
    /// Number of withdrawals, and the frame at which it last changed.
    withdrawn: (u64, usize),
    /// The last stop and the last emergency stop that no reset has followed.
    stopped: Option<usize>,
    emergency: Option<usize>,
    release: Option<MotionRelease>,
    wrong: Vec<String>,
}

struct Shared {
    seen: Mutex<Seen>,
    scene: Arc<Scene>,
    sim: ArmSimulator,
    clock: NodeClock,
    permits: Arc<PermitRegistry>,
    motion: OnceLock<Weak<MotionHandle>>,
    over: AtomicBool,
}

enum Due {
    Now(Op),
    Later,
    Never,
}

/// Positions in a frame of goals: FF FF FE LEN 83 41 7 (ID ACC POS POS TIME TIME SPEED SPEED)* SUM.
fn goals(bytes: &[u8]) -> Option<Vec<u8>> {
    let is_goals =
        bytes.len() > 8 && bytes[..3] == [0xFF, 0xFF, 0xFE] && bytes[4..7] == [0x83, 41, 7];
    let blocks = || bytes[7..bytes.len() - 1].chunks_exact(8);
    is_goals.then(|| blocks().flat_map(|block| [block[2], block[3]]).collect())
}

impl Shared {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap()
    }

    /// Returns whether no goal is further from its servo's position than the goal before: all that is
    /// permitted after an emergency stop, where the arm presses against something.
    fn comes_back(&self, before: &[u8], after: &[u8]) -> bool {
        let truth = self.sim.true_joints();
        let ticks = |bytes: &[u8]| i32::from(u16::from_le_bytes([bytes[0], bytes[1]]));
        let goals = before.chunks_exact(2).zip(after.chunks_exact(2));
        goals
            .zip(self.scene.arm.servos())
            .all(|((before, after), (joint, servo))| {
                let is = servo.ticks(truth[joint]);
                (ticks(after) - is).abs() <= (ticks(before) - is).abs().max(1)
            })
    }

    /// A frame has come by; what is due is done on the arm's own thread.
    fn frame(&self, goals: Vec<u8>) {
        let mut seen = self.seen();
        seen.frames += 1;
        let moved = !seen.goals.is_empty() && seen.goals != goals;
        let back = self.comes_back(&seen.goals, &goals);
        seen.goals = goals;
        seen.judge(moved, back, self.permits.withdrawals());
        while !self.over.load(Ordering::SeqCst)
            && let Some((_, op)) = seen.script.front().copied()
            && seen.frames >= seen.due
            && !op.plans()
        {
            seen.next();
            drop(seen);
            self.act(op, 0);
            seen = self.seen();
        }
    }

    fn is_asleep(&self, seen_frames: &mut usize) -> bool {
        let frames = self.seen().frames;
        std::mem::replace(seen_frames, frames) == frames
    }

    /// Returns the due part of the script that the arm's thread does not do, or not while it sleeps.
    fn due(&self, asleep: bool) -> Due {
        let mut seen = self.seen();
        let Some((_, op)) = seen.script.front().copied() else {
            return Due::Never;
        };
        if !asleep && (seen.frames < seen.due || !op.plans()) {
            return Due::Later;
        }
        seen.next();
        Due::Now(op)
    }

    /// Does what needs no plan. A frame may be on its way already where `late` is 1.
    fn act(&self, op: Op, late: usize) {
        let Some(motion) = self.motion.get().and_then(Weak::upgrade) else {
            return;
        };
        let now = self.clock.now();
        match op {
            Op::Stop(by) => {
                motion.stop(by, false);
                let mut seen = self.seen();
                let at = seen.frames + late;
                seen.stopped.get_or_insert(at);
                seen.allowed = None;
            }
            Op::Emergency => {
                motion.stop(ActorRank::Operator, true);
                let mut seen = self.seen();
                let at = seen.frames + late;
                seen.emergency.get_or_insert(at);
                seen.allowed = None;
            }
            // Another emergency stop may have come meanwhile.
            Op::Clear => drop(self.permits.clear_emergency(self.permits.emergencies())),
            Op::Hold(at) => drop(motion.hold(at)),
            Op::Resume => {
                if let Ok(permit) = self.permits.ask(&self.scene, now) {
                    drop(motion.resume(permit));
                    let withdrawals = self.permits.withdrawals();
                    let mut seen = self.seen();
                    if seen.stopped.is_none() && seen.emergency.is_none() {
                        seen.allowed = Some(withdrawals);
                    }
                }
            }
            Op::Enable(ticks) => {
                let lasts = ticks.map(|ticks| plan::PERIOD * u32::from(ticks));
                self.permits.enable(&self.scene, now, lasts).unwrap();
            }
            Op::Disable => self.permits.disable(),
            Op::Silence(true) => self.sim.break_it(SimulatedFault::Silence(2)),
            Op::Silence(false) => self.sim.break_it(SimulatedFault::Speak(2)),
            Op::Block(on) => {
                let at_rad = on.then(|| self.sim.true_joints()[1]);
                self.sim
                    .break_it(SimulatedFault::Block { joint: 1, at_rad });
            }
            Op::Jump(ms) => self
                .clock
                .jump_to(now.after(Duration::from_millis(u64::from(ms)))),
            Op::Release(samples) => {
                if let Some(release) = self.seen().release.clone() {
                    release.up_to(release.end() + usize::from(samples));
                }
            }
            Op::Reset(_) | Op::Draw | Op::OldProof => {}
        }
    }
}

impl Seen {
    fn next(&mut self) -> Option<Op> {
        let (_, op) = self.script.pop_front()?;
        self.due = self.frames + self.script.front().map_or(0, |(frames, _)| *frames);
        Some(op)
    }

    fn judge(&mut self, moved: bool, back: bool, withdrawals: u64) {
        if self.withdrawn.0 != withdrawals {
            self.withdrawn = (withdrawals, self.frames);
        }
        if let Some(release) = &self.release
            && release.at() >= release.end().max(1)
        {
            let (at, end) = (release.at(), release.end());
            self.wrong.push(format!("sample {at} was sent of {end}"));
        }
        if !moved {
            return;
        }
        let frame = self.frames;
        let past = |since: Option<usize>, by: usize| since.is_some_and(|at| frame > at + by);
        if past(self.emergency, 0) && !back {
            self.wrong
                .push(format!("moved at {frame} after an emergency stop"));
        }
        if past(self.stopped, STAND_FRAMES) {
            self.wrong.push(format!("moved at {frame} after a stop"));
        }
        let is_allowed = self.allowed == Some(withdrawals);
        if !is_allowed && frame > self.withdrawn.1 + END_FRAMES {
            self.wrong.push(format!("moved at {frame} without leave"));
        }
    }
}

struct Tapped {
    inner: MemoryLink<ArmSimulator>,
    shared: Arc<Shared>,
}

impl ByteLink for Tapped {
    fn send<'a>(&'a mut self, bytes: &'a [u8]) -> link::LinkFuture<'a, ()> {
        if let Some(goals) = goals(bytes) {
            self.shared.frame(goals);
        }
        self.inner.send(bytes)
    }

    fn receive<'a>(
        &'a mut self,
        into: &'a mut [u8],
        until: ClockInstant,
    ) -> link::LinkFuture<'a, usize> {
        self.inner.receive(into, until)
    }

    fn discard_input(&mut self) -> Result<(), LinkError> {
        self.inner.discard_input()
    }

    fn name(&self) -> &'static str {
        "tapped"
    }
}

/// The default scene with two short lines.
fn short() -> Arc<Scene> {
    let scene = SceneLibrary::new(None).scene("default", None).unwrap();
    let line = |y: f64| SheetStroke {
        points_mm: vec![[30.0, y], [55.0, y]],
        pen: 0,
        source: "test".to_owned(),
        pause: None,
    };
    Arc::new(Scene {
        strokes: vec![line(40.0), line(48.0)],
        order: DrawingOrder::AsDrawn,
        ..Scene::clone(&scene)
    })
}

struct Bench {
    shared: Arc<Shared>,
    motion: Arc<MotionHandle>,
    folder: tempfile::TempDir,
    running: Option<(oneshot::Receiver<MotionOutcome>, Option<MotionPermit>)>,
    old: Option<CheckedTrajectory>,
}

impl Bench {
    fn new(scene: &Arc<Scene>, script: Vec<(usize, Op)>) -> Self {
        let sim = ArmSimulator::new(&scene.arm, &scene.rest_rad);
        let folder = tempfile::tempdir().unwrap();
        let permits = Arc::new(PermitRegistry::none());
        permits.keep_emergency_in(latch_file(&folder)).unwrap();
        let clock = NodeClock::simulated();
        let due = script.first().map_or(0, |(frames, _)| *frames);
        let seen = Seen {
            script: script.into(),
            due,
            ..Seen::default()
        };
        let shared = Arc::new(Shared {
            seen: Mutex::new(seen),
            scene: Arc::clone(scene),
            sim: sim.clone(),
            clock: clock.clone(),
            permits: Arc::clone(&permits),
            motion: OnceLock::new(),
            over: AtomicBool::new(false),
        });
        let tapped = Arc::clone(&shared);
        let open: PortOpener = Box::new(move |clock| {
            let inner = MemoryLink::new(sim.clone(), clock, "tapped").map_err(LinkError::Read)?;
            let shared = Arc::clone(&tapped);
            Ok(Box::new(Tapped { inner, shared }) as Box<dyn ByteLink>)
        });
        let motion = MotionHandle::start(Arc::clone(&scene.arm), clock, permits, open).unwrap();
        let motion = Arc::new(motion);
        let _ = shared.motion.set(Arc::downgrade(&motion));
        let mut bench = Self {
            shared,
            motion,
            folder,
            running: None,
            old: None,
        };
        bench
            .shared
            .permits
            .enable(scene, ClockInstant::ZERO, Some(Duration::from_secs(3600)))
            .unwrap();
        bench.old = bench.proof(|permits, scene| permits.ask(scene, ClockInstant::ZERO).ok());
        bench
    }

    fn proof(
        &self,
        leave: impl FnOnce(&PermitRegistry, &Scene) -> Option<MotionPermit>,
    ) -> Option<CheckedTrajectory> {
        let Shared { scene, permits, .. } = &*self.shared;
        let permit = leave(permits, scene)?;
        let start = self.motion.snapshot().measured?;
        let poses = [scene.ready_rad, scene.rest_rad];
        let plan = plan::go_to(scene, &start.position_rad, &poses, &SilentObserver).ok()?;
        let now = self.shared.clock.now();
        gate::check(scene, permit, &start, now, plan.trajectory).ok()
    }

    fn drawing(&self, permit: MotionPermit) -> Option<CheckedTrajectory> {
        let scene = &self.shared.scene;
        let start = self.motion.snapshot().measured?;
        let plan = plan::draw(scene, &start.position_rad, &SilentObserver).ok()?;
        let now = self.shared.clock.now();
        gate::check(scene, permit, &start, now, plan.trajectory).ok()
    }

    fn draw(&mut self) {
        let Shared { scene, permits, .. } = &*self.shared;
        let seen_stops = self.motion.stops_requested();
        let latched = permits.latched().is_some();
        let withdrawals = permits.withdrawals();
        let leave = permits.ask(scene, self.shared.clock.now());
        assert!(!latched || leave.is_err(), "leave under a latch");
        let Some(proof) = leave.ok().and_then(|permit| self.drawing(permit)) else {
            return;
        };
        if self.running.is_some() {
            return;
        }
        let release = MotionRelease::nothing();
        release.up_to(40);
        let mut seen = self.shared.seen();
        // A stop from before may be still on its way: its frames are judged all the same.
        if seen.stopped.is_none() && seen.emergency.is_none() {
            seen.allowed = Some(withdrawals);
        }
        seen.release = Some(release.clone());
        drop(seen);
        let ended = self.motion.run_released(proof, seen_stops, release);
        self.running = Some((ended, None));
    }

    fn reset(&mut self, by: ActorRank) {
        let Shared { scene, permits, .. } = &*self.shared;
        let seen_stops = self.motion.stops_requested();
        let withdrawals = permits.withdrawals();
        let latched = permits.latched();
        let leave = permits.ask_reset(scene, by, self.shared.clock.now());
        match latched {
            Some(StopLatch::Emergency(_)) => assert!(leave.is_err(), "an emergency stop was reset"),
            Some(StopLatch::Stopped(ActorRank::Operator)) if by == ActorRank::Planner => {
                assert!(leave.is_err(), "a planner reset an operator's stop");
            }
            _ => {}
        }
        let Some(proof) = leave
            .clone()
            .ok()
            .and_then(|permit| self.proof(|_, _| Some(permit)))
        else {
            return;
        };
        if self.running.is_some() {
            return;
        }
        let mut seen = self.shared.seen();
        // A stop that came while this was planned counts on.
        if permits.withdrawals() == withdrawals && self.motion.stops_requested() == seen_stops {
            (seen.stopped, seen.emergency) = (None, None);
            seen.allowed = Some(withdrawals);
        }
        seen.release = None;
        drop(seen);
        let ended = self.motion.run(proof, seen_stops);
        self.running = Some((ended, leave.ok()));
    }

    async fn old_proof(&mut self) {
        let Some(proof) = self.old.take() else { return };
        let withdrawn = !self.shared.permits.is_current(proof.permit());
        if self.running.is_some() || !withdrawn {
            return;
        }
        let outcome = self.motion.run(proof, self.motion.stops_requested()).await;
        assert!(
            matches!(outcome, Ok(MotionOutcome::Refused(_))),
            "an old proof: {outcome:?}"
        );
    }

    /// All of the script, then a stop.
    async fn play(&mut self) {
        self.draw();
        let mut seen_frames = 0;
        loop {
            self.take_outcome();
            tokio::time::timeout(ASLEEP, std::future::pending::<()>())
                .await
                .unwrap_err();
            let asleep = self.shared.is_asleep(&mut seen_frames);
            let op = match self.shared.due(asleep) {
                Due::Now(op) => op,
                Due::Later => continue,
                Due::Never => break,
            };
            match op {
                Op::Draw => self.draw(),
                Op::Reset(by) => self.reset(by),
                Op::OldProof => self.old_proof().await,
                op => self.shared.act(op, 1),
            }
        }
        self.end().await;
    }

    fn take_outcome(&mut self) {
        let Some((mut ended, reset)) = self.running.take() else {
            return;
        };
        match ended.try_recv() {
            Ok(MotionOutcome::Reached { .. }) => {
                if let Some(reset) = reset {
                    self.shared.permits.unlatch(&reset);
                }
            }
            Err(oneshot::error::TryRecvError::Empty) => self.running = Some((ended, reset)),
            Ok(_) | Err(oneshot::error::TryRecvError::Closed) => {}
        }
    }

    async fn stop(&self) -> StopReport {
        let ticket = self.motion.stop(ActorRank::Planner, false);
        self.motion.stopped(ticket).await.unwrap()
    }

    async fn end(&mut self) {
        self.shared.sim.break_it(SimulatedFault::Speak(2));
        self.shared.over.store(true, Ordering::SeqCst);
        let was_emergency = self.shared.permits.latched();
        // This stop may share the end of one before it, whose time a silent servo has used up.
        let mut report = self.stop().await;
        if !report.verified {
            report = self.stop().await;
        }
        assert!(report.verified, "{report:?}");
        self.shared.permits.emergency_is_kept().await.unwrap();
        let on_disk = latch_file(&self.folder).exists();
        let latched = self.shared.permits.latched();
        assert_eq!(
            matches!(latched, Some(StopLatch::Emergency(_))),
            on_disk,
            "{latched:?}"
        );
        if let Some(StopLatch::Emergency(_) | StopLatch::Stopped(ActorRank::Operator)) =
            was_emergency
        {
            assert_eq!(
                latched, was_emergency,
                "a lesser stop replaced a graver one"
            );
        }
        let seen = self.shared.seen();
        assert!(seen.wrong.is_empty(), "{:#?}", seen.wrong);
    }
}

fn latch_file(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("emergency-stop-arm")
}

fn cases() -> u32 {
    let asked = std::env::var("STEADYHAND_CASES").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(64)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_moves_after_a_stop_until_the_right_person_resets(script in script()) {
        static SCENE: OnceLock<Arc<Scene>> = OnceLock::new();
        let scene = SCENE.get_or_init(short);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(Bench::new(scene, script).play());
    }
}
