//! Two arms of one scene: what passes keeps them apart, by arithmetic of its own, wherever a stop
//! finds either; what is not known of a neighbour is refused.

use std::sync::{Arc, LazyLock};

use base::units::{ArmMeasurement, ClockInstant, JointVector};
use gate::{ExecutionStep, GateRefusal, GateRule, MotionPart, StandingArm};
use nalgebra::{IsometryMatrix3, Point3, Rotation3, Translation3, Vector3};
use permit::PermitRegistry;
use plan::{NEIGHBOUR_SKEW, SilentObserver, SpanKind, Trajectory};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseError, TestRunner};
use scene::{ArmBeside, Order, Scene, SceneLibrary, SheetStroke};

use super::slow;

const SEED: u64 = 0x0057_eadf;
const CLEARANCE_M: f64 = 0.003;
const PEN_RADIUS_M: f64 = 0.005;

/// A capsule by its ends and radius.
pub(crate) type Rod = ([Point3<f64>; 2], f64);

pub(crate) static DEFAULT: LazyLock<Arc<Scene>> =
    LazyLock::new(|| SceneLibrary::new(None).scene("default", None).unwrap());

pub(crate) fn base(x_m: f64, y_m: f64, yaw_rad: f64) -> IsometryMatrix3<f64> {
    let turn = Rotation3::from_axis_angle(&Vector3::z_axis(), yaw_rad);
    IsometryMatrix3::from_parts(Translation3::new(x_m, y_m, 0.0), turn)
}

fn beside(name: &str, scene: &Scene, base_in_ours: IsometryMatrix3<f64>) -> ArmBeside {
    ArmBeside {
        name: name.to_owned(),
        arm: Arc::clone(&scene.arm),
        base_in_ours,
        pens: scene.pens.clone(),
        uncertainty_m: 0.0,
    }
}

/// Returns the scenes of a left arm and of a right one, whose base is in the left one's frame.
pub(crate) fn shared(left: &Scene, right: &Scene, base: IsometryMatrix3<f64>) -> [Arc<Scene>; 2] {
    let with = |scene: &Scene, name: &str, other: ArmBeside| {
        Arc::new(Scene {
            arm_name: Some(name.to_owned()),
            beside: vec![other],
            ..scene.clone()
        })
    };
    [
        with(left, "left", beside("right", right, base)),
        with(right, "right", beside("left", left, base.inverse())),
    ]
}

pub(crate) fn reading(q: JointVector, ms: u64) -> ArmMeasurement {
    ArmMeasurement {
        at: ClockInstant::from_nanos(ms * 1_000_000),
        position_rad: q,
        velocity_rad_s: q.map(|_, _| 0.0),
        servos: Vec::new(),
    }
}

/// Lines on the sheet, drawn from the ready pose, or a move from there to another pose.
#[derive(Clone, Debug)]
pub(crate) enum Motion {
    Draw(Vec<[[f64; 2]; 2]>),
    Pose([f64; 5]),
}

fn motion() -> impl Strategy<Value = Motion> {
    let place = || [10.0..90.0_f64, 10.0..90.0_f64];
    prop_oneof![
        (place(), place()).prop_map(|(from, to)| Motion::Draw(vec![[from, to]])),
        prop::array::uniform5(-0.5..0.5_f64).prop_map(Motion::Pose),
    ]
}

/// Plans a motion; `None` where the arm alone cannot do it.
pub(crate) fn planned(scene: &Scene, motion: &Motion) -> Option<Trajectory> {
    let start = scene.ready_rad;
    let plan = match motion {
        Motion::Pose(by) => {
            let there = start.map(|joint, angle| angle + by[joint]);
            plan::go_to(scene, &start, &[there, start], &SilentObserver).ok()?
        }
        Motion::Draw(lines_mm) => {
            let line = |points_mm: &[[f64; 2]; 2]| SheetStroke {
                points_mm: points_mm.to_vec(),
                ..SheetStroke::default()
            };
            let drawing = Scene {
                strokes: lines_mm.iter().map(line).collect(),
                order: Order::AsDrawn,
                ..scene.clone()
            };
            plan::draw(&drawing, &start, &SilentObserver).ok()?
        }
    };
    let trajectory = plan.trajectory;
    let alone = gate::preview(&Arc::new(scene.clone()), &trajectory);
    alone.is_ok().then_some(trajectory)
}

