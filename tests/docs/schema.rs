//! Holds that what editors and people read of scenes is what the program reads.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::path::Path;
use std::process::Command;

fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn the_schema_beside_the_scenes_is_what_the_command_prints() {
    let made = Command::new(env!("CARGO_BIN_EXE_steadyhand"))
        .args(["scene", "schema"])
        .output()
        .unwrap();
    assert!(made.status.success());
    assert_eq!(
        file("scenes/scene.schema.json"),
        String::from_utf8(made.stdout).unwrap(),
        "out of date; `steadyhand scene schema > scenes/scene.schema.json` renews it"
    );
}

#[test]
fn every_shipped_scene_names_the_schema() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|end| end == "toml") {
            let text = std::fs::read_to_string(&path).expect("a scene");
            assert!(
                text.starts_with("#:schema ./scene.schema.json\n"),
                "{}",
                path.display()
            );
            count += 1;
        }
    }
    assert!(count >= 5);
}
