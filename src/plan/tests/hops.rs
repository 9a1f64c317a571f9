//! Hops from one line to the next: how they leave the sheet, how high they go, what they clear, and
//! how close their time is to its bound.

use super::*;
use crate::scalar_profile::{ProfileLimits, ScalarProfile};
use kin::capsule::place;
use scene::{CLEARANCE_M, KeepOut, PEN_RADIUS_M, SceneLibrary};

/// Returns the shipped scenes that have a design.
fn shipped_scenes() -> Vec<Scene> {
    let library = SceneLibrary::new(None);
    let names = library.scenes().into_iter();
    let scenes = names.map(|name| Scene::clone(&library.scene(&name, None).unwrap()));
    scenes.filter(|scene| !scene.strokes.is_empty()).collect()
}

fn planned(scene: &Scene, strokes: &[SheetStroke]) -> Plan {
    plan_from_rest(scene, strokes, Order::AsDrawn)
}

/// Returns the samples between two lines that one pen draws without a dip in between.
fn hops(plan: &Plan) -> Vec<(usize, std::ops::Range<usize>)> {
    let lines: Vec<usize> = (0..plan.trajectory.spans.len())
        .filter(|at| plan.trajectory.spans[*at].kind == SpanKind::Draw)
        .collect();
    let between = lines.windows(2).filter_map(|pair| {
        let spans = &plan.trajectory.spans[pair[0]..=pair[1]];
        let is_hop = spans
            .iter()
            .all(|span| span.pen == spans[0].pen && span.kind != SpanKind::Dip);
        is_hop.then(|| (spans[0].pen, spans[0].end..spans[spans.len() - 1].first))
    });
    between.collect()
}

fn heights_mm(
    scene: &Scene,
    plan: &Plan,
    pen: usize,
    samples: std::ops::Range<usize>,
) -> Vec<(f64, [f64; 2])> {
    let tip = tip(scene, pen);
    samples
        .map(|n| {
            let point_m = scene.arm.chain.tip(&plan.trajectory.samples[n], &tip).0;
            let projection = scene.surface.project(&point_m);
            (projection.height_mm, projection.at_mm)
        })
        .collect()
}

fn peak_mm(scene: &Scene, plan: &Plan) -> f64 {
    let (pen, samples) = hops(plan).remove(0);
    let heights = heights_mm(scene, plan, pen, samples).into_iter();
    heights
        .map(|(height_mm, _)| height_mm)
        .fold(f64::NEG_INFINITY, f64::max)
}

/// Ink is not smeared: near the paper the tip goes along the normal.
#[test]
fn a_tip_near_the_sheet_does_not_move_along_it() {
    for scene in shipped_scenes() {
        let plan = draw(&scene, &scene.rest_rad, &SilentObserver).unwrap();
        let mut checked = 0;
        for (pen, samples) in hops(&plan) {
            let ends = [
                samples.start - 1..samples.start,
                samples.end - 1..samples.end,
            ]
            .map(|end| heights_mm(&scene, &plan, pen, end)[0].1);
            for (height_mm, at_mm) in heights_mm(&scene, &plan, pen, samples) {
                if height_mm < 0.3 {
                    let sideways_mm = ends.map(|end| (at_mm[0] - end[0]).hypot(at_mm[1] - end[1]));
                    assert!(
                        sideways_mm[0].min(sideways_mm[1]) <= 0.15,
                        "{}: {sideways_mm:?} mm sideways at {height_mm} mm",
                        scene.name
                    );
                    checked += 1;
                }
            }
        }
        assert!(checked > 10, "{}: {checked} samples", scene.name);
    }
}

