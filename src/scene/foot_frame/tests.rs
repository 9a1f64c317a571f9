//! Files of before, as they are read and rewritten.

use super::super::SceneLibrary;
use arm::{ArmFile, ArmModel};
use base::units::JointVector;
use nalgebra::Point3;

/// The SO-101's file as it was before frames were named, with zeros of its own.
fn arm_of_before() -> String {
    let now = include_str!("../../../scenes/arms/so101.toml");
    let mut text = now.to_owned();
    for (now, before) in [
        ("frame = \"foot\"\n", ""),
        ("[frame_before]\n", ""),
        ("origin_m = [-0.0207909, 0.0488745, -0.0300817]\n", ""),
        ("zeros_rad = { wrist_roll = 0.0486795 }\n", ""),
        (
            "[0.0, 0.0258, 0.0648]",
            "[0.0207909, -0.0230745, 0.0948817]",
        ),
        ("0.0486795, 3.14", "0.0, 3.14"),
        (
            "lower_rad = -2.74385\nupper_rad = 2.84121",
            "lower_rad = -2.79253\nupper_rad = 2.79253",
        ),
        (
            "id = 5, sign = 1, zero_tick = 2048",
            "id = 5, sign = 1, zero_tick = 2091",
        ),
    ] {
        assert!(text.contains(now), "{now}");
        text = text.replacen(now, before, 1);
    }
    text
}

/// A scene from before frames were named.
const SCENE_OF_BEFORE: &str = r##"
name = "old"
about = "A sheet of before"
arm = "so101"   # mine
calibrator_m = [-0.06, -0.20, 0.03]

[design]
text = "a"
size_mm = 20

[sheet]
origin_m = [0.0708, -0.1731, 0.005]   # by ruler
x_axis = [-1, 0, 0]
y_axis = [0, -1, 0]
size_mm = [100, 100]

[[pens]]
name = "fineliner"
tip_m = [0.0, -0.038637, -0.010353]
axis = [0.0, -0.965926, -0.258819]
ink = "black"

[[inks]]
name = "black"
rim_m = [0.10, -0.20, 0.025]
depth_mm = 12
dip_every_mm = 400

[[keep_outs]]
name = "wall"
min_m = [0.3, -0.5, 0]
max_m = [0.4, 0.5, 0.5]

[poses]
rest_rad = [0, -1.5, 1.2, 0.8, 0]
ready_rad = [-0.0020, -0.2344, 0.3043, 1.2391, 0.0]
"##;

/// Where the origin of before lies.
const MOVED_M: [f64; 3] = [-0.020_790_9, 0.048_874_5, -0.030_081_7];

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("arms")).unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn library(folder: &tempfile::TempDir) -> SceneLibrary {
    SceneLibrary::new(Some(folder.path().to_owned()))
}

#[test]
fn an_arm_of_before_stands_where_its_servos_say() {
    let text = arm_of_before();
    let then = ArmModel::new(toml::from_str::<ArmFile>(&text).unwrap()).unwrap();
    let now = library(&folder(&[("arms/so101.toml", &text)]))
        .arm("so101")
        .unwrap();
    let tip = |arm: &ArmModel, counts: [i32; 5]| {
        let angles = arm.servos().zip(counts);
        let angles: Vec<f64> = angles
            .map(|((_, servo), count)| servo.angle_rad(count))
            .collect();
        let mount = arm.chain.forward(&JointVector::from_slice(&angles));
        mount * Point3::new(0.02, -0.038, 0.01)
    };
    for counts in [
        [2048; 5],
        [1500, 1300, 2500, 2900, 3300],
        [2500, 1100, 1700, 1300, 900],
    ] {
        let moved_m = tip(&now, counts) - tip(&then, counts);
        let off_m = (moved_m - nalgebra::Vector3::from(MOVED_M)).norm();
        // A quarter of a count is lost where a zero is rounded.
        assert!(off_m < 2e-5, "{counts:?}: {off_m}");
    }
    assert_eq!(now.file.servos_before(), then.file.servos_before());
    assert!((now.limits.lower_rad[4] - then.limits.lower_rad[4] - 0.048_679_5).abs() < 1e-9);
    assert!(now.capsules[0].to_m != then.capsules[0].to_m);
    assert!(now.capsules.last().unwrap().to_m == then.capsules.last().unwrap().to_m);
}

