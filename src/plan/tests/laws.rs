//! Properties of every plan: its ink is the design's, and what cannot be drawn well is refused.

use super::*;
use crate::cartesian_path::{CartesianSegment, ToolPose};
use crate::follow_path::follow_path;
use crate::time_parameterization::{PacingMode, TimedPath, TipLimits};
use crate::tool_ik::ToolIk;
use crate::trajectory_builder::{SpanLabel, TrajectoryBuilder};
use kin::IkSolution;

fn line() -> impl Strategy<Value = Vec<[f64; 2]>> {
    proptest::collection::vec([15.0..85.0_f64, 15.0..85.0_f64], 2..5)
}

/// Returns whether each cell of one grid has a neighbour in the other: a point that falls on the
/// edge between two cells may fall into either.
fn covers(
    cells: &std::collections::BTreeSet<[i64; 2]>,
    other: &std::collections::BTreeSet<[i64; 2]>,
) -> bool {
    let near = |cell: &[i64; 2]| {
        (-1..=1).any(|dx| (-1..=1).any(|dy| other.contains(&[cell[0] + dx, cell[1] + dy])))
    };
    cells.iter().all(near)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10))]

    #[test]
    fn reversing_and_shuffling_any_strokes_changes_no_ink(
        lines in proptest::collection::vec((line(), any::<bool>()), 1..5),
        first in 0..5_usize,
    ) {
        let scene = so101();
        let given: Vec<SheetStroke> = lines.iter().map(|(points, _)| stroke(points)).collect();
        let mut other = given.clone();
        for (stroke, (_, is_reversed)) in other.iter_mut().zip(&lines) {
            if *is_reversed {
                stroke.points_mm.reverse();
            }
        }
        other.rotate_left(first % lines.len());
        let (a, b) = (ink(&drawn_by(&scene, &given)), ink(&drawn_by(&scene, &other)));
        prop_assert!(covers(&a, &b) && covers(&b, &a));
        let expected = ink(&given);
        prop_assert!(covers(&a, &expected) && covers(&expected, &a));
    }

    #[test]
    fn no_sample_of_many_strokes_exceeds_a_limit(
        lines in proptest::collection::vec(line(), 1..6),
        fast in 5.0..250.0_f64,
        hard in 50.0..4000.0_f64,
    ) {
        let mut scene = so101();
        scene.limits.draw_mm_s = fast;
        scene.limits.travel_mm_s = 250.0;
        scene.limits.draw_mm_s2 = hard;
        let strokes: Vec<SheetStroke> = lines.iter().map(|points| stroke(points)).collect();
        let plan = plan_from_rest(&scene, &strokes, Order::Fastest);
        check(&scene, &scene.rest_rad, &plan.trajectory);
        check_jerks(&scene, &plan.trajectory.samples);
    }
}

/// Checks third differences, with the arm standing still before and after.
fn check_jerks(scene: &Scene, samples: &[JointVector]) {
    let last = samples.len() - 1;
    for n in 0..samples.len() + 2 {
        let at = |back: usize| samples[n.saturating_sub(back).min(last)];
        let (a, b, c, d) = (at(3), at(2), at(1), at(0));
        for (joint, limit) in scene.arm.limits.jerk_rad_s3.iter().enumerate() {
            let third_difference = d[joint] - 3.0 * c[joint] + 3.0 * b[joint] - a[joint];
            let jerk = third_difference.abs() / PERIOD_S.powi(3);
            assert!(
                jerk <= limit * 1.02,
                "{jerk} rad/s³ of joint {joint} at sample {n}"
            );
        }
    }
}

#[test]
fn where_two_paths_meet_their_jerks_do_not_add_up() {
    let scene = so101();
    // Forth and back in one sample each: alone their jerk is 2 steps, the limit; together it was 3.
    let jerk = scene.arm.limits.jerk_rad_s3;
    let step = jerk.map(|_, most| most * PERIOD_S.powi(3) / 2.0);
    let from = scene.ready_rad;
    let there = from.zip(&step, |angle, step| angle + step);
    let label = SpanLabel {
        kind: SpanKind::Travel,
        item: None,
        pen: 0,
    };
    let mut builder = TrajectoryBuilder::new(&scene, &from, &SilentObserver).unwrap();
    for samples in [&[there], &[from], &[there]] {
        builder.append(label, samples).unwrap();
    }
    let (trajectory, _) = builder.finish().unwrap();
    check_jerks(&scene, &trajectory.samples);
    let end = trajectory.spans.last().unwrap().end;
    assert_eq!(end, trajectory.samples.len());
}

