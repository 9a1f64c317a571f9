//! Two arms on one bus: each has its own loop, ids and faults, and its turns on the port.

#![allow(clippy::indexing_slicing, reason = "a failing test may panic")]

use super::*;
use link::shared_port::{SharedPort, TURN_MAX};

/// Time within which the first frame of a stop is on the wire.
const FIRST_FRAME: Duration = Duration::from_millis(10);

/// Two arms of one kind at the far end of one wire, with the ids 1 to 6 and 7 to 12.
struct Pair {
    scene: Arc<Scene>,
    sims: [ArmSimulator; 2],
    motions: [MotionHandle; 2],
}

impl Pair {
    fn new(clock: &NodeClock) -> Self {
        let scene = SceneLibrary::new(None).scene("default", None).unwrap();
        let low = ArmModel::clone(&scene.arm);
        let high = low.with_first_id(7).unwrap();
        let sims = [&low, &high].map(|arm| ArmSimulator::new(arm, &scene.rest_rad));
        let (devices, wire) = (sims.to_vec(), clock.clone());
        // The wire's own clock: that of one arm's loop would stand still while the other one waits for the wire.
        let port = SharedPort::new(Box::new(move |_| {
            let link = MemoryLink::new(devices.clone(), &wire, "bus").map_err(LinkError::Read)?;
            Ok(Box::new(link) as Box<dyn ByteLink>)
        }));
        let thread = BusThread::start("pair").unwrap();
        let others = [high.ids(), low.ids()];
        let arms = [low, high].into_iter().zip(others);
        let motions = arms.map(|(mut arm, others)| {
            arm.bus.others = others;
            let shared = port.clone();
            let open: PortOpener =
                Box::new(move |clock| Ok(Box::new(shared.open(clock)?) as Box<dyn ByteLink>));
            let permits = Arc::new(PermitRegistry::everything());
            let attached = thread.attach(Arc::new(arm), clock.clone(), permits, open);
            attached.unwrap()
        });
        let motions: Vec<MotionHandle> = motions.collect();
        let motions = motions.try_into().map_err(|_| "two arms").unwrap();
        Self {
            scene,
            sims,
            motions,
        }
    }

    /// Begins a motion of one arm to its ready pose and back.
    fn begin(&self, arm: usize) -> oneshot::Receiver<MotionOutcome> {
        let motion = self.motions.get(arm).unwrap();
        let start = motion.snapshot().measured.unwrap();
        let poses = [self.scene.ready_rad, self.scene.rest_rad];
        let plan = plan::go_to(&self.scene, &start.position_rad, &poses, &SilentObserver);
        let now = motion.clock().now();
        let permit = motion.permits().ask(&self.scene, now).unwrap();
        let trajectory = plan.unwrap().trajectory;
        let proof = gate::check(&self.scene, permit, &start, now, trajectory).unwrap();
        motion.run(proof, motion.stops_requested())
    }

    async fn wait_for(&self, arm: usize, is_it: impl FnMut(&Snapshot) -> bool) {
        let mut snapshots = self.motions.get(arm).unwrap().watch();
        snapshots.wait_for(is_it).await.unwrap();
    }
}

fn is_moving(snapshot: &Snapshot) -> bool {
    snapshot
        .progress
        .is_some_and(|progress| progress.sample > 20)
}

#[tokio::test]
async fn two_arms_on_one_bus_move_at_once_and_each_is_read_by_its_own_ids() {
    let pair = Pair::new(&NodeClock::simulated_at(RATE));
    for (motion, first) in pair.motions.iter().zip([1, 7]) {
        let snapshot = motion.snapshot();
        let ids: Vec<u8> = snapshot.identity.iter().map(|one| one.servo.id).collect();
        assert_eq!(ids, (first..first + 6).collect::<Vec<u8>>());
        assert_eq!(
            snapshot.warnings, [""; 0],
            "the other arm's servos are no strangers"
        );
    }
    let outcomes = [pair.begin(0), pair.begin(1)];
    pair.wait_for(0, is_moving).await;
    assert!(
        pair.motions
            .iter()
            .all(|arm| arm.snapshot().state == MotionState::Moving)
    );
    for outcome in outcomes {
        let outcome = outcome.await.unwrap();
        assert!(
            matches!(outcome, MotionOutcome::Reached { .. }),
            "{outcome:?}"
        );
    }
    for (motion, sim) in pair.motions.iter().zip(&pair.sims) {
        assert!(sim.true_joints().distance_max(&pair.scene.rest_rad) < 0.01);
        let counts = motion.snapshot().counts;
        assert_eq!((counts.foreign, counts.corrupt, counts.resent), (0, 0, 0));
    }
}

