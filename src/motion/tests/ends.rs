//! Tests motions that an obstacle, a hung thread or a sleeping machine interrupts.

use std::sync::Mutex;

use super::*;
use base::units::JointVector;
use permit::{OrderFiles, RecordedOrders};

/// Three degrees: the lag at which a servo pushes with its full torque.
const PRESSING_RAD: f64 = 0.0524;

impl Bench {
    /// Returns a motion to one pose, from where the arm is.
    fn move_to(&self, pose: JointVector) -> CheckedTrajectory {
        let plan = plan::go_to(&self.scene, &self.start_rad(), &[pose], &SilentObserver);
        self.check(plan.unwrap().trajectory, self.permit())
    }

    /// Moves to the ready pose and blocks the shoulder short of the rest pose.
    async fn block_before_rest(&self, short_rad: f64) {
        let ready = self.motion.run(self.move_to(self.scene.ready_rad), 0);
        let ready = ready.await.unwrap();
        assert!(matches!(ready, MotionOutcome::Reached { .. }), "{ready:?}");
        let rest = *self.scene.rest_rad.get(1).unwrap();
        let side = (self.sim.true_joints().get(1).unwrap() - rest).signum();
        self.sim.break_it(SimulatedFault::Block {
            joint: 1,
            at_rad: Some(rest + side * short_rad),
        });
    }

    /// Returns the angle by which the arm springs when its obstacle is removed.
    fn released_rad(&self) -> f64 {
        let held = self.sim.true_joints();
        self.sim.break_it(SimulatedFault::Block {
            joint: 1,
            at_rad: None,
        });
        let later = self.motion.clock().now().after(Duration::from_secs(2));
        self.sim.advance(later);
        self.sim.true_joints().distance_max(&held)
    }

    /// Calls `act` once in the middle of a motion, at the tick that `when` chooses.
    fn once_at_tick(
        &self,
        mut when: impl FnMut(&JointVector) -> bool + Send + 'static,
        act: impl FnOnce(&ArmSimulator, &StopSignal, &NodeClock) + Send + 'static,
    ) {
        let (sim, stop) = (self.sim.clone(), Arc::clone(&self.motion.shared.stop));
        let (clock, act) = (self.motion.clock().clone(), Mutex::new(Some(act)));
        let when = Mutex::new(move |true_rad: &JointVector| when(true_rad));
        self.motion.set_heartbeat(Box::new(move || {
            if act.lock().unwrap().is_some() && (when.lock().unwrap())(&sim.true_joints()) {
                let act = act.lock().unwrap().take().unwrap();
                act(&sim, &stop, &clock);
            }
        }));
    }
}

/// Returns a condition that holds once the shoulder has moved and then stood for `ticks`.
fn standing_for(ticks: u32) -> impl FnMut(&JointVector) -> bool {
    let (mut previous, mut moved, mut still) = (None::<f64>, false, 0);
    move |true_rad| {
        let at = *true_rad.get(1).unwrap();
        let step = previous.replace(at).map_or(0.0, |last| (last - at).abs());
        moved |= step > 1e-3;
        still = if moved && step < 1e-6 { still + 1 } else { 0 };
        still == ticks
    }
}

/// A reader of the latches that gets no processor time delays no frame.
#[tokio::test]
#[expect(
    clippy::disallowed_methods,
    reason = "the reader is suspended in real time, not on the arm's clock"
)]
async fn a_stop_brakes_while_a_reader_holds_the_latches() {
    let bench = Bench::new();
    let reply = bench.motion.run(bench.move_to(bench.scene.ready_rad), 0);
    let mut snapshots = bench.motion.watch();
    let moving = |snapshot: &Snapshot| snapshot.progress.is_some_and(|at| at.sample > 20);
    snapshots.wait_for(moving).await.unwrap();
    bench.motion.permits().while_looked_at(|| {
        let cycles = || bench.motion.snapshot().counts.cycles;
        let before = cycles();
        bench.motion.stop(ActorRank::Planner, false);
        // Two seconds of the arm's time.
        std::thread::sleep(Duration::from_secs(2) / RATE);
        assert!(cycles() > before + 20, "{} cycles", cycles() - before);
    });
    let outcome = reply.await.unwrap();
    let MotionOutcome::Stopped(report) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(report.verified, "{report:?}");
    let latched = bench.motion.permits().latched();
    assert!(matches!(
        latched,
        Some(StopLatch::Stopped(ActorRank::Planner))
    ));
}

