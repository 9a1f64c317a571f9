//! Orders the strokes of two arms so that what both draw at once is apart.
//!
//! The arms take their strokes in turns: one that is free takes a near stroke that is clear of what the other is drawing.
//! Where an arm would be is known for squares of the sheet, and two squares are clear of each other if both arms can be
//! there at once. That is an estimate: the schedule is judged with the planned motions.

#![expect(
    clippy::indexing_slicing,
    reason = "every index is one of the two arms, or of two ends"
)]

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use super::cartesian_path::ToolPose;
use super::swept_body::{ArmBody, PosedArm};
use super::tool_ik::ToolIk;
use base::plane::{Point, distance, pieces};

/// Side of a square.
const SQUARE_MM: f64 = 8.0;
/// How much nearer than their squares say two arms may be, and what their motions take besides: with little, arms wait for each other
/// in the schedule; with much, they are kept out of places that both could draw in.
pub(super) const SLACKS_M: [f64; 2] = [0.002, 0.008];
/// Most pairs of squares whose answer is kept.
const PAIRS_MAX: usize = 16_000_000;
/// Most strokes of the other arm with which each is compared.
const COMPARED_MAX: usize = 150;
/// Most strokes that an arm tries before it waits.
const TRIED_MAX: usize = 200;

/// Time after another arm's stroke at which one that waits for its end looks again.
const SOON_S: f64 = 1e-3;

/// A square of the sheet, by its column and row.
type Square = [i32; 2];

/// A stroke that either arm may draw.
pub(super) struct StrokeToTurn {
    pub(super) ends_mm: [Point; 2],
    squares: Vec<Square>,
    /// Time that each arm needs for it; `None` for an arm that cannot draw it.
    pub(super) times_s: [Option<f64>; 2],
    /// The arm that is to draw it.
    pub(super) owner: usize,
}

impl StrokeToTurn {
    pub(super) fn new(
        points_mm: &[Point],
        times_s: [Option<f64>; 2],
        owner: usize,
    ) -> Option<Self> {
        Some(Self {
            ends_mm: [*points_mm.first()?, *points_mm.last()?],
            squares: squares_of(points_mm),
            times_s,
            owner,
        })
    }
}

/// What both arms' bodies take up over each square of the sheet.
pub(super) struct ClearSquares<'a> {
    arms: [ArmOverSheet<'a>; 2],
    least_m: f64,
    /// Whether pairs of squares are clear, by their index; 0 where it is not known yet.
    known: RefCell<Vec<u8>>,
    /// The square of the least column and row, and the number of columns and rows.
    first: Square,
    counts: [i64; 2],
}

struct ArmOverSheet<'a> {
    body: &'a ArmBody<'a>,
    ik: Option<ToolIk<'a>>,
    posed: RefCell<HashMap<Square, Option<Rc<PosedArm>>>>,
}

impl<'a> ClearSquares<'a> {
    /// Prepares the squares of all points of a drawing.
    pub(super) fn new(bodies: [&'a ArmBody<'a>; 2], points_mm: &[Point], least_m: f64) -> Self {
        let (low, high) = base::plane::bounds(points_mm).unwrap_or_default();
        let (first, last) = (square_of(low), square_of(high));
        let counts = [0, 1].map(|axis| i64::from(last[axis]) - i64::from(first[axis]) + 1);
        let squares = usize::try_from(counts[0].saturating_mul(counts[1])).unwrap_or(usize::MAX);
        let pairs = squares.saturating_mul(squares);
        let arms = bodies.map(|body| ArmOverSheet {
            body,
            ik: body
                .scene()
                .pens
                .first()
                .map(|pen| ToolIk::new(body.scene(), pen)),
            posed: RefCell::default(),
        });
        Self {
            arms,
            least_m,
            known: RefCell::new(vec![0; if pairs > PAIRS_MAX { 0 } else { pairs }]),
            first,
            counts,
        }
    }

    /// Returns the index of a square within the drawing's bounds.
    fn index(&self, square: Square) -> Option<usize> {
        let [column, row] =
            [0, 1].map(|axis| i64::from(square[axis]) - i64::from(self.first[axis]));
        let is_within = (0..self.counts[0]).contains(&column) && (0..self.counts[1]).contains(&row);
        let index = row.checked_mul(self.counts[0])?.checked_add(column)?;
        usize::try_from(index).ok().filter(|_| is_within)
    }

    /// Returns the index of a pair of squares; one that is not kept where there is none.
    fn pair(&self, [own, other]: [Square; 2]) -> usize {
        let squares = self.counts[0].saturating_mul(self.counts[1]);
        let pair = || {
            let squares = usize::try_from(squares).ok()?;
            let first = self.index(own)?.checked_mul(squares)?;
            first.checked_add(self.index(other)?)
        };
        pair().unwrap_or(usize::MAX)
    }

