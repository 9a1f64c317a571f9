//! Unit tests of the parts of a stop proof.
#![allow(clippy::unwrap_used, reason = "a failing test may panic")]

use std::time::Duration;

use super::super::tests::{drawing, sample_in_stroke};
use super::*;
use scene::{KeepOut, SceneLibrary, ToolKind};

fn proof(scene: &Scene, trajectory: &Trajectory) -> Result<StopProof, Box<GateRefusal>> {
    StopProof::prove(CollisionWorld::new(scene), trajectory, None)
}

/// The default scene with higher travel moves.
fn higher(by_mm: f64) -> Scene {
    let mut scene = Scene::clone(&drawing().0);
    scene.heights.lift_mm += by_mm;
    scene
}

fn samples_of(kinds: &'static [SpanKind]) -> impl Iterator<Item = usize> {
    let spans = drawing().1.spans.iter();
    let matching = spans.filter(|span| kinds.contains(&span.kind));
    matching.flat_map(|span| span.first..span.end)
}

fn sample(at: usize) -> &'static JointVector {
    drawing().1.samples.get(at).unwrap()
}

fn height_of(scene: &Scene, q: &JointVector) -> f64 {
    height_mm(scene, &tip_m(scene, 0, q).unwrap()).unwrap()
}

const TOUCHES: &[SpanKind] = &[SpanKind::Draw, SpanKind::Lower, SpanKind::Lift];

#[test]
fn every_sample_at_the_sheet_has_a_lift_and_none_at_height() {
    let (scene, trajectory) = drawing();
    let stops = proof(scene, trajectory).unwrap();
    assert!(samples_of(TOUCHES).all(|at| stops.lift(at).is_some()));
    for at in samples_of(&[SpanKind::Draw]) {
        let by = stops.lift(at).unwrap().by_rad;
        let up = sample(at).zip(&by, |from, by| from + by);
        let missing_mm = (height_of(scene, &up) - scene.heights.lift_mm).abs();
        assert!(missing_mm < LIFTED_MM, "{at}: {missing_mm} mm");
    }
    let high = samples_of(&[SpanKind::Travel]).filter(|at| height_of(scene, sample(*at)) > 7.6);
    assert!(high.filter(|at| stops.lift(*at).is_some()).count() == 0);
}

/// Hops are low: wherever one is stopped, the way straight up is proven.
#[test]
fn from_the_first_line_on_every_low_sample_has_a_lift() {
    let library = scene::SceneLibrary::new(None);
    for name in library.scenes() {
        let scene = library.scene(&name, None).unwrap();
        if scene.strokes.is_empty() {
            continue;
        }
        let trajectory = plan::draw(&scene, &scene.rest_rad, &plan::SilentObserver)
            .unwrap()
            .trajectory;
        let stops = proof(&scene, &trajectory).unwrap();
        let spans = &trajectory.spans;
        let line = spans.iter().position(|span| span.kind == SpanKind::Draw);
        let (mut low, after) = (0, spans.iter().skip(line.unwrap()));
        for span in after.filter(|span| span.kind == SpanKind::Travel) {
            for at in span.first..span.end {
                let q = trajectory.samples.get(at).unwrap();
                if is_low(&scene, span.pen, q) {
                    low += 1;
                    let lift = stops.lift(at);
                    assert!(lift.is_some(), "{name}: sample {at} of {span:?}");
                }
            }
        }
        assert!(low > 20, "{name}: {low}");
    }
}

/// Each lift is for some consecutive samples, and for no more than were checked.
#[test]
fn lifts_are_shared_by_a_few_samples_each() {
    let (scene, trajectory) = drawing();
    let lifts = proof(scene, trajectory).unwrap().lifts;
    for lift in &lifts {
        assert!(
            (1..=LIFT_EVERY).contains(&(lift.end - lift.first)),
            "{lift:?}"
        );
    }
    assert!(lifts.iter().any(|lift| lift.end - lift.first == LIFT_EVERY));
    for pair in lifts.windows(2) {
        let [one, next] = pair else { continue };
        assert!(one.end <= next.first, "{one:?} {next:?}");
    }
}

