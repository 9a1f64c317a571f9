//! Carries out the motions of a job: permission, plan, proof, journal, and the arm's thread.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::AttachedArm;
use super::calibration_check;
use super::completed_motion::CompletedMotion;
use super::journal_entries::{self, UnrecordedJobError};
use super::motion_job::{JobContext, JobError, raised_mm};
use super::planner_thread::{PlanningWatch, on_planner};
use super::sheet_check;
use super::team::{ProofRequest, TeamPlan};
use base::lock::MutexExt;
use base::units::{ArmMeasurement, JointVector};
use call::{Refusal, refusal};
use gate::CheckedTrajectory;
use job::{BYTES, InkProgress, JournalWriter};
use motion::{MotionHandle, MotionOutcome, MotionRelease, Snapshot};
use permit::{ActorRank, MotionPermit, StopLatch};
use plan::{Plan, PlanError};
use scene::{Scene, SharedScene};

/// Tools whose motions are over a sheet, and correct only if the sheet lies where the scene says.
const OVER_THE_SHEET: [&str; 3] = ["stroke", "align", super::frame::FRAME];

/// Age up to which a reading of the arm is recent where a motion begins; the gate refuses older than 250 ms.
const RECENT: Duration = Duration::from_millis(100);

/// Longest wait for a recent reading.
const RECENT_WITHIN: Duration = Duration::from_secs(1);

/// Gives a checked motion to the arm's thread.
type StartMotion = fn(
    &MotionHandle,
    CheckedTrajectory,
    u64,
    MotionRelease,
) -> tokio::sync::oneshot::Receiver<MotionOutcome>;

impl JobContext {
    /// Returns permission to move in a scene.
    pub(super) fn ask(&self, scene: &Scene) -> Result<MotionPermit, JobError> {
        calibration_check::refuse_other_zeros(&self.arm, scene)?;
        self.arm
            .permits()
            .ask(scene, self.arm.motion.clock().now())
            .map_err(JobError::Denied)
    }

    /// Plans in a scene from where the arm stands, on a thread of its own; a stop cancels the planning.
    pub(super) async fn plan<F, T>(&self, scene: &Arc<Scene>, plan: F) -> Result<T, JobError>
    where
        F: FnOnce(&Scene, &JointVector, &dyn plan::PlanObserver) -> Result<T, PlanError>
            + Send
            + 'static,
        T: Send + 'static,
    {
        let (scene, start) = (Arc::clone(scene), measurement(&self.arm)?);
        let watch = PlanningWatch::of_job(&self.arm, &self.job, self.seen_stops);
        let before = self.job.card();
        let planning =
            move |watch: &dyn plan::PlanObserver| plan(&scene, &start.position_rad, watch);
        let planned = on_planner(watch, planning).await;
        self.job.update(|card| card.ends_planning(&before));
        Ok(planned?)
    }

    /// Plans a drawing together with the other jobs of the team.
    pub(super) async fn plan_drawing(
        &self,
        shared: &Arc<SharedScene>,
    ) -> Result<TeamPlan, JobError> {
        let start_rad = measurement(&self.arm)?.position_rad;
        let watch = PlanningWatch::of_job(&self.arm, &self.job, self.seen_stops);
        let before = self.job.card();
        let planned = self.team.plan(shared, start_rad, watch).await;
        self.job.update(|card| card.ends_planning(&before));
        planned
    }

    /// Gets permission for, plans and carries out a preparatory motion, which does none of what the job counts.
    pub(super) async fn run_preparatory<F>(
        &self,
        scene: &Arc<Scene>,
        plan: F,
    ) -> Result<(Plan, CompletedMotion), JobError>
    where
        F: FnOnce(&Scene, &JointVector, &dyn plan::PlanObserver) -> Result<Plan, PlanError>
            + Send
            + 'static,
    {
        let permit = self.ask(scene)?;
        let plan = self.plan(scene, plan).await?;
        let done = self.run_uncounted(scene, permit, &plan).await?;
        Ok((plan, done))
    }

