//! Life of a motion job: it is accepted, planned on a thread of its own, checked, run and ended.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use nalgebra::Point3;
use tokio_util::task::AbortOnDropHandle;

use super::doubt::MotionOrder;
use super::job_board::{ArmJob, JobCard, JobClaim, JobKey, claim_board};
use super::journal_entries;
use super::panic_guard::InternalError;
use super::reply::{MOVED_BEFORE, Reply, instead_of_nothing_moved, refused};
use super::team::TeamSeat;
use super::{AttachedArm, Node, RemoteCallWatch, reset, resume};
use tracing::Instrument as _;

use base::units::JointVector;
use base::wording::{millimetres, seconds};
use call::{ArrivalStamp, Refusal};
use job::{AcceptedJob, DEVIATED, InkProgress, JobJournal, PastJob};
use motion::{MotionState, Snapshot, StopReport};
use permit::{ActorRank, PermitError};
use plan::PlanError;
use scene::Scene;

/// Interval at which a waiting call polls its job.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Code of a motion that reached its end, which is not in its journal.
const END_NOT_JOURNALLED: &str = "end_not_journalled";

/// Hint for a call that an equal call did moments ago.
pub(super) const DONE_BEFORE: &str =
    "this call was carried out a moment ago, so nothing moved now. To repeat it, send `again` true";

/// Reason why a motion was not carried out, or only in part.
pub(super) enum JobError {
    /// A person has to enable or reset first.
    Denied(PermitError),
    /// There is no plan.
    Plan(PlanError),
    /// Planning or judging panicked; nothing moved.
    Panic(InternalError),
    /// The gate refused the trajectory.
    Gate(gate::RefusedTrajectory),
    /// It did not begin; nothing moved.
    Refused(Refusal),
    /// It did not begin; this is the complete answer.
    Answered(Box<Reply>),
    /// It was stopped, after this much was drawn and with the pen this high over the sheet, in mm, if it is up.
    Stopped(Box<StopReport>, InkProgress, Option<f64>),
    /// It waited for a pen that nobody confirmed.
    PenNotConfirmed(String),
    /// A touch failed to measure the length of the pen that a person has put in.
    PenNotMeasured(String),
    /// It was stopped because its journal could not be written.
    Journal(String),
    /// A motion was carried out to its end, but its journal does not say so.
    EndNotJournalled(String),
    /// The arm did what it was asked, but what it measured could not be kept as a proposal.
    NotKept(String),
    /// A drawing was carried out, but a joint did not follow or ink is missing; this is the complete answer.
    Deviated(Box<Reply>),
    /// A fault came on the way.
    Faulted(String),
    /// The arm came to rest, but another stop or fault was latched before the reset ended.
    Overtaken,
}

impl From<Refusal> for JobError {
    fn from(reason: Refusal) -> Self {
        Self::Refused(reason)
    }
}

impl From<Box<Reply>> for JobError {
    fn from(answer: Box<Reply>) -> Self {
        Self::Answered(answer)
    }
}

/// Description of a motion job.
pub(super) struct MotionJobRequest {
    /// The scene's title, for people.
    pub(super) scene: String,
    /// First entry of its journal.
    pub(super) accepted: AcceptedJob,
    /// What gives leave to begin it.
    pub(super) order: MotionOrder,
    /// Source of the request.
    pub(super) who: ActorRank,
    pub(super) key: JobKey,
    /// True to repeat a call that was done moments ago.
    pub(super) again: bool,
    /// Number of stops requested before the call arrived; a later stop ends it.
    pub(super) seen_stops: u64,
    /// The message that asks for it.
    pub(super) arrived: ArrivalStamp,
    /// The other jobs that it moves together with, if there are any.
    pub(super) team: TeamSeat,
}

/// Context of a job that moves an arm.
pub(super) struct JobContext {
    pub(super) node: Arc<Node>,
    pub(super) arm: Arc<AttachedArm>,
    pub(super) job: Arc<ArmJob>,
    /// Its journal.
    pub(super) entry: Arc<JobJournal>,
    /// Source of the request.
    pub(super) who: ActorRank,
    /// Number of stops requested before its call arrived.
    pub(super) seen_stops: u64,
    /// The other jobs that it moves together with, if there are any.
    pub(super) team: TeamSeat,
    /// True once a camera has checked the sheet's place: one check serves any number of motions.
    pub(super) has_checked_sheet: AtomicBool,
}

