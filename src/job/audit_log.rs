//! Records calls, refusals, stops, enablings and changes, so that tampering with the record is detected.
//!
//! `audit.log` in the node's state folder is text. Its first line is `steadyhand audit 1`, the
//! node's public key and the hash that an earlier file ended with. Each further line is a record:
//! its number, milliseconds since 1970, its kind, a text, a BLAKE3 hash over the hash before and
//! these four, and the node's Ed25519 signature of that hash, separated by tabs. So a changed,
//! missing or added line breaks the chain from there on. If several records were written at once, only
//! the last is signed, for all of them; the others have a `-` there.
//!
//! No call waits for it: records go through a bounded queue to a thread of its own. Records that find the
//! queue full are counted, and the count is a record. Records of calls that only read are gathered,
//! so that a busy node signs and syncs about once a second; all others are written at once, with
//! what was gathered before them. A job waits until its record is signed and on the disk, and does not begin without it;
//! stops, and everything else, go on when the disk is full.

mod log_end;
mod past_records;

pub(super) use log_end::can_be_continued;
pub use past_records::{has_jobs, unescaped, visit_audit, was_node_here};

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};

use super::node_key::{self, bytes, hex};
use base::clock::calendar_ms;
use base::file_access::{read_exact_at, sync_folder, with_mode};
use base::lock::MutexExt;
use base::plain_file;
use log_end::{LogEnd, log_end};

/// Name of the log in its node's state folder.
pub(super) const FILE: &str = "audit.log";

const MAGIC: &str = "steadyhand audit 1";

/// Number of records that can wait to be written.
const QUEUE: usize = 4096;

/// Longest time for which records that may wait are gathered, so that they are on the disk within a second. A node that dies
/// loses at most the records of this time, and its next start reports that.
const GATHERED: Duration = Duration::from_millis(800);

/// The kind of the last record of a process that closed its log.
const END: &str = "end";

/// In place of a signature: a later one covers this record.
const SIGNED_LATER: &str = "-";

/// Longer texts are cut.
const TEXT_CHARS_MAX: usize = 4096;

/// A longer file is rotated.
const FILE_BYTES_MAX: u64 = 32 << 20;

/// More than the longest record takes: each character of its text may be escaped as six, and hashes follow it.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// Number of rotated files that are kept.
const FILES_KEPT: u32 = 8;

/// A node's audit log. Dropping it writes the waiting records.
#[derive(Debug)]
pub struct AuditLog {
    was_closed: bool,
    queue: Option<SyncSender<AuditMessage>>,
    missed: Arc<AtomicU64>,
    flush_signal: Arc<FlushSignal>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

/// An entry of the queue.
#[derive(Debug)]
struct AuditMessage {
    record: Option<AuditRecord>,
    /// Receives the outcome once this record and all before it are on the disk, or could not be written.
    done: Option<SyncSender<Result<(), UnrecordedError>>>,
}

/// Reason why a record is not on the disk.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnrecordedError {
    /// It could not be written.
    #[error("the audit log cannot be written: {0}")]
    Disk(String),
    /// The log's thread is gone.
    #[error("the audit log's thread has ended")]
    WriterEnded,
}

#[derive(Debug)]
struct AuditRecord {
    at_ms: u64,
    kind: &'static str,
    text: String,
    may_wait: bool,
}

impl AuditRecord {
    fn now(kind: &'static str, text: impl Into<String>, may_wait: bool) -> Self {
        Self {
            at_ms: calendar_ms(),
            kind,
            text: text.into(),
            may_wait,
        }
    }
}

/// Ends the gathering of records when one comes that may not wait.
#[derive(Debug, Default)]
struct FlushSignal {
    is_raised: Mutex<bool>,
    signal: Condvar,
}

impl FlushSignal {
    fn raise(&self) {
        *self.is_raised.locked() = true;
        self.signal.notify_one();
    }

