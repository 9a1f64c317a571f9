//! `jobs`: lists what a node was asked, planned and did, whether it runs or not.

use super::command::JobsCommand;
use super::{AtArgs, ExitStatus, NodeOptions, audit, operator_client, terminal_output, which_node};
use node::operator_verb::OperatorVerb;
use node::{job_list, left_practice, open, state_folder};

pub(super) async fn run(
    node: &NodeOptions,
    what: Option<JobsCommand>,
    id: Option<String>,
    json: bool,
    at: &AtArgs,
) -> anyhow::Result<ExitStatus> {
    if let Some(JobsCommand::Audit(what)) = what {
        return audit::run(&what);
    }
    if let Some(at) = which_node::find(node, at).await? {
        return operator_client::verb(&at, OperatorVerb::Jobs { id, json }).await;
    }
    let file = open::file(node)?;
    let left = state_folder::is_practice(node, &file).then(left_practice::state);
    let folder = match left.flatten() {
        Some(left) => left,
        None => state_folder::place(node, &file)?,
    };
    let reply = job_list::jobs_reply(&folder, None, id.as_deref(), json);
    match reply.done {
        true => terminal_output::line(&reply.text),
        false => terminal_output::note(&reply.text),
    }
    Ok(ExitStatus::of(reply.done))
}
