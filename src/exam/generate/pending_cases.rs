//! Queues cases that could not be saved in a file next to the record, and saves them together with the next ones.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::{ExamCase, ExamError, ExamRecord};
use base::plain_file;
use base::wording::with_statement;

/// Returns the path of the queue file of a record.
fn queue_path(store: &Path) -> PathBuf {
    let mut path = store.to_owned().into_os_string();
    path.push(".later.jsonl");
    PathBuf::from(path)
}

/// Saves cases. If they cannot be saved, queues them and returns a notice.
///
/// # Errors
/// Fails if they can neither be saved nor queued.
pub(crate) fn keep(
    record: &mut ExamRecord,
    store: &Path,
    cases: &[ExamCase],
) -> Result<Option<String>, ExamError> {
    match record.add_cases(cases) {
        Ok(()) => Ok(None),
        Err(error) => wait(store, cases, &error.to_string()).map(Some),
    }
}

/// Queues cases on the disk and returns a notice; `reason` is why they cannot be saved now.
///
/// # Errors
/// Fails if they cannot be queued either.
pub(crate) fn wait(store: &Path, cases: &[ExamCase], reason: &str) -> Result<String, ExamError> {
    let path = queue_path(store);
    let lines: String = cases.iter().map(|case| case.line() + "\n").collect();
    let append = || -> std::io::Result<()> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)?;
        file.write_all(lines.as_bytes())?;
        file.sync_all()?;
        // A new file survives a crash only if its folder is synced too.
        match path.parent().filter(|folder| folder.is_dir()) {
            Some(folder) => base::file_access::sync_folder(folder),
            None => Ok(()),
        }
    };
    append().map_err(|error| ExamError::Store {
        path: path.clone(),
        reason: with_statement(
            reason,
            &format!("the waiting cases cannot be written to a file: {error}"),
        ),
    })?;
    let waiting = format!(
        "the cases wait in {}; the next save includes them",
        path.display()
    );
    Ok(with_statement(reason, &waiting))
}

/// Saves the queued cases and returns their number.
///
/// # Errors
/// Fails if they still cannot be saved or the file is damaged.
pub(crate) fn save_pending(record: &mut ExamRecord, store: &Path) -> Result<usize, ExamError> {
    let path = queue_path(store);
    let mut taken = path.clone().into_os_string();
    taken.push(".taken");
    let taken = PathBuf::from(taken);
    // Cases queued from now on go to a new file. A file taken by a save that was killed is saved first.
    let recovered = save_file(record, &taken)?;
    if std::fs::rename(&path, &taken).is_err() {
        return Ok(recovered);
    }
    Ok(recovered + save_file(record, &taken)?)
}

/// Saves the cases of a file, deletes it and returns their number; 0 if there is no file.
fn save_file(record: &mut ExamRecord, path: &Path) -> Result<usize, ExamError> {
    let Ok(text) = plain_file::read_text(path) else {
        return Ok(0);
    };
    // A save that failed twice queued its cases twice; the later ones count.
    let lines: Vec<&str> = text.lines().collect();
    let mut cases: Vec<ExamCase> = Vec::new();
    for line in lines.iter().rev() {
        for case in ExamCase::read_lines(line)? {
            if !cases.iter().any(|other| other.name == case.name) {
                cases.push(case);
            }
        }
    }
    cases.reverse();
    record.add_cases(&cases)?;
    match std::fs::remove_file(path) {
        // Another process has saved the same cases.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(cases.len()),
        Err(error) => Err(ExamError::Store {
            path: path.to_owned(),
            reason: error.to_string(),
        }),
        Ok(()) => Ok(cases.len()),
    }
}
