//! In which order strokes are drawn, and from which end.
//!
//! Pen by pen: each time the nearest end of what is left, then exchanges that save way. An
//! exchange turns a part of the order round (2-opt) or moves up to three strokes elsewhere
//! (Or-opt); only ends near each other are tried. At last parts change places by chance, and what
//! that does not improve is undone.
//!
//! It is way that is saved, not time: each stroke is lifted from and lowered to once in any order,
//! and saving the time of ramps instead gained 0.3 % of it on 5,000 strokes and cost 5 % of way.

#![expect(
    clippy::indexing_slicing,
    reason = "every index is a place in the tour, a stroke of it, or one of its two ends"
)]

use std::collections::VecDeque;

use super::cartesian_path::whole;
use base::plane::{Point, bounds};
use scene::{Order, SheetStroke};

/// A stroke's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StrokeTurn {
    /// Index among the strokes as they were given.
    pub stroke: usize,
    /// `true` if the stroke is drawn from its end.
    pub reversed: bool,
}

/// Above how many strokes a pen's order is left as the nearest-first search finds it.
const IMPROVED_MAX: usize = 50_000;
/// Number of near ends tried for each end.
const NEAR: usize = 8;
/// The longest run of strokes that is moved elsewhere.
const RUN_MAX: usize = 3;
/// Exchanges of one pen, for each stroke.
const EXCHANGES_MAX: usize = 400;
/// Shakes of one pen, for each stroke and altogether.
const SHAKES: usize = 8;
const SHAKES_MAX: usize = 2_000;
/// The longest part that a shake moves.
const SHAKEN_MAX: usize = 30;
/// While shaking, exchanges over longer parts than this are left alone: they cost too much.
const PART_MAX: usize = 400;
/// An exchange must save this much.
const SAVING_MM: f64 = 1e-9;

/// Every stroke once.
#[must_use]
pub fn order(strokes: &[SheetStroke], how: Order) -> Vec<StrokeTurn> {
    match how {
        Order::AsDrawn => (0..strokes.len())
            .map(|stroke| StrokeTurn {
                stroke,
                reversed: false,
            })
            .collect(),
        Order::Fastest => {
            let mut turns = Vec::with_capacity(strokes.len());
            let mut from = [0.0, 0.0];
            for pen in pens(strokes) {
                let mut tour = StrokeTour::nearest_first(strokes, pen, from);
                tour.improve();
                if let Some(end) = tour.end() {
                    from = end;
                }
                turns.extend(tour.turns());
            }
            turns
        }
    }
}

/// The root of the sum of squares, for lengths of a drawing never pass a number's range: `hypot`,
/// which minds that, takes three times as long, and this is most of what ordering does.
fn distance([ax, ay]: Point, [bx, by]: Point) -> f64 {
    let (x, y) = (bx - ax, by - ay);
    (x * x + y * y).sqrt()
}

