//! A stricter scene never lets through what a looser one refuses: pairs of scenes, one motion.
#![expect(
    clippy::print_stdout,
    reason = "the seed, so that a run can be repeated"
)]

use std::cell::Cell;
use std::sync::{Arc, OnceLock};

use base::units::JointVector;
use gate::{GateRefusal, GateRule};
use nalgebra::{Point3, Vector3};
use plan::{SilentObserver, SpanKind, Trajectory, TrajectorySpan};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseError, TestCaseResult, TestRunner};
use scene::{AxisAlignedBox, KeepOut, Scene, SceneLibrary};

use super::{default_plan, ease, only, refusals, slow, with_arm};

const SEED: u64 = 0x0057_eadf;

/// Pairs in a normal run of all shares, and the most that `STEADYHAND_CASES` is taken for.
const PAIRS: u32 = 1_000;
/// Shares of them, each a test with a seed of its own, so that processors judge them side by side.
const SHARES: u32 = 4;
const PAIRS_MAX: u32 = 100_000;

/// Samples of a shipped drawing that are judged alone.
const WINDOW: usize = 150;

fn cut_out(name: &str, min_m: [f64; 3], max_m: [f64; 3]) -> KeepOut {
    KeepOut {
        name: name.to_owned(),
        corners: AxisAlignedBox {
            min_m: min_m.into(),
            max_m: max_m.into(),
        },
    }
}

/// Refusals of the default drawing with one keep-out in its scene.
fn drawn_beside(min_m: [f64; 3], max_m: [f64; 3]) -> Vec<GateRefusal> {
    super::changed(|scene| scene.keep_outs.push(cut_out("box", min_m, max_m)))
}

#[test]
fn refuses_a_larger_keep_out_as_it_refuses_a_smaller_one() {
    for (min_m, max_m) in [
        // Beside the base, and around more and more of it.
        ([0.025, -0.24, 0.0], [0.06, -0.08, 0.1]),
        ([0.025, -0.24, 0.0], [0.06, 0.0, 0.1]),
        ([0.025, -0.24, 0.0], [0.06, 0.2, 0.2]),
        // A thin rail, and everything.
        ([0.03, -0.4, 0.0], [0.032, 0.02, 0.2]),
        ([-2.0, -2.0, -2.0], [2.0, 2.0, 2.0]),
    ] {
        let refused = drawn_beside(min_m, max_m);
        let named = |refusal: &&GateRefusal| {
            refusal.rule == GateRule::KeepOut && refusal.why.contains("keep-out `box`")
        };
        assert!(
            refused.iter().any(|one| named(&one)),
            "{max_m:?}: {refused:#?}"
        );
    }
}

/// The middle of a part of the arm, at a pose.
fn middle_of(scene: &Scene, part: &str, q: &JointVector) -> Point3<f64> {
    let capsules = scene.arm.capsules.iter();
    let capsule = capsules.clone().find(|capsule| capsule.name == part);
    let capsule = capsule.unwrap();
    let frame = slow::frames(scene, q)[capsule.joints_before];
    let ends = [capsule.from_m, capsule.to_m].map(|end| frame.transform_point(&end));
    nalgebra::center(&ends[0], &ends[1])
}

/// Half a radian about its foot, slowly.
fn turning(kind: SpanKind, by: f64) -> Trajectory {
    let from = default_plan().0.ready_rad;
    let to = from.map(|joint, q| if joint == 0 { q + by } else { q });
    only(kind, 10, ease(&from, &to, 300))
}

fn around(point: Point3<f64>, half_m: f64) -> KeepOut {
    let half = Vector3::from([half_m; 3]);
    cut_out("box", (point - half).into(), (point + half).into())
}