/// Returns a job of a tool in a scene, for the first entry of its journal.
pub(super) fn accepted_job(
    tool: &str,
    arm: &AttachedArm,
    scene: &Scene,
    caller: &str,
) -> AcceptedJob {
    AcceptedJob {
        tool: tool.to_owned(),
        arm: arm.name.clone(),
        is_on_port: arm.workcell.is_none(),
        scene: scene.name.clone(),
        overlay: scene.overlay.clone().unwrap_or_default(),
        revision: scene.revision.hex(),
        caller: caller.to_owned(),
        ..AcceptedJob::default()
    }
}

/// Outcome of a request for a job.
pub(super) enum StartedJob {
    /// It is under way, begun by this call or by an equal one.
    UnderWay(Arc<ArmJob>),
    /// An equal one ended moments ago.
    DoneBefore(Arc<ArmJob>),
    /// Another job has the arm, or the node ends.
    Busy(Box<Reply>),
}

impl StartedJob {
    /// Waits for the job's end, but no longer than the node lets calls wait.
    pub(super) async fn wait_for_end(
        self,
        node: &Node,
        arm: &Arc<AttachedArm>,
        watch: &RemoteCallWatch,
    ) -> Reply {
        match self {
            Self::UnderWay(job) => wait(node, arm, &job, watch).await,
            Self::DoneBefore(job) => job.outcome.done_before(DONE_BEFORE).await,
            Self::Busy(reply) => *reply,
        }
    }

    /// Waits until the job moves, waits for a person or has ended. The job goes on even if the caller disappears: a queue asks for
    /// its end later, perhaps from another process.
    pub(super) async fn wait_for_start(self, arm: &AttachedArm, watch: &RemoteCallWatch) -> Reply {
        let job = match self {
            Self::UnderWay(job) | Self::DoneBefore(job) => job,
            Self::Busy(reply) => return *reply,
        };
        loop {
            let card = job.card();
            card.report_to(watch);
            if !job.is_over() && !matches!(card.state, "accepted" | "planning") {
                return still_moving(arm, &card);
            }
            if let Ok(reply) = tokio::time::timeout(POLL_INTERVAL, job.outcome.reply()).await {
                return reply.clone();
            }
        }
    }
}

/// Begins `work` as the arm's job, without waiting for its end.
pub(super) async fn start_job<W, F>(
    node: &Arc<Node>,
    arm: &Arc<AttachedArm>,
    call: MotionJobRequest,
    work: W,
) -> StartedJob
where
    W: FnOnce(JobContext) -> F + Send + 'static,
    F: Future<Output = Result<Reply, JobError>> + Send + 'static,
{
    start_boxed(node, arm, call, Box::new(move |job| work(job).boxed())).await
}

/// Work of a job, boxed so that the code that begins and ends jobs is compiled once.
type JobWork = Box<dyn FnOnce(JobContext) -> BoxFuture<'static, Result<Reply, JobError>> + Send>;

