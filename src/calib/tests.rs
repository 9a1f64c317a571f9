//! Statistical tests of the fits: their errors, their predicted uncertainty, and touches that must be refused.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

mod bases;
mod beside;
mod by_hand;
#[path = "../../tests/support/chance.rs"]
#[allow(dead_code, reason = "shared with the tests of the commands")]
mod chance;
mod inked;
mod kept;
mod later_changes;
mod lerobot_files;
mod own_objects;
mod rolled;
mod touched_zeros;

use std::f64::consts::TAU;

use nalgebra::{Isometry3, Point3, Rotation3, Translation3, Unit, UnitQuaternion, Vector3};

use super::stats::{ResidualKind, f3_95, tail_probability};
use super::*;
use base::units::JointVector;
use chance::Chance;
use kin::{IkGoal, ToolTip};
use scene::SceneLibrary;

const TIP_M: [f64; 3] = [0.01, 0.02, 0.12];
const POINT_M: [f64; 3] = [0.3, 0.0, 0.05];

/// Returns poses that touch one point, evenly around it, tilted by up to `tilt_deg`.
fn pivots(chance: &mut Chance, count: usize, tilt_deg: f64, noise_m: f64) -> Vec<Isometry3<f64>> {
    let (tip, point) = (Vector3::from(TIP_M), Vector3::from(POINT_M));
    let pose = |index: usize| {
        let around = TAU * index as f64 / count as f64;
        let tilt = chance.between(0.08, 1.0) * tilt_deg.to_radians();
        let axis = Vector3::new(around.cos(), around.sin(), 0.0);
        let rotation = UnitQuaternion::from_scaled_axis(axis * tilt);
        let place = point - rotation * tip + chance.noise(noise_m);
        Isometry3::from_parts(Translation3::from(place), rotation)
    };
    (0..count).map(pose).collect()
}

/// Fits all touches, without leaving out an outlier.
fn pivot(mounts: &[Isometry3<f64>]) -> Result<PivotFit, FitError> {
    pivot_fit::fit(mounts, None)
}

/// Fits all touches, without leaving out an outlier.
fn plane(points: &[Point3<f64>], up: &Vector3<f64>) -> Result<PlaneFit, FitError> {
    plane_fit::fit(points, up, None)
}

/// Returns whether a tip lies within the region that holds the true one in 19 cases of 20.
fn covers_tip(fit: &PivotFit, tip_m: &Point3<f64>) -> bool {
    let off = tip_m - fit.tip_m;
    let inverse = fit.covariance_m2.try_inverse().unwrap();
    (off.transpose() * inverse * off).x <= 3.0 * f3_95(fit.freedom)
}

/// Returns whether a plane lies within the region that holds the true one in 19 cases of 20.
fn covers_plane(fit: &PlaneFit, centre_m: &Point3<f64>, normal: &Unit<Vector3<f64>>) -> bool {
    let facing = fit.normal.dot(normal);
    let [u, v] = fit.along;
    let height = normal.dot(&(centre_m - fit.centre_m)) / facing;
    let off = Vector3::new(height, -normal.dot(&u) / facing, -normal.dot(&v) / facing);
    let inverse = fit.covariance.try_inverse().unwrap();
    let ratio = (off.transpose() * inverse * off).x / 3.0;
    tail_probability(ratio, ResidualKind::Vector, fit.freedom) > 0.05
}

/// Returns whether a frame lies within the region that holds the true one in 19 cases of 20. Its origin is `off_m` along this
/// frame's x and y, and it is turned by `turn_rad`.
fn covers_frame(frame: &SheetFrame, plane: &PlaneFit, off_m: [f64; 2], turn_rad: f64) -> bool {
    let [along, across] = off_m.map(|off| off / frame.sigma(plane).origin_m);
    let end = (off_m[1] + turn_rad * frame.length_m) / plane.place_sigma_m;
    along * along + across * across + end * end <= 3.0 * f3_95(plane.freedom as f64)
}

