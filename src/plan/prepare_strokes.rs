//! Strokes before they are ordered: nothing drawn twice, touching ends joined, needless points
//! dropped. What ink is left stays the same.

use std::collections::HashMap;

use super::cartesian_path::turning;
use super::dedup_overlaps::remove_overlaps;
use base::plane::{Point, distance, distance_to_piece};
use scene::{Order, SheetStroke};

/// A stroke as it will be drawn.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PreparedStroke {
    pub(super) stroke: SheetStroke,
    /// Indices of the strokes, as they were given, that it is made of.
    pub(super) parts: Vec<usize>,
}

/// A dropped point was nearer than this to the line that is left.
const SIMPLE_MM: f64 = 0.004;
/// Number of points that one straight line may replace.
const SIMPLE_POINTS: usize = 64;

/// As the author has it, only without needless points; or, for the fastest order, with all that
/// saves time.
pub(super) fn prepare_strokes(
    strokes: &[SheetStroke],
    how: Order,
    join_mm: f64,
) -> Vec<PreparedStroke> {
    let whole = strokes
        .iter()
        .enumerate()
        .map(|(index, stroke)| PreparedStroke {
            stroke: stroke.clone(),
            parts: vec![index],
        });
    let mut tidied: Vec<PreparedStroke> = match how {
        Order::AsDrawn => whole.collect(),
        Order::Fastest if join_mm > 0.0 => join(&remove_overlaps(whole.collect()), join_mm),
        Order::Fastest => remove_overlaps(whole.collect()),
    };
    for tidied in &mut tidied {
        tidied.stroke.points_mm = simplified(&tidied.stroke.points_mm);
    }
    tidied
}

#[expect(clippy::cast_possible_truncation, reason = "`as` saturates")]
fn cell([x, y]: Point, side: f64) -> [i64; 2] {
    [(x / side).round() as i64, (y / side).round() as i64]
}

/// A pen and a square.
type PenCell = (usize, [i64; 2]);

/// The free ends of strokes, to be found by place.
struct StrokeEnds<'a> {
    all: &'a [PreparedStroke],
    free: Vec<bool>,
    /// Strokes that end in each square, and whether with their last point.
    at: HashMap<PenCell, Vec<(usize, bool)>>,
    /// Ends nearer than this are joined.
    join_mm: f64,
}