#[tokio::test]
async fn a_joint_that_stalls_at_the_end_of_a_motion_is_let_go() {
    for short_rad in [0.04, 0.12, 0.3] {
        let bench = Bench::new();
        bench.block_before_rest(short_rad).await;
        let outcome = bench.motion.run(bench.move_to(bench.scene.rest_rad), 0);
        let outcome = outcome.await.unwrap();
        assert!(matches!(outcome, MotionOutcome::Faulted(_)), "{outcome:?}");
        let released_rad = bench.released_rad();
        assert!(
            released_rad < PRESSING_RAD,
            "{short_rad}: it springs {released_rad} rad after {outcome:?}"
        );
    }
}

#[tokio::test]
async fn a_stop_against_an_obstacle_leaves_nothing_that_springs() {
    // Later ones come shortly before the joint counts as stalled, which it then does while the arm stops.
    let moments = [10, 20, 24, 26, 28, 30].map(|ticks| [(ticks, true), (ticks, false)]);
    for (ticks, emergency) in moments.into_iter().flatten() {
        let bench = Bench::new();
        bench.block_before_rest(0.3).await;
        bench.once_at_tick(standing_for(ticks), move |_, stop, clock| {
            stop.request(ActorRank::Operator, emergency, clock.now());
        });
        let outcome = bench.motion.run(bench.move_to(bench.scene.rest_rad), 0);
        let outcome = outcome.await.unwrap();
        let report = bench.motion.stopped(1).await.unwrap();
        assert!(report.verified && !report.lifted, "{report:?} {outcome:?}");
        let released_rad = bench.released_rad();
        assert!(
            released_rad < PRESSING_RAD,
            "{ticks}, {emergency}: it springs {released_rad} rad after {outcome:?}"
        );
    }
}

/// From some tick on every joint reads the same position: it does not follow.
#[tokio::test]
async fn samples_that_were_only_sent_are_neither_lifted_nor_reached() {
    let bench = Bench::new();
    let snapshots = bench.motion.watch();
    let servos: Vec<_> = bench.scene.arm.servos().collect();
    let mut ticks = 0;
    let frozen = Arc::new(Mutex::new(None));
    let (frozen_at, release) = (Arc::clone(&frozen), MotionRelease::whole());
    let (watched, mut sim) = (release.clone(), Some(bench.sim.clone()));
    let when = move |true_rad: &JointVector| {
        ticks += u32::from(draws(&snapshots.borrow()));
        if ticks == 30
            && let Some(sim) = sim.take()
        {
            *frozen_at.lock().unwrap() = Some(watched.at());
            for (joint, servo) in &servos {
                let at = servo.ticks(true_rad.get(*joint).copied().unwrap());
                sim.break_it(SimulatedFault::Position {
                    id: servo.id,
                    word: Some(u16::try_from(at).unwrap()),
                });
            }
        }
        ticks == 45
    };
    bench.once_at_tick(when, |_, stop, clock| {
        stop.request(ActorRank::Planner, false, clock.now());
    });
    let proof = bench.drawing(bench.permit());
    let outcome = bench.motion.run_released(proof, 0, release.clone());
    let MotionOutcome::Stopped(report) = outcome.await.unwrap() else {
        panic!("not stopped");
    };
    assert!(report.verified && !report.lifted, "{report:?}");
    let (frozen, reached, sent) = (
        frozen.lock().unwrap().unwrap(),
        release.reached(),
        release.at(),
    );
    assert!(sent >= frozen + 14, "{sent} was sent after {frozen}");
    assert!(
        reached <= frozen + 1 && reached + 15 > frozen,
        "{reached} of {frozen}"
    );
}

