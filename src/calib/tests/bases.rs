//! Bases of two arms, found from places that both tips touched.

use nalgebra::{IsometryMatrix3, Point3, Vector3};

use super::Chance;
use super::kept::{hand, practice};
use crate::*;
use scene::{BasePlace, SceneLibrary, ScenePart, SharedScene};

/// Points in the frame that both arms share, in metres.
const POINTS_M: [[f64; 3]; 6] = [
    [-0.05, -0.06, 0.005],
    [0.05, -0.06, 0.005],
    [0.05, 0.06, 0.005],
    [-0.05, 0.06, 0.005],
    [0.0, 0.0, 0.03],
    [0.02, -0.03, 0.02],
];

fn two_arms() -> SharedScene {
    SceneLibrary::new(None).shared("two_arms", None).unwrap()
}

/// Returns the right arm's place in the scene, moved by millimetres and turned by degrees.
fn moved(shared: &SharedScene, mm: [f64; 3], yaw_deg: f64, tilt_deg: [f64; 2]) -> BasePlace {
    let old = BasePlace::of(&shared.parts[1].base);
    BasePlace {
        at_m: [0, 1, 2].map(|axis| old.at_m[axis] + mm[axis] / 1e3),
        yaw_deg: old.yaw_deg + yaw_deg,
        tilt_deg,
    }
}

/// Returns the joints rounded to what servos count.
fn counted(touch: TouchContact) -> TouchContact {
    let count_rad = std::f64::consts::TAU / 4096.0;
    let counts = touch
        .joints_rad
        .iter()
        .map(|q| (q / count_rad).round() * count_rad);
    TouchContact {
        joints_rad: counts.collect(),
        ..touch
    }
}

/// Has both arms touch points of the common frame, three times each; the right one stands where `truth` says.
fn touches(
    shared: &SharedScene,
    truth: &BasePlace,
    role: TouchRole,
    points_m: &[[f64; 3]],
    seed: u64,
) -> Vec<TouchContact> {
    let bases = [shared.parts[0].base, truth.pose()];
    let mut all = Vec::new();
    for (part, base) in shared.parts.iter().zip(bases) {
        let mut hand = hand(&part.scene, seed);
        for (index, at_m) in points_m.iter().enumerate() {
            let own_m = base.inverse() * Point3::from(*at_m);
            all.extend((0..3).map(|_| TouchContact {
                arm: part.arm_name().to_owned(),
                number: index + 1,
                zeros: zeros_of(&part.scene.arm.file),
                ..counted(hand.touch(own_m, role))
            }));
        }
    }
    all
}

fn session(shared: &SharedScene, touches: Vec<TouchContact>) -> CalibrationSession {
    let fresh = begin_session(
        CalibrationKind::Bases,
        &shared.parts[0].scene,
        None,
        practice(),
    );
    CalibrationSession {
        scene: shared.name.clone(),
        touches,
        ..fresh.unwrap()
    }
}

fn value<'a>(values: &'a FileValues, key: &str) -> &'a [f64] {
    values
        .get(key)
        .unwrap_or_else(|| panic!("{key}: {values:?}"))
}

/// Returns the right arm's base as proposed.
fn proposed(assessed: &TouchAssessment) -> IsometryMatrix3<f64> {
    let of = |key: &str| value(&assessed.new, &format!("{key} of arm right")).to_vec();
    let place = BasePlace {
        at_m: of("base_m").try_into().unwrap(),
        yaw_deg: of("base_yaw_deg")[0],
        tilt_deg: of("base_tilt_deg").try_into().unwrap(),
    };
    place.pose()
}

fn apart_mm(assessed: &TouchAssessment) -> f64 {
    value(&assessed.new, "uncertainty_mm of arm right")[0]
}

/// Returns how far a proposed base puts points of the right arm over the sheet from where they are, along and across it.
fn errors_mm(
    found: &IsometryMatrix3<f64>,
    truth: &BasePlace,
) -> impl Iterator<Item = Vector3<f64>> {
    let between = found * truth.pose().inverse();
    let at = |step: u32| f64::from(step) * 0.1 - 0.2;
    let points =
        (0..125).map(move |n| Point3::new(at(n % 5), at(n / 5 % 5), f64::from(n / 25) * 0.08));
    points.map(move |at_m| (between * at_m - at_m) * 1e3)
}

