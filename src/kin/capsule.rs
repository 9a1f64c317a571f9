//! Distances between capsules: segments with a radius.

use nalgebra::Point3;

/// A capsule at its present position.
#[derive(Clone, Copy, Debug)]
pub struct PlacedCapsule {
    /// One end of its axis.
    pub from_m: Point3<f64>,
    /// The other end.
    pub to_m: Point3<f64>,
    /// Its radius.
    pub radius_m: f64,
}

impl PlacedCapsule {
    /// Returns the distance between its surface and a second capsule's; negative if they overlap.
    #[must_use]
    pub fn clearance_m(&self, other: &Self) -> f64 {
        segments_apart_m((&self.from_m, &self.to_m), (&other.from_m, &other.to_m))
            - self.radius_m
            - other.radius_m
    }

    /// Returns a lower bound of [`PlacedCapsule::clearance_m`], cheaply, from the balls around both
    /// capsules.
    fn clearance_lower_bound_m(&self, other: &Self) -> f64 {
        let ball = |capsule: &Self| {
            let half = (capsule.to_m - capsule.from_m) / 2.0;
            (capsule.from_m + half, half.norm() + capsule.radius_m)
        };
        let ((a, a_radius), (b, b_radius)) = (ball(self), ball(other));
        (b - a).norm() - a_radius - b_radius
    }
}

/// Returns the index of the pair of capsules that are nearest to each other, and their clearance in
/// metres, which is minus infinity if a number is NaN.
///
/// # Panics
/// If a pair names a missing capsule: it must not be mistaken for a distant one.
#[must_use]
#[expect(
    clippy::indexing_slicing,
    reason = "pairs are made once, from indices of the same capsules"
)]
pub fn nearest_pair(capsules: &[PlacedCapsule], pairs: &[(usize, usize)]) -> Option<(usize, f64)> {
    let mut nearest: Option<(usize, f64)> = None;
    for (index, (a, b)) in pairs.iter().enumerate() {
        let (a, b) = (&capsules[*a], &capsules[*b]);
        let limit_m = nearest.map_or(f64::INFINITY, |(_, least_m)| least_m);
        if a.clearance_lower_bound_m(b) >= limit_m {
            continue;
        }
        let clearance_m = a.clearance_m(b);
        if clearance_m.is_nan() {
            return Some((index, f64::NEG_INFINITY));
        }
        if clearance_m < limit_m {
            nearest = Some((index, clearance_m));
        }
    }
    nearest
}

/// Returns the distance between two segments; either may be a point.
#[must_use]
pub fn segments_apart_m(
    (a_from, a_to): (&Point3<f64>, &Point3<f64>),
    (b_from, b_to): (&Point3<f64>, &Point3<f64>),
) -> f64 {
    let (a, b, between) = (a_to - a_from, b_to - b_from, a_from - b_from);
    let (aa, bb, ab) = (a.norm_squared(), b.norm_squared(), a.dot(&b));
    let (ac, bc) = (a.dot(&between), b.dot(&between));
    let (s, t) = nearest_parameters(aa, bb, ab, ac, bc);
    (between + a * s - b * t).norm()
}

/// Squared length below which a segment counts as a point.
const POINT_M2: f64 = 1e-18;

/// Returns the nearest points of two segments as fractions of their lengths: the unbounded
/// solution, clamped on one segment, solved again on the other, and once more on the first.
fn nearest_parameters(aa: f64, bb: f64, ab: f64, ac: f64, bc: f64) -> (f64, f64) {
    match (aa > POINT_M2, bb > POINT_M2) {
        (false, false) => (0.0, 0.0),
        (false, true) => (0.0, (bc / bb).clamp(0.0, 1.0)),
        (true, false) => ((-ac / aa).clamp(0.0, 1.0), 0.0),
        (true, true) => {
            let area = aa * bb - ab * ab;
            let s = if area > POINT_M2 * aa.max(bb) {
                ((ab * bc - ac * bb) / area).clamp(0.0, 1.0)
            } else {
                0.0
            };
            let t = (ab * s + bc) / bb;
            if (0.0..=1.0).contains(&t) {
                return (s, t);
            }
            let t = t.clamp(0.0, 1.0);
            (((ab * t - ac) / aa).clamp(0.0, 1.0), t)
        }
    }
}

