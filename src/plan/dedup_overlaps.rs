//! Every line once: what lies on a line that the same pen drew before is not drawn again, wherever
//! the vertices of either are.
//!
//! Lines that lie on one another meet a column of the sheet at the same height, so sorting by
//! column and height brings them together; no line is compared with all others.

use std::collections::HashMap;

use super::prepare_strokes::PreparedStroke;
use base::plane::{self, Point, distance};
use scene::SheetStroke;

/// From where to where along a line, in mm.
type LineSpan = [f64; 2];

/// A line that is no farther than this from another lies on it.
const ON_MM: f64 = 0.005;
/// Shorter lines are dots: they are never taken away.
const DOT_MM: f64 = 0.02;
/// Longest covered gap in the middle of a stroke that is drawn again: lifting the pen takes longer.
const GAP_MM: f64 = 0.5;
/// Columns are as wide as lines are long on average, within these.
const COLUMN_MM: std::ops::RangeInclusive<f64> = 1.0..=10.0;
/// Lines that meet a column within half of this are compared.
const ROW_MM: f64 = 0.02;
/// Number of lines with which a line is compared in a column; this bounds the work.
const LOOKS_MAX: usize = 16;
/// In how many of the columns that two lines share they are compared.
const SHARED_MAX: i64 = 2;
/// No line of a sheet passes more columns.
const COLUMNS_MAX: i64 = 10_000;
/// Lines as steep as they are flat, within this share, are looked for in both directions.
const DIAGONAL: f64 = 0.9;

/// A straight line of a stroke.
#[derive(Clone, Copy)]
struct LinePiece {
    pen: usize,
    from: Point,
    to: Point,
    length_mm: f64,
}

impl LinePiece {
    fn at(&self, along_mm: f64) -> Point {
        plane::along(self.from, self.to, along_mm / self.length_mm)
    }

    /// Returns the distance of a point along the line, and its offset beside it.
    fn project(&self, [x, y]: Point) -> Point {
        let [[ax, ay], [bx, by]] = [self.from, self.to];
        let (ux, uy) = ((bx - ax) / self.length_mm, (by - ay) / self.length_mm);
        [(x - ax) * ux + (y - ay) * uy, (y - ay) * ux - (x - ax) * uy]
    }

    fn is_dot(&self) -> bool {
        self.length_mm <= DOT_MM
    }
}

/// Without lines that were drawn before, by the same pen in either direction. A stroke all of
/// which was drawn before is gone; one that is too short to have lines stays.
#[expect(clippy::indexing_slicing, reason = "pieces are those of all strokes")]
pub(super) fn remove_overlaps(strokes: Vec<PreparedStroke>) -> Vec<PreparedStroke> {
    let pieces: Vec<LinePiece> = strokes.iter().flat_map(pieces).collect();
    let left = remaining_spans(&pieces);
    if left.is_empty() {
        return strokes;
    }
    let mut kept = Vec::with_capacity(strokes.len());
    let mut first = 0;
    for tidied in strokes {
        let next = first + tidied.stroke.points_mm.len().saturating_sub(1);
        let own = first..next;
        first = next;
        if own.clone().all(|index| !left.contains_key(&index)) {
            kept.push(tidied);
            continue;
        }
        let spans = own.clone().map(|index| left.get(&index));
        let own = &pieces[own.clone()];
        let runs = kept_runs(own, spans.collect());
        kept.extend(cut(&tidied, own, &runs));
    }
    kept
}

fn pieces(tidied: &PreparedStroke) -> impl Iterator<Item = LinePiece> {
    let pen = tidied.stroke.pen;
    let pieces = plane::pieces(&tidied.stroke.points_mm);
    pieces.map(move |[from, to]| LinePiece {
        pen,
        from,
        to,
        length_mm: distance(from, to),
    })
}

