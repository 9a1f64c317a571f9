//! Two simulated arms of one scene, each on its own bus and thread: what ends or holds one ends or
//! holds both, and at their far ends they never come nearer than the clearance.

use std::sync::Mutex;

use nalgebra::{IsometryMatrix3, Point3, Rotation3, Translation3, Vector3};

use super::*;
use gate::{Execution, GateRule, MotionPart};
use scene::{ArmBeside, Order, SheetStroke};

const CLEARANCE_M: f64 = 0.003;

/// Distance of the bases of two arms that face each other.
const AHEAD_M: f64 = 0.56;

/// The base of the right arm, seen from the left one, and the other way round.
fn facing() -> IsometryMatrix3<f64> {
    let turn = Rotation3::from_axis_angle(&Vector3::z_axis(), std::f64::consts::PI);
    IsometryMatrix3::from_parts(Translation3::new(0.0, -AHEAD_M, 0.0), turn)
}

struct Duo {
    scenes: [Arc<Scene>; 2],
    sims: [ArmSimulator; 2],
    motions: [Option<MotionHandle>; 2],
    /// The least distance that was seen at the far ends.
    least_m: Arc<Mutex<f64>>,
}

/// The parts of an arm and its pens at a pose: their ends and radii.
fn body(
    scene: &Scene,
    q: &JointVector,
    base: &IsometryMatrix3<f64>,
) -> Vec<([Point3<f64>; 2], f64)> {
    let frames = scene.arm.chain.frames(q);
    let parts = scene.arm.capsules.iter().map(|capsule| {
        let frame = frames.get(capsule.joints_before).unwrap();
        let ends = [capsule.from_m, capsule.to_m].map(|end| base * (frame * end));
        (ends, capsule.radius_m)
    });
    let pens = scene.pens.iter().map(|pen| {
        let ends = [Point3::origin(), pen.tip_m].map(|end| base * (frames.tool * end));
        (ends, scene::PEN_RADIUS_M)
    });
    parts.chain(pens).collect()
}

fn to_segment_m(point: &Point3<f64>, [from, to]: &[Point3<f64>; 2]) -> f64 {
    let along = to - from;
    let at = (point - from).dot(&along) / along.norm_squared().max(1e-18);
    (point - (from + along * at.clamp(0.0, 1.0))).norm()
}

/// The distance of two bodies, from points along the first one: at least what it is, and little
/// more.
fn apart_m(scenes: &[Arc<Scene>; 2], [left, right]: [&JointVector; 2]) -> f64 {
    let left = body(&scenes[0], left, &IsometryMatrix3::identity());
    let right = body(&scenes[1], right, &facing());
    let dots = left.iter().flat_map(|([from, to], radius_m)| {
        (0..=10_u32).map(move |n| (from + (to - from) * (f64::from(n) / 10.0), *radius_m))
    });
    let gaps = dots.flat_map(|(dot, dot_m)| {
        let others = right.iter();
        others.map(move |(ends, radius_m)| to_segment_m(&dot, ends) - dot_m - radius_m)
    });
    gaps.fold(f64::INFINITY, f64::min)
}

impl Duo {
    fn new(clock: &NodeClock) -> Self {
        let duo = Self::unwatched(clock);
        duo.watch_far_ends();
        duo
    }

    fn unwatched(clock: &NodeClock) -> Self {
        let alone = SceneLibrary::new(None).scene("default", None).unwrap();
        let line = |points_mm: [[f64; 2]; 2]| SheetStroke {
            points_mm: points_mm.to_vec(),
            ..SheetStroke::default()
        };
        let side = |ours: &str, theirs: &str, base_in_ours| {
            Arc::new(Scene {
                arm_name: Some(ours.to_owned()),
                beside: vec![ArmBeside {
                    name: theirs.to_owned(),
                    arm: Arc::clone(&alone.arm),
                    base_in_ours,
                    pens: alone.pens.clone(),
                    uncertainty_m: 0.0,
                }],
                strokes: vec![
                    line([[30.0, 50.0], [60.0, 85.0]]),
                    line([[60.0, 80.0], [30.0, 60.0]]),
                ],
                order: Order::AsDrawn,
                ..Scene::clone(&alone)
            })
        };
        let scenes = [
            side("left", "right", facing()),
            side("right", "left", facing().inverse()),
        ];
        let sims = scenes
            .each_ref()
            .map(|scene| ArmSimulator::new(&scene.arm, &scene.ready_rad));
        let motions = sims.each_ref().map(|sim| {
            let device = sim.clone();
            let open: PortOpener = Box::new(move |clock| {
                let link =
                    MemoryLink::new(device.clone(), clock, "duo").map_err(LinkError::Read)?;
                Ok(Box::new(link) as Box<dyn ByteLink>)
            });
            let permits = Arc::new(PermitRegistry::everything());
            MotionHandle::start(Arc::clone(&alone.arm), clock.clone(), permits, open).unwrap()
        });
        Self {
            scenes,
            sims,
            motions: motions.map(Some),
            least_m: Arc::new(Mutex::new(f64::INFINITY)),
        }
    }

