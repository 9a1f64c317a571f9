//! `pen`: shows the pen or the pause that a drawing waits for, and continues it once a person confirms.

use serde::Deserialize as _;

use super::questions;
use super::{AtArgs, ExitStatus, NodeOptions, operator_client, terminal_output, which_node};
use node::operator_verb::OperatorVerb;
use tools::AwaitedPen;

pub(super) async fn run(
    options: &NodeOptions,
    job: Option<String>,
    pen: Option<usize>,
    yes: bool,
    at: &AtArgs,
) -> anyhow::Result<ExitStatus> {
    let at = &which_node::required(options, at).await?;
    let query = OperatorVerb::Pen {
        job,
        confirmed: None,
    };
    let reply = operator_client::ask(at, &query).await?;
    let exit = terminal_output::reply(&reply);
    let Some(awaited) = reply.data.map(AwaitedPen::deserialize).transpose()? else {
        return Ok(exit);
    };
    if !yes && !confirm_awaited(&awaited)? {
        return terminal_output::refused("not confirmed; nothing moved");
    }
    let confirm = OperatorVerb::Pen {
        job: Some(awaited.job),
        confirmed: Some(pen.unwrap_or(awaited.pen)),
    };
    operator_client::verb(at, confirm).await
}

fn confirm_awaited(awaited: &AwaitedPen) -> anyhow::Result<bool> {
    let question = match awaited.is_pause {
        true => "are all hands away, and may the arm continue? [y/N]".to_owned(),
        false => format!(
            "is {} in the holder, and are all hands away? [y/N]",
            awaited.words
        ),
    };
    questions::confirm(
        &question,
        "a person must confirm a pen at a terminal. Next: put the pen in, then add --yes",
    )
}
