//! Motions that outlast their call: what is being done, how far it is, how it ended.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::watch;

use super::reply::Reply;
use super::{AttachedArm, Node};
use base::lock::MutexExt;
use base::units::ClockInstant;

/// The same call within this time of a job's end returns that job.
const REMEMBERED: Duration = Duration::from_secs(120);

/// A job that was stopped has ended by then: its arm stands, and that is in its journal.
const STOPPED_WITHIN: Duration = Duration::from_secs(10);

/// A job as results show it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct JobCard {
    /// Its name, unique on this node.
    pub(super) id: String,
    /// The tool that began it.
    pub(super) tool: String,
    /// The scene that it moves in.
    pub(super) scene: String,
    /// The drawing of a queue that it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ticket: Option<String>,
    /// `accepted`, `planning`, `moving`, `held`, `waiting_for_pen`, then `reached`, `stopped`, `refused`, `faulted`.
    pub(super) state: &'static str,
    /// Strokes or points done: planned ones while they are planned, drawn ones from then on.
    pub(super) done: usize,
    /// Total number of items.
    pub(super) of: usize,
    /// Strokes done by earlier motions of the job.
    #[serde(skip)]
    pub(super) done_before: usize,
    /// The pen or the person that it waits for, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) waits_for: Option<String>,
    /// True while it waits at a pause, where no pen has to be put in.
    #[serde(skip)]
    pub(super) pauses: bool,
    /// Time left of its motion under way, by the plan.
    #[serde(skip)]
    pub(super) eta_s: f64,
    /// Time left of all of it; absent while not all of it is planned.
    #[serde(rename = "eta_s", skip_serializing_if = "Option::is_none")]
    pub(super) left_s: Option<f64>,
    /// True while motions follow the one under way.
    #[serde(skip)]
    pub(super) has_later_motions: bool,
    /// True while its motion does none of what is counted.
    #[serde(skip)]
    pub(super) is_uncounted: bool,
    /// Arm time of its motion under way, by the plan; 0 before one is planned.
    #[serde(skip)]
    pub(super) motion_s: f64,
    /// Arm time of its motions before that one.
    #[serde(skip)]
    pub(super) earlier_s: f64,
    /// True while a plan of it waits for a person's approval.
    #[serde(skip)]
    pub(super) awaits_approval: bool,
    /// Name of the caller, for other callers that find the arm busy.
    #[serde(skip)]
    pub(super) caller: String,
}

/// A job.
pub(super) struct ArmJob {
    /// Identity of the call, to recognise a repeated one.
    key: String,
    /// Stops asked for before it.
    seen_stops: u64,
    card: Mutex<JobCard>,
    reply: watch::Sender<Option<Arc<Reply>>>,
    ended: Mutex<Option<ClockInstant>>,
    /// True if at least one of its motions was carried out, wholly or in part.
    has_moved: AtomicBool,
}

/// An arm's present or last job.
#[derive(Default)]
pub(super) struct JobBoard(Mutex<Option<Arc<ArmJob>>>);

/// Result of a call's claim on the arm's job board.
pub(super) enum JobClaim {
    /// The arm is free, and the job is on the board now.
    Mine(Arc<ArmJob>),
    /// The same call was made already.
    Same(Arc<ArmJob>),
    /// Another job is under way.
    Busy(Box<JobCard>),
}

impl ArmJob {
    pub(super) fn card(&self) -> JobCard {
        let card = self.card.locked().clone();
        JobCard {
            left_s: card.left_s(),
            ..card
        }
    }

    pub(super) fn update(&self, change: impl FnOnce(&mut JobCard)) {
        change(&mut self.card.locked());
    }

    /// Ends the job with its answer.
    pub(super) fn end(&self, state: &'static str, reply: Reply, now: ClockInstant) {
        self.update(|card| {
            card.state = state;
            card.eta_s = 0.0;
            card.has_later_motions = false;
        });
        *self.ended.locked() = Some(now);
        self.reply.send_replace(Some(Arc::new(reply)));
    }

