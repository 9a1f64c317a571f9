//! Sheets on cylinders: their fits, assessment and files; and touches that must be refused.

use nalgebra::{Isometry3, Point3, Translation3, UnitQuaternion, Vector3};

use super::Chance;
use super::kept::{hand, session};
use super::{assert_covered, assert_rare, coverage_runs};
use crate::cylinder_fit::CylinderProblem;
use crate::*;
use scene::{Scene, SceneLibrary, Surface};

/// A strip of 40 by 70 mm on a bottle of 90 mm diameter.
fn bottle() -> Scene {
    Scene::clone(&*SceneLibrary::default().scene("bottle", None).unwrap())
}

/// Fits all touches, without leaving out an outlier.
fn fit_all(
    assumed: &Surface,
    touches: &[CylinderTouch],
    expected: RulerDistances,
    up: &Vector3<f64>,
) -> Result<CylinderFit, FitError> {
    let problem = CylinderProblem::new(assumed, touches, expected)?;
    problem.fit(&problem.start(up)?, None)
}

const EXPECTED: RulerDistances = RulerDistances {
    x_mm: 40.0,
    y_mm: 70.0,
};

const PLACES: [([f64; 2], TouchRole); 7] = [
    ([0.0, 0.0], TouchRole::Origin),
    ([40.0, 0.0], TouchRole::X),
    ([0.0, 70.0], TouchRole::Y),
    ([40.0, 70.0], TouchRole::Sheet),
    ([20.0, 35.0], TouchRole::Sheet),
    ([20.0, 0.0], TouchRole::Sheet),
    ([20.0, 70.0], TouchRole::Sheet),
];

const CORNERS: [[f64; 2]; 4] = [[0.0, 0.0], [40.0, 0.0], [40.0, 70.0], [0.0, 70.0]];

/// Returns the true bottle: shifted, rotated and of another radius.
fn true_surface(surface: &Surface, radius_mm: f64) -> Surface {
    let rotation = UnitQuaternion::from_euler_angles(0.02, -0.03, 0.02);
    let motion = Isometry3::from_parts(Translation3::new(0.003, -0.002, 0.002), rotation);
    surface
        .rolled(&(surface.flat() * motion), radius_mm)
        .unwrap()
}

/// Touches each place three times.
fn touches(chance: &mut Chance, truth: &Surface, noise_m: f64) -> Vec<CylinderTouch> {
    let each = |(at_mm, role): ([f64; 2], TouchRole)| {
        let at = truth.at(at_mm).point_m;
        [(); 3].map(|()| CylinderTouch {
            at_m: at + chance.noise(noise_m),
            role,
        })
    };
    PLACES.into_iter().flat_map(each).collect()
}

fn fit(touches: &[CylinderTouch]) -> Result<CylinderFit, FitError> {
    fit_all(&bottle().surface, touches, EXPECTED, &Vector3::z())
}

#[test]
fn a_rolled_sheet_is_found_with_its_radius() {
    let truth = true_surface(&bottle().surface, 48.0);
    let found = fit(&touches(&mut Chance(1), &truth, 2e-5)).unwrap();
    assert!((found.radius_mm - 48.0).abs() < 0.6, "{}", found.radius_mm);
    for at in CORNERS {
        let off = (found.surface.at(at).point_m - truth.at(at).point_m).norm();
        assert!(off < 1.5e-4, "{at:?}: {off}");
    }
    assert!(found.rms_m() < 5e-5, "{}", found.rms_m());
}

#[test]
fn its_predicted_covariance_covers_the_true_height_of_its_corners() {
    let (chance, bottle) = (&mut Chance(2), bottle());
    let truth = true_surface(&bottle.surface, 46.0);
    let mut hits = [0; 4];
    for _ in 0..coverage_runs() {
        let found = fit(&touches(chance, &truth, 1e-4)).unwrap();
        for (hits, at) in hits.iter_mut().zip(CORNERS) {
            let off_mm = truth.project(&found.surface.at(at).point_m).height_mm;
            // 23 touches more than unknowns.
            *hits += usize::from(off_mm.abs() / 1e3 <= 2.07 * found.sigma_at_m(at));
        }
    }
    hits.into_iter()
        .for_each(|hits| assert_covered("corner", hits));
}

