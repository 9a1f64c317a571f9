//! One tick of the arm's thread: the gate's next step, one bus cycle, and its results.

use std::sync::Arc;
use std::time::Duration;

use super::MotionState;
use super::frame_timestamps::TimestampedLink;
use super::held_pose::HELD_WITHIN_RAD;
use super::recovery::recovery_steps;
use super::servo_health::{HealthAction, ServoHealth};
use super::thread::{ArmThread, draws};
use base::units::{ArmMeasurement, ClockInstant};
use driver::{DriverError, HaltMode, SentGoals};
use gate::{ExecutionError, ExecutionStep, Setpoint};
use permit::StopLatch;

/// Number of consecutive failed readings that are a fault of an arm at rest.
const IDLE_FAILURES_MAX: u32 = 20;

/// A cycle that overran its deadline by more than this did not wait for servos.
const STARVED_BY: Duration = Duration::from_millis(20);

/// For so long a silence may be the cause of a failure: one of the next readings says what it did to a servo.
const STARVED_FELT: Duration = Duration::from_millis(100);

/// Advice about a port that is gone, and about one that is back.
const PLUG_IN: &str = ". Next: plug the arm in again, then call `reset`";
const PLUGGED_IN: &str = "; the arm is connected again. Next: call `reset`";

/// Cause of a fault for which the arm has no blame: its thread did not run.
pub const STARVED: &str = "this machine was too busy to run the arm's thread in time";
const FEWER: &str = ": run fewer programs on it";
const RTPRIO: &str = ", or give the node a real-time priority";

