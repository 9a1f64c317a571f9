//! `watch`: follows a job of a running node to its end.

use serde_json::Value;

use super::operator_door::OperatorDoor;
use super::{AtArgs, ExitStatus, NodeOptions, follow_job, result_copies, terminal_output};
use tools::JobProgress;

pub(super) async fn run(
    options: &NodeOptions,
    job: Option<&str>,
    json: bool,
    at: &AtArgs,
) -> anyhow::Result<ExitStatus> {
    let door = OperatorDoor::running(options, at).await?;
    let mut outcome = follow_job::watched_job(&door, job, json).await?;
    let is_here = result_copies::is_here(at.node.as_deref());
    let folder = options.output.as_deref().filter(|_| is_here);
    let gathered = folder.map(|folder| result_copies::gather(folder, &mut outcome.result));
    if json {
        terminal_output::json(&outcome)?;
    } else {
        terminal_output::line(&format!("{}: {}", outcome.job, outcome.words));
        terminal_output::facts(&outcome.result);
        terminal_output::result_files(&outcome.result);
    }
    gathered.transpose()?;
    Ok(exit_of(&outcome))
}

/// Returns the exit status of a finished job.
pub(super) fn exit_of(outcome: &JobProgress) -> ExitStatus {
    let succeeded = outcome.result.get("success").and_then(Value::as_bool);
    ExitStatus::of(succeeded.unwrap_or(outcome.state == "reached"))
}
