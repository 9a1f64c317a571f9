//! Reads back what earlier processes recorded, newest first.

use super::*;
use crate::JOBS;
use crate::job_store::LOCK;
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

/// Files and folders, by the beginnings of their names, that only a node makes that has started. Tokens, certificates and the
/// key that signs them are made before the first start.
const OF_NODE: [&str; 6] = [
    FILE,
    LOCK,
    JOBS,
    "configuration.json",
    "standing-orders-",
    "emergency-stop-",
];

/// Returns whether a node was here before this process. A folder that cannot be listed counts as one in which a node was.
#[must_use]
pub fn was_node_here(state: &Path) -> bool {
    let is_of_node = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.map_or(true, |entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            OF_NODE.iter().any(|of_node| name.starts_with(of_node))
        })
    };
    match std::fs::read_dir(state) {
        Ok(mut entries) => entries.any(is_of_node),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Returns whether the folder of jobs is there, which a node makes at its first start.
#[must_use]
pub fn has_jobs(state: &Path) -> bool {
    state.join(JOBS).is_dir()
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
