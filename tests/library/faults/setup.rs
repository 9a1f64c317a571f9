//! Faults that are there before anything moves.

use super::case::{Row, Want, before, case, each, from_then, poke};
use super::far_end::Family;

pub(crate) fn rows() -> Vec<Row> {
    vec![
        Row::new(
            3,
            "a servo of another voltage or model",
            vec![
                before(
                    Family::Sts,
                    "servo 4 is another model",
                    &[poke(4, 3, 8)],
                    Want::Refused(&["servo 4 (wrist_flex)", "model is 776"]),
                ),
                before(
                    Family::Sts,
                    "servo 4 has other firmware than the rest",
                    &[poke(4, 1, 9)],
                    Want::Refused(&["servo 4 (wrist_flex)", "firmware is 3.9"]),
                ),
                before(
                    Family::Dxl2,
                    "servo 4 is another model",
                    &[poke(4, 0, 1)],
                    Want::Refused(&["servo 4 (elbow)", "model"]),
                ),
                before(
                    Family::Sts,
                    "servo 4 is made for a lower supply",
                    &[poke(4, 14, 70)],
                    Want::Refused(&["servo 4 (wrist_flex)", "voltage"]),
                ),
                before(
                    Family::Dxl2,
                    "servo 4 is made for a lower supply",
                    &[poke(4, 32, 84)],
                    Want::Refused(&["servo 4 (elbow)", "voltage"]),
                ),
            ],
        ),
        Row::new(
            13,
            "a bus watchdog trips, or a servo is in extended mode",
            vec![
                before(
                    Family::Dxl2,
                    "servo 2 is in extended position mode",
                    &[poke(2, 11, 4)],
                    Want::Refused(&["servo 2 (shoulder)", "operating mode (register 11) is 4"]),
                ),
                case(
                    Family::Dxl2,
                    "the watchdog of servo 2 trips",
                    from_then(poke(2, 98, 0xFF)),
                    Want::Faulted(400, &["servo 2 (shoulder)", "watchdog"]),
                ),
            ],
        ),
        Row::new(
            21,
            "ports are renumbered, arms are swapped",
            vec![
                before(
                    Family::Sts,
                    "servos with other registers answer",
                    &[poke(1, 3, 24), poke(1, 4, 4)],
                    Want::Refused(&["servo 1 (shoulder_pan)", "model"]),
                ),
                before(
                    Family::Dxl2,
                    "servos with other registers answer",
                    &[poke(1, 0, 9), poke(1, 1, 3)],
                    Want::Refused(&["servo 1 (waist)", "model"]),
                ),
            ],
        ),
        Row::new(
            24,
            "servos that count differently",
            vec![
                before(
                    Family::Sts,
                    "servo 2 is of the SCS series",
                    &[poke(2, 3, 5), poke(2, 4, 5)],
                    Want::Refused(&["servo 2 (shoulder_lift)", "(STS3215)"]),
                ),
                before(
                    Family::Dxl2,
                    "servo 2 is an AX-12",
                    &[poke(2, 0, 12), poke(2, 1, 0)],
                    Want::Refused(&["servo 2 (shoulder)", "model is 12"]),
                ),
            ],
        ),
        Row::new(
            25,
            "attaching to an energised arm drops it",
            each(|family| before(family, "the arm already holds", &[], Want::Untouched)),
        ),
    ]
}