    /// Waits until it is raised, for [`GATHERED`] at most.
    fn wait(&self) {
        let raised = self.is_raised.locked();
        let waited = self
            .signal
            .wait_timeout_while(raised, GATHERED, |raised| !*raised);
        let (mut raised, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *raised = false;
    }
}

impl AuditLog {
    /// Opens a node's log and its key, creating both at the first start.
    ///
    /// # Errors
    /// When the key cannot be used or the log cannot be written.
    pub fn open(state: &Path) -> io::Result<Self> {
        let key = node_key::key(&state.join(node_key::FILE))?;
        let path = state.join(FILE);
        let was_closed = was_closed(&path);
        let chain = AuditChain::open(&path, key).map_err(|error| {
            let message = format!("{}: {error}", path.display());
            io::Error::new(error.kind(), message)
        })?;
        let (queue, waiting) = sync_channel(QUEUE);
        let missed = Arc::new(AtomicU64::new(0));
        let writer_missed = Arc::clone(&missed);
        let flush_signal = Arc::new(FlushSignal::default());
        let writer_signal = Arc::clone(&flush_signal);
        let writer = std::thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || write(chain, &waiting, &writer_signal, &writer_missed))?;
        Ok(Self {
            was_closed,
            queue: Some(queue),
            missed,
            flush_signal,
            writer: Mutex::new(Some(writer)),
        })
    }

    /// Adds a record without waiting: if there is no room, it is counted as missed.
    pub fn note(&self, kind: &'static str, text: impl Into<String>) {
        self.send(AuditRecord::now(kind, text, false));
        self.flush_signal.raise();
    }

    /// Adds a record of something that changed nothing: it may reach the disk a moment later.
    pub fn note_deferred(&self, kind: &'static str, text: impl Into<String>) {
        self.send(AuditRecord::now(kind, text, true));
    }

    /// Adds a record, and waits until it is signed and on the disk. A record that cannot be written is logged, and counted as
    /// missed.
    ///
    /// # Errors
    /// When the record is not on the disk: what it describes must not begin.
    pub fn note_durably(
        &self,
        kind: &'static str,
        text: impl Into<String>,
    ) -> Result<(), UnrecordedError> {
        self.wait_for(Some(AuditRecord::now(kind, text, false)))
    }

    /// Adds the record of a process that ends, and waits until all records are on the disk.
    pub fn note_end(&self, text: impl Into<String>) {
        // The writer has logged what could not be written, and nothing begins any more.
        let _ = self.note_durably(END, text);
    }

    /// Returns whether the process before this one closed the log. If not, records that it had gathered may be missing.
    #[must_use]
    pub fn was_closed(&self) -> bool {
        self.was_closed
    }

