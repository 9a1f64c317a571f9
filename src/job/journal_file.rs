//! An append-only file of records that survives the loss of power.
//!
//! The file begins with `steadyhand journal 1\n`. Records follow, each with a header of 16 bytes and a
//! body: the body's length (4 bytes, little-endian), the record's number from 0 (8), a CRC-32 of
//! these twelve (4), the body, and the first 8 bytes of a BLAKE3 hash over header and body. Each
//! record is made durable before the next is written, so only the last can be torn: it
//! is cut, and its length reported. A broken record that more follows, another one or more bytes
//! than a torn one leaves, was changed later: reading fails and names it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::journal_record::JournalRecord;
#[cfg(test)]
use super::journal_record::RecordKind;
use base::file_access::with_mode;
use base::plain_file;

/// Beginning of every file; the digit is the version.
const MAGIC: &[u8] = b"steadyhand journal 1\n";

const HEADER_BYTES: usize = 16;
const CHECK_BYTES: usize = 8;

/// A longer body is neither written nor read.
const BODY_BYTES_MAX: usize = 64 << 20;

/// Bytes that may follow a torn record, or stand in place of one whose length is lost: zeros, or what the disk held before. No
/// record of a motion is as long; of a plan that is lost the job's folder is named.
const STALE_BYTES_MAX: usize = 2048;

static CRC: crc::Crc<u32> = crc::Crc::<u32>::new(&crc::CRC_32_ISO_HDLC);

/// Reason why a journal cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A file operation failed.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// It is not a journal of this version.
    #[error(
        "{0} is not a journal of this version. Next: move its job's folder away and start the node again, or read it with the node that wrote it"
    )]
    Foreign(PathBuf),
    /// It was changed after it was written.
    #[error(
        "{path} is unreadable starting at record {record} (byte {at}): it was damaged, or a power cut lost more than one record. Next: move its job's folder away and start the node again"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Number of the record, from 0.
        record: u64,
        /// Its offset.
        at: usize,
    },
    /// It is not a job's name, and so not a folder's.
    #[error("{0:?} is not a job's id. Valid: job-1, job-2 and so on")]
    NoJob(String),
    /// It has no record: the job is just beginning, or its first record was torn.
    #[error("{0} has no record yet: its job has not started")]
    Nothing(PathBuf),
    /// It has no record, or is away, although its job had more than begun.
    #[error(
        "{0} is missing or empty, although the job's folder has other files. Next: restore it, or move the folder away; then start the node again"
    )]
    Lost(PathBuf),
    /// No further job could be named.
    #[error(
        "{0} has the highest number that a job can have. Next: move that folder away and start the node again"
    )]
    LastNumber(PathBuf),
    /// A record is too long to be written.
    #[error("a record of {0} bytes is too long (at most {BODY_BYTES_MAX})")]
    TooLong(usize),
}

/// The contents of a file.
#[derive(Debug)]
pub(super) struct JournalContents {
    /// All complete records, in order.
    pub(super) records: Vec<JournalRecord>,
    /// Bytes of a last record that was not completely written.
    pub(super) torn_bytes: usize,
    /// Length of the file without those bytes.
    length: usize,
}

/// A journal that is open for writing.
#[derive(Debug)]
pub(super) struct JournalFile {
    file: File,
    path: PathBuf,
    next: u64,
    /// True after a failed write, which may have left a partial record: nothing more is added.
    is_broken: bool,
    #[cfg(test)]
    full_at: Option<u64>,
    #[cfg(test)]
    full_at_kind: Option<RecordKind>,
    #[cfg(test)]
    panics_at: Option<u64>,
}

fn file_error(path: &Path) -> impl Fn(io::Error) -> JournalError + '_ {
    |error| JournalError::File {
        path: path.to_owned(),
        error,
    }
}

impl JournalFile {
    /// Creates a file that only this user can access.
    ///
    /// # Errors
    /// When it exists already, or cannot be written.
    pub(super) fn create(path: &Path) -> Result<Self, JournalError> {
        let mut options = OpenOptions::new();
        options.append(true).create_new(true);
        let opened = with_mode(&mut options, 0o600).open(path);
        let mut file = opened.map_err(file_error(path))?;
        let written = file.write_all(MAGIC).and_then(|()| file.sync_all());
        written.map_err(file_error(path))?;
        Ok(Self::with_records(file, path, 0))
    }