#[test]
fn a_way_that_is_lower_than_travels_has_a_lift_too() {
    let trajectory = &drawing().1;
    let at = |by_mm: f64| proof(&higher(by_mm), trajectory).unwrap();
    let lowest = samples_of(&[SpanKind::Travel])
        .min_by(|a, b| {
            let height = |at: usize| height_of(&drawing().0, sample(at));
            height(*a).total_cmp(&height(*b))
        })
        .unwrap();
    let under_mm = drawing().0.heights.lift_mm - height_of(&drawing().0, sample(lowest));
    assert!(at(0.9 * UP_TOLERANCE_MM - under_mm).lift(lowest).is_none());
    assert!(at(1.1 * UP_TOLERANCE_MM - under_mm).lift(lowest).is_some());
}

/// Moves that only pass need no lift.
#[test]
fn a_way_past_that_cannot_be_lifted_is_no_refusal() {
    let (_, trajectory) = drawing();
    let mut passing = trajectory.clone();
    for span in &mut passing.spans {
        span.kind = SpanKind::Pose;
    }
    let far = higher(500.0);
    assert!(proof(&far, &passing).unwrap().lifts.is_empty());
    let refused = proof(&far, trajectory).unwrap_err();
    assert_eq!(refused.rule, GateRule::Stop);
    assert!(refused.why.contains("lift"), "{refused:?}");
    assert!(refused.doing.is_some() && refused.item.is_some());
}

/// A trajectory of one joint at a constant speed.
fn constant_speed(rad_s: f64) -> Trajectory {
    let (scene, period) = (&drawing().0, Duration::from_millis(10));
    let samples = (0_u32..40).map(|at| {
        let by = rad_s * f64::from(at) * period.as_secs_f64();
        scene
            .rest_rad
            .map(|joint, q| if joint == 0 { q + by } else { q })
    });
    Trajectory {
        reached: Vec::new(),
        period,
        samples: samples.collect(),
        spans: vec![TrajectorySpan {
            kind: SpanKind::Pose,
            item: None,
            pen: 0,
            first: 0,
            end: 40,
        }],
    }
}

/// Speed over half of the joint's acceleration limit, in ticks.
#[test]
fn braking_takes_as_long_as_the_speed_over_half_the_push() {
    let scene = &drawing().0;
    let hardest = *scene.arm.limits.acceleration_rad_s2.first().unwrap();
    let speed_of = |ticks: f64| ticks * 0.01 * hardest / 2.0;
    let found = |ticks: f64| brake_ticks(scene, &constant_speed(speed_of(ticks)));
    for ticks in [4.0, 7.5, 20.0, 59.9] {
        let all = found(ticks).unwrap();
        assert_eq!(all.len(), 40);
        assert!((all.first().unwrap() - ticks).abs() < 1e-6, "{all:?}");
        assert!((all.last().unwrap() - BRAKE_TICKS_MIN).abs() < 1e-9);
    }
    let least = found(1.0).unwrap();
    assert!(
        least
            .iter()
            .all(|ticks| (ticks - BRAKE_TICKS_MIN).abs() < 1e-9)
    );
    let refused = found(60.1).unwrap_err();
    assert_eq!((refused.rule, refused.sample), (GateRule::Stop, 0));
    assert_eq!(refused.doing, Some(SpanKind::Pose));
    assert!(refused.why.contains("more than 0.6 s"), "{refused:?}");
}

#[test]
fn a_brake_is_as_long_as_the_longest_that_it_passes_through() {
    assert_eq!(window_max(&[3.0, 3.0, 3.0, 4.0]), [3.0, 4.0, 4.0, 4.0]);
    let windowed = window_max(&[3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 9.0, 3.0]);
    assert_eq!(windowed, [3.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 3.0]);
}

#[test]
fn a_lift_goes_straight_up_to_the_height_of_travels() {
    let scene = &drawing().0;
    let mut world = CollisionWorld::new(scene);
    let from = sample(sample_in_stroke());
    let by = find_lift(&mut world, 0, from).unwrap();
    let up = from.zip(&by, |from, by| from + by);
    let (low, high) = (
        tip_m(scene, 0, from).unwrap(),
        tip_m(scene, 0, &up).unwrap(),
    );
    let normal = scene.surface.at([0.0, 0.0]).normal.into_inner();
    let rise_mm = (high - low).dot(&normal) * 1e3;
    let due_mm = scene.heights.lift_mm - height_of(scene, from);
    assert!((rise_mm - due_mm).abs() < 0.02, "{rise_mm} of {due_mm} mm");
    assert!(((high - low).norm() * 1e3 - rise_mm).abs() < 0.02);
    // From the lifted height, and from above it, there is nothing to lift.
    for more_mm in [0.0, 3.0] {
        let target = high + normal.scale((more_mm + 0.1) / 1e3);
        let higher = solve_lifted_pose(scene, 0, &up, &target, FixedJoints::NONE).unwrap();
        let none = find_lift(&mut world, 0, &higher).unwrap();
        assert!(none.iter().all(|by| by.abs() <= 0.0), "{none:?}");
    }
}

