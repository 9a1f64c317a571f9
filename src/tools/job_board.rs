//! Jobs that may outlast their call: their activity, progress and outcome.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::SetOnce;

use super::motion_job::MotionJobRequest;
use super::pictures::FILES_LOST;
use super::reply::{Reply, refused};
use super::stop_cause::StopCause;
use super::tool_filter::ENDING;
use super::{AttachedArm, Node};
use base::lock::MutexExt;
use base::units::ClockInstant;
use call::{ArrivalStamp, Refusal, is_same_caller, refusal};
use job::AcceptedJob;
use permit::ActorRank;

/// The same call by the same caller within this time of a job's end returns that job.
pub(super) const REMEMBERED: Duration = Duration::from_secs(120);

/// Time within which a stopped job ends: its arm stands, and its journal says so.
const STOPPED_WITHIN: Duration = Duration::from_secs(10);

/// Longest wait of an operator's call for a job that has not moved yet.
const OPERATOR_WAIT: Duration = Duration::from_secs(2);

/// A job as results show it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct JobCard {
    /// Its name, unique on this node.
    pub(super) id: String,
    /// The tool that began it.
    pub(super) tool: String,
    /// The scene that it moves in.
    pub(super) scene: String,
    /// The drawing of a queue that it draws.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ticket: Option<String>,
    /// `accepted`, `planning`, `moving`, `held`, `waiting_for_pen`, then `reached`, `deviated`, `stopped`, `refused`, `faulted`.
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
    /// Time left of the motion under way, by the plan.
    #[serde(skip)]
    pub(super) eta_s: f64,
    /// Time left of all of it; absent while not all of it is planned.
    #[serde(rename = "eta_s", skip_serializing_if = "Option::is_none")]
    pub(super) left_s: Option<f64>,
    /// True while motions follow the one under way.
    #[serde(skip)]
    pub(super) has_later_motions: bool,
    /// True while its motion does nothing that is counted.
    #[serde(skip)]
    pub(super) is_uncounted: bool,
    /// Arm time of the motion under way, by the plan; 0 before one is planned.
    #[serde(skip)]
    pub(super) motion_s: f64,
    /// Arm time of its motions before that one.
    #[serde(skip)]
    pub(super) earlier_s: f64,
    /// True while one of its plans waits for a person's approval.
    #[serde(skip)]
    pub(super) awaits_approval: bool,
    /// Name of the caller, for other callers that find the arm busy.
    #[serde(skip)]
    pub(super) caller: String,
    /// Hash of the plan that it carries out, once there is one.
    #[serde(skip)]
    pub(super) plan_hash: Option<String>,
    /// What it waits for, and who lets it go on; set by `sense`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
}

impl JobCard {
    /// Returns the card of a job that was accepted, in the scene of this title.
    pub(super) fn accepted(accepted: &AcceptedJob, scene: String) -> Self {
        Self {
            id: accepted.id.clone(),
            tool: accepted.tool.clone(),
            scene,
            state: "accepted",
            caller: accepted.caller.clone(),
            ticket: Some(accepted.ticket.clone()).filter(|ticket| !ticket.is_empty()),
            ..Self::default()
        }
    }
}

/// The answer of a job or a sequence, once it has ended, and when that was.
pub(super) struct CallOutcome<T>(SetOnce<(Reply, T)>);

impl<T> Default for CallOutcome<T> {
    fn default() -> Self {
        Self(SetOnce::new())
    }
}

impl<T> CallOutcome<T> {
    /// Ends it with its answer. Only the first answer counts.
    pub(super) fn end(&self, reply: Reply, at: T) {
        let _ = self.0.set((reply, at));
    }

    /// Waits for the answer.
    pub(super) async fn reply(&self) -> &Reply {
        &self.0.wait().await.0
    }

    /// Returns the answer, if there is one.
    pub(super) fn get(&self) -> Option<&Reply> {
        self.0.get().map(|(reply, _)| reply)
    }

    /// Returns when it ended, if it succeeded.
    pub(super) fn succeeded_at(&self) -> Option<&T> {
        // What was done without its files was done.
        let is_done = |reply: &Reply| !reply.is_error || reply.code() == Some(FILES_LOST);
        let ended = self.0.get().filter(|(reply, _)| is_done(reply));
        ended.map(|(_, at)| at)
    }

    /// Answers the same call made again moments after the end: nothing is done twice.
    pub(super) async fn done_before(&self, hint: &str) -> Reply {
        done_before(self.reply().await.clone(), hint)
    }
}

/// Returns the answer to a call that was done moments ago, from the answer of that time.
pub(super) fn done_before(reply: Reply, hint: &str) -> Reply {
    let message = format!(
        "this was already carried out and is not repeated: {}",
        reply.text
    );
    reply.reworded(message).with("moved", false).hint(hint)
}

