//! Reads the records of a recording, whole or torn.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use mcap::McapError;
use mcap::records::Record;
use mcap::sans_io::{LinearReadEvent, LinearReader, LinearReaderOptions};

use crate::error::RecordingError;

/// The largest recording that is read: it is read as a whole.
const BYTES_MAX: u64 = 4 << 30;

/// A record may be so long, however short the file is: it may be compressed. A damaged length asks for more.
const RECORD_BYTES_MAX: usize = 64 << 20;

/// The bytes that an MCAP begins and ends with.
const MAGIC: &[u8] = b"\x89MCAP0\r\n";

/// Reads a file.
pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>, RecordingError> {
    let size = std::fs::metadata(path)
        .map_err(RecordingError::file(path))?
        .len();
    if size > BYTES_MAX {
        let why = format!(
            "it has {} MB; {} MB can be read",
            size >> 20,
            BYTES_MAX >> 20
        );
        return Err(RecordingError::unusable(path, why));
    }
    std::fs::read(path).map_err(RecordingError::file(path))
}

/// Returns whether these bytes are a recording that was ended.
pub(crate) fn is_ended(bytes: &[u8]) -> bool {
    bytes.len() > MAGIC.len() && bytes.ends_with(MAGIC)
}

/// As [`is_ended`], by the end of the file alone.
pub(crate) fn is_ended_file(path: &Path) -> Result<bool, RecordingError> {
    let end = || {
        let mut file = File::open(path)?;
        let start = file.metadata()?.len().saturating_sub(MAGIC.len() as u64);
        file.seek(SeekFrom::Start(start))?;
        let mut end = Vec::new();
        file.read_to_end(&mut end)?;
        Ok(start > 0 && end == MAGIC)
    };
    end().map_err(RecordingError::file(path))
}

/// Hands every record of the data section to `take`, in the order of the file. Returns whether the file is torn: it is read
/// up to its last whole record.
pub(crate) fn each(
    path: &Path,
    bytes: &[u8],
    mut take: impl FnMut(Record<'_>) -> Result<(), RecordingError>,
) -> Result<bool, RecordingError> {
    let limit = bytes.len().max(RECORD_BYTES_MAX);
    let options = LinearReaderOptions::default()
        .with_skip_end_magic(true)
        .with_validate_chunk_crcs(true)
        .with_record_length_limit(limit);
    let (mut reader, mut rest) = (LinearReader::new_with_options(options), bytes);
    while let Some(event) = reader.next_event() {
        let record = match event {
            Ok(LinearReadEvent::ReadRequest(wanted)) => {
                let (next, after) = rest.split_at(wanted.min(rest.len()));
                reader.insert(next.len()).copy_from_slice(next);
                reader.notify_read(next.len());
                rest = after;
                continue;
            }
            Ok(LinearReadEvent::Record { data, opcode }) => mcap::parse_record(opcode, data),
            Err(error) => Err(error),
        };
        match record {
            Ok(Record::DataEnd(_)) => return Ok(!is_ended(bytes)),
            Ok(record) => take(record)?,
            Err(error) if is_torn(&error) && !is_ended(bytes) => return Ok(true),
            Err(error) => return Err(RecordingError::mcap(path)(error)),
        }
    }
    Ok(!is_ended(bytes))
}

/// Returns whether an error is that of a file which ends in the middle of a record.
const fn is_torn(error: &McapError) -> bool {
    matches!(
        error,
        McapError::UnexpectedEof | McapError::UnexpectedEoc | McapError::Io(_)
    )
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use super::*;
    use crate::mcap_file::McapFile;
    use crate::message::{LOG_INFO, LogMessage, MessageTime};
    use crate::topic::Topic;

    const MESSAGES: usize = 20;

    fn recording(path: &Path) -> Vec<u8> {
        let mut file = McapFile::create(path).unwrap();
        for at_ns in 0..MESSAGES as u64 {
            let message = LogMessage {
                timestamp: MessageTime::from_ns(at_ns),
                level: LOG_INFO,
                message: format!("message {at_ns}"),
                name: String::new(),
                file: String::new(),
                line: 0,
            };
            file.write(Topic::Log, at_ns, &message).unwrap();
        }
        file.attach("plan-1.json", "application/json", 0, b"{}")
            .unwrap();
        file.finish().unwrap();
        std::fs::read(path).unwrap()
    }

    fn messages(path: &Path, bytes: &[u8]) -> Result<(usize, bool), RecordingError> {
        let mut count = 0;
        let is_torn = each(path, bytes, |record| {
            count += usize::from(matches!(record, Record::Message { .. }));
            Ok(())
        })?;
        Ok((count, is_torn))
    }

    #[test]
    fn a_recording_that_ends_anywhere_is_read_up_to_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.mcap");
        let whole = recording(&path);
        assert_eq!(messages(&path, &whole).unwrap(), (MESSAGES, false));
        let mut before = 0;
        for end in 8..whole.len() {
            let (count, is_torn) = messages(&path, &whole[..end]).unwrap();
            assert!(is_torn || count == MESSAGES, "{end}");
            assert!(
                count == before || count == before + 1,
                "{end}: {count} after {before}"
            );
            before = count;
        }
        assert_eq!(before, MESSAGES);
    }

    /// A damaged length asked for more memory than there is, and the process was gone.
    #[test]
    fn no_damaged_byte_takes_all_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.mcap");
        recording(&path);
        crate::finish::make_whole(&path).unwrap();
        let whole = bytes(&path).unwrap();
        for at in 0..whole.len() {
            for flip in [0x01, 0x55, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] ^= flip;
                // An error, or damage to what is not read; never the end of the process.
                let read = messages(&path, &damaged);
                assert!(read.is_err() || read.is_ok_and(|(count, _)| count <= MESSAGES));
            }
        }
    }

    #[test]
    fn a_torn_recording_that_is_made_whole_has_all_that_was_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.mcap");
        let whole = recording(&path);
        for end in [whole.len(), whole.len() / 2, whole.len() / 4, 40] {
            let (count, _) = messages(&path, &whole[..end]).unwrap();
            std::fs::write(&path, &whole[..end]).unwrap();
            assert_eq!(is_ended_file(&path).unwrap(), end == whole.len());
            crate::finish::make_whole(&path).unwrap();
            let mended = bytes(&path).unwrap();
            assert!(is_ended(&mended) && is_ended_file(&path).unwrap(), "{end}");
            assert_eq!(messages(&path, &mended).unwrap(), (count, false), "{end}");
        }
    }
}
