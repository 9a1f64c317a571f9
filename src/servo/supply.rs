//! Compares servos' supplies with each other and with the one that the arm's file states.

use std::ops::RangeInclusive;

use super::servo_readout::ServoReadout;

/// Share of the supply that a servo reads at rest: without load, cables and plugs take little.
pub const SHARE_AT_REST: RangeInclusive<f64> = 0.85..=1.2;

/// Share of the supply that a servo reads while the arm moves.
pub const SHARE_UNDER_LOAD: RangeInclusive<f64> = 0.75..=1.3;

/// Supply of a servo as it was read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServoSupply {
    /// Its id.
    pub id: u8,
    /// Tells kinds of servos apart, such as by their model: only those of one kind must have the same supply.
    pub kind: u64,
    /// The supply.
    pub voltage_v: f64,
}

impl ServoSupply {
    /// Returns the supplies of servos that were read.
    pub fn of_readouts<'a>(readouts: impl Iterator<Item = &'a ServoReadout>) -> Vec<Self> {
        let supplies = readouts.filter_map(|servo| {
            Some(Self {
                id: servo.id,
                kind: servo.model.into(),
                voltage_v: servo.voltage_v?,
            })
        });
        supplies.collect()
    }
}

/// Servos whose supply is not what it should be.
#[derive(Clone, Debug, PartialEq)]
pub struct OddSupply {
    /// Their ids.
    pub ids: Vec<u8>,
    /// The supply that is furthest off.
    pub voltage_v: f64,
    /// What it should be.
    pub expected_v: f64,
    /// True if the arm's file states that; otherwise the other servos have it.
    pub is_stated: bool,
}

impl OddSupply {
    /// Returns whether it may destroy the servos.
    #[must_use]
    pub fn is_high(&self) -> bool {
        self.is_stated && self.voltage_v > self.expected_v
    }

    /// Returns what to do about it.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match (self.is_high(), self.is_stated) {
            (true, _) => SWITCH_OFF,
            (_, true) => {
                "connect the supply that these servos are made for, or correct `supply_v` in the arm's file"
            }
            (_, false) => {
                "push the plugs of these servos home, on both sides, and look for a crimp or a wire that is broken; then measure the supply there"
            }
        }
    }
}

/// What to do about a supply that may destroy servos.
pub(crate) const SWITCH_OFF: &str =
    "switch the supply off now, and connect one for these servos: their label says which";

impl std::fmt::Display for OddSupply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (servos, volts, expected) = (servo_words(&self.ids), self.voltage_v, self.expected_v);
        match self.is_stated {
            true => write!(
                f,
                "{servos}: the supply is {volts:.1} V; the arm's file states {expected:.1} V"
            ),
            false => write!(
                f,
                "{servos}: the supply is {volts:.1} V; the others have {expected:.1} V"
            ),
        }
    }
}

/// Names servos by their ids, for a sentence.
pub(crate) fn servo_words(ids: &[u8]) -> String {
    let texts: Vec<String> = ids.iter().map(u8::to_string).collect();
    let noun = if ids.len() == 1 { "servo" } else { "servos" };
    format!("{noun} {}", texts.join(", "))
}

/// Returns the servos whose supply is not a `share` of the stated one or, of those of one kind, of the middle one.
#[must_use]
pub fn odd_supplies(
    supplies: &[ServoSupply],
    stated_v: Option<f64>,
    share: &RangeInclusive<f64>,
) -> Vec<OddSupply> {
    let is_odd =
        |supply: &ServoSupply, expected_v: f64| !share.contains(&(supply.voltage_v / expected_v));
    if let Some(stated_v) = stated_v {
        let odd: Vec<ServoSupply> = supplies
            .iter()
            .copied()
            .filter(|one| is_odd(one, stated_v))
            .collect();
        return gather(&odd, stated_v, true).into_iter().collect();
    }
    let mut kinds: Vec<u64> = supplies.iter().map(|supply| supply.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let odd = kinds.iter().filter_map(|kind| {
        let same = supplies
            .iter()
            .copied()
            .filter(|supply| supply.kind == *kind);
        let same: Vec<ServoSupply> = same.collect();
        let middle_v = middle_v(&same)?;
        let odd: Vec<ServoSupply> = same
            .into_iter()
            .filter(|one| is_odd(one, middle_v))
            .collect();
        gather(&odd, middle_v, false)
    });
    odd.collect()
}

/// Returns the median supply, the higher of two.
fn middle_v(supplies: &[ServoSupply]) -> Option<f64> {
    let mut volts: Vec<f64> = supplies.iter().map(|supply| supply.voltage_v).collect();
    volts.sort_by(f64::total_cmp);
    volts
        .get(volts.len() / 2)
        .copied()
        .filter(|volts| *volts > 0.0)
}

/// Returns all of them as one.
fn gather(odd: &[ServoSupply], expected_v: f64, is_stated: bool) -> Option<OddSupply> {
    let off_v = |supply: &ServoSupply| (supply.voltage_v - expected_v).abs();
    let furthest = odd
        .iter()
        .max_by(|one, other| off_v(one).total_cmp(&off_v(other)))?;
    Some(OddSupply {
        ids: odd.iter().map(|supply| supply.id).collect(),
        voltage_v: furthest.voltage_v,
        expected_v,
        is_stated,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn odd(volts: &[(u64, f64)], stated_v: Option<f64>) -> Vec<(Vec<u8>, bool)> {
        let supplies = volts
            .iter()
            .zip(1..)
            .map(|((kind, voltage_v), id)| ServoSupply {
                id,
                kind: *kind,
                voltage_v: *voltage_v,
            });
        let supplies: Vec<ServoSupply> = supplies.collect();
        let odd = odd_supplies(&supplies, stated_v, &SHARE_AT_REST);
        odd.into_iter()
            .map(|odd| (odd.ids, odd.is_stated))
            .collect()
    }

    #[test]
    fn a_servo_with_another_supply_than_the_others_is_found() {
        let of = |volts: &[f64]| volts.iter().map(|volts| (777, *volts)).collect::<Vec<_>>();
        assert_eq!(
            odd(&of(&[12.0, 12.1, 11.9, 4.5, 12.0]), None),
            [(vec![4], false)]
        );
        assert_eq!(odd(&of(&[5.0, 5.0, 7.4]), None), [(vec![3], false)]);
        assert_eq!(odd(&of(&[12.0, 7.0]), None), [(vec![2], false)]);
        assert!(odd(&of(&[7.4, 7.2, 7.0, 6.8, 6.7]), None).is_empty());
        assert!(odd(&of(&[7.0, 7.0, 7.0]), None).is_empty());
        assert!(odd(&of(&[0.0, 0.0]), None).is_empty());
        // Servos of two kinds may have two supplies.
        assert!(
            odd(
                &[(1060, 12.0), (1060, 12.0), (1200, 5.0), (1200, 5.0)],
                None
            )
            .is_empty()
        );
    }

    #[test]
    fn a_supply_other_than_the_stated_one_is_found() {
        let all = |volts: f64| vec![(777, volts); 3];
        assert_eq!(odd(&all(7.0), Some(12.0)), [(vec![1, 2, 3], true)]);
        assert_eq!(odd(&all(12.0), Some(7.4)), [(vec![1, 2, 3], true)]);
        // Two and three cells that are full.
        assert!(odd(&all(8.4), Some(7.4)).is_empty());
        assert!(odd(&all(12.6), Some(12.0)).is_empty());
        assert_eq!(odd(&[(1, 12.0), (2, 4.5)], Some(12.0)), [(vec![2], true)]);
    }
}