/// Returns the total travel of the lifted tip, in mm, from the start of the first stroke.
#[must_use]
pub fn travelled_mm(strokes: &[SheetStroke], turns: &[StrokeTurn]) -> f64 {
    let ends = turns.iter().filter_map(|turn| {
        let mut ends = ends(strokes.get(turn.stroke)?)?;
        if turn.reversed {
            ends.reverse();
        }
        Some(ends)
    });
    let ends: Vec<[Point; 2]> = ends.collect();
    let ways = ends.windows(2).map(|pair| distance(pair[0][1], pair[1][0]));
    ways.sum()
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

fn ends(stroke: &SheetStroke) -> Option<[Point; 2]> {
    Some([*stroke.points_mm.first()?, *stroke.points_mm.last()?])
}

/// Points in squares, for finding what is near.
struct StrokeEndGrid {
    low: Point,
    side: f64,
    columns: usize,
    rows: usize,
    held: Vec<Vec<(usize, Point)>>,
}

impl StrokeEndGrid {
    /// About two points a square.
    fn new(points: &[Point]) -> Self {
        let (low, high) = bounds(points).unwrap_or_default();
        let (width, height) = ((high[0] - low[0]).max(1e-3), (high[1] - low[1]).max(1e-3));
        let wanted = (points.len() as f64 / 2.0).max(1.0);
        let side = (width * height / wanted).sqrt();
        let side = side.max(width.max(height) / 2000.0);
        let (columns, rows) = (whole(width / side) + 1, whole(height / side) + 1);
        let mut squares = Self {
            low,
            side,
            columns,
            rows,
            held: vec![Vec::new(); columns * rows],
        };
        for (index, point) in points.iter().enumerate() {
            let at = squares.square(*point);
            squares.held[at].push((index, *point));
        }
        squares
    }

    fn column_row(&self, [x, y]: Point) -> (usize, usize) {
        let cut = |v: f64, most: usize| whole((v / self.side).max(0.0)).min(most - 1);
        (
            cut(x - self.low[0], self.columns),
            cut(y - self.low[1], self.rows),
        )
    }

    fn square(&self, point: Point) -> usize {
        let (column, row) = self.column_row(point);
        row * self.columns + column
    }

    fn remove(&mut self, index: usize, point: Point) {
        let at = self.square(point);
        self.held[at].retain(|(held, _)| *held != index);
    }

    /// The squares exactly `ring` away from a point's.
    fn ring(&self, point: Point, ring: usize) -> impl Iterator<Item = usize> + '_ {
        let (column, row) = self.column_row(point);
        let rows = row.saturating_sub(ring)..=(row + ring).min(self.rows - 1);
        rows.flat_map(move |r| {
            let whole_row = r.abs_diff(row) == ring;
            let first = column.saturating_sub(ring);
            let last = (column + ring).min(self.columns - 1);
            let step = if whole_row || ring == 0 { 1 } else { 2 * ring };
            let inside = move |c: &usize| whole_row || c.abs_diff(column) == ring;
            // Where the ring is cut off at an edge, stepping would miss its other side.
            let step = if first + ring == column { step } else { 1 };
            (first..=last)
                .step_by(step)
                .filter(inside)
                .map(move |c| r * self.columns + c)
        })
    }

    /// Up to `count` nearest points that `wanted` lets through, nearest first.
    fn nearest(
        &self,
        point: Point,
        count: usize,
        wanted: impl Fn(usize) -> bool,
    ) -> Vec<(f64, usize)> {
        let mut found: Vec<(f64, usize)> = Vec::with_capacity(count + 1);
        for ring in 0..self.columns.max(self.rows) {
            let reached = ring as f64 * self.side;
            let is_behind = |(far, _): &(f64, usize)| *far <= reached - self.side;
            if found.len() == count && found.last().is_some_and(is_behind) {
                break;
            }
            for square in self.ring(point, ring) {
                for (index, at) in &self.held[square] {
                    if wanted(*index) {
                        let entry = (distance(point, *at), *index);
                        let place = found.partition_point(|known| *known <= entry);
                        found.insert(place, entry);
                        found.truncate(count);
                    }
                }
            }
        }
        found
    }
}

/// One pen's strokes in order. An end is `2 · stroke` for the first point and one more for the
/// last.
struct StrokeTour {
    from: Point,
    /// Index among all strokes of each stroke of the tour.
    known_as: Vec<usize>,
    ends: Vec<Point>,
    /// The end at which each is entered, in order.
    entries: Vec<usize>,
    /// Place of each stroke in the order.
    places: Vec<usize>,
    /// Total saving.
    saved: f64,
    /// Changes since the last perturbation, to undo them.
    done: Vec<TourChange>,
    awake: DirtyStrokes,
    /// The longest part that an exchange may change.
    part_max: usize,
}

/// A change of the order.
#[derive(Clone, Copy)]
enum TourChange {
    /// A part was turned round.
    Turned { first: usize, last: usize },
    /// A part was rotated to the left, and then a run of it turned round.
    Rotated {
        low: usize,
        high: usize,
        by: usize,
        turned: Option<(usize, usize)>,
    },
}

