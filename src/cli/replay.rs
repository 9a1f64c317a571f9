//! `replay`: carries out an earlier job's plan on a simulated arm, and compares.

use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use serde::Deserialize as _;

use super::{
    AtArgs, ExitStatus, NodeOptions, operator_client, recorded_playback, terminal_output,
    which_node,
};
use base::clock::NodeClock;
use base::units::JointVector;
use job::{self, PastJob};
use link::memory::MemoryLink;
use link::{ByteLink, LinkError};
use motion::{MotionHandle, MotionOutcome, PortOpener};
use node::control_socket::OperatorVerb;
use node::running_nodes::NodeDescription;
use node::{job_list, open, state_folder};
use permit::PermitRegistry;
use plan::{self, Plan, SilentObserver};
use scene::{Order, Scene};
use sim::ArmSimulator;

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
    let ink = carried_out(&scene, &start, &plan).await?;
    Ok(print_comparison(id, &past, &plan, &ink))
}

/// Returns the options of the node that runs on this machine, where none is named: the node whose jobs `jobs` lists.
async fn of_running_node(args: &NodeOptions) -> anyhow::Result<NodeOptions> {
    let Some(at) = which_node::find(args, &AtArgs::default()).await? else {
        return Ok(args.clone());
    };
    let told = operator_client::ask(&at, &OperatorVerb::Describe).await?;
    let data = told.data.context("the node did not say who it is")?;
    let folders: NodeDescription = NodeDescription::deserialize(data)
        .context("the node on this machine is of another version")?;
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

async fn carried_out(
    scene: &Arc<Scene>,
    start: &JointVector,
    plan: &Plan,
) -> anyhow::Result<Vec<Vec<[f64; 2]>>> {
    let simulator = ArmSimulator::new(&scene.arm, start);
    open::lay(&simulator, scene);
    let device = simulator.clone();
    let open: PortOpener = Box::new(move |clock| {
        let link =
            MemoryLink::new(device.clone(), clock, "simulated arm").map_err(LinkError::Read)?;
        Ok(Box::new(link) as Box<dyn ByteLink>)
    });
    let permits = Arc::new(PermitRegistry::everything());
    let motion = MotionHandle::start(
        Arc::clone(&scene.arm),
        NodeClock::simulated(),
        permits,
        open,
    )
    .map_err(anyhow::Error::msg)?;
    let now = motion.clock().now();
    let permit = motion.permits().ask(scene, now)?;
    let measured = motion.snapshot().measured.context("the arm was not read")?;
    let checked = gate::check(scene, permit, &measured, now, plan.trajectory.clone())?;
    match motion.run(checked, 0).await? {
        MotionOutcome::Reached { .. } => {}
        other => bail!("the replay did not reach its end: {other:?}"),
    }
    Ok(simulator
        .ink()
        .into_iter()
        .map(|ink| ink.points_mm)
        .collect())
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
