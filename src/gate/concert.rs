//! What the arms share that are carried out together: how far each was measured along its path, and
//! whether it goes on.
//!
//! Atomics alone, so no arm's thread waits for another. A part that goes away before its arm was
//! measured at its end counts as one that stopped, so that the others stop as well.

use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// A callback for a change of another arm. It must not block.
pub(super) type ChangeCallback = Box<dyn Fn() + Send + Sync>;

/// Own ticks without one of an arm that goes on, after which that arm counts as stopped: a second.
const SILENT_TICKS: u32 = 100;

/// One arm's part in it.
pub(super) struct ConcertPart {
    concert: Arc<Vec<PartProgress>>,
    index: usize,
    /// What was last heard of each arm, and whether it matters.
    heard: Vec<Heard>,
    watches: bool,
}

/// The ticks of an arm when it was last heard of, and the own ticks since.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    ticks: usize,
    since: u32,
}

/// The progress of one arm.
struct PartProgress {
    /// Its name, in a scene that several arms share.
    name: Option<String>,
    state: AtomicU8,
    /// The last sample at which the arm was measured.
    followed: AtomicUsize,
    /// Ticks of its thread.
    ticks: AtomicUsize,
    on_change: OnceLock<ChangeCallback>,
}

/// The state of one arm's part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum PartState {
    /// It has not begun.
    Waiting,
    /// It goes on.
    Going,
    /// It stands with the tip up, by an order to itself.
    Held,
    /// It stands with the tip up because another arm does.
    Rests,
    /// Its goal is at the end of its path. Where the arm is, its readings show later.
    Ended,
    /// It was measured at its end.
    Arrived,
    /// It stops, stands or failed, for good.
    Stopped,
}

impl PartState {
    const fn from_bits(bits: u8) -> Self {
        match bits {
            0 => Self::Waiting,
            1 => Self::Going,
            2 => Self::Held,
            3 => Self::Rests,
            4 => Self::Ended,
            5 => Self::Arrived,
            _ => Self::Stopped,
        }
    }
}

impl PartProgress {
    fn state(&self) -> PartState {
        PartState::from_bits(self.state.load(Ordering::SeqCst))
    }
}

impl ConcertPart {
    /// Returns a part for each of these arms.
    pub(super) fn of_all(names: impl Iterator<Item = Option<String>>) -> Vec<Self> {
        let progress = names.map(|name| PartProgress {
            name,
            state: AtomicU8::new(PartState::Waiting as u8),
            followed: AtomicUsize::new(0),
            ticks: AtomicUsize::new(0),
            on_change: OnceLock::new(),
        });
        let concert: Arc<Vec<PartProgress>> = Arc::new(progress.collect());
        (0..concert.len())
            .map(|index| Self {
                concert: Arc::clone(&concert),
                index,
                heard: vec![Heard::default(); concert.len()],
                watches: false,
            })
            .collect()
    }

    #[expect(
        clippy::expect_used,
        reason = "an arm without its own part would heed nobody"
    )]
    fn own(&self) -> &PartProgress {
        self.concert
            .get(self.index)
            .expect("the shared motion has one part for each arm")
    }

    fn others(&self) -> impl Iterator<Item = &PartProgress> {
        self.others_heard().map(|(part, _)| part)
    }

    fn others_heard(&self) -> impl Iterator<Item = (&PartProgress, &Heard)> {
        let parts = self.concert.iter().zip(&self.heard).enumerate();
        let others = parts.filter(|(index, _)| *index != self.index);
        others.map(|(_, part)| part)
    }

    /// Notes the arm's own state, and tells the others of a change. A part that stopped stays so.
    pub(super) fn note(&self, state: PartState) {
        let stopped = PartState::Stopped as u8;
        let next = |now: u8| (now != stopped).then_some(state as u8);
        let own = &self.own().state;
        let before = own.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next);
        if before.is_ok_and(|before| before != state as u8) {
            let callbacks = self.others().filter_map(|part| part.on_change.get());
            callbacks.for_each(|tell| tell());
        }
    }

    /// Counts other arms as stopped from now on that hang.
    pub(super) fn watch(&mut self) {
        self.watches = true;
    }

    /// Counts a tick of this arm, and those since the others were heard of.
    pub(super) fn tick(&mut self) {
        self.own().ticks.fetch_add(1, Ordering::SeqCst);
        for (part, heard) in self.concert.iter().zip(&mut self.heard) {
            let ticks = part.ticks.load(Ordering::SeqCst);
            // An arm that stands sleeps.
            let is_heard = ticks != heard.ticks || part.state() != PartState::Going;
            let since = if is_heard { 0 } else { heard.since + 1 };
            *heard = Heard { ticks, since };
        }
    }

    /// Notes that the arm was measured at a sample of its path.
    pub(super) fn note_followed(&self, sample: usize) {
        self.own().followed.fetch_max(sample, Ordering::SeqCst);
    }

    /// Returns the last sample at which the arm itself was measured.
    pub(super) fn followed(&self) -> usize {
        self.own().followed.load(Ordering::SeqCst)
    }

    /// Sets what is called when another arm's state changes. Only the first one is kept.
    pub(super) fn on_change(&self, callback: ChangeCallback) {
        // One arm has one thread, which sets it once.
        let _ = self.own().on_change.set(callback);
    }

    /// Returns whether every other arm has begun.
    pub(super) fn all_have_begun(&self) -> bool {
        self.others().all(|part| part.state() != PartState::Waiting)
    }

    /// Returns whether another arm is held.
    pub(super) fn is_another_held(&self) -> bool {
        self.others().any(|part| part.state() == PartState::Held)
    }

    /// Returns whether another arm stands because one was held.
    pub(super) fn does_another_rest(&self) -> bool {
        self.others().any(|part| part.state() == PartState::Rests)
    }

    /// Returns the name of another arm that stopped, or whose thread has hung for too long, if any.
    pub(super) fn stopped_other(&self) -> Option<&str> {
        let mut others = self.others_heard();
        let (stopped, _) = others.find(|(part, heard)| {
            part.state() == PartState::Stopped || (self.watches && heard.since > SILENT_TICKS)
        })?;
        Some(stopped.name.as_deref().unwrap_or("the other arm"))
    }

    /// Returns the least sample at which another arm was measured that is not at its end.
    pub(super) fn slowest_other(&self) -> Option<usize> {
        let others = self.others();
        let has_ended = |state| matches!(state, PartState::Ended | PartState::Arrived);
        let under_way = others.filter(|part| !has_ended(part.state()));
        under_way
            .map(|part| part.followed.load(Ordering::SeqCst))
            .min()
    }
}

