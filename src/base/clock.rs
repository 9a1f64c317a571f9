//! The only place that asks for the time.
//!
//! A real clock counts from its creation and waits on a timer descriptor, whose resolution is finer than
//! an asynchronous runtime's. A simulated clock jumps to the moment that it is asked to wait for, so that
//! arm time costs only computing time; threads that share one wait for each other. A starvation-tolerant clock keeps the machine's time, but stands
//! still while the machine does not run the thread that waits on it.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::alarm_timer::AlarmTimer;
pub use crate::alarm_timer::alarm_runtime;
use crate::clock_seats::{ClockSeat, SharedTime};
use crate::system_clocks;
use crate::units::{ClockInstant, nanos};

/// A node's clock; clones are the same clock.
#[derive(Clone, Debug)]
pub struct NodeClock {
    source: Arc<ClockSource>,
    /// The place of the thread that it is for among those that share it; `None` for one that only reads it.
    seat: Option<Arc<ClockSeat>>,
}

#[derive(Debug)]
enum ClockSource {
    Real {
        origin: std::time::Instant,
    },
    Tolerant(TolerantTime),
    Simulated {
        time: Arc<SharedTime>,
        /// Time that the machine was suspended.
        slept_nanos: AtomicU64,
        /// Rate relative to real time; `None` to run as fast as possible.
        rate: Option<u32>,
    },
}

/// Environment variable with an offset of a process's calendar in milliseconds, to simulate disagreeing clocks on one
/// machine.
pub const CALENDAR_OFFSET: &str = "STEADYHAND_CALENDAR_OFFSET_MS";

/// Returns the offset of this process's calendar ahead of the machine's, as set by [`CALENDAR_OFFSET`].
#[must_use]
pub fn calendar_offset_ms() -> i64 {
    static OFFSET: OnceLock<i64> = OnceLock::new();
    *OFFSET.get_or_init(|| parse_variable(CALENDAR_OFFSET).unwrap_or(0))
}

/// Environment variable with the rate of served simulated arms relative to real time, so that tests wait less.
pub const SIMULATION_RATE: &str = "STEADYHAND_SIMULATION_RATE";

/// Returns the rate of this process's served simulated arms, as set by [`SIMULATION_RATE`]; at least 1.
#[must_use]
pub fn simulation_rate() -> u32 {
    static RATE: OnceLock<u32> = OnceLock::new();
    *RATE.get_or_init(|| parse_variable(SIMULATION_RATE).unwrap_or(1).max(1))
}

/// Returns which of these two variables is set to what is no number for it and so does nothing, with its value.
#[must_use]
pub fn unread_variables() -> Vec<(&'static str, String)> {
    let unread = [
        (
            CALENDAR_OFFSET,
            parse_variable::<i64>(CALENDAR_OFFSET).is_none(),
        ),
        (
            SIMULATION_RATE,
            parse_variable::<u32>(SIMULATION_RATE).is_none(),
        ),
    ];
    let unread = unread.into_iter().filter(|(_, is_unread)| *is_unread);
    let with_value = |(variable, _)| Some((variable, std::env::var_os(variable)?));
    let unread = unread.filter_map(with_value);
    unread
        .map(|(variable, value)| (variable, value.to_string_lossy().into_owned()))
        .collect()
}

/// Returns milliseconds since 1970 by the machine's calendar, for records that people read. The calendar
/// may jump, so nothing is ever timed by it.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "the only reader of the machine's calendar"
)]
pub fn calendar_ms() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| {
            let ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
            ms.saturating_add_signed(calendar_offset_ms())
        })
}

/// Returns the number in an environment variable.
fn parse_variable<T: std::str::FromStr>(variable: &str) -> Option<T> {
    std::env::var(variable).ok()?.trim().parse().ok()
}

