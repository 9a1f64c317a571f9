//! Compares an export with the earlier ones beside it: LeRobot joins data sets only of one arm, one rate and the same features.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::{INFO_FILE, ORIGIN_FILE};
use base::plain_file;

/// Largest number of entries of a folder that are looked at.
const ENTRIES_MAX: usize = 1_000;

/// A data set that was exported earlier.
pub(crate) struct OtherExport {
    place: PathBuf,
    info: Value,
}

/// Returns the export that `out` holds and those in the folders beside it, by name.
pub(crate) fn find(out: &Path) -> Vec<OtherExport> {
    let parent = out.canonicalize().ok();
    let parent = parent.as_deref().and_then(Path::parent);
    let folders = parent.and_then(|parent| std::fs::read_dir(parent).ok());
    let folders = folders.into_iter().flatten().flatten().take(ENTRIES_MAX);
    let mut places: Vec<PathBuf> = folders.map(|folder| folder.path()).collect();
    places.sort();
    places.into_iter().filter_map(read).collect()
}

/// Reads an export's features, if a folder holds one that is whole.
fn read(place: PathBuf) -> Option<OtherExport> {
    if !place.join(ORIGIN_FILE).is_file() {
        return None;
    }
    let text = plain_file::read(place.join(INFO_FILE)).ok()?;
    let info = serde_json::from_slice(&text).ok()?;
    Some(OtherExport { place, info })
}

impl OtherExport {
    /// Returns how it differs from a new export, if LeRobot cannot join the two.
    pub(crate) fn difference(&self, new: &Value) -> Option<String> {
        let mut differences = Vec::new();
        for key in ["robot_type", "fps"] {
            let [old, new] = [&self.info, new].map(|info| info.get(key).unwrap_or(&Value::Null));
            if old != new {
                differences.push(format!("{key} {old}, not {new}"));
            }
        }
        let none = Map::new();
        let features = |info: &Value| info["features"].as_object().unwrap_or(&none).clone();
        let (old, new) = (features(&self.info), features(new));
        let missing_in = |of: &Map<String, Value>, other: &Map<String, Value>| -> Vec<String> {
            of.keys()
                .filter(|name| !other.contains_key(*name))
                .cloned()
                .collect()
        };
        let is_other =
            |(name, of): &(&String, &Value)| new.get(*name).is_some_and(|new| new != *of);
        let changed = old
            .iter()
            .filter(is_other)
            .map(|(name, _)| name.clone())
            .collect();
        for (what, names) in [
            ("without", missing_in(&new, &old)),
            ("with", missing_in(&old, &new)),
            ("a different size or different names in", changed),
        ] {
            if !names.is_empty() {
                differences.push(format!("{what} {}", names.join(", ")));
            }
        }
        (!differences.is_empty()).then(|| {
            format!(
                "{} differs: {}. LeRobot cannot join the two exports",
                self.place.display(),
                differences.join("; ")
            )
        })
    }
}