#[test]
fn a_hop_is_between_its_least_and_its_greatest_height() {
    for (least_mm, lift_mm) in [(2.0, 8.0), (0.5, 3.0), (5.0, 5.0), (10.0, 30.0)] {
        let mut scene = so101();
        (scene.heights.lift_least_mm, scene.heights.lift_mm) = (least_mm, lift_mm);
        for across_mm in [0.2, 3.0, 12.0, 60.0] {
            let strokes = [20.0, 20.0 + across_mm].map(|x| stroke(&[[x, 40.0], [x, 60.0]]));
            let plan = planned(&scene, &strokes);
            assert_eq!(plan.report.stroke_count, 2);
            check(&scene, &scene.rest_rad, &plan.trajectory);
            let peak_mm = peak_mm(&scene, &plan);
            assert!(
                (least_mm - 0.05..=lift_mm + 0.01).contains(&peak_mm),
                "{peak_mm} mm of {least_mm} to {lift_mm}, {across_mm} mm across"
            );
        }
    }
}

#[test]
fn a_short_hop_is_low_and_a_long_one_as_high_as_it_can_be_at_no_cost() {
    let scene = so101();
    let peaks_mm = [1.0, 10.0, 60.0].map(|across_mm| {
        let strokes = [20.0, 20.0 + across_mm].map(|x| {
            let to = if x > 20.0 { [x, 40.0] } else { [x, 60.0] };
            stroke(&[[x, 100.0 - to[1]], to])
        });
        peak_mm(&scene, &planned(&scene, &strokes))
    });
    assert!(peaks_mm[0] < 2.1, "{peaks_mm:?}");
    assert!((2.5..6.0).contains(&peaks_mm[1]), "{peaks_mm:?}");
    assert!(peaks_mm[2] > 6.0, "{peaks_mm:?}");
}

/// The wrist comes to the end of its range over this sheet, if the elbow may be straight.
fn sheet_at_a_joint_limit() -> Scene {
    let mut scene = so101();
    scene.bent = scene.arm.chain.clone();
    scene.surface = sheet(
        [-0.012_005, -0.211_583, 0.007_668],
        [0.710_086, -0.693_6, -0.121_235],
        [0.691_82, 0.719_303, -0.063_159],
    );
    scene.pens[0].cone_rad = 10_f64.to_radians();
    scene
}

/// A tip that stood on the sheet meanwhile would leave a blot.
#[test]
fn a_joint_at_its_limit_slows_a_hop_only_there() {
    let scene = sheet_at_a_joint_limit();
    let dots = [
        [48.87, 40.1],
        [94.71, 12.57],
        [55.39, 13.56],
        [85.02, 35.22],
    ];
    let plan = planned(&scene, &dots.map(|[x, y]| stroke(&[[x, y], [x + 0.1, y]])));
    check(&scene, &scene.rest_rad, &plan.trajectory);
    let note = plan.report.limit_note().unwrap();
    assert!(note.starts_with("wrist_flex"), "{note}");
    assert!(plan.report.pen_up_s < 5.0, "{} s", plan.report.pen_up_s);
    assert_eq!(hops(&plan).len(), 3);
    for (pen, samples) in hops(&plan) {
        let heights = heights_mm(&scene, &plan, pen, samples).into_iter();
        let pressed = heights.filter(|(height_mm, _)| *height_mm <= 0.0).count();
        assert!(pressed < 40, "pressed for {pressed} samples");
    }
}

/// Two lines with a wall between them, 5 mm high.
fn lines_beside_a_wall() -> (Scene, Vec<SheetStroke>, KeepOut) {
    let mut scene = so101();
    (scene.heights.lift_mm, scene.heights.lift_least_mm) = (20.0, 2.0);
    let strokes = [30.0, 54.0]
        .map(|x| stroke(&[[x, 40.0], [x, 60.0]]))
        .to_vec();
    let [a, b] = [[41.0, 49.0], [43.0, 51.0]].map(|at_mm| scene.surface.at(at_mm).point_m);
    let wall = KeepOut {
        name: "wall".to_owned(),
        corners: AxisAlignedBox {
            min_m: Point3::new(a.x.min(b.x), -0.5, a.z),
            max_m: Point3::new(a.x.max(b.x), 0.0, a.z + 0.005),
        },
    };
    (scene, strokes, wall)
}

