//! Names of scenes as files give them, and what a library does with odd ones.

use super::{SceneLibrary, quick_arm};

#[test]
fn a_file_name_with_control_characters_is_not_a_scene() {
    let folder = tempfile::tempdir().unwrap();
    let text = include_str!("../../../scenes/default.toml");
    for name in ["fine", "\u{1b}[2J", "two\nlines"] {
        std::fs::write(folder.path().join(format!("{name}.toml")), text).unwrap();
    }
    let library = SceneLibrary::new(Some(folder.path().to_owned()));
    let names = library.scenes();
    assert!(names.contains(&"fine".to_owned()), "{names:?}");
    assert!(!names.concat().contains(char::is_control), "{names:?}");
    assert!(library.scene("two\nlines", None).is_err());
}

#[test]
fn names_that_are_not_listed_are_counted() {
    let valid: Vec<String> = (1..=15).map(|number| format!("scene{number}")).collect();
    assert!(super::list_of(&valid).ends_with(", scene12 and 3 more"));
    let few = valid.iter().take(12).cloned().collect::<Vec<_>>();
    assert!(super::list_of(&few).ends_with(", scene12"));
}

#[test]
fn a_revision_covers_play_sag_and_correction() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("arms")).unwrap();
    let (arm, scene) = (
        include_str!("../../../scenes/arms/so101.toml"),
        include_str!("../../../scenes/default.toml"),
    );
    let revision = |compensation: &str, correction: &str| {
        let sheet = "size_mm = [100.0, 100.0]";
        let scene = scene.replace(sheet, &format!("{sheet}\n{correction}"));
        std::fs::write(folder.path().join("default.toml"), scene).unwrap();
        let arm = format!("{arm}\n{compensation}");
        std::fs::write(folder.path().join("arms/so101.toml"), arm).unwrap();
        let library = SceneLibrary::new(Some(folder.path().to_owned()));
        library.scene("default", None).unwrap().revision
    };
    let play_and_sag = |play: f64, sag: f64| {
        format!(
            "[compensation]\nplay_deg = [{play:?}, 0, 0, 0, 0]\nsag_deg_per_n_m = [0, {sag:?}, 0, 0, 0]"
        )
    };
    let correction = "correction = { x_mm = [0, 1, 0, 0, 0, 0], y_mm = [0, 0, 0, 0, 0, 0] }";
    let revisions = [
        revision("", ""),
        revision(&play_and_sag(1.0, 0.1), ""),
        revision(&play_and_sag(1.1, 0.1), ""),
        revision(&play_and_sag(1.0, 0.2), ""),
        revision("", correction),
    ];
    let distinct: std::collections::HashSet<_> = revisions.iter().collect();
    assert_eq!(distinct.len(), revisions.len(), "{revisions:?}");
}

#[test]
fn an_arm_is_found_in_a_plain_line_and_nowhere_else() {
    let so101 = Some("so101");
    for (text, arm) in [
        ("name = \"a\"\narm = \"so101\" # that one\n[x]\n", so101),
        ("  arm=\"so101\"\n", so101),
        ("arms = \"x\"\narm = \"so101\"\n", so101),
        ("[x]\narm = \"so101\"\n", None),
        (
            "about = \"\"\"\narm = \"so101\"\n\"\"\"\narm = \"b\"\n",
            None,
        ),
        ("arm = 'so101'\n", None),
        ("arm = \"so\\u0031\"\n", None),
        ("# arm = \"so101\"\n", None),
    ] {
        assert_eq!(quick_arm(text), arm, "{text}");
    }
}

/// The bottle's glass as a mesh, in the frame of its sheet.
fn glass() -> String {
    use std::fmt::Write;
    let (columns, rows) = (180, 60);
    let mut text = String::new();
    for row in 0..=rows {
        for column in 0..columns {
            let angle = f64::from(column) / f64::from(columns) * std::f64::consts::TAU;
            let (x, z) = (20.0 + 45.0 * angle.sin(), 45.0 * (angle.cos() - 1.0));
            writeln!(text, "v {x} {} {z}", f64::from(row) * 2.0 - 20.0).unwrap();
        }
    }
    for row in 0..rows {
        for column in 0..columns {
            let at = |dx: i32, dy: i32| (row + dy) * columns + (column + dx) % columns + 1;
            let [a, b, c, d] = [at(0, 0), at(1, 0), at(1, 1), at(0, 1)];
            writeln!(text, "f {a} {b} {c} {d}").unwrap();
        }
    }
    text
}

const GLASS: &str = "[surface]\nmesh = \"glass.obj\"\nunit = \"mm\"\n";

