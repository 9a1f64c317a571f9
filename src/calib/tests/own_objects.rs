//! Calibrations of one arm of a scene that two arms share change the numbers of that arm alone.

use std::sync::Arc;

use nalgebra::distance;

use super::*;
use base::units::JointVector;
use scene::{Scene, SharedScene};

fn simulated() -> CalibrationOrigin {
    CalibrationOrigin {
        simulated: Some(true),
        ..CalibrationOrigin::default()
    }
}

/// A node whose scenes are in a folder, and both parts of one of them.
struct Pair {
    folder: tempfile::TempDir,
    library: SceneLibrary,
    name: &'static str,
}

impl Pair {
    fn new(name: &'static str, file: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let scenes = folder.path().join("scenes");
        std::fs::create_dir_all(&scenes).unwrap();
        std::fs::write(scenes.join(format!("{name}.toml")), file).unwrap();
        let library = SceneLibrary::new(Some(scenes));
        Self {
            folder,
            library,
            name,
        }
    }

    fn shared(&self) -> SharedScene {
        self.library.shared(self.name, None).unwrap()
    }

    fn part(&self, arm: usize) -> Arc<Scene> {
        Arc::clone(&self.shared().parts[arm].scene)
    }

    fn file(&self) -> toml::Table {
        let path = self
            .library
            .folder()
            .unwrap()
            .join(format!("{}.toml", self.name));
        std::fs::read_to_string(path).unwrap().parse().unwrap()
    }

    /// Writes values of the right arm's part.
    fn write(&self, kind: CalibrationKind, name: &str, new: FileValues) {
        let store = CalibrationStore::of_state(self.folder.path(), &self.library);
        let desk = CalibrationDesk {
            store: &store,
            library: &self.library,
            at_ms: 0,
            arms: &|_| Vec::new(),
        };
        let mut session = begin_session(kind, &self.part(1), None, simulated()).unwrap();
        name.clone_into(&mut session.name);
        let record = CalibrationRecord {
            number: 1,
            at_ms: 0,
            method: String::new(),
            servos: String::new(),
            verdict: FitVerdict::Good,
            reasons: Vec::new(),
            residuals_mm: Vec::new(),
            old: FileValues::new(),
            new,
            session,
        };
        let lock = store.lock().unwrap();
        desk.write(&record, None, &lock).unwrap();
    }
}

const SHIPPED: &str = include_str!("../../../scenes/two_arms.toml");
const DIPS: &str = include_str!("../../../scenes/two_arms_dips.toml");

fn value(key: &str, numbers: &[f64]) -> FileValues {
    [(key.to_owned(), numbers.to_vec())].into()
}

/// The one that was taught comes where it was taught, and everything of the other arm stays.
#[test]
fn what_one_arm_is_taught_changes_nothing_of_the_other() {
    let pair = Pair::new("two_arms_dips", DIPS);
    let (before, left) = (pair.file(), pair.part(0));
    let rim_m = pair.part(1).inks[1].rim_m + Vector3::new(0.002, -0.003, 0.001);
    pair.write(
        CalibrationKind::Cap,
        "right",
        value("rim_m", rim_m.coords.as_slice()),
    );
    let rest_rad = [1.8, -1.5, 1.2, 0.8, 0.0487];
    pair.write(CalibrationKind::Pose, "rest", value("rest_rad", &rest_rad));
    let sheet_m = pair.part(1).surface.flat().translation.vector + Vector3::new(0.0, 0.0, -0.002);
    pair.write(
        CalibrationKind::Sheet,
        "",
        value("origin_m", sheet_m.as_slice()),
    );
    let right = pair.part(1);
    assert!(distance(&right.inks[1].rim_m, &rim_m) < 2e-6);
    assert_eq!(right.rest_rad, JointVector::from_slice(&rest_rad));
    let flat_m = right.surface.flat().translation.vector;
    assert!((flat_m - sheet_m).norm() < 2e-6);
    let (after, now) = (pair.file(), pair.part(0));
    assert_eq!(after["arms"][0], before["arms"][0]);
    assert_eq!(after["inks"][0], before["inks"][0]);
    assert_eq!(after["sheet"], before["sheet"]);
    assert_eq!(now.surface.flat(), left.surface.flat());
    assert_eq!(now.rest_rad, left.rest_rad);
    assert_eq!(now.inks[0].rim_m, left.inks[0].rim_m);
}

#[test]
fn what_both_arms_go_by_is_not_calibrated_for_one_of_them() {
    let both = SHIPPED.replace("pens = [\"right\"]", "pens = [\"right\", \"left\"]");
    let one_cap = DIPS.replace("ink = \"right\"", "ink = \"left\"");
    for (name, file, kind, pen, cap, is_shared) in [
        (
            "two_arms",
            both.as_str(),
            CalibrationKind::Tool,
            "left",
            "",
            true,
        ),
        ("two_arms", &both, CalibrationKind::Tool, "right", "", false),
        (
            "two_arms",
            SHIPPED,
            CalibrationKind::Tool,
            "right",
            "",
            false,
        ),
        (
            "two_arms",
            SHIPPED,
            CalibrationKind::Sheet,
            "right",
            "",
            false,
        ),
        (
            "two_arms",
            SHIPPED,
            CalibrationKind::Bases,
            "right",
            "",
            false,
        ),
        (
            "two_arms",
            SHIPPED,
            CalibrationKind::Zeros,
            "right",
            "",
            true,
        ),
        (
            "two_arms",
            SHIPPED,
            CalibrationKind::Play,
            "right",
            "",
            true,
        ),
        (
            "two_arms",
            SHIPPED,
            CalibrationKind::Calibrator,
            "right",
            "",
            true,
        ),
        (
            "two_arms_dips",
            &one_cap,
            CalibrationKind::Cap,
            "right",
            "left",
            true,
        ),
        (
            "two_arms_dips",
            DIPS,
            CalibrationKind::Cap,
            "right",
            "right",
            false,
        ),
    ] {
        let scene = Pair::new(name, file).part(1);
        let checked = check_own(kind, &scene, pen, cap);
        let is_refused = matches!(checked, Err(AssessError::OfOtherArm { .. }));
        assert_eq!(is_refused, is_shared, "{kind:?} {pen} {cap}: {checked:?}");
    }
    let alone = SceneLibrary::new(None).scene("default", None).unwrap();
    for kind in [CalibrationKind::Zeros, CalibrationKind::Calibrator] {
        check_own(kind, &alone, "", "").unwrap();
    }
}

/// A sheet that one arm found 20 mm aside: its base stands elsewhere, or the sheet has moved.
#[test]
fn a_sheet_that_two_arms_have_in_different_places_is_disputed() {
    for (aside_m, is_disputed) in [(0.0, false), (0.006, false), (0.0075, true), (0.02, true)] {
        let pair = Pair::new("two_arms", SHIPPED);
        let found_m = pair.part(1).surface.flat().translation.vector;
        let found_m = found_m + Vector3::new(aside_m, 0.0, 0.0);
        pair.write(
            CalibrationKind::Sheet,
            "",
            value("origin_m", found_m.as_slice()),
        );
        let dispute = pair.shared().sheet_dispute();
        assert_eq!(dispute.is_some(), is_disputed, "{aside_m}: {dispute:?}");
    }
}