/// Strokes whose surroundings have changed.
#[derive(Default)]
struct DirtyStrokes {
    is: Vec<bool>,
    queue: VecDeque<usize>,
}

impl DirtyStrokes {
    fn wake(&mut self, stroke: usize) {
        if !std::mem::replace(&mut self.is[stroke], true) {
            self.queue.push_back(stroke);
        }
    }

    fn next(&mut self) -> Option<usize> {
        let stroke = self.queue.pop_front()?;
        self.is[stroke] = false;
        Some(stroke)
    }
}

/// xorshift: always the same numbers.
struct XorShift(u64);

impl XorShift {
    /// From 0 to below `most`, which is above 0.
    fn next_below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as usize % most
    }
}

impl StrokeTour {
    fn nearest_first(strokes: &[SheetStroke], pen: usize, from: Point) -> Self {
        let (mut known_as, mut all) = (Vec::new(), Vec::new());
        for (index, stroke) in strokes.iter().enumerate() {
            if let (true, Some(both)) = (stroke.pen == pen, ends(stroke)) {
                known_as.push(index);
                all.extend(both);
            }
        }
        let mut squares = StrokeEndGrid::new(&all);
        let mut entries = Vec::with_capacity(known_as.len());
        let mut at = from;
        while let Some((_, entry)) = squares.nearest(at, 1, |_| true).first().copied() {
            for end in [entry, entry ^ 1] {
                squares.remove(end, all[end]);
            }
            entries.push(entry);
            at = all[entry ^ 1];
        }
        let mut places = vec![0; known_as.len()];
        for (place, entry) in entries.iter().enumerate() {
            places[entry / 2] = place;
        }
        Self {
            from,
            known_as,
            ends: all,
            awake: DirtyStrokes {
                is: vec![false; entries.len()],
                queue: VecDeque::new(),
            },
            entries,
            places,
            saved: 0.0,
            done: Vec::new(),
            part_max: usize::MAX,
        }
    }

