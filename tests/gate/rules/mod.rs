//! Each of the gate's rules, just past its limit and just inside it; and random motions judged by
//! the gate and by a slow second judge.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a failing test may panic"
)]

pub(crate) mod apart;
mod leads;
mod pens;
mod slow;
mod small;
mod stricter;

use std::cell::Cell;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arm::{ArmModel, Capsule};
use base::units::{Finite, JointVector};
use gate::{GateRefusal, GateRule};
use nalgebra::Point3;
use plan::{SilentObserver, SpanKind, Trajectory, TrajectorySpan};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseError, TestRunner};
use scene::file::SheetFile;
use scene::{AxisAlignedBox, KeepOut, Scene, SceneLibrary, Surface};
use slow::Slow;

/// The shipped practice drawing, planned once.
fn default_plan() -> &'static (Arc<Scene>, Trajectory) {
    static PLAN: OnceLock<(Arc<Scene>, Trajectory)> = OnceLock::new();
    PLAN.get_or_init(|| {
        let scene = SceneLibrary::new(None).scene("default", None).unwrap();
        let plan = plan::draw(&scene, &scene.rest_rad, &SilentObserver).unwrap();
        (scene, plan.trajectory)
    })
}

fn refusals(scene: Scene, plan: &Trajectory) -> Vec<GateRefusal> {
    let refusals_found = gate::preview(&Arc::new(scene), plan)
        .err()
        .map_or_else(Vec::new, |refused| refused.0);
    for refusal in &refusals_found {
        assert!(!says_a_length_below_zero(refusal), "{refusal:?}");
    }
    refusals_found
}

/// A depth, a distance and their limits have no sign: "below", "into" and "within" say it.
fn says_a_length_below_zero(refusal: &GateRefusal) -> bool {
    let is_a_length = matches!(
        refusal.rule,
        GateRule::Sheet | GateRule::KeepOut | GateRule::Body | GateRule::SelfCollision
    );
    is_a_length && refusal.why.contains(" -")
}

/// The default plan in the default scene after a change to it.
fn changed(change: impl FnOnce(&mut Scene)) -> Vec<GateRefusal> {
    let (scene, plan) = default_plan();
    let mut scene = Scene::clone(scene);
    change(&mut scene);
    refusals(scene, plan)
}

fn arm_changed(change: impl FnOnce(&mut ArmModel)) -> Vec<GateRefusal> {
    changed(|scene| with_arm(scene, change))
}

fn with_arm(scene: &mut Scene, change: impl FnOnce(&mut ArmModel)) {
    let mut arm = ArmModel::clone(&scene.arm);
    change(&mut arm);
    scene.arm = Arc::new(arm);
}

/// Checks that `judged` refuses by one rule alone past a limit, and nothing inside it. `judged` is given
/// what to add to the limit: something that makes it looser.
fn edge(rule: GateRule, by: f64, judged: impl Fn(f64) -> Vec<GateRefusal>) {
    let inside = judged(by);
    assert!(inside.is_empty(), "inside: {inside:#?}");
    let past = judged(-by);
    assert!(!past.is_empty(), "nothing was refused");
    for refusal in &past {
        assert_eq!(refusal.rule, rule, "{refusal:?}");
        assert!(refusal.at_mm.is_some() && refusal.why.contains("s into"));
        let excess = refusal.excess.unwrap();
        let (value, limit) = (excess.value, excess.limit);
        assert!(
            (value - limit).abs() < 0.1 * limit.abs() + 0.1,
            "{refusal:?}"
        );
    }
}

fn sheet(by_m: [f64; 3]) -> Surface {
    let text = include_str!("../../../scenes/default.toml");
    let file: toml::Table = toml::from_str(text).unwrap();
    let mut sheet: SheetFile = file["sheet"].clone().try_into().unwrap();
    for (at, by) in sheet.origin_m.iter_mut().zip(by_m) {
        *at = Finite::new(at.get() + by).unwrap();
    }
    Surface::new(&sheet).unwrap()
}