fn p95(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() * 95 / 100]
}

/// Returns the number of runs from `STEADYHAND_CASES`, between a quarter of a test's runs and all of them.
fn runs(all: usize) -> usize {
    let requested = std::env::var("STEADYHAND_CASES").ok();
    let requested = requested.and_then(|text| text.parse().ok());
    requested.unwrap_or(all / 4).clamp(all / 4, all)
}

fn many_runs() -> usize {
    runs(2_000)
}

fn assert_near(what: &str, value: f64, expected: f64) {
    let ratio = value / expected;
    assert!(
        (0.8..=1.2).contains(&ratio),
        "{what}: {value:.2}, table {expected}"
    );
}

#[test]
fn errors_of_tips_agree_with_the_table() {
    let chance = &mut Chance(1);
    for (count, tilt_deg, expected_mm) in [
        (4, 15.0, [2.1, 8.8, 27.0]),
        (4, 45.0, [0.64, 3.2, 9.3]),
        (8, 45.0, [0.31, 1.4, 4.4]),
    ] {
        for (noise_mm, expected_mm) in [0.1, 0.5, 1.5].into_iter().zip(expected_mm) {
            let errors = (0..many_runs()).map(|_| {
                let fit = pivot(&pivots(chance, count, tilt_deg, noise_mm * 1e-3)).unwrap();
                (fit.tip_m - Point3::from(TIP_M)).norm() * 1e3
            });
            let p95_mm = p95(errors.collect());
            assert_near(
                &format!("{count} touches to {tilt_deg} at {noise_mm}"),
                p95_mm,
                expected_mm,
            );
        }
    }
}

/// Returns places on a sheet of 150 mm, in metres from its centre.
fn places(count: usize) -> Vec<[f64; 2]> {
    let h = 0.075;
    let corners = [[-h, -h], [h, -h], [h, h], [-h, h]];
    match count {
        3 => vec![[-h, -h], [h, -h], [0.0, h]],
        5 => [corners.as_slice(), &[[0.0, 0.0]]].concat(),
        _ => (0..9)
            .map(|i| [(i % 3) as f64 * h - h, (i / 3) as f64 * h - h])
            .collect(),
    }
}

fn sheet(chance: &mut Chance, count: usize, noise_m: f64) -> Vec<Point3<f64>> {
    let touch = |[x, y]: [f64; 2]| Point3::new(x, y, 0.0) + chance.noise(noise_m);
    places(count).into_iter().map(touch).collect()
}

#[test]
fn errors_of_planes_agree_with_the_table() {
    let chance = &mut Chance(2);
    let h = 0.075;
    for (count, expected) in [
        (3, [(0.27, None), (1.4, None), (4.4, None)]),
        (5, [(0.21, Some(0.09)), (1.0, Some(0.45)), (3.1, Some(1.4))]),
        (9, [(0.15, None), (0.8, None), (2.4, None)]),
    ] {
        for (noise_mm, (corner_mm, tilt_deg)) in [0.1, 0.5, 1.5].into_iter().zip(expected) {
            let (mut corners, mut tilts) = (Vec::new(), Vec::new());
            for _ in 0..many_runs() {
                let fit = plane(&sheet(chance, count, noise_mm * 1e-3), &Vector3::z()).unwrap();
                let off = [[-h, -h], [h, -h], [h, h], [-h, h]]
                    .map(|[x, y]| fit.height_m(&Point3::new(x, y, 0.0)).abs());
                corners.push(off.into_iter().fold(0.0, f64::max) * 1e3);
                tilts.push(fit.normal.angle(&Vector3::z()).to_degrees());
            }
            assert_near(
                &format!("corner of {count} at {noise_mm}"),
                p95(corners),
                corner_mm,
            );
            if let Some(expected) = tilt_deg {
                assert_near(
                    &format!("tilt of {count} at {noise_mm}"),
                    p95(tilts),
                    expected,
                );
            }
        }
    }
}

