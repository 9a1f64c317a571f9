//! The fits against chance: how far off they are, whether they know it, and what fools them.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

mod by_hand;
#[path = "../../tests/support/chance.rs"]
#[allow(dead_code, reason = "shared with the tests of the commands")]
mod chance;
mod inked;
mod kept;
mod rolled;

use std::f64::consts::TAU;

use nalgebra::{Isometry3, Point3, Rotation3, Translation3, Unit, UnitQuaternion, Vector3};

use super::stats::{ResidualKind, beyond, f3_95};
use super::*;
use base::units::JointVector;
use chance::Chance;
use kin::{IkGoal, ToolTip};
use scene::SceneLibrary;

const TIP_M: [f64; 3] = [0.01, 0.02, 0.12];
const POINT_M: [f64; 3] = [0.3, 0.0, 0.05];

/// Poses that touch one point: evenly around, tilted by up to so much.
fn pivots(chance: &mut Chance, count: usize, tilt_deg: f64, noise_m: f64) -> Vec<Isometry3<f64>> {
    let (tip, at) = (Vector3::from(TIP_M), Vector3::from(POINT_M));
    let each = |index: usize| {
        let around = TAU * index as f64 / count as f64;
        let tilt = chance.between(0.08, 1.0) * tilt_deg.to_radians();
        let axis = Vector3::new(around.cos(), around.sin(), 0.0);
        let turn = UnitQuaternion::from_scaled_axis(axis * tilt);
        let place = at - turn * tip + chance.noise(noise_m);
        Isometry3::from_parts(Translation3::from(place), turn)
    };
    (0..count).map(each).collect()
}

/// Fits all touches, a slipped one too.
fn pivot(mounts: &[Isometry3<f64>]) -> Result<PivotFit, FitError> {
    pivot_fit::fit(mounts, None)
}

/// Fits all touches, a slipped one too.
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
    beyond(ratio, ResidualKind::Vector, fit.freedom) > 0.05
}

/// Returns whether a frame lies within the region that holds the true one in 19 cases of 20. Its origin is `off_m` along this
/// frame's x and y, and it is turned by `turn_rad`.
fn covers_frame(made: &SheetFrame, plane: &PlaneFit, off_m: [f64; 2], turn_rad: f64) -> bool {
    let [along, across] = off_m.map(|off| off / made.sigma(plane).origin_m);
    let end = (off_m[1] + turn_rad * made.length_m) / plane.place_sigma_m;
    along * along + across * across + end * end <= 3.0 * f3_95(plane.freedom as f64)
}

fn p95(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() * 95 / 100]
}

/// Returns a quarter of a test's runs, or as many as `STEADYHAND_CASES` asks for and at most all of them.
fn runs(all: usize) -> usize {
    let asked = std::env::var("STEADYHAND_CASES").ok();
    let asked = asked.and_then(|text| text.parse().ok());
    asked.unwrap_or(all / 4).clamp(all / 4, all)
}

fn many_runs() -> usize {
    runs(2_000)
}

fn near(what: &str, got: f64, known: f64) {
    let ratio = got / known;
    assert!(
        (0.8..=1.2).contains(&ratio),
        "{what}: {got:.2}, table {known}"
    );
}

#[test]
fn tips_are_as_far_off_as_the_table_says() {
    let chance = &mut Chance(1);
    for (count, tilt_deg, known_mm) in [
        (4, 15.0, [2.1, 8.8, 27.0]),
        (4, 45.0, [0.64, 3.2, 9.3]),
        (8, 45.0, [0.31, 1.4, 4.4]),
    ] {
        for (noise_mm, known_mm) in [0.1, 0.5, 1.5].into_iter().zip(known_mm) {
            let errors = (0..many_runs()).map(|_| {
                let fit = pivot(&pivots(chance, count, tilt_deg, noise_mm * 1e-3)).unwrap();
                (fit.tip_m - Point3::from(TIP_M)).norm() * 1e3
            });
            let got = p95(errors.collect());
            near(
                &format!("{count} touches to {tilt_deg} at {noise_mm}"),
                got,
                known_mm,
            );
        }
    }
}

/// Places on a sheet of 150 mm, in metres from its middle.
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
    let each = |[x, y]: [f64; 2]| Point3::new(x, y, 0.0) + chance.noise(noise_m);
    places(count).into_iter().map(each).collect()
}

