//! Tests of the public codec: frozen bytes, identity, corruption, garbage.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "tests"
)]

use firmware_protocol::frame::{self, ESTOP_BYTES, PAYLOAD_MAX};
use firmware_protocol::message::*;
use firmware_protocol::{Decoder, Frame, FrameBytes, Joints, Message, MessageError, Received};
use proptest::prelude::*;

/// Returns everything that a decoder finds in `bytes`, as owned values.
fn receive(decoder: &mut Decoder, bytes: &[u8]) -> Vec<(u8, u8, Vec<u8>)> {
    let mut frames = Vec::new();
    for &byte in bytes {
        match decoder.push(byte) {
            Received::Nothing => {}
            Received::Estop => frames.push((kind::ESTOP, 0, Vec::new())),
            Received::Frame(Frame {
                kind,
                sequence,
                payload,
                ..
            }) => frames.push((kind, sequence, payload.to_vec())),
        }
    }
    frames
}

/// Decodes every message in `bytes`.
fn decode_all(bytes: &[u8]) -> Vec<Result<Message, MessageError>> {
    let mut decoder = Decoder::new();
    let mut found = Vec::new();
    for &byte in bytes {
        match decoder.push(byte) {
            Received::Nothing => {}
            Received::Estop => found.push(Ok(Message::Estop)),
            Received::Frame(frame) => found.push(Message::decode(&frame)),
        }
    }
    found
}

fn six_joint_segment() -> Segment {
    let end = Joints::from_slice(
        &[Knot {
            position_urad: 250_000,
            velocity_urad_s: -1_000,
        }; 6],
    )
    .unwrap();
    Segment {
        epoch: 1,
        index: 0,
        start_us: 120_000,
        duration_us: 20_000,
        end,
    }
}

#[test]
fn published_bytes_are_reproduced() {
    let hello = Message::Hello(Hello {
        major: 1,
        minor: 0,
        lost_host: LostHost::Hold,
    });
    let cases: [(FrameBytes, &[u8]); 3] = [
        (
            hello.encode(0),
            &[
                0x00, 0x02, 0x40, 0x02, 0x01, 0x01, 0x01, 0x05, 0xD9, 0x8D, 0x6B, 0x84, 0x00,
            ],
        ),
        (
            Message::Beat(100_000).encode(1),
            &[
                0x00, 0x06, 0x41, 0x01, 0xA0, 0x86, 0x01, 0x05, 0x43, 0xE7, 0xBE, 0x42, 0x00,
            ],
        ),
        (Message::Estop.encode(0), &ESTOP_BYTES),
    ];
    for (frame, want) in cases {
        assert_eq!(frame.as_slice(), want);
        assert_eq!(decode_all(want).len(), 1);
    }
}

#[test]
fn a_segment_of_six_joints_takes_67_bytes() {
    assert_eq!(
        Message::Segment(six_joint_segment())
            .encode(0)
            .as_slice()
            .len(),
        67
    );
}

#[test]
fn distinguishes_unknown_types_and_versions_from_malformed_payloads() {
    let unknown = frame::encode(0x1E, 3, &[1, 2]).unwrap();
    assert_eq!(
        decode_all(unknown.as_slice()),
        [Err(MessageError::UnknownKind(0x1E))]
    );
    let short = frame::encode(kind::BEAT, 3, &[1, 2]).unwrap();
    assert_eq!(
        decode_all(short.as_slice()),
        [Err(MessageError::Malformed(kind::BEAT))]
    );
    let long = frame::encode(kind::HOLD, 3, &[1]).unwrap();
    assert_eq!(
        decode_all(long.as_slice()),
        [Err(MessageError::Malformed(kind::HOLD))]
    );
    let other = Frame {
        version: 2,
        kind: kind::HOLD,
        sequence: 0,
        payload: &[],
    };
    assert_eq!(Message::decode(&other), Err(MessageError::Version(2)));
}

#[test]
fn idle_zeros_and_a_shared_delimiter_are_harmless() {
    let beat = Message::Beat(7).encode(9);
    let bytes = [
        &[0, 0, 0][..],
        beat.as_slice(),
        &beat.as_slice()[1..],
        &[0, 0],
    ]
    .concat();
    let mut decoder = Decoder::new();
    assert_eq!(receive(&mut decoder, &bytes).len(), 2);
    assert_eq!(decoder.counters().corrupt, 0);
}

#[test]
fn detects_every_flip_of_one_or_two_bits_in_the_published_frames() {
    for frame in [Message::Beat(100_000).encode(1), Message::Estop.encode(0)] {
        let bits = frame.as_slice().len() * 8;
        for first in 0..bits {
            for second in first..bits {
                let mut flips = vec![first];
                if second != first {
                    flips.push(second);
                }
                assert_detected(frame.as_slice(), &flips);
            }
        }
    }
}

