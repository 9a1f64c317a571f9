//! `approve`: shows a plan that waits for a person, and allows exactly that one.

use std::io::{BufRead, IsTerminal};

use anyhow::bail;

use super::{AtArgs, ExitStatus, operator_client, terminal_output};
use node::control_socket::OperatorVerb;

pub(super) async fn run(job: Option<String>, yes: bool, at: &AtArgs) -> anyhow::Result<ExitStatus> {
    let told = operator_client::ask(at, &OperatorVerb::Pending { job: job.clone() }).await?;
    terminal_output::line(&told.text);
    let (Some(job), Some(plan)) = (job, told.plan) else {
        return Ok(if told.done {
            ExitStatus::Done
        } else {
            ExitStatus::Refused
        });
    };
    if !yes && !confirm()? {
        terminal_output::line("not approved; nothing moved");
        return Ok(ExitStatus::Refused);
    }
    let told = operator_client::ask(at, &OperatorVerb::Approve { job, plan }).await?;
    terminal_output::line(&told.text);
    Ok(if told.done {
        ExitStatus::Done
    } else {
        ExitStatus::Refused
    })
}

fn confirm() -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        bail!("a person approves at a terminal; say --yes where one has looked at the plan above");
    }
    terminal_output::note("type yes to let the arm move");
    let mut said = String::new();
    std::io::stdin().lock().read_line(&mut said)?;
    Ok(said.trim().eq_ignore_ascii_case("yes"))
}
