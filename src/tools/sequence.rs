//! Runs declared tools: a call of a built-in tool, several in sequence, or a call of another server.
//!
//! A step takes the same path as any call: it is read, judged, journalled and stopped as if the caller had made it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::declared_tools::{DeclaredAction, DeclaredStep};
use super::dispatch::{ToolContext, ToolRequest};
use super::job_board::CallOutcome;
use super::reply::{NOTHING_IN_THIS_STEP, Reply, instead_of_nothing_moved, refused};
use super::route::{self, summary_lines};
use super::stop_cause::StopCause;
use super::{Node, RemoteCallWatch, exam_helpers, recording_tools, remote_tools};
use args::ReceivedArguments;
use base::lock::MutexExt;
use base::units::ClockInstant;
use catalogue::{PREVIEW_NAMES, ToolDefinition, ToolEffect};
use permit::ActorRank;

/// Interval of progress reports to a waiting caller.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The same call of a sequence within this time of its end is answered without doing it again.
const REMEMBERED: Duration = Duration::from_secs(120);

/// Carries out a declared tool.
pub(super) async fn call(ctx: &ToolContext<'_>, tool: &ToolDefinition) -> Reply {
    match ctx.node.declared.action(&tool.name) {
        Some(DeclaredAction::Calls(step)) => {
            let calls = step.tool.name.as_str();
            let request = request_for(step, &ctx.reading.understood, ctx.request);
            let reply = Arc::clone(ctx.node).call(request, ctx.watch.clone()).await;
            reply.with("calls", calls)
        }
        Some(DeclaredAction::Sequence(steps)) => sequence(ctx, tool, steps).await,
        Some(DeclaredAction::Helps) => exam_helpers::call(ctx, tool).await,
        Some(DeclaredAction::Recordings) => recording_tools::call(ctx, tool).await,
        Some(DeclaredAction::Remote { server, tool, .. }) => {
            remote_tools::call(ctx, server, tool).await
        }
        None => Reply::failed(format!("the tool `{}` does nothing", tool.name)),
    }
}

/// Returns the call of a step. It has no principal: the declared tool's strictest effect was admitted, and counts as one call.
fn request_for(
    step: &DeclaredStep,
    given: &Map<String, Value>,
    request: &ToolRequest,
) -> ToolRequest {
    ToolRequest {
        tool: step.tool.name.clone(),
        arguments: ReceivedArguments::Value(Value::Object(step.arguments(given))),
        caller: request.caller.clone(),
        who: request.who,
        principal: None,
        hop: None,
        is_step: true,
        arrived: request.arrived.clone(),
    }
}

/// The sequences under way, and the last of each tool.
#[derive(Default)]
pub(super) struct SequenceRegistry(Mutex<Vec<Arc<SequenceProgress>>>);

/// One sequence, under way or over.
struct SequenceProgress {
    tool: String,
    /// Key of the call: the same text for the same call.
    key: String,
    /// Progress: steps done, and the current activity.
    position: Mutex<(usize, String)>,
    cancelled: CancellationToken,
    outcome: CallOutcome<SequenceEnd>,
}

/// Time at which a sequence ended, and the arms' last jobs at that time.
struct SequenceEnd {
    at: Option<ClockInstant>,
    jobs: Vec<String>,
}

impl SequenceEnd {
    fn now(node: &Node) -> Self {
        let arm = node.arms.first();
        Self {
            at: arm.map(|arm| arm.motion.clock().now()),
            jobs: node.jobs(),
        }
    }

    /// Returns whether `self` is so soon after `earlier` that its result still holds: nothing else has moved since.
    fn is_soon_after(&self, earlier: &Self) -> bool {
        let lately = self.at.zip(earlier.at);
        lately.is_some_and(|(now, then)| now.since(then) < REMEMBERED) && self.jobs == earlier.jobs
    }
}

/// Result of a call's claim on a sequence.
enum SequenceClaim {
    Mine(Arc<SequenceProgress>),
    Same(Arc<SequenceProgress>),
    Busy(String),
}

impl SequenceRegistry {
    /// Ends every sequence: its current step is stopped, and no other begins.
    pub(super) fn cancel(&self) {
        let sequences = self.0.locked();
        sequences.iter().for_each(|run| run.cancelled.cancel());
    }

