//! Reads back what earlier processes recorded, newest first.

use super::*;
use crate::JOBS;
use base::plain_file;

/// Number of files that are read: the present one and the last that was rotated.
const FILES_READ: u32 = 2;

/// Calls `visit` with the text of each record of a kind in a node's audit log, the newest first. A file that cannot be read has
/// none.
pub fn visit_audit(state: &Path, kind: &str, mut visit: impl FnMut(&str)) {
    let path = state.join(FILE);
    let rotated =
        (1..FILES_READ).map(|number| PathBuf::from(format!("{}.{number}", path.display())));
    for path in std::iter::once(path.clone()).chain(rotated) {
        let bytes = read_plain(&path).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        for line in text.lines().rev() {
            let mut fields = line.split('\t').skip(2);
            if fields.next() == Some(kind)
                && let Some(text) = fields.next()
            {
                visit(&unescaped(text));
            }
        }
    }
}

/// Returns whether a node ran here before this process: it served, or had a job. A start that was refused leaves neither, nor do
/// tokens and certificates, which are made before the first start.
#[must_use]
pub fn was_node_here(state: &Path) -> bool {
    let jobs = std::fs::read_dir(state.join(JOBS)).into_iter().flatten();
    let is_job = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with("job-");
    state.join("configuration.json").symlink_metadata().is_ok() || jobs.flatten().any(is_job)
}

/// Reads what a log can hold of a file, if it is a plain file and no link to one.
fn read_plain(path: &Path) -> io::Result<Vec<u8>> {
    match std::fs::symlink_metadata(path)?.is_file() {
        true => plain_file::read_start(path, 2 * FILE_BYTES_MAX),
        false => Ok(Vec::new()),
    }
}

/// Returns a text as it was before [`escaped`], but for control characters, which stay escaped.
#[must_use]
pub fn unescaped(text: &str) -> String {
    let mut chars = text.chars();
    let mut whole = String::with_capacity(text.len());
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('t') => whole.push('\t'),
                Some('n') => whole.push('\n'),
                Some('r') => whole.push('\r'),
                Some('\\') => whole.push('\\'),
                Some(other) => whole.extend(['\\', other]),
                None => whole.push('\\'),
            },
            c => whole.push(c),
        }
    }
    whole
}
