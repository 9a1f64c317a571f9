//! Computes the speed along a path: as fast as linear limits on speed and acceleration allow.
//!
//! The path is fixed. With `x` the squared speed along it and `u` the acceleration, every limit is
//! `|u·a + x·b| ≤ c`. A backward pass finds the largest `x` from which the end can still be
//! reached; a forward pass takes the largest `u` that stays below it (TOPP-RA).

#![expect(
    clippy::indexing_slicing,
    reason = "every index is a station, and `pace` refuses limits that lack one for a station"
)]

/// A limit both ways: `|u·a + x·b| ≤ c`, with `c ≥ 0`.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinearLimit {
    /// Coefficient of the acceleration along the path.
    pub a: f64,
    /// Coefficient of the squared speed along the path.
    pub b: f64,
    /// The bound.
    pub c: f64,
}

/// A path's limits at its stations.
#[derive(Clone, Debug, Default)]
pub struct PathLimits {
    /// Distance along the path, increasing.
    pub s: Vec<f64>,
    /// The largest squared speed.
    pub x_max: Vec<f64>,
    /// `stride` limits for each station.
    pub rows: Vec<LinearLimit>,
    /// Number of limits at each station.
    pub stride: usize,
}

/// Newton's method on a concave piecewise linear function ends after as many steps as it has
/// pieces.
const NEWTON_MAX: usize = 40;
const ROUNDING: f64 = 1e-12;

/// Returns the squared speed at each station, from rest to rest. All zeros if there are fewer than
/// three stations: a path needs one between its ends to move at all.
///
/// # Panics
/// If a station lacks a limit: it must not be mistaken for one without limits.
#[must_use]
pub fn pace(limits: &PathLimits) -> Vec<f64> {
    let stations = limits.s.len();
    assert!(
        limits.x_max.len() == stations && limits.rows.len() == stations * limits.stride,
        "{} speeds and {} limits were given for {stations} stations with {} limits each",
        limits.x_max.len(),
        limits.rows.len(),
        limits.stride
    );
    let ceilings = backward_pass(limits);
    let mut speeds_squared = Vec::with_capacity(ceilings.len());
    let mut x = 0.0;
    for (index, next) in ceilings.iter().skip(1).enumerate() {
        speeds_squared.push(x);
        let interval = PathInterval::of(limits, index, *next);
        let range = interval.range(x);
        let u = range.hi.max(range.lo.min(0.0));
        x = (x + 2.0 * interval.length * u).clamp(0.0, *next);
    }
    speeds_squared.push(0.0);
    speeds_squared
}

/// Returns the largest squared speed at each station from which the end can be reached.
fn backward_pass(limits: &PathLimits) -> Vec<f64> {
    let count = limits.s.len();
    let mut ceilings = vec![0.0; count];
    let mut next = 0.0;
    for index in (0..count.saturating_sub(1)).rev() {
        next = PathInterval::of(limits, index, next).fastest(limits.x_max[index]);
        ceilings[index] = next;
    }
    ceilings
}

/// The possible accelerations, and how they change with the squared speed.
struct AccelerationRange {
    hi: f64,
    hi_slope: f64,
    lo: f64,
    lo_slope: f64,
}

/// The path from one station to the next.
struct PathInterval<'a> {
    here: &'a [LinearLimit],
    there: &'a [LinearLimit],
    length: f64,
    next: f64,
}

impl<'a> PathInterval<'a> {
    fn of(limits: &'a PathLimits, index: usize, next: f64) -> Self {
        let at = |index: usize| {
            let first = index * limits.stride;
            &limits.rows[first..first + limits.stride]
        };
        Self {
            here: at(index),
            there: at(index + 1),
            length: limits.s[index + 1] - limits.s[index],
            next,
        }
    }

