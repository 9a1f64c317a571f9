//! Frames of Dynamixel protocol 2.0, without I/O.
//!
//! `FF FF FD 00 id length instruction parameters… crc`, length and CRC little endian. Within the
//! instruction and its parameters `FF FF FD` is followed by one more `FD`, so that no header can
//! occur inside a frame.

use crc::{CRC_16_UMTS, Crc, Table};

use crate::framing::{self, FrameFormat, FrameMatch};
use crate::wire::{BROADCAST, ServoInstruction};

/// Parameter bytes that fit into a frame, stuffed.
pub const PARAMETERS_MAX: usize = 1000;

const HEADER: [u8; 4] = [0xFF, 0xFF, 0xFD, 0x00];
const STATUS: u8 = 0x55;

/// Bytes before those that the length counts.
const PREFIX: usize = 7;

static CHECK: Crc<u16, Table<16>> = Crc::<u16, Table<16>>::new(&CRC_16_UMTS);

/// Appends a frame.
///
/// # Panics
/// With more than [`PARAMETERS_MAX`] bytes of parameters: cut, the frame would say something else.
#[expect(
    clippy::cast_possible_truncation,
    reason = "stuffed, at most 4/3 of PARAMETERS_MAX"
)]
pub(crate) fn encode(out: &mut Vec<u8>, id: u8, instruction: ServoInstruction, parameters: &[u8]) {
    let count = parameters.len();
    assert!(count <= PARAMETERS_MAX, "{count} parameters for a frame");
    let begin = out.len();
    out.extend(HEADER);
    out.extend([id, 0, 0, instruction as u8]);
    let mut run = 0;
    for byte in parameters {
        out.push(*byte);
        run = header_run(run, *byte);
        if run == 3 {
            out.push(0xFD);
            run = 0;
        }
    }
    let length = (out.len() + 2 - begin - PREFIX) as u16;
    for (slot, byte) in out.iter_mut().skip(begin + 5).zip(length.to_le_bytes()) {
        *slot = byte;
    }
    let (_, frame) = out.split_at(begin);
    let crc = CHECK.checksum(frame);
    out.extend(crc.to_le_bytes());
}

/// Returns the number of bytes of `FF FF FD` seen, after one more byte.
fn header_run(run: usize, byte: u8) -> usize {
    match (run, byte) {
        (2, 0xFD) => 3,
        (0, 0xFF) => 1,
        (1 | 2, 0xFF) => 2,
        _ => 0,
    }
}

/// Finds replies in a stream that may hold anything.
pub type DynamixelDecoder = framing::FrameDecoder<DynamixelFrames>;

/// Frame format of protocol 2.0.
#[derive(Debug)]
pub struct DynamixelFrames;

impl FrameFormat for DynamixelFrames {
    const PENDING_MAX: usize = 2048;
    /// Header, id, length, instruction, error and CRC.
    const OVERHEAD: usize = 11;

    fn match_frame(rest: &[u8], parameters_max: usize) -> FrameMatch {
        if !rest.iter().zip(HEADER).all(|(a, b)| *a == b) {
            return FrameMatch::NotHere { corrupt: false };
        }
        let [_, _, _, _, id, low, high, ..] = rest else {
            return FrameMatch::Incomplete;
        };
        let length = usize::from(u16::from_le_bytes([*low, *high]));
        // Every third byte may be followed by one that is stuffed.
        let length_max = 4 + parameters_max + parameters_max / 3 + 1;
        if *id == 0xFF || !(4..=length_max).contains(&length) {
            return FrameMatch::NotHere { corrupt: false };
        }
        let Some(frame) = rest.get(..PREFIX + length) else {
            return FrameMatch::Incomplete;
        };
        match frame.split_last_chunk::<2>() {
            Some((body, check)) if CHECK.checksum(body) == u16::from_le_bytes(*check) => {
                FrameMatch::Frame(PREFIX + length)
            }
            _ => FrameMatch::NotHere { corrupt: true },
        }
    }

    fn unpack_reply(frame: &[u8], unstuffed: &mut Vec<u8>) -> Option<(u8, u8)> {
        let [_, _, _, _, id, _, _, instruction, error, body @ .., _, _] = frame else {
            return None;
        };
        if *id == BROADCAST {
            // Servos that reply together do not know each other's bytes: nothing is stuffed.
            unstuffed.extend(body);
        } else {
            unstuff(*error, body, unstuffed);
        }
        (*instruction == STATUS).then_some((*id, *error))
    }
}