    /// Wraps a file that has this many records.
    fn with_records(file: File, path: &Path, records: u64) -> Self {
        Self {
            file,
            path: path.to_owned(),
            next: records,
            is_broken: false,
            #[cfg(test)]
            full_at: None,
            #[cfg(test)]
            full_at_kind: None,
            #[cfg(test)]
            panics_at: None,
        }
    }

    /// Opens a file for more records, cutting off a torn last one.
    ///
    /// # Errors
    /// As [`read`].
    pub(super) fn reopen(path: &Path) -> Result<(Self, JournalContents), JournalError> {
        let contents = read(path)?;
        let opened = OpenOptions::new().append(true).open(path);
        let mut file = opened.map_err(file_error(path))?;
        if contents.torn_bytes > 0 {
            let cut = file.set_len(contents.length as u64);
            cut.and_then(|()| file.sync_all())
                .map_err(file_error(path))?;
        }
        if contents.length == 0 {
            let written = file.write_all(MAGIC).and_then(|()| file.sync_all());
            written.map_err(file_error(path))?;
        }
        Ok((
            Self::with_records(file, path, contents.records.len() as u64),
            contents,
        ))
    }

    /// Simulates a disk that is full from this record on.
    #[cfg(test)]
    pub(super) fn disk_fills_at(&mut self, record: u64) {
        self.full_at = Some(record);
    }

    /// Stands in for a disk that is full before the first record of a kind.
    #[cfg(test)]
    pub(super) fn disk_fills_at_kind(&mut self, kind: RecordKind) {
        self.full_at_kind = Some(kind);
    }

    /// Makes the thread that writes this record panic.
    #[cfg(test)]
    pub(super) fn panics_at(&mut self, record: u64) {
        self.panics_at = Some(record);
    }

    /// Writes a record; it is on the disk when this returns.
    ///
    /// # Errors
    /// When it may not be on the disk: then nothing further can be written to this file either.
    pub(super) fn append(&mut self, record: &JournalRecord) -> Result<(), JournalError> {
        let body = record.encode();
        if body.len() > BODY_BYTES_MAX {
            return Err(JournalError::TooLong(body.len()));
        }
        if self.is_broken {
            let error = io::Error::other("an earlier record could not be written");
            return Err(file_error(&self.path)(error));
        }
        #[cfg(test)]
        assert_ne!(self.panics_at, Some(self.next), "a thread that panics");
        #[cfg(test)]
        if self.full_at == Some(self.next)
            || (self.full_at_kind.is_some() && self.full_at_kind == record.kind)
        {
            self.file = OpenOptions::new()
                .write(true)
                .open("/dev/full")
                .map_err(file_error(&self.path))?;
        }
        let written = self
            .file
            .write_all(&frame(self.next, &body))
            .and_then(|()| self.file.sync_data());
        self.is_broken = written.is_err();
        self.next += 1;
        written.map_err(file_error(&self.path))
    }
}

/// Adds a record to the end of a file; it is on the disk when this returns.
///
/// # Errors
/// As [`JournalFile::reopen`] and [`JournalFile::append`].
pub(super) fn append_to(path: &Path, record: &JournalRecord) -> Result<(), JournalError> {
    let (mut log, _) = JournalFile::reopen(path)?;
    log.append(record)
}

/// Returns a record's bytes in the file.
fn frame(number: u64, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + body.len() + CHECK_BYTES);
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&number.to_le_bytes());
    bytes.extend_from_slice(&CRC.checksum(&bytes).to_le_bytes());
    bytes.extend_from_slice(body);
    let check = *blake3::hash(&bytes).as_bytes();
    bytes.extend(check.iter().take(CHECK_BYTES));
    bytes
}