/// A box that the wrist stands in and the gripper comes into.
#[test]
fn refuses_a_part_that_enters_a_keep_out_in_which_another_stands() {
    let (scene, _) = default_plan();
    let (turn, kinds) = (0.5, [SpanKind::Pose, SpanKind::Jog, SpanKind::Travel]);
    for kind in kinds {
        let motion = turning(kind, turn);
        let last = motion.samples[motion.samples.len() - 1];
        let (stands, comes) = (
            middle_of(scene, "upper arm", &motion.samples[0]),
            middle_of(scene, "gripper", &last),
        );
        let mut both = Scene::clone(scene);
        // Deeper around the gripper: of two, the deeper is told.
        let around_it = Vector3::repeat(0.015);
        let low = stands.inf(&(comes - around_it));
        let high = stands.sup(&(comes + around_it));
        both.keep_outs.push(cut_out("box", low.into(), high.into()));
        let mut one = Scene::clone(scene);
        one.keep_outs.push(around(comes, 0.005));
        for scene in [one, both] {
            let refused = refusals(scene, &motion);
            let comes = refused
                .iter()
                .any(|one| one.rule == GateRule::KeepOut && !one.why.contains("upper arm"));
            assert!(comes, "{kind:?}: {refused:#?}");
        }
    }
}

/// Once in a keep-out, what takes the arm away may take it out of there; a drawing begins outside.
#[test]
fn lets_an_arm_out_of_a_keep_out_and_no_deeper_and_draws_nothing_there() {
    let (scene, _) = default_plan();
    let from = scene.ready_rad;
    let gripper = middle_of(scene, "gripper", &from);
    let rotation = turning(SpanKind::Pose, 0.5);
    let after = middle_of(
        scene,
        "gripper",
        &rotation.samples[rotation.samples.len() - 1],
    );
    // Beside the gripper, on the side that it turns from: it stands 8 mm deep in it.
    let away = (after - gripper).normalize();
    let side = gripper - away * (0.02 - 0.008 + 0.05);
    let mut scene = Scene::clone(scene);
    scene.keep_outs.push(around(side, 0.05));
    for (kind, by, passes) in [
        (SpanKind::Pose, 0.5, true),
        (SpanKind::Jog, 0.5, true),
        (SpanKind::Pose, -0.2, false),
        (SpanKind::Jog, -0.2, false),
        (SpanKind::Travel, 0.5, false),
        (SpanKind::Approach, 0.5, false),
        (SpanKind::Draw, 0.5, false),
    ] {
        let refused = refusals(scene.clone(), &turning(kind, by));
        let kept = refused.iter().any(|one| one.rule == GateRule::KeepOut);
        assert_eq!(!kept, passes, "{kind:?} {by}: {refused:#?}");
    }
    let refused = refusals(scene, &turning(SpanKind::Draw, 0.5));
    let first = refused
        .iter()
        .find(|one| one.rule == GateRule::KeepOut)
        .unwrap();
    assert_eq!(first.sample, 0, "{first:?}");
    assert!(first.why.contains("inside") && first.why.contains("reset"));
}

/// The wrist begins beyond one side of the workspace, and the gripper leaves it by another.
#[test]
fn refuses_a_part_that_leaves_the_workspace_while_another_begins_outside() {
    let (scene, _) = default_plan();
    let motion = turning(SpanKind::Pose, 0.5);
    let last = motion.samples[motion.samples.len() - 1];
    let sides = |name: &str, q: &JointVector| middle_of(scene, name, q);
    let (before, after) = (
        sides("gripper", &motion.samples[0]),
        sides("gripper", &last),
    );
    let mut narrow = Scene::clone(scene);
    // The gripper's side, half way; and all of the arm lower than its ceiling from the beginning.
    let way = after.x - before.x;
    let limit = before.x + way / 2.0 + 0.03 * way.signum();
    if way > 0.0 {
        narrow.limits.workspace.max_m.x = limit;
    } else {
        narrow.limits.workspace.min_m.x = limit;
    }
    let refused = |scene: &Scene| {
        let refusals_found = refusals(scene.clone(), &motion);
        let outside = refusals_found
            .iter()
            .find(|one| one.rule == GateRule::Workspace);
        assert!(outside.is_some(), "{refusals_found:#?}");
    };
    refused(&narrow);
    for ceiling_m in [0.2, 0.1, 0.05] {
        narrow.limits.workspace.max_m.z = ceiling_m;
        refused(&narrow);
    }
}

