//! Finds replies in a stream that may hold anything, for the frame format of any family.
//!
//! Bytes that cannot begin a frame are skipped one by one: after noise, a cut frame or a false header,
//! the next true frame is found.

use std::marker::PhantomData;

/// A reply, still in the decoder's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawReply<'a> {
    /// The sender.
    pub id: u8,
    /// Its error byte.
    pub error: u8,
    /// Its parameters, without stuffing.
    pub parameters: &'a [u8],
}

/// A family's frames, without I/O.
pub trait ReplyFraming: Send {
    /// Forgets every byte.
    fn clear(&mut self);
    /// Takes bytes from the wire.
    fn push(&mut self, bytes: &[u8]);
    /// Returns the next complete and correct reply with at most that many parameter bytes.
    fn next(&mut self, parameters_max: usize) -> Option<RawReply<'_>>;
    /// Returns the total number of frames dropped for a wrong checksum.
    fn corrupt(&self) -> u64;
    /// Returns the bytes of a reply around its parameters.
    fn overhead(&self) -> usize;
    /// See [`FrameFormat::distinct`].
    fn distinct(&self, request: &[u8]) -> Option<Vec<u8>>;
}

/// The kind of frame that the undecoded bytes begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameMatch {
    /// A complete frame of this many bytes with a correct checksum.
    Frame(usize),
    /// Possibly a frame; more bytes are needed.
    Incomplete,
    /// No frame begins at the first byte.
    NotHere {
        /// `true` if only the checksum is wrong.
        corrupt: bool,
    },
}

/// The frame format of one family.
pub trait FrameFormat: 'static {
    /// Most undecoded bytes that are kept; older ones are dropped.
    const PENDING_MAX: usize;
    /// Bytes of a reply around its parameters.
    const OVERHEAD: usize;

    /// Returns what `rest` begins with. A length beyond what is now expected cannot begin a reply: if it
    /// were accepted, it would swallow the good frames after it.
    fn match_frame(rest: &[u8], parameters_max: usize) -> FrameMatch;

    /// Appends a frame's parameters without stuffing; returns its id and error byte. `None` where it is
    /// no reply, such as an echo.
    fn unpack_reply(frame: &[u8], unstuffed: &mut Vec<u8>) -> Option<(u8, u8)>;

    /// Returns, where a reply to `request` can have the same bytes as `request`, another request to the
    /// same servo that has no such reply, and one parameter byte in its reply. `None` where no reply can.
    fn distinct(request: &[u8]) -> Option<Vec<u8>> {
        let _ = request;
        None
    }
}

/// Finds one family's replies.
#[derive(Debug)]
pub struct FrameDecoder<S> {
    pending: Vec<u8>,
    read: usize,
    /// The last reply's parameters.
    unstuffed: Vec<u8>,
    corrupt: u64,
    format: PhantomData<fn() -> S>,
}

impl<S> Default for FrameDecoder<S> {
    fn default() -> Self {
        Self {
            pending: Vec::new(),
            read: 0,
            unstuffed: Vec::new(),
            corrupt: 0,
            format: PhantomData,
        }
    }
}

impl<S: FrameFormat> ReplyFraming for FrameDecoder<S> {
    fn clear(&mut self) {
        self.pending.clear();
        self.read = 0;
    }

    fn push(&mut self, bytes: &[u8]) {
        self.pending.drain(..self.read);
        self.read = 0;
        self.pending.extend(bytes);
        let excess = self.pending.len().saturating_sub(S::PENDING_MAX);
        self.pending.drain(..excess);
    }

    fn next(&mut self, parameters_max: usize) -> Option<RawReply<'_>> {
        while let Some(rest) = self
            .pending
            .get(self.read..)
            .filter(|rest| !rest.is_empty())
        {
            match S::match_frame(rest, parameters_max) {
                FrameMatch::Incomplete => return None,
                FrameMatch::NotHere { corrupt } => {
                    self.corrupt += u64::from(corrupt);
                    self.read += 1;
                }
                FrameMatch::Frame(length) => {
                    self.unstuffed.clear();
                    let reply = S::unpack_reply(rest.get(..length)?, &mut self.unstuffed);
                    self.read += length;
                    if let Some((id, error)) = reply {
                        return Some(RawReply {
                            id,
                            error,
                            parameters: &self.unstuffed,
                        });
                    }
                }
            }
        }
        None
    }

    fn corrupt(&self) -> u64 {
        self.corrupt
    }

    fn overhead(&self) -> usize {
        S::OVERHEAD
    }

    fn distinct(&self, request: &[u8]) -> Option<Vec<u8>> {
        S::distinct(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dynamixel::codec::DynamixelFrames;
    use crate::feetech::codec::FeetechFrames;

    /// Returns the decoder's capacity after so many pieces of garbage with many frame headers.
    fn capacity_after<S: FrameFormat>(decoder: &mut FrameDecoder<S>, count: u32) -> usize {
        let mut chance = 0x2545_F491_u32;
        for _ in 0..count {
            let mut bytes = [0_u8; 64];
            for byte in &mut bytes {
                chance ^= chance << 13;
                chance ^= chance >> 17;
                chance ^= chance << 5;
                *byte = if chance & 3 == 0 {
                    0xFF
                } else {
                    chance.to_le_bytes()[1]
                };
            }
            decoder.push(&bytes);
            while decoder.next(64).is_some() {}
        }
        assert!(decoder.unstuffed.capacity() <= 256, "too long a reply");
        decoder.pending.capacity()
    }

    fn check<S: FrameFormat>() {
        let mut decoder = FrameDecoder::<S>::default();
        let initial = capacity_after(&mut decoder, 1_000);
        let later = capacity_after(&mut decoder, 50_000);
        assert!(initial <= 4 * S::PENDING_MAX, "{initial}");
        assert_eq!(initial, later, "it grows");
    }

    #[test]
    fn endless_garbage_takes_no_more_memory() {
        check::<FeetechFrames>();
        check::<DynamixelFrames>();
    }
}