/// The largest difference of an order, over a joint's samples with the arm standing at both ends.
fn largest(joint: usize, order: u32) -> f64 {
    let (_, plan) = default_plan();
    let (first, last) = (plan.samples[0], plan.samples[plan.samples.len() - 1]);
    let ends = |q: JointVector| std::iter::repeat_n(q, 3);
    let all = ends(first)
        .chain(plan.samples.iter().copied())
        .chain(ends(last));
    let mut values: Vec<f64> = all.map(|q| q[joint]).collect();
    for _ in 0..order {
        values = values.windows(2).map(|pair| pair[1] - pair[0]).collect();
    }
    let period = plan.period.as_secs_f64().powi(order as i32);
    values
        .iter()
        .fold(0.0, |most, value| f64::max(most, value.abs() / period))
}

#[test]
fn a_joint_at_its_limit() {
    let (_, plan) = default_plan();
    let highest = plan
        .samples
        .iter()
        .map(|q| q[0])
        .fold(f64::NEG_INFINITY, f64::max);
    let lowest = plan
        .samples
        .iter()
        .map(|q| q[0])
        .fold(f64::INFINITY, f64::min);
    edge(GateRule::JointLimit, 1e-4, |by| {
        arm_changed(|arm| arm.limits.upper_rad[0] = highest + by)
    });
    edge(GateRule::JointLimit, 1e-4, |by| {
        arm_changed(|arm| arm.limits.lower_rad[0] = lowest - by)
    });
}

#[test]
fn a_joint_at_its_speed_acceleration_and_jerk() {
    for joint in 0..4 {
        let [speed, push, jerk] = [1, 2, 3].map(|order| largest(joint, order));
        edge(GateRule::JointSpeed, 0.002, |by| {
            arm_changed(|arm| arm.limits.velocity_rad_s[joint] = speed * (1.0 + by))
        });
        edge(GateRule::JointAcceleration, 0.002, |by| {
            // Braking is proven with the same limit: only this rule is looked at.
            let mut refused =
                arm_changed(|arm| arm.limits.acceleration_rad_s2[joint] = push * (1.0 + by));
            refused.retain(|refusal| refusal.rule != GateRule::Stop);
            refused
        });
        edge(GateRule::JointJerk, 0.05, |by| {
            arm_changed(|arm| arm.limits.jerk_rad_s3[joint] = jerk * (1.0 + by))
        });
    }
}

#[test]
fn a_jolt_that_keeps_acceleration_is_refused_for_its_jerk() {
    let (scene, plan) = default_plan();
    let mut jolted = plan.clone();
    let at = plan.samples.len() / 2;
    // Two tenths of a count of a servo: 3 rad/s² one way, 6 the other.
    jolted.samples[at][2] += 3e-4;
    let refused: Vec<GateRule> = refusals(Scene::clone(scene), &jolted)
        .iter()
        .map(|refusal| refusal.rule)
        .collect();
    assert!(refused.contains(&GateRule::JointJerk), "{refused:?}");
    assert!(
        !refused.contains(&GateRule::JointAcceleration) && !refused.contains(&GateRule::JointSpeed)
    );
}

#[test]
fn a_tip_at_its_speed() {
    let (scene, plan) = default_plan();
    let fastest = |kind: SpanKind| {
        let spans = plan.spans.iter().filter(|span| span.kind == kind);
        let steps = spans
            .flat_map(|span| span.first.max(1)..span.end)
            .map(|at| {
                let tip = |at: usize| slow::tip(scene, 0, &plan.samples[at]);
                (tip(at) - tip(at - 1)).norm() * 1e3 / plan.period.as_secs_f64()
            });
        steps.fold(0.0, f64::max)
    };
    let drawing = fastest(SpanKind::Draw);
    edge(GateRule::TipSpeed, 0.002, |by| {
        changed(|scene| scene.limits.draw_mm_s = drawing * (1.0 + by))
    });
    let travelling = fastest(SpanKind::Travel).max(fastest(SpanKind::Approach));
    edge(GateRule::TipSpeed, 0.002, |by| {
        changed(|scene| scene.limits.travel_mm_s = travelling * (1.0 + by))
    });
    // Rounding does not count as a violation.
    let refused = changed(|scene| scene.limits.draw_mm_s = drawing * (1.0 - 5e-4));
    assert!(refused.is_empty(), "{refused:#?}");
}

