//! State of an arm, for a page that follows it.

use serde::Serialize;

use super::AttachedArm;
use super::motion_job::refresh_card;

/// The current or last job of an arm.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LiveJob {
    /// Its name, unique on this node.
    pub id: String,
    /// The tool that began it.
    pub tool: String,
    /// The scene that it moves in.
    pub scene: String,
    /// `accepted`, `planning`, `moving`, `held`, then `reached`, `deviated`, `stopped`, `refused`, `faulted`.
    pub state: &'static str,
    /// Strokes or points done.
    pub done: usize,
    /// Total number of items.
    pub of: usize,
    /// Time left, by the plan.
    pub eta_s: f64,
    /// Arm time that has passed.
    pub done_s: f64,
    /// Arm time of all motions that are planned so far.
    pub total_s: f64,
    /// True while its plan waits for a person's approval.
    pub awaits_approval: bool,
    /// True if it has ended.
    pub is_over: bool,
    /// Progress or outcome, in words.
    pub words: String,
}

impl AttachedArm {
    /// Returns the current or last job, updated to what the arm is doing.
    #[must_use]
    pub fn live_job(&self) -> Option<LiveJob> {
        let job = self.board.job()?;
        refresh_card(self, &job);
        let card = job.card();
        let outcome = job.outcome.get().map(|reply| reply.text.clone());
        Some(LiveJob {
            done_s: card.done_s(),
            total_s: card.total_s(),
            awaits_approval: card.awaits_approval,
            is_over: outcome.is_some(),
            words: outcome.unwrap_or_else(|| card.progress_text()),
            id: card.id,
            tool: card.tool,
            scene: card.scene,
            state: card.state,
            done: card.done,
            of: card.of,
            eta_s: card.left_s.unwrap_or_default(),
        })
    }
}
