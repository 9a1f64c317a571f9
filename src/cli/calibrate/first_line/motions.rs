//! The steps of the guide in which the arm moves, with a person's leave.

use std::time::Duration;

use anyhow::Context;
use base::task::pause;
use node::operator_verb::{OperatorVerb, VerbReply};
use scene::ToolKind;
use serde::Deserialize as _;
use tools::JobProgress;

use super::super::operator_input::OperatorAnswer;
use super::{AGAIN, Guide, StepEnd, not_needed};
use crate::{AtArgs, ExitStatus, operator_client, terminal_output, watch};

/// Leave that the guide asks for; it ends by itself.
const LEAVE: Duration = Duration::from_secs(1800);

/// Interval between questions about a motion under way.
const EVERY: Duration = Duration::from_millis(200);

/// Interval between lines that say how far a motion is.
const NEWS_EVERY: Duration = Duration::from_secs(5);

impl Guide<'_> {
    pub(super) async fn enable(&mut self) -> anyhow::Result<StepEnd> {
        let question = format!(
            "the arm may then move in scene {} for 30 minutes: take your hands away, and keep one at the switch of the servos' supply.",
            self.scene
        );
        if !self.person.confirm(&question, false).await? {
            return Ok(StepEnd::Left);
        }
        let (_, scene) = self.folders().await?;
        let verb = OperatorVerb::Enable {
            scene: self.scene.clone(),
            meta: None,
            for_s: Some(LEAVE.as_secs()),
            arm: None,
        };
        let told = operator_client::ask(&self.at, &verb).await?;
        if terminal_output::reply(&told) != ExitStatus::Done {
            return Ok(self.again_or_leave(AGAIN).await);
        }
        self.enabled = Some(scene.revision);
        Ok(StepEnd::Done)
    }

    /// Asks for leave anew where the scene is another one than that which was enabled, or a motion was refused since.
    async fn may_move(&mut self) -> anyhow::Result<StepEnd> {
        let (_, scene) = self.folders().await?;
        if self.enabled == Some(scene.revision) {
            return Ok(StepEnd::Done);
        }
        terminal_output::line(
            "leave is asked for again: it is for a scene as it is, and for 30 minutes",
        );
        self.enable().await
    }

    pub(super) async fn align(&mut self) -> anyhow::Result<StepEnd> {
        let end = self.moves(self.align_verb(false, None)).await?;
        let (folders, _) = self.folders().await?;
        // A camera that sees the sheet elsewhere has it proposed, and no cross is drawn.
        let is_seen = folders
            .store
            .proposal()?
            .is_some_and(|session| session.seen.is_some());
        if end != StepEnd::Done || !is_seen {
            return Ok(end);
        }
        match self.accept().await? {
            StepEnd::Done => Ok(StepEnd::Again),
            other => Ok(other),
        }
    }

    /// Returns the verb that aligns in the scene of the guide: with the arm, or by what a person read of the cross.
    pub(super) fn align_verb(&self, touch: bool, measured_mm: Option<[f64; 2]>) -> OperatorVerb {
        OperatorVerb::Align {
            scene: self.scene.clone(),
            touch,
            ink: false,
            measured_mm,
        }
    }

    /// Has the arm feel for the sheet, where it can: first how it sags, where its file does not know of that.
    pub(super) async fn feel(&mut self) -> anyhow::Result<StepEnd> {
        let (_, scene) = self.folders().await?;
        let is_needle = scene.pen(0).is_some_and(|pen| pen.kind == ToolKind::Needle);
        if is_needle || !scene.surface.is_flat() {
            return not_needed(
                "  left out: an arm feels for a flat sheet, and with a pen; it draws where the touches by hand put the sheet",
            );
        }
        loop {
            let end = self.moves(self.align_verb(true, None)).await?;
            if end != StepEnd::Done {
                return Ok(end);
            }
            let (folders, _) = self.folders().await?;
            let is_felt = folders.proposal()?.probed;
            let end = self.accept().await?;
            if end != StepEnd::Done || is_felt {
                return Ok(end);
            }
        }
    }

    pub(super) async fn line(&mut self) -> anyhow::Result<StepEnd> {
        let scene = self.scene.clone();
        self.moves(OperatorVerb::FirstInk { scene }).await
    }

    /// Has the node move with a person's leave, and follows it to its end; Enter and Ctrl-C stop the arm.
    async fn moves(&mut self, verb: OperatorVerb) -> anyhow::Result<StepEnd> {
        match self.may_move().await? {
            StepEnd::Done => {}
            other => return Ok(other),
        }
        terminal_output::note("it moves; Enter or Ctrl-C stops it");
        let at = self.at.clone();
        let mut asked = std::pin::pin!(moved(&at, &verb));
        let told = loop {
            tokio::select! {
                told = &mut asked => break told?,
                () = pause(NEWS_EVERY) => {
                    let seen = operator_client::ask(&at, &OperatorVerb::Progress { job: None });
                    terminal_output::note(&seen.await?.text);
                }
                said = self.person.next_input() => {
                    let stopped = operator_client::ask(&at, &OperatorVerb::Stop).await?;
                    terminal_output::line(&stopped.text);
                    if said == OperatorAnswer::End {
                        // Nobody is there to say anything more.
                        break asked.await?;
                    }
                }
            }
        };
        if terminal_output::reply(&told) == ExitStatus::Done {
            return Ok(StepEnd::Done);
        }
        self.enabled = None;
        let words = "see to that (after a stop: `steadyhand reset`), and press Enter to try again, or write q to leave";
        Ok(self.again_or_leave(words).await)
    }
}

/// Waits for the end of a motion, beyond the first answer where that says that it goes on.
pub(in super::super) async fn moved(at: &AtArgs, verb: &OperatorVerb) -> anyhow::Result<VerbReply> {
    let told = operator_client::ask(at, verb).await?;
    let job = told.data.as_ref().and_then(|data| data.pointer("/job/id"));
    let Some(job) = job.and_then(|id| id.as_str()) else {
        return Ok(told);
    };
    let progress = OperatorVerb::Progress {
        job: Some(job.to_owned()),
    };
    let mut has_gone_on = false;
    loop {
        let seen = operator_client::ask(at, &progress).await?;
        let data = seen.data.with_context(|| seen.text.clone())?;
        let seen = JobProgress::deserialize(data).context("the node is of another version")?;
        if seen.is_over {
            return Ok(match has_gone_on {
                false => told,
                true => VerbReply {
                    done: watch::exit_of(&seen) == ExitStatus::Done,
                    ..VerbReply::done(seen.words)
                },
            });
        }
        has_gone_on = true;
        pause(EVERY).await;
    }
}