#[test]
fn a_pen_at_its_cone() {
    let (scene, plan) = default_plan();
    let leaning = plan.samples.iter().enumerate().filter_map(|(at, q)| {
        let axis = slow::frames(scene, q)[6].transform_vector(&scene.pens[0].axis);
        let draws = plan.span_at(at).unwrap().kind == SpanKind::Draw;
        draws.then(|| (-axis).angle(&scene.surface.at([0.0, 0.0]).normal))
    });
    let most = leaning.fold(0.0, f64::max);
    // This drawing is upright all the way: the pen's axis is said to lean instead.
    let lean = |scene: &mut Scene, by: f64| {
        let pen = &mut scene.pens[0];
        pen.cone_rad = most.max(0.05) * (1.0 + by);
        let about = nalgebra::Vector3::x_axis();
        let turn = nalgebra::Rotation3::from_axis_angle(&about, 0.05 - most.min(0.05));
        pen.axis = turn * pen.axis;
    };
    let mut past = changed(|scene| lean(scene, -0.01));
    past.retain(|refusal| refusal.rule == GateRule::Tilt);
    assert!(!past.is_empty());
    let inside = changed(|scene| lean(scene, 0.01));
    assert!(
        inside.iter().all(|refusal| refusal.rule != GateRule::Tilt),
        "{inside:#?}"
    );
}

/// The ends of every capsule that moves, with its radius, over all samples.
fn ends(plan: &Trajectory) -> Vec<(usize, Point3<f64>, f64)> {
    let (scene, _) = default_plan();
    let mut ends = Vec::new();
    for q in &plan.samples {
        let frames = slow::frames(scene, q);
        for (index, capsule) in scene.arm.capsules.iter().enumerate().skip(1) {
            let frame = frames[capsule.joints_before];
            for end in [capsule.from_m, capsule.to_m] {
                ends.push((index, frame.transform_point(&end), capsule.radius_m));
            }
        }
    }
    ends
}

/// From the ready pose, slowly to rest.
fn folding() -> Trajectory {
    let (scene, _) = default_plan();
    only(
        SpanKind::Travel,
        10,
        ease(&scene.ready_rad, &scene.rest_rad, 600),
    )
}

fn folding_in(change: impl FnOnce(&mut Scene)) -> Vec<GateRefusal> {
    let mut scene = Scene::clone(&default_plan().0);
    change(&mut scene);
    refusals(scene, &folding())
}

#[test]
fn a_link_at_the_workspaces_side() {
    let ends = ends(&folding());
    let most = |of: fn(&Point3<f64>) -> f64| {
        let sides = ends.iter().map(|(_, end, r)| of(end) + r);
        sides.fold(f64::NEG_INFINITY, f64::max)
    };
    edge(GateRule::Workspace, 5e-5, |by| {
        folding_in(|scene| scene.limits.workspace.max_m.z = most(|end| end.z) + by)
    });
    edge(GateRule::Workspace, 5e-5, |by| {
        folding_in(|scene| scene.limits.workspace.max_m.y = most(|end| end.y) + by)
    });
}

#[test]
fn how_far_a_link_is_outside_is_said_in_millimetres() {
    let highest = ends(&folding())
        .iter()
        .map(|(_, end, radius)| end.z + radius)
        .fold(f64::NEG_INFINITY, f64::max);
    let refused = folding_in(|scene| scene.limits.workspace.max_m.z = highest - 0.004);
    let outside = refused
        .iter()
        .find(|one| one.rule == GateRule::Workspace)
        .unwrap();
    let excess = outside.excess.unwrap();
    assert!((excess.value - 4.0).abs() < 0.05, "{outside:?}");
    assert!(outside.why.contains("4 mm outside"), "{outside:?}");
}

#[test]
fn a_link_at_a_keep_out() {
    let top = ends(&default_plan().1)
        .iter()
        .map(|(_, end, r)| end.z + r)
        .fold(0.0, f64::max);
    edge(GateRule::KeepOut, 2e-5, |by| {
        // Lifts after a stop keep away from it as well: only this rule is looked at.
        let mut refused = changed(|scene| {
            scene.keep_outs.push(KeepOut {
                name: "shelf".to_owned(),
                corners: AxisAlignedBox {
                    min_m: Point3::new(-1.0, -1.0, top + 0.003 + by),
                    max_m: Point3::new(1.0, 1.0, top + 0.3),
                },
            });
        });
        refused.retain(|refusal| refusal.rule != GateRule::Stop);
        refused
    });
}

