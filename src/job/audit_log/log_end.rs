//! Judges how a log ends, for the node that opens it and for a check that changes nothing.

use super::*;

/// Returns whether the node with this key, or without one yet, adds to a log as it is; it replaces any other.
pub(in super::super) fn can_be_continued(
    path: &Path,
    file: &File,
    key: Option<&SigningKey>,
) -> io::Result<bool> {
    match key {
        Some(key) => Ok(!matches!(log_end(path, file, key)?, LogEnd::Damaged)),
        None => Ok(file.metadata()?.len() == 0),
    }
}

/// The end of a log, as the node with its key judges it.
pub(super) enum LogEnd {
    /// A header or a signed record: the number of the record that follows, and the hash that it chains to.
    Signed { next: u64, last: [u8; 32] },
    /// All of it is the beginning of the node's own header, which follows this hash.
    TornHeader { before: [u8; 32] },
    /// Anything else.
    Damaged,
}

/// Judges the end of a log.
pub(super) fn log_end(path: &Path, file: &File, key: &SigningKey) -> io::Result<LogEnd> {
    let line = last_line(file, end_of_lines(file)?)?;
    if let Some((next, last)) = chain_position(&line, &key.verifying_key()) {
        return Ok(LogEnd::Signed { next, last });
    }
    let before = previous_hash(path)?.unwrap_or_default();
    let found = tail_before(file, file.metadata()?.len())?;
    Ok(match header(key, &before).as_bytes().starts_with(&found) {
        true => LogEnd::TornHeader { before },
        false => LogEnd::Damaged,
    })
}
