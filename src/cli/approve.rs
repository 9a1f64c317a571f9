//! `approve`: shows a plan that waits for a person, and allows exactly that one.

use std::io::{BufRead, IsTerminal};

use anyhow::bail;

use super::{AtArgs, Exit, operate, show};
use node::control_socket::Verb;

pub(super) async fn run(job: Option<String>, yes: bool, at: &AtArgs) -> anyhow::Result<Exit> {
    let told = operate::ask(at, &Verb::Pending { job: job.clone() }).await?;
    show::line(&told.text);
    let (Some(job), Some(plan)) = (job, told.plan) else {
        return Ok(if told.done { Exit::Done } else { Exit::Refused });
    };
    if !yes && !says_yes()? {
        show::line("not approved; nothing moved");
        return Ok(Exit::Refused);
    }
    let told = operate::ask(at, &Verb::Approve { job, plan }).await?;
    show::line(&told.text);
    Ok(if told.done { Exit::Done } else { Exit::Refused })
}

fn says_yes() -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        bail!("a person approves at a terminal; say --yes where one has looked at the plan above");
    }
    show::note("type yes to let the arm move");
    let mut said = String::new();
    std::io::stdin().lock().read_line(&mut said)?;
    Ok(said.trim().eq_ignore_ascii_case("yes"))
}
