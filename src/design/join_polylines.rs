//! Joins polylines whose ends touch, and drops points that add nothing.

use std::collections::HashMap;

use base::plane::{self, Point, distance};

/// Largest part of a line that is simplified at once, in points; this bounds the work.
const PART_MAX: usize = 1024;

/// One end of a line.
#[derive(Clone, Copy)]
struct PolylineEnd {
    at: Point,
    line: usize,
    is_last: bool,
}

/// Ends by the cell they lie in; cells are as wide as the largest distance between joined ends.
struct NearbyEnds {
    cell_mm: f64,
    cells: HashMap<[i64; 2], Vec<PolylineEnd>>,
}

impl NearbyEnds {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "saturates, which does no harm"
    )]
    fn cell(&self, point: Point) -> [i64; 2] {
        point.map(|value| (value / self.cell_mm).floor().clamp(-1e15, 1e15) as i64)
    }

    fn insert(&mut self, end: PolylineEnd) {
        let cell = self.cell(end.at);
        self.cells.entry(cell).or_default().push(end);
    }

    /// Returns the nearest end within a cell's width whose line is not joined yet; of equally near
    /// ends, the first inserted.
    fn nearest(&self, from: Point, remaining: &[Option<Vec<Point>>]) -> Option<PolylineEnd> {
        let [x, y] = self.cell(from);
        let nearby = (-1..=1).flat_map(|dx| (-1..=1).map(move |dy| [x + dx, y + dy]));
        let ends = nearby.filter_map(|cell| self.cells.get(&cell)).flatten();
        ends.filter(|end| remaining.get(end.line).is_some_and(Option::is_some))
            .map(|end| (distance(from, end.at), *end))
            .filter(|(mm, _)| *mm <= self.cell_mm)
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, end)| end)
    }
}

pub(super) fn join(lines: Vec<Vec<Point>>, join_mm: f64) -> Vec<Vec<Point>> {
    let mut ends = NearbyEnds {
        cell_mm: join_mm,
        cells: HashMap::new(),
    };
    for (line, points) in lines.iter().enumerate() {
        if let [first, .., last] = *points.as_slice()
            && !is_closed(points)
        {
            for (at, is_last) in [(first, false), (last, true)] {
                ends.insert(PolylineEnd { at, line, is_last });
            }
        }
    }
    let mut remaining: Vec<Option<Vec<Point>>> = lines.into_iter().map(Some).collect();
    let mut joined = Vec::new();
    for index in 0..remaining.len() {
        let Some(mut line) = remaining.get_mut(index).and_then(Option::take) else {
            continue;
        };
        if !is_closed(&line) {
            for _ in 0..2 {
                extend_line(&mut line, &ends, &mut remaining);
                line.reverse();
            }
        }
        joined.push(line);
    }
    joined
}

fn is_closed(points: &[Point]) -> bool {
    match (points.first(), points.last()) {
        (Some(first), Some(last)) => distance(*first, *last) < 1e-9,
        _ => true,
    }
}

/// Appends lines that begin or end where this one ends, as long as there are any.
fn extend_line(line: &mut Vec<Point>, ends: &NearbyEnds, remaining: &mut [Option<Vec<Point>>]) {
    while let Some(last) = line.last().copied()
        && let Some(end) = ends.nearest(last, remaining)
        && let Some(mut next) = remaining.get_mut(end.line).and_then(Option::take)
    {
        if end.is_last {
            next.reverse();
        }
        let is_repeated = next.first() == Some(&last);
        line.extend(next.into_iter().skip(usize::from(is_repeated)));
    }
}