#[test]
fn a_hop_over_an_obstacle_is_high_enough_to_clear_it() {
    let (mut scene, strokes, wall) = lines_beside_a_wall();
    let low_mm = peak_mm(&scene, &planned(&scene, &strokes));
    assert!(low_mm < 10.0, "{low_mm}");
    scene.keep_outs.push(wall);
    let plan = planned(&scene, &strokes);
    check(&scene, &scene.rest_rad, &plan.trajectory);
    let high_mm = peak_mm(&scene, &plan);
    assert!((13.0..20.1).contains(&high_mm), "{high_mm}");
    let (_, samples) = hops(&plan).remove(0);
    for q in &plan.trajectory.samples[samples] {
        let tool = scene.arm.chain.frames(q).tool;
        let pen = place(&tool, &Point3::origin(), &scene.pens[0].tip_m, PEN_RADIUS_M);
        let corners = &scene.keep_outs[0].corners;
        let distance_m = corners.segment_distance_m(&pen.from_m, &pen.to_m, 1.0);
        assert!(distance_m.unwrap() - PEN_RADIUS_M >= CLEARANCE_M);
    }
}

/// The tip goes up, across and down instead, and the gate has the last word.
#[test]
fn what_no_hop_clears_is_crossed_at_full_height() {
    let (mut scene, strokes, mut wall) = lines_beside_a_wall();
    wall.corners.max_m.z += 0.02;
    scene.keep_outs.push(wall);
    let plan = planned(&scene, &strokes);
    let (pen, samples) = hops(&plan).remove(0);
    for (height_mm, at_mm) in heights_mm(&scene, &plan, pen, samples) {
        let is_at_an_end = [30.0, 54.0].iter().any(|x| (x - at_mm[0]).abs() < 0.01);
        assert!(
            is_at_an_end || height_mm > 19.9,
            "{height_mm} mm at {at_mm:?}"
        );
    }
}

/// A stroke that cannot be drawn leaves no trace of itself, though a hop to it was planned.
#[test]
fn what_is_refused_leaves_the_hops_around_it_as_they_were() {
    let mut scene = so101();
    let good = [30.0, 50.0].map(|x| stroke(&[[x, 40.0], [x, 60.0]]));
    let far = stroke(&[[40.0, 60.0], [40.0, 400.0]]);
    let all = vec![good[0].clone(), far, good[1].clone()];
    (scene.strokes, scene.order) = (all, Order::AsDrawn);
    let partial = attempt(&scene, &scene.rest_rad, &SilentObserver).unwrap();
    assert_eq!(partial.refusals.len(), 1);
    let full = planned(&scene, &good);
    assert_eq!(partial.plan.trajectory, full.trajectory);
}

/// What a plan says would make it faster saves more time than the other limit of the pen.
#[test]
fn what_is_said_to_be_faster_is() {
    let duration_s = |scene: &Scene| {
        let plan = draw(scene, &scene.rest_rad, &SilentObserver);
        plan.unwrap().report.duration_s
    };
    let mut seen = Vec::new();
    for scene in shipped_scenes() {
        let report = draw(&scene, &scene.rest_rad, &SilentObserver)
            .unwrap()
            .report;
        let Some(slowest) = report.slowest_part() else {
            continue;
        };
        let doubled = |change: fn(&mut Scene)| {
            let mut scene = scene.clone();
            change(&mut scene);
            duration_s(&scene)
        };
        let speed_s = doubled(|scene| {
            scene.limits.draw_mm_s *= 2.0;
            let of_pens = scene
                .pens
                .iter_mut()
                .filter_map(|pen| pen.draw_mm_s.as_mut());
            of_pens.for_each(|mm_s| *mm_s *= 2.0);
        });
        let acceleration_s = doubled(|scene| scene.limits.draw_mm_s2 *= 2.0);
        let (named_s, other_s) = match &slowest {
            SlowestPart::DrawingSpeed => (speed_s, acceleration_s),
            SlowestPart::Corners => (acceleration_s, speed_s),
            SlowestPart::PenUp | SlowestPart::Joint(_) => continue,
        };
        let least_s = report.duration_s.min(other_s);
        assert!(
            named_s < least_s,
            "{}: {slowest}: {named_s} s, {other_s} s",
            scene.name
        );
        seen.push(slowest);
    }
    assert!(seen.contains(&SlowestPart::DrawingSpeed) && seen.contains(&SlowestPart::Corners));
}