/// Two pens in turns, a sample each: the tip that draws next moves as fast as the other.
#[test]
fn refuses_a_tip_that_is_too_fast_where_pens_change() {
    let scene = SceneLibrary::new(None).scene("two_pens", None).unwrap();
    let to = scene
        .ready_rad
        .map(|joint, q| if joint == 0 { q + 0.5 } else { q });
    let samples = ease(&scene.ready_rad, &to, 60);
    let spans = (0..samples.len()).map(|at| TrajectorySpan {
        kind: SpanKind::Travel,
        item: Some(0),
        pen: at % 2,
        first: at,
        end: at + 1,
    });
    let in_turns = Trajectory {
        reached: Vec::new(),
        spans: spans.collect(),
        ..only(SpanKind::Travel, 10, samples.clone())
    };
    for plan in [only(SpanKind::Travel, 10, samples), in_turns] {
        let refused = refusals(Scene::clone(&scene), &plan);
        let fast = refused.iter().any(|one| one.rule == GateRule::TipSpeed);
        assert!(fast, "{refused:#?}");
    }
}

/// A joint begins beyond one of its limits and passes the other.
#[test]
fn refuses_a_joint_that_passes_one_limit_having_begun_beyond_the_other() {
    let (scene, _) = default_plan();
    let at = scene.ready_rad[0];
    let mut narrow = Scene::clone(scene);
    with_arm(&mut narrow, |arm| {
        // Narrower than the step from one sample to the next.
        arm.limits.lower_rad[0] = at + 0.0300;
        arm.limits.upper_rad[0] = at + 0.0301;
    });
    let to = scene
        .ready_rad
        .map(|joint, q| if joint == 0 { q + 0.045 } else { q });
    let motion = only(SpanKind::Pose, 10, vec![scene.ready_rad, to]);
    let refused = refusals(narrow, &motion);
    let beyond = refused.iter().find(|one| one.rule == GateRule::JointLimit);
    let limit = beyond
        .unwrap_or_else(|| panic!("{refused:#?}"))
        .excess
        .unwrap()
        .limit;
    assert!((limit - at - 0.0301).abs() < 1e-9, "{beyond:?}");
}

/// A motion: where it goes as shares of each joint's range, or from where on a window of the
/// shipped drawing is taken.
#[derive(Clone, Debug)]
struct Motion {
    vias: Vec<[f64; 5]>,
    window: f64,
    ticks: u32,
    doing: SpanKind,
    bump: (usize, f64, f64),
}

/// A change that makes a scene stricter. Lengths are by face: three low ones, three high ones.
#[derive(Clone, Debug)]
enum Change {
    Grow([f64; 6]),
    Add(Place),
    Shrink([f64; 6]),
    Joint(usize, f64, f64),
    Rates(usize, [f64; 3]),
    Tip([f64; 2]),
    Press(f64),
    Cone(f64),
}

/// A box by what it is near: a sample and a part of the arm, as shares; how far from there, and
/// half its sides.
#[derive(Clone, Debug)]
struct Place {
    at: [f64; 2],
    off_m: [f64; 3],
    half_m: [f64; 3],
}

#[derive(Clone, Debug)]
struct Pair {
    motion: Motion,
    place: Place,
    workspace: [f64; 6],
    range: (usize, f64, f64),
    change: Change,
}

fn place() -> impl Strategy<Value = Place> {
    let half = prop_oneof![2 => 0.002..0.03_f64, 1 => 0.03..0.15_f64];
    (
        prop::array::uniform2(0.0..1.0_f64),
        prop::array::uniform3(-0.06..0.06_f64),
        prop::array::uniform3(half),
    )
        .prop_map(|(at, off_m, half_m)| Place { at, off_m, half_m })
}

fn motion() -> impl Strategy<Value = Motion> {
    let via = prop::array::uniform5(0.1..0.9_f64);
    let doing = prop::sample::select(vec![
        SpanKind::Approach,
        SpanKind::Travel,
        SpanKind::Lower,
        SpanKind::Draw,
        SpanKind::Lift,
        SpanKind::Pose,
        SpanKind::Jog,
        SpanKind::Probe,
    ]);
    (
        prop_oneof![
            1 => Just(Vec::new()),
            3 => prop::collection::vec(via, 2..4)
        ],
        0.0..1.0_f64,
        40_u32..120,
        doing,
        (0_usize..5, 0.2..0.8_f64, -0.05..0.05_f64),
    )
        .prop_map(|(vias, window, ticks, doing, bump)| Motion {
            vias,
            window,
            ticks,
            doing,
            bump,
        })
}