    /// Makes the second servo of the left arm read a quarter of a degree to either side at the end of its path.
    fn shake_left_at_its_end(&self, trajectory: &Trajectory) {
        let (sim, arm) = (self.sims[0].clone(), Arc::clone(&self.scenes[0].arm));
        let (end_rad, beats) = (*trajectory.samples.last().unwrap(), Mutex::new(0_u32));
        let is_at_end = move |at_rad: JointVector| at_rad.distance_max(&end_rad) < 0.03;
        assert!(!is_at_end(sim.true_joints()));
        self.motion(0).set_heartbeat(Box::new(move || {
            if is_at_end(sim.true_joints()) {
                let mut beats = beats.lock().unwrap();
                *beats += 1;
                shift_reading(&sim, &arm, if *beats % 4 < 2 { 3 } else { -3 });
            }
        }));
    }

    /// Looks at both far ends at each tick of either.
    fn watch_far_ends(&self) {
        for motion in self.motions.iter().flatten() {
            let (sims, scenes) = (self.sims.clone(), self.scenes.clone());
            let least_m = Arc::clone(&self.least_m);
            motion.set_heartbeat(Box::new(move || {
                let [left, right] = sims.each_ref().map(ArmSimulator::true_joints);
                let apart_m = apart_m(&scenes, [&left, &right]);
                let mut least_m = least_m.lock().unwrap();
                *least_m = least_m.min(apart_m);
            }));
        }
    }

    fn motion(&self, arm: usize) -> &MotionHandle {
        self.motions.get(arm).unwrap().as_ref().unwrap()
    }

    fn proofs(&self) -> [CheckedTrajectory; 2] {
        let plans = [0, 1].map(|arm: usize| {
            let scene = self.scenes.get(arm).unwrap();
            let start = self.motion(arm).snapshot().measured.unwrap();
            let plan = plan::draw(scene, &start.position_rad, &SilentObserver).unwrap();
            (plan.trajectory, start)
        });
        let parts = plans.iter().enumerate().map(|(arm, (trajectory, start))| {
            let scene = Arc::clone(self.scenes.get(arm).unwrap());
            let now = self.motion(arm).clock().now();
            MotionPart {
                permit: self.motion(arm).permits().ask(&scene, now).unwrap(),
                scene,
                start,
                now,
                trajectory: trajectory.clone(),
            }
        });
        let proofs = gate::check_together(parts.collect(), &[]).unwrap();
        proofs.try_into().unwrap()
    }

    /// Begins both drawings, each released up to a sample.
    fn draw(&self, release: &[MotionRelease; 2]) -> [oneshot::Receiver<MotionOutcome>; 2] {
        let [left, right] = self.proofs();
        let [left_release, right_release] = release.clone();
        let [first, second] = [self.motion(0), self.motion(1)];
        [
            first.run_released(left, first.stops_requested(), left_release),
            second.run_released(right, second.stops_requested(), right_release),
        ]
    }

    /// Begins both and lets them come to a sample, where simulated time stands still.
    async fn draw_up_to(
        &self,
        sample: usize,
    ) -> ([MotionRelease; 2], [oneshot::Receiver<MotionOutcome>; 2]) {
        let release = [(); 2].map(|()| MotionRelease::nothing());
        release.iter().for_each(|release| release.up_to(sample));
        let answers = self.draw(&release);
        for arm in 0..2 {
            let near =
                |snapshot: &Snapshot| snapshot.progress.is_some_and(|at| at.sample + 60 > sample);
            self.motion(arm).watch().wait_for(near).await.unwrap();
        }
        (release, answers)
    }

    fn check_apart(&self) {
        let least_m = *self.least_m.lock().unwrap();
        assert!(least_m >= CLEARANCE_M, "{least_m} m");
    }
}

fn release_all(release: &[MotionRelease; 2]) {
    release.iter().for_each(|release| release.up_to(usize::MAX));
}

#[tokio::test]
async fn two_arms_draw_together_on_one_clock() {
    for clock in [NodeClock::simulated(), NodeClock::simulated_at(RATE)] {
        let duo = Duo::new(&clock);
        let began = clock.now();
        let answers = duo.draw(&[(); 2].map(|()| MotionRelease::whole()));
        let count = duo.motion(0).snapshot().progress.map(|at| at.of);
        for answer in answers {
            let outcome = answer.await.unwrap();
            assert!(
                matches!(outcome, MotionOutcome::Reached { .. }),
                "{outcome:?}"
            );
        }
        // Time passed as for one: neither clock ran away while it waited for the other.
        let seconds = clock.now().seconds_since(began);
        assert!(seconds < 30.0, "{seconds} s for {count:?} samples");
        duo.check_apart();
    }
}

