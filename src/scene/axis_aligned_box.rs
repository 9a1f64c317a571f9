//! Distances of points and segments from a box along the base frame's axes.

use nalgebra::Point3;

use super::AxisAlignedBox;

/// Steps of the search for the point of a segment nearest to a box. The distance is convex along
/// the segment, so each step keeps two thirds of it: a thousandth of a millimetre in a metre.
const SEARCH_STEPS: usize = 34;

impl AxisAlignedBox {
    /// Returns how far a point is outside of the box, in metres; negative inside, as far as the
    /// nearest side.
    #[inline]
    #[must_use]
    pub fn distance_m(&self, point: &Point3<f64>) -> f64 {
        let mut sum_m2 = 0.0_f64;
        let mut most_m = f64::NEG_INFINITY;
        for axis in 0..3 {
            let excess_m = (self.min_m[axis] - point[axis]).max(point[axis] - self.max_m[axis]);
            sum_m2 += excess_m.max(0.0).powi(2);
            most_m = most_m.max(excess_m);
        }
        if most_m > 0.0 { sum_m2.sqrt() } else { most_m }
    }

    /// Returns how far a segment is outside of the box, in metres, as [`AxisAlignedBox::distance_m`] of
    /// its nearest point; `None` where that is more than `max_distance_m`.
    #[inline]
    #[must_use]
    pub fn segment_distance_m(
        &self,
        from: &Point3<f64>,
        to: &Point3<f64>,
        max_distance_m: f64,
    ) -> Option<f64> {
        let centre = nalgebra::center(from, to);
        let half_m = nalgebra::distance(&centre, to);
        if self.distance_m(&centre) - half_m > max_distance_m {
            return None;
        }
        let at = |t: f64| self.distance_m(&(from + (to - from).scale(t)));
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..SEARCH_STEPS {
            let (a, b) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
            if at(b) > at(a) {
                high = b;
            } else {
                low = a;
            }
        }
        let least_m = at(low).min(at(high)).min(at(0.0)).min(at(1.0));
        (least_m <= max_distance_m).then_some(least_m)
    }

    /// Returns how far inside the box a point is from each of its sides, in metres, the three low
    /// sides first; negative beyond a side.
    #[inline]
    #[must_use]
    pub fn inside_m(&self, point: &Point3<f64>) -> [f64; 6] {
        let (low, high) = (point - self.min_m, self.max_m - point);
        [low.x, low.y, low.z, high.x, high.y, high.z]
    }

    /// Returns what lies in both boxes; nothing is inside it if they have nothing in common.
    #[must_use]
    pub fn common(&self, other: &Self) -> Self {
        Self {
            min_m: self.min_m.coords.sup(&other.min_m.coords).into(),
            max_m: self.max_m.coords.inf(&other.max_m.coords).into(),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn corners() -> AxisAlignedBox {
        AxisAlignedBox {
            min_m: Point3::new(-1.0, -2.0, 0.0),
            max_m: Point3::new(1.0, 2.0, 0.5),
        }
    }

    #[test]
    fn a_point_inside_is_negative() {
        let distance = |x, y, z| corners().distance_m(&Point3::new(x, y, z));
        assert!((distance(0.0, 0.0, 0.1) + 0.1).abs() < 1e-12);
        assert!((distance(4.0, 6.0, 0.5) - 5.0).abs() < 1e-12);
    }

    #[test]
    fn each_side_has_its_own_distance() {
        let found = corners().inside_m(&Point3::new(-0.75, 2.5, 0.125));
        for (found, expected) in found.into_iter().zip([0.25, 4.5, 0.125, 1.75, -0.5, 0.375]) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
    }

    proptest! {
        #[test]
        fn a_segment_is_never_nearer_than_its_samples_say(
            a in prop::array::uniform3(-3.0..3.0_f64), b in prop::array::uniform3(-3.0..3.0_f64)
        ) {
            let (from, to) = (Point3::from(a), Point3::from(b));
            let found = corners().segment_distance_m(&from, &to, f64::INFINITY).unwrap();
            let sampled = (0..=400)
                .map(|i| corners().distance_m(&(from + (to - from).scale(f64::from(i) / 400.0))))
                .fold(f64::INFINITY, f64::min);
            prop_assert!(found <= sampled + 1e-6 && sampled - found < 0.02, "{found} {sampled}");
            let far = corners().segment_distance_m(&from, &to, 0.5);
            prop_assert_eq!(far.is_some(), found <= 0.5);
        }
    }
}
