//! Copies the files of a running node's result into the folder that this command names: all that a command writes lies there.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use base::plain_file;
use serde_json::{Map, Value};

use super::files;

/// Paths of a result, each with that of its copy.
pub(super) type Copies = Vec<(String, String)>;

/// Copies a result's files into a folder, and names the copies in the result. Files that lie in the folder stay as they are.
///
/// # Errors
/// A file that this machine cannot read, or a copy that it cannot write; the result then names the node's file.
pub(super) fn gather(folder: &Path, result: &mut Map<String, Value>) -> anyhow::Result<Copies> {
    let folder = std::path::absolute(folder)?;
    let mut copies = Copies::new();
    for field in ["files", "captured_files"] {
        let paths = result.get_mut(field).and_then(Value::as_array_mut);
        for path in paths.into_iter().flatten() {
            let Some(original) = path.as_str().map(str::to_owned) else {
                continue;
            };
            if Path::new(&original).starts_with(&folder) {
                continue;
            }
            let copy = copy_into(&folder, Path::new(&original))?
                .display()
                .to_string();
            *path = copy.clone().into();
            copies.push((original, copy));
        }
    }
    Ok(copies)
}

/// Returns whether a node runs on this machine, by its address; one without an address does.
pub(super) fn is_here(node: Option<&str>) -> bool {
    let Some(node) = node else {
        return true;
    };
    let host = node.split_once("://").map_or(node, |(_, rest)| rest);
    ["127.", "localhost", "[::1]"]
        .iter()
        .any(|own| host.starts_with(own))
}

/// Copies a file, with the folder of its job, and returns the copy's path.
fn copy_into(folder: &Path, original: &Path) -> anyhow::Result<PathBuf> {
    let content = plain_file::read(original).with_context(|| {
        format!(
            "cannot copy {} into {}",
            original.display(),
            folder.display()
        )
    })?;
    let job = original.parent().and_then(Path::file_name);
    let folder = job.map_or_else(|| folder.to_owned(), |job| folder.join(job));
    let name = original.file_name().unwrap_or_default().to_string_lossy();
    files::write_into(&folder, &name, &content)
}