fn change() -> impl Strategy<Value = Change> {
    let grown = prop_oneof![1 => Just(0.0), 2 => 0.0..0.2_f64, 1 => 0.2..2.0_f64];
    let shrunk = prop_oneof![1 => Just(0.0), 2 => 0.0..0.4_f64];
    let less = prop_oneof![1 => Just(1.0), 2 => 0.1..1.0_f64];
    prop_oneof![
        4 => prop::array::uniform6(grown).prop_map(Change::Grow),
        1 => place().prop_map(Change::Add),
        3 => prop::array::uniform6(shrunk).prop_map(Change::Shrink),
        2 => (0_usize..5, 0.0..1.5_f64, 0.0..1.5_f64).prop_map(|(j, a, b)| Change::Joint(j, a, b)),
        1 => (0_usize..5, prop::array::uniform3(less.clone())).prop_map(|(j, by)| Change::Rates(j, by)),
        1 => prop::array::uniform2(less.clone()).prop_map(Change::Tip),
        1 => (0.0..1.0_f64).prop_map(Change::Press),
        1 => less.prop_map(Change::Cone),
    ]
}

fn pair() -> impl Strategy<Value = Pair> {
    let side = prop_oneof![2 => Just(1.0), 1 => 0.05..0.5_f64];
    (
        motion(),
        place(),
        prop::array::uniform6(side),
        (0_usize..5, 0.0..0.4_f64, 0.0..0.4_f64),
        change(),
    )
        .prop_map(|(motion, place, workspace, range, change)| Pair {
            motion,
            place,
            workspace,
            range,
            change,
        })
}

impl Motion {
    fn plan(&self) -> Trajectory {
        let (scene, drawing) = default_plan();
        let limits = &scene.arm.limits;
        let mut plan = if self.vias.is_empty() {
            let last = (drawing.samples.len() - WINDOW) as f64;
            window(drawing, (last * self.window) as usize)
        } else {
            let range = limits
                .lower_rad
                .zip(&limits.upper_rad, |low, high| high - low);
            let pose = |via: &[f64; 5]| {
                range.map(|joint, range| limits.lower_rad[joint] + range * via[joint])
            };
            let poses: Vec<JointVector> = self.vias.iter().map(pose).collect();
            let legs = poses
                .windows(2)
                .flat_map(|pair| ease(&pair[0], &pair[1], self.ticks));
            only(self.doing, 10, legs.collect())
        };
        let (joint, at, far) = self.bump;
        let count = plan.samples.len() as f64;
        for (index, q) in plan.samples.iter_mut().enumerate() {
            let off = (index as f64 / count - at) / 0.2;
            q[joint] += far * (1.0 - off * off).max(0.0).powi(4);
        }
        plan
    }
}

fn window(drawing: &Trajectory, first: usize) -> Trajectory {
    let inside = |at: usize| at.clamp(first, first + WINDOW) - first;
    let spans = drawing.spans.iter().map(|span| TrajectorySpan {
        first: inside(span.first),
        end: inside(span.end),
        ..*span
    });
    Trajectory {
        reached: Vec::new(),
        samples: drawing.samples[first..first + WINDOW].to_vec(),
        spans: spans.filter(|span| span.end > span.first).collect(),
        ..drawing.clone()
    }
}

impl Place {
    fn keep_out(&self, scene: &Scene, plan: &Trajectory) -> KeepOut {
        let pick =
            |fraction: f64, count: usize| ((count as f64 * fraction) as usize).min(count - 1);
        let q = &plan.samples[pick(self.at[0], plan.samples.len())];
        let capsule = &scene.arm.capsules[pick(self.at[1], scene.arm.capsules.len())];
        let middle = middle_of(scene, &capsule.name, q) + Vector3::from(self.off_m);
        let half = Vector3::from(self.half_m);
        cut_out("box", (middle - half).into(), (middle + half).into())
    }
}

