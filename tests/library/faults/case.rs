//! The faults that are injected into an arm, their expected outcomes, and the wording of the rows.

use std::time::Duration;

use steadyhand::arm::ArmFile;
use steadyhand::driver::BusCounts;
use steadyhand::sim::SimulatedFault;

use super::far_end::{Family, Hands, Script};

/// A fault of the table.
pub(crate) struct Row {
    /// As the table numbers it.
    pub(crate) number: u32,
    /// The fault as users meet it.
    pub(crate) meets: &'static str,
    pub(crate) cases: Vec<Case>,
}

impl Row {
    pub(crate) const fn new(number: u32, meets: &'static str, cases: Vec<Case>) -> Self {
        Self {
            number,
            meets,
            cases,
        }
    }
}

/// A fault as it is done to one family.
pub(crate) struct Case {
    pub(crate) family: Family,
    /// Description of the injected fault.
    pub(crate) done: &'static str,
    /// Before the port is opened.
    pub(crate) before: Vec<SimulatedFault>,
    /// In the middle of the stroke.
    pub(crate) during: Option<Script>,
    /// Takes the fault away again.
    pub(crate) mend: Vec<SimulatedFault>,
    pub(crate) want: Want,
    /// True if the lines are so long that a joint that stays behind is far behind.
    pub(crate) long: bool,
    /// The change that makes the arm at the far end another than the scene says.
    pub(crate) other: Option<fn(&mut ArmFile)>,
}

/// The outcome that must come of it.
pub(crate) enum Want {
    /// The stroke is drawn, and the bus counted this.
    Drawn(&'static str, fn(&BusCounts) -> u64),
    /// The stroke is drawn, and a warning says this.
    Warned(&'static str),
    /// A fault within so many milliseconds, whose message contains all of these.
    Faulted(u64, &'static [&'static str]),
    /// Refused before anything moves, with a message that contains all of these.
    Refused(&'static [&'static str]),
    /// Torque is taken off an arm at rest: of so many servos it is off, and these are named.
    Released(usize, &'static [&'static str]),
    /// Torque and place of an arm that is found energised stay as they are.
    Untouched,
}

/// Family, what was done, what came of it.
pub(crate) type Done = (Family, &'static str, Found);

/// The outcome that came of it, for the page.
pub(crate) struct Found {
    pub(crate) short: String,
    pub(crate) message: Option<String>,
}

pub(crate) fn once(mut what: impl FnMut(&mut Hands<'_>) + Send + 'static) -> Option<Script> {
    Some(Box::new(move |number, hands| {
        if number == 0 {
            what(hands);
        }
    }))
}

/// The fault from the middle of the stroke on.
pub(crate) fn from_then(fault: SimulatedFault) -> Option<Script> {
    once(move |hands| hands.sim.break_it(fault.clone()))
}

pub(crate) fn case(family: Family, done: &'static str, during: Option<Script>, want: Want) -> Case {
    Case {
        family,
        done,
        before: Vec::new(),
        during,
        mend: Vec::new(),
        want,
        long: false,
        other: None,
    }
}

pub(crate) fn before(
    family: Family,
    done: &'static str,
    fault: &[SimulatedFault],
    want: Want,
) -> Case {
    Case {
        before: fault.to_vec(),
        ..case(family, done, None, want)
    }
}

impl Case {
    pub(crate) fn mended(mut self, by: &[SimulatedFault]) -> Self {
        self.mend = by.to_vec();
        self
    }

    pub(crate) fn long(self) -> Self {
        Self { long: true, ..self }
    }

    pub(crate) fn of_another_arm(self, other: fn(&mut ArmFile)) -> Self {
        let other = Some(other);
        Self { other, ..self }
    }
}

pub(crate) fn each(of: impl Fn(Family) -> Case) -> Vec<Case> {
    Family::ALL.into_iter().map(of).collect()
}

pub(crate) fn retries(counts: &BusCounts) -> u64 {
    counts.servos.iter().map(|servo| servo.retries).sum()
}

pub(crate) fn corrupt(counts: &BusCounts) -> u64 {
    counts.corrupt
}

pub(crate) fn foreign(counts: &BusCounts) -> u64 {
    counts.foreign
}

pub(crate) fn echoes(counts: &BusCounts) -> u64 {
    counts.echoes
}

pub(crate) fn poke(id: u8, address: u16, value: u8) -> SimulatedFault {
    SimulatedFault::Register { id, address, value }
}

/// Three degrees are gone through in a second and a half; 300 ms of that are stalled.
pub(crate) fn obstacle(family: Family, names: &'static [&'static str]) -> Case {
    let case = case(
        family,
        "the first joint cannot pass where it is",
        block_where_it_goes(),
        Want::Faulted(1500, names),
    );
    let gone = SimulatedFault::Block {
        joint: 0,
        at_rad: None,
    };
    case.mended(&[gone]).long()
}

/// An obstacle right before the first joint, on the side to which it turns.
pub(crate) fn block_where_it_goes() -> Option<Script> {
    let mut before = None;
    Some(Box::new(move |number, hands| {
        let Some(now) = hands.sim.true_joints().first().copied() else {
            return;
        };
        let from: f64 = *before.get_or_insert(now);
        if number == 10 {
            let at_rad = Some(now + 1e-4_f64.copysign(now - from));
            hands
                .sim
                .break_it(SimulatedFault::Block { joint: 0, at_rad });
        }
    }))
}

/// Noise of the same bytes with every frame.
pub(crate) fn noise(bytes: &[u8]) -> Option<Script> {
    let bytes = bytes.to_vec();
    Some(Box::new(move |_, hands| {
        hands.sim.break_it(SimulatedFault::Noise(bytes.clone()));
    }))
}

/// The second joint's servo, by name.
pub(crate) fn second(family: Family) -> &'static [&'static str] {
    match family {
        Family::Sts => &["servo 2 (shoulder_lift)"],
        Family::Dxl2 => &["servo 2 (shoulder)"],
        Family::Firmware => &["shoulder_lift"],
    }
}

/// The machine does not run the node for a while.
pub(crate) fn starved() -> Option<Script> {
    once(|hands| {
        let later = hands.clock.now().after(Duration::from_millis(300));
        hands.clock.jump_to(later);
    })
}
