//! One tick of the arm's thread: what the gate says next, one cycle of the bus, what it tells.

use std::sync::Arc;
use std::time::Duration;

use super::MotionState;
use super::frame_timestamps::TimestampedLink;
use super::recovery::recovery;
use super::servo_health::{HealthAction, ServoHealth};
use super::thread::{ArmThread, draws};
use base::units::{ArmMeasurement, ClockInstant};
use driver::{DriverError, HaltMode};
use gate::{ExecutionError, ExecutionStep, Setpoint};
use permit::StopLatch;

/// Failed readings in a row, while the arm stands, that are a fault.
const IDLE_FAILURES_MAX: u32 = 20;

/// A cycle that overran its deadline by so much did not wait for servos.
const STARVED_BY: Duration = Duration::from_millis(20);

const STARVED: &str = "this machine did not run the arm's thread in time; give it less to do";
const BEHIND: &str = ", or the node leave for a real-time priority";

impl ArmThread {
    #[expect(
        clippy::expect_used,
        reason = "a motion begins with a reading, and only another takes its place"
    )]
    pub(super) async fn tick(&mut self) {
        let now = self.own.clock.now();
        self.check_permit_and_heat(now);
        let step = match &mut self.job {
            Some(job) => {
                let measured = self.snapshot.measured.as_ref();
                job.execution.wait(!job.is_released());
                job.execution.next(measured.expect("a reading"), now)
            }
            None => Ok(ExecutionStep::Hold),
        };
        let sent = match &step {
            Ok(ExecutionStep::Go(setpoint)) => self.cycle(Some(setpoint)).await,
            Ok(ExecutionStep::Hold | ExecutionStep::Finished) | Err(_) => self.cycle(None).await,
        };
        match step {
            Ok(ExecutionStep::Finished) => self.note_sent_all(now),
            Err(broken) => self.handle_execution_error(&broken),
            Ok(ExecutionStep::Go(_) | ExecutionStep::Hold) => {}
        }
        self.note_stop_frame(sent);
        self.note_lift(now);
        self.latch_stop();
        self.latch_fault();
        self.finish_if_settled();
    }

    /// A blind arm's last failure says which servo it is about.
    fn in_full(&self, broken: &ExecutionError) -> String {
        match (broken, &self.last_failure) {
            (ExecutionError::Blind(_), Some(why)) => format!("{broken}: {why}"),
            (ExecutionError::Blind(_), None) => format!("{broken}: {}", self.starved()),
            _ => broken.to_string(),
        }
    }

    fn starved(&self) -> String {
        let behind = if self.snapshot.is_ahead { "" } else { BEHIND };
        format!("{STARVED}{behind}")
    }

    /// Leave that has ended, and servos that are too hot, end a motion where its stroke ends.
    fn check_permit_and_heat(&mut self, now: ClockInstant) {
        let too_hot = self.snapshot.health.care >= HealthAction::Park;
        let Some(job) = &mut self.job else {
            return;
        };
        // Going to rest lessens the load: only a drawing ends.
        if too_hot && draws(job.execution.checked()) {
            job.too_hot = true;
        }
        let withdrawn = !self
            .own
            .permits
            .is_current(job.execution.checked().permit());
        if job.too_hot || withdrawn || !job.execution.is_allowed(now) {
            job.rest_soon();
        }
        // One that ends for it ends, though the servo cools on the way.
        if job.too_hot && job.execution.is_held() && job.failing.is_none() {
            job.execution.stop();
            let why = self.snapshot.health.summary();
            self.fault_as(&format!("a servo became too hot: {why}"), StopLatch::Hot);
        }
    }

    fn note_sent_all(&mut self, now: ClockInstant) {
        if let Some(job) = &mut self.job
            && job.sent_all.is_none()
        {
            job.sent_all = Some(now);
            // A slow motion reads as a standstill: only what is read from now on counts.
            self.still.forget();
        }
    }

    /// The gate gave a motion up: it has brought the goal to a stand and knows the way to its end.
    fn handle_execution_error(&mut self, broken: &ExecutionError) {
        if let Some(job) = &mut self.job {
            // At its end it may have been said that all was sent: now the way back is not.
            job.sent_all = None;
        }
        self.fault(&self.in_full(broken));
    }

    /// Runs one bus cycle. Returns the time at which the link took the goals, if it did.
    pub(super) async fn cycle(&mut self, setpoint: Option<&Setpoint>) -> Option<ClockInstant> {
        let deadline = self.own.clock.now().after(self.cycle_time);
        let aims = self.driver.has_goals();
        let mut link = TimestampedLink::over(self.link.as_mut()?.as_mut(), &self.own.clock);
        let result = self.driver.cycle(&mut link, setpoint, deadline).await;
        let sent = link.first.filter(|_| aims);
        let overdue = self.own.clock.now().since(deadline);
        match result {
            Ok(measured) => self.handle_reading(measured),
            Err(error) => self.handle_driver_error(&error, overdue),
        }
        sent
    }

    fn handle_reading(&mut self, measured: ArmMeasurement) {
        self.failures = 0;
        self.last_failure = None;
        self.record_reading(measured);
    }

    fn record_reading(&mut self, measured: ArmMeasurement) {
        self.wire
            .update(measured.at, self.driver.counts(), &self.snapshot.identity);
        self.still.record(&measured);
        if let Some(job) = &mut self.job {
            job.note_dwell(&measured);
            let touched = job.note_touch(&measured);
            job.note_reached(&measured);
            if let Err(why) = touched {
                self.fault(why);
            }
        }
        let health = ServoHealth::from_reading(&self.own.arm, &measured, &self.snapshot.health);
        if health.care > self.snapshot.health.care {
            tracing::warn!("{}", health.summary());
        }
        self.snapshot.health = health;
        self.snapshot.measured = Some(Arc::new(measured));
    }

    /// `overdue` is by how much the cycle overran its deadline.
    pub(super) fn handle_driver_error(&mut self, error: &DriverError, overdue: Duration) {
        self.failures = self.failures.saturating_add(1);
        // The servos may well have answered while nobody listened.
        let starved = overdue > STARVED_BY && error.is_transient();
        self.last_failure = Some(if starved {
            self.starved()
        } else {
            error.to_string()
        });
        if let Some(measured) = error.measured() {
            self.record_reading(measured.clone());
        }
        if let DriverError::Device { ailment, .. } = error {
            self.snapshot.recovery = recovery(self.own.arm.file.family, *ailment);
        }
        tracing::debug!(failures = self.failures, "bus: {error}");
        if error.is_unplugged() {
            self.link = None;
            self.fault(&format!("{error}; plug it in again, then call `reset`"));
            self.snapshot.state = MotionState::Detached;
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
        self.fault_as(why, StopLatch::Fault);
    }

    fn latch_fault(&mut self) {
        if let Some(latch) = self.latching.take()
            && !self.own.permits.try_latch(latch.clone())
        {
            self.latching = Some(latch);
        }
    }

    fn fault_as(&mut self, why: &str, latch: fn(String) -> StopLatch) {
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
        self.snapshot.state = MotionState::Faulted;
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
                self.driver.halt(HaltMode::Hold);
                self.own.permits.latch(latch);
            }
        }
        // Last: whoever should read the log may not.
        tracing::error!("{why}");
    }
}
