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
