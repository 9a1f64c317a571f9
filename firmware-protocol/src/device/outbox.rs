//! Bytes that wait to be sent: whole frames or nothing.

/// Number of bytes that can wait. A frame that does not fit is dropped; everything a device says is either
/// said again later or asked for again.
pub(super) const OUTBOX_BYTES: usize = 1024;

/// A ring of bytes.
#[derive(Debug, Clone)]
pub(super) struct Outbox {
    bytes: [u8; OUTBOX_BYTES],
    first: usize,
    len: usize,
}

impl Outbox {
    pub(super) const fn new() -> Self {
        Self {
            bytes: [0; OUTBOX_BYTES],
            first: 0,
            len: 0,
        }
    }

    /// Appends all of `frame`, or nothing of it.
    pub(super) fn put(&mut self, frame: &[u8]) {
        if self.len + frame.len() > OUTBOX_BYTES {
            return;
        }
        for &byte in frame {
            let at = (self.first + self.len) % OUTBOX_BYTES;
            if let Some(slot) = self.bytes.get_mut(at) {
                *slot = byte;
                self.len += 1;
            }
        }
    }

    /// Moves as many bytes to `out` as fit.
    pub(super) fn take(&mut self, out: &mut [u8]) -> usize {
        let count = out.len().min(self.len);
        for slot in out.iter_mut().take(count) {
            *slot = self.bytes.get(self.first).copied().unwrap_or(0);
            self.first = (self.first + 1) % OUTBOX_BYTES;
        }
        self.len -= count;
        count
    }
}