impl NodeClock {
    /// Creates a clock that counts the machine's monotonic time from now.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "the only reader of the machine's clock"
    )]
    pub fn real() -> Self {
        Self::of(ClockSource::Real {
            origin: std::time::Instant::now(),
        })
    }

    /// Creates a clock for one served simulated arm. It keeps the machine's time, except that at most [`BUSY_MAX`] passes
    /// between two waits of the arm's thread, and that a wait which ends late counts as on time. So other programs cannot
    /// starve a simulated arm. One thread at a time may wait on the clock; any thread may read it.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "the only reader of the machine's clock"
    )]
    pub fn starvation_tolerant() -> Self {
        Self::of(ClockSource::Tolerant(TolerantTime {
            origin: std::time::Instant::now(),
            rate: simulation_rate(),
            lost_nanos: AtomicU64::new(0),
            cap_nanos: AtomicU64::new(nanos(BUSY_MAX)),
        }))
    }

    /// Creates a clock that stands still until a task waits on it.
    #[must_use]
    pub fn simulated() -> Self {
        Self::simulated_with_rate(None)
    }

    /// Creates a simulated clock that people can watch: waiting on it takes a `rate`th of the time. A rate of 0
    /// counts as 1.
    #[must_use]
    pub fn simulated_at(rate: u32) -> Self {
        Self::simulated_with_rate(Some(rate.max(1)))
    }

    fn simulated_with_rate(rate: Option<u32>) -> Self {
        Self::of(ClockSource::Simulated {
            time: Arc::default(),
            slept_nanos: AtomicU64::new(0),
            rate,
        })
    }

    fn of(source: ClockSource) -> Self {
        Self {
            source: Arc::new(source),
            seat: None,
        }
    }

    /// Returns the same clock for a thread that shares its time with others: a simulated one stands still while any of them
    /// works.
    #[must_use]
    pub fn seated(&self) -> Self {
        let seat = match &*self.source {
            ClockSource::Simulated { time, .. } => Some(Arc::new(ClockSeat::new(time))),
            ClockSource::Real { .. } | ClockSource::Tolerant(_) => None,
        };
        Self {
            source: Arc::clone(&self.source),
            seat,
        }
    }

    /// Waits until other threads have brought a shared clock to a moment; for ever if none shares it. May be dropped while it
    /// waits.
    pub async fn sleep_until(&self, moment: ClockInstant) {
        match &self.seat {
            Some(seat) => seat.sleep_until(moment).await,
            None => std::future::pending().await,
        }
    }

    /// Returns whether the clock stands still while no task waits.
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        matches!(*self.source, ClockSource::Simulated { .. })
    }

    fn rate(&self) -> u32 {
        match &*self.source {
            ClockSource::Simulated {
                rate: Some(rate), ..
            } => *rate,
            ClockSource::Tolerant(time) => time.rate,
            _ => 1,
        }
    }

    /// Returns the current time of this clock.
    #[must_use]
    pub fn now(&self) -> ClockInstant {
        match &*self.source {
            ClockSource::Real { origin } => ClockInstant::from_nanos(nanos(origin.elapsed())),
            ClockSource::Tolerant(time) => time.now(),
            ClockSource::Simulated { time, .. } => time.now(),
        }
    }

    /// Returns the processor time used by the calling thread so far; zero on a simulated clock, on which
    /// computing takes no time.
    #[must_use]
    pub fn thread_cpu_time(&self) -> Duration {
        if self.is_simulated() {
            return Duration::ZERO;
        }
        system_clocks::thread_cpu_time()
    }

    /// Returns the time that the machine was suspended since a fixed moment. This clock stands still while the
    /// machine is suspended, so its users do not notice. Exact to [`SLEPT_WITHIN`]; `None` if this thread is
    /// interrupted at each of several attempts to read it, and on systems other than Linux.
    #[must_use]
    pub fn suspended_time(&self) -> Option<Duration> {
        if let ClockSource::Simulated { slept_nanos, .. } = &*self.source {
            return Some(Duration::from_nanos(slept_nanos.load(Ordering::SeqCst)));
        }
        system_clocks::suspended_time()
    }

    /// Returns the machine's time since this clock was created, with what a starvation-tolerant clock does not count; `None` on a
    /// simulated clock, on which no time passes unseen.
    #[must_use]
    pub fn machine_time(&self) -> Option<Duration> {
        match &*self.source {
            ClockSource::Real { origin } => Some(origin.elapsed()),
            ClockSource::Tolerant(time) => Some(time.origin.elapsed()),
            ClockSource::Simulated { .. } => None,
        }
    }

    /// Simulates that the machine was suspended for a time; has no effect on other clocks.
    pub fn sleep_through(&self, duration: Duration) {
        if let ClockSource::Simulated { slept_nanos, .. } = &*self.source {
            slept_nanos.fetch_add(nanos(duration), Ordering::SeqCst);
        }
    }

    /// Advances a simulated clock to `to`, never back; has no effect on other clocks.
    pub fn jump_to(&self, to: ClockInstant) {
        if let ClockSource::Simulated { time, .. } = &*self.source {
            time.jump_to(to);
        }
    }

    /// Comes to a moment of a simulated clock, once no other thread works that shares it.
    async fn come_to(&self, moment: ClockInstant) {
        match &self.seat {
            Some(seat) => seat.wait_until(moment).await,
            None => self.jump_to(moment),
        }
    }

    /// Creates an alarm for one task of the calling thread's runtime.
    ///
    /// # Errors
    /// When the system gives no timer descriptor.
    pub fn alarm(&self) -> io::Result<ClockAlarm> {
        let timer = match *self.source {
            ClockSource::Simulated { rate: None, .. } => None,
            _ => Some(AlarmTimer::new()?),
        };
        Ok(ClockAlarm {
            clock: self.clone(),
            timer,
        })
    }
}

