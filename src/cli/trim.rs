//! `trim`: raises or lowers the pen of the drawing under way.

use clap::Args;

use super::node_args::AtArgs;
use super::{ExitStatus, NodeOptions, which_node};
use node::operator_verb::{DepthTrimRequest, OperatorVerb};

#[derive(Debug, Args)]
pub(super) struct TrimArgs {
    /// By how many millimetres, in addition to earlier trims
    #[arg(value_name = "MM", allow_negative_numbers = true)]
    #[arg(required_unless_present = "to", conflicts_with = "to")]
    by: Option<f64>,
    /// To how many millimetres from the planned depth instead; 0 is as planned
    #[arg(long, value_name = "MM", allow_negative_numbers = true)]
    to: Option<f64>,
    /// The arm, if several arms of the node move
    #[arg(long, value_name = "NAME")]
    arm: Option<String>,
    #[command(flatten)]
    at: AtArgs,
}

pub(super) async fn run(node: &NodeOptions, args: TrimArgs) -> anyhow::Result<ExitStatus> {
    let request = DepthTrimRequest {
        by_mm: args.by,
        to_mm: args.to,
        arm: args.arm,
    };
    which_node::verb(node, &args.at, OperatorVerb::Trim(request)).await
}