    fn send(&self, record: AuditRecord) {
        let message = AuditMessage {
            record: Some(record),
            done: None,
        };
        let sent = self.queue.as_ref().map(|queue| queue.try_send(message));
        if matches!(sent, Some(Err(TrySendError::Full(_)))) {
            self.missed.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Waits until all records are on the disk, before a process ends.
    pub fn flush(&self) {
        // The writer has logged what could not be written.
        let _ = self.wait_for(None);
    }

    fn wait_for(&self, record: Option<AuditRecord>) -> Result<(), UnrecordedError> {
        let (done, written) = sync_channel(1);
        let waiting = AuditMessage {
            record,
            done: Some(done),
        };
        let queue = self.queue.as_ref();
        let is_sent = queue.is_some_and(|queue| queue.send(waiting).is_ok());
        self.flush_signal.raise();
        if !is_sent {
            return Err(UnrecordedError::WriterEnded);
        }
        written.recv().unwrap_or(Err(UnrecordedError::WriterEnded))
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        self.queue = None;
        self.flush_signal.raise();
        let writer = self.writer.locked();
        if let Some(writer) = { writer }.take() {
            // A writer that failed has logged its error.
            let _ = writer.join();
        }
    }
}

/// Runs the writer's thread until the log is dropped.
fn write(
    mut chain: AuditChain,
    waiting: &Receiver<AuditMessage>,
    flush_signal: &FlushSignal,
    missed: &AtomicU64,
) {
    let mut is_failing = false;
    while let Ok(first) = waiting.recv() {
        if first.record.as_ref().is_some_and(|record| record.may_wait) {
            flush_signal.wait();
        }
        let lost = missed.swap(0, Ordering::SeqCst);
        let (mut records, mut waiters) = (Vec::from_iter(gap_record(lost)), Vec::new());
        let gaps = records.len();
        for message in std::iter::once(first).chain(waiting.try_iter().take(QUEUE)) {
            records.extend(message.record);
            waiters.extend(message.done);
        }
        let written = chain.add(&records).and_then(|()| chain.file.sync_data());
        if let Err(error) = &written {
            if !is_failing {
                tracing::error!("the audit log cannot be written: {error}");
            }
            let unwritten = (records.len() - gaps) as u64;
            missed.fetch_add(lost + unwritten, Ordering::SeqCst);
        }
        is_failing = written.is_err();
        let result = written.map_err(|error| UnrecordedError::Disk(error.to_string()));
        for waiter in waiters {
            // The waiting caller may be gone.
            let _ = waiter.send(result.clone());
        }
    }
    let lost = missed.swap(0, Ordering::SeqCst);
    if let Err(error) = chain.add(&Vec::from_iter(gap_record(lost))) {
        tracing::error!("the audit log cannot be written: {error}");
    }
}

/// Returns a record of how many records were lost since the last one, if any.
fn gap_record(lost: u64) -> Option<AuditRecord> {
    let text = format!("{lost} records were lost: the disk was too slow or full");
    (lost > 0).then(|| AuditRecord::now("gap", text, false))
}

struct AuditChain {
    path: PathBuf,
    file: File,
    key: SigningKey,
    next: u64,
    last: [u8; 32],
    /// End of the last complete line: a partial line is overwritten.
    end: u64,
}

impl AuditChain {
    fn open(path: &Path, key: SigningKey) -> io::Result<Self> {
        let file = open(path)?;
        let (end, length) = (end_of_lines(&file)?, file.metadata()?.len());
        let (next, last) = match log_end(path, &file, &key)? {
            LogEnd::Signed { next, last } => (next, last),
            LogEnd::TornHeader { before } => return Self::create(path, key, &before),
            LogEnd::Damaged => return Self::replace_damaged(path, key),
        };
        file.set_len(end)?;
        let path = path.to_owned();
        let mut chain = Self {
            path,
            next,
            last,
            end,
            file,
            key,
        };
        if end < length {
            let text = "the last record is incomplete";
            chain.add(&[AuditRecord::now("torn", text, false)])?;
        }
        Ok(chain)
    }

    /// Creates an empty file that continues one that ended with this hash.
    fn create(path: &Path, key: SigningKey, before: &[u8; 32]) -> io::Result<Self> {
        let mut file = open(path)?;
        let header = header(&key, before);
        file.set_len(0)?;
        file.write_all(format!("{header}\n").as_bytes())?;
        Ok(Self {
            path: path.to_owned(),
            next: 0,
            last: *blake3::hash(header.as_bytes()).as_bytes(),
            end: u64::try_from(header.len() + 1).unwrap_or(0),
            file,
            key,
        })
    }

    /// Replaces a file that was changed by others, or whose last records no signature covers. It is kept for inspection:
    /// continuing it would sign whatever it says.
    fn replace_damaged(path: &Path, key: SigningKey) -> io::Result<Self> {
        rotate_files(path)?;
        let mut chain = Self::create(path, key, &[0; 32])?;
        let text = "the previous log does not end with a record that this node signed; it is kept unchanged";
        chain.add(&[AuditRecord::now("torn", text, false)])?;
        Ok(chain)
    }

    /// Renames the file, and continues in another.
    fn rotate(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        // The next file is complete before this one is renamed: a rotation that a full disk interrupts is tried again and
        // loses nothing.
        let new_path = PathBuf::from(format!("{}.new", self.path.display()));
        let next = Self::create(&new_path, self.key.clone(), &self.last)?;
        next.file.sync_data()?;
        if self.path.exists() {
            rotate_files(&self.path)?;
        }
        std::fs::rename(&new_path, &self.path)?;
        self.path.parent().map_or(Ok(()), sync_folder)?;
        let path = self.path.clone();
        *self = Self { path, ..next };
        Ok(())
    }

    /// Adds all of these records or none. The last one's signature covers those before it.
    fn add(&mut self, records: &[AuditRecord]) -> io::Result<()> {
        if self.end > FILE_BYTES_MAX {
            self.rotate()?;
        }
        let (mut lines, mut last) = (String::new(), self.last);
        for (number, record) in (self.next..).zip(records) {
            let (at_ms, kind, text) = (record.at_ms, record.kind, escaped(&record.text));
            let content = format!("{number}\t{at_ms}\t{kind}\t{text}");
            last = chained_hash(&last, &content);
            let signature = if number + 1 == self.next + records.len() as u64 {
                hex(&self.key.sign(&last).to_bytes())
            } else {
                SIGNED_LATER.to_owned()
            };
            lines += &format!("{content}\t{}\t{signature}\n", hex(&last));
        }
        if let Err(error) = self.file.write_all(lines.as_bytes()) {
            self.file.set_len(self.end)?;
            return Err(error);
        }
        self.end += lines.len() as u64;
        self.next += records.len() as u64;
        self.last = last;
        Ok(())
    }
}

/// Renames a file to number 1, after shifting the files numbered so far.
fn rotate_files(path: &Path) -> io::Result<()> {
    let numbered = |number: u32| PathBuf::from(format!("{}.{number}", path.display()));
    // Shift only down to the first free number: an interrupted rotation that is tried again then pushes no file out.
    let free = (1..FILES_KEPT).find(|number| !numbered(*number).exists());
    for number in (1..free.unwrap_or(FILES_KEPT)).rev() {
        std::fs::rename(numbered(number), numbered(number + 1))?;
    }
    std::fs::rename(path, numbered(1))
}

fn chained_hash(before: &[u8; 32], content: &str) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(before);
    hasher.update(content.as_bytes());
    *hasher.finalize().as_bytes()
}

/// Escapes a text for one line: tabs, line ends and backslashes as `\t`, `\n`, `\r`, `\\`, other control characters as `\u{1b}`.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars().take(TEXT_CHARS_MAX) {
        match c {
            '\\' => escaped.push_str("\\\\"),
            '\t' => escaped.push_str("\\t"),
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            // A terminal that shows the log must not interpret it.
            c if c.is_control() => escaped.extend(c.escape_default()),
            c => escaped.push(c),
        }
    }
    escaped
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).read(true).append(true);
    with_mode(&mut options, 0o600).open(path)
}

