//! Queues cases that could not be saved in a file beside the record, and saves them with the next.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::{ExamCase, ExamError, ExamRecord};

/// The file that waits beside a record.
fn queue(store: &Path) -> PathBuf {
    let mut path = store.to_owned().into_os_string();
    path.push(".later.jsonl");
    PathBuf::from(path)
}

/// Saves cases. Those that cannot be saved wait; returns why.
///
/// # Errors
/// They can neither be saved nor wait.
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

/// Lets cases wait on the disk: what to say of it. `why` they cannot be saved now.
///
/// # Errors
/// They cannot wait either.
pub(crate) fn wait(store: &Path, cases: &[ExamCase], why: &str) -> Result<String, ExamError> {
    let path = queue(store);
    let lines: String = cases.iter().map(|case| case.line() + "\n").collect();
    let written = || -> std::io::Result<()> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)?;
        file.write_all(lines.as_bytes())?;
        file.sync_all()?;
        // A file that was made just now is found again only where its folder is on the disk too.
        match path.parent().filter(|folder| folder.is_dir()) {
            Some(folder) => base::file_access::sync_folder(folder),
            None => Ok(()),
        }
    };
    written().map_err(|error| ExamError::Store {
        path: path.clone(),
        why: format!("{why}, and they cannot wait either: {error}"),
    })?;
    Ok(format!(
        "{why}; they wait in {} and are saved with the next",
        path.display()
    ))
}

/// Saves what waits: how many there were.
///
/// # Errors
/// They still cannot be saved, or the file is damaged.
pub(crate) fn save_pending(record: &mut ExamRecord, store: &Path) -> Result<usize, ExamError> {
    let path = queue(store);
    let mut taken = path.clone().into_os_string();
    taken.push(".taken");
    let taken = PathBuf::from(taken);
    // What comes to wait from now on waits in a file of its own. What a save that was killed had taken comes first.
    let earlier = saved(record, &taken)?;
    if std::fs::rename(&path, &taken).is_err() {
        return Ok(earlier);
    }
    Ok(earlier + saved(record, &taken)?)
}

/// Saves the cases of a file and deletes it: how many there were; none where there is no file.
fn saved(record: &mut ExamRecord, path: &Path) -> Result<usize, ExamError> {
    let Ok(text) = std::fs::read_to_string(path) else {
        return Ok(0);
    };
    // A save that was tried twice waits twice; the later one counts.
    let lines: Vec<&str> = text.lines().collect();
    let mut cases: Vec<ExamCase> = Vec::new();
    for line in lines.iter().rev() {
        for case in ExamCase::read_lines(line)? {
            if !cases.iter().any(|one| one.name == case.name) {
                cases.push(case);
            }
        }
    }
    cases.reverse();
    record.add_cases(&cases)?;
    match std::fs::remove_file(path) {
        // Somebody else has saved the same.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(cases.len()),
        Err(error) => Err(ExamError::Store {
            path: path.to_owned(),
            why: error.to_string(),
        }),
        Ok(()) => Ok(cases.len()),
    }
}
