//! Two arms over one table: which pairs count as apart, and that the others are enabled one at a time.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use std::sync::LazyLock;

use nalgebra::Point3;
use proptest::prelude::*;

use super::super::team::StandingArms;
use super::*;
use crate::{NodeStorage, ToolRequest};
use args::ReceivedArguments;
use base::clock::NodeClock;
use base::units::ClockInstant;
use config::SIMULATOR_PORT;
use fleet::RemoteCallWatch;
use link::memory::MemoryLink;
use link::{ByteLink, LinkError};
use motion::{MotionHandle, MotionOutcome, PortOpener};
use permit::{ActorRank, PermitError, PermitRegistry};
use sim::{ArmSimulator, SimulatedFault};

/// A node whose arms are simulated in this process, though the node takes them for arms on ports.
struct Table {
    node: Arc<Node>,
    scene: Arc<Scene>,
    sims: Vec<ArmSimulator>,
    _folder: tempfile::TempDir,
}

fn entry(name: &str) -> ArmEntry {
    ArmEntry {
        name: name.to_owned(),
        port: format!("/dev/pts/of-{name}"),
        ..NodeFile::default().arms.remove(0)
    }
}

fn entry_at(name: &str, base_m: [f64; 3]) -> ArmEntry {
    ArmEntry {
        base_m: Some(base_m),
        ..entry(name)
    }
}

fn scene() -> Arc<Scene> {
    static SCENE: LazyLock<Arc<Scene>> =
        LazyLock::new(|| SceneLibrary::new(None).scene("default", None).unwrap());
    Arc::clone(&SCENE)
}

fn table(arms: Vec<ArmEntry>) -> Table {
    let scene = scene();
    let sims = arms
        .iter()
        .map(|_| ArmSimulator::new(&scene.arm, &scene.rest_rad));
    let sims: Vec<ArmSimulator> = sims.collect();
    let attach = |(entry, sim): (&ArmEntry, &ArmSimulator)| {
        let device = sim.clone();
        let open: PortOpener = Box::new(move |clock| {
            let link = MemoryLink::new(device.clone(), clock, "table").map_err(LinkError::Read)?;
            Ok(Box::new(link) as Box<dyn ByteLink>)
        });
        let permits = match entry.is_simulated() {
            true => PermitRegistry::everything(),
            false => PermitRegistry::none(),
        };
        let clock = NodeClock::simulated();
        let motion = MotionHandle::start(Arc::clone(&scene.arm), clock, Arc::new(permits), open);
        Arc::new(AttachedArm::new(&entry.name, motion.unwrap(), None))
    };
    let attached = arms.iter().zip(&sims).map(attach).collect();
    let file = NodeFile {
        arms,
        ..NodeFile::default()
    };
    let folder = tempfile::tempdir().unwrap();
    let state = NodeStorage::open(folder.path().to_owned(), &file).unwrap();
    let output = folder.path().to_owned();
    let node = Node::new(file, SceneLibrary::new(None), attached, output, state);
    Table {
        node: Arc::new(node),
        scene,
        sims,
        _folder: folder,
    }
}

impl Table {
    fn enable(&self, name: &str) -> Result<(), Refusal> {
        self.node
            .enable(&self.scene, Some(name), None, &self.node.stamp_arrival())
            .map(drop)
    }

    fn arm(&self, name: &str) -> &Arc<AttachedArm> {
        self.node.arm(Some(name)).unwrap()
    }

    fn is_enabled(&self, name: &str) -> bool {
        let arm = self.arm(name);
        arm.permits().any_enabled(arm.motion.clock().now())
    }

    async fn move_to(&self, name: &str, pose: &JointVector) {
        let (arm, scene) = (self.arm(name), &self.scene);
        let start = arm.motion.snapshot().measured.unwrap();
        let plan =
            plan::go_to(scene, &start.position_rad, &[*pose], &plan::SilentObserver).unwrap();
        let now = arm.motion.clock().now();
        let permit = arm.permits().ask(scene, now).unwrap();
        let proof = gate::check(scene, permit, &start, now, plan.trajectory).unwrap();
        arm.moved_in(scene);
        let outcome = arm.motion.run(proof, arm.motion.stops_requested()).await;
        assert!(
            matches!(outcome, Ok(MotionOutcome::Reached { .. })),
            "{outcome:?}"
        );
    }
}

fn assert_refused(enabled: Result<(), Refusal>, texts: &[&str]) {
    let refusal = enabled.unwrap_err();
    for text in texts {
        assert!(
            refusal.to_string().contains(text),
            "{text:?} is not in {refusal:?}"
        );
    }
}