fn assert_covered(what: &str, hits: usize) {
    let runs = coverage_runs();
    assert!(
        (runs * 90 / 100..=runs * 99 / 100).contains(&hits),
        "{what}: {hits} of {runs} are covered"
    );
}

fn coverage_runs() -> usize {
    runs(1_000)
}

#[test]
fn predicted_covariance_covers_the_true_tip_and_plane() {
    let chance = &mut Chance(3);
    for (count, tilt_deg) in [(4, 15.0), (4, 45.0), (8, 45.0), (12, 30.0)] {
        let hits = (0..coverage_runs()).filter(|_| {
            let fit = pivot(&pivots(chance, count, tilt_deg, 5e-4)).unwrap();
            covers_tip(&fit, &Point3::from(TIP_M))
        });
        assert_covered("tip", hits.count());
    }
    for count in [5, 9] {
        let hits = (0..coverage_runs()).filter(|_| {
            let fit = plane(&sheet(chance, count, 5e-4), &Vector3::z()).unwrap();
            covers_plane(&fit, &Point3::origin(), &Vector3::z_axis())
        });
        assert_covered("plane", hits.count());
    }
}

/// An error that touches of one place share, such as a joint's play there, is not averaged away by repeated touches.
#[test]
fn a_planes_uncertainty_holds_if_touches_of_a_place_share_errors() {
    let chance = &mut Chance(17);
    for count in [5, 9] {
        let (mut errors, mut sigmas, mut hits) = (Vec::new(), Vec::new(), 0);
        for _ in 0..many_runs() {
            let places = sheet(chance, count, 3e-4);
            let thrice = places.iter().flat_map(|at| [at; 3]);
            let touches: Vec<_> = thrice.map(|at| at + chance.noise(5e-5)).collect();
            let fit = plane(&touches, &Vector3::z()).unwrap();
            let corner = Point3::new(0.075, 0.075, 0.0);
            errors.push(fit.height_m(&corner));
            sigmas.push(fit.sigma_at_m(&corner));
            hits += usize::from(covers_plane(&fit, &Point3::origin(), &Vector3::z_axis()));
        }
        let root = |values: &[f64]| values.iter().map(|v| v * v).sum::<f64>().sqrt();
        let ratio = root(&errors) / root(&sigmas);
        assert!((0.8..1.3).contains(&ratio), "{count}: {ratio}");
        let coverage = hits as f64 / many_runs() as f64;
        assert!((0.93..0.97).contains(&coverage), "{count}: {coverage}");
    }
}

/// The frame begins at the centre of [`sheet`]; its three points are touched once or three times.
#[test]
fn predicted_covariance_covers_the_true_frame() {
    let chance = &mut Chance(16);
    let expected = RulerDistances {
        x_mm: 100.0,
        y_mm: 80.0,
    };
    for times in [1, 3] {
        let hits = (0..coverage_runs()).filter(|_| {
            let mut points: Vec<_> = (0..times).flat_map(|_| sheet(chance, 9, 1e-4)).collect();
            let mut mean = |x: f64, y: f64| {
                let touches = (0..times).map(|_| Point3::new(x, y, 0.0) + chance.noise(1e-4));
                let touches: Vec<_> = touches.collect();
                points.extend(&touches);
                let sum: Vector3<f64> = touches.iter().map(|touch| touch.coords).sum();
                Point3::from(sum / times as f64)
            };
            let axis_points = [mean(0.0, 0.0), mean(0.1, 0.0), mean(0.0, 0.08)];
            let fit = plane(&points, &Vector3::z()).unwrap();
            let frame = frame(axis_points.each_ref(), expected, &fit).unwrap();
            let to = Point3::origin() - frame.origin_m;
            let off_m = [frame.x.dot(&to), frame.y.dot(&to)];
            let turn_rad = frame.y.dot(&Vector3::x()).atan2(frame.x.dot(&Vector3::x()));
            covers_frame(&frame, &fit, off_m, turn_rad)
        });
        assert_covered("frame", hits.count());
    }
}

