//! `replay`: carries out an earlier job's plan on a simulated arm, and compares the results.

use super::{
    AtArgs, ExitStatus, NodeOptions, operator_client, recorded_playback, terminal_output,
    which_node,
};
use node::job_replay::{self, ReplayedJob};
use node::{job_list, open, state_folder};

pub(super) async fn run(args: &NodeOptions, id: &str, bytes: bool) -> anyhow::Result<ExitStatus> {
    let args = &of_running_node(args).await?;
    let file = open::file(args)?;
    let folder = state_folder::place(args, &file)?;
    let past = job::past(&folder, id)
        .map_err(|error| anyhow::Error::msg(job_list::describe_unread(&folder, id, &error)))?;
    let library = open::library(args, &file)?;
    let scene = job_replay::scene_of(&library, &folder, &past)?;
    if bytes {
        return recorded_playback::run(&folder, &past, &scene).await;
    }
    let replayed = ReplayedJob::of(scene, past).await?;
    terminal_output::line(&replayed.words());
    Ok(ExitStatus::of(replayed.is_same()))
}

/// Returns the options of the node that runs on this machine, if none is named: the node whose jobs `jobs` lists.
pub(super) async fn of_running_node(args: &NodeOptions) -> anyhow::Result<NodeOptions> {
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
