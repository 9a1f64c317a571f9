//! The scenes, arms, overlays and designs embedded in the binary.

/// One file of the `scenes` folder.
#[derive(Debug)]
pub(super) struct EmbeddedFile {
    /// Its path below `scenes`.
    pub(super) path: &'static str,
    /// Content of the file.
    pub(super) bytes: &'static [u8],
}

macro_rules! files {
    ($($path:literal),* $(,)?) => {
        &[$(EmbeddedFile { path: $path, bytes: include_bytes!(concat!("scenes/", $path)) }),*]
    };
}

/// Every file of the `scenes` folder; a test checks that none is missing.
pub(super) const FILES: &[EmbeddedFile] = files![
    "a5_sheet.toml",
    "arms/custom.toml",
    "arms/koch.toml",
    "arms/omx.toml",
    "arms/openmanipulator-x.toml",
    "arms/roarm-m2.toml",
    "arms/roarm-m3.toml",
    "arms/so100.toml",
    "arms/so101-12v.toml",
    "arms/so101-hx30.toml",
    "arms/so101-sts3250.toml",
    "arms/so101-worn.toml",
    "arms/so101.toml",
    "arms/vx300.toml",
    "arms/widowx250s.toml",
    "bottle.toml",
    "bumpy.toml",
    "calibration.toml",
    "canvas.toml",
    "default.toml",
    "designs/crosses.gcode",
    "designs/fish.svg",
    "designs/leaf.svg",
    "designs/practice.svg",
    "designs/rings.svg",
    "designs/three_colours.svg",
    "designs/two_colours.svg",
    "hatched.toml",
    "koch.toml",
    "letters.toml",
    "meshes/bumpy.ply",
    "omx.toml",
    "openmanipulator_x.toml",
    "overlays/crosses.toml",
    "overlays/leaf.toml",
    "pens_by_hand.toml",
    "roarm_m2.toml",
    "roarm_m3.toml",
    "so100.toml",
    "tagged.toml",
    "two_arms.toml",
    "two_arms_dips.toml",
    "two_pens.toml",
    "vx300.toml",
    "widowx.toml",
];

/// Returns the file at a path below `scenes`.
pub(super) fn find(path: &str) -> Option<&'static EmbeddedFile> {
    FILES.iter().find(|file| file.path == path)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use std::path::Path;

    fn collect_files(folder: &Path, prefix: &str, files: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                collect_files(&entry.path(), &format!("{path}/"), files);
            } else if !path.ends_with(".json") {
                files.push(path);
            }
        }
    }

    #[test]
    fn the_ids_of_every_shipped_arm_are_known() {
        let library = crate::SceneLibrary::new(None);
        let arms = library.arms().into_iter();
        let arms = arms.map(|name| library.arm(&name).unwrap().file.clone());
        let on_a_bus =
            arms.filter(|file| file.family != arm::ServoFamily::Firmware && file.like.is_none());
        let mut in_files: Vec<_> = on_a_bus
            .map(|file| {
                let turning = file.joints.iter().flat_map(|joint| &joint.servos);
                let turning = turning.map(|servo| servo.id);
                let mut ids: Vec<u8> = turning
                    .chain(file.held.iter().map(|held| held.id))
                    .collect();
                ids.sort_unstable();
                (file.name, format!("{:?}", file.family), ids)
            })
            .collect();
        let known = arm::SHIPPED_ARMS.into_iter();
        let known = known
            .map(|(name, family, ids)| (name.to_owned(), format!("{family:?}"), ids.collect()));
        let mut known: Vec<_> = known.collect();
        in_files.sort();
        known.sort();
        assert_eq!(in_files, known);
    }

    #[test]
    fn every_file_of_the_scenes_folder_is_in_the_binary() {
        let mut on_disk = Vec::new();
        collect_files(
            &Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("scenes"),
            "",
            &mut on_disk,
        );
        on_disk.sort();
        let embedded: Vec<&str> = FILES.iter().map(|file| file.path).collect();
        assert_eq!(embedded, on_disk);
    }
}
