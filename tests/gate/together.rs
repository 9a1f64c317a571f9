//! Two arms carried out together, tick by tick: neither goes far ahead, what happens to one reaches
//! the other, and the arms never come nearer than the clearance, by arithmetic of the test's own.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a failing test may panic"
)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use base::units::{ArmMeasurement, ClockInstant, JointVector};
use gate::{
    CheckedTrajectory, Execution, ExecutionError, ExecutionStep, HoldAt, MotionPart, StandingArm,
};
use nalgebra::IsometryMatrix3;
use permit::PermitRegistry;
use plan::{NEIGHBOUR_SKEW, Trajectory};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use scene::Scene;

use crate::rules::apart::{DEFAULT, Motion, base, both, nearest_m, reading, refused, rods, shared};

const CLEARANCE_M: f64 = 0.003;

/// Two arms that draw towards each other at the same time, as near as the gate lets them.
struct Duet {
    scenes: [Arc<Scene>; 2],
    plans: [Trajectory; 2],
    base: IsometryMatrix3<f64>,
}

static DUET: LazyLock<Duet> = LazyLock::new(|| {
    let lines = Motion::Draw(vec![
        [[30.0, 40.0], [60.0, 85.0]],
        [[50.0, 85.0], [80.0, 60.0]],
    ]);
    let plans = both([&lines, &lines]).unwrap();
    let facing = |ahead_m: f64| base(0.0, -ahead_m, std::f64::consts::PI);
    let passes =
        |ahead_m: f64| refused(&shared(&DEFAULT, &DEFAULT, facing(ahead_m)), &plans).is_empty();
    let (mut low, mut high) = (0.3, 0.7);
    assert!(!passes(low) && passes(high));
    for _ in 0..12 {
        let middle = f64::midpoint(low, high);
        match passes(middle) {
            true => high = middle,
            false => low = middle,
        }
    }
    let base = facing(high);
    let scenes = shared(&DEFAULT, &DEFAULT, base);
    Duet {
        scenes,
        plans,
        base,
    }
});

impl Duet {
    fn proofs(&self) -> [CheckedTrajectory; 2] {
        let now = ClockInstant::ZERO;
        let starts = [0, 1].map(|arm: usize| reading(self.plans[arm].samples[0], 0));
        let parts = [0, 1].map(|arm: usize| MotionPart {
            scene: Arc::clone(&self.scenes[arm]),
            permit: PermitRegistry::everything()
                .ask(&self.scenes[arm], now)
                .unwrap(),
            start: &starts[arm],
            now,
            trajectory: self.plans[arm].clone(),
        });
        let checked = gate::check_together(parts.into(), &[]).unwrap();
        checked.try_into().unwrap()
    }

    fn least_m(&self, left: &JointVector, right: &JointVector) -> f64 {
        let identity = IsometryMatrix3::identity();
        let left = rods(&DEFAULT, left, &identity);
        nearest_m(&left, &rods(&DEFAULT, right, &self.base))
    }
}

/// An arm whose joints follow its goals.
struct Follower {
    execution: Option<Execution>,
    goals: Vec<JointVector>,
    /// Ticks by which it is late, and ticks for which it is not read.
    lag: usize,
    blind: usize,
    /// Ticks for which its thread hangs.
    hung: usize,
    /// A joint that something holds, and where.
    blocked: Option<(usize, f64)>,
    /// By how much its shoulder is beside where it should be.
    pushed_rad: f64,
    /// Where it is, and what was last read.
    at_rad: JointVector,
    read: ArmMeasurement,
    error: Option<ExecutionError>,
    has_finished: bool,
}

impl Follower {
    fn new(proof: CheckedTrajectory) -> Self {
        let start = reading(proof.trajectory().samples[0], 0);
        let mut execution = proof.begin(&start, ClockInstant::ZERO).unwrap();
        execution.watch_neighbours();
        Self {
            goals: vec![start.position_rad],
            at_rad: start.position_rad,
            execution: Some(execution),
            lag: 0,
            blind: 0,
            hung: 0,
            blocked: None,
            pushed_rad: 0.0,
            read: start,
            error: None,
            has_finished: false,
        }
    }