async fn start_boxed(
    node: &Arc<Node>,
    arm: &Arc<AttachedArm>,
    mut call: MotionJobRequest,
    work: JobWork,
) -> StartedJob {
    let claim = match claim_board(node, arm, &mut call).await {
        Ok(claim) => claim,
        Err(ending) => return StartedJob::Busy(ending),
    };
    let MotionJobRequest {
        mut accepted,
        order,
        who,
        seen_stops,
        team,
        ..
    } = call;
    order.log_repairs();
    let job = match claim {
        JobClaim::Busy(job) => return StartedJob::Busy(busy_reply(node, &job.card()).boxed()),
        JobClaim::Same(job) => {
            // That job takes no part in this team.
            team.leave("its call only repeats an earlier job");
            if job.is_over() {
                return StartedJob::DoneBefore(job);
            }
            job
        }
        JobClaim::Mine(job) => {
            team.note_drawing(&mut accepted);
            let (node, arm, own_job) = (Arc::clone(node), Arc::clone(arm), Arc::clone(&job));
            let running = async move {
                if let Err(reason) = own_job.check_wanted() {
                    team.leave(&reason.to_string());
                    return end_unbegun(&arm, &own_job, *refused("given_up", reason));
                }
                let opened = journal_entries::begin(&node, accepted).await;
                let entry = match opened {
                    Ok(entry) => entry,
                    Err(error) => {
                        team.leave(&error.to_string());
                        return end_unbegun(&arm, &own_job, *refused("journal", error));
                    }
                };
                let ctx = JobContext {
                    node,
                    arm,
                    job: own_job,
                    entry,
                    who,
                    seen_stops,
                    team,
                    has_checked_sheet: AtomicBool::new(false),
                };
                run_job(ctx, work).await;
            };
            base::task::spawn(running.in_current_span());
            job
        }
    };
    tracing::Span::current().record("job", &job.card().id);
    StartedJob::UnderWay(job)
}

/// Ends a job that has no journal, before anything was planned.
fn end_unbegun(arm: &AttachedArm, job: &ArmJob, refusal: Reply) {
    let reply = refusal.with("arm", arm.title()).with("job", job.card());
    job.end("refused", reply, arm.motion.clock().now());
}

async fn run_job(ctx: JobContext, work: JobWork) {
    let (arm, job) = (Arc::clone(&ctx.arm), Arc::clone(&ctx.job));
    let (node, entry) = (Arc::clone(&ctx.node), Arc::clone(&ctx.entry));
    job.update(|card| card.state = "planning");
    let team = ctx.team.clone();
    let work = base::task::spawn(work(ctx).in_current_span());
    let worked = work.await;
    team.leave(&format!("the job of arm `{}` has ended", arm.name));
    let (state, reply) = match worked {
        Ok(Ok(reply)) => ("reached", reply),
        Ok(Err(error)) => error.reply(),
        Err(_) => {
            // Whatever failed, the arm must not go on unattended.
            arm.stop_for_node("a panic in its job");
            let reason = "the node failed while the job ran, and sent the arm a stop";
            ("faulted", Reply::failed(reason).with("moved", "unknown"))
        }
    };
    let reply = if job.has_moved() {
        instead_of_nothing_moved(reply, MOVED_BEFORE)
    } else {
        reply
    };
    let card = JobCard {
        state,
        left_s: Some(0.0),
        ..job.card()
    };
    let mut reply = arm.with_stop_reason(arm.with_lost_client(reply, &card.id));
    reply.set_some("apart", node.kept_apart(&arm));
    reply.set("arm", arm.title());
    reply.set("job", card);
    // The journal, from which the rest is known, does not say what was drawn last.
    let knows_rest = reply.code() != Some(END_NOT_JOURNALLED);
    let reply = if reply.is_error && !job::has_come_to_its_end(state) && knows_rest {
        with_resume_hint(reply, &node, &arm, &entry.past())
    } else {
        reply
    };
    let reply = node.with_commands_for_arm(&arm, reply);
    // The journal comes first, so that a caller with the answer finds it there.
    journal_entries::end(&node, &entry, state, &reply).await;
    job.end(state, reply, arm.motion.clock().now());
}

/// Hint for a drawing that broke off after its last line.
pub const ALL_DRAWN: &str = "the whole drawing is on the sheet. After `reset` nothing is left to do; drawing again would draw it twice";

/// Adds to the answer of a drawing that broke off how to draw the rest; an operator's also lists the commands.
fn with_resume_hint(reply: Reply, node: &Node, arm: &AttachedArm, past: &PastJob) -> Reply {
    let mut next = reset::commands(node, arm, &past.scene, past.overlay());
    let Some(hint) = resume_hint(past, &next, &node.resume_call(&arm.name, &past.scene)) else {
        return reply;
    };
    let mut reply = reply.hint(&hint);
    if past.has_remainder() && resume::is_of_operator(past) {
        next.push(resume::command(node, arm, past));
        reply.set("next_commands", next);
    }
    reply
}