#[test]
fn points_that_both_tips_touched_tell_all_of_a_base_within_the_uncertainty() {
    let shared = two_arms();
    let mut beyond = 0;
    for seed in 0..12 {
        let mut chance = Chance(seed);
        let mut within = |mm: f64| chance.within(mm);
        let truth = moved(
            &shared,
            [within(8.0), within(8.0), within(4.0)],
            within(2.0),
            [within(1.0), within(1.0)],
        );
        let touched = touches(&shared, &truth, TouchRole::Point, &POINTS_M, seed);
        let assessed = assess_bases(&session(&shared, touched), &shared).unwrap();
        assert!(
            assessed.finding.verdict <= FitVerdict::Usable,
            "{:?}",
            assessed.finding
        );
        let uncertainty_mm = apart_mm(&assessed);
        // Half a count of one joint at arm's length is 0.2 mm.
        assert!((0.2..6.0).contains(&uncertainty_mm), "{uncertainty_mm}");
        assert_eq!(value(&assessed.new, "uncertainty_mm of arm left"), [0.0]);
        let worst_mm = errors_mm(&proposed(&assessed), &truth)
            .map(|off| off.norm())
            .fold(0.0, f64::max);
        beyond += usize::from(worst_mm > uncertainty_mm);
        assert!(
            worst_mm < 2.0 * uncertainty_mm,
            "{seed}: {worst_mm} {uncertainty_mm}"
        );
    }
    assert!(beyond <= 1, "{beyond}");
}

/// Touches of a flat sheet are the same wherever along it the other base stands.
#[test]
fn a_sheet_tells_height_and_lean_and_leaves_the_rest_and_its_uncertainty() {
    let shared = two_arms();
    let places: Vec<[f64; 3]> = (0..9_u32)
        .map(|n| {
            [
                f64::from(n % 3) * 0.05 - 0.05,
                f64::from(n / 3) * 0.06 - 0.06,
                0.005,
            ]
        })
        .collect();
    for seed in 0..6 {
        let mut chance = Chance(seed);
        let mut within = |mm: f64| chance.within(mm);
        let truth = moved(
            &shared,
            [0.0, 0.0, within(3.0)],
            0.0,
            [within(0.8), within(0.8)],
        );
        let touched = touches(&shared, &truth, TouchRole::Sheet, &places, seed);
        let assessed = assess_bases(&session(&shared, touched), &shared).unwrap();
        assert_eq!(
            assessed.finding.verdict,
            FitVerdict::Usable,
            "{:?}",
            assessed.finding
        );
        let found = proposed(&assessed);
        let bound_mm = assessed
            .figures
            .iter()
            .find(|(name, _)| name == "right_uncertainty_mm")
            .unwrap()
            .1;
        let worst_mm = errors_mm(&found, &truth)
            .map(|off| off.z.abs())
            .fold(0.0, f64::max);
        assert!(worst_mm <= bound_mm, "{seed}: {worst_mm} {bound_mm}");
        // What was not measured is not known better.
        assert!(apart_mm(&assessed) >= 3.0);
        assert!(!assessed.new.contains_key("uncertainty_mm of arm left"));
    }
}

#[test]
fn what_is_too_little_or_contradicts_itself_is_not_accepted() {
    let shared = two_arms();
    let truth = moved(&shared, [3.0, 0.0, 0.0], 0.0, [0.0; 2]);
    let good = touches(&shared, &truth, TouchRole::Point, &POINTS_M, 1);
    let verdict = |touches: Vec<TouchContact>| {
        let assessed = assess_bases(&session(&shared, touches), &shared).unwrap();
        assert_eq!(
            assessed.new.is_empty(),
            assessed.finding.verdict == FitVerdict::Redo
        );
        assessed.finding.verdict
    };
    assert_ne!(verdict(good.clone()), FitVerdict::Redo);
    let left_alone = good.iter().filter(|touch| touch.arm == "left");
    assert_eq!(verdict(left_alone.cloned().collect()), FitVerdict::Redo);
    let three = good.iter().filter(|touch| touch.number <= 3);
    assert_eq!(verdict(three.cloned().collect()), FitVerdict::Redo);
    // The right arm touched another point in the place of one.
    let swapped = good.iter().cloned().map(|mut touch| {
        if touch.arm == "right" {
            touch.number = [1, 3, 2, 4, 5, 6][touch.number - 1];
        }
        touch
    });
    assert_eq!(verdict(swapped.collect()), FitVerdict::Redo);
    let line: Vec<[f64; 3]> = (0..5_u32)
        .map(|n| [f64::from(n) * 0.03 - 0.06, 0.0, 0.005])
        .collect();
    let on_a_line = touches(&shared, &truth, TouchRole::Point, &line, 1);
    assert_eq!(verdict(on_a_line), FitVerdict::Redo);
    let mut of_other_zeros = good;
    of_other_zeros[0].zeros.push('x');
    let refused = assess_bases(&session(&shared, of_other_zeros), &shared);
    assert!(matches!(
        refused,
        Err(AssessError::OtherZeros { number: 1, .. })
    ));
    let alone = SharedScene::of_one((*shared.parts[0].scene).clone());
    let refused = assess_bases(&session(&shared, Vec::new()), &alone);
    assert!(matches!(refused, Err(AssessError::OneArm)));
}

