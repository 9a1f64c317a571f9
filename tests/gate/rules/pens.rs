//! Pens: the one in a holder whose pen a person changes, and each pen's own press and speed.

use super::*;
use base::units::{ArmMeasurement, ClockInstant};
use nalgebra::{Unit, Vector3};
use permit::PermitRegistry;
use scene::{PenHolder, ToolKind};

/// The shipped scene whose pens a person changes, with one of them in the holder, and what that one draws.
fn part(pen: usize) -> (Arc<Scene>, Trajectory) {
    let scene = SceneLibrary::new(None).scene("pens_by_hand", None).unwrap();
    let mounted = scene.with_mounted(pen);
    let of_pen = scene.strokes.iter().filter(|stroke| stroke.pen == pen);
    let strokes: Vec<_> = of_pen.cloned().collect();
    let (rest_rad, order) = (&scene.rest_rad, scene.order);
    let plan = plan::draw_strokes(&mounted, rest_rad, &strokes, order, &SilentObserver).unwrap();
    (mounted, plan.trajectory)
}

/// Returns what the gate says where the arm is at the beginning and everything is enabled.
fn checked(scene: &Arc<Scene>, trajectory: &Trajectory) -> Vec<GateRefusal> {
    let start = ArmMeasurement {
        at: ClockInstant::ZERO,
        position_rad: trajectory.samples[0],
        velocity_rad_s: trajectory.samples[0].map(|_, _| 0.0),
        servos: Vec::new(),
    };
    let permit = PermitRegistry::everything().ask(scene, ClockInstant::ZERO);
    let judged = gate::check(
        scene,
        permit.unwrap(),
        &start,
        ClockInstant::ZERO,
        trajectory.clone(),
    );
    judged.err().map_or_else(Vec::new, |refused| refused.0)
}

#[test]
fn refuses_to_bring_down_a_pen_that_nobody_has_confirmed() {
    let (mounted, trajectory) = part(1);
    assert!(checked(&mounted, &trajectory).is_empty());
    let unknown = Arc::new(mounted.without_mounted());
    for scene in [unknown, mounted.with_mounted(0)] {
        let refused = checked(&scene, &trajectory);
        let is_it = |refusal: &GateRefusal| {
            refusal.rule == GateRule::Pen && refusal.why.contains("pen 2 `red`")
        };
        assert!(refused.iter().any(is_it), "{refused:#?}");
        // Away from the sheet it may go with any pen.
        let to = plan::go_to(
            &scene,
            &scene.rest_rad,
            &[scene.ready_rad, scene.rest_rad],
            &SilentObserver,
        );
        let refused = checked(&scene, &to.unwrap().trajectory);
        assert!(refused.is_empty(), "{refused:#?}");
    }
}

/// The third pen made so long that it would stand in a box under the drawing arm.
#[test]
fn a_pen_that_is_not_in_the_holder_is_not_there_and_the_one_that_is_is() {
    let (mounted, trajectory) = part(0);
    let long = |scene: &Scene| {
        let mut scene = Scene::clone(scene);
        scene.pens[2].tip_m *= 3.0;
        // Where the mounted pen's tip never comes: below the table.
        scene.limits.workspace.min_m.z = -0.02;
        scene
    };
    assert!(refusals(long(&mounted), &trajectory).is_empty());
    let with = |pen| {
        let mut scene = long(&mounted);
        if let PenHolder::ByHand { mounted, .. } = &mut scene.holder {
            *mounted = pen;
        }
        refusals(scene, &trajectory)
    };
    for pen in [Some(2), None] {
        let refused = with(pen);
        let is_it = |refusal: &GateRefusal| refusal.why.contains("`green`");
        assert!(refused.iter().any(is_it), "{pen:?}: {refused:#?}");
    }
}

#[test]
fn holds_a_pen_to_a_press_and_a_speed_of_its_own() {
    let (scene, plan) = default_plan();
    let of_pen = |press_mm, draw_mm_s| {
        let mut scene = Scene::clone(scene);
        scene.pens[0].press_mm = press_mm;
        scene.pens[0].draw_mm_s = draw_mm_s;
        refusals(scene, plan)
    };
    // As it was planned, and beyond the scene's: that one holds.
    assert!(of_pen(Some(1.0), Some(40.0)).is_empty());
    assert!(of_pen(Some(3.0), Some(90.0)).is_empty());
    for (press_mm, draw_mm_s, rule) in [
        (Some(0.5), None, GateRule::Sheet),
        (None, Some(20.0), GateRule::TipSpeed),
    ] {
        let refused = of_pen(press_mm, draw_mm_s);
        assert!(!refused.is_empty());
        let is_it = |refusal: &GateRefusal| refusal.rule == rule;
        assert!(refused.iter().all(is_it), "{rule:?}: {refused:#?}");
    }
}