#[test]
fn refuses_the_second_of_two_arms_of_which_nothing_is_known() {
    let table = table(vec![entry("left"), entry("right")]);
    let both = table
        .node
        .enable(&table.scene, None, None, &table.node.stamp_arrival())
        .map(drop);
    assert_refused(
        both,
        &[
            "`left`",
            "`right`",
            "base_m",
            "apart = true",
            "--arm",
            "othing was enabled",
        ],
    );
    table.enable("left").unwrap();
    // Enabling the same arm again does not count as a second arm.
    table.enable("left").unwrap();
    assert_refused(
        table.enable("right"),
        &[
            "because of `left`",
            "enabled for default",
            "othing was enabled",
        ],
    );
    let arm = table.arm("right");
    let now = arm.motion.clock().now();
    assert!(matches!(
        arm.permits().ask(&table.scene, now),
        Err(PermitError::NeedsEnabling { .. })
    ));
    let denied = arm.permits().enable(&table.scene, now, None, 0);
    assert!(
        matches!(denied, Err(PermitError::OtherArm(_))),
        "{denied:?}"
    );
    table.arm("left").permits().disable();
    table.enable("right").unwrap();
    assert_refused(table.enable("left"), &["because of `right`"]);
    assert_refused(table.enable("middle"), &["`middle`", "left, right"]);
}

#[tokio::test]
async fn refuses_an_arm_while_the_other_holds_itself_up_over_the_table() {
    let table = table(vec![
        entry_at("left", [0.0; 3]),
        entry_at("right", [0.3, 0.0, 0.0]),
    ]);
    table.enable("left").unwrap();
    table.move_to("left", &table.scene.ready_rad).await;
    table.arm("left").permits().disable();
    assert_refused(
        table.enable("right"),
        &["because of `left`", "torque is on", "it is not at rest"],
    );
    table.enable("left").unwrap();
    table.move_to("left", &table.scene.rest_rad).await;
    assert_refused(table.enable("right"), &["enabled for default"]);
    table.arm("left").permits().disable();
    table.enable("right").unwrap();
}

#[tokio::test]
async fn a_person_s_word_keeps_two_arms_apart_and_is_quoted_in_results() {
    let word = ArmEntry {
        apart: true,
        ..entry("right")
    };
    let table = table(vec![entry("left"), word]);
    assert_eq!(
        table
            .node
            .enable(&table.scene, None, None, &table.node.stamp_arrival())
            .unwrap()
            .len(),
        2
    );
    let request = ToolRequest {
        tool: "reset".to_owned(),
        arguments: ReceivedArguments::Value(json!({"scene": "default"})),
        caller: "test".to_owned(),
        who: ActorRank::Operator,
        principal: None,
        hop: None,
        is_step: false,
        arrived: table.node.stamp_arrival(),
    };
    let reply = Arc::clone(&table.node)
        .call(request, RemoteCallWatch::unobserved())
        .await;
    assert!(!reply.is_error, "{}", reply.text);
    let quoted = reply.structured["apart"].as_str().unwrap();
    assert!(quoted.contains("`apart = true` of `right`"), "{quoted}");
    let fields = table.node.neighbour_fields(table.arm("left"));
    assert!(fields.contains_key("apart"));
}

#[test]
fn simulated_arms_stay_apart_unless_they_are_given_places_within_reach() {
    let simulated = |entry: ArmEntry| ArmEntry {
        port: SIMULATOR_PORT.to_owned(),
        ..entry
    };
    let free = table(vec![
        simulated(entry("left")),
        simulated(entry("right")),
        entry("metal"),
    ]);
    assert!(free.is_enabled("left") && free.is_enabled("right"));
    assert!(free.node.separations.is_empty());
    free.node
        .enable(&free.scene, None, None, &free.node.stamp_arrival())
        .unwrap();
    let near = [
        entry_at("left", [0.0; 3]),
        entry_at("right", [0.0, 0.4, 0.0]),
    ];
    let near = table(near.map(simulated).into());
    assert!(!near.is_enabled("left") && !near.is_enabled("right"));
    near.enable("left").unwrap();
    assert_refused(near.enable("right"), &["because of `left`"]);
    let fields = near.node.neighbour_fields(near.arm("right"));
    assert_eq!(fields["one_at_a_time_with"], json!(["left"]));
    let far = [
        entry_at("left", [0.0; 3]),
        entry_at("right", [0.0, 4.0, 0.0]),
    ];
    let far = table(far.map(simulated).into());
    assert!(far.is_enabled("left") && far.is_enabled("right"));
}