/// Identity of a call, to recognise a repeated one however it is spelled.
#[derive(Clone, Debug)]
pub(super) struct JobKey {
    /// The same text for the same work in the same scene.
    pub(super) work: String,
    /// Hash of the only plan that the call allows.
    pub(super) plan: Option<String>,
}

/// Origin of a job: its caller with its rank, and the message.
#[derive(Clone, Debug)]
pub(super) struct JobOrigin {
    pub(super) who: ActorRank,
    /// Key of the caller.
    pub(super) caller: String,
    /// Number of stops requested before it.
    pub(super) seen_stops: u64,
    /// The message that asks for it; `None` if the node does.
    pub(super) arrived: Option<ArrivalStamp>,
}

/// A job.
pub(super) struct ArmJob {
    key: JobKey,
    origin: JobOrigin,
    card: Mutex<JobCard>,
    pub(super) outcome: CallOutcome<ClockInstant>,
    /// True if at least one of its motions was carried out, wholly or in part.
    has_moved: AtomicBool,
}

/// An arm's current or last job.
#[derive(Default)]
pub(super) struct JobBoard(Mutex<Option<Arc<ArmJob>>>);

/// Result of a call's claim on the arm's job board.
pub(super) enum JobClaim {
    /// The arm is free, and the job is on the board now.
    Mine(Arc<ArmJob>),
    /// The same call was made already.
    Same(Arc<ArmJob>),
    /// Another job is under way.
    Busy(Arc<ArmJob>),
}

impl ArmJob {
    /// Returns the number in its name.
    pub(super) fn number(&self) -> u64 {
        job::job_number(&self.card.locked().id).unwrap_or_default()
    }

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
        self.outcome.end(reply, now);
    }

    /// Remembers that the arm moved for it.
    pub(super) fn set_moved(&self) {
        self.has_moved.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_moved(&self) -> bool {
        self.has_moved.load(Ordering::Relaxed)
    }

    pub(super) fn is_over(&self) -> bool {
        self.outcome.get().is_some()
    }

    /// Waits for its end until a moment; returns whether it has ended.
    async fn ends_until(&self, until: tokio::time::Instant) -> bool {
        let ended = tokio::time::timeout_at(until, self.outcome.reply());
        ended.await.is_ok()
    }

    /// Returns whether nothing has moved for it yet; what it waits for may still refuse it.
    pub(super) fn is_beginning(&self) -> bool {
        !self.has_moved() && matches!(self.card.locked().state, "accepted" | "planning")
    }

    fn is_of(&self, arrived: &ArrivalStamp) -> bool {
        let own = self.origin.arrived.as_ref();
        own.is_some_and(|own| own.is_of_same_message(arrived))
    }

    /// Refuses to go on if the sender of the message that asks for it has gone. Called once it is on the board: a sender that goes
    /// later finds it there, and stops it.
    pub(super) fn check_wanted(&self) -> Result<(), Refusal> {
        let arrived = self.origin.arrived.as_ref();
        match arrived.is_some_and(ArrivalStamp::is_given_up) {
            true => Err(refusal!(
                "the client disconnected before the motion started. Next: call again"
            )),
            false => Ok(()),
        }
    }

    /// Returns whether it is ending because of a stop; `stops` counts all stops requested so far.
    fn is_being_stopped(&self, stops: u64) -> bool {
        !self.is_over() && stops > self.origin.seen_stops
    }

    /// Returns whether it does what a call of this identity asks for.
    fn is_same(&self, key: &JobKey) -> bool {
        let planned = self.card.locked().plan_hash.clone();
        let plan = planned.as_ref().or(self.key.plan.as_ref());
        self.key.work == key.work && (key.plan.is_none() || key.plan.as_ref() == plan)
    }

    /// Returns whether it succeeded for this caller so recently that an equal call is not carried out again.
    fn is_recent_success(&self, caller: &str, now: ClockInstant) -> bool {
        let ended = self.outcome.succeeded_at();
        ended.is_some_and(|ended| now.since(*ended) < REMEMBERED)
            && is_same_caller(&self.card.locked().caller, caller)
    }
}

impl Node {
    /// Gives up what a message asks for, whose sender has gone: its motion stops, or does not begin. Other jobs go on.
    pub fn give_up(&self, arrived: &ArrivalStamp) {
        // First, so that what is not on a board yet does not begin.
        arrived.give_up();
        for arm in &self.arms {
            let job = arm.board.under_way();
            if job.is_some_and(|job| job.is_of(arrived)) {
                arm.motion.abandon();
                arm.note_cause(StopCause::new(
                    "the client that began the motion disconnected",
                ));
            }
        }
    }

