//! Frames of the Feetech STS protocol, without I/O.
//!
//! `FF FF id length instruction parameters… checksum`, where the checksum is the inverted sum
//! from the id on. An eight-bit sum lets one damaged frame in 256 pass: a reply must also be checked
//! for plausibility.

use crate::error::TooLarge;
use crate::framing::{self, FrameFormat, FrameMatch};
use crate::wire::ServoInstruction;

/// Parameter bytes that fit into a frame.
pub const PARAMETERS_MAX: usize = 250;

const HEADER: u8 = 0xFF;

/// Address of a servo's own id, one byte.
const ID_ADDRESS: u8 = 5;

/// Appends a frame.
///
/// # Panics
/// With more than [`PARAMETERS_MAX`] bytes of parameters: cut, the frame would say something else.
#[expect(
    clippy::cast_possible_truncation,
    reason = "refused above PARAMETERS_MAX"
)]
pub(crate) fn encode(out: &mut Vec<u8>, id: u8, instruction: ServoInstruction, parameters: &[u8]) {
    let count = parameters.len();
    assert!(count <= PARAMETERS_MAX, "{count} parameters for a frame");
    let begin = out.len() + 2;
    out.extend([HEADER, HEADER, id, count as u8 + 2, instruction as u8]);
    out.extend(parameters);
    let (_, counted) = out.split_at(begin);
    out.push(checksum(counted));
}

/// Returns the inverted eight-bit sum.
fn checksum(bytes: &[u8]) -> u8 {
    !bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte))
}

/// Decodes a magnitude with its sign in bit `sign_bit`, below 16, as Feetech uses instead of two's
/// complement.
#[must_use]
pub fn from_sign_magnitude(word: u16, sign_bit: u32) -> i32 {
    let sign = 1_u16 << sign_bit;
    let magnitude = i32::from(word & !sign);
    if word & sign == 0 {
        magnitude
    } else {
        -magnitude
    }
}

/// Returns the reverse of [`from_sign_magnitude`].
///
/// # Errors
/// When the magnitude needs the sign's bit or one above it: truncated, it would be another position.
pub fn to_sign_magnitude(value: i32, sign_bit: u32) -> Result<u16, TooLarge> {
    let sign = 1_u16 << sign_bit;
    let most = sign - 1;
    match u16::try_from(value.unsigned_abs()) {
        Ok(magnitude) if magnitude <= most => Ok(match value {
            ..0 => magnitude | sign,
            _ => magnitude,
        }),
        _ => Err(TooLarge { value, most }),
    }
}

/// Finds replies in a stream that may hold anything.
pub type FeetechDecoder = framing::FrameDecoder<FeetechFrames>;

/// Frame format of STS servos.
#[derive(Debug)]
pub struct FeetechFrames;

impl FrameFormat for FeetechFrames {
    const PENDING_MAX: usize = 1024;
    const OVERHEAD: usize = 6;

    fn match_frame(rest: &[u8], parameters_max: usize) -> FrameMatch {
        let &[HEADER, HEADER, id, length, ..] = rest else {
            let may_begin = rest.len() < 4 && rest.iter().take(2).all(|byte| *byte == HEADER);
            return if may_begin {
                FrameMatch::Incomplete
            } else {
                FrameMatch::NotHere { corrupt: false }
            };
        };
        let length = usize::from(length);
        if id == HEADER || length < 2 || length - 2 > parameters_max {
            return FrameMatch::NotHere { corrupt: false };
        }
        let Some((body, check)) = rest.get(2..3 + length).zip(rest.get(3 + length)) else {
            return FrameMatch::Incomplete;
        };
        if checksum(body) == *check {
            FrameMatch::Frame(length + 4)
        } else {
            FrameMatch::NotHere { corrupt: true }
        }
    }

    fn unpack_reply(frame: &[u8], unstuffed: &mut Vec<u8>) -> Option<(u8, u8)> {
        let [_, _, id, _, error, parameters @ .., _] = frame else {
            return None;
        };
        unstuffed.extend(parameters);
        Some((*id, *error))
    }

