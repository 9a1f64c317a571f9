//! Reads and writes files, with their names in every error.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use base::disk::write_advice;
use base::plain_file;
use base::wording::with_next;

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

/// Writes a file. One that could not be written whole is not left behind.
pub(crate) fn write(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    let is_new = !path.exists();
    std::fs::write(path, content).map_err(|error| {
        if is_new {
            let _ = std::fs::remove_file(path);
        }
        unwritten(path, &error)
    })
}

/// Returns the error of a file or folder that cannot be written, with what a person does about it.
fn unwritten(path: &Path, error: &std::io::Error) -> anyhow::Error {
    let what = format!("cannot write {}: {error}", path.display());
    anyhow!(with_next(what, write_advice(error)))
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
    std::fs::create_dir_all(folder).map_err(|error| unwritten(folder, &error))
}

/// Returns the folder of a file; `.` for a bare file name.
pub(crate) fn folder_of(file: &Path) -> &Path {
    let folder = file.parent();
    let named = folder.filter(|folder| !folder.as_os_str().is_empty());
    named.unwrap_or(Path::new("."))
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    #[test]
    fn a_full_disk_is_named_with_its_remedy() {
        let full = super::write(std::path::Path::new("/dev/full"), b"x");
        let words = full.map_err(|error| error.to_string());
        assert!(words.is_err_and(|words| words.ends_with("Next: make room on its disk")));
    }
}