/// Returns the bytes of a file before `end`, at most the length of the longest line.
fn tail_before(file: &File, end: u64) -> io::Result<Vec<u8>> {
    let from = end.saturating_sub(LINE_BYTES_MAX);
    let mut bytes = vec![0; usize::try_from(end - from).unwrap_or(0)];
    read_exact_at(file, &mut bytes, from)?;
    Ok(bytes)
}

/// Returns the end of the last complete line.
fn end_of_lines(file: &File) -> io::Result<u64> {
    let length = file.metadata()?.len();
    let tail = tail_before(file, length)?.into_iter().rev();
    let partial = tail.take_while(|byte| *byte != b'\n').count();
    Ok(length - u64::try_from(partial).unwrap_or(0))
}

/// Returns a file's first line.
fn header(key: &SigningKey, before: &[u8; 32]) -> String {
    let public = hex(key.verifying_key().as_bytes());
    format!("{MAGIC} {public} {}", hex(before))
}

/// Returns the hash at the end of the file that was rotated last, if it ends with a record or a header.
fn previous_hash(path: &Path) -> io::Result<Option<[u8; 32]>> {
    let Ok(rotated) = plain_file::open(format!("{}.1", path.display())) else {
        return Ok(None);
    };
    let last = last_line(&rotated, end_of_lines(&rotated)?)?;
    let record = AuditLine::read(&last).map(|record| record.hash);
    Ok(record.or_else(|| header_hash(&last)))
}

/// Returns the number of the record that follows a last line, and the hash that it chains to; `None` if the line is neither a
/// header nor a record with the key's signature.
fn chain_position(line: &str, key: &VerifyingKey) -> Option<(u64, [u8; 32])> {
    let Some(record) = AuditLine::read(line) else {
        return header_hash(line).map(|hash| (0, hash));
    };
    let signature = Signature::from_bytes(&record.signature?);
    key.verify_strict(&record.hash, &signature).ok()?;
    Some((record.number + 1, record.hash))
}

/// Returns the hash of a line, if it is a file's first.
fn header_hash(line: &str) -> Option<[u8; 32]> {
    let hash = || *blake3::hash(line.as_bytes()).as_bytes();
    line.starts_with(MAGIC).then(hash)
}

/// Returns whether the last record of a log was written by a process that closed it; a log without records has lost none.
fn was_closed(path: &Path) -> bool {
    let last = || {
        let file = plain_file::open(path).ok()?;
        let last = last_line(&file, end_of_lines(&file).ok()?).ok()?;
        Some(AuditLine::read(&last)?.content.split('\t').nth(2) == Some(END))
    };
    last().unwrap_or(true)
}

/// Returns the last line of a file before `end`, which is the end of a line.
fn last_line(file: &File, end: u64) -> io::Result<String> {
    let bytes = tail_before(file, end)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.lines().last().unwrap_or_default().to_owned())
}

