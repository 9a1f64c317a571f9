//! `fleet`: work for the arms of several nodes.

use clap::Subcommand;

use super::{AtArgs, ExitStatus, NodeOptions, fleet_draw, fleet_jobs, nodes, which_node};
use node::operator_verb::OperatorVerb;

#[derive(Debug, Subcommand)]
pub(super) enum FleetCommand {
    /// Hand drawings out to nodes, each once; the same command continues
    Draw(Box<fleet_draw::FleetDrawArgs>),
    /// Stop the arms of every reachable node
    ///
    /// The one on this machine, and all that it knows.
    Stop {
        /// Stop where they are, without a lift; only `clear` at each node ends it
        #[arg(long)]
        emergency: bool,
        #[command(flatten)]
        at: AtArgs,
    },
    /// List the nodes of the local network
    Nodes(nodes::NodesArgs),
    /// Show what the nodes draw and have drawn
    Jobs {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

pub(super) async fn run(node: &NodeOptions, what: &FleetCommand) -> anyhow::Result<ExitStatus> {
    match what {
        FleetCommand::Draw(args) => fleet_draw::run(node, args).await,
        FleetCommand::Stop { emergency, at } => {
            let verb = OperatorVerb::StopFleet {
                emergency: *emergency,
            };
            which_node::verb(node, at, verb).await
        }
        FleetCommand::Nodes(args) => nodes::run(node, args).await,
        FleetCommand::Jobs { json } => fleet_jobs::run(node, *json).await,
    }
}
