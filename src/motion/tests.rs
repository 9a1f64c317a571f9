//! The arm's thread against the simulated arm, over memory and a simulated clock.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failing test may panic"
)]

mod ends;
mod interleave;
mod probes;

use super::*;
use link::memory::MemoryLink;
use permit::{MotionPermit, StopLatch};
use plan::{self, Plan};
use scene::{Scene, SceneLibrary};
use sim::{ArmSimulator, SimulatedFault};

/// Fast enough for short tests, slow enough to see what lasts a tenth of a second.
const RATE: u32 = 20;

struct Wanted;

impl plan::PlanObserver for Wanted {
    fn progress(&self, _: usize, _: usize) {}
    fn cancelled(&self) -> bool {
        false
    }
}

struct Bench {
    scene: Arc<Scene>,
    sim: ArmSimulator,
    motion: MotionHandle,
}

impl Bench {
    fn new() -> Self {
        Self::with(NodeClock::simulated_at(RATE))
    }

    fn with(clock: NodeClock) -> Self {
        let scene = SceneLibrary::new(None).scene("default", None).unwrap();
        let sim = ArmSimulator::new(&scene.arm, &scene.rest_rad);
        let device = sim.clone();
        let open: PortOpener = Box::new(move |clock| {
            let link = MemoryLink::new(device.clone(), clock, "bench").map_err(LinkError::Read)?;
            Ok(Box::new(link) as Box<dyn ByteLink>)
        });
        let permits = Arc::new(PermitRegistry::everything());
        let arm = Arc::clone(&scene.arm);
        let motion = MotionHandle::start(arm, clock, permits, open).unwrap();
        Self { scene, sim, motion }
    }

    fn permit(&self) -> MotionPermit {
        let now = self.motion.clock().now();
        self.motion.permits().ask(&self.scene, now).unwrap()
    }

    /// To the ready pose and back, allowed by `permit`.
    fn proof(&self, permit: MotionPermit) -> CheckedTrajectory {
        let measured = self.motion.snapshot().measured.unwrap();
        let poses = [self.scene.ready_rad, self.scene.rest_rad];
        let plan: Plan = plan::go_to(&self.scene, &measured.position_rad, &poses, &Wanted).unwrap();
        let now = self.motion.clock().now();
        gate::check(&self.scene, permit, &measured, now, plan.trajectory).unwrap()
    }
}

#[tokio::test]
async fn a_motion_ends_at_rest_and_reads_back_so() {
    let bench = Bench::new();
    let outcome = bench
        .motion
        .run(bench.proof(bench.permit()), 0)
        .await
        .unwrap();
    assert!(
        matches!(outcome, MotionOutcome::Reached { .. }),
        "{outcome:?}"
    );
    assert!(bench.sim.true_joints().distance_max(&bench.scene.rest_rad) < 0.01);
}

/// Simulated time waits for its thread; the wall's does not.
#[test]
fn an_arms_thread_goes_ahead_of_others_where_it_may_and_time_is_real() {
    let may = std::thread::spawn(|| set_realtime_priority().is_ok())
        .join()
        .unwrap();
    for (clock, due) in [(NodeClock::real(), may), (NodeClock::simulated(), false)] {
        assert_eq!(Bench::with(clock).motion.snapshot().is_ahead, due);
    }
}

/// A stop is asked for, and before the arm's thread has heard of it a call takes its leave to
/// move and counts that stop as one it has seen.
#[tokio::test]
async fn a_permit_from_before_a_stop_begins_no_motion_after_it() {
    let bench = Bench::new();
    let proof = bench.proof(bench.permit());
    let before = bench.sim.true_joints();
    let ticket = bench.motion.stop(ActorRank::Planner, false);
    let seen_stops = bench.motion.stops_requested();
    assert!(bench.motion.stopped(ticket).await.unwrap().verified);
    let outcome = bench.motion.run(proof, seen_stops).await.unwrap();
    assert!(matches!(outcome, MotionOutcome::Refused(_)), "{outcome:?}");
    assert!(bench.sim.true_joints().distance_max(&before) < 0.01);
}