struct AuditLine<'a> {
    content: &'a str,
    number: u64,
    hash: [u8; 32],
    /// `None` if a later one covers this record.
    signature: Option<[u8; 64]>,
}

impl<'a> AuditLine<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let mut fields = line.rsplitn(3, '\t');
        let signature = match fields.next()? {
            SIGNED_LATER => None,
            written => Some(bytes(written)?),
        };
        let hash = bytes(fields.next()?)?;
        let content = fields.next()?;
        let number = content.split('\t').next()?.parse().ok()?;
        Some(Self {
            content,
            number,
            hash,
            signature,
        })
    }
}

/// A defect of an audit log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuditError {
    /// It does not begin as an audit log.
    #[error("this is not an audit log of this version: the first line is wrong")]
    Foreign,
    /// It was signed by another node than the expected one.
    #[error("a different node wrote this log: it has the key {found} instead of {expected}")]
    OtherKey {
        /// The key in it.
        found: String,
        /// The expected key.
        expected: String,
    },
    /// The first record that cannot be trusted.
    #[error(
        "record {record} (line {line}) is not what the node wrote: {reason}. All earlier records are valid"
    )]
    Record {
        /// Number of the record, from 0.
        record: u64,
        /// Number of the line in the file, from 1.
        line: usize,
        /// The reason.
        reason: &'static str,
    },
}

/// Summary of an audit log that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedAudit {
    /// Number of records.
    pub records: u64,
    /// The key that signed them, in hexadecimal.
    pub key: String,
    /// The last record's hash, in hexadecimal: kept elsewhere, it shows a log that was cut short.
    pub last: String,
}

/// Checks every record of an audit log. `expected` is the node's public key in hexadecimal, if
/// it is known; otherwise the key that the log names is accepted.
///
/// # Errors
/// The first defect.
pub fn verify(text: &str, expected: Option<&str>) -> Result<VerifiedAudit, AuditError> {
    let mut lines = text.lines().enumerate();
    let (_, header) = lines.next().ok_or(AuditError::Foreign)?;
    let mut fields = header
        .strip_prefix(MAGIC)
        .ok_or(AuditError::Foreign)?
        .split_whitespace();
    let found = fields.next().unwrap_or_default();
    let key = bytes::<32>(found).and_then(|bytes| VerifyingKey::from_bytes(&bytes).ok());
    let key = key.ok_or(AuditError::Foreign)?;
    let before = fields.next().and_then(bytes::<32>);
    if before.is_none() || fields.next().is_some() {
        return Err(AuditError::Foreign);
    }
    if let Some(expected) = expected.filter(|expected| !expected.eq_ignore_ascii_case(found)) {
        return Err(AuditError::OtherKey {
            found: found.to_owned(),
            expected: expected.to_owned(),
        });
    }
    let start = *blake3::hash(header.as_bytes()).as_bytes();
    let (records, last) = verify_chain(lines, start, &key)?;
    Ok(VerifiedAudit {
        records,
        key: found.to_owned(),
        last: hex(&last),
    })
}

/// Verifies the records after the header; returns their number, and the last one's hash.
fn verify_chain<'a>(
    lines: impl Iterator<Item = (usize, &'a str)>,
    start: [u8; 32],
    key: &VerifyingKey,
) -> Result<(u64, [u8; 32]), AuditError> {
    let (mut last, mut records) = (start, 0);
    // The first record, with its line, that no signature covers yet.
    let mut unsigned = None;
    for (index, text) in lines {
        let current = (records, index + 1);
        let (record, line) = *unsigned.get_or_insert(current);
        let wrong = |(record, line), reason| AuditError::Record {
            record,
            line,
            reason,
        };
        let parsed = next_record(text, records, &last).map_err(|reason| wrong(current, reason))?;
        if let Some(signature) = parsed.signature {
            key.verify_strict(&parsed.hash, &Signature::from_bytes(&signature))
                .map_err(|_| wrong((record, line), "its signature is not the node's"))?;
            unsigned = None;
        }
        last = parsed.hash;
        records += 1;
    }
    let reason = "no signature covers it: what followed is missing";
    match unsigned {
        Some((record, line)) => Err(AuditError::Record {
            record,
            line,
            reason,
        }),
        None => Ok((records, last)),
    }
}

