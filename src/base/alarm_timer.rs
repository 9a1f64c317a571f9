//! Timers of the real clock, whose resolution is finer than an asynchronous runtime's: on Linux a timer descriptor; elsewhere a
//! thread that sleeps, which the standard library wakes by the system's finest timer.

pub(crate) use timer::AlarmTimer;

#[cfg(target_os = "linux")]
mod timer {
    use std::io;
    use std::time::Duration;

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::io::unix::AsyncFd;

    /// A one-shot timer of the calling thread's runtime.
    #[derive(Debug)]
    pub(crate) struct AlarmTimer(AsyncFd<std::os::fd::OwnedFd>);

    impl AlarmTimer {
        #[expect(
            deprecated,
            reason = "sound for a descriptor that is owned here; its successor is unsafe"
        )]
        pub(crate) fn new() -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            Ok(Self(AsyncFd::new(timerfd_create(
                TimerfdClockId::Monotonic,
                flags,
            )?)?))
        }

        pub(crate) async fn wait(&mut self, duration: Duration) -> io::Result<()> {
            let value = Timespec {
                tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: i64::from(duration.subsec_nanos()),
            };
            let once = Itimerspec {
                it_interval: Timespec {
                    tv_sec: 0,
                    tv_nsec: 0,
                },
                it_value: value,
            };
            timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &once)?;
            loop {
                let mut ready = self.0.readable().await?;
                let fired = ready.try_io(|fd| {
                    let mut count = [0_u8; 8];
                    Ok(rustix::io::read(fd.get_ref(), &mut count)?)
                });
                if let Ok(result) = fired {
                    return result.map(|_| ());
                }
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod timer {
    use std::io;
    use std::time::Duration;

    /// Longest part of a wait that a thread sleeps: a runtime that ends waits for its threads.
    const SLEPT_MAX: Duration = Duration::from_millis(30);

    /// A one-shot timer of the calling thread's runtime, which must have its own timer enabled.
    #[derive(Debug)]
    pub(crate) struct AlarmTimer;

    impl AlarmTimer {
        pub(crate) fn new() -> io::Result<Self> {
            Ok(Self)
        }

        #[expect(
            clippy::disallowed_methods,
            reason = "the only place that waits; a timer descriptor is used where there is one"
        )]
        pub(crate) async fn wait(&mut self, duration: Duration) -> io::Result<()> {
            let until = std::time::Instant::now() + duration;
            let early = duration.saturating_sub(SLEPT_MAX);
            if !early.is_zero() {
                tokio::time::sleep(early).await;
            }
            // A wait that is dropped leaves its thread asleep, and the next one takes another of the runtime's.
            let slept = tokio::task::spawn_blocking(move || {
                std::thread::sleep(until.saturating_duration_since(std::time::Instant::now()));
            });
            slept.await.map_err(io::Error::other)
        }
    }
}

/// Builds the runtime of a thread that has alarms and devices.
///
/// # Errors
/// When the system does not give the runtime's resources.
pub fn alarm_runtime() -> std::io::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_io();
    // On Linux alarms need no timer of the runtime's own.
    #[cfg(not(target_os = "linux"))]
    builder.enable_time();
    builder.build()
}