/// Lets a motion stand at its end until it has this many samples.
pub(crate) fn padded(mut trajectory: Trajectory, samples: usize) -> Trajectory {
    let fill = |joints: &mut Vec<JointVector>| {
        if let Some(last) = joints.last().copied() {
            joints.resize(samples, last);
        }
    };
    fill(&mut trajectory.samples);
    fill(&mut trajectory.reached);
    trajectory.spans.last_mut().unwrap().end = samples;
    trajectory
}

pub(crate) fn both(motions: [&Motion; 2]) -> Option<[Trajectory; 2]> {
    let [left, right] = motions.map(|motion| planned(&DEFAULT, motion));
    let (left, right) = (left?, right?);
    let samples = left.samples.len().max(right.samples.len());
    Some([left, right].map(|trajectory| padded(trajectory, samples)))
}

pub(crate) fn refused(scenes: &[Arc<Scene>; 2], plans: &[Trajectory; 2]) -> Vec<GateRefusal> {
    let moving = [(&scenes[0], &plans[0]), (&scenes[1], &plans[1])];
    let judged = gate::preview_together(&moving, &[]);
    let refused = judged.err().map_or_else(Vec::new, |refused| refused.0);
    for refusal in &refused {
        assert_eq!(refusal.rule, GateRule::Apart, "{refusal:?}");
    }
    refused
}

/// Every part of an arm and its pens at a pose.
pub(crate) fn rods(scene: &Scene, q: &JointVector, base: &IsometryMatrix3<f64>) -> Vec<Rod> {
    let frames = slow::frames(scene, q);
    let frame = base.to_homogeneous();
    let place = |link: usize, ends: [Point3<f64>; 2]| {
        ends.map(|end| frame.transform_point(&frames[link].transform_point(&end)))
    };
    let body = scene.arm.capsules.iter().map(|capsule| {
        let ends = place(capsule.joints_before, [capsule.from_m, capsule.to_m]);
        (ends, capsule.radius_m)
    });
    let mount = scene.arm.dof() + 1;
    let pens = scene.pens.iter();
    let pens = pens.map(|pen| (place(mount, [Point3::origin(), pen.tip_m]), PEN_RADIUS_M));
    body.chain(pens).collect()
}

fn point_to_segment_m(point: &Point3<f64>, [from, to]: &[Point3<f64>; 2]) -> f64 {
    let along = to - from;
    let at = (point - from).dot(&along) / along.norm_squared().max(1e-18);
    (point - (from + along * at.clamp(0.0, 1.0))).norm()
}