/// The time of a starvation-tolerant clock: the machine's time without the lost time, and no later than a cap.
#[derive(Debug)]
struct TolerantTime {
    origin: std::time::Instant,
    /// Rate relative to real time, as set by [`SIMULATION_RATE`].
    rate: u32,
    /// Time that does not count.
    lost_nanos: AtomicU64,
    /// Latest time that the clock shows until its thread waits again.
    cap_nanos: AtomicU64,
}

impl TolerantTime {
    fn now(&self) -> ClockInstant {
        // In this order the clock never goes back for a thread that reads it while another waits: lost time is
        // read before the machine's time, and an older cap only holds the time back.
        let cap = self.cap_nanos.load(Ordering::SeqCst);
        ClockInstant::from_nanos(self.counted_nanos().min(cap))
    }

    /// Returns the machine's time at the clock's rate, without the lost time.
    fn counted_nanos(&self) -> u64 {
        let lost = self.lost_nanos.load(Ordering::SeqCst);
        let passed = nanos(self.origin.elapsed()).saturating_mul(u64::from(self.rate));
        passed.saturating_sub(lost)
    }

    /// Loses the time beyond the cap, and sets another cap, which is never in the clock's past.
    fn move_cap_to(&self, cap: ClockInstant) {
        let old_cap = self.cap_nanos.load(Ordering::SeqCst);
        let counted = self.counted_nanos();
        let lost = counted.saturating_sub(old_cap);
        self.lost_nanos.fetch_add(lost, Ordering::SeqCst);
        let now = counted.min(old_cap);
        self.cap_nanos
            .store(cap.as_nanos().max(now), Ordering::SeqCst);
    }
}

/// Accuracy of [`NodeClock::suspended_time`].
pub const SLEPT_WITHIN: Duration = Duration::from_millis(1);

/// Longest time that passes on a starvation-tolerant clock while its thread computes: half a cycle of an arm.
pub const BUSY_MAX: Duration = Duration::from_millis(5);

/// Waits for moments of one clock.
#[derive(Debug)]
pub struct ClockAlarm {
    clock: NodeClock,
    timer: Option<AlarmTimer>,
}