/// Places a capsule of a frame.
#[must_use]
pub fn place(
    frame: &nalgebra::IsometryMatrix3<f64>,
    from_m: &Point3<f64>,
    to_m: &Point3<f64>,
    radius_m: f64,
) -> PlacedCapsule {
    PlacedCapsule {
        from_m: frame * from_m,
        to_m: frame * to_m,
        radius_m,
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn point() -> impl Strategy<Value = Point3<f64>> {
        prop::array::uniform3(-1.0..1.0_f64).prop_map(Point3::from)
    }

    /// Returns the distance, found by sampling points of both.
    fn sampled_distance_m(a: (Point3<f64>, Point3<f64>), b: (Point3<f64>, Point3<f64>)) -> f64 {
        let at = |s: (Point3<f64>, Point3<f64>), n: i32| s.0 + (s.1 - s.0) * (f64::from(n) / 60.0);
        (0..=60)
            .flat_map(|i| (0..=60).map(move |j| (at(a, i) - at(b, j)).norm()))
            .fold(f64::INFINITY, f64::min)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn the_distance_is_what_sampling_finds(a in point(), b in point(), c in point(), d in point()) {
            let distance_m = segments_apart_m((&a, &b), (&c, &d));
            let sampled_m = sampled_distance_m((a, b), (c, d));
            prop_assert!(distance_m <= sampled_m + 1e-12);
            prop_assert!(sampled_m - distance_m < 0.06, "{distance_m} {sampled_m}");
            prop_assert!((distance_m - segments_apart_m((&d, &c), (&b, &a))).abs() < 1e-9);
        }

        #[test]
        fn the_nearest_pair_is_the_least_of_all(points in prop::collection::vec((point(), point(), 0.0..0.2_f64), 5)) {
            let capsules: Vec<PlacedCapsule> = points
                .iter()
                .map(|(from_m, to_m, radius_m)| PlacedCapsule { from_m: *from_m, to_m: *to_m, radius_m: *radius_m })
                .collect();
            let pairs: Vec<(usize, usize)> = (0..5).flat_map(|a| (0..a).map(move |b| (a, b))).collect();
            let least = pairs
                .iter()
                .map(|(a, b)| capsules[*a].clearance_m(&capsules[*b]))
                .fold(f64::INFINITY, f64::min);
            let (_, found) = nearest_pair(&capsules, &pairs).unwrap();
            prop_assert!((found - least).abs() < 1e-12);
        }
    }

    #[test]
    fn a_capsule_with_an_unknown_position_is_not_far_away() {
        let at = |x: f64| PlacedCapsule {
            from_m: Point3::new(x, 0.0, 0.0),
            to_m: Point3::new(x, 0.0, 0.1),
            radius_m: 0.01,
        };
        let capsules = [at(0.0), at(1.0), at(f64::NAN)];
        let pairs = [(0, 1), (0, 2)];
        assert_eq!(
            nearest_pair(&capsules, &pairs),
            Some((1, f64::NEG_INFINITY))
        );
    }

    #[test]
    #[should_panic = "index out of bounds"]
    fn refuses_a_pair_of_missing_capsules() {
        let _ = nearest_pair(&[], &[(0, 1)]);
    }

    #[test]
    fn parallel_and_crossing_segments() {
        let p = |x: f64, y: f64, z: f64| Point3::new(x, y, z);
        let (a, b) = (p(0.0, 0.0, 0.0), p(1.0, 0.0, 0.0));
        let parallel_m = segments_apart_m((&a, &b), (&p(0.2, 0.3, 0.0), &p(0.8, 0.3, 0.0)));
        let collinear_m = segments_apart_m((&a, &b), (&p(2.0, 0.0, 0.0), &p(3.0, 0.0, 0.0)));
        let crossing_m = segments_apart_m((&a, &b), (&p(0.5, -1.0, 0.25), &p(0.5, 1.0, 0.25)));
        assert!((parallel_m - 0.3).abs() < 1e-12);
        assert!((collinear_m - 1.0).abs() < 1e-12);
        assert!((crossing_m - 0.25).abs() < 1e-12);
        assert!((segments_apart_m((&a, &a), (&b, &b)) - 1.0).abs() < 1e-12);
    }
}
