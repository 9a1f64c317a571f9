//! When each of two arms waits, so that they keep apart and come to their ends soon.
//!
//! Each arm passes the pieces of its path in order, and may wait at some places between them. Two pieces that do
//! not keep apart are never passed at once. A schedule is found by an A* search: both arms go on until one
//! would enter a piece that is not clear of the other's; then either it waits until the other has left, at the
//! last place before, or the other waits before it enters. A way that does not come to both ends is no schedule,
//! so no arm waits for ever.

#![expect(
    clippy::indexing_slicing,
    reason = "every index is one of the two arms"
)]

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::swept_body::{Stay, SweptMotion};
use super::waiting_place::{Wait, WaitingPlace};

/// Most questions that a search asks about pairs of pieces: about a second.
const ASKED_MAX: usize = 4_000_000;
/// Most pairs of pieces of which the answer is kept.
const KEPT_MAX: usize = 64_000_000;
/// A way is followed first if it ends soon, and of those the one on which more is done: so many samples that are left
/// count as one of time.
const PROGRESS: usize = 4;
/// Most places before the last one that are tried for a wait.
const EARLIER_MAX: usize = 6;

/// The schedule of two arms.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ArmSchedule {
    pub(super) waits: [Vec<Wait>; 2],
    /// Samples of the longer one, waits included.
    pub(super) samples: usize,
}

/// The path of one arm, and the places at which it may wait; the first and the last sample are among them.
#[derive(Clone, Copy)]
pub(super) struct ArmPath<'a> {
    pub(super) swept: &'a SweptMotion,
    pub(super) places: &'a [WaitingPlace],
}

/// Where an arm is on its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Position {
    /// It stands at the place of an index.
    Stands(usize),
    /// It enters the piece of an index.
    Enters(usize),
}

/// A step of the search: where both arms are at a time, and the step before.
#[derive(Clone, Copy)]
struct Step {
    time: usize,
    at: [Position; 2],
    before: usize,
}

/// The course of an arm from a position on, up to a place at which it stops, if there is one.
#[derive(Clone, Copy)]
struct Course<'a> {
    path: ArmPath<'a>,
    from: Position,
    time: usize,
    stops_at: Option<usize>,
}

pub(super) struct ScheduleSearch<'a> {
    paths: [ArmPath<'a>; 2],
    least_m: f64,
    /// Number of questions about pairs of pieces so far.
    asked: Cell<usize>,
    /// Whether pieces keep apart, and whether they do with all that is around them.
    pieces: KnownPairs,
    surroundings: KnownPairs,
    steps: Vec<Step>,
    queue: BinaryHeap<Reverse<(usize, usize)>>,
    best: HashMap<[Position; 2], usize>,
}

/// Answers that are kept about pairs of pieces.
struct KnownPairs {
    others: usize,
    /// 0 for none yet, 1 for apart, 2 for too near.
    answers: RefCell<Vec<u8>>,
}

impl KnownPairs {
    fn new([pieces, others]: [usize; 2]) -> Self {
        let pairs = pieces.saturating_mul(others);
        Self {
            others,
            answers: RefCell::new(vec![0; if pairs > KEPT_MAX { 0 } else { pairs }]),
        }
    }

    /// Returns the answer about two pieces, which `judge` gives where it is not known.
    fn get(&self, [piece, other]: [usize; 2], judge: impl FnOnce() -> bool) -> bool {
        let index = piece * self.others + other;
        let known = self.answers.borrow().get(index).copied();
        match known {
            Some(answer) if answer > 0 => answer == 1,
            _ => {
                let is_apart = judge();
                if let Some(answer) = self.answers.borrow_mut().get_mut(index) {
                    *answer = if is_apart { 1 } else { 2 };
                }
                is_apart
            }
        }
    }
}

impl<'a> ArmPath<'a> {
    fn place(&self, index: usize) -> WaitingPlace {
        let end = WaitingPlace {
            at: self.swept.samples().saturating_sub(1),
            ramp: 0,
        };
        self.places.get(index).copied().unwrap_or(end)
    }

    fn last_place(&self) -> usize {
        self.places.len().saturating_sub(1)
    }

    /// Returns the last place that is not after the beginning of a piece; slowing down to it ends there.
    fn place_before(&self, piece: usize) -> usize {
        let begin = self.swept.begin(piece);
        let after = self.places.partition_point(|place| place.at <= begin);
        after.saturating_sub(1)
    }
}

