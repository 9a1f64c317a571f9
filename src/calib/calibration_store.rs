//! Storage of proposals and accepted calibrations: a folder with one file each, limited to the last ones.
//!
//! A file is written beside its place, synced and renamed: a reader sees the old or the new. A lock keeps two commands
//! from writing at once.

use std::fs::{File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::calibration_record::{CalibrationRecord, CalibrationSession};
use base::clock::NodeClock;
use base::disk;

/// Older records are thrown away.
pub const KEPT_MAX: usize = 50;

/// A larger file is not ours.
const BYTES_MAX: u64 = 1 << 20;

/// Longest wait for another command that writes: none thinks so long.
const LOCKED_WITHIN: Duration = Duration::from_secs(5);

/// Interval between two tries.
const TRIED_EVERY: Duration = Duration::from_millis(20);

/// The proposal's file.
const PROPOSAL: &str = "proposal.toml";

/// Reason that the folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CalibrationStoreError {
    /// The file system says no.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A file is not what was written.
    #[error("{path}: {why}; it was changed by something else: move it away")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Problem in the file.
        why: String,
    },
    /// Another command keeps writers out for longer than this one waits.
    #[error(
        "{holder} writes calibrations and did not end within {} s: wait for it, or end it, then give this command again; nothing was written ({path})",
        LOCKED_WITHIN.as_secs()
    )]
    Busy {
        /// The lock's file.
        path: PathBuf,
        /// The command that holds it, as far as its file tells.
        holder: String,
    },
    /// There is no such record.
    #[error("there is no calibration {number}; `steadyhand calibrate history` lists them")]
    Unknown {
        /// The number that was asked for.
        number: u64,
    },
}

/// A folder of calibrations.
#[derive(Clone, Debug)]
pub struct CalibrationStore {
    folder: PathBuf,
}