fn axis() -> Unit<Vector3<f64>> {
    Vector3::z_axis()
}

fn refusal(finding: &FitFinding) -> String {
    assert_eq!(finding.verdict, FitVerdict::Redo, "{finding:?}");
    finding.reasons.join("; ")
}

#[test]
fn good_touches_are_good() {
    let chance = &mut Chance(4);
    let limits = ResolutionClass::Fine.limits();
    let mut good = 0;
    for _ in 0..100 {
        let poses = pivots(chance, 9, 45.0, 5e-5);
        let (verify, fitted) = poses.split_first().unwrap();
        let fit = pivot_robust(fitted).unwrap();
        let finding = judge_pivot(&fit, &limits, &axis(), Some(fit.verify_m(verify)), None);
        good += usize::from(finding.verdict <= FitVerdict::Usable);
    }
    assert!(good >= 95, "{good} of 100");
}

#[test]
fn a_small_residual_does_not_hide_too_little_tilt() {
    let chance = &mut Chance(5);
    let fit = pivot(&pivots(chance, 6, 6.0, 1e-4)).unwrap();
    assert!(fit.rms_m() < 2e-4, "{}", fit.rms_m());
    let reasons = refusal(&judge_pivot(
        &fit,
        &ResolutionClass::Hobby.limits(),
        &axis(),
        Some(0.0),
        None,
    ));
    assert!(reasons.contains("(condition"), "{reasons}");
    let same = vec![Isometry3::translation(0.1, 0.2, 0.3); 5];
    assert!(matches!(pivot(&same), Err(FitError::SameDirection { .. })));
    assert!(matches!(
        pivot(&same[..3]),
        Err(FitError::TooFew {
            need: 4,
            have: 3,
            ..
        })
    ));
}

#[test]
fn a_slipped_touch_is_found_and_named() {
    let chance = &mut Chance(6);
    for slip in 0..8 {
        let mut poses = pivots(chance, 8, 45.0, 1e-4);
        poses[slip].translation.vector += Vector3::new(0.004, -0.006, 0.003);
        let fit = pivot_robust(&poses).unwrap();
        assert_eq!(fit.outlier.map(|outlier| outlier.index), Some(slip));
        let reasons = refusal(&judge_pivot(
            &fit,
            &ResolutionClass::Hobby.limits(),
            &axis(),
            Some(0.0),
            None,
        ));
        assert!(
            reasons.contains(&format!("touch {} is", slip + 1)),
            "{reasons}"
        );
        assert!((fit.tip_m - Point3::from(TIP_M)).norm() < 1e-3);
    }
}

/// Asserts that good touches are left out only as often as chance puts one of them tail_probability three deviations.
fn assert_rare(what: &str, left_out: usize, runs: usize) {
    assert!(left_out * 8 < runs, "{what}: {left_out} of {runs}");
}

#[test]
fn a_good_touch_is_rarely_left_out() {
    let chance = &mut Chance(11);
    let left_out = (0..coverage_runs()).filter(|_| {
        let fit = plane_robust(&sheet(chance, 21, 1e-4), &Vector3::z());
        fit.unwrap().outlier.is_some()
    });
    assert_rare("plane", left_out.count(), coverage_runs());
    let left_out = (0..coverage_runs()).filter(|_| {
        let fit = pivot_robust(&pivots(chance, 12, 45.0, 1e-4));
        fit.unwrap().outlier.is_some()
    });
    assert_rare("pivot", left_out.count(), coverage_runs());
}

#[test]
fn a_tool_that_was_changed_fails_its_verification() {
    let chance = &mut Chance(7);
    let fit = pivot(&pivots(chance, 8, 45.0, 1e-4)).unwrap();
    let mut other = pivots(chance, 8, 45.0, 1e-4)[3];
    other.translation.vector += Vector3::new(0.0, 0.0, 0.005);
    let limits = ResolutionClass::Hobby.limits();
    let verify = Some(fit.verify_m(&other));
    let reasons = refusal(&judge_pivot(&fit, &limits, &axis(), verify, None));
    assert!(reasons.contains("touch is 5."), "{reasons}");
    let reasons = refusal(&judge_pivot(&fit, &limits, &axis(), None, Some(0.002)));
    assert!(
        reasons.contains("not verified") && reasons.contains("spread over 2.00"),
        "{reasons}"
    );
}

