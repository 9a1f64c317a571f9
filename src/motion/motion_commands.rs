//! Carries out commands to the arm's thread: run, hold, resume, release torque.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::active_motion::ActiveMotion;
use super::servo_health::HealthAction;
use super::thread::{ArmThread, draws};
use super::{MotionCommand, MotionOutcome, MotionState};
use base::units::ClockInstant;
use driver::TorqueOffReport;
use gate::{CheckedTrajectory, Execution, HoldAt};
use permit::{ActorRank, MotionPermit, StopLatch};
use plan::PERIOD;

const LIMP: &str = "its torque is not on, or was lost: only a reset switches it on again";

const OTHER_ZEROS: &str = "it was planned with other zeros or limits than the arm was attached with: start the node again";

const NOTHING_TO_HOLD: &str = "nothing moves that could be held";

const HELD_ALREADY: &str =
    "it is held already; `steadyhand resume` goes on, `steadyhand stop` ends it";

impl ArmThread {
    pub(super) async fn take_command(&mut self) {
        match self.own.orders.take() {
            Some(MotionCommand::Run {
                proof,
                seen_stops,
                release,
                done,
            }) => match self.begin(*proof, seen_stops).await {
                Ok(execution) => {
                    self.still.forget();
                    self.snapshot.state = MotionState::Moving;
                    self.job = Some(ActiveMotion::new(execution, release, done));
                }
                Err(why) => self.answer(done, MotionOutcome::Refused(why)),
            },
            Some(MotionCommand::Hold { at, done }) => {
                let held = self.hold(at);
                self.answer(done, held.map_err(str::to_owned));
            }
            Some(MotionCommand::Resume { permit, done }) => {
                let resumed = self.resume(permit).await;
                self.answer(done, resumed);
            }
            Some(MotionCommand::Release { done }) => {
                let released = self.release().await;
                self.answer(done, released);
            }
            Some(MotionCommand::End) => self.ending = true,
            None => {}
        }
    }

    fn hold(&mut self, at: HoldAt) -> Result<(), &'static str> {
        if self.is_held() {
            return Err(HELD_ALREADY);
        }
        let job = self.job.as_mut().filter(|job| job.failing.is_none());
        let holds = job.is_some_and(|job| job.execution.hold(at));
        holds.then_some(()).ok_or(NOTHING_TO_HOLD)
    }

    /// A caller that is gone needs no answer.
    fn answer<T: Send + 'static>(&mut self, done: oneshot::Sender<T>, what: T) {
        self.answers.push(Box::new(move || drop(done.send(what))));
    }

    async fn begin(
        &mut self,
        proof: CheckedTrajectory,
        seen_stops: u64,
    ) -> Result<Execution, String> {
        self.check_not_stopped(&proof, seen_stops)?;
        if self.snapshot.health.care >= HealthAction::NoStroke && draws(&proof) {
            return Err(format!(
                "{}; `sense` shows it, `reset` is possible",
                self.snapshot.health.summary()
            ));
        }
        if self.job.is_some() {
            return Err(
                "the arm is busy with another motion; `sense` shows it, `stop` stops it".to_owned(),
            );
        }
        if !proof.scene().arm.counts_like(&self.own.arm) {
            return Err(OTHER_ZEROS.to_owned());
        }
        let Some(link) = self.link.as_mut() else {
            return Err(self
                .snapshot
                .fault
                .clone()
                .unwrap_or_else(|| "the arm is not connected".to_owned()));
        };
        if !self.driver.is_energised() {
            if proof.permit().is_nodes_own() {
                return Err(LIMP.to_owned());
            }
            self.driver
                .energise(link.as_mut())
                .await
                .map_err(|error| error.to_string())?;
        }
        let measured = self
            .driver
            .begin(link.as_mut(), proof.torque_limit())
            .await
            .map_err(|error| error.to_string())?;
        // Energising and reading take their time: a stop may have come meanwhile.
        self.check_not_stopped(&proof, seen_stops)?;
        let execution = proof
            .begin(&measured, self.own.clock.now())
            .map_err(|broken| broken.to_string())?;
        self.snapshot.measured = Some(Arc::new(measured));
        if !execution.checked().permit().is_nodes_own() {
            self.snapshot.fault = None;
            self.snapshot.recovery = &[];
        }
        self.next_tick = self.own.clock.now().after(PERIOD);
        Ok(execution)
    }

    /// Checks that no stop was requested, and nothing latched, since the motion was permitted.
    fn check_not_stopped(&self, proof: &CheckedTrajectory, seen_stops: u64) -> Result<(), String> {
        if self.stops_seen > seen_stops
            || self.stopping.is_some()
            || self.own.stop.is_requested(seen_stops)
            || !self.own.permits.is_current(proof.permit())
        {
            return Err("a stop or a fault came before the motion began".to_owned());
        }
        Ok(())
    }

    async fn resume(&mut self, permit: MotionPermit) -> Result<(), String> {
        self.check_may_resume(&permit)?;
        if self.is_held() {
            // A simulated arm that is held is not read meanwhile: where it was says nothing.
            self.cycle(None).await;
            self.check_may_resume(&permit)?;
        }
        let now = self.own.clock.now();
        let (Some(job), Some(seen)) = (&mut self.job, &self.snapshot.measured) else {
            return Err("nothing is held that could go on".to_owned());
        };
        job.execution
            .resume(seen, permit, now)
            .map_err(|broken| broken.to_string())?;
        self.next_tick = now.after(PERIOD);
        Ok(())
    }

    fn check_may_resume(&self, permit: &MotionPermit) -> Result<(), String> {
        let stopped = self.stopping.is_some() || self.own.stop.is_requested(self.stops_seen);
        if stopped || !self.own.permits.is_current(permit) {
            return Err("a stop or a fault came before the motion went on".to_owned());
        }
        if self.snapshot.health.care >= HealthAction::Park {
            return Err(self.snapshot.health.summary());
        }
        Ok(())
    }

    /// An operator's word: the arm drops.
    async fn release(&mut self) -> Result<TorqueOffReport, String> {
        let now = self.own.clock.now();
        let stands = self.still.is_standing(ClockInstant::ZERO) || !self.driver.is_energised();
        if !self.is_idle() || !stands {
            return Err("the arm moves; `steadyhand stop` first".to_owned());
        }
        let Some(link) = self.link.as_mut() else {
            return Err("the arm is not connected".to_owned());
        };
        self.own
            .permits
            .latch(StopLatch::Stopped(ActorRank::Operator));
        tracing::warn!(at = now.as_nanos(), "an operator takes torque off");
        let released = self.driver.release(link.as_mut()).await;
        self.snapshot.state = MotionState::Stopped;
        released.map_err(|error| error.to_string())
    }
}