#[test]
fn planes_are_as_far_off_as_the_table_says() {
    let chance = &mut Chance(2);
    let h = 0.075;
    for (count, known) in [
        (3, [(0.27, None), (1.4, None), (4.4, None)]),
        (5, [(0.21, Some(0.09)), (1.0, Some(0.45)), (3.1, Some(1.4))]),
        (9, [(0.15, None), (0.8, None), (2.4, None)]),
    ] {
        for (noise_mm, (corner_mm, tilt_deg)) in [0.1, 0.5, 1.5].into_iter().zip(known) {
            let (mut corners, mut tilts) = (Vec::new(), Vec::new());
            for _ in 0..many_runs() {
                let fit = plane(&sheet(chance, count, noise_mm * 1e-3), &Vector3::z()).unwrap();
                let off = [[-h, -h], [h, -h], [h, h], [-h, h]]
                    .map(|[x, y]| fit.height_m(&Point3::new(x, y, 0.0)).abs());
                corners.push(off.into_iter().fold(0.0, f64::max) * 1e3);
                tilts.push(fit.normal.angle(&Vector3::z()).to_degrees());
            }
            near(
                &format!("corner of {count} at {noise_mm}"),
                p95(corners),
                corner_mm,
            );
            if let Some(known) = tilt_deg {
                near(&format!("tilt of {count} at {noise_mm}"), p95(tilts), known);
            }
        }
    }
}

fn covered(what: &str, hits: usize) {
    let runs = covered_runs();
    assert!(
        (runs * 90 / 100..=runs * 99 / 100).contains(&hits),
        "{what}: {hits} of {runs} are covered"
    );
}

fn covered_runs() -> usize {
    runs(1_000)
}

#[test]
fn predicted_covariance_covers_the_true_tip_and_plane() {
    let chance = &mut Chance(3);
    for (count, tilt_deg) in [(4, 15.0), (4, 45.0), (8, 45.0), (12, 30.0)] {
        let hits = (0..covered_runs()).filter(|_| {
            let fit = pivot(&pivots(chance, count, tilt_deg, 5e-4)).unwrap();
            covers_tip(&fit, &Point3::from(TIP_M))
        });
        covered("tip", hits.count());
    }
    for count in [5, 9] {
        let hits = (0..covered_runs()).filter(|_| {
            let fit = plane(&sheet(chance, count, 5e-4), &Vector3::z()).unwrap();
            covers_plane(&fit, &Point3::origin(), &Vector3::z_axis())
        });
        covered("plane", hits.count());
    }
}

/// The error that touches of one place have in common, such as a joint's play there, is not averaged away by touching it again.
#[test]
fn a_plane_is_as_far_off_as_it_says_where_touches_of_a_place_agree() {
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
        let share = hits as f64 / many_runs() as f64;
        assert!((0.93..0.97).contains(&share), "{count}: {share}");
    }
}

/// A sheet that begins in the middle of the one of [`sheet`], its three points touched so often.
#[test]
fn predicted_covariance_covers_the_true_frame() {
    let chance = &mut Chance(16);
    let asked = RulerDistances {
        x_mm: 100.0,
        y_mm: 80.0,
    };
    for times in [1, 3] {
        let hits = (0..covered_runs()).filter(|_| {
            let mut points: Vec<_> = (0..times).flat_map(|_| sheet(chance, 9, 1e-4)).collect();
            let mut mean = |x: f64, y: f64| {
                let touches = (0..times).map(|_| Point3::new(x, y, 0.0) + chance.noise(1e-4));
                let touches: Vec<_> = touches.collect();
                points.extend(&touches);
                let sum: Vector3<f64> = touches.iter().map(|touch| touch.coords).sum();
                Point3::from(sum / times as f64)
            };
            let three = [mean(0.0, 0.0), mean(0.1, 0.0), mean(0.0, 0.08)];
            let fit = plane(&points, &Vector3::z()).unwrap();
            let made = frame(three.each_ref(), asked, &fit).unwrap();
            let to = Point3::origin() - made.origin_m;
            let off_m = [made.x.dot(&to), made.y.dot(&to)];
            let turn_rad = made.y.dot(&Vector3::x()).atan2(made.x.dot(&Vector3::x()));
            covers_frame(&made, &fit, off_m, turn_rad)
        });
        covered("frame", hits.count());
    }
}

