//! Prepares strokes for ordering: draws nothing twice, joins touching ends, drops needless points.
//! The ink stays the same.

use std::collections::HashMap;

use super::cartesian_path::turning;
use super::dedup_overlaps::remove_overlaps;
use base::plane::{Point, distance, distance_to_piece};
use scene::{Order, SheetStroke};

/// A stroke as it will be drawn.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PreparedStroke {
    pub(super) stroke: SheetStroke,
    /// Indices of the given strokes that it is made of.
    pub(super) parts: Vec<usize>,
}

/// Largest distance of a dropped point from the line that remains.
const SIMPLE_MM: f64 = 0.004;
/// Most points that one straight line may replace.
const SIMPLE_POINTS: usize = 64;

/// Drops needless points; for the fastest order, also applies everything that saves time.
pub(super) fn prepare_strokes(
    strokes: &[SheetStroke],
    stroke_order: Order,
    join_mm: f64,
) -> Vec<PreparedStroke> {
    let given = strokes
        .iter()
        .enumerate()
        .map(|(index, stroke)| PreparedStroke {
            stroke: stroke.clone(),
            parts: vec![index],
        });
    let mut all_prepared: Vec<PreparedStroke> = match stroke_order {
        Order::AsDrawn => given.collect(),
        Order::Fastest if join_mm > 0.0 => join(&remove_overlaps(given.collect()), join_mm),
        Order::Fastest => remove_overlaps(given.collect()),
    };
    for prepared in &mut all_prepared {
        prepared.stroke.points_mm = simplify(&prepared.stroke.points_mm);
    }
    all_prepared
}

#[expect(clippy::cast_possible_truncation, reason = "`as` saturates")]
fn cell([x, y]: Point, side: f64) -> [i64; 2] {
    [(x / side).round() as i64, (y / side).round() as i64]
}

/// A pen and a grid cell.
type PenCell = (usize, [i64; 2]);

/// The free ends of strokes, found by place.
struct StrokeEnds<'a> {
    all: &'a [PreparedStroke],
    free: Vec<bool>,
    /// Strokes that end in each cell, and whether with their last point.
    at: HashMap<PenCell, Vec<(usize, bool)>>,
    /// Ends nearer than this are joined.
    join_mm: f64,
}

impl<'a> StrokeEnds<'a> {
    fn new(all: &'a [PreparedStroke], join_mm: f64) -> Self {
        let mut at: HashMap<PenCell, Vec<(usize, bool)>> = HashMap::new();
        for (index, prepared) in all.iter().enumerate() {
            let points = &prepared.stroke.points_mm;
            for (end, last) in [(points.first(), false), (points.last(), true)] {
                if let Some(end) = end {
                    let key = (prepared.stroke.pen, cell(*end, join_mm));
                    at.entry(key).or_default().push((index, last));
                }
            }
        }
        Self {
            all,
            free: vec![true; all.len()],
            at,
            join_mm,
        }
    }

    /// Takes the free stroke that continues most smoothly after `end`, reversed if it has to be to
    /// begin there.
    #[expect(clippy::indexing_slicing, reason = "`at` and `free` are of `all`")]
    fn take(&mut self, pen: usize, before: Point, end: Point) -> Option<PreparedStroke> {
        let [column, row] = cell(end, self.join_mm);
        let mut best: Option<(f64, usize, bool)> = None;
        let cells = (-1..=1).flat_map(|dx| (-1..=1).map(move |dy| [column + dx, row + dy]));
        let ends = cells.filter_map(|cell| self.at.get(&(pen, cell))).flatten();
        for (index, last) in ends.filter(|(index, _)| self.free[*index]) {
            let points = self.all[*index].stroke.points_mm.as_slice();
            let (([first, next, ..], false) | ([.., next, first], true)) = (points, *last) else {
                continue;
            };
            let turn_rad = turning(before, end, *next);
            let is_better = best.is_none_or(|(best_turn_rad, best_index, _)| {
                (turn_rad, *index) < (best_turn_rad, best_index)
            });
            if distance(*first, end) <= self.join_mm && is_better {
                best = Some((turn_rad, *index, *last));
            }
        }
        let (_, index, last) = best?;
        self.free[index] = false;
        let mut taken = self.all[index].clone();
        if last {
            taken.stroke.points_mm.reverse();
        }
        Some(taken)
    }

    /// Takes a stroke as it is; returns whether it was still free.
    #[expect(
        clippy::indexing_slicing,
        reason = "`free` is of the strokes that are joined"
    )]
    fn take_as_is(&mut self, index: usize) -> bool {
        std::mem::replace(&mut self.free[index], false)
    }
}

/// Joins strokes of one pen whose ends touch.
fn join(strokes: &[PreparedStroke], join_mm: f64) -> Vec<PreparedStroke> {
    let mut ends = StrokeEnds::new(strokes, join_mm);
    let mut joined = Vec::new();
    for (index, prepared) in strokes.iter().enumerate() {
        if !ends.take_as_is(index) {
            continue;
        }
        let mut chain = prepared.clone();
        // Each pass extends the last point's end; the second pass extends the other one.
        for _ in 0..2 {
            extend_chain(&mut chain, &mut ends);
            chain.stroke.points_mm.reverse();
        }
        joined.push(chain);
    }
    joined
}