/// Half-way up an A4 sheet an SO-101 can no longer hold its pen upright.
#[test]
fn lines_cross_the_border_from_which_on_the_pen_leans() {
    let lines = r#"{"page_mm": [210, 297], "strokes": [
        {"points": [[105, 60], [105, 235]]}, {"points": [[190, 200], [150, 90]]},
        {"points": [[20, 142], [190, 142]]}, {"points": [[20, 150], [150, 130]]}]}"#;
    let file = ("lines.json".to_owned(), lines.as_bytes().to_vec());
    let mut drawing = scene::DesignReplacement::from_files(vec![file]);
    drawing.paper = Some(scene::PaperFormat::A4);
    drawing.placement.fits_page = true;
    let library = scene::SceneLibrary::new(None).with_drawing(drawing);
    let scene = library.scene("default", None).unwrap();
    let plan = draw(&scene, &scene.rest_rad, &SilentObserver).unwrap();
    assert_eq!(plan.report.stroke_count, 4);
}

#[test]
fn a_joint_that_would_jump_is_refused_by_name() {
    let scene = so101();
    let ik = ToolIk::new(&scene, &scene.pens[0]);
    let path = vec![CartesianSegment::Along {
        from_mm: [50.0, 50.0],
        to_mm: [60.0, 50.0],
        height_mm: 0.0,
    }];
    let elsewhere = scene.rest_rad;
    let error = follow_path(&ik, &scene.surface, &path, &elsewhere).unwrap_err();
    let RefusalCause::Jump { by_deg, joint } = error.cause else {
        panic!("{error:?}");
    };
    assert!(
        by_deg > 11.0
            && scene
                .arm
                .file
                .joints
                .iter()
                .any(|listed| listed.name == joint)
    );
}

#[test]
fn a_path_that_bows_between_two_samples_is_slowed() {
    let scene = so101();
    let ik = ToolIk::new(&scene, &scene.pens[0]);
    let run = |turn_rad: f64| {
        let from = scene.ready_rad;
        let to = from.map(|joint, angle| if joint == 0 { angle + turn_rad } else { angle });
        TimedPath {
            points: [from, to].iter().map(|q| ik.point(q)).collect(),
            joints: vec![from, to],
            waypoints: vec![0, 0],
        }
    };
    // Only the bow can exceed these limits.
    let tip_limits = TipLimits {
        speed_m_s: 1e6,
        acceleration_m_s2: 1e9,
        jerk_m_s3: 1e9,
        manner: PacingMode::Soonest,
    };
    let mut unlimited = scene.arm.as_ref().clone();
    for limit in [
        &mut unlimited.limits.velocity_rad_s,
        &mut unlimited.limits.acceleration_rad_s2,
        &mut unlimited.limits.jerk_rad_s3,
    ] {
        limit.iter_mut().for_each(|most| *most = 1e9);
    }
    let ik = ToolIk {
        arm: &unlimited,
        ..ik
    };
    assert!(run(0.03).limit_violations(&ik, tip_limits).is_empty());
    // 0.2 m out, 0.08 rad: 0.2 · 0.08² / 8 = 0.16 mm.
    let worst = run(0.08).limit_violations(&ik, tip_limits)[0].1;
    assert!((1.2..2.2).contains(&worst), "{worst}");
}

fn rolled(radius_mm: f64, lay: Lay) -> Surface {
    Surface::new(&SheetFile {
        correction: None,
        heights: None,
        origin_m: numbers([0.27, 0.05, 0.03]),
        x_axis: numbers([0.0, -1.0, 0.0]),
        y_axis: numbers([1.0, 0.0, 0.0]),
        size_mm: numbers([80.0, 80.0]),
        cylinder_radius_mm: Some(Finite::new(radius_mm).unwrap()),
        lay,
    })
    .unwrap()
}

