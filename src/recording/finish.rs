//! Completes a recording: rewrites it in compressed chunks with an index, and replaces the old file in one step.

use std::collections::BTreeMap;
use std::io::{BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

use mcap::records::{MessageHeader, Record};
use mcap::{Attachment, Compression, WriteOptions, Writer};

use crate::error::RecordingError;
use crate::mcap_file::{LIBRARY, create};
use crate::records::RecordSource;

/// Size of a chunk before compression.
const CHUNK_BYTES: u64 = 1 << 20;

/// Rewrites a recording, one record at a time. A torn one keeps its complete records. Until the new file is on the disk and
/// replaces the old one, the old one stays as it is.
pub(crate) fn complete_file(path: &Path) -> Result<(), RecordingError> {
    let source = RecordSource::open(path)?;
    let part_path = part_path(path);
    let written = rewrite(source, &part_path)
        .and_then(|()| std::fs::rename(&part_path, path).map_err(RecordingError::file(path)));
    if written.is_err() {
        // A partial file is of no use.
        let _ = std::fs::remove_file(&part_path);
    }
    written
}

/// Returns the path of the file that replaces a recording once it is complete.
pub(crate) fn part_path(path: &Path) -> PathBuf {
    path.with_extension("mcap.part")
}

fn rewrite<R: Read>(source: RecordSource<R>, part_path: &Path) -> Result<(), RecordingError> {
    let out = copy(source, part_path, BufWriter::new(create(part_path)?))?;
    let file = out
        .into_inner()
        .map_err(|error| RecordingError::file(part_path)(error.into_error()))?;
    file.sync_all().map_err(RecordingError::file(part_path))
}

/// Copies the records that can be read, in chunks with an index.
pub(crate) fn copy<R: Read, W: Write + Seek>(
    source: RecordSource<R>,
    part_path: &Path,
    out: W,
) -> Result<W, RecordingError> {
    let options = WriteOptions::new()
        .compression(Some(Compression::Lz4))
        .chunk_size(Some(CHUNK_BYTES))
        .library(LIBRARY);
    let mut copy = RecordCopy {
        writer: options
            .create(out)
            .map_err(RecordingError::mcap(part_path))?,
        channels: BTreeMap::new(),
        schemas: BTreeMap::new(),
    };
    source.for_each(|record| copy.write(record).map_err(RecordingError::mcap(part_path)))?;
    copy.writer
        .finish()
        .map_err(RecordingError::mcap(part_path))?;
    Ok(copy.writer.into_inner())
}

/// Copies records into another file, in which schemas and channels have other numbers.
struct RecordCopy<W: Write + Seek> {
    writer: Writer<W>,
    channels: BTreeMap<u16, u16>,
    schemas: BTreeMap<u16, u16>,
}

impl<W: Write + Seek> RecordCopy<W> {
    fn write(&mut self, record: Record<'_>) -> Result<(), mcap::McapError> {
        match record {
            Record::Schema { header, data } => {
                let id = self
                    .writer
                    .add_schema(&header.name, &header.encoding, &data)?;
                self.schemas.insert(header.id, id);
            }
            Record::Channel(channel) => {
                let schema = self.schemas.get(&channel.schema_id).copied().unwrap_or(0);
                let id = self.writer.add_channel(
                    schema,
                    &channel.topic,
                    &channel.message_encoding,
                    &channel.metadata,
                )?;
                self.channels.insert(channel.id, id);
            }
            Record::Message { header, data } => {
                if let Some(channel) = self.channels.get(&header.channel_id) {
                    let header = MessageHeader {
                        channel_id: *channel,
                        ..header
                    };
                    self.writer.write_to_known_channel(&header, &data)?;
                }
            }
            Record::Attachment { header, data, .. } => self.writer.attach(&Attachment {
                log_time: header.log_time,
                create_time: header.create_time,
                name: header.name,
                media_type: header.media_type,
                data,
            })?,
            Record::Metadata(metadata) => self.writer.write_metadata(&metadata)?,
            _ => {}
        }
        Ok(())
    }
}
