//! Makes a recording whole: in chunks, indexed and compressed, put into its place in one step.

use std::collections::BTreeMap;
use std::io::{BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

use mcap::records::{MessageHeader, Record};
use mcap::{Attachment, Compression, WriteOptions, Writer};

use crate::error::RecordingError;
use crate::mcap_file::{LIBRARY, create};
use crate::records::RecordSource;

/// Bytes of a chunk before it is compressed.
const CHUNK_BYTES: u64 = 1 << 20;

/// Rewrites a recording, a record at a time. A torn one then holds all that was whole. Until the new file is on the disk and
/// takes its place, the old one stays as it is.
pub(crate) fn make_whole(path: &Path) -> Result<(), RecordingError> {
    let source = RecordSource::open(path)?;
    let part = part(path);
    let written = rewrite(source, &part)
        .and_then(|()| std::fs::rename(&part, path).map_err(RecordingError::file(path)));
    if written.is_err() {
        // Half a file is of no use to anybody.
        let _ = std::fs::remove_file(&part);
    }
    written
}

/// The file that takes a recording's place once it is whole.
pub(crate) fn part(path: &Path) -> PathBuf {
    path.with_extension("mcap.part")
}

fn rewrite<R: Read>(source: RecordSource<R>, part: &Path) -> Result<(), RecordingError> {
    let out = copy(source, part, BufWriter::new(create(part)?))?;
    let file = out.into_inner();
    let file = file.map_err(|error| RecordingError::file(part)(error.into_error()))?;
    file.sync_all().map_err(RecordingError::file(part))
}

/// Copies what can be read, in chunks with an index.
pub(crate) fn copy<R: Read, W: Write + Seek>(
    source: RecordSource<R>,
    part: &Path,
    out: W,
) -> Result<W, RecordingError> {
    let options = WriteOptions::new()
        .compression(Some(Compression::Lz4))
        .chunk_size(Some(CHUNK_BYTES))
        .library(LIBRARY);
    let mut copy = RecordCopy {
        writer: options.create(out).map_err(RecordingError::mcap(part))?,
        channels: BTreeMap::new(),
        schemas: BTreeMap::new(),
    };
    source.each(|record| copy.take(record).map_err(RecordingError::mcap(part)))?;
    copy.writer.finish().map_err(RecordingError::mcap(part))?;
    Ok(copy.writer.into_inner())
}

/// Copies records into another file, where schemas and channels have other numbers.
struct RecordCopy<W: Write + Seek> {
    writer: Writer<W>,
    channels: BTreeMap<u16, u16>,
    schemas: BTreeMap<u16, u16>,
}

impl<W: Write + Seek> RecordCopy<W> {
    fn take(&mut self, record: Record<'_>) -> Result<(), mcap::McapError> {
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
