//! Two arms of one scene: who stands while the other moves, who waits for whom, and what of both is refused.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a failing test may panic"
)]

use std::pin::pin;

use super::*;
use crate::{NodeStorage, RemoteCallWatch, Reply, ToolRequest};
use args::ReceivedArguments;
use base::clock::NodeClock;
use config::{ArmEntry, BeforeDrawing, BeforeDrawingEntry, NodeFile, SIMULATOR_PORT};
use gate::GateRule;
use link::memory::MemoryLink;
use link::{ByteLink, LinkError};
use motion::{MotionHandle, PortOpener};
use permit::{ArmInterlock, PermitRegistry};
use plan::SilentObserver;
use scene::{AxisAlignedBox, SceneLibrary, ScenePart};
use sim::{ArmSimulator, SimulatedFault};

const SHIPPED: &str = include_str!("../../../scenes/two_arms.toml");

/// A node with both arms of a scene, at rest.
struct Pair {
    node: Arc<Node>,
    scenes: [Arc<Scene>; 2],
    sims: [ArmSimulator; 2],
    _folder: tempfile::TempDir,
}

impl Pair {
    fn new() -> Self {
        Self::of(NodeFile::default())
    }

    /// Opens a node with this file and both arms. The design is a short line.
    fn of(file: NodeFile) -> Self {
        let entry = |name: &str| ArmEntry {
            name: name.to_owned(),
            port: SIMULATOR_PORT.to_owned(),
            ..NodeFile::default().arms.remove(0)
        };
        let file = NodeFile {
            arms: ["left", "right"].map(entry).into(),
            ..file
        };
        let folder = tempfile::tempdir().unwrap();
        let line = "polylines = [[[100.0, 140.0], [110.0, 140.0]]]";
        let text = SHIPPED.replace("file = \"rings.svg\"", line);
        std::fs::write(folder.path().join("two_arms.toml"), text).unwrap();
        let library = SceneLibrary::new(Some(folder.path().to_owned()));
        let parts = library.shared("two_arms", None).unwrap().parts;
        let parts: [ScenePart; 2] = parts.try_into().unwrap();
        let scenes = parts.map(|part| part.scene);
        let clock = NodeClock::simulated();
        let sims = scenes
            .each_ref()
            .map(|scene| ArmSimulator::new(&scene.arm, &scene.rest_rad));
        let attached = scenes.iter().zip(&sims).map(|(scene, sim)| {
            let device = sim.clone();
            let open: PortOpener = Box::new(move |clock| {
                let link =
                    MemoryLink::new(device.clone(), clock, "pair").map_err(LinkError::Read)?;
                Ok(Box::new(link) as Box<dyn ByteLink>)
            });
            let permits = Arc::new(PermitRegistry::everything());
            let motion = MotionHandle::start(Arc::clone(&scene.arm), clock.clone(), permits, open);
            let name = scene.arm_name.as_ref().unwrap();
            Arc::new(AttachedArm::new(name, motion.unwrap(), None))
        });
        let state = NodeStorage::open(folder.path().to_owned(), &file).unwrap();
        let (attached, output) = (attached.collect(), folder.path().to_owned());
        Self {
            node: Arc::new(Node::new(file, library, attached, output, state)),
            scenes,
            sims,
            _folder: folder,
        }
    }

    fn arm(&self, name: &str) -> &Arc<AttachedArm> {
        self.node.arm(Some(name)).unwrap()
    }

    /// Claims the left arm for a motion, or the right one.
    async fn claim(&self, arm: usize, who: ActorRank) -> Result<Vec<OwnedMutexGuard<()>>, Refusal> {
        let own = self.node.arms.get(arm).unwrap();
        let scene = self.scenes.get(arm).unwrap();
        let alone = TeamSeat::alone();
        alone.claim_arms(&self.node, own, scene, who).await
    }
}

#[tokio::test]
async fn an_arm_beside_one_that_moves_is_not_free_and_the_nodes_own_motions_wait_for_it() {
    let pair = Pair::new();
    let moves = pair.claim(0, ActorRank::Planner).await.unwrap();
    assert!(pair.node.arms.iter().all(|arm| !arm.is_free_to_move()));
    assert!(pair.claim(1, ActorRank::Operator).await.is_err());
    // Each needs both arms, and neither waits for what the other has.
    let park = async |arm| drop(pair.claim(arm, ActorRank::Node).await.unwrap());
    let mut both_park = pin!(futures::future::join(park(0), park(1)));
    assert!(futures::poll!(&mut both_park).is_pending());
    drop(moves);
    both_park.await;
    assert!(pair.node.arms.iter().all(|arm| arm.is_free_to_move()));
}

/// Makes the second servo of an arm read so many counts from where its joint is.
fn shift_reading(sim: &ArmSimulator, scene: &Scene, counts: i32) {
    let (joint, servo) = scene.arm.servos().nth(1).unwrap();
    let ticks = servo.ticks(*sim.true_joints().get(joint).unwrap());
    sim.break_it(SimulatedFault::Position {
        id: servo.id,
        word: Some(u16::try_from(ticks + counts).unwrap()),
    });
}

/// Reads a simulated arm at rest, which otherwise is read when it is woken, for a second and a half.
async fn read_on(motion: &MotionHandle) {
    for _ in 0..30 {
        let clock = motion.clock();
        clock.jump_to(clock.now().after(Duration::from_millis(50)));
        motion.fresh_snapshot().await;
        tokio::task::yield_now().await;
    }
}

/// What happens to the right arm.
type Event<'a> = &'a dyn Fn(&Pair);

