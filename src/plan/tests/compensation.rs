//! Goals that compensate play, sag and a sheet's correction.

use super::*;
use arm::CompensationFile;
use scene::SheetCorrection;

/// The SO-101 with this measured play and sag, a number for each joint.
fn calibrated(play_deg: [f64; 5], sag_deg_per_n_m: [f64; 5]) -> Scene {
    let mut scene = so101();
    let mut file = scene.arm.file.clone();
    file.compensation = Some(CompensationFile {
        play_deg: numbers(play_deg).to_vec(),
        sag_deg_per_n_m: numbers(sag_deg_per_n_m).to_vec(),
    });
    scene.arm = Arc::new(ArmModel::new(file).unwrap());
    scene
}

fn planned(scene: &Scene) -> Plan {
    plan_from_rest(scene, &drawing(), Order::AsDrawn)
}

/// Returns the largest distance of a drawing tip from its plan if the gears of `arm` follow these
/// goals.
fn largest_deviation_mm(
    arm: &ArmModel,
    scene: &Scene,
    trajectory: &Trajectory,
    goals: &[JointVector],
) -> f64 {
    let mut gears = arm.compensation.as_ref().unwrap().gears();
    let mut max_mm = 0.0_f64;
    for span in &trajectory.spans {
        let range = span.first..span.end;
        for (goal, planned) in goals[range.clone()]
            .iter()
            .zip(&trajectory.reached()[range])
        {
            let actual = gears.follow(goal);
            let tip = |q: &JointVector| arm.chain.point(q, &scene.pens[0].tip_m);
            if span.kind == SpanKind::Draw {
                let deviation_m = tip(&actual) - tip(planned);
                max_mm = max_mm.max(deviation_m.norm() * 1e3);
            }
        }
    }
    max_mm
}

#[test]
fn an_uncalibrated_arm_gets_goals_without_leads() {
    let plan = planned(&so101());
    assert!(plan.trajectory.reached.is_empty());
    assert_eq!(plan.report.expected_deviation_mm, None);
}

#[test]
fn gears_as_measured_bring_the_tip_to_its_lines() {
    for (play_deg, sag_deg_per_n_m) in [
        ([1.0, 0.0, 0.0, 0.0, 0.0], [0.0; 5]),
        ([1.0, 0.0, 0.0, 0.6, 1.0], [0.2; 5]),
    ] {
        let scene = calibrated(play_deg, sag_deg_per_n_m);
        let Plan {
            trajectory, report, ..
        } = planned(&scene);
        let as_planned = largest_deviation_mm(&scene.arm, &scene, &trajectory, &trajectory.reached);
        let as_sent = largest_deviation_mm(&scene.arm, &scene, &trajectory, &trajectory.samples);
        assert!(as_planned > 1.0, "{play_deg:?}: {as_planned} mm");
        assert!(as_sent < 0.6, "{play_deg:?}: {as_sent} mm");
        let expected = report.expected_deviation_mm.unwrap();
        assert!(
            (expected - as_sent).abs() < 1e-6,
            "{expected} and {as_sent}"
        );
    }
}

#[test]
fn play_that_would_press_the_tip_deeper_is_not_compensated() {
    // The shoulder's play lifts and lowers the tip; the pan's does not.
    let scene = calibrated([1.0, 1.0, 0.0, 0.0, 0.0], [0.0; 5]);
    let trajectory = planned(&scene).trajectory;
    let leads = trajectory.samples.iter().zip(&trajectory.reached);
    let largest = leads.fold([0.0_f64; 2], |[pan, lift], (goal, expected)| {
        [
            pan.max((goal[0] - expected[0]).abs()),
            lift.max((goal[1] - expected[1]).abs()),
        ]
    });
    assert!(
        (largest[0].to_degrees() - 0.5).abs() < 1e-6 && largest[1] < 1e-9,
        "{largest:?}"
    );
}

#[test]
fn goals_lead_by_nothing_where_the_arm_rests() {
    let scene = calibrated([1.0, 0.5, 0.0, 0.0, 2.0], [0.2; 5]);
    let Trajectory {
        samples, reached, ..
    } = planned(&scene).trajectory;
    assert_eq!(samples.len(), reached.len());
    assert_eq!((samples[0], reached[0]), (scene.rest_rad, scene.rest_rad));
    assert_eq!(samples.last(), reached.last());
}

#[test]
fn a_drawing_that_is_corrected_is_the_same_drawing() {
    let uncorrected = planned(&so101());
    let corrected = planned(&calibrated([1.0; 5], [0.1; 5]));
    assert_eq!(uncorrected.strokes, corrected.strokes);
    let length_mm = |plan: &Plan| plan.report.pen_down_mm;
    assert!((length_mm(&uncorrected) - length_mm(&corrected)).abs() < 1e-6);
    assert_ne!(uncorrected.hash, corrected.hash);
}

#[test]
fn a_sheets_correction_moves_the_goals_of_a_drawing_tip_by_as_much() {
    let mut scene = so101();
    let coefficients_mm = [
        [0.3, -0.2, 0.1, 0.1, 0.0, -0.1],
        [-0.2, 0.1, 0.3, 0.0, 0.1, 0.0],
    ];
    let correction = SheetCorrection::new(coefficients_mm, scene.surface.size_mm()).unwrap();
    scene.correction = Some(correction);
    let trajectory = planned(&scene).trajectory;
    let mut sample_count = 0;
    for span in trajectory
        .spans
        .iter()
        .filter(|span| span.kind == SpanKind::Draw)
    {
        for sample in span.first..span.end {
            let tip = |q: &JointVector| {
                let tip_m = scene.arm.chain.point(q, &scene.pens[0].tip_m);
                scene.surface.project(&tip_m)
            };
            let (goal, expected) = (
                tip(&trajectory.samples[sample]),
                tip(&trajectory.reached[sample]),
            );
            let [dx, dy] = correction.at(expected.at_mm);
            assert!((goal.at_mm[0] - expected.at_mm[0] - dx).abs() < 0.02);
            assert!((goal.at_mm[1] - expected.at_mm[1] - dy).abs() < 0.02);
            assert!((goal.height_mm - expected.height_mm).abs() < 0.02);
            sample_count += 1;
        }
    }
    assert!(sample_count > 500);
}

/// A person approves a drawing by its hash, wherever the arm stands, though its goals lead the other way at first.
#[test]
fn the_hash_of_a_drawing_does_not_depend_on_where_the_arm_comes_from() {
    let scene = calibrated([1.0, 0.0, 0.0, 0.0, 1.0], [0.1; 5]);
    let from = |pan_rad: f64, roll_rad: f64| {
        let start = scene.rest_rad.map(|joint, q| match joint {
            0 => q + pan_rad,
            4 => q + roll_rad,
            _ => q,
        });
        let order = Order::AsDrawn;
        draw_strokes(&scene, &start, &drawing(), order, &SilentObserver)
            .unwrap()
            .hash
    };
    let hash = from(0.0, 0.0);
    // To either side, and by a count of its encoder.
    for (pan_rad, roll_rad) in [(0.6, 0.0), (-0.6, 0.0), (0.0, 0.0016), (0.0, -0.0016)] {
        assert_eq!(from(pan_rad, roll_rad), hash, "{pan_rad} {roll_rad}");
    }
}
