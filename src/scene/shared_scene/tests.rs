//! Scenes of several arms: what each arm sees, which strokes it may draw, and what is refused.

use nalgebra::{IsometryMatrix3, Point3, Vector3};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;
use crate::{SceneError, SceneLibrary};

const SHIPPED: &str = include_str!("../../../scenes/two_arms.toml");

/// Loads a changed copy of the shipped scene.
fn changed(change: impl Fn(&str) -> String) -> Result<SharedScene, SceneError> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("two_arms.toml"), change(SHIPPED)).unwrap();
    SceneLibrary::new(Some(folder.path().to_owned())).shared("two_arms", None)
}

fn refusal(change: impl Fn(&str) -> String) -> String {
    changed(change).unwrap_err().to_string()
}

#[test]
fn each_arm_sees_the_same_sheet_and_the_other_arm_beside_it() {
    let shared = changed(str::to_owned).unwrap();
    assert_eq!(shared.arm_names(), ["left", "right"]);
    let [left, right] = &shared.parts[..] else {
        unreachable!("{:?}", shared.arm_names())
    };
    for at_mm in [[0.0, 0.0], [210.0, 0.0], [30.0, 200.0]] {
        let [one, other] =
            [left, right].map(|part| part.base * part.scene.surface.at(at_mm).point_m);
        assert!((one - other).norm() < 2e-9, "{one} {other}");
        let expected = Point3::new(at_mm[0] / 1e3 - 0.105, at_mm[1] / 1e3 - 0.1485, 0.005);
        assert!((one - expected).norm() < 2e-9, "{one}");
    }
    for (own, other) in [(left, right), (right, left)] {
        let [beside] = &own.scene.beside[..] else {
            unreachable!("{:?}", own.scene.beside)
        };
        assert_eq!(beside.name, other.arm_name());
        assert_eq!(beside.pens.len(), 1);
        let apart = own.base * beside.base_in_ours * other.base.inverse();
        assert!(
            (apart.to_homogeneous() - IsometryMatrix3::identity().to_homogeneous()).norm() < 1e-12
        );
        assert!((beside.uncertainty_m - 0.006).abs() < 1e-12);
        assert!(
            (beside.base_in_ours.translation.vector - Vector3::new(0.0, -0.374, 0.0)).norm()
                < 1e-12
        );
    }
    assert_ne!(left.scene.revision, right.scene.revision);
}

#[test]
fn a_scene_of_one_arm_is_shared_by_that_arm() {
    let library = SceneLibrary::new(None);
    let (scene, shared) = (
        library.scene("two_pens", None).unwrap(),
        library.shared("two_pens", None).unwrap(),
    );
    assert_eq!(shared.parts.len(), 1);
    assert_eq!(shared.parts[0].scene.revision, scene.revision);
    assert!(shared.parts[0].scene.beside.is_empty());
    let strokes = shared.strokes.iter().map(|shared| &shared.stroke);
    assert!(strokes.eq(&scene.strokes));
    assert!(
        shared
            .strokes
            .iter()
            .all(|one| one.pens == [Some(one.stroke.pen)])
    );
}

/// One pen of the file may be held by both, or each holds its own; only a named pen is one arm's.
#[test]
fn a_stroke_goes_to_every_arm_with_a_pen_that_draws_like_its_own() {
    let both = changed(str::to_owned).unwrap();
    assert!(both.strokes.len() > 10);
    assert!(
        both.strokes
            .iter()
            .all(|stroke| stroke.pens == [Some(0), Some(0)])
    );
    let red = |text: &str| {
        let (head, tail) = text.rsplit_once("#1a1a2e").unwrap();
        format!("{head}#c0392b{tail}").replace("rings.svg", "two_colours.svg")
    };
    let by_colour = changed(red).unwrap();
    for stroke in &by_colour.strokes {
        let own = [Some(0), None];
        let expected = if stroke.stroke.pen == 0 {
            own
        } else {
            [own[1], own[0]]
        };
        assert_eq!(stroke.pens, expected);
    }
    let drawn: usize = by_colour
        .parts
        .iter()
        .map(|part| part.scene.strokes.len())
        .sum();
    assert_eq!(drawn, by_colour.strokes.len());
    let polyline = "polylines = [[[0, 0], [10, 0]]]";
    let held_by_both = |text: &str| {
        let one_pen = text.rsplit_once("[[pens]]").unwrap().0;
        let held = one_pen.replace("pens = [\"right\"]", "pens = [\"left\"]");
        held.replace("file = \"rings.svg\"", polyline)
    };
    let shared = changed(held_by_both).unwrap();
    assert_eq!(shared.strokes[0].pens, [Some(0), Some(0)]);
}