#[tokio::test]
async fn an_arm_that_no_longer_stands_beside_one_that_moves_stops_it() {
    let is_pushed = |pair: &Pair| shift_reading(&pair.sims[1], &pair.scenes[1], 40);
    let is_unplugged = |pair: &Pair| pair.sims[1].break_it(SimulatedFault::Unplug);
    let is_nudged = |pair: &Pair| shift_reading(&pair.sims[1], &pair.scenes[1], 10);
    let cases: [(&str, Event<'_>, bool); 3] = [
        ("pushed", &is_pushed, true),
        ("unplugged", &is_unplugged, true),
        ("nudged", &is_nudged, false),
    ];
    for (what, happens, stops) in cases {
        let pair = Pair::new();
        let (left, right) = (pair.arm("left"), pair.arm("right"));
        let alone = TeamSeat::alone();
        let watched = alone.watch_standing(&pair.node, left, &pair.scenes[0]);
        let watched = watched.unwrap();
        let before = left.motion.stops_requested();
        happens(&pair);
        read_on(&right.motion).await;
        let is_stopped = left.motion.stops_requested() > before;
        assert_eq!(is_stopped, stops, "{what}");
        drop(watched);
    }
}

#[tokio::test]
async fn an_arm_whose_torque_goes_off_beside_one_that_moves_stops_it() {
    let pair = Pair::new();
    let (left, right) = (pair.arm("left"), pair.arm("right"));
    for servo in pair.scenes[1].arm.servos().map(|(_, servo)| servo) {
        pair.sims[1].break_it(SimulatedFault::Register {
            id: servo.id,
            address: TORQUE_ENABLE,
            value: 1,
        });
    }
    read_on(&right.motion).await;
    assert!(right.motion.snapshot().energised);
    let alone = TeamSeat::alone();
    let watched = alone.watch_standing(&pair.node, left, &pair.scenes[0]);
    let before = left.motion.stops_requested();
    right.motion.release().await.unwrap().unwrap();
    let mut snapshots = right.motion.watch();
    let is_off = |now: &Snapshot| !now.energised;
    snapshots.wait_for(is_off).await.unwrap();
    tokio::task::yield_now().await;
    assert!(left.motion.stops_requested() > before);
    drop(watched);
}

/// Register of STS servos.
const TORQUE_ENABLE: u16 = 40;

#[tokio::test]
async fn a_preview_of_both_is_judged_within_the_zone_of_each() {
    let pair = Pair::new();
    let up = |joint, at| if joint == 1 { at + 0.3 } else { at };
    let plan = |scene: &Arc<Scene>| {
        let poses = [scene.rest_rad.map(up), scene.rest_rad];
        let plan = plan::go_to(scene, &scene.rest_rad, &poses, &SilentObserver);
        plan.unwrap().trajectory
    };
    let plans = pair.scenes.each_ref().map(plan);
    let judged = async || {
        let both = pair.node.arms.clone();
        let standing = StandingArms::beside_all(&pair.node, both, &pair.scenes[0]).await;
        let [left, right] = [0, 1].map(|arm: usize| (&pair.scenes[arm], &plans[arm]));
        standing.ok().unwrap().judge_all(&[left, right])
    };
    assert_eq!(judged().await, Ok(()));
    let (near_m, far_m) = (-0.02, 2.0);
    let zone = AxisAlignedBox {
        min_m: [near_m; 3].into(),
        max_m: [far_m; 3].into(),
    };
    let interlock = ArmInterlock::new(Arc::default(), Vec::new(), Vec::new(), Some(zone));
    pair.arm("right").permits().interlock(interlock);
    let refused = judged().await.unwrap_err();
    let is_of_zone = |refusal: &gate::GateRefusal| {
        let is_rule = matches!(refusal.rule, GateRule::Workspace | GateRule::Stop);
        is_rule && refusal.arm.as_deref() == Some("right")
    };
    assert!(refused.0.iter().all(is_of_zone), "{refused}");
}

/// Calls `stroke` as a planner.
async fn draw(node: Arc<Node>, arguments: serde_json::Value) -> Reply {
    let request = ToolRequest {
        tool: "stroke".to_owned(),
        arguments: ReceivedArguments::Value(arguments),
        caller: "test".to_owned(),
        who: ActorRank::Planner,
        principal: None,
        hop: None,
        is_step: false,
        arrived: node.stamp_arrival(),
    };
    node.call(request, RemoteCallWatch::unobserved()).await
}

/// The drawing of one arm alone waits for a person, so a call that waited for it would not end.
#[tokio::test]
async fn a_call_for_both_arms_does_not_wait_for_one_that_draws_alone() {
    let pair = Pair::of(NodeFile {
        before_drawing: BeforeDrawingEntry::All(BeforeDrawing::Person),
        ..NodeFile::default()
    });
    let alone = serde_json::json!({"scene": "two_arms", "arm": "left"});
    let mut alone = AbortOnDropHandle::new(base::task::spawn(draw(Arc::clone(&pair.node), alone)));
    let waits = async {
        while pair.node.pending().is_empty() {
            base::task::pause(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        reply = &mut alone => panic!("{}", reply.unwrap().text),
        () = waits => {}
    }
    let both = draw(
        Arc::clone(&pair.node),
        serde_json::json!({"scene": "two_arms"}),
    );
    assert_eq!(both.await.code(), Some("busy"));
    let waiting = pair.node.pending().remove(0);
    pair.node.refuse_plan(&waiting.job, &waiting.plan).unwrap();
    assert!(alone.await.unwrap().is_error);
}