#[test]
fn a_pose_is_found_for_a_tip_within_reach_and_for_no_other() {
    let scene = &drawing().0;
    let from = sample(sample_in_stroke());
    let tip = tip_m(scene, 0, from).unwrap();
    for by in [[0.0, 0.0, 0.012], [0.01, 0.0, 0.004], [0.0, -0.01, 0.0]] {
        let target = tip + Vector3::from(by);
        let found = solve_lifted_pose(scene, 0, from, &target, FixedJoints::NONE).unwrap();
        let error_m = (target - tip_m(scene, 0, &found).unwrap()).norm();
        assert!(error_m < 2.0 * CONVERGED_M, "{by:?}: {error_m}");
    }
    let far = tip + Vector3::new(0.0, 0.0, 2.0);
    let error = solve_lifted_pose(scene, 0, from, &far, FixedJoints::NONE).unwrap_err();
    let LiftRefusal::Unreachable { missing_mm, .. } = error else {
        unreachable!("{error}")
    };
    assert!((1_200.0..2_000.0).contains(&missing_mm), "{error}");
    let step = step_to(
        scene,
        0,
        from,
        &(tip + Vector3::new(0.9 * CONVERGED_M, 0.0, 0.0)),
        FixedJoints::NONE,
    );
    assert_eq!(step, Ok(None));
    let none = solve_lifted_pose(scene, 9, from, &tip, FixedJoints::NONE);
    assert_eq!(none, Err(LiftRefusal::NoPen));
}

/// A fixed joint never turns, even if the others do.
#[test]
fn a_pose_is_found_with_fixed_joints() {
    let scene = &drawing().0;
    let from = sample(sample_in_stroke());
    let target = tip_m(scene, 0, from).unwrap() + Vector3::new(0.0, 0.0, 0.006);
    let all: Vec<FixedJoints> = FixedJoints::all(from.len()).collect();
    assert_eq!(all.len(), 5 + 10);
    let singles = all.iter().take(5).map(|fixed| fixed.0);
    assert_eq!(singles.collect::<Vec<_>>(), [1, 2, 4, 8, 16]);
    let mut found = 0;
    for fixed in all.into_iter().chain([FixedJoints::NONE]) {
        let Ok(to) = solve_lifted_pose(scene, 0, from, &target, fixed) else {
            continue;
        };
        found += 1;
        for (joint, (to, from)) in to.iter().zip(from.iter()).enumerate() {
            let stays = (to - from).abs() <= 0.0;
            assert!(stays || !fixed.contains(joint), "{:b} {joint}", fixed.0);
        }
        assert!((tip_m(scene, 0, &to).unwrap() - target).norm() < LIFTED_MM / 1e3);
    }
    assert!(found > 5, "{found}");
    assert!(!(0..8).any(|joint| FixedJoints::NONE.contains(joint)));
}

/// The default scene with some joints unable to make the movement of a lift.
fn stiff(joints: &[usize]) -> Scene {
    let mut scene = Scene::clone(&drawing().0);
    let from = sample(sample_in_stroke());
    let mut arm = arm::ArmModel::clone(&scene.arm);
    for joint in joints {
        let at = *from.get(*joint).unwrap();
        *arm.limits.lower_rad.get_mut(*joint).unwrap() = at - 1e-4;
        *arm.limits.upper_rad.get_mut(*joint).unwrap() = at + 1e-4;
    }
    scene.arm = std::sync::Arc::new(arm);
    scene
}

