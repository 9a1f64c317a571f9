//! Compares servos' supplies with each other and with the one that the arm's file states.

use std::ops::RangeInclusive;

use super::servo_readout::ServoReadout;

/// Share of the supply that a servo reads at rest: without load, cables and plugs take little.
pub const SHARE_AT_REST: RangeInclusive<f64> = 0.85..=1.2;

/// Share of the supply that a servo reads while the arm moves.
pub const SHARE_UNDER_LOAD: RangeInclusive<f64> = 0.75..=1.3;

/// Share of the highest supply that a servo is set for, at or below which it has another one than it is made for: those for
/// 12 V are set for 14 V, those for 7.4 V, which run at 5 V too, for 8 V.
const WEAK_SHARE: f64 = 0.5;

/// Supply of a servo as it was read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServoSupply {
    /// Its id.
    pub id: u8,
    /// Tells kinds of servos apart, such as by their model: only those of one kind must have the same supply.
    pub kind: u64,
    /// The supply.
    pub voltage_v: f64,
    /// Highest supply that it is set for, where that is known.
    pub voltage_max_v: Option<f64>,
}

impl ServoSupply {
    /// Returns whether it is so low that another supply is likely meant.
    fn is_weak(&self) -> bool {
        let weak_v = |max_v: f64| max_v * WEAK_SHARE;
        self.voltage_max_v
            .is_some_and(|max_v| self.voltage_v <= weak_v(max_v))
    }

    /// Returns the supplies of servos that were read.
    pub fn of_readouts<'a>(readouts: impl Iterator<Item = &'a ServoReadout>) -> Vec<Self> {
        let supplies = readouts.filter_map(|servo| {
            Some(Self {
                id: servo.id,
                kind: servo.model.into(),
                voltage_v: servo.voltage_v?,
                voltage_max_v: servo.voltage_max_v,
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
    /// Source of that.
    pub source: SupplySource,
}

/// Source of what a supply should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SupplySource {
    /// The arm's file states it.
    ArmFile,
    /// The other servos have it.
    OtherServos,
    /// It is the highest one that the servos are set for.
    ServoMaximum,
}

impl OddSupply {
    /// Returns whether it may destroy the servos.
    #[must_use]
    pub fn is_high(&self) -> bool {
        self.source == SupplySource::ArmFile && self.voltage_v > self.expected_v
    }

    /// Returns what to do about it.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self.source {
            SupplySource::ArmFile if self.is_high() => SWITCH_OFF,
            SupplySource::ArmFile => {
                "connect the supply that these servos are made for, or correct `supply_v` in the arm's file"
            }
            SupplySource::ServoMaximum => {
                "connect the supply that the servos' label names. If it is already connected, write `supply_v` into the arm's file"
            }
            SupplySource::OtherServos => {
                "push both plugs of these servos in fully, check for a broken crimp or wire, then measure the voltage there"
            }
        }
    }
}

/// What to do about a supply that may destroy servos.
pub(crate) const SWITCH_OFF: &str =
    "switch the supply off now, then connect the right one for these servos (see their label)";

impl std::fmt::Display for OddSupply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (servos, volts, expected) = (servo_words(&self.ids), self.voltage_v, self.expected_v);
        write!(f, "{servos}: the supply is {volts:.1} V; ")?;
        match self.source {
            SupplySource::ArmFile => write!(f, "the arm's file has {expected:.1} V"),
            SupplySource::OtherServos => write!(f, "the others have {expected:.1} V"),
            SupplySource::ServoMaximum => {
                write!(
                    f,
                    "the servos allow up to {expected:.1} V, so this is half or less"
                )
            }
        }
    }
}

/// Names servos by their ids, for a sentence.
pub(crate) fn servo_words(ids: &[u8]) -> String {
    let texts: Vec<String> = ids.iter().map(u8::to_string).collect();
    let noun = if ids.len() == 1 { "servo" } else { "servos" };
    format!("{noun} {}", texts.join(", "))
}

/// Returns the servos whose supply is not a `share` of the stated one or, where none is stated, of the middle one of those of
/// their kind, and those whose kind has a weak supply.
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
        return gather(&odd, stated_v, SupplySource::ArmFile)
            .into_iter()
            .collect();
    }
    let mut kinds: Vec<u64> = supplies.iter().map(|supply| supply.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let odd = kinds.iter().flat_map(|kind| {
        let same = supplies
            .iter()
            .copied()
            .filter(|supply| supply.kind == *kind);
        let same: Vec<ServoSupply> = same.collect();
        let middle_v = middle_v(&same).unwrap_or_default();
        let is_beside = |one: &ServoSupply| middle_v > 0.0 && is_odd(one, middle_v);
        let (odd, like): (Vec<_>, Vec<_>) = same.into_iter().partition(is_beside);
        let weak: Vec<_> = like.into_iter().filter(ServoSupply::is_weak).collect();
        let max_v = weak.iter().filter_map(|one| one.voltage_max_v);
        let max_v = max_v.fold(0.0, f64::max);
        [
            gather(&odd, middle_v, SupplySource::OtherServos),
            gather(&weak, max_v, SupplySource::ServoMaximum),
        ]
    });
    odd.flatten().collect()
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
fn gather(odd: &[ServoSupply], expected_v: f64, source: SupplySource) -> Option<OddSupply> {
    let off_v = |supply: &ServoSupply| (supply.voltage_v - expected_v).abs();
    let furthest = odd
        .iter()
        .max_by(|one, other| off_v(one).total_cmp(&off_v(other)))?;
    Some(OddSupply {
        ids: odd.iter().map(|supply| supply.id).collect(),
        voltage_v: furthest.voltage_v,
        expected_v,
        source,
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
                voltage_max_v: None,
            });
        let supplies: Vec<ServoSupply> = supplies.collect();
        let odd = odd_supplies(&supplies, stated_v, &SHARE_AT_REST);
        odd.into_iter()
            .map(|odd| (odd.ids, odd.source == SupplySource::ArmFile))
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
    fn a_supply_of_half_of_what_servos_allow_is_weak() {
        let weak = |volts: f64, max_v: f64, stated_v: Option<f64>| {
            let supply = |id| ServoSupply {
                id,
                kind: 777,
                voltage_v: volts,
                voltage_max_v: Some(max_v),
            };
            let all: Vec<ServoSupply> = (1..=6).map(supply).collect();
            let odd = odd_supplies(&all, stated_v, &SHARE_AT_REST);
            odd.iter().map(|odd| odd.source).collect::<Vec<_>>()
        };
        for (volts, max_v, is_weak) in [
            (4.5, 14.0, true),
            (5.0, 14.0, true),
            (7.0, 14.0, true),
            (7.4, 14.0, false),
            (12.0, 14.0, false),
            (5.0, 8.0, false),
            (4.0, 8.0, true),
            (12.0, 16.0, false),
            (5.0, 7.0, false),
        ] {
            let found = weak(volts, max_v, None);
            assert_eq!(found == [SupplySource::ServoMaximum], is_weak, "{volts}");
            assert_eq!(found.is_empty(), !is_weak, "{volts}");
        }
        // A person says that this is the right one.
        assert!(weak(7.0, 14.0, Some(7.0)).is_empty());
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