/// Appends `body` without the bytes that were stuffed into it. The error byte before it counts.
fn unstuff(error: u8, body: &[u8], out: &mut Vec<u8>) {
    let mut run = header_run(0, error);
    for byte in body {
        if run == 3 {
            run = 0;
            if *byte == 0xFD {
                continue;
            }
        }
        out.push(*byte);
        run = header_run(run, *byte);
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
        use ServoInstruction::*;
        for (encoded, expected) in [
            (frame(1, Ping, &[]), "FF FF FD 00 01 03 00 01 19 4E"),
            (
                frame(1, Read, &[132, 0, 4, 0]),
                "FF FF FD 00 01 07 00 02 84 00 04 00 1D 15",
            ),
            (
                frame(1, Write, &[116, 0, 0, 2, 0, 0]),
                "FF FF FD 00 01 09 00 03 74 00 00 02 00 00 CA 89",
            ),
            (
                frame(
                    0xFE,
                    SyncWrite,
                    &[116, 0, 4, 0, 1, 0, 8, 0, 0, 2, 0, 8, 0, 0],
                ),
                "FF FF FD 00 FE 11 00 83 74 00 04 00 01 00 08 00 00 02 00 08 00 00 68 4C",
            ),
            (
                frame(0xFE, SyncRead, &[132, 0, 4, 0, 1, 2]),
                "FF FF FD 00 FE 09 00 82 84 00 04 00 01 02 CE FA",
            ),
            (
                frame(0xFE, FastSyncRead, &[132, 0, 4, 0, 1, 2]),
                "FF FF FD 00 FE 09 00 8A 84 00 04 00 01 02 4D 72",
            ),
            (
                frame(0xFE, Write, &[64, 0, 0]),
                "FF FF FD 00 FE 06 00 03 40 00 00 2E 16",
            ),
            (
                frame(1, Write, &[98, 0, 5]),
                "FF FF FD 00 01 06 00 03 62 00 05 68 E4",
            ),
            (frame(1, Reboot, &[]), "FF FF FD 00 01 03 00 08 2F 4E"),
        ] {
            assert_eq!(encoded, hex(expected));
        }
    }

    /// Parameters that do not fit must not be cut: some servos would not receive theirs.
    #[test]
    #[should_panic = "1001 parameters for a frame"]
    fn refuses_a_frame_that_would_be_cut() {
        let _ = frame(
            BROADCAST,
            ServoInstruction::SyncWrite,
            &[0; PARAMETERS_MAX + 1],
        );
    }

    fn status(id: u8, parameters: &[u8]) -> Vec<u8> {
        // A reply is framed as an instruction with the number 55 and the error first.
        let mut out = HEADER.to_vec();
        let mut stuffed = Vec::new();
        let mut run = 0;
        for byte in std::iter::once(&0).chain(parameters) {
            stuffed.push(*byte);
            run = header_run(run, *byte);
            if run == 3 {
                stuffed.push(0xFD);
                run = 0;
            }
        }
        let length = u16::try_from(stuffed.len() + 3).unwrap();
        out.push(id);
        out.extend(length.to_le_bytes());
        out.push(STATUS);
        out.extend(stuffed);
        let crc = CHECK.checksum(&out);
        out.extend(crc.to_le_bytes());
        out
    }

    #[test]
    fn a_frame_of_negative_current_and_velocity_is_stuffed_and_read() {
        let data = [0xFF, 0xFF, 0xFD, 0xFF, 0xFF, 0xFF, 0, 8, 0, 0];
        let bytes = status(1, &data);
        assert_eq!(bytes.len(), DynamixelFrames::OVERHEAD + data.len() + 1);
        let mut decoder = DynamixelDecoder::default();
        decoder.push(&bytes);
        assert_eq!(decoder.next(10).unwrap().parameters, data);
    }

    #[test]
    fn an_echo_is_no_reply() {
        let mut decoder = DynamixelDecoder::default();
        decoder.push(&frame(1, ServoInstruction::Read, &[132, 0, 4, 0]));
        decoder.push(&status(1, &[0, 8, 0, 0]));
        assert_eq!(decoder.next(4).unwrap().parameters, [0, 8, 0, 0]);
    }

    proptest! {
        #[test]
        fn any_parameters_come_back(
            noise in proptest::collection::vec(any::<u8>(), 0..64),
            data in proptest::collection::vec(prop_oneof![Just(0xFF_u8), Just(0xFD), any::<u8>()], 1..32),
        ) {
            let mut decoder = DynamixelDecoder::default();
            decoder.push(&noise);
            decoder.push(&status(7, &data));
            decoder.push(&[0; 64]);
            let mut found = false;
            while let Some(reply) = decoder.next(data.len()) {
                found |= reply.id == 7 && reply.parameters == data;
            }
            prop_assert!(found);
        }

        #[test]
        fn one_to_three_flipped_bits_are_always_noticed(
            data in proptest::collection::vec(any::<u8>(), 10..11),
            flips in proptest::collection::btree_set(40_usize..150, 1..4),
        ) {
            let mut bytes = status(3, &data);
            for flip in &flips {
                bytes[flip / 8] ^= 1 << (flip % 8);
            }
            let mut decoder = DynamixelDecoder::default();
            decoder.push(&bytes);
            prop_assert!(decoder.next(10).is_none());
        }
    }
}
