//! Ends of motions that an obstacle, a deaf thread or a sleeping machine interrupts.

use std::sync::Mutex;

use super::*;
use base::units::JointVector;

/// Three degrees: with this a servo pushes with all that it has.
const PRESSES_RAD: f64 = 0.0524;

impl Bench {
    /// To one pose, from where the arm is.
    fn way_to(&self, pose: JointVector) -> CheckedTrajectory {
        let measured = self.motion.snapshot().measured.unwrap();
        let plan = plan::go_to(&self.scene, &measured.position_rad, &[pose], &Wanted).unwrap();
        let now = self.motion.clock().now();
        gate::check(&self.scene, self.permit(), &measured, now, plan.trajectory).unwrap()
    }

    /// At its ready pose, and something holds the shoulder short of rest.
    async fn blocked_on_the_way_to_rest(&self, short_rad: f64) {
        let ready = self.motion.run(self.way_to(self.scene.ready_rad), 0);
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
    fn springs_rad(&self) -> f64 {
        let held = self.sim.true_joints();
        self.sim.break_it(SimulatedFault::Block {
            joint: 1,
            at_rad: None,
        });
        let later = self.motion.clock().now().after(Duration::from_secs(2));
        self.sim.advance(later);
        self.sim.true_joints().distance_max(&held)
    }

    /// Does something in the middle of a motion, once: at a tick that `when` chooses.
    fn at_a_tick(
        &self,
        mut when: impl FnMut(&JointVector) -> bool + Send + 'static,
        then: impl FnOnce(&ArmSimulator, &StopSignal, &NodeClock) + Send + 'static,
    ) {
        let (sim, line) = (self.sim.clone(), Arc::clone(&self.motion.shared.stop));
        let (clock, then) = (self.motion.clock().clone(), Mutex::new(Some(then)));
        let when = Mutex::new(move |truth: &JointVector| when(truth));
        self.motion.set_heartbeat(Box::new(move || {
            if then.lock().unwrap().is_some() && (when.lock().unwrap())(&sim.true_joints()) {
                let then = then.lock().unwrap().take().unwrap();
                then(&sim, &line, &clock);
            }
        }));
    }
}

/// Counts the ticks that the shoulder stood after it moved.
fn stood(ticks: u32) -> impl FnMut(&JointVector) -> bool {
    let (mut before, mut moved, mut stands) = (None::<f64>, false, 0);
    move |truth| {
        let at = *truth.get(1).unwrap();
        let far = before.replace(at).map_or(0.0, |before| (before - at).abs());
        moved |= far > 1e-3;
        stands = if moved && far < 1e-6 { stands + 1 } else { 0 };
        stands == ticks
    }
}

/// A reader of the latches that gets no processor time delays no frame.
#[tokio::test]
#[expect(
    clippy::disallowed_methods,
    reason = "whoever looks stands still, whatever the arm's clock shows"
)]
async fn a_stop_brakes_while_somebody_looks_at_what_is_latched() {
    let bench = Bench::new();
    let answer = bench.motion.run(bench.way_to(bench.scene.ready_rad), 0);
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
    let outcome = answer.await.unwrap();
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
        bench.blocked_on_the_way_to_rest(short_rad).await;
        let outcome = bench.motion.run(bench.way_to(bench.scene.rest_rad), 0);
        let outcome = outcome.await.unwrap();
        assert!(matches!(outcome, MotionOutcome::Faulted(_)), "{outcome:?}");
        let springs_rad = bench.springs_rad();
        assert!(
            springs_rad < PRESSES_RAD,
            "{short_rad}: it springs {springs_rad} rad after {outcome:?}"
        );
    }
}