/// One after the other on one clock: the time of the one that stands goes on, too.
#[tokio::test]
async fn an_arm_that_stood_while_another_moved_is_read_again() {
    let clock = NodeClock::simulated();
    let duo = Duo::new(&clock);
    for moving in [0, 1, 0] {
        let readings = [
            duo.motion(0).fresh_snapshot().await,
            duo.motion(1).fresh_snapshot().await,
        ];
        let [left, right] = readings.map(|snapshot| snapshot.measured.unwrap());
        let (start, stands) = match moving {
            0 => (&left, &right),
            _ => (&right, &left),
        };
        let scene = Arc::clone(duo.scenes.get(moving).unwrap());
        let standing = gate::StandingArm {
            scene: duo.scenes.get(1 - moving).unwrap(),
            measured: stands,
            now: clock.now(),
        };
        let plan = plan::draw(&scene, &start.position_rad, &SilentObserver).unwrap();
        let part = MotionPart {
            permit: duo
                .motion(moving)
                .permits()
                .ask(&scene, clock.now())
                .unwrap(),
            scene,
            start,
            now: clock.now(),
            trajectory: plan.trajectory,
        };
        let proof = gate::check_together(vec![part], &[standing])
            .unwrap()
            .remove(0);
        let outcome = duo.motion(moving).run(proof, 0).await.unwrap();
        assert!(
            matches!(outcome, MotionOutcome::Reached { .. }),
            "{outcome:?}"
        );
    }
    duo.check_apart();
}

#[derive(Clone, Copy, Debug)]
enum End {
    Stop,
    Emergency,
    Block,
    Silence,
    Unplug,
    Drop,
}

/// Each of them happens to the left arm; the right one stops as if it had been told to.
#[tokio::test]
async fn what_ends_one_arm_stops_the_other() {
    for end in [
        End::Stop,
        End::Emergency,
        End::Block,
        End::Silence,
        End::Unplug,
        End::Drop,
    ] {
        for sample in [150, 260] {
            let mut duo = Duo::new(&NodeClock::simulated());
            let (release, [left, right]) = duo.draw_up_to(sample).await;
            let at = duo.sims.first().unwrap().true_joints();
            let break_it = |fault| duo.sims.first().unwrap().break_it(fault);
            match end {
                End::Stop => drop(duo.motion(0).stop(ActorRank::Planner, false)),
                End::Emergency => drop(duo.motion(0).stop(ActorRank::Operator, true)),
                End::Block => break_it(SimulatedFault::Block {
                    joint: 1,
                    at_rad: at.get(1).copied(),
                }),
                End::Silence => break_it(SimulatedFault::Silence(2)),
                End::Unplug => break_it(SimulatedFault::Unplug),
                // It is joined while both stand in time.
                End::Drop => drop(duo.motions.first_mut().unwrap().take()),
            }
            release_all(&release);
            let outcome = right.await.unwrap();
            let MotionOutcome::Stopped(report) = outcome else {
                panic!("{end:?} {sample}: {outcome:?}");
            };
            assert_eq!(report.neighbour.as_deref(), Some("left"), "{end:?}");
            assert!(
                report.verified && report.by == ActorRank::Node,
                "{end:?} {report:?}"
            );
            assert!(report.braked_ms() < Some(1_000.0), "{end:?} {report:?}");
            let snapshot = duo.motion(1).snapshot();
            assert_eq!(
                (snapshot.state, snapshot.fault),
                (MotionState::Stopped, None)
            );
            let outcome = left.await.unwrap();
            let is_fault = matches!(end, End::Block | End::Silence | End::Unplug);
            match outcome {
                MotionOutcome::Faulted(_) if is_fault => {}
                MotionOutcome::Stopped(report) if !is_fault => assert_eq!(report.neighbour, None),
                outcome => panic!("{end:?} {sample}: {outcome:?}"),
            }
            duo.check_apart();
        }
    }
}

#[tokio::test]
async fn a_hold_and_its_end_reach_both_arms() {
    for at in [HoldAt::Once, HoldAt::StrokeEnd] {
        let duo = Duo::new(&NodeClock::simulated());
        let (release, answers) = duo.draw_up_to(200).await;
        let held = duo.motion(0).hold(at);
        release_all(&release);
        held.await.unwrap().unwrap();
        for arm in 0..2 {
            let is_held = |snapshot: &Snapshot| snapshot.state == MotionState::Held;
            duo.motion(arm).watch().wait_for(is_held).await.unwrap();
        }
        let now = duo.motion(0).clock().now();
        let permit = duo
            .motion(0)
            .permits()
            .ask(duo.scenes.first().unwrap(), now);
        duo.motion(0)
            .resume(permit.unwrap())
            .await
            .unwrap()
            .unwrap();
        for answer in answers {
            let outcome = answer.await.unwrap();
            assert!(
                matches!(outcome, MotionOutcome::Reached { .. }),
                "{at:?} {outcome:?}"
            );
        }
        duo.check_apart();
    }
}

