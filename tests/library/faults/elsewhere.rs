//! Faults of the table that no row here injects into a family: the reason, and what protects instead.

use super::case::Row;
use super::far_end::Family;

/// The reason that stands in the place of a row for a fault and some families.
pub(crate) struct Elsewhere {
    pub(crate) number: u32,
    pub(crate) families: &'static [Family],
    pub(crate) reason: &'static str,
}

const SERVOS: &[Family] = &[Family::Sts, Family::Dxl2];
const EVERY: &[Family] = &[Family::Sts, Family::Dxl2, Family::Firmware];

pub(crate) const ELSEWHERE: &[Elsewhere] = &[
    Elsewhere {
        number: 4,
        families: &[Family::Firmware],
        reason: "cannot happen: a controller has its line to itself and answers to no id; its joints are places in its messages",
    },
    Elsewhere {
        number: 8,
        families: EVERY,
        reason: "no tool takes torque off. SIGTERM brings a raised arm to its rest pose and only then ends the node; what was stopped or is not enabled is not parked, and goes on holding where it stands (`tests/node/stop.rs`: `termination_parks_the_arm`, `termination_does_not_park_what_was_stopped`; each family: `tests/node/families.rs`)",
    },
    Elsewhere {
        number: 13,
        families: &[Family::Sts],
        reason: "cannot happen: these servos have no bus watchdog. A goal is never further ahead than the leash, which bounds what a node that dies leaves behind (`tests/library/invariants/following.rs`)",
    },
    Elsewhere {
        number: 13,
        families: &[Family::Firmware],
        reason: "cannot happen: its dead-man is part of the protocol, is always armed and ends in a stand (F15; `firmware-protocol/tests/device.rs`)",
    },
    Elsewhere {
        number: 18,
        families: SERVOS,
        reason: "G-code controllers splice lines, which this node does not drive; a cycle asks and listens by turns. What a port cut because it took no more bytes (F22) is finished before anything else (`src/link/serial.rs`); where the port is opened anew instead, a servo takes the first requests, which only read, for the end of the frame, and its checksum refuses that: one of 8 bits lets 1 in 256 pass, one of 16 bits 1 in 65,536",
    },
    Elsewhere {
        number: 18,
        families: &[Family::Firmware],
        reason: "cannot happen: no more pieces of motion are under way than the controller said it has room for, and each is acknowledged (`firmware-protocol/tests/session.rs`)",
    },
    Elsewhere {
        number: 19,
        families: SERVOS,
        reason: "cannot happen: servos make no steps; speed and acceleration are capped with every goal (`tests/library/invariants.rs`)",
    },
    Elsewhere {
        number: 19,
        families: &[Family::Firmware],
        reason: "the controller names its limits when it is greeted, and one that cannot go as fast as the arm is sent is refused: the row of F24 that is too strict",
    },
    Elsewhere {
        number: 23,
        families: EVERY,
        reason: "a port that is gone is told from one that is silent, and is not read in a loop: it is asked for ever more seldom until it is back (`tests/library/bus_pty.rs`, `tests/library/stop_invariants.rs`: `invariant_16_a_node_without_its_arm_takes_no_time`)",
    },
];

/// Faults that are tested elsewhere beside the rows.
pub(crate) const ALSO: &[(u32, &str)] = &[(
    20,
    "A second program that opens the port is refused, and told which program has it (`src/link/serial.rs`, `tests/node/doctor.rs`)",
)];

/// The faults that no row here does to anybody.
pub(crate) fn rows() -> Vec<Row> {
    let row = |number, meets| Row {
        number,
        meets,
        cases: Vec::new(),
    };
    vec![
        row(8, "torque off drops a raised arm"),
        row(18, "lines are spliced where a buffer runs over"),
        row(19, "steps faster than the controller can make them"),
        row(23, "a port that reads nothing, for ever"),
    ]
}
