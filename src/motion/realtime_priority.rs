//! Real-time priority for an arm's thread, where the machine grants it.

use std::io;

#[cfg(target_os = "linux")]
use thread_priority::{
    Error, RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

/// Priority of 1 to 99: above all threads without real-time priority, below those that serve
/// interrupts (50).
#[cfg(target_os = "linux")]
const PRIORITY: u8 = 10;

/// Gives the calling thread the highest priority that the system has for a program's threads.
///
/// # Errors
/// When the machine does not grant it.
#[cfg(not(target_os = "linux"))]
pub fn set_realtime_priority() -> io::Result<()> {
    let highest = thread_priority::ThreadPriority::Max;
    highest
        .set_for_current()
        .map_err(|error| io::Error::other(error.to_string()))
}

/// Gives the calling thread a real-time priority, first in, first out. A fair scheduler would let it
/// wait for other threads, milliseconds at a time. Threads that it spawns from now on inherit it.
///
/// # Errors
/// When the machine does not grant it: mostly a user without permission (`RLIMIT_RTPRIO` of 10 or
/// more).
#[cfg(target_os = "linux")]
pub fn set_realtime_priority() -> io::Result<()> {
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    let priority = ThreadPriorityValue::try_from(PRIORITY).map_err(io::Error::other)?;
    let priority = ThreadPriority::Crossplatform(priority);
    set_thread_priority_and_policy(thread_native_id(), priority, policy).map_err(
        |error| match error {
            Error::OS(code) => io::Error::from_raw_os_error(code),
            other => io::Error::other(other.to_string()),
        },
    )
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    /// Returns priority and policy of the calling thread, as the kernel reports them.
    fn scheduling() -> [String; 2] {
        let stat = base::plain_file::read_text("/proc/thread-self/stat").unwrap();
        let (_, after_name) = stat.rsplit_once(") ").unwrap();
        let mut fields = after_name.split(' ').skip(37);
        [fields.next(), fields.next()].map(|field| field.unwrap().to_owned())
    }

    /// Returns the highest priority that this process may request.
    fn priority_limit() -> u8 {
        let limits = base::plain_file::read_text("/proc/self/limits").unwrap();
        let line = limits
            .lines()
            .find(|line| line.starts_with("Max realtime priority"));
        let soft = line.unwrap().split_whitespace().nth(3).unwrap();
        soft.parse().unwrap_or(u8::MAX)
    }

    #[test]
    fn a_thread_has_the_priority_that_was_reported() {
        let request = || (scheduling(), set_realtime_priority().is_ok(), scheduling());
        let (before, is_granted, after) = std::thread::spawn(request).join().unwrap();
        // SCHED_FIFO is 1.
        let granted = ["10", "1"].map(str::to_owned);
        assert_eq!(after, if is_granted { granted } else { before });
        assert!(is_granted || priority_limit() < PRIORITY);
    }
}