    /// Returns every limit of this interval, those of its far end expressed at its near end.
    #[inline]
    fn rows(&self) -> impl Iterator<Item = LinearLimit> + '_ {
        let gain = 2.0 * self.length;
        let far = self.there.iter().map(move |row| LinearLimit {
            a: row.b * gain + row.a,
            ..*row
        });
        self.here.iter().copied().chain(far)
    }

    /// Returns the highest and lowest acceleration at squared speed `x`, each with its slope over
    /// `x`. The speed at the far end may be anything from 0 to its ceiling.
    #[inline]
    fn range(&self, x: f64) -> AccelerationRange {
        let per_length = 0.5 / self.length;
        let mut range = AccelerationRange {
            hi: (self.next - x) * per_length,
            hi_slope: -per_length,
            lo: -x * per_length,
            lo_slope: -per_length,
        };
        for row in self.rows() {
            if row.a.abs() <= ROUNDING {
                continue;
            }
            // One division serves both bounds.
            let inverse = 1.0 / row.a;
            let (centre, half) = (-row.b * x * inverse, row.c * inverse.abs());
            if centre + half < range.hi {
                (range.hi, range.hi_slope) = (centre + half, -row.b * inverse);
            }
            if centre - half > range.lo {
                (range.lo, range.lo_slope) = (centre - half, -row.b * inverse);
            }
        }
        range
    }

    /// Returns the largest squared speed, up to `x_max`, at which some acceleration is possible.
    /// The gap between highest and lowest is concave in `x` and open at 0, so Newton's steps from
    /// above never overshoot its end.
    fn fastest(&self, x_max: f64) -> f64 {
        let mut x = self
            .rows()
            .filter(|row| row.a.abs() <= ROUNDING && row.b.abs() > ROUNDING)
            .map(|row| row.c / row.b.abs())
            .fold(x_max, f64::min);
        for _ in 0..NEWTON_MAX {
            let range = self.range(x);
            let (gap, slope) = (range.hi - range.lo, range.hi_slope - range.lo_slope);
            if gap >= -ROUNDING * range.hi.abs().max(1.0) {
                return x;
            }
            if slope >= 0.0 {
                return 0.0;
            }
            x = (x - gap / slope).max(0.0);
        }
        x
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A straight path of `length` with one acceleration limit.
    fn straight(length: f64, stations: usize, speed: f64, max_acceleration: f64) -> PathLimits {
        let mut limits = PathLimits {
            stride: 1,
            ..PathLimits::default()
        };
        for index in 0..stations {
            let fraction = index as f64 / (stations - 1) as f64;
            limits.s.push(fraction * length);
            limits.x_max.push(speed * speed);
            limits.rows.push(LinearLimit {
                a: 1.0,
                b: 0.0,
                c: max_acceleration,
            });
        }
        limits
    }

    fn duration(limits: &PathLimits) -> f64 {
        let x = pace(limits);
        (1..x.len())
            .map(|i| 2.0 * (limits.s[i] - limits.s[i - 1]) / (x[i].sqrt() + x[i - 1].sqrt()))
            .sum()
    }

    #[test]
    fn a_straight_path_takes_as_long_as_a_trapezoid() {
        // 1 m at 0.5 m/s and 1 m/s²: 0.5 s up, 0.5 s down, 0.75 m between.
        let limits = straight(1.0, 401, 0.5, 1.0);
        assert!((duration(&limits) - 2.5).abs() < 1e-3);
    }

    #[test]
    fn a_short_path_never_reaches_its_speed() {
        let limits = straight(0.01, 101, 0.5, 1.0);
        assert!((duration(&limits) - 0.2).abs() < 1e-4);
    }

    /// A missing limit must not be taken for no limit at all, or for a limit of 0.
    #[test]
    fn refuses_a_station_without_a_limit() {
        let complete = straight(1.0, 11, 0.5, 1.0);
        let mut incomplete = [complete.clone(), complete.clone(), complete];
        incomplete[0].rows.pop();
        incomplete[1].x_max.pop();
        incomplete[2].s.push(1.1);
        for limits in incomplete {
            assert!(std::panic::catch_unwind(|| pace(&limits)).is_err());
        }
    }

    #[test]
    fn a_narrow_place_is_braked_for() {
        let mut limits = straight(1.0, 401, 0.5, 1.0);
        limits.x_max[200] = 0.01;
        let x = pace(&limits);
        assert!(x[200] <= 0.01 + 1e-12);
        for i in 1..x.len() {
            let u = (x[i] - x[i - 1]) / (2.0 * (limits.s[i] - limits.s[i - 1]));
            assert!(u.abs() <= 1.0 + 1e-9);
        }
    }
}
