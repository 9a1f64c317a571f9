//! Faults of the machine and its port.

use steadyhand::motion::STARVED;
use steadyhand::sim::SimulatedFault;

use super::case::{Row, Want, case, each, from_then, once, starved};

pub(crate) fn rows() -> Vec<Row> {
    vec![
        Row::new(
            12,
            "the adapter vanishes",
            each(|family| {
                case(
                    family,
                    "the cable is pulled",
                    from_then(SimulatedFault::Unplug),
                    Want::Faulted(20, &["unplugged", "reset"]),
                )
            }),
        ),
        Row::new(
            15,
            "the machine does not run the node for 300 ms",
            each(|family| {
                let want = Want::Faulted(400, &[STARVED]);
                case(family, "300 ms pass within a cycle", starved(), want)
            }),
        ),
        Row::new(
            22,
            "the port takes no more bytes",
            each(|family| {
                let stuck = once(|hands| *hands.stuck = true);
                case(
                    family,
                    "the port's other end reads nothing",
                    stuck,
                    Want::Faulted(200, &["while writing", "write"]),
                )
            }),
        ),
    ]
}
