//! Draws every line once: what lies on a line that the same pen drew before is not drawn again,
//! wherever the vertices of either are.
//!
//! Lines that lie on one another meet a column of the sheet at the same height, so sorting by
//! column and height brings them together; no line is compared with all others.

use std::collections::HashMap;

use super::prepare_strokes::PreparedStroke;
use base::plane::{self, Point, distance};
use scene::SheetStroke;

/// Start and end of a stretch along a line, in mm.
type LineSpan = [f64; 2];

/// A line that is no farther than this from another lies on it.
const ON_MM: f64 = 0.005;
/// Shorter lines are dots: they are never removed.
const DOT_MM: f64 = 0.02;
/// Longest covered gap within a stroke that is drawn again: lifting the pen would take longer.
const GAP_MM: f64 = 0.5;
/// Columns are as wide as the mean line is long, within this range.
const COLUMN_MM: std::ops::RangeInclusive<f64> = 1.0..=10.0;
/// Lines that meet a column within half of this are compared.
const ROW_MM: f64 = 0.02;
/// Number of lines with which a line is compared in a column; this bounds the work.
const LOOKS_MAX: usize = 16;
/// Number of the columns that two lines share in which they are compared.
const SHARED_MAX: i64 = 2;
/// No line of a sheet crosses more columns than this.
const COLUMNS_MAX: i64 = 10_000;
/// Lines within this ratio of 45° are entered in columns of both axes.
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

    /// Returns how far along the line a point is, and its offset from the line.
    fn project(&self, [x, y]: Point) -> Point {
        let [[ax, ay], [bx, by]] = [self.from, self.to];
        let (ux, uy) = ((bx - ax) / self.length_mm, (by - ay) / self.length_mm);
        [(x - ax) * ux + (y - ay) * uy, (y - ay) * ux - (x - ax) * uy]
    }

    fn is_dot(&self) -> bool {
        self.length_mm <= DOT_MM
    }
}

/// Removes lines that the same pen drew before, in either direction. A stroke that was drawn before
/// in full is dropped; one that is too short to have lines stays.
#[expect(clippy::indexing_slicing, reason = "pieces are those of all strokes")]
pub(super) fn remove_overlaps(strokes: Vec<PreparedStroke>) -> Vec<PreparedStroke> {
    let pieces: Vec<LinePiece> = strokes.iter().flat_map(line_pieces).collect();
    let remaining = remaining_spans(&pieces);
    if remaining.is_empty() {
        return strokes;
    }
    let mut kept = Vec::with_capacity(strokes.len());
    let mut first = 0;
    for prepared in strokes {
        let next = first + prepared.stroke.points_mm.len().saturating_sub(1);
        let own = first..next;
        first = next;
        if own.clone().all(|index| !remaining.contains_key(&index)) {
            kept.push(prepared);
            continue;
        }
        let spans = own.clone().map(|index| remaining.get(&index));
        let own = &pieces[own.clone()];
        let runs = kept_runs(own, spans.collect());
        kept.extend(cut(&prepared, own, &runs));
    }
    kept
}

fn line_pieces(prepared: &PreparedStroke) -> impl Iterator<Item = LinePiece> {
    let pen = prepared.stroke.pen;
    let segments = plane::pieces(&prepared.stroke.points_mm);
    segments.map(move |[from, to]| LinePiece {
        pen,
        from,
        to,
        length_mm: distance(from, to),
    })
}

