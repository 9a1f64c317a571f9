//! Tests against frozen bytes. Vectors in `vectors.json` may be added but never edited: if this test
//! fails, the code is wrong, not the file.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use firmware_protocol::schema::{SCHEMA, SCHEMA_HASH};
use firmware_protocol::{Decoder, Message, Received, frame};
use serde_json::Value;

fn vectors() -> Vec<Value> {
    let file: Value = serde_json::from_str(include_str!("../vectors.json")).unwrap();
    assert_eq!(file["schema_hash"], format!("{SCHEMA_HASH:08x}"));
    file["vectors"].as_array().unwrap().clone()
}

fn parse_hex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

fn byte(value: &Value) -> u8 {
    u8::try_from(value.as_u64().unwrap()).unwrap()
}

/// Builds the payload of a vector from its fields.
fn payload_of(fields: &Value) -> Vec<u8> {
    let bytes = |field: &Value| {
        let value = &field["value"];
        let all = value.as_i64().unwrap_or_default().to_le_bytes();
        match field["type"].as_str().unwrap() {
            "u8" => all[..1].to_vec(),
            "u16" => all[..2].to_vec(),
            "u32" | "i32" => all[..4].to_vec(),
            "text" => value.as_str().unwrap().as_bytes().to_vec(),
            other => panic!("unknown type {other}"),
        }
    };
    fields.as_array().unwrap().iter().flat_map(bytes).collect()
}

#[test]
fn every_vector_is_encoded_and_decoded_exactly() {
    for vector in vectors() {
        let name = &vector["name"];
        let (payload, bytes) = (
            parse_hex(vector["payload"].as_str().unwrap()),
            parse_hex(vector["frame"].as_str().unwrap()),
        );
        assert_eq!(payload_of(&vector["fields"]), payload, "{name}");
        let encoded =
            frame::encode(byte(&vector["kind"]), byte(&vector["sequence"]), &payload).unwrap();
        assert_eq!(encoded.as_slice(), bytes, "{name}");
        let message = only_message(&bytes);
        assert_eq!(
            message.encode(byte(&vector["sequence"])).as_slice(),
            bytes,
            "{name}"
        );
    }
}

fn only_message(bytes: &[u8]) -> Message {
    let mut decoder = Decoder::new();
    let mut found = Vec::new();
    for &byte in bytes {
        match decoder.push(byte) {
            Received::Nothing => {}
            Received::Estop => found.push(Message::Estop),
            Received::Frame(frame) => found.push(Message::decode(&frame).unwrap()),
        }
    }
    assert_eq!(found.len(), 1);
    found[0]
}

#[test]
fn every_message_type_has_a_vector() {
    let kinds: Vec<u8> = vectors()
        .iter()
        .map(|vector| byte(&vector["kind"]))
        .collect();
    for line in SCHEMA.lines().skip(1) {
        let kind = u8::from_str_radix(&line[..2], 16).unwrap();
        assert!(kinds.contains(&kind), "{line}");
    }
}

#[test]
fn named_fields_land_where_the_types_say() {
    let find = |name: &str| {
        vectors()
            .into_iter()
            .find(|vector| vector["name"] == name)
            .unwrap()
    };
    let decode = |name: &str| only_message(&parse_hex(find(name)["frame"].as_str().unwrap()));
    let Message::State(state) = decode("state") else {
        panic!("not a state")
    };
    assert_eq!(
        (state.clock_us, state.shift_us, state.epoch, state.free),
        (1_010_000, 1_500, 258, 60)
    );
    assert_eq!((state.corrupt, state.ignored, state.command), (3, 1, 6));
    assert_eq!(state.joints.as_slice()[1].measured_urad, -784_890);
    let Message::SegmentAck(ack) = decode("segment_ack_velocity") else {
        panic!("not an acknowledgement")
    };
    assert_eq!(
        (ack.epoch, ack.next_index, ack.free, ack.joint, ack.answers),
        (259, 0, 60, 2, 44)
    );
    let Message::HelloAck(ack) = decode("hello_ack") else {
        panic!("not a hello_ack")
    };
    assert_eq!(
        (ack.boot_id, ack.epoch, ack.tick_us, ack.limits.len()),
        (0xDEAD_BEEF, 48_880, 1_000, 2)
    );
    assert_eq!(ack.limits.as_slice()[1].stop_urad_s2, 60_000_000);
}