/// Loads the bottle with `surface` instead of its radius, beside this mesh.
fn on_mesh(mesh: &str, surface: &str) -> Result<std::sync::Arc<crate::Scene>, crate::SceneError> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("meshes")).unwrap();
    std::fs::write(folder.path().join("meshes/glass.obj"), mesh).unwrap();
    let bottle = include_str!("../../../scenes/bottle.toml");
    let scene = bottle.replace("cylinder_radius_mm = 45.0", surface);
    std::fs::write(folder.path().join("bottle.toml"), scene).unwrap();
    SceneLibrary::new(Some(folder.path().to_owned())).scene("bottle", None)
}

#[test]
fn a_mesh_of_a_cylinder_is_drawn_on_as_the_cylinder_is() {
    let bottle = SceneLibrary::new(None).scene("bottle", None).unwrap();
    let meshed = on_mesh(&glass(), GLASS).unwrap();
    for stroke in &bottle.strokes {
        for at_mm in &stroke.points_mm {
            let [one, other] = [&bottle, &meshed].map(|scene| scene.surface.at(*at_mm));
            let off_mm = (one.point_m - other.point_m).norm() * 1e3;
            assert!(off_mm < 0.1, "{at_mm:?}: {off_mm} mm");
            assert!(one.normal.angle(&other.normal) < 0.01, "{at_mm:?}");
        }
        let distortion = meshed.surface.distortion(&stroke.points_mm);
        assert!(
            distortion.off_at_mm.is_none() && distortion.stretch < 1.01,
            "{distortion:?}"
        );
    }
}

#[test]
fn a_revision_covers_the_mesh() {
    let (mesh, other) = (glass(), glass() + "# another\n");
    let revisions = [
        on_mesh(&mesh, GLASS).unwrap().revision,
        on_mesh(&other, GLASS).unwrap().revision,
        on_mesh(&mesh, &format!("{GLASS}direction = [1, 0.1, 0]\n"))
            .unwrap()
            .revision,
    ];
    let distinct: std::collections::HashSet<_> = revisions.iter().collect();
    assert_eq!(distinct.len(), revisions.len(), "{revisions:?}");
    assert_eq!(
        &on_mesh(&mesh, GLASS).unwrap().revision,
        revisions.first().unwrap()
    );
}

#[test]
fn a_mesh_that_is_no_surface_is_refused_by_its_name() {
    let refused = |mesh: &str, surface: &str| on_mesh(mesh, surface).unwrap_err().to_string();
    let cut_off = glass().replace("f 1 ", "f 1000000 ");
    let message = refused(&cut_off, GLASS);
    assert!(
        message.contains("mesh glass.obj") && message.contains("1000000"),
        "{message}"
    );
    assert!(refused(&glass(), &GLASS.replace("\"mm\"", "\"m\"")).contains("unit"));
    assert!(refused(&glass(), &GLASS.replace("glass.obj", "vase.obj")).contains("glass.obj"));
    assert!(refused(&glass(), &GLASS.replace("glass.obj", "../glass.obj")).contains("folders"));
    let both = format!("cylinder_radius_mm = 45.0\n{GLASS}");
    assert!(refused(&glass(), &both).contains("two shapes"));
}

#[test]
fn a_point_and_a_direction_place_the_sheet_on_a_mesh() {
    let surface = format!("{GLASS}point_m = [0.05897, 0.03, -0.0225]\ndirection = [0, 0, -1]\n");
    let scene = on_mesh(&glass(), &surface).unwrap();
    let [middle, right] = [[20.0, 35.0], [30.0, 35.0]].map(|at_mm| scene.surface.at(at_mm));
    // On the side of the bottle, and down along it.
    let flat = SceneLibrary::new(None)
        .scene("bottle", None)
        .unwrap()
        .surface
        .flat();
    let seen = flat.inverse_transform_point(&middle.point_m).coords * 1e3;
    assert!(
        (seen - nalgebra::Vector3::new(58.97, 30.0, -22.5)).norm() < 0.1,
        "{seen}"
    );
    let moved = flat.inverse_transform_vector(&(right.point_m - middle.point_m)) * 1e3;
    assert!(moved.z < -8.0 && moved.y.abs() < 0.05, "{moved}");
}

#[test]
fn the_bumpy_mesh_is_what_its_scene_says() {
    let library = SceneLibrary::new(None);
    let [scene, flat] = ["bumpy", "default"].map(|name| library.scene(name, None).unwrap());
    let frame = flat.surface.flat_pose().unwrap();
    for place in [[50.0, 50.0], [10.0, 20.0], [80.0, 30.0], [33.0, 90.0]] {
        let at = scene.surface.at(place);
        let [x, y, z]: [f64; 3] = (frame.inverse_transform_point(&at.point_m).coords * 1e3).into();
        let stated = 5.0 + 2.5 * (x / 12.0).sin() * (y / 14.0).cos() + 0.6 * ((x + y) / 7.0).sin();
        assert!((z - stated).abs() < 0.1, "{place:?}: {z} {stated}");
        assert!(
            (x - place[0]).hypot(y - place[1]) < 5.0,
            "{place:?}: {x} {y}"
        );
    }
}