impl Drop for ConcertPart {
    fn drop(&mut self) {
        if self.own().state() != PartState::Arrived {
            self.note(PartState::Stopped);
        }
    }
}

impl fmt::Debug for ConcertPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let states = self.concert.iter().map(PartProgress::state);
        f.debug_struct("ConcertPart")
            .field("index", &self.index)
            .field("states", &states.collect::<Vec<_>>())
            .finish()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    fn parts(count: usize) -> Vec<ConcertPart> {
        ConcertPart::of_all((0..count).map(|index| Some(index.to_string())))
    }

    #[test]
    fn an_arm_alone_has_nobody_to_heed() {
        let alone = parts(1).pop().unwrap();
        assert!(alone.all_have_begun() && !alone.is_another_held());
        assert_eq!((alone.stopped_other(), alone.slowest_other()), (None, None));
    }

    #[test]
    fn a_part_that_stopped_stays_so_and_one_that_goes_away_has_stopped() {
        let mut all = parts(3);
        all.iter().for_each(|part| part.note(PartState::Going));
        assert!(all.iter().all(ConcertPart::all_have_begun));
        let [first, second] = [0, 1].map(|index| all.get(index).unwrap());
        second.note(PartState::Held);
        assert!(first.is_another_held() && !second.is_another_held());
        second.note(PartState::Stopped);
        second.note(PartState::Going);
        assert_eq!(first.stopped_other(), Some("1"));
        assert_eq!(second.stopped_other(), None);
        drop(all.remove(0));
        assert_eq!(all.first().unwrap().stopped_other(), Some("0"));
    }

    #[test]
    fn only_a_part_that_was_measured_at_its_end_may_go_away() {
        for (state, stopped) in [
            (PartState::Waiting, true),
            (PartState::Going, true),
            (PartState::Held, true),
            (PartState::Rests, true),
            (PartState::Ended, true),
            (PartState::Arrived, false),
        ] {
            let mut both = parts(2);
            let first = both.remove(0);
            first.note(state);
            drop(first);
            let left = both.pop().unwrap();
            assert_eq!(left.stopped_other().is_some(), stopped, "{state:?}");
        }
    }

    #[test]
    fn the_slowest_is_the_least_that_was_measured_and_never_falls() {
        let all = parts(3);
        let [first, second, third] = [0, 1, 2].map(|index| all.get(index).unwrap());
        second.note_followed(7);
        third.note_followed(9);
        second.note_followed(3);
        assert_eq!((first.slowest_other(), second.followed()), (Some(7), 7));
        second.note(PartState::Ended);
        assert_eq!(first.slowest_other(), Some(9));
        third.note(PartState::Arrived);
        assert_eq!(first.slowest_other(), None);
    }

    #[test]
    fn one_that_goes_on_without_a_tick_for_a_second_has_stopped() {
        for (state, stopped) in [
            (PartState::Waiting, None),
            (PartState::Going, Some("1")),
            (PartState::Held, None),
            (PartState::Rests, None),
            (PartState::Ended, None),
            (PartState::Arrived, None),
        ] {
            let mut both = parts(2);
            both.iter_mut().for_each(ConcertPart::tick);
            let mut second = both.pop().unwrap();
            let mut first = both.pop().unwrap();
            second.note(state);
            first.watch();
            for _ in 0..=SILENT_TICKS {
                assert_eq!(first.stopped_other(), None, "{state:?}");
                first.tick();
            }
            first.tick();
            assert_eq!(first.stopped_other(), stopped, "{state:?}");
            // It hears itself.
            second.tick();
            first.tick();
            assert_eq!(first.stopped_other(), None, "{state:?}");
        }
    }

    #[test]
    fn others_are_told_of_each_change_once() {
        let told = Arc::new(AtomicUsize::new(0));
        let all = parts(2);
        let [first, second] = [0, 1].map(|index| all.get(index).unwrap());
        let counter = Arc::clone(&told);
        first.on_change(Box::new(move || {
            counter.fetch_add(1, Ordering::SeqCst);
        }));
        let count = || told.load(Ordering::SeqCst);
        first.note(PartState::Going);
        assert_eq!(count(), 0);
        second.note(PartState::Going);
        second.note(PartState::Going);
        assert_eq!(count(), 1);
        second.note(PartState::Stopped);
        second.note(PartState::Held);
        assert_eq!(count(), 2);
    }
}
