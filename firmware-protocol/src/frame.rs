//! Frames: delimiters, stuffing, header and checksum, and a decoder that always resynchronises.
//!
//! ```text
//! 00 | COBS( version<<6 | type : u8, sequence : u8, payload, crc32c : u32 little endian ) | 00
//! ```

use crate::PROTOCOL_MAJOR;
use crate::cobs::{STUFFED_MAX, Unstuffer, stuff};
use crate::crc::crc32c;

/// Longest payload of a frame, in bytes.
pub const PAYLOAD_MAX: usize = 200;

/// Longest frame on the wire, both delimiters included, in bytes.
pub const FRAME_MAX: usize = STUFFED_MAX + 2;

/// The nine bytes of an emergency stop. They are the same in every version of the protocol, need no
/// sequence number, and are recognised after any other bytes.
pub const ESTOP_BYTES: [u8; 9] = [0x00, 0x02, 0x7F, 0x05, 0xA8, 0xA9, 0x41, 0xA9, 0x00];

/// Largest message type: six bits.
pub const KIND_MAX: u8 = 0x3F;

const HEADER_LEN: usize = 2;
const CRC_LEN: usize = 4;

/// The bytes of one frame on the wire, in a buffer of its own.
#[derive(Debug, Clone, Copy)]
pub struct FrameBytes {
    bytes: [u8; FRAME_MAX],
    len: usize,
}

impl FrameBytes {
    /// Returns the bytes to send, from delimiter to delimiter.
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

/// A received frame with a correct checksum. Its type may still be unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Major version of the sender, `0..=3`.
    pub version: u8,
    /// Message type, `0..=63`.
    pub kind: u8,
    /// Sequence number of the sender; its meaning depends on the type.
    pub sequence: u8,
    /// Payload of at most [`PAYLOAD_MAX`] bytes.
    pub payload: &'a [u8],
}

/// Encodes one frame of this crate's version. `None` if `payload` exceeds [`PAYLOAD_MAX`] or `kind`
/// exceeds [`KIND_MAX`].
pub fn encode(kind: u8, sequence: u8, payload: &[u8]) -> Option<FrameBytes> {
    if kind > KIND_MAX || payload.len() > PAYLOAD_MAX {
        return None;
    }
    let mut body = [0; HEADER_LEN + PAYLOAD_MAX + CRC_LEN];
    let covered = HEADER_LEN + payload.len();
    body.get_mut(..HEADER_LEN)?
        .copy_from_slice(&[PROTOCOL_MAJOR << 6 | kind, sequence]);
    body.get_mut(HEADER_LEN..covered)?.copy_from_slice(payload);
    let crc = crc32c(body.get(..covered)?);
    body.get_mut(covered..covered + CRC_LEN)?
        .copy_from_slice(&crc.to_le_bytes());
    delimit(body.get(..covered + CRC_LEN)?)
}

fn delimit(body: &[u8]) -> Option<FrameBytes> {
    let mut bytes = [0; FRAME_MAX];
    let stuffed = stuff(body, bytes.get_mut(1..)?)?;
    Some(FrameBytes {
        bytes,
        len: stuffed + 2,
    })
}

/// Result of taking a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received<'a> {
    /// An incomplete frame, an idle zero, or a frame that was refused and counted.
    Nothing,
    /// A frame with a correct checksum.
    Frame(Frame<'a>),
    /// The nine bytes of an emergency stop. The same bytes are not reported as a frame as well.
    Estop,
}

/// Counters of a decoder. Every count saturates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DecoderCounters {
    /// Frames with a correct checksum, emergency stops included.
    pub frames: u32,
    /// Runs of bytes between delimiters that were not a frame, because stuffing, length or checksum was wrong.
    pub corrupt: u32,
}

/// Decodes bytes into frames; never fails, never grows, never panics.
///
/// Garbage costs at most the frame that it touches: decoding restarts at the next zero.
#[derive(Debug, Clone)]
pub struct Decoder {
    unstuffer: Unstuffer,
    estop_matched: usize,
    finished: bool,
    counters: DecoderCounters,
}

