//! Tests of whole plans: limits, geometry, determinism, refusals.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use std::sync::Arc;

use nalgebra::{Point3, Unit, Vector3};
use proptest::prelude::*;

use super::*;
use arm::ArmModel;
use base::units::{Finite, JointVector};
use kin::ToolTip;
use scene::file::{Lay, SheetFile};
use scene::{
    AxisAlignedBox, InkCap, Order, Revision, Scene, SceneLimits, ScenePen, SheetHeights,
    SheetStroke, Surface, ToolKind,
};

mod compensation;
mod hand_changed_pens;
mod hops;
mod laws;
mod together;

fn numbers<const N: usize>(values: [f64; N]) -> [Finite; N] {
    values.map(|v| Finite::new(v).unwrap())
}

fn pen(axis: [f64; 3]) -> ScenePen {
    let axis = Unit::new_normalize(Vector3::from(axis));
    ScenePen {
        name: "pen".to_owned(),
        kind: ToolKind::Pen,
        tip_m: Point3::from(axis.into_inner() * 0.04),
        axis,
        cone_rad: 0.3,
        width_mm: 0.5,
        turn_rad_mm: 0.1,
        colour: [0, 0, 0],
        ink: None,
        press_mm: None,
        draw_mm_s: None,
    }
}

fn sheet(origin: [f64; 3], x: [f64; 3], y: [f64; 3]) -> Surface {
    Surface::new(&SheetFile {
        correction: None,
        heights: None,
        origin_m: numbers(origin),
        x_axis: numbers(x),
        y_axis: numbers(y),
        size_mm: numbers([100.0, 100.0]),
        cylinder_radius_mm: None,
        lay: Lay::Wrapped,
    })
    .unwrap()
}

fn scene(arm: &str, pens: Vec<ScenePen>, surface: Surface, ready: &[f64], rest: &[f64]) -> Scene {
    let arm = Arc::new(ArmModel::new(toml::from_str(arm).unwrap()).unwrap());
    let ready_rad = JointVector::from_slice(ready);
    Scene {
        bent: arm.chain.with_bent_elbows(&ready_rad),
        correction: None,
        fiducials: None,
        name: "test".to_owned(),
        overlay: None,
        drawing: None,
        canvas: None,
        about: String::new(),
        arm,
        strokes: Vec::new(),
        order: Order::Fastest,
        join_mm: 0.1,
        page: scene::ScenePage::default(),
        notes: Vec::new(),
        surface,
        pens,
        holder: scene::PenHolder::AllMounted,
        inks: Vec::new(),
        calibrator_m: None,
        rest_rad: JointVector::from_slice(rest),
        ready_rad,
        heights: SheetHeights {
            lift_mm: 8.0,
            lift_least_mm: 2.0,
            press_mm: 1.0,
            depth_trim_mm: 0.0,
            hover_mm: 5.0,
        },
        limits: SceneLimits {
            draw_mm_s: 40.0,
            travel_mm_s: 100.0,
            draw_mm_s2: 400.0,
            stretch_max: 1.05,
            workspace: AxisAlignedBox {
                min_m: Point3::new(-1.0, -1.0, -1.0),
                max_m: Point3::new(1.0, 1.0, 1.0),
            },
        },
        keep_outs: Vec::new(),
        arm_name: None,
        beside: Vec::new(),
        attended: false,
        revision: Revision::from_bytes([7; 32]),
        setting: Revision::from_bytes([7; 32]),
    }
}

fn so101() -> Scene {
    scene(
        include_str!("../../scenes/arms/so101.toml"),
        vec![pen([0.0, -0.965_926, -0.258_819])],
        sheet([0.05, -0.125, 0.005], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]),
        &[-0.0019, -0.2066, 0.0519, 1.4637, 0.0487],
        &[0.0, -1.5, 1.2, 0.8, 0.0],
    )
}

