//! Random operations by people, clocks and links during a motion, in any order, on a simulated clock:
//! after a stop nothing queued moves, motion needs a reset by an entitled person or planner, an
//! emergency stop is saved to disk, and nothing unreleased is sent. All judged by the frames sent.
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
use permit::{OrderFiles, RecordedOrders, StopLatch};
use plan::{self, SilentObserver};
use scene::{Order as StrokeOrder, Scene, SceneLibrary, SheetStroke};
use sim::{ArmSimulator, SimulatedFault};

/// Most frames of a stop: brake and lift.
const STAND_FRAMES: usize = 150;

/// Most frames of any other end: the rest of a stroke, the move back from an obstacle, a lift.
const END_FRAMES: usize = 700;

/// Time without a frame after which the arm counts as asleep, and the script goes on anyway.
const ASLEEP_AFTER: Duration = Duration::from_millis(4);

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
    /// A motion that was permitted and proven before everything else.
    OldProof,
}

impl Op {
    /// Returns whether it needs a plan, which the arm's thread must not make.
    fn needs_plan(self) -> bool {
        matches!(self, Self::Reset(_) | Self::Draw | Self::OldProof)
    }
}

fn op() -> impl Strategy<Value = Op> {
    let actor = || {
        prop_oneof![
            Just(ActorRank::Planner),
            Just(ActorRank::Operator),
            Just(ActorRank::Node)
        ]
    };
    let resetter = || prop_oneof![Just(ActorRank::Planner), Just(ActorRank::Operator)];
    prop_oneof![
        3 => actor().prop_map(Op::Stop),
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
        4 => resetter().prop_map(Op::Reset),
        4 => Just(Op::Draw),
        1 => Just(Op::OldProof),
    ]
}

fn script() -> impl Strategy<Value = Vec<(usize, Op)>> {
    prop::collection::vec((0_usize..160, op()), 1..14)
}

/// Observations on the link, and the rules that must hold there.
#[derive(Default)]
struct Observed {
    frames: usize,
    goals: Vec<u8>,
    script: VecDeque<(usize, Op)>,
    /// The frame at which the next operation is due.
    next_frame: usize,
    /// Withdrawals when the motion under way was allowed.
    allowed: Option<u64>,
    /// Number of withdrawals, and the frame at which it last changed.
    withdrawal: (u64, usize),
    /// The last stop and the last emergency stop that no reset has followed.
    stopped: Option<usize>,
    emergency: Option<usize>,
    release: Option<MotionRelease>,
    errors: Vec<String>,
}

struct Shared {
    observed: Mutex<Observed>,
    scene: Arc<Scene>,
    sim: ArmSimulator,
    clock: NodeClock,
    permits: Arc<PermitRegistry>,
    motion: OnceLock<Weak<MotionHandle>>,
    is_over: AtomicBool,
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
    fn observed(&self) -> MutexGuard<'_, Observed> {
        self.observed.lock().unwrap()
    }

    /// Returns whether no goal is further from its servo's position than the goal before: all that is
    /// permitted after an emergency stop, where the arm presses against something.
    fn moves_no_farther(&self, before: &[u8], after: &[u8]) -> bool {
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

    /// Judges a frame and performs what is due, on the arm's own thread.
    fn frame(&self, goals: Vec<u8>) {
        let mut observed = self.observed();
        observed.frames += 1;
        let has_moved = !observed.goals.is_empty() && observed.goals != goals;
        let is_back = self.moves_no_farther(&observed.goals, &goals);
        observed.goals = goals;
        observed.judge(has_moved, is_back, self.permits.withdrawals());
        while !self.is_over.load(Ordering::SeqCst)
            && let Some((_, op)) = observed.script.front().copied()
            && observed.frames >= observed.next_frame
            && !op.needs_plan()
        {
            observed.next();
            drop(observed);
            self.perform(op, 0);
            observed = self.observed();
        }
    }

    fn is_asleep(&self, previous_frames: &mut usize) -> bool {
        let frames = self.observed().frames;
        std::mem::replace(previous_frames, frames) == frames
    }

    /// Takes the due operation that the arm's thread does not perform, or not while it sleeps.
    fn take_due(&self, is_asleep: bool) -> Due {
        let mut observed = self.observed();
        let Some((_, op)) = observed.script.front().copied() else {
            return Due::Never;
        };
        if !is_asleep && (observed.frames < observed.next_frame || !op.needs_plan()) {
            return Due::Later;
        }
        observed.next();
        Due::Now(op)
    }

    /// Performs an operation that needs no plan. `frame_lag` is 1 where a frame may be on its way already.
    fn perform(&self, op: Op, frame_lag: usize) {
        let Some(motion) = self.motion.get().and_then(Weak::upgrade) else {
            return;
        };
        let now = self.clock.now();
        match op {
            Op::Stop(by) => {
                motion.stop(by, false);
                let mut observed = self.observed();
                let at = observed.frames + frame_lag;
                observed.stopped.get_or_insert(at);
                observed.allowed = None;
            }
            Op::Emergency => {
                motion.stop(ActorRank::Operator, true);
                let mut observed = self.observed();
                let at = observed.frames + frame_lag;
                observed.emergency.get_or_insert(at);
                observed.allowed = None;
            }
            // Another emergency stop may have come meanwhile.
            Op::Clear => drop(self.permits.clear_emergency(self.permits.emergencies())),
            Op::Hold(at) => drop(motion.hold(at)),
            Op::Resume => {
                if let Ok(permit) = self.permits.ask(&self.scene, now) {
                    drop(motion.resume(permit));
                    let withdrawals = self.permits.withdrawals();
                    let mut observed = self.observed();
                    if observed.stopped.is_none() && observed.emergency.is_none() {
                        observed.allowed = Some(withdrawals);
                    }
                }
            }
            Op::Enable(ticks) => {
                let duration = ticks.map(|ticks| plan::PERIOD * u32::from(ticks));
                let seen = self.permits.orders_given();
                self.permits
                    .enable(&self.scene, now, duration, seen)
                    .unwrap();
            }
            Op::Disable => self.permits.disable(),
            Op::Silence(true) => self.sim.break_it(SimulatedFault::Silence(2)),
            Op::Silence(false) => self.sim.break_it(SimulatedFault::Speak(2)),
            Op::Block(is_blocked) => {
                let at_rad = is_blocked.then(|| self.sim.true_joints()[1]);
                self.sim
                    .break_it(SimulatedFault::Block { joint: 1, at_rad });
            }
            Op::Jump(ms) => self
                .clock
                .jump_to(now.after(Duration::from_millis(u64::from(ms)))),
            Op::Release(samples) => {
                if let Some(release) = self.observed().release.clone() {
                    release.up_to(release.end() + usize::from(samples));
                }
            }
            Op::Reset(_) | Op::Draw | Op::OldProof => {}
        }
    }
}