/// Reads a whole file. One that is shorter than its first line was just being created, and counts as empty.
///
/// # Errors
/// [`JournalError`] names the first record that was damaged.
pub(super) fn read(path: &Path) -> Result<JournalContents, JournalError> {
    #[cfg(test)]
    super::tests::wait_while_stalled(path);
    parse_contents(&plain_file::read(path).map_err(file_error(path))?, path)
}

/// Parses a file's bytes; `path` is for errors.
///
/// # Errors
/// As [`read`].
pub(super) fn parse_contents(bytes: &[u8], path: &Path) -> Result<JournalContents, JournalError> {
    let mut contents = JournalContents {
        records: Vec::new(),
        torn_bytes: 0,
        length: 0,
    };
    let damaged = |record: u64, at: usize| JournalError::Damaged {
        path: path.to_owned(),
        record,
        at,
    };
    let Some(mut remaining) = bytes.strip_prefix(MAGIC) else {
        let is_blank = bytes.iter().all(|byte| *byte == 0);
        if MAGIC.starts_with(bytes) || (is_blank && bytes.len() <= STALE_BYTES_MAX) {
            contents.torn_bytes = bytes.len();
            return Ok(contents);
        }
        return Err(match is_blank {
            true => damaged(0, 0),
            false => JournalError::Foreign(path.to_owned()),
        });
    };
    let mut number = 0_u64;
    while let Some((record, after)) = first_record(remaining, number) {
        contents.records.push(record);
        remaining = after;
        number += 1;
    }
    contents.length = bytes.len() - remaining.len();
    contents.torn_bytes = remaining.len();
    if remaining.len() > torn_bytes_max(remaining) || has_later_record(remaining, number) {
        return Err(damaged(number, contents.length));
    }
    Ok(contents)
}

/// Returns the record at the beginning of the bytes, if it is intact and has this number, and the bytes after it.
fn first_record(bytes: &[u8], number: u64) -> Option<(JournalRecord, &[u8])> {
    let (found, length) = header(bytes)?;
    if found != number {
        return None;
    }
    let (framed, after) = bytes.split_at_checked(HEADER_BYTES + length + CHECK_BYTES)?;
    let (checked, check) = framed.split_at_checked(HEADER_BYTES + length)?;
    if !blake3::hash(checked).as_bytes().starts_with(check) {
        return None;
    }
    Some((JournalRecord::decode(checked.get(HEADER_BYTES..)?)?, after))
}

/// Returns the number and length in a header, if it is intact.
fn header(bytes: &[u8]) -> Option<(u64, usize)> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (number, rest) = rest.split_first_chunk::<8>()?;
    let (check, _) = rest.split_first_chunk::<4>()?;
    if CRC.checksum(bytes.get(..12)?) != u32::from_le_bytes(*check) {
        return None;
    }
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    (length <= BODY_BYTES_MAX).then_some((u64::from_le_bytes(*number), length))
}

/// Returns how long the rest of a file can be that begins with a torn record.
fn torn_bytes_max(rest: &[u8]) -> usize {
    let framed = header(rest).map_or(0, |(_, length)| HEADER_BYTES + length + CHECK_BYTES);
    framed + STALE_BYTES_MAX
}