fn first_refusal(scene: &Scene, points: &[[f64; 2]]) -> PlanRefusal {
    let strokes = [stroke(points)];
    match draw_strokes(
        scene,
        &scene.rest_rad,
        &strokes,
        Order::Fastest,
        &SilentObserver,
    ) {
        Err(PlanError::Refused(refusals)) => refusals[0].clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_design_that_is_stretched_too_much_is_refused_where_it_is() {
    let mut scene = widowx();
    scene.surface = rolled(60.0, Lay::Projected);
    let refusal = first_refusal(&scene, &[[40.0, 40.0], [70.0, 40.0]]);
    let RefusalCause::Stretched {
        by_percent,
        most_percent,
    } = refusal.cause
    else {
        panic!("{refusal}");
    };
    assert!(
        (most_percent - 5.0).abs() < 1e-9 && (14.0..17.0).contains(&by_percent),
        "{refusal}"
    );
    assert!(refusal.at_mm.unwrap()[0] > 69.0);
    scene.surface = rolled(60.0, Lay::Wrapped);
    let strokes = [stroke(&[[40.0, 40.0], [70.0, 40.0]])];
    let plan = plan_from_rest(&scene, &strokes, Order::Fastest);
    assert!(
        plan.report.stretch_max < 1.001,
        "{}",
        plan.report.stretch_max
    );
}

#[test]
fn a_surface_that_turns_too_fast_for_the_pen_is_refused() {
    let mut scene = widowx();
    scene.surface = rolled(60.0, Lay::Wrapped);
    scene.pens[0].turn_rad_mm = 0.01;
    let refusal = first_refusal(&scene, &[[30.0, 40.0], [50.0, 40.0]]);
    let RefusalCause::Turns { turn_deg_mm, .. } = refusal.cause else {
        panic!("{refusal}");
    };
    assert!((turn_deg_mm - (1.0_f64 / 60.0).to_degrees()).abs() < 1e-3);
    // Along the cylinder it does not turn at all.
    let along = [stroke(&[[40.0, 30.0], [40.0, 50.0]])];
    assert!(
        draw_strokes(
            &scene,
            &scene.rest_rad,
            &along,
            Order::Fastest,
            &SilentObserver
        )
        .is_ok()
    );
}

#[test]
fn a_stroke_longer_than_its_ink_is_dipped_for_in_between() {
    let mut scene = so101();
    scene.pens[0].ink = Some(0);
    scene.inks.push(InkCap {
        name: "black".to_owned(),
        rim_m: Point3::new(0.065, -0.175, 0.02),
        depth_m: 0.012,
        dip_every_mm: 50.0,
        wait_s: 0.1,
    });
    let round = [stroke(&circle([50.0, 50.0], 25.0))];
    let plan = plan_from_rest(&scene, &round, Order::Fastest);
    // 157 mm: four parts of 39.
    assert_eq!((plan.report.dips, plan.report.stroke_count), (4, 4));
    let (drawn, expected) = (ink(&plan.strokes), ink(&round));
    assert!(covers(&drawn, &expected) && covers(&expected, &drawn));
    check(&scene, &scene.rest_rad, &plan.trajectory);
}

#[test]
fn a_filled_design_has_lines_as_far_apart_as_the_scene_says() {
    let scene = scene::SceneLibrary::new(None)
        .scene("hatched", None)
        .unwrap();
    let hatch: Vec<_> = scene
        .strokes
        .iter()
        .filter(|s| s.points_mm.len() == 2)
        .collect();
    assert!(hatch.len() > 15, "{}", hatch.len());
    // 30° on the page; distances across that.
    let (sin, cos) = 30.0_f64.to_radians().sin_cos();
    let mut across: Vec<f64> = hatch
        .iter()
        .map(|s| s.points_mm[0][1] * cos - s.points_mm[0][0] * sin)
        .collect();
    across.sort_by(f64::total_cmp);
    for pair in across.windows(2) {
        let distance_mm = pair[1] - pair[0];
        let rows = (distance_mm / 1.5).round();
        assert!((distance_mm - rows * 1.5).abs() < 1e-6, "{distance_mm}");
    }
}

/// Returns the largest ratio to the requested speed while drawing on a sheet this far out, where
/// the arm's own limits do not matter, and the worst condition number. The requested speed falls
/// once that exceeds 17.
fn speed_ratio_and_condition(out_m: f64) -> (f64, f64) {
    let mut scene = widowx();
    scene.surface = sheet([out_m, 0.05, 0.005], [0.0, -1.0, 0.0], [1.0, 0.0, 0.0]);
    let strokes = [stroke(&[[20.0, 20.0], [80.0, 20.0]])];
    let plan = plan_from_rest(&scene, &strokes, Order::Fastest);
    let ik = ToolIk::new(&scene, &scene.pens[0]);
    let samples = &plan.trajectory.samples;
    let (mut ratio, mut worst) = (0.0_f64, 0.0_f64);
    let drawn = plan.trajectory.spans.iter();
    for span in drawn.filter(|span| span.kind == SpanKind::Draw) {
        for pair in samples[span.first..span.end].windows(2) {
            let moved_mm = 1e3 * (ik.point(&pair[1]) - ik.point(&pair[0])).norm();
            let condition = scene.arm.chain.condition(&pair[0], &ik.tip);
            let requested_mm_s = scene.limits.draw_mm_s * (17.0 / condition).min(1.0);
            ratio = ratio.max(moved_mm / PERIOD_S / requested_mm_s);
            worst = worst.max(condition);
        }
    }
    (ratio, worst)
}

#[test]
fn a_line_near_a_singular_pose_is_drawn_slowly() {
    let (ratio, worst) = speed_ratio_and_condition(0.40);
    assert!(
        (0.9..1.0).contains(&ratio) && worst < 10.0,
        "{ratio} {worst}"
    );
    let (ratio, worst) = speed_ratio_and_condition(0.475);
    assert!(
        (0.9..1.05).contains(&ratio) && (20.0..30.0).contains(&worst),
        "{ratio} {worst}"
    );
}

/// Two joints that turn about vertical axes, and two that tilt: the elbow is on one side or the
/// other.
const TWO_ELBOWS: &str = r#"
name = "two elbows"
about = "an arm for a test"
family = "feetech-sts"
baud = 1000000

[[joints]]
name = "shoulder"
origin_m = [0.0, 0.0, 0.2]
rpy_rad = [0.0, 0.0, 0.0]
axis = [0.0, 0.0, 1.0]
lower_rad = -1.25
upper_rad = 0.65
velocity_max_rad_s = 3.0
acceleration_max_rad_s2 = 15.0
servos = [{ id = 1, sign = 1, zero_tick = 2048, dead_band_ticks = 1 }]

[[joints]]
name = "elbow"
origin_m = [0.2, 0.0, 0.0]
rpy_rad = [0.0, 0.0, 0.0]
axis = [0.0, 0.0, 1.0]
lower_rad = -2.0
upper_rad = 2.0
velocity_max_rad_s = 3.0
acceleration_max_rad_s2 = 15.0
servos = [{ id = 2, sign = 1, zero_tick = 2048, dead_band_ticks = 1 }]

[[joints]]
name = "lift"
origin_m = [0.15, 0.0, 0.0]
rpy_rad = [0.0, 0.0, 0.0]
axis = [0.0, 1.0, 0.0]
lower_rad = -0.3
upper_rad = 2.0
velocity_max_rad_s = 3.0
acceleration_max_rad_s2 = 15.0
servos = [{ id = 3, sign = 1, zero_tick = 2048, dead_band_ticks = 1 }]

[[joints]]
name = "wrist"
origin_m = [0.1, 0.0, 0.0]
rpy_rad = [0.0, 0.0, 0.0]
axis = [0.0, 1.0, 0.0]
lower_rad = 0.0
upper_rad = 2.0
velocity_max_rad_s = 3.0
acceleration_max_rad_s2 = 15.0
servos = [{ id = 4, sign = 1, zero_tick = 2048, dead_band_ticks = 1 }]

[tool_mount]
origin_m = [0.06, 0.0, 0.0]
rpy_rad = [0.0, 0.0, 0.0]

[[capsules]]
name = "hand"
joint = "wrist"
from_m = [0.0, 0.0, 0.0]
to_m = [0.05, 0.0, 0.0]
radius_m = 0.01
"#;

/// With the elbow on the side of the ready pose, the arm holds the pen more upright and farther
/// from its limits where the line begins, but meets the shoulder's limit half-way, although it
/// reaches both ends. With the elbow on the other side it draws all of the line.
#[test]
fn the_posture_serves_the_whole_stroke() {
    let right = [0.3, -1.31, 1.29, 0.28];
    let scene = scene(
        TWO_ELBOWS,
        vec![ScenePen {
            cone_rad: 0.05,
            ..pen([1.0, 0.0, 0.0])
        }],
        Surface::new(&SheetFile {
            correction: None,
            heights: None,
            size_mm: numbers([300.0, 400.0]),
            origin_m: numbers([0.1, -0.2, 0.005]),
            x_axis: numbers([1.0, 0.0, 0.0]),
            y_axis: numbers([0.0, 1.0, 0.0]),
            cylinder_radius_mm: None,
            lay: Lay::Wrapped,
        })
        .unwrap(),
        &right,
        &right,
    );
    let (from_mm, to_mm) = ([176.3, 83.2], [147.6, 369.4]);
    let ik = ToolIk::new(&scene, &scene.pens[0]);
    let press_mm = -scene.heights.press_mm;
    let place = ToolPose::over(&scene.surface, from_mm, press_mm);
    let path = vec![CartesianSegment::Along {
        from_mm,
        to_mm,
        height_mm: press_mm,
    }];
    let solutions = ik.solutions(&place, &[scene.ready_rad]).unwrap();
    let upright = solutions.iter().filter(|solution| solution.off_rad < 0.01);
    let can_follow =
        |solution: &&IkSolution| follow_path(&ik, &scene.surface, &path, &solution.q_rad).is_ok();
    let (good, bad): (Vec<&IkSolution>, Vec<&IkSolution>) = upright.partition(can_follow);
    // The posture that is nearest, and preferred where the stroke begins, does not serve the
    // stroke.
    assert_eq!((good.len(), bad.len()), (1, 1), "{good:?} {bad:?}");
    assert!(bad[0].q_rad[1] < 0.0 && good[0].q_rad[1] > 0.0);
    assert_eq!(solutions[0].q_rad, bad[0].q_rad);
    let end = ToolPose::over(&scene.surface, to_mm, press_mm);
    assert!(ik.solve(&end, &bad[0].q_rad).is_ok());

    let strokes = [stroke(&[from_mm, to_mm])];
    let plan = plan_from_rest(&scene, &strokes, Order::AsDrawn);
    let drawn = plan.trajectory.spans.iter();
    for span in drawn.filter(|span| span.kind == SpanKind::Draw) {
        let mut elbow = plan.trajectory.samples[span.first..span.end].iter();
        assert!(elbow.all(|q| q[1] > 0.0));
    }
    check_lines(&scene, &strokes, &plan);
}

/// A strip of a bottle that lies along x in front of a six-joint arm, its crest in the middle.
fn bottle_scene() -> Scene {
    let mut scene = widowx();
    scene.surface = Surface::new(&SheetFile {
        correction: None,
        heights: None,
        origin_m: numbers([0.28, 0.04, 0.03]),
        x_axis: numbers([0.0, -1.0, 0.0]),
        y_axis: numbers([1.0, 0.0, 0.0]),
        size_mm: numbers([80.0, 80.0]),
        cylinder_radius_mm: Some(Finite::new(60.0).unwrap()),
        lay: Lay::Wrapped,
    })
    .unwrap();
    scene
}

#[test]
fn travels_go_over_the_highest_of_what_is_between() {
    let mut scene = bottle_scene();
    // On the other side of the crest, and lower.
    scene.pens[0].ink = Some(0);
    scene.inks.push(InkCap {
        name: "black".to_owned(),
        rim_m: Point3::new(0.32, 0.085, 0.01),
        depth_m: 0.012,
        dip_every_mm: 50.0,
        wait_s: 0.1,
    });
    let strokes = [
        stroke(&[[68.0, 20.0], [68.0, 60.0]]),
        stroke(&[[12.0, 60.0], [12.0, 20.0]]),
    ];
    let plan = plan_from_rest(&scene, &strokes, Order::AsDrawn);
    assert_eq!(plan.report.dips, 2);
    let height_mm = |n: usize| {
        let tip = scene
            .arm
            .chain
            .tip(&plan.trajectory.samples[n], &tip(&scene, 0));
        scene.surface.project(&tip.0).height_mm
    };
    let travels = plan.trajectory.spans.iter();
    let travels: Vec<_> = travels
        .filter(|span| span.kind == SpanKind::Travel)
        .collect();
    assert!(travels.len() >= 3, "{travels:?}");
    for span in travels {
        let least = (span.first..span.end)
            .map(height_mm)
            .fold(f64::INFINITY, f64::min);
        assert!(
            least > scene.heights.lift_mm - 0.1,
            "{least} mm in {span:?}"
        );
    }
}

/// The arm is stretched, and the wrist comes to the end of its range, in four places of this line.
#[test]
fn a_line_is_slow_only_where_a_joint_turns_abruptly() {
    let mut scene = so101();
    scene.surface = sheet(
        [-0.051_17, -0.304_287, 0.004_148],
        [0.658_221, 0.736_208, -0.157_3],
        [-0.724_821, 0.676_207, 0.131_828],
    );
    scene.pens[0].cone_rad = 10_f64.to_radians();
    let corners = [
        [0.0, 0.0],
        [54.66, 0.0],
        [54.66, 44.89],
        [0.0, 44.89],
        [0.0, 0.0],
    ];
    let plan = plan_from_rest(&scene, &[stroke(&corners)], Order::AsDrawn);
    check(&scene, &scene.rest_rad, &plan.trajectory);
    let drawn_s = plan.report.strokes[0].duration_s;
    assert!(drawn_s < 12.0, "{drawn_s} s");
    assert!(
        plan.report.at_speed_share > 0.6,
        "{}",
        plan.report.at_speed_share
    );
}

#[test]
fn the_report_says_what_runs_at_the_requested_speed_and_what_limits() {
    let mut scene = so101();
    let strokes = [stroke(&[[10.0, 10.0], [90.0, 90.0]])];
    let mut report = |speed_mm_s: f64| {
        scene.limits.draw_mm_s = speed_mm_s;
        scene.limits.draw_mm_s2 = 400.0;
        plan_from_rest(&scene, &strokes, Order::AsDrawn).report
    };
    let (slow, fast) = (report(10.0), report(240.0));
    // Of 113 mm, the first and last take at most a millimetre to reach 10 mm/s; 240 mm/s are never
    // reached.
    assert!(slow.at_speed_share > 0.98, "{}", slow.at_speed_share);
    assert!(fast.at_speed_share < 0.2, "{}", fast.at_speed_share);
    assert!(fast.duration_s < slow.duration_s);
    let names: Vec<String> = (0..5).map(|joint| so101().arm.joint_name(joint)).collect();
    for report in [slow, fast] {
        assert!(
            names.contains(&report.limiting_joint),
            "{}",
            report.limiting_joint
        );
        assert!((0.0..=1.001).contains(&report.limiting_ratio));
        assert_eq!(report.limit_note(), None);
    }
}

/// When stretched out, a five-joint arm can only lean its pen further.
#[test]
fn a_stretched_arm_draws_leaning_as_far_as_its_pen_may() {
    for out_m in [0.29, 0.295, 0.30] {
        let mut scene = so101();
        scene.surface = sheet([0.05, -out_m, 0.005], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]);
        for points in [[[60.0, 10.0], [80.0, 10.0]], [[70.0, 0.0], [70.0, 20.0]]] {
            let strokes = [stroke(&points)];
            let plan = plan_from_rest(&scene, &strokes, Order::Fastest);
            let leans_deg = plan.report.tilt_max_deg;
            assert!((5.0..14.0).contains(&leans_deg), "{out_m}: {leans_deg}");
            check(&scene, &scene.rest_rad, &plan.trajectory);
        }
    }
    let mut scene = so101();
    scene.surface = sheet([0.05, -0.35, 0.005], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]);
    let refusal = first_refusal(&scene, &[[60.0, 10.0], [80.0, 10.0]]);
    assert!(
        matches!(refusal.cause, RefusalCause::Tilt { .. }),
        "{refusal}"
    );
}

