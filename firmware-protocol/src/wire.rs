//! Little-endian reading and writing of a payload inside fixed bounds.

use crate::frame::PAYLOAD_MAX;

/// Takes integers off the front of a payload; `None` once it runs short.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(payload: &'a [u8]) -> Self {
        Self { rest: payload }
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*head)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.take::<1>().map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    pub(crate) fn i32(&mut self) -> Option<i32> {
        self.take().map(i32::from_le_bytes)
    }

    pub(crate) fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take()
    }

    /// Takes everything that is left.
    pub(crate) fn bytes_left(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.rest)
    }

    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

/// Appends integers to a payload. Whatever would exceed [`PAYLOAD_MAX`] is left out; no message of
/// this protocol comes near it.
pub(crate) struct Writer {
    bytes: [u8; PAYLOAD_MAX],
    len: usize,
}

impl Writer {
    pub(crate) const fn new() -> Self {
        Self {
            bytes: [0; PAYLOAD_MAX],
            len: 0,
        }
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        if let Some(slot) = self.bytes.get_mut(self.len..self.len + bytes.len()) {
            slot.copy_from_slice(bytes);
            self.len += bytes.len();
        }
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.bytes(&[value]);
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    pub(crate) fn i32(&mut self, value: i32) {
        self.bytes(&value.to_le_bytes());
    }

    pub(crate) fn written(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}