fn widowx() -> Scene {
    scene(
        include_str!("../../scenes/arms/widowx250s.toml"),
        vec![pen([1.0, 0.0, 0.0])],
        sheet([0.27, 0.05, 0.005], [0.0, -1.0, 0.0], [1.0, 0.0, 0.0]),
        &[0.0, 0.2329, 0.3112, 0.0, 1.0267, 0.0],
        &[0.0, -1.6, 1.4, 0.0, 0.5, 0.0],
    )
}

fn stroke(points_mm: &[[f64; 2]]) -> SheetStroke {
    SheetStroke {
        points_mm: points_mm.to_vec(),
        pen: 0,
        source: "line 1".to_owned(),
        pause: None,
    }
}

fn circle(centre: [f64; 2], radius: f64) -> Vec<[f64; 2]> {
    (0..=72)
        .map(|i| {
            let angle = f64::from(i) * std::f64::consts::TAU / 72.0;
            [
                centre[0] + radius * angle.cos(),
                centre[1] + radius * angle.sin(),
            ]
        })
        .collect()
}

fn drawing() -> Vec<SheetStroke> {
    vec![
        stroke(&circle([50.0, 50.0], 30.0)),
        stroke(&[
            [20.0, 20.0],
            [80.0, 20.0],
            [80.0, 80.0],
            [20.0, 80.0],
            [20.0, 20.0],
        ]),
        stroke(&[[10.0, 10.0], [90.0, 90.0]]),
        stroke(&[
            [30.0, 50.0],
            [40.0, 60.0],
            [50.0, 50.0],
            [60.0, 60.0],
            [70.0, 50.0],
        ]),
        stroke(&[[50.0, 50.0], [50.5, 50.0]]),
    ]
}

fn tip(scene: &Scene, pen: usize) -> ToolTip {
    ToolTip {
        point_m: scene.pens[pen].tip_m,
        axis: scene.pens[pen].axis,
    }
}

fn plan_from_rest(scene: &Scene, strokes: &[SheetStroke], stroke_order: Order) -> Plan {
    draw_strokes(
        scene,
        &scene.rest_rad,
        strokes,
        stroke_order,
        &SilentObserver,
    )
    .unwrap()
}