#[test]
fn where_a_joint_would_have_to_jump_slowing_is_not_tried_in_vain() {
    let mut scene = widowx();
    scene.surface = sheet([0.46, 0.05, 0.005], [0.0, -1.0, 0.0], [1.0, 0.0, 0.0]);
    let refusal = first_refusal(&scene, &[[20.0, 0.0], [80.0, 60.0]]);
    assert!(
        matches!(refusal.cause, RefusalCause::TooFast { ratio } if ratio > 2.0),
        "{refusal}"
    );
}

#[test]
fn a_hand_leans_the_pen_about_as_far_as_it_was_told() {
    let scene = so101();
    let ik = ToolIk::new(&scene, &scene.pens[0]);
    for turn_deg in [0.0_f64, 90.0, 200.0] {
        let lean_rad = [20.0_f64.to_radians(), turn_deg.to_radians()];
        let (q, _) =
            crate::joints_over(&scene, [50.0, 50.0], 0.0, lean_rad, &scene.ready_rad).unwrap();
        let at = scene.surface.at([50.0, 50.0]);
        let pose = ik.tip_pose(&q);
        assert!((pose.point_m - at.point_m).norm() < 1e-5);
        let lean_deg = pose.axis.angle(&-at.hold).to_degrees();
        // Not every lean is within the joints' ranges.
        assert!((lean_deg - 20.0).abs() < 6.0, "{turn_deg}: {lean_deg}");
    }
}