/// Returns the remaining spans of each line of which a part was drawn before.
#[expect(clippy::indexing_slicing, reason = "pairs are of these pieces")]
fn remaining_spans(pieces: &[LinePiece]) -> HashMap<usize, Vec<LineSpan>> {
    let mut remaining: HashMap<usize, Vec<LineSpan>> = HashMap::new();
    for pair in candidate_pairs(pieces) {
        let (later, earlier) = (pair.0 as usize, pair.1 as usize);
        let (earlier_piece, later_piece) = (&pieces[earlier], &pieces[later]);
        let Some(overlap) = LineOverlap::between(earlier_piece, later_piece) else {
            continue;
        };
        // Only what is drawn covers: a removed line may lie a little farther off.
        let inked = match remaining.get(&earlier) {
            Some(kept) => kept.clone(),
            None => vec![[0.0, earlier_piece.length_mm]],
        };
        let kept = remaining
            .entry(later)
            .or_insert_with(|| vec![[0.0, later_piece.length_mm]]);
        for span in inked {
            if let Some(covered) = overlap.span_on_later(span) {
                *kept = subtract_span(kept, covered);
            }
        }
    }
    remaining
}

/// The overlap of two lines.
struct LineOverlap {
    on_earlier: LineSpan,
    /// The same places on the later line, perhaps in reverse direction.
    on_later: LineSpan,
}

impl LineOverlap {
    fn between(earlier: &LinePiece, later: &LinePiece) -> Option<Self> {
        let [[u, u_offset], [v, v_offset]] = [later.from, later.to].map(|end| earlier.project(end));
        let [low, high] = if u <= v { [u, v] } else { [v, u] };
        let on_earlier = [low.max(0.0), high.min(earlier.length_mm)];
        if on_earlier[1] - on_earlier[0] <= DOT_MM || high - low <= DOT_MM {
            return None;
        }
        let fraction = |along: f64| (along - u) / (v - u);
        let is_near =
            |along: f64| (u_offset + (v_offset - u_offset) * fraction(along)).abs() <= ON_MM;
        on_earlier.into_iter().all(is_near).then(|| Self {
            on_earlier,
            on_later: on_earlier.map(|along| fraction(along) * later.length_mm),
        })
    }

