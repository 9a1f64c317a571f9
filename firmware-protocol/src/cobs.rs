//! Consistent-overhead byte stuffing: removes zeros from a body so that zero can delimit frames.
//!
//! Only bodies of up to [`BODY_MAX`] bytes are stuffed, so a block never reaches the length of 254
//! where the general algorithm needs its special case for full blocks; the unstuffer refuses a code
//! of 255 for the same reason.

/// Longest body, before stuffing, that [`stuff`] takes, in bytes.
pub const BODY_MAX: usize = 206;

/// Length of a stuffed body of [`BODY_MAX`] bytes.
pub const STUFFED_MAX: usize = BODY_MAX + 1;

/// Writes `body` without zeros to `out` and returns the number of bytes written, always one more than
/// `body` has. `None`, with `out` partly written, if `body` exceeds [`BODY_MAX`] or `out` is short.
pub fn stuff(body: &[u8], out: &mut [u8]) -> Option<usize> {
    if body.len() > BODY_MAX {
        return None;
    }
    let mut written = 0;
    for block in body.split(|&byte| byte == 0) {
        let slot = out.get_mut(written..written + block.len() + 1)?;
        let (code, data) = slot.split_first_mut()?;
        *code = u8::try_from(block.len() + 1).ok()?;
        data.copy_from_slice(block);
        written += block.len() + 1;
    }
    Some(written)
}

/// Decodes the non-zero bytes between two delimiters, one by one, into the body that they encode.
///
/// A body that grows too long or holds an invalid code stays invalid until [`Unstuffer::clear`].
#[derive(Debug, Clone)]
pub struct Unstuffer {
    body: [u8; BODY_MAX],
    len: usize,
    block_remaining: u8,
    started: bool,
    invalid: bool,
}

impl Unstuffer {
    /// Creates an unstuffer.
    pub const fn new() -> Self {
        Self {
            body: [0; BODY_MAX],
            len: 0,
            block_remaining: 0,
            started: false,
            invalid: false,
        }
    }

    /// Forgets all bytes since the last delimiter.
    pub const fn clear(&mut self) {
        self.len = 0;
        self.block_remaining = 0;
        self.started = false;
        self.invalid = false;
    }

    /// Returns whether any byte has arrived since the last delimiter.
    pub const fn started(&self) -> bool {
        self.started
    }

    /// Takes one byte. A zero is not a code and makes the body invalid.
    #[inline]
    pub fn push(&mut self, byte: u8) {
        if self.block_remaining > 0 {
            self.block_remaining -= 1;
            self.append(byte);
        } else {
            self.open_block(byte);
        }
    }

    /// Takes the bytes at the front of `bytes` that lie inside the block that has begun, up to the
    /// first zero; returns how many those were.
    #[inline]
    pub fn push_block(&mut self, bytes: &[u8]) -> usize {
        let block_len = usize::from(self.block_remaining).min(bytes.len());
        let block = bytes.get(..block_len).unwrap_or_default();
        let Some(room) = self.body.get_mut(self.len..self.len + block.len()) else {
            // No complete body has a block that long, so this one is invalid whatever follows.
            self.invalid = true;
            return 0;
        };
        let mut count = 0u8;
        for (slot, &byte) in room.iter_mut().zip(block) {
            if byte == 0 {
                break;
            }
            *slot = byte;
            count += 1;
        }
        self.len += usize::from(count);
        self.block_remaining -= count;
        usize::from(count)
    }

    /// Returns the body if the bytes so far are a complete one.
    pub fn body(&self) -> Option<&[u8]> {
        if self.invalid || !self.started || self.block_remaining > 0 {
            return None;
        }
        self.body.get(..self.len)
    }

    fn open_block(&mut self, code: u8) {
        if code == 0 || code == u8::MAX {
            self.invalid = true;
        }
        if self.started {
            self.append(0);
        }
        self.started = true;
        self.block_remaining = code.saturating_sub(1);
    }

    #[inline]
    fn append(&mut self, byte: u8) {
        match self.body.get_mut(self.len) {
            Some(slot) => {
                *slot = byte;
                self.len += 1;
            }
            None => self.invalid = true,
        }
    }
}

impl Default for Unstuffer {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn unstuff(bytes: &[u8]) -> Option<Vec<u8>> {
        let mut unstuffer = Unstuffer::new();
        for &byte in bytes {
            unstuffer.push(byte);
        }
        unstuffer.body().map(<[u8]>::to_vec)
    }

    #[test]
    fn stuffs_the_textbook_examples() {
        for (body, want) in [
            (&[0x00][..], &[1, 1][..]),
            (&[0x11, 0x22, 0x00, 0x33], &[3, 0x11, 0x22, 2, 0x33]),
            (&[0x11, 0x00, 0x00, 0x00], &[2, 0x11, 1, 1, 1]),
            (&[], &[1]),
        ] {
            let mut out = [0; STUFFED_MAX];
            let len = stuff(body, &mut out).unwrap();
            assert_eq!(&out[..len], want);
        }
    }

    #[test]
    fn refuses_bodies_that_are_too_long_or_truncated() {
        assert_eq!(stuff(&[1; BODY_MAX + 1], &mut [0; 300]), None);
        assert_eq!(stuff(&[1; 4], &mut [0; 4]), None);
        assert_eq!(unstuff(&[5, 1, 2]), None);
        assert_eq!(unstuff(&[]), None);
        assert_eq!(unstuff(&[0xFF; 200]), None);
        assert_eq!(unstuff(&[1; BODY_MAX + 2]), None);
    }

    proptest! {
        #[test]
        fn unstuffing_returns_the_stuffed_body(body in prop::collection::vec(prop_oneof![Just(0u8), any::<u8>()], 0..=BODY_MAX)) {
            let mut out = [0; STUFFED_MAX];
            let len = stuff(&body, &mut out).unwrap();
            prop_assert_eq!(len, body.len() + 1);
            prop_assert!(!out[..len].contains(&0));
            prop_assert_eq!(unstuff(&out[..len]).unwrap(), body);
        }
    }
}
