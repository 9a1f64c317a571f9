//! Plans on a thread of its own, which a stop or the caller ends.

use std::sync::Arc;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::job_board::ArmJob;
use super::motion_job::JobError;
use super::panic_guard::{InternalError, catch_panic};
use super::{AttachedArm, RemoteCallWatch};
use call::{Refusal, refusal};
use motion::StopCounter;
use plan::{PlanError, PlanObserver};

/// Limits how many previews are planned at a time; others wait for their turn.
static PREVIEWS: tokio::sync::Semaphore = tokio::sync::Semaphore::const_new(2);

/// Reason why there is no plan.
#[derive(Clone)]
pub(super) enum PlannerError {
    Plan(PlanError),
    Panic(InternalError),
    NoThread(Refusal),
}

impl From<PlannerError> for JobError {
    fn from(error: PlannerError) -> Self {
        match error {
            PlannerError::Plan(error) => Self::Plan(error),
            PlannerError::Panic(error) => Self::Panic(error),
            PlannerError::NoThread(reason) => Self::Refused(reason),
        }
    }
}

/// Who waits for a plan.
pub(super) struct PlanningWatch {
    job: Option<Arc<ArmJob>>,
    stop_counter: StopCounter,
    seen_stops: u64,
    cancelled: CancellationToken,
}

impl PlanningWatch {
    /// Watches for the job of an arm. A stop that it has not seen ends the planning.
    pub(super) fn of_job(arm: &AttachedArm, job: &Arc<ArmJob>, seen_stops: u64) -> Self {
        Self {
            job: Some(Arc::clone(job)),
            stop_counter: arm.motion.stop_counter(),
            seen_stops,
            cancelled: CancellationToken::new(),
        }
    }
}

/// Several that wait for one plan: each hears of the progress, and each can end the planning.
pub(super) struct PlanningWatches(pub(super) Vec<PlanningWatch>);

impl PlanObserver for PlanningWatches {
    fn progress(&self, done: usize, of: usize) {
        self.0.iter().for_each(|watch| watch.progress(done, of));
    }

    fn cancelled(&self) -> bool {
        self.0.iter().any(PlanObserver::cancelled)
    }
}

impl PlanObserver for PlanningWatch {
    fn progress(&self, done: usize, of: usize) {
        if let Some(job) = &self.job {
            job.update(|card| card.plans(done, of));
        }
    }

    fn cancelled(&self) -> bool {
        self.cancelled.is_cancelled() || self.stop_counter.count() > self.seen_stops
    }
}

/// Plans without a job, for a preview.
pub(super) async fn preview<F, T>(
    arm: &AttachedArm,
    watch: &RemoteCallWatch,
    plan: F,
) -> Result<T, JobError>
where
    F: FnOnce(&dyn PlanObserver) -> Result<T, PlanError> + Send + 'static,
    T: Send + 'static,
{
    let planning = PlanningWatch {
        job: None,
        stop_counter: arm.motion.stop_counter(),
        // A stop ends previews as well, so that nobody waits for one.
        seen_stops: arm.motion.stops_requested(),
        cancelled: watch.cancelled.clone(),
    };
    // Only previews wait here; the planner of a motion never does.
    let slot = PREVIEWS.acquire().await;
    let planned = on_planner(planning, move |watch| {
        let planned = plan(watch);
        drop(slot);
        planned
    });
    Ok(planned.await?)
}

/// Plans on a thread of its own, with less priority than the arms.
pub(super) async fn on_planner<W, F, T>(watch: W, plan: F) -> Result<T, PlannerError>
where
    W: PlanObserver + Send + 'static,
    F: FnOnce(&dyn PlanObserver) -> Result<T, PlanError> + Send + 'static,
    T: Send + 'static,
{
    let (sender, receiver) = oneshot::channel();
    let thread = std::thread::Builder::new()
        .name("planner".to_owned())
        .spawn(move || {
            if let Err(error) = base::background_thread::yield_to_arms() {
                tracing::debug!("cannot lower the priority of the planner's thread: {error}");
            }
            // A caller that is gone needs no plan.
            let _ = sender.send(catch_panic("planning", || plan(&watch)));
        });
    if let Err(error) = thread {
        let reason = refusal!("cannot start the planner: {error}");
        return Err(PlannerError::NoThread(reason));
    }
    match receiver.await {
        Ok(planned) => planned
            .map_err(PlannerError::Panic)?
            .map_err(PlannerError::Plan),
        Err(_) => Err(PlannerError::NoThread(refusal!(
            "the planner's thread ended without an answer"
        ))),
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failing test may panic"
)]
mod tests {
    use super::*;
    use base::clock::NodeClock;
    use link::memory::MemoryLink;
    use link::{ByteLink, LinkError};
    use motion::{MotionHandle, PortOpener};
    use permit::PermitRegistry;
    use plan::Plan;
    use scene::SceneLibrary;
    use sim::ArmSimulator;

    fn arm() -> AttachedArm {
        let scene = SceneLibrary::new(None).scene("default", None).unwrap();
        let sim = ArmSimulator::new(&scene.arm, &scene.rest_rad);
        let open: PortOpener = Box::new(move |clock| {
            let link = MemoryLink::new(sim.clone(), clock, "bench").map_err(LinkError::Read)?;
            Ok(Box::new(link) as Box<dyn ByteLink>)
        });
        let permits = Arc::new(PermitRegistry::everything());
        let arm = Arc::clone(&scene.arm);
        AttachedArm::new(
            "arm",
            MotionHandle::start(arm, NodeClock::simulated(), permits, open).unwrap(),
            None,
        )
    }

    /// Stands in for a planner with a bug: it panics on an empty list.
    fn panicking_plan(watch: &dyn plan::PlanObserver) -> Result<Plan, PlanError> {
        let strokes: Vec<Plan> = Vec::new();
        watch.progress(0, strokes.len());
        Ok(strokes.into_iter().next().expect("a stroke"))
    }

    /// The refusal says why the planner failed and what to do.
    #[tokio::test]
    async fn a_planner_that_panics_is_a_refusal_that_says_what_to_report() {
        let arm = arm();
        let planning = PlanningWatch {
            job: None,
            stop_counter: arm.motion.stop_counter(),
            seen_stops: 0,
            cancelled: CancellationToken::new(),
        };
        let Err(error) = on_planner(planning, panicking_plan).await else {
            panic!("a plan");
        };
        let (state, reply) = JobError::from(error).reply();
        assert_eq!(state, "refused");
        for part in [
            "internal error while planning: a stroke",
            "report it",
            "nothing moved",
        ] {
            assert!(reply.text.contains(part), "{part}: {}", reply.text);
        }
        let code = reply.structured.get("code").and_then(|code| code.as_str());
        assert_eq!((reply.is_error, code), (true, Some("internal_error")));
        assert_eq!(arm.motion.stops_requested(), 0);
        assert!(arm.permits().latched().is_none());
    }

    /// Each preview takes one of two slots, which must be free again after a panic.
    #[tokio::test]
    async fn previews_that_panic_leave_their_turn_to_the_next() {
        let arm = arm();
        for _ in 0..5 {
            let watch = RemoteCallWatch::unobserved();
            let planned = preview(&arm, &watch, panicking_plan).await;
            assert!(matches!(planned, Err(JobError::Panic(_))));
        }
        let planned = preview(&arm, &RemoteCallWatch::unobserved(), |_| Ok(7)).await;
        assert!(matches!(planned, Ok(7)));
    }
}