    /// The answer, when there is one.
    pub(super) async fn reply(&self) -> Option<Arc<Reply>> {
        let mut replies = self.reply.subscribe();
        replies
            .wait_for(Option::is_some)
            .await
            .ok()
            .and_then(|reply| reply.clone())
    }

    /// Remembers that the arm moved for it.
    pub(super) fn moved(&self) {
        self.has_moved.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_moved(&self) -> bool {
        self.has_moved.load(Ordering::Relaxed)
    }

    pub(super) fn is_over(&self) -> bool {
        self.reply.borrow().is_some()
    }

    /// The answer's words, once there is one.
    pub(super) fn outcome_text(&self) -> Option<String> {
        let reply = self.reply.borrow();
        reply.as_ref().map(|reply| reply.text.clone())
    }

    /// Returns whether it is coming to its end because of a stop; `stops` are all that were asked for.
    fn is_being_stopped(&self, stops: u64) -> bool {
        !self.is_over() && stops > self.seen_stops
    }

    fn is_remembered(&self, now: ClockInstant) -> bool {
        let ended = *self.ended.locked();
        ended.is_none_or(|ended| now.since(ended) < REMEMBERED)
    }

    fn succeeded(&self) -> bool {
        self.reply
            .borrow()
            .as_ref()
            .is_some_and(|reply| !reply.is_error)
    }
}

impl Node {
    /// Waits until every arm's job has ended and is in its journal, and every emergency stop is on the disk. A process
    /// that exited earlier would leave an unfinished job. Returns `false` if a job takes longer than `within`.
    pub async fn wait_until_idle(&self, within: Duration) -> bool {
        let mut all = true;
        for seat in &self.seats {
            if let Some(job) = seat.board.job() {
                all &= tokio::time::timeout(within, job.reply()).await.is_ok();
            }
            if let Err(why) = seat.permits().emergency_is_kept().await {
                tracing::error!(arm = seat.name, "the emergency stop is not kept: {why}");
            }
        }
        all
    }
}

impl AttachedArm {
    /// Waits until a job that was stopped has come to its end, so that `reset` may follow a stop at once. Any other job is not
    /// waited for.
    pub(super) async fn wait_for_stopped_job(&self) {
        let stops = self.motion.stops_requested();
        let stopped = self.board.job().filter(|job| job.is_being_stopped(stops));
        if let Some(job) = stopped {
            let _ = tokio::time::timeout(STOPPED_WITHIN, job.reply()).await;
        }
    }
}

impl JobBoard {
    /// Puts a new job up, unless the arm is busy or the same call is known. `again` asks for a
    /// new one though the last was the same.
    pub(super) fn claim(
        &self,
        key: String,
        card: impl FnOnce() -> JobCard,
        again: bool,
        now: ClockInstant,
        seen_stops: u64,
    ) -> JobClaim {
        let mut board = self.0.locked();
        if let Some(job) = board.as_ref() {
            let same = job.key == key;
            match (job.is_over(), same) {
                (false, true) => return JobClaim::Same(Arc::clone(job)),
                (false, false) => return JobClaim::Busy(Box::new(job.card())),
                (true, true) if !again && job.is_remembered(now) && job.succeeded() => {
                    return JobClaim::Same(Arc::clone(job));
                }
                _ => {}
            }
        }
        let job = Arc::new(ArmJob {
            key,
            seen_stops,
            card: Mutex::new(card()),
            reply: watch::Sender::new(None),
            ended: Mutex::default(),
            has_moved: AtomicBool::new(false),
        });
        *board = Some(Arc::clone(&job));
        JobClaim::Mine(job)
    }

    /// The present or last job.
    pub(super) fn job(&self) -> Option<Arc<ArmJob>> {
        self.0.locked().clone()
    }
}
