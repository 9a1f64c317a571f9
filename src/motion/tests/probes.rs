//! Probes against a simulated sheet: felt, not felt, stopped, and held up by something else.

use nalgebra::Point3;

use super::*;
use base::units::JointVector;
use scene::{PROBE_DEPTH_MM, Surface};
use sim::{PaperSurface, SimPen};

struct Sheet(Surface, f64);

impl PaperSurface for Sheet {
    fn touch(&self, tip_m: [f64; 3]) -> Option<([f64; 2], f64)> {
        let seen = self.0.project(&Point3::from(tip_m));
        let lies = self.0.holds(seen.at_mm);
        lies.then_some((seen.at_mm, seen.height_mm - self.1))
    }
}

/// The sheet lies so much higher than the scene believes.
fn laid(bench: &Bench, higher_mm: f64) {
    let pen = bench.scene.pen(0).unwrap();
    let pens = vec![SimPen {
        tip_m: pen.tip_m.coords.into(),
        colour: "#000000".to_owned(),
        width_mm: 0.5,
    }];
    let sheet = Sheet(bench.scene.surface.clone(), higher_mm);
    bench.sim.place_sheet(Box::new(sheet), pens);
}

fn height_mm(bench: &Bench, joints_rad: &JointVector) -> f64 {
    let tip_m = bench.scene.pen(0).unwrap().tip_m;
    let tip = bench.scene.arm.chain.point(joints_rad, &tip_m);
    bench.scene.surface.project(&tip).height_mm
}

fn plan_of(bench: &Bench) -> plan::Trajectory {
    let measured = bench.motion.snapshot().measured.unwrap();
    let start = measured.position_rad;
    plan::probe(&bench.scene, &start, [50.0, 50.0], 0, &Wanted)
        .unwrap()
        .trajectory
}

async fn probe(bench: &Bench, trajectory: plan::Trajectory) -> MotionOutcome {
    let measured = bench.motion.snapshot().measured.unwrap();
    let now = bench.motion.clock().now();
    let proof = gate::check(&bench.scene, bench.permit(), &measured, now, trajectory).unwrap();
    let seen_stops = bench.motion.stops_requested();
    bench.motion.run(proof, seen_stops).await.unwrap()
}

fn is_up(bench: &Bench) -> bool {
    height_mm(bench, &bench.sim.true_joints()) > bench.scene.heights.lift_mm - 1.0
}

#[tokio::test]
async fn a_sheet_is_felt_where_it_lies() {
    for higher_mm in [4.5, 1.5, 0.0, -1.5] {
        let bench = Bench::with(NodeClock::simulated());
        laid(&bench, higher_mm);
        let outcome = probe(&bench, plan_of(&bench)).await;
        let MotionOutcome::Reached { visits, .. } = outcome else {
            panic!("{outcome:?}");
        };
        let [felt] = visits.as_slice() else {
            panic!("{visits:?}")
        };
        assert_eq!(felt.kind, VisitKind::Contact);
        let at_mm = height_mm(&bench, &felt.position_rad);
        // Two counts of a servo are a millimetre at this reach.
        assert!((at_mm - higher_mm).abs() < 1.0, "{higher_mm}: {at_mm}");
        assert!(is_up(&bench));
        assert!(bench.motion.permits().latched().is_none());
    }
}

/// Returns the depth of the arm in the sheet if the sheet gave way.
fn crush_mm(bench: &Bench, higher_mm: f64) -> f64 {
    higher_mm - height_mm(bench, &bench.sim.true_joints())
}

/// Before, what a tip felt that pressed all the while passed for air, and it was pressed on.
#[tokio::test]
async fn refuses_a_contact_that_began_before_the_tip_moved_freely() {
    for higher_mm in [6.0, 9.0, 12.0] {
        let bench = Bench::with(NodeClock::simulated());
        laid(&bench, higher_mm);
        let trajectory = plan_of(&bench);
        let outcome = probe(&bench, trajectory).await;
        let MotionOutcome::Reached { visits, .. } = outcome else {
            panic!("{higher_mm}: {outcome:?}");
        };
        let [felt] = visits.as_slice() else {
            panic!("{visits:?}")
        };
        assert_eq!(felt.kind, VisitKind::EarlyContact, "{higher_mm}");
        // The pen gives way by 2 mm; the sheet does not.
        let at_mm = height_mm(&bench, &felt.position_rad);
        assert!(at_mm > higher_mm - 3.0, "{higher_mm}: {at_mm}");
        assert!(bench.motion.permits().latched().is_none());
    }
}

