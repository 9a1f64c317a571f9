//! Compares the schema, the numbers and the lists in `SPEC.md` with the code.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use firmware_protocol::message::*;
use firmware_protocol::schema::{SCHEMA, SCHEMA_HASH};
use firmware_protocol::{Joints, Message, device, frame, host};

const SPEC: &str = include_str!("../SPEC.md");

/// Returns the text between a heading and the next.
fn section(heading: &str) -> &'static str {
    let start = SPEC
        .find(heading)
        .unwrap_or_else(|| panic!("no section {heading}"))
        + heading.len();
    let rest = &SPEC[start..];
    &rest[..rest.find("\n#").unwrap_or(rest.len())]
}

#[test]
fn the_schema_is_printed_byte_for_byte() {
    assert!(SPEC.contains(&format!("```schema\n{SCHEMA}```")));
    assert!(SPEC.contains(&format!("**{SCHEMA_HASH:08X}**")));
}

#[test]
fn the_emergency_stop_is_printed() {
    let bytes: Vec<String> = frame::ESTOP_BYTES
        .iter()
        .map(|byte| format!("{byte:02X}"))
        .collect();
    assert!(SPEC.contains(&bytes.join(" ")));
}

/// Compares a list such as "0 Hold: … · 1 Park: …" with the values that the bytes decode to.
fn check_list(heading: &str, name: impl Fn(u8) -> Option<String>) {
    let listed: Vec<&str> = section(heading).trim().split(" · ").collect();
    for (byte, item) in (0u8..).zip(&listed) {
        let want = format!("{byte} {}", name(byte).unwrap());
        assert_eq!(item.split(':').next().unwrap(), want, "{heading}");
    }
    assert_eq!(
        name(u8::try_from(listed.len()).unwrap()),
        None,
        "{heading} is not complete"
    );
}

#[test]
fn every_list_of_values_is_complete() {
    check_list("### 5.1 Lost host", |byte| {
        LostHost::from_byte(byte).map(|value| format!("{value:?}"))
    });
    check_list("### 5.2 Mode", |byte| {
        Mode::from_byte(byte).map(|value| format!("{value:?}"))
    });
    check_list("### 5.3 Cause", |byte| {
        Cause::from_byte(byte).map(|value| format!("{value:?}"))
    });
    check_list("### 5.4 Segment status", |byte| {
        SegmentStatus::from_byte(byte).map(|value| format!("{value:?}"))
    });
    check_list("### 5.5 Command result", |byte| {
        CommandResult::from_byte(byte).map(|value| format!("{value:?}"))
    });
    check_list("### 5.6 Reset cause", |byte| {
        ResetCause::from_byte(byte).map(|value| format!("{value:?}"))
    });
}

/// Returns the number in the second column of a row of section 7, found by the row's beginning.
fn time_of(row: &str) -> u64 {
    let row = section("## 7. Time")
        .lines()
        .find(|line| line.starts_with(&format!("| {row}")))
        .unwrap();
    let cell = row.split('|').nth(2).unwrap();
    cell.split_whitespace()
        .next()
        .unwrap()
        .replace(',', "")
        .parse()
        .unwrap()
}

#[test]
fn the_numbers_match_the_code() {
    for (row, value) in [
        (
            "silence of the host (neither BEAT nor HELLO) that holds",
            device::DEADMAN_US,
        ),
        ("silence after which `lost_host`", device::LOST_HOST_US),
        ("a segment must come before", device::LEAD_US),
        ("a segment's `start` may differ", device::JOIN_US),
        ("an anchor may lie ahead", device::AHEAD_MAX_US),
        ("an anchor may differ", device::ANCHOR_URAD),
        ("shortest segment", u32::from(device::DURATION_MIN_US)),
        ("pause between two ticks", device::STALL_US),
    ] {
        assert_eq!(time_of(row), u64::from(value), "{row}");
    }
    const { assert!(host::BEAT_US <= 50_000) };
    assert_eq!(device::BEAT_US, 50_000);
}

#[test]
fn the_readme_states_the_right_length_of_a_state() {
    let state = |joints| State {
        clock_us: 0,
        boot_id: 0,
        shift_us: 0,
        nonce: 0,
        epoch: 0,
        drive_faults: 0,
        corrupt: 0,
        ignored: 0,
        mode: Mode::Idle,
        cause: Cause::None,
        flags: 0,
        free: 0,
        command: 0,
        result: CommandResult::Done,
        joints: Joints::zeroed(joints).unwrap(),
    };
    assert_eq!(Message::State(state(6)).encode(0).as_slice().len(), 113);
}