impl Observed {
    fn next(&mut self) -> Option<Op> {
        let (_, op) = self.script.pop_front()?;
        self.next_frame = self.frames + self.script.front().map_or(0, |(frames, _)| *frames);
        Some(op)
    }

    fn judge(&mut self, has_moved: bool, is_back: bool, withdrawals: u64) {
        if self.withdrawal.0 != withdrawals {
            self.withdrawal = (withdrawals, self.frames);
        }
        if let Some(release) = &self.release
            && release.at() >= release.end().max(1)
        {
            let (at, end) = (release.at(), release.end());
            self.errors.push(format!("sample {at} was sent of {end}"));
        }
        if !has_moved {
            return;
        }
        let frame = self.frames;
        let is_past = |since: Option<usize>, by: usize| since.is_some_and(|at| frame > at + by);
        if is_past(self.emergency, 0) && !is_back {
            self.errors
                .push(format!("moved at {frame} after an emergency stop"));
        }
        if is_past(self.stopped, STAND_FRAMES) {
            self.errors.push(format!("moved at {frame} after a stop"));
        }
        let is_allowed = self.allowed == Some(withdrawals);
        if !is_allowed && frame > self.withdrawal.1 + END_FRAMES {
            self.errors.push(format!("moved at {frame} without leave"));
        }
    }
}

struct ObservedLink {
    inner: MemoryLink<ArmSimulator>,
    shared: Arc<Shared>,
}