    /// Returns the part of the later line that is covered by a part of the earlier one.
    fn span_on_later(&self, [low, high]: LineSpan) -> Option<LineSpan> {
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

/// Removes a span from others, and drops the slivers that are no longer than a dot.
fn subtract_span(spans: &[LineSpan], [low, high]: LineSpan) -> Vec<LineSpan> {
    let parts = spans
        .iter()
        .flat_map(|[from, to]| [[*from, to.min(low)], [from.max(high), *to]]);
    parts.filter(|[from, to]| to - from > DOT_MM).collect()
}

/// A piece in a column.
struct ColumnEntry {
    /// Hash of pen, axis, column and height.
    key: u64,
    column: i64,
    from_mm: f64,
    to_mm: f64,
    piece: u32,
}

/// Returns pairs of pieces that may overlap, as (later, earlier), sorted.
fn candidate_pairs(pieces: &[LinePiece]) -> Vec<(u32, u32)> {
    let column_mm = column_mm(pieces);
    let mut pairs = Vec::new();
    // Heights that differ by half a row share a row in one of the two passes.
    for row_offset in [0.0, 0.5] {
        let mut entries = column_entries(pieces, column_mm, row_offset);
        entries.sort_unstable_by(|a, b| {
            let order = a.key.cmp(&b.key).then(a.from_mm.total_cmp(&b.from_mm));
            order.then(a.piece.cmp(&b.piece))
        });
        for (index, one) in entries.iter().enumerate() {
            let next_entries = entries.iter().skip(index + 1).take(LOOKS_MAX);
            let overlaps = |o: &&ColumnEntry| o.key == one.key && o.from_mm < one.to_mm - ON_MM;
            let is_early = |o: &&ColumnEntry| o.column < floor(o.from_mm / column_mm) + SHARED_MAX;
            let found = next_entries.take_while(overlaps).filter(is_early);
            pairs.extend(found.map(|o| (o.piece.max(one.piece), o.piece.min(one.piece))));
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    pairs.retain(|(later, earlier)| later != earlier);
    pairs
}

fn column_mm(pieces: &[LinePiece]) -> f64 {
    let total_mm: f64 = pieces.iter().map(|piece| piece.length_mm).sum();
    let mean_mm = total_mm / pieces.len().max(1) as f64;
    mean_mm.clamp(*COLUMN_MM.start(), *COLUMN_MM.end())
}

fn column_entries(pieces: &[LinePiece], column_mm: f64, row_offset: f64) -> Vec<ColumnEntry> {
    let mut entries = Vec::with_capacity(pieces.len());
    for (index, piece) in (0..).zip(pieces).filter(|(_, piece)| !piece.is_dot()) {
        let [dx, dy] = [0, 1].map(|axis| extent(piece, axis).abs());
        for axis in 0..2 {
            let (along, across) = if axis == 0 { (dx, dy) } else { (dy, dx) };
            if along >= DIAGONAL * across {
                push_entries(&mut entries, (index, piece), axis, column_mm, row_offset);
            }
        }
    }
    entries
}

fn extent(piece: &LinePiece, axis: usize) -> f64 {
    coordinate(piece.to, axis) - coordinate(piece.from, axis)
}

fn coordinate(point: Point, axis: usize) -> f64 {
    let [x, y] = point;
    if axis == 0 { x } else { y }
}

/// Adds one entry for each column that the piece crosses, at the height of its line in the column's
/// middle.
fn push_entries(
    entries: &mut Vec<ColumnEntry>,
    (index, piece): (u32, &LinePiece),
    axis: usize,
    column_mm: f64,
    row_offset: f64,
) {
    let [a, b] = [piece.from, piece.to].map(|end| coordinate(end, axis));
    let (from_mm, to_mm) = (a.min(b), a.max(b));
    let slope = extent(piece, 1 - axis) / extent(piece, axis);
    let (first, last) = (floor(from_mm / column_mm), floor(to_mm / column_mm));
    for column in first..=last.min(first.saturating_add(COLUMNS_MAX)) {
        let centre_mm = (column as f64 + 0.5) * column_mm;
        let height_mm = coordinate(piece.from, 1 - axis) + (centre_mm - a) * slope;
        let row = floor(height_mm / ROW_MM + row_offset);
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
fn floor(value: f64) -> i64 {
    value.floor() as i64
}

/// Hashes a cell. A collision costs one comparison and nothing else.
fn key(piece: [u64; 2], cell: [i64; 2]) -> u64 {
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let parts = piece.into_iter().chain(cell.map(i64::cast_unsigned));
    parts.fold(0, |key: u64, part| {
        (key ^ part).wrapping_mul(SPREAD).rotate_left(29)
    })
}

/// Returns the spans of a stroke that remain, measured from its beginning.
fn kept_runs(pieces: &[LinePiece], remaining: Vec<Option<&Vec<LineSpan>>>) -> Vec<LineSpan> {
    let mut runs: Vec<LineSpan> = Vec::new();
    let mut before_mm = 0.0;
    for (piece, remaining) in pieces.iter().zip(remaining) {
        let full_span = [[0.0, piece.length_mm]];
        let spans = remaining.map_or(&full_span[..], Vec::as_slice);
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

/// Cuts a stroke into its runs, in order, each a stroke of its own.
fn cut(parent: &PreparedStroke, pieces: &[LinePiece], runs: &[LineSpan]) -> Vec<PreparedStroke> {
    let (mut rest, mut before_mm) = (pieces, 0.0);
    let as_stroke = |[from, to]: &LineSpan| {
        // Lines that end before this run end before all later ones.
        while let Some((piece, after)) = rest.split_first()
            && before_mm + piece.length_mm <= *from
        {
            (rest, before_mm) = (after, before_mm + piece.length_mm);
        }
        PreparedStroke {
            stroke: SheetStroke {
                points_mm: run_points(rest, [*from, *to], before_mm),
                pen: parent.stroke.pen,
                source: parent.stroke.source.clone(),
                pause: parent.stroke.pause.clone(),
            },
            parts: parent.parts.clone(),
        }
    };
    runs.iter().map(as_stroke).collect()
}

/// Returns the points of a run. The first line begins `before_mm` along the stroke.
fn run_points(lines: &[LinePiece], [from, to]: LineSpan, mut before_mm: f64) -> Vec<Point> {
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
        let at_end = high >= piece.length_mm;
        points.push(if at_end { piece.to } else { piece.at(high) });
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

    fn strokes(lines: &[Vec<Point>]) -> Vec<PreparedStroke> {
        let stroke = |(index, points_mm): (usize, &Vec<Point>)| PreparedStroke {
            stroke: SheetStroke {
                points_mm: points_mm.clone(),
                pen: 0,
                source: String::new(),
                pause: None,
            },
            parts: vec![index],
        };
        lines.iter().enumerate().map(stroke).collect()
    }

    fn length_mm(strokes: &[PreparedStroke]) -> f64 {
        strokes
            .iter()
            .flat_map(line_pieces)
            .map(|piece| piece.length_mm)
            .sum()
    }

    fn check(lines: &[Vec<Point>], expected_mm: f64) {
        // At any angle and any place.
        for rotation_rad in [0.0, 0.3, std::f64::consts::FRAC_PI_4, 1.2, 2.0] {
            let (sin, cos) = f64::sin_cos(rotation_rad);
            let rotate = |[x, y]: &Point| [87.3 + x * cos - y * sin, 31.7 + x * sin + y * cos];
            let lines: Vec<Vec<Point>> = lines
                .iter()
                .map(|line| line.iter().map(rotate).collect())
                .collect();
            let found = length_mm(&remove_overlaps(strokes(&lines)));
            assert!(
                (found - expected_mm).abs() < 0.05,
                "{rotation_rad} {lines:?}: {found}"
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
        let capacities = kept.iter().map(|run| run.stroke.points_mm.capacity());
        assert!(
            capacities.clone().sum::<usize>() < 3 * 8_000,
            "{}",
            capacities.sum::<usize>()
        );
    }

    #[test]
    fn many_lines_on_one_another_are_not_all_compared() {
        // Each is the one before shifted by a step: every two of them overlap.
        let step = |n: u32| f64::from(n) * 1e-3;
        let lines: Vec<Vec<Point>> = (0..5_000)
            .map(|n| vec![[step(n), 0.0], [100.0 + step(n), 0.0]])
            .collect();
        let all: Vec<LinePiece> = strokes(&lines).iter().flat_map(line_pieces).collect();
        assert!(candidate_pairs(&all).len() <= lines.len() * LOOKS_MAX * 4);
        let drawn_mm = length_mm(&remove_overlaps(strokes(&lines)));
        assert!(drawn_mm < 0.1 * 100.0 * 5_000.0, "{drawn_mm}");
    }

    /// Strokes along the lines of a 3 mm grid, in steps of any number of cells.
    fn on_a_grid() -> impl Strategy<Value = Vec<Vec<[i32; 2]>>> {
        let step = (0..2_usize, -4..5_i32);
        let stroke = ((0..8_i32, 0..8_i32), prop::collection::vec(step, 1..6));
        let points = stroke.prop_map(|((x, y), steps)| {
            let mut at = [x, y];
            let mut points = vec![at];
            for (axis, by) in steps.into_iter().filter(|(_, by)| *by != 0) {
                at[axis] += by;
                points.push(at);
            }
            points
        });
        prop::collection::vec(points, 1..8)
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
            let grid_edges: HashSet<_> = grid
                .iter()
                .flat_map(|line| line.windows(2).flat_map(|pair| edges(pair[0], pair[1])))
                .collect();
            let expected_mm = 3.0 * f64::from(u32::try_from(grid_edges.len()).unwrap());
            let kept = remove_overlaps(strokes(&lines));
            prop_assert!((length_mm(&kept) - expected_mm).abs() < 1e-6, "{lines:?}");
            let ends = |line: &PreparedStroke| line.stroke.points_mm.clone();
            prop_assert!(kept.iter().map(ends).all(|points| points.len() > 1));
        }
    }
}