/// Describes how to draw the rest of a drawing that broke off, or says that nothing is left. The arm is reset by `resets`; only
/// an operator can do more of them than the last.
fn resume_hint(past: &PastJob, resets: &[String], resume_call: &str) -> Option<String> {
    if past.is_all_drawn() {
        return Some(ALL_DRAWN.to_owned());
    }
    let before = resets.split_last().map_or(&[][..], |(_, before)| before);
    let after = match before.is_empty() {
        true => "after reset".to_owned(),
        false => format!(
            "after an operator's {} and a reset",
            reset::as_typed(before).join(", ")
        ),
    };
    past.has_remainder()
        .then(|| match resume::is_of_operator(past) {
            false => {
                format!("{after}, {resume_call} draws the rest (without `resume`, the drawing starts over)")
            }
            true => format!("{after}, `steadyhand draw --resume` draws the rest"),
        })
}

/// Stops the arm as soon as the caller gives up, for as long as the returned handle is kept. Returns `None` without a
/// task to watch the caller.
fn stop_when_cancelled(
    watch: &RemoteCallWatch,
    arm: &Arc<AttachedArm>,
    job: &ArmJob,
    started_at: tokio::time::Instant,
) -> Option<AbortOnDropHandle<()>> {
    let (watch, arm, id) = (watch.clone(), Arc::clone(arm), job.card().id);
    let watching = watch.cancel_runtime.clone()?.spawn(async move {
        watch.cancelled.cancelled().await;
        arm.abandon(&id, started_at.elapsed(), &watch);
    });
    Some(AbortOnDropHandle::new(watching))
}

/// Waits until the job ends or the node's time for an answer is over; a caller that gives up stops the arm.
async fn wait(
    node: &Node,
    arm: &Arc<AttachedArm>,
    job: &Arc<ArmJob>,
    watch: &RemoteCallWatch,
) -> Reply {
    let started_at = tokio::time::Instant::now();
    let watching = stop_when_cancelled(watch, arm, job, started_at);
    let deadline = started_at + Duration::from_secs(u64::from(node.file.answer_within_s));
    let mut is_cancelled = false;
    job.card().report_to(watch);
    loop {
        tokio::select! {
            reply = job.outcome.reply() => {
                let card = job.card();
                if job::has_come_to_its_end(card.state) {
                    card.report_to(watch);
                }
                return reply.clone();
            }
            () = watch.cancelled.cancelled(), if !is_cancelled => {
                is_cancelled = true;
                if watching.is_none() {
                    arm.abandon(&job.card().id, started_at.elapsed(), watch);
                }
            }
            () = base::task::pause(POLL_INTERVAL) => {
                refresh_card(arm, job);
                let card = job.card();
                card.report_to(watch);
                if !is_cancelled && tokio::time::Instant::now() > deadline {
                    return still_moving(arm, &card);
                }
            }
        }
    }
}

/// Updates the job's card to what the arm is doing.
pub(super) fn refresh_card(arm: &AttachedArm, job: &ArmJob) {
    let snapshot = arm.motion.snapshot();
    let is_held = snapshot.state == MotionState::Held;
    let Some(progress) = snapshot.progress else {
        return;
    };
    let samples_left = progress.of.saturating_sub(progress.sample);
    job.update(|card| {
        if matches!(card.state, "moving" | "held") {
            card.state = if is_held { "held" } else { "moving" };
            if let Some(item) = progress.item.filter(|_| !card.is_uncounted) {
                card.done = card.done_before + item;
            }
            card.eta_s = plan::PERIOD.as_secs_f64() * samples_left as f64;
        }
    });
}

fn still_moving(arm: &AttachedArm, card: &JobCard) -> Reply {
    let message = card.waiting_text().unwrap_or_else(|| {
        let (state, progress) = (card.state, card.progress_text());
        format!("{} is still {state} ({progress})", card.id)
    });
    Reply::done(message)
        .with("arm", arm.title())
        .with("state", card.state)
        .with("job", card)
        .hint("`sense` reports the job and `stop` ends it. The same call again returns this job and draws nothing twice")
}