#[test]
fn refuses_a_scene_whose_pen_reaches_beyond_the_arms_distance() {
    let table = table(vec![
        entry_at("left", [0.0; 3]),
        entry_at("right", [3.0, 0.0, 0.0]),
    ]);
    assert_eq!(
        table
            .node
            .enable(&table.scene, None, None, &table.node.stamp_arrival())
            .unwrap()
            .len(),
        2
    );
    let mut longer = table.scene.as_ref().clone();
    longer.pens[0].tip_m = Point3::new(0.0, 0.0, 1.5);
    let now = ClockInstant::ZERO;
    let permits = table.arm("left").permits();
    for denied in [
        permits.enable(&longer, now, None, 0).unwrap_err(),
        permits.ask(&longer, now).unwrap_err(),
    ] {
        assert!(denied.to_string().contains("restart"), "{denied}");
    }
}

/// Two arms side by side, each in a zone that ends so far from its base in the direction of the other.
fn in_zones(end_m: f64) -> Table {
    let zone = |base_m: [f64; 3], [from_m, to_m]: [f64; 2], name: &str| ArmEntry {
        base_yaw_deg: Some(90.0),
        zone: Some(ArmZone {
            min_m: [from_m, -0.6, -0.2],
            max_m: [to_m, 0.8, 0.9],
        }),
        ..entry_at(name, base_m)
    };
    table(vec![
        zone([0.0; 3], [-0.6, end_m], "left"),
        zone([1.0, 0.0, 0.0], [1.0 - end_m, 1.6], "right"),
    ])
}

#[test]
fn arms_in_zones_that_do_not_meet_are_enabled_at_once() {
    let table = in_zones(0.4);
    assert_eq!(table.node.separations[0].kind, SeparationKind::ByZone);
    let both = table
        .node
        .enable(&table.scene, None, None, &table.node.stamp_arrival());
    assert_eq!(both.unwrap().len(), 2);
    let near = in_zones(0.46);
    assert!(near.node.separations[0].is_one_at_a_time());
}

#[tokio::test]
async fn no_motion_leaves_its_arms_zone() {
    let wide = in_zones(0.4);
    wide.enable("left").unwrap();
    wide.move_to("left", &wide.scene.ready_rad).await;
    wide.arm("left").permits().disable();
    wide.enable("right").unwrap();
    let narrow = in_zones(0.01);
    narrow.enable("left").unwrap();
    let (arm, scene) = (narrow.arm("left"), &narrow.scene);
    let start = arm.motion.snapshot().measured.unwrap();
    let plan = plan::draw(scene, &start.position_rad, &plan::SilentObserver).unwrap();
    assert_eq!(gate::preview(scene, &plan.trajectory), Ok(()));
    let now = arm.motion.clock().now();
    let permit = arm.permits().ask(scene, now).unwrap();
    let refused = gate::check(scene, permit, &start, now, plan.trajectory.clone()).unwrap_err();
    let is_of_zone = |refusal: &gate::GateRefusal| {
        use gate::GateRule::{Stop, Workspace};
        matches!(refusal.rule, Workspace | Stop)
    };
    assert!(refused.0.iter().all(is_of_zone), "{refused}");
    let previewed = StandingArms::beside(&narrow.node, arm, scene).await;
    let previewed = previewed.ok().unwrap().judge(scene, &plan.trajectory);
    assert_eq!(previewed, Err(refused));
}

/// It lies there without torque, or holds itself up there.
#[tokio::test]
async fn an_arm_outside_its_zone_with_its_torque_on_keeps_both_from_being_enabled() {
    let zone = |name: &str, base_m: [f64; 3], from_m: f64| ArmEntry {
        zone: Some(ArmZone {
            min_m: [from_m, -1.0, -0.2],
            max_m: [from_m + 1.0, 1.0, 1.0],
        }),
        ..entry_at(name, base_m)
    };
    // The zone of the right arm begins a metre from its base.
    let table = table(vec![
        zone("left", [0.0; 3], -0.5),
        zone("right", [1.0, 0.0, 0.0], 2.0),
    ]);
    assert_eq!(table.node.separations[0].kind, SeparationKind::ByZone);
    let both = ["left", "right"];
    for name in both {
        table.enable(name).unwrap();
        table.arm(name).permits().disable();
    }
    for (_, servo) in table.scene.arm.servos() {
        table.sims[1].break_it(SimulatedFault::Register {
            id: servo.id,
            address: TORQUE_ENABLE,
            value: 1,
        });
    }
    let right = &table.arm("right").motion;
    // One servo is asked for its torque in each cycle.
    for _ in table.scene.arm.servos() {
        right.clock().jump_to(right.clock().now().after(CYCLE));
        right.fresh_snapshot().await;
    }
    assert!(right.snapshot().energised);
    for name in both {
        assert_refused(table.enable(name), &["`right`", "torque-off"]);
    }
    right.release().await.unwrap().unwrap();
    let mut snapshots = right.watch();
    snapshots.wait_for(|now| !now.energised).await.unwrap();
    for name in both {
        table.enable(name).unwrap();
    }
}