#[tokio::test]
async fn samples_that_the_arm_followed_are_reached() {
    let bench = Bench::new();
    let release = MotionRelease::whole();
    let proof = bench.drawing(bench.permit());
    let last = proof.trajectory().samples.len() - 1;
    let outcome = bench.motion.run_released(proof, 0, release.clone());
    assert!(matches!(
        outcome.await.unwrap(),
        MotionOutcome::Reached { .. }
    ));
    assert_eq!((release.reached(), release.at()), (last, last));
}

#[tokio::test]
async fn an_emergency_stop_is_latched_without_a_running_thread() {
    let assert_latched = |bench: &Bench| {
        let latched = bench.motion.permits().latched();
        assert!(
            matches!(latched, Some(StopLatch::Emergency(_))),
            "{latched:?}"
        );
    };
    let (bench, control) = faulty(NodeClock::simulated_at(RATE), PermitRegistry::everything());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("emergency-stop-arm.port");
    let files = OrderFiles::of_arm(folder.path(), "arm", true);
    bench
        .motion
        .permits()
        .keep_orders_in(files, RecordedOrders::None, Box::new(|_| {}))
        .unwrap();
    set_behaviour(&control, LinkBehaviour::Panics);
    let ended = bench.motion.run(bench.proof(bench.permit()), 0).await;
    assert!(ended.is_err(), "{ended:?}");
    let ticket = bench.motion.stop(ActorRank::Operator, true);
    assert_latched(&bench);
    assert_eq!(bench.motion.stopped(ticket).await, None);
    bench.motion.permits().orders_are_kept().await.unwrap();
    assert!(file.exists());
}

#[tokio::test]
async fn a_thread_that_hangs_leaves_no_stop_unanswered() {
    let (bench, control) = faulty(NodeClock::real(), PermitRegistry::everything());
    set_behaviour(&control, LinkBehaviour::Hangs);
    pause(&NodeClock::real(), 200).await;
    let ticket = bench.motion.stop(ActorRank::Operator, true);
    let latched = bench.motion.permits().latched();
    assert!(
        matches!(latched, Some(StopLatch::Emergency(_))),
        "{latched:?}"
    );
    assert_eq!(bench.motion.stopped(ticket).await, None);
    // Once it runs again, it reports that the stop took too long.
    set_behaviour(&control, LinkBehaviour::Works);
    assert!(!bench.motion.stopped(ticket).await.unwrap().verified);
}

#[tokio::test]
async fn an_arm_stands_and_loses_its_permits_after_the_machine_slept() {
    let bench = Bench::new();
    let outcome = bench.motion.run(bench.drawing(bench.permit()), 0);
    bench.until(draws).await;
    let clock = bench.motion.clock();
    clock.sleep_through(Duration::from_secs(3600));
    let MotionOutcome::Faulted(reason) = outcome.await.unwrap() else {
        panic!("it went on");
    };
    assert!(reason.contains("slept for 3600"), "{reason}");
    assert!(!bench.motion.permits().any_enabled(clock.now()));
    // It stands where it was, and lifts nothing by itself.
    assert!(bench.height_mm() < 1.0, "{} mm", bench.height_mm());
}