fn busy_reply(node: &Node, card: &JobCard) -> Reply {
    let way_out = node.way_out_of_wait(&card.id);
    let way_out = way_out.map_or_else(String::new, |text| format!(". {text}"));
    Reply::failed(format!(
        "the arm is busy with {}, {} {} by {} ({}). Nothing moved for this call{way_out}",
        card.id,
        article(&card.tool),
        card.tool,
        card.caller,
        card.progress_text()
    ))
    .with("code", "busy")
    .with("job", card)
    .hint("`sense` reports the job, `stop` ends it")
}

fn article(tool: &str) -> &'static str {
    if tool.starts_with(['a', 'e', 'i', 'o', 'u']) {
        "an"
    } else {
        "a"
    }
}

impl JobError {
    /// Returns the text of the reply as a refusal.
    pub(super) fn into_refusal(self) -> Refusal {
        Refusal::new(self.reply().1.text)
    }

    /// Returns the final state of an unfinished job and the reply to its caller.
    pub(super) fn reply(self) -> (&'static str, Reply) {
        match self {
            Self::Denied(denied) => ("refused", denied_reply(&denied)),
            Self::Plan(PlanError::Cancelled) => (
                "stopped",
                *refused("stopped", "the call was stopped while it was being planned"),
            ),
            Self::Plan(error) => ("refused", *refused("plan_refused", error)),
            Self::Gate(error) => (
                "refused",
                refused("gate_refused", &error).with("refusals", &error.0),
            ),
            Self::Panic(error) => ("refused", *refused("internal_error", error)),
            Self::Refused(reason) => ("refused", *refused("refused", reason)),
            Self::Answered(reply) => ("refused", *reply),
            Self::Deviated(reply) => (DEVIATED, *reply),
            Self::PenNotConfirmed(reason) => ("stopped", *refused("pen_not_confirmed", reason)),
            Self::PenNotMeasured(reason) => ("stopped", *refused("pen_not_measured", reason)),
            Self::Stopped(report, drawn, raised_mm) => {
                ("stopped", stopped_reply(&report, drawn, raised_mm))
            }
            Self::Journal(reason) => {
                let reason = format!(
                    "the arm was stopped during its motion, because the journal could not be written: {reason}"
                );
                let hint = "make room on the disk of the state folder before you resume";
                ("faulted", faulted_reply("journal", reason).hint(hint))
            }
            Self::EndNotJournalled(reason) => {
                let reason = format!(
                    "the motion reached its end, but that could not be written to the journal, so the job counts as interrupted: {reason}"
                );
                let reply = Reply::failed(reason).with("code", END_NOT_JOURNALLED);
                let hint = "make room on the disk of the state folder. Before you resume or draw again, look at the sheet: the last lines could be drawn twice";
                ("faulted", reply.hint(hint))
            }
            Self::NotKept(reason) => (
                "reached",
                Reply::failed(format!(
                    "the measurement is done, but its result could not be saved: {reason}. Next: call `align` again"
                ))
                .with("code", "calibration"),
            ),
            Self::Faulted(reason) => (
                "faulted",
                faulted_reply("fault", format!("a fault during the motion: {reason}")),
            ),
            Self::Overtaken => (
                "stopped",
                Reply::failed(
                    "the arm is at rest, but another stop or fault came and is still latched",
                )
                .with("code", "stopped")
                .hint("`sense` shows what is latched; then call `reset` again"),
            ),
        }
    }
}

fn faulted_reply(code: &str, reason: String) -> Reply {
    let reply = Reply::failed(reason).with("code", code);
    reply.hint("`sense` shows where the arm is. Remove the cause, then call `reset`")
}

fn denied_reply(denied: &PermitError) -> Reply {
    let code = match denied {
        PermitError::NeedsEnabling { .. } | PermitError::DrawingNeedsEnabling { .. } => {
            "needs_enabling"
        }
        PermitError::Stopped(_) | PermitError::OperatorMustReset => "needs_reset",
        PermitError::Emergency => "emergency_stop",
        PermitError::Held(_) => "held",
        PermitError::Fault(_) => "fault",
        PermitError::PenChange(_) => "pen_change",
        PermitError::OtherArm(_) => "other_arm",
        PermitError::OrderedMeanwhile => "needs_enabling",
    };
    *refused(code, denied)
}

