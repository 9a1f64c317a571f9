//! The 100 Hz loop beside programs that take all of the machine's time.
//!
//! `cargo test --test timing hogs:: -- --ignored --nocapture`; `STEADYHAND_MINUTES=10` for ten minutes.
//!
//! How late the arm's thread wakes is judged in ten minutes, by the one in the middle of bare threads
//! of the same priority that sleep beside it in the same run; a minute says too little of it, so there
//! it is printed, and counts are judged. It needs leave for a real-time priority, as the units give it
//! (`ulimit -r 10`, or root): where all have turns, whoever works is later than who only sleeps.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a failing test may panic; its figures are what it is for"
)]

use crate::far_end;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use steadyhand::clock::NodeClock;
use steadyhand::motion::{MotionOutcome, STARVED, set_realtime_priority};

use far_end::{Family, PERIOD, Rig};

const HOGS: usize = 4;

/// Bare threads beside the arm's.
const BARE: usize = 3;

/// Time by which the arm's thread may wake later than a bare one.
const LATER: Duration = Duration::from_millis(1);

/// A third of what a machine without other work gives: planning and resetting take their time too.
const CYCLES_A_MINUTE: u64 = 2000;

/// Time that a cycle may cost the processor: the other half of its period belongs to the wire.
const BUDGET: Duration = Duration::from_millis(5);

/// A bare thread that sleeps until each next tick: by how much it woke too late. It has the priority of
/// an arm's.
fn bare(until: &AtomicBool) -> Vec<Duration> {
    let _ = set_realtime_priority();
    let mut delays = Vec::new();
    let mut next = Instant::now();
    while !until.load(Ordering::SeqCst) {
        next += PERIOD;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        delays.push(Instant::now().saturating_duration_since(next));
        next = next.max(Instant::now() - PERIOD);
    }
    delays
}

fn late_p99(late: Vec<Duration>) -> Duration {
    let late = sorted(late);
    late[late.len() * 99 / 100]
}

fn sorted(of: impl IntoIterator<Item = Duration>) -> Vec<Duration> {
    let mut all: Vec<_> = of.into_iter().collect();
    all.sort();
    all
}

fn hog(until: &AtomicBool) {
    let mut number = 1_u64;
    while !until.load(Ordering::SeqCst) {
        for _ in 0..100_000 {
            number = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(7);
        }
    }
    std::hint::black_box(number);
}

#[tokio::test]
#[ignore = "takes a minute: cargo test --test timing hogs:: -- --ignored"]
async fn drawing_goes_on_beside_four_hogs() {
    let minutes: u64 = std::env::var("STEADYHAND_MINUTES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1);
    let over = Arc::new(AtomicBool::new(false));
    let hogs: Vec<_> = (0..HOGS)
        .map(|_| {
            let over = Arc::clone(&over);
            std::thread::spawn(move || hog(&over))
        })
        .collect();
    let sleepers: Vec<_> = (0..BARE)
        .map(|_| {
            let over = Arc::clone(&over);
            std::thread::spawn(move || bare(&over))
        })
        .collect();
    let rig = Rig {
        clock: NodeClock::real(),
        ..Rig::new(Family::Sts)
    };
    let motion = rig.attach().unwrap();
    let end = Instant::now() + Duration::from_secs(60 * minutes);
    let (mut drawn, mut starved) = (0, 0);
    while Instant::now() < end {
        match rig.draw(&motion, None).await {
            MotionOutcome::Reached { .. } => drawn += 1,
            // Nothing but the machine itself may end a stroke here.
            MotionOutcome::Faulted(why) => {
                assert!(why.contains(STARVED), "{why}");
                starved += 1;
                let reset = rig
                    .reset(&motion, steadyhand::permit::ActorRank::Operator)
                    .await;
                assert!(matches!(reset, MotionOutcome::Reached { .. }), "{reset:?}");
            }
            other => panic!("{other:?}"),
        }
    }
    over.store(true, Ordering::SeqCst);
    hogs.into_iter().for_each(|hog| hog.join().unwrap());
    let sleepers = sleepers.into_iter().map(|sleeper| sleeper.join().unwrap());
    let bare_p99 = sorted(sleepers.map(late_p99));
    let snapshot = motion.snapshot();
    // What a thread that only sleeps can be compared with; a tick after an overrun is not asleep.
    let own_p99 = snapshot.woken_late.quantile(0.99);
    let counts = &snapshot.counts;
    eprintln!(
        "{} cycles, {drawn} drawings, {starved} starved; ahead of others: {}; woken late p99 {own_p99:?}, bare threads {bare_p99:?}; ticks late p99 {:?}; cycle p50 {:?} p99 {:?} max {:?}",
        counts.cycles,
        snapshot.is_ahead,
        snapshot.lateness.quantile(0.99),
        counts.cycle_time.quantile(0.5),
        counts.cycle_time.quantile(0.99),
        counts.cycle_time.longest()
    );
    assert!(drawn > 0 && counts.cycles > CYCLES_A_MINUTE * minutes);
    let work = &counts.cycle_work;
    eprintln!(
        "of its own a cycle worked p50 {:?}, p99 {:?}, at most {:?}",
        work.quantile(0.5),
        work.quantile(0.99),
        work.longest()
    );
    assert!(work.count() > 0 && work.longest() < BUDGET);
    let median = bare_p99[BARE / 2];
    if minutes == 1 {
        return;
    }
    assert!(
        snapshot.is_ahead,
        "no leave for a real-time priority: `ulimit -r 10`"
    );
    assert!(own_p99 <= median + LATER, "{own_p99:?} against {median:?}");
}