    fn tick(&mut self, now: ClockInstant) {
        if self.hung > 0 {
            self.hung -= 1;
            return;
        }
        let then = self.goals.len().saturating_sub(1 + self.lag);
        let goal_rad = self.goals[then];
        self.at_rad = goal_rad.map(|joint, goal| match self.blocked {
            Some((held, at)) if held == joint => at,
            _ if joint == 1 => goal + self.pushed_rad,
            _ => goal,
        });
        if self.blind == 0 {
            self.read = reading(self.at_rad, 0);
            self.read.at = now;
        }
        self.blind = self.blind.saturating_sub(1);
        let Some(execution) = &mut self.execution else {
            return;
        };
        match execution.next(&self.read, now) {
            Ok(ExecutionStep::Go(setpoint)) => self.goals.push(*setpoint.goal_rad()),
            Ok(ExecutionStep::Hold) => self.goals.push(*self.goals.last().unwrap()),
            Ok(ExecutionStep::Finished) => {
                self.goals.push(*self.goals.last().unwrap());
                self.has_finished = true;
            }
            Err(error) => self.error = Some(error),
        }
    }

    fn is_over(&self) -> bool {
        self.has_finished || self.execution.is_none()
    }

    fn sample(&self) -> Option<usize> {
        Some(self.execution.as_ref()?.progress().sample)
    }

    /// Samples that braking still passes.
    fn braking(&self) -> usize {
        let execution = self.execution.as_ref();
        execution.map_or(0, |execution| {
            execution.next_reach() - execution.progress().sample
        })
    }
}

/// What happens to one of them.
#[derive(Clone, Copy, Debug)]
enum Event {
    Stop,
    Stand,
    Halt,
    Drop,
    Hold(HoldAt),
    Resume,
    Lag(usize),
    Blind(usize),
    Block(usize),
    Hang(usize),
}

impl Event {
    fn happens_to(self, arms: &mut [Follower; 2], arm: usize, now: ClockInstant) {
        let follower = &mut arms[arm];
        match self {
            Self::Lag(ticks) => follower.lag = ticks,
            Self::Blind(ticks) => follower.blind = ticks,
            Self::Block(joint) => follower.blocked = Some((joint, follower.at_rad[joint])),
            Self::Hang(ticks) => follower.hung = ticks,
            Self::Drop => follower.execution = None,
            Self::Stop | Self::Stand | Self::Halt | Self::Hold(_) | Self::Resume => {
                let Some(execution) = &mut follower.execution else {
                    return;
                };
                match self {
                    Self::Stop => execution.stop(),
                    Self::Stand => execution.stand(),
                    Self::Halt => execution.halt(),
                    Self::Hold(at) => drop(execution.hold(at)),
                    _ => {
                        let permits = PermitRegistry::everything();
                        let permit = permits.ask(execution.scene(), now).unwrap();
                        // It may not be held.
                        let _ = execution.resume(&follower.read, permit, now);
                    }
                }
            }
        }
    }

    /// Returns whether it ends the motion of the arm that it happens to.
    fn ends_it(self) -> bool {
        matches!(self, Self::Stop | Self::Stand | Self::Halt | Self::Drop)
    }
}

fn event() -> impl Strategy<Value = Event> {
    let hold = prop_oneof![Just(HoldAt::Once), Just(HoldAt::StrokeEnd)];
    prop_oneof![
        1 => Just(Event::Stop),
        1 => Just(Event::Stand),
        1 => Just(Event::Halt),
        1 => Just(Event::Drop),
        3 => hold.prop_map(Event::Hold),
        6 => Just(Event::Resume),
        4 => (0_usize..12).prop_map(Event::Lag),
        4 => (1_usize..14).prop_map(Event::Blind),
        1 => (0_usize..5).prop_map(Event::Block),
        2 => (1_usize..150).prop_map(Event::Hang),
    ]
}

/// Most ticks of both motions with all that may happen to them.
const TICKS_MAX: usize = 4_000;

/// What was seen of both arms.
struct Run {
    arms: [Follower; 2],
    least_m: f64,
    /// By how much more than it may one was ahead of the other.
    beyond: usize,
    ticks: usize,
}

