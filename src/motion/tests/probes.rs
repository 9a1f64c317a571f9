//! Probes against a simulated sheet: detected, missed, stopped, and blocked by something else.

use nalgebra::Point3;

use super::*;
use base::units::JointVector;
use scene::{PROBE_DEPTH_MM, Surface};
use sim::{PaperSurface, SimPen};

struct Sheet(Surface, f64);

impl PaperSurface for Sheet {
    fn touch(&self, tip_m: [f64; 3]) -> Option<([f64; 2], f64)> {
        let foot = self.0.project(&Point3::from(tip_m));
        let is_on_sheet = self.0.holds(foot.at_mm);
        is_on_sheet.then_some((foot.at_mm, foot.height_mm - self.1))
    }
}

/// Places the sheet higher than the scene has it.
pub(super) fn place_sheet(bench: &Bench, raised_mm: f64) {
    let pen = bench.scene.pen(0).unwrap();
    let pens = vec![SimPen {
        tip_m: pen.tip_m.coords.into(),
        colour: "#000000".to_owned(),
        width_mm: 0.5,
    }];
    let sheet = Sheet(bench.scene.surface.clone(), raised_mm);
    bench.sim.place_sheet(Box::new(sheet), pens);
}

pub(super) fn height_mm(bench: &Bench, joints_rad: &JointVector) -> f64 {
    let tip_m = bench.scene.pen(0).unwrap().tip_m;
    let tip = bench.scene.arm.chain.point(joints_rad, &tip_m);
    bench.scene.surface.project(&tip).height_mm
}

fn plan_probe(bench: &Bench) -> plan::Trajectory {
    let start = bench.start_rad();
    plan::probe(&bench.scene, &start, [50.0, 50.0], 0, &SilentObserver)
        .unwrap()
        .trajectory
}

async fn probe(bench: &Bench, trajectory: plan::Trajectory) -> MotionOutcome {
    let proof = bench.check(trajectory, bench.permit());
    let seen_stops = bench.motion.stops_requested();
    bench.motion.run(proof, seen_stops).await.unwrap()
}

fn is_up(bench: &Bench) -> bool {
    height_mm(bench, &bench.sim.true_joints()) > bench.scene.heights.lift_mm - 1.0
}

/// Benches of servos that follow with a lag, and of those of the arm, whose loads tell the force; they are looked for by their
/// places, not by the ids that they have on their bus.
const BENCHES: [fn(NodeClock) -> Bench; 2] = [Bench::lagging, Bench::second_on_its_bus];

#[tokio::test]
async fn a_sheet_is_detected_where_it_lies() {
    // Measured servos wind up their friction first: a sheet 4.5 mm too high ends the probe as too early.
    for (make, raised_mm) in [
        (0, 4.5),
        (0, 1.5),
        (0, 0.0),
        (0, -1.5),
        (1, 1.5),
        (1, 0.0),
        (1, -1.5),
    ] {
        let bench = BENCHES.get(make).unwrap()(NodeClock::simulated());
        place_sheet(&bench, raised_mm);
        let outcome = probe(&bench, plan_probe(&bench)).await;
        let MotionOutcome::Reached { visits, .. } = outcome else {
            panic!("{outcome:?}");
        };
        let [visit] = visits.as_slice() else {
            panic!("{visits:?}")
        };
        let at_mm = height_mm(&bench, &visit.position_rad);
        assert_eq!(visit.kind, VisitKind::Contact, "{raised_mm}: {at_mm}");
        // Two counts of a servo are a millimetre at this reach.
        assert!((at_mm - raised_mm).abs() < 1.0, "{raised_mm}: {at_mm}");
        assert!(is_up(&bench));
        assert!(bench.motion.permits().latched().is_none());
    }
}

/// Returns the depth of the arm in the sheet if the sheet gave way.
fn crush_mm(bench: &Bench, raised_mm: f64) -> f64 {
    raised_mm - height_mm(bench, &bench.sim.true_joints())
}

