//! Reads the records of a recording, complete or torn.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use mcap::McapError;
use mcap::records::Record;
use mcap::sans_io::{LinearReadEvent, LinearReader, LinearReaderOptions};
use serde::de::IgnoredAny;

use crate::claimed_lengths;
use crate::error::RecordingError;
use base::plain_file;

/// Longest record that is written and read, for one at a time is in memory. A damaged length may claim more.
pub(crate) const RECORD_BYTES_MAX: usize = 64 << 20;

/// Largest number of bytes for which room is made at once: a claimed length alone takes no memory.
const READ_BYTES_MAX: usize = 64 << 10;

/// Bytes at the beginning and at the end of an MCAP file.
const MAGIC: &[u8] = b"\x89MCAP0\r\n";

/// A recording whose records are read once, from the first to the last.
pub(crate) struct RecordSource<R> {
    path: PathBuf,
    input: R,
    /// True if the file was finished, so that nothing may be missing in it.
    is_ended: bool,
}

impl RecordSource<BufReader<File>> {
    /// Opens a recording, complete or torn.
    pub(crate) fn open(path: &Path) -> Result<Self, RecordingError> {
        let open = || {
            let mut file = plain_file::open(path)?;
            let magic_bytes = MAGIC.len() as u64;
            let start = plain_file::read_bounded(file.by_ref().take(magic_bytes), magic_bytes)?;
            let end_at = file.metadata()?.len().saturating_sub(magic_bytes);
            file.seek(SeekFrom::Start(end_at))?;
            let end = plain_file::read_bounded(file.by_ref().take(magic_bytes), magic_bytes)?;
            file.rewind()?;
            Ok((file, start, end_at > 0 && end == MAGIC))
        };
        let (file, start, is_ended) = open().map_err(RecordingError::file(path))?;
        if !MAGIC.starts_with(&start) {
            return Err(RecordingError::NotMcap {
                path: path.to_owned(),
            });
        }
        Ok(Self {
            path: path.to_owned(),
            input: BufReader::new(file),
            is_ended,
        })
    }
}

impl<R: Read> RecordSource<R> {
    /// Returns whether it was finished.
    pub(crate) const fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Calls `handle` with every record of the data section, in the order of the file. Returns whether the file
    /// is torn; it is then read up to its last complete record.
    pub(crate) fn for_each(
        mut self,
        mut handle: impl FnMut(Record<'_>) -> Result<(), RecordingError>,
    ) -> Result<bool, RecordingError> {
        let options = LinearReaderOptions::default()
            .with_skip_end_magic(true)
            .with_validate_chunk_crcs(true)
            .with_record_length_limit(RECORD_BYTES_MAX);
        let mut reader = LinearReader::new_with_options(options);
        while let Some(event) = next_event(&mut reader) {
            let record = match event {
                Ok(LinearReadEvent::ReadRequest(requested)) => {
                    let room = reader.insert(requested.min(READ_BYTES_MAX));
                    let read = self.input.read(room);
                    reader.notify_read(read.map_err(RecordingError::file(&self.path))?);
                    continue;
                }
                Ok(LinearReadEvent::Record { data, opcode }) => {
                    claimed_lengths::check(opcode, data)
                        .and_then(|()| mcap::parse_record(opcode, data))
                }
                Err(error) => Err(error),
            };
            match record {
                Ok(Record::DataEnd(_)) => return Ok(!self.is_ended),
                Ok(record) if !self.is_ended && is_half_written(&record) => return Ok(true),
                Ok(record) => handle(record)?,
                Err(error) if self.is_ended || !tears(&error) => {
                    return Err(RecordingError::mcap(&self.path)(error));
                }
                // Nothing behind the first fault was whole when the process or the power ended.
                Err(_) => return Ok(true),
            }
        }
        Ok(!self.is_ended)
    }
}

/// Returns the next event. The library panics where a record is longer than its chunk.
fn next_event(reader: &mut LinearReader) -> Option<Result<LinearReadEvent<'_>, McapError>> {
    let next = catch_unwind(AssertUnwindSafe(move || {
        let moved = reader;
        moved.next_event()
    }));
    next.unwrap_or(Some(Err(McapError::UnexpectedEoc)))
}

/// Returns whether the end of a process or of the power may leave such a file.
const fn tears(error: &McapError) -> bool {
    !matches!(
        error,
        McapError::BadMagic | McapError::UnsupportedCompression(_)
    )
}

