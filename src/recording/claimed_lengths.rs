//! Compares the lengths that a record claims with its bytes: the library makes room for a text before it reads it.

use mcap::McapError;
use mcap::records::op;

/// Checks that the texts of a record are no longer than the record.
///
/// # Errors
/// A text or a list of texts would end beyond the record.
pub(crate) fn check(opcode: u8, body: &[u8]) -> Result<(), McapError> {
    let mut rest = RecordBytes(body);
    let fits = match opcode {
        op::HEADER => rest.text().and_then(|()| rest.text()),
        op::SCHEMA => rest
            .skip(2)
            .and_then(|()| rest.text())
            .and_then(|()| rest.text()),
        op::CHANNEL => rest.channel(),
        op::ATTACHMENT => rest.attachment(),
        op::METADATA => rest.text().and_then(|()| rest.map()),
        _ => Some(()),
    };
    fits.ok_or(McapError::RecordTooLarge {
        opcode,
        len: body.len() as u64,
    })
}

/// What is left of a record's bytes.
struct RecordBytes<'a>(&'a [u8]);

impl RecordBytes<'_> {
    fn skip(&mut self, count: usize) -> Option<()> {
        self.0 = self.0.get(count..)?;
        Some(())
    }

    /// Reads a length of 4 bytes.
    fn length(&mut self) -> Option<usize> {
        let (length, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        usize::try_from(u32::from_le_bytes(*length)).ok()
    }

    fn text(&mut self) -> Option<()> {
        let length = self.length()?;
        self.skip(length)
    }

    /// Skips pairs of texts with the length of all.
    fn map(&mut self) -> Option<()> {
        let length = self.length()?;
        let mut pairs = RecordBytes(self.0.get(..length)?);
        while !pairs.0.is_empty() {
            pairs.text()?;
            pairs.text()?;
        }
        self.skip(length)
    }

    /// Skips id and schema, topic and encoding, and metadata.
    fn channel(&mut self) -> Option<()> {
        self.skip(4)?;
        self.text()?;
        self.text()?;
        self.map()
    }

    /// Skips two times, name and type, length and sum.
    fn attachment(&mut self) -> Option<()> {
        self.skip(16)?;
        self.text()?;
        self.text()?;
        self.skip(8 + 4)
    }
}