/// Carries both out, with events each so many ticks after the one before. At the end nobody is held or late.
fn run(events: &[(usize, usize, Event)]) -> Run {
    let duet = &*DUET;
    let mut arms = duet.proofs().map(Follower::new);
    let mut now = ClockInstant::ZERO;
    let (mut least_m, mut beyond) = (f64::INFINITY, 0);
    let mut events = events.iter();
    let mut next = events.next();
    let mut gap = 0;
    for ticks in 0..TICKS_MAX {
        now = now.after(duet.plans[0].period);
        gap += 1;
        match next {
            Some((after, arm, event)) if gap > *after => {
                event.happens_to(&mut arms, *arm, now);
                (next, gap) = (events.next(), 0);
            }
            Some(_) => {}
            None => {
                for arm in 0..2 {
                    Event::Lag(0).happens_to(&mut arms, arm, now);
                    let is_held =
                        |arm: &Follower| arm.execution.as_ref().is_some_and(Execution::is_held);
                    if is_held(&arms[arm]) && gap > 100 {
                        Event::Resume.happens_to(&mut arms, arm, now);
                    }
                }
            }
        }
        for arm in &mut arms {
            arm.tick(now);
        }
        least_m = least_m.min(duet.least_m(&arms[0].at_rad, &arms[1].at_rad));
        if let [Some(left), Some(right)] = [arms[0].sample(), arms[1].sample()] {
            let ahead = &arms[usize::from(right > left)];
            let most = NEIGHBOUR_SKEW + ahead.braking();
            beyond = beyond.max(left.abs_diff(right).saturating_sub(most));
        }
        if next.is_none() && arms.iter().all(Follower::is_over) {
            return Run {
                arms,
                least_m,
                beyond,
                ticks,
            };
        }
    }
    Run {
        arms,
        least_m,
        beyond,
        ticks: TICKS_MAX,
    }
}

#[test]
fn both_come_to_their_ends_at_once() {
    let run = run(&[]);
    let count = DUET.plans[0].samples.len();
    assert!(
        run.ticks < count + 10,
        "{} ticks for {count} samples",
        run.ticks
    );
    for arm in &run.arms {
        assert_eq!((arm.sample(), &arm.error), (Some(count - 1), &None));
        assert_eq!(arm.execution.as_ref().unwrap().stopped_with(), None);
    }
    assert!(run.least_m >= CLEARANCE_M, "{}", run.least_m);
}

/// A part alone stands at its first sample, whatever is asked of it; the other one lets it go.
#[test]
fn no_part_goes_on_before_every_part_has_begun() {
    let [left, right] = DUET.proofs();
    let mut left = Follower::new(left);
    let mut now = ClockInstant::ZERO;
    let mut tick = |arms: &mut [&mut Follower]| {
        now = now.after(DUET.plans[0].period);
        arms.iter_mut().for_each(|arm| arm.tick(now));
    };
    for _ in 0..50 {
        tick(&mut [&mut left]);
        let execution = left.execution.as_ref().unwrap();
        assert!(execution.awaits_beginning());
        assert_eq!(*execution.goal_rad(), DUET.plans[0].samples[0]);
    }
    let mut right = Follower::new(right);
    for _ in 0..50 {
        tick(&mut [&mut left, &mut right]);
    }
    assert!(left.sample() > Some(20) && right.sample() > Some(20));
}

#[test]
fn a_part_that_never_begins_stops_the_other() {
    let [left, right] = DUET.proofs();
    let mut left = Follower::new(left);
    drop(right);
    let mut now = ClockInstant::ZERO;
    for _ in 0..3 {
        now = now.after(DUET.plans[0].period);
        left.tick(now);
    }
    let execution = left.execution.as_ref().unwrap();
    assert_eq!(execution.stopped_with(), Some("right"));
    assert!(execution.was_stopped() && left.sample() == Some(0));
}

/// Ticks after which one that stops has come to rest: its brake and its lift.
const STOP_TICKS: usize = 150;