fn stopped_reply(report: &StopReport, drawn: InkProgress, raised_mm: Option<f64>) -> Reply {
    let lift_text = match raised_mm {
        _ if report.lifted => "the pen was lifted".to_owned(),
        Some(mm) => format!("the pen is up ({} over the sheet)", millimetres(mm, 1)),
        None => "the pen was not lifted".to_owned(),
    };
    let message = match report.standstill_ms {
        Some(ms) => format!(
            "the motion was stopped before its end; the arm stood still {} after the stop, and {lift_text}",
            seconds(ms / 1e3)
        ),
        None => "a stop was sent, but standstill could not be verified. Next: look at the arm"
            .to_owned(),
    };
    Reply::failed(message)
        .with("code", "stopped")
        .with("stop", report)
        .with("drawn_mm", super::stroke::rounded(drawn.mm))
        .hint(super::stop::next_step(report.emergency))
}

/// Returns the height over the sheet of the lowest pen as measured, if no pen is less than half of the height of travel
/// over it.
pub(super) fn raised_mm(scene: &Scene, snapshot: &Snapshot) -> Option<f64> {
    let q_rad = snapshot.measured.as_ref()?.position_rad;
    let held = (0..scene.pens.len()).filter(|pen| scene.holder.may_hold(*pen));
    let tips = held.filter_map(|pen| tip_m(scene, pen, &q_rad));
    let heights = tips.map(|tip| scene.surface.project(&tip).height_mm);
    let lowest = heights.min_by(f64::total_cmp)?;
    (lowest >= scene.heights.lift_mm / 2.0).then_some(lowest)
}

/// Returns the tip of a pen for joint angles, in the base frame.
pub(super) fn tip_m(scene: &Scene, pen: usize, q_rad: &JointVector) -> Option<Point3<f64>> {
    Some(scene.arm.chain.forward(q_rad) * scene.pen(pen)?.tip_m)
}

/// Returns the tip like [`tip_m`], in millimetres.
pub(super) fn tip_mm(scene: &Scene, pen: usize, q_rad: &JointVector) -> Option<[f64; 3]> {
    let tip = tip_m(scene, pen, q_rad)?;
    Some([tip.x, tip.y, tip.z].map(|m| m * 1e3))
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failing test may panic"
)]
mod tests {
    use super::*;
    use scene::SheetStroke;

    #[test]
    fn a_drawing_that_broke_off_says_what_is_left_of_it() {
        let stroke = || SheetStroke {
            pen: 0,
            points_mm: vec![[0.0, 0.0], [10.0, 0.0]],
            source: String::new(),
            pause: None,
        };
        let mut past = PastJob {
            tool: "stroke".to_owned(),
            strokes: vec![stroke(), stroke()],
            ..PastJob::default()
        };
        let hint = |past: &PastJob, resets: &[&str]| {
            let resets: Vec<String> = resets.iter().map(ToString::to_string).collect();
            resume_hint(past, &resets, "stroke {\"resume\":true}")
        };
        let says = |past: &PastJob, part: &str| {
            hint(past, &["reset"]).is_some_and(|hint| hint.contains(part))
        };
        assert_eq!(hint(&past, &["reset"]), None);
        (past.drawn.mm, past.drawn.strokes) = (12.0, 1);
        assert!(says(&past, "after reset, ") && says(&past, "draws the rest"));
        // A reset alone does not end what an emergency stop has latched, nor does it move what is not enabled.
        let all = hint(&past, &["clear", "enable --scene a --for 30m", "reset"]).unwrap();
        assert!(
            all.starts_with("after an operator's `steadyhand clear`, `steadyhand enable --scene a --for 30m` and a reset, "),
            "{all}"
        );
        (past.drawn.mm, past.drawn.strokes) = (20.0, 2);
        assert!(says(&past, "nothing is left to do"));
    }
}
