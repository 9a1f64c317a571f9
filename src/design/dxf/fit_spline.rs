//! Interpolates splines that a DXF gives by the points that they go through: a cubic curve whose slope
//! and curvature are continuous, by the distances between the points, as CAD programs draw it.

use base::plane::{Point, distance};

use super::super::flatten;

/// A spline through points.
pub(super) struct FitSpline {
    /// At least two points.
    pub(super) through: Vec<Point>,
    /// Direction at its start; without one it is not bent there.
    pub(super) start: Option<Point>,
    pub(super) end: Option<Point>,
    pub(super) is_closed: bool,
}

/// Points that a closed spline repeats at either side, so that its ends meet smoothly: what is farther
/// away has no visible effect.
const OVERLAP: usize = 8;

impl FitSpline {
    /// Returns its points, at most `error` from the curve.
    pub(super) fn points(mut self, error: f64) -> Vec<Point> {
        self.through.dedup();
        if !self.is_closed {
            let ends = [self.start, self.end].map(|direction| direction.map(unit));
            return polyline(&self.through, &slopes(&self.through, ends), error);
        }
        if self.through.first() == self.through.last() {
            self.through.pop();
        }
        let (count, cycle) = (self.through.len(), self.through.iter().cycle());
        let around = count.saturating_mul(OVERLAP).saturating_sub(OVERLAP) % count.max(1);
        let total = count + 2 * OVERLAP + 1;
        let extended: Vec<Point> = cycle.skip(around).take(total).copied().collect();
        let slopes = slopes(&extended, [None, None]);
        let drawn = OVERLAP..OVERLAP + count + 1;
        let points = extended.get(drawn.clone()).unwrap_or(&extended);
        polyline(points, slopes.get(drawn).unwrap_or(&slopes), error)
    }
}

fn unit([x, y]: Point) -> Point {
    let length = x.hypot(y);
    [x / length, y / length]
}

/// A row of the system: `below · slope before + diagonal · slope + above · slope after = right`.
type SlopeRow = ([f64; 3], Point);

/// Returns the curve's derivatives by length at its points.
fn slopes(points: &[Point], [start, end]: [Option<Point>; 2]) -> Vec<Point> {
    let chords: Vec<(f64, Point)> = points.windows(2).filter_map(chord).collect();
    let fixed = |slope: Point| ([0.0, 1.0, 0.0], slope);
    let rows = (0..points.len()).map(|index| {
        let before = index.checked_sub(1).and_then(|index| chords.get(index));
        match (before, chords.get(index)) {
            (Some(before), Some(after)) => inner_row(before, after),
            (None, Some((length, [x, y]))) => start.map_or(
                ([0.0, 2.0, 1.0], [3.0 * x / length, 3.0 * y / length]),
                fixed,
            ),
            (Some((length, [x, y])), None) => end.map_or(
                ([1.0, 2.0, 0.0], [3.0 * x / length, 3.0 * y / length]),
                fixed,
            ),
            (None, None) => fixed([0.0; 2]),
        }
    });
    solve(rows)
}

/// Returns the row that makes the curvature the same on both sides of a point.
fn inner_row((h, [x, y]): &(f64, Point), (g, [u, v]): &(f64, Point)) -> SlopeRow {
    let right = |before: &f64, after: &f64| 3.0 * (before / (h * h) + after / (g * g));
    let coefficients = [1.0 / h, 2.0 / h + 2.0 / g, 1.0 / g];
    (coefficients, [right(x, u), right(y, v)])
}

/// Returns the length and the vector from one point to the next.
fn chord(pair: &[Point]) -> Option<(f64, Point)> {
    let [from, to] = pair else { return None };
    Some((distance(*from, *to), [to[0] - from[0], to[1] - from[1]]))
}

/// Solves rows of a tridiagonal system, by Thomas' algorithm.
fn solve(rows: impl Iterator<Item = SlopeRow>) -> Vec<Point> {
    let mut reduced: Vec<(f64, Point)> = Vec::new();
    for ([below, diagonal, above], [x, y]) in rows {
        let (above_before, [u, v]) = reduced.last().copied().unwrap_or_default();
        let pivot = diagonal - below * above_before;
        reduced.push((
            above / pivot,
            [(x - below * u) / pivot, (y - below * v) / pivot],
        ));
    }
    let mut slopes = Vec::with_capacity(reduced.len());
    let mut next = [0.0; 2];
    for (above, right) in reduced.into_iter().rev() {
        next = [right[0] - above * next[0], right[1] - above * next[1]];
        slopes.push(next);
    }
    slopes.reverse();
    slopes
}

/// Returns the points of the cubic curves between neighbouring points.
fn polyline(points: &[Point], slopes: &[Point], error: f64) -> Vec<Point> {
    let mut line: Vec<Point> = points.first().copied().into_iter().collect();
    for (pair, tangents) in points.windows(2).zip(slopes.windows(2)) {
        if let ([from, to], [out, into]) = (pair, tangents) {
            let third = distance(*from, *to) / 3.0;
            let first = [from[0] + out[0] * third, from[1] + out[1] * third];
            let second = [to[0] - into[0] * third, to[1] - into[1] * third];
            flatten::cubic(&mut line, [first, second, *to], error);
        }
    }
    line
}
