//! Reads and writes files, with their names in every error.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use base::plain_file;

/// Reads a text.
pub(crate) fn read(path: &Path) -> anyhow::Result<String> {
    plain_file::read_text(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Reads a text; `None` if there is no such file.
pub(crate) fn read_if_there(path: &Path) -> anyhow::Result<Option<String>> {
    match plain_file::read_text(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        read => read
            .map(Some)
            .with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Writes a file.
pub(crate) fn write(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    std::fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}

/// Writes a file into a folder, which is created if needed, and returns its path.
pub(crate) fn write_into(folder: &Path, name: &str, content: &[u8]) -> anyhow::Result<PathBuf> {
    make_folder(folder)?;
    let path = folder.join(name);
    write(&path, content)?;
    Ok(path)
}

/// Creates a folder and its parents.
pub(crate) fn make_folder(folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))
}

/// Returns the folder of a file; `.` for a bare file name.
pub(crate) fn folder_of(file: &Path) -> &Path {
    let folder = file.parent();
    let named = folder.filter(|folder| !folder.as_os_str().is_empty());
    named.unwrap_or(Path::new("."))
}