impl Decoder {
    /// Creates a decoder, which takes the first frame with or without a leading zero.
    pub const fn new() -> Self {
        Self {
            unstuffer: Unstuffer::new(),
            estop_matched: 0,
            finished: false,
            counters: DecoderCounters {
                frames: 0,
                corrupt: 0,
            },
        }
    }

    /// Returns the counters so far.
    pub const fn counters(&self) -> DecoderCounters {
        self.counters
    }

    /// Takes the next byte off the wire.
    #[inline]
    pub fn push(&mut self, byte: u8) -> Received<'_> {
        let step = self.step(byte);
        self.received(step)
    }

    /// Takes bytes off the front of `bytes` until a frame or an emergency stop is complete, or none is left.
    /// Equal to [`Decoder::push`] for each byte, but faster.
    pub fn take(&mut self, bytes: &mut &[u8]) -> Received<'_> {
        while let Some((&byte, tail)) = bytes.split_first() {
            // An emergency stop begins with a zero, so before the next zero none can be in progress.
            if self.estop_matched == 0 && !self.finished {
                let count = self.unstuffer.push_block(bytes);
                if count > 0 {
                    *bytes = bytes.get(count..).unwrap_or_default();
                    continue;
                }
            }
            *bytes = tail;
            let step = self.step(byte);
            if step != Step::Nothing {
                return self.received(step);
            }
        }
        Received::Nothing
    }

    #[inline]
    fn step(&mut self, byte: u8) -> Step {
        if self.finished {
            self.unstuffer.clear();
            self.finished = false;
        }
        if self.completes_estop(byte) {
            self.unstuffer.clear();
            self.counters.frames = self.counters.frames.saturating_add(1);
            return Step::Estop;
        }
        if byte == 0 {
            return self.finish();
        }
        self.unstuffer.push(byte);
        Step::Nothing
    }

    fn received(&self, step: Step) -> Received<'_> {
        match step {
            Step::Nothing => Received::Nothing,
            Step::Estop => Received::Estop,
            Step::Frame => match self.unstuffer.body().and_then(split) {
                Some((frame, _)) => Received::Frame(frame),
                None => Received::Nothing,
            },
        }
    }

    /// Matches the raw bytes against an emergency stop, independently of the frame decoder. Only its first and last
    /// bytes are zero, so a mismatch can only fall back to the first.
    #[inline]
    fn completes_estop(&mut self, byte: u8) -> bool {
        if ESTOP_BYTES.get(self.estop_matched) == Some(&byte) {
            self.estop_matched += 1;
        } else {
            self.estop_matched = usize::from(byte == 0);
        }
        let is_complete = self.estop_matched == ESTOP_BYTES.len();
        if is_complete {
            self.estop_matched = 1;
        }
        is_complete
    }

    fn finish(&mut self) -> Step {
        if !self.unstuffer.started() {
            return Step::Nothing;
        }
        self.finished = true;
        if self.unstuffer.body().is_some_and(is_valid) {
            self.counters.frames = self.counters.frames.saturating_add(1);
            Step::Frame
        } else {
            self.counters.corrupt = self.counters.corrupt.saturating_add(1);
            Step::Nothing
        }
    }
}

/// Result of taking a byte, without the frame.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Nothing,
    Frame,
    Estop,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

/// Splits a body into a frame and its checksum, which is not verified.
fn split(body: &[u8]) -> Option<(Frame<'_>, u32)> {
    let (covered, crc) = body.split_last_chunk::<CRC_LEN>()?;
    let (&[first, sequence], payload) = covered.split_first_chunk::<HEADER_LEN>()?;
    let frame = Frame {
        version: first >> 6,
        kind: first & KIND_MAX,
        sequence,
        payload,
    };
    Some((frame, u32::from_le_bytes(*crc)))
}

/// Returns whether a body is long enough and its checksum is correct.
fn is_valid(body: &[u8]) -> bool {
    let covered = body.len().saturating_sub(CRC_LEN);
    let matches = |crc| body.get(..covered).map(crc32c) == Some(crc);
    split(body).is_some_and(|(_, crc)| matches(crc))
}
