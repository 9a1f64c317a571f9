//! `replay`: carries out an earlier job's plan on a simulated arm, and compares.

use anyhow::{Context, anyhow, bail};

use super::{
    AtArgs, ExitStatus, NodeOptions, operator_client, recorded_playback, terminal_output,
    which_node,
};
use base::units::JointVector;
use job::{self, PastJob};
use node::{job_list, open, simulated_playback, state_folder};
use plan::{self, Plan, SilentObserver};
use scene::{Order, Scene};

/// Maximum distance of ink from the job's strokes; beyond it the drawing is a different one.
pub(super) const APART_MM_MAX: f64 = 1.0;

pub(super) async fn run(args: &NodeOptions, id: &str, bytes: bool) -> anyhow::Result<ExitStatus> {
    let args = &of_running_node(args).await?;
    let file = open::file(args)?;
    let folder = state_folder::place(args, &file)?;
    let past = job::past(&folder, id)
        .map_err(|error| anyhow::Error::msg(job_list::unread(&folder, id, &error)))?;
    let library = open::library(args, &file)?;
    let scene = tools::scene_of_job(&library, &folder, &past)
        .map_err(|why| anyhow!("{id} cannot be replayed: {why}; restore it to replay"))?;
    if scene.holder.is_by_hand() {
        bail!(
            "{id} cannot be replayed: a person changed its pens, and a replay has nobody to change them"
        );
    }
    if bytes {
        return recorded_playback::run(&folder, &past, &scene).await;
    }
    if past.strokes.is_empty() {
        bail!(
            "{id} drew nothing (it was a {}): there is no plan to replay",
            past.tool
        );
    }
    let start = JointVector::from_slice(&past.start_rad);
    let plan = again(&scene, &past, &start)?;
    let ink = simulated_playback::carry_out(&scene, plan.trajectory.clone()).await?;
    Ok(print_comparison(id, &past, &plan, &ink))
}

/// Returns the options of the node that runs on this machine, where none is named: the node whose jobs `jobs` lists.
async fn of_running_node(args: &NodeOptions) -> anyhow::Result<NodeOptions> {
    let Some(at) = which_node::find(args, &AtArgs::default()).await? else {
        return Ok(args.clone());
    };
    let folders = operator_client::description(&at).await?;
    Ok(NodeOptions {
        state: Some(folders.state),
        config: folders.config,
        scenes: args.scenes.clone().or(folders.scenes),
        ..args.clone()
    })
}

/// The job's plan, made again from what it began with.
fn again(scene: &Scene, past: &PastJob, start: &JointVector) -> anyhow::Result<Plan> {
    let whole = plan::draw(scene, start, &SilentObserver)?;
    if whole.hash == past.plan_hash {
        return Ok(whole);
    }
    // It went on with an earlier one, or drew something else than the design.
    let part = plan::draw_strokes(scene, start, &past.strokes, Order::AsDrawn, &SilentObserver);
    part.context("the job's strokes cannot be planned any more")
}

fn print_comparison(id: &str, past: &PastJob, plan: &Plan, ink: &[Vec<[f64; 2]>]) -> ExitStatus {
    let strokes: Vec<Vec<[f64; 2]>> = past
        .strokes
        .iter()
        .map(|stroke| stroke.points_mm.clone())
        .collect();
    let apart = design::compare::deviation_mm(&strokes, ink);
    let same = plan.hash == past.plan_hash;
    let near = apart.max_mm <= APART_MM_MAX;
    terminal_output::line(&format!(
        "{id}: {} plan {}; on the simulator {} of the job, which {}",
        if same { "the same" } else { "another" },
        plan.hash,
        apart.describe(),
        past.state,
    ));
    if same && near {
        ExitStatus::Done
    } else {
        ExitStatus::Refused
    }
}
