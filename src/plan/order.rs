//! In which order strokes are drawn, and from which end.

use super::course::distance;
use crate::scene::{Order, SheetStroke};

/// A stroke's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    /// Which of the strokes as they were given.
    pub(super) stroke: usize,
    /// Whether it is drawn from its end.
    pub(super) reversed: bool,
}

impl Turn {
    /// Its points in the direction in which they are drawn.
    pub(super) fn points(&self, strokes: &[SheetStroke]) -> Vec<[f64; 2]> {
        let mut points = strokes
            .get(self.stroke)
            .map(|stroke| stroke.points_mm.clone())
            .unwrap_or_default();
        if self.reversed {
            points.reverse();
        }
        points
    }
}

/// Every stroke once. Fastest: pen by pen, each time the nearest end of what is left.
pub(super) fn order(strokes: &[SheetStroke], how: Order) -> Vec<Turn> {
    let as_drawn = (0..strokes.len()).map(|stroke| Turn {
        stroke,
        reversed: false,
    });
    match how {
        Order::AsDrawn => as_drawn.collect(),
        Order::Fastest => pens(strokes)
            .into_iter()
            .flat_map(|pen| nearest_first(strokes, pen))
            .collect(),
    }
}

/// The pens in the order in which the author first uses them.
fn pens(strokes: &[SheetStroke]) -> Vec<usize> {
    let mut pens = Vec::new();
    for stroke in strokes {
        if !pens.contains(&stroke.pen) {
            pens.push(stroke.pen);
        }
    }
    pens
}

fn nearest_first(strokes: &[SheetStroke], pen: usize) -> Vec<Turn> {
    let mut left: Vec<usize> = (0..strokes.len())
        .filter(|index| strokes.get(*index).is_some_and(|stroke| stroke.pen == pen))
        .collect();
    let mut turns = Vec::with_capacity(left.len());
    let mut at = [0.0, 0.0];
    while !left.is_empty() {
        let mut best = (f64::INFINITY, 0, false);
        for (place, index) in left.iter().enumerate() {
            let Some((first, last)) = strokes.get(*index).and_then(ends) else {
                continue;
            };
            for (end, reversed) in [(first, false), (last, true)] {
                let far = distance(at, end);
                if far < best.0 {
                    best = (far, place, reversed);
                }
            }
        }
        let stroke = left.remove(best.1);
        let reversed = best.2;
        if let Some((first, last)) = strokes.get(stroke).and_then(ends) {
            at = if reversed { first } else { last };
        }
        turns.push(Turn { stroke, reversed });
    }
    turns
}

fn ends(stroke: &SheetStroke) -> Option<([f64; 2], [f64; 2])> {
    Some((*stroke.points_mm.first()?, *stroke.points_mm.last()?))
}