/// Returns the remaining spans of each line of which a part was drawn before.
#[expect(clippy::indexing_slicing, reason = "pairs are of these pieces")]
fn remaining_spans(pieces: &[LinePiece]) -> HashMap<usize, Vec<LineSpan>> {
    let mut left: HashMap<usize, Vec<LineSpan>> = HashMap::new();
    for pair in pairs(pieces) {
        let (later, earlier) = (pair.0 as usize, pair.1 as usize);
        let (one, other) = (&pieces[earlier], &pieces[later]);
        let Some(shared) = LineOverlap::of(one, other) else {
            continue;
        };
        // Only ink covers: what was itself left out may lie a little farther off.
        let inked = match left.get(&earlier) {
            Some(stays) => stays.clone(),
            None => vec![[0.0, one.length_mm]],
        };
        let stays = left
            .entry(later)
            .or_insert_with(|| vec![[0.0, other.length_mm]]);
        for part in inked {
            if let Some(covered) = shared.on_later(part) {
                *stays = without(stays, covered);
            }
        }
    }
    left
}

/// The overlap of two lines.
struct LineOverlap {
    on_earlier: LineSpan,
    /// The same places on the later line, perhaps in reverse direction.
    on_later: LineSpan,
}

impl LineOverlap {
    fn of(earlier: &LinePiece, later: &LinePiece) -> Option<Self> {
        let ends @ [[u, beside], [v, aside]] =
            [later.from, later.to].map(|end| earlier.project(end));
        let [low, high] = if u <= v { [u, v] } else { [v, u] };
        let on_earlier = [low.max(0.0), high.min(earlier.length_mm)];
        if on_earlier[1] - on_earlier[0] <= DOT_MM || high - low <= DOT_MM {
            return None;
        }
        let share = |along: f64| (along - ends[0][0]) / (v - u);
        let is_near = |along: f64| (beside + (aside - beside) * share(along)).abs() <= ON_MM;
        on_earlier.into_iter().all(is_near).then(|| Self {
            on_earlier,
            on_later: on_earlier.map(|along| share(along) * later.length_mm),
        })
    }

    /// Returns the part of the later line that is covered by a part of the earlier one.
    fn on_later(&self, [low, high]: LineSpan) -> Option<LineSpan> {
        let [from, to] = self.on_earlier;
        let [low, high] = [low.max(from), high.min(to)];
        if high <= low {
            return None;
        }
        let [start, end] = self.on_later;
        let [a, b] = [low, high].map(|at| start + (at - from) / (to - from) * (end - start));
        Some([a.min(b), a.max(b)])
    }
}

/// Spans without one; slivers of a dot's length fall away with it.
fn without(spans: &[LineSpan], [low, high]: LineSpan) -> Vec<LineSpan> {
    let parts = spans
        .iter()
        .flat_map(|[from, to]| [[*from, to.min(low)], [from.max(high), *to]]);
    parts.filter(|[from, to]| to - from > DOT_MM).collect()
}

/// A piece in a column.
struct ColumnEntry {
    /// Of pen, direction, column and height.
    key: u64,
    column: i64,
    from_mm: f64,
    to_mm: f64,
    piece: u32,
}

