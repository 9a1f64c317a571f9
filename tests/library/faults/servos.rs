//! Faults in a servo.

use steadyhand::sim::SimulatedFault;

use super::case::{Row, Want, before, case, each, from_then, obstacle, once, second};
use super::far_end::Family;

pub(crate) fn rows() -> Vec<Row> {
    vec![
        Row::new(
            5,
            "an overload makes a servo limp, or silent",
            each(|family| {
                let bits = 32;
                let want = Want::Faulted(400, second(family));
                case(
                    family,
                    "servo 2 reports overload and lets go",
                    from_then(SimulatedFault::ErrorBits { id: 2, bits }),
                    want,
                )
                .mended(&[SimulatedFault::PowerCycle(2)])
            })
            .into_iter()
            .chain(each(|family| {
                let want = Want::Faulted(200, second(family));
                case(
                    family,
                    "servo 2 falls silent",
                    from_then(SimulatedFault::Silence(2)),
                    want,
                )
                .mended(&[SimulatedFault::Speak(2)])
            }))
            .collect(),
        ),
        Row::new(
            6,
            "an obstacle stalls a joint",
            each(|family| {
                let joint: &[&str] = match family {
                    Family::Sts => &["shoulder_pan", "feels a force equal"],
                    _ => &["waist", "behind its goal"],
                };
                obstacle(family, joint)
            }),
        ),
        Row::new(
            7,
            "one servo fails while torque is taken off",
            each(|family| {
                let servos = if family == Family::Sts { 6 } else { 9 };
                before(
                    family,
                    "servo 2 falls silent before torque is taken off",
                    &[SimulatedFault::Silence(2)],
                    Want::Released(servos - 1, second(family)),
                )
            }),
        ),
        Row::new(
            10,
            "positions that wrap, count turns or change sign",
            [0, 4095, 0x8001, 32_767]
                .into_iter()
                .flat_map(|word| {
                    each(move |family| {
                        let done = match word {
                            0 => "servo 2 reports 0",
                            4095 => "servo 2 reports 4095",
                            0x8001 => "servo 2 reports the word 8001",
                            _ => "servo 2 reports 32767",
                        };
                        let fault = SimulatedFault::Position {
                            id: 2,
                            word: Some(word),
                        };
                        case(
                            family,
                            done,
                            from_then(fault),
                            Want::Faulted(200, second(family)),
                        )
                        .mended(&[SimulatedFault::Position { id: 2, word: None }])
                    })
                })
                .collect(),
        ),
        Row::new(
            11,
            "a servo loses power for a moment",
            each(|family| {
                case(
                    family,
                    "servo 2 restarts",
                    from_then(SimulatedFault::PowerCycle(2)),
                    Want::Faulted(200, second(family)),
                )
            }),
        ),
        Row::new(
            17,
            "the controller restarts silently",
            each(|family| {
                let all = once(|hands| {
                    (1..=9).for_each(|id| hands.sim.break_it(SimulatedFault::PowerCycle(id)));
                });
                case(
                    family,
                    "every servo restarts",
                    all,
                    Want::Faulted(200, &["servo 1", "restarted"]),
                )
            }),
        ),
    ]
}
