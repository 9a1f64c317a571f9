//! Tests of arms in real time, on machines that have something else to do.

use std::panic::{UnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

/// How often a test may begin anew.
const ATTEMPTS: u32 = 6;

/// A bare thread sleeps so long at a time.
const NAP: Duration = Duration::from_millis(2);

/// A machine that wakes a bare thread so late may keep a servo's reply, or the thread that waits for it, as long: the bus is then
/// as silent as one without power.
const LATE: Duration = Duration::from_millis(15);

/// Runs a test of an arm that moves in real time in another process than its node. Where it fails and the machine was seen to keep
/// threads waiting meanwhile, it begins anew; where the machine was quiet, or at the last attempt, its failure counts.
pub(crate) fn unless_starved(test: impl Fn() + Copy + UnwindSafe) {
    for attempt in 1..=ATTEMPTS {
        let watch = StarvationWatch::start();
        let Err(failure) = catch_unwind(test) else {
            return;
        };
        let late = watch.end();
        if attempt == ATTEMPTS || late < LATE {
            resume_unwind(failure);
        }
        println!("attempt {attempt}: a thread was woken {late:?} late; the test begins anew");
        sleep(Duration::from_secs(1));
    }
}

/// Measures how late this machine wakes a thread that has nothing to do.
struct StarvationWatch {
    is_over: Arc<AtomicBool>,
    watcher: JoinHandle<Duration>,
}

impl StarvationWatch {
    fn start() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let watcher = spawn(move || {
            let mut latest = Duration::ZERO;
            while !ends.load(Ordering::SeqCst) {
                let slept = Instant::now();
                sleep(NAP);
                latest = latest.max(slept.elapsed().saturating_sub(NAP));
            }
            latest
        });
        Self { is_over, watcher }
    }

    /// Returns the largest delay.
    fn end(self) -> Duration {
        self.is_over.store(true, Ordering::SeqCst);
        self.watcher.join().unwrap()
    }
}