/// Each stop woke the thread for a tick of its own and put off the one after: frames came too
/// early, then too late, until the readings were too old to go on.
#[tokio::test]
async fn many_stops_in_a_row_are_one_stop() {
    let bench = Bench::with(NodeClock::real());
    let answer = bench
        .motion
        .run(bench.proof(bench.permit()), bench.motion.stops_requested());
    let mut snapshots = bench.motion.watch();
    let moving = |snapshot: &Snapshot| snapshot.progress.is_some_and(|at| at.sample > 20);
    snapshots.wait_for(moving).await.unwrap();
    let mut alarm = bench.motion.clock().alarm().unwrap();
    for _ in 0..40 {
        bench.motion.stop(ActorRank::Planner, false);
        let soon = bench.motion.clock().now().after(Duration::from_millis(1));
        alarm.until(soon).await.unwrap();
    }
    let outcome = answer.await.unwrap();
    let MotionOutcome::Stopped(report) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(report.verified, "{report:?}");
    assert_eq!(bench.motion.snapshot().fault, None);
    assert!(matches!(
        bench.motion.permits().latched(),
        Some(StopLatch::Stopped(ActorRank::Planner))
    ));
}

#[tokio::test]
async fn a_fault_is_still_one_after_a_stop() {
    let bench = Bench::new();
    let at = bench.sim.true_joints().get(1).copied();
    bench.sim.break_it(SimulatedFault::Block {
        joint: 1,
        at_rad: at,
    });
    let outcome = bench
        .motion
        .run(bench.proof(bench.permit()), 0)
        .await
        .unwrap();
    assert!(matches!(outcome, MotionOutcome::Faulted(_)), "{outcome:?}");
    let ticket = bench.motion.stop(ActorRank::Planner, false);
    assert!(bench.motion.stopped(ticket).await.unwrap().verified);
    assert_eq!(bench.motion.snapshot().state, MotionState::Faulted);
    assert!(matches!(
        bench.motion.permits().latched(),
        Some(StopLatch::Fault(_))
    ));
}

/// A link's effect on the thread that uses it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Wire {
    Works,
    Hangs,
    Panics,
}

/// A wire that can be made to hang or to break the code that uses it.
struct Rough {
    inner: MemoryLink<ArmSimulator>,
    how: Arc<(std::sync::Mutex<Wire>, std::sync::Condvar)>,
}

impl ByteLink for Rough {
    fn send<'a>(&'a mut self, bytes: &'a [u8]) -> link::LinkFuture<'a, ()> {
        let (how, changed) = &*self.how;
        let mut now = how.lock().unwrap();
        while *now == Wire::Hangs {
            now = changed.wait(now).unwrap();
        }
        let panics = *now == Wire::Panics;
        drop(now);
        assert!(!panics, "a wire that panics");
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
        "rough"
    }
}

type Grip = Arc<(std::sync::Mutex<Wire>, std::sync::Condvar)>;

fn rough(clock: NodeClock, permits: PermitRegistry) -> (Bench, Grip) {
    let scene = SceneLibrary::new(None).scene("default", None).unwrap();
    let sim = ArmSimulator::new(&scene.arm, &scene.rest_rad);
    let device = sim.clone();
    let how: Grip = Arc::new((
        std::sync::Mutex::new(Wire::Works),
        std::sync::Condvar::new(),
    ));
    let grip = Arc::clone(&how);
    let open: PortOpener = Box::new(move |clock| {
        let inner = MemoryLink::new(device.clone(), clock, "rough").map_err(LinkError::Read)?;
        let how = Arc::clone(&how);
        Ok(Box::new(Rough { inner, how }) as Box<dyn ByteLink>)
    });
    let arm = Arc::clone(&scene.arm);
    let motion = MotionHandle::start(arm, clock, Arc::new(permits), open).unwrap();
    (Bench { scene, sim, motion }, grip)
}

fn make(grip: &Grip, how: Wire) {
    *grip.0.lock().unwrap() = how;
    grip.1.notify_all();
}