fn axis() -> Unit<Vector3<f64>> {
    Vector3::z_axis()
}

fn reasons(finding: &FitFinding) -> String {
    assert_eq!(finding.verdict, FitVerdict::Redo, "{finding:?}");
    finding.reasons.join("; ")
}

#[test]
fn good_touches_are_good() {
    let chance = &mut Chance(4);
    let accept = ResolutionClass::Fine.accept();
    let mut good = 0;
    for _ in 0..100 {
        let poses = pivots(chance, 9, 45.0, 5e-5);
        let (verify, fitted) = poses.split_first().unwrap();
        let fit = pivot_robust(fitted).unwrap();
        let finding = judge_pivot(&fit, &accept, &axis(), Some(fit.verify_m(verify)), None);
        good += usize::from(finding.verdict <= FitVerdict::Usable);
    }
    assert!(good >= 95, "{good} of 100");
}

#[test]
fn a_small_residual_does_not_hide_too_little_tilt() {
    let chance = &mut Chance(5);
    let fit = pivot(&pivots(chance, 6, 6.0, 1e-4)).unwrap();
    assert!(fit.rms_m() < 2e-4, "{}", fit.rms_m());
    let said = reasons(&judge_pivot(
        &fit,
        &ResolutionClass::Hobby.accept(),
        &axis(),
        Some(0.0),
        None,
    ));
    assert!(said.contains("tilt more: condition"), "{said}");
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
        let said = reasons(&judge_pivot(
            &fit,
            &ResolutionClass::Hobby.accept(),
            &axis(),
            Some(0.0),
            None,
        ));
        assert!(said.contains(&format!("touch {} is", slip + 1)), "{said}");
        assert!((fit.tip_m - Point3::from(TIP_M)).norm() < 1e-3);
    }
}

/// Asserts that good touches are left out only as often as chance puts one of them beyond three deviations.
fn seldom(what: &str, left_out: usize, runs: usize) {
    assert!(left_out * 8 < runs, "{what}: {left_out} of {runs}");
}

#[test]
fn a_good_touch_is_seldom_left_out() {
    let chance = &mut Chance(11);
    let left_out = (0..covered_runs()).filter(|_| {
        let fit = plane_robust(&sheet(chance, 21, 1e-4), &Vector3::z());
        fit.unwrap().outlier.is_some()
    });
    seldom("plane", left_out.count(), covered_runs());
    let left_out = (0..covered_runs()).filter(|_| {
        let fit = pivot_robust(&pivots(chance, 12, 45.0, 1e-4));
        fit.unwrap().outlier.is_some()
    });
    seldom("pivot", left_out.count(), covered_runs());
}

#[test]
fn a_tool_that_was_changed_fails_its_verification() {
    let chance = &mut Chance(7);
    let fit = pivot(&pivots(chance, 8, 45.0, 1e-4)).unwrap();
    let mut other = pivots(chance, 8, 45.0, 1e-4)[3];
    other.translation.vector += Vector3::new(0.0, 0.0, 0.005);
    let accept = ResolutionClass::Hobby.accept();
    let verify = Some(fit.verify_m(&other));
    let said = reasons(&judge_pivot(&fit, &accept, &axis(), verify, None));
    assert!(said.contains("verification touch is 5."), "{said}");
    let said = reasons(&judge_pivot(&fit, &accept, &axis(), None, Some(0.002)));
    assert!(
        said.contains("nothing has verified") && said.contains("spread over 2.00"),
        "{said}"
    );
}

#[test]
fn a_moved_sheet_is_refused() {
    let chance = &mut Chance(8);
    let accept = ResolutionClass::Hobby.accept();
    let points = sheet(chance, 9, 1e-4);
    let fit = plane(&points, &Vector3::z()).unwrap();
    let tilted = Some(4_f64.to_radians());
    let said = reasons(&judge_plane(&fit, &accept, &[], Some(0.0), None, tilted));
    assert!(said.contains("leans 4.0 degrees"), "{said}");
    // It moved between the touches and the one that verifies.
    let off = fit.height_m(&Point3::new(0.02, 0.01, 0.004)).abs();
    let said = reasons(&judge_plane(&fit, &accept, &[], Some(off), None, None));
    assert!(said.contains("something moved"), "{said}");
    // It moved half way.
    let halves = points.iter().enumerate();
    let halves = halves.map(|(i, p)| if i > 4 { p + Vector3::z() * 0.008 } else { *p });
    let fit = plane_robust(&halves.collect::<Vec<_>>(), &Vector3::z()).unwrap();
    let said = reasons(&judge_plane(&fit, &accept, &[], Some(0.0), None, None));
    assert!(said.contains("bent or moved"), "{said}");
}

