//! The arm's thread against the simulated arm, over memory and a simulated clock.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failing test may panic"
)]

mod ends;
mod felt;
mod following;
mod interleave;
mod neighbours;
mod probes;
mod shared_bus;
mod unmoved;

use super::*;
use arm::{ArmFile, ArmModel};
use link::memory::MemoryLink;
use permit::{MotionPermit, StopLatch};
use plan::{self, SilentObserver, SpanKind, Trajectory};
use scene::{Scene, SceneLibrary};
use sim::{ArmSimulator, SimulatedFault};

/// Fast enough for short tests, slow enough to see what lasts a tenth of a second.
const RATE: u32 = 20;

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
        Self::of(clock, |_| {})
    }

    /// Returns a bench whose servos follow their goals with a lag, in place of those of its arm.
    fn lagging(clock: NodeClock) -> Self {
        Self::of(clock, |file| file.servo = None)
    }

    fn of(clock: NodeClock, change: impl FnOnce(&mut ArmFile)) -> Self {
        Self::with_ids(clock, change, ArmModel::clone)
    }

    /// Returns a bench whose servos have the ids of the second arm on a bus.
    fn second_on_its_bus(clock: NodeClock) -> Self {
        Self::with_ids(clock, |_| {}, |arm| arm.with_first_id(7).unwrap())
    }

    fn with_ids(
        clock: NodeClock,
        change: impl FnOnce(&mut ArmFile),
        on_bus: fn(&ArmModel) -> ArmModel,
    ) -> Self {
        let scene = SceneLibrary::new(None).scene("default", None).unwrap();
        let mut file = scene.arm.file.clone();
        change(&mut file);
        let true_arm = on_bus(&ArmModel::new(file).unwrap());
        let sim = ArmSimulator::new(&true_arm, &scene.rest_rad);
        let device = sim.clone();
        let open: PortOpener = Box::new(move |clock| {
            let link = MemoryLink::new(device.clone(), clock, "bench").map_err(LinkError::Read)?;
            Ok(Box::new(link) as Box<dyn ByteLink>)
        });
        let permits = Arc::new(PermitRegistry::everything());
        let arm = Arc::new(on_bus(&scene.arm));
        let motion = MotionHandle::start(arm, clock, permits, open).unwrap();
        Self { scene, sim, motion }
    }

    fn permit(&self) -> MotionPermit {
        let now = self.motion.clock().now();
        self.motion.permits().ask(&self.scene, now).unwrap()
    }

    /// Returns a motion to the ready pose and back, allowed by `permit`.
    fn proof(&self, permit: MotionPermit) -> CheckedTrajectory {
        let poses = [self.scene.ready_rad, self.scene.rest_rad];
        let plan = plan::go_to(&self.scene, &self.start_rad(), &poses, &SilentObserver);
        self.check(plan.unwrap().trajectory, permit)
    }

    fn start_rad(&self) -> JointVector {
        self.motion.snapshot().measured.unwrap().position_rad
    }

    fn check(&self, trajectory: Trajectory, permit: MotionPermit) -> CheckedTrajectory {
        let start = self.motion.snapshot().measured.unwrap();
        let now = self.motion.clock().now();
        gate::check(&self.scene, permit, &start, now, trajectory).unwrap()
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

/// Simulated time waits for the arm's thread; real time does not.
#[test]
fn an_arms_thread_has_real_time_priority_where_granted_and_time_is_real() {
    let may = std::thread::spawn(|| set_realtime_priority().is_ok())
        .join()
        .unwrap();
    for (clock, ahead) in [(NodeClock::real(), may), (NodeClock::simulated(), false)] {
        assert_eq!(Bench::with(clock).motion.snapshot().is_ahead, ahead);
    }
}

/// A stop is requested, and before the arm's thread has received it a call takes its permit and
/// counts that stop as one it has seen.
#[tokio::test]
async fn a_permit_from_before_a_stop_begins_no_motion_after_it() {
    let bench = Bench::new();
    let proof = bench.proof(bench.permit());
    let start_rad = bench.sim.true_joints();
    let ticket = bench.motion.stop(ActorRank::Planner, false);
    let seen_stops = bench.motion.stops_requested();
    assert!(bench.motion.stopped(ticket).await.unwrap().verified);
    let outcome = bench.motion.run(proof, seen_stops).await.unwrap();
    assert!(matches!(outcome, MotionOutcome::Refused(_)), "{outcome:?}");
    assert!(bench.sim.true_joints().distance_max(&start_rad) < 0.01);
}

/// If each stop woke the thread for a tick of its own, frames would come too early and then too late,
/// until the readings were too old to go on.
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
enum LinkBehaviour {
    Works,
    Hangs,
    Panics,
}

/// A link that can be made to hang or to panic.
struct FaultyLink {
    inner: MemoryLink<ArmSimulator>,
    behaviour: Arc<(std::sync::Mutex<LinkBehaviour>, std::sync::Condvar)>,
}

impl ByteLink for FaultyLink {
    fn send<'a>(&'a mut self, bytes: &'a [u8]) -> link::LinkFuture<'a, ()> {
        let (behaviour, changed) = &*self.behaviour;
        let mut now = behaviour.lock().unwrap();
        while *now == LinkBehaviour::Hangs {
            now = changed.wait(now).unwrap();
        }
        let panics = *now == LinkBehaviour::Panics;
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

type LinkControl = Arc<(std::sync::Mutex<LinkBehaviour>, std::sync::Condvar)>;

fn faulty(clock: NodeClock, permits: PermitRegistry) -> (Bench, LinkControl) {
    let scene = SceneLibrary::new(None).scene("default", None).unwrap();
    let sim = ArmSimulator::new(&scene.arm, &scene.rest_rad);
    let device = sim.clone();
    let behaviour: LinkControl = Arc::new((
        std::sync::Mutex::new(LinkBehaviour::Works),
        std::sync::Condvar::new(),
    ));
    let control = Arc::clone(&behaviour);
    let open: PortOpener = Box::new(move |clock| {
        let inner = MemoryLink::new(device.clone(), clock, "rough").map_err(LinkError::Read)?;
        let behaviour = Arc::clone(&behaviour);
        Ok(Box::new(FaultyLink { inner, behaviour }) as Box<dyn ByteLink>)
    });
    let arm = Arc::clone(&scene.arm);
    let motion = MotionHandle::start(arm, clock, Arc::new(permits), open).unwrap();
    (Bench { scene, sim, motion }, control)
}

fn set_behaviour(control: &LinkControl, behaviour: LinkBehaviour) {
    *control.0.lock().unwrap() = behaviour;
    control.1.notify_all();
}

async fn pause(clock: &NodeClock, ms: u64) {
    let until = clock.now().after(Duration::from_millis(ms));
    clock.alarm().unwrap().until(until).await.unwrap();
}

#[tokio::test]
async fn an_arms_thread_that_hangs_feeds_no_watchdog() {
    use std::sync::atomic::{AtomicU64, Ordering};
    let clock = NodeClock::real();
    let (bench, control) = faulty(clock.clone(), PermitRegistry::everything());
    let beats = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&beats);
    bench.motion.set_heartbeat(Box::new(move || {
        counter.fetch_add(1, Ordering::SeqCst);
    }));
    while beats.load(Ordering::SeqCst) < 3 {
        pause(&clock, 10).await;
    }
    set_behaviour(&control, LinkBehaviour::Hangs);
    pause(&clock, 200).await;
    let beats_before = beats.load(Ordering::SeqCst);
    pause(&clock, 400).await;
    assert_eq!(beats.load(Ordering::SeqCst), beats_before);
    set_behaviour(&control, LinkBehaviour::Works);
    while beats.load(Ordering::SeqCst) == beats_before {
        pause(&clock, 10).await;
    }
}

#[tokio::test]
async fn a_panic_on_the_arms_thread_is_a_fault() {
    let (bench, control) = faulty(NodeClock::simulated_at(RATE), PermitRegistry::everything());
    set_behaviour(&control, LinkBehaviour::Panics);
    let proof = bench.proof(bench.permit());
    let ended = bench.motion.run(proof, 0).await;
    assert!(ended.is_err(), "{ended:?}");
    bench.until(|s| s.state == MotionState::Faulted).await;
    let latched = bench.motion.permits().latched();
    assert!(matches!(latched, Some(StopLatch::Fault(_))), "{latched:?}");
    let ticket = bench.motion.stop(ActorRank::Planner, false);
    assert_eq!(bench.motion.stopped(ticket).await, None);
}

/// A panic not of the link, but in the loop itself, in the middle of a motion.
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
    bench.until(|s| s.state == MotionState::Faulted).await;
    let latched = bench.motion.permits().latched();
    assert!(matches!(latched, Some(StopLatch::Fault(_))), "{latched:?}");
    let stands = bench.sim.true_joints();
    pause(bench.motion.clock(), 500).await;
    assert!(bench.sim.true_joints().distance_max(&stands) < 0.05);
    let now = bench.motion.clock().now();
    assert!(bench.motion.permits().ask(&bench.scene, now).is_err());
}

impl Bench {
    /// Returns the default drawing, allowed by `permit`.
    fn drawing(&self, permit: MotionPermit) -> CheckedTrajectory {
        let plan = plan::draw(&self.scene, &self.start_rad(), &SilentObserver);
        self.check(plan.unwrap().trajectory, permit)
    }

    fn height_mm(&self) -> f64 {
        let scene = &self.scene;
        let tip =
            scene.arm.chain.forward(&self.sim.true_joints()) * scene.pens.first().unwrap().tip_m;
        scene.surface.project(&tip).height_mm
    }

    async fn until(&self, condition: impl FnMut(&Snapshot) -> bool) -> Snapshot {
        let mut snapshots = self.motion.watch();
        snapshots.wait_for(condition).await.unwrap().clone()
    }
}

/// Makes the second servo read so many counts from where its joint is.
fn shift_reading(sim: &ArmSimulator, arm: &ArmModel, counts: i32) {
    let (joint, servo) = arm.servos().nth(1).unwrap();
    let ticks = servo.ticks(*sim.true_joints().get(joint).unwrap());
    sim.break_it(SimulatedFault::Position {
        id: servo.id,
        word: Some(u16::try_from(ticks + counts).unwrap()),
    });
}

fn draws(snapshot: &Snapshot) -> bool {
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
    let MotionOutcome::Faulted(reason) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(
        reason.contains("too hot") && reason.contains("elbow_flex"),
        "{reason}"
    );
    assert!(bench.height_mm() > bench.scene.heights.lift_mm - 1.0);
    // No stroke begins, and going to rest is possible.
    let permit = bench.reset_permit();
    let drawing = bench.motion.run(
        bench.drawing(permit.clone()),
        bench.motion.stops_requested(),
    );
    assert!(matches!(drawing.await.unwrap(), MotionOutcome::Refused(_)));
    let parked = bench
        .motion
        .run(bench.proof(permit), bench.motion.stops_requested());
    let parked = parked.await.unwrap();
    assert!(
        matches!(parked, MotionOutcome::Reached { .. }),
        "{parked:?}"
    );
}

impl Bench {
    fn reset_permit(&self) -> MotionPermit {
        let now = self.motion.clock().now();
        let permits = self.motion.permits();
        permits
            .ask_reset(&self.scene, ActorRank::Operator, now)
            .unwrap()
    }
}

#[tokio::test]
async fn a_stop_of_a_held_motion_says_that_it_was_held() {
    let (bench, _) = faulty(NodeClock::simulated_at(RATE), PermitRegistry::everything());
    let mut outcome = bench.motion.run(bench.drawing(bench.permit()), 0);
    bench.until(draws).await;
    bench.motion.hold(HoldAt::Once).await.unwrap().unwrap();
    bench.until(|s| s.state == MotionState::Held).await;
    let ticket = bench.motion.stop(ActorRank::Operator, false);
    let report = bench.motion.stopped(ticket).await.unwrap();
    assert!(report.verified && report.was_held, "{report:?}");
    let ended = (&mut outcome).await.unwrap();
    assert!(matches!(ended, MotionOutcome::Stopped(_)), "{ended:?}");
    let ticket = bench.motion.stop(ActorRank::Operator, false);
    let report = bench.motion.stopped(ticket).await.unwrap();
    assert!(report.verified && !report.was_held, "{report:?}");
}

/// A permit for little more than the motion's length expires while the motion is held; once it is
/// renewed the motion goes on, and when it expires again, the motion is held at the end of its stroke.
#[tokio::test]
async fn an_expired_permit_holds_at_the_strokes_end() {
    let (bench, _) = faulty(NodeClock::simulated_at(RATE), PermitRegistry::none());
    let (permits, clock) = (bench.motion.permits(), bench.motion.clock());
    let lasts = Duration::from_secs(40);
    permits
        .enable(&bench.scene, clock.now(), Some(lasts), 0)
        .unwrap();
    let mut outcome = bench.motion.run(bench.drawing(bench.permit()), 0);
    bench.until(draws).await;
    bench.motion.hold(HoldAt::Once).await.unwrap().unwrap();
    let first = bench.until(|s| s.state == MotionState::Held).await;
    assert!(bench.height_mm() > bench.scene.heights.lift_mm - 1.0);
    clock.jump_to(clock.now().after(lasts));
    assert!(permits.ask(&bench.scene, clock.now()).is_err());
    // Readings from before the jump are old now; resuming reads first.
    permits
        .enable(
            &bench.scene,
            clock.now(),
            Some(Duration::from_millis(400)),
            0,
        )
        .unwrap();
    let permit = bench.permit();
    bench.motion.resume(permit).await.unwrap().unwrap();
    // Simulated time passes fast: a state that lasts less than a second may not be seen.
    let is_held_later = |snapshot: &Snapshot| {
        let at = snapshot.progress.as_ref().map(|at| at.sample);
        snapshot.state == MotionState::Held && at > first.progress.as_ref().map(|at| at.sample)
    };
    let held = bench.until(is_held_later).await;
    assert!(
        held.progress
            .is_some_and(|at| at.doing != plan::SpanKind::Draw),
        "{held:?}"
    );
    assert!(bench.height_mm() > bench.scene.heights.lift_mm - 1.0);
    permits
        .enable(&bench.scene, clock.now(), None, permits.orders_given())
        .unwrap();
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
    bench.until(|s| !s.energised).await;
    let latched = bench.motion.permits().latched();
    assert_eq!(latched, Some(StopLatch::Stopped(ActorRank::Operator)));
    let reset = bench.motion.run(
        bench.proof(bench.reset_permit()),
        bench.motion.stops_requested(),
    );
    let reset = reset.await.unwrap();
    assert!(matches!(reset, MotionOutcome::Reached { .. }), "{reset:?}");
}

/// The arm stops even if a reader is suspended while it holds a snapshot.
#[tokio::test]
async fn a_suspended_reader_does_not_delay_a_stop() {
    use std::sync::atomic::{AtomicU64, Ordering};
    let bench = Bench::with(NodeClock::real());
    let clock = bench.motion.clock().clone();
    let beats = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&beats);
    bench.motion.set_heartbeat(Box::new(move || {
        counter.fetch_add(1, Ordering::SeqCst);
    }));
    let ended = bench.motion.run(bench.proof(bench.permit()), 0);
    bench
        .until(|s| s.progress.is_some_and(|at| at.sample > 20))
        .await;
    let snapshots = bench.motion.watch();
    let borrowed = snapshots.borrow();
    let ticket = bench.motion.stop(ActorRank::Planner, false);
    let (before, mut still_ticks) = (beats.load(Ordering::SeqCst), 0);
    let mut at = bench.sim.true_joints();
    while beats.load(Ordering::SeqCst) < before + 100 || still_ticks < 10 {
        pause(&clock, 20).await;
        let now = bench.sim.true_joints();
        still_ticks = if now.distance_max(&at) < 1e-3 {
            still_ticks + 1
        } else {
            0
        };
        at = now;
    }
    drop(borrowed);
    assert!(bench.motion.stopped(ticket).await.unwrap().verified);
    assert!(matches!(ended.await.unwrap(), MotionOutcome::Stopped(_)));
}