#[test]
fn a_moved_sheet_is_refused() {
    let chance = &mut Chance(8);
    let limits = ResolutionClass::Hobby.limits();
    let points = sheet(chance, 9, 1e-4);
    let fit = plane(&points, &Vector3::z()).unwrap();
    let tilted = Some(4_f64.to_radians());
    let reasons = refusal(&judge_plane(
        (&fit, TouchedShape::Plane),
        &limits,
        &[],
        Some(0.0),
        None,
        tilted,
    ));
    assert!(reasons.contains("leans 4.0°"), "{reasons}");
    // It moved between the touches and the one that verifies.
    let off = fit.height_m(&Point3::new(0.02, 0.01, 0.004)).abs();
    let reasons = refusal(&judge_plane(
        (&fit, TouchedShape::Plane),
        &limits,
        &[],
        Some(off),
        None,
        None,
    ));
    assert!(reasons.contains("something moved"), "{reasons}");
    // It moved half way through.
    let touches = points.iter().enumerate();
    let touches = touches.map(|(i, p)| if i > 4 { p + Vector3::z() * 0.008 } else { *p });
    let fit = plane_robust(&touches.collect::<Vec<_>>(), &Vector3::z()).unwrap();
    let reasons = refusal(&judge_plane(
        (&fit, TouchedShape::Plane),
        &limits,
        &[],
        Some(0.0),
        None,
        None,
    ));
    assert!(reasons.contains("bent"), "{reasons}");
}

#[test]
fn the_place_to_touch_is_named() {
    let chance = &mut Chance(9);
    let touches = sheet(chance, 9, 3e-4);
    let clustered = touches.iter().map(|p| Point3::from(p.coords * 0.1));
    let clustered: Vec<_> = clustered.map(|p| p + chance.noise(3e-4)).collect();
    let fit = plane(&clustered, &Vector3::z()).unwrap();
    let corners = [
        ("far", Point3::new(0.3, 0.3, 0.0)),
        ("near", Point3::origin()),
    ];
    let reasons = refusal(&judge_plane(
        (&fit, TouchedShape::Plane),
        &ResolutionClass::Hobby.limits(),
        &corners,
        Some(0.0),
        None,
        None,
    ));
    assert!(
        reasons.contains("far corner") && reasons.contains("touch there"),
        "{reasons}"
    );
    let line: Vec<Point3<f64>> = (0..6)
        .map(|i| Point3::new(i as f64 * 0.02, 0.0, 0.0))
        .collect();
    assert!(matches!(
        plane(&line, &Vector3::z()),
        Err(FitError::OnALine { .. })
    ));
}

#[test]
fn a_bent_sheet_is_measured() {
    let chance = &mut Chance(10);
    let radius = 0.2_f64;
    let bend = |p: Point3<f64>| Point3::new(p.x, p.y, p.z - p.x * p.x / (2.0 * radius));
    let points: Vec<_> = sheet(chance, 9, 5e-5).into_iter().map(bend).collect();
    let fit = plane(&points, &Vector3::z()).unwrap();
    let curvature_fit = curvature(&points, &fit, &Vector3::x()).unwrap();
    let radius_mm = curvature_fit.radius_mm(0).unwrap();
    assert!((radius_mm / 200.0 - 1.0).abs() < 0.1, "{radius_mm}");
    assert_eq!(curvature_fit.radius_mm(1), None, "{curvature_fit:?}");
    assert_eq!(curvature(&points[..6], &fit, &Vector3::x()), None);
}

