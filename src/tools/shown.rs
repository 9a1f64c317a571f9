//! What a node shows of itself beside results: its jobs, and pictures of plans.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Node, Watch, carry, pictures};
use crate::plan;

impl Node {
    /// The jobs that can be asked about, by name.
    #[must_use]
    pub fn jobs(&self) -> Vec<String> {
        let jobs = self.seats.iter().filter_map(|seat| seat.board.job());
        jobs.map(|job| job.card().id).collect()
    }

    /// A job: what it is, how far it is, and its result where there is one.
    #[must_use]
    pub async fn job(&self, id: &str) -> Option<Value> {
        let (seat, job) = self
            .seats
            .iter()
            .filter_map(|seat| Some((seat, seat.board.job()?)))
            .find(|(_, job)| job.card().id == id)?;
        carry::look(seat, &job);
        let card = job.card();
        if !job.is_over() {
            return Some(json!({"job": card}));
        }
        let reply = job.reply().await?;
        Some(json!({"job": card, "result": reply.structured}))
    }

    /// A picture of the plan that would draw a scene from its rest pose. Nothing moves.
    ///
    /// # Errors
    /// Why there is no such scene, plan or picture.
    pub async fn preview(
        &self,
        name: &str,
        overlay: Option<&str>,
        watch: &Watch,
    ) -> Result<Vec<u8>, String> {
        let scene = self.scenes.scene(name, overlay);
        let scene = scene.map_err(|error| error.to_string())?;
        let seat = self.seats.first().ok_or("this node has no arm")?;
        let planned = Arc::clone(&scene);
        let plan = carry::preview(seat, watch, move |watch| {
            plan::draw(&planned, &planned.rest_rad, watch)
        });
        let plan = plan.await.map_err(|trouble| trouble.reply().1.text)?;
        pictures::plan(&scene, &plan).ok_or_else(|| "this plan cannot be drawn".to_owned())
    }
}
