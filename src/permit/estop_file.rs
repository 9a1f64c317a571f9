//! An emergency stop as a file: while it is there, nothing moves, whichever process runs.
//!
//! The file's existence is the whole message: an empty, torn or unreadable file latches as well, and
//! nothing that is written into it can weaken it.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::OrderKeepingError;
use base::file_access;

/// Makes the emergency stop or owed reset of an older node, whose file says nothing of a port, one of both arms.
///
/// # Errors
/// A file cannot be written or removed; the older node's file is then still there.
pub fn split_unmarked_estop(state: &Path, file_name_part: &str) -> Result<(), OrderKeepingError> {
    let unmarked = EstopFile(state.join(format!("emergency-stop-{file_name_part}")));
    let both = ["port", "simulator"]
        .map(|place| EstopFile(state.join(format!("emergency-stop-{file_name_part}.{place}"))));
    let owed = both.each_ref().map(EstopFile::owed_reset);
    for (old, new) in [(unmarked.owed_reset(), owed), (unmarked, both)] {
        if !old.exists() {
            continue;
        }
        for file in new {
            file.write("from an older version, which did not record whether the arm was real")
                .map_err(|error| file.failed(&error))?;
        }
        old.remove().map_err(|error| old.failed(&error))?;
    }
    Ok(())
}

/// The file of one arm's emergency stop.
#[derive(Clone, Debug)]
pub(super) struct EstopFile(PathBuf);

impl EstopFile {
    pub(super) const fn at(file: PathBuf) -> Self {
        Self(file)
    }

    /// Names the file in an error of the file system.
    pub(super) fn failed(&self, error: &io::Error) -> OrderKeepingError {
        OrderKeepingError::Disk {
            path: self.0.clone(),
            why: error.to_string(),
        }
    }

    /// Returns whether an emergency stop is on the disk. A file that cannot be examined counts as one.
    pub(super) fn exists(&self) -> bool {
        !matches!(std::fs::symlink_metadata(&self.0), Err(error) if error.kind() == io::ErrorKind::NotFound)
    }

    /// Returns the file in which older nodes kept that a reset is owed.
    pub(super) fn owed_reset(&self) -> Self {
        let name = self.0.file_name().unwrap_or_default().to_string_lossy();
        Self(self.0.with_file_name(format!("{name}.reset-owed")))
    }

    /// Writes the file atomically, and to the disk before this returns.
    ///
    /// # Errors
    /// The file system's error.
    pub(super) fn write(&self, text: &str) -> io::Result<()> {
        let draft = self.0.with_extension("new");
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        let mut file = file_access::with_mode(&mut options, 0o600).open(&draft)?;
        writeln!(file, "{text}")?;
        file.sync_all()?;
        std::fs::rename(&draft, &self.0)?;
        sync_folder(&self.0)
    }

    /// Removes the file from the disk; a missing file is no error.
    ///
    /// # Errors
    /// The file system's error; the stop is then still kept.
    pub(super) fn remove(&self) -> io::Result<()> {
        match std::fs::remove_file(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => sync_folder(&self.0),
        }
    }
}

/// Syncs the file's folder, because its name lasts only once the folder itself is on the disk.
fn sync_folder(file: &Path) -> io::Result<()> {
    match file.parent() {
        Some(folder) => file_access::sync_folder(folder),
        None => Ok(()),
    }
}