/// Three touches at each of few places show no curvature, whatever their scatter, and a flat sheet that is touched at many is flat.
#[test]
fn a_flat_sheet_is_not_reported_as_bent() {
    let chance = &mut Chance(12);
    for count in [3, 5] {
        let thrice: Vec<_> = (0..3).flat_map(|_| sheet(chance, count, 3e-4)).collect();
        let fit = plane(&thrice, &Vector3::z()).unwrap();
        assert_eq!(curvature(&thrice, &fit, &Vector3::x()), None, "{count}");
    }
    let false_reports = (0..many_runs()).filter(|_| {
        let common = sheet(chance, 9, 3e-4);
        let thrice: Vec<_> = (0..3)
            .flat_map(|_| {
                common
                    .iter()
                    .map(|at| at + chance.noise(1e-4))
                    .collect::<Vec<_>>()
            })
            .collect();
        let fit = plane(&thrice, &Vector3::z()).unwrap();
        let bent = curvature(&thrice, &fit, &Vector3::x()).unwrap();
        bent.radius_mm(0).or(bent.radius_mm(1)).is_some()
    });
    assert!(
        false_reports.count() * 250 <= many_runs(),
        "more than twice the allowed chance"
    );
}

#[test]
fn a_frame_is_computed_and_wrong_ones_are_named() {
    let chance = &mut Chance(11);
    let rotation = Rotation3::from_euler_angles(0.1, -0.2, 0.7);
    let place = |p: Point3<f64>| rotation * p + Vector3::new(0.1, 0.2, 0.03);
    let points: Vec<_> = sheet(chance, 9, 1e-5).into_iter().map(place).collect();
    let fit = plane(&points, &rotation.transform_vector(&Vector3::z())).unwrap();
    let at = |x: f64, y: f64| place(Point3::new(x, y, 0.0));
    let (origin, x, y) = (at(0.0, 0.0), at(0.1, 0.0), at(0.0, 0.08));
    let expected = RulerDistances {
        x_mm: 100.0,
        y_mm: 80.0,
    };
    let sheet_frame = frame([&origin, &x, &y], expected, &fit).unwrap();
    assert!((sheet_frame.origin_m - origin).norm() < 1e-4);
    assert!(sheet_frame.x.angle(&(rotation * Vector3::x())) < 1e-3);
    assert!(sheet_frame.y.angle(&(rotation * Vector3::y())) < 1e-3);
    assert_eq!(
        frame([&origin, &y, &x], expected, &fit).unwrap_err(),
        FitError::Swapped
    );
    let long = RulerDistances {
        x_mm: 98.0,
        y_mm: 80.0,
    };
    let error = frame([&origin, &x, &y], long, &fit)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("+x is 100.0") && error.contains("+2.0 %"),
        "{error}"
    );
    let askew = at(0.02, 0.08);
    let error = frame([&origin, &x, &askew], expected, &fit).unwrap_err();
    assert!(matches!(error, FitError::NotSquare(_)), "{error}");
}

/// An SO-101 with its pen.
struct TestArm {
    chain: kin::KinematicChain,
    tip: ToolTip,
    ready_rad: JointVector,
}

impl TestArm {
    fn poses(&self, chance: &mut Chance, count: usize) -> Vec<JointVector> {
        let mut pose = |_| {
            let moved = self.ready_rad.iter().map(|q| q + chance.within(0.6));
            JointVector::from_slice(&moved.collect::<Vec<f64>>())
        };
        (0..count).map(&mut pose).collect()
    }
}

fn so101() -> TestArm {
    let scene = SceneLibrary::default().scene("default", None).unwrap();
    let pen = scene.pen(0).unwrap();
    TestArm {
        chain: scene.arm.chain.clone(),
        tip: ToolTip {
            point_m: pen.tip_m,
            axis: pen.axis,
        },
        ready_rad: scene.ready_rad,
    }
}