/// A box with its faces moved outwards by so much.
fn moved(corners: &AxisAlignedBox, by: &[f64; 6]) -> AxisAlignedBox {
    AxisAlignedBox {
        min_m: corners.min_m - Vector3::new(by[0], by[1], by[2]),
        max_m: corners.max_m + Vector3::new(by[3], by[4], by[5]),
    }
}

impl Pair {
    fn scenes(&self, plan: &Trajectory) -> (Scene, Scene) {
        let mut scene = Scene::clone(&default_plan().0);
        scene.limits.travel_mm_s = 250.0;
        scene.keep_outs.push(self.place.keep_out(&scene, plan));
        let sides = self.workspace;
        scene.limits.workspace = AxisAlignedBox {
            min_m: Point3::new(-sides[0], -sides[1], -sides[2]),
            max_m: Point3::new(sides[3], sides[4], sides[5]),
        };
        let (joint, low, high) = self.range;
        narrow(&mut scene, joint, low, high);
        let mut stricter = scene.clone();
        self.change.apply(&mut stricter, plan);
        (scene, stricter)
    }
}

/// A joint's range made smaller from both sides.
fn narrow(scene: &mut Scene, joint: usize, low: f64, high: f64) {
    with_arm(scene, |arm| {
        arm.limits.lower_rad[joint] += low;
        arm.limits.upper_rad[joint] -= high;
    });
}

impl Change {
    fn apply(&self, scene: &mut Scene, plan: &Trajectory) {
        match self {
            Self::Grow(by) => {
                let corners = &mut scene.keep_outs[0].corners;
                *corners = moved(corners, by);
            }
            Self::Add(place) => {
                let added = place.keep_out(scene, plan);
                scene.keep_outs.push(added);
            }
            Self::Shrink(by) => {
                let smaller = moved(&scene.limits.workspace, &by.map(|by| -by));
                let (low, high) = (smaller.min_m, smaller.max_m);
                scene.limits.workspace = AxisAlignedBox {
                    // What would be turned inside out becomes a wall.
                    max_m: high.sup(&low),
                    min_m: low,
                };
            }
            Self::Joint(joint, low, high) => narrow(scene, *joint, *low, *high),
            Self::Rates(joint, [speed, push, jerk]) => with_arm(scene, |arm| {
                arm.limits.velocity_rad_s[*joint] *= speed;
                arm.limits.acceleration_rad_s2[*joint] *= push;
                arm.limits.jerk_rad_s3[*joint] *= jerk;
            }),
            Self::Tip([draw, travel]) => {
                scene.limits.draw_mm_s *= draw;
                scene.limits.travel_mm_s *= travel;
            }
            Self::Press(by) => scene.heights.press_mm *= by,
            Self::Cone(by) => scene.pens[0].cone_rad *= by,
        }
    }
}

/// Returns whether a motion only takes the arm away, and begins in a keep-out: it is let out.
fn is_let_out(scene: &Scene, plan: &Trajectory) -> bool {
    let away = [SpanKind::Lift, SpanKind::Pose, SpanKind::Jog];
    let standing = only(SpanKind::Travel, 10, vec![plan.samples[0]; 2]);
    let found = slow::Slow::judge(scene, &standing).found;
    plan.spans.iter().all(|span| away.contains(&span.kind))
        && found.get("KeepOut").is_some_and(|found| found.possibly)
}

fn rules(refused: &[GateRefusal]) -> Vec<GateRule> {
    let mut rules: Vec<GateRule> = refused.iter().map(|refusal| refusal.rule).collect();
    rules.dedup();
    rules
}

/// Returns the first rule that said no and does not say so still; a stop that could not be proven may be
/// refused by another rule before.
fn stays_refused(loose: &[GateRule], strict: &[GateRule]) -> Option<GateRule> {
    let is_kept =
        |rule: &GateRule| strict.contains(rule) || (*rule == GateRule::Stop && !strict.is_empty());
    loose.iter().copied().find(|rule| !is_kept(rule))
}

#[test]
fn no_stricter_scene_lets_through_what_a_looser_one_refuses() {
    judge_share(0);
}