/// Returns the distance of a point from a polyline.
fn distance_mm(points: &[[f64; 2]], [x, y]: [f64; 2]) -> f64 {
    points
        .windows(2)
        .map(|pair| {
            let ([ax, ay], [bx, by]) = (pair[0], pair[1]);
            let (dx, dy) = (bx - ax, by - ay);
            let along = ((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy).max(1e-12);
            let t = along.clamp(0.0, 1.0);
            (x - ax - t * dx).hypot(y - ay - t * dy)
        })
        .fold(f64::INFINITY, f64::min)
}

/// Checks the properties that every plan must have.
fn check(scene: &Scene, start: &JointVector, trajectory: &Trajectory) {
    let samples = &trajectory.samples;
    assert_eq!(samples[0], *start);
    let mut next = 0;
    for span in &trajectory.spans {
        assert_eq!(span.first, next);
        assert!(span.end > span.first);
        next = span.end;
    }
    assert_eq!(next, samples.len());
    check_joints(scene, samples);
    check_tips(scene, trajectory);
}

fn check_joints(scene: &Scene, samples: &[JointVector]) {
    let limits = &scene.arm.limits;
    let at = |n: usize| samples[n.min(samples.len() - 1)];
    for n in 0..samples.len() {
        let (a, b, c) = (at(n.saturating_sub(1)), at(n), at(n + 1));
        for joint in 0..b.len() {
            assert!(b[joint] >= limits.lower_rad[joint] - 1e-9);
            assert!(b[joint] <= limits.upper_rad[joint] + 1e-9);
            let speed = (c[joint] - b[joint]) / PERIOD_S;
            assert!(speed.abs() <= limits.velocity_rad_s[joint] * 1.000_01);
            let change = (c[joint] - 2.0 * b[joint] + a[joint]) / PERIOD_S / PERIOD_S;
            let limit = limits.acceleration_rad_s2[joint];
            assert!(
                change.abs() <= limit * 1.001,
                "{change} rad/s² at sample {n}, joint {joint}"
            );
        }
    }
}

fn check_tips(scene: &Scene, trajectory: &Trajectory) {
    for span in &trajectory.spans {
        let at = |n: usize| {
            scene
                .arm
                .chain
                .tip(&trajectory.samples[n], &tip(scene, span.pen))
                .0
        };
        for n in span.first.max(1)..span.end {
            let speed_mm_s = (at(n) - at(n - 1)).norm() * 1e3 / PERIOD_S;
            let limit = match span.kind {
                SpanKind::Draw => scene.limits.draw_mm_s,
                _ => scene.limits.travel_mm_s,
            };
            assert!(
                speed_mm_s <= limit * 1.000_1,
                "{speed_mm_s} mm/s in {span:?}"
            );
            let height_mm = scene.surface.project(&at(n)).height_mm;
            // The tip follows a mesh's smooth shape, and heights are over its triangles: at most 0.035 mm apart here.
            let slack_mm = if scene.name == "bumpy" { 0.04 } else { 1e-3 };
            assert!(height_mm >= -scene.heights.press_mm - slack_mm);
        }
    }
}

/// Every drawn sample is near its stroke, and the stroke's points are near what is drawn.
fn check_lines(scene: &Scene, strokes: &[SheetStroke], plan: &Plan) {
    for span in plan
        .trajectory
        .spans
        .iter()
        .filter(|span| span.kind == SpanKind::Draw)
    {
        let item = span.item.unwrap();
        let points = &plan.strokes[item].points_mm;
        for at in points {
            let parts = plan.report.strokes[item].parts.iter();
            let nearest = parts.map(|part| distance_mm(&strokes[*part].points_mm, *at));
            assert!(nearest.fold(f64::INFINITY, f64::min) <= 0.005);
        }
        let tip = tip(scene, span.pen);
        let drawn: Vec<[f64; 2]> = plan.trajectory.samples[span.first - 1..span.end]
            .iter()
            .map(|q| scene.surface.project(&scene.arm.chain.tip(q, &tip).0).at_mm)
            .collect();
        for at in &drawn {
            assert!(
                distance_mm(points, *at) <= 0.02,
                "{} mm off at {at:?}",
                distance_mm(points, *at)
            );
        }
        for at in points {
            assert!(
                distance_mm(&drawn, *at) <= 0.03,
                "{at:?} is {} mm off",
                distance_mm(&drawn, *at)
            );
        }
    }
}

#[test]
fn draws_within_every_limit_on_five_joints() {
    let scene = so101();
    let plan = plan_from_rest(&scene, &drawing(), Order::Fastest);
    check(&scene, &scene.rest_rad, &plan.trajectory);
    check_lines(&scene, &drawing(), &plan);
    assert!((4..=5).contains(&plan.report.stroke_count));
    assert!(plan.report.tilt_max_deg < 0.1);
}

#[test]
fn draws_within_every_limit_on_six_joints() {
    let scene = widowx();
    let plan = plan_from_rest(&scene, &drawing(), Order::AsDrawn);
    check(&scene, &scene.rest_rad, &plan.trajectory);
    check_lines(&scene, &drawing(), &plan);
    assert!(
        plan.report
            .strokes
            .iter()
            .enumerate()
            .all(|(i, s)| s.stroke == i && !s.reversed)
    );
}

#[test]
fn the_same_gives_the_same_bits_and_a_hash_without_the_approach() {
    let scene = so101();
    let plan = |start: &JointVector| {
        draw_strokes(&scene, start, &drawing(), Order::Fastest, &SilentObserver).unwrap()
    };
    assert_eq!(plan(&scene.rest_rad), plan(&scene.rest_rad));
    let other = plan(&scene.ready_rad);
    assert_eq!(other.hash, plan(&scene.rest_rad).hash);
    assert_ne!(
        other.trajectory.samples.len(),
        plan(&scene.rest_rad).trajectory.samples.len()
    );
}

#[test]
fn every_stroke_beyond_reach_is_named_with_the_distance() {
    let mut scene = so101();
    scene.surface = sheet([0.05, -0.475, 0.005], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]);
    let strokes = [
        stroke(&[[10.0, 90.0], [90.0, 90.0]]),
        stroke(&[[10.0, 95.0], [90.0, 95.0]]),
    ];
    let Err(PlanError::Refused(refusals)) = draw_strokes(
        &scene,
        &scene.rest_rad,
        &strokes,
        Order::AsDrawn,
        &SilentObserver,
    ) else {
        panic!("drew beyond reach");
    };
    assert_eq!(refusals.len(), 2);
    for (index, refusal) in refusals.iter().enumerate() {
        assert_eq!(refusal.stroke, Some(index));
        let RefusalCause::OutOfReach { by_mm } = refusal.cause else {
            panic!("{refusal}");
        };
        assert!(by_mm > 20.0, "{refusal}");
        assert!(refusal.at_mm.is_some());
    }
}