#[test]
fn what_ends_one_ends_the_other_within_the_bounds_of_one() {
    for event in [
        Event::Stop,
        Event::Stand,
        Event::Halt,
        Event::Drop,
        Event::Blind(100),
        Event::Block(1),
        Event::Hang(400),
    ] {
        for after in [60, 150, 260] {
            let run = run(&[(after, 0, event)]);
            let other = run.arms[1].execution.as_ref().unwrap();
            assert_eq!(other.stopped_with(), Some("left"), "{event:?} {after}");
            assert!(other.was_stopped() && run.arms[1].error.is_none());
            let last = run.arms[1].goals[after..]
                .windows(2)
                .rposition(|pair| pair[0] != pair[1]);
            // A fault takes time to be noticed, and one that waits for the other goes no further.
            let noticed = if event.ends_it() { 2 } else { 110 };
            assert!(
                last < Some(STOP_TICKS + noticed),
                "{event:?} {after}: {last:?}"
            );
            assert!(
                run.least_m >= CLEARANCE_M,
                "{event:?} {after}: {}",
                run.least_m
            );
        }
    }
}

#[test]
fn a_hold_of_one_holds_both_and_its_end_lets_both_go_on() {
    for at in [HoldAt::Once, HoldAt::StrokeEnd] {
        let mut arms = DUET.proofs().map(Follower::new);
        let mut now = ClockInstant::ZERO;
        let mut tick = |arms: &mut [Follower; 2]| {
            now = now.after(DUET.plans[0].period);
            arms.iter_mut().for_each(|arm| arm.tick(now));
            now
        };
        for _ in 0..200 {
            tick(&mut arms);
        }
        let at_tick = tick(&mut arms);
        Event::Hold(at).happens_to(&mut arms, 0, at_tick);
        let are_held = |arms: &[Follower; 2]| {
            arms.iter()
                .all(|arm| arm.execution.as_ref().unwrap().is_held())
        };
        let mut ticks = 0;
        while !are_held(&arms) {
            tick(&mut arms);
            ticks += 1;
            assert!(ticks < 2_000, "{at:?}");
        }
        // Each stands lifted and stays so.
        let goals = |arms: &[Follower; 2]| arms.each_ref().map(|arm| *arm.goals.last().unwrap());
        let held = goals(&arms);
        let mut last = ClockInstant::ZERO;
        for _ in 0..100 {
            last = tick(&mut arms);
        }
        assert_eq!(goals(&arms), held);
        // The one that was not told to does not go on by itself.
        Event::Resume.happens_to(&mut arms, 1, last);
        for _ in 0..100 {
            last = tick(&mut arms);
        }
        assert_eq!(goals(&arms), held);
        Event::Resume.happens_to(&mut arms, 0, last);
        for _ in 0..DUET.plans[0].samples.len() + 200 {
            tick(&mut arms);
        }
        for arm in &arms {
            assert_eq!(
                arm.sample(),
                Some(DUET.plans[0].samples.len() - 1),
                "{at:?}"
            );
        }
    }
}

#[test]
fn a_part_that_is_late_makes_the_other_wait() {
    let last = DUET.plans[0].samples.len() - 1;
    let mut arms = DUET.proofs().map(Follower::new);
    arms[0].lag = 3 * NEIGHBOUR_SKEW;
    let (mut now, mut ticks, mut furthest) = (ClockInstant::ZERO, 0, 0);
    while arms.iter().any(|arm| !arm.has_finished) {
        now = now.after(DUET.plans[0].period);
        for arm in &mut arms {
            arm.tick(now);
            assert_eq!(arm.error, None);
        }
        let [left, right] = arms.each_ref().map(|arm| arm.sample().unwrap());
        furthest = furthest.max(right.saturating_sub(left));
        ticks += 1;
        assert!(ticks < 3 * last, "{left} {right}");
    }
    assert!(arms.iter().all(|arm| arm.sample() == Some(last)));
    // It is waited for, so it takes longer than planned.
    assert!(ticks > last + NEIGHBOUR_SKEW, "{ticks}");
    assert!(furthest <= NEIGHBOUR_SKEW + 1, "{furthest}");
}