#[test]
fn no_stricter_scene_lets_through_what_a_looser_one_refuses_second_share() {
    judge_share(1);
}

#[test]
fn no_stricter_scene_lets_through_what_a_looser_one_refuses_third_share() {
    judge_share(2);
}

#[test]
fn no_stricter_scene_lets_through_what_a_looser_one_refuses_fourth_share() {
    judge_share(3);
}

fn judge_share(fraction: u64) {
    let setting = std::env::var("STEADYHAND_CASES").ok();
    let pairs = setting.and_then(|n| n.parse().ok()).unwrap_or(PAIRS);
    // `PROPTEST_CASES` may ask for fewer.
    let fewer = std::env::var_os("PROPTEST_CASES").map(|_| ProptestConfig::default().cases);
    let pairs = fewer.map_or(pairs, |fewer| pairs.min(fewer)).min(PAIRS_MAX);
    let (pairs, seed) = (pairs.div_ceil(SHARES), SEED + fraction);
    println!("{pairs} pairs from seed {seed:#x}");
    let mut runner = TestRunner::new(ProptestConfig {
        cases: pairs,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let (refused, stricter_only, let_out) = (Cell::new(0_u32), Cell::new(0_u32), Cell::new(0_u32));
    let judged = runner.run(&pair(), |pair| -> TestCaseResult {
        let plan = pair.motion.plan();
        let (loose, strict) = pair.scenes(&plan);
        let strict_scene = Arc::new(strict.clone());
        let (loose, strict) = (
            rules(&refusals(loose, &plan)),
            rules(&refusals(strict, &plan)),
        );
        let count = |cell: &Cell<u32>, yes: bool| cell.set(cell.get() + u32::from(yes));
        count(
            &refused,
            loose.contains(&GateRule::KeepOut) || loose.contains(&GateRule::Workspace),
        );
        count(&stricter_only, strict.len() > loose.len());
        match stays_refused(&loose, &strict) {
            Some(GateRule::KeepOut) if is_let_out(&strict_scene, &plan) => count(&let_out, true),
            Some(rule) => {
                let reason = format!("{rule:?} of {loose:?} is missing in {strict:?}");
                return Err(TestCaseError::fail(reason));
            }
            None => {}
        }
        Ok(())
    });
    judged.unwrap_or_else(|failed| panic!("seed {seed:#x}: {failed}"));
    let [refused, stricter_only, let_out] = [refused, stricter_only, let_out].map(Cell::into_inner);
    println!(
        "{refused} refused for a place, {stricter_only} in the stricter scene alone, {let_out} let out"
    );
    // A few say nothing of how many there are.
    let is_conclusive = refused > pairs / 4 && stricter_only > pairs / 20 && let_out < pairs / 50;
    assert!(is_conclusive || pairs < PAIRS / SHARES);
}

/// Every shipped scene of one arm with its plan, and boxes of all sizes about the place of its first line.
#[test]
fn refuses_shipped_drawings_for_every_keep_out_around_what_they_cross() {
    static PLANS: OnceLock<Vec<(Arc<Scene>, Trajectory)>> = OnceLock::new();
    let plans = PLANS.get_or_init(|| {
        let planned = ["letters", "two_pens", "widowx"].map(|name| {
            let scene = SceneLibrary::new(None).scene(name, None).unwrap();
            let plan = plan::draw(&scene, &scene.rest_rad, &SilentObserver).unwrap();
            (scene, plan.trajectory)
        });
        planned.to_vec()
    });
    for (scene, plan) in plans {
        assert!(gate::preview(scene, plan).is_ok());
        let draws = plan.spans.iter().find(|span| span.kind == SpanKind::Draw);
        let at = slow::tip(scene, 0, &plan.samples[draws.unwrap().first]);
        for half_m in [0.001, 0.01, 0.05, 0.2, 0.5, 2.0] {
            let mut scene = Scene::clone(scene);
            scene.keep_outs.push(around(at, half_m));
            let refused = rules(&refusals(scene, plan));
            assert!(
                refused.contains(&GateRule::KeepOut),
                "{half_m}: {refused:?}"
            );
        }
    }
}