#[test]
fn zeros_are_found_from_known_points_and_cover_the_truth() {
    let (chance, arm) = (&mut Chance(12), so101());
    let mut hits = [0; 5];
    for _ in 0..coverage_runs() {
        let truth = JointVector::from_slice(&[0.0; 5].map(|_| chance.within(0.035)));
        let poses = arm.poses(chance, 30);
        let mut touch = |q: &JointVector| {
            let at = arm.chain.forward(&q.zip(&truth, |q, d| q + d)) * arm.tip.point_m;
            ZerosTouch {
                joints_rad: *q,
                target: TouchTarget::Known(at + chance.noise(3e-4)),
            }
        };
        let touches: Vec<ZerosTouch> = poses.iter().map(&mut touch).collect();
        let fit = zeros(&arm.chain, &arm.tip, &touches, false).unwrap();
        assert!(fit.dropped.is_empty(), "{:?}", fit.dropped);
        assert!(fit.held_out_m.unwrap() < 3e-3 && fit.rms_m < fit.before_m);
        let offsets = fit.offsets_rad.iter().zip(truth.iter());
        for (joint, (offset, truth)) in offsets.enumerate() {
            let sigma = fit.sigma_rad.get(joint).unwrap();
            hits[joint] += usize::from((offset - truth).abs() <= 2.0 * sigma);
        }
    }
    for (joint, hits) in hits.into_iter().enumerate() {
        assert_covered(&format!("zero of joint {joint}"), hits);
    }
}

#[test]
fn zeros_that_touches_do_not_determine_are_dropped_and_named() {
    let chance = &mut Chance(13);
    let arm = so101();
    let poses = arm.poses(chance, 24);
    let mut touches = Vec::new();
    // Touches of one point of unknown position do not determine the pan.
    let at = arm.chain.forward(&poses[0]) * arm.tip.point_m;
    for start in &poses {
        let (_, axis) = arm.chain.tip(start, &arm.tip);
        let goal = IkGoal::PointThenAxis { point_m: at, axis };
        if let Ok(found) = arm.chain.solve(&arm.tip, &goal, start) {
            touches.push(ZerosTouch {
                joints_rad: found.q_rad,
                target: TouchTarget::Same(0),
            });
        }
    }
    assert!(touches.len() >= ZEROS_TOUCHES_MIN, "{}", touches.len());
    let fit = zeros(&arm.chain, &arm.tip, &touches, false).unwrap();
    assert!(fit.dropped.contains(&0), "{:?}", fit.dropped);
    let names: Vec<String> = scene_names();
    let reasons = judge_zeros(&fit, &ResolutionClass::Hobby.limits(), &names)
        .reasons
        .join("; ");
    assert!(reasons.contains("shoulder_pan"), "{reasons}");
    let few = zeros(&arm.chain, &arm.tip, &touches[..4], false);
    assert!(matches!(few, Err(FitError::TooFew { .. })));
}

fn scene_names() -> Vec<String> {
    let scene = SceneLibrary::default().scene("default", None).unwrap();
    (0..5).map(|joint| scene.arm.joint_name(joint)).collect()
}

#[test]
fn numbers_that_are_not_finite_are_refused() {
    let mut poses = pivots(&mut Chance(14), 6, 45.0, 1e-4);
    poses[2].translation.vector.x = f64::NAN;
    assert_eq!(pivot(&poses).unwrap_err(), FitError::NotFinite);
    let mut points = sheet(&mut Chance(15), 5, 1e-4);
    points[1].z = f64::INFINITY;
    assert_eq!(
        plane(&points, &Vector3::z()).unwrap_err(),
        FitError::NotFinite
    );
}

#[test]
fn arms_with_fine_resolution_have_finer_limits() {
    let library = SceneLibrary::default();
    assert_eq!(
        ResolutionClass::of_arm(&library.arm("so101").unwrap()),
        ResolutionClass::Hobby
    );
    assert_eq!(
        ResolutionClass::of_arm(&library.arm("custom").unwrap()),
        ResolutionClass::Fine
    );
    assert!(ResolutionClass::Fine.limits().verify_mm < ResolutionClass::Hobby.limits().verify_mm);
}
