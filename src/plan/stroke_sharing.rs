//! Gives the strokes of a drawing to two arms, and orders those of each.
//!
//! The sheet is divided across a direction, so that both arms are done at the same time. Each arm goes through its
//! half in bands along that division, the second one half of the way ahead: so they are seldom in neighbouring
//! places, and what they draw there is drawn at different times.

use super::cartesian_path::to_count;
use super::order::{StrokeTurn, order_from, pens};
use base::plane::Point;
use scene::SheetStroke;

/// Most bands of an arm.
const BANDS_MAX: usize = 16;

/// Directions in which a sheet is divided, turned from the one between the bases, and whether the second arm begins in the middle of
/// its way. Across the bases neither arm comes between the other's base and the middle; on a slant, neither reaches over the middle to
/// where the other's upper arm always is.
const DIVIDED_DEG: [(f64, bool); DIVISIONS] =
    [(0.0, true), (90.0, false), (65.0, false), (45.0, false)];
const DIVISIONS: usize = 4;

/// A stroke to be given to an arm.
#[derive(Clone, Debug)]
pub(super) struct StrokeToGive {
    /// Its middle on the sheet.
    pub(super) middle_mm: Point,
    /// Time that each arm needs for it; `None` for an arm that cannot draw it.
    pub(super) times_s: [Option<f64>; 2],
}

/// The way in which a sheet is divided between two arms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SheetDivision {
    /// Direction from the first arm's part to the second one's.
    pub(super) across: Point,
    /// Direction in which both go through their parts.
    pub(super) along: Point,
    /// True if the second arm begins in the middle of its way.
    pub(super) is_ahead: bool,
}

impl SheetDivision {
    /// Returns the ways to try for arms whose bases lie in a direction from each other.
    pub(super) fn all(between: Point) -> [Self; DIVISIONS] {
        let [x, y] = between;
        let beside = [-y, x];
        DIVIDED_DEG.map(|(turned_deg, is_ahead)| {
            let (sin, cos) = f64::to_radians(turned_deg).sin_cos();
            Self {
                across: [x * cos + beside[0] * sin, y * cos + beside[1] * sin],
                along: beside,
                is_ahead,
            }
        })
    }

    /// Gives each stroke to an arm that can draw it, so that the longer of both times is short. Returns the arm of each.
    pub(super) fn give(&self, strokes: &[StrokeToGive]) -> Vec<usize> {
        let mut sorted: Vec<usize> = (0..strokes.len()).collect();
        let place = |stroke: &usize| {
            strokes
                .get(*stroke)
                .map_or(0.0, |one| dot(self.across, one.middle_mm))
        };
        sorted.sort_by(|one, other| place(one).total_cmp(&place(other)));
        let time = |stroke: usize, arm: usize| {
            let times = strokes.get(stroke).map(|one| one.times_s);
            times.and_then(|times| times.get(arm).copied().flatten())
        };
        // Everything that the second arm can draw is its own at first; then the first arm takes stroke after stroke.
        let mut arms: Vec<usize> = (0..strokes.len())
            .map(|stroke| usize::from(time(stroke, 1).is_some()))
            .collect();
        let total = |arm: usize, arms: &[usize]| -> f64 {
            let own = arms.iter().enumerate().filter(|(_, of)| **of == arm);
            own.filter_map(|(stroke, _)| time(stroke, arm)).sum()
        };
        let mut totals = [total(0, &arms), total(1, &arms)];
        for stroke in sorted {
            let (Some(first_s), Some(second_s)) = (time(stroke, 0), time(stroke, 1)) else {
                continue;
            };
            let taken = [totals[0] + first_s, totals[1] - second_s];
            if taken[0].max(taken[1]) >= totals[0].max(totals[1]) {
                continue;
            }
            totals = taken;
            if let Some(arm) = arms.get_mut(stroke) {
                *arm = 0;
            }
        }
        arms
    }

    /// Orders the strokes of an arm, pen by pen and band by band.
    pub(super) fn order(&self, arm: usize, strokes: &[SheetStroke]) -> Vec<StrokeTurn> {
        let places: Vec<f64> = strokes
            .iter()
            .map(|stroke| dot(self.along, middle_mm(&stroke.points_mm)))
            .collect();
        let low = places.iter().copied().fold(f64::INFINITY, f64::min);
        let high = places.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let bands = to_count((strokes.len() as f64).sqrt().round()).clamp(1, BANDS_MAX);
        let band = |place: f64| {
            let share = (place - low) / (high - low).max(1e-9);
            to_count((share * bands as f64).floor()).min(bands - 1)
        };
        let begins = if self.is_ahead && arm == 1 {
            bands / 2
        } else {
            0
        };
        let mut turns = Vec::with_capacity(strokes.len());
        let mut from = [0.0, 0.0];
        for pen in pens(strokes) {
            for turn in 0..bands {
                let now = (begins + turn) % bands;
                let is_now = |index: &usize| {
                    let of_pen = strokes.get(*index).is_some_and(|stroke| stroke.pen == pen);
                    of_pen && places.get(*index).is_some_and(|place| band(*place) == now)
                };
                let indices: Vec<usize> = (0..strokes.len()).filter(is_now).collect();
                let own: Vec<SheetStroke> = indices
                    .iter()
                    .filter_map(|index| strokes.get(*index).cloned())
                    .collect();
                let (ordered, end) = order_from(&own, from);
                from = end;
                turns.extend(ordered.into_iter().filter_map(|turn| {
                    let stroke = *indices.get(turn.stroke)?;
                    Some(StrokeTurn { stroke, ..turn })
                }));
            }
        }
        turns
    }
}

/// Returns the middle of a line's bounds.
pub(super) fn middle_mm(points_mm: &[Point]) -> Point {
    let bounds = base::plane::bounds(points_mm);
    bounds.map_or([0.0, 0.0], |([left, low], [right, high])| {
        [f64::midpoint(left, right), f64::midpoint(low, high)]
    })
}

fn dot([ax, ay]: Point, [bx, by]: Point) -> f64 {
    ax * bx + ay * by
}