    /// Carries out the plan of a preparatory motion, which does none of what the job counts.
    pub(super) async fn run_uncounted(
        &self,
        scene: &Arc<Scene>,
        permit: MotionPermit,
        plan: &Plan,
    ) -> Result<CompletedMotion, JobError> {
        self.job.update(|card| card.is_uncounted = true);
        let done = self.run(scene, permit, plan).await;
        self.job.update(|card| card.is_uncounted = false);
        done
    }

    /// Checks a plan and carries it out to its end.
    pub(super) async fn run(
        &self,
        scene: &Arc<Scene>,
        permit: MotionPermit,
        plan: &Plan,
    ) -> Result<CompletedMotion, JobError> {
        self.run_by(MotionHandle::run_released, scene, permit, plan)
            .await
    }

    /// As [`JobContext::run`], and returns where the joints were read along the path.
    pub(super) async fn run_read(
        &self,
        scene: &Arc<Scene>,
        permit: MotionPermit,
        plan: &Plan,
    ) -> Result<CompletedMotion, JobError> {
        self.run_by(MotionHandle::run_read, scene, permit, plan)
            .await
    }

    async fn run_by(
        &self,
        start: StartMotion,
        scene: &Arc<Scene>,
        permit: MotionPermit,
        plan: &Plan,
    ) -> Result<CompletedMotion, JobError> {
        let (motion, scene) = (&self.arm.motion, &self.arm.with_confirmed_pen(scene));
        self.await_approval(scene, plan).await?;
        self.check_sheet(scene).await?;
        let claimed = self.team.claim_arms(&self.node, &self.arm, scene, self.who);
        let _still = claimed.await?;
        let _watched = self.team.watch_standing(&self.node, &self.arm, scene)?;
        let request = ProofRequest {
            arm: Arc::clone(&self.arm),
            scene: Arc::clone(scene),
            permit,
            trajectory: plan.trajectory.clone(),
        };
        let checked = self.team.prove(&self.node, request).await?;
        let journal = self.journal(scene, plan).await?;
        self.job
            .update(|card| card.begins_motion(plan.report.duration_s));
        if self.who == ActorRank::Operator {
            self.arm.take_over(&self.node, &self.entry.past().caller);
        }
        let previous_scene = self.arm.last_scene();
        self.arm.moved_in(scene);
        *self.arm.abandoned.locked() = None;
        let started_at = motion.clock().now();
        self.record_bytes().await;
        self.record_motion(scene, plan).await;
        let outcome = start(motion, checked, self.seen_stops, journal.release()).await;
        self.end_recorded_motion();
        self.end_bytes().await;
        let journalled = journal.finish().await;
        if matches!(outcome, Ok(MotionOutcome::Refused(_))) {
            // It did not move in this scene, so the previous scene still says which way is up.
            self.arm.moved_back_to(previous_scene);
        } else {
            self.job.set_moved();
        }
        let arm_time_s = motion.clock().now().seconds_since(started_at);
        let drawn = self.entry.past().drawn;
        let is_reached = matches!(outcome, Ok(MotionOutcome::Reached { .. }));
        journal_entries::check_journalled(journalled, is_reached)?;
        self.ended(scene, plan, (arm_time_s, drawn), outcome.ok())
    }

    /// Returns what a motion came to; no outcome is that of a thread that ended.
    fn ended(
        &self,
        scene: &Scene,
        plan: &Plan,
        (arm_time_s, drawn): (f64, InkProgress),
        outcome: Option<MotionOutcome>,
    ) -> Result<CompletedMotion, JobError> {
        match outcome {
            Some(MotionOutcome::Reached {
                visits,
                readings,
                off_rad,
                sags,
                deviation,
            }) => {
                self.job.update(|card| card.ends_motion(plan));
                Ok(CompletedMotion {
                    visits,
                    readings,
                    off_rad,
                    sags,
                    deviation,
                    arm_time_s,
                })
            }
            Some(MotionOutcome::Stopped(report)) => {
                let raised_mm = raised_mm(scene, &self.arm.motion.snapshot());
                Err(JobError::Stopped(Box::new(report), drawn, raised_mm))
            }
            Some(MotionOutcome::Refused(reason)) => Err(Refusal::from(reason).into()),
            Some(MotionOutcome::Faulted(reason)) => Err(JobError::Faulted(reason)),
            None => Err(JobError::Faulted(
                "the arm's thread has ended. Next: restart the node".to_owned(),
            )),
        }
    }
}

