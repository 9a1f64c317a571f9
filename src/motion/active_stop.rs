//! A stop under way on the arm's thread: from the line that was pulled to the report.

use super::ms_since;
use super::stop_signal::StopRequest;
use super::thread::ArmThread;
use super::{MotionOutcome, MotionState, StopReport};
use base::units::ClockInstant;
use driver::HaltMode;
use permit::StopLatch;

/// A stop that has not come to its end.
pub(super) struct ActiveStop {
    pub(super) asked: StopRequest,
    pub(super) was_moving: bool,
    pub(super) first_frame_ms: Option<f64>,
    pub(super) latched: bool,
    pub(super) lift: LiftTimer,
}

impl ActiveStop {
    fn latch(&self) -> StopLatch {
        if self.asked.emergency {
            StopLatch::Emergency(self.asked.by)
        } else {
            StopLatch::Stopped(self.asked.by)
        }
    }
}

/// The lift of a stop, in the arm's time.
#[derive(Clone, Copy, Default)]
pub(super) struct LiftTimer {
    began: Option<ClockInstant>,
    ms: Option<f64>,
}

impl LiftTimer {
    /// Told at each tick whether the arm is on its way up.
    fn note(&mut self, lifts: bool, now: ClockInstant) {
        if lifts {
            self.began.get_or_insert(now);
        } else if let Some(began) = self.began.take() {
            *self.ms.get_or_insert(0.0) += ms_since(now, began);
        }
    }
}

impl ArmThread {
    pub(super) fn take_stop(&mut self) {
        let Some(asked) = self
            .own
            .stop
            .take_request(self.stops_seen, self.own.clock.now())
        else {
            return;
        };
        self.stops_seen = asked.serial;
        if asked.emergency {
            self.driver.halt(HaltMode::Emergency);
        }
        if let Some(job) = &mut self.job {
            if asked.emergency {
                job.execution.stand();
            } else {
                job.execution.stop();
            }
        }
        let mut stopping = ActiveStop {
            asked,
            was_moving: self.job.is_some(),
            first_frame_ms: None,
            latched: false,
            lift: LiftTimer::default(),
        };
        if let Some(before) = self.stopping.take() {
            stopping.asked = StopRequest {
                at: before.asked.at,
                by: before.asked.by.max(asked.by),
                emergency: before.asked.emergency || asked.emergency,
                ..asked
            };
            (stopping.first_frame_ms, stopping.lift) = (before.first_frame_ms, before.lift);
        }
        self.stopping = Some(stopping);
        self.snapshot.state = MotionState::Stopping;
    }

    /// Latches the stop. Called after the frame, because no frame waits for a reader of the latches;
    /// repeated at each tick until it succeeds.
    pub(super) fn latch_stop(&mut self) {
        if let Some(stopping) = self.stopping.as_mut()
            && !stopping.latched
        {
            stopping.latched = self.own.permits.try_latch(stopping.latch());
        }
    }

    /// `sent` is when the wire took this tick's goals.
    pub(super) fn note_stop_frame(&mut self, sent: Option<ClockInstant>) {
        if let (Some(stopping), Some(sent)) = (&mut self.stopping, sent)
            && stopping.was_moving
            && stopping.first_frame_ms.is_none()
        {
            stopping.first_frame_ms = Some(ms_since(sent, stopping.asked.at));
        }
    }

    /// Behind the frame that was `sent`, or was not, because all had been.
    pub(super) fn note_lift(&mut self, sent: ClockInstant) {
        let lifts = self
            .job
            .as_ref()
            .is_some_and(|job| job.execution.is_lifting());
        if let Some(stopping) = &mut self.stopping {
            stopping.lift.note(lifts, sent);
        }
    }

    pub(super) fn finish_stop(&mut self, verified: bool) {
        let Some(stopping) = self.stopping.take() else {
            return;
        };
        // Before the answer, and no frame of this stop is left to send.
        if !stopping.latched {
            self.own.permits.latch(stopping.latch());
        }
        let now = self.own.clock.now();
        let report = StopReport {
            kind: if stopping.asked.emergency {
                "emergency stop"
            } else {
                "stop"
            },
            by: stopping.asked.by,
            emergency: stopping.asked.emergency,
            first_frame_ms: stopping.first_frame_ms,
            standstill_ms: verified.then(|| ms_since(now, stopping.asked.at)),
            lift_ms: stopping.lift.ms,
            speed_rad_s: self.still.speed_rad_s(),
            verified,
            lifted: self.has_lifted(),
            not_kept: None,
        };
        self.snapshot.state = match (&self.snapshot.fault, &self.link) {
            (_, None) => MotionState::Detached,
            (Some(_), _) => MotionState::Faulted,
            (None, _) => MotionState::Stopped,
        };
        self.snapshot.stop = Some(report.clone());
        self.snapshot.stops_done = stopping.asked.serial;
        match self.job.take() {
            Some(job) if job.failing.is_none() => {
                self.answers.push(job.end(MotionOutcome::Stopped(report)));
            }
            broken => {
                self.job = broken;
                self.end_failed();
            }
        }
    }
}