impl ArmThread {
    #[expect(
        clippy::expect_used,
        reason = "a motion begins with a reading, and only another takes its place"
    )]
    pub(super) async fn tick(&mut self) {
        let now = self.shared.clock.now();
        self.check_permit_and_heat(now);
        let step = match &mut self.job {
            Some(job) => {
                let measured = self.snapshot.measured.as_ref();
                job.execution.wait(!job.is_released());
                let step = job.execution.next(measured.expect("a reading"), now);
                self.sag = *job.execution.sag();
                step
            }
            None => Ok(ExecutionStep::Hold),
        };
        self.join_neighbours_stop(now);
        let sent = match &step {
            Ok(ExecutionStep::Go(setpoint)) => self.cycle(Some(setpoint)).await,
            Ok(ExecutionStep::Hold | ExecutionStep::Finished) | Err(_) => self.cycle(None).await,
        };
        match step {
            Ok(ExecutionStep::Finished) => self.note_sent_all(now),
            Err(error) => self.handle_execution_error(&error),
            Ok(ExecutionStep::Go(_) | ExecutionStep::Hold) => {}
        }
        self.note_stop_frame(sent);
        self.note_lift(now);
        self.latch_stop();
        self.latch_fault();
        self.finish_if_settled();
    }

    /// Describes an error; missing readings with the last failure, which names the servo.
    fn describe_error(&self, error: &ExecutionError) -> String {
        match (error, &self.last_failure) {
            (ExecutionError::Blind(_), Some(reason)) => format!("{error}: {reason}"),
            (ExecutionError::Blind(_), None) => format!("{error}: {}", self.starved_text()),
            _ => error.to_string(),
        }
    }

    fn starved_text(&self) -> String {
        let hint = if self.snapshot.is_ahead { "" } else { RTPRIO };
        format!("{STARVED}{FEWER}{hint}")
    }

    /// Holds a motion at the end of its stroke if its permit has ended or servos are too hot.
    fn check_permit_and_heat(&mut self, now: ClockInstant) {
        let is_too_hot = self.snapshot.health.care >= HealthAction::Park;
        let Some(job) = &mut self.job else {
            return;
        };
        // Going to rest lessens the load: only a drawing is ended.
        if is_too_hot && draws(job.execution.checked()) {
            job.is_too_hot = true;
        }
        let is_withdrawn = !self
            .shared
            .permits
            .is_current(job.execution.checked().permit());
        if job.is_too_hot || is_withdrawn || !job.execution.is_allowed(now) {
            job.hold_at_stroke_end();
        }
        // A motion that ends for heat ends even if the servo has cooled meanwhile.
        if job.is_too_hot && job.execution.is_held() && job.failure.is_none() {
            job.execution.stop();
            let reason = self.snapshot.health.summary();
            self.fault_as(&format!("a servo became too hot: {reason}"), StopLatch::Hot);
        }
    }

    fn note_sent_all(&mut self, now: ClockInstant) {
        if let Some(job) = &mut self.job
            && job.sent_all_at.is_none()
        {
            job.sent_all_at = Some(now);
            // A slow motion looks like a standstill: only readings from now on count.
            self.standstill.forget();
        }
    }

    /// Handles the failure of a motion. The gate has brought its goal to rest and moves it to a safe end.
    fn handle_execution_error(&mut self, error: &ExecutionError) {
        if let Some(job) = &mut self.job {
            // All goals may have been sent before; those of the move back are not.
            job.sent_all_at = None;
        }
        if matches!(error, ExecutionError::Blind(_)) {
            self.driver.forget_unread_goals();
        }
        self.fault(&self.describe_error(error));
    }

    /// Runs one bus cycle. Returns the time at which the link took the goals, if it did.
    pub(super) async fn cycle(&mut self, setpoint: Option<&Setpoint>) -> Option<ClockInstant> {
        let deadline = self.shared.clock.now().after(self.cycle_time);
        let mut link = TimestampedLink::new(self.link.as_mut()?.as_mut(), &self.shared.clock);
        let result = self.driver.cycle(&mut link, setpoint, deadline).await;
        let sent = match self.driver.sent_goals() {
            SentGoals::First => link.first,
            SentGoals::Last => link.last,
            SentGoals::None => None,
        };
        self.note_late(deadline);
        match result {
            Ok(measured) => self.handle_reading(measured),
            Err(error) => self.handle_driver_error(&error),
        }
        sent
    }

    fn handle_reading(&mut self, measured: ArmMeasurement) {
        self.failures = 0;
        self.last_failure = None;
        self.record_reading(measured);
    }

    fn record_reading(&mut self, measured: ArmMeasurement) {
        self.bus_health
            .update(measured.at, self.driver.counts(), &self.snapshot.identity);
        self.standstill.record(&measured);
        if let Some(job) = &mut self.job {
            job.note_dwell(&measured);
            let touch = job.note_touch(&measured);
            job.note_reached(&measured);
            if let Err(reason) = touch {
                self.fault(reason);
            }
        }
        self.check_held_pose(&measured);
        let health = ServoHealth::from_reading(&self.shared.arm, &measured, &self.snapshot.health);
        if health.care > self.snapshot.health.care {
            tracing::warn!("{}", health.summary());
        }
        self.snapshot.health = health;
        self.snapshot.measured = Some(Arc::new(measured));
    }

    /// Reports a fault if an arm that holds leaves its pose. While a person changes its pen, their hand is at it.
    fn check_held_pose(&mut self, measured: &ArmMeasurement) {
        if !self.is_idle() || !self.driver.is_energised() || self.is_faulted() {
            self.held_pose.forget();
            return;
        }
        let Some((joint, off_rad)) = self.held_pose.departure(measured) else {
            return;
        };
        if self.shared.permits.is_pen_changing() {
            self.held_pose.forget();
            return;
        }
        self.fault(&format!(
            "the arm holds a pose, but {} moved by {:.1}° (at most {:.0}°): something pushes it, or its servo is too weak",
            self.shared.arm.joint_name(joint),
            off_rad.to_degrees(),
            HELD_WITHIN_RAD.to_degrees()
        ));
    }

    /// Returns whether a fault is reported and not reset yet.
    pub(super) fn is_faulted(&self) -> bool {
        self.snapshot.fault.is_some() && self.shared.permits.latched().is_some()
    }

    /// Notes whether the machine did not run the thread, which had something to do at a moment.
    pub(super) fn note_late(&mut self, due: ClockInstant) {
        let now = self.shared.clock.now();
        if now.since(due) > STARVED_BY {
            self.starved_at = Some(now);
        }
    }

    /// Handles a failed cycle.
    pub(super) fn handle_driver_error(&mut self, error: &DriverError) {
        self.failures = self.failures.saturating_add(1);
        let now = self.shared.clock.now();
        let is_starved = self
            .starved_at
            .is_some_and(|at| now.since(at) < STARVED_FELT);
        // The servos may have replied while the thread did not run, or heard nothing from it.
        let failure = match error {
            _ if is_starved && error.is_transient() => self.starved_text(),
            _ if is_starved && error.is_of_silence() => format!("{}; {error}", self.starved_text()),
            _ => error.to_string(),
        };
        self.last_failure = Some(failure.clone());
        if let Some(measured) = error.measured() {
            self.record_reading(measured.clone());
        }
        if let DriverError::Device { fault, .. } = error {
            self.snapshot.recovery = recovery_steps(self.shared.arm.file.family, *fault);
        }
        tracing::debug!(failures = self.failures, "bus: {error}");
        if error.is_unplugged() {
            self.link = None;
            self.fault(&format!("{error}{PLUG_IN}"));
            self.snapshot.state = MotionState::Detached;
            self.end_failed();
        } else if !error.is_transient() || self.failures >= IDLE_FAILURES_MAX {
            if let Some(job) = &mut self.job {
                // It is unknown whether a lift would be followed.
                job.execution.halt();
            }
            // A servo that replied, but not as it should, may be read well again while the arm brakes.
            if self.job.is_none() || error.is_transient() {
                self.driver.forget_unread_goals();
            }
            self.fault(&failure);
        }
    }

    /// Reports a fault: the motion comes to rest, the servos hold, and only `reset` goes on.
    pub(super) fn fault(&mut self, reason: &str) {
        self.fault_as(reason, StopLatch::Fault);
    }

    /// Returns a fault from before the port was opened again, with advice that still holds.
    pub(super) fn fault_after_reopening(fault: &str) -> String {
        fault.replace(PLUG_IN, PLUGGED_IN)
    }

    fn latch_fault(&mut self) {
        if let Some(latch) = self.latching.take()
            && !self.shared.permits.try_latch(latch.clone())
        {
            self.latching = Some(latch);
        }
    }

    fn fault_as(&mut self, reason: &str, latch: fn(String) -> StopLatch) {
        // Only the first cause is reported, not what follows from it.
        let is_known = match &self.job {
            Some(job) => job.failure.is_some(),
            None => {
                self.snapshot.fault.as_deref() == Some(reason)
                    && self.shared.permits.latched().is_some()
            }
        };
        if is_known {
            return;
        }
        let is_first = self.job.is_some() || !self.is_faulted();
        self.snapshot.state = MotionState::Faulted;
        self.snapshot.fault = Some(reason.to_owned());
        let latch = latch(reason.to_owned());
        match &mut self.job {
            Some(job) => {
                job.fail(reason);
                // As for a stop: no frame of the braking may wait for a reader of the latches.
                self.latching = Some(latch);
                self.latch_fault();
            }
            None => {
                self.driver.halt(HaltMode::Hold);
                self.shared.permits.latch(latch);
            }
        }
        // Last, because writing the log may block. A servo that comes and goes would fill it.
        if is_first {
            tracing::error!("{reason}");
        } else {
            tracing::debug!("then came a fault: {reason}");
        }
    }
}