/// Returns a line with fewer points that strays at most `tolerance_mm` from the given one. Its ends
/// stay.
#[must_use]
pub fn simplified(points: &[Point], tolerance_mm: f64) -> Vec<Point> {
    let mut kept: Vec<Point> = points.first().copied().into_iter().collect();
    let mut start = 0;
    while start + 1 < points.len() {
        let end = (start + PART_MAX).min(points.len() - 1);
        let part = points.get(start..=end).unwrap_or_default();
        let keep = points_to_keep(part, tolerance_mm);
        let chosen = part.iter().zip(keep).skip(1).filter(|(_, keep)| *keep);
        kept.extend(chosen.map(|(point, _)| *point));
        start = end;
    }
    kept
}

/// Chooses the points to keep by the Ramer–Douglas–Peucker algorithm, without recursion.
fn points_to_keep(part: &[Point], tolerance_mm: f64) -> Vec<bool> {
    let mut keep = vec![false; part.len()];
    let mut pending = vec![(0, part.len().saturating_sub(1))];
    while let Some((from, to)) = pending.pop() {
        let (Some(a), Some(b)) = (part.get(from), part.get(to)) else {
            continue;
        };
        for end in [from, to] {
            if let Some(keep) = keep.get_mut(end) {
                *keep = true;
            }
        }
        let inner_points = part.iter().enumerate().take(to).skip(from + 1);
        let farthest = inner_points
            .map(|(index, point)| (plane::distance_to_piece(*point, [*a, *b]), index))
            .max_by(|a, b| a.0.total_cmp(&b.0));
        if let Some((_, split)) = farthest.filter(|(mm, _)| *mm > tolerance_mm) {
            pending.extend([(from, split), (split, to)]);
        }
    }
    keep
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use super::super::compare::deviation_mm;
    use super::super::polylines;
    use super::*;
    use proptest::prelude::*;

    fn check(paths: &[Vec<Point>], expected: &[Vec<Point>]) {
        assert_eq!(join(paths.to_vec(), 0.1), expected);
    }

    #[test]
    fn joins_touching_ends_in_either_direction() {
        check(
            &[
                vec![[0.0, 0.0], [10.0, 0.0]],
                vec![[10.0, 10.0], [10.0, 0.05]],
                vec![[0.0, 0.0], [0.0, 10.0]],
            ],
            &[vec![
                [0.0, 10.0],
                [0.0, 0.0],
                [10.0, 0.0],
                [10.0, 0.05],
                [10.0, 10.0],
            ]],
        );
    }

    fn paths() -> impl Strategy<Value = Vec<Vec<Point>>> {
        let node = (0..6_u8, 0..6_u8).prop_map(|(x, y)| [f64::from(x) * 4.0, f64::from(y) * 4.0]);
        prop::collection::vec(prop::collection::vec(node, 2..7), 1..9)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        #[test]
        fn the_ink_stays_where_it_was(paths in paths()) {
            let before: Vec<_> = polylines(&paths).unwrap().strokes.into_iter().map(|s| s.points_mm).collect();
            let after = join(before.clone(), 0.1);
            let found = deviation_mm(&before, &after);
            prop_assert!(found.max_mm < 0.11, "{found:?}");
            // Joining bridges gaps, each by no more than its tolerance.
            let bridges_mm = 0.1 * f64::from(u8::try_from(before.len()).unwrap());
            prop_assert!(found.ink_mm <= found.design_mm + bridges_mm);
            prop_assert!(after.iter().all(|line| line.len() >= 2));
        }

        #[test]
        fn a_simpler_line_stays_near(path in prop::collection::vec([0.0..9.0_f64, 0.0..9.0_f64], 2..60), mm in 0.01..2.0_f64) {
            let simple = simplified(&path, mm);
            prop_assert_eq!(simple.first(), path.first());
            prop_assert_eq!(simple.last(), path.last());
            for point in path {
                let pieces = simple.windows(2).map(|pair| [pair[0], pair[1]]);
                let distances_mm = pieces.map(|piece| plane::distance_to_piece(point, piece));
                prop_assert!(distances_mm.fold(f64::INFINITY, f64::min) <= mm + 1e-9);
            }
        }
    }
}
