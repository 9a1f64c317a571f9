//! Prompts for the pen that a drawing waits for, at the terminal of the command that draws: a person puts it in and presses
//! y. A simulated arm of this process needs no hand.

use serde::Deserialize as _;

use super::operator_door::OperatorDoor;
use super::stop_keys::StopKeyListener;
use super::terminal_output;
use node::operator_verb::OperatorVerb;
use tools::AwaitedPen;

/// The pen that was last asked for.
#[derive(Default)]
pub(super) struct PenPrompt {
    awaited: Option<AwaitedPen>,
}

impl PenPrompt {
    /// Checks whether a job waits for a pen, and asks once for each. A y that was pressed before that answers nothing.
    pub(super) async fn poll(
        &mut self,
        door: &OperatorDoor,
        job: Option<&str>,
        keys: &mut StopKeyListener,
    ) {
        let verb = OperatorVerb::Pen {
            job: job.map(str::to_owned),
            confirmed: None,
        };
        let data = door.ask(verb).await.ok().and_then(|reply| reply.data);
        let awaited = data.and_then(|data| AwaitedPen::deserialize(data).ok());
        if awaited == self.awaited {
            return;
        }
        self.awaited = awaited;
        let Some(awaited) = self.awaited.clone() else {
            return;
        };
        let is_own = door.own().is_some();
        keys.forget_confirmation();
        terminal_output::note(&prompt(&awaited, keys.is_heard(), is_own));
        if awaited.is_simulated && is_own {
            self.confirm(door).await;
        }
    }

    /// Confirms the pen that was asked for, if any.
    pub(super) async fn confirm(&mut self, door: &OperatorDoor) {
        let Some(awaited) = &self.awaited else {
            return;
        };
        let verb = OperatorVerb::Pen {
            job: Some(awaited.job.clone()),
            confirmed: Some(awaited.pen),
        };
        match door.ask(verb).await {
            Ok(reply) => terminal_output::note(&reply.text),
            Err(error) => terminal_output::note(&format!("the pen was not confirmed: {error:#}")),
        }
    }
}

/// Returns the text that names the awaited pen and what a person must do.
fn prompt(awaited: &AwaitedPen, has_keys: bool, is_own: bool) -> String {
    let AwaitedPen { job, words, .. } = awaited;
    let put_in = match awaited.is_pause {
        true => "",
        false => "put it into the holder, ",
    };
    if awaited.is_simulated && is_own {
        return match awaited.is_pause {
            true => {
                format!(
                    "{job} paused for {words}; a simulated arm needs no person, so the job continues"
                )
            }
            false => format!("the simulated arm takes {words}"),
        };
    }
    if has_keys {
        format!("{job} waits for {words}: {put_in}take your hands away, then press y (q stops)")
    } else if is_own {
        format!(
            "{job} waits for {words}, but there is no terminal to confirm it. Next: run this command at a terminal"
        )
    } else {
        format!("{job} waits for {words}; {}", awaited.how())
    }
}
