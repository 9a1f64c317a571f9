//! The file of a model that runs on this machine: its hash, and whether it is still the same.

use std::collections::HashMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;

use anyhow::Context;
use base::lock::MutexExt;

/// Number of bytes read at a time.
const PART_BYTES: usize = 1 << 16;

/// Hashes of files that were looked at, each with what the file looked like then: large ones are read again only after a change.
#[derive(Debug, Default)]
pub(super) struct ModelFileHashes(Mutex<HashMap<PathBuf, (ModelFileStamp, String)>>);

/// A file's length and when it was last written.
type ModelFileStamp = (u64, Option<SystemTime>);

impl ModelFileHashes {
    /// The hash of what lies there now; nothing where it cannot be read.
    pub(super) fn of(&self, path: &Path) -> Option<String> {
        let about = std::fs::metadata(path).ok()?;
        let looks = (about.len(), about.modified().ok());
        let lock = || self.0.locked();
        let known = lock().get(path).filter(|(then, _)| *then == looks).cloned();
        if let Some((_, hash)) = known {
            return Some(hash);
        }
        let hash = hash_of(path).ok()?;
        lock().insert(path.to_owned(), (looks, hash.clone()));
        Some(hash)
    }
}

/// The BLAKE3 hash of a file of any size.
pub(super) fn hash_of(path: &Path) -> anyhow::Result<String> {
    let cannot = || format!("cannot read the model's file {}", path.display());
    let mut file = std::fs::File::open(path).with_context(cannot)?;
    let (mut hasher, mut part) = (blake3::Hasher::new(), vec![0; PART_BYTES]);
    loop {
        let length = file.read(&mut part).with_context(cannot)?;
        if length == 0 {
            return Ok(hasher.finalize().to_hex().to_string());
        }
        hasher.update(part.get(..length).unwrap_or_default());
    }
}