#[test]
fn a_pen_with_ink_is_dipped_first_and_again_after_its_length() {
    let mut scene = so101();
    scene.pens[0].ink = Some(0);
    scene.inks.push(InkCap {
        name: "black".to_owned(),
        rim_m: Point3::new(0.065, -0.175, 0.02),
        depth_m: 0.012,
        dip_every_mm: 100.0,
        wait_s: 0.2,
    });
    let strokes: Vec<_> = (0..4)
        .map(|i| {
            stroke(&[
                [20.0, 20.0 + 5.0 * f64::from(i)],
                [80.0, 20.0 + 5.0 * f64::from(i)],
            ])
        })
        .collect();
    let plan = plan_from_rest(&scene, &strokes, Order::AsDrawn);
    assert_eq!(plan.report.dips, 4);
    let dip = plan
        .trajectory
        .spans
        .iter()
        .find(|s| s.kind == SpanKind::Dip)
        .unwrap();
    let lowest = plan.trajectory.samples[dip.first..dip.end]
        .iter()
        .map(|q| scene.arm.chain.tip(q, &tip(&scene, 0)).0.z)
        .fold(f64::INFINITY, f64::min);
    assert!((lowest - 0.016).abs() < 1e-5, "{lowest}");
    check_joints(&scene, &plan.trajectory.samples);
}

#[test]
fn two_pens_take_turns() {
    let mut scene = so101();
    scene.pens = vec![
        pen([0.422_618, -0.906_308, 0.0]),
        pen([-0.422_618, -0.906_308, 0.0]),
    ];
    scene.surface = sheet([0.05, -0.145, 0.005], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]);
    let mut strokes = drawing();
    strokes[1].pen = 1;
    strokes[3].pen = 1;
    let plan = plan_from_rest(&scene, &strokes, Order::Fastest);
    check(&scene, &scene.rest_rad, &plan.trajectory);
    check_lines(&scene, &strokes, &plan);
    assert!(plan.report.tilt_max_deg < 0.1);
}

#[test]
fn visits_stand_still_at_their_points() {
    let scene = so101();
    let point_m = Point3::new(0.01, -0.19, 0.03);
    let points = [
        VisitPoint {
            name: "corner".to_owned(),
            target: VisitTarget::Sheet {
                at_mm: [10.0, 10.0],
                height_mm: 5.0,
            },
            pen: 0,
            dwell_s: 0.5,
        },
        VisitPoint {
            name: "calibrator".to_owned(),
            target: VisitTarget::Point { point_m },
            pen: 0,
            dwell_s: 0.3,
        },
    ];
    let plan = visit(&scene, &scene.rest_rad, &points, &SilentObserver).unwrap();
    check(&scene, &scene.rest_rad, &plan.trajectory);
    let dwells: Vec<_> = plan
        .trajectory
        .spans
        .iter()
        .filter(|s| s.kind == SpanKind::Dwell)
        .collect();
    assert_eq!(dwells.len(), 2);
    assert_eq!(
        (dwells[0].end - dwells[0].first, dwells[1].item),
        (50, Some(1))
    );
    let at = |span: &TrajectorySpan| {
        scene
            .arm
            .chain
            .tip(&plan.trajectory.samples[span.first], &tip(&scene, 0))
            .0
    };
    assert!((at(dwells[1]) - point_m).norm() < 1e-6);
    let projection = scene.surface.project(&at(dwells[0]));
    assert!((projection.height_mm - 5.0).abs() < 1e-3 && (projection.at_mm[0] - 10.0).abs() < 1e-3);
}

