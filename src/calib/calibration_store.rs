//! Storage of proposals and accepted calibrations: a folder with one file each, limited to the last ones.
//!
//! A file is written under another name, synced and renamed: a reader sees the old or the new. A lock prevents two commands
//! from writing at once.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::calibration_record::{CalibrationRecord, CalibrationSession};
use super::foot_frame::KeptCalibration;
use base::disk;
use base::file_lock::lock_within;
use base::plain_file;
use scene::SceneLibrary;

/// Number of records that are kept.
pub const KEPT_MAX: usize = 50;

/// Larger files are not read.
const BYTES_MAX: u64 = 1 << 20;

/// Longest wait for another command's lock, which no command holds that long.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// Name of the proposal's file.
const PROPOSAL: &str = "proposal.toml";

/// The record of a calibration that is being written into its scene's or arm's file.
const ACCEPTING: &str = "accepting.toml";

/// File that is locked while an arm or a person measures for the next proposal.
const CLAIM: &str = "claim";

/// Reason that the folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CalibrationStoreError {
    /// A file operation failed.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A file was changed by something else.
    #[error("another program changed {path}: {reason}. Next: move that file away")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Problem in the file.
        reason: String,
    },
    /// Another command holds the lock for longer than this one waits.
    #[error(
        "{holder} has had {path} locked for more than {} s. Nothing was written. Next: wait until that program ends, or close it, then repeat this command",
        LOCK_TIMEOUT.as_secs()
    )]
    Busy {
        /// The lock's file.
        path: PathBuf,
        /// The command that holds it, according to its file.
        holder: String,
    },
    /// Accepting the proposal was interrupted.
    #[error(
        "the proposal was not completely accepted as calibration {number}. Next: `steadyhand calibrate accept` (nothing is applied twice)"
    )]
    Interrupted {
        /// Number of the calibration.
        number: u64,
    },
    /// Something else measures for the next proposal.
    #[error(
        "only one proposal can be made at a time: {by}. Next: wait until that ends, or stop it, then try again"
    )]
    Claimed {
        /// Arm or person, and what it does.
        by: String,
    },
    /// There is no such record.
    #[error("there is no calibration {number}. Next: `steadyhand calibrate history`")]
    Unknown {
        /// The requested number.
        number: u64,
    },
}

/// A folder of calibrations.
#[derive(Clone, Debug)]
pub struct CalibrationStore {
    folder: PathBuf,
    /// The arms, whose frames older calibrations do not name.
    library: SceneLibrary,
}

