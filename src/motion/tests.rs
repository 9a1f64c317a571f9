//! The arm's thread against the simulated arm, over memory and a simulated clock.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failing test may panic"
)]

use super::*;
use crate::gate;
use crate::link::memory::MemoryLink;
use crate::permit::{Latch, Permit};
use crate::plan::{self, Plan};
use crate::scene::{Library, Scene};
use crate::sim::{Fault, Simulator};

struct Wanted;

impl plan::Watch for Wanted {
    fn progress(&self, _: usize, _: usize) {}
    fn cancelled(&self) -> bool {
        false
    }
}

struct Bench {
    scene: Arc<Scene>,
    sim: Simulator,
    motion: Motion,
}

impl Bench {
    fn new() -> Self {
        Self::with(Clock::simulated())
    }

    fn with(clock: Clock) -> Self {
        let scene = Library::new(None).scene("default", None).unwrap();
        let sim = Simulator::new(&scene.arm, &scene.rest_rad);
        let device = sim.clone();
        let open: Opener = Box::new(move |clock| {
            let link = MemoryLink::new(device.clone(), clock, "bench").map_err(LinkError::Read)?;
            Ok(Box::new(link) as Box<dyn Link>)
        });
        let permits = Arc::new(Permits::everything());
        let arm = Arc::clone(&scene.arm);
        let motion = Motion::start(arm, clock, permits, open).unwrap();
        Self { scene, sim, motion }
    }

    fn permit(&self) -> Permit {
        let now = self.motion.clock().now();
        self.motion.permits().ask(&self.scene, now).unwrap()
    }

    /// To the ready pose and back, allowed by `permit`.
    fn proof(&self, permit: Permit) -> CheckedTrajectory {
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
    assert!(matches!(outcome, Outcome::Reached { .. }), "{outcome:?}");
    assert!(bench.sim.truth().distance_max(&bench.scene.rest_rad) < 0.01);
}

/// A stop is asked for, and before the arm's thread has heard of it a call takes its leave to
/// move and counts that stop as one it has seen.
#[tokio::test]
async fn a_permit_from_before_a_stop_begins_no_motion_after_it() {
    let bench = Bench::new();
    let proof = bench.proof(bench.permit());
    let before = bench.sim.truth();
    let ticket = bench.motion.stop(Who::Planner, false);
    let seen_stops = bench.motion.stops_asked();
    assert!(bench.motion.stopped(ticket).await.unwrap().verified);
    let outcome = bench.motion.run(proof, seen_stops).await.unwrap();
    assert!(matches!(outcome, Outcome::Refused(_)), "{outcome:?}");
    assert!(bench.sim.truth().distance_max(&before) < 0.01);
}

/// Each stop woke the thread for a tick of its own and put off the one after: frames came too
/// early, then too late, until the readings were too old to go on.
#[tokio::test]
async fn many_stops_in_a_row_are_one_stop() {
    let bench = Bench::with(Clock::real());
    let answer = bench
        .motion
        .run(bench.proof(bench.permit()), bench.motion.stops_asked());
    let mut snapshots = bench.motion.watch();
    let moving = |snapshot: &Snapshot| snapshot.progress.is_some_and(|at| at.sample > 20);
    snapshots.wait_for(moving).await.unwrap();
    let mut alarm = bench.motion.clock().alarm().unwrap();
    for _ in 0..40 {
        bench.motion.stop(Who::Planner, false);
        let soon = bench.motion.clock().now().after(Duration::from_millis(1));
        alarm.until(soon).await.unwrap();
    }
    let outcome = answer.await.unwrap();
    let Outcome::Stopped(report) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(report.verified, "{report:?}");
    assert_eq!(bench.motion.snapshot().fault, None);
    assert!(matches!(
        bench.motion.permits().latched(),
        Some(Latch::Stopped(Who::Planner))
    ));
}

#[tokio::test]
async fn a_fault_is_still_one_after_a_stop() {
    let bench = Bench::new();
    let at = bench.sim.truth().get(1).copied();
    bench.sim.break_it(Fault::Block {
        joint: 1,
        at_rad: at,
    });
    let outcome = bench
        .motion
        .run(bench.proof(bench.permit()), 0)
        .await
        .unwrap();
    assert!(matches!(outcome, Outcome::Faulted(_)), "{outcome:?}");
    let ticket = bench.motion.stop(Who::Planner, false);
    assert!(bench.motion.stopped(ticket).await.unwrap().verified);
    assert_eq!(bench.motion.snapshot().state, State::Faulted);
    assert!(matches!(
        bench.motion.permits().latched(),
        Some(Latch::Fault(_))
    ));
}