/// Interval at which an arm at rest is read.
const CYCLE: Duration = Duration::from_millis(50);

/// Register of STS servos.
const TORQUE_ENABLE: u16 = 40;

#[test]
fn refuses_a_shared_scene_whose_bases_stand_elsewhere_than_in_the_node_file() {
    let shared = SceneLibrary::new(None).shared("two_arms", None).unwrap();
    let base = |part: usize| shared.parts[part].base.translation.vector;
    let apart_m = (base(1) - base(0)).norm();
    let arms = |apart_m: f64| {
        let other = ArmEntry {
            base_yaw_deg: None,
            ..entry_at("right", [0.0, apart_m, 0.0])
        };
        table(vec![entry_at("left", [0.0; 3]), other])
    };
    let ask = |table: &Table| {
        let now = ClockInstant::ZERO;
        let permits = table.arm("left").permits();
        permits.enable(&shared.parts[0].scene, now, None, 0)
    };
    ask(&arms(apart_m + 0.002)).unwrap();
    let refused = ask(&arms(apart_m + 0.05)).unwrap_err();
    assert!(matches!(&refused, PermitError::OtherArm(_)), "{refused}");
}

#[test]
fn an_arm_that_overlaps_with_one_of_three_excludes_only_that_one() {
    let table = table(vec![
        entry_at("left", [0.0; 3]),
        entry_at("right", [0.5, 0.0, 0.0]),
        entry_at("far", [5.0, 0.0, 0.0]),
    ]);
    table.enable("far").unwrap();
    table.enable("left").unwrap();
    assert_refused(table.enable("right"), &["because of `left`"]);
    // If the request covers both arms that exclude each other, neither is enabled.
    let all = table
        .node
        .enable(&table.scene, None, None, &table.node.stamp_arrival())
        .map(drop);
    assert_refused(all, &["`left` and `right`"]);
}

fn kind(base_m: [f64; 3], reach_m: [f64; 2]) -> SeparationKind {
    let arms = [entry_at("a", [0.0; 3]), entry_at("b", base_m)];
    let found = separation([&arms[0], &arms[1]], reach_m.map(Some));
    let swapped = separation([&arms[1], &arms[0]], [Some(reach_m[1]), Some(reach_m[0])]);
    let is_apart = |kind: &SeparationKind| matches!(kind, SeparationKind::ByDistance { .. });
    assert_eq!(is_apart(&found), is_apart(&swapped));
    found
}

fn is_apart(base_m: [f64; 3], reach_m: [f64; 2]) -> bool {
    matches!(kind(base_m, reach_m), SeparationKind::ByDistance { .. })
}

