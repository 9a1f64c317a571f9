//! Resources of a node besides results: its jobs, and pictures of plans.

use call::{Refusal, refusal};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{Node, RemoteCallWatch, motion_job, pictures, planner_thread};

/// Most journals that are listed; others can still be requested by name.
const JOURNALS_LISTED_MAX: usize = 20;

impl Node {
    /// Returns the names of each arm's latest job of this process.
    #[must_use]
    pub fn jobs(&self) -> Vec<String> {
        self.board_jobs().map(|(_, job)| job.card().id).collect()
    }

    /// Returns the jobs to list: those of [`Self::jobs`], then the newest with a journal, of earlier processes too.
    #[must_use]
    pub fn listed_jobs(&self) -> Vec<String> {
        let mut jobs = self.jobs();
        let mut journals = self.job_store.recent(JOURNALS_LISTED_MAX);
        journals.retain(|id| !jobs.contains(id));
        jobs.extend(journals);
        jobs
    }

    /// Describes a job: its card, its result if this process has one, and its journal's record.
    #[must_use]
    pub fn job(&self, id: &str) -> Option<Value> {
        let mut fields = self.latest_job(id).unwrap_or_default();
        if let Some(record) = self.job_record(id) {
            fields.entry("job").or_insert_with(
                || json!({"id": id, "state": record.get("state"), "message": record.get("message")}),
            );
            fields.insert("record".to_owned(), record);
        }
        (!fields.is_empty()).then_some(Value::Object(fields))
    }

    /// Describes an arm's latest job as this process knows it.
    fn latest_job(&self, id: &str) -> Option<Map<String, Value>> {
        let (arm, job) = self.board_job(id)?;
        motion_job::refresh_card(arm, &job);
        let mut fields = Map::from_iter([("job".to_owned(), json!(job.card()))]);
        if let Some(reply) = job.outcome.get() {
            fields.insert("result".to_owned(), Value::Object(reply.structured.clone()));
        }
        Some(fields)
    }

    /// Paints the plan that would draw a scene from its rest pose. Nothing moves.
    ///
    /// # Errors
    /// The reason why there is no such scene, plan or picture.
    pub async fn preview(
        &self,
        name: &str,
        overlay: Option<&str>,
        watch: &RemoteCallWatch,
    ) -> Result<Vec<u8>, Refusal> {
        let scene = self.scenes.scene(name, overlay)?;
        let arm = self.arms.first();
        let arm = arm.ok_or_else(|| refusal!("this node has no arm"))?;
        let planned = Arc::clone(&scene);
        let plan = planner_thread::preview(arm, watch, move |watch| {
            plan::draw(&planned, &planned.rest_rad, watch)
        });
        let plan = plan.await.map_err(motion_job::JobError::into_refusal)?;
        pictures::plan(&scene, &plan).ok_or_else(|| refusal!("this plan cannot be drawn"))
    }
}