/// A tip that presses from the start must not learn that as free air and press on.
#[tokio::test]
async fn refuses_a_contact_that_began_before_the_tip_moved_freely() {
    for (make, raised_mm) in [0, 1]
        .into_iter()
        .flat_map(|make| [6.0, 9.0, 12.0].map(|mm| (make, mm)))
    {
        let bench = BENCHES.get(make).unwrap()(NodeClock::simulated());
        place_sheet(&bench, raised_mm);
        let trajectory = plan_probe(&bench);
        let outcome = probe(&bench, trajectory).await;
        let MotionOutcome::Reached { visits, .. } = outcome else {
            panic!("{raised_mm}: {outcome:?}");
        };
        let [visit] = visits.as_slice() else {
            panic!("{visits:?}")
        };
        assert_eq!(visit.kind, VisitKind::EarlyContact, "{raised_mm}");
        // The pen gives way by 2 mm; the sheet does not.
        let at_mm = height_mm(&bench, &visit.position_rad);
        assert!(at_mm > raised_mm - 3.0, "{raised_mm}: {at_mm}");
        assert!(bench.motion.permits().latched().is_none());
    }
}

/// A sheet that is in the way of a drawing is pressed on, and the arm stalls on it.
#[tokio::test]
async fn a_drawing_on_a_sheet_that_lies_much_higher_stalls_on_it() {
    for (make, cause) in [(0, "behind its goal"), (1, "feels a force equal")] {
        let bench = BENCHES.get(make).unwrap()(NodeClock::simulated());
        place_sheet(&bench, 80.0);
        let proof = bench.drawing(bench.permit());
        let outcome = bench.motion.run(proof, 0).await.unwrap();
        let MotionOutcome::Faulted(reason) = outcome else {
            panic!("{outcome:?}");
        };
        assert!(reason.contains(cause), "{reason}");
        assert!(crush_mm(&bench, 80.0) < 3.0);
    }
}

#[tokio::test]
async fn a_probe_without_a_sheet_goes_up_again() {
    for make in BENCHES {
        let bench = make(NodeClock::simulated());
        place_sheet(&bench, -20.0);
        let outcome = probe(&bench, plan_probe(&bench)).await;
        let MotionOutcome::Reached { visits, .. } = outcome else {
            panic!("{outcome:?}");
        };
        let felt = |visit: &VisitReading| !matches!(visit.kind, VisitKind::NoContact { .. });
        assert!(!visits.iter().any(felt) && is_up(&bench), "{visits:?}");
    }
}

/// A hard obstacle holds a joint back while its servo's load hardly changes.
#[tokio::test]
async fn a_hard_obstacle_is_detected_by_a_joint_that_lags() {
    let bench = Bench::with(NodeClock::simulated());
    let trajectory = plan_probe(&bench);
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
    let visit = visits.first().unwrap();
    let at_mm = height_mm(&bench, &visit.position_rad);
    assert!(at_mm > -PROBE_DEPTH_MM && at_mm < 1.5, "{at_mm}");
    assert!(is_up(&bench));
}

#[tokio::test]
async fn a_probe_is_stopped_and_lifted_like_any_motion() {
    for (below_mm, raised_mm) in [(4.0, 0.0), (1.0, 0.0), (0.5, 1.5)] {
        let bench = Bench::with(NodeClock::simulated_at(RATE));
        place_sheet(&bench, raised_mm);
        let trajectory = plan_probe(&bench);
        let mut snapshots = bench.motion.watch();
        let (scene, tip_m) = (Arc::clone(&bench.scene), bench.scene.pen(0).unwrap().tip_m);
        let is_low = move |snapshot: &Snapshot| {
            let doing = snapshot.progress.map(|at| at.doing);
            doing == Some(SpanKind::Probe)
                && snapshot.measured.as_ref().is_some_and(|measured| {
                    let tip = scene.arm.chain.point(&measured.position_rad, &tip_m);
                    scene.surface.project(&tip).height_mm < below_mm + 1.0
                })
        };
        let stop = async {
            snapshots.wait_for(is_low).await.unwrap();
            let ticket = bench.motion.stop(ActorRank::Planner, false);
            bench.motion.stopped(ticket).await.unwrap()
        };
        let (outcome, report) = tokio::join!(probe(&bench, trajectory), stop);
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

/// If such a touch were dropped, the tip would press on to the probe's end.
#[tokio::test]
async fn a_touch_in_a_probe_of_no_point_stops_the_arm_and_is_reported() {
    let bench = Bench::with(NodeClock::simulated());
    place_sheet(&bench, 1.5);
    let mut trajectory = plan_probe(&bench);
    for span in &mut trajectory.spans {
        span.item = None;
    }
    let outcome = probe(&bench, trajectory).await;
    let MotionOutcome::Faulted(reason) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(reason.contains("no point"), "{reason}");
    assert!(crush_mm(&bench, 1.5) < 1.0);
    assert!(matches!(
        bench.motion.permits().latched(),
        Some(StopLatch::Fault(_))
    ));
}