    /// Returns whether the arms can be over two squares at once, the first one's first.
    fn are_clear(&self, squares: [Square; 2]) -> bool {
        let pair = self.pair(squares);
        match self.known.borrow().get(pair) {
            Some(1) => return true,
            Some(2) => return false,
            _ => {}
        }
        let [one, other] = &self.arms;
        let [ours, theirs] = [one.posed(squares[0]), other.posed(squares[1])];
        // What an arm does not reach it does not take up.
        let both = ours.zip(theirs);
        let is_clear = both.is_none_or(|(ours, theirs)| ours.is_apart(&theirs, self.least_m));
        if let Some(known) = self.known.borrow_mut().get_mut(pair) {
            *known = if is_clear { 1 } else { 2 };
        }
        is_clear
    }

    /// Returns whether an arm may be anywhere over some squares while the other one is anywhere over others.
    fn is_clear(&self, arm: usize, own: &[Square], others: &[Square]) -> bool {
        let clear = |own: &Square| {
            let mut others = others.iter();
            others.all(|other| match arm {
                0 => self.are_clear([*own, *other]),
                _ => self.are_clear([*other, *own]),
            })
        };
        own.iter().all(clear)
    }
}

impl ArmOverSheet<'_> {
    fn posed(&self, square: Square) -> Option<Rc<PosedArm>> {
        if let Some(known) = self.posed.borrow().get(&square) {
            return known.clone();
        }
        let posed = self.ik.as_ref().and_then(|ik| {
            let middle_mm = square.map(|index| (f64::from(index) + 0.5) * SQUARE_MM);
            let pose = ToolPose::over(&ik.scene.surface, middle_mm, 0.0);
            let found = ik.best_solution(&pose, &[ik.scene.ready_rad]).ok()?;
            Some(Rc::new(self.body.posed(&found.q_rad)))
        });
        self.posed.borrow_mut().insert(square, posed.clone());
        posed
    }
}

#[expect(clippy::cast_possible_truncation, reason = "`as` saturates")]
fn square_of([x, y]: Point) -> Square {
    [x, y].map(|at| (at / SQUARE_MM).floor() as i32)
}

/// Returns the squares that a line crosses, nearly all of them.
fn squares_of(points_mm: &[Point]) -> Vec<Square> {
    let mut squares: Vec<Square> = points_mm.iter().copied().map(square_of).collect();
    for [from, to] in pieces(points_mm) {
        let far_mm = distance(from, to);
        let mut at_mm = SQUARE_MM / 2.0;
        while at_mm < far_mm {
            squares.push(square_of(base::plane::along(from, to, at_mm / far_mm)));
            at_mm += SQUARE_MM / 2.0;
        }
    }
    squares.sort_unstable();
    squares.dedup();
    squares
}

/// A way to choose turns.
#[derive(Clone, Copy, Debug)]
pub(super) struct TurnStyle {
    /// Longest way for which a stroke is worth that is seldom clear of the other arm.
    pub(super) worth_s: f64,
    /// Whether a stroke has to be clear of the one before the other's, too, in case that is late.
    pub(super) looks_back: bool,
}

/// The strokes of each arm in their order, and when the last one is expected to end.
pub(super) struct StrokeTurns {
    pub(super) orders: [Vec<usize>; 2],
    pub(super) ends_s: f64,
}

/// Lets two arms take strokes in turns.
pub(super) struct TurnChooser<'a> {
    clear: &'a ClearSquares<'a>,
    strokes: &'a [StrokeToTurn],
    travel_mm_s: f64,
    /// The share of the other arm's strokes that are not clear of each.
    blocked: Vec<f64>,
}

/// What an arm is doing.
#[derive(Default)]
struct ArmTurn {
    free_s: f64,
    waits: bool,
    /// Where its last stroke ended.
    at_mm: Option<Point>,
    /// Squares over which it may be, and those of its last stroke.
    squares: Vec<Square>,
    latest: Vec<Square>,
    order: Vec<usize>,
}

/// A stroke that an arm takes.
struct Turn {
    stroke: usize,
    takes_s: f64,
    end_mm: Point,
    squares: Vec<Square>,
}

