//! One tick of the arm's thread: what the gate says next, one cycle of the bus, what it tells.

use std::sync::Arc;
use std::time::Duration;

use super::State;
use super::health::{Care, Health};
use super::recovery::recovery;
use super::sent::Sent;
use super::thread::{Worker, draws};
use base::units::{Instant, Measured};
use driver::{DriverError, Halt};
use gate::{Broken, Setpoint, Step};
use permit::Latch;

/// Failed readings in a row, while the arm stands, that are a fault.
const IDLE_FAILURES_MAX: u32 = 20;

/// A cycle that overran its deadline by so much did not wait for servos.
const STARVED_BY: Duration = Duration::from_millis(20);

const STARVED: &str = "this machine did not run the arm's thread in time; give it less to do";
const BEHIND: &str = ", or the node leave for a real-time priority";

impl Worker {
    #[expect(
        clippy::expect_used,
        reason = "a motion begins with a reading, and only another takes its place"
    )]
    pub(super) async fn tick(&mut self) {
        let now = self.own.clock.now();
        self.mind_leave(now);
        let step = match &mut self.job {
            Some(job) => {
                let measured = self.snapshot.measured.as_ref();
                job.execution.wait(!job.is_released());
                job.execution.next(measured.expect("a reading"), now)
            }
            None => Ok(Step::Hold),
        };
        let sent = match &step {
            Ok(Step::Go(setpoint)) => self.cycle(Some(setpoint)).await,
            Ok(Step::Hold | Step::Finished) | Err(_) => self.cycle(None).await,
        };
        match step {
            Ok(Step::Finished) => self.note_sent_all(now),
            Err(broken) => self.broke(&broken),
            Ok(Step::Go(_) | Step::Hold) => {}
        }
        self.note_stop_frame(sent);
        self.note_lift(now);
        self.latch_stop();
        self.latch_fault();
        self.settle();
    }

    /// A blind arm's last failure says which servo it is about.
    fn in_full(&self, broken: &Broken) -> String {
        match (broken, &self.last_failure) {
            (Broken::Blind(_), Some(why)) => format!("{broken}: {why}"),
            (Broken::Blind(_), None) => format!("{broken}: {}", self.starved()),
            _ => broken.to_string(),
        }
    }

    fn starved(&self) -> String {
        let behind = if self.snapshot.is_ahead { "" } else { BEHIND };
        format!("{STARVED}{behind}")
    }

    /// Leave that has ended, and servos that are too hot, end a motion where its stroke ends.
    fn mind_leave(&mut self, now: Instant) {
        let too_hot = self.snapshot.health.care >= Care::Park;
        let Some(job) = &mut self.job else {
            return;
        };
        // Going to rest lessens the load: only a drawing ends.
        if too_hot && draws(job.execution.checked()) {
            job.too_hot = true;
        }
        let withdrawn = !self.own.permits.stands(job.execution.checked().permit());
        if job.too_hot || withdrawn || !job.execution.is_allowed(now) {
            job.rest_soon();
        }
        // One that ends for it ends, though the servo cools on the way.
        if job.too_hot && job.execution.is_held() && job.failing.is_none() {
            job.execution.stop();
            let why = self.snapshot.health.line();
            self.fault_as(&format!("a servo became too hot: {why}"), Latch::Hot);
        }
    }

    fn note_sent_all(&mut self, now: Instant) {
        if let Some(job) = &mut self.job
            && job.sent_all.is_none()
        {
            job.sent_all = Some(now);
            // A slow motion reads as a standstill: only what is read from now on counts.
            self.still.forget();
        }
    }

    /// The gate gave a motion up: it has brought the goal to a stand and knows the way to its end.
    fn broke(&mut self, broken: &Broken) {
        if let Some(job) = &mut self.job {
            // At its end it may have been said that all was sent: now the way back is not.
            job.sent_all = None;
        }
        self.fault(&self.in_full(broken));
    }

    /// Runs one bus cycle. Returns the time at which the link took the goals, if it did.
    pub(super) async fn cycle(&mut self, setpoint: Option<&Setpoint>) -> Option<Instant> {
        let deadline = self.own.clock.now().after(self.cycle_time);
        let aims = self.driver.has_goals();
        let mut link = Sent::over(self.link.as_mut()?.as_mut(), &self.own.clock);
        let result = self.driver.cycle(&mut link, setpoint, deadline).await;
        let sent = link.first.filter(|_| aims);
        let overdue = self.own.clock.now().since(deadline);
        match result {
            Ok(measured) => self.measured(measured),
            Err(error) => self.failed(&error, overdue),
        }
        sent
    }

    fn measured(&mut self, measured: Measured) {
        self.failures = 0;
        self.last_failure = None;
        self.take_in(measured);
    }

    fn take_in(&mut self, measured: Measured) {
        self.wire
            .look(measured.at, self.driver.counts(), &self.snapshot.identity);
        self.still.note(&measured);
        if let Some(job) = &mut self.job {
            job.note_dwell(&measured);
            let touched = job.note_touch(&measured);
            job.note_reached(&measured);
            if let Err(why) = touched {
                self.fault(why);
            }
        }
        let health = Health::of(&self.own.arm, &measured, &self.snapshot.health);
        if health.care > self.snapshot.health.care {
            tracing::warn!("{}", health.line());
        }
        self.snapshot.health = health;
        self.snapshot.measured = Some(Arc::new(measured));
    }

    /// `overdue` is by how much the cycle overran its deadline.
    fn failed(&mut self, error: &DriverError, overdue: Duration) {
        self.failures = self.failures.saturating_add(1);
        // The servos may well have answered while nobody listened.
        let starved = overdue > STARVED_BY && error.is_transient();
        self.last_failure = Some(if starved {
            self.starved()
        } else {
            error.to_string()
        });
        if let Some(measured) = error.measured() {
            self.take_in(measured.clone());
        }
        if let DriverError::Device { ailment, .. } = error {
            self.snapshot.recovery = recovery(self.own.arm.file.family, *ailment);
        }
        tracing::debug!(failures = self.failures, "bus: {error}");
        if error.is_unplugged() {
            self.link = None;
            self.fault(&format!("{error}; plug it in again, then call `reset`"));
            self.snapshot.state = State::Detached;
            self.end_failed();
        } else if !error.is_transient() || self.failures >= IDLE_FAILURES_MAX {
            if let Some(job) = &mut self.job {
                // Whether a lift would be followed, nobody can say.
                job.execution.halt();
            }
            self.fault(&error.to_string());
        }
    }

    /// Something broke: the motion comes to its stand, the servos hold, and only `reset` goes on.
    pub(super) fn fault(&mut self, why: &str) {
        self.fault_as(why, Latch::Fault);
    }

    fn latch_fault(&mut self) {
        if let Some(latch) = self.latching.take()
            && !self.own.permits.try_latch(latch.clone())
        {
            self.latching = Some(latch);
        }
    }

    fn fault_as(&mut self, why: &str, latch: fn(String) -> Latch) {
        // The first cause is the one to tell; what follows from it is not.
        let known = match &self.job {
            Some(job) => job.failing.is_some(),
            None => {
                self.snapshot.fault.as_deref() == Some(why) && self.own.permits.latched().is_some()
            }
        };
        if known {
            return;
        }
        self.snapshot.state = State::Faulted;
        self.snapshot.fault = Some(why.to_owned());
        let latch = latch(why.to_owned());
        match &mut self.job {
            Some(job) => {
                job.fail(why);
                // As of a stop: no frame on the way to its stand waits for whoever looks at what is latched.
                self.latching = Some(latch);
                self.latch_fault();
            }
            None => {
                self.driver.halt(Halt::Hold);
                self.own.permits.latch(latch);
            }
        }
        // Last: whoever should read the log may not.
        tracing::error!("{why}");
    }
}