#[test]
fn refuses_what_no_number_says_is_apart() {
    assert!(is_apart([1.2, 0.0, 0.0], [0.5, 0.6 - 1e-9]));
    assert!(!is_apart([1.2, 0.0, 0.0], [0.5, 0.6 + 1e-9]));
    for bad in [f64::NAN, f64::INFINITY] {
        assert!(!is_apart([1.2, 0.0, 0.0], [0.5, bad]));
        assert!(!is_apart([f64::NAN, 0.0, 0.0], [0.5, 0.5]));
    }
    let (one, other) = (entry_at("a", [0.0; 3]), entry_at("b", [9.0, 0.0, 0.0]));
    let unknown = separation([&one, &other], [Some(0.5), None]);
    assert!(matches!(unknown, SeparationKind::OneAtATime(_)));
    let unplaced = separation([&one, &entry("b")], [Some(0.5), Some(0.5)]);
    assert!(matches!(unplaced, SeparationKind::OneAtATime(_)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn nothing_of_an_arm_is_farther_from_its_base_than_it_reaches(at in prop::array::uniform7(0.0..1.0_f64)) {
        let scene = scene();
        let limits = &scene.arm.limits;
        let ranges = limits.lower_rad.iter().zip(limits.upper_rad.iter()).zip(at);
        let angles: Vec<f64> = ranges.map(|((low, high), at)| low + (high - low) * at).collect();
        let joints = JointVector::from_slice(&angles);
        let frames = scene.arm.chain.frames(&joints);
        let capsules = scene.arm.capsules.iter().flat_map(|capsule| {
            let frame = frames.get(capsule.joints_before).unwrap();
            [capsule.from_m, capsule.to_m].map(|end| (frame * end).coords.norm() + capsule.radius_m)
        });
        let arm_m = capsules.fold(0.0, f64::max);
        prop_assert!(arm_m <= scene.arm.reach_m(), "{arm_m}");
        let tips = scene.pens.iter().map(|pen| (frames.tool * pen.tip_m).coords.norm());
        let tip_m = tips.fold(arm_m, f64::max);
        prop_assert!(tip_m <= scene.reach_m(), "{tip_m}");
    }

    #[test]
    fn what_both_can_reach_never_meets_where_two_arms_are_found_apart(
        base in prop::array::uniform3(-3.0..3.0_f64), reach in prop::array::uniform2(0.1..1.5_f64),
        one in prop::array::uniform3(-1.0..1.0_f64), other in prop::array::uniform3(-1.0..1.0_f64),
        more in 0.0..1.0_f64
    ) {
        let reached_point = |at: [f64; 3], reach_m: f64| {
            let at = Point3::from(at).coords;
            Point3::from(at / at.norm().max(1.0) * reach_m)
        };
        let gap_m = (reached_point(one, reach[0]) - (reached_point(other, reach[1]) + Point3::from(base).coords)).norm();
        let longer = [reach[0] + more, reach[1]];
        let farther = base.map(|at| at * (1.0 + more));
        if is_apart(base, reach) {
            prop_assert!(gap_m >= SEPARATION_M - 1e-12, "{gap_m}");
            prop_assert!(is_apart(farther, reach));
        } else {
            prop_assert!(!is_apart(base, longer));
        }
    }
}

/// An operator's action on one of three arms in a row. The middle arm is within reach of both others.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Enable(usize, Option<u64>),
    Disable(usize),
    Wait(u64),
}

fn operation() -> impl Strategy<Value = Operation> {
    let lasts = prop::option::of(1..30_u64);
    prop_oneof![
        3 => (0..3_usize, lasts).prop_map(|(arm, lasts)| Operation::Enable(arm, lasts)),
        1 => (0..3_usize).prop_map(Operation::Disable),
        1 => (1..30_u64).prop_map(Operation::Wait),
    ]
}

#[test]
fn no_order_of_enabling_leaves_two_arms_enabled_that_can_touch() {
    const NAMES: [&str; 3] = ["left", "middle", "right"];
    let places = [[0.0, 0.0, 0.0], [0.8, 0.0, 0.0], [1.6, 0.0, 0.0]];
    let arms = NAMES.into_iter().zip(places);
    let table = table(arms.map(|(name, place)| entry_at(name, place)).collect());
    let exclusive: Vec<&ArmSeparation> = table
        .node
        .separations
        .iter()
        .filter(|pair| pair.is_one_at_a_time())
        .collect();
    assert_eq!(exclusive.len(), 2, "{:?}", table.node.separations);
    let config = ProptestConfig::with_cases(300);
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let operations = prop::collection::vec(operation(), 1..40);
    let result = runner.run(&operations, |operations| {
        NAMES
            .iter()
            .for_each(|name| table.arm(name).permits().disable());
        for operation in operations {
            match operation {
                Operation::Enable(arm, lasts) => {
                    let lasts = lasts.map(Duration::from_secs);
                    let before = NAMES.map(|name| table.is_enabled(name));
                    let enabled = table.node.enable(
                        &table.scene,
                        Some(NAMES[arm]),
                        lasts,
                        &table.node.stamp_arrival(),
                    );
                    let is_neighbour_enabled = if arm == 1 {
                        before[0] || before[2]
                    } else {
                        before[1]
                    };
                    prop_assert_eq!(enabled.is_err(), is_neighbour_enabled);
                }
                Operation::Disable(arm) => table.arm(NAMES[arm]).permits().disable(),
                Operation::Wait(s) => NAMES.iter().for_each(|name| {
                    let clock = table.arm(name).motion.clock();
                    clock.jump_to(clock.now().after(Duration::from_secs(s)));
                }),
            }
            let now = NAMES.map(|name| table.is_enabled(name));
            prop_assert!(!(now[1] && (now[0] || now[2])), "{:?}", now);
        }
        Ok(())
    });
    result.unwrap();
}