impl ByteLink for ObservedLink {
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
fn two_line_scene() -> Arc<Scene> {
    let scene = SceneLibrary::new(None).scene("default", None).unwrap();
    let line = |y: f64| SheetStroke {
        points_mm: vec![[30.0, y], [55.0, y]],
        pen: 0,
        source: "test".to_owned(),
        pause: None,
    };
    Arc::new(Scene {
        strokes: vec![line(40.0), line(48.0)],
        order: StrokeOrder::AsDrawn,
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
        let files = OrderFiles::of_arm(folder.path(), "arm", true);
        permits
            .keep_orders_in(files, RecordedOrders::None, Box::new(|_| {}))
            .unwrap();
        let clock = NodeClock::simulated();
        let next_frame = script.first().map_or(0, |(frames, _)| *frames);
        let observed = Observed {
            script: script.into(),
            next_frame,
            ..Observed::default()
        };
        let shared = Arc::new(Shared {
            observed: Mutex::new(observed),
            scene: Arc::clone(scene),
            sim: sim.clone(),
            clock: clock.clone(),
            permits: Arc::clone(&permits),
            motion: OnceLock::new(),
            is_over: AtomicBool::new(false),
        });
        let observer = Arc::clone(&shared);
        let open: PortOpener = Box::new(move |clock| {
            let inner = MemoryLink::new(sim.clone(), clock, "tapped").map_err(LinkError::Read)?;
            let shared = Arc::clone(&observer);
            Ok(Box::new(ObservedLink { inner, shared }) as Box<dyn ByteLink>)
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
            .enable(
                scene,
                ClockInstant::ZERO,
                Some(Duration::from_secs(3600)),
                bench.shared.permits.orders_given(),
            )
            .unwrap();
        bench.old = bench.proof(|permits, scene| permits.ask(scene, ClockInstant::ZERO).ok());
        bench
    }

    fn proof(
        &self,
        permit: impl FnOnce(&PermitRegistry, &Scene) -> Option<MotionPermit>,
    ) -> Option<CheckedTrajectory> {
        let Shared { scene, permits, .. } = &*self.shared;
        let permit = permit(permits, scene)?;
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
        let permit = permits.ask(scene, self.shared.clock.now());
        assert!(!latched || permit.is_err(), "leave under a latch");
        let Some(proof) = permit.ok().and_then(|permit| self.drawing(permit)) else {
            return;
        };
        if self.running.is_some() {
            return;
        }
        let release = MotionRelease::nothing();
        release.up_to(40);
        let mut observed = self.shared.observed();
        // An earlier stop may still be under way: its frames are judged all the same.
        if observed.stopped.is_none() && observed.emergency.is_none() {
            observed.allowed = Some(withdrawals);
        }
        observed.release = Some(release.clone());
        drop(observed);
        let ended = self.motion.run_released(proof, seen_stops, release);
        self.running = Some((ended, None));
    }

    fn reset(&mut self, by: ActorRank) {
        let Shared { scene, permits, .. } = &*self.shared;
        let seen_stops = self.motion.stops_requested();
        let withdrawals = permits.withdrawals();
        let latched = permits.latched();
        let permit = permits.ask_reset(scene, by, self.shared.clock.now());
        match latched {
            Some(StopLatch::Emergency(_)) => {
                assert!(permit.is_err(), "an emergency stop was reset");
            }
            Some(StopLatch::Stopped(ActorRank::Operator)) if by == ActorRank::Planner => {
                assert!(permit.is_err(), "a planner reset an operator's stop");
            }
            _ => {}
        }
        let Some(proof) = permit
            .clone()
            .ok()
            .and_then(|permit| self.proof(|_, _| Some(permit)))
        else {
            return;
        };
        if self.running.is_some() {
            return;
        }
        let mut observed = self.shared.observed();
        // A stop that came while this was planned still counts.
        if permits.withdrawals() == withdrawals && self.motion.stops_requested() == seen_stops {
            (observed.stopped, observed.emergency) = (None, None);
            observed.allowed = Some(withdrawals);
        }
        observed.release = None;
        drop(observed);
        let ended = self.motion.run(proof, seen_stops);
        self.running = Some((ended, permit.ok()));
    }

    async fn old_proof(&mut self) {
        let Some(proof) = self.old.take() else {
            return;
        };
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

    /// Runs the whole script, then a stop.
    async fn run(&mut self) {
        self.draw();
        let mut previous_frames = 0;
        loop {
            self.take_outcome();
            tokio::time::timeout(ASLEEP_AFTER, std::future::pending::<()>())
                .await
                .unwrap_err();
            let is_asleep = self.shared.is_asleep(&mut previous_frames);
            let op = match self.shared.take_due(is_asleep) {
                Due::Now(op) => op,
                Due::Later => continue,
                Due::Never => break,
            };
            match op {
                Op::Draw => self.draw(),
                Op::Reset(by) => self.reset(by),
                Op::OldProof => self.old_proof().await,
                op => self.shared.perform(op, 1),
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
        self.shared.is_over.store(true, Ordering::SeqCst);
        let latched_before = self.shared.permits.latched();
        // This stop may end with an earlier one that a silent servo has delayed too long.
        let mut report = self.stop().await;
        if !report.verified {
            report = self.stop().await;
        }
        assert!(report.verified, "{report:?}");
        self.shared.permits.orders_are_kept().await.unwrap();
        let is_saved = latch_file(&self.folder).exists();
        let latched = self.shared.permits.latched();
        assert_eq!(
            matches!(latched, Some(StopLatch::Emergency(_))),
            is_saved,
            "{latched:?}"
        );
        if let Some(StopLatch::Emergency(_) | StopLatch::Stopped(ActorRank::Operator)) =
            latched_before
        {
            assert_eq!(
                latched, latched_before,
                "a lesser stop replaced a graver one"
            );
        }
        let observed = self.shared.observed();
        assert!(observed.errors.is_empty(), "{:#?}", observed.errors);
    }
}

fn latch_file(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("emergency-stop-arm.port")
}

fn cases() -> u32 {
    let requested = std::env::var("STEADYHAND_CASES").ok();
    requested.and_then(|text| text.parse().ok()).unwrap_or(64)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_moves_after_a_stop_until_the_right_person_resets(script in script()) {
        static SCENE: OnceLock<Arc<Scene>> = OnceLock::new();
        let scene = SCENE.get_or_init(two_line_scene);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(Bench::new(scene, script).run());
    }
}