    /// Returns each arm with its current or last job.
    pub(super) fn board_jobs(&self) -> impl Iterator<Item = (&Arc<AttachedArm>, Arc<ArmJob>)> {
        let arms = self.arms.iter();
        arms.filter_map(|arm| Some((arm, arm.board.job()?)))
    }

    /// Returns the current or last job with this name, and its arm.
    pub(super) fn board_job(&self, id: &str) -> Option<(&Arc<AttachedArm>, Arc<ArmJob>)> {
        self.board_jobs().find(|(_, job)| job.card().id == id)
    }

    /// Waits until every arm's job has ended and is in its journal, and every order of an operator is on the disk. A process
    /// that exited earlier would leave an unfinished job. Returns `false` if a job takes longer than `within`.
    pub async fn wait_until_idle(&self, within: Duration) -> bool {
        let mut all_ended = true;
        for arm in &self.arms {
            if let Some(job) = arm.board.job() {
                let ended = tokio::time::timeout(within, job.outcome.reply()).await;
                all_ended &= ended.is_ok();
            }
            if let Err(error) = arm.permits().orders_are_kept().await {
                tracing::error!(
                    arm = arm.name,
                    "an operator's order: {}",
                    error.consequence()
                );
            }
        }
        all_ended
    }
}

impl AttachedArm {
    /// Waits until a stopped job has ended, so that `reset` may follow a stop at once. Does not wait for any other job.
    pub(super) async fn wait_for_stopped_job(&self) {
        let stops = self.motion.stops_requested();
        let stopped = self.board.job().filter(|job| job.is_being_stopped(stops));
        if let Some(job) = stopped {
            let _ = tokio::time::timeout(STOPPED_WITHIN, job.outcome.reply()).await;
        }
    }
}

impl JobBoard {
    /// Puts up a new job, unless the arm is busy or the same call was made already. `again` asks for a
    /// new job although the last one was the same. An operator's call joins no planner's that may still be refused: its permission is
    /// not the operator's.
    pub(super) fn claim(
        &self,
        key: JobKey,
        card: impl FnOnce() -> JobCard,
        again: bool,
        now: ClockInstant,
        origin: JobOrigin,
    ) -> JobClaim {
        let mut board = self.0.locked();
        if let Some(job) = board.as_ref() {
            let (is_over, is_same) = (job.is_over(), job.is_same(&key));
            let may_join = is_same && (origin.who <= job.origin.who || job.has_moved());
            if !is_over && !may_join {
                return JobClaim::Busy(Arc::clone(job));
            }
            let is_done = || !again && job.is_recent_success(&origin.caller, now);
            if is_same && (!is_over || is_done()) {
                return JobClaim::Same(Arc::clone(job));
            }
        }
        let job = Arc::new(ArmJob {
            key,
            origin,
            card: Mutex::new(card()),
            outcome: CallOutcome::default(),
            has_moved: AtomicBool::new(false),
        });
        *board = Some(Arc::clone(&job));
        JobClaim::Mine(job)
    }

    /// Returns the current or last job.
    pub(super) fn job(&self) -> Option<Arc<ArmJob>> {
        self.0.locked().clone()
    }

    /// Returns the job that has not ended, if there is one.
    pub(super) fn under_way(&self) -> Option<Arc<ArmJob>> {
        self.job().filter(|job| !job.is_over())
    }
}

/// Claims an arm's job board. An operator's call waits a moment for a job that has not moved yet: a planner that repeats a refused
/// call must not keep an operator from the arm.
pub(super) async fn claim_board(
    node: &Node,
    arm: &AttachedArm,
    call: &mut MotionJobRequest,
) -> Result<JobClaim, Box<Reply>> {
    let until = tokio::time::Instant::now() + OPERATOR_WAIT;
    loop {
        if node.is_ending() {
            return Err(refused("ending", ENDING));
        }
        let origin = JobOrigin {
            who: call.who,
            caller: call.accepted.caller.clone(),
            seen_stops: call.seen_stops,
            arrived: Some(call.arrived.clone()),
        };
        let card = || {
            call.accepted.id = node.job_store.next_id();
            JobCard::accepted(&call.accepted, call.scene.clone())
        };
        let (key, now) = (call.key.clone(), arm.motion.clock().now());
        let job = match arm.board.claim(key, card, call.again, now, origin) {
            JobClaim::Busy(job) => job,
            claim => return Ok(claim),
        };
        let waits = call.who == ActorRank::Operator && job.is_beginning();
        if !waits || !job.ends_until(until).await {
            return Ok(JobClaim::Busy(job));
        }
    }
}
