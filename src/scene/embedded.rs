//! The scenes, arms, overlays and designs that are in the binary.

/// One file of the `scenes` folder.
#[derive(Debug)]
pub(super) struct EmbeddedFile {
    /// Its path below `scenes`.
    pub(super) place: &'static str,
    /// Content of the file.
    pub(super) bytes: &'static [u8],
}

macro_rules! files {
    ($($place:literal),* $(,)?) => {
        &[$(EmbeddedFile { place: $place, bytes: include_bytes!(concat!("scenes/", $place)) }),*]
    };
}

/// Every file of the `scenes` folder; a test holds that none is missing.
pub(super) const FILES: &[EmbeddedFile] = files![
    "a5_sheet.toml",
    "arms/custom.toml",
    "arms/koch.toml",
    "arms/openmanipulator-x.toml",
    "arms/so100.toml",
    "arms/so101-worn.toml",
    "arms/so101.toml",
    "arms/vx300.toml",
    "arms/widowx250s.toml",
    "bottle.toml",
    "calibration.toml",
    "canvas.toml",
    "default.toml",
    "designs/crosses.gcode",
    "designs/fish.svg",
    "designs/leaf.svg",
    "designs/practice.svg",
    "designs/three_colours.svg",
    "designs/two_colours.svg",
    "hatched.toml",
    "koch.toml",
    "letters.toml",
    "openmanipulator_x.toml",
    "overlays/crosses.toml",
    "overlays/leaf.toml",
    "pens_by_hand.toml",
    "so100.toml",
    "tagged.toml",
    "two_pens.toml",
    "vx300.toml",
    "widowx.toml",
];

/// The file at a path below `scenes`.
pub(super) fn find(place: &str) -> Option<&'static EmbeddedFile> {
    FILES.iter().find(|file| file.place == place)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use std::path::Path;

    fn walk(folder: &Path, below: &str, into: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let place = format!("{below}{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                walk(&entry.path(), &format!("{place}/"), into);
            } else if !place.ends_with(".json") {
                into.push(place);
            }
        }
    }

    #[test]
    fn every_file_of_the_scenes_folder_is_in_the_binary() {
        let mut there = Vec::new();
        walk(
            &Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("scenes"),
            "",
            &mut there,
        );
        there.sort();
        let here: Vec<&str> = FILES.iter().map(|file| file.place).collect();
        assert_eq!(here, there);
    }
}