#[test]
fn the_gripper_at_the_sheet() {
    let (scene, _) = default_plan();
    let gripper = scene
        .arm
        .capsules
        .iter()
        .position(|c| c.name == "gripper")
        .unwrap();
    let over = ends(&default_plan().1)
        .into_iter()
        .filter(|(index, ..)| *index == gripper);
    let lowest = over
        .map(|(_, end, _)| scene.surface.project(&end).height_mm / 1e3)
        .fold(f64::INFINITY, f64::min);
    edge(GateRule::Body, 5e-5, |by| {
        // A gripper so thick is near the upper arm as well: only this rule is looked at.
        let mut refused = arm_changed(|arm| arm.capsules[gripper].radius_m = lowest - 0.003 - by);
        refused.retain(|refusal| refusal.rule == GateRule::Body);
        refused
    });
}

/// A bar across the gripper, so long that its ends are beside the sheet.
fn bar(over_mm: f64) -> Vec<GateRefusal> {
    let (scene, plan) = default_plan();
    let drawing = plan
        .spans
        .iter()
        .find(|span| span.kind == SpanKind::Draw)
        .unwrap();
    let frame = slow::frames(scene, &plan.samples[drawing.first])[5];
    let under = scene
        .surface
        .project(&slow::tip(scene, 0, &plan.samples[drawing.first]));
    let to = frame.try_inverse().unwrap();
    let end = |x: f64| {
        let contact = scene.surface.at([x, under.at_mm[1]]);
        to.transform_point(&(contact.point_m + contact.normal.scale(over_mm / 1e3)))
    };
    let (from_m, to_m) = (end(-250.0), end(350.0));
    let mut refused = arm_changed(|arm| {
        arm.capsules.push(Capsule {
            name: "bar".to_owned(),
            joints_before: 5,
            from_m,
            to_m,
            radius_m: 0.004,
        });
    });
    refused.retain(|refusal| refusal.rule == GateRule::Body);
    refused
}

#[test]
fn a_bar_is_seen_by_its_middle_and_not_only_by_its_ends() {
    assert!(bar(25.0).is_empty(), "{:#?}", bar(25.0));
    let refused = bar(5.0);
    assert!(!refused.is_empty());
    assert!(refused.iter().all(|refusal| refusal.why.starts_with("bar")));
}

#[test]
fn a_link_at_another() {
    let (scene, _) = default_plan();
    let named = |name: &str| {
        scene
            .arm
            .capsules
            .iter()
            .position(|c| c.name == name)
            .unwrap()
    };
    let (upper, gripper) = (named("upper arm"), named("gripper"));
    let points = |index: usize| {
        let capsule = &scene.arm.capsules[index];
        let frame = slow::frames(scene, &scene.rest_rad)[capsule.joints_before];
        let (from, to) = (
            frame.transform_point(&capsule.from_m),
            frame.transform_point(&capsule.to_m),
        );
        (0..=1000).map(move |n| from + (to - from) * (f64::from(n) / 1000.0))
    };
    let distance = points(upper).flat_map(|a| points(gripper).map(move |b| (a - b).norm()));
    let distance = distance.fold(f64::INFINITY, f64::min) - scene.arm.capsules[gripper].radius_m;
    // Only these two: the others are thin.
    let thick = |arm: &mut ArmModel, radius_m: f64| {
        for (index, capsule) in arm.capsules.iter_mut().enumerate() {
            if index == upper {
                capsule.radius_m = radius_m;
            } else if index != gripper {
                capsule.radius_m = 1e-3;
            }
        }
    };
    edge(GateRule::SelfCollision, 1e-4, |by| {
        folding_in(|scene| {
            scene.pens[0].tip_m = Point3::origin();
            with_arm(scene, |arm| thick(arm, distance - 0.003 - by));
        })
    });
    let may = folding_in(|scene| {
        scene.pens[0].tip_m = Point3::origin();
        with_arm(scene, |arm| {
            thick(arm, distance);
            arm.file.may_touch = vec![["gripper".to_owned(), "upper arm".to_owned()]];
        });
    });
    assert!(
        may.iter().all(|refusal| !refusal.why.contains("gripper")),
        "{may:#?}"
    );
}

