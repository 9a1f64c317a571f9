//! `jog`: moves the arm in small steps, each planned, judged by the gate and journalled like any motion.
//! Nothing keeps moving: each step ends by itself and needs its own key press, and a client that
//! leaves during a step stops the arm.

mod screen;
mod terminal;
mod view;

use std::path::PathBuf;

use clap::Args;

use super::{AtArgs, ExitStatus, NodeOptions, operator_client, which_node};
use node::jog::{JogRequest, JogState};
use node::operator_verb::OperatorVerb;

#[derive(Debug, Args)]
pub(super) struct JogArgs {
    /// The scene to move in
    #[arg(long)]
    scene: String,
    /// The arm, if several arms of the node draw the scene
    #[arg(long, value_name = "NAME")]
    arm: Option<String>,
    /// Only this step, without the terminal view: `x+1`, `z-0.1` in mm, or a joint's number and
    /// degrees, `j2-1`
    #[arg(long, value_name = "STEP")]
    step: Option<JogRequest>,
    /// File for recorded poses [default: they are only shown]
    #[arg(long, value_name = "FILE")]
    poses: Option<PathBuf>,
    #[command(flatten)]
    at: AtArgs,
}

pub(super) async fn run(options: &NodeOptions, args: JogArgs) -> anyhow::Result<ExitStatus> {
    let at = which_node::required(options, &args.at).await?;
    let args = JogArgs { at, ..args };
    let Some(step) = args.step else {
        return terminal::run(&args).await;
    };
    let verb = OperatorVerb::Jog {
        scene: args.scene.clone(),
        step,
        arm: args.arm.clone(),
    };
    operator_client::moving_verb(&args.at, verb).await
}

/// Asks the node for the arm's state.
async fn state(args: &JogArgs) -> anyhow::Result<JogState> {
    let verb = OperatorVerb::Jogged {
        scene: args.scene.clone(),
        arm: args.arm.clone(),
    };
    operator_client::parse_text(&operator_client::require(&args.at, &verb).await?)
}