/// Without the reason the arm would stay away in silence.
#[tokio::test]
async fn a_warning_says_why_a_port_is_not_reopened_until_it_is() {
    let scene = SceneLibrary::new(None).scene("default", None).unwrap();
    let sim = ArmSimulator::new(&scene.arm, &scene.rest_rad);
    let missing = Arc::new(std::sync::Mutex::new(None::<&str>));
    let (device, missing_path) = (sim.clone(), Arc::clone(&missing));
    let open: PortOpener = Box::new(move |clock| {
        if let Some(path) = *missing_path.lock().unwrap() {
            let path = path.to_owned();
            return Err(LinkError::Missing { path });
        }
        let link = MemoryLink::new(device.clone(), clock, "port").map_err(LinkError::Read)?;
        Ok(Box::new(link) as Box<dyn ByteLink>)
    });
    let permits = Arc::new(PermitRegistry::everything());
    let arm = Arc::clone(&scene.arm);
    let motion = MotionHandle::start(arm, NodeClock::real(), permits, open).unwrap();
    let mut snapshots = motion.watch();
    let warns_of = |text: &'static str| {
        move |snapshot: &Snapshot| snapshot.warnings.iter().any(|it| it.contains(text))
    };
    *missing.lock().unwrap() = Some("/dev/first");
    sim.break_it(SimulatedFault::Unplug);
    let first = snapshots.wait_for(warns_of("/dev/first")).await.unwrap();
    assert_eq!(first.state, MotionState::Detached);
    drop(first);
    *missing.lock().unwrap() = Some("/dev/second");
    let second = snapshots.wait_for(warns_of("/dev/second")).await.unwrap();
    assert!(!warns_of("/dev/first")(&second), "{:?}", second.warnings);
    drop(second);
    *missing.lock().unwrap() = None;
    sim.break_it(SimulatedFault::Plug);
    let open = |snapshot: &Snapshot| snapshot.state != MotionState::Detached;
    let opened = snapshots.wait_for(open).await.unwrap();
    assert!(
        !warns_of("cannot open the port again")(&opened),
        "{:?}",
        opened.warnings
    );
}