/// Returns whether a record's bytes were not all written: where the power failed, the end of a file may be zeros.
fn is_half_written(record: &Record<'_>) -> bool {
    match record {
        Record::Message { data, .. } => serde_json::from_slice::<IgnoredAny>(data).is_err(),
        Record::Attachment { data, .. } => data.last() == Some(&0),
        _ => false,
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use std::cell::Cell;
    use std::io::Write;
    use std::rc::Rc;

    use super::*;
    use crate::mcap_file::McapFile;
    use crate::message::{LOG_INFO, LogMessage, MessageTime};
    use crate::topic::Topic;

    const MESSAGES: usize = 20;

    fn recording(path: &Path) -> Vec<u8> {
        let mut file = McapFile::create(path, None).unwrap();
        for at_ns in 0..MESSAGES as u64 {
            let message = LogMessage {
                timestamp: MessageTime::from_ns(at_ns),
                level: LOG_INFO,
                message: format!("message {at_ns}"),
                name: String::new(),
                file: String::new(),
                line: 0,
            };
            file.write(Topic::LOG, at_ns, &message).unwrap();
        }
        file.attach("plan-1.json", "application/json", 0, b"{}")
            .unwrap();
        file.finish().unwrap();
        std::fs::read(path).unwrap()
    }

    fn messages(bytes: &[u8]) -> Result<(usize, bool), RecordingError> {
        let mut count = 0;
        let source = RecordSource {
            path: PathBuf::from("job.mcap"),
            input: bytes,
            is_ended: bytes.len() > MAGIC.len() && bytes.ends_with(MAGIC),
        };
        let is_torn = source.for_each(|record| {
            count += usize::from(matches!(record, Record::Message { .. }));
            Ok(())
        })?;
        Ok((count, is_torn))
    }

    #[test]
    fn a_recording_that_ends_anywhere_is_read_up_to_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.mcap");
        let complete = recording(&path);
        assert_eq!(messages(&complete).unwrap(), (MESSAGES, false));
        let mut previous = 0;
        for end in 8..complete.len() {
            let (count, is_torn) = messages(&complete[..end]).unwrap();
            assert!(is_torn || count == MESSAGES, "{end}");
            assert!(
                count == previous || count == previous + 1,
                "{end}: {count} after {previous}"
            );
            previous = count;
        }
        assert_eq!(previous, MESSAGES);
    }

    /// After a power cut, blocks at the end may be zeros.
    #[test]
    fn a_recording_whose_end_is_zeros_is_read_up_to_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.mcap");
        let whole = recording(&path);
        let torn = &whole[..whole.len() * 3 / 4];
        let (all, _) = messages(torn).unwrap();
        for zeros in 1..torn.len() - MAGIC.len() {
            let mut damaged = torn.to_vec();
            damaged[torn.len() - zeros..].fill(0);
            let (count, is_torn) = messages(&damaged).unwrap();
            assert!(is_torn && count <= all, "{zeros}: {count} of {all}");
            std::fs::write(&path, &damaged).unwrap();
            crate::finish::complete_file(&path).unwrap();
            let mended = std::fs::read(&path).unwrap();
            assert_eq!(messages(&mended).unwrap(), (count, false), "{zeros}");
        }
    }

    /// A record of a recording without chunks, which is one string in each of these.
    fn with_string(
        opcode: u8,
        before: usize,
        strings: usize,
        claimed: u32,
        after: &[u8],
    ) -> Vec<u8> {
        let mut body = vec![0; before];
        for number in 1..=strings {
            let length = if number == strings { claimed } else { 1 };
            body.extend(length.to_le_bytes());
            body.push(b'x');
        }
        body.extend(after);
        let mut bytes = MAGIC.to_vec();
        bytes.push(opcode);
        bytes.extend((body.len() as u64).to_le_bytes());
        bytes.extend(body);
        bytes
    }

    /// One of 4 GB ended the process.
    #[test]
    fn a_claimed_length_is_never_allocated() {
        for (opcode, before, strings) in [
            (1, 0, 1),
            (1, 0, 2),
            (3, 2, 1),
            (3, 2, 2),
            (4, 4, 1),
            (4, 4, 2),
            (4, 4, 3),
        ]
        .into_iter()
        .chain([(9, 16, 1), (9, 16, 2), (12, 0, 1), (12, 0, 2)])
        {
            for claimed in [2, 1 << 20, u32::MAX] {
                let torn = with_string(opcode, before, strings, claimed, &[]);
                assert_eq!(messages(&torn).unwrap(), (0, true), "{opcode} {strings}");
                let ended = [&torn[..], MAGIC].concat();
                assert!(messages(&ended).is_err(), "{opcode} {strings} {claimed}");
            }
        }
        // An attachment that ends before its sum.
        let short = with_string(9, 16, 2, 1, &[0; 8]);
        assert_eq!(messages(&short).unwrap(), (0, true));
        // A record's own length.
        let mut long = with_string(5, 30, 0, 0, &[]);
        long[9..17].copy_from_slice(&(RECORD_BYTES_MAX as u64).to_le_bytes());
        assert_eq!(messages(&long).unwrap(), (0, true));
    }

    /// The library counts such a chunk's rest below 0.
    #[test]
    fn a_record_that_is_longer_than_its_chunk_is_an_error() {
        let inner = [&[5_u8][..], &100_u64.to_le_bytes(), &[0; 100]].concat();
        let mut chunk = [0; 28].to_vec();
        chunk.extend(0_u32.to_le_bytes());
        chunk.extend(20_u64.to_le_bytes());
        chunk.extend(&inner);
        let mut bytes = MAGIC.to_vec();
        bytes.push(6);
        bytes.extend((chunk.len() as u64).to_le_bytes());
        bytes.extend(chunk);
        bytes.extend(MAGIC);
        assert!(messages(&bytes).is_err());
    }

    /// A damaged length asked for more memory than there is, and the process was gone.
    #[test]
    fn no_damaged_byte_exhausts_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.mcap");
        recording(&path);
        crate::finish::complete_file(&path).unwrap();
        let complete = std::fs::read(&path).unwrap();
        for position in 0..complete.len() {
            for flip in [0x01, 0x55, 0xff] {
                let mut damaged = complete.clone();
                damaged[position] ^= flip;
                // The result is an error, or the damage is in a part that is not read; the process must survive.
                let read = messages(&damaged);
                assert!(read.is_err() || read.is_ok_and(|(count, _)| count <= MESSAGES));
            }
        }
    }

    #[test]
    fn a_torn_recording_that_is_completed_has_all_records_that_can_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.mcap");
        let complete = recording(&path);
        for end in [complete.len(), complete.len() / 2, complete.len() / 4, 40] {
            let (count, _) = messages(&complete[..end]).unwrap();
            std::fs::write(&path, &complete[..end]).unwrap();
            assert_eq!(
                RecordSource::open(&path).unwrap().is_ended(),
                end == complete.len()
            );
            crate::finish::complete_file(&path).unwrap();
            let rewritten = std::fs::read(&path).unwrap();
            assert!(RecordSource::open(&path).unwrap().is_ended(), "{end}");
            assert_eq!(messages(&rewritten).unwrap(), (count, false), "{end}");
        }
    }

    /// Counts bytes that are read and written while a file is rewritten.
    #[derive(Clone, Default)]
    struct PassedBytes {
        read: Rc<Cell<u64>>,
        written: Rc<Cell<u64>>,
        held_max: Rc<Cell<u64>>,
    }

    struct CountedSide<T>(T, PassedBytes);

    impl<R: Read> Read for CountedSide<R> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let count = self.0.read(buffer)?;
            let passed = &self.1;
            passed.read.set(passed.read.get() + count as u64);
            let held = passed.read.get().saturating_sub(passed.written.get());
            passed.held_max.set(passed.held_max.get().max(held));
            Ok(count)
        }
    }

    impl<W: Write> Write for CountedSide<W> {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let count = self.0.write(bytes)?;
            self.1.written.set(self.1.written.get() + count as u64);
            Ok(count)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            self.0.flush()
        }
    }

    impl<W: Seek> Seek for CountedSide<W> {
        fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
            self.0.seek(to)
        }
    }

    /// Rewriting once read the whole file before it wrote the first byte.
    #[test]
    fn a_file_that_is_rewritten_is_never_entirely_in_memory() {
        const MESSAGE_BYTES: usize = 24 << 10;
        const MESSAGES: u64 = 1_000;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.mcap");
        let mut file = McapFile::create(&path, None).unwrap();
        // Random digits, which LZ4 cannot compress: as many bytes are written as are read.
        let mut noise = 0x2545_f491_4f6c_dd1d_u64;
        let mut digit = || {
            noise ^= noise << 13;
            noise ^= noise >> 7;
            noise ^= noise << 17;
            char::from(b'0' + (noise >> 58) as u8)
        };
        for at_ns in 0..MESSAGES {
            let text: String = (0..MESSAGE_BYTES).map(|_| digit()).collect();
            file.write(Topic::LOG, at_ns, &text).unwrap();
        }
        file.finish().unwrap();
        let passed = PassedBytes::default();
        let source = RecordSource {
            path: path.clone(),
            input: CountedSide(File::open(&path).unwrap(), passed.clone()),
            is_ended: true,
        };
        let out = CountedSide(tempfile::tempfile().unwrap(), passed.clone());
        crate::finish::copy(source, &path, out).unwrap();
        let complete = std::fs::metadata(&path).unwrap().len();
        assert!(passed.read.get() > complete * 9 / 10);
        assert!(passed.written.get() > complete * 9 / 10);
        let held_max = passed.held_max.get();
        assert!((1..4 << 20).contains(&held_max), "{held_max} of {complete}");
    }
}
