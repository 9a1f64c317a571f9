//! Reads the files of a library: none larger than its reader allows, and none from elsewhere.

use std::path::Path;

use super::{FILE_BYTES_MAX, SceneError};
use base::plain_file;

/// Reads a file, but not through a link to outside the folder: that would turn any file of this
/// machine into a scene or a design.
pub(super) fn read_within(
    folder: &Path,
    path: &Path,
    bytes_max: u64,
) -> Result<Vec<u8>, SceneError> {
    let resolve = |path: &Path| std::fs::canonicalize(path).ok();
    let is_outside = match (resolve(folder), resolve(path)) {
        (Some(folder), Some(path)) => !path.starts_with(folder),
        _ => true,
    };
    if is_outside {
        return Err(SceneError::Missing {
            file: path.display().to_string(),
            why: "it is a link to a file outside the scenes' folder; put a copy into the folder"
                .to_owned(),
        });
    }
    read_at_most(path, bytes_max)
}

pub(super) fn read_file(path: &Path) -> Result<Vec<u8>, SceneError> {
    read_at_most(path, FILE_BYTES_MAX)
}

fn read_at_most(path: &Path, bytes_max: u64) -> Result<Vec<u8>, SceneError> {
    let missing = |why: String| SceneError::Missing {
        file: path.display().to_string(),
        why,
    };
    plain_file::read_at_most(path, bytes_max).map_err(|error| missing(error.to_string()))
}
