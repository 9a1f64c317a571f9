//! Bytes that are lost, damaged or not ours.

use std::time::Duration;

use steadyhand::sim::SimulatedFault;

use super::case::{
    Row, Want, before, case, corrupt, each, echoes, foreign, from_then, noise, retries, second,
};
use super::far_end::Family;

pub(crate) fn rows() -> Vec<Row> {
    vec![
        Row::new(
            1,
            "some replies are missing",
            each(|family| {
                let want = Want::Drawn("replies asked for again", retries);
                case(
                    family,
                    "5 % of the replies are lost",
                    from_then(SimulatedFault::DropReplies(0.05)),
                    want,
                )
            }),
        ),
        Row::new(
            2,
            "a reply is damaged",
            each(|family| {
                let fault = SimulatedFault::CorruptReplies {
                    share: 0.05,
                    bits: 2,
                };
                let want = Want::Drawn("wrong checksums dropped", corrupt);
                case(
                    family,
                    "two bits are flipped in 5 % of the replies",
                    from_then(fault),
                    want,
                )
            }),
        ),
        Row::new(
            4,
            "two servos with one id",
            each(|family| {
                let want = Want::Faulted(200, second(family));
                case(
                    family,
                    "a second servo 2 speaks over the first",
                    from_then(SimulatedFault::Duplicate(2)),
                    want,
                )
            }),
        ),
        Row::new(
            9,
            "an acknowledgement comes late",
            each(|family| {
                let bytes: &[u8] = match family {
                    Family::Sts => &[0xFF, 0xFF, 3, 2, 0, 0xFA],
                    _ => &[0xFF, 0xFF, 0xFD, 0, 3, 4, 0, 0x55, 0, 0x52, 0x8C],
                };
                let want = Want::Drawn("foreign frames dropped", foreign);
                case(
                    family,
                    "an acknowledgement of servo 3 with every cycle",
                    noise(bytes),
                    want,
                )
            }),
        ),
        Row::new(
            14,
            "an adapter that holds bytes for 16 ms",
            each(|family| {
                let late = SimulatedFault::LateReplies {
                    share: 1.0,
                    by: Duration::from_millis(16),
                };
                let want = Want::Warned("`latency_timer`");
                before(family, "every reply comes 16 ms late", &[late], want)
            }),
        ),
        Row::new(
            16,
            "interference, before the line is lost",
            each(|family| {
                let want = Want::Warned("of the replies had to be requested again");
                let fault = SimulatedFault::CorruptReplies {
                    share: 0.12,
                    bits: 3,
                };
                case(
                    family,
                    "three bits are flipped in 12 % of the replies",
                    from_then(fault),
                    want,
                )
            }),
        ),
        Row::new(
            20,
            "another program writes to the port",
            each(|family| {
                let want = Want::Drawn("cycles", |counts| counts.cycles);
                case(
                    family,
                    "modem commands between the replies",
                    noise(b"AT\r\nAT+GCAP\r\n"),
                    want,
                )
            })
            .into_iter()
            .chain(each(|family| {
                let want = Want::Drawn("echoes dropped", echoes);
                let fault = SimulatedFault::Echo(true);
                case(
                    family,
                    "the adapter returns what it is sent",
                    from_then(fault),
                    want,
                )
            }))
            .collect(),
        ),
    ]
}
