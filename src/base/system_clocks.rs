//! Clocks of the system other than the monotonic one. A system may lack some of them.

use std::time::Duration;

/// Returns the processor time used by the calling thread so far; zero where the system does not count it.
pub(crate) fn thread_cpu_time() -> Duration {
    #[cfg(unix)]
    {
        system_time(rustix::time::ClockId::ThreadCPUTime)
    }
    #[cfg(not(unix))]
    {
        Duration::ZERO
    }
}

/// Returns the time that the machine was suspended, since a fixed moment; `None` if this thread is interrupted at each of
/// several attempts to read it, and on systems other than Linux.
#[cfg(target_os = "linux")]
pub(crate) fn suspended_time() -> Option<Duration> {
    use rustix::time::ClockId;

    /// Number of attempts to read the clocks.
    const TRIES: u32 = 3;

    (0..TRIES).find_map(|_| {
        let before = system_time(ClockId::Monotonic);
        let with_suspended = system_time(ClockId::Boottime);
        let after = system_time(ClockId::Monotonic);
        (after.saturating_sub(before) < crate::clock::SLEPT_WITHIN)
            .then(|| with_suspended.saturating_sub(before))
    })
}

#[cfg(not(target_os = "linux"))]
pub(crate) const fn suspended_time() -> Option<Duration> {
    None
}

/// Reads a system clock, as the time since the clock's own beginning.
#[cfg(unix)]
fn system_time(clock: rustix::time::ClockId) -> Duration {
    let now = rustix::time::clock_gettime(clock);
    let seconds = Duration::from_secs(u64::try_from(now.tv_sec).unwrap_or(0));
    seconds + Duration::from_nanos(u64::try_from(now.tv_nsec).unwrap_or(0))
}