/// An operator's stop reaches an arm that sleeps because the other one is held.
#[tokio::test]
async fn a_stop_of_one_ends_a_hold_of_both() {
    let duo = Duo::new(&NodeClock::simulated());
    let (release, [left, right]) = duo.draw_up_to(200).await;
    let held = duo.motion(0).hold(HoldAt::Once);
    release_all(&release);
    held.await.unwrap().unwrap();
    for arm in 0..2 {
        let is_held = |snapshot: &Snapshot| snapshot.state == MotionState::Held;
        duo.motion(arm).watch().wait_for(is_held).await.unwrap();
    }
    duo.motion(1).stop(ActorRank::Operator, false);
    for (answer, neighbour) in [(left, Some("right")), (right, None)] {
        let outcome = answer.await.unwrap();
        let MotionOutcome::Stopped(report) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(report.neighbour.as_deref(), neighbour);
        assert!(report.verified && report.lifted, "{report:?}");
    }
}

/// The left arm waits at its first sample, and sees the right one's proof go away.
#[tokio::test]
async fn an_arm_whose_neighbour_never_begins_does_not_stir() {
    let duo = Duo::new(&NodeClock::simulated());
    let start_rad = duo.sims.first().unwrap().true_joints();
    let [left, right] = duo.proofs();
    let samples = left.trajectory().samples.iter();
    let path_rad = samples
        .map(|q| q.distance_max(&start_rad))
        .fold(0.0, f64::max);
    let answer = duo.motion(0).run(left, 0);
    let is_moving = |snapshot: &Snapshot| snapshot.state == MotionState::Moving;
    duo.motion(0).watch().wait_for(is_moving).await.unwrap();
    drop(right);
    let outcome = answer.await.unwrap();
    let MotionOutcome::Stopped(report) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(report.neighbour.as_deref(), Some("right"));
    // It sinks a little under its own weight, and its path goes much farther.
    let is_rad = duo.sims.first().unwrap().true_joints();
    let moved_rad = is_rad.distance_max(&start_rad);
    assert!(
        moved_rad < 0.05 && path_rad > 0.2,
        "{moved_rad} of {path_rad} rad"
    );
}

/// Carries a motion on, with joints that follow their goals, up to a sample.
async fn follow(execution: &mut Execution, read: &mut ArmMeasurement, sample: usize) {
    while execution.progress().sample < sample {
        (read.at, read.position_rad) = (read.at.after(plan::PERIOD), *execution.goal_rad());
        execution.next(read, read.at).unwrap();
        tokio::task::yield_now().await;
    }
}

/// The right arm has five samples to go when the left one's last goal was sent, and waits for nothing but the test.
#[tokio::test]
async fn only_an_arm_that_was_read_at_its_end_lets_the_other_go_on() {
    for shakes in [false, true] {
        let duo = Duo::unwatched(&NodeClock::simulated());
        let [left, right] = duo.proofs();
        if shakes {
            duo.shake_left_at_its_end(left.trajectory());
        }
        let last = right.trajectory().samples.len() - 1;
        let mut read = ArmMeasurement::clone(&duo.motion(1).snapshot().measured.unwrap());
        let outcome = duo.motion(0).run(left, 0);
        let mut right = right.begin(&read, read.at).unwrap();
        follow(&mut right, &mut read, last - 5).await;
        let outcome = outcome.await.unwrap();
        match &outcome {
            MotionOutcome::Faulted(reason) => {
                assert!(shakes && reason.contains("stand still"), "{reason}");
            }
            outcome => assert!(matches!(outcome, MotionOutcome::Reached { .. }) && !shakes),
        }
        assert_eq!(right.is_neighbour_stopped(), shakes, "{outcome:?}");
        if !shakes {
            follow(&mut right, &mut read, last).await;
        }
    }
}

/// Without the other arm the same drawing is refused, so none begins by the door for one.
#[test]
fn one_of_two_arms_does_not_begin_alone() {
    let duo = Duo::new(&NodeClock::simulated());
    let scene = duo.scenes.first().unwrap();
    let start = duo.motion(0).snapshot().measured.unwrap();
    let plan = plan::draw(scene, &start.position_rad, &SilentObserver).unwrap();
    let now = duo.motion(0).clock().now();
    let permit = duo.motion(0).permits().ask(scene, now).unwrap();
    let refused = gate::check(scene, permit, &start, now, plan.trajectory).unwrap_err();
    assert_eq!(refused.0.first().unwrap().rule, GateRule::Apart);
}