/// A stop's frame waits for no more than one request of the other arm, even where that arm's servos are silent.
#[tokio::test]
async fn a_stop_of_one_arm_is_on_the_wire_in_time_and_leaves_the_other_alone() {
    for is_other_silent in [false, true] {
        let pair = Pair::new(&NodeClock::simulated_at(RATE));
        let [stopped, other] = [pair.begin(0), pair.begin(1)];
        pair.wait_for(0, is_moving).await;
        pair.wait_for(1, is_moving).await;
        if is_other_silent {
            (7..=12).for_each(|id| pair.sims[1].break_it(SimulatedFault::Silence(id)));
        }
        let ticket = pair.motions[0].stop(ActorRank::Planner, false);
        let report = pair.motions[0].stopped(ticket).await.unwrap();
        let first_frame_ms = report.first_frame_ms.unwrap();
        assert!(
            report.verified && first_frame_ms <= FIRST_FRAME.as_secs_f64() * 1e3,
            "{report:?}"
        );
        assert!(matches!(stopped.await.unwrap(), MotionOutcome::Stopped(_)));
        let other = other.await.unwrap();
        let is_as_expected = match is_other_silent {
            true => matches!(other, MotionOutcome::Faulted(_)),
            false => matches!(other, MotionOutcome::Reached { .. }),
        };
        assert!(is_as_expected, "{other:?}");
    }
}

/// One arm's supply fails in the middle of its motion; the other one's cycles stay in time.
#[tokio::test]
async fn an_arm_without_power_does_not_fault_the_other() {
    let pair = Pair::new(&NodeClock::simulated_at(RATE));
    let [faulted, other] = [pair.begin(0), pair.begin(1)];
    pair.wait_for(0, is_moving).await;
    (1..=6).for_each(|id| pair.sims[0].break_it(SimulatedFault::PowerOff(id)));
    assert!(matches!(faulted.await.unwrap(), MotionOutcome::Faulted(_)));
    let other = other.await.unwrap();
    assert!(matches!(other, MotionOutcome::Reached { .. }), "{other:?}");
    let late = pair.motions[1].snapshot().lateness;
    assert!(late.longest() <= 2 * TURN_MAX, "{late:?}");
    assert_eq!(pair.motions[1].permits().latched(), None);
}

#[tokio::test]
async fn unplugging_in_motion_is_a_fault_of_both() {
    let pair = Pair::new(&NodeClock::simulated_at(RATE));
    let outcomes = [pair.begin(0), pair.begin(1)];
    pair.wait_for(0, is_moving).await;
    pair.sims[1].break_it(SimulatedFault::Unplug);
    for (outcome, motion) in outcomes.into_iter().zip(&pair.motions) {
        assert!(matches!(outcome.await.unwrap(), MotionOutcome::Faulted(_)));
        assert_eq!(motion.snapshot().state, MotionState::Detached);
    }
}

/// Both see that the adapter is gone, open it again once it is back, and attach.
#[tokio::test]
async fn both_arms_come_back_when_the_port_does() {
    let pair = Pair::new(&NodeClock::real());
    for _ in 0..2 {
        pair.sims[0].break_it(SimulatedFault::Unplug);
        for arm in [0, 1] {
            pair.wait_for(arm, |now| now.state == MotionState::Detached)
                .await;
        }
        pair.sims[0].break_it(SimulatedFault::Plug);
        for arm in [0, 1] {
            pair.wait_for(arm, |now| now.state == MotionState::Faulted)
                .await;
            let latched = pair.motions[arm].permits().latched();
            assert!(matches!(latched, Some(StopLatch::Fault(_))), "{latched:?}");
        }
    }
}
