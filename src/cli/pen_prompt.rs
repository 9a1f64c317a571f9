//! The pen that a drawing waits for, at the terminal of the command that draws: a person puts it in and presses y; on a
//! simulated arm of this process no hand is needed.

use serde::Deserialize as _;

use super::operator_door::OperatorDoor;
use super::terminal_output;
use node::control_socket::OperatorVerb;
use tools::AwaitedPen;

/// Pens that a command was asked for.
#[derive(Default)]
pub(super) struct PenPrompt {
    awaited: Option<AwaitedPen>,
}

impl PenPrompt {
    /// Looks whether a job waits for a pen, and asks once for each. `has_keys` is true where a person can press y.
    pub(super) async fn look(&mut self, door: &OperatorDoor, job: Option<&str>, has_keys: bool) {
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
        let Some(AwaitedPen {
            job,
            words,
            is_simulated,
            ..
        }) = self.awaited.clone()
        else {
            return;
        };
        let is_own = door.own().is_some();
        if is_simulated && is_own {
            terminal_output::note(&format!("the simulated arm takes {words}"));
            self.confirm(door).await;
        } else if has_keys {
            terminal_output::note(&format!(
                "{job} waits for {words}: put it into the holder, take your hands away, then press y; q stops"
            ));
        } else if is_own {
            terminal_output::note(&format!(
                "{job} waits for {words}, and no terminal is here to confirm it: run this command at one"
            ));
        } else {
            terminal_output::note(&format!(
                "{job} waits for {words}: `steadyhand pen {job}` confirms it"
            ));
        }
    }

    /// Confirms the pen that was asked for; without one, nothing.
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