impl ClockAlarm {
    /// Waits until `moment`; returns at once if it has passed. May be dropped while it waits.
    ///
    /// # Errors
    /// When the timer descriptor fails.
    pub async fn until(&mut self, moment: ClockInstant) -> io::Result<()> {
        let Some(timer) = &mut self.timer else {
            self.clock.come_to(moment).await;
            return Ok(());
        };
        if let ClockSource::Tolerant(time) = &*self.clock.source {
            time.move_cap_to(moment);
        }
        let wait = moment.since(self.clock.now()) / self.clock.rate();
        if !wait.is_zero() {
            timer.wait(wait).await?;
        }
        self.clock.come_to(moment).await;
        if let ClockSource::Tolerant(time) = &*self.clock.source {
            time.move_cap_to(time.now().after(BUSY_MAX));
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_simulated_clock_jumps_and_never_goes_back() {
        let clock = NodeClock::simulated();
        let mut alarm = clock.alarm().unwrap();
        let hour = ClockInstant::ZERO.after(Duration::from_secs(3600));
        alarm.until(hour).await.unwrap();
        alarm.until(ClockInstant::ZERO).await.unwrap();
        assert_eq!(clock.now(), hour);
    }

    /// Two threads take turns: each sees every moment of the other before its own next one.
    #[test]
    fn threads_that_share_a_clock_do_not_run_away_from_each_other() {
        let clock = NodeClock::simulated();
        let moments = Arc::new(std::sync::Mutex::new(Vec::new()));
        // Both sit down before either waits.
        let seats = [10_u64, 15].map(|step_ms| (clock.seated(), step_ms));
        let threads = seats.map(|(clock, step_ms)| {
            let moments = Arc::clone(&moments);
            std::thread::spawn(move || {
                alarm_runtime().unwrap().block_on(async {
                    let mut alarm = clock.alarm().unwrap();
                    for step in 1..=200 {
                        let moment = Duration::from_millis(step * step_ms);
                        alarm.until(ClockInstant::ZERO.after(moment)).await.unwrap();
                        moments.lock().unwrap().push(clock.now());
                    }
                });
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
        let moments = moments.lock().unwrap();
        assert_eq!(moments.len(), 400);
        assert!(moments.is_sorted(), "{moments:?}");
    }

    #[tokio::test]
    async fn a_thread_that_sleeps_or_is_gone_holds_up_no_other() {
        let clock = NodeClock::simulated();
        let (one, other) = (clock.seated(), clock.seated());
        let mut alarm = one.alarm().unwrap();
        let until = |ms: u64| ClockInstant::ZERO.after(Duration::from_millis(ms));
        assert!(poll_twice(alarm.until(until(1))).is_pending());
        assert_eq!(clock.now(), ClockInstant::ZERO);
        {
            let mut asleep = std::pin::pin!(other.sleep_until(until(2)));
            assert!(poll_once(&mut asleep).is_pending());
            // The sleeper wakes at its moment, before the one that the other waits for.
            assert!(poll_twice(alarm.until(until(3))).is_pending());
            assert_eq!(clock.now(), until(2));
            assert!(poll_once(&mut asleep).is_ready());
        }
        assert!(poll_twice(alarm.until(until(3))).is_pending());
        drop(other);
        alarm.until(until(4)).await.unwrap();
        assert_eq!(clock.now(), until(4));
        // A reader that jumps waits for nobody.
        let busy = clock.seated();
        clock.jump_to(until(7));
        alarm.until(until(6)).await.unwrap();
        assert!(poll_twice(alarm.until(until(8))).is_pending());
        drop(busy);
    }

    /// Polls a future as often as one that first lets others of its thread work, and drops it.
    fn poll_twice<T>(future: impl Future<Output = T>) -> std::task::Poll<T> {
        let mut future = std::pin::pin!(future);
        let first = poll_once(&mut future);
        if first.is_ready() {
            first
        } else {
            poll_once(&mut future)
        }
    }

    /// Polls a future once and drops it.
    fn poll_once<T>(future: impl Future<Output = T>) -> std::task::Poll<T> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        std::pin::pin!(future).as_mut().poll(&mut context)
    }

    #[tokio::test]
    async fn a_watched_clock_waits_at_its_rate() {
        let (real, watched) = (NodeClock::real(), NodeClock::simulated_at(10));
        let began = real.now();
        let moment = ClockInstant::ZERO.after(Duration::from_millis(50));
        watched.alarm().unwrap().until(moment).await.unwrap();
        assert_eq!(watched.now(), moment);
        assert!(real.now().since(began) >= Duration::from_millis(5));
    }

    #[tokio::test]
    async fn a_tolerant_clock_does_not_count_time_while_its_thread_is_starved() {
        let (real, clock) = (NodeClock::real(), NodeClock::starvation_tolerant());
        let mut alarm = clock.alarm().unwrap();
        let first = clock.now().after(Duration::from_millis(10));
        alarm.until(first).await.unwrap();
        assert!(clock.now() >= first);
        let began = real.now();
        while real.now().since(began) < 8 * BUSY_MAX {
            assert!(clock.now() <= first.after(2 * BUSY_MAX));
        }
        let second = clock.now().after(Duration::from_millis(10));
        let wait_began = real.now();
        alarm.until(second).await.unwrap();
        assert!(real.now().since(wait_began) >= Duration::from_millis(10));
        assert!(clock.now() >= second && clock.now() <= second.after(BUSY_MAX));
    }

    #[tokio::test]
    async fn a_tolerant_clock_never_goes_back_for_a_reader() {
        let clock = NodeClock::starvation_tolerant();
        let reader = clock.clone();
        let is_done = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let is_over = Arc::clone(&is_done);
        let watcher = std::thread::spawn(move || {
            let mut last = reader.now();
            while !is_over.load(Ordering::SeqCst) {
                let now = reader.now();
                assert!(now >= last, "{now:?} after {last:?}");
                last = now;
            }
        });
        let mut alarm = clock.alarm().unwrap();
        for _ in 0..200 {
            let moment = clock.now().after(Duration::from_micros(700));
            alarm.until(moment).await.unwrap();
            assert!(clock.now() >= moment);
        }
        is_done.store(true, Ordering::SeqCst);
        watcher.join().unwrap();
    }

    #[tokio::test]
    async fn a_real_alarm_is_never_early() {
        let clock = NodeClock::real();
        let mut alarm = clock.alarm().unwrap();
        let moment = clock.now().after(Duration::from_millis(3));
        alarm.until(moment).await.unwrap();
        assert!(clock.now() >= moment);
    }
}
