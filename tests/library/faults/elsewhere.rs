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
        reason: "cannot happen: a controller has its own line and no id; its joints are places in its messages",
    },
    Elsewhere {
        number: 8,
        families: EVERY,
        reason: "no tool takes torque off. On SIGTERM a raised arm goes to rest before the node ends. An arm that was stopped or is not enabled holds where it is (`tests/node/stop.rs`: `termination_parks_the_arm`, `termination_does_not_park_what_was_stopped`; each family: `tests/node/families.rs`)",
    },
    Elsewhere {
        number: 13,
        families: &[Family::Sts],
        reason: "cannot happen: these servos have no bus watchdog; a goal is never far ahead (`tests/library/invariants/following.rs`)",
    },
    Elsewhere {
        number: 13,
        families: &[Family::Firmware],
        reason: "cannot happen: the protocol's own watchdog is always on and brings the arm to a stand (F15; `firmware-protocol/tests/device.rs`)",
    },
    Elsewhere {
        number: 18,
        families: SERVOS,
        reason: "only G-code controllers splice lines, and this node drives none. A frame that a full port cut off (F22) is finished first (`src/link/serial.rs`)",
    },
    Elsewhere {
        number: 18,
        families: &[Family::Firmware],
        reason: "cannot happen: each piece of motion is acknowledged, and no more are sent than have room (`firmware-protocol/tests/session.rs`)",
    },
    Elsewhere {
        number: 19,
        families: SERVOS,
        reason: "cannot happen: servos make no steps; speed and acceleration are capped with every goal (`tests/library/invariants.rs`)",
    },
    Elsewhere {
        number: 19,
        families: &[Family::Firmware],
        reason: "a controller that is slower than the arm is refused: see \"too strict\" in F24",
    },
    Elsewhere {
        number: 23,
        families: EVERY,
        reason: "a missing port is not taken for a silent one. It is not read in a loop, but tried ever less often until it is back (`tests/library/bus_pty.rs`, `tests/library/stop_invariants.rs`: `invariant_16_a_node_without_its_arm_takes_no_time`)",
    },
];

/// Faults that are tested elsewhere beside the rows.
pub(crate) const ALSO: &[(u32, &str)] = &[(
    20,
    "A second program that opens the port is refused, with the name of the one that has it (`src/link/serial.rs`, `tests/node/doctor.rs`)",
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
        row(23, "a port that stays silent"),
    ]
}