impl<'a> Course<'a> {
    fn sample(&self) -> usize {
        match self.from {
            Position::Stands(place) => self.path.place(place).at,
            Position::Enters(piece) => self.path.swept.begin(piece),
        }
    }

    /// Returns the piece that it is in at first.
    fn first_piece(&self) -> usize {
        match self.from {
            Position::Stands(place) => self.path.swept.piece_at(self.path.place(place).at),
            Position::Enters(piece) => piece,
        }
    }

    /// Returns when it passes a sample if it does not stop before.
    fn passes(&self, sample: usize) -> usize {
        let distance = sample.saturating_sub(self.sample());
        match self.from {
            Position::Stands(place) => self.time + self.path.place(place).speeding(distance),
            Position::Enters(_) => self.time + distance,
        }
    }

    /// Returns when it leaves a piece.
    fn leaves(&self, piece: usize) -> usize {
        let end = self.path.swept.begin(piece + 1);
        match self.stops_at.map(|place| self.path.place(place)) {
            Some(place) if end + place.ramp > place.at => {
                let slows = place.at - place.ramp;
                self.passes(slows) + place.slowing(end - slows)
            }
            _ => self.passes(end),
        }
    }

    /// Returns when it comes to rest where it stops.
    fn stands_from(&self) -> usize {
        let Some(place) = self.stops_at else {
            return self.passes(self.path.place(self.path.last_place()).at);
        };
        if self.from == Position::Stands(place) {
            return self.time;
        }
        let place = self.path.place(place);
        self.passes(place.at - place.ramp) + place.slowing(place.ramp)
    }

    /// Returns what it does in a piece: beyond the place at which it stops, it stands there.
    fn stay(&self, piece: usize) -> Stay {
        let stop = self.stops_at.unwrap_or_else(|| self.path.last_place());
        match piece < self.path.swept.piece_at(self.path.place(stop).at) {
            true => Stay::In(piece),
            false => Stay::At(stop),
        }
    }

    /// Returns whether it can stop at a place: not where it passes already, or has to slow down before it begins.
    fn may_stop_at(&self, place: usize) -> bool {
        let stop = self.path.place(place);
        match self.from {
            Position::Stands(from) => place >= from,
            Position::Enters(piece) => stop.at - stop.ramp >= self.path.swept.begin(piece),
        }
    }
}

