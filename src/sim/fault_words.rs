//! Reads faults as a technician writes them, such as `voltage 4 4.5`.

use std::str::FromStr;
use std::time::Duration;

use crate::SimulatedFault;

/// Faults as they are written.
pub const FAULT_WORDS: [&str; 19] = [
    "voltage ID VOLTS",
    "supply VOLTS",
    "silent ID",
    "speaks ID",
    "two-on ID",
    "loss SHARE",
    "damage SHARE",
    "late SHARE MS",
    "echo",
    "unplug",
    "plug",
    "restart ID",
    "power-off ID",
    "power-on ID",
    "error ID BITS",
    "heat ID DEGREES",
    "block JOINT DEGREES",
    "register ID ADDRESS VALUE",
    "position ID COUNT",
];

/// Number of bits that `damage` flips in a reply.
const DAMAGED_BITS: u32 = 2;

/// Highest id of a servo, and limits of what can be measured.
const ID_MAX: u8 = 252;
const VOLTS_MAX: f64 = 60.0;
const DEGREES_MAX: f64 = 400.0;
const LATE_MS_MAX: u64 = 10_000;

/// A text that is no fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultWordsError {
    text: String,
}

impl std::error::Error for FaultWordsError {}

impl std::fmt::Display for FaultWordsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (text, words) = (&self.text, FAULT_WORDS.join(", "));
        write!(f, "`{text}` is not a fault. Valid: {words}")
    }
}

impl FromStr for SimulatedFault {
    type Err = FaultWordsError;

    fn from_str(text: &str) -> Result<Self, FaultWordsError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let fault = words
            .split_first()
            .and_then(|(name, values)| of_wire(name, values).or_else(|| of_servo(name, values)));
        fault.ok_or_else(|| FaultWordsError {
            text: base::wording::cut(text, 60),
        })
    }
}

/// Reads a fault of the line or the supply.
fn of_wire(name: &str, values: &[&str]) -> Option<SimulatedFault> {
    Some(match (name, values) {
        ("loss", [share]) => SimulatedFault::DropReplies(within(share, 1.0)?),
        ("damage", [share]) => SimulatedFault::CorruptReplies {
            share: within(share, 1.0)?,
            bits: DAMAGED_BITS,
        },
        ("late", [share, ms]) => SimulatedFault::LateReplies {
            share: within(share, 1.0)?,
            by: Duration::from_millis(ms.parse().ok().filter(|ms| *ms <= LATE_MS_MAX)?),
        },
        ("echo", []) => SimulatedFault::Echo(true),
        ("unplug", []) => SimulatedFault::Unplug,
        ("plug", []) => SimulatedFault::Plug,
        ("supply", [volts]) => SimulatedFault::SupplyV(within(volts, VOLTS_MAX)?),
        _ => return None,
    })
}

/// Reads a fault of one servo or joint.
fn of_servo(name: &str, values: &[&str]) -> Option<SimulatedFault> {
    let (first, values) = values.split_first()?;
    if name == "block" {
        return block(first, values);
    }
    let id = first.parse().ok().filter(|id| *id <= ID_MAX)?;
    Some(match (name, values) {
        ("voltage", [volts]) => SimulatedFault::ServoSupplyV {
            id,
            volts: Some(within(volts, VOLTS_MAX)?),
        },
        ("voltage", []) => SimulatedFault::ServoSupplyV { id, volts: None },
        ("silent", []) => SimulatedFault::Silence(id),
        ("speaks", []) => SimulatedFault::Speak(id),
        ("two-on", []) => SimulatedFault::Duplicate(id),
        ("restart", []) => SimulatedFault::PowerCycle(id),
        ("power-off", []) => SimulatedFault::PowerOff(id),
        ("power-on", []) => SimulatedFault::PowerOn(id),
        ("error", [bits]) => SimulatedFault::ErrorBits {
            id,
            bits: bits.parse().ok()?,
        },
        ("heat", [degrees]) => SimulatedFault::Heat {
            id,
            temperature_c: within(degrees, DEGREES_MAX)?,
        },
        ("register", [address, value]) => SimulatedFault::Register {
            id,
            address: address.parse().ok()?,
            value: value.parse().ok()?,
        },
        ("position", [count]) => SimulatedFault::Position {
            id,
            word: Some(count.parse().ok()?),
        },
        ("position", []) => SimulatedFault::Position { id, word: None },
        _ => return None,
    })
}

/// Reads what a joint cannot pass, or that nothing is in its way any more. Joints count from 1.
fn block(joint: &str, values: &[&str]) -> Option<SimulatedFault> {
    let joint = joint.parse::<usize>().ok()?.checked_sub(1)?;
    let at_rad = match values {
        [] => None,
        [degrees] => {
            let degrees: f64 = degrees.parse().ok()?;
            Some((degrees.abs() <= DEGREES_MAX).then(|| degrees.to_radians())?)
        }
        _ => return None,
    };
    Some(SimulatedFault::Block { joint, at_rad })
}

/// Reads a number from 0 to `most`.
fn within(text: &str, most: f64) -> Option<f64> {
    let number: f64 = text.parse().ok()?;
    (0.0..=most).contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_read_as_they_are_written() {
        for (text, fault) in [
            (
                "voltage 4 4.5",
                SimulatedFault::ServoSupplyV {
                    id: 4,
                    volts: Some(4.5),
                },
            ),
            (
                "voltage 4",
                SimulatedFault::ServoSupplyV { id: 4, volts: None },
            ),
            (" silent  3 ", SimulatedFault::Silence(3)),
            ("two-on 2", SimulatedFault::Duplicate(2)),
            ("loss 0.2", SimulatedFault::DropReplies(0.2)),
            ("error 2 32", SimulatedFault::ErrorBits { id: 2, bits: 32 }),
            (
                "block 1",
                SimulatedFault::Block {
                    joint: 0,
                    at_rad: None,
                },
            ),
        ] {
            assert_eq!(text.parse(), Ok(fault), "{text}");
        }
        for text in [
            "",
            "silent",
            "silent x",
            "silent 253",
            "silent 3 4",
            "loss 2",
            "loss NaN",
            "loss -1",
            "voltage 4 inf",
            "late 1",
            "block 0 5",
            "error 2 256",
            "nonsense 1",
        ] {
            assert!(text.parse::<SimulatedFault>().is_err(), "{text}");
        }
    }

    #[test]
    fn every_fault_that_is_offered_is_read() {
        for words in FAULT_WORDS {
            let mut words = words.split(' ');
            let name = words.next().unwrap_or_default();
            let values = vec!["1"; words.count()].join(" ");
            let text = format!("{name} {values}");
            assert!(text.parse::<SimulatedFault>().is_ok(), "{text}");
        }
    }
}
