//! `approve`: shows a plan that waits for a person, and allows exactly that one.

use super::questions;
use super::{AtArgs, ExitStatus, NodeOptions, operator_client, terminal_output, which_node};
use node::operator_verb::OperatorVerb;

const NO_TERMINAL: &str =
    "a person must approve at a terminal. Next: look at the plan above, then add --yes";

pub(super) async fn run(
    options: &NodeOptions,
    job: Option<String>,
    yes: bool,
    at: &AtArgs,
) -> anyhow::Result<ExitStatus> {
    let at = &which_node::required(options, at).await?;
    let reply = operator_client::ask(at, &OperatorVerb::Pending { job: job.clone() }).await?;
    terminal_output::line(&reply.text);
    let (Some(job), Some(plan)) = (job, reply.plan) else {
        return Ok(ExitStatus::of(reply.done));
    };
    if !yes && !questions::confirm("let the arm move? [y/N]", NO_TERMINAL)? {
        return terminal_output::refused("not approved; nothing moved");
    }
    operator_client::verb(at, OperatorVerb::Approve { job, plan }).await
}