#[test]
fn going_to_a_pose_lifts_a_low_tip_first() {
    let scene = so101();
    let strokes = [stroke(&[[30.0, 30.0], [70.0, 70.0]])];
    let drawn = plan_from_rest(&scene, &strokes, Order::Fastest);
    let span = drawn
        .trajectory
        .spans
        .iter()
        .find(|s| s.kind == SpanKind::Draw)
        .unwrap();
    let down = drawn.trajectory.samples[(span.first + span.end) / 2];
    let plan = go_to(
        &scene,
        &down,
        &[scene.ready_rad, scene.rest_rad],
        &SilentObserver,
    )
    .unwrap();
    check(&scene, &down, &plan.trajectory);
    assert_eq!(plan.trajectory.spans[0].kind, SpanKind::Lift);
    assert_eq!(*plan.trajectory.samples.last().unwrap(), scene.rest_rad);
    let lifted = plan.trajectory.samples[plan.trajectory.spans[0].end - 1];
    let place = scene
        .surface
        .project(&scene.arm.chain.tip(&lifted, &tip(&scene, 0)).0);
    assert!((place.height_mm - 8.0).abs() < 0.01);
    assert!((place.at_mm[0] - place.at_mm[1]).abs() < 0.01);
}

/// Returns the inked cells of a half-millimetre grid, coarse enough to ignore where points fall.
fn ink(strokes: &[SheetStroke]) -> std::collections::BTreeSet<[i64; 2]> {
    let mut cells = std::collections::BTreeSet::new();
    for pair in strokes
        .iter()
        .flat_map(|stroke| stroke.points_mm.windows(2))
    {
        for step in 0..=200 {
            let t = f64::from(step) / 200.0;
            let at = |axis: usize| pair[0][axis] + (pair[1][axis] - pair[0][axis]) * t;
            #[allow(clippy::cast_possible_truncation, reason = "a small grid")]
            cells.insert([0, 1].map(|axis| (at(axis) * 2.0).round() as i64));
        }
    }
    cells
}

fn drawn_by(scene: &Scene, strokes: &[SheetStroke]) -> Vec<SheetStroke> {
    plan_from_rest(scene, strokes, Order::Fastest).strokes
}

#[test]
fn reversing_or_shuffling_strokes_changes_no_ink() {
    let scene = so101();
    let given = drawing();
    let mut other = drawing();
    other.rotate_left(2);
    for stroke in &mut other {
        stroke.points_mm.reverse();
    }
    assert_eq!(
        ink(&drawn_by(&scene, &given)),
        ink(&drawn_by(&scene, &other))
    );
    assert_eq!(ink(&drawn_by(&scene, &given)), ink(&given));
}

#[test]
fn drawing_begins_and_ends_without_a_jerk() {
    let scene = so101();
    let line = [stroke(&[[20.0, 50.0], [80.0, 50.0]])];
    let plan = plan_from_rest(&scene, &line, Order::Fastest);
    let span = plan
        .trajectory
        .spans
        .iter()
        .find(|s| s.kind == SpanKind::Draw)
        .unwrap();
    let at = |n: usize| {
        scene
            .arm
            .chain
            .tip(&plan.trajectory.samples[n], &tip(&scene, 0))
            .0
    };
    for n in [span.first, span.first + 1, span.end - 2, span.end - 1] {
        let change = (at(n + 1) - at(n)) - (at(n) - at(n - 1));
        let acceleration = change.norm() * 1e3 / PERIOD_S / PERIOD_S;
        assert!(
            acceleration < 0.65 * scene.limits.draw_mm_s2,
            "{acceleration} mm/s² at {n}"
        );
    }
}