fn assert_detected(sent: &[u8], flips: &[usize]) {
    let mut bytes = sent.to_vec();
    for bit in flips {
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
    // A delimiter on either side separates the frame from its surroundings.
    let framed = [&[0][..], &bytes, &[0]].concat();
    let got = receive(&mut Decoder::new(), &framed);
    let original = receive(&mut Decoder::new(), sent);
    assert!(
        got.is_empty() || (got == original && is_intact(&framed, sent)),
        "{flips:?} made {got:?}"
    );
}

/// Returns whether the frame is intact after all: a flipped outer delimiter can leave its inside unchanged.
fn is_intact(framed: &[u8], sent: &[u8]) -> bool {
    framed.windows(sent.len()).any(|window| window == sent)
}

fn any_knots() -> impl Strategy<Value = Joints<Knot>> {
    prop::collection::vec((any::<i32>(), any::<i32>()), 1..=8).prop_map(|knots| {
        let knots: Vec<Knot> = knots
            .into_iter()
            .map(|(position_urad, velocity_urad_s)| Knot {
                position_urad,
                velocity_urad_s,
            })
            .collect();
        Joints::from_slice(&knots).unwrap()
    })
}

fn any_segment() -> impl Strategy<Value = Segment> {
    (
        any::<u16>(),
        any::<u16>(),
        any::<u32>(),
        any::<u16>(),
        any_knots(),
    )
        .prop_map(|(epoch, index, start_us, duration_us, end)| Segment {
            epoch,
            index,
            start_us,
            duration_us,
            end,
        })
}

fn any_hello_ack() -> impl Strategy<Value = HelloAck> {
    let limits = prop::collection::vec(
        (
            any::<i32>(),
            any::<i32>(),
            any::<u32>(),
            any::<u32>(),
            any::<u32>(),
        ),
        1..=8,
    );
    (
        any::<[u8; 3]>(),
        any::<[u32; 2]>(),
        any::<[u16; 2]>(),
        0u8..=5,
        any::<[u8; 12]>(),
        limits,
    )
        .prop_map(
            |(
                [major, minor, queue_depth],
                [schema, boot_id],
                [epoch, tick_us],
                reset,
                firmware,
                limits,
            )| {
                let limits: Vec<JointLimits> = limits
                    .into_iter()
                    .map(|(min, max, velocity, acceleration, stop)| JointLimits {
                        position_min_urad: min,
                        position_max_urad: max,
                        velocity_max_urad_s: velocity,
                        acceleration_max_urad_s2: acceleration,
                        stop_urad_s2: stop,
                    })
                    .collect();
                let reset_cause = ResetCause::from_byte(reset).unwrap();
                let limits = Joints::from_slice(&limits).unwrap();
                HelloAck {
                    major,
                    minor,
                    queue_depth,
                    schema,
                    boot_id,
                    epoch,
                    reset_cause,
                    tick_us,
                    firmware,
                    limits,
                }
            },
        )
}

fn any_state() -> impl Strategy<Value = State> {
    let joints = prop::collection::vec(any::<[i32; 3]>(), 1..=8);
    (
        any::<[u32; 4]>(),
        any::<[u16; 4]>(),
        0u8..=9,
        0u8..=11,
        any::<[u8; 3]>(),
        0u8..=6,
        joints,
    )
        .prop_map(
            |(words, halves, mode, cause, [flags, free, command], result, joints)| {
                let joints: Vec<JointState> = joints
                    .into_iter()
                    .map(
                        |[commanded_urad, measured_urad, velocity_urad_s]| JointState {
                            commanded_urad,
                            measured_urad,
                            velocity_urad_s,
                        },
                    )
                    .collect();
                State {
                    clock_us: words[0],
                    boot_id: words[1],
                    shift_us: words[2],
                    nonce: words[3],
                    epoch: halves[0],
                    drive_faults: halves[1],
                    corrupt: halves[2],
                    ignored: halves[3],
                    mode: Mode::from_byte(mode).unwrap(),
                    cause: Cause::from_byte(cause).unwrap(),
                    flags,
                    free,
                    command,
                    result: CommandResult::from_byte(result).unwrap(),
                    joints: Joints::from_slice(&joints).unwrap(),
                }
            },
        )
}

fn any_message() -> impl Strategy<Value = Message> {
    prop_oneof![
        (any::<u8>(), any::<u8>(), 0u8..3).prop_map(|(major, minor, lost)| {
            Message::Hello(Hello {
                major,
                minor,
                lost_host: LostHost::from_byte(lost).unwrap(),
            })
        }),
        any::<u32>().prop_map(Message::Beat),
        any::<u32>().prop_map(Message::TimeReq),
        any_segment().prop_map(Message::Segment),
        prop::sample::select(vec![
            Message::Hold,
            Message::Resume,
            Message::Flush,
            Message::Park,
            Message::Estop
        ]),
        any::<u32>().prop_map(Message::ClearFault),
        any::<bool>().prop_map(Message::Torque),
        any_hello_ack().prop_map(Message::HelloAck),
        any::<[u32; 3]>().prop_map(|[token, received_us, sent_us]| Message::TimeResp(TimeResp {
            token,
            received_us,
            sent_us
        })),
        (any::<[u16; 2]>(), any::<[u8; 3]>(), 0u8..=12, any::<u32>()).prop_map(
            |([epoch, next_index], [free, joint, answers], status, tail_us)| {
                let status = SegmentStatus::from_byte(status).unwrap();
                Message::SegmentAck(SegmentAck {
                    epoch,
                    next_index,
                    free,
                    status,
                    joint,
                    answers,
                    tail_us,
                })
            }
        ),
        any_state().prop_map(Message::State),
        (0u8..3, prop::collection::vec(any::<u8>(), 0..=LOG_TEXT_MAX)).prop_map(|(level, text)| {
            Message::Log(Log::new(LogLevel::from_byte(level).unwrap(), &text))
        }),
    ]
}

proptest! {
    #[test]
    fn decoding_returns_the_encoded_message(message in any_message(), sequence: u8) {
        let bytes = message.encode(if message == Message::Estop { 0 } else { sequence });
        prop_assert_eq!(decode_all(bytes.as_slice()), [Ok(message)]);
    }

    #[test]
    fn flips_of_up_to_three_bits_are_detected(message in any_message(), flips in prop::collection::btree_set(any::<usize>(), 1..=3)) {
        let bytes = message.encode(0);
        let bits = bytes.as_slice().len() * 8;
        let mut flips: Vec<usize> = flips.into_iter().map(|bit| bit % bits).collect();
        flips.sort_unstable();
        flips.dedup();
        assert_detected(bytes.as_slice(), &flips);
    }

    #[test]
    fn garbage_costs_no_frame_after_it(garbage in prop::collection::vec(any::<u8>(), 0..=64), message in any_message()) {
        let bytes = [&garbage, message.encode(5).as_slice()].concat();
        prop_assert_eq!(decode_all(&bytes).last().cloned(), Some(Ok(message)));
    }

    #[test]
    fn noise_neither_panics_nor_makes_frames(noise in prop::collection::vec(any::<u8>(), 0..4096)) {
        let mut decoder = Decoder::new();
        prop_assert_eq!(receive(&mut decoder, &noise).len(), 0);
        prop_assert!(decoder.counters().corrupt as usize <= noise.len());
    }

    #[test]
    fn payloads_of_any_shape_decode_or_are_refused(kind in 0u8..64, payload in prop::collection::vec(any::<u8>(), 0..=PAYLOAD_MAX)) {
        let bytes = frame::encode(kind, 1, &payload).unwrap();
        for message in decode_all(bytes.as_slice()).into_iter().flatten() {
            let again = message.encode(1);
            prop_assert_eq!(again.as_slice(), bytes.as_slice());
        }
    }

    #[test]
    fn an_emergency_stop_is_recognised_after_any_bytes(before in prop::collection::vec(any::<u8>(), 0..300)) {
        let bytes = [&before[..], &ESTOP_BYTES].concat();
        prop_assert_eq!(decode_all(&bytes).last().cloned(), Some(Ok(Message::Estop)));
    }

    #[test]
    fn taking_bytes_in_pieces_equals_pushing_single_bytes(
        parts in prop::collection::vec(
            prop_oneof![
                prop::collection::vec(any::<u8>(), 0..300),
                prop::collection::vec(prop_oneof![Just(0u8), Just(2), Just(0x7F), Just(5)], 0..12),
                Just(ESTOP_BYTES.to_vec()),
                any_message().prop_map(|message| message.encode(3).as_slice().to_vec()),
                prop::collection::vec(1u8.., 0..300),
            ],
            0..8,
        ),
        cuts in prop::collection::vec(1usize..80, 1..6),
    ) {
        let bytes = parts.concat();
        let mut single = Decoder::new();
        let want = receive(&mut single, &bytes);
        let mut pieces = Decoder::new();
        let mut found = Vec::new();
        let (mut at, mut piece) = (0, 0);
        while at < bytes.len() {
            let end = (at + cuts[piece % cuts.len()]).min(bytes.len());
            let mut rest = &bytes[at..end];
            while !rest.is_empty() {
                match pieces.take(&mut rest) {
                    Received::Nothing => {}
                    Received::Estop => found.push((kind::ESTOP, 0, Vec::new())),
                    Received::Frame(frame) => {
                        found.push((frame.kind, frame.sequence, frame.payload.to_vec()));
                    }
                }
            }
            (at, piece) = (end, piece + 1);
        }
        prop_assert_eq!(found, want);
        prop_assert_eq!(pieces.counters(), single.counters());
    }
}