impl<'a> StrokeEnds<'a> {
    fn new(all: &'a [PreparedStroke], join_mm: f64) -> Self {
        let mut at: HashMap<PenCell, Vec<(usize, bool)>> = HashMap::new();
        for (index, tidied) in all.iter().enumerate() {
            let points = &tidied.stroke.points_mm;
            for (end, last) in [(points.first(), false), (points.last(), true)] {
                if let Some(end) = end {
                    let key = (tidied.stroke.pen, cell(*end, join_mm));
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

    /// The free stroke that carries on most smoothly behind `end`, turned so that it begins there.
    #[expect(clippy::indexing_slicing, reason = "`at` and `free` are of `all`")]
    fn take(&mut self, pen: usize, before: Point, end: Point) -> Option<PreparedStroke> {
        let [column, row] = cell(end, self.join_mm);
        let mut best: Option<(f64, usize, bool)> = None;
        let around = (-1..=1).flat_map(|dx| (-1..=1).map(move |dy| [column + dx, row + dy]));
        let ends = around
            .filter_map(|cell| self.at.get(&(pen, cell)))
            .flatten();
        for (index, last) in ends.filter(|(index, _)| self.free[*index]) {
            let points = self.all[*index].stroke.points_mm.as_slice();
            let (([first, next, ..], false) | ([.., next, first], true)) = (points, *last) else {
                continue;
            };
            let turn = turning(before, end, *next);
            let better = best.is_none_or(|(least, known, _)| (turn, *index) < (least, known));
            if distance(*first, end) <= self.join_mm && better {
                best = Some((turn, *index, *last));
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

    /// Takes a stroke as it is; whether it was still free.
    #[expect(
        clippy::indexing_slicing,
        reason = "`free` is of the strokes that are joined"
    )]
    fn take_whole(&mut self, index: usize) -> bool {
        std::mem::replace(&mut self.free[index], false)
    }
}

/// Strokes of one pen whose ends touch are one stroke.
fn join(strokes: &[PreparedStroke], join_mm: f64) -> Vec<PreparedStroke> {
    let mut ends = StrokeEnds::new(strokes, join_mm);
    let mut joined = Vec::new();
    for (index, tidied) in strokes.iter().enumerate() {
        if !ends.take_whole(index) {
            continue;
        }
        let mut chain = tidied.clone();
        // Each pass carries on behind the last point; the second pass is the first point's.
        for _ in 0..2 {
            carry_on(&mut chain, &mut ends);
            chain.stroke.points_mm.reverse();
        }
        joined.push(chain);
    }
    joined
}

fn carry_on(chain: &mut PreparedStroke, ends: &mut StrokeEnds<'_>) {
    while let [.., before, end] = chain.stroke.points_mm.as_slice() {
        let Some(next) = ends.take(chain.stroke.pen, *before, *end) else {
            return;
        };
        let first = next.stroke.points_mm.first();
        let touching = first.is_some_and(|first| distance(*first, *end) < 1e-9);
        let points = next.stroke.points_mm.iter().skip(usize::from(touching));
        chain.stroke.points_mm.extend(points);
        chain.parts.extend(&next.parts);
    }
}

/// Without points that lie on the line between those that stay.
fn simplified(points_mm: &[Point]) -> Vec<Point> {
    let mut kept: Vec<Point> = points_mm.first().copied().into_iter().collect();
    let mut from = 0;
    while let Some(anchor) = points_mm.get(from).copied() {
        let mut to = from + 1;
        while to < points_mm.len().saturating_sub(1) && to - from < SIMPLE_POINTS {
            let Some((between, end)) = points_mm.get(from + 1..=to).zip(points_mm.get(to + 1))
            else {
                break;
            };
            let is_off = |point: &Point| distance_to_piece(*point, [anchor, *end]) > SIMPLE_MM;
            if between.iter().any(is_off) {
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

    fn strokes(of: &[&[Point]]) -> Vec<SheetStroke> {
        of.iter()
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
        let tidied = prepare_strokes(&square, Order::Fastest, JOIN_MM);
        assert_eq!(tidied.len(), 1);
        let mut parts = tidied[0].parts.clone();
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
        let tidied = prepare_strokes(&twice, Order::Fastest, JOIN_MM);
        let length: f64 = tidied
            .iter()
            .map(|t| base::plane::length(&t.stroke.points_mm))
            .sum();
        assert!((length - 30.0).abs() < 1e-9, "{length}");
    }

    #[test]
    fn a_stroke_that_comes_back_on_itself_does_not() {
        let back = strokes(&[&[[0.0, 0.0], [10.0, 0.0], [0.0, 0.0]]]);
        let tidied = prepare_strokes(&back, Order::Fastest, JOIN_MM);
        assert_eq!(tidied[0].stroke.points_mm, vec![[0.0, 0.0], [10.0, 0.0]]);
    }

    #[test]
    fn a_line_on_a_part_of_another_is_not_drawn_again() {
        let on_another = strokes(&[
            &[[0.0, 0.0], [25.0, 0.0], [50.0, 0.0]],
            &[[50.0, 0.0], [0.0, 0.0]],
            &[[10.0, 0.0], [20.0, 0.0]],
        ]);
        let tidied = prepare_strokes(&on_another, Order::Fastest, JOIN_MM);
        assert_eq!(tidied.len(), 1);
        assert_eq!(tidied[0].stroke.points_mm, [[0.0, 0.0], [50.0, 0.0]]);
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
        assert!(simplified(&line).len() <= 6);
        let corner = [[0.0, 0.0], [5.0, 0.0], [5.0, 5.0]];
        assert_eq!(simplified(&corner), corner);
        assert_eq!(simplified(&[[1.0, 1.0], [1.0, 1.0]]).len(), 2);
    }
}