#[test]
fn a_lift_is_found_with_joints_that_are_at_their_limits() {
    let from = sample(sample_in_stroke());
    let free = find_lift(&mut CollisionWorld::new(&drawing().0), 0, from).unwrap();
    let (mut one, mut two) = (0, 0);
    for joints in [vec![1], vec![2], vec![3], vec![2, 4], vec![3, 0]] {
        let scene = stiff(&joints);
        let is_needed = joints
            .iter()
            .any(|joint| free.get(*joint).unwrap().abs() > 2e-4);
        let Ok(by) = find_lift(&mut CollisionWorld::new(&scene), 0, from) else {
            continue;
        };
        let moved_rad = joints.iter().map(|joint| by.get(*joint).unwrap().abs());
        assert!(moved_rad.fold(0.0, f64::max) < 1.1e-4);
        one += usize::from(is_needed && joints.len() == 1);
        two += usize::from(is_needed && joints.len() == 2);
    }
    assert!(one > 0 && two > 0, "{one} {two}");
    // Where none is possible, the error is that of all joints together.
    let error = find_lift(&mut CollisionWorld::new(&stiff(&[0, 1, 2, 3, 4])), 0, from).unwrap_err();
    assert!(error.to_string().contains("are allowed"), "{error}");
}

fn moved(from: &JointVector, joint: usize, by: f64) -> JointVector {
    from.map(|at, q| if at == joint { q + by } else { q })
}

fn check_clear(check: &mut LiftCheck<'_, '_>, q: &JointVector) -> Result<(), String> {
    let pose = check.world.body().pose(q);
    check.check_clearance(&pose).map_err(|e| e.to_string())
}

fn check_rise(check: &LiftCheck<'_, '_>, q: &JointVector, before: f64) -> Result<f64, String> {
    let rise = check.check_rise(&check.world.body().pose(q), before);
    rise.map_err(|error| error.to_string())
}

/// A move that would bring the body to the sheet, or a joint beyond its range, is no lift.
#[test]
fn a_move_that_comes_too_near_is_no_lift() {
    let scene = &drawing().0;
    let from = sample(sample_in_stroke());
    let mut world = CollisionWorld::new(scene);
    let mut check = LiftCheck::new(&mut world, 0, from).unwrap();
    assert_eq!(check_clear(&mut check, from), Ok(()));
    let errors: Vec<String> = (1..4)
        .flat_map(|joint| [(joint, -0.3), (joint, 0.3)])
        .filter_map(|(joint, by)| check_clear(&mut check, &moved(from, joint, by)).err())
        .collect();
    assert!(
        errors.iter().any(|e| e.ends_with("mm into the sheet")),
        "{errors:?}"
    );
}

/// The pen that does not draw may not be brought below the sheet.
#[test]
fn a_move_that_lowers_an_idle_pen_to_the_sheet_is_no_lift() {
    let scene = SceneLibrary::new(None).scene("two_pens", None).unwrap();
    let mut world = CollisionWorld::new(&scene);
    let mut check = LiftCheck::new(&mut world, 0, &scene.ready_rad).unwrap();
    let is_idle = |near: &Nearby| near.key.1 == Obstacle::SheetBelow;
    assert!(!check.initial.iter().any(is_idle));
    let (mut above, mut below) = (0, 0);
    for (down, roll) in (0..30).flat_map(|down| [0.0, 0.3, 0.6].map(|roll| (down, roll))) {
        let lowered = moved(&scene.ready_rad, 1, f64::from(down) * 0.02);
        let q = moved(&lowered, 4, roll);
        let body = check.world.body();
        let pose = body.pose(&q);
        if !body.over_sheet(&pose).is_empty() {
            continue;
        }
        let is_below = !body.idle_pens(&pose, 0).is_empty();
        let error = check_clear(&mut check, &q).err().unwrap_or_default();
        let is_red = error.contains("bring pen `red` ");
        assert_eq!(
            error.contains("bring pen `red` within")
                || is_red && error.ends_with("mm into the sheet"),
            is_below,
            "{down} {roll}: {error}"
        );
        above += usize::from(!is_below);
        below += usize::from(is_below);
    }
    assert!(above > 3 && below > 3, "{above} {below}");
}

#[test]
fn a_move_that_brings_the_arm_to_itself_is_no_lift() {
    let scene = &drawing().0;
    let from = sample(sample_in_stroke());
    let mut world = CollisionWorld::new(scene);
    let mut check = LiftCheck::new(&mut world, 0, from).unwrap();
    let is_self = |near: &Nearby| matches!(near.key.1, Obstacle::Part(_));
    assert!(!check.initial.iter().any(is_self));
    let (mut near, mut clear) = (0, 0);
    for (one, other) in [(1, 2), (2, 3), (1, 3)] {
        for by in [-2.0, -1.0, 0.0, 1.0, 2.0] {
            let q = moved(&moved(from, one, by), other, by);
            let body = check.world.body();
            let found = body.near_itself(&body.pose(&q)).near;
            let low = !body.over_sheet(&body.pose(&q)).is_empty();
            let is_near = found.iter().any(|near| near.gap_m < CLEARANCE_M - 1e-6);
            let error = check_clear(&mut check, &q).err();
            if !low {
                let own = error.filter(|error| !error.contains("workspace"));
                assert_eq!(own.is_some(), is_near, "{one} {other} {by}: {own:?}");
                near += usize::from(is_near);
            }
            clear += usize::from(!is_near);
        }
    }
    assert!(near > 0 && clear > 0, "{near} {clear}");
}