async fn pause(clock: &NodeClock, ms: u64) {
    let until = clock.now().after(Duration::from_millis(ms));
    clock.alarm().unwrap().until(until).await.unwrap();
}

#[tokio::test]
async fn an_arms_thread_that_hangs_feeds_no_watchdog() {
    use std::sync::atomic::{AtomicU64, Ordering};
    let clock = NodeClock::real();
    let (bench, grip) = rough(clock.clone(), PermitRegistry::everything());
    let beats = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&beats);
    bench.motion.set_heartbeat(Box::new(move || {
        counted.fetch_add(1, Ordering::SeqCst);
    }));
    while beats.load(Ordering::SeqCst) < 3 {
        pause(&clock, 10).await;
    }
    make(&grip, Wire::Hangs);
    pause(&clock, 200).await;
    let hung = beats.load(Ordering::SeqCst);
    pause(&clock, 400).await;
    assert_eq!(beats.load(Ordering::SeqCst), hung);
    make(&grip, Wire::Works);
    while beats.load(Ordering::SeqCst) == hung {
        pause(&clock, 10).await;
    }
}

#[tokio::test]
async fn a_panic_on_the_arms_thread_is_a_fault() {
    let (bench, grip) = rough(NodeClock::simulated_at(RATE), PermitRegistry::everything());
    make(&grip, Wire::Panics);
    let proof = bench.proof(bench.permit());
    let ended = bench.motion.run(proof, 0).await;
    assert!(ended.is_err(), "{ended:?}");
    bench.until(|seen| seen.state == MotionState::Faulted).await;
    let latched = bench.motion.permits().latched();
    assert!(matches!(latched, Some(StopLatch::Fault(_))), "{latched:?}");
    let ticket = bench.motion.stop(ActorRank::Planner, false);
    assert_eq!(bench.motion.stopped(ticket).await, None);
}

/// Not on the wire, but in the loop itself, in the middle of a motion.
#[tokio::test]
async fn a_panic_in_the_middle_of_a_motion_is_a_fault() {
    let bench = Bench::new();
    let snapshots = bench.motion.watch();
    bench.motion.set_heartbeat(Box::new(move || {
        let progress = snapshots.borrow().progress;
        assert!(progress.is_none_or(|at| at.sample < 20), "it breaks");
    }));
    let ended = bench.motion.run(bench.proof(bench.permit()), 0).await;
    assert!(ended.is_err(), "{ended:?}");
    bench.until(|seen| seen.state == MotionState::Faulted).await;
    let latched = bench.motion.permits().latched();
    assert!(matches!(latched, Some(StopLatch::Fault(_))), "{latched:?}");
    let stands = bench.sim.true_joints();
    pause(bench.motion.clock(), 500).await;
    assert!(bench.sim.true_joints().distance_max(&stands) < 0.05);
    let now = bench.motion.clock().now();
    assert!(bench.motion.permits().ask(&bench.scene, now).is_err());
}

impl Bench {
    /// The default drawing, allowed by `permit`.
    fn drawing(&self, permit: MotionPermit) -> CheckedTrajectory {
        let measured = self.motion.snapshot().measured.unwrap();
        let plan = plan::draw(&self.scene, &measured.position_rad, &Wanted).unwrap();
        let now = self.motion.clock().now();
        gate::check(&self.scene, permit, &measured, now, plan.trajectory).unwrap()
    }

    fn height_mm(&self) -> f64 {
        let scene = &self.scene;
        let tip =
            scene.arm.chain.forward(&self.sim.true_joints()) * scene.pens.first().unwrap().tip_m;
        scene.surface.project(&tip).height_mm
    }

    async fn until(&self, wanted: impl FnMut(&Snapshot) -> bool) -> Snapshot {
        let mut snapshots = self.motion.watch();
        snapshots.wait_for(wanted).await.unwrap().clone()
    }
}

fn draws(snapshot: &Snapshot) -> bool {
    use plan::SpanKind;
    snapshot
        .progress
        .is_some_and(|at| at.doing == SpanKind::Draw && at.item == Some(0))
}