#[test]
fn a_cylinder_is_drawn_on_with_the_pen_upright_on_it() {
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
    let strokes = [
        stroke(&[[15.0, 20.0], [65.0, 60.0]]),
        stroke(&circle([40.0, 40.0], 25.0)),
    ];
    let plan = plan_from_rest(&scene, &strokes, Order::Fastest);
    check(&scene, &scene.rest_rad, &plan.trajectory);
    check_lines(&scene, &strokes, &plan);
    assert!(
        plan.report.tilt_max_deg < 0.1,
        "{}",
        plan.report.tilt_max_deg
    );
}

#[test]
fn a_needle_is_slow_near_the_surface() {
    let mut scene = so101();
    scene.pens[0].kind = ToolKind::Needle;
    let line = [
        stroke(&[[20.0, 50.0], [80.0, 50.0]]),
        stroke(&[[20.0, 60.0], [80.0, 60.0]]),
    ];
    let plan = plan_from_rest(&scene, &line, Order::Fastest);
    let at = |n: usize| {
        scene
            .arm
            .chain
            .tip(&plan.trajectory.samples[n], &tip(&scene, 0))
            .0
    };
    for n in 1..plan.trajectory.samples.len() {
        if scene.surface.project(&at(n)).height_mm < 20.0 {
            let speed_mm_s = (at(n) - at(n - 1)).norm() * 1e3 / PERIOD_S;
            assert!(
                speed_mm_s <= 25.0 * 1.001,
                "{speed_mm_s} mm/s at sample {n}"
            );
        }
    }
}

struct CancellingObserver;

impl PlanObserver for CancellingObserver {
    fn progress(&self, _: usize, _: usize) {}
    fn cancelled(&self) -> bool {
        true
    }
}

#[test]
fn a_cancelled_plan_is_not_made() {
    let scene = so101();
    let plan = draw_strokes(
        &scene,
        &scene.rest_rad,
        &drawing(),
        Order::Fastest,
        &CancellingObserver,
    );
    assert_eq!(plan, Err(PlanError::Cancelled));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn any_polyline_on_the_sheet_is_drawn_within_limits(
        points in proptest::collection::vec([5.0..95.0_f64, 5.0..95.0_f64], 2..8),
        six in proptest::bool::ANY,
    ) {
        let scene = if six { widowx() } else { so101() };
        let strokes = [stroke(&points)];
        let plan = plan_from_rest(&scene, &strokes, Order::Fastest);
        check(&scene, &scene.rest_rad, &plan.trajectory);
        check_lines(&scene, &strokes, &plan);
    }
}

#[test]
fn a_sheet_that_lies_well_needs_no_move_and_another_gets_a_better_place() {
    let mut scene = so101();
    let good = reach(&scene, 0, &SilentObserver).unwrap();
    assert!(
        good.shares.iter().all(|(_, share)| *share > 0.999),
        "{:?}",
        good.shares
    );
    scene.surface = sheet([0.05, -0.325, 0.005], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]);
    let far = reach(&scene, 0, &SilentObserver).unwrap();
    assert!(far.shares[3].1 < 0.5, "{:?}", far.shares);
    let better = far.suggestion.unwrap();
    assert!(better.share > 0.999 && better.tilt_max_deg < 1.0);
    assert!((-0.22..-0.12).contains(&better.origin_m[1]), "{better:?}");
}