/// A part that already stands in a keep-out or outside the workspace excuses no other part.
#[test]
fn refuses_a_lift_into_what_another_part_stands_in() {
    let from = sample(sample_in_stroke());
    let mut scene = Scene::clone(&drawing().0);
    let kept = ["upper arm", "gripper"];
    let capsules = &mut std::sync::Arc::make_mut(&mut scene.arm).capsules;
    capsules.retain(|capsule| kept.contains(&capsule.name.as_str()));
    let part_index = |name: &str| {
        let mut capsules = scene.arm.capsules.iter();
        capsules.position(|capsule| capsule.name == name).unwrap()
    };
    let (upper, gripper) = (part_index("upper arm"), part_index("gripper"));
    let highest = |q: &JointVector, part: usize| {
        let body = crate::collision_body::CollisionBody::new(&scene);
        let ends = body.ends(&body.pose(q));
        let radius = scene.arm.capsules.get(part).unwrap().radius_m;
        let ends = ends.iter().skip(2 * part).take(2);
        ends.map(|end| end.z + radius).fold(f64::MIN, f64::max)
    };
    // The wrist turns the gripper up, and nothing else.
    let up = [-0.5, 0.5].map(|by| moved(from, 3, by));
    let up = up
        .iter()
        .max_by(|a, b| highest(a, gripper).total_cmp(&highest(b, gripper)));
    let up = up.unwrap();
    let ceiling = f64::midpoint(highest(from, gripper), highest(up, gripper));
    assert!(highest(from, gripper) < ceiling - 0.005 && highest(from, upper) > ceiling + 0.03);
    // A ceiling that the upper arm stands through, and that the gripper comes to.
    let mut low = scene.clone();
    low.limits.workspace.max_m.z = ceiling;
    let mut lid = scene.clone();
    lid.keep_outs.push(KeepOut {
        name: "lid".to_owned(),
        corners: scene::AxisAlignedBox {
            min_m: Point3::new(-1.0, -1.0, ceiling + CLEARANCE_M),
            max_m: Point3::new(1.0, 1.0, 1.0),
        },
    });
    for (scene, place) in [(low, "outside the workspace"), (lid, "keep-out `lid`")] {
        let mut world = CollisionWorld::new(&scene);
        let mut check = LiftCheck::new(&mut world, 0, from).unwrap();
        assert_eq!(check_clear(&mut check, from), Ok(()));
        let error = check_clear(&mut check, up).unwrap_err();
        assert!(!error.contains("arm") && error.ends_with(place), "{error}");
        if place == "outside the workspace" {
            let out_mm = (highest(up, gripper) - ceiling) * 1e3;
            assert!(error.contains(&format!(" {out_mm:.1} mm out")), "{error}");
        }
    }
}

/// Another sample shares a lift only where it rises from there as well.
#[test]
fn a_lift_is_shared_with_samples_from_which_it_rises() {
    let scene = &drawing().0;
    let at = sample_in_stroke();
    let mut world = CollisionWorld::new(scene);
    let by = super::find_lift(&mut world, 0, sample(at)).unwrap();
    assert!(is_shared(&mut world, 0, sample(at + 1), &by));
    let down = by.map(|_, by| -by);
    assert!(!is_shared(&mut world, 0, sample(at), &down));
    let far = moved(sample(at), 0, 1.0);
    assert!(!is_shared(&mut world, 0, &far, &moved(&by, 0, 0.2)));
}

