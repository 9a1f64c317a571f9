//! Reads a job's folder: its records, that it had only begun, or that its journal was lost.

use std::io::{self, ErrorKind};
use std::path::Path;

use super::journal_file::{self, JournalError};
use super::journal_record::JournalRecord;
use super::{DESIGN, DESIGN_DRAFT, JOURNAL};

/// Files that are put into a folder before its job's first record is on the disk.
const BEGINNING: [&str; 3] = [JOURNAL, DESIGN, DESIGN_DRAFT];

/// Reads a job's records: at least one.
///
/// # Errors
/// [`JournalError::Nothing`] if the job had only begun, so that it has moved nothing. Otherwise its journal cannot be trusted, or
/// there is no such folder.
pub(super) fn records(folder: &Path) -> Result<Vec<JournalRecord>, JournalError> {
    let path = folder.join(JOURNAL);
    let records = match journal_file::read(&path) {
        Err(JournalError::File { error, .. })
            if error.kind() == ErrorKind::NotFound && folder.symlink_metadata().is_ok() =>
        {
            Vec::new()
        }
        contents => contents?.records,
    };
    match records.is_empty() {
        false => Ok(records),
        true if has_only_begun(folder).unwrap_or(false) => Err(JournalError::Nothing(path)),
        true => Err(JournalError::Lost(path)),
    }
}

/// Returns whether a folder holds no other file than [`BEGINNING`].
fn has_only_begun(folder: &Path) -> io::Result<bool> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_known = BEGINNING.iter().any(|known| name == *known);
        if !is_known || !entry.file_type()?.is_file() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Removes the folder of a job that had only begun, unless it has more than a journal.
pub(super) fn remove_begun(folder: &Path) {
    let mut files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    if files.all(|entry| entry.file_name() == JOURNAL) {
        let _ = std::fs::remove_file(folder.join(JOURNAL));
        // Refused if anything was put there meanwhile.
        let _ = std::fs::remove_dir(folder);
    }
}

/// Removes a job's folder, its journal last: what a process that ends meanwhile leaves is a job, and not one that lost its journal.
pub(super) fn remove(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => std::fs::remove_dir_all(entry.path())?,
            false if entry.file_name() == JOURNAL => {}
            false => std::fs::remove_file(entry.path())?,
        }
    }
    std::fs::remove_dir_all(folder)
}