#[test]
fn a_named_pen_is_drawn_by_the_arm_that_holds_it() {
    let folder = tempfile::tempdir().unwrap();
    let design =
        r#"{"strokes": [{"pen": 2, "points": [[0, 0], [9, 0]]}, {"points": [[0, 5], [9, 5]]}]}"#;
    std::fs::write(folder.path().join("list.json"), design).unwrap();
    let scene = SHIPPED.replace("rings.svg", "list.json");
    std::fs::write(folder.path().join("two_arms.toml"), scene).unwrap();
    let library = SceneLibrary::new(Some(folder.path().to_owned()));
    let shared = library.shared("two_arms", None).unwrap();
    let pens: Vec<_> = shared
        .strokes
        .iter()
        .map(|stroke| &stroke.pens[..])
        .collect();
    assert_eq!(pens, [[None, Some(0)], [Some(0), Some(0)]]);
}

#[test]
fn what_needs_one_arm_is_told_the_arms_and_lists_leave_the_scene_out() {
    let library = SceneLibrary::new(None);
    let error = library.scene("two_arms", None).unwrap_err();
    assert!(
        matches!(&error, SceneError::SeveralArms { arms, .. } if arms == &["left", "right"]),
        "{error}"
    );
    assert!(!library.scenes().contains(&"two_arms".to_owned()));
    assert!(library.shared_scenes().contains(&"two_arms".to_owned()));
    assert!(
        !library
            .scenes_for(&["so101"])
            .contains(&"two_arms".to_owned())
    );
    let one = |text: &str| {
        let (head, tail) = text.split_once("[[arms]]\nname = \"right\"").unwrap();
        let pens = tail.split_once("# Two pens").unwrap().1;
        let pens = pens.rsplit_once("[[pens]]").unwrap().0;
        format!("{head}# Two pens{pens}")
    };
    assert_eq!(changed(one).unwrap().arm_names(), ["left"]);
}

#[test]
fn everything_wrong_with_its_arms_is_refused_by_its_name() {
    let replaced = |from: &'static str, to: &'static str| {
        move |text: &str| {
            assert!(text.contains(from), "{from}");
            text.replacen(from, to, 1)
        }
    };
    for (from, to, expected) in [
        ("[design]", "arm = \"so101\"\n[design]", "remove `arm`"),
        ("[design]", "frame = \"foot\"\n[design]", "remove `frame`"),
        (
            "[design]",
            "pen_change = \"by_hand\"\n[design]",
            "scene of one arm",
        ),
        (
            "[sheet]",
            "[poses]\nrest_rad = []\nready_rad = []\n[sheet]",
            "remove `[poses]`",
        ),
        (
            "name = \"right\"\nmodel",
            "name = \"left\"\nmodel",
            "two arms have the name `left`",
        ),
        (
            "name = \"right\"\nmodel",
            "name = \" \"\nmodel",
            "control character",
        ),
        (
            "pens = [\"right\"]",
            "pens = [\"blue\"]",
            "arm `right` names pen `blue`",
        ),
        ("pens = [\"right\"]", "pens = []", "arm `right` has no pen"),
        (
            "pens = [\"right\"]",
            "pens = [\"left\"]",
            "pen `right` belongs to no arm",
        ),
        ("base_m = [0.187,", "base_m = [155,", "metres"),
        (
            "pens = [\"right\"]",
            "pens = [\"right\"]\nuncertainty_mm = 51",
            "uncertainty_mm",
        ),
        (
            "base_yaw_deg = -90.0",
            "base_yaw_deg = -900.0",
            "base_yaw_deg",
        ),
        (
            "base_yaw_deg = -90.0",
            "base_tilt_deg = [0.0, 11.0]",
            "base_tilt_deg",
        ),
        ("model = \"so101\"", "model = \"so999\"", "so999"),
    ] {
        let message = refusal(replaced(from, to));
        assert!(message.contains(expected), "{to}: {message}");
    }
    let alone = "name = \"x\"\nabout = \"x\"\n[design]\ntext = \"a\"\n[sheet]\norigin_m = [0, 0, 0]\nx_axis = [1, 0, 0]\ny_axis = [0, 1, 0]\nsize_mm = [10, 10]\n[[pens]]\nname = \"p\"\ntip_m = [0, 0, 0]\naxis = [0, 0, 1]\n";
    let error = SceneLibrary::new(None)
        .scene_from_text("x", alone)
        .unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("`arm`") && message.contains("`poses`"),
        "{message}"
    );
}

