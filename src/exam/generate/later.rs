//! What could not be saved waits in a file beside the record, and is saved with the next.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::exam::{Case, ExamError, Record};

/// The file that waits beside a record.
fn queue(store: &Path) -> PathBuf {
    let mut path = store.to_owned().into_os_string();
    path.push(".later.jsonl");
    PathBuf::from(path)
}

/// Saves cases; those that cannot be wait. Whether they are saved, or why they wait.
///
/// # Errors
/// They can neither be saved nor wait.
pub fn keep(
    record: &mut Record,
    store: &Path,
    cases: &[Case],
) -> Result<Result<(), String>, ExamError> {
    let Err(error) = record.add_cases(cases) else {
        return Ok(Ok(()));
    };
    let path = queue(store);
    let lines: String = cases.iter().map(|case| case.line() + "\n").collect();
    let written = || -> std::io::Result<()> {
        let mut file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)?;
        file.write_all(lines.as_bytes())?;
        file.sync_all()
    };
    written().map_err(|why| ExamError::Store {
        path: path.clone(),
        why: format!("{error}, and they cannot wait either: {why}"),
    })?;
    Ok(Err(format!(
        "{error}; they wait in {} and are saved with the next",
        path.display()
    )))
}

/// Saves what waits: how many there were.
///
/// # Errors
/// They still cannot be saved, or the file is damaged.
pub fn retried(record: &mut Record, store: &Path) -> Result<usize, ExamError> {
    let path = queue(store);
    let Ok(text) = std::fs::read_to_string(&path) else {
        return Ok(0);
    };
    let cases = Case::read_lines(&text)?;
    record.add_cases(&cases)?;
    std::fs::remove_file(&path).map_err(|error| ExamError::Store {
        path,
        why: error.to_string(),
    })?;
    Ok(cases.len())
}
