//! Finds replies in a stream that may hold anything, for the frame format of any family.
//!
//! What cannot be a frame costs one byte: behind noise, a cut frame or a false header, the next true
//! frame is found.

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
    /// The next whole and correct reply with at most that many parameter bytes.
    fn next(&mut self, parameters_max: usize) -> Option<RawReply<'_>>;
    /// Frames given up for a wrong checksum, ever.
    fn corrupt(&self) -> u64;
    /// Bytes of a reply around its parameters.
    fn overhead(&self) -> usize;
    /// See [`Shape::distinct`].
    fn distinct(&self, request: &[u8]) -> Option<Vec<u8>>;
}

/// The kind of frame that the undecoded bytes begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameMatch {
    /// A whole frame of N bytes with a correct checksum.
    Frame(usize),
    /// Perhaps a frame; more bytes will tell.
    Incomplete,
    /// No frame begins with the first of them; `corrupt` if only its checksum says so.
    NotHere {
        /// `true` if it looked whole.
        corrupt: bool,
    },
}

/// The frame format of one family.
pub trait FrameFormat: 'static {
    /// Undecoded bytes that are kept; older ones are given up.
    const PENDING_MAX: usize;
    /// Bytes of a reply around its parameters.
    const OVERHEAD: usize;

    /// Returns what `rest` begins with. A length beyond what is now expected cannot begin a reply: if it
    /// were believed, it would swallow the good ones behind it.
    fn match_frame(rest: &[u8], parameters_max: usize) -> FrameMatch;

    /// Appends a whole frame's parameters, as they were before stuffing; its id and error byte.
    /// `None` where it is no reply, such as our own echo.
    fn unpack_reply(frame: &[u8], plain: &mut Vec<u8>) -> Option<(u8, u8)>;

    /// Returns, where a reply to `request` can have the very bytes of `request`, a request to the same servo of which that
    /// is not so and that is answered with one parameter byte. `None` where no reply can.
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
    plain: Vec<u8>,
    corrupt: u64,
    shape: PhantomData<fn() -> S>,
}

impl<S> Default for FrameDecoder<S> {
    fn default() -> Self {
        Self {
            pending: Vec::new(),
            read: 0,
            plain: Vec::new(),
            corrupt: 0,
            shape: PhantomData,
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
                    self.plain.clear();
                    let taken = S::unpack_reply(rest.get(..length)?, &mut self.plain);
                    self.read += length;
                    if let Some((id, error)) = taken {
                        return Some(RawReply {
                            id,
                            error,
                            parameters: &self.plain,
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

    /// Returns the room taken after N pieces of garbage, half of them beginnings of frames.
    fn room<S: FrameFormat>(decoder: &mut FrameDecoder<S>, pieces: u32) -> usize {
        let mut chance = 0x2545_F491_u32;
        for _ in 0..pieces {
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
        assert!(decoder.plain.capacity() <= 256, "a reply is not so long");
        decoder.pending.capacity()
    }

    fn check<S: FrameFormat>() {
        let mut decoder = FrameDecoder::<S>::default();
        let early = room(&mut decoder, 1_000);
        let late = room(&mut decoder, 50_000);
        assert!(early <= 4 * S::PENDING_MAX, "{early}");
        assert_eq!(early, late, "it grows");
    }

    #[test]
    fn garbage_without_end_takes_no_more_room() {
        check::<FeetechFrames>();
        check::<DynamixelFrames>();
    }
}