#[test]
fn where_to_touch_is_said() {
    let chance = &mut Chance(9);
    let few = sheet(chance, 9, 3e-4);
    let near: Vec<Point3<f64>> = few.iter().map(|p| Point3::from(p.coords * 0.1)).collect();
    let near: Vec<_> = near.iter().map(|p| p + chance.noise(3e-4)).collect();
    let fit = plane(&near, &Vector3::z()).unwrap();
    let corners = [
        ("far", Point3::new(0.3, 0.3, 0.0)),
        ("near", Point3::origin()),
    ];
    let said = reasons(&judge_plane(
        &fit,
        &ResolutionClass::Hobby.accept(),
        &corners,
        Some(0.0),
        None,
        None,
    ));
    assert!(
        said.contains("far corner") && said.contains("touch there"),
        "{said}"
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
    let bent = curvature(&points, &fit, &Vector3::x()).unwrap();
    let got = bent.radius_mm(0).unwrap();
    assert!((got / 200.0 - 1.0).abs() < 0.1, "{got}");
    assert_eq!(bent.radius_mm(1), None, "{bent:?}");
    assert_eq!(curvature(&points[..6], &fit, &Vector3::x()), None);
}

/// Three touches each of few places show no curvature, whatever their scatter, and a flat sheet that is touched at many is flat.
#[test]
fn a_flat_sheet_is_not_called_bent() {
    let chance = &mut Chance(12);
    for count in [3, 5] {
        let thrice: Vec<_> = (0..3).flat_map(|_| sheet(chance, count, 3e-4)).collect();
        let fit = plane(&thrice, &Vector3::z()).unwrap();
        assert_eq!(curvature(&thrice, &fit, &Vector3::x()), None, "{count}");
    }
    let called_bent = (0..many_runs()).filter(|_| {
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
        called_bent.count() * 250 <= many_runs(),
        "twice the chance that is allowed"
    );
}

#[test]
fn a_frame_is_made_and_wrong_ones_are_named() {
    let chance = &mut Chance(11);
    let turn = Rotation3::from_euler_angles(0.1, -0.2, 0.7);
    let place = |p: Point3<f64>| turn * p + Vector3::new(0.1, 0.2, 0.03);
    let points: Vec<_> = sheet(chance, 9, 1e-5).into_iter().map(place).collect();
    let fit = plane(&points, &turn.transform_vector(&Vector3::z())).unwrap();
    let at = |x: f64, y: f64| place(Point3::new(x, y, 0.0));
    let (origin, x, y) = (at(0.0, 0.0), at(0.1, 0.0), at(0.0, 0.08));
    let asked = RulerDistances {
        x_mm: 100.0,
        y_mm: 80.0,
    };
    let made = frame([&origin, &x, &y], asked, &fit).unwrap();
    assert!((made.origin_m - origin).norm() < 1e-4);
    assert!(made.x.angle(&(turn * Vector3::x())) < 1e-3);
    assert!(made.y.angle(&(turn * Vector3::y())) < 1e-3);
    assert_eq!(
        frame([&origin, &y, &x], asked, &fit).unwrap_err(),
        FitError::Swapped
    );
    let long = RulerDistances {
        x_mm: 98.0,
        y_mm: 80.0,
    };
    let said = frame([&origin, &x, &y], long, &fit)
        .unwrap_err()
        .to_string();
    assert!(
        said.contains("+x is 100.0") && said.contains("+2.0 %"),
        "{said}"
    );
    let askew = at(0.02, 0.08);
    let said = frame([&origin, &x, &askew], asked, &fit).unwrap_err();
    assert!(matches!(said, FitError::NotSquare(_)), "{said}");
}

/// Poses of an SO-101 within reach, and what it really does at them.
struct Arms {
    chain: kin::KinematicChain,
    tip: ToolTip,
    ready_rad: JointVector,
}

impl Arms {
    fn poses(&self, chance: &mut Chance, count: usize) -> Vec<JointVector> {
        let mut pose = |_| {
            let moved = self.ready_rad.iter().map(|q| q + chance.within(0.6));
            JointVector::from_slice(&moved.collect::<Vec<f64>>())
        };
        (0..count).map(&mut pose).collect()
    }
}

fn so101() -> Arms {
    let scene = SceneLibrary::default().scene("default", None).unwrap();
    let pen = scene.pen(0).unwrap();
    Arms {
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
    let (chance, arms) = (&mut Chance(12), so101());
    let mut hits = [0; 5];
    for _ in 0..covered_runs() {
        let truth = JointVector::from_slice(&[0.0; 5].map(|_| chance.within(0.035)));
        let poses = arms.poses(chance, 30);
        let mut touch = |q: &JointVector| {
            let at = arms.chain.forward(&q.zip(&truth, |q, d| q + d)) * arms.tip.point_m;
            ZerosTouch {
                joints_rad: *q,
                target: TouchTarget::Known(at + chance.noise(3e-4)),
            }
        };
        let touches: Vec<ZerosTouch> = poses.iter().map(&mut touch).collect();
        let fit = zeros(&arms.chain, &arms.tip, &touches, false).unwrap();
        assert!(fit.dropped.is_empty(), "{:?}", fit.dropped);
        assert!(fit.held_out_m.unwrap() < 3e-3 && fit.rms_m < fit.before_m);
        let offs = fit.offsets_rad.iter().zip(truth.iter());
        for (joint, (got, true_)) in offs.enumerate() {
            let sigma = fit.sigma_rad.get(joint).unwrap();
            hits[joint] += usize::from((got - true_).abs() <= 2.0 * sigma);
        }
    }
    for (joint, hits) in hits.into_iter().enumerate() {
        covered(&format!("zero of joint {joint}"), hits);
    }
}

#[test]
fn what_touches_do_not_show_is_dropped_and_named() {
    let chance = &mut Chance(13);
    let arms = so101();
    let poses = arms.poses(chance, 24);
    let mut touches = Vec::new();
    // Touches of one point whose place is not known say nothing of the pan.
    let at = arms.chain.forward(&poses[0]) * arms.tip.point_m;
    for start in &poses {
        let (_, axis) = arms.chain.tip(start, &arms.tip);
        let goal = IkGoal::PointThenAxis { point_m: at, axis };
        if let Ok(found) = arms.chain.solve(&arms.tip, &goal, start) {
            touches.push(ZerosTouch {
                joints_rad: found.q_rad,
                target: TouchTarget::Same(0),
            });
        }
    }
    assert!(touches.len() >= ZEROS_TOUCHES_MIN, "{}", touches.len());
    let fit = zeros(&arms.chain, &arms.tip, &touches, false).unwrap();
    assert!(fit.dropped.contains(&0), "{:?}", fit.dropped);
    let names: Vec<String> = scene_names();
    let said = judge_zeros(&fit, &ResolutionClass::Hobby.accept(), &names)
        .reasons
        .join("; ");
    assert!(said.contains("shoulder_pan"), "{said}");
    let few = zeros(&arms.chain, &arms.tip, &touches[..4], false);
    assert!(matches!(few, Err(FitError::TooFew { .. })));
}

fn scene_names() -> Vec<String> {
    let scene = SceneLibrary::default().scene("default", None).unwrap();
    (0..5).map(|joint| scene.arm.joint_name(joint)).collect()
}

#[test]
fn numbers_that_are_none_are_refused() {
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
fn arms_that_count_finely_are_judged_by_finer_limits() {
    let library = SceneLibrary::default();
    assert_eq!(
        ResolutionClass::of_arm(&library.arm("so101").unwrap()),
        ResolutionClass::Hobby
    );
    assert_eq!(
        ResolutionClass::of_arm(&library.arm("custom").unwrap()),
        ResolutionClass::Fine
    );
    assert!(ResolutionClass::Fine.accept().verify_mm < ResolutionClass::Hobby.accept().verify_mm);
}
