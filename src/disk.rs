//! Whole files put into their place, and whose they are: what root writes for a node is its node's.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Gid, Uid, fchown};

/// Puts a text into a file's place, so that a reader, or the loss of power, finds the old or the new.
///
/// # Errors
/// When it cannot be written; the old one is as it was.
pub fn put(path: &Path, text: &str) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    let mut out = File::create(&new)?;
    given_by_root(&out, path)?;
    out.write_all(text.as_bytes())?;
    out.sync_all()?;
    std::fs::rename(&new, path)?;
    // The folder has the new name on the disk, too.
    File::open(folder_of(path))?.sync_all()
}

/// Opens a file to write, and makes it where there is none; what is in it stays.
///
/// # Errors
/// When it cannot be opened, made or given away.
pub fn touch(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(false);
    let file = options.open(path)?;
    given_by_root(&file, path)?;
    Ok(file)
}

/// Makes a folder and those above it; each belongs to whom the one above belongs to.
///
/// # Errors
/// When one of them cannot be made or given away.
pub fn folder(path: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = path
        .ancestors()
        .take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists())
        .collect();
    for folder in missing.into_iter().rev() {
        std::fs::create_dir_all(folder)?;
        given_by_root(&File::open(folder)?, folder)?;
    }
    Ok(())
}

/// Gives a file to whom its folder belongs to, for a node that runs as that user could not read it otherwise.
///
/// # Errors
/// Only root may give files away.
pub fn belongs_to_folder(file: &File, path: &Path) -> io::Result<()> {
    let (folder, own) = (std::fs::metadata(folder_of(path))?, file.metadata()?);
    if folder.uid() == own.uid() {
        return Ok(());
    }
    let (user, group) = (Uid::from_raw(folder.uid()), Gid::from_raw(folder.gid()));
    Ok(fchown(file, Some(user), Some(group))?)
}

/// The same where root writes; anybody else writes what is their own, into folders that they share too.
fn given_by_root(file: &File, path: &Path) -> io::Result<()> {
    if rustix::process::geteuid().is_root() {
        belongs_to_folder(file, path)
    } else {
        Ok(())
    }
}

fn folder_of(path: &Path) -> PathBuf {
    let folder = path.parent();
    let named = folder.filter(|folder| !folder.as_os_str().is_empty());
    named.unwrap_or(Path::new(".")).to_owned()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    /// Nobody else can give files away: as another user there is nothing to see.
    #[test]
    fn what_root_writes_belongs_to_whom_the_folder_belongs() {
        let outer = tempfile::tempdir().unwrap();
        let is_root = rustix::process::geteuid().is_root();
        let owner = if is_root {
            12_345
        } else {
            rustix::process::geteuid().as_raw()
        };
        if is_root {
            std::os::unix::fs::chown(outer.path(), Some(owner), Some(owner)).unwrap();
        }
        let inner = outer.path().join("calibration/deep");
        folder(&inner).unwrap();
        put(&inner.join("000001.toml"), "new").unwrap();
        touch(&inner.join("lock")).unwrap();
        for name in [
            "calibration",
            "calibration/deep",
            "calibration/deep/000001.toml",
            "calibration/deep/lock",
        ] {
            let about = std::fs::metadata(outer.path().join(name)).unwrap();
            assert_eq!(about.uid(), owner, "{name}");
        }
        assert_eq!(
            std::fs::read_to_string(inner.join("000001.toml")).unwrap(),
            "new"
        );
    }
}