/// The distance from a point that moves along one segment to the other is convex: its least value
/// is searched for.
fn gap_m((one, one_radius): &Rod, (other, other_radius): &Rod) -> f64 {
    let at = |fraction: f64| {
        let point = one[0] + (one[1] - one[0]) * fraction;
        point_to_segment_m(&point, other)
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..40 {
        let third = (high - low) / 3.0;
        if at(low + third) < at(high - third) {
            high -= third;
        } else {
            low += third;
        }
    }
    at(low.midpoint(high)).min(at(0.0)).min(at(1.0)) - one_radius - other_radius
}

pub(crate) fn nearest_m(one: &[Rod], other: &[Rod]) -> f64 {
    let centre = |rod: &Rod| nalgebra::center(&rod.0[0], &rod.0[1]);
    let ball = |rod: &Rod| (rod.0[1] - rod.0[0]).norm() / 2.0 + rod.1;
    let mut least_m = f64::INFINITY;
    for one in one {
        for other in other {
            let bound_m = (centre(one) - centre(other)).norm() - ball(one) - ball(other);
            if bound_m < least_m {
                least_m = least_m.min(gap_m(one, other));
            }
        }
    }
    least_m
}

/// Returns the poses of an arm that is stopped at a sample: along its path, and up.
fn poses_of_stop(scene: &Arc<Scene>, trajectory: &Trajectory, stop_at: usize) -> Vec<JointVector> {
    let first = trajectory.samples[0];
    let mut now = ClockInstant::ZERO;
    let permit = PermitRegistry::everything().ask(scene, now).unwrap();
    let start = reading(first, 0);
    let checked = gate::check(scene, permit, &start, now, trajectory.clone()).unwrap();
    let mut execution = checked.begin(&start, now).unwrap();
    let mut poses = vec![first];
    for tick in 0.. {
        if tick == stop_at {
            execution.stop();
            poses = vec![*execution.goal_rad()];
        }
        now = now.after(trajectory.period);
        let mut measured = reading(*execution.goal_rad(), 0);
        measured.at = now;
        match execution.next(&measured, now).unwrap() {
            ExecutionStep::Go(setpoint) => poses.push(*setpoint.goal_rad()),
            ExecutionStep::Hold => {}
            ExecutionStep::Finished => break,
        }
    }
    poses
}

/// Stops that are tried of each arm, and how many of their poses are looked at.
const STOPS: usize = 12;
const POSE_STEP: usize = 3;

/// The least distance of two arms, wherever both are stopped with one no more ahead of the other
/// than it may be.
fn least_of_stops_m(plans: &[Trajectory; 2], base: &IsometryMatrix3<f64>, from: usize) -> f64 {
    let count = plans[0].samples.len();
    let identity = IsometryMatrix3::identity();
    let mut least_m = f64::INFINITY;
    let step = (count / STOPS).max(1);
    for stop_at in (from % step..count).step_by(step) {
        let bodies = |index: usize, stop_at: usize| -> Vec<Vec<Rod>> {
            let poses = poses_of_stop(&DEFAULT, &plans[index], stop_at);
            let base = [&identity, base][index];
            let poses = poses.iter().step_by(POSE_STEP).chain(poses.last());
            poses.map(|q| rods(&DEFAULT, q, base)).collect()
        };
        let left = bodies(0, stop_at);
        for ahead in [0, NEIGHBOUR_SKEW / 2, NEIGHBOUR_SKEW] {
            for other_at in [stop_at.saturating_sub(ahead), stop_at + ahead] {
                for right in bodies(1, other_at.min(count - 1)) {
                    for left in &left {
                        least_m = least_m.min(nearest_m(left, &right));
                    }
                }
            }
        }
    }
    least_m
}

/// Runs a property. Returns the number of cases, which `PROPTEST_CASES` may make fewer.
fn run<S: Strategy>(
    cases: u32,
    strategy: &S,
    test: impl Fn(S::Value) -> Result<(), TestCaseError>,
) -> u32 {
    let cases = ProptestConfig::default().cases.min(cases);
    let config = ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(SEED),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    TestRunner::new(config).run(strategy, test).unwrap();
    cases
}

/// Two arms that face each other more or less, near enough that some of their motions collide.
fn bases() -> impl Strategy<Value = IsometryMatrix3<f64>> {
    let yaw = std::f64::consts::PI;
    (-0.15..0.15_f64, 0.32..0.5_f64, yaw - 0.6..yaw + 0.6)
        .prop_map(|(x_m, ahead_m, yaw_rad)| base(x_m, -ahead_m, yaw_rad))
}

#[test]
fn what_passes_keeps_both_arms_apart_in_motion_and_in_stops() {
    use std::cell::Cell;
    let (passed, refused_count) = (Cell::new(0), Cell::new(0));
    let strategy = (motion(), motion(), bases(), any::<prop::sample::Index>());
    let cases = run(48, &strategy, |(left, right, base, from)| {
        let Some(plans) = both([&left, &right]) else {
            return Ok(());
        };
        let scenes = shared(&DEFAULT, &DEFAULT, base);
        if !refused(&scenes, &plans).is_empty() {
            refused_count.set(refused_count.get() + 1);
            return Ok(());
        }
        passed.set(passed.get() + 1);
        let least_m = least_of_stops_m(&plans, &base, from.index(1_000));
        prop_assert!(least_m >= CLEARANCE_M, "{least_m} m at {base:?}");
        Ok(())
    });
    let (passed, refused) = (passed.get(), refused_count.get());
    assert!(passed.min(refused) >= 8 || cases < 48, "{passed} {refused}");
}

/// The farthest that the bodies of the left arm reach, and the nearest of the right one, along the
/// line between their bases.
fn extents_m(plans: &[Trajectory; 2], base: &IsometryMatrix3<f64>) -> [f64; 2] {
    let along = base.translation.vector.normalize();
    let reach = |index: usize, base: &IsometryMatrix3<f64>| -> Vec<f64> {
        let samples = plans[index].samples.iter();
        let rods = samples.flat_map(|q| rods(&DEFAULT, q, base));
        let ends = rods.flat_map(|(ends, _)| ends);
        ends.map(|end| end.coords.dot(&along)).collect()
    };
    let left = reach(0, &IsometryMatrix3::identity());
    let right = reach(1, base);
    [
        left.into_iter().fold(f64::NEG_INFINITY, f64::max),
        right.into_iter().fold(f64::INFINITY, f64::min),
    ]
}

/// Arms side by side of a plane come nearer in every point when their bases do.
#[test]
fn nearer_bases_never_turn_a_refusal_into_a_pass() {
    use std::cell::Cell;
    let judged = Cell::new(0);
    let strategy = (motion(), motion(), bases(), [0.0..0.03, 0.0..0.03_f64]);
    let cases = run(64, &strategy, |(left, right, base, gaps_m)| {
        let Some(plans) = both([&left, &right]) else {
            return Ok(());
        };
        let [left_m, right_m] = extents_m(&plans, &base);
        let along = base.translation.vector.normalize();
        // The planes between which each stays are that far apart.
        let apart = |gap_m: f64| {
            let mut moved = base;
            moved.translation.vector -= along * (right_m - left_m - gap_m);
            refused(&shared(&DEFAULT, &DEFAULT, moved), &plans)
        };
        let [near_m, far_m] = [gaps_m[0].min(gaps_m[1]), gaps_m[0].max(gaps_m[1])];
        if apart(far_m).is_empty() {
            return Ok(());
        }
        judged.set(judged.get() + 1);
        prop_assert!(!apart(near_m).is_empty(), "{base:?} {near_m} {far_m}");
        Ok(())
    });
    assert!(judged.get() >= 8 || cases < 64, "{}", judged.get());
}

#[test]
fn a_larger_uncertainty_of_bases_never_turns_a_refusal_into_a_pass() {
    use std::cell::Cell;
    let (judged, grown) = (Cell::new(0), Cell::new(0));
    let strategy = (motion(), motion(), bases(), [0.0..0.03, 0.0..0.03_f64]);
    let cases = run(48, &strategy, |(left, right, base, both_m)| {
        let Some(plans) = both([&left, &right]) else {
            return Ok(());
        };
        let is_refused = |uncertainty_m: f64| {
            let mut scenes = shared(&DEFAULT, &DEFAULT, base);
            for scene in &mut scenes {
                Arc::make_mut(scene).beside[0].uncertainty_m = uncertainty_m;
            }
            !refused(&scenes, &plans).is_empty()
        };
        let [less_m, more_m] = [both_m[0].min(both_m[1]), both_m[0].max(both_m[1])];
        let [less, more] = [less_m, more_m].map(is_refused);
        judged.set(judged.get() + usize::from(less));
        grown.set(grown.get() + usize::from(more && !less));
        prop_assert!(more || !less, "{base:?} {less_m} {more_m}");
        Ok(())
    });
    let (judged, grown) = (judged.get(), grown.get());
    assert!(
        (judged >= 8 && grown >= 1) || cases < 48,
        "{judged} {grown}"
    );
}

#[test]
fn what_is_less_known_is_kept_farther_away() {
    let still = Motion::Pose([0.0, 0.1, 0.0, 0.0, 0.0]);
    let plans = both([&still, &still]).unwrap();
    let judged = |ahead_m: f64, uncertainty_m: f64| {
        let mut scenes = shared(
            &DEFAULT,
            &DEFAULT,
            base(0.0, -ahead_m, std::f64::consts::PI),
        );
        // One of the two scenes is enough to say so.
        Arc::make_mut(&mut scenes[1]).beside[0].uncertainty_m = uncertainty_m;
        refused(&scenes, &plans).is_empty()
    };
    let edge_m = |uncertainty_m: f64| first_m([0.3, 2.0], |ahead_m| judged(ahead_m, uncertainty_m));
    let grown_m = edge_m(0.05) - edge_m(0.0);
    assert!((grown_m - 0.05).abs() < 0.005, "{grown_m}");
    assert!(!judged(2.0, f64::NAN) && !judged(2.0, -0.001) && !judged(2.0, 1.1));
}

/// The scenes of two arms a metre and a half apart, with a small motion of each.
fn far_apart() -> ([Arc<Scene>; 2], [Trajectory; 2]) {
    let scenes = shared(&DEFAULT, &DEFAULT, base(1.5, 0.0, 0.0));
    let motion = Motion::Pose([0.1, 0.0, 0.0, 0.0, 0.0]);
    (scenes, both([&motion, &motion]).unwrap())
}

/// Returns the refusal of a left arm that moves alone while the right one is said to stand.
fn beside_standing(
    scenes: &[Arc<Scene>; 2],
    plan: &Trajectory,
    measured: &ArmMeasurement,
    now_ms: u64,
) -> Option<GateRefusal> {
    let standing = StandingArm {
        scene: &scenes[1],
        measured,
        now: ClockInstant::from_nanos(now_ms * 1_000_000),
    };
    let judged = gate::preview_together(&[(&scenes[0], plan)], &[standing]);
    // The ways there and back may be refused each.
    judged.err()?.0.into_iter().next()
}

#[test]
fn an_arm_that_stands_is_judged_where_it_was_measured() {
    let (scenes, [plan, _]) = far_apart();
    let stands = reading(DEFAULT.rest_rad, 10);
    assert_eq!(beside_standing(&scenes, &plan, &stands, 260), None);
    let is_refused = |measured: &ArmMeasurement, now_ms: u64| {
        let refusal = beside_standing(&scenes, &plan, measured, now_ms);
        refusal.is_some_and(|refusal| {
            refusal.rule == GateRule::Apart && refusal.arm.as_deref() == Some("left")
        })
    };
    assert!(is_refused(&stands, 261), "an old reading");
    let mut moves = stands.clone();
    moves.velocity_rad_s = moves
        .velocity_rad_s
        .map(|joint, _| if joint == 2 { -0.2 } else { 0.0 });
    assert!(is_refused(&moves, 10), "one of a moving arm");
    let few = reading(JointVector::zeros(4), 10);
    let unread = reading(stands.position_rad.map(|_, _| f64::NAN), 10);
    assert!(is_refused(&few, 10) && is_refused(&unread, 10));
    // Beside where the other may be anywhere that its joints allow, it matters where it is.
    let near = shared(&DEFAULT, &DEFAULT, base(0.0, -0.4, std::f64::consts::PI));
    let out = reading(
        DEFAULT
            .ready_rad
            .map(|joint, q| q + if joint == 1 { 0.5 } else { 0.0 }),
        0,
    );
    let far = reading(
        DEFAULT
            .ready_rad
            .map(|joint, q| if joint == 0 { 1.7 } else { q }),
        0,
    );
    assert!(beside_standing(&near, &plan, &out, 0).is_some());
    assert_eq!(beside_standing(&near, &plan, &far, 0), None);
}

#[test]
fn every_arm_beside_another_has_to_be_known() {
    let (scenes, plans) = far_apart();
    assert_eq!(refused(&scenes, &plans), []);
    let only = |judged: Result<(), gate::RefusedTrajectory>| {
        let refused = judged.unwrap_err().0;
        assert_eq!(refused.len(), 1, "{refused:?}");
        assert_eq!(refused[0].rule, GateRule::Apart);
        refused[0].why.clone()
    };
    // Alone, by the door for one arm.
    let why = only(gate::preview(&scenes[0], &plans[0]));
    assert!(why.contains("`right`"), "{why}");
    // The same arm twice; and one that is not of the scene.
    only(gate::preview_together(
        &[(&scenes[0], &plans[0]), (&scenes[0], &plans[1])],
        &[],
    ));
    only(gate::preview_together(
        &[(&scenes[0], &plans[0]), (&*DEFAULT, &plans[1])],
        &[],
    ));
    only(gate::preview_together(
        &[(&*DEFAULT, &plans[0]), (&*DEFAULT, &plans[1])],
        &[],
    ));
    // Bases that disagree.
    let mut others = scenes;
    Arc::make_mut(&mut others[1]).beside[0].base_in_ours = base(-1.5, 0.001, 0.0);
    only(gate::preview_together(
        &[(&others[0], &plans[0]), (&others[1], &plans[1])],
        &[],
    ));
}

#[test]
fn motions_of_two_arms_have_one_time_base() {
    let (scenes, [left, right]) = far_apart();
    let longer = padded(right.clone(), right.samples.len() + 1);
    assert_eq!(refused(&scenes, &[left.clone(), longer]).len(), 1);
    let mut slower = right.clone();
    slower.period *= 2;
    assert_eq!(refused(&scenes, &[left.clone(), slower]).len(), 1);
    // A probe may go back.
    let mut probe = right;
    let count = probe.samples.len();
    let still = probe.samples[0];
    probe.samples = vec![still; count];
    for span in &mut probe.spans {
        span.kind = SpanKind::Probe;
    }
    probe.spans.truncate(1);
    probe.spans[0].first = 0;
    probe.spans[0].end = count;
    assert!(!refused(&scenes, &[left, probe.clone()]).is_empty());
    // Beside an arm that stands, it may.
    let stands = reading(DEFAULT.rest_rad, 0);
    assert_eq!(beside_standing(&scenes, &probe, &stands, 0), None);
}

#[test]
fn each_arm_is_judged_by_its_own_permit_and_start() {
    let (scenes, [left, right]) = far_apart();
    let now = ClockInstant::ZERO;
    let start = reading(left.samples[0], 0);
    let elsewhere = reading(left.samples[0].map(|_, q| q + 0.1), 0);
    let part = |index: usize, permits: &PermitRegistry, start| MotionPart {
        scene: Arc::clone(&scenes[index]),
        permit: permits.ask(&scenes[index], now).unwrap(),
        start,
        now,
        trajectory: [&left, &right][index].clone(),
    };
    let permits = PermitRegistry::everything();
    let together = |right| gate::check_together(vec![part(0, &permits, &start), right], &[]);
    let checked = together(part(1, &permits, &start)).unwrap();
    let names = checked
        .iter()
        .map(|proof| proof.scene().arm_name.as_deref());
    assert!(names.eq([Some("left"), Some("right")]));
    let refused = together(part(1, &permits, &elsewhere)).unwrap_err().0;
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(refused[0].rule, GateRule::Start);
    assert_eq!(refused[0].arm.as_deref(), Some("right"));
    assert!(refused[0].to_string().starts_with("right: "));
}

#[test]
fn a_refusal_names_its_arm_the_other_and_the_distance() {
    let scenes = shared(&DEFAULT, &DEFAULT, base(0.0, -0.4, std::f64::consts::PI));
    let motion = Motion::Pose([0.0, 0.1, 0.0, 0.0, 0.0]);
    let refusals = refused(&scenes, &both([&motion, &motion]).unwrap());
    assert!(!refusals.is_empty());
    for refusal in &refusals {
        let names = ["left", "right"];
        let arm = names
            .iter()
            .position(|name| refusal.arm.as_deref() == Some(name));
        let other = format!("`{}`", names[1 - arm.unwrap()]);
        assert!(refusal.why.contains(&other), "{}", refusal.why);
        // Between both, in millimetres; the limit is the clearance, 4 mm for each arm, and what a stop and a late arm need.
        let excess = refusal.excess.unwrap();
        assert!((11.0..100.0).contains(&excess.limit), "{excess:?}");
        assert!((-200.0..excess.limit).contains(&excess.value), "{excess:?}");
    }
}

/// Whichever of both swings into the other, from far.
#[test]
fn an_arm_that_moves_into_one_that_hardly_moves_is_refused() {
    let [still, swings] = [0.01, 0.8].map(|by| Motion::Pose([by, 0.0, 0.0, 0.0, 0.0]));
    let plans = both([&still, &swings]).unwrap();
    let placed = |plan: &Trajectory, base: &IsometryMatrix3<f64>| -> Vec<Vec<Rod>> {
        plan.samples
            .iter()
            .map(|q| rods(&DEFAULT, q, base))
            .collect()
    };
    // Turned aside, so that it comes in front of the other by its swing.
    let (mut judged, identity) = (0, IsometryMatrix3::identity());
    for (turned_rad, across_m) in [(1.2, 0.0), (0.4, -0.1)] {
        for ahead in 37..43 {
            let facing = base(
                across_m,
                -f64::from(ahead) / 100.0,
                std::f64::consts::PI + turned_rad,
            );
            let bodies = [placed(&plans[0], &identity), placed(&plans[1], &facing)];
            let gaps: Vec<f64> = bodies[0]
                .iter()
                .zip(&bodies[1])
                .map(|(one, other)| nearest_m(one, other))
                .collect();
            let least_m = gaps.iter().copied().fold(f64::INFINITY, f64::min);
            if gaps[0] < 0.1 || least_m > 0.0 {
                continue;
            }
            judged += 1;
            for (base, first) in [(facing, 0), (facing.inverse(), 1)] {
                let scenes = shared(&DEFAULT, &DEFAULT, base);
                let plans = [plans[first].clone(), plans[1 - first].clone()];
                assert!(
                    !refused(&scenes, &plans).is_empty(),
                    "{turned_rad} {ahead} {first}"
                );
            }
        }
    }
    assert!(judged > 0);
}

/// The base of an arm is in the way as well, though no joint moves it.
#[test]
fn an_arm_is_kept_from_the_base_of_another() {
    let line = Motion::Draw(vec![[[20.0, 80.0], [80.0, 80.0]]]);
    let plan = planned(&DEFAULT, &line).unwrap();
    let rest = reading(DEFAULT.rest_rad, 0);
    // An arm of which only the base is there, and a pen that it holds far away.
    let mut based = Scene::clone(&DEFAULT);
    Arc::make_mut(&mut based.arm)
        .capsules
        .retain(|capsule| capsule.joints_before == 0);
    let right = |ahead_m: f64| base(0.0, -ahead_m, 0.0);
    let judged = |ahead_m: f64| {
        let scenes = shared(&DEFAULT, &based, right(ahead_m));
        beside_standing(&scenes, &plan, &rest, 0)
    };
    let mut ahead = (20..60).map(|centimetres| f64::from(centimetres) / 100.0);
    let first_clear_m = ahead.find(|ahead_m| judged(*ahead_m).is_none()).unwrap();
    let refusal = judged(first_clear_m - 0.01).unwrap();
    assert_eq!(refusal.rule, GateRule::Apart);
    let other = rods(&based, &DEFAULT.rest_rad, &right(first_clear_m));
    let left = |q: &JointVector| rods(&DEFAULT, q, &IsometryMatrix3::identity());
    let gaps = plan.samples.iter().map(|q| nearest_m(&left(q), &other));
    let least_m = gaps.fold(f64::INFINITY, f64::min);
    assert!((CLEARANCE_M..0.03).contains(&least_m), "{least_m}");
}

/// An arm that was stopped near another may go away from it, and do nothing else: within what it has to keep of the path
/// besides, and within the clearance itself.
#[test]
fn an_arm_that_begins_near_one_that_stands_may_only_go_away() {
    for begins_m in [0.005, 0.002] {
        begins_near(begins_m);
    }
}

fn begins_near(begins_m: f64) {
    let start = DEFAULT.ready_rad;
    let facing = |ahead_m: f64| base(0.0, -ahead_m, std::f64::consts::PI);
    let high = away_m(begins_m, |ahead_m| {
        let left = rods(&DEFAULT, &start, &IsometryMatrix3::identity());
        nearest_m(&left, &rods(&DEFAULT, &start, &facing(ahead_m)))
    });
    let scenes = shared(&DEFAULT, &DEFAULT, facing(high));
    let stands = reading(start, 0);
    let moved = |from: &JointVector, to: &[JointVector]| {
        let plan = plan::go_to(&DEFAULT, from, to, &SilentObserver).unwrap();
        assert_eq!(gate::preview(&DEFAULT, &plan.trajectory), Ok(()));
        plan.trajectory
    };
    let judged = |plan: &Trajectory| beside_standing(&scenes, plan, &stands, 0);
    // Some joint takes it away, and the other way round nearer.
    let turned = |joint: usize, by: f64| start.map(|at, q| q + if at == joint { by } else { 0.0 });
    let goes_away = |joint: usize, by: f64| {
        let gaps = (0..=20).map(|step| {
            let left = turned(joint, by * f64::from(step) / 20.0);
            let left = rods(&DEFAULT, &left, &IsometryMatrix3::identity());
            nearest_m(&left, &rods(&DEFAULT, &start, &facing(high)))
        });
        gaps.is_sorted()
    };
    let mut ways = [1, 2, 3]
        .into_iter()
        .flat_map(|joint| [(joint, 0.3), (joint, -0.3)]);
    let (joint, by) = ways.find(|(joint, by)| goes_away(*joint, *by)).unwrap();
    let aside = turned(joint, by);
    assert_eq!(judged(&moved(&start, &[aside])), None);
    // Back to where it was, from there, and nearer at once.
    let nearer = turned(joint, -by / 30.0);
    for plan in [
        moved(&start, &[aside, start]),
        moved(&aside, &[start]),
        moved(&start, &[nearer]),
    ] {
        let refusal = judged(&plan).unwrap();
        assert_eq!(refusal.rule, GateRule::Apart);
        let excess = refusal.excess.unwrap();
        assert!(
            excess.value < excess.limit && excess.value > 0.0,
            "{refusal:?}"
        );
    }
    // What is more than going away begins clear.
    let mut draws = moved(&start, &[aside]);
    draws.spans[0].kind = SpanKind::Travel;
    assert!(judged(&draws).is_some());
    // Beside an arm that moves, too, there is no going away from too near.
    let away = moved(&start, &[aside]);
    assert!(!refused(&scenes, &[away.clone(), away]).is_empty());
}

/// Two motions in which nothing moves: what is left is the clearance, and 4 mm for each arm that is
/// held on its path.
#[test]
fn arms_at_rest_are_apart_by_the_clearance_and_following() {
    let mut still = planned(&DEFAULT, &Motion::Pose([0.1, 0.0, 0.0, 0.0, 0.0])).unwrap();
    still.samples = vec![DEFAULT.ready_rad; 40];
    still.spans.truncate(1);
    still.spans[0].end = 40;
    let plans = [still.clone(), still];
    let facing = |ahead_m: f64| base(0.0, -ahead_m, std::f64::consts::PI);
    let edge_m = |passes: &dyn Fn(&[Arc<Scene>; 2]) -> bool| {
        let passes = |ahead_m: f64| passes(&shared(&DEFAULT, &DEFAULT, facing(ahead_m)));
        let high = first_m([0.3, 0.6], passes);
        let left = rods(&DEFAULT, &DEFAULT.ready_rad, &IsometryMatrix3::identity());
        nearest_m(&left, &rods(&DEFAULT, &DEFAULT.ready_rad, &facing(high)))
    };
    let both_m = edge_m(&|scenes| refused(scenes, &plans).is_empty());
    assert!((both_m - 0.011).abs() < 1e-5, "{both_m}");
    let stands = reading(DEFAULT.ready_rad, 0);
    let mut draws = plans[0].clone();
    // A motion that may go away from where it is too near would pass.
    draws.spans[0].kind = SpanKind::Travel;
    let one_m = edge_m(&|scenes| beside_standing(scenes, &draws, &stands, 0).is_none());
    assert!((one_m - 0.007).abs() < 1e-5, "{one_m}");
    // What is missing is said, in millimetres.
    let gap_m = |ahead_m: f64| {
        let ready = |base: &IsometryMatrix3<f64>| rods(&DEFAULT, &DEFAULT.ready_rad, base);
        nearest_m(
            &ready(&IsometryMatrix3::identity()),
            &ready(&facing(ahead_m)),
        )
    };
    let near = shared(&DEFAULT, &DEFAULT, facing(away_m(0.009, gap_m)));
    for refusal in refused(&near, &plans) {
        let excess = refusal.excess.unwrap();
        assert!((excess.value - 9.0).abs() < 0.01, "{excess:?}");
        assert!((excess.limit - 11.0).abs() < 0.01, "{excess:?}");
    }
}

/// Returns how far away the base of another arm is where the gap is this.
fn away_m(wanted_m: f64, gap_m: impl Fn(f64) -> f64) -> f64 {
    first_m([0.0, 0.7], |away_m| gap_m(away_m) >= wanted_m)
}

/// Returns the first distance at which it passes, and not before.
fn first_m([mut low, mut high]: [f64; 2], passes: impl Fn(f64) -> bool) -> f64 {
    assert!(!passes(low) && passes(high));
    for _ in 0..30 {
        let middle = f64::midpoint(low, high);
        match passes(middle) {
            true => high = middle,
            false => low = middle,
        }
    }
    high
}