    fn turns(&self) -> impl Iterator<Item = StrokeTurn> + '_ {
        self.entries.iter().map(|entry| StrokeTurn {
            stroke: self.known_as[entry / 2],
            reversed: entry % 2 == 1,
        })
    }

    fn end(&self) -> Option<Point> {
        self.entries.last().map(|entry| self.ends[entry ^ 1])
    }

    /// Returns the position of the tip before the stroke at a place.
    fn before(&self, place: usize) -> Point {
        match place.checked_sub(1) {
            Some(before) => self.ends[self.entries[before] ^ 1],
            None => self.from,
        }
    }

    /// Returns the point at which the stroke at a place is entered; `None` behind the last.
    fn entry(&self, place: usize) -> Option<Point> {
        self.entries.get(place).map(|entry| self.ends[*entry])
    }

    /// From the exit before a place into an end; nothing behind the last.
    fn leg(from: Point, to: Option<Point>) -> f64 {
        to.map_or(0.0, |to| distance(from, to))
    }

    fn improve(&mut self) {
        if self.entries.len() < 2 || self.entries.len() > IMPROVED_MAX {
            return;
        }
        let near = self.near();
        for stroke in 0..self.entries.len() {
            self.awake.wake(stroke);
        }
        self.improve_locally(&near);
        self.part_max = PART_MAX;
        self.perturb(&near);
    }

    /// Exchanges until none of the strokes that are awake gains by one.
    fn improve_locally(&mut self, near: &[Vec<usize>]) {
        let most = self.entries.len() * EXCHANGES_MAX;
        for _ in 0..most {
            let Some(stroke) = self.awake.next() else {
                return;
            };
            if self.improve_at(stroke, near) {
                self.awake.wake(stroke);
            }
        }
    }

    /// Swaps two neighbouring parts at random, improves the result, and undoes all of it unless it is
    /// better. Run after exchanges alone gain no more.
    fn perturb(&mut self, near: &[Vec<usize>]) {
        let count = self.entries.len();
        let mut chance = XorShift(0x2545_f491_4f6c_dd1d);
        for _ in 0..(count * SHAKES).min(SHAKES_MAX) {
            let most = SHAKEN_MAX.min(count / 2);
            let (a, b) = (1 + chance.next_below(most), 1 + chance.next_below(most));
            let first = chance.next_below(count + 1 - a - b);
            self.saved = 0.0;
            self.done.clear();
            self.swap_parts(first, a, b);
            self.improve_locally(near);
            if self.saved < SAVING_MM {
                self.undo();
            }
        }
    }

    fn swap_parts(&mut self, first: usize, a: usize, b: usize) {
        let (middle, end) = (first + a, first + a + b);
        let legs = |tour: &Self, middle: usize| {
            let places = [first, middle, end].into_iter();
            let legs = places.map(|place| Self::leg(tour.before(place), tour.entry(place)));
            legs.sum::<f64>()
        };
        let old = legs(self, middle);
        self.wake(&[first, middle, end]);
        self.rotate(first, end, a, None);
        self.saved += old - legs(self, first + b);
    }

    fn rotate(&mut self, low: usize, high: usize, by: usize, turned: Option<(usize, usize)>) {
        self.entries[low..high].rotate_left(by);
        if let Some((first, last)) = turned {
            self.flip(first, last);
        }
        self.done.push(TourChange::Rotated {
            low,
            high,
            by,
            turned,
        });
        self.update_places(low, high - 1);
    }

    fn flip(&mut self, first: usize, last: usize) {
        let part = &mut self.entries[first..=last];
        part.reverse();
        for entry in part {
            *entry ^= 1;
        }
    }

    fn undo(&mut self) {
        while let Some(done) = self.done.pop() {
            match done {
                TourChange::Turned { first, last } => {
                    self.flip(first, last);
                    self.update_places(first, last);
                }
                TourChange::Rotated {
                    low,
                    high,
                    by,
                    turned,
                } => {
                    if let Some((first, last)) = turned {
                        self.flip(first, last);
                    }
                    self.entries[low..high].rotate_right(by);
                    self.update_places(low, high - 1);
                }
            }
        }
    }

    /// For each end, the nearest ends of other strokes.
    fn near(&self) -> Vec<Vec<usize>> {
        let squares = StrokeEndGrid::new(&self.ends);
        let near = |(end, at): (usize, &Point)| {
            let near = squares.nearest(*at, NEAR, |other| other / 2 != end / 2);
            near.into_iter().map(|(_, other)| other).collect()
        };
        self.ends.iter().enumerate().map(near).collect()
    }

    /// Tries everything about the ways into and out of a stroke; true if one saved time.
    fn improve_at(&mut self, stroke: usize, near: &[Vec<usize>]) -> bool {
        let place = self.places[stroke];
        let entry = self.entries[place];
        let into = distance(self.before(place), self.ends[entry]);
        for other in &near[entry] {
            if distance(self.ends[*other], self.ends[entry]) < into
                && (self.turn_round_into(place, *other)
                    || self.move_before(place, *other)
                    || self.go_to(place, *other))
            {
                return true;
            }
        }
        let exit = entry ^ 1;
        let out = Self::leg(self.ends[exit], self.entry(place + 1));
        let open = place + 1 == self.entries.len();
        for other in &near[exit] {
            if (open || distance(self.ends[exit], self.ends[*other]) < out)
                && (self.turn_round_out(place, *other)
                    || self.move_behind(place, *other)
                    || self.come_from(place, *other))
            {
                return true;
            }
        }
        false
    }

    /// 2-opt so that `other` comes right before the entry of the stroke at `place`.
    fn turn_round_into(&mut self, place: usize, other: usize) -> bool {
        let at = self.places[other / 2];
        if at > place && self.entries[at] == other {
            // … a | place … at-1 | at …: turned round, place's entry leads into at's.
            return self.turn_round(place, at - 1);
        }
        if at < place && self.entries[at] == other {
            // … before | at … place-1 | place …: turned round, at's entry leads into place.
            return self.turn_round(at, place - 1);
        }
        false
    }

    /// 2-opt so that `other` comes right behind the exit of the stroke at `place`.
    fn turn_round_out(&mut self, place: usize, other: usize) -> bool {
        let at = self.places[other / 2];
        if at > place && self.entries[at] != other {
            return self.turn_round(place + 1, at);
        }
        if at < place && self.entries[at] != other {
            return self.turn_round(at + 1, place);
        }
        false
    }

    /// Turns a part of the order round if that saves way.
    fn turn_round(&mut self, first: usize, last: usize) -> bool {
        if last - first > self.part_max {
            return false;
        }
        let (before, after) = (self.before(first), self.entry(last + 1));
        let (Some(head), tail) = (self.entry(first), self.before(last + 1)) else {
            return false;
        };
        let saved = distance(before, head) + Self::leg(tail, after)
            - distance(before, tail)
            - Self::leg(head, after);
        if saved < SAVING_MM {
            return false;
        }
        self.wake(&[first, last + 1]);
        self.flip(first, last);
        self.update_places(first, last);
        self.done.push(TourChange::Turned { first, last });
        self.saved += saved;
        true
    }

    /// Or-opt: a run that ends at `other` is moved to right before the stroke at `place`.
    fn move_before(&mut self, place: usize, other: usize) -> bool {
        let at = self.places[other / 2];
        (1..=RUN_MAX).any(|length| {
            // `other` must be the run's exit: as it stands, or with the run turned round.
            let as_is = self.entries[at] != other;
            let first = if as_is {
                (at + 1).checked_sub(length)
            } else {
                Some(at)
            };
            first.is_some_and(|first| self.move_run(first, length, place, !as_is))
        })
    }

    /// Or-opt: a run that begins at `other` is moved to right behind the stroke at `place`.
    fn move_behind(&mut self, place: usize, other: usize) -> bool {
        let at = self.places[other / 2];
        (1..=RUN_MAX).any(|length| {
            let as_is = self.entries[at] == other;
            let first = if as_is {
                Some(at)
            } else {
                (at + 1).checked_sub(length)
            };
            first.is_some_and(|first| self.move_run(first, length, place + 1, !as_is))
        })
    }

    /// Or-opt: a run that begins with the stroke at `place` is moved to where `other` leads into
    /// its entry.
    fn go_to(&mut self, place: usize, other: usize) -> bool {
        let at = self.places[other / 2];
        let turned = self.entries[at] == other;
        let to = if turned { at } else { at + 1 };
        (1..=RUN_MAX).any(|length| self.move_run(place, length, to, turned))
    }

    /// Or-opt: a run that ends with the stroke at `place` is moved to where its exit leads into
    /// `other`.
    fn come_from(&mut self, place: usize, other: usize) -> bool {
        let at = self.places[other / 2];
        let turned = self.entries[at] != other;
        let to = if turned { at + 1 } else { at };
        (1..=RUN_MAX).any(|length| {
            (place + 1)
                .checked_sub(length)
                .is_some_and(|first| self.move_run(first, length, to, turned))
        })
    }

    /// Moves a run to before `to` if that saves way.
    fn move_run(&mut self, first: usize, length: usize, to: usize, turned: bool) -> bool {
        let end = first + length;
        let part = to.max(end) - to.min(first);
        if end > self.entries.len() || (first..=end).contains(&to) || part > self.part_max {
            return false;
        }
        let (Some(head), tail) = (self.entry(first), self.before(end)) else {
            return false;
        };
        let (enter, leave) = if turned { (tail, head) } else { (head, tail) };
        let (gap_from, gap_to) = (self.before(first), self.entry(end));
        let (from, into) = (self.before(to), self.entry(to));
        let old = distance(gap_from, head) + Self::leg(tail, gap_to) + Self::leg(from, into);
        let new = Self::leg(gap_from, gap_to) + distance(from, enter) + Self::leg(leave, into);
        if old - new < SAVING_MM {
            return false;
        }
        self.wake(&[first, end, to]);
        let (low, high, by, at) = if to > first {
            (first, to, length, to - length)
        } else {
            (to, end, end - to - length, to)
        };
        self.rotate(low, high, by, turned.then_some((at, at + length - 1)));
        self.saved += old - new;
        true
    }

    /// The strokes on both sides of these places are looked at again.
    fn wake(&mut self, places: &[usize]) {
        for place in places {
            for place in [place.checked_sub(1), Some(*place)].into_iter().flatten() {
                if let Some(entry) = self.entries.get(place).copied() {
                    self.awake.wake(entry / 2);
                }
            }
        }
    }

    fn update_places(&mut self, first: usize, last: usize) {
        for place in first..=last {
            self.places[self.entries[place] / 2] = place;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn strokes(ends: &[(Point, Point)]) -> Vec<SheetStroke> {
        ends.iter()
            .map(|(a, b)| SheetStroke {
                points_mm: vec![*a, *b],
                pen: 0,
                source: String::new(),
                pause: None,
            })
            .collect()
    }

    fn end() -> impl Strategy<Value = Point> {
        [0.0..100.0_f64, 0.0..100.0_f64]
    }

    /// The same search, looking at everything.
    fn greedy_mm(all: &[SheetStroke]) -> f64 {
        let mut left: Vec<[Point; 2]> = all.iter().filter_map(ends).collect();
        let (mut at, mut sum, mut first) = ([0.0, 0.0], 0.0, true);
        while !left.is_empty() {
            let mut best = (f64::INFINITY, 0, 0);
            for (index, both) in left.iter().enumerate() {
                for (which, end) in both.iter().enumerate() {
                    if distance(at, *end) < best.0 {
                        best = (distance(at, *end), index, which);
                    }
                }
            }
            sum += if first { 0.0 } else { best.0 };
            first = false;
            at = left.remove(best.1)[1 - best.2];
        }
        sum
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_stroke_has_one_turn_and_the_order_is_no_worse_than_nearest_first(
            of in proptest::collection::vec((end(), end()), 1..60)
        ) {
            let all = strokes(&of);
            let turns = order(&all, Order::Fastest);
            let mut seen: Vec<usize> = turns.iter().map(|turn| turn.stroke).collect();
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..all.len()).collect::<Vec<_>>());
            // The first way in counts as well for the one, not for the other; so a little slack.
            prop_assert!(travelled_mm(&all, &turns) <= greedy_mm(&all) * 1.05 + 60.0);
        }

        #[test]
        fn what_is_near_is_found(of in proptest::collection::vec(end(), 1..80), at in end()) {
            let squares = StrokeEndGrid::new(&of);
            let found = squares.nearest(at, 3, |_| true);
            let mut all: Vec<f64> = of.iter().map(|point| distance(at, *point)).collect();
            all.sort_by(f64::total_cmp);
            for ((far, _), expected) in found.iter().zip(&all) {
                prop_assert!((far - expected).abs() < 1e-12);
            }
            prop_assert_eq!(found.len(), of.len().min(3));
        }
    }

    #[test]
    fn a_crossed_order_is_uncrossed() {
        // Nearest first is led astray by the middle.
        let ladder: Vec<_> = (0..20)
            .map(|i| {
                let y = f64::from(i) * 5.0;
                let (a, b) = ([0.0, y], [50.0, y]);
                if i % 3 == 0 { (b, a) } else { (a, b) }
            })
            .collect();
        let all = strokes(&ladder);
        let turns = order(&all, Order::Fastest);
        assert!((travelled_mm(&all, &turns) - 95.0).abs() < 1e-9);
    }
}
