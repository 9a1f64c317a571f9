//! The one exception to a limit of place: what begins beyond it may get away from there.
//!
//! Each thing has its own history. A part that stands too near to something excuses no other part,
//! and a part that came clear once may not come too near again.

use super::check::exceeds;

/// Rounding between two distances of a thing that stands, in radians, millimetres or metres.
const ROUNDING: f64 = 1e-9;

/// The largest value so far of something that may begin below its limit and then only rise. Not
/// the last value: what fell by a rounding a sample would fall by a millimetre in a long motion.
pub(super) struct Ratchet(Option<f64>);

impl Ratchet {
    /// A ratchet of something that was not looked at yet: wherever it is first seen, it begins.
    pub(super) fn new() -> Self {
        Self(None)
    }

    /// A ratchet of something that was far from its limit: it may not be below it any more.
    pub(super) fn far() -> Self {
        Self(Some(f64::INFINITY))
    }

    /// Returns whether a value breaches its limit: below `least` it may only be from the start on,
    /// and only while it does not fall.
    pub(super) fn breached(&mut self, value: f64, least: f64) -> bool {
        let most = self.0.map_or(value, |most| most.max(value));
        self.0 = Some(most);
        value < least && value < most - ROUNDING
    }
}

/// Distance of something from what it may not touch. `of` identifies it: a part, two parts, or a
/// part and a side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PartProximity<K = usize> {
    pub(super) metres: f64,
    pub(super) of: K,
}

/// The ratchets of all that began nearer than a limit and was never clear of it since.
pub(super) struct EscapeTracker<K = usize>(Option<Vec<(K, Ratchet)>>);

impl<K: Copy + PartialEq> EscapeTracker<K> {
    /// A tracker that lets out what is too near when it is first asked.
    pub(super) fn lenient() -> Self {
        Self(None)
    }

    /// A tracker that lets nothing begin too near.
    pub(super) fn strict() -> Self {
        Self(Some(Vec::new()))
    }

    /// Returns those that breach a limit. `near` is all that is nearer than `least_m`; what is not
    /// in it is clear, and may not begin there any more.
    pub(super) fn breaches(
        &mut self,
        near: Vec<PartProximity<K>>,
        least_m: f64,
    ) -> Vec<PartProximity<K>> {
        if near.is_empty() {
            *self = Self::strict();
            return near;
        }
        let begins = || near.iter().map(|near| (near.of, Ratchet::new())).collect();
        let mut began: Vec<(K, Ratchet)> = self.0.take().unwrap_or_else(begins);
        began.retain(|(of, _)| near.iter().any(|near| near.of == *of));
        let mut is_breach = |near: &PartProximity<K>| {
            let ratchet = began.iter_mut().find(|(of, _)| *of == near.of);
            match ratchet {
                Some((_, ratchet)) => ratchet.breached(near.metres, least_m),
                None => exceeds(least_m - ROUNDING, near.metres),
            }
        };
        let breaches = near
            .iter()
            .copied()
            .filter(|near| is_breach(near))
            .collect();
        self.0 = Some(began);
        breaches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_below_its_limit_may_only_rise() {
        let mut ratchet = Ratchet::new();
        for value in [-3.0, -2.0, -2.0, -2.0 - 5e-10, -0.5, 1.0, 0.0] {
            assert!(!ratchet.breached(value, 0.0), "{value}");
        }
        assert!(ratchet.breached(-1e-6, 0.0));
        let mut crept = Ratchet::new();
        // What falls by a rounding at a time is seen.
        let back = (0..10).position(|step| crept.breached(-1.0 - 4e-10 * f64::from(step), 0.0));
        assert_eq!(back, Some(3));
        assert!(Ratchet::far().breached(0.999, 1.0) && !Ratchet::far().breached(1.0, 1.0));
    }

    fn near(all: &[(usize, f64)]) -> Vec<PartProximity> {
        let near = |(of, metres): &(usize, f64)| PartProximity {
            of: *of,
            metres: *metres,
        };
        all.iter().map(near).collect()
    }

    /// Returns the parts that breach a limit of 3, look after look.
    fn breaches(mut tracker: EscapeTracker, looks: &[&[(usize, f64)]]) -> Vec<Vec<usize>> {
        let found = looks.iter().map(|look| tracker.breaches(near(look), 3.0));
        found
            .map(|breaches| breaches.iter().map(|near| near.of).collect())
            .collect()
    }

    #[test]
    fn refuses_each_part_by_its_own_history() {
        let said = breaches(
            EscapeTracker::lenient(),
            &[
                &[(1, -5.0), (2, 1.0)],
                // One gets away, the other comes nearer, and a third was not near before.
                &[(1, -4.0), (2, 0.5), (7, 2.0)],
                &[(1, -4.5), (2, 1.0)],
                &[(1, 2.0), (2, 2.0)],
            ],
        );
        assert_eq!(said, [vec![], vec![2, 7], vec![1], vec![]]);
    }

    #[test]
    fn refuses_what_was_clear_once_and_comes_back() {
        for clear in [&[][..], &[(2, 1.0)]] {
            let looks = [&[(1, -5.0), (2, 1.0)][..], clear, &[(1, -1.0)]];
            let said = breaches(EscapeTracker::lenient(), &looks);
            assert_eq!(said, [vec![], vec![], vec![1]]);
        }
        // A rounding is not coming back.
        let looks = [&[][..], &[(1, 3.0 - 5e-10), (2, 3.0 - 2e-9)]];
        let said = breaches(EscapeTracker::lenient(), &looks);
        assert_eq!(said, [vec![], vec![2]]);
    }

    #[test]
    fn refuses_what_begins_near_where_nothing_may() {
        let looks = [&[(1, 2.0)][..], &[(1, 2.5)]];
        assert_eq!(
            breaches(EscapeTracker::strict(), &looks),
            [vec![1], vec![1]]
        );
        assert_eq!(
            breaches(EscapeTracker::lenient(), &looks),
            [[], []] as [[usize; 0]; 2]
        );
    }
}