#[test]
fn a_workspace_never_grows_and_stays_the_same_where_its_sides_stay_parallel() {
    let limits =
        "[limits]\nworkspace = { min_m = [-0.3, -0.4, -0.003], max_m = [0.2, 0.4, 0.5] }\n[sheet]";
    let shared = changed(|text| text.replace("[sheet]", limits)).unwrap();
    let workspaces = [0, 1].map(|part| shared.parts[part].scene.limits.workspace);
    let expected = [
        ([-0.4, -0.387, -0.003], [0.4, 0.113, 0.5]),
        ([-0.4, -0.487, -0.003], [0.4, 0.013, 0.5]),
    ];
    for (workspace, (min_m, max_m)) in workspaces.into_iter().zip(expected) {
        assert!(
            (workspace.min_m - Point3::from(min_m)).norm() < 1e-9,
            "{workspace:?}"
        );
        assert!(
            (workspace.max_m - Point3::from(max_m)).norm() < 1e-9,
            "{workspace:?}"
        );
    }
    for turned in ["-88.5", "-91.0\nbase_tilt_deg = [0.6, -0.4]"] {
        let shared = changed(|text| {
            text.replace("[sheet]", &limits.replace("-0.003", "-0.05"))
                .replace("= -90.0", &format!("= {turned}"))
        });
        let shared = shared.unwrap();
        let workspace = shared.parts[1].scene.limits.workspace;
        for corner in 0..8_usize {
            let at = |axis: usize| match corner >> axis & 1 {
                0 => workspace.min_m[axis],
                _ => workspace.max_m[axis],
            };
            let common = shared.parts[1].base * Point3::new(at(0), at(1), at(2));
            let inside = (0..3).all(|axis| {
                let (low, high) = ([-0.3, -0.4, -0.05][axis], [0.2, 0.4, 0.5][axis]);
                (low - 2e-9..=high + 2e-9).contains(&common[axis])
            });
            assert!(inside, "{turned}: {common}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    /// However the bases stand, a keep-out holds all that it held in the common frame, for every arm.
    #[test]
    fn a_keep_out_never_shrinks(
        at in [-0.5..0.5_f64, -0.5..0.5_f64], yaw_deg in -180.0..180.0_f64,
        corner in [-0.9..-0.7_f64, -0.9..-0.7_f64], inside in prop::array::uniform3(0.0..1.0_f64),
    ) {
        let [x, y] = corner;
        let text = SHIPPED
            .replace("base_m = [-0.187, 0.0, 0.0]", &format!("base_m = [{}, {}, 0.0]", at[0], at[1]))
            .replace("base_yaw_deg = 90.0", &format!("base_yaw_deg = {yaw_deg:?}"));
        let lamp = format!("\n[[keep_outs]]\nname = \"lamp\"\nmin_m = [{x:?}, {y:?}, 0.0]\nmax_m = [{:?}, {:?}, 0.3]\n", x + 0.1, y + 0.05);
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("two_arms.toml"), text + &lamp).unwrap();
        let library = SceneLibrary::new(Some(folder.path().to_owned()));
        // The lamp may stand on the arm at rest.
        if let Ok(shared) = library.shared("two_arms", None) {
            let common = Point3::new(x + 0.1 * inside[0], y + 0.05 * inside[1], 0.3 * inside[2]);
            for part in &shared.parts {
                let own = part.base.inverse() * common;
                let lamp = &part.scene.keep_outs[0];
                prop_assert!(lamp.corners.distance_m(&own) <= 2e-9, "{own} {lamp:?}");
            }
        }
    }
}