/// An arm that the node brings to rest by its own permit keeps its fault, and gets no torque.
#[tokio::test]
async fn the_nodes_own_permit_switches_no_torque_on_and_clears_no_fault() {
    let bench = Bench::new();
    let node_permit = || {
        let now = bench.motion.clock().now();
        bench
            .motion
            .permits()
            .ask_reset(&bench.scene, ActorRank::Node, now)
    };
    let without_torque = bench.motion.run(bench.proof(node_permit().unwrap()), 0);
    let without_torque = without_torque.await.unwrap();
    assert!(
        matches!(&without_torque, MotionOutcome::Refused(reason) if reason.to_string().contains("torque")),
        "{without_torque:?}"
    );
    assert!(!bench.motion.snapshot().energised);
    let outcome = bench.motion.run(bench.drawing(bench.permit()), 0);
    bench.until(draws).await;
    bench.sim.break_it(SimulatedFault::Heat {
        id: 3,
        temperature_c: 67.0,
    });
    let outcome = outcome.await.unwrap();
    assert!(matches!(outcome, MotionOutcome::Faulted(_)), "{outcome:?}");
    assert!(matches!(
        bench.motion.permits().latched(),
        Some(StopLatch::Hot(_))
    ));
    let parked = bench.motion.run(bench.proof(node_permit().unwrap()), 0);
    let parked = parked.await.unwrap();
    assert!(
        matches!(parked, MotionOutcome::Reached { .. }),
        "{parked:?}"
    );
    let after = bench.motion.snapshot();
    assert_eq!(after.state, MotionState::Faulted);
    assert!(after.fault.unwrap().contains("too hot"));
}

/// The reading that begins a motion is the last to report a loss of torque that the previous one
/// suspected.
#[tokio::test]
async fn torque_lost_as_a_motion_begins_is_a_fault() {
    for ticks in 0..5_u32 {
        // A simulated arm is read while it stands only where time passes by itself.
        let bench = Bench::with(NodeClock::real());
        let near_pose = |joint, at| if joint == 0 { at + 0.03 } else { at };
        let near_pose = bench.move_to(bench.scene.rest_rad.map(near_pose));
        let first = bench.motion.run(near_pose, 0);
        let first = first.await.unwrap();
        assert!(matches!(first, MotionOutcome::Reached { .. }), "{first:?}");
        let (done, outcome) = tokio::sync::oneshot::channel();
        let run = MotionCommand::Run {
            proof: Box::new(bench.move_to(bench.scene.rest_rad)),
            seen_stops: 0,
            release: MotionRelease::whole(),
            readings: Vec::new(),
            done,
        };
        let (sim, shared) = (bench.sim.clone(), Arc::clone(&bench.motion.shared));
        let (run, beats) = (Mutex::new(Some(run)), Mutex::new(0));
        bench.motion.set_heartbeat(Box::new(move || {
            let mut beats = beats.lock().unwrap();
            if *beats == 0 {
                sim.break_it(SimulatedFault::PowerCycle(3));
            }
            if *beats == ticks {
                let _ = shared.commands.put(run.lock().unwrap().take().unwrap());
                shared.stop.wake();
            }
            *beats += 1;
        }));
        let outcome = outcome.await.unwrap();
        let fault = bench.motion.snapshot().fault.clone();
        assert!(fault.is_some(), "after {ticks} ticks: {outcome:?}");
    }
}

/// A trajectory of a longer period would be driven that many times faster than it was judged.
#[tokio::test]
async fn a_motion_of_another_period_is_not_begun() {
    let bench = Bench::new();
    let poses = [bench.scene.ready_rad];
    let plan = plan::go_to(&bench.scene, &bench.start_rad(), &poses, &SilentObserver);
    let mut slow = plan.unwrap().trajectory;
    slow.period *= 2;
    let proof = bench.check(slow, bench.permit());
    let outcome = bench.motion.run(proof, 0).await.unwrap();
    assert!(
        matches!(outcome, MotionOutcome::Refused(MotionError::OtherPeriod(_))),
        "{outcome:?}"
    );
}

impl Bench {
    fn shift_reading(&self, counts: i32) {
        shift_reading(&self.sim, self.motion.arm(), counts);
    }
}

