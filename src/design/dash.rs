//! Cuts a path into dashes.

use base::plane::{Point, along, pieces};

/// Shorter patterns than this are drawn as a whole line: no pen makes such dashes.
const PATTERN_MIN_MM: f64 = 0.05;

/// A walk along a path and, at once, along the pattern.
struct DashCursor<'p> {
    pattern_mm: &'p [f64],
    index: usize,
    left_mm: f64,
    points_left: usize,
    dash: Vec<Point>,
    done: Vec<Vec<Point>>,
}

impl<'p> DashCursor<'p> {
    /// At `offset_mm` into the pattern, which repeats.
    fn at(pattern_mm: &'p [f64], offset_mm: f64, points_max: usize) -> Self {
        let whole: f64 = pattern_mm.iter().sum();
        let mut pen = Self {
            pattern_mm,
            index: 0,
            left_mm: pattern_mm.first().copied().unwrap_or(f64::INFINITY),
            points_left: points_max,
            dash: Vec::new(),
            done: Vec::new(),
        };
        let mut skip_mm = offset_mm.rem_euclid(whole);
        while skip_mm >= pen.left_mm && pen.index < pattern_mm.len() {
            skip_mm -= pen.left_mm;
            pen.turn();
        }
        pen.left_mm -= skip_mm;
        pen
    }

    fn turn(&mut self) {
        self.index = (self.index + 1) % self.pattern_mm.len().max(1);
        self.left_mm = self.pattern_mm.get(self.index).copied().unwrap_or(0.0);
    }

    fn visit(&mut self, point: Point) -> Option<()> {
        // Counted up or down, so that the caller's cap bounds the time too.
        self.points_left = self.points_left.checked_sub(1)?;
        let is_down = self.index.is_multiple_of(2);
        self.dash.extend(is_down.then_some(point));
        Some(())
    }

    fn lift(&mut self) {
        if !self.dash.is_empty() {
            self.done.push(std::mem::take(&mut self.dash));
        }
    }

    /// Along one straight piece.
    fn walk(&mut self, from: Point, to: Point, length_mm: f64) -> Option<()> {
        let mut gone_mm = 0.0;
        while self.left_mm < length_mm - gone_mm {
            gone_mm += self.left_mm;
            let here = along(from, to, gone_mm / length_mm);
            self.visit(here)?;
            self.turn();
            self.lift();
            self.visit(here)?;
        }
        self.left_mm -= length_mm - gone_mm;
        self.visit(to)
    }
}

/// The dashes of `path` by lengths on the page, as [`dashes_by`].
pub(crate) fn dashes(
    path: &[Point],
    pattern_mm: &[f64],
    offset_mm: f64,
    points_max: usize,
) -> Option<Vec<Vec<Point>>> {
    let length_mm = |[x, y]: Point| x.hypot(y);
    dashes_by(path, pattern_mm, offset_mm, points_max, length_mm)
}

/// The dashes of `path`, a straight step being as long as `length_mm` says: `pattern_mm` is drawn, left out, drawn … in turn, from `offset_mm` into
/// it. None where the dashes would have more than `points_max` points. A pattern of an odd
/// number, of impossible numbers, or too fine to draw gives the whole path.
pub(crate) fn dashes_by(
    path: &[Point],
    pattern_mm: &[f64],
    offset_mm: f64,
    points_max: usize,
    length_mm: impl Fn(Point) -> f64,
) -> Option<Vec<Vec<Point>>> {
    let whole_mm: f64 = pattern_mm.iter().sum();
    let is_pattern = pattern_mm.iter().all(|mm| mm.is_finite() && *mm >= 0.0)
        && pattern_mm.len().is_multiple_of(2)
        && whole_mm >= PATTERN_MIN_MM;
    if !is_pattern || !offset_mm.is_finite() {
        return Some(vec![path.to_vec()]);
    }
    let mut pen = DashCursor::at(pattern_mm, offset_mm, points_max);
    pen.visit(*path.first()?)?;
    for [from, to] in pieces(path) {
        let length_mm = length_mm([to[0] - from[0], to[1] - from[1]]);
        pen.walk(from, to, length_mm)?;
    }
    pen.lift();
    Some(pen.done)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    fn lengths(dashes: &[Vec<Point>]) -> Vec<f64> {
        let length = |dash: &Vec<Point>| {
            let steps = dash.iter().zip(dash.iter().skip(1));
            steps.map(|(a, b)| (b[0] - a[0]).hypot(b[1] - a[1])).sum()
        };
        dashes.iter().map(length).collect()
    }

    #[test]
    fn cuts_a_line_around_a_corner() {
        let path = [[0.0, 0.0], [10.0, 0.0], [10.0, 10.0]];
        let dashes = dashes(&path, &[8.0, 1.0], 0.0, 100).unwrap();
        let expected = [8.0, 8.0, 2.0];
        for (found, wanted) in lengths(&dashes).iter().zip(expected) {
            assert!((found - wanted).abs() < 1e-9, "{found} {wanted}");
        }
        assert_eq!(dashes.get(1).unwrap().len(), 3);
    }

    #[test]
    fn an_offset_starts_inside_the_pattern() {
        let path = [[0.0, 0.0], [10.0, 0.0]];
        let dashes = dashes(&path, &[4.0, 2.0], 5.0, 100).unwrap();
        assert_eq!(dashes.first().unwrap().first(), Some(&[1.0, 0.0]));
    }

    #[test]
    fn a_pattern_too_fine_to_draw_gives_the_whole_line() {
        let path = [[0.0, 0.0], [10.0, 0.0]];
        for pattern in [&[0.01, 0.01][..], &[f64::NAN, 1.0], &[1.0]] {
            assert_eq!(dashes(&path, pattern, 0.0, 100).unwrap(), [path.to_vec()]);
        }
    }

    #[test]
    fn stops_at_the_cap() {
        let path = [[0.0, 0.0], [1000.0, 0.0]];
        assert!(dashes(&path, &[0.05, 0.05], 0.0, 100).is_none());
    }
}