/// Pieces that may lie on one another, the later one first, in its order.
fn pairs(pieces: &[LinePiece]) -> Vec<(u32, u32)> {
    let column_mm = column_mm(pieces);
    let mut pairs = Vec::new();
    // Heights that differ by half a row share a row in one of the two passes.
    for half in [0.0, 0.5] {
        let mut entries = entries(pieces, column_mm, half);
        entries.sort_unstable_by(|a, b| {
            let places = a.key.cmp(&b.key).then(a.from_mm.total_cmp(&b.from_mm));
            places.then(a.piece.cmp(&b.piece))
        });
        for (index, one) in entries.iter().enumerate() {
            let behind = entries.iter().skip(index + 1).take(LOOKS_MAX);
            let over = behind.take_while(|o| o.key == one.key && o.from_mm < one.to_mm - ON_MM);
            let early = over.filter(|o| o.column < whole(o.from_mm / column_mm) + SHARED_MAX);
            pairs.extend(early.map(|o| (o.piece.max(one.piece), o.piece.min(one.piece))));
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    pairs.retain(|(later, earlier)| later != earlier);
    pairs
}

fn column_mm(pieces: &[LinePiece]) -> f64 {
    let all_mm: f64 = pieces.iter().map(|piece| piece.length_mm).sum();
    let mean_mm = all_mm / pieces.len().max(1) as f64;
    mean_mm.clamp(*COLUMN_MM.start(), *COLUMN_MM.end())
}

fn entries(pieces: &[LinePiece], column_mm: f64, half: f64) -> Vec<ColumnEntry> {
    let mut entries = Vec::with_capacity(pieces.len());
    for (index, piece) in (0..).zip(pieces).filter(|(_, piece)| !piece.is_dot()) {
        let [dx, dy] = [0, 1].map(|axis| side(piece, axis).abs());
        for axis in 0..2 {
            let (along, across) = if axis == 0 { (dx, dy) } else { (dy, dx) };
            if along >= DIAGONAL * across {
                enter(&mut entries, (index, piece), axis, column_mm, half);
            }
        }
    }
    entries
}

fn side(piece: &LinePiece, axis: usize) -> f64 {
    coordinate(piece.to, axis) - coordinate(piece.from, axis)
}

fn coordinate(point: Point, axis: usize) -> f64 {
    let [x, y] = point;
    if axis == 0 { x } else { y }
}

/// One entry for each column that the piece passes, at the height of its line in the column's
/// middle.
fn enter(
    entries: &mut Vec<ColumnEntry>,
    (index, piece): (u32, &LinePiece),
    axis: usize,
    column_mm: f64,
    half: f64,
) {
    let [a, b] = [piece.from, piece.to].map(|end| coordinate(end, axis));
    let (from_mm, to_mm) = (a.min(b), a.max(b));
    let slope = side(piece, 1 - axis) / side(piece, axis);
    let (first, last) = (whole(from_mm / column_mm), whole(to_mm / column_mm));
    for column in first..=last.min(first.saturating_add(COLUMNS_MAX)) {
        let middle = (column as f64 + 0.5) * column_mm;
        let height = coordinate(piece.from, 1 - axis) + (middle - a) * slope;
        let row = whole(height / ROW_MM + half);
        entries.push(ColumnEntry {
            key: key([piece.pen as u64, axis as u64], [column, row]),
            column,
            from_mm,
            to_mm,
            piece: index,
        });
    }
}

#[expect(clippy::cast_possible_truncation, reason = "`as` saturates")]
fn whole(value: f64) -> i64 {
    value.floor() as i64
}

/// Two places of one key cost a comparison and nothing else.
fn key(of: [u64; 2], at: [i64; 2]) -> u64 {
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let words = of.into_iter().chain(at.map(i64::cast_unsigned));
    words.fold(0, |key: u64, word| {
        (key ^ word).wrapping_mul(SPREAD).rotate_left(29)
    })
}

/// The spans of a whole stroke that stay, along all of it.
fn kept_runs(own: &[LinePiece], left: Vec<Option<&Vec<LineSpan>>>) -> Vec<LineSpan> {
    let mut runs: Vec<LineSpan> = Vec::new();
    let mut before_mm = 0.0;
    for (piece, left) in own.iter().zip(left) {
        let whole = [[0.0, piece.length_mm]];
        let spans = left.map_or(&whole[..], Vec::as_slice);
        for [from, to] in spans.iter().map(|span| span.map(|mm| before_mm + mm)) {
            match runs.last_mut().filter(|last| from - last[1] < GAP_MM) {
                Some(last) => last[1] = to,
                None => runs.push([from, to]),
            }
        }
        before_mm += piece.length_mm;
    }
    runs.retain(|[from, to]| to - from > DOT_MM);
    runs
}

/// Cuts a stroke into its runs, which are in its order: each a stroke of its own.
fn cut(of: &PreparedStroke, own: &[LinePiece], runs: &[LineSpan]) -> Vec<PreparedStroke> {
    let (mut rest, mut before_mm) = (own, 0.0);
    let as_stroke = |[from, to]: &LineSpan| {
        // Lines that end before this run end before all later ones.
        while let Some((piece, behind)) = rest.split_first()
            && before_mm + piece.length_mm <= *from
        {
            (rest, before_mm) = (behind, before_mm + piece.length_mm);
        }
        PreparedStroke {
            stroke: SheetStroke {
                points_mm: points_of(rest, [*from, *to], before_mm),
                pen: of.stroke.pen,
                source: of.stroke.source.clone(),
                pause: of.stroke.pause.clone(),
            },
            parts: of.parts.clone(),
        }
    };
    runs.iter().map(as_stroke).collect()
}

/// Returns the points of a run along lines, the first of which begins so far along the stroke.
fn points_of(lines: &[LinePiece], [from, to]: LineSpan, mut before_mm: f64) -> Vec<Point> {
    let mut points = Vec::new();
    for piece in lines {
        if before_mm >= to {
            break;
        }
        let [low, high] = [from, to].map(|mm| (mm - before_mm).clamp(0.0, piece.length_mm));
        before_mm += piece.length_mm;
        if high <= low {
            continue;
        }
        if points.is_empty() {
            points.push(if low > 0.0 { piece.at(low) } else { piece.from });
        }
        let ends = high >= piece.length_mm;
        points.push(if ends { piece.to } else { piece.at(high) });
    }
    points
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn strokes(of: &[Vec<Point>]) -> Vec<PreparedStroke> {
        let stroke = |(index, points_mm): (usize, &Vec<Point>)| PreparedStroke {
            stroke: SheetStroke {
                points_mm: points_mm.clone(),
                pen: 0,
                source: String::new(),
                pause: None,
            },
            parts: vec![index],
        };
        of.iter().enumerate().map(stroke).collect()
    }

    fn length_mm(of: &[PreparedStroke]) -> f64 {
        of.iter()
            .flat_map(pieces)
            .map(|piece| piece.length_mm)
            .sum()
    }

    fn check(lines: &[Vec<Point>], wanted_mm: f64) {
        // At any angle and any place.
        for turn in [0.0, 0.3, std::f64::consts::FRAC_PI_4, 1.2, 2.0] {
            let (sin, cos) = f64::sin_cos(turn);
            let turned = |[x, y]: &Point| [87.3 + x * cos - y * sin, 31.7 + x * sin + y * cos];
            let lines: Vec<Vec<Point>> = lines
                .iter()
                .map(|line| line.iter().map(turned).collect())
                .collect();
            let found = length_mm(&remove_overlaps(strokes(&lines)));
            assert!(
                (found - wanted_mm).abs() < 0.05,
                "{turn} {lines:?}: {found}"
            );
        }
    }

    #[test]
    fn lines_on_lines_are_drawn_once_wherever_their_vertices_are() {
        let line = |points: &[f64]| points.iter().map(|x| [*x, 0.0]).collect::<Vec<Point>>();
        check(&[line(&[0.0, 25.0, 50.0]), line(&[50.0, 0.0])], 50.0);
        check(&[line(&[0.0, 50.0]), line(&[10.0, 20.0])], 50.0);
        check(&[line(&[10.0, 20.0]), line(&[0.0, 50.0])], 50.0);
        check(&[line(&[0.0, 30.0]), line(&[20.0, 50.0])], 50.0);
        check(&[line(&[0.0, 50.0, 20.0, 30.0])], 50.0);
        check(
            &[line(&[0.0, 20.0]), line(&[30.0, 50.0]), line(&[50.0, 0.0])],
            50.0,
        );
        let fine: Vec<f64> = (0..=500).map(|n| f64::from(n) * 0.1).collect();
        check(&[line(&fine), line(&[0.0, 50.0])], 50.0);
        check(&[line(&[0.0, 50.0]), line(&fine)], 50.0);
    }

    #[test]
    fn neighbours_crossings_and_touching_ends_stay() {
        let near = vec![[0.0, 0.0], [50.0, 0.0]];
        check(&[near.clone(), vec![[0.0, 0.02], [50.0, 0.02]]], 100.0);
        check(&[near.clone(), vec![[0.0, -0.1], [50.0, 0.1]]], 100.0);
        check(&[near.clone(), vec![[25.0, -25.0], [25.0, 25.0]]], 100.0);
        check(&[near, vec![[50.0, 0.0], [100.0, 0.0]]], 100.0);
    }

    #[test]
    fn a_chain_of_near_lines_does_not_drift() {
        let lines: Vec<Vec<Point>> = (0..40)
            .map(|n| vec![[0.0, f64::from(n) * 0.004], [10.0, f64::from(n) * 0.004]])
            .collect();
        let kept = remove_overlaps(strokes(&lines));
        assert_eq!(kept.len(), 20);
    }

    #[test]
    fn the_pen_is_not_lifted_over_a_short_stretch() {
        let found = remove_overlaps(strokes(&[
            vec![[0.0, 0.0], [0.3, 0.0]],
            vec![[-5.0, 0.0], [5.0, 0.0]],
        ]));
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].stroke.points_mm, [[-5.0, 0.0], [5.0, 0.0]]);
    }

    #[test]
    fn a_stroke_in_many_runs_takes_no_more_room_than_its_points() {
        // A comb on a line that was drawn before: each tooth is a run.
        let teeth = (0..2_000_u32).flat_map(|n| {
            let x = f64::from(n);
            [[x, 0.0], [x, 5.0], [x + 0.25, 5.0], [x + 0.25, 0.0]]
        });
        let lines = [vec![[0.0, 0.0], [2_000.0, 0.0]], teeth.collect()];
        let kept = remove_overlaps(strokes(&lines));
        assert_eq!(kept.len(), 2_001);
        let room = kept.iter().map(|run| run.stroke.points_mm.capacity());
        assert!(
            room.clone().sum::<usize>() < 3 * 8_000,
            "{}",
            room.sum::<usize>()
        );
    }

    #[test]
    fn many_lines_on_one_another_are_not_all_compared() {
        // Each lies on the one before but for a step: every two of them overlap.
        let step = |n: u32| f64::from(n) * 1e-3;
        let lines: Vec<Vec<Point>> = (0..5_000)
            .map(|n| vec![[step(n), 0.0], [100.0 + step(n), 0.0]])
            .collect();
        let all: Vec<LinePiece> = strokes(&lines).iter().flat_map(pieces).collect();
        assert!(pairs(&all).len() <= lines.len() * LOOKS_MAX * 4);
        let drawn_mm = length_mm(&remove_overlaps(strokes(&lines)));
        assert!(drawn_mm < 0.1 * 100.0 * 5_000.0, "{drawn_mm}");
    }

    /// Strokes along the lines of a grid of 3 mm, of steps of any number of cells.
    fn on_a_grid() -> impl Strategy<Value = Vec<Vec<[i32; 2]>>> {
        let step = (0..2_usize, -4..5_i32);
        let stroke = ((0..8_i32, 0..8_i32), prop::collection::vec(step, 1..6));
        let walked = stroke.prop_map(|((x, y), steps)| {
            let mut at = [x, y];
            let mut points = vec![at];
            for (axis, by) in steps.into_iter().filter(|(_, by)| *by != 0) {
                at[axis] += by;
                points.push(at);
            }
            points
        });
        prop::collection::vec(walked, 1..8)
    }

    /// The grid's edges under a line.
    fn edges(from: [i32; 2], to: [i32; 2]) -> HashSet<[[i32; 2]; 2]> {
        let step = [0, 1].map(|axis| (to[axis] - from[axis]).signum());
        let mut at = from;
        let mut all = HashSet::new();
        while at != to {
            let next = [at[0] + step[0], at[1] + step[1]];
            all.insert([at.min(next), at.max(next)]);
            at = next;
        }
        all
    }

    proptest! {
        #[test]
        fn as_much_is_drawn_as_there_is_to_see(grid in on_a_grid()) {
            let lines: Vec<Vec<Point>> = grid
                .iter()
                .filter(|line| line.len() > 1)
                .map(|line| line.iter().map(|p| p.map(|v| f64::from(v) * 3.0)).collect())
                .collect();
            let seen: HashSet<_> = grid
                .iter()
                .flat_map(|line| line.windows(2).flat_map(|pair| edges(pair[0], pair[1])))
                .collect();
            let wanted_mm = 3.0 * f64::from(u32::try_from(seen.len()).unwrap());
            let kept = remove_overlaps(strokes(&lines));
            prop_assert!((length_mm(&kept) - wanted_mm).abs() < 1e-6, "{lines:?}");
            let ends = |line: &PreparedStroke| line.stroke.points_mm.clone();
            prop_assert!(kept.iter().map(ends).all(|points| points.len() > 1));
        }
    }
}
