//! Checks a state folder as the start of its node would find it, and changes nothing in it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::path::Path;

use super::job_store::{self, JobStoreError, LOCK};
use super::journal_file::JournalError;
use super::{JOBS, audit_log, node_key, old_tickets};
use base::file_lock::is_folder_locked;

/// Checks the journals of a state folder, and returns an error for each that cannot be trusted.
///
/// # Errors
/// A node that runs has locked them, or a start would fail.
pub fn check_journals(state: &Path) -> Result<Vec<String>, JobStoreError> {
    let lock = state.join(LOCK);
    let opened = if_there(OpenOptions::new().read(true).write(true).open(&lock));
    let opened = opened.map_err(|error| job_store::file(&lock, error))?;
    // The lock ends with the file, here; a node that starts waits for longer than that.
    if opened.is_some_and(|file| is_held(&file)) || is_folder_locked(state) {
        return Err(job_store::held(&lock));
    }
    let jobs = state.join(JOBS);
    let numbers = if_there(job_store::numbers(&jobs));
    let numbers = numbers.map_err(|error| job_store::file(&jobs, error))?;
    old_tickets::check(&jobs)
        .map_err(|error| job_store::file(&jobs.join(old_tickets::FILE), error))?;
    let numbers = numbers.into_iter().flatten();
    let damaged = numbers
        .filter_map(|number| job_store::records(&jobs, number).err())
        .filter(|error| !matches!(error, JournalError::Nothing(_)));
    Ok(damaged.map(|error| error.to_string()).collect())
}

/// Checks a node's key, if it has one yet.
///
/// # Errors
/// The key cannot be used.
pub fn check_key(state: &Path) -> io::Result<()> {
    node_key::stored(&state.join(node_key::FILE)).map(drop)
}

/// Checks that a node's audit log, if it has one yet, ends with a record that its key signed. What a crash left of a last record
/// is no defect: the node records it.
///
/// # Errors
/// It does not, or cannot be read.
pub fn check_audit(state: &Path) -> io::Result<()> {
    let path = state.join(audit_log::FILE);
    // Opened as the node does that adds to it.
    let opened = if_there(OpenOptions::new().read(true).append(true).open(&path));
    let opened = opened.map_err(|error| {
        let message = format!("cannot use {}: {error}", path.display());
        io::Error::new(error.kind(), message)
    })?;
    let Some(file) = opened else {
        return Ok(());
    };
    let key = node_key::stored(&state.join(node_key::FILE))?;
    if audit_log::can_be_continued(&path, &file, key.as_ref())? {
        return Ok(());
    }
    let path = path.display();
    Err(io::Error::other(format!(
        "the last record of {path} is not signed by this node. Keep a copy: the next start moves the file to {path}.1 and begins a new log. Next: `steadyhand jobs audit verify {path}` names the first bad record"
    )))
}

fn is_held(lock: &File) -> bool {
    matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock))
}

fn if_there<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use crate::{AuditLog, JobStore, RetentionPolicy};

    #[test]
    fn a_check_creates_nothing_and_a_node_may_start_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path();
        assert_eq!(check_journals(state).unwrap(), [""; 0]);
        check_key(state).unwrap();
        check_audit(state).unwrap();
        assert_eq!(std::fs::read_dir(state).unwrap().count(), 0);
        let keep = RetentionPolicy {
            jobs: 9,
            bytes: 1 << 20,
            days: 9,
        };
        let jobs = JobStore::open(state, keep).unwrap();
        let error = check_journals(state).unwrap_err();
        assert!(matches!(error, JobStoreError::Held { .. }), "{error}");
        drop(jobs);
        assert_eq!(check_journals(state).unwrap(), [""; 0]);
    }

    #[test]
    fn a_log_that_its_node_would_replace_is_wrong_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path();
        let audit = AuditLog::open(state).unwrap();
        for number in 0..2 {
            audit.note("call", format!("{number}"));
            audit.flush();
        }
        drop(audit);
        let path = state.join(audit_log::FILE);
        let complete = std::fs::read_to_string(&path).unwrap();
        let [torn, changed] = [
            complete.get(..complete.len() - 40).unwrap().to_owned(),
            format!("{} and more\n", complete.trim_end()),
        ];
        for good in [complete.as_str(), &torn, complete.get(..20).unwrap(), ""] {
            std::fs::write(&path, good).unwrap();
            check_audit(state).unwrap();
        }
        std::fs::write(&path, &changed).unwrap();
        let error = check_audit(state).unwrap_err().to_string();
        assert!(error.contains("audit verify"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), changed);
        assert_eq!(std::fs::read_dir(state).unwrap().count(), 2);
        // Another key has signed nothing of it.
        std::fs::write(&path, &complete).unwrap();
        std::fs::remove_file(state.join(node_key::FILE)).unwrap();
        assert!(check_audit(state).is_err());
        assert!(!state.join(node_key::FILE).exists());
    }
}
