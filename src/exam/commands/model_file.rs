//! Hashes the file of a model that runs on this machine, to check whether it is still the same.

use std::collections::HashMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;

use anyhow::Context;
use base::lock::MutexExt;
use base::plain_file;

/// Number of bytes read at a time.
const BUFFER_BYTES: usize = 1 << 16;

/// Cached hashes of files, each with the file's stamp: large files are read again only after a change.
#[derive(Debug, Default)]
pub(super) struct ModelFileHashes(Mutex<HashMap<PathBuf, (ModelFileStamp, String)>>);

/// A file's length and the time of its last change.
type ModelFileStamp = (u64, Option<SystemTime>);

impl ModelFileHashes {
    /// Returns the hash of the file at a path; `None` if it cannot be read.
    pub(super) fn of(&self, path: &Path) -> Option<String> {
        let metadata = std::fs::metadata(path).ok()?;
        let stamp = (metadata.len(), metadata.modified().ok());
        let lock = || self.0.locked();
        let cached = lock().get(path).filter(|(old, _)| *old == stamp).cloned();
        if let Some((_, hash)) = cached {
            return Some(hash);
        }
        let hash = hash_of(path).ok()?;
        lock().insert(path.to_owned(), (stamp, hash.clone()));
        Some(hash)
    }
}

/// Returns the BLAKE3 hash of a file of any size.
pub(super) fn hash_of(path: &Path) -> anyhow::Result<String> {
    let error_text = || format!("cannot read the model's file {}", path.display());
    let mut file = plain_file::open(path).with_context(error_text)?;
    let (mut hasher, mut buffer) = (blake3::Hasher::new(), vec![0; BUFFER_BYTES]);
    loop {
        let length = file.read(&mut buffer).with_context(error_text)?;
        if length == 0 {
            return Ok(hasher.finalize().to_hex().to_string());
        }
        hasher.update(buffer.get(..length).unwrap_or_default());
    }
}
