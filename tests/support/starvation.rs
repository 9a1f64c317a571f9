//! Tests of arms in real time, on machines that have something else to do.

use std::cell::Cell;
use std::panic::{UnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Number of attempts at a test that begins anew.
const ATTEMPTS: u32 = 15;

/// Tests of this kind that run at a time: each has an arm, a node and often a client that want a processor every 10 ms.
const AT_ONCE: u32 = 6;

/// Share of a test's time in which a program waited for a processor, from which on a servo's reply, or the thread that waits for it,
/// may have come too late: the bus is then as silent as one without power.
const BUSY_SHARE: f64 = 0.05;

/// Runs a test of an arm that moves in real time in another process than its node. Where it fails and the machine was busy meanwhile,
/// it begins anew; where the machine was quiet, or at the last attempt, its failure counts.
pub(crate) fn unless_starved(test: impl Fn() + Copy + UnwindSafe) {
    let _seat = RealTimeSeat::take();
    for attempt in 1..=ATTEMPTS {
        let (waited, began) = (waited_for_processors(), Instant::now());
        let Err(failure) = catch_unwind(test) else {
            return;
        };
        let waited = waited_for_processors().zip(waited);
        let share = waited.map(|(after, before)| {
            after.saturating_sub(before).as_secs_f64() / began.elapsed().as_secs_f64()
        });
        // A system that does not tell may have been busy.
        if attempt == ATTEMPTS || share.is_some_and(|share| share < BUSY_SHARE) {
            resume_unwind(failure);
        }
        println!(
            "attempt {attempt}: programs waited for a processor for {share:.2?} of the time; once more"
        );
    }
}

/// Asks for a motion, again while the arm was not read in time for it to begin: nothing has moved then.
pub(crate) fn begun(mut ask: impl FnMut() -> Value) -> Value {
    let mut answer = ask();
    for _ in 1..ATTEMPTS {
        let why = answer.pointer("/refusals/0/why").and_then(Value::as_str);
        if !why.is_some_and(|why| why.contains("has not answered")) {
            break;
        }
        std::thread::sleep(Duration::from_millis(300));
        answer = ask();
    }
    answer
}

/// Returns the time in which a program of this machine waited for a processor, since it was started.
fn waited_for_processors() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/pressure/cpu").ok()?;
    let line = text.lines().find(|line| line.starts_with("some "))?;
    let total = line.rsplit("total=").next()?.parse().ok()?;
    Some(Duration::from_micros(total))
}

static TAKEN: Mutex<u32> = Mutex::new(0);
static GIVEN_BACK: Condvar = Condvar::new();

thread_local! {
    static IS_IN_REAL_TIME: Cell<bool> = const { Cell::new(false) };
}

/// Returns a command whose program leaves more of a busy processor to those of tests in real time: these are this thread's if it holds
/// a seat, and all that drive or are an arm on a port.
pub(crate) fn behind_real_time(program: PathBuf, args: &[&str]) -> Command {
    let is_on_port = |arg: &&str| matches!(*arg, "--port" | "--pty") || arg.starts_with("/dev/");
    if IS_IN_REAL_TIME.get() || args.iter().any(is_on_port) {
        return Command::new(program);
    }
    let mut command = Command::new("nice");
    command.arg("-n4").arg(program);
    command
}

/// Leave to run in real time, beside a few other tests that do.
pub(crate) struct RealTimeSeat;

impl RealTimeSeat {
    pub(crate) fn take() -> Self {
        IS_IN_REAL_TIME.set(true);
        let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = GIVEN_BACK
            .wait_while(taken, |taken| *taken >= AT_ONCE)
            .unwrap_or_else(PoisonError::into_inner);
        *taken += 1;
        Self
    }
}

impl Drop for RealTimeSeat {
    fn drop(&mut self) {
        IS_IN_REAL_TIME.set(false);
        *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        GIVEN_BACK.notify_one();
    }
}
