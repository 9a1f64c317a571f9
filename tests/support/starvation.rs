//! Runs tests of arms in real time on machines that may be busy.

use std::cell::Cell;
use std::panic::{UnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Condvar, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Number of attempts at a test.
const ATTEMPTS: u32 = 15;

/// Maximum number of concurrent real-time tests: each has an arm, a node and often a client that need a processor every 10 ms.
const AT_ONCE: u32 = 6;

/// Fraction of a test's time during which some program waited for a processor, from which a servo's reply, or the thread that waits
/// for it, may have been too late. The bus then looks as silent as one without power.
const BUSY_FRACTION: f64 = 0.05;

/// Longest wait for a busy machine before a test is tried again.
const CALM_WITHIN: Duration = Duration::from_secs(15);

/// Runs a test whose arm moves in real time in another process than its node. If it fails while the machine was busy, it runs
/// again; a failure on a quiet machine, or at the last attempt, counts.
pub(crate) fn unless_starved(test: impl Fn() + Copy + UnwindSafe) {
    let _seat = RealTimeSeat::take();
    for attempt in 1..=ATTEMPTS {
        let (waited_before, began) = (waited_for_processors(), Instant::now());
        let Err(failure) = catch_unwind(test) else {
            return;
        };
        let waited = waited_for_processors().zip(waited_before);
        let fraction = waited.map(|(after, before)| {
            after.saturating_sub(before).as_secs_f64() / began.elapsed().as_secs_f64()
        });
        // Without a measurement the machine may have been busy.
        if attempt == ATTEMPTS || fraction.is_some_and(|fraction| fraction < BUSY_FRACTION) {
            resume_unwind(failure);
        }
        println!(
            "attempt {attempt}: programs waited for a processor for {fraction:.2?} of the time; once more"
        );
        await_calm();
    }
}

/// Waits until most of a second passes without a program that waits for a processor, or for [`CALM_WITHIN`]: what makes a
/// machine busy for a while, such as a compiler, would otherwise use up all attempts.
fn await_calm() {
    let began = Instant::now();
    while began.elapsed() < CALM_WITHIN {
        let before = waited_for_processors();
        std::thread::sleep(Duration::from_secs(1));
        let waited = waited_for_processors().zip(before);
        let waited = waited.map(|(after, before)| after.saturating_sub(before));
        if waited.is_none_or(|waited| waited < Duration::from_millis(300)) {
            break;
        }
    }
}

/// Requests a motion, and again while it is refused because the arm was not read in time: nothing has moved then.
pub(crate) fn begun(mut request: impl FnMut() -> Value) -> Value {
    let mut answer = request();
    for _ in 1..ATTEMPTS {
        let reason = answer.pointer("/refusals/0/why").and_then(Value::as_str);
        if !reason.is_some_and(|reason| reason.contains("not answered")) {
            break;
        }
        std::thread::sleep(Duration::from_millis(300));
        answer = request();
    }
    answer
}

/// Returns the total time since boot in which some program waited for a processor.
fn waited_for_processors() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/pressure/cpu").ok()?;
    let line = text.lines().find(|line| line.starts_with("some "))?;
    let total = line.rsplit("total=").next()?.parse().ok()?;
    Some(Duration::from_micros(total))
}

static SEATS_TAKEN: Mutex<u32> = Mutex::new(0);
static SEAT_RETURNED: Condvar = Condvar::new();

thread_local! {
    static IS_IN_REAL_TIME: Cell<bool> = const { Cell::new(false) };
}

/// Returns a command that runs with lower priority than programs of real-time tests. Those are the programs of a thread that holds a
/// seat, and all that drive or simulate an arm on a port; they come before everything else that runs, if the system allows it.
pub(crate) fn yielding_to_real_time(program: PathBuf, args: &[&str]) -> Command {
    // A simulated arm answers within milliseconds, whatever else the machine does.
    if args.contains(&"--pty") && *MAY_RUN_IN_REAL_TIME {
        let mut command = Command::new("chrt");
        command.args(["-f", "1"]).arg(program);
        return command;
    }
    let is_on_port = |arg: &&str| matches!(*arg, "--port" | "--pty") || arg.starts_with("/dev/");
    let niceness = if !(IS_IN_REAL_TIME.get() || args.iter().any(is_on_port)) {
        "-n4"
    } else if *MAY_COME_FIRST {
        "-n-15"
    } else {
        return Command::new(program);
    };
    let mut command = Command::new("nice");
    command.arg(niceness).arg(program);
    command
}

/// Whether the system lets a program of this user run in real time, as the thread of an arm does.
static MAY_RUN_IN_REAL_TIME: LazyLock<bool> = LazyLock::new(|| {
    let tried = Command::new("chrt").args(["-f", "1", "true"]).output();
    tried.is_ok_and(|tried| tried.status.success() && tried.stderr.is_empty())
});

/// Whether the system lets a program of this user come before others. Without leave `nice` complains, and runs the program.
static MAY_COME_FIRST: LazyLock<bool> = LazyLock::new(|| {
    let tried = Command::new("nice").args(["-n-15", "true"]).output();
    tried.is_ok_and(|tried| tried.status.success() && tried.stderr.is_empty())
});

/// Permission to run in real time, together with a few other tests.
pub(crate) struct RealTimeSeat;

impl RealTimeSeat {
    pub(crate) fn take() -> Self {
        IS_IN_REAL_TIME.set(true);
        let taken = SEATS_TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = SEAT_RETURNED
            .wait_while(taken, |taken| *taken >= AT_ONCE)
            .unwrap_or_else(PoisonError::into_inner);
        *taken += 1;
        Self
    }
}

impl Drop for RealTimeSeat {
    fn drop(&mut self) {
        IS_IN_REAL_TIME.set(false);
        *SEATS_TAKEN.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        SEAT_RETURNED.notify_one();
    }
}
