//! Faults of a custom controller, over `firmware-protocol`.

use std::time::Duration;

use firmware_protocol::message::{Message, NO_JOINT, SegmentAck, SegmentStatus};
use firmware_protocol::{PROTOCOL_MAJOR, schema::SCHEMA_HASH};
use steadyhand::arm::ArmFile;
use steadyhand::sim::SimulatedFault;
use steadyhand::units::Finite;

use super::case::{
    Case, Want, before, case, corrupt, from_then, noise, obstacle, once, second, starved,
};
use super::far_end::{Family, Script};

/// Each with the number of its fault.
pub(crate) fn cases() -> Vec<(u32, Case)> {
    let own = |number, done, script, want| {
        let case = case(Family::Firmware, done, script, want);
        // A drive that failed is mended; other faults leave it as it is.
        (
            number,
            case.mended(&[SimulatedFault::ErrorBits { id: 2, bits: 0 }]),
        )
    };
    let cycles = || Want::Drawn("cycles", |counts| counts.cycles);
    let late = SimulatedFault::LateReplies {
        share: 1.0,
        by: Duration::from_millis(16),
    };
    let noisy = SimulatedFault::CorruptReplies {
        share: 0.12,
        bits: 3,
    };
    let blind = |word| SimulatedFault::Position { id: 2, word };
    let mut all = setups();
    all.extend([
        (6, obstacle(Family::Firmware, &["shoulder_pan"])),
        (
            7,
            before(
                Family::Firmware,
                "it falls silent before torque is taken off",
                &[SimulatedFault::Silence(1)],
                Want::Released(0, &["torque"]),
            ),
        ),
        own(
            9,
            "an acknowledgement of another motion with every cycle",
            stale_acknowledgements(),
            cycles(),
        ),
        own(
            11,
            "its second drive fails for a moment",
            failing_for_a_moment(),
            Want::Faulted(200, second(Family::Firmware)),
        ),
        (
            5,
            case(
                Family::Firmware,
                "it falls silent",
                from_then(SimulatedFault::Silence(1)),
                Want::Faulted(200, &["controller"]),
            )
            .mended(&[SimulatedFault::Speak(1)]),
        ),
        (
            10,
            case(
                Family::Firmware,
                "a drive reports no position",
                from_then(blind(Some(0))),
                Want::Faulted(200, &["where its joints are"]),
            )
            .mended(&[blind(None)]),
        ),
        (
            14,
            before(
                Family::Firmware,
                "everything that it says comes 16 ms late",
                &[late],
                Want::Warned("`latency_timer`"),
            ),
        ),
        own(
            15,
            "300 ms pass within a cycle",
            starved(),
            Want::Faulted(400, &["machine"]),
        ),
        own(
            16,
            "three bits are flipped in 12 % of what it says",
            from_then(noisy),
            Want::Warned("between node and controller was damaged"),
        ),
        own(
            22,
            "the port's other end reads nothing",
            once(|hands| *hands.stuck = true),
            Want::Faulted(200, &["while writing", "write"]),
        ),
        (
            25,
            before(
                Family::Firmware,
                "the arm already holds",
                &[],
                Want::Untouched,
            ),
        ),
        own(
            1,
            "5 % of what it says is lost",
            from_then(SimulatedFault::DropReplies(0.05)),
            cycles(),
        ),
        own(
            2,
            "two bits are flipped in 5 % of what it says",
            from_then(SimulatedFault::CorruptReplies {
                share: 0.05,
                bits: 2,
            }),
            Want::Drawn("wrong checksums dropped", corrupt),
        ),
        own(
            5,
            "its second drive fails",
            from_then(SimulatedFault::ErrorBits { id: 2, bits: 1 }),
            Want::Faulted(200, second(Family::Firmware)),
        ),
        own(
            12,
            "the cable is pulled",
            from_then(SimulatedFault::Unplug),
            Want::Faulted(20, &["unplugged", "reset"]),
        ),
        own(
            17,
            "it restarts",
            from_then(SimulatedFault::PowerCycle(1)),
            Want::Faulted(200, &["controller restarted", "supply", "reset"]),
        ),
        own(
            20,
            "modem commands between its frames",
            noise(b"AT\r\nAT+GCAP\r\n"),
            cycles(),
        ),
    ]);
    all
}

/// Returns the cases in which something is wrong before anything moves.
fn setups() -> Vec<(u32, Case)> {
    let refused = |done, fault: &[SimulatedFault], names| {
        before(Family::Firmware, done, fault, Want::Refused(names))
    };
    let claims = |major, schema| [SimulatedFault::OtherProtocol { major, schema }];
    vec![
        (
            3,
            refused(
                "its firmware was built from other layouts",
                &claims(PROTOCOL_MAJOR, SCHEMA_HASH ^ 1),
                &["message layouts", "firmware-protocol"],
            ),
        ),
        (
            3,
            refused(
                "its firmware speaks the next version",
                &claims(PROTOCOL_MAJOR + 1, SCHEMA_HASH),
                &["speaks version", "firmware-protocol"],
            ),
        ),
        (
            21,
            refused(
                "the controller of an arm with four joints answers",
                &[],
                &["drives 4 joints", "has 5"],
            )
            .of_another_arm(four_joints),
        ),
        (
            24,
            refused(
                "it counts milliradians instead of microradians",
                &[],
                &["shoulder_pan", "range", "microradians"],
            )
            .of_another_arm(milliradians),
        ),
        (
            24,
            refused(
                "its second joint goes at half the arm's speed",
                &[],
                &["shoulder_lift", "speed limit"],
            )
            .of_another_arm(slow_joint),
        ),
    ]
}

fn four_joints(file: &mut ArmFile) {
    let gone = file.joints.pop().unwrap().name;
    let on_it = |joint: &Option<String>| joint.as_ref() == Some(&gone);
    file.capsules.retain(|capsule| !on_it(&capsule.joint));
    file.masses.retain(|mass| mass.joint != gone);
}

/// Milliradians where microradians are agreed on.
fn milliradians(file: &mut ArmFile) {
    let scaled = |of: Finite| Finite::new(of.get() / 1000.0).unwrap();
    for joint in &mut file.joints {
        joint.margin_rad = Finite::new(0.0).unwrap();
        let scales = [&mut joint.lower_rad, &mut joint.upper_rad];
        scales.into_iter().for_each(|end| *end = scaled(*end));
        joint.velocity_max_rad_s = scaled(joint.velocity_max_rad_s);
        joint.acceleration_max_rad_s2 = scaled(joint.acceleration_max_rad_s2);
    }
}

fn slow_joint(file: &mut ArmFile) {
    let joint = &mut file.joints[1];
    joint.velocity_max_rad_s = Finite::new(joint.velocity_max_rad_s.get() / 2.0).unwrap();
}

/// Says that a piece of another motion was taken, with every cycle.
fn stale_acknowledgements() -> Option<Script> {
    let ack = SegmentAck {
        epoch: u16::MAX,
        next_index: 9,
        free: 9,
        status: SegmentStatus::Accepted,
        joint: NO_JOINT,
        answers: 8,
        tail_us: 1,
    };
    noise(Message::SegmentAck(ack).encode(0).as_slice())
}

/// A drive that fails and is well again in the next cycle.
fn failing_for_a_moment() -> Option<Script> {
    Some(Box::new(|number, hands| {
        let bits = u8::from(number == 0);
        hands
            .sim
            .break_it(SimulatedFault::ErrorBits { id: 2, bits });
    }))
}