/// An earlier sample's lift is used where the sample has none of its own.
#[test]
fn a_sample_without_a_lift_takes_that_of_an_earlier_one() {
    let (scene, trajectory) = drawing();
    let at = sample_in_stroke();
    let span = trajectory.span_at(at).unwrap();
    let found_in = |trajectory: &Trajectory, at: usize| {
        let from = ProvenFrom::new(trajectory, None);
        earlier_lift(&mut CollisionWorld::new(scene), &from, span, at)
    };
    let found = |at: usize| found_in(trajectory, at);
    let lift = found(at).unwrap();
    assert_eq!((lift.first, lift.end), (at, at + 1));
    let own = super::find_lift(&mut CollisionWorld::new(scene), 0, sample(at - 1)).unwrap();
    assert_eq!(lift.by_rad, own);
    let expected = seconds_min_of(scene, 0, sample(at), &own).unwrap();
    assert!((lift.seconds_min - expected).abs() < 1e-12);
    // No lift of an earlier span is taken, nor one that is invalid from here.
    assert!(found(span.first).is_none());
    let mut wild = trajectory.clone();
    for before in 1..LIFT_EVERY {
        *wild.samples.get_mut(at - before).unwrap() = moved(sample(at), 1, 0.4);
    }
    assert!(found_in(&wild, at).is_none());
    *wild.samples.get_mut(at + 1 - LIFT_EVERY).unwrap() = *sample(at);
    assert!(found_in(&wild, at).is_some());
    *wild.samples.get_mut(at + 1 - LIFT_EVERY).unwrap() = moved(sample(at), 1, 0.4);
    *wild.samples.get_mut(at - LIFT_EVERY).unwrap() = *sample(at);
    assert!(found_in(&wild, at).is_none());
}

/// Of two pens, the idle one is a needle 5 mm and more over the sheet.
#[test]
fn a_lift_is_slow_enough_for_a_needle_that_does_not_draw() {
    let pens = SceneLibrary::new(None).scene("two_pens", None).unwrap();
    let mut sharp = Scene::clone(&pens);
    sharp.pens.last_mut().unwrap().kind = ToolKind::Needle;
    let height_mm = |q: &JointVector| {
        let tip = tip_m(&sharp, 1, q).unwrap();
        sharp.surface.project(&tip).height_mm
    };
    let mut lowered = (0..60).map(|step| moved(&pens.ready_rad, 1, f64::from(step) * 0.01));
    let low = lowered.find(|q| height_mm(q) < 15.0).unwrap();
    let by = moved(&low.map(|_, _| 0.0), 1, -0.05);
    for (from, is_near) in [(low, true), (moved(&low, 1, -0.5), false)] {
        let at_mm = height_mm(&from);
        assert!(
            if is_near {
                (5.0..20.0).contains(&at_mm)
            } else {
                at_mm > 25.0
            },
            "{at_mm}"
        );
        let as_pen = seconds_min_of(&pens, 0, &from, &by).unwrap();
        let as_needle = seconds_min_of(&sharp, 0, &from, &by).unwrap();
        assert_eq!(as_needle > as_pen * 2.0, is_near, "{as_needle} {as_pen}");
        assert!(as_needle >= as_pen);
    }
    // As its tip passes through each step of the lift.
    let steps = sweep(&sharp, sharp.pens.last().unwrap(), &low, &by);
    let longest_mm = steps.map(|[a, b]| (b - a).norm() * 1e3).into_iter();
    let longest_mm = longest_mm.fold(0.0, f64::max);
    let least_s = longest_mm * SWEEP_POINTS as f64 / NEEDLE_MM_S;
    assert!(seconds_min_of(&sharp, 0, &low, &by).unwrap() >= least_s);
}

/// The longest step decides, by the speed limit at the start of the lift.
#[test]
fn a_lift_takes_as_long_as_its_fastest_step_needs() {
    let scene = &drawing().0;
    let from = sample(sample_in_stroke());
    let by = find_lift(&mut CollisionWorld::new(scene), 0, from).unwrap();
    let tip = |point: usize| {
        let fraction = point as f64 / SWEEP_POINTS as f64;
        tip_m(scene, 0, &from.zip(&by, |from, by| from + by * fraction)).unwrap()
    };
    let pieces = (0..SWEEP_POINTS).map(|point| (tip(point + 1) - tip(point)).norm());
    let longest_mm = pieces.fold(0.0, f64::max) * 1e3;
    let pen = scene.pens.first().unwrap().kind;
    let limit_mm_s = tip_limit_mm_s(scene, pen, SpanKind::Lift, &tip(0));
    let expected = SMOOTH_PEAK * UNEVENNESS * longest_mm * SWEEP_POINTS as f64 / limit_mm_s;
    let found = seconds_min_of(scene, 0, from, &by).unwrap();
    assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
}

