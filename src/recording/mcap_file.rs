//! A recording while it is written: records are appended without chunks, so that a file that ends anywhere can be
//! read up to there.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mcap::records::MessageHeader;
use mcap::{Attachment, WriteOptions, Writer};
use serde::Serialize;

use crate::error::RecordingError;
use crate::records::RECORD_BYTES_MAX;
use crate::topic::{MessageSchema, Topic};
use base::file_access::with_mode;

/// Name of a job's recording in the folder of its journal.
pub const RECORDING: &str = "job.mcap";

/// Name of the writer in the file's header.
pub(crate) const LIBRARY: &str = concat!("steadyhand ", env!("CARGO_PKG_VERSION"));

/// Largest file that is attached; with its name it is one record.
const ATTACHMENT_BYTES_MAX: usize = RECORD_BYTES_MAX / 2;

/// Observes each message as it is written.
pub(crate) trait MessageObserver: Send + Sync {
    /// Handles a message in JSON that was written to a topic.
    fn wrote(&self, topic: &str, at_ns: u64, data: &[u8]);
}

/// Creates a file that only this user can access.
pub(crate) fn create(path: &Path) -> Result<File, RecordingError> {
    let mut options = OpenOptions::new();
    options.create(true).write(true).truncate(true);
    let file = with_mode(&mut options, 0o600).open(path);
    file.map_err(RecordingError::file(path))
}

/// A recording that is being written.
pub(crate) struct McapFile {
    path: PathBuf,
    writer: Writer<BufWriter<File>>,
    channels: BTreeMap<String, u16>,
    sequence: u32,
    bytes: u64,
    observer: Option<Arc<dyn MessageObserver>>,
}

impl McapFile {
    /// Creates the file, which only this user can access; the observer sees every message as well.
    pub(crate) fn create(
        path: &Path,
        observer: Option<Arc<dyn MessageObserver>>,
    ) -> Result<Self, RecordingError> {
        let file = create(path)?;
        let options = WriteOptions::new()
            .use_chunks(false)
            .compression(None)
            .library(LIBRARY);
        let writer = options.create(BufWriter::new(file));
        Ok(Self {
            path: path.to_owned(),
            writer: writer.map_err(RecordingError::mcap(path))?,
            channels: BTreeMap::new(),
            sequence: 0,
            bytes: 0,
            observer,
        })
    }

    /// Returns the number of bytes of its messages and attachments.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends a message.
    pub(crate) fn write<T: Serialize>(
        &mut self,
        topic: Topic,
        at_ns: u64,
        message: &T,
    ) -> Result<(), RecordingError> {
        self.write_to(topic.name, topic.schema, at_ns, message)
    }

    /// Appends a message to a topic whose name is not fixed.
    pub(crate) fn write_to<T: Serialize>(
        &mut self,
        topic: &str,
        schema: MessageSchema,
        at_ns: u64,
        message: &T,
    ) -> Result<(), RecordingError> {
        let channel_id = self.channel(topic, schema)?;
        let data = serde_json::to_vec(message).map_err(RecordingError::json(&self.path, topic))?;
        self.sequence = self.sequence.wrapping_add(1);
        let header = MessageHeader {
            channel_id,
            sequence: self.sequence,
            log_time: at_ns,
            publish_time: at_ns,
        };
        self.bytes += data.len() as u64;
        if let Some(observer) = &self.observer {
            observer.wrote(topic, at_ns, &data);
        }
        let written = self.writer.write_to_known_channel(&header, &data);
        written.map_err(RecordingError::mcap(&self.path))
    }

    fn channel(&mut self, topic: &str, schema: MessageSchema) -> Result<u16, RecordingError> {
        if let Some(channel) = self.channels.get(topic) {
            return Ok(*channel);
        }
        let channel = self
            .writer
            .add_schema(schema.name, "jsonschema", schema.text.as_bytes())
            .and_then(|schema| {
                self.writer
                    .add_channel(schema, topic, "json", &BTreeMap::new())
            })
            .map_err(RecordingError::mcap(&self.path))?;
        self.channels.insert(topic.to_owned(), channel);
        Ok(channel)
    }

    /// Appends a file.
    pub(crate) fn attach(
        &mut self,
        name: &str,
        media_type: &str,
        at_ns: u64,
        data: &[u8],
    ) -> Result<(), RecordingError> {
        if data.len() > ATTACHMENT_BYTES_MAX {
            let reason = format!(
                "{name} has {} MB; at most {} MB can be attached",
                data.len() >> 20,
                ATTACHMENT_BYTES_MAX >> 20
            );
            return Err(RecordingError::unusable(&self.path, reason));
        }
        self.bytes += data.len() as u64;
        let attached = self.writer.attach(&Attachment {
            log_time: at_ns,
            create_time: at_ns,
            name: name.to_owned(),
            media_type: media_type.to_owned(),
            data: data.into(),
        });
        attached.map_err(RecordingError::mcap(&self.path))
    }

    /// Passes everything written to the system, so that it outlives this process.
    pub(crate) fn flush(&mut self) -> Result<(), RecordingError> {
        self.writer
            .flush()
            .map_err(RecordingError::mcap(&self.path))
    }

    /// Finishes the file.
    pub(crate) fn finish(mut self) -> Result<(), RecordingError> {
        let finished = self.writer.finish();
        finished.map(drop).map_err(RecordingError::mcap(&self.path))
    }
}
