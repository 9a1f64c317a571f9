//! Cuts a path into dashes.

type Point = [f64; 2];

/// Shorter patterns than this are drawn as a whole line: no pen makes such dashes.
const PATTERN_MIN_MM: f64 = 0.05;

/// Position of a walk along the pattern.
struct DashCursor<'p> {
    pattern_mm: &'p [f64],
    index: usize,
    left_mm: f64,
}

impl<'p> DashCursor<'p> {
    /// At `offset_mm` into the pattern, which repeats.
    fn at(pattern_mm: &'p [f64], offset_mm: f64) -> Self {
        let whole: f64 = pattern_mm.iter().sum();
        let mut pen = Self {
            pattern_mm,
            index: 0,
            left_mm: pattern_mm.first().copied().unwrap_or(f64::INFINITY),
        };
        let mut skip_mm = offset_mm.rem_euclid(whole);
        while skip_mm >= pen.left_mm && pen.index < pattern_mm.len() {
            skip_mm -= pen.left_mm;
            pen.turn();
        }
        pen.left_mm -= skip_mm;
        pen
    }

    fn is_down(&self) -> bool {
        self.index.is_multiple_of(2)
    }

    fn turn(&mut self) {
        self.index = (self.index + 1) % self.pattern_mm.len().max(1);
        self.left_mm = self.pattern_mm.get(self.index).copied().unwrap_or(0.0);
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
    let sane = pattern_mm.iter().all(|mm| mm.is_finite() && *mm >= 0.0) && offset_mm.is_finite();
    let whole_mm: f64 = pattern_mm.iter().sum();
    if !sane
        || !pattern_mm.len().is_multiple_of(2)
        || whole_mm.is_nan()
        || whole_mm < PATTERN_MIN_MM
    {
        return Some(vec![path.to_vec()]);
    }
    let mut pen = DashCursor::at(pattern_mm, offset_mm);
    let mut all = DashPattern {
        done: Vec::new(),
        dash: Vec::new(),
        points_left: points_max,
    };
    all.visit(*path.first()?, &pen)?;
    for (from, to) in path.iter().zip(path.iter().skip(1)) {
        let length_mm = length_mm([to[0] - from[0], to[1] - from[1]]);
        walk(*from, *to, length_mm, &mut pen, &mut all)?;
    }
    all.lift();
    Some(all.done)
}

/// Along one straight piece.
fn walk(
    from: Point,
    to: Point,
    length_mm: f64,
    pen: &mut DashCursor<'_>,
    all: &mut DashPattern,
) -> Option<()> {
    let mut gone_mm = 0.0;
    while pen.left_mm < length_mm - gone_mm {
        gone_mm += pen.left_mm;
        let t = gone_mm / length_mm;
        let here = [
            from[0] + (to[0] - from[0]) * t,
            from[1] + (to[1] - from[1]) * t,
        ];
        all.visit(here, pen)?;
        pen.turn();
        all.lift();
        all.visit(here, pen)?;
    }
    pen.left_mm -= length_mm - gone_mm;
    all.visit(to, pen)
}

struct DashPattern {
    done: Vec<Vec<Point>>,
    dash: Vec<Point>,
    points_left: usize,
}

impl DashPattern {
    fn visit(&mut self, point: Point, pen: &DashCursor<'_>) -> Option<()> {
        // Counted up or down, so that the caller's cap bounds the time too.
        self.points_left = self.points_left.checked_sub(1)?;
        if pen.is_down() {
            self.dash.push(point);
        }
        Some(())
    }

    fn lift(&mut self) {
        if !self.dash.is_empty() {
            self.done.push(std::mem::take(&mut self.dash));
        }
    }
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