/// From one pose to another, gently.
fn ease(from: &JointVector, to: &JointVector, steps: u32) -> Vec<JointVector> {
    (0..=steps)
        .map(|step| {
            let t = f64::from(step) / f64::from(steps);
            let way = t.powi(3) * (10.0 - 15.0 * t + 6.0 * t * t);
            from.zip(to, |a, b| a + (b - a) * way)
        })
        .collect()
}

fn only(kind: SpanKind, period_ms: u64, samples: Vec<JointVector>) -> Trajectory {
    let span = TrajectorySpan {
        kind,
        item: Some(0),
        pen: 0,
        first: 0,
        end: samples.len(),
    };
    Trajectory {
        reached: Vec::new(),
        period: Duration::from_millis(period_ms),
        samples,
        spans: vec![span],
    }
}

/// A pose as singular as climbing finds, and how far the way there from the ready pose is just at
/// a condition of 30.
fn towards_singular(scene: &Scene) -> (JointVector, f64) {
    let (from, limits) = (scene.ready_rad, &scene.arm.limits);
    let mut to = from;
    let mut step = 0.4;
    while step > 1e-3 {
        let near = (1..4).flat_map(|joint| [(joint, step), (joint, -step)]);
        let moved = near.map(|(joint, by)| {
            let within = |at: f64| at.clamp(limits.lower_rad[joint], limits.upper_rad[joint]);
            to.map(|index, at| if index == joint { within(at + by) } else { at })
        });
        let condition = |q: &JointVector| slow::condition(scene, 0, q);
        let best = moved
            .max_by(|a, b| condition(a).total_cmp(&condition(b)))
            .unwrap();
        if condition(&best) > condition(&to) {
            to = best;
        } else {
            step /= 2.0;
        }
    }
    let condition = |fraction: f64| slow::condition(scene, 0, &part(&from, &to, fraction));
    assert!(condition(1.0) > 31.0, "only {} at {to:?}", condition(1.0));
    let past = (0..500)
        .map(|n| f64::from(n) / 500.0)
        .find(|n| condition(*n) > 30.0);
    let mut high = past.unwrap_or(1.0);
    let mut low = high - 0.002;
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        if condition(middle) > 30.0 {
            high = middle;
        } else {
            low = middle;
        }
    }
    (to, low)
}

fn part(from: &JointVector, to: &JointVector, fraction: f64) -> JointVector {
    from.zip(to, |a, b| a + (b - a) * fraction)
}

fn down(from: &JointVector, to: &JointVector) -> Trajectory {
    only(SpanKind::Lower, 10, ease(from, to, 1000))
}

#[test]
fn a_tip_that_touches_near_a_singular_pose() {
    let mut scene = Scene::clone(&default_plan().0);
    scene.surface = sheet([0.0, 0.0, -0.6]);
    scene.limits.workspace.min_m.z = -1.0;
    scene.limits.travel_mm_s = 250.0;
    let from = scene.ready_rad;
    let (to, fraction) = towards_singular(&scene);
    edge(GateRule::Condition, 1e-4, |by| {
        refusals(
            scene.clone(),
            &down(&from, &part(&from, &to, fraction - by)),
        )
    });
    // A swing of the joints may pass there: nothing follows a line.
    let swing = ease(&from, &part(&from, &to, fraction + 1e-3), 1000);
    assert!(refusals(scene, &only(SpanKind::Approach, 10, swing)).is_empty());
}

#[test]
fn a_way_that_is_not_straight_between_samples() {
    let (scene, plan) = default_plan();
    let mut scene = Scene::clone(scene);
    scene.surface = sheet([0.0, 0.0, -0.02]);
    scene.limits.travel_mm_s = 250.0;
    let pan = slow::frames(&scene, &plan.samples[0])[1];
    let radius = |q: &JointVector| {
        (slow::tip(&scene, 0, q).xy() - Point3::from(pan.column(3).xyz()).xy()).norm()
    };
    let drawn = plan.spans.iter().filter(|span| span.kind == SpanKind::Draw);
    let nearest = drawn
        .flat_map(|span| &plan.samples[span.first..span.end])
        .min_by(|a, b| radius(a).total_cmp(&radius(b)))
        .unwrap();
    // An arc of the radius strays from its chord by r (1 - cos half of it).
    let step = 2.0 * (1.0 - 1e-4 / radius(nearest)).acos();
    edge(GateRule::Midpoint, 0.01, |by| {
        let mut angle = nearest[0] - 0.4;
        let mut samples = vec![angle; 4];
        for tick in 0..24 {
            let rise = f64::from(tick.min(23 - tick).min(9)) / 9.0;
            angle += step * (1.0 - by) * rise * rise * (3.0 - 2.0 * rise);
            samples.push(angle);
        }
        samples.extend([angle; 4]);
        let rotated = |pan: &f64| nearest.map(|joint, at| if joint == 0 { *pan } else { at });
        let plan = only(SpanKind::Travel, 50, samples.iter().map(rotated).collect());
        refusals(scene.clone(), &plan)
    });
}