impl<'a> ScheduleSearch<'a> {
    pub(super) fn new(paths: [ArmPath<'a>; 2], least_m: f64) -> Self {
        // The last sample is a piece as well.
        let counts = paths.map(|path| path.swept.pieces() + 1);
        Self {
            paths,
            least_m,
            asked: Cell::new(0),
            pieces: KnownPairs::new(counts),
            surroundings: KnownPairs::new(counts),
            steps: Vec::new(),
            queue: BinaryHeap::new(),
            best: HashMap::new(),
        }
    }

    /// Returns the shortest schedule that it finds; `None` if it finds none.
    pub(super) fn run(mut self) -> Option<ArmSchedule> {
        self.reach(0, [Position::Stands(0); 2], 0);
        let mut ends: Option<(usize, usize)> = None;
        for first in [0, 1] {
            self.take_turns(first);
        }
        while self.asked.get() < ASKED_MAX {
            let Some(Reverse((_, step))) = self.queue.pop() else {
                break;
            };
            let Step { time, at, .. } = *self.steps.get(step)?;
            let least_end = time + self.remaining(at).into_iter().max()?;
            let is_late = ends.is_some_and(|(end, _)| end <= least_end);
            if is_late || self.best.get(&at).is_some_and(|best| *best < time) {
                continue;
            }
            let courses = self.courses(step, [None; 2])?;
            match self.first_blocked(&courses, [usize::MAX; 2]) {
                None => {
                    let end = courses.iter().map(Course::stands_from).max()?;
                    if ends.is_none_or(|(best, _)| end < best) {
                        ends = Some((end, step));
                    }
                }
                Some(blocked) => self.expand(step, blocked),
            }
        }
        let (end, step) = ends?;
        self.schedule(step, end + 1)
    }

    fn courses(&self, step: usize, stops_at: [Option<usize>; 2]) -> Option<[Course<'a>; 2]> {
        let Step { time, at, .. } = *self.steps.get(step)?;
        let [one, other] = self.paths;
        let course = |path, from, stops_at| Course {
            path,
            from,
            time,
            stops_at,
        };
        Some([
            course(one, at[0], stops_at[0]),
            course(other, at[1], stops_at[1]),
        ])
    }

    fn reach(&mut self, time: usize, at: [Position; 2], before: usize) {
        if self.best.get(&at).is_some_and(|best| *best <= time) {
            return;
        }
        self.best.insert(at, time);
        let [one, other] = self.remaining(at);
        let rank = time + one.max(other) + (one + other) / PROGRESS;
        self.queue.push(Reverse((rank, self.steps.len())));
        self.steps.push(Step { time, at, before });
    }

    /// Returns the samples that are left for each arm if it waits no more.
    fn remaining(&self, at: [Position; 2]) -> [usize; 2] {
        let [one, other] = self.paths;
        let remaining = |path, from| {
            let course = Course {
                path,
                from,
                time: 0,
                stops_at: None,
            };
            course.stands_from()
        };
        [remaining(one, at[0]), remaining(other, at[1])]
    }

    /// Lets one arm go all its way before the other begins, if they keep apart so.
    fn take_turns(&mut self, first: usize) {
        let last = self.paths[first].swept.pieces();
        if let Some((time, at)) = self.wait(0, 1 - first, 0, (last, Clear::NextPiece)) {
            self.reach(time, at, 0);
        }
    }

    /// Follows both courses until one arm enters a piece that is not clear of what the other does, or a piece beyond `until`.
    /// Returns the pieces that are not clear of each other.
    fn first_blocked(&self, courses: &[Course<'a>; 2], until: [usize; 2]) -> Option<[usize; 2]> {
        let [one, other] = courses;
        let mut now = courses.map(|course| course.first_piece());
        while now[0] < until[0] && now[1] < until[1] {
            let stays = [one.stay(now[0]), other.stay(now[1])];
            if !self.is_apart(stays) {
                return Some(now);
            }
            match stays {
                [Stay::At(_), Stay::At(_)] => return None,
                [Stay::At(_), Stay::In(_)] => now[1] += 1,
                [Stay::In(_), Stay::At(_)] => now[0] += 1,
                [Stay::In(_), Stay::In(_)] => {
                    let [first, second] = [one.leaves(now[0]), other.leaves(now[1])];
                    now[0] += usize::from(first <= second);
                    now[1] += usize::from(second <= first);
                }
            }
        }
        None
    }

    /// Returns whether the arms keep apart, wherever each is around what it does.
    fn is_apart(&self, [one, other]: [Stay; 2]) -> bool {
        self.asked.set(self.asked.get() + 1);
        let [first, second] = &self.paths;
        let around = first.swept.around(one).zip(second.swept.around(other));
        // What an arm does not do is nowhere.
        let Some((ours, theirs)) = around else {
            return true;
        };
        let judge = || {
            let mut pairs = ours.pairs(theirs);
            ours.is_apart(theirs, self.least_m) || pairs.all(|pair| self.are_pieces_apart(pair))
        };
        match (one, other) {
            (Stay::In(piece), Stay::In(other)) => self.surroundings.get([piece, other], judge),
            _ => judge(),
        }
    }

    fn are_pieces_apart(&self, [piece, other]: [usize; 2]) -> bool {
        let [first, second] = &self.paths;
        let judge = || {
            first
                .swept
                .is_apart(piece, (second.swept, other), self.least_m)
        };
        self.pieces.get([piece, other], judge)
    }

    /// Lets either arm wait, at the last place before the blocked piece, or at an earlier one, until the other has left its own.
    fn expand(&mut self, step: usize, blocked: [usize; 2]) {
        for wait in [0, 1] {
            let [own, other] = if wait == 0 { [0, 1] } else { [1, 0] };
            let latest = self.paths[own].place_before(blocked[own]);
            let until = blocked[other] + 1;
            if until > self.paths[other].swept.pieces() {
                continue;
            }
            for place in latest.saturating_sub(EARLIER_MAX)..=latest {
                for clear in [Clear::NextPiece, Clear::NextPlace] {
                    if let Some((time, at)) = self.wait(step, own, place, (until, clear)) {
                        self.reach(time, at, step);
                    }
                }
            }
        }
    }

    /// Lets one arm wait at a place until the other has left the piece before `until`, and its own way is clear. Returns when that
    /// is, and where both are then; `None` if they do not keep apart meanwhile.
    fn wait(
        &self,
        step: usize,
        own: usize,
        place: usize,
        (until, clear): (usize, Clear),
    ) -> Option<(usize, [Position; 2])> {
        let mut stops_at = [None; 2];
        stops_at[own] = Some(place);
        let courses = self.courses(step, stops_at)?;
        let (waits, goes) = (&courses[own], &courses[1 - own]);
        if !waits.may_stop_at(place) {
            return None;
        }
        let stands_from = waits.stands_from();
        let pieces = goes.path.swept.pieces();
        let passes = |piece: usize| goes.passes(goes.path.swept.begin(piece));
        let left = (until..=pieces).find(|piece| passes(*piece) >= stands_from);
        let left = left.unwrap_or(pieces);
        let mut ends = [usize::MAX; 2];
        ends[1 - own] = left;
        if self.first_blocked(&courses, ends).is_some() {
            return None;
        }
        // While it could not go on it goes on waiting, as long as it is not in the way itself.
        let stands = Stay::At(place);
        let mut left = left;
        while left < pieces && !self.is_clear_from(goes, left, (own, place), clear) {
            if !self.is_apart(pair(own, stands, goes.stay(left))) {
                return None;
            }
            left += 1;
        }
        let time = passes(left).max(stands_from);
        let going = match left < pieces {
            true => Position::Enters(left),
            false => Position::Stands(goes.path.last_place()),
        };
        Some((time, pair(own, Position::Stands(place), going)))
    }

    /// Returns whether an arm that stands at a place can go on while the other enters a piece.
    fn is_clear_from(
        &self,
        goes: &Course<'a>,
        piece: usize,
        (own, place): (usize, usize),
        clear: Clear,
    ) -> bool {
        let course = |arm: usize, from| Course {
            path: self.paths[arm],
            from,
            time: 0,
            stops_at: None,
        };
        let ours = course(own, Position::Stands(place));
        let theirs = Course {
            from: Position::Enters(piece),
            time: 0,
            ..*goes
        };
        let first = ours.first_piece();
        let next = match clear {
            Clear::NextPiece => first + 1,
            Clear::NextPlace => ours.path.swept.piece_at(ours.path.place(place + 1).at),
        };
        let until = pair(own, next, usize::MAX);
        self.first_blocked(&pair(own, ours, theirs), until)
            .is_none()
    }

    /// Follows the steps back, and returns the waits of both arms.
    fn schedule(&self, step: usize, samples: usize) -> Option<ArmSchedule> {
        let mut steps = vec![*self.steps.get(step)?];
        let mut at = step;
        while at > 0 {
            at = self.steps.get(at)?.before;
            steps.push(*self.steps.get(at)?);
        }
        steps.reverse();
        let [one, other] = self.paths;
        let waits = [
            waits_of(one, &steps, |at| at[0])?,
            waits_of(other, &steps, |at| at[1])?,
        ];
        Some(ArmSchedule { waits, samples })
    }
}

/// How far an arm can go on, at least, when it ends a wait.
#[derive(Clone, Copy)]
enum Clear {
    NextPiece,
    NextPlace,
}

/// Puts what belongs to an arm and what belongs to the other one in the order of the arms.
fn pair<T>(own: usize, ours: T, theirs: T) -> [T; 2] {
    match own {
        0 => [ours, theirs],
        _ => [theirs, ours],
    }
}

/// Returns the waits of an arm along the steps of a schedule; standing at its end is none.
fn waits_of(
    path: ArmPath<'_>,
    steps: &[Step],
    own: impl Fn([Position; 2]) -> Position,
) -> Option<Vec<Wait>> {
    let mut waits = Vec::new();
    let mut from = (Position::Stands(0), 0);
    for (index, step) in steps.iter().enumerate() {
        let Position::Stands(place) = own(step.at) else {
            continue;
        };
        let later = steps.get(index + 1).map(|later| own(later.at));
        // Only the last step of a wait says how long it takes.
        if later == Some(Position::Stands(place)) || place == path.last_place() {
            continue;
        }
        let course = Course {
            path,
            from: from.0,
            time: from.1,
            stops_at: Some(place),
        };
        waits.push(Wait {
            place: path.place(place),
            still: step.time.checked_sub(course.stands_from())?,
        });
        from = (Position::Stands(place), step.time);
    }
    Some(waits)
}