/// A sheet that is in the way of a drawing is pressed on, and the arm stalls on it.
#[tokio::test]
async fn a_drawing_on_a_sheet_that_lies_much_higher_stalls_on_it() {
    let bench = Bench::with(NodeClock::simulated());
    laid(&bench, 80.0);
    let proof = bench.drawing(bench.permit());
    let outcome = bench.motion.run(proof, 0).await.unwrap();
    let MotionOutcome::Faulted(why) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(why.contains("behind its goal"), "{why}");
    assert!(crush_mm(&bench, 80.0) < 3.0);
}

#[tokio::test]
async fn a_sheet_that_is_not_there_is_given_up() {
    let bench = Bench::with(NodeClock::simulated());
    laid(&bench, -20.0);
    let outcome = probe(&bench, plan_of(&bench)).await;
    let MotionOutcome::Reached { visits, .. } = outcome else {
        panic!("{outcome:?}");
    };
    assert!(visits.is_empty() && is_up(&bench), "{visits:?}");
}

/// A hard obstacle holds a joint back while its servo's load hardly changes.
#[tokio::test]
async fn something_hard_is_felt_by_a_joint_that_stays_behind() {
    let bench = Bench::with(NodeClock::simulated());
    let trajectory = plan_of(&bench);
    let touching = trajectory
        .samples
        .iter()
        .rev()
        .find(|q| height_mm(&bench, q) > 0.0)
        .unwrap();
    let joint = 1;
    bench.sim.break_it(SimulatedFault::Block {
        joint,
        at_rad: touching.get(joint).copied(),
    });
    let outcome = probe(&bench, trajectory).await;
    let MotionOutcome::Reached { visits, .. } = outcome else {
        panic!("{outcome:?}");
    };
    let felt = visits.first().unwrap();
    let at_mm = height_mm(&bench, &felt.position_rad);
    assert!(at_mm > -PROBE_DEPTH_MM && at_mm < 1.5, "{at_mm}");
    assert!(is_up(&bench));
}

#[tokio::test]
async fn a_probe_is_stopped_and_lifted_like_any_motion() {
    for (below_mm, higher_mm) in [(4.0, 0.0), (1.0, 0.0), (0.5, 1.5)] {
        let bench = Bench::with(NodeClock::simulated_at(RATE));
        laid(&bench, higher_mm);
        let trajectory = plan_of(&bench);
        let mut snapshots = bench.motion.watch();
        let (scene, tip_m) = (Arc::clone(&bench.scene), bench.scene.pen(0).unwrap().tip_m);
        let low = move |snapshot: &Snapshot| {
            let doing = snapshot.progress.map(|at| at.doing);
            doing == Some(plan::SpanKind::Probe)
                && snapshot.measured.as_ref().is_some_and(|seen| {
                    let tip = scene.arm.chain.point(&seen.position_rad, &tip_m);
                    scene.surface.project(&tip).height_mm < below_mm + 1.0
                })
        };
        let stopping = async {
            snapshots.wait_for(low).await.unwrap();
            let ticket = bench.motion.stop(ActorRank::Planner, false);
            bench.motion.stopped(ticket).await.unwrap()
        };
        let (outcome, report) = tokio::join!(probe(&bench, trajectory), stopping);
        assert!(matches!(outcome, MotionOutcome::Stopped(_)), "{outcome:?}");
        assert!(report.verified && report.lifted, "{report:?}");
        assert!(is_up(&bench));
        let latched = bench.motion.permits().latched();
        assert!(
            matches!(latched, Some(StopLatch::Stopped(_))),
            "{latched:?}"
        );
    }
}

/// The touch was dropped, and the tip pressed on to the probe's end.
#[tokio::test]
async fn a_touch_that_no_point_was_probed_for_stops_the_arm_and_is_told() {
    let bench = Bench::with(NodeClock::simulated());
    laid(&bench, 1.5);
    let mut trajectory = plan_of(&bench);
    for span in &mut trajectory.spans {
        span.item = None;
    }
    let outcome = probe(&bench, trajectory).await;
    let MotionOutcome::Faulted(why) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(why.contains("a probe of no point"), "{why}");
    assert!(crush_mm(&bench, 1.5) < 1.0);
    assert!(matches!(
        bench.motion.permits().latched(),
        Some(StopLatch::Fault(_))
    ));
}
