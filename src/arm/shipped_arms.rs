//! Ids of the servos of the shipped arms, by which an arm on a bus is told from another of its family.

use std::ops::RangeInclusive;

use super::ServoFamily;

/// Each shipped arm with servos on a bus, its family and its ids. A test of `scene` holds it to the arms' files.
pub const SHIPPED_ARMS: [(&str, ServoFamily, RangeInclusive<u8>); 9] = [
    ("so101", ServoFamily::FeetechSts, 1..=6),
    ("so100", ServoFamily::FeetechSts, 1..=6),
    ("roarm-m2", ServoFamily::FeetechSts, 11..=15),
    ("roarm-m3", ServoFamily::FeetechSts, 11..=17),
    ("koch", ServoFamily::Dynamixel2, 1..=6),
    ("openmanipulator-x", ServoFamily::Dynamixel2, 11..=15),
    ("omx", ServoFamily::Dynamixel2, 11..=16),
    ("widowx250s", ServoFamily::Dynamixel2, 1..=9),
    ("vx300", ServoFamily::Dynamixel2, 1..=8),
];

/// Returns the shipped arm of a family whose ids are exactly these.
#[must_use]
pub fn arm_of_ids(family: ServoFamily, ids: &[u8]) -> Option<&'static str> {
    let has_these = |own: &RangeInclusive<u8>| {
        own.len() == ids.len() && own.clone().all(|id| ids.contains(&id))
    };
    let mut of_family = SHIPPED_ARMS.iter().filter(|(_, of, _)| *of == family);
    let found = of_family.find(|(.., own)| has_these(own));
    found.map(|(name, ..)| *name)
}

/// Returns the ids of the shipped arms of a family that are not among these, each once.
#[must_use]
pub fn ids_beside(family: ServoFamily, own: &[u8]) -> Vec<u8> {
    let of_family = SHIPPED_ARMS.iter().filter(|(_, of, _)| *of == family);
    let ids = of_family.flat_map(|(.., ids)| ids.clone());
    let mut beside: Vec<u8> = ids.filter(|id| !own.contains(id)).collect();
    beside.sort_unstable();
    beside.dedup();
    beside
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_name_the_arm_that_has_exactly_these() {
        let named = |ids: &[u8]| arm_of_ids(ServoFamily::Dynamixel2, ids);
        assert_eq!(named(&[1, 2, 3, 4, 5, 6]), Some("koch"));
        assert_eq!(named(&[9, 8, 7, 6, 5, 4, 3, 2, 1]), Some("widowx250s"));
        assert_eq!(named(&[1, 2, 3, 4, 5, 6, 7]), None);
        assert_eq!(named(&[]), None);
        let feetech = ServoFamily::FeetechSts;
        assert_eq!(arm_of_ids(feetech, &[11, 12, 13, 14, 15]), Some("roarm-m2"));
        assert_eq!(arm_of_ids(feetech, &[11, 12, 13, 14, 15, 16]), None);
        let beside = ids_beside(feetech, &[1, 2, 3, 4, 5, 6]);
        assert_eq!(beside, [11, 12, 13, 14, 15, 16, 17]);
        let beside = ids_beside(ServoFamily::Dynamixel2, &[1, 2, 3, 4, 5, 6]);
        assert_eq!(beside, [7, 8, 9, 11, 12, 13, 14, 15, 16]);
    }
}