#[test]
fn everything_is_said_at_once() {
    let refused = changed(|scene| {
        scene.limits.draw_mm_s = 20.0;
        scene.limits.workspace.max_m.z = 0.1;
        with_arm(scene, |arm| arm.limits.upper_rad[3] -= 0.9);
    });
    for rule in [
        GateRule::TipSpeed,
        GateRule::Workspace,
        GateRule::JointLimit,
    ] {
        assert!(
            refused.iter().any(|refusal| refusal.rule == rule),
            "{rule:?}: {refused:#?}"
        );
    }
    let strokes: Vec<_> = refused
        .iter()
        .filter(|refusal| refusal.rule == GateRule::TipSpeed)
        .map(|refusal| refusal.item)
        .collect();
    assert!(
        strokes.len() > 5 && strokes.windows(2).all(|pair| pair[0] < pair[1]),
        "{strokes:?}"
    );
}

/// A random motion in a random scene.
#[derive(Clone, Debug)]
struct Case {
    /// Poses through which it goes, as shares of each joint's range; none is the default plan.
    vias: Vec<[f64; 5]>,
    ticks: u32,
    doing: SpanKind,
    /// Joint, where, how wide, how far.
    bumps: Vec<(usize, f64, f64, f64)>,
    keep_out: Option<([f64; 3], f64)>,
    ceiling_m: Option<f64>,
    sheet_mm: f64,
    thicker: f64,
    slower: f64,
}

fn case() -> impl Strategy<Value = Case> {
    let via = prop::array::uniform5(0.05..0.95_f64);
    let vias = prop_oneof![Just(Vec::new()), prop::collection::vec(via, 2..5)];
    let bump = (0_usize..5, 0.05..0.95_f64, 0.01..0.3_f64, -12.0..-0.5_f64)
        .prop_map(|(joint, at, wide, power)| (joint, at, wide, power.exp()));
    let place = (prop::array::uniform3(-0.4..0.4_f64), 0.005..0.08_f64);
    let motion = (
        vias,
        60_u32..400,
        prop_oneof![
            3 => Just(SpanKind::Lower),
            3 => Just(SpanKind::Travel),
            1 => Just(SpanKind::Jog),
            2 => Just(SpanKind::Pose),
            1 => Just(SpanKind::Probe),
        ],
        prop::collection::vec(bump, 0..3),
    );
    let around = (
        prop::option::of(place),
        prop::option::of(0.15..0.5_f64),
        prop_oneof![2 => Just(0.0), 1 => -60.0..5.0_f64],
        prop_oneof![2 => Just(1.0), 1 => 0.5..1.9_f64],
        prop_oneof![2 => Just(1.0), 1 => 0.2..1.0_f64],
    );
    (motion, around).prop_map(
        |((vias, ticks, doing, bumps), (keep_out, ceiling_m, sheet_mm, thicker, slower))| Case {
            vias,
            ticks,
            doing,
            bumps,
            keep_out,
            ceiling_m,
            sheet_mm,
            thicker,
            slower,
        },
    )
}

impl Case {
    fn scene(&self) -> Scene {
        let mut scene = Scene::clone(&default_plan().0);
        scene.surface = sheet([0.0, 0.0, self.sheet_mm / 1e3]);
        scene.limits.travel_mm_s = 250.0;
        if let Some((middle, half)) = self.keep_out {
            let around = |by: f64| {
                Point3::from(middle.map(|v| v + by)) + nalgebra::Vector3::new(0.0, 0.0, 0.3)
            };
            let corners = AxisAlignedBox {
                min_m: around(-half),
                max_m: around(half),
            };
            scene.keep_outs.push(KeepOut {
                name: "cup".to_owned(),
                corners,
            });
        }
        if let Some(ceiling_m) = self.ceiling_m {
            scene.limits.workspace.max_m.z = ceiling_m;
        }
        with_arm(&mut scene, |arm| {
            for capsule in &mut arm.capsules {
                capsule.radius_m *= self.thicker;
            }
            arm.limits.velocity_rad_s = arm.limits.velocity_rad_s.map(|_, v| v * self.slower);
        });
        scene
    }