#[test]
fn a_lift_is_inside_the_limits_but_for_rounding() {
    let scene = &drawing().0;
    let from = sample(sample_in_stroke());
    let mut world = CollisionWorld::new(scene);
    let check = LiftCheck::new(&mut world, 0, from).unwrap();
    let limits = &scene.arm.limits;
    for joint in 0..limits.lower_rad.len() {
        let (low, high) = (limits.lower_rad, limits.upper_rad);
        let at = |to: f64| moved(from, joint, to - from.get(joint).unwrap());
        let (low, high) = (*low.get(joint).unwrap(), *high.get(joint).unwrap());
        for inside in [low, high, low - 5e-7, high + 5e-7, f64::midpoint(low, high)] {
            assert_eq!(check.check_joint_limits(&at(inside)), Ok(()));
        }
        for outside in [low - 2e-6, high + 2e-6, low - 4.0, high + 4.0] {
            assert!(check.check_joint_limits(&at(outside)).is_err());
        }
    }
}

/// Beyond its limit already, a joint may stay but not go further.
#[test]
fn a_joint_beyond_its_limit_goes_no_further() {
    let mut scene = Scene::clone(&drawing().0);
    let from = sample(sample_in_stroke());
    let mut arm = arm::ArmModel::clone(&scene.arm);
    arm.limits.lower_rad = from.map(|_, q| q + 0.1);
    arm.limits.upper_rad = from.map(|_, q| q + 0.2);
    scene.arm = std::sync::Arc::new(arm);
    let mut world = CollisionWorld::new(&scene);
    let check = LiftCheck::new(&mut world, 0, from).unwrap();
    assert_eq!(check.check_joint_limits(from), Ok(()));
    assert_eq!(check.check_joint_limits(&moved(from, 1, 0.05)), Ok(()));
    assert!(check.check_joint_limits(&moved(from, 1, -0.01)).is_err());
}

#[test]
fn a_lift_rises_all_the_way_and_hardly_strays() {
    let scene = &drawing().0;
    let from = sample(sample_in_stroke());
    let mut world = CollisionWorld::new(scene);
    let by = find_lift(&mut world, 0, from).unwrap();
    let up = from.zip(&by, |from, by| from + by);
    let check = LiftCheck::new(&mut world, 0, from).unwrap();
    let height = check_rise(&check, &up, 0.0).unwrap();
    let due_mm = scene.heights.lift_mm - height_of(scene, from);
    assert!((height * 1e3 - due_mm).abs() < 0.02, "{height}");
    assert!(check_rise(&check, &up, height + 5e-7).is_ok());
    assert!(check_rise(&check, &up, height + 2e-6).is_err());
    // The first joint moves the tip only sideways.
    let tip = |q: &JointVector| tip_m(scene, 0, q).unwrap();
    let radius_mm = (tip(&moved(&up, 0, 0.01)) - tip(&up)).norm() * 1e5;
    let sideways = |mm: f64| check_rise(&check, &moved(&up, 0, mm / radius_mm), 0.0);
    assert!(sideways(1.9).is_ok() && sideways(-1.9).is_ok());
    let error = sideways(2.2).unwrap_err();
    assert!(error.contains("stray 2.2 mm"), "{error}");
}

#[test]
fn a_line_is_checked_at_even_steps_to_its_end() {
    let scene = &drawing().0;
    let from = sample(sample_in_stroke());
    let mut world = CollisionWorld::new(scene);
    let by = find_lift(&mut world, 0, from).unwrap();
    let mut check = LiftCheck::new(&mut world, 0, from).unwrap();
    assert_eq!(check.check(&by, LIFT_POINTS), Ok(()));
    assert_eq!(check.check(&by, 1), Ok(()));
    assert!(check.check(&by.map(|_, by| -by), LIFT_POINTS).is_err());
    // It ends beyond a limit, and is inside at three quarters of the line.
    let high = *scene.arm.limits.upper_rad.first().unwrap();
    let out = by.map(|joint, by| {
        if joint == 0 {
            (high - from.first().unwrap()) * 1.1
        } else {
            by
        }
    });
    assert!(check.check(&out, 1).is_err());
}

