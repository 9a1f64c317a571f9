//! Carries out commands to the arm's thread: run, hold, resume, release torque.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::active_motion::ActiveMotion;
use super::servo_health::HealthAction;
use super::thread::{ArmThread, draws};
use super::{MotionCommand, MotionError, MotionOutcome, MotionState};
use base::units::ArmMeasurement;
use driver::{DriverError, TorqueOffReport};
use gate::{CheckedTrajectory, DepthTrim, DepthTrimChange, DepthTrimError, Execution, HoldAt};
use permit::{ActorRank, MotionPermit, StopLatch};
use plan::PERIOD;

impl ArmThread {
    pub(super) async fn take_command(&mut self) {
        match self.shared.commands.take() {
            Some(MotionCommand::Run {
                proof,
                seen_stops,
                release,
                readings,
                done,
            }) => match self.begin(*proof, seen_stops).await {
                Ok(mut execution) => {
                    self.standstill.forget();
                    self.held_pose.forget();
                    self.snapshot.state = MotionState::Moving;
                    let stop = Arc::clone(&self.shared.stop);
                    execution.on_neighbour_change(Box::new(move || stop.wake()));
                    // Simulated time goes on while another arm's thread wakes.
                    if !self.shared.clock.is_simulated() {
                        execution.watch_neighbours();
                    }
                    self.job = Some(ActiveMotion::new(execution, release, readings, done));
                    self.trim_as_before();
                }
                Err(error) => self.reply(done, MotionOutcome::Refused(error)),
            },
            Some(MotionCommand::Hold { at, done }) => {
                let held = self.hold(at);
                self.reply(done, held);
            }
            Some(MotionCommand::Resume { permit, done }) => {
                let resumed = self.resume(permit).await;
                self.reply(done, resumed);
            }
            Some(MotionCommand::Trim { change, done }) => {
                let trimmed = self.change_depth_trim(change);
                self.reply(done, trimmed);
            }
            Some(MotionCommand::Release { done }) => {
                let released = self.release().await;
                self.reply(done, released);
            }
            Some(MotionCommand::End) => self.is_ending = true,
            None => {}
        }
    }

    fn hold(&mut self, at: HoldAt) -> Result<(), MotionError> {
        let is_held = self.is_held();
        let job = self.job.as_ref();
        if is_held && job.is_some_and(|job| !job.execution.is_held_with_other()) {
            return Err(MotionError::HeldAlready);
        }
        let job = self.job.as_mut().filter(|job| job.failure.is_none());
        let can_hold = job.is_some_and(|job| job.execution.hold(at));
        can_hold.then_some(()).ok_or(MotionError::NothingToHold)
    }

    fn change_depth_trim(&mut self, change: DepthTrimChange) -> Result<DepthTrim, MotionError> {
        let job = self.job.as_mut().filter(|job| job.failure.is_none());
        let job = job.ok_or(DepthTrimError::NotDrawing)?;
        let trim = job.execution.change_depth_trim(change)?;
        let of_job = job.release.job().map(str::to_owned);
        self.kept_trim = of_job.map(|job| (job, trim.target_mm));
        Ok(trim)
    }

    /// Trims a motion as the motion before it of the same job: after a pause or another pen the drawing goes on as it was.
    fn trim_as_before(&mut self) {
        let Some(job) = &mut self.job else {
            return;
        };
        let kept = self.kept_trim.take();
        self.kept_trim = kept.filter(|(of_job, _)| job.release.job() == Some(of_job));
        if let Some((_, mm)) = self.kept_trim {
            // A motion that draws nothing has no depth to trim.
            let _ = job.execution.change_depth_trim(DepthTrimChange::To(mm));
        }
    }