    fn plan(&self, scene: &Scene) -> Trajectory {
        let limits = &scene.arm.limits;
        let pose = |via: &[f64; 5]| {
            limits
                .lower_rad
                .zip(&limits.upper_rad, |low, high| high - low)
                .map(|joint, range| limits.lower_rad[joint] + range * via[joint])
        };
        let mut plan = if self.vias.is_empty() {
            default_plan().1.clone()
        } else {
            let poses: Vec<JointVector> = self.vias.iter().map(pose).collect();
            let legs = poses
                .windows(2)
                .flat_map(|pair| ease(&pair[0], &pair[1], self.ticks));
            only(self.doing, 10, legs.collect())
        };
        let count = plan.samples.len() as f64;
        for (joint, at, wide, far) in &self.bumps {
            for (index, q) in plan.samples.iter_mut().enumerate() {
                let off = (index as f64 / count - at) / wide;
                if off.abs() < 1.0 {
                    q[*joint] += far * (1.0 - off * off).powi(4);
                }
            }
        }
        plan
    }
}

#[test]
fn random_motions_pass_only_where_a_second_judge_finds_nothing() {
    judge_random_motions(0x5eed);
}

#[test]
fn random_motions_pass_only_where_a_second_judge_agrees_second_share() {
    judge_random_motions(0x5eee);
}

/// Judges half of the random motions, so that two processors judge side by side.
fn judge_random_motions(seed: u64) {
    // `PROPTEST_CASES` may ask for fewer.
    let cases = ProptestConfig::default().cases.min(60).div_ceil(2);
    let mut runner = TestRunner::new(ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let (passed, refused) = (Cell::new(0), Cell::new(0));
    let judged = runner.run(&case(), |case| {
        let scene = case.scene();
        let plan = case.plan(&scene);
        let slow = Slow::judge(&scene, &plan);
        let refusals_found = refusals(scene, &plan);
        let count = if refusals_found.is_empty() {
            &passed
        } else {
            &refused
        };
        count.set(count.get() + 1);
        for (rule, found) in &slow.found {
            let by_gate = refusals_found
                .iter()
                .any(|refusal| format!("{:?}", refusal.rule) == *rule);
            if (found.surely && !by_gate) || (by_gate && !found.possibly) {
                let reason = format!("{rule}: {found:?}, and the gate said {refusals_found:#?}");
                return Err(TestCaseError::fail(reason));
            }
        }
        Ok(())
    });
    judged.unwrap_or_else(|failed| panic!("{failed}"));
    let (passed, refused) = (passed.get(), refused.get());
    assert!(
        passed >= cases / 12 && refused >= cases / 3,
        "{passed} passed, {refused} were refused"
    );
}

/// The sheet's edge in front of an arm is reached, and too near its base to be followed in a straight line.
#[test]
fn the_way_past_an_arms_base_is_no_straight_line() {
    let library = SceneLibrary::new(None);
    for part in library.shared("two_arms", None).unwrap().parts {
        let mut scene = (*part.scene).clone();
        scene.beside.clear();
        let scene = Arc::new(scene);
        let [width_mm, height_mm] = scene.surface.size_mm();
        let visit = |x: f64, y: f64| plan::VisitPoint {
            name: format!("{x}, {y} mm"),
            target: plan::VisitTarget::Sheet {
                at_mm: [x, y],
                height_mm: 5.0,
            },
            pen: 0,
            dwell_s: 0.1,
        };
        for x in [8.0, width_mm - 8.0] {
            let visits = [visit(x, 8.0), visit(x, height_mm - 8.0), visit(x, 8.0)];
            let plan = plan::visit(&scene, &scene.rest_rad, &visits, &SilentObserver).unwrap();
            let passed = gate::preview(&scene, &plan.trajectory);
            passed.unwrap_or_else(|refused| panic!("{}, {x} mm: {refused}", scene.name));
        }
    }
}
