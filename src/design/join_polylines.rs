//! Pieces of lines made whole lines: ends that touch are joined, points that say nothing fall away.

use std::collections::HashMap;

use super::DesignStroke;

type Point = [f64; 2];

/// Largest part of a line that is simplified at once, in points; this bounds the work.
const PART_MAX: usize = 1024;

/// Points by the cell they lie in; cells are as wide as two points may be apart.
struct NearbyPoints<T> {
    cell_mm: f64,
    cells: HashMap<[i64; 2], Vec<(Point, T)>>,
}

impl<T: Copy> NearbyPoints<T> {
    fn new(cell_mm: f64) -> Self {
        Self {
            cell_mm,
            cells: HashMap::new(),
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "saturates, which does no harm"
    )]
    fn cell(&self, point: Point) -> [i64; 2] {
        point.map(|value| (value / self.cell_mm).floor().clamp(-1e15, 1e15) as i64)
    }

    fn insert(&mut self, point: Point, what: T) {
        let cell = self.cell(point);
        self.cells.entry(cell).or_default().push((point, what));
    }

    /// The nearest within a cell's width that is wanted; the first inserted of equals.
    fn nearest(&self, from: Point, is_wanted: impl Fn(&T) -> bool) -> Option<T> {
        let [x, y] = self.cell(from);
        let around = (-1..=1).flat_map(|dx| (-1..=1).map(move |dy| [x + dx, y + dy]));
        let points = around.filter_map(|cell| self.cells.get(&cell)).flatten();
        points
            .filter(|(_, what)| is_wanted(what))
            .map(|(point, what)| ((point[0] - from[0]).hypot(point[1] - from[1]), what))
            .filter(|(mm, _)| *mm <= self.cell_mm)
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, what)| *what)
    }
}

/// Two strokes may touch one another only where one pen draws both.
type PenKey = (Option<[u8; 3]>, Option<u16>);

fn hand(stroke: &DesignStroke) -> PenKey {
    (stroke.colour, stroke.pen)
}

/// One end of a stroke.
#[derive(Clone, Copy)]
struct PolylineEnd {
    stroke: usize,
    is_last: bool,
}

pub(super) fn joined(strokes: Vec<DesignStroke>, join_mm: f64) -> Vec<DesignStroke> {
    let mut ends = NearbyPoints::new(join_mm);
    for (index, stroke) in strokes.iter().enumerate() {
        for (is_last, point) in [
            (false, stroke.points_mm.first()),
            (true, stroke.points_mm.last()),
        ] {
            if let Some(point) = point.filter(|_| !is_closed(&stroke.points_mm)) {
                let end = PolylineEnd {
                    stroke: index,
                    is_last,
                };
                ends.insert(*point, end);
            }
        }
    }
    let hands: Vec<PenKey> = strokes.iter().map(hand).collect();
    let mut left: Vec<Option<DesignStroke>> = strokes.into_iter().map(Some).collect();
    let mut all = Vec::new();
    for index in 0..left.len() {
        let Some(mut stroke) = left.get_mut(index).and_then(Option::take) else {
            continue;
        };
        if !is_closed(&stroke.points_mm) {
            grow(&mut stroke, &ends, &hands, &mut left);
            stroke.points_mm.reverse();
            grow(&mut stroke, &ends, &hands, &mut left);
            stroke.points_mm.reverse();
        }
        all.push(stroke);
    }
    all
}

fn is_closed(points: &[Point]) -> bool {
    match (points.first(), points.last()) {
        (Some(first), Some(last)) => (first[0] - last[0]).hypot(first[1] - last[1]) < 1e-9,
        _ => true,
    }
}

/// Appends strokes that begin or end where this one ends, as long as there are any.
fn grow(
    stroke: &mut DesignStroke,
    ends: &NearbyPoints<PolylineEnd>,
    hands: &[PenKey],
    left: &mut [Option<DesignStroke>],
) {
    let mine = hand(stroke);
    while let Some(last) = stroke.points_mm.last().copied() {
        let is_free = |end: &PolylineEnd| {
            hands.get(end.stroke) == Some(&mine)
                && left.get(end.stroke).is_some_and(Option::is_some)
        };
        let Some(end) = ends.nearest(last, is_free) else {
            return;
        };
        let next = left.get_mut(end.stroke).and_then(Option::take);
        let Some(mut next) = next else { return };
        if end.is_last {
            next.points_mm.reverse();
        }
        let repeats = next.points_mm.first() == Some(&last);
        stroke
            .points_mm
            .extend(next.points_mm.into_iter().skip(usize::from(repeats)));
    }
}