    /// Queues the reply to a command; a caller that is gone does not get one.
    fn reply<T: Send + 'static>(&mut self, done: oneshot::Sender<T>, result: T) {
        self.replies.push(Box::new(move || drop(done.send(result))));
    }

    async fn begin(
        &mut self,
        proof: CheckedTrajectory,
        seen_stops: u64,
    ) -> Result<Execution, MotionError> {
        self.check_not_stopped(&proof, seen_stops)?;
        if self.snapshot.health.care >= HealthAction::NoStroke && draws(&proof) {
            return Err(MotionError::TooHotToDraw(self.snapshot.health.summary()));
        }
        if self.job.is_some() {
            return Err(MotionError::Busy);
        }
        if !proof.scene().arm.has_same_mechanics(&self.shared.arm) {
            return Err(MotionError::OtherZeros);
        }
        if proof.trajectory().period != PERIOD {
            return Err(MotionError::OtherPeriod(proof.trajectory().period));
        }
        let measured = self.ready_servos(&proof).await?;
        // Energising and reading take time: a stop may have come meanwhile.
        self.check_not_stopped(&proof, seen_stops)?;
        let execution = proof.begin_led(&measured, self.sag, self.shared.clock.now())?;
        self.snapshot.measured = Some(Arc::new(measured));
        if !execution.checked().permit().is_nodes_own() {
            self.snapshot.fault = None;
            self.snapshot.recovery = &[];
        }
        self.next_tick = self.shared.clock.now().after(PERIOD);
        Ok(execution)
    }

    /// Energises the servos if needed and reads where the arm is. A fault that a servo reports then is
    /// handled as in any other cycle, because no later cycle would report it again.
    async fn ready_servos(
        &mut self,
        proof: &CheckedTrajectory,
    ) -> Result<ArmMeasurement, MotionError> {
        let Some(link) = self.link.as_mut() else {
            let fault = self.snapshot.fault.clone();
            return Err(fault.map_or(MotionError::NotConnected, MotionError::Fault));
        };
        let driver = &mut self.driver;
        if !driver.is_energised() && proof.permit().is_nodes_own() {
            return Err(MotionError::TorqueOff);
        }
        let ready = async {
            if !driver.is_energised() {
                self.sag.forget_goals();
                driver.energise(link.as_mut()).await?;
            }
            driver.begin(link.as_mut(), proof.torque_limit()).await
        };
        let measured = ready.await;
        measured.map_err(|error| {
            if matches!(error, DriverError::Device { .. }) {
                self.handle_driver_error(&error);
            }
            error.into()
        })
    }

    /// Checks that no stop was requested, and nothing latched, since the motion was permitted.
    fn check_not_stopped(
        &self,
        proof: &CheckedTrajectory,
        seen_stops: u64,
    ) -> Result<(), MotionError> {
        if self.stops_seen > seen_stops
            || self.stopping.is_some()
            || self.shared.stop.is_requested(seen_stops)
            || !self.shared.permits.is_current(proof.permit())
        {
            return Err(self.stopped_before("began"));
        }
        Ok(())
    }

    fn stopped_before(&self, what: &'static str) -> MotionError {
        let fault = self.snapshot.fault.clone().filter(|_| self.is_faulted());
        fault.map_or(MotionError::StoppedBefore(what), |fault| {
            MotionError::FaultedBefore(what, fault)
        })
    }

    async fn resume(&mut self, permit: MotionPermit) -> Result<(), MotionError> {
        self.check_may_resume(&permit)?;
        if self.is_held() {
            // A simulated arm is not read while it is held: its last reading is out of date.
            self.cycle(None).await;
            self.check_may_resume(&permit)?;
        }
        let now = self.shared.clock.now();
        let (Some(job), Some(measured)) = (&mut self.job, &self.snapshot.measured) else {
            return Err(MotionError::NothingHeld);
        };
        job.execution.resume(measured, permit, now)?;
        self.next_tick = now.after(PERIOD);
        Ok(())
    }

    fn check_may_resume(&self, permit: &MotionPermit) -> Result<(), MotionError> {
        let stopped = self.stopping.is_some() || self.shared.stop.is_requested(self.stops_seen);
        if stopped || !self.shared.permits.is_current(permit) {
            return Err(self.stopped_before("went on"));
        }
        if self.snapshot.health.care >= HealthAction::Park {
            return Err(MotionError::TooHot(self.snapshot.health.summary()));
        }
        Ok(())
    }

    /// Takes torque off on an operator's command: the arm drops.
    async fn release(&mut self) -> Result<TorqueOffReport, MotionError> {
        let now = self.shared.clock.now();
        let is_idle = self.is_idle();
        let Some(link) = self.link.as_mut() else {
            return Err(MotionError::NotConnected);
        };
        // Standstill is no condition: a joint that hunts would never be let go of.
        if !is_idle {
            return Err(MotionError::Moves);
        }
        self.shared
            .permits
            .latch(StopLatch::Stopped(ActorRank::Operator));
        tracing::warn!(at = now.as_nanos(), "an operator takes torque off");
        let released = self.driver.release(link.as_mut()).await;
        self.held_pose.forget();
        if let (Ok(released), Some(measured)) = (&released, &mut self.snapshot.measured) {
            // No later reading says so where a servo does not answer.
            let servos = Arc::make_mut(measured).servos.iter_mut();
            let off = servos.filter(|servo| released.off.iter().any(|off| off.id == servo.id));
            off.for_each(|servo| servo.torque_on = Some(false));
        }
        self.snapshot.state = MotionState::Stopped;
        Ok(released?)
    }
}