/// The target is 1.4 times the bound that no plan can beat.
#[test]
fn shipped_designs_are_near_the_bound_of_the_time_with_the_pen_up() {
    for scene in shipped_scenes() {
        let report = draw(&scene, &scene.rest_rad, &SilentObserver)
            .unwrap()
            .report;
        let (spent_s, bound_s) = (report.pen_up_s, report.pen_up_bound_s);
        assert!(
            bound_s <= spent_s && spent_s <= 1.4 * bound_s,
            "{}: {spent_s} s, at least {bound_s} s",
            scene.name
        );
        let drawn_s: f64 = report.strokes.iter().map(|stroke| stroke.duration_s).sum();
        let expected_s = report.duration_s - report.approach_s - drawn_s;
        assert!(
            (spent_s - expected_s).abs() < 0.011,
            "{}: {spent_s} {expected_s}",
            scene.name
        );
    }
}

/// Returns the least time of a motion with the pen up, by the profiles that motions are planned
/// with.
fn bound_s(scene: &Scene, plan: &Plan, samples: std::ops::Range<usize>, rises: f64) -> f64 {
    let limits = &scene.arm.limits;
    let ends = [samples.start - 1, samples.end - 1].map(|n| plan.trajectory.samples[n]);
    let profile_s = |length: f64, [speed, acceleration, jerk]: [f64; 3]| {
        let limits = ProfileLimits {
            speed,
            acceleration,
            jerk,
        };
        ScalarProfile::new(length, limits).map_or(0.0, |profile| profile.duration_s())
    };
    let joints_s = (0..scene.arm.dof()).map(|joint| {
        let limits = [
            &limits.cruise_rad_s(),
            &limits.acceleration_rad_s2,
            &limits.jerk_rad_s3,
        ];
        profile_s(
            (ends[1][joint] - ends[0][joint]).abs(),
            limits.map(|limit| limit[joint]),
        )
    });
    let [a, b] = ends.map(|q| scene.arm.chain.tip(&q, &tip(scene, 0)).0);
    let limits = ProfileLimits {
        speed: 0.1,
        acceleration: 1.0,
        jerk: 20.0,
    };
    let height_m = (scene.heights.press_mm + scene.heights.lift_least_mm) / 1e3;
    let rise_s = ScalarProfile::to_crest(height_m, limits)
        .unwrap()
        .duration_s();
    let straight_s = profile_s((b - a).norm(), [0.1, 1.0, 20.0]);
    joints_s.fold(straight_s.max(rises * rise_s), f64::max)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_plan_is_faster_than_its_bound(
        from in [20.0..80.0_f64, 20.0..80.0_f64],
        to in [20.0..80.0_f64, 20.0..80.0_f64],
        least_mm in 0.5..8.0_f64,
        six in any::<bool>(),
    ) {
        let mut scene = if six { widowx() } else { so101() };
        scene.heights.lift_least_mm = least_mm;
        let strokes = [
            stroke(&[[from[0] - 5.0, from[1]], from]),
            stroke(&[to, [to[0] + 5.0, to[1]]]),
        ];
        let plan = planned(&scene, &strokes);
        prop_assume!(plan.report.stroke_count == 2);
        let motions = plan.trajectory.spans.iter().filter(|span| span.kind != SpanKind::Draw);
        let motions: Vec<_> = motions.collect();
        let (first, last) = (motions[1], motions[motions.len() - 1]);
        prop_assert_eq!((first.kind, last.kind), (SpanKind::Lower, SpanKind::Lift));
        let (_, hop) = hops(&plan).remove(0);
        let expected_s = bound_s(&scene, &plan, first.first..first.end, 1.0)
            + bound_s(&scene, &plan, hop, 2.0)
            + bound_s(&scene, &plan, last.first..last.end, 1.0);
        let report = &plan.report;
        prop_assert!((report.pen_up_bound_s - expected_s).abs() < 1e-6, "{} {expected_s}", report.pen_up_bound_s);
        prop_assert!(report.pen_up_bound_s <= report.pen_up_s);
    }
}