impl<'a> TurnChooser<'a> {
    pub(super) fn new(
        clear: &'a ClearSquares<'a>,
        strokes: &'a [StrokeToTurn],
        travel_mm_s: f64,
    ) -> Self {
        let blocked = strokes.iter().map(|stroke| {
            let others = strokes.iter().filter(|other| other.owner != stroke.owner);
            let every = others.clone().count().div_ceil(COMPARED_MAX).max(1);
            let compared = others.step_by(every);
            let count = compared.clone().count().max(1) as f64;
            let is_blocked = |other: &&StrokeToTurn| {
                !clear.is_clear(stroke.owner, &stroke.squares, &other.squares)
            };
            compared.filter(is_blocked).count() as f64 / count
        });
        Self {
            clear,
            strokes,
            travel_mm_s,
            blocked: blocked.collect(),
        }
    }

    /// Returns all strokes that an arm can draw, each once.
    pub(super) fn choose(&self, style: TurnStyle) -> StrokeTurns {
        let mut left: Vec<usize> = (0..self.strokes.len()).collect();
        let mut arms = [ArmTurn::default(), ArmTurn::default()];
        let mut ends_s = 0.0_f64;
        while !left.is_empty() {
            let arm = usize::from(arms[1].free_s < arms[0].free_s);
            let other = &arms[1 - arm];
            let (other_free_s, other_waits) = (other.free_s, other.waits);
            let mut turn = self.take(style, &left, (&arms[arm], arm), &other.squares);
            if turn.is_none() {
                let now = &mut arms[arm];
                if !left.iter().any(|stroke| self.can_draw(*stroke, arm)) {
                    if now.free_s.is_infinite() {
                        break;
                    }
                    // It goes away.
                    (now.free_s, now.squares) = (f64::INFINITY, Vec::new());
                    continue;
                }
                if other_free_s.is_finite() && !other_waits {
                    (now.free_s, now.waits) = (other_free_s + SOON_S, true);
                    now.squares = now.at_mm.map(square_of).into_iter().collect();
                    continue;
                }
                // Both are in each other's way: the schedule shows who can go away first.
                turn = self.take(style, &left, (now, arm), &[]);
            }
            let Some(turn) = turn else { break };
            left.retain(|stroke| *stroke != turn.stroke);
            arms[arm].begin(turn, style.looks_back);
            ends_s = ends_s.max(arms[arm].free_s);
        }
        StrokeTurns {
            orders: arms.map(|arm| arm.order),
            ends_s,
        }
    }

    fn can_draw(&self, stroke: usize, arm: usize) -> bool {
        let times_s = self.strokes.get(stroke).map(|stroke| stroke.times_s);
        times_s.is_some_and(|times_s| times_s[arm].is_some())
    }

    /// Returns the best stroke for an arm that is clear of some squares of the other one.
    fn take(
        &self,
        style: TurnStyle,
        left: &[usize],
        (now, arm): (&ArmTurn, usize),
        others: &[Square],
    ) -> Option<Turn> {
        let candidates = left.iter().filter_map(|index| {
            let stroke = self.strokes.get(*index)?;
            let line_s = stroke.times_s[arm]?;
            let ways_mm = stroke
                .ends_mm
                .map(|end| now.at_mm.map_or(0.0, |at| distance(at, end)));
            let reversed = ways_mm[1] < ways_mm[0];
            let way_s = ways_mm[usize::from(reversed)] / self.travel_mm_s;
            let blocked = self.blocked.get(*index).copied().unwrap_or(0.0);
            let cost_s = way_s - style.worth_s * blocked;
            // The other's strokes last.
            Some((
                stroke.owner != arm,
                cost_s,
                *index,
                reversed,
                line_s + way_s,
            ))
        });
        let mut candidates: Vec<_> = candidates.collect();
        candidates.sort_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
        let mut candidates = candidates.into_iter().take(TRIED_MAX);
        candidates.find_map(|(_, _, index, reversed, takes_s)| {
            let stroke = self.strokes.get(index)?;
            let [mut begin_mm, mut end_mm] = stroke.ends_mm;
            if reversed {
                (begin_mm, end_mm) = (end_mm, begin_mm);
            }
            let mut squares = stroke.squares.clone();
            squares.extend(now.at_mm.iter().flat_map(|at| squares_of(&[*at, begin_mm])));
            let turn = Turn {
                stroke: index,
                takes_s,
                end_mm,
                squares,
            };
            let is_clear = self.clear.is_clear(arm, &turn.squares, others);
            is_clear.then_some(turn)
        })
    }
}

impl ArmTurn {
    fn begin(&mut self, turn: Turn, looks_back: bool) {
        (self.free_s, self.waits) = (self.free_s + turn.takes_s, false);
        self.squares.clone_from(&turn.squares);
        let before = std::mem::replace(&mut self.latest, turn.squares);
        if looks_back {
            self.squares.extend(before);
        }
        self.at_mm = Some(turn.end_mm);
        self.order.push(turn.stroke);
    }
}