/// A strip of a bottle, at an origin and upright in front of the arm.
fn strip(origin_m: [f64; 3]) -> Surface {
    Surface::new(&SheetFile {
        correction: None,
        heights: None,
        origin_m: numbers(origin_m),
        x_axis: numbers([-1.0, 0.0, 0.0]),
        y_axis: numbers([0.0, -1.0, 0.0]),
        size_mm: numbers([40.0, 70.0]),
        cylinder_radius_mm: Some(Finite::new(120.0).unwrap()),
        lay: Lay::Wrapped,
    })
    .unwrap()
}

#[test]
fn a_rolled_sheet_gets_a_better_place() {
    let mut scene = so101();
    // The middle of its top is where the flat sheet lies well.
    scene.surface = strip([0.0408, -0.1881, 0.02]);
    let good = reach(&scene, 0, &SilentObserver).unwrap();
    let share = |map: &ReachMap| map.shares.last().unwrap().1;
    assert!(share(&good) > 0.999, "{:?}", good.shares);
    // The shape is mapped as far as it faces up: a quarter turn either way.
    let columns = good.size[0];
    let mapped = (0..good.spots.len()).filter(|index| good.spots[*index].tilt_deg.is_some());
    let quarter_mm = 120.0 * std::f64::consts::FRAC_PI_2;
    for index in mapped {
        let [x, _] = good.point_mm(index % columns, index / columns);
        assert!((x - 20.0).abs() <= quarter_mm + 1e-6, "{x}");
    }
    scene.surface = strip([0.0408, -0.3881, 0.02]);
    let far = reach(&scene, 0, &SilentObserver).unwrap();
    let better = far.suggestion.clone().unwrap();
    assert!(share(&far) < 0.7 && better.share > 0.999, "{far:?}");
    // There the sheet is as good as predicted.
    scene.surface = strip(better.origin_m);
    let moved = reach(&scene, 0, &SilentObserver).unwrap();
    assert!(share(&moved) > 0.999, "{:?}", moved.shares);
    assert!(
        moved
            .suggestion
            .is_none_or(|again| again.share <= better.share)
    );
}

#[test]
fn every_shipped_scene_can_be_drawn_and_the_default_one_quickly() {
    let library = scene::SceneLibrary::new(None);
    for name in library.scenes() {
        let mut scene = library.scene(&name, None).unwrap();
        if scene.canvas.is_some() {
            let hello = scene::DesignReplacement::from_text("hello");
            let canvases = library.with_design_of_caller(hello);
            scene = canvases.scene(&name, None).unwrap();
        }
        let plan = draw(&scene, &scene.rest_rad, &SilentObserver).unwrap();
        check_joints(&scene, &plan.trajectory.samples);
        check_tips(&scene, &plan.trajectory);
        // The bottle is round, and an arm of three joints cannot hold its pen upright.
        let is_tilted = name == "bottle" || scene.arm.dof() < 4;
        let tilt_deg = if is_tilted { 15.0 } else { 1.0 };
        assert!(plan.report.tilt_max_deg < tilt_deg, "{name}");
        assert!(name != "default" || plan.report.duration_s <= 30.0);
    }
}

proptest! {
    /// However short the motion is: one whose joints never reach their full speed is slowed all the
    /// same.
    #[test]
    fn no_swing_is_faster_than_the_tip_may_be(
        direction in proptest::collection::vec(-1.0..1.0_f64, 6),
        far_rad in 0.01..0.5_f64,
    ) {
        for scene in [so101(), widowx()] {
            let pen = &scene.pens[0];
            let tip = ToolTip {
                point_m: pen.tip_m,
                axis: pen.axis,
            };
            let place = |q: &JointVector| scene.arm.chain.frames(q).tool * tip.point_m;
            let limit_m_s = scene.limits.travel_mm_s / 1e3;
            let from = scene.ready_rad;
            let to = from.map(|joint, q| q + far_rad * direction[joint]);
            let samples = joint_move::plan_joint_move(&scene.arm, &[tip], &from, &to, limit_m_s).unwrap();
            let path = std::iter::once(&from).chain(&samples);
            let steps = path.zip(&samples).map(|(a, b)| (place(b) - place(a)).norm());
            let fastest_m_s = steps.fold(0.0, f64::max) / PERIOD_S;
            prop_assert!(fastest_m_s <= limit_m_s, "{fastest_m_s} m/s");
        }
    }
}