    fn claim(&self, tool: &ToolDefinition, key: String, now: &SequenceEnd) -> SequenceClaim {
        let mut sequences = self.0.locked();
        if let Some(known) = sequences.iter().find(|progress| progress.tool == tool.name) {
            let (is_over, is_same) = (known.is_over(), known.key == key);
            if !is_over && !is_same {
                return SequenceClaim::Busy(known.describe());
            }
            let is_done = || tool.effect == ToolEffect::Moves && known.is_recent_success(now);
            if is_same && (!is_over || is_done()) {
                return SequenceClaim::Same(Arc::clone(known));
            }
        }
        // One sequence per tool is kept, so there are never more than tools.
        sequences.retain(|progress| progress.tool != tool.name);
        let progress = Arc::new(SequenceProgress {
            tool: tool.name.clone(),
            key,
            position: Mutex::default(),
            cancelled: CancellationToken::new(),
            outcome: CallOutcome::default(),
        });
        sequences.push(Arc::clone(&progress));
        SequenceClaim::Mine(progress)
    }
}

impl SequenceProgress {
    fn is_over(&self) -> bool {
        self.outcome.get().is_some()
    }

    /// Returns whether it succeeded so recently that an equal call is not carried out again.
    fn is_recent_success(&self, now: &SequenceEnd) -> bool {
        let ended = self.outcome.succeeded_at();
        ended.is_some_and(|then| now.is_soon_after(then))
    }

    fn describe(&self) -> String {
        let position = self.position.locked();
        format!("{}: {}", self.tool, position.1)
    }

    fn steps_done(&self) -> usize {
        self.position.locked().0
    }

    fn report(&self, done: usize, words: String) {
        *self.position.locked() = (done, words);
    }
}

async fn sequence(ctx: &ToolContext<'_>, tool: &ToolDefinition, steps: &[DeclaredStep]) -> Reply {
    let node = ctx.node;
    let given = &ctx.reading.understood;
    let is_set = |name: &&str| given.get(*name) == Some(&Value::Bool(true));
    if PREVIEW_NAMES.iter().any(is_set)
        && let Some(step) = steps.iter().find(|step| !step.stands_still(given))
    {
        return no_dry_run(tool, step);
    }
    let key = call_key(node, steps, given);
    let progress = match node.sequences.claim(tool, key, &SequenceEnd::now(node)) {
        SequenceClaim::Busy(words) => {
            return Reply::failed(format!("{words} is in progress; nothing new was started"))
                .with("code", "busy");
        }
        SequenceClaim::Same(progress) if progress.is_over() => {
            let hint = "this call was carried out a moment ago, so nothing moved now";
            return progress.outcome.done_before(hint).await;
        }
        SequenceClaim::Same(progress) => progress,
        SequenceClaim::Mine(progress) => {
            let run = SequenceRunner {
                node: Arc::clone(node),
                steps: steps.to_vec(),
                given: given.clone(),
                request: ctx.request.clone(),
                progress: Arc::clone(&progress),
            };
            if node.is_stopped_since(&ctx.request.arrived) {
                progress.cancelled.cancel();
            }
            base::task::spawn(run.execute());
            progress
        }
    };
    wait(node, &progress, steps.len(), ctx.watch).await
}

/// Refuses a dry run of a sequence with a step that would move nevertheless.
fn no_dry_run(tool: &ToolDefinition, step: &DeclaredStep) -> Reply {
    refused("no_dry_run", format!(
        "`{}` has no dry run, because its step `{}` moves the arm and takes no `dry_run`. Next: `stroke` with `dry_run` shows its plan",
        tool.name,
        step.describe()
    ))
    .with("moved", false)
}

/// Returns the identity of a call of a sequence: its arguments, and the current revisions of its scenes.
fn call_key(node: &Node, steps: &[DeclaredStep], given: &Map<String, Value>) -> String {
    let names = node.recent_names();
    let scenes = steps.iter().map(|step| {
        let arguments = step.arguments(given);
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        let scene = text("scene").or(names.default_scene());
        let scene = scene.and_then(|name| node.scenes.scene(name, text("meta")).ok());
        let revision = scene.map(|scene| scene.revision.to_string());
        format!(" {}", revision.unwrap_or_default())
    });
    let given = Value::Object(given.clone()).to_string();
    std::iter::once(given).chain(scenes).collect()
}

/// Waits until the sequence ends or the node's time for an answer is over, after which it goes on; a caller that gives up ends it.
async fn wait(node: &Node, run: &SequenceProgress, of: usize, watch: &RemoteCallWatch) -> Reply {
    let patience = Duration::from_secs(u64::from(node.file.answer_within_s));
    let deadline = tokio::time::Instant::now() + patience;
    loop {
        tokio::select! {
            reply = run.outcome.reply() => return reply.clone(),
            () = watch.cancelled.cancelled(), if !run.cancelled.is_cancelled() => {
                run.cancelled.cancel();
            }
            () = base::task::pause(POLL_INTERVAL) => {
                watch.report(run.steps_done() as f64, of as f64, &run.describe());
                if tokio::time::Instant::now() > deadline && !run.cancelled.is_cancelled() {
                    return still_running(node, run);
                }
            }
        }
    }
}