    /// A reply has its error byte where a request has its instruction. So a ping equals its reply with
    /// the voltage bit, and a read of two bytes its reply with the encoder's bit and certain two bytes.
    fn distinct(request: &[u8]) -> Option<Vec<u8>> {
        let id = match request {
            [_, _, id, 2, instruction, _] if *instruction == ServoInstruction::Ping as u8 => *id,
            [_, _, id, 4, instruction, _, 2, _] if *instruction == ServoInstruction::Read as u8 => {
                *id
            }
            _ => return None,
        };
        let mut probe = Vec::new();
        encode(&mut probe, id, ServoInstruction::Read, &[ID_ADDRESS, 1]);
        Some(probe)
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::framing::ReplyFraming;
    use crate::wire::BROADCAST;

    fn frame(id: u8, instruction: ServoInstruction, parameters: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(&mut out, id, instruction, parameters);
        out
    }

    fn hex(text: &str) -> Vec<u8> {
        text.split_whitespace()
            .map(|byte| u8::from_str_radix(byte, 16).unwrap())
            .collect()
    }

    #[test]
    fn frames_are_the_manufacturers() {
        for (encoded, expected) in [
            (frame(1, ServoInstruction::Ping, &[]), "FF FF 01 02 01 FB"),
            (
                frame(1, ServoInstruction::Read, &[56, 8]),
                "FF FF 01 04 02 38 08 B8",
            ),
            (
                frame(1, ServoInstruction::Write, &[41, 50, 0, 8, 0, 0, 0x58, 2]),
                "FF FF 01 0A 03 29 32 00 08 00 00 58 02 34",
            ),
            (
                frame(
                    BROADCAST,
                    ServoInstruction::SyncWrite,
                    &[42, 2, 1, 0, 8, 2, 0, 8],
                ),
                "FF FF FE 0A 83 2A 02 01 00 08 02 00 08 35",
            ),
            (
                frame(BROADCAST, ServoInstruction::SyncRead, &[56, 8, 1, 2]),
                "FF FF FE 06 82 38 08 01 02 36",
            ),
            (
                frame(BROADCAST, ServoInstruction::Write, &[40, 0]),
                "FF FF FE 04 03 28 00 D2",
            ),
        ] {
            assert_eq!(encoded, hex(expected));
        }
    }

    #[test]
    fn reads_a_reply_in_garbage() {
        let mut decoder = FeetechDecoder::default();
        // A false header with a large length, then half a frame, then the reply.
        decoder.push(&hex(
            "FF FF 01 F0 FF FF FF 01 04 FF FF 01 04 00 00 08 F2 FF",
        ));
        let reply = decoder.next(2).unwrap();
        assert_eq!(
            (reply.id, reply.error, reply.parameters),
            (1, 0, &[0, 8][..])
        );
        assert_eq!(decoder.next(2), None);
    }

    #[test]
    fn a_reply_may_come_byte_by_byte() {
        let mut decoder = FeetechDecoder::default();
        for byte in hex("FF FF 01 04 00 00 08") {
            decoder.push(&[byte]);
            assert_eq!(decoder.next(2), None);
        }
        decoder.push(&[0xF2]);
        assert!(decoder.next(2).is_some());
    }

    #[test]
    fn a_wrong_checksum_is_counted_and_skipped() {
        let mut decoder = FeetechDecoder::default();
        decoder.push(&hex("FF FF 01 04 00 00 08 F3 FF FF 01 04 00 00 08 F2"));
        assert!(decoder.next(2).is_some());
        assert_eq!(decoder.corrupt(), 1);
    }

    /// Parameters that do not fit must not be cut: some servos would not receive theirs.
    #[test]
    #[should_panic = "251 parameters for a frame"]
    fn refuses_a_frame_that_would_be_cut() {
        let _ = frame(
            BROADCAST,
            ServoInstruction::SyncWrite,
            &[0; PARAMETERS_MAX + 1],
        );
    }

    #[test]
    fn minus_zero_and_the_extremes_have_one_meaning() {
        for (word, bit, value) in [
            (0x0000, 15, 0),
            (0x8000, 15, 0),
            (0x8001, 15, -1),
            (0x7FFF, 15, 32767),
            (0xFFFF, 15, -32767),
            (0x0800 | 20, 11, -20),
            (0x0400 | 1000, 10, -1000),
        ] {
            assert_eq!(from_sign_magnitude(word, bit), value);
        }
        assert_eq!(to_sign_magnitude(-1, 15), Ok(0x8001));
        assert_eq!(to_sign_magnitude(-2047, 11), Ok(0x0FFF));
    }

    /// A truncated number would be another position.
    #[test]
    fn refuses_a_number_that_does_not_fit_beside_its_sign() {
        for (value, bit, most) in [
            (40_000, 15, 0x7FFF),
            (-0x8000, 15, 0x7FFF),
            (2048, 11, 2047),
            (i32::MIN, 15, 0x7FFF),
        ] {
            let refused = TooLarge { value, most };
            assert_eq!(to_sign_magnitude(value, bit), Err(refused));
        }
    }

    proptest! {
        #[test]
        fn no_reply_has_the_bytes_of_a_distinct_request(
            id in 0_u8..=253, address: u8, length in 1_u8..=64, error: u8, data in proptest::collection::vec(any::<u8>(), 64)
        ) {
            let reply = |length: u8| {
                let mut reply = vec![0xFF, 0xFF, id, length + 2, error];
                reply.extend(&data[..usize::from(length)]);
                reply.push(checksum(&reply[2..]));
                reply
            };
            let ping = frame(id, ServoInstruction::Ping, &[]);
            prop_assert_eq!(reply(0) == ping, error == ServoInstruction::Ping as u8);
            prop_assert!(FeetechFrames::distinct(&ping).is_some());
            let read = frame(id, ServoInstruction::Read, &[address, length]);
            match FeetechFrames::distinct(&read) {
                None => prop_assert_ne!(reply(length), read),
                Some(probe) => {
                    prop_assert_eq!(length, 2);
                    prop_assert!(FeetechFrames::distinct(&probe).is_none());
                    prop_assert_ne!(reply(1), probe);
                }
            }
        }

        #[test]
        fn never_panics_and_always_finds_the_next_reply(
            noise in proptest::collection::vec(any::<u8>(), 0..64),
            position in any::<[u8; 2]>(),
        ) {
            let mut decoder = FeetechDecoder::default();
            decoder.push(&noise);
            let mut good = vec![0xFF, 0xFF, 9, 4, 0, position[0], position[1]];
            good.push(checksum(&good[2..]));
            // Enough bytes after it that no false header can still be waiting.
            decoder.push(&good);
            decoder.push(&[0; 8]);
            let mut found = false;
            while let Some(reply) = decoder.next(2) {
                found |= reply.id == 9 && reply.parameters == position;
            }
            // Garbage whose end makes a correct frame with the reply's own bytes may hide it:
            // one header in 256 does.
            prop_assert!(found || noise.windows(2).any(|pair| pair == [0xFF, 0xFF])
                || noise.last() == Some(&0xFF));
        }

        #[test]
        fn sign_and_magnitude_round_trip(value in -2047_i32..=2047) {
            let word = to_sign_magnitude(value, 11).unwrap();
            prop_assert_eq!(from_sign_magnitude(word, 11), value);
        }
    }
}