/// The scene with a box whose lowest side is 120 mm plus `over_mm` over the pen's tip.
fn lid(scene: &Scene, over_mm: f64) -> Scene {
    let mut scene = scene.clone();
    let tip = tip_m(&scene, 0, sample(sample_in_stroke())).unwrap();
    let corner = |by: f64| [tip.x + by, tip.y + by];
    let ([x0, y0], [x1, y1], z) = (corner(-0.2), corner(0.2), tip.z + 0.12 + over_mm / 1e3);
    scene.keep_outs.push(KeepOut {
        name: "lid".to_owned(),
        corners: scene::AxisAlignedBox {
            min_m: Point3::new(x0, y0, z),
            max_m: Point3::new(x1, y1, z + 0.4),
        },
    });
    scene
}

#[test]
fn a_part_that_begins_near_may_come_no_nearer() {
    let near = |key: usize, gap_m: f64| PartProximity { key, gap_m };
    let initial = [near(1, 0.5), near(2, -0.25)];
    let found = |key: usize, gap_m: f64| first_breach(&[near(key, gap_m)], &initial, |_| 1.0);
    for (key, least) in [(1, 0.5), (2, -0.25), (3, 1.0)] {
        assert_eq!(found(key, least - 2e-6), Some(near(key, least - 2e-6)));
        assert_eq!((found(key, least - 5e-7), found(key, least)), (None, None));
    }
    let both = [near(1, 0.6), near(2, -0.3)];
    assert_eq!(first_breach(&both, &initial, |_| 1.0), Some(near(2, -0.3)));
    let refusal_at = |gap_m: f64| LiftRefusal::TooNear {
        part: "a link".to_owned(),
        gap_m,
        other: "the lid".to_owned(),
    };
    let refusal = refusal_at(0.0123);
    assert_eq!(
        refusal.to_string(),
        "a stop here would bring a link within 12.3 mm of the lid"
    );
    let refusal = refusal_at(-0.055);
    assert_eq!(
        refusal.to_string(),
        "a stop here would bring a link 55 mm into the lid"
    );
    let refusal = refusal_at(0.0);
    assert_eq!(
        refusal.to_string(),
        "a stop here would bring a link within 0 mm of the lid"
    );
}

#[test]
fn a_part_that_begins_clear_may_come_as_near_as_in_a_plan() {
    let scene = &drawing().0;
    for (obstacle, limit_m) in [
        (Obstacle::Sheet, CLEARANCE_M),
        (Obstacle::Part(3), CLEARANCE_M),
        (Obstacle::KeepOut(0), CLEARANCE_M),
        (Obstacle::SheetBelow, CLEARANCE_M),
        (Obstacle::Side(2), 0.0),
    ] {
        let near = |gap_m: f64| PartProximity {
            key: (1, obstacle),
            gap_m,
        };
        let breach = |gap_m: f64| first_breach(&[near(gap_m)], &[], |(_, to)| to.limit_m(scene));
        assert_eq!(breach(limit_m - 5e-7), None);
        assert_eq!(breach(limit_m - 2e-6), Some(near(limit_m - 2e-6)));
    }
}

#[test]
fn a_lift_into_a_keep_out_is_refused() {
    let scene = &drawing().0;
    let refused = |over_mm: f64| {
        let scene = lid(scene, over_mm);
        let mut world = CollisionWorld::new(&scene);
        find_lift(&mut world, 0, sample(sample_in_stroke())).err()
    };
    assert_eq!(refused(200.0), None);
    let errors: Vec<String> = (-20..20)
        .filter_map(|step| refused(f64::from(step) * 5.0))
        .map(|error| error.to_string())
        .collect();
    assert!(
        errors.iter().any(|error| error.ends_with("keep-out `lid`")),
        "{errors:?}"
    );
}

/// An arm is never planned faster than a stop can brake.
#[test]
fn the_fastest_speed_of_a_joint_is_stopped_in_time() {
    let brakes_s = BRAKE_SHARE * BRAKE_TICKS_MAX * plan::PERIOD.as_secs_f64();
    assert!((arm::STOPPABLE_S - brakes_s).abs() < 1e-12);
    let text = include_str!("../../../scenes/arms/vx300.toml");
    let fast = text.replace("velocity_max_rad_s = 2.5", "velocity_max_rad_s = 20.0");
    assert_ne!(fast, text);
    let limits = arm::ArmModel::new(toml::from_str(&fast).unwrap())
        .unwrap()
        .limits;
    let speeds = limits.velocity_rad_s.iter();
    for (speed, hardest) in speeds.zip(limits.acceleration_rad_s2.iter()) {
        assert!(*speed <= hardest * brakes_s + 1e-12, "{speed}");
    }
}