#[test]
fn a_change_of_one_is_told_to_the_other() {
    let mut arms = DUET.proofs().map(Follower::new);
    let told = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&told);
    let right = arms[1].execution.as_ref().unwrap();
    right.on_neighbour_change(Box::new(move || {
        counts.fetch_add(1, Ordering::Relaxed);
    }));
    let mut now = ClockInstant::ZERO;
    for _ in 0..20 {
        now = now.after(DUET.plans[0].period);
        arms.iter_mut().for_each(|arm| arm.tick(now));
    }
    let before = told.load(Ordering::Relaxed);
    let left = arms[0].execution.as_mut().unwrap();
    assert!(format!("{left:?}").contains("ConcertPart"));
    left.stop();
    arms[0].tick(now.after(DUET.plans[0].period));
    assert!(told.load(Ordering::Relaxed) > before);
}

/// It is on its path, but comes no farther: the other one does not wait for it for ever.
#[test]
fn an_arm_that_stays_behind_ends_both() {
    let mut arms = DUET.proofs().map(Follower::new);
    let mut now = ClockInstant::ZERO;
    for tick in 0..600 {
        now = now.after(DUET.plans[0].period);
        if tick > 150 {
            arms[0].lag += 1;
        }
        arms.iter_mut().for_each(|arm| arm.tick(now));
        if arms.iter().all(Follower::is_over) {
            break;
        }
    }
    assert!(arms[0].error.is_some() && arms[0].sample() < Some(200));
    let other = arms[1].execution.as_ref().unwrap();
    assert_eq!(
        (other.stopped_with(), &arms[1].error),
        (Some("left"), &None)
    );
    assert!(other.has_lifted() && arms[1].sample() < Some(200));
}

/// By less than what counts as a stall, but by more than the other arm is kept away for.
#[test]
fn an_arm_beside_its_path_ends_both() {
    let mut arms = DUET.proofs().map(Follower::new);
    let mut now = ClockInstant::ZERO;
    for tick in 0..300 {
        now = now.after(DUET.plans[0].period);
        if tick == 120 {
            arms[0].pushed_rad = 0.08;
        }
        arms.iter_mut().for_each(|arm| arm.tick(now));
        if arms.iter().all(Follower::is_over) {
            break;
        }
    }
    let error = arms[0].error.as_ref();
    assert!(
        matches!(error, Some(ExecutionError::OffPath { off_mm, .. }) if *off_mm > 4.0),
        "{error:?}"
    );
    let other = arms[1].execution.as_ref().unwrap();
    assert_eq!(
        (other.stopped_with(), &arms[1].error),
        (Some("left"), &None)
    );
    assert!(arms.iter().all(|arm| arm.sample() < Some(120 + 60)));
}

/// Its neighbour stands, and is as near as the gate lets it be.
#[test]
fn an_arm_that_moves_alone_is_kept_to_its_path_as_well() {
    let duet = &*DUET;
    let starts = [0, 1].map(|arm: usize| reading(duet.plans[arm].samples[0], 0));
    for (pushed_rad, is_off) in [(0.0, false), (0.08, true)] {
        let now = ClockInstant::ZERO;
        let scene = Arc::clone(&duet.scenes[0]);
        let part = MotionPart {
            permit: PermitRegistry::everything().ask(&scene, now).unwrap(),
            scene,
            start: &starts[0],
            now,
            trajectory: duet.plans[0].clone(),
        };
        let stands = StandingArm {
            scene: &duet.scenes[1],
            measured: &starts[1],
            now,
        };
        let mut proofs = gate::check_together(vec![part], &[stands]).unwrap();
        let mut arm = Follower::new(proofs.remove(0));
        let mut now = now;
        for _ in 0..TICKS_MAX {
            now = now.after(duet.plans[0].period);
            if arm.sample() > Some(120) {
                arm.pushed_rad = pushed_rad;
            }
            arm.tick(now);
            if arm.is_over() || arm.error.is_some() {
                break;
            }
        }
        let error = arm.error.as_ref();
        let is_beside =
            matches!(error, Some(ExecutionError::OffPath { off_mm, .. }) if *off_mm > 4.0);
        assert_eq!(
            (is_beside, arm.has_finished),
            (is_off, !is_off),
            "{error:?}"
        );
    }
}

