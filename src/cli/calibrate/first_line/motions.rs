//! The steps of the guide in which the arm moves, with a person's permission.

use std::time::Duration;

use anyhow::Context;
use base::task::pause;
use node::operator_verb::{AlignRequest, OperatorVerb, VerbReply};
use scene::ToolKind;
use serde::Deserialize as _;
use tools::JobProgress;

use super::super::operator_input::OperatorAnswer;
use super::{Guide, RETRY_PROMPT, StepEnd, not_needed};
use crate::{AtArgs, ExitStatus, operator_client, terminal_output, watch};

/// Duration of the permission that the guide asks for.
const PERMISSION: Duration = Duration::from_secs(1800);

/// Interval at which a motion under way is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Interval between progress reports of a motion.
const REPORT_INTERVAL: Duration = Duration::from_secs(5);

impl Guide<'_> {
    pub(super) async fn enable(&mut self) -> anyhow::Result<StepEnd> {
        let question = format!(
            "this enables motion in scene {} for 30 minutes. Take your hands away from the arm, and keep one at the switch of the servos' supply.",
            self.scene
        );
        if !self.person.confirm(&question, false).await? {
            return Ok(StepEnd::Left);
        }
        let (_, scene) = self.folders().await?;
        let verb = OperatorVerb::Enable {
            scene: self.scene.clone(),
            meta: None,
            for_s: Some(PERMISSION.as_secs()),
            arm: self.arm.clone(),
        };
        let reply = operator_client::ask(&self.at, &verb).await?;
        if terminal_output::reply(&reply) != ExitStatus::Done {
            return Ok(self.again_or_leave(RETRY_PROMPT).await);
        }
        self.enabled = Some(scene.revision);
        Ok(StepEnd::Done)
    }

    /// Asks for permission again if the scene has changed since it was enabled, or a motion was refused since.
    async fn ensure_enabled(&mut self) -> anyhow::Result<StepEnd> {
        let (_, scene) = self.folders().await?;
        if self.enabled == Some(scene.revision) {
            return Ok(StepEnd::Done);
        }
        terminal_output::line(
            "motion must be enabled again: the scene has changed since, or the last motion did not succeed",
        );
        self.enable().await
    }

    pub(super) async fn align(&mut self) -> anyhow::Result<StepEnd> {
        let end = self.move_and_follow(self.align_verb(false, None)).await?;
        let (folders, _) = self.folders().await?;
        // If a camera sees the sheet elsewhere, its place is proposed and no cross is drawn.
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

    /// Returns the verb that aligns in the guide's scene: with the arm, or by a person's reading of the cross.
    pub(super) fn align_verb(&self, touch: bool, measured_mm: Option<[f64; 2]>) -> OperatorVerb {
        OperatorVerb::Align(AlignRequest {
            scene: self.scene.clone(),
            touch,
            ink: false,
            measured_mm,
            arm: self.arm.clone(),
        })
    }

    /// Has the arm feel for the sheet, if it can. If its file lacks its sag, it measures that first.
    pub(super) async fn feel(&mut self) -> anyhow::Result<StepEnd> {
        let (_, scene) = self.folders().await?;
        let is_needle = scene.pen(0).is_some_and(|pen| pen.kind == ToolKind::Needle);
        if is_needle || !scene.surface.is_flat() {
            return not_needed(
                "  skipped: the arm can feel only a flat sheet, and only with a pen. The sheet's place stays as you touched it",
            );
        }
        loop {
            let end = self.move_and_follow(self.align_verb(true, None)).await?;
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
        let (scene, arm) = (self.scene.clone(), self.arm.clone());
        let verb = OperatorVerb::FirstInk { scene, arm };
        self.move_and_follow(verb).await
    }

    /// Has the node move with a person's permission, and follows the motion to its end; Enter and Ctrl-C stop the arm.
    async fn move_and_follow(&mut self, verb: OperatorVerb) -> anyhow::Result<StepEnd> {
        match self.ensure_enabled().await? {
            StepEnd::Done => {}
            other => return Ok(other),
        }
        terminal_output::note("the arm moves; Enter or Ctrl-C stops it");
        let at = self.at.clone();
        let mut motion = std::pin::pin!(move_to_end(&at, &verb));
        let reply = loop {
            tokio::select! {
                reply = &mut motion => break reply?,
                () = pause(REPORT_INTERVAL) => {
                    let progress = operator_client::ask(&at, &OperatorVerb::Progress { job: None });
                    terminal_output::note(&progress.await?.text);
                }
                input = self.person.next_input() => {
                    let stop_reply = operator_client::ask(&at, &OperatorVerb::Stop).await?;
                    terminal_output::line(&stop_reply.text);
                    if input == OperatorAnswer::End {
                        // Nobody is there any more.
                        break motion.await?;
                    }
                }
            }
        };
        if terminal_output::reply(&reply) == ExitStatus::Done {
            return Ok(StepEnd::Done);
        }
        self.enabled = None;
        let prompt = "correct that (after a stop: `steadyhand reset`) and press Enter to try again, or type q to quit";
        Ok(self.again_or_leave(prompt).await)
    }
}

/// Moves and waits for the end of the motion, even if the first answer says that it continues.
pub(in super::super) async fn move_to_end(
    at: &AtArgs,
    verb: &OperatorVerb,
) -> anyhow::Result<VerbReply> {
    let reply = operator_client::ask(at, verb).await?;
    let job = reply.data.as_ref().and_then(|data| data.pointer("/job/id"));
    let Some(job) = job.and_then(|id| id.as_str()) else {
        return Ok(reply);
    };
    let progress = OperatorVerb::Progress {
        job: Some(job.to_owned()),
    };
    let mut has_continued = false;
    loop {
        let progress = operator_client::ask(at, &progress).await?;
        let data = progress.data.with_context(|| progress.text.clone())?;
        let progress =
            JobProgress::deserialize(data).context("the node has a different version")?;
        if progress.is_over {
            return Ok(match has_continued {
                false => reply,
                true => VerbReply {
                    done: watch::exit_of(&progress) == ExitStatus::Done,
                    ..VerbReply::done(progress.words)
                },
            });
        }
        has_continued = true;
        pause(POLL_INTERVAL).await;
    }
}