#[tokio::test]
async fn a_servo_too_hot_ends_the_motion_at_its_strokes_end() {
    let bench = Bench::new();
    let outcome = bench.motion.run(bench.drawing(bench.permit()), 0);
    bench.until(draws).await;
    bench.sim.break_it(SimulatedFault::Heat {
        id: 3,
        temperature_c: 67.0,
    });
    let outcome = outcome.await.unwrap();
    let MotionOutcome::Faulted(why) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(
        why.contains("too hot") && why.contains("elbow_flex"),
        "{why}"
    );
    assert!(bench.height_mm() > bench.scene.heights.lift_mm - 1.0);
    // No stroke begins, and going to rest is possible.
    let again = bench.permits_reset();
    let drawing = bench
        .motion
        .run(bench.drawing(again.clone()), bench.motion.stops_requested());
    assert!(matches!(drawing.await.unwrap(), MotionOutcome::Refused(_)));
    let parked = bench
        .motion
        .run(bench.proof(again), bench.motion.stops_requested());
    let parked = parked.await.unwrap();
    assert!(
        matches!(parked, MotionOutcome::Reached { .. }),
        "{parked:?}"
    );
}

impl Bench {
    fn permits_reset(&self) -> MotionPermit {
        let now = self.motion.clock().now();
        let permits = self.motion.permits();
        permits
            .ask_reset(&self.scene, ActorRank::Operator, now)
            .unwrap()
    }
}

/// Leave that was given for the motion's length and a moment runs out while it is held; once it is
/// given again the motion goes on, and when that runs out, it is held at the end of its stroke.
#[tokio::test]
async fn leave_that_ends_holds_at_the_strokes_end() {
    let (bench, _) = rough(NodeClock::simulated_at(RATE), PermitRegistry::none());
    let (permits, clock) = (bench.motion.permits(), bench.motion.clock());
    let lasts = Duration::from_secs(40);
    permits
        .enable(&bench.scene, clock.now(), Some(lasts))
        .unwrap();
    let mut outcome = bench.motion.run(bench.drawing(bench.permit()), 0);
    bench.until(draws).await;
    bench.motion.hold(HoldAt::Once).await.unwrap().unwrap();
    let first = bench.until(|seen| seen.state == MotionState::Held).await;
    assert!(bench.height_mm() > bench.scene.heights.lift_mm - 1.0);
    clock.jump_to(clock.now().after(lasts));
    assert!(permits.ask(&bench.scene, clock.now()).is_err());
    // What was read before the jump is old now; going on reads first.
    permits
        .enable(&bench.scene, clock.now(), Some(Duration::from_millis(400)))
        .unwrap();
    let permit = bench.permit();
    bench.motion.resume(permit).await.unwrap().unwrap();
    // Simulated time passes fast: a state that lasts less than a second may not be seen.
    let went_on = |seen: &Snapshot| {
        let at = seen.progress.as_ref().map(|at| at.sample);
        seen.state == MotionState::Held && at > first.progress.as_ref().map(|at| at.sample)
    };
    let held = bench.until(went_on).await;
    assert!(
        held.progress
            .is_some_and(|at| at.doing != plan::SpanKind::Draw),
        "{held:?}"
    );
    assert!(bench.height_mm() > bench.scene.heights.lift_mm - 1.0);
    permits.enable(&bench.scene, clock.now(), None).unwrap();
    bench.motion.resume(bench.permit()).await.unwrap().unwrap();
    let ended = (&mut outcome).await.unwrap();
    assert!(matches!(ended, MotionOutcome::Reached { .. }), "{ended:?}");
}

