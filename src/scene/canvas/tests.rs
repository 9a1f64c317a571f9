//! Canvases need pens on flat sheets, and their revision is the same whatever is drawn on them.

use std::sync::Arc;

use super::super::{DesignReplacement, Scene, SceneError, SceneLibrary};

const CANVAS: &str = include_str!("../scenes/canvas.toml");

/// A folder with one scene, `mine`.
fn library(text: &str) -> (tempfile::TempDir, SceneLibrary) {
    let folder = tempfile::tempdir().unwrap();
    let text = text.replace("name = \"canvas\"", "name = \"mine\"");
    std::fs::write(folder.path().join("mine.toml"), text).unwrap();
    let library = SceneLibrary::new(Some(folder.path().to_owned()));
    (folder, library)
}

fn drawn(library: &SceneLibrary, text: &str) -> Result<Arc<Scene>, SceneError> {
    library
        .with_design_of_caller(DesignReplacement::from_text(text))
        .scene("mine", None)
}

#[test]
fn a_canvas_is_the_same_scene_whatever_is_drawn_on_it() {
    let (_folder, library) = library(CANVAS);
    let empty = library.scene("mine", None).unwrap();
    assert!(empty.strokes.is_empty());
    let [lower, upper] = ["hello", "Hello"].map(|text| drawn(&library, text).unwrap());
    assert_eq!(empty.revision, lower.revision);
    assert_eq!(lower.revision, upper.revision);
    let hash = |scene: &Scene| scene.canvas.as_ref().and_then(|canvas| canvas.design_hash);
    assert!(hash(&empty).is_none() && hash(&lower).is_some());
    assert_ne!(hash(&lower), hash(&upper));
    assert!(!lower.strokes.is_empty());
}

#[test]
fn a_canvas_is_listed_as_one() {
    let (_folder, library) = library(CANVAS);
    assert_eq!(library.canvases_for(&["so101"]), ["canvas", "mine"]);
    assert!(library.canvases_for(&["widowx250s"]).is_empty());
}

#[test]
fn what_no_caller_may_draw_on_is_not_a_canvas() {
    let add = |table: &str, line: &str| CANVAS.replace(table, &format!("{table}\n{line}"));
    let design = |line: &str| add("[design]", line);
    for (text, expected) in [
        (design("text = \"a\""), "`design.text`"),
        (design("size_mm = 10.0"), "`design.size_mm` cannot be"),
        (design("time_s_max = 0.0"), "time_s_max` must be above 0"),
        (add("[sheet]", "cylinder_radius_mm = 80.0"), "a cylinder"),
        (
            CANVAS.replace("arm =", "attended = true\narm ="),
            "it is `attended`",
        ),
        (
            add("[[pens]]", "kind = \"needle\""),
            "`fineliner` is a needle",
        ),
        (
            CANVAS.replace(
                "from_caller = [\"text\", \"svg\", \"image\"]",
                "text = \"a\"\nstrokes_max = 3",
            ),
            "`design.strokes_max`",
        ),
    ] {
        let (_folder, library) = library(&text);
        let message = library.scene("mine", None).unwrap_err().to_string();
        assert!(message.contains(expected), "{expected}: {message}");
    }
}

#[test]
fn a_design_beyond_the_bounds_is_refused() {
    for (bound, expected) in [
        ("strokes_max = 3", "strokes (at most 3"),
        ("length_mm_max = 20.0", "(at most 20 mm"),
    ] {
        let (_folder, library) =
            library(&CANVAS.replace("[design]", &format!("[design]\n{bound}")));
        let message = drawn(&library, "hello").unwrap_err().to_string();
        assert!(message.contains(expected), "{expected}: {message}");
    }
}

#[test]
fn what_an_operator_draws_there_is_enabled_on_its_own() {
    let (_folder, library) = library(CANVAS);
    let empty = library.scene("mine", None).unwrap();
    let drawn = library
        .with_drawing(DesignReplacement::from_text("hello"))
        .scene("mine", None)
        .unwrap();
    assert_ne!(empty.revision, drawn.revision);
    assert_eq!(drawn.canvas, None);
}

#[test]
fn a_scene_with_its_own_design_accepts_none_from_a_caller() {
    let library =
        SceneLibrary::new(None).with_design_of_caller(DesignReplacement::from_text("hello"));
    let message = library.scene("default", None).unwrap_err().to_string();
    assert!(message.contains("a canvas"), "{message}");
}
