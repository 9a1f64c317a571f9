//! Carries out an earlier job's plan on a separate simulated arm, and compares the ink with the job's strokes. No arm of a node
//! moves.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::json;

use super::operator_verb::VerbReply;
use super::simulated_playback;
use base::units::JointVector;
use design::compare::{InkDeviation, deviation_mm};
use job::PastJob;
use plan::{Plan, SilentObserver};
use scene::{DrawingTrim, Order, Scene, SceneLibrary};
use tools::Node;

/// Maximum distance of ink from the job's strokes; beyond it the drawing is a different one.
pub const APART_MM_MAX: f64 = 1.0;

/// A job, carried out again on a simulated arm.
pub struct ReplayedJob {
    past: PastJob,
    scene: Arc<Scene>,
    plan: Plan,
    ink: Vec<Vec<[f64; 2]>>,
    deviation: InkDeviation,
}

impl ReplayedJob {
    /// Plans a job anew from where it began and carries the plan out.
    ///
    /// # Errors
    /// There is nothing to replay, something that the job depends on was changed, or the simulated arm did not reach its end.
    pub async fn of(scene: Arc<Scene>, past: PastJob) -> anyhow::Result<Self> {
        if past.strokes.is_empty() {
            let (id, tool) = (&past.id, &past.tool);
            bail!("{id} has no plan to replay: it was a {tool} and drew nothing");
        }
        let planned_scene = Arc::clone(&scene);
        let planning = tokio::task::spawn_blocking(move || {
            let plan = plan_again(&planned_scene, &past);
            plan.map(|plan| (past, plan))
        });
        let (past, plan) = planning.await??;
        let ink = simulated_playback::carry_out(&scene, plan.trajectory.clone()).await?;
        let strokes = past.strokes.iter().map(|stroke| stroke.points_mm.clone());
        let deviation = deviation_mm(&strokes.collect::<Vec<_>>(), &ink);
        Ok(Self {
            past,
            scene,
            plan,
            ink,
            deviation,
        })
    }

    /// Returns whether the plan is the same, and the ink lies on the job's strokes.
    #[must_use]
    pub fn is_same(&self) -> bool {
        self.is_same_plan() && self.deviation.max_mm <= APART_MM_MAX
    }

    fn is_same_plan(&self) -> bool {
        self.plan.hash == self.past.plan_hash
    }

    /// Describes how the replay differs from the job.
    #[must_use]
    pub fn words(&self) -> String {
        let which = if self.is_same_plan() {
            "the same"
        } else {
            "a different"
        };
        format!(
            "{}: {which} plan {}. On the simulator, {} of the job. The job {}",
            self.past.id,
            self.plan.hash,
            self.deviation.describe(),
            self.past.state_text(),
        )
    }

    /// Paints the ink, as PNG.
    fn png(&self) -> Option<Vec<u8>> {
        let pens = self.plan.strokes.iter().map(|stroke| stroke.pen);
        let pens = pens.chain(std::iter::repeat(0));
        let ink: Vec<(usize, Vec<[f64; 2]>)> = pens.zip(self.ink.iter().cloned()).collect();
        tools::ink_picture(&self.scene, &ink)
    }
}

/// The part of a drawing's arguments that a replay needs.
#[derive(Default, Deserialize)]
struct UnderstoodTrim {
    trim: Option<DrawingTrim>,
}

/// Returns the scene of a job to replay, with the trim of its pens.
///
/// # Errors
/// The scene has changed since, or a person changed its pens during the job.
pub fn scene_of(
    library: &SceneLibrary,
    state: &Path,
    past: &PastJob,
) -> anyhow::Result<Arc<Scene>> {
    let id = &past.id;
    let scene = tools::scene_of_job(library, state, past)
        .map_err(|error| anyhow!("{id} can be replayed only after this is restored: {error}"))?;
    if scene.holder.is_by_hand() {
        bail!("{id} cannot be replayed: a person changed its pens, and a replay has no person");
    }
    if scene.waits_for_person() {
        bail!(
            "{id} cannot be replayed: its drawing pauses for a person, and a replay has no person"
        );
    }
    // Jobs of other tools have other arguments, and jobs of older nodes have none.
    let understood: UnderstoodTrim = serde_json::from_str(&past.understood).unwrap_or_default();
    let Some(trim) = understood.trim else {
        return Ok(scene);
    };
    Ok(Arc::new(scene.trimmed(&trim)?))
}

/// Plans the job again from its start.
fn plan_again(scene: &Scene, past: &PastJob) -> anyhow::Result<Plan> {
    let start = JointVector::from_slice(&past.start_rad);
    let full_plan = plan::draw(scene, &start, &SilentObserver)?;
    if full_plan.hash == past.plan_hash {
        return Ok(full_plan);
    }
    // The job resumed an earlier one, or drew something other than the design.
    let (strokes, order) = (&past.strokes, Order::AsDrawn);
    let plan = plan::draw_strokes(scene, &start, strokes, order, &SilentObserver);
    plan.context("the job's strokes can no longer be planned")
}

/// Replays a job of a node for an operator.
pub(super) async fn reply(node: &Node, id: &str) -> VerbReply {
    match replay(node, id).await {
        Ok(replayed) => VerbReply {
            done: replayed.is_same(),
            data: Some(json!({"picture": replayed.png().map(|png| STANDARD.encode(png))})),
            ..VerbReply::done(replayed.words())
        },
        Err(error) => VerbReply::failed(format!("{error:#}")),
    }
}

async fn replay(node: &Node, id: &str) -> anyhow::Result<ReplayedJob> {
    let is_name = id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    ensure!(is_name, "there is no job {id:?}");
    let past = job::past(&node.state, id).with_context(|| format!("{id} cannot be read"))?;
    let scene = scene_of(&node.scenes, &node.state, &past)?;
    ReplayedJob::of(scene, past).await
}