#[tokio::test]
async fn an_emergency_stop_against_an_obstacle_leaves_nothing_that_springs() {
    for emergency in [true, false] {
        let bench = Bench::new();
        bench.blocked_on_the_way_to_rest(0.3).await;
        bench.at_a_tick(stood(10), move |_, line, clock| {
            line.request(ActorRank::Operator, emergency, clock.now());
        });
        let outcome = bench.motion.run(bench.way_to(bench.scene.rest_rad), 0);
        let outcome = outcome.await.unwrap();
        let report = bench.motion.stopped(1).await.unwrap();
        assert!(report.verified && !report.lifted, "{report:?} {outcome:?}");
        let springs_rad = bench.springs_rad();
        assert!(springs_rad < PRESSES_RAD, "it springs {springs_rad} rad");
    }
}

/// From some moment on every joint reads where it was then: it does not follow.
#[tokio::test]
async fn what_was_only_sent_is_neither_lifted_nor_drawn() {
    let bench = Bench::new();
    let snapshots = bench.motion.watch();
    let servos: Vec<_> = bench.scene.arm.servos().collect();
    let mut ticks = 0;
    let frozen = Arc::new(Mutex::new(None));
    let (kept, release) = (Arc::clone(&frozen), MotionRelease::whole());
    let (mine, mut breaks) = (release.clone(), Some(bench.sim.clone()));
    let when = move |truth: &JointVector| {
        ticks += u32::from(draws(&snapshots.borrow()));
        if ticks == 30
            && let Some(sim) = breaks.take()
        {
            *kept.lock().unwrap() = Some(mine.at());
            for (joint, servo) in &servos {
                let at = servo.ticks(truth.get(*joint).copied().unwrap());
                sim.break_it(SimulatedFault::Position {
                    id: servo.id,
                    word: Some(u16::try_from(at).unwrap()),
                });
            }
        }
        ticks == 45
    };
    bench.at_a_tick(when, |_, line, clock| {
        line.request(ActorRank::Planner, false, clock.now());
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
async fn what_was_followed_is_drawn() {
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
async fn an_emergency_stop_is_latched_though_nobody_hears_it() {
    let is_latched = |bench: &Bench| {
        let latched = bench.motion.permits().latched();
        assert!(
            matches!(latched, Some(StopLatch::Emergency(_))),
            "{latched:?}"
        );
    };
    let (bench, grip) = rough(NodeClock::simulated_at(RATE), PermitRegistry::everything());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("emergency-stop-arm");
    bench
        .motion
        .permits()
        .keep_emergency_in(file.clone())
        .unwrap();
    make(&grip, Wire::Panics);
    let ended = bench.motion.run(bench.proof(bench.permit()), 0).await;
    assert!(ended.is_err(), "{ended:?}");
    let ticket = bench.motion.stop(ActorRank::Operator, true);
    is_latched(&bench);
    assert_eq!(bench.motion.stopped(ticket).await, None);
    bench.motion.permits().emergency_is_kept().await.unwrap();
    assert!(file.exists());
}

#[tokio::test]
async fn a_thread_that_hangs_leaves_no_stop_unanswered() {
    let (bench, grip) = rough(NodeClock::real(), PermitRegistry::everything());
    make(&grip, Wire::Hangs);
    pause(&NodeClock::real(), 200).await;
    let ticket = bench.motion.stop(ActorRank::Operator, true);
    let latched = bench.motion.permits().latched();
    assert!(
        matches!(latched, Some(StopLatch::Emergency(_))),
        "{latched:?}"
    );
    assert_eq!(bench.motion.stopped(ticket).await, None);
    // Awake again, it says that it took too long.
    make(&grip, Wire::Works);
    assert!(!bench.motion.stopped(ticket).await.unwrap().verified);
}

#[tokio::test]
async fn a_machine_that_slept_stands_and_has_no_leave_any_more() {
    let bench = Bench::new();
    let outcome = bench.motion.run(bench.drawing(bench.permit()), 0);
    bench.until(draws).await;
    let clock = bench.motion.clock();
    clock.sleep_through(Duration::from_secs(3600));
    let MotionOutcome::Faulted(why) = outcome.await.unwrap() else {
        panic!("it went on");
    };
    assert!(why.contains("slept for 3600"), "{why}");
    assert!(!bench.motion.permits().any_enabled(clock.now()));
    // It stands where it was, and lifts nothing by itself.
    assert!(bench.height_mm() < 1.0, "{} mm", bench.height_mm());
}

/// An arm that the node brings to rest by its own permission keeps its fault, and gets no torque.
#[tokio::test]
async fn the_nodes_own_leave_switches_no_torque_on_and_mends_nothing() {
    let bench = Bench::new();
    let nodes_own = || {
        let now = bench.motion.clock().now();
        bench
            .motion
            .permits()
            .ask_reset(&bench.scene, ActorRank::Node, now)
    };
    let limp = bench.motion.run(bench.proof(nodes_own().unwrap()), 0);
    let limp = limp.await.unwrap();
    assert!(
        matches!(&limp, MotionOutcome::Refused(why) if why.to_string().contains("torque")),
        "{limp:?}"
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
    let parked = bench.motion.run(bench.proof(nodes_own().unwrap()), 0);
    let parked = parked.await.unwrap();
    assert!(
        matches!(parked, MotionOutcome::Reached { .. }),
        "{parked:?}"
    );
    let after = bench.motion.snapshot();
    assert_eq!(after.state, MotionState::Faulted);
    assert!(after.fault.unwrap().contains("too hot"));
}

/// The reading that begins a motion is the last that tells of a servo whose loss of torque the one before it suspected.
#[tokio::test]
async fn torque_that_is_lost_as_a_motion_begins_is_a_fault() {
    for ticks in 0..5_u32 {
        // A simulated arm is read while it stands only where time passes by itself.
        let bench = Bench::with(NodeClock::real());
        let near = |joint, at| if joint == 0 { at + 0.03 } else { at };
        let near = bench.way_to(bench.scene.rest_rad.map(near));
        let first = bench.motion.run(near, 0);
        let first = first.await.unwrap();
        assert!(matches!(first, MotionOutcome::Reached { .. }), "{first:?}");
        let (done, outcome) = tokio::sync::oneshot::channel();
        let run = MotionCommand::Run {
            proof: Box::new(bench.way_to(bench.scene.rest_rad)),
            seen_stops: 0,
            release: MotionRelease::whole(),
            done,
        };
        let (sim, shared) = (bench.sim.clone(), Arc::clone(&bench.motion.shared));
        let (run, passed) = (Mutex::new(Some(run)), Mutex::new(0));
        bench.motion.set_heartbeat(Box::new(move || {
            let mut passed = passed.lock().unwrap();
            if *passed == 0 {
                sim.break_it(SimulatedFault::PowerCycle(3));
            }
            if *passed == ticks {
                let _ = shared.orders.put(run.lock().unwrap().take().unwrap());
                shared.stop.wake();
            }
            *passed += 1;
        }));
        let outcome = outcome.await.unwrap();
        let fault = bench.motion.snapshot().fault.clone();
        assert!(fault.is_some(), "after {ticks} ticks: {outcome:?}");
    }
}

/// A thinned trajectory would be driven as many times faster than it was judged.
#[tokio::test]
async fn a_motion_of_another_period_is_not_begun() {
    let bench = Bench::new();
    let measured = bench.motion.snapshot().measured.unwrap();
    let poses = [bench.scene.ready_rad];
    let plan = plan::go_to(&bench.scene, &measured.position_rad, &poses, &Wanted).unwrap();
    let mut slow = plan.trajectory;
    slow.period *= 2;
    let now = bench.motion.clock().now();
    let proof = gate::check(&bench.scene, bench.permit(), &measured, now, slow).unwrap();
    let outcome = bench.motion.run(proof, 0).await.unwrap();
    assert!(
        matches!(outcome, MotionOutcome::Refused(MotionError::OtherPeriod(_))),
        "{outcome:?}"
    );
}