/// Prevents other commands from writing while it exists.
#[derive(Debug)]
pub struct CalibrationLock(#[expect(dead_code, reason = "the lock ends with the file")] File);

/// As long as it lives nothing else measures for the next proposal.
#[derive(Debug)]
pub struct ProposalClaim(#[expect(dead_code, reason = "the claim ends with the file")] File);

impl CalibrationStore {
    /// Returns the calibrations in a node's state folder, of the arms of a library.
    #[must_use]
    pub fn of_state(state: &Path, library: &SceneLibrary) -> Self {
        Self {
            folder: state.join("calibration"),
            library: library.clone(),
        }
    }

    /// Locks out other commands, waiting for a while. Callers must not wait for a person while they hold the lock.
    ///
    /// # Errors
    /// When the folder cannot be created or locked, or another command holds the lock until the timeout.
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

    /// Locks the file and writes this process's id into it; `None` if another process holds it until the timeout.
    fn lock_at(&self, path: &Path) -> io::Result<Option<File>> {
        disk::folder(&self.folder)?;
        let mut file = disk::touch(path)?;
        if !lock_within(&file, LOCK_TIMEOUT)? {
            return Ok(None);
        }
        file.set_len(0)?;
        write!(file, "{}", std::process::id())?;
        Ok(Some(file))
    }

    /// Claims the next proposal for `by`, which says who does what: "arm left feels for the sheet of scene short".
    ///
    /// # Errors
    /// Another arm or person has claimed it, or the folder cannot be written.
    pub fn claim(&self, by: &str) -> Result<ProposalClaim, CalibrationStoreError> {
        let path = self.folder.join(CLAIM);
        let claimed = || {
            disk::folder(&self.folder)?;
            let mut file = disk::touch(&path)?;
            if !lock_within(&file, Duration::ZERO)? {
                return Ok(None);
            }
            file.set_len(0)?;
            write!(file, "{by}")?;
            Ok(Some(ProposalClaim(file)))
        };
        let text = || plain_file::read_text(&path).unwrap_or_default();
        let holder = || Some(text()).filter(|by| !by.is_empty());
        claimed()
            .map_err(file_error(&path))?
            .ok_or_else(|| CalibrationStoreError::Claimed {
                by: holder().unwrap_or_else(|| "another command is measuring".to_owned()),
            })
    }

    /// The touches that are being collected.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn proposal(&self) -> Result<Option<CalibrationSession>, CalibrationStoreError> {
        self.read_if_there(&self.folder.join(PROPOSAL))
    }

    /// Stores the collected touches, replacing those before.
    ///
    /// # Errors
    /// When the file cannot be written, or accepting those before was interrupted.
    pub fn propose(
        &self,
        session: &CalibrationSession,
        lock: &CalibrationLock,
    ) -> Result<(), CalibrationStoreError> {
        self.check_not_interrupted()?;
        // It is of no proposal, and must not be taken for the record of this one.
        self.end(lock);
        self.write(&self.folder.join(PROPOSAL), session)
    }

    /// Discards the collected touches, if any.
    ///
    /// # Errors
    /// If the file cannot be removed, or accepting them was interrupted.
    pub fn discard(&self, _lock: &CalibrationLock) -> Result<(), CalibrationStoreError> {
        // What cannot be read is thrown away as well.
        if let Err(error @ CalibrationStoreError::Interrupted { .. }) = self.check_not_interrupted()
        {
            return Err(error);
        }
        self.remove_proposal()
    }

    fn remove_proposal(&self) -> Result<(), CalibrationStoreError> {
        let path = self.folder.join(PROPOSAL);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(file_error(&path)(error)),
            _ => Ok(()),
        }
    }

    /// Returns every accepted calibration that is kept, oldest first.
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
        let record = self.read_if_there(&self.record_path(number))?;
        record.ok_or(CalibrationStoreError::Unknown { number })
    }

    /// Returns the number of the next record.
    #[must_use]
    pub fn next_number(&self) -> u64 {
        self.numbers()
            .last()
            .map_or(1, |last| last.saturating_add(1))
    }

    /// Records a calibration as one that is being written, before its file is and until its proposal is gone: whatever ends the
    /// program in between, it is known.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn begin(
        &self,
        record: &CalibrationRecord,
        _lock: &CalibrationLock,
    ) -> Result<(), CalibrationStoreError> {
        self.write(&self.folder.join(ACCEPTING), record)
    }

    /// Forgets that a calibration is being written.
    pub(super) fn end(&self, _lock: &CalibrationLock) {
        // What stays beside its proposal is finished by accepting it again, and replaced otherwise.
        let _ = std::fs::remove_file(self.folder.join(ACCEPTING));
    }

    /// Discards the proposal that was accepted.
    pub(super) fn end_proposal(&self, lock: &CalibrationLock) -> Result<(), CalibrationStoreError> {
        self.remove_proposal()?;
        self.end(lock);
        Ok(())
    }

    /// Returns the record of the proposal, if accepting it was interrupted: its file may have the new values or the old.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn interrupted(&self) -> Result<Option<CalibrationRecord>, CalibrationStoreError> {
        let record: Option<CalibrationRecord> = self.read_if_there(&self.folder.join(ACCEPTING))?;
        let Some(record) = record else {
            return Ok(None);
        };
        let proposal = self.proposal()?;
        Ok(proposal.filter(|it| *it == record.session).map(|_| record))
    }

    /// Checks that accepting the proposal was not interrupted.
    ///
    /// # Errors
    /// It was.
    pub fn check_not_interrupted(&self) -> Result<(), CalibrationStoreError> {
        match self.interrupted()? {
            Some(CalibrationRecord { number, .. }) => {
                Err(CalibrationStoreError::Interrupted { number })
            }
            None => Ok(()),
        }
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
        self.write(&self.record_path(record.number), record)?;
        // Those that stay are thrown away the next time.
        let _ = self.trim();
        Ok(())
    }

    /// Takes back a calibration that is in no file.
    pub(super) fn forget(&self, number: u64, lock: &CalibrationLock) {
        let _ = std::fs::remove_file(self.record_path(number));
        self.end(lock);
    }

    fn trim(&self) -> Result<(), CalibrationStoreError> {
        let numbers = self.numbers();
        let excess = numbers.len().saturating_sub(KEPT_MAX);
        if excess == 0 {
            return Ok(());
        }
        let kept = self.history()?;
        let is_replaced = |record: &CalibrationRecord| {
            let mut newer = kept.iter().filter(|other| other.number > record.number);
            // Practice does not replace a calibration of an arm on a port.
            newer.any(|other| {
                other.session.is_of_same(&record.session)
                    && other.session.origin == record.session.origin
            })
        };
        for (number, record) in numbers.into_iter().zip(&kept).take(excess) {
            // A person put a file there if its name does not match its record.
            if record.number == number && is_replaced(record) {
                // A file that could not be removed is tried again the next time.
                let _ = std::fs::remove_file(self.record_path(number));
            }
        }
        Ok(())
    }

    /// Returns the last accepted pose of a camera; kept regardless of later calibrations.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn camera(&self, name: &str) -> Result<Option<CalibrationRecord>, CalibrationStoreError> {
        self.read_if_there(&self.camera_path(name))
    }

    /// Stores a camera's pose.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn keep_camera(
        &self,
        record: &CalibrationRecord,
    ) -> Result<(), CalibrationStoreError> {
        self.write(&self.camera_path(&record.session.name), record)
    }

    /// A name that a node file may give a camera is one that a file may have.
    pub(super) fn camera_path(&self, name: &str) -> PathBuf {
        let file_name: String = name
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || "-_".contains(*c))
            .collect();
        self.folder.join(format!("camera-{file_name}.toml"))
    }

    fn record_path(&self, number: u64) -> PathBuf {
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
                let number = name.to_str()?.strip_suffix(".toml")?.parse().ok()?;
                // A file that a person put there under another name is no record.
                (self.record_path(number) == entry.path()).then_some(number)
            })
            .collect();
        numbers.sort_unstable();
        numbers
    }

    /// Reads a calibration; one of before is moved into the frame of its arm's foot.
    fn read_if_there<T: DeserializeOwned + KeptCalibration>(
        &self,
        path: &Path,
    ) -> Result<Option<T>, CalibrationStoreError> {
        let kept: Option<T> = path.exists().then(|| read(path)).transpose()?;
        let move_to_foot = |mut kept: T| {
            let session = kept.session();
            if session.frame.is_none()
                && let Ok(arm) = self.library.arm(&session.arm)
            {
                kept.move_to_foot(&arm.file);
            }
            kept
        };
        Ok(kept.map(move_to_foot))
    }

    fn write<T: Serialize>(&self, path: &Path, what: &T) -> Result<(), CalibrationStoreError> {
        let text = toml::to_string(what).map_err(|error| damaged(path, error.to_string()))?;
        put(path, &text)
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, CalibrationStoreError> {
    let bytes = std::fs::metadata(path).map_err(file_error(path))?.len();
    if bytes > BYTES_MAX {
        let reason = format!("it has {bytes} bytes, at most {BYTES_MAX} are read");
        return Err(damaged(path, reason));
    }
    let text = plain_file::read_text(path).map_err(file_error(path))?;
    let parsed = toml::from_str::<toml::Table>(&text).and_then(toml::Table::try_into);
    parsed.map_err(|error| damaged(path, error.message().to_owned()))
}

fn damaged(path: &Path, reason: String) -> CalibrationStoreError {
    let path = path.to_owned();
    CalibrationStoreError::Damaged { path, reason }
}

pub(super) fn file_error(path: &Path) -> impl FnOnce(io::Error) -> CalibrationStoreError {
    let path = path.to_owned();
    move |source| CalibrationStoreError::File { path, source }
}

/// Returns who holds a lock, according to its file.
fn holder(path: &Path) -> String {
    let text = plain_file::read_text(path).ok();
    let process = text.and_then(|text| text.parse::<u32>().ok());
    process.map_or_else(
        || "another command".to_owned(),
        |id| format!("another command (process {id}) is measuring"),
    )
}

/// Writes a file as [`disk::put`] does.
///
/// # Errors
/// When it cannot be written; the old file is unchanged.
pub fn put(path: &Path, text: &str) -> Result<(), CalibrationStoreError> {
    disk::put(path, text).map_err(file_error(path))
}