/// As long as it lives no other command writes.
#[derive(Debug)]
pub struct CalibrationLock(#[expect(dead_code, reason = "the lock ends with the file")] File);

impl CalibrationStore {
    /// The calibrations in a node's state folder.
    #[must_use]
    pub fn of_state(state: &Path) -> Self {
        Self {
            folder: state.join("calibration"),
        }
    }

    /// Waits a while for other commands and keeps them out. No question may be open while this is held.
    ///
    /// # Errors
    /// When the folder cannot be made or locked, or another command holds it all the while.
    pub fn lock(&self) -> Result<CalibrationLock, CalibrationStoreError> {
        let path = self.folder.join("lock");
        match self.lock_at(&path) {
            Ok(Some(file)) => Ok(CalibrationLock(file)),
            Ok(None) => Err(CalibrationStoreError::Busy {
                holder: holder(&path),
                path,
            }),
            Err(error) => Err(file_error(&path)(error)),
        }
    }

    /// Locks the file and writes into it who did; `None` where another holds it too long.
    fn lock_at(&self, path: &Path) -> io::Result<Option<File>> {
        disk::folder(&self.folder)?;
        let mut file = disk::touch(path)?;
        let clock = NodeClock::real();
        let until = clock.now().after(LOCKED_WITHIN);
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) if clock.now() < until => {
                    std::thread::park_timeout(TRIED_EVERY);
                }
                Err(TryLockError::WouldBlock) => return Ok(None),
            }
        }
        file.set_len(0)?;
        write!(file, "{}", std::process::id())?;
        Ok(Some(file))
    }

    /// The touches that are being collected.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn proposal(&self) -> Result<Option<CalibrationSession>, CalibrationStoreError> {
        self.read_if_there(&self.folder.join(PROPOSAL))
    }

    /// Keeps touches, in the place of those before.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn propose(
        &self,
        session: &CalibrationSession,
        _lock: &CalibrationLock,
    ) -> Result<(), CalibrationStoreError> {
        self.write(&self.folder.join(PROPOSAL), session)
    }

    /// Discards the collected touches, if any.
    ///
    /// # Errors
    /// If the file cannot be removed.
    pub fn discard(&self, _lock: &CalibrationLock) -> Result<(), CalibrationStoreError> {
        let path = self.folder.join(PROPOSAL);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(file_error(&path)(error)),
            _ => Ok(()),
        }
    }

    /// Every accepted calibration that is kept, the oldest first.
    ///
    /// # Errors
    /// When one of them cannot be read.
    pub fn history(&self) -> Result<Vec<CalibrationRecord>, CalibrationStoreError> {
        self.numbers()
            .into_iter()
            .map(|number| self.record(number))
            .collect()
    }

    /// Returns one of the records.
    ///
    /// # Errors
    /// If there is no record of that number, or it cannot be read.
    pub fn record(&self, number: u64) -> Result<CalibrationRecord, CalibrationStoreError> {
        let record = self.read_if_there(&self.place(number))?;
        record.ok_or(CalibrationStoreError::Unknown { number })
    }

    /// The number that the next one gets.
    #[must_use]
    pub fn next_number(&self) -> u64 {
        self.numbers()
            .last()
            .map_or(1, |last| last.saturating_add(1))
    }

    /// Keeps a calibration that was accepted, and throws away those beyond [`KEPT_MAX`]; the newest of each thing stays, however
    /// old it is, because drawings rest on it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep(
        &self,
        record: &CalibrationRecord,
        _lock: &CalibrationLock,
    ) -> Result<(), CalibrationStoreError> {
        self.write(&self.place(record.number), record)?;
        let numbers = self.numbers();
        let old = numbers.len().saturating_sub(KEPT_MAX);
        if old == 0 {
            return Ok(());
        }
        let kept = self.history()?;
        let is_replaced = |one: &CalibrationRecord| {
            let mut newer = kept.iter().filter(|other| other.number > one.number);
            // Practice replaces no calibration of an arm on a port.
            newer.any(|other| {
                other.session.is_of_same(&one.session) && other.session.origin == one.session.origin
            })
        };
        for (number, record) in numbers.into_iter().zip(&kept).take(old) {
            // A file whose name is not its record's was put there by a person.
            if record.number == number && is_replaced(record) {
                // One that stays is thrown away the next time.
                let _ = std::fs::remove_file(self.place(number));
            }
        }
        Ok(())
    }

    /// Returns the last accepted pose of a camera; kept regardless of later calibrations.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn camera(&self, name: &str) -> Result<Option<CalibrationRecord>, CalibrationStoreError> {
        self.read_if_there(&self.camera_place(name))
    }

    /// Keeps where a camera stands from now on.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep_camera(
        &self,
        record: &CalibrationRecord,
        _lock: &CalibrationLock,
    ) -> Result<PathBuf, CalibrationStoreError> {
        let path = self.camera_place(&record.session.name);
        self.write(&path, record)?;
        Ok(path)
    }

    /// A name that a node file may give a camera is one that a file may have.
    fn camera_place(&self, name: &str) -> PathBuf {
        let plain: String = name
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || "-_".contains(*c))
            .collect();
        self.folder.join(format!("camera-{plain}.toml"))
    }

    fn place(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{number:06}.toml"))
    }

    fn numbers(&self) -> Vec<u64> {
        let entries = std::fs::read_dir(&self.folder)
            .into_iter()
            .flatten()
            .flatten();
        let mut numbers: Vec<u64> = entries
            .filter_map(|entry| {
                let name = entry.file_name();
                name.to_str()?.strip_suffix(".toml")?.parse().ok()
            })
            .collect();
        numbers.sort_unstable();
        numbers
    }

    fn read_if_there<T: DeserializeOwned>(
        &self,
        path: &Path,
    ) -> Result<Option<T>, CalibrationStoreError> {
        path.exists().then(|| read(path)).transpose()
    }

    fn write<T: Serialize>(&self, path: &Path, what: &T) -> Result<(), CalibrationStoreError> {
        let text = toml::to_string(what).map_err(|error| damaged(path, error.to_string()))?;
        put(path, &text)
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, CalibrationStoreError> {
    let bytes = std::fs::metadata(path).map_err(file_error(path))?.len();
    if bytes > BYTES_MAX {
        let why = format!("it has {bytes} bytes, at most {BYTES_MAX} are read");
        return Err(damaged(path, why));
    }
    let text = std::fs::read_to_string(path).map_err(file_error(path))?;
    let read = toml::from_str::<toml::Table>(&text).and_then(toml::Table::try_into);
    read.map_err(|error| damaged(path, error.message().to_owned()))
}

fn damaged(path: &Path, why: String) -> CalibrationStoreError {
    let path = path.to_owned();
    CalibrationStoreError::Damaged { path, why }
}

pub(super) fn file_error(path: &Path) -> impl FnOnce(io::Error) -> CalibrationStoreError {
    let path = path.to_owned();
    move |source| CalibrationStoreError::File { path, source }
}

/// Returns who holds a lock, by what was written into its file.
fn holder(path: &Path) -> String {
    let process = std::fs::read_to_string(path).ok();
    let process = process.and_then(|text| text.parse::<u32>().ok());
    process.map_or_else(
        || "another command".to_owned(),
        |id| format!("another command (process {id})"),
    )
}

/// As [`disk::put`].
///
/// # Errors
/// When it cannot be written; the old one is as it was.
pub fn put(path: &Path, text: &str) -> Result<(), CalibrationStoreError> {
    disk::put(path, text).map_err(file_error(path))
}