fn extend_chain(chain: &mut PreparedStroke, ends: &mut StrokeEnds<'_>) {
    while let [.., before, end] = chain.stroke.points_mm.as_slice() {
        let Some(next) = ends.take(chain.stroke.pen, *before, *end) else {
            return;
        };
        let first = next.stroke.points_mm.first();
        let is_touching = first.is_some_and(|first| distance(*first, *end) < 1e-9);
        let points = next.stroke.points_mm.iter().skip(usize::from(is_touching));
        chain.stroke.points_mm.extend(points);
        chain.parts.extend(&next.parts);
    }
}

/// Drops points that lie on the line between those that remain.
fn simplify(points_mm: &[Point]) -> Vec<Point> {
    let mut kept: Vec<Point> = points_mm.first().copied().into_iter().collect();
    let mut from = 0;
    while let Some(anchor) = points_mm.get(from).copied() {
        let mut to = from + 1;
        while to < points_mm.len().saturating_sub(1) && to - from < SIMPLE_POINTS {
            let Some((between, end)) = points_mm.get(from + 1..=to).zip(points_mm.get(to + 1))
            else {
                break;
            };
            let is_off_line = |point: &Point| distance_to_piece(*point, [anchor, *end]) > SIMPLE_MM;
            if between.iter().any(is_off_line) {
                break;
            }
            to += 1;
        }
        kept.extend(points_mm.get(to));
        from = to;
    }
    kept
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use super::*;

    const JOIN_MM: f64 = 0.1;

    fn strokes(lines: &[&[Point]]) -> Vec<SheetStroke> {
        lines
            .iter()
            .map(|points| SheetStroke {
                points_mm: points.to_vec(),
                pen: 0,
                source: String::new(),
                pause: None,
            })
            .collect()
    }

    #[test]
    fn the_sides_of_a_square_become_one_stroke() {
        let square = strokes(&[
            &[[0.0, 0.0], [10.0, 0.0]],
            &[[10.0, 10.0], [10.0, 0.02]],
            &[[0.0, 10.0], [10.0, 10.0]],
            &[[0.0, 0.0], [0.0, 10.0]],
        ]);
        let prepared = prepare_strokes(&square, Order::Fastest, JOIN_MM);
        assert_eq!(prepared.len(), 1);
        let mut parts = prepared[0].parts.clone();
        parts.sort_unstable();
        assert_eq!(parts, vec![0, 1, 2, 3]);
        assert_eq!(prepare_strokes(&square, Order::AsDrawn, JOIN_MM).len(), 4);
    }

    #[test]
    fn what_is_drawn_twice_is_drawn_once() {
        let twice = strokes(&[
            &[[0.0, 0.0], [10.0, 0.0], [10.0, 10.0]],
            &[[10.0, 10.0], [10.0, 0.0], [0.0, 0.0]],
            &[[10.0, 10.0], [10.0, 0.0], [20.0, 0.0]],
        ]);
        let prepared = prepare_strokes(&twice, Order::Fastest, JOIN_MM);
        let length: f64 = prepared
            .iter()
            .map(|t| base::plane::length(&t.stroke.points_mm))
            .sum();
        assert!((length - 30.0).abs() < 1e-9, "{length}");
    }

    #[test]
    fn a_stroke_that_comes_back_on_itself_does_not() {
        let back = strokes(&[&[[0.0, 0.0], [10.0, 0.0], [0.0, 0.0]]]);
        let prepared = prepare_strokes(&back, Order::Fastest, JOIN_MM);
        assert_eq!(prepared[0].stroke.points_mm, vec![[0.0, 0.0], [10.0, 0.0]]);
    }

    #[test]
    fn a_line_on_a_part_of_another_is_not_drawn_again() {
        let on_another = strokes(&[
            &[[0.0, 0.0], [25.0, 0.0], [50.0, 0.0]],
            &[[50.0, 0.0], [0.0, 0.0]],
            &[[10.0, 0.0], [20.0, 0.0]],
        ]);
        let prepared = prepare_strokes(&on_another, Order::Fastest, JOIN_MM);
        assert_eq!(prepared.len(), 1);
        assert_eq!(prepared[0].stroke.points_mm, [[0.0, 0.0], [50.0, 0.0]]);
        assert_eq!(
            prepare_strokes(&on_another, Order::AsDrawn, JOIN_MM).len(),
            3
        );
    }

    #[test]
    fn dots_stay() {
        let dots = strokes(&[&[[1.0, 1.0], [1.005, 1.0]], &[[5.0, 5.0], [5.001, 5.0]]]);
        assert_eq!(prepare_strokes(&dots, Order::Fastest, JOIN_MM).len(), 2);
    }

    #[test]
    fn another_pen_draws_its_own() {
        let mut both = strokes(&[&[[0.0, 0.0], [10.0, 0.0]], &[[0.0, 0.0], [10.0, 0.0]]]);
        both[1].pen = 1;
        assert_eq!(prepare_strokes(&both, Order::Fastest, JOIN_MM).len(), 2);
    }

    #[test]
    fn points_on_a_line_are_dropped_and_corners_are_not() {
        let line: Vec<Point> = (0..=200).map(|i| [f64::from(i) * 0.1, 0.0]).collect();
        assert!(simplify(&line).len() <= 6);
        let corner = [[0.0, 0.0], [5.0, 0.0], [5.0, 5.0]];
        assert_eq!(simplify(&corner), corner);
        assert_eq!(simplify(&[[1.0, 1.0], [1.0, 1.0]]).len(), 2);
    }
}
