//! The one exception to a position limit: what begins beyond it may move away from there.
//!
//! Each part has its own history. A part that stands too near to something excuses no other part,
//! and a part that was clear once may not come too near again.

use super::check::exceeds;

/// Rounding between two distances of a part at rest, in radians, millimetres or metres.
const ROUNDING: f64 = 1e-9;

/// The largest value so far of something that may begin below its limit and then only rise. The
/// last value would not do: a fall of one rounding per sample adds up to a millimetre.
pub(super) struct Ratchet(Option<f64>);

impl Ratchet {
    /// A ratchet without a value: the first one that it sees is where it begins.
    pub(super) fn new() -> Self {
        Self(None)
    }

    /// A ratchet of something that was clear of its limit: it may no longer be below it.
    pub(super) fn far() -> Self {
        Self(Some(f64::INFINITY))
    }

    /// Returns whether a value breaches its limit. It may only be below `limit` if it began there,
    /// and only while it does not fall.
    pub(super) fn breached(&mut self, value: f64, limit: f64) -> bool {
        let highest = self.0.map_or(value, |highest| highest.max(value));
        self.0 = Some(highest);
        value < limit && value < highest - ROUNDING
    }
}

/// Distance of something from what it may not touch. `key` identifies it: a part, two parts, or a
/// part and a side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PartProximity<K = usize> {
    pub(super) gap_m: f64,
    pub(super) key: K,
}

/// The ratchets of all parts that began nearer than a limit and have never been clear of it since.
pub(super) struct EscapeTracker<K = usize>(Option<Vec<(K, Ratchet)>>);

impl<K: Copy + PartialEq> EscapeTracker<K> {
    /// A tracker that lets whatever begins too near move away.
    pub(super) fn lenient() -> Self {
        Self(None)
    }

    /// A tracker that lets nothing begin too near.
    pub(super) fn strict() -> Self {
        Self(Some(Vec::new()))
    }

    /// Returns those that breach a limit. `near` is all that is nearer than `limit_m`; what is not
    /// in it is clear, and may not come too near again.
    pub(super) fn breaches(
        &mut self,
        near: Vec<PartProximity<K>>,
        limit_m: f64,
    ) -> Vec<PartProximity<K>> {
        if near.is_empty() {
            *self = Self::strict();
            return near;
        }
        let begin_all = || near.iter().map(|near| (near.key, Ratchet::new())).collect();
        let mut ratchets: Vec<(K, Ratchet)> = self.0.take().unwrap_or_else(begin_all);
        ratchets.retain(|(key, _)| near.iter().any(|near| near.key == *key));
        let mut is_breach = |near: &PartProximity<K>| {
            let ratchet = ratchets.iter_mut().find(|(key, _)| *key == near.key);
            match ratchet {
                Some((_, ratchet)) => ratchet.breached(near.gap_m, limit_m),
                None => exceeds(limit_m - ROUNDING, near.gap_m),
            }
        };
        let breaches = near
            .iter()
            .copied()
            .filter(|near| is_breach(near))
            .collect();
        self.0 = Some(ratchets);
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
        let mut falling = Ratchet::new();
        // A fall by less than a rounding at a time is noticed.
        let step = (0..10).position(|step| falling.breached(-1.0 - 4e-10 * f64::from(step), 0.0));
        assert_eq!(step, Some(3));
        assert!(Ratchet::far().breached(0.999, 1.0) && !Ratchet::far().breached(1.0, 1.0));
    }

    fn near(all: &[(usize, f64)]) -> Vec<PartProximity> {
        let near = |(key, gap_m): &(usize, f64)| PartProximity {
            key: *key,
            gap_m: *gap_m,
        };
        all.iter().map(near).collect()
    }

    /// Returns the parts that breach a limit of 3, frame by frame.
    fn breaches(mut tracker: EscapeTracker, frames: &[&[(usize, f64)]]) -> Vec<Vec<usize>> {
        let found = frames
            .iter()
            .map(|frame| tracker.breaches(near(frame), 3.0));
        found
            .map(|breaches| breaches.iter().map(|near| near.key).collect())
            .collect()
    }

    #[test]
    fn refuses_each_part_by_its_own_history() {
        let found = breaches(
            EscapeTracker::lenient(),
            &[
                &[(1, -5.0), (2, 1.0)],
                // One moves away, the other comes nearer, and a third was not near before.
                &[(1, -4.0), (2, 0.5), (7, 2.0)],
                &[(1, -4.5), (2, 1.0)],
                &[(1, 2.0), (2, 2.0)],
            ],
        );
        assert_eq!(found, [vec![], vec![2, 7], vec![1], vec![]]);
    }

    #[test]
    fn refuses_what_was_clear_once_and_comes_back() {
        for clear in [&[][..], &[(2, 1.0)]] {
            let frames = [&[(1, -5.0), (2, 1.0)][..], clear, &[(1, -1.0)]];
            let found = breaches(EscapeTracker::lenient(), &frames);
            assert_eq!(found, [vec![], vec![], vec![1]]);
        }
        // A rounding is no return.
        let frames = [&[][..], &[(1, 3.0 - 5e-10), (2, 3.0 - 2e-9)]];
        let found = breaches(EscapeTracker::lenient(), &frames);
        assert_eq!(found, [vec![], vec![2]]);
    }

    #[test]
    fn refuses_what_begins_near_where_nothing_may() {
        let frames = [&[(1, 2.0)][..], &[(1, 2.5)]];
        assert_eq!(
            breaches(EscapeTracker::strict(), &frames),
            [vec![1], vec![1]]
        );
        assert_eq!(
            breaches(EscapeTracker::lenient(), &frames),
            [[], []] as [[usize; 0]; 2]
        );
    }
}