#[test]
fn touches_that_do_not_fit_a_cylinder_are_refused_with_their_cause() {
    let (chance, bottle) = (&mut Chance(3), bottle());
    let truth = true_surface(&bottle.surface, 45.0);
    let good = touches(chance, &truth, 5e-5);
    let with = |change: &dyn Fn(&mut CylinderTouch)| {
        let mut touches = good.clone();
        touches.iter_mut().for_each(change);
        fit(&touches)
    };
    let swapped = with(&|touch| {
        touch.role = match touch.role {
            TouchRole::X => TouchRole::Y,
            TouchRole::Y => TouchRole::X,
            other => other,
        };
    });
    assert!(matches!(swapped, Err(FitError::Swapped)), "{swapped:?}");
    let long = RulerDistances {
        x_mm: 39.0,
        ..EXPECTED
    };
    let long = fit_all(&bottle.surface, &good, long, &Vector3::z());
    assert!(
        matches!(long, Err(FitError::Scale { axis: "+x", .. })),
        "{long:?}"
    );
    let flat = bottle.surface.flat();
    let flat = with(&|touch| touch.at_m = flat * Point3::new(0.0, 0.0, 0.0));
    assert!(flat.is_err(), "{flat:?}");
    let on_plane = PLACES.map(|([x, y], role)| CylinderTouch {
        at_m: bottle.surface.flat() * Point3::new(x / 1e3, y / 1e3, 0.0),
        role,
    });
    let verdict = fit(&on_plane).map(|found| judge(&found).verdict);
    assert!(
        matches!(verdict, Err(FitError::NotRolled) | Ok(FitVerdict::Redo)),
        "{verdict:?}"
    );
    let no_axes = with(&|touch| touch.role = TouchRole::Sheet);
    assert!(no_axes.unwrap_err().to_string().contains("the origin"));
    // A sheet that is rotated on the cylinder: the touches of +x lie up it.
    let askew = PLACES.map(|([x, y], role)| {
        let rotated = nalgebra::Rotation2::new(0.08) * nalgebra::Vector2::new(x - 20.0, y - 35.0);
        CylinderTouch {
            at_m: truth.at([rotated.x + 20.0, rotated.y + 35.0]).point_m,
            role,
        }
    });
    let reasons = judge(&fit(&askew).unwrap()).reasons.join("; ");
    assert!(reasons.contains("its cylinder"), "{reasons}");
    let mut slipped = good.clone();
    slipped[13].at_m.z += 0.004;
    let found = rolled_robust(&bottle.surface, &slipped, EXPECTED, &Vector3::z()).unwrap();
    assert_eq!(found.outlier.map(|outlier| outlier.index), Some(13));
}

#[test]
fn a_good_touch_is_rarely_left_out() {
    let (chance, bottle) = (&mut Chance(12), bottle());
    let truth = true_surface(&bottle.surface, 46.0);
    let left_out = (0..100).filter(|_| {
        let touches = touches(chance, &truth, 1e-4);
        let fit = rolled_robust(&bottle.surface, &touches, EXPECTED, &Vector3::z()).unwrap();
        fit.outlier.is_some()
    });
    assert_rare("rolled", left_out.count(), 100);
}

fn judge(found: &CylinderFit) -> FitFinding {
    let corners = CORNERS.map(|at| ("named", at));
    judge_rolled(
        found,
        &ResolutionClass::Hobby.limits(),
        &corners,
        Some(0.0),
        None,
        None,
    )
}

/// Touches every place three times, and one for verification.
fn by_hand(truth: &Scene) -> Vec<TouchContact> {
    let mut hand = hand(truth, 40);
    let places = PLACES
        .into_iter()
        .chain([([28.0, 21.0], TouchRole::Verify)]);
    let thrice = |(at, role)| {
        let touch = hand.on_sheet(at, role);
        [touch.clone(), touch.clone(), touch]
    };
    places.flat_map(thrice).collect()
}

/// Returns the scene's file and the scene after these values were written.
fn written(session: &CalibrationSession, values: &FileValues) -> (String, std::sync::Arc<Scene>) {
    let folder = tempfile::tempdir().unwrap();
    let text = SceneLibrary::default()
        .source("bottle.toml")
        .unwrap()
        .unwrap();
    let text = text.replace(
        "cylinder_radius_mm = 45.0",
        "cylinder_radius_mm = 45.0 # by ruler",
    );
    let text = write(&text, session, values).unwrap();
    std::fs::write(folder.path().join("bottle.toml"), &text).unwrap();
    let library = SceneLibrary::new(Some(folder.path().to_path_buf()));
    (text, library.scene("bottle", None).unwrap())
}

#[test]
fn touches_of_a_bottle_are_written_as_its_place_and_radius() {
    let assumed = bottle();
    let mut truth = assumed.clone();
    truth.surface = true_surface(&assumed.surface, 47.0);
    let session = session(CalibrationKind::Sheet, &assumed, by_hand(&truth));
    let assessed = assess(&session, &assumed, None).unwrap();
    assert_ne!(
        assessed.finding.verdict,
        FitVerdict::Redo,
        "{:?}",
        assessed.finding
    );
    assert!(
        assessed.change.mm > 2.0 && assessed.change.mm < 10.0,
        "{:?}",
        assessed.change
    );
    let (text, found) = written(&session, &assessed.new);
    assert!(text.contains("# by ruler"), "{text}");
    let radius_mm = found.surface.radius_mm().unwrap();
    assert!((radius_mm - 47.0).abs() < 1.5, "{radius_mm}");
    for at in CORNERS {
        let off = (found.surface.at(at).point_m - truth.surface.at(at).point_m).norm();
        assert!(off < 5e-4, "{at:?}: {off}");
    }
    // With one touch for each place it is refused.
    let single = session.touches.iter().step_by(3).cloned().collect();
    let single = super::kept::session(CalibrationKind::Sheet, &assumed, single);
    let reasons = assess(&single, &assumed, None)
        .unwrap()
        .finding
        .reasons
        .join("; ");
    assert!(reasons.contains("fewer than 3"), "{reasons}");
}

#[test]
fn a_cross_read_on_a_bottle_turns_the_sheet_around_it() {
    let assumed = bottle();
    let session = CalibrationSession {
        read_mm: Some([2.0, -1.0]),
        ..session(CalibrationKind::Sheet, &assumed, Vec::new())
    };
    let assessed = assess(&session, &assumed, None).unwrap();
    let (_, found) = written(&session, &assessed.new);
    for [x, y] in CORNERS {
        let old = assumed.surface.at([x - 2.0, y + 1.0]);
        let new = found.surface.at([x, y]);
        let off = (new.point_m - old.point_m).norm();
        assert!(off < 5e-6, "{x} {y}: {off}");
    }
}
