//! Motions that no caller asked for: the node parks an arm that is left alone or too hot, and measures
//! how its arms stop. They are jobs like all others, journalled before they move.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::job_board::{ArmJob, JobCard, JobClaim, JobKey, JobOrigin};
use super::motion_job::{JobContext, JobError, accepted_job};
use super::reply::Reply;
use super::team::TeamSeat;
use super::tool_filter::ENDING;
use super::{AttachedArm, Node, calibration_check, journal_entries};
use call::{ArrivalStamp, Refusal, refusal};
use job::AcceptedJob;
use motion::StopReport;
use permit::{ActorRank, MotionPermit};
use plan::Plan;
use scene::Scene;

/// Longest wait for the journal of the arm's last job to be complete.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(2);

/// Interval between checks of that journal.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Caller name of such a job in its journal.
const CALLER: &str = "the node";

/// A job of the node's own, under way.
pub struct NodeJob(JobContext);

/// Reason for a motion that did not reach its end.
pub struct IncompleteMotion {
    /// The stop that ended it.
    pub stop: Option<StopReport>,
    /// State of the job in the journal.
    pub state: &'static str,
    /// In words.
    pub why: Refusal,
}

impl NodeJob {
    /// Begins a job, as soon as the arm's last one has ended. `arrived` is of the message that asks for it; `None` if the node does.
    ///
    /// # Errors
    /// The arm's file has other zeros than it was attached with, another job is under way, the message was given up, the node
    /// ends and a message asks for it, or it cannot be journalled.
    pub async fn begin(
        node: &Arc<Node>,
        arm: &Arc<AttachedArm>,
        tool: &str,
        scene: &Scene,
        (seen_stops, arrived): (u64, Option<&ArrivalStamp>),
    ) -> Result<Self, Refusal> {
        calibration_check::check_same_zeros(arm, scene)?;
        if arrived.is_some() && node.is_ending() {
            return Err(Refusal::new(ENDING));
        }
        let accepted = AcceptedJob {
            id: node.job_store.next_id(),
            ..accepted_job(tool, arm, scene, CALLER)
        };
        let card = JobCard::accepted(&accepted, scene.title());
        let job = claim_board(arm, &card, arrived).await?;
        if let Err(reason) = job.check_wanted() {
            let reply = Reply::failed(reason.to_string());
            job.end("refused", reply, arm.motion.clock().now());
            return Err(reason);
        }
        let (node, arm) = (Arc::clone(node), Arc::clone(arm));
        match journal_entries::begin(&node, accepted).await {
            Ok(entry) => Ok(Self(JobContext {
                node,
                arm,
                job,
                entry,
                who: ActorRank::Node,
                seen_stops,
                team: TeamSeat::alone(),
                has_checked_sheet: AtomicBool::new(false),
            })),
            Err(error) => {
                let now = arm.motion.clock().now();
                job.end("refused", Reply::failed(error.to_string()), now);
                Err(error.into())
            }
        }
    }

    /// Carries a plan out to its end, unless a stop comes that was not seen before.
    ///
    /// # Errors
    /// The reason why it did not reach its end.
    pub async fn run(
        &self,
        scene: &Arc<Scene>,
        permit: MotionPermit,
        plan: &Plan,
    ) -> Result<(), IncompleteMotion> {
        match self.0.run(scene, permit, plan).await {
            Ok(_) => Ok(()),
            Err(JobError::Stopped(report, ..)) => Err(IncompleteMotion {
                stop: Some(*report),
                state: "stopped",
                why: refusal!("it was stopped before its end"),
            }),
            Err(error) => {
                let (state, reply) = error.reply();
                Err(IncompleteMotion {
                    stop: None,
                    state,
                    why: Refusal::new(reply.text),
                })
            }
        }
    }

    /// Marks these stops as seen.
    pub fn has_seen(&mut self, stops: u64) {
        self.0.seen_stops = stops;
    }

    /// Ends the job, in its journal first.
    pub async fn end(self, state: &'static str, words: String) {
        let (arm, entry) = (&self.0.arm, &self.0.entry);
        let reply = match state {
            "reached" => Reply::done(words),
            _ => Reply::failed(words),
        };
        let reply = reply.with("arm", arm.title());
        journal_entries::end(&self.0.node, entry, state, &reply).await;
        self.0.job.end(state, reply, arm.motion.clock().now());
    }
}

/// Claims the arm's job board, which becomes free moments after the arm stands.
async fn claim_board(
    arm: &AttachedArm,
    card: &JobCard,
    arrived: Option<&ArrivalStamp>,
) -> Result<Arc<ArmJob>, Refusal> {
    let card_of_job = || card.clone();
    let tries = CLAIM_TIMEOUT.as_millis() / POLL_INTERVAL.as_millis();
    for _ in 0..tries {
        let now = arm.motion.clock().now();
        let key = JobKey {
            work: card.id.clone(),
            plan: None,
        };
        let origin = JobOrigin {
            who: ActorRank::Node,
            caller: CALLER.to_owned(),
            seen_stops: arm.motion.stops_requested(),
            arrived: arrived.cloned(),
        };
        let claim = arm.board.claim(key, card_of_job, true, now, origin);
        match claim {
            JobClaim::Mine(job) | JobClaim::Same(job) => return Ok(job),
            JobClaim::Busy(_) => base::task::pause(POLL_INTERVAL).await,
        }
    }
    Err(refusal!("it is busy with another job"))
}
