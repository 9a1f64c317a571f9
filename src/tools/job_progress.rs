//! Progress of a job, for a terminal that follows it to its end.

use std::sync::Arc;

use call::{Refusal, refusal};
use serde::{Deserialize, Serialize};

use super::job_board::ArmJob;
use super::{Node, motion_job};

/// Progress of a job, for a terminal that follows it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct JobProgress {
    /// The job.
    pub job: String,
    /// Action under way.
    pub tool: String,
    /// The scene that it moves in.
    pub scene: String,
    /// `accepted`, `planning`, `moving`, `held`, `waiting_for_pen`, then `reached`, `deviated`, `stopped`, `refused`, `faulted`.
    pub state: String,
    /// Seconds of arm time done; for a job of an earlier process, estimated from the fraction of its plan that is drawn.
    pub done: f64,
    /// Total seconds of arm time, by the plan; 0 before there is one.
    pub of: f64,
    /// Progress or outcome, in words.
    pub words: String,
    /// The pen that it waits for, in words.
    #[serde(default)]
    pub pen: Option<String>,
    /// True if it has ended.
    pub is_over: bool,
    /// Its result as data, once it has ended.
    #[serde(default)]
    pub result: serde_json::Map<String, serde_json::Value>,
}

impl Node {
    /// Returns the progress of the named job, or else of the job under way or the last one of this process. The journal of an
    /// earlier job is read on another thread.
    ///
    /// # Errors
    /// There is no such job.
    pub async fn job_progress(self: &Arc<Self>, id: Option<&str>) -> Result<JobProgress, Refusal> {
        let matches = |job: &ArmJob| id.is_none_or(|id| job.card().id == id);
        let jobs = self.board_jobs().filter(|(_, job)| matches(job));
        let Some((arm, job)) = jobs.min_by_key(|(_, job)| job.is_over()) else {
            let id = id.ok_or_else(|| {
                refusal!("no job is in progress, and this node has had none since it started")
            })?;
            let (node, id) = (Arc::clone(self), id.to_owned());
            let reading = tokio::task::spawn_blocking(move || node.past_progress(&id));
            let reader_panicked = |_| Err(refusal!("its journal could not be read"));
            return reading.await.unwrap_or_else(reader_panicked);
        };
        motion_job::refresh_card(arm, &job);
        let card = job.card();
        let outcome = job.outcome.get();
        let reply = outcome.map(|reply| self.with_arm_name(arm, reply.clone()));
        let text = reply.as_ref().map(|reply| reply.text.clone());
        Ok(JobProgress {
            done: card.done_s(),
            of: card.total_s(),
            words: text.unwrap_or_else(|| card.progress_text()),
            is_over: reply.is_some(),
            pen: card.waits_for,
            result: reply.map(|reply| reply.structured).unwrap_or_default(),
            job: card.id,
            tool: card.tool,
            scene: card.scene,
            state: card.state.to_owned(),
        })
    }

    fn past_progress(&self, id: &str) -> Result<JobProgress, Refusal> {
        let past = self.job_store.past(id)?;
        let fraction = past.drawn.mm / past.total_mm().max(f64::MIN_POSITIVE);
        Ok(JobProgress {
            job: past.id.clone(),
            tool: past.tool.clone(),
            scene: past.scene_title(),
            done: past.duration_s * fraction.clamp(0.0, 1.0),
            of: past.duration_s,
            words: past.message.clone(),
            is_over: past.is_over(),
            pen: None,
            result: serde_json::from_str(&past.figures).unwrap_or_default(),
            state: past.state,
        })
    }
}
