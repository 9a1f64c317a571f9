//! Tests drawings in which a joint's reading does not follow its goal, and what a drawing tells of how far its joints were off.

use std::sync::Mutex;

use super::probes::place_sheet;
use super::*;
use scene::{Order, SheetStroke};

impl Bench {
    /// Draws strokes, and freezes the reading of one joint from the first drawn sample on.
    /// Returns by how much the joint itself moved while it drew.
    async fn draw_with_frozen_reading(
        &self,
        strokes: &[SheetStroke],
        joint: usize,
    ) -> (MotionOutcome, f64) {
        let (_, servo) = self
            .scene
            .arm
            .servos()
            .find(|(at, _)| *at == joint)
            .unwrap();
        let (sim, snapshots) = (self.sim.clone(), self.motion.watch());
        let moved: Arc<Mutex<(Option<f64>, f64)>> = Arc::default();
        let kept = Arc::clone(&moved);
        self.motion.set_heartbeat(Box::new(move || {
            let Some(progress) = snapshots.borrow().progress else {
                return;
            };
            let (first_rad, most_rad) = &mut *kept.lock().unwrap();
            if progress.doing != SpanKind::Draw {
                return;
            }
            let at_rad = *sim.true_joints().get(joint).unwrap();
            let first_rad = *first_rad.get_or_insert_with(|| {
                let word = Some(u16::try_from(servo.ticks(at_rad)).unwrap());
                sim.break_it(SimulatedFault::Position { id: servo.id, word });
                at_rad
            });
            *most_rad = most_rad.max((at_rad - first_rad).abs());
        }));
        let (start, watch) = (self.start_rad(), &SilentObserver);
        let plan = plan::draw_strokes(&self.scene, &start, strokes, Order::AsDrawn, watch);
        let proof = self.check(plan.unwrap().trajectory, self.permit());
        let outcome = self.motion.run(proof, 0).await.unwrap();
        let (_, most_rad) = *moved.lock().unwrap();
        (outcome, most_rad)
    }
}

#[tokio::test]
async fn a_joint_whose_reading_stands_while_its_goal_moves_is_a_fault() {
    for (joint, name) in ["shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex"]
        .into_iter()
        .enumerate()
    {
        let bench = Bench::new();
        let (outcome, most_rad) = bench
            .draw_with_frozen_reading(&bench.scene.strokes, joint)
            .await;
        let MotionOutcome::Faulted(reason) = outcome else {
            panic!("{name}: {outcome:?}");
        };
        assert!(
            reason.contains(name) && reason.contains("stuck"),
            "{reason}"
        );
        // Two degrees, and what it moves within 300 ms and while it brakes.
        assert!(most_rad.to_degrees() < 8.0, "{name}: {most_rad} rad");
    }
}

/// A stuck reading of a joint that hardly moves is no fault, but it is told.
#[tokio::test]
async fn a_drawing_tells_how_far_its_joints_were_from_their_goals() {
    let bench = Bench::new();
    place_sheet(&bench, 0.0);
    let proof = bench.drawing(bench.permit());
    let MotionOutcome::Reached { deviation, .. } = bench.motion.run(proof, 0).await.unwrap() else {
        panic!("not reached");
    };
    let healthy = deviation.unwrap();
    assert!(healthy.joint_rad.to_degrees() < 0.3, "{healthy:?}");
    assert!(healthy.tip_mm < 1.0, "{healthy:?}");
    assert!((healthy.tolerance_rad.to_degrees() - 0.88).abs() < 0.01);
    let pose = bench.proof(bench.permit());
    let MotionOutcome::Reached { deviation, .. } = bench.motion.run(pose, 0).await.unwrap() else {
        panic!("not reached");
    };
    assert_eq!(deviation, None);
    let bench = Bench::new();
    let triangle = SheetStroke {
        points_mm: vec![[50.0, 50.0], [56.0, 50.0], [53.0, 56.0], [50.0, 50.0]],
        ..bench.scene.strokes.first().unwrap().clone()
    };
    let (outcome, most_rad) = bench.draw_with_frozen_reading(&[triangle], 0).await;
    // A reading that stands without load as its goal moves away is a fault once that has lasted; here it may end before.
    let deviation = match outcome {
        MotionOutcome::Reached { deviation, .. } => deviation,
        MotionOutcome::Faulted(reason) => {
            let stuck = "shoulder_pan has no torque, or its reading is stuck";
            return assert!(reason.starts_with(stuck), "{reason}");
        }
        other => panic!("{most_rad} rad: {other:?}"),
    };
    let stuck = deviation.unwrap();
    assert_eq!(stuck.joint, "shoulder_pan");
    assert!(
        stuck.joint_rad > 0.6 * most_rad,
        "{stuck:?}: {most_rad} rad"
    );
    assert!(stuck.tip_mm > 3.0, "{stuck:?}");
}

/// The way back to the path after a hold is none of the drawing.
#[tokio::test]
async fn holds_are_no_deviation_of_a_drawing() {
    let bench = Bench::new();
    place_sheet(&bench, 0.0);
    let mut outcome = bench.motion.run(bench.drawing(bench.permit()), 0);
    for hold in 1..=6 {
        let is_drawing = |now: &Snapshot| {
            let progress = now.progress.as_ref();
            progress.is_some_and(|at| at.sample > 200 * hold && at.doing == SpanKind::Draw)
        };
        bench.until(is_drawing).await;
        bench.motion.hold(HoldAt::Once).await.unwrap().unwrap();
        bench.until(|now| now.state == MotionState::Held).await;
        bench.motion.resume(bench.permit()).await.unwrap().unwrap();
    }
    let MotionOutcome::Reached { deviation, .. } = (&mut outcome).await.unwrap() else {
        panic!("not reached");
    };
    let off_deg = deviation.unwrap().joint_rad.to_degrees();
    assert!(off_deg < 0.3, "{off_deg}");
}