fn still_running(node: &Node, progress: &SequenceProgress) -> Reply {
    let mut jobs = node.arms.iter().filter_map(|arm| arm.board.under_way());
    let mut reply = Reply::done(format!("{}, and continues", progress.describe()))
        .hint("`sense` reports its job, and `stop` ends it. The same call waits for its end");
    reply.set_some("job", jobs.next().map(|job| job.card()));
    reply
}

/// A sequence on its way.
struct SequenceRunner {
    node: Arc<Node>,
    steps: Vec<DeclaredStep>,
    given: Map<String, Value>,
    /// The call of the sequence.
    request: ToolRequest,
    progress: Arc<SequenceProgress>,
}

impl SequenceRunner {
    async fn execute(self) {
        let (node, progress) = (Arc::clone(&self.node), Arc::clone(&self.progress));
        let reply = match base::task::spawn(self.run()).await {
            Ok(reply) => reply,
            Err(_) => {
                // Whatever failed, no arm must go on unattended.
                let cause = StopCause::new("a panic in a sequence");
                node.stop_all(ActorRank::Node, false, &cause);
                Reply::failed("the node failed in a sequence, so it stopped every arm")
            }
        };
        progress.outcome.end(reply, SequenceEnd::now(&node));
    }

    async fn run(self) -> Reply {
        let of = self.steps.len();
        let mut results: Vec<Value> = Vec::with_capacity(of);
        let mut last = Reply::done("there was nothing to do");
        for (index, step) in self.steps.iter().enumerate() {
            let place = format!("step {} of {of} ({})", index + 1, step.tool.name);
            if self.progress.cancelled.is_cancelled() {
                let how = "was not begun, because a stop came first";
                return failed_reply(&place, how, results, Reply::default());
            }
            self.progress.report(index, place.clone());
            last = self.step(step).await;
            results.push(summary(step, &last));
            if last.is_error {
                let reason = last.text.clone();
                let is_first = results.len() == 1;
                let reply = failed_reply(&place, &format!("failed: {reason}"), results, last);
                return if is_first {
                    reply
                } else {
                    instead_of_nothing_moved(reply, NOTHING_IN_THIS_STEP)
                };
            }
        }
        self.progress.report(of, "done".to_owned());
        let mut reply = Reply::done(summary_lines("tool", &results)).with("steps", results);
        reply.images = last.images;
        reply
    }

    /// Carries out one step, to the end of its motion.
    async fn step(&self, step: &DeclaredStep) -> Reply {
        let request = request_for(step, &self.given, &self.request);
        let watch = RemoteCallWatch {
            cancelled: self.progress.cancelled.clone(),
            ..RemoteCallWatch::unobserved()
        };
        let reply = Arc::clone(&self.node).call(request, watch).await;
        // A job named by a refusal, or by a step that moves nothing, is another caller's.
        if reply.is_error || step.stands_still(&self.given) {
            return reply;
        }
        self.wait_for_job(&reply).await.unwrap_or(reply)
    }

    /// Waits for the end of a motion that outlasted its call.
    async fn wait_for_job(&self, reply: &Reply) -> Option<Reply> {
        let id = reply.structured.get("job")?.get("id")?.as_str()?;
        let (arm, job) = self.node.board_job(id).filter(|(_, job)| !job.is_over())?;
        let mut is_abandoned = false;
        loop {
            tokio::select! {
                reply = job.outcome.reply() => return Some(reply.clone()),
                () = self.progress.cancelled.cancelled(), if !is_abandoned => {
                    is_abandoned = true;
                    arm.motion.abandon();
                    arm.note_cause(StopCause::new("the end of its sequence"));
                }
            }
        }
    }
}

/// Summarises a step for the result, without long fields.
fn summary(step: &DeclaredStep, reply: &Reply) -> Value {
    let keys = ["success", "message", "code", "understood", "job"];
    route::summary("tool", &step.tool.name, reply, &keys)
}

fn failed_reply(place: &str, outcome: &str, results: Vec<Value>, last: Reply) -> Reply {
    let code = last.structured.get("code").cloned();
    let mut reply = Reply::failed(format!("{place} {outcome}"))
        .with_value("code", code.unwrap_or(json!("step_failed")))
        .with("failed_step", results.len().max(1))
        .with("steps", results);
    reply.images = last.images;
    reply
}
