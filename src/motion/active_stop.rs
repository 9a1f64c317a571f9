//! A stop under way on the arm's thread: from the request to the report.

use super::ms_since;
use super::stop_signal::StopRequest;
use super::thread::ArmThread;
use super::{MotionOutcome, MotionState, StopReport};
use base::units::ClockInstant;
use driver::HaltMode;
use permit::{ActorRank, StopLatch};

/// A stop that is not completed yet.
pub(super) struct ActiveStop {
    pub(super) request: StopRequest,
    pub(super) was_moving: bool,
    /// `true` if it ends a motion that was held.
    pub(super) ends_held: bool,
    pub(super) first_frame_ms: Option<f64>,
    pub(super) is_latched: bool,
    pub(super) lift: LiftTimer,
}

impl ActiveStop {
    fn latch(&self) -> StopLatch {
        if self.request.emergency {
            StopLatch::Emergency(self.request.by)
        } else {
            StopLatch::Stopped(self.request.by)
        }
    }
}

/// Measures the lift of a stop, on the arm's clock.
#[derive(Clone, Copy, Default)]
pub(super) struct LiftTimer {
    began_at: Option<ClockInstant>,
    ms: Option<f64>,
}

impl LiftTimer {
    /// Notes at each tick whether the arm is being lifted.
    fn note(&mut self, is_lifting: bool, now: ClockInstant) {
        if is_lifting {
            self.began_at.get_or_insert(now);
        } else if let Some(began_at) = self.began_at.take() {
            *self.ms.get_or_insert(0.0) += ms_since(now, began_at);
        }
    }
}

impl ArmThread {
    pub(super) fn take_stop(&mut self) {
        let Some(request) = self
            .shared
            .stop
            .take_request(self.stops_seen, self.shared.clock.now())
        else {
            return;
        };
        self.stops_seen = request.serial;
        if request.only_cancels && self.is_idle() {
            // There was nothing to cancel but what arrived before, which does not begin.
            self.snapshot.stops_done = request.serial;
            return;
        }
        let ends_held = self.is_held();
        if request.emergency {
            self.driver.halt(HaltMode::Emergency);
        }
        if let Some(job) = &mut self.job {
            if request.emergency {
                job.execution.stand();
            } else {
                job.execution.stop();
            }
        }
        let mut stopping = ActiveStop {
            request,
            was_moving: self.job.is_some(),
            ends_held,
            first_frame_ms: None,
            is_latched: false,
            lift: LiftTimer::default(),
        };
        if let Some(earlier) = self.stopping.take() {
            stopping.request = StopRequest {
                at: earlier.request.at,
                by: earlier.request.by.max(request.by),
                emergency: earlier.request.emergency || request.emergency,
                only_cancels: false,
                ..request
            };
            (stopping.first_frame_ms, stopping.lift) = (earlier.first_frame_ms, earlier.lift);
            stopping.ends_held = earlier.ends_held;
        }
        self.stopping = Some(stopping);
        self.snapshot.state = MotionState::Stopping;
    }

    /// Makes a stop of this arm's own of one that the gate began because another arm stopped.
    pub(super) fn join_neighbours_stop(&mut self, now: ClockInstant) {
        let job = self.job.as_ref().filter(|job| job.failure.is_none());
        let is_joined = job.is_some_and(|job| job.execution.stopped_with().is_some());
        if is_joined && self.stopping.is_none() {
            self.shared.stop.request(ActorRank::Node, false, now);
            self.take_stop();
        }
    }

    /// Latches the stop. Called after the frame, because no frame may wait for a reader of the latches;
    /// repeated at each tick until it succeeds.
    pub(super) fn latch_stop(&mut self) {
        if let Some(stopping) = self.stopping.as_mut()
            && !stopping.is_latched
        {
            stopping.is_latched = self.shared.permits.try_latch(stopping.latch());
        }
    }

    /// Notes the first frame of a stop; `sent` is when the link took this tick's goals.
    pub(super) fn note_stop_frame(&mut self, sent: Option<ClockInstant>) {
        if let (Some(stopping), Some(sent)) = (&mut self.stopping, sent)
            && stopping.was_moving
            && stopping.first_frame_ms.is_none()
        {
            stopping.first_frame_ms = Some(ms_since(sent, stopping.request.at));
        }
    }

    /// Notes whether the arm is being lifted after this tick's frame.
    pub(super) fn note_lift(&mut self, sent: ClockInstant) {
        let is_lifting = self
            .job
            .as_ref()
            .is_some_and(|job| job.execution.is_lifting());
        if let Some(stopping) = &mut self.stopping {
            stopping.lift.note(is_lifting, sent);
        }
    }

    /// Returns the arm whose stop made this one stop.
    fn stopped_with(&self) -> Option<String> {
        let job = self.job.as_ref()?;
        job.execution.stopped_with().map(str::to_owned)
    }

    pub(super) fn finish_stop(&mut self, verified: bool) {
        let Some(stopping) = self.stopping.take() else {
            return;
        };
        // Before the reply; no frame of this stop is left to send.
        if !stopping.is_latched {
            self.shared.permits.latch(stopping.latch());
        }
        let now = self.shared.clock.now();
        let speed_rad_s = self.standstill.speed_rad_s();
        if !verified {
            // Only what is read from now on can show that the arm stands.
            self.standstill.forget();
        }
        let report = StopReport {
            kind: if stopping.request.emergency {
                "emergency stop"
            } else {
                "stop"
            },
            by: stopping.request.by,
            emergency: stopping.request.emergency,
            was_held: stopping.ends_held,
            first_frame_ms: stopping.first_frame_ms,
            standstill_ms: verified.then(|| ms_since(now, stopping.request.at)),
            lift_ms: stopping.lift.ms,
            speed_rad_s,
            verified,
            lifted: self.has_lifted(),
            neighbour: self.stopped_with(),
            not_kept: None,
        };
        self.snapshot.state = match (&self.snapshot.fault, &self.link) {
            (_, None) => MotionState::Detached,
            (Some(_), _) => MotionState::Faulted,
            (None, _) => MotionState::Stopped,
        };
        self.snapshot.stop = Some(report.clone());
        self.snapshot.stops_done = stopping.request.serial;
        self.snapshot.stop_serial = stopping.request.serial;
        match self.job.take() {
            Some(job) if job.failure.is_none() => {
                self.replies.push(job.end(MotionOutcome::Stopped(report)));
            }
            failed => {
                self.job = failed;
                self.end_failed();
            }
        }
    }
}