fn refusal_message(planned: Result<Plan, PlanError>) -> String {
    planned.map(|plan| plan.report).unwrap_err().to_string()
}

/// A step of a missing joint turned nothing and still succeeded; a step that was not finite became
/// a tiny one.
#[test]
fn refuses_a_step_of_a_missing_joint_or_without_a_size() {
    let scene = so101();
    let step = |step| refusal_message(jog(&scene, &scene.rest_rad, step, 0, &SilentObserver));
    let message = step(JogIncrement::Joint {
        joint: 5,
        by_rad: 0.01,
    });
    assert!(message.contains("joint 6"), "{message}");
    for by in [f64::NAN, f64::INFINITY] {
        let joint_step = JogIncrement::Joint {
            joint: 1,
            by_rad: by,
        };
        for increment in [
            joint_step,
            JogIncrement::Tip {
                by_mm: [0.0, by, 0.0],
            },
        ] {
            let message = step(increment);
            assert!(message.contains("not finite"), "{message}");
        }
    }
}

#[test]
fn refuses_a_stroke_without_points() {
    let scene = so101();
    for stroke_order in [Order::AsDrawn, Order::Fastest] {
        let mut strokes = drawing();
        strokes[1].points_mm.clear();
        let message = refusal_message(draw_strokes(
            &scene,
            &scene.rest_rad,
            &strokes,
            stroke_order,
            &SilentObserver,
        ));
        assert!(message.contains("(stroke 2)"), "{message}");
    }
}

/// The motion was cut off after a minute, and its last sample was at its end all the same.
#[test]
fn refuses_a_swing_that_takes_longer_than_can_be_planned() {
    let mut scene = so101();
    scene.limits.travel_mm_s = 0.5;
    let message = refusal_message(go_to(
        &scene,
        &scene.rest_rad,
        &[scene.ready_rad],
        &SilentObserver,
    ));
    assert!(message.contains("waypoints"), "{message}");
}

/// Without a ramp the joints jumped to the end in one sample.
#[test]
fn refuses_a_swing_that_cannot_be_timed() {
    for travel_mm_s in [0.0, f64::NAN] {
        let mut scene = so101();
        scene.limits.travel_mm_s = travel_mm_s;
        let message = refusal_message(go_to(
            &scene,
            &scene.rest_rad,
            &[scene.ready_rad],
            &SilentObserver,
        ));
        assert!(message.contains("timed"), "{message}");
    }
}

/// Plans a visit to one place at which the tip stands for `dwell_s`.
fn plan_dwell(scene: &Scene, dwell_s: f64) -> Result<Plan, PlanError> {
    let point = VisitPoint {
        name: "here".to_owned(),
        target: VisitTarget::Sheet {
            at_mm: [10.0, 10.0],
            height_mm: 5.0,
        },
        pen: 0,
        dwell_s,
    };
    visit(scene, &scene.rest_rad, &[point], &SilentObserver)
}

#[test]
fn refuses_a_dwell_that_is_not_a_duration() {
    let scene = so101();
    for dwell_s in [f64::NAN, -1.0] {
        let message = refusal_message(plan_dwell(&scene, dwell_s));
        assert!(
            message.contains("here") && message.contains(" s"),
            "{message}"
        );
    }
}

/// Goals that come to lead add samples at both ends, which the gate must take as well.
#[test]
fn a_plan_leaves_room_for_the_samples_in_which_goals_come_to_lead() {
    let scene = so101();
    let short = plan_dwell(&scene, 0.0).unwrap().trajectory.samples.len();
    let nearly_all = (SAMPLES_MAX - short - crate::compensation::SETTLE_SAMPLES) as f64;
    let message = refusal_message(plan_dwell(&scene, nearly_all * PERIOD_S));
    assert!(message.contains("at most 999920"), "{message}");
}
