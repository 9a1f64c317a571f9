//! Little-endian reading and writing of a payload inside fixed bounds.

use crate::frame::PAYLOAD_MAX;

/// A value in a payload.
pub(crate) trait Field: Sized {
    /// Reads the value off the front; `None` if the payload is too short or the value is invalid.
    fn read(from: &mut Reader<'_>) -> Option<Self>;
    /// Appends the value.
    fn write(&self, out: &mut Writer);
}

/// Implements [`Field`] for integers, the lowest byte first.
macro_rules! little_endian {
    ($($number:ty)+) => {$(
        impl Field for $number {
            fn read(from: &mut Reader<'_>) -> Option<Self> {
                from.take().map(Self::from_le_bytes)
            }

            fn write(&self, out: &mut Writer) {
                out.bytes(&self.to_le_bytes());
            }
        }
    )+};
}

little_endian!(u8 u16 u32 i32);

impl Field for bool {
    fn read(from: &mut Reader<'_>) -> Option<Self> {
        u8::read(from).filter(|&on| on <= 1).map(|on| on == 1)
    }

    fn write(&self, out: &mut Writer) {
        u8::from(*self).write(out);
    }
}

impl<const N: usize> Field for [u8; N] {
    fn read(from: &mut Reader<'_>) -> Option<Self> {
        from.take()
    }

    fn write(&self, out: &mut Writer) {
        out.bytes(self);
    }
}

/// Reads values off the front of a payload; `None` once it is too short.
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

    /// Takes all remaining bytes.
    pub(crate) fn take_rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.rest)
    }

    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

/// Appends values to a payload. Bytes beyond [`PAYLOAD_MAX`] are left out; no message of this protocol has
/// that many.
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

    pub(crate) fn written(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}