/// Returns whether an intact record with a later number follows anywhere after a broken one.
fn has_later_record(bytes: &[u8], number: u64) -> bool {
    (1..bytes.len()).any(|from| {
        let later = bytes.get(from..).unwrap_or_default();
        header(later)
            .is_some_and(|(found, _)| found > number && first_record(later, found).is_some())
    })
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use super::super::journal_record::RecordKind;
    use super::*;
    use proptest::prelude::*;

    fn journal_of_three() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let mut log = JournalFile::create(&path).unwrap();
        for drawn_mm in 0..3 {
            log.append(&JournalRecord::new(RecordKind::Ink).with("drawn_mm", drawn_mm))
                .unwrap();
        }
        (folder, path)
    }

    #[test]
    fn cut_at_any_byte_it_loses_at_most_the_last_record_and_goes_on() {
        let (_folder, path) = journal_of_three();
        let intact = std::fs::read(&path).unwrap();
        let all = read(&path).unwrap().records;
        let mut kept = 0;
        for end in 0..=intact.len() {
            std::fs::write(&path, &intact[..end]).unwrap();
            let (mut log, contents) = JournalFile::reopen(&path).unwrap();
            assert_eq!(contents.records, all[..contents.records.len()]);
            assert!(contents.records.len() >= kept, "cut at {end}");
            kept = contents.records.len();
            log.append(&JournalRecord::new(RecordKind::Interrupted))
                .unwrap();
            let after = read(&path).unwrap();
            assert_eq!(after.torn_bytes, 0);
            assert_eq!(after.records.len(), contents.records.len() + 1);
        }
        assert_eq!(kept, 3);
    }

    proptest! {
        /// After a power cut the file may continue with stale bytes of the disk.
                #[test]
                fn stale_bytes_after_a_cut_are_not_a_record(
            bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..12),
            fraction in 0.0..1.0_f64,
            stale in prop::collection::vec(any::<u8>(), 0..80),
        ) {
            let records: Vec<JournalRecord> = bodies
                .into_iter()
                .map(|body| JournalRecord::new(RecordKind::Ink).bytes("body", body))
                .collect();
            let mut bytes = MAGIC.to_vec();
            let mut ends = vec![bytes.len()];
            for (number, record) in (0_u64..).zip(&records) {
                bytes.extend(frame(number, &record.encode()));
                ends.push(bytes.len());
            }
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of a few hundred bytes")]
            let cut = MAGIC.len() + ((bytes.len() - MAGIC.len()) as f64 * fraction) as usize;
            let complete = ends.iter().filter(|end| **end <= cut).count() - 1;
            bytes.truncate(cut);
            bytes.extend(stale);
            let found = parse_contents(&bytes, Path::new("journal")).unwrap();
            prop_assert_eq!(&found.records[..], &records[..complete]);
            prop_assert_eq!(found.torn_bytes, bytes.len() - ends[complete]);
        }
    }

    #[test]
    fn a_sector_of_zeros_at_the_end_counts_as_torn() {
        let (_folder, path) = journal_of_three();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.extend([0; 512]);
        std::fs::write(&path, &bytes).unwrap();
        let contents = read(&path).unwrap();
        assert_eq!((contents.records.len(), contents.torn_bytes), (3, 512));
    }

    /// Each record was durable before the next was written, so that no loss of power leaves more than one torn.
    #[test]
    fn a_rest_longer_than_one_record_is_damage() {
        let (_folder, path) = journal_of_three();
        let intact = std::fs::read(&path).unwrap();
        let first = MAGIC.len() + (intact.len() - MAGIC.len()) / 3;
        let blank = [0; STALE_BYTES_MAX + 1];
        for (kept, record, at) in [
            (intact.len(), 3, intact.len()),
            (first, 1, first),
            (first + HEADER_BYTES + 1, 1, first),
            (MAGIC.len(), 0, MAGIC.len()),
            (0, 0, 0),
        ] {
            let mut bytes = intact[..kept].to_vec();
            bytes.extend(blank);
            bytes.extend(blank);
            std::fs::write(&path, &bytes).unwrap();
            let error = read(&path).unwrap_err();
            let found = match &error {
                JournalError::Damaged { record, at, .. } => Some((*record, *at)),
                _ => None,
            };
            assert_eq!(found, Some((record, at)), "{kept} bytes kept: {error}");
        }
    }

    #[test]
    fn a_changed_byte_before_the_last_record_is_named() {
        let (_folder, path) = journal_of_three();
        let intact = std::fs::read(&path).unwrap();
        let last = intact.len() - (intact.len() - MAGIC.len()) / 3;
        for at in MAGIC.len()..last {
            let mut bytes = intact.clone();
            bytes[at] ^= 0x10;
            std::fs::write(&path, &bytes).unwrap();
            let error = read(&path).unwrap_err();
            assert!(
                matches!(error, JournalError::Damaged { .. }),
                "byte {at}: {error}"
            );
        }
    }

    #[test]
    fn another_file_is_not_taken_for_a_journal() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        std::fs::write(&path, "steadyhand journal 2\n").unwrap();
        assert!(matches!(read(&path), Err(JournalError::Foreign(_))));
    }
}