/// The shipped scene with two pens in one holder, leaning this much to either side.
fn leaning(lean_deg: f64) -> Scene {
    let scene = SceneLibrary::new(None).scene("two_pens", None).unwrap();
    let mut scene = Scene::clone(&scene);
    let (sin, cos) = lean_deg.to_radians().sin_cos();
    for (pen, side) in scene.pens.iter_mut().zip([sin, -sin]) {
        let axis = Vector3::new(side, -cos, 0.0);
        pen.tip_m = Point3::from(axis * 0.04);
        pen.axis = Unit::new_normalize(axis);
    }
    scene
}

/// Returns the height of a tip over the sheet in mm, by the slow judge.
fn slow_height_mm(scene: &Scene, pen: usize, q: &JointVector) -> f64 {
    let tip = slow::tip(scene, pen, q);
    scene.surface.project(&tip).height_mm
}

/// Each sample but the first with the one before it, and the pen in use.
fn steps(plan: &Trajectory) -> impl Iterator<Item = (&JointVector, &JointVector, usize)> {
    let pairs = plan.samples.iter().zip(&plan.samples[1..]);
    let pen = |sample: usize| plan.span_at(sample).unwrap().pen;
    pairs
        .enumerate()
        .map(move |(sample, (before, q))| (before, q, pen(sample + 1)))
}

/// Returns the largest speed of the needles that do not draw within 20 mm of the sheet.
fn idle_needle_mm_s(scene: &Scene, plan: &Trajectory) -> f64 {
    let period_s = plan.period.as_secs_f64();
    let speeds = steps(plan).flat_map(|(before, q, in_use)| {
        let needles = (0..scene.pens.len()).filter(move |pen| {
            *pen != in_use
                && scene.pens[*pen].kind == ToolKind::Needle
                && slow_height_mm(scene, *pen, q) < 20.0
        });
        needles.map(move |pen| {
            let way = slow::tip(scene, pen, q) - slow::tip(scene, pen, before);
            way.norm() * 1e3 / period_s
        })
    });
    speeds.fold(0.0, f64::max)
}

#[test]
fn a_needle_that_does_not_draw_is_slow_near_the_sheet_too() {
    for needles in [&[1][..], &[0, 1]] {
        let pens = leaning(16.0);
        let mut sharp = pens.clone();
        for needle in needles {
            sharp.pens[*needle].kind = ToolKind::Needle;
        }
        // Planned as if they were pens.
        let plan = plan::draw(&pens, &pens.rest_rad, &SilentObserver).unwrap();
        assert!(refusals(pens, &plan.trajectory).is_empty());
        let fastest = idle_needle_mm_s(&sharp, &plan.trajectory);
        assert!(fastest > 30.0, "{fastest}");
        let refused = refusals(sharp.clone(), &plan.trajectory);
        let is_idle =
            |one: &&GateRefusal| one.why.contains("`red`") && one.why.contains("not draw");
        let idle: Vec<_> = refused.iter().filter(is_idle).collect();
        assert!(!idle.is_empty(), "{refused:#?}");
        assert!(idle.iter().all(|one| one.rule == GateRule::TipSpeed));
        let said = idle.iter().map(|one| one.excess.unwrap().value);
        let said = said.fold(0.0, f64::max);
        assert!(
            (said - fastest).abs() < 0.01 || needles.len() > 1,
            "{said} {fastest}"
        );
        // Planned as they are.
        let plan = plan::draw(&sharp, &sharp.rest_rad, &SilentObserver).unwrap();
        let fastest = idle_needle_mm_s(&sharp, &plan.trajectory);
        assert!((20.0..=25.0 * 1.001).contains(&fastest), "{fastest}");
        let refused = refusals(sharp, &plan.trajectory);
        assert!(refused.is_empty(), "{refused:#?}");
    }
}

#[test]
fn a_pen_that_does_not_draw_keeps_its_distance_from_the_sheet() {
    for (lean_deg, lift_mm, least_mm) in [(6.6, 8.0, 3.0), (16.0, 8.0, 3.0), (10.0, 2.0, 1.0)] {
        let mut scene = leaning(lean_deg);
        scene.heights.lift_mm = lift_mm;
        let plan = plan::draw(&scene, &scene.rest_rad, &SilentObserver).unwrap();
        let heights = steps(&plan.trajectory)
            .filter(|(_, q, _)| {
                slow_height_mm(&scene, 0, q).min(slow_height_mm(&scene, 1, q)) < 0.0
            })
            .map(|(_, q, in_use)| slow_height_mm(&scene, 1 - in_use, q));
        let lowest_mm = heights.fold(f64::INFINITY, f64::min);
        let refused = refusals(scene, &plan.trajectory);
        let is_idle =
            |one: &GateRefusal| one.rule == GateRule::Sheet && one.why.contains("not draw");
        assert_eq!(
            refused.iter().any(is_idle),
            lowest_mm < least_mm,
            "{lean_deg}°: {lowest_mm} mm, {refused:#?}"
        );
        assert_eq!(lowest_mm < least_mm, lean_deg < 7.0, "{lowest_mm} mm");
    }
}