#[test]
fn a_scene_of_before_lies_where_it_lay_and_says_so_once() {
    for (arm, in_files) in [
        (None, "old.toml"),
        (Some(arm_of_before()), "old.toml and arms/so101.toml"),
    ] {
        let mut files = vec![("old.toml", SCENE_OF_BEFORE)];
        files.extend(arm.as_ref().map(|arm| ("arms/so101.toml", arm.as_str())));
        let scene = library(&folder(&files)).scene("old", None).unwrap();
        let is_at = |point_m: &Point3<f64>, then_m: [f64; 3]| {
            let expected = Point3::from(then_m) + nalgebra::Vector3::from(MOVED_M);
            assert!((point_m - expected).norm() < 1e-9, "{point_m}");
        };
        is_at(
            &scene.surface.at([0.0, 0.0]).point_m,
            [0.0708, -0.1731, 0.005],
        );
        is_at(&scene.calibrator_m.unwrap(), [-0.06, -0.20, 0.03]);
        is_at(&scene.inks[0].rim_m, [0.10, -0.20, 0.025]);
        is_at(&scene.keep_outs[0].corners.min_m, [0.3, -0.5, 0.0]);
        assert!((scene.limits.workspace.min_m.z - (MOVED_M[2] - 0.003)).abs() < 1e-9);
        assert!((scene.rest_rad[4] - 0.048_679_5).abs() < 1e-9);
        let notes = scene
            .notes
            .iter()
            .filter(|note| note.contains("no `frame`"));
        let notes: Vec<_> = notes.collect();
        assert!(notes.len() == 1 && notes[0].contains(in_files), "{notes:?}");
    }
}

#[test]
fn a_converted_file_is_read_as_it_was_before_and_keeps_its_comments() {
    let folder = folder(&[
        ("old.toml", SCENE_OF_BEFORE),
        ("arms/so101.toml", &arm_of_before()),
    ]);
    let library = library(&folder);
    let before = library.scene("old", None).unwrap();
    for file in ["old.toml", "arms/so101.toml"] {
        let path = folder.path().join(file);
        let text = library.converted_file(&path).unwrap().unwrap();
        std::fs::write(&path, &text).unwrap();
        assert_eq!(library.converted_file(&path).unwrap(), None, "{text}");
        let comment = if file == "old.toml" {
            "# by ruler"
        } else {
            "# Kinematics"
        };
        assert!(text.contains(comment), "{text}");
    }
    let after = library.scene("old", None).unwrap();
    assert!(
        !after.notes.iter().any(|note| note.contains("frame")),
        "{:?}",
        after.notes
    );
    assert_eq!(
        after.surface.at([3.0, 4.0]).point_m,
        before.surface.at([3.0, 4.0]).point_m
    );
    assert_eq!(after.limits.workspace, before.limits.workspace);
    assert_eq!(after.ready_rad, before.ready_rad);
    assert!(after.arm.has_same_mechanics(&before.arm));
}

#[test]
fn a_scene_of_the_foot_is_refused_for_an_arm_in_another_frame() {
    let elsewhere = arm_of_before().replacen("[0.0207909, -0.0230745", "[0.5, -0.0230745", 1);
    let folder = folder(&[
        ("arms/so101.toml", &elsewhere),
        ("old.toml", SCENE_OF_BEFORE),
    ]);
    let library = library(&folder);
    let error = library.scene("default", None).unwrap_err().to_string();
    assert!(
        error.contains("`frame` is \"foot\"") && error.contains("`so101`"),
        "{error}"
    );
    // Files of before go on together: where that arm stands, its scenes know.
    let scene = library.scene("old", None).unwrap();
    assert!((scene.surface.at([0.0, 0.0]).point_m.x - 0.0708).abs() < 1e-12);
}