/// A base that stands farther off than the scene says it may be is named with both places; one within it is not.
#[test]
fn a_base_beyond_the_stated_uncertainty_contradicts_the_scene() {
    let shared = two_arms();
    for (mm, contradicts) in [(1.0, false), (12.0, true)] {
        let truth = moved(&shared, [0.0, mm, 0.0], 0.0, [0.0; 2]);
        let touched = touches(&shared, &truth, TouchRole::Point, &POINTS_M, 2);
        let session = session(&shared, touched);
        let reason = bases_contradiction(&session, &shared).unwrap();
        assert_eq!(reason.is_some(), contradicts, "{mm}: {reason:?}");
        let named = reason.unwrap_or_default();
        let both = named.contains("[0.1870, 0.0000, 0.0000]") && named.contains("[0.18");
        assert_eq!(both, contradicts, "{named}");
    }
}

/// The file that is written says what was proposed, its comments stay, and later zeros make it out of date.
#[test]
fn accepted_bases_are_written_and_rest_on_tips_and_zeros() {
    let folder = tempfile::tempdir().unwrap();
    let library = SceneLibrary::new(Some(folder.path().join("scenes")));
    let store = CalibrationStore::of_state(folder.path(), &library);
    let arms = |_: &arm::ArmFile| vec![practice()];
    let desk = CalibrationDesk {
        store: &store,
        library: &library,
        at_ms: 1,
        arms: &arms,
    };
    let shared = two_arms();
    let truth = moved(&shared, [2.0, -3.0, 1.0], 0.8, [0.3, -0.2]);
    let by_hand = touches(&shared, &truth, TouchRole::Point, &POINTS_M, 3);
    // Each arm's touches come with its own part of the scene.
    for touch in by_hand {
        let part = shared
            .parts
            .iter()
            .find(|part| part.arm_name() == touch.arm)
            .unwrap();
        let fresh = begin_session(CalibrationKind::Bases, &part.scene, None, practice()).unwrap();
        let request = HandTouch {
            number: touch.number,
            ..HandTouch::default()
        };
        desk.add_touch(fresh, &request, touch.joints_rad).unwrap();
    }
    let proposal = desk.proposal().unwrap();
    assert_eq!(
        (proposal.scene.as_str(), proposal.touches.len()),
        ("two_arms", 36)
    );
    let assessed = desk.assess(&proposal).unwrap();
    let shown = proposal_key(&proposal, &assessed);
    let accepted = desk
        .accept(AcceptConsent {
            shown: &shown,
            overridden: false,
        })
        .unwrap();
    let text = std::fs::read_to_string(&accepted.path).unwrap();
    assert!(text.contains("# Two arms face each other"), "{text}");
    let now = library.shared("two_arms", None).unwrap();
    let part = |shared: &SharedScene, index: usize| -> ScenePart { shared.parts[index].clone() };
    assert_eq!(part(&now, 0).base, part(&shared, 0).base);
    let off = part(&now, 1).base.to_homogeneous() - proposed(&assessed).to_homogeneous();
    assert!(off.norm() < 1e-5, "{off}");
    let beside = &part(&now, 0).scene.beside[0];
    assert!((beside.uncertainty_m * 1e3 - apart_mm(&assessed)).abs() < 1e-9);
    let history = store.history().unwrap();
    assert_eq!(stale_bases(&history, &now, Some(&practice())), None);
    let on_port = CalibrationOrigin {
        simulated: Some(false),
        ..practice()
    };
    assert!(stale_bases(&history, &now, Some(&on_port)).is_some());
    let longer = text.replacen("tip_m = [0.0, -0.038637", "tip_m = [0.0, -0.039637", 1);
    std::fs::write(&accepted.path, &longer).unwrap();
    let changed = library.shared("two_arms", None).unwrap();
    assert!(stale_bases(&history, &changed, Some(&practice())).is_some());
    // Bases that a person has edited since are that person's.
    assert!(longer.contains("base_m = [0.18"), "{longer}");
    let edited = longer.replacen("base_m = [0.18", "base_m = [0.17", 1);
    std::fs::write(&accepted.path, edited).unwrap();
    let edited = library.shared("two_arms", None).unwrap();
    assert_eq!(stale_bases(&history, &edited, Some(&practice())), None);
    let same_place = touches_of_place(&proposal, &part(&now, 0).scene, 0);
    assert_eq!(same_place, [0, 1, 2]);
}