/// Parses a line's record, if it is the next of the chain.
fn next_record<'a>(
    line: &'a str,
    number: u64,
    before: &[u8; 32],
) -> Result<AuditLine<'a>, &'static str> {
    let line = AuditLine::read(line).ok_or("it is not a record")?;
    if line.number != number {
        return Err("its number is not the next one, so records are missing or were added");
    }
    if chained_hash(before, line.content) != line.hash {
        return Err("its hash does not match its text and the previous record");
    }
    Ok(line)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    #[cfg(unix)]
    use std::os::unix::fs::PermissionsExt;

    fn log(folder: &Path, records: usize) -> String {
        let audit = AuditLog::open(folder).unwrap();
        for number in 0..records {
            audit.note("call", format!("number\t{number}\n"));
            // Each is written, and so signed, by itself.
            audit.flush();
        }
        drop(audit);
        std::fs::read_to_string(folder.join("audit.log")).unwrap()
    }

    #[cfg(unix)]
    #[test]
    fn it_holds_over_restarts_and_its_key_is_its_users_alone() {
        let folder = tempfile::tempdir().unwrap();
        log(folder.path(), 3);
        let text = log(folder.path(), 2);
        let verified = verify(&text, None).unwrap();
        assert_eq!(verified.records, 5);
        assert_eq!(verify(&text, Some(&verified.key)), Ok(verified));
        let mode = std::fs::metadata(folder.path().join("node.key")).unwrap();
        assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    }

    #[cfg(unix)]
    #[test]
    fn a_key_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        log(folder.path(), 1);
        let key = folder.path().join("node.key");
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
        let error = AuditLog::open(folder.path()).unwrap_err();
        assert!(error.to_string().contains("chmod 600"), "{error}");
    }

    #[test]
    fn the_first_record_that_was_changed_taken_or_added_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let text = log(folder.path(), 6);
        let lines: Vec<&str> = text.lines().collect();
        let first_bad = |lines: &[&str]| match verify(&lines.join("\n"), None) {
            Err(AuditError::Record { record, .. }) => record,
            other => panic!("{other:?}"),
        };
        let mut taken = lines.clone();
        taken.remove(3);
        assert_eq!(first_bad(&taken), 2);
        let mut added = lines.clone();
        added.insert(4, "3\t1\tcall\tforged\t00\t00");
        assert_eq!(first_bad(&added), 3);
        for line in 1..lines.len() {
            let changed = lines.get(line).unwrap().replace("number", "numbed");
            let mut altered = lines.clone();
            *altered.get_mut(line).unwrap() = &changed;
            assert_eq!(first_bad(&altered), u64::try_from(line - 1).unwrap());
        }
        let other = tempfile::tempdir().unwrap();
        let forged = log(other.path(), 6).replace(
            verify(&log(other.path(), 0), None).unwrap().key.as_str(),
            verify(&text, None).unwrap().key.as_str(),
        );
        assert_eq!(first_bad(&forged.lines().collect::<Vec<_>>()), 0);
    }

    /// Gathered records share one signature. A log that ends before it is not trusted from there on.
    #[test]
    fn records_that_were_gathered_are_covered_by_the_last_ones_signature() {
        let folder = tempfile::tempdir().unwrap();
        let audit = AuditLog::open(folder.path()).unwrap();
        for number in 0..50 {
            audit.note_deferred("call", format!("number {number}"));
        }
        audit.flush();
        let file = folder.path().join("audit.log");
        let text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(verify(&text, None).unwrap().records, 50);
        let signed = text.lines().skip(1).filter(|line| !line.ends_with("\t-"));
        assert!(signed.count() < 50, "{text}");
        for at in (0..text.trim_end().len()).step_by(11) {
            let mut bytes = text.clone().into_bytes();
            *bytes.get_mut(at).unwrap() ^= 1;
            let changed = String::from_utf8(bytes).unwrap();
            assert!(verify(&changed, None).is_err(), "byte {at}: {changed}");
        }
        let first = text.lines().skip(1).position(|line| line.ends_with("\t-"));
        let first = first.unwrap();
        let cut: Vec<&str> = text.lines().take(first + 2).collect();
        let error = verify(&cut.join("\n"), None).unwrap_err();
        assert!(
            matches!(error, AuditError::Record { record, .. } if record == first as u64),
            "{error}"
        );
        // A node does not cover unsigned records with a new signature: anybody may have written them.
        drop(audit);
        let cut = cut.join("\n") + "\n";
        std::fs::write(&file, &cut).unwrap();
        let text = log(folder.path(), 1);
        assert!(text.contains("\ttorn\t"), "{text}");
        verify(&text, None).unwrap();
        let rotated = std::fs::read_to_string(folder.path().join("audit.log.1")).unwrap();
        assert_eq!(rotated, cut);
    }

    /// Detects any change of one byte, and any wrong order of records.
    #[test]
    fn no_byte_can_be_changed_and_no_record_moved_unseen() {
        let folder = tempfile::tempdir().unwrap();
        let text = log(folder.path(), 3);
        let original = verify(&text, None).unwrap();
        for at in 0..text.trim_end().len() {
            let bit = 1_u8 << (at % 7);
            let mut bytes = text.clone().into_bytes();
            *bytes.get_mut(at).unwrap() ^= bit;
            let changed = String::from_utf8(bytes).unwrap();
            let found = verify(&changed, Some(&original.key));
            assert!(found.is_err(), "byte {at}, bit {bit:#x}: {changed}");
        }
        let lines: Vec<&str> = text.lines().collect();
        for (one, other) in [(1, 2), (2, 3), (1, 3)] {
            let mut moved = lines.clone();
            moved.swap(one, other);
            assert!(verify(&moved.join("\n"), None).is_err());
        }
        for end in 1..lines.len() {
            let cut = verify(&lines.get(..end).unwrap().join("\n"), None).unwrap();
            // A log that was cut short is valid in itself: only its last hash shows the difference.
            assert!(cut.last != original.last && cut.records < original.records);
        }
        for end in 1..text.trim_end().len() {
            let cut = text.get(..end).unwrap();
            let line_ends = lines.iter().scan(0, |at, line| {
                *at += line.len() + 1;
                Some(*at - 1)
            });
            let is_line_end = line_ends.into_iter().any(|at| at == end || at + 1 == end);
            assert_eq!(verify(cut, None).is_ok(), is_line_end, "cut at {end}");
        }
    }

    /// Records that may wait are never written after later ones, and a record that may not wait takes them along.
    #[test]
    fn the_order_is_kept_and_a_record_that_is_waited_for_is_signed_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let audit = AuditLog::open(folder.path()).unwrap();
        for round in 0..4 {
            for read in 0..3 {
                audit.note_deferred("call", format!("read {round}.{read}"));
            }
            let noted = audit.note_durably("motion", format!("motion {round}"));
            assert_eq!(noted, Ok(()));
            // What a process leaves that is killed here.
            let text = std::fs::read_to_string(folder.path().join("audit.log")).unwrap();
            let verified = verify(&text, None).unwrap();
            assert_eq!(verified.records, 4 * (round + 1));
            let last = text.lines().last().unwrap();
            assert!(last.contains(&format!("motion {round}")) && !last.ends_with("\t-"));
        }
        audit.note_deferred("call", "read 4.0");
        drop(audit);
        let text = std::fs::read_to_string(folder.path().join("audit.log")).unwrap();
        let texts: Vec<&str> = text
            .lines()
            .filter_map(|line| line.split('\t').nth(3))
            .collect();
        let round = |round| {
            let reads = (0..3).map(move |read| format!("read {round}.{read}"));
            reads.chain([format!("motion {round}")])
        };
        let mut expected: Vec<String> = (0..4).flat_map(round).collect();
        expected.push("read 4.0".to_owned());
        assert_eq!(texts, expected);
    }

    #[test]
    fn a_log_that_was_not_closed_is_detected() {
        let folder = tempfile::tempdir().unwrap();
        for (closes, was_closed) in [(false, true), (true, false), (true, true)] {
            let audit = AuditLog::open(folder.path()).unwrap();
            assert_eq!(audit.was_closed(), was_closed);
            audit.note("call", "number");
            if closes {
                audit.note_end("done");
            }
        }
    }

    #[test]
    fn a_partial_last_line_is_cut_and_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let text = log(folder.path(), 2);
        let path = folder.path().join("audit.log");
        std::fs::write(&path, text.get(..text.len() - 40).unwrap()).unwrap();
        let text = log(folder.path(), 1);
        assert_eq!(verify(&text, None).unwrap().records, 3);
        assert!(text.contains("\ttorn\t"));
    }

    #[test]
    fn a_last_line_that_is_not_a_record_is_kept_for_inspection() {
        let folder = tempfile::tempdir().unwrap();
        let text = log(folder.path(), 2);
        let path = folder.path().join("audit.log");
        let changed = format!("{} and more\n", text.trim_end());
        std::fs::write(&path, &changed).unwrap();
        let begun = log(folder.path(), 1);
        assert_eq!(verify(&begun, None).unwrap().records, 2);
        assert!(begun.contains("\ttorn\t"));
        let rotated = std::fs::read_to_string(folder.path().join("audit.log.1")).unwrap();
        assert_eq!(rotated, changed);
    }

    #[test]
    fn a_header_that_was_torn_anywhere_is_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let complete = log(folder.path(), 0);
        let path = folder.path().join("audit.log");
        for end in 0..complete.len() {
            std::fs::write(&path, complete.get(..end).unwrap()).unwrap();
            let text = log(folder.path(), 1);
            assert!(text.starts_with(&complete), "cut at {end}");
            assert_eq!(verify(&text, None).unwrap().records, 1, "cut at {end}");
        }
        assert!(!folder.path().join("audit.log.1").exists());
    }

    #[test]
    fn a_rotation_that_fails_loses_no_existing_file() {
        let folder = tempfile::tempdir().unwrap();
        let text = log(folder.path(), 2);
        let path = folder.path().join("audit.log");
        let rotated = |number: u32| folder.path().join(format!("audit.log.{number}"));
        for number in 1..=FILES_KEPT {
            std::fs::write(rotated(number), number.to_string()).unwrap();
        }
        std::fs::create_dir(folder.path().join("audit.log.new")).unwrap();
        let key = node_key::key(&folder.path().join(node_key::FILE)).unwrap();
        let mut chain = AuditChain::open(&path, key).unwrap();
        chain.end = FILE_BYTES_MAX + 1;
        for _ in 0..20 {
            let record = AuditRecord::now("call", "number".to_owned(), false);
            assert!(chain.add(&[record]).is_err());
        }
        for number in 1..=FILES_KEPT {
            assert_eq!(
                std::fs::read_to_string(rotated(number)).unwrap(),
                number.to_string()
            );
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }

    #[test]
    fn a_log_that_grows_goes_on_in_another_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let key = || node_key::key(&folder.path().join(node_key::FILE)).unwrap();
        let many = || (0..1000).map(|_| AuditRecord::now("call", "x".repeat(TEXT_CHARS_MAX), true));
        let mut chain = AuditChain::open(&path, key()).unwrap();
        while chain.end <= FILE_BYTES_MAX {
            chain.add(&many().collect::<Vec<_>>()).unwrap();
        }
        // The next records begin another file.
        chain.add(&many().take(2).collect::<Vec<_>>()).unwrap();
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        let (first, second) = (read("audit.log.1"), read("audit.log"));
        let last = verify(&first, None).unwrap().last;
        assert!(first.len() as u64 > FILE_BYTES_MAX);
        assert!(second.lines().next().unwrap().ends_with(&last));
        assert_eq!(verify(&second, None).unwrap().records, 2);
        // A file without records still continues the one before it when it is opened again.
        chain.rotate().unwrap();
        drop(chain);
        let begun = read("audit.log");
        let mut chain = AuditChain::open(&path, key()).unwrap();
        chain.add(&many().take(2).collect::<Vec<_>>()).unwrap();
        assert!(read("audit.log").starts_with(&begun));
        assert_eq!(verify(&read("audit.log"), None).unwrap().records, 2);
    }

    #[test]
    fn records_faster_than_the_disk_are_counted_and_no_caller_waits() {
        let folder = tempfile::tempdir().unwrap();
        let audit = AuditLog::open(folder.path()).unwrap();
        let mut noted = 0_u64;
        while noted < 1_000 * QUEUE as u64 && audit.missed.load(Ordering::SeqCst) == 0 {
            audit.note("call", "number\n");
            noted += 1;
        }
        drop(audit);
        let text = std::fs::read_to_string(folder.path().join("audit.log")).unwrap();
        let verified = verify(&text, None).unwrap();
        let lost: u64 = text
            .lines()
            .filter(|line| line.contains("\tgap\t"))
            .filter_map(|line| {
                line.split('\t')
                    .nth(3)?
                    .split(' ')
                    .next()?
                    .parse::<u64>()
                    .ok()
            })
            .sum();
        let gaps = text.lines().filter(|line| line.contains("\tgap\t")).count();
        let kept = verified.records - u64::try_from(gaps).unwrap();
        assert!(lost > 0, "the queue never filled");
        assert_eq!(kept + lost, noted);
    }
}