/// The right arm is a few ticks late.
#[test]
fn a_hold_of_an_arm_whose_goals_are_all_sent_neither_holds_nor_stops_the_other() {
    let mut arms = DUET.proofs().map(Follower::new);
    let last = DUET.plans[0].samples.len() - 1;
    let (mut now, mut ticks) = (ClockInstant::ZERO, 0);
    let mut tick = |arms: &mut [Follower; 2]| {
        now = now.after(DUET.plans[0].period);
        arms.iter_mut().for_each(|arm| arm.tick(now));
        ticks += 1;
        assert!(ticks < TICKS_MAX);
        now
    };
    while arms[0].sample() < Some(last) {
        tick(&mut arms);
        if arms[0].sample() == Some(last - 5) {
            arms[1].hung = 5;
        }
    }
    assert!(arms[1].sample() < Some(last));
    let at_tick = tick(&mut arms);
    Event::Hold(HoldAt::Once).happens_to(&mut arms, 0, at_tick);
    tick(&mut arms);
    arms[0].execution.take().unwrap().arrive();
    while !arms[1].is_over() {
        tick(&mut arms);
    }
    let other = arms[1].execution.as_ref().unwrap();
    assert_eq!((arms[1].sample(), other.stopped_with()), (Some(last), None));
}

/// The other one is resumed; the one that was moved waits for a person to look at it.
#[test]
fn an_arm_that_was_moved_while_it_was_held_does_not_go_on() {
    let mut arms = DUET.proofs().map(Follower::new);
    let mut now = ClockInstant::ZERO;
    let mut ticks = |arms: &mut [Follower; 2], count: usize| {
        for _ in 0..count {
            now = now.after(DUET.plans[0].period);
            arms.iter_mut().for_each(|arm| arm.tick(now));
        }
        now
    };
    let at_tick = ticks(&mut arms, 150);
    Event::Hold(HoldAt::Once).happens_to(&mut arms, 0, at_tick);
    let at_tick = ticks(&mut arms, 200);
    assert!(arms[1].execution.as_ref().unwrap().is_held_with_other());
    arms[1].pushed_rad = 0.05;
    Event::Resume.happens_to(&mut arms, 0, at_tick);
    let samples = arms.each_ref().map(Follower::sample);
    let at_tick = ticks(&mut arms, 100);
    assert_eq!(arms.each_ref().map(Follower::sample), samples);
    for (arm, with_other) in [(0, true), (1, false)] {
        let execution = arms[arm].execution.as_ref().unwrap();
        assert!(
            execution.is_held() && execution.is_held_with_other() == with_other,
            "{arm}"
        );
    }
    arms[1].pushed_rad = 0.0;
    let at_tick = ticks(&mut arms, 1).max(at_tick);
    Event::Resume.happens_to(&mut arms, 1, at_tick);
    ticks(&mut arms, DUET.plans[0].samples.len() + 200);
    let last = DUET.plans[0].samples.len() - 1;
    assert!(
        arms.iter()
            .all(|arm| arm.sample() == Some(last) && arm.error.is_none())
    );
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.min(64),
        rng_seed: RngSeed::Fixed(0x5eed),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Whatever happens to either, in whatever order.
    #[test]
    fn two_arms_stay_apart_whatever_happens(
        events in prop::collection::vec((1_usize..160, 0_usize..2, event()), 1..10)
    ) {
        let run = run(&events);
        prop_assert!(run.ticks < TICKS_MAX, "no end");
        prop_assert!(run.least_m >= CLEARANCE_M, "{} m", run.least_m);
        prop_assert_eq!(run.beyond, 0);
        let count = DUET.plans[0].samples.len();
        let has_ended = |arm: &Follower| arm.sample() == Some(count - 1) && arm.error.is_none();
        let is_stopped = |arm: &Follower| {
            let was_stopped = arm.execution.as_ref().is_none_or(Execution::was_stopped);
            was_stopped || arm.error.is_some() || (arm.has_finished && arm.sample() < Some(count - 1))
        };
        for (one, other) in [(0, 1), (1, 0)] {
            let (one, other) = (&run.arms[one], &run.arms[other]);
            prop_assert!(has_ended(one) || is_stopped(one));
            prop_assert!(has_ended(one) || is_stopped(other) || has_ended(other));
        }
    }
}