/// The joint that does not come to rest must be named, and torque off must work behind a stop.
#[tokio::test]
async fn a_joint_that_hunts_is_named_and_can_be_let_go() {
    let bench = Arc::new(Bench::with(NodeClock::real()));
    let (hunting, beats) = (Arc::downgrade(&bench), Mutex::new(0));
    bench.motion.set_heartbeat(Box::new(move || {
        let mut beats = beats.lock().unwrap();
        *beats += 1;
        if let Some(bench) = hunting.upgrade() {
            bench.shift_reading(if *beats % 4 < 2 { 3 } else { -3 });
        }
    }));
    let near_pose = |joint, at| if joint == 0 { at + 0.03 } else { at };
    let outcome = bench
        .motion
        .run(bench.move_to(bench.scene.rest_rad.map(near_pose)), 0);
    let outcome = outcome.await.unwrap();
    let MotionOutcome::Faulted(reason) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(reason.starts_with("shoulder_lift does"), "{reason}");
    let ticket = bench.motion.stop(ActorRank::Operator, false);
    bench.motion.stopped(ticket).await.unwrap();
    let released = bench.motion.release().await.unwrap().unwrap();
    assert_eq!(released.off.len(), 6);
}

/// Neither is said to stand: an arm that drifts off its pose, nor one whose stop was not read back.
#[tokio::test]
async fn an_arm_that_leaves_its_pose_is_a_fault_and_never_stands() {
    let bench = Bench::with(NodeClock::real());
    let near_pose = |joint, at| if joint == 0 { at + 0.03 } else { at };
    let outcome = bench
        .motion
        .run(bench.move_to(bench.scene.rest_rad.map(near_pose)), 0);
    let outcome = outcome.await.unwrap();
    assert!(
        matches!(outcome, MotionOutcome::Reached { .. }),
        "{outcome:?}"
    );
    assert!(!bench.motion.snapshot().is_unsteady);
    let mut alarm = bench.motion.clock().alarm().unwrap();
    let mut was_unsteady = false;
    for counts in 1..=60 {
        bench.shift_reading(counts);
        let soon = bench.motion.clock().now().after(Duration::from_millis(20));
        alarm.until(soon).await.unwrap();
        was_unsteady |= bench.motion.snapshot().is_unsteady;
    }
    assert!(was_unsteady);
    let mut snapshots = bench.motion.watch();
    let faulted = |now: &Snapshot| now.state == MotionState::Faulted;
    let fault = snapshots.wait_for(faulted).await.unwrap().fault.clone();
    let fault = fault.unwrap();
    assert!(fault.contains("shoulder_lift moved by 5."), "{fault}");
}

#[tokio::test]
async fn an_arm_that_is_pushed_while_its_pen_is_changed_has_no_fault() {
    let bench = Bench::with(NodeClock::real());
    let near_pose = |joint, at| if joint == 0 { at + 0.03 } else { at };
    let outcome = bench
        .motion
        .run(bench.move_to(bench.scene.rest_rad.map(near_pose)), 0);
    outcome.await.unwrap();
    bench.motion.permits().begin_pen_change("pen 2 is awaited");
    let mut alarm = bench.motion.clock().alarm().unwrap();
    for counts in [100, 0] {
        bench.shift_reading(counts);
        let later = bench.motion.clock().now();
        let later = later.after(Duration::from_millis(1200));
        alarm.until(later).await.unwrap();
    }
    assert_eq!(bench.motion.snapshot().fault, None);
}

#[tokio::test]
async fn an_arm_whose_stop_was_not_read_back_is_not_said_to_stand() {
    let bench = Bench::new();
    let outcome = bench.motion.run(bench.proof(bench.permit()), 0);
    let outcome = outcome.await.unwrap();
    assert!(
        matches!(outcome, MotionOutcome::Reached { .. }),
        "{outcome:?}"
    );
    bench.sim.break_it(SimulatedFault::Silence(2));
    let stop = async || {
        // Simulated time stands still while the arm does, and a reading must be newer than the stop.
        let clock = bench.motion.clock();
        clock.jump_to(clock.now().after(Duration::from_millis(50)));
        let ticket = bench.motion.stop(ActorRank::Operator, false);
        bench.motion.stopped(ticket).await.unwrap().verified
    };
    assert!(!stop().await);
    assert!(bench.motion.snapshot().is_unsteady);
    bench.sim.break_it(SimulatedFault::Speak(2));
    assert!(stop().await);
    assert!(!bench.motion.snapshot().is_unsteady);
}
