//! Cuts a path into dashes.

use base::plane::{Point, along, pieces};

/// Shorter patterns are drawn as a solid line: no pen makes such dashes.
const PATTERN_MIN_MM: f64 = 0.05;

/// Position along a path and along the dash pattern.
struct DashCursor<'p> {
    pattern_mm: &'p [f64],
    index: usize,
    left_mm: f64,
    points_left: usize,
    dash: Vec<Point>,
    done: Vec<Vec<Point>>,
}

impl<'p> DashCursor<'p> {
    /// Starts at `offset_mm` into the repeating pattern.
    fn at(pattern_mm: &'p [f64], offset_mm: f64, points_max: usize) -> Self {
        let pattern_length_mm: f64 = pattern_mm.iter().sum();
        let mut cursor = Self {
            pattern_mm,
            index: 0,
            left_mm: pattern_mm.first().copied().unwrap_or(f64::INFINITY),
            points_left: points_max,
            dash: Vec::new(),
            done: Vec::new(),
        };
        let mut skip_mm = offset_mm.rem_euclid(pattern_length_mm);
        while skip_mm >= cursor.left_mm && cursor.index < pattern_mm.len() {
            skip_mm -= cursor.left_mm;
            cursor.next_element();
        }
        cursor.left_mm -= skip_mm;
        cursor
    }

    fn next_element(&mut self) {
        self.index = (self.index + 1) % self.pattern_mm.len().max(1);
        self.left_mm = self.pattern_mm.get(self.index).copied().unwrap_or(0.0);
    }

    fn visit(&mut self, point: Point) -> Option<()> {
        // Counts gaps as well as dashes, so that the caller's cap also bounds the time.
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

    /// Advances along one straight segment.
    fn advance(&mut self, from: Point, to: Point, length_mm: f64) -> Option<()> {
        let mut advanced_mm = 0.0;
        while self.left_mm < length_mm - advanced_mm {
            advanced_mm += self.left_mm;
            let here = along(from, to, advanced_mm / length_mm);
            self.visit(here)?;
            self.next_element();
            self.lift();
            self.visit(here)?;
        }
        self.left_mm -= length_mm - advanced_mm;
        self.visit(to)
    }
}

/// Returns the dashes of `path` by lengths on the page, as [`dashes_by`] does.
pub(crate) fn dashes(
    path: &[Point],
    pattern_mm: &[f64],
    offset_mm: f64,
    points_max: usize,
) -> Option<Vec<Vec<Point>>> {
    let length_mm = |[x, y]: Point| x.hypot(y);
    dashes_by(path, pattern_mm, offset_mm, points_max, length_mm)
}

/// Returns the dashes of `path`, with the length of a straight step from `length_mm`. Elements of
/// `pattern_mm` are drawn and skipped in turn, from `offset_mm` into it. `None` if the dashes would
/// have more than `points_max` points. A pattern with an odd number of elements, with impossible
/// numbers, or too fine to draw gives the full path.
pub(crate) fn dashes_by(
    path: &[Point],
    pattern_mm: &[f64],
    offset_mm: f64,
    points_max: usize,
    length_mm: impl Fn(Point) -> f64,
) -> Option<Vec<Vec<Point>>> {
    let pattern_length_mm: f64 = pattern_mm.iter().sum();
    let is_pattern = pattern_mm.iter().all(|mm| mm.is_finite() && *mm >= 0.0)
        && pattern_mm.len().is_multiple_of(2)
        && pattern_length_mm >= PATTERN_MIN_MM;
    if !is_pattern || !offset_mm.is_finite() {
        return Some(vec![path.to_vec()]);
    }
    let mut cursor = DashCursor::at(pattern_mm, offset_mm, points_max);
    cursor.visit(*path.first()?)?;
    for [from, to] in pieces(path) {
        let length_mm = length_mm([to[0] - from[0], to[1] - from[1]]);
        cursor.advance(from, to, length_mm)?;
    }
    cursor.lift();
    Some(cursor.done)
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
        for (found, expected_mm) in lengths(&dashes).iter().zip(expected) {
            assert!((found - expected_mm).abs() < 1e-9, "{found} {expected_mm}");
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
    fn a_pattern_too_fine_to_draw_gives_a_solid_line() {
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