/// The line with fewer points, no farther than `tolerance_mm` from where it was. Its ends stay.
#[must_use]
pub fn simplified(points: &[Point], tolerance_mm: f64) -> Vec<Point> {
    let mut kept: Vec<Point> = points.first().copied().into_iter().collect();
    let mut start = 0;
    while start + 1 < points.len() {
        let end = (start + PART_MAX).min(points.len() - 1);
        let part = points.get(start..=end).unwrap_or_default();
        let keeps = corners(part, tolerance_mm);
        let chosen = part.iter().zip(keeps).skip(1).filter(|(_, keeps)| *keeps);
        kept.extend(chosen.map(|(point, _)| *point));
        start = end;
    }
    kept
}

/// Ramer's and Douglas and Peucker's choice, without recursion.
fn corners(part: &[Point], tolerance_mm: f64) -> Vec<bool> {
    let mut keeps = vec![false; part.len()];
    let mut open = vec![(0, part.len().saturating_sub(1))];
    while let Some((from, to)) = open.pop() {
        for end in [from, to] {
            if let Some(keep) = keeps.get_mut(end) {
                *keep = true;
            }
        }
        let farthest = (from + 1..to)
            .map(|index| (segment_distance(part, index, from, to), index))
            .max_by(|a, b| a.0.total_cmp(&b.0));
        if let Some((_, middle)) = farthest.filter(|(mm, _)| *mm > tolerance_mm) {
            open.push((from, middle));
            open.push((middle, to));
        }
    }
    keeps
}

/// Returns the distance of a point from the segment between two others.
fn segment_distance(part: &[Point], index: usize, from: usize, to: usize) -> f64 {
    match (part.get(index), part.get(from), part.get(to)) {
        (Some(point), Some(a), Some(b)) => super::compare::to_piece(*point, &[*a, *b]),
        _ => 0.0,
    }
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

    fn check(paths: &[Vec<Point>], wanted: &[Vec<Point>]) {
        let found = joined(polylines(paths).unwrap().strokes, 0.1);
        let found: Vec<_> = found.into_iter().map(|s| s.points_mm).collect();
        assert_eq!(found, wanted);
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

    #[test]
    fn keeps_apart_what_two_pens_draw() {
        let mut design =
            polylines(&[vec![[0.0, 0.0], [5.0, 0.0]], vec![[5.0, 0.0], [0.0, 0.0]]]).unwrap();
        design.strokes[1].colour = Some([255, 0, 0]);
        assert_eq!(joined(design.strokes, 0.1).len(), 2);
    }

    fn paths() -> impl Strategy<Value = Vec<Vec<Point>>> {
        let whole = (0..6_u8, 0..6_u8).prop_map(|(x, y)| [f64::from(x) * 4.0, f64::from(y) * 4.0]);
        prop::collection::vec(prop::collection::vec(whole, 2..7), 1..9)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        #[test]
        fn the_ink_stays_where_it_was(paths in paths()) {
            let before = polylines(&paths).unwrap();
            let lines = |d: &[DesignStroke]| d.iter().map(|s| s.points_mm.clone()).collect::<Vec<_>>();
            let after = joined(before.strokes.clone(), 0.1);
            let found = deviation_mm(&lines(&before.strokes), &lines(&after));
            prop_assert!(found.max_mm < 0.11, "{found:?}");
            // Joining bridges gaps, each by no more than its tolerance.
            let bridges_mm = 0.1 * f64::from(u8::try_from(before.strokes.len()).unwrap());
            prop_assert!(found.ink_mm <= found.design_mm + bridges_mm);
            prop_assert!(after.iter().all(|s| s.points_mm.len() >= 2));
        }

        #[test]
        fn a_simpler_line_stays_near(path in prop::collection::vec([0.0..9.0_f64, 0.0..9.0_f64], 2..60), mm in 0.01..2.0_f64) {
            let simple = simplified(&path, mm);
            prop_assert_eq!(simple.first(), path.first());
            prop_assert_eq!(simple.last(), path.last());
            for point in path {
                let pieces = simple.windows(2).map(|pair| [pair[0], pair[1]]);
                let near = pieces.map(|piece| super::super::compare::to_piece(point, &piece));
                prop_assert!(near.fold(f64::INFINITY, f64::min) <= mm + 1e-9);
            }
        }
    }
}