impl JobContext {
    /// Checks by camera that the sheet still lies where it was taught: before the first motion, and again if a plan may
    /// have waited for approval. Moves to rest skip the check.
    async fn check_sheet(&self, scene: &Arc<Scene>) -> Result<(), JobError> {
        let is_over_it = OVER_THE_SHEET.contains(&self.job.card().tool.as_str());
        let has_checked_sheet = self.has_checked_sheet.swap(true, Ordering::Relaxed);
        if !is_over_it || (has_checked_sheet && !self.must_be_approved(scene)) {
            return Ok(());
        }
        Ok(sheet_check::check(&self.node, &self.arm, scene).await?)
    }

    /// Begins to record the arm's bytes with the job; the job goes on if that fails.
    async fn record_bytes(&self) {
        let (arm, file) = (Arc::clone(&self.arm), self.entry.folder().join(BYTES));
        let begin = move || {
            let begun = arm.recorder.as_ref().map(|recorder| recorder.begin(&file));
            if let Some(Err(error)) = begun {
                tracing::warn!("the job's bytes are not saved: {}: {error}", file.display());
            }
        };
        if tokio::task::spawn_blocking(begin).await.is_err() {
            tracing::warn!("the job's bytes are not saved: their thread failed");
        }
    }

    async fn end_bytes(&self) {
        let arm = Arc::clone(&self.arm);
        let end = move || arm.recorder.iter().for_each(|recorder| recorder.end());
        if tokio::task::spawn_blocking(end).await.is_err() {
            tracing::warn!("the job's bytes may be incomplete: their thread failed");
        }
    }

    /// Begins the journal of a motion: from now on the arm goes no farther than the journal says.
    async fn journal(&self, scene: &Arc<Scene>, plan: &Plan) -> Result<JournalWriter, JobError> {
        let (entry, scene, plan) = (Arc::clone(&self.entry), Arc::clone(scene), plan.clone());
        let arm = Arc::clone(&self.arm);
        let snapshots = self.arm.motion.watch();
        let on_failure = Box::new(move |reason: &str| {
            arm.stop_for_node("its journal");
            arm.permits().latch(StopLatch::Fault(format!(
                "the journal cannot be written: {reason}"
            )));
        });
        let started = tokio::task::spawn_blocking(move || {
            JournalWriter::start(entry, &scene, &plan, snapshots, on_failure)
        });
        match started.await {
            Ok(Ok(journal)) => Ok(journal),
            Ok(Err(error)) => {
                Err(Refusal::from(UnrecordedJobError::Journal(error.to_string())).into())
            }
            Err(_) => Err(refusal!("the thread that writes the journal failed").into()),
        }
    }
}

/// Returns the last measured position of an arm.
pub(super) fn measurement(arm: &AttachedArm) -> Result<Arc<ArmMeasurement>, Refusal> {
    let snapshot = arm.motion.snapshot();
    snapshot.measured.ok_or_else(|| match snapshot.fault {
        Some(fault) => Refusal::new(fault),
        None => refusal!("the arm has not been read yet"),
    })
}

/// Waits for a reading that the gate takes for recent, as long as a machine may be busy or a bus silent for a moment. Without one
/// the gate says how old the last one is.
pub(super) async fn recent_measurement(arm: &AttachedArm) -> Result<Arc<ArmMeasurement>, Refusal> {
    let asked_at = arm.motion.clock().now();
    let is_recent = |snapshot: &Snapshot| match &snapshot.measured {
        Some(measured) => asked_at.since(measured.at) <= RECENT,
        None => false,
    };
    // The time of an idle simulated arm may have passed without it.
    if !is_recent(&arm.motion.snapshot()) {
        _ = tokio::time::timeout(RECENT_WITHIN, arm.motion.fresh_snapshot()).await;
    }
    let mut snapshots = arm.motion.watch();
    _ = tokio::time::timeout(RECENT_WITHIN, snapshots.wait_for(is_recent)).await;
    measurement(arm)
}