#[tokio::test]
async fn torque_goes_off_only_from_a_standstill_and_then_an_operator_resets() {
    let bench = Bench::new();
    let outcome = bench.motion.run(bench.drawing(bench.permit()), 0);
    bench.until(draws).await;
    assert!(bench.motion.release().await.unwrap().is_err());
    let ticket = bench.motion.stop(ActorRank::Planner, false);
    assert!(bench.motion.stopped(ticket).await.unwrap().verified);
    assert!(matches!(outcome.await.unwrap(), MotionOutcome::Stopped(_)));
    let released = bench.motion.release().await.unwrap().unwrap();
    assert_eq!((released.off.len(), released.failed.len()), (6, 0));
    bench.until(|seen| !seen.energised).await;
    let latched = bench.motion.permits().latched();
    assert_eq!(latched, Some(StopLatch::Stopped(ActorRank::Operator)));
    let reset = bench.motion.run(
        bench.proof(bench.permits_reset()),
        bench.motion.stops_requested(),
    );
    let reset = reset.await.unwrap();
    assert!(matches!(reset, MotionOutcome::Reached { .. }), "{reset:?}");
}

/// The arm stops even if a reader is suspended while it looks at a snapshot.
#[tokio::test]
async fn a_reader_that_stands_still_holds_up_no_stop() {
    use std::sync::atomic::{AtomicU64, Ordering};
    let bench = Bench::with(NodeClock::real());
    let clock = bench.motion.clock().clone();
    let beats = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&beats);
    bench.motion.set_heartbeat(Box::new(move || {
        counted.fetch_add(1, Ordering::SeqCst);
    }));
    let ended = bench.motion.run(bench.proof(bench.permit()), 0);
    bench
        .until(|seen| seen.progress.is_some_and(|at| at.sample > 20))
        .await;
    let snapshots = bench.motion.watch();
    let look = snapshots.borrow();
    let ticket = bench.motion.stop(ActorRank::Planner, false);
    let (before, mut stood) = (beats.load(Ordering::SeqCst), 0);
    let mut at = bench.sim.true_joints();
    while beats.load(Ordering::SeqCst) < before + 100 || stood < 10 {
        pause(&clock, 20).await;
        let now = bench.sim.true_joints();
        stood = if now.distance_max(&at) < 1e-3 {
            stood + 1
        } else {
            0
        };
        at = now;
    }
    drop(look);
    assert!(bench.motion.stopped(ticket).await.unwrap().verified);
    assert!(matches!(ended.await.unwrap(), MotionOutcome::Stopped(_)));
}

/// The reason was told to nobody: the arm stayed away without a word.
#[tokio::test]
async fn why_a_port_is_not_opened_again_is_told_until_it_is() {
    let scene = SceneLibrary::new(None).scene("default", None).unwrap();
    let sim = ArmSimulator::new(&scene.arm, &scene.rest_rad);
    let missing = Arc::new(std::sync::Mutex::new(None::<&str>));
    let (far, absent) = (sim.clone(), Arc::clone(&missing));
    let open: PortOpener = Box::new(move |clock| {
        if let Some(path) = *absent.lock().unwrap() {
            let path = path.to_owned();
            return Err(LinkError::Missing { path });
        }
        let link = MemoryLink::new(far.clone(), clock, "port").map_err(LinkError::Read)?;
        Ok(Box::new(link) as Box<dyn ByteLink>)
    });
    let permits = Arc::new(PermitRegistry::everything());
    let arm = Arc::clone(&scene.arm);
    let motion = MotionHandle::start(arm, NodeClock::real(), permits, open).unwrap();
    let mut snapshots = motion.watch();
    let says = |words: &'static str| {
        move |seen: &Snapshot| seen.warnings.iter().any(|said| said.contains(words))
    };
    *missing.lock().unwrap() = Some("/dev/first");
    sim.break_it(SimulatedFault::Unplug);
    let first = snapshots.wait_for(says("/dev/first")).await.unwrap();
    assert_eq!(first.state, MotionState::Detached);
    drop(first);
    *missing.lock().unwrap() = Some("/dev/second");
    let second = snapshots.wait_for(says("/dev/second")).await.unwrap();
    assert!(!says("/dev/first")(&second), "{:?}", second.warnings);
    drop(second);
    *missing.lock().unwrap() = None;
    sim.break_it(SimulatedFault::Plug);
    let open = |seen: &Snapshot| seen.state != MotionState::Detached;
    let opened = snapshots.wait_for(open).await.unwrap();
    assert!(!says("not opened again")(&opened), "{:?}", opened.warnings);
}
